//! Structures: trees of dicts, lists, text, bytes, numbers, arrays and None, both ways.

use std::ffi::{c_char, c_int, c_void};
use std::ptr::NonNull;

use pyo3::exceptions::{PyMemoryError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyComplex, PyDict, PyFloat, PyInt, PyList, PyMapping, PyString,
    PyTuple,
};
use pyo3::{ffi, intern};

use crate::argument::{Text, unicode};
use crate::array::{Array, is_ndarray, ndarray};
use crate::loan::{Loan, Share};
use crate::message::{Message, Payload, View};
use crate::{error, sys};

/// Deepest nesting, as on the wire.
const MAX_DEPTH: usize = 100;

/// A value of libtitin that is ours to free, and the Python memory that it points to.
pub struct Value {
    root: Owned,
    _arrays: Vec<Array>,
    _bytes: Vec<Py<PyAny>>,
}

/// What can be sent, sorted by how it is.
pub enum Data {
    Nil,
    Array(Array),
    Loan(Share),
    Value(Value),
}

impl Data {
    /// Looks at what is to be sent. Arrays and bytes are not copied.
    pub fn new(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        if object.is_none() {
            return Ok(Data::Nil);
        }
        if let Some(loan) = Loan::of(object)? {
            return Ok(Data::Loan(loan));
        }
        let py = object.py();
        if is_ndarray(object) || !is_plain(object) {
            let array = Array::to_send(object)?;
            return match is_number(object, &array)? {
                true => Ok(Data::Value(Value::new(
                    &object.call_method0(intern!(py, "item"))?,
                )?)),
                false => Ok(Data::Array(array)),
            };
        }
        Ok(Data::Value(Value::new(object)?))
    }
}

impl Value {
    /// A tree of what Python has.
    pub fn new(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let mut builder = Builder::default();
        let root = builder.build(object, 0)?;
        Ok(Value {
            root,
            _arrays: builder.arrays,
            _bytes: builder.bytes,
        })
    }

    /// A settings overlay, of any mapping.
    pub fn settings(settings: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::new(dict(settings)?.as_any())
    }

    pub fn as_ptr(&self) -> *const sys::titin_value {
        self.root.0.as_ptr()
    }
}

/// A value that is freed unless it is given away.
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
        // SAFETY: it is ours and was given to nobody.
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
        // SAFETY: what the calls point to is held by the object or by the builder; see at each.
        let value = unsafe {
            if object.is_none() {
                sys::titin_new_nil()
            } else if let Ok(flag) = object.cast::<PyBool>() {
                sys::titin_new_bool(c_int::from(flag.is_true()))
            } else if let Ok(number) = object.cast::<PyFloat>() {
                sys::titin_new_f64(number.value())
            } else if object.is_instance_of::<PyInt>() {
                self.integer(object)?
            } else if let Ok(text) = object.cast::<PyString>() {
                let text = unicode(text)?;
                // Copied by the call.
                sys::titin_new_text(text.as_ptr().cast(), text.len() as i64)
            } else if let Ok(bytes) = object.cast::<PyBytes>() {
                self.bytes.push(object.clone().unbind());
                let bytes = bytes.as_bytes();
                // Bytes never change, and the builder holds them.
                sys::titin_new_bytes(bytes.as_ptr().cast(), bytes.len() as i64, 1)
            } else if let Ok(bytes) = object.cast::<PyByteArray>() {
                // Copied by the call, with the GIL held.
                sys::titin_new_bytes(bytes.data().cast(), bytes.len() as i64, 0)
            } else if let Ok(map) = object.cast::<PyDict>() {
                return self.map(map, depth);
            } else if let Ok(list) = object.cast::<PyList>() {
                return self.list(py, list.iter(), depth);
            } else if let Ok(tuple) = object.cast::<PyTuple>() {
                return self.list(py, tuple.iter(), depth);
            } else {
                return self.array(object, depth);
            }
        };
        Owned::new(py, value)
    }

    fn integer(&mut self, object: &Bound<'_, PyAny>) -> PyResult<*mut sys::titin_value> {
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
        let map = Owned::new(py, unsafe { sys::titin_new_map() })?;
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
            // SAFETY: the map is ours, the name is copied; the item is given away, whatever the outcome.
            error::check(py, unsafe {
                sys::titin_map_set(map.0.as_ptr(), name.as_c().as_ptr(), item.give())
            })?;
        }
        Ok(map)
    }

    fn array(&mut self, object: &Bound<'_, PyAny>, depth: usize) -> PyResult<Owned> {
        let py = object.py();
        if object.is_instance_of::<PyComplex>() {
            let array = py
                .import(intern!(py, "numpy"))?
                .call_method1(intern!(py, "asarray"), (object,))?;
            return self.array(&array, depth);
        }
        let array = Array::to_send(object)?;
        if is_number(object, &array)? {
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

/// Whether an object is one of NumPy's scalars, which are numbers; complex ones have no other form than an array.
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

/// A value as Python has it. Arrays are read-only views; `payload` is the message that holds their memory.
///
/// # Safety
/// `value` is what a call of libtitin has given: NULL after an error, or a part of the message of `payload`.
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
/// `value` is what a call of libtitin has given: NULL after an error, or one that lives while this runs.
pub unsafe fn settings_to_python(
    py: Python<'_>,
    value: *const sys::titin_value,
) -> PyResult<Py<PyAny>> {
    // SAFETY: as the caller promises.
    unsafe { read(py, value, None) }
}

/// # Safety
/// `value` is NULL after an error, or lives while this runs, and its arrays as long as the payload.
unsafe fn read(
    py: Python<'_>,
    value: *const sys::titin_value,
    payload: Option<&Payload>,
) -> PyResult<Py<PyAny>> {
    let (mut flag, mut whole, mut large, mut real, mut length) = (0, 0_i64, 0_u64, 0.0_f64, 0_i64);
    if value.is_null() {
        return Err(error::last(py));
    }
    // SAFETY: the value lives, what it points to lives as long, and each call fits the value's kind.
    unsafe {
        Ok(match sys::titin_value_kind(value) {
            sys::NIL => py.None(),
            sys::BOOL => {
                error::check(py, sys::titin_value_bool(value, &mut flag))?;
                PyBool::new(py, flag != 0).to_owned().into_any().unbind()
            }
            sys::INT => {
                error::check(py, sys::titin_value_i64(value, &mut whole))?;
                whole.into_pyobject(py)?.into_any().unbind()
            }
            sys::UINT => {
                error::check(py, sys::titin_value_u64(value, &mut large))?;
                large.into_pyobject(py)?.into_any().unbind()
            }
            sys::FLOAT => {
                error::check(py, sys::titin_value_f64(value, &mut real))?;
                PyFloat::new(py, real).into_any().unbind()
            }
            sys::TEXT => {
                let text = sys::titin_value_text(value, &mut length);
                copied(
                    py,
                    ffi::PyUnicode_FromStringAndSize(text, length as isize),
                    length,
                )?
            }
            sys::BYTES => {
                let bytes = sys::titin_value_bytes(value, &mut length).cast::<c_char>();
                copied(
                    py,
                    ffi::PyBytes_FromStringAndSize(bytes, length as isize),
                    length,
                )?
            }
            sys::ARRAY => array(py, value, payload)?,
            sys::LIST => {
                let list = PyList::empty(py);
                for index in 0..sys::titin_value_size(value) {
                    list.append(read(py, sys::titin_value_item(value, index), payload)?)?;
                }
                list.into_any().unbind()
            }
            sys::MAP => {
                let map = PyDict::new(py);
                for index in 0..sys::titin_value_size(value) {
                    let name = error::text(sys::titin_value_name(value, index));
                    map.set_item(
                        name,
                        read(py, sys::titin_value_item(value, index), payload)?,
                    )?;
                }
                map.into_any().unbind()
            }
            kind => {
                return Err(PyRuntimeError::new_err(format!(
                    "libtitin gave a value of kind {kind}"
                )));
            }
        })
    }
}

/// A copy that Python has made of so many bytes.
///
/// # Safety
/// `object` is what a call of Python has just given: NULL after an error, else ours.
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

/// A type of elements as NumPy has it, or else the package `ml_dtypes`.
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
/// `value` is an array whose memory lives as long as the payload.
unsafe fn array(
    py: Python<'_>,
    value: *const sys::titin_value,
    payload: Option<&Payload>,
) -> PyResult<Py<PyAny>> {
    static NDARRAY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    /// Types of elements by number, as NumPy has them.
    static DTYPES: [PyOnceLock<Py<PyAny>>; 256] = [const { PyOnceLock::new() }; _];
    let payload =
        payload.ok_or_else(|| PyRuntimeError::new_err("libtitin gave settings with an array"))?;
    // SAFETY: the value is an array.
    let (dtype, rank, order, data, length) = unsafe {
        (
            sys::titin_value_dtype(value),
            sys::titin_value_rank(value),
            sys::titin_value_order(value),
            sys::titin_value_raw_data(value),
            sys::titin_value_nbytes(value),
        )
    };
    // SAFETY: as above; dimensions are within the rank.
    let shape = (0..rank).map(|dimension| unsafe { sys::titin_value_extent(value, dimension) });
    let shape = PyTuple::new(py, shape.collect::<Vec<_>>())?;
    let ndarray = NDARRAY.get_or_try_init(py, || {
        py.import(intern!(py, "numpy"))?
            .getattr("ndarray")
            .map(Bound::unbind)
    })?;
    let element = DTYPES[dtype as usize].get_or_try_init(py, || numpy_dtype(py, dtype))?;
    let order = if order == sys::ORDER_FORTRAN {
        intern!(py, "F")
    } else {
        intern!(py, "C")
    };
    // SAFETY: as the caller promises.
    let view = unsafe { View::new(data, length, payload) };
    let array = ndarray
        .bind(py)
        .call1((shape, element, view, 0, py.None(), order))?;
    // SAFETY: as above.
    if unsafe { sys::titin_value_index_name(value, 0) }.is_null() {
        return Ok(array.unbind());
    }
    // SAFETY: as above.
    let name = |dimension| unsafe { error::text(sys::titin_value_index_name(value, dimension)) };
    let names = PyTuple::new(py, (0..rank).map(name).collect::<Vec<_>>())?;
    Ok(py
        .import("titin.data")?
        .call_method1("Array", (array, names))?
        .unbind())
}

/// Fills what a filter of the user's makes of a message: data, or a message of its own with timestamps too.
///
/// # Safety
/// `out` is what libtitin gave to the filter.
pub unsafe fn put(object: &Bound<'_, PyAny>, out: *mut sys::titin_output) -> PyResult<()> {
    let py = object.py();
    if let Ok(message) = object.cast::<Message>() {
        let message = message.get();
        if message.settings(py)?.bind(py).len()? != 0 {
            return Err(error::usage(
                py,
                "a filter cannot give a message settings: they are the sender's",
            ));
        }
        let (timestamp, next) = message.timestamps();
        // SAFETY: `out` is what libtitin gave to the filter.
        error::check(py, unsafe {
            sys::titin_output_timestamp(out, timestamp, next)
        })?;
        // SAFETY: as above.
        return unsafe { put_data(message.data(py)?.bind(py), out) };
    }
    // SAFETY: as the caller promises.
    unsafe { put_data(object, out) }
}

/// # Safety
/// `out` is what libtitin gave to the filter.
unsafe fn put_data(object: &Bound<'_, PyAny>, out: *mut sys::titin_output) -> PyResult<()> {
    let py = object.py();
    match Data::new(object)? {
        Data::Array(array) if array.names().is_null() => {
            // SAFETY: `out` is valid; what comes back has room for the array.
            let target = unsafe {
                sys::titin_output_array(
                    out,
                    array.dtype,
                    array.rank(),
                    array.extents(),
                    array.order(),
                )
            };
            if target.is_null() {
                return Err(error::last(py));
            }
            // SAFETY: as above.
            unsafe { array.copy_to(py, target) }
        }
        _ => {
            let value = Value::new(object)?;
            // SAFETY: `out` is valid; the value is copied.
            error::check(py, unsafe { sys::titin_output_value(out, value.as_ptr()) })
        }
    }
}

/// A pointer that may be NULL, for the settings overlay of a send.
pub fn pointer(value: Option<&Value>) -> *const sys::titin_value {
    value.map_or(std::ptr::null(), Value::as_ptr)
}

const _: () = assert!(size_of::<*mut c_void>() == 8, "lengths are 64 bits");
