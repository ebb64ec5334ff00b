//! Light instances, which do not wait: many instances run on one thread, and the outcomes are those
//! of waiting instances.

use std::collections::HashMap;
use std::time::Duration;

use titin_runtime::*;

use crate::stage::{Stage, doubles, first};

/// The code of a light instance from one pending call to the next.
type Step = Box<dyn FnMut(&Instance) -> Result<()>>;

/// The number of calls of a step that are done and must not be made again.
#[derive(Default)]
struct Once(usize);

impl Once {
    /// Counts the call at this place of the step as done, unless the call is pending or has failed.
    fn done(&mut self, place: usize, outcome: Result<()>) -> Result<()> {
        outcome.inspect(|()| self.0 = place + 1)
    }
}

/// Runs all instances on this thread. An instance is called when it can go on.
fn play(stage: &Stage, steps: Vec<(String, Step)>) -> Vec<Result<()>> {
    let ready = ReadyList::new();
    let mut openings: HashMap<u64, Opening> = HashMap::new();
    let (mut steps, names): (Vec<Option<Step>>, Vec<String>) = steps
        .into_iter()
        .map(|(name, step)| (Some(step), name))
        .unzip();
    let mut instances: HashMap<u64, Instance> = HashMap::new();
    let mut lists = Vec::new();
    let mut outcomes: Vec<Option<Result<()>>> = steps.iter().map(|_| None).collect();
    for (number, name) in (0..).zip(&names) {
        let options = Options::default().instance(name).manager(&stage.manager);
        let entry = ready.entry(number);
        openings.insert(
            number,
            Opening::begin(options.ready(entry.clone())).unwrap(),
        );
        lists.push(entry);
        ready.push(number);
    }
    while outcomes.iter().any(Option::is_none) {
        let number = ready.next(None).unwrap();
        let place = number as usize;
        if let Some(opening) = openings.get_mut(&number) {
            let Some(instance) = opening.poll().unwrap() else {
                continue;
            };
            openings.remove(&number);
            instances.insert(number, instance);
        }
        let Some(instance) = instances.get(&number) else {
            continue;
        };
        let outcome = match &mut steps[place] {
            Some(step) => step(instance),
            None => Ok(()),
        };
        let outcome = match outcome {
            Err(error) if error.is_pending() => continue,
            Err(error) => {
                instance.note(&error);
                Err(error)
            }
            Ok(()) => Ok(()),
        };
        steps[place] = None;
        match instance.close() {
            Err(error) if error.is_pending() => {}
            closed => {
                outcomes[place] = Some(outcome.and(closed));
                instances.remove(&number);
                lists[place].leave();
            }
        }
    }
    outcomes.into_iter().flatten().collect()
}

/// Sends more numbers than the buffer holds.
fn counts(to: f64) -> Step {
    let (mut begun, mut next) = (false, 0.0);
    Box::new(move |instance| {
        if !begun {
            begun = instance.reuse()?;
        }
        let out = instance.port("out")?;
        while next < to {
            let (layout, bytes) = doubles(&[next]);
            instance.send(
                out,
                None,
                &Payload::array(&layout, &bytes),
                next,
                None,
                None,
            )?;
            next += 1.0;
        }
        Ok(())
    })
}

/// Receives numbers, and checks their order.
fn sums(expected: f64) -> Step {
    let (mut begun, mut next, mut scale) = (false, 0.0, None);
    Box::new(move |instance| {
        let into = instance.port("in")?;
        loop {
            if !begun {
                begun = instance.reuse()?;
                if !begun {
                    assert_eq!(next, expected);
                    return Ok(());
                }
            }
            let message = instance.receive(into, None, Patience::Forever)?;
            let by = *scale.get_or_insert(instance.setting("k")?.as_f64()?);
            assert_eq!(first(&message) * by, next * by);
            next += 1.0;
            begun = false;
        }
    })
}

#[test]
fn what_does_not_fit_is_sent_later_to_each_once() {
    let stage = Stage::open(
        &[("a", "o_i: out"), ("b", "f_init: in"), ("c", "f_init: in")],
        &["a.out b.in", "a.out zstd c.in"],
    );
    let steps = [("a", counts(50.0)), ("b", sums(50.0)), ("c", sums(50.0))];
    let outcomes = play(
        &stage,
        steps
            .into_iter()
            .map(|(name, step)| (name.to_owned(), step))
            .collect(),
    );
    assert_eq!(outcomes, [Ok(()), Ok(()), Ok(())]);
}

/// A pending call keeps its progress, also if other calls on the same port are pending.
#[test]
fn sends_on_two_slots_may_be_pending_at_once() {
    let stage = Stage::open(
        &[
            ("a", "o_i: out[] go; s: ready"),
            ("b", "s: in; o_i: ready"),
            ("c", "s: go in"),
            ("d", "s: go in"),
        ],
        &[
            "a.out[0] b.in",
            "a.out[0] c.in",
            "a.out[1] d.in",
            "b.ready a.ready",
            "a.go c.go",
            "a.go d.go",
        ],
    );
    let number = |instance: &Instance, slot: u32, value: f64| {
        let (layout, bytes) = doubles(&[value]);
        let payload = Payload::array(&layout, &bytes);
        instance.send(
            instance.port("out")?,
            Some(slot),
            &payload,
            value,
            None,
            None,
        )
    };
    let sends: Step = {
        let (mut at, mut sent) = (Once::default(), [false; 2]);
        Box::new(move |instance| {
            if at.0 == 0 {
                at.done(0, instance.reuse().map(drop))?;
            }
            while at.0 < 9 {
                let turn = at.0 as u32 - 1;
                at.done(at.0, number(instance, turn % 2, f64::from(turn / 2)))?;
            }
            if at.0 == 9 {
                at.done(
                    9,
                    instance
                        .receive(instance.port("ready")?, None, Patience::Forever)
                        .map(drop),
                )?;
            }
            // `b` has room, `c` and `d` have none.
            let mut pending = Ok(());
            for slot in 0..2 {
                if !sent[slot as usize] {
                    match number(instance, slot, 4.0) {
                        Err(error) if error.is_pending() => pending = Err(error),
                        outcome => sent[slot as usize] = outcome.is_ok_and(|()| true),
                    }
                }
            }
            if at.0 == 10 {
                assert_eq!(sent, [false; 2], "both are pending");
                at.done(
                    10,
                    instance.send(instance.port("go")?, None, &Payload::nil(), 4.0, None, None),
                )?;
            }
            pending
        })
    };
    let takes = |before: Option<&'static str>, ready: bool| -> Step {
        let (mut at, mut next) = (Once::default(), 0.0);
        Box::new(move |instance| {
            if at.0 == 0 {
                at.done(0, instance.reuse().map(drop))?;
            }
            if at.0 == 1 {
                let wait = |port| {
                    instance
                        .receive(instance.port(port)?, None, Patience::Forever)
                        .map(drop)
                };
                at.done(1, before.map_or(Ok(()), wait))?;
            }
            while next < 5.0 {
                if ready && next == 4.0 && at.0 == 2 {
                    let ready = instance.port("ready")?;
                    at.done(
                        2,
                        instance.send(ready, None, &Payload::nil(), 0.0, None, None),
                    )?;
                }
                let message = instance.receive(instance.port("in")?, None, Patience::Forever)?;
                assert_eq!(first(&message), next);
                next += 1.0;
            }
            let over = instance
                .receive(instance.port("in")?, None, Patience::Forever)
                .unwrap_err();
            if over.is_pending() {
                return Err(over);
            }
            assert_eq!(over.kind, Kind::PortClosed, "{over}");
            Ok(())
        })
    };
    let steps = [
        ("a", sends),
        ("b", takes(None, true)),
        ("c", takes(Some("go"), false)),
        ("d", takes(Some("go"), false)),
    ];
    let outcomes = play(
        &stage,
        steps
            .into_iter()
            .map(|(name, step)| (name.to_owned(), step))
            .collect(),
    );
    assert_eq!(outcomes, [Ok(()), Ok(()), Ok(()), Ok(())]);
}

#[test]
fn a_ring_of_hundreds_on_one_thread() {
    const COUNT: usize = 300;
    let names: Vec<String> = (0..COUNT).map(|number| format!("n{number}")).collect();
    let instances: Vec<(&str, &str)> = names
        .iter()
        .map(|name| (name.as_str(), "o_i: out; s: in"))
        .collect();
    let conduits: Vec<String> = (0..COUNT)
        .map(|number| format!("n{number}.out n{}.in", (number + 1) % COUNT))
        .collect();
    let stage = Stage::open(
        &instances,
        &conduits.iter().map(String::as_str).collect::<Vec<_>>(),
    );
    let step = |number: usize| -> Step {
        let mut at = Once::default();
        Box::new(move |instance| {
            let (out, into) = (instance.port("out")?, instance.port("in")?);
            if at.0 == 0 {
                at.done(0, instance.reuse().map(|again| assert!(again)))?;
            }
            let mut turns = if number == 0 { [1, 2] } else { [2, 1] };
            for (place, what) in (1..).zip(&mut turns) {
                if at.0 == place && *what == 1 {
                    at.done(
                        place,
                        instance.send(out, None, &Payload::nil(), 0.0, None, None),
                    )?;
                } else if at.0 == place {
                    at.done(
                        place,
                        instance.receive(into, None, Patience::Forever).map(drop),
                    )?;
                }
            }
            Ok(())
        })
    };
    let outcomes = play(
        &stage,
        names.iter().cloned().zip((0..COUNT).map(step)).collect(),
    );
    assert!(
        outcomes.iter().all(|outcome| *outcome == Ok(())),
        "{outcomes:?}"
    );
}

#[test]
fn a_circle_of_pending_calls_is_a_deadlock() {
    let stage = Stage::open(
        &[("a", "o_i: out; s: in"), ("b", "o_i: out; s: in")],
        &["a.out b.in", "b.out a.in"],
    );
    let step = || -> Step {
        let mut begun = false;
        Box::new(move |instance| {
            if !begun {
                begun = instance.reuse()?;
            }
            instance
                .receive(instance.port("in")?, None, Patience::Forever)
                .map(drop)
        })
    };
    for outcome in play(&stage, vec![("a".into(), step()), ("b".into(), step())]) {
        assert_eq!(outcome.unwrap_err().kind, Kind::Deadlock);
    }
}

#[test]
fn a_timeout_counts_from_the_first_call() {
    let stage = Stage::open(
        &[("a", "o_i: out; s: in"), ("b", "o_i: out; s: in")],
        &["a.out b.in", "b.out a.in"],
    );
    let late: Step = {
        let (mut at, mut calls) = (Once::default(), 0);
        Box::new(move |instance| {
            let (out, into) = (instance.port("out")?, instance.port("in")?);
            if at.0 == 0 {
                at.done(0, instance.reuse().map(drop))?;
            }
            if at.0 == 1 {
                calls += 1;
                let patience = Patience::For(Duration::from_millis(20));
                let error = instance.receive(into, None, patience).unwrap_err();
                if error.is_pending() {
                    return Err(error);
                }
                assert!(
                    error.kind == Kind::Timeout && error.text.contains("'in'"),
                    "{error}"
                );
                assert!(calls > 1, "it did not wait");
                at.0 = 2;
            }
            if at.0 == 2 {
                at.done(
                    2,
                    instance.send(out, None, &Payload::nil(), 0.0, None, None),
                )?;
            }
            instance.receive(into, None, Patience::Forever).map(drop)
        })
    };
    let answers: Step = {
        let mut at = Once::default();
        Box::new(move |instance| {
            if at.0 == 0 {
                at.done(0, instance.reuse().map(drop))?;
            }
            if at.0 == 1 {
                at.done(
                    1,
                    instance
                        .receive(instance.port("in")?, None, Patience::Forever)
                        .map(drop),
                )?;
            }
            instance.send(
                instance.port("out")?,
                None,
                &Payload::nil(),
                0.0,
                None,
                None,
            )
        })
    };
    let outcomes = play(&stage, vec![("a".into(), late), ("b".into(), answers)]);
    assert_eq!(outcomes, [Ok(()), Ok(())]);
}

#[test]
fn the_failure_of_one_comes_to_those_that_are_pending() {
    let stage = Stage::open(&[("a", "o_i: out"), ("b", "f_init: in")], &["a.out b.in"]);
    let fails: Step = Box::new(|_| Err(Error::new(Kind::Usage, "a does not want to")));
    let outcomes = play(&stage, vec![("b".into(), sums(1.0)), ("a".into(), fails)]);
    let error = outcomes[0].clone().unwrap_err();
    assert!(
        error.kind == Kind::PeerLost && error.text.contains("a does not want to"),
        "{error}"
    );
}
