//! How a path is opened.

use std::ffi::{c_char, c_int, c_void};
use std::path::Path;
use std::time::Duration;

use titin_path::{Interrupt, Key, MOST_STREAMS, PIECE_SIZES, PathSettings, read_key, usual_key};
use titin_runtime::Result;

use crate::error::{null, status, usage, value};
use crate::input;
use crate::options::InterruptCallback;
use crate::path::{limit, translated};

/// The `titin_path_options` of the header.
#[derive(Clone, Default)]
pub struct PathOptions {
    key: Option<Key>,
    pub(super) settings: PathSettings,
}

impl PathOptions {
    /// The options of a call; the defaults for NULL.
    ///
    /// # Safety
    /// `options` is NULL or options.
    pub(super) unsafe fn given(options: *const PathOptions) -> Result<Self> {
        // SAFETY: as the caller promises.
        Ok(unsafe { options.as_ref() }.cloned().unwrap_or_default())
    }

    /// The key: the key that was set, or that of the environment.
    pub(super) fn key(&self) -> Result<Key> {
        match &self.key {
            Some(key) => Ok(key.clone()),
            None => usual_key().map_err(translated),
        }
    }
}

/// # Safety
/// `options` is NULL or options.
unsafe fn change(
    options: *mut PathOptions,
    body: impl FnOnce(&mut PathOptions) -> Result<()>,
) -> c_int {
    status(|| {
        // SAFETY: as the caller promises.
        let options = unsafe { options.as_mut() };
        body(options.ok_or_else(|| null("options", "titin_path_options_new"))?)
    })
}

/// A number of bytes or of streams; 0 is for none.
fn size(number: i64, what: &str) -> Result<Option<u64>> {
    let number = u64::try_from(number).map_err(|_| {
        usage(format!(
            "{number} was given for {what}: give a number from 1 on, or 0 for none of your own"
        ))
    })?;
    Ok((number > 0).then_some(number))
}

/// A number of streams; `None` for 0.
pub(super) fn number_of_streams(streams: c_int) -> Result<Option<u32>> {
    let streams = size(streams.into(), "the number of streams")?;
    match streams {
        Some(many) if many > MOST_STREAMS => Err(usage(format!(
            "{many} streams were asked for: a path has at most {MOST_STREAMS}, and 0 leaves the choice to titin"
        ))),
        streams => Ok(streams.map(|streams| streams as u32)),
    }
}

/// The bytes of a piece; `None` for 0.
pub(super) fn piece(bytes: i64) -> Result<Option<u64>> {
    let bytes = size(bytes, "the bytes of a piece")?;
    match bytes {
        Some(wrong) if !PIECE_SIZES.contains(&wrong) => {
            let (least, most) = PIECE_SIZES.into_inner();
            Err(usage(format!(
                "a piece of {wrong} bytes was asked for: give {least} to {most}, or 0 to leave the choice to titin"
            )))
        }
        bytes => Ok(bytes),
    }
}

/// A limit in bytes per second; `None` for 0.
pub(super) fn pacing(rate: i64) -> Result<Option<u64>> {
    size(rate, "the bytes per second")
}

/// The sizes of a send and a receive buffer; `None` for 0.
pub(super) fn buffers(send: i64, receive: i64) -> Result<[Option<u64>; 2]> {
    Ok([
        size(send, "the size of the send buffer")?,
        size(receive, "the size of the receive buffer")?,
    ])
}

#[unsafe(no_mangle)]
extern "C" fn titin_path_options_new() -> *mut PathOptions {
    value(std::ptr::null_mut(), || Ok(Box::into_raw(Box::default())))
}

/// # Safety
/// `options` is NULL or options that no code uses any more.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_path_options_free(options: *mut PathOptions) {
    if !options.is_null() {
        // SAFETY: made by `titin_path_options_new`.
        drop(unsafe { Box::from_raw(options) });
    }
}

/// # Safety
/// `options` is NULL or options; `key` is NULL or ends with a NUL.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_path_options_key(
    options: *mut PathOptions,
    key: *const c_char,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        change(options, |options| {
            let key = input::text(key, "key")?.parse();
            options.key = Some(key.map_err(|why| usage(format!("no key: {why}")))?);
            Ok(())
        })
    }
}

/// # Safety
/// `options` is NULL or options; `file` is NULL or ends with a NUL.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_path_options_key_file(
    options: *mut PathOptions,
    file: *const c_char,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        change(options, |options| {
            let file = Path::new(input::text(file, "name of the key's file")?);
            options.key = Some(read_key(file).map_err(translated)?);
            Ok(())
        })
    }
}

/// # Safety
/// `options` is NULL or options.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_path_options_streams(
    options: *mut PathOptions,
    streams: c_int,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        change(options, |options| {
            options.settings.streams = number_of_streams(streams)?;
            Ok(())
        })
    }
}

/// # Safety
/// `options` is NULL or options.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_path_options_pacing(options: *mut PathOptions, rate: i64) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        change(options, |options| {
            options.settings.pacing = pacing(rate)?;
            Ok(())
        })
    }
}

/// # Safety
/// `options` is NULL or options.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_path_options_buffers(
    options: *mut PathOptions,
    send: i64,
    receive: i64,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        change(options, |options| {
            let settings = &mut options.settings;
            [settings.send_buffer, settings.receive_buffer] = buffers(send, receive)?;
            Ok(())
        })
    }
}

/// # Safety
/// `options` is NULL or options; `interrupted` may be called with `data` as long as paths and listeners with these
/// options are open.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_path_options_interrupt(
    options: *mut PathOptions,
    interrupted: Option<unsafe extern "C" fn(*mut c_void) -> c_int>,
    data: *mut c_void,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        change(options, |options| {
            let callback = InterruptCallback::new(interrupted, data)?;
            options.settings.interrupt = Interrupt::by(move || callback.is_yes());
            Ok(())
        })
    }
}

/// # Safety
/// `options` is NULL or options.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_path_options_patience(options: *mut PathOptions, seconds: f64) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        change(options, |options| {
            options.settings.patience = limit(seconds)?.unwrap_or(Duration::MAX);
            Ok(())
        })
    }
}

/// # Safety
/// `options` is NULL or options.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_path_options_outage(options: *mut PathOptions, seconds: f64) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        change(options, |options| {
            options.settings.outage = limit(seconds)?.unwrap_or(Duration::MAX);
            Ok(())
        })
    }
}
