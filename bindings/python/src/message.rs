//! Messages, and the views of their data, which live as long as anybody holds one.

use std::ffi::{c_int, c_void};
use std::ptr::NonNull;

use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

use crate::{error, sys, value};

/// One owner of a message of libtitin.
pub struct Payload(NonNull<sys::titin_message>);

// SAFETY: messages are counted and only read; any thread may do so (titin.h, "Threads").
unsafe impl Send for Payload {}
// SAFETY: as above.
unsafe impl Sync for Payload {}

impl Payload {
    /// Takes over a message that libtitin has handed out.
    ///
    /// # Safety
    /// The message is the caller's to free.
    pub unsafe fn new(message: NonNull<sys::titin_message>) -> Self {
        Payload(message)
    }

    pub fn as_ptr(&self) -> *mut sys::titin_message {
        self.0.as_ptr()
    }
}

impl Clone for Payload {
    fn clone(&self) -> Self {
        // SAFETY: the message lives as long as this owner.
        unsafe { sys::titin_message_retain(self.as_ptr()) };
        Payload(self.0)
    }
}

impl Drop for Payload {
    fn drop(&mut self) {
        // SAFETY: each owner frees once.
        unsafe { sys::titin_message_free(self.as_ptr()) }
    }
}

#[doc = doc!("Message")]
#[pyclass(frozen, module = "titin")]
pub struct Message {
    #[doc = doc!("Message.timestamp")]
    #[pyo3(get)]
    timestamp: f64,
    #[doc = doc!("Message.next_timestamp")]
    #[pyo3(get)]
    next_timestamp: Option<f64>,
    /// `None` for a message of the program's own.
    payload: Option<Payload>,
    data: PyOnceLock<Py<PyAny>>,
    settings: PyOnceLock<Py<PyAny>>,
}

#[pymethods]
impl Message {
    #[new]
    #[pyo3(signature = (data=None, timestamp=0.0, next_timestamp=None, settings=None))]
    fn new(
        py: Python<'_>,
        data: Option<Py<PyAny>>,
        timestamp: f64,
        next_timestamp: Option<f64>,
        settings: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let settings =
            settings.map_or_else(|| Ok(PyDict::new(py)), |settings| value::dict(&settings))?;
        Ok(Message {
            timestamp,
            next_timestamp,
            payload: None,
            data: known(py, data.unwrap_or_else(|| py.None())),
            settings: known(py, settings.into_any().unbind()),
        })
    }

    #[doc = doc!("Message.port")]
    #[getter]
    fn port(&self) -> Option<String> {
        let payload = self.payload.as_ref()?;
        // SAFETY: the message lives as long as `payload`, and its text as long as the message.
        let name = unsafe { error::text(sys::titin_message_port(payload.as_ptr())) };
        Some(name).filter(|name| !name.is_empty())
    }

    #[doc = doc!("Message.data")]
    #[getter]
    pub fn data(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let read = || match &self.payload {
            None => Ok(py.None()),
            // SAFETY: the value belongs to the message, which `payload` holds.
            Some(payload) => unsafe {
                value::to_python(py, sys::titin_message_value(payload.as_ptr()), payload)
            },
        };
        Ok(self.data.get_or_try_init(py, read)?.clone_ref(py))
    }

    #[doc = doc!("Message.settings")]
    #[getter]
    pub fn settings(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let read = || -> PyResult<Py<PyAny>> {
            let Some(payload) = &self.payload else {
                return Ok(PyDict::new(py).into_any().unbind());
            };
            // SAFETY: the map belongs to the message, which `payload` holds.
            let settings = unsafe { sys::titin_message_settings(payload.as_ptr()) };
            match settings.is_null() {
                true => Ok(PyDict::new(py).into_any().unbind()),
                // SAFETY: as above.
                false => unsafe { value::to_python(py, settings, payload) },
            }
        };
        Ok(self.settings.get_or_try_init(py, read)?.clone_ref(py))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let data = self.data(py)?;
        let data = data.bind(py);
        let shown = match (data.getattr("dtype"), data.getattr("shape")) {
            (Ok(dtype), Ok(shape)) => format!("<{dtype} array of shape {shape}>"),
            _ => data.repr()?.to_string(),
        };
        let next = self
            .next_timestamp
            .map(|next| format!(", next_timestamp={next:?}"))
            .unwrap_or_default();
        Ok(format!(
            "Message(timestamp={:?}{next}, data={shown})",
            self.timestamp
        ))
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err(
            "a message cannot be pickled; send or keep its data: message.data.copy()",
        ))
    }
}

impl Message {
    /// A message of the program's own with these data, at time 0.
    pub fn own(py: Python<'_>, data: Py<PyAny>) -> Self {
        let (data, settings) = (
            known(py, data),
            known(py, PyDict::new(py).into_any().unbind()),
        );
        Message {
            timestamp: 0.0,
            next_timestamp: None,
            payload: None,
            data,
            settings,
        }
    }

    /// Its timestamps as libtitin takes them.
    pub fn timestamps(&self) -> (f64, f64) {
        (self.timestamp, self.next_timestamp.unwrap_or(sys::NO_NEXT))
    }

    /// A message that was received.
    pub fn received(payload: Payload) -> Self {
        let message = payload.as_ptr();
        // SAFETY: the message lives as long as `payload`.
        let (timestamp, next_timestamp) = unsafe {
            let next = sys::titin_message_has_next(message) == 1;
            let next_timestamp = next.then(|| sys::titin_message_next_timestamp(message));
            (sys::titin_message_timestamp(message), next_timestamp)
        };
        let (data, settings) = (PyOnceLock::new(), PyOnceLock::new());
        Message {
            timestamp,
            next_timestamp,
            payload: Some(payload),
            data,
            settings,
        }
    }
}

fn known(py: Python<'_>, object: Py<PyAny>) -> PyOnceLock<Py<PyAny>> {
    let cell = PyOnceLock::new();
    let _ = cell.set(py, object);
    cell
}

/// A stretch of a message's memory, for NumPy to look at: it keeps the message, and every array over it keeps it.
#[pyclass(frozen, module = "titin._core")]
pub struct View {
    data: *const c_void,
    length: isize,
    _payload: Payload,
}

// SAFETY: the memory is only read, and lives as long as the payload.
unsafe impl Send for View {}
// SAFETY: as above.
unsafe impl Sync for View {}

impl View {
    /// A view of part of a message.
    ///
    /// # Safety
    /// `data` has `length` bytes, which belong to the message of `payload`.
    pub unsafe fn new(data: *const c_void, length: i64, payload: &Payload) -> Self {
        View {
            data,
            length: length as isize,
            _payload: payload.clone(),
        }
    }
}

#[pymethods]
impl View {
    /// # Safety
    /// Python calls this with a view to fill.
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        if flags & ffi::PyBUF_WRITABLE != 0 {
            return Err(PyBufferError::new_err(
                "data that were received are read-only; work on a .copy()",
            ));
        }
        let this = slf.get();
        // SAFETY: the memory lives as long as this object, to which the view takes a reference; it is marked read-only.
        let code = unsafe {
            ffi::PyBuffer_FillInfo(
                view,
                slf.as_ptr(),
                this.data.cast_mut(),
                this.length,
                1,
                flags,
            )
        };
        if code == 0 {
            Ok(())
        } else {
            Err(PyErr::fetch(slf.py()))
        }
    }
}
