//! Whether to compress a message on a conduit between sites, decided from measurements.
//!
//! A message of n bytes is at the receiver after n/L, where L is the rate of the line. Compressed to
//! the share s of its bytes it is there after n/c + s n/L + n/d, with the speeds c of compression and
//! d of decompression. The conduit compresses where that is clearly less. This is the time to the
//! arrival alone: n/c is time of the call that sends, and n/d of the call that receives, so a program
//! that sends ahead and waits for no answer loses this time and gains nothing. L is measured by the medium
//! ([`titin_transport::Carrier::line_rate`]), c and s by the conduit: on a sample of a message, and
//! then on each message that is compressed. So data that do not compress cost a sample now and then,
//! and never a whole message in vain for long.
//!
//! The decision is without a clock, and does not compress: both come from the caller.

use std::time::Duration;

/// The fewest bytes of a message that is compressed. A smaller message has hardly a part in the time
/// that the line takes, whose delay is longer.
pub(crate) const SMALLEST: u64 = 64 << 10;

/// The level of zstd. Level 1 is the fastest of the usual levels: zstd's own benchmark (README of zstd
/// 1.4.5, Silesia corpus, one core) has 2.88:1 at 500 MB/s. A slower level makes messages somewhat
/// smaller, but takes the program's processor for longer.
pub(crate) const LEVEL: i32 = 1;

/// How many times as fast as compression decompression is: 1660 MB/s in the same benchmark.
const DECOMPRESSION: f64 = 3.0;

/// The compressed message must take less than this share of the time of the plain message. Measured
/// speeds are rough, and the processor's time is the program's.
const WORTHWHILE: f64 = 0.9;

/// The most messages without a measurement. The gaps between samples double up to this number.
const LONGEST_GAP: u32 = 16;

/// How many messages in a row must be compressed for the gaps to begin anew. A sample may be faster than
/// a whole message, so that the first messages after a sample are compressed in vain.
const SERIES: u32 = 4;

/// The weight of a new measurement in the averages.
const WEIGHT: f64 = 0.5;

/// What compression of some data took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measurement {
    /// Bytes before.
    pub(crate) before: u64,
    /// Bytes after.
    pub(crate) after: u64,
    /// The time of the compression.
    pub(crate) time: Duration,
}

/// The decisions of one sending end.
#[derive(Debug, Default)]
pub(crate) struct CompressionChoice {
    averages: Option<Averages>,
    /// The messages without a measurement since the last one, and the number of them after which a
    /// sample is due.
    unmeasured: u32,
    gap: u32,
    /// The messages in a row that were compressed.
    series: u32,
}

/// Averages over the measurements, in which late ones count most.
#[derive(Clone, Copy, Debug)]
struct Averages {
    /// Bytes after compression for each byte before.
    share: f64,
    /// Seconds of compression for each byte before.
    cost: f64,
}

impl CompressionChoice {
    /// Whether a sample of the next message is to be measured first.
    pub(crate) fn wants_sample(&self) -> bool {
        self.unmeasured >= self.gap
    }

    /// Notes the measurement of a sample.
    pub(crate) fn note_sample(&mut self, sample: Measurement) {
        self.average(sample);
        self.gap = (2 * self.gap).clamp(1, LONGEST_GAP);
        self.unmeasured = 0;
    }

    /// Notes that a message was compressed.
    pub(crate) fn note_compressed(&mut self, message: Measurement) {
        self.average(message);
        self.unmeasured = 0;
        self.series = self.series.saturating_add(1);
        if self.series >= SERIES {
            self.gap = 1;
        }
    }

    /// Notes that a message was sent as it is.
    pub(crate) fn note_plain(&mut self) {
        self.unmeasured += 1;
        self.series = 0;
    }

    /// Whether the next message may be compressed, as far as can be told without its data, by a line
    /// with this rate.
    pub(crate) fn may_be_worthwhile(&self, line_rate: u64) -> bool {
        self.wants_sample() || self.is_worthwhile(line_rate)
    }

    /// Whether a compressed message is sooner at the receiver, by a line with this rate in bytes a
    /// second.
    pub(crate) fn is_worthwhile(&self, line_rate: u64) -> bool {
        let Some(Averages { share, cost }) = self.averages else {
            return false;
        };
        let on_line = 1.0 / line_rate.max(1) as f64;
        cost * (1.0 + 1.0 / DECOMPRESSION) + share * on_line < WORTHWHILE * on_line
    }

    fn average(&mut self, measurement: Measurement) {
        let Measurement {
            before,
            after,
            time,
        } = measurement;
        let before = before.max(1) as f64;
        let new = Averages {
            share: after as f64 / before,
            cost: time.as_secs_f64() / before,
        };
        let mean = |old: f64, new: f64| old + WEIGHT * (new - old);
        self.averages = Some(self.averages.map_or(new, |old| Averages {
            share: mean(old.share, new.share),
            // A measurement in which another thread had the core is too long, and none is too short.
            cost: mean(old.cost, new.cost).min(new.cost),
        }));
    }
}

/// The places of a sample in a message of so many bytes: pieces from all over the message, since its
/// beginning may be unlike the rest. Pieces of an array of large elements begin at an element.
pub(crate) fn sample_places(length: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    const PIECE: usize = 32 << 10;
    const PIECES: usize = 4;
    let pieces = (length / PIECE).clamp(1, PIECES);
    let stride = (length / pieces) & !63;
    (0..pieces).map(move |number| {
        let begin = number * stride;
        begin..(begin + PIECE).min(length)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1_000_000;

    /// A measurement of 1 MB that becomes the share of its bytes, at a speed in bytes a second.
    fn measured(share: f64, speed: u64) -> Measurement {
        Measurement {
            before: MB,
            after: (share * MB as f64) as u64,
            time: Duration::from_secs_f64(MB as f64 / speed as f64),
        }
    }

    /// A conduit on a line.
    struct Conduit {
        choice: CompressionChoice,
        rate: u64,
        samples: usize,
    }

    impl Conduit {
        fn new(rate: u64) -> Self {
            Conduit {
                choice: CompressionChoice::default(),
                rate,
                samples: 0,
            }
        }

        /// Sends a message. Returns whether it was compressed.
        fn send(&mut self, data: Measurement) -> bool {
            self.send_sampled(data, data)
        }

        /// Sends a message with a sample that is unlike the whole message.
        fn send_sampled(&mut self, sample: Measurement, data: Measurement) -> bool {
            if self.choice.wants_sample() {
                self.samples += 1;
                self.choice.note_sample(sample);
            }
            let compresses = self.choice.is_worthwhile(self.rate);
            match compresses {
                true => self.choice.note_compressed(data),
                false => self.choice.note_plain(),
            }
            compresses
        }

        /// Sends so many alike messages. Returns how many were compressed.
        fn send_all(&mut self, count: usize, data: Measurement) -> usize {
            (0..count).filter(|_| self.send(data)).count()
        }
    }

    #[test]
    fn what_pays_for_the_line_is_compressed() {
        for (rate, share, speed, expected) in [
            (10 * MB, 0.5, 400 * MB, true),
            (100 * MB, 0.25, 400 * MB, true),
            // Compression is slower than the line.
            (1000 * MB, 0.25, 400 * MB, false),
            (400 * MB, 0.1, 400 * MB, false),
            // The data hardly become smaller.
            (10 * MB, 0.95, 400 * MB, false),
            (MB, 1.0, 1000 * MB, false),
            (MB, 0.8, 400 * MB, true),
        ] {
            let mut conduit = Conduit::new(rate);
            let compressed = conduit.send_all(10, measured(share, speed));
            assert_eq!(compressed, if expected { 10 } else { 0 }, "{rate} {share}");
        }
    }

    #[test]
    fn data_that_do_not_compress_cost_a_sample_now_and_then() {
        let mut conduit = Conduit::new(10 * MB);
        assert_eq!(conduit.send_all(1000, measured(1.0, 500 * MB)), 0);
        assert!((60..75).contains(&conduit.samples), "{}", conduit.samples);
    }

    #[test]
    fn data_that_compress_need_no_samples() {
        let mut conduit = Conduit::new(10 * MB);
        assert_eq!(conduit.send_all(1000, measured(0.3, 500 * MB)), 1000);
        assert_eq!(conduit.samples, 1);
    }

    #[test]
    fn data_that_change_are_noticed() {
        let mut conduit = Conduit::new(10 * MB);
        let (smooth, noise) = (measured(0.2, 400 * MB), measured(1.0, 700 * MB));
        conduit.send_all(50, smooth);
        let in_vain = conduit.send_all(100, noise);
        assert!(in_vain <= 4, "{in_vain}");
        // The gap to the next sample is at most 16 messages.
        let compressed = conduit.send_all(100, smooth);
        assert!(compressed >= 80, "{compressed}");
    }

    #[test]
    fn samples_that_are_too_fast_compress_few_messages_in_vain() {
        let mut conduit = Conduit::new(200 * MB);
        let (sample, whole) = (measured(0.3, 500 * MB), measured(0.3, 250 * MB));
        let is_in_vain = |_: &i32| conduit.send_sampled(sample, whole);
        let in_vain = (0..200).filter(is_in_vain).count();
        assert!((1..20).contains(&in_vain), "{in_vain}");
    }

    #[test]
    fn a_sample_that_was_held_up_counts_until_the_next_one() {
        let mut conduit = Conduit::new(10 * MB);
        assert!(!conduit.send(measured(0.3, 2 * MB)));
        assert_eq!(conduit.send_all(10, measured(0.3, 400 * MB)), 10);
        // Nor does a message that was held up end the compression.
        assert!(conduit.send(measured(0.3, 50 * MB)));
        assert_eq!(conduit.send_all(10, measured(0.3, 400 * MB)), 10);
    }

    #[test]
    fn a_faster_line_ends_the_compression() {
        let mut conduit = Conduit::new(10 * MB);
        let data = measured(0.4, 400 * MB);
        assert_eq!(conduit.send_all(5, data), 5);
        conduit.rate = 2000 * MB;
        assert_eq!(conduit.send_all(5, data), 0);
        conduit.rate = 10 * MB;
        assert_eq!(conduit.send_all(5, data), 5);
    }

    #[test]
    fn a_sample_is_from_all_over_the_message() {
        for length in [SMALLEST as usize, 100_001, 1 << 20, 123_456_789] {
            let places: Vec<_> = sample_places(length).collect();
            assert!(places.len() >= 2 && places[0].start == 0);
            assert!(places.windows(2).all(|two| two[0].end <= two[1].start));
            let last = places.last().unwrap();
            assert!(last.end <= length && last.end > length / 2, "{places:?}");
            let all: usize = places.iter().map(ExactSizeIterator::len).sum();
            assert!(all <= 128 << 10, "{all}");
        }
    }
}
