//! The distribution of a directory over ranks.
//!
//! As in XpressSpace, a Hilbert curve goes through the domain, and every rank of the directory has
//! a part of the curve of the same length. So few ranks of the directory know the elements of one
//! rank of a program, and each rank of the directory knows the elements of few ranks. Elements by
//! indices are distributed by their numbers.

use crate::hilbert::place;
use crate::{Dims, DirectoryEntries, IndexRange, Region};

/// The assignment of the elements of an exchange to the ranks of the directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectoryMap {
    domain: Dims,
    ranks: u32,
    /// The dimensions with more than one index.
    curved: Dims<usize>,
    /// The curve goes through a cube of 2^bits cells along each edge; `None` if elements are known
    /// by numbers.
    bits: Option<u32>,
}

/// The least number of cells for each rank of the directory. With more cells the shares of the
/// ranks are more even.
const CELLS: u64 = 64;

impl DirectoryMap {
    pub(crate) fn new(domain: &Dims, by_numbers: bool, ranks: u32) -> Self {
        let ranks = ranks.max(1);
        let long: Vec<usize> = (0..domain.len()).filter(|dim| domain[*dim] > 1).collect();
        let curved = Dims::from_fn(long.len(), |at| long[at]);
        let cells = u64::from(ranks) * CELLS;
        let fine = |bits: &u32| curved.is_empty() || 1u64 << (bits * curved.len() as u32) >= cells;
        let bits = (1..=40).find(fine).unwrap_or(40);
        Self {
            domain: *domain,
            ranks,
            curved,
            bits: (!by_numbers).then_some(bits),
        }
    }

    /// Whether the directory knows boxes, and not numbers of elements.
    pub(crate) fn has_boxes(&self) -> bool {
        self.bits.is_some()
    }

    /// The number of ranks of the directory.
    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    /// The ranks that know a box of the domain. Two boxes that share an element have a common rank.
    pub fn ranks_of(&self, region: &Region) -> Vec<u32> {
        let Some(bits) = self.bits else {
            return (0..self.ranks).collect();
        };
        let mut ranks = Vec::new();
        if !region.is_empty() {
            let cells = Region::from_fn(self.curved.len(), |at| {
                self.cells(region, self.curved[at], bits)
            });
            self.descend(&cells, Dims::all(self.curved.len(), 0), 0, bits, &mut ranks);
        }
        ranks.sort_unstable();
        ranks.dedup();
        ranks
    }

    /// The cells of a box along a dimension. All cells have the same width, which need not be a
    /// whole number of elements.
    fn cells(&self, region: &Region, dim: usize, bits: u32) -> (u64, u64) {
        let (extent, cells) = (u128::from(self.domain[dim]), 1u128 << bits);
        let lower = u128::from(region.lower()[dim]) * cells / extent;
        let upper = (u128::from(region.upper()[dim]) * cells).div_ceil(extent);
        (lower as u64, upper as u64)
    }

    /// Adds the ranks for all `cells` in the cube at `at`, which belongs to the level `level` of
    /// `bits` levels.
    fn descend(&self, cells: &Region, at: Dims, level: u32, bits: u32, ranks: &mut Vec<u32>) {
        let (dims, below) = (at.len(), bits - level);
        let cube = Region::from_fn(dims, |dim| (at[dim] << below, (at[dim] + 1) << below));
        if cells.intersection(&cube).is_none() {
            return;
        }
        let length = 1u64 << (below * dims as u32);
        let begin = place(at, level) * length;
        let (first, last) = (
            self.rank_at(begin, bits),
            self.rank_at(begin + length - 1, bits),
        );
        // One rank knows the whole cube, or the cube is in the box.
        if first == last || cells.covers(&cube) {
            return ranks.extend(first..=last);
        }
        for child in 0..1u64 << dims {
            let child = Dims::from_fn(dims, |dim| at[dim] << 1 | (child >> dim & 1));
            self.descend(cells, child, level + 1, bits, ranks);
        }
    }

    fn rank_at(&self, place: u64, bits: u32) -> u32 {
        let whole = 1u128 << (bits * self.curved.len() as u32);
        (u128::from(place) * u128::from(self.ranks) / whole) as u32
    }

    /// Divides rising ranges among the ranks that know them.
    pub(crate) fn divide(&self, ranges: Vec<IndexRange>) -> Vec<(u32, DirectoryEntries)> {
        let share = self.domain.volume().div_ceil(u64::from(self.ranks)).max(1);
        let mut divided: Vec<(u32, Vec<IndexRange>)> = Vec::new();
        for range in ranges {
            let mut first = range.first;
            while first < range.end() {
                let rank = first / share;
                let end = ((rank + 1) * share).min(range.end());
                let piece = IndexRange {
                    first,
                    length: end - first,
                };
                match divided.last_mut() {
                    Some((last, ranges)) if u64::from(*last) == rank => ranges.push(piece),
                    _ => divided.push((rank as u32, vec![piece])),
                }
                first = end;
            }
        }
        divided
            .into_iter()
            .map(|(rank, ranges)| (rank, DirectoryEntries::Ranges(ranges)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(domain: &[u64], ranks: u32) -> DirectoryMap {
        DirectoryMap::new(&Dims::new(domain).unwrap(), false, ranks)
    }

    #[test]
    fn every_rank_gets_about_the_same_share() {
        for domain in [
            &[64, 64][..],
            &[7, 1000],
            &[1, 512, 1],
            &[20, 30, 40],
            &[5; 7],
        ] {
            let map = map(domain, 10);
            let whole = Region::whole(domain).unwrap();
            assert_eq!(
                map.ranks_of(&whole),
                (0..10).collect::<Vec<_>>(),
                "{domain:?}"
            );
            let mut share = [0u64; 10];
            for number in 0..whole.volume() {
                let point = crate::Order::C.point(number, &map.domain);
                let one = Region::from_fn(domain.len(), |dim| (point[dim], point[dim] + 1));
                map.ranks_of(&one)
                    .iter()
                    .for_each(|rank| share[*rank as usize] += 1);
            }
            let (least, most) = (share.iter().min().unwrap(), share.iter().max().unwrap());
            assert!(most / least.max(&1) <= 4, "{domain:?}: {share:?}");
        }
    }

    #[test]
    fn boxes_that_share_an_element_share_a_rank() {
        let map = map(&[50, 37], 23);
        let boxes: Vec<_> = (0..60u64)
            .map(|n| {
                let (a, b) = (n * 17 % 50, n * 11 % 37);
                Region::new(
                    &[a, b],
                    &[(a + 1 + n % 9).min(50), (b + 1 + n % 13).min(37)],
                )
                .unwrap()
            })
            .collect();
        for one in &boxes {
            for other in boxes
                .iter()
                .filter(|other| other.intersection(one).is_some())
            {
                let ranks = map.ranks_of(other);
                assert!(
                    map.ranks_of(one).iter().any(|rank| ranks.contains(rank)),
                    "{one} and {other}"
                );
            }
        }
    }

    #[test]
    fn a_small_box_is_known_to_few_ranks() {
        let map = map(&[8192, 8192], 2048);
        let small = Region::new(&[4000, 4000], &[4090, 4090]).unwrap();
        assert!(
            map.ranks_of(&small).len() <= 8,
            "{:?}",
            map.ranks_of(&small)
        );
    }

    #[test]
    fn runs_are_cut_where_the_ranks_change() {
        let map = DirectoryMap::new(&Dims::new(&[5, 4]).unwrap(), true, 3);
        let range = |first, length| IndexRange { first, length };
        let divided = map.divide(vec![range(2, 1), range(5, 10), range(19, 1)]);
        let expected = [
            (0, vec![range(2, 1), range(5, 2)]),
            (1, vec![range(7, 7)]),
            (2, vec![range(14, 1), range(19, 1)]),
        ];
        assert_eq!(
            divided,
            expected.map(|(rank, ranges)| (rank, DirectoryEntries::Ranges(ranges)))
        );
    }

    #[test]
    fn domains_with_little_in_them_have_a_map() {
        assert_eq!(map(&[], 4).ranks_of(&Region::new(&[], &[]).unwrap()), [0]);
        assert_eq!(
            map(&[0, 3], 4).ranks_of(&Region::whole(&[0, 3]).unwrap()),
            []
        );
    }
}
