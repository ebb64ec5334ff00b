//! Processes and links: reports of the beginning and the end.
//!
//! Several reports tell of one death at once: the guard reports the exit, the link ends, the
//! program may have reported an error, and the peers complain. The reports come in any order.
//! `assessment` decides on their meaning.

use std::collections::BTreeSet;

use titin_transport::LinkId;
use titin_wire::control::ToProgram;

use super::Manager;
use super::fault::Fault;
use super::member::{ControlLink, ErrorOrigin, InstanceProcess, Membership};
use crate::event::{Exit, Level, Signal};
use crate::host::ProcessId;
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

    pub(super) fn process_started(&mut self, id: InstanceId, process: ProcessId) {
        let was_given_up = match self.members[id].process {
            InstanceProcess::Starting => false,
            // The guard had the order to start the program before the manager gave the program up.
            InstanceProcess::Never => true,
            _ => return,
        };
        self.members[id].process = InstanceProcess::Running(process);
        self.members[id].waiting_since = self.now;
        self.expect_instances();
        let text = format!("started as {}", self.process_text(process));
        self.log(Level::Debug, Some(id), text);
        self.assign_process(process);
        if was_given_up {
            self.signal_to_end(id, Signal::Kill);
        }
    }

    /// A program of a guard may have joined as further instances, not started by the manager. Now
    /// the process of such instances is known.
    fn assign_process(&mut self, process: ProcessId) {
        self.programs.insert(process);
        for member in self.members.iter_mut() {
            member.assign_process(process);
        }
    }

    /// Notes the process of an instance, if the process belongs to a started program.
    pub(super) fn assign_process_to(&mut self, id: InstanceId, process: ProcessId) {
        if self.programs.contains(&process) {
            self.members[id].assign_process(process);
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
        if let InstanceProcess::Running(process) = self.members[id].process {
            self.programs.remove(&process);
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
            self.begin_attempt(id);
        }
        self.count_end(id);
    }

    pub(super) fn process_watched(&mut self, process: ProcessId) {
        for id in self.instances_of_process(process) {
            self.members[id].watched = true;
        }
    }

    pub(super) fn process_gone(&mut self, process: ProcessId) {
        let ProcessId { host, pid } = process;
        for id in self.instances_of_process(process) {
            let member = &mut self.members[id];
            member.watched_process_gone = true;
            if !member.ranks.is_empty() {
                member.first_rank_gone.get_or_insert((0, pid));
            }
            self.assess(id);
        }
        // The end of another rank may be in order. If the rank had not closed, the other ranks
        // report an error.
        for id in self.ids() {
            let mut ranks = (1..).zip(&self.members[id].ranks);
            let rank =
                ranks.find(|(_, rank)| rank.pid == pid && self.has_system_name(host, &rank.host));
            if let Some((rank, _)) = rank {
                self.members[id].first_rank_gone.get_or_insert((rank, pid));
            }
        }
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
        let peers = self.links_of_peers(id);
        let (own, name) = (self.name(id).to_owned(), self.name_for_peers(id));
        if own != name || !peers.contains(&link) {
            self.tell(link, ToProgram::Finished { instance: own });
        }
        for link in peers {
            let instance = name.clone();
            self.tell(link, ToProgram::Finished { instance });
        }
    }

    /// The links to the programs of an instance's peers, each once.
    pub(super) fn links_of_peers(&self, id: InstanceId) -> BTreeSet<LinkId> {
        let peers = self.peers[id].iter();
        peers
            .filter_map(|&peer| Some(self.members[peer].joined()?.link))
            .collect()
    }

    /// Assesses errors again that were reported because another instance had ended. The instance
    /// that has just ended may have been the last that could explain the errors.
    pub(super) fn assess_errors_after_an_end(&mut self) {
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

    fn instances_of_process(&self, process: ProcessId) -> Vec<InstanceId> {
        let is_of_process = |id: &InstanceId| self.members[*id].known_process == Some(process);
        self.ids().filter(is_of_process).collect()
    }
}
