//! `titin component`: a component that comes with titin, started by the manager as the program of
//! an instance.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::terminal::complain;

/// Takes part in a run as a component that comes with titin
#[derive(Args)]
pub(crate) struct ComponentCommand {
    /// The component's short name: `source` for the implementation `titin.source`
    name: String,
    /// Where to look for files to read, after the work directory
    #[arg(long = "folder", value_name = "DIR")]
    folders: Vec<PathBuf>,
}

impl ComponentCommand {
    pub(crate) fn run(self) -> ExitCode {
        match titin_components::run(&self.name, &self.folders) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => complain(error),
        }
    }
}
