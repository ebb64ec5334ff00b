//! Payloads on their way out: in the caller's memory, or what is left of them in ours.

use std::io::IoSlice;
use std::sync::Arc;

use crate::{Buffer, Lost};

/// What is left of a payload, in memory that nobody changes.
pub(super) struct Rest {
    bytes: Arc<Buffer>,
    /// Where in the payload it begins.
    start: u64,
}

impl Rest {
    /// A copy of what these parts hold from `start` on.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub(super) fn copy(parts: &[IoSlice<'_>], start: u64, total: u64) -> Result<Self, Lost> {
        let mut slices = Vec::new();
        slice_parts(parts, start, total - start, &mut slices);
        Ok(Rest {
            bytes: Arc::new(Buffer::gather(&slices)?),
            start,
        })
    }

    /// The whole of it, where it lies.
    pub(super) fn whole(bytes: Arc<Buffer>) -> Self {
        Rest { bytes, start: 0 }
    }

    /// So many bytes of the payload from `offset` on.
    pub(super) fn part(&self, offset: u64, length: u64) -> &[u8] {
        &self.bytes[(offset - self.start) as usize..][..length as usize]
    }
}

/// Appends the slices that hold `length` bytes of the parts from `offset`.
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
