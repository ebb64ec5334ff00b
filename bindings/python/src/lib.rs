//! The Python extension: `titin._core`, over libtitin's C interface.
//!
//! The extension describes Python's arrays and structures in the way of `titin.h`, gives the GIL
//! back around every call that waits or copies, and raises errors as exceptions. `titin.h`
//! describes each call, and `titin_path.h` those on paths. `titin/_core.pyi` describes each call as a Python program sees the call.

/// The docstring of a class or of a method, such as `Instance.send`, from `titin/_core.pyi`.
macro_rules! doc {
    ($name:literal) => {
        include_str!(concat!(env!("OUT_DIR"), "/docs/", $name))
    };
}

mod argument;
mod array;
mod decomposition;
mod error;
mod field;
mod filter;
mod instance;
mod light;
mod loaded_class;
mod loan;
mod message;
mod ndarray;
mod options;
mod path;
mod path_request;
mod payload;
mod port;
mod ranks;
mod region;
mod session;
mod setting;
#[allow(missing_docs, non_camel_case_types)]
mod sys;
mod value;

use pyo3::prelude::*;

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // SAFETY: the text is the library's own and never changes.
    module.add("__version__", unsafe { error::text(sys::titin_version()) })?;
    module.add_class::<instance::Instance>()?;
    module.add_class::<field::Field>()?;
    module.add_class::<light::Opening>()?;
    module.add_class::<light::Ready>()?;
    module.add("Pending", module.py().get_type::<error::Pending>())?;
    module.add_class::<region::Region>()?;
    module.add_class::<message::Message>()?;
    module.add_class::<port::Port>()?;
    module.add_class::<path::Path>()?;
    module.add_class::<path::PathListener>()?;
    module.add_class::<path_request::Request>()?;
    module.add_function(wrap_pyfunction!(path_request::wait_any, module)?)?;
    module.add_function(wrap_pyfunction!(setting::convert, module)?)?;
    module.add_function(wrap_pyfunction!(instance::place, module)?)?;
    module.add_function(wrap_pyfunction!(instance::opened, module)?)?;
    module.add_function(wrap_pyfunction!(instance::unclosed, module)?)?;
    module.add_function(wrap_pyfunction!(instance::abandon, module)?)
}
