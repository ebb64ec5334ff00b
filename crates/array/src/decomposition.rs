//! The decomposition of an array over ranks.

use crate::spread::SpreadDimension;
use crate::{Dims, Error, MOST_ELEMENTS, Order, Region, Spread};

/// The assignment of the elements of an array to the ranks of an instance: by a rule that every
/// process can evaluate, or by the declaration of each rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decomposition {
    shape: Dims,
    ranks: u32,
    pub(crate) rule: Rule,
}

/// The kind of a decomposition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Rule {
    Regular(Grid),
    Boxes,
    Indices,
}

/// A grid of processes, and the rule of each dimension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Grid {
    pub dimensions: Vec<SpreadDimension>,
    pub procs: Dims,
    pub order: Order,
}

impl Decomposition {
    /// A regular decomposition: each dimension is spread over `grid[dim]` processes by a rule.
    /// `order` numbers the ranks in the grid: in C order the last dimension counts fastest, as in
    /// `MPI_Cart_create`. Ranks beyond the grid own nothing.
    pub fn regular(
        shape: &[u64],
        grid: &[u32],
        spreads: &[Spread],
        order: Order,
        ranks: u32,
    ) -> Result<Self, Error> {
        let shape = checked(shape, ranks)?;
        if grid.len() != shape.len() || spreads.len() != shape.len() {
            let (shape, grid, spreads) = (shape.len(), grid.len(), spreads.len());
            return Err(Error::Invalid(format!(
                "a decomposition has {shape} extents, a grid of {grid} dimensions and {spreads} rules; give as many of each"
            )));
        }
        let procs = Dims::from_fn(shape.len(), |dim| u64::from(grid[dim]));
        if procs.volume() > u64::from(ranks) {
            let needed = procs.volume();
            return Err(Error::Invalid(format!(
                "a grid of {procs} processes needs {needed} ranks; there are {ranks}"
            )));
        }
        let dimensions = spreads.iter().enumerate();
        let dimensions = dimensions
            .map(|(dim, spread)| SpreadDimension::new(dim, shape[dim], grid[dim], spread.clone()));
        let dimensions = dimensions.collect::<Result<_, _>>()?;
        Ok(Self {
            shape,
            ranks,
            rule: Rule::Regular(Grid {
                dimensions,
                procs,
                order,
            }),
        })
    }

    /// A decomposition by [`Spread::Block`] in every dimension, over a grid of all ranks in C
    /// order.
    pub fn block(shape: &[u64], grid: &[u32]) -> Result<Self, Error> {
        let ranks = grid
            .iter()
            .try_fold(1u32, |product, procs| product.checked_mul(*procs));
        let ranks =
            ranks.ok_or_else(|| Error::Invalid("a grid has more than 2³² processes".into()))?;
        Self::regular(
            shape,
            grid,
            &vec![Spread::Block; grid.len()],
            Order::C,
            ranks,
        )
    }

    /// The whole array on one rank, for a serial program.
    pub fn serial(shape: &[u64]) -> Result<Self, Error> {
        Self::block(shape, &vec![1; shape.len()])
    }

    /// A decomposition by boxes, which each rank declares.
    pub fn boxes(shape: &[u64], ranks: u32) -> Result<Self, Error> {
        Ok(Self {
            shape: checked(shape, ranks)?,
            ranks,
            rule: Rule::Boxes,
        })
    }

    /// A decomposition by element numbers, which each rank declares.
    pub fn indices(shape: &[u64], ranks: u32) -> Result<Self, Error> {
        Ok(Self {
            shape: checked(shape, ranks)?,
            ranks,
            rule: Rule::Indices,
        })
    }

    /// The extents of the whole array.
    pub fn shape(&self) -> &Dims {
        &self.shape
    }

    /// The number of ranks.
    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    /// Whether a rule gives the owner of every element, without a directory.
    pub fn is_regular(&self) -> bool {
        matches!(self.rule, Rule::Regular(_))
    }

    /// Whether the decomposition is by boxes.
    pub fn is_by_boxes(&self) -> bool {
        self.rule == Rule::Boxes
    }

    /// The owner of an element; `None` outside the array and for irregular decompositions.
    pub fn owner(&self, point: &[u64]) -> Option<u32> {
        let grid = self.grid()?;
        let inside =
            point.len() == self.shape.len() && point.iter().zip(&*self.shape).all(|(at, n)| at < n);
        inside.then(|| {
            grid.rank(&Dims::from_fn(point.len(), |dim| {
                grid.dimensions[dim].owner(point[dim])
            }))
        })
    }

    /// The extents of the grid; `None` for irregular decompositions.
    pub fn processes(&self) -> Option<Dims> {
        self.grid().map(|grid| grid.procs)
    }

    /// The rule of each dimension; nothing for irregular decompositions.
    pub fn spreads(&self) -> impl Iterator<Item = &Spread> {
        self.grid()
            .into_iter()
            .flat_map(|grid| grid.dimensions.iter().map(|dimension| &dimension.spread))
    }

    /// The indices after `from` along a dimension at which another process may begin, and at last
    /// `to`; nothing for irregular decompositions. A cut crosses the whole array.
    pub fn cuts(&self, dim: usize, from: u64, to: u64) -> impl Iterator<Item = u64> {
        let dimension = self.grid().and_then(|grid| grid.dimensions.get(dim));
        let next = move |at: &u64| {
            dimension
                .filter(|_| *at < to)
                .map(|dimension| dimension.end_of_range(*at).min(to))
        };
        std::iter::successors(next(&from), next)
    }

    /// The place of a rank in the grid; `None` for ranks beyond the grid and for irregular
    /// decompositions.
    pub fn coordinates(&self, rank: u32) -> Option<Dims<u32>> {
        let grid = self.grid()?;
        (u64::from(rank) < grid.procs.volume()).then(|| {
            let place = grid.order.point(u64::from(rank), &grid.procs);
            Dims::from_fn(place.len(), |dim| place[dim] as u32)
        })
    }

    /// The number of indices of a rank in each dimension; `None` for irregular decompositions.
    pub fn extents(&self, rank: u32) -> Option<Dims> {
        let grid = self.grid()?;
        let Some(place) = self.coordinates(rank) else {
            return Some(Dims::all(self.shape.len(), 0));
        };
        Some(Dims::from_fn(place.len(), |dim| {
            grid.dimensions[dim].count(place[dim])
        }))
    }

    /// The indices of a rank along a dimension, rising; `None` for irregular decompositions.
    pub fn indices_along(&self, rank: u32, dim: usize) -> Option<impl Iterator<Item = u64>> {
        let dimension = self.grid()?.dimensions.get(dim)?;
        let ranges = self
            .coordinates(rank)
            .map(|place| dimension.ranges(place[dim]))
            .unwrap_or_default();
        Some(ranges.into_iter().flat_map(|(from, to)| from..to))
    }

    /// The number of elements of a rank; `None` for irregular decompositions.
    pub fn elements(&self, rank: u32) -> Option<u64> {
        let beyond = self.is_regular() && self.coordinates(rank).is_none();
        if beyond {
            Some(0)
        } else {
            self.extents(rank).map(|extents| extents.volume())
        }
    }

    /// The part of a rank as boxes, in C order; nothing for irregular decompositions. Cyclic
    /// dimensions make many boxes.
    pub fn regions(&self, rank: u32) -> Vec<Region> {
        let (Some(grid), Some(place)) = (self.grid(), self.coordinates(rank)) else {
            return Vec::new();
        };
        let mut regions = vec![Region::from_fn(0, |_| (0, 0))];
        for (dimension, process) in grid.dimensions.iter().zip(&*place) {
            let ranges = dimension.ranges(*process);
            let longer = regions.iter().flat_map(|region| {
                let count = region.lower().len();
                ranges.iter().map(move |range| {
                    Region::from_fn(count + 1, |dim| {
                        if dim < count {
                            (region.lower()[dim], region.upper()[dim])
                        } else {
                            *range
                        }
                    })
                })
            });
            regions = longer.collect();
        }
        regions
    }

    pub(crate) fn grid(&self) -> Option<&Grid> {
        if let Rule::Regular(grid) = &self.rule {
            Some(grid)
        } else {
            None
        }
    }
}

impl Grid {
    /// The rank at a place of the grid.
    pub fn rank(&self, place: &Dims<u32>) -> u32 {
        let place: Dims = Dims::from_fn(place.len(), |dim| u64::from(place[dim]));
        self.order.number(&place, &self.procs) as u32
    }
}

impl SpreadDimension {
    /// The ranges of indices of a process.
    fn ranges(&self, process: u32) -> Vec<(u64, u64)> {
        let (from, to) = self.interval(process);
        let Some((block, procs)) = self.cyclic_blocks() else {
            return if from < to {
                vec![(from, to)]
            } else {
                Vec::new()
            };
        };
        let step = block.saturating_mul(procs);
        let starts =
            std::iter::successors(Some(from), |at| at.checked_add(step)).take_while(|at| *at < to);
        starts
            .map(|at| (at, at.saturating_add(block).min(to)))
            .collect()
    }
}

fn checked(shape: &[u64], ranks: u32) -> Result<Dims, Error> {
    let shape = Dims::new(shape)?;
    if shape.iter().any(|extent| *extent > MOST_ELEMENTS) || shape.volume() > MOST_ELEMENTS {
        return Err(Error::Invalid(format!(
            "an array of {shape} has more than {MOST_ELEMENTS} elements"
        )));
    }
    if ranks == 0 {
        return Err(Error::Invalid(
            "a decomposition over 0 ranks; give at least 1".into(),
        ));
    }
    Ok(shape)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_has_the_owner_whose_boxes_hold_it() {
        let spreads = [Spread::Cyclic(2), Spread::Even, Spread::Block];
        for order in [Order::C, Order::Fortran] {
            let decomposition =
                Decomposition::regular(&[9, 4, 5], &[2, 3, 2], &spreads, order, 14).unwrap();
            let regions: Vec<_> = (0..14).map(|rank| decomposition.regions(rank)).collect();
            let whole = Dims::new(&[9, 4, 5]).unwrap();
            for number in 0..whole.volume() {
                let point = Order::C.point(number, &whole);
                let owner = decomposition.owner(&point).unwrap();
                for (rank, regions) in regions.iter().enumerate() {
                    let holds = regions
                        .iter()
                        .filter(|region| region.contains(&point))
                        .count();
                    assert_eq!(
                        holds,
                        usize::from(rank as u32 == owner),
                        "{point:?} and rank {rank}"
                    );
                }
            }
            for rank in 0..14 {
                let volume: u64 = regions[rank as usize].iter().map(Region::volume).sum();
                assert_eq!(decomposition.elements(rank), Some(volume));
            }
            assert_eq!(decomposition.coordinates(12), None);
        }
    }

    #[test]
    fn between_cuts_there_is_one_owner() {
        let spreads = [Spread::Cyclic(2), Spread::Bounds(vec![0, 3, 3, 8])];
        let decomposition =
            Decomposition::regular(&[9, 8], &[2, 3], &spreads, Order::C, 6).unwrap();
        let cuts = |dim, from, to| decomposition.cuts(dim, from, to).collect::<Vec<_>>();
        assert_eq!(cuts(0, 0, 9), [2, 4, 6, 8, 9]);
        assert_eq!(
            (cuts(0, 3, 5), cuts(1, 0, 8), cuts(1, 5, 5)),
            (vec![4, 5], vec![3, 8], vec![])
        );
        assert_eq!(decomposition.processes().unwrap()[..], [2, 3]);
        assert!(decomposition.spreads().eq(&spreads));
        let boxes = Decomposition::boxes(&[9, 8], 6).unwrap();
        assert!(boxes.cuts(0, 0, 9).next().is_none() && boxes.processes().is_none());
    }

    #[test]
    fn ranks_count_through_the_grid_in_its_order() {
        let at = |order| {
            let decomposition =
                Decomposition::regular(&[4, 6], &[2, 3], &[Spread::Block, Spread::Block], order, 6)
                    .unwrap();
            decomposition.owner(&[0, 2])
        };
        assert_eq!((at(Order::C), at(Order::Fortran)), (Some(1), Some(2)));
    }

    #[test]
    fn an_array_without_dimensions_lies_on_the_first_rank() {
        let scalar = Decomposition::regular(&[], &[], &[], Order::C, 3).unwrap();
        assert_eq!(scalar.owner(&[]), Some(0));
        assert_eq!([0, 1].map(|rank| scalar.elements(rank)), [Some(1), Some(0)]);
    }

    #[test]
    fn decompositions_that_cannot_be_are_refused() {
        let text = |result: Result<Decomposition, Error>| result.unwrap_err().to_string();
        let spread = [Spread::Block, Spread::Block];
        assert_eq!(
            text(Decomposition::regular(
                &[4, 4],
                &[2, 3],
                &spread,
                Order::C,
                5
            )),
            "a grid of 2 × 3 processes needs 6 ranks; there are 5"
        );
        assert!(
            text(Decomposition::block(&[4, 4], &[2])).contains("2 extents, a grid of 1 dimensions")
        );
        assert!(text(Decomposition::boxes(&[1 << 40, 1 << 40], 2)).contains("more than"));
        assert!(text(Decomposition::indices(&[4], 0)).contains("0 ranks"));
        assert!(text(Decomposition::block(&[4, 4], &[1 << 16, 1 << 16])).contains("2³²"));
    }
}
