//! What an observer is told, and that observers change nothing.

use titin_wire::observation::{AwaitedPort, ObservedInstance, ObservedRun, ProcessPlace};

use super::*;

/// The link of an observer.
const OBSERVER: LinkId = LinkId(77);

impl Rig {
    fn observe(&mut self) -> ObservedRun {
        self.reported.clear();
        self.say(OBSERVER, ToManager::Observe {});
        match self.reported.remove(&OBSERVER).unwrap().pop() {
            Some(ToProgram::Observed(run)) => *run,
            other => panic!("{other:?}"),
        }
    }

    fn observed(&mut self, name: &str) -> ObservedInstance {
        let id = self.id(name);
        self.observe().instances.swap_remove(id.index())
    }
}

#[test]
fn an_observer_is_told_of_states_progress_and_waits() {
    let mut rig = Rig::new(plan(&PAIR, &[]));
    rig.event(RunEvent::LinkOpened(OBSERVER));
    let run = rig.observe();
    assert_eq!((run.model.as_str(), run.host.as_str()), ("demo", HOST));
    assert_eq!(run.failure, None);
    let states: Vec<&str> = run.instances.iter().map(|one| one.state.as_str()).collect();
    assert_eq!(states, ["starting", "starting"]);
    rig.join("macro");
    rig.join("micro");
    rig.say(
        rig.link("macro"),
        ToManager::Progress(titin_wire::control::Progress {
            instance: "macro".into(),
            simulated: Some(2.5),
            messages: 3,
            bytes: 24,
            end: Some(10.0),
        }),
    );
    rig.wait("micro", 1, &[(0, 3)]);
    let process = Some(ProcessPlace {
        host: None,
        pid: 100,
    });
    assert_eq!(
        rig.observed("macro"),
        ObservedInstance {
            name: "macro".into(),
            state: "running".into(),
            simulated: Some(2.5),
            end: Some(10.0),
            messages: 3,
            bytes: 24,
            process,
            text: None,
            waits: Vec::new(),
        }
    );
    let micro = rig.observed("micro");
    assert_eq!(micro.state, "waiting");
    let text = "waits to receive message 4 on in, for macro.out";
    assert_eq!(micro.text.as_deref(), Some(text));
    let awaited = AwaitedPort {
        port: "in".into(),
        peer: "macro".into(),
        peer_port: "out".into(),
        sends: false,
    };
    assert_eq!(micro.waits, [awaited]);
}

#[test]
fn an_observer_that_comes_and_goes_changes_nothing() {
    let mut rig = Rig::pair();
    rig.event(RunEvent::LinkOpened(OBSERVER));
    rig.observe();
    rig.event(RunEvent::LinkLost(
        OBSERVER,
        "the user has seen enough".into(),
    ));
    // A link that was never opened gets no answer.
    rig.reported.clear();
    rig.say(LinkId(78), ToManager::Observe {});
    assert!(rig.reported.is_empty());
    for name in ["macro", "micro"] {
        rig.done(name);
        rig.leave(name);
    }
    rig.assert_over(true);
}

#[test]
fn an_observer_is_told_of_the_failure_while_programs_end() {
    let mut rig = Rig::pair();
    rig.event(RunEvent::LinkOpened(OBSERVER));
    rig.fail("macro", "17 cells are dry", false);
    let run = rig.observe();
    let failure = run.failure.unwrap();
    assert!(failure.contains("17 cells are dry"), "{failure}");
    let states: Vec<&str> = run.instances.iter().map(|one| one.state.as_str()).collect();
    assert_eq!(states, ["failed", "running"]);
    rig.exit("macro", Exit::Code(3));
    let ended = rig.observed("macro");
    assert_eq!(ended.process, None);
    assert_eq!(ended.text.as_deref(), Some("ended with exit code 3"));
}
