//! What one rank sends to whom, or receives from whom.

use crate::partner::SharedPiece;
use crate::partner_grid::PartnerGrid;
use crate::partner_list::{PartnerList, SharedElements, SharedPieces};
use crate::strided_indices::AxisIndices;
use crate::{Dims, LocalLayout, Order, Partner};

/// A rank's messages, as sender or as receiver: its partners, and which of its elements go into the message of each.
///
/// A message has the shared elements box after box of the receiver's, in the receiver's order of boxes; of one box what comes from
/// the sender's first box, then from its second, and so on; each such piece in the receiver's order of elements (C or Fortran). The
/// part of a regular decomposition counts as one box, its indices rising. If one side is by indices, elements come in the order in
/// which the receiver has them: its list of indices, or its boxes in C order. So both ends know the order by themselves.
///
/// It knows nothing of memory: arrays with different halos or strides, but the same decomposition, share one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    pub(crate) order: Order,
    /// The extents of the rank's arrays, to hold a layout against.
    pub(crate) shapes: Vec<Dims>,
    pub(crate) shared: PartnerSet,
}

/// What is shared with the partners.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PartnerSet {
    /// Between two regular decompositions.
    Grid(PartnerGrid),
    /// Else, and where there is nothing.
    List(PartnerList),
}

impl Schedule {
    /// A schedule whose partners are listed.
    pub(crate) fn with_list(order: Order, shapes: Vec<Dims>, list: PartnerList) -> Self {
        Self {
            order,
            shapes,
            shared: PartnerSet::List(list),
        }
    }

    /// Who the partners are, by rank. Only these exchange anything with this rank.
    pub fn partners(&self) -> impl Iterator<Item = Partner> {
        let (product, list) = match &self.shared {
            PartnerSet::Grid(product) => (Some(product.partners()), None),
            PartnerSet::List(list) => (None, Some(list.partners())),
        };
        product
            .into_iter()
            .flatten()
            .chain(list.into_iter().flatten())
    }

    /// The partner at a place among them.
    pub fn partner(&self, place: usize) -> Option<Partner> {
        match &self.shared {
            PartnerSet::Grid(product) => (place < product.count()).then(|| product.partner(place)),
            PartnerSet::List(list) => list.partner(place),
        }
    }

    /// How many partners there are.
    pub fn count(&self) -> usize {
        match &self.shared {
            PartnerSet::Grid(product) => product.count(),
            PartnerSet::List(list) => list.count(),
        }
    }

    /// The place of a rank among the partners.
    pub fn find(&self, rank: u32) -> Option<usize> {
        match &self.shared {
            PartnerSet::Grid(product) => product.find(rank),
            PartnerSet::List(list) => list.find(rank),
        }
    }

    /// How many elements of a field this rank sends or receives in all.
    pub fn elements(&self) -> u64 {
        match &self.shared {
            PartnerSet::Grid(product) => product.elements(),
            PartnerSet::List(list) => list.elements(),
        }
    }

    /// How much memory the schedule takes, in bytes, about.
    pub fn footprint(&self) -> usize {
        let patterns = self.all_axes().iter().map(|axis| match axis {
            AxisIndices::One(_) => 0,
            AxisIndices::Many(pattern) => {
                size_of_val(&**pattern)
                    + size_of_val(&pattern.spans[..])
                    + size_of_val(&pattern.tail[..])
            }
        });
        let rest = match &self.shared {
            PartnerSet::Grid(product) => product.footprint(),
            PartnerSet::List(list) => list.footprint(),
        };
        size_of_val(self.all_axes()) + patterns.sum::<usize>() + rest
    }

    /// Whether a layout is one of the arrays that this schedule is about.
    pub(crate) fn fits(&self, local: &LocalLayout) -> bool {
        self.shapes.len() == local.blocks.len()
            && self
                .shapes
                .iter()
                .zip(&local.blocks)
                .all(|(shape, block)| *shape == block.extents)
    }

    pub(crate) fn content(&self, partner: usize) -> SharedElements<'_> {
        match &self.shared {
            PartnerSet::Grid(product) => {
                SharedElements::Pieces(SharedPieces::Made(product.piece(partner)))
            }
            PartnerSet::List(list) => list.content(partner),
        }
    }

    /// The axes of a piece.
    pub(crate) fn axes<'a>(
        &'a self,
        piece: &'a SharedPiece,
    ) -> impl Iterator<Item = &'a AxisIndices> {
        let axes = self.all_axes();
        piece.axes.iter().map(|axis| &axes[*axis as usize])
    }

    fn all_axes(&self) -> &[AxisIndices] {
        match &self.shared {
            PartnerSet::Grid(product) => &product.axes,
            PartnerSet::List(list) => &list.axes,
        }
    }
}
