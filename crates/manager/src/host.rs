//! The hosts of a run, and processes on hosts.

use serde::{Deserialize, Serialize};

/// A host of a run: its place in the list of hosts.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct HostId(pub u32);

impl HostId {
    /// The manager's host.
    pub const MANAGER: HostId = HostId(0);

    /// The further host at a place of the list of further hosts.
    pub fn further(place: usize) -> Self {
        HostId(place as u32 + 1)
    }

    /// The place in the list of further hosts; `None` for the manager's host.
    pub fn place(self) -> Option<usize> {
        self.index().checked_sub(1)
    }

    /// The place in the list of all hosts.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A process on a host of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessId {
    /// The host.
    pub host: HostId,
    /// The process number on the host.
    pub pid: u32,
}

impl ProcessId {
    /// A process on the manager's own host.
    pub fn here(pid: u32) -> Self {
        ProcessId {
            host: HostId::MANAGER,
            pid,
        }
    }
}
