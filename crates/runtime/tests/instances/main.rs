//! Instances of one process under the real state machine of the manager.

mod endings;
mod exchange;
mod fields;
mod hand;
mod joined;
mod light;
mod refusals;
mod stage;
mod wrong;
