//! Who waits for whom: deadlock found, and full buffers raised.
//!
//! A wait is for any one of several conduits, so an instance is stuck when every peer that could end its wait is
//! stuck too; the largest such set is found by taking out, again and again, whoever waits for somebody who is not in
//! it. Somebody who computes, is done (the wait ends with PortClosed), or has not come yet is not in it.
//!
//! Reports of waits cross messages on their way, so what looks stuck is tried: every member is asked for its counts.
//! If each is still in the same wait, and on no conduit has more been sent than received, then nothing is in flight
//! and nobody can move. In a knot (a part that nothing leads out of) of receives alone that is a deadlock. With a
//! sender among them that waits for room, its buffer is raised instead, up to what the host's memory allows. Whoever waits for a
//! field to be declared at its other end is helped once that is so. Who closes, and waits for the last version of a field to be taken,
//! needs no room.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::time::Duration;

use titin_wire::control::{ToProgram, WaitOn};

use super::{Cause, Manager};
use crate::event::Level;
use crate::plan::{ConduitId, InstanceId};

/// From news of a wait to the search, so that a burst of news costs one search.
const GATHER: Duration = Duration::from_millis(20);

/// Until a trial that proved nothing, or got no answers, is made again.
const AGAIN: Duration = Duration::from_secs(1);

/// Until a deadlock is told in which a parallel program takes part: first its ranks may say which of them has left out a call, and then
/// that is the reason.
const RANKS: Duration = Duration::from_secs(1);

/// What a message takes in memory beside its payload.
const OVERHEAD: u64 = 256;

/// What is known about waits.
#[derive(Debug, Default)]
pub(super) struct Waits {
    waits: Graph,
    search: Option<Duration>,
    trial: Option<Trial>,
    probes: u64,
    raised: BTreeMap<ConduitId, Raised>,
}

/// Who waits, and for what.
pub(super) type Graph = BTreeMap<InstanceId, Wait>;

#[derive(Debug, Clone)]
pub(super) struct Wait {
    pub(super) number: u64,
    /// When it was reported.
    pub(super) since: Duration,
    /// Whether the instance only looks for it again and again.
    pub(super) polls: bool,
    pub(super) on: Vec<Awaited>,
}

/// One thing that would end a wait, at a conduit of the plan.
#[derive(Debug, Clone)]
pub(super) struct Awaited {
    /// The instance at the other end.
    pub(super) peer: InstanceId,
    pub(super) told: WaitOn,
    /// Whether a field goes by it of which the sender keeps versions.
    pulled: bool,
}

/// Members of a set that looks stuck, asked for their counts.
#[derive(Debug)]
struct Trial {
    probe: u64,
    members: BTreeMap<InstanceId, u64>,
    missing: BTreeSet<InstanceId>,
    counts: HashMap<(ConduitId, InstanceId), u64>,
    until: Duration,
}

/// A buffer that was raised.
#[derive(Debug, Clone, Copy)]
struct Raised {
    times: u64,
    messages: u64,
    bytes: u64,
}

impl Waits {
    pub(super) fn deadline(&self) -> Option<Duration> {
        let trial = self.trial.as_ref().map(|trial| trial.until);
        self.search.into_iter().chain(trial).min()
    }

    pub(super) fn graph(&self) -> &Graph {
        &self.waits
    }

    /// A number for a question.
    pub(super) fn next_probe(&mut self) -> u64 {
        self.probes += 1;
        self.probes
    }

    pub(super) fn waits(&self, id: InstanceId) -> bool {
        self.waits.contains_key(&id)
    }

    /// Whether nothing is being asked or looked for.
    #[cfg(test)]
    pub(super) fn is_idle(&self) -> bool {
        self.trial.is_none()
    }

    /// The number of the wait that an instance is in.
    #[cfg(test)]
    pub(super) fn number(&self, id: InstanceId) -> Option<u64> {
        self.waits.get(&id).map(|wait| wait.number)
    }

    pub(super) fn raised(&self) -> impl Iterator<Item = (ConduitId, u64, u64)> {
        self.raised
            .iter()
            .map(|(&conduit, raised)| (conduit, raised.times, raised.messages))
    }

    pub(super) fn proceed(&mut self, id: InstanceId, number: u64, now: Duration) {
        if self
            .waits
            .get(&id)
            .is_some_and(|wait| wait.number <= number)
        {
            self.forget(id, now);
        }
    }

    /// The instance waits no more, or takes no part any more.
    pub(super) fn forget(&mut self, id: InstanceId, now: Duration) {
        self.waits.remove(&id);
        if self
            .trial
            .take_if(|trial| trial.members.contains_key(&id))
            .is_some()
        {
            // The others that were asked may still be stuck, and have reported it once and for all.
            self.search_at(now + AGAIN);
        }
    }

    pub(super) fn search_soon(&mut self, now: Duration) {
        self.search_at(now + GATHER);
    }

    fn search_at(&mut self, at: Duration) {
        self.search = Some(self.search.map_or(at, |before| before.min(at)));
    }
}

impl Manager {
    pub(super) fn waiting(&mut self, id: InstanceId, number: u64, on: Vec<WaitOn>) {
        if self.members[id].joined().is_none() || on.is_empty() {
            return;
        }
        let Some(on) = on.into_iter().map(|told| self.awaited(id, told)).collect() else {
            let text = "waits on a conduit that it has no end of; passed over";
            return self.log(Level::Warning, Some(id), text);
        };
        self.waits.forget(id, self.now);
        let wait = Wait {
            number,
            since: self.now,
            polls: false,
            on,
        };
        self.stall.begin(id, wait.is_for_room(), self.now);
        self.waits.waits.insert(id, wait);
        self.waits.search_soon(self.now);
    }

    /// What an instance waits on, if it has that end of that conduit.
    pub(super) fn awaited(&self, id: InstanceId, told: WaitOn) -> Option<Awaited> {
        let planned = self.plan.conduit(told.conduit)?;
        let (here, there) = match told.sends {
            true => (&planned.from, &planned.to),
            false => (&planned.to, &planned.from),
        };
        let pulled = planned.is_pulled();
        (here.instance == id).then_some(Awaited {
            peer: there.instance,
            told,
            pulled,
        })
    }

    /// Looks for a set that is stuck, when it is time to.
    pub(super) fn search_deadlock(&mut self) {
        if self.course.failure().is_some() {
            (self.waits.search, self.waits.trial) = (None, None);
            return;
        }
        if self
            .waits
            .trial
            .as_ref()
            .is_some_and(|trial| trial.until <= self.now)
        {
            self.waits.trial = None;
            self.waits.search_at(self.now);
        }
        if self.waits.trial.is_some() || self.waits.search.is_none_or(|at| at > self.now) {
            return;
        }
        self.waits.search = None;
        let stuck = stuck(&self.waits.waits, |_, _| false);
        if !stuck.is_empty() {
            self.probe(stuck);
        }
    }

    fn probe(&mut self, stuck: BTreeSet<InstanceId>) {
        let mut asked: BTreeMap<InstanceId, BTreeSet<ConduitId>> = BTreeMap::new();
        for &id in &stuck {
            for on in &self.waits.waits[&id].on {
                asked.entry(id).or_default().insert(on.told.conduit);
                asked.entry(on.peer).or_default().insert(on.told.conduit);
            }
        }
        let probe = self.waits.next_probe();
        let members = stuck
            .iter()
            .map(|&id| (id, self.waits.waits[&id].number))
            .collect();
        let until = self.now + AGAIN;
        self.waits.trial = Some(Trial {
            probe,
            members,
            missing: stuck,
            counts: HashMap::new(),
            until,
        });
        for (id, conduits) in asked {
            let instance = self.name(id).to_owned();
            if let Some(link) = self.members[id].joined().map(|joined| joined.link) {
                let conduits = conduits.into_iter().collect();
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

    pub(super) fn counted(
        &mut self,
        id: InstanceId,
        probe: u64,
        wait: Option<u64>,
        counts: &[(ConduitId, u64)],
    ) {
        let Some(trial) = self
            .waits
            .trial
            .as_mut()
            .filter(|trial| trial.probe == probe)
        else {
            return;
        };
        if trial.members.get(&id).copied() != wait {
            self.waits.trial = None;
            self.waits.search_at(self.now + AGAIN);
            return;
        }
        trial.counts.extend(
            counts
                .iter()
                .map(|&(conduit, count)| ((conduit, id), count)),
        );
        trial.missing.remove(&id);
        if trial.missing.is_empty()
            && let Some(trial) = self.waits.trial.take()
        {
            self.conclude(&trial);
        }
    }

    /// Everybody has answered from the wait that it was in when asked: what follows?
    fn conclude(&mut self, trial: &Trial) {
        let in_flight = |id: InstanceId, on: &Awaited| {
            let count = |of| trial.counts.get(&(on.told.conduit, of));
            if on.told.field {
                return self
                    .fields
                    .get(&on.told.conduit)
                    .is_some_and(|ends| ends.both().is_some());
            }
            !on.told.sends && count(id).is_none_or(|received| count(on.peer) != Some(received))
        };
        let stuck = stuck(&self.waits.waits, in_flight);
        let stuck: BTreeSet<InstanceId> = stuck
            .into_iter()
            .filter(|id| trial.members.contains_key(id))
            .collect();
        let Some(knot) = knot(&self.waits.waits, &stuck) else {
            return self.waits.search_at(self.now + AGAIN);
        };
        let senders: Vec<(InstanceId, WaitOn)> = knot
            .iter()
            .flat_map(|&id| {
                let for_room = self.waits.waits[&id]
                    .on
                    .iter()
                    .filter(|on| on.is_for_room());
                for_room.map(move |on| (id, on.told.clone()))
            })
            .collect();
        let held: u64 = senders.iter().fold(0, |held, (_, on)| {
            held.saturating_add(on.ahead_bytes)
                .saturating_add(on.ahead.saturating_mul(OVERHEAD))
        });
        if senders.is_empty() || held > self.plan.terms.ceiling {
            let parallel = knot
                .iter()
                .filter(|id| !self.members[**id].ranks.is_empty());
            let told = parallel.map(|id| self.waits.waits[id].since + RANKS).max();
            if let Some(told) = told.filter(|told| *told > self.now) {
                return self.waits.search_at(told);
            }
            let mut text = show_cycle(&self.waits.waits, &knot, "deadlock", |id| self.name(id));
            if !senders.is_empty() {
                let _ = write!(
                    text,
                    "\nTheir buffers hold {held} bytes already, and {} is the most that this host allows: does \
                     a component send more often than its peer receives?",
                    self.plan.terms.ceiling
                );
            }
            let undeclared = knot
                .iter()
                .any(|id| self.waits.waits[id].on.iter().any(|on| on.told.field));
            return self.fail(Cause::Deadlock {
                cycle: text,
                undeclared,
            });
        }
        for (id, on) in senders {
            self.raise(id, &on);
        }
        // The senders report their next wait; if they do not get through, this one is looked at again.
        self.waits.search_at(self.now + AGAIN);
    }

    fn raise(&mut self, id: InstanceId, on: &WaitOn) {
        let Some(planned) = self.plan.conduit(on.conduit) else {
            return;
        };
        let fresh = Raised {
            times: 0,
            messages: planned.buffer_messages,
            bytes: planned.buffer_bytes,
        };
        let raised = self.waits.raised.entry(on.conduit).or_insert(fresh);
        raised.times += 1;
        raised.messages = raised.messages.max(on.ahead).max(1).saturating_mul(4);
        // The limit that held it back may be the one in bytes; unknown counts as full.
        if on.ahead_bytes == 0 || on.ahead_bytes > raised.bytes / 2 {
            raised.bytes = raised.bytes.max(on.ahead_bytes).max(1).saturating_mul(2);
        }
        let Raised {
            messages, bytes, ..
        } = *raised;
        let instance = self.name(id).to_owned();
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
        if let Some(link) = self.members[id].joined().map(|joined| joined.link) {
            self.tell(
                link,
                ToProgram::RaiseBuffer {
                    instance,
                    conduit: on.conduit,
                    messages,
                    bytes,
                },
            );
        }
    }
}

impl Wait {
    /// Whether it is for room in a buffer, among others.
    pub(super) fn is_for_room(&self) -> bool {
        self.on.iter().any(Awaited::is_for_room)
    }
}

impl Awaited {
    /// Whether it is room in a buffer.
    fn is_for_room(&self) -> bool {
        self.told.sends && !self.told.field && !self.told.closes
    }
}

/// The largest set of instances that can only be helped by each other, given which waits are about to end.
pub(super) fn stuck(
    waits: &Graph,
    ends: impl Fn(InstanceId, &Awaited) -> bool,
) -> BTreeSet<InstanceId> {
    let mut stuck: BTreeSet<InstanceId> = waits.keys().copied().collect();
    loop {
        let helped = |id: &InstanceId| {
            let hope = |on: &Awaited| ends(*id, on) || !stuck.contains(&on.peer);
            waits[id].on.iter().any(hope)
        };
        let free: Vec<InstanceId> = stuck.iter().copied().filter(helped).collect();
        if free.is_empty() {
            return stuck;
        }
        for id in free {
            stuck.remove(&id);
        }
    }
}

/// A part of a stuck set that no wait leads out of.
pub(super) fn knot(waits: &Graph, stuck: &BTreeSet<InstanceId>) -> Option<BTreeSet<InstanceId>> {
    let mut at = *stuck.first()?;
    loop {
        let reach = reach(waits, at);
        let back = back(waits, at, &reach);
        match reach.iter().find(|id| !back.contains(id)) {
            // It cannot come back, so what it reaches is smaller.
            Some(&other) => at = other,
            None => return Some(reach),
        }
    }
}

/// Those within `among` who wait for `to`, or for somebody who does, and so on.
fn back(waits: &Graph, to: InstanceId, among: &BTreeSet<InstanceId>) -> BTreeSet<InstanceId> {
    let mut waiters: BTreeMap<InstanceId, Vec<InstanceId>> = BTreeMap::new();
    for &id in among {
        for on in &waits[&id].on {
            waiters.entry(on.peer).or_default().push(id);
        }
    }
    let mut back = BTreeSet::new();
    let mut rest = vec![to];
    while let Some(id) = rest.pop() {
        for &waiter in waiters.get(&id).map_or(&[][..], Vec::as_slice) {
            if back.insert(waiter) {
                rest.push(waiter);
            }
        }
    }
    back
}

/// Everybody whom an instance waits for, and whom those wait for, and so on.
fn reach(waits: &Graph, from: InstanceId) -> BTreeSet<InstanceId> {
    let mut reach = BTreeSet::new();
    let mut rest = vec![from];
    while let Some(id) = rest.pop() {
        for peer in waits[&id].on.iter().map(|on| on.peer) {
            if reach.insert(peer) {
                rest.push(peer);
            }
        }
    }
    reach
}

/// A wait cycle within a knot, line by line behind what it begins with, and who else is in it.
pub(super) fn show_cycle<'a>(
    waits: &Graph,
    knot: &BTreeSet<InstanceId>,
    begin: &str,
    name: impl Fn(InstanceId) -> &'a str,
) -> String {
    let next = |id: InstanceId| waits[&id].on[0].peer;
    let mut cycle: Vec<InstanceId> = Vec::new();
    let mut at = *knot.first().expect("a knot has members");
    while !cycle.contains(&at) {
        cycle.push(at);
        at = next(at);
    }
    let start = cycle.iter().position(|&id| id == at).unwrap_or(0);
    let mut cycle = cycle.split_off(start);
    // From the smallest on, so that the same deadlock reads the same.
    let first = (0..cycle.len()).min_by_key(|&i| cycle[i]).unwrap_or(0);
    cycle.rotate_left(first);
    let mut text = match cycle.len() {
        1 => format!("{begin}: an instance waits for itself"),
        n => format!("{begin}: {n} instances wait for each other in a cycle"),
    };
    let mut line = |id: InstanceId| {
        let _ = write!(text, "\n  {} {}", name(id), describe(&waits[&id]));
    };
    cycle.iter().copied().for_each(&mut line);
    let others: Vec<InstanceId> = knot
        .iter()
        .copied()
        .filter(|id| !cycle.contains(id))
        .collect();
    if !others.is_empty() {
        text.push_str("\nand these wait for them:");
        for id in others {
            let _ = write!(text, "\n  {} {}", name(id), describe(&waits[&id]));
        }
    }
    text
}

/// A wait in words; follows the instance's name.
pub(super) fn describe(wait: &Wait) -> String {
    /// Alternatives that are listed.
    const MOST: usize = 4;
    let one = |Awaited { told, pulled, .. }: &Awaited| {
        let WaitOn {
            port,
            peer,
            peer_port,
            count,
            ..
        } = told;
        let number = count.saturating_add(1);
        match told.sends {
            _ if told.field => {
                format!("on {port}, for {peer} to declare the field at its end, {peer}.{peer_port}")
            }
            true if told.closes => {
                format!(
                    "for {peer}.{peer_port} to take the last version of the field on {port}, to close"
                )
            }
            true if *pulled => {
                format!(
                    "for room for a version of the field on {port}, for {peer}.{peer_port} to take one"
                )
            }
            false if *pulled => {
                format!("for a version of the field on {port}, for {peer}.{peer_port}")
            }
            true => {
                format!(
                    "to send message {number} on {port} (its buffer is full), for {peer}.{peer_port}"
                )
            }
            false => format!("to receive message {number} on {port}, for {peer}.{peer_port}"),
        }
    };
    let on = &wait.on;
    let does = if wait.polls {
        "polls, or waits with a time limit,"
    } else {
        "waits"
    };
    let mut text = format!(
        "{does} {}",
        on.iter()
            .take(MOST)
            .map(one)
            .collect::<Vec<_>>()
            .join(", or ")
    );
    if on.len() > MOST {
        let _ = write!(text, ", or {} more", on.len() - MOST);
    }
    text
}
