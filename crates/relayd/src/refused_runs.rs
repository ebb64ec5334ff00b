//! Why relays do not take runs over. The managers of the runs hear of it, from relay to relay.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

use titin_wire::circuit::MOST_HOPS;
use titin_wire::line::RunRefusal;

use crate::log_limit::bounded;

/// The most refusals of each kind that a relay has of its own for the relay of a site.
pub(crate) const MOST_OWN: usize = 64;

/// The most refusals that a relay tells another one at a time.
pub(crate) const MOST_TOLD: usize = 128;

/// The most reasons that a manager hears at a time.
const MOST_REASONS: usize = 64;

/// The refusals that this relay knows.
#[derive(Default)]
pub(crate) struct RefusedRuns(Mutex<RefusalTable>);

#[derive(Default)]
struct RefusalTable {
    /// Those of this relay, by the site whose relay brings the runs.
    own: HashMap<String, Vec<RunRefusal>>,
    /// What the relay of each other site has told.
    told: HashMap<String, Vec<RunRefusal>>,
}

impl RefusedRuns {
    /// Notes why this relay does not take over runs that the relay of a site brings. True if that is new.
    pub(crate) fn set_own(&self, site: &str, mut refusals: Vec<RunRefusal>) -> bool {
        refusals.truncate(MOST_OWN);
        replace(&mut self.lock().own, site, refusals)
    }

    /// Notes what the relay of a site has told of runs that are for the site. True if that is new.
    pub(crate) fn set_told(&self, site: &str, refusals: Vec<RunRefusal>) -> bool {
        let refusals = refusals.into_iter().take(MOST_TOLD);
        let refusals = refusals.map(|refusal| RunRefusal {
            to: refusal.to.as_deref().map(bounded),
            why: bounded(&refusal.why),
            ..refusal
        });
        replace(&mut self.lock().told, site, refusals.collect())
    }

    /// What the relay of a site is to hear. `has_brought` is true of the runs that the relay has brought.
    pub(crate) fn for_peer(
        &self,
        site: &str,
        has_brought: impl Fn(u64) -> bool,
    ) -> Vec<RunRefusal> {
        let table = self.lock();
        let own = table.own.get(site).into_iter().flatten();
        let others = table.told.iter().filter(|(from, _)| *from != site);
        let told = others.flat_map(|(_, refusals)| refusals);
        let told = told.filter(|refusal| has_brought(refusal.run));
        let told = told.filter(|refusal| refusal.hops < MOST_HOPS);
        let mut refusals: Vec<RunRefusal> = own.chain(told).cloned().collect();
        refusals.iter_mut().for_each(|refusal| refusal.hops += 1);
        // The hops come last in the order, so the shortest way stays.
        refusals.sort();
        refusals.dedup_by(|one, other| {
            (one.run, &one.to, &one.why) == (other.run, &other.to, &other.why)
        });
        refusals
    }

    /// What the manager of a run is to hear.
    pub(crate) fn of_run(&self, run: u64) -> Vec<String> {
        let table = self.lock();
        let told = table.told.values().flatten();
        let of_run = told.filter(|refusal| refusal.run == run);
        let mut texts: Vec<String> = of_run.map(|refusal| refusal.why.clone()).collect();
        texts.sort();
        texts.dedup();
        texts.truncate(MOST_REASONS);
        texts
    }

    fn lock(&self) -> MutexGuard<'_, RefusalTable> {
        self.0.lock().expect("never poisoned")
    }
}

/// Replaces the refusals of a site. True if they are others than before.
fn replace(
    table: &mut HashMap<String, Vec<RunRefusal>>,
    site: &str,
    refusals: Vec<RunRefusal>,
) -> bool {
    let before = match refusals.is_empty() {
        true => table.remove(site),
        false => table.insert(site.to_owned(), refusals.clone()),
    };
    before.unwrap_or_default() != refusals
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(run: u64, why: &str) -> RunRefusal {
        RunRefusal {
            run,
            to: None,
            why: why.to_owned(),
            hops: 0,
        }
    }

    #[test]
    fn refusals_go_back_to_the_source_of_the_run() {
        let known = RefusedRuns::default();
        assert!(known.set_own("north", vec![refusal(1, "too many runs")]));
        assert!(!known.set_own("north", vec![refusal(1, "too many runs")]));
        assert!(known.set_told("east", vec![refusal(2, "no transit"), refusal(3, "full")]));
        let further = |run, why| RunRefusal {
            hops: 1,
            ..refusal(run, why)
        };
        let expected = [further(1, "too many runs"), further(2, "no transit")];
        assert_eq!(known.for_peer("north", |run| run == 2), expected);
        // By more relays, and by too many.
        let far = |why, hops| RunRefusal {
            hops,
            ..refusal(2, why)
        };
        known.set_told("west", vec![far("no transit", 3), far("far", MOST_HOPS)]);
        assert_eq!(known.for_peer("north", |run| run == 2), expected);
        known.set_told("west", Vec::new());
        assert_eq!(known.for_peer("west", |_| false), []);
        assert_eq!(
            known.for_peer("east", |_| true),
            [],
            "it has told of them itself"
        );
        assert_eq!(known.of_run(3), ["full"]);
        assert_eq!(known.of_run(1), [""; 0], "its manager is at another site");
        assert!(known.set_told("east", Vec::new()));
        assert!(!known.set_told("east", Vec::new()));
        assert_eq!(known.of_run(3), [""; 0]);
    }

    #[test]
    fn what_a_relay_tells_is_bounded() {
        let known = RefusedRuns::default();
        let many = (0..10_000).map(|run| refusal(run, &"x".repeat(10_000)));
        known.set_told("east", many.collect());
        let kept = known.for_peer("north", |_| true);
        assert_eq!(kept.len(), MOST_TOLD);
        assert!(kept.iter().all(|refusal| refusal.why.len() < 600));
    }
}
