//! What each service of this program begins with: threads, the log, and room for descriptors.

use std::io;
use std::time::Duration;

use titin_os::descriptors;
use tokio::runtime::{Builder, Runtime};

/// How long no connections are accepted when the system has no descriptors for them.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The threads of a service. Starts the log, and lets the process have many connections.
///
/// # Errors
/// If the system refuses descriptors or threads.
pub(crate) fn start() -> io::Result<Runtime> {
    let runtime = Builder::new_multi_thread().enable_all().build()?;
    // Lines for people on a terminal, and for `journalctl` and `grep` elsewhere.
    let _ = tracing_subscriber::fmt()
        .with_writer(|| LogOutput)
        .log_internal_errors(false)
        .with_target(false)
        .with_ansi(io::IsTerminal::is_terminal(&io::stderr()))
        .try_init();
    descriptors::allow_many();
    Ok(runtime)
}

/// Standard error, for the log. A service goes on when a line cannot be written, because a disk is full or nobody
/// reads a pipe any more, and drops the line.
struct LogOutput;

impl io::Write for LogOutput {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let _ = io::stderr().write_all(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
