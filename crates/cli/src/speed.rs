//! How fast messages are between two instances: both sides of a ping-pong, and the run around them.

mod pingpong;
mod run;

use std::time::Duration;

use serde::Serialize;
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

/// What a medium can do.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Speed {
    pub(crate) medium: &'static str,
    /// Of the fastest of small messages, in seconds.
    pub(crate) latency: f64,
    /// Of the largest message, in bytes per second.
    pub(crate) bandwidth: f64,
    pub(crate) sizes: Vec<Figure>,
}

/// What a message of one size costs, one way.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Figure {
    pub(crate) bytes: u64,
    /// The median.
    pub(crate) seconds: f64,
    /// By how much half of the times differ from it, as a part of it.
    pub(crate) spread: f64,
    /// Round trips that it was taken from.
    pub(crate) trips: u64,
}

impl Figure {
    pub(crate) fn bandwidth(&self) -> f64 {
        self.bytes as f64 / self.seconds
    }
}

impl Speed {
    fn new(medium: Medium, sizes: Vec<Figure>) -> Speed {
        let small = sizes.iter().filter(|figure| figure.bytes <= SMALL);
        let latency = small
            .map(|figure| figure.seconds)
            .fold(f64::INFINITY, f64::min);
        let bandwidth = sizes.last().map_or(0.0, Figure::bandwidth);
        Speed {
            medium: medium.key(),
            latency,
            bandwidth,
            sizes,
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
