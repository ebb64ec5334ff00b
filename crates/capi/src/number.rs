//! Single numbers. A number of a structure and an array of rank 0 are read by the same calls.

use titin_runtime::{Dtype, ElementKind, ElementValue};

/// The error text for a whole number that the real type `dtype` could only round.
pub(crate) fn rounded(number: ElementValue, dtype: Dtype) -> Option<String> {
    let ElementValue::Whole(number) = number else {
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

/// The bytes of a number as an element of an array, if C has numbers of the type, and the type can
/// hold the number.
pub(crate) fn element(number: ElementValue, dtype: Dtype) -> Option<Vec<u8>> {
    let mut element = vec![0; dtype.size()];
    is_number_of_c(dtype).then(|| dtype.write(number, &mut element))??;
    Some(element)
}

/// The element of an array as a number; `None` for types without a number in C.
pub(crate) fn read(dtype: Dtype, bytes: &[u8]) -> Option<ElementValue> {
    is_number_of_c(dtype).then(|| dtype.read(bytes))
}

/// Whether the functions of the header read and write single numbers of a type. To C, complex
/// numbers and real numbers of 16 bits are arrays.
fn is_number_of_c(dtype: Dtype) -> bool {
    match dtype.kind() {
        ElementKind::Bool | ElementKind::Signed | ElementKind::Unsigned => true,
        ElementKind::Float => dtype.size() > 2,
        ElementKind::Complex => false,
    }
}

/// An element type and the type's range in words: `int8 (-128 to 127)`. Types for any number have
/// no range.
pub(crate) fn range(dtype: Dtype) -> String {
    let range = match dtype.whole_range() {
        Some(whole) => format!(" ({} to {})", whole.start(), whole.end()),
        None if dtype == Dtype::Float32 => format!(" (up to {:e})", f32::MAX),
        None => String::new(),
    };
    format!("{}{range}", dtype.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_becomes_an_element_only_where_it_fits() {
        for dtype in Dtype::ALL {
            let one = element(ElementValue::Whole(1), dtype);
            let real = matches!(dtype, Dtype::Float32 | Dtype::Float64);
            let back = one.as_deref().and_then(|bytes| read(dtype, bytes));
            match dtype {
                Dtype::Bool
                | Dtype::Float16
                | Dtype::BFloat16
                | Dtype::Complex64
                | Dtype::Complex128 => {
                    assert_eq!(one, None)
                }
                _ if real => assert_eq!(back, Some(ElementValue::Real(1.0))),
                _ => assert_eq!(back, Some(ElementValue::Whole(1))),
            }
        }
        assert_eq!(element(ElementValue::Whole(300), Dtype::Int8), None);
        assert_eq!(element(ElementValue::Whole(-1), Dtype::UInt64), None);
        assert_eq!(element(ElementValue::Real(1.5), Dtype::Int32), None);
        assert_eq!(element(ElementValue::Real(1e300), Dtype::Float32), None);
        assert!(element(ElementValue::Real(f64::INFINITY), Dtype::Float32).is_some());
        assert_eq!(element(ElementValue::Bool(true), Dtype::Float64), None);
        assert_eq!(
            element(ElementValue::Bool(true), Dtype::Bool),
            Some(vec![1])
        );
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
                rounded(ElementValue::Whole(number), Dtype::Float32).is_none(),
                single,
                "{number}"
            );
            assert_eq!(
                rounded(ElementValue::Whole(number), Dtype::Float64).is_none(),
                double,
                "{number}"
            );
        }
        assert_eq!(
            rounded(ElementValue::Real(0.1), Dtype::Float32),
            None,
            "real numbers are, as everywhere"
        );
        assert_eq!(
            rounded(ElementValue::Whole(i128::from(u64::MAX)), Dtype::UInt64),
            None
        );
    }
}
