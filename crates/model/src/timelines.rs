//! Timelines: which components step together, which components are called in the steps of others,
//! and which conduits do not fit.
//! A component with an F_INIT port may be called by another component in each step of the caller.
//! The timeline of the component then lies inside the timeline of the caller, and the path of
//! timelines gives the number of runs. A conduit fits if both ends are on the same path, filters
//! included. Components that exchange messages in each step (O_I to S) step together: their
//! timelines are taken to match, declared or not.

mod analysis;
mod calling_order;
mod graph;
mod last_cycle;
mod matching;
mod of_model;
mod of_network;
mod report;
mod strongly_connected;

pub(crate) use of_model::check;
pub(crate) use of_network::of_network;
