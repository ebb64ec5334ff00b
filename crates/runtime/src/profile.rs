//! What an instance counts by default, and the event rows that it keeps when the run is traced.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use titin_wire::control::Event;

/// One of so many calls is timed where a clock would cost a tenth of them.
pub(crate) const SAMPLE: u32 = 64;

/// Counters of one end of a conduit.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    /// Nothing is counted.
    pub(crate) off: bool,
    pub(crate) messages: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) copied: AtomicU64,
    /// Messages for which no shared memory was left.
    pub(crate) by_socket: AtomicU64,
    waiting: AtomicU64,
}

impl Meter {
    pub(crate) fn count(&self, bytes: u64, copied: u64) {
        if self.off {
            return;
        }
        add(&self.messages, 1);
        add(&self.bytes, bytes);
        add(&self.copied, copied);
    }

    pub(crate) fn went_by_socket(&self) {
        if !self.off {
            add(&self.by_socket, 1);
        }
    }

    /// Whether the message that is counted next is one of those that are timed.
    pub(crate) fn is_sample(&self) -> bool {
        !self.off && self.messages.load(Ordering::Relaxed).is_multiple_of(SAMPLE.into())
    }

    pub(crate) fn waited(&self, time: Duration) {
        add(&self.waiting, time.as_nanos() as u64);
    }

    pub(crate) fn waited_so_far(&self) -> Duration {
        Duration::from_nanos(self.waiting.load(Ordering::Relaxed))
    }

    pub(crate) fn waiting(&self) -> f64 {
        self.waited_so_far().as_secs_f64()
    }
}

/// Adds to a counter that only one thread writes at a time, since a port is in one call at a time; others may read it. Three
/// additions that hold for several writers cost 14 ns, as much as the rest of a short way; these cost 1.
fn add(counter: &AtomicU64, amount: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(amount), Ordering::Relaxed);
}

/// Rows kept before they are handed to the manager.
const BATCH: usize = 4096;

/// The clock and rows of one instance.
#[derive(Debug)]
pub(crate) struct Trace {
    /// Whether rows are kept.
    pub(crate) on: bool,
    /// Nothing is counted or timed.
    pub(crate) off: bool,
    origin: Instant,
    epoch: i64,
    rows: Mutex<Vec<Event>>,
    regions: Mutex<BTreeMap<String, (u64, f64)>>,
}

impl Trace {
    /// As the run traces, unless the instance is set to keep rows, or to count nothing at all.
    pub(crate) fn new(run: bool, own: Option<bool>) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Trace {
            on: own.unwrap_or(run),
            off: own == Some(false),
            origin: Instant::now(),
            epoch: since.as_nanos() as i64,
            rows: Mutex::default(),
            regions: Mutex::default(),
        }
    }

    /// Seconds since the Unix epoch at which the instance began.
    pub(crate) fn start(&self) -> f64 {
        self.epoch as f64 * 1e-9
    }

    /// Now, in nanoseconds since the Unix epoch, on a clock that does not jump.
    pub(crate) fn now(&self) -> i64 {
        self.epoch + self.origin.elapsed().as_nanos() as i64
    }

    /// The clock by which waits are counted; it stands still where they are not.
    pub(crate) fn clock(&self) -> Instant {
        if self.off { self.origin } else { Instant::now() }
    }

    /// As [`Trace::now`], if rows are kept.
    pub(crate) fn start_of_wait(&self) -> i64 {
        if self.on { self.now() } else { 0 }
    }

    /// Keeps a row; the full batch, when it is time to hand it over.
    pub(crate) fn row(&self, event: Event) -> Option<Vec<Event>> {
        let mut rows = self.rows.lock().expect("never poisoned");
        rows.push(event);
        (rows.len() >= BATCH).then(|| std::mem::take(&mut *rows))
    }

    pub(crate) fn take_rows(&self) -> Vec<Event> {
        std::mem::take(&mut *self.rows.lock().expect("never poisoned"))
    }

    pub(crate) fn region(&self, name: &str, seconds: f64) {
        let mut regions = self.regions.lock().expect("never poisoned");
        let entry = regions.entry(name.to_owned()).or_default();
        entry.0 += 1;
        entry.1 += seconds;
    }

    pub(crate) fn regions(&self) -> Vec<(String, u64, f64)> {
        let regions = self.regions.lock().expect("never poisoned");
        regions.iter().map(|(name, (uses, seconds))| (name.clone(), *uses, *seconds)).collect()
    }
}

/// A region of the user's own, from its beginning to [`crate::Instance::end_region`].
#[derive(Debug)]
pub struct Region {
    pub(crate) name: String,
    pub(crate) start: i64,
}
