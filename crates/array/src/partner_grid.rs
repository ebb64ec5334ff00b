//! The partners of a rank in the grid of a regular side, in closed form.

use crate::partner::{Partner, SharedPiece};
use crate::side::{OwnedProduct, Side};
use crate::strided_indices::{AxisIndices, shared_with_processes};
use crate::{Dims, MOST_DIMS, Order};

/// The partners of one product of a rank in the grid of a regular side. Along each dimension the
/// product shares indices with some processes of the grid, and every combination of such processes
/// is a partner. Partners are computed on request, so time and memory grow with the sum of
/// processes over the dimensions, not with the number of partners.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PartnerGrid {
    /// The number of the array of the rank.
    block: u32,
    /// How many processes the grid has along each dimension.
    grid_extents: Dims,
    /// The order in which ranks are counted in the grid.
    order: Order,
    /// The number of sharing processes along each dimension.
    counts: Dims,
    /// The sharing processes, rising; those of the first dimension first.
    processes: Vec<u32>,
    /// The indices shared with each of these processes.
    pub axes: Vec<AxisIndices>,
}

impl PartnerGrid {
    /// The partners; `None` if nothing is shared, or if the other side is irregular.
    pub fn new(part: &OwnedProduct, other: &Side) -> Option<Self> {
        let grid = other.decomposition.grid()?;
        let (mut processes, mut axes) = (Vec::new(), Vec::new());
        let mut counts = Dims::all(part.indices.len(), 0);
        for (dim, count) in counts.iter_mut().enumerate() {
            let before = axes.len();
            for (process, axis) in
                shared_with_processes(&part.indices[dim], &grid.dimensions[dim], other.clip(dim))
            {
                processes.push(process);
                axes.push(axis);
            }
            *count = (axes.len() - before) as u64;
        }
        let (block, grid_extents, order) = (part.block, grid.procs, grid.order);
        (!counts.contains(&0)).then_some(Self {
            block,
            grid_extents,
            order,
            counts,
            processes,
            axes,
        })
    }

    /// The number of partners.
    pub fn count(&self) -> usize {
        self.counts.volume() as usize
    }

    /// The partner at a place; partners are in the order of their ranks.
    pub fn partner(&self, place: usize) -> Partner {
        let axes = self.places(&self.order.point(place as u64, &self.counts));
        let process = Dims::from_fn(axes.len(), |dim| {
            u64::from(self.processes[axes[dim] as usize])
        });
        let elements = axes
            .iter()
            .map(|axis| self.axes[*axis as usize].total())
            .product();
        Partner {
            rank: self.order.number(&process, &self.grid_extents) as u32,
            elements,
        }
    }

    /// All partners.
    pub fn partners(&self) -> Partners<'_> {
        let (dims, firsts, strides) = (
            self.counts.len(),
            self.firsts(),
            self.order.strides(&self.grid_extents),
        );
        let mut slowest_first: Vec<usize> = self.order.fastest_first(dims).rev().collect();
        let one = |dim: usize, turn: usize| Partner {
            rank: self.processes[firsts[dim] + turn] * strides[dim] as u32,
            elements: self.axes[firsts[dim] + turn].total(),
        };
        let fastest = match slowest_first.pop() {
            Some(dim) => (0..self.counts[dim] as usize)
                .map(|turn| one(dim, turn))
                .collect(),
            None => vec![NEUTRAL],
        };
        let mut partners = Partners {
            product: self,
            fastest,
            next: 0,
            others: slowest_first,
            firsts,
            strides,
            present: Dims::all(dims, 0),
            before: [NEUTRAL; MOST_DIMS],
            left: self.count(),
        };
        partners.combine(0);
        partners
    }

    /// The elements shared with the partner at a place.
    pub fn piece(&self, place: usize) -> SharedPiece {
        let axes = self.places(&self.order.point(place as u64, &self.counts));
        SharedPiece {
            block: self.block,
            axes,
            before: 0,
        }
    }

    /// The place of a rank among the partners.
    pub fn find(&self, rank: u32) -> Option<usize> {
        if u64::from(rank) >= self.grid_extents.volume() {
            return None;
        }
        let (process, firsts) = (
            self.order.point(u64::from(rank), &self.grid_extents),
            self.firsts(),
        );
        let mut point = Dims::all(process.len(), 0);
        for (dim, at) in point.iter_mut().enumerate() {
            let met = &self.processes[firsts[dim]..][..self.counts[dim] as usize];
            *at = met.binary_search(&(process[dim] as u32)).ok()? as u64;
        }
        Some(self.order.number(&point, &self.counts) as usize)
    }

    /// The number of shared elements with all partners.
    pub fn elements(&self) -> u64 {
        let mut axes = self.axes.iter();
        let along = |count: &u64| {
            axes.by_ref()
                .take(*count as usize)
                .map(AxisIndices::total)
                .sum::<u64>()
        };
        self.counts.iter().map(along).product()
    }

    /// The memory of the grid without the axes, in bytes.
    pub fn footprint(&self) -> usize {
        size_of_val(&self.processes[..])
    }

    /// The places in `axes` for a combination of processes, given by the place of each along the
    /// dimension.
    fn places(&self, point: &Dims) -> Dims<u32> {
        let firsts = self.firsts();
        Dims::from_fn(point.len(), |dim| (firsts[dim] as u64 + point[dim]) as u32)
    }

    /// The place of the first axis of each dimension.
    fn firsts(&self) -> Dims<usize> {
        let mut from = 0;
        Dims::from_fn(self.counts.len(), |dim| {
            from += self.counts[dim] as usize;
            from - self.counts[dim] as usize
        })
    }
}

/// The neutral element of combining partners.
const NEUTRAL: Partner = Partner {
    rank: 0,
    elements: 1,
};

/// An iterator over the partners.
#[derive(Debug, Clone)]
pub(crate) struct Partners<'a> {
    product: &'a PartnerGrid,
    /// The shares of rank and elements of the processes along the fastest dimension.
    fastest: Vec<Partner>,
    /// The place of the next process in `fastest`.
    next: usize,
    /// The other dimensions, the slowest first.
    others: Vec<usize>,
    /// The place of the present process along each of the other dimensions.
    present: Dims<usize>,
    /// The place of the first axis of each dimension.
    firsts: Dims<usize>,
    /// The difference between the ranks of neighbours along each dimension.
    strides: Dims,
    /// `before[n]`: rank and element count from the first `n` of `others`.
    before: [Partner; MOST_DIMS],
    left: usize,
}

impl Partners<'_> {
    /// Computes the combinations anew, from a level of `others` on.
    fn combine(&mut self, from: usize) {
        for (level, dim) in self.others.iter().copied().enumerate().skip(from) {
            let (place, Partner { rank, elements }) =
                (self.firsts[dim] + self.present[dim], self.before[level]);
            let rank = rank + self.product.processes[place] * self.strides[dim] as u32;
            self.before[level + 1] = Partner {
                rank,
                elements: elements * self.product.axes[place].total(),
            };
        }
    }

    /// Goes on to the next combination of the other dimensions.
    fn advance_others(&mut self) {
        for level in (0..self.others.len()).rev() {
            let dim = self.others[level];
            self.present[dim] += 1;
            if self.present[dim] < self.product.counts[dim] as usize {
                return self.combine(level);
            }
            self.present[dim] = 0;
        }
    }
}

impl Iterator for Partners<'_> {
    type Item = Partner;

    fn next(&mut self) -> Option<Partner> {
        self.left = self.left.checked_sub(1)?;
        if self.next == self.fastest.len() {
            self.next = 0;
            self.advance_others();
        }
        let (one, others) = (self.fastest[self.next], self.before[self.others.len()]);
        self.next += 1;
        Some(Partner {
            rank: others.rank + one.rank,
            elements: others.elements * one.elements,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Decomposition, Ownership, Spread};

    #[test]
    fn partners_come_by_rank_in_both_orders_of_the_grid_and_are_found_again() {
        let own = Side::new(Decomposition::block(&[12, 12], &[2, 2]).unwrap());
        for order in [Order::C, Order::Fortran] {
            let spreads = [Spread::Cyclic(2), Spread::Block];
            let other = Decomposition::regular(&[12, 12], &[3, 4], &spreads, order, 14).unwrap();
            for part in own.owned(3, &Ownership::Rule) {
                let product = PartnerGrid::new(&part, &Side::new(other.clone())).unwrap();
                let partners: Vec<_> = (0..product.count())
                    .map(|place| product.partner(place))
                    .collect();
                assert!(
                    partners.is_sorted_by(|one, next| one.rank < next.rank),
                    "{partners:?}"
                );
                assert_eq!(
                    (partners.len(), partners[0].elements, product.elements()),
                    (6, 6, 36)
                );
                assert!(
                    product.partners().eq(partners.iter().copied()),
                    "{partners:?}"
                );
                for (place, partner) in partners.iter().enumerate() {
                    assert_eq!(product.find(partner.rank), Some(place));
                }
                let found = (0..20).filter(|rank| product.find(*rank).is_some()).count();
                assert_eq!(
                    found,
                    partners.len(),
                    "no others are found, nor ranks beyond the grid"
                );
            }
        }
    }

    #[test]
    fn it_grows_with_the_sum_of_the_dimensions() {
        let own = Side::new(Decomposition::serial(&[1 << 20, 1 << 20]).unwrap());
        let spreads = [Spread::Cyclic(1), Spread::Cyclic(1)];
        let procs = (1 << 12, 1 << 12);
        let other = Decomposition::regular(
            &[1 << 20; 2],
            &[procs.0, procs.1],
            &spreads,
            Order::C,
            1 << 24,
        );
        let part = own.owned(0, &Ownership::Rule)[0];
        let product = PartnerGrid::new(&part, &Side::new(other.unwrap())).unwrap();
        assert_eq!((product.count(), product.axes.len()), (1 << 24, 2 << 12));
        let last = product.partner((1 << 24) - 1);
        assert_eq!((last.rank, last.elements), ((1 << 24) - 1, 1 << 16));
    }
}
