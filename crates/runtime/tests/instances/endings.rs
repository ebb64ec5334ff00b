//! The ends of runs: in good order, in a deadlock, or with a failure.

use std::sync::mpsc::channel;

use titin_runtime::*;

use crate::stage::{Role, Stage, wait_on};

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
        error
            .text
            .contains("because of a: reported an error: the mesh is tangled"),
        "{error}"
    );
}

#[test]
fn a_circle_of_receives_is_a_deadlock() {
    let stage = Stage::open(
        &[("a", "o_i: out; s: in"), ("b", "o_i: out; s: in")],
        &["a.out b.in", "b.out a.in"],
    );
    let role = || -> Role {
        Box::new(|instance| {
            assert!(instance.reuse()?);
            instance
                .receive(instance.port("in")?, None, Patience::Forever)
                .map(drop)
        })
    };
    for result in stage.play(vec![("a", role()), ("b", role())]) {
        let error = result.unwrap_err();
        assert_eq!(error.kind, Kind::Deadlock, "{error}");
        assert!(
            error
                .text
                .contains("a waits to receive message 1 on in, for b.out"),
            "{error}"
        );
    }
}

#[test]
fn a_full_buffer_in_a_circle_is_raised() {
    let stage = Stage::open(
        &[("a", "o_i: out; s: in"), ("b", "o_i: out; s: in")],
        &["a.out b.in", "b.out a.in"],
    );
    let role = || -> Role {
        Box::new(|instance| {
            assert!(instance.reuse()?);
            for step in 0..20 {
                instance.send(
                    instance.port("out")?,
                    None,
                    &Payload::nil(),
                    step.into(),
                    None,
                    None,
                )?;
            }
            for _ in 0..20 {
                instance.receive(instance.port("in")?, None, Patience::Forever)?;
            }
            Ok(())
        })
    };
    assert_eq!(
        stage.play(vec![("a", role()), ("b", role())]),
        [Ok(()), Ok(())]
    );
}

#[test]
fn a_send_and_a_close_at_once_are_told_as_that() {
    let stage = Stage::open(
        &[("a", "o_i: out"), ("b", "s: in"), ("c", "")],
        &["a.out b.in"],
    );
    let (a, b) = (stage.join("a"), stage.join("b"));
    // A third instance, so that the run goes on when the other two end.
    let c = stage.join("c");
    assert!(a.reuse().unwrap() && b.reuse().unwrap());
    let (sender, sent) = channel();
    std::thread::scope(|scope| {
        let sends = scope.spawn(|| {
            let out = a.port("out").unwrap();
            let send = |step: u32| a.send(out, None, &Payload::nil(), step.into(), None, None);
            (0..)
                .map(send)
                .find_map(|outcome| sender.send(()).map_or(None, |()| outcome.err()))
        });
        // After four messages the buffer is full. The next send waits, or is about to begin.
        sent.iter().take(4).for_each(drop);
        let closes = scope.spawn(|| a.close());
        let input = b.port("in").unwrap();
        let closed = std::iter::repeat_with(|| b.receive(input, None, Patience::Forever))
            .find_map(Result::err)
            .unwrap();
        let (closes, sends) = (closes.join().unwrap(), sends.join().unwrap().unwrap());
        match closes {
            Err(error) => {
                assert!(
                    error.text.contains("while another thread is in a call"),
                    "{error}"
                );
                assert_eq!(closed.kind, Kind::PeerLost, "{closed}");
                assert!(
                    sends.text.contains("while another thread is in a call"),
                    "{sends}"
                );
            }
            Ok(()) => {
                assert_eq!(
                    (closed.kind, sends.kind),
                    (Kind::PortClosed, Kind::Closed),
                    "{closed}; {sends}"
                );
                b.close().unwrap();
                c.close().unwrap();
            }
        }
    });
}

#[test]
fn closed_ports_are_named_with_the_number_of_their_slots() {
    let slots: Vec<String> = (0..40)
        .map(|slot| format!("a.out[{slot}] b.in[{slot}]"))
        .collect();
    let conduits: Vec<&str> = slots
        .iter()
        .map(String::as_str)
        .chain(["a.x b.x"])
        .collect();
    let stage = Stage::open(&[("a", "o_i: out[] x"), ("b", "s: in[] x")], &conduits);
    let sender: Role = Box::new(|instance| instance.reuse().map(drop));
    let receiver: Role = Box::new(|instance| {
        assert!(instance.reuse()?);
        let ports = [instance.port("in")?, instance.port("x")?];
        let closed = instance.receive_any(&ports, Patience::Forever).unwrap_err();
        assert_eq!(closed.kind, Kind::PortClosed);
        assert!(
            closed
                .text
                .ends_with("all of the ports in (40 slots), x are closed"),
            "{closed}"
        );
        Ok(())
    });
    assert_eq!(
        stage.play(vec![("a", sender), ("b", receiver)]),
        [Ok(()), Ok(())]
    );
}

#[test]
fn messages_never_taken_are_an_error_at_the_end() {
    let stage = Stage::open(&[("a", "o_i: out"), ("b", "s: in")], &["a.out b.in"]);
    let send = |instance: &Instance, count: i32| {
        assert!(instance.reuse()?);
        (0..count).try_for_each(|step| {
            instance.send(
                instance.port("out")?,
                None,
                &Payload::nil(),
                step.into(),
                None,
                None,
            )
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
    assert!(
        error.text.contains("F_INIT port 'in' was not taken"),
        "{error}"
    );
}

/// Messages that nothing receives are an error, also if they come after the receiver has closed. So
/// the outcome does not depend on the speed of the instances.
#[test]
fn messages_that_come_after_the_last_receive_are_an_error_too() {
    let stage = Stage::open(
        &[("a", "o_i: out; s: in"), ("b", "o_i: out; s: in")],
        &["a.out b.in", "b.out a.in"],
    );
    let results = stage.play(vec![
        (
            "a",
            Box::new(|instance| {
                assert!(instance.reuse()?);
                // An instance that closes tells its receivers first, so b is in close() by now, or
                // soon.
                let closed = instance
                    .receive(instance.port("in")?, None, Patience::Forever)
                    .unwrap_err();
                assert_eq!(closed.kind, Kind::PortClosed);
                instance.send(
                    instance.port("out")?,
                    None,
                    &Payload::nil(),
                    0.0,
                    None,
                    None,
                )
            }),
        ),
        ("b", Box::new(|instance| instance.reuse().map(drop))),
    ]);
    let error = results[1].clone().unwrap_err();
    assert_eq!(error.kind, Kind::CallOrder);
    assert!(
        error
            .text
            .contains("1 message from a.out on S port 'in' was never taken"),
        "{error}"
    );
}

#[test]
fn a_circle_behind_last_is_a_deadlock_too() {
    let stage = Stage::open(
        &[("a", "o_i: out; s: in"), ("b", "o_i: out; s: in")],
        &["a.out last b.in", "b.out a.in"],
    );
    let a: Role = Box::new(|instance| {
        assert!(instance.reuse()?);
        // The message announces another message, so it is not the last, and b goes on waiting.
        instance.send(
            instance.port("out")?,
            None,
            &Payload::nil(),
            0.0,
            Some(1.0),
            None,
        )?;
        instance
            .receive(instance.port("in")?, None, Patience::Forever)
            .map(drop)
    });
    let b: Role = Box::new(|instance| {
        assert!(instance.reuse()?);
        instance
            .receive(instance.port("in")?, None, Patience::Forever)
            .map(drop)
    });
    for result in stage.play(vec![("a", a), ("b", b)]) {
        assert_eq!(result.unwrap_err().kind, Kind::Deadlock);
    }
}

#[test]
fn a_failure_wakes_the_other_threads_of_its_own_instance() {
    let stage = Stage::open(&[("a", "o_f: out"), ("b", "s: in")], &["a.out b.in"]);
    let (_a, b) = (stage.join("a"), stage.join("b"));
    assert!(b.reuse().unwrap());
    let into = b.port("in").unwrap();
    std::thread::scope(|scope| {
        let waiting = wait_on(scope, &b, into);
        b.fail("the ice is too thin");
        let error = waiting.join().unwrap().unwrap_err();
        assert!(error.text.contains("the ice is too thin"), "{error}");
    });
    assert!(b.close().unwrap_err().text.contains("the ice is too thin"));
}

#[test]
fn one_thread_at_a_time_begins_a_use() {
    let stage = Stage::open(&[("a", "o_f: out"), ("b", "f_init: in")], &["a.out b.in"]);
    let (a, b) = (stage.join("a"), stage.join("b"));
    std::thread::scope(|scope| {
        let (sender, receiver) = channel();
        for sender in [sender.clone(), sender] {
            let b = &b;
            scope.spawn(move || sender.send(b.reuse()).unwrap());
        }
        // No message was sent yet, so the call that is refused is the only call that can return.
        let refused = receiver.recv().unwrap().unwrap_err();
        assert_eq!(refused.kind, Kind::Usage);
        assert!(
            refused.text.contains("two calls of reuse() at once"),
            "{refused}"
        );
        assert!(a.reuse().unwrap());
        a.send(
            a.port("out").unwrap(),
            None,
            &Payload::nil(),
            0.0,
            None,
            None,
        )
        .unwrap();
        assert_eq!(receiver.recv().unwrap(), Ok(true));
    });
    b.receive(b.port("in").unwrap(), None, Patience::Forever)
        .unwrap();
}

/// The instance that closes a port too early is the cause, whether it fails before its peers do or after them. The peers fail
/// because the port is closed.
#[test]
fn who_ends_a_use_too_early_is_named_and_not_who_finds_the_port_closed() {
    for caught in [false, true] {
        for _ in 0..10 {
            let stage = Stage::open(
                &[
                    ("macro", "o_i: out more; s: back"),
                    ("micro", "f_init: in; o_f: out"),
                    ("watch", "s: in"),
                ],
                &[
                    "macro.out micro.in",
                    "micro.out macro.back",
                    "macro.more watch.in",
                ],
            );
            let steps = move |instance: &Instance| {
                assert!(instance.reuse()?);
                // The send waits until all instances have joined.
                instance.send(
                    instance.port("more")?,
                    None,
                    &Payload::nil(),
                    0.0,
                    None,
                    None,
                )?;
                for step in 0..2 {
                    instance.send(
                        instance.port("out")?,
                        None,
                        &Payload::nil(),
                        step.into(),
                        None,
                        None,
                    )?;
                    instance.receive(instance.port("back")?, None, Patience::Forever)?;
                }
                Ok(())
            };
            let calls: Role = Box::new(move |instance| {
                let outcome = steps(instance);
                if let Err(error) = outcome.as_ref()
                    && caught
                {
                    // This text is the report of an exception that ends a program.
                    instance.fail(&format!("titin.PortClosed: {error}\n  in program.py"));
                }
                outcome
            });
            let once: Role = Box::new(|instance| {
                assert!(instance.reuse()?);
                instance.receive(instance.port("in")?, None, Patience::Forever)?;
                instance.send(
                    instance.port("out")?,
                    None,
                    &Payload::nil(),
                    0.0,
                    None,
                    None,
                )
            });
            let watches: Role = Box::new(|instance| {
                assert!(instance.reuse()?);
                instance.receive(instance.port("in")?, None, Patience::Forever)?;
                instance
                    .receive(instance.port("in")?, None, Patience::Forever)
                    .map(drop)
            });
            let results = stage.play(vec![("macro", calls), ("micro", once), ("watch", watches)]);
            let [closed, cause, echo] =
                <[_; 3]>::try_from(results).unwrap().map(Result::unwrap_err);
            assert_eq!(
                [closed.kind, cause.kind, echo.kind],
                [Kind::PortClosed, Kind::CallOrder, Kind::PeerLost]
            );
            assert!(
                echo.text
                    .contains("because of micro: reported an error: 1 message from macro.out"),
                "{echo}"
            );
        }
    }
}
