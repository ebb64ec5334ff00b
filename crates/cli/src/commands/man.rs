//! `titin man`: the manual pages of the command, one for each subcommand.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use crate::terminal::complain;

/// Writes the manual pages of `titin` and its subcommands into a directory
///
/// The wheel has them in `share/man`, where `man titin-run` finds them if the environment's `bin` is in `PATH`.
#[derive(Args)]
pub(crate) struct Man {
    /// The directory; it is made if it is not there
    directory: PathBuf,
}

impl Man {
    pub(crate) fn run(&self, command: clap::Command) -> ExitCode {
        match write(command, &self.directory) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => complain(format!(
                "the manual pages cannot be written to {}: {error}",
                self.directory.display()
            )),
        }
    }
}

fn write(command: clap::Command, directory: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(directory)?;
    clap_mangen::generate_to(command, directory)
}
