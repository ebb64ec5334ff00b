//! A run within the test, and the instances that take part.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use titin_manager::event::{RunAction, RunEvent};
use titin_manager::plan::{
    InstanceId, Plan, PlannedConduit, PlannedEnd, PlannedInstance, PlannedPort, StartMode,
};
use titin_manager::state::Manager;
use titin_model::{Filter, FilterKind, Pattern, TransferMode};
use titin_runtime::*;
use titin_testkit::Watchdog;
use titin_transport::{Handler, Link, LinkError, Medium, Reactor};
use titin_wire::Secret;
use titin_wire::connection::Connection;
use titin_wire::control;
use titin_wire::handshake::Agreement;

/// How long the manager of a stage waits for programs to end their links.
const LAST_WORDS: Duration = Duration::from_secs(1);

struct Ears(Sender<(RunEvent, Option<Arc<Link>>)>);

impl Handler for Ears {
    fn opened(&self, link: &Arc<Link>, _: Agreement) {
        let _ = self
            .0
            .send((RunEvent::LinkOpened(link.id()), Some(link.clone())));
    }
    fn control(&self, link: &Arc<Link>, body: &[u8]) {
        let _ = self.0.send((
            RunEvent::MessageReceived(link.id(), Box::new(control::decode(body).unwrap())),
            None,
        ));
    }
    fn lost(&self, link: &Arc<Link>, why: LinkError) {
        let _ = self
            .0
            .send((RunEvent::LinkLost(link.id(), why.to_string()), None));
    }
}

/// The code of an instance.
pub type Role = Box<dyn Fn(&Instance) -> Result<()> + Send>;

/// A manager for hosted instances.
pub struct Stage {
    pub manager: String,
    _folder: tempfile::TempDir,
    _watchdog: Watchdog,
}

impl Stage {
    /// Starts the manager. A conduit is written `a.out last b.in`, or `a.out pull b.in` for a field
    /// that the receiver pulls. The ports of an instance are written `o_i: out; s: in`.
    pub fn open(instances: &[(&str, &str)], conduits: &[&str]) -> Stage {
        let secret = Secret::random();
        let (sender, receiver) = channel();
        let reactor = Reactor::start(secret.clone(), Arc::new(Ears(sender))).unwrap();
        let address = reactor.listen(Medium::Tcp, "127.0.0.1").unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("connection.json");
        let connection = Connection {
            addresses: vec![address],
            secret,
            spans_hosts: false,
            folders: Default::default(),
            patience: 300.0,
            site: None,
            network: None,
        };
        std::fs::write(&path, connection.to_json()).unwrap();

        let find = |name: &str| {
            InstanceId(
                instances
                    .iter()
                    .position(|(other, _)| *other == name)
                    .unwrap() as u32,
            )
        };
        let end = |text: &str| {
            // `a.port[3]` is a slot of a vector port that follows from multiplicities.
            let (instance, port) = text.split_once('.').unwrap();
            let (port, slot) = port
                .split_once('[')
                .map_or((port, None), |(port, slot)| (port, Some(slot)));
            let slot = slot.map(|slot| slot.trim_end_matches(']').parse().unwrap());
            PlannedEnd {
                instance: find(instance),
                port: port.into(),
                slot,
            }
        };
        let plan = Plan {
            model: "test".into(),
            instances: instances
                .iter()
                .map(|(name, ports)| PlannedInstance {
                    name: (*name).into(),
                    component: (*name).into(),
                    start: StartMode::Hosted,
                    cores: 1,
                    ports: ports
                        .split(';')
                        .filter_map(|group| group.split_once(':'))
                        .flat_map(|(operator, names)| {
                            names.split_whitespace().map(move |name| (operator, name))
                        })
                        .map(|(operator, name)| PlannedPort {
                            name: name.trim_end_matches("[]").into(),
                            operator: Operator::from_key(operator.trim()).expect("an operator"),
                            guessed: false,
                            timeline: None,
                        })
                        .collect(),
                    settings: BTreeMap::from([("k".into(), Setting::Float(2.0))]),
                    ..PlannedInstance::default()
                })
                .collect(),
            conduits: conduits
                .iter()
                .map(|text| {
                    let words: Vec<&str> = text.split_whitespace().collect();
                    let between = &words[1..words.len() - 1];
                    let pulled = Pattern {
                        mode: TransferMode::Pull(Default::default()),
                        ..Pattern::default()
                    };
                    let is_pulled = between.contains(&"pull");
                    let filters = between.iter().filter(|word| **word != "pull");
                    let filters = filters.map(|word| Filter {
                        kind: match *word {
                            "last" => FilterKind::Last,
                            "repeat" => FilterKind::Repeat,
                            "pad" => FilterKind::Pad,
                            "zstd" => FilterKind::Zstd(None),
                            "half" => FilterKind::Scale { a: 0.5, b: 0.0 },
                            other => panic!("{other}"),
                        },
                        side: None,
                    });
                    PlannedConduit {
                        from: end(words[0]),
                        to: end(words[words.len() - 1]),
                        filters: filters.collect(),
                        buffer_messages: 4,
                        buffer_bytes: 1 << 20,
                        buffer_grows: false,
                        medium: None,
                        pattern: is_pulled.then(|| Box::new(pulled)),
                        link: Default::default(),
                    }
                })
                .collect(),
            ..Plan::default()
        };
        std::thread::spawn(move || {
            let start = Instant::now();
            let mut manager = Manager::new(Arc::new(plan), "here");
            let mut links = BTreeMap::new();
            let mut actions = manager.begin(start.elapsed());
            loop {
                for action in actions.drain(..) {
                    match action {
                        RunAction::Send(link, message) => {
                            let link: &Arc<Link> = &links[&link];
                            link.tell(&control::encode(&message));
                        }
                        RunAction::Finish => {
                            // A program that still tells something when the manager has gone would lose the
                            // manager's last words.
                            let open = links.len();
                            let events =
                                std::iter::from_fn(|| receiver.recv_timeout(LAST_WORDS).ok());
                            let lost = |(event, _): &_| matches!(event, RunEvent::LinkLost(..));
                            events.filter(lost).take(open).for_each(drop);
                            return reactor.stop();
                        }
                        RunAction::Record(record) | RunAction::RecordCause(record) => {
                            eprintln!("{record:?}")
                        }
                        _ => {}
                    }
                }
                let wait = manager.deadline().saturating_sub(start.elapsed());
                let event = match receiver.recv_timeout(wait) {
                    Ok((event, link)) => {
                        if let Some(link) = link {
                            links.insert(link.id(), link);
                        }
                        event
                    }
                    Err(_) => RunEvent::Tick,
                };
                actions = manager.handle(start.elapsed(), event);
            }
        });
        Stage {
            manager: path.to_str().unwrap().to_owned(),
            _folder: folder,
            _watchdog: Watchdog::start(),
        }
    }

    pub fn join(&self, name: &str) -> Instance {
        Instance::open(Options::default().instance(name).manager(&self.manager)).unwrap()
    }

    /// Runs each instance on a thread of its own.
    pub fn play(&self, roles: Vec<(&'static str, Role)>) -> Vec<Result<()>> {
        let threads: Vec<_> = roles
            .into_iter()
            .map(|(name, role)| {
                let manager = self.manager.clone();
                std::thread::spawn(move || {
                    let instance =
                        Instance::open(Options::default().instance(name).manager(manager))?;
                    role(&instance)
                        .inspect_err(|error| instance.note(error))
                        .and(instance.close())
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    }
}

/// Opens an instance that declares its ports.
pub fn declared(manager: &str, name: &str, ports: &str) -> Result<Instance> {
    Instance::open(
        Options::default()
            .instance(name)
            .manager(manager)
            .ports(ports)?,
    )
}

/// Starts a thread that receives on a port. Returns once the thread waits, which it shows by the
/// refusal of another call on the port.
pub fn wait_on<'scope>(
    scope: &'scope Scope<'scope, '_>,
    instance: &'scope Instance,
    port: PortId,
) -> ScopedJoinHandle<'scope, Result<Message>> {
    let two_at_once = |error: &Error| error.kind == Kind::Usage;
    let waiting = scope.spawn(move || {
        loop {
            let outcome = instance.receive(port, None, Patience::Forever);
            // Of two calls at once, either call may be refused.
            if !outcome.as_ref().is_err_and(two_at_once) {
                return outcome;
            }
        }
    });
    while !instance
        .try_receive(port, None)
        .as_ref()
        .is_err_and(two_at_once)
    {
        std::thread::yield_now();
    }
    waiting
}

pub fn doubles(values: &[f64]) -> (Layout, Vec<u8>) {
    let bytes = values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    (
        Layout::new(Dtype::Float64, StorageOrder::C, [values.len() as u64]),
        bytes,
    )
}

pub fn first(message: &Message) -> f64 {
    f64::from_le_bytes(message.array().unwrap().1[..8].try_into().unwrap())
}
