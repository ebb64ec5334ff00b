//! Waits: deadlocks, waits that are no deadlock, and waits that only need a larger buffer.

use titin_wire::control::{FieldEnd, WaitOn};

use super::*;
use crate::plan::ConduitId;

impl Rig {
    /// Reports that an instance waits on conduit ends, each with the number of messages that the
    /// instance has sent or received there.
    pub(super) fn wait(&mut self, name: &str, number: u64, on: &[(u32, u64)]) {
        let on = on.iter().map(|end| self.end(name, end)).collect();
        self.say(
            self.link(name),
            ToManager::Waiting {
                instance: name.into(),
                wait: number,
                on,
            },
        );
    }

    /// The wait of an instance at a conduit end.
    pub(super) fn end(&self, name: &str, &(conduit, count): &(u32, u64)) -> WaitOn {
        let planned = &self.manager.plan.conduits[conduit as usize];
        let sends = planned.from.instance == self.id(name);
        let (here, there) = if sends {
            (&planned.from, &planned.to)
        } else {
            (&planned.to, &planned.from)
        };
        WaitOn {
            conduit: ConduitId(conduit),
            port: here.port.to_string(),
            peer: self.manager.name(there.instance).to_owned(),
            peer_port: there.port.to_string(),
            sends,
            count,
            ahead: if sends { 4 } else { 0 },
            ahead_bytes: if sends { 400 } else { 0 },
            field: false,
            closes: false,
            joins: false,
        }
    }

    /// Lets the search begin, and returns the probes: instance, number and conduits.
    pub(super) fn probes(&mut self) -> Vec<(String, u64, Vec<ConduitId>)> {
        self.asked_within(ms(20))
    }

    /// Lets time pass, and returns the probes in this time: instance, number and conduits.
    pub(super) fn asked_within(&mut self, time: Duration) -> Vec<(String, u64, Vec<ConduitId>)> {
        self.reported.clear();
        self.pass(time);
        let told = self.reported.values().flatten();
        told.filter_map(|message| match message {
            ToProgram::Probe {
                instance,
                probe,
                conduits,
            } => Some((instance.clone(), *probe, conduits.clone())),
            _ => None,
        })
        .collect()
    }

    /// Answers probes: every instance is still in its wait, and `count` gives the counts of the
    /// conduits.
    pub(super) fn answer(
        &mut self,
        probes: &[(String, u64, Vec<ConduitId>)],
        count: impl Fn(&str, u32) -> u64,
    ) {
        for (name, probe, conduits) in probes {
            let wait = self.manager.deadlock_search.number(self.id(name));
            let counts = conduits
                .iter()
                .map(|conduit| (*conduit, count(name, conduit.0)))
                .collect();
            let answer = ToManager::Counts {
                instance: name.clone(),
                probe: *probe,
                wait,
                counts,
                polls: None,
            };
            self.say(self.link(name), answer);
        }
    }

    /// Ends every running instance by an error of its own about the deadlock.
    fn wind_up(&mut self) {
        let names: Vec<String> = self
            .manager
            .plan
            .instances
            .iter()
            .map(|i| i.name.clone())
            .collect();
        for name in &names {
            if matches!(
                self.manager.members[self.id(name)].process,
                InstanceProcess::Running(_)
            ) {
                self.fail(name, "deadlock", true);
                self.lose(name);
                self.exit(name, Exit::Code(1));
            }
        }
        self.assert_over(false);
    }
}

pub(super) fn joined(conduits: &[&str]) -> Rig {
    let mut rig = Rig::new(plan(conduits, &[]));
    let names: Vec<String> = rig
        .manager
        .plan
        .instances
        .iter()
        .map(|i| i.name.clone())
        .collect();
    names.iter().for_each(|name| rig.join(name));
    rig.reported.clear();
    rig
}

#[test]
fn two_that_wait_to_receive_from_each_other_are_a_deadlock() {
    let mut rig = joined(&PAIR);
    rig.wait("macro", 1, &[(1, 0)]);
    assert_eq!(rig.phase("macro"), Phase::Waiting);
    assert!(rig.probes().is_empty(), "micro computes");
    rig.wait("micro", 5, &[(0, 3)]);
    let probes = rig.probes();
    assert_eq!(probes.len(), 2);
    rig.answer(&probes, |_, conduit| if conduit == 0 { 3 } else { 0 });
    let failure = rig.failure().unwrap();
    assert_eq!(
        failure,
        "deadlock: 2 instances wait for each other in a cycle\n  \
         macro waits to receive message 1 on back, for micro.final\n  \
         micro waits to receive message 4 on in, for macro.out"
    );
    let told = &rig.reported[&rig.link("micro")];
    assert!(
        told.iter()
            .any(|message| matches!(message, ToProgram::RunFailed { deadlock: true, .. }))
    );
    rig.wind_up();
}

#[test]
fn ranks_may_say_first_which_of_them_has_left_out_a_call() {
    for says in [true, false] {
        let mut rig = Rig::new(plan(&PAIR, &[]));
        rig.join("macro");
        rig.join_with_two_ranks("micro");
        rig.wait("macro", 1, &[(1, 0)]);
        rig.wait("micro", 1, &[(0, 0)]);
        let probes = rig.probes();
        rig.answer(&probes, |_, _| 0);
        assert_eq!(rig.failure(), None);
        if says {
            rig.fail("micro", "rank 1 has sent less", false);
        } else {
            let probes = rig.asked_within(Duration::from_secs(1));
            rig.answer(&probes, |_, _| 0);
        }
        let expected = if says {
            "micro reported an error: rank 1 has sent less"
        } else {
            "deadlock: 2 instances"
        };
        rig.assert_failure_begins(expected);
        rig.wind_up();
    }
}

#[test]
fn a_message_in_flight_is_no_deadlock() {
    let mut rig = joined(&PAIR);
    rig.wait("macro", 1, &[(1, 0)]);
    rig.wait("micro", 1, &[(0, 0)]);
    let probes = rig.probes();
    rig.answer(&probes, |name, conduit| {
        u64::from(name == "macro" && conduit == 0)
    });
    assert_eq!(rig.failure(), None);
    // Before the next probe, micro has got its message.
    rig.reported.clear();
    rig.proceed("micro", 1);
    rig.pass(Duration::from_secs(3));
    assert!(
        !rig.reported
            .values()
            .flatten()
            .any(|message| matches!(message, ToProgram::Probe { .. }))
    );
    rig.leave("micro");
    rig.leave("macro");
    rig.assert_over(true);
}

#[test]
fn a_wait_that_has_ended_meanwhile_is_no_deadlock() {
    let mut rig = joined(&PAIR);
    rig.wait("macro", 1, &[(1, 0)]);
    rig.wait("micro", 1, &[(0, 0)]);
    let probes = rig.probes();
    // The answer of macro to the probe comes before the report of macro's next wait.
    let answer = |wait| ToManager::Counts {
        instance: "macro".into(),
        probe: probes[0].1,
        wait,
        counts: vec![],
        polls: None,
    };
    rig.say(rig.link("macro"), answer(None));
    rig.answer(&probes[1..], |_, _| 0);
    assert_eq!(rig.failure(), None);
    rig.proceed("macro", 1);
    rig.wait("macro", 2, &[(1, 1)]);
    rig.proceed("micro", 1);
    assert!(rig.probes().is_empty());
    rig.leave("micro");
    rig.leave("macro");
    rig.assert_over(true);
}

#[test]
fn a_deadlock_is_found_beside_a_pair_that_goes_on() {
    let conduits = [
        "a.out o_i -> b.in s",
        "b.out o_i -> a.in s",
        "c.out o_i -> d.in s",
        "d.out o_i -> c.in s",
    ];
    let mut rig = joined(&conduits);
    for (name, conduit) in [("a", 1), ("b", 0), ("c", 3), ("d", 2)] {
        rig.wait(name, 1, &[(conduit, 0)]);
    }
    assert_eq!(rig.probes().len(), 4);
    // A message for c was on its way. a and b have reported their waits once, and do not report
    // again.
    rig.proceed("c", 1);
    rig.pass(ms(980));
    let probes = rig.probes();
    let asked: Vec<&str> = probes.iter().map(|(name, ..)| name.as_str()).collect();
    assert_eq!(asked, ["a", "b"]);
    rig.answer(&probes, |_, _| 0);
    rig.assert_failure_begins("deadlock: 2 instances");
    rig.wind_up();
}

#[test]
fn a_wait_on_what_the_plan_does_not_have_is_passed_over() {
    let on = |conduit, peer: &str, count| WaitOn {
        conduit: ConduitId(conduit),
        port: "back".into(),
        peer: peer.into(),
        peer_port: "final".into(),
        sends: false,
        count,
        ahead: 0,
        ahead_bytes: 0,
        field: false,
        closes: false,
        joins: false,
    };
    let waiting = |on| ToManager::Waiting {
        instance: "macro".into(),
        wait: 1,
        on: vec![on],
    };
    let mut rig = joined(&PAIR);
    rig.wait("micro", 1, &[(0, 0)]);
    // A conduit that does not exist, and a conduit from which macro receives nothing.
    for conduit in [7, 0] {
        rig.say(rig.link("macro"), waiting(on(conduit, "micro", 0)));
        assert!(
            rig.logs.last().unwrap().1.contains("has no end of"),
            "{:?}",
            rig.logs
        );
        assert_eq!(rig.phase("macro"), Phase::Running);
    }
    // The plan, not the report, says which instance is at the other end.
    rig.say(rig.link("macro"), waiting(on(1, "nobody", u64::MAX)));
    let probes = rig.probes();
    rig.answer(&probes, |_, _| 0);
    rig.assert_failure_begins("deadlock: 2 instances");
    rig.wind_up();
}

#[test]
fn a_late_answer_of_an_old_question_is_passed_over_and_no_answer_is_asked_for_again() {
    let mut rig = joined(&PAIR);
    rig.wait("macro", 1, &[(1, 0)]);
    rig.wait("micro", 1, &[(0, 0)]);
    let first = rig.probes();
    rig.answer(&first[..1], |_, _| 0);
    rig.pass(ms(1000));
    assert_eq!(rig.failure(), None);
    rig.answer(&first[1..], |_, _| 0);
    assert_eq!(
        rig.failure(),
        None,
        "only one of two has answered the second question"
    );
    let second: Vec<_> = first
        .iter()
        .map(|(name, probe, on)| (name.clone(), probe + 1, on.clone()))
        .collect();
    rig.answer(&second, |_, _| 0);
    assert!(rig.failure().unwrap().starts_with("deadlock"));
    rig.wind_up();
}

#[test]
fn who_waits_for_somebody_not_yet_there_or_done_is_not_stuck() {
    let mut rig = Rig::new(plan(&PAIR, &[]));
    rig.join("macro");
    rig.wait("macro", 1, &[(1, 0)]);
    assert!(rig.probes().is_empty());
    rig.join("micro");
    rig.done("micro");
    assert!(rig.probes().is_empty());
    rig.proceed("macro", 1);
    rig.done("macro");
    for name in ["macro", "micro"] {
        rig.lose(name);
        rig.exit(name, Exit::Code(0));
    }
    rig.assert_over(true);
}

#[test]
fn a_wait_for_any_of_several_is_stuck_only_if_all_are() {
    let conduits = [
        "a.out o_f -> hub.a s",
        "b.out o_f -> hub.b s",
        "hub.to_a o_i -> a.in f_init",
    ];
    let mut rig = joined(&conduits);
    rig.wait("hub", 1, &[(0, 0), (1, 0)]);
    rig.wait("a", 1, &[(2, 0)]);
    assert!(rig.probes().is_empty(), "b computes, and may send");
    // b is done, so hub's port b is closed. The wait of hub goes on with a alone, as a new wait.
    rig.done("b");
    rig.wait("hub", 2, &[(0, 0)]);
    let probes = rig.probes();
    rig.answer(&probes, |_, _| 0);
    let failure = rig.failure().unwrap();
    assert!(
        failure.contains("hub waits to receive message 1 on a, for a.out"),
        "{failure}"
    );
    rig.lose("b");
    rig.exit("b", Exit::Code(0));
    rig.wind_up();
}

#[test]
fn a_closed_set_of_alternatives_is_a_deadlock_and_names_all_in_it() {
    let conduits = [
        "a.out o_f -> hub.a s",
        "b.out o_f -> hub.b s",
        "hub.to_a o_i -> a.in f_init",
        "hub.to_b o_i -> b.in f_init",
        "hub.tail o_f -> end.in f_init",
    ];
    let mut rig = joined(&conduits);
    rig.wait("end", 1, &[(4, 0)]);
    rig.wait("hub", 1, &[(0, 0), (1, 0)]);
    rig.wait("a", 1, &[(2, 0)]);
    rig.wait("b", 1, &[(3, 0)]);
    let probes = rig.probes();
    assert_eq!(probes.len(), 4);
    rig.answer(&probes, |_, _| 0);
    let failure = rig.failure().unwrap();
    let lines: Vec<&str> = failure.lines().collect();
    assert_eq!(
        lines[1],
        "  a waits to receive message 1 on in, for hub.to_a"
    );
    assert_eq!(
        lines[2],
        "  hub waits to receive message 1 on a, for a.out, or to receive message 1 on b, for b.out"
    );
    assert_eq!(
        lines[4],
        "  b waits to receive message 1 on in, for hub.to_b"
    );
    assert!(
        !failure.contains("end waits"),
        "it is not part of the closed set: {failure}"
    );
    rig.wind_up();
}

#[test]
fn a_sender_that_waits_for_room_in_a_cycle_gets_a_larger_buffer() {
    // Both instances send many messages before either receives.
    let mut rig = joined(&["a.out o_i -> b.in s", "b.out o_i -> a.in s"]);
    rig.wait("a", 1, &[(0, 4)]);
    rig.wait("b", 1, &[(1, 4)]);
    let probes = rig.probes();
    rig.reported.clear();
    rig.answer(&probes, |name, conduit| {
        if (name == "a") == (conduit == 0) {
            4
        } else {
            0
        }
    });
    assert_eq!(rig.failure(), None);
    let raised = ToProgram::RaiseBuffer {
        instance: "a".into(),
        conduit: ConduitId(0),
        messages: 16,
        bytes: 1000,
    };
    assert_eq!(rig.reported[&rig.link("a")], [raised]);
    assert_eq!(
        rig.manager.raised().collect::<Vec<_>>(),
        [(ConduitId(0), 1, 16), (ConduitId(1), 1, 16)]
    );
    assert!(
        rig.logs
            .iter()
            .any(|(level, text)| *level == Level::Warning && text.contains("buffer raised to 16"))
    );
    for name in ["a", "b"] {
        rig.say(
            rig.link(name),
            ToManager::Proceed {
                instance: name.into(),
                wait: 1,
            },
        );
        rig.leave(name);
    }
    rig.assert_over(true);
}

#[test]
fn a_mixed_cycle_raises_and_a_cycle_beside_a_blocked_sender_is_still_a_deadlock() {
    let mut rig = joined(&["a.out o_i -> b.in s", "b.out o_i -> a.in s"]);
    rig.wait("a", 1, &[(0, 4)]);
    rig.wait("b", 1, &[(1, 0)]);
    // No real run has such waits: b would not wait on a conduit for b's own messages. Only the
    // graph matters here.
    let probes = rig.probes();
    rig.answer(&probes, |_, _| 4);
    assert_eq!(rig.failure(), None);
    assert!(rig.manager.raised().count() >= 1);

    let conduits = [
        "a.out o_i -> b.in s",
        "b.out o_i -> a.in s",
        "c.out o_i -> a.more s",
    ];
    let mut rig = joined(&conduits);
    rig.wait("a", 1, &[(1, 0)]);
    rig.wait("b", 1, &[(0, 0)]);
    rig.wait("c", 1, &[(2, 4)]);
    let probes = rig.probes();
    rig.answer(
        &probes,
        |name, conduit| if name == "c" && conduit == 2 { 4 } else { 0 },
    );
    let failure = rig.failure().unwrap();
    assert!(
        failure.starts_with("deadlock: 2 instances") && !failure.contains("c waits"),
        "{failure}"
    );
    rig.wind_up();
}

#[test]
fn at_the_ceiling_of_memory_a_full_buffer_is_a_deadlock() {
    let mut plan = plan(&["a.out o_i -> b.in s", "b.out o_i -> a.in s"], &[]);
    plan.options.ceiling = 1000;
    let mut rig = Rig::new(plan);
    rig.join("a");
    rig.join("b");
    rig.wait("a", 1, &[(0, 4)]);
    rig.wait("b", 1, &[(1, 4)]);
    let probes = rig.probes();
    rig.answer(&probes, |_, _| 4);
    let failure = rig.failure().unwrap();
    assert!(
        failure.contains("(its buffer is full)") && failure.contains("1000 is the most"),
        "{failure}"
    );
    rig.wind_up();
}

#[test]
fn a_cycle_of_a_thousand_is_found() {
    let conduits: Vec<String> = (0..1000)
        .map(|i| format!("n{i}.out o_i -> n{}.in s", (i + 1) % 1000))
        .collect();
    let conduits: Vec<&str> = conduits.iter().map(String::as_str).collect();
    let mut rig = joined(&conduits);
    for i in 0..1000 {
        rig.wait(&format!("n{i}"), 1, &[((i + 999) % 1000, 0)]);
    }
    let probes = rig.probes();
    assert_eq!(probes.len(), 1000);
    rig.answer(&probes, |_, _| 0);
    assert!(
        rig.failure()
            .unwrap()
            .starts_with("deadlock: 1000 instances")
    );
    rig.wind_up();
}

#[test]
fn who_waits_for_a_field_to_be_declared_is_helped_by_that_alone() {
    let conduits = ["a.u o_i -> b.u s", "a.out o_i -> b.in s"];
    let mut rig = joined(&conduits);
    let field = FieldEnd {
        side: vec![1],
        dtypes: vec![12],
        takes_joined: false,
    };
    let declares = |rig: &mut Rig, name: &str| {
        let (instance, port, field) = (name.to_owned(), "u".to_owned(), field.clone());
        rig.say(
            rig.link(name),
            ToManager::Field {
                instance,
                port,
                field,
            },
        );
    };
    let waits = |rig: &mut Rig, wait| {
        let (port, peer, peer_port) = ("u".to_owned(), "b".to_owned(), "u".to_owned());
        let (count, ahead, ahead_bytes) = (1, 1, 0);
        let on = WaitOn {
            conduit: ConduitId(0),
            port,
            peer,
            peer_port,
            sends: true,
            count,
            ahead,
            ahead_bytes,
            field: true,
            closes: false,
            joins: false,
        };
        rig.say(
            rig.link("a"),
            ToManager::Waiting {
                instance: "a".into(),
                wait,
                on: vec![on],
            },
        );
    };
    declares(&mut rig, "a");
    waits(&mut rig, 1);
    rig.wait("b", 1, &[(1, 0)]);
    let probes = rig.probes();
    assert_eq!(probes.len(), 2);
    // The declaration of b is on its way to a, the waiting instance.
    declares(&mut rig, "b");
    rig.answer(&probes, |_, _| 0);
    assert_eq!(rig.failure(), None);

    let mut rig = joined(&conduits);
    declares(&mut rig, "a");
    waits(&mut rig, 1);
    rig.wait("b", 1, &[(1, 0)]);
    let probes = rig.probes();
    rig.answer(&probes, |_, _| 0);
    let text = rig.failure().unwrap().to_owned();
    assert!(text.starts_with("deadlock: 2 instances"), "{text}");
    assert!(
        text.contains("a waits on u, for b to declare the field at its end, b.u"),
        "{text}"
    );
    rig.wind_up();
}

#[test]
fn who_closes_and_waits_for_the_last_version_to_be_taken_needs_no_room() {
    let conduits = ["a.u o_i -> b.u s", "b.back o_i -> a.back s"];
    for sends in [true, false] {
        let mut rig = joined(&conduits);
        let closing = WaitOn {
            closes: true,
            ..rig.end("a", &(0, 1))
        };
        rig.say(
            rig.link("a"),
            ToManager::Waiting {
                instance: "a".into(),
                wait: 1,
                on: vec![closing],
            },
        );
        // b waits for room to send to a, which closes, or waits for a to declare a field.
        let waits = WaitOn {
            field: !sends,
            ..rig.end("b", &(1, 4))
        };
        rig.say(
            rig.link("b"),
            ToManager::Waiting {
                instance: "b".into(),
                wait: 1,
                on: vec![waits],
            },
        );
        let probes = rig.probes();
        assert_eq!(probes.len(), 2);
        rig.answer(&probes, |_, _| 0);
        let raised: Vec<ConduitId> = rig
            .manager
            .deadlock_search
            .raised()
            .map(|(conduit, ..)| conduit)
            .collect();
        if sends {
            assert_eq!((rig.failure(), raised), (None, vec![ConduitId(1)]));
        } else {
            assert_eq!(raised, []);
            let text = rig.failure().unwrap().to_owned();
            assert!(
                text.contains(
                    "a waits for b.u to take the last version of the field on u, to close"
                ),
                "{text}"
            );
            rig.wind_up();
        }
    }
}
