//! Instances of one process under the real state machine of the manager.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::Instant;

use titin_manager::event::{Action, Event};
use titin_manager::plan::{Conduit, End, InstanceId, PerInstance, Plan, Planned, Port, Start};
use titin_manager::state::Manager;
use titin_model::{Filter, FilterKind};
use titin_runtime::*;
use titin_transport::{Handler, Link, Lost, Reactor};
use titin_wire::connection::Connection;
use titin_wire::control;
use titin_wire::handshake::Agreement;
use titin_wire::{RunId, Secret};

struct Ears(Sender<(Event, Option<Arc<Link>>)>);

impl Handler for Ears {
    fn opened(&self, link: &Arc<Link>, _: Agreement) {
        let _ = self.0.send((Event::Opened(link.id()), Some(link.clone())));
    }
    fn control(&self, link: &Arc<Link>, body: &[u8]) {
        let _ = self.0.send((Event::Said(link.id(), Box::new(control::decode(body).unwrap())), None));
    }
    fn lost(&self, link: &Arc<Link>, why: Lost) {
        let _ = self.0.send((Event::Lost(link.id(), why.to_string()), None));
    }
}

/// What an instance does.
type Role = Box<dyn Fn(&Instance) -> Result<()> + Send>;

/// A manager for hosted instances; the path of its connection file.
struct Stage {
    manager: String,
    _folder: tempfile::TempDir,
}

impl Stage {
    /// Conduits as `a.out last b.in`; ports as "a: o_i: out; s: in".
    fn open(instances: &[(&str, &str)], conduits: &[&str]) -> Stage {
        let secret = Secret::random();
        let (sender, receiver) = channel();
        let reactor = Reactor::start(secret.clone(), Arc::new(Ears(sender))).unwrap();
        let address = reactor.listen(IpAddr::V4(Ipv4Addr::LOCALHOST)).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("connection.json");
        let connection =
            Connection { addresses: vec![address], run: Some(RunId::random()), secret, spans_hosts: false };
        std::fs::write(&path, connection.to_json()).unwrap();

        let find =
            |name: &str| InstanceId(instances.iter().position(|(other, _)| *other == name).unwrap() as u32);
        let end = |text: &str| {
            // `a.port[3]` is a slot of a vector port that follows from multiplicities.
            let (instance, port) = text.split_once('.').unwrap();
            let (port, slot) = port.split_once('[').map_or((port, None), |(port, slot)| (port, Some(slot)));
            let slot = slot.map(|slot| slot.trim_end_matches(']').parse().unwrap());
            End { instance: find(instance), port: port.to_owned(), slot }
        };
        let plan = Plan {
            model: "test".into(),
            instances: instances
                .iter()
                .map(|(name, ports)| Planned {
                    name: (*name).into(),
                    component: (*name).into(),
                    start: Start::Hosted,
                    cores: 1,
                    ports: ports
                        .split(';')
                        .filter_map(|group| group.split_once(':'))
                        .flat_map(|(operator, names)| {
                            names.split_whitespace().map(move |name| (operator, name))
                        })
                        .map(|(operator, name)| Port {
                            name: name.trim_end_matches("[]").into(),
                            operator: Operator::from_key(operator.trim()).expect("an operator"),
                            guessed: false,
                        })
                        .collect(),
                    settings: BTreeMap::from([("k".into(), Setting::Float(2.0))]),
                    ..Planned::default()
                })
                .collect(),
            conduits: conduits
                .iter()
                .map(|text| {
                    let words: Vec<&str> = text.split_whitespace().collect();
                    let filters = words[1..words.len() - 1].iter().map(|word| Filter {
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
                    Conduit {
                        from: end(words[0]),
                        to: end(words[words.len() - 1]),
                        filters: filters.collect(),
                        buffer_messages: 4,
                        buffer_bytes: 1 << 20,
                        medium: None,
                    }
                })
                .collect(),
            ..Plan::default()
        };
        let crowded = PerInstance::make(plan.instances.len(), |_| false);
        std::thread::spawn(move || {
            let start = Instant::now();
            let mut manager = Manager::new(Arc::new(plan), "here", crowded);
            let mut links = BTreeMap::new();
            let mut actions = manager.begin(start.elapsed());
            loop {
                for action in actions.drain(..) {
                    match action {
                        Action::Tell(link, message) => {
                            let link: &Arc<Link> = &links[&link];
                            link.tell(&control::encode(&message));
                        }
                        Action::Finish => return reactor.stop(),
                        Action::Record(record) => eprintln!("{record:?}"),
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
                    Err(_) => Event::Tick,
                };
                actions = manager.handle(start.elapsed(), event);
            }
        });
        Stage { manager: path.to_str().unwrap().to_owned(), _folder: folder }
    }

    fn join(&self, name: &str) -> Instance {
        Instance::open(Options::default().instance(name).manager(&self.manager)).unwrap()
    }

    /// Runs each instance on a thread of its own.
    fn play(&self, roles: Vec<(&'static str, Role)>) -> Vec<Result<()>> {
        let threads: Vec<_> = roles
            .into_iter()
            .map(|(name, role)| {
                let manager = self.manager.clone();
                std::thread::spawn(move || {
                    let instance = Instance::open(Options::default().instance(name).manager(manager))?;
                    role(&instance).inspect_err(|error| instance.note(error)).and(instance.close())
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    }
}

/// Opens an instance that declares its ports.
fn declared(manager: &str, name: &str, ports: &str) -> Result<Instance> {
    Instance::open(Options::default().instance(name).manager(manager).ports(ports)?)
}

fn doubles(values: &[f64]) -> (Layout, Vec<u8>) {
    let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    (Layout::new(Dtype::Float64, Order::C, [values.len() as u64]), bytes)
}

fn first(message: &Message) -> f64 {
    f64::from_le_bytes(message.array().unwrap().1[..8].try_into().unwrap())
}

#[test]
fn macro_and_micro() {
    let stage = Stage::open(
        &[("macro", "o_i: out; s: in"), ("micro", "f_init: in; o_f: out")],
        &["macro.out zstd micro.in", "micro.out half macro.in"],
    );
    let results = stage.play(vec![
        (
            "macro",
            Box::new(|instance| {
                let (out, into) = (instance.port("out")?, instance.port("in")?);
                assert!(instance.reuse()?);
                for step in 0..10 {
                    let (layout, bytes) = doubles(&[f64::from(step), 1.0]);
                    instance.send(out, None, &Payload::array(&layout, &bytes), step.into(), None, None)?;
                    let answer = instance.receive(into, None, Patience::Forever)?;
                    assert_eq!(first(&answer), f64::from(step));
                }
                assert!(!instance.reuse()?);
                Ok(())
            }),
        ),
        (
            "micro",
            Box::new(|instance| {
                let (into, out) = (instance.port("in")?, instance.port("out")?);
                let mut uses = 0;
                while instance.reuse()? {
                    uses += 1;
                    let k = instance.setting("k")?.as_f64()?;
                    let message = instance.receive(into, None, Patience::Forever)?;
                    let (layout, bytes) = doubles(&[k * first(&message)]);
                    instance.send(
                        out,
                        None,
                        &Payload::array(&layout, &bytes),
                        message.timestamp,
                        None,
                        None,
                    )?;
                }
                assert_eq!(uses, 10);
                Ok(())
            }),
        ),
    ]);
    assert_eq!(results, [Ok(()), Ok(())]);
}

#[test]
fn last_repeat_and_pad_follow_next_timestamps() {
    let stage = Stage::open(
        &[
            ("init", "o_f: shape"),
            ("fast", "o_i: out note; o_f: end"),
            ("slow", "f_init: shape end last note"),
        ],
        &[
            "init.shape repeat slow.shape",
            "fast.out last slow.last",
            "fast.note pad slow.note",
            "fast.end slow.end",
        ],
    );
    let results = stage.play(vec![
        (
            "init",
            Box::new(|instance| {
                assert!(instance.reuse()?);
                let (layout, bytes) = doubles(&[7.0]);
                instance.send(
                    instance.port("shape")?,
                    None,
                    &Payload::array(&layout, &bytes),
                    0.0,
                    None,
                    None,
                )
            }),
        ),
        (
            "fast",
            Box::new(|instance| {
                assert!(instance.reuse()?);
                for step in 0..1000 {
                    let (layout, bytes) = doubles(&[f64::from(step)]);
                    let next = (step < 999).then(|| f64::from(step) + 1.0);
                    instance.send(
                        instance.port("out")?,
                        None,
                        &Payload::array(&layout, &bytes),
                        step.into(),
                        next,
                        None,
                    )?;
                }
                instance.send(instance.port("end")?, None, &Payload::nil(), 999.0, None, None)
            }),
        ),
        (
            "slow",
            Box::new(|instance| {
                let mut uses = 0;
                while instance.reuse()? {
                    uses += 1;
                    let shape = instance.receive(instance.port("shape")?, None, Patience::Forever)?;
                    assert_eq!(first(&shape), 7.0);
                    let last = instance.receive(instance.port("last")?, None, Patience::Forever)?;
                    assert_eq!(first(&last), 999.0);
                    instance.receive(instance.port("end")?, None, Patience::Forever)?;
                    let note = instance.receive(instance.port("note")?, None, Patience::Forever)?;
                    assert_eq!(note.content, Content::Nil);
                }
                assert_eq!(uses, 1);
                Ok(())
            }),
        ),
    ]);
    assert_eq!(results, [Ok(()), Ok(()), Ok(())]);
}

#[test]
fn a_failure_reaches_those_who_wait() {
    let stage = Stage::open(&[("a", "o_f: out"), ("b", "f_init: in")], &["a.out b.in"]);
    let a = stage.join("a");
    let b = stage.join("b");
    let b = std::thread::spawn(move || {
        let error = b.reuse().unwrap_err();
        assert_eq!(b.close().unwrap_err().kind, Kind::PeerLost);
        error
    });
    a.fail("the mesh is tangled");
    let error = b.join().unwrap();
    assert_eq!(error.kind, Kind::PeerLost);
    assert!(
        error.text.contains("a: the mesh is tangled") || error.text.contains("the mesh is tangled"),
        "{error}"
    );
}

#[test]
fn a_circle_of_receives_is_a_deadlock() {
    let stage =
        Stage::open(&[("a", "o_i: out; s: in"), ("b", "o_i: out; s: in")], &["a.out b.in", "b.out a.in"]);
    let role = || -> Role {
        Box::new(|instance| {
            assert!(instance.reuse()?);
            instance.receive(instance.port("in")?, None, Patience::Forever).map(drop)
        })
    };
    for result in stage.play(vec![("a", role()), ("b", role())]) {
        let error = result.unwrap_err();
        assert_eq!(error.kind, Kind::Deadlock, "{error}");
        assert!(error.text.contains("a") && error.text.contains("in"), "{error}");
    }
}

#[test]
fn a_full_buffer_in_a_circle_is_raised() {
    let stage =
        Stage::open(&[("a", "o_i: out; s: in"), ("b", "o_i: out; s: in")], &["a.out b.in", "b.out a.in"]);
    let role = || -> Role {
        Box::new(|instance| {
            assert!(instance.reuse()?);
            for step in 0..20 {
                instance.send(instance.port("out")?, None, &Payload::nil(), step.into(), None, None)?;
            }
            for _ in 0..20 {
                instance.receive(instance.port("in")?, None, Patience::Forever)?;
            }
            Ok(())
        })
    };
    assert_eq!(stage.play(vec![("a", role()), ("b", role())]), [Ok(()), Ok(())]);
}

#[test]
fn messages_never_taken_are_an_error_at_the_end() {
    let stage = Stage::open(&[("a", "o_i: out"), ("b", "s: in")], &["a.out b.in"]);
    let send = |instance: &Instance, count: i32| {
        assert!(instance.reuse()?);
        (0..count).try_for_each(|step| {
            instance.send(instance.port("out")?, None, &Payload::nil(), step.into(), None, None)
        })
    };
    let results = stage.play(vec![
        ("a", Box::new(move |instance| send(instance, 3))),
        (
            "b",
            Box::new(|instance| {
                assert!(instance.reuse()?);
                let port = instance.port("in")?;
                let (from, slot, message) = instance.receive_any(&[port], Patience::Forever)?;
                assert_eq!((from, slot, message.timestamp), (port, 0, 0.0));
                // A second message shows that the third, which follows it at once, is on its way or here.
                instance.receive(port, None, Patience::Forever).map(drop)?;
                while instance.try_receive(port, None)?.is_none() {
                    std::thread::yield_now();
                }
                let closed = instance.receive(port, None, Patience::Forever).unwrap_err();
                assert_eq!(closed.kind, Kind::PortClosed);
                Ok(())
            }),
        ),
    ]);
    assert_eq!(results, [Ok(()), Ok(())]);

    let stage = Stage::open(&[("a", "o_i: out"), ("b", "f_init: in")], &["a.out b.in"]);
    let results = stage.play(vec![
        ("a", Box::new(move |instance| send(instance, 1))),
        ("b", Box::new(|instance| instance.reuse().map(drop))),
    ]);
    let error = results[1].clone().unwrap_err();
    assert_eq!(error.kind, Kind::CallOrder);
    assert!(error.text.contains("F_INIT port 'in' was not taken"), "{error}");
}

#[test]
fn vector_ports_have_a_slot_for_each_peer_and_any_of_them_can_be_received() {
    let stage = Stage::open(
        &[
            ("driver", "o_i: out[]; s: in[]"),
            ("w[0]", "f_init: in; o_f: out"),
            ("w[1]", "f_init: in; o_f: out"),
        ],
        &["driver.out[0] w[0].in", "driver.out[1] w[1].in", "w[0].out driver.in[0]", "w[1].out driver.in[1]"],
    );
    let worker = || -> Role {
        Box::new(|instance| {
            while instance.reuse()? {
                let message = instance.receive(instance.port("in")?, None, Patience::Forever)?;
                let overlay = instance.overlay();
                assert_eq!(overlay.get("k"), Some(&Setting::Float(message.timestamp)));
                assert_eq!(instance.setting("k")?.as_f64()?, message.timestamp);
                instance.send(instance.port("out")?, None, &Payload::nil(), message.timestamp, None, None)?;
            }
            Ok(())
        })
    };
    let driver: Role = Box::new(|instance| {
        let (out, into) = (instance.port("out")?, instance.port("in")?);
        assert_eq!(instance.info(out).slots, 2);
        assert_eq!(instance.send(out, None, &Payload::nil(), 0.0, None, None).unwrap_err().kind, Kind::Usage);
        assert!(instance.reuse()?);
        for slot in [0, 1] {
            let overlay = Overlay::from([("k".to_owned(), Setting::Float(f64::from(slot) + 10.0))]);
            let time = f64::from(slot) + 10.0;
            instance.send(out, Some(slot), &Payload::nil(), time, None, Some(&overlay))?;
        }
        let mut seen = Vec::new();
        for _ in 0..2 {
            let (port, slot, message) = instance.receive_any(&[into], Patience::Forever)?;
            assert_eq!(port, into);
            assert_eq!(message.timestamp, f64::from(slot) + 10.0);
            assert_eq!(message.settings.unwrap()["k"], Setting::Float(message.timestamp));
            seen.push(slot);
        }
        seen.sort_unstable();
        assert_eq!(seen, [0, 1]);
        Ok(())
    });
    let results = stage.play(vec![("driver", driver), ("w[0]", worker()), ("w[1]", worker())]);
    assert_eq!(results, [Ok(()), Ok(()), Ok(())]);
}

#[test]
fn slots_counted_at_run_time_reach_the_receiver() {
    let stage = Stage::open(&[("a", "o_f: out"), ("b", "f_init: in")], &["a.out b.in"]);
    let manager = stage.manager.clone();
    let b = std::thread::spawn(move || {
        let b = declared(&manager, "b", "f_init: in[]")?;
        let port = b.port("in")?;
        assert!(b.info(port).resizable);
        while b.reuse()? {
            assert_eq!(b.info(port).slots, 3);
            for slot in [2, 0, 1] {
                assert_eq!(b.receive(port, Some(slot), Patience::Forever)?.timestamp, f64::from(slot));
            }
        }
        b.close()
    });
    let a = declared(&stage.manager, "a", "o_f: out[]").unwrap();
    let port = a.port("out").unwrap();
    let early = a.send(port, Some(0), &Payload::nil(), 0.0, None, None).unwrap_err();
    assert!(early.text.contains("set their number first"), "{early}");
    a.set_slots(port, 3).unwrap();
    assert!(a.reuse().unwrap());
    for slot in 0..3 {
        a.send(port, Some(slot), &Payload::nil(), slot.into(), None, None).unwrap();
    }
    assert_eq!(a.close(), Ok(()));
    assert_eq!(b.join().unwrap(), Ok(()));
}

#[test]
fn overlays_that_contradict_each_other_are_named() {
    let stage = Stage::open(
        &[("a", "o_f: out"), ("b", "o_f: out"), ("c", "f_init: left right")],
        &["a.out c.left", "b.out c.right"],
    );
    let sender = |k: f64| -> Role {
        Box::new(move |instance| {
            assert!(instance.reuse()?);
            let overlay = Overlay::from([("k".to_owned(), Setting::Float(k))]);
            instance.send(instance.port("out")?, None, &Payload::nil(), 0.0, None, Some(&overlay))
        })
    };
    let receiver: Role = Box::new(|instance| instance.reuse().map(drop));
    let results = stage.play(vec![("a", sender(1.0)), ("b", sender(2.0)), ("c", receiver)]);
    let error = results[2].clone().unwrap_err();
    assert_eq!(error.kind, Kind::Setting);
    assert!(
        error.text.contains("a.out") && error.text.contains("b.out") && error.text.contains("'k'"),
        "{error}"
    );
}

#[test]
fn views_outlive_the_instance_and_patience_ends() {
    let stage = Stage::open(
        &[("a", "o_i: out; s: in"), ("b", "f_init: in; o_f: out")],
        &["a.out b.in", "b.out a.in"],
    );
    let (sender, receiver) = channel();
    let a: Role = Box::new(|instance| {
        assert!(instance.reuse()?);
        let into = instance.port("in")?;
        assert!(instance.try_receive(into, None)?.is_none());
        let late =
            instance.receive(into, None, Patience::For(std::time::Duration::from_millis(5))).unwrap_err();
        assert_eq!(late.kind, Kind::Timeout);
        assert!(late.text.contains("b.out"), "{late}");
        let (layout, mut bytes) = doubles(&[1.0; 1000]);
        instance.send(instance.port("out")?, None, &Payload::array(&layout, &bytes), 0.0, None, None)?;
        bytes.fill(0);
        instance.receive(into, None, Patience::Forever).map(drop)
    });
    let b: Role = Box::new(move |instance| {
        while instance.reuse()? {
            let message = instance.receive(instance.port("in")?, None, Patience::Forever)?;
            sender.send(message).unwrap();
            instance.send(instance.port("out")?, None, &Payload::nil(), 0.0, None, None)?;
        }
        Ok(())
    });
    assert_eq!(stage.play(vec![("a", a), ("b", b)]), [Ok(()), Ok(())]);
    let message = receiver.recv().unwrap();
    assert!(message.array().unwrap().1.chunks_exact(8).all(|bytes| bytes == 1.0f64.to_le_bytes()));
}
