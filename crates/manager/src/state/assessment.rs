//! The meaning of reports about an instance: whether the instance has failed, and since when the
//! failure is certain.
//!
//! A sign of failure that another report may still explain is held as a *doubt* for a short time. A
//! certain failure fails the run at once. A link may end while the process lives. A link may also
//! last after the process has ended, because a forked child keeps sockets open.

use std::time::Duration;

use super::Manager;
use super::failure::Cause;
use super::fault::Fault;
use super::member::{Doubt, ErrorOrigin, InstanceProcess, Membership};
use crate::event::{Exit, Level};
use crate::plan::InstanceId;

/// After the bad end of a process whose link seems to last: the time for the last messages of the
/// process, and for the guard's report of the exit. The threads that read messages and reports may
/// have to wait for a core of a busy host. The whole time passes only if a child keeps the link
/// open, or a script goes on without its program.
pub(super) const LAST_MESSAGE_TIME: Duration = Duration::from_millis(250);

/// After a good or unknown end of a process: the time for the report that the instance is done. A
/// wrong decision would fail a good run, so the time is long. The whole time passes only if a child
/// keeps the link open.
const DONE_MESSAGE_TIME: Duration = Duration::from_secs(3);

/// The time for the exit of a process to explain its lost link, and for another failure to explain
/// an error that follows from the failure.
const EXPLANATION_TIME: Duration = Duration::from_secs(1);

/// The same for a run with other sites. When a host goes down, relays notice its connections one by
/// one, over 4 s. Where a connection was reset, they wait 4 s (`REDIAL_TIME` of the relay), and the
/// session half a second more (`GONE_AFTER` of the transport).
const SITES_EXPLANATION_TIME: Duration = Duration::from_secs(6);

/// The time for a failure of a parallel peer to explain an error that follows from the peer's end.
/// Rank 0 may have ended its ports long before the last rank closes, and only then compares the
/// calls of the ranks.
const RANKS_EXPLANATION_TIME: Duration = Duration::from_secs(4);

/// The time after a suspension of this manager in which the suspension explains why a program has
/// given up the manager as silent. The report of such a program is there when the manager runs again;
/// a busy host may delay the manager's look at the report.
const SUSPENSION_ECHO_TIME: Duration = Duration::from_secs(3);

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
    /// Decides whether an instance has failed: now, or later unless another report explains the
    /// failure.
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

    /// Holds a verdict as a doubt. A new doubt replaces an earlier doubt, and is never due later.
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
            // The report of the other instance's death is on its way.
            (Some((text, ErrorOrigin::PeerFailed)), _) => {
                FaultVerdict::after(self.explanation_time(), Fault::Reported(text.clone()))
            }
            (Some((text, ErrorOrigin::PeerEnded(peers))), _) => {
                self.verdict_on_error_after_end(text, peers)
            }
            (Some((text, ErrorOrigin::Own | ErrorOrigin::SilentManager)), _) => {
                FaultVerdict::at_once(Fault::Reported(text.clone()))
            }
            (None, InstanceProcess::Ended(exit)) => self.verdict_on_exit(id, exit),
            (None, _) => self.verdict_on_link(id),
        }
    }

    fn explanation_time(&self) -> Duration {
        match self.plan.has_other_sites() {
            true => SITES_EXPLANATION_TIME,
            false => EXPLANATION_TIME,
        }
    }

    /// A verdict on an error that an instance reports because its peers have ended a port. Perhaps
    /// a peer is failing, and the peer's own error is on its way.
    fn verdict_on_error_after_end(&self, text: &str, peers: &[InstanceId]) -> Option<FaultVerdict> {
        let is_done = |id: &InstanceId| matches!(self.members[*id].membership, Membership::Done);
        // A third instance may have closed a port of a peer that then ended well. The third
        // instance may be failing.
        let has_reported = |id: InstanceId| {
            let member = &self.members[id];
            is_done(&id) || member.reported_error.is_some() || member.left_out
        };
        let is_closing_in_part = |id: &InstanceId| {
            let member = &self.members[*id];
            !member.ranks.is_empty() && !has_reported(*id)
        };
        let wait = match self.ids().all(has_reported) {
            true => Duration::ZERO,
            false if peers.iter().any(is_closing_in_part) => {
                RANKS_EXPLANATION_TIME.max(self.explanation_time())
            }
            false => self.explanation_time(),
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
            InstanceProcess::Running(_) | InstanceProcess::Starting
        );
        match &member.membership {
            // The guard may yet report the exit of the process, or even the start.
            Membership::LinkLost(_) if member.watched_process_gone && runs => {
                FaultVerdict::after(LAST_MESSAGE_TIME, Fault::ProcessGone)
            }
            Membership::LinkLost(_) if member.watched_process_gone => {
                FaultVerdict::at_once(Fault::ProcessGone)
            }
            Membership::Joined(_) if member.watched_process_gone => {
                FaultVerdict::after(DONE_MESSAGE_TIME, Fault::ProcessGone)
            }
            Membership::LinkLost(why) if runs || member.watched => {
                FaultVerdict::after(self.explanation_time(), Fault::LinkLost(why.clone()))
            }
            Membership::LinkLost(why) => FaultVerdict::at_once(Fault::LinkLost(why.clone())),
            _ => None,
        }
    }

    /// A verdict after the failure of the run. The instance fails as a consequence, so explanations
    /// get less time.
    fn verdict_after_failure(&self, id: InstanceId) -> Option<FaultVerdict> {
        let FaultVerdict { wait, fault } = self.verdict(id)?;
        match fault {
            // The exit of the process will say more.
            Fault::LinkLost(_)
                if matches!(self.members[id].process, InstanceProcess::Running(_)) =>
            {
                None
            }
            Fault::Reported(text) | Fault::ReportedAfterEnd { text, .. } => {
                FaultVerdict::at_once(Fault::Reported(text))
            }
            fault => FaultVerdict::after(wait.min(LAST_MESSAGE_TIME), fault),
        }
    }

    /// Whether another instance of the same process had joined and was not done. Then the report on
    /// the other instance says more about the end of the process.
    fn is_explained_by_sharer(&self, id: InstanceId) -> bool {
        let has_joined = |other: &InstanceId| {
            let membership = &self.members[*other].membership;
            matches!(membership, Membership::Joined(_) | Membership::LinkLost(_))
        };
        self.plan.hosting(id).is_some() && self.plan.sharers(id).iter().any(has_joined)
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

    /// Fails the run by the likeliest of all doubts, if a doubt is due. The other doubts are then
    /// about consequences.
    fn record_likeliest_doubt(&mut self) {
        let is_due = |id: &InstanceId| {
            let doubt = &self.members[*id].doubt;
            doubt.as_ref().is_some_and(|doubt| doubt.due <= self.now)
        };
        let Some(first) = self.ids().find(is_due) else {
            return;
        };
        let in_doubt = self.ids().filter(|id| self.members[*id].doubt.is_some());
        let likeliest = in_doubt
            .min_by_key(|id| (self.distance_to_cause(*id), *id != first))
            .filter(|id| self.distance_to_cause(*id) < self.distance_to_cause(first))
            .unwrap_or(first);
        if let Some(doubt) = self.members[likeliest].doubt.take() {
            self.record_fault(likeliest, doubt.fault);
        }
    }

    /// How unlikely an instance in doubt is the cause. An error that follows from another failure
    /// is the least likely cause.
    fn distance_to_cause(&self, id: InstanceId) -> u8 {
        match &self.members[id].reported_error {
            None | Some((_, ErrorOrigin::Own | ErrorOrigin::SilentManager)) => 0,
            Some((_, ErrorOrigin::PeerEnded(_))) => 1,
            Some((_, ErrorOrigin::PeerFailed)) => 2,
        }
    }

    /// Records that the instance has failed: as the first, or as a consequence.
    pub(super) fn record_fault(&mut self, id: InstanceId, fault: Fault) {
        let fault = self.blame_omitted_message(id, fault);
        let member = &mut self.members[id];
        member.doubt = None;
        if member.fault.is_some() {
            return;
        }
        let fault = member.with_circumstances(fault);
        if self.run_state.failure().is_none() {
            let cause = self.blame_own_suspension(id);
            if cause.is_none() && self.start_again(id, &fault) {
                return;
            }
            if cause.is_none() && self.come_back(id, &fault) {
                return;
            }
            self.members[id].fault = Some(fault.clone());
            if cause.is_none() && self.leave_out(id, &fault) {
                return;
            }
            return self.fail(cause.unwrap_or(Cause::Instance(id, fault)));
        }
        member.fault = Some(fault.clone());
        let level = match fault {
            Fault::Stopped => Level::Info,
            _ => Level::Debug,
        };
        self.log(level, Some(id), fault.to_string());
    }

    /// If an instance fails because a peer has ended, perhaps the peer has left out a message to
    /// the instance. Then the peer's omission is the first failure, and the instance's own error is
    /// a consequence. Returns the fault for the instance.
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
            // An omission on the port in question says most. Of several such omissions the last
            // counts.
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

    /// An instance gives up a manager that is silent for too long. If this manager was suspended,
    /// the manager is to blame.
    fn blame_own_suspension(&self, id: InstanceId) -> Option<Cause> {
        let error = self.members[id].reported_error.as_ref();
        let gave_up_manager = matches!(error, Some((_, ErrorOrigin::SilentManager)));
        self.own_suspension().filter(|_| gave_up_manager)
    }

    /// The cause of a failure that may follow from a stop of the manager's own process, if there was one
    /// a short time ago.
    pub(super) fn own_suspension(&self) -> Option<Cause> {
        let (resumed_at, time) = self.last_suspension?;
        if self.now - resumed_at > SUSPENSION_ECHO_TIME {
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
