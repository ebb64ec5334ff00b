//! Filters of the user's that are Python functions: found when an instance is opened, called by libtitin.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::NonNull;

use pyo3::exceptions::PyModuleNotFoundError;
use pyo3::prelude::*;

use crate::message::{Message, Payload};
use crate::{error, sys, value};

/// What stands in a program without Python any more; a filter that is called then has failed.
const FAILED: c_int = 1;

/// A function, and whether it wants the message beside its data.
struct Filter {
    function: Py<PyAny>,
    whole: bool,
}

/// Lets an instance that is opened with these options call filters that are named `module:function`.
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
            whole: wanted > 1,
        });
        // SAFETY: libtitin has room for it; it comes back to `call` and once to `dispose`.
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
        // SAFETY: it is what `find` gave, and not yet disposed of.
        let filter = unsafe { &*filter.cast::<Filter>() };
        let Some(input) = NonNull::new(input.cast_mut()) else {
            return Ok(());
        };
        // SAFETY: the function may keep its data, so we become one more owner of the message.
        let payload = unsafe {
            sys::titin_message_retain(input.as_ptr());
            Payload::new(input)
        };
        let message = Message::received(payload);
        let data = message.data(py)?;
        let function = filter.function.bind(py);
        let result = match filter.whole {
            true => function.call1((data, Py::new(py, message)?))?,
            false => function.call1((data,))?,
        };
        // SAFETY: libtitin gives `out` for this call.
        unsafe { value::put(&result, out) }
    })
}

extern "C" fn dispose(filter: *mut c_void) {
    let free = |_: Python<'_>| {
        // SAFETY: it is what `find` gave; libtitin lets it go once.
        drop(unsafe { Box::from_raw(filter.cast::<Filter>()) });
    };
    // Without an interpreter there is nobody to give the function back to.
    let _ = Python::try_attach(free);
}

/// The function that `module:function` names.
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

/// Has an exception about a module that is not there say where it was looked for.
fn say_where(py: Python<'_>, raised: &PyErr) {
    let text = "It was looked for as by import in this program: in the folder of its main file, in PYTHONPATH, and \
                among what is installed.";
    if raised.is_instance_of::<PyModuleNotFoundError>(py) {
        // Without the note it is still said what is not there.
        let _ = raised.value(py).call_method1("add_note", (text,));
    }
}

/// Runs something with Python; an exception becomes the text of libtitin's error.
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

/// An exception with the place in the user's code that it came from.
fn explain(py: Python<'_>, raised: PyErr) -> String {
    // An exception itself does not know where it came from before it is given out.
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
