//! The order of elements: C or Fortran.

use crate::Dims;

/// The index that counts fastest in memory, in a message or in a grid of processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Order {
    /// The last index: C, NumPy's default, `MPI_Cart_create`.
    #[default]
    C,
    /// The first index: Fortran.
    Fortran,
}

impl Order {
    /// The distance of neighbours in each dimension, in a contiguous array of these extents.
    pub fn strides(self, extents: &Dims) -> Dims {
        let mut strides = Dims::all(extents.len(), 1);
        let mut product = 1u64;
        for dim in self.fastest_first(extents.len()) {
            strides[dim] = product;
            product = product.saturating_mul(extents[dim]);
        }
        strides
    }

    /// The number of an element.
    pub fn number(self, point: &[u64], extents: &Dims) -> u64 {
        let slowest_first = self.fastest_first(extents.len()).rev();
        slowest_first.fold(0, |number, dim| number * extents[dim] + point[dim])
    }

    /// The element with a number.
    pub fn point(self, mut number: u64, extents: &Dims) -> Dims {
        let mut point = Dims::all(extents.len(), 0);
        for dim in self.fastest_first(extents.len()) {
            point[dim] = number % extents[dim];
            number /= extents[dim];
        }
        point
    }

    pub(crate) fn fastest_first(self, count: usize) -> impl DoubleEndedIterator<Item = usize> {
        (0..count).map(move |place| match self {
            Order::C => count - 1 - place,
            Order::Fortran => place,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_points_belong_together() {
        let extents = Dims::new(&[2, 3, 4]).unwrap();
        assert_eq!(*Order::C.strides(&extents), [12, 4, 1]);
        assert_eq!(*Order::Fortran.strides(&extents), [1, 2, 6]);
        for order in [Order::C, Order::Fortran] {
            for number in 0..24 {
                assert_eq!(
                    order.number(&order.point(number, &extents), &extents),
                    number
                );
            }
        }
        assert_eq!(*Order::C.point(6, &extents), [0, 1, 2]);
        assert_eq!(*Order::Fortran.point(6, &extents), [0, 0, 1]);
    }
}
