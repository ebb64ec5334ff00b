//! How an instance is opened.

use std::ptr::NonNull;

use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::argument::{Text, Words, unicode};
use crate::{error, sys};

/// Options of libtitin.
pub struct Options(NonNull<sys::titin_options>);

impl Options {
    /// All as by default.
    pub fn new(py: Python<'_>) -> PyResult<Self> {
        // SAFETY: nothing goes in.
        NonNull::new(unsafe { sys::titin_options_new() })
            .map(Options)
            .ok_or_else(|| error::last(py))
    }

    pub fn as_ptr(&self) -> *mut sys::titin_options {
        self.0.as_ptr()
    }
}

impl Drop for Options {
    fn drop(&mut self) {
        // SAFETY: they are ours, and opening has ended.
        unsafe { sys::titin_options_free(self.0.as_ptr()) }
    }
}

/// Names of ports: a list of them, or one text with spaces or commas between them.
pub fn port_names(names: &Bound<'_, PyAny>) -> PyResult<Vec<Text>> {
    let py = names.py();
    if let Ok(text) = names.cast::<PyString>() {
        let names = unicode(text)?
            .split([' ', ','])
            .filter(|name| !name.is_empty());
        return names.map(|name| Text::new(py, name)).collect();
    }
    names
        .try_iter()?
        .map(|name| name?.extract::<Text>())
        .collect()
}

/// Why the order of calls is not to be checked.
pub fn reason_of(reason: &Bound<'_, PyAny>) -> PyResult<Words> {
    if !reason.is_instance_of::<PyString>() {
        let text = "unchecked takes a reason, not a flag: unchecked=\"the solver probes ahead\"; the log shows it";
        return Err(error::mismatch(reason.py(), text));
    }
    reason.extract()
}
