//! Non-blocking calls on paths, and the calls that pass messages on from one path to another.

use std::ffi::{c_char, c_double, c_int, c_void};
use std::sync::Arc;

use titin_path::{PathError, ReceiveMemory, Request};
use titin_runtime::{Layout, Result};

use crate::array::ArrayArguments;
use crate::input;
use crate::message::Message;
use crate::path::layout::{RawLayout, to_receive, to_send};
use crate::path::memory::{self, ArrayElements, PostedArray, PostedArrayMemory};
use crate::path::receive::{check_apart, message_of, one_place};
use crate::path::request::RequestHandle;
use crate::path::{PathHandle, limit, on_path, path};

/// A non-blocking call on a path.
///
/// # Safety
/// `handle` is NULL or a path; `out` is NULL or may be written.
unsafe fn post(
    handle: *const PathHandle,
    out: *mut *mut RequestHandle,
    call: impl FnOnce(&PathHandle) -> Result<Request>,
) -> c_int {
    let call = |handle: &PathHandle| Ok((call(handle)?, None));
    // SAFETY: as the caller promises.
    unsafe { post_array(handle, out, call) }
}

/// As [`post`], of a call that receives into an array.
///
/// # Safety
/// As [`post`].
unsafe fn post_array(
    handle: *const PathHandle,
    out: *mut *mut RequestHandle,
    call: impl FnOnce(&PathHandle) -> Result<(Request, Option<Arc<PostedArray>>)>,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        input::preset(out, std::ptr::null_mut());
        on_path(handle, |handle| {
            let out = input::out(out, "the request")?;
            let (request, array) = call(handle)?;
            let request = RequestHandle::new(request, handle.origin(), array);
            *out = Box::into_raw(Box::new(request));
            Ok(())
        })
    }
}

/// # Safety
/// `handle` is NULL or a path; `bytes` is NULL or points to `length` bytes, which do not change until the call is done;
/// `out` is NULL or may be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_path_isend(
    handle: *mut PathHandle,
    bytes: *const c_void,
    length: i64,
    out: *mut *mut RequestHandle,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        post(handle, out, |handle| {
            let bytes: &'static [u8] = input::slice(bytes.cast(), length, "bytes")?;
            Ok(handle.path.post_send(bytes, None))
        })
    }
}

/// # Safety
/// As of `titin_path_send_parts`; the bytes do not change until the call is done; `out` is NULL or may be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_path_isend_parts(
    handle: *mut PathHandle,
    count: c_int,
    parts: *const *const c_void,
    lengths: *const i64,
    out: *mut *mut RequestHandle,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        post(handle, out, |handle| {
            let parts = memory::parts(count, parts, lengths)?;
            Ok(handle.path.post_send(parts, None))
        })
    }
}

/// # Safety
/// `handle` is NULL or a path; the arguments describe an array, as the header says, whose elements do not change until the
/// call is done; `out` is NULL or may be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_path_isend_array(
    handle: *mut PathHandle,
    dtype: c_int,
    rank: c_int,
    extents: *const i64,
    strides: *const i64,
    order: c_int,
    names: *const *const c_char,
    data: *const c_void,
    out: *mut *mut RequestHandle,
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
        post(handle, out, |handle| {
            let mut array = arguments.read()?;
            let elements = array.elements()?;
            let layout: Layout = array.form().to_layout();
            Ok(handle.path.post_send(ArrayElements(elements), Some(layout)))
        })
    }
}

/// # Safety
/// `handle` is NULL or a path; `out` is NULL or may be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_path_ireceive(
    handle: *mut PathHandle,
    out: *mut *mut RequestHandle,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { post(handle, out, |handle| Ok(handle.path.post_receive(()))) }
}

/// # Safety
/// `handle` is NULL or a path; `data` is NULL or points to `room` writable bytes, which no other code uses until the call
/// is done; `out` is NULL or may be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_path_ireceive_into(
    handle: *mut PathHandle,
    data: *mut c_void,
    room: i64,
    out: *mut *mut RequestHandle,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        post(handle, out, |handle| {
            Ok(handle.path.post_receive(one_place(data, room)?))
        })
    }
}

/// # Safety
/// As of `titin_path_receive_parts`; no other code uses the memory until the call is done; `out` is NULL or may be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_path_ireceive_parts(
    handle: *mut PathHandle,
    count: c_int,
    parts: *const *mut c_void,
    rooms: *const i64,
    out: *mut *mut RequestHandle,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        post(handle, out, |handle| {
            let parts = memory::rooms(count, parts, rooms)?;
            Ok(handle.path.post_receive(parts))
        })
    }
}

/// # Safety
/// `handle` is NULL or a path. The arguments describe an array, as the header says: the elements may be written, and no
/// other code uses the elements until the call is done; `out` is NULL or may be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_path_ireceive_array(
    handle: *mut PathHandle,
    dtype: c_int,
    rank: c_int,
    extents: *const i64,
    strides: *const i64,
    order: c_int,
    data: *mut c_void,
    out: *mut *mut RequestHandle,
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
        post_array(handle, out, |handle| {
            let array = PostedArray::new(arguments)?;
            let memory = PostedArrayMemory(array.clone());
            Ok((handle.path.post_receive(memory), Some(array)))
        })
    }
}

/// # Safety
/// `handle` is NULL or a path; `bytes` is NULL or points to `length` bytes; `data` is NULL or points to `room` writable
/// bytes; no other code uses both until the call is done; `out` is NULL or may be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_path_iexchange(
    handle: *mut PathHandle,
    bytes: *const c_void,
    length: i64,
    data: *mut c_void,
    room: i64,
    out: *mut *mut RequestHandle,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        post(handle, out, |handle| {
            let bytes: &'static [u8] = input::slice(bytes.cast(), length, "bytes")?;
            check_apart(bytes, data, room)?;
            let memory = one_place(data, room)?;
            Ok(handle.path.post_exchange(bytes, None, memory))
        })
    }
}

/// # Safety
/// `handle` is NULL or a path; `bytes` is NULL or points to `length` bytes, which do not change until the call is done;
/// `out` is NULL or may be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_path_iexchange_message(
    handle: *mut PathHandle,
    bytes: *const c_void,
    length: i64,
    out: *mut *mut RequestHandle,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        post(handle, out, |handle| {
            let bytes: &'static [u8] = input::slice(bytes.cast(), length, "bytes")?;
            Ok(handle.path.post_exchange(bytes, None, ()))
        })
    }
}

/// # Safety
/// As of `titin_path_exchange_array`: the elements to send do not change, and no other code uses those to receive into, until
/// the call is done; `out` is NULL or may be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_path_iexchange_array(
    handle: *mut PathHandle,
    data: *const c_void,
    data_layout: *const RawLayout,
    memory: *mut c_void,
    memory_layout: *const RawLayout,
    out: *mut *mut RequestHandle,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        post_array(handle, out, |handle| {
            let mut sent = to_send(data, data_layout)?.read()?;
            let array = PostedArray::new(to_receive(memory, memory_layout)?)?;
            array.check_apart(&sent)?;
            let elements = ArrayElements(sent.elements()?);
            let layout: Layout = sent.form().to_layout();
            let memory = PostedArrayMemory(array.clone());
            let request = handle.path.post_exchange(elements, Some(layout), memory);
            Ok((request, Some(array)))
        })
    }
}

/// # Safety
/// `handle` is NULL or a path; `layout` is NULL, or describes an array at `data`, as the header says, whose elements do not
/// change until the call is done; `out` is NULL or may be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_path_iexchange_array_message(
    handle: *mut PathHandle,
    data: *const c_void,
    layout: *const RawLayout,
    out: *mut *mut RequestHandle,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        post(handle, out, |handle| {
            let mut array = to_send(data, layout)?.read()?;
            let elements = ArrayElements(array.elements()?);
            let layout: Layout = array.form().to_layout();
            Ok(handle.path.post_exchange(elements, Some(layout), ()))
        })
    }
}

/// # Safety
/// `handle` is NULL or a path; `out` is NULL or may be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_path_ibarrier(
    handle: *mut PathHandle,
    out: *mut *mut RequestHandle,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { post(handle, out, |handle| Ok(handle.path.post_barrier())) }
}

/// Has the next message of one path go on to another path, unless there is an account of an earlier message.
fn pass_on(
    from: &PathHandle,
    to: &PathHandle,
    memory: Option<impl ReceiveMemory + Send + 'static>,
) -> Result<Request> {
    to.path.check_dropped().map_err(|why| to.located(why))?;
    Ok(from.path.post_cycle(&to.path, memory))
}

/// As [`pass_on`]. The message goes to memory of the program, too, unless `data` is NULL.
///
/// # Safety
/// `data` is NULL or points to `room` writable bytes, which no other code uses until the call is done.
unsafe fn cycle(
    from: &PathHandle,
    to: &PathHandle,
    data: *mut c_void,
    room: i64,
) -> Result<Request> {
    // SAFETY: as the caller promises.
    let memory: &'static mut [u8] = unsafe { one_place(data, room) }?;
    pass_on(from, to, (!data.is_null()).then_some(memory))
}

/// # Safety
/// `from` and `to` are NULL or paths; `data` is NULL or points to `room` writable bytes, which no other code uses until the
/// call is done; `out` is NULL or may be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_path_icycle(
    from: *mut PathHandle,
    to: *mut PathHandle,
    data: *mut c_void,
    room: i64,
    out: *mut *mut RequestHandle,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { post(from, out, |from| cycle(from, path(to)?, data, room)) }
}

/// # Safety
/// `from` and `to` are NULL or paths; `out` is NULL or may be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_path_icycle_message(
    from: *mut PathHandle,
    to: *mut PathHandle,
    out: *mut *mut RequestHandle,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { post(from, out, |from| pass_on(from, path(to)?, Some(()))) }
}

/// # Safety
/// `one` and `other` are NULL or paths; `out` is NULL or may be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_path_irelay(
    one: *mut PathHandle,
    other: *mut PathHandle,
    out: *mut *mut RequestHandle,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { post(one, out, |one| Ok(one.path.post_relay(&path(other)?.path))) }
}

/// # Safety
/// As of `titin_path_icycle`; `length` is NULL or may be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_path_cycle(
    from: *mut PathHandle,
    to: *mut PathHandle,
    data: *mut c_void,
    room: i64,
    timeout: c_double,
    length: *mut i64,
) -> c_int {
    // SAFETY: as the caller promises. The call is over when `complete` returns.
    unsafe {
        input::preset(length, 0);
        on_path(from, |from| {
            let limit = limit(timeout)?;
            let received = cycle(from, path(to)?, data, room)?.complete("cycle", limit);
            let received = received.map_err(|why| from.located(why))?;
            input::preset(length, received.map_or(0, |message| message.length as i64));
            Ok(())
        })
    }
}

/// # Safety
/// `from` and `to` are NULL or paths; `out` is NULL or may be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_path_cycle_message(
    from: *mut PathHandle,
    to: *mut PathHandle,
    timeout: c_double,
    out: *mut *mut Message,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        input::preset(out, std::ptr::null_mut());
        on_path(from, |from| {
            let out = input::out(out, "the message")?;
            let limit = limit(timeout)?;
            let received = pass_on(from, path(to)?, Some(()))?.complete("cycle", limit);
            let received = received.and_then(|message| message.ok_or(PathError::Cancelled));
            *out = message_of(from, received)?;
            Ok(())
        })
    }
}

/// # Safety
/// `one` and `other` are NULL or paths.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_path_relay(
    one: *mut PathHandle,
    other: *mut PathHandle,
    timeout: c_double,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        on_path(one, |one| {
            let limit = limit(timeout)?;
            let relayed = one
                .path
                .post_relay(&path(other)?.path)
                .complete("relay", limit);
            relayed.map_err(|why| one.located(why))?;
            Ok(())
        })
    }
}
