//! The congestion window of a circuit: how many bytes an end keeps that the other end has not
//! acknowledged.
//!
//! TCP has a window for each connection of the circuit. The bytes beyond that wait in the relays, and
//! can leave by no other stream: a message that is split over several streams would wait for the
//! slowest. So the window follows the bytes that the circuit delivers in a round trip, as in BBR
//! (Cardwell et al. 2016), and is larger by a gain, so that TCP can deliver more.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::flight::SessionProgress;

/// The smallest and the largest window. A new circuit has the smallest one.
pub(super) const MIN_WINDOW: usize = 32 << 10;
const MAX_WINDOW: usize = 64 << 20;

/// How many times the bytes of a round trip the window has, where several streams share the line. With 3,
/// 16 MB over lines of 15 and 37.6 ms with loss took 1.3 times as long by eight streams with cubic.
pub(super) const SHARED_GAIN: f64 = 1.6;

/// The same gain where one stream fills the line. Nothing can leave by another stream, and BBR keeps the queue
/// of the line short. With 1.6, BBR found too few bytes to send after a pause: 16 MB over a line of 106 ms
/// took 1.3 to 1.6 times as long as by one TCP stream.
pub(super) const SOLE_GAIN: f64 = 3.0;

/// On a new circuit TCP doubles its own window in each round trip, so this window has at least so many times
/// the bytes of a round trip.
const GROWTH_GAIN: f64 = 2.0;

/// A circuit counts as new as long as each round trip delivers so many times the bytes of the one before.
const GROWTH: f64 = 1.25;

/// A time in queues that is too short to matter.
const TOLERANCE: Duration = Duration::from_millis(5);

/// The share of the window that stays, at least, in a round trip. TCP delivers nothing for a round trip after
/// a loss, and then much at once.
const KEPT: f64 = 0.75;

/// How many times in a round trip the progress is noted.
const NOTES: u32 = 16;

/// How long the shortest round trip counts: a line may become longer. Then the window drains, and a
/// round trip without queues is measured again, as in TCP BBR.
const BASE_AGE: Duration = Duration::from_secs(60);

/// The window is divided by this when it drains: less than what is delivered in a round trip stays.
const DRAIN_DIVISOR: usize = 4;

/// The congestion window of an end.
#[derive(Debug)]
pub(super) struct CongestionWindow {
    bytes: usize,
    /// How many times the bytes of a round trip the window has.
    gain: f64,
    /// The shortest round trip, and when one as short was last measured.
    base_round_trip: Option<(Duration, Instant)>,
    /// Whether the bytes under way were sent before the window was drained.
    is_draining: bool,
    /// Up to which position bytes are sent.
    sent: u64,
    timed: Option<TimedBytes>,
    /// The progress of the last round trip. The first is at least a round trip old, if there is one
    /// as old.
    progress: VecDeque<SessionProgress>,
    /// The window does not fall below so many bytes before the given time.
    least: Option<(usize, Instant)>,
    /// How many bytes the last round trip has delivered, and when that round trip ended; `None` once
    /// the circuit is not new any more.
    growth: Option<(usize, Instant)>,
}

/// Bytes whose acknowledgement is timed.
#[derive(Debug)]
struct TimedBytes {
    end: u64,
    sent_at: Instant,
    /// Whether no other bytes were under way, in whose queue these could wait.
    are_alone: bool,
}

impl CongestionWindow {
    /// The window of a new circuit. `gain` is [`SHARED_GAIN`] or [`SOLE_GAIN`].
    pub(super) fn new(gain: f64) -> Self {
        CongestionWindow {
            bytes: MIN_WINDOW,
            gain,
            base_round_trip: None,
            is_draining: false,
            sent: 0,
            timed: None,
            progress: VecDeque::new(),
            least: None,
            growth: Some((0, Instant::now())),
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

    /// Adapts the window. Returns the round trip, if one ends.
    pub(super) fn note(&mut self, now: SessionProgress) -> Option<Duration> {
        let timed = self.time(now);
        let round_trip = timed.as_ref().map(|bytes| {
            let round_trip = now.time.saturating_duration_since(bytes.sent_at);
            self.note_round_trip(round_trip, bytes.are_alone, now.time);
            round_trip
        });
        match self.base_round_trip() {
            Some(base) => self.adapt(base + TOLERANCE, now),
            None => self.progress.clear(),
        }
        round_trip
    }

    /// Begins to time bytes. Returns the bytes that are acknowledged now.
    fn time(&mut self, now: SessionProgress) -> Option<TimedBytes> {
        let ended = self.timed.take_if(|bytes| bytes.end <= now.acknowledged);
        // Bytes that were sent earlier, or by the circuit before, would make the round trip look short.
        let before = std::mem::replace(&mut self.sent, now.sent);
        if before < now.sent && self.timed.is_none() && now.sent > now.acknowledged {
            self.timed = Some(TimedBytes {
                end: now.sent,
                sent_at: now.time,
                are_alone: before == now.acknowledged,
            });
        }
        ended
    }

    fn note_round_trip(&mut self, round_trip: Duration, is_without_queue: bool, now: Instant) {
        if std::mem::take(&mut self.is_draining) {
            return;
        }
        match self.base_round_trip {
            Some((base, since)) if round_trip > base => {
                let is_old = now.saturating_duration_since(since) > BASE_AGE;
                if is_old && is_without_queue {
                    self.base_round_trip = Some((round_trip, now));
                } else if is_old {
                    self.bytes = (self.bytes / DRAIN_DIVISOR).max(MIN_WINDOW);
                    self.base_round_trip = None;
                    self.is_draining = true;
                }
            }
            _ => self.base_round_trip = Some((round_trip, now)),
        }
    }

    /// Adapts the window to what was delivered in the last `span`.
    fn adapt(&mut self, span: Duration, now: SessionProgress) {
        let is_old = |progress: &SessionProgress| now.time.duration_since(progress.time) >= span;
        while self.progress.get(1).is_some_and(is_old) {
            self.progress.pop_front();
        }
        let since = *self.progress.front().unwrap_or(&now);
        let last = self.progress.back();
        if last.is_none_or(|last| now.time.duration_since(last.time) >= span / NOTES) {
            self.progress.push_back(now);
        }
        let delivered = (now.acknowledged - since.acknowledged) as usize;
        let wanted = |gain| ((gain * delivered as f64) as usize).clamp(MIN_WINDOW, MAX_WINDOW);
        // An end that keeps few bytes delivers few, even if the circuit would deliver more.
        let is_backlogged = is_old(&since) && since.kept.min(now.kept) > wanted(self.gain);
        self.note_growth(delivered, is_backlogged, now.time, span);
        self.bytes = match self.growth {
            Some(_) => self.bytes.max(wanted(GROWTH_GAIN.max(self.gain))),
            None if is_backlogged => wanted(self.gain).max(self.least(span, now.time)),
            None => self.bytes.max(wanted(self.gain)),
        };
    }

    /// The least window in the present `span`: a share of the one at its beginning.
    fn least(&mut self, span: Duration, now: Instant) -> usize {
        self.least.take_if(|(_, until)| *until <= now);
        let bytes = (KEPT * self.bytes as f64) as usize;
        self.least.get_or_insert((bytes, now + span)).0
    }

    /// Notes once in a `span` how many bytes the last one has delivered. A backlogged circuit that does
    /// not deliver clearly more than before is not new any more.
    fn note_growth(&mut self, delivered: usize, is_backlogged: bool, now: Instant, span: Duration) {
        let Some((before, since)) = self.growth else {
            return;
        };
        if now.duration_since(since) < span {
            return;
        }
        let is_new = !is_backlogged || delivered as f64 >= GROWTH * before as f64;
        self.growth = is_new.then_some((delivered, now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The time between two looks at a line.
    const STEP: Duration = Duration::from_millis(1);
    /// How many bytes are acknowledged together.
    const PIECE: u64 = 64 << 10;
    /// A rate in bytes a second.
    const RATE: f64 = 125e6;

    /// An end with many bytes to send, on a line with a rate and a round trip.
    struct Sender {
        window: CongestionWindow,
        now: Instant,
        kept: u64,
        sent: u64,
        acknowledged: u64,
        /// Bytes under way, up to a position, and when they are acknowledged.
        under_way: VecDeque<(u64, Instant)>,
        /// When the line has sent all.
        free: Instant,
    }

    impl Sender {
        fn new() -> Self {
            let now = Instant::now();
            Sender {
                window: CongestionWindow::new(SHARED_GAIN),
                now,
                kept: 0,
                sent: 0,
                acknowledged: 0,
                under_way: VecDeque::new(),
                free: now,
            }
        }

        /// Sends bytes over a line with a rate in bytes a second.
        fn send(&mut self, bytes: u64, rate: f64, round_trip: Duration) {
            let end = self.sent + bytes;
            while self.sent < end {
                let piece = PIECE.min(end - self.sent);
                let sending = Duration::from_secs_f64(piece as f64 / rate);
                self.sent += piece;
                self.free = self.free.max(self.now) + sending;
                self.under_way
                    .push_back((self.sent, self.free + round_trip));
            }
            self.now += STEP;
            let arrived = |(_, time): &mut (u64, Instant)| *time <= self.now;
            while let Some((position, _)) = self.under_way.pop_front_if(arrived) {
                self.acknowledged = position;
            }
            self.kept = self.sent - self.acknowledged;
            self.window.note(SessionProgress {
                sent: self.sent,
                acknowledged: self.acknowledged,
                kept: self.kept as usize,
                time: self.now,
            });
        }

        /// Keeps the window full for some seconds. Returns the largest and the last window.
        fn fill(&mut self, seconds: f64, rate: f64, round_trip: Duration) -> (usize, usize) {
            let mut largest = 0;
            for _ in 0..(seconds / STEP.as_secs_f64()) as usize {
                let room = (self.window.bytes() as u64).saturating_sub(self.kept);
                self.send(room, rate, round_trip);
                largest = largest.max(self.window.bytes());
            }
            (largest, self.window.bytes())
        }
    }

    fn product(rate: f64, round_trip: Duration) -> usize {
        (rate * (round_trip + TOLERANCE).as_secs_f64()) as usize
    }

    #[test]
    fn a_window_grows_with_what_is_delivered_in_a_round_trip() {
        for (gain, milliseconds) in [SHARED_GAIN, SOLE_GAIN]
            .into_iter()
            .flat_map(|gain| [5, 20, 273].map(|time| (gain, time)))
        {
            let round_trip = Duration::from_millis(milliseconds);
            let window = CongestionWindow::new(gain);
            let mut sender = Sender {
                window,
                ..Sender::new()
            };
            let (largest, last) = sender.fill(100.0, RATE, round_trip);
            let expected = (gain * product(RATE, round_trip) as f64).min(MAX_WINDOW as f64);
            let times = |window| window as f64 / expected;
            assert!(times(largest) <= 2.5, "{largest}, {expected} expected");
            assert!(
                times(last) > 0.7 && times(last) < 1.25,
                "{last}, {expected} expected"
            );
        }
    }

    #[test]
    fn a_window_grows_in_few_round_trips() {
        let round_trip = Duration::from_millis(100);
        let (_, last) = Sender::new().fill(1.0, RATE, round_trip);
        assert!(last >= product(RATE, round_trip), "{last}");
    }

    #[test]
    fn only_bytes_that_have_just_been_sent_are_timed() {
        let (mut window, begin) = (CongestionWindow::new(SHARED_GAIN), Instant::now());
        let mut note = |sent, acknowledged, time| {
            window.note(SessionProgress {
                sent,
                acknowledged,
                kept: (sent - acknowledged) as usize,
                time: begin + Duration::from_millis(time),
            })
        };
        note(1000, 0, 0);
        note(2000, 0, 30);
        assert_eq!(note(2000, 1000, 40), Some(Duration::from_millis(40)));
        assert_eq!(note(2000, 1500, 41), None);
        assert_eq!(note(2000, 2000, 70), None);
        note(3000, 2000, 100);
        assert_eq!(note(3000, 3000, 140), Some(Duration::from_millis(40)));
    }

    #[test]
    fn nothing_is_timed_that_was_acknowledged_before_the_circuit() {
        let (mut window, time) = (CongestionWindow::new(SHARED_GAIN), Instant::now());
        let resumed = SessionProgress {
            sent: 5000,
            acknowledged: 5000,
            kept: 0,
            time,
        };
        window.note(resumed);
        let time = time + Duration::from_millis(1);
        assert_eq!(window.note(SessionProgress { time, ..resumed }), None);
    }

    #[test]
    fn few_bytes_do_not_shrink_a_window() {
        let round_trip = Duration::from_millis(20);
        let mut sender = Sender::new();
        sender.fill(1.0, RATE, round_trip);
        for _ in 0..10_000 {
            sender.send(100, RATE, round_trip);
        }
        let before = sender.window.bytes();
        assert!(before >= product(RATE, round_trip));
        // Nor does the first flight of a large message after them.
        sender.send(before as u64, RATE, round_trip);
        assert_eq!(sender.window.bytes(), before);
    }

    #[test]
    fn a_stream_that_becomes_slow_soon_keeps_less_and_recovers() {
        let round_trip = Duration::from_millis(100);
        let mut sender = Sender::new();
        let (_, before) = sender.fill(2.0, RATE, round_trip);
        let (_, slow) = sender.fill(1.0, RATE / 50.0, round_trip);
        assert!(slow < before / 10, "{slow} after {before}");
        assert!(slow >= MIN_WINDOW);
        // Before that the line has to send what waits.
        let (_, after) = sender.fill(20.0, RATE, round_trip);
        assert!(after >= product(RATE, round_trip), "{after}");
    }

    #[test]
    fn a_round_trip_without_deliveries_reduces_the_window_twice_at_most() {
        let round_trip = Duration::from_millis(100);
        let mut sender = Sender::new();
        let (_, before) = sender.fill(2.0, RATE, round_trip);
        // TCP sends a lost packet again before it delivers what came behind.
        sender.free += round_trip;
        for (_, arrival) in &mut sender.under_way {
            *arrival += round_trip;
        }
        let (_, after) = sender.fill(0.1, RATE, round_trip);
        // The time is in two round trips.
        let least = (KEPT * KEPT * before as f64) as usize;
        assert!(after >= least, "{after} after {before}");
    }

    #[test]
    fn a_line_that_becomes_longer_is_filled_again() {
        let (short, long) = (Duration::from_millis(20), Duration::from_millis(200));
        let mut sender = Sender::new();
        sender.fill(2.0, RATE, short);
        let (_, last) = sender.fill(80.0, RATE, long);
        assert!(last >= product(RATE, long), "{last}");
    }

    #[test]
    fn a_round_trip_is_measured_again_without_what_waits() {
        let (short, long) = (Duration::from_millis(20), Duration::from_millis(100));
        let mut sender = Sender::new();
        sender.fill(2.0, RATE, short);
        // The line becomes longer, and the window, which is full all the time, adds a queue.
        sender.fill(80.0, RATE, long);
        let base = sender.window.base_round_trip().unwrap();
        assert!(base >= long && base < long + TOLERANCE, "{base:?}");
    }

    #[test]
    fn a_circuit_that_is_often_idle_needs_no_draining() {
        let (short, long) = (Duration::from_millis(20), Duration::from_millis(30));
        let mut sender = Sender::new();
        let (_, before) = sender.fill(2.0, RATE, short);
        let mut smallest = before;
        for _ in 0..2000 {
            sender.send(1000, RATE, long);
            while sender.kept > 0 {
                sender.send(0, RATE, long);
            }
            smallest = smallest.min(sender.window.bytes());
        }
        assert_eq!(sender.window.base_round_trip(), Some(long));
        assert_eq!(smallest, before);
    }

    #[test]
    fn no_window_is_larger_than_the_limit() {
        let (largest, _) = Sender::new().fill(20.0, 1e10, Duration::from_secs(1));
        assert_eq!(largest, MAX_WINDOW);
    }
}
