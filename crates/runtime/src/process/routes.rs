//! The processes of the peers, and the links to the processes.
//!
//! The tables alone, without I/O: the tables say which processes to dial, and take in the outcome.
//! The time comes in as an argument.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use titin_transport::{LinkError, Medium};
use titin_wire::control::Peer;
use titin_wire::ranks::RankProcess;
use titin_wire::{Address, EndpointId, LinkSettings, addresses_from_site};

use super::addresses::meets;

/// How long the manager is given to explain why a link to a peer broke.
pub(super) const EXPLANATION: Duration = Duration::from_secs(2);

/// How long a process tries to reach another one before it tells that it does not.
const FIRST_WORD: Duration = Duration::from_secs(5);

/// An environment variable for tests: a shorter time, in milliseconds.
pub(super) const SHORTER: &str = "TITIN_EXPLANATION";

/// The medium of a link to a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum RouteMedium {
    /// The best medium of the two processes.
    Best,
    /// The medium to which the description pins some conduits.
    Pinned(Medium),
}

impl RouteMedium {
    /// The medium of the link for conduits that the description pins to the medium with the key
    /// `pinned`, or does not pin. Some media are the best wherever two processes share them, so a
    /// pin to such a medium needs no link beside the best link.
    pub(crate) fn of(pinned: Option<&str>) -> Self {
        pinned
            .and_then(Medium::of_key)
            .filter(|medium| !medium.is_best_where_shared())
            .map_or(RouteMedium::Best, RouteMedium::Pinned)
    }

    /// The medium of every link between two processes: the best medium first, then the pinned media
    /// by preference.
    fn all() -> impl Iterator<Item = Self> {
        std::iter::once(RouteMedium::Best).chain(Medium::ALL.map(RouteMedium::Pinned))
    }

    /// Whether a link of this medium may go by an address. `shares` says whether the dialling
    /// process has found the meeting place of its host.
    fn takes(self, address: &Address, shares: bool) -> bool {
        match self {
            // A process that has not found its host's meeting place cannot reach the sockets there.
            RouteMedium::Best => shares || address.medium() != Some(Medium::Shm),
            RouteMedium::Pinned(medium) => address.medium() == Some(medium),
        }
    }
}

/// The routes to other processes. `L` is a link.
pub(super) struct Routes<L> {
    /// The site of this process, if the run has several.
    own_site: Option<String>,
    /// The links that the conduits of this process want, by the instance at the other end.
    wanted: HashMap<String, WantedLinks>,
    /// The processes of the instances at the other ends of this process's conduits.
    locations: HashMap<String, EndpointId>,
    homes: HashMap<EndpointId, Home>,
    /// Of parallel programs, the processes of the ranks from 1 on.
    ranks: HashMap<String, Vec<RankProcess>>,
    routes: HashMap<(EndpointId, RouteMedium), LinkRoute<L>>,
    /// The dialled processes, by the tags of the links.
    dialled: HashMap<u128, (EndpointId, RouteMedium)>,
}

struct WantedLinks {
    media: HashSet<RouteMedium>,
    settings: LinkSettings,
}

/// A process with instances at the other ends of this process's conduits.
struct Home {
    addresses: Vec<Address>,
    instances: HashSet<String>,
}

enum LinkRoute<L> {
    /// Since when it is known that there is an obstacle, and whether that was told.
    Dialling {
        hindered: Option<Instant>,
        is_told: bool,
    },
    Up(L),
    /// The manager watches the process at the other end, and knows best why the link broke.
    Broken(Instant, LinkError),
    /// Given up: the manager has not explained the loss.
    Given(LinkError),
}

/// A link to dial.
#[derive(Debug)]
pub(super) struct Dial {
    pub(super) tag: u128,
    /// The id of the process that must answer.
    pub(super) to: EndpointId,
    pub(super) addresses: Vec<Address>,
    pub(super) settings: LinkSettings,
}

impl<L> Default for Routes<L> {
    fn default() -> Self {
        Routes {
            own_site: None,
            wanted: HashMap::new(),
            locations: HashMap::new(),
            homes: HashMap::new(),
            ranks: HashMap::new(),
            routes: HashMap::new(),
            dialled: HashMap::new(),
        }
    }
}

impl<L> Routes<L> {
    /// The routes from a site.
    pub(super) fn from_site(own_site: Option<String>) -> Self {
        Routes {
            own_site,
            ..Routes::default()
        }
    }

    /// A conduit with an instance wants a kind of link. The first conduit gives the settings of the
    /// links.
    pub(super) fn want(&mut self, instance: &str, medium: RouteMedium, settings: LinkSettings) {
        match self.wanted.get_mut(instance) {
            Some(wanted) => {
                wanted.media.insert(medium);
            }
            None => {
                let wanted = WantedLinks {
                    media: HashSet::from([medium]),
                    settings,
                };
                self.wanted.insert(instance.to_owned(), wanted);
            }
        }
    }

    /// An instance is there.
    pub(super) fn found(
        &mut self,
        Peer {
            instance,
            endpoint,
            addresses,
            ranks,
        }: Peer,
    ) {
        if !ranks.is_empty() {
            self.ranks.insert(instance.clone(), ranks);
        }
        self.locations.insert(instance.clone(), endpoint);
        let home = self.homes.entry(endpoint);
        home.or_insert_with(|| Home {
            addresses,
            instances: HashSet::new(),
        })
        .instances
        .insert(instance);
    }

    /// The process of an instance, once known.
    pub(super) fn location(&self, instance: &str) -> Option<EndpointId> {
        self.locations.get(instance).copied()
    }

    /// The process of a rank of an instance, and the addresses of the process.
    pub(super) fn rank(&self, instance: &str, rank: u32) -> Option<(EndpointId, &[Address])> {
        if rank == 0 {
            let endpoint = self.location(instance)?;
            return Some((endpoint, &self.homes.get(&endpoint)?.addresses));
        }
        let process = self.ranks.get(instance)?.get(rank as usize - 1)?;
        Some((process.endpoint, &process.addresses))
    }

    /// Those of a process's addresses that lead there from this process's site.
    pub(super) fn on_the_way<'a>(
        &self,
        addresses: &'a [Address],
    ) -> impl Iterator<Item = &'a Address> {
        addresses_from_site(self.own_site.as_deref(), addresses)
    }

    /// The links that `own` is to dial now for conduits with an instance. Of two processes the
    /// process with the smaller id dials, each kind of link once. `shares` says whether `own` has
    /// found the meeting place of its host.
    pub(super) fn dials(&mut self, instance: &str, own: EndpointId, shares: bool) -> Vec<Dial> {
        let endpoint = self.location(instance).filter(|endpoint| own < *endpoint);
        let (Some(endpoint), Some(wanted)) = (endpoint, self.wanted.get(instance)) else {
            return Vec::new();
        };
        let mut dials = Vec::new();
        for medium in &wanted.media {
            let to = (endpoint, *medium);
            if self.routes.contains_key(&to) {
                continue;
            }
            let all = &self.homes[&endpoint].addresses;
            let addresses = match medium {
                // The user wants relays, also within a site.
                RouteMedium::Pinned(Medium::Relay) => all.iter().collect(),
                _ => self.on_the_way(all).collect::<Vec<_>>(),
            };
            let takes = |address: &&Address| medium.takes(address, shares);
            let addresses = addresses.into_iter().filter(takes).cloned().collect();
            // The manager's link has tag 0.
            let tag = self.dialled.len() as u128 + 1;
            self.dialled.insert(tag, to);
            let route = LinkRoute::Dialling {
                hindered: None,
                is_told: false,
            };
            self.routes.insert(to, route);
            dials.push(Dial {
                tag,
                to: endpoint,
                addresses,
                settings: wanted.settings,
            });
        }
        dials
    }

    /// The process dialled with the tag.
    pub(super) fn dialled(&self, tag: u128) -> Option<(EndpointId, RouteMedium)> {
        self.dialled.get(&tag).copied()
    }

    /// Notes that a link is open, whichever process has dialled. Returns the known instances at the
    /// other end.
    pub(super) fn up(&mut self, to: EndpointId, medium: RouteMedium, link: L) -> Vec<String> {
        self.routes.insert((to, medium), LinkRoute::Up(link));
        self.homes
            .get(&to)
            .into_iter()
            .flat_map(|home| &home.instances)
            .cloned()
            .collect()
    }

    /// The link for which `is_meant` is true has broken. Returns whether the link was still in use.
    pub(super) fn lost(
        &mut self,
        is_meant: impl Fn(&L) -> bool,
        why: LinkError,
        now: Instant,
    ) -> bool {
        let route = self
            .routes
            .values_mut()
            .find(|route| matches!(route, LinkRoute::Up(link) if is_meant(link)));
        route
            .map(|route| *route = LinkRoute::Broken(now, why))
            .is_some()
    }

    /// The instances at the other end of the link for which `is_meant` is true, as text.
    pub(super) fn at(&self, is_meant: impl Fn(&L) -> bool) -> Option<String> {
        let up = |route: &LinkRoute<L>| matches!(route, LinkRoute::Up(link) if is_meant(link));
        let ((endpoint, _), _) = self.routes.iter().find(|(_, route)| up(route))?;
        let mut names: Vec<&str> = self
            .homes
            .get(endpoint)?
            .instances
            .iter()
            .map(String::as_str)
            .collect();
        names.sort_unstable();
        Some(titin_model::listing(names))
    }

    /// The process dialled with the tag has not answered yet. Returns the known instances there, once, if
    /// that is to be told.
    pub(super) fn hindered(&mut self, tag: u128, now: Instant) -> Option<Vec<String>> {
        let to = self.dialled(tag)?;
        let LinkRoute::Dialling { hindered, is_told } = self.routes.get_mut(&to)? else {
            return None;
        };
        let since = *hindered.get_or_insert(now);
        if *is_told || now - since < FIRST_WORD {
            return None;
        }
        *is_told = true;
        let instances = &self.homes.get(&to.0)?.instances;
        Some(instances.iter().cloned().collect())
    }

    /// The process dialled with the tag has not answered.
    pub(super) fn unanswered(&mut self, tag: u128, why: LinkError, now: Instant) {
        let Some(to) = self.dialled(tag) else { return };
        self.routes.insert(to, LinkRoute::Broken(now, why));
    }

    /// The process with the tag cannot be dialled, and there is nothing to wait for.
    pub(super) fn refuse(&mut self, tag: u128, why: LinkError) {
        let Some(to) = self.dialled(tag) else { return };
        self.routes.insert(to, LinkRoute::Given(why));
    }

    /// Gives up broken links if the manager has not explained the loss in the given time. Returns
    /// whether there were such links.
    pub(super) fn give_up(&mut self, now: Instant, time: Duration) -> bool {
        let mut given = false;
        for route in self.routes.values_mut() {
            if let LinkRoute::Broken(since, why) = route
                && now.saturating_duration_since(*since) >= time
            {
                *route = LinkRoute::Given(why.clone());
                given = true;
            }
        }
        given
    }

    /// The links to an instance's process.
    pub(super) fn links(&self, instance: &str) -> impl Iterator<Item = (RouteMedium, &L)> {
        self.to(instance).filter_map(|(medium, route)| match route {
            LinkRoute::Up(link) => Some((medium, link)),
            _ => None,
        })
    }

    /// Why an instance cannot be reached by the given kind of link, once the link was given up.
    pub(super) fn unreachable(&self, instance: &str, medium: RouteMedium) -> Option<&LinkError> {
        match self.routes.get(&(self.location(instance)?, medium))? {
            LinkRoute::Given(why) => Some(why),
            _ => None,
        }
    }

    /// An instance of the process, if the process did not find the meeting place of its host.
    pub(super) fn outsider(&self, endpoint: EndpointId) -> Option<&str> {
        let home = self
            .homes
            .get(&endpoint)
            .filter(|home| !meets(&home.addresses))?;
        home.instances.iter().next().map(String::as_str)
    }

    fn to(&self, instance: &str) -> impl Iterator<Item = (RouteMedium, &LinkRoute<L>)> {
        let endpoint = self.location(instance);
        RouteMedium::all().filter_map(move |medium| {
            let route = self.routes.get(&(endpoint?, medium))?;
            Some((medium, route))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: EndpointId = EndpointId(1);
    const LARGE: EndpointId = EndpointId(2);

    fn peer(instance: &str, endpoint: EndpointId) -> Peer {
        let addresses = vec![
            Address::Shm("/place".into()),
            Address::Tcp("host".into(), 7),
        ];
        Peer {
            instance: instance.into(),
            endpoint,
            addresses,
            ranks: Vec::new(),
        }
    }

    /// A link is a name here. The instance `micro` is in the process with the large id.
    fn routes(media: &[RouteMedium]) -> Routes<&'static str> {
        let mut routes = Routes::default();
        media
            .iter()
            .for_each(|medium| routes.want("micro", *medium, LinkSettings::default()));
        routes.found(peer("micro", LARGE));
        routes
    }

    fn links(routes: &Routes<&'static str>, instance: &str) -> Vec<(RouteMedium, &'static str)> {
        routes
            .links(instance)
            .map(|(medium, link)| (medium, *link))
            .collect()
    }

    #[test]
    fn a_peer_that_goes_while_it_is_dialled_is_given_up_once_nobody_explains_it() {
        let mut routes = routes(&[RouteMedium::Best]);
        let [dial] = &routes.dials("micro", SMALL, true)[..] else {
            panic!("one link")
        };
        let start = Instant::now();
        routes.unanswered(dial.tag, LinkError::Closed, start);
        // The manager may still explain the loss of the peer.
        assert!(!routes.give_up(start + EXPLANATION / 2, EXPLANATION));
        assert_eq!(routes.unreachable("micro", RouteMedium::Best), None);
        assert!(
            routes.dials("micro", SMALL, true).is_empty(),
            "a process is not dialled again"
        );
        assert!(routes.give_up(start + EXPLANATION, EXPLANATION));
        assert_eq!(
            routes.unreachable("micro", RouteMedium::Best),
            Some(&LinkError::Closed)
        );
        assert!(
            !routes.give_up(start + 2 * EXPLANATION, EXPLANATION),
            "once"
        );
        assert_eq!(links(&routes, "micro"), []);
    }

    #[test]
    fn a_peer_that_is_not_reached_for_long_is_told_once() {
        let mut routes = routes(&[RouteMedium::Best]);
        let [dial] = &routes.dials("micro", SMALL, true)[..] else {
            panic!("one link")
        };
        let start = Instant::now();
        assert_eq!(routes.hindered(dial.tag, start), None);
        let almost = start + FIRST_WORD - Duration::from_millis(1);
        assert_eq!(routes.hindered(dial.tag, almost), None);
        assert_eq!(
            routes.hindered(dial.tag, start + FIRST_WORD),
            Some(vec!["micro".to_owned()])
        );
        assert_eq!(routes.hindered(dial.tag, start + 2 * FIRST_WORD), None);
        assert_eq!(routes.hindered(dial.tag + 1, start), None);
    }

    #[test]
    fn instances_that_wait_for_one_route_share_it() {
        let mut routes = routes(&[RouteMedium::Best]);
        let before = routes.dials("micro", SMALL, true);
        assert_eq!(before.len(), 1);
        // Another instance of this process wants `micro`, too. It also wants `meso`, an instance in
        // the process of `micro`.
        routes.want("micro", RouteMedium::Best, LinkSettings::default());
        routes.want("meso", RouteMedium::Best, LinkSettings::default());
        assert!(routes.dials("micro", SMALL, true).is_empty());
        assert!(
            routes.dials("meso", SMALL, true).is_empty(),
            "nobody knows yet where it is"
        );
        routes.found(peer("meso", LARGE));
        assert!(routes.dials("meso", SMALL, true).is_empty());
        assert_eq!(
            links(&routes, "meso"),
            [],
            "what is dialled is not there yet"
        );
        let (to, medium) = routes.dialled(before[0].tag).unwrap();
        let mut reached = routes.up(to, medium, "link");
        reached.sort();
        assert_eq!(reached, ["meso", "micro"]);
        assert_eq!(links(&routes, "micro"), links(&routes, "meso"));
    }

    #[test]
    fn a_peer_may_come_before_the_manager_has_said_where_it_is() {
        let mut routes = Routes::default();
        routes.want("macro", RouteMedium::Best, LinkSettings::default());
        assert!(
            routes.up(SMALL, RouteMedium::Best, "link").is_empty(),
            "nobody is known there"
        );
        assert_eq!(links(&routes, "macro"), []);
        routes.found(peer("macro", SMALL));
        assert!(
            routes.dials("macro", LARGE, true).is_empty(),
            "the smaller id dials"
        );
        assert_eq!(links(&routes, "macro"), [(RouteMedium::Best, "link")]);
    }

    #[test]
    fn a_route_that_was_given_up_is_taken_when_it_comes_after_all() {
        let mut routes = routes(&[RouteMedium::Best]);
        let tag = routes.dials("micro", SMALL, true)[0].tag;
        routes.refuse(tag, LinkError::Unreachable("any".into()));
        assert_eq!(
            routes.unreachable("micro", RouteMedium::Best),
            Some(&LinkError::Unreachable("any".into())),
            "at once"
        );
        routes.up(LARGE, RouteMedium::Best, "link");
        assert_eq!(routes.unreachable("micro", RouteMedium::Best), None);
        assert_eq!(links(&routes, "micro"), [(RouteMedium::Best, "link")]);
    }

    #[test]
    fn a_route_by_tcp_stands_beside_the_one_by_shared_memory() {
        let mut routes = routes(&[RouteMedium::Best, RouteMedium::Pinned(Medium::Tcp)]);
        let dials = routes.dials("micro", SMALL, true);
        assert_eq!(dials.len(), 2);
        let tcp = Address::Tcp("host".into(), 7);
        for dial in &dials {
            let (to, medium) = routes.dialled(dial.tag).unwrap();
            assert_eq!(
                dial.addresses.contains(&Address::Shm("/place".into())),
                medium == RouteMedium::Best
            );
            assert!(dial.addresses.contains(&tcp), "shared memory may fail");
            routes.up(
                to,
                medium,
                if medium == RouteMedium::Best {
                    "shm"
                } else {
                    "tcp"
                },
            );
        }
        assert_ne!(dials[0].tag, dials[1].tag);
        assert_eq!(
            links(&routes, "micro"),
            [
                (RouteMedium::Best, "shm"),
                (RouteMedium::Pinned(Medium::Tcp), "tcp")
            ]
        );
        // The tcp link breaks, and the link by shared memory goes on.
        let start = Instant::now();
        assert!(routes.lost(|link| *link == "tcp", LinkError::Closed, start));
        assert!(
            !routes.lost(|link| *link == "tcp", LinkError::Closed, start),
            "nobody uses it any more"
        );
        assert_eq!(links(&routes, "micro"), [(RouteMedium::Best, "shm")]);
        assert!(routes.give_up(start + EXPLANATION, EXPLANATION));
        assert_eq!(
            routes.unreachable("micro", RouteMedium::Pinned(Medium::Tcp)),
            Some(&LinkError::Closed)
        );
        assert_eq!(
            routes.unreachable("micro", RouteMedium::Best),
            None,
            "conduits that go by the other one go on"
        );
    }

    #[test]
    fn a_process_without_a_meeting_place_dials_no_shared_memory() {
        let mut routes = routes(&[RouteMedium::Best]);
        let dials = routes.dials("micro", SMALL, false);
        assert_eq!(dials[0].addresses, [Address::Tcp("host".into(), 7)]);
        assert_eq!(routes.outsider(LARGE), None);
        let addresses = vec![Address::Tcp("other".into(), 7)];
        routes.found(Peer {
            instance: "far".into(),
            endpoint: EndpointId(3),
            addresses,
            ranks: Vec::new(),
        });
        assert_eq!(routes.outsider(EndpointId(3)), Some("far"));
    }
}
