//! Structures: trees of dicts, lists, text, bytes, numbers, arrays and None, to libtitin and back.

use std::ffi::{c_char, c_int, c_void};
use std::ptr::NonNull;

use pyo3::exceptions::{PyMemoryError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyComplex, PyDict, PyFloat, PyInt, PyList, PyMapping, PyString,
    PyTuple, PyType,
};
use pyo3::{ffi, intern};

use crate::argument::{Text, unicode};
use crate::array::Array;
use crate::loaded_class::loaded_class;
use crate::loan::{Loan, LoanOwner};
use crate::ndarray::{self, is_ndarray, ndarray};
use crate::payload::{Payload, View};
use crate::{error, sys};

/// Deepest nesting, as on the wire.
const MAX_DEPTH: usize = 100;

/// A value of libtitin that is ours to free. `Value` also keeps the Python objects whose memory the
/// value points to.
pub struct Value {
    root: Owned,
    _arrays: Vec<Array>,
    _bytes: Vec<Py<PyAny>>,
}

/// Data to send, sorted by the call for sending.
pub enum Data {
    Nil,
    Array(Array),
    Loan(LoanOwner),
    Value(Value),
}

impl Data {
    /// The data of an object. Arrays and bytes are not copied.
    pub fn new(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        if object.is_none() {
            return Ok(Data::Nil);
        }
        if let Some(loan) = Loan::of(object)? {
            return Ok(Data::Loan(loan));
        }
        if is_ndarray(object) || !is_plain(object) {
            let array = Array::to_send(object)?;
            return match is_number(object, &array)? {
                true => Ok(Data::Value(Value::new(object)?)),
                false => Ok(Data::Array(array)),
            };
        }
        Ok(Data::Value(Value::new(object)?))
    }
}

impl Value {
    /// The tree of a Python object.
    pub fn new(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let mut builder = Builder::default();
        let root = builder.build(object, 0)?;
        Ok(Value {
            root,
            _arrays: builder.arrays,
            _bytes: builder.bytes,
        })
    }

    /// The settings overlay of a mapping.
    pub fn settings(settings: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::new(dict(settings)?.as_any())
    }

    pub fn as_ptr(&self) -> *const sys::titin_value {
        self.root.0.as_ptr()
    }
}

/// A value that is freed on drop, unless the value was given away.
struct Owned(NonNull<sys::titin_value>);

impl Owned {
    fn new(py: Python<'_>, value: *mut sys::titin_value) -> PyResult<Self> {
        NonNull::new(value)
            .map(Owned)
            .ok_or_else(|| error::last(py))
    }

    fn give(self) -> *mut sys::titin_value {
        let value = self.0.as_ptr();
        std::mem::forget(self);
        value
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: the value is ours, and was not given away.
        unsafe { sys::titin_value_free(self.0.as_ptr()) }
    }
}

#[derive(Default)]
struct Builder {
    arrays: Vec<Array>,
    bytes: Vec<Py<PyAny>>,
}

impl Builder {
    fn build(&mut self, object: &Bound<'_, PyAny>, depth: usize) -> PyResult<Owned> {
        let py = object.py();
        if depth > MAX_DEPTH {
            let text = format!(
                "cannot send a structure nested more than {MAX_DEPTH} deep; does it hold itself?"
            );
            return Err(error::mismatch(py, text));
        }
        if let Some(leaf) = self.leaf(object)? {
            Owned::new(py, leaf)
        } else if let Ok(map) = object.cast::<PyDict>() {
            self.map(map, depth)
        } else if let Ok(list) = object.cast::<PyList>() {
            self.list(py, list.iter(), depth)
        } else if let Ok(tuple) = object.cast::<PyTuple>() {
            self.list(py, tuple.iter(), depth)
        } else {
            self.array(object, depth)
        }
    }

    /// The value of an object without parts; `None` for other objects.
    fn leaf(&mut self, object: &Bound<'_, PyAny>) -> PyResult<Option<*mut sys::titin_value>> {
        // SAFETY: the object or the builder holds the memory that the calls point to; see at each
        // call.
        Ok(Some(unsafe {
            if object.is_none() {
                sys::titin_new_nil()
            } else if let Ok(flag) = object.cast::<PyBool>() {
                sys::titin_new_bool(c_int::from(flag.is_true()))
            } else if let Ok(number) = object.cast::<PyFloat>() {
                sys::titin_new_f64(number.value())
            } else if object.is_instance_of::<PyInt>() {
                integer(object)?
            } else if let Ok(text) = object.cast::<PyString>() {
                let text = unicode(text)?;
                // Copied by the call.
                sys::titin_new_text(text.as_ptr().cast(), text.len() as i64)
            } else if let Ok(bytes) = object.cast::<PyBytes>() {
                self.bytes.push(object.clone().unbind());
                let bytes = bytes.as_bytes();
                // A `bytes` object never changes, and the builder holds the object.
                sys::titin_new_bytes(bytes.as_ptr().cast(), bytes.len() as i64, 1)
            } else if let Ok(bytes) = object.cast::<PyByteArray>() {
                // Copied by the call, with the GIL held.
                sys::titin_new_bytes(bytes.data().cast(), bytes.len() as i64, 0)
            } else {
                return Ok(None);
            }
        }))
    }

    fn list<'py>(
        &mut self,
        py: Python<'py>,
        items: impl Iterator<Item = Bound<'py, PyAny>>,
        depth: usize,
    ) -> PyResult<Owned> {
        // SAFETY: no pointer goes in.
        let list = Owned::new(py, unsafe { sys::titin_new_list() })?;
        for item in items {
            let item = self.build(&item, depth + 1)?;
            // SAFETY: the list is ours; the item is given away, whatever the outcome.
            error::check(py, unsafe {
                sys::titin_list_append(list.0.as_ptr(), item.give())
            })?;
        }
        Ok(list)
    }

    fn map(&mut self, dict: &Bound<'_, PyDict>, depth: usize) -> PyResult<Owned> {
        let py = dict.py();
        // SAFETY: no pointer goes in.
        let map = Owned::new(py, unsafe {
            match is_settings(dict) {
                true => sys::titin_new_settings(),
                false => sys::titin_new_map(),
            }
        })?;
        for (key, item) in dict.iter() {
            let Ok(name) = key.cast::<PyString>() else {
                let text = format!(
                    "cannot send a dict with the key {}: keys are text; use str(key)",
                    key.repr()?
                );
                return Err(error::mismatch(py, text));
            };
            let name = Text::new(py, unicode(name)?)?;
            let item = self.build(&item, depth + 1)?;
            // SAFETY: the map is ours, the name is copied; the item is given away, whatever the
            // outcome.
            error::check(py, unsafe {
                sys::titin_map_set(map.0.as_ptr(), name.as_c().as_ptr(), item.give())
            })?;
        }
        Ok(map)
    }

    fn array(&mut self, object: &Bound<'_, PyAny>, depth: usize) -> PyResult<Owned> {
        let py = object.py();
        if object.is_instance_of::<PyComplex>() {
            return self.array(&ndarray::asarray(object)?, depth);
        }
        let array = Array::to_send(object)?;
        if is_number(object, &array)? {
            if sys::element_name(array.dtype) == "float32" {
                let number = object.extract::<f32>()?;
                // SAFETY: no pointer goes in.
                return Owned::new(py, unsafe { sys::titin_new_f32(number) });
            }
            return self.build(&object.call_method0(intern!(py, "item"))?, depth + 1);
        }
        // SAFETY: the array's memory is held by the builder until the value is freed.
        let value = unsafe {
            sys::titin_new_array(
                array.dtype,
                array.rank(),
                array.extents(),
                array.strides(),
                sys::ORDER_C,
                array.names(),
                array.data(),
                1,
            )
        };
        self.arrays.push(array);
        Owned::new(py, value)
    }
}

fn integer(object: &Bound<'_, PyAny>) -> PyResult<*mut sys::titin_value> {
    if let Ok(number) = object.extract::<i64>() {
        // SAFETY: no pointer goes in.
        return Ok(unsafe { sys::titin_new_i64(number) });
    }
    match object.extract::<u64>() {
        // SAFETY: as above.
        Ok(number) => Ok(unsafe { sys::titin_new_u64(number) }),
        Err(_) => {
            let text = format!(
                "cannot send the integer {object}: it has more than 64 bits; send it as text or as float"
            );
            Err(error::mismatch(object.py(), text))
        }
    }
}

/// Whether a dict is marked as settings: of the class `titin.Settings`.
fn is_settings(dict: &Bound<'_, PyDict>) -> bool {
    static SETTINGS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let py = dict.py();
    !dict.is_exact_instance_of::<PyDict>()
        && loaded_class(
            &SETTINGS,
            intern!(py, "titin.data"),
            intern!(py, "Settings"),
        )
        .is_some_and(|class| dict.is_instance(class).unwrap_or(false))
}

/// A mapping of settings as a dict.
pub fn dict<'py>(settings: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
    let py = settings.py();
    if let Ok(dict) = settings.cast::<PyDict>() {
        return Ok(dict.clone());
    }
    let Ok(mapping) = settings.cast::<PyMapping>() else {
        let text = format!(
            "settings are a mapping from names to values, such as a dict; found {}",
            settings.repr()?
        );
        return Err(error::mismatch(py, text));
    };
    let dict = PyDict::new(py);
    dict.update(mapping)?;
    Ok(dict)
}

/// Whether an object is sent as itself and not as an array.
fn is_plain(object: &Bound<'_, PyAny>) -> bool {
    object.is_instance_of::<PyFloat>()
        || object.is_instance_of::<PyInt>()
        || object.is_instance_of::<PyString>()
        || object.is_instance_of::<PyDict>()
        || object.is_instance_of::<PyList>()
        || object.is_instance_of::<PyTuple>()
        || object.is_instance_of::<PyBytes>()
        || object.is_instance_of::<PyByteArray>()
        || object.is_instance_of::<PyComplex>()
}

/// Whether an object is a scalar of NumPy. Such scalars are sent as numbers, except complex
/// numbers: complex numbers are sent as arrays.
fn is_number(object: &Bound<'_, PyAny>, array: &Array) -> PyResult<bool> {
    let py = object.py();
    if array.rank() != 0 || sys::element_name(array.dtype).starts_with("complex") {
        return Ok(false);
    }
    Ok(
        !ndarray(py).is_some_and(|ndarray| object.is_instance(ndarray).unwrap_or(false))
            && object.hasattr(intern!(py, "item"))?,
    )
}

/// A value as a Python object. Arrays are read-only views; the message of `payload` holds the
/// memory of the arrays.
///
/// # Safety
/// `value` comes from a call of libtitin: NULL after an error, or a part of the message of
/// `payload`.
pub unsafe fn to_python(
    py: Python<'_>,
    value: *const sys::titin_value,
    payload: &Payload,
) -> PyResult<Py<PyAny>> {
    // SAFETY: as the caller promises.
    unsafe { read(py, value, Some(payload)) }
}

/// A value without arrays, such as settings.
///
/// # Safety
/// `value` comes from a call of libtitin: NULL after an error, or a value that outlives this call.
pub unsafe fn settings_to_python(
    py: Python<'_>,
    value: *const sys::titin_value,
) -> PyResult<Py<PyAny>> {
    // SAFETY: as the caller promises.
    unsafe { read(py, value, None) }
}

/// # Safety
/// `value` is NULL after an error, or outlives this call. The arrays in `value` live as long as the
/// payload.
unsafe fn read(
    py: Python<'_>,
    value: *const sys::titin_value,
    payload: Option<&Payload>,
) -> PyResult<Py<PyAny>> {
    if value.is_null() {
        return Err(error::last(py));
    }
    // SAFETY: the value lives, all memory behind the value lives as long, and each call fits the
    // value's kind.
    unsafe {
        match sys::titin_value_kind(value) {
            sys::NIL => Ok(py.None()),
            sys::BOOL | sys::INT | sys::UINT | sys::FLOAT => number(py, value),
            sys::TEXT => {
                let mut length = 0;
                let text = sys::titin_value_text(value, &mut length);
                let object = ffi::PyUnicode_FromStringAndSize(text, length as isize);
                copied(py, object, length)
            }
            sys::BYTES => {
                let mut length = 0;
                let bytes = sys::titin_value_bytes(value, &mut length).cast::<c_char>();
                let object = ffi::PyBytes_FromStringAndSize(bytes, length as isize);
                copied(py, object, length)
            }
            sys::ARRAY => array(py, value, payload),
            sys::LIST => list(py, value, payload),
            sys::MAP => map(py, value, payload),
            kind => Err(PyRuntimeError::new_err(format!(
                "libtitin gave a value of kind {kind}"
            ))),
        }
    }
}

/// # Safety
/// As for `read`; `value` is a list.
unsafe fn list(
    py: Python<'_>,
    value: *const sys::titin_value,
    payload: Option<&Payload>,
) -> PyResult<Py<PyAny>> {
    let list = PyList::empty(py);
    // SAFETY: as the caller promises.
    unsafe {
        for index in 0..sys::titin_value_size(value) {
            list.append(read(py, sys::titin_value_item(value, index), payload)?)?;
        }
    }
    Ok(list.into_any().unbind())
}

/// # Safety
/// As for `read`; `value` is a map.
unsafe fn map(
    py: Python<'_>,
    value: *const sys::titin_value,
    payload: Option<&Payload>,
) -> PyResult<Py<PyAny>> {
    let map = PyDict::new(py);
    // SAFETY: as the caller promises.
    unsafe {
        for index in 0..sys::titin_value_size(value) {
            let name = error::text(sys::titin_value_name(value, index));
            let item = read(py, sys::titin_value_item(value, index), payload)?;
            map.set_item(name, item)?;
        }
        if sys::titin_value_is_settings(value) != 0 {
            let data = py.import(intern!(py, "titin.data"))?;
            return Ok(data.call_method1(intern!(py, "Settings"), (map,))?.unbind());
        }
    }
    Ok(map.into_any().unbind())
}

/// A number or flag.
///
/// # Safety
/// `value` outlives this call, and is a number or flag.
unsafe fn number(py: Python<'_>, value: *const sys::titin_value) -> PyResult<Py<PyAny>> {
    // SAFETY: as the caller promises; each call fits the value's kind.
    unsafe {
        match sys::titin_value_kind(value) {
            sys::BOOL => {
                let mut flag = 0;
                error::check(py, sys::titin_value_bool(value, &mut flag))?;
                Ok(PyBool::new(py, flag != 0).to_owned().into_any().unbind())
            }
            sys::INT => {
                let mut whole = 0_i64;
                error::check(py, sys::titin_value_i64(value, &mut whole))?;
                Ok(whole.into_pyobject(py)?.into_any().unbind())
            }
            sys::UINT => {
                let mut large = 0_u64;
                error::check(py, sys::titin_value_u64(value, &mut large))?;
                Ok(large.into_pyobject(py)?.into_any().unbind())
            }
            _ => {
                let mut real = 0.0_f64;
                error::check(py, sys::titin_value_f64(value, &mut real))?;
                if sys::titin_value_is_f32(value) != 0 {
                    let numpy = py.import(intern!(py, "numpy"))?;
                    let single = numpy.call_method1(intern!(py, "float32"), (real,))?;
                    return Ok(single.unbind());
                }
                Ok(PyFloat::new(py, real).into_any().unbind())
            }
        }
    }
}

/// The object made by a call of Python, with a copy of `length` bytes.
///
/// # Safety
/// `object` comes from a call of Python: NULL after an error, else ours.
unsafe fn copied(py: Python<'_>, object: *mut ffi::PyObject, length: i64) -> PyResult<Py<PyAny>> {
    // SAFETY: as the caller promises.
    unsafe { Bound::from_owned_ptr_or_err(py, object) }
        .map(Bound::unbind)
        .map_err(|raised| match raised.is_instance_of::<PyMemoryError>(py) {
            true => error::error(
                py,
                sys::NO_MEMORY,
                format!("no memory for a copy of {length} bytes"),
            ),
            false => raised,
        })
}

/// NumPy's dtype for an element type, or else the dtype of the package `ml_dtypes`.
fn numpy_dtype(py: Python<'_>, number: c_int) -> PyResult<Py<PyAny>> {
    let name = sys::element_name(number);
    let dtype = py
        .import(intern!(py, "numpy"))?
        .getattr(intern!(py, "dtype"))?;
    if let Ok(known) = dtype.call1((name,)) {
        return Ok(known.unbind());
    }
    let scalar = py
        .import(intern!(py, "ml_dtypes"))
        .and_then(|package| package.getattr(name))
        .map_err(|_| {
            let text = format!(
                "the data hold an array of {name}, which NumPy does not have: install the package ml_dtypes, \
                 as by `pip install titin[ml_dtypes]`"
            );
            error::mismatch(py, text)
        })?;
    Ok(dtype.call1((scalar,))?.unbind())
}

/// A NumPy array over a message's memory.
///
/// # Safety
/// `value` is an array, and the array's memory lives as long as the payload.
unsafe fn array(
    py: Python<'_>,
    value: *const sys::titin_value,
    payload: Option<&Payload>,
) -> PyResult<Py<PyAny>> {
    /// NumPy's dtypes by the number of the element type.
    static DTYPES: [PyOnceLock<Py<PyAny>>; 256] = [const { PyOnceLock::new() }; _];
    let payload =
        payload.ok_or_else(|| PyRuntimeError::new_err("libtitin gave settings with an array"))?;
    // SAFETY: the value is an array.
    let (dtype, rank) = unsafe { (sys::titin_value_dtype(value), sys::titin_value_rank(value)) };
    let mut extents = [0; sys::MAX_RANK];
    let extents = &mut extents[..rank as usize];
    for (dimension, extent) in (0..rank).zip(extents.iter_mut()) {
        // SAFETY: as above; dimensions are within the rank.
        *extent = unsafe { sys::titin_value_extent(value, dimension) };
    }
    let dtype = DTYPES[dtype as usize].get_or_try_init(py, || numpy_dtype(py, dtype))?;
    // SAFETY: as the caller promises.
    let array = unsafe {
        let data = sys::titin_value_raw_data(value);
        let (length, order) = (
            sys::titin_value_nbytes(value),
            sys::titin_value_order(value),
        );
        let owner = Bound::new(py, View::new(data, length, payload))?.into_any();
        ndarray::over(owner, data, dtype.bind(py), extents, order)?
    };
    // SAFETY: the value is an array.
    match unsafe { index_names(value, rank) } {
        None => Ok(array.unbind()),
        Some(names) => {
            let data = py.import("titin.data")?;
            let array = data.call_method1("Array", (array, PyTuple::new(py, names)?))?;
            Ok(array.unbind())
        }
    }
}

/// The names of an array's dimensions, if the dimensions have names.
///
/// # Safety
/// `value` is an array of the given rank.
unsafe fn index_names(value: *const sys::titin_value, rank: c_int) -> Option<Vec<String>> {
    // SAFETY: as the caller promises.
    if unsafe { sys::titin_value_index_name(value, 0) }.is_null() {
        return None;
    }
    // SAFETY: as the caller promises.
    let name = |dimension| unsafe { error::text(sys::titin_value_index_name(value, dimension)) };
    Some((0..rank).map(name).collect())
}

/// A pointer that may be NULL, for the settings overlay of a send.
pub fn pointer(value: Option<&Value>) -> *const sys::titin_value {
    value.map_or(std::ptr::null(), Value::as_ptr)
}

const _: () = assert!(size_of::<*mut c_void>() == 8, "lengths are 64 bits");
