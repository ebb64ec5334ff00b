//! Settings, by the caller's type.

use std::ffi::{c_char, c_int};

use titin_runtime::{Error, Kind, Result, Setting, SettingValue, convert};

use crate::error::{status, usage, value};
use crate::handle::{Handle, instance, on_instance};
use crate::input;
use crate::value::Value;

/// Reads a setting into `out`. `out` gets `fallback` first.
///
/// # Safety
/// `handle` is NULL or an instance, `name` is NULL or ends with a NUL, `out` is NULL or may be
/// written.
unsafe fn read<T>(
    handle: *const Handle,
    name: *const c_char,
    out: *mut T,
    fallback: T,
    body: impl FnOnce(&Handle, SettingValue) -> Result<T>,
) -> c_int {
    // SAFETY: as the caller promises.
    let out = unsafe { input::out(out, "the setting") };
    let out = out.map(|out| {
        *out = fallback;
        out
    });
    // SAFETY: as the caller promises.
    unsafe {
        on_instance(handle, |handle| {
            let (out, name) = (out?, input::text(name, "name of the setting")?);
            *out = body(handle, handle.shared.instance.setting(name)?)?;
            Ok(())
        })
    }
}

/// Copies a list into the caller's memory. Returns the length of the list.
///
/// # Safety
/// `into` is NULL or has room for `capacity` items.
unsafe fn copy<T: Copy>(list: &[T], into: *mut T, capacity: i64) -> Result<i64> {
    let count = list.len() as i64;
    if into.is_null() {
        return Ok(count);
    }
    if capacity < count {
        return Err(usage(format!(
            "room for {capacity} numbers, the setting has {count}; ask with NULL for how many"
        )));
    }
    // SAFETY: there is room, as the caller promises, and the list is our own copy.
    unsafe { into.copy_from_nonoverlapping(list.as_ptr(), list.len()) };
    Ok(count)
}

/// # Safety
/// `handle` is NULL or an instance; `name` is NULL or ends with a NUL.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_setting_type(handle: *const Handle, name: *const c_char) -> c_int {
    value(0, || {
        // SAFETY: as the caller promises.
        let (handle, name) =
            unsafe { (instance(handle)?, input::text(name, "name of the setting")?) };
        Ok(handle
            .shared
            .instance
            .find_setting(name)
            .map_or(0, |setting| match setting {
                Setting::Bool(_) => 1,
                Setting::Int(_) => 2,
                Setting::Float(_) => 3,
                Setting::Str(_) => 4,
                Setting::Ints(_) => 5,
                Setting::Floats(_) => 6,
                Setting::Table(_) => 7,
            }))
    })
}

/// # Safety
/// As [`read`].
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_setting_f64(
    handle: *mut Handle,
    name: *const c_char,
    out: *mut f64,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { read(handle, name, out, f64::NAN, |_, setting| setting.as_f64()) }
}

/// # Safety
/// As [`read`]; `unit` is NULL or ends with a NUL.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_setting_quantity(
    handle: *mut Handle,
    name: *const c_char,
    unit: *const c_char,
    out: *mut f64,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        read(handle, name, out, f64::NAN, |_, setting| {
            setting.in_unit(input::text(unit, "unit")?)
        })
    }
}

/// # Safety
/// The units are NULL or end with a NUL, `out` is NULL or may be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_convert(
    number: f64,
    unit: *const c_char,
    wanted: *const c_char,
    out: *mut f64,
) -> c_int {
    status(|| {
        // SAFETY: as the caller promises.
        let (out, unit, wanted) = unsafe {
            let out = input::out(out, "the converted number")?;
            *out = f64::NAN;
            (
                out,
                input::text(unit, "unit")?,
                input::text(wanted, "wanted unit")?,
            )
        };
        *out = convert(number, unit, wanted).map_err(|error| {
            let text = format!("{number:?} {unit} cannot be converted to {wanted}: {error}");
            Error::new(Kind::Usage, text)
        })?;
        Ok(())
    })
}

/// # Safety
/// As [`read`].
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_setting_i64(
    handle: *mut Handle,
    name: *const c_char,
    out: *mut i64,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { read(handle, name, out, 0, |_, setting| setting.as_i64()) }
}

/// # Safety
/// As [`read`].
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_setting_bool(
    handle: *mut Handle,
    name: *const c_char,
    out: *mut c_int,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        read(handle, name, out, 0, |_, setting| {
            setting.as_bool().map(c_int::from)
        })
    }
}

/// # Safety
/// As [`read`].
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_setting_text(
    handle: *mut Handle,
    name: *const c_char,
    out: *mut *const c_char,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        read(handle, name, out, std::ptr::null(), |handle, setting| {
            Ok(handle.keep_text(setting.as_text()?))
        })
    }
}

/// # Safety
/// As [`read`]; `into` is NULL or has room for `capacity` numbers.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_setting_f64s(
    handle: *mut Handle,
    name: *const c_char,
    into: *mut f64,
    capacity: i64,
    count: *mut i64,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        read(handle, name, count, 0, |_, setting| {
            copy(&setting.as_floats()?, into, capacity)
        })
    }
}

/// # Safety
/// As [`read`]; `into` is NULL or has room for `capacity` numbers.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_setting_i64s(
    handle: *mut Handle,
    name: *const c_char,
    into: *mut i64,
    capacity: i64,
    count: *mut i64,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        read(handle, name, count, 0, |_, setting| {
            copy(&setting.as_ints()?, into, capacity)
        })
    }
}

/// # Safety
/// As [`read`]; `into` is NULL or has room for `capacity` numbers, `columns` is NULL or may be
/// written.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_setting_table(
    handle: *mut Handle,
    name: *const c_char,
    into: *mut f64,
    capacity: i64,
    rows: *mut i64,
    columns: *mut i64,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        input::preset(columns, 0);
        read(handle, name, rows, 0, |_, setting| {
            let columns = input::out(columns, "the number of columns")?;
            let table = setting.as_table()?;
            let width = table.first().map_or(0, Vec::len);
            if let Some(row) = table.iter().position(|row| row.len() != width) {
                let text = format!(
                    "setting '{}' is no table with rows of the same length: the first has {width}, row {} has {}; \
                     correct it in the description, or read it with titin_setting_value",
                    input::text(name, "name")?,
                    row + 1,
                    table[row].len()
                );
                return Err(Error::new(Kind::Setting, text));
            }
            copy(&table.concat(), into, capacity)?;
            *columns = width as i64;
            Ok(table.len() as i64)
        })
    }
}

/// # Safety
/// As [`read`].
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_setting_value(
    handle: *mut Handle,
    name: *const c_char,
    out: *mut *mut Value,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        read(handle, name, out, std::ptr::null_mut(), |_, setting| {
            Ok(Box::into_raw(Box::new(Value::setting(setting.value()))))
        })
    }
}

/// # Safety
/// `handle` is NULL or an instance; `out` is NULL or may be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_settings(handle: *mut Handle, out: *mut *mut Value) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        give(handle, out, |handle| {
            Value::overlay(&handle.shared.instance.settings())
        })
    }
}

/// # Safety
/// `handle` is NULL or an instance; `out` is NULL or may be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_overlay(handle: *mut Handle, out: *mut *mut Value) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        give(handle, out, |handle| {
            Value::overlay(&handle.shared.instance.overlay())
        })
    }
}

/// # Safety
/// `handle` is NULL or an instance; `out` is NULL or may be written.
unsafe fn give(
    handle: *mut Handle,
    out: *mut *mut Value,
    body: impl FnOnce(&Handle) -> Value,
) -> c_int {
    // SAFETY: as the caller promises.
    let out = unsafe { input::out(out, "the settings") };
    let out = out.map(|out| {
        *out = std::ptr::null_mut();
        out
    });
    // SAFETY: as the caller promises.
    unsafe {
        on_instance(handle, |handle| {
            *out? = Box::into_raw(Box::new(body(handle)));
            Ok(())
        })
    }
}
