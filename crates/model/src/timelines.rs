//! Timelines: which components step together, which are called by others, and conduits between those that do not fit.
//!
//! A component that is called (through F_INIT) by another in each of its steps has a timeline inside the other's; the path of
//! timelines says how often it runs. A conduit fits if both ends are on the same path, filters taken into account. Components
//! that exchange messages in each step (O_I to S) step together: their timelines are taken to match, declared or not.

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
