//! Every message is received on the port that it was sent to.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier};
use std::time::Duration;

use titin_runtime::*;

use crate::stage::{Role, Stage, declared, doubles, first, wait_on};

#[test]
fn macro_and_micro() {
    let stage = Stage::open(
        &[
            ("macro", "o_i: out; s: in"),
            ("micro", "f_init: in; o_f: out"),
        ],
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
                    instance.send(
                        out,
                        None,
                        &Payload::array(&layout, &bytes),
                        step.into(),
                        None,
                        None,
                    )?;
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
fn what_is_lent_is_not_copied() {
    let stage = Stage::open(&[("a", "o_i: out"), ("b", "s: in")], &["a.out b.in"]);
    let (addresses, places) = channel();
    let places = std::sync::Mutex::new(places);
    let results = stage.play(vec![
        (
            "a",
            Box::new(move |instance| {
                let out = instance.port("out")?;
                assert!(instance.reuse()?);
                let refused = instance
                    .loan(
                        out,
                        Some(3),
                        Layout::new(Dtype::UInt8, StorageOrder::C, [1]),
                    )
                    .unwrap_err();
                assert_eq!(refused.kind, Kind::Usage);
                for length in [0, 8, 1 << 20] {
                    let mut loan = instance.loan(
                        out,
                        None,
                        Layout::new(Dtype::UInt8, StorageOrder::C, [length]),
                    )?;
                    loan.bytes_mut().fill(7);
                    let lent = loan.finish();
                    addresses.send(lent.bytes().as_ptr() as usize).unwrap();
                    instance.send(out, None, &Payload::lent(&lent), 0.0, None, None)?;
                }
                Ok(())
            }),
        ),
        (
            "b",
            Box::new(move |instance| {
                let into = instance.port("in")?;
                assert!(instance.reuse()?);
                for length in [0, 8, 1 << 20] {
                    let message = instance.receive(into, None, Patience::Forever)?;
                    assert!(
                        message.bytes().len() == length
                            && message.bytes().iter().all(|byte| *byte == 7)
                    );
                    let place = places.lock().unwrap().recv().unwrap();
                    assert!(length == 0 || place == message.bytes().as_ptr() as usize);
                }
                Ok(())
            }),
        ),
    ]);
    assert_eq!(results, [Ok(()), Ok(())]);
}

/// The receiver waits before the first message is sent, and receives the last message.
#[test]
fn last_gives_the_last_to_who_waits_for_it() {
    let stage = Stage::open(&[("a", "o_i: out"), ("b", "s: in")], &["a.out last b.in"]);
    let (a, b) = (stage.join("a"), stage.join("b"));
    assert!(a.reuse().unwrap() && b.reuse().unwrap());
    let (out, into) = (a.port("out").unwrap(), b.port("in").unwrap());
    std::thread::scope(|scope| {
        let waiting = wait_on(scope, &b, into);
        for step in 0..3 {
            let time = f64::from(step);
            a.send(out, None, &Payload::nil(), time, Some(time + 1.0), None)
                .unwrap();
        }
        a.close().unwrap();
        assert_eq!(waiting.join().unwrap().unwrap().timestamp, 2.0);
    });
    b.close().unwrap();
}

#[test]
fn last_repeat_and_pad_follow_steps() {
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
                instance.send(
                    instance.port("end")?,
                    None,
                    &Payload::nil(),
                    999.0,
                    None,
                    None,
                )
            }),
        ),
        (
            "slow",
            Box::new(|instance| {
                let mut uses = 0;
                while instance.reuse()? {
                    uses += 1;
                    let shape =
                        instance.receive(instance.port("shape")?, None, Patience::Forever)?;
                    assert_eq!(first(&shape), 7.0);
                    let last = instance.receive(instance.port("last")?, None, Patience::Forever)?;
                    assert_eq!(first(&last), 999.0);
                    instance.receive(instance.port("end")?, None, Patience::Forever)?;
                    let note = instance.receive(instance.port("note")?, None, Patience::Forever)?;
                    assert_eq!(*note.content(), Content::Nil);
                }
                assert_eq!(uses, 1);
                Ok(())
            }),
        ),
    ]);
    assert_eq!(results, [Ok(()), Ok(()), Ok(())]);
}

#[test]
fn vector_ports_have_a_slot_for_each_peer_and_any_of_them_can_be_received() {
    let stage = Stage::open(
        &[
            ("driver", "o_i: out[]; s: in[]"),
            ("w[0]", "f_init: in; o_f: out"),
            ("w[1]", "f_init: in; o_f: out"),
        ],
        &[
            "driver.out[0] w[0].in",
            "driver.out[1] w[1].in",
            "w[0].out driver.in[0]",
            "w[1].out driver.in[1]",
        ],
    );
    let worker = || -> Role {
        Box::new(|instance| {
            while instance.reuse()? {
                let message = instance.receive(instance.port("in")?, None, Patience::Forever)?;
                let overlay = instance.overlay();
                assert_eq!(overlay.get("k"), Some(&Setting::Float(message.timestamp)));
                assert_eq!(instance.setting("k")?.as_f64()?, message.timestamp);
                instance.send(
                    instance.port("out")?,
                    None,
                    &Payload::nil(),
                    message.timestamp,
                    None,
                    None,
                )?;
            }
            Ok(())
        })
    };
    let driver: Role = Box::new(|instance| {
        let (out, into) = (instance.port("out")?, instance.port("in")?);
        assert_eq!(instance.info(out).slots, 2);
        assert_eq!(
            instance
                .send(out, None, &Payload::nil(), 0.0, None, None)
                .unwrap_err()
                .kind,
            Kind::Usage
        );
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
            assert_eq!(
                message.settings.unwrap()["k"],
                Setting::Float(message.timestamp)
            );
            seen.push(slot);
        }
        seen.sort_unstable();
        assert_eq!(seen, [0, 1]);
        Ok(())
    });
    let results = stage.play(vec![
        ("driver", driver),
        ("w[0]", worker()),
        ("w[1]", worker()),
    ]);
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
                assert_eq!(
                    b.receive(port, Some(slot), Patience::Forever)?.timestamp,
                    f64::from(slot)
                );
            }
        }
        b.close()
    });
    let a = declared(&stage.manager, "a", "o_f: out[]").unwrap();
    let port = a.port("out").unwrap();
    let early = a
        .send(port, Some(0), &Payload::nil(), 0.0, None, None)
        .unwrap_err();
    assert!(early.text.contains("set their number first"), "{early}");
    a.set_slots(port, 3).unwrap();
    assert!(a.reuse().unwrap());
    for slot in 0..3 {
        a.send(port, Some(slot), &Payload::nil(), slot.into(), None, None)
            .unwrap();
    }
    assert_eq!(a.close(), Ok(()));
    assert_eq!(b.join().unwrap(), Ok(()));
}

#[test]
fn overlays_that_contradict_each_other_are_named() {
    let stage = Stage::open(
        &[
            ("a", "o_f: out"),
            ("b", "o_f: out"),
            ("c", "f_init: left right"),
        ],
        &["a.out c.left", "b.out c.right"],
    );
    let sender = |k: f64| -> Role {
        Box::new(move |instance| {
            assert!(instance.reuse()?);
            let overlay = Overlay::from([("k".to_owned(), Setting::Float(k))]);
            instance.send(
                instance.port("out")?,
                None,
                &Payload::nil(),
                0.0,
                None,
                Some(&overlay),
            )
        })
    };
    let receiver: Role = Box::new(|instance| instance.reuse().map(drop));
    let results = stage.play(vec![
        ("a", sender(1.0)),
        ("b", sender(2.0)),
        ("c", receiver),
    ]);
    let error = results[2].clone().unwrap_err();
    assert_eq!(error.kind, Kind::Setting);
    assert!(
        error.text.contains("a.out") && error.text.contains("b.out") && error.text.contains("'k'"),
        "{error}"
    );
}

#[test]
fn explicit_overlays_are_those_of_their_messages_alone() {
    let stage = Stage::open(
        &[
            ("a", "o_f: left right"),
            ("b", "f_init: left right; o_f: out"),
            ("c", "f_init: in"),
        ],
        &["a.left b.left", "a.right b.right", "b.out c.in"],
    );
    let of_k = |k: f64| Overlay::from([("k".to_owned(), Setting::Float(k))]);
    let send = |instance: &Instance, port: &str, settings: Option<&Overlay>| {
        let port = instance.port(port)?;
        instance.send(port, None, &Payload::nil(), 0.0, None, settings)
    };
    let a: Role = Box::new(move |instance| {
        assert!(instance.reuse()?);
        send(instance, "left", Some(&of_k(1.0)))?;
        send(instance, "right", Some(&of_k(2.0)))
    });
    let c: Role = Box::new(|instance| {
        assert!(instance.reuse()?);
        let message = instance.receive(instance.port("in")?, None, Patience::Forever)?;
        assert_eq!(message.settings, None);
        Ok(())
    });
    let manager = stage.manager.clone();
    let b = std::thread::spawn(move || {
        let options = Options::default().overlays(OverlayUse::Explicit);
        let b = Instance::open(options.instance("b").manager(manager))?;
        assert!(b.reuse()?);
        for (port, k) in [("left", 1.0), ("right", 2.0)] {
            let message = b.receive(b.port(port)?, None, Patience::Forever)?;
            assert_eq!(*message.settings.unwrap(), of_k(k));
        }
        assert!(b.overlay().is_empty());
        send(&b, "out", None)?;
        b.close()
    });
    let results = stage.play(vec![("a", a), ("c", c)]);
    assert_eq!(results, [Ok(()), Ok(())]);
    assert_eq!(b.join().unwrap(), Ok(()));
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
        let late = instance
            .receive(into, None, Patience::For(Duration::from_millis(5)))
            .unwrap_err();
        assert_eq!(late.kind, Kind::Timeout);
        assert!(late.text.contains("b.out"), "{late}");
        let (layout, mut bytes) = doubles(&[1.0; 1000]);
        instance.send(
            instance.port("out")?,
            None,
            &Payload::array(&layout, &bytes),
            0.0,
            None,
            None,
        )?;
        bytes.fill(0);
        instance.receive(into, None, Patience::Forever).map(drop)
    });
    let b: Role = Box::new(move |instance| {
        while instance.reuse()? {
            let message = instance.receive(instance.port("in")?, None, Patience::Forever)?;
            sender.send(message).unwrap();
            instance.send(
                instance.port("out")?,
                None,
                &Payload::nil(),
                0.0,
                None,
                None,
            )?;
        }
        Ok(())
    });
    assert_eq!(stage.play(vec![("a", a), ("b", b)]), [Ok(()), Ok(())]);
    let message = receiver.recv().unwrap();
    assert!(
        message
            .array()
            .unwrap()
            .1
            .chunks_exact(8)
            .all(|bytes| bytes == 1.0f64.to_le_bytes())
    );
}

/// The number of slots may change from use to use.
#[test]
fn each_use_has_the_slots_that_its_messages_say() {
    let stage = Stage::open(&[("a", "o_i: out"), ("b", "f_init: in")], &["a.out b.in"]);
    let manager = stage.manager.clone();
    let b = std::thread::spawn(move || {
        let b = declared(&manager, "b", "f_init: in[]")?;
        let port = b.port("in")?;
        let mut counts = Vec::new();
        while b.reuse()? {
            counts.push(b.info(port).slots);
            for slot in 0..b.info(port).slots {
                b.receive(port, Some(slot), Patience::Forever)?;
            }
        }
        b.close().map(|()| counts)
    });
    let a = declared(&stage.manager, "a", "o_i: out[]").unwrap();
    let port = a.port("out").unwrap();
    assert!(a.reuse().unwrap());
    for (time, slots) in [(0.0, 3), (1.0, 2), (2.0, 4)] {
        a.set_slots(port, slots).unwrap();
        for slot in (0..slots).rev() {
            a.send(port, Some(slot), &Payload::nil(), time, None, None)
                .unwrap();
        }
    }
    assert!(
        a.set_slots(port, u32::MAX)
            .unwrap_err()
            .text
            .contains("at most")
    );
    assert_eq!(a.close(), Ok(()));
    assert_eq!(b.join().unwrap(), Ok(vec![3, 2, 4]));
}

#[test]
fn any_slot_can_be_received_before_their_number_is_known() {
    let stage = Stage::open(&[("a", "o_i: out"), ("b", "s: in")], &["a.out b.in"]);
    let manager = stage.manager.clone();
    let b = std::thread::spawn(move || {
        let b = declared(&manager, "b", "s: in[]")?;
        let port = b.port("in")?;
        assert!(b.reuse()?);
        let mut slots = Vec::new();
        while let Ok((_, slot, message)) = b.receive_any(&[port], Patience::Forever) {
            assert_eq!(message.timestamp, f64::from(slot));
            slots.push(slot);
        }
        b.close().map(|()| slots)
    });
    let a = declared(&stage.manager, "a", "o_i: out[]").unwrap();
    let port = a.port("out").unwrap();
    assert!(a.reuse().unwrap());
    a.set_slots(port, 3).unwrap();
    for slot in [2, 0, 1] {
        a.send(port, Some(slot), &Payload::nil(), slot.into(), None, None)
            .unwrap();
    }
    assert_eq!(a.close(), Ok(()));
    assert_eq!(b.join().unwrap(), Ok(vec![2, 0, 1]));
}

#[test]
fn ports_take_turns_whatever_the_program_does_between() {
    let stage = Stage::open(
        &[
            ("a", "o_i: out"),
            ("b", "o_i: out"),
            ("c", "o_i: note; s: left right"),
            ("d", "s: in"),
        ],
        &["a.out c.left", "b.out c.right", "c.note d.in"],
    );
    let all_sent = Arc::new(Barrier::new(3));
    let sender = || -> Role {
        let all_sent = all_sent.clone();
        Box::new(move |instance| {
            assert!(instance.reuse()?);
            for time in 0..4 {
                instance.send(
                    instance.port("out")?,
                    None,
                    &Payload::nil(),
                    time.into(),
                    None,
                    None,
                )?;
            }
            all_sent.wait();
            Ok(())
        })
    };
    let here = all_sent.clone();
    let chooser: Role = Box::new(move |instance| {
        assert!(instance.reuse()?);
        let ports = [instance.port("left")?, instance.port("right")?];
        here.wait();
        for count in 0..8 {
            let (port, _, message) = instance.receive_any(&ports, Patience::Forever)?;
            assert_eq!(
                (port, message.timestamp),
                (ports[count % 2], (count / 2) as f64)
            );
            instance.send(
                instance.port("note")?,
                None,
                &Payload::nil(),
                count as f64,
                None,
                None,
            )?;
        }
        Ok(())
    });
    let reader: Role = Box::new(|instance| {
        assert!(instance.reuse()?);
        while instance
            .receive(instance.port("in")?, None, Patience::Forever)
            .is_ok()
        {}
        Ok(())
    });
    let results = stage.play(vec![
        ("a", sender()),
        ("b", sender()),
        ("c", chooser),
        ("d", reader),
    ]);
    assert_eq!(results, [Ok(()), Ok(()), Ok(()), Ok(())]);
}

/// Each call may choose from another set of ports, and calls on a single port may come between.
#[test]
fn no_message_is_lost_between_one_choice_and_the_next() {
    let stage = Stage::open(
        &[("a", "o_i: x y z"), ("b", "s: x y z")],
        &["a.x b.x", "a.y b.y", "a.z b.z"],
    );
    let sender: Role = Box::new(|instance| {
        assert!(instance.reuse()?);
        for time in 0..30 {
            for name in ["x", "y", "z"] {
                instance.send(
                    instance.port(name)?,
                    None,
                    &Payload::nil(),
                    time.into(),
                    None,
                    None,
                )?;
            }
        }
        Ok(())
    });
    let receiver: Role = Box::new(|instance| {
        assert!(instance.reuse()?);
        let [x, y, z] = [
            instance.port("x")?,
            instance.port("y")?,
            instance.port("z")?,
        ];
        let twice = instance
            .receive_any(&[x, y, x], Patience::Forever)
            .unwrap_err();
        assert!(twice.text.contains("port 'x' twice"), "{}", twice.text);
        let sets = [vec![x, y], vec![y, z], vec![z, x], vec![x, y, z]];
        let mut seen = vec![(x, 0), (y, 0), (z, 0)];
        let mut note = |port: PortId, message: Message| {
            let (_, count) = seen.iter_mut().find(|(other, _)| *other == port).unwrap();
            assert_eq!(message.timestamp, f64::from(*count), "in the order sent");
            *count += 1;
        };
        for round in 0..24 {
            let (port, _, message) = instance.receive_any(&sets[round % 4], Patience::Forever)?;
            note(port, message);
            let single = [x, y, z][round % 3];
            note(single, instance.receive(single, None, Patience::Forever)?);
        }
        for set in [vec![x], vec![z, y]] {
            loop {
                match instance.receive_any(&set, Patience::Forever) {
                    Ok((port, _, message)) => note(port, message),
                    Err(error) if error.kind == Kind::PortClosed => break,
                    Err(error) => return Err(error),
                }
            }
            let again = instance.receive_any(&set, Patience::Forever).unwrap_err();
            assert_eq!(again.kind, Kind::PortClosed, "however often it is asked");
        }
        assert!(seen.iter().all(|(_, count)| *count == 30), "{seen:?}");
        Ok(())
    });
    assert_eq!(
        stage.play(vec![("a", sender), ("b", receiver)]),
        [Ok(()), Ok(())]
    );
}

/// While one call waits for a set of ports, a call on any of these ports is refused, whatever
/// further ports it names.
#[test]
fn ports_that_a_choice_waits_for_are_not_chosen_from_at_once() {
    let stage = Stage::open(
        &[("a", "o_i: x y z; s: go"), ("b", "s: x y z; o_i: go")],
        &["a.x b.x", "a.y b.y", "a.z b.z", "b.go a.go"],
    );
    let sender: Role = Box::new(|instance| {
        assert!(instance.reuse()?);
        instance.receive(instance.port("go")?, None, Patience::Forever)?;
        instance.send(instance.port("y")?, None, &Payload::nil(), 0.0, None, None)
    });
    let receiver: Role = Box::new(|instance| {
        assert!(instance.reuse()?);
        let [x, y, z, go] = ["x", "y", "z", "go"].map(|name| instance.port(name).unwrap());
        std::thread::scope(|scope| {
            // Until this call waits, the other calls may use its ports and cause a refusal.
            let first = scope.spawn(|| {
                loop {
                    match instance.receive_any(&[x, y], Patience::Forever) {
                        Err(error) if error.kind == Kind::Usage => std::thread::yield_now(),
                        outcome => return outcome,
                    }
                }
            });
            for ports in [&[y, z][..], &[y, x], &[x, y, z]] {
                loop {
                    let error = instance
                        .receive_any(ports, Patience::For(Duration::ZERO))
                        .unwrap_err();
                    match error.kind {
                        Kind::Usage => {
                            break assert!(
                                error.text.contains("two calls at once"),
                                "{}",
                                error.text
                            );
                        }
                        kind => assert_eq!(kind, Kind::Timeout),
                    }
                }
            }
            let apart = instance
                .receive_any(&[z], Patience::For(Duration::ZERO))
                .unwrap_err();
            assert_eq!(apart.kind, Kind::Timeout);
            instance.send(go, None, &Payload::nil(), 0.0, None, None)?;
            assert_eq!(first.join().unwrap()?.0, y);
            Ok(())
        })
    });
    assert_eq!(
        stage.play(vec![("a", sender), ("b", receiver)]),
        [Ok(()), Ok(())]
    );
}

/// A call on one port and a call on several ports, with a port in common: the later call is
/// refused.
#[test]
fn ports_that_a_choice_waits_for_are_not_received_from_at_once() {
    let stage = Stage::open(
        &[("a", "o_i: x y; s: go"), ("b", "s: x y; o_i: go")],
        &["a.x b.x", "a.y b.y", "b.go a.go"],
    );
    let sender: Role = Box::new(|instance| {
        assert!(instance.reuse()?);
        for (time, name) in [(0.0, "x"), (1.0, "y")] {
            instance.receive(instance.port("go")?, None, Patience::Forever)?;
            instance.send(
                instance.port(name)?,
                None,
                &Payload::nil(),
                time,
                None,
                None,
            )?;
        }
        Ok(())
    });
    let receiver: Role = Box::new(|instance| {
        assert!(instance.reuse()?);
        let [x, y, go] = ["x", "y", "go"].map(|name| instance.port(name).unwrap());
        const NOW: Patience = Patience::For(Duration::ZERO);
        let refused = |call: &dyn Fn() -> Result<()>| {
            loop {
                match call() {
                    Err(error) if error.kind == Kind::Usage => {
                        return assert!(error.text.contains("two calls at once"), "{}", error.text);
                    }
                    // The other call has not begun to wait yet.
                    Err(error) => assert_eq!(error.kind, Kind::Timeout),
                    Ok(()) => std::thread::yield_now(),
                }
            }
        };
        // Until this call waits, the other call may use its ports and cause a refusal.
        let insist = |call: &dyn Fn() -> Result<PortId>| {
            loop {
                match call() {
                    Err(error) if error.kind == Kind::Usage => std::thread::yield_now(),
                    outcome => return outcome,
                }
            }
        };
        std::thread::scope(|scope| {
            let any = || {
                instance
                    .receive_any(&[x, y], Patience::Forever)
                    .map(|(port, ..)| port)
            };
            let several = scope.spawn(move || insist(&any));
            refused(&|| instance.try_receive(x, None).map(drop));
            refused(&|| instance.receive(y, None, NOW).map(drop));
            instance.send(go, None, &Payload::nil(), 0.0, None, None)?;
            assert_eq!(several.join().unwrap()?, x);

            let one = scope
                .spawn(move || insist(&|| instance.receive(y, None, Patience::Forever).map(|_| y)));
            let turn = std::cell::Cell::new(false);
            refused(&|| {
                let ports = if turn.replace(!turn.get()) {
                    [x, y]
                } else {
                    [y, x]
                };
                instance.receive_any(&ports, NOW).map(drop)
            });
            instance.send(go, None, &Payload::nil(), 1.0, None, None)?;
            one.join().unwrap().map(drop)
        })
    });
    assert_eq!(
        stage.play(vec![("a", sender), ("b", receiver)]),
        [Ok(()), Ok(())]
    );
}

/// However close together the two calls begin, exactly one call is refused, and it is refused at
/// once.
#[test]
fn a_choice_and_a_receive_on_one_of_its_ports_do_not_both_begin() {
    const ROUNDS: u32 = 100;
    // The call on several ports takes a while to look at so many slots.
    let crowd: Vec<String> = (0..300)
        .map(|slot| format!("a.more[{slot}] b.more[{slot}]"))
        .collect();
    let conduits = ["a.x b.x", "a.y b.y", "b.go a.go"]
        .into_iter()
        .chain(crowd.iter().map(String::as_str));
    let stage = Stage::open(
        &[
            ("a", "o_i: x y more[]; s: go"),
            ("b", "s: x y more[]; o_i: go"),
        ],
        &conduits.collect::<Vec<_>>(),
    );
    let sender: Role = Box::new(|instance| {
        assert!(instance.reuse()?);
        for round in 0..ROUNDS {
            instance.receive(instance.port("go")?, None, Patience::Forever)?;
            instance.send(
                instance.port("x")?,
                None,
                &Payload::nil(),
                round.into(),
                None,
                None,
            )?;
        }
        Ok(())
    });
    let receiver: Role = Box::new(|instance| {
        assert!(instance.reuse()?);
        let [x, y, more, go] = ["x", "y", "more", "go"].map(|name| instance.port(name).unwrap());
        for round in 0..ROUNDS {
            let begun = AtomicBool::new(false);
            // The refused call makes the sender send the message for which the other call waits.
            let outcome = |outcome: Result<()>| match outcome {
                Err(error) if error.kind == Kind::Usage => instance
                    .send(go, None, &Payload::nil(), round.into(), None, None)
                    .map(|()| 0),
                outcome => outcome.map(|()| 1),
            };
            let sum: Result<i32> = std::thread::scope(|scope| {
                let several = scope.spawn(|| {
                    // The order of the ports changes from round to round, so that each round is a
                    // new choice.
                    let ports = if round % 2 == 0 {
                        [x, y, more]
                    } else {
                        [x, more, y]
                    };
                    begun.store(true, Ordering::Release);
                    outcome(instance.receive_any(&ports, Patience::Forever).map(drop))
                });
                while !begun.load(Ordering::Acquire) {
                    std::hint::spin_loop();
                }
                (0..round * 10).for_each(|_| std::hint::spin_loop());
                let one = outcome(instance.receive(x, None, Patience::Forever).map(drop));
                Ok(one? + several.join().unwrap()?)
            });
            assert_eq!(sum?, 1);
        }
        Ok(())
    });
    assert_eq!(
        stage.play(vec![("a", sender), ("b", receiver)]),
        [Ok(()), Ok(())]
    );
}
