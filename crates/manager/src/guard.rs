//! The guard: a process of its own that starts the programs of a run and leaves none behind.
//!
//! It is the same binary as the manager, and talks to it by JSON lines over a socket that it inherits as its standard
//! input. It is a subreaper, so every descendant stays below it. When the manager says so, or is gone (the socket
//! ends), it ends all of them, removes the connection file, and goes. When the guard itself is killed, the programs
//! get SIGKILL from the system, and the manager, a subreaper too, ends what is left.

mod client;
mod json_lines;
mod mpi_files;
mod serve;
mod shim;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::event::{Exit, Signal};

pub use client::{Guard, GuardEvent};
pub use serve::serve;
pub use shim::shim;

/// What to run, where, and with what environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launch {
    /// The file to run.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
    /// Whether to begin with an empty environment instead of the guard's.
    pub clear: bool,
    /// Variables to set.
    pub set: Vec<(String, String)>,
    /// Variables to take out.
    pub unset: Vec<String>,
    /// The work directory.
    pub directory: PathBuf,
    /// Where standard output goes.
    pub stdout: PathBuf,
    /// Where standard error goes.
    pub stderr: PathBuf,
}

/// From the manager to the guard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum GuardOrder {
    /// Start a program under this number.
    Start { id: u32, launch: Launch },
    /// Send a signal to the processes of that number.
    Signal { id: u32, signal: Signal },
    /// Stop every process, until the order to go on.
    Pause,
    /// Have every process that was stopped go on.
    Resume,
    /// End what is left, and go.
    Finish,
}

/// From the guard to the manager.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum GuardReport {
    Started {
        id: u32,
        pid: u32,
    },
    NotStarted {
        id: u32,
        why: String,
    },
    Ended {
        id: u32,
        exit: Exit,
    },
    /// Processes that were still there at the end, and those that could not be ended.
    Swept {
        left: Vec<String>,
        stuck: Vec<String>,
    },
}
