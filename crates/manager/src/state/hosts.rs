//! The hosts of the run: expected, ready, lost.
//!
//! The manager knows another host only through the agent there. No program starts before every host
//! is ready, because the placement needs the cores of all hosts.

use std::time::Duration;

use super::Manager;
use super::failure::Cause;
use super::member::InstanceProcess;
use crate::event::{Level, RunAction};
use crate::host::{HostId, ProcessId};
use crate::plan::InstanceId;

/// A host in the view of the manager.
#[derive(Debug)]
pub(super) struct Host {
    /// The name in the description. The manager's own host has its system name.
    name: String,
    state: HostState,
}

#[derive(Debug)]
enum HostState {
    /// The agent has not reported yet.
    Expected,
    /// The guard or the agent of the host serves.
    Ready {
        /// The system name of the host.
        system_name: String,
        /// When the agent last reported anything.
        last_heard: Duration,
    },
    /// The guard or the agent is gone.
    Lost,
}

impl Host {
    /// The manager's own host.
    pub(super) fn of_manager(system_name: &str) -> Self {
        Host {
            name: system_name.to_owned(),
            state: HostState::Ready {
                system_name: system_name.to_owned(),
                last_heard: Duration::ZERO,
            },
        }
    }

    fn expected(name: &str) -> Self {
        Host {
            name: name.to_owned(),
            state: HostState::Expected,
        }
    }

    fn is_expected(&self) -> bool {
        matches!(self.state, HostState::Expected)
    }

    /// The system name, as long as the host is ready.
    fn system_name(&self) -> Option<&str> {
        match &self.state {
            HostState::Ready { system_name, .. } => Some(system_name),
            HostState::Expected | HostState::Lost => None,
        }
    }
}

impl Manager {
    /// This run, with further hosts, by the names in the description. The host at index 0 of the
    /// list `names` has the [`HostId`] 1.
    #[must_use]
    pub fn with_hosts<'a>(mut self, names: impl IntoIterator<Item = &'a str>) -> Self {
        self.hosts.extend(names.into_iter().map(Host::expected));
        self
    }

    /// Whether every host is ready or lost.
    pub(super) fn are_hosts_known(&self) -> bool {
        !self.hosts.iter().any(Host::is_expected)
    }

    /// The agent of a host has reported.
    pub(super) fn host_ready(&mut self, id: HostId, system_name: String) {
        let (now, host) = (self.now, &mut self.hosts[id.index()]);
        let name = host.name.clone();
        host.state = HostState::Ready {
            system_name,
            last_heard: now,
        };
        self.log(Level::Info, None, format!("host {name} is ready"));
        if self.are_hosts_known() {
            self.hosts_deadline = None;
            // The user is told now which programs to start.
            for member in self.members.iter_mut() {
                member.waiting_since = now;
            }
            self.next_deadline_to_join = None;
            self.expect_instances();
            self.start_deferred();
        }
    }

    pub(super) fn host_heard(&mut self, id: HostId) {
        let now = self.now;
        if let HostState::Ready { last_heard, .. } = &mut self.hosts[id.index()].state {
            *last_heard = now;
        }
    }

    /// The guard or the agent of a host is gone, as `how` says in words. The session, or the guard
    /// behind the agent, ends the programs. Nobody reports the exits.
    pub(super) fn host_lost(&mut self, id: HostId, how: String) {
        if matches!(self.hosts[id.index()].state, HostState::Lost) {
            return;
        }
        self.hosts[id.index()].state = HostState::Lost;
        for member in self.members.iter_mut() {
            member.process = match member.process {
                InstanceProcess::Running(process) if process.host == id => InstanceProcess::Unknown,
                known => known,
            };
        }
        self.fail(match id {
            HostId::MANAGER => Cause::GuardLost(how),
            id => match self.own_suspension() {
                Some(cause) => cause,
                None => Cause::HostLost(id, how),
            },
        });
    }

    /// Sends a heartbeat to every agent, and looks for silent agents.
    pub(super) fn exchange_heartbeats_with_hosts(&mut self) {
        for id in (1..self.hosts.len() as u32).map(HostId) {
            let HostState::Ready { last_heard, .. } = self.hosts[id.index()].state else {
                continue;
            };
            self.actions.push(RunAction::HostHeartbeat(id));
            let silence = self.now.saturating_sub(last_heard);
            if silence >= self.plan.longest_silence(id) {
                let silence = silence.as_secs_f64();
                let how =
                    format!("was silent for {silence:.1} s, so the programs there count as lost");
                self.actions.push(RunAction::CloseHost(id));
                self.host_lost(id, how);
            }
        }
    }

    /// Fails the run if hosts are late.
    pub(super) fn check_deadline_of_hosts(&mut self) {
        let is_due = |due: &mut Duration| *due <= self.now;
        if self.hosts_deadline.take_if(is_due).is_some() {
            let expected = self.hosts.iter().filter(|host| host.is_expected());
            let names = expected.map(|host| host.name.clone()).collect();
            self.fail(Cause::HostsLate(names, self.plan.options.patience));
        }
    }

    /// The name of a host in the description.
    pub(super) fn host_name(&self, id: HostId) -> &str {
        &self.hosts[id.index()].name
    }

    /// Whether a host has the system name that a program reports.
    pub(super) fn has_system_name(&self, id: HostId, reported: &str) -> bool {
        self.hosts[id.index()].system_name() == Some(reported)
    }

    /// The process of a program that reports its host by the system name; `None` on a host without
    /// guard or agent. Two hosts may have the same system name, for instance two containers. Then the
    /// process is on the host whose guard has started it for the instance; otherwise on the first host
    /// of that name.
    pub(super) fn process_on(
        &self,
        system_name: &str,
        pid: u32,
        id: InstanceId,
    ) -> Option<ProcessId> {
        if let InstanceProcess::Running(process) = self.members[id].process
            && process.pid == pid
            && self.has_system_name(process.host, system_name)
        {
            return Some(process);
        }
        let mut hosts = (0..self.hosts.len() as u32).map(HostId);
        let host = hosts.find(|&host| self.has_system_name(host, system_name))?;
        Some(ProcessId { host, pid })
    }

    /// A process in words, with the host if it is not the manager's.
    pub(super) fn process_text(&self, process: ProcessId) -> String {
        match process.host {
            HostId::MANAGER => format!("process {}", process.pid),
            host => format!("process {} on {}", process.pid, self.host_name(host)),
        }
    }
}
