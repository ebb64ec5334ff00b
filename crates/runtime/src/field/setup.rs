//! How the ranks of two instances find out the schedule of a field, where one side is irregular.
//!
//! A [`ScheduleSetup`] per rank and conduit takes in messages and decides on the messages to send.
//! No I/O, no waiting. The ranks of the sender are the directory, too: each rank knows the owners
//! of a part of the array, along a Hilbert curve (after XpressSpace).
//!
//! 1. If the sender is irregular, each rank of the sender **enters** its elements at the ranks of
//!    the directory for the elements, and the directory **acknowledges**. Once a rank has all its
//!    acknowledgements and all ranks below are done, **done** goes up the tree of ranks. **Go**
//!    comes down from rank 0.
//! 2. Each rank of the receiver **asks** the directory for the owners of the wanted elements, and
//!    gets **answers**.
//! 3. Each rank of the receiver tells the owners which elements the rank **wants**, and the owners
//!    acknowledge. **Done** goes up the tree of the receiver. Rank 0 tells rank 0 of the sender
//!    that all ranks have wanted (**complete**). **Go** comes down the tree of the sender: from
//!    then on each rank of the sender knows all wants.
//!
//! Ranks are not in step: a message for a later stage waits.

use std::collections::VecDeque;

use titin_array::{
    Directory, DirectoryAnswer, ElementRequest, Error, Exchange, Ownership, Register, Role,
    Schedule,
};
use titin_wire::ranks::{children, parent};

use super::rank_messages::{FieldMessage, RoutedMessage};

/// One rank on its way to the schedule of a field.
pub(crate) struct ScheduleSetup {
    exchange: Exchange,
    parts: Ownership,
    role: Role,
    rank: u32,
    /// The numbers of ranks of this instance, and of the sender.
    ranks: u32,
    senders: u32,
    stage: SetupStage,
    /// Messages for later stages.
    early: VecDeque<RoutedMessage>,
    /// How many acknowledgements are still to come, and how many ranks below are not done.
    unanswered: usize,
    below: usize,
    wants: Vec<(u32, ElementRequest)>,
    answers: Vec<DirectoryAnswer>,
    schedule: Option<Schedule>,
    out: Vec<RoutedMessage>,
}

enum SetupStage {
    /// A rank of the sender enters its elements in the directory.
    Entering(Register),
    /// A rank of the sender answers ranks of the receiver, and takes in the wants of the receiver.
    /// A regular sender has no directory.
    Serving(Option<Directory>),
    /// A rank of the receiver waits for this number of answers.
    Asking(usize),
    /// A rank of the receiver tells the owners which elements the rank wants.
    Wanting,
    Over,
}

impl ScheduleSetup {
    /// Begins. The first messages are to be taken.
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
            stage: SetupStage::Over,
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
            Role::Sender => setup.stage = SetupStage::Serving(None),
            Role::Receiver => setup.ask()?,
        }
        Ok(setup)
    }

    /// Takes the messages to send now.
    pub(crate) fn take(&mut self) -> Vec<RoutedMessage> {
        std::mem::take(&mut self.out)
    }

    /// The schedule, once known.
    pub(crate) fn schedule(&self) -> Option<&Schedule> {
        self.schedule.as_ref()
    }

    /// Takes in a message. If the message brings the next stage, also takes in the messages that
    /// waited for the stage.
    pub(crate) fn receive(&mut self, routed: RoutedMessage) -> Result<(), Error> {
        if matches!(self.stage, SetupStage::Over) {
            return Ok(());
        }
        self.early.push_back(routed);
        loop {
            // One message at a time, since each message may bring the next stage.
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

    fn is_time_for(&self, message: &FieldMessage) -> bool {
        match (&self.stage, message) {
            (SetupStage::Over, _) => false,
            (
                SetupStage::Entering(_),
                FieldMessage::Enter(_)
                | FieldMessage::Acknowledge
                | FieldMessage::Done
                | FieldMessage::Go,
            ) => true,
            (
                SetupStage::Serving(_),
                FieldMessage::Ask(_)
                | FieldMessage::Want(_)
                | FieldMessage::Complete
                | FieldMessage::Go,
            ) => true,
            (SetupStage::Asking(_), FieldMessage::Answer(_)) => true,
            (
                SetupStage::Asking(_) | SetupStage::Wanting,
                FieldMessage::Acknowledge | FieldMessage::Done,
            ) => true,
            _ => false,
        }
    }

    fn read(&mut self, RoutedMessage { rank, message, .. }: RoutedMessage) -> Result<(), Error> {
        match message {
            FieldMessage::Enter(entries) => {
                if let SetupStage::Entering(register) = &mut self.stage {
                    register.enter(rank, &entries)?;
                }
                self.send(true, rank, FieldMessage::Acknowledge);
            }
            FieldMessage::Ask(asked) => {
                if let SetupStage::Serving(Some(directory)) = &self.stage {
                    let answer = directory.answer(rank, &asked)?;
                    self.send(false, rank, FieldMessage::Answer(answer));
                }
            }
            FieldMessage::Answer(answer) => {
                self.answers.push(answer);
                if let SetupStage::Asking(missing) = &mut self.stage {
                    *missing = missing.saturating_sub(1);
                }
                self.want_if_answered()?;
            }
            FieldMessage::Want(wants) => {
                self.wants.push((rank, wants));
                self.send(false, rank, FieldMessage::Acknowledge);
            }
            FieldMessage::Acknowledge => {
                self.unanswered = self.unanswered.saturating_sub(1);
                self.go_on_if_done()?;
            }
            FieldMessage::Done => {
                self.below = self.below.saturating_sub(1);
                self.go_on_if_done()?;
            }
            FieldMessage::Go | FieldMessage::Complete => self.go()?,
            FieldMessage::Version(_) => {}
        }
        Ok(())
    }

    fn enter(&mut self) -> Result<(), Error> {
        let map = self.exchange.map(self.senders);
        let entries = self.exchange.entries(self.rank, &self.parts, &map)?;
        self.stage = SetupStage::Entering(Register::new(self.exchange.clone()));
        self.unanswered = entries.len();
        entries
            .into_iter()
            .for_each(|(rank, entries)| self.send(true, rank, FieldMessage::Enter(entries)));
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
        self.stage = SetupStage::Asking(queries.len());
        queries
            .into_iter()
            .for_each(|(rank, asked)| self.send(true, rank, FieldMessage::Ask(asked)));
        self.want_if_answered()
    }

    fn want_if_answered(&mut self) -> Result<(), Error> {
        if !matches!(self.stage, SetupStage::Asking(0)) {
            return Ok(());
        }
        let answers = std::mem::take(&mut self.answers);
        let (schedule, wants) = self.exchange.receiving(self.rank, &self.parts, answers)?;
        self.stage = SetupStage::Wanting;
        self.schedule = Some(schedule);
        self.unanswered = wants.len();
        wants
            .into_iter()
            .for_each(|(rank, wants)| self.send(true, rank, FieldMessage::Want(wants)));
        self.go_on_if_done()
    }

    /// Once this rank and all ranks below are done: tells the rank above, or goes on at rank 0.
    fn go_on_if_done(&mut self) -> Result<(), Error> {
        let is_telling = matches!(self.stage, SetupStage::Entering(_) | SetupStage::Wanting);
        if !is_telling || self.unanswered > 0 || self.below > 0 {
            return Ok(());
        }
        // So this rank tells once.
        self.below = usize::MAX;
        match (parent(self.rank), self.role) {
            (Some(above), role) => self.send(role == Role::Sender, above, FieldMessage::Done),
            (None, Role::Sender) => return self.go(),
            (None, Role::Receiver) => self.send(true, 0, FieldMessage::Complete),
        }
        if self.role == Role::Receiver {
            self.stage = SetupStage::Over;
        }
        Ok(())
    }

    /// All ranks are done with the stage.
    fn go(&mut self) -> Result<(), Error> {
        children(self.rank, self.ranks).for_each(|child| self.send(true, child, FieldMessage::Go));
        self.stage = match std::mem::replace(&mut self.stage, SetupStage::Over) {
            SetupStage::Entering(register) => SetupStage::Serving(Some(register.directory()?)),
            _ => {
                let wants = std::mem::take(&mut self.wants);
                self.schedule = Some(self.exchange.sending(self.rank, &self.parts, &wants)?);
                SetupStage::Over
            }
        };
        Ok(())
    }

    fn send(&mut self, of_sender: bool, rank: u32, message: FieldMessage) {
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

    /// The rows of the array that `owner` deals out to a rank.
    fn rows(owner: impl Fn(u64) -> u32, count: u64, rank: u32) -> Ownership {
        let mine = (0..count).filter(|row| owner(*row) == rank);
        Ownership::Boxes(
            mine.map(|row| Region::new(&[row, 0], &[row + 1, 8]).unwrap())
                .collect(),
        )
    }

    /// Has all ranks of both sides find their schedules. The number `order` chooses the order in
    /// which messages arrive.
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
