//! Sending and receiving at once.

use std::ffi::{c_int, c_void};
use std::io::IoSlice;

use crate::input;
use crate::message::Message;
use crate::path::layout::{RawLayout, to_receive, to_send};
use crate::path::memory::ArrayMemory;
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

/// # Safety
/// `handle` is NULL or a path; the layouts are NULL, or describe arrays at `data` and `memory`, as the header says. The
/// elements at `memory` may be written, and no other code uses them meanwhile.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_path_exchange_array(
    handle: *mut PathHandle,
    data: *const c_void,
    data_layout: *const RawLayout,
    memory: *mut c_void,
    memory_layout: *const RawLayout,
    timeout: f64,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        on_path(handle, |handle| {
            let mut array = to_send(data, data_layout)?.read()?;
            let memory = ArrayMemory::new(to_receive(memory, memory_layout)?)?;
            memory.check_apart(&array)?;
            let elements = array.elements()?;
            let parts = [IoSlice::new(elements.as_ref())];
            let layout = Some(array.form().to_layout());
            let received = handle
                .path
                .exchange_to(&parts, layout, &memory, limit(timeout)?);
            memory.fill(&received.map_err(|why| handle.located(why))?);
            Ok(())
        })
    }
}

/// # Safety
/// `handle` is NULL or a path; `layout` is NULL, or describes an array at `data`, as the header says; `out` is NULL or may be
/// written.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_path_exchange_array_message(
    handle: *mut PathHandle,
    data: *const c_void,
    layout: *const RawLayout,
    timeout: f64,
    out: *mut *mut Message,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        input::preset(out, std::ptr::null_mut());
        on_path(handle, |handle| {
            let out = input::out(out, "the message")?;
            let mut array = to_send(data, layout)?.read()?;
            let elements = array.elements()?;
            let parts = [IoSlice::new(elements.as_ref())];
            let layout = Some(array.form().to_layout());
            let received = handle.path.exchange_to(&parts, layout, (), limit(timeout)?);
            *out = message_of(handle, received)?;
            Ok(())
        })
    }
}
