//! The manager as a pure state machine: events in, actions out, no I/O and no clock.
//!
//! [`Manager::handle`] takes one event and the time since the run began, and returns actions. The
//! session ([`crate::session`]) reads sockets, starts processes and keeps the time, so a unit test
//! can replay every race. The parts of the state machine:
//!
//! - `registry`: the programs that may join (`join_error`), and the manager's answer to them
//!   (`welcome`);
//! - `messages`: messages of programs, handed to the parts that they concern;
//! - `watch`: the beginning and the end of processes and links;
//! - `hosts`: the hosts of the run, expected, ready or lost;
//! - `heartbeat`: heartbeats, silent programs, and instances that are late to join;
//! - `assessment`: the signs of a failure, and when the failure is certain;
//! - `ending`: the grace period after the first failure, and the end of the run;
//! - `ensemble`: members of ensembles that fail, are started again, or wait for a turn;
//! - `attempts`: members that are started again after they have joined;
//! - `deadlock`: the search for instances that wait for each other (`wait_graph`);
//! - `stall`: waits for room that last because another instance polls;
//! - `fields`: the conduits that carry fields;
//! - `traffic`: how much each instance has sent.
//!
//! A run begins with the start of every program. The run ends when every instance is done and every
//! process has ended. After a failure, the run ends when no process is left.

mod assessment;
mod attempts;
mod deadlock;
mod ending;
mod ensemble;
mod failure;
mod fault;
mod fields;
mod heartbeat;
mod hosts;
mod join_error;
mod member;
mod messages;
mod observation;
mod registry;
mod stall;
mod status;
mod traffic;
mod wait_graph;
mod watch;
mod welcome;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use titin_transport::LinkId;
use titin_wire::control::ToProgram;

use crate::event::{Level, LogRecord, RunAction, RunEvent};
use crate::host::{HostId, ProcessId};
use crate::plan::{ConduitId, InstanceId, PerInstance, Plan};
use member::{ControlLink, InstanceProcess, Member};

pub(crate) use ending::REPEATED_INTERRUPT;
pub use ending::RunOutcome;
pub use ensemble::FailedMembers;
pub use failure::{Cause, Failure};
pub use fault::Fault;
pub use status::{InstanceStatus, Phase};
pub use titin_wire::control::Progress;
pub use wait_graph::{Deadlock, DeadlockAdvice, FullBuffers, WaitCycle};

/// The control plane of one run.
#[derive(Debug)]
pub struct Manager {
    plan: Arc<Plan>,
    /// The hosts, by [`HostId`].
    hosts: Vec<hosts::Host>,
    /// The time from which hosts without an agent are late; `None` if all hosts are known.
    hosts_deadline: Option<Duration>,
    /// When the user is told next for which hosts the run waits; `None` if all hosts are known.
    next_host_notice: Option<Duration>,
    /// The host of each instance; `None` before all hosts are known.
    placed: Option<PerInstance<HostId>>,
    /// No warning of a silent host is due before this time; `None` without hosts at other sites.
    next_silence_notice: Option<Duration>,
    /// No host has been silent for too long before this time; `None` if nothing is due before the next heartbeat.
    next_host_loss: Option<Duration>,
    names: HashMap<String, InstanceId>,
    /// The conduit ends of each instance; `true` where the instance sends.
    conduit_ends: PerInstance<Vec<(ConduitId, bool)>>,
    /// The instances at the other ends of the conduits, each once.
    peers: PerInstance<Vec<InstanceId>>,
    members: PerInstance<Member>,
    /// The failed members of ensembles.
    ensembles: ensemble::Ensembles,
    /// The conduits of members that are started again.
    attempts: attempts::Attempts,
    /// Instances to be started after all hosts are ready, and certain peers have joined.
    deferred_starts: Vec<InstanceId>,
    links: BTreeMap<LinkId, ControlLink>,
    deadlock_search: deadlock::DeadlockSearch,
    stall: stall::Stall,
    run_state: ending::RunState,
    next_heartbeat: Duration,
    /// Programs that the guards have started.
    programs: HashSet<ProcessId>,
    /// No instance is late before this time; `None` if no instance is expected to join.
    next_deadline_to_join: Option<Duration>,
    /// No doubt is due before this time; `None` if there is no doubt.
    next_doubt_due: Option<Duration>,
    /// All instances before this instance are done.
    first_unfinished: InstanceId,
    /// The first number that no conduit has.
    next_conduit: u32,
    /// The declarations of fields, by the conduits that carry them.
    fields: HashMap<ConduitId, fields::FieldEnds>,
    /// The messages and bytes that came from instances that were not done, by what receivers have told.
    received: HashMap<ConduitId, (u64, u64)>,
    /// When the manager's process last went on after a stop, and how long the stop lasted.
    last_suspension: Option<(Duration, Duration)>,
    now: Duration,
    actions: Vec<RunAction>,
}

/// The conduit ends of each instance, and the instances at the other ends.
struct InstanceNeighbours {
    conduit_ends: PerInstance<Vec<(ConduitId, bool)>>,
    peers: PerInstance<Vec<InstanceId>>,
}

impl InstanceNeighbours {
    fn of(plan: &Plan) -> Self {
        let count = plan.instances.len();
        let mut conduit_ends = PerInstance::make(count, |_| Vec::new());
        let mut peers: PerInstance<Vec<InstanceId>> = PerInstance::make(count, |_| Vec::new());
        for (id, conduit) in plan.numbered() {
            let (from, to) = (conduit.from.instance, conduit.to.instance);
            conduit_ends[from].push((id, true));
            conduit_ends[to].push((id, false));
            peers[from].push(to);
            peers[to].push(from);
        }
        for peers in peers.iter_mut() {
            peers.sort_unstable();
            peers.dedup();
        }
        InstanceNeighbours {
            conduit_ends,
            peers,
        }
    }
}

impl Manager {
    /// A run that has not begun, on one host. `host` is the name of the host, in the form in which
    /// programs report their hosts.
    pub fn new(plan: Arc<Plan>, host: &str) -> Self {
        let InstanceNeighbours {
            conduit_ends,
            peers,
        } = InstanceNeighbours::of(&plan);
        let name = |id: InstanceId| (plan.instances[id].name.clone(), id);
        let instances = plan.instances.iter();
        let attempts = attempts::Attempts::of(&plan);
        let next_conduit = plan.conduits.len() as u32 + attempts.conduit_count();
        Manager {
            hosts: vec![hosts::Host::of_manager(host)],
            hosts_deadline: None,
            next_host_notice: None,
            next_silence_notice: None,
            next_host_loss: None,
            placed: None,
            names: plan.instances.ids().map(name).collect(),
            conduit_ends,
            peers,
            members: instances
                .map(|planned| Member::new(&planned.start))
                .collect(),
            ensembles: ensemble::Ensembles::of(&plan),
            attempts,
            deferred_starts: Vec::new(),
            links: BTreeMap::new(),
            deadlock_search: deadlock::DeadlockSearch::default(),
            stall: stall::Stall::default(),
            run_state: ending::RunState::Running,
            next_heartbeat: Duration::ZERO,
            programs: HashSet::new(),
            next_deadline_to_join: None,
            next_doubt_due: None,
            first_unfinished: InstanceId(0),
            next_conduit,
            fields: HashMap::new(),
            received: HashMap::new(),
            last_suspension: None,
            now: Duration::ZERO,
            actions: Vec::new(),
            plan,
        }
    }

    /// Begins the run: starts the programs.
    pub fn begin(&mut self, now: Duration) -> Vec<RunAction> {
        self.now = now;
        self.next_heartbeat = now + self.heartbeat_interval();
        self.expect_instances();
        if !self.are_hosts_known() {
            self.hosts_deadline = Some(now.saturating_add(self.plan.options.patience));
            self.next_host_notice = Some(now + hosts::FIRST_NOTICE);
        }
        for id in self.ids() {
            self.members[id].waiting_since = now;
            if self.members[id].process == InstanceProcess::Starting {
                match self.can_start(id) {
                    true => self.start(id),
                    false => self.deferred_starts.push(id),
                }
            }
        }
        self.finish_if_over();
        std::mem::take(&mut self.actions)
    }

    /// Takes in an event, and returns the actions.
    pub fn handle(&mut self, now: Duration, event: RunEvent) -> Vec<RunAction> {
        self.now = self.now.max(now);
        if !self.is_over() {
            match event {
                RunEvent::LinkOpened(link) => self.link_opened(link),
                RunEvent::LinkLost(link, why) => self.link_lost(link, &why),
                RunEvent::MessageReceived(link, message) => self.message_received(link, *message),
                RunEvent::Interrupted(signal) => self.interrupted(signal),
                RunEvent::ManagerFailed(why) => self.fail(Cause::ManagerFailed(why)),
                RunEvent::Suspended(time) => self.last_suspension = Some((self.now, time)),
                RunEvent::Tick => {}
                event => self.process_event(event),
            }
            self.tick();
            self.finish_if_over();
        }
        std::mem::take(&mut self.actions)
    }

    /// Takes in an event about a process or a host.
    fn process_event(&mut self, event: RunEvent) {
        match event {
            // A broken guard may name an instance that does not exist.
            RunEvent::ProcessStarted(id, _)
            | RunEvent::StartFailed(id, _)
            | RunEvent::ProcessEnded(id, _)
                if id.index() >= self.plan.instances.len() =>
            {
                let number = id.0;
                let how =
                    format!("told of a program with number {number}, which it was not to start");
                self.host_lost(HostId::MANAGER, how);
            }
            RunEvent::ProcessStarted(id, process) => self.process_started(id, process),
            RunEvent::StartFailed(id, why) => self.start_failed(id, Fault::StartFailed(why)),
            RunEvent::StagingFailed(id, why) => self.start_failed(id, Fault::StagingFailed(why)),
            RunEvent::StartSkipped(id) => self.start_skipped(id),
            RunEvent::ProcessEnded(id, exit) => self.process_ended(id, exit),
            RunEvent::ProcessWatched(process) => self.process_watched(process),
            RunEvent::ProcessGone(process) => self.process_gone(process),
            RunEvent::HostReady(id, system_name) => self.host_ready(id, system_name),
            RunEvent::Placed(hosts) => self.placed = Some(hosts),
            RunEvent::HostHeard(id) => self.host_heard(id),
            RunEvent::HostLost(id, how) => self.host_lost(id, how),
            RunEvent::AgentFailed(id, how) => self.lose_host(id, Cause::AgentFailed(id, how)),
            RunEvent::HostUnfit(id, how) => self.lose_host(id, Cause::HostUnfit(id, how)),
            _ => {}
        }
    }

    /// Carries out due work.
    fn tick(&mut self) {
        self.resolve_doubts();
        self.check_deadline_of_hosts();
        self.tell_missing_hosts();
        self.warn_of_silent_hosts();
        self.check_join_deadlines();
        if self.now >= self.next_heartbeat {
            self.next_heartbeat = self.now + self.heartbeat_interval();
            self.exchange_heartbeats();
            self.exchange_heartbeats_with_hosts();
            self.warn_of_full_ensembles();
        }
        let is_due = |due: &mut Duration| *due <= self.now;
        if self.next_host_loss.take_if(is_due).is_some() {
            self.lose_silent_hosts();
        }
        self.search_deadlock();
        self.check_for_stalls();
        self.send_due_signals();
        self.end_left_out_members();
    }

    /// When to hand in [`RunEvent::Tick`] if nothing happens before.
    pub fn deadline(&self) -> Duration {
        let deadlines = [
            Some(self.next_heartbeat),
            self.hosts_deadline,
            self.next_host_notice,
            self.next_silence_notice,
            self.next_host_loss,
            self.next_deadline_to_join,
            self.next_doubt_due,
            self.run_state.deadline(),
            self.ensembles.next_signal,
            self.deadlock_search.deadline(),
            self.stall.deadline(),
        ];
        let next = deadlines.into_iter().flatten().min();
        next.unwrap_or(self.next_heartbeat)
    }

    /// How the run ended; `None` as long as the run goes on.
    pub fn outcome(&self) -> Option<RunOutcome<'_>> {
        self.run_state.outcome()
    }

    /// The plan of the run.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// Raised buffers: the conduit, the number of raises, and the present limit in messages.
    pub fn raised(&self) -> impl Iterator<Item = (ConduitId, u64, u64)> {
        let raised = self.deadlock_search.raised();
        raised.map(|(conduit, times, messages)| (self.described_conduit(conduit), times, messages))
    }

    fn ids(&self) -> impl Iterator<Item = InstanceId> + use<> {
        self.plan.instances.ids()
    }

    fn name(&self, id: InstanceId) -> &str {
        &self.plan.instances[id].name
    }

    fn tell(&mut self, link: LinkId, message: ToProgram) {
        self.actions.push(RunAction::Send(link, message));
    }

    /// Sends a message to the program of an instance, if the instance takes part.
    fn tell_instance(&mut self, id: InstanceId, message: ToProgram) {
        if let Some(link) = self.members[id].joined().map(|joined| joined.link) {
            self.tell(link, message);
        }
    }

    fn tell_all(&mut self, message: &ToProgram) {
        for link in self.all_links() {
            self.tell(link, message.clone());
        }
    }

    /// The ids of all links, so that the links may change meanwhile.
    fn all_links(&self) -> Vec<LinkId> {
        self.links.keys().copied().collect()
    }

    fn log(&mut self, level: Level, instance: Option<InstanceId>, text: impl Into<String>) {
        let record = LogRecord::of_manager(level, text.into());
        self.actions
            .push(RunAction::Record(LogRecord { instance, ..record }));
    }
}
