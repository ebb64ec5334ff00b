//! The element types of arrays: one table for all crates. Tests compare the bindings and the docs
//! with the table.
//!
//! For each type the table has the number on the wire, the names, the kind, and the Rust type of an
//! element. Size, alignment, range, reading, writing and casting follow from the Rust type. This
//! crate never allocates and knows nothing of arrays.
//!
//! ```
//! use titin_element::{Dtype, ElementValue};
//!
//! let mut element = [0; 2];
//! Dtype::BFloat16.write(ElementValue::Real(1.0 / 3.0), &mut element).unwrap();
//! assert_eq!(Dtype::BFloat16.read(&element), ElementValue::Real(0.333984375));
//! assert_eq!(Dtype::UInt8.cast(ElementValue::Real(3.9)), Some(ElementValue::Whole(3)));
//! ```

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod value;
#[macro_use]
mod storage;

pub use value::ElementValue;

use std::ffi::CStr;
use std::ops::RangeInclusive;

use half::{bf16, f16};
use serde::{Deserialize, Serialize};

use storage::Storage;

/// The kind of a type's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ElementKind {
    /// True or false.
    Bool,
    /// A whole number with a sign.
    Signed,
    /// A whole number without a sign.
    Unsigned,
    /// A real number.
    Float,
    /// Two real numbers of the same type: the real and the imaginary part.
    Complex,
}

/// The names of an element type outside of Rust.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ElementNames {
    /// The name in NumPy, in descriptions and in messages to users: `float64`.
    pub numpy: &'static str,
    /// The type code in a file of NumPy's, without the mark of the byte order: `f8`.
    pub npy: &'static str,
    /// The constant of `titin.h`, for C and C++. Fortran has the same name in small letters:
    /// `TITIN_F64`.
    pub constant: &'static str,
    /// The type of an element in C programs.
    pub c: &'static str,
    /// The type of an element in C++ programs.
    pub cpp: &'static str,
    /// The type of an element in Fortran programs.
    pub fortran: &'static str,
}

/// Makes the enum and the functions that look a row up.
macro_rules! element_types {
    ($($dtype:ident = $number:literal, $kind:ident, $storage:ty,
       $numpy:literal, $npy:literal, $constant:literal, $c:literal, $cpp:literal, $fortran:literal;)*) => {
        /// The type of an array's elements. The numbers are the numbers of the wire and of
        /// `titin.h`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "lowercase")]
        #[repr(u8)]
        #[allow(missing_docs)]
        pub enum Dtype { $($dtype = $number),* }

        impl Dtype {
            /// All types, in the order of their numbers.
            pub const ALL: [Dtype; [$($number),*].len()] = [$(Dtype::$dtype),*];

            /// The NumPy names of all types, in the order of their numbers.
            pub const NAMES: [&'static str; Self::ALL.len()] = [$($numpy),*];

            /// The kind of the elements.
            #[inline]
            pub const fn kind(self) -> ElementKind {
                match self { $(Dtype::$dtype => ElementKind::$kind),* }
            }

            /// Bytes of one element.
            #[inline]
            pub const fn size(self) -> usize {
                match self { $(Dtype::$dtype => size_of::<$storage>()),* }
            }

            /// The alignment of an element in memory, in bytes.
            #[inline]
            pub const fn alignment(self) -> usize {
                match self { $(Dtype::$dtype => align_of::<$storage>()),* }
            }

            /// The names of the type in each language.
            pub const fn names(self) -> ElementNames {
                match self {
                    $(Dtype::$dtype => ElementNames {
                        numpy: $numpy,
                        npy: $npy,
                        constant: $constant,
                        c: $c,
                        cpp: $cpp,
                        fortran: $fortran,
                    }),*
                }
            }

            /// The NumPy name as a C string.
            pub const fn c_name(self) -> &'static CStr {
                match self {
                    $(Dtype::$dtype => {
                        match CStr::from_bytes_with_nul(concat!($numpy, "\0").as_bytes()) {
                            Ok(name) => name,
                            Err(_) => panic!("a name ends at its only NUL"),
                        }
                    }),*
                }
            }

            /// The range of whole numbers for an element; `None` if the elements are no whole
            /// numbers.
            pub fn whole_range(self) -> Option<RangeInclusive<i128>> {
                match self { $(Dtype::$dtype => <$storage>::whole_range()),* }
            }

            /// Reads an element from bytes, in little-endian order.
            ///
            /// # Panics
            /// If there are not exactly [`Dtype::size`] bytes.
            #[inline]
            pub fn read(self, bytes: &[u8]) -> ElementValue {
                match self { $(Dtype::$dtype => <$storage>::read(bytes)),* }
            }

            /// Writes an element, in little-endian order, or nothing and `None` if the type cannot
            /// hold the number.
            ///
            /// A real type rounds a number to the type's nearest number, but never a finite number
            /// to an infinite number. Types of whole numbers take whole numbers only, bool takes
            /// true and false only, and complex numbers fit complex types only.
            ///
            /// # Panics
            /// If there is not room for exactly [`Dtype::size`] bytes.
            #[inline]
            pub fn write(self, number: ElementValue, out: &mut [u8]) -> Option<()> {
                match self { $(Dtype::$dtype => <$storage>::write(number, out)),* }
            }
        }
    };
}

// A file of NumPy's has no type code for bfloat16: ml_dtypes writes such elements as two bytes
// without a meaning (V2). The number, the kind and the Rust type; the names in NumPy, in npy files,
// in titin.h, C, C++ and Fortran.
element_types! {
    Bool = 1, Bool, bool, "bool", "b1", "TITIN_BOOL", "bool", "bool", "logical";
    Int8 = 2, Signed, i8, "int8", "i1", "TITIN_I8", "int8_t", "std::int8_t", "integer(int8)";
    Int16 = 3, Signed, i16, "int16", "i2", "TITIN_I16", "int16_t", "std::int16_t", "integer(int16)";
    Int32 = 4, Signed, i32, "int32", "i4", "TITIN_I32", "int32_t", "std::int32_t", "integer(int32)";
    Int64 = 5, Signed, i64, "int64", "i8", "TITIN_I64", "int64_t", "std::int64_t", "integer(int64)";
    UInt8 = 6, Unsigned, u8, "uint8", "u1", "TITIN_U8", "uint8_t", "std::uint8_t", "integer(int8), as=titin_u8";
    UInt16 = 7, Unsigned, u16, "uint16", "u2", "TITIN_U16", "uint16_t", "std::uint16_t", "integer(int16), as=titin_u16";
    UInt32 = 8, Unsigned, u32, "uint32", "u4", "TITIN_U32", "uint32_t", "std::uint32_t", "integer(int32), as=titin_u32";
    UInt64 = 9, Unsigned, u64, "uint64", "u8", "TITIN_U64", "uint64_t", "std::uint64_t", "integer(int64), as=titin_u64";
    Float16 = 10, Float, f16, "float16", "f2", "TITIN_F16", "uint16_t, its bits", "std::float16_t", "integer(int16), as=titin_f16";
    Float32 = 11, Float, f32, "float32", "f4", "TITIN_F32", "float", "float", "real(real32)";
    Float64 = 12, Float, f64, "float64", "f8", "TITIN_F64", "double", "double", "real(real64)";
    Complex64 = 13, Complex, [f32; 2], "complex64", "c8", "TITIN_C64", "float complex", "std::complex<float>", "complex(real32)";
    Complex128 = 14, Complex, [f64; 2], "complex128", "c16", "TITIN_C128", "double complex", "std::complex<double>", "complex(real64)";
    BFloat16 = 15, Float, bf16, "bfloat16", "V2", "TITIN_BF16", "uint16_t, its bits", "titin::bfloat16", "integer(int16), as=titin_bf16";
}

whole_numbers!(i8 i16 i32 i64 u8 u16 u32 u64);
real_numbers! {
    f16, |wide: f64| f16::from_f32(storage::round_to_odd(wide));
    bf16, |wide: f64| bf16::from_f32(storage::round_to_odd(wide));
    f32, |wide: f64| wide as f32;
    f64, |wide: f64| wide;
}
complex_numbers!(f32 f64);

impl Dtype {
    /// NumPy's name of the type.
    pub const fn name(self) -> &'static str {
        self.names().numpy
    }

    /// The type with the given number, if there is such a type.
    pub fn from_number(number: u8) -> Option<Self> {
        Dtype::ALL.get(usize::from(number).wrapping_sub(1)).copied()
    }

    /// The type with the given NumPy name, if there is such a type.
    pub fn from_name(name: &str) -> Option<Self> {
        Dtype::ALL.into_iter().find(|dtype| dtype.name() == name)
    }

    /// The type of the two parts of a complex number; for other types the type itself.
    pub const fn component(self) -> Dtype {
        match self {
            Dtype::Complex64 => Dtype::Float32,
            Dtype::Complex128 => Dtype::Float64,
            _ => self,
        }
    }

    /// Whether the elements are complex numbers.
    pub const fn is_complex(self) -> bool {
        matches!(self.kind(), ElementKind::Complex)
    }

    /// Turns a number into the kind of the type: true or false, a whole, a real or a complex
    /// number. [`Dtype::write`] then finds out whether the type can hold the result.
    ///
    /// A real number is cut towards zero to a whole number. Every number but zero is true. `None`
    /// if the number has no counterpart: a complex number outside of the complex types, a number
    /// that is not finite as a whole number, and not-a-number as true or false.
    #[inline]
    pub fn cast(self, number: ElementValue) -> Option<ElementValue> {
        match (self.kind(), number) {
            (ElementKind::Complex, _) => Some(number.unflagged()),
            (_, ElementValue::Complex(..)) => None,
            (ElementKind::Float, _) => Some(number.unflagged()),
            (ElementKind::Bool, ElementValue::Real(real)) => {
                (!real.is_nan()).then_some(ElementValue::Bool(real != 0.0))
            }
            (ElementKind::Bool, ElementValue::Whole(whole)) => Some(ElementValue::Bool(whole != 0)),
            (ElementKind::Bool, ElementValue::Bool(_)) => Some(number),
            // An i128 holds the whole numbers of all types. A real number beyond an i128 becomes
            // the largest or the smallest i128, and no type holds either.
            (ElementKind::Signed | ElementKind::Unsigned, ElementValue::Real(real)) => real
                .is_finite()
                .then_some(ElementValue::Whole(real as i128)),
            (ElementKind::Signed | ElementKind::Unsigned, _) => Some(number.unflagged()),
        }
    }
}

#[cfg(test)]
mod tests;
