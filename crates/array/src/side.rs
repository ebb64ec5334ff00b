//! One side of a coupled array, and what each of its ranks has of the coupled region.

use crate::decomposition::Rule;
use crate::strided_indices::{CoupledSpan, StridedIndices};
use crate::{Decomposition, Dims, Error, Order, Ownership, Region};

/// One side of a coupled array, as its ranks describe it to the other side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Side {
    /// Who owns what.
    pub decomposition: Decomposition,
    /// What of the array is coupled.
    pub region: Region,
    /// The order of elements in memory. Messages come in the receiver's; with indices it says also how elements of an array of
    /// several dimensions are numbered.
    pub order: Order,
}

impl Side {
    /// The whole of an array, in C order.
    pub fn new(decomposition: Decomposition) -> Self {
        let region = Region::whole(decomposition.shape()).expect("a shape that has been checked");
        Self {
            decomposition,
            region,
            order: Order::C,
        }
    }

    /// Only this region of it.
    pub fn region(mut self, region: Region) -> Self {
        self.region = region;
        self
    }

    /// In this order.
    pub fn order(mut self, order: Order) -> Self {
        self.order = order;
        self
    }

    /// Refuses a region that does not lie in the array; `who` couples it.
    pub fn check(&self, who: &str) -> Result<(), Error> {
        let (shape, region) = (self.decomposition.shape(), self.region);
        if region.lower().len() == shape.len() && Region::whole(shape)?.covers(&region) {
            return Ok(());
        }
        Err(Error::Mismatch(format!(
            "{who} couples the region {region}, which does not lie in its array of {shape}; correct the region"
        )))
    }

    pub(crate) fn clip(&self, dim: usize) -> CoupledSpan {
        let lower = self.region.lower()[dim];
        CoupledSpan {
            lower,
            extent: self.region.upper()[dim] - lower,
        }
    }

    /// A box of the domain, as a box of this array.
    pub(crate) fn outside(&self, region: &Region) -> Region {
        let by = Dims::from_fn(region.lower().len(), |dim| self.region.lower()[dim] as i64);
        region
            .shift(&by)
            .expect("a box of the domain lies in the array")
    }
}

/// One of a rank's arrays with what is coupled of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OwnedProduct {
    pub block: u32,
    pub indices: Dims<StridedIndices>,
}

impl OwnedProduct {
    /// The smallest box of the domain around it.
    pub fn hull(&self) -> Region {
        Region::from_fn(self.indices.len(), |dim| {
            (self.indices[dim].lower, self.indices[dim].upper)
        })
    }

    pub fn elements(&self) -> u64 {
        self.indices.iter().map(StridedIndices::count).product()
    }
}

impl Side {
    /// What a rank has in the domain: nothing, one product, or its boxes. Empty ones are left out.
    pub(crate) fn owned(&self, rank: u32, parts: &Ownership) -> Vec<OwnedProduct> {
        let dims = self.region.lower().len();
        let owned = match (&self.decomposition.rule, parts) {
            (Rule::Regular(grid), _) => {
                let place = self.decomposition.coordinates(rank);
                let part = place.map(|place| {
                    let indices = |dim: usize| {
                        StridedIndices::of(&grid.dimensions[dim], place[dim], self.clip(dim))
                    };
                    OwnedProduct {
                        block: 0,
                        indices: Dims::from_fn(dims, indices),
                    }
                });
                part.into_iter().collect()
            }
            (Rule::Boxes, Ownership::Boxes(boxes)) => {
                let part = |(block, region): (usize, &Region)| {
                    let indices = |dim: usize| {
                        StridedIndices::piece(
                            self.clip(dim),
                            region.lower()[dim],
                            region.upper()[dim],
                        )
                    };
                    OwnedProduct {
                        block: block as u32,
                        indices: Dims::from_fn(dims, indices),
                    }
                };
                boxes.iter().enumerate().map(part).collect()
            }
            _ => Vec::new(),
        };
        owned
            .into_iter()
            .filter(|part| part.elements() > 0)
            .collect()
    }
}
