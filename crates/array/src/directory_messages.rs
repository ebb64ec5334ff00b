//! Messages between ranks about the owners of elements.

use crate::{IndexRange, Region};

/// The request of a rank of the receiver to a rank of the sender, in the order of the message.
/// Boxes and numbers count in the domain: the coupled region, counted from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ElementRequest {
    /// All elements that the sender's rank shares with the part of the receiver's rank in a regular
    /// decomposition.
    Part,
    /// All elements that the sender's rank has of these boxes.
    Boxes(Vec<Region>),
    /// All elements of these ranges.
    Ranges(Vec<IndexRange>),
}

impl ElementRequest {
    /// The request to each partner. `make` gets all items of a partner, in the order of `asked`.
    pub(crate) fn by_partner<T: Copy>(
        mut asked: Vec<(u32, T)>,
        make: impl Fn(&mut dyn Iterator<Item = T>) -> ElementRequest,
    ) -> Vec<(u32, ElementRequest)> {
        asked.sort_by_key(|(partner, _)| *partner);
        let groups = asked.chunk_by(|one, other| one.0 == other.0);
        groups
            .map(|group| (group[0].0, make(&mut group.iter().map(|(_, one)| *one))))
            .collect()
    }
}

/// The elements that a rank owns, for the directory, or asks the directory for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DirectoryEntries {
    /// Boxes of the domain with their places in the rank's list.
    Boxes(Vec<(u32, Region)>),
    /// Ranges of numbers in the domain.
    Ranges(Vec<IndexRange>),
}

/// The answer of the directory to a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DirectoryAnswer {
    /// All boxes that share an element with the query.
    Boxes(Vec<OwnedBox>),
    /// The ranges of the query with their owners.
    Ranges(Vec<(u32, IndexRange)>),
}

/// A box of the domain that a rank owns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OwnedBox {
    /// The owner.
    pub rank: u32,
    /// The place of the box in the owner's list.
    pub place: u32,
    /// The box.
    pub region: Region,
}
