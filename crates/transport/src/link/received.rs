//! The incoming frames of a link.

use titin_wire::ConduitId;
use titin_wire::frame::Ack;

use crate::inbox::IncomingMessage;

/// An incoming frame of a link, or a message of several frames.
#[derive(Debug)]
pub enum Received {
    /// A message.
    Message(IncomingMessage),
    /// How far the receiver of a conduit has come.
    Acknowledged(ConduitId, Ack),
    /// The end of a conduit, and the number of its messages.
    Ended(ConduitId, u64),
    /// The sender of a conduit waits for room for the message with the given number.
    Asked(ConduitId, u64),
    /// A control message.
    Control(Vec<u8>),
    /// The other end asks for so many further streams in all.
    MoreStreams(u64),
    /// Between processes with shared memory: a segment. The segment's descriptor has come as well.
    Segment {
        /// Number of the first block.
        first: u64,
        /// Bytes of a block.
        size: u64,
        /// The number of blocks.
        count: u64,
    },
    /// The segment with the given first block is no longer used.
    Withdrawn(u64),
    /// Between processes with shared memory: entries wait in the ring.
    Look,
}
