//! The instances of this process: they ask to join, are let in, and go.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use titin_transport::{Doorbell, Medium};
use titin_wire::control::{Registration, ToManager, Welcome};

use super::{Process, State, Way};
use crate::instance::Inner;
use crate::ranks::instance_of;
use crate::{Error, Kind, Result};

/// How long the manager may take to answer an instance, behind the time that it may take to be reached. It answers at once,
/// whoever else has come.
const TO_ANSWER: Duration = Duration::from_secs(60);

/// An instance that has asked to join.
pub(super) struct Asked {
    pub(super) bell: Arc<Doorbell>,
    pub(super) since: Instant,
    answer: Option<Result<Welcome>>,
}

impl Asked {
    /// Whether the manager takes too long to answer. Whoever dials it tells before that if it cannot be reached.
    pub(super) fn is_late(&self, patience: Duration) -> bool {
        self.since.elapsed() >= to_answer(patience)
    }
}

/// How long the manager may take to answer that may take so long to be reached.
fn to_answer(patience: Duration) -> Duration {
    patience.saturating_add(TO_ANSWER)
}

impl Process {
    /// From here on the manager's answer to an instance is heard, which rings the bell.
    pub(crate) fn expect_answer(&self, name: &str, bell: Arc<Doorbell>) -> Result<()> {
        let mut state = self.lock();
        if state.instances.contains_key(name) || state.asked.contains_key(name) {
            let text = format!(
                "instance {name} is open in this process already; close it first, or open another"
            );
            return Err(Error::new(Kind::Usage, text));
        }
        state.asked.insert(
            name.to_owned(),
            Asked {
                bell,
                since: Instant::now(),
                answer: None,
            },
        );
        Ok(())
    }

    /// Asks the manager to let an instance in.
    pub(crate) fn ask(&self, mut registration: Registration) {
        registration.endpoint = self.id;
        registration.addresses = self.addresses.get().cloned().unwrap_or_default();
        self.tell(&ToManager::Register(registration));
    }

    /// The manager's answer to an instance that has asked, if it has come.
    ///
    /// # Errors
    /// If it was refused, the run has failed, or the manager takes too long.
    pub(crate) fn answer(&self, name: &str) -> Result<Option<Welcome>> {
        let mut state = self.lock();
        let asked = state.asked.get_mut(name).expect("it has asked");
        let (answer, is_late) = (asked.answer.take(), asked.is_late(self.patience));
        if let Some(answer) = &answer {
            state.asked.remove(name);
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
        // Whoever asked may have given up.
        let Some(asked) = state.asked.get_mut(name) else {
            return;
        };
        asked.answer = Some(answer);
        let bell = asked.bell.clone();
        drop(state);
        bell.ring();
    }

    /// Forgets that an instance has asked. The manager may have let it in meanwhile, or do so yet.
    pub(crate) fn ask_no_more(&self, name: &str) {
        let mut state = self.lock();
        state.asked.remove(name);
        state.branch.take_if(|branch| branch.is_of(name));
    }

    /// An instance was let in, and could not be made.
    pub(crate) fn enters_no_more(&self, name: &str) {
        self.lock().entering.remove(name);
    }

    /// A field is about to be declared: conduits between ranks may be used before this process knows their numbers.
    pub(crate) fn expect_fields(&self) {
        self.lock().has_fields = true;
    }

    /// Takes an instance in: its conduit ends get their carriers, now or when the peers come.
    pub(crate) fn admit(&self, inner: &Arc<Inner>, welcome: &Welcome) {
        let mut state = self.lock();
        state.heartbeat = welcome.heartbeat;
        state.instances.insert(inner.name.clone(), inner.clone());
        state.entering.remove(&inner.name);
        for wire in &welcome.wires {
            let pinned = wire.medium.as_deref() == Some(Medium::Tcp.key());
            let way = if pinned { Way::Tcp } else { Way::Best };
            // Of a parallel program only rank 0 has conduits with others.
            if inner.neighbours.ends(&wire.peer).is_empty() {
                continue;
            }
            state.routes.want(&wire.peer, way, wire.link);
        }
        let mut dials = Vec::new();
        for peer in inner.neighbours.names() {
            state
                .neighbours
                .entry(peer.clone())
                .or_default()
                .push(inner.clone());
            state
                .unrouted
                .entry(peer.clone())
                .or_default()
                .push(inner.clone());
            dials.extend(self.reach(&mut state, peer));
        }
        for peer in inner.far_peers() {
            state
                .neighbours
                .entry(peer.clone())
                .or_default()
                .push(inner.clone());
        }
        // The manager's word on them may have come before this instance was there to hear it.
        let peers = inner.neighbours.names().chain(inner.far_peers());
        let finished: Vec<&Arc<str>> = peers
            .filter(|peer| state.finished.contains(&***peer))
            .collect();
        let count = state.instances.len();
        self.crowd.store(count, Ordering::Relaxed);
        drop(state);
        self.dial(dials);
        finished
            .into_iter()
            .for_each(|peer| inner.peer_finished(peer));
        // From then on it looks by itself.
        if count == 1 {
            self.reactor().tick();
        }
    }

    /// Lets an instance go.
    pub(crate) fn dismiss(&self, inner: &Inner) {
        let mut state = self.lock();
        state.instances.remove(&inner.name);
        self.crowd.store(state.instances.len(), Ordering::Relaxed);
        let State {
            unrouted,
            neighbours,
            ..
        } = &mut *state;
        for peer in inner.neighbours.names().chain(inner.far_peers()) {
            for known in [unrouted.get_mut(peer), neighbours.get_mut(peer)]
                .into_iter()
                .flatten()
            {
                known.retain(|other| !std::ptr::eq(&raw const **other, inner));
            }
        }
        state
            .meetings
            .retain(|(instance, _), _| *instance != inner.name);
        let State { unrouted, .. } = &mut *state;
        for line in inner.all_lines() {
            for (end, _) in line.port.every_end() {
                if let Some(known) = unrouted.get_mut(&end.peer) {
                    known.retain(|other| !std::ptr::eq(&raw const **other, inner));
                }
            }
        }
        inner.ends(|end, receives| self.exchange.forget(end.conduit, receives));
    }

    /// Whether an instance has finished in good order, or that of a rank.
    pub(crate) fn finished(&self, peer: &str) -> bool {
        self.lock().finished.contains(instance_of(peer))
    }

    /// How many instances are open in this process.
    pub(crate) fn crowd(&self) -> usize {
        self.crowd.load(Ordering::Relaxed)
    }

    pub(super) fn instance(&self, name: &str) -> Option<Arc<Inner>> {
        self.lock().instances.get(name).cloned()
    }
}
