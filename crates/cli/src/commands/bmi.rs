//! `titin bmi`: the component for a model with the Basic Model Interface, described by the Python package.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Args;

use crate::python::{become_process, module};

/// Prints a component for a model with the Basic Model Interface, to paste: ports, types, units, grids
///
/// `titin bmi package.module:Class config.yaml`, or `titin bmi libmodel.so config.yaml`. The model is loaded and
/// initialized, and nothing else.
#[derive(Args)]
pub(crate) struct BmiCommand {
    /// package.module:Class, file.py:Class or libmodel.so[:register_bmi]
    model: OsString,
    /// The file for initialize; the places {setting} in it are filled in
    config: Option<OsString>,
    /// The unit of the model's times, if it tells none
    #[arg(long, value_name = "UNIT")]
    time_units: Option<String>,
    /// A value for a place of the configuration
    #[arg(long = "setting", value_name = "NAME=VALUE")]
    settings: Vec<String>,
    /// Print all that the model tells, as JSON
    #[arg(long)]
    json: bool,
}

impl BmiCommand {
    /// Becomes the Python process that describes the model.
    pub(crate) fn run(&self) -> ExitCode {
        let mut python = module("titin.bmi");
        python.arg("describe");
        // With "=", since a value may begin with a dash.
        python.args(
            self.time_units
                .iter()
                .map(|unit| format!("--time-units={unit}")),
        );
        python.args(self.settings.iter().map(|pair| format!("--setting={pair}")));
        python.args(self.json.then_some("--json"));
        become_process(python.arg("--").arg(&self.model).args(&self.config))
    }
}
