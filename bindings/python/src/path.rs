//! `titin.path.Path` and `titin.path.PathListener`.

use std::ffi::{CString, c_int, c_void};
use std::mem::ManuallyDrop;
use std::path::PathBuf;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;

use crate::argument::Text;
use crate::array::Array;
use crate::instance::taken;
use crate::message::Message;
use crate::session::{Unattached, interrupted, outcome};
use crate::{error, sys};

/// The exception of a signal handler while a call waited. libtitin keeps the address.
type Raised = Arc<Mutex<Option<PyErr>>>;

/// A handle of libtitin, which the calls of several threads share. The last owner frees it.
struct Shared<T> {
    handle: NonNull<T>,
    free: unsafe extern "C" fn(*mut T),
    /// Of the options of the handle: dropped after the handle.
    raised: Raised,
}

// SAFETY: any thread may call libtitin (titin_path.h, "Threads").
unsafe impl<T> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Shared<T> {}

impl<T> Shared<T> {
    /// Runs a call of libtitin without the GIL. Fails with the call's error, or with an exception raised by a signal
    /// handler meanwhile.
    fn wait(&self, py: Python<'_>, call: impl FnOnce(*mut T) -> c_int) -> PyResult<()> {
        let handle = self.handle.as_ptr();
        let call = Unattached(|| call(handle));
        let code = py.detach(move || call.run());
        outcome(py, code, &self.raised)
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        let (handle, free) = (self.handle.as_ptr(), self.free);
        let call = Unattached(|| {
            // SAFETY: this is the last owner.
            unsafe { free(handle) };
            sys::OK
        });
        // Closing waits for a while. Once the interpreter has ended, nothing is closed.
        Python::try_attach(|py| py.detach(move || call.run()));
    }
}

/// How long a path that the program has dropped waits until the other end has all messages, in seconds.
const DROPPED: f64 = 10.0;

/// Closes a path that the program has dropped.
///
/// # Safety
/// No code uses the path any more.
unsafe extern "C" fn close(path: *mut sys::titin_path) {
    // SAFETY: as the caller promises.
    unsafe { sys::titin_path_close(path, DROPPED) };
}

/// Options of libtitin, and the place for exceptions of signal handlers.
struct Options {
    options: NonNull<sys::titin_path_options>,
    raised: Raised,
}

impl Options {
    fn new(py: Python<'_>, key: Option<Text>, key_file: Option<PathBuf>) -> PyResult<Self> {
        // SAFETY: any thread may ask for options.
        let options = NonNull::new(unsafe { sys::titin_path_options_new() });
        let options = Options {
            options: options.ok_or_else(|| error::last(py))?,
            raised: Raised::default(),
        };
        let data = Arc::as_ptr(&options.raised).cast::<c_void>().cast_mut();
        // SAFETY: paths and listeners with these options share `raised`, and drop it last.
        options.set(py, |raw| unsafe {
            sys::titin_path_options_interrupt(raw, interrupted, data)
        })?;
        if let Some(file) = key_file {
            let file = file.to_str().ok_or_else(|| {
                error::usage(
                    py,
                    format!("the name of the key's file is not Unicode: {file:?}"),
                )
            })?;
            let file = Text::new(py, file)?;
            // SAFETY: the text lives as long as the call.
            options.set(py, |raw| unsafe {
                sys::titin_path_options_key_file(raw, file.as_c().as_ptr())
            })?;
        }
        if let Some(key) = key {
            // SAFETY: as above.
            options.set(py, |raw| unsafe {
                sys::titin_path_options_key(raw, key.as_c().as_ptr())
            })?;
        }
        Ok(options)
    }

    fn set(
        &self,
        py: Python<'_>,
        call: impl FnOnce(*mut sys::titin_path_options) -> c_int,
    ) -> PyResult<()> {
        error::check(py, call(self.options.as_ptr()))
    }

    /// Runs the call that makes a handle, and takes the handle over.
    fn make<T>(
        &self,
        py: Python<'_>,
        free: unsafe extern "C" fn(*mut T),
        call: impl FnOnce(*mut sys::titin_path_options, *mut *mut T) -> c_int,
    ) -> PyResult<Arc<Shared<T>>> {
        let mut handle = std::ptr::null_mut();
        let options = self.options.as_ptr();
        let call = Unattached(|| call(options, &raw mut handle));
        let code = py.detach(move || call.run());
        outcome(py, code, &self.raised)?;
        let handle = NonNull::new(handle).ok_or_else(|| error::last(py))?;
        let raised = self.raised.clone();
        Ok(Arc::new(Shared {
            handle,
            free,
            raised,
        }))
    }
}

impl Drop for Options {
    fn drop(&mut self) {
        // SAFETY: nobody else has the options.
        unsafe { sys::titin_path_options_free(self.options.as_ptr()) }
    }
}

fn seconds(timeout: Option<f64>) -> f64 {
    timeout.unwrap_or(sys::WAIT)
}

#[doc = doc!("Path")]
#[pyclass(frozen, module = "titin.path")]
pub struct Path {
    /// `None` once the path is closed.
    path: Mutex<Option<Arc<Shared<sys::titin_path>>>>,
    name: String,
    streams: c_int,
}

#[pymethods]
impl Path {
    #[new]
    #[pyo3(signature = (addresses, name="", *, key=None, key_file=None, streams=0, pacing=0, send_buffer=0, receive_buffer=0,
        patience=60.0))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        addresses: Text,
        name: &str,
        key: Option<Text>,
        key_file: Option<PathBuf>,
        streams: c_int,
        pacing: i64,
        send_buffer: i64,
        receive_buffer: i64,
        patience: f64,
    ) -> PyResult<Self> {
        let options = Options::new(py, key, key_file)?;
        // SAFETY: the options live as long as these calls.
        options.set(py, |raw| unsafe {
            sys::titin_path_options_streams(raw, streams)
        })?;
        // SAFETY: as above.
        options.set(py, |raw| unsafe {
            sys::titin_path_options_pacing(raw, pacing)
        })?;
        // SAFETY: as above.
        options.set(py, |raw| unsafe {
            sys::titin_path_options_buffers(raw, send_buffer, receive_buffer)
        })?;
        // SAFETY: as above.
        options.set(py, |raw| unsafe {
            sys::titin_path_options_patience(raw, patience)
        })?;
        let name = Text::new(py, name)?;
        let (addresses, text): (CString, &CString) = (addresses.into_c(), name.as_c());
        let path = options.make(py, close, |options, path| {
            // SAFETY: the texts and the options live as long as the call.
            unsafe { sys::titin_path_open(addresses.as_ptr(), text.as_ptr(), options, path) }
        })?;
        Ok(Path::of(path))
    }

    #[doc = doc!("Path.name")]
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    #[doc = doc!("Path.streams")]
    #[getter]
    fn streams(&self) -> c_int {
        self.streams
    }

    #[doc = doc!("Path.send")]
    #[pyo3(signature = (data, *, timeout=None))]
    fn send(&self, py: Python<'_>, data: &Bound<'_, PyAny>, timeout: Option<f64>) -> PyResult<()> {
        let (path, array) = (self.path(py)?, Array::to_send(data)?);
        // SAFETY: this function holds the array's memory until the call has returned.
        path.wait(py, |path| unsafe {
            sys::titin_path_send_array(
                path,
                array.dtype,
                array.rank(),
                array.extents(),
                array.strides(),
                array.order(),
                array.names(),
                array.data(),
                seconds(timeout),
            )
        })
    }

    #[doc = doc!("Path.receive")]
    #[pyo3(signature = (*, timeout=None))]
    fn receive(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Py<PyAny>> {
        let path = self.path(py)?;
        let mut message = std::ptr::null_mut();
        // SAFETY: the message is written to a place of this function.
        path.wait(py, |path| unsafe {
            sys::titin_path_receive(path, seconds(timeout), &mut message)
        })?;
        // SAFETY: the call has handed the message out.
        data_of(py, unsafe { taken(py, message) }?)
    }

    #[doc = doc!("Path.receive_into")]
    #[pyo3(signature = (buffer, *, timeout=None))]
    fn receive_into(
        &self,
        py: Python<'_>,
        buffer: &Bound<'_, PyAny>,
        timeout: Option<f64>,
    ) -> PyResult<()> {
        let (path, target) = (self.path(py)?, Array::to_fill(buffer)?);
        // SAFETY: this function holds the target's memory until the call has returned.
        path.wait(py, |path| unsafe {
            sys::titin_path_receive_array(
                path,
                target.dtype,
                target.rank(),
                target.extents(),
                target.strides(),
                sys::ORDER_C,
                target.data(),
                seconds(timeout),
            )
        })
    }

    #[doc = doc!("Path.barrier")]
    #[pyo3(signature = (*, timeout=None))]
    fn barrier(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<()> {
        // SAFETY: the path lives as long as the call.
        self.path(py)?.wait(py, |path| unsafe {
            sys::titin_path_barrier(path, seconds(timeout))
        })
    }

    #[doc = doc!("Path.flush")]
    #[pyo3(signature = (*, timeout=None))]
    fn flush(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<()> {
        // SAFETY: the path lives as long as the call.
        self.path(py)?.wait(py, |path| unsafe {
            sys::titin_path_flush(path, seconds(timeout))
        })
    }

    #[doc = doc!("Path.close")]
    #[pyo3(signature = (*, timeout=None))]
    fn close(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<()> {
        let mut place = self.path.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(shared) = place.take() else {
            return Ok(());
        };
        match Arc::try_unwrap(shared) {
            Ok(shared) => {
                drop(place);
                // The call frees the handle, in place of the owner.
                let shared = ManuallyDrop::new(shared);
                let handle = shared.handle.as_ptr();
                // SAFETY: the owner is not dropped, so the place is read once.
                let raised = unsafe { std::ptr::read(&raw const shared.raised) };
                let call = Unattached(|| {
                    // SAFETY: this was the only owner.
                    unsafe { sys::titin_path_close(handle, seconds(timeout)) }
                });
                let code = py.detach(move || call.run());
                outcome(py, code, &raised)
            }
            Err(shared) => {
                *place = Some(shared);
                let text =
                    "another thread is in a call on the path: close() comes after all other calls";
                Err(error::usage(py, text))
            }
        }
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        raised: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        if raised.is_none() {
            return self.close(py, None);
        }
        // The exception says more than an error of the end.
        let _ = self.close(py, Some(0.0));
        Ok(())
    }

    fn __repr__(&self) -> String {
        format!("Path(name={:?}, streams={})", self.name, self.streams)
    }
}

impl Path {
    fn of(path: Arc<Shared<sys::titin_path>>) -> Self {
        let handle = path.handle.as_ptr();
        // SAFETY: the path lives as long as `path`; the text is copied.
        let (name, streams) = unsafe {
            (
                error::text(sys::titin_path_name(handle)),
                sys::titin_path_streams(handle),
            )
        };
        Path {
            path: Mutex::new(Some(path)),
            name,
            streams,
        }
    }

    fn path(&self, py: Python<'_>) -> PyResult<Arc<Shared<sys::titin_path>>> {
        let path = self.path.lock().unwrap_or_else(PoisonError::into_inner);
        let closed = || {
            error::error(
                py,
                sys::CLOSED,
                "the path is closed: no call follows close()",
            )
        };
        path.clone().ok_or_else(closed)
    }
}

/// The data of a received message.
fn data_of(py: Python<'_>, message: Py<Message>) -> PyResult<Py<PyAny>> {
    message.get().data(py)
}

#[doc = doc!("PathListener")]
#[pyclass(frozen, module = "titin.path")]
pub struct PathListener {
    listener: Arc<Shared<sys::titin_path_listener>>,
}

#[pymethods]
impl PathListener {
    #[new]
    #[pyo3(signature = (address, *, key=None, key_file=None))]
    fn new(
        py: Python<'_>,
        address: Text,
        key: Option<Text>,
        key_file: Option<PathBuf>,
    ) -> PyResult<Self> {
        let options = Options::new(py, key, key_file)?;
        let address = address.into_c();
        let listener = options.make(py, sys::titin_path_listener_free, |options, listener| {
            // SAFETY: the text and the options live as long as the call.
            unsafe { sys::titin_path_listen(address.as_ptr(), options, listener) }
        })?;
        Ok(PathListener { listener })
    }

    #[doc = doc!("PathListener.address")]
    #[getter]
    fn address(&self) -> String {
        // SAFETY: the listener lives as long as this object; the text is copied.
        unsafe {
            error::text(sys::titin_path_listener_address(
                self.listener.handle.as_ptr(),
            ))
        }
    }

    #[doc = doc!("PathListener.accept")]
    #[pyo3(signature = (*, timeout=None))]
    fn accept(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Path> {
        let mut path = std::ptr::null_mut();
        // SAFETY: the path is written to a place of this function.
        self.listener.wait(py, |listener| unsafe {
            sys::titin_path_accept(listener, seconds(timeout), &mut path)
        })?;
        let handle = NonNull::new(path).ok_or_else(|| error::last(py))?;
        let raised = self.listener.raised.clone();
        Ok(Path::of(Arc::new(Shared {
            handle,
            free: close,
            raised,
        })))
    }
}
