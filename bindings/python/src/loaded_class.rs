//! Classes of Python modules that the program may not have loaded.

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyString, PyType};

/// A class of a module, if the module is loaded: without the module no object can be of the class.
/// The class is kept in `cell`.
pub fn loaded_class<'py>(
    cell: &'static PyOnceLock<Py<PyType>>,
    module: &Bound<'py, PyString>,
    name: &Bound<'py, PyString>,
) -> Option<&'py Bound<'py, PyType>> {
    let py = module.py();
    if cell.get(py).is_none() {
        let class = loaded_module(module)?.getattr(name).ok()?;
        let class = class.cast_into::<PyType>().ok()?;
        let _ = cell.set(py, class.unbind());
    }
    cell.get(py).map(|class| class.bind(py))
}

/// A module, if the module is loaded. Every send asks, so a missing module is found without an
/// exception.
fn loaded_module<'py>(name: &Bound<'py, PyString>) -> Option<Bound<'py, PyAny>> {
    let py = name.py();
    // SAFETY: any name may be asked for; the result is ours, or NULL if there is no such module.
    let module =
        unsafe { Bound::from_owned_ptr_or_opt(py, ffi::PyImport_GetModule(name.as_ptr())) };
    if module.is_none() {
        PyErr::take(py);
    }
    module
}
