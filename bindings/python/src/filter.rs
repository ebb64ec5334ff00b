//! Filters that are Python functions: found when an instance is opened, called by libtitin.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::NonNull;

use pyo3::exceptions::PyModuleNotFoundError;
use pyo3::prelude::*;

use crate::message::Message;
use crate::payload::Payload;
use crate::value::{Data, Value};
use crate::{error, sys};

/// The status of a failed filter.
const FAILED: c_int = 1;

/// A function, and whether the function takes the message beside the data.
struct Filter {
    function: Py<PyAny>,
    takes_message: bool,
}

/// Lets an instance opened with `options` call filters named `module:function`.
///
/// # Safety
/// `options` are libtitin's, and not freed.
pub unsafe fn offer(options: *mut sys::titin_options) -> c_int {
    // SAFETY: as the caller promises; the functions live as long as the process and need no data.
    unsafe { sys::titin_options_filters(options, find, call, dispose, std::ptr::null_mut()) }
}

extern "C" fn find(_data: *mut c_void, name: *const c_char, filter: *mut *mut c_void) -> c_int {
    attached(|py| {
        // SAFETY: libtitin gives a text.
        let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
        let function = import(py, &name)?;
        let wanted = py
            .import("titin.calls")?
            .call_method1("needed", (&function,))?
            .extract::<usize>()?;
        let found = Box::new(Filter {
            function,
            takes_message: wanted > 1,
        });
        // SAFETY: libtitin has room for the pointer, and gives the pointer to `call` and once to
        // `dispose`.
        unsafe { *filter = Box::into_raw(found).cast() };
        Ok(())
    })
}

extern "C" fn call(
    filter: *mut c_void,
    input: *const sys::titin_message,
    out: *mut sys::titin_output,
) -> c_int {
    attached(|py| {
        // SAFETY: `find` has given the filter, and the filter is not disposed of yet.
        let filter = unsafe { &*filter.cast::<Filter>() };
        let Some(input) = NonNull::new(input.cast_mut()) else {
            return Ok(());
        };
        // SAFETY: the function may keep the data, so the payload is another owner of the message.
        let payload = unsafe {
            sys::titin_message_retain(input.as_ptr());
            Payload::new(input)
        };
        let message = Message::received(payload);
        let data = message.data(py)?;
        let function = filter.function.bind(py);
        let result = match filter.takes_message {
            true => function.call1((data, Py::new(py, message)?))?,
            false => function.call1((data,))?,
        };
        // SAFETY: libtitin gives `out` for this call.
        unsafe { write_output(&result, out) }
    })
}

extern "C" fn dispose(filter: *mut c_void) {
    let free = |_: Python<'_>| {
        // SAFETY: `find` has given the filter; libtitin disposes of a filter once.
        drop(unsafe { Box::from_raw(filter.cast::<Filter>()) });
    };
    // Without an interpreter the function cannot be freed.
    let _ = Python::try_attach(free);
}

/// Writes the result of a filter to `out`: data, or a message with timestamps too.
///
/// # Safety
/// `out` is the output that libtitin gave to the filter.
unsafe fn write_output(object: &Bound<'_, PyAny>, out: *mut sys::titin_output) -> PyResult<()> {
    let py = object.py();
    if let Ok(message) = object.cast::<Message>() {
        let message = message.get();
        if message.settings(py)?.bind(py).len()? != 0 {
            return Err(error::usage(
                py,
                "a filter cannot give a message settings: they are the sender's",
            ));
        }
        let (timestamp, next) = message.timestamps();
        // SAFETY: as the caller promises.
        error::check(py, unsafe {
            sys::titin_output_timestamp(out, timestamp, next)
        })?;
        // SAFETY: as above.
        return unsafe { write_data(message.data(py)?.bind(py), out) };
    }
    // SAFETY: as the caller promises.
    unsafe { write_data(object, out) }
}

/// # Safety
/// `out` is the output that libtitin gave to the filter.
unsafe fn write_data(object: &Bound<'_, PyAny>, out: *mut sys::titin_output) -> PyResult<()> {
    let py = object.py();
    match Data::new(object)? {
        Data::Array(array) if array.names().is_null() => {
            // SAFETY: `out` is valid; the result has room for the array.
            let target = unsafe {
                sys::titin_output_array(
                    out,
                    array.dtype,
                    array.rank(),
                    array.extents(),
                    array.order(),
                )
            };
            if target.is_null() {
                return Err(error::last(py));
            }
            // SAFETY: as above.
            unsafe { array.copy_to(py, target) }
        }
        _ => {
            let value = Value::new(object)?;
            // SAFETY: `out` is valid; the value is copied.
            error::check(py, unsafe { sys::titin_output_value(out, value.as_ptr()) })
        }
    }
}

/// The function named `module:function`.
fn import(py: Python<'_>, name: &str) -> PyResult<Py<PyAny>> {
    let Some((module, function)) = name.split_once(':') else {
        return Err(error::usage(
            py,
            format!("\"{name}\" names no function: write module:function"),
        ));
    };
    let mut found = py
        .import(module)
        .inspect_err(|raised| say_where(py, raised))?
        .into_any();
    for part in function.split('.') {
        found = found.getattr(part)?;
    }
    match found.is_callable() {
        true => Ok(found.unbind()),
        false => Err(error::usage(py, format!("\"{name}\" is no function"))),
    }
}

/// Adds a note to an exception about a missing module. The note says where Python looked for the
/// module.
fn say_where(py: Python<'_>, raised: &PyErr) {
    let text = "It was looked for as by import in this program: in the folder of its main file, in PYTHONPATH, and \
                among what is installed.";
    if raised.is_instance_of::<PyModuleNotFoundError>(py) {
        // Without the note the exception still names the module.
        let _ = raised.value(py).call_method1("add_note", (text,));
    }
}

/// Runs a body with Python. An exception becomes the text of libtitin's error.
fn attached(run: impl FnOnce(Python<'_>) -> PyResult<()>) -> c_int {
    let outcome = Python::try_attach(|py| run(py).map_err(|raised| explain(py, raised)));
    let text = match outcome {
        Some(Ok(())) => return sys::OK,
        Some(Err(text)) => text,
        None => "Python has ended".to_owned(),
    };
    let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
    // SAFETY: the text is copied.
    unsafe { sys::titin_set_error(text.as_ptr()) };
    FAILED
}

/// The text of an exception, with the frames of the user's code.
fn explain(py: Python<'_>, raised: PyErr) -> String {
    // The exception gets the traceback only when turned into a value.
    let raised = raised.into_value(py);
    let last = || -> PyResult<String> {
        py.import("titin.errors")?
            .call_method1(
                "last_lines",
                (&raised, "it called {}, which ends no filter"),
            )?
            .extract()
    };
    last().unwrap_or_else(|_| raised.bind(py).to_string())
}
