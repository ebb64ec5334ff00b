//! The ways to other sites.

use std::sync::Arc;

use titin_wire::circuit::CircuitRefusal;

use super::Relay;
use crate::peers::Peer;

impl Relay {
    /// The sites whose runs may go on to other sites by this relay.
    pub(crate) fn transit(&self) -> Vec<String> {
        let peers = self.lock();
        let transit = peers.values().filter(|peer| peer.config.transit);
        transit.map(|peer| peer.site().to_owned()).collect()
    }

    /// The relay on the way to a site.
    pub(super) fn peer_towards(&self, site: &str) -> Option<Arc<Peer>> {
        let peers = self.lock();
        let direct = peers.get(site).cloned();
        direct.or_else(|| {
            let leads = |peer: &&Arc<Peer>| peer.behind.iter().any(|behind| behind == site);
            peers.values().find(leads).cloned()
        })
    }

    /// The relay on the way to a site, or the refusal of what would go there.
    pub(crate) fn way_to(&self, site: &str) -> Result<Arc<Peer>, CircuitRefusal> {
        self.peer_towards(site).ok_or_else(|| CircuitRefusal {
            why: format!(
                "the relay of the site {0} knows no way to the site {site}: is this the name of the site there? If it is, \
                 `titin relay trust {site}` with its fingerprint adds the way at {0}, or with `--via` and the site whose relay leads there",
                self.site
            ),
            may_pass: self.was_trusted(site),
        })
    }

    /// Whether runs go by a peer to a site; `None` stands for the site of the peer.
    pub(crate) fn is_on_way(&self, peer: &Peer, site: Option<&str>) -> bool {
        let next = site.and_then(|site| self.peer_towards(site));
        site.is_none() || next.is_some_and(|next| next.site() == peer.site())
    }

    /// The sites to which this relay knows the way, in words.
    pub(super) fn known_sites(&self) -> String {
        let peers = self.peers();
        let mut sites: Vec<&str> = peers.iter().map(|peer| peer.site()).collect();
        sites.extend(
            peers
                .iter()
                .flat_map(|peer| &peer.behind)
                .map(String::as_str),
        );
        sites.sort_unstable();
        match sites.is_empty() {
            true => "no other site".to_owned(),
            false => sites.join(", "),
        }
    }
}
