//! Light instances, for `titin.aio`: light instances do not wait. A list has the instances that can
//! go on.

use std::ffi::{c_int, c_void};
use std::ptr::NonNull;
use std::sync::Mutex;

use pyo3::prelude::*;

use crate::argument::Text;
use crate::instance::{Instance, options};
use crate::options::{Checks, OverlayUse};
use crate::session::Session;
use crate::{error, sys};

#[doc = doc!("Ready")]
#[pyclass(frozen, module = "titin._core")]
pub struct Ready(NonNull<sys::titin_ready>);

// SAFETY: any thread may put instances on the list; only the thread of the event loop takes
// instances off.
unsafe impl Send for Ready {}
// SAFETY: as above.
unsafe impl Sync for Ready {}

impl Ready {
    /// The list, which lives as long as this `Ready`.
    pub fn list(&self) -> *mut sys::titin_ready {
        self.0.as_ptr()
    }
}

#[pymethods]
impl Ready {
    #[new]
    fn new(py: Python<'_>) -> PyResult<Self> {
        // SAFETY: nothing goes in.
        NonNull::new(unsafe { sys::titin_ready_new() })
            .map(Ready)
            .ok_or_else(|| error::last(py))
    }

    #[doc = doc!("Ready.fileno")]
    fn fileno(&self, py: Python<'_>) -> PyResult<c_int> {
        // SAFETY: the list lives as long as this `Ready`.
        match unsafe { sys::titin_ready_descriptor(self.0.as_ptr()) } {
            -1 => Err(error::last(py)),
            descriptor => Ok(descriptor),
        }
    }

    #[doc = doc!("Ready.next")]
    fn next(&self, py: Python<'_>) -> PyResult<Option<usize>> {
        let mut number: *mut c_void = std::ptr::null_mut();
        // SAFETY: the list lives as long as this `Ready`.
        match unsafe { sys::titin_ready_next(self.0.as_ptr(), 0.0, &mut number) } {
            sys::TIMEOUT => Ok(None),
            code => error::check(py, code).map(|()| Some(number as usize)),
        }
    }
}

impl Drop for Ready {
    fn drop(&mut self) {
        // SAFETY: the list is ours; instances on the list share the list's contents.
        unsafe { sys::titin_ready_free(self.0.as_ptr()) }
    }
}

#[doc = doc!("Opening")]
#[pyclass(frozen, module = "titin._core")]
pub struct Opening {
    /// `None` once the instance is open, could not be opened, or was given up.
    opening: Mutex<Option<NonNull<sys::titin_opening>>>,
    _ready: Py<Ready>,
}

// SAFETY: the mutex keeps calls apart.
unsafe impl Send for Opening {}
// SAFETY: as above.
unsafe impl Sync for Opening {}

#[pymethods]
impl Opening {
    #[new]
    #[pyo3(signature = (ready, number, *, f_init=None, o_i=None, s=None, o_f=None, name=None, manager=None, unchecked=None, checks=None, overlays=None))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        ready: Py<Ready>,
        number: usize,
        f_init: Option<Bound<'_, PyAny>>,
        o_i: Option<Bound<'_, PyAny>>,
        s: Option<Bound<'_, PyAny>>,
        o_f: Option<Bound<'_, PyAny>>,
        name: Option<Text>,
        manager: Option<Text>,
        unchecked: Option<Bound<'_, PyAny>>,
        checks: Option<Checks>,
        overlays: Option<OverlayUse>,
    ) -> PyResult<Self> {
        let options = options(
            py,
            [f_init, o_i, s, o_f],
            name,
            manager,
            unchecked,
            checks,
            overlays,
        )?;
        let mut opening = std::ptr::null_mut();
        // SAFETY: the options and the list live as long as this function, and the instance has a
        // share of the list.
        unsafe {
            let list = ready.get().0.as_ptr();
            error::check(
                py,
                sys::titin_options_ready(options.as_ptr(), list, number as *mut c_void),
            )?;
            error::check(
                py,
                sys::titin_open_begin(std::ptr::null(), options.as_ptr(), &mut opening),
            )?;
        }
        Ok(Opening {
            opening: Mutex::new(NonNull::new(opening)),
            _ready: ready,
        })
    }

    #[doc = doc!("Opening.end")]
    fn end(&self, py: Python<'_>) -> PyResult<Instance> {
        let mut guard = self
            .opening
            .lock()
            .expect("nothing panics while it is locked");
        let opening = guard
            .take()
            .ok_or_else(|| error::usage(py, "the instance was opened already"))?;
        let mut instance = std::ptr::null_mut();
        // SAFETY: the opening was begun, and has not ended.
        let code = unsafe { sys::titin_open_end(opening.as_ptr(), &mut instance) };
        if code == sys::PENDING {
            *guard = Some(opening);
        }
        error::check(py, code)?;
        let instance = NonNull::new(instance).ok_or_else(|| error::last(py))?;
        // SAFETY: the instance is open, and ours.
        Instance::with(py, unsafe { Session::light(instance) })
    }

    #[doc = doc!("Opening.cancel")]
    fn cancel(&self) {
        if let Some(opening) = self
            .opening
            .lock()
            .expect("nothing panics while it is locked")
            .take()
        {
            // SAFETY: the opening was begun, and has not ended.
            unsafe { sys::titin_open_cancel(opening.as_ptr()) }
        }
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        self.cancel();
    }
}
