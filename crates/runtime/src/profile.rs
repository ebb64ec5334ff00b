//! The counters of an instance, and the event rows of a traced run.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use titin_wire::control::Event;

use crate::process::ManagerClock;

/// If a look at the clock would cost a tenth of a call, only one call of `SAMPLE` calls is timed.
/// The number is prime. So in a repeated pattern of sends, such as a large message and a small
/// message in turn, each send is timed now and then.
const SAMPLE: u32 = 61;

/// The number of calls for which the call with this number stands, if the call is timed.
pub(crate) fn stands_for(number: u64) -> Option<u32> {
    match number {
        _ if number < SAMPLE.into() => Some(1),
        _ if number.is_multiple_of(SAMPLE.into()) => Some(SAMPLE),
        _ => None,
    }
}

/// The addition of a timed send to the time of all sends, if the send stands for `times` sends. The
/// `times` sends together cannot have taken longer than the time since the last timed send: a
/// delayed send does not make the others slow.
pub(crate) fn share(time: Duration, times: u32, since_last: Duration) -> Duration {
    (time * times).min(since_last).max(time)
}

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
    /// Compressed messages, and how many bytes fewer they have by it. A filter may add bytes, so the
    /// number may wrap below zero.
    pub(crate) compressed: AtomicU64,
    pub(crate) saved: AtomicU64,
    /// Why no shared memory was left, for the first such message.
    short: OnceLock<Box<str>>,
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

    /// Counts a message that was compressed.
    pub(crate) fn count_compressed(&self, before: u64, after: u64) {
        if !self.off {
            add(&self.compressed, 1);
            add(&self.saved, before.wrapping_sub(after));
        }
    }

    pub(crate) fn went_by_socket(&self) {
        if !self.off {
            add(&self.by_socket, 1);
        }
    }

    /// The number of messages for which the next message stands, if the next message is timed.
    pub(crate) fn sample(&self) -> Option<u32> {
        if self.off {
            None
        } else {
            stands_for(self.messages.load(Ordering::Relaxed))
        }
    }

    /// Keeps why no shared memory was left.
    pub(crate) fn ran_out(&self, why: String) {
        let _ = self.short.set(why.into());
    }

    /// Why no shared memory was left, if there was none.
    pub(crate) fn shortage(&self) -> Option<&str> {
        self.short.get().map(AsRef::as_ref)
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

/// Adds to a counter with only one writer at a time, since a port is in one call at a time; others
/// may read the counter. Three atomic additions for several writers cost 14 ns, as much as the rest
/// of a short way; three additions by this function cost 1 ns.
fn add(counter: &AtomicU64, amount: u64) {
    counter.store(
        counter.load(Ordering::Relaxed).wrapping_add(amount),
        Ordering::Relaxed,
    );
}

/// The number of rows kept before the instance hands the rows to the manager.
const BATCH: usize = 4096;

/// The clock and rows of one instance.
#[derive(Debug)]
pub(crate) struct Trace {
    /// Whether rows are kept.
    pub(crate) on: bool,
    /// Nothing is counted or timed.
    pub(crate) off: bool,
    /// The beginning of the instance, by a clock that does not jump and by the clock of the manager, in
    /// nanoseconds since the Unix epoch.
    origin: Instant,
    epoch: i64,
    rows: Mutex<Vec<Event>>,
    /// The steps of joining and leaving, traced or not, until handed over, once.
    life: Mutex<Option<Vec<Event>>>,
    regions: Mutex<BTreeMap<String, (u64, f64)>>,
}

impl Trace {
    /// Traces as the run does, unless a setting of the instance asks to keep rows, or to count
    /// nothing.
    pub(crate) fn new(run: bool, own: Option<bool>, clock: ManagerClock) -> Self {
        let (origin, epoch) = clock.moment();
        Trace {
            on: own.unwrap_or(run),
            off: own == Some(false),
            origin,
            epoch,
            rows: Mutex::default(),
            life: Mutex::new(Some(Vec::new())),
            regions: Mutex::default(),
        }
    }

    /// Seconds since the Unix epoch at the beginning of the instance.
    pub(crate) fn start(&self) -> f64 {
        self.epoch as f64 * 1e-9
    }

    /// Now, in nanoseconds since the Unix epoch: the manager's clock at the beginning of the instance, and a
    /// clock that does not jump from then on.
    pub(crate) fn now(&self) -> i64 {
        self.at(Instant::now())
    }

    /// The given time, on the same clock.
    pub(crate) fn at(&self, time: Instant) -> i64 {
        let since = time.saturating_duration_since(self.origin).as_nanos();
        let before = self.origin.saturating_duration_since(time).as_nanos();
        self.epoch + since as i64 - before as i64
    }

    /// The clock for waits. The clock stands still where nothing is counted.
    pub(crate) fn clock(&self) -> Instant {
        if self.off {
            self.origin
        } else {
            Instant::now()
        }
    }

    /// Keeps a row. Returns all kept rows once there are enough to hand over.
    pub(crate) fn row(&self, event: Event) -> Option<Vec<Event>> {
        let mut rows = self.rows.lock().expect("never poisoned");
        rows.push(event);
        (rows.len() >= BATCH).then(|| std::mem::take(&mut *rows))
    }

    /// Keeps a step of joining or leaving that began at `start` and ends now. Returns the end of
    /// the step.
    pub(crate) fn live(&self, kind: &str, start: i64) -> i64 {
        let stop = self.now();
        self.life
            .lock()
            .expect("never poisoned")
            .iter_mut()
            .for_each(|life| life.push(event(kind, start, stop)));
        stop
    }

    /// The rows not handed over yet.
    pub(crate) fn take_rows(&self) -> Vec<Event> {
        std::mem::take(&mut *self.rows.lock().expect("never poisoned"))
    }

    /// The steps of joining and leaving, unless handed over before.
    pub(crate) fn take_life(&self) -> Vec<Event> {
        self.life
            .lock()
            .expect("never poisoned")
            .take()
            .unwrap_or_default()
    }

    pub(crate) fn region(&self, name: &str, seconds: f64) {
        let mut regions = self.regions.lock().expect("never poisoned");
        let entry = regions.entry(name.to_owned()).or_default();
        entry.0 += 1;
        entry.1 += seconds;
    }

    pub(crate) fn regions(&self) -> Vec<(String, u64, f64)> {
        let regions = self.regions.lock().expect("never poisoned");
        regions
            .iter()
            .map(|(name, (uses, seconds))| (name.clone(), *uses, *seconds))
            .collect()
    }
}

/// A row without a port.
pub(crate) fn event(kind: &str, start: i64, stop: i64) -> Event {
    Event {
        kind: kind.to_owned(),
        region: false,
        start,
        stop,
        port: None,
        operator: None,
        slots: None,
        slot: None,
        conduit: None,
        number: None,
        size: None,
        timestamp: None,
    }
}

/// A region of the user, from its beginning to [`crate::Instance::end_region`].
#[derive(Debug)]
pub struct ProfileRegion {
    pub(crate) name: String,
    pub(crate) start: i64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sends_that_are_timed_are_of_every_kind_of_a_pattern() {
        let timed = |number: &u64| stands_for(*number).is_some();
        for period in 2..20 {
            let mut kinds = vec![0; period];
            (1..100_000_u64)
                .filter(timed)
                .for_each(|number| kinds[number as usize % period] += 1);
            let (least, most) = (kinds.iter().min().unwrap(), kinds.iter().max().unwrap());
            assert!(most - least < 10, "{period}: {kinds:?}");
        }
        let all: u32 = (0..61_000).filter_map(stands_for).sum();
        assert!(
            (60_900..61_100).contains(&all),
            "together they stand for all: {all}"
        );
    }

    #[test]
    fn a_time_is_told_exactly_however_late() {
        let trace = Trace::new(true, None, ManagerClock::default());
        let told = |time| trace.at(time) - trace.epoch;
        std::thread::sleep(Duration::from_millis(2));
        assert_eq!(told(trace.origin), 0);
        assert_eq!(told(trace.origin + Duration::from_nanos(1234)), 1234);
        assert_eq!(told(trace.origin - Duration::from_nanos(1234)), -1234);
    }

    #[test]
    fn one_that_was_held_up_does_not_make_the_others_slow() {
        let ms = Duration::from_millis;
        assert_eq!(share(ms(1), 61, ms(500)), ms(61));
        assert_eq!(share(ms(20), 61, ms(100)), ms(100));
        assert_eq!(share(ms(20), 1, ms(0)), ms(20));
    }
}
