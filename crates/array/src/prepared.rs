//! The copies between arrays and a message, worked out once and executed many times.

use std::ops::Range;

use crate::copy_kernel::{ByteOffsets, CopyBytes, LoopNest};
use crate::copy_plan::ElementStrides;
use crate::partner::SharedPiece;
use crate::partner_list::SharedElements;
use crate::{Error, LocalLayout, Schedule, SourceArray, TargetArray};

/// The most copies of a prepared message. More copies take so long that working them out anew
/// hardly matters, and would take memory for each partner.
const MOST_COPIES: usize = 8;

/// The plan of [`Schedule::pack`] or [`Schedule::unpack`] for the whole message of a partner: the
/// copies for arrays of certain layouts.
#[derive(Debug)]
pub struct PreparedMessage {
    arrays: Vec<PreparedArray>,
    /// The length of the message.
    length: usize,
    /// The bytes of the only array that are equal to the message.
    in_place: Option<Range<usize>>,
}

/// An array of the program, and the copies between the array and the message.
#[derive(Debug)]
struct PreparedArray {
    local: LocalLayout,
    size: usize,
    copies: Vec<(LoopNest, ByteOffsets)>,
}

/// The direction of a copy.
#[derive(Clone, Copy, PartialEq)]
enum Direction {
    Pack,
    Unpack,
}

impl Schedule {
    /// Prepares the message for a partner. `None` if there are many copies, or lists of indices.
    ///
    /// # Errors
    /// [`Error::Memory`] if an array does not have the extents of the rank's part.
    pub fn prepare_pack(
        &self,
        partner: usize,
        arrays: &[SourceArray],
    ) -> Result<Option<PreparedMessage>, Error> {
        let arrays = arrays.iter();
        let arrays = arrays.map(|array| (array.local, array.size, array.memory.len()));
        self.prepare(partner, arrays, Direction::Pack)
    }

    /// As [`Schedule::prepare_pack`], for the message from a partner.
    ///
    /// # Errors
    /// As [`Schedule::prepare_pack`].
    pub fn prepare_unpack(
        &self,
        partner: usize,
        arrays: &[TargetArray],
    ) -> Result<Option<PreparedMessage>, Error> {
        let arrays = arrays.iter();
        let arrays = arrays.map(|array| (array.local, array.size, array.memory.len()));
        self.prepare(partner, arrays, Direction::Unpack)
    }

    fn prepare<'a>(
        &self,
        partner: usize,
        arrays: impl Iterator<Item = (&'a LocalLayout, usize, usize)>,
        direction: Direction,
    ) -> Result<Option<PreparedMessage>, Error> {
        let SharedElements::Pieces(pieces) = self.content(partner) else {
            return Ok(None);
        };
        let mut prepared = PreparedMessage {
            arrays: Vec::new(),
            length: 0,
            in_place: None,
        };
        let mut left = MOST_COPIES;
        for (local, size, length) in arrays {
            self.layout(local, length, size)?;
            let begin = prepared.length;
            let copies = self.copies(partner, &pieces, (local, size), begin, direction);
            let Some(rest) = left.checked_sub(copies.len()) else {
                return Ok(None);
            };
            left = rest;
            prepared.length += self.bytes(partner, [size]) as usize;
            prepared.arrays.push(PreparedArray {
                local: local.clone(),
                size,
                copies,
            });
        }
        prepared.in_place = prepared
            .only_piece()
            .filter(|_| direction == Direction::Pack);
        Ok(Some(prepared))
    }

    /// The copies of an array whose elements begin at byte `begin` of the message; one more than
    /// [`MOST_COPIES`] at most.
    fn copies(
        &self,
        partner: usize,
        pieces: &[SharedPiece],
        (local, size): (&LocalLayout, usize),
        begin: usize,
        direction: Direction,
    ) -> Vec<(LoopNest, ByteOffsets)> {
        let mut copies = Vec::new();
        let whole = 0..self.bytes(partner, [1]);
        self.each_plan(pieces, whole, size, |piece, mut plan, before| {
            let message = plan.dense(self.order, before);
            let array = ElementStrides::of(&local.blocks[piece.block as usize]);
            let mut keep = |loops: LoopNest, mut at: ByteOffsets| {
                match direction {
                    Direction::Pack => at.to += begin as isize,
                    Direction::Unpack => at.from += begin as isize,
                }
                if copies.len() <= MOST_COPIES && !loops.is_empty() {
                    copies.push((loops.arranged(), at));
                }
            };
            match direction {
                Direction::Pack => plan.execute(&array, &message, &mut keep),
                Direction::Unpack => {
                    plan.reverse();
                    plan.execute(&message, &array, &mut keep);
                }
            }
        });
        copies
    }
}

impl PreparedMessage {
    /// The length of the message, in bytes.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Whether the message was prepared for arrays like these.
    pub fn fits_sources(&self, arrays: &[SourceArray]) -> bool {
        let arrays = arrays.iter();
        self.fits(arrays.map(|array| (array.local, array.size, array.memory.len())))
    }

    /// As [`PreparedMessage::fits_sources`], for a message that is received.
    pub fn fits_targets(&self, arrays: &[TargetArray]) -> bool {
        let arrays = arrays.iter();
        self.fits(arrays.map(|array| (array.local, array.size, array.memory.len())))
    }

    fn fits<'a>(
        &self,
        arrays: impl ExactSizeIterator<Item = (&'a LocalLayout, usize, usize)>,
    ) -> bool {
        arrays.len() == self.arrays.len()
            && arrays
                .zip(&self.arrays)
                .all(|((local, size, length), prepared)| {
                    size == prepared.size
                        && length >= local.length() as usize * size
                        && *local == prepared.local
                })
    }

    /// The bytes of the only array that are equal to the message, as [`Schedule::in_place`] finds
    /// them. For a message that is sent.
    pub fn in_place(&self) -> Option<Range<usize>> {
        self.in_place.clone()
    }

    fn only_piece(&self) -> Option<Range<usize>> {
        let [PreparedArray { copies, .. }] = &self.arrays[..] else {
            return None;
        };
        let [(loops, at)] = &copies[..] else {
            return None;
        };
        let begin = at.from as usize;
        loops
            .is_one_piece(self.length)
            .then_some(begin..begin + self.length)
    }

    /// Writes the message of arrays for which it was prepared; `copy` copies contiguous bytes.
    ///
    /// # Panics
    /// If the message or an array is shorter than the plan says.
    pub fn pack(&self, copy: CopyBytes, arrays: &[SourceArray], message: &mut [u8]) {
        for (prepared, array) in self.arrays.iter().zip(arrays) {
            for (loops, at) in &prepared.copies {
                loops.run(*at, array.memory, message, copy);
            }
        }
    }

    /// Writes the elements of the message into arrays for which it was prepared; `copy` copies
    /// contiguous bytes.
    ///
    /// # Panics
    /// If the message or an array is shorter than the plan says.
    pub fn unpack(&self, copy: CopyBytes, message: &[u8], arrays: &mut [TargetArray]) {
        for (prepared, array) in self.arrays.iter().zip(arrays) {
            for (loops, at) in &prepared.copies {
                loops.run(*at, message, array.memory, copy);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Decomposition, Exchange, Order, Ownership, Role, Side, Spread};

    fn columns_of_rows() -> Schedule {
        let side = |grid: &[u32]| Side::new(Decomposition::block(&[4, 6], grid).unwrap());
        let exchange = Exchange::new(side(&[2, 1]), side(&[1, 2])).unwrap();
        exchange.schedule(Role::Sender, 1).unwrap()
    }

    #[test]
    fn a_message_is_for_arrays_of_the_same_layouts_and_sizes() {
        let (schedule, memory) = (columns_of_rows(), [0; 96]);
        let dense = LocalLayout::strided(&[2, 6], 0, &[6, 1]).unwrap();
        let turned = LocalLayout::strided(&[2, 6], 5, &[6, -1]).unwrap();
        let array = |local, size, length| SourceArray {
            memory: &memory[..length],
            local,
            size,
        };
        let prepared = schedule
            .prepare_pack(0, &[array(&dense, 8, 96)])
            .unwrap()
            .unwrap();
        assert!(prepared.fits_sources(&[array(&dense, 8, 96)]));
        let others = [
            array(&turned, 8, 96),
            array(&dense, 4, 96),
            array(&dense, 8, 95),
        ];
        for other in others {
            assert!(!prepared.fits_sources(&[other]), "{other:?}");
        }
        assert!(!prepared.fits_sources(&[]));
        assert!(!prepared.fits_sources(&[array(&dense, 8, 96); 2]));
    }

    #[test]
    fn many_copies_are_not_kept() {
        let cyclic = |block| {
            let spread = [Spread::Cyclic(block)];
            Side::new(Decomposition::regular(&[1 << 10], &[2], &spread, Order::C, 2).unwrap())
        };
        let few = Exchange::new(cyclic(4), cyclic(4)).unwrap();
        let many = Exchange::new(cyclic(40), cyclic(7)).unwrap();
        let is_kept = |exchange: Exchange| {
            let schedule = exchange.schedule(Role::Sender, 0).unwrap();
            let whole = &exchange.from().decomposition;
            let local = LocalLayout::dense(whole, 0, &Ownership::Rule, None, Order::C).unwrap();
            let memory = vec![0; local.length() as usize];
            let array = SourceArray {
                memory: &memory,
                local: &local,
                size: 1,
            };
            schedule.prepare_pack(0, &[array]).unwrap().is_some()
        };
        assert!(is_kept(few) && !is_kept(many));
    }
}
