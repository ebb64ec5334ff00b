//! `titin convert`: a description from the CxA file of MUSCLE 2, by the Python package.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

use clap::Args;
use titin_manager::launch::python;

use crate::terminal::complain;

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
        let titin = std::env::current_exe().ok();
        let active = std::env::var_os("VIRTUAL_ENV");
        let python = python(active.as_deref().map(Path::new), titin.as_deref());
        let mut command = Command::new(&python);
        command.args(["-m", "titin.cxa"]).args(&self.words);
        let error = command.exec();
        complain(format!("cannot start {}: {error}", python.display()))
    }
}
