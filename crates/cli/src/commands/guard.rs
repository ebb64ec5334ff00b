//! `titin guard`: started by the manager, never by people.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use titin_manager::guard::{self, Leftovers};

use crate::terminal::complain;

/// Starts the programs of a run and leaves none behind
#[derive(Parser)]
#[command(name = "titin guard")]
pub(crate) struct GuardCommand {
    /// Become the program given after the options; PID is the guard that started this process
    #[arg(long, value_name = "PID")]
    run: Option<u32>,
    /// The connection file to remove at the end, with the folders for messages that it names
    #[arg(long, value_name = "FILE")]
    connection: Option<PathBuf>,
    /// A folder to remove at the end, and a folder to remove if the manager is gone; or the program and
    /// the arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

impl GuardCommand {
    pub(crate) fn run(self) -> ExitCode {
        if let Some(guard) = self.run {
            return guard::shim(guard, self.words.into_iter());
        }
        let words: Vec<&Path> = self.words.iter().map(Path::new).collect();
        let [own, shared @ ..] = &words[..] else {
            return complain("the guard is started by the manager, not by hand");
        };
        let leftovers = Leftovers {
            connection: self.connection.as_deref(),
            own,
            shared: shared.first().copied(),
        };
        match guard::serve(&leftovers) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => complain(format!("the guard cannot work: {error}")),
        }
    }
}
