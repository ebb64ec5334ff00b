//! The partners of a rank, and the elements that go into a message.

use crate::Dims;

/// Somebody to whom a message goes, or from whom one comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Partner {
    /// The partner's rank.
    pub rank: u32,
    /// How many elements a message has, of each field.
    pub elements: u64,
}

/// Elements of one array: along each dimension the indices of an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SharedPiece {
    /// Which of the rank's arrays.
    pub block: u32,
    /// Which of the schedule's axes, for each dimension.
    pub axes: Dims<u32>,
    /// How many elements of the message come before it.
    pub before: u64,
}

/// Elements one after the other, by their numbers among the rank's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Strip {
    pub at: u64,
    pub length: u64,
}
