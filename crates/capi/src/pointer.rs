//! The caller's pointers, for use by several threads.

use std::ffi::c_void;

/// A pointer of the caller. The library keeps the pointer and gives the pointer back.
#[derive(Clone, Copy)]
pub(crate) struct Pointer(pub(crate) *mut c_void);

// SAFETY: the library only hands the pointer back to the caller's functions, and the functions may
// run in any waiting thread.
unsafe impl Send for Pointer {}
// SAFETY: as above.
unsafe impl Sync for Pointer {}

impl Pointer {
    /// The raw pointer. A closure with a call of this method captures the whole `Pointer`, and a
    /// `Pointer` may cross threads.
    pub(crate) fn raw(self) -> *mut c_void {
        self.0
    }
}
