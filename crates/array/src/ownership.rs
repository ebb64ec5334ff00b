//! What a rank declares that it owns, where no rule says so.

use crate::decomposition::Rule;
use crate::{Decomposition, Dims, Error, Order, Region};

/// What one rank owns.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Ownership {
    /// What the rule of a regular decomposition gives it.
    #[default]
    Rule,
    /// These boxes. In memory they lie one after the other.
    Boxes(Vec<Region>),
    /// The elements with these numbers. In memory they lie in the order of the list.
    Indices(Vec<IndexRange>),
}

/// Elements with numbers one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IndexRange {
    /// The number of the first one.
    pub first: u64,
    /// How many there are.
    pub length: u64,
}

impl IndexRange {
    /// The number after the last one.
    pub fn end(&self) -> u64 {
        self.first.saturating_add(self.length)
    }

    /// Adds a range to a list, as a part of its last one where it goes on from that.
    pub(crate) fn push(ranges: &mut Vec<IndexRange>, range: IndexRange) {
        match ranges.last_mut() {
            Some(last) if last.end() == range.first => last.length += range.length,
            _ if range.length == 0 => {}
            _ => ranges.push(range),
        }
    }
}

impl Ownership {
    /// The elements with these numbers, as unstructured codes list them. In an array of several dimensions elements are
    /// numbered in the [`Order`] of the side.
    pub fn indices(numbers: impl IntoIterator<Item = u64>) -> Self {
        let mut ranges = Vec::new();
        for first in numbers {
            IndexRange::push(&mut ranges, IndexRange { first, length: 1 });
        }
        Self::Indices(ranges)
    }

    /// The elements of which a function says that they are this rank's (`upc_threadof`, for one), numbered in `order`. It is
    /// asked for every element of the array.
    pub fn owned(shape: &Dims, order: Order, mut is_mine: impl FnMut(&Dims) -> bool) -> Self {
        let numbers = (0..shape.volume()).filter(|number| is_mine(&order.point(*number, shape)));
        Self::indices(numbers)
    }

    /// How many elements these are; `None` where the rule says it.
    pub fn elements(&self) -> Option<u64> {
        match self {
            Self::Rule => None,
            Self::Boxes(boxes) => Some(
                boxes
                    .iter()
                    .map(Region::volume)
                    .fold(0, u64::saturating_add),
            ),
            Self::Indices(ranges) => Some(
                ranges
                    .iter()
                    .map(|range| range.length)
                    .fold(0, u64::saturating_add),
            ),
        }
    }

    /// Whether a rank of this decomposition can have them.
    pub fn check(&self, decomposition: &Decomposition, rank: u32) -> Result<(), Error> {
        let shape = decomposition.shape();
        let wrong = |why: String| Err(Error::Invalid(format!("rank {rank} declares {why}")));
        if rank >= decomposition.ranks() {
            let ranks = decomposition.ranks();
            return Err(Error::Invalid(format!(
                "rank {rank} of a decomposition over {ranks} ranks"
            )));
        }
        match (self, &decomposition.rule) {
            (Self::Rule, Rule::Regular(_)) => return Ok(()),
            (Self::Boxes(boxes), Rule::Boxes) => {
                let whole = Region::whole(shape)?;
                if let Some(region) = boxes.iter().find(|region| !whole.covers(region)) {
                    return wrong(format!(
                        "the box {region}, which does not lie in the array of {shape}"
                    ));
                }
            }
            (Self::Indices(ranges), Rule::Indices) => {
                let (volume, ends) = (shape.volume(), |range: &&IndexRange| {
                    range.end() > shape.volume()
                });
                if let Some(range) = ranges.iter().find(ends) {
                    let last = range.end() - 1;
                    return wrong(format!(
                        "the index {last}, but the array of {shape} has {volume} elements"
                    ));
                }
            }
            (_, Rule::Regular(_)) => {
                return wrong("boxes or indices, but its decomposition is regular".into());
            }
            (_, Rule::Boxes) => return wrong("no boxes, but its decomposition is by boxes".into()),
            (_, Rule::Indices) => {
                return wrong("no indices, but its decomposition is by indices".into());
            }
        }
        if self.elements() > Some(crate::MOST_ELEMENTS) {
            return wrong("more elements than can be counted".into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_become_runs_in_their_order() {
        let Ownership::Indices(ranges) = Ownership::indices([4, 5, 6, 2, 3, 9]) else {
            panic!()
        };
        let range = |first, length| IndexRange { first, length };
        assert_eq!(ranges, [range(4, 3), range(2, 2), range(9, 1)]);
        assert_eq!(Ownership::Indices(ranges).elements(), Some(6));
    }

    #[test]
    fn an_owner_function_is_asked_for_every_element() {
        let shape = Dims::new(&[3, 4]).unwrap();
        let range = |first, length| IndexRange { first, length };
        let by = |order| Ownership::owned(&shape, order, |point| point[1] >= 2);
        assert_eq!(
            by(Order::C),
            Ownership::Indices(vec![range(2, 2), range(6, 2), range(10, 2)])
        );
        assert_eq!(by(Order::Fortran), Ownership::Indices(vec![range(6, 6)]));
    }

    #[test]
    fn parts_that_a_rank_cannot_have_are_refused() {
        let boxes = Decomposition::boxes(&[4, 4], 2).unwrap();
        let outside = Ownership::Boxes(vec![Region::new(&[0, 3], &[4, 5]).unwrap()]);
        assert_eq!(
            outside.check(&boxes, 1).unwrap_err().to_string(),
            "rank 1 declares the box [0:4, 3:5], which does not lie in the array of 4 × 4"
        );
        let indices = Decomposition::indices(&[4, 4], 2).unwrap();
        let error = Ownership::indices([3, 16])
            .check(&indices, 0)
            .unwrap_err()
            .to_string();
        assert_eq!(
            error,
            "rank 0 declares the index 16, but the array of 4 × 4 has 16 elements"
        );
        let endless = Ownership::Indices(vec![IndexRange {
            first: 3,
            length: u64::MAX,
        }]);
        assert!(endless.check(&indices, 0).is_err());
        let large = Decomposition::indices(&[crate::MOST_ELEMENTS], 1).unwrap();
        let all = IndexRange {
            first: 0,
            length: crate::MOST_ELEMENTS,
        };
        assert!(Ownership::Indices(vec![all]).check(&large, 0).is_ok());
        let error = Ownership::Indices(vec![all, all])
            .check(&large, 0)
            .unwrap_err()
            .to_string();
        assert_eq!(error, "rank 0 declares more elements than can be counted");
        assert!(
            Ownership::Rule.check(&indices, 0).is_err()
                && Ownership::indices([3]).check(&boxes, 0).is_err()
        );
        assert!(Ownership::indices([3]).check(&indices, 2).is_err());
    }
}
