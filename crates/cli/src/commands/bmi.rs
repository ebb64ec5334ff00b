//! `titin bmi`: the component for a model with the Basic Model Interface, described by the Python package.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Args;

use crate::python::{become_process, module};

/// Prints a component for a model with the Basic Model Interface, to paste: ports, types, units, grids
///
/// `titin bmi package.module:Class config.yaml`, or `titin bmi libmodel.so config.yaml`. The model is loaded and
/// initialized, and nothing else. `titin bmi --help` has the options.
#[derive(Args)]
#[command(disable_help_flag = true)]
pub(crate) struct BmiCommand {
    /// The model, its configuration, and options
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "MODEL CONFIG"
    )]
    words: Vec<OsString>,
}

impl BmiCommand {
    /// Becomes the Python process that describes the model.
    pub(crate) fn run(&self) -> ExitCode {
        become_process(module("titin.bmi").arg("describe").args(&self.words))
    }
}
