//! How fast messages are between two instances: both sides of a ping-pong, and the run around them.

mod pingpong;
mod run;

use std::time::Duration;

use titin_model::Medium;

pub(crate) use pingpong::echo;
pub(crate) use run::{Ended, Scratch, measure};

/// The sizes that are tried, in bytes, up to the one that takes too long.
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

/// Messages up to this size are small: many are timed at once, since a clock takes as long as they do.
pub(crate) const SMALL: u64 = 1 << 12;

/// Who is at the other end, and how messages get there.
pub(crate) enum Peer {
    /// A thread of this process, or a process that is started for it.
    Here(Medium),
    /// A process on another host, which connects to this address.
    Elsewhere(std::net::IpAddr),
}

impl Peer {
    pub(crate) fn medium(&self) -> Medium {
        match self {
            Peer::Here(medium) => *medium,
            Peer::Elsewhere(_) => Medium::Tcp,
        }
    }
}

/// How long to take, and whom to tell.
pub(crate) struct Effort<'a> {
    /// For each size.
    pub(crate) time: Duration,
    /// Called with each size before it is measured.
    pub(crate) progress: &'a (dyn Fn(u64) + Sync),
}
