//! Figures as people write them: durations, amounts of data, shares and counts.

/// A duration with three digits and a unit: `1.23 ms`.
pub fn seconds(seconds: f64) -> String {
    let (value, unit) = match seconds.abs() {
        0.0 => return "0 s".into(),
        s if s < 1e-6 => (seconds * 1e9, "ns"),
        s if s < 1e-3 => (seconds * 1e6, "µs"),
        s if s < 1.0 => (seconds * 1e3, "ms"),
        s if s < 120.0 => (seconds, "s"),
        s if s < 7200.0 => (seconds / 60.0, "min"),
        _ => (seconds / 3600.0, "h"),
    };
    format!("{} {unit}", three_digits(value))
}

/// An amount of data with three digits and a decimal unit: `1.50 MB`.
pub fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["kB", "MB", "GB", "TB", "PB", "EB"];
    if bytes < 1000 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1000.0;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    format!("{} {}", three_digits(value), UNITS[unit])
}

fn three_digits(value: f64) -> String {
    match value.abs() {
        v if v < 9.995 => format!("{value:.2}"),
        v if v < 99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// A share of a whole, in percent; nothing if the whole is zero.
pub fn percent(part: f64, whole: f64) -> String {
    if whole > 0.0 {
        format!("{:.0} %", 100.0 * part / whole)
    } else {
        "".into()
    }
}

/// The size of a message: `64 KiB`.
pub fn message_size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{} KiB", bytes >> 10),
        _ => format!("{} MiB", bytes >> 20),
    }
}

/// `1 error`, `2 errors`.
pub fn count(n: u64, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits_and_a_unit() {
        let times = [
            (0.0, "0 s"),
            (2.5e-7, "250 ns"),
            (0.00123, "1.23 ms"),
            (61.0, "61.0 s"),
            (600.0, "10.0 min"),
            (9000.0, "2.50 h"),
        ];
        for (value, text) in times {
            assert_eq!(seconds(value), text);
        }
        for (value, text) in [
            (0, "0 B"),
            (999, "999 B"),
            (64_000_000, "64.0 MB"),
            (999_999, "1.00 MB"),
        ] {
            assert_eq!(bytes(value), text);
        }
    }
}
