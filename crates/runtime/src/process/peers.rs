//! The processes of the peers: they are found, dialled, reached and lost.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use titin_transport::{Carrier, Link, Lost, Medium};
use titin_wire::control::Peer;
use titin_wire::handshake::Purpose;
use titin_wire::{Address, EndpointId};

use super::addresses::meets;
use super::{Process, State};

/// How long the manager is given to explain why a link to a peer broke.
const EXPLANATION: Duration = Duration::from_secs(2);

/// How a peer is to be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Way {
    /// By the best medium that there is.
    Best,
    /// By tcp, since the description says so for some conduit, although there is a better one.
    Tcp,
}

pub(super) enum Route {
    Dialling,
    Up(Arc<Link>),
    Broken(Instant, Lost),
    Given(Lost),
}

impl Process {
    pub(super) fn found(&self, peers: Vec<Peer>) {
        let mut state = self.lock();
        for Peer { instance, endpoint, addresses } in peers {
            state.locations.insert(instance.clone(), endpoint);
            state.residents.entry(endpoint).or_default().insert(instance.clone());
            state.addresses.entry(endpoint).or_insert(addresses);
            self.reach(&mut state, &instance);
            self.settle(&mut state, &instance);
        }
    }

    /// Sees to it that there will be the links to a peer that our conduits with it need, if it is on us to dial.
    pub(super) fn reach(&self, state: &mut State, peer: &str) {
        let Some(endpoint) = state.locations.get(peer).copied() else { return };
        // The smaller id dials.
        if self.id >= endpoint {
            return;
        }
        let ways: Vec<Way> = state.ways.get(peer).into_iter().flatten().copied().collect();
        for way in ways {
            if state.routes.contains_key(&(endpoint, way)) {
                continue;
            }
            let known = state.addresses.get(&endpoint).into_iter().flatten();
            // Who has no meeting place sees nobody else's.
            let shares = way == Way::Best && meets(self.addresses.get());
            let fits = |address: &&Address| shares || !matches!(address, Address::Shm(_));
            let addresses: Vec<Address> = known.filter(fits).cloned().collect();
            // The manager's link has tag 0.
            let tag = state.dialled.len() as u128 + 1;
            let settings = state.settings.get(peer).copied().unwrap_or_default();
            let route = match self.reactor().dial_with(&addresses, Purpose::Data, tag, settings) {
                Ok(()) => Route::Dialling,
                Err(why) => {
                    self.given_up.store(true, Ordering::Release);
                    Route::Given(why)
                }
            };
            state.dialled.insert(tag, (endpoint, way));
            state.routes.insert((endpoint, way), route);
        }
    }

    /// Gives the ends that wait for this peer their carrier, if there is one; else sees to it that there will be.
    pub(super) fn settle(&self, state: &mut State, peer: &str) {
        let Some(endpoint) = state.locations.get(peer).copied() else { return };
        let carriers: Vec<(Way, Arc<dyn Carrier>)> = if endpoint == self.id {
            vec![(Way::Best, self.inproc.clone())]
        } else {
            let up = |way| match state.routes.get(&(endpoint, way)) {
                Some(Route::Up(link)) => Some((way, link.carrier())),
                _ => None,
            };
            [Way::Best, Way::Tcp].into_iter().filter_map(up).collect()
        };
        if carriers.is_empty() {
            return;
        }
        let Some(waiting) = state.unrouted.get_mut(peer) else { return };
        // Who is pinned to tcp may have to wait for a link of its own.
        waiting
            .retain(|inner| carriers.iter().fold(true, |_, (way, carrier)| inner.route(peer, *way, carrier)));
        if waiting.is_empty() {
            state.unrouted.remove(peer);
        }
    }

    pub(super) fn up(&self, endpoint: EndpointId, way: Way, link: &Arc<Link>) {
        let mut state = self.lock();
        state.routes.insert((endpoint, way), Route::Up(link.clone()));
        for resident in state.residents.get(&endpoint).cloned().unwrap_or_default() {
            self.settle(&mut state, &resident);
        }
    }

    pub(super) fn down(&self, route: (EndpointId, Way), why: Lost) {
        let mut state = self.lock();
        // The manager watches the process at the other end and knows best why the link broke.
        state.routes.insert(route, Route::Broken(Instant::now(), why));
        drop(state);
        self.ring_all();
    }

    /// Gives up on links that nobody has explained.
    pub(super) fn give_up(&self) {
        let mut state = self.lock();
        let mut given = false;
        for route in state.routes.values_mut() {
            if let Route::Broken(since, why) = route
                && since.elapsed() >= EXPLANATION
            {
                *route = Route::Given(why.clone());
                self.given_up.store(true, Ordering::Release);
                given = true;
            }
        }
        drop(state);
        if given {
            self.given_up.store(true, Ordering::Release);
            self.ring_all();
        }
    }

    /// Whether there is an instance that cannot be reached.
    pub(crate) fn has_given_up(&self) -> bool {
        self.given_up.load(Ordering::Acquire)
    }

    /// Why an instance cannot be reached, once it is sure that nobody explains it better.
    pub(crate) fn unreachable(&self, instance: &str) -> Option<Lost> {
        // Every look for a message that is not there comes by here.
        if !self.has_given_up() {
            return None;
        }
        let state = self.lock();
        let endpoint = *state.locations.get(instance)?;
        [Way::Best, Way::Tcp].into_iter().find_map(|way| match state.routes.get(&(endpoint, way))? {
            Route::Given(why) => Some(why.clone()),
            _ => None,
        })
    }

    /// Why memory could not even be tried to be shared with a peer, if it could not.
    pub(super) fn apart(&self, peer: EndpointId, way: Way, link: &Arc<Link>) -> Option<String> {
        if way != Way::Best || link.carrier().medium() != Medium::Tcp || link.detour().is_some() {
            return None;
        }
        let state = self.lock();
        let mut alone = Vec::new();
        if !meets(self.addresses.get()) {
            alone.extend(state.instances.keys().next().cloned());
        }
        if !meets(state.addresses.get(&peer)) {
            alone.extend(state.residents.get(&peer).and_then(|names| names.iter().next().cloned()));
        }
        let who = alone.join(" and ");
        (!alone.is_empty())
            .then(|| format!("they do not share /dev/shm: {who} did not find the run's meeting place there"))
    }

    /// Why this process does not share memory with that of an instance, if the two tried to.
    pub(crate) fn detour(&self, instance: &str) -> Option<String> {
        let state = self.lock();
        match state.routes.get(&(*state.locations.get(instance)?, Way::Best))? {
            Route::Up(link) => link.detour().map(str::to_owned),
            _ => None,
        }
    }
}
