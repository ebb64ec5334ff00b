//! The schedule of a field: how many elements each rank of the sender sends to each rank of the
//! receiver. A single process computes the schedule of all ranks, just as the ranks of a run would.

pub(crate) mod described;
mod json;
pub(crate) mod recorded;

use serde::Serialize;
use titin_array::{Decomposition, Exchange, Ownership, Region, Side, Spread};
use titin_model::Pattern;

use crate::{DrawError, Result};

pub use json::schedules_to_json;

/// The most messages of a schedule.
const MOST_MESSAGES: usize = 20_000_000;
/// The most ranks of a side.
const MOST_RANKS: u32 = 1 << 20;
/// The most indices of both sides together, where sides are given by indices.
const MOST_INDICES: u64 = 4_000_000;

/// A field between two instances.
pub struct FieldCoupling {
    /// The sender's array.
    pub from: FieldSide,
    /// The receiver's array.
    pub to: FieldSide,
    /// The bytes of one element, summed over all arrays that travel together.
    pub bytes: u64,
    /// How many arrays travel together.
    pub arrays: usize,
    /// The field's steps by the description, and whether the field is pushed or pulled.
    pub pattern: Option<Pattern>,
    /// How many other fields between the same two components are alike.
    pub more: usize,
}

/// The array at an end of a conduit, and which rank owns each part of the array.
pub struct FieldSide {
    /// The port, as users write the port's name. A side given in YAML has no port.
    pub port: Option<String>,
    /// Decomposition, coupled region and order of the elements.
    pub side: Side,
    /// The parts of each rank of an irregular side; `None` if only the ranks know their parts.
    pub parts: Option<Vec<Ownership>>,
    /// The width of the halo below and above the part, in each dimension.
    pub halo: Vec<(u64, u64)>,
}

/// The elements that a rank of the sender sends to a rank of the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RankMessage {
    /// The rank of the sender.
    pub from: u32,
    /// The rank of the receiver.
    pub to: u32,
    /// How many elements.
    pub elements: u64,
}

/// All messages of an exchange, sorted by sender and then by receiver.
#[derive(Debug, PartialEq)]
pub struct RankMessages(pub Vec<RankMessage>);

/// A field and the field's messages.
pub struct FieldSchedule {
    /// The field.
    pub coupling: FieldCoupling,
    /// `None` if only the ranks of a side know which elements they own.
    pub messages: Option<RankMessages>,
}

impl FieldSide {
    pub(crate) fn ranks(&self) -> u32 {
        self.side.decomposition.ranks()
    }

    /// Whether this process knows which rank owns each element.
    pub(crate) fn is_known(&self) -> bool {
        self.side.decomposition.is_regular() || self.parts.is_some()
    }

    /// The parts of a rank of an irregular side; [`Ownership::Rule`] if the parts are not known.
    pub(crate) fn parts(&self, rank: u32) -> &Ownership {
        const RULE: &Ownership = &Ownership::Rule;
        self.parts
            .as_ref()
            .and_then(|parts| parts.get(rank as usize))
            .unwrap_or(RULE)
    }

    /// The boxes of a rank.
    pub(crate) fn boxes(&self, rank: u32) -> Vec<Region> {
        match self.parts(rank) {
            Ownership::Boxes(boxes) => boxes.clone(),
            _ => self.side.decomposition.regions(rank),
        }
    }

    /// The decomposition in words: `grid 4 × 1, even`.
    pub(crate) fn decomposition_text(&self) -> String {
        let decomposition = &self.side.decomposition;
        let Some(processes) = decomposition.processes() else {
            return if decomposition.is_by_boxes() {
                "boxes".into()
            } else {
                "indices".into()
            };
        };
        if self.ranks() == 1 {
            return "whole".into();
        }
        let mut spreads: Vec<String> = decomposition.spreads().map(spread_text).collect();
        if spreads.iter().all(|spread| *spread == spreads[0]) {
            spreads.truncate(1);
        }
        let order = if counts_in_fortran_order(decomposition) {
            ", ranks in Fortran order"
        } else {
            ""
        };
        format!("grid {processes}, {}{order}", spreads.join(" × "))
    }
}

/// A spread in the notation of users.
fn spread_text(spread: &Spread) -> String {
    match spread {
        Spread::Even => "even".into(),
        Spread::Block => "block".into(),
        Spread::Cyclic(block) => format!("cyclic({block})"),
        Spread::Bounds(_) => "bounds".into(),
    }
}

/// Whether ranks count through the grid with the first dimension fastest. In a grid with only a
/// single dimension wider than 1, both orders number the ranks alike; such a grid counts as C.
fn counts_in_fortran_order(decomposition: &Decomposition) -> bool {
    let Some(processes) = decomposition.processes() else {
        return false;
    };
    let wide: Vec<usize> = (0..processes.len())
        .filter(|dim| processes[*dim] > 1)
        .collect();
    let rank_1 = decomposition.coordinates(1);
    wide.len() > 1 && rank_1.is_some_and(|coordinates| coordinates[wide[0]] == 1)
}

impl FieldSchedule {
    /// Computes the schedule of a field.
    ///
    /// # Errors
    /// The sides do not fit together, or are too large.
    pub fn new(coupling: FieldCoupling) -> Result<FieldSchedule> {
        let messages = coupling.messages()?;
        Ok(FieldSchedule { coupling, messages })
    }
}

impl FieldCoupling {
    /// All messages; `None` if only the ranks of a side know which elements they own.
    pub(crate) fn messages(&self) -> Result<Option<RankMessages>> {
        let exchange = Exchange::new(self.from.side.clone(), self.to.side.clone())?;
        if !self.from.is_known() || !self.to.is_known() {
            return Ok(None);
        }
        self.check_size()?;
        let mut messages = Vec::new();
        exchange.every_sender(
            self.from.parts.as_deref().unwrap_or_default(),
            self.to.parts.as_deref().unwrap_or_default(),
            |from, schedule| {
                let partners = schedule.partners();
                messages.extend(partners.map(|to| RankMessage {
                    from,
                    to: to.rank,
                    elements: to.elements,
                }));
                messages.len() <= MOST_MESSAGES
            },
        )?;
        if messages.len() > MOST_MESSAGES {
            let most = MOST_MESSAGES;
            return Err(DrawError::TooManyMessages { most });
        }
        Ok(Some(RankMessages(messages)))
    }

    /// Refuses sides if the schedule would take too much time or memory.
    fn check_size(&self) -> Result<()> {
        let ranks = self.from.ranks().max(self.to.ranks());
        if ranks > MOST_RANKS {
            let most = MOST_RANKS;
            return Err(DrawError::TooManyRanks { ranks, most });
        }
        let parts = [&self.from, &self.to]
            .into_iter()
            .flat_map(|side| side.parts.iter().flatten());
        let indices = parts
            .filter(|parts| matches!(parts, Ownership::Indices(_)))
            .fold(0u64, |sum, parts| {
                sum.saturating_add(parts.elements().unwrap_or_default())
            });
        if indices > MOST_INDICES {
            let most = MOST_INDICES;
            return Err(DrawError::TooManyIndices { indices, most });
        }
        Ok(())
    }
}

impl RankMessages {
    pub(crate) fn elements(&self) -> u64 {
        self.0.iter().map(|message| message.elements).sum()
    }

    /// The fewest and the most partners of any rank of a side. `rank_of` gives the rank of the same
    /// side in a message.
    pub(crate) fn partners(&self, ranks: u32, rank_of: impl Fn(&RankMessage) -> u32) -> (u32, u32) {
        let mut counts = vec![0; ranks as usize];
        self.0
            .iter()
            .for_each(|message| counts[rank_of(message) as usize] += 1);
        (
            counts.iter().copied().min().unwrap_or(0),
            counts.iter().copied().max().unwrap_or(0),
        )
    }
}
