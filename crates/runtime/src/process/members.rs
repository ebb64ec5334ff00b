//! The instances of this process: an instance asks to join, is let in, and goes.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use titin_transport::Doorbell;
use titin_wire::attempts::{attempt_name, attempt_of};
use titin_wire::control::{Registration, ToManager, Welcome};

use super::clock::ManagerClock;
use super::{FieldHandler, Process, ProcessMember, ProcessState, RouteMedium};
use crate::peer_names::without_rank;
use crate::{Error, Kind, Result};

/// How long the manager may take to answer an instance, besides the time to reach the manager. The
/// manager answers at once, also if other instances have not joined yet.
const TO_ANSWER: Duration = Duration::from_secs(60);

/// The request of an instance to join the run.
pub(super) struct JoinRequest {
    pub(super) bell: Arc<Doorbell>,
    pub(super) since: Instant,
    answer: Option<Result<Welcome>>,
}

impl JoinRequest {
    /// Whether the manager takes too long to answer. A manager out of reach shows earlier, since
    /// dialling fails.
    pub(super) fn is_late(&self, patience: Duration) -> bool {
        self.since.elapsed() >= to_answer(patience)
    }
}

/// How long the manager may take to answer, if reaching the manager may take `patience`.
fn to_answer(patience: Duration) -> Duration {
    patience.saturating_add(TO_ANSWER)
}

impl Process {
    /// From here on this process takes in the manager's answer to an instance. The answer rings the
    /// bell.
    pub(crate) fn expect_answer(
        &self,
        name: &str,
        bell: Arc<Doorbell>,
        fields: Arc<dyn FieldHandler>,
    ) -> Result<()> {
        let mut state = self.lock();
        if state.instances.contains_key(name) || state.join_requests.contains_key(name) {
            let text = format!(
                "instance {name} is open in this process already; close it first, or open another"
            );
            return Err(Error::new(Kind::Usage, text));
        }
        state.join_requests.insert(
            name.to_owned(),
            JoinRequest {
                bell,
                since: Instant::now(),
                answer: None,
            },
        );
        state.fields.insert(name.to_owned(), fields);
        Ok(())
    }

    /// Asks the manager to let an instance in.
    pub(crate) fn ask(&self, mut registration: Registration) {
        registration.endpoint = self.id;
        registration.addresses = self.addresses.get().cloned().unwrap_or_default();
        self.tell(&ToManager::Register(registration));
    }

    /// The manager's answer to an instance that has asked, if the answer has come.
    ///
    /// # Errors
    /// If the manager has refused the instance, the run has failed, or the manager takes too long.
    pub(crate) fn answer(&self, name: &str) -> Result<Option<Welcome>> {
        let mut state = self.lock();
        let request = state.join_requests.get_mut(name).expect("it has asked");
        let (answer, is_late) = (request.answer.take(), request.is_late(self.patience));
        if let Some(answer) = &answer {
            state.join_requests.remove(name);
            if answer.is_ok() {
                state.entering.insert(name.to_owned());
            }
        }
        drop(state);
        if let Some(answer) = answer {
            return answer.map(Some);
        }
        self.check()?;
        if is_late {
            let time = to_answer(self.patience);
            let text = format!(
                "the run's manager has not answered {name} within {time:.0?}: it hangs, or is stopped"
            );
            return Err(Error::new(Kind::Connection, text));
        }
        Ok(None)
    }

    pub(super) fn answered(&self, name: &str, answer: Result<Welcome>) {
        let mut state = self.lock();
        let reached = state.reached;
        // The instance may have given up.
        let Some(request) = state.join_requests.get_mut(name) else {
            return;
        };
        if let Ok(welcome) = &answer {
            // The question went out once there was a link.
            let asked = reached.map_or(request.since, |reached| reached.max(request.since));
            self.clock
                .get_or_init(|| ManagerClock::of_answer(welcome.time, asked));
        }
        request.answer = Some(answer);
        let bell = request.bell.clone();
        drop(state);
        bell.ring();
    }

    /// The manager's clock; before any answer of the manager, the clock of this host.
    pub(crate) fn clock(&self) -> ManagerClock {
        self.clock.get().copied().unwrap_or_default()
    }

    /// Forgets that an instance has asked. The manager may already have let the instance in, or may
    /// do so yet.
    pub(crate) fn cancel_request(&self, name: &str) {
        let mut state = self.lock();
        state.join_requests.remove(name);
        state.fields.remove(name);
        state.branch.take_if(|branch| branch.is_of(name));
    }

    /// Forgets an instance that the manager has let in, and that could not be made.
    pub(crate) fn drop_admitted(&self, name: &str) {
        let mut state = self.lock();
        state.entering.remove(name);
        state.fields.remove(name);
    }

    /// A field is about to be declared: other ranks may use conduits between ranks before this
    /// process knows the numbers of the conduits.
    pub(crate) fn expect_fields(&self) {
        self.lock().has_fields = true;
    }

    /// Takes an instance in: the conduit ends of the instance get their carriers, now or when the
    /// peers come.
    pub(crate) fn admit(&self, member: &Arc<dyn ProcessMember>, welcome: &Welcome) {
        let (near, far) = (member.peers(), member.peers_of_rank_0());
        let mut state = self.lock();
        state.heartbeat = welcome.heartbeat;
        let name = member.name();
        state.instances.insert(name.to_owned(), member.clone());
        state.entering.remove(name);
        // Of a parallel program only rank 0 has conduits with others.
        let has_conduit = |peer: &str| near.iter().any(|near| **near == *peer);
        for wire in welcome.wires.iter().filter(|wire| has_conduit(&wire.peer)) {
            let medium = RouteMedium::of(wire.medium.as_deref());
            state.routes.want(&wire.peer, medium, wire.link);
        }
        let mut dials = Vec::new();
        for peer in &near {
            let unrouted = state.unrouted.entry(peer.clone()).or_default();
            unrouted.push(member.clone());
            dials.extend(self.reach(&mut state, peer));
        }
        for peer in near.iter().chain(&far) {
            let neighbours = state.neighbours.entry(peer.clone()).or_default();
            neighbours.push(member.clone());
        }
        // The manager may have named peers as finished before the instance came.
        let peers = near.iter().chain(&far);
        let finished = peers.filter(|peer| state.finished.contains(&***peer));
        let finished: Vec<&Arc<str>> = finished.collect();
        let count = state.instances.len();
        self.crowd.store(count, Ordering::Relaxed);
        drop(state);
        self.dial(dials);
        finished
            .into_iter()
            .for_each(|peer| member.peer_finished(peer));
        // From now on the reactor calls `Process::beat` by itself, for heartbeats.
        if count == 1 {
            self.reactor().tick();
        }
    }

    /// Lets an instance go.
    pub(crate) fn dismiss(&self, member: &dyn ProcessMember) {
        let mut state = self.lock();
        state.instances.remove(member.name());
        self.crowd.store(state.instances.len(), Ordering::Relaxed);
        let fields = state.fields.remove(member.name());
        let ProcessState {
            unrouted,
            neighbours,
            ..
        } = &mut *state;
        let forget = |known: Option<&mut Vec<Arc<dyn ProcessMember>>>| {
            if let Some(known) = known {
                known.retain(|other| !std::ptr::addr_eq(Arc::as_ptr(other), member));
            }
        };
        for peer in member.peers().iter().chain(&member.peers_of_rank_0()) {
            forget(unrouted.get_mut(peer));
            forget(neighbours.get_mut(peer));
        }
        for peer in member.peers_of_fields() {
            forget(unrouted.get_mut(&peer));
        }
        for (conduit, receives) in member.conduit_ends() {
            self.exchange.forget(conduit, receives);
        }
        drop(state);
        fields.iter().for_each(|fields| fields.forget());
    }

    /// Whether an instance, or the instance of a rank, has finished in good order. An attempt that has not begun
    /// counts as finished.
    pub(crate) fn finished(&self, peer: &str) -> bool {
        let (state, peer) = (self.lock(), without_rank(peer));
        let is_to_come = attempt_of(peer).1 > 0 && !state.attempts.contains(peer);
        is_to_come || state.finished.contains(peer)
    }

    /// The attempt that follows a failed member, if the manager starts the member again.
    pub(crate) fn next_attempt(&self, peer: &str) -> Option<String> {
        let (instance, attempt) = attempt_of(peer);
        let next = attempt_name(instance, attempt.saturating_add(1));
        let state = self.lock();
        state.possible_attempts.contains(&next).then_some(next)
    }

    /// Has the manager start a failed member again, as the given attempt, for an instance that sends to it.
    pub(crate) fn resume(&self, instance: &str, member: &str) {
        self.lock().attempts.insert(member.to_owned());
        self.tell(&ToManager::Resume {
            instance: instance.to_owned(),
            member: member.to_owned(),
        });
    }

    /// Why a member of an ensemble has failed; `None` if the peer has not.
    pub(crate) fn member_failure(&self, peer: &str) -> Option<String> {
        if self.loss_count() == 0 {
            return None;
        }
        self.lock().failed_members.get(without_rank(peer)).cloned()
    }

    /// How many instances are open in this process.
    pub(crate) fn crowd(&self) -> usize {
        self.crowd.load(Ordering::Relaxed)
    }

    pub(super) fn instance(&self, name: &str) -> Option<Arc<dyn ProcessMember>> {
        self.lock().instances.get(name).cloned()
    }
}
