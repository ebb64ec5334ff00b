//! The last step before a program runs: titin's code in the process that becomes the program.
//!
//! The process gets its own process group, so the guard can signal the program with its children.
//! The system kills the process if the guard dies. Group and death signal survive `exec`. The
//! process stays in the guard's session. A new session would take milliseconds, and where the
//! system schedules sessions as groups, `sched_yield` would not let other instances run.

use std::ffi::OsString;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use rustix::process::{Signal, getppid, set_parent_process_death_signal, setpgid};

/// Becomes the program named by `command`. `guard` is the guard's process. Returns only if the
/// program cannot be run.
pub fn shim(guard: u32, mut command: impl Iterator<Item = OsString>) -> ExitCode {
    let _ = setpgid(None, None);
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    // The guard may have died before the system was asked to report its death.
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
