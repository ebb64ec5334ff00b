//! `titin host`: the process of hosted instances, started by the manager as the program of the first of them.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::{Args, ValueEnum};

use super::config::prefix;
use crate::terminal::complain;

/// Becomes the process that runs functions as instances
#[derive(Args)]
pub(crate) struct Host {
    /// The language of the functions
    language: Language,
    /// What to run
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
            Language::Python => {
                let mut python = Command::new(python());
                python.args(["-m", "titin.host"]);
                python
            }
            Language::C => match prefix() {
                Ok(prefix) => Command::new(prefix.join("lib/titin-host")),
                Err(why) => return complain(&why),
            },
        };
        // It stays this process, which the guard has started.
        let error = command.arg(&self.file).exec();
        complain(&format!("cannot start {}: {error}", command.get_program().display()))
    }
}

/// The environment that is active, else the one that this command belongs to, else any.
fn python() -> PathBuf {
    let active = std::env::var_os("VIRTUAL_ENV").map(|venv| Path::new(&venv).join("bin"));
    let own = std::env::current_exe().ok().and_then(|command| Some(command.parent()?.to_path_buf()));
    let found = active.into_iter().chain(own).map(|folder| folder.join("python3")).find(|path| path.exists());
    found.unwrap_or_else(|| "python3".into())
}
