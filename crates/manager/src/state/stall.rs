//! Stalls: waits for room that last because another instance polls.
//!
//! An instance that polls may go on with other work, so its wait is no part of a deadlock. Yet
//! nothing may move. While an instance waits long for room, the manager follows the waits from peer
//! to peer. The manager asks each instance that has reported no wait whether the instance polls. An
//! instance that polls for the same message at each question counts as waiting for the message. A
//! cycle of such waits is reported in the log, and in the report of a run that the user ends.

use std::collections::BTreeSet;
use std::time::Duration;

use titin_wire::control::WaitOn;

use super::Manager;
use super::wait_graph::{ReportedWait, WaitCycle, WaitGraph, closed_set, stuck};
use crate::event::Level;
use crate::plan::InstanceId;

/// The time between two looks at a wait for room.
const CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// The duration of a wait in a reported stall.
const STALL_TIME: Duration = Duration::from_secs(30);

/// The knowledge about polling instances.
#[derive(Debug, Default)]
pub(super) struct Stall {
    /// The time of the next check, while an instance waits for room.
    next_check: Option<Duration>,
    /// The number of the last probe.
    probe: u64,
    /// The instances asked by the last probe.
    asked: BTreeSet<InstanceId>,
    /// The instances with an answer to the last probe.
    answered: BTreeSet<InstanceId>,
    /// The polls of instances, each with the time of the first report.
    polls: WaitGraph,
    /// The instances of the last reported stall.
    reported: BTreeSet<InstanceId>,
}

impl Stall {
    pub(super) fn deadline(&self) -> Option<Duration> {
        self.next_check
    }

    /// An instance begins a wait, so the wait before has ended.
    pub(super) fn wait_begins(&mut self, id: InstanceId, for_room: bool, now: Duration) {
        self.reported.remove(&id);
        if for_room {
            self.next_check.get_or_insert(now + CHECK_INTERVAL);
        }
    }

    /// The polls of instances without a later wait.
    fn current_polls<'a>(
        &'a self,
        waits: &'a WaitGraph,
    ) -> impl Iterator<Item = (&'a InstanceId, &'a ReportedWait)> {
        self.polls.iter().filter(|(id, _)| !waits.contains_key(id))
    }

    /// Takes in the poll of an instance.
    fn poll_reported(&mut self, id: InstanceId, poll: ReportedWait) {
        let message = |wait: &ReportedWait| {
            let on = &wait.awaited[0].reported;
            (on.conduit, on.count)
        };
        let known = self.polls.get(&id).map(message);
        if known != Some(message(&poll)) {
            self.reported.remove(&id);
            self.polls.insert(id, poll);
        }
    }

    /// Begins a round. Answers hold for one round only.
    fn begin_round(&mut self) {
        let answered = std::mem::take(&mut self.answered);
        self.polls.retain(|id, _| answered.contains(id));
        self.asked.clear();
    }
}

/// Whether a wait has lasted long enough to be part of a stall.
fn is_stalled(wait: &ReportedWait, now: Duration) -> bool {
    // The first question about polling comes one interval after the beginning of a wait.
    let time = match wait.polls {
        true => STALL_TIME - CHECK_INTERVAL,
        false => STALL_TIME,
    };
    wait.reported_at + time <= now
}

impl Manager {
    /// Reports a stall, and asks polling instances again, if a check is due.
    pub(super) fn check_for_stalls(&mut self) {
        if self.stall.next_check.is_none_or(|next| next > self.now) {
            return;
        }
        let waits = self.deadlock_search.graph();
        if self.run_state.failure().is_some() || !waits.values().any(ReportedWait::is_for_room) {
            self.stall = Stall::default();
            return;
        }
        self.stall.begin_round();
        self.warn_of_stall();
        self.stall.next_check = Some(self.now + CHECK_INTERVAL);
        self.stall.probe = self.deadlock_search.next_probe();
        self.probe_pollers();
    }

    /// An instance answers the last probe, with its poll if the instance polls.
    pub(super) fn poll_reported(&mut self, id: InstanceId, probe: u64, on: Option<WaitOn>) {
        if self.stall.next_check.is_none() || probe != self.stall.probe {
            return;
        }
        self.stall.answered.insert(id);
        let Some(on) = on.and_then(|on| self.awaited(id, on)) else {
            self.stall.polls.remove(&id);
            return;
        };
        let poll = ReportedWait {
            number: 0,
            reported_at: self.now,
            polls: true,
            awaited: vec![on],
        };
        self.stall.poll_reported(id, poll);
        self.probe_pollers();
    }

    /// Asks each instance on which a wait for room depends, directly or not, if the instance has
    /// reported no wait.
    fn probe_pollers(&mut self) {
        let waits = self.deadlock_search.graph();
        let unknown: Vec<InstanceId> = self
            .instances_behind_waits_for_room()
            .into_iter()
            .filter(|id| !waits.contains_key(id))
            .collect();
        for id in unknown {
            if self.members[id].joined().is_some() && self.stall.asked.insert(id) {
                self.ask(id, self.stall.probe, Vec::new());
            }
        }
    }

    /// The instances in a wait for room, and all instances on which such a wait depends.
    fn instances_behind_waits_for_room(&self) -> BTreeSet<InstanceId> {
        let waits = self.deadlock_search.graph();
        let for_room = waits.iter().filter(|(_, wait)| wait.is_for_room());
        let mut reached: BTreeSet<InstanceId> = for_room.map(|(id, _)| *id).collect();
        let mut rest: Vec<InstanceId> = reached.iter().copied().collect();
        while let Some(id) = rest.pop() {
            let Some(wait) = waits.get(&id).or_else(|| self.stall.polls.get(&id)) else {
                continue;
            };
            let peers = wait.awaited.iter().map(|on| on.peer);
            rest.extend(peers.filter(|peer| reached.insert(*peer)));
        }
        reached
    }

    /// Reports a stall, unless the same stall was reported before.
    fn warn_of_stall(&mut self) {
        let graph = self.stalled_waits();
        let Some(set) = closed_set(&graph, &stuck(&graph, |_, _| false)) else {
            return;
        };
        let is_stall =
            set.iter().any(|id| graph[id].polls) && set.iter().any(|id| graph[id].is_for_room());
        if !is_stall || set == self.stall.reported {
            return;
        }
        let heading = format!("nothing has moved for {} s", STALL_TIME.as_secs());
        let cycle = WaitCycle::of(&graph, &set, |id| self.name(id));
        let text = cycle.text(&heading)
            + "\nAn instance that polls may go on by itself; so this is told, and no buffer is raised (`titin: buffer`)";
        self.stall.reported = set;
        self.log(Level::Warning, None, text);
    }

    /// The waits of instances, and the polls of instances without a later wait.
    fn waits_and_polls(&self) -> impl Iterator<Item = (&InstanceId, &ReportedWait)> {
        let waits = self.deadlock_search.graph();
        waits.iter().chain(self.stall.current_polls(waits))
    }

    /// The waits and polls that last.
    fn stalled_waits(&self) -> WaitGraph {
        let stalled = self
            .waits_and_polls()
            .filter(|(_, wait)| is_stalled(wait, self.now));
        stalled.map(|(id, wait)| (*id, wait.clone())).collect()
    }

    /// The waits and polls of instances, in words.
    pub(super) fn current_waits(&self) -> Vec<(InstanceId, String)> {
        let all = self.waits_and_polls();
        all.map(|(id, wait)| (*id, wait.to_string())).collect()
    }
}
