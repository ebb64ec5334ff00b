//! Several hosts: programs start when all are ready, and each host may be late, silent or lost.

use super::*;
use crate::plan::{AgentStart, PerInstance, PlannedHost, PlannedSite};

const FURTHER: [HostId; 2] = [HostId(1), HostId(2)];

fn process(host: HostId, pid: u32) -> ProcessId {
    ProcessId { host, pid }
}

impl Rig {
    /// The pair on two further hosts, `n1` and `n2`, which are ready. Each instance has process 7 of its
    /// host, and has joined.
    fn apart() -> Self {
        Rig::apart_in(plan(&PAIR, &[]))
    }

    fn apart_in(plan: Plan) -> Self {
        let mut rig = Rig::begun_on(plan, &["n1", "n2"]);
        for (host, name) in FURTHER.into_iter().zip(["one", "two"]) {
            rig.event(RunEvent::HostReady(host, name.into()));
        }
        for ((host, system_name), name) in FURTHER
            .into_iter()
            .zip(["one", "two"])
            .zip(["macro", "micro"])
        {
            let started = RunEvent::ProcessStarted(rig.id(name), process(host, 7));
            rig.event(started);
            let registration = Registration {
                pid: 7,
                host: system_name.into(),
                ..rig.registration(name)
            };
            rig.register(rig.link(name), registration);
        }
        rig.reported.clear();
        rig
    }

    fn hear_hosts(&mut self) {
        for host in FURTHER {
            self.event(RunEvent::HostHeard(host));
        }
    }
}

#[test]
fn programs_start_when_all_hosts_are_ready() {
    let mut rig = Rig::begun_on(plan(&PAIR, &[]), &["n1", "n2"]);
    assert!(rig.begun.is_empty());
    rig.event(RunEvent::HostReady(FURTHER[1], "two".into()));
    assert!(rig.begun.is_empty());
    rig.event(RunEvent::HostReady(FURTHER[0], "one".into()));
    assert_eq!(rig.begun, [InstanceId(0), InstanceId(1)]);
}

#[test]
fn hosts_that_are_late_are_named() {
    let mut rig = Rig::begun_on(plan(&PAIR, &[]), &["n1", "n2", "n3"]);
    rig.event(RunEvent::HostReady(FURTHER[1], "two".into()));
    assert!(rig.manager.deadline() <= rig.manager.plan.options.patience);
    rig.now = rig.manager.plan.options.patience;
    rig.event(RunEvent::HostHeard(FURTHER[1]));
    rig.event(RunEvent::Tick);
    let failure = rig.failure().unwrap();
    assert_eq!(failure, "hosts n1, n3 have no agent after 300 s");
    assert!(rig.finished && rig.stopped && rig.begun.is_empty());
}

#[test]
fn an_interrupt_ends_a_run_that_waits_for_its_hosts() {
    let mut rig = Rig::begun_on(plan(&PAIR, &[]), &["n1"]);
    rig.event(RunEvent::Interrupted("SIGINT".into()));
    assert!(rig.finished && rig.begun.is_empty());
}

#[test]
fn processes_of_the_same_number_on_two_hosts_are_two_processes() {
    let mut rig = Rig::apart();
    assert_eq!(rig.watches, []);
    rig.event(RunEvent::ProcessEnded(rig.id("micro"), Exit::Code(3)));
    rig.pass(ms(5000));
    assert_eq!(
        rig.failure().unwrap(),
        "micro on host n2 ended with exit code 3"
    );
    let running = InstanceProcess::Running(process(FURTHER[0], 7));
    assert_eq!(rig.manager.members[rig.id("macro")].process, running);
}

#[test]
fn a_process_behind_a_script_is_watched_on_its_host() {
    let mut rig = Rig::begun_on(plan(&PAIR, &[]), &["n1"]);
    rig.event(RunEvent::HostReady(FURTHER[0], "one".into()));
    let started = RunEvent::ProcessStarted(rig.id("macro"), process(FURTHER[0], 7));
    rig.event(started);
    let registration = Registration {
        pid: 8,
        host: "one".into(),
        ..rig.registration("macro")
    };
    rig.register(rig.link("macro"), registration);
    assert_eq!(rig.watches, [process(FURTHER[0], 8)]);
    // A process of the same number here is another process.
    rig.event(RunEvent::ProcessGone(ProcessId::here(8)));
    assert!(!rig.manager.members[rig.id("macro")].watched_process_gone);
    rig.event(RunEvent::ProcessGone(process(FURTHER[0], 8)));
    assert!(rig.manager.members[rig.id("macro")].watched_process_gone);
}

#[test]
fn a_silent_host_is_lost_and_a_host_that_answers_is_not() {
    let mut rig = Rig::apart();
    let limit = rig.manager.plan.options.heartbeat;
    for _ in 0..3 {
        rig.now += limit / 3 + ms(1);
        rig.event(RunEvent::HostHeard(FURTHER[0]));
        rig.event(RunEvent::Tick);
    }
    assert!(rig.heartbeats.contains(&FURTHER[0]) && rig.heartbeats.contains(&FURTHER[1]));
    let failure = rig.failure().unwrap();
    assert!(
        failure.starts_with("the agent of host n2 was silent for 8.0 s"),
        "{failure}"
    );
    assert_eq!(rig.closed_hosts, [FURTHER[1]]);
    assert_eq!(
        rig.manager.members[rig.id("micro")].process,
        InstanceProcess::Unknown
    );
    assert!(rig.was_told_of_failure("macro"));
    let affected = rig.manager.affected_instances(&[]);
    let told: Vec<&str> = affected.iter().map(|(_, told)| told.as_str()).collect();
    assert_eq!(told, ["was told to end", "was lost with its host"]);
}

#[test]
fn a_silent_host_is_lost_at_the_end_of_its_time_and_not_at_the_next_heartbeat() {
    let mut rig = Rig::apart();
    rig.hear_hosts();
    rig.now += ms(500);
    rig.hear_hosts();
    let due = rig.now + rig.manager.plan.options.heartbeat;
    while rig.now < due {
        assert_eq!(rig.failure(), None);
        rig.now = rig.manager.deadline();
        rig.event(RunEvent::HostHeard(FURTHER[0]));
    }
    assert_eq!(rig.now, due);
    assert_eq!(rig.closed_hosts, [FURTHER[1]]);
}

#[test]
fn a_lost_host_ends_the_run_and_the_other_host_is_ended() {
    let mut rig = Rig::apart();
    rig.hear_hosts();
    rig.event(RunEvent::HostLost(FURTHER[1], "has ended".into()));
    assert_eq!(rig.failure().unwrap(), "the agent of host n2 has ended");
    rig.event(RunEvent::LinkLost(rig.link("micro"), "closed".into()));
    rig.event(RunEvent::ProcessEnded(rig.id("macro"), Exit::Code(1)));
    rig.pass(ms(2000));
    assert!(rig.finished);
}

#[test]
fn a_lost_host_at_another_site_explains_a_link_that_was_lost_before() {
    for (site, seconds) in [(None, 1), (Some(0), 6)] {
        let mut plan = plan(&PAIR, &[]);
        plan.hosts.push(PlannedHost {
            site,
            ..PlannedHost::default()
        });
        let mut rig = Rig::apart_in(plan);
        rig.hear_hosts();
        rig.event(RunEvent::LinkLost(rig.link("micro"), "closed".into()));
        for _ in 0..seconds * 10 - 1 {
            rig.pass(ms(100));
            rig.hear_hosts();
        }
        assert_eq!(rig.failure(), None);
        rig.event(RunEvent::HostLost(FURTHER[1], "has ended".into()));
        assert_eq!(rig.failure().unwrap(), "the agent of host n2 has ended");
    }
}

#[test]
fn a_start_that_a_lost_host_does_not_make_holds_up_nothing() {
    let mut rig = Rig::begun_on(plan(&PAIR, &[]), &["n1"]);
    rig.event(RunEvent::HostReady(FURTHER[0], "one".into()));
    let started = RunEvent::ProcessStarted(rig.id("macro"), ProcessId::here(100));
    rig.event(started);
    rig.event(RunEvent::HostLost(FURTHER[0], "has ended".into()));
    rig.event(RunEvent::ProcessEnded(rig.id("macro"), Exit::Code(1)));
    assert!(!rig.finished);
    rig.event(RunEvent::StartSkipped(rig.id("micro")));
    assert!(rig.finished);
}

#[test]
fn an_agent_that_gave_up_a_stopped_manager_is_not_blamed() {
    for (after, begin) in [
        (ms(10), "titin itself was stopped"),
        (ms(60_000), "the agent of host n2"),
    ] {
        let mut rig = Rig::apart();
        rig.event(RunEvent::Suspended(Duration::from_secs(40)));
        rig.now += after;
        rig.hear_hosts();
        rig.event(RunEvent::HostLost(FURTHER[1], "heard nothing".into()));
        rig.assert_failure_begins(begin);
    }
}

#[test]
fn the_user_has_the_whole_time_from_the_moment_of_the_instructions() {
    let by_hand = plan(&PAIR, &[("macro", StartMode::Manual(None))]);
    let mut rig = Rig::begun_on(by_hand, &["n1"]);
    let patience = rig.manager.plan.options.patience;
    rig.now = patience - ms(1);
    rig.event(RunEvent::HostReady(FURTHER[0], "one".into()));
    rig.now += patience - ms(10);
    rig.event(RunEvent::HostHeard(FURTHER[0]));
    rig.event(RunEvent::Tick);
    assert_eq!(rig.failure(), None);
    rig.now += ms(20);
    rig.event(RunEvent::HostHeard(FURTHER[0]));
    rig.event(RunEvent::Tick);
    rig.assert_failure_begins("macro did not join the run");
}

/// The pair on two further hosts, `n2` at the site south. The manager waits for a line for 8 s.
fn beyond_a_line() -> Rig {
    let mut plan = plan(&PAIR, &[]);
    plan.sites.push(PlannedSite {
        name: "south".into(),
        relay: "login:4710".into(),
    });
    plan.hosts = vec![
        PlannedHost::default(),
        PlannedHost {
            site: Some(0),
            ..PlannedHost::default()
        },
    ];
    plan.options.line_patience = Duration::from_secs(8);
    let mut rig = Rig::apart_in(plan);
    rig.hear_hosts();
    rig.logs.clear();
    rig
}

impl Rig {
    /// Passes a time in which only the host `n1` is heard.
    fn pass_without_south(&mut self, seconds: u64) {
        for _ in 0..seconds * 10 {
            self.pass(ms(100));
            self.event(RunEvent::HostHeard(FURTHER[0]));
        }
    }

    /// The warnings about hosts.
    fn warnings(&self) -> Vec<&str> {
        let warnings = self
            .logs
            .iter()
            .filter(|(level, text)| *level == Level::Warning && text.contains("host n2"));
        warnings.map(|(_, text)| text.as_str()).collect()
    }
}

#[test]
fn an_outage_that_heals_is_told_once_with_its_end() {
    let mut rig = beyond_a_line();
    let due = rig.now + ms(5000);
    assert!(rig.manager.deadline() <= due);
    rig.pass_without_south(4);
    assert_eq!(rig.warnings(), [""; 0]);
    rig.pass_without_south(8);
    let expected = "nothing has come from host n2 (site south) for 5 s: the line may be away, or a relay refuses the run, \
                    as its log says; the host counts as lost after 16 s (`patience` and `heartbeat`)";
    assert_eq!(rig.warnings(), [expected]);
    assert_eq!(rig.asked_relays, [FURTHER[1]]);
    rig.event(RunEvent::HostHeard(FURTHER[1]));
    assert_eq!(rig.warnings(), [expected, "host n2 is back after 12 s"]);
    rig.hear_hosts();
    rig.pass_without_south(6);
    assert_eq!(rig.warnings().len(), 3, "the next outage is told too");
    assert_eq!(rig.failure(), None);
}

#[test]
fn nobody_claims_that_programs_at_a_silent_host_have_ended() {
    let mut rig = beyond_a_line();
    rig.pass_without_south(6);
    rig.event(RunEvent::Interrupted("SIGINT".into()));
    rig.pass_without_south(1);
    rig.logs.clear();
    rig.event(RunEvent::Interrupted("SIGINT".into()));
    let killed = |text: &str| (Level::Info, text.to_owned());
    let silent = "nothing has come from host n2 (site south) for 7 s";
    let on_its_way = format!("{silent}; SIGKILL is on the way there");
    let unknown = format!("nobody knows whether process 7 on n2 has ended: {silent}");
    let expected = [
        killed("does not end; killed (SIGKILL)"),
        killed(&on_its_way),
        (Level::Error, unknown),
    ];
    assert_eq!(rig.logs, expected);
    rig.exit("macro", Exit::Signal(9, false));
    assert!(rig.finished, "the run does not wait for the host");
}

#[test]
fn a_host_behind_a_line_is_lost_with_the_line_and_the_times_named() {
    let mut rig = beyond_a_line();
    rig.pass_without_south(22);
    let failure = rig.failure().unwrap();
    assert!(
        failure.starts_with("host n2 at the site south has sent nothing for ")
            && failure
                .contains("longer than `patience` (8 s) and `heartbeat` (8 s) together: the line,"),
        "{failure}"
    );
    assert_eq!(rig.closed_hosts, [FURTHER[1]]);
    assert_eq!(rig.warnings().len(), 1, "{:?}", rig.warnings());
}

#[test]
fn the_user_is_told_again_and_again_for_which_hosts_the_run_waits() {
    let mut plan = plan(&PAIR, &[]);
    plan.hosts = vec![PlannedHost::default(); 3];
    plan.hosts[1].start = AgentStart::ByHand;
    let mut rig = Rig::begun_on(plan, &["n1", "n2", "n3"]);
    for seconds in [9, 10, 11, 69, 70] {
        rig.now = Duration::from_secs(seconds);
        rig.event(RunEvent::Tick);
        assert!(rig.manager.deadline() > rig.now);
    }
    let missing = vec![HostId(1), HostId(3)];
    assert_eq!(rig.missing_hosts, [missing.clone(), missing]);
    rig.event(RunEvent::HostReady(HostId(1), "one".into()));
    rig.event(RunEvent::HostReady(HostId(3), "three".into()));
    rig.now = Duration::from_secs(131);
    rig.event(RunEvent::Tick);
    assert_eq!(
        rig.missing_hosts.len(),
        2,
        "the user knows of agents by hand"
    );
}

#[test]
fn a_program_that_cannot_start_is_named_with_its_host() {
    for (site, place) in [(None, "n2"), (Some(0), "n2 (site south)")] {
        let mut plan = plan(&PAIR, &[]);
        plan.sites.push(PlannedSite {
            name: "south".into(),
            relay: String::new(),
        });
        plan.hosts = vec![PlannedHost::default(); 2];
        plan.hosts[1].site = site;
        let mut rig = Rig::begun_on(plan, &["n1", "n2"]);
        rig.event(RunEvent::HostReady(FURTHER[0], "one".into()));
        rig.event(RunEvent::HostReady(FURTHER[1], "two".into()));
        let placed = PerInstance::make(2, |id: InstanceId| FURTHER[id.index()]);
        rig.event(RunEvent::Placed(placed));
        let micro = rig.id("micro");
        rig.event(RunEvent::StartFailed(micro, "there is no program x".into()));
        let failure = rig.failure().unwrap();
        let expected = format!("micro on host {place} could not be started: there is no program x");
        assert_eq!(failure, expected);
    }
}

#[test]
fn an_agent_that_fails_by_itself_is_no_host_that_is_away() {
    let mut rig = Rig::apart();
    rig.event(RunEvent::Suspended(Duration::from_secs(40)));
    rig.event(RunEvent::AgentFailed(FURTHER[1], "cannot make /x".into()));
    assert_eq!(
        rig.failure().unwrap(),
        "the agent of host n2 cannot make /x"
    );
}
