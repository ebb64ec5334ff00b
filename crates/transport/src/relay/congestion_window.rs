//! The congestion window of a circuit: how many bytes an end keeps that the other end has not
//! acknowledged.
//!
//! As in TCP Vegas (Brakmo and Peterson 1995), the round trip shows how long bytes wait in queues.
//! While the round trip stays close to the shortest one, a window that is full doubles with each
//! round trip, up to the bandwidth-delay product of the line. When the round trip grows, the window
//! shrinks in proportion. So a slow stream keeps few bytes, and a message that is split over several
//! streams does not wait long for the slowest.

use std::time::{Duration, Instant};

/// The window of a new circuit, the smallest and the largest window.
const INITIAL: usize = 1 << 20;
const MIN: usize = 128 << 10;
const MAX: usize = 64 << 20;

/// A time in queues that is too short to matter.
const TOLERANCE: Duration = Duration::from_millis(10);

/// How long the shortest round trip counts: a line may become longer. Then the window drains, and a
/// round trip without queues is measured again, as in TCP BBR.
const BASE_AGE: Duration = Duration::from_secs(60);

/// The share of the window that stays when it drains. A window is at most four times the
/// bandwidth-delay product, so a quarter waits in no queue.
const DRAINED: usize = 4;

/// The congestion window of an end.
#[derive(Debug)]
pub(super) struct CongestionWindow {
    bytes: usize,
    /// The shortest round trip, and when one as short was last measured.
    base_round_trip: Option<(Duration, Instant)>,
    /// Whether the bytes under way were sent before the window was drained.
    is_draining: bool,
    /// The last round trip, unless the window has grown by it.
    unused_sample: Option<Duration>,
    /// The position whose acknowledgement is timed, and when the bytes up to it were sent.
    timed: Option<(u64, Instant)>,
}

impl CongestionWindow {
    /// The window of a new circuit.
    pub(super) fn new() -> Self {
        CongestionWindow {
            bytes: INITIAL,
            base_round_trip: None,
            is_draining: false,
            unused_sample: None,
            timed: None,
        }
    }

    /// How many bytes the end may keep.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The shortest round trip, once measured.
    pub(super) fn base_round_trip(&self) -> Option<Duration> {
        self.base_round_trip.map(|(base, _)| base)
    }

    /// Notes up to which position bytes are sent, and up to which acknowledged. Returns the round
    /// trip, if one ends.
    pub(super) fn note_progress(
        &mut self,
        sent: u64,
        acknowledged: u64,
        now: Instant,
    ) -> Option<Duration> {
        let mut round_trip = None;
        if let Some((position, since)) = self.timed
            && acknowledged >= position
        {
            self.timed = None;
            let sample = now.saturating_duration_since(since);
            self.adapt(sample, now);
            round_trip = Some(sample);
        }
        if self.timed.is_none() && sent > acknowledged {
            self.timed = Some((sent, now));
        }
        round_trip
    }

    /// Notes that the window is full, and that all of its bytes are sent.
    pub(super) fn note_full(&mut self) {
        let limit = self.unqueued_limit();
        let sample = &mut self.unused_sample;
        if sample.take_if(|sample| *sample <= limit).is_some() {
            self.bytes = (2 * self.bytes).min(MAX);
        }
    }

    /// The longest round trip of bytes that have waited in no queue.
    fn unqueued_limit(&self) -> Duration {
        self.base_round_trip().unwrap_or_default() * 3 / 2 + TOLERANCE
    }

    fn adapt(&mut self, sample: Duration, now: Instant) {
        if std::mem::take(&mut self.is_draining) {
            return;
        }
        match self.base_round_trip {
            Some((base, since)) if sample > base => {
                if now.saturating_duration_since(since) > BASE_AGE {
                    self.bytes = (self.bytes / DRAINED).max(MIN);
                    self.base_round_trip = None;
                    self.is_draining = true;
                    return;
                }
            }
            _ => self.base_round_trip = Some((sample, now)),
        }
        self.unused_sample = Some(sample);
        let limit = self.unqueued_limit();
        if sample > 2 * limit {
            let share = limit.as_secs_f64() / sample.as_secs_f64();
            self.bytes = ((self.bytes as f64 * share) as usize).max(MIN);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An end on a line that fills its window round by round.
    struct Sender {
        window: CongestionWindow,
        now: Instant,
        position: u64,
    }

    impl Sender {
        fn new(round_trip: Duration) -> Self {
            let mut sender = Sender {
                window: CongestionWindow::new(),
                now: Instant::now(),
                position: 0,
            };
            // The first message is small.
            sender.round(1, f64::INFINITY, round_trip, false);
            sender
        }

        /// Sends bytes over a line with a rate in bytes a second, and hears of them.
        fn round(&mut self, bytes: u64, rate: f64, round_trip: Duration, is_full: bool) {
            let begin = self.position;
            self.position += bytes;
            self.window.note_progress(self.position, begin, self.now);
            let sending = Duration::from_secs_f64(bytes as f64 / rate);
            self.now += round_trip.max(sending);
            self.window
                .note_progress(self.position, self.position, self.now);
            if is_full {
                self.window.note_full();
            }
        }

        /// Fills the window a number of times. Returns the largest and the last window.
        fn fill(&mut self, rounds: usize, rate: f64, round_trip: Duration) -> (usize, usize) {
            let mut largest = 0;
            for _ in 0..rounds {
                self.round(self.window.bytes() as u64, rate, round_trip, true);
                largest = largest.max(self.window.bytes());
            }
            (largest, self.window.bytes())
        }
    }

    const RATE: f64 = 125e6;

    fn product(rate: f64, round_trip: Duration) -> usize {
        (rate * round_trip.as_secs_f64()) as usize
    }

    #[test]
    fn a_window_grows_to_the_bandwidth_delay_product_and_not_much_further() {
        let round_trip = Duration::from_millis(273);
        let (largest, last) = Sender::new(round_trip).fill(2000, RATE, round_trip);
        let line = product(RATE, round_trip);
        assert!(largest <= 4 * line);
        assert!(last >= line && last <= 2 * line, "{last} of {line}");
    }

    #[test]
    fn a_window_that_is_not_full_stays() {
        let round_trip = Duration::from_millis(20);
        let mut sender = Sender::new(round_trip);
        for _ in 0..20 {
            sender.round(1000, RATE, round_trip, false);
        }
        assert_eq!(sender.window.bytes(), INITIAL);
    }

    #[test]
    fn a_stream_that_becomes_slow_keeps_less_and_recovers() {
        let round_trip = Duration::from_millis(100);
        let mut sender = Sender::new(round_trip);
        let (_, before) = sender.fill(10, RATE, round_trip);
        let (_, slow) = sender.fill(10, 1e6, round_trip);
        assert!(slow < before / 10, "{slow} after {before}");
        assert!(slow >= MIN);
        let (_, after) = sender.fill(10, RATE, round_trip);
        assert!(after >= product(RATE, round_trip), "{after}");
    }

    #[test]
    fn a_line_that_becomes_longer_is_filled_again() {
        let (short, long) = (Duration::from_millis(20), Duration::from_millis(200));
        let mut sender = Sender::new(short);
        sender.fill(20, RATE, short);
        let (_, last) = sender.fill(400, RATE, long);
        assert!(last >= product(RATE, long), "{last}");
    }

    #[test]
    fn no_window_is_larger_than_the_limit() {
        let round_trip = Duration::from_secs(1);
        let (largest, _) = Sender::new(round_trip).fill(20, 1e10, round_trip);
        assert_eq!(largest, MAX);
    }

    #[test]
    fn a_short_line_grows_too() {
        let round_trip = Duration::from_micros(200);
        let (_, last) = Sender::new(round_trip).fill(8, 2e9, round_trip);
        assert!(last >= 8 << 20);
    }
}
