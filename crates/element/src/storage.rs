//! Reads elements from bytes and writes elements to bytes, for the Rust types of elements. The
//! table calls the macros.

use std::ops::RangeInclusive;

use crate::ElementValue;

/// A Rust type for one element.
pub(crate) trait Storage: Sized {
    /// Reads an element. Panics unless the number of bytes is the size of an element.
    fn read(bytes: &[u8]) -> ElementValue;

    /// Writes an element, or nothing if the type cannot hold the number.
    fn write(number: ElementValue, out: &mut [u8]) -> Option<()>;

    /// The range of whole numbers for an element, if the elements are whole numbers.
    fn whole_range() -> Option<RangeInclusive<i128>> {
        None
    }
}

impl Storage for bool {
    #[inline]
    fn read(bytes: &[u8]) -> ElementValue {
        assert_eq!(bytes.len(), 1);
        ElementValue::Bool(bytes[0] != 0)
    }

    #[inline]
    fn write(number: ElementValue, out: &mut [u8]) -> Option<()> {
        let ElementValue::Bool(flag) = number else {
            return None;
        };
        out.copy_from_slice(&[flag.into()]);
        Some(())
    }
}

macro_rules! whole_numbers {
    ($($type:ty)*) => {$(
        impl Storage for $type {
            #[inline]
            fn read(bytes: &[u8]) -> ElementValue {
                ElementValue::Whole(Self::from_le_bytes(bytes.try_into().expect("one element")).into())
            }

            #[inline]
            fn write(number: ElementValue, out: &mut [u8]) -> Option<()> {
                let ElementValue::Whole(whole) = number else {
                    return None;
                };
                out.copy_from_slice(&Self::try_from(whole).ok()?.to_le_bytes());
                Some(())
            }

            fn whole_range() -> Option<RangeInclusive<i128>> {
                Some(Self::MIN.into()..=Self::MAX.into())
            }
        }
    )*};
}

/// Rounds to a narrower type; `None` if a finite number would become infinite.
macro_rules! rounded {
    ($type:ty, $wide:expr, $round:expr) => {{
        let wide: f64 = $wide;
        let narrow: $type = $round(wide);
        (narrow.is_finite() || !wide.is_finite()).then_some(narrow)
    }};
}

/// Rounds to single precision such that rounding the result to 16 bits gives the nearest number. An
/// inexact number lies between two numbers of single precision, and becomes the neighbour with an
/// odd last bit. So the result is never halfway between two numbers of 16 bits. (The conversions
/// from f64 of `half` ignore the lower 32 bits.)
pub(crate) fn round_to_odd(wide: f64) -> f32 {
    let near = wide as f32;
    let back = f64::from(near);
    if back == wide || !near.is_finite() {
        return near;
    }
    let towards_zero = near.to_bits() - u32::from(back.abs() > wide.abs());
    f32::from_bits(towards_zero | 1)
}

macro_rules! real_numbers {
    ($($type:ty, $round:expr;)*) => {$(
        impl Storage for $type {
            #[inline]
            fn read(bytes: &[u8]) -> ElementValue {
                ElementValue::Real(Self::from_le_bytes(bytes.try_into().expect("one element")).into())
            }

            #[inline]
            fn write(number: ElementValue, out: &mut [u8]) -> Option<()> {
                out.copy_from_slice(&rounded!($type, number.real()?, $round)?.to_le_bytes());
                Some(())
            }
        }
    )*};
}

macro_rules! complex_numbers {
    ($($type:ty)*) => {$(
        impl Storage for [$type; 2] {
            #[inline]
            fn read(bytes: &[u8]) -> ElementValue {
                let (re, im) = bytes.split_at(size_of::<$type>());
                let part = |bytes: &[u8]| {
                    <$type>::from_le_bytes(bytes.try_into().expect("half an element")).into()
                };
                ElementValue::Complex(part(re), part(im))
            }

            #[inline]
            fn write(number: ElementValue, out: &mut [u8]) -> Option<()> {
                let (re, im) = match number {
                    ElementValue::Complex(re, im) => (re, im),
                    _ => (number.real()?, 0.0),
                };
                let narrow = |wide: f64| wide as $type;
                let (re, im) = (rounded!($type, re, narrow)?, rounded!($type, im, narrow)?);
                let (real, imaginary) = out.split_at_mut(size_of::<$type>());
                real.copy_from_slice(&re.to_le_bytes());
                imaginary.copy_from_slice(&im.to_le_bytes());
                Some(())
            }
        }
    )*};
}
