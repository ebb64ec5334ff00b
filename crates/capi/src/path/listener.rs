//! Where other programs open paths to this one.

use std::ffi::{CString, c_char, c_int};

use titin_path::Listener;
use titin_runtime::Result;

use crate::error::{c_text, null, status, value};
use crate::path::options::PathOptions;
use crate::path::{PathHandle, limit, translated};
use crate::{fork, input};

/// The `titin_path_listener` of the header.
pub struct PathListener {
    listener: Listener,
    address: CString,
}

/// # Safety
/// `listener` is NULL or a listener that is not freed while the result is used.
unsafe fn listener<'a>(listener: *const PathListener) -> Result<&'a PathListener> {
    // SAFETY: as the caller promises.
    unsafe { listener.as_ref() }.ok_or_else(|| null("listener", "titin_path_listen"))
}

/// # Safety
/// `address` is NULL or ends with a NUL, `options` is NULL or options, `out` is NULL or may be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_path_listen(
    address: *const c_char,
    options: *const PathOptions,
    out: *mut *mut PathListener,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        input::preset(out, std::ptr::null_mut());
        status(|| {
            fork::prepare();
            titin_runtime::not_forked()?;
            let out = input::out(out, "the listener")?;
            let place = input::text(address, "address")?;
            let options = PathOptions::given(options)?;
            let interrupt = options.settings.interrupt.clone();
            let listener = Listener::start_with(place, &options.key()?, interrupt);
            let listener = listener.map_err(translated)?;
            let address = c_text(&listener.place());
            *out = Box::into_raw(Box::new(PathListener { listener, address }));
            Ok(())
        })
    }
}

/// # Safety
/// `handle` is NULL or a listener that no code uses any more.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_path_listener_free(handle: *mut PathListener) {
    // In a forked child, a thread of the parent may hold a lock for ever.
    if !handle.is_null() && titin_runtime::not_forked().is_ok() {
        // SAFETY: made by `titin_path_listen`.
        drop(unsafe { Box::from_raw(handle) });
    }
}

/// # Safety
/// `handle` is NULL or a listener.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_path_listener_address(handle: *const PathListener) -> *const c_char {
    value(std::ptr::null(), || {
        // SAFETY: as the caller promises.
        Ok(unsafe { listener(handle) }?.address.as_ptr())
    })
}

/// # Safety
/// `handle` is NULL or a listener, `out` is NULL or may be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_path_accept(
    handle: *mut PathListener,
    timeout: f64,
    out: *mut *mut PathHandle,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        input::preset(out, std::ptr::null_mut());
        status(|| {
            titin_runtime::not_forked()?;
            let listener = listener(handle)?;
            let out = input::out(out, "the path")?;
            let path = listener.listener.accept(limit(timeout)?);
            *out = PathHandle::new(path.map_err(translated)?);
            Ok(())
        })
    }
}
