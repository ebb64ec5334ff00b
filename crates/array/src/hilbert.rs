//! The Hilbert curve: a path through all cells of a cube on which neighbouring cells are near each
//! other.

use crate::Dims;

/// The place on the curve of the cell at `at`, in a cube of 2^`bits` cells along each edge.
///
/// Cells with the same upper bits of all coordinates are neighbours on the curve. The upper bits
/// alone give the place on a coarser curve. After J. Skilling, Programming the Hilbert curve, AIP
/// Conf. Proc. 707 (2004).
pub(crate) fn place(mut at: Dims, bits: u32) -> u64 {
    let dims = at.len();
    if dims == 0 || bits == 0 {
        return 0;
    }
    // Undo the rotations and reflections of the curve, from the coarsest level on.
    for bit in (1..bits).rev().map(|level| 1u64 << level) {
        let below = bit - 1;
        for dim in 0..dims {
            if at[dim] & bit != 0 {
                at[0] ^= below;
            } else {
                let other = (at[0] ^ at[dim]) & below;
                at[0] ^= other;
                at[dim] ^= other;
            }
        }
    }
    // From Gray code to numbers.
    for dim in 1..dims {
        at[dim] ^= at[dim - 1];
    }
    let mut flips = 0;
    for bit in (1..bits).rev().map(|level| 1u64 << level) {
        if at[dims - 1] & bit != 0 {
            flips ^= bit - 1;
        }
    }
    (0..bits).rev().fold(0, |place, bit| {
        at.iter().fold(place, |place, coordinate| {
            place << 1 | ((coordinate ^ flips) >> bit & 1)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Order;

    /// All cells of a cube in the order of the curve.
    fn walk(dims: usize, bits: u32) -> Vec<Dims> {
        let edge: Dims = Dims::all(dims, 1 << bits);
        let mut cells = vec![None; edge.volume() as usize];
        for number in 0..edge.volume() {
            let at = Order::C.point(number, &edge);
            let place = &mut cells[place(at, bits) as usize];
            assert!(place.is_none());
            *place = Some(at);
        }
        cells.into_iter().flatten().collect()
    }

    #[test]
    fn the_curve_goes_from_neighbour_to_neighbour_through_every_cell() {
        for (dims, bits) in [(1, 5), (2, 1), (2, 4), (3, 3), (4, 2), (5, 1), (7, 1)] {
            let cells = walk(dims, bits);
            for step in cells.windows(2) {
                let far: u64 = step[0]
                    .iter()
                    .zip(&*step[1])
                    .map(|(a, b)| a.abs_diff(*b))
                    .sum();
                assert_eq!(far, 1, "{step:?} in {dims} dimensions");
            }
        }
    }

    #[test]
    fn coarser_cells_are_stretches_of_the_curve() {
        for (dims, bits) in [(2, 4), (3, 3), (4, 2)] {
            for (number, at) in walk(dims, bits).iter().enumerate() {
                let coarse = Dims::from_fn(dims, |dim| at[dim] >> 1);
                assert_eq!(number as u64 >> dims, place(coarse, bits - 1));
            }
        }
    }
}
