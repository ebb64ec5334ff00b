//! The elements of arrays in values and messages.

use std::ops::Range;

use titin_runtime::{Dtype, SharedBuffer};

/// The bytes of an array, and the owner of the bytes.
#[derive(Debug, Clone)]
pub(crate) enum Elements {
    /// A range of a payload.
    Shared(SharedBuffer, Range<usize>),
    /// Memory of the caller. The memory stays and does not change as long as this value lives.
    Borrowed(*const u8, usize),
}

// SAFETY: the memory is only read, and the lender promises not to change the memory.
unsafe impl Send for Elements {}
// SAFETY: as above.
unsafe impl Sync for Elements {}

impl AsRef<[u8]> for Elements {
    fn as_ref(&self) -> &[u8] {
        match self {
            Elements::Shared(buffer, range) => &buffer[range.clone()],
            Elements::Borrowed(_, 0) => &[],
            // SAFETY: the maker of the value has promised that the memory is there and does not
            // change.
            Elements::Borrowed(data, length) => unsafe {
                std::slice::from_raw_parts(*data, *length)
            },
        }
    }
}

/// Type and shape in words, for errors.
pub(crate) fn shown(dtype: Dtype, shape: &[u64]) -> String {
    match shape {
        [] => format!("{}, a single value", dtype.name()),
        shape => format!("{} of shape {shape:?}", dtype.name()),
    }
}
