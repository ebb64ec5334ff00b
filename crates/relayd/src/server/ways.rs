//! The ways to other sites, and the runs that do not go there.

use std::sync::Arc;
use std::time::Duration;

use titin_wire::circuit::{CircuitRefusal, LONGEST_PERMIT, RunPermit};
use titin_wire::line::RunRefusal;
use tracing::warn;

use super::{Relay, hex};
use crate::log_limit::bounded;
use crate::peers::Peer;
use crate::refused_runs::MOST;

/// After this time without a connection to another relay, the managers of the runs hear of it that do not get there.
const AWAY_TIME: Duration = Duration::from_secs(5);

impl Relay {
    /// The sites whose runs may go on to other sites by this relay.
    pub(crate) fn transit(&self) -> Vec<String> {
        let peers = self.lock();
        let transit = peers.values().filter(|peer| peer.config.transit);
        transit.map(|peer| peer.site().to_owned()).collect()
    }

    /// The relay on the way to a site.
    fn peer_towards(&self, site: &str) -> Option<Arc<Peer>> {
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
                "the relay of the site {} knows no way to the site {site}: is this the name of the site there? If it is, \
                 `titin relay trust {site}` adds the way",
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

    /// Why runs of a peer without `transit` are not passed on to sites to which this relay knows the way. Logs those
    /// that are not for this site: the others may have another way.
    pub(crate) fn not_passed_on(&self, peer: &Peer, runs: &[RunPermit]) -> Vec<RunRefusal> {
        let goes_on = |run: &&RunPermit| !run.is_over;
        let mut refusals = Vec::new();
        if peer.config.transit {
            return refusals;
        }
        for run in runs.iter().filter(goes_on) {
            let leads_on = |site: &&String| {
                self.peer_towards(site)
                    .is_some_and(|next| next.site() != peer.site())
            };
            for site in run.sites.iter().filter(leads_on) {
                let from = peer.site();
                let why = format!("the site {from} is trusted without `transit`");
                refusals.push(RunRefusal {
                    run: run.run,
                    to: Some(site.clone()),
                    hops: 0,
                    why: format!(
                        "the relay of the site {} does not pass the run on to {site}: {why}",
                        self.site
                    ),
                });
                if run.sites.contains(&self.site) {
                    continue;
                }
                let outcome: Result<(), _> = Err(CircuitRefusal::lasting(why));
                if let Some(CircuitRefusal { why, .. }) =
                    self.refusal_to_log(run.run, site, &outcome)
                {
                    warn!(
                        from,
                        to = site,
                        run = hex(run.run),
                        why,
                        "a run is not passed on"
                    );
                }
            }
        }
        refusals
    }

    /// Why the manager of a run that a peer has brought is to hear of it: relays do not take it over, or it does
    /// not reach its sites.
    pub(crate) fn refusals_for(&self, peer: &Peer) -> Vec<RunRefusal> {
        let has_brought = |run| self.runs.is_of_peer(run, peer.site());
        let mut refusals = self.refused_runs.for_peer(peer.site(), has_brought);
        if peer.config.transit {
            let runs = self.runs.of_peer(peer.site());
            let stuck = runs.iter().flat_map(|run| self.missing_ways(peer, run));
            refusals.extend(stuck.take(MOST));
        }
        refusals
    }

    /// The sites of a run that this relay does not reach for a peer, and has not reached for a while. The run may
    /// have other ways to them, which the relay that has brought the run knows.
    fn missing_ways(&self, peer: &Peer, run: &RunPermit) -> Vec<RunRefusal> {
        let is_beyond = |site: &&String| **site != self.site && !peer.far_sites().has(site);
        let sites = run.sites.iter().filter(is_beyond);
        sites
            .filter_map(|site| {
                let why = match self.way_to(site) {
                    Ok(next) if !next.is_away_for(AWAY_TIME) => return None,
                    Ok(next) => format!(
                        "the relay of the site {} is not connected to that of {}: {}",
                        self.site,
                        next.site(),
                        next.why_down(&self.tls.keys)?
                    ),
                    Err(refusal) => refusal.why,
                };
                Some(RunRefusal {
                    run: run.run,
                    to: Some(site.clone()),
                    hops: 1,
                    why: bounded(&why),
                })
            })
            .collect()
    }

    /// What the manager hears of a run whose permit is too long.
    pub(crate) fn too_long(&self, run: u64) -> RunRefusal {
        RunRefusal {
            run,
            to: None,
            hops: 0,
            why: format!(
                "the relay of the site {} does not take the run over: the names of the run and of its sites have more than \
                 {LONGEST_PERMIT} bytes",
                self.site,
            ),
        }
    }

    /// What the manager hears of a run that a peer brings beyond its limit.
    pub(crate) fn too_many_runs(&self, peer: &Peer, run: u64) -> RunRefusal {
        RunRefusal {
            run,
            to: None,
            hops: 0,
            why: format!(
                "the relay of the site {} does not take the run over: the most runs that it takes from the relay of {} are {} \
                 (`runs` in its relay.toml)",
                self.site,
                peer.site(),
                peer.config.most_runs()
            ),
        }
    }
}
