//! The plan of a copy: the loops over the elements of a shared piece, between two arrays or an
//! array and a message.

use std::cmp::Reverse;
use std::ops::Range;

use crate::copy_kernel::{ByteOffsets, LoopNest, StridedLoop};
use crate::local_layout::LocalBlock;
use crate::strided_indices::{AxisIndices, Span};
use crate::{Dims, MOST_DIMS, Order};

/// One end of a copy: the place of index 0, and the distances of neighbours, in elements.
pub(crate) struct ElementStrides {
    offset: i64,
    strides: Dims<i64>,
}

impl ElementStrides {
    pub fn of(block: &LocalBlock) -> Self {
        Self {
            offset: block.offset as i64,
            strides: block.strides,
        }
    }
}

/// Indices along one dimension at both ends: `count` ranges of `length` indices, at constant steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stretch {
    from: u64,
    to: u64,
    length: u64,
    count: u64,
    from_step: u64,
    to_step: u64,
}

/// The stretches of a shared piece along each dimension. Loops copy every combination of stretches.
pub(crate) struct CopyPlan {
    stretches: [Vec<Stretch>; MOST_DIMS],
    dims: usize,
    pub elements: u64,
    size: usize,
}

impl CopyPlan {
    /// The plan from the indices of an array to those of a message.
    pub fn new<'a>(axes: impl Iterator<Item = &'a AxisIndices>, size: usize) -> Self {
        let mut plan = Self {
            stretches: Default::default(),
            dims: 0,
            elements: 1,
            size,
        };
        for axis in axes {
            push_into_message(axis, &mut plan.stretches[plan.dims]);
            plan.dims += 1;
            plan.elements *= axis.total();
        }
        plan
    }

    /// The plan from the indices of an array to those of an array of another rank.
    pub fn between_arrays<'a>(
        axes: impl Iterator<Item = (&'a AxisIndices, &'a AxisIndices)>,
        size: usize,
    ) -> Self {
        let mut plan = Self {
            stretches: Default::default(),
            dims: 0,
            elements: 1,
            size,
        };
        for (one, other) in axes {
            push_between_arrays(one, other, &mut plan.stretches[plan.dims]);
            plan.dims += 1;
            plan.elements *= one.total();
        }
        plan
    }

    /// The strides of the piece in a message, which begins with element `begin`.
    pub fn dense(&self, order: Order, begin: u64) -> ElementStrides {
        let strides = order.strides(&self.extents());
        ElementStrides {
            offset: begin as i64,
            strides: Dims::from_fn(self.dims, |dim| strides[dim] as i64),
        }
    }

    /// Cuts a range of the elements of a message into plans of boxes, as large as possible, whose
    /// elements are contiguous in the message. `part` gets each plan and the number of its first
    /// element.
    pub fn parts(&self, order: Order, range: Range<u64>, mut part: impl FnMut(CopyPlan, u64)) {
        let extents = self.extents();
        let (strides, mut at) = (order.strides(&extents), range.start);
        while at < range.end {
            let point = order.point(at, &extents);
            let mut bounds = Dims::from_fn(self.dims, |dim| (point[dim], point[dim] + 1));
            let mut count = 1;
            for dim in order.fastest_first(self.dims) {
                let rows = ((range.end - at) / strides[dim]).min(extents[dim] - point[dim]);
                if rows == 0 {
                    break;
                }
                (bounds[dim].1, count) = (point[dim] + rows, rows * strides[dim]);
                if rows < extents[dim] {
                    break;
                }
            }
            part(self.within(&bounds), at);
            at += count;
        }
    }

    /// The plan of a box of the message.
    fn within(&self, bounds: &[(u64, u64)]) -> CopyPlan {
        let mut part = CopyPlan {
            stretches: Default::default(),
            dims: self.dims,
            elements: 1,
            size: self.size,
        };
        for (dim, (lower, upper)) in bounds.iter().enumerate() {
            self.stretches[dim]
                .iter()
                .for_each(|stretch| stretch.within(*lower, *upper, &mut part.stretches[dim]));
            part.elements *= upper - lower;
        }
        part
    }

    /// The number of indices along each dimension.
    fn extents(&self) -> Dims {
        let total = |stretches: &Vec<Stretch>| {
            stretches
                .iter()
                .map(|stretch| stretch.length * stretch.count)
                .sum()
        };
        Dims::from_fn(self.dims, |dim| total(&self.stretches[dim]))
    }

    /// Exchanges both ends.
    pub fn reverse(&mut self) {
        for stretch in self.stretches.iter_mut().flatten() {
            *stretch = Stretch {
                from: stretch.to,
                to: stretch.from,
                from_step: stretch.to_step,
                to_step: stretch.from_step,
                ..*stretch
            };
        }
    }

    /// Calls `copy` for every combination of stretches, in the order of the memory that is written.
    pub fn execute(
        &mut self,
        from: &ElementStrides,
        to: &ElementStrides,
        mut copy: impl FnMut(LoopNest, ByteOffsets),
    ) {
        if self.stretches[..self.dims].iter().any(Vec::is_empty) {
            return;
        }
        let mut order: Dims<usize> = Dims::from_fn(self.dims, |dim| dim);
        order.sort_by_key(|dim| Reverse(to.strides[*dim].unsigned_abs()));
        self.cut(&order);
        let mut chosen: Dims<usize> = Dims::all(self.dims, 0);
        loop {
            let (loops, offsets) = self.loops(&chosen, from, to);
            copy(loops, offsets);
            let has_more = |place: &usize| {
                let dim = order[*place];
                chosen[dim] + 1 < self.stretches[dim].len()
            };
            let Some(place) = (0..self.dims).rev().find(has_more) else {
                return;
            };
            chosen[order[place]] += 1;
            order[place + 1..].iter().for_each(|dim| chosen[*dim] = 0);
        }
    }

    /// The loops of a combination of stretches, one of each dimension, and the offsets of their
    /// first element.
    fn loops(
        &self,
        chosen: &Dims<usize>,
        from: &ElementStrides,
        to: &ElementStrides,
    ) -> (LoopNest, ByteOffsets) {
        let size = self.size as i64;
        let mut loops = LoopNest::new(self.size);
        let mut first = (from.offset, to.offset);
        for (dim, stretches) in self.stretches[..self.dims].iter().enumerate() {
            let stretch = &stretches[chosen[dim]];
            let (near, far) = (from.strides[dim], to.strides[dim]);
            first.0 += stretch.from as i64 * near;
            first.1 += stretch.to as i64 * far;
            let steps = (
                near * stretch.from_step as i64,
                far * stretch.to_step as i64,
            );
            for (extent, (near, far)) in [(stretch.count, steps), (stretch.length, (near, far))] {
                loops.push(StridedLoop {
                    extent: extent as usize,
                    from: (near * size) as isize,
                    to: (far * size) as isize,
                });
            }
        }
        let offsets = ByteOffsets {
            from: (first.0 * size) as isize,
            to: (first.1 * size) as isize,
        };
        (loops, offsets)
    }

    /// Cuts the outer dimensions into groups of rows that fit the cache, if a row has several
    /// stretches, so that each stretch is copied for a whole group.
    fn cut(&mut self, order: &[usize]) {
        let Some((fastest, others)) = order.split_last() else {
            return;
        };
        let row: u64 = self.stretches[*fastest]
            .iter()
            .map(|stretch| stretch.length * stretch.count)
            .sum();
        if self.stretches[*fastest].len() < 2 {
            return;
        }
        let most = (AT_ONCE / row.max(1)).max(1);
        for dim in others {
            let stretches = &mut self.stretches[*dim];
            *stretches = stretches
                .iter()
                .flat_map(|stretch| stretch.cut(most))
                .collect();
        }
    }
}

#[cfg(test)]
impl CopyPlan {
    pub fn most_stretches(&self) -> usize {
        self.stretches.iter().map(Vec::len).max().unwrap_or(0)
    }
}

/// The most elements in a group of rows that stays in the cache, beside the memory that is written.
const AT_ONCE: u64 = 8192;

/// Adds the stretches from an axis to a message, in which the indices are contiguous.
fn push_into_message(axis: &AxisIndices, stretches: &mut Vec<Stretch>) {
    let mut one = |span: &Span, to, count, from_step, to_step| {
        stretches.push(Stretch {
            from: span.at,
            to,
            length: span.length,
            count,
            from_step,
            to_step,
        });
    };
    match axis {
        AxisIndices::One(span) => one(span, 0, 1, 0, 0),
        AxisIndices::Many(pattern) => {
            let width: u64 = pattern.spans.iter().map(|span| span.length).sum();
            let mut to = 0;
            for span in &pattern.spans {
                one(span, to, pattern.count, pattern.step, width);
                to += span.length;
            }
            to = width * pattern.count;
            for span in &pattern.tail {
                one(span, to, 1, 0, 0);
                to += span.length;
            }
        }
    }
}

/// Adds the stretches from one axis to another, cut at the spans of both. Ranges that repeat with
/// constant steps are one stretch.
fn push_between_arrays(from: &AxisIndices, to: &AxisIndices, stretches: &mut Vec<Stretch>) {
    let (mut ours, mut theirs) = (from.spans(), to.spans());
    let (mut one, mut other) = (ours.next(), theirs.next());
    while let (Some(our), Some(their)) = (&mut one, &mut other) {
        let length = our.length.min(their.length);
        let joined = stretches
            .last_mut()
            .is_some_and(|last| last.join(our.at, their.at, length));
        if !joined {
            stretches.push(Stretch {
                from: our.at,
                to: their.at,
                length,
                count: 1,
                from_step: 0,
                to_step: 0,
            });
        }
        for span in [&mut *our, &mut *their] {
            span.at += length;
            span.length -= length;
        }
        if our.length == 0 {
            one = ours.next();
        }
        if their.length == 0 {
            other = theirs.next();
        }
    }
}

impl Stretch {
    /// Cuts the stretch into parts of `most` indices, or a few more.
    fn cut(self, most: u64) -> impl Iterator<Item = Stretch> {
        // The stretch has either several ranges, or one range that may be cut.
        let (steps, by) = if self.count > 1 {
            (self.count, most.div_ceil(self.length))
        } else {
            (self.length, most)
        };
        (0..steps).step_by(by as usize).map(move |begin| {
            let some = by.min(steps - begin);
            if self.count > 1 {
                let (from, to) = (
                    self.from + begin * self.from_step,
                    self.to + begin * self.to_step,
                );
                Stretch {
                    from,
                    to,
                    count: some,
                    ..self
                }
            } else {
                Stretch {
                    from: self.from + begin,
                    to: self.to + begin,
                    length: some,
                    ..self
                }
            }
        })
    }

    /// Adds the part of the stretch between two indices of a message to `stretches`; indices of the
    /// message count from `lower` there.
    fn within(&self, lower: u64, upper: u64, stretches: &mut Vec<Stretch>) {
        let one = |number: u64| {
            let (from, to) = (
                self.from + number * self.from_step,
                self.to + number * self.to_step,
            );
            let (begin, end) = (lower.max(to), upper.min(to + self.length));
            Stretch {
                from: from + (begin - to),
                to: begin - lower,
                length: end - begin,
                count: 1,
                ..*self
            }
        };
        let step = self.to_step.max(1);
        let mut first = (lower + 1)
            .saturating_sub(self.to + self.length)
            .div_ceil(step);
        let mut past = upper.saturating_sub(self.to).div_ceil(step).min(self.count);
        // The first and the last range may be cut.
        if first < past && self.to + first * self.to_step < lower {
            stretches.push(one(first));
            first += 1;
        }
        let last = past.saturating_sub(1);
        let tail = (first < past && self.to + last * self.to_step + self.length > upper)
            .then(|| one(last));
        past -= u64::from(tail.is_some());
        if first < past {
            stretches.push(Stretch {
                count: past - first,
                length: self.length,
                ..one(first)
            });
        }
        stretches.extend(tail);
    }

    /// Adds a range to the stretch if length and steps are those of the stretch.
    fn join(&mut self, from: u64, to: u64, length: u64) -> bool {
        if length != self.length || from < self.from || to < self.to {
            return false;
        }
        let by = (from - self.from, to - self.to);
        if self.count == 1 {
            (self.from_step, self.to_step) = by;
        }
        let joins = by == (self.from_step * self.count, self.to_step * self.count);
        self.count += u64::from(joins);
        joins
    }
}
