//! Copies between arrays of different layouts.

use smallvec::SmallVec;
use titin_runtime::StorageOrder;

/// Bytes from each element to the next in each dimension.
pub(crate) type Strides = SmallVec<[isize; 4]>;

/// Elements along the side of a tile. Two tiles of the largest element, 16 bytes, take 32 KiB: a
/// first-level cache.
const TILE: usize = 32;

/// A dimension for the copy: extent, and bytes from each element to the next on both sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Dimension {
    extent: usize,
    from: isize,
    to: isize,
}

impl Dimension {
    /// The dimension of a single element.
    const ONE: Dimension = Dimension {
        extent: 1,
        from: 0,
        to: 0,
    };
}

/// Strides in bytes of a contiguous array.
pub(crate) fn contiguous(shape: &[u64], size: usize, order: StorageOrder) -> Strides {
    let mut strides = Strides::from_elem(0, shape.len());
    let mut next = size as isize;
    let mut place = |index: usize| {
        strides[index] = next;
        next = next.wrapping_mul(shape[index] as isize);
    };
    match order {
        StorageOrder::C => (0..shape.len()).rev().for_each(&mut place),
        StorageOrder::Fortran => (0..shape.len()).for_each(&mut place),
    }
    strides
}

/// The order in which strides are contiguous, if any; the preferred order if both orders fit.
pub(crate) fn order_of(
    shape: &[u64],
    strides: &[isize],
    size: usize,
    preferred: StorageOrder,
) -> Option<StorageOrder> {
    let fits = |order: &StorageOrder| {
        let wanted = contiguous(shape, size, *order);
        // An extent of 1 has no next element, and an empty array no element.
        shape.contains(&0) || (0..shape.len()).all(|i| shape[i] == 1 || wanted[i] == strides[i])
    };
    [preferred, StorageOrder::C, StorageOrder::Fortran]
        .into_iter()
        .find(fits)
}

/// Copies each element to the same index of another array.
///
/// # Safety
/// `strides` are in bytes for each dimension of `shape`. Every element of `from` may be read, every
/// element of `to` may be written, and no element of `to` overlaps an element of `from`.
pub(crate) unsafe fn copy(
    shape: &[u64],
    size: usize,
    from: (*const u8, &[isize]),
    to: (*mut u8, &[isize]),
) {
    if shape.contains(&0) {
        return;
    }
    let dimensions = arrange(shape, from.1, to.1);
    // SAFETY: the elements of the caller, in another order; the element's size is as given.
    unsafe {
        match size {
            1 => copy_all::<1>(&dimensions, from.0, to.0),
            2 => copy_all::<2>(&dimensions, from.0, to.0),
            4 => copy_all::<4>(&dimensions, from.0, to.0),
            8 => copy_all::<8>(&dimensions, from.0, to.0),
            _ => copy_all::<16>(&dimensions, from.0, to.0),
        }
    }
}

/// The dimensions from the slowest to the fastest of the target. Dimensions that form a single run
/// on both sides are merged.
fn arrange(shape: &[u64], from: &[isize], to: &[isize]) -> Vec<Dimension> {
    let mut all: Vec<Dimension> = (0..shape.len())
        .map(|i| Dimension {
            extent: shape[i] as usize,
            from: from[i],
            to: to[i],
        })
        .filter(|dimension| dimension.extent > 1)
        .collect();
    all.sort_by_key(|dimension| std::cmp::Reverse(dimension.to.unsigned_abs()));
    let mut merged: Vec<Dimension> = Vec::with_capacity(all.len());
    for inner in all {
        match merged.last_mut() {
            Some(outer)
                if outer.from == inner.from.wrapping_mul(inner.extent as isize)
                    && outer.to == inner.to.wrapping_mul(inner.extent as isize) =>
            {
                *outer = Dimension {
                    extent: outer.extent * inner.extent,
                    ..inner
                };
            }
            _ => merged.push(inner),
        }
    }
    merged
}

/// # Safety
/// As [`copy`], for elements of `SIZE` bytes.
unsafe fn copy_all<const SIZE: usize>(dimensions: &[Dimension], from: *const u8, to: *mut u8) {
    let Some((inner, outer)) = dimensions.split_last() else {
        // SAFETY: there is only a single element.
        return unsafe { copy_run::<SIZE>(Dimension::ONE, from, to) };
    };
    let (across, outer) = tiled_with(*inner, outer);
    let mut odometer = Odometer {
        index: vec![0; outer.len()],
        dimensions: outer,
        from,
        to,
    };
    loop {
        // SAFETY: all indices of the two dimensions at an index of the others within the shape.
        unsafe { copy_plane::<SIZE>(*inner, across, odometer.from, odometer.to) };
        if !odometer.advance() {
            return;
        }
    }
}

/// The dimension to walk in tiles together with the innermost dimension, and the other dimensions.
/// If the source runs fastest along another dimension than the target, tiles use whole cache lines
/// of both.
fn tiled_with(inner: Dimension, outer: &[Dimension]) -> (Dimension, Vec<Dimension>) {
    let step = |dimension: &Dimension| dimension.from.unsigned_abs();
    let mut rest = outer.to_vec();
    let across = (0..rest.len())
        .min_by_key(|i| step(&rest[*i]))
        .filter(|i| step(&rest[*i]) < step(&inner))
        .map_or(Dimension::ONE, |index| rest.remove(index));
    (across, rest)
}

/// An index of several dimensions, the last dimension fastest, with the elements at the index on
/// both sides.
struct Odometer {
    dimensions: Vec<Dimension>,
    index: Vec<usize>,
    from: *const u8,
    to: *mut u8,
}

impl Odometer {
    /// Goes on to the next index; false after the last.
    fn advance(&mut self) -> bool {
        for (index, dimension) in self.index.iter_mut().zip(&self.dimensions).rev() {
            *index += 1;
            self.from = self.from.wrapping_offset(dimension.from);
            self.to = self.to.wrapping_offset(dimension.to);
            if *index < dimension.extent {
                return true;
            }
            *index = 0;
            let extent = dimension.extent as isize;
            let back = |step: isize| step.wrapping_mul(extent).wrapping_neg();
            self.from = self.from.wrapping_offset(back(dimension.from));
            self.to = self.to.wrapping_offset(back(dimension.to));
        }
        false
    }
}

/// # Safety
/// As [`copy`], for the dimensions `inner` and `across`.
unsafe fn copy_plane<const SIZE: usize>(
    inner: Dimension,
    across: Dimension,
    from: *const u8,
    to: *mut u8,
) {
    let step = if across.extent == 1 {
        inner.extent
    } else {
        TILE
    };
    for column in (0..inner.extent).step_by(step) {
        for row_tile in (0..across.extent).step_by(TILE) {
            for row in row_tile..across.extent.min(row_tile + TILE) {
                let offset = |inner_step: isize, across_step: isize| {
                    inner_step
                        .wrapping_mul(column as isize)
                        .wrapping_add(across_step.wrapping_mul(row as isize))
                };
                let run = Dimension {
                    extent: step.min(inner.extent - column),
                    ..inner
                };
                let source = from.wrapping_offset(offset(inner.from, across.from));
                let target = to.wrapping_offset(offset(inner.to, across.to));
                // SAFETY: a part of a row of the plane.
                unsafe { copy_run::<SIZE>(run, source, target) };
            }
        }
    }
}

/// # Safety
/// As [`copy`], for the dimension `run` alone.
unsafe fn copy_run<const SIZE: usize>(run: Dimension, from: *const u8, to: *mut u8) {
    if run.from == SIZE as isize && run.to == SIZE as isize {
        // SAFETY: the run lies in one piece on both sides, and the sides do not overlap.
        return unsafe { std::ptr::copy_nonoverlapping(from, to, run.extent * SIZE) };
    }
    for index in 0..run.extent as isize {
        let source = from
            .wrapping_offset(run.from.wrapping_mul(index))
            .cast::<[u8; SIZE]>();
        let target = to
            .wrapping_offset(run.to.wrapping_mul(index))
            .cast::<[u8; SIZE]>();
        // SAFETY: a single element; as bytes, the element needs no alignment.
        unsafe { target.write(source.read()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Element by element, as the definition says.
    fn expected(
        shape: &[u64],
        size: usize,
        from: (&[u8], isize, &[isize]),
        to: &[isize],
    ) -> Vec<u8> {
        let count: u64 = shape.iter().product();
        let mut out = vec![0; count as usize * size];
        for number in 0..count {
            let (mut rest, mut source, mut target) = (number, from.1, 0);
            for i in (0..shape.len()).rev() {
                let index = (rest % shape[i]) as isize;
                rest /= shape[i];
                source += index * from.2[i];
                target += index * to[i];
            }
            let (source, target) = (source as usize, target as usize);
            out[target..target + size].copy_from_slice(&from.0[source..source + size]);
        }
        out
    }

    fn check(shape: &[u64], size: usize, start: isize, strides: &[isize], order: StorageOrder) {
        let memory: Vec<u8> = (0..1 << 18)
            .map(|i: u32| (i.wrapping_mul(2_654_435_761) >> 13) as u8)
            .collect();
        let to = contiguous(shape, size, order);
        let count: u64 = shape.iter().product();
        let mut out = vec![0u8; count as usize * size];
        // SAFETY: the strides stay within `memory`, or the oracle beside would panic; `out` has
        // room for all.
        unsafe {
            copy(
                shape,
                size,
                (memory.as_ptr().wrapping_offset(start), strides),
                (out.as_mut_ptr(), &to),
            )
        };
        assert_eq!(
            out,
            expected(shape, size, (&memory, start, strides), &to),
            "{shape:?} {strides:?}"
        );
    }

    #[test]
    fn every_element_finds_its_place() {
        for order in [StorageOrder::C, StorageOrder::Fortran] {
            for size in [1, 2, 4, 8, 16] {
                let s = size as isize;
                check(&[], size, 16, &[], order);
                check(&[7], size, 0, &[3 * s], order);
                check(&[7], size, 6 * s, &[-s], order);
                check(&[5, 4], size, 0, &[s, 5 * s], order);
                check(&[70, 45], size, 0, &[s, 70 * s], order);
                check(&[3, 0, 2], size, 0, &[s, s, s], order);
                check(&[4, 1, 6], size, 0, &[6 * s, 999, s], order);
                check(&[6, 5, 4], size, 0, &[2 * s, 12 * s, 60 * s], order);
                check(
                    &[6, 5, 4],
                    size,
                    5 * 2 * s,
                    &[-2 * s, 60 * s, 12 * s],
                    order,
                );
                check(
                    &[3, 35, 36, 2],
                    size,
                    0,
                    &[s, 3 * s, 105 * s, 3780 * s],
                    order,
                );
                check(&[5, 6], size, 0, &[0, s], order);
            }
        }
    }

    #[test]
    fn what_lies_in_one_piece_is_seen() {
        let shape = [3, 4];
        for order in [StorageOrder::C, StorageOrder::Fortran] {
            let strides = contiguous(&shape, 8, order);
            assert_eq!(order_of(&shape, &strides, 8, StorageOrder::C), Some(order));
        }
        assert_eq!(
            order_of(&[5], &[8], 8, StorageOrder::Fortran),
            Some(StorageOrder::Fortran),
            "both are true"
        );
        assert_eq!(order_of(&[5], &[16], 8, StorageOrder::C), None);
        assert_eq!(
            order_of(&[1, 5], &[999, 8], 8, StorageOrder::C),
            Some(StorageOrder::C),
            "an extent of one has no stride"
        );
        assert_eq!(
            order_of(&[2, 0], &[1, 1], 8, StorageOrder::C),
            Some(StorageOrder::C)
        );
        let c = contiguous(&[6, 5, 4], 8, StorageOrder::C);
        let merged = arrange(&[6, 5, 4], &c, &c);
        assert_eq!(
            merged,
            [Dimension {
                extent: 120,
                from: 8,
                to: 8
            }]
        );
    }
}
