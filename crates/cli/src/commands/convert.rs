//! `titin convert`: a description from the CxA file of MUSCLE 2, by the Python package.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Args;

use crate::python::{become_process, module};

/// Makes a description from a CxA file of MUSCLE 2
///
/// `titin convert model.cxa.rb -o model.ymmsl`. The file is a script: it is run by `ruby`. `titin convert --help` has the
/// options.
#[derive(Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Convert {
    /// The CxA file, and options
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "FILE"
    )]
    words: Vec<OsString>,
}

impl Convert {
    /// Becomes the Python process that converts the file.
    pub(crate) fn run(&self) -> ExitCode {
        become_process(module("titin.cxa").args(&self.words))
    }
}
