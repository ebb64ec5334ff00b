//! Time over size, both logarithmic: a line for each medium.

use super::svg::{Anchor, Ink, Style, Svg};
use crate::commands::bench::named;
use crate::speed::Speed;
use crate::table::seconds;

const WIDTH: i32 = 680;
const HEIGHT: i32 = 420;
const LEFT: i32 = 72;
const TOP: i32 = 64;
const RIGHT: i32 = 84;
const BOTTOM: i32 = 44;

/// The media's colours, by their names.
const HUES: [(&str, Ink); 3] = [
    ("inproc", Ink::Green),
    ("shm", Ink::Blue),
    ("tcp", Ink::Orange),
];

/// An empty message has no place on a logarithmic axis; it stands to the left of the others.
const EMPTY: f64 = 256.0;

/// Draws the lines of all media of a host.
pub(crate) fn draw(host: &str, media: &[Speed]) -> String {
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
    let mut svg = Svg::new(WIDTH, HEIGHT, "the time of a message by its size", &style);
    svg.text(
        "title",
        (20, 30),
        Anchor::Start,
        format!("{host}: the time of a message, one way"),
    );
    let points = || media.iter().flat_map(|speed| &speed.sizes);
    let least = points()
        .map(|figure| figure.seconds)
        .fold(f64::INFINITY, f64::min);
    let most = points().map(|figure| figure.seconds).fold(0.0, f64::max);
    if points().next().is_none() {
        return svg.finish();
    }
    let largest = points()
        .map(|figure| figure.bytes)
        .max()
        .unwrap_or(0)
        .max(1 << 10) as f64;
    let axes = Axes {
        size: (EMPTY.log2(), largest.log2()),
        time: (
            least.log10().floor(),
            most.log10().ceil().max(least.log10().floor() + 1.0),
        ),
    };
    let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
    for power in axes.time.0 as i32..=axes.time.1 as i32 {
        let time = 10f64.powi(power);
        let y = axes.y(time);
        svg.path("grid", &format!("M{LEFT} {y}H{right}"));
        svg.text("faint", (LEFT - 8, y + 4), Anchor::End, tick(time));
    }
    let mut power = 0;
    while power == 0 || (1u64 << power) as f64 <= largest {
        let size = if power == 0 { 0 } else { 1u64 << power };
        let x = axes.x(size);
        svg.path("grid", &format!("M{x} {TOP}V{bottom}"));
        svg.text("faint", (x, bottom + 18), Anchor::Middle, named(size));
        power = if power == 0 { 10 } else { power + 4 };
    }
    let mut taken: Vec<i32> = Vec::new();
    for speed in media {
        svg.group("medium", &[("medium", speed.medium)], "");
        let place = |figure: &crate::speed::Figure| {
            format!("{} {}", axes.x(figure.bytes), axes.y(figure.seconds))
        };
        let line: Vec<String> = speed.sizes.iter().map(place).collect();
        svg.path(speed.medium, &format!("M{}", line.join("L")));
        if let Some(last) = speed.sizes.last() {
            let mut y = axes.y(last.seconds) + 4;
            while taken.iter().any(|other| (other - y).abs() < 14) {
                y += 14;
            }
            taken.push(y);
            svg.text(
                &format!("{}-name", speed.medium),
                (axes.x(last.bytes) + 8, y),
                Anchor::Start,
                speed.medium,
            );
        }
        svg.end();
    }
    svg.finish()
}

/// `1 µs`, without digits that say nothing.
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

struct Axes {
    /// Logarithms of the ends, to the base of 2.
    size: (f64, f64),
    /// To the base of 10.
    time: (f64, f64),
}

impl Axes {
    fn x(&self, bytes: u64) -> i32 {
        let share = ((bytes as f64).max(EMPTY).log2() - self.size.0) / (self.size.1 - self.size.0);
        LEFT + (share * f64::from(WIDTH - LEFT - RIGHT)).round() as i32
    }

    fn y(&self, seconds: f64) -> i32 {
        let share = (seconds.log10() - self.time.0) / (self.time.1 - self.time.0);
        HEIGHT - BOTTOM - (share * f64::from(HEIGHT - TOP - BOTTOM)).round() as i32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::speed::Figure;

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
            Figure {
                bytes: 0,
                seconds: 3e-6,
                spread: 0.0,
                trips: 1,
            },
            Figure {
                bytes: 1 << 26,
                seconds: 7e-3,
                spread: 0.0,
                trips: 1,
            },
        ];
        let speed = |medium| Speed {
            medium,
            latency: 3e-6,
            bandwidth: 9e9,
            sizes: sizes.clone(),
        };
        let text = draw("h<1>", &[speed("inproc"), speed("tcp")]);
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
        assert!(draw("h", &[]).ends_with("</svg>\n"));
    }
}
