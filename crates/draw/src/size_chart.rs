//! A quantity over the size of messages, both on logarithmic axes, with a line for each of several curves.

use crate::svg::{Ink, Style, Svg, TextAnchor};
use crate::units::{bytes, message_size, seconds};

const WIDTH: i32 = 680;
const HEIGHT: i32 = 420;
/// The left edge of the plot.
pub(crate) const LEFT: i32 = 72;
const TOP: i32 = 64;
const RIGHT: i32 = 84;
const BOTTOM: i32 = 44;
/// The right and the lower edge of the plot.
const PLOT_RIGHT: i32 = WIDTH - RIGHT;
const PLOT_BOTTOM: i32 = HEIGHT - BOTTOM;
/// The least distance between the names of two curves.
const NAME_DISTANCE: i32 = 14;

/// The size at which an empty message is drawn, in bytes, left of the smallest other message. Zero
/// has no logarithm.
const EMPTY: f64 = 256.0;

/// What is drawn over the size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quantity {
    /// Seconds.
    Time,
    /// Bytes per second.
    Rate,
}

/// A chart.
pub(crate) struct SizeChart<'a> {
    /// What the picture shows, for programs that read it aloud.
    pub(crate) title: &'a str,
    pub(crate) heading: String,
    pub(crate) quantity: Quantity,
    /// The colours of the classes of curves.
    pub(crate) hues: &'a [(&'a str, Ink)],
    pub(crate) curves: Vec<Curve>,
}

/// A curve.
pub(crate) struct Curve {
    pub(crate) class: String,
    pub(crate) name: String,
    /// Sizes in bytes, and values.
    pub(crate) points: Vec<(u64, f64)>,
}

impl Quantity {
    /// The text of a mark on the axis, without trailing zeros: `1 µs`.
    fn tick(self, value: f64) -> String {
        // Logarithms are not exact.
        let value = value * 1.000_001;
        let text = match self {
            Quantity::Time => seconds(value),
            Quantity::Rate => bytes(value as u64),
        };
        let short = match text.split_once(' ') {
            Some((number, unit)) if number.contains('.') => {
                let number = number.trim_end_matches('0').trim_end_matches('.');
                format!("{number} {unit}")
            }
            _ => text,
        };
        match self {
            Quantity::Time => short,
            Quantity::Rate => short + "/s",
        }
    }
}

impl SizeChart<'_> {
    pub(crate) fn draw(&self) -> String {
        let mut svg = Svg::new(WIDTH, HEIGHT, self.title, &self.style());
        svg.text("title", (20, 30), TextAnchor::Start, self.heading.clone());
        if let Some(axes) = Axes::around(&self.curves) {
            axes.draw(&mut svg, self.quantity);
            let mut names = Vec::new();
            for curve in &self.curves {
                axes.draw_curve(&mut svg, curve, &mut names);
            }
        }
        svg.finish()
    }

    fn style(&self) -> Style {
        let mut style = Style::new();
        style.add(
            ".grid",
            "stroke-width:1;fill:none;opacity:.35",
            &[("stroke", Ink::Absent)],
        );
        for (class, ink) in self.hues {
            style.add(
                &format!(".{class}"),
                "stroke-width:2;fill:none",
                &[("stroke", *ink)],
            );
            style.add(
                &format!(".{class}-name"),
                "font-size:12px;font-weight:600",
                &[("fill", *ink)],
            );
        }
        style
    }
}

/// The ranges of the two axes.
struct Axes {
    /// Binary logarithms of the smallest and the largest size.
    size: (f64, f64),
    /// Decimal logarithms of the least and the greatest value.
    value: (f64, f64),
}

impl Axes {
    /// Axes with room for all curves; `None` if there are no points.
    fn around(curves: &[Curve]) -> Option<Axes> {
        let points = || curves.iter().flat_map(|curve| &curve.points);
        let values = || points().map(|(_, value)| *value);
        let (least, greatest) = (
            values().fold(f64::INFINITY, f64::min),
            values().fold(0.0, f64::max),
        );
        let largest = points().map(|(bytes, _)| *bytes).max()?.max(1 << 10) as f64;
        let from = least.log10().floor();
        Some(Axes {
            size: (EMPTY.log2(), largest.log2()),
            value: (from, greatest.log10().ceil().max(from + 1.0)),
        })
    }

    fn x(&self, bytes: u64) -> i32 {
        let share = ((bytes as f64).max(EMPTY).log2() - self.size.0) / (self.size.1 - self.size.0);
        LEFT + (share * f64::from(WIDTH - LEFT - RIGHT)).round() as i32
    }

    fn y(&self, value: f64) -> i32 {
        let share = (value.log10() - self.value.0) / (self.value.1 - self.value.0);
        PLOT_BOTTOM - (share * f64::from(HEIGHT - TOP - BOTTOM)).round() as i32
    }

    fn draw(&self, svg: &mut Svg, quantity: Quantity) {
        for power in self.value.0 as i32..=self.value.1 as i32 {
            let value = 10f64.powi(power);
            let y = self.y(value);
            svg.path("grid", &format!("M{LEFT} {y}H{PLOT_RIGHT}"));
            let text = quantity.tick(value);
            svg.text("faint", (LEFT - 8, y + 4), TextAnchor::End, text);
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

    /// Draws a curve, with its name at the right end. `names` are the heights of the names so far: a
    /// name that would lie on another name moves down.
    fn draw_curve(&self, svg: &mut Svg, curve: &Curve, names: &mut Vec<i32>) {
        svg.group("curve", &[("curve", &curve.name)], "");
        let point = |(bytes, value): &(u64, f64)| format!("{} {}", self.x(*bytes), self.y(*value));
        let points: Vec<String> = curve.points.iter().map(point).collect();
        svg.path(&curve.class, &format!("M{}", points.join("L")));
        if let Some((bytes, value)) = curve.points.last() {
            let mut y = self.y(*value) + 4;
            while names.iter().any(|name| (name - y).abs() < NAME_DISTANCE) {
                y += NAME_DISTANCE;
            }
            names.push(y);
            let corner = (self.x(*bytes) + 8, y);
            let class = format!("{}-name", curve.class);
            svg.text(&class, corner, TextAnchor::Start, &curve.name);
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
            [1e-7, 1e-6, 1e-5, 1e-3, 1.0].map(|value| Quantity::Time.tick(value)),
            ["100 ns", "1 µs", "10 µs", "1 ms", "1 s"]
        );
        assert_eq!(
            [1e2, 1e6, 1e10].map(|value| Quantity::Rate.tick(value)),
            ["100 B/s", "1 MB/s", "10 GB/s"]
        );
    }
}
