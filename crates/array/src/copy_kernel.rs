//! Copies elements between two memories with different layouts.

/// Copies bytes that are contiguous in both memories, between slices of the same length.
pub type CopyBytes = fn(&[u8], &mut [u8]);

/// The most loops of a copy: two for each dimension.
pub(crate) const MOST_LOOPS: usize = 2 * crate::MOST_DIMS;

/// A loop with a constant step in each memory, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct StridedLoop {
    pub extent: usize,
    pub from: isize,
    pub to: isize,
}

/// Copies with the standard library.
pub(crate) fn plain(from: &[u8], to: &mut [u8]) {
    to.copy_from_slice(from);
}

/// A copy of elements of `size` bytes by nested loops, in any order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LoopNest {
    loops: [StridedLoop; MOST_LOOPS],
    count: usize,
    size: usize,
    /// Whether the two innermost loops transpose a plane. Known once the loops are arranged.
    transposes: bool,
}

/// The offsets of an element in both memories, in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ByteOffsets {
    pub from: isize,
    pub to: isize,
}

impl ByteOffsets {
    fn go(self, by: &StridedLoop, steps: usize) -> ByteOffsets {
        ByteOffsets {
            from: self.from + by.from * steps as isize,
            to: self.to + by.to * steps as isize,
        }
    }
}

/// The edge of the square that is transposed at once, in elements: eight doubles are a cache line
/// of 64 bytes.
const SQUARE: usize = 8;

/// How many elements of a row are read before the next rows.
const TILE: usize = 512;

impl LoopNest {
    pub fn new(size: usize) -> Self {
        Self {
            loops: [StridedLoop::default(); MOST_LOOPS],
            count: 0,
            size,
            transposes: false,
        }
    }

    pub fn push(&mut self, one: StridedLoop) {
        if one.extent != 1 {
            self.loops[self.count] = one;
            self.count += 1;
        }
    }

    /// Copies from one memory to the other; `bytes` copies contiguous elements of a size without a
    /// kernel of its own.
    ///
    /// # Panics
    /// If an element lies outside of a memory.
    pub fn copy(self, at: ByteOffsets, from: &[u8], to: &mut [u8], bytes: CopyBytes) {
        if !self.is_empty() {
            self.arranged().run(at, from, to, bytes);
        }
    }

    /// Whether there is no element to copy.
    pub fn is_empty(&self) -> bool {
        self.size == 0 || self.loops[..self.count].iter().any(|one| one.extent == 0)
    }

    /// As [`LoopNest::copy`], by loops with elements that are arranged already.
    pub fn run(&self, at: ByteOffsets, from: &[u8], to: &mut [u8], bytes: CopyBytes) {
        match self.size {
            1 => self.all(at, from, to, &FixedSize::<1>),
            2 => self.all(at, from, to, &FixedSize::<2>),
            4 => self.all(at, from, to, &FixedSize::<4>),
            8 => self.all(at, from, to, &FixedSize::<8>),
            16 => self.all(at, from, to, &FixedSize::<16>),
            24 => self.all(at, from, to, &FixedSize::<24>),
            32 => self.all(at, from, to, &FixedSize::<32>),
            48 => self.all(at, from, to, &FixedSize::<48>),
            64 => self.all(at, from, to, &FixedSize::<64>),
            size => self.all(at, from, to, &AnySize { size, copy: bytes }),
        }
    }

    /// Whether the copy is one contiguous piece of `length` bytes.
    pub fn is_one_piece(self, length: usize) -> bool {
        let arranged = self.arranged();
        arranged.count == 0 && arranged.size == length
    }

    /// The same copy with its loops sorted so that memory is written in order, except in a plane to
    /// be transposed. Loops that continue each other are joined.
    pub fn arranged(mut self) -> Self {
        self.join();
        let (loops, count) = (&mut self.loops[..self.count], self.count);
        // The loop with the smallest step in the memory that is read. Unless that is the innermost
        // loop, the copy is a transposition.
        let nearest =
            (0..count).min_by_key(|place| (loops[*place].from.unsigned_abs(), count - place));
        if let Some(nearest) = nearest.filter(|nearest| nearest + 1 < count) {
            loops[nearest..count - 1].rotate_left(1);
            self.transposes = true;
        }
        self
    }

    /// Sorts the loops so that memory is written in order, joins loops that continue each other,
    /// and joins contiguous elements to larger ones.
    fn join(&mut self) {
        self.loops[..self.count].sort_by_key(|one| std::cmp::Reverse(one.to.unsigned_abs()));
        let mut kept = 0;
        for at in 0..self.count {
            let inner = self.loops[at];
            let follows = |outer: &StridedLoop| {
                let extent = inner.extent as isize;
                outer.from == inner.from * extent && outer.to == inner.to * extent
            };
            if kept > 0 && follows(&self.loops[kept - 1]) {
                let extent = self.loops[kept - 1].extent * inner.extent;
                self.loops[kept - 1] = StridedLoop { extent, ..inner };
            } else {
                self.loops[kept] = inner;
                kept += 1;
            }
        }
        self.count = kept;
        if let Some(last) = self.loops[..self.count].last()
            && (last.from, last.to) == (self.size as isize, self.size as isize)
        {
            self.size *= last.extent;
            self.count -= 1;
        }
    }

    fn all(&self, at: ByteOffsets, from: &[u8], to: &mut [u8], element: &impl ElementCopy) {
        let loops = &self.loops[..self.count];
        match loops {
            [] => element.copy(at, from, to),
            [outer @ .., first, second] if self.transposes => {
                each(outer, at, &mut |at| {
                    tiles(at, first, second, from, to, element)
                });
            }
            [outer @ .., row] => each(outer, at, &mut |at| line(at, row, from, to, element)),
        }
    }
}

/// Calls `place` for the offsets of every iteration of the loops.
fn each(loops: &[StridedLoop], at: ByteOffsets, place: &mut impl FnMut(ByteOffsets)) {
    let Some((outer, inner)) = loops.split_first() else {
        return place(at);
    };
    for step in 0..outer.extent {
        each(inner, at.go(outer, step), place);
    }
}

/// Copies a row of elements.
#[inline(always)]
fn line(
    mut at: ByteOffsets,
    row: &StridedLoop,
    from: &[u8],
    to: &mut [u8],
    element: &impl ElementCopy,
) {
    if element.row(at, row, from, to) {
        return;
    }
    for _ in 0..row.extent {
        element.copy(at, from, to);
        at = ByteOffsets {
            from: at.from + row.from,
            to: at.to + row.to,
        };
    }
}

/// Transposes a plane: rows in one memory are columns in the other. The plane is cut into squares
/// whose rows are cache lines.
///
/// Tiles of [`TILE`] elements are read, so that a cache line is still in the cache when the next
/// square needs the rest of the line. Squares begin at cache lines in both memories; otherwise many
/// lines would be fetched twice.
fn tiles(
    at: ByteOffsets,
    outer: &StridedLoop,
    inner: &StridedLoop,
    from: &[u8],
    to: &mut [u8],
    element: &impl ElementCopy,
) {
    let lead = |memory: &[u8], at: isize, step: isize| {
        let line = SQUARE * step.unsigned_abs();
        if line == 0 {
            0
        } else {
            (line - (memory.as_ptr() as usize + at as usize) % line) % line / step.unsigned_abs()
        }
    };
    let first = (lead(from, at.from, outer.from), lead(to, at.to, inner.to));
    for (tile, length) in steps(0, outer.extent, first.0, TILE) {
        for (column, columns) in steps(0, inner.extent, first.1, SQUARE) {
            for (row, rows) in steps(tile, tile + length, 0, SQUARE) {
                let corner = at.go(outer, row).go(inner, column);
                if (rows, columns) == (SQUARE, SQUARE)
                    && element.transpose(corner, outer, inner, from, to)
                {
                    continue;
                }
                for step in 0..rows {
                    line(
                        corner.go(outer, step),
                        &StridedLoop {
                            extent: columns,
                            ..*inner
                        },
                        from,
                        to,
                        element,
                    );
                }
            }
        }
    }
}

/// Cuts the range from `begin` to `end` into a first part of `lead` and parts of `step`; gives the
/// start and the length of each part.
fn steps(
    begin: usize,
    end: usize,
    lead: usize,
    step: usize,
) -> impl Iterator<Item = (usize, usize)> {
    let mut at = begin;
    std::iter::from_fn(move || {
        let length = if at == begin && lead > 0 { lead } else { step }.min(end - at);
        let here = at;
        at += length;
        (length > 0).then_some((here, length))
    })
}

/// An element: of a size that the compiler knows, or of any other size.
trait ElementCopy {
    fn copy(&self, at: ByteOffsets, from: &[u8], to: &mut [u8]);

    /// Copies a row if both steps are whole elements forward, without a check at each element.
    /// Returns false if the steps are others.
    fn row(&self, _at: ByteOffsets, _row: &StridedLoop, _from: &[u8], _to: &mut [u8]) -> bool {
        false
    }

    /// Transposes a square of contiguous rows in registers, and writes contiguous columns. Returns
    /// false if rows or columns are not contiguous.
    fn transpose(
        &self,
        _at: ByteOffsets,
        _outer: &StridedLoop,
        _inner: &StridedLoop,
        _from: &[u8],
        _to: &mut [u8],
    ) -> bool {
        false
    }
}

struct FixedSize<const SIZE: usize>;

struct AnySize {
    size: usize,
    copy: CopyBytes,
}

impl<const SIZE: usize> ElementCopy for FixedSize<SIZE> {
    #[inline(always)]
    fn copy(&self, at: ByteOffsets, from: &[u8], to: &mut [u8]) {
        let from = from[at.from as usize..]
            .first_chunk::<SIZE>()
            .expect("within the array");
        *to[at.to as usize..]
            .first_chunk_mut::<SIZE>()
            .expect("within the array") = *from;
    }

    #[inline(always)]
    fn row(&self, at: ByteOffsets, row: &StridedLoop, from: &[u8], to: &mut [u8]) -> bool {
        let forward = |at: isize, step: isize| {
            step > 0 && step % SIZE as isize == 0 && at % SIZE as isize == 0
        };
        if row.extent < 4 || !forward(at.from, row.from) || !forward(at.to, row.to) {
            return false;
        }
        let (near, far) = (row.from as usize / SIZE, row.to as usize / SIZE);
        let begin = (at.from as usize / SIZE, at.to as usize / SIZE);
        let from = &from.as_chunks::<SIZE>().0[begin.0..][..near * (row.extent - 1) + 1];
        let to = &mut to.as_chunks_mut::<SIZE>().0[begin.1..][..far * (row.extent - 1) + 1];
        if near == 1 {
            to.iter_mut()
                .step_by(far)
                .zip(from)
                .for_each(|(to, from)| *to = *from);
        } else if far == 1 {
            to.iter_mut()
                .zip(from.iter().step_by(near))
                .for_each(|(to, from)| *to = *from);
        } else {
            to.iter_mut()
                .step_by(far)
                .zip(from.iter().step_by(near))
                .for_each(|(to, from)| *to = *from);
        }
        true
    }

    #[inline(always)]
    fn transpose(
        &self,
        at: ByteOffsets,
        outer: &StridedLoop,
        inner: &StridedLoop,
        from: &[u8],
        to: &mut [u8],
    ) -> bool {
        if (outer.from, inner.to) != (SIZE as isize, SIZE as isize) || SIZE > 16 {
            return false;
        }
        let mut square = [[[0; SIZE]; SQUARE]; SQUARE];
        for (step, row) in square.iter_mut().enumerate() {
            let begin = at.go(inner, step).from as usize;
            row.as_flattened_mut()
                .copy_from_slice(&from[begin..begin + SQUARE * SIZE]);
        }
        let columns: [[[u8; SIZE]; SQUARE]; SQUARE] =
            std::array::from_fn(|column| std::array::from_fn(|row| square[row][column]));
        for (step, column) in columns.iter().enumerate() {
            let begin = at.go(outer, step).to as usize;
            to[begin..begin + SQUARE * SIZE].copy_from_slice(column.as_flattened());
        }
        true
    }
}

impl ElementCopy for AnySize {
    fn copy(&self, at: ByteOffsets, from: &[u8], to: &mut [u8]) {
        (self.copy)(
            &from[at.from as usize..][..self.size],
            &mut to[at.to as usize..][..self.size],
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(size: usize, at: ByteOffsets, loops: &[StridedLoop]) {
        let from: Vec<u8> = (0..40_000).map(|n| (n * 7 % 251) as u8).collect();
        let (mut got, mut expected) = (vec![0; 40_000], vec![0; 40_000]);
        each(loops, at, &mut |at| {
            AnySize { size, copy: plain }.copy(at, &from, &mut expected)
        });
        let mut copy = LoopNest::new(size);
        loops.iter().for_each(|one| copy.push(*one));
        copy.copy(at, &from, &mut got, plain);
        assert_eq!(got, expected, "{size} bytes by {loops:?}");
    }

    #[test]
    fn every_order_of_loops_copies_the_same() {
        let one = |extent, from, to| StridedLoop { extent, from, to };
        let start = ByteOffsets { from: 40, to: 24 };
        for size in [1, 2, 3, 4, 8, 12, 16] {
            let step = size as isize;
            check(size, start, &[]);
            check(size, start, &[one(0, 1, 1), one(5, step, step)]);
            check(
                size,
                start,
                &[one(3, 20 * step, 5 * step), one(5, step, step)],
            );
            check(
                size,
                start,
                &[one(3, step, 5 * step), one(5, 4 * step, step)],
            );
            check(
                size,
                start,
                &[one(3, 5 * step, step), one(5, step, 3 * step)],
            );
            check(
                size,
                start,
                &[one(37, 41 * step, step), one(41, step, 37 * step)],
            );
            check(
                size,
                start,
                &[one(37, 60 * step, 2 * step), one(29, step, 80 * step)],
            );
            check(
                size,
                start,
                &[
                    one(2, step, 12 * step),
                    one(3, 2 * step, 4 * step),
                    one(4, 6 * step, step),
                ],
            );
            check(
                size,
                start,
                &[
                    one(2, 12 * step, 12 * step),
                    one(3, 4 * step, 4 * step),
                    one(4, step, step),
                ],
            );
            check(
                size,
                ByteOffsets { from: 1200, to: 24 },
                &[one(3, -20 * step, 5 * step), one(5, -step, step)],
            );
        }
    }

    #[test]
    fn what_lies_together_is_one_element() {
        let mut copy = LoopNest::new(8);
        for (extent, step) in [(2, 240), (3, 80), (10, 8)] {
            copy.push(StridedLoop {
                extent,
                from: step,
                to: step,
            });
        }
        let copy = copy.arranged();
        assert_eq!((copy.count, copy.size), (0, 480));
    }
}
