//! The control plane of one run: registry, placement, start, watch, and explaining the end.
//!
//! The manager never touches a message between programs: it tells each where its peers are, and from then on they
//! talk to each other. All its decisions are made by a state machine ([`state`]) over what happens ([`event`]),
//! for what the description asks ([`plan`]).

#![forbid(unsafe_code)]

pub mod event;
pub mod plan;
pub mod state;
