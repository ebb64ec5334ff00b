//! The elements that a rank owns, by a rule or by its own declaration.

use crate::decomposition::Rule;
use crate::{Decomposition, Dims, Error, Order, Region};

/// The elements that one rank owns.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Ownership {
    /// The part by the rule of a regular decomposition.
    #[default]
    Rule,
    /// These boxes, which are one after the other in memory.
    Boxes(Vec<Region>),
    /// The elements with these numbers, in the order of the list in memory.
    Indices(Vec<IndexRange>),
}

/// A range of element numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IndexRange {
    /// The first number.
    pub first: u64,
    /// The count of numbers.
    pub length: u64,
}

impl IndexRange {
    /// The number after the last number.
    pub fn end(&self) -> u64 {
        self.first.saturating_add(self.length)
    }

    /// Adds a range to a list; a range that continues the last one is joined to that range.
    pub(crate) fn push(ranges: &mut Vec<IndexRange>, range: IndexRange) {
        match ranges.last_mut() {
            Some(last) if last.end() == range.first => last.length += range.length,
            _ if range.length == 0 => {}
            _ => ranges.push(range),
        }
    }
}

impl Ownership {
    /// The elements with these numbers, as unstructured codes list numbers. The [`Order`] of the
    /// side numbers the elements of an array of several dimensions.
    pub fn indices(numbers: impl IntoIterator<Item = u64>) -> Self {
        let mut ranges = Vec::new();
        for first in numbers {
            IndexRange::push(&mut ranges, IndexRange { first, length: 1 });
        }
        Self::Indices(ranges)
    }

    /// The elements for which a function such as `upc_threadof` returns true, numbered in `order`.
    /// The function is called for every element of the array.
    pub fn owned(shape: &Dims, order: Order, mut is_mine: impl FnMut(&Dims) -> bool) -> Self {
        let numbers = (0..shape.volume()).filter(|number| is_mine(&order.point(*number, shape)));
        Self::indices(numbers)
    }

    /// The number of elements; `None` if a rule decides.
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

    /// Refuses elements that a rank of this decomposition cannot own.
    pub fn check(&self, decomposition: &Decomposition, rank: u32) -> Result<(), Error> {
        let ranks = decomposition.ranks();
        if rank >= ranks {
            return Err(Error::Invalid(format!(
                "rank {rank} of a decomposition over {ranks} ranks"
            )));
        }
        match self.mistake(decomposition)? {
            None => Ok(()),
            Some(mistake) => Err(Error::Invalid(format!("rank {rank} declares {mistake}"))),
        }
    }

    /// The wrong part of a declaration, for people.
    fn mistake(&self, decomposition: &Decomposition) -> Result<Option<String>, Error> {
        let shape = decomposition.shape();
        let mistake = match (self, &decomposition.rule) {
            (Self::Rule, Rule::Regular(_)) => return Ok(None),
            (Self::Boxes(boxes), Rule::Boxes) => {
                let whole = Region::whole(shape)?;
                let outside = boxes.iter().find(|region| !whole.covers(region));
                outside.map(|region| {
                    format!("the box {region}, which does not lie in the array of {shape}")
                })
            }
            (Self::Indices(ranges), Rule::Indices) => {
                let volume = shape.volume();
                let outside = ranges.iter().find(|range| range.end() > volume);
                outside.map(|range| {
                    let last = range.end() - 1;
                    format!("the index {last}, but the array of {shape} has {volume} elements")
                })
            }
            (_, Rule::Regular(_)) => {
                Some("boxes or indices, but its decomposition is regular".into())
            }
            (_, Rule::Boxes) => Some("no boxes, but its decomposition is by boxes".into()),
            (_, Rule::Indices) => Some("no indices, but its decomposition is by indices".into()),
        };
        let is_too_large = self.elements() > Some(crate::MOST_ELEMENTS);
        Ok(mistake.or_else(|| is_too_large.then(|| "more elements than can be counted".into())))
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
