//! The versions of a field that its sender keeps for a receiver that pulls: which are kept, which is taken, in what order the
//! ranks follow. No I/O, and it waits for nothing.
//!
//! Rank 0 of the sender [chooses](Chooser): by the versions that it has itself it says what the receiver gets, and what is
//! given up. All ranks of the sender, rank 0 too, [follow](Keeper): each does what rank 0 has decided in that order, as soon as it
//! has got so far itself. So all ranks of the receiver get the same version, and every owner has it.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use titin_model::{VersionCache, WhenFull};

/// What is told between ranks about the versions of a field.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) enum Word {
    /// Rank 0 of the receiver asks for a version.
    Ask(Question),
    /// It has what the question of this number was answered with.
    Took(u64),
    /// It asks for no more.
    Leave,
    /// Rank 0 of the sender has the other ranks do this, behind what it told them before.
    Order(Order),
}

/// What a receiver asks for.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Question {
    /// Rising; only the last one is answered.
    pub(crate) number: u64,
    /// The version at or before this simulated time; `None` for the latest one.
    pub(crate) at: Option<f64>,
}

/// What every rank of the sender does.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) enum Order {
    /// Sends the pieces of this version.
    Serve(u64),
    /// Gives up the versions before this one.
    GiveUp(u64),
    /// May keep so many from now on.
    Raise(u32),
    /// Produces so many in all, as rank 0 does.
    Complete(u64),
    /// Keeps and sends no more.
    End,
}

/// What rank 0 of the sender has decided.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Decision {
    /// Tells the receiver that a version follows, in answer to this question.
    Announce { question: u64, version: u64 },
    /// Tells it why none does.
    Refuse { question: u64, why: Refusal },
    /// All ranks do this.
    Order(Order),
}

/// Why a receiver does not get what it asks for: the time, and that of the oldest version that there is, or of the last one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Refusal {
    /// The version at that time was given up.
    Evicted { at: f64, oldest: f64 },
    /// There never was one so early.
    TooEarly { at: f64, first: f64 },
    /// None will follow the last one, which it has, though the sender goes on.
    TooLate { at: f64, last: f64 },
}

/// What rank 0 of the sender knows of a version.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Stamped {
    number: u64,
    timestamp: f64,
    next: Option<f64>,
}

/// Rank 0 of the sender, as it decides.
pub(crate) struct Chooser {
    cache: VersionCache,
    /// From the oldest to the latest.
    versions: VecDeque<Stamped>,
    /// The time of the first one that there was.
    first: f64,
    /// How many there have been, and the last one that was taken; versions are counted from 1.
    produced: u64,
    taken: u64,
    /// For which question that one was announced, and the last one whose answer the receiver has: it may have asked another one
    /// before the answer came.
    announced: u64,
    had: u64,
    /// Whether that one asked for a time; one that does may ask for a later one that the same version serves.
    by_time: bool,
    /// Whether it was asked for something after the last version.
    exhausted: bool,
    question: Option<Question>,
    /// The number of the last question.
    heard: u64,
    /// Whether no more are produced, ...
    complete: bool,
    /// ... and the conduit ends once the last one is taken.
    closing: bool,
    /// Whether nothing is decided any more.
    over: bool,
}

impl Chooser {
    pub(crate) fn new(cache: VersionCache) -> Self {
        Chooser {
            cache,
            versions: VecDeque::new(),
            first: f64::NAN,
            produced: 0,
            taken: 0,
            announced: 0,
            had: 0,
            by_time: false,
            exhausted: false,
            question: None,
            heard: 0,
            complete: false,
            closing: false,
            over: false,
        }
    }

    /// Whether one more version may be produced now, or has to wait until the receiver has taken one. True, too, once the receiver
    /// has asked for a later time: it wants none of those that are kept.
    pub(crate) fn has_room(&self) -> bool {
        let waits = self.cache.full == WhenFull::Wait && self.question.is_none();
        self.over || !waits || self.untaken() < u64::from(self.cache.versions)
    }

    /// The next version is there.
    pub(crate) fn produce(&mut self, timestamp: f64, next: Option<f64>) -> Vec<Decision> {
        if self.over {
            return Vec::new();
        }
        self.produced += 1;
        if self.produced == 1 {
            self.first = timestamp;
        }
        self.versions.push_back(Stamped {
            number: self.produced,
            timestamp,
            next,
        });
        // What it tells of a question that waited comes before it takes the place of another version.
        let mut decisions = self.answer();
        let mut given_up = None;
        while self.is_too_many() {
            self.versions.pop_front();
            given_up = self
                .versions
                .front()
                .map(|oldest| Decision::Order(Order::GiveUp(oldest.number)));
        }
        decisions.extend(given_up);
        decisions
    }

    /// Whether the oldest version is to go. With `full: wait` the last one that was taken stays, and so do those that were not, but
    /// for a question whose answer is a later one.
    fn is_too_many(&self) -> bool {
        let (oldest, latest) = (self.versions[0].number, self.produced);
        let is_passed = oldest < self.taken || (self.question.is_some() && oldest < latest);
        let may_go = self.cache.full == WhenFull::Evict || is_passed;
        self.versions.len() > self.cache.versions as usize && may_go
    }

    /// The receiver asks.
    pub(crate) fn ask(&mut self, question: Question) -> Vec<Decision> {
        self.question = Some(question);
        self.heard = question.number;
        self.answer()
    }

    /// No more versions are produced, though the sender goes on; the receiver may still take what there is.
    pub(crate) fn complete(&mut self) -> Vec<Decision> {
        if self.over {
            return Vec::new();
        }
        self.complete = true;
        let mut decisions = vec![Decision::Order(Order::Complete(self.produced))];
        decisions.extend(self.answer());
        decisions
    }

    /// The same, and the conduit ends once the receiver has the last one.
    pub(crate) fn close(&mut self) -> Vec<Decision> {
        self.closing = true;
        self.complete()
    }

    /// Whether the receiver has what it is to have: the last version, as often as that serves the times it asks for.
    pub(crate) fn is_settled(&self) -> bool {
        let may_ask_again = self.by_time && !self.exhausted;
        self.over || (self.complete && (self.produced == 0 || (self.has_last() && !may_ask_again)))
    }

    /// The receiver has what this question was answered with.
    pub(crate) fn took(&mut self, question: u64) {
        self.had = self.had.max(question);
    }

    /// Whether the receiver has the last version that there is.
    fn has_last(&self) -> bool {
        self.taken == self.produced && self.had >= self.announced
    }

    /// Lets it keep more versions, where it waits for room while its receiver waits for it.
    pub(crate) fn raise(&mut self, versions: u32) -> Vec<Decision> {
        if self.over || versions <= self.cache.versions {
            return Vec::new();
        }
        self.cache.versions = versions;
        vec![Decision::Order(Order::Raise(versions))]
    }

    /// The number of the last question that was asked.
    pub(crate) fn heard(&self) -> u64 {
        self.heard
    }

    /// How many versions are kept that were not taken.
    pub(crate) fn untaken(&self) -> u64 {
        self.versions
            .iter()
            .filter(|version| version.number > self.taken)
            .count() as u64
    }

    /// The receiver takes no more, or is to get no more.
    pub(crate) fn end(&mut self) -> Vec<Decision> {
        if std::mem::replace(&mut self.over, true) {
            return Vec::new();
        }
        self.versions.clear();
        vec![Decision::Order(Order::End)]
    }

    /// Answers the question, if it is one and can be answered yet.
    fn answer(&mut self) -> Vec<Decision> {
        let Some(question) = self.question.filter(|_| !self.over) else {
            return Vec::new();
        };
        let Some(latest) = self.versions.back().copied() else {
            return Vec::new();
        };
        let chosen = match question.at {
            None => Ok(latest),
            // Until that time is passed there may be a later one at or before it.
            Some(at) if !self.has_passed(&latest, at) => return Vec::new(),
            Some(at) => {
                let found = self
                    .versions
                    .iter()
                    .rfind(|version| version.timestamp <= at)
                    .copied();
                found.ok_or_else(|| match at < self.first {
                    true => Refusal::TooEarly {
                        at,
                        first: self.first,
                    },
                    false => Refusal::Evicted {
                        at,
                        oldest: self.versions[0].timestamp,
                    },
                })
            }
        };
        // The last version serves all times before the one that was to follow.
        let end = latest.next.unwrap_or(latest.timestamp);
        let beyond = question
            .at
            .is_none_or(|at| at > latest.timestamp && at >= end);
        if self.complete && beyond && self.has_last() && (self.closing || question.at.is_some()) {
            self.exhausted = true;
            // It hears that no more follows as the conduit ends, or, where the sender goes on, now.
            let Some(at) = question.at.filter(|_| !self.closing) else {
                return Vec::new();
            };
            self.question = None;
            let why = Refusal::TooLate {
                at,
                last: latest.timestamp,
            };
            return vec![Decision::Refuse {
                question: question.number,
                why,
            }];
        }
        self.question = None;
        match chosen {
            Ok(Stamped {
                number: version, ..
            }) => {
                if version >= self.taken {
                    (self.taken, self.announced) = (version, question.number);
                    self.by_time = question.at.is_some();
                }
                let announced = Decision::Announce {
                    question: question.number,
                    version,
                };
                vec![announced, Decision::Order(Order::Serve(version))]
            }
            Err(why) => vec![Decision::Refuse {
                question: question.number,
                why,
            }],
        }
    }

    /// Whether no version after the latest one can be at or before this time.
    fn has_passed(&self, latest: &Stamped, at: f64) -> bool {
        self.complete || latest.timestamp >= at || latest.next.is_some_and(|next| next > at)
    }
}

/// A rank of the sender, as it follows: its own part of each version, and what it still has to do.
pub(crate) struct Keeper<P> {
    parts: VecDeque<(u64, P)>,
    produced: u64,
    /// The first version that it is to keep: rank 0 may have given up some that this one has not even got to.
    first: u64,
    orders: VecDeque<Order>,
    /// How many rank 0 has produced, once it produces no more.
    total: Option<u64>,
    over: bool,
}

impl<P> Default for Keeper<P> {
    fn default() -> Self {
        Keeper {
            parts: VecDeque::new(),
            produced: 0,
            first: 0,
            orders: VecDeque::new(),
            total: None,
            over: false,
        }
    }
}

impl<P> Keeper<P> {
    /// Its part of the next version is there.
    pub(crate) fn add(&mut self, part: P) {
        self.produced += 1;
        if !self.over && self.produced >= self.first {
            self.parts.push_back((self.produced, part));
        }
    }

    /// The next version is there, and not wanted.
    pub(crate) fn pass_over(&mut self) {
        self.produced += 1;
    }

    /// Rank 0 has decided so.
    pub(crate) fn obey(&mut self, order: Order) {
        self.orders.push_back(order);
    }

    /// Its part of the next version that it can send now.
    pub(crate) fn serve(&mut self) -> Option<&P> {
        while let Some(order) = self.orders.front().copied() {
            match order {
                Order::Serve(version) if version > self.produced => return None,
                Order::GiveUp(before) => {
                    self.first = self.first.max(before);
                    while self
                        .parts
                        .front()
                        .is_some_and(|(number, _)| *number < before)
                    {
                        self.parts.pop_front();
                    }
                }
                Order::End => {
                    self.over = true;
                    self.parts.clear();
                }
                Order::Complete(total) => self.total = Some(total),
                Order::Serve(_) | Order::Raise(_) => {}
            }
            self.orders.pop_front();
            if let Order::Serve(version) = order
                && self.part(version).is_some()
            {
                return self.part(version);
            }
        }
        None
    }

    /// How many versions this rank has produced and how many rank 0, for people: if they differ, and this rank produces no more.
    pub(crate) fn differs(&self) -> Option<(u64, String)> {
        let theirs = match self.orders.front() {
            Some(Order::Serve(version)) => Some(format!("at least {version}")),
            _ => self
                .total
                .filter(|total| *total != self.produced)
                .map(|total| total.to_string()),
        };
        theirs.map(|theirs| (self.produced, theirs))
    }

    /// Its part of a version that it keeps.
    pub(crate) fn part(&self, version: u64) -> Option<&P> {
        let first = self.parts.front()?.0;
        let place = usize::try_from(version.checked_sub(first)?).ok()?;
        self.parts.get(place).map(|(_, part)| part)
    }

    /// Its parts of all that it keeps.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &P> {
        self.parts.iter().map(|(_, part)| part)
    }

    /// How many versions it keeps.
    pub(crate) fn kept(&self) -> usize {
        self.parts.len()
    }

    /// Whether it keeps and sends no more.
    pub(crate) fn is_over(&self) -> bool {
        self.over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chooser(versions: u32, full: WhenFull) -> Chooser {
        Chooser::new(VersionCache { versions, full })
    }

    fn latest(number: u64) -> Question {
        Question { number, at: None }
    }

    fn at(number: u64, at: f64) -> Question {
        Question {
            number,
            at: Some(at),
        }
    }

    fn serves(question: u64, version: u64) -> Vec<Decision> {
        vec![
            Decision::Announce { question, version },
            Decision::Order(Order::Serve(version)),
        ]
    }

    fn refused(question: u64, why: Refusal) -> Vec<Decision> {
        vec![Decision::Refuse { question, why }]
    }

    #[test]
    fn the_latest_version_is_taken_or_waited_for() {
        let mut chooser = chooser(2, WhenFull::Evict);
        assert_eq!(chooser.ask(latest(1)), [], "there is none yet");
        assert_eq!(chooser.produce(0.0, None), serves(1, 1));
        chooser.produce(1.0, None);
        chooser.produce(2.0, None);
        assert_eq!(chooser.ask(latest(2)), serves(2, 3));
        assert_eq!(
            chooser.ask(latest(3)),
            serves(3, 3),
            "the same again: nothing newer is there"
        );
    }

    #[test]
    fn the_oldest_is_given_up_and_told_so() {
        let mut chooser = chooser(2, WhenFull::Evict);
        for step in 0..5 {
            assert!(chooser.has_room());
            let decisions = chooser.produce(f64::from(step), None);
            let oldest = u64::from(step as u32);
            assert_eq!(decisions.len(), usize::from(step > 1), "{decisions:?}");
            assert!(step < 2 || decisions == [Decision::Order(Order::GiveUp(oldest))]);
        }
        assert_eq!(
            chooser.ask(at(1, 1.5)),
            refused(
                1,
                Refusal::Evicted {
                    at: 1.5,
                    oldest: 3.0
                }
            )
        );
        assert_eq!(chooser.ask(at(2, 3.5)), serves(2, 4));
    }

    #[test]
    fn a_time_is_answered_once_it_is_passed() {
        let mut chooser = chooser(4, WhenFull::Evict);
        assert_eq!(chooser.ask(at(1, 1.0)), []);
        assert_eq!(chooser.produce(0.0, None), [], "there may be a better one");
        assert_eq!(
            chooser.produce(0.5, Some(1.5)),
            serves(1, 2),
            "there is none"
        );
        assert_eq!(chooser.ask(at(2, 1.5)), []);
        assert_eq!(chooser.produce(1.5, None), serves(2, 3));
        chooser.took(2);
        assert_eq!(chooser.ask(at(3, 9.0)), []);
        assert_eq!(
            chooser.close(),
            [Decision::Order(Order::Complete(3))],
            "it has the last one"
        );
        assert_eq!(chooser.ask(at(4, 0.2)), serves(4, 1));
        assert_eq!(
            chooser.ask(at(5, -1.0)),
            refused(
                5,
                Refusal::TooEarly {
                    at: -1.0,
                    first: 0.0
                }
            )
        );
    }

    #[test]
    fn a_new_question_takes_the_place_of_one_that_was_given_up() {
        let mut chooser = chooser(1, WhenFull::Evict);
        assert_eq!(chooser.ask(at(1, 9.0)), []);
        assert_eq!(chooser.ask(latest(2)), []);
        assert_eq!(chooser.produce(0.0, None), serves(2, 1));
        assert_eq!(
            chooser.produce(9.0, None),
            [Decision::Order(Order::GiveUp(2))]
        );
    }

    #[test]
    fn who_asked_before_gets_the_version_that_the_next_one_replaces() {
        let mut chooser = chooser(1, WhenFull::Evict);
        chooser.produce(1.0, None);
        assert_eq!(chooser.ask(at(1, 1.5)), []);
        let expected = [serves(1, 1), vec![Decision::Order(Order::GiveUp(2))]].concat();
        assert_eq!(chooser.produce(2.0, None), expected);
    }

    #[test]
    fn nobody_waits_for_a_receiver_that_waits_for_a_later_time() {
        let mut chooser = chooser(2, WhenFull::Wait);
        chooser.produce(0.0, None);
        chooser.produce(1.0, None);
        assert!(!chooser.has_room());
        assert_eq!(chooser.ask(at(1, 3.5)), []);
        for (time, oldest) in [(2.0, 2), (3.0, 3)] {
            assert!(chooser.has_room());
            assert_eq!(
                chooser.produce(time, None),
                [Decision::Order(Order::GiveUp(oldest))],
                "it wants none before"
            );
        }
        assert_eq!(
            chooser.produce(4.0, None),
            [serves(1, 4), vec![Decision::Order(Order::GiveUp(4))]].concat()
        );
        assert!(chooser.has_room());
        chooser.produce(5.0, None);
        assert!(!chooser.has_room(), "it has two that the receiver has not");
    }

    #[test]
    fn what_was_given_up_for_a_question_is_not_waited_for() {
        let mut chooser = chooser(2, WhenFull::Wait);
        assert_eq!(chooser.ask(at(1, 100.0)), []);
        for time in 1..=50 {
            assert!(chooser.has_room(), "the receiver wants none of them");
            chooser.produce(f64::from(time), None);
        }
        assert_eq!(chooser.untaken(), 2);
        assert!(
            matches!(chooser.ask(at(2, 10.0))[..], [Decision::Refuse { .. }]),
            "and it may ask for one that is gone"
        );
        assert!(!chooser.has_room());
    }

    #[test]
    fn the_last_version_is_that_of_its_own_time_as_often_as_it_is_asked_for() {
        let mut chooser = chooser(2, WhenFull::Evict);
        chooser.produce(9.0, None);
        chooser.close();
        for question in [1, 2] {
            assert_eq!(chooser.ask(at(question, 9.0)), serves(question, 1));
            chooser.took(question);
            assert!(!chooser.is_settled());
        }
        assert_eq!(chooser.ask(at(3, 9.5)), [], "the end of the conduit tells");
        assert!(chooser.is_settled());
    }

    #[test]
    fn who_waits_goes_on_once_a_version_is_taken() {
        let mut chooser = chooser(2, WhenFull::Wait);
        chooser.produce(0.0, None);
        assert!(chooser.has_room());
        chooser.produce(1.0, None);
        assert!(!chooser.has_room());
        assert_eq!(chooser.ask(at(1, 0.0)), serves(1, 1));
        assert!(chooser.has_room());
        assert_eq!(
            chooser.produce(2.0, None),
            [],
            "the one that was taken can be taken again"
        );
        assert!(!chooser.has_room());
        assert_eq!(chooser.ask(at(2, 0.5)), serves(2, 1));
        assert_eq!(chooser.ask(at(3, 1.0)), serves(3, 2));
        assert_eq!(
            chooser.produce(3.0, None),
            [Decision::Order(Order::GiveUp(2))]
        );
        assert_eq!(chooser.raise(1), [], "never less");
        assert_eq!(chooser.raise(3), [Decision::Order(Order::Raise(3))]);
        assert!(chooser.has_room() && chooser.untaken() == 2);
        assert_eq!(chooser.end(), [Decision::Order(Order::End)]);
        assert!(
            chooser.has_room() && chooser.produce(3.0, None).is_empty(),
            "nobody takes them any more"
        );
    }

    #[test]
    fn the_last_version_is_taken_before_the_sender_goes() {
        let mut chooser = chooser(1, WhenFull::Evict);
        assert_eq!(chooser.close(), [Decision::Order(Order::Complete(0))]);
        assert!(chooser.is_settled(), "there was none");
        let mut chooser = self::chooser(1, WhenFull::Evict);
        chooser.produce(0.0, None);
        chooser.close();
        assert!(!chooser.is_settled());
        assert_eq!(chooser.ask(latest(1)), serves(1, 1));
        assert!(!chooser.is_settled(), "it may have given up");
        assert_eq!(chooser.ask(latest(2)), serves(2, 1));
        chooser.took(2);
        assert!(chooser.is_settled());
        assert_eq!(chooser.ask(latest(3)), [], "the end of the conduit tells");
        chooser.end();
        assert_eq!(chooser.end(), [], "once");
    }

    #[test]
    fn the_last_version_serves_all_times_before_the_next_one_that_was_to_be() {
        let mut chooser = chooser(2, WhenFull::Evict);
        chooser.produce(40.0, Some(50.0));
        chooser.close();
        for (question, time) in [(1, 41.0), (2, 43.0), (3, 49.0)] {
            assert!(!chooser.is_settled(), "it may ask for {time}");
            assert_eq!(chooser.ask(at(question, time)), serves(question, 1));
            chooser.took(question);
        }
        assert_eq!(chooser.ask(at(4, 50.0)), [], "the end of the conduit tells");
        assert!(chooser.is_settled());
        let mut chooser = self::chooser(2, WhenFull::Evict);
        chooser.produce(40.0, Some(50.0));
        chooser.close();
        assert_eq!(chooser.ask(latest(1)), serves(1, 1));
        chooser.took(1);
        assert!(chooser.is_settled(), "it asks for the latest one");
    }

    #[test]
    fn a_time_after_the_last_version_is_refused_where_the_sender_goes_on() {
        let mut chooser = chooser(2, WhenFull::Evict);
        chooser.produce(40.0, Some(50.0));
        assert_eq!(chooser.ask(at(1, 60.0)), []);
        let complete = Decision::Order(Order::Complete(1));
        assert_eq!(
            chooser.complete(),
            [vec![complete.clone()], serves(1, 1)].concat()
        );
        chooser.took(1);
        assert_eq!(chooser.ask(at(2, 49.0)), serves(2, 1));
        chooser.took(2);
        assert_eq!(
            chooser.ask(at(3, 50.0)),
            refused(
                3,
                Refusal::TooLate {
                    at: 50.0,
                    last: 40.0
                }
            )
        );
        assert_eq!(
            chooser.ask(latest(4)),
            serves(4, 1),
            "as long as it is there"
        );
        chooser.took(4);
        assert_eq!(chooser.ask(at(5, 41.0)), serves(5, 1));
        chooser.took(5);
        assert_eq!(chooser.close(), [complete]);
        assert!(chooser.is_settled(), "it knows that none follows");
        assert_eq!(chooser.ask(at(6, 51.0)), [], "the end of the conduit tells");
    }

    #[test]
    fn ranks_that_produce_another_number_are_noticed() {
        let mut keeper = Keeper::default();
        keeper.add("one");
        keeper.obey(Order::Serve(2));
        keeper.obey(Order::Complete(2));
        assert_eq!(keeper.serve(), None);
        assert_eq!(keeper.differs(), Some((1, "at least 2".into())), "fewer");
        keeper.add("two");
        assert_eq!(keeper.serve(), Some(&"two"));
        assert_eq!(keeper.serve(), None);
        assert_eq!(keeper.differs(), None);
        keeper.add("three");
        assert_eq!(keeper.differs(), Some((3, "2".into())), "more");
    }

    #[test]
    fn a_rank_that_has_passed_over_a_version_goes_on_behind_it() {
        let mut keeper = Keeper::<()>::default();
        [Order::Serve(1), Order::Complete(1), Order::End]
            .into_iter()
            .for_each(|order| keeper.obey(order));
        assert_eq!(keeper.serve(), None);
        assert_eq!(
            (keeper.is_over(), keeper.differs()),
            (false, Some((0, "at least 1".into())))
        );
        keeper.pass_over();
        assert_eq!(keeper.serve(), None);
        assert_eq!((keeper.is_over(), keeper.differs()), (true, None));
    }

    #[test]
    fn a_rank_that_is_behind_keeps_nothing_that_was_given_up() {
        let mut keeper = Keeper::default();
        keeper.add("one");
        keeper.obey(Order::GiveUp(4));
        keeper.obey(Order::Serve(4));
        assert_eq!(keeper.serve(), None);
        for part in ["two", "three"] {
            keeper.add(part);
            assert_eq!(keeper.serve(), None);
            assert_eq!(
                keeper.kept(),
                0,
                "else it would have no room to get to the fourth"
            );
        }
        keeper.add("four");
        assert_eq!(keeper.serve().copied(), Some("four"));
    }

    #[test]
    fn a_rank_follows_when_it_has_got_so_far() {
        let mut keeper = Keeper::default();
        keeper.obey(Order::Serve(2));
        keeper.obey(Order::GiveUp(2));
        keeper.obey(Order::Serve(2));
        keeper.add("one");
        assert_eq!(keeper.serve(), None);
        assert_eq!(keeper.kept(), 1, "what comes behind an order waits for it");
        keeper.add("two");
        assert_eq!(keeper.serve().copied(), Some("two"));
        assert_eq!(keeper.serve().copied(), Some("two"));
        assert_eq!(keeper.serve(), None);
        assert_eq!(keeper.kept(), 1);
        keeper.obey(Order::End);
        assert_eq!(keeper.serve(), None);
        keeper.add("three");
        assert!(keeper.is_over() && keeper.kept() == 0);
    }
}
