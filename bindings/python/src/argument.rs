//! Arguments as libtitin takes them; what cannot be one is an error of titin's, not one of the conversion.

use std::ffi::{CString, c_int};

use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::error;

/// Text that names something: Unicode without a NUL.
pub struct Text(CString);

impl Text {
    pub fn new(py: Python<'_>, text: &str) -> PyResult<Self> {
        let refused = |_| {
            error::usage(
                py,
                format!("{text:?} has a character 0 in it, which no name has"),
            )
        };
        CString::new(text).map(Text).map_err(refused)
    }

    pub fn as_c(&self) -> &CString {
        &self.0
    }

    pub fn into_c(self) -> CString {
        self.0
    }

    pub fn as_str(&self) -> &str {
        self.0.to_str().expect("it was made of a str")
    }
}

impl<'py> FromPyObject<'_, 'py> for Text {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let text = object.cast::<PyString>()?;
        Text::new(object.py(), unicode(&text)?)
    }
}

/// Text for people: what is not Unicode in it is replaced, so that all the rest is read.
pub struct Words(pub CString);

impl<'py> FromPyObject<'_, 'py> for Words {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Ok(Words::new(&object.cast::<PyString>()?.to_string_lossy()))
    }
}

impl Words {
    pub fn new(text: &str) -> Self {
        Words(CString::new(text.replace('\0', " ")).expect("there is no NUL any more"))
    }
}

/// The number of a slot, or how many there are.
pub struct Slot(pub c_int);

impl<'py> FromPyObject<'_, 'py> for Slot {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let py = object.py();
        let refused = || {
            let text = format!(
                "{} is neither a slot nor a number of them: these go from 0 to {}",
                &*object,
                c_int::MAX
            );
            error::usage(py, text)
        };
        match object.extract::<c_int>() {
            Ok(slot) if slot >= 0 => Ok(Slot(slot)),
            Ok(_) => Err(refused()),
            Err(error) if error.is_instance_of::<PyOverflowError>(py) => Err(refused()),
            Err(error) => Err(error),
        }
    }
}

/// A text of Python's as Rust has it. Python's may have halves of surrogate pairs, which are no characters.
pub fn unicode<'a>(text: &'a Bound<'_, PyString>) -> PyResult<&'a str> {
    let refused = |_| {
        let shown = text
            .repr()
            .and_then(|shown| shown.extract::<String>())
            .unwrap_or_default();
        let why = format!(
            "the text {shown} is not Unicode: it has half of a surrogate pair; take it out, as \
             text.encode(errors=\"replace\").decode() does, or send bytes"
        );
        error::usage(text.py(), why)
    };
    text.to_str().map_err(refused)
}
