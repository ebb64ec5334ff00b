//! The state of each instance in words: while the run goes on, and after a failure.

use std::collections::HashSet;

use titin_wire::control::Progress;

use super::Manager;
use super::fault::Fault;
use super::member::{ErrorOrigin, InstanceProcess, Member, Membership};
use crate::event::Exit;
use crate::plan::InstanceId;

/// The state of an instance, for the user.
#[derive(Debug, Clone, PartialEq)]
pub struct InstanceStatus {
    /// The instance's name.
    pub name: String,
    /// The current activity.
    pub phase: Phase,
    /// The progress, by the instance's own report.
    pub position: Option<Progress>,
    /// The simulated time of the end, if known.
    pub end: Option<f64>,
}

/// The activity of an instance, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The program is being started, or has not joined yet.
    Starting,
    /// The user has to start the program.
    Awaited,
    /// The instance computes.
    Running,
    /// The instance waits for a peer.
    Waiting,
    /// The instance has reported that it is done.
    Done,
    /// The instance has failed.
    Failed,
}

impl Phase {
    /// The printed name.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Starting => "starting",
            Phase::Awaited => "awaited",
            Phase::Running => "running",
            Phase::Waiting => "waiting",
            Phase::Done => "done",
            Phase::Failed => "failed",
        }
    }
}

impl Manager {
    /// The state of each instance.
    pub fn instance_statuses(&self) -> Vec<InstanceStatus> {
        self.ids().map(|id| self.instance_status(id)).collect()
    }

    pub(super) fn instance_status(&self, id: InstanceId) -> InstanceStatus {
        let member = &self.members[id];
        let phase = match &member.membership {
            _ if member.fault.is_some() => Phase::Failed,
            Membership::NotJoined if member.process == InstanceProcess::NotOurs => Phase::Awaited,
            Membership::NotJoined => Phase::Starting,
            Membership::Joined(_) if self.deadlock_search.is_waiting(id) => Phase::Waiting,
            Membership::Joined(_) => Phase::Running,
            Membership::Done => Phase::Done,
            Membership::LinkLost(_) => Phase::Failed,
        };
        let planned = &self.plan.instances[id];
        let reported = member.progress.as_ref();
        let reported_end = reported.and_then(|progress| progress.end);
        InstanceStatus {
            name: planned.name.clone(),
            phase,
            position: member.progress.clone(),
            end: reported_end.or(planned.end),
        }
    }

    /// The last log lines of an instance.
    pub fn recent_log(&self, id: InstanceId) -> Vec<String> {
        self.members[id].recent_log.iter().cloned().collect()
    }

    /// The exit of an instance's process, if the manager has started the process.
    pub fn exit(&self, id: InstanceId) -> Option<Exit> {
        match self.members[id].process {
            InstanceProcess::Ended(exit) => Some(exit),
            _ => None,
        }
    }

    /// The ended peers in an instance's own error, if the error is about ended peers.
    pub fn ended_peers(&self, id: InstanceId) -> Vec<InstanceId> {
        match &self.members[id].reported_error {
            Some((_, ErrorOrigin::PeerEnded(peers))) => peers.clone(),
            _ => Vec::new(),
        }
    }

    /// The instances affected by the culprits' failure, each with the effect in a few words.
    pub fn affected_instances(&self, culprits: &[InstanceId]) -> Vec<(InstanceId, String)> {
        let culprits: HashSet<InstanceId> = culprits.iter().copied().collect();
        let others = self.ids().filter(|id| !culprits.contains(id));
        others
            .filter_map(|id| Some((id, self.consequence(id)?)))
            .collect()
    }

    /// The effect of another instance's failure on an instance.
    fn consequence(&self, id: InstanceId) -> Option<String> {
        let member = &self.members[id];
        match &member.fault {
            _ if matches!(member.membership, Membership::NotJoined) && member.too_late => None,
            None if self.is_lost_with_host(id) => Some("was lost with its host".to_owned()),
            None => consequence_without_fault(member).map(str::to_owned),
            Some(fault) => match self.shared_process(id) {
                Some(process) => consequence_in_shared_process(fault, &process),
                None => Some(consequence_of(fault)),
            },
        }
    }

    /// The process shared by an instance and others, in words.
    fn shared_process(&self, id: InstanceId) -> Option<String> {
        let host = self.plan.hosting(id);
        if let Some(host) = host.filter(|_| self.plan.sharers(id).len() > 1) {
            return Some(format!("host process {}", host.name));
        }
        let process = self.members[id].known_process?;
        let is_other = |other: &InstanceId| {
            *other != id && self.members[*other].known_process == Some(process)
        };
        let others: Vec<InstanceId> = self.ids().filter(is_other).collect();
        let names = titin_model::listing(others.iter().map(|&other| self.name(other)));
        (!others.is_empty()).then(|| format!("its process, which ran {names} too,"))
    }
}

/// The end of an instance without a fault.
fn consequence_without_fault(member: &Member) -> Option<&'static str> {
    match member.membership {
        Membership::Done => None,
        Membership::NotJoined if member.process == InstanceProcess::Never => {
            Some("was not started any more")
        }
        Membership::NotJoined => Some("had not joined yet"),
        Membership::Joined(_) | Membership::LinkLost(_) => Some("was told to end"),
    }
}

/// The meaning of a fault for one instance of a process with several. The exit of the process says
/// nothing about the single instance.
fn consequence_in_shared_process(fault: &Fault, process: &str) -> Option<String> {
    match fault {
        Fault::AfterDone(_) => None,
        Fault::BeforeJoining(exit) => Some(format!("had not joined yet when {process} {exit}")),
        Fault::WithoutClosing(exit) => Some(format!("had not closed yet when {process} {exit}")),
        fault => Some(consequence_of(fault)),
    }
}

/// The effect of a fault on an instance that shares no process.
fn consequence_of(fault: &Fault) -> String {
    match fault {
        Fault::Reported(text) => text.lines().next().unwrap_or_default().to_owned(),
        Fault::WithoutClosing(exit) => exit.to_string(),
        fault => fault.to_string(),
    }
}
