//! The throughput of a path over the size of messages: a line for each number of streams.

use serde::Serialize;

use crate::latency_chart::MessageTime;
use crate::size_chart::{Curve, Quantity, SizeChart};
use crate::svg::Ink;
use crate::units::count;

/// The colours of the curves, in turn.
const HUES: [(&str, Ink); 4] = [
    ("first", Ink::Blue),
    ("second", Ink::Orange),
    ("third", Ink::Green),
    ("fourth", Ink::Purple),
];

/// The times of messages on a path with a given number of streams.
#[derive(Debug, Clone, Serialize)]
pub struct StreamsSpeed {
    /// The number of streams.
    pub streams: usize,
    /// The times by size, the smallest first.
    pub sizes: Vec<MessageTime>,
}

/// Draws a line for each number of streams of the path to `place`.
pub fn draw_rates(place: &str, speeds: &[StreamsSpeed]) -> String {
    let curve = |(number, speed): (usize, &StreamsSpeed)| Curve {
        class: HUES[number % HUES.len()].0.to_owned(),
        name: count(speed.streams as u64, "stream"),
        points: (speed.sizes.iter())
            .map(|time| (time.bytes, time.bandwidth()))
            .filter(|(_, rate)| *rate > 0.0)
            .collect(),
    };
    SizeChart {
        title: "the throughput of a path by the size of messages",
        heading: format!("{place}: bytes per second, one way"),
        quantity: Quantity::Rate,
        hues: &HUES,
        curves: speeds.iter().enumerate().map(curve).collect(),
    }
    .draw()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_of_streams_has_a_line() {
        let speed = |streams, seconds| StreamsSpeed {
            streams,
            sizes: [8, 1 << 20]
                .map(|bytes| MessageTime {
                    bytes,
                    seconds,
                    spread: 0.0,
                    trips: 9,
                })
                .to_vec(),
        };
        let svg = draw_rates("far:1", &[speed(1, 1e-2), speed(16, 1e-3)]);
        for text in [">1 stream<", ">16 streams<", "100 MB/s", "far:1: bytes"] {
            assert!(svg.contains(text), "{text}: {svg}");
        }
        assert_eq!(svg.matches("<path class=\"first\"").count(), 1);
    }
}
