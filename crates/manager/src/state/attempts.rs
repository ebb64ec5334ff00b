//! Members of ensembles that are started again after they have joined.
//!
//! Only a driver can know what a failed member has done with its messages, and only if the member has
//! exchanged messages with this driver alone. The driver gets an error, and sends again what is to be
//! done again. That send has the member started again. Each attempt has conduits of its own, so nothing
//! of an earlier attempt reaches a later one.

use std::collections::HashMap;

use titin_wire::attempts::{attempt_name, attempt_of};
use titin_wire::control::{ConduitProfile, Profile};

use super::Manager;
use super::ensemble::with_outcome;
use super::fault::Fault;
use super::member::{InstanceProcess, Member, Membership, ReturnPlan};
use crate::event::Level;
use crate::plan::{ConduitId, InstanceId, Plan, PlannedConduit, StartMode};

/// The most conduits for later attempts in a run. Each takes some hundred bytes in the driver's
/// process.
const MOST_CONDUITS: usize = 1 << 16;

/// The conduits of later attempts.
#[derive(Debug, Default)]
pub(super) struct Attempts {
    /// The members that may be started again after they have joined, each with its driver.
    drivers: HashMap<InstanceId, InstanceId>,
    /// The conduits of these members.
    conduits: Vec<ConduitId>,
    /// The places of these conduits in the list.
    places: HashMap<ConduitId, u32>,
    /// The number of the first conduit of a later attempt.
    first: u32,
    /// The most attempts but the first.
    most: u32,
}

impl Attempts {
    pub(super) fn of(plan: &Plan) -> Self {
        let mut attempts = Attempts {
            first: plan.conduits.len() as u32,
            ..Attempts::default()
        };
        let retries = plan.ensembles.iter().map(|ensemble| ensemble.retry);
        let retry = retries.max().unwrap_or(0);
        // Steps are counted over all conduits of a port.
        if retry == 0 || plan.counts_steps() {
            return attempts;
        }
        attempts.find_members(plan);
        let count = attempts.conduits.len();
        let room = MOST_CONDUITS.checked_div(count).unwrap_or(0);
        attempts.most = retry.min(room as u32);
        attempts
    }

    /// Finds the members that exchange messages with one driver alone.
    fn find_members(&mut self, plan: &Plan) {
        let may_retry = |id: InstanceId| {
            let place = plan.ensemble_of(id);
            place.is_some_and(|place| plan.ensembles[place].retry > 0)
        };
        let mut ends: HashMap<InstanceId, Vec<(ConduitId, &PlannedConduit)>> = HashMap::new();
        let mut at_slot: HashMap<(InstanceId, &str, Option<u32>), u32> = HashMap::new();
        for (id, conduit) in plan.numbered() {
            for end in [&conduit.from, &conduit.to] {
                let port: &str = &end.port;
                *at_slot.entry((end.instance, port, end.slot)).or_default() += 1;
                if may_retry(end.instance) {
                    ends.entry(end.instance).or_default().push((id, conduit));
                }
            }
        }
        let mut members: Vec<_> = ends.into_iter().collect();
        members.sort_unstable_by_key(|(id, _)| *id);
        for (id, conduits) in members {
            let driver_end = |conduit: &PlannedConduit| match conduit.from.instance == id {
                true => conduit.to.clone(),
                false => conduit.from.clone(),
            };
            let driver = driver_end(conduits[0].1).instance;
            let is_fit = |(_, conduit): &(ConduitId, &PlannedConduit)| {
                let end = driver_end(conduit);
                let port: &str = &end.port;
                end.instance == driver
                    && end.slot.is_some()
                    && at_slot[&(driver, port, end.slot)] == 1
                    && conduit.pattern.is_none()
            };
            let is_sent_to = conduits
                .iter()
                .any(|(_, conduit)| conduit.to.instance == id);
            let is_started = matches!(plan.instances[id].start, StartMode::Program(_))
                && plan.hosting(id).is_none();
            if driver == id
                || may_retry(driver)
                || !is_sent_to
                || !is_started
                || !conduits.iter().all(is_fit)
            {
                continue;
            }
            self.drivers.insert(id, driver);
            for (conduit, _) in conduits {
                self.places.insert(conduit, self.conduits.len() as u32);
                self.conduits.push(conduit);
            }
        }
    }

    /// How many numbers the conduits of later attempts take.
    pub(super) fn conduit_count(&self) -> u32 {
        self.most * self.conduits.len() as u32
    }

    /// The number of a conduit for an attempt of a member.
    fn number(&self, conduit: ConduitId, attempt: u32) -> ConduitId {
        match (attempt.checked_sub(1), self.places.get(&conduit)) {
            (Some(later), Some(place)) => {
                ConduitId(self.first + later * self.conduits.len() as u32 + place)
            }
            _ => conduit,
        }
    }

    /// The conduit of the description behind the number of a conduit.
    fn described(&self, number: ConduitId) -> ConduitId {
        let later = number.0.checked_sub(self.first);
        match later.filter(|later| *later < self.conduit_count()) {
            Some(later) => self.conduits[later as usize % self.conduits.len()],
            None => number,
        }
    }
}

impl Manager {
    /// The number of a conduit for the present attempt of an instance.
    pub(super) fn conduit_number(&self, id: InstanceId, conduit: ConduitId) -> ConduitId {
        self.attempts.number(conduit, self.members[id].attempt)
    }

    /// The conduit of the description behind the number of a conduit.
    pub(super) fn described_conduit(&self, number: ConduitId) -> ConduitId {
        self.attempts.described(number)
    }

    /// The later attempts of a peer for which an instance gets ends of a conduit, with the numbers of the
    /// conduit.
    pub(super) fn later_attempts(
        &self,
        id: InstanceId,
        peer: InstanceId,
        conduit: ConduitId,
    ) -> impl Iterator<Item = (u32, ConduitId)> {
        let is_driver = self.attempts.drivers.get(&peer) == Some(&id);
        let most = if is_driver {
            self.most_attempts(peer)
        } else {
            0
        };
        (1..=most).map(move |attempt| (attempt, self.attempts.number(conduit, attempt)))
    }

    fn most_attempts(&self, member: InstanceId) -> u32 {
        let place = self.plan.ensemble_of(member);
        let retry = place.map_or(0, |place| self.plan.ensembles[place].retry);
        retry.min(self.attempts.most)
    }

    /// The name of an instance for its peers.
    pub(super) fn name_for_peers(&self, id: InstanceId) -> String {
        attempt_name(self.name(id), self.members[id].attempt)
    }

    /// Has a failed member that has joined started again, once its process has ended, if that can be
    /// right and there is an attempt left. Returns whether the run goes on.
    pub(super) fn come_back(&mut self, id: InstanceId, fault: &Fault) -> bool {
        let (Some(&driver), Some(place)) =
            (self.attempts.drivers.get(&id), self.plan.ensemble_of(id))
        else {
            return false;
        };
        let is_of_program = matches!(
            fault.underlying(),
            Fault::Reported(_) | Fault::WithoutClosing(_) | Fault::LinkLost(_)
        );
        let member = &self.members[id];
        let has_process = matches!(
            member.process,
            InstanceProcess::Running(_) | InstanceProcess::Ended(_)
        );
        let returns = match self.members[driver].membership {
            Membership::NotJoined => ReturnPlan::Unseen,
            Membership::Joined(_) => ReturnPlan::OnRequest,
            Membership::Done | Membership::LinkLost(_) => return false,
        };
        let has_field = || {
            let mut ends = self.conduit_ends[id].iter();
            ends.any(|(conduit, _)| self.fields.contains_key(conduit))
        };
        let retry = self.plan.ensembles[place].retry;
        let restarts = member.restarts + 1;
        if !is_of_program
            || !has_process
            || restarts > retry
            || member.attempt >= self.most_attempts(id)
            || self.silent_host_text(self.host_of(id)).is_some()
            || has_field()
        {
            return false;
        }
        let when = match returns {
            ReturnPlan::Unseen => "",
            _ => " when its driver sends to it, which gets an error for what it has not answered",
        };
        let text = with_outcome(
            fault,
            &format!("it is started again ({restarts} of {retry}){when}"),
        );
        self.log(Level::Warning, Some(id), text);
        let member = &mut self.members[id];
        member.fault = Some(fault.clone());
        member.left_out = true;
        member.return_plan = Some(returns);
        // A driver that joins now is not led to the process that ends.
        member.membership = Membership::LinkLost("it has failed".to_owned());
        self.deadlock_search.forget(id, self.now);
        self.deadlock_search.search_soon(self.now);
        self.tell_peers_of_failure(id);
        if matches!(self.members[id].process, InstanceProcess::Running(_)) {
            self.end_process_of(id);
        }
        self.begin_attempt(id);
        self.start_deferred();
        self.assess_errors_after_an_end();
        true
    }

    /// An instance sends to the next attempt of a failed member.
    pub(super) fn resume(&mut self, driver: InstanceId, member: &str) {
        let (name, attempt) = attempt_of(member);
        let Some(&id) = self.names.get(name) else {
            return;
        };
        let is_driver = self.attempts.drivers.get(&id) == Some(&driver);
        let member = &mut self.members[id];
        if !is_driver
            || member.return_plan != Some(ReturnPlan::OnRequest)
            || Some(attempt) != member.attempt.checked_add(1)
        {
            return;
        }
        member.return_plan = Some(ReturnPlan::Requested);
        self.begin_attempt(id);
        self.start_deferred();
    }

    /// Begins the next attempt of a member, if it is wanted and the process of the last one has ended.
    pub(super) fn begin_attempt(&mut self, id: InstanceId) {
        let member = &self.members[id];
        let has_ended = matches!(member.process, InstanceProcess::Ended(_));
        let is_seen = match member.return_plan {
            Some(ReturnPlan::Unseen) => false,
            Some(ReturnPlan::Requested) => true,
            Some(ReturnPlan::OnRequest) | None => return,
        };
        if !has_ended || self.run_state.failure().is_some() {
            return;
        }
        for link in self.links.values_mut() {
            link.members.retain(|member| *member != id);
        }
        let member = &mut self.members[id];
        let recent_log = std::mem::take(&mut member.recent_log);
        *member = Member {
            restarts: member.restarts + 1,
            attempt: member.attempt + u32::from(is_seen),
            recent_log,
            ..Member::new(&self.plan.instances[id].start)
        };
        self.deferred_starts.push(id);
    }

    /// Adds the counts of later attempts to those of the first.
    pub(super) fn merge_attempts(&self, profile: &mut Profile) {
        if self.attempts.conduit_count() == 0 {
            return;
        }
        for event in &mut profile.events {
            let conduit = event.conduit.map(ConduitId);
            event.conduit = conduit.map(|conduit| self.described_conduit(conduit).0);
        }
        let mut merged: HashMap<(u32, bool), usize> = HashMap::new();
        let mut conduits = Vec::with_capacity(profile.conduits.len());
        for mut told in std::mem::take(&mut profile.conduits) {
            let described = self.described_conduit(ConduitId(told.conduit)).0;
            let is_later = described != told.conduit;
            told.conduit = described;
            match merged.get(&(described, told.sends)) {
                Some(&place) if is_later => add(&mut conduits[place], told),
                _ => {
                    merged.insert((described, told.sends), conduits.len());
                    conduits.push(told);
                }
            }
        }
        profile.conduits = conduits;
    }
}

/// Adds the counts of a conduit of a later attempt.
fn add(all: &mut ConduitProfile, later: ConduitProfile) {
    if later.messages > 0 {
        (all.medium, all.streams, all.addresses) = (later.medium, later.streams, later.addresses);
    }
    all.messages = all.messages.saturating_add(later.messages);
    all.bytes = all.bytes.saturating_add(later.bytes);
    all.compressed = all.compressed.saturating_add(later.compressed);
    all.uncompressed_bytes = all
        .uncompressed_bytes
        .saturating_add(later.uncompressed_bytes);
    all.copied = all.copied.saturating_add(later.copied);
    all.by_socket = all.by_socket.saturating_add(later.by_socket);
    all.waiting += later.waiting;
}
