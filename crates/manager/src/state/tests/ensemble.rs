//! Members of ensembles that fail, are started again, and wait for a turn.

use titin_wire::control::{ConduitProfile, Profile, WaitOn};

use super::super::{Cause, DeadlockAdvice, Progress};
use super::*;
use crate::plan::PlannedEnsemble;

const KILLED: Exit = Exit::Signal(9, false);

/// A driver with three members, under the given limits.
fn study(allow_failures: usize, retry: u32, at_once: usize) -> Plan {
    let conduits = [
        "driver.out[0] o_i -> micro[0].in f_init",
        "driver.out[1] o_i -> micro[1].in f_init",
        "driver.out[2] o_i -> micro[2].in f_init",
        "micro[0].back o_f -> driver.in[0] s",
        "micro[1].back o_f -> driver.in[1] s",
        "micro[2].back o_f -> driver.in[2] s",
    ];
    Plan {
        ensembles: vec![PlannedEnsemble {
            component: "micro".into(),
            allow_failures,
            retry,
            at_once,
        }],
        ..plan(&conduits, &[])
    }
}

impl Rig {
    /// The study with all programs started and joined.
    fn study(allow_failures: usize) -> Self {
        let mut rig = Rig::new(study(allow_failures, 0, usize::MAX));
        rig.join_driver();
        for name in ["micro[0]", "micro[1]", "micro[2]"] {
            rig.join(name);
        }
        rig.reported.clear();
        rig
    }

    fn join_driver(&mut self) {
        let driver = self.registration("driver");
        let ports = ["out", "in"].map(|name| PortDeclaration {
            name: name.into(),
            operator: if name == "out" { "o_i" } else { "s" }.into(),
            vector: true,
        });
        let driver = Registration {
            ports: Some(ports.to_vec()),
            ..driver
        };
        self.register(self.link("driver"), driver);
    }

    /// The failed members of which a program was told, each with the reason.
    fn told_members(&mut self, name: &str) -> Vec<(String, String)> {
        let told = self.reported.remove(&self.link(name)).unwrap_or_default();
        let failed = told.into_iter().filter_map(|message| match message {
            ToProgram::MemberFailed { instance, text, .. } => Some((instance, text)),
            _ => None,
        });
        failed.collect()
    }

    /// The last welcome of an instance.
    fn welcome(&self, name: &str) -> titin_wire::control::Welcome {
        let told = self.reported[&self.link(name)].iter().rev();
        let mut welcomes = told.filter_map(|message| match message {
            ToProgram::Registered(welcome) => Some((**welcome).clone()),
            _ => None,
        });
        welcomes.next().unwrap()
    }

    /// The driver sends to the next attempt of a member.
    fn resume(&mut self, member: &str) {
        let (instance, member) = ("driver".to_owned(), member.to_owned());
        self.say(self.link("driver"), ToManager::Resume { instance, member });
    }

    fn starts(&mut self) -> Vec<String> {
        let begun = std::mem::take(&mut self.begun);
        let name = |id: &InstanceId| self.manager.name(*id).to_owned();
        begun.iter().map(name).collect()
    }

    fn started(&mut self, name: &str) {
        let id = self.id(name);
        self.event(RunEvent::ProcessStarted(id, ProcessId::here(300 + id.0)));
    }
}

#[test]
fn the_run_goes_on_without_a_failed_member() {
    let mut rig = Rig::study(1);
    rig.lose("micro[1]");
    rig.exit("micro[1]", KILLED);
    let told = rig.told_members("driver");
    assert_eq!(told, [("micro[1]".to_owned(), KILLED.to_string())]);
    assert_eq!(rig.failure(), None);
    assert_eq!(rig.phase("micro[1]"), Phase::Failed);
    for name in ["driver", "micro[0]", "micro[2]"] {
        rig.leave(name);
    }
    assert!(rig.finished);
    assert_eq!(rig.manager.outcome(), Some(RunOutcome::Done));
    let [failed] = &rig.manager.failed_members()[..] else {
        panic!("one ensemble")
    };
    assert_eq!(
        failed.summary(),
        "1 of 3 members of micro failed (1 allowed)"
    );
}

#[test]
fn what_a_killed_member_has_sent_is_known_of_its_receivers() {
    let mut rig = Rig::study(1);
    let progress = |messages| Progress {
        instance: "micro[1]".into(),
        simulated: None,
        messages,
        bytes: 8 * messages,
        end: None,
    };
    rig.say(rig.link("micro[1]"), ToManager::Progress(progress(1)));
    rig.lose("micro[1]");
    rig.exit("micro[1]", KILLED);
    assert_eq!(rig.manager.traffic(rig.id("micro[1]")), (1, 8));
    let conduit = |conduit, sends, messages| ConduitProfile {
        conduit,
        sends,
        messages,
        bytes: 8 * messages,
        ..ConduitProfile::default()
    };
    // What the driver has sent by conduit 1 says nothing about the member; there is no conduit 99.
    let conduits = vec![
        conduit(1, true, 5),
        conduit(4, false, 3),
        conduit(99, false, 7),
    ];
    let profile = Profile {
        instance: "driver".into(),
        conduits,
        ..Profile::default()
    };
    rig.say(rig.link("driver"), ToManager::Profile(profile));
    assert_eq!(rig.manager.traffic(rig.id("micro[1]")), (3, 24));
    assert_eq!(rig.manager.traffic(rig.id("micro[0]")), (0, 0));
}

#[test]
fn one_failure_more_than_allowed_fails_the_run() {
    let mut rig = Rig::study(1);
    rig.fail("micro[0]", "no more ice", false);
    assert_eq!(
        rig.told_members("driver"),
        [(
            "micro[0]".to_owned(),
            "reported an error: no more ice".to_owned()
        )]
    );
    rig.lose("micro[2]");
    rig.exit("micro[2]", Exit::Code(3));
    rig.assert_failure_begins("micro[2] ended with exit code 3");
    assert_eq!(rig.manager.failed_members()[0].failed.len(), 2);
}

#[test]
fn a_failure_of_another_instance_fails_the_run() {
    let mut rig = Rig::study(3);
    rig.lose("driver");
    rig.exit("driver", Exit::Code(3));
    rig.assert_failure_begins("driver ended with exit code 3");
}

#[test]
fn a_left_out_member_that_does_not_end_is_ended() {
    let mut rig = Rig::study(1);
    rig.fail("micro[0]", "no more ice", false);
    let grace = rig.manager.plan.options.grace;
    rig.pass(grace - ms(1));
    assert_eq!(rig.signals, []);
    rig.pass(ms(1));
    let name = "micro[0]".to_owned();
    assert_eq!(rig.signals, [(name.clone(), Signal::Terminate)]);
    rig.pass(ms(2000));
    assert_eq!(rig.signals[1..], [(name, Signal::Kill)]);
    rig.leave("driver");
    rig.leave("micro[1]");
    rig.leave("micro[2]");
    assert!(!rig.finished, "its process still runs");
    rig.exit("micro[0]", KILLED);
    assert_eq!(rig.manager.outcome(), Some(RunOutcome::Done));
}

#[test]
fn a_member_that_ends_before_it_joins_is_started_again() {
    let mut rig = Rig::new(study(1, 2, usize::MAX));
    rig.begun.clear();
    for _ in 0..2 {
        rig.exit("micro[1]", Exit::Code(9));
        assert_eq!(rig.starts(), ["micro[1]"]);
        rig.started("micro[1]");
    }
    rig.exit("micro[1]", Exit::Code(9));
    assert_eq!((rig.starts(), rig.failure()), (Vec::new(), None));
    // The driver joins only now, and is told all the same.
    rig.join_driver();
    assert_eq!(rig.told_members("driver").len(), 1);
    // It cannot come back.
    rig.join("micro[1]");
    assert!(
        rig.refusal(rig.link("micro[1]"))
            .unwrap()
            .contains("goes on without it")
    );
}

#[test]
fn a_member_that_sends_to_another_than_its_driver_is_not_started_again_once_it_has_joined() {
    let plan = plan(
        &[
            "driver.out[0] o_i -> micro[0].in f_init",
            "driver.out[1] o_i -> micro[1].in f_init",
            "micro[0].back o_f -> driver.in[0] s",
            "micro[1].back o_f -> driver.in[1] s",
            "micro[1].more o_f -> end.in f_init",
        ],
        &[],
    );
    let ensembles = study(1, 2, usize::MAX).ensembles;
    for (name, starts) in [
        ("micro[0]", vec![name_of("micro[0]")]),
        ("micro[1]", vec![]),
    ] {
        let mut rig = Rig::new(Plan {
            ensembles: ensembles.clone(),
            ..plan.clone()
        });
        rig.begun.clear();
        rig.join_driver();
        rig.join(name);
        rig.lose(name);
        rig.exit(name, Exit::Code(9));
        rig.resume(&format!("{name}~1"));
        assert_eq!((rig.starts(), rig.failure()), (starts, None), "{name}");
    }
}

fn name_of(name: &str) -> String {
    name.to_owned()
}

/// The failures that the driver hears of: the attempt, and whether another one follows.
fn attempts_told(rig: &mut Rig) -> Vec<(String, bool)> {
    let told = rig.reported.remove(&rig.link("driver")).unwrap_or_default();
    let failed = told.into_iter().filter_map(|message| match message {
        ToProgram::MemberFailed {
            instance, again, ..
        } => Some((instance, again)),
        _ => None,
    });
    failed.collect()
}

#[test]
fn a_member_with_a_driver_alone_is_started_again_with_conduits_of_its_own() {
    let mut rig = Rig::new(study(0, 2, usize::MAX));
    rig.join_driver();
    let welcome = rig.welcome("driver");
    let last: Vec<(u32, &str, Option<u32>)> = welcome.wires[6..]
        .iter()
        .map(|wire| (wire.conduit.0, wire.peer.as_str(), wire.slot))
        .collect();
    // The conduits of each member stand together: 0 and 3, 1 and 4, 2 and 5.
    assert_eq!(
        last,
        [
            (6, "micro[0]~1", Some(0)),
            (12, "micro[0]~2", Some(0)),
            (8, "micro[1]~1", Some(1)),
            (14, "micro[1]~2", Some(1)),
            (10, "micro[2]~1", Some(2)),
            (16, "micro[2]~2", Some(2)),
            (7, "micro[0]~1", Some(0)),
            (13, "micro[0]~2", Some(0)),
            (9, "micro[1]~1", Some(1)),
            (15, "micro[1]~2", Some(1)),
            (11, "micro[2]~1", Some(2)),
            (17, "micro[2]~2", Some(2)),
        ]
    );
    for name in ["micro[0]", "micro[1]", "micro[2]"] {
        rig.join(name);
    }
    rig.begun.clear();
    rig.reported.clear();
    // The program says why it fails, and ends a moment later.
    rig.fail("micro[1]", "no more ice", false);
    assert_eq!(attempts_told(&mut rig), [(name_of("micro[1]"), true)]);
    rig.resume("micro[1]~1");
    assert_eq!(rig.starts(), [""; 0], "its process lives");
    rig.exit("micro[1]", Exit::Code(1));
    assert_eq!(rig.starts(), ["micro[1]"]);
    // What the first process may say yet is not of the second attempt.
    rig.done("micro[1]");
    assert_eq!(rig.phase("micro[1]"), Phase::Starting);

    rig.started("micro[1]");
    rig.join("micro[1]");
    let welcome = rig.welcome("micro[1]");
    let conduits: Vec<u32> = welcome.wires.iter().map(|wire| wire.conduit.0).collect();
    assert_eq!(conduits, [8, 9]);
    assert!(welcome.wires.iter().all(|wire| wire.peer == "driver"));
    let told = &rig.reported[&rig.link("driver")];
    let is_peer = |message: &ToProgram| matches!(message, ToProgram::Peers { peers } if peers[0].instance == "micro[1]~1");
    assert!(told.iter().any(is_peer), "{told:?}");

    // A deadlock is found by the numbers of the second attempt.
    let on = WaitOn {
        conduit: titin_wire::ConduitId(9),
        ..rig.end("driver", &(4, 0))
    };
    rig.say(
        rig.link("driver"),
        ToManager::Waiting {
            instance: "driver".into(),
            wait: 1,
            on: vec![on],
        },
    );
    assert_eq!(rig.phase("driver"), Phase::Waiting);
    rig.proceed("driver", 1);

    rig.lose("micro[1]");
    rig.exit("micro[1]", KILLED);
    assert_eq!(attempts_told(&mut rig), [(name_of("micro[1]~1"), true)]);
    assert_eq!(
        rig.starts(),
        [""; 0],
        "the driver may have nothing more for it"
    );
    for wrong in [
        "micro[1]",
        "micro[1]~1",
        "micro[1]~3",
        "micro[2]~1",
        "nobody~1",
    ] {
        rig.resume(wrong);
    }
    assert_eq!(rig.starts(), [""; 0]);
    rig.resume("micro[1]~2");
    assert_eq!(rig.starts(), ["micro[1]"]);
    rig.started("micro[1]");
    rig.join("micro[1]");
    for name in ["driver", "micro[0]", "micro[1]", "micro[2]"] {
        rig.leave(name);
    }
    assert_eq!(rig.manager.outcome(), Some(RunOutcome::Done));
    assert!(rig.manager.failed_members().is_empty());
}

#[test]
fn a_member_that_fails_more_often_than_it_is_started_again_has_failed() {
    let mut rig = Rig::new(study(1, 1, usize::MAX));
    rig.join_driver();
    for next in ["micro[0]~1", "micro[0]~2"] {
        rig.started("micro[0]");
        rig.join("micro[0]");
        rig.lose("micro[0]");
        rig.exit("micro[0]", KILLED);
        rig.resume(next);
    }
    assert_eq!(
        attempts_told(&mut rig),
        [(name_of("micro[0]"), true), (name_of("micro[0]~1"), false)]
    );
    assert_eq!(
        (rig.phase("micro[0]"), rig.failure()),
        (Phase::Failed, None)
    );
    assert_eq!(rig.manager.failed_members()[0].failed.len(), 1);
}

#[test]
fn a_member_that_fails_last_does_not_hold_up_the_end() {
    let mut rig = Rig::new(study(0, 1, usize::MAX));
    rig.join_driver();
    for name in ["micro[0]", "micro[1]", "micro[2]"] {
        rig.join(name);
    }
    rig.lose("micro[1]");
    rig.exit("micro[1]", KILLED);
    // The driver has nothing more to send.
    for name in ["driver", "micro[0]", "micro[2]"] {
        rig.leave(name);
    }
    assert_eq!(rig.manager.outcome(), Some(RunOutcome::Done));
}

#[test]
fn a_member_that_fails_before_its_driver_has_joined_keeps_its_conduits() {
    let mut rig = Rig::new(study(0, 1, usize::MAX));
    rig.begun.clear();
    rig.join("micro[0]");
    rig.lose("micro[0]");
    rig.exit("micro[0]", KILLED);
    assert_eq!(rig.starts(), ["micro[0]"]);
    rig.join_driver();
    rig.started("micro[0]");
    rig.join("micro[0]");
    assert_eq!(attempts_told(&mut rig), []);
    assert_eq!(rig.manager.members[rig.id("micro[0]")].attempt, 0);
}

#[test]
fn what_cannot_be_started_fails_the_run() {
    let mut rig = Rig::begun(study(3, 2, usize::MAX));
    let id = rig.id("micro[1]");
    rig.event(RunEvent::StartFailed(id, "no such file".into()));
    rig.assert_failure_begins("micro[1] could not be started: no such file");
}

#[test]
fn members_wait_for_their_turn() {
    let mut rig = Rig::begun(study(1, 1, 1));
    assert_eq!(rig.starts(), ["driver", "micro[0]"]);
    rig.started("micro[0]");
    rig.join("micro[0]");
    rig.done("micro[0]");
    assert!(rig.starts().is_empty(), "its process still runs");
    rig.lose("micro[0]");
    rig.exit("micro[0]", Exit::Code(0));
    assert_eq!(rig.starts(), ["micro[1]"]);
    // A member that is started again waits for its turn behind the others.
    rig.started("micro[1]");
    rig.exit("micro[1]", Exit::Code(2));
    assert_eq!(rig.starts(), ["micro[2]"]);
    rig.started("micro[2]");
    rig.exit("micro[2]", Exit::Code(2));
    assert_eq!(rig.starts(), ["micro[1]"]);
    rig.started("micro[1]");
    rig.exit("micro[1]", Exit::Code(2));
    assert_eq!(rig.starts(), ["micro[2]"]);
    // Waiting members are not late.
    assert_eq!(rig.failure(), None);
}

impl Rig {
    /// The study with all programs but `micro[1]` and `micro[2]`, which wait for a turn.
    fn study_in_turns() -> Self {
        let mut rig = Rig::begun(study(0, 0, 1));
        rig.started("micro[0]");
        rig.join_driver();
        rig.join("micro[0]");
        rig
    }

    /// The driver waits to send to a member that has not joined.
    fn wait_to_join(&mut self, conduit: u32) {
        let on = WaitOn {
            joins: true,
            ahead: 0,
            ahead_bytes: 0,
            ..self.end("driver", &(conduit, 0))
        };
        self.say(
            self.link("driver"),
            ToManager::Waiting {
                instance: "driver".into(),
                wait: 1,
                on: vec![on],
            },
        );
    }
}

#[test]
fn a_driver_that_waits_for_a_member_that_is_held_back_is_a_deadlock() {
    // Conduit 4 is that of micro[1] to the driver, and conduit 1 that of the driver to micro[1].
    for receives in [true, false] {
        let mut rig = Rig::study_in_turns();
        match receives {
            true => rig.wait("driver", 1, &[(4, 0), (5, 0)]),
            false => rig.wait_to_join(1),
        }
        assert!(rig.probes().is_empty(), "micro[0] computes, and may end");
        rig.wait("micro[0]", 1, &[(0, 1)]);
        let probes = rig.probes();
        assert_eq!(probes.len(), 2);
        rig.answer(&probes, |_, conduit| u64::from(conduit == 0));
        rig.assert_failure_begins("deadlock: 2 instances wait for each other in a cycle");
        rig.assert_failure_says(match receives {
            true => "for micro[1].back, which starts when another member has ended (`at_once: 1`)",
            false => "for micro[1] to join the run, which starts when another member has ended",
        });
        let failure = rig.manager.run_state.failure().unwrap();
        let Cause::Deadlock(deadlock) = &failure.cause else {
            panic!("{failure:?}")
        };
        assert_eq!(deadlock.advice, DeadlockAdvice::RaiseAtOnce);
    }
}

#[test]
fn members_that_wait_while_others_wait_for_their_turn_are_told_once() {
    let mut rig = Rig::study_in_turns();
    let told = |rig: &Rig| {
        let begin = "all members of micro that run have waited for 30 s, and 2 more wait";
        rig.logs
            .iter()
            .filter(|(_, text)| text.starts_with(begin))
            .count()
    };
    let pass = |rig: &mut Rig, seconds: u64| {
        for _ in 0..seconds {
            for name in ["driver", "micro[0]"] {
                rig.say(rig.link(name), ToManager::Heartbeat {});
            }
            rig.pass(ms(1000));
        }
    };
    // The driver has several threads, so it reports no wait.
    rig.wait("micro[0]", 1, &[(0, 1)]);
    pass(&mut rig, 29);
    assert_eq!(told(&rig), 0);
    pass(&mut rig, 10);
    pass(&mut rig, 60);
    assert_eq!((told(&rig), rig.failure()), (1, None));
    rig.proceed("micro[0]", 1);
    pass(&mut rig, 60);
    assert_eq!(told(&rig), 1, "it computes");
}

#[test]
fn a_driver_that_waits_for_a_member_in_the_queue_waits_for_a_running_member_to_end() {
    let mut rig = Rig::study_in_turns();
    rig.wait("driver", 1, &[(4, 0)]);
    rig.done("micro[0]");
    rig.lose("micro[0]");
    rig.exit("micro[0]", Exit::Code(0));
    assert_eq!(rig.starts()[2..], ["micro[1]"]);
    rig.started("micro[1]");
    assert!(rig.probes().is_empty(), "micro[1] is about to join");
    rig.join("micro[1]");
    assert!(rig.probes().is_empty(), "micro[1] computes");
    assert_eq!(rig.failure(), None);
}

#[test]
fn a_wait_for_a_receiver_that_joins_is_no_deadlock() {
    let mut rig = Rig::begun(study(0, 0, 3));
    rig.started("micro[1]");
    rig.join_driver();
    rig.wait_to_join(1);
    rig.join("micro[1]");
    rig.wait("micro[1]", 1, &[(1, 0)]);
    assert!(rig.probes().is_empty(), "the driver connects to micro[1]");
    // The receiver joins while the manager asks: the driver's wait was for a member held back.
    let mut rig = Rig::study_in_turns();
    rig.wait_to_join(1);
    rig.wait("micro[0]", 1, &[(0, 1)]);
    let probes = rig.probes();
    rig.manager.deferred_starts.clear();
    rig.answer(&probes, |_, conduit| u64::from(conduit == 0));
    assert_eq!((rig.failure(), rig.manager.raised().count()), (None, 0));
}
