//! `titin.path.Request`: a non-blocking call on a path.

use std::ffi::{c_int, c_void};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::intern;
use pyo3::prelude::*;

use crate::array::Array;
use crate::instance::taken;
use crate::light::Ready;
use crate::path::{Raised, Shared, data_of, seconds};
use crate::{error, sys};

/// The arrays of a call. The fields' order has the call cancelled before the arrays are let go.
pub struct Posted {
    call: Shared<sys::titin_path_request>,
    /// Empty once a call has found that the call is done.
    arrays: Mutex<Vec<Array>>,
    returns: Returns,
}

/// What a call returns to the program.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Returns {
    Nothing,
    /// The received message.
    Message,
    /// The number of received bytes.
    Length,
}

// SAFETY: any thread may call libtitin; the arrays are held, and used by libtitin alone.
unsafe impl Send for Posted {}
// SAFETY: as above.
unsafe impl Sync for Posted {}

impl Posted {
    /// Makes a non-blocking call with these arrays.
    pub fn new(
        py: Python<'_>,
        raised: &Raised,
        arrays: Vec<Array>,
        returns: Returns,
        call: impl FnOnce(&[Array], *mut *mut sys::titin_path_request) -> c_int,
    ) -> PyResult<Arc<Self>> {
        let mut request = std::ptr::null_mut();
        error::check(py, call(&arrays, &raw mut request))?;
        let handle = NonNull::new(request).ok_or_else(|| error::last(py))?;
        Ok(Arc::new(Posted {
            call: Shared::new(handle, sys::titin_path_request_free, raised.clone()),
            arrays: Mutex::new(arrays),
            returns,
        }))
    }

    /// Whether the call is done, and its error.
    pub fn test(&self, py: Python<'_>) -> PyResult<bool> {
        let mut done = 0;
        // SAFETY: the request lives as long as this object.
        let code = unsafe { sys::titin_path_test(self.call.as_ptr(), &mut done) };
        if done != 0 {
            self.let_go();
        }
        error::check(py, code)?;
        Ok(done != 0)
    }

    /// Lets go of the arrays of a call that is done.
    fn let_go(&self) {
        let mut place = self.arrays.lock().unwrap_or_else(PoisonError::into_inner);
        let arrays = std::mem::take(&mut *place);
        // This may run code of Python.
        drop(place);
        drop(arrays);
    }

    pub fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<()> {
        // SAFETY: as above.
        let waited = self.call.wait(py, |request| unsafe {
            sys::titin_path_wait(request, seconds(timeout))
        });
        if self.is_done() {
            self.let_go();
        }
        waited
    }

    pub fn cancel(&self, py: Python<'_>) -> PyResult<bool> {
        let mut cancelled = 0;
        // SAFETY: as above.
        self.call.wait(py, |request| unsafe {
            sys::titin_path_cancel(request, &mut cancelled)
        })?;
        self.let_go();
        Ok(cancelled != 0)
    }

    pub fn is_done(&self) -> bool {
        let mut done = 0;
        // SAFETY: as above. The error of the call is told to a call that asks for it.
        unsafe { sys::titin_path_test(self.call.as_ptr(), &mut done) };
        done != 0
    }
}

#[doc = doc!("Request")]
#[pyclass(frozen, module = "titin.path")]
pub struct Request(pub Arc<Posted>);

#[pymethods]
impl Request {
    #[doc = doc!("Request.test")]
    fn test(&self, py: Python<'_>) -> PyResult<bool> {
        self.0.test(py)
    }

    #[doc = doc!("Request.wait")]
    #[pyo3(signature = (*, timeout=None))]
    fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Option<Py<PyAny>>> {
        self.0.wait(py, timeout)?;
        match self.0.returns {
            Returns::Nothing => Ok(None),
            Returns::Message => self.message(py).map(Some),
            Returns::Length => {
                // SAFETY: the request lives as long as this object.
                let length = unsafe { sys::titin_path_request_length(self.0.call.as_ptr()) };
                Ok(Some(length.into_pyobject(py)?.into_any().unbind()))
            }
        }
    }

    #[doc = doc!("Request.cancel")]
    fn cancel(&self, py: Python<'_>) -> PyResult<bool> {
        self.0.cancel(py)
    }

    #[doc = doc!("Request._notify")]
    fn _notify(&self, py: Python<'_>, ready: &Ready, number: usize) -> PyResult<()> {
        // SAFETY: the request and the list live as long as the call; the request has a share of the list.
        let code = unsafe {
            sys::titin_path_request_ready(self.0.call.as_ptr(), ready.list(), number as *mut c_void)
        };
        error::check(py, code)
    }

    fn __await__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        let aio = py.import(intern!(py, "titin.aio"))?;
        let waiting = aio.call_method1(intern!(py, "_outcome"), (slf,))?;
        Ok(waiting.call_method0(intern!(py, "__await__"))?.unbind())
    }
}

impl Request {
    /// The message of a call that has received one.
    pub fn message(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let mut message = std::ptr::null_mut();
        // SAFETY: the request lives as long as this object; the message is written to a place of this function.
        let code = unsafe { sys::titin_path_request_message(self.0.call.as_ptr(), &mut message) };
        error::check(py, code)?;
        // SAFETY: the call has handed the message out.
        data_of(py, unsafe { taken(py, message) }?)
    }
}

#[doc = doc!("wait_any")]
#[pyfunction]
#[pyo3(signature = (requests, *, timeout=None))]
pub fn wait_any(
    py: Python<'_>,
    requests: Vec<PyRef<'_, Request>>,
    timeout: Option<f64>,
) -> PyResult<usize> {
    let calls: Vec<&Posted> = requests.iter().map(|request| &*request.0).collect();
    first_of(py, &calls, timeout)
}

/// Waits until one of these calls is done. Returns its place.
fn first_of(py: Python<'_>, calls: &[&Posted], timeout: Option<f64>) -> PyResult<usize> {
    let Some(first) = calls.first() else {
        return Err(error::usage(py, "no requests were given to wait for"));
    };
    let calls: Vec<_> = calls.iter().map(|call| call.call.as_ptr()).collect();
    let mut index = -1;
    // SAFETY: the requests live as long as this function.
    let waited = first.call.wait(py, |_| unsafe {
        sys::titin_path_wait_any(
            calls.len() as c_int,
            calls.as_ptr(),
            seconds(timeout),
            &mut index,
        )
    });
    match usize::try_from(index) {
        // The error of the call itself comes from its request.
        Ok(index) => Ok(index),
        Err(_) => waited.map(|()| unreachable!("a call without an error has an index")),
    }
}
