//! The time of a message over the size: a line for each medium.

use serde::Serialize;
use titin_model::Medium;

use crate::size_chart::{Curve, Quantity, SizeChart};
use crate::svg::Ink;

/// The colours of the media, by name.
const HUES: [(&str, Ink); 4] = [
    ("inproc", Ink::Green),
    ("shm", Ink::Blue),
    ("tcp", Ink::Orange),
    ("file", Ink::Purple),
];

/// The times of messages by a single medium.
#[derive(Debug, Clone, Serialize)]
pub struct MediumSpeed {
    /// The name of the medium.
    pub medium: &'static str,
    /// The time of the fastest small message, in seconds.
    pub latency: f64,
    /// The bandwidth with the largest message, in bytes per second.
    pub bandwidth: f64,
    /// The times by size, the smallest first.
    pub sizes: Vec<MessageTime>,
}

/// The time of a message of a given size, one way.
#[derive(Debug, Clone, Serialize)]
pub struct MessageTime {
    /// The size.
    pub bytes: u64,
    /// The median.
    pub seconds: f64,
    /// Half the interquartile range, as a share of the median.
    pub spread: f64,
    /// The number of measured round trips.
    pub trips: u64,
}

impl MessageTime {
    /// Bytes per second.
    pub fn bandwidth(&self) -> f64 {
        self.bytes as f64 / self.seconds
    }
}

impl MediumSpeed {
    /// Summarises the times of a medium. Messages of at most `small` bytes decide the latency.
    pub fn new(medium: Medium, sizes: Vec<MessageTime>, small: u64) -> MediumSpeed {
        let latency = sizes
            .iter()
            .filter(|time| time.bytes <= small)
            .map(|time| time.seconds)
            .fold(f64::INFINITY, f64::min);
        let bandwidth = sizes.last().map_or(0.0, MessageTime::bandwidth);
        MediumSpeed {
            medium: medium.key(),
            latency,
            bandwidth,
            sizes,
        }
    }
}

/// Draws a line for each medium of a host.
pub fn draw_latencies(host: &str, media: &[MediumSpeed]) -> String {
    let curve = |speed: &MediumSpeed| Curve {
        class: speed.medium.to_owned(),
        name: speed.medium.to_owned(),
        points: (speed.sizes.iter())
            .map(|time| (time.bytes, time.seconds))
            .collect(),
    };
    SizeChart {
        title: "the time of a message by its size",
        heading: format!("{host}: the time of a message, one way"),
        quantity: Quantity::Time,
        hues: &HUES,
        curves: media.iter().map(curve).collect(),
    }
    .draw()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::size_chart::LEFT;

    #[test]
    fn every_medium_has_a_line_within_the_picture() {
        let sizes = vec![
            MessageTime {
                bytes: 0,
                seconds: 3e-6,
                spread: 0.0,
                trips: 1,
            },
            MessageTime {
                bytes: 1 << 26,
                seconds: 7e-3,
                spread: 0.0,
                trips: 1,
            },
        ];
        let speed = |medium| MediumSpeed {
            medium,
            latency: 3e-6,
            bandwidth: 9e9,
            sizes: sizes.clone(),
        };
        let text = draw_latencies("h<1>", &[speed("inproc"), speed("tcp")]);
        assert!(text.contains("h&lt;1&gt;"), "{text}");
        for medium in ["inproc", "tcp"] {
            assert!(
                text.contains(&format!("<path class=\"{medium}\" d=\"M{LEFT} ")),
                "{text}"
            );
        }
        // Their ends meet, their names do not.
        let height = |medium: &str| {
            let (_, rest) = text.split_once(&format!("{medium}-name\" x=")).unwrap();
            rest.split('"').nth(3).unwrap().parse::<i32>().unwrap()
        };
        assert!((height("inproc") - height("tcp")).abs() >= 14, "{text}");
    }

    #[test]
    fn without_figures_there_is_still_a_picture() {
        assert!(draw_latencies("h", &[]).ends_with("</svg>\n"));
    }
}
