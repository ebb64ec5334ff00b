//! Quantities with units, as scientists write them: `10 ms`, `2.5 km`, `3 days`, `1e-6 m2/s`, `1 kg
//! m^-3`.
//! A value is kept in SI base units with its dimension, and can be read in any unit of the same
//! dimension.

use std::fmt;

use serde::{Deserialize, Serialize};

mod units;

/// The exponents of metre, kilogram, second, ampere, kelvin, mole and candela.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Dimension([i8; 7]);

impl Dimension {
    /// A plain number.
    pub const NONE: Dimension = Dimension([0; 7]);
    /// A length.
    pub const LENGTH: Dimension = Dimension([1, 0, 0, 0, 0, 0, 0]);
    /// A duration.
    pub const TIME: Dimension = Dimension([0, 0, 1, 0, 0, 0, 0]);

    fn times(self, other: Dimension, power: i8) -> Option<Dimension> {
        let mut exponents = self.0;
        for (exponent, more) in exponents.iter_mut().zip(other.0) {
            *exponent = exponent.checked_add(more.checked_mul(power)?)?;
        }
        Some(Dimension(exponents))
    }
}

impl fmt::Display for Dimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Dimension::NONE => {
                return f.write_str(
                    "a number without dimension, as an angle, a share and a plain number are",
                );
            }
            Dimension::LENGTH => return f.write_str("a length"),
            Dimension::TIME => return f.write_str("a duration"),
            _ => {}
        }
        let mut between = "";
        for (name, exponent) in ["m", "kg", "s", "A", "K", "mol", "cd"].iter().zip(self.0) {
            match exponent {
                0 => continue,
                1 => write!(f, "{between}{name}")?,
                n => write!(f, "{between}{name}^{n}")?,
            }
            between = " ";
        }
        Ok(())
    }
}

/// A value in SI base units.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Quantity {
    /// In metres, kilograms, seconds and products of these units.
    pub value_si: f64,
    /// The dimension.
    pub dimension: Dimension,
}

impl Quantity {
    /// The value in `unit`: `parse("90 min")?.in_unit("h")?` is 1.5.
    pub fn in_unit(&self, unit: &str) -> Result<f64, UnitError> {
        let unit_of = parse_unit(unit)?;
        if unit_of.dimension != self.dimension {
            let text = format!(
                "it is {}, and \"{unit}\" measures {}",
                self.dimension, unit_of.dimension
            );
            return Err(UnitError { text, hint: None });
        }
        let value = unit_of.of_si(self.value_si);
        if !value.is_finite() {
            return fault(format!(
                "{:e} in SI units is too large to be told in \"{unit}\"",
                self.value_si
            ));
        }
        Ok(value)
    }
}

/// The reason why a text is not a quantity, or has the wrong dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitError {
    text: String,
    hint: Option<String>,
}

impl UnitError {
    pub(crate) fn not_a_number(found: &str) -> Self {
        UnitError {
            text: format!("{found} is not a number with a unit"),
            hint: None,
        }
    }

    /// A similar unit that may be meant.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

impl fmt::Display for UnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        self.hint
            .as_ref()
            .map_or(Ok(()), |hint| write!(f, "; {hint}"))
    }
}

impl std::error::Error for UnitError {}

fn fault<T>(text: String) -> Result<T, UnitError> {
    Err(UnitError { text, hint: None })
}

/// Reads a number and, after it, a unit: `10 ms`. A number alone has no dimension.
pub fn parse(text: &str) -> Result<Quantity, UnitError> {
    let (number, unit) = split(text)?;
    let unit = parse_unit(unit)?;
    let value_si = unit.in_si(number);
    if !value_si.is_finite() {
        return fault(format!("\"{}\" is too large", crate::yaml::shorten(text)));
    }
    Ok(Quantity {
        value_si,
        dimension: unit.dimension,
    })
}

/// Reads a number with an optional unit, and gives the number in `unit`. A number without a unit is
/// taken to be in `unit`.
/// A unit without a dimension, as in `90 deg` or `5 %`, is converted like other units, and fits no
/// duration.
pub fn parse_in(text: &str, unit: &str) -> Result<f64, UnitError> {
    let (number, own) = split(text)?;
    // The quantity must make sense, also where it is not converted.
    parse(text)?;
    match own {
        "" => Ok(number),
        own => convert(number, own, unit),
    }
}

/// Converts a number from one unit to another: `convert(1.5, "h", "min")?` is 90.
///
/// # Errors
/// Names an unknown unit, or the dimensions that differ.
pub fn convert(number: f64, unit: &str, wanted: &str) -> Result<f64, UnitError> {
    let own = parse_unit(unit)?;
    // A number in the wanted unit is not converted: the way to SI and back could change the last
    // digit.
    if unit.trim() == wanted.trim() {
        return Ok(number);
    }
    let quantity = Quantity {
        value_si: own.in_si(number),
        dimension: own.dimension,
    };
    quantity.in_unit(wanted)
}

/// Whether a text is a number without a unit.
pub fn is_plain(text: &str) -> bool {
    split(text).is_ok_and(|(_, unit)| unit.is_empty())
}

/// Whether `unit` is a known unit, or a product of known units.
/// # Errors
/// Names the unknown part.
pub fn check_unit(unit: &str) -> Result<(), UnitError> {
    parse_unit(unit).map(drop)
}

/// The number at the beginning, and the text of the unit, which may be empty.
fn split(text: &str) -> Result<(f64, &str), UnitError> {
    let text = text.trim();
    let end = number_end(text);
    let Ok(number) = text[..end].parse::<f64>() else {
        return fault(format!(
            "\"{}\" does not begin with a number",
            crate::yaml::shorten(text)
        ));
    };
    Ok((number, text[end..].trim_start()))
}

/// The end of the number at the beginning. An `e` with a digit or a sign behind it belongs to the
/// number, else to the unit.
fn number_end(text: &str) -> usize {
    let bytes = text.as_bytes();
    let digit = |i: usize| bytes.get(i).is_some_and(u8::is_ascii_digit);
    let mut end = usize::from(matches!(bytes.first(), Some(b'+' | b'-')));
    while digit(end) || bytes.get(end) == Some(&b'.') {
        end += 1;
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        if digit(end + 1 + sign) {
            end += 1 + sign;
            while digit(end) {
                end += 1;
            }
        }
    }
    end
}

/// One of a unit in SI. The factor is a ratio: 10 ms is 10 / 1000, the number nearest to 0.01.
struct Unit {
    times: f64,
    over: f64,
    dimension: Dimension,
}

impl Unit {
    fn in_si(&self, value: f64) -> f64 {
        value * self.times / self.over
    }

    fn of_si(&self, value: f64) -> f64 {
        value * self.over / self.times
    }
}

/// A product of units: `kg/m3`, `m^2 s^-1`, `W/(m2 K)` without parentheses: `W/m2/K`.
fn parse_unit(text: &str) -> Result<Unit, UnitError> {
    const LONGEST: usize = 64;
    if text.len() > LONGEST {
        return fault(format!("a unit may have {LONGEST} characters at most"));
    }
    let mut unit = Unit {
        times: 1.0,
        over: 1.0,
        dimension: Dimension::NONE,
    };
    let mut sign = 1i8;
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find([' ', '*', '·', '/']).unwrap_or(rest.len());
        if end > 0 {
            multiply(&mut unit, &rest[..end], sign)?;
            sign = 1;
        }
        let mut after = rest[end..].chars();
        if after.next() == Some('/') {
            // `/s` without a unit before the slash is a mistake.
            if sign < 0 || text.starts_with('/') {
                return fault(format!("\"{text}\" is not a unit"));
            }
            sign = -1;
        }
        rest = after.as_str();
    }
    if sign < 0 {
        return fault(format!("\"{text}\" ends with \"/\""));
    }
    Ok(unit)
}

fn multiply(unit: &mut Unit, word: &str, sign: i8) -> Result<(), UnitError> {
    if word == "1" {
        return Ok(());
    }
    let begins_power = |c: char| c.is_ascii_digit() || "^-+²³⁻¹".contains(c);
    let (name, power) = word.split_at(word.find(begins_power).unwrap_or(word.len()));
    let power = match power.trim_start_matches('^') {
        "" => sign,
        power => sign * power_of(power, word)?,
    };
    let (times, over, dimension) = units::find_unit(name)?;
    let Some(product) = unit.dimension.times(dimension, power) else {
        return fault("the powers of this unit are too high".into());
    };
    unit.dimension = product;
    let (times, over) = match power > 0 {
        true => (times, over),
        false => (over, times),
    };
    let n = i32::from(power.unsigned_abs());
    unit.times *= times.powi(n);
    unit.over *= over.powi(n);
    Ok(())
}

/// A power such as `2`, `-1` or `⁻¹`, of a part of a unit.
fn power_of(text: &str, word: &str) -> Result<i8, UnitError> {
    let digits = text.chars().map(|c| match c {
        '²' => '2',
        '³' => '3',
        '¹' => '1',
        '⁻' => '-',
        c => c,
    });
    match digits.collect::<String>().parse::<i8>() {
        Ok(power @ (-9..=-1 | 1..=9)) => Ok(power),
        _ => fault(format!(
            "\"{word}\" has no power that makes sense; write m2 or m^2"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::units::Prefix::Yes;
    use super::units::{PREFIXES, UNITS};
    use super::*;

    fn si(text: &str) -> f64 {
        parse(text)
            .unwrap_or_else(|e| panic!("{text}: {e}"))
            .value_si
    }

    #[test]
    fn durations_and_lengths_as_people_write_them() {
        for (text, seconds) in [
            ("1 hour", 3600.0),
            ("10 ms", 0.01),
            ("3 days", 259_200.0),
            ("0.1s", 0.1),
            ("1e-3 s", 0.001),
            ("5 µs", 5e-6),
            ("2 us", 2e-6),
            ("90 min", 5400.0),
            ("1.5 weeks", 907_200.0),
            ("20 nanoseconds", 2e-8),
            ("3 msec", 0.003),
            ("2 wk", 1_209_600.0),
            ("1 y", 31_557_600.0),
            ("2 yrs", 63_115_200.0),
            ("1 ka", 31_557_600e3),
            ("1 My", 31_557_600e6),
            ("1 century", 31_557_600e2),
        ] {
            assert_eq!(
                (si(text), parse(text).unwrap().dimension),
                (seconds, Dimension::TIME),
                "{text}"
            );
        }
        for (text, metres) in [
            ("2.5 km", 2500.0),
            ("10 um", 1e-5),
            ("3 mm", 0.003),
            ("1 ft", 0.3048),
            ("7 m", 7.0),
            ("1 in", 0.0254),
            ("1 mi", 1609.344),
            ("2 yd", 1.8288),
            ("1 Ångström", 1e-10),
            ("3 micrometers", 3e-6),
            ("2 nautical_miles", 3704.0),
        ] {
            assert_eq!(
                (si(text), parse(text).unwrap().dimension),
                (metres, Dimension::LENGTH),
                "{text}"
            );
        }
    }

    #[test]
    fn products_and_powers() {
        assert_eq!(si("1e-6 m2/s"), 1e-6);
        assert_eq!(si("1 g/cm^3"), 1000.0);
        assert_eq!(si("2 kg m^-3"), 2.0);
        assert_eq!(si("36 km/h"), 10.0);
        assert_eq!(
            parse("3 W/m2/K").unwrap().dimension,
            parse("3 kg s-3 K-1").unwrap().dimension
        );
        assert_eq!(
            parse("1 1/s").unwrap().dimension,
            parse("1 Hz").unwrap().dimension
        );
    }

    #[test]
    fn a_number_alone_has_no_dimension() {
        assert_eq!(
            parse("42").unwrap(),
            Quantity {
                value_si: 42.0,
                dimension: Dimension::NONE
            }
        );
        assert_eq!(parse("-1.5e3").unwrap().value_si, -1500.0);
    }

    #[test]
    fn a_name_means_one_unit() {
        let names: Vec<&str> = UNITS.iter().flat_map(|row| row.0.iter().copied()).collect();
        let distinct: std::collections::HashSet<&str> = names.iter().copied().collect();
        assert_eq!(names.len(), distinct.len());
        // A unit's name goes before the same text as a prefix and another unit. Only this text is
        // ambiguous.
        let also = names.iter().filter(|name| {
            let prefixes = PREFIXES.iter().flat_map(|(prefixes, ..)| *prefixes);
            let mut rests = prefixes.filter_map(|prefix| name.strip_prefix(prefix));
            rests.any(|rest| {
                UNITS
                    .iter()
                    .any(|row| row.4 == Yes && row.0.contains(&rest))
            })
        });
        assert_eq!(also.copied().collect::<Vec<_>>(), ["ft"]);
    }

    /// Holds `units.csv` to the tables; `tests/python/test_units.py` compares the conversions of the
    /// units in that file with Pint.
    #[test]
    fn all_units_stand_in_the_table_that_is_compared_with_pint() {
        let rows = include_str!("../../../tests/python/units.csv")
            .lines()
            .skip(1);
        let compared: Vec<_> = rows
            .map(|row| row.splitn(3, ',').take(2).collect::<Vec<_>>().join(","))
            .collect();
        let kind = |prefix| {
            if prefix == Yes {
                "with prefixes"
            } else {
                "alone"
            }
        };
        let units = UNITS
            .iter()
            .map(|row| format!("{},{}", row.0.join(" "), kind(row.4)));
        let prefixes = PREFIXES
            .iter()
            .map(|row| format!("{},prefix", row.0.join(" ")));
        let known: Vec<_> = units.chain(prefixes).collect();
        assert_eq!(compared, known);
    }

    #[test]
    fn reading_in_a_unit() {
        let hour = parse("90 min").unwrap();
        assert_eq!(hour.in_unit("h"), Ok(1.5));
        assert_eq!(parse("10 ms").unwrap().in_unit("s"), Ok(0.01));
        assert_eq!(parse("0.25 s").unwrap().in_unit("ms"), Ok(250.0));
        assert!(
            hour.in_unit("km")
                .unwrap_err()
                .to_string()
                .contains("a duration")
        );
        assert!(
            hour.in_unit("")
                .unwrap_err()
                .to_string()
                .contains("a number without dimension")
        );
    }

    #[test]
    fn units_without_a_dimension_are_units() {
        for (text, unit, value) in [
            ("90 deg", "deg", 90.0),
            ("90 deg", "rad", std::f64::consts::FRAC_PI_2),
            ("180 °", "deg", 180.0),
            ("5 %", "%", 5.0),
            ("5%", "percent", 5.0),
            ("5 %", "", 0.05),
            ("5 %", "1", 0.05),
            ("0.5 rad", "mrad", 500.0),
            ("1 km/m", "", 1000.0),
            // A number alone is in any unit.
            ("0.07", "%", 0.07),
            ("0.07", "km", 0.07),
        ] {
            assert_eq!(parse_in(text, unit), Ok(value), "{text} in {unit}");
        }
        for (text, unit) in [
            ("90 deg", "s"),
            ("5 %", "km"),
            ("1 km/m", "m"),
            ("10 s", "%"),
            ("1 1", "s"),
        ] {
            let error = parse_in(text, unit).unwrap_err().to_string();
            assert!(
                error.contains("a number without dimension"),
                "{text} in {unit}: {error}"
            );
        }
        assert!(
            parse_in("20 degC", "degC")
                .unwrap_err()
                .to_string()
                .contains("offset")
        );
        assert!(
            parse_in("1e300 m", "fm")
                .unwrap_err()
                .to_string()
                .contains("too large")
        );
    }

    #[test]
    fn what_is_no_quantity_says_why() {
        for (text, why) in [
            ("", "does not begin"),
            ("ms", "does not begin"),
            ("10 mss", "not a unit"),
            ("10 secnds", "did you mean"),
            ("20 degC", "offset"),
            ("2 months", "in days"),
            ("1 m/", "ends with"),
            ("1 /s", "not a unit"),
            ("1 m^99", "power"),
            ("1 m9 m9 m9 m9 m9 m9 m9 m9 m9 m9 m9 m9 m9 m9 m9", "too high"),
            ("1e400 s", "too large"),
            ("1e308 Gyr", "too large"),
            ("1..2 s", "does not begin"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
