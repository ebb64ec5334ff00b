//! How an instance failed, in types and in words.

use std::fmt;
use std::time::Duration;

use crate::event::Exit;

/// Why an instance counts as failed. Printed, it follows the instance's name.
#[derive(Debug, Clone, PartialEq)]
pub enum Fault {
    /// Its program could not be started.
    StartFailed(String),
    /// The files that it needs could not be put into its work directory.
    StagingFailed(String),
    /// Its process ended before it had joined.
    BeforeJoining(Exit),
    /// Its process ended while it took part.
    WithoutClosing(Exit),
    /// Its process ended badly after it was done.
    AfterDone(Exit),
    /// Its process, which is not ours, ended while it took part.
    ProcessGone,
    /// It said so itself.
    Reported(String),
    /// It said so itself, of what others have ended.
    ReportedAfterEnd {
        /// What it said.
        text: String,
        /// Who has ended it.
        by: String,
        /// Whether all of them are done, in good order.
        well: bool,
    },
    /// It has left out a message, for want of which another one has failed.
    OmittedMessage(String),
    /// It was not let in.
    Refused(String),
    /// Its link was lost, though its process lives or cannot be seen.
    LinkLost(String),
    /// Nothing was heard of it for this long.
    Silent(Duration),
    /// It did not join within this time.
    Late(Duration),
    /// It was made to end with the run.
    Stopped,
    /// This, after one of its processes was not let in, which may be why.
    AfterRefusal {
        /// Which one, and why.
        text: String,
        /// How the instance failed.
        fault: Box<Fault>,
    },
    /// This, after the process of one of its ranks had ended, which may be why.
    AfterRank {
        /// Which rank.
        rank: u32,
        /// Its process.
        pid: u32,
        /// How the instance failed.
        fault: Box<Fault>,
    },
}

impl Fault {
    /// How the instance failed, whichever of its processes was first.
    pub fn underlying(&self) -> &Fault {
        match self {
            Fault::AfterRank { fault, .. } | Fault::AfterRefusal { fault, .. } => {
                fault.underlying()
            }
            fault => fault,
        }
    }

    /// Whether a process has not ended well.
    pub(super) fn is_bad_exit(&self) -> bool {
        match self {
            Fault::BeforeJoining(exit) | Fault::WithoutClosing(exit) | Fault::AfterDone(exit) => {
                !exit.is_success()
            }
            Fault::ProcessGone => true,
            _ => false,
        }
    }

    /// Whether a file that it did not find may be the reason.
    pub fn may_miss_a_file(&self) -> bool {
        match self.underlying() {
            Fault::BeforeJoining(exit) | Fault::WithoutClosing(exit) => {
                matches!(exit, Exit::Code(code) if *code != 0)
            }
            Fault::Reported(_) => true,
            _ => false,
        }
    }

    /// Whether a process has failed, with every instance that it runs.
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

    /// The same, of the process of a host. Printed, it follows the host's name.
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
            Fault::BeforeJoining(exit) => write!(f, "{exit} before it had joined the run"),
            Fault::WithoutClosing(exit @ Exit::Code(0)) => {
                write!(
                    f,
                    "{exit}, but without closing its instance, so its peers were left waiting"
                )
            }
            Fault::WithoutClosing(exit) => write!(f, "{exit}"),
            Fault::AfterDone(exit) => write!(f, "{exit} after it had finished its coupling"),
            Fault::ProcessGone => {
                write!(f, "ended (how is not known) without closing its instance")
            }
            Fault::Reported(text) => write!(f, "reported an error: {text}"),
            Fault::ReportedAfterEnd {
                text,
                by,
                well: true,
            } => {
                write!(
                    f,
                    "reported an error: {text}\n({by} ended well, and nothing else had failed)"
                )
            }
            Fault::ReportedAfterEnd {
                text,
                by,
                well: false,
            } => {
                write!(
                    f,
                    "reported an error: {text}\n({by} had not ended yet, and has reported no failure)"
                )
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
            Fault::AfterRefusal { text, fault } => write!(f, "{fault}, after {text}"),
            Fault::AfterRank { rank, pid, fault } if **fault == Fault::ProcessGone => {
                write!(
                    f,
                    "ended without closing its instance, rank {rank} (process {pid}) first; how is not known"
                )
            }
            Fault::AfterRank { rank, pid, fault } => {
                write!(
                    f,
                    "{fault}; of its ranks, rank {rank} (process {pid}) ended first"
                )
            }
        }
    }
}
