//! `titin.path.Path` and `titin.path.PathListener`.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::{CString, c_int, c_void};
use std::mem::ManuallyDrop;
use std::path::PathBuf;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;

use crate::argument::Text;
use crate::array::Array;
use crate::instance::taken;
use crate::message::Message;
use crate::path_request::{Posted, Request, Returns};
use crate::session::{Unattached, interrupted, outcome};
use crate::{error, sys};

/// The exception of a signal handler while a call waited. libtitin keeps the address.
pub type Raised = Arc<Mutex<Option<PyErr>>>;

/// A handle of libtitin, which the calls of several threads share. The last owner frees it.
pub struct Shared<T> {
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
    pub fn new(handle: NonNull<T>, free: unsafe extern "C" fn(*mut T), raised: Raised) -> Self {
        Shared {
            handle,
            free,
            raised,
        }
    }

    /// The handle, which lives as long as the owners.
    pub fn as_ptr(&self) -> *mut T {
        self.handle.as_ptr()
    }

    /// Runs a call of libtitin without the GIL. Fails with the call's error, or with an exception raised by a signal
    /// handler meanwhile.
    pub fn wait(&self, py: Python<'_>, call: impl FnOnce(*mut T) -> c_int) -> PyResult<()> {
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

/// The figures of a path, by their numbers in libtitin.
const FIGURES: [&str; 14] = [
    "time",
    "messages_sent",
    "bytes_sent",
    "messages_received",
    "bytes_received",
    "send_rate",
    "receive_rate",
    "waited",
    "round_trip",
    "retransmissions",
    "pacing",
    "send_buffer",
    "receive_buffer",
    "piece",
];

pub fn seconds(timeout: Option<f64>) -> f64 {
    timeout.unwrap_or(sys::WAIT)
}

#[doc = doc!("Path")]
#[pyclass(frozen, module = "titin.path")]
pub struct Path {
    /// `None` once the path is closed.
    path: Mutex<Option<Arc<Shared<sys::titin_path>>>>,
    /// The calls that send and may not be done, in their order: they go on where the program drops their requests.
    sends: Mutex<VecDeque<Arc<Posted>>>,
    name: String,
}

#[pymethods]
impl Path {
    #[new]
    #[pyo3(signature = (addresses, name="", *, key=None, key_file=None, streams=0, pacing=0, send_buffer=0, receive_buffer=0,
        patience=60.0, outage=60.0))]
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
        outage: f64,
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
        // SAFETY: as above.
        options.set(py, |raw| unsafe {
            sys::titin_path_options_outage(raw, outage)
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
    fn streams(&self, py: Python<'_>) -> PyResult<c_int> {
        let path = self.path(py)?;
        // SAFETY: the path lives as long as the call.
        Ok(unsafe { sys::titin_path_streams(path.as_ptr()) })
    }

    #[doc = doc!("Path.statistics")]
    fn statistics(&self, py: Python<'_>) -> PyResult<BTreeMap<&'static str, f64>> {
        let path = self.path(py)?;
        // SAFETY: the path lives as long as the call.
        let figure = |place| unsafe { sys::titin_path_figure(path.as_ptr(), place) };
        Ok(FIGURES.into_iter().zip((0..).map(figure)).collect())
    }

    #[doc = doc!("Path.set_streams")]
    fn set_streams(&self, py: Python<'_>, streams: c_int) -> PyResult<()> {
        // SAFETY: the path lives as long as the call.
        self.path(py)?.wait(py, |path| unsafe {
            sys::titin_path_set_streams(path, streams)
        })
    }

    #[doc = doc!("Path.set_piece")]
    fn set_piece(&self, py: Python<'_>, bytes: i64) -> PyResult<()> {
        // SAFETY: the path lives as long as the call.
        self.path(py)?
            .wait(py, |path| unsafe { sys::titin_path_set_piece(path, bytes) })
    }

    #[doc = doc!("Path.set_pacing")]
    fn set_pacing(&self, py: Python<'_>, rate: i64) -> PyResult<()> {
        // SAFETY: the path lives as long as the call.
        self.path(py)?
            .wait(py, |path| unsafe { sys::titin_path_set_pacing(path, rate) })
    }

    #[doc = doc!("Path.set_buffers")]
    #[pyo3(signature = (send=0, receive=0))]
    fn set_buffers(&self, py: Python<'_>, send: i64, receive: i64) -> PyResult<()> {
        // SAFETY: the path lives as long as the call.
        self.path(py)?.wait(py, |path| unsafe {
            sys::titin_path_set_buffers(path, send, receive)
        })
    }

    #[doc = doc!("Path.send")]
    #[pyo3(signature = (data, *, timeout=None))]
    fn send(&self, py: Python<'_>, data: &Bound<'_, PyAny>, timeout: Option<f64>) -> PyResult<()> {
        let (path, array) = (self.path(py)?, Array::to_send_by_path(data)?);
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

    #[doc = doc!("Path.send_parts")]
    #[pyo3(signature = (parts, *, timeout=None))]
    fn send_parts(
        &self,
        py: Python<'_>,
        parts: Vec<Bound<'_, PyAny>>,
        timeout: Option<f64>,
    ) -> PyResult<()> {
        let path = self.path(py)?;
        let places = Places::new(py, &parts, Array::to_send_by_path)?;
        // SAFETY: this function holds the places until the call has returned.
        path.wait(py, |path| unsafe {
            let (parts, lengths) = (places.parts.as_ptr().cast(), places.lengths.as_ptr());
            sys::titin_path_send_parts(path, places.count(), parts, lengths, seconds(timeout))
        })
    }

    #[doc = doc!("Path.receive_parts")]
    #[pyo3(signature = (parts, *, timeout=None))]
    fn receive_parts(
        &self,
        py: Python<'_>,
        parts: Vec<Bound<'_, PyAny>>,
        timeout: Option<f64>,
    ) -> PyResult<i64> {
        let path = self.path(py)?;
        let places = Places::new(py, &parts, Array::to_fill)?;
        let mut length = 0;
        // SAFETY: as above.
        path.wait(py, |path| unsafe {
            let (parts, rooms) = (places.parts.as_ptr(), places.lengths.as_ptr());
            let (count, timeout) = (places.count(), seconds(timeout));
            sys::titin_path_receive_parts(path, count, parts, rooms, timeout, &mut length)
        })?;
        Ok(length)
    }

    #[doc = doc!("Path.exchange")]
    #[pyo3(signature = (data, *, timeout=None))]
    fn exchange(
        &self,
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        timeout: Option<f64>,
    ) -> PyResult<Py<PyAny>> {
        let (path, array) = (self.path(py)?, Array::to_send_by_path(data)?);
        let layout = sys::titin_path_layout {
            dtype: array.dtype,
            rank: array.rank(),
            extents: array.extents(),
            strides: array.strides(),
            order: array.order(),
            names: array.names(),
        };
        let mut message = std::ptr::null_mut();
        // SAFETY: this function holds the array's memory until the call has returned. The message is written to a place of
        // this function.
        path.wait(py, |path| unsafe {
            let timeout = seconds(timeout);
            sys::titin_path_exchange_array_message(
                path,
                array.data(),
                &layout,
                timeout,
                &mut message,
            )
        })?;
        // SAFETY: the call has handed the message out.
        data_of(py, unsafe { taken(py, message) }?)
    }

    #[doc = doc!("Path.cycle")]
    #[pyo3(signature = (to, *, keep=true, timeout=None))]
    fn cycle(
        &self,
        py: Python<'_>,
        to: &Path,
        keep: bool,
        timeout: Option<f64>,
    ) -> PyResult<Option<Py<PyAny>>> {
        let (from, to) = (self.path(py)?, to.path(py)?);
        if !keep {
            // SAFETY: both paths live as long as the call.
            from.wait(py, |from| unsafe {
                let (no_memory, no_length) = (std::ptr::null_mut(), std::ptr::null_mut());
                sys::titin_path_cycle(from, to.as_ptr(), no_memory, 0, seconds(timeout), no_length)
            })?;
            return Ok(None);
        }
        let mut message = std::ptr::null_mut();
        // SAFETY: as above; the message is written to a place of this function.
        from.wait(py, |from| unsafe {
            sys::titin_path_cycle_message(from, to.as_ptr(), seconds(timeout), &mut message)
        })?;
        // SAFETY: the call has handed the message out.
        data_of(py, unsafe { taken(py, message) }?).map(Some)
    }

    #[doc = doc!("Path.relay")]
    #[pyo3(signature = (other, *, timeout=None))]
    fn relay(&self, py: Python<'_>, other: &Path, timeout: Option<f64>) -> PyResult<()> {
        let (one, other) = (self.path(py)?, other.path(py)?);
        // SAFETY: both paths live as long as the call.
        one.wait(py, |one| unsafe {
            sys::titin_path_relay(one, other.as_ptr(), seconds(timeout))
        })
    }

    #[doc = doc!("Path.isend")]
    fn isend(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<Request> {
        self.post_send(py, data).map(Request)
    }

    #[doc = doc!("Path.isend_parts")]
    fn isend_parts(&self, py: Python<'_>, parts: Vec<Bound<'_, PyAny>>) -> PyResult<Request> {
        let path = self.path(py)?;
        let places = Places::new(py, &parts, Array::to_send_by_path)?;
        let (count, parts, lengths) = (places.count(), places.parts, places.lengths);
        // SAFETY: the request holds the arrays.
        let send = Posted::new(
            py,
            &path.raised,
            places.arrays,
            Returns::Nothing,
            |_, request| unsafe {
                let parts = parts.as_ptr().cast();
                sys::titin_path_isend_parts(path.as_ptr(), count, parts, lengths.as_ptr(), request)
            },
        )?;
        self.keep(&send);
        Ok(Request(send))
    }

    #[doc = doc!("Path.ireceive")]
    fn ireceive(&self, py: Python<'_>) -> PyResult<Request> {
        let path = self.path(py)?;
        // SAFETY: the path lives as long as the call.
        post(py, &path, Returns::Message, |request| unsafe {
            sys::titin_path_ireceive(path.as_ptr(), request)
        })
    }

    #[doc = doc!("Path.ireceive_into")]
    fn ireceive_into(&self, py: Python<'_>, buffer: &Bound<'_, PyAny>) -> PyResult<Request> {
        let (path, target) = (self.path(py)?, vec![Array::to_fill(buffer)?]);
        // SAFETY: the request holds the array.
        Posted::new(
            py,
            &path.raised,
            target,
            Returns::Nothing,
            |target, request| unsafe {
                let target = &target[0];
                sys::titin_path_ireceive_array(
                    path.as_ptr(),
                    target.dtype,
                    target.rank(),
                    target.extents(),
                    target.strides(),
                    sys::ORDER_C,
                    target.data(),
                    request,
                )
            },
        )
        .map(Request)
    }

    #[doc = doc!("Path.ireceive_parts")]
    fn ireceive_parts(&self, py: Python<'_>, parts: Vec<Bound<'_, PyAny>>) -> PyResult<Request> {
        let path = self.path(py)?;
        let places = Places::new(py, &parts, Array::to_fill)?;
        let (count, parts, rooms) = (places.count(), places.parts, places.lengths);
        // SAFETY: the request holds the arrays.
        Posted::new(
            py,
            &path.raised,
            places.arrays,
            Returns::Length,
            |_, request| unsafe {
                sys::titin_path_ireceive_parts(
                    path.as_ptr(),
                    count,
                    parts.as_ptr(),
                    rooms.as_ptr(),
                    request,
                )
            },
        )
        .map(Request)
    }

    #[doc = doc!("Path.ibarrier")]
    fn ibarrier(&self, py: Python<'_>) -> PyResult<Request> {
        let path = self.path(py)?;
        // SAFETY: the path lives as long as the call.
        post(py, &path, Returns::Nothing, |request| unsafe {
            sys::titin_path_ibarrier(path.as_ptr(), request)
        })
    }

    #[doc = doc!("Path.icycle")]
    #[pyo3(signature = (to, *, keep=true))]
    fn icycle(&self, py: Python<'_>, to: &Path, keep: bool) -> PyResult<Request> {
        let (from, to) = (self.path(py)?, to.path(py)?);
        let returns = if keep {
            Returns::Message
        } else {
            Returns::Nothing
        };
        // SAFETY: both paths live as long as the call.
        post(py, &from, returns, |request| unsafe {
            if keep {
                sys::titin_path_icycle_message(from.as_ptr(), to.as_ptr(), request)
            } else {
                sys::titin_path_icycle(from.as_ptr(), to.as_ptr(), std::ptr::null_mut(), 0, request)
            }
        })
    }

    #[doc = doc!("Path.irelay")]
    fn irelay(&self, py: Python<'_>, other: &Path) -> PyResult<Request> {
        let (one, other) = (self.path(py)?, other.path(py)?);
        // SAFETY: both paths live as long as the call.
        post(py, &one, Returns::Nothing, |request| unsafe {
            sys::titin_path_irelay(one.as_ptr(), other.as_ptr(), request)
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
                // The arrays are the program's again.
                let sends = std::mem::take(&mut *self.sends());
                drop(sends);
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

    fn __repr__(&self, py: Python<'_>) -> String {
        match self.streams(py) {
            Ok(streams) => format!("Path(name={:?}, streams={streams})", self.name),
            Err(_) => format!("Path(name={:?}, closed)", self.name),
        }
    }
}

impl Path {
    fn of(path: Arc<Shared<sys::titin_path>>) -> Self {
        let handle = path.handle.as_ptr();
        // SAFETY: the path lives as long as `path`; the text is copied.
        let name = unsafe { error::text(sys::titin_path_name(handle)) };
        Path {
            path: Mutex::new(Some(path)),
            sends: Mutex::default(),
            name,
        }
    }

    /// Begins to send an array.
    fn post_send(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<Arc<Posted>> {
        let (path, array) = (self.path(py)?, vec![Array::to_send_by_path(data)?]);
        // SAFETY: the request holds the array.
        let send = Posted::new(
            py,
            &path.raised,
            array,
            Returns::Nothing,
            |array, request| unsafe {
                let array = &array[0];
                sys::titin_path_isend_array(
                    path.as_ptr(),
                    array.dtype,
                    array.rank(),
                    array.extents(),
                    array.strides(),
                    array.order(),
                    array.names(),
                    array.data(),
                    request,
                )
            },
        )?;
        self.keep(&send);
        Ok(send)
    }

    /// Keeps a call that sends until it is done. Lets go of earlier ones that are done.
    fn keep(&self, send: &Arc<Posted>) {
        self.sends().push_back(send.clone());
        loop {
            let mut sends = self.sends();
            let done = sends.pop_front_if(|send| send.is_done());
            // To let go of a call may run code of Python.
            drop(sends);
            if done.is_none() {
                return;
            }
        }
    }

    fn sends(&self) -> MutexGuard<'_, VecDeque<Arc<Posted>>> {
        self.sends.lock().unwrap_or_else(PoisonError::into_inner)
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

/// Makes a non-blocking call that has no arrays of the program.
fn post(
    py: Python<'_>,
    path: &Shared<sys::titin_path>,
    returns: Returns,
    call: impl FnOnce(*mut *mut sys::titin_path_request) -> c_int,
) -> PyResult<Request> {
    let call = |_: &[Array], request| call(request);
    Posted::new(py, &path.raised, Vec::new(), returns, call).map(Request)
}

/// Several arrays as places in memory.
struct Places {
    arrays: Vec<Array>,
    parts: Vec<*mut c_void>,
    lengths: Vec<i64>,
}

impl Places {
    fn new(
        py: Python<'_>,
        objects: &[Bound<'_, PyAny>],
        array: impl Fn(&Bound<'_, PyAny>) -> PyResult<Array>,
    ) -> PyResult<Self> {
        let arrays = objects.iter().map(array).collect::<PyResult<Vec<_>>>()?;
        if let Some(place) = arrays
            .iter()
            .position(|array| !array.is_contiguous(b'C') && !array.is_contiguous(b'F'))
        {
            let text =
                format!("part {place} has gaps between its elements: give contiguous arrays");
            return Err(error::usage(py, text));
        }
        Ok(Places {
            parts: arrays.iter().map(Array::data).collect(),
            lengths: arrays.iter().map(|array| array.bytes() as i64).collect(),
            arrays,
        })
    }

    fn count(&self) -> c_int {
        self.arrays.len() as c_int
    }
}

/// The data of a received message.
pub fn data_of(py: Python<'_>, message: Py<Message>) -> PyResult<Py<PyAny>> {
    message.get().data(py)
}

#[doc = doc!("PathListener")]
#[pyclass(frozen, module = "titin.path")]
pub struct PathListener {
    /// `None` once the listener is closed.
    listener: Mutex<Option<Arc<Shared<sys::titin_path_listener>>>>,
    address: String,
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
        // SAFETY: the listener lives as long as the call; the text is copied.
        let address = unsafe { error::text(sys::titin_path_listener_address(listener.as_ptr())) };
        Ok(PathListener {
            listener: Mutex::new(Some(listener)),
            address,
        })
    }

    #[doc = doc!("PathListener.address")]
    #[getter]
    fn address(&self) -> &str {
        &self.address
    }

    #[doc = doc!("PathListener.accept")]
    #[pyo3(signature = (*, timeout=None))]
    fn accept(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Path> {
        let listener = self.place().clone().ok_or_else(|| {
            let text = "the listener is closed: no call follows close()";
            error::error(py, sys::CLOSED, text)
        })?;
        let mut path = std::ptr::null_mut();
        // SAFETY: the path is written to a place of this function.
        listener.wait(py, |listener| unsafe {
            sys::titin_path_accept(listener, seconds(timeout), &mut path)
        })?;
        let handle = NonNull::new(path).ok_or_else(|| error::last(py))?;
        let raised = listener.raised.clone();
        Ok(Path::of(Arc::new(Shared::new(handle, close, raised))))
    }

    #[doc = doc!("PathListener.close")]
    fn close(&self) {
        // The last call on the listener frees it, where another thread waits in one.
        let listener = self.place().take();
        drop(listener);
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __exit__(
        &self,
        _raised: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) {
        self.close();
    }
}

impl PathListener {
    fn place(&self) -> MutexGuard<'_, Option<Arc<Shared<sys::titin_path_listener>>>> {
        self.listener.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
