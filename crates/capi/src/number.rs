//! Single numbers. A number of a structure and an array of rank 0 are read by the same calls.

use std::fmt;

use titin_runtime::Dtype;

/// A number of any type, without loss.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Number {
    Bool(bool),
    Whole(i128),
    Real(f64),
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Number::Bool(flag) => write!(f, "{flag}"),
            Number::Whole(number) => write!(f, "{number}"),
            Number::Real(number) => write!(f, "{number:?}"),
        }
    }
}

impl Number {
    /// The number as an integer, if the type can hold it.
    pub(crate) fn whole<T: TryFrom<i128>>(self) -> Option<T> {
        match self {
            Number::Whole(number) => T::try_from(number).ok(),
            _ => None,
        }
    }

    /// The error text for a whole number that this type of real numbers could only round.
    pub(crate) fn rounded(self, dtype: Dtype) -> Option<String> {
        let Number::Whole(number) = self else {
            return None;
        };
        let nearest = match dtype {
            Dtype::Float32 => f64::from(number as f32),
            Dtype::Float64 => number as f64,
            _ => return None,
        };
        (nearest as i128 != number).then(|| {
            let name = dtype.name();
            format!("the value is {number}, a whole number that {name} does not have: its nearest is {nearest}; read it as a whole number")
        })
    }

    /// The bytes of the number as an element of an array, if the type can hold it.
    pub(crate) fn element(self, dtype: Dtype) -> Option<Vec<u8>> {
        let real = match self {
            Number::Real(number) => Some(number),
            Number::Whole(number) => Some(number as f64),
            Number::Bool(_) => None,
        };
        match dtype {
            Dtype::Bool => (self == Number::Bool(true) || self == Number::Bool(false))
                .then(|| vec![u8::from(self == Number::Bool(true))]),
            // A number too large for the type would become infinite.
            Dtype::Float32 => real
                .filter(|number| (*number as f32).is_infinite() == number.is_infinite())
                .map(|number| (number as f32).to_le_bytes().to_vec()),
            Dtype::Float64 => real.map(|number| number.to_le_bytes().to_vec()),
            Dtype::Float16 | Dtype::Complex64 | Dtype::Complex128 => None,
            _ => match self {
                Number::Whole(number) => Some(dtype.whole(number)?[..dtype.size()].to_vec()),
                _ => None,
            },
        }
    }
}

/// An element type and its range in words: `int8 (-128 to 127)`. Types that hold any number are named alone.
pub(crate) fn range(dtype: Dtype) -> String {
    let range = match dtype.whole_range() {
        Some(whole) => format!(" ({} to {})", whole.start(), whole.end()),
        None if dtype == Dtype::Float32 => format!(" (up to {:e})", f32::MAX),
        None => String::new(),
    };
    format!("{}{range}", dtype.name())
}

/// The element of an array as a number; `None` for types that C has no number for.
pub(crate) fn read(dtype: Dtype, bytes: &[u8]) -> Option<Number> {
    macro_rules! le {
        ($type:ty) => {
            <$type>::from_le_bytes(bytes.try_into().ok()?)
        };
    }
    Some(match dtype {
        Dtype::Bool => Number::Bool(le!(u8) != 0),
        Dtype::Int8 => Number::Whole(le!(i8).into()),
        Dtype::Int16 => Number::Whole(le!(i16).into()),
        Dtype::Int32 => Number::Whole(le!(i32).into()),
        Dtype::Int64 => Number::Whole(le!(i64).into()),
        Dtype::UInt8 => Number::Whole(le!(u8).into()),
        Dtype::UInt16 => Number::Whole(le!(u16).into()),
        Dtype::UInt32 => Number::Whole(le!(u32).into()),
        Dtype::UInt64 => Number::Whole(le!(u64).into()),
        Dtype::Float32 => Number::Real(le!(f32).into()),
        Dtype::Float64 => Number::Real(le!(f64)),
        Dtype::Float16 | Dtype::Complex64 | Dtype::Complex128 => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_becomes_an_element_only_where_it_fits() {
        for dtype in Dtype::ALL {
            let one = Number::Whole(1).element(dtype);
            let real = matches!(dtype, Dtype::Float32 | Dtype::Float64);
            let back = one.as_deref().and_then(|bytes| read(dtype, bytes));
            match dtype {
                Dtype::Bool | Dtype::Float16 | Dtype::Complex64 | Dtype::Complex128 => {
                    assert_eq!(one, None)
                }
                _ if real => assert_eq!(back, Some(Number::Real(1.0))),
                _ => assert_eq!(back, Some(Number::Whole(1))),
            }
        }
        assert_eq!(Number::Whole(300).element(Dtype::Int8), None);
        assert_eq!(Number::Whole(-1).element(Dtype::UInt64), None);
        assert_eq!(Number::Real(1.5).element(Dtype::Int32), None);
        assert_eq!(Number::Real(1e300).element(Dtype::Float32), None);
        assert!(
            Number::Real(f64::INFINITY)
                .element(Dtype::Float32)
                .is_some()
        );
        assert_eq!(Number::Bool(true).element(Dtype::Float64), None);
        assert_eq!(Number::Bool(true).element(Dtype::Bool), Some(vec![1]));
    }

    #[test]
    fn types_are_told_with_what_they_hold() {
        assert_eq!(range(Dtype::Int8), "int8 (-128 to 127)");
        assert_eq!(range(Dtype::UInt64), "uint64 (0 to 18446744073709551615)");
        assert_eq!(range(Dtype::Float32), "float32 (up to 3.4028235e38)");
        assert_eq!(range(Dtype::Float64), "float64");
    }

    #[test]
    fn whole_numbers_are_not_rounded_without_a_word() {
        for (number, single, double) in [
            (1 << 24, true, true),
            ((1 << 24) + 1, false, true),
            (-(1 << 53), true, true),
            ((1 << 53) + 1, false, false),
            (i128::from(u64::MAX), false, false),
            (1 << 63, true, true),
        ] {
            assert_eq!(
                Number::Whole(number).rounded(Dtype::Float32).is_none(),
                single,
                "{number}"
            );
            assert_eq!(
                Number::Whole(number).rounded(Dtype::Float64).is_none(),
                double,
                "{number}"
            );
        }
        assert_eq!(
            Number::Real(0.1).rounded(Dtype::Float32),
            None,
            "real numbers are, as everywhere"
        );
        assert_eq!(
            Number::Whole(i128::from(u64::MAX)).rounded(Dtype::UInt64),
            None
        );
    }
}
