//! The guard: a separate process that starts the programs of a run and leaves no program behind.
//!
//! The guard is the same binary as the manager. The two exchange JSON lines over a socket, the
//! guard's standard input at its start. The guard is a subreaper, so every descendant stays below
//! the guard. At the manager's order, or when the manager is gone (the socket ends), the guard ends
//! all descendants, removes the connection file, and ends. If the guard is killed, the system sends
//! SIGKILL to the programs, and the manager, a subreaper too, ends the remaining processes.
//!
//! Each host of a run has one guard: on the manager's host a child of the manager, and on another
//! host a child of the agent (`agent`), which serves as the manager of that guard. Programs that a
//! launcher such as `srun` starts on other hosts are below the launcher, and end with the launcher.

mod client;
mod json_lines;
mod mpi_files;
mod serve;
mod shim;

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::event::{Exit, Signal};

pub use client::{Guard, GuardEvent};
pub use serve::serve;
pub use shim::shim;

/// A program to run, with folder, environment and files for output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launch {
    /// The file to run.
    pub program: PathBuf,
    /// The arguments.
    pub args: Vec<String>,
    /// Whether the environment is empty at first. Otherwise the guard's environment is the base.
    pub clear: bool,
    /// Variables to set.
    pub set: Vec<(String, String)>,
    /// Variables to remove.
    pub unset: Vec<String>,
    /// The work directory.
    pub directory: PathBuf,
    /// The file for standard output.
    pub stdout: PathBuf,
    /// The file for standard error.
    pub stderr: PathBuf,
    /// The text for standard input, if the program is to read one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
}

/// An order from the manager to the guard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum GuardOrder {
    /// Start a program under a number.
    Start { id: u32, launch: Launch },
    /// Send a signal to the processes of a program, by the program's number.
    Signal { id: u32, signal: Signal },
    /// Stop every process, until the order to resume.
    Pause,
    /// Let every stopped process go on.
    Resume,
    /// End all processes, and then end the guard.
    Finish,
}

/// A report from a guard, which an agent passes on to the manager.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum GuardReport {
    /// A program runs.
    Started {
        /// The number of the program.
        id: u32,
        /// The process.
        pid: u32,
    },
    /// A program could not be started.
    NotStarted {
        /// The number of the program.
        id: u32,
        /// The reason, in words.
        why: String,
    },
    /// A program has ended.
    Ended {
        /// The number of the program.
        id: u32,
        /// How the program has ended.
        exit: Exit,
    },
    /// All processes have ended.
    Swept {
        /// The names of the processes that were left at the end.
        left: Vec<String>,
        /// The names of the processes that could not be ended.
        stuck: Vec<String>,
    },
}

impl GuardReport {
    /// The number of the program that the report is about, if it is about one.
    pub(crate) fn program(&self) -> Option<u32> {
        match self {
            GuardReport::Started { id, .. }
            | GuardReport::NotStarted { id, .. }
            | GuardReport::Ended { id, .. } => Some(*id),
            GuardReport::Swept { .. } => None,
        }
    }
}

/// What a guard removes at its end.
#[derive(Debug)]
pub struct Leftovers<'a> {
    /// The connection file of the run, with the folders for messages that it names.
    pub connection: Option<&'a Path>,
    /// A folder that the guard removes in any case.
    pub own: &'a Path,
    /// A folder that the guard removes if the process that has started the guard is gone, and no other
    /// process uses the folder.
    pub shared: Option<&'a Path>,
}

/// The time for a guard to end the remaining processes.
pub(crate) const SWEEP_TIME: Duration = Duration::from_secs(30);
