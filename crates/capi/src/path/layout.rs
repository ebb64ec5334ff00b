//! The layout of an array, as exchanges take it.

use std::ffi::{c_char, c_int, c_void};

use titin_runtime::Result;

use crate::array::ArrayArguments;
use crate::error::usage;

/// The `titin_path_layout` of the header.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct RawLayout {
    dtype: c_int,
    rank: c_int,
    extents: *const i64,
    strides: *const i64,
    order: c_int,
    names: *const *const c_char,
}

/// The array at `data` with this layout, for a call that sends the array.
///
/// # Safety
/// `layout` is NULL or points to a layout.
pub(super) unsafe fn to_send(
    data: *const c_void,
    layout: *const RawLayout,
) -> Result<ArrayArguments> {
    // SAFETY: as the caller promises.
    let Some(layout) = (unsafe { layout.as_ref() }) else {
        return Err(usage(
            "NULL was given for the layout of an array: fill in a titin_path_layout",
        ));
    };
    let RawLayout {
        dtype,
        rank,
        extents,
        strides,
        order,
        names,
    } = *layout;
    Ok(ArrayArguments {
        dtype,
        rank,
        extents,
        strides,
        order,
        names,
        data,
    })
}

/// The array at `data` with this layout, for a call that receives into the array. The names of the indices are those of the
/// message.
///
/// # Safety
/// As [`to_send`].
pub(super) unsafe fn to_receive(
    data: *mut c_void,
    layout: *const RawLayout,
) -> Result<ArrayArguments> {
    // SAFETY: as the caller promises.
    let arguments = unsafe { to_send(data, layout) }?;
    Ok(ArrayArguments {
        names: std::ptr::null(),
        ..arguments
    })
}
