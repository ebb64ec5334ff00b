//! The first failure, the grace period, and when the run is over.
//!
//! Whatever fails first is the cause; everybody is told at once, and what fails after it is a consequence. Programs
//! inside their own code have the grace period to come out; then they get SIGTERM, and after that SIGKILL.

use std::time::Duration;

use titin_wire::control::ToProgram;

use super::{Fault, Manager, Phase, Process, Seat};
use crate::event::{Action, Level, Record, Signal};
use crate::plan::{InstanceId, Start};

/// From SIGTERM to SIGKILL.
const LAST_CHANCE: Duration = Duration::from_secs(2);

/// From SIGKILL until a process counts as one that cannot be ended: it hangs in the kernel, on a dead file server
/// for instance.
const HOPELESS: Duration = Duration::from_secs(20);

/// A terminal sends Ctrl-C to whoever has started us too, and that one may pass it on: what comes so soon is the same
/// wish again.
pub(crate) const SAME_WISH: Duration = Duration::from_millis(300);

/// Why the run failed.
#[derive(Debug, Clone, PartialEq)]
pub enum Cause {
    /// An instance failed, and how.
    Instance(InstanceId, Fault),
    /// These instances wait for each other.
    Deadlock {
        /// Shows the cycle.
        cycle: String,
        /// Whether one of them waits for a field to be declared at its other end.
        undeclared: bool,
    },
    /// The guard has ended, and how.
    Guard(String),
    /// The manager could not go on, and why.
    Trouble(String),
    /// The user ended it, with this signal.
    Interrupted(String),
}

/// The first failure of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    /// When, since the run began.
    pub at: Duration,
    /// Why.
    pub cause: Cause,
    /// Who waited for what at that time.
    pub waits: Vec<(InstanceId, String)>,
    /// Who was in its own code.
    pub computing: Vec<InstanceId>,
}

impl Failure {
    /// Whether the user wanted it.
    pub fn is_wished(&self) -> bool {
        matches!(self.cause, Cause::Interrupted(_))
    }
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Outcome<'a> {
    /// Every instance is done, and every process has ended well.
    Done,
    /// Something failed.
    Failed(&'a Failure),
}

/// Where the run is on its way.
#[derive(Debug)]
pub(crate) enum Course {
    /// All is well.
    Running,
    /// Something failed, and what is left is on its way out.
    Stopping {
        failure: Failure,
        /// When SIGTERM is due, and SIGKILL, and after that giving up; `None` once it was done.
        terminate: Option<Duration>,
        kill: Option<Duration>,
        give_up: Option<Duration>,
    },
    /// Nothing is left.
    Over(Option<Failure>),
}

impl Course {
    pub(super) fn failure(&self) -> Option<&Failure> {
        match self {
            Course::Running => None,
            Course::Stopping { failure, .. } => Some(failure),
            Course::Over(failure) => failure.as_ref(),
        }
    }

    pub(super) fn deadline(&self) -> Option<Duration> {
        match self {
            Course::Stopping {
                terminate,
                kill,
                give_up,
                ..
            } => terminate.or(*kill).or(*give_up),
            _ => None,
        }
    }

    pub(super) fn outcome(&self) -> Option<Outcome<'_>> {
        match self {
            Course::Over(None) => Some(Outcome::Done),
            Course::Over(Some(failure)) => Some(Outcome::Failed(failure)),
            _ => None,
        }
    }
}

impl Manager {
    /// The run fails: everybody is told, and has the grace period to end.
    pub(super) fn fail(&mut self, cause: Cause) {
        if self.course.failure().is_some() {
            return;
        }
        let computing = self
            .ids()
            .filter(|id| self.standing(*id).phase == Phase::Running)
            .collect();
        let failure = Failure {
            at: self.now,
            cause,
            waits: self.waits_now(),
            computing,
        };
        self.log_failure(&failure);
        let message = self.run_failed(&failure);
        let links: Vec<_> = self.links.keys().copied().collect();
        for link in links {
            self.tell(link, message.clone());
        }
        let terminate = self.now + self.plan.terms.grace;
        let (terminate, kill) = (Some(terminate), Some(terminate + LAST_CHANCE));
        self.course = Course::Stopping {
            failure,
            terminate,
            kill,
            give_up: None,
        };
        self.actions.push(Action::StartNoMore);
        for id in std::mem::take(&mut self.held) {
            self.members[id].process = Process::Never;
        }
        // What was in doubt is a consequence now.
        for id in self.ids() {
            if self.members[id].doubt.take().is_some() {
                self.judge(id);
            }
        }
    }

    /// The log gets the whole cause at once, because the manager may be killed before its report. The user reads the cause
    /// in the report, and until then how long it may take.
    fn log_failure(&mut self, failure: &Failure) {
        let line = self.line(failure);
        let time = format!(
            "programs have {} s to end",
            self.plan.terms.grace.as_secs_f64()
        );
        if matches!(failure.cause, Cause::Interrupted(_)) {
            self.log(Level::Error, None, line);
            self.log(
                Level::Info,
                None,
                format!("{time}; once more ends them at once"),
            );
        } else {
            let (culprit, _) = self.told(&failure.cause);
            self.actions
                .push(Action::RecordCause(Record::of_manager(Level::Error, line)));
            self.log(
                Level::Error,
                None,
                format!("the run fails ({culprit}); {time}"),
            );
        }
    }

    pub(super) fn interrupted(&mut self, signal: String) {
        match &mut self.course {
            Course::Running => self.fail(Cause::Interrupted(signal)),
            // Whoever asks twice does not want to wait.
            Course::Stopping {
                failure,
                terminate,
                kill,
                ..
            } => {
                if self.now - failure.at >= SAME_WISH {
                    (*terminate, *kill) = (None, Some(self.now));
                }
            }
            Course::Over(_) => {}
        }
    }

    /// The failure in one line.
    pub fn line(&self, failure: &Failure) -> String {
        let (culprit, text) = self.told(&failure.cause);
        match &failure.cause {
            Cause::Instance(..) => format!("{culprit} {text}"),
            Cause::Guard(_) | Cause::Interrupted(_) => format!("{culprit} {text}"),
            Cause::Deadlock { .. } | Cause::Trouble(_) => text,
        }
    }

    /// The instances that failed by this cause: one, or all of a process.
    pub fn culprits(&self, cause: &Cause) -> Vec<InstanceId> {
        match cause {
            Cause::Instance(id, fault) if fault.is_of_process() => self.plan.sharers(*id),
            Cause::Instance(id, _) => vec![*id],
            _ => Vec::new(),
        }
    }

    /// What programs are told.
    pub(super) fn run_failed(&self, failure: &Failure) -> ToProgram {
        let (culprit, text) = self.told(&failure.cause);
        ToProgram::RunFailed {
            culprit,
            text,
            deadlock: matches!(failure.cause, Cause::Deadlock { .. }),
        }
    }

    /// Who failed, and how.
    pub fn told(&self, cause: &Cause) -> (String, String) {
        match cause {
            Cause::Instance(id, fault) => {
                match self.plan.hosting(*id).filter(|_| fault.is_of_process()) {
                    Some(host) => (format!("host process {}", host.name), fault.of_host()),
                    None => (self.name(*id).to_owned(), fault.to_string()),
                }
            }
            Cause::Deadlock { cycle, .. } => ("deadlock".into(), cycle.clone()),
            Cause::Guard(how) => (
                "the guard".into(),
                format!("{how}, so the programs it had started were ended"),
            ),
            Cause::Trouble(what) => ("the manager".into(), what.clone()),
            Cause::Interrupted(signal) => ("the user".into(), format!("ended the run ({signal})")),
        }
    }

    /// Sends the signals that are due.
    pub(super) fn press_on(&mut self) {
        let Course::Stopping {
            terminate,
            kill,
            give_up,
            ..
        } = &mut self.course
        else {
            return;
        };
        let due = |at: &mut Option<Duration>, now| at.take_if(|at| *at <= now).is_some();
        if due(give_up, self.now) {
            return self.give_up();
        }
        let signal = match (due(terminate, self.now), due(kill, self.now)) {
            (_, true) => Signal::Kill,
            (true, false) => Signal::Terminate,
            (false, false) => return,
        };
        if signal == Signal::Kill {
            *give_up = Some(self.now + HOPELESS);
        }
        for id in self.ids() {
            match self.members[id].process {
                // Its host is the process of another.
                _ if matches!(self.plan.instances[id].start, Start::Guest(_)) => {
                    self.members[id].stopped = true;
                }
                Process::Running(_) => self.press(id, signal),
                // What it is prepared from may be huge, or never come.
                Process::Starting if signal == Signal::Kill => {
                    self.members[id].process = Process::Never
                }
                _ => {}
            }
        }
        self.press_hosts(signal);
        if signal == Signal::Kill {
            let links: Vec<_> = self.links.keys().copied().collect();
            self.actions.extend(links.into_iter().map(Action::Close));
            self.links.clear();
        }
    }

    fn give_up(&mut self) {
        for id in self.ids() {
            if let Process::Running(pid) = self.members[id].process {
                let text = format!(
                    "SIGKILL was sent to process {pid}, but in {} s nobody has seen it end",
                    HOPELESS.as_secs()
                );
                self.log(Level::Error, Some(id), text);
                self.members[id].process = Process::Unseen;
            }
        }
    }

    pub(super) fn press(&mut self, id: InstanceId, signal: Signal) {
        let text = match signal {
            Signal::Terminate => "still runs after the failure; asked to end (SIGTERM)",
            Signal::Kill => "does not end; killed (SIGKILL)",
        };
        self.log(Level::Info, Some(id), text);
        self.members[id].stopped = true;
        self.actions.push(Action::Signal(id, signal));
    }

    /// A hosted instance that does not return ends its host.
    fn press_hosts(&mut self, signal: Signal) {
        let stuck = |id: &InstanceId| {
            let member = &self.members[*id];
            self.plan.instances[*id].start == Start::Hosted
                && matches!(member.seat, Seat::Taken(_))
                && member.said.is_none()
                && member.watched
                && !member.gone
        };
        let hosts: Vec<(InstanceId, u32)> = self
            .ids()
            .filter(stuck)
            .filter_map(|id| Some((id, self.members[id].local?)))
            .collect();
        let mut pressed = Vec::new();
        for (id, pid) in hosts {
            if !pressed.contains(&pid) {
                pressed.push(pid);
                self.log(
                    Level::Warning,
                    Some(id),
                    format!("does not return, so its host, process {pid}, is ended"),
                );
                self.actions.push(Action::SignalHost(pid, signal));
            }
        }
    }

    /// Whether nothing more will happen.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.course, Course::Over(_))
    }

    pub(super) fn finish_if_over(&mut self) {
        let over = match &self.course {
            Course::Running => {
                // What is done stays so.
                while self.first_open.index() < self.members.len() && self.is_done(self.first_open)
                {
                    self.first_open.0 += 1;
                }
                self.first_open.index() == self.members.len()
            }
            Course::Stopping { kill, .. } => {
                let out_of_patience = kill.is_none();
                self.ids().all(|id| self.is_out(id, out_of_patience))
            }
            Course::Over(_) => return,
        };
        if !over {
            return;
        }
        self.course = match std::mem::replace(&mut self.course, Course::Over(None)) {
            Course::Stopping { failure, .. } => Course::Over(Some(failure)),
            _ => Course::Over(None),
        };
        self.actions.push(Action::Finish);
    }

    fn is_done(&self, id: InstanceId) -> bool {
        let member = &self.members[id];
        let process_done = match member.process {
            Process::Ended(exit) => exit.is_success(),
            Process::Foreign => true,
            _ => false,
        };
        process_done && matches!(member.seat, Seat::Done)
    }

    /// Whether nothing of the instance is left; a program that is not ours is left to its user in the end.
    fn is_out(&self, id: InstanceId, out_of_patience: bool) -> bool {
        let member = &self.members[id];
        match member.process {
            Process::Starting | Process::Running(_) => false,
            Process::Ended(_) | Process::Never | Process::Unseen => member.doubt.is_none(),
            Process::Foreign => {
                out_of_patience || member.said.is_some() || !matches!(member.seat, Seat::Taken(_))
            }
        }
    }
}
