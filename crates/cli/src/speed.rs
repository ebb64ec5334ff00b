//! The time of messages between two instances: both sides of a ping-pong, and the run around the
//! sides.

mod pingpong;
mod run;

use std::time::Duration;

use titin_model::Medium;

pub(crate) use pingpong::{echo, median_and_spread};
pub(crate) use run::{BenchError, Scratch, measure};

/// The sizes in bytes. A measurement ends early at a size that takes too long.
pub(crate) const SIZES: [u64; 10] = [
    0,
    1 << 10,
    1 << 12,
    1 << 14,
    1 << 16,
    1 << 18,
    1 << 20,
    1 << 22,
    1 << 24,
    1 << 26,
];

/// The largest small message. Small messages are timed in groups, since reading a clock takes as
/// long as sending a small message.
pub(crate) const SMALL: u64 = 1 << 12;

/// The other end of the ping-pong.
pub(crate) enum BenchPeer {
    /// A thread of this process, or a process on this host, by the given medium.
    Here(Medium),
    /// A process on another host; the process connects to the given address.
    Elsewhere(std::net::IpAddr),
}

impl BenchPeer {
    pub(crate) fn medium(&self) -> Medium {
        match self {
            BenchPeer::Here(medium) => *medium,
            BenchPeer::Elsewhere(_) => Medium::Tcp,
        }
    }
}

/// How long to measure, and how to report progress.
pub(crate) struct Effort<'a> {
    /// The time for each size.
    pub(crate) time: Duration,
    /// Called with each size, before the measurement of the size.
    pub(crate) progress: &'a (dyn Fn(u64) + Sync),
}
