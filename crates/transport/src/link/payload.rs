//! Payloads on their way out: in the caller's memory, or in private memory.

use std::io::IoSlice;

use crate::buffer::{Buffer, SharedBuffer};
use crate::error::LinkError;

/// The end of a payload, in unchanging memory.
pub(super) struct PayloadRest {
    bytes: SharedBuffer,
    /// Offset of the first byte in the payload.
    start: u64,
}

impl PayloadRest {
    /// A copy of the bytes of `parts` from `start` on.
    ///
    /// # Errors
    /// If there is no memory.
    pub(super) fn copy(parts: &[IoSlice<'_>], start: u64, total: u64) -> Result<Self, LinkError> {
        let mut slices = Vec::new();
        slice_parts(parts, start, total - start, &mut slices);
        Ok(PayloadRest {
            bytes: Buffer::gather(&slices)?.into(),
            start,
        })
    }

    /// A whole payload, without a copy.
    pub(super) fn whole(bytes: SharedBuffer) -> Self {
        PayloadRest { bytes, start: 0 }
    }

    /// `length` bytes of the payload from `offset` on.
    pub(super) fn part(&self, offset: u64, length: u64) -> &[u8] {
        &self.bytes[(offset - self.start) as usize..][..length as usize]
    }
}

/// Appends the slices of `length` bytes of the parts from `offset` on.
pub(super) fn slice_parts<'a>(
    parts: &'a [IoSlice<'a>],
    mut offset: u64,
    mut length: u64,
    out: &mut Vec<IoSlice<'a>>,
) {
    for part in parts {
        let size = part.len() as u64;
        if offset >= size {
            offset -= size;
            continue;
        }
        if length == 0 {
            return;
        }
        let take = length.min(size - offset);
        out.push(IoSlice::new(
            &part[offset as usize..(offset + take) as usize],
        ));
        length -= take;
        offset = 0;
    }
}
