//! The events for the state machine, and the actions from it.

use std::fmt;
use std::time::Duration;

use titin_transport::LinkId;
use titin_wire::control::{Profile, ToManager, ToProgram};

use crate::host::{HostId, ProcessId};
use crate::plan::{InstanceId, PerInstance};

/// Something that has happened to the run.
#[derive(Debug, Clone)]
pub enum RunEvent {
    /// A program has opened a link, with proof of the run's secret.
    LinkOpened(LinkId),
    /// A link is lost, for the given reason.
    LinkLost(LinkId, String),
    /// A program has sent a message.
    MessageReceived(LinkId, Box<ToManager>),
    /// The agent of a host serves. The host has this system name.
    HostReady(HostId, String),
    /// Every instance has a host, on which its program is to be started.
    Placed(PerInstance<HostId>),
    /// The agent of a host has reported anything.
    HostHeard(HostId),
    /// The guard or the agent of a host has ended, or is cut off, in the given way. The session ends
    /// the programs of the manager's own host. The guard behind an agent ends the programs there.
    HostLost(HostId, String),
    /// The agent of a host could not be started, in the given way.
    AgentFailed(HostId, String),
    /// The programs of a host cannot run there, as its agent has told in the given words.
    HostUnfit(HostId, String),
    /// A guard has started an instance's process.
    ProcessStarted(InstanceId, ProcessId),
    /// An instance's program could not be started, for the given reason.
    StartFailed(InstanceId, String),
    /// The files of an instance could not be copied into the work directory, for the given reason.
    StagingFailed(InstanceId, String),
    /// An instance's program will not be started, because of [`RunAction::StopStarting`].
    StartSkipped(InstanceId),
    /// An instance's process has ended, with an exit.
    ProcessEnded(InstanceId, Exit),
    /// A process is watched from now on.
    ProcessWatched(ProcessId),
    /// A watched process has ended.
    ProcessGone(ProcessId),
    /// The user wants the run to end, and has sent the named signal.
    Interrupted(String),
    /// The manager cannot go on, for the given reason: for instance a full disk.
    ManagerFailed(String),
    /// The manager's process was stopped, or the host slept, for the given time.
    Suspended(Duration),
    /// Time has passed.
    Tick,
}

/// An action for the session.
#[derive(Debug, Clone)]
pub enum RunAction {
    /// Send a message to a program.
    Send(LinkId, ToProgram),
    /// Close a link.
    CloseLink(LinkId),
    /// Send a heartbeat to the agent of a host.
    HostHeartbeat(HostId),
    /// Close the link to the agent of a host.
    CloseHost(HostId),
    /// Tell the user that the run waits for the agents of these hosts.
    TellMissingHosts(Vec<HostId>),
    /// Ask the relay of this site about the line to a silent host, and tell the user.
    AskRelay(HostId),
    /// Have a guard start an instance's program.
    StartProgram(InstanceId),
    /// Start no more programs. The session reports each instance with a pending start as
    /// [`RunEvent::StartSkipped`].
    StopStarting,
    /// Have the guard of an instance's host send a signal to the instance's processes.
    Signal(InstanceId, Signal),
    /// Send a signal to a process that no guard has started.
    SignalProcess(ProcessId, Signal),
    /// Watch a process of this run, and report the end.
    WatchProcess(ProcessId),
    /// Write to the log, and show the line to the user.
    Record(LogRecord),
    /// Write to the log alone: the user reads the cause in the report.
    RecordCause(LogRecord),
    /// Write the counts of an instance to the profile.
    StoreProfile(Box<Profile>),
    /// The run is over. No action follows.
    Finish,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Exit {
    /// With an exit code.
    Code(i32),
    /// By a signal, perhaps with a core file.
    Signal(i32, bool),
}

impl Exit {
    /// Whether the process has ended well.
    pub fn is_success(self) -> bool {
        self == Exit::Code(0)
    }
}

impl fmt::Display for Exit {
    /// Writes the exit as a text behind the subject: "macro *ended with exit code 3*".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // The exit code of a shell after a signal has ended the command.
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
            Exit::Signal(number, core) => write_signal(f, *number, *core),
        }
    }
}

/// Writes that a signal has ended a program. `core` says whether a core file was written.
fn write_signal(f: &mut fmt::Formatter<'_>, number: i32, core: bool) -> fmt::Result {
    match signal_name(number) {
        Some(name) => write!(f, "was ended by {name}")?,
        None => write!(f, "was ended by signal {number}")?,
    }
    match (number, core) {
        (9, _) => write!(f, " (a kill -9, or the system was out of memory)"),
        (_, true) => write!(f, " (a core file was written)"),
        _ => Ok(()),
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

/// A signal from the manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Signal {
    /// SIGTERM, which a program can handle.
    Terminate,
    /// SIGKILL, which ends a program at once.
    Kill,
}

impl Signal {
    /// The signal in the system's form.
    pub(crate) fn number(self) -> rustix::process::Signal {
        match self {
            Signal::Terminate => rustix::process::Signal::TERM,
            Signal::Kill => rustix::process::Signal::KILL,
        }
    }
}

/// The importance of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// For the search for a mistake.
    Debug,
    /// An event of the run.
    Info,
    /// Something may be wrong.
    Warning,
    /// Something is wrong.
    Error,
}

impl Level {
    /// The level of a number in Python's `logging`.
    pub fn from_number(number: u8) -> Self {
        match number {
            0..20 => Level::Debug,
            20..30 => Level::Info,
            30..40 => Level::Warning,
            _ => Level::Error,
        }
    }

    /// The name of the level in the log.
    pub fn name(self) -> &'static str {
        match self {
            Level::Debug => "DEBUG",
            Level::Info => "INFO",
            Level::Warning => "WARNING",
            Level::Error => "ERROR",
        }
    }
}

/// A record in the log of the run.
#[derive(Debug, Clone)]
pub struct LogRecord {
    /// The importance.
    pub level: Level,
    /// The instance that logs the record; `None` for the manager.
    pub instance: Option<InstanceId>,
    /// Seconds since the Unix epoch; `None` for now.
    pub time: Option<f64>,
    /// The simulated time of the instance.
    pub simulated: Option<f64>,
    /// The text.
    pub text: String,
}

impl LogRecord {
    /// A record of the manager, now.
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
