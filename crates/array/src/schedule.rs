//! What one rank sends to whom, or receives from whom.

use std::ops::Deref;
use std::slice::from_ref;

use crate::comb::Axis;
use crate::list::{List, Strips};
use crate::product::Product;
use crate::{Dims, Local, Order};

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
    pub(crate) shared: Shared,
}

/// What is shared with the partners.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Shared {
    /// Between two regular decompositions.
    Product(Product),
    /// Else, and where there is nothing.
    List(List),
}

/// Somebody to whom a message goes, or from whom one comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Partner {
    /// The partner's rank.
    pub rank: u32,
    /// How many elements a message has, of each field.
    pub elements: u64,
}

/// Elements of one array: along each dimension the indices of an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Which of the rank's arrays.
    pub block: u32,
    /// Which of the schedule's axes, for each dimension.
    pub axes: Dims<u32>,
    /// How many elements of the message come before it.
    pub before: u64,
}

/// Elements one after the other, by their numbers among the rank's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Strip {
    pub at: u64,
    pub length: u64,
}

/// What goes into a message: one of the two forms.
pub(crate) enum Content<'a> {
    Pieces(Pieces<'a>),
    Strips(Strips<'a>),
}

/// The pieces of one partner.
pub(crate) enum Pieces<'a> {
    Made(Piece),
    Listed(&'a [Piece]),
}

impl Deref for Pieces<'_> {
    type Target = [Piece];

    fn deref(&self) -> &[Piece] {
        match self {
            Self::Made(piece) => from_ref(piece),
            Self::Listed(pieces) => pieces,
        }
    }
}

impl Schedule {
    /// Who the partners are, by rank. Only these exchange anything with this rank.
    pub fn partners(&self) -> impl Iterator<Item = Partner> {
        let (product, list) = match &self.shared {
            Shared::Product(product) => (Some(product.partners()), None),
            Shared::List(list) => (None, Some(list.partners())),
        };
        product
            .into_iter()
            .flatten()
            .chain(list.into_iter().flatten())
    }

    /// The partner at a place among them.
    pub fn partner(&self, place: usize) -> Option<Partner> {
        match &self.shared {
            Shared::Product(product) => (place < product.count()).then(|| product.partner(place)),
            Shared::List(list) => list.partner(place),
        }
    }

    /// How many partners there are.
    pub fn count(&self) -> usize {
        match &self.shared {
            Shared::Product(product) => product.count(),
            Shared::List(list) => list.count(),
        }
    }

    /// The place of a rank among the partners.
    pub fn find(&self, rank: u32) -> Option<usize> {
        match &self.shared {
            Shared::Product(product) => product.find(rank),
            Shared::List(list) => list.find(rank),
        }
    }

    /// How many elements of a field this rank sends or receives in all.
    pub fn elements(&self) -> u64 {
        match &self.shared {
            Shared::Product(product) => product.elements(),
            Shared::List(list) => list.elements(),
        }
    }

    /// How much memory the schedule takes, in bytes, about.
    pub fn footprint(&self) -> usize {
        let patterns = self.all_axes().iter().map(|axis| match axis {
            Axis::One(_) => 0,
            Axis::Many(pattern) => {
                size_of_val(&**pattern)
                    + size_of_val(&pattern.spans[..])
                    + size_of_val(&pattern.tail[..])
            }
        });
        let rest = match &self.shared {
            Shared::Product(product) => product.footprint(),
            Shared::List(list) => list.footprint(),
        };
        size_of_val(self.all_axes()) + patterns.sum::<usize>() + rest
    }

    /// Whether a layout is one of the arrays that this schedule is about.
    pub(crate) fn fits(&self, local: &Local) -> bool {
        self.shapes.len() == local.blocks.len()
            && self
                .shapes
                .iter()
                .zip(&local.blocks)
                .all(|(shape, block)| *shape == block.extents)
    }

    pub(crate) fn content(&self, partner: usize) -> Content<'_> {
        match &self.shared {
            Shared::Product(product) => Content::Pieces(Pieces::Made(product.piece(partner))),
            Shared::List(list) => list.content(partner),
        }
    }

    /// The axes of a piece.
    pub(crate) fn axes<'a>(&'a self, piece: &'a Piece) -> impl Iterator<Item = &'a Axis> {
        let axes = self.all_axes();
        piece.axes.iter().map(|axis| &axes[*axis as usize])
    }

    fn all_axes(&self) -> &[Axis] {
        match &self.shared {
            Shared::Product(product) => &product.axes,
            Shared::List(list) => &list.axes,
        }
    }
}
