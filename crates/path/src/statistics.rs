//! What a path has carried, and how.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use titin_transport::Link;

/// The figures of one end of a path since it was opened.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PathStatistics {
    /// How long the path has been open.
    pub time: Duration,
    /// Messages that this end has sent. A long message counts from its beginning on.
    pub messages_sent: u64,
    /// Bytes that this end has sent.
    pub bytes_sent: u64,
    /// Messages that the program has received.
    pub messages_received: u64,
    /// Bytes that the program has received.
    pub bytes_received: u64,
    /// How long the calls of the program have waited: for messages, room at the receiver, or the other program. The waits of several
    /// threads add up.
    pub waited: Duration,
    /// The round trip as the system has averaged it, of the stream with the least, if the system measures it.
    pub round_trip: Option<Duration>,
    /// Packets that this host has sent again, if the system counts them.
    pub retransmissions: Option<u64>,
    /// How many bytes per second this end sends at most; `None` without a limit.
    pub pacing: Option<u64>,
    /// The sizes of the buffers of a stream, as the system has them: to send and to receive.
    pub buffers: Option<[u64; 2]>,
    /// The bytes of the pieces in which several streams carry a message; `None` if titin chooses.
    pub piece: Option<u64>,
}

/// The counts of one end.
pub(crate) struct PathCounts {
    opened: Instant,
    messages_sent: AtomicU64,
    bytes_sent: AtomicU64,
    messages_received: AtomicU64,
    bytes_received: AtomicU64,
    /// In nanoseconds.
    waited: AtomicU64,
}

impl Default for PathCounts {
    fn default() -> Self {
        PathCounts {
            opened: Instant::now(),
            messages_sent: AtomicU64::new(0),
            bytes_sent: AtomicU64::new(0),
            messages_received: AtomicU64::new(0),
            bytes_received: AtomicU64::new(0),
            waited: AtomicU64::new(0),
        }
    }
}

impl PathCounts {
    /// Notes messages that have begun, and bytes of messages.
    pub(crate) fn note_sent(&self, messages: u64, bytes: u64) {
        self.messages_sent.fetch_add(messages, Ordering::Relaxed);
        self.bytes_sent.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Notes messages that are whole, and bytes of messages.
    pub(crate) fn note_received(&self, messages: u64, bytes: u64) {
        self.messages_received
            .fetch_add(messages, Ordering::Relaxed);
        self.bytes_received.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Notes a wait that has begun at this time.
    pub(crate) fn note_wait(&self, begun: Instant) {
        let waited = begun.elapsed().as_nanos() as u64;
        self.waited.fetch_add(waited, Ordering::Relaxed);
    }

    pub(crate) fn statistics(&self, link: &Link) -> PathStatistics {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let figures = link.figures();
        PathStatistics {
            time: self.opened.elapsed(),
            messages_sent: count(&self.messages_sent),
            bytes_sent: count(&self.bytes_sent),
            messages_received: count(&self.messages_received),
            bytes_received: count(&self.bytes_received),
            waited: Duration::from_nanos(count(&self.waited)),
            round_trip: figures.round_trip,
            retransmissions: figures.retransmissions,
            pacing: figures.pacing,
            buffers: figures.buffers,
            piece: figures.piece,
        }
    }
}
