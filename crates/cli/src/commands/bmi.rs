//! `titin bmi`: the component for a model with the Basic Model Interface, described by the Python package.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

use clap::Args;
use titin_manager::launch::python;

use crate::terminal::complain;

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
        let titin = std::env::current_exe().ok();
        let active = std::env::var_os("VIRTUAL_ENV");
        let python = python(active.as_deref().map(Path::new), titin.as_deref());
        let mut command = Command::new(&python);
        command
            .args(["-m", "titin.bmi", "describe"])
            .args(&self.words);
        let error = command.exec();
        complain(format!("cannot start {}: {error}", python.display()))
    }
}
