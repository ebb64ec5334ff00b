//! The flight of a circuit: how many bytes TCP sends before it waits for an acknowledgement.
//!
//! A message that one flight carries arrives half a round trip after it was sent. Any other message arrives
//! at least a round trip later. An end cannot ask TCP for its window, because the connection that crosses
//! the line begins at the relay. So the flight is measured: it is what is acknowledged together, a round trip
//! after the first bytes were sent.

use std::time::{Duration, Instant};

/// The first flight of a TCP connection, ten segments (RFC 6928), less what the headers of pieces and
/// records take.
const INITIAL_FLIGHT: usize = 13 << 10;

/// Linux's shortest timeout of retransmission, beyond the round trip.
const TIMEOUT: Duration = Duration::from_millis(200);

/// The acknowledgements of a flight come within so much time: this, or a share of the round trip if that is
/// longer. TCP sends a flight at once. BBR sends it slowly over the whole round trip, so most of it does
/// not count, and a message goes by all streams: they are faster together.
const TOLERANCE: Duration = Duration::from_millis(5);
const TOLERANCE_SHARE: u32 = 8;

/// The state of a session at a time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SessionProgress {
    /// Up to which position bytes are sent.
    pub(crate) sent: u64,
    /// Up to which position bytes are acknowledged.
    pub(crate) acknowledged: u64,
    /// How many bytes the end keeps.
    pub(crate) kept: usize,
    pub(crate) time: Instant,
}

impl SessionProgress {
    /// The state of a session that has sent nothing.
    #[cfg(test)]
    pub(crate) fn begin() -> Self {
        SessionProgress {
            sent: 0,
            acknowledged: 0,
            kept: 0,
            time: Instant::now(),
        }
    }

    /// Whether all bytes are acknowledged.
    fn is_idle(&self) -> bool {
        self.sent == self.acknowledged
    }
}

/// The measured flight of a circuit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Flight {
    bytes: usize,
    last: SessionProgress,
    /// When TCP has last sent bytes, about.
    sent_at: Instant,
    /// When bytes were last acknowledged, or sent while none were under way.
    moved_at: Instant,
    /// The shortest round trip, once known.
    round_trip: Option<Duration>,
    /// The measurement of a flight that has begun; `None` between measurements.
    measurement: Option<Measurement>,
}

/// The measurement of the first flight after all bytes were acknowledged.
#[derive(Debug, Clone, Copy)]
struct Measurement {
    /// The position behind the bytes that were acknowledged before, and when further bytes were sent.
    begin: u64,
    since: Instant,
    /// Up to which position bytes were sent early enough for the first flight.
    early: u64,
    /// When the first acknowledgement has come.
    answer: Option<Instant>,
}

impl Flight {
    /// The flight of a circuit that opens at `progress`.
    pub(crate) fn new(progress: SessionProgress) -> Self {
        Flight {
            bytes: INITIAL_FLIGHT,
            last: progress,
            sent_at: progress.time,
            moved_at: progress.time,
            round_trip: None,
            measurement: None,
        }
    }

    /// How many bytes the end keeps.
    pub(crate) fn kept(&self) -> usize {
        self.last.kept
    }

    /// About how many bytes a second the circuit carries with a window of `window` bytes.
    pub(crate) fn rate(&self, window: usize) -> f64 {
        let round_trip = self.round_trip.map(|round_trip| round_trip + TOLERANCE);
        round_trip.map_or(0.0, |time| window as f64 / time.as_secs_f64())
    }

    /// How many bytes a flight has: 0 if the line seems to be cut.
    pub(crate) fn bytes(&self, now: Instant) -> usize {
        let silence = now.saturating_duration_since(self.moved_at);
        let limit = 2 * self.round_trip.unwrap_or_default() + TIMEOUT;
        match !self.last.is_idle() && silence > limit {
            true => 0,
            false => self.after_pause(now),
        }
    }

    /// The flight after a pause. TCP halves its window for each timeout in which it has sent nothing
    /// (RFC 2861). With BBR TCP does not, which cannot be seen from here.
    fn after_pause(&self, now: Instant) -> usize {
        let Some(round_trip) = self.round_trip else {
            return self.bytes;
        };
        let pause = now.saturating_duration_since(self.sent_at);
        let timeouts = pause.as_secs_f64() / (round_trip + TIMEOUT).as_secs_f64();
        let halved = self.bytes.checked_shr(timeouts as u32);
        halved.unwrap_or_default().max(INITIAL_FLIGHT)
    }

    /// Measures. `round_trip` is the shortest one, if it is known.
    pub(crate) fn note(&mut self, now: SessionProgress, round_trip: Option<Duration>) {
        let last = std::mem::replace(&mut self.last, now);
        self.round_trip = round_trip.or(self.round_trip);
        let travel = self.round_trip.unwrap_or_default();
        if now.sent > last.sent {
            if last.is_idle() {
                self.bytes = self.after_pause(now.time);
                self.moved_at = now.time;
            }
            self.sent_at = now.time;
        }
        if now.acknowledged > last.acknowledged {
            // TCP sends what an acknowledgement has made room for.
            let sent_at = now.time.checked_sub(travel).unwrap_or(now.time);
            self.sent_at = self.sent_at.max(sent_at);
            self.moved_at = now.time;
        }
        self.measure(now, last);
    }

    /// Measures how many bytes are acknowledged together, when bytes are sent after all others were
    /// acknowledged.
    fn measure(&mut self, now: SessionProgress, last: SessionProgress) {
        if last.is_idle() && !now.is_idle() {
            self.measurement = Some(Measurement {
                begin: last.acknowledged,
                since: now.time,
                early: now.sent,
                answer: None,
            });
        }
        let (Some(measurement), Some(round_trip)) = (&mut self.measurement, self.round_trip) else {
            return;
        };
        let Measurement {
            begin,
            since,
            answer,
            ..
        } = *measurement;
        let tolerance = TOLERANCE.max(round_trip / TOLERANCE_SHARE);
        if answer.is_none() && now.time.duration_since(since) < tolerance / 2 {
            measurement.early = now.sent;
        }
        if now.acknowledged > begin {
            measurement.answer.get_or_insert(now.time);
        }
        let is_over = answer.is_some_and(|answer| now.time.duration_since(answer) >= tolerance);
        if !is_over && !now.is_idle() {
            return;
        }
        // The bytes that are acknowledged right now came too late.
        let end = if is_over { last } else { now };
        let delivered = (end.acknowledged - begin) as usize;
        self.bytes = match end.acknowledged < measurement.early {
            true => delivered.max(INITIAL_FLIGHT),
            false => delivered.max(self.bytes),
        };
        self.measurement = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND_TRIP: Duration = Duration::from_millis(100);

    /// A session whose flight is measured.
    struct Sender {
        flight: Flight,
        now: SessionProgress,
    }

    impl Sender {
        fn new() -> Self {
            let now = SessionProgress::begin();
            Sender {
                flight: Flight::new(now),
                now,
            }
        }

        fn send(&mut self, bytes: u64) {
            self.now.sent += bytes;
            self.note();
        }

        fn acknowledge(&mut self, bytes: u64) {
            self.now.acknowledged += bytes;
            self.note();
        }

        fn note(&mut self) {
            self.now.kept = (self.now.sent - self.now.acknowledged) as usize;
            self.flight.note(self.now, Some(ROUND_TRIP));
        }

        fn pass(&mut self, round_trips: f64) {
            self.now.time += ROUND_TRIP.mul_f64(round_trips);
        }

        fn room(&self) -> usize {
            let kept = self.flight.kept();
            self.flight.bytes(self.now.time).saturating_sub(kept)
        }

        /// Sends a message that flights of at most `flight` bytes carry.
        fn message(&mut self, bytes: u64, flight: u64) {
            self.send(bytes);
            let mut rest = bytes;
            while rest > 0 {
                let carried = rest.min(flight);
                self.pass(1.0);
                self.acknowledge(carried / 2);
                self.pass(0.01);
                self.acknowledge(carried - carried / 2);
                rest -= carried;
            }
        }
    }

    #[test]
    fn a_new_circuit_carries_ten_segments() {
        assert_eq!(Sender::new().room(), INITIAL_FLIGHT);
    }

    #[test]
    fn a_flight_carries_what_one_has_carried() {
        let mut sender = Sender::new();
        sender.message(200_000, 300_000);
        assert_eq!(sender.room(), 200_000);
        sender.message(50_000, 300_000);
        assert_eq!(sender.room(), 200_000);
        // Nor does a pause within TCP's timeout change that.
        sender.pass(1.9);
        sender.message(50_000, 300_000);
        assert_eq!(sender.room(), 200_000);
    }

    #[test]
    fn a_message_that_takes_several_flights_shows_what_one_carries() {
        let mut sender = Sender::new();
        for flight in [90_000, 30_000, 60_000] {
            sender.message(200_000, flight);
            assert_eq!(sender.room(), flight as usize);
            sender.pass(1.0);
        }
    }

    #[test]
    fn the_first_acknowledgement_may_be_late() {
        let mut sender = Sender::new();
        sender.send(200_000);
        sender.pass(1.8);
        sender.acknowledge(100_000);
        sender.pass(0.1);
        sender.acknowledge(100_000);
        assert_eq!(sender.room(), 200_000);
    }

    #[test]
    fn bytes_that_are_sent_late_do_not_make_a_flight_small() {
        let mut sender = Sender::new();
        sender.message(200_000, 300_000);
        sender.send(20_000);
        sender.pass(0.07);
        sender.send(20_000);
        sender.pass(0.93);
        sender.acknowledge(20_000);
        sender.pass(0.14);
        sender.acknowledge(20_000);
        assert_eq!(sender.room(), 200_000);
    }

    #[test]
    fn bytes_that_arrive_slowly_are_no_flight() {
        let mut sender = Sender::new();
        sender.send(200_000);
        sender.pass(1.0);
        for _ in 0..20 {
            sender.acknowledge(10_000);
            sender.pass(0.05);
        }
        assert_eq!(sender.room(), 30_000);
    }

    #[test]
    fn bytes_under_way_are_a_part_of_the_flight() {
        let mut sender = Sender::new();
        sender.message(200_000, 300_000);
        sender.send(50_000);
        assert_eq!(sender.room(), 150_000);
        sender.send(1_000_000);
        assert_eq!(sender.room(), 0);
    }

    #[test]
    fn a_line_that_seems_to_be_cut_carries_nothing() {
        let mut sender = Sender::new();
        sender.message(200_000, 300_000);
        sender.pass(0.1);
        sender.send(50_000);
        sender.pass(3.9);
        assert!(sender.room() > 0);
        sender.pass(0.2);
        assert_eq!(sender.room(), 0);
        sender.acknowledge(50_000);
        assert!(sender.room() > 0);
    }

    #[test]
    fn a_pause_halves_the_flight_for_each_timeout() {
        let mut sender = Sender::new();
        sender.message(200_000, 150_000);
        // The second flight left a round trip ago.
        sender.pass(1.9);
        assert_eq!(sender.room(), 150_000);
        sender.pass(0.2);
        assert_eq!(sender.room(), 75_000);
        sender.pass(3.0);
        assert_eq!(sender.room(), 37_500);
        // What TCP has halved counts from there.
        sender.message(30_000, 300_000);
        assert_eq!(sender.room(), 37_500);
        sender.pass(10_000.0);
        assert_eq!(sender.room(), INITIAL_FLIGHT);
    }

    #[test]
    fn a_round_trip_that_was_known_counts_until_the_next() {
        let mut sender = Sender::new();
        sender.message(200_000, 300_000);
        sender.flight.note(sender.now, None);
        sender.pass(10_000.0);
        assert_eq!(sender.room(), INITIAL_FLIGHT);
    }

    #[test]
    fn nothing_is_measured_before_a_round_trip_is_known() {
        let mut sender = Sender::new();
        sender.now.sent = 100_000;
        sender.flight.note(sender.now, None);
        sender.pass(5.0);
        sender.now.acknowledged = 100_000;
        sender.flight.note(sender.now, None);
        assert_eq!(sender.room(), INITIAL_FLIGHT);
    }
}
