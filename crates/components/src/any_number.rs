//! The elements of arrays as numbers, for files of text.

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

impl AnyNumber {
    /// The number that a value is, if it is one.
    pub(crate) fn of<B>(value: &Tree<B>) -> Option<AnyNumber> {
        match value {
            Tree::Int(number) => Some(AnyNumber::Int(*number)),
            Tree::UInt(number) => Some(AnyNumber::UInt(*number)),
            Tree::Float(number) => Some(AnyNumber::Float(*number)),
            _ => None,
        }
    }

    /// The number that text says, a whole one if it is written so; `None` if it says none.
    ///
    /// # Errors
    /// Says that it is beyond what a number of its kind can hold.
    pub(crate) fn parse(text: &str) -> Result<Option<AnyNumber>, String> {
        if let Ok(number) = text.parse() {
            return Ok(Some(AnyNumber::Int(number)));
        }
        if let Ok(number) = text.parse() {
            return Ok(Some(AnyNumber::UInt(number)));
        }
        check_whole(text)?;
        let real = text.parse::<f64>().ok();
        if real.is_some_and(f64::is_infinite) && text.contains(|c: char| c.is_ascii_digit()) {
            return Err(format!(
                "'{text}' is beyond what a real number can hold; write inf if that is meant"
            ));
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

    /// Appends the number as an element of an array, or half of a complex one.
    ///
    /// # Errors
    /// Says that the number has no place in elements of this type.
    pub(crate) fn push(self, dtype: Dtype, elements: &mut Vec<u8>) -> Result<(), String> {
        let unfit = || {
            format!(
                "{} does not fit an element of type {}",
                self.show(),
                dtype.name()
            )
        };
        let wide = match self {
            AnyNumber::Int(number) => i128::from(number),
            AnyNumber::UInt(number) => i128::from(number),
            AnyNumber::Float(number) if number.fract() == 0.0 && number.abs() < 1e30 => {
                number as i128
            }
            AnyNumber::Float(_) => i128::MAX,
        };
        // What is infinite already stays so.
        macro_rules! real {
            ($short:expr) => {{
                let short = $short;
                if !short.is_finite() && self.as_f64().is_finite() {
                    return Err(unfit());
                }
                elements.extend_from_slice(&short.to_le_bytes())
            }};
        }
        match dtype {
            Dtype::Bool if wide == 0 || wide == 1 => elements.push(wide as u8),
            Dtype::Bool => return Err(format!("{} is neither 0 nor 1, as a bool is", self.show())),
            Dtype::Float16 => real!(f16::from_f64(self.as_f64())),
            Dtype::Float32 | Dtype::Complex64 => real!(self.as_f64() as f32),
            Dtype::Float64 | Dtype::Complex128 => {
                elements.extend_from_slice(&self.as_f64().to_le_bytes())
            }
            _ => elements.extend_from_slice(&dtype.whole(wide).ok_or_else(unfit)?[..dtype.size()]),
        }
        Ok(())
    }

    /// The number as it is written, so that reading it gives the same bits.
    pub(crate) fn show(self) -> String {
        match self {
            AnyNumber::Int(number) => number.to_string(),
            AnyNumber::UInt(number) => number.to_string(),
            AnyNumber::Float(number) => text(number),
        }
    }
}

/// Checks that text is no whole number beyond 64 bits, which would be read as a real one beside it.
///
/// # Errors
/// Says that it is one.
pub(crate) fn check_whole(text: &str) -> Result<(), String> {
    let digits = text.trim_start_matches(['+', '-']);
    let is_whole = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if is_whole && text.parse::<i64>().is_err() && text.parse::<u64>().is_err() {
        return Err(format!(
            "the whole number {text} does not fit in 64 bits; write it with a point or an exponent if a real one is meant"
        ));
    }
    Ok(())
}

/// The elements of an array; of complex ones the two halves.
pub(crate) fn read(dtype: Dtype, elements: &[u8]) -> impl Iterator<Item = AnyNumber> {
    let size = if is_complex(dtype) {
        dtype.size() / 2
    } else {
        dtype.size()
    };
    elements.chunks_exact(size).map(move |bytes| {
        macro_rules! of {
            ($type:ty) => {
                <$type>::from_le_bytes(bytes.try_into().expect("chunks of this size"))
            };
        }
        match dtype {
            Dtype::Bool | Dtype::UInt8 => AnyNumber::Int(of!(u8).into()),
            Dtype::Int8 => AnyNumber::Int(of!(i8).into()),
            Dtype::Int16 => AnyNumber::Int(of!(i16).into()),
            Dtype::Int32 => AnyNumber::Int(of!(i32).into()),
            Dtype::Int64 => AnyNumber::Int(of!(i64)),
            Dtype::UInt16 => AnyNumber::Int(of!(u16).into()),
            Dtype::UInt32 => AnyNumber::Int(of!(u32).into()),
            Dtype::UInt64 => AnyNumber::UInt(of!(u64)),
            Dtype::Float16 => AnyNumber::Float(of!(f16).to_f64()),
            // The shortest decimal of the narrow number, not of its widened twin.
            Dtype::Float32 | Dtype::Complex64 => AnyNumber::Float(shortest(of!(f32))),
            Dtype::Float64 | Dtype::Complex128 => AnyNumber::Float(of!(f64)),
        }
    })
}

fn shortest(narrow: f32) -> f64 {
    let wide = f64::from(narrow);
    // Rounding twice, to 64 bits and then to 32, may in rare cases end beside the number.
    narrow
        .to_string()
        .parse()
        .ok()
        .filter(|short: &f64| *short as f32 == narrow)
        .unwrap_or(wide)
}

pub(crate) fn is_complex(dtype: Dtype) -> bool {
    matches!(dtype, Dtype::Complex64 | Dtype::Complex128)
}

/// A real number as text that reads back to the same bits.
pub(crate) fn text(number: f64) -> String {
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
                .starts_with("'-1e999' is beyond")
        );
        for beyond in ["99999999999999999999", "-9223372036854775809"] {
            let why = AnyNumber::parse(beyond).unwrap_err();
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
                .contains("300")
        );
        assert!(
            AnyNumber::Float(0.5)
                .push(Dtype::Int32, &mut elements)
                .unwrap_err()
                .contains("0.5")
        );
        assert!(
            AnyNumber::Int(2)
                .push(Dtype::Bool, &mut elements)
                .unwrap_err()
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
                .unwrap_err();
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
        assert_eq!(number.show(), "0.1");
        let mut back = Vec::new();
        number.push(Dtype::Float32, &mut back).unwrap();
        assert_eq!(back, elements);
    }
}
