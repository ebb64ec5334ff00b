//! The measured rate of a link's line, shared by the thread that measures and the senders.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::delivery_rate::{DeliveryRate, LineSample};
use crate::stream_growth::{StreamGrowth, StreamRequest, StreamsSample};

/// The shortest measurement for the number of streams: a time, and a number of round trips.
const SHORTEST: Duration = Duration::from_millis(100);
const ROUND_TRIPS: u32 = 4;

/// With so many bytes under way for each stream, all streams of a link have bytes to send, unless a
/// message goes by few of them.
pub(crate) const FULL_STREAM: u64 = 24 << 10;

/// As many bytes may be under way on a line of which nothing is known.
const UNKNOWN_LINE: u64 = 1 << 20;

/// The meter of a link. The thread of the medium measures over all streams of the link.
#[derive(Default)]
pub(crate) struct LineMeter {
    state: Mutex<MeterState>,
    /// Bytes a second; 0 before the rate is known.
    rate: AtomicU64,
    /// The rate times the shortest round trip.
    held: AtomicU64,
}

#[derive(Default)]
struct MeterState {
    rate: DeliveryRate,
    /// Lets the number of streams grow; `None` while the link has no further streams.
    growth: Option<MeasuredGrowth>,
}

/// Lets the number of a link's further streams grow by the measured rate.
struct MeasuredGrowth {
    growth: StreamGrowth,
    /// The number of streams, and since when.
    streams: usize,
    since: Instant,
    request: StreamRequest,
}

impl MeasuredGrowth {
    /// Notes a train. Returns how many streams the link should have, if it should have more.
    fn note(&mut self, train: &LineSample, round_trip: Duration, now: Instant) -> Option<usize> {
        let is_full = train.most_under_way >= FULL_STREAM * self.streams as u64;
        if train.first < self.since || train.is_by_few || !is_full {
            return None;
        }
        let sample = StreamsSample {
            bytes: train.bytes,
            time: train.time,
        };
        let shortest = SHORTEST.max(ROUND_TRIPS * round_trip);
        self.growth.note(self.streams, sample, shortest, now)
    }
}

impl LineMeter {
    /// The rate in bytes a second, once known.
    pub(crate) fn rate(&self) -> Option<u64> {
        Some(self.rate.load(Ordering::Relaxed)).filter(|rate| *rate > 0)
    }

    /// Twice the bytes that the line holds, which are its rate times its round trip: those on their way,
    /// and as many whose acknowledgements are on their way back or come late. At least a MiB.
    pub(crate) fn bytes_of_line(&self) -> u64 {
        UNKNOWN_LINE.max(2 * self.held.load(Ordering::Relaxed))
    }

    /// Lets the number of streams grow from `streams` on, by `request`. A link begins with one stream where
    /// one is expected to fill the line.
    pub(crate) fn grow(&self, streams: usize, request: StreamRequest) {
        let growth = match streams {
            1 => StreamGrowth::of_full_line(streams),
            _ => StreamGrowth::new(streams),
        };
        self.state().growth = Some(MeasuredGrowth {
            growth,
            streams,
            since: Instant::now(),
            request,
        });
    }

    /// Notes that streams have joined: there are `count` now.
    pub(crate) fn note_streams(&self, count: usize) {
        if let Some(growth) = &mut self.state().growth {
            growth.streams = count;
            growth.since = Instant::now();
        }
    }

    /// Notes that the message begins that few of the streams carry, or all.
    pub(crate) fn note_message(&self, is_by_few: bool) {
        self.state().rate.note_message(is_by_few);
    }

    /// Notes an event of the line.
    pub(crate) fn note(&self, event: impl FnOnce(&mut DeliveryRate)) {
        let mut state = self.state();
        event(&mut state.rate);
        self.publish(&state);
    }

    /// Notes that the other end has acknowledged further bytes, and a round trip that has ended. Asks
    /// for more streams if they are worthwhile.
    pub(crate) fn note_acknowledged(&self, bytes: u64, round_trip: Option<Duration>, now: Instant) {
        let mut state = self.state();
        let MeterState { rate, growth } = &mut *state;
        round_trip.inspect(|sample| rate.note_round_trip(*sample, now));
        let trains = rate.note_acknowledged(bytes, now);
        let round_trip = rate.round_trip().unwrap_or_default();
        let request = growth.as_mut().and_then(|growth| {
            let mut trains = trains.iter();
            let count = trains.find_map(|train| growth.note(train, round_trip, now))?;
            Some((growth.request.clone(), count))
        });
        self.publish(&state);
        drop(state);
        request.inspect(|(request, count)| request(*count));
    }

    fn state(&self) -> MutexGuard<'_, MeterState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn publish(&self, state: &MeterState) {
        let rate = state.rate.rate().unwrap_or_default();
        let round_trip = state.rate.round_trip().unwrap_or_default();
        let held = rate * round_trip.as_secs_f64();
        self.rate.store(rate as u64, Ordering::Relaxed);
        self.held.store(held as u64, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;

    use super::*;

    const ROUND_TRIP: Duration = Duration::from_millis(15);
    /// The bytes of a message that a stream gets at once.
    const PIECE: u64 = 32 << 10;

    /// A line, and a program that sends a message when the one before is acknowledged.
    struct Line {
        meter: LineMeter,
        now: Instant,
        streams: usize,
        asked: Arc<AtomicUsize>,
    }

    impl Line {
        fn new() -> Self {
            let meter = LineMeter::default();
            let asked: Arc<AtomicUsize> = Arc::default();
            let answer = asked.clone();
            meter.grow(
                8,
                Arc::new(move |count| answer.store(count, Ordering::Relaxed)),
            );
            let now = Instant::now();
            meter.note(|rate| rate.note_round_trip(ROUND_TRIP, now));
            Line {
                meter,
                now,
                streams: 8,
                asked,
            }
        }

        /// Sends a message at the rate that so many streams have, in MB a second. Streams that were
        /// asked for meanwhile join behind the message.
        fn message(&mut self, bytes: u64, rate: impl Fn(usize) -> f64) {
            self.meter
                .note(|rate| rate.note_taken(bytes, None, self.now));
            self.now += ROUND_TRIP;
            let used = self.streams.min((bytes / PIECE) as usize);
            let piece = Duration::from_secs_f64((64 << 10) as f64 / (1e6 * rate(used)));
            let mut left = bytes;
            while left > 0 {
                let bytes = left.min(64 << 10);
                self.now += piece;
                self.meter.note_acknowledged(bytes, None, self.now);
                left -= bytes;
            }
            let asked = self.asked.load(Ordering::Relaxed);
            if asked > self.streams {
                self.streams = asked;
                self.meter.note_streams(asked);
                // The test's clock is ahead of the meter's.
                self.meter.state().growth.as_mut().unwrap().since = self.now;
            }
        }
    }

    #[test]
    fn large_messages_get_the_streams_that_fill_the_line() {
        let mut line = Line::new();
        let begin = line.now;
        while line.now < begin + Duration::from_secs(3) {
            line.message(16 << 20, |streams| (4.0 * streams as f64).min(120.0));
        }
        assert_eq!(line.streams, 64);
        // A message and an acknowledgement now take 8 ms for each MiB, and a round trip.
        let before = line.now;
        line.message(16 << 20, |streams| (4.0 * streams as f64).min(120.0));
        assert!(line.now - before < Duration::from_millis(160));
    }

    #[test]
    fn twice_the_bytes_that_the_line_holds_may_be_under_way() {
        let mut line = Line::new();
        assert_eq!(line.meter.bytes_of_line(), UNKNOWN_LINE);
        line.message(16 << 20, |_| 120.0);
        let held = 120e6 * ROUND_TRIP.as_secs_f64();
        let share = line.meter.bytes_of_line() as f64 / (2.0 * held);
        assert!((0.9..1.1).contains(&share), "{share}");
    }

    #[test]
    fn messages_of_few_pieces_get_no_more_streams() {
        let mut line = Line::new();
        for _ in 0..100 {
            line.message(180_000, |streams| streams as f64);
        }
        assert_eq!(line.asked.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn bytes_that_were_taken_before_streams_joined_do_not_count() {
        let line = Line::new();
        let before = line.now;
        let bytes = 4 << 20;
        for _ in 0..8 {
            line.meter.note(|rate| rate.note_taken(bytes, None, before));
        }
        line.meter.note_streams(16);
        line.meter.state().growth.as_mut().unwrap().since = before + ROUND_TRIP;
        for second in 1..=8 {
            let now = before + Duration::from_secs(second);
            line.meter.note_acknowledged(bytes, None, now);
        }
        assert_eq!(line.asked.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn messages_by_few_of_the_streams_get_no_more_streams() {
        let mut line = Line::new();
        for _ in 0..100 {
            line.meter.note_message(true);
            line.message(4 << 20, |streams| streams as f64);
        }
        assert_eq!(line.asked.load(Ordering::Relaxed), 0);
        // A message by all streams counts, even right behind one by few.
        for _ in 0..10 {
            line.meter.note_message(true);
            line.meter
                .note(|rate| rate.note_taken(300_000, None, line.now));
            line.meter.note_message(false);
            line.message(4 << 20, |streams| streams as f64);
            line.meter.note_acknowledged(300_000, None, line.now);
        }
        assert!(line.asked.load(Ordering::Relaxed) > 8);
    }

    #[test]
    fn a_line_that_a_few_streams_fill_gets_no_more_than_one_doubling() {
        let mut line = Line::new();
        for _ in 0..100 {
            line.message(16 << 20, |_| 120.0);
        }
        assert_eq!(line.streams, 16);
    }
}
