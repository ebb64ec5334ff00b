//! The rate of a line, from acknowledgements.
//!
//! As in the bandwidth estimate of BBR (Cardwell et al. 2016), bytes are timed from when they are
//! taken to when they are acknowledged, and the rate is the largest of the samples of about the last
//! 10 s. The line is seen as a queue with a delay: it serves a train of bytes from when the bytes
//! before are acknowledged, and not before the shortest round trip has passed since the train was
//! taken. So a single message on an idle line gives a sample, too, and the delay of the line does not
//! count as time in which bytes travel.
//!
//! A train that comes out about as fast as it went in shows how fast the program sends. The line is
//! as fast or faster, so such a sample counts only if it is larger than the known rate. It then must be
//! of a long train, since many lines let the first bytes after a pause pass at once. If short trains
//! are faster than the known rate time and again, the rate is forgotten.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// A pause of the program that ends a train.
const PAUSE: Duration = Duration::from_millis(10);

/// The shortest train, and the size at which a train ends, in bytes. A shorter train says more about
/// the clocks of hosts than about the line.
const SHORTEST: u64 = 48 << 10;
const LONGEST: u64 = 4 << 20;

/// The shortest train that counts although it came out as fast as it went in.
const LONG: u64 = 256 << 10;

/// After how many trains in a row that are faster than the known rate, but too short to count, the rate
/// is forgotten.
const MOST_CONTRADICTIONS: u32 = 8;

/// How many times as long as the program takes to give a train, the line must take for it.
const SLOWER: f64 = 1.5;

/// Round trips differ by this much for other reasons than the rate of the line: a time, and a share
/// of the shortest round trip.
const JITTER: Duration = Duration::from_millis(1);
const SHARE_OF_JITTER: u32 = 8;

/// Half of the time for which a sample of the rate, and of the round trip, counts.
const HALF_RATE_TIME: Duration = Duration::from_secs(5);
const HALF_ROUND_TRIP_TIME: Duration = Duration::from_secs(30);

/// Measures the rate of a line.
#[derive(Debug)]
pub(crate) struct DeliveryRate {
    /// Bytes taken from the link, and bytes of them that the other end has acknowledged.
    taken: u64,
    acknowledged: u64,
    /// The trains that are not acknowledged to their ends.
    trains: VecDeque<Train>,
    /// When the last train was acknowledged to its end.
    free_since: Option<Instant>,
    round_trip: Recent,
    rate: Recent,
    /// The trains since the last sample that were faster than the rate, but too short to count.
    contradictions: u32,
    /// Whether few streams of the link carry the present message.
    is_by_few: bool,
}

/// A train that the line has limited.
#[derive(Debug)]
pub(crate) struct LineSample {
    /// When the first bytes were taken.
    pub(crate) first: Instant,
    pub(crate) bytes: u64,
    /// How long the line took for the bytes.
    pub(crate) time: Duration,
    /// The most bytes that were under way while the train was taken.
    pub(crate) most_under_way: u64,
    /// Whether few streams of the link carried the train.
    pub(crate) is_by_few: bool,
}

/// Bytes that were taken without a pause.
#[derive(Debug)]
struct Train {
    /// The position behind the last byte, and the number of bytes.
    end: u64,
    length: u64,
    /// When the first and the last bytes were taken.
    first: Instant,
    last: Instant,
    /// How long the program took to give the bytes.
    supply: Duration,
    /// The most bytes that were taken and not acknowledged meanwhile.
    most_under_way: u64,
    /// Whether a circuit was lost meanwhile.
    is_spoiled: bool,
    /// Whether few streams of the link carried the train.
    is_by_few: bool,
}

impl Default for DeliveryRate {
    /// A line of which nothing is known.
    fn default() -> Self {
        DeliveryRate {
            taken: 0,
            acknowledged: 0,
            trains: VecDeque::new(),
            free_since: None,
            round_trip: Recent::new(HALF_ROUND_TRIP_TIME, f64::min),
            rate: Recent::new(HALF_RATE_TIME, f64::max),
            contradictions: 0,
            is_by_few: false,
        }
    }
}

impl DeliveryRate {
    /// The rate in bytes a second, once known.
    pub(crate) fn rate(&self) -> Option<f64> {
        self.rate.best()
    }

    /// The shortest round trip, once known.
    pub(crate) fn round_trip(&self) -> Option<Duration> {
        self.round_trip.best().map(Duration::from_secs_f64)
    }

    /// Notes that a message begins, which few streams of the link carry, or all.
    pub(crate) fn note_message(&mut self, is_by_few: bool) {
        self.is_by_few = is_by_few;
    }

    /// Notes that bytes were taken to be sent. `room_since` says since when there has been room for the
    /// bytes, if there was none before. Only from then on the bytes have waited for the program.
    pub(crate) fn note_taken(&mut self, bytes: u64, room_since: Option<Instant>, now: Instant) {
        if bytes == 0 {
            return;
        }
        self.taken += bytes;
        let under_way = self.taken - self.acknowledged;
        if let Some(train) = self.trains.back_mut() {
            let since = room_since.map_or(train.last, |since| since.max(train.last));
            let pause = now.saturating_duration_since(since);
            let is_same = pause <= PAUSE && train.is_by_few == self.is_by_few;
            if is_same && train.length < LONGEST {
                train.end = self.taken;
                train.length += bytes;
                train.last = now;
                train.supply += pause;
                train.most_under_way = train.most_under_way.max(under_way);
                return;
            }
        }
        self.trains.push_back(Train {
            end: self.taken,
            length: bytes,
            first: now,
            last: now,
            supply: Duration::ZERO,
            most_under_way: under_way,
            is_spoiled: false,
            is_by_few: self.is_by_few,
        });
    }

    /// Notes that bytes were taken that the first stream of the link carries: as
    /// [`note_taken`](Self::note_taken).
    pub(crate) fn note_taken_by_first(
        &mut self,
        bytes: u64,
        room_since: Option<Instant>,
        now: Instant,
    ) {
        let is_by_few = std::mem::replace(&mut self.is_by_few, true);
        self.note_taken(bytes, room_since, now);
        self.is_by_few = is_by_few;
    }

    /// Notes that the other end has acknowledged further bytes. Returns the trains that are now
    /// acknowledged to their ends and that the line has limited.
    pub(crate) fn note_acknowledged(&mut self, bytes: u64, now: Instant) -> Vec<LineSample> {
        self.acknowledged += bytes;
        let acknowledged = self.acknowledged;
        let mut samples = Vec::new();
        while let Some(train) = self.trains.pop_front_if(|train| train.end <= acknowledged) {
            if !train.is_spoiled && train.length >= SHORTEST {
                samples.extend(self.note_train(&train, now));
            }
            self.free_since = Some(now);
        }
        samples
    }

    /// Notes how long a byte and its acknowledgement took together.
    pub(crate) fn note_round_trip(&mut self, sample: Duration, now: Instant) {
        self.round_trip.note(sample.as_secs_f64(), now);
    }

    /// Notes that a circuit was lost or opened: bytes have waited for other reasons than the rate of
    /// the line.
    pub(crate) fn note_cut(&mut self) {
        for train in &mut self.trains {
            train.is_spoiled = true;
        }
    }

    /// Whether few streams of the link carry the present message.
    #[cfg(test)]
    pub(crate) fn is_by_few(&self) -> bool {
        self.is_by_few
    }

    /// Bytes that are taken and not acknowledged.
    #[cfg(test)]
    pub(crate) fn under_way(&self) -> u64 {
        self.taken - self.acknowledged
    }

    /// Notes a train that is acknowledged to its end. Returns the train if the line has limited it.
    fn note_train(&mut self, train: &Train, now: Instant) -> Option<LineSample> {
        let round_trip = self.round_trip()?;
        let begin = (train.first + round_trip).max(self.free_since.unwrap_or(train.first));
        let service = now.saturating_duration_since(begin);
        let jitter = JITTER.max(round_trip / SHARE_OF_JITTER);
        let is_of_line = service >= jitter && service >= train.supply.mul_f64(SLOWER);
        let time = service.max(train.supply).max(jitter);
        let rate = train.length as f64 / time.as_secs_f64();
        let is_faster = self.rate().is_some_and(|known| rate > known);
        if is_of_line || is_faster && train.length >= LONG {
            self.rate.note(rate, now);
            self.contradictions = 0;
        } else if is_faster {
            self.contradictions += 1;
            if self.contradictions == MOST_CONTRADICTIONS {
                self.rate = Recent::new(HALF_RATE_TIME, f64::max);
                self.contradictions = 0;
            }
        }
        is_of_line.then_some(LineSample {
            first: train.first,
            bytes: train.length,
            time,
            most_under_way: train.most_under_way,
            is_by_few: train.is_by_few,
        })
    }
}

/// The best sample of a span of time that moves on: of its present half, and of the half before. If no
/// sample has come for longer, the last ones count.
#[derive(Debug)]
struct Recent {
    half: Duration,
    /// The better one of two samples.
    better: fn(f64, f64) -> f64,
    since: Option<Instant>,
    present: Option<f64>,
    before: Option<f64>,
}

impl Recent {
    fn new(half: Duration, better: fn(f64, f64) -> f64) -> Self {
        Recent {
            half,
            better,
            since: None,
            present: None,
            before: None,
        }
    }

    fn note(&mut self, sample: f64, now: Instant) {
        let since = *self.since.get_or_insert(now);
        let age = now.saturating_duration_since(since);
        if age >= self.half {
            self.before = self.present.take().filter(|_| age < 2 * self.half);
            self.since = Some(now);
        }
        let best = self.present.map(|best| (self.better)(best, sample));
        self.present = Some(best.unwrap_or(sample));
    }

    fn best(&self) -> Option<f64> {
        let samples = self.present.into_iter().chain(self.before);
        samples.reduce(self.better)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: f64 = 1e6;

    /// A line with a rate and a round trip, and the program that sends by it.
    struct Line {
        meter: DeliveryRate,
        now: Instant,
        rate: f64,
        round_trip: Duration,
        /// When the line has served all bytes.
        free: Instant,
        /// The acknowledgements to come, each with its time.
        coming: VecDeque<(Instant, u64)>,
    }

    impl Line {
        fn new(rate: f64, round_trip: Duration) -> Self {
            let now = Instant::now();
            let mut meter = DeliveryRate::default();
            meter.note_round_trip(round_trip, now);
            Line {
                meter,
                now,
                rate,
                round_trip,
                free: now,
                coming: VecDeque::new(),
            }
        }

        /// Lets time pass.
        fn pass(&mut self, time: Duration) {
            let until = self.now + time;
            while let Some((at, bytes)) = self.coming.pop_front_if(|(at, _)| *at <= until) {
                self.meter.note_acknowledged(bytes, at);
            }
            self.now = until;
        }

        /// Sends bytes in pieces of 64 KiB, as fast as the program gives them in bytes a second.
        fn send(&mut self, bytes: u64, supply: f64) {
            self.send_late(bytes, supply, Duration::ZERO);
        }

        /// As [`Line::send`], on a line that is late by some time.
        fn send_late(&mut self, bytes: u64, supply: f64, late: Duration) {
            let mut left = bytes;
            while left > 0 {
                let piece = left.min(64 << 10);
                self.meter.note_taken(piece, None, self.now);
                let time = Duration::from_secs_f64(piece as f64 / self.rate);
                self.free = self.free.max(self.now) + time;
                self.coming
                    .push_back((self.free + self.round_trip + late, piece));
                left -= piece;
                self.pass(Duration::from_secs_f64(piece as f64 / supply));
            }
        }

        /// Sends bytes as a fast program does, and then waits for a second.
        fn message(&mut self, bytes: u64) {
            self.send(bytes, 2e9);
            self.pass(Duration::from_secs(1));
        }

        fn measured(&self) -> f64 {
            self.meter.rate().unwrap_or_default() / MB
        }
    }

    fn ms(time: u64) -> Duration {
        Duration::from_millis(time)
    }

    #[test]
    fn one_message_on_an_idle_line_shows_the_rate() {
        for (rate, round_trip) in [(10.0, 1), (10.0, 200), (1.0, 50), (100.0, 20), (300.0, 0)] {
            let mut line = Line::new(rate * MB, ms(round_trip));
            assert_eq!(line.meter.rate(), None);
            line.message(2 << 20);
            line.pass(Duration::from_secs(3));
            let measured = line.measured();
            assert!((measured / rate - 1.0).abs() < 0.02, "{measured} of {rate}");
        }
    }

    #[test]
    fn a_program_slower_than_the_line_does_not_show_the_rate() {
        let mut line = Line::new(10.0 * MB, ms(50));
        line.send(20 << 20, 8.0 * MB);
        assert_eq!(line.meter.rate(), None);
        // Pieces with pauses are on an idle line each, and too fast to be timed.
        let mut line = Line::new(1000.0 * MB, ms(50));
        for _ in 0..100 {
            line.send(64 << 10, 1000.0 * MB);
            line.pass(ms(20));
        }
        assert_eq!(line.meter.rate(), None);
    }

    #[test]
    fn messages_that_follow_each_other_show_the_rate() {
        let mut line = Line::new(20.0 * MB, ms(80));
        for _ in 0..50 {
            line.send(3 << 20, 2e9);
            line.pass(ms(40));
        }
        let measured = line.measured();
        assert!((19.0..24.0).contains(&measured), "{measured}");
    }

    #[test]
    fn a_line_that_becomes_faster_or_slower_is_noticed() {
        let mut line = Line::new(10.0 * MB, ms(20));
        line.message(1 << 20);
        line.rate = 50.0 * MB;
        line.message(1 << 20);
        assert!((line.measured() - 50.0).abs() < 1.0);
        line.rate = 5.0 * MB;
        let mut seconds = 0;
        while line.measured() > 5.1 {
            line.message(1 << 20);
            seconds += 1;
        }
        assert!((5..=11).contains(&seconds), "{seconds}");
    }

    #[test]
    fn the_first_bytes_after_a_pause_do_not_make_the_line_fast() {
        let mut line = Line::new(10.0 * MB, ms(20));
        line.message(1 << 20);
        // A train that passes at once.
        line.rate = 10_000.0 * MB;
        line.message(128 << 10);
        assert!((line.measured() - 10.0).abs() < 0.2);
        line.message(1 << 20);
        assert!(line.measured() > 100.0);
    }

    #[test]
    fn a_rate_that_short_trains_contradict_is_forgotten() {
        let mut line = Line::new(10.0 * MB, ms(20));
        line.message(1 << 20);
        line.rate = 100.0 * MB;
        for _ in 1..MOST_CONTRADICTIONS {
            line.message(128 << 10);
        }
        assert!((line.measured() - 10.0).abs() < 0.2);
        line.message(128 << 10);
        assert_eq!(line.meter.rate(), None);
        line.message(1 << 20);
        assert!((line.measured() - 100.0).abs() < 2.0);
        // A line whose rate is confirmed now and then may let short trains pass at once.
        for _ in 0..2 * MOST_CONTRADICTIONS {
            line.rate = 10_000.0 * MB;
            line.message(128 << 10);
            line.rate = 100.0 * MB;
            line.message(1 << 20);
        }
        assert!((line.measured() - 100.0).abs() < 2.0);
    }

    #[test]
    fn the_rate_is_known_after_a_long_pause_until_the_next_sample() {
        let mut line = Line::new(10.0 * MB, ms(20));
        line.message(1 << 20);
        line.pass(Duration::from_secs(3600));
        assert!((line.measured() - 10.0).abs() < 0.2);
        line.rate = 5.0 * MB;
        line.message(1 << 20);
        assert!((line.measured() - 5.0).abs() < 0.1);
    }

    #[test]
    fn no_bytes_are_no_train() {
        let mut line = Line::new(10.0 * MB, ms(20));
        line.meter.note_taken(0, None, line.now);
        line.pass(ms(100));
        line.message(1 << 20);
        assert!((line.measured() - 10.0).abs() < 0.2);
    }

    #[test]
    fn delays_now_and_then_do_not_make_the_line_slow() {
        let mut line = Line::new(50.0 * MB, ms(30));
        for round in 0..20 {
            line.send_late(1 << 20, 2e9, ms(13 * (round % 3)));
            line.pass(Duration::from_secs(1));
        }
        let measured = line.measured();
        assert!((49.0..51.0).contains(&measured), "{measured}");
    }

    #[test]
    fn bytes_that_wait_for_room_were_given_at_once() {
        let (rate, round_trip) = (10.0 * MB, ms(10));
        let (mut meter, mut now) = (DeliveryRate::default(), Instant::now());
        meter.note_round_trip(round_trip, now);
        // A window of 1 MiB that is always full.
        meter.note_taken(1 << 20, None, now);
        for _ in 0..300 {
            now += Duration::from_secs_f64((64 << 10) as f64 / rate);
            meter.note_acknowledged(64 << 10, now);
            meter.note_taken(64 << 10, Some(now), now);
        }
        let measured = meter.rate().unwrap() / MB;
        assert!((9.0..11.5).contains(&measured), "{measured}");
    }

    #[test]
    fn a_pause_after_there_is_room_is_of_the_program() {
        let (rate, round_trip) = (10.0 * MB, ms(200));
        let mut line = Line::new(rate, round_trip);
        // Bytes are always under way, so that no acknowledgement ends a train.
        for _ in 0..20 {
            line.send(512 << 10, 2e9);
            let room_since = line.now;
            line.pass(ms(100));
            line.meter.note_taken(1, Some(room_since), line.now);
            line.free = line.free.max(line.now);
            line.coming.push_back((line.free + round_trip, 1));
        }
        line.pass(Duration::from_secs(1));
        assert!((line.measured() - 10.0).abs() < 0.2);
    }

    #[test]
    fn a_cut_is_no_sample() {
        let mut line = Line::new(10.0 * MB, ms(20));
        line.send(1 << 20, 2e9);
        line.meter.note_cut();
        line.pass(Duration::from_secs(9));
        assert_eq!(line.meter.rate(), None);
        line.message(1 << 20);
        assert!((line.measured() - 10.0).abs() < 0.2);
    }
}
