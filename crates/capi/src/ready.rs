//! Lists of light instances that can go on.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use titin_runtime::{Error, Kind, Patience, ReadyList, ReadyListEntry, Result};

use crate::error::{null, status, value};
use crate::input;

/// The target of the header's `titin_ready`.
pub struct ReadyHandle(Arc<ReadyList>);

/// A light instance's entry on a ready list; dropping the entry removes the instance from the list.
pub(crate) struct ReadyEntry(pub(crate) Arc<ReadyListEntry>);

impl Drop for ReadyEntry {
    fn drop(&mut self) {
        self.0.leave();
    }
}

/// # Safety
/// `list` is NULL or a list that is not freed while the result is used.
pub(crate) unsafe fn list<'a>(list: *const ReadyHandle) -> Result<&'a Arc<ReadyList>> {
    // SAFETY: as the caller promises.
    unsafe { list.as_ref() }
        .map(|list| &list.0)
        .ok_or_else(|| null("list", "titin_ready_new"))
}

#[unsafe(no_mangle)]
extern "C" fn titin_ready_new() -> *mut ReadyHandle {
    value(std::ptr::null_mut(), || {
        Ok(Box::into_raw(Box::new(ReadyHandle(ReadyList::new()))))
    })
}

/// # Safety
/// `list` is NULL or a list that no code uses any more.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_ready_free(list: *mut ReadyHandle) {
    if !list.is_null() {
        // SAFETY: made by `titin_ready_new`. Instances on the list share the list's contents.
        drop(unsafe { Box::from_raw(list) });
    }
}

/// # Safety
/// `list` is NULL or a list; `data` is NULL or may be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_ready_next(
    ready: *mut ReadyHandle,
    timeout: f64,
    data: *mut *mut c_void,
) -> c_int {
    status(|| {
        // SAFETY: as the caller promises.
        let (ready, data) = unsafe { (list(ready)?, input::out(data, "the instance's data")?) };
        *data = std::ptr::null_mut();
        let limit = match input::patience(timeout)? {
            Patience::Forever => None,
            Patience::For(limit) => Some(limit),
        };
        let late = || Error::new(Kind::Timeout, "nothing can go on within the time given");
        *data = ready.next(limit).ok_or_else(late)? as *mut c_void;
        Ok(())
    })
}

/// # Safety
/// `list` is NULL or a list.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_ready_descriptor(ready: *const ReadyHandle) -> c_int {
    // SAFETY: as the caller promises.
    value(-1, || unsafe { list(ready) }?.descriptor())
}
