//! Every way to fail, with the reports in every order.

use proptest::prelude::*;

use super::*;
use crate::plan::{Hosting, PlannedCommand};
use crate::state::assessment::LAST_MESSAGE_TIME;

const KILLED: Exit = Exit::Signal(9, false);

/// Ends the remaining programs, in the way of programs that have heard of the failure.
fn wind_up(rig: &mut Rig) {
    for name in ["macro", "micro"] {
        if !matches!(
            rig.manager.members[rig.id(name)].process,
            InstanceProcess::Ended(_)
        ) {
            rig.fail(name, "peer lost", true);
            rig.lose(name);
            rig.exit(name, Exit::Code(1));
        }
    }
    rig.assert_over(false);
}

impl Rig {
    /// Ends `peer`, the only remaining program, in the same way.
    fn wind_up_peer(&mut self) {
        self.fail("peer", "peer lost", true);
        self.lose("peer");
        self.exit("peer", Exit::Code(1));
        self.assert_over(false);
    }

    /// Joins as an instance in the process of `macro`.
    fn join_of_host(&mut self, name: &str) {
        self.event(RunEvent::LinkOpened(self.link(name)));
        let registration = Registration {
            pid: 100,
            ..self.registration(name)
        };
        self.say(self.link(name), ToManager::Register(registration));
    }
}

#[test]
fn a_program_that_dies_before_it_joins_is_noticed_at_once() {
    for exit in [Exit::Code(0), Exit::Code(2), KILLED] {
        let mut rig = Rig::new(plan(&PAIR, &[]));
        rig.join("macro");
        rig.exit("micro", exit);
        let expected = format!("micro {exit} before it had joined the run");
        assert_eq!(rig.failure(), Some(expected));
        assert!(rig.was_told_of_failure("macro"));
        wind_up(&mut rig);
    }
}

#[test]
fn a_program_that_cannot_be_started_fails_the_run_and_those_that_have_not_joined_have_the_grace_period_too()
 {
    let mut rig = Rig::new(plan(&PAIR, &[]));
    rig.event(RunEvent::StartFailed(
        rig.id("micro"),
        "./micro: no such file".into(),
    ));
    assert_eq!(
        rig.failure().unwrap(),
        "micro could not be started: ./micro: no such file"
    );
    rig.pass(ms(4900));
    assert!(
        rig.signals.is_empty(),
        "it may come to join, and say why it ends"
    );
    rig.pass(ms(200));
    assert_eq!(rig.signals, [("macro".to_owned(), Signal::Terminate)]);
    rig.exit("macro", Exit::Signal(15, false));
    rig.assert_over(false);
}

#[test]
fn a_kill_is_named_whatever_comes_first() {
    for order in [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    ] {
        let mut rig = Rig::pair();
        for step in order {
            rig.pass(ms(5));
            match step {
                0 => rig.exit("macro", KILLED),
                1 => rig.lose("macro"),
                _ => rig.fail("micro", "lost macro", true),
            }
        }
        let failure = rig.failure().expect("both signs of the death are there");
        assert!(
            failure.starts_with("macro was ended by SIGKILL"),
            "{order:?}: {failure}"
        );
        assert!(rig.was_told_of_failure("micro"));
        wind_up(&mut rig);
    }
}

#[test]
fn a_forked_child_that_keeps_the_link_open_delays_the_news_only_a_little() {
    let mut rig = Rig::pair();
    rig.exit("macro", KILLED);
    assert_eq!(rig.failure(), None);
    rig.pass(LAST_MESSAGE_TIME);
    assert!(
        rig.failure()
            .unwrap()
            .starts_with("macro was ended by SIGKILL")
    );
    wind_up(&mut rig);
}

#[test]
fn leaving_without_closing_is_a_failure_even_with_exit_code_0() {
    let mut rig = Rig::pair();
    rig.lose("macro");
    assert_eq!(rig.failure(), None, "the exit may explain it");
    rig.exit("macro", Exit::Code(0));
    rig.assert_failure_says("without closing its instance");
    wind_up(&mut rig);
}

#[test]
fn the_word_that_all_is_done_may_come_after_the_exit() {
    let mut rig = Rig::pair();
    rig.exit("macro", Exit::Code(0));
    rig.pass(ms(500));
    rig.done("macro");
    rig.lose("macro");
    assert_eq!(rig.failure(), None);
    rig.leave("micro");
    rig.assert_over(true);
}

#[test]
fn the_error_of_an_exception_is_told_even_if_the_exit_comes_first() {
    let mut rig = Rig::pair();
    rig.exit("macro", Exit::Code(1));
    rig.pass(ms(10));
    rig.fail("macro", "ValueError: negative mass", false);
    assert_eq!(
        rig.failure().unwrap(),
        "macro reported an error: ValueError: negative mass"
    );
    wind_up(&mut rig);
}

#[test]
fn a_bad_exit_after_the_end_of_the_coupling_is_a_failure() {
    let mut rig = Rig::pair();
    rig.done("macro");
    rig.lose("macro");
    rig.exit("macro", Exit::Code(3));
    assert_eq!(
        rig.failure().unwrap(),
        "macro ended with exit code 3 after it had finished its coupling"
    );
    wind_up(&mut rig);
}

#[test]
fn an_echo_is_only_believed_when_nobody_else_has_failed() {
    let mut rig = Rig::pair();
    rig.fail("micro", "lost macro", true);
    rig.lose("micro");
    rig.exit("micro", Exit::Code(1));
    assert_eq!(rig.failure(), None, "macro may be dying");
    rig.pass(ms(900));
    rig.lose("macro");
    rig.pass(ms(100));
    rig.assert_failure_begins("macro lost its link");
    wind_up(&mut rig);

    let mut rig = Rig::pair();
    rig.fail("micro", "lost macro", true);
    rig.pass(Duration::from_secs(1));
    assert_eq!(
        rig.failure().unwrap(),
        "micro reported an error: lost macro"
    );
    wind_up(&mut rig);
}

#[test]
fn a_lost_link_of_a_living_process_is_a_failure_after_a_while() {
    let mut rig = Rig::pair();
    rig.lose("macro");
    rig.pass(ms(999));
    assert_eq!(rig.failure(), None);
    rig.pass(ms(1));
    assert!(rig.failure().unwrap().contains("connection reset"));
    wind_up(&mut rig);
}

#[test]
fn a_program_behind_a_script_is_named_with_what_the_script_says() {
    let mut rig = Rig::new(plan(&PAIR, &[]));
    rig.join("macro");
    rig.join_from("micro", 5000);
    rig.event(RunEvent::ProcessWatched(ProcessId::here(5000)));
    rig.lose("micro");
    rig.event(RunEvent::ProcessGone(ProcessId::here(5000)));
    assert_eq!(rig.failure(), None);
    rig.exit("micro", Exit::Code(137));
    rig.assert_failure_says("SIGKILL in a shell");
    wind_up(&mut rig);
}

#[test]
fn a_program_behind_a_script_that_goes_on_without_it_has_failed() {
    let mut rig = Rig::new(plan(&PAIR, &[]));
    rig.join("macro");
    rig.join_from("micro", 5000);
    rig.event(RunEvent::ProcessWatched(ProcessId::here(5000)));
    rig.event(RunEvent::ProcessGone(ProcessId::here(5000)));
    rig.pass(Duration::from_secs(3));
    rig.assert_failure_says("without closing its instance");
    wind_up(&mut rig);
}

#[test]
fn a_program_that_dies_before_the_guard_has_told_of_its_start_is_named_with_its_exit() {
    let mut rig = Rig::begun(plan(&PAIR, &[]));
    rig.join("macro");
    rig.event(RunEvent::ProcessWatched(ProcessId::here(100)));
    rig.event(RunEvent::ProcessGone(ProcessId::here(100)));
    rig.lose("macro");
    assert_eq!(rig.failure(), None, "the guard knows more");
    rig.event(RunEvent::ProcessStarted(
        rig.id("macro"),
        ProcessId::here(100),
    ));
    rig.exit("macro", Exit::Signal(6, true));
    rig.assert_failure_begins("macro was ended by SIGABRT");
    rig.event(RunEvent::StartSkipped(rig.id("micro")));
    rig.assert_over(false);
}

#[test]
fn a_program_started_by_hand_that_dies_is_named() {
    let mut rig = Rig::new(plan(
        &PAIR,
        &[
            ("macro", StartMode::Manual(None)),
            ("micro", StartMode::Manual(None)),
        ],
    ));
    rig.join("macro");
    rig.event(RunEvent::ProcessWatched(ProcessId::here(100)));
    rig.join("micro");
    rig.event(RunEvent::ProcessWatched(ProcessId::here(101)));
    rig.lose("macro");
    assert_eq!(rig.failure(), None);
    rig.event(RunEvent::ProcessGone(ProcessId::here(100)));
    rig.assert_failure_begins("macro ended");
    assert!(!rig.finished, "micro is told and may end by itself");
    rig.fail("micro", "lost macro", true);
    rig.assert_over(false);
}

#[test]
fn a_program_that_opens_two_instances_is_named_as_the_one_that_was_started() {
    // The report of the start may come after both instances have joined.
    for late in [false, true] {
        let mut rig = Rig::begun(plan(&PAIR, &[("micro", StartMode::Manual(None))]));
        let started = RunEvent::ProcessStarted(rig.id("macro"), ProcessId::here(100));
        if !late {
            rig.event(started.clone());
        }
        rig.join("macro");
        rig.join_from("micro", 100);
        if late {
            rig.event(started);
        }
        rig.lose("micro");
        rig.lose("macro");
        rig.event(RunEvent::ProcessWatched(ProcessId::here(100)));
        rig.event(RunEvent::ProcessGone(ProcessId::here(100)));
        assert_eq!(rig.failure(), None, "the guard knows more");
        rig.exit("macro", Exit::Signal(6, false));
        rig.assert_failure_begins("macro was ended by SIGABRT");
        let affected_instances = rig.manager.affected_instances(&[rig.id("macro")]);
        let told =
            "had not closed yet when its process, which ran \"macro\" too, was ended by SIGABRT";
        assert_eq!(affected_instances, [(rig.id("micro"), told.to_owned())]);
        rig.assert_over(false);
    }
}

/// A host process with three instances, led by `macro`, and a peer.
fn hosted() -> Rig {
    let command = PlannedCommand::Host(Hosting {
        name: "cells".into(),
        ..Hosting::default()
    });
    let guest = StartMode::WithLeader(InstanceId(0));
    let conduits = [
        "macro.out o_i -> micro.in f_init",
        "other.out o_f -> peer.in f_init",
    ];
    let starts = [
        (
            "macro",
            StartMode::Program(PlannedProgram {
                command,
                ..PlannedProgram::default()
            }),
        ),
        ("micro", guest.clone()),
        ("other", guest),
    ];
    let mut rig = Rig::new(plan(&conduits, &starts));
    rig.join("peer");
    rig
}

#[test]
fn a_host_that_dies_is_named_and_not_one_of_its_instances() {
    for joined in [&["macro", "micro", "other"][..], &["micro"], &[]] {
        let mut rig = hosted();
        joined.iter().for_each(|name| rig.join_of_host(name));
        joined.iter().for_each(|name| rig.lose(name));
        assert_eq!(rig.failure(), None, "its exit may explain it");
        rig.exit("macro", KILLED);
        let failure = rig.failure().unwrap();
        assert!(
            failure.starts_with("host process cells was ended by SIGKILL"),
            "{joined:?}: {failure}"
        );
        assert_eq!(
            failure.contains("before all of its instances had joined"),
            joined.is_empty()
        );
        rig.wind_up_peer();
        let Some(RunOutcome::Failed(failure)) = rig.manager.outcome() else {
            panic!("it has failed")
        };
        let culprits = rig.manager.culprits(&failure.cause);
        assert_eq!(
            culprits,
            ["macro", "micro", "other"].map(|name| rig.id(name))
        );
        let affected_instances = rig.manager.affected_instances(&culprits);
        assert_eq!(
            affected_instances
                .iter()
                .map(|(id, _)| *id)
                .collect::<Vec<_>>(),
            [rig.id("peer")]
        );
    }
}

#[test]
fn an_instance_is_not_said_to_have_failed_as_the_process_that_it_shares() {
    let affected_instances = |rig: &Rig| {
        let affected_instances = rig.manager.affected_instances(&[rig.id("micro")]);
        affected_instances
            .into_iter()
            .map(|(id, how)| format!("{}: {how}", rig.manager.name(id)))
            .collect::<Vec<_>>()
    };
    // The other instance has joined, is done, or has not joined yet.
    for (other, told) in [
        (
            Some(false),
            &["other: had not closed yet when host process cells ended with exit code 1"][..],
        ),
        (Some(true), &[]),
        (None, &["other: had not joined yet"]),
    ] {
        let mut rig = hosted();
        rig.join_of_host("micro");
        other.iter().for_each(|_| rig.join_of_host("other"));
        other
            .iter()
            .filter(|done| **done)
            .for_each(|_| rig.done("other"));
        rig.join_of_host("macro");
        rig.fail("micro", "ValueError: negative mass", false);
        rig.done("macro");
        ["macro", "micro"].iter().for_each(|name| rig.lose(name));
        other.iter().for_each(|_| rig.lose("other"));
        rig.exit("macro", Exit::Code(1));
        rig.wind_up_peer();
        let affected_instances = affected_instances(&rig);
        assert_eq!(
            affected_instances[..affected_instances.len() - 1],
            *told,
            "{affected_instances:?}"
        );
    }
}

#[test]
fn an_error_of_one_instance_of_a_host_is_its_own_even_if_the_exit_comes_first() {
    let mut rig = hosted();
    rig.join_of_host("macro");
    rig.join_of_host("micro");
    rig.done("macro");
    rig.exit("macro", Exit::Code(1));
    assert_eq!(
        rig.failure(),
        None,
        "micro may have said why, though others are done or have not come"
    );
    rig.fail("micro", "ValueError: negative mass", false);
    assert_eq!(
        rig.failure().unwrap(),
        "micro reported an error: ValueError: negative mass"
    );
    rig.wind_up_peer();
}

#[test]
fn a_host_that_ends_well_without_all_of_its_instances_has_failed() {
    let mut rig = hosted();
    rig.join_of_host("micro");
    rig.exit("macro", Exit::Code(0));
    assert_eq!(rig.failure(), None, "the last words may still come");
    rig.done("micro");
    let failure = rig.failure().unwrap();
    assert_eq!(
        failure,
        "host process cells ended with exit code 0 before all of its instances had joined the run"
    );
    rig.wind_up_peer();

    let mut rig = hosted();
    for name in ["macro", "micro", "other"] {
        rig.join_of_host(name);
        rig.done(name);
    }
    rig.exit("macro", Exit::Code(3));
    let failure = rig.failure().unwrap();
    assert_eq!(
        failure,
        "host process cells ended with exit code 3 after its instances had finished their coupling"
    );
    rig.wind_up_peer();
}

#[test]
fn a_closed_port_waits_for_the_failure_of_who_closed_it() {
    // The reports about the two instances come in either order.
    for late in [false, true] {
        let mut rig = Rig::pair();
        if late {
            rig.fail_after("macro", &["micro"]);
            rig.lose("macro");
            rig.exit("macro", Exit::Code(1));
            assert_eq!(rig.failure(), None, "micro may have failed");
            rig.pass(ms(900));
        }
        rig.fail("micro", "1 message was never taken", false);
        if !late {
            rig.fail_after("macro", &["micro"]);
        }
        assert_eq!(
            rig.failure().unwrap(),
            "micro reported an error: 1 message was never taken"
        );
        let affected_instances = rig.manager.affected_instances(&[rig.id("micro")]);
        assert_eq!(
            affected_instances,
            [(rig.id("macro"), "port is closed".to_owned())]
        );
        wind_up(&mut rig);
    }
}

#[test]
fn a_closed_port_stands_first_once_who_closed_it_has_ended_well() {
    for late in [false, true] {
        let mut rig = Rig::pair();
        if late {
            rig.fail_after("macro", &["micro"]);
            assert_eq!(rig.failure(), None);
        }
        rig.done("micro");
        if !late {
            rig.fail_after("macro", &["micro"]);
        }
        let failure = rig.failure().unwrap();
        let text = "macro reported an error: port is closed\n(\"micro\" ended well, and nothing else had failed)";
        assert_eq!(failure, text);
        wind_up(&mut rig);
    }
}

#[test]
fn who_has_left_out_a_message_stands_before_who_missed_it() {
    for ends in [true, false] {
        let mut rig = Rig::pair();
        let text = "nothing was sent on O_F port 'final'".to_owned();
        rig.say(rig.link("micro"), left_out(&["macro"], text));
        if ends {
            rig.done("micro");
        }
        rig.fail_after("macro", &["micro"]);
        rig.pass(ms(if ends { 0 } else { 1000 }));
        let expected = "micro left its peers waiting: nothing was sent on O_F port 'final'";
        assert_eq!(rig.failure().unwrap(), expected);
        let affected_instances = rig.manager.affected_instances(&[rig.id("micro")]);
        assert_eq!(
            affected_instances,
            [(rig.id("macro"), "port is closed".to_owned())]
        );
        wind_up(&mut rig);
    }
}

fn left_out(peers: &[&str], text: String) -> ToManager {
    let peers = peers.iter().map(|peer| (*peer).to_owned()).collect();
    ToManager::Missed {
        instance: "micro".into(),
        peers,
        port: None,
        text,
    }
}

#[test]
fn who_has_withdrawn_a_field_is_to_blame_for_failures_that_tell_of_its_port_alone() {
    for (port, blamed) in [("micro.x", "micro"), ("micro.x2", "macro")] {
        let mut rig = Rig::pair();
        let (instance, text) = (
            "micro".to_owned(),
            "field on port 'x': withdrawn".to_owned(),
        );
        let (peers, withdrawn) = (vec!["macro".to_owned()], Some("micro.x".to_owned()));
        rig.say(
            rig.link("micro"),
            ToManager::Missed {
                instance,
                peers,
                port: withdrawn,
                text,
            },
        );
        let text = format!("port 'in' is closed: {port} has finished");
        let after = vec!["micro".to_owned()];
        rig.say(
            rig.link("macro"),
            ToManager::Failed {
                instance: "macro".into(),
                text,
                echo: false,
                after,
            },
        );
        rig.pass(ms(1000));
        assert!(
            rig.failure().unwrap().starts_with(blamed),
            "{:?}",
            rig.failure()
        );
        wind_up(&mut rig);
    }
}

#[test]
fn who_has_left_out_a_message_to_others_is_not_blamed_for_a_step_too_many() {
    let mut rig = Rig::pair();
    rig.say(
        rig.link("micro"),
        left_out(&["sink"], "nothing was sent on O_F port 'debug'".to_owned()),
    );
    rig.done("micro");
    rig.fail_after("macro", &["micro"]);
    rig.pass(ms(1000));
    rig.assert_failure_begins("macro");
    wind_up(&mut rig);
}

#[test]
fn behind_an_instance_that_ended_well_may_be_a_third_that_fails() {
    for fails in [true, false] {
        let mut rig = Rig::new(plan(
            &[
                "a.out o_i -> b.in f_init",
                "b.out o_f -> c.in f_init",
                "c.out o_f -> a.in s",
            ],
            &[],
        ));
        ["a", "b", "c"].iter().for_each(|name| rig.join(name));
        rig.done("c");
        rig.fail_after("a", &["c"]);
        assert_eq!(rig.failure(), None, "b has not ended");
        rig.pass(ms(900));
        match fails {
            true => rig.fail("b", "1 message was never taken", false),
            false => rig.done("b"),
        }
        let expected = match fails {
            true => "b reported an error: 1 message was never taken",
            false => {
                "a reported an error: port is closed\n(\"c\" ended well, and nothing else had failed)"
            }
        };
        assert_eq!(rig.failure().unwrap(), expected);
    }
}

#[test]
fn a_closed_port_that_nobody_explains_stands_first_after_a_moment_and_before_who_lost_its_program()
{
    let mut rig = Rig::new(plan(
        &[
            "a.out o_i -> b.in s",
            "b.out o_i -> c.in s",
            "c.out o_i -> a.in s",
        ],
        &[],
    ));
    ["a", "b", "c"].iter().for_each(|name| rig.join(name));
    rig.fail("a", "lost b", true);
    rig.pass(ms(500));
    rig.fail_after("b", &["c"]);
    rig.pass(ms(500));
    let failure = rig.failure().unwrap();
    assert!(
        failure.starts_with("b reported an error: port is closed\n(\"c\" had not ended yet"),
        "{failure}"
    );
}

#[test]
fn a_rank_that_closes_late_may_explain_the_end_of_rank_0() {
    let explanation = "rank 1 has sent it 6 times, and rank 0 5 times";
    let mut rig = Rig::new(plan(&PAIR, &[]));
    rig.join("macro");
    rig.join_with_two_ranks("micro");
    rig.fail_after("macro", &["micro"]);
    rig.pass(ms(3500));
    assert_eq!(rig.failure(), None, "micro may yet explain the end");
    rig.fail("micro", explanation, false);
    let expected = format!("micro reported an error: {explanation}");
    assert_eq!(rig.failure().unwrap(), expected);
}

#[test]
fn who_names_no_instance_that_there_is_has_failed_by_itself() {
    let mut rig = Rig::pair();
    rig.fail_after("macro", &["macro", "nobody"]);
    assert_eq!(
        rig.failure().unwrap(),
        "macro reported an error: port is closed"
    );
    wind_up(&mut rig);
}

#[test]
fn a_manager_that_was_away_blames_nobody_who_gave_it_up() {
    let text = "the run's manager has given no sign of life for 10.0 s";
    let mut rig = Rig::pair();
    rig.event(RunEvent::Suspended(Duration::from_secs(11)));
    rig.fail("micro", text, false);
    let failure = rig.failure().unwrap();
    assert!(
        failure.starts_with("titin itself was stopped for 11 s or longer"),
        "{failure}"
    );
    let mut affected_instances = rig.manager.affected_instances(&[]).into_iter();
    assert!(affected_instances.any(|(id, how)| id == rig.id("micro") && how == text));

    // The suspension does not explain another error, or an error long after the suspension.
    for (wait, text) in [
        (Duration::ZERO, "negative depth"),
        (Duration::from_secs(4), text),
    ] {
        let mut rig = Rig::pair();
        rig.event(RunEvent::Suspended(Duration::from_secs(11)));
        rig.pass(wait);
        rig.fail("micro", text, false);
        assert_eq!(
            rig.failure().unwrap(),
            format!("micro reported an error: {text}")
        );
    }
}

#[test]
fn whoever_does_not_end_is_asked_and_then_killed() {
    let mut rig = Rig::pair();
    rig.lose("macro");
    rig.exit("macro", KILLED);
    rig.pass(ms(4999));
    assert!(rig.signals.is_empty(), "programs have the grace period");
    rig.pass(ms(1));
    assert_eq!(rig.signals, [("micro".to_owned(), Signal::Terminate)]);
    rig.pass(ms(2000));
    assert_eq!(rig.signals[1], ("micro".to_owned(), Signal::Kill));
    rig.exit("micro", KILLED);
    rig.assert_over(false);
}

#[test]
fn what_even_sigkill_does_not_end_is_left_in_the_end() {
    let mut rig = Rig::pair();
    rig.lose("macro");
    rig.exit("macro", KILLED);
    rig.pass(Duration::from_secs(30));
    assert!(
        rig.logs
            .iter()
            .any(|(_, text)| text.contains("nobody has seen it end"))
    );
    rig.assert_over(false);
}

#[test]
fn an_interrupt_ends_the_run_and_a_second_one_at_once() {
    let mut rig = Rig::pair();
    rig.event(RunEvent::Interrupted("SIGINT".into()));
    assert_eq!(rig.failure().unwrap(), "the user ended the run (SIGINT)");
    assert!(rig.was_told_of_failure("macro") && rig.was_told_of_failure("micro"));
    rig.event(RunEvent::Interrupted("SIGINT".into()));
    assert!(
        rig.signals.is_empty(),
        "it came at once: a terminal's Ctrl-C that was passed on"
    );
    rig.pass(Duration::from_secs(1));
    rig.event(RunEvent::Interrupted("SIGINT".into()));
    assert_eq!(rig.signals.len(), 2);
    assert!(
        rig.signals
            .iter()
            .all(|(_, signal)| *signal == Signal::Kill)
    );
    rig.exit("macro", KILLED);
    rig.exit("micro", KILLED);
    rig.assert_over(false);
}

#[test]
fn nothing_is_started_any_more_once_the_run_has_failed() {
    let mut rig = Rig::begun(plan(
        &["a.out o_f -> b.in f_init", "a.more o_f -> c.in f_init"],
        &[],
    ));
    rig.event(RunEvent::StartFailed(rig.id("a"), "no such file".into()));
    assert!(rig.stopped);
    rig.event(RunEvent::StartSkipped(rig.id("b")));
    assert!(!rig.finished, "c may have been on its way");
    rig.event(RunEvent::ProcessStarted(rig.id("c"), ProcessId::here(102)));
    rig.pass(ms(5100));
    assert_eq!(rig.signals, [("c".to_owned(), Signal::Terminate)]);
    rig.exit("c", Exit::Signal(15, false));
    rig.assert_over(false);
    let affected_instances = rig.manager.affected_instances(&[rig.id("a")]);
    assert_eq!(
        affected_instances[0],
        (rig.id("b"), "was not started any more".to_owned())
    );
}

#[test]
fn files_that_cannot_be_staged_fail_the_instance_that_needs_them() {
    let mut rig = Rig::begun(plan(&PAIR, &[]));
    rig.event(RunEvent::StagingFailed(
        rig.id("macro"),
        "there is no mesh.txt".into(),
    ));
    assert_eq!(
        rig.failure().unwrap(),
        "macro could not be started: there is no mesh.txt"
    );
    rig.event(RunEvent::StartSkipped(rig.id("micro")));
    rig.assert_over(false);
}

#[test]
fn whoever_is_still_being_prepared_does_not_hold_up_the_end() {
    let mut rig = Rig::begun(plan(&PAIR, &[]));
    rig.event(RunEvent::ProcessStarted(
        rig.id("micro"),
        ProcessId::here(101),
    ));
    rig.event(RunEvent::Interrupted("SIGINT".into()));
    assert!(!rig.finished);
    rig.pass(Duration::from_secs(1));
    rig.event(RunEvent::Interrupted("SIGINT".into()));
    // The guard had already got the order to start macro.
    rig.event(RunEvent::ProcessStarted(
        rig.id("macro"),
        ProcessId::here(100),
    ));
    let killed = ["micro", "macro"].map(|name| (name.to_owned(), Signal::Kill));
    assert_eq!(rig.signals[rig.signals.len() - 2..], killed);
    rig.exit("macro", KILLED);
    rig.exit("micro", KILLED);
    rig.assert_over(false);

    let mut rig = Rig::begun(plan(&PAIR, &[]));
    rig.event(RunEvent::Interrupted("SIGINT".into()));
    rig.pass(Duration::from_secs(8));
    rig.assert_over(false);
}

#[test]
fn the_next_deadline_is_never_in_the_past() {
    let mut rig = Rig::pair();
    rig.event(RunEvent::Interrupted("SIGINT".into()));
    while !rig.finished {
        assert!(rig.manager.deadline() > rig.now, "at {:?}", rig.now);
        rig.now = rig.manager.deadline();
        rig.event(RunEvent::Tick);
    }
    rig.assert_over(false);
}

#[test]
fn the_loss_of_the_guard_ends_the_run_without_its_reports() {
    let mut rig = Rig::pair();
    rig.event(RunEvent::HostLost(
        HostId::MANAGER,
        "was ended by SIGKILL".into(),
    ));
    assert!(
        rig.failure()
            .unwrap()
            .starts_with("the guard was ended by SIGKILL")
    );
    rig.assert_over(false);
}

#[test]
fn trouble_of_the_manager_ends_the_run() {
    let mut rig = Rig::pair();
    rig.event(RunEvent::ManagerFailed("the run directory is full".into()));
    assert_eq!(rig.failure().unwrap(), "the run directory is full");
    rig.event(RunEvent::ManagerFailed("it still is".into()));
    assert_eq!(rig.failure().unwrap(), "the run directory is full");
    wind_up(&mut rig);
}

#[test]
fn whoever_comes_after_the_failure_is_told_and_refused() {
    let mut rig = Rig::new(plan(&PAIR, &[]));
    rig.exit("micro", Exit::Code(2));
    rig.event(RunEvent::LinkOpened(rig.link("macro")));
    assert!(rig.was_told_of_failure("macro"));
    let registration = rig.registration("macro");
    rig.say(rig.link("macro"), ToManager::Register(registration));
    let text = rig.refusal(rig.link("macro")).unwrap();
    assert_eq!(text, "the run has failed already (micro)");
    rig.exit("macro", Exit::Code(1));
    rig.assert_over(false);
    assert_eq!(
        rig.manager.affected_instances(&[rig.id("micro")]),
        [],
        "nothing of it was lost"
    );
}

#[test]
fn a_silent_host_is_lost_and_a_silent_debugger_is_not() {
    // titin has started both programs, so the manager knows that their processes live.
    let mut rig = Rig::pair();
    rig.pass(Duration::from_secs(60));
    assert_eq!(rig.failure(), None);
    let silent = rig
        .logs
        .iter()
        .filter(|(_, text)| text.contains("its process lives"));
    assert_eq!(silent.count(), 2, "said once each");

    let mut rig = Rig::new(plan(&PAIR, &[("micro", StartMode::Manual(None))]));
    rig.join("macro");
    rig.event(RunEvent::LinkOpened(rig.link("micro")));
    let registration = Registration {
        host: "elsewhere".into(),
        ..rig.registration("micro")
    };
    rig.say(rig.link("micro"), ToManager::Register(registration));
    rig.pass(Duration::from_secs(15));
    rig.assert_failure_begins("micro was silent for 1");
    assert_eq!(rig.closed, [rig.link("micro")]);
    rig.lose("macro");
    rig.exit("macro", Exit::Code(1));
    rig.assert_over(false);
}

#[test]
fn a_hosted_instance_that_does_not_return_ends_its_host() {
    let mut rig = Rig::new(plan(&PAIR, &[("micro", StartMode::Hosted)]));
    rig.join("macro");
    rig.join("micro");
    rig.event(RunEvent::ProcessWatched(ProcessId::here(101)));
    rig.lose("macro");
    rig.exit("macro", KILLED);
    rig.pass(ms(5000));
    assert_eq!(rig.signalled, [(ProcessId::here(101), Signal::Terminate)]);
    rig.event(RunEvent::ProcessGone(ProcessId::here(101)));
    rig.lose("micro");
    rig.assert_over(false);
}

#[test]
fn a_hosted_instance_that_has_returned_does_not_cost_its_host() {
    let mut rig = Rig::new(plan(
        &["a.out o_f -> b.in f_init", "c.out o_f -> b.more f_init"],
        &[("a", StartMode::Hosted)],
    ));
    for name in ["a", "b", "c"] {
        rig.join(name);
    }
    rig.event(RunEvent::ProcessWatched(ProcessId::here(100)));
    rig.done("a");
    rig.lose("c");
    rig.exit("c", KILLED);
    rig.pass(ms(7000));
    assert_eq!(rig.signals.last(), Some(&("b".to_owned(), Signal::Kill)));
    assert_eq!(rig.signalled, []);
    rig.exit("b", KILLED);
    rig.assert_over(false);
}

#[test]
fn links_and_messages_of_strangers_are_passed_over() {
    let mut rig = Rig::pair();
    rig.event(RunEvent::LinkLost(LinkId(900), "reset".into()));
    rig.say(
        LinkId(900),
        ToManager::Done {
            instance: "macro".into(),
        },
    );
    rig.event(RunEvent::ProcessGone(ProcessId::here(4)));
    rig.event(RunEvent::ProcessWatched(ProcessId::here(4)));
    assert_eq!(rig.failure(), None);
    assert_eq!(rig.phase("macro"), Phase::Running);
}

#[test]
fn a_program_that_is_in_no_plan_is_a_fault_of_the_guard() {
    for number in [2, u32::MAX] {
        let mut rig = Rig::begun(plan(&PAIR, &[]));
        rig.event(RunEvent::ProcessStarted(
            InstanceId(number),
            ProcessId::here(7),
        ));
        let failure = rig.failure().unwrap();
        assert!(
            failure.contains(&format!(
                "told of a program with number {number}, which it was not to start"
            )),
            "{failure}"
        );
    }
}

proptest! {
    #[test]
    fn whatever_a_guard_reports_the_state_holds_together(
        reports in prop::collection::vec((0_u8..4, 0_u32..3, 0_u32..4, any::<i32>()), 0..12),
    ) {
        let mut rig = Rig::begun(plan(&PAIR, &[]));
        for (kind, number, pid, code) in reports {
            let (id, pid) = (InstanceId(number), pid.wrapping_sub(1));
            rig.event(match kind {
                0 => RunEvent::ProcessStarted(id, ProcessId::here(pid)),
                1 => RunEvent::StartFailed(id, "no".into()),
                2 => RunEvent::ProcessEnded(id, Exit::Code(code)),
                _ => RunEvent::ProcessEnded(id, Exit::Signal(code, code % 2 == 0)),
            });
        }
        rig.event(RunEvent::HostLost(HostId::MANAGER, "was ended".into()));
        rig.pass(Duration::from_secs(600));
        prop_assert!(rig.manager.outcome().is_some());
    }
}
