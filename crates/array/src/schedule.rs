//! What one rank sends to whom, or receives from whom.

use std::ops::Range;

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
    /// How many elements all strips before every so many-th one have.
    marks: Vec<u64>,
    partners: Vec<Partner>,
}

/// So many strips are between two marks.
const APART: usize = 256;

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
            + size_of_val(&self.marks[..])
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

    /// The strips of a partner, as far as their elements are in this range of the message's.
    pub(crate) fn cut(&self, partner: usize, range: Range<u64>) -> impl Iterator<Item = Strip> {
        let Content::Strips(from, _) = self.partners[partner].content else {
            unreachable!("a partner whose message has strips")
        };
        let mark = from / APART;
        let before: u64 = self.strips[mark * APART..from].iter().map(|strip| strip.length).sum();
        let (begin, end) = (self.marks[mark] + before + range.start, self.marks[mark] + before + range.end);
        let (first, begins) = self.find_strip(begin);
        let (last, ends) = self.find_strip(end.saturating_sub(1).max(begin));
        let at = self.strips[first].at + (begin - begins);
        let (head, middle, tail) = match last - first {
            0 => (Strip { at, length: end - begin }, 0..0, None),
            _ => {
                let length = self.strips[first].length - (begin - begins);
                let tail = Strip { at: self.strips[last].at, length: end - ends };
                (Strip { at, length }, first + 1..last, Some(tail))
            }
        };
        std::iter::once(head).chain(self.strips[middle].iter().copied()).chain(tail)
    }

    /// Which strip has an element, counted through all strips, and how many elements are in those before it.
    fn find_strip(&self, element: u64) -> (usize, u64) {
        let mark = self.marks.partition_point(|mark| *mark <= element) - 1;
        let (mut place, mut before) = (mark * APART, self.marks[mark]);
        while before + self.strips[place].length <= element && place + 1 < self.strips.len() {
            before += self.strips[place].length;
            place += 1;
        }
        (place, before)
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
        for group in self.pieces.chunk_by_mut(|one, other| one.0 == other.0) {
            let mut elements = 0;
            for (_, piece, count) in group.iter_mut() {
                piece.before = elements;
                elements += *count;
            }
            partners.push(Partner {
                rank: group[0].0,
                elements,
                content: Content::Pieces(at, at + group.len()),
            });
            at += group.len();
        }
        self.strips.sort_by_key(|(rank, _)| *rank);
        let mut strips: Vec<Strip> = Vec::with_capacity(self.strips.len());
        let (mut marks, mut total) = (Vec::new(), 0);
        for group in self.strips.chunk_by(|one, other| one.0 == other.0) {
            let (from, mut elements) = (strips.len(), 0);
            for (_, strip) in group {
                match strips[from..].last_mut() {
                    Some(last) if last.at + last.length == strip.at => last.length += strip.length,
                    _ => {
                        if strips.len().is_multiple_of(APART) {
                            marks.push(total + elements);
                        }
                        strips.push(*strip);
                    }
                }
                elements += strip.length;
            }
            total += elements;
            partners.push(Partner {
                rank: group[0].0,
                elements,
                content: Content::Strips(from, strips.len()),
            });
        }
        let pieces = self.pieces.into_iter().map(|(_, piece, _)| piece).collect();
        Schedule { order, shapes, axes: self.axes, pieces, strips, marks, partners }
    }
}
