//! The messages of one rank: partners, and elements of each message.

use crate::local_layout::shapes;
use crate::partner::SharedPiece;
use crate::partner_grid::PartnerGrid;
use crate::partner_list::{PartnerList, SharedElements, SharedPieces};
use crate::strided_indices::AxisIndices;
use crate::{Dims, Error, Exchange, LocalLayout, Order, Ownership, Partner, Side};

/// The partners of a rank as sender or receiver, and the elements in the message of each partner.
///
/// Both ends derive the same order of elements in a message. A message has the receiver's boxes one
/// after the other. Each box has the pieces from the sender's first box, from the second, and so
/// on. Each piece is in the receiver's order of elements, C or Fortran. The part of a rank in a
/// regular decomposition counts as one box. If one side is by indices, a message has the elements
/// in the receiver's order: that of the list of indices, or the C order of each box.
///
/// A schedule does not depend on the layout in memory: arrays with different halos or strides, but
/// the same decomposition, can share a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    pub(crate) order: Order,
    /// The extents of the rank's arrays, which a layout has to have.
    pub(crate) shapes: Vec<Dims>,
    pub(crate) shared: PartnerSet,
}

/// The partners with the shared elements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PartnerSet {
    /// Between two regular decompositions.
    Grid(PartnerGrid),
    /// In all other cases, and if there is no partner.
    List(PartnerList),
}

impl Schedule {
    /// The schedule of a rank of one side of an exchange, with a list of partners.
    ///
    /// # Errors
    /// If the rank cannot have what `ownership` says.
    pub(crate) fn with_list(
        exchange: &Exchange,
        own: &Side,
        rank: u32,
        ownership: &Ownership,
        list: PartnerList,
    ) -> Result<Self, Error> {
        Ok(Self {
            order: exchange.to.order,
            shapes: shapes(&own.decomposition, rank, ownership)?,
            shared: PartnerSet::List(list),
        })
    }

    /// The partners in the order of their ranks.
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

    /// The partner at a place in that order.
    pub fn partner(&self, place: usize) -> Option<Partner> {
        match &self.shared {
            PartnerSet::Grid(product) => (place < product.count()).then(|| product.partner(place)),
            PartnerSet::List(list) => list.partner(place),
        }
    }

    /// The number of partners.
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

    /// The number of elements of a field in all messages.
    pub fn elements(&self) -> u64 {
        match &self.shared {
            PartnerSet::Grid(product) => product.elements(),
            PartnerSet::List(list) => list.elements(),
        }
    }

    /// The memory of the schedule, in bytes, approximately.
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

    /// Whether a layout has the extents of the arrays of this schedule.
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
