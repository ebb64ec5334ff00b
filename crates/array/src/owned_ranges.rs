//! The elements of a rank in the domain, as ranges of element numbers.

use crate::local_layout::shapes;
use crate::side::OwnedProduct;
use crate::strided_indices::StridedIndices;
use crate::{Dims, Error, IndexRange, Order, Ownership, Side};

/// A range of elements, contiguous in the domain and among the own elements of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OwnedRange {
    pub range: IndexRange,
    /// The number of the first element among the rank's own elements.
    pub at: u64,
}

/// The elements of a rank in the domain, in the order of its own elements.
pub(crate) fn owned_ranges(
    side: &Side,
    rank: u32,
    parts: &Ownership,
) -> Result<Vec<OwnedRange>, Error> {
    let mut ranges = Vec::new();
    if let Ownership::Indices(indices) = parts {
        let mut at = 0;
        for range in indices {
            push_cut_range(side, *range, at, &mut ranges);
            at += range.length;
        }
        return Ok(ranges);
    }
    let extents = shapes(&side.decomposition, rank, parts)?;
    let mut before = Vec::with_capacity(extents.len());
    extents.iter().fold(0, |sum, extents| {
        before.push(sum);
        sum + extents.volume()
    });
    let domain = Order::C.strides(&side.region.extents());
    for OwnedProduct { block, indices } in side.owned(rank, parts) {
        let strides = Order::C.strides(&extents[block as usize]);
        push_rows(
            &indices,
            &domain,
            &strides,
            0,
            before[block as usize],
            &mut ranges,
        );
    }
    Ok(ranges)
}

fn push(ranges: &mut Vec<OwnedRange>, range: IndexRange, at: u64) {
    match ranges.last_mut() {
        Some(last) if last.range.end() == range.first && last.at + last.range.length == at => {
            last.range.length += range.length
        }
        _ if range.length == 0 => {}
        _ => ranges.push(OwnedRange { range, at }),
    }
}

/// Adds a product row by row. `first` and `at` are the numbers of the first element in the domain
/// and among the own elements.
fn push_rows(
    indices: &[StridedIndices],
    domain: &[u64],
    strides: &[u64],
    first: u64,
    at: u64,
    ranges: &mut Vec<OwnedRange>,
) {
    let Some((indices, inner)) = indices.split_first() else {
        return push(ranges, IndexRange { first, length: 1 }, at);
    };
    for (index, length) in indices.pieces() {
        if inner.is_empty() {
            push(
                ranges,
                IndexRange {
                    first: first + index,
                    length,
                },
                at + indices.local(index),
            );
            continue;
        }
        for index in index..index + length {
            let (first, at) = (
                first + index * domain[0],
                at + indices.local(index) * strides[0],
            );
            push_rows(inner, &domain[1..], &strides[1..], first, at, ranges);
        }
    }
}

/// Adds the part of a range of the side's array that is in the domain.
fn push_cut_range(side: &Side, range: IndexRange, at: u64, ranges: &mut Vec<OwnedRange>) {
    let (shape, region) = (side.decomposition.shape(), &side.region);
    let domain = region.extents();
    let count = shape.len();
    let in_c_order = side.order == Order::C || count < 2;
    if in_c_order && domain == *shape {
        return push(ranges, range, at);
    }
    // Consecutive numbers are neighbours along the fastest dimension of the array. In the domain,
    // which is in C order, they are neighbours only if the array is in C order too.
    let fastest = if in_c_order { count - 1 } else { 0 };
    let mut number = range.first;
    while number < range.end() {
        let point = side.order.point(number, shape);
        let length = (shape[fastest] - point[fastest]).min(range.end() - number);
        let inside = |dim: usize| {
            dim == fastest || (region.lower()[dim]..region.upper()[dim]).contains(&point[dim])
        };
        let from = point[fastest].max(region.lower()[fastest]);
        let to = (point[fastest] + length).min(region.upper()[fastest]);
        if (0..count).all(inside) && from < to {
            let at = at + (number - range.first) + (from - point[fastest]);
            let mut first =
                Dims::from_fn(count, |dim| point[dim].saturating_sub(region.lower()[dim]));
            first[fastest] = from - region.lower()[fastest];
            let step = if in_c_order { to - from } else { 1 };
            push_row(&domain, (first, fastest), (to - from, step), at, ranges);
        }
        number += length;
    }
}

/// Adds `length` elements along a dimension from a point of the domain on, as ranges of `step`
/// elements. `at` is the number of the first element among the own elements.
fn push_row(
    domain: &Dims,
    (mut point, dim): (Dims, usize),
    (length, step): (u64, u64),
    at: u64,
    ranges: &mut Vec<OwnedRange>,
) {
    let begin = point[dim];
    for index in (0..length).step_by(step as usize) {
        point[dim] = begin + index;
        let range = IndexRange {
            first: Order::C.number(&point, domain),
            length: step,
        };
        push(ranges, range, at + index);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Decomposition, Region};

    #[test]
    fn numbers_are_cut_to_the_region_and_counted_there() {
        let decomposition = Decomposition::indices(&[4, 5], 1).unwrap();
        let side = Side::new(decomposition).region(Region::new(&[1, 1], &[3, 4]).unwrap());
        // 5, 6, 7 are [1, 0..3]; 14 and 15 are [2, 4] and [3, 0]; 13 is [2, 3].
        let parts = Ownership::indices([5, 6, 7, 14, 15, 13]);
        let range = |first, length, at| OwnedRange {
            range: IndexRange { first, length },
            at,
        };
        assert_eq!(
            owned_ranges(&side, 0, &parts).unwrap(),
            [range(0, 2, 1), range(5, 1, 5)]
        );
        // In Fortran order 5 is [1, 1] and 6 is [2, 1], below it.
        let side = side.order(Order::Fortran);
        assert_eq!(
            owned_ranges(&side, 0, &parts).unwrap(),
            [
                range(0, 1, 0),
                range(3, 1, 1),
                range(5, 1, 3),
                range(2, 1, 5)
            ]
        );
    }

    #[test]
    fn boxes_are_taken_row_by_row_and_whole_rows_as_one() {
        let side = Side::new(Decomposition::boxes(&[4, 5], 1).unwrap());
        let parts = Ownership::Boxes(vec![
            Region::new(&[0, 3], &[2, 5]).unwrap(),
            Region::new(&[2, 0], &[4, 5]).unwrap(),
        ]);
        let range = |first, length, at| OwnedRange {
            range: IndexRange { first, length },
            at,
        };
        assert_eq!(
            owned_ranges(&side, 0, &parts).unwrap(),
            [range(3, 2, 0), range(8, 12, 2)]
        );
    }
}
