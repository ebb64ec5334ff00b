//! `titin guard`: started by the manager, never by people.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use titin_manager::guard;

use crate::terminal::complain;

/// Starts the programs of a run and leaves none behind
#[derive(Args)]
pub(crate) struct GuardCommand {
    /// Become the program given after the options; PID is the guard that started this process
    #[arg(long, value_name = "PID")]
    run: Option<u32>,
    /// Leave the folders for messages, which the connection file names
    #[arg(long)]
    keep_messages: bool,
    /// The connection file and the meeting place to remove at the end, and a folder to remove with
    /// the manager; or the program and the arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

impl GuardCommand {
    pub(crate) fn run(self) -> ExitCode {
        if let Some(guard) = self.run {
            return guard::shim(guard, self.words.into_iter());
        }
        let words: Vec<&Path> = self.words.iter().map(Path::new).collect();
        let [connection, meeting_place, scratch @ ..] = &words[..] else {
            return complain("the guard is started by the manager, not by hand");
        };
        match guard::serve(
            connection,
            meeting_place,
            scratch.first().copied(),
            !self.keep_messages,
        ) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => complain(format!("the guard cannot work: {error}")),
        }
    }
}
