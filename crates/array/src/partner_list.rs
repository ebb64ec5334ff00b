//! The partners of a rank as a list, with the elements of each message, where a side is irregular.

use std::ops::{Deref, Range};
use std::slice::from_ref;

use crate::partner::{Partner, SharedPiece, Strip};
use crate::partner_grid::PartnerGrid;
use crate::side::OwnedProduct;
use crate::strided_indices::{AxisIndices, StridedIndices, shared_indices};
use crate::{Dims, Side};

/// The partners, and the pieces or strips of each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PartnerList {
    pub axes: Vec<AxisIndices>,
    pieces: Vec<SharedPiece>,
    strips: Vec<Strip>,
    /// The number of elements in all strips before every strip whose number is a multiple of
    /// [`STRIPS_PER_MARK`].
    marks: Vec<u64>,
    partners: Vec<(Partner, MessageContent)>,
}

/// How many strips each mark stands for: a search looks at that many strips one by one.
const STRIPS_PER_MARK: usize = 256;

/// The pieces or the strips of one message: the first, and the one after the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MessageContent {
    Pieces(usize, usize),
    Strips(usize, usize),
}

impl PartnerList {
    pub fn count(&self) -> usize {
        self.partners.len()
    }

    pub fn partners(&self) -> impl Iterator<Item = Partner> {
        self.partners.iter().map(|(partner, _)| *partner)
    }

    pub fn partner(&self, place: usize) -> Option<Partner> {
        self.partners.get(place).map(|(partner, _)| *partner)
    }

    pub fn find(&self, rank: u32) -> Option<usize> {
        self.partners
            .binary_search_by_key(&rank, |(partner, _)| partner.rank)
            .ok()
    }

    pub fn elements(&self) -> u64 {
        self.partners
            .iter()
            .map(|(partner, _)| partner.elements)
            .sum()
    }

    /// The memory of the list without its axes, in bytes.
    pub fn footprint(&self) -> usize {
        size_of_val(&self.pieces[..])
            + size_of_val(&self.strips[..])
            + size_of_val(&self.marks[..])
            + size_of_val(&self.partners[..])
    }

    pub fn content(&self, partner: usize) -> SharedElements<'_> {
        match self.partners[partner].1 {
            MessageContent::Pieces(from, to) => {
                SharedElements::Pieces(SharedPieces::Listed(&self.pieces[from..to]))
            }
            MessageContent::Strips(from, to) => SharedElements::Strips(Strips {
                list: self,
                from,
                to,
            }),
        }
    }

    /// Takes over the pieces with their partners and numbers of elements.
    fn set_pieces(&mut self, mut pieces: Vec<(u32, SharedPiece, u64)>) {
        // A stable sort keeps the order within each message.
        if !pieces.is_sorted_by_key(|(rank, ..)| *rank) {
            pieces.sort_by_key(|(rank, ..)| *rank);
        }
        let mut first = 0;
        for group in pieces.chunk_by_mut(|one, other| one.0 == other.0) {
            let mut elements = 0;
            for (_, piece, count) in group.iter_mut() {
                piece.before = elements;
                elements += *count;
            }
            let (rank, end) = (group[0].0, first + group.len());
            let content = MessageContent::Pieces(first, end);
            self.partners.push((Partner { rank, elements }, content));
            first = end;
        }
        self.pieces = pieces.into_iter().map(|(_, piece, _)| piece).collect();
    }

    /// Takes over the strips with their partners; joins strips of a message that follow each other.
    fn set_strips(&mut self, mut strips: Vec<(u32, Strip)>) {
        strips.sort_by_key(|(rank, _)| *rank);
        self.strips.reserve_exact(strips.len());
        let mut total = 0;
        for group in strips.chunk_by(|one, other| one.0 == other.0) {
            let (first, mut elements) = (self.strips.len(), 0);
            for (_, strip) in group {
                match self.strips[first..].last_mut() {
                    Some(last) if last.at + last.length == strip.at => last.length += strip.length,
                    _ => {
                        if self.strips.len().is_multiple_of(STRIPS_PER_MARK) {
                            self.marks.push(total + elements);
                        }
                        self.strips.push(*strip);
                    }
                }
                elements += strip.length;
            }
            total += elements;
            let rank = group[0].0;
            let content = MessageContent::Strips(first, self.strips.len());
            self.partners.push((Partner { rank, elements }, content));
        }
    }

    /// The place of the strip that has an element, counted through all strips, and the number of
    /// elements before that strip.
    fn find_strip(&self, element: u64) -> (usize, u64) {
        let mark = self.marks.partition_point(|mark| *mark <= element) - 1;
        let (mut place, mut before) = (mark * STRIPS_PER_MARK, self.marks[mark]);
        while before + self.strips[place].length <= element && place + 1 < self.strips.len() {
            before += self.strips[place].length;
            place += 1;
        }
        (place, before)
    }
}

/// The elements of a message, in one of two forms.
pub(crate) enum SharedElements<'a> {
    Pieces(SharedPieces<'a>),
    Strips(Strips<'a>),
}

/// The pieces of one partner.
pub(crate) enum SharedPieces<'a> {
    Made(SharedPiece),
    Listed(&'a [SharedPiece]),
}

impl Deref for SharedPieces<'_> {
    type Target = [SharedPiece];

    fn deref(&self) -> &[SharedPiece] {
        match self {
            Self::Made(piece) => from_ref(piece),
            Self::Listed(pieces) => pieces,
        }
    }
}

/// The strips of one partner.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Strips<'a> {
    list: &'a PartnerList,
    from: usize,
    to: usize,
}

impl<'a> Strips<'a> {
    /// The strip, if there is only one.
    pub fn only(&self) -> Option<Strip> {
        (self.to - self.from == 1).then(|| self.list.strips[self.from])
    }

    /// The strips of a range of the message's elements; the first and the last may be cut.
    pub fn cut(self, range: Range<u64>) -> impl Iterator<Item = Strip> + 'a {
        let strips = &self.list.strips;
        let before = self.elements_before();
        let (begin, end) = (before + range.start, before + range.end);
        let (first, first_begin) = self.list.find_strip(begin);
        let (last, last_begin) = self.list.find_strip(end.saturating_sub(1).max(begin));
        let skipped = begin - first_begin;
        let at = strips[first].at + skipped;
        let (head, middle, tail) = if first == last {
            let length = end - begin;
            (Strip { at, length }, 0..0, None)
        } else {
            let length = strips[first].length - skipped;
            let tail = Strip {
                at: strips[last].at,
                length: end - last_begin,
            };
            (Strip { at, length }, first + 1..last, Some(tail))
        };
        std::iter::once(head)
            .chain(strips[middle].iter().copied())
            .chain(tail)
    }

    /// The number of elements in all strips of the list before these strips.
    fn elements_before(&self) -> u64 {
        let mark = self.from / STRIPS_PER_MARK;
        let strips = &self.list.strips[mark * STRIPS_PER_MARK..self.from];
        self.list.marks[mark] + strips.iter().map(|strip| strip.length).sum::<u64>()
    }
}

/// Collects pieces and strips in the order in which messages have them.
#[derive(Debug, Default)]
pub(crate) struct PartnerListBuilder {
    pub axes: Vec<AxisIndices>,
    pieces: Vec<(u32, SharedPiece, u64)>,
    strips: Vec<(u32, Strip)>,
}

impl PartnerListBuilder {
    /// Adds elements to the message of a partner.
    pub fn strip(&mut self, rank: u32, strip: Strip) {
        match self.strips.last_mut() {
            Some((last_rank, last)) if *last_rank == rank && last.at + last.length == strip.at => {
                last.length += strip.length;
            }
            _ => self.strips.push((rank, strip)),
        }
    }

    /// Adds all that one product of a rank shares with the ranks of a regular side; returns these
    /// ranks.
    pub fn add_grid(&mut self, own: &OwnedProduct, other: &Side) -> Vec<u32> {
        let Some(grid) = PartnerGrid::new(own, other) else {
            return Vec::new();
        };
        let before = self.axes.len() as u32;
        let mut ranks = Vec::with_capacity(grid.count());
        for (place, Partner { rank, elements }) in grid.partners().enumerate() {
            let mut piece = grid.piece(place);
            piece.axes.iter_mut().for_each(|axis| *axis += before);
            self.pieces.push((rank, piece, elements));
            ranks.push(rank);
        }
        self.axes.extend(grid.axes);
        ranks
    }

    /// Adds what one product of a rank shares with these indices of another rank; returns the
    /// number of elements.
    pub fn add_product(
        &mut self,
        own: &OwnedProduct,
        other: &Dims<StridedIndices>,
        rank: u32,
    ) -> u64 {
        let dims = own.indices.len();
        let mut axes: Dims<u32> = Dims::all(dims, 0);
        let (first_axis, mut elements) = (self.axes.len(), 1);
        for dim in 0..dims {
            let Some(axis) = shared_indices(&own.indices[dim], &other[dim]) else {
                self.axes.truncate(first_axis);
                return 0;
            };
            elements *= axis.total();
            axes[dim] = self.axes.len() as u32;
            self.axes.push(axis);
        }
        let piece = SharedPiece {
            block: own.block,
            axes,
            before: 0,
        };
        self.pieces.push((rank, piece, elements));
        elements
    }

    /// The list, by rank. Within a message the order of the calls stays.
    pub fn finish(self) -> PartnerList {
        let mut list = PartnerList {
            axes: self.axes,
            ..PartnerList::default()
        };
        list.set_pieces(self.pieces);
        list.set_strips(self.strips);
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_message_has_these_elements_of_the_whole() {
        let (mut builder, mut whole) = (PartnerListBuilder::default(), [Vec::new(), Vec::new()]);
        // Strips of two partners, none beside the next, more than are between two marks.
        for number in 0..3 * STRIPS_PER_MARK as u64 {
            let (partner, at, length) = (number % 2, 10 * number + 3, number % 3 + 1);
            builder.strip(partner as u32, Strip { at, length });
            whole[partner as usize].extend(at..at + length);
        }
        let list = builder.finish();
        for (partner, whole) in whole.iter().enumerate() {
            let SharedElements::Strips(strips) = list.content(partner) else {
                panic!("single elements")
            };
            let ends = |begin: usize| [begin + 1, begin + 2, begin + 7, begin + 40, whole.len()];
            for (begin, end) in
                (0..whole.len()).flat_map(|begin| ends(begin).map(|end| (begin, end)))
            {
                let end = end.min(whole.len());
                let part = strips
                    .cut(begin as u64..end as u64)
                    .flat_map(|strip| strip.at..strip.at + strip.length);
                assert!(
                    part.eq(whole[begin..end].iter().copied()),
                    "elements {begin} to {end}"
                );
            }
        }
    }
}
