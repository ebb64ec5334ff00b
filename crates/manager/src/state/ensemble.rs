//! Ensembles: members that fail without ending the run, that are started again, and that wait for a
//! turn.
//!
//! A member that fails is left out, as long as its ensemble has failures left to allow: its peers are
//! told, its process is ended, and the run goes on. A member whose process has ended before it joined
//! has exchanged no message, so it can be started again, and no peer notices. `attempts` has the members
//! that are started again later.

use std::collections::HashSet;
use std::time::Duration;

use titin_wire::control::ToProgram;

use super::Manager;
use super::ending::TERMINATE_TO_KILL;
use super::fault::Fault;
use super::member::{InstanceProcess, Member, ReturnPlan};
use crate::event::{Level, Signal};
use crate::plan::{InstanceId, Plan, PlannedEnsemble};

/// How long all members that run wait before the log says that others wait for their turn.
const LONG_WAIT: Duration = Duration::from_secs(30);

/// The failed members of the ensembles.
#[derive(Debug, Default)]
pub(super) struct Ensembles {
    /// By the places of the ensembles in [`Plan::ensembles`], in the order of the failures.
    failed: Vec<Vec<InstanceId>>,
    /// How many programs of members have been started and have not ended, by the same places.
    running: Vec<usize>,
    /// The ensembles, by the same places, of which the log says that no member ends to make room.
    told_full: HashSet<usize>,
    /// No process of a left-out member gets a signal before this time.
    pub(super) next_signal: Option<Duration>,
}

impl Ensembles {
    pub(super) fn of(plan: &Plan) -> Self {
        Ensembles {
            failed: vec![Vec::new(); plan.ensembles.len()],
            running: vec![0; plan.ensembles.len()],
            told_full: HashSet::new(),
            next_signal: None,
        }
    }
}

/// An ensemble of which members wait for a turn.
pub(super) struct FullEnsemble {
    /// The place in [`Plan::ensembles`].
    place: usize,
    /// How many members run at a time.
    pub(super) at_once: usize,
    pub(super) running: Vec<InstanceId>,
    /// The members that are not started before a running member has ended.
    pub(super) held_back: HashSet<InstanceId>,
}

/// The failed members of an ensemble, for the user.
#[derive(Debug, Clone, PartialEq)]
pub struct FailedMembers<'a> {
    /// The ensemble.
    pub ensemble: &'a PlannedEnsemble,
    /// The number of members.
    pub members: usize,
    /// The failed members, in the order of the failures, each with the fault in words.
    pub failed: Vec<(InstanceId, String)>,
}

impl FailedMembers<'_> {
    /// The number of failures in words.
    pub fn summary(&self) -> String {
        format!(
            "{} of {} members of {} failed ({} allowed)",
            self.failed.len(),
            self.members,
            self.ensemble.component,
            self.ensemble.allow_failures
        )
    }
}

/// A fault in words, with the outcome in the first line: a trace of the program may follow.
pub(super) fn with_outcome(fault: &Fault, outcome: &str) -> String {
    let fault = fault.to_string();
    match fault.split_once('\n') {
        Some((first, rest)) => format!("{first}; {outcome}\n{rest}"),
        None => format!("{fault}; {outcome}"),
    }
}

impl Manager {
    /// The ensembles with failed members.
    pub fn failed_members(&self) -> Vec<FailedMembers<'_>> {
        let ensembles = self.plan.ensembles.iter().zip(&self.ensembles.failed);
        let with_failures = ensembles.filter(|(_, failed)| !failed.is_empty());
        let described = with_failures.map(|(ensemble, failed)| FailedMembers {
            ensemble,
            members: self.members_of(&ensemble.component).count(),
            failed: failed
                .iter()
                .map(|id| (*id, self.fault_text(*id)))
                .collect(),
        });
        described.collect()
    }

    fn fault_text(&self, id: InstanceId) -> String {
        let fault = self.members[id].fault.as_ref();
        fault.map_or_else(String::new, ToString::to_string)
    }

    fn members_of(&self, component: &str) -> impl Iterator<Item = InstanceId> {
        self.ids()
            .filter(move |id| self.plan.instances[*id].component == component)
    }

    /// The message to peers about a left-out member.
    pub(super) fn member_failure(&self, id: InstanceId) -> Option<ToProgram> {
        let returns = self.members[id].return_plan;
        if !self.members[id].left_out || returns == Some(ReturnPlan::Unseen) {
            return None;
        }
        let text = self.fault_text(id);
        let outcome = match returns {
            Some(_) => "; it is started again when something is sent to it",
            None => "",
        };
        Some(ToProgram::MemberFailed {
            instance: self.name_for_peers(id),
            text: text.lines().next().unwrap_or_default().to_owned() + outcome,
            again: returns.is_some(),
        })
    }

    /// Starts the program of a member again whose process has ended before the member joined, if
    /// there is an attempt left. Returns whether the program is started.
    pub(super) fn start_again(&mut self, id: InstanceId, fault: &Fault) -> bool {
        let Some(place) = self.plan.ensemble_of(id) else {
            return false;
        };
        let retry = self.plan.ensembles[place].retry;
        let restarts = self.members[id].restarts + 1;
        let has_exchanged_nothing = matches!(fault.underlying(), Fault::BeforeJoining(_));
        if !has_exchanged_nothing || restarts > retry || self.plan.hosting(id).is_some() {
            return false;
        }
        let text = with_outcome(
            fault,
            &format!("it is started again ({restarts} of {retry})"),
        );
        self.log(Level::Warning, Some(id), text);
        let recent_log = std::mem::take(&mut self.members[id].recent_log);
        self.members[id] = Member {
            restarts,
            attempt: self.members[id].attempt,
            recent_log,
            ..Member::new(&self.plan.instances[id].start)
        };
        self.deferred_starts.push(id);
        true
    }

    /// Leaves a failed member out of the run, if its ensemble may have one more failure. Returns
    /// whether the run goes on.
    pub(super) fn leave_out(&mut self, id: InstanceId, fault: &Fault) -> bool {
        // What hinders one program from being started hinders the others too.
        let is_never_started = matches!(
            fault.underlying(),
            Fault::StartFailed(_) | Fault::StagingFailed(_)
        );
        let Some(place) = self.plan.ensemble_of(id) else {
            return false;
        };
        let failed = &mut self.ensembles.failed[place];
        failed.push(id);
        let (count, allowed) = (failed.len(), self.plan.ensembles[place].allow_failures);
        if count > allowed || is_never_started {
            return false;
        }
        let component = &self.plan.ensembles[place].component;
        let text = with_outcome(
            fault,
            &format!(
                "the run goes on without it (failure {count} of the {allowed} that {component} may have)"
            ),
        );
        self.log(Level::Warning, Some(id), text);
        self.members[id].left_out = true;
        self.deadlock_search.forget(id, self.now);
        self.deadlock_search.search_soon(self.now);
        self.tell_peers_of_failure(id);
        self.end_process_of(id);
        self.assess_errors_after_an_end();
        true
    }

    pub(super) fn tell_peers_of_failure(&mut self, id: InstanceId) {
        let Some(message) = self.member_failure(id) else {
            return;
        };
        for link in self.links_of_peers(id) {
            self.tell(link, message.clone());
        }
    }

    /// Has the process of a left-out member ended, if it does not end by itself. Other instances of
    /// the process go on.
    pub(super) fn end_process_of(&mut self, id: InstanceId) {
        if self.plan.sharers(id).len() > 1 {
            return;
        }
        let due = self.now.saturating_add(self.plan.options.grace);
        self.members[id].next_signal = Some((due, Signal::Terminate));
        let next = &mut self.ensembles.next_signal;
        *next = Some(next.map_or(due, |next| next.min(due)));
    }

    /// Sends due signals to the processes of left-out members.
    pub(super) fn end_left_out_members(&mut self) {
        let now = self.now;
        if self.ensembles.next_signal.is_none_or(|next| next > now) {
            return;
        }
        for id in self.ids() {
            let is_due = |(time, _): &mut (Duration, Signal)| *time <= now;
            let Some((_, signal)) = self.members[id].next_signal.take_if(is_due) else {
                continue;
            };
            if !matches!(self.members[id].process, InstanceProcess::Running(_)) {
                continue;
            }
            self.signal_to_end(id, signal);
            if signal == Signal::Terminate {
                let kill = now + TERMINATE_TO_KILL;
                self.members[id].next_signal = Some((kill, Signal::Kill));
            }
        }
        let signals = self.members.iter().filter_map(|member| member.next_signal);
        self.ensembles.next_signal = signals.map(|(time, _)| time).min();
    }

    /// Whether so few members of an instance's ensemble run that the instance may start.
    pub(super) fn has_turn(&self, id: InstanceId) -> bool {
        let place = self.plan.ensemble_of(id);
        place.is_none_or(|place| self.ensembles.running[place] < self.plan.ensembles[place].at_once)
    }

    /// The ensembles of which members wait for a turn.
    pub(super) fn full_ensembles(&self) -> Vec<FullEnsemble> {
        let all = self.plan.ensembles.iter().enumerate();
        let full = all.filter_map(|(place, ensemble)| {
            if self.ensembles.running[place] < ensemble.at_once {
                return None;
            }
            let waits = |id: &&InstanceId| self.plan.ensemble_of(**id) == Some(place);
            let held_back: HashSet<InstanceId> =
                self.deferred_starts.iter().filter(waits).copied().collect();
            let runs = |id: &InstanceId| {
                let process = self.members[*id].process;
                let is_starting = process == InstanceProcess::Starting && !held_back.contains(id);
                is_starting || matches!(process, InstanceProcess::Running(_))
            };
            let running: Vec<InstanceId> =
                self.members_of(&ensemble.component).filter(runs).collect();
            (!held_back.is_empty() && !running.is_empty()).then_some(FullEnsemble {
                place,
                at_once: ensemble.at_once,
                running,
                held_back,
            })
        });
        full.collect()
    }

    /// Warns of ensembles in which all members that run have waited for long, while others wait for their turn. If a
    /// driver waits for the latter by one thread alone, the search for deadlocks finds it. The waits of several
    /// threads are not known.
    pub(super) fn warn_of_full_ensembles(&mut self) {
        if self.deferred_starts.is_empty() || self.run_state.failure().is_some() {
            return;
        }
        let waits = self.deadlock_search.graph();
        let has_waited = |id: &InstanceId| {
            let wait = waits.get(id);
            wait.is_some_and(|wait| wait.reported_at + LONG_WAIT <= self.now)
        };
        let stuck = self.full_ensembles().into_iter();
        let stuck = stuck.filter(|full| full.running.iter().all(has_waited));
        let stuck: Vec<FullEnsemble> = stuck.collect();
        let places: HashSet<usize> = stuck.iter().map(|full| full.place).collect();
        let told = std::mem::replace(&mut self.ensembles.told_full, places);
        for full in stuck.iter().filter(|full| !told.contains(&full.place)) {
            let component = &self.plan.ensembles[full.place].component;
            let text = format!(
                "all members of {component} that run have waited for {} s, and {} more wait until one ends (`at_once: {}`). If \
                 an instance waits for one of the latter, by several threads perhaps, none goes on: raise `at_once` under \
                 `titin: ensemble`",
                LONG_WAIT.as_secs(),
                full.held_back.len(),
                full.at_once,
            );
            self.log(Level::Warning, None, text);
        }
    }

    /// Counts a program that is being started.
    pub(super) fn count_start(&mut self, id: InstanceId) {
        if let Some(place) = self.plan.ensemble_of(id) {
            self.ensembles.running[place] += 1;
        }
    }

    /// Counts the end of a started program, and starts the next members that have waited for a turn.
    pub(super) fn count_end(&mut self, id: InstanceId) {
        if let Some(place) = self.plan.ensemble_of(id) {
            let running = &mut self.ensembles.running[place];
            *running = running.saturating_sub(1);
        }
        if self.run_state.failure().is_none() {
            self.start_deferred();
        }
    }
}
