//! Refused calls, which leave nothing behind.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;

use titin_runtime::*;

use crate::stage::{Role, Stage, doubles, first, wait_on};

fn send(instance: &Instance, port: &str, time: f64) -> Result<()> {
    let (layout, bytes) = doubles(&[time]);
    instance.send(
        instance.port(port)?,
        None,
        &Payload::array(&layout, &bytes),
        time,
        None,
        None,
    )
}

fn receive(instance: &Instance, port: &str) -> Result<Message> {
    instance.receive(instance.port(port)?, None, Patience::Forever)
}

#[test]
fn a_port_of_the_other_direction_is_a_mistake_of_the_call_itself() {
    let stage = Stage::open(
        &[("a", "o_i: out; s: in"), ("b", "o_i: out; s: in")],
        &["a.out b.in", "b.out a.in"],
    );
    let role = || -> Role {
        Box::new(|instance| {
            let (out, into) = (instance.port("out")?, instance.port("in")?);
            assert!(instance.reuse()?);
            let array = Layout::new(Dtype::UInt8, StorageOrder::C, [1]);
            let refused = [
                instance.send(into, None, &Payload::nil(), 0.0, None, None),
                instance.loan(into, None, array).map(drop),
                instance.receive(out, None, Patience::Forever).map(drop),
                instance.try_receive(out, None).map(drop),
                instance
                    .receive_any(&[into, out], Patience::Forever)
                    .map(drop),
            ];
            for error in refused.map(Result::unwrap_err) {
                assert_eq!(error.kind, Kind::Usage, "{error}");
            }
            Ok(())
        })
    };
    assert_eq!(
        stage.play(vec![("a", role()), ("b", role())]),
        [Ok(()), Ok(())]
    );
}

/// A receive for which no message can come yet is refused. If it waited, it would end in a deadlock
/// or never.
#[test]
fn a_receive_out_of_order_does_not_wait() {
    let stage = Stage::open(
        &[
            ("a", "f_init: init; o_i: out; s: in"),
            ("b", "o_i: init; s: in; o_f: back"),
        ],
        &["b.init a.init", "a.out b.in", "b.back a.in"],
    );
    let checked: Role = Box::new(|instance| {
        let [init, into] = ["init", "in"].map(|name| instance.port(name).unwrap());
        let refused = |port: PortId, why: &str| {
            let calls = [
                instance.receive(port, None, Patience::Forever).map(drop),
                instance.receive_any(&[port], Patience::Forever).map(drop),
                instance.try_receive(port, None).map(drop),
            ];
            for error in calls.map(Result::unwrap_err) {
                assert!(
                    error.kind == Kind::CallOrder && error.text.contains(why),
                    "{error}"
                );
            }
        };
        refused(into, "before the first reuse()");
        assert!(instance.reuse()?);
        refused(into, "before F_INIT port 'init' was received");
        assert_eq!(
            instance.receive_any(&[init, into], Patience::Forever)?.0,
            init,
            "one of them may come"
        );
        send(instance, "out", 0.0)?;
        refused(init, "F_INIT comes first: call reuse()");
        send(instance, "out", 1.0)?;
        receive(instance, "in")?;
        assert!(!instance.reuse()?);
        for port in [init, into] {
            let closed = instance.receive(port, None, Patience::Forever).unwrap_err();
            assert_eq!(closed.kind, Kind::PortClosed, "whatever the order");
            assert_eq!(
                instance.try_receive(port, None).unwrap_err().kind,
                Kind::PortClosed
            );
        }
        Ok(())
    });
    let other: Role = Box::new(|instance| {
        assert!(instance.reuse()?);
        send(instance, "init", 0.0)?;
        // This instance stays until the second message has come, so its port stays open.
        receive(instance, "in")?;
        receive(instance, "in")?;
        send(instance, "back", 1.0)
    });
    assert_eq!(
        stage.play(vec![("a", checked), ("b", other)]),
        [Ok(()), Ok(())]
    );
}

#[test]
fn a_message_that_is_there_stays_when_a_call_is_out_of_order() {
    let stage = Stage::open(
        &[("a", "f_init: init; s: in"), ("b", "o_i: aside init")],
        &["b.init a.init", "b.aside a.in"],
    );
    let (told, tells) = channel();
    let checked: Role = Box::new(move |instance| {
        let [init, into] = ["init", "in"].map(|name| instance.port(name).unwrap());
        tells.recv().expect("all was sent");
        assert!(instance.reuse()?);
        for _ in 0..2 {
            let calls = [
                instance.receive(into, None, Patience::Forever).map(drop),
                instance.try_receive(into, None).map(drop),
                instance.receive_any(&[into], Patience::Forever).map(drop),
            ];
            assert!(
                calls
                    .into_iter()
                    .all(|call| call.unwrap_err().kind == Kind::CallOrder)
            );
        }
        assert_eq!(receive(instance, "init")?.timestamp, 2.0);
        let (from, _, message) = instance.receive_any(&[into], Patience::Forever)?;
        assert_eq!((from, message.timestamp), (into, 1.0));
        assert_eq!(receive(instance, "in")?.timestamp, 3.0);
        // The next message on `init` belongs to the next use.
        assert_eq!(
            instance.try_receive(init, None).unwrap_err().kind,
            Kind::CallOrder
        );
        assert_eq!(
            instance
                .receive_any(&[init, into], Patience::Forever)
                .unwrap_err()
                .kind,
            Kind::CallOrder
        );
        assert!(instance.reuse()?);
        assert_eq!(receive(instance, "init")?.timestamp, 4.0);
        assert!(!instance.reuse()?);
        Ok(())
    });
    let other: Role = Box::new(move |instance| {
        assert!(instance.reuse()?);
        for (port, time) in [("aside", 1.0), ("init", 2.0), ("aside", 3.0), ("init", 4.0)] {
            send(instance, port, time)?;
        }
        told.send(()).expect("somebody waits for it");
        Ok(())
    });
    assert_eq!(
        stage.play(vec![("a", checked), ("b", other)]),
        [Ok(()), Ok(())]
    );
}

#[test]
fn a_thread_may_wait_for_what_another_one_brings_into_its_place() {
    let stage = Stage::open(
        &[
            ("a", "f_init: init; o_i: out; s: in"),
            ("b", "o_i: init; s: in; o_f: back"),
        ],
        &["b.init a.init", "a.out b.in", "b.back a.in"],
    );
    let threaded: Role = Box::new(|instance| {
        assert!(instance.reuse()?);
        let into = instance.port("in")?;
        std::thread::scope(|scope| {
            let waiting = wait_on(scope, instance, into);
            receive(instance, "init")?;
            send(instance, "out", 0.0)?;
            waiting.join().unwrap().map(drop)
        })
    });
    let other: Role = Box::new(|instance| {
        assert!(instance.reuse()?);
        send(instance, "init", 0.0)?;
        receive(instance, "in")?;
        send(instance, "back", 0.0)
    });
    assert_eq!(
        stage.play(vec![("a", threaded), ("b", other)]),
        [Ok(()), Ok(())]
    );
}

#[test]
fn a_refused_send_is_no_step() {
    let stage = Stage::open(
        &[("a", "o_i: out aside"), ("b", "s: out aside")],
        &["a.out pad b.out", "a.aside pad b.aside"],
    );
    let sender: Role = Box::new(|instance| {
        assert!(instance.reuse()?);
        let (layout, bytes) = doubles(&[0.0]);
        let long = Overlay::from([("k".into(), Setting::Str("k".repeat(1 << 24)))]);
        let out = instance.port("out")?;
        let too_long = instance.send(
            out,
            None,
            &Payload::array(&layout, &bytes),
            0.0,
            None,
            Some(&long),
        );
        assert_eq!(too_long.unwrap_err().kind, Kind::Usage);
        send(instance, "out", 0.0)?;
        // The send would begin the next step, and port `aside` has not sent in this step yet.
        assert_eq!(
            send(instance, "out", -1.0).unwrap_err().kind,
            Kind::CallOrder
        );
        send(instance, "aside", 0.0)?;
        send(instance, "out", 1.0)?;
        send(instance, "aside", 1.0)
    });
    let receiver: Role = Box::new(|instance| {
        assert!(instance.reuse()?);
        for time in [0.0, 1.0] {
            for port in ["out", "aside"] {
                let message = receive(instance, port)?;
                assert!(
                    *message.content() != Content::Nil,
                    "'{port}' has none in step {time}"
                );
                assert_eq!(first(&message), time);
            }
        }
        Ok(())
    });
    assert_eq!(
        stage.play(vec![("a", sender), ("b", receiver)]),
        [Ok(()), Ok(())]
    );
}

#[test]
fn an_end_of_steps_that_is_refused_is_told_later() {
    let stage = Stage::open(
        &[
            ("a", "o_i: busy aside; o_f: end"),
            ("b", "s: aside"),
            ("c", "s: busy"),
        ],
        &["a.busy c.busy", "a.aside repeat b.aside"],
    );
    let (told, tells) = channel();
    let (go, goes) = channel();
    let (tells, goes) = (std::sync::Mutex::new(tells), std::sync::Mutex::new(goes));
    let sender: Role = Box::new(move |instance| {
        assert!(instance.reuse()?);
        send(instance, "aside", 0.0)?;
        std::thread::scope(|scope| {
            let busy = scope.spawn(|| {
                (0..5).try_for_each(|time| {
                    loop {
                        match send(instance, "busy", time.into()) {
                            // Until this send waits, the other send may use the port and cause a
                            // refusal.
                            Err(error) if error.kind == Kind::Usage => std::thread::yield_now(),
                            outcome => return outcome,
                        }
                    }
                })
            });
            // The buffer has no room for the fifth message, so the send waits.
            let port = instance.port("busy")?;
            let mut stays = 0;
            while stays < 1000 {
                let other = instance
                    .send(port, Some(9), &Payload::nil(), 0.0, None, None)
                    .unwrap_err();
                stays = if other.text.contains("two calls at once") {
                    stays + 1
                } else {
                    0
                };
                std::thread::yield_now();
            }
            let error = send(instance, "end", 9.0).unwrap_err();
            assert!(
                error.text.contains("two calls at once on port 'busy'"),
                "{error}"
            );
            go.send(()).unwrap();
            busy.join().unwrap()
        })?;
        send(instance, "end", 9.0)?;
        // Waits until the receiver has its messages, because the end of this instance would bring
        // them too.
        tells.lock().unwrap().recv().unwrap();
        Ok(())
    });
    let repeats: Role = Box::new(move |instance| {
        assert!(instance.reuse()?);
        for _ in 0..3 {
            assert_eq!(first(&receive(instance, "aside")?), 0.0);
        }
        told.send(()).unwrap();
        Ok(())
    });
    let slow: Role = Box::new(move |instance| {
        assert!(instance.reuse()?);
        goes.lock().unwrap().recv().unwrap();
        (0..5).try_for_each(|_| receive(instance, "busy").map(drop))
    });
    assert_eq!(
        stage.play(vec![("a", sender), ("b", repeats), ("c", slow)]),
        [Ok(()), Ok(()), Ok(())]
    );
}

#[test]
fn a_send_that_was_interrupted_goes_on_when_it_is_made_again() {
    let stage = Stage::open(
        &[
            ("a", "o_i: out go; s: ready"),
            ("b", "s: in; o_i: ready"),
            ("c", "s: go in"),
        ],
        &["a.out b.in", "a.out c.in", "b.ready a.ready", "a.go c.go"],
    );
    static SIGNAL: AtomicBool = AtomicBool::new(false);
    let sender: Role = Box::new(|instance| {
        instance.on_interrupt(|| SIGNAL.swap(false, Ordering::Relaxed))?;
        assert!(instance.reuse()?);
        (0..4).try_for_each(|time| send(instance, "out", time.into()))?;
        receive(instance, "ready")?;
        // One receiver has room, and the other receiver has none.
        SIGNAL.store(true, Ordering::Relaxed);
        assert_eq!(
            send(instance, "out", 4.0).unwrap_err().kind,
            Kind::Interrupted
        );
        send(instance, "go", 4.0)?;
        send(instance, "out", 4.0)?;
        send(instance, "out", 5.0)
    });
    let counts = |instance: &Instance, times: std::ops::Range<i32>| {
        times.into_iter().try_for_each(|time| {
            assert_eq!(first(&receive(instance, "in")?), f64::from(time));
            Ok(())
        })
    };
    let quick: Role = Box::new(move |instance| {
        assert!(instance.reuse()?);
        counts(instance, 0..4)?;
        send(instance, "ready", 0.0)?;
        counts(instance, 4..6)
    });
    let slow: Role = Box::new(move |instance| {
        assert!(instance.reuse()?);
        receive(instance, "go")?;
        counts(instance, 0..6)
    });
    assert_eq!(
        stage.play(vec![("a", sender), ("b", quick), ("c", slow)]),
        [Ok(()), Ok(()), Ok(())]
    );
}

/// Any call that takes malformed data fails, also the call that begins a use.
#[test]
fn malformed_data_fail_the_call_that_takes_them() {
    let stage = Stage::open(
        &[("a", "f_init: init; s: in"), ("b", "o_i: init in")],
        &["b.init a.init", "b.in a.in"],
    );
    let receiver: Role = Box::new(|instance| {
        let refused = |error: Error, port: &str| {
            let text = format!(
                "a: port '{port}': the message of b.{port} at time 0.5 cannot be read: malformed structure: "
            );
            assert!(
                error.kind == Kind::TypeMismatch && error.text.starts_with(&text),
                "{error}"
            );
        };
        refused(instance.reuse().unwrap_err(), "init");
        assert!(instance.reuse()?, "the one behind it can be read");
        assert_eq!(
            receive(instance, "init")?.structure(),
            structure::Value::Int(7)
        );
        refused(receive(instance, "in").unwrap_err(), "in");
        assert_eq!(
            receive(instance, "in")?.structure(),
            structure::Value::Int(7)
        );
        assert!(!instance.reuse()?);
        Ok(())
    });
    let sender: Role = Box::new(|instance| {
        assert!(instance.reuse()?);
        // First a list that claims more entries than it has bytes, then a number.
        for tree in [&[0xdd, 0xff, 0xff, 0xff, 0xff][..], &[0x07]] {
            let parts = [&(tree.len() as u64).to_le_bytes()[..], tree].concat();
            let encoded = structure::Encoded {
                length: parts.len() as u64,
                parts: vec![structure::EncodedPart::Owned(parts)],
            };
            for port in ["init", "in"] {
                instance.send(
                    instance.port(port)?,
                    None,
                    &Payload::structure(&encoded),
                    0.5,
                    None,
                    None,
                )?;
            }
        }
        Ok(())
    });
    assert_eq!(
        stage.play(vec![("a", receiver), ("b", sender)]),
        [Ok(()), Ok(())]
    );
}

#[test]
fn a_use_ends_where_the_next_step_would_pass_its_end() {
    let stage = Stage::open(
        &[("a", "f_init: init"), ("b", "o_i: init")],
        &["b.init a.init"],
    );
    let called: Role = Box::new(|instance| {
        assert_eq!(
            instance.will_stop(0.0).unwrap_err().kind,
            Kind::CallOrder,
            "before reuse()"
        );
        let mut ends = Vec::new();
        while instance.reuse()? {
            assert!(
                instance
                    .will_stop(0.0)
                    .unwrap_err()
                    .text
                    .contains("receive F_INIT port 'init' first")
            );
            let mut time = receive(instance, "init")?.timestamp;
            while !instance.will_stop(time)? {
                time += 0.5;
            }
            ends.push(time);
        }
        assert_eq!(
            ends,
            [2.0, 12.0, 23.0],
            "the last one has 3 s by its overlay"
        );
        assert_eq!(instance.will_stop(f64::NAN).unwrap_err().kind, Kind::Usage);
        Ok(())
    });
    let other: Role = Box::new(|instance| {
        assert!(instance.reuse()?);
        assert_eq!(
            instance.will_stop(0.0).unwrap_err().kind,
            Kind::Setting,
            "no end is known"
        );
        let port = instance.port("init")?;
        for (time, total) in [(0.0, "2 s"), (10.0, "2000 ms"), (20.0, "3 s")] {
            let overlay = Overlay::from([
                ("t_max".into(), Setting::Str(total.into())),
                ("dt".into(), Setting::Float(0.5)),
            ]);
            instance.send(port, None, &Payload::nil(), time, None, Some(&overlay))?;
        }
        Ok(())
    });
    assert_eq!(
        stage.play(vec![("a", called), ("b", other)]),
        [Ok(()), Ok(())]
    );
}

#[test]
fn a_manager_that_does_not_answer_in_time_is_not_called_a_stale_one() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("connection.json");
    let open = |port: u16| {
        let addresses = vec![titin_wire::Address::Tcp("127.0.0.1".into(), port)];
        let secret = titin_wire::Secret::random();
        let connection = titin_wire::connection::Connection {
            addresses,
            secret,
            spans_hosts: false,
            folders: Default::default(),
            patience: 0.05,
            site: None,
            network: None,
        };
        std::fs::write(&file, connection.to_json()).unwrap();
        let options = Options::default()
            .instance("a")
            .manager(file.to_str().unwrap());
        Instance::open(options).map(drop).unwrap_err().to_string()
    };
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let late = open(port);
    assert!(
        late.contains("takes connections, but has not answered; tried for 50ms"),
        "{late}"
    );
    assert!(
        late.contains("overloaded") && late.contains("register_timeout") && !late.contains("stale"),
        "{late}"
    );
    drop(listener);
    let gone = open(port);
    assert!(
        gone.contains("refused") && gone.contains("the run may be over, or TITIN_MANAGER is stale"),
        "{gone}"
    );
}
