//! The Python package, by whose modules some commands do their work.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

use titin_manager::launch::python;

use crate::terminal::complain;

/// The command that runs a module of the package, by the Python of the active environment, or of the environment that
/// has this command.
pub(crate) fn module(name: &str) -> Command {
    let active = std::env::var_os("VIRTUAL_ENV");
    let titin = std::env::current_exe().ok();
    let mut command = Command::new(python(active.as_deref().map(Path::new), titin.as_deref()));
    command.args(["-m", name]);
    command
}

/// Becomes the process of a command. Returns only if it cannot be started.
pub(crate) fn become_process(command: &mut Command) -> ExitCode {
    let error = command.exec();
    let program = command.get_program().display();
    complain(format!("cannot start {program}: {error}"))
}
