//! Boxes of an array, from a lower corner to an upper corner.

use std::fmt;

use crate::{Dims, Invalid, MOST_ELEMENTS};

/// A box of up to seven dimensions, with the indices `lower..upper` in each, counted from 0. A box
/// may be empty.
///
/// The text is `[0:4, 2:8]`, as Python writes slices: the upper bound is not part of the box.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub struct Region {
    lower: Dims,
    upper: Dims,
}

impl Region {
    /// The box between two corners. In no dimension may `upper` be below `lower`.
    pub fn new(lower: &[u64], upper: &[u64]) -> Result<Self, Invalid> {
        if lower.len() != upper.len() {
            let (low, up) = (lower.len(), upper.len());
            return Err(Invalid(format!(
                "a region with {low} lower and {up} upper bounds"
            )));
        }
        for (dim, (low, up)) in lower.iter().zip(upper).enumerate() {
            if low > up || *up > MOST_ELEMENTS {
                return Err(Invalid(format!(
                    "a region goes from {low} to {up} in dimension {dim}"
                )));
            }
        }
        Ok(Self {
            lower: Dims::new(lower)?,
            upper: Dims::new(upper)?,
        })
    }

    /// A whole array.
    pub fn whole(shape: &[u64]) -> Result<Self, Invalid> {
        let lower: Dims = Dims::all(shape.len().min(crate::MOST_DIMS), 0);
        Self::new(&lower, Dims::new(shape)?.as_ref())
    }

    pub(crate) fn from_fn(count: usize, mut bounds: impl FnMut(usize) -> (u64, u64)) -> Self {
        let mut region = Self {
            lower: Dims::all(count, 0),
            upper: Dims::all(count, 0),
        };
        for dim in 0..count {
            (region.lower[dim], region.upper[dim]) = bounds(dim);
        }
        region
    }

    /// The first index in each dimension.
    pub fn lower(&self) -> &Dims {
        &self.lower
    }

    /// The index after the last index in each dimension.
    pub fn upper(&self) -> &Dims {
        &self.upper
    }

    /// The number of indices in each dimension.
    pub fn extents(&self) -> Dims {
        Dims::from_fn(self.lower.len(), |dim| self.upper[dim] - self.lower[dim])
    }

    /// The number of elements.
    pub fn volume(&self) -> u64 {
        self.extents().volume()
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.lower
            .iter()
            .zip(self.upper.iter())
            .any(|(low, up)| low == up)
    }

    /// Whether the box has the element.
    pub fn contains(&self, point: &[u64]) -> bool {
        point.len() == self.lower.len()
            && point
                .iter()
                .enumerate()
                .all(|(dim, at)| (self.lower[dim]..self.upper[dim]).contains(at))
    }

    /// Whether the box has every element of the other box.
    pub fn covers(&self, other: &Region) -> bool {
        self.lower.len() == other.lower.len()
            && (other.is_empty()
                || (0..self.lower.len()).all(|dim| {
                    self.lower[dim] <= other.lower[dim] && other.upper[dim] <= self.upper[dim]
                }))
    }

    /// The box that two boxes share; `None` if they share no element.
    pub fn intersection(&self, other: &Region) -> Option<Region> {
        if self.lower.len() != other.lower.len() {
            return None;
        }
        let mut shared = *self;
        for dim in 0..self.lower.len() {
            shared.lower[dim] = self.lower[dim].max(other.lower[dim]);
            shared.upper[dim] = self.upper[dim].min(other.upper[dim]);
            if shared.lower[dim] >= shared.upper[dim] {
                return None;
            }
        }
        Some(shared)
    }

    /// The box moved in each dimension; `None` beyond the range of indices.
    pub fn shift(&self, by: &[i64]) -> Option<Region> {
        let moved = |bounds: &Dims| -> Option<Dims> {
            let mut bounds = *bounds;
            for (bound, by) in bounds.iter_mut().zip(by) {
                *bound = bound
                    .checked_add_signed(*by)
                    .filter(|bound| *bound <= MOST_ELEMENTS)?;
            }
            Some(bounds)
        };
        (by.len() == self.lower.len()).then(|| {
            Some(Region {
                lower: moved(&self.lower)?,
                upper: moved(&self.upper)?,
            })
        })?
    }

    /// The elements of this box that are not in the other box, as up to two disjoint boxes for each
    /// dimension.
    pub fn difference(&self, other: &Region) -> Vec<Region> {
        if self.is_empty() {
            return Vec::new();
        }
        let Some(hole) = self.intersection(other) else {
            return vec![*self];
        };
        let (mut rest, mut pieces) = (*self, Vec::new());
        for dim in 0..self.lower.len() {
            if rest.lower[dim] < hole.lower[dim] {
                let mut below = rest;
                below.upper[dim] = hole.lower[dim];
                pieces.push(below);
            }
            if hole.upper[dim] < rest.upper[dim] {
                let mut above = rest;
                above.lower[dim] = hole.upper[dim];
                pieces.push(above);
            }
            (rest.lower[dim], rest.upper[dim]) = (hole.lower[dim], hole.upper[dim]);
        }
        pieces
    }

    /// The smallest box around two boxes.
    pub(crate) fn hull(&self, other: &Region) -> Region {
        Region::from_fn(self.lower.len(), |dim| {
            (
                self.lower[dim].min(other.lower[dim]),
                self.upper[dim].max(other.upper[dim]),
            )
        })
    }
}

impl fmt::Display for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (dim, (low, up)) in self.lower.iter().zip(self.upper.iter()).enumerate() {
            write!(f, "{}{low}:{up}", if dim > 0 { ", " } else { "" })?;
        }
        f.write_str("]")
    }
}

impl fmt::Debug for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(lower: &[u64], upper: &[u64]) -> Region {
        Region::new(lower, upper).unwrap()
    }

    #[test]
    fn boxes_meet_and_are_cut() {
        let a = region(&[0, 0], &[4, 6]);
        let b = region(&[2, 3], &[9, 9]);
        assert_eq!(a.intersection(&b), Some(region(&[2, 3], &[4, 6])));
        let rest = a.difference(&b);
        assert_eq!(rest, [region(&[0, 0], &[2, 6]), region(&[2, 0], &[4, 3])]);
        assert_eq!(rest.iter().map(Region::volume).sum::<u64>(), a.volume() - 6);
        assert_eq!(a.difference(&a), []);
        assert_eq!(a.difference(&region(&[4, 0], &[5, 1])), [a]);
        assert!(a.covers(&region(&[1, 1], &[4, 6])) && !a.covers(&b));
        assert!(a.contains(&[3, 5]) && !a.contains(&[3, 6]) && !a.contains(&[3]));
    }

    #[test]
    fn boxes_without_dimensions_hold_one_element() {
        let scalar = region(&[], &[]);
        assert_eq!((scalar.volume(), scalar.is_empty()), (1, false));
        assert_eq!(scalar.intersection(&scalar), Some(scalar));
        assert_eq!(scalar.to_string(), "[]");
    }

    #[test]
    fn boxes_are_shifted_within_what_can_be_counted() {
        let a = region(&[3, 3], &[4, 6]);
        assert_eq!(a.shift(&[-3, 2]), Some(region(&[0, 5], &[1, 8])));
        assert_eq!(a.shift(&[-4, 0]), None);
        assert_eq!(a.shift(&[i64::MAX, 0]), None);
        assert_eq!(a.shift(&[0]), None);
    }

    #[test]
    fn bounds_that_cannot_be_are_refused() {
        assert!(Region::new(&[3], &[2]).is_err());
        assert!(Region::new(&[3], &[2, 3]).is_err());
        assert!(Region::new(&[0], &[u64::MAX]).is_err());
        assert!(Region::whole(&[1; 8]).is_err());
        assert!(Region::whole(&[0, 4]).unwrap().is_empty());
    }
}
