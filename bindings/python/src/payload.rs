//! The payload of a received message, and views of the payload. The payload lives as long as any
//! holder of a part.

use std::ffi::{c_int, c_void};
use std::ptr::NonNull;

use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;

use crate::sys;

/// An owner of a message of libtitin.
pub struct Payload(NonNull<sys::titin_message>);

// SAFETY: messages are counted, and any thread may read them (titin.h, "Threads").
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

/// A range of a message's memory as a buffer for NumPy. Arrays over the buffer keep the view, and
/// the view keeps the message.
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
    /// A view of a part of a message.
    ///
    /// # Safety
    /// `data` has `length` bytes that belong to the message of `payload`.
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
    /// Python calls this method with a view to fill.
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
        // SAFETY: the memory lives as long as this object, and the view takes a reference to this
        // object. The view is marked read-only.
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
