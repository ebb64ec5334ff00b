//! How the ranks of two instances find out who sends what to whom, where one side is irregular.
//!
//! One of these per rank and conduit takes in letters and says which to send: it has no I/O, and waits for nothing. The ranks of
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
    Directory, DirectoryAnswer, DirectoryEntries, ElementRequest, Error, Exchange, Ownership,
    Register, Role, Schedule,
};
use titin_wire::ranks::{children, parent};

use super::Word;

/// What ranks tell each other.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Letter {
    Enter(DirectoryEntries),
    Ask(DirectoryEntries),
    Answer(DirectoryAnswer),
    Want(ElementRequest),
    Acknowledge,
    Done,
    Go,
    Complete,
    /// About the versions of a field that is pulled, once its schedules are known.
    Word(Word),
}

/// A letter, and for whom or from whom.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Envelope {
    /// Whether the other rank is one of the sender's.
    pub(crate) of_sender: bool,
    pub(crate) rank: u32,
    pub(crate) letter: Letter,
}

/// The way of one rank to its schedule.
pub(crate) struct Setup {
    exchange: Exchange,
    parts: Ownership,
    role: Role,
    rank: u32,
    /// Ranks of the own instance, and of the sender.
    ranks: u32,
    senders: u32,
    stage: Stage,
    /// Letters for later stages.
    early: VecDeque<Envelope>,
    /// How many acknowledgements are waited for, and how many ranks below.
    unanswered: usize,
    below: usize,
    wants: Vec<(u32, ElementRequest)>,
    answers: Vec<DirectoryAnswer>,
    schedule: Option<Schedule>,
    out: Vec<Envelope>,
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

impl Setup {
    /// Begins; the first letters are to be taken.
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
        let mut setup = Setup {
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
    pub(crate) fn take(&mut self) -> Vec<Envelope> {
        std::mem::take(&mut self.out)
    }

    /// The schedule, once it is known.
    pub(crate) fn schedule(&self) -> Option<&Schedule> {
        self.schedule.as_ref()
    }

    /// Takes in a letter, and those that have waited for what it brings.
    pub(crate) fn receive(&mut self, envelope: Envelope) -> Result<(), Error> {
        if matches!(self.stage, Stage::Over) {
            return Ok(());
        }
        self.early.push_back(envelope);
        loop {
            // One by one, as each may bring the next stage.
            let place = self
                .early
                .iter()
                .position(|envelope| self.is_time_for(&envelope.letter));
            let Some(envelope) = place.and_then(|place| self.early.remove(place)) else {
                return Ok(());
            };
            self.read(envelope)?;
        }
    }

    fn is_time_for(&self, letter: &Letter) -> bool {
        match (&self.stage, letter) {
            (Stage::Over, _) => false,
            (
                Stage::Entering(_),
                Letter::Enter(_) | Letter::Acknowledge | Letter::Done | Letter::Go,
            ) => true,
            (
                Stage::Serving(_),
                Letter::Ask(_) | Letter::Want(_) | Letter::Complete | Letter::Go,
            ) => true,
            (Stage::Asking(_), Letter::Answer(_)) => true,
            (Stage::Asking(_) | Stage::Wanting, Letter::Acknowledge | Letter::Done) => true,
            _ => false,
        }
    }

    fn read(&mut self, Envelope { rank, letter, .. }: Envelope) -> Result<(), Error> {
        match letter {
            Letter::Enter(entries) => {
                if let Stage::Entering(register) = &mut self.stage {
                    register.enter(rank, &entries)?;
                }
                self.send(true, rank, Letter::Acknowledge);
            }
            Letter::Ask(asked) => {
                if let Stage::Serving(Some(directory)) = &self.stage {
                    let answer = directory.answer(rank, &asked)?;
                    self.send(false, rank, Letter::Answer(answer));
                }
            }
            Letter::Answer(answer) => {
                self.answers.push(answer);
                if let Stage::Asking(missing) = &mut self.stage {
                    *missing = missing.saturating_sub(1);
                }
                self.want_if_answered()?;
            }
            Letter::Want(wants) => {
                self.wants.push((rank, wants));
                self.send(false, rank, Letter::Acknowledge);
            }
            Letter::Acknowledge => {
                self.unanswered = self.unanswered.saturating_sub(1);
                self.go_on_if_done()?;
            }
            Letter::Done => {
                self.below = self.below.saturating_sub(1);
                self.go_on_if_done()?;
            }
            Letter::Go | Letter::Complete => self.go()?,
            Letter::Word(_) => {}
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
            .for_each(|(rank, entries)| self.send(true, rank, Letter::Enter(entries)));
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
            .for_each(|(rank, asked)| self.send(true, rank, Letter::Ask(asked)));
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
            .for_each(|(rank, wants)| self.send(true, rank, Letter::Want(wants)));
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
            (Some(above), role) => self.send(role == Role::Sender, above, Letter::Done),
            (None, Role::Sender) => return self.go(),
            (None, Role::Receiver) => self.send(true, 0, Letter::Complete),
        }
        if self.role == Role::Receiver {
            self.stage = Stage::Over;
        }
        Ok(())
    }

    /// All ranks are so far.
    fn go(&mut self) -> Result<(), Error> {
        children(self.rank, self.ranks).for_each(|child| self.send(true, child, Letter::Go));
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

    fn send(&mut self, of_sender: bool, rank: u32, letter: Letter) {
        self.out.push(Envelope {
            of_sender,
            rank,
            letter,
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

    /// Has all ranks of both sides find their schedules; letters are delivered in an order that a number chooses.
    fn play(
        exchange: &Exchange,
        parts: impl Fn(Role, u32) -> Ownership,
        mut order: u64,
    ) -> [Vec<Setup>; 2] {
        let roles = [Role::Sender, Role::Receiver];
        let ranks = [exchange.from(), exchange.to()].map(|side| side.decomposition.ranks());
        let begin = |role: Role, rank| {
            Setup::begin(exchange.clone(), parts(role, rank), role, rank).unwrap()
        };
        let mut setups = [0, 1].map(|side| {
            (0..ranks[side])
                .map(|rank| begin(roles[side], rank))
                .collect::<Vec<_>>()
        });
        let mut mail: Vec<(usize, u32, Envelope)> = Vec::new();
        loop {
            for side in [0, 1] {
                for rank in 0..ranks[side] {
                    for envelope in setups[side][rank as usize].take() {
                        let to = usize::from(!envelope.of_sender);
                        mail.push((
                            to,
                            envelope.rank,
                            Envelope {
                                of_sender: side == 0,
                                rank,
                                ..envelope
                            },
                        ));
                    }
                }
            }
            if mail.is_empty() {
                return setups;
            }
            order = order
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            let (side, rank, envelope) = mail.swap_remove((order >> 33) as usize % mail.len());
            setups[side][rank as usize].receive(envelope).unwrap();
        }
    }

    #[test]
    fn every_rank_finds_its_schedule_in_whatever_order_letters_come() {
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
                let elements = |setups: &[Setup]| -> u64 {
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
        let mut sender = Setup::begin(exchange.clone(), half(), Role::Sender, 0).unwrap();
        let mut receiver = Setup::begin(exchange.clone(), whole(), Role::Receiver, 0).unwrap();
        let mut problem = None;
        while problem.is_none() {
            let (to_all, asked) = (sender.take(), receiver.take());
            assert!(!to_all.is_empty() || !asked.is_empty(), "a gap is found");
            for envelope in to_all {
                let to = if envelope.of_sender {
                    &mut sender
                } else {
                    &mut receiver
                };
                problem = problem.or(to
                    .receive(Envelope {
                        of_sender: true,
                        ..envelope
                    })
                    .err());
            }
            for envelope in asked {
                problem = problem.or(sender
                    .receive(Envelope {
                        of_sender: false,
                        ..envelope
                    })
                    .err());
            }
        }
        assert!(matches!(problem, Some(Error::Gap(_))), "{problem:?}");

        let exchange = Exchange::new(boxes(2), boxes(1)).unwrap();
        let [mut one, mut other] =
            [0, 1].map(|rank| Setup::begin(exchange.clone(), whole(), Role::Sender, rank).unwrap());
        let mut problem = None;
        while problem.is_none() {
            let (first, second) = (one.take(), other.take());
            assert!(
                !first.is_empty() || !second.is_empty(),
                "an overlap is found"
            );
            for (from, envelopes) in [(0, first), (1, second)] {
                for envelope in envelopes {
                    let to = if envelope.rank == 0 {
                        &mut one
                    } else {
                        &mut other
                    };
                    let envelope = Envelope {
                        of_sender: true,
                        rank: from,
                        ..envelope
                    };
                    problem = problem.or(to.receive(envelope).err());
                }
            }
        }
        assert!(matches!(problem, Some(Error::Overlap(_))), "{problem:?}");
    }
}
