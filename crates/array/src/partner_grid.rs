//! What an array shares with the ranks of a regular side, in closed form.

use crate::partner::{Partner, SharedPiece};
use crate::side::{OwnedProduct, Side};
use crate::strided_indices::{AxisIndices, shared_with_processes};
use crate::{Dims, MOST_DIMS, Order};

/// What one of a rank's arrays shares with the ranks of a regular side. Along each dimension by itself it meets some processes of
/// their grid, and every combination of these is a partner, which is made when it is asked for. So what is found and kept grows with
/// the sum over the dimensions, not with the number of partners.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PartnerGrid {
    /// Which of the rank's arrays.
    block: u32,
    /// The partners' grid, and the order in which ranks count through it.
    procs: Dims,
    order: Order,
    /// How many processes are met along each dimension.
    counts: Dims,
    /// These processes, rising, those of the first dimension first.
    processes: Vec<u32>,
    /// What is shared with each, along its dimension.
    pub axes: Vec<AxisIndices>,
}

impl PartnerGrid {
    /// `None` if nothing is shared, or if the other side is irregular.
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
        let (block, procs, order) = (part.block, grid.procs, grid.order);
        (!counts.contains(&0)).then_some(Self {
            block,
            procs,
            order,
            counts,
            processes,
            axes,
        })
    }

    /// How many partners there are.
    pub fn count(&self) -> usize {
        self.counts.volume() as usize
    }

    /// A partner by its place; they come by rank.
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
            rank: self.order.number(&process, &self.procs) as u32,
            elements,
        }
    }

    /// All partners.
    pub fn partners(&self) -> Partners<'_> {
        let (dims, firsts, strides) = (
            self.counts.len(),
            self.firsts(),
            self.order.strides(&self.procs),
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
            None => vec![NOBODY],
        };
        let mut partners = Partners {
            product: self,
            fastest,
            next: 0,
            others: slowest_first,
            firsts,
            strides,
            turn: Dims::all(dims, 0),
            before: [NOBODY; MOST_DIMS],
            left: self.count(),
        };
        partners.combine(0);
        partners
    }

    /// What is shared with the partner at a place.
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
        if u64::from(rank) >= self.procs.volume() {
            return None;
        }
        let (process, firsts) = (
            self.order.point(u64::from(rank), &self.procs),
            self.firsts(),
        );
        let mut point = Dims::all(process.len(), 0);
        for (dim, at) in point.iter_mut().enumerate() {
            let met = &self.processes[firsts[dim]..][..self.counts[dim] as usize];
            *at = met.binary_search(&(process[dim] as u32)).ok()? as u64;
        }
        Some(self.order.number(&point, &self.counts) as usize)
    }

    /// How many elements are shared in all.
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

    /// How much memory it takes beside its axes, in bytes.
    pub fn footprint(&self) -> usize {
        size_of_val(&self.processes[..])
    }

    /// Where the axes stand of which each is the so many-th of its dimension.
    fn places(&self, point: &Dims) -> Dims<u32> {
        let firsts = self.firsts();
        Dims::from_fn(point.len(), |dim| (firsts[dim] as u64 + point[dim]) as u32)
    }

    /// Where the axes of each dimension begin.
    fn firsts(&self) -> Dims<usize> {
        let mut from = 0;
        Dims::from_fn(self.counts.len(), |dim| {
            from += self.counts[dim] as usize;
            from - self.counts[dim] as usize
        })
    }
}

/// What combines with a partner to that partner.
const NOBODY: Partner = Partner {
    rank: 0,
    elements: 1,
};

/// The partners of a product, one after the other.
#[derive(Debug, Clone)]
pub(crate) struct Partners<'a> {
    product: &'a PartnerGrid,
    /// What the processes of the dimension add that counts fastest, and which of them is next.
    fastest: Vec<Partner>,
    next: usize,
    /// The other dimensions, the one that counts slowest first, and the so many-th process of each.
    others: Vec<usize>,
    turn: Dims<usize>,
    /// Where the axes of each dimension begin, and how far ranks are apart along it.
    firsts: Dims<usize>,
    strides: Dims,
    /// What the first so many of the others make together.
    before: [Partner; MOST_DIMS],
    left: usize,
}

impl Partners<'_> {
    /// What the others add, from the so many-th on.
    fn combine(&mut self, from: usize) {
        for (level, dim) in self.others.iter().copied().enumerate().skip(from) {
            let (place, Partner { rank, elements }) =
                (self.firsts[dim] + self.turn[dim], self.before[level]);
            let rank = rank + self.product.processes[place] * self.strides[dim] as u32;
            self.before[level + 1] = Partner {
                rank,
                elements: elements * self.product.axes[place].total(),
            };
        }
    }

    /// On to the next combination of the others.
    fn go_on(&mut self) {
        for level in (0..self.others.len()).rev() {
            let dim = self.others[level];
            self.turn[dim] += 1;
            if self.turn[dim] < self.product.counts[dim] as usize {
                return self.combine(level);
            }
            self.turn[dim] = 0;
        }
    }
}

impl Iterator for Partners<'_> {
    type Item = Partner;

    fn next(&mut self) -> Option<Partner> {
        self.left = self.left.checked_sub(1)?;
        if self.next == self.fastest.len() {
            self.next = 0;
            self.go_on();
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
