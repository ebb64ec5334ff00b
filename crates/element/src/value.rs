//! A single number of any element type.

use std::fmt;

/// A single number of any element type, wide enough for every type of the kind.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ElementValue {
    /// True or false.
    Bool(bool),
    /// A whole number.
    Whole(i128),
    /// A real number.
    Real(f64),
    /// A complex number: the real and the imaginary part.
    Complex(f64, f64),
}

impl ElementValue {
    /// Whether the number is neither infinite nor not a number.
    pub fn is_finite(self) -> bool {
        match self {
            ElementValue::Bool(_) | ElementValue::Whole(_) => true,
            ElementValue::Real(real) => real.is_finite(),
            ElementValue::Complex(re, im) => re.is_finite() && im.is_finite(),
        }
    }

    /// The whole numbers 0 and 1 for false and true; every other number unchanged.
    pub(crate) fn unflagged(self) -> ElementValue {
        match self {
            ElementValue::Bool(flag) => ElementValue::Whole(flag.into()),
            _ => self,
        }
    }

    /// The number as a real number; `None` for true, false and complex numbers.
    pub(crate) fn real(self) -> Option<f64> {
        match self {
            ElementValue::Real(real) => Some(real),
            ElementValue::Whole(whole) => Some(whole as f64),
            ElementValue::Bool(_) | ElementValue::Complex(..) => None,
        }
    }
}

impl fmt::Display for ElementValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ElementValue::Bool(flag) => write!(f, "{flag}"),
            ElementValue::Whole(whole) => write!(f, "{whole}"),
            ElementValue::Real(real) => write!(f, "{real:?}"),
            ElementValue::Complex(re, im) => write!(f, "{re:?} + {im:?}i"),
        }
    }
}
