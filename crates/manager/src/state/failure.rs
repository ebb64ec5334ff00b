//! The failure of a run, in types and in words.

use std::time::Duration;

use titin_wire::control::ToProgram;

use super::Manager;
use super::fault::Fault;
use super::wait_graph::Deadlock;
use crate::host::HostId;
use crate::plan::InstanceId;

/// Why the run failed.
#[derive(Debug, Clone, PartialEq)]
pub enum Cause {
    /// An instance failed, by a fault.
    Instance(InstanceId, Fault),
    /// Instances wait for each other.
    Deadlock(Deadlock),
    /// The guard of the manager's host has ended, in a way described in words.
    GuardLost(String),
    /// The agent of a host has ended, or is cut off, in a way described in words.
    HostLost(HostId, String),
    /// Nothing has come from the agent of a host for the given time, which is too long.
    HostSilent(HostId, Duration),
    /// The agent of a host could not be started, in a way described in words.
    AgentFailed(HostId, String),
    /// The programs of a host cannot run there, for a reason in the words of its agent.
    HostUnfit(HostId, String),
    /// The agents of these hosts have not reported in time.
    HostsLate(Vec<HostId>, Duration),
    /// The manager could not go on, for a reason in words.
    ManagerFailed(String),
    /// The user ended the run with a signal, given by name.
    Interrupted(String),
}

/// The first failure of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    /// The time of the failure since the run began.
    pub at: Duration,
    /// Why the run failed.
    pub cause: Cause,
    /// The waiting instances at the time, each with the wait in words.
    pub waits: Vec<(InstanceId, String)>,
    /// The instances in their own code at the time, without those at hosts that were silent.
    pub computing: Vec<InstanceId>,
    /// The hosts whose agents had not come at the time.
    pub missing_hosts: Vec<HostId>,
}

impl Failure {
    /// Whether the user ended the run.
    pub fn is_interrupt(&self) -> bool {
        matches!(self.cause, Cause::Interrupted(_))
    }

    /// The hosts for whose agents the run waited when it ended for that, or when the user ended it.
    pub fn awaited_hosts(&self) -> &[HostId] {
        match self.cause {
            Cause::HostsLate(..) | Cause::Interrupted(_) => &self.missing_hosts,
            _ => &[],
        }
    }

    /// The facts, if the run ended in a deadlock.
    pub fn deadlock(&self) -> Option<&Deadlock> {
        match &self.cause {
            Cause::Deadlock(deadlock) => Some(deadlock),
            _ => None,
        }
    }
}

impl Manager {
    /// The failure in one line.
    pub fn failure_line(&self, failure: &Failure) -> String {
        let (culprit, text) = self.culprit_and_text(&failure.cause);
        match &failure.cause {
            Cause::Instance(id, _) => format!("{culprit}{} {text}", self.place_text(*id)),
            Cause::GuardLost(_)
            | Cause::HostLost(..)
            | Cause::HostSilent(..)
            | Cause::AgentFailed(..)
            | Cause::HostUnfit(..)
            | Cause::HostsLate(..)
            | Cause::Interrupted(_) => {
                format!("{culprit} {text}")
            }
            Cause::Deadlock(_) | Cause::ManagerFailed(_) => text,
        }
    }

    /// The failed instances: one instance, or all instances of a process.
    pub fn culprits(&self, cause: &Cause) -> Vec<InstanceId> {
        match cause {
            Cause::Instance(id, fault) if fault.is_of_process() => self.plan.sharers(*id),
            Cause::Instance(id, _) => vec![*id],
            _ => Vec::new(),
        }
    }

    /// The message about the failure for programs.
    pub(super) fn failure_message(&self, failure: &Failure) -> ToProgram {
        let (culprit, text) = self.culprit_and_text(&failure.cause);
        ToProgram::RunFailed {
            culprit,
            text,
            deadlock: failure.deadlock().is_some(),
        }
    }

    /// The name of the culprit, and the failure in words.
    pub fn culprit_and_text(&self, cause: &Cause) -> (String, String) {
        let (culprit, text) = match cause {
            Cause::Instance(id, fault) => return self.failed_instance(*id, fault),
            Cause::Deadlock(deadlock) => ("deadlock", deadlock.to_string()),
            Cause::GuardLost(how) => (
                "the guard",
                format!("{how}, so the programs it had started were ended"),
            ),
            Cause::HostSilent(id, silence) => return self.silent_host(*id, *silence),
            Cause::HostLost(id, how) | Cause::AgentFailed(id, how) | Cause::HostUnfit(id, how) => {
                let culprit = format!("the agent of host {}", self.host_name(*id));
                return (culprit, how.clone());
            }
            Cause::HostsLate(late, patience) => {
                let names: Vec<&str> = late.iter().map(|id| self.host_name(*id)).collect();
                let (hosts, have) = match &names[..] {
                    [_] => ("host", "has"),
                    _ => ("hosts", "have"),
                };
                let culprit = format!("{hosts} {}", names.join(", "));
                let seconds = patience.as_secs_f64();
                return (culprit, format!("{have} no agent after {seconds} s"));
            }
            Cause::ManagerFailed(why) => ("the manager", why.clone()),
            Cause::Interrupted(signal) => ("the user", format!("ended the run ({signal})")),
        };
        (culprit.to_owned(), text)
    }

    /// The name of a silent host, and the failure in words. The line to another site may be away for the
    /// time of `patience`.
    fn silent_host(&self, id: HostId, silence: Duration) -> (String, String) {
        let (name, silence) = (self.host_name(id), silence.as_secs_f64());
        let options = &self.plan.options;
        match self.plan.other_site(id) {
            None => (
                format!("the agent of host {name}"),
                format!("was silent for {silence:.1} s, so the programs there count as lost"),
            ),
            Some(site) => (
                format!("host {name} at the site {site}"),
                format!(
                    "has sent nothing for {silence:.0} s, longer than `patience` ({} s) and `heartbeat` ({} s) together: the \
                     line, a relay or the host is away, so the programs there count as lost",
                    options.line_patience.as_secs_f64(),
                    options.heartbeat.as_secs_f64()
                ),
            ),
        }
    }

    /// The name of a failed instance, or of the failed host process, and the fault in words.
    fn failed_instance(&self, id: InstanceId, fault: &Fault) -> (String, String) {
        match self.plan.hosting(id).filter(|_| fault.is_of_process()) {
            Some(host) => (
                format!("host process {}", host.name),
                fault.describe_for_host(),
            ),
            None => (self.name(id).to_owned(), fault.to_string()),
        }
    }
}
