//! The agent: starts, watches and ends the programs that are placed on another host.
//!
//! An agent does on its host what the manager does on the manager's host. The agent has a
//! [guard](crate::guard) as a child. The agent passes orders from the manager to the guard, and reports
//! from the guard to the manager, over a link. If the manager is gone, the agent orders its guard to end
//! all programs. If the agent is killed, the guard ends them without an order. The run starts its agents
//! (`launcher`), or the user does, by a command with a token (`token_exchange`).
//!
//! ```text
//! manager ──link── agent ──socket── guard ── programs of the host
//! ```

mod client;
mod files;
mod input;
mod launcher;
mod own_files;
mod serve;
mod token_exchange;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use titin_wire::HostNetwork;

use crate::event::Signal;
use crate::guard::GuardReport;
use crate::plan::PlannedProgram;

pub(crate) use client::{Agents, tell};
pub(crate) use files::FilePiece;
pub use input::{AgentInput, InputError};
pub(crate) use launcher::{AgentGroup, by_hand, groups, hosts_by_hand};
pub use serve::{AgentError, AgentSetup, serve};

/// An order from the manager to an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum AgentOrder {
    /// The agent takes part in the run.
    Welcome {
        /// The longest silence of the manager, in seconds.
        heartbeat: f64,
        /// The folder in which the agent makes a folder for the run, if the host does not have the run
        /// directory; `None` for the usual folder for temporary files.
        folder: Option<PathBuf>,
        /// The network by which programs of the host are reached; `None` for all networks.
        network: Option<HostNetwork>,
    },
    /// The agent takes no part in the run, for the given reason.
    Refused { text: String },
    /// A sign of life. The agent answers [`AgentReport::Heartbeat`].
    Heartbeat,
    /// A piece of a file, for a host without the run directory. The agent acknowledges the size.
    File(FilePiece),
    /// The manager has taken a piece of a file, of this size. `fault` says why it could not write the
    /// piece, if it could not.
    FileTaken { size: u64, fault: Option<String> },
    /// Start a program.
    Start(Box<ProgramOrder>),
    /// Send a signal to the processes of a program, by the program's number.
    Signal { id: u32, signal: Signal },
    /// Watch a process, and report the end.
    Watch { pid: u32 },
    /// Send a signal to a process that the guard has not started.
    SignalProcess { pid: u32, signal: Signal },
    /// Stop every process, until the order to resume. The manager is silent meanwhile.
    Pause,
    /// Let every stopped process go on.
    Resume,
    /// End all processes, and then end the agent.
    Finish,
}

/// A program to start on the host of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ProgramOrder {
    /// The number of the program.
    pub(crate) id: u32,
    /// The name of the instance.
    pub(crate) instance: String,
    /// The folder of the instance's process, in the folder `instances` of the run directory.
    pub(crate) folder: String,
    pub(crate) program: PlannedProgram,
    pub(crate) cores: Vec<u32>,
    /// Whether another program computes on the same cores at the same time.
    pub(crate) crowded: bool,
}

/// A report from an agent to the manager.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum AgentReport {
    /// The agent is ready: the first report.
    Ready(AgentHello),
    /// A sign of life.
    Heartbeat,
    /// A report of the agent's guard.
    Guard(GuardReport),
    /// A process is watched from now on.
    Watched { pid: u32 },
    /// A watched process has ended.
    Gone { pid: u32 },
    /// A piece of a file, from a host without the run directory. The manager acknowledges the size.
    File(FilePiece),
    /// The agent has taken a piece of a file, of this size.
    FileTaken { size: u64 },
    /// A file cannot be read, for the given reason.
    FileLost { text: String },
    /// The files of the programs are in this folder of the host until [`AgentReport::Complete`].
    FilesAt { folder: PathBuf },
    /// The manager has all files of the host.
    Complete,
    /// The agent ends its programs, and then itself.
    Leaving(LeavingReason),
}

/// Why an agent ends before the end of the run. Displayed as words behind "the agent".
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
pub(crate) enum LeavingReason {
    /// The agent has received a signal, of this name.
    #[error("was ended by {0}")]
    Signal(String),
    /// The agent has heard nothing of the manager for this time, in seconds.
    #[error("heard nothing of the manager for {0} s")]
    SilentManager(f64),
    /// The agent cannot go on, in the given way.
    #[error("{0}")]
    Trouble(String),
}

/// The facts about a host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct AgentHello {
    /// The name of the host in the description, or in the batch system.
    pub(crate) host: String,
    /// The system name of the host.
    pub(crate) system_name: String,
    /// The cores that the agent's process may use.
    pub(crate) cores: Vec<u32>,
    /// Whether the host has the run directory of the manager, at the same path.
    pub(crate) shares_files: bool,
    /// The release of titin.
    pub(crate) release: String,
}
