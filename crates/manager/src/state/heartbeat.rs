//! Heartbeats on the control links, and late instances.

use std::time::Duration;

use titin_transport::LinkId;
use titin_wire::control::ToProgram;

use super::Manager;
use super::fault::Fault;
use super::member::{InstanceProcess, Membership};
use crate::event::{Level, RunAction};
use crate::host::HostId;
use crate::plan::InstanceId;

impl Manager {
    /// The time between two heartbeats. A peer counts as lost after three such times of silence.
    pub(super) fn heartbeat_interval(&self) -> Duration {
        (self.plan.options.heartbeat / 3).max(Duration::from_millis(1))
    }

    /// Sends a heartbeat to every program, and looks for silent programs.
    pub(super) fn exchange_heartbeats(&mut self) {
        for link in self.all_links() {
            self.tell(link, ToProgram::Heartbeat {});
            if let Some(silence) = self.silence_over_limit(link) {
                self.link_silent(link, silence);
            }
        }
    }

    /// The time of a program's silence, if the silence is too long and was not reported before.
    fn silence_over_limit(&self, link: LinkId) -> Option<Duration> {
        let control_link = &self.links[&link];
        let options = &self.plan.options;
        let limit = match control_link.members.first() {
            // Rank 0 of a parallel program opens its link before all ranks are ready, and joins
            // then.
            None => options.heartbeat.max(options.patience),
            Some(id) => {
                let process = self.members[*id].known_process;
                let host = process.map_or(HostId::MANAGER, |process| process.host);
                self.plan.longest_silence(host)
            }
        };
        let silence = self.now.saturating_sub(control_link.last_heard);
        (silence >= limit && !control_link.reported_silent).then_some(silence)
    }

    /// A program has been silent for too long. If the program's process is known to live, the
    /// manager waits: a debugger may hold the process, or the machine may be very busy. Otherwise
    /// the link is lost.
    fn link_silent(&mut self, link: LinkId, silence: Duration) {
        let members = self.links[&link].members.clone();
        let why = format!("silent for {:.1} s", silence.as_secs_f64());
        if let Some(&first) = members.first()
            && members.iter().all(|&id| self.is_alive(id))
        {
            let text = format!("{why}, but its process lives; waiting");
            self.log(Level::Warning, Some(first), text);
            if let Some(control_link) = self.links.get_mut(&link) {
                control_link.reported_silent = true;
            }
            return;
        }
        self.actions.push(RunAction::CloseLink(link));
        self.links.remove(&link);
        for id in members {
            if let Membership::Joined(_) = self.members[id].membership {
                self.deadlock_search.forget(id, self.now);
                self.members[id].membership = Membership::LinkLost(why.clone());
                self.record_fault(id, Fault::Silent(silence));
            }
        }
    }

    /// Whether the manager knows that the process of an instance lives.
    fn is_alive(&self, id: InstanceId) -> bool {
        let member = &self.members[id];
        member.watched && !member.watched_process_gone
            || matches!(member.process, InstanceProcess::Running(_))
    }

    /// The time after which a missing instance counts as late.
    fn join_deadline(&self, id: InstanceId) -> Option<Duration> {
        let member = &self.members[id];
        let is_expected = matches!(member.membership, Membership::NotJoined)
            && matches!(
                member.process,
                InstanceProcess::Running(_) | InstanceProcess::NotOurs
            )
            && member.fault.is_none()
            && self.run_state.failure().is_none();
        let patience = self.plan.options.patience;
        is_expected.then_some(member.waiting_since.saturating_add(patience))
    }

    /// Expects instances to join, from now on.
    pub(super) fn expect_instances(&mut self) {
        let deadline = self.now.saturating_add(self.plan.options.patience);
        let next = self.next_deadline_to_join;
        self.next_deadline_to_join = Some(next.map_or(deadline, |next| next.min(deadline)));
    }

    /// Fails the run if an instance is late to join.
    pub(super) fn check_join_deadlines(&mut self) {
        if self
            .next_deadline_to_join
            .is_none_or(|next| next > self.now)
        {
            return;
        }
        for id in self.ids() {
            if self
                .join_deadline(id)
                .is_some_and(|deadline| deadline <= self.now)
            {
                self.record_fault(id, Fault::Late(self.plan.options.patience));
            }
        }
        self.next_deadline_to_join = self.ids().filter_map(|id| self.join_deadline(id)).min();
    }
}
