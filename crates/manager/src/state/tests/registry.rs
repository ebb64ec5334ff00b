//! Instances that join in every order, and refused programs.

use super::*;
use crate::plan::PlannedCommand;

#[test]
fn whoever_comes_is_told_of_those_before_and_after() {
    let mut rig = Rig::new(plan(&PAIR, &[]));
    rig.join("macro");
    let told = rig.reported.remove(&rig.link("macro")).unwrap();
    let [ToProgram::Registered(welcome)] = &told[..] else {
        panic!("{told:?}")
    };
    assert_eq!(welcome.wires.len(), 2);
    assert_eq!(
        (welcome.wires[0].sends, welcome.wires[0].peer.as_str()),
        (true, "micro")
    );
    assert_eq!(welcome.ports[1].operator, "s");
    assert!((welcome.heartbeat - 8.0 / 3.0).abs() < 1e-9);

    rig.join("micro");
    let told = &rig.reported[&rig.link("micro")];
    assert!(matches!(&told[1], ToProgram::Peers { peers } if peers[0].instance == "macro"));
    let told = &rig.reported[&rig.link("macro")];
    assert!(matches!(&told[0], ToProgram::Peers { peers } if peers[0].instance == "micro"));
}

#[test]
fn whoever_is_done_tells_its_peers_early_and_late() {
    let mut rig = Rig::new(plan(
        &["a.out o_f -> b.in f_init", "a.side o_f -> c.in f_init"],
        &[],
    ));
    rig.join("a");
    rig.join("b");
    rig.reported.clear();
    rig.done("a");
    let finished = vec![ToProgram::Finished {
        instance: "a".into(),
    }];
    assert_eq!(rig.reported[&rig.link("a")], finished);
    assert_eq!(rig.reported[&rig.link("b")], finished);
    rig.join("c");
    assert_eq!(rig.reported[&rig.link("c")][1..], finished);
}

#[test]
fn several_instances_share_the_link_of_their_process() {
    let mut rig = Rig::new(plan(
        &PAIR,
        &[("macro", StartMode::Hosted), ("micro", StartMode::Hosted)],
    ));
    let link = LinkId(40);
    rig.event(RunEvent::LinkOpened(link));
    for name in ["macro", "micro"] {
        let registration = rig.registration(name);
        rig.say(link, ToManager::Register(registration));
    }
    rig.say(
        link,
        ToManager::Done {
            instance: "macro".into(),
        },
    );
    let finished = ToProgram::Finished {
        instance: "macro".into(),
    };
    assert_eq!(
        rig.reported[&link]
            .iter()
            .filter(|message| **message == finished)
            .count(),
        1
    );
    rig.say(
        link,
        ToManager::Done {
            instance: "micro".into(),
        },
    );
    rig.assert_over(true);
}

#[test]
fn a_name_that_is_not_in_the_model_is_refused() {
    let mut rig = Rig::new(plan(&PAIR, &[]));
    let link = LinkId(50);
    rig.event(RunEvent::LinkOpened(link));
    let registration = rig.registration("mirco");
    rig.say(link, ToManager::Register(registration));
    let text = rig.refusal(link).unwrap();
    assert!(
        text.contains("no instance mirco; did you mean micro?"),
        "{text}"
    );
    let registration = rig.registration("");
    rig.say(link, ToManager::Register(registration));
    assert!(rig.refusal(link).unwrap().contains("TITIN_INSTANCE"));
    assert_eq!(rig.failure(), None);
}

#[test]
fn a_second_rank_without_a_communicator_ends_the_run_at_once() {
    for closed in [false, true] {
        let mut rig = Rig::pair();
        if closed {
            rig.done("macro");
        }
        let text = rig.join_again("macro", 4711);
        assert!(
            text.contains("open the instance with their communicator"),
            "{text}"
        );
        assert_eq!(
            rig.failure().unwrap(),
            format!("macro was not let in: {text}")
        );
        assert!(rig.was_told_of_failure("macro") && rig.was_told_of_failure("micro"));
    }
}

#[test]
fn a_program_of_the_users_may_be_refused_and_is_told_in_the_report_of_what_follows() {
    let mut rig = Rig::new(plan(&PAIR, &[("macro", StartMode::Manual(None))]));
    rig.join("macro");
    rig.event(RunEvent::ProcessWatched(ProcessId::here(100)));
    rig.join("micro");
    let text = rig.join_again("macro", 4711);
    assert!(
        text.contains("process 100 on here")
            && text.contains("4711")
            && text.contains("communicator"),
        "{text}"
    );
    assert_eq!(rig.failure(), None);
    let recent = rig.manager.recent_log(rig.id("macro"));
    assert!(
        recent[0].starts_with("process 4711 was not let in: process 100 on here"),
        "{recent:?}"
    );
    rig.event(RunEvent::ProcessGone(ProcessId::here(100)));
    rig.lose("macro");
    let failure = rig.failure().unwrap();
    let cause = "macro ended (how is not known) without closing its instance, after process 4711 was not let in: ";
    assert!(failure.starts_with(cause), "{failure}");
}

#[test]
fn a_port_misspelt_in_the_program_fails_the_run_before_anybody_waits() {
    let mut rig = Rig::new(plan(&PAIR, &[]));
    assert_eq!(
        rig.join_with("macro", &["out o_i", "back s", "extra o_f"]),
        None
    );
    assert!(
        rig.logs
            .iter()
            .any(|(_, text)| text.contains("a port extra")),
        "{:?}",
        rig.logs
    );
    let text = rig
        .join_with("micro", &["in f_init", "finale o_f"])
        .unwrap();
    assert!(
        text.contains("micro.final") && text.contains("it has finale"),
        "{text}"
    );
    rig.assert_failure_begins("micro was not let in: ");
    assert!(rig.was_told_of_failure("macro"));
    rig.exit("micro", Exit::Code(1));
    rig.lose("macro");
    rig.exit("macro", Exit::Code(1));
    rig.assert_over(false);
}

#[test]
fn ports_that_the_program_has_elsewhere_are_no_surprise() {
    let mut rig = Rig::new(plan(&PAIR, &[]));
    assert_eq!(
        rig.join_with("macro", &["out o_i", "back s", "spare o_f"]),
        None
    );
    assert!(
        rig.logs.iter().all(|(level, _)| *level != Level::Warning),
        "{:?}",
        rig.logs
    );
}

#[test]
fn a_program_started_by_hand_may_try_again() {
    let mut rig = Rig::new(plan(&PAIR, &[("micro", StartMode::Manual(None))]));
    assert!(
        rig.join_with("micro", &["in s", "final o_f"])
            .unwrap()
            .contains("as S, but in the description it is F_INIT")
    );
    rig.lose("micro");
    assert_eq!(rig.failure(), None);
    assert_eq!(rig.join_with("micro", &["in f_init", "final o_f"]), None);
    assert_eq!(rig.phase("micro"), Phase::Running);
}

#[test]
fn vector_ports_are_declared_on_both_sides_or_by_the_model() {
    let many = [
        "boss.out[0] o_i -> crew[0].in f_init",
        "boss.out[1] o_i -> crew[1].in f_init",
    ];
    let mut rig = Rig::new(plan(&many, &[]));
    assert!(
        rig.join_with("boss", &["out o_i"])
            .unwrap()
            .contains("out[]")
    );
    let mut rig = Rig::new(plan(&many, &[]));
    assert_eq!(rig.join_with("boss", &["out[] o_i"]), None);

    let mut rig = Rig::new(plan(&PAIR, &[]));
    assert_eq!(rig.join_with("macro", &["out[] o_i", "back s"]), None);
    let text = rig.join_with("micro", &["in f_init", "final o_f"]).unwrap();
    assert!(
        text.contains("micro.in and macro.out[] are joined"),
        "{text}"
    );
    let mut rig = Rig::new(plan(&PAIR, &[]));
    rig.event(RunEvent::LinkOpened(rig.link("macro")));
    rig.join("micro");
    assert_eq!(rig.join_with("macro", &["out o_i", "back s"]), None);
}

#[test]
fn the_longest_time_to_join_overflows_nothing() {
    let mut plan = plan(&PAIR, &[]);
    plan.options.patience = Duration::MAX;
    let mut rig = Rig::new(plan);
    rig.pass(Duration::from_secs(1));
    rig.join("macro");
    rig.join("micro");
    assert_eq!(rig.failure(), None);
}

#[test]
fn one_that_comes_a_minute_late_is_waited_for_and_one_that_never_comes_is_not() {
    let mut rig = Rig::new(plan(&PAIR, &[]));
    rig.join("macro");
    rig.pass(Duration::from_secs(60));
    rig.say(rig.link("macro"), ToManager::Heartbeat {});
    rig.join("micro");
    assert_eq!(rig.failure(), None);

    let mut rig = Rig::new(plan(&PAIR, &[]));
    rig.join("macro");
    rig.pass(Duration::from_secs(301));
    rig.assert_failure_begins("micro did not join the run within 300 s");
    rig.pass(Duration::from_secs(6));
    assert!(
        rig.signals
            .contains(&("micro".to_owned(), Signal::Terminate))
    );
    rig.exit("micro", Exit::Signal(15, false));
    rig.lose("macro");
    rig.exit("macro", Exit::Code(1));
    rig.assert_over(false);
}

#[test]
fn a_process_that_the_guard_did_not_start_is_watched() {
    let mut rig = Rig::new(plan(&PAIR, &[("macro", StartMode::Manual(None))]));
    rig.join("macro");
    assert_eq!(rig.watches, [ProcessId::here(100)]);
    rig.join_from("micro", 5000);
    assert_eq!(
        rig.watches,
        [ProcessId::here(100), ProcessId::here(5000)],
        "a program behind a script is not the script"
    );
    let mut rig = Rig::pair();
    assert!(rig.watches.is_empty());
    rig.leave("macro");
    rig.leave("micro");
    rig.assert_over(true);
}

#[test]
fn the_port_for_settings_needs_no_declaration() {
    let conduits = [
        "driver.out o_i -> micro.muscle_settings_in f_init",
        "micro.final o_f -> driver.back s",
    ];
    let mut rig = Rig::new(plan(&conduits, &[]));
    assert_eq!(rig.join_with("driver", &["out o_i", "back s"]), None);
    rig.event(RunEvent::LinkOpened(rig.link("micro")));
    let final_port = PortDeclaration {
        name: "final".into(),
        operator: "o_f".into(),
        vector: false,
    };
    let registration = Registration {
        ports: Some(vec![final_port]),
        ..rig.registration("micro")
    };
    rig.say(rig.link("micro"), ToManager::Register(registration));
    let told = &rig.reported[&rig.link("micro")];
    let ToProgram::Registered(welcome) = &told[0] else {
        panic!("{told:?}")
    };
    assert_eq!(welcome.ports[1].name, "muscle_settings_in");
}

#[test]
fn components_of_titins_own_follow_a_peer_that_counts_its_slots() {
    let command = PlannedCommand::BuiltIn {
        name: "sink".into(),
        folders: Vec::new(),
    };
    let built_in = StartMode::Program(PlannedProgram {
        command,
        ..PlannedProgram::default()
    });
    let conduits = ["a.out o_i -> sink.in s", "b.out o_i -> sink.more s"];
    let mut rig = Rig::begun(plan(&conduits, &[("sink", built_in.clone())]));
    let names = |rig: &Rig| {
        rig.begun
            .iter()
            .map(|&id| rig.manager.name(id).to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&rig), ["a", "b"]);
    assert_eq!(rig.join_with("a", &["out[] o_i"]), None);
    assert_eq!(names(&rig).len(), 2);
    assert_eq!(rig.join_with("b", &["out o_i"]), None);
    assert_eq!(names(&rig), ["a", "b", "sink"]);
    rig.join("sink");
    let link = rig.link("sink");
    let ports = rig.reported[&link]
        .iter()
        .find_map(|message| match message {
            ToProgram::Registered(welcome) => Some(&welcome.ports),
            _ => None,
        });
    let vectors = ports
        .unwrap()
        .iter()
        .map(|port| (port.name.as_str(), port.vector))
        .collect::<Vec<_>>();
    assert_eq!(vectors, [("in", true), ("more", false)]);

    // If the run fails before the start of an instance, the instance does not delay the end.
    let mut rig = Rig::begun(plan(&conduits, &[("sink", built_in)]));
    rig.event(RunEvent::StartFailed(rig.id("a"), "no such file".into()));
    rig.event(RunEvent::StartSkipped(rig.id("b")));
    rig.assert_over(false);
}
