//! The requests of non-blocking calls on paths.

use std::ffi::{c_double, c_int, c_void};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use titin_path::{ReceivedMessage, Request, wait_any};
use titin_runtime::{Error, Result};

use crate::error::{keep, null, status, usage, value};
use crate::input;
use crate::message::Message;
use crate::path::memory::PostedArray;
use crate::path::{limit, located, translated};
use crate::ready::{self, ReadyEntry, ReadyHandle};

/// The `titin_path_request` of the header.
pub struct RequestHandle {
    request: Request,
    /// The path, as errors name it.
    origin: String,
    /// The array into which the call receives.
    array: Option<Arc<PostedArray>>,
    /// What the call has returned, once the program has asked for it.
    outcome: OnceLock<std::result::Result<Option<ReceivedMessage>, Error>>,
    /// The entries on lists of the program's event loops.
    ready: Mutex<Vec<ReadyEntry>>,
}

impl RequestHandle {
    pub(super) fn new(request: Request, origin: String, array: Option<Arc<PostedArray>>) -> Self {
        RequestHandle {
            request,
            origin,
            array,
            outcome: OnceLock::new(),
            ready: Mutex::default(),
        }
    }

    /// What the call has returned. Only for a call that is done.
    fn outcome(&self) -> Result<Option<&ReceivedMessage>> {
        let outcome = self.outcome.get_or_init(|| {
            let received = self.request.received();
            if let (Some(array), Some(received)) = (&self.array, &received) {
                array.fill(received);
            }
            let outcome = self.request.outcome();
            outcome.map_err(|why| located(&self.origin, why))
        });
        match outcome {
            Ok(received) => Ok(received.as_ref()),
            Err(why) => Err(why.clone()),
        }
    }

    fn wait(&self, timeout: c_double) -> Result<()> {
        let waited = self.request.wait(limit(timeout)?);
        waited.map_err(|why| located(&self.origin, why))?;
        self.outcome().map(|_| ())
    }

    /// The received message; an error if there is none.
    fn received(&self) -> Result<ReceivedMessage> {
        let none = || usage("the call has received no message: wait for it first");
        self.request.received().ok_or_else(none)
    }
}

/// # Safety
/// `request` is NULL or a request that is not freed while the result is used.
unsafe fn request<'a>(request: *const RequestHandle) -> Result<&'a RequestHandle> {
    // SAFETY: as the caller promises.
    unsafe { request.as_ref() }
        .ok_or_else(|| null("request", "titin_path_isend or another such call"))
}

/// A call on a request.
///
/// # Safety
/// As [`request`].
unsafe fn on_request(
    handle: *const RequestHandle,
    body: impl FnOnce(&RequestHandle) -> Result<()>,
) -> c_int {
    status(|| {
        titin_runtime::not_forked()?;
        // SAFETY: as the caller promises.
        body(unsafe { request(handle) }?)
    })
}

/// # Safety
/// `handle` is NULL or a request; `done` is NULL or may be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_path_test(handle: *mut RequestHandle, done: *mut c_int) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        input::preset(done, 0);
        on_request(handle, |request| {
            let done = input::out(done, "whether the call is done")?;
            if request.request.test() {
                *done = 1;
                request.outcome()?;
            }
            Ok(())
        })
    }
}

/// # Safety
/// `handle` is NULL or a request.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_path_wait(handle: *mut RequestHandle, timeout: c_double) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { on_request(handle, |request| request.wait(timeout)) }
}

/// # Safety
/// `requests` is NULL or points to `count` entries, each NULL or a request; `index` is NULL or may be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_path_wait_any(
    count: c_int,
    requests: *const *mut RequestHandle,
    timeout: c_double,
    index: *mut c_int,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        input::preset(index, -1);
        status(|| {
            titin_runtime::not_forked()?;
            let index = input::out(index, "the index of the request")?;
            let mut places = Vec::new();
            let mut handles = Vec::new();
            for (place, handle) in input::list(requests, count, "requests")?.iter().enumerate() {
                if let Some(handle) = handle.as_ref() {
                    places.push(place as c_int);
                    handles.push(handle);
                }
            }
            let requests: Vec<&Request> = handles.iter().map(|handle| &handle.request).collect();
            let first = wait_any(&requests, limit(timeout)?).map_err(translated)?;
            *index = places[first];
            handles[first].outcome().map(|_| ())
        })
    }
}

/// # Safety
/// `handle` is NULL or a request; `cancelled` is NULL or may be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_path_cancel(handle: *mut RequestHandle, cancelled: *mut c_int) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        input::preset(cancelled, 0);
        on_request(handle, |request| {
            let is_cancelled = request.request.cancel();
            input::preset(cancelled, is_cancelled.into());
            Ok(())
        })
    }
}

/// # Safety
/// `handle` is NULL or a request.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_path_request_length(handle: *const RequestHandle) -> i64 {
    value(-1, || {
        // SAFETY: as the caller promises.
        Ok(unsafe { request(handle) }?.received()?.length as i64)
    })
}

/// # Safety
/// `handle` is NULL or a request; `out` is NULL or may be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_path_request_message(
    handle: *const RequestHandle,
    out: *mut *mut Message,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        input::preset(out, std::ptr::null_mut());
        on_request(handle, |request| {
            let out = input::out(out, "the message")?;
            let received = request.received()?;
            if received.bytes.len() as u64 != received.length {
                let text = "the call has received the message into memory of the program";
                return Err(usage(text));
            }
            *out = Message::of_path(received, request.origin.clone())?.into_raw();
            Ok(())
        })
    }
}

/// # Safety
/// `handle` is NULL or a request, `list` is NULL or a list.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_path_request_ready(
    handle: *mut RequestHandle,
    list: *mut ReadyHandle,
    data: *mut c_void,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        on_request(handle, |request| {
            let entry = ready::list(list)?.entry(data as u64);
            let mut place = request.ready.lock().unwrap_or_else(PoisonError::into_inner);
            place.push(ReadyEntry(entry.clone()));
            drop(place);
            request.request.notify(move || entry.push());
            Ok(())
        })
    }
}

/// # Safety
/// `handle` is NULL or a request that no code uses any more.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_path_request_free(handle: *mut RequestHandle) {
    if handle.is_null() {
        return;
    }
    if let Err(error) = titin_runtime::not_forked() {
        // A thread of the parent may hold a lock for ever. The child leaves the memory alone.
        keep(error);
        return;
    }
    // SAFETY: made by `post::post_array`.
    drop(unsafe { Box::from_raw(handle) });
}
