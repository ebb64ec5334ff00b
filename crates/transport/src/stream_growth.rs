//! The number of further streams of a link, by the measured rate.
//!
//! On a line that loses packets each stream has a share of the line that the losses set, so several
//! streams carry more than one. How many are enough depends on the line. Therefore the number
//! doubles as long as the link carries clearly more after each doubling. Users of MPWide try numbers
//! by hand in the same way. Only the time counts in which all streams have bytes to send: a link that
//! waits for its program needs no more streams.
//!
//! Where one stream is expected to fill the line, as with BBR, a link tries more only once it carries
//! clearly less than it did.
//!
//! New streams are slow until TCP's windows have grown, so the first measurement with them does not
//! count. Then they are fast, until they lose packets. So the first measurements after the last doubling
//! are checked soon, and then more and more seldom.

use std::sync::Arc;
use std::time::{Duration, Instant};

/// The most further streams of a link that grows.
pub(crate) const MOST_GROWN_STREAMS: usize = 128;

/// The fewest bytes of a measurement.
const MEASURED_BYTES: u64 = 4 << 20;

/// The longest measurement, unless the shortest one is longer.
const LONGEST: Duration = Duration::from_millis(800);

/// How many times as much a link must carry by twice the streams, for a further doubling.
const WORTHWHILE: f64 = 1.2;

/// A link that carries less than this share of its best rate, in so many measurements in a row, tries
/// more streams again.
const SLUMP: f64 = 0.85;
const SLUMPS: u32 = 3;

/// How long asked streams may take to join.
const JOINING_TIME: Duration = Duration::from_secs(10);

/// Asks the reactor for so many further streams in all.
pub(crate) type StreamRequest = Arc<dyn Fn(usize) + Send + Sync>;

/// Bytes that all further streams of a link have carried together, and how long they took.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StreamsSample {
    pub(crate) bytes: u64,
    pub(crate) time: Duration,
}

/// Chooses the number of further streams of a link.
#[derive(Debug)]
pub(crate) struct StreamGrowth {
    /// The number of streams now.
    streams: usize,
    /// Whether some of the streams are new.
    has_new: bool,
    /// Whether the streams are expected to fill the line, and no measurement has shown their rate.
    is_expected_to_fill: bool,
    /// The number that is asked for, and until when the streams may join.
    asked: Option<(usize, Instant)>,
    /// The rate with the smaller number of streams, in bytes a second.
    before: Option<f64>,
    settled: Option<SettledRate>,
    /// The present measurement.
    sum: StreamsSample,
}

/// The rate of a link for which more streams have not been worthwhile.
#[derive(Debug)]
struct SettledRate {
    /// The best rate in bytes a second.
    best: f64,
    /// How many measurements in a row have been far below the best rate.
    slumps: u32,
    /// How long the present measurement is.
    measurement: Duration,
}

impl StreamGrowth {
    /// For a link with `streams` further streams.
    pub(crate) fn new(streams: usize) -> Self {
        StreamGrowth {
            streams,
            has_new: false,
            is_expected_to_fill: false,
            asked: None,
            before: None,
            settled: None,
            sum: StreamsSample::default(),
        }
    }

    /// For a link whose streams are expected to fill the line.
    pub(crate) fn of_full_line(streams: usize) -> Self {
        StreamGrowth {
            is_expected_to_fill: true,
            ..StreamGrowth::new(streams)
        }
    }

    /// Notes a sample of a time in which all `streams` streams had bytes to send. A measurement takes
    /// `shortest` or longer. Returns how many streams the link should have, if it should have more.
    pub(crate) fn note(
        &mut self,
        streams: usize,
        sample: StreamsSample,
        shortest: Duration,
        now: Instant,
    ) -> Option<usize> {
        if self.streams != streams {
            self.streams = streams;
            self.has_new = true;
            self.sum = StreamsSample::default();
        }
        if let Some((asked, until)) = self.asked {
            if streams < asked && now < until {
                return None;
            }
            self.asked = None;
        }
        self.sum.bytes += sample.bytes;
        self.sum.time += sample.time;
        let settled = self.settled.as_ref();
        let measurement = settled.map_or(shortest, |settled| settled.measurement);
        if self.sum.time < measurement || self.sum.bytes < MEASURED_BYTES {
            return None;
        }
        let sum = std::mem::take(&mut self.sum);
        if std::mem::take(&mut self.has_new) {
            return None;
        }
        let more = self.judge(sum.bytes as f64 / sum.time.as_secs_f64(), shortest)?;
        self.asked = Some((more, now + JOINING_TIME));
        Some(more)
    }

    /// Decides by the rate of a measurement.
    fn judge(&mut self, rate: f64, shortest: Duration) -> Option<usize> {
        if let Some(settled) = &mut self.settled {
            let is_slump = rate < SLUMP * settled.best;
            settled.slumps = if is_slump { settled.slumps + 1 } else { 0 };
            settled.best = settled.best.max(rate);
            settled.measurement = (2 * settled.measurement).min(shortest.max(LONGEST));
            if settled.slumps < SLUMPS {
                return None;
            }
            (self.settled, self.before) = (None, None);
        }
        let before = self.before.replace(rate);
        let is_enough = std::mem::take(&mut self.is_expected_to_fill);
        let is_worthwhile = before.map_or(!is_enough, |before| rate >= WORTHWHILE * before);
        if is_worthwhile && self.streams < MOST_GROWN_STREAMS {
            return Some((2 * self.streams).min(MOST_GROWN_STREAMS));
        }
        self.settled = Some(SettledRate {
            best: before.map_or(rate, |before| before.max(rate)),
            slumps: 0,
            measurement: shortest,
        });
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The duration of a sample, and of the shortest measurement.
    const TIME: Duration = Duration::from_millis(10);
    const SHORTEST: Duration = Duration::from_millis(100);

    /// A link on a line, whose streams join at once.
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

        fn sample(&mut self, bytes: f64) -> Option<usize> {
            let bytes = bytes as u64;
            let sample = StreamsSample { bytes, time: TIME };
            self.now += TIME;
            self.growth.note(self.streams, sample, SHORTEST, self.now)
        }

        /// Sends for a number of seconds at the rate that so many streams have, in MB a second.
        fn send(&mut self, seconds: f64, rate: impl Fn(usize) -> f64) {
            for _ in 0..(seconds * 100.0) as usize {
                let asked = self.sample(rate(self.streams) * 1e4);
                self.streams = asked.unwrap_or(self.streams);
            }
        }
    }

    #[test]
    fn a_line_that_loses_packets_gets_the_streams_that_fill_it() {
        // Each stream has 4 MB/s, and the line 120 MB/s.
        let mut line = Line::new();
        line.send(1.0, |streams| (4.0 * streams as f64).min(120.0));
        assert_eq!(line.streams, 64);
        let mut line = Line::new();
        line.send(10.0, |streams| 0.5 * streams as f64);
        assert_eq!(line.streams, MOST_GROWN_STREAMS);
    }

    #[test]
    fn streams_that_are_slow_at_first_count_once_they_are_not() {
        let mut line = Line::new();
        line.send(0.2, |streams| 4.0 * streams as f64);
        assert_eq!(line.streams, 16);
        line.send(0.1, |_| 20.0);
        line.send(1.0, |streams| (4.0 * streams as f64).min(120.0));
        assert_eq!(line.streams, 64);
    }

    #[test]
    fn a_line_that_is_full_gets_one_doubling_and_no_more() {
        let mut line = Line::new();
        line.send(100.0, |_| 120.0);
        assert_eq!(line.streams, 16);
    }

    #[test]
    fn a_line_that_one_stream_fills_keeps_one() {
        let mut line = Line {
            growth: StreamGrowth::of_full_line(1),
            streams: 1,
            now: Instant::now(),
        };
        line.send(100.0, |_| 120.0);
        assert_eq!(line.streams, 1);
        // Losses make streams slow after all.
        line.send(20.0, |streams| (4.0 * streams as f64).min(120.0));
        assert!(line.streams >= 32, "{}", line.streams);
    }

    #[test]
    fn streams_that_are_fast_at_first_are_measured_again() {
        let mut line = Line::new();
        // All streams are fast, until they lose packets.
        line.send(0.25, |_| 120.0);
        assert_eq!(line.streams, 16);
        line.send(2.0, |streams| (2.0 * streams as f64).min(120.0));
        assert!(line.streams >= 64);
    }

    #[test]
    fn a_line_that_becomes_worse_is_measured_again() {
        let mut line = Line::new();
        line.send(20.0, |_| 120.0);
        line.send(20.0, |streams| (2.0 * streams as f64).min(120.0));
        assert_eq!(line.streams, 128);
    }

    #[test]
    fn a_settled_link_is_not_judged_by_a_short_slump() {
        let mut line = Line::new();
        line.send(20.0, |_| 120.0);
        for _ in 0..20 {
            line.send(0.5, |_| 40.0);
            line.send(3.0, |_| 120.0);
        }
        assert_eq!(line.streams, 16);
    }

    #[test]
    fn few_bytes_are_no_measurement() {
        let mut line = Line::new();
        let asked = (0..100).find(|_| line.sample((64 << 10) as f64).is_some());
        assert_eq!(asked, Some(63));
    }

    #[test]
    fn a_link_whose_streams_never_come_is_judged_after_a_while() {
        let mut line = Line::new();
        let mut asked = Vec::new();
        for sample in 0..3000 {
            asked.extend(line.sample(1e6).map(|count| (sample, count)));
        }
        // The second measurement has shown no gain.
        assert_eq!(asked, [(9, 16)]);
        // A worse rate has the link ask again.
        assert!((0..1000).any(|_| line.sample(5e5) == Some(16)));
    }
}
