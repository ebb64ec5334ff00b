//! Memory of the program that a call sends or receives into, and how a message is split.

use std::ffi::{c_char, c_longlong};

use titin_runtime::Result;

use crate::error::usage;

/// Memory of the program. No reference, as the places to send and those to receive into may overlap.
#[derive(Clone, Copy)]
pub(super) struct Area {
    address: *mut u8,
    pub(super) length: usize,
}

impl Area {
    /// # Errors
    /// For a size below zero, and for bytes at NULL.
    pub(super) fn new(address: *mut c_char, size: c_longlong) -> Result<Self> {
        let length = usize::try_from(size)
            .map_err(|_| usage(format!("the size is {size}: give 0 or more bytes")))?;
        if address.is_null() && length > 0 {
            return Err(usage(format!("NULL was given for {length} bytes")));
        }
        Ok(Area {
            address: address.cast(),
            length,
        })
    }

    /// Splits the memory into pieces, one after the other, with the sizes of [`piece_sizes`].
    pub(super) fn pieces(self, count: usize) -> Vec<Self> {
        let mut offset = 0;
        let piece = |length| {
            let address = self.address.wrapping_add(offset);
            offset += length;
            Area { address, length }
        };
        piece_sizes(self.length, count).map(piece).collect()
    }

    pub(super) fn overlaps(self, other: Area) -> bool {
        let (begin, other_begin) = (self.address.addr(), other.address.addr());
        let is_empty = self.length == 0 || other.length == 0;
        !is_empty && begin < other_begin + other.length && other_begin < begin + self.length
    }

    pub(super) fn address(self) -> *mut c_char {
        self.address.cast()
    }

    /// # Safety
    /// The memory is there, and does not change while the result is used.
    pub(super) unsafe fn bytes(self) -> &'static [u8] {
        match self.length {
            0 => &[],
            // SAFETY: as the caller promises.
            length => unsafe { std::slice::from_raw_parts(self.address, length) },
        }
    }

    /// # Safety
    /// The memory may be written, and no other code uses it while the result is used.
    pub(super) unsafe fn memory(self) -> &'static mut [u8] {
        match self.length {
            0 => &mut [],
            // SAFETY: as the caller promises.
            length => unsafe { std::slice::from_raw_parts_mut(self.address, length) },
        }
    }
}

/// The sizes of `count` pieces: nearly equal, the first ones larger by one byte where that is needed.
pub(super) fn piece_sizes(whole: usize, count: usize) -> impl Iterator<Item = usize> {
    let (each, larger) = (whole / count, whole % count);
    (0..count).map(move |piece| each + usize::from(piece < larger))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_lie_one_after_the_other() {
        let mut memory = [0_u8; 11];
        let area = Area::new(memory.as_mut_ptr().cast(), 11).unwrap();
        let pieces = area.pieces(4);
        let offset = |piece: &Area| piece.address().addr() - area.address().addr();
        let found: Vec<_> = pieces
            .iter()
            .map(|piece| (offset(piece), piece.length))
            .collect();
        assert_eq!(found, [(0, 3), (3, 3), (6, 3), (9, 2)]);
        let few: Vec<_> = piece_sizes(2, 3).collect();
        assert_eq!(few, [1, 1, 0]);
        assert!(pieces[0].overlaps(area) && !pieces[0].overlaps(pieces[1]));
        assert!(!area.pieces(12)[11].overlaps(area), "nothing overlaps");
        assert!(Area::new(std::ptr::null_mut(), 1).is_err());
        assert!(Area::new(memory.as_mut_ptr().cast(), -1).is_err());
    }
}
