use super::*;
use proptest::prelude::*;

fn written(dtype: Dtype, number: ElementValue) -> Option<Vec<u8>> {
    let mut out = vec![0; dtype.size()];
    dtype.write(number, &mut out).map(|()| out)
}

#[test]
fn rows_are_in_the_order_of_their_numbers() {
    for (index, dtype) in Dtype::ALL.into_iter().enumerate() {
        assert_eq!(dtype as usize, index + 1);
        assert_eq!(Dtype::from_number(dtype as u8), Some(dtype));
        assert_eq!(Dtype::from_name(dtype.name()), Some(dtype));
        assert_eq!(Dtype::NAMES[index], dtype.name());
        assert_eq!(dtype.c_name().to_str(), Ok(dtype.name()));
        assert_eq!(format!("{dtype:?}").to_lowercase(), dtype.name());
        assert!(dtype.size() % dtype.alignment() == 0);
    }
    let beyond = Dtype::ALL.len() as u8 + 1;
    assert_eq!(
        (Dtype::from_number(0), Dtype::from_number(beyond)),
        (None, None)
    );
}

#[test]
fn whole_numbers_are_elements_within_the_range_of_their_type() {
    macro_rules! check {
        ($($dtype:ident $type:ty),*) => {$(
            let range = i128::from(<$type>::MIN)..=i128::from(<$type>::MAX);
            assert_eq!(Dtype::$dtype.whole_range(), Some(range.clone()));
            for number in [*range.start(), 0, 1, *range.end()] {
                let element = <$type>::try_from(number).unwrap().to_le_bytes();
                assert_eq!(written(Dtype::$dtype, ElementValue::Whole(number)).unwrap(), element);
            }
            for number in [range.start() - 1, range.end() + 1, i128::MIN, i128::MAX] {
                assert_eq!(written(Dtype::$dtype, ElementValue::Whole(number)), None);
            }
            assert_eq!(written(Dtype::$dtype, ElementValue::Real(1.0)), None);
        )*};
    }
    check!(Int8 i8, Int16 i16, Int32 i32, Int64 i64, UInt8 u8, UInt16 u16, UInt32 u32, UInt64 u64);
    for dtype in [
        Dtype::Bool,
        Dtype::Float16,
        Dtype::Float64,
        Dtype::Complex128,
    ] {
        assert_eq!(dtype.whole_range(), None);
    }
}

#[test]
fn numbers_of_16_bits_are_rounded_once_to_the_nearest() {
    let rounded = |dtype: Dtype, wide| written(dtype, ElementValue::Real(wide)).unwrap();
    // The middle of 1 and the next number goes to the even neighbour. A number beside the middle
    // goes to the nearer neighbour.
    for (dtype, one, bits) in [
        (Dtype::Float16, 0x3c00u16, 11),
        (Dtype::BFloat16, 0x3f80, 8),
    ] {
        let middle = 1.0 + 0.5f64.powi(bits);
        let [below, above] = [middle.next_down(), middle.next_up()];
        for (wide, expected) in [(below, one), (middle, one), (above, one + 1)] {
            assert_eq!(rounded(dtype, wide), expected.to_le_bytes(), "{wide:?}");
            assert_eq!(rounded(dtype, -wide), (expected | 1 << 15).to_le_bytes());
        }
        assert_eq!(rounded(dtype, f64::MIN_POSITIVE), [0, 0]);
    }
}

#[test]
fn a_cast_keeps_what_the_type_can_hold() {
    use ElementValue::{Bool, Complex, Real, Whole};
    let cast = |number, dtype: Dtype| {
        let element = written(dtype, dtype.cast(number)?)?;
        Some(dtype.read(&element).to_string())
    };
    let held = [
        (Whole(255), Dtype::UInt8, "255"),
        (Real(-0.9), Dtype::UInt8, "0"),
        (Real(255.9), Dtype::UInt8, "255"),
        (Real(-128.9), Dtype::Int8, "-128"),
        (
            Whole(u64::MAX.into()),
            Dtype::UInt64,
            "18446744073709551615",
        ),
        (Whole((1 << 53) + 1), Dtype::Float64, "9007199254740992.0"),
        (Real(0.1), Dtype::Float32, "0.10000000149011612"),
        (Real(f64::INFINITY), Dtype::Float16, "inf"),
        (Real(f64::NAN), Dtype::Float32, "NaN"),
        (Real(-3.0), Dtype::Bool, "true"),
        (Bool(true), Dtype::Float64, "1.0"),
        (Bool(true), Dtype::Int8, "1"),
        (Real(2.5), Dtype::Complex128, "2.5 + 0.0i"),
        (Complex(1.0, 2.0), Dtype::Complex64, "1.0 + 2.0i"),
    ];
    for (number, dtype, shown) in held {
        assert_eq!(
            cast(number, dtype).as_deref(),
            Some(shown),
            "{number} as {}",
            dtype.name()
        );
    }
    let beyond = [
        (Whole(300), Dtype::UInt8),
        (Whole(-1), Dtype::UInt64),
        (Real(-1.5), Dtype::UInt8),
        (Real(256.0), Dtype::UInt8),
        (Real(1e300), Dtype::UInt64),
        (Real(f64::NAN), Dtype::Int64),
        (Real(f64::INFINITY), Dtype::UInt8),
        (Real(f64::NAN), Dtype::Bool),
        (Real(1e300), Dtype::Float32),
        (Whole(70_000), Dtype::Float16),
        (Complex(0.0, 1e300), Dtype::Complex64),
        (Complex(1.0, 0.0), Dtype::Float64),
    ];
    for (number, dtype) in beyond {
        assert_eq!(cast(number, dtype), None, "{number} as {}", dtype.name());
    }
}

proptest! {
    #[test]
    fn what_is_read_is_written_again(index in 0..Dtype::ALL.len(), bytes: [u8; 16]) {
        let dtype = Dtype::ALL[index];
        let mut element = bytes[..dtype.size()].to_vec();
        if dtype == Dtype::Bool {
            element[0] %= 2;
        }
        let number = dtype.read(&element);
        // Not-a-number has many bit patterns, and only some patterns survive.
        let is_number = number.is_finite() || matches!(number, ElementValue::Real(real) if real.is_infinite());
        if is_number {
            prop_assert_eq!(written(dtype, number), Some(element));
        } else {
            prop_assert!(written(dtype, number).is_some());
        }
    }
}
