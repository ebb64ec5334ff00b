//! Why relays do not take runs over. The managers of the runs hear of it, from relay to relay.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

use titin_wire::line::RunObstacle;

use crate::log_limit::bounded;

/// The most obstacles that a relay may tell at a time.
const MOST: usize = 64;

/// The obstacles that this relay knows.
#[derive(Default)]
pub(crate) struct Obstacles(Mutex<ObstacleTable>);

#[derive(Default)]
struct ObstacleTable {
    /// Those of this relay, by the site whose relay brings the runs.
    own: HashMap<String, Vec<RunObstacle>>,
    /// What the relay of each other site has told.
    told: HashMap<String, Vec<RunObstacle>>,
}

impl Obstacles {
    /// Notes why this relay does not take over runs that the relay of a site brings. True if that is new.
    pub(crate) fn set_own(&self, site: &str, mut obstacles: Vec<RunObstacle>) -> bool {
        obstacles.truncate(MOST);
        replace(&mut self.lock().own, site, obstacles)
    }

    /// Notes what the relay of a site has told of runs that are for the site. True if that is new.
    pub(crate) fn set_told(&self, site: &str, obstacles: Vec<RunObstacle>) -> bool {
        let obstacles = obstacles.into_iter().take(MOST);
        let obstacles = obstacles.map(|RunObstacle { run, why }| RunObstacle {
            run,
            why: bounded(&why),
        });
        replace(&mut self.lock().told, site, obstacles.collect())
    }

    /// What the relay of a site is to hear. `has_brought` is true of the runs that the relay has brought.
    pub(crate) fn for_peer(
        &self,
        site: &str,
        has_brought: impl Fn(u64) -> bool,
    ) -> Vec<RunObstacle> {
        let table = self.lock();
        let own = table.own.get(site).into_iter().flatten();
        let others = table.told.iter().filter(|(from, _)| *from != site);
        let told = others.flat_map(|(_, obstacles)| obstacles);
        let told = told.filter(|obstacle| has_brought(obstacle.run));
        let mut obstacles: Vec<RunObstacle> = own.chain(told).cloned().collect();
        obstacles.sort();
        obstacles.dedup();
        obstacles
    }

    /// What the manager of a run is to hear.
    pub(crate) fn of_run(&self, run: u64) -> Vec<String> {
        let table = self.lock();
        let told = table.told.values().flatten();
        let of_run = told.filter(|obstacle| obstacle.run == run);
        let mut texts: Vec<String> = of_run.map(|obstacle| obstacle.why.clone()).collect();
        texts.sort();
        texts.dedup();
        texts
    }

    fn lock(&self) -> MutexGuard<'_, ObstacleTable> {
        self.0.lock().expect("never poisoned")
    }
}

/// Replaces the obstacles of a site. True if they are others than before.
fn replace(
    table: &mut HashMap<String, Vec<RunObstacle>>,
    site: &str,
    obstacles: Vec<RunObstacle>,
) -> bool {
    let before = match obstacles.is_empty() {
        true => table.remove(site),
        false => table.insert(site.to_owned(), obstacles.clone()),
    };
    before.unwrap_or_default() != obstacles
}

#[cfg(test)]
mod tests {
    use super::*;

    fn obstacle(run: u64, why: &str) -> RunObstacle {
        RunObstacle {
            run,
            why: why.to_owned(),
        }
    }

    #[test]
    fn obstacles_go_back_to_the_bringer_of_the_run() {
        let known = Obstacles::default();
        assert!(known.set_own("north", vec![obstacle(1, "too many runs")]));
        assert!(!known.set_own("north", vec![obstacle(1, "too many runs")]));
        assert!(known.set_told("east", vec![obstacle(2, "no transit"), obstacle(3, "full")]));
        let of_north = known.for_peer("north", |run| run == 2);
        assert_eq!(
            of_north,
            [obstacle(1, "too many runs"), obstacle(2, "no transit")]
        );
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
        let known = Obstacles::default();
        let many = (0..10_000).map(|run| obstacle(run, &"x".repeat(10_000)));
        known.set_told("east", many.collect());
        let kept = known.for_peer("north", |_| true);
        assert_eq!(kept.len(), MOST);
        assert!(kept.iter().all(|obstacle| obstacle.why.len() < 600));
    }
}
