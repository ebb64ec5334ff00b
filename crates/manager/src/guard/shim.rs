//! The last step before a program: in its own process, but still our code.
//!
//! The program gets a process group of its own, by which it can be signalled with its children, and is killed by the
//! system should the guard die. Both survive `exec`. It shares the guard's session: one of its own would take
//! milliseconds to make, and where the system schedules sessions as groups, `sched_yield` would not let the other
//! instances run.

use std::ffi::OsString;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use rustix::process::{Signal, getppid, set_parent_process_death_signal, setpgid};

/// Becomes the program that the arguments name, after the guard's process id. Returns only if that fails.
pub fn shim(guard: u32, mut command: impl Iterator<Item = OsString>) -> ExitCode {
    let _ = setpgid(None, None);
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    // The guard may have died before the system was asked to tell.
    if getppid().is_none_or(|parent| parent.as_raw_nonzero().get().unsigned_abs() != guard) {
        return ExitCode::from(1);
    }
    let Some(program) = command.next() else {
        return ExitCode::from(2);
    };
    let error = Command::new(&program).args(command).exec();
    let _ = writeln!(
        std::io::stderr(),
        "titin: cannot run {}: {error}",
        program.display()
    );
    ExitCode::from(127)
}
