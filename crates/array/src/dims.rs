//! A value for each dimension of an array, without memory of its own.

use std::fmt;
use std::ops::{Deref, DerefMut};

use crate::Invalid;

/// As many dimensions as an array may have: what Fortran 77 and NumPy users meet, and what the wire format takes.
pub const MOST_DIMS: usize = 7;

/// The largest extent, and the largest number of elements: sums and differences of two of them fit 64 bits with a sign.
pub const MOST_ELEMENTS: u64 = 1 << 62;

/// One value per dimension, up to [`MOST_DIMS`]: an extent, a point, a stride. Used as the slice that it derefs to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Dims<T = u64> {
    values: [T; MOST_DIMS],
    count: u8,
}

impl<T: Copy + Default> Dims<T> {
    /// The values of a slice; more than [`MOST_DIMS`] are refused.
    pub fn new(values: &[T]) -> Result<Self, Invalid> {
        if values.len() > MOST_DIMS {
            let message = format!(
                "an array has at most {MOST_DIMS} dimensions, not {}",
                values.len()
            );
            return Err(Invalid(message));
        }
        Ok(Self::from_fn(values.len(), |dim| values[dim]))
    }

    /// `count` values, each from its dimension. More than [`MOST_DIMS`] are a mistake of the caller's.
    pub fn from_fn(count: usize, mut value: impl FnMut(usize) -> T) -> Self {
        assert!(count <= MOST_DIMS, "{count} dimensions");
        let mut values = [T::default(); MOST_DIMS];
        for (dim, place) in values[..count].iter_mut().enumerate() {
            *place = value(dim);
        }
        Self {
            values,
            count: count as u8,
        }
    }

    /// The same value in each of `count` dimensions.
    pub fn all(count: usize, value: T) -> Self {
        Self::from_fn(count, |_| value)
    }
}

impl Dims {
    /// How many elements an array of these extents has: 1 without dimensions, and capped where 64 bits end.
    pub fn volume(&self) -> u64 {
        if self.contains(&0) {
            0
        } else {
            self.iter()
                .fold(1, |product: u64, &extent| product.saturating_mul(extent))
        }
    }
}

impl<T> Deref for Dims<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.values[..usize::from(self.count)]
    }
}

impl<T> DerefMut for Dims<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.values[..usize::from(self.count)]
    }
}

impl<T: Copy + Default> Default for Dims<T> {
    fn default() -> Self {
        Self {
            values: [T::default(); MOST_DIMS],
            count: 0,
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Dims<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// As extents are written: `4 × 8`, and `()` without dimensions.
impl<T: fmt::Display> fmt::Display for Dims<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("()");
        }
        for (dim, value) in self.iter().enumerate() {
            write!(f, "{}{value}", if dim > 0 { " × " } else { "" })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volume_knows_nothing_and_too_much() {
        assert_eq!(Dims::<u64>::default().volume(), 1);
        assert_eq!(Dims::new(&[3, 4]).unwrap().volume(), 12);
        assert_eq!(Dims::new(&[u64::MAX, u64::MAX, 0]).unwrap().volume(), 0);
        assert_eq!(Dims::new(&[u64::MAX, 2]).unwrap().volume(), u64::MAX);
    }

    #[test]
    fn eight_dimensions_are_refused() {
        let error = Dims::new(&[1u64; 8]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "an array has at most 7 dimensions, not 8"
        );
    }

    #[test]
    fn extents_are_written_as_people_do() {
        assert_eq!(Dims::new(&[4, 8]).unwrap().to_string(), "4 × 8");
        assert_eq!(Dims::<u64>::default().to_string(), "()");
    }
}
