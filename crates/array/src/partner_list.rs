//! What a rank shares with its partners, one after the other: where a side is irregular.

use std::ops::Range;

use crate::comb::Axis;
use crate::schedule::{Content, Partner, Piece, Pieces, Shared, Strip};
use crate::{Dims, Order, Schedule};

/// The partners, and the pieces or strips of each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct List {
    pub axes: Vec<Axis>,
    pieces: Vec<Piece>,
    strips: Vec<Strip>,
    /// How many elements all strips before every so many-th one have.
    marks: Vec<u64>,
    partners: Vec<(Partner, Place)>,
}

/// So many strips are between two marks.
const APART: usize = 256;

/// Where a partner's part of the pieces or the strips begins and ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Pieces(usize, usize),
    Strips(usize, usize),
}

impl List {
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

    /// How much memory it takes beside its axes, in bytes.
    pub fn footprint(&self) -> usize {
        size_of_val(&self.pieces[..])
            + size_of_val(&self.strips[..])
            + size_of_val(&self.marks[..])
            + size_of_val(&self.partners[..])
    }

    pub fn content(&self, partner: usize) -> Content<'_> {
        match self.partners[partner].1 {
            Place::Pieces(from, to) => Content::Pieces(Pieces::Listed(&self.pieces[from..to])),
            Place::Strips(from, to) => Content::Strips(Strips {
                list: self,
                from,
                to,
            }),
        }
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
}

/// The strips of one partner.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Strips<'a> {
    list: &'a List,
    from: usize,
    to: usize,
}

impl<'a> Strips<'a> {
    /// If there is one, and no more.
    pub fn only(&self) -> Option<Strip> {
        (self.to - self.from == 1).then(|| self.list.strips[self.from])
    }

    /// As far as their elements are in this range of the message's.
    pub fn cut(self, range: Range<u64>) -> impl Iterator<Item = Strip> + 'a {
        let (List { strips, marks, .. }, from) = (self.list, self.from);
        let mark = from / APART;
        let before: u64 = strips[mark * APART..from]
            .iter()
            .map(|strip| strip.length)
            .sum();
        let (begin, end) = (
            marks[mark] + before + range.start,
            marks[mark] + before + range.end,
        );
        let (first, begins) = self.list.find_strip(begin);
        let (last, ends) = self.list.find_strip(end.saturating_sub(1).max(begin));
        let at = strips[first].at + (begin - begins);
        let (head, middle, tail) = match last - first {
            0 => (
                Strip {
                    at,
                    length: end - begin,
                },
                0..0,
                None,
            ),
            _ => {
                let length = strips[first].length - (begin - begins);
                let tail = Strip {
                    at: strips[last].at,
                    length: end - ends,
                };
                (Strip { at, length }, first + 1..last, Some(tail))
            }
        };
        std::iter::once(head)
            .chain(strips[middle].iter().copied())
            .chain(tail)
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
            partners.push((
                Partner {
                    rank: group[0].0,
                    elements,
                },
                Place::Pieces(at, at + group.len()),
            ));
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
            partners.push((
                Partner {
                    rank: group[0].0,
                    elements,
                },
                Place::Strips(from, strips.len()),
            ));
        }
        let pieces = self.pieces.into_iter().map(|(_, piece, _)| piece).collect();
        let list = List {
            axes: self.axes,
            pieces,
            strips,
            marks,
            partners,
        };
        Schedule {
            order,
            shapes,
            shared: Shared::List(list),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_message_has_these_elements_of_the_whole() {
        let (mut builder, mut whole) = (Builder::default(), [Vec::new(), Vec::new()]);
        // Strips of two partners, none beside the next, more than are between two marks.
        for number in 0..3 * APART as u64 {
            let (partner, at, length) = (number % 2, 10 * number + 3, number % 3 + 1);
            builder.strip(partner as u32, Strip { at, length });
            whole[partner as usize].extend(at..at + length);
        }
        let schedule = builder.finish(Order::C, Vec::new());
        for (partner, whole) in whole.iter().enumerate() {
            let Content::Strips(strips) = schedule.content(partner) else {
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
