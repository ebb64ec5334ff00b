//! What one rank sends to whom, or receives from whom.

use crate::comb::Axis;
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
    pub(crate) axes: Vec<Axis>,
    pub(crate) pieces: Vec<Piece>,
    pub(crate) strips: Vec<Strip>,
    partners: Vec<Partner>,
}

/// Somebody to whom a message goes, or from whom one comes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partner {
    /// The partner's rank.
    pub rank: u32,
    /// How many elements a message has, of each field.
    pub elements: u64,
    content: Content,
}

/// Where a partner's part of the schedule's lists begins and ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    Pieces(usize, usize),
    Strips(usize, usize),
}

/// Elements of one array: along each dimension the indices of an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Which of the rank's arrays.
    pub block: u32,
    /// Which of the schedule's axes, for each dimension.
    pub axes: Dims<u32>,
}

/// Elements one after the other, by their numbers among the rank's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Strip {
    pub at: u64,
    pub length: u64,
}

/// What goes into a message: one of the two forms.
pub(crate) enum Parcel<'a> {
    Pieces(&'a [Piece]),
    Strips(&'a [Strip]),
}

impl Schedule {
    /// Who the partners are, by rank. Only these exchange anything with this rank.
    pub fn partners(&self) -> &[Partner] {
        &self.partners
    }

    /// The place of a rank among the partners.
    pub fn find(&self, rank: u32) -> Option<usize> {
        self.partners.binary_search_by_key(&rank, |partner| partner.rank).ok()
    }

    /// How many elements of a field this rank sends or receives in all.
    pub fn elements(&self) -> u64 {
        self.partners.iter().map(|partner| partner.elements).sum()
    }

    /// How much memory the schedule takes, in bytes, about.
    pub fn footprint(&self) -> usize {
        let patterns = self.axes.iter().map(|axis| match axis {
            Axis::One(_) => 0,
            Axis::Many(pattern) => {
                size_of_val(&**pattern) + size_of_val(&pattern.spans[..]) + size_of_val(&pattern.tail[..])
            }
        });
        size_of_val(&self.axes[..])
            + patterns.sum::<usize>()
            + size_of_val(&self.pieces[..])
            + size_of_val(&self.strips[..])
            + size_of_val(&self.partners[..])
    }

    /// Whether a layout is one of the arrays that this schedule is about.
    pub(crate) fn fits(&self, local: &Local) -> bool {
        self.shapes.len() == local.blocks.len()
            && self.shapes.iter().zip(&local.blocks).all(|(shape, block)| *shape == block.extents)
    }

    pub(crate) fn parcel(&self, partner: usize) -> Parcel<'_> {
        match self.partners[partner].content {
            Content::Pieces(from, to) => Parcel::Pieces(&self.pieces[from..to]),
            Content::Strips(from, to) => Parcel::Strips(&self.strips[from..to]),
        }
    }

    /// The axes of a piece.
    pub(crate) fn axes<'a>(&'a self, piece: &'a Piece) -> impl Iterator<Item = &'a Axis> {
        piece.axes.iter().map(|axis| &self.axes[*axis as usize])
    }
}

/// Gathers pieces and strips as they are found, in the order of the messages.
#[derive(Debug, Default)]
pub(crate) struct Builder {
    pub axes: Vec<Axis>,
    pieces: Vec<(u32, Piece, u64)>,
    strips: Vec<(u32, Strip)>,
}

impl Builder {
    /// Keeps an axis; pieces name it by this number.
    pub fn axis(&mut self, axis: Axis) -> u32 {
        self.axes.push(axis);
        (self.axes.len() - 1) as u32
    }

    pub fn piece(&mut self, rank: u32, piece: Piece, elements: u64) {
        self.pieces.push((rank, piece, elements));
    }

    pub fn strip(&mut self, rank: u32, strip: Strip) {
        match self.strips.last_mut() {
            Some((last_rank, last)) if *last_rank == rank && last.at + last.length == strip.at => {
                last.length += strip.length;
            }
            _ => self.strips.push((rank, strip)),
        }
    }

    pub fn finish(mut self, order: Order, shapes: Vec<Dims>) -> Schedule {
        let mut partners = Vec::new();
        // Stable: within a message the order stays.
        if !self.pieces.is_sorted_by_key(|(rank, ..)| *rank) {
            self.pieces.sort_by_key(|(rank, ..)| *rank);
        }
        let mut at = 0;
        for group in self.pieces.chunk_by(|one, other| one.0 == other.0) {
            let elements = group.iter().map(|(_, _, elements)| elements).sum();
            partners.push(Partner {
                rank: group[0].0,
                elements,
                content: Content::Pieces(at, at + group.len()),
            });
            at += group.len();
        }
        self.strips.sort_by_key(|(rank, _)| *rank);
        let mut strips: Vec<Strip> = Vec::with_capacity(self.strips.len());
        for group in self.strips.chunk_by(|one, other| one.0 == other.0) {
            let (from, mut elements) = (strips.len(), 0);
            for (_, strip) in group {
                elements += strip.length;
                match strips[from..].last_mut() {
                    Some(last) if last.at + last.length == strip.at => last.length += strip.length,
                    _ => strips.push(*strip),
                }
            }
            partners.push(Partner {
                rank: group[0].0,
                elements,
                content: Content::Strips(from, strips.len()),
            });
        }
        let pieces = self.pieces.into_iter().map(|(_, piece, _)| piece).collect();
        Schedule { order, shapes, axes: self.axes, pieces, strips, partners }
    }
}
