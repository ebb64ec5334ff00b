//! The versions of a field that the sender keeps for a receiver that pulls: the kept versions, the
//! version to take, and the order in which the ranks follow. No I/O, no waiting.
//!
//! Rank 0 of the sender [chooses](Chooser): from its own versions, rank 0 decides on the version
//! for the receiver and on the versions to give up. All ranks of the sender, rank 0 too,
//! [follow](Keeper): each rank carries the decisions out in order, as soon as the rank has produced
//! enough versions. So all ranks of the receiver get the same version, and every owner has the
//! version.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use titin_model::{VersionCache, WhenFull};

/// Messages between ranks about the versions of a field.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) enum VersionMessage {
    /// Rank 0 of the receiver asks for a version.
    Ask(Question),
    /// Rank 0 of the receiver has the answer to the question with the given number.
    Took(u64),
    /// Rank 0 of the receiver asks for no more.
    Leave,
    /// Rank 0 of the sender gives the other ranks an order, after all earlier orders.
    Order(VersionOrder),
}

/// A question of a receiver.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Question {
    /// Numbers rise; the last question alone is answered.
    pub(crate) number: u64,
    /// The receiver wants the version at or before this simulated time; `None` for the latest
    /// version.
    pub(crate) at: Option<f64>,
}

/// An order for every rank of the sender.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) enum VersionOrder {
    /// Send the pieces of the version.
    Serve(u64),
    /// Give up the versions before the given version.
    GiveUp(u64),
    /// Keep up to this number of versions from now on.
    Raise(u32),
    /// Rank 0 produces this number of versions in all, and every rank should.
    Complete(u64),
    /// Keep and send no more versions.
    End,
}

/// A decision of rank 0 of the sender.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Decision {
    /// Tells the receiver that a version follows, in answer to the question.
    Announce { question: u64, version: u64 },
    /// Tells the receiver why no version follows.
    Refuse { question: u64, why: VersionRefusal },
    /// All ranks carry out the order.
    Order(VersionOrder),
}

/// Why a receiver does not get the version of a time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum VersionRefusal {
    /// The sender had the version and gave the version up. `oldest` is the time of the oldest kept
    /// version.
    Evicted { at: f64, oldest: f64 },
    /// The time is before `first`, the time of the first version.
    TooEarly { at: f64, first: f64 },
    /// The receiver has the last version, of time `last`, and no other follows, though the sender
    /// goes on.
    TooLate { at: f64, last: f64 },
}

/// The number and the times of a version, at rank 0 of the sender.
#[derive(Debug, Clone, Copy, PartialEq)]
struct VersionStamp {
    number: u64,
    timestamp: f64,
    next: Option<f64>,
}

/// The decisions of rank 0 of the sender.
pub(crate) struct Chooser {
    cache: VersionCache,
    /// From the oldest to the latest.
    versions: VecDeque<VersionStamp>,
    /// The time of the first version of all.
    first: f64,
    /// The number of versions so far.
    produced: u64,
    /// The last taken version, counted from 1.
    taken: u64,
    /// The question for which the taken version was announced.
    announced: u64,
    /// The last question whose answer the receiver has. The receiver may have asked another question
    /// before the answer came.
    last_answered: u64,
    /// Whether the last answered question asked for a time: the same version may serve a later
    /// time, too.
    by_time: bool,
    /// Whether the receiver has asked for a time after the last version.
    exhausted: bool,
    question: Option<Question>,
    /// The number of the last question.
    last_question: u64,
    /// Whether no more versions are produced.
    complete: bool,
    /// Whether the conduit ends once the last version is taken.
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
            last_answered: 0,
            by_time: false,
            exhausted: false,
            question: None,
            last_question: 0,
            complete: false,
            closing: false,
            over: false,
        }
    }

    /// Whether the sender may produce one more version now, or has to wait until the receiver has
    /// taken a version. True, too, once the receiver has asked for a later time, and so wants none
    /// of the kept versions.
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
        self.versions.push_back(VersionStamp {
            number: self.produced,
            timestamp,
            next,
        });
        // A waiting question is answered first, before the new version takes the place of an old
        // version.
        let mut decisions = self.answer();
        let mut given_up = None;
        while self.is_too_many() {
            self.versions.pop_front();
            given_up = self
                .versions
                .front()
                .map(|oldest| Decision::Order(VersionOrder::GiveUp(oldest.number)));
        }
        decisions.extend(given_up);
        decisions
    }

    /// Whether the oldest version is to go. With `full: wait` the last taken version stays, and so
    /// do versions not yet taken, unless the receiver asks for a later version.
    fn is_too_many(&self) -> bool {
        let (oldest, latest) = (self.versions[0].number, self.produced);
        let is_passed = oldest < self.taken || (self.question.is_some() && oldest < latest);
        let may_go = self.cache.full == WhenFull::Evict || is_passed;
        self.versions.len() > self.cache.versions as usize && may_go
    }

    /// The receiver asks.
    pub(crate) fn ask(&mut self, question: Question) -> Vec<Decision> {
        self.question = Some(question);
        self.last_question = question.number;
        self.answer()
    }

    /// The sender produces no more versions, and goes on. The receiver may still take the kept
    /// versions.
    pub(crate) fn complete(&mut self) -> Vec<Decision> {
        if self.over {
            return Vec::new();
        }
        self.complete = true;
        let mut decisions = vec![Decision::Order(VersionOrder::Complete(self.produced))];
        decisions.extend(self.answer());
        decisions
    }

    /// As [`Chooser::complete`], and the conduit ends once the receiver has the last version.
    pub(crate) fn close(&mut self) -> Vec<Decision> {
        self.closing = true;
        self.complete()
    }

    /// Whether the receiver has the last version, for all times for which the version holds.
    pub(crate) fn is_settled(&self) -> bool {
        let may_ask_again = self.by_time && !self.exhausted;
        self.over || (self.complete && (self.produced == 0 || (self.has_last() && !may_ask_again)))
    }

    /// The receiver has the answer to the question.
    pub(crate) fn took(&mut self, question: u64) {
        self.last_answered = self.last_answered.max(question);
    }

    /// Whether the receiver has the last version.
    fn has_last(&self) -> bool {
        self.taken == self.produced && self.last_answered >= self.announced
    }

    /// Lets the sender keep more versions, where sender and receiver would wait for each other.
    pub(crate) fn raise(&mut self, versions: u32) -> Vec<Decision> {
        if self.over || versions <= self.cache.versions {
            return Vec::new();
        }
        self.cache.versions = versions;
        vec![Decision::Order(VersionOrder::Raise(versions))]
    }

    /// The number of the last question.
    pub(crate) fn last_question(&self) -> u64 {
        self.last_question
    }

    /// How many kept versions were not taken.
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
        vec![Decision::Order(VersionOrder::End)]
    }

    /// Answers the question, if there is a question and the answer is known.
    fn answer(&mut self) -> Vec<Decision> {
        let Some(question) = self.question.filter(|_| !self.over) else {
            return Vec::new();
        };
        let Some(latest) = self.versions.back().copied() else {
            return Vec::new();
        };
        // Until the sender has passed the time, a later version at or before the time may come.
        if question.at.is_some_and(|at| !self.has_passed(&latest, at)) {
            return Vec::new();
        }
        if self.is_past_end(&question, &latest) {
            self.exhausted = true;
            // Where the sender closes, the end of the conduit tells the receiver that no version
            // follows. Elsewhere this answer tells the receiver.
            let Some(at) = question.at.filter(|_| !self.closing) else {
                return Vec::new();
            };
            self.question = None;
            let why = VersionRefusal::TooLate {
                at,
                last: latest.timestamp,
            };
            return vec![Decision::Refuse {
                question: question.number,
                why,
            }];
        }
        self.question = None;
        match question.at.map_or(Ok(latest), |at| self.choose(at)) {
            Ok(VersionStamp {
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
                vec![announced, Decision::Order(VersionOrder::Serve(version))]
            }
            Err(why) => vec![Decision::Refuse {
                question: question.number,
                why,
            }],
        }
    }

    /// The kept version at or before a time.
    fn choose(&self, at: f64) -> Result<VersionStamp, VersionRefusal> {
        let mut newest_first = self.versions.iter().rev();
        let found = newest_first.find(|version| version.timestamp <= at);
        found.copied().ok_or_else(|| match at < self.first {
            true => VersionRefusal::TooEarly {
                at,
                first: self.first,
            },
            false => VersionRefusal::Evicted {
                at,
                oldest: self.versions[0].timestamp,
            },
        })
    }

    /// Whether a question of a receiver that has the last version is about what comes after that
    /// version: a time for which the version does not hold, or the latest version of a sender that
    /// closes.
    fn is_past_end(&self, question: &Question, latest: &VersionStamp) -> bool {
        // The last version holds for all times before the version that was to follow.
        let end = latest.next.unwrap_or(latest.timestamp);
        let is_beyond = question
            .at
            .map_or(self.closing, |at| at > latest.timestamp && at >= end);
        self.complete && self.has_last() && is_beyond
    }

    /// Whether no version after the latest can be at or before the given time.
    fn has_passed(&self, latest: &VersionStamp, at: f64) -> bool {
        self.complete || latest.timestamp >= at || latest.next.is_some_and(|next| next > at)
    }
}

/// A rank of the sender that follows rank 0: the rank's part of each version, and the orders still
/// to be carried out.
pub(crate) struct Keeper<P> {
    parts: VecDeque<(u64, P)>,
    produced: u64,
    /// The first version to keep: rank 0 may have given up versions before this rank has produced
    /// them.
    first: u64,
    orders: VecDeque<VersionOrder>,
    /// How many versions rank 0 has produced, once rank 0 produces no more.
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
    /// The rank's part of the next version is there.
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

    /// Queues an order of rank 0.
    pub(crate) fn queue_order(&mut self, order: VersionOrder) {
        self.orders.push_back(order);
    }

    /// Carries out the due orders, up to an order to send a version. Returns the rank's part of that
    /// version.
    pub(crate) fn run_orders(&mut self) -> Option<&P> {
        while let Some(order) = self.orders.front().copied() {
            match order {
                VersionOrder::Serve(version) if version > self.produced => return None,
                VersionOrder::GiveUp(before) => {
                    self.first = self.first.max(before);
                    while self
                        .parts
                        .front()
                        .is_some_and(|(number, _)| *number < before)
                    {
                        self.parts.pop_front();
                    }
                }
                VersionOrder::End => {
                    self.over = true;
                    self.parts.clear();
                }
                VersionOrder::Complete(total) => self.total = Some(total),
                VersionOrder::Serve(_) | VersionOrder::Raise(_) => {}
            }
            self.orders.pop_front();
            if let VersionOrder::Serve(version) = order
                && self.part(version).is_some()
            {
                return self.part(version);
            }
        }
        None
    }

    /// How many versions this rank has produced, and how many rank 0, as text, if the numbers
    /// differ. Callers ask once this rank produces no more versions.
    pub(crate) fn differs(&self) -> Option<(u64, String)> {
        let theirs = match self.orders.front() {
            Some(VersionOrder::Serve(version)) => Some(format!("at least {version}")),
            _ => self
                .total
                .filter(|total| *total != self.produced)
                .map(|total| total.to_string()),
        };
        theirs.map(|theirs| (self.produced, theirs))
    }

    /// The rank's part of a kept version.
    pub(crate) fn part(&self, version: u64) -> Option<&P> {
        let first = self.parts.front()?.0;
        let place = usize::try_from(version.checked_sub(first)?).ok()?;
        self.parts.get(place).map(|(_, part)| part)
    }

    /// The rank's parts of all kept versions.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &P> {
        self.parts.iter().map(|(_, part)| part)
    }

    /// How many versions the rank keeps.
    pub(crate) fn kept(&self) -> usize {
        self.parts.len()
    }

    /// Whether the rank keeps and sends no more versions.
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
            Decision::Order(VersionOrder::Serve(version)),
        ]
    }

    fn refused(question: u64, why: VersionRefusal) -> Vec<Decision> {
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
            assert!(step < 2 || decisions == [Decision::Order(VersionOrder::GiveUp(oldest))]);
        }
        assert_eq!(
            chooser.ask(at(1, 1.5)),
            refused(
                1,
                VersionRefusal::Evicted {
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
            [Decision::Order(VersionOrder::Complete(3))],
            "it has the last one"
        );
        assert_eq!(chooser.ask(at(4, 0.2)), serves(4, 1));
        assert_eq!(
            chooser.ask(at(5, -1.0)),
            refused(
                5,
                VersionRefusal::TooEarly {
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
            [Decision::Order(VersionOrder::GiveUp(2))]
        );
    }

    #[test]
    fn who_asked_before_gets_the_version_that_the_next_one_replaces() {
        let mut chooser = chooser(1, WhenFull::Evict);
        chooser.produce(1.0, None);
        assert_eq!(chooser.ask(at(1, 1.5)), []);
        let expected = [serves(1, 1), vec![Decision::Order(VersionOrder::GiveUp(2))]].concat();
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
                [Decision::Order(VersionOrder::GiveUp(oldest))],
                "it wants none before"
            );
        }
        assert_eq!(
            chooser.produce(4.0, None),
            [serves(1, 4), vec![Decision::Order(VersionOrder::GiveUp(4))]].concat()
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
            [Decision::Order(VersionOrder::GiveUp(2))]
        );
        assert_eq!(chooser.raise(1), [], "never less");
        assert_eq!(chooser.raise(3), [Decision::Order(VersionOrder::Raise(3))]);
        assert!(chooser.has_room() && chooser.untaken() == 2);
        assert_eq!(chooser.end(), [Decision::Order(VersionOrder::End)]);
        assert!(
            chooser.has_room() && chooser.produce(3.0, None).is_empty(),
            "nobody takes them any more"
        );
    }

    #[test]
    fn the_last_version_is_taken_before_the_sender_goes() {
        let mut chooser = chooser(1, WhenFull::Evict);
        assert_eq!(
            chooser.close(),
            [Decision::Order(VersionOrder::Complete(0))]
        );
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
        let complete = Decision::Order(VersionOrder::Complete(1));
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
                VersionRefusal::TooLate {
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
        keeper.queue_order(VersionOrder::Serve(2));
        keeper.queue_order(VersionOrder::Complete(2));
        assert_eq!(keeper.run_orders(), None);
        assert_eq!(keeper.differs(), Some((1, "at least 2".into())), "fewer");
        keeper.add("two");
        assert_eq!(keeper.run_orders(), Some(&"two"));
        assert_eq!(keeper.run_orders(), None);
        assert_eq!(keeper.differs(), None);
        keeper.add("three");
        assert_eq!(keeper.differs(), Some((3, "2".into())), "more");
    }

    #[test]
    fn a_rank_that_has_passed_over_a_version_goes_on_behind_it() {
        let mut keeper = Keeper::<()>::default();
        [
            VersionOrder::Serve(1),
            VersionOrder::Complete(1),
            VersionOrder::End,
        ]
        .into_iter()
        .for_each(|order| keeper.queue_order(order));
        assert_eq!(keeper.run_orders(), None);
        assert_eq!(
            (keeper.is_over(), keeper.differs()),
            (false, Some((0, "at least 1".into())))
        );
        keeper.pass_over();
        assert_eq!(keeper.run_orders(), None);
        assert_eq!((keeper.is_over(), keeper.differs()), (true, None));
    }

    #[test]
    fn a_rank_that_is_behind_keeps_nothing_that_was_given_up() {
        let mut keeper = Keeper::default();
        keeper.add("one");
        keeper.queue_order(VersionOrder::GiveUp(4));
        keeper.queue_order(VersionOrder::Serve(4));
        assert_eq!(keeper.run_orders(), None);
        for part in ["two", "three"] {
            keeper.add(part);
            assert_eq!(keeper.run_orders(), None);
            assert_eq!(
                keeper.kept(),
                0,
                "else it would have no room to get to the fourth"
            );
        }
        keeper.add("four");
        assert_eq!(keeper.run_orders().copied(), Some("four"));
    }

    #[test]
    fn a_rank_follows_when_it_has_got_so_far() {
        let mut keeper = Keeper::default();
        keeper.queue_order(VersionOrder::Serve(2));
        keeper.queue_order(VersionOrder::GiveUp(2));
        keeper.queue_order(VersionOrder::Serve(2));
        keeper.add("one");
        assert_eq!(keeper.run_orders(), None);
        assert_eq!(keeper.kept(), 1, "what comes behind an order waits for it");
        keeper.add("two");
        assert_eq!(keeper.run_orders().copied(), Some("two"));
        assert_eq!(keeper.run_orders().copied(), Some("two"));
        assert_eq!(keeper.run_orders(), None);
        assert_eq!(keeper.kept(), 1);
        keeper.queue_order(VersionOrder::End);
        assert_eq!(keeper.run_orders(), None);
        keeper.add("three");
        assert!(keeper.is_over() && keeper.kept() == 0);
    }
}
