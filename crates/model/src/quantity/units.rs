//! The known units and prefixes.

use super::{Dimension, UnitError};
use crate::problem::nearest;

pub(super) fn find_unit(name: &str) -> Result<(f64, f64, Dimension), UnitError> {
    let exact = |name: &str| UNITS.iter().find(|row| row.0.contains(&name));
    if let Some((_, times, over, dimension, _)) = exact(name) {
        return Ok((*times, *over, Dimension(*dimension)));
    }
    for (prefixes, times, over) in PREFIXES {
        for prefix in *prefixes {
            let Some((_, t, o, dimension, Yes)) = name.strip_prefix(prefix).and_then(exact) else {
                continue;
            };
            return Ok((t * times, o * over, Dimension(*dimension)));
        }
    }
    Err(unknown(name))
}

fn unknown(name: &str) -> UnitError {
    let known = UNITS.iter().flat_map(|row| row.0.iter().copied());
    let near = nearest(name, known.filter(|known| known.len() > 1));
    let hint = near.map(|near| format!("did you mean \"{near}\"?"));
    let why = match name {
        "°C" | "degC" | "C°" | "°F" | "degF" => {
            "has an offset and cannot be converted by a factor; give the temperature in K"
        }
        "month" | "months" | "mon" | "mo" => "has no fixed length; give the time in days",
        _ => "is not a unit that titin knows",
    };
    let text = format!("\"{name}\" {why}");
    UnitError { text, hint }
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Prefix {
    Yes,
    No,
}

use Prefix::{No, Yes};

pub(super) type Row = (&'static [&'static str], f64, f64, [i8; 7], Prefix);

/// Names, factor to SI as a ratio, dimension, and whether prefixes are allowed.
pub(super) const UNITS: &[Row] = &[
    // Time. `M` is mega, so a minute is never `m`. A year is the Julian year, as in astronomy and
    // CF.
    (
        &["s", "sec", "secs", "second", "seconds"],
        1.0,
        1.0,
        [0, 0, 1, 0, 0, 0, 0],
        Yes,
    ),
    (
        &["min", "mins", "minute", "minutes"],
        60.0,
        1.0,
        [0, 0, 1, 0, 0, 0, 0],
        No,
    ),
    (
        &["h", "hr", "hrs", "hour", "hours"],
        3600.0,
        1.0,
        [0, 0, 1, 0, 0, 0, 0],
        No,
    ),
    (
        &["d", "day", "days"],
        86_400.0,
        1.0,
        [0, 0, 1, 0, 0, 0, 0],
        No,
    ),
    (
        &["week", "weeks", "wk", "wks"],
        604_800.0,
        1.0,
        [0, 0, 1, 0, 0, 0, 0],
        No,
    ),
    (
        &[
            "yr",
            "yrs",
            "year",
            "years",
            "y",
            "a",
            "julian_year",
            "julian_years",
        ],
        31_557_600.0,
        1.0,
        [0, 0, 1, 0, 0, 0, 0],
        No,
    ),
    (
        &["decade", "decades"],
        31_557_600e1,
        1.0,
        [0, 0, 1, 0, 0, 0, 0],
        No,
    ),
    (
        &["century", "centuries"],
        31_557_600e2,
        1.0,
        [0, 0, 1, 0, 0, 0, 0],
        No,
    ),
    // No prefixes: `ha` is a hectare, and `Pa` a pascal.
    (
        &["kyr", "ky", "ka", "millennium", "millennia"],
        31_557_600e3,
        1.0,
        [0, 0, 1, 0, 0, 0, 0],
        No,
    ),
    (
        &["Myr", "My", "Ma"],
        31_557_600e6,
        1.0,
        [0, 0, 1, 0, 0, 0, 0],
        No,
    ),
    (
        &["Gyr", "Gy", "Ga"],
        31_557_600e9,
        1.0,
        [0, 0, 1, 0, 0, 0, 0],
        No,
    ),
    // Length.
    (
        &["m", "meter", "meters", "metre", "metres"],
        1.0,
        1.0,
        [1, 0, 0, 0, 0, 0, 0],
        Yes,
    ),
    (&["micron", "microns"], 1.0, 1e6, [1, 0, 0, 0, 0, 0, 0], No),
    (
        &[
            "angstrom",
            "angstroms",
            "Angstrom",
            "Å",
            "ångström",
            "Ångström",
        ],
        1.0,
        1e10,
        [1, 0, 0, 0, 0, 0, 0],
        No,
    ),
    (
        &["au", "AU", "astronomical_unit", "astronomical_units"],
        149_597_870_700.0,
        1.0,
        [1, 0, 0, 0, 0, 0, 0],
        No,
    ),
    (
        &["pc", "parsec", "parsecs"],
        3.085_677_581_491_367e16,
        1.0,
        [1, 0, 0, 0, 0, 0, 0],
        Yes,
    ),
    (
        &["ly", "lightyear", "lightyears", "light_year", "light_years"],
        9_460_730_472_580_800.0,
        1.0,
        [1, 0, 0, 0, 0, 0, 0],
        No,
    ),
    (
        &["inch", "inches", "in"],
        254.0,
        1e4,
        [1, 0, 0, 0, 0, 0, 0],
        No,
    ),
    (
        &["ft", "foot", "feet"],
        3048.0,
        1e4,
        [1, 0, 0, 0, 0, 0, 0],
        No,
    ),
    (
        &["yd", "yard", "yards"],
        9144.0,
        1e4,
        [1, 0, 0, 0, 0, 0, 0],
        No,
    ),
    (
        &["fathom", "fathoms"],
        18_288.0,
        1e4,
        [1, 0, 0, 0, 0, 0, 0],
        No,
    ),
    (
        &["mile", "miles", "mi"],
        1_609_344.0,
        1e3,
        [1, 0, 0, 0, 0, 0, 0],
        No,
    ),
    (
        &["nmi", "nautical_mile", "nautical_miles"],
        1852.0,
        1.0,
        [1, 0, 0, 0, 0, 0, 0],
        No,
    ),
    // Area, volume, speed.
    (
        &["ha", "hectare", "hectares"],
        1e4,
        1.0,
        [2, 0, 0, 0, 0, 0, 0],
        No,
    ),
    (
        &["L", "l", "liter", "liters", "litre", "litres"],
        1.0,
        1e3,
        [3, 0, 0, 0, 0, 0, 0],
        Yes,
    ),
    (
        &["kn", "knot", "knots"],
        1852.0,
        3600.0,
        [1, 0, -1, 0, 0, 0, 0],
        No,
    ),
    // Mass, current, temperature, amount, light.
    (
        &["g", "gram", "grams"],
        1.0,
        1e3,
        [0, 1, 0, 0, 0, 0, 0],
        Yes,
    ),
    (
        &["t", "tonne", "tonnes"],
        1e3,
        1.0,
        [0, 1, 0, 0, 0, 0, 0],
        Yes,
    ),
    (
        &["A", "ampere", "amperes"],
        1.0,
        1.0,
        [0, 0, 0, 1, 0, 0, 0],
        Yes,
    ),
    (&["K", "kelvin"], 1.0, 1.0, [0, 0, 0, 0, 1, 0, 0], Yes),
    (
        &["mol", "mole", "moles"],
        1.0,
        1.0,
        [0, 0, 0, 0, 0, 1, 0],
        Yes,
    ),
    (&["cd"], 1.0, 1.0, [0, 0, 0, 0, 0, 0, 1], Yes),
    // Derived.
    (&["Hz", "hertz"], 1.0, 1.0, [0, 0, -1, 0, 0, 0, 0], Yes),
    (
        &["N", "newton", "newtons"],
        1.0,
        1.0,
        [1, 1, -2, 0, 0, 0, 0],
        Yes,
    ),
    (
        &["Pa", "pascal", "pascals"],
        1.0,
        1.0,
        [-1, 1, -2, 0, 0, 0, 0],
        Yes,
    ),
    (&["bar", "bars"], 1e5, 1.0, [-1, 1, -2, 0, 0, 0, 0], Yes),
    (&["atm"], 101_325.0, 1.0, [-1, 1, -2, 0, 0, 0, 0], No),
    (&["mmHg"], 133.322_387_415, 1.0, [-1, 1, -2, 0, 0, 0, 0], No),
    (
        &["J", "joule", "joules"],
        1.0,
        1.0,
        [2, 1, -2, 0, 0, 0, 0],
        Yes,
    ),
    (&["eV"], 1.602_176_634e-19, 1.0, [2, 1, -2, 0, 0, 0, 0], Yes),
    (&["cal"], 4184.0, 1e3, [2, 1, -2, 0, 0, 0, 0], Yes),
    (
        &["W", "watt", "watts"],
        1.0,
        1.0,
        [2, 1, -3, 0, 0, 0, 0],
        Yes,
    ),
    (&["C", "coulomb"], 1.0, 1.0, [0, 0, 1, 1, 0, 0, 0], Yes),
    (
        &["V", "volt", "volts"],
        1.0,
        1.0,
        [2, 1, -3, -1, 0, 0, 0],
        Yes,
    ),
    (&["ohm", "Ω"], 1.0, 1.0, [2, 1, -3, -2, 0, 0, 0], Yes),
    (&["T", "tesla"], 1.0, 1.0, [0, 1, -2, -1, 0, 0, 0], Yes),
    // Without a dimension.
    (&["rad"], 1.0, 1.0, [0; 7], Yes),
    (
        &["deg", "degree", "degrees", "°"],
        std::f64::consts::PI,
        180.0,
        [0; 7],
        No,
    ),
    (&["%", "percent"], 1.0, 100.0, [0; 7], No),
];

/// Names and factor as a ratio. The long names come first: `milli` before `m`.
pub(super) const PREFIXES: &[(&[&str], f64, f64)] = &[
    (&["femto", "f"], 1.0, 1e15),
    (&["pico", "p"], 1.0, 1e12),
    (&["nano", "n"], 1.0, 1e9),
    (&["micro", "µ", "μ", "u"], 1.0, 1e6),
    (&["milli", "m"], 1.0, 1e3),
    (&["centi", "c"], 1.0, 1e2),
    (&["deci", "d"], 1.0, 1e1),
    (&["hecto", "h"], 1e2, 1.0),
    (&["kilo", "k"], 1e3, 1.0),
    (&["mega", "M"], 1e6, 1.0),
    (&["giga", "G"], 1e9, 1.0),
    (&["tera", "T"], 1e12, 1.0),
];
