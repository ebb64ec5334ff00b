//! The search for deadlocks, and larger buffers where they help.
//!
//! A report of a wait may cross a message on its way, so an instance that looks stuck may not be
//! stuck. The manager therefore sends a probe to every instance of the set, to ask for the wait and
//! the message counts. If each instance is still in the same wait, and each conduit has as many
//! messages received as sent, no message is in flight and no instance of the set can go on. The
//! result depends on the waits in the closed part of the set:
//!
//! - If all instances wait to receive, the run fails by a deadlock.
//! - If an instance waits for room to send, its buffer is raised, as far as the host's memory
//!   allows.
//! - An instance that waits for the declaration of a field goes on when both ends have declared the
//!   field.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use titin_wire::control::{ToProgram, WaitOn};

use super::Manager;
use super::ensemble::FullEnsemble;
use super::failure::Cause;
use super::wait_graph::{
    AwaitedConduit, Deadlock, DeadlockAdvice, FullBuffers, ReportedWait, WaitCycle, WaitGraph,
    closed_set, stuck,
};
use crate::event::Level;
use crate::plan::{ConduitId, InstanceId, PlannedConduit};

/// From the report of a wait to the search. Many reports within this time cost one search.
const SEARCH_DELAY: Duration = Duration::from_millis(20);

/// From a probe without a result, or without an answer, to the next probe.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// A deadlock with a parallel program in the cycle is reported only after this time. Until then a
/// rank may report that another rank has left out a call. Such a report is the better explanation.
const RANK_REPORT_TIME: Duration = Duration::from_secs(1);

/// Bytes of memory for a message beside the payload.
const MESSAGE_OVERHEAD: u64 = 256;

/// Reported waits, and the state of the search.
#[derive(Debug, Default)]
pub(super) struct DeadlockSearch {
    waits: WaitGraph,
    next_search: Option<Duration>,
    probe: Option<Probe>,
    last_probe: u64,
    raised: BTreeMap<ConduitId, RaisedBuffer>,
}

/// A question to all instances of a set that looks stuck.
#[derive(Debug)]
struct Probe {
    number: u64,
    /// The instances, each with the number of its wait.
    members: BTreeMap<InstanceId, u64>,
    /// The members that have not answered.
    unanswered: BTreeSet<InstanceId>,
    /// Messages sent or received at each end of the conduits.
    counts: HashMap<(ConduitId, InstanceId), u64>,
    /// When the manager gives up the probe.
    deadline: Duration,
}

impl Probe {
    /// Whether an instance waits for a message in flight.
    fn is_in_flight(&self, id: InstanceId, on: &AwaitedConduit) -> bool {
        // No message comes from a member that has not been started.
        if on.held_back.is_some() {
            return false;
        }
        let count = |end| self.counts.get(&(on.reported.conduit, end));
        let received = count(id);
        !on.reported.sends && (received.is_none() || count(on.peer) != received)
    }
}

/// A raised buffer, with the limits.
#[derive(Debug, Clone, Copy)]
struct RaisedBuffer {
    times: u64,
    messages: u64,
    bytes: u64,
}

impl RaisedBuffer {
    /// The buffer as the description sets it.
    fn original(planned: &PlannedConduit) -> Self {
        RaisedBuffer {
            times: 0,
            messages: planned.buffer_messages,
            bytes: planned.buffer_bytes,
        }
    }

    /// Makes room for a sender that waits.
    fn raise(&mut self, on: &WaitOn) {
        self.times += 1;
        self.messages = self.messages.max(on.ahead).max(1).saturating_mul(4);
        // Perhaps the limit in bytes holds the sender back. A count of 0 means unknown.
        if on.ahead_bytes == 0 || on.ahead_bytes > self.bytes / 2 {
            self.bytes = self.bytes.max(on.ahead_bytes).max(1).saturating_mul(2);
        }
    }
}

impl DeadlockSearch {
    pub(super) fn deadline(&self) -> Option<Duration> {
        let probe = self.probe.as_ref().map(|probe| probe.deadline);
        self.next_search.into_iter().chain(probe).min()
    }

    pub(super) fn graph(&self) -> &WaitGraph {
        &self.waits
    }

    /// A new number for a probe.
    pub(super) fn next_probe(&mut self) -> u64 {
        self.last_probe += 1;
        self.last_probe
    }

    pub(super) fn is_waiting(&self, id: InstanceId) -> bool {
        self.waits.contains_key(&id)
    }

    /// Whether no probe is under way.
    #[cfg(test)]
    pub(super) fn is_idle(&self) -> bool {
        self.probe.is_none()
    }

    /// The number of an instance's present wait.
    #[cfg(test)]
    pub(super) fn number(&self, id: InstanceId) -> Option<u64> {
        self.waits.get(&id).map(|wait| wait.number)
    }

    /// Raised buffers: the conduit, the number of raises, and the limit in messages.
    pub(super) fn raised(&self) -> impl Iterator<Item = (ConduitId, u64, u64)> {
        self.raised
            .iter()
            .map(|(&conduit, raised)| (conduit, raised.times, raised.messages))
    }

    /// An instance goes on from the wait with a number.
    pub(super) fn proceed(&mut self, id: InstanceId, number: u64, now: Duration) {
        let wait = self.waits.get(&id);
        if wait.is_some_and(|wait| wait.number <= number) {
            self.forget(id, now);
        }
    }

    /// The instance has stopped waiting.
    pub(super) fn forget(&mut self, id: InstanceId, now: Duration) {
        self.waits.remove(&id);
        let is_member = |probe: &mut Probe| probe.members.contains_key(&id);
        if self.probe.take_if(is_member).is_some() {
            // The other members may still be stuck, and each reports its wait only once.
            self.search_at(now + RETRY_DELAY);
        }
    }

    pub(super) fn search_soon(&mut self, now: Duration) {
        self.search_at(now + SEARCH_DELAY);
    }

    fn search_at(&mut self, time: Duration) {
        let next = self.next_search.map_or(time, |next| next.min(time));
        self.next_search = Some(next);
    }

    /// Gives up a probe with overdue answers.
    fn expire_probe(&mut self, now: Duration) {
        if self.probe.take_if(|probe| probe.deadline <= now).is_some() {
            self.search_at(now);
        }
    }
}

impl Manager {
    /// An instance reports a wait.
    pub(super) fn wait_reported(&mut self, id: InstanceId, number: u64, on: Vec<WaitOn>) {
        if self.members[id].joined().is_none() || on.is_empty() {
            return;
        }
        let awaited = on.into_iter().map(|on| self.awaited(id, on)).collect();
        let Some(awaited) = awaited else {
            let text = "waits on a conduit that it has no end of; passed over";
            return self.log(Level::Warning, Some(id), text);
        };
        self.deadlock_search.forget(id, self.now);
        let wait = ReportedWait {
            number,
            reported_at: self.now,
            polls: false,
            awaited,
        };
        self.stall.wait_begins(id, wait.is_for_room(), self.now);
        self.deadlock_search.waits.insert(id, wait);
        self.deadlock_search.search_soon(self.now);
    }

    /// The conduit of a wait; `None` if the instance has no such end of the conduit.
    pub(super) fn awaited(&self, id: InstanceId, reported: WaitOn) -> Option<AwaitedConduit> {
        let planned = self
            .plan
            .conduit(self.described_conduit(reported.conduit))?;
        let (here, there) = match reported.sends {
            true => (&planned.from, &planned.to),
            false => (&planned.to, &planned.from),
        };
        (here.instance == id).then(|| AwaitedConduit {
            peer: there.instance,
            reported,
            is_pulled: planned.is_pulled(),
            held_back: None,
        })
    }

    /// The reported waits. An instance that waits for a member that is held back waits for any of the
    /// members that run: the first that ends makes room.
    fn wait_graph(&self) -> Cow<'_, WaitGraph> {
        let waits = &self.deadlock_search.waits;
        let full = self.full_ensembles();
        if full.is_empty() {
            return Cow::Borrowed(waits);
        }
        let graph = waits.iter().map(|(id, wait)| {
            let mut awaited = Vec::with_capacity(wait.awaited.len());
            let mut listed = vec![false; full.len()];
            for on in &wait.awaited {
                let holds = |full: &FullEnsemble| full.held_back.contains(&on.peer);
                let Some(place) = full.iter().position(holds) else {
                    awaited.push(on.clone());
                    continue;
                };
                // A driver may wait for thousands of members: all that run stand there once.
                let most = match std::mem::replace(&mut listed[place], true) {
                    false => usize::MAX,
                    true => 1,
                };
                awaited.extend(behind_running(on, &full[place]).take(most));
            }
            let (number, reported_at, polls) = (wait.number, wait.reported_at, wait.polls);
            let wait = ReportedWait {
                number,
                reported_at,
                polls,
                awaited,
            };
            (*id, wait)
        });
        Cow::Owned(graph.collect())
    }

    /// Searches for a set that looks stuck, if a search is due.
    pub(super) fn search_deadlock(&mut self) {
        let search = &mut self.deadlock_search;
        if self.run_state.failure().is_some() {
            (search.next_search, search.probe) = (None, None);
            return;
        }
        search.expire_probe(self.now);
        let is_due = search.next_search.is_some_and(|time| time <= self.now);
        if search.probe.is_some() || !is_due {
            return;
        }
        search.next_search = None;
        let stuck = stuck(&self.wait_graph(), |_, on| on.is_about_to_join());
        if !stuck.is_empty() {
            self.send_probe(stuck);
        }
    }

    /// Asks all instances of a set, and the peers, for message counts.
    fn send_probe(&mut self, stuck: BTreeSet<InstanceId>) {
        let search = &mut self.deadlock_search;
        let mut asked: BTreeMap<InstanceId, BTreeSet<ConduitId>> = BTreeMap::new();
        for &id in &stuck {
            for on in &search.waits[&id].awaited {
                for end in [id, on.peer] {
                    asked.entry(end).or_default().insert(on.reported.conduit);
                }
            }
        }
        let number = search.next_probe();
        let wait_number = |&id: &InstanceId| (id, search.waits[&id].number);
        search.probe = Some(Probe {
            number,
            members: stuck.iter().map(wait_number).collect(),
            unanswered: stuck,
            counts: HashMap::new(),
            deadline: self.now + RETRY_DELAY,
        });
        for (id, conduits) in asked {
            self.ask(id, number, conduits.into_iter().collect());
        }
    }

    /// Sends a probe to an instance, if the instance takes part.
    pub(super) fn ask(&mut self, id: InstanceId, probe: u64, conduits: Vec<ConduitId>) {
        let instance = self.name(id).to_owned();
        let message = ToProgram::Probe {
            instance,
            probe,
            conduits,
        };
        self.tell_instance(id, message);
    }

    /// An instance answers a probe.
    pub(super) fn counts_reported(
        &mut self,
        id: InstanceId,
        probe: u64,
        wait: Option<u64>,
        counts: &[(ConduitId, u64)],
    ) {
        let search = &mut self.deadlock_search;
        let Some(probe) = search.probe.as_mut().filter(|sent| sent.number == probe) else {
            return;
        };
        if probe.members.get(&id).copied() != wait {
            search.probe = None;
            search.search_at(self.now + RETRY_DELAY);
            return;
        }
        let counts = counts.iter();
        probe
            .counts
            .extend(counts.map(|&(conduit, count)| ((conduit, id), count)));
        probe.unanswered.remove(&id);
        if let Some(probe) = search.probe.take_if(|probe| probe.unanswered.is_empty()) {
            self.conclude_probe(&probe);
        }
    }

    /// Decides on a probe, once all members have answered from the same waits as before.
    fn conclude_probe(&mut self, probe: &Probe) {
        let Some(set) = self.still_stuck(probe) else {
            return self.deadlock_search.search_at(self.now + RETRY_DELAY);
        };
        let senders = self.waits_for_room(&set);
        let held = buffered_bytes(&senders);
        let ceiling = self.plan.options.ceiling;
        if !senders.is_empty() && held <= ceiling {
            for (id, on) in senders {
                self.raise_buffer(id, &on);
            }
            // A sender with enough room reports its next wait. The search checks other senders
            // again.
            return self.deadlock_search.search_at(self.now + RETRY_DELAY);
        }
        if let Some(time) = self.rank_reports_until(&set) {
            return self.deadlock_search.search_at(time);
        }
        let full_buffers = (!senders.is_empty()).then_some(FullBuffers { held, ceiling });
        self.fail_by_deadlock(&set, full_buffers);
    }

    /// Fails the run by a deadlock of a closed set of instances.
    fn fail_by_deadlock(&mut self, set: &BTreeSet<InstanceId>, full_buffers: Option<FullBuffers>) {
        let cycle = WaitCycle::of(&self.wait_graph(), set, |id| self.name(id));
        let advice = if cycle.is_for_held_back() {
            DeadlockAdvice::RaiseAtOnce
        } else if cycle.is_for_declaration() {
            DeadlockAdvice::DeclareFields
        } else {
            DeadlockAdvice::ReorderCalls
        };
        self.fail(Cause::Deadlock(Deadlock {
            cycle,
            full_buffers,
            advice,
        }));
    }

    /// The closed set among the members of a probe, with the counts known.
    fn still_stuck(&self, probe: &Probe) -> Option<BTreeSet<InstanceId>> {
        let is_declared = |conduit| {
            let ends = self.fields.get(&conduit);
            ends.is_some_and(|ends| ends.both().is_some())
        };
        let is_about_to_end = |id: InstanceId, on: &AwaitedConduit| match on.reported.field {
            true => is_declared(on.reported.conduit),
            false => on.is_about_to_join() || probe.is_in_flight(id, on),
        };
        let waits = self.wait_graph();
        let mut stuck = stuck(&waits, is_about_to_end);
        stuck.retain(|id| probe.members.contains_key(id));
        closed_set(&waits, &stuck)
    }

    /// The waits for room in a buffer in a set of instances.
    fn waits_for_room(&self, set: &BTreeSet<InstanceId>) -> Vec<(InstanceId, WaitOn)> {
        let waits = self.wait_graph();
        let mut senders = Vec::new();
        for &id in set {
            let for_room = waits[&id].awaited.iter().filter(|on| on.is_for_room());
            senders.extend(for_room.map(|on| (id, on.reported.clone())));
        }
        senders
    }

    /// Until when the ranks of parallel programs in the set may still report a better explanation;
    /// `None` if the time has passed.
    fn rank_reports_until(&self, set: &BTreeSet<InstanceId>) -> Option<Duration> {
        let waits = self.deadlock_search.graph();
        let parallel = set.iter().filter(|id| !self.members[**id].ranks.is_empty());
        let until = parallel.map(|id| waits[id].reported_at + RANK_REPORT_TIME);
        until.max().filter(|until| *until > self.now)
    }

    /// Raises the buffer of a conduit for a sender that waits for room.
    fn raise_buffer(&mut self, id: InstanceId, on: &WaitOn) {
        let Some(planned) = self.plan.conduit(self.described_conduit(on.conduit)) else {
            return;
        };
        let raised = self.deadlock_search.raised.entry(on.conduit);
        let raised = raised.or_insert_with(|| RaisedBuffer::original(planned));
        raised.raise(on);
        let RaisedBuffer {
            messages, bytes, ..
        } = *raised;
        let text = match planned.is_pulled() {
            true => format!(
                "waits for room for a version of the field on {} while {}.{} waits for it: it keeps twice as many (their number can \
                 be set: `versions` under `titin: fields`)",
                on.port, on.peer, on.peer_port
            ),
            false => format!(
                "waits for room to send on {} to {}.{} while that waits for it: buffer raised to {messages} \
                 messages or {bytes} bytes (its size can be set under `titin: buffer`)",
                on.port, on.peer, on.peer_port
            ),
        };
        self.log(Level::Warning, Some(id), text);
        let message = ToProgram::RaiseBuffer {
            instance: self.name(id).to_owned(),
            conduit: on.conduit,
            messages,
            bytes,
        };
        self.tell_instance(id, message);
    }
}

/// A wait for a member that is held back, as a wait for each member that runs.
fn behind_running(
    on: &AwaitedConduit,
    ensemble: &FullEnsemble,
) -> impl Iterator<Item = AwaitedConduit> {
    let running = ensemble.running.iter();
    running.map(|&peer| AwaitedConduit {
        peer,
        held_back: Some(ensemble.at_once),
        ..on.clone()
    })
}

/// The memory of the messages in the buffers of the senders.
fn buffered_bytes(senders: &[(InstanceId, WaitOn)]) -> u64 {
    senders.iter().fold(0, |held: u64, (_, on)| {
        held.saturating_add(on.ahead_bytes)
            .saturating_add(on.ahead.saturating_mul(MESSAGE_OVERHEAD))
    })
}
