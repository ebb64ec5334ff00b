//! Processes, links and signs of life, and when something counts as a failure.
//!
//! News of one death comes by several ways at once: the guard reports an exit, the link ends, the program may have
//! said why, and its peers complain. They come in any order, so a sign that could still be explained by another is
//! held as a *doubt* for a short while; what is certain fails the run at once. The end of a link alone is not the
//! end of a process, and its lasting is no proof of life: a forked child keeps sockets open.

use std::fmt;
use std::time::Duration;

use titin_transport::LinkId;
use titin_wire::control::{SILENT_MANAGER, ToProgram};

use super::{Cause, Echo, Link, Manager, Process, Seat};
use crate::event::{Action, Exit, Level, Signal};
use crate::plan::InstanceId;

/// For the last words of a process that has ended badly, while its link seems to last; and for its guard to tell how
/// it has ended. The threads that hear of these may have to wait for a core of a busy host. It only passes when a
/// child keeps the link open, or a script goes on without its program.
pub(super) const LAST_WORDS: Duration = Duration::from_millis(250);

/// For a process that has ended well, or in a way unknown, to have said that it is done. Being wrong would fail a
/// good run, so this is long; it only passes when a child keeps the link open.
const LATE_WORDS: Duration = Duration::from_secs(3);

/// For a lost link to be explained by the exit of its process, and for an echo by the failure behind it.
const EXPLANATION: Duration = Duration::from_secs(1);

/// Why an instance counts as failed. Printed, it follows the instance's name.
#[derive(Debug, Clone, PartialEq)]
pub enum Fault {
    /// Its program could not be started.
    NotStarted(String),
    /// The files that it needs could not be put into its work directory.
    NotStaged(String),
    /// Its process ended before it had joined.
    BeforeJoining(Exit),
    /// Its process ended while it took part.
    WithoutClosing(Exit),
    /// Its process ended badly after it was done.
    AfterDone(Exit),
    /// Its process, which is not ours, ended while it took part.
    Gone,
    /// It said so itself.
    Said(String),
    /// It said so itself, of what others have ended.
    AfterEnd {
        /// What it said.
        text: String,
        /// Who has ended it.
        by: String,
        /// Whether all of them are done, in good order.
        well: bool,
    },
    /// It has left out a message, for want of which another one has failed.
    Missed(String),
    /// It was not let in.
    Refused(String),
    /// Its link was lost, though its process lives or cannot be seen.
    LinkLost(String),
    /// Nothing was heard of it for this long.
    Silent(Duration),
    /// It did not join within this time.
    Late(Duration),
    /// It was made to end with the run.
    Stopped,
    /// This, after one of its processes was not let in, which may be why.
    AfterRefusal {
        /// Which one, and why.
        text: String,
        /// How the instance failed.
        fault: Box<Fault>,
    },
    /// This, after the process of one of its ranks had ended, which may be why.
    AfterRank {
        /// Which rank.
        rank: u32,
        /// Its process.
        pid: u32,
        /// How the instance failed.
        fault: Box<Fault>,
    },
}

impl Fault {
    /// How the instance failed, whichever of its processes was first.
    pub fn of_all(&self) -> &Fault {
        match self {
            Fault::AfterRank { fault, .. } | Fault::AfterRefusal { fault, .. } => fault.of_all(),
            fault => fault,
        }
    }

    /// Whether a process has not ended well.
    fn is_bad_end(&self) -> bool {
        match self {
            Fault::BeforeJoining(exit) | Fault::WithoutClosing(exit) | Fault::AfterDone(exit) => {
                !exit.is_success()
            }
            Fault::Gone => true,
            _ => false,
        }
    }

    /// Whether a file that it did not find may be the reason.
    pub fn may_miss_a_file(&self) -> bool {
        match self.of_all() {
            Fault::BeforeJoining(exit) | Fault::WithoutClosing(exit) => {
                matches!(exit, Exit::Code(code) if *code != 0)
            }
            Fault::Said(_) => true,
            _ => false,
        }
    }

    /// Whether a process has failed, with every instance that it runs.
    pub fn is_of_process(&self) -> bool {
        !matches!(
            self.of_all(),
            Fault::Said(_)
                | Fault::AfterEnd { .. }
                | Fault::Missed(_)
                | Fault::Refused(_)
                | Fault::Late(_)
                | Fault::Stopped
        )
    }

    /// The same, of the process of a host. Printed, it follows the host's name.
    pub(super) fn of_host(&self) -> String {
        match self {
            Fault::BeforeJoining(exit) => {
                format!("{exit} before all of its instances had joined the run")
            }
            Fault::WithoutClosing(exit @ Exit::Code(0)) => {
                format!(
                    "{exit}, but without closing all of its instances, so their peers were left waiting"
                )
            }
            Fault::AfterDone(exit) => {
                format!("{exit} after its instances had finished their coupling")
            }
            Fault::Gone => {
                "ended (how is not known) without closing all of its instances".to_owned()
            }
            Fault::AfterRefusal { text, fault } => format!("{}, after {text}", fault.of_host()),
            other => other.to_string(),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::NotStarted(why) | Fault::NotStaged(why) => {
                write!(f, "could not be started: {why}")
            }
            Fault::BeforeJoining(exit) => write!(f, "{exit} before it had joined the run"),
            Fault::WithoutClosing(exit @ Exit::Code(0)) => {
                write!(
                    f,
                    "{exit}, but without closing its instance, so its peers were left waiting"
                )
            }
            Fault::WithoutClosing(exit) => write!(f, "{exit}"),
            Fault::AfterDone(exit) => write!(f, "{exit} after it had finished its coupling"),
            Fault::Gone => write!(f, "ended (how is not known) without closing its instance"),
            Fault::Said(text) => write!(f, "reported an error: {text}"),
            Fault::AfterEnd {
                text,
                by,
                well: true,
            } => {
                write!(
                    f,
                    "reported an error: {text}\n({by} ended well, and nothing else had failed)"
                )
            }
            Fault::AfterEnd {
                text,
                by,
                well: false,
            } => {
                write!(
                    f,
                    "reported an error: {text}\n({by} had not ended yet, and has reported no failure)"
                )
            }
            Fault::Missed(text) => write!(f, "left its peers waiting: {text}"),
            Fault::Refused(text) => write!(f, "was not let in: {text}"),
            Fault::LinkLost(why) => write!(f, "lost its link to the manager: {why}"),
            Fault::Silent(time) => write!(f, "was silent for {:.1} s", time.as_secs_f64()),
            Fault::Late(time) => write!(
                f,
                "did not join the run within {} s: does its program open an instance? The time can be set with \
                 `titin: {{register_timeout: ...}}`",
                time.as_secs_f64()
            ),
            Fault::Stopped => write!(f, "was made to end"),
            Fault::AfterRefusal { text, fault } => write!(f, "{fault}, after {text}"),
            Fault::AfterRank { rank, pid, fault } if **fault == Fault::Gone => {
                write!(
                    f,
                    "ended without closing its instance, rank {rank} (process {pid}) first; how is not known"
                )
            }
            Fault::AfterRank { rank, pid, fault } => {
                write!(
                    f,
                    "{fault}; of its ranks, rank {rank} (process {pid}) ended first"
                )
            }
        }
    }
}

impl Manager {
    pub(super) fn opened(&mut self, link: LinkId) {
        self.links.insert(
            link,
            Link {
                heard: self.now,
                silent: false,
                members: Vec::new(),
            },
        );
        if let Some(message) = self
            .course
            .failure()
            .map(|failure| self.run_failed(failure))
        {
            self.tell(link, message);
        }
    }

    pub(super) fn lost(&mut self, link: LinkId, why: &str) {
        let Some(state) = self.links.remove(&link) else {
            return;
        };
        for id in state.members {
            self.waits.forget(id, self.now);
            let member = &mut self.members[id];
            if let Seat::Taken(_) = member.seat {
                member.seat = Seat::Lost(why.to_owned());
                self.judge(id);
            }
        }
    }

    pub(super) fn started(&mut self, id: InstanceId, pid: u32) {
        let given_up = match self.members[id].process {
            Process::Starting => false,
            // The order was on its way to the guard.
            Process::Never => true,
            _ => return,
        };
        self.members[id].process = Process::Running(pid);
        self.members[id].since = self.now;
        self.expect_somebody();
        self.log(Level::Debug, Some(id), format!("started as process {pid}"));
        self.share(pid);
        if given_up {
            self.press(id, Signal::Kill);
        }
    }

    /// A program that the guard has started may open several instances. Those that nobody else starts are known by it too.
    fn share(&mut self, pid: u32) {
        self.programs.insert(pid);
        for member in self.members.iter_mut() {
            if member.local == Some(pid) && member.process == Process::Foreign {
                member.process = Process::Running(pid);
            }
        }
    }

    /// The same, of one that such a program has opened now.
    pub(super) fn share_with(&mut self, id: InstanceId, pid: u32) {
        let member = &mut self.members[id];
        if member.local == Some(pid)
            && member.process == Process::Foreign
            && self.programs.contains(&pid)
        {
            member.process = Process::Running(pid);
        }
    }

    pub(super) fn not_started(&mut self, id: InstanceId, fault: Fault) {
        self.members[id].process = Process::Never;
        self.fault(id, fault);
    }

    pub(super) fn spared(&mut self, id: InstanceId) {
        if self.members[id].process == Process::Starting {
            self.members[id].process = Process::Never;
        }
    }

    pub(super) fn ended(&mut self, id: InstanceId, exit: Exit) {
        self.log(Level::Debug, Some(id), format!("its process {exit}"));
        let process = std::mem::replace(&mut self.members[id].process, Process::Ended(exit));
        let mut ended = self.plan.sharers(id);
        if let Process::Running(pid) = process {
            self.programs.remove(&pid);
            let same = |other: &InstanceId| {
                self.members[*other].process == process && !ended.contains(other)
            };
            let others: Vec<_> = self.ids().filter(same).collect();
            ended.extend(others);
        }
        for &id in &ended {
            self.members[id].process = Process::Ended(exit);
        }
        for id in ended {
            if self.members[id].stopped {
                self.fault(id, Fault::Stopped);
            }
            self.judge(id);
        }
    }

    pub(super) fn watching(&mut self, pid: u32) {
        for id in self.joined_by(pid) {
            self.members[id].watched = true;
        }
    }

    pub(super) fn gone(&mut self, pid: u32) {
        for id in self.joined_by(pid) {
            let member = &mut self.members[id];
            member.gone = true;
            if !member.ranks.is_empty() {
                member.first_gone.get_or_insert((0, pid));
            }
            self.judge(id);
        }
        // That it has ended may be all right: the others tell if it had not closed.
        for member in self.members.iter_mut() {
            let found = (1..)
                .zip(&member.ranks)
                .find(|(_, rank)| rank.pid == pid && rank.host == self.host);
            if let Some((rank, _)) = found {
                member.first_gone.get_or_insert((rank, pid));
            }
        }
    }

    pub(super) fn guard_lost(&mut self, why: String) {
        // Its programs are ended by the shell, as orphans; nobody will report their exits.
        for member in self.members.iter_mut() {
            member.process = match member.process {
                Process::Starting => Process::Never,
                Process::Running(_) => Process::Unseen,
                known => known,
            };
        }
        self.fail(Cause::Guard(why));
    }

    pub(super) fn failed(&mut self, id: InstanceId, text: String, echo: Echo) {
        self.remember(id, &text);
        self.waits.forget(id, self.now);
        let member = &mut self.members[id];
        if member.said.is_none() {
            member.said = Some((text, echo));
            self.judge(id);
        }
    }

    pub(super) fn done(&mut self, id: InstanceId) {
        self.waits.forget(id, self.now);
        self.waits.search_soon(self.now);
        let member = &mut self.members[id];
        let Some(link) = member.joined().map(|joined| joined.link) else {
            return;
        };
        (member.seat, member.doubt) = (Seat::Done, None);
        self.log(Level::Info, Some(id), "done");
        let mut links = vec![link];
        links.extend(
            self.peers[id]
                .iter()
                .filter_map(|&peer| Some(self.members[peer].joined()?.link)),
        );
        links.sort_unstable();
        links.dedup();
        for link in links {
            self.tell(
                link,
                ToProgram::Finished {
                    instance: self.name(id).to_owned(),
                },
            );
        }
        // It may have been the last that could explain why others could not go on.
        let waits = |id: &InstanceId| matches!(self.members[*id].said, Some((_, Echo::End(_))));
        self.ids()
            .filter(waits)
            .collect::<Vec<_>>()
            .into_iter()
            .for_each(|id| self.judge(id));
        match self.members[id].process {
            // The others of its process may have been left to its word.
            Process::Ended(_) => self
                .plan
                .sharers(id)
                .into_iter()
                .for_each(|id| self.judge(id)),
            _ => self.judge(id),
        }
    }

    /// Whether another instance of the same process was in the middle of its coupling, so that it knows more of how
    /// that process ended.
    fn is_left_to_another(&self, id: InstanceId) -> bool {
        let knows = |other: &InstanceId| {
            matches!(self.members[*other].seat, Seat::Taken(_) | Seat::Lost(_))
        };
        self.plan.hosting(id).is_some() && self.plan.sharers(id).iter().any(knows)
    }

    /// Decides whether what is known about an instance is a failure: now, or unless it is explained.
    pub(super) fn judge(&mut self, id: InstanceId) {
        let member = &self.members[id];
        if member.fault.is_some() {
            return;
        }
        let now = Duration::ZERO;
        let verdict = match (&member.said, member.process, &member.seat) {
            // Somebody else failed, and that one's death is about to be known.
            (Some((text, Echo::Failure)), ..) => Some((EXPLANATION, Fault::Said(text.clone()))),
            // Somebody else may be failing: then that one's error is about to be known.
            (Some((text, Echo::End(peers))), ..) => {
                let is_done = |id: &InstanceId| matches!(self.members[*id].seat, Seat::Done);
                let well = peers.iter().all(is_done);
                // Behind who ended well may be another who did not: a third instance that closes, and then fails.
                let has_told = |id: InstanceId| is_done(&id) || self.members[id].said.is_some();
                let all_told = self.ids().all(has_told);
                let by = titin_model::listing(peers.iter().map(|peer| self.name(*peer)));
                let fault = Fault::AfterEnd {
                    text: text.clone(),
                    by,
                    well,
                };
                Some((if all_told { now } else { EXPLANATION }, fault))
            }
            (Some((text, Echo::Nothing)), ..) => Some((now, Fault::Said(text.clone()))),
            (None, Process::Ended(_), Seat::Empty | Seat::Done) if self.is_left_to_another(id) => {
                None
            }
            (None, Process::Ended(exit), Seat::Empty) => Some((now, Fault::BeforeJoining(exit))),
            (None, Process::Ended(exit), Seat::Taken(_)) => {
                let wait = if exit.is_success() {
                    LATE_WORDS
                } else {
                    LAST_WORDS
                };
                Some((wait, Fault::WithoutClosing(exit)))
            }
            (None, Process::Ended(exit), Seat::Lost(_)) => Some((now, Fault::WithoutClosing(exit))),
            (None, Process::Ended(exit), Seat::Done) if !exit.is_success() => {
                Some((now, Fault::AfterDone(exit)))
            }
            // What had started it may know how it ended. News of that start may still be on its way, too.
            (None, Process::Running(_) | Process::Starting, Seat::Lost(_)) if member.gone => {
                Some((LAST_WORDS, Fault::Gone))
            }
            (None, _, Seat::Lost(_)) if member.gone => Some((now, Fault::Gone)),
            (None, _, Seat::Taken(_)) if member.gone => Some((LATE_WORDS, Fault::Gone)),
            (None, Process::Running(_) | Process::Starting, Seat::Lost(why)) => {
                Some((EXPLANATION, Fault::LinkLost(why.clone())))
            }
            (None, _, Seat::Lost(why)) if member.watched => {
                Some((EXPLANATION, Fault::LinkLost(why.clone())))
            }
            (None, _, Seat::Lost(why)) => Some((now, Fault::LinkLost(why.clone()))),
            _ => None,
        };
        let failing = self.course.failure().is_some();
        let (wait, fault) = match verdict {
            // Its exit will tell more.
            Some((_, Fault::LinkLost(_)))
                if failing && matches!(member.process, Process::Running(_)) =>
            {
                return;
            }
            Some((_, fault @ Fault::Said(_))) if failing => (now, fault),
            Some((_, Fault::AfterEnd { text, .. })) if failing => (now, Fault::Said(text)),
            Some((wait, fault)) if failing => (wait.min(LAST_WORDS), fault),
            Some(verdict) => verdict,
            None => return,
        };
        if wait.is_zero() {
            return self.fault(id, fault);
        }
        let until = self.now + wait;
        let member = &mut self.members[id];
        // A doubt may be sharpened but not put off.
        let until = member
            .doubt
            .as_ref()
            .map_or(until, |doubt| doubt.0.min(until));
        member.doubt = Some((until, fault));
        self.next_doubt = Some(self.next_doubt.map_or(until, |next| next.min(until)));
    }

    pub(super) fn settle_doubts(&mut self) {
        if self.next_doubt.is_none_or(|next| next > self.now) {
            return;
        }
        self.settle_due_doubts();
        let doubts = self
            .members
            .iter()
            .filter_map(|member| member.doubt.as_ref().map(|doubt| doubt.0));
        self.next_doubt = doubts.min();
    }

    fn settle_due_doubts(&mut self) {
        let due = |id: &InstanceId| {
            self.members[*id]
                .doubt
                .as_ref()
                .is_some_and(|doubt| doubt.0 <= self.now)
        };
        let Some(first) = self.ids().find(due) else {
            return;
        };
        if self.course.failure().is_some() {
            for id in self.ids() {
                if let Some((_, fault)) =
                    self.members[id].doubt.take_if(|doubt| doubt.0 <= self.now)
                {
                    self.fault(id, fault);
                }
            }
            return;
        }
        // An echo is the least likely cause: whatever else is in doubt goes before it.
        let rank = |id: &InstanceId| match &self.members[*id].said {
            None | Some((_, Echo::Nothing)) => 0,
            Some((_, Echo::End(_))) => 1,
            Some((_, Echo::Failure)) => 2,
        };
        let in_doubt = self.ids().filter(|id| self.members[*id].doubt.is_some());
        let id = in_doubt
            .min_by_key(|id| (rank(id), *id != first))
            .filter(|id| rank(id) < rank(&first))
            .unwrap_or(first);
        // The other doubts are about consequences then.
        if let Some((_, fault)) = self.members[id].doubt.take() {
            self.fault(id, fault);
        }
    }

    /// The instance has failed: as the first, or as a consequence.
    pub(super) fn fault(&mut self, id: InstanceId, fault: Fault) {
        let fault = self.blame_ender(id, fault);
        let member = &mut self.members[id];
        member.doubt = None;
        if member.fault.is_some() {
            return;
        }
        let refused = member.refused.take_if(|_| fault.is_bad_end());
        let fault = match member.first_gone.filter(|_| fault.is_of_process()) {
            Some((rank, pid)) => Fault::AfterRank {
                rank,
                pid,
                fault: Box::new(fault),
            },
            None => fault,
        };
        let fault = match refused {
            Some(text) => Fault::AfterRefusal {
                text,
                fault: Box::new(fault),
            },
            None => fault,
        };
        member.fault = Some(fault.clone());
        if self.course.failure().is_none() {
            let cause = self.own_fault(&fault).unwrap_or(Cause::Instance(id, fault));
            self.fail(cause);
        } else {
            let level = if fault == Fault::Stopped {
                Level::Info
            } else {
                Level::Debug
            };
            self.log(level, Some(id), fault.to_string());
        }
    }

    /// Where the first failure comes of what another instance has ended, and that one has left out a message to this one, that is the
    /// first failure; what is left to say of the other.
    fn blame_ender(&mut self, id: InstanceId, fault: Fault) -> Fault {
        let Fault::AfterEnd { text, .. } = &fault else {
            return fault;
        };
        let name = &self.plan.instances[id].name;
        let missed = |ender: InstanceId| {
            let left_out = &self.members[ender].missed;
            // What is of the very port says most, and then what came last.
            let explains = left_out
                .iter()
                .filter(|left_out| left_out.explains(name, text));
            let found = explains.max_by_key(|left_out| left_out.port.is_some())?;
            Some((ender, found.text.clone()))
        };
        match self.enders(id).into_iter().find_map(missed) {
            Some((ender, missed)) if self.course.failure().is_none() => {
                let said = Fault::Said(text.clone());
                self.fault(ender, Fault::Missed(missed));
                said
            }
            _ => fault,
        }
    }

    /// An instance gives up a manager that is silent for too long. If this one was, it is to blame.
    fn own_fault(&self, fault: &Fault) -> Option<Cause> {
        let (back, time) = self.away?;
        let heartbeat = self.plan.terms.heartbeat;
        let given_up = matches!(fault, Fault::Said(text) if text.contains(SILENT_MANAGER));
        let blamed = given_up && self.now - back <= LATE_WORDS;
        blamed.then(|| {
            Cause::Trouble(format!(
                "titin itself was stopped for {:.0} s or longer, so programs took it for gone, as they do after {} s \
                 (`titin: {{heartbeat: ...}}`). Ctrl-Z, or `kill -TSTP`, stops a run with its programs",
                time.as_secs_f64(),
                heartbeat.as_secs_f64()
            ))
        })
    }

    /// When an instance that has not joined counts as late.
    fn late_at(&self, id: InstanceId) -> Option<Duration> {
        let member = &self.members[id];
        let awaited = matches!(member.seat, Seat::Empty)
            && matches!(member.process, Process::Running(_) | Process::Foreign)
            && member.fault.is_none()
            && self.course.failure().is_none();
        awaited.then_some(member.since.saturating_add(self.plan.terms.patience))
    }

    /// Somebody is waited for from now on.
    pub(super) fn expect_somebody(&mut self) {
        let at = self.now.saturating_add(self.plan.terms.patience);
        self.next_late = Some(self.next_late.map_or(at, |next| next.min(at)));
    }

    pub(super) fn check_lateness(&mut self) {
        if self.next_late.is_none_or(|next| next > self.now) {
            return;
        }
        for id in self.ids() {
            if self.late_at(id).is_some_and(|at| at <= self.now) {
                self.fault(id, Fault::Late(self.plan.terms.patience));
            }
        }
        self.next_late = self.ids().filter_map(|id| self.late_at(id)).min();
    }

    /// Tells everybody that we live, and looks for those who have stopped saying so.
    pub(super) fn beat_all(&mut self) {
        let limit = self.plan.terms.heartbeat;
        let links: Vec<LinkId> = self.links.keys().copied().collect();
        for link in links {
            self.tell(link, ToProgram::Heartbeat {});
            let state = &self.links[&link];
            let silence = self.now.saturating_sub(state.heard);
            // Rank 0 of a parallel program is here before all its ranks are, and can be no instance until then.
            let limit = if state.members.is_empty() {
                limit.max(self.plan.terms.patience)
            } else {
                limit
            };
            if silence < limit || state.silent {
                continue;
            }
            // A process that we can see is alive: a debugger holds it, or the machine is very busy.
            let seen =
                !state.members.is_empty() && state.members.iter().all(|&id| self.is_seen(id));
            if seen {
                let id = state.members[0];
                let text = format!(
                    "silent for {:.1} s, but its process lives; waiting",
                    silence.as_secs_f64()
                );
                self.log(Level::Warning, Some(id), text);
                self.links.get_mut(&link).expect("it is in the list").silent = true;
            } else {
                let members = state.members.clone();
                self.actions.push(Action::Close(link));
                self.links.remove(&link);
                for id in members {
                    if let Seat::Taken(_) = self.members[id].seat {
                        self.waits.forget(id, self.now);
                        self.members[id].seat =
                            Seat::Lost(format!("silent for {:.1} s", silence.as_secs_f64()));
                        self.fault(id, Fault::Silent(silence));
                    }
                }
            }
        }
    }

    fn is_seen(&self, id: InstanceId) -> bool {
        let member = &self.members[id];
        member.watched && !member.gone || matches!(member.process, Process::Running(_))
    }

    fn joined_by(&self, pid: u32) -> Vec<InstanceId> {
        self.ids()
            .filter(|&id| self.members[id].local == Some(pid))
            .collect()
    }
}
