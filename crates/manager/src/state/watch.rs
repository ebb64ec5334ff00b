//! Processes and links: reports of the beginning and the end.
//!
//! Several reports tell of one death at once: the guard reports the exit, the link ends, the
//! program may have reported an error, and the peers complain. The reports come in any order.
//! `assessment` decides on their meaning.

use titin_transport::LinkId;
use titin_wire::control::ToProgram;

use super::Manager;
use super::failure::Cause;
use super::fault::Fault;
use super::member::{ControlLink, ErrorOrigin, InstanceProcess, Membership};
use crate::event::{Exit, Level, Signal};
use crate::plan::InstanceId;

impl Manager {
    pub(super) fn link_opened(&mut self, link: LinkId) {
        self.links.insert(link, ControlLink::new(self.now));
        if let Some(failure) = self.run_state.failure() {
            let message = self.failure_message(failure);
            self.tell(link, message);
        }
    }

    pub(super) fn link_lost(&mut self, link: LinkId, why: &str) {
        let Some(lost) = self.links.remove(&link) else {
            return;
        };
        for id in lost.members {
            self.deadlock_search.forget(id, self.now);
            let member = &mut self.members[id];
            if let Membership::Joined(_) = member.membership {
                member.membership = Membership::LinkLost(why.to_owned());
                self.assess(id);
            }
        }
    }

    pub(super) fn process_started(&mut self, id: InstanceId, pid: u32) {
        let was_given_up = match self.members[id].process {
            InstanceProcess::Starting => false,
            // The guard had the order to start the program before the manager gave the program up.
            InstanceProcess::Never => true,
            _ => return,
        };
        self.members[id].process = InstanceProcess::Running(pid);
        self.members[id].waiting_since = self.now;
        self.expect_instances();
        self.log(Level::Debug, Some(id), format!("started as process {pid}"));
        self.assign_process(pid);
        if was_given_up {
            self.signal_to_end(id, Signal::Kill);
        }
    }

    /// A program of the guard may have joined as further instances, not started by the manager. Now
    /// the process of such instances is known.
    fn assign_process(&mut self, pid: u32) {
        self.programs.insert(pid);
        for member in self.members.iter_mut() {
            member.assign_process(pid);
        }
    }

    /// Notes the process of an instance, if the process belongs to a started program.
    pub(super) fn assign_process_to(&mut self, id: InstanceId, pid: u32) {
        if self.programs.contains(&pid) {
            self.members[id].assign_process(pid);
        }
    }

    pub(super) fn start_failed(&mut self, id: InstanceId, fault: Fault) {
        self.members[id].process = InstanceProcess::Never;
        self.record_fault(id, fault);
    }

    pub(super) fn start_skipped(&mut self, id: InstanceId) {
        if self.members[id].process == InstanceProcess::Starting {
            self.members[id].process = InstanceProcess::Never;
        }
    }

    pub(super) fn process_ended(&mut self, id: InstanceId, exit: Exit) {
        self.log(Level::Debug, Some(id), format!("its process {exit}"));
        let ended = self.instances_of_program(id);
        if let InstanceProcess::Running(pid) = self.members[id].process {
            self.programs.remove(&pid);
        }
        self.members[id].process = InstanceProcess::Ended(exit);
        for &id in &ended {
            self.members[id].process = InstanceProcess::Ended(exit);
        }
        for id in ended {
            if self.members[id].stopped {
                self.record_fault(id, Fault::Stopped);
            }
            self.assess(id);
        }
    }

    pub(super) fn process_watched(&mut self, pid: u32) {
        for id in self.instances_of_process(pid) {
            self.members[id].watched = true;
        }
    }

    pub(super) fn process_gone(&mut self, pid: u32) {
        for id in self.instances_of_process(pid) {
            let member = &mut self.members[id];
            member.local_process_gone = true;
            if !member.ranks.is_empty() {
                member.first_rank_gone.get_or_insert((0, pid));
            }
            self.assess(id);
        }
        // The end of another rank may be in order. If the rank had not closed, the other ranks
        // report an error.
        for member in self.members.iter_mut() {
            let mut ranks = (1..).zip(&member.ranks);
            let rank = ranks.find(|(_, rank)| rank.pid == pid && rank.host == self.host);
            if let Some((rank, _)) = rank {
                member.first_rank_gone.get_or_insert((rank, pid));
            }
        }
    }

    /// The guard has ended. The session ends the programs as orphans, with unknown exits.
    pub(super) fn guard_lost(&mut self, why: String) {
        for member in self.members.iter_mut() {
            member.process = match member.process {
                InstanceProcess::Starting => InstanceProcess::Never,
                InstanceProcess::Running(_) => InstanceProcess::Unknown,
                known => known,
            };
        }
        self.fail(Cause::GuardLost(why));
    }

    /// An instance reports an error.
    pub(super) fn error_reported(&mut self, id: InstanceId, text: String, origin: ErrorOrigin) {
        self.remember_log(id, &text);
        self.deadlock_search.forget(id, self.now);
        let member = &mut self.members[id];
        if member.reported_error.is_none() {
            member.reported_error = Some((text, origin));
            self.assess(id);
        }
    }

    /// An instance reports a good end.
    pub(super) fn instance_done(&mut self, id: InstanceId) {
        self.deadlock_search.forget(id, self.now);
        self.deadlock_search.search_soon(self.now);
        let member = &mut self.members[id];
        let Some(link) = member.joined().map(|joined| joined.link) else {
            return;
        };
        (member.membership, member.doubt) = (Membership::Done, None);
        self.log(Level::Info, Some(id), "done");
        self.tell_peers_of_end(id, link);
        self.assess_errors_after_an_end();
        match self.members[id].process {
            // The assessment of other instances of the process may have waited for the report.
            InstanceProcess::Ended(_) => {
                for id in self.plan.sharers(id) {
                    self.assess(id);
                }
            }
            _ => self.assess(id),
        }
    }

    /// Tells an instance and the peers about the instance's end, each program once.
    fn tell_peers_of_end(&mut self, id: InstanceId, link: LinkId) {
        let mut links = vec![link];
        let peers = self.peers[id].iter();
        links.extend(peers.filter_map(|&peer| Some(self.members[peer].joined()?.link)));
        links.sort_unstable();
        links.dedup();
        for link in links {
            let instance = self.name(id).to_owned();
            self.tell(link, ToProgram::Finished { instance });
        }
    }

    /// Assesses errors again that were reported because another instance had ended. The instance
    /// that has just ended may have been the last that could explain the errors.
    fn assess_errors_after_an_end(&mut self) {
        let is_after_end = |id: &InstanceId| {
            let error = &self.members[*id].reported_error;
            matches!(error, Some((_, ErrorOrigin::PeerEnded(_))))
        };
        for id in self.ids().filter(is_after_end).collect::<Vec<_>>() {
            self.assess(id);
        }
    }

    /// The instances of the program that was started for an instance: the instances of the plan, and
    /// others that the program has joined as.
    fn instances_of_program(&self, id: InstanceId) -> Vec<InstanceId> {
        let mut instances = self.plan.sharers(id);
        let process = self.members[id].process;
        if let InstanceProcess::Running(_) = process {
            let is_further = |other: &InstanceId| {
                *other != id
                    && self.members[*other].process == process
                    && !instances.contains(other)
            };
            let further: Vec<_> = self.ids().filter(is_further).collect();
            instances.extend(further);
        }
        instances
    }

    fn instances_of_process(&self, pid: u32) -> Vec<InstanceId> {
        let is_of_process = |id: &InstanceId| self.members[*id].local_pid == Some(pid);
        self.ids().filter(is_of_process).collect()
    }
}
