//! Every race of a run, played with a fake clock and fake programs.

mod deadlock;
mod ensemble;
mod failures;
mod hosts;
mod observation;
mod registry;
mod stall;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use titin_model::Operator;
use titin_transport::LinkId;
use titin_wire::EndpointId;
use titin_wire::control::{PortDeclaration, Registration, ToManager, ToProgram};
use titin_wire::ranks::RankProcess;

use super::member::{InstanceProcess, Membership};
use super::{Manager, Phase, RunOutcome};
use crate::event::{Exit, Level, RunAction, RunEvent, Signal};
use crate::host::{HostId, ProcessId};
use crate::plan::{
    InstanceId, Plan, PlannedConduit, PlannedEnd, PlannedInstance, PlannedPort, PlannedProgram,
    StartMode,
};

const HOST: &str = "here";

fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// A run with fake programs. Instance number i has process 100 + i and link i.
struct Rig {
    manager: Manager,
    now: Duration,
    begun: Vec<InstanceId>,
    reported: BTreeMap<LinkId, Vec<ToProgram>>,
    /// Whether the manager has ordered to start no more programs.
    stopped: bool,
    signals: Vec<(String, Signal)>,
    signalled: Vec<(ProcessId, Signal)>,
    watches: Vec<ProcessId>,
    heartbeats: Vec<HostId>,
    closed_hosts: Vec<HostId>,
    /// The hosts of each notice that hosts are missing.
    missing_hosts: Vec<Vec<HostId>>,
    closed: Vec<LinkId>,
    logs: Vec<(Level, String)>,
    finished: bool,
    asked_relays: Vec<HostId>,
}

/// A plan from conduits written `a.out o_i -> b.in f_init`. The manager starts the instances that
/// `foreign` does not name.
fn plan(conduits: &[&str], foreign: &[(&str, StartMode)]) -> Plan {
    let mut instances: Vec<PlannedInstance> = Vec::new();
    let conduits = conduits.iter().map(|conduit| {
        let mut ends = conduit
            .split(" -> ")
            .map(|end| planned_end(end, &mut instances));
        let (from, to) = (ends.next().unwrap(), ends.next().unwrap());
        planned_conduit(from, to)
    });
    let conduits = conduits.collect();
    for instance in &mut instances {
        let found = foreign.iter().find(|(name, _)| *name == instance.name);
        if let Some((_, start)) = found {
            instance.start = start.clone();
        }
    }
    Plan {
        model: "demo".into(),
        instances: instances.into_iter().collect(),
        conduits,
        ..Plan::default()
    }
}

/// The end of a conduit, written `a.out[2] o_i`. Adds the port, and perhaps the instance, to
/// `instances`.
fn planned_end(end: &str, instances: &mut Vec<PlannedInstance>) -> PlannedEnd {
    let (port, operator) = end.split_once(' ').unwrap();
    let (name, port) = port.split_once('.').unwrap();
    let known = instances.iter().position(|instance| instance.name == name);
    let at = known.unwrap_or_else(|| {
        instances.push(planned_instance(name));
        instances.len() - 1
    });
    let (port, slot) = match port.split_once('[') {
        Some((port, slot)) => (port, Some(slot.trim_end_matches(']').parse().unwrap())),
        None => (port, None),
    };
    instances[at].ports.push(PlannedPort {
        name: port.into(),
        operator: Operator::from_key(operator).unwrap(),
        guessed: false,
        timeline: None,
    });
    PlannedEnd {
        instance: InstanceId(at as u32),
        port: port.into(),
        slot,
    }
}

fn planned_instance(name: &str) -> PlannedInstance {
    PlannedInstance {
        name: name.to_owned(),
        component: name.split('[').next().unwrap().to_owned(),
        start: StartMode::Program(PlannedProgram::default()),
        cores: 1,
        spare_ports: vec!["spare".into()],
        ..PlannedInstance::default()
    }
}

fn planned_conduit(from: PlannedEnd, to: PlannedEnd) -> PlannedConduit {
    PlannedConduit {
        from,
        to,
        filters: Vec::new(),
        buffer_messages: 4,
        buffer_bytes: 1000,
        buffer_grows: false,
        medium: None,
        pattern: None,
        link: None,
    }
}

/// The classic pair: macro calls micro.
const PAIR: [&str; 2] = [
    "macro.out o_i -> micro.in f_init",
    "micro.final o_f -> macro.back s",
];

impl Rig {
    /// A run in which the guard has started all programs of the manager.
    fn new(plan: Plan) -> Self {
        let mut rig = Rig::begun(plan);
        for id in rig.begun.clone() {
            rig.event(RunEvent::ProcessStarted(id, ProcessId::here(100 + id.0)));
        }
        rig
    }

    /// A run that has begun, with programs that have not started yet.
    fn begun(plan: Plan) -> Self {
        Rig::begun_on(plan, &[])
    }

    /// As [`Rig::begun`], with further hosts, which are not ready yet.
    fn begun_on(plan: Plan, hosts: &[&str]) -> Self {
        let manager = Manager::new(Arc::new(plan), HOST).with_hosts(hosts.iter().copied());
        let mut rig = Rig {
            manager,
            now: Duration::ZERO,
            begun: Vec::new(),
            reported: BTreeMap::new(),
            stopped: false,
            signals: Vec::new(),
            signalled: Vec::new(),
            heartbeats: Vec::new(),
            closed_hosts: Vec::new(),
            missing_hosts: Vec::new(),
            watches: Vec::new(),
            closed: Vec::new(),
            logs: Vec::new(),
            finished: false,
            asked_relays: Vec::new(),
        };
        let actions = rig.manager.begin(rig.now);
        rig.take(actions);
        rig
    }

    /// The pair, with both programs started and joined.
    fn pair() -> Self {
        let mut rig = Rig::new(plan(&PAIR, &[]));
        rig.join("macro");
        rig.join("micro");
        rig.reported.clear();
        rig
    }

    fn take(&mut self, actions: Vec<RunAction>) {
        for action in actions {
            assert!(
                !self.finished,
                "nothing may follow the end, but {action:?} did"
            );
            match action {
                RunAction::Send(link, message) => {
                    self.reported.entry(link).or_default().push(message)
                }
                RunAction::CloseLink(link) => self.closed.push(link),
                RunAction::HostHeartbeat(host) => self.heartbeats.push(host),
                RunAction::CloseHost(host) => self.closed_hosts.push(host),
                RunAction::TellMissingHosts(hosts) => self.missing_hosts.push(hosts),
                RunAction::AskRelay(host) => self.asked_relays.push(host),
                RunAction::StartProgram(id) => self.begun.push(id),
                RunAction::StopStarting => self.stopped = true,
                RunAction::Signal(id, signal) => self
                    .signals
                    .push((self.manager.name(id).to_owned(), signal)),
                RunAction::SignalProcess(process, signal) => self.signalled.push((process, signal)),
                RunAction::WatchProcess(process) => self.watches.push(process),
                RunAction::Record(record) | RunAction::RecordCause(record) => {
                    self.logs.push((record.level, record.text))
                }
                RunAction::StoreProfile(_) => {}
                RunAction::Finish => self.finished = true,
            }
        }
    }

    fn event(&mut self, event: RunEvent) {
        let actions = self.manager.handle(self.now, event);
        self.take(actions);
    }

    fn id(&self, name: &str) -> InstanceId {
        self.manager.names[name]
    }

    fn link(&self, name: &str) -> LinkId {
        LinkId(self.id(name).0.into())
    }

    fn registration(&self, name: &str) -> Registration {
        let id = self.manager.names.get(name).copied();
        Registration {
            instance: name.into(),
            endpoint: EndpointId(7),
            addresses: Vec::new(),
            pid: 100 + id.map_or(99, |id| id.0),
            host: HOST.into(),
            ports: None,
            language: "rust".into(),
            release: "0.1.0".into(),
            ranks: Vec::new(),
        }
    }

    fn register(&mut self, link: LinkId, registration: Registration) {
        self.event(RunEvent::LinkOpened(link));
        self.say(link, ToManager::Register(registration));
    }

    fn join(&mut self, name: &str) {
        self.register(self.link(name), self.registration(name));
    }

    fn join_with_two_ranks(&mut self, name: &str) {
        let other = RankProcess {
            endpoint: EndpointId(8),
            addresses: Vec::new(),
            pid: 200,
            host: HOST.into(),
        };
        let registration = Registration {
            ranks: vec![other],
            ..self.registration(name)
        };
        self.register(self.link(name), registration);
    }

    /// Joins from another process than the process that the guard has started.
    fn join_from(&mut self, name: &str, pid: u32) {
        let registration = self.registration(name);
        self.register(
            self.link(name),
            Registration {
                pid,
                ..registration
            },
        );
    }

    /// A further process asks to join as an instance that has joined. Returns the refusal.
    fn join_again(&mut self, name: &str, pid: u32) -> String {
        let link = LinkId(60);
        let registration = self.registration(name);
        self.register(
            link,
            Registration {
                pid,
                ..registration
            },
        );
        self.refusal(link).unwrap()
    }

    /// Joins with ports, written `out o_i` or `out[] o_i`. Returns the refusal, if the manager
    /// refuses.
    fn join_with(&mut self, name: &str, ports: &[&str]) -> Option<String> {
        let link = self.link(name);
        let declare = |port: &&str| {
            let (name, operator) = port.split_once(' ').unwrap();
            let vector = name.ends_with("[]");
            PortDeclaration {
                name: name.trim_end_matches("[]").into(),
                operator: operator.into(),
                vector,
            }
        };
        let ports = Some(ports.iter().map(declare).collect());
        let registration = Registration {
            ports,
            ..self.registration(name)
        };
        self.register(link, registration);
        self.refusal(link)
    }

    fn refusal(&mut self, link: LinkId) -> Option<String> {
        self.reported
            .remove(&link)?
            .into_iter()
            .find_map(|message| match message {
                ToProgram::Refused { text, .. } => Some(text),
                _ => None,
            })
    }

    fn say(&mut self, link: LinkId, message: ToManager) {
        self.event(RunEvent::MessageReceived(link, Box::new(message)));
    }

    /// Tells that a wait has ended.
    fn proceed(&mut self, name: &str, wait: u64) {
        let instance = name.to_owned();
        self.say(self.link(name), ToManager::Proceed { instance, wait });
    }

    fn done(&mut self, name: &str) {
        self.say(
            self.link(name),
            ToManager::Done {
                instance: name.into(),
            },
        );
    }

    fn fail(&mut self, name: &str, text: &str, echo: bool) {
        let after = Vec::new();
        self.say(
            self.link(name),
            ToManager::Failed {
                instance: name.into(),
                text: text.into(),
                echo,
                after,
            },
        );
    }

    /// Fails by a port that the peers in `after` have closed.
    fn fail_after(&mut self, name: &str, after: &[&str]) {
        let after = after.iter().map(|peer| (*peer).to_owned()).collect();
        let failed = ToManager::Failed {
            instance: name.into(),
            text: "port is closed".into(),
            echo: false,
            after,
        };
        self.say(self.link(name), failed);
    }

    fn lose(&mut self, name: &str) {
        self.event(RunEvent::LinkLost(
            self.link(name),
            "connection reset".into(),
        ));
    }

    fn exit(&mut self, name: &str, exit: Exit) {
        self.event(RunEvent::ProcessEnded(self.id(name), exit));
    }

    /// The usual end: done, link closed, exit code 0.
    fn leave(&mut self, name: &str) {
        self.done(name);
        self.lose(name);
        self.exit(name, Exit::Code(0));
    }

    /// Lets time pass, with a tick at every deadline on the way, as in the session.
    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while !self.finished && self.manager.deadline() <= end {
            self.now = self.now.max(self.manager.deadline());
            self.event(RunEvent::Tick);
        }
        self.now = end;
    }

    /// The failure of the run, in the words for the programs.
    fn failure(&self) -> Option<String> {
        let failure = self.manager.run_state.failure()?;
        Some(self.manager.failure_line(failure))
    }

    #[track_caller]
    fn assert_failure_begins(&self, begin: &str) {
        let failure = self.failure().expect("the run has failed");
        assert!(failure.starts_with(begin), "{failure}");
    }

    #[track_caller]
    fn assert_failure_says(&self, part: &str) {
        let failure = self.failure().expect("the run has failed");
        assert!(failure.contains(part), "{failure}");
    }

    fn phase(&self, name: &str) -> Phase {
        self.manager.instance_statuses()[self.id(name).index()].phase
    }

    fn was_told_of_failure(&self, name: &str) -> bool {
        let told = self
            .reported
            .get(&self.link(name))
            .map_or(&[][..], Vec::as_slice);
        told.iter()
            .any(|message| matches!(message, ToProgram::RunFailed { .. }))
    }

    /// Asserts that the run is over, well or not, and that nothing of the run is left: no process,
    /// no doubt, no pending question.
    fn assert_over(&self, well: bool) {
        assert!(
            self.finished,
            "the run goes on: {:?}",
            self.manager.instance_statuses()
        );
        let outcome = self.manager.outcome().expect("it is over");
        assert_eq!(matches!(outcome, RunOutcome::Done), well, "{outcome:?}");
        for (name, &id) in &self.manager.names {
            let member = &self.manager.members[id];
            assert!(
                !matches!(
                    member.process,
                    InstanceProcess::Starting | InstanceProcess::Running(_)
                ),
                "{name} still runs"
            );
            assert_eq!(member.doubt, None, "{name} is still in doubt");
            if well {
                assert!(
                    matches!(member.membership, Membership::Done),
                    "{name} is not done"
                );
            }
        }
        assert!(
            self.manager.deadlock_search.is_idle(),
            "a deadlock is still being looked for"
        );
    }
}

#[test]
fn a_pair_runs_to_its_end() {
    let mut rig = Rig::pair();
    assert_eq!(rig.phase("macro"), Phase::Running);
    rig.leave("micro");
    assert!(!rig.finished);
    assert_eq!(rig.phase("micro"), Phase::Done);
    rig.leave("macro");
    rig.assert_over(true);
    assert!(rig.signals.is_empty());
}

#[test]
fn an_empty_model_is_over_at_once() {
    Rig::new(plan(&[], &[])).assert_over(true);
}

#[test]
fn programs_that_are_not_ours_end_the_run_by_being_done() {
    let mut rig = Rig::new(plan(
        &PAIR,
        &[
            ("macro", StartMode::Manual(None)),
            ("micro", StartMode::Hosted),
        ],
    ));
    assert!(rig.begun.is_empty());
    assert_eq!(rig.phase("macro"), Phase::Awaited);
    rig.join("macro");
    rig.join("micro");
    rig.done("macro");
    assert!(!rig.finished);
    rig.done("micro");
    rig.assert_over(true);
}

#[test]
fn signs_of_life_go_to_every_link() {
    let mut rig = Rig::pair();
    rig.pass(Duration::from_secs(7));
    for name in ["macro", "micro"] {
        let beats = rig.reported[&rig.link(name)]
            .iter()
            .filter(|message| **message == ToProgram::Heartbeat {});
        assert_eq!(beats.count(), 2);
    }
}

#[test]
fn the_log_and_the_position_of_an_instance_are_kept() {
    let mut rig = Rig::pair();
    let link = rig.link("macro");
    let text = "first\nsecond".to_owned();
    rig.say(
        link,
        ToManager::Log {
            instance: "macro".into(),
            level: 30,
            time: 5.0,
            simulated: Some(0.5),
            text,
        },
    );
    assert!(rig.logs.contains(&(Level::Warning, "first\nsecond".into())));
    assert_eq!(
        rig.manager.members[rig.id("macro")].recent_log,
        ["first", "second"]
    );
    let progress = titin_wire::control::Progress {
        instance: "macro".into(),
        simulated: Some(2.0),
        messages: 3,
        bytes: 24,
        end: None,
    };
    rig.say(link, ToManager::Progress(progress.clone()));
    assert_eq!(rig.manager.instance_statuses()[0].position, Some(progress));
    // A program cannot send messages for an instance of another program.
    rig.done("macro");
    rig.say(
        rig.link("macro"),
        ToManager::Done {
            instance: "micro".into(),
        },
    );
    assert_eq!(rig.phase("micro"), Phase::Running);
    assert!(
        rig.logs
            .iter()
            .any(|(level, text)| *level == Level::Warning && text.contains("spoke for micro"))
    );
}
