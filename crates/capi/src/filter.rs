//! Filters of the user's: functions in shared libraries, and functions of the binding's language.

use std::ffi::{CString, c_char, c_int, c_void};
use std::sync::{Arc, OnceLock};

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use titin_runtime::{
    Content, Dtype, Error, Filling, FilterFailure, FilterFunction, Function, Functions, Mapped,
    Result,
};

use crate::array::{filling, form, make_bools};
use crate::error::{last, null, status, usage, value};
use crate::input;
use crate::message::{Message, Origin, content, titin_message_free};
use crate::pointer::Pointer;
use crate::value::Value;

/// `titin_filter` of the header.
type LibraryFilter = unsafe extern "C" fn(input: *const Message, output: *mut Output) -> c_int;
pub(crate) type FindFilter =
    unsafe extern "C" fn(data: *mut c_void, name: *const c_char, filter: *mut *mut c_void) -> c_int;
pub(crate) type CallFilter =
    unsafe extern "C" fn(filter: *mut c_void, input: *const Message, output: *mut Output) -> c_int;
pub(crate) type ReleaseFilter = unsafe extern "C" fn(filter: *mut c_void);

/// The functions by which a binding finds and calls filters in the binding's language.
#[derive(Clone, Copy)]
pub(crate) struct FilterCallbacks {
    pub(crate) find: FindFilter,
    pub(crate) call: CallFilter,
    pub(crate) release: Option<ReleaseFilter>,
    pub(crate) data: Pointer,
}

/// A filter's changes of a message; an unset field leaves the message unchanged.
#[derive(Default)]
pub struct Output {
    data: Option<(Content, Replacement)>,
    /// Timestamp and next timestamp.
    stamps: Option<(f64, Option<f64>)>,
    /// Index names of the message. An array of the same rank keeps the names.
    names: Vec<String>,
    /// The first error of a call on the output. The filter may have ignored this error.
    failed: Option<Error>,
}

impl Output {
    fn for_message(mapped: &Mapped) -> Self {
        let names = match &mapped.content {
            Content::Array(layout) => layout.names.clone(),
            _ => Vec::new(),
        };
        Output {
            names,
            ..Output::default()
        }
    }

    /// The message with the filter's changes, or the first error that the filter has ignored.
    fn applied_to(self, mapped: &Mapped) -> Result<Mapped> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let (timestamp, next_timestamp) = self
            .stamps
            .unwrap_or((mapped.timestamp, mapped.next_timestamp));
        let (content, body) = match self.data {
            None => (mapped.content.clone(), mapped.body.clone()),
            Some((content, replacement)) => {
                let body = replacement.finish(&content);
                (content, body)
            }
        };
        Ok(Mapped {
            content,
            body,
            timestamp,
            next_timestamp,
        })
    }

    fn change<T>(&mut self, body: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let outcome = body(self);
        if let Err(error) = &outcome {
            self.failed.get_or_insert_with(|| error.clone());
        }
        outcome
    }
}

/// Data of a filter's output.
enum Replacement {
    /// Memory for the filter to fill.
    Filled(Filling),
    Ready(titin_runtime::SharedBuffer),
}

impl Replacement {
    /// The payload, with bytes other than 0 and 1 made bools where the content is bool.
    fn finish(self, content: &Content) -> titin_runtime::SharedBuffer {
        match self {
            Replacement::Ready(body) => body,
            Replacement::Filled(mut filling) => {
                if matches!(content, Content::Array(layout) if layout.dtype == Dtype::Bool) {
                    make_bools(filling.rest());
                }
                filling.finish().into()
            }
        }
    }
}

/// A filter found by a binding. The filter is released with the instance.
struct BindingFilter {
    filter: Pointer,
    call: CallFilter,
    release: Option<ReleaseFilter>,
}

impl Drop for BindingFilter {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: `find` gave the filter, and this is the filter's last use.
            unsafe { release(self.filter.raw()) };
        }
    }
}

/// The runtime's way to the user's filters.
pub(crate) fn functions(callbacks: Option<FilterCallbacks>) -> Functions {
    Functions::new(move |filter| {
        match (filter, callbacks) {
        (FilterFunction::Library { path, symbol }, _) => Ok(from_library(path, symbol)?),
        (FilterFunction::Python(name), Some(callbacks)) => from_binding(name, callbacks),
        (FilterFunction::Python(name), None) => Err(format!(
            "{name} is a Python function, and this program is not in Python. Where the other end of the conduit is in Python let it \
             run there (\"...@sender\", \"...@receiver\"); else put a component in Python between the two, or write the filter in \
             C: {{library: ..., symbol: ...}}"
        )
        .into()),
    }
    })
}

/// Why a function of the user's library cannot be called.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LibraryError {
    #[error("cannot load {path}: {}{searched}", linker_error(.error))]
    Load {
        path: String,
        error: libloading::Error,
        searched: String,
    },
    #[error("{path} has no function {symbol} with C linkage: {}", linker_error(.error))]
    NoFunction {
        path: String,
        symbol: String,
        error: libloading::Error,
    },
}

/// Loads a library of the user's.
pub(crate) fn load(path: &str) -> std::result::Result<Library, LibraryError> {
    // Symbols are resolved at once: a missing symbol would end the process at the first call.
    let flags = RTLD_NOW | RTLD_LOCAL;
    // SAFETY: loading runs the library's initialisers; the user named the library to run in this
    // process.
    unsafe { Library::open(Some(path), flags) }.map_err(|error| LibraryError::Load {
        path: path.to_owned(),
        error,
        searched: searched_folders(path),
    })
}

/// A function of a library of the user's.
///
/// # Safety
/// The function has type `T`, and is not called once the library has gone.
pub(crate) unsafe fn find<T: Copy>(
    library: &Library,
    path: &str,
    symbol: &str,
) -> std::result::Result<T, LibraryError> {
    // SAFETY: as the caller promises.
    let entry = unsafe { library.get::<T>(symbol.as_bytes()) }.map(|entry| *entry);
    entry.map_err(|error| LibraryError::NoFunction {
        path: path.to_owned(),
        symbol: symbol.to_owned(),
        error,
    })
}

fn from_library(path: &str, symbol: &str) -> std::result::Result<Function, LibraryError> {
    let library = load(path)?;
    // SAFETY: the header prescribes the type of the function.
    let entry = unsafe { find::<LibraryFilter>(&library, path, symbol) }?;
    Ok(Arc::new(move |mapped| {
        let _loaded = &library;
        // SAFETY: the function has the type of the header, and the library stays loaded as long as
        // this closure lives.
        run(mapped, |input, output| unsafe { entry(input, output) })
    }))
}

/// The error text of the dynamic linker.
fn linker_error(error: &libloading::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}

/// The folders where a library was looked for, if the path alone does not say so.
fn searched_folders(path: &str) -> String {
    let then = match std::env::current_dir() {
        _ if path.starts_with('/') => return String::new(),
        Ok(folder) if path.contains('/') => format!("in {}", folder.display()),
        _ => "where the system looks for libraries".to_owned(),
    };
    format!(" (looked for beside the files of the description, then {then})")
}

fn from_binding(
    name: &str,
    callbacks: FilterCallbacks,
) -> std::result::Result<Function, FilterFailure> {
    let name = CString::new(name).map_err(|_| "its name has a NUL in it")?;
    let mut filter = std::ptr::null_mut();
    // SAFETY: the binding promises that `find` may be called with the binding's data.
    let failed = unsafe { (callbacks.find)(callbacks.data.raw(), name.as_ptr(), &raw mut filter) };
    if failed != 0 {
        return Err(last().map_or_else(|| format!("error {failed}").into(), FilterFailure::from));
    }
    let filter = BindingFilter {
        filter: Pointer(filter),
        call: callbacks.call,
        release: callbacks.release,
    };
    Ok(Arc::new(move |mapped| {
        // Captures the whole filter. A closure that names fields captures copies of the fields, and
        // then the filter is dropped at once.
        let filter = &filter;
        // SAFETY: the binding gave the filter for such calls.
        run(mapped, |input, output| unsafe {
            (filter.call)(filter.filter.raw(), input, output)
        })
    }))
}

/// Calls a filter with a message, and gives the changed message.
fn run(
    mapped: &Mapped,
    call: impl FnOnce(*const Message, *mut Output) -> c_int,
) -> std::result::Result<Mapped, FilterFailure> {
    let mut output = Output::for_message(mapped);
    let refused = Arc::new(OnceLock::new());
    let input = Message::mapped(mapped, Origin::Filtered(refused.clone()))?.into_raw();
    let _before = crate::error::save_last_error();
    let failed = call(input, &raw mut output);
    // SAFETY: the share is ours; a filter that keeps the message has a share of its own.
    unsafe { titin_message_free(input) };
    if failed != 0 {
        return Err(last().map_or_else(
            || format!("it returned {failed}").into(),
            FilterFailure::from,
        ));
    }
    if let Some(error) = refused.get() {
        return Err(error.clone().into());
    }
    Ok(output.applied_to(mapped)?)
}

/// # Safety
/// `output` is NULL or the output of a filter's call.
unsafe fn on_output(output: *mut Output, body: impl FnOnce(&mut Output) -> Result<()>) -> c_int {
    status(|| {
        // SAFETY: as the caller promises.
        unsafe { output.as_mut() }
            .ok_or_else(|| null("output", "the call of a filter"))?
            .change(body)
    })
}

/// # Safety
/// `output` is NULL or the output of a filter's call; `extents` points to `rank` numbers.
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
            let elements = filling.rest().as_mut_ptr().cast();
            output.data = Some((Content::Array(layout), Replacement::Filled(filling)));
            Ok(elements)
        })
    })
}

/// # Safety
/// `output` is NULL or the output of a filter's call; `data` is NULL or a value.
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
/// `output` is NULL or the output of a filter's call.
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
