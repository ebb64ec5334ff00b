//! A logarithmic axis, marked in units that people use.

/// A logarithmic axis. `from` and `to` are the decimal logarithms of the ends.
pub(super) struct Axis {
    from: f64,
    to: f64,
    pub(super) pixels: f64,
}

impl Axis {
    /// An axis with room for all spans, with 0.6 decades of room at both ends and at least three
    /// decades in all.
    pub(super) fn new(spans: impl Iterator<Item = (f64, f64)>, pixels: i32) -> Axis {
        let (low, high) = spans.fold((f64::MAX, f64::MIN), |(low, high), span| {
            (low.min(span.0.log10()), high.max(span.1.log10()))
        });
        let (low, high) = if low > high { (-3.0, 0.0) } else { (low, high) };
        let room = (3.0 - (high - low)).max(1.2) / 2.0;
        Axis {
            from: low - room,
            to: high + room,
            pixels: pixels.into(),
        }
    }

    /// The pixels from the start of the axis to a value.
    pub(super) fn at(&self, value: f64) -> f64 {
        (value.log10() - self.from) / (self.to - self.from) * self.pixels
    }

    /// The marks in view, as pixels and texts: all whole units, and parts of units where there is
    /// room between the whole units. `distance` is the least distance between two marks.
    pub(super) fn marks(&self, marks: &Marks, distance: f64) -> Vec<(f64, &'static str)> {
        let mut shown: Vec<(f64, &'static str)> = Vec::new();
        for (value, text) in marks.units.iter().chain(marks.parts) {
            let at = self.at(*value);
            let is_inside = (self.from..=self.to).contains(&value.log10());
            if is_inside
                && shown
                    .iter()
                    .all(|(other, _)| (other - at).abs() >= distance)
            {
                shown.push((at, text));
            }
        }
        shown.sort_by(|a, b| a.0.total_cmp(&b.0));
        shown
    }
}

/// The possible marks of an axis.
pub(super) struct Marks {
    units: &'static [(f64, &'static str)],
    parts: &'static [(f64, &'static str)],
}

/// The marks of a time axis, in seconds.
pub(super) const TIME_MARKS: Marks = Marks {
    units: &TIMES,
    parts: &PARTS_OF_TIMES,
};

/// The marks of a space axis, in metres.
pub(super) const SPACE_MARKS: Marks = Marks {
    units: &LENGTHS,
    parts: &PARTS_OF_LENGTHS,
};

const MINUTE: f64 = 60.0;
const HOUR: f64 = 3600.0;
const DAY: f64 = 86_400.0;
const YEAR: f64 = 365.25 * DAY;

const TIMES: [(f64, &str); 14] = [
    (1e-15, "1 fs"),
    (1e-12, "1 ps"),
    (1e-9, "1 ns"),
    (1e-6, "1 µs"),
    (1e-3, "1 ms"),
    (1.0, "1 s"),
    (MINUTE, "1 min"),
    (HOUR, "1 h"),
    (DAY, "1 d"),
    (YEAR, "1 yr"),
    (1e2 * YEAR, "100 yr"),
    (1e4 * YEAR, "10⁴ yr"),
    (1e6 * YEAR, "10⁶ yr"),
    (1e9 * YEAR, "10⁹ yr"),
];
const PARTS_OF_TIMES: [(f64, &str); 18] = [
    (10.0 * MINUTE, "10 min"),
    (10.0 * HOUR, "10 h"),
    (10.0, "10 s"),
    (10.0 * DAY, "10 d"),
    (100.0 * DAY, "100 d"),
    (10.0 * YEAR, "10 yr"),
    (1e-14, "10 fs"),
    (1e-13, "100 fs"),
    (1e-11, "10 ps"),
    (1e-10, "100 ps"),
    (1e-8, "10 ns"),
    (1e-7, "100 ns"),
    (1e-5, "10 µs"),
    (1e-4, "100 µs"),
    (1e-2, "10 ms"),
    (1e-1, "100 ms"),
    (1e3 * YEAR, "1000 yr"),
    (1e5 * YEAR, "10⁵ yr"),
];
const LENGTHS: [(f64, &str); 10] = [
    (1e-12, "1 pm"),
    (1e-9, "1 nm"),
    (1e-6, "1 µm"),
    (1e-3, "1 mm"),
    (1.0, "1 m"),
    (1e3, "1 km"),
    (1e6, "1000 km"),
    (1e9, "10⁶ km"),
    (1e12, "10⁹ km"),
    (1e15, "10¹² km"),
];
const PARTS_OF_LENGTHS: [(f64, &str); 12] = [
    (1e-11, "10 pm"),
    (1e-10, "100 pm"),
    (1e-8, "10 nm"),
    (1e-7, "100 nm"),
    (1e-5, "10 µm"),
    (1e-4, "100 µm"),
    (1e-2, "1 cm"),
    (1e-1, "10 cm"),
    (10.0, "10 m"),
    (100.0, "100 m"),
    (1e4, "10 km"),
    (1e5, "100 km"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_are_marked_in_units_that_people_use() {
        let axis = Axis::new([(1.0, DAY), (60.0, YEAR)].into_iter(), 600);
        let marks: Vec<&str> = axis
            .marks(&TIME_MARKS, 54.0)
            .into_iter()
            .map(|mark| mark.1)
            .collect();
        for mark in ["1 s", "1 min", "1 h", "1 d", "1 yr"] {
            assert!(marks.contains(&mark), "{mark} in {marks:?}");
        }
        // The marks of a narrow range are parts of units.
        let axis = Axis::new([(1.0, 2.0)].into_iter(), 600);
        assert!(axis.marks(&TIME_MARKS, 54.0).len() >= 3);
    }
}
