//! The exceptions of `titin.errors` for the error numbers of libtitin.

use std::ffi::{CStr, c_char, c_int};

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyTuple;

use crate::sys;

pyo3::create_exception!(
    titin._core,
    Pending,
    pyo3::exceptions::PyException,
    "The call of a light instance cannot go on yet, and is to be made again."
);

static CLASSES: PyOnceLock<Py<PyTuple>> = PyOnceLock::new();

/// The exception for an error number, with the given text.
pub fn error(py: Python<'_>, kind: c_int, text: impl Into<String>) -> PyErr {
    let class =
        classes(py).and_then(|classes| classes.get_item(usize::try_from(kind).unwrap_or(0)));
    let exception = class.and_then(|class| class.call1((text.into(),)));
    let exception = match kind {
        sys::MEMBER_FAILED => exception.and_then(with_member),
        _ => exception,
    };
    match exception {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    }
}

/// Adds the failed member to an exception that tells of this thread's last error.
fn with_member(exception: Bound<'_, PyAny>) -> PyResult<Bound<'_, PyAny>> {
    // SAFETY: the name lives until this thread's next error, and is copied here.
    exception.setattr("member", unsafe { text(sys::titin_error_member()) })?;
    // SAFETY: no pointer goes in.
    let slot = unsafe { sys::titin_error_slot() };
    exception.setattr("slot", u32::try_from(slot).ok())?;
    Ok(exception)
}

/// The exception of a wrong call.
pub fn usage(py: Python<'_>, text: impl Into<String>) -> PyErr {
    error(py, sys::USAGE, text)
}

/// The exception for data of a type that titin cannot send, or that the program did not ask for.
pub fn mismatch(py: Python<'_>, text: impl Into<String>) -> PyErr {
    error(py, sys::TYPE_MISMATCH, text)
}

/// The last error of a call of libtitin in this thread.
pub fn last(py: Python<'_>) -> PyErr {
    // SAFETY: the text lives until this thread's next error, and is copied here.
    error(py, unsafe { sys::titin_error_kind() }, unsafe {
        text(sys::titin_error())
    })
}

/// Raises the error of a failed call.
pub fn check(py: Python<'_>, code: c_int) -> PyResult<()> {
    match code {
        sys::OK => Ok(()),
        sys::PENDING => Err(Pending::new_err(())),
        // SAFETY: as in `last`.
        code => Err(error(py, code, unsafe { text(sys::titin_error()) })),
    }
}

/// Whether an exception is an error of titin. An exception of a signal handler is not.
pub fn is_of_titin(py: Python<'_>, raised: &PyErr) -> PyResult<bool> {
    Ok(raised.is_instance(py, &classes(py)?.get_item(0)?))
}

/// A text of libtitin as a `String`.
///
/// # Safety
/// `pointer` is NULL or points to text that ends with a NUL.
pub unsafe fn text(pointer: *const c_char) -> String {
    if pointer.is_null() {
        return String::new();
    }
    // SAFETY: as the caller promises.
    unsafe { CStr::from_ptr(pointer) }
        .to_string_lossy()
        .into_owned()
}

/// `titin.errors.BY_NUMBER`: the exception classes by number. The first is the base of all.
fn classes(py: Python<'_>) -> PyResult<&Bound<'_, PyTuple>> {
    let classes = CLASSES.get_or_try_init(py, || -> PyResult<_> {
        Ok(py
            .import("titin.errors")?
            .getattr("BY_NUMBER")?
            .cast_into::<PyTuple>()?
            .unbind())
    })?;
    Ok(classes.bind(py))
}
