//! The page of a run that goes on or is over: graph, states, times, logs, in a browser.
//!
//! [`ViewedRun`] gathers what the page shows: from the manager as long as the run goes on
//! (`observer`), from the run directory (`facts`, `state`, `logs`), and from `/proc` (`processes`).
//! [`save`] makes one HTML text of all that. [`Server`] serves the same page on the loopback network
//! (`access` decides who gets in). The page itself is in the folder `page`.
//!
//! This crate never writes to the run directory, and never prints.

#![forbid(unsafe_code)]

mod access;
mod facts;
mod grouping;
mod html;
mod logs;
mod observer;
mod processes;
mod server;
mod state;
mod viewed_run;

pub use html::save;
pub use server::Server;
pub use viewed_run::{ViewError, ViewedRun};
