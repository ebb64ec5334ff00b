//! The options with which an instance is opened.

use std::ffi::c_int;
use std::ptr::NonNull;

use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::argument::{Text, Words, unicode};
use crate::{error, sys};

/// Options of libtitin.
pub struct Options(NonNull<sys::titin_options>);

impl Options {
    /// The options of a program in Python. Errors of such a program are exceptions.
    pub fn new(py: Python<'_>) -> PyResult<Self> {
        // SAFETY: nothing goes in.
        let options = NonNull::new(unsafe { sys::titin_options_new() })
            .map(Options)
            .ok_or_else(|| error::last(py))?;
        // SAFETY: the options live; the text is copied.
        unsafe {
            let own = options.as_ptr();
            error::check(py, sys::titin_options_language(own, c"Python".as_ptr()))?;
            error::check(py, sys::titin_options_exceptions(own))?;
        }
        Ok(options)
    }

    pub fn set_instance(&self, py: Python<'_>, name: &Text) -> PyResult<()> {
        // SAFETY: the options live; the text is copied.
        error::check(py, unsafe {
            sys::titin_options_instance(self.as_ptr(), name.as_c().as_ptr())
        })
    }

    pub fn set_manager(&self, py: Python<'_>, manager: &Text) -> PyResult<()> {
        // SAFETY: the options live; the text is copied.
        error::check(py, unsafe {
            sys::titin_options_manager(self.as_ptr(), manager.as_c().as_ptr())
        })
    }

    pub fn set_unchecked(&self, py: Python<'_>, reason: &Words) -> PyResult<()> {
        // SAFETY: the options live; the text is copied.
        error::check(py, unsafe {
            sys::titin_options_unchecked(self.as_ptr(), reason.0.as_ptr())
        })
    }

    pub fn set_checks(&self, py: Python<'_>, checks: Checks) -> PyResult<()> {
        // SAFETY: the options live.
        error::check(py, unsafe {
            sys::titin_options_checks(self.as_ptr(), checks.0)
        })
    }

    pub fn set_receive(&self, py: Python<'_>, ranks: ReceivingRanks) -> PyResult<()> {
        // SAFETY: the options live.
        error::check(py, unsafe {
            sys::titin_options_receive(self.as_ptr(), ranks.0)
        })
    }

    pub fn set_overlays(&self, py: Python<'_>, overlays: OverlayUse) -> PyResult<()> {
        // SAFETY: the options live.
        error::check(py, unsafe {
            sys::titin_options_overlays(self.as_ptr(), overlays.0)
        })
    }

    /// Declares the ports of an operator. `operator` is the operator's number in the header.
    pub fn add_ports(&self, operator: c_int, names: &Bound<'_, PyAny>) -> PyResult<()> {
        for name in port_names(names)? {
            // SAFETY: the options live; the text is copied.
            error::check(names.py(), unsafe {
                sys::titin_options_port(self.as_ptr(), name.as_c().as_ptr(), operator)
            })?;
        }
        Ok(())
    }

    pub fn as_ptr(&self) -> *mut sys::titin_options {
        self.0.as_ptr()
    }
}

impl Drop for Options {
    fn drop(&mut self) {
        // SAFETY: the options are ours, and opening has ended.
        unsafe { sys::titin_options_free(self.0.as_ptr()) }
    }
}

/// What becomes of calls out of order: the number in the header.
pub struct Checks(c_int);

impl<'py> FromPyObject<'_, 'py> for Checks {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        choice(
            "checks",
            object,
            [("error", sys::CHECKS_ERROR), ("warn", sys::CHECKS_WARN)],
            ", or a reason as unchecked=",
        )
        .map(Checks)
    }
}

/// The ranks that get the data of messages: the number in the header.
pub struct ReceivingRanks(c_int);

impl<'py> FromPyObject<'_, 'py> for ReceivingRanks {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        choice(
            "receive",
            object,
            [
                ("all_ranks", sys::RECEIVE_ALL_RANKS),
                ("root_only", sys::RECEIVE_ROOT_ONLY),
            ],
            "",
        )
        .map(ReceivingRanks)
    }
}

/// What settings overlays do: the number in the header.
pub struct OverlayUse(c_int);

impl<'py> FromPyObject<'_, 'py> for OverlayUse {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        choice(
            "overlays",
            object,
            [
                ("inherited", sys::OVERLAYS_INHERITED),
                ("explicit", sys::OVERLAYS_EXPLICIT),
            ],
            "",
        )
        .map(OverlayUse)
    }
}

/// The number in the header of the word that the program gives as an argument. `or_else` is a hint for the error.
fn choice(
    argument: &str,
    given: Borrowed<'_, '_, PyAny>,
    choices: [(&str, c_int); 2],
    or_else: &str,
) -> PyResult<c_int> {
    let word = given.extract::<String>().ok();
    let is_given = |(known, _): &&(&str, c_int)| word.as_deref() == Some(*known);
    if let Some((_, number)) = choices.iter().find(is_given) {
        return Ok(*number);
    }
    let [(one, _), (other, _)] = choices;
    let text = format!(
        "{argument} cannot be {}: give \"{one}\" or \"{other}\"{or_else}",
        given.repr()?
    );
    Err(error::usage(given.py(), text))
}

/// Names of ports: a list of names, or a single text with spaces or commas between the names.
fn port_names(names: &Bound<'_, PyAny>) -> PyResult<Vec<Text>> {
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

/// The reason for not checking the order of calls.
pub fn reason_of(reason: &Bound<'_, PyAny>) -> PyResult<Words> {
    if !reason.is_instance_of::<PyString>() {
        let text = "unchecked takes a reason, not a flag: unchecked=\"the solver probes ahead\"; the log shows it";
        return Err(error::mismatch(reason.py(), text));
    }
    reason.extract()
}
