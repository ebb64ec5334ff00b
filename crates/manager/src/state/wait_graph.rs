//! Reported waits as a graph, and the cycles of the graph.
//!
//! An edge leads from an instance that waits to each peer that can end the wait. A single peer can
//! end a wait, so an instance is stuck only while all its peers are stuck too. [`stuck`] finds the
//! largest set of stuck instances, and [`closed_set`] a part of the set that no edge leaves.
//! [`WaitCycle`] holds the facts about such a part, and describes the facts in words.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write as _};
use std::time::Duration;

use titin_wire::control::WaitOn;

use crate::plan::InstanceId;

/// The waits of instances.
pub(super) type WaitGraph = BTreeMap<InstanceId, ReportedWait>;

/// A reported wait. Printed, the text follows the instance's name.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ReportedWait {
    /// The instance's own number for the wait.
    pub(super) number: u64,
    pub(super) reported_at: Duration,
    /// Whether the instance polls, or waits with a time limit, instead of waiting until a message
    /// comes.
    pub(super) polls: bool,
    /// The alternatives. Any single alternative ends the wait.
    pub(super) awaited: Vec<AwaitedConduit>,
}

/// A conduit of the plan, as an alternative of a wait.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct AwaitedConduit {
    /// The instance at the other end.
    pub(super) peer: InstanceId,
    pub(super) reported: WaitOn,
    /// Whether the conduit carries a field, and the sender keeps versions of the field.
    pub(super) is_pulled: bool,
    /// The instance at the other end is a member of an ensemble that is not started before another
    /// member has ended: how many members run at a time. `peer` is the other member.
    pub(super) held_back: Option<usize>,
}

impl ReportedWait {
    /// Whether one of the alternatives is room in a buffer.
    pub(super) fn is_for_room(&self) -> bool {
        self.awaited.iter().any(AwaitedConduit::is_for_room)
    }

    /// Whether one of the alternatives is the declaration of a field at the other end.
    pub(super) fn is_for_declaration(&self) -> bool {
        self.awaited.iter().any(|on| on.reported.field)
    }

    /// The limit of an ensemble, if one of the alternatives is a member that the limit holds back.
    fn held_back(&self) -> Option<usize> {
        self.awaited.iter().find_map(|on| on.held_back)
    }

    fn peers(&self) -> impl Iterator<Item = InstanceId> {
        self.awaited.iter().map(|on| on.peer)
    }
}

impl AwaitedConduit {
    /// Whether the instance waits for room in a buffer. An instance that closes waits for its
    /// receiver to take the last version of a field, and needs no room.
    pub(super) fn is_for_room(&self) -> bool {
        let WaitOn {
            sends,
            field,
            closes,
            joins,
            ..
        } = self.reported;
        sends && !field && !closes && !joins && self.held_back.is_none()
    }

    /// Whether the instance waits for a receiver that is coming: only a limit of an ensemble holds one
    /// back. The receiver may have joined already, while the instance still connects to it.
    pub(super) fn is_about_to_join(&self) -> bool {
        self.reported.joins && self.held_back.is_none()
    }
}

impl fmt::Display for ReportedWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// The most alternatives in the text.
        const MOST: usize = 4;
        f.write_str(match self.polls {
            true => "polls, or waits with a time limit,",
            false => "waits",
        })?;
        // A member that is held back stands there once for each member that would make room.
        let mut awaited: Vec<&AwaitedConduit> = self.awaited.iter().collect();
        awaited.dedup_by_key(|on| (on.reported.conduit, on.reported.sends));
        for (number, on) in awaited.iter().take(MOST).enumerate() {
            let separator = if number == 0 { " " } else { ", or " };
            write!(f, "{separator}{on}")?;
        }
        match awaited.len().saturating_sub(MOST) {
            0 => Ok(()),
            more => write!(f, ", or {more} more"),
        }
    }
}

impl fmt::Display for AwaitedConduit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let WaitOn {
            port,
            peer,
            peer_port,
            count,
            ..
        } = &self.reported;
        let number = count.saturating_add(1);
        match (self.reported.sends, self.is_pulled) {
            _ if self.reported.field => write!(
                f,
                "on {port}, for {peer} to declare the field at its end, {peer}.{peer_port}"
            ),
            (true, _) if self.reported.closes => write!(
                f,
                "for {peer}.{peer_port} to take the last version of the field on {port}, to close"
            ),
            (true, _) if self.reported.joins => write!(
                f,
                "to send message {number} on {port}, for {peer} to join the run"
            ),
            (true, true) => write!(
                f,
                "for room for a version of the field on {port}, for {peer}.{peer_port} to take one"
            ),
            (false, true) => write!(
                f,
                "for a version of the field on {port}, for {peer}.{peer_port}"
            ),
            (true, false) => write!(
                f,
                "to send message {number} on {port} (its buffer is full), for {peer}.{peer_port}"
            ),
            (false, false) => write!(
                f,
                "to receive message {number} on {port}, for {peer}.{peer_port}"
            ),
        }?;
        match self.held_back {
            None => Ok(()),
            Some(at_once) => write!(
                f,
                ", which starts when another member has ended (`at_once: {at_once}`)"
            ),
        }
    }
}

/// The largest set of instances whose waits only members of the set can end. `is_about_to_end` says
/// whether a wait ends anyway.
///
/// The set begins with all waiting instances. The function removes instances with a peer outside of
/// the set until no such instance is left. An instance that computes, is done or has not joined is
/// in no wait, so the set never has such an instance.
pub(super) fn stuck(
    waits: &WaitGraph,
    is_about_to_end: impl Fn(InstanceId, &AwaitedConduit) -> bool,
) -> BTreeSet<InstanceId> {
    let mut stuck: BTreeSet<InstanceId> = waits.keys().copied().collect();
    loop {
        let can_go_on = |id: &InstanceId| {
            let mut awaited = waits[id].awaited.iter();
            awaited.any(|on| is_about_to_end(*id, on) || !stuck.contains(&on.peer))
        };
        let free: Vec<InstanceId> = stuck.iter().copied().filter(can_go_on).collect();
        if free.is_empty() {
            return stuck;
        }
        for id in free {
            stuck.remove(&id);
        }
    }
}

/// A part of a stuck set that no wait leaves.
pub(super) fn closed_set(
    waits: &WaitGraph,
    stuck: &BTreeSet<InstanceId>,
) -> Option<BTreeSet<InstanceId>> {
    let mut start = *stuck.first()?;
    loop {
        let reachable = reachable_from(waits, start);
        let waiters = waiters_for(waits, start, &reachable);
        match reachable.iter().find(|id| !waiters.contains(id)) {
            // No wait leads back from `other`, so fewer instances are reachable from `other`.
            Some(&other) => start = other,
            None => return Some(reachable),
        }
    }
}

/// The instances among `among` that wait for `target`, directly or through others.
fn waiters_for(
    waits: &WaitGraph,
    target: InstanceId,
    among: &BTreeSet<InstanceId>,
) -> BTreeSet<InstanceId> {
    let mut direct: BTreeMap<InstanceId, Vec<InstanceId>> = BTreeMap::new();
    for &id in among {
        for peer in waits[&id].peers() {
            direct.entry(peer).or_default().push(id);
        }
    }
    let mut waiters = BTreeSet::new();
    let mut rest = vec![target];
    while let Some(id) = rest.pop() {
        for &waiter in direct.get(&id).map_or(&[][..], Vec::as_slice) {
            if waiters.insert(waiter) {
                rest.push(waiter);
            }
        }
    }
    waiters
}

/// The instances reachable from `start` by waits, directly or through others.
fn reachable_from(waits: &WaitGraph, start: InstanceId) -> BTreeSet<InstanceId> {
    let mut reachable = BTreeSet::new();
    let mut rest = vec![start];
    while let Some(id) = rest.pop() {
        for peer in waits[&id].peers() {
            if reachable.insert(peer) {
                rest.push(peer);
            }
        }
    }
    reachable
}

/// Instances that wait for each other.
#[derive(Debug, Clone, PartialEq)]
pub struct WaitCycle {
    /// The instances in the order of their waits: each waits for the next, the last for the first.
    members: Vec<WaitingInstance>,
    /// Other instances that wait for a member, directly or through others.
    dependents: Vec<WaitingInstance>,
}

/// An instance with a wait.
#[derive(Debug, Clone, PartialEq)]
struct WaitingInstance {
    id: InstanceId,
    name: String,
    wait: ReportedWait,
}

impl WaitCycle {
    /// The cycle in a [closed set](closed_set). The first alternative of each wait leads to the
    /// cycle.
    pub(super) fn of<'a>(
        waits: &WaitGraph,
        set: &BTreeSet<InstanceId>,
        name: impl Fn(InstanceId) -> &'a str,
    ) -> Self {
        let cycle = cycle_in(waits, *set.first().expect("a closed set has members"));
        let waiting = |&id: &InstanceId| WaitingInstance {
            id,
            name: name(id).to_owned(),
            wait: waits[&id].clone(),
        };
        let others = set.iter().filter(|id| !cycle.contains(id));
        WaitCycle {
            members: cycle.iter().map(waiting).collect(),
            dependents: others.map(waiting).collect(),
        }
    }

    /// The instances of the cycle, in the order of their waits.
    pub fn members(&self) -> impl Iterator<Item = InstanceId> {
        self.members.iter().map(|member| member.id)
    }

    /// Other instances that wait for a member.
    pub fn dependents(&self) -> impl Iterator<Item = InstanceId> {
        self.dependents.iter().map(|dependent| dependent.id)
    }

    /// The members that poll, or wait with a time limit.
    pub fn polling_members(&self) -> impl Iterator<Item = InstanceId> {
        let polling = self.members.iter().filter(|member| member.wait.polls);
        polling.map(|member| member.id)
    }

    /// Whether an instance waits for a field to be declared at the other end.
    pub(super) fn is_for_declaration(&self) -> bool {
        self.waits().any(ReportedWait::is_for_declaration)
    }

    /// Whether an instance waits for a member of an ensemble that is held back.
    pub(super) fn is_for_held_back(&self) -> bool {
        self.waits().any(|wait| wait.held_back().is_some())
    }

    fn waits(&self) -> impl Iterator<Item = &ReportedWait> {
        let all = self.members.iter().chain(&self.dependents);
        all.map(|waiting| &waiting.wait)
    }

    /// The cycle in words, a line for each instance, behind a first line that begins with
    /// `heading`.
    pub(super) fn text(&self, heading: &str) -> String {
        let mut text = match self.members.len() {
            1 => format!("{heading}: an instance waits for itself"),
            n => format!("{heading}: {n} instances wait for each other in a cycle"),
        };
        for WaitingInstance { name, wait, .. } in &self.members {
            let _ = write!(text, "\n  {name} {wait}");
        }
        if !self.dependents.is_empty() {
            text.push_str("\nand these wait for them:");
        }
        for WaitingInstance { name, wait, .. } in &self.dependents {
            let _ = write!(text, "\n  {name} {wait}");
        }
        text
    }
}

/// The cycle to which the first alternatives of the waits lead. The cycle begins with the smallest
/// id, so the text about a cycle is always the same.
fn cycle_in(waits: &WaitGraph, start: InstanceId) -> Vec<InstanceId> {
    let mut path: Vec<InstanceId> = Vec::new();
    let mut id = start;
    while !path.contains(&id) {
        path.push(id);
        id = waits[&id].awaited[0].peer;
    }
    let begin = path.iter().position(|&other| other == id).unwrap_or(0);
    let mut cycle = path.split_off(begin);
    let smallest = (0..cycle.len()).min_by_key(|&i| cycle[i]).unwrap_or(0);
    cycle.rotate_left(smallest);
    cycle
}

/// A deadlock: a [cycle of waits](WaitCycle) that nothing can end.
#[derive(Debug, Clone, PartialEq)]
pub struct Deadlock {
    /// The instances, each with its wait.
    pub cycle: WaitCycle,
    /// The buffers of senders in the cycle, if there are any.
    pub full_buffers: Option<FullBuffers>,
    /// The advice for the user.
    pub advice: DeadlockAdvice,
}

/// Full buffers, without room for a raise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FullBuffers {
    /// Bytes in the buffers.
    pub held: u64,
    /// The most bytes for raised buffers on this host.
    pub ceiling: u64,
}

/// How to avoid the deadlock the next time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeadlockAdvice {
    /// Declare a field at both of its ends.
    DeclareFields,
    /// Let more members of an ensemble run at a time.
    RaiseAtOnce,
    /// Change the order in which the programs send and receive.
    ReorderCalls,
}

impl fmt::Display for Deadlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.cycle.text("deadlock"))?;
        let Some(FullBuffers { held, ceiling }) = self.full_buffers else {
            return Ok(());
        };
        write!(
            f,
            "\nTheir buffers hold {held} bytes already, and {ceiling} is the most that this host allows: does \
             a component send more often than its peer receives?"
        )
    }
}
