//! The type of a scalar, by the rules of the `ymmsl` package.

use super::ScalarType;

pub(super) fn scalar_type(text: &str, plain: bool, tag: Option<&str>) -> ScalarType {
    match tag {
        Some("str") => return ScalarType::Text,
        Some("int" | "float" | "bool" | "null") => {}
        _ if !plain => return ScalarType::Text,
        _ => {}
    }
    let of = plain_type(text);
    match (tag, of) {
        (Some("float"), ScalarType::Int(i)) => ScalarType::Float(i as f64),
        _ => of,
    }
}

pub(crate) fn plain_type(text: &str) -> ScalarType {
    if let Some(of) = constant(text) {
        return of;
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return ScalarType::Text;
    }
    whole_number(text, unsigned).unwrap_or_else(|| float(&text.replace('_', "")))
}

/// The type of a text that stands for nothing, a truth value, or no finite number.
fn constant(text: &str) -> Option<ScalarType> {
    Some(match text {
        "" | "~" | "null" | "Null" | "NULL" => ScalarType::Null,
        "true" | "True" | "TRUE" => ScalarType::Bool(true),
        "false" | "False" | "FALSE" => ScalarType::Bool(false),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => ScalarType::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => ScalarType::Float(f64::NEG_INFINITY),
        ".nan" | ".NaN" | ".NAN" => ScalarType::Float(f64::NAN),
        _ => return None,
    })
}

fn float(text: &str) -> ScalarType {
    let fits = |b: u8| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-');
    let is_float = text.bytes().all(fits) && text.bytes().any(|b| b.is_ascii_digit());
    match text.parse() {
        Ok(value) if is_float && f64::is_infinite(value) => ScalarType::OddNumber,
        Ok(value) if is_float => ScalarType::Float(value),
        _ => ScalarType::Text,
    }
}

fn whole_number(text: &str, unsigned: &str) -> Option<ScalarType> {
    let digits: String = unsigned.chars().filter(|c| *c != '_').collect();
    let (radix, digits) = match digits.get(..2) {
        Some("0x") => (16, &digits[2..]),
        Some("0b") => (2, &digits[2..]),
        _ => (10, digits.as_str()),
    };
    if radix == 10 && digits.contains(':') {
        return is_clock_time(digits).then_some(ScalarType::OddNumber);
    }
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return None;
    }
    if radix == 10 && digits.len() > 1 && digits.starts_with('0') {
        return Some(ScalarType::OddNumber);
    }
    let value = i128::from_str_radix(digits, radix).ok();
    let value = value.map(|value| if text.starts_with('-') { -value } else { value });
    let value = value.and_then(|value| i64::try_from(value).ok());
    Some(value.map_or(ScalarType::OddNumber, ScalarType::Int))
}

/// Whether a text is like `12:30`, which other readers of YAML take for a number.
fn is_clock_time(text: &str) -> bool {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    text.split(':').all(is_number)
}
