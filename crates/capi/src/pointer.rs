//! Pointers of the caller that cross threads.

use std::ffi::c_void;

/// A pointer of the caller, which the library keeps and gives back.
#[derive(Clone, Copy)]
pub(crate) struct Pointer(pub(crate) *mut c_void);

// SAFETY: the library only hands the pointer back to the caller's functions, which may run in any thread that waits.
unsafe impl Send for Pointer {}
// SAFETY: as above.
unsafe impl Sync for Pointer {}

impl Pointer {
    /// The pointer itself. A closure that calls this method captures the whole `Pointer`, which may cross threads.
    pub(crate) fn raw(self) -> *mut c_void {
        self.0
    }
}
