//! Filters of the user's: functions in shared libraries, and functions of the binding's language.

use std::ffi::{CString, c_char, c_int, c_void};
use std::sync::{Arc, OnceLock};

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use titin_runtime::{
    Content, Dtype, Error, Filling, FilterFunction, Function, Functions, Mapped, Result,
};

use crate::array::{filling, form, make_bools};
use crate::error::{last, null, status, usage, value};
use crate::input;
use crate::instance::Pointer;
use crate::message::{Message, Origin, content, titin_message_free};
use crate::options::{Options, change};
use crate::value::Value;

/// `titin_filter` of the header.
type Entry = unsafe extern "C" fn(input: *const Message, output: *mut Output) -> c_int;
type Find =
    unsafe extern "C" fn(data: *mut c_void, name: *const c_char, filter: *mut *mut c_void) -> c_int;
type Call =
    unsafe extern "C" fn(filter: *mut c_void, input: *const Message, output: *mut Output) -> c_int;
type Release = unsafe extern "C" fn(filter: *mut c_void);

/// How the binding's language finds and calls filters.
#[derive(Clone, Copy)]
pub(crate) struct Callbacks {
    find: Find,
    call: Call,
    release: Option<Release>,
    data: Pointer,
}

/// What a filter makes of a message: what is not set stays as it was.
#[derive(Default)]
pub struct Output {
    data: Option<(Content, Replacement)>,
    stamps: Option<(f64, Option<f64>)>,
    /// Index names that an array of the same rank keeps.
    names: Vec<String>,
    /// The first error of a call on it, which the filter may not have looked at.
    failed: Option<Error>,
}

impl Output {
    fn change<T>(&mut self, body: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let outcome = body(self);
        if let Err(error) = &outcome {
            self.failed.get_or_insert_with(|| error.clone());
        }
        outcome
    }
}

enum Replacement {
    /// Memory that the filter fills.
    Filled(Filling),
    Ready(Arc<titin_runtime::Buffer>),
}

/// A filter that the binding has found; let go when the instance is.
struct Found {
    filter: Pointer,
    call: Call,
    release: Option<Release>,
}

impl Drop for Found {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: `find` gave the filter, and this is its last use.
            unsafe { release(self.filter.raw()) };
        }
    }
}

/// How the runtime comes by the user's filters.
pub(crate) fn functions(callbacks: Option<Callbacks>) -> Functions {
    Functions::new(move |filter| match (filter, callbacks) {
        (FilterFunction::Library { path, symbol }, _) => from_library(path, symbol),
        (FilterFunction::Python(name), Some(callbacks)) => from_binding(name, callbacks),
        (FilterFunction::Python(name), None) => Err(format!(
            "{name} is a Python function, and this program is not in Python. Where the other end of the conduit is in Python let it \
             run there (\"...@sender\", \"...@receiver\"); else put a component in Python between the two, or write the filter in \
             C: {{library: ..., symbol: ...}}"
        )),
    })
}

/// Loads a library of the user's.
pub(crate) fn load(path: &str) -> std::result::Result<Library, String> {
    // At once, since what is missing would end the process at the first call.
    let flags = RTLD_NOW | RTLD_LOCAL;
    // SAFETY: loading runs the library's initialisers; the user named it to be run in this process.
    unsafe { Library::open(Some(path), flags) }
        .map_err(|error| format!("cannot load {path}: {}{}", said(&error), places(path)))
}

/// A function of a library of the user's.
///
/// # Safety
/// The function is of this type, and not called once the library has gone.
pub(crate) unsafe fn find<T: Copy>(
    library: &Library,
    path: &str,
    symbol: &str,
) -> std::result::Result<T, String> {
    // SAFETY: as the caller promises.
    let entry = unsafe { library.get::<T>(symbol.as_bytes()) }.map(|entry| *entry);
    entry.map_err(|error| {
        format!(
            "{path} has no function {symbol} with C linkage: {}",
            said(&error)
        )
    })
}

fn from_library(path: &str, symbol: &str) -> std::result::Result<Function, String> {
    let library = load(path)?;
    // SAFETY: the header says which type the function must have.
    let entry = unsafe { find::<Entry>(&library, path, symbol) }?;
    Ok(Arc::new(move |mapped| {
        let _loaded = &library;
        // SAFETY: the function is of this type, and its library stays loaded as long as this closure lives.
        run(mapped, |input, output| unsafe { entry(input, output) })
    }))
}

/// What the dynamic linker says.
fn said(error: &libloading::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}

/// Where a library was looked for, if that depends on more than its path.
fn places(path: &str) -> String {
    let then = match std::env::current_dir() {
        _ if path.starts_with('/') => return String::new(),
        Ok(folder) if path.contains('/') => format!("in {}", folder.display()),
        _ => "where the system looks for libraries".to_owned(),
    };
    format!(" (looked for beside the files of the description, then {then})")
}

fn from_binding(name: &str, callbacks: Callbacks) -> std::result::Result<Function, String> {
    let name = CString::new(name).map_err(|_| "its name has a NUL in it".to_owned())?;
    let mut filter = std::ptr::null_mut();
    // SAFETY: the binding promises that it may be called with its data.
    let failed = unsafe { (callbacks.find)(callbacks.data.raw(), name.as_ptr(), &raw mut filter) };
    if failed != 0 {
        return Err(last().map_or_else(|| format!("error {failed}"), |error| error.text));
    }
    let found = Found {
        filter: Pointer(filter),
        call: callbacks.call,
        release: callbacks.release,
    };
    Ok(Arc::new(move |mapped| {
        // The whole of it, or only copies of its fields would be kept here and the filter let go at once.
        let found = &found;
        // SAFETY: the binding gave the filter to be called like this.
        run(mapped, |input, output| unsafe {
            (found.call)(found.filter.raw(), input, output)
        })
    }))
}

/// Calls a filter with a message; what it makes of it.
fn run(
    mapped: &Mapped,
    call: impl FnOnce(*const Message, *mut Output) -> c_int,
) -> std::result::Result<Mapped, String> {
    let names = match &mapped.content {
        Content::Array(layout) => layout.names.clone(),
        _ => Vec::new(),
    };
    let mut output = Output {
        names,
        ..Output::default()
    };
    let refused = Arc::new(OnceLock::new());
    let input = Message::mapped(mapped, Origin::Filtered(refused.clone()))
        .map_err(|error| error.text)?
        .into_raw();
    let _before = crate::error::set_aside();
    let failed = call(input, &raw mut output);
    // SAFETY: the share is ours; a filter that keeps the message has its own.
    unsafe { titin_message_free(input) };
    if failed != 0 {
        return Err(last().map_or_else(|| format!("it returned {failed}"), |error| error.text));
    }
    if let Some(error) = refused.get().cloned().or(output.failed) {
        return Err(error.text);
    }
    let (timestamp, next_timestamp) = output
        .stamps
        .unwrap_or((mapped.timestamp, mapped.next_timestamp));
    let (content, body) = match output.data {
        None => (mapped.content.clone(), mapped.body.clone()),
        Some((content, Replacement::Ready(body))) => (content, body),
        Some((content, Replacement::Filled(mut filling))) => {
            if matches!(&content, Content::Array(layout) if layout.dtype == Dtype::Bool) {
                make_bools(filling.rest());
            }
            (content, Arc::new(filling.finish()))
        }
    };
    Ok(Mapped {
        content,
        body,
        timestamp,
        next_timestamp,
    })
}

/// # Safety
/// `output` is NULL or the output that a filter was called with.
unsafe fn on_output(output: *mut Output, body: impl FnOnce(&mut Output) -> Result<()>) -> c_int {
    status(|| {
        // SAFETY: as the caller promises.
        unsafe { output.as_mut() }
            .ok_or_else(|| null("output", "the call of a filter"))?
            .change(body)
    })
}

/// # Safety
/// `output` is NULL or the output that a filter was called with; `extents` points to `rank` numbers.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_output_array(
    output: *mut Output,
    dtype: c_int,
    rank: c_int,
    extents: *const i64,
    order: c_int,
) -> *mut c_void {
    value(std::ptr::null_mut(), || {
        // SAFETY: as the caller promises.
        let output =
            unsafe { output.as_mut() }.ok_or_else(|| null("output", "the call of a filter"))?;
        output.change(|output| {
            // SAFETY: as the caller promises.
            let mut layout = unsafe { form(dtype, rank, extents, order) }?.to_layout();
            let bytes = layout
                .bytes()
                .ok_or_else(|| usage(format!("an array of {:?}", layout.shape)))?;
            if output.names.len() == layout.shape.len() {
                layout.names.clone_from(&output.names);
            }
            let mut filling = filling(bytes)?;
            let place = filling.rest().as_mut_ptr().cast();
            output.data = Some((Content::Array(layout), Replacement::Filled(filling)));
            Ok(place)
        })
    })
}

/// # Safety
/// `output` is NULL or the output that a filter was called with; `data` is NULL or a value.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_output_value(output: *mut Output, data: *const Value) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        on_output(output, |output| {
            let (content, body) = content(
                data.as_ref()
                    .ok_or_else(|| null("value", "a titin_new_ call"))?,
            )?;
            output.data = Some((content, Replacement::Ready(body)));
            Ok(())
        })
    }
}

/// # Safety
/// `output` is NULL or the output that a filter was called with.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_output_timestamp(
    output: *mut Output,
    timestamp: f64,
    next: f64,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        on_output(output, |output| {
            output.stamps = Some((timestamp, input::next(next)));
            Ok(())
        })
    }
}

/// # Safety
/// `options` is NULL or options; the functions may be called, with `data`, as long as the instance lives.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_options_filters(
    options: *mut Options,
    find: Option<Find>,
    call: Option<Call>,
    release: Option<Release>,
    data: *mut c_void,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        change(options, |options| {
            let (Some(find), Some(call)) = (find, call) else {
                return Err(usage(
                    "NULL was given for the callback that finds or calls filters",
                ));
            };
            options.filters = Some(Callbacks {
                find,
                call,
                release,
                data: Pointer(data),
            });
            Ok(())
        })
    }
}
