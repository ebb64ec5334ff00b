//! The control plane of one run: registry, placement, start, watch, and explaining the end.
//!
//! The manager never touches a message between programs: it tells each where its peers are, and from then on they
//! talk to each other. All its decisions are made by a state machine ([`state`]) over what happens ([`event`]),
//! for what the description asks ([`plan`]).

#![forbid(unsafe_code)]

pub mod compile;
mod cores;
pub mod directory;
pub mod event;
pub mod guard;
pub mod launch;
pub mod log;
pub mod placement;
pub mod plan;
pub mod profile;
pub mod report;
mod sentry;
pub mod session;
pub mod stage;
pub mod state;
mod tree;
