//! The `titin` command: flags and output, nothing else. One file in `commands` per word.

#![forbid(unsafe_code)]

mod commands;
mod sources;
mod terminal;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Couples simulation codes.
#[derive(Parser)]
#[command(
    name = "titin",
    version,
    max_term_width = 100,
    subcommand_required = true,
    arg_required_else_help = true
)]
struct Titin {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Check(commands::check::Check),
    Config(commands::config::Config),
}

fn main() -> ExitCode {
    match Titin::parse().command {
        Command::Check(check) => check.run(),
        Command::Config(config) => config.run(),
    }
}
