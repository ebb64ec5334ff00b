//! What happens to a run, and what is to be done about it: the two ends of the state machine.

use std::fmt;
use std::time::Duration;

use titin_transport::LinkId;
use titin_wire::control::{Profile, ToManager, ToProgram};

use crate::plan::InstanceId;

/// Something that has happened.
#[derive(Debug, Clone)]
pub enum RunEvent {
    /// A program has proved that it belongs to the run.
    LinkOpened(LinkId),
    /// A link is gone, and why.
    LinkLost(LinkId, String),
    /// A program says something.
    MessageReceived(LinkId, Box<ToManager>),
    /// The guard has started an instance's process.
    ProcessStarted(InstanceId, u32),
    /// It could not be started, and why.
    StartFailed(InstanceId, String),
    /// The files that it needs could not be put into its work directory, and why.
    StagingFailed(InstanceId, String),
    /// It will not be started, as was asked for by [`RunAction::StopStarting`].
    StartSkipped(InstanceId),
    /// An instance's process has ended.
    ProcessEnded(InstanceId, Exit),
    /// A process that was to be watched is.
    ProcessWatched(u32),
    /// A process that was watched has ended.
    ProcessGone(u32),
    /// The guard has ended, and how. Its programs are orphans until they are ended too.
    GuardLost(String),
    /// The user wants the run to end: the name of the signal.
    Interrupted(String),
    /// The manager itself cannot go on, and why: a full disk, for instance.
    ManagerFailed(String),
    /// The manager itself could do nothing for so long: somebody had stopped it, or the host slept.
    Suspended(Duration),
    /// Time has passed.
    Tick,
}

/// Something to do.
#[derive(Debug, Clone)]
pub enum RunAction {
    /// Send a message.
    Send(LinkId, ToProgram),
    /// Give up a link.
    CloseLink(LinkId),
    /// Have the guard start an instance's program.
    StartProgram(InstanceId),
    /// Start nothing more; each instance that was to be started is reported as [`RunEvent::StartSkipped`].
    StopStarting,
    /// Have the guard send a signal to an instance's processes.
    Signal(InstanceId, Signal),
    /// Send a signal to a process that the guard did not start.
    SignalHost(u32, Signal),
    /// Report when this process ends, if it is one of this host and of this run.
    WatchProcess(u32),
    /// Write to the log, and show it.
    Record(LogRecord),
    /// Write to the log alone: the report at the end of the run shows it.
    RecordCause(LogRecord),
    /// Keep what an instance counted.
    StoreProfile(Box<Profile>),
    /// The run is over; nothing more will be asked for.
    Finish,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Exit {
    /// With this exit code.
    Code(i32),
    /// By this signal, perhaps leaving a core file.
    Signal(i32, bool),
}

impl Exit {
    /// Whether the process says that all went well.
    pub fn is_success(self) -> bool {
        self == Exit::Code(0)
    }
}

impl fmt::Display for Exit {
    /// Follows the subject: "macro *ended with exit code 3*".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // What a shell reports for a command that a signal ended.
            Exit::Code(code @ 129..=192) if signal_name(code - 128).is_some() => {
                write!(
                    f,
                    "ended with exit code {code} ({} in a shell)",
                    signal_name(code - 128).unwrap_or("")
                )
            }
            Exit::Code(127) => {
                write!(
                    f,
                    "ended with exit code 127 (a command, or a shared library, was not found)"
                )
            }
            Exit::Code(code) => write!(f, "ended with exit code {code}"),
            Exit::Signal(number, core) => {
                match signal_name(*number) {
                    Some(name) => write!(f, "was ended by {name}")?,
                    None => write!(f, "was ended by signal {number}")?,
                }
                match (*number, core) {
                    (9, _) => write!(f, " (a kill -9, or the system was out of memory)"),
                    (_, true) => write!(f, " (a core file was written)"),
                    _ => Ok(()),
                }
            }
        }
    }
}

/// The name of a Linux signal.
pub fn signal_name(number: i32) -> Option<&'static str> {
    const NAMES: [&str; 31] = [
        "SIGHUP",
        "SIGINT",
        "SIGQUIT",
        "SIGILL",
        "SIGTRAP",
        "SIGABRT",
        "SIGBUS",
        "SIGFPE",
        "SIGKILL",
        "SIGUSR1",
        "SIGSEGV",
        "SIGUSR2",
        "SIGPIPE",
        "SIGALRM",
        "SIGTERM",
        "SIGSTKFLT",
        "SIGCHLD",
        "SIGCONT",
        "SIGSTOP",
        "SIGTSTP",
        "SIGTTIN",
        "SIGTTOU",
        "SIGURG",
        "SIGXCPU",
        "SIGXFSZ",
        "SIGVTALRM",
        "SIGPROF",
        "SIGWINCH",
        "SIGIO",
        "SIGPWR",
        "SIGSYS",
    ];
    NAMES
        .get(usize::try_from(number).ok()?.checked_sub(1)?)
        .copied()
}

/// A signal that the manager sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Signal {
    /// SIGTERM: please end.
    Terminate,
    /// SIGKILL.
    Kill,
}

/// How much a record matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// For those who look for a mistake.
    Debug,
    /// What happens.
    Info,
    /// What may be wrong.
    Warning,
    /// What is wrong.
    Error,
}

impl Level {
    /// The level with this number in Python's `logging`.
    pub fn from_number(number: u8) -> Self {
        match number {
            0..20 => Level::Debug,
            20..30 => Level::Info,
            30..40 => Level::Warning,
            _ => Level::Error,
        }
    }

    /// As it is written in the log.
    pub fn name(self) -> &'static str {
        match self {
            Level::Debug => "DEBUG",
            Level::Info => "INFO",
            Level::Warning => "WARNING",
            Level::Error => "ERROR",
        }
    }
}

/// A line of the run's log.
#[derive(Debug, Clone)]
pub struct LogRecord {
    /// How much it matters.
    pub level: Level,
    /// The instance that says it; the manager without.
    pub instance: Option<InstanceId>,
    /// Seconds since the Unix epoch where the instance said so; else now.
    pub time: Option<f64>,
    /// Simulated time.
    pub simulated: Option<f64>,
    /// What it says.
    pub text: String,
}

impl LogRecord {
    /// What the manager itself says, now.
    pub fn of_manager(level: Level, text: String) -> Self {
        LogRecord {
            level,
            instance: None,
            time: None,
            simulated: None,
            text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exits_are_told_in_words() {
        assert_eq!(Exit::Code(3).to_string(), "ended with exit code 3");
        assert_eq!(
            Exit::Code(137).to_string(),
            "ended with exit code 137 (SIGKILL in a shell)"
        );
        assert_eq!(
            Exit::Signal(6, true).to_string(),
            "was ended by SIGABRT (a core file was written)"
        );
        assert!(Exit::Signal(9, false).to_string().contains("out of memory"));
        assert_eq!(
            Exit::Signal(40, false).to_string(),
            "was ended by signal 40"
        );
        assert_eq!(signal_name(0), None);
        assert_eq!(signal_name(15), Some("SIGTERM"));
    }
}
