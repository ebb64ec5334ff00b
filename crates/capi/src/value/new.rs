//! Building values.

use std::ffi::{c_char, c_int, c_void};

use titin_runtime::Result;
use titin_runtime::structure::MAX_DEPTH;

use super::{Array, Node, Value};
use crate::array::{ArrayArguments, filling};
use crate::elements::Elements;
use crate::error::{null, status, usage, value};
use crate::input;
use crate::text::Text;

fn boxed(body: impl FnOnce() -> Result<Node>) -> *mut Value {
    value(std::ptr::null_mut(), || {
        Ok(Box::into_raw(Box::new(Value(body()?))))
    })
}

#[unsafe(no_mangle)]
extern "C" fn titin_new_nil() -> *mut Value {
    boxed(|| Ok(Node::Nil))
}

#[unsafe(no_mangle)]
extern "C" fn titin_new_bool(flag: c_int) -> *mut Value {
    boxed(|| Ok(Node::Bool(flag != 0)))
}

#[unsafe(no_mangle)]
extern "C" fn titin_new_i64(number: i64) -> *mut Value {
    boxed(|| Ok(Node::Int(number)))
}

#[unsafe(no_mangle)]
extern "C" fn titin_new_u64(number: u64) -> *mut Value {
    boxed(|| Ok(i64::try_from(number).map_or(Node::UInt(number), Node::Int)))
}

#[unsafe(no_mangle)]
extern "C" fn titin_new_f64(number: f64) -> *mut Value {
    boxed(|| Ok(Node::Float(number)))
}

#[unsafe(no_mangle)]
extern "C" fn titin_new_f32(number: f32) -> *mut Value {
    boxed(|| Ok(Node::Float32(number)))
}

/// # Safety
/// `text` points to `length` bytes, or with a negative length ends with a NUL.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_new_text(text: *const c_char, length: i64) -> *mut Value {
    boxed(|| {
        if length < 0 {
            // SAFETY: as the caller promises.
            return Ok(Node::Text(Text::new(unsafe { input::text(text, "text") }?)));
        }
        // SAFETY: as the caller promises.
        let bytes = unsafe { input::slice(text.cast::<u8>(), length, "bytes") }?;
        let text = std::str::from_utf8(bytes)
            .map_err(|error| usage(format!("text that is not UTF-8: {error}")))?;
        Ok(Node::Text(Text::new(text)))
    })
}

/// # Safety
/// `data` points to `length` bytes. Borrowed bytes stay as long as the value lives.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_new_bytes(
    data: *const c_void,
    length: i64,
    borrow: c_int,
) -> *mut Value {
    boxed(|| {
        // SAFETY: as the caller promises.
        let bytes = unsafe { input::slice(data.cast::<u8>(), length, "bytes") }?;
        if borrow != 0 {
            return Ok(Node::Bytes(Elements::Borrowed(bytes.as_ptr(), bytes.len())));
        }
        let mut filling = filling(bytes.len() as u64)?;
        filling.push(bytes);
        Ok(Node::Bytes(Elements::Shared(
            filling.finish().into(),
            0..bytes.len(),
        )))
    })
}

/// # Safety
/// The arguments describe an array in the way of the header. A borrowed array stays as long as the
/// value lives.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_new_array(
    dtype: c_int,
    rank: c_int,
    extents: *const i64,
    strides: *const i64,
    order: c_int,
    names: *const *const c_char,
    data: *const c_void,
    borrow: c_int,
) -> *mut Value {
    boxed(|| {
        let arguments = ArrayArguments {
            dtype,
            rank,
            extents,
            strides,
            order,
            names,
            data,
        };
        // SAFETY: as the caller promises.
        let mut described = unsafe { arguments.read() }?;
        // SAFETY: as the caller promises.
        let data = unsafe {
            if borrow != 0 {
                described.elements()
            } else {
                described.copied()
            }
        }?;
        Ok(Node::Array(Array::new(described.form().to_layout(), data)))
    })
}

#[unsafe(no_mangle)]
extern "C" fn titin_new_list() -> *mut Value {
    boxed(|| Ok(Node::List(Vec::new())))
}

#[unsafe(no_mangle)]
extern "C" fn titin_new_map() -> *mut Value {
    boxed(|| Ok(Node::Map(Vec::new())))
}

#[unsafe(no_mangle)]
extern "C" fn titin_new_settings() -> *mut Value {
    boxed(|| Ok(Node::Settings(Vec::new())))
}

/// Refuses a value that the program makes an item of the same value.
fn not_itself(value: *mut Value, item: *mut Value) -> Result<()> {
    match !value.is_null() && std::ptr::eq(value, item) {
        true => Err(usage(
            "a value cannot be an item of itself; make another one for that",
        )),
        false => Ok(()),
    }
}

/// # Safety
/// `list` and `item` are NULL or values, and `item` is in no other tree.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_list_append(list: *mut Value, item: *mut Value) -> c_int {
    status(|| {
        not_itself(list, item)?;
        // SAFETY: as the caller promises; the item is ours from here on.
        let item = unsafe { own(item) }?;
        // SAFETY: as the caller promises.
        match unsafe { list.as_mut() }.ok_or_else(|| null("list", "titin_new_list"))? {
            Value(Node::List(items)) => items.push(item),
            other => return Err(other.mismatch("a list")),
        }
        Ok(())
    })
}

/// # Safety
/// `map` and `item` are NULL or values, `item` is in no other tree, and `name` is NULL or ends with
/// a NUL.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_map_set(
    map: *mut Value,
    name: *const c_char,
    item: *mut Value,
) -> c_int {
    status(|| {
        not_itself(map, item)?;
        // SAFETY: as the caller promises; the item is ours from here on.
        let item = unsafe { own(item) }?;
        // SAFETY: as the caller promises.
        let name = unsafe { input::text(name, "name of a map's entry") }?;
        // SAFETY: as the caller promises.
        let entries = match unsafe { map.as_mut() }.ok_or_else(|| null("map", "titin_new_map"))? {
            Value(Node::Map(entries) | Node::Settings(entries)) => entries,
            other => return Err(other.mismatch("a map")),
        };
        match entries.iter_mut().find(|(known, _)| known.as_str() == name) {
            Some((_, old)) => *old = item,
            None => entries.push((Text::new(name), item)),
        }
        Ok(())
    })
}

/// # Safety
/// `value` is NULL or a value outside of any tree, and no code uses the value any more.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_value_free(value: *mut Value) {
    let _ = status(|| {
        if !value.is_null() {
            // SAFETY: made by `boxed` or by a call that gives a value away.
            drop(unsafe { Box::from_raw(value) });
        }
        Ok(())
    });
}

/// # Safety
/// `value` is NULL or a value outside of any tree.
unsafe fn own(value: *mut Value) -> Result<Box<Value>> {
    if value.is_null() {
        return Err(null("value", "a titin_new_ call"));
    }
    // SAFETY: made by `boxed` or by a call that gives a value away.
    let value = unsafe { Box::from_raw(value) };
    // Deeper values could not be sent, and freeing deeper values could overflow the stack.
    if value.depth() >= MAX_DEPTH {
        return Err(usage(format!(
            "values can be nested {MAX_DEPTH} deep, no deeper"
        )));
    }
    Ok(value)
}
