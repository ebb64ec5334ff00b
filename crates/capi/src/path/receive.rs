//! Receiving from a path.

use std::ffi::{c_int, c_void};

use titin_path::ReceivedMessage;
use titin_runtime::Result;

use crate::array::ArrayArguments;
use crate::error::usage;
use crate::input;
use crate::message::Message;
use crate::path::memory::{self, ArrayMemory};
use crate::path::{PathHandle, limit, on_path};

/// A received message, for C to free.
pub(super) fn message_of(
    handle: &PathHandle,
    received: titin_path::Result<ReceivedMessage>,
) -> Result<*mut Message> {
    let received = received.map_err(|why| handle.located(why))?;
    Ok(Message::of_path(received, handle.origin())?.into_raw())
}

/// Memory of the caller for `room` bytes.
///
/// # Safety
/// `memory` is NULL or points to `room` writable bytes, which no other code uses while the result lives.
pub(super) unsafe fn one_place<'a>(memory: *mut c_void, room: i64) -> Result<&'a mut [u8]> {
    // SAFETY: as the caller promises.
    unsafe { input::slice_mut(memory.cast(), room, "bytes of memory") }
}

/// # Safety
/// `handle` is NULL or a path, `out` is NULL or may be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_path_receive(
    handle: *mut PathHandle,
    timeout: f64,
    out: *mut *mut Message,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        input::preset(out, std::ptr::null_mut());
        on_path(handle, |handle| {
            let out = input::out(out, "the message")?;
            *out = message_of(handle, handle.path.receive(limit(timeout)?))?;
            Ok(())
        })
    }
}

/// # Safety
/// `handle` is NULL or a path; `memory` is NULL or points to `room` writable bytes, which no other code uses meanwhile;
/// `length` is NULL or may be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_path_receive_into(
    handle: *mut PathHandle,
    data: *mut c_void,
    room: i64,
    timeout: f64,
    length: *mut i64,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        input::preset(length, 0);
        on_path(handle, |handle| {
            let received = handle
                .path
                .receive_into(one_place(data, room)?, limit(timeout)?);
            let received = received.map_err(|why| handle.located(why))?;
            input::preset(length, received.length as i64);
            Ok(())
        })
    }
}

/// # Safety
/// `handle` is NULL or a path. The arguments describe an array, as the header says: the elements may be written, and no
/// other code uses the elements meanwhile.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_path_receive_array(
    handle: *mut PathHandle,
    dtype: c_int,
    rank: c_int,
    extents: *const i64,
    strides: *const i64,
    order: c_int,
    data: *mut c_void,
    timeout: f64,
) -> c_int {
    let arguments = ArrayArguments {
        dtype,
        rank,
        extents,
        strides,
        order,
        names: std::ptr::null(),
        data,
    };
    // SAFETY: as the caller promises.
    unsafe {
        on_path(handle, |handle| {
            let array = ArrayMemory::new(arguments)?;
            let received = handle.path.receive_to(&array, limit(timeout)?);
            array.fill(&received.map_err(|why| handle.located(why))?);
            Ok(())
        })
    }
}

/// # Safety
/// `handle` is NULL or a path; `parts` and `rooms` are NULL or point to `count` entries each; each part is NULL or points to
/// as many writable bytes as its room says, which no other code uses meanwhile; `length` is NULL or may be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_path_receive_parts(
    handle: *mut PathHandle,
    count: c_int,
    parts: *const *mut c_void,
    rooms: *const i64,
    timeout: f64,
    length: *mut i64,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        input::preset(length, 0);
        on_path(handle, |handle| {
            let parts = memory::rooms(count, parts, rooms)?;
            let received = handle.path.receive_to(parts, limit(timeout)?);
            let received = received.map_err(|why| handle.located(why))?;
            input::preset(length, received.length as i64);
            Ok(())
        })
    }
}

/// The error for memory that a call is to read and to write.
pub(super) fn check_apart(bytes: &[u8], memory: *mut c_void, room: i64) -> Result<()> {
    let (from, to) = (bytes.as_ptr().addr(), memory.addr());
    let is_apart = from + bytes.len() <= to || to + room.max(0) as usize <= from;
    if is_apart || bytes.is_empty() || room <= 0 {
        return Ok(());
    }
    Err(usage(
        "the memory for the received message overlaps the bytes to send: give two places",
    ))
}
