//! The time of a message over the size, both on logarithmic axes: a line for each medium.

use serde::Serialize;
use titin_model::Medium;

use crate::svg::{Ink, Style, Svg, TextAnchor};
use crate::units::{message_size, seconds};

const WIDTH: i32 = 680;
const HEIGHT: i32 = 420;
const LEFT: i32 = 72;
const TOP: i32 = 64;
const RIGHT: i32 = 84;
const BOTTOM: i32 = 44;
/// The right and the lower edge of the plot.
const PLOT_RIGHT: i32 = WIDTH - RIGHT;
const PLOT_BOTTOM: i32 = HEIGHT - BOTTOM;
/// The least distance between the names of two media.
const NAME_DISTANCE: i32 = 14;

/// The colours of the media, by name.
const HUES: [(&str, Ink); 4] = [
    ("inproc", Ink::Green),
    ("shm", Ink::Blue),
    ("tcp", Ink::Orange),
    ("file", Ink::Purple),
];

/// The size at which an empty message is drawn, in bytes, left of the smallest other message. Zero
/// has no logarithm.
const EMPTY: f64 = 256.0;

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
    let title = "the time of a message by its size";
    let mut svg = Svg::new(WIDTH, HEIGHT, title, &style());
    let heading = format!("{host}: the time of a message, one way");
    svg.text("title", (20, 30), TextAnchor::Start, heading);
    if let Some(axes) = Axes::around(media) {
        axes.draw(&mut svg);
        let mut names = Vec::new();
        for speed in media {
            axes.draw_medium(&mut svg, speed, &mut names);
        }
    }
    svg.finish()
}

fn style() -> Style {
    let mut style = Style::new();
    style.add(
        ".grid",
        "stroke-width:1;fill:none;opacity:.35",
        &[("stroke", Ink::Absent)],
    );
    for (medium, ink) in HUES {
        style.add(
            &format!(".{medium}"),
            "stroke-width:2;fill:none",
            &[("stroke", ink)],
        );
        style.add(
            &format!(".{medium}-name"),
            "font-size:12px;font-weight:600",
            &[("fill", ink)],
        );
    }
    style
}

/// The text of a mark on the time axis, without trailing zeros: `1 µs`.
fn tick(time: f64) -> String {
    let text = seconds(time * 1.000_001);
    match text.split_once(' ') {
        Some((number, unit)) if number.contains('.') => {
            format!(
                "{} {unit}",
                number.trim_end_matches('0').trim_end_matches('.')
            )
        }
        _ => text,
    }
}

/// The ranges of the two axes.
struct Axes {
    /// Binary logarithms of the smallest and the largest size.
    size: (f64, f64),
    /// Decimal logarithms of the shortest and the longest time.
    time: (f64, f64),
}

impl Axes {
    /// Axes with room for all times of all media; `None` if there are no times.
    fn around(media: &[MediumSpeed]) -> Option<Axes> {
        let times = || media.iter().flat_map(|speed| &speed.sizes);
        let shortest = times()
            .map(|time| time.seconds)
            .fold(f64::INFINITY, f64::min);
        let longest = times().map(|time| time.seconds).fold(0.0, f64::max);
        let largest = times().map(|time| time.bytes).max()?.max(1 << 10) as f64;
        let from = shortest.log10().floor();
        Some(Axes {
            size: (EMPTY.log2(), largest.log2()),
            time: (from, longest.log10().ceil().max(from + 1.0)),
        })
    }

    fn x(&self, bytes: u64) -> i32 {
        let share = ((bytes as f64).max(EMPTY).log2() - self.size.0) / (self.size.1 - self.size.0);
        LEFT + (share * f64::from(WIDTH - LEFT - RIGHT)).round() as i32
    }

    fn y(&self, seconds: f64) -> i32 {
        let share = (seconds.log10() - self.time.0) / (self.time.1 - self.time.0);
        PLOT_BOTTOM - (share * f64::from(HEIGHT - TOP - BOTTOM)).round() as i32
    }

    fn draw(&self, svg: &mut Svg) {
        for power in self.time.0 as i32..=self.time.1 as i32 {
            let time = 10f64.powi(power);
            let y = self.y(time);
            svg.path("grid", &format!("M{LEFT} {y}H{PLOT_RIGHT}"));
            svg.text("faint", (LEFT - 8, y + 4), TextAnchor::End, tick(time));
        }
        // Grid lines at the empty message, at 1 KiB, and at each sixteenfold size above 1 KiB.
        let largest = self.size.1;
        let powers = (10..63).step_by(4);
        let sizes = powers.take_while(|power| f64::from(*power) <= largest);
        for bytes in std::iter::once(0).chain(sizes.map(|power| 1u64 << power)) {
            let x = self.x(bytes);
            svg.path("grid", &format!("M{x} {TOP}V{PLOT_BOTTOM}"));
            let text = message_size(bytes);
            svg.text("faint", (x, PLOT_BOTTOM + 18), TextAnchor::Middle, text);
        }
    }

    /// Draws the line of a medium, with the medium's name at the right end. `names` are the heights
    /// of the names so far: a name that would lie on another name moves down.
    fn draw_medium(&self, svg: &mut Svg, speed: &MediumSpeed, names: &mut Vec<i32>) {
        let medium = speed.medium;
        svg.group("medium", &[("medium", medium)], "");
        let point = |time: &MessageTime| format!("{} {}", self.x(time.bytes), self.y(time.seconds));
        let points: Vec<String> = speed.sizes.iter().map(point).collect();
        svg.path(medium, &format!("M{}", points.join("L")));
        if let Some(last) = speed.sizes.last() {
            let mut y = self.y(last.seconds) + 4;
            while names.iter().any(|name| (name - y).abs() < NAME_DISTANCE) {
                y += NAME_DISTANCE;
            }
            names.push(y);
            let corner = (self.x(last.bytes) + 8, y);
            svg.text(&format!("{medium}-name"), corner, TextAnchor::Start, medium);
        }
        svg.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_short() {
        assert_eq!(
            [1e-7, 1e-6, 1e-5, 1e-3, 1.0].map(tick),
            ["100 ns", "1 µs", "10 µs", "1 ms", "1 s"]
        );
    }

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
