//! After the first failure: the grace period, signals, and the end of the run.
//!
//! The first failure is the cause, and all programs are told of the cause at once. Later failures
//! are consequences. Programs have the grace period to return from their own code. Then the
//! programs get SIGTERM, and 2 s later SIGKILL.

use std::time::Duration;

use super::Manager;
use super::failure::{Cause, Failure};
use super::member::{InstanceProcess, Membership};
use super::status::Phase;
use crate::event::{Level, LogRecord, RunAction, Signal};
use crate::host::ProcessId;
use crate::plan::{InstanceId, StartMode};

/// From SIGTERM to SIGKILL.
pub(super) const TERMINATE_TO_KILL: Duration = Duration::from_secs(2);

/// From SIGKILL until the manager gives up. A process that lives on for so long hangs in the
/// kernel, for instance on a dead file server.
const KILL_TO_GIVE_UP: Duration = Duration::from_secs(20);

/// A terminal sends Ctrl-C also to the process that has started titin, and that process may pass
/// the signal on. So a second interrupt within this time counts as the same interrupt.
pub(crate) const REPEATED_INTERRUPT: Duration = Duration::from_millis(300);

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RunOutcome<'a> {
    /// Every instance is done, and every process has ended well.
    Done,
    /// The run has failed.
    Failed(&'a Failure),
}

/// The state of the run.
#[derive(Debug)]
pub(super) enum RunState {
    /// Nothing has failed.
    Running,
    /// Something has failed, and the programs are being ended.
    Stopping {
        failure: Failure,
        /// When SIGTERM is due; `None` after SIGTERM was sent.
        terminate: Option<Duration>,
        /// When SIGKILL is due; `None` after SIGKILL was sent.
        kill: Option<Duration>,
        /// When the manager gives up, after SIGKILL was sent.
        give_up: Option<Duration>,
    },
    /// The run has ended, and no process of the run is left.
    Over(Option<Failure>),
}

impl RunState {
    pub(super) fn failure(&self) -> Option<&Failure> {
        match self {
            RunState::Running => None,
            RunState::Stopping { failure, .. } => Some(failure),
            RunState::Over(failure) => failure.as_ref(),
        }
    }

    pub(super) fn deadline(&self) -> Option<Duration> {
        match self {
            RunState::Stopping {
                terminate,
                kill,
                give_up,
                ..
            } => terminate.or(*kill).or(*give_up),
            _ => None,
        }
    }

    pub(super) fn outcome(&self) -> Option<RunOutcome<'_>> {
        match self {
            RunState::Over(None) => Some(RunOutcome::Done),
            RunState::Over(Some(failure)) => Some(RunOutcome::Failed(failure)),
            _ => None,
        }
    }

    /// The step that is due now.
    fn next_step(&mut self, now: Duration) -> Option<EndingStep> {
        let RunState::Stopping {
            terminate,
            kill,
            give_up,
            ..
        } = self
        else {
            return None;
        };
        let is_due = |time: &mut Option<Duration>| time.take_if(|time| *time <= now).is_some();
        if is_due(give_up) {
            return Some(EndingStep::GiveUp);
        }
        match (is_due(terminate), is_due(kill)) {
            (_, true) => {
                *give_up = Some(now + KILL_TO_GIVE_UP);
                Some(EndingStep::Send(Signal::Kill))
            }
            (true, false) => Some(EndingStep::Send(Signal::Terminate)),
            (false, false) => None,
        }
    }
}

/// A step on the way to the end of a failed run.
enum EndingStep {
    Send(Signal),
    GiveUp,
}

impl Manager {
    /// The run fails: all programs are told, and have the grace period to end.
    pub(super) fn fail(&mut self, cause: Cause) {
        if self.run_state.failure().is_some() {
            return;
        }
        let is_silent = |id: InstanceId| self.silent_host_text(self.host_of(id)).is_some();
        let is_computing =
            |id: &InstanceId| self.instance_status(*id).phase == Phase::Running && !is_silent(*id);
        let failure = Failure {
            at: self.now,
            cause,
            waits: self.current_waits(),
            computing: self.ids().filter(is_computing).collect(),
            missing_hosts: self.expected_hosts(),
        };
        self.log_failure(&failure);
        self.tell_all(&self.failure_message(&failure));
        let terminate = self.now + self.plan.options.grace;
        self.run_state = RunState::Stopping {
            failure,
            terminate: Some(terminate),
            kill: Some(terminate + TERMINATE_TO_KILL),
            give_up: None,
        };
        self.stop_starting();
        // A suspected failure is now a consequence.
        for id in self.ids() {
            if self.members[id].doubt.take().is_some() {
                self.assess(id);
            }
        }
    }

    /// Starts no further programs.
    fn stop_starting(&mut self) {
        self.actions.push(RunAction::StopStarting);
        for id in std::mem::take(&mut self.deferred_starts) {
            self.members[id].process = InstanceProcess::Never;
        }
    }

    /// Logs the whole cause at once, because the manager may be killed before the report. The user
    /// reads the cause in the report. The line for the user says how long the programs have to end.
    fn log_failure(&mut self, failure: &Failure) {
        let line = self.failure_line(failure);
        let grace = self.plan.options.grace.as_secs_f64();
        let time = format!("programs have {grace} s to end");
        if failure.is_interrupt() {
            self.log(Level::Error, None, line);
            let text = format!("{time}; once more ends them at once");
            self.log(Level::Info, None, text);
        } else {
            let record = LogRecord::of_manager(Level::Error, line);
            self.actions.push(RunAction::RecordCause(record));
            let (culprit, _) = self.culprit_and_text(&failure.cause);
            let text = format!("the run fails ({culprit}); {time}");
            self.log(Level::Error, None, text);
        }
    }

    /// The user wants the run to end. An interrupt after the run has failed kills the programs at once,
    /// from [`REPEATED_INTERRUPT`] after the failure on.
    pub(super) fn interrupted(&mut self, signal: String) {
        match &mut self.run_state {
            RunState::Running => self.fail(Cause::Interrupted(signal)),
            RunState::Stopping {
                failure,
                terminate,
                kill,
                ..
            } => {
                if self.now - failure.at >= REPEATED_INTERRUPT {
                    (*terminate, *kill) = (None, Some(self.now));
                }
            }
            RunState::Over(_) => {}
        }
    }

    /// Sends due signals.
    pub(super) fn send_due_signals(&mut self) {
        match self.run_state.next_step(self.now) {
            None => {}
            Some(EndingStep::GiveUp) => self.give_up(),
            Some(EndingStep::Send(signal)) => {
                for id in self.ids() {
                    self.signal_instance(id, signal);
                }
                self.signal_calling_processes(signal);
                if signal == Signal::Kill {
                    self.give_up_at_silent_hosts();
                    self.close_links();
                }
            }
        }
    }

    fn signal_instance(&mut self, id: InstanceId, signal: Signal) {
        match self.members[id].process {
            // The process belongs to another instance. The signal goes to the other instance.
            _ if matches!(self.plan.instances[id].start, StartMode::WithLeader(_)) => {
                self.members[id].stopped = true;
            }
            InstanceProcess::Running(_) => self.signal_to_end(id, signal),
            // Preparing a start may take for ever: files to copy may be huge.
            InstanceProcess::Starting if signal == Signal::Kill => {
                self.members[id].process = InstanceProcess::Never;
            }
            _ => {}
        }
    }

    pub(super) fn signal_to_end(&mut self, id: InstanceId, signal: Signal) {
        let silent = self.silent_host_text(self.host_of(id));
        let (name, text) = match signal {
            Signal::Terminate => (
                "SIGTERM",
                "still runs after the failure; asked to end (SIGTERM)",
            ),
            Signal::Kill => ("SIGKILL", "does not end; killed (SIGKILL)"),
        };
        let text = match silent {
            Some(silent) => format!("{silent}; {name} is on the way there"),
            None => text.to_owned(),
        };
        self.log(Level::Info, Some(id), text);
        self.members[id].stopped = true;
        self.actions.push(RunAction::Signal(id, signal));
    }

    /// Sends a signal to each calling process in which a hosted instance has not returned. A calling
    /// process is a process of the user's that called titin to host instances.
    fn signal_calling_processes(&mut self, signal: Signal) {
        let has_not_returned = |id: &InstanceId| {
            let member = &self.members[*id];
            self.plan.instances[*id].start == StartMode::Hosted
                && matches!(member.membership, Membership::Joined(_))
                && member.reported_error.is_none()
                && member.watched
                && !member.watched_process_gone
        };
        let processes: Vec<(InstanceId, ProcessId)> = self
            .ids()
            .filter(has_not_returned)
            .filter_map(|id| Some((id, self.members[id].known_process?)))
            .collect();
        let mut signalled = Vec::new();
        for (id, process) in processes {
            if signalled.contains(&process) {
                continue;
            }
            signalled.push(process);
            let text = format!(
                "does not return, so its host, {}, is ended",
                self.process_text(process)
            );
            self.log(Level::Warning, Some(id), text);
            self.actions.push(RunAction::SignalProcess(process, signal));
        }
    }

    fn close_links(&mut self) {
        let links = std::mem::take(&mut self.links);
        self.actions
            .extend(links.into_keys().map(RunAction::CloseLink));
    }

    /// Gives up processes that live on after SIGKILL.
    fn give_up(&mut self) {
        self.give_up_at_silent_hosts();
        for (id, process) in self.running_processes() {
            let text = format!(
                "SIGKILL was sent to {}, but in {} s nobody has seen it end",
                self.process_text(process),
                KILL_TO_GIVE_UP.as_secs()
            );
            self.give_up_process(id, text);
        }
    }

    /// Gives up processes at hosts that do not answer. The session waits for the agents there until the
    /// user ends the wait.
    fn give_up_at_silent_hosts(&mut self) {
        for (id, process) in self.running_processes() {
            if let Some(silent) = self.silent_host_text(process.host) {
                let process = self.process_text(process);
                let text = format!("nobody knows whether {process} has ended: {silent}");
                self.give_up_process(id, text);
            }
        }
    }

    fn running_processes(&self) -> Vec<(InstanceId, ProcessId)> {
        let running = |id: InstanceId| match self.members[id].process {
            InstanceProcess::Running(process) => Some((id, process)),
            _ => None,
        };
        self.ids().filter_map(running).collect()
    }

    fn give_up_process(&mut self, id: InstanceId, text: String) {
        self.log(Level::Error, Some(id), text);
        self.members[id].process = InstanceProcess::Unknown;
    }

    /// Whether the run has ended.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.run_state, RunState::Over(_))
    }

    /// Ends the run if every instance is done, or if the run has failed and no process is left.
    pub(super) fn finish_if_over(&mut self) {
        let is_over = match &self.run_state {
            RunState::Running => self.are_all_done(),
            RunState::Stopping { kill, .. } => {
                let was_killed = kill.is_none();
                self.ids().all(|id| self.has_ended(id, was_killed))
            }
            RunState::Over(_) => return,
        };
        if !is_over {
            return;
        }
        self.run_state = match std::mem::replace(&mut self.run_state, RunState::Over(None)) {
            RunState::Stopping { failure, .. } => RunState::Over(Some(failure)),
            _ => RunState::Over(None),
        };
        self.actions.push(RunAction::Finish);
    }

    /// Whether all instances are done. A done instance stays done, so the check skips the instances
    /// before the first unfinished instance.
    fn are_all_done(&mut self) -> bool {
        let count = self.members.len();
        while self.first_unfinished.index() < count && self.is_done(self.first_unfinished) {
            self.first_unfinished.0 += 1;
        }
        self.first_unfinished.index() == count
    }

    fn is_done(&self, id: InstanceId) -> bool {
        let member = &self.members[id];
        if member.left_out {
            return !matches!(
                member.process,
                InstanceProcess::Starting | InstanceProcess::Running(_)
            );
        }
        let process_is_done = match member.process {
            InstanceProcess::Ended(exit) => exit.is_success(),
            InstanceProcess::NotOurs => true,
            _ => false,
        };
        process_is_done && matches!(member.membership, Membership::Done)
    }

    /// Whether nothing of the instance is left in a failed run. After SIGKILL to all others, a
    /// process that the manager has not started is left to the user.
    fn has_ended(&self, id: InstanceId, was_killed: bool) -> bool {
        let member = &self.members[id];
        match member.process {
            InstanceProcess::Starting | InstanceProcess::Running(_) => false,
            InstanceProcess::Ended(_) | InstanceProcess::Never | InstanceProcess::Unknown => {
                member.doubt.is_none()
            }
            InstanceProcess::NotOurs => {
                was_killed
                    || member.reported_error.is_some()
                    || !matches!(member.membership, Membership::Joined(_))
            }
        }
    }
}
