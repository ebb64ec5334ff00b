//! The elements of arrays as numbers, for text files.

use half::f16;
use titin_runtime::Dtype;
use titin_runtime::structure::Value as Tree;

/// A number of any type.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum AnyNumber {
    Int(i64),
    UInt(u64),
    Float(f64),
}

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

impl AnyNumber {
    /// The number in a value; `None` if the value is no number.
    pub(crate) fn of<B>(value: &Tree<B>) -> Option<AnyNumber> {
        match value {
            Tree::Int(number) => Some(AnyNumber::Int(*number)),
            Tree::UInt(number) => Some(AnyNumber::UInt(*number)),
            Tree::Float(number) => Some(AnyNumber::Float(*number)),
            _ => None,
        }
    }

    /// Parses a number: a whole number if the text has neither a point nor an exponent, else a real
    /// one. `None` if the text is no number.
    ///
    /// # Errors
    /// The number does not fit in 64 bits.
    pub(crate) fn parse(text: &str) -> Result<Option<AnyNumber>, NumberError> {
        if let Ok(number) = text.parse() {
            return Ok(Some(AnyNumber::Int(number)));
        }
        if let Ok(number) = text.parse() {
            return Ok(Some(AnyNumber::UInt(number)));
        }
        check_whole(text)?;
        let real = text.parse::<f64>().ok();
        if real.is_some_and(f64::is_infinite) && text.contains(|c: char| c.is_ascii_digit()) {
            return Err(NumberError::BeyondReal(text.to_owned()));
        }
        Ok(real.map(AnyNumber::Float))
    }

    pub(crate) fn as_f64(self) -> f64 {
        match self {
            AnyNumber::Int(number) => number as f64,
            AnyNumber::UInt(number) => number as f64,
            AnyNumber::Float(number) => number,
        }
    }

    /// The number as a whole number; `None` if the number has a fraction, or is far too large for
    /// any element type.
    fn as_whole(self) -> Option<i128> {
        match self {
            AnyNumber::Int(number) => Some(number.into()),
            AnyNumber::UInt(number) => Some(number.into()),
            AnyNumber::Float(number) => {
                (number.fract() == 0.0 && number.abs() < 1e30).then_some(number as i128)
            }
        }
    }

    /// Appends the number as an element of an array. Of a complex element the number is the real or
    /// the imaginary part.
    ///
    /// # Errors
    /// The element type cannot hold the number.
    pub(crate) fn push(self, dtype: Dtype, elements: &mut Vec<u8>) -> Result<(), NumberError> {
        let beyond = || NumberError::BeyondElement {
            number: self.to_text(),
            dtype,
        };
        let real = self.as_f64();
        match dtype {
            Dtype::Bool => match self.as_whole() {
                Some(flag @ (0 | 1)) => elements.push(flag as u8),
                _ => return Err(NumberError::NoBool(self.to_text())),
            },
            Dtype::Float16 => {
                let half = f16::from_f64(real);
                if real.is_finite() && !half.is_finite() {
                    return Err(beyond());
                }
                elements.extend_from_slice(&half.to_le_bytes());
            }
            Dtype::Float32 | Dtype::Complex64 => {
                let single = real as f32;
                if real.is_finite() && !single.is_finite() {
                    return Err(beyond());
                }
                elements.extend_from_slice(&single.to_le_bytes());
            }
            Dtype::Float64 | Dtype::Complex128 => elements.extend_from_slice(&real.to_le_bytes()),
            _ => {
                let whole = self.as_whole().and_then(|whole| dtype.whole(whole));
                elements.extend_from_slice(&whole.ok_or_else(beyond)?[..dtype.size()]);
            }
        }
        Ok(())
    }

    /// The number as text that parses to the same bits.
    pub(crate) fn to_text(self) -> String {
        match self {
            AnyNumber::Int(number) => number.to_string(),
            AnyNumber::UInt(number) => number.to_string(),
            AnyNumber::Float(number) => real_text(number),
        }
    }
}

/// Refuses whole numbers that do not fit in 64 bits. Parsers read them as the nearest real number.
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

/// The elements of an array. Complex elements give two numbers each.
pub(crate) fn read(dtype: Dtype, elements: &[u8]) -> impl Iterator<Item = AnyNumber> {
    let size = if is_complex(dtype) {
        dtype.size() / 2
    } else {
        dtype.size()
    };
    let chunks = elements.chunks_exact(size);
    chunks.map(move |bytes| AnyNumber::from_element(dtype, bytes))
}

impl AnyNumber {
    /// The number in the bytes of an element, or of one part of a complex element.
    fn from_element(dtype: Dtype, bytes: &[u8]) -> AnyNumber {
        macro_rules! read_as {
            ($type:ty) => {
                <$type>::from_le_bytes(bytes.try_into().expect("chunks of this size"))
            };
        }
        match dtype {
            Dtype::Bool | Dtype::UInt8 => AnyNumber::Int(read_as!(u8).into()),
            Dtype::Int8 => AnyNumber::Int(read_as!(i8).into()),
            Dtype::Int16 => AnyNumber::Int(read_as!(i16).into()),
            Dtype::Int32 => AnyNumber::Int(read_as!(i32).into()),
            Dtype::Int64 => AnyNumber::Int(read_as!(i64)),
            Dtype::UInt16 => AnyNumber::Int(read_as!(u16).into()),
            Dtype::UInt32 => AnyNumber::Int(read_as!(u32).into()),
            Dtype::UInt64 => AnyNumber::UInt(read_as!(u64)),
            Dtype::Float16 => AnyNumber::Float(read_as!(f16).to_f64()),
            Dtype::Float32 | Dtype::Complex64 => AnyNumber::Float(widened(read_as!(f32))),
            Dtype::Float64 | Dtype::Complex128 => AnyNumber::Float(read_as!(f64)),
        }
    }
}

/// The 64-bit number with the shortest decimal text that still rounds to this 32-bit number: 0.1
/// and not 0.10000000149011612.
fn widened(single: f32) -> f64 {
    let shortest = single.to_string().parse().ok();
    // Rounding to 64 bits and then to 32 may in rare cases give a neighbour.
    shortest
        .filter(|shortest: &f64| *shortest as f32 == single)
        .unwrap_or(f64::from(single))
}

pub(crate) fn is_complex(dtype: Dtype) -> bool {
    matches!(dtype, Dtype::Complex64 | Dtype::Complex128)
}

/// A real number as text that parses to the same bits.
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
        let parse = |text| AnyNumber::parse(text).unwrap();
        assert_eq!(parse("3"), Some(AnyNumber::Int(3)));
        assert_eq!(
            parse("18446744073709551615"),
            Some(AnyNumber::UInt(u64::MAX))
        );
        assert_eq!(parse("3.0"), Some(AnyNumber::Float(3.0)));
        assert_eq!(parse("1e3"), Some(AnyNumber::Float(1000.0)));
        assert_eq!(parse("-inf"), Some(AnyNumber::Float(f64::NEG_INFINITY)));
        assert_eq!(parse("x"), None);
        assert!(
            AnyNumber::parse("-1e999")
                .unwrap_err()
                .to_string()
                .starts_with("'-1e999' is beyond")
        );
        for beyond in ["99999999999999999999", "-9223372036854775809"] {
            let why = AnyNumber::parse(beyond).unwrap_err().to_string();
            assert!(
                why.starts_with(&format!(
                    "the whole number {beyond} does not fit in 64 bits"
                )),
                "{why}"
            );
        }
        assert_eq!(
            parse("99999999999999999999.0"),
            Some(AnyNumber::Float(1e20))
        );
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let mut elements = Vec::new();
        assert!(
            AnyNumber::Int(300)
                .push(Dtype::UInt8, &mut elements)
                .unwrap_err()
                .to_string()
                .contains("300")
        );
        assert!(
            AnyNumber::Float(0.5)
                .push(Dtype::Int32, &mut elements)
                .unwrap_err()
                .to_string()
                .contains("0.5")
        );
        assert!(
            AnyNumber::Int(2)
                .push(Dtype::Bool, &mut elements)
                .unwrap_err()
                .to_string()
                .contains("2")
        );
        assert!(elements.is_empty());
        AnyNumber::Float(4.0)
            .push(Dtype::Int16, &mut elements)
            .unwrap();
        assert_eq!(elements, [4, 0]);
    }

    #[test]
    fn what_would_become_infinite_is_refused() {
        let mut elements = Vec::new();
        for dtype in [Dtype::Float16, Dtype::Float32, Dtype::Complex64] {
            let why = AnyNumber::Float(-1e300)
                .push(dtype, &mut elements)
                .unwrap_err()
                .to_string();
            assert_eq!(
                why,
                format!("-1e300 does not fit an element of type {}", dtype.name())
            );
        }
        assert!(
            AnyNumber::Int(70_000)
                .push(Dtype::Float16, &mut elements)
                .is_err()
        );
        assert!(elements.is_empty());
        AnyNumber::Float(f64::from(f32::MAX))
            .push(Dtype::Float32, &mut elements)
            .unwrap();
        AnyNumber::Float(f64::INFINITY)
            .push(Dtype::Float32, &mut elements)
            .unwrap();
        AnyNumber::Float(f64::NAN)
            .push(Dtype::Float16, &mut elements)
            .unwrap();
        assert_eq!(elements[4..8], f32::INFINITY.to_le_bytes());
    }

    #[test]
    fn narrow_numbers_keep_their_bits_and_their_looks() {
        let elements = 0.1f32.to_le_bytes();
        let number = read(Dtype::Float32, &elements).next().unwrap();
        assert_eq!(number.to_text(), "0.1");
        let mut back = Vec::new();
        number.push(Dtype::Float32, &mut back).unwrap();
        assert_eq!(back, elements);
    }
}
