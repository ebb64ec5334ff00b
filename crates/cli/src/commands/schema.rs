//! `titin schema`: the schema of descriptions, for editors.

use std::process::ExitCode;

use clap::Args;

use crate::terminal::answer;

/// Prints the JSON Schema of yMMSL with titin's keys, for editors
///
/// With the YAML language server: `titin schema > ymmsl.schema.json`, and the line
/// `# yaml-language-server: $schema=ymmsl.schema.json` at the top of a description. `titin check` finds more.
#[derive(Args)]
pub(crate) struct Schema;

impl Schema {
    pub(crate) fn run(&self) -> ExitCode {
        answer(titin_model::SCHEMA)
    }
}
