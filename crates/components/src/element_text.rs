//! The elements of arrays as text, for text files.

use titin_runtime::structure::Value as Tree;
use titin_runtime::{Dtype, ElementKind, ElementValue};

/// Why a text is no number, or a number no element of an array.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum NumberError {
    #[error("'{0}' is beyond what a real number can hold; write inf if that is meant")]
    BeyondReal(String),
    #[error(
        "the whole number {0} does not fit in 64 bits; write it with a point or an exponent if a real one is meant"
    )]
    BeyondWhole(String),
    #[error("{number} does not fit an element of type {}", dtype.name())]
    BeyondElement { number: String, dtype: Dtype },
    #[error("{0} is neither 0 nor 1, as a bool is")]
    NoBool(String),
}

/// The number in a value; `None` if the value is no number.
pub(crate) fn of<B>(value: &Tree<B>) -> Option<ElementValue> {
    match value {
        Tree::Int(number) => Some(ElementValue::Whole((*number).into())),
        Tree::UInt(number) => Some(ElementValue::Whole((*number).into())),
        Tree::Float(number) => Some(ElementValue::Real(*number)),
        Tree::Float32(number) => Some(ElementValue::Real((*number).into())),
        _ => None,
    }
}

/// Parses a number: a whole number if the text has neither a point nor an exponent, else a real
/// number. `None` if the text is no number.
///
/// # Errors
/// The number does not fit in 64 bits.
pub(crate) fn parse(text: &str) -> Result<Option<ElementValue>, NumberError> {
    if let Some(whole) = whole(text) {
        return Ok(Some(ElementValue::Whole(whole)));
    }
    check_whole(text)?;
    let real = text.parse::<f64>().ok();
    if real.is_some_and(f64::is_infinite) && text.contains(|c: char| c.is_ascii_digit()) {
        return Err(NumberError::BeyondReal(text.to_owned()));
    }
    Ok(real.map(ElementValue::Real))
}

/// Parses a whole number of 64 bits, with or without a sign.
fn whole(text: &str) -> Option<i128> {
    let signed = text.parse::<i64>().map(i128::from);
    signed.or_else(|_| text.parse::<u64>().map(i128::from)).ok()
}

/// A real or whole number as a real number.
pub(crate) fn as_f64(number: ElementValue) -> f64 {
    match number {
        ElementValue::Bool(flag) => f64::from(flag),
        ElementValue::Whole(number) => number as f64,
        ElementValue::Real(number) | ElementValue::Complex(number, _) => number,
    }
}

/// Appends the number as an element of an array, or as a part of a complex element.
///
/// # Errors
/// The element type cannot hold the number.
pub(crate) fn push(
    number: ElementValue,
    dtype: Dtype,
    elements: &mut Vec<u8>,
) -> Result<(), NumberError> {
    // A text file may write a whole number with a point, and true and false as 1 and 0.
    let wanted = match (dtype.kind(), number) {
        (ElementKind::Bool, _) => match as_f64(number) {
            0.0 => ElementValue::Bool(false),
            1.0 => ElementValue::Bool(true),
            _ => return Err(NumberError::NoBool(show(number))),
        },
        (ElementKind::Signed | ElementKind::Unsigned, ElementValue::Real(real))
            if real.fract() == 0.0 =>
        {
            ElementValue::Whole(real as i128)
        }
        _ => number,
    };
    let component = dtype.component();
    let start = elements.len();
    elements.resize(start + component.size(), 0);
    component
        .write(wanted, &mut elements[start..])
        .ok_or_else(|| {
            elements.truncate(start);
            NumberError::BeyondElement {
                number: show(number),
                dtype,
            }
        })
}

/// The number as text. Parsing the text gives the same bits.
pub(crate) fn show(number: ElementValue) -> String {
    match number {
        ElementValue::Bool(flag) => u8::from(flag).to_string(),
        ElementValue::Real(real) => real_text(real),
        _ => number.to_string(),
    }
}

/// Refuses whole numbers beyond 64 bits. Parsers read such numbers as the nearest real number.
///
/// # Errors
/// The text is such a number.
pub(crate) fn check_whole(text: &str) -> Result<(), NumberError> {
    let digits = text.trim_start_matches(['+', '-']);
    let is_whole = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if is_whole && text.parse::<i64>().is_err() && text.parse::<u64>().is_err() {
        return Err(NumberError::BeyondWhole(text.to_owned()));
    }
    Ok(())
}

/// The elements of an array. True and false are 1 and 0. Complex elements give two numbers each.
pub(crate) fn read(dtype: Dtype, elements: &[u8]) -> impl Iterator<Item = ElementValue> {
    let dtype = dtype.component();
    elements
        .chunks_exact(dtype.size())
        .map(move |bytes| match dtype.read(bytes) {
            ElementValue::Bool(flag) => ElementValue::Whole(flag.into()),
            ElementValue::Real(real) if dtype == Dtype::Float32 => {
                ElementValue::Real(widened(real as f32))
            }
            number => number,
        })
}

/// The 64-bit number with the shortest decimal text that still rounds to `single`: 0.1 and not
/// 0.10000000149011612.
fn widened(single: f32) -> f64 {
    let shortest = single.to_string().parse().ok();
    // Rounding to 64 bits and then to 32 may in rare cases give a neighbour.
    shortest
        .filter(|shortest: &f64| *shortest as f32 == single)
        .unwrap_or(f64::from(single))
}

/// A real number as text. Parsing the text gives the same bits.
pub(crate) fn real_text(number: f64) -> String {
    if number.is_nan() {
        "nan".to_owned()
    } else {
        format!("{number:?}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_whole_where_they_are_written_so() {
        let parsed = |text| parse(text).unwrap();
        assert_eq!(parsed("3"), Some(ElementValue::Whole(3)));
        assert_eq!(
            parsed("18446744073709551615"),
            Some(ElementValue::Whole(u64::MAX.into()))
        );
        assert_eq!(parsed("3.0"), Some(ElementValue::Real(3.0)));
        assert_eq!(parsed("1e3"), Some(ElementValue::Real(1000.0)));
        assert_eq!(parsed("-inf"), Some(ElementValue::Real(f64::NEG_INFINITY)));
        assert_eq!(parsed("x"), None);
        assert!(
            parse("-1e999")
                .unwrap_err()
                .to_string()
                .starts_with("'-1e999' is beyond")
        );
        for beyond in ["99999999999999999999", "-9223372036854775809"] {
            let why = parse(beyond).unwrap_err().to_string();
            assert!(
                why.starts_with(&format!(
                    "the whole number {beyond} does not fit in 64 bits"
                )),
                "{why}"
            );
        }
        assert_eq!(
            parsed("99999999999999999999.0"),
            Some(ElementValue::Real(1e20))
        );
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let mut elements = Vec::new();
        assert!(
            push(ElementValue::Whole(300), Dtype::UInt8, &mut elements)
                .unwrap_err()
                .to_string()
                .contains("300")
        );
        assert!(
            push(ElementValue::Real(0.5), Dtype::Int32, &mut elements)
                .unwrap_err()
                .to_string()
                .contains("0.5")
        );
        assert!(
            push(ElementValue::Whole(2), Dtype::Bool, &mut elements)
                .unwrap_err()
                .to_string()
                .contains("2")
        );
        assert!(elements.is_empty());
        push(ElementValue::Real(4.0), Dtype::Int16, &mut elements).unwrap();
        assert_eq!(elements, [4, 0]);
    }

    #[test]
    fn what_would_become_infinite_is_refused() {
        let mut elements = Vec::new();
        for dtype in [Dtype::Float16, Dtype::Float32, Dtype::Complex64] {
            let why = push(ElementValue::Real(-1e300), dtype, &mut elements)
                .unwrap_err()
                .to_string();
            assert_eq!(
                why,
                format!("-1e300 does not fit an element of type {}", dtype.name())
            );
        }
        assert!(push(ElementValue::Whole(70_000), Dtype::Float16, &mut elements).is_err());
        assert!(elements.is_empty());
        push(
            ElementValue::Real(f64::from(f32::MAX)),
            Dtype::Float32,
            &mut elements,
        )
        .unwrap();
        push(
            ElementValue::Real(f64::INFINITY),
            Dtype::Float32,
            &mut elements,
        )
        .unwrap();
        push(ElementValue::Real(f64::NAN), Dtype::Float16, &mut elements).unwrap();
        assert_eq!(elements[4..8], f32::INFINITY.to_le_bytes());
    }

    #[test]
    fn narrow_numbers_keep_their_bits_and_their_looks() {
        let elements = 0.1f32.to_le_bytes();
        let number = read(Dtype::Float32, &elements).next().unwrap();
        assert_eq!(show(number), "0.1");
        let mut back = Vec::new();
        push(number, Dtype::Float32, &mut back).unwrap();
        assert_eq!(back, elements);
    }
}
