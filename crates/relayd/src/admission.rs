//! The runs that a relay serves: those that managers of the site have it admit, and those of the
//! relays that it trusts.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use titin_wire::Secret;
use titin_wire::circuit::{self, CircuitRefusal, MOST_HOPS, RunPermit};
use tokio::sync::watch;

/// The most circuits of a run that processes of this site have dialled.
const MOST_CIRCUITS: usize = 4096;

/// The most runs of managers of this site at a time, in number and in bytes of their permits: they have to fit into
/// a message together.
const MOST_OF_MANAGERS: usize = 1024;
const LONGEST_OF_MANAGERS: usize = circuit::LONGEST / 2;

/// The most connections of managers at a time: to a run, since a manager comes again before the relay notices that an
/// earlier connection is lost; and to all runs.
const MOST_MANAGERS_OF_RUN: usize = 16;
const MOST_MANAGERS: usize = 2 * MOST_OF_MANAGERS;

/// The most runs of managers of this site that are over and stay known.
const MOST_OVER: usize = 1024;

/// From where a relay knows a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RunSource {
    /// A manager of this site, by the number of its connection.
    Manager(u64),
    /// The relay of a site.
    Peer(String),
}

impl RunSource {
    fn is_manager(&self) -> bool {
        matches!(self, RunSource::Manager(_))
    }
}

/// What a source tells of a run.
#[derive(Debug, Clone)]
struct ToldRun {
    source: RunSource,
    permit: RunPermit,
    /// Whether the source is a relay to which there is no connection, and which may tell nothing new of the run.
    is_away: bool,
}

#[derive(Debug, Clone, Default)]
struct AdmittedRun {
    /// What each source tells of the run, the first one to tell of it first. All of them tell the same permit. Never
    /// empty but while a source is added.
    told: Vec<ToldRun>,
    /// Shared with the circuits that processes of this site have dialled.
    circuits: RunCircuit,
    /// The most bytes that a permit of a manager of this site has had.
    length: usize,
}

/// Counts a circuit among those of the processes of a run at this site.
pub(crate) type RunCircuit = Arc<()>;

impl AdmittedRun {
    fn is_of_manager(&self) -> bool {
        self.managers() > 0
    }

    /// How many connections of managers there are.
    fn managers(&self) -> usize {
        let told = self.told.iter();
        told.filter(|told| told.source.is_manager()).count()
    }

    /// What a source tells.
    fn of(&self, source: &RunSource) -> Option<&RunPermit> {
        let mut told = self.told.iter();
        let told = told.find(|told| told.source == *source)?;
        Some(&told.permit)
    }

    /// Notes what a source tells.
    fn set(&mut self, source: &RunSource, permit: RunPermit) {
        match self.told.iter_mut().find(|told| told.source == *source) {
            Some(told) => (told.permit, told.is_away) = (permit, false),
            None => self.told.push(ToldRun {
                source: source.clone(),
                permit,
                is_away: false,
            }),
        }
    }

    fn remove(&mut self, source: &RunSource) -> Option<RunPermit> {
        let place = self.told.iter().position(|told| told.source == *source)?;
        Some(self.told.remove(place).permit)
    }

    /// What counts of that which sources tell: the word of a manager of this site, or else that of the first relay to
    /// tell of the run. The relays of all sites of the run know the permit and may tell anything, so no later one
    /// takes the place of the first as long as that one tells of the run. While it is away, the next one counts.
    fn trusted_source(&self) -> Option<&ToldRun> {
        self.trusted_of(|_| true)
    }

    /// As [`AdmittedRun::trusted_source`], of the sources for which `counts` is true.
    fn trusted_of(&self, counts: impl Fn(&RunSource) -> bool) -> Option<&ToldRun> {
        let told = || self.told.iter().filter(|told| counts(&told.source));
        let manager = told().find(|told| told.source.is_manager());
        let connected = || told().find(|told| !told.is_away);
        manager.or_else(connected).or_else(|| told().next())
    }

    /// What the source tells that counts.
    fn trusted(&self) -> Option<&RunPermit> {
        self.trusted_source().map(|told| &told.permit)
    }

    /// Whether all sources but one tell this permit.
    fn has_permit(&self, permit: &Secret, except: &RunSource) -> bool {
        let mut others = self.told.iter().filter(|told| told.source != *except);
        others.all(|told| told.permit.permit == *permit)
    }

    fn is_over(&self) -> bool {
        self.trusted().is_some_and(|permit| permit.is_over)
    }
}

/// The admitted runs.
pub(crate) struct AdmittedRuns {
    runs: Mutex<HashMap<u64, AdmittedRun>>,
    /// Counts the changes.
    changes: watch::Sender<u64>,
}

/// The sites on the far side of a relay.
pub(crate) struct FarSites<'a> {
    /// The site of the relay.
    pub(crate) site: &'a str,
    /// The sites that the relay leads to.
    pub(crate) behind: &'a [String],
}

impl FarSites<'_> {
    /// Whether a site is among them.
    pub(crate) fn has(&self, site: &str) -> bool {
        site == self.site || self.behind.iter().any(|behind| behind == site)
    }

    fn are_in(&self, permit: &RunPermit) -> bool {
        permit.sites.iter().any(|site| self.has(site))
    }
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
        let runs = self.lock();
        let permit = runs.get(&run)?.trusted()?;
        Some(permit.permit.clone())
    }

    /// Counts a circuit that a process of this site has dialled, until the returned value is dropped.
    ///
    /// # Errors
    /// If the run is not known any more, or has too many circuits.
    pub(crate) fn enter(&self, run: u64) -> Result<RunCircuit, CircuitRefusal> {
        let runs = self.lock();
        let Some(run) = runs.get(&run) else {
            return Err(CircuitRefusal::passing("the run is not known any more"));
        };
        match Arc::strong_count(&run.circuits) <= MOST_CIRCUITS {
            true => Ok(run.circuits.clone()),
            false => Err(CircuitRefusal::passing(format!(
                "processes of this site have the most circuits of a run: {MOST_CIRCUITS}"
            ))),
        }
    }

    /// Whether the manager of a run has ended.
    pub(crate) fn is_over(&self, run: u64) -> bool {
        self.lock().get(&run).is_some_and(AdmittedRun::is_over)
    }

    /// Whether a run has a site.
    pub(crate) fn has_site(&self, run: u64, site: &str) -> bool {
        let runs = self.lock();
        let permit = runs.get(&run).and_then(AdmittedRun::trusted);
        let mut sites = permit.into_iter().flat_map(|permit| &permit.sites);
        sites.any(|known| known == site)
    }

    /// Whether a peer has brought a run.
    pub(crate) fn is_of_peer(&self, run: u64, peer: &str) -> bool {
        let runs = self.lock();
        let source = RunSource::Peer(peer.to_owned());
        runs.get(&run).is_some_and(|run| run.of(&source).is_some())
    }

    /// The runs that a peer has brought, and that go on.
    pub(crate) fn of_peer(&self, peer: &str) -> Vec<RunPermit> {
        let source = RunSource::Peer(peer.to_owned());
        let mut permits = permits_of(&self.lock(), &source);
        permits.retain(|permit| !permit.is_over);
        permits
    }

    /// Whether a peer may use a run: the peer has brought the run, or the run is for the peer.
    pub(crate) fn is_for(&self, run: u64, peer: &FarSites<'_>) -> bool {
        let runs = self.lock();
        runs.get(&run).is_some_and(|run| {
            let source = RunSource::Peer(peer.site.to_owned());
            let brought = run.of(&source).is_some();
            brought || run.trusted().is_some_and(|permit| peer.are_in(permit))
        })
    }

    /// Admits the run of a manager, until the returned value is dropped. `connection` is the number
    /// of the manager's connection. What relays tell of another run with the same number does not count.
    pub(crate) fn admit(
        self: &Arc<Self>,
        permit: RunPermit,
        connection: u64,
    ) -> Result<ManagerAdmission, String> {
        let run = permit.run;
        let source = RunSource::Manager(connection);
        let mut runs = self.lock();
        let length = circuit::encode(&permit).len();
        check_room(&runs, run, length)?;
        let known = runs.entry(run).or_default();
        let is_same = |told: &ToldRun| told.permit.permit == permit.permit;
        if known.is_of_manager() && !known.told.iter().all(is_same) {
            return Err(format!("the number {run:016x} is that of another run"));
        }
        known.told.retain(is_same);
        if known.is_over() {
            known.told.retain(|told| !told.source.is_manager());
        }
        known.set(&source, permit);
        known.length = known.length.max(length);
        drop(runs);
        self.note_change();
        Ok(ManagerAdmission {
            runs: self.clone(),
            run,
            source,
        })
    }

    /// Admits the runs of a peer, at most `most` that go on and as many that are over, and no others of the
    /// peer. A run that is over when the relay first hears of it is left out.
    pub(crate) fn set_of_peer(
        &self,
        peer: &str,
        permits: Vec<RunPermit>,
        most: usize,
    ) -> NotAdmitted {
        let source = RunSource::Peer(peer.to_owned());
        let mut runs = self.lock();
        let before = permits_of(&runs, &source);
        let (over, permits): (Vec<_>, Vec<_>) =
            permits.into_iter().partition(|permit| permit.is_over);
        // Runs that are known come before new ones.
        let is_new = |permit: &RunPermit| !before.iter().any(|known| known.run == permit.run);
        let (new, known): (Vec<_>, Vec<_>) = permits.into_iter().partition(is_new);
        let mut admitted: Vec<RunPermit> = known.into_iter().chain(new).collect();
        let surplus = admitted.split_off(most.min(admitted.len()));
        let admitted = admitted.into_iter().chain(over.into_iter().take(most));
        let mut admitted: HashMap<u64, RunPermit> = admitted
            .map(|permit| {
                // The peer itself is one.
                let hops = permit.hops.max(1);
                (permit.run, RunPermit { hops, ..permit })
            })
            .collect();
        let mut of_others = Vec::new();
        runs.retain(|number, run| {
            match admitted.remove(number) {
                // A relay changes nothing of a run that it does not know.
                Some(permit) if run.has_permit(&permit.permit, &source) => run.set(&source, permit),
                // A run that is over gives its number up.
                Some(permit) if run.is_over() && !permit.is_over => {
                    *run = AdmittedRun::default();
                    run.set(&source, permit);
                }
                told => {
                    of_others.extend(told.map(|permit| permit.run));
                    run.remove(&source);
                }
            }
            !run.told.is_empty()
        });
        admitted.retain(|_, permit| !permit.is_over);
        runs.extend(admitted.into_iter().map(|(number, permit)| {
            let mut run = AdmittedRun::default();
            run.set(&source, permit);
            (number, run)
        }));
        let has_changed = before != permits_of(&runs, &source);
        drop(runs);
        if has_changed {
            self.note_change();
        }
        of_others.sort_unstable();
        NotAdmitted {
            surplus: surplus.iter().map(|permit| permit.run).collect(),
            of_others,
        }
    }

    /// Notes that there is no connection to a peer, which may tell nothing new of its runs. Until it tells of them
    /// again, what others tell of them comes before.
    pub(crate) fn note_away(&self, peer: &str) {
        let source = RunSource::Peer(peer.to_owned());
        let mut runs = self.lock();
        let told = runs.values_mut().flat_map(|run| &mut run.told);
        told.filter(|told| told.source == source)
            .for_each(|told| told.is_away = true);
        drop(runs);
        self.note_change();
    }

    /// The runs that a peer is to admit: those of managers of this site, and those of relays with
    /// `transit`, which are for the peer or for sites behind the peer.
    pub(crate) fn for_peer(&self, peer: &FarSites<'_>, transit: &[String]) -> Vec<RunPermit> {
        let own = RunSource::Peer(peer.site.to_owned());
        let goes_on = |source: &RunSource| match source {
            RunSource::Manager(_) => true,
            RunSource::Peer(site) => *source != own && transit.contains(site),
        };
        let runs = self.lock();
        let told = |run: &AdmittedRun| {
            let permit = &run.trusted_of(goes_on)?.permit;
            let goes_on = permit.hops < MOST_HOPS && peer.are_in(permit);
            goes_on.then(|| RunPermit {
                hops: permit.hops + 1,
                ..permit.clone()
            })
        };
        let mut permits: Vec<RunPermit> = runs.values().filter_map(told).collect();
        permits.sort_by_key(|permit| permit.run);
        permits
    }

    /// The number and name of each run that is not over, and the source that counts.
    pub(crate) fn list(&self) -> Vec<(u64, String, RunSource)> {
        let runs = self.lock();
        let mut list: Vec<_> = runs
            .iter()
            .filter(|(_, run)| !run.is_over())
            .filter_map(|(number, run)| {
                let ToldRun { source, permit, .. } = run.trusted_source()?;
                Some((*number, permit.name.clone(), source.clone()))
            })
            .collect();
        list.sort_by_key(|(number, ..)| *number);
        list
    }

    /// Tells of changes.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Wakes all that follow [`Self::changes`].
    pub(crate) fn note_change(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, AdmittedRun>> {
        self.runs.lock().expect("never poisoned")
    }
}

/// The runs of a peer that were not admitted, by their numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct NotAdmitted {
    /// Those beyond the peer's limit.
    pub(crate) surplus: Vec<u64>,
    /// Those whose number is that of another run.
    pub(crate) of_others: Vec<u64>,
}

/// Whether there is room for a run of a manager of this site, with a permit of `length` bytes.
fn check_room(runs: &HashMap<u64, AdmittedRun>, run: u64, length: usize) -> Result<(), String> {
    let others = runs.iter().filter(|(number, other)| {
        let goes_on = other.is_of_manager() && !other.is_over();
        goes_on && **number != run
    });
    let (count, bytes) = others.fold((0, 0), |(count, bytes), (_, other)| {
        (count + 1, bytes + other.length)
    });
    let of_run = runs.get(&run).map_or(0, AdmittedRun::managers);
    let of_all: usize = runs.values().map(AdmittedRun::managers).sum();
    let many = match () {
        () if count >= MOST_OF_MANAGERS => format!("{count} runs"),
        () if bytes + length > LONGEST_OF_MANAGERS => {
            format!("{count} runs with {bytes} bytes of names and sites")
        }
        () if of_run >= MOST_MANAGERS_OF_RUN => format!("{of_run} connections for this run"),
        () if of_all >= MOST_MANAGERS => format!("{of_all} connections"),
        () => return Ok(()),
    };
    Err(format!(
        "managers of this site have {many} here already, which is as many as a relay takes: wait until some have ended"
    ))
}

fn permits_of(runs: &HashMap<u64, AdmittedRun>, source: &RunSource) -> Vec<RunPermit> {
    let of_source = runs.values().filter_map(|run| run.of(source));
    let mut permits: Vec<RunPermit> = of_source.cloned().collect();
    permits.sort_by_key(|permit| permit.run);
    permits
}

/// The admission of a manager's run.
pub(crate) struct ManagerAdmission {
    runs: Arc<AdmittedRuns>,
    run: u64,
    source: RunSource,
}

impl ManagerAdmission {
    /// Notes that the manager's connection has ended. The run is over, but stays known until this value is
    /// dropped, unless the manager has come again by another connection.
    pub(crate) fn note_end(&self) {
        let mut runs = self.runs.lock();
        let over = runs
            .values()
            .filter(|run| run.is_of_manager() && run.is_over());
        let has_room = over.count() < MOST_OVER;
        if let Some(run) = runs.get_mut(&self.run) {
            let permit = run.remove(&self.source);
            if let Some(permit) = permit
                && has_room
                && !run.is_of_manager()
            {
                let over = RunPermit {
                    is_over: true,
                    ..permit
                };
                run.set(&self.source, over);
            }
            if run.told.is_empty() {
                runs.remove(&self.run);
            }
        }
        drop(runs);
        self.runs.note_change();
    }
}

impl Drop for ManagerAdmission {
    fn drop(&mut self) {
        let mut runs = self.runs.lock();
        if let Some(run) = runs.get_mut(&self.run) {
            run.remove(&self.source);
            if run.told.is_empty() {
                runs.remove(&self.run);
            }
        }
        drop(runs);
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
            is_over: false,
            hops: 0,
        }
    }

    fn numbers(permits: Vec<RunPermit>) -> Vec<u64> {
        permits.iter().map(|permit| permit.run).collect()
    }

    fn far<'a>(site: &'a str, behind: &'a [String]) -> FarSites<'a> {
        FarSites { site, behind }
    }

    #[test]
    fn a_run_is_told_to_its_sites_and_the_sites_on_the_way() {
        let runs = Arc::new(AdmittedRuns::new());
        let _first = runs.admit(permit(1, &["south"]), 1).unwrap();
        let _second = runs.admit(permit(2, &["east"]), 2).unwrap();
        runs.set_of_peer("west", vec![permit(3, &["south", "west"])], 10);
        let behind = ["east".to_owned()];
        let transit = ["west".to_owned()];
        assert_eq!(numbers(runs.for_peer(&far("south", &[]), &[])), [1]);
        assert_eq!(numbers(runs.for_peer(&far("south", &[]), &transit)), [1, 3]);
        assert_eq!(
            numbers(runs.for_peer(&far("south", &behind), &transit)),
            [1, 2, 3]
        );
        assert_eq!(
            numbers(runs.for_peer(&far("west", &[]), &transit)),
            [0_u64; 0]
        );
        assert!(runs.is_for(3, &far("west", &[])) && runs.is_for(2, &far("south", &behind)));
        assert!(!runs.is_for(2, &far("south", &[])) && !runs.is_for(4, &far("south", &[])));
        assert!(runs.has_site(3, "west") && !runs.has_site(1, "west"));
    }

    #[test]
    fn a_run_has_no_more_circuits_than_it_may() {
        let runs = Arc::new(AdmittedRuns::new());
        assert!(runs.enter(1).is_err());
        let _run = runs.admit(permit(1, &[]), 1).unwrap();
        let mut places: Vec<_> = (0..MOST_CIRCUITS).map(|_| runs.enter(1).unwrap()).collect();
        let refusal = runs.enter(1).unwrap_err();
        assert!(refusal.may_pass && refusal.why.contains("circuits of a run: 4096"));
        places.pop();
        assert!(runs.enter(1).is_ok());

        let of_peer = permit(2, &[]);
        runs.set_of_peer("west", vec![of_peer.clone()], 9);
        let _places: Vec<_> = (0..MOST_CIRCUITS).map(|_| runs.enter(2).unwrap()).collect();
        runs.set_of_peer("west", vec![of_peer, permit(3, &[])], 9);
        assert!(
            runs.enter(2).is_err(),
            "they count on when the peer brings another run"
        );
    }

    #[test]
    fn a_run_goes_with_its_manager_and_with_its_relay() {
        let runs = Arc::new(AdmittedRuns::new());
        let changes = runs.changes();
        let mine = runs.admit(permit(1, &[]), 1).unwrap();
        assert!(runs.admit(permit(1, &[]), 2).is_err());
        let two = vec![permit(2, &[]), permit(3, &[])];
        assert_eq!(runs.set_of_peer("west", two, 1).surplus.len(), 1);
        assert!(runs.permit(2).is_some() && runs.permit(3).is_none());
        // A relay that names the number of another run changes nothing.
        runs.set_of_peer("west", vec![permit(1, &["west"])], 9);
        assert!(runs.permit(2).is_none() && !runs.is_for(1, &far("west", &[])));
        drop(mine);
        assert!(runs.permit(1).is_none());
        assert_eq!(*changes.borrow(), 4);
    }

    #[test]
    fn a_run_of_several_sources_goes_with_the_last() {
        let runs = Arc::new(AdmittedRuns::new());
        let run = permit(1, &["west"]);
        runs.set_of_peer("west", vec![run.clone()], 9);
        runs.set_of_peer("east", vec![run.clone()], 9);
        runs.set_of_peer("west", Vec::new(), 9);
        assert!(runs.permit(1).is_some());
        // The manager's connection was lost, and the manager has come again.
        let first = runs.admit(run.clone(), 1).unwrap();
        let second = runs.admit(run.clone(), 2).unwrap();
        drop(first);
        runs.set_of_peer("east", Vec::new(), 9);
        assert!(runs.permit(1).is_some());
        drop(second);
        assert!(runs.permit(1).is_none());
    }

    #[test]
    fn a_run_that_is_over_stays_known_for_a_while_and_takes_no_place() {
        let runs = Arc::new(AdmittedRuns::new());
        let run = permit(1, &["west"]);
        let first = runs.admit(run.clone(), 1).unwrap();
        let second = runs.admit(run.clone(), 2).unwrap();
        first.note_end();
        assert!(!runs.is_over(1));
        drop(first);
        second.note_end();
        assert!(runs.is_over(1) && runs.list().is_empty());
        let told = runs.for_peer(&far("west", &[]), &[]);
        assert!(told[0].is_over);
        // The other relay knows it for as long.
        let others = AdmittedRuns::new();
        others.set_of_peer("north", vec![run.clone(), permit(2, &[])], 1);
        let all = [told, vec![permit(2, &[])]].concat();
        assert_eq!(others.set_of_peer("north", all, 1), NotAdmitted::default());
        assert!(others.is_over(1) && others.permit(1).is_some() && others.permit(2).is_some());
        // The manager was not gone after all.
        let third = runs.admit(run, 3).unwrap();
        assert!(!runs.is_over(1));
        drop((second, third));
        assert!(runs.permit(1).is_none());
    }

    #[test]
    fn a_run_does_not_go_round_in_a_ring_of_relays() {
        let relays: Vec<AdmittedRuns> = (0..4).map(|_| AdmittedRuns::new()).collect();
        let names = ["a", "b", "c", "d"];
        let sources = names.iter().chain(&["outside"]);
        let transit: Vec<String> = sources.map(|name| (*name).to_owned()).collect();
        // Each relay tells each other one.
        let exchange = || {
            for (from, to) in (0..4).flat_map(|from| (0..4).map(move |to| (from, to))) {
                if from != to {
                    let told = relays[from].for_peer(&far(names[to], &[]), &transit);
                    relays[to].set_of_peer(names[from], told, 9);
                }
            }
        };
        let known = || {
            relays
                .iter()
                .filter(|relay| relay.permit(1).is_some())
                .count()
        };
        relays[0].set_of_peer("outside", vec![permit(1, &names)], 9);
        exchange();
        assert_eq!(known(), 4);
        let over = RunPermit {
            is_over: true,
            ..relays[0].for_peer(&far("b", &[]), &transit)[0].clone()
        };
        relays[0].set_of_peer("outside", vec![RunPermit { hops: 0, ..over }], 9);
        exchange();
        exchange();
        assert!(relays.iter().all(|relay| relay.is_over(1)));
        relays[0].set_of_peer("outside", Vec::new(), 9);
        for _ in 0..MOST_HOPS {
            exchange();
        }
        assert_eq!(known(), 0);
    }

    #[test]
    fn a_relay_that_hears_of_a_run_does_not_speak_for_its_manager() {
        let runs = AdmittedRuns::new();
        let run = permit(1, &["east", "west"]);
        let told = |is_over, hops| {
            let permit = RunPermit {
                is_over,
                hops,
                ..run.clone()
            };
            vec![permit]
        };
        // The run has come by another relay, and east says that it is nearer to the manager.
        runs.set_of_peer("west", told(false, 2), 9);
        for hops in [0, 1, 2] {
            runs.set_of_peer("east", told(true, hops), 9);
            assert!(!runs.is_over(1), "{hops}");
        }
        assert!(runs.is_of_peer(1, "east"));
        // West tells of another run meanwhile, and stays the first to have told of this one.
        runs.set_of_peer("west", [told(false, 1), vec![permit(2, &[])]].concat(), 9);
        assert!(!runs.is_over(1));
        let listed = runs.list();
        assert_eq!(listed[0].2, RunSource::Peer("west".into()));
        runs.set_of_peer("west", told(true, 1), 9);
        assert!(runs.is_over(1));
    }

    #[test]
    fn a_relay_that_is_away_is_not_believed_before_others() {
        let runs = AdmittedRuns::new();
        let run = permit(1, &["east", "west"]);
        let over = RunPermit {
            is_over: true,
            ..run.clone()
        };
        runs.set_of_peer("west", vec![run.clone()], 9);
        runs.note_away("west");
        assert!(!runs.is_over(1) && runs.permit(1).is_some());
        runs.set_of_peer("east", vec![run], 9);
        runs.note_away("west");
        runs.set_of_peer("east", vec![over], 9);
        assert!(runs.is_over(1));
    }

    #[test]
    fn the_first_relay_counts_again_when_it_is_back() {
        let runs = AdmittedRuns::new();
        let run = permit(1, &["east", "west"]);
        let over = RunPermit {
            is_over: true,
            ..run.clone()
        };
        runs.set_of_peer("west", vec![run.clone()], 9);
        runs.set_of_peer("east", vec![run.clone()], 9);
        runs.note_away("west");
        runs.set_of_peer("east", vec![over], 9);
        assert!(runs.is_over(1));
        runs.set_of_peer("west", vec![run], 9);
        assert!(!runs.is_over(1));
    }

    #[test]
    fn connections_and_bytes_of_managers_are_bounded_for_a_run_too() {
        let runs = Arc::new(AdmittedRuns::new());
        let run = permit(1, &[]);
        let mut of_run: Vec<_> = (0..MOST_MANAGERS_OF_RUN as u64)
            .map(|connection| runs.admit(run.clone(), connection).unwrap())
            .collect();
        let refused = runs.admit(run.clone(), 99).err().unwrap();
        assert!(refused.contains("16 connections"), "{refused}");
        of_run[0].note_end();
        of_run.push(runs.admit(run, 100).unwrap());
        drop(of_run);

        // A later, shorter permit makes no room, since the first one is told.
        let long = "x".repeat(LONGEST_OF_MANAGERS / 4);
        let mut admitted = Vec::new();
        for number in 1..=5 {
            let permit = RunPermit {
                name: long.clone(),
                ..permit(number, &[])
            };
            let short = RunPermit {
                name: String::new(),
                ..permit.clone()
            };
            match runs.admit(permit, 2 * number) {
                Ok(first) => admitted.push(first),
                Err(_) => assert_eq!(number, 4),
            }
            admitted.extend(runs.admit(short, 2 * number + 1));
            if number == 4 {
                break;
            }
        }
        assert_eq!(admitted.len(), 3 * 2 + 1);
    }

    #[test]
    fn a_lone_relay_may_bring_another_run_by_the_same_number() {
        let runs = Arc::new(AdmittedRuns::new());
        runs.set_of_peer("west", vec![permit(1, &[])], 9);
        let other = permit(1, &[]);
        runs.set_of_peer("west", vec![other.clone()], 9);
        assert!(runs.permit(1) == Some(other.permit.clone()));
        let third = permit(1, &[]);
        let refused = runs.set_of_peer("east", vec![third.clone()], 9);
        assert_eq!((refused.of_others, refused.surplus), (vec![1], vec![]));
        assert!(runs.permit(1) == Some(other.permit.clone()) && !runs.is_of_peer(1, "east"));
        let over = RunPermit {
            is_over: true,
            ..other
        };
        runs.set_of_peer("west", vec![over], 9);
        let taken = runs.set_of_peer("east", vec![third.clone()], 9);
        assert_eq!(taken, NotAdmitted::default());
        assert!(runs.permit(1) == Some(third.permit) && !runs.is_of_peer(1, "west"));
    }

    #[test]
    fn a_manager_of_the_site_takes_the_number_of_its_run_from_relays_and_not_from_managers() {
        let runs = Arc::new(AdmittedRuns::new());
        runs.set_of_peer("west", vec![permit(1, &["west"])], 9);
        let own = permit(1, &["west"]);
        let admission = runs.admit(own.clone(), 1).unwrap();
        assert!(runs.permit(1) == Some(own.permit.clone()) && !runs.is_of_peer(1, "west"));
        assert!(runs.admit(permit(1, &["west"]), 2).is_err());
        assert!(runs.admit(own, 3).is_ok());
        drop(admission);
    }

    #[test]
    fn a_run_that_is_over_when_it_comes_is_left_out() {
        let runs = AdmittedRuns::new();
        let over = RunPermit {
            is_over: true,
            ..permit(1, &[])
        };
        runs.set_of_peer("west", vec![over], 9);
        assert!(runs.permit(1).is_none());
    }

    #[test]
    fn runs_of_managers_are_bounded_and_so_are_those_that_are_over() {
        let runs = Arc::new(AdmittedRuns::new());
        let admit = |number| runs.admit(permit(number, &[]), number);
        let mut admitted: Vec<_> = (0..MOST_OF_MANAGERS as u64)
            .map(|number| admit(number).unwrap())
            .collect();
        let refused = admit(u64::MAX).err().unwrap();
        assert!(refused.contains("1024 runs"), "{refused}");
        admitted[0].note_end();
        admitted.push(admit(u64::MAX).unwrap());
        admitted.iter().for_each(ManagerAdmission::note_end);
        let more: Vec<_> = (2000..2100).map(|number| admit(number).unwrap()).collect();
        more.iter().for_each(ManagerAdmission::note_end);
        assert_eq!(runs.lock().len(), MOST_OVER);
        drop((admitted, more));
        assert!(runs.lock().is_empty());

        let long = "x".repeat(LONGEST_OF_MANAGERS / 40);
        let admit = |number| {
            let name = long.clone();
            let permit = RunPermit {
                name,
                ..permit(number, &[])
            };
            runs.admit(permit, number)
        };
        let admitted: Vec<_> = (0..50).map_while(|number| admit(number).ok()).collect();
        assert_eq!(admitted.len(), 39);
    }

    #[test]
    fn runs_that_go_on_come_before_new_ones() {
        let runs = Arc::new(AdmittedRuns::new());
        let old = permit(9, &[]);
        runs.set_of_peer("west", vec![old.clone()], 1);
        let refused = runs.set_of_peer("west", vec![permit(1, &[]), old], 1);
        assert_eq!(refused.surplus, [1]);
        assert!(runs.permit(9).is_some() && runs.permit(1).is_none());
    }
}
