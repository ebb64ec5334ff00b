//! `titin.Region`.

use std::ffi::CString;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex};

use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::session::Session;
use crate::{error, sys};

#[doc = doc!("Region")]
#[pyclass(frozen, module = "titin")]
pub struct Region {
    session: Arc<Session>,
    name: CString,
    handle: Mutex<Option<Handle>>,
}

struct Handle(NonNull<sys::titin_region>);

// SAFETY: any thread may call libtitin (titin.h, "Threads").
unsafe impl Send for Handle {}

impl Region {
    /// A region that has not begun.
    pub fn new(session: Arc<Session>, name: CString) -> Self {
        Region {
            session,
            name,
            handle: Mutex::default(),
        }
    }
}

#[pymethods]
impl Region {
    fn __enter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        let (py, this) = (slf.py(), slf.get());
        let call = this.session.enter(py)?;
        let mut handle = this
            .handle
            .lock()
            .expect("nothing panics while it is locked");
        if handle.is_some() {
            let text = "the region has begun already; take a new one: with instance.region(name):";
            return Err(error::usage(py, text));
        }
        // SAFETY: the instance is open while the call lives; the name is copied.
        let begun = unsafe { sys::titin_region_begin(call.instance(), this.name.as_ptr()) };
        *handle = Some(Handle(NonNull::new(begun).ok_or_else(|| error::last(py))?));
        drop((call, handle));
        Ok(slf)
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, py: Python<'_>, _raised: &Bound<'_, PyTuple>) -> PyResult<()> {
        let begun = self
            .handle
            .lock()
            .expect("nothing panics while it is locked")
            .take();
        let Some(begun) = begun else { return Ok(()) };
        // SAFETY: the region has begun and is ended once.
        error::check(py, unsafe { sys::titin_region_end(begun.0.as_ptr()) })
    }
}
