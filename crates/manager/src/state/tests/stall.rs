//! Waits for room that last because another instance polls.

use super::deadlock::joined;
use super::*;

const ROUND: Duration = Duration::from_secs(10);

/// `b` receives only on `other`. `a` sends nothing on `more`, because the buffer of `in` is full.
const CONDUITS: [&str; 2] = ["a.out o_i -> b.in s", "a.more o_i -> b.other s"];

impl Rig {
    /// Waits for the next question, for `b` alone, and answers for `b`: with the number of messages
    /// received on the polled port, or without a poll.
    fn ask_b(&mut self, polls: Option<u64>) {
        let asked = self.asked_within(ROUND);
        let [(name, probe, conduits)] = &asked[..] else {
            panic!("{asked:?}")
        };
        assert!(name == "b" && conduits.is_empty());
        let polls = polls.map(|count| self.end("b", &(1, count)));
        let (instance, probe, wait, counts) = (name.clone(), *probe, None, Vec::new());
        self.say(
            self.link("b"),
            ToManager::Counts {
                instance,
                probe,
                wait,
                counts,
                polls,
            },
        );
    }

    fn stalls(&self) -> Vec<&str> {
        let told = self
            .logs
            .iter()
            .filter(|(level, _)| *level == Level::Warning);
        told.map(|(_, text)| text.as_str())
            .filter(|text| text.starts_with("nothing has moved"))
            .collect()
    }
}

#[test]
fn who_waits_for_room_while_another_polls_is_told_once() {
    let mut rig = joined(&CONDUITS);
    rig.wait("a", 1, &[(0, 4)]);
    rig.ask_b(Some(2));
    rig.ask_b(Some(2));
    assert_eq!(rig.stalls(), [""; 0], "it has not lasted for long");
    rig.ask_b(Some(2));
    let [text] = rig.stalls()[..] else {
        panic!("{:?}", rig.logs)
    };
    let begin = "nothing has moved for 30 s: 2 instances wait for each other in a cycle\n  \
                 a waits to send message 5 on out (its buffer is full), for b.in\n  \
                 b polls, or waits with a time limit, to receive message 3 on other, for a.more\n";
    assert!(text.starts_with(begin), "{text}");
    rig.ask_b(Some(2));
    assert_eq!(rig.stalls().len(), 1);
    assert_eq!(rig.failure(), None);

    rig.event(RunEvent::Interrupted("SIGINT".into()));
    let waits = &rig.manager.run_state.failure().unwrap().waits;
    assert_eq!(
        waits.iter().map(|(id, _)| *id).collect::<Vec<_>>(),
        [rig.id("a"), rig.id("b")]
    );
    assert!(
        waits[1].1.starts_with("polls, or waits with a time limit,"),
        "{waits:?}"
    );
}

#[test]
fn who_gets_something_now_and_then_does_not_stand_still() {
    let mut rig = joined(&CONDUITS);
    rig.wait("a", 1, &[(0, 4)]);
    (0..6).for_each(|count| rig.ask_b(Some(count)));
    assert_eq!(rig.stalls(), [""; 0]);
    // From now on `b` gets no further message.
    (0..2).for_each(|_| rig.ask_b(Some(5)));
    assert_eq!(rig.stalls().len(), 1);
}

#[test]
fn who_computes_for_long_holds_up_its_sender_and_no_more() {
    let mut rig = joined(&CONDUITS);
    rig.wait("a", 1, &[(0, 4)]);
    (0..6).for_each(|_| rig.ask_b(None));
    assert_eq!(rig.stalls(), [""; 0]);
    // After `a` has got room, the manager asks no instance.
    rig.proceed("a", 1);
    assert!(rig.asked_within(6 * ROUND).is_empty());
}

#[test]
fn an_answer_of_long_ago_says_nothing() {
    let mut rig = joined(&CONDUITS);
    rig.wait("a", 1, &[(0, 4)]);
    rig.ask_b(Some(2));
    // No further answers come.
    (0..3).for_each(|_| drop(rig.asked_within(ROUND)));
    rig.event(RunEvent::Interrupted("SIGINT".into()));
    let waits = &rig.manager.run_state.failure().unwrap().waits;
    assert_eq!((rig.stalls().len(), waits.len()), (0, 1), "{waits:?}");
}
