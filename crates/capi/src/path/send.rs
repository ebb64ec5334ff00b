//! Sending on a path.

use std::ffi::{c_char, c_int, c_void};
use std::io::IoSlice;

use crate::array::ArrayArguments;
use crate::input;
use crate::path::{PathHandle, limit, memory, on_path};

/// # Safety
/// `handle` is NULL or a path; `bytes` is NULL or points to `length` bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_path_send(
    handle: *mut PathHandle,
    bytes: *const c_void,
    length: i64,
    timeout: f64,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        on_path(handle, |handle| {
            let bytes = input::slice(bytes.cast(), length, "bytes")?;
            let sent = handle.path.send(bytes, limit(timeout)?);
            sent.map_err(|why| handle.located(why))
        })
    }
}

/// # Safety
/// `handle` is NULL or a path; `parts` and `lengths` are NULL or point to `count` entries each; each part is NULL or
/// points to as many bytes as its length says.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_path_send_parts(
    handle: *mut PathHandle,
    count: c_int,
    parts: *const *const c_void,
    lengths: *const i64,
    timeout: f64,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        on_path(handle, |handle| {
            let parts = memory::parts(count, parts, lengths)?;
            let sent = handle.path.send_parts(&parts, None, limit(timeout)?);
            sent.map_err(|why| handle.located(why))
        })
    }
}

/// # Safety
/// `handle` is NULL or a path; the arguments describe an array, as the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_path_send_array(
    handle: *mut PathHandle,
    dtype: c_int,
    rank: c_int,
    extents: *const i64,
    strides: *const i64,
    order: c_int,
    names: *const *const c_char,
    data: *const c_void,
    timeout: f64,
) -> c_int {
    let arguments = ArrayArguments {
        dtype,
        rank,
        extents,
        strides,
        order,
        names,
        data,
    };
    // SAFETY: as the caller promises.
    unsafe {
        on_path(handle, |handle| {
            let limit = limit(timeout)?;
            let send = |layout, elements: &[u8]| {
                let parts = [IoSlice::new(elements)];
                let sent = handle.path.send_parts(&parts, Some(layout), limit);
                sent.map_err(|why| handle.located(why))
            };
            if let Some((form, elements)) = arguments.plain()? {
                return send(form.to_layout(), elements);
            }
            let mut described = arguments.read()?;
            let elements = described.elements()?;
            send(described.form().to_layout(), elements.as_ref())
        })
    }
}
