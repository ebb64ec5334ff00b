//! The partner of a rank, and the parts of a message.

use crate::Dims;

/// A rank of the other side that a rank sends a message to or receives a message from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Partner {
    /// The partner's rank.
    pub rank: u32,
    /// The number of elements of each field in a message.
    pub elements: u64,
}

/// Elements of one array in a message: the product of an axis along each dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SharedPiece {
    /// The number of the array of the rank.
    pub block: u32,
    /// The number of the axis in the schedule, for each dimension.
    pub axes: Dims<u32>,
    /// The number of elements before this piece in the message.
    pub before: u64,
}

/// A range of elements, numbered among the own elements of the rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Strip {
    pub at: u64,
    pub length: u64,
}
