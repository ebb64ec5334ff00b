//! The state of a run, as the manager tells an observer. An observer has the secret of the run, and takes no
//! part in it.

use serde::{Deserialize, Serialize};

/// A run at one time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ObservedRun {
    /// The model.
    pub model: String,
    /// The system name of the manager's host.
    pub host: String,
    /// Seconds since the run has begun.
    pub seconds: f64,
    /// Why the run has failed, on one line. The run still ends its programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// The instances, in the order of the description.
    pub instances: Vec<ObservedInstance>,
}

/// An instance at one time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ObservedInstance {
    /// The name as users write it.
    pub name: String,
    /// The activity in a word: "starting", "awaited", "running", "waiting", "done" or "failed".
    pub state: String,
    /// The simulated time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub simulated: Option<f64>,
    /// The end of simulated time, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<f64>,
    /// Messages sent so far.
    pub messages: u64,
    /// Payload bytes sent so far.
    pub bytes: u64,
    /// The process; of a parallel program, that of rank 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<ProcessPlace>,
    /// The reason for the wait, or how the process has ended, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// What the instance waits for: the first few messages or rooms, any of which would end the wait.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<AwaitedPort>,
}

/// A process of the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProcessPlace {
    /// The name of the host; `None` for the manager's host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The process id on the host.
    pub pid: u32,
}

/// A message or room that an instance waits for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AwaitedPort {
    /// The port of the waiting instance, with the slot.
    pub port: String,
    /// The instance at the other end.
    pub peer: String,
    /// The port at the other end.
    pub peer_port: String,
    /// Whether the instance waits for room to send; else for a message.
    pub sends: bool,
}
