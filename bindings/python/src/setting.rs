//! Settings, read as a type or in a unit.

use std::ffi::{c_char, c_int};

use pyo3::BoundObject;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyString, PyType};

use crate::argument::{Fallback, Text, unicode};
use crate::session::Call;
use crate::{error, sys, value};

/// The value of a setting: as in the description, as a type, or in a unit.
pub fn read(
    py: Python<'_>,
    call: &Call<'_>,
    name: &Text,
    kind: Option<&Bound<'_, PyAny>>,
    default: Fallback<'_>,
) -> PyResult<Py<PyAny>> {
    let instance = call.instance();
    let c_name = name.as_c().as_ptr();
    // SAFETY: the instance is open while the call lives, and the name as long as this function;
    // here and below.
    let found = unsafe { sys::titin_setting_type(instance, c_name) };
    if let (sys::TYPE_NONE, Fallback::Given(default)) = (found, default) {
        return Ok(default.unbind());
    }
    let Some(kind) = kind else {
        return Setting::Any.read(py, call, c_name);
    };
    if let Ok(unit) = kind.cast::<PyString>() {
        return quantity(call, name, unit);
    }
    match kind.cast::<PyType>() {
        Ok(class) if class.is(py.get_type::<PyString>()) => text(py, call, name, found),
        _ => Setting::new(kind)?.read(py, call, c_name),
    }
}

/// A setting of type `found` as text.
fn text(py: Python<'_>, call: &Call<'_>, name: &Text, found: c_int) -> PyResult<Py<PyAny>> {
    let value = Setting::Any.read(py, call, name.as_c().as_ptr())?;
    if matches!(found, sys::TYPE_NONE | sys::TYPE_TEXT) {
        return Ok(value);
    }
    let text = format!(
        "setting '{}' is not text: it is {value}; correct it in the description, or quote it there",
        name.as_str()
    );
    Err(error::error(py, sys::SETTING, text))
}

/// A setting in a unit.
fn quantity(call: &Call<'_>, name: &Text, unit: &Bound<'_, PyString>) -> PyResult<Py<PyAny>> {
    let py = unit.py();
    let unit = Text::new(py, unicode(unit)?)?;
    let mut real = 0.0;
    // SAFETY: the instance is open while the call lives; the texts live as long as this function.
    error::check(py, unsafe {
        sys::titin_setting_quantity(
            call.instance(),
            name.as_c().as_ptr(),
            unit.as_c().as_ptr(),
            &mut real,
        )
    })?;
    Ok(PyFloat::new(py, real).into_any().unbind())
}

#[doc = doc!("convert")]
#[pyfunction]
pub fn convert(py: Python<'_>, number: f64, unit: &str, wanted: &str) -> PyResult<f64> {
    let (unit, wanted) = (Text::new(py, unit)?, Text::new(py, wanted)?);
    let mut converted = 0.0;
    // SAFETY: the texts live as long as this function.
    error::check(py, unsafe {
        sys::titin_convert(
            number,
            unit.as_c().as_ptr(),
            wanted.as_c().as_ptr(),
            &mut converted,
        )
    })?;
    Ok(converted)
}

/// All settings known for the instance, by full name.
pub fn all(py: Python<'_>, call: &Call<'_>) -> PyResult<Py<PyAny>> {
    // SAFETY: the call fits.
    unsafe { given(py, call, sys::titin_settings) }
}

/// The overlay in force.
pub fn overlay(py: Python<'_>, call: &Call<'_>) -> PyResult<Py<PyAny>> {
    // SAFETY: the call fits.
    unsafe { given(py, call, sys::titin_overlay) }
}

type Give = unsafe extern "C" fn(*mut sys::titin_instance, *mut *mut sys::titin_value) -> c_int;

/// # Safety
/// `give` gives a map, and the caller must free the map.
unsafe fn given(py: Python<'_>, call: &Call<'_>, give: Give) -> PyResult<Py<PyAny>> {
    let mut settings = std::ptr::null_mut();
    // SAFETY: the instance is open while the call lives.
    error::check(py, unsafe { give(call.instance(), &mut settings) })?;
    // SAFETY: the map is ours, and freed once read.
    unsafe {
        let found = value::settings_to_python(py, settings);
        sys::titin_value_free(settings);
        found
    }
}

/// The types of settings.
enum Setting {
    Any,
    Real,
    Whole,
    Flag,
    Reals,
    Wholes,
    Table,
}

impl Setting {
    fn new(kind: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = kind.py();
        if kind.is(py.get_type::<PyFloat>()) {
            return Ok(Setting::Real);
        }
        if kind.is(py.get_type::<PyInt>()) {
            return Ok(Setting::Whole);
        }
        if kind.is(py.get_type::<PyBool>()) {
            return Ok(Setting::Flag);
        }
        match kind.str()?.to_str()? {
            "list[float]" => Ok(Setting::Reals),
            "list[int]" => Ok(Setting::Wholes),
            "list[list[float]]" => Ok(Setting::Table),
            other => {
                let text = format!(
                    "settings are read as str, int, float, bool, list[int], list[float], list[list[float]], or in a \
                     unit such as \"s\"; not as {other}"
                );
                Err(error::usage(py, text))
            }
        }
    }

    fn read(self, py: Python<'_>, call: &Call<'_>, name: *const c_char) -> PyResult<Py<PyAny>> {
        let instance = call.instance();
        // SAFETY: the instance is open while the call lives; each list gets as much room as
        // libtitin asks for.
        unsafe {
            match self {
                Setting::Any => {
                    let mut value = std::ptr::null_mut();
                    error::check(py, sys::titin_setting_value(instance, name, &mut value))?;
                    let found = value::settings_to_python(py, value);
                    sys::titin_value_free(value);
                    found
                }
                Setting::Real => {
                    let mut real = 0.0;
                    error::check(py, sys::titin_setting_f64(instance, name, &mut real))?;
                    object(py, real)
                }
                Setting::Whole => {
                    let mut whole = 0;
                    error::check(py, sys::titin_setting_i64(instance, name, &mut whole))?;
                    object(py, whole)
                }
                Setting::Flag => {
                    let mut flag = 0;
                    error::check(py, sys::titin_setting_bool(instance, name, &mut flag))?;
                    object(py, flag != 0)
                }
                Setting::Reals => object(py, list(py, instance, name, sys::titin_setting_f64s)?),
                Setting::Wholes => object(py, list(py, instance, name, sys::titin_setting_i64s)?),
                Setting::Table => object(py, table(py, instance, name)?),
            }
        }
    }
}

/// # Safety
/// The instance is open, and `name` ends with a NUL.
unsafe fn table(
    py: Python<'_>,
    instance: *mut sys::titin_instance,
    name: *const c_char,
) -> PyResult<Vec<Vec<f64>>> {
    let (mut rows, mut columns) = (0, 0);
    let mut read = |numbers: *mut f64, room| {
        // SAFETY: as the caller promises; there is as much room as said.
        let status = unsafe {
            sys::titin_setting_table(instance, name, numbers, room, &mut rows, &mut columns)
        };
        error::check(py, status).map(|()| (rows, columns))
    };
    // A call without room gives the numbers of rows and columns.
    let (rows, columns) = read(std::ptr::null_mut(), 0)?;
    let mut table = vec![0.0; (rows * columns) as usize];
    read(table.as_mut_ptr(), rows * columns)?;
    let rows = table.chunks(columns.max(1) as usize).map(<[f64]>::to_vec);
    Ok(rows.collect())
}

type ReadList<T> =
    unsafe extern "C" fn(*mut sys::titin_instance, *const c_char, *mut T, i64, *mut i64) -> c_int;

/// # Safety
/// The instance is open, and `name` ends with a NUL.
unsafe fn list<T: Clone + Default>(
    py: Python<'_>,
    instance: *mut sys::titin_instance,
    name: *const c_char,
    read: ReadList<T>,
) -> PyResult<Vec<T>> {
    let mut count = 0;
    // SAFETY: as the caller promises; a call without room writes only the length of the list to
    // `count`.
    error::check(py, unsafe {
        read(instance, name, std::ptr::null_mut(), 0, &mut count)
    })?;
    let mut list = vec![T::default(); count as usize];
    // SAFETY: as the caller promises; the list has room for `count` items.
    error::check(py, unsafe {
        read(instance, name, list.as_mut_ptr(), count, &mut count)
    })?;
    Ok(list)
}

fn object<'py>(py: Python<'py>, value: impl IntoPyObject<'py>) -> PyResult<Py<PyAny>> {
    let object = value.into_pyobject(py).map_err(Into::into)?;
    Ok(object.into_any().unbind())
}
