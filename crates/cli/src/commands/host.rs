//! `titin host`: the process of hosted instances. The manager starts this program as the program of
//! the first hosted instance.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use clap::{Args, ValueEnum};

use super::config::prefix_with;
use crate::python::{become_process, module};
use crate::terminal::complain;

/// The program of functions in shared libraries, in the directory of an installation.
const PROGRAM: &str = "lib/titin-host";

/// Becomes the process that runs functions as instances
#[derive(Args)]
pub(crate) struct Host {
    /// The language of the functions
    language: Language,
    /// The file with the functions
    file: PathBuf,
}

#[derive(Clone, Copy, ValueEnum)]
enum Language {
    C,
    Python,
}

impl Host {
    pub(crate) fn run(&self) -> ExitCode {
        let mut command = match self.language {
            Language::Python => module("titin.host"),
            Language::C => match prefix_with(PROGRAM) {
                Ok(prefix) => Command::new(prefix.join(PROGRAM)),
                Err(error) => return complain(error),
            },
        };
        // The guard watches this process, so the program must replace this process.
        become_process(command.arg(&self.file))
    }
}
