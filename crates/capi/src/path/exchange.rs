//! Sending and receiving at once.

use std::ffi::{c_int, c_void};
use std::io::IoSlice;

use crate::input;
use crate::message::Message;
use crate::path::receive::{check_apart, message_of, one_place};
use crate::path::{PathHandle, limit, on_path};

/// # Safety
/// `handle` is NULL or a path; `bytes` is NULL or points to `length` bytes; `data` is NULL or points to `room` writable
/// bytes, which no other code uses meanwhile; `received` is NULL or may be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_path_exchange(
    handle: *mut PathHandle,
    bytes: *const c_void,
    length: i64,
    data: *mut c_void,
    room: i64,
    timeout: f64,
    received: *mut i64,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        input::preset(received, 0);
        on_path(handle, |handle| {
            let bytes = input::slice(bytes.cast(), length, "bytes")?;
            check_apart(bytes, data, room)?;
            let message = handle
                .path
                .exchange(bytes, one_place(data, room)?, limit(timeout)?);
            let message = message.map_err(|why| handle.located(why))?;
            input::preset(received, message.length as i64);
            Ok(())
        })
    }
}

/// # Safety
/// `handle` is NULL or a path; `bytes` is NULL or points to `length` bytes; `out` is NULL or may be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_path_exchange_message(
    handle: *mut PathHandle,
    bytes: *const c_void,
    length: i64,
    timeout: f64,
    out: *mut *mut Message,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        input::preset(out, std::ptr::null_mut());
        on_path(handle, |handle| {
            let out = input::out(out, "the message")?;
            let parts = [IoSlice::new(input::slice(bytes.cast(), length, "bytes")?)];
            let received = handle.path.exchange_to(&parts, None, (), limit(timeout)?);
            *out = message_of(handle, received)?;
            Ok(())
        })
    }
}
