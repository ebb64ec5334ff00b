//! Waits for room that last since somebody polls: no cycle of waits, for a program that polls may go on with something else, and yet
//! nothing moves.
//!
//! While an instance waits long for room, those are asked that it waits for and that have reported no wait, and those that these
//! look for in turn. An instance that looks for the same message each time it is asked counts as one that waits for it. A
//! knot of such waits is told: in the log, and in the report of a run that the user ends.

use std::collections::BTreeSet;
use std::time::Duration;

use titin_wire::control::{ToProgram, WaitOn};

use super::Manager;
use super::deadlock::{Graph, Wait, describe, knot, show_cycle, stuck};
use crate::event::Level;
use crate::plan::InstanceId;

/// A wait for room that lasts so long is looked at, and from then on every so often.
const LOOK: Duration = Duration::from_secs(10);

/// Where nothing has moved for so long it is told.
const STILL: Duration = Duration::from_secs(30);

/// What is known about instances that poll.
#[derive(Debug, Default)]
pub(super) struct Stall {
    /// When to look, while somebody waits for room.
    next: Option<Duration>,
    /// The number of the question that was asked last, and the instances that were asked.
    probe: u64,
    asked: BTreeSet<InstanceId>,
    /// The instances that have answered it.
    answered: BTreeSet<InstanceId>,
    /// What those look for that poll, since it was first heard.
    polls: Graph,
    /// The knot that was told last.
    told: BTreeSet<InstanceId>,
}

impl Stall {
    pub(super) fn deadline(&self) -> Option<Duration> {
        self.next
    }

    /// An instance has moved, and waits from now on.
    pub(super) fn begin(&mut self, id: InstanceId, for_room: bool, now: Duration) {
        self.told.remove(&id);
        if for_room {
            self.next.get_or_insert(now + LOOK);
        }
    }

    /// The instances that poll, as far as they have not reported a wait since.
    pub(super) fn polls<'a>(
        &'a self,
        waits: &'a Graph,
    ) -> impl Iterator<Item = (&'a InstanceId, &'a Wait)> {
        self.polls.iter().filter(|(id, _)| !waits.contains_key(id))
    }
}

impl Manager {
    /// Tells where nothing moves, and asks again, when it is time to.
    pub(super) fn look_for_stalls(&mut self) {
        if self.stall.next.is_none_or(|next| next > self.now) {
            return;
        }
        let waits = self.waits.graph().values();
        if self.course.failure().is_some() || !waits.into_iter().any(Wait::is_for_room) {
            self.stall = Stall::default();
            return;
        }
        // An answer holds for one round: of those that were not asked, or have not answered, nothing is known any more.
        let Stall {
            answered, polls, ..
        } = &mut self.stall;
        polls.retain(|id, _| answered.contains(id));
        answered.clear();
        self.tell_stall();
        self.stall.next = Some(self.now + LOOK);
        self.stall.probe = self.waits.next_probe();
        self.stall.asked.clear();
        self.ask_who_polls();
    }

    /// An instance says what it looks for, if it polls, in answer to the last question.
    pub(super) fn heard_poll(&mut self, id: InstanceId, probe: u64, told: Option<WaitOn>) {
        if self.stall.next.is_none() || probe != self.stall.probe {
            return;
        }
        self.stall.answered.insert(id);
        let Some(on) = told.and_then(|told| self.awaited(id, told)) else {
            self.stall.polls.remove(&id);
            return;
        };
        let same = |wait: &Wait| {
            let known = &wait.on[0].told;
            (known.conduit, known.count) == (on.told.conduit, on.told.count)
        };
        if !self.stall.polls.get(&id).is_some_and(same) {
            self.stall.told.remove(&id);
            self.stall.polls.insert(
                id,
                Wait {
                    number: 0,
                    since: self.now,
                    polls: true,
                    on: vec![on],
                },
            );
        }
        self.ask_who_polls();
    }

    /// Probes each instance that a waiter for room depends on, directly or not, and that has reported no wait.
    fn ask_who_polls(&mut self) {
        let waits = self.waits.graph();
        let mut reached: BTreeSet<InstanceId> = waits
            .iter()
            .filter(|(_, wait)| wait.is_for_room())
            .map(|(id, _)| *id)
            .collect();
        let mut rest: Vec<InstanceId> = reached.iter().copied().collect();
        while let Some(id) = rest.pop() {
            let Some(wait) = waits.get(&id).or_else(|| self.stall.polls.get(&id)) else {
                continue;
            };
            rest.extend(
                wait.on
                    .iter()
                    .map(|on| on.peer)
                    .filter(|peer| reached.insert(*peer)),
            );
        }
        let probe = self.stall.probe;
        let unknown: Vec<InstanceId> = reached
            .into_iter()
            .filter(|id| !waits.contains_key(id))
            .collect();
        for id in unknown {
            let Some(link) = self.members[id].joined().map(|joined| joined.link) else {
                continue;
            };
            if self.stall.asked.insert(id) {
                let (instance, conduits) = (self.name(id).to_owned(), Vec::new());
                self.tell(
                    link,
                    ToProgram::Probe {
                        instance,
                        probe,
                        conduits,
                    },
                );
            }
        }
    }

    /// Tells of a knot in which nothing has moved for long, once.
    fn tell_stall(&mut self) {
        let lasts = |wait: &Wait| {
            // Nobody is asked before a wait has lasted for a while.
            let still = if wait.polls { STILL - LOOK } else { STILL };
            wait.since + still <= self.now
        };
        let waits = self.waits.graph();
        let all = waits.iter().chain(self.stall.polls(waits));
        let graph: Graph = all
            .filter(|(_, wait)| lasts(wait))
            .map(|(id, wait)| (*id, wait.clone()))
            .collect();
        let Some(knot) = knot(&graph, &stuck(&graph, |_, _| false)) else {
            return;
        };
        let is_one =
            knot.iter().any(|id| graph[id].polls) && knot.iter().any(|id| graph[id].is_for_room());
        if !is_one || knot == self.stall.told {
            return;
        }
        let begin = format!("nothing has moved for {} s", STILL.as_secs());
        let mut text = show_cycle(&graph, &knot, &begin, |id| self.name(id));
        text.push_str("\nAn instance that polls may go on by itself; so this is told, and no buffer is raised (`titin: buffer`)");
        self.stall.told = knot;
        self.log(Level::Warning, None, text);
    }

    /// What each instance waits or polls for, in words.
    pub(super) fn waits_now(&self) -> Vec<(InstanceId, String)> {
        let waits = self.waits.graph();
        waits
            .iter()
            .chain(self.stall.polls(waits))
            .map(|(id, wait)| (*id, describe(wait)))
            .collect()
    }
}
