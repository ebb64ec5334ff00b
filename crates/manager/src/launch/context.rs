//! The surroundings of a program at the start.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::plan::{BaseEnv, PlannedProgram};
use crate::slurm::JobPart;

/// The surroundings of a program at the start.
#[derive(Debug, Clone)]
pub struct LaunchContext<'a> {
    /// The environment of the process that prepares the start: the manager, or the agent of a host.
    pub env: &'a BTreeMap<String, String>,
    /// The connection file.
    pub connection: &'a Path,
    /// The path of the command `titin`, for titin's own components.
    pub titin: &'a OsStr,
    /// The instance's directory, with its `workdir`.
    pub directory: &'a Path,
    /// The cores of the program.
    pub cores: &'a [u32],
    /// Whether another program computes on the same cores at the same time.
    pub crowded: bool,
    /// A temporary folder of this host, removed at the end of the run.
    pub temporary: Option<&'a Path>,
    /// The shares of the program in the parts of a heterogeneous job; empty outside of such a job.
    pub job_parts: &'a [JobPart],
}

impl LaunchContext<'_> {
    /// Whether that process runs in a job of Slurm.
    pub(super) fn is_in_slurm(&self) -> bool {
        self.env.contains_key("SLURM_JOB_ID")
    }

    /// Whether only a shell can prepare the environment of a program: for modules or a login.
    pub(super) fn needs_shell(&self, program: &PlannedProgram) -> bool {
        let loaded = self.env.get("LOADEDMODULES");
        !program.modules.is_empty()
            || program.base == BaseEnv::Login
            || program.base == BaseEnv::Clean && loaded.is_some_and(|loaded| !loaded.is_empty())
    }

    /// A variable's value in the description, or else in the environment.
    pub(super) fn given<'a>(&'a self, name: &str, program: &'a PlannedProgram) -> Option<&'a str> {
        let own = program.env.iter().find(|(own, _)| own == name);
        let value = own.map(|(_, value)| value);
        value.or_else(|| self.env.get(name)).map(String::as_str)
    }
}

/// The full path of a path relative to the folder of the program's file.
pub(super) fn beside_description(path: &str, program: &PlannedProgram) -> PathBuf {
    program.folder.join(path).components().collect()
}
