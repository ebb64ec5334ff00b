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
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return ScalarType::Null,
        "true" | "True" | "TRUE" => return ScalarType::Bool(true),
        "false" | "False" | "FALSE" => return ScalarType::Bool(false),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => {
            return ScalarType::Float(f64::INFINITY);
        }
        "-.inf" | "-.Inf" | "-.INF" => return ScalarType::Float(f64::NEG_INFINITY),
        ".nan" | ".NaN" | ".NAN" => return ScalarType::Float(f64::NAN),
        _ => {}
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return ScalarType::Text;
    }
    if let Some(of) = whole_number(text, unsigned) {
        return of;
    }
    let digits = text.replace('_', "");
    let is_float = digits
        .bytes()
        .all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-'))
        && digits.bytes().any(|b| b.is_ascii_digit());
    match digits.parse() {
        Ok(value) if is_float && f64::is_infinite(value) => ScalarType::OddNumber,
        Ok(value) if is_float => ScalarType::Float(value),
        _ => ScalarType::Text,
    }
}

fn whole_number(text: &str, unsigned: &str) -> Option<ScalarType> {
    let negative = text.starts_with('-');
    let digits: String = unsigned.chars().filter(|c| *c != '_').collect();
    let (radix, digits) = match digits.get(..2) {
        Some("0x") => (16, &digits[2..]),
        Some("0b") => (2, &digits[2..]),
        _ => (10, digits.as_str()),
    };
    if radix == 10 && digits.contains(':') {
        let clock = digits
            .split(':')
            .all(|p| !p.is_empty() && p.bytes().all(|b| b.is_ascii_digit()));
        return clock.then_some(ScalarType::OddNumber);
    }
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return None;
    }
    if radix == 10 && digits.len() > 1 && digits.starts_with('0') {
        return Some(ScalarType::OddNumber);
    }
    let value = i128::from_str_radix(digits, radix)
        .ok()
        .map(|v| if negative { -v } else { v });
    Some(
        value
            .and_then(|v| i64::try_from(v).ok())
            .map_or(ScalarType::OddNumber, ScalarType::Int),
    )
}
