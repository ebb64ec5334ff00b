//! One instance in the view of the manager.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use titin_transport::LinkId;
use titin_wire::control::Progress;
use titin_wire::ranks::RankProcess;
use titin_wire::{Address, EndpointId};

use super::fault::Fault;
use crate::event::{Exit, Signal};
use crate::host::ProcessId;
use crate::plan::{InstanceId, StartMode};

/// How many of an instance's last log lines the manager keeps for the report.
const RECENT: usize = 10;

/// The knowledge about one instance.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) process: InstanceProcess,
    pub(super) membership: Membership,
    /// The time of the order to start; the beginning of the run if the user starts the program.
    pub(super) waiting_since: Duration,
    /// The process of the instance, if the process is on a host of the run.
    pub(super) known_process: Option<ProcessId>,
    /// Whether the known process is watched, because no guard has started the process.
    pub(super) watched: bool,
    /// Whether the known process was watched and has ended.
    pub(super) watched_process_gone: bool,
    /// The processes of the ranks from 1 on, if the program is parallel.
    pub(super) ranks: Vec<RankProcess>,
    /// The first rank with an ended process, rank 0 included: the number and the process.
    pub(super) first_rank_gone: Option<(u32, u32)>,
    /// A process that was refused as this instance, and why, in words. A launcher may end the
    /// joined process because of the refusal.
    pub(super) refused_process: Option<String>,
    /// The error that the instance reported, and the origin of the error.
    pub(super) reported_error: Option<(String, ErrorOrigin)>,
    /// The messages that the instance left out.
    pub(super) omitted_messages: Vec<OmittedMessage>,
    /// A failure, unless another report explains the signs in time.
    pub(super) doubt: Option<Doubt>,
    /// How the instance failed: first, or as a consequence.
    pub(super) fault: Option<Fault>,
    /// Whether the manager has ended the instance.
    pub(super) stopped: bool,
    /// How often the program was started again.
    pub(super) restarts: u32,
    /// The number of the attempt for the peers: how often the program was started again after it had joined.
    pub(super) attempt: u32,
    /// How the left-out member is started again, if it is.
    pub(super) return_plan: Option<ReturnPlan>,
    /// Whether the instance is a failed member of an ensemble, and the run goes on without it.
    pub(super) left_out: bool,
    /// When the process of a left-out member gets the next signal, and which.
    pub(super) next_signal: Option<(Duration, Signal)>,
    /// Whether the instance asked to join after the failure of the run.
    pub(super) too_late: bool,
    pub(super) progress: Option<Progress>,
    pub(super) recent_log: VecDeque<String>,
}

impl Member {
    pub(super) fn new(start: &StartMode) -> Self {
        Member {
            process: match start {
                StartMode::Program(_) => InstanceProcess::Starting,
                _ => InstanceProcess::NotOurs,
            },
            membership: Membership::NotJoined,
            waiting_since: Duration::ZERO,
            known_process: None,
            watched: false,
            watched_process_gone: false,
            ranks: Vec::new(),
            first_rank_gone: None,
            refused_process: None,
            reported_error: None,
            omitted_messages: Vec::new(),
            doubt: None,
            fault: None,
            stopped: false,
            restarts: 0,
            attempt: 0,
            return_plan: None,
            left_out: false,
            next_signal: None,
            too_late: false,
            progress: None,
            recent_log: VecDeque::new(),
        }
    }

    pub(super) fn joined(&self) -> Option<&JoinedInstance> {
        match &self.membership {
            Membership::Joined(joined) => Some(joined),
            _ => None,
        }
    }

    /// Notes that a guard has started the process of the instance.
    pub(super) fn assign_process(&mut self, process: ProcessId) {
        if self.known_process == Some(process) && self.process == InstanceProcess::NotOurs {
            self.process = InstanceProcess::Running(process);
        }
    }

    pub(super) fn remember_log(&mut self, text: &str) {
        for line in text.lines() {
            if self.recent_log.len() == RECENT {
                self.recent_log.pop_front();
            }
            self.recent_log.push_back(line.to_owned());
        }
    }

    /// Adds the circumstances of a fault: a rank with an early end, or a refused process.
    pub(super) fn with_circumstances(&mut self, fault: Fault) -> Fault {
        let refused = self.refused_process.take_if(|_| fault.is_bad_exit());
        let rank = self.first_rank_gone.filter(|_| fault.is_of_process());
        let fault = match rank {
            Some((rank, pid)) => Fault::AfterRank {
                rank,
                pid,
                fault: Box::new(fault),
            },
            None => fault,
        };
        match refused {
            Some(text) => Fault::AfterRefusal {
                text,
                fault: Box::new(fault),
            },
            None => fault,
        }
    }
}

/// How a failed member is started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReturnPlan {
    /// Once its process has ended. Its driver has not joined, so the driver never hears of it.
    Unseen,
    /// Once its driver sends to it.
    OnRequest,
    /// Once its process has ended, since its driver has sent to it.
    Requested,
}

/// A failure from a certain time on, unless another report explains the signs before.
#[derive(Debug, PartialEq)]
pub(super) struct Doubt {
    pub(super) due: Duration,
    pub(super) fault: Fault,
}

/// A message that an instance left out.
#[derive(Debug)]
pub(super) struct OmittedMessage {
    /// The instances that wait for the message in vain.
    pub(super) peers: Vec<String>,
    /// The port named by errors of the peers; `None` if errors may name any port.
    pub(super) port: Option<String>,
    pub(super) text: String,
}

impl OmittedMessage {
    /// Whether an error of `instance` about a closed port follows from the omission.
    pub(super) fn explains(&self, instance: &String, error: &str) -> bool {
        let names = |port: &String| {
            let continues =
                |rest: &str| rest.starts_with(|next: char| next.is_alphanumeric() || next == '_');
            let mut places = error.match_indices(port.as_str());
            places.any(|(at, _)| !continues(&error[at + port.len()..]))
        };
        self.peers.contains(instance) && self.port.as_ref().is_none_or(names)
    }
}

/// The origin of an error that an instance reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ErrorOrigin {
    /// The instance itself.
    Own,
    /// The peers in the list have ended something, for instance a port. A peer may have ended
    /// well, or because another instance fails.
    PeerEnded(Vec<InstanceId>),
    /// Another instance has failed.
    PeerFailed,
    /// The manager was silent for too long, so the instance has given up the manager.
    SilentManager,
}

/// The state of an instance's process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InstanceProcess {
    /// The manager does not start the process.
    NotOurs,
    /// The manager has asked for the start.
    Starting,
    /// The process runs.
    Running(ProcessId),
    /// The process has ended.
    Ended(Exit),
    /// The process was not started, and will not be started.
    Never,
    /// The process was started, but its end will not be reported.
    Unknown,
}

/// The part of an instance in the run.
#[derive(Debug)]
pub(super) enum Membership {
    /// No process has joined as this instance.
    NotJoined,
    /// A process has joined.
    Joined(JoinedInstance),
    /// The instance has reported a good end.
    Done,
    /// The link was lost before the instance was done, for the given reason.
    LinkLost(String),
}

/// The process that has joined as an instance.
#[derive(Debug, Clone)]
pub(super) struct JoinedInstance {
    pub(super) link: LinkId,
    pub(super) endpoint: EndpointId,
    pub(super) addresses: Vec<Address>,
    pub(super) pid: u32,
    pub(super) host: String,
    /// The names of the instance's vector ports.
    pub(super) vectors: HashSet<String>,
}

/// The facts about the control link of a program.
#[derive(Debug)]
pub(super) struct ControlLink {
    pub(super) last_heard: Duration,
    /// Whether the log says that the program is silent.
    pub(super) reported_silent: bool,
    /// The instances of the program.
    pub(super) members: Vec<InstanceId>,
}

impl ControlLink {
    pub(super) fn new(now: Duration) -> Self {
        ControlLink {
            last_heard: now,
            reported_silent: false,
            members: Vec::new(),
        }
    }
}
