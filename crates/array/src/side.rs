//! One side of a coupled array, and the share of each rank in the coupled region.

use crate::decomposition::Rule;
use crate::strided_indices::{CoupledSpan, StridedIndices};
use crate::{Decomposition, Dims, Error, Order, Ownership, Region};

/// One side of a coupled array, as the ranks describe the side to the other side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Side {
    /// The decomposition of the array.
    pub decomposition: Decomposition,
    /// The coupled region of the array.
    pub region: Region,
    /// The order of elements in memory. Messages have the receiver's order. In a decomposition by
    /// indices the order also numbers the elements of an array of several dimensions.
    pub order: Order,
}

impl Side {
    /// A whole array, in C order.
    pub fn new(decomposition: Decomposition) -> Self {
        let region = Region::whole(decomposition.shape()).expect("a shape that has been checked");
        Self {
            decomposition,
            region,
            order: Order::C,
        }
    }

    /// Couples only this region.
    pub fn region(mut self, region: Region) -> Self {
        self.region = region;
        self
    }

    /// Sets the order.
    pub fn order(mut self, order: Order) -> Self {
        self.order = order;
        self
    }

    /// Refuses a region outside of the array. `who` names the side in the error.
    pub fn check(&self, who: &str) -> Result<(), Error> {
        let (shape, region) = (self.decomposition.shape(), self.region);
        if region.lower().len() == shape.len() && Region::whole(shape)?.covers(&region) {
            return Ok(());
        }
        Err(Error::Mismatch(format!(
            "{who} couples the region {region}, which does not lie in its array of {shape}; correct the region"
        )))
    }

    /// The coupled indices of a dimension.
    pub(crate) fn clip(&self, dim: usize) -> CoupledSpan {
        let lower = self.region.lower()[dim];
        CoupledSpan {
            lower,
            extent: self.region.upper()[dim] - lower,
        }
    }

    /// A box of the domain as a box of this side's array.
    pub(crate) fn outside(&self, region: &Region) -> Region {
        let by = Dims::from_fn(region.lower().len(), |dim| self.region.lower()[dim] as i64);
        region
            .shift(&by)
            .expect("a box of the domain lies in the array")
    }
}

/// The coupled elements of one array of a rank: the product of the indices along the dimensions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OwnedProduct {
    pub block: u32,
    pub indices: Dims<StridedIndices>,
}

impl OwnedProduct {
    /// The smallest box of the domain that has all elements.
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
    /// The products of a rank in the domain: one for a regular decomposition, one for each box.
    /// Empty products are left out.
    pub(crate) fn owned(&self, rank: u32, ownership: &Ownership) -> Vec<OwnedProduct> {
        let mut owned = match (&self.decomposition.rule, ownership) {
            (Rule::Regular(grid), _) => {
                let place = self.decomposition.coordinates(rank);
                let product = |place: Dims<u32>| {
                    self.product(0, |dim| {
                        StridedIndices::of(&grid.dimensions[dim], place[dim], self.clip(dim))
                    })
                };
                place.map(product).into_iter().collect()
            }
            (Rule::Boxes, Ownership::Boxes(boxes)) => {
                let product = |(block, region): (u32, &Region)| {
                    let (lower, upper) = (region.lower(), region.upper());
                    self.product(block, |dim| {
                        StridedIndices::piece(self.clip(dim), lower[dim], upper[dim])
                    })
                };
                (0..).zip(boxes).map(product).collect()
            }
            _ => Vec::new(),
        };
        owned.retain(|product| product.elements() > 0);
        owned
    }

    fn product(&self, block: u32, indices: impl Fn(usize) -> StridedIndices) -> OwnedProduct {
        OwnedProduct {
            block,
            indices: Dims::from_fn(self.region.lower().len(), indices),
        }
    }
}
