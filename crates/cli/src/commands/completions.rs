//! `titin completions`: the completion of the command for a shell.

use std::process::ExitCode;

use clap::Args;
use clap_complete::Shell;

use crate::terminal::{answer, complain};

/// Prints the completion of `titin` for a shell: subcommands, options, values, files
///
/// bash: `titin completions bash > ~/.local/share/bash-completion/completions/titin`. zsh: put `_titin` into a directory of
/// `fpath`. fish: `titin completions fish > ~/.config/fish/completions/titin.fish`.
#[derive(Args)]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_parser = ["bash", "fish", "zsh"])]
    shell: String,
}

impl Completions {
    pub(crate) fn run(&self, mut command: clap::Command) -> ExitCode {
        let shell = match &*self.shell {
            "bash" => Shell::Bash,
            "fish" => Shell::Fish,
            _ => Shell::Zsh,
        };
        let mut text = Vec::new();
        clap_complete::generate(shell, &mut command, "titin", &mut text);
        match String::from_utf8(text) {
            Ok(text) => answer(&text),
            Err(error) => complain(error),
        }
    }
}
