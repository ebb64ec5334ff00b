//! The runs of other sites that this relay does not take over, does not pass on, or cannot pass on.

use std::time::Duration;

use titin_wire::circuit::{self, CircuitRefusal, RunPermit};
use titin_wire::line::RunRefusal;
use tracing::warn;

use super::{Relay, hex};
use crate::log_limit::bounded;
use crate::messages;
use crate::peers::Peer;
use crate::refused_runs::{MOST_OWN, MOST_TOLD};

/// After this time without a connection to another relay, the managers of the runs hear of it that do not get there.
const AWAY_TIME: Duration = Duration::from_secs(5);

impl Relay {
    /// What the relay of a site hears of the runs that it has brought: why relays do not take them over, and which
    /// of their sites this relay does not reach.
    pub(crate) fn refusals_for(&self, peer: &Peer) -> Vec<RunRefusal> {
        let has_brought = |run| self.runs.is_of_peer(run, peer.site());
        let mut refusals = Vec::new();
        if peer.config.transit {
            let runs = self.runs.of_peer(peer.site());
            let missing = runs.iter().flat_map(|run| self.missing_ways(peer, run));
            refusals.extend(missing.take(MOST_OWN));
        }
        refusals.extend(self.refused_runs.for_peer(peer.site(), has_brought));
        refusals.truncate(MOST_TOLD);
        messages::keep_fitting(&mut refusals);
        refusals
    }

    /// The sites of a run that this relay does not reach for a peer, and has not reached for a while. The run may
    /// have other ways to them, which the relay that has brought the run knows.
    fn missing_ways(&self, peer: &Peer, run: &RunPermit) -> impl Iterator<Item = RunRefusal> {
        let is_beyond = |site: &&String| **site != self.site && !peer.far_sites().has(site);
        let sites = run.sites.iter().filter(is_beyond);
        sites.filter_map(|site| {
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
                to: Some(bounded(site)),
                hops: 1,
                why: bounded(&why),
            })
        })
    }

    /// Why runs of a peer without `transit` are not passed on to sites to which this relay knows the way. Logs those
    /// that are not for this site: the others may have another way.
    pub(crate) fn not_passed_on(&self, peer: &Peer, runs: &[RunPermit]) -> Vec<RunRefusal> {
        if peer.config.transit {
            return Vec::new();
        }
        let goes_on = |run: &&RunPermit| !run.is_over;
        let leads_on = |site: &&String| {
            self.peer_towards(site)
                .is_some_and(|next| next.site() != peer.site())
        };
        let runs = runs.iter().filter(goes_on);
        let ways = runs.flat_map(|run| {
            run.sites
                .iter()
                .filter(leads_on)
                .map(move |site| (run, site))
        });
        let refusals = ways.take(MOST_OWN).map(|(run, site)| {
            let why = format!("the site {} is trusted without `transit`", peer.site());
            if !run.sites.contains(&self.site) {
                self.log_run_not_passed_on(peer, run, site, &why);
            }
            RunRefusal {
                run: run.run,
                to: Some(site.clone()),
                hops: 0,
                why: format!(
                    "the relay of the site {} does not pass the run on to {site}: {why}",
                    self.site
                ),
            }
        });
        refusals.collect()
    }

    fn log_run_not_passed_on(&self, peer: &Peer, run: &RunPermit, site: &str, why: &str) {
        let outcome: Result<(), _> = Err(CircuitRefusal::lasting(why));
        if self
            .refusal_to_log(run.run, site, &outcome, Some(peer))
            .is_some()
        {
            let from = peer.site();
            warn!(
                from,
                to = site,
                run = hex(run.run),
                why,
                "a run is not passed on"
            );
        }
    }

    /// What the manager hears of a run whose permit is too long.
    pub(crate) fn too_long(&self, run: u64) -> RunRefusal {
        self.not_taken_over(run, &circuit::too_long_permit())
    }

    /// What the manager hears of a run whose number another run has here.
    pub(crate) fn number_in_use(&self, run: u64) -> RunRefusal {
        let number = hex(run);
        let why = format!(
            "another run has the number {number} there, by a manager of that site or the relay of another one"
        );
        self.not_taken_over(run, &why)
    }

    /// What the manager hears of a run that a peer brings beyond its limit.
    pub(crate) fn too_many_runs(&self, peer: &Peer, run: u64) -> RunRefusal {
        let why = format!(
            "the most runs that it takes from the relay of {} are {} (`runs` in its relay.toml)",
            peer.site(),
            peer.config.most_runs()
        );
        self.not_taken_over(run, &why)
    }

    fn not_taken_over(&self, run: u64, why: &str) -> RunRefusal {
        RunRefusal {
            run,
            to: None,
            hops: 0,
            why: format!(
                "the relay of the site {} does not take the run over: {why}",
                self.site
            ),
        }
    }
}
