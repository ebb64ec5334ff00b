//! The rate of further streams over a line that no medium measures: the bytes that the streams take
//! while all of them are full.

use std::time::{Duration, Instant};

use crate::stream_growth::StreamsSample;

/// How long all streams are full for one measurement of the rate.
pub(super) const MEASUREMENT: Duration = Duration::from_secs(1);

/// How many bytes the buffers of a new stream take at once. These say nothing about the line.
const BUFFERED: u64 = 2 << 20;

/// Measures the time in which all further streams of a link are full.
#[derive(Debug)]
pub(super) struct FullTime {
    streams: usize,
    /// Since when all streams have been full.
    since: Option<Instant>,
    /// How many bytes are still to fill the buffers of new streams.
    to_fill: u64,
    /// What the streams have taken since the last sample.
    sample: StreamsSample,
}

impl FullTime {
    /// For a link with `streams` further streams.
    pub(super) fn new(streams: usize) -> Self {
        FullTime {
            streams,
            since: None,
            to_fill: 0,
            sample: StreamsSample::default(),
        }
    }

    /// Notes bytes that the streams have taken.
    pub(super) fn note_written(&mut self, bytes: usize) {
        if self.to_fill > 0 {
            self.to_fill = self.to_fill.saturating_sub(bytes as u64);
        } else if self.since.is_some() {
            self.sample.bytes += bytes as u64;
        }
    }

    /// Notes whether bytes are left that none of `streams` streams takes. Returns what the streams
    /// have taken since the last call.
    pub(super) fn note(&mut self, streams: usize, is_full: bool, now: Instant) -> StreamsSample {
        let since = self.since.take();
        if let (Some(since), 0) = (since, self.to_fill) {
            self.sample.time = now.saturating_duration_since(since);
        }
        self.since = is_full.then_some(now);
        let sample = std::mem::take(&mut self.sample);
        if self.streams != streams {
            self.to_fill += BUFFERED * streams.saturating_sub(self.streams) as u64;
            self.streams = streams;
            return StreamsSample::default();
        }
        sample
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: Duration = Duration::from_millis(10);

    #[test]
    fn only_full_streams_are_measured() {
        let (mut full, mut now) = (FullTime::new(8), Instant::now());
        full.note_written(1000);
        let sample = full.note(8, false, now);
        assert_eq!((sample.bytes, sample.time), (0, Duration::ZERO));
        full.note(8, true, now);
        for is_full in [true, false] {
            now += TIME;
            full.note_written(2000);
            let sample = full.note(8, is_full, now);
            assert_eq!((sample.bytes, sample.time), (2000, TIME));
        }
        now += TIME;
        full.note_written(2000);
        let sample = full.note(8, true, now);
        assert_eq!((sample.bytes, sample.time), (0, Duration::ZERO));
    }

    #[test]
    fn bytes_that_fill_the_buffers_of_new_streams_count_for_nothing() {
        let (mut full, mut now) = (FullTime::new(8), Instant::now());
        full.note(8, true, now);
        full.note(16, true, now);
        let buffers = 8 * BUFFERED as usize;
        for (written, counted) in [(buffers / 2, 0), (buffers / 2, 0), (5000, 5000)] {
            now += TIME;
            full.note_written(written);
            let sample = full.note(16, true, now);
            assert_eq!(sample.bytes, counted);
        }
    }
}
