//! The meaning of reports about an instance: whether the instance has failed, and since when that is certain.
//!
//! A sign of failure that another report may still explain is held as a *doubt* for a short time. What
//! is certain fails the run at once. The end of a link alone is not the end of a process. A link that
//! lasts is no proof that the process lives: a forked child keeps sockets open.

use std::time::Duration;

use titin_wire::control::SILENT_MANAGER;

use super::Manager;
use super::failure::Cause;
use super::fault::Fault;
use super::member::{Doubt, ErrorOrigin, Membership, ProcessState};
use crate::event::{Exit, Level};
use crate::plan::InstanceId;

/// For the last messages of a process that has ended badly while its link seems to last, and for its
/// guard to report how it ended. The threads that read these may have to wait for a core of a busy host.
/// The time only passes if a child keeps the link open, or a script goes on without its program.
pub(super) const LAST_MESSAGE_TIME: Duration = Duration::from_millis(250);

/// For a process that has ended well, or in an unknown way, to have reported that it is done. A wrong
/// decision would fail a good run, so the time is long. It only passes if a child keeps the link open.
const DONE_MESSAGE_TIME: Duration = Duration::from_secs(3);

/// For a lost link to be explained by the exit of its process, and for an error that follows from
/// another failure to be explained by that failure.
const EXPLANATION_TIME: Duration = Duration::from_secs(1);

/// A failure of an instance, unless another report explains the signs within `wait`.
#[derive(Debug)]
struct FaultVerdict {
    wait: Duration,
    fault: Fault,
}

impl FaultVerdict {
    fn at_once(fault: Fault) -> Option<Self> {
        FaultVerdict::after(Duration::ZERO, fault)
    }

    fn after(wait: Duration, fault: Fault) -> Option<Self> {
        Some(FaultVerdict { wait, fault })
    }
}

impl Manager {
    /// Decides whether an instance has failed: now, or later unless the failure is explained.
    pub(super) fn assess(&mut self, id: InstanceId) {
        if self.members[id].fault.is_some() {
            return;
        }
        let verdict = match self.run_state.failure() {
            None => self.verdict(id),
            Some(_) => self.verdict_after_failure(id),
        };
        match verdict {
            None => {}
            Some(FaultVerdict { wait, fault }) if wait.is_zero() => self.record_fault(id, fault),
            Some(verdict) => self.doubt(id, verdict),
        }
    }

    /// Holds a verdict as a doubt. A new doubt replaces an earlier one, without delay.
    fn doubt(&mut self, id: InstanceId, FaultVerdict { wait, fault }: FaultVerdict) {
        let member = &mut self.members[id];
        let mut due = self.now + wait;
        if let Some(earlier) = &member.doubt {
            due = due.min(earlier.due);
        }
        member.doubt = Some(Doubt { due, fault });
        self.next_doubt_due = Some(self.next_doubt_due.map_or(due, |next| next.min(due)));
    }

    /// A verdict on an instance, from all reports.
    fn verdict(&self, id: InstanceId) -> Option<FaultVerdict> {
        let member = &self.members[id];
        match (&member.reported_error, member.process) {
            // The death of the other instance is about to be reported.
            (Some((text, ErrorOrigin::PeerFailed)), _) => {
                FaultVerdict::after(EXPLANATION_TIME, Fault::Reported(text.clone()))
            }
            (Some((text, ErrorOrigin::PeerEnded(peers))), _) => {
                self.verdict_on_error_after_end(text, peers)
            }
            (Some((text, ErrorOrigin::Own)), _) => {
                FaultVerdict::at_once(Fault::Reported(text.clone()))
            }
            (None, ProcessState::Ended(exit)) => self.verdict_on_exit(id, exit),
            (None, _) => self.verdict_on_link(id),
        }
    }

    /// A verdict on an error that an instance reports because its peers have ended a port. A peer may
    /// be failing, and its own error is about to be reported then.
    fn verdict_on_error_after_end(&self, text: &str, peers: &[InstanceId]) -> Option<FaultVerdict> {
        let is_done = |id: &InstanceId| matches!(self.members[*id].membership, Membership::Done);
        // Behind a peer with a good end may be a third instance, which closed a port and fails now.
        let has_reported =
            |id: InstanceId| is_done(&id) || self.members[id].reported_error.is_some();
        let wait = match self.ids().all(has_reported) {
            true => Duration::ZERO,
            false => EXPLANATION_TIME,
        };
        let fault = Fault::ReportedAfterEnd {
            text: text.to_owned(),
            by: titin_model::listing(peers.iter().map(|peer| self.name(*peer))),
            well: peers.iter().all(is_done),
        };
        FaultVerdict::after(wait, fault)
    }

    /// A verdict on the end of an instance's process.
    fn verdict_on_exit(&self, id: InstanceId, exit: Exit) -> Option<FaultVerdict> {
        match &self.members[id].membership {
            Membership::NotJoined | Membership::Done if self.is_explained_by_sharer(id) => None,
            Membership::NotJoined => FaultVerdict::at_once(Fault::BeforeJoining(exit)),
            Membership::Joined(_) if exit.is_success() => {
                FaultVerdict::after(DONE_MESSAGE_TIME, Fault::WithoutClosing(exit))
            }
            Membership::Joined(_) => {
                FaultVerdict::after(LAST_MESSAGE_TIME, Fault::WithoutClosing(exit))
            }
            Membership::LinkLost(_) => FaultVerdict::at_once(Fault::WithoutClosing(exit)),
            Membership::Done if exit.is_success() => None,
            Membership::Done => FaultVerdict::at_once(Fault::AfterDone(exit)),
        }
    }

    /// A verdict on a lost link, or on the end of a process started by the user.
    fn verdict_on_link(&self, id: InstanceId) -> Option<FaultVerdict> {
        let member = &self.members[id];
        let runs = matches!(
            member.process,
            ProcessState::Running(_) | ProcessState::Starting
        );
        match &member.membership {
            // What has started the process may know how it ended, or the report of its start is still
            // on its way.
            Membership::LinkLost(_) if member.local_process_gone && runs => {
                FaultVerdict::after(LAST_MESSAGE_TIME, Fault::ProcessGone)
            }
            Membership::LinkLost(_) if member.local_process_gone => {
                FaultVerdict::at_once(Fault::ProcessGone)
            }
            Membership::Joined(_) if member.local_process_gone => {
                FaultVerdict::after(DONE_MESSAGE_TIME, Fault::ProcessGone)
            }
            Membership::LinkLost(why) if runs || member.watched => {
                FaultVerdict::after(EXPLANATION_TIME, Fault::LinkLost(why.clone()))
            }
            Membership::LinkLost(why) => FaultVerdict::at_once(Fault::LinkLost(why.clone())),
            _ => None,
        }
    }

    /// A verdict once the run has failed: the instance fails as a consequence, so less time is given
    /// for explanations.
    fn verdict_after_failure(&self, id: InstanceId) -> Option<FaultVerdict> {
        let FaultVerdict { wait, fault } = self.verdict(id)?;
        match fault {
            // The exit of the process will say more.
            Fault::LinkLost(_) if matches!(self.members[id].process, ProcessState::Running(_)) => {
                None
            }
            Fault::Reported(text) | Fault::ReportedAfterEnd { text, .. } => {
                FaultVerdict::at_once(Fault::Reported(text))
            }
            fault => FaultVerdict::after(wait.min(LAST_MESSAGE_TIME), fault),
        }
    }

    /// Whether another instance of the same process was in the middle of its coupling, so that its
    /// report says more about the end of the process.
    fn is_explained_by_sharer(&self, id: InstanceId) -> bool {
        let is_coupled = |other: &InstanceId| {
            let membership = &self.members[*other].membership;
            matches!(membership, Membership::Joined(_) | Membership::LinkLost(_))
        };
        self.plan.hosting(id).is_some() && self.plan.sharers(id).iter().any(is_coupled)
    }

    /// Decides on due doubts.
    pub(super) fn resolve_doubts(&mut self) {
        if self.next_doubt_due.is_none_or(|next| next > self.now) {
            return;
        }
        match self.run_state.failure() {
            Some(_) => self.record_due_doubts(),
            None => self.record_likeliest_doubt(),
        }
        let doubts = self
            .members
            .iter()
            .filter_map(|member| member.doubt.as_ref());
        self.next_doubt_due = doubts.map(|doubt| doubt.due).min();
    }

    /// Records due doubts, as consequences of the failure.
    fn record_due_doubts(&mut self) {
        for id in self.ids() {
            let is_due = |doubt: &mut Doubt| doubt.due <= self.now;
            if let Some(doubt) = self.members[id].doubt.take_if(is_due) {
                self.record_fault(id, doubt.fault);
            }
        }
    }

    /// Fails the run by the likeliest of all doubts, if one is due. The others are about its
    /// consequences then.
    fn record_likeliest_doubt(&mut self) {
        let is_due = |id: &InstanceId| {
            let doubt = &self.members[*id].doubt;
            doubt.as_ref().is_some_and(|doubt| doubt.due <= self.now)
        };
        let Some(first) = self.ids().find(is_due) else {
            return;
        };
        // An error that follows from another failure is the least likely cause.
        let distance = |id: &InstanceId| match &self.members[*id].reported_error {
            None | Some((_, ErrorOrigin::Own)) => 0,
            Some((_, ErrorOrigin::PeerEnded(_))) => 1,
            Some((_, ErrorOrigin::PeerFailed)) => 2,
        };
        let in_doubt = self.ids().filter(|id| self.members[*id].doubt.is_some());
        let likeliest = in_doubt
            .min_by_key(|id| (distance(id), *id != first))
            .filter(|id| distance(id) < distance(&first))
            .unwrap_or(first);
        if let Some(doubt) = self.members[likeliest].doubt.take() {
            self.record_fault(likeliest, doubt.fault);
        }
    }

    /// The instance has failed: as the first, or as a consequence.
    pub(super) fn record_fault(&mut self, id: InstanceId, fault: Fault) {
        let fault = self.blame_omitted_message(id, fault);
        let member = &mut self.members[id];
        member.doubt = None;
        if member.fault.is_some() {
            return;
        }
        let fault = member.with_circumstances(fault);
        member.fault = Some(fault.clone());
        if self.run_state.failure().is_none() {
            let cause = self.blame_own_suspension(&fault);
            return self.fail(cause.unwrap_or(Cause::Instance(id, fault)));
        }
        let level = match fault {
            Fault::Stopped => Level::Info,
            _ => Level::Debug,
        };
        self.log(level, Some(id), fault.to_string());
    }

    /// An instance may fail because a peer has ended, and the peer had left out a message to it. The
    /// peer's omission is the first failure then, and the instance's own error a consequence. Returns
    /// the fault that is left for the instance.
    fn blame_omitted_message(&mut self, id: InstanceId, fault: Fault) -> Fault {
        let Fault::ReportedAfterEnd { text, .. } = &fault else {
            return fault;
        };
        if self.run_state.failure().is_some() {
            return fault;
        }
        let name = &self.plan.instances[id].name;
        let omission_of = |peer: InstanceId| {
            let omitted = self.members[peer].omitted_messages.iter();
            let explaining = omitted.filter(|omitted| omitted.explains(name, text));
            // An omission on the very port says most, and of several omissions the last.
            let best = explaining.max_by_key(|omitted| omitted.port.is_some())?;
            Some((peer, best.text.clone()))
        };
        let Some((peer, omission)) = self.ended_peers(id).into_iter().find_map(omission_of) else {
            return fault;
        };
        let own = Fault::Reported(text.clone());
        self.record_fault(peer, Fault::OmittedMessage(omission));
        own
    }

    /// An instance gives up a manager that is silent for too long. If this manager was suspended, it is
    /// to blame itself.
    fn blame_own_suspension(&self, fault: &Fault) -> Option<Cause> {
        let (resumed_at, time) = self.last_suspension?;
        let gave_up_manager =
            matches!(fault, Fault::Reported(text) if text.contains(SILENT_MANAGER));
        if !gave_up_manager || self.now - resumed_at > DONE_MESSAGE_TIME {
            return None;
        }
        Some(Cause::ManagerFailed(format!(
            "titin itself was stopped for {:.0} s or longer, so programs took it for gone, as they do after {} s \
             (`titin: {{heartbeat: ...}}`). Ctrl-Z, or `kill -TSTP`, stops a run with its programs",
            time.as_secs_f64(),
            self.plan.options.heartbeat.as_secs_f64()
        )))
    }
}
