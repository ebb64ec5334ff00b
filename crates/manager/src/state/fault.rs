//! How an instance failed, in types and in words.

use std::fmt;
use std::time::Duration;

use crate::event::Exit;

/// How an instance failed. Printed, the text follows the instance's name.
#[derive(Debug, Clone, PartialEq)]
pub enum Fault {
    /// The instance's program could not be started.
    StartFailed(String),
    /// The files to stage could not be copied into the instance's work directory.
    StagingFailed(String),
    /// The instance's process ended before the instance had joined.
    BeforeJoining(Exit),
    /// The instance's process ended before the instance was done.
    WithoutClosing(Exit),
    /// The instance's process ended badly after the instance was done.
    AfterDone(Exit),
    /// The process, started by the user, ended before the instance was done.
    ProcessGone,
    /// The instance reported an error.
    Reported(String),
    /// The instance reported an error because peers had ended something.
    ReportedAfterEnd {
        /// The error.
        text: String,
        /// The names of the peers.
        by: String,
        /// Whether all the named peers are done.
        well: bool,
    },
    /// The instance has left out a message, so another instance has failed.
    OmittedMessage(String),
    /// The registration of the instance was refused.
    Refused(String),
    /// The link was lost, and the process lives or is out of sight.
    LinkLost(String),
    /// The instance was silent for the given time.
    Silent(Duration),
    /// The instance did not join within the given time.
    Late(Duration),
    /// The manager ended the instance with the run.
    Stopped,
    /// The instance failed after the refusal of another process. Perhaps the refusal is the reason.
    AfterRefusal {
        /// The process, and the reason for the refusal.
        text: String,
        /// How the instance failed.
        fault: Box<Fault>,
    },
    /// The instance failed after the end of a rank's process. Perhaps the end is the reason.
    AfterRank {
        /// The rank.
        rank: u32,
        /// The process of the rank.
        pid: u32,
        /// How the instance failed.
        fault: Box<Fault>,
    },
}

impl Fault {
    /// The fault without the circumstances.
    pub fn underlying(&self) -> &Fault {
        match self {
            Fault::AfterRank { fault, .. } | Fault::AfterRefusal { fault, .. } => {
                fault.underlying()
            }
            fault => fault,
        }
    }

    /// Whether a process has ended badly, or in an unknown way.
    pub(super) fn is_bad_exit(&self) -> bool {
        match self {
            Fault::BeforeJoining(exit) | Fault::WithoutClosing(exit) | Fault::AfterDone(exit) => {
                !exit.is_success()
            }
            Fault::ProcessGone => true,
            _ => false,
        }
    }

    /// Whether a missing file may be the reason.
    pub fn may_miss_a_file(&self) -> bool {
        match self.underlying() {
            Fault::BeforeJoining(exit) | Fault::WithoutClosing(exit) => {
                matches!(exit, Exit::Code(code) if *code != 0)
            }
            Fault::Reported(_) => true,
            _ => false,
        }
    }

    /// Whether the process has failed, with all instances in the process.
    pub fn is_of_process(&self) -> bool {
        !matches!(
            self.underlying(),
            Fault::Reported(_)
                | Fault::ReportedAfterEnd { .. }
                | Fault::OmittedMessage(_)
                | Fault::Refused(_)
                | Fault::Late(_)
                | Fault::Stopped
        )
    }

    /// How a host process failed. Printed, the text follows the name of the host process.
    pub(super) fn describe_for_host(&self) -> String {
        match self {
            Fault::BeforeJoining(exit) => {
                format!("{exit} before all of its instances had joined the run")
            }
            Fault::WithoutClosing(exit @ Exit::Code(0)) => {
                format!(
                    "{exit}, but without closing all of its instances, so their peers were left waiting"
                )
            }
            Fault::AfterDone(exit) => {
                format!("{exit} after its instances had finished their coupling")
            }
            Fault::ProcessGone => {
                "ended (how is not known) without closing all of its instances".to_owned()
            }
            Fault::AfterRefusal { text, fault } => {
                format!("{}, after {text}", fault.describe_for_host())
            }
            other => other.to_string(),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::StartFailed(why) | Fault::StagingFailed(why) => {
                write!(f, "could not be started: {why}")
            }
            Fault::Reported(text) => write!(f, "reported an error: {text}"),
            Fault::ReportedAfterEnd { text, by, well } => {
                let end = match well {
                    true => "ended well, and nothing else had failed",
                    false => "had not ended yet, and has reported no failure",
                };
                write!(f, "reported an error: {text}\n({by} {end})")
            }
            Fault::OmittedMessage(text) => write!(f, "left its peers waiting: {text}"),
            Fault::Refused(text) => write!(f, "was not let in: {text}"),
            Fault::LinkLost(why) => write!(f, "lost its link to the manager: {why}"),
            Fault::Silent(time) => write!(f, "was silent for {:.1} s", time.as_secs_f64()),
            Fault::Late(time) => write!(
                f,
                "did not join the run within {} s: does its program open an instance? The time can be set with \
                 `titin: {{register_timeout: ...}}`",
                time.as_secs_f64()
            ),
            Fault::Stopped => write!(f, "was made to end"),
            end_of_process => end_of_process.write_end(f),
        }
    }
}

impl Fault {
    /// Writes how a process ended.
    fn write_end(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::BeforeJoining(exit) => write!(f, "{exit} before it had joined the run"),
            Fault::WithoutClosing(exit @ Exit::Code(0)) => write!(
                f,
                "{exit}, but without closing its instance, so its peers were left waiting"
            ),
            Fault::WithoutClosing(exit) => write!(f, "{exit}"),
            Fault::AfterDone(exit) => write!(f, "{exit} after it had finished its coupling"),
            Fault::AfterRefusal { text, fault } => write!(f, "{fault}, after {text}"),
            Fault::AfterRank { rank, pid, fault } if **fault == Fault::ProcessGone => write!(
                f,
                "ended without closing its instance, rank {rank} (process {pid}) first; how is not known"
            ),
            Fault::AfterRank { rank, pid, fault } => write!(
                f,
                "{fault}; of its ranks, rank {rank} (process {pid}) ended first"
            ),
            _ => write!(f, "ended (how is not known) without closing its instance"),
        }
    }
}
