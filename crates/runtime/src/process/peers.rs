//! The processes of the peers: how this process finds, dials, reaches and loses the peers'
//! processes.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use titin_transport::{Carrier, Link, LinkError, Medium};
use titin_wire::control::Peer;
use titin_wire::handshake::Purpose;
use titin_wire::{EndpointId, LinkSettings};

use super::addresses::meets;
use super::routes::{Dial, RouteMedium};
use super::{Process, ProcessMember, ProcessState};
use crate::peer_names::rank_name;

/// How much longer than `heartbeat` the manager is given to explain in a run with several sites. A link to a
/// peer is lost after `patience`, and the manager gives a host up after `patience` and `heartbeat`. Either end may
/// notice up to some seconds later than the other that nothing comes any more.
const SITES_EXPLANATION: Duration = Duration::from_secs(10);

/// Two instances that a link connects by a conduit: one of this process, and the name of the peer's.
fn ends_of_link(
    state: &ProcessState,
    residents: &[String],
) -> Option<(Arc<dyn ProcessMember>, String)> {
    residents.iter().find_map(|resident| {
        let members = state.neighbours.get(resident.as_str())?;
        Some((members.first()?.clone(), resident.clone()))
    })
}

impl Process {
    /// Finds and dials the given ranks of a peer.
    pub(crate) fn reach_ranks(&self, peer: &str, ranks: impl Iterator<Item = u32>) {
        let mut state = self.lock();
        let mut dials = Vec::new();
        for rank in ranks {
            let Some((endpoint, addresses)) = state.routes.rank(peer, rank) else {
                continue;
            };
            let (instance, addresses) = (rank_name(peer, rank), addresses.to_vec());
            state
                .routes
                .want(&instance, RouteMedium::Best, LinkSettings::default());
            state.routes.found(Peer {
                instance: instance.clone(),
                endpoint,
                addresses,
                ranks: Vec::new(),
            });
            dials.extend(self.reach(&mut state, &instance));
        }
        drop(state);
        self.dial(dials);
    }

    /// Gives carriers to the ends of conduits with ranks of peers, now or when there are links.
    pub(crate) fn join_ranks(&self, member: &Arc<dyn ProcessMember>, ranks: &[Arc<str>]) {
        let mut state = self.lock();
        for rank in ranks {
            state
                .unrouted
                .entry(rank.clone())
                .or_default()
                .push(member.clone());
            self.settle(&mut state, rank);
        }
    }

    /// The manager says where instances are.
    pub(super) fn found(&self, peers: Vec<Peer>) {
        let mut state = self.lock();
        let mut dials = Vec::new();
        for peer in peers {
            let instance = peer.instance.clone();
            state.routes.found(peer);
            dials.extend(self.reach(&mut state, &instance));
        }
        drop(state);
        self.dial(dials);
    }

    /// As [`Process::settle`]. Returns the links to dial, so that all ends get carriers.
    pub(super) fn reach(&self, state: &mut ProcessState, peer: &str) -> Vec<Dial> {
        self.settle(state, peer);
        state.routes.dials(peer, self.id, self.shares())
    }

    /// Dials links. The tables are not locked meanwhile: a look-up of a host's name may take long.
    pub(super) fn dial(&self, dials: Vec<Dial>) {
        for Dial {
            tag,
            to,
            addresses,
            settings,
        } in dials
        {
            let is_elsewhere = addresses.iter().all(|address| address.site().is_some());
            let site_patience = self.site_patience.filter(|_| is_elsewhere);
            let patience = site_patience.map_or(self.patience, |time| time.min(self.patience));
            let dialled =
                self.reactor()
                    .dial(&addresses, Purpose::Data, tag, Some(to), settings, patience);
            if let Err(why) = dialled {
                self.lock().routes.refuse(tag, why);
                self.loss_count.fetch_add(1, Ordering::Release);
                self.ring_all();
            }
        }
    }

    /// Tells in the log why a process is not reached, once it has not answered for some time.
    pub(super) fn warn_of_obstacle(&self, tag: u128, why: &str) {
        let mut state = self.lock();
        let Some(peers) = state.routes.hindered(tag, Instant::now()) else {
            return;
        };
        let ends = ends_of_link(&state, &peers);
        drop(state);
        if let Some((member, peer)) = ends {
            member.warn(&format!("{peer} is not reached yet: {why}"));
        }
    }

    /// A link to a process is there.
    pub(super) fn up(&self, endpoint: EndpointId, medium: RouteMedium, link: &Arc<Link>) {
        let mut state = self.lock();
        let residents = state.routes.up(endpoint, medium, link.clone());
        for resident in &residents {
            self.settle(&mut state, resident);
        }
        let ends = ends_of_link(&state, &residents);
        drop(state);
        self.met(endpoint, link);
        // The other end is silent, so that the log has one record of a link.
        if let (Some((member, peer)), Some(_), Some(addresses)) =
            (ends, link.tag(), link.addresses())
        {
            member.linked(&peer, addresses);
        }
    }

    /// Gives the present carriers to the ends that wait for a peer.
    fn settle(&self, state: &mut ProcessState, peer: &str) {
        let carriers = self.carriers_to(state, peer);
        if carriers.is_empty() {
            return;
        }
        let Some(waiting) = state.unrouted.get_mut(peer) else {
            return;
        };
        let detour = state
            .routes
            .links(peer)
            .find(|(medium, _)| *medium == RouteMedium::Best);
        let detour = detour.and_then(|(_, link)| link.detour());
        // A pinned conduit may have to wait for a second link, by the pinned medium.
        waiting.retain(|member| {
            carriers.iter().fold(true, |_, (medium, carrier)| {
                member.route(peer, *medium, carrier, detour)
            })
        });
        if waiting.is_empty() {
            state.unrouted.remove(peer);
        }
    }

    /// The present carriers to a peer.
    fn carriers_to(
        &self,
        state: &ProcessState,
        peer: &str,
    ) -> Vec<(RouteMedium, Arc<dyn Carrier>)> {
        if state.routes.location(peer) == Some(self.id) {
            return vec![(RouteMedium::Best, self.inproc.clone())];
        }
        let links = state.routes.links(peer);
        links
            .map(|(medium, link)| (medium, link.carrier()))
            .collect()
    }

    /// How long the manager is given to explain why a link to a peer broke, and to name the instances of a
    /// process.
    pub(super) fn explanation_time(&self, state: &ProcessState) -> Duration {
        match self.site_patience.is_some() {
            true => self.explanation.max(state.heartbeat() + SITES_EXPLANATION),
            false => self.explanation,
        }
    }

    /// Gives up broken links if the manager has not explained the loss in time.
    pub(super) fn give_up(&self) {
        let mut state = self.lock();
        let explanation = self.explanation_time(&state);
        let is_loss = state.routes.give_up(Instant::now(), explanation);
        drop(state);
        if is_loss {
            self.loss_count.fetch_add(1, Ordering::Release);
            self.ring_all();
        }
    }

    /// How often a process was found out of reach for good.
    pub(crate) fn loss_count(&self) -> u64 {
        self.loss_count.load(Ordering::Acquire)
    }

    /// Why an instance cannot be reached by the given kind of link, once the manager has had time
    /// to explain.
    pub(crate) fn unreachable(&self, instance: &str, medium: RouteMedium) -> Option<LinkError> {
        // Each look for a missing message calls this function, so the answer for the usual case
        // takes no lock.
        if self.loss_count() == 0 {
            return None;
        }
        self.lock().routes.unreachable(instance, medium).cloned()
    }

    /// Why this process and a peer could not try to share memory.
    pub(super) fn apart(
        &self,
        peer: EndpointId,
        medium: RouteMedium,
        link: &Arc<Link>,
    ) -> Option<String> {
        if medium != RouteMedium::Best
            || link.carrier().medium() != Medium::Tcp
            || link.detour().is_some()
        {
            return None;
        }
        let state = self.lock();
        let mut alone = Vec::new();
        if !self.shares() {
            alone.extend(state.instances.keys().next().cloned());
        }
        alone.extend(state.routes.outsider(peer).map(str::to_owned));
        let who = alone.join(" and ");
        (!alone.is_empty()).then(|| {
            format!("they do not share /dev/shm: {who} did not find the run's meeting place there")
        })
    }

    /// Why this process does not share memory with the process of an instance.
    pub(crate) fn detour(&self, instance: &str) -> Option<String> {
        let state = self.lock();
        let (_, link) = state
            .routes
            .links(instance)
            .find(|(medium, _)| *medium == RouteMedium::Best)?;
        link.detour().map(str::to_owned)
    }

    /// Whether this process has found the meeting place of its host.
    fn shares(&self) -> bool {
        self.addresses.get().is_some_and(|here| meets(here))
    }
}
