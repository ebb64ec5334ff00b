//! Paths: messages between two programs that share a key, without a manager.

mod exchange;
mod layout;
mod listener;
mod memory;
mod options;
mod post;
mod receive;
mod request;
mod send;

use std::ffi::{CString, c_char, c_int};
use std::time::Duration;

use titin_path::{Path, PathError};
use titin_runtime::{Error, Kind, Patience, Result};

use crate::error::{OK, c_text, keep, null, status, usage, value};
use crate::fork;
use crate::input;
use crate::path::options::PathOptions;

/// The `titin_path` of the header.
pub struct PathHandle {
    path: Path,
    name: CString,
}

impl PathHandle {
    fn new(path: Path) -> *mut Self {
        let name = c_text(path.name());
        Box::into_raw(Box::new(PathHandle { path, name }))
    }

    /// An error of the path, with the path's name.
    fn located(&self, why: PathError) -> Error {
        located(&self.origin(), why)
    }

    /// The path, as errors name it.
    fn origin(&self) -> String {
        match self.path.name() {
            "" => "path".to_owned(),
            name => format!("path '{name}'"),
        }
    }
}

/// An error of the path that is named `origin`.
pub(crate) fn located(origin: &str, why: PathError) -> Error {
    let Error { kind, text, .. } = translated(why);
    Error::new(kind, format!("{origin}: {text}"))
}

/// An error of a path as an error of the library.
pub(crate) fn translated(why: PathError) -> Error {
    let kind = match &why {
        PathError::Late { .. } => Kind::Timeout,
        PathError::Unfit(_) => Kind::TypeMismatch,
        PathError::Dropped { .. } | PathError::Abandoned(_) => Kind::MessageLost,
        PathError::Message(_) | PathError::NoKey(_) | PathError::NoAddress(_) => Kind::Usage,
        PathError::NoMemory(_) => Kind::NoMemory,
        PathError::Interrupted(_) => Kind::Interrupted,
        PathError::Closed => Kind::PortClosed,
        PathError::ClosedHere | PathError::Cancelled => Kind::Closed,
        PathError::Lost(_) => Kind::PeerLost,
        PathError::NotOpened(_) | PathError::OtherKey | PathError::System(_) => Kind::Connection,
    };
    Error::new(kind, why.to_string())
}

/// The limit of a call.
fn limit(timeout: f64) -> Result<Option<Duration>> {
    Ok(match input::patience(timeout)? {
        Patience::Forever => None,
        Patience::For(limit) => Some(limit),
    })
}

/// The path behind a handle.
///
/// # Safety
/// `handle` is NULL or a path that is not closed while the result is used.
unsafe fn path<'a>(handle: *const PathHandle) -> Result<&'a PathHandle> {
    // SAFETY: as the caller promises.
    unsafe { handle.as_ref() }.ok_or_else(|| null("path", "titin_path_open or titin_path_accept"))
}

/// A call on a path.
///
/// # Safety
/// As [`path`].
unsafe fn on_path(
    handle: *const PathHandle,
    body: impl FnOnce(&PathHandle) -> Result<()>,
) -> c_int {
    status(|| {
        titin_runtime::not_forked()?;
        // SAFETY: as the caller promises.
        body(unsafe { path(handle) }?)
    })
}

/// # Safety
/// `addresses` and `name` are NULL or end with a NUL, `options` is NULL or options, `out` is NULL or may be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_path_open(
    addresses: *const c_char,
    name: *const c_char,
    options: *const PathOptions,
    out: *mut *mut PathHandle,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        input::preset(out, std::ptr::null_mut());
        status(|| {
            fork::prepare();
            titin_runtime::not_forked()?;
            let out = input::out(out, "the path")?;
            let addresses = input::text(addresses, "addresses")?;
            let addresses = titin_path::parse_addresses(addresses).map_err(translated)?;
            let name = input::optional_text(name, "name of the path")?.unwrap_or_default();
            let options = PathOptions::given(options)?;
            let path = Path::open(&addresses, name, &options.key()?, &options.settings);
            *out = PathHandle::new(path.map_err(translated)?);
            Ok(())
        })
    }
}

/// # Safety
/// `handle` is NULL or a path that no code uses any more.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_path_close(handle: *mut PathHandle, timeout: f64) -> c_int {
    if let Err(error) = titin_runtime::not_forked() {
        // A thread of the parent may hold a lock for ever. The child leaves the memory alone.
        return keep(error);
    }
    if handle.is_null() {
        return OK;
    }
    status(|| {
        // SAFETY: made by `PathHandle::new`.
        let handle = unsafe { Box::from_raw(handle) };
        let (origin, limit) = (handle.origin(), limit(timeout)?);
        let closed = handle.path.close(limit);
        closed.map_err(|why| located(&origin, why))
    })
}

/// # Safety
/// `handle` is NULL or a path.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_path_name(handle: *const PathHandle) -> *const c_char {
    value(std::ptr::null(), || {
        // SAFETY: as the caller promises.
        Ok(unsafe { path(handle) }?.name.as_ptr())
    })
}

/// # Safety
/// `handle` is NULL or a path.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_path_streams(handle: *const PathHandle) -> c_int {
    // SAFETY: as the caller promises.
    value(0, || Ok(unsafe { path(handle) }?.path.streams() as c_int))
}

/// # Safety
/// `handle` is NULL or a path.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_path_figure(handle: *const PathHandle, figure: c_int) -> f64 {
    value(f64::NAN, || {
        // SAFETY: as the caller promises.
        let statistics = unsafe { path(handle) }?.path.statistics();
        let seconds = statistics.time.as_secs_f64();
        let figures = [
            seconds,
            statistics.messages_sent as f64,
            statistics.bytes_sent as f64,
            statistics.messages_received as f64,
            statistics.bytes_received as f64,
            statistics.bytes_sent as f64 / seconds,
            statistics.bytes_received as f64 / seconds,
            statistics.waited.as_secs_f64(),
            statistics
                .round_trip
                .map_or(f64::NAN, |time| time.as_secs_f64()),
            statistics
                .retransmissions
                .map_or(f64::NAN, |count| count as f64),
            statistics.pacing.unwrap_or(0) as f64,
            statistics.buffers.map_or(f64::NAN, |[send, _]| send as f64),
            statistics
                .buffers
                .map_or(f64::NAN, |[_, receive]| receive as f64),
            statistics.piece.unwrap_or(0) as f64,
        ];
        let place = usize::try_from(figure).ok();
        let found = place.and_then(|place| figures.get(place)).copied();
        found.ok_or_else(|| usage(format!("{figure} is no figure of a path")))
    })
}

/// # Safety
/// `handle` is NULL or a path.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_path_set_streams(handle: *mut PathHandle, streams: c_int) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        on_path(handle, |handle| {
            handle
                .path
                .set_streams(options::number_of_streams(streams)?);
            Ok(())
        })
    }
}

/// # Safety
/// `handle` is NULL or a path.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_path_set_piece(handle: *mut PathHandle, bytes: i64) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        on_path(handle, |handle| {
            handle.path.set_piece(options::piece(bytes)?);
            Ok(())
        })
    }
}

/// # Safety
/// `handle` is NULL or a path.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_path_set_pacing(handle: *mut PathHandle, rate: i64) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        on_path(handle, |handle| {
            handle.path.set_pacing(options::pacing(rate)?);
            Ok(())
        })
    }
}

/// # Safety
/// `handle` is NULL or a path.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_path_set_buffers(
    handle: *mut PathHandle,
    send: i64,
    receive: i64,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        on_path(handle, |handle| {
            let [send, receive] = options::buffers(send, receive)?;
            handle.path.set_buffers(send, receive);
            Ok(())
        })
    }
}

/// # Safety
/// `handle` is NULL or a path.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_path_barrier(handle: *mut PathHandle, timeout: f64) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        on_path(handle, |handle| {
            let passed = handle.path.barrier(limit(timeout)?);
            passed.map_err(|why| handle.located(why))
        })
    }
}

/// # Safety
/// `handle` is NULL or a path.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_path_flush(handle: *mut PathHandle, timeout: f64) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        on_path(handle, |handle| {
            let flushed = handle.path.flush(limit(timeout)?);
            flushed.map_err(|why| handle.located(why))
        })
    }
}
