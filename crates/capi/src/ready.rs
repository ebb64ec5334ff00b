//! Instances that do not wait, and the list of those that can go on.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use titin_runtime::{Error, Kind, Listing, Patience, ReadyList, Result};

use crate::error::{null, status, value};
use crate::input;
use crate::options::{Options, change};

/// What `titin_ready` points to.
pub struct List(Arc<ReadyList>);

/// A light instance's place on the list, which it leaves for good with this.
pub(crate) struct Enlisted(pub(crate) Arc<Listing>);

impl Drop for Enlisted {
    fn drop(&mut self) {
        self.0.leave();
    }
}

/// # Safety
/// `list` is NULL or a list that is not freed while the result is used.
unsafe fn list<'a>(list: *const List) -> Result<&'a Arc<ReadyList>> {
    // SAFETY: as the caller promises.
    unsafe { list.as_ref() }
        .map(|list| &list.0)
        .ok_or_else(|| null("list", "titin_ready_new"))
}

#[unsafe(no_mangle)]
extern "C" fn titin_ready_new() -> *mut List {
    value(std::ptr::null_mut(), || {
        Ok(Box::into_raw(Box::new(List(ReadyList::new()))))
    })
}

/// # Safety
/// `list` is NULL or a list that nobody uses any more.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_ready_free(list: *mut List) {
    if !list.is_null() {
        // SAFETY: made by `titin_ready_new`. Instances on it have a share of what it holds.
        drop(unsafe { Box::from_raw(list) });
    }
}

/// # Safety
/// `options` is NULL or options, `list` is NULL or a list.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_options_ready(
    options: *mut Options,
    ready: *mut List,
    data: *mut c_void,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        change(options, |options| {
            options.ready = Some((list(ready)?.clone(), data as u64));
            Ok(())
        })
    }
}

/// # Safety
/// `list` is NULL or a list; `data` is NULL or may be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_ready_next(
    ready: *mut List,
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
        let late = || Error::new(Kind::Timeout, "no instance can go on within the time given");
        *data = ready.next(limit).ok_or_else(late)? as *mut c_void;
        Ok(())
    })
}

/// # Safety
/// `list` is NULL or a list.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_ready_descriptor(ready: *const List) -> c_int {
    // SAFETY: as the caller promises.
    value(-1, || unsafe { list(ready) }?.descriptor())
}
