//! Arguments in the form that libtitin takes. An unfit argument is an error of titin, not of the
//! conversion.

use std::ffi::{CString, c_int};

use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::{error, sys};

/// Text for a name: Unicode without a NUL.
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

/// Text for people. Characters outside Unicode are replaced, so that people can read the rest.
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

/// The number of a slot, or a number of slots.
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

/// A Python text as a Rust text. A Python text may have halves of surrogate pairs; such halves are
/// no characters.
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

/// An argument that may be missing. `None` is an argument like any other.
pub enum Fallback<'py> {
    Missing,
    Given(Bound<'py, PyAny>),
}

impl<'py> FromPyObject<'_, 'py> for Fallback<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Ok(Fallback::Given(object.to_owned()))
    }
}

/// The extents of a shape: a single number, or several.
pub fn extents(shape: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
    match shape.extract::<i64>() {
        Ok(extent) => Ok(vec![extent]),
        Err(_) => shape.try_iter()?.map(|extent| extent?.extract()).collect(),
    }
}

/// The number of an order given as "C" or "F". In the error, `subject` names the thing with the
/// order.
pub fn order_number(py: Python<'_>, order: &str, subject: &str) -> PyResult<c_int> {
    match order {
        "C" => Ok(sys::ORDER_C),
        "F" => Ok(sys::ORDER_FORTRAN),
        other => {
            let text = format!("{subject} of order {other:?}: there are C and F");
            Err(error::usage(py, text))
        }
    }
}
