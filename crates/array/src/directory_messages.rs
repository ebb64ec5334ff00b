//! What ranks tell each other so as to find out who owns what.

use crate::{IndexRange, Region};

/// What a rank of the receiver wants from one of the sender's, in the order in which its message has it. Boxes and numbers are
/// those of the domain: the coupled region, counted from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ElementRequest {
    /// All that it shares with the part that the receiver's regular decomposition gives to the rank.
    Part,
    /// What it has of these boxes.
    Boxes(Vec<Region>),
    /// All of these elements.
    Ranges(Vec<IndexRange>),
}

impl ElementRequest {
    /// What is wanted from each partner, made of what was found to be its, in the order of finding it.
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

/// What a rank tells the directory that it owns, or asks it for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DirectoryEntries {
    /// Boxes of the domain, each with its place in the rank's list.
    Boxes(Vec<(u32, Region)>),
    /// Elements by their numbers in the domain.
    Ranges(Vec<IndexRange>),
}

/// What the directory knows about the elements it was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DirectoryAnswer {
    /// The boxes that have any of them.
    Boxes(Vec<OwnedBox>),
    /// The owners of them, range by range.
    Ranges(Vec<(u32, IndexRange)>),
}

/// A box of a rank, in the domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OwnedBox {
    /// Whose it is.
    pub rank: u32,
    /// Its place in that rank's list.
    pub place: u32,
    /// The box.
    pub region: Region,
}
