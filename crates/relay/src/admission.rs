//! The runs that a relay serves: those that managers of the site have it admit, and those of the
//! relays that it trusts.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use titin_wire::Secret;
use titin_wire::circuit::RunPermit;
use tokio::sync::watch;

/// Who has brought a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RunSource {
    /// A manager of this site.
    Manager,
    /// The relay of a site.
    Peer(String),
}

#[derive(Debug, Clone)]
struct AdmittedRun {
    permit: RunPermit,
    source: RunSource,
}

/// The admitted runs.
pub(crate) struct AdmittedRuns {
    runs: Mutex<HashMap<u64, AdmittedRun>>,
    /// Counts the changes.
    changes: watch::Sender<u64>,
}

impl AdmittedRuns {
    pub(crate) fn new() -> Self {
        AdmittedRuns {
            runs: Mutex::default(),
            changes: watch::channel(0).0,
        }
    }

    /// The permit of a run.
    pub(crate) fn permit(&self, run: u64) -> Option<Secret> {
        self.lock().get(&run).map(|run| run.permit.permit.clone())
    }

    /// Whether a peer may use a run: the peer has brought the run, or the run is for the peer.
    pub(crate) fn is_for(&self, run: u64, peer: &str, behind: &[String]) -> bool {
        let runs = self.lock();
        runs.get(&run).is_some_and(|run| {
            run.source == RunSource::Peer(peer.to_owned())
                || run
                    .permit
                    .sites
                    .iter()
                    .any(|site| site == peer || behind.contains(site))
        })
    }

    /// Admits the run of a manager, until the returned value is dropped.
    pub(crate) fn admit(self: &Arc<Self>, permit: RunPermit) -> Result<ManagerAdmission, String> {
        let mut runs = self.lock();
        let run = permit.run;
        if runs.contains_key(&run) {
            return Err(format!("the number {run:016x} is that of another run"));
        }
        let source = RunSource::Manager;
        runs.insert(run, AdmittedRun { permit, source });
        drop(runs);
        self.note_change();
        Ok(ManagerAdmission {
            runs: self.clone(),
            run,
        })
    }

    /// Admits the runs of a peer, at most `most`, and no others of the peer. Returns how many runs
    /// were too many.
    pub(crate) fn set_of_peer(&self, peer: &str, permits: Vec<RunPermit>, most: usize) -> usize {
        let source = RunSource::Peer(peer.to_owned());
        let mut runs = self.lock();
        let before: Vec<u64> = numbers_of(&runs, &source);
        runs.retain(|_, run| run.source != source);
        let surplus = permits.len().saturating_sub(most);
        for permit in permits.into_iter().take(most) {
            let source = source.clone();
            runs.entry(permit.run)
                .or_insert(AdmittedRun { permit, source });
        }
        let has_changed = before != numbers_of(&runs, &source);
        drop(runs);
        if has_changed {
            self.note_change();
        }
        surplus
    }

    /// The runs that a peer is to admit: those for the peer or for sites behind the peer that the
    /// peer has not brought.
    pub(crate) fn for_peer(&self, peer: &str, behind: &[String]) -> Vec<RunPermit> {
        let source = RunSource::Peer(peer.to_owned());
        let runs = self.lock();
        let is_meant = |run: &&AdmittedRun| {
            let mut sites = run.permit.sites.iter();
            run.source != source && sites.any(|site| site == peer || behind.contains(site))
        };
        let mut permits: Vec<RunPermit> = runs
            .values()
            .filter(is_meant)
            .map(|run| run.permit.clone())
            .collect();
        permits.sort_by_key(|permit| permit.run);
        permits
    }

    /// The number and name of each run, and who has brought the run.
    pub(crate) fn list(&self) -> Vec<(u64, String, RunSource)> {
        let runs = self.lock();
        let mut list: Vec<_> = runs
            .iter()
            .map(|(number, run)| (*number, run.permit.name.clone(), run.source.clone()))
            .collect();
        list.sort_by_key(|(number, ..)| *number);
        list
    }

    /// Tells of changes.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn note_change(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, AdmittedRun>> {
        self.runs.lock().expect("never poisoned")
    }
}

fn numbers_of(runs: &HashMap<u64, AdmittedRun>, source: &RunSource) -> Vec<u64> {
    let of_source = runs.iter().filter(|(_, run)| run.source == *source);
    let mut numbers: Vec<u64> = of_source.map(|(number, _)| *number).collect();
    numbers.sort_unstable();
    numbers
}

/// The admission of a manager's run.
pub(crate) struct ManagerAdmission {
    runs: Arc<AdmittedRuns>,
    run: u64,
}

impl Drop for ManagerAdmission {
    fn drop(&mut self) {
        self.runs.lock().remove(&self.run);
        self.runs.note_change();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permit(run: u64, sites: &[&str]) -> RunPermit {
        RunPermit {
            run,
            permit: Secret::random(),
            name: format!("model {run}"),
            sites: sites.iter().map(|site| (*site).to_owned()).collect(),
        }
    }

    fn numbers(permits: Vec<RunPermit>) -> Vec<u64> {
        permits.iter().map(|permit| permit.run).collect()
    }

    #[test]
    fn a_run_is_told_to_its_sites_and_the_sites_on_the_way() {
        let runs = Arc::new(AdmittedRuns::new());
        let _first = runs.admit(permit(1, &["south"])).unwrap();
        let _second = runs.admit(permit(2, &["east"])).unwrap();
        runs.set_of_peer("west", vec![permit(3, &["south", "west"])], 10);
        let behind = ["east".to_owned()];
        assert_eq!(numbers(runs.for_peer("south", &[])), [1, 3]);
        assert_eq!(numbers(runs.for_peer("south", &behind)), [1, 2, 3]);
        assert_eq!(numbers(runs.for_peer("west", &[])), [0_u64; 0]);
        assert!(runs.is_for(3, "west", &[]) && runs.is_for(2, "south", &behind));
        assert!(!runs.is_for(2, "south", &[]) && !runs.is_for(4, "south", &[]));
    }

    #[test]
    fn a_run_goes_with_its_manager_and_with_its_relay() {
        let runs = Arc::new(AdmittedRuns::new());
        let changes = runs.changes();
        let mine = runs.admit(permit(1, &[])).unwrap();
        assert!(runs.admit(permit(1, &[])).is_err());
        assert_eq!(
            runs.set_of_peer("west", vec![permit(2, &[]), permit(3, &[])], 1),
            1
        );
        assert!(runs.permit(2).is_some() && runs.permit(3).is_none());
        // A relay takes no run away from the manager.
        runs.set_of_peer("west", vec![permit(1, &["west"])], 9);
        assert!(runs.permit(2).is_none() && !runs.is_for(1, "west", &[]));
        drop(mine);
        assert!(runs.permit(1).is_none());
        assert_eq!(*changes.borrow(), 4);
    }
}
