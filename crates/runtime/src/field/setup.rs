//! How the ranks of two instances find out who sends what to whom, where one side is irregular.
//!
//! One of these per rank and conduit takes in messages and says which to send: it has no I/O, and waits for nothing. The ranks of
//! the sender are the directory, too (after XpressSpace: each knows a part of the array's space, along a Hilbert curve).
//!
//! 1. If the sender is irregular, each of its ranks **enters** what it owns at the ranks of the directory that this concerns, which
//!    **acknowledge**. That all have is found out along the tree of ranks: **done** goes up, **go** comes down.
//! 2. Each rank of the receiver **asks** the directory who owns what it wants, and gets **answers**.
//! 3. It tells the owners what it **wants**, which acknowledge. That all have goes up the receiver's tree, to rank 0 of the
//!    sender (**complete**), and down there as **go**: from then on each rank of the sender knows all that is wanted of it.
//!
//! Ranks are not in step: what comes for a later stage waits.

use std::collections::VecDeque;

use titin_array::{
    Directory, DirectoryAnswer, ElementRequest, Error, Exchange, Ownership, Register, Role,
    Schedule,
};
use titin_wire::ranks::{children, parent};

use super::rank_messages::{RankMessage, RoutedMessage};

/// The way of one rank to its schedule.
pub(crate) struct ScheduleSetup {
    exchange: Exchange,
    parts: Ownership,
    role: Role,
    rank: u32,
    /// Ranks of the own instance, and of the sender.
    ranks: u32,
    senders: u32,
    stage: Stage,
    /// Messages for later stages.
    early: VecDeque<RoutedMessage>,
    /// How many acknowledgements are waited for, and how many ranks below.
    unanswered: usize,
    below: usize,
    wants: Vec<(u32, ElementRequest)>,
    answers: Vec<DirectoryAnswer>,
    schedule: Option<Schedule>,
    out: Vec<RoutedMessage>,
}

enum Stage {
    /// A rank of the sender: those of the directory are told what it owns.
    Entering(Register),
    /// Ranks of the receiver are answered, and tell what they want. There is no directory of a regular sender.
    Serving(Option<Directory>),
    /// A rank of the receiver: so many answers are to come yet.
    Asking(usize),
    /// The owners are told what it wants.
    Wanting,
    Over,
}

impl ScheduleSetup {
    /// Begins; the first messages are to be taken.
    pub(crate) fn begin(
        exchange: Exchange,
        parts: Ownership,
        role: Role,
        rank: u32,
    ) -> Result<Self, Error> {
        let senders = exchange.from().decomposition.ranks();
        let ranks = match role {
            Role::Sender => senders,
            Role::Receiver => exchange.to().decomposition.ranks(),
        };
        let mut setup = ScheduleSetup {
            exchange,
            parts,
            role,
            rank,
            ranks,
            senders,
            stage: Stage::Over,
            early: VecDeque::new(),
            unanswered: 0,
            below: children(rank, ranks).len(),
            wants: Vec::new(),
            answers: Vec::new(),
            schedule: None,
            out: Vec::new(),
        };
        if setup.exchange.is_regular() {
            setup.schedule = Some(setup.exchange.schedule(role, rank)?);
            return Ok(setup);
        }
        match role {
            Role::Sender if setup.exchange.needs_directory() => setup.enter()?,
            Role::Sender => setup.stage = Stage::Serving(None),
            Role::Receiver => setup.ask()?,
        }
        Ok(setup)
    }

    /// What to send now.
    pub(crate) fn take(&mut self) -> Vec<RoutedMessage> {
        std::mem::take(&mut self.out)
    }

    /// The schedule, once it is known.
    pub(crate) fn schedule(&self) -> Option<&Schedule> {
        self.schedule.as_ref()
    }

    /// Takes in a message, and those that have waited for what it brings.
    pub(crate) fn receive(&mut self, routed: RoutedMessage) -> Result<(), Error> {
        if matches!(self.stage, Stage::Over) {
            return Ok(());
        }
        self.early.push_back(routed);
        loop {
            // One by one, as each may bring the next stage.
            let place = self
                .early
                .iter()
                .position(|routed| self.is_time_for(&routed.message));
            let Some(routed) = place.and_then(|place| self.early.remove(place)) else {
                return Ok(());
            };
            self.read(routed)?;
        }
    }

    fn is_time_for(&self, message: &RankMessage) -> bool {
        match (&self.stage, message) {
            (Stage::Over, _) => false,
            (
                Stage::Entering(_),
                RankMessage::Enter(_)
                | RankMessage::Acknowledge
                | RankMessage::Done
                | RankMessage::Go,
            ) => true,
            (
                Stage::Serving(_),
                RankMessage::Ask(_)
                | RankMessage::Want(_)
                | RankMessage::Complete
                | RankMessage::Go,
            ) => true,
            (Stage::Asking(_), RankMessage::Answer(_)) => true,
            (Stage::Asking(_) | Stage::Wanting, RankMessage::Acknowledge | RankMessage::Done) => {
                true
            }
            _ => false,
        }
    }

    fn read(&mut self, RoutedMessage { rank, message, .. }: RoutedMessage) -> Result<(), Error> {
        match message {
            RankMessage::Enter(entries) => {
                if let Stage::Entering(register) = &mut self.stage {
                    register.enter(rank, &entries)?;
                }
                self.send(true, rank, RankMessage::Acknowledge);
            }
            RankMessage::Ask(asked) => {
                if let Stage::Serving(Some(directory)) = &self.stage {
                    let answer = directory.answer(rank, &asked)?;
                    self.send(false, rank, RankMessage::Answer(answer));
                }
            }
            RankMessage::Answer(answer) => {
                self.answers.push(answer);
                if let Stage::Asking(missing) = &mut self.stage {
                    *missing = missing.saturating_sub(1);
                }
                self.want_if_answered()?;
            }
            RankMessage::Want(wants) => {
                self.wants.push((rank, wants));
                self.send(false, rank, RankMessage::Acknowledge);
            }
            RankMessage::Acknowledge => {
                self.unanswered = self.unanswered.saturating_sub(1);
                self.go_on_if_done()?;
            }
            RankMessage::Done => {
                self.below = self.below.saturating_sub(1);
                self.go_on_if_done()?;
            }
            RankMessage::Go | RankMessage::Complete => self.go()?,
            RankMessage::Version(_) => {}
        }
        Ok(())
    }

    fn enter(&mut self) -> Result<(), Error> {
        let map = self.exchange.map(self.senders);
        let entries = self.exchange.entries(self.rank, &self.parts, &map)?;
        self.stage = Stage::Entering(Register::new(self.exchange.clone()));
        self.unanswered = entries.len();
        entries
            .into_iter()
            .for_each(|(rank, entries)| self.send(true, rank, RankMessage::Enter(entries)));
        self.go_on_if_done()
    }

    fn ask(&mut self) -> Result<(), Error> {
        let queries = match self.exchange.needs_directory() {
            true => {
                self.exchange
                    .queries(self.rank, &self.parts, &self.exchange.map(self.senders))?
            }
            false => Vec::new(),
        };
        self.stage = Stage::Asking(queries.len());
        queries
            .into_iter()
            .for_each(|(rank, asked)| self.send(true, rank, RankMessage::Ask(asked)));
        self.want_if_answered()
    }

    fn want_if_answered(&mut self) -> Result<(), Error> {
        if !matches!(self.stage, Stage::Asking(0)) {
            return Ok(());
        }
        let answers = std::mem::take(&mut self.answers);
        let (schedule, wants) = self.exchange.receiving(self.rank, &self.parts, answers)?;
        self.stage = Stage::Wanting;
        self.schedule = Some(schedule);
        self.unanswered = wants.len();
        wants
            .into_iter()
            .for_each(|(rank, wants)| self.send(true, rank, RankMessage::Want(wants)));
        self.go_on_if_done()
    }

    /// Once this rank and all below have told what they had to: so it is said upwards, or it is so for all.
    fn go_on_if_done(&mut self) -> Result<(), Error> {
        let is_telling = matches!(self.stage, Stage::Entering(_) | Stage::Wanting);
        if !is_telling || self.unanswered > 0 || self.below > 0 {
            return Ok(());
        }
        // Not again.
        self.below = usize::MAX;
        match (parent(self.rank), self.role) {
            (Some(above), role) => self.send(role == Role::Sender, above, RankMessage::Done),
            (None, Role::Sender) => return self.go(),
            (None, Role::Receiver) => self.send(true, 0, RankMessage::Complete),
        }
        if self.role == Role::Receiver {
            self.stage = Stage::Over;
        }
        Ok(())
    }

    /// All ranks are so far.
    fn go(&mut self) -> Result<(), Error> {
        children(self.rank, self.ranks).for_each(|child| self.send(true, child, RankMessage::Go));
        self.stage = match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Entering(register) => Stage::Serving(Some(register.directory()?)),
            _ => {
                let wants = std::mem::take(&mut self.wants);
                self.schedule = Some(self.exchange.sending(self.rank, &self.parts, &wants)?);
                Stage::Over
            }
        };
        Ok(())
    }

    fn send(&mut self, of_sender: bool, rank: u32, message: RankMessage) {
        self.out.push(RoutedMessage {
            of_sender,
            rank,
            message,
        });
    }
}

#[cfg(test)]
mod tests {
    use titin_array::{Decomposition, Partner, Region, Side};

    use super::*;

    /// A row of the array for each rank, dealt out by `owner`.
    fn rows(owner: impl Fn(u64) -> u32, count: u64, rank: u32) -> Ownership {
        let mine = (0..count).filter(|row| owner(*row) == rank);
        Ownership::Boxes(
            mine.map(|row| Region::new(&[row, 0], &[row + 1, 8]).unwrap())
                .collect(),
        )
    }

    /// Has all ranks of both sides find their schedules; messages are delivered in an order that a number chooses.
    fn play(
        exchange: &Exchange,
        parts: impl Fn(Role, u32) -> Ownership,
        mut order: u64,
    ) -> [Vec<ScheduleSetup>; 2] {
        let roles = [Role::Sender, Role::Receiver];
        let ranks = [exchange.from(), exchange.to()].map(|side| side.decomposition.ranks());
        let begin = |role: Role, rank| {
            ScheduleSetup::begin(exchange.clone(), parts(role, rank), role, rank).unwrap()
        };
        let mut setups = [0, 1].map(|side| {
            (0..ranks[side])
                .map(|rank| begin(roles[side], rank))
                .collect::<Vec<_>>()
        });
        let mut waiting: Vec<(usize, u32, RoutedMessage)> = Vec::new();
        loop {
            for side in [0, 1] {
                for rank in 0..ranks[side] {
                    for routed in setups[side][rank as usize].take() {
                        let to = usize::from(!routed.of_sender);
                        waiting.push((
                            to,
                            routed.rank,
                            RoutedMessage {
                                of_sender: side == 0,
                                rank,
                                ..routed
                            },
                        ));
                    }
                }
            }
            if waiting.is_empty() {
                return setups;
            }
            order = order
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            let (side, rank, routed) = waiting.swap_remove((order >> 33) as usize % waiting.len());
            setups[side][rank as usize].receive(routed).unwrap();
        }
    }

    #[test]
    fn every_rank_finds_its_schedule_in_whatever_order_messages_come() {
        let shape = [40, 8];
        let boxes = |ranks| Side::new(Decomposition::boxes(&shape, ranks).unwrap());
        let block = |ranks| Side::new(Decomposition::block(&shape, &[1, ranks]).unwrap());
        for (from, to) in [
            (boxes(5), boxes(3)),
            (boxes(40), block(4)),
            (block(4), boxes(36)),
            (boxes(1), boxes(1)),
        ] {
            let (senders, receivers) = (from.decomposition.ranks(), to.decomposition.ranks());
            let exchange = Exchange::new(from, to).unwrap();
            let parts = |role: Role, rank| match role {
                Role::Sender if exchange.needs_directory() => {
                    rows(|row| (row * 7 % u64::from(senders)) as u32, 40, rank)
                }
                Role::Receiver if !exchange.to().decomposition.is_regular() => {
                    rows(|row| (row / 3 % u64::from(receivers)) as u32, 40, rank)
                }
                _ => Ownership::Rule,
            };
            for order in 0..20 {
                let [sending, receiving] = play(&exchange, parts, order);
                let elements = |setups: &[ScheduleSetup]| -> u64 {
                    setups
                        .iter()
                        .map(|setup| setup.schedule().expect("all have one").elements())
                        .sum()
                };
                assert_eq!((elements(&sending), elements(&receiving)), (320, 320));
                for (rank, setup) in (0..).zip(&sending) {
                    for partner in setup.schedule().unwrap().partners() {
                        let other = receiving[partner.rank as usize].schedule().unwrap();
                        let there = other.find(rank).expect("both know of each other");
                        assert_eq!(other.partner(there), Some(Partner { rank, ..partner }));
                    }
                }
            }
        }
    }

    #[test]
    fn what_nobody_owns_and_what_two_own_is_told() {
        let shape = [4, 8];
        let boxes = |ranks| Side::new(Decomposition::boxes(&shape, ranks).unwrap());
        let exchange = Exchange::new(boxes(1), boxes(1)).unwrap();
        let whole = || Ownership::Boxes(vec![Region::new(&[0, 0], &[4, 8]).unwrap()]);
        let half = || Ownership::Boxes(vec![Region::new(&[0, 0], &[2, 8]).unwrap()]);
        let mut sender = ScheduleSetup::begin(exchange.clone(), half(), Role::Sender, 0).unwrap();
        let mut receiver =
            ScheduleSetup::begin(exchange.clone(), whole(), Role::Receiver, 0).unwrap();
        let mut problem = None;
        while problem.is_none() {
            let (to_all, asked) = (sender.take(), receiver.take());
            assert!(!to_all.is_empty() || !asked.is_empty(), "a gap is found");
            for routed in to_all {
                let to = if routed.of_sender {
                    &mut sender
                } else {
                    &mut receiver
                };
                problem = problem.or(to
                    .receive(RoutedMessage {
                        of_sender: true,
                        ..routed
                    })
                    .err());
            }
            for routed in asked {
                problem = problem.or(sender
                    .receive(RoutedMessage {
                        of_sender: false,
                        ..routed
                    })
                    .err());
            }
        }
        assert!(matches!(problem, Some(Error::Gap(_))), "{problem:?}");

        let exchange = Exchange::new(boxes(2), boxes(1)).unwrap();
        let [mut one, mut other] = [0, 1].map(|rank| {
            ScheduleSetup::begin(exchange.clone(), whole(), Role::Sender, rank).unwrap()
        });
        let mut problem = None;
        while problem.is_none() {
            let (first, second) = (one.take(), other.take());
            assert!(
                !first.is_empty() || !second.is_empty(),
                "an overlap is found"
            );
            for (from, messages) in [(0, first), (1, second)] {
                for routed in messages {
                    let to = if routed.rank == 0 {
                        &mut one
                    } else {
                        &mut other
                    };
                    let routed = RoutedMessage {
                        of_sender: true,
                        rank: from,
                        ..routed
                    };
                    problem = problem.or(to.receive(routed).err());
                }
            }
        }
        assert!(matches!(problem, Some(Error::Overlap(_))), "{problem:?}");
    }
}
