//! The number of further streams of a link, by the measured rate.
//!
//! On a line that loses packets each stream has a share of the line that the losses set, so several
//! streams carry more than one. How many are enough depends on the line. Therefore the number
//! doubles as long as the link carries clearly more after each doubling. Users of MPWide try numbers
//! by hand in the same way. Only the time counts in which all streams are full: a link that waits for
//! its program needs no more streams.

use std::time::{Duration, Instant};

/// The most further streams of a link that grows.
pub(crate) const MOST_GROWN_STREAMS: usize = 128;

/// How long all streams are full for one measurement of the rate, and the fewest bytes in this time.
const MEASURE: Duration = Duration::from_secs(1);
const MEASURED_BYTES: u64 = 4 << 20;

/// How many bytes the buffers of a new stream take at once. These say nothing about the line.
const BUFFERED: u64 = 2 << 20;

/// How many times as much a link must carry by twice the streams, for a further doubling.
const WORTHWHILE: f64 = 1.2;

/// A link that carries less than this share of its best rate, in so many measurements in a row, tries
/// more streams again. New streams are fast at first, until they lose a packet.
const SLUMP: f64 = 0.65;
const SLUMPS: u32 = 2;

/// How long asked streams may take to join.
const JOINING_TIME: Duration = Duration::from_secs(10);

/// Chooses the number of further streams of a link.
#[derive(Debug)]
pub(super) struct StreamGrowth {
    /// The number of streams now.
    streams: usize,
    /// The number that is asked for, and until when the streams may join.
    asked: Option<(usize, Instant)>,
    /// The rate with the smaller number of streams, in bytes a second.
    before: Option<f64>,
    /// The best rate, once more streams have not been worthwhile, and how many measurements in a row
    /// have been far below it.
    settled: Option<(f64, u32)>,
    /// Since when all streams have been full.
    full_since: Option<Instant>,
    /// How many bytes are still to fill the buffers of new streams.
    to_fill: u64,
    /// The time in which all streams were full, and the bytes written in this time.
    full_time: Duration,
    written: u64,
}

impl StreamGrowth {
    /// For a link with `streams` further streams.
    pub(super) fn new(streams: usize) -> Self {
        StreamGrowth {
            streams,
            asked: None,
            before: None,
            settled: None,
            full_since: None,
            to_fill: 0,
            full_time: Duration::ZERO,
            written: 0,
        }
    }

    /// Notes bytes that the streams have taken.
    pub(super) fn note_written(&mut self, bytes: usize) {
        if self.to_fill > 0 {
            self.to_fill = self.to_fill.saturating_sub(bytes as u64);
        } else if self.full_since.is_some() {
            self.written += bytes as u64;
        }
    }

    /// Notes that bytes are left, and no stream takes any. Returns how many streams the link should
    /// have, if it should have more than `streams`.
    pub(super) fn note_full(&mut self, streams: usize, now: Instant) -> Option<usize> {
        let since = self.full_since.replace(now).unwrap_or(now);
        self.count_time(since, now);
        self.next(streams, now)
    }

    /// Notes that no bytes are left. Returns as [`StreamGrowth::note_full`].
    pub(super) fn note_empty(&mut self, streams: usize, now: Instant) -> Option<usize> {
        let since = self.full_since.take()?;
        self.count_time(since, now);
        self.next(streams, now)
    }

    fn count_time(&mut self, since: Instant, now: Instant) {
        if self.to_fill == 0 {
            self.full_time += now.saturating_duration_since(since);
        }
    }

    fn next(&mut self, streams: usize, now: Instant) -> Option<usize> {
        if self.streams != streams {
            self.to_fill += BUFFERED * streams.saturating_sub(self.streams) as u64;
            self.streams = streams;
            self.measure_again();
        }
        if let Some((asked, until)) = self.asked {
            if streams < asked && now < until {
                self.measure_again();
                return None;
            }
            self.asked = None;
        }
        if self.full_time < MEASURE || self.written < MEASURED_BYTES {
            return None;
        }
        let rate = self.written as f64 / self.full_time.as_secs_f64();
        self.measure_again();
        if let Some((best, slumps)) = self.settled {
            let slumps = if rate < SLUMP * best { slumps + 1 } else { 0 };
            self.settled = Some((best.max(rate), slumps));
            if slumps < SLUMPS {
                return None;
            }
            (self.settled, self.before) = (None, None);
        }
        let before = self.before.replace(rate);
        if streams >= MOST_GROWN_STREAMS || before.is_some_and(|before| rate < WORTHWHILE * before)
        {
            let best = before.map_or(rate, |before| before.max(rate));
            self.settled = Some((best, 0));
            return None;
        }
        let more = (2 * streams).min(MOST_GROWN_STREAMS);
        self.asked = Some((more, now + JOINING_TIME));
        Some(more)
    }

    fn measure_again(&mut self) {
        self.full_time = Duration::ZERO;
        self.written = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A link on a line, whose streams join a while after they are asked for.
    struct Line {
        growth: StreamGrowth,
        streams: usize,
        now: Instant,
    }

    impl Line {
        fn new() -> Self {
            Line {
                growth: StreamGrowth::new(8),
                streams: 8,
                now: Instant::now(),
            }
        }

        /// Sends for a number of seconds at the rate that so many streams have, in MB a second.
        fn send(&mut self, seconds: usize, rate: impl Fn(usize) -> f64) {
            for _ in 0..seconds * 100 {
                let bytes = rate(self.streams) * 1e4;
                self.growth.note_written(bytes as usize);
                self.now += Duration::from_millis(10);
                let asked = self.growth.note_full(self.streams, self.now);
                self.streams = asked.unwrap_or(self.streams);
            }
        }
    }

    #[test]
    fn a_line_that_loses_packets_gets_the_streams_that_fill_it() {
        // Each stream has 4 MB/s, and the line 120 MB/s.
        let mut line = Line::new();
        line.send(20, |streams| (4.0 * streams as f64).min(120.0));
        assert_eq!(line.streams, 64);
        let mut line = Line::new();
        line.send(20, |streams| 0.5 * streams as f64);
        assert_eq!(line.streams, MOST_GROWN_STREAMS);
    }

    #[test]
    fn a_line_that_is_full_gets_one_doubling_and_no_more() {
        let mut line = Line::new();
        line.send(100, |_| 120.0);
        assert_eq!(line.streams, 16);
    }

    #[test]
    fn bytes_that_fill_the_buffers_of_new_streams_count_for_nothing() {
        let mut growth = StreamGrowth::new(8);
        let (mut now, mut streams, mut buffered) = (Instant::now(), 8, 0);
        for _ in 0..10_000 {
            now += Duration::from_millis(10);
            let room = BUFFERED as usize * streams - buffered;
            buffered += room;
            growth.note_written(room + 1_200_000);
            streams = growth.note_full(streams, now).unwrap_or(streams);
        }
        assert_eq!(streams, 16);
    }

    #[test]
    fn a_line_that_becomes_worse_is_measured_again() {
        let mut line = Line::new();
        line.send(20, |_| 120.0);
        line.send(20, |streams| (2.0 * streams as f64).min(120.0));
        assert_eq!(line.streams, 128);
    }

    #[test]
    fn a_link_that_waits_for_its_program_gets_no_more_streams() {
        let mut line = Line::new();
        for _ in 0..1000 {
            line.growth.note_written(1 << 20);
            line.now += Duration::from_millis(10);
            assert_eq!(line.growth.note_empty(8, line.now), None);
        }
    }

    #[test]
    fn short_full_times_add_up() {
        let mut line = Line::new();
        let mut asked = None;
        for _ in 0..100 {
            assert_eq!(line.growth.note_full(8, line.now), None);
            line.growth.note_written(1 << 20);
            line.now += Duration::from_millis(10);
            asked = asked.or(line.growth.note_empty(8, line.now));
            line.now += Duration::from_secs(1);
        }
        assert_eq!(asked, Some(16));
    }

    #[test]
    fn streams_that_never_come_are_asked_for_no_more() {
        let mut growth = StreamGrowth::new(8);
        let mut now = Instant::now();
        let mut count = 0;
        for _ in 0..10_000 {
            growth.note_written(1 << 20);
            now += Duration::from_millis(10);
            count += usize::from(growth.note_full(8, now).is_some());
        }
        assert_eq!(count, 1);
    }
}
