//! A value for each dimension of an array, without memory from the heap.

use std::fmt;
use std::ops::{Deref, DerefMut};

use crate::Invalid;

/// The most dimensions of an array of a field: those of Fortran 77.
pub const MOST_DIMS: usize = 7;

/// The largest extent, and the largest number of elements: the sum and the difference of two
/// extents fit a signed number of 64 bits.
pub const MOST_ELEMENTS: u64 = 1 << 62;

/// One value for each dimension, up to [`MOST_DIMS`]: extents, a point, strides. The type derefs to
/// a slice.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Dims<T = u64> {
    values: [T; MOST_DIMS],
    count: u8,
}

impl<T: Copy + Default> Dims<T> {
    /// The values of a slice, unless there are more than [`MOST_DIMS`].
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

    /// `count` values, each from the number of the dimension.
    ///
    /// # Panics
    /// For more than [`MOST_DIMS`] values.
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
    /// The number of elements of an array of these extents: 1 without dimensions, and never beyond
    /// 64 bits.
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
