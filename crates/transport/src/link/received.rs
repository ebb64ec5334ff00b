//! The frames that come in on a link.

use titin_wire::ConduitId;
use titin_wire::frame::Ack;

use crate::inbox::Message;

/// A frame that came in on a link, or a message that came in several.
#[derive(Debug)]
pub enum Received {
    /// A message.
    Message(Message),
    /// How far the receiver of a conduit has come.
    Acknowledged(ConduitId, Ack),
    /// No message follows the first ones of a conduit, which are this many.
    Ended(ConduitId, u64),
    /// The sender of a conduit waits for room for the message of this number.
    Asked(ConduitId, u64),
    /// A control message.
    Control(Vec<u8>),
    /// Between processes that share memory: a segment, whose descriptor has come as well.
    Segment {
        /// Number of its first block.
        first: u64,
        /// Bytes of a block.
        size: u64,
        /// The number of blocks.
        count: u64,
    },
    /// The segment with this first block is no longer used.
    Withdrawn(u64),
    /// Between processes that share memory: entries wait in the ring.
    Look,
}
