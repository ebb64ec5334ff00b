//! The hosts of the run: expected, ready, lost.
//!
//! The manager knows another host only through the agent there. No program starts before every host
//! is ready, because the placement needs the cores of all hosts.

use std::time::Duration;

use super::Manager;
use super::failure::Cause;
use super::member::{InstanceProcess, Membership};
use crate::event::{Level, RunAction};
use crate::host::{HostId, ProcessId};
use crate::plan::{InstanceId, StartMode};

/// When the user is told first for which hosts the run waits, and how often after that.
pub(super) const FIRST_NOTICE: Duration = Duration::from_secs(10);
const NOTICE_INTERVAL: Duration = Duration::from_secs(60);

/// The shortest silence of a host at another site of which the user is warned.
const LEAST_SILENCE: Duration = Duration::from_secs(5);

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
        /// Whether the user was warned of the silence since then.
        is_warned: bool,
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
                is_warned: false,
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
    pub(super) fn system_name(&self) -> Option<&str> {
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
            is_warned: false,
        };
        self.log(Level::Info, None, format!("host {name} is ready"));
        if self.plan.other_site(id).is_some() {
            let due = now + self.noticed_silence();
            let next = self.next_silence_notice;
            self.next_silence_notice = Some(next.map_or(due, |next| next.min(due)));
        }
        if self.are_hosts_known() {
            self.hosts_deadline = None;
            self.next_host_notice = None;
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
        let HostState::Ready {
            last_heard,
            is_warned,
            ..
        } = &mut self.hosts[id.index()].state
        else {
            return;
        };
        let silence = now.saturating_sub(std::mem::replace(last_heard, now));
        if std::mem::take(is_warned) {
            let seconds = silence.as_secs_f64();
            let text = format!("host {} is back after {seconds:.0} s", self.host_name(id));
            self.log(Level::Warning, None, text);
        }
    }

    /// The guard or the agent of a host is gone, as `how` says in words.
    pub(super) fn host_lost(&mut self, id: HostId, how: String) {
        self.lose_host(
            id,
            match id {
                HostId::MANAGER => Cause::GuardLost(how),
                id => Cause::HostLost(id, how),
            },
        );
    }

    /// The programs of a host are out of reach. The session, or the guard behind the agent, ends the programs.
    /// Nobody reports the exits.
    pub(super) fn lose_host(&mut self, id: HostId, cause: Cause) {
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
        self.fail(match cause {
            Cause::HostLost(..) | Cause::HostSilent(..) => self.own_suspension().unwrap_or(cause),
            cause => cause,
        });
    }

    /// Whether the process of an instance was out of reach with its host before the process ended.
    pub(super) fn is_lost_with_host(&self, id: InstanceId) -> bool {
        let is_lost = matches!(self.hosts[self.host_of(id).index()].state, HostState::Lost);
        is_lost
            && self.members[id].process == InstanceProcess::Unknown
            && !matches!(self.members[id].membership, Membership::Done)
    }

    /// Sends a heartbeat to every agent, and looks for silent agents.
    pub(super) fn exchange_heartbeats_with_hosts(&mut self) {
        let further = (1..self.hosts.len() as u32).map(HostId);
        let ready = further.filter(|id| self.hosts[id.index()].system_name().is_some());
        self.actions.extend(ready.map(RunAction::HostHeartbeat));
        self.lose_silent_hosts();
    }

    /// Counts hosts as lost that have been silent for too long, and notes when the next host may be.
    pub(super) fn lose_silent_hosts(&mut self) {
        let mut next: Option<Duration> = None;
        for id in (1..self.hosts.len() as u32).map(HostId) {
            let HostState::Ready { last_heard, .. } = self.hosts[id.index()].state else {
                continue;
            };
            let due = last_heard.saturating_add(self.plan.longest_silence(id));
            if due <= self.now {
                let silence = self.now.saturating_sub(last_heard);
                self.actions.push(RunAction::CloseHost(id));
                self.lose_host(id, Cause::HostSilent(id, silence));
            } else {
                next = Some(next.map_or(due, |next| next.min(due)));
            }
        }
        self.next_host_loss = next;
    }

    /// Fails the run if hosts are late.
    pub(super) fn check_deadline_of_hosts(&mut self) {
        let is_due = |due: &mut Duration| *due <= self.now;
        if self.hosts_deadline.take_if(is_due).is_some() {
            let late = self.expected_hosts();
            self.fail(Cause::HostsLate(late, self.plan.options.patience));
        }
    }

    /// The hosts whose agents have not come.
    pub(super) fn expected_hosts(&self) -> Vec<HostId> {
        let hosts = self.host_ids();
        hosts
            .filter(|id| self.hosts[id.index()].is_expected())
            .collect()
    }

    fn host_ids(&self) -> impl Iterator<Item = HostId> + use<> {
        (0..self.hosts.len() as u32).map(HostId)
    }

    /// Has the user told for which hosts the run waits, if it is time. The user knows of agents that are
    /// to be started by hand.
    pub(super) fn tell_missing_hosts(&mut self) {
        let is_due = |due: &mut Duration| *due <= self.now;
        if self.next_host_notice.take_if(is_due).is_none() || self.run_state.failure().is_some() {
            return;
        }
        self.next_host_notice = Some(self.now + NOTICE_INTERVAL);
        let mut missing = self.expected_hosts();
        missing.retain(|id| !self.plan.is_by_hand(*id));
        if !missing.is_empty() {
            self.actions.push(RunAction::TellMissingHosts(missing));
        }
    }

    /// The silence of a host at another site of which the user is warned: more than one heartbeat and
    /// its answer take.
    fn noticed_silence(&self) -> Duration {
        LEAST_SILENCE.max(self.plan.options.heartbeat / 2)
    }

    /// Warns of hosts at other sites that are silent for the first time since they were last heard.
    pub(super) fn warn_of_silent_hosts(&mut self) {
        let is_due = |due: &mut Duration| *due <= self.now;
        if self.next_silence_notice.take_if(is_due).is_none() || self.run_state.failure().is_some()
        {
            return;
        }
        let (now, noticed) = (self.now, self.noticed_silence());
        let mut next = now + noticed;
        for id in self.host_ids() {
            match self.unwarned_silence(id) {
                Some(silence) if silence >= noticed => self.warn_of_silence(id, silence),
                Some(silence) => next = next.min(now + noticed - silence),
                None => {}
            }
        }
        self.next_silence_notice = Some(next);
    }

    /// That nothing has come from a host at another site for long, in words.
    pub(super) fn silent_host_text(&self, id: HostId) -> Option<String> {
        self.plan.other_site(id)?;
        let HostState::Ready { last_heard, .. } = self.hosts[id.index()].state else {
            return None;
        };
        let silence = self.now.saturating_sub(last_heard);
        (silence >= self.noticed_silence()).then(|| self.silence_text(id, silence))
    }

    fn silence_text(&self, id: HostId, silence: Duration) -> String {
        format!(
            "nothing has come from host {}{} for {:.0} s",
            self.host_name(id),
            self.plan.site_text(id),
            silence.as_secs_f64()
        )
    }

    /// How long a host at another site has been silent; `None` if the user was warned of it, and for
    /// other hosts.
    fn unwarned_silence(&self, id: HostId) -> Option<Duration> {
        self.plan.other_site(id)?;
        match self.hosts[id.index()].state {
            HostState::Ready {
                last_heard,
                is_warned: false,
                ..
            } => Some(self.now.saturating_sub(last_heard)),
            _ => None,
        }
    }

    fn warn_of_silence(&mut self, id: HostId, silence: Duration) {
        if let HostState::Ready { is_warned, .. } = &mut self.hosts[id.index()].state {
            *is_warned = true;
        }
        let text = format!(
            "{}: the line may be away, or a relay refuses the run, as its log says; the host counts as lost after {} s \
             (`patience` and `heartbeat`)",
            self.silence_text(id, silence),
            self.plan.longest_silence(id).as_secs_f64()
        );
        self.log(Level::Warning, None, text);
        self.actions.push(RunAction::AskRelay(id));
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
        let host = self
            .host_ids()
            .find(|&host| self.has_system_name(host, system_name))?;
        Some(ProcessId { host, pid })
    }

    /// The host of an instance's program, as far as it is known: a program that the user starts may be
    /// on any host until it joins.
    pub(super) fn host_of(&self, id: InstanceId) -> HostId {
        let member = &self.members[id];
        let running = match member.process {
            InstanceProcess::Running(process) => Some(process.host),
            _ => None,
        };
        let joined = member.known_process.map(|process| process.host);
        let is_manual = matches!(self.plan.instances[id].start, StartMode::Manual(_));
        let placed = self.placed.as_ref().filter(|_| !is_manual);
        let known = joined.or(running);
        known
            .or(placed.map(|hosts| hosts[id]))
            .unwrap_or(HostId::MANAGER)
    }

    /// The host of an instance's program in words, if it is another than the manager's.
    pub fn place_text(&self, id: InstanceId) -> String {
        match self.host_of(id) {
            HostId::MANAGER => String::new(),
            host => format!(
                " on host {}{}",
                self.host_name(host),
                self.plan.site_text(host)
            ),
        }
    }

    /// A process in words, with the host if it is not the manager's.
    pub(super) fn process_text(&self, process: ProcessId) -> String {
        match process.host {
            HostId::MANAGER => format!("process {}", process.pid),
            host => format!("process {} on {}", process.pid, self.host_name(host)),
        }
    }
}
