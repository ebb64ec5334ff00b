//! Reading values.

use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int, c_void};

use titin_runtime::{Dtype, ElementValue, Error, Kind, Result};

use super::{Array, Node, Value};
use crate::array::{ExpectedArray, elements_of, extent, order_number, stride};
use crate::error::{c_text, elements, null, status, usage, value};
use crate::input;
use crate::language::Getter;
use crate::number::{range, rounded};

/// The address of empty texts, bytes and arrays: the address must not be NULL. Nothing is read from
/// there.
static EMPTY: [u64; 8] = [0; 8];

/// # Safety
/// `node` is NULL or a value that lives as long as the result is used.
unsafe fn node_behind<'a>(node: *const Value) -> Result<&'a Value> {
    // SAFETY: as the caller promises.
    unsafe { node.as_ref() }
        .ok_or_else(|| null("value", "a titin_new_ or titin_message_value call"))
}

/// # Safety
/// As [`node_behind`].
unsafe fn array<'a>(node: *const Value) -> Option<&'a Array> {
    // SAFETY: as the caller promises.
    unsafe { node.as_ref() }.and_then(Value::array)
}

/// A whole number in the range of `dtype`.
fn whole<T: TryFrom<i128>>(node: &Value, dtype: Dtype) -> Result<T> {
    match node.number() {
        Some(ElementValue::Whole(number)) => T::try_from(number)
            .map_err(|_| node.mismatch(&format!("a whole number of type {}", range(dtype)))),
        _ => Err(node.mismatch("a whole number")),
    }
}

pub(crate) fn pointer(bytes: &[u8]) -> *const c_void {
    if bytes.is_empty() {
        EMPTY.as_ptr().cast()
    } else {
        bytes.as_ptr().cast()
    }
}

/// # Safety
/// `node` is NULL or a value.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_value_kind(node: *const Value) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { node.as_ref() }.map_or(0, Value::kind)
}

/// # Safety
/// `node` is NULL or a value.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_value_is_f32(node: *const Value) -> c_int {
    // SAFETY: as the caller promises.
    let node = unsafe { node.as_ref() };
    c_int::from(node.is_some_and(|node| matches!(node.0, Node::Float32(_))))
}

/// # Safety
/// `node` is NULL or a value.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_value_is_settings(node: *const Value) -> c_int {
    // SAFETY: as the caller promises.
    let node = unsafe { node.as_ref() };
    c_int::from(node.is_some_and(|node| matches!(node.0, Node::Settings(_))))
}

thread_local! {
    /// The last result of `titin_value_summary` in this thread.
    static SUMMARY: RefCell<CString> = RefCell::default();
}

/// # Safety
/// `node` is NULL or a value.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_value_summary(node: *const Value) -> *const c_char {
    value(std::ptr::null(), || {
        // SAFETY: as the caller promises.
        let text = c_text(&unsafe { node_behind(node) }?.summary());
        let pointer = text.as_ptr();
        SUMMARY.set(text);
        Ok(pointer)
    })
}

/// # Safety
/// `node` is NULL or a value; `flag` is NULL or may be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_value_bool(node: *const Value, flag: *mut c_int) -> c_int {
    status(|| {
        // SAFETY: as the caller promises.
        let (node, flag) = unsafe { (node_behind(node), input::out(flag, "the flag")?) };
        *flag = 0;
        let node = node?;
        match node.number() {
            Some(ElementValue::Bool(found)) => *flag = c_int::from(found),
            _ => return Err(node.mismatch("a bool")),
        }
        Ok(())
    })
}

/// # Safety
/// `node` is NULL or a value; `number` is NULL or may be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_value_i64(node: *const Value, number: *mut i64) -> c_int {
    status(|| {
        // SAFETY: as the caller promises.
        let (node, number) = unsafe { (node_behind(node), input::out(number, "the number")?) };
        *number = 0;
        *number = whole(node?, Dtype::Int64)?;
        Ok(())
    })
}

/// # Safety
/// `node` is NULL or a value; `number` is NULL or may be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_value_u64(node: *const Value, number: *mut u64) -> c_int {
    status(|| {
        // SAFETY: as the caller promises.
        let (node, number) = unsafe { (node_behind(node), input::out(number, "the number")?) };
        *number = 0;
        *number = whole(node?, Dtype::UInt64)?;
        Ok(())
    })
}

/// # Safety
/// `node` is NULL or a value; `number` is NULL or may be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_value_f64(node: *const Value, number: *mut f64) -> c_int {
    status(|| {
        // SAFETY: as the caller promises.
        let (node, number) = unsafe { (node_behind(node), input::out(number, "the number")?) };
        *number = f64::NAN;
        let node = node?;
        *number = match node.number() {
            Some(ElementValue::Real(found)) => found,
            Some(found @ ElementValue::Whole(whole)) => match rounded(found, Dtype::Float64) {
                Some(why) => return Err(Error::new(Kind::TypeMismatch, why)),
                None => whole as f64,
            },
            _ => return Err(node.mismatch("a real number")),
        };
        Ok(())
    })
}

/// # Safety
/// `node` is NULL or a value; `length` is NULL or may be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_value_text(node: *const Value, length: *mut i64) -> *const c_char {
    let text = |node: &Value| match &node.0 {
        Node::Text(text) => Ok((text.as_ptr(), text.as_str().len())),
        _ => Err(node.mismatch("text")),
    };
    // SAFETY: as the caller promises.
    unsafe { content(node, length, text) }
}

/// What `find` gives: the beginning of the content of a value, and the length.
///
/// # Safety
/// `node` is NULL or a value; `length` is NULL or may be written.
unsafe fn content<T>(
    node: *const Value,
    length: *mut i64,
    find: impl FnOnce(&Value) -> Result<(*const T, usize)>,
) -> *const T {
    value(std::ptr::null(), || {
        // SAFETY: as the caller promises.
        let node = unsafe {
            input::preset(length, 0);
            node_behind(node)?
        };
        let (content, count) = find(node)?;
        // SAFETY: as the caller promises.
        unsafe { input::preset(length, count as i64) };
        Ok(content)
    })
}

/// # Safety
/// `node` is NULL or a value; `length` is NULL or may be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_value_bytes(node: *const Value, length: *mut i64) -> *const c_void {
    let bytes = |node: &Value| match &node.0 {
        Node::Bytes(bytes) => Ok((pointer(bytes.as_ref()), bytes.as_ref().len())),
        _ => Err(node.mismatch("bytes")),
    };
    // SAFETY: as the caller promises.
    unsafe { content(node, length, bytes) }
}

/// # Safety
/// `node` is NULL or a value.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_value_size(node: *const Value) -> i64 {
    // SAFETY: as the caller promises.
    match unsafe { node.as_ref() } {
        Some(Value(Node::List(items))) => items.len() as i64,
        Some(node) => node.entries().map_or(0, |entries| entries.len() as i64),
        None => 0,
    }
}

/// # Safety
/// `node` is NULL or a value.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_value_item(node: *const Value, index: i64) -> *const Value {
    value(std::ptr::null(), || {
        // SAFETY: as the caller promises.
        let node = unsafe { node_behind(node) }?;
        let place = usize::try_from(index).ok();
        let found = match (&node.0, node.entries()) {
            (Node::List(items), _) => place.and_then(|place| items.get(place)),
            (_, Some(entries)) => place
                .and_then(|place| entries.get(place))
                .map(|(_, item)| item),
            _ => return Err(node.mismatch("a list or map")),
        };
        found
            .map(|item| &raw const **item)
            .ok_or_else(|| usage(format!("no entry {index} in {}", node.summary())))
    })
}

/// # Safety
/// `node` is NULL or a value.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_value_name(node: *const Value, index: i64) -> *const c_char {
    value(std::ptr::null(), || {
        // SAFETY: as the caller promises.
        let node = unsafe { node_behind(node) }?;
        let entries = node.entries().ok_or_else(|| node.mismatch("a map"))?;
        let found = usize::try_from(index)
            .ok()
            .and_then(|place| entries.get(place));
        found
            .map(|(name, _)| name.as_ptr())
            .ok_or_else(|| usage(format!("no entry {index} in {}", node.summary())))
    })
}

/// # Safety
/// `node` is NULL or a value; `name` is NULL or ends with a NUL.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_value_find(node: *const Value, name: *const c_char) -> *const Value {
    value(std::ptr::null(), || {
        // SAFETY: as the caller promises.
        let (node, name) = unsafe {
            (
                node_behind(node)?,
                input::text(name, "name of a map's entry")?,
            )
        };
        let entries = node.entries().ok_or_else(|| node.mismatch("a map"))?;
        let found = entries.iter().find(|(known, _)| known.as_str() == name);
        Ok(found.map_or(std::ptr::null(), |(_, item)| &raw const **item))
    })
}

/// # Safety
/// `node` is NULL or a value.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_value_dtype(node: *const Value) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { array(node) }.map_or(0, |array| array.layout.dtype as c_int)
}

/// # Safety
/// `node` is NULL or a value.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_value_rank(node: *const Value) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { array(node) }.map_or(0, |array| array.layout.shape.len() as c_int)
}

/// # Safety
/// `node` is NULL or a value.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_value_extent(node: *const Value, dimension: c_int) -> i64 {
    // SAFETY: as the caller promises.
    unsafe { array(node) }.map_or(0, |array| extent(&array.layout, dimension))
}

/// # Safety
/// `node` is NULL or a value.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_value_stride(node: *const Value, dimension: c_int) -> i64 {
    // SAFETY: as the caller promises.
    unsafe { array(node) }.map_or(0, |array| stride(&array.layout, dimension))
}

/// # Safety
/// `node` is NULL or a value.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_value_order(node: *const Value) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { array(node) }.map_or(0, |array| order_number(array.layout.order))
}

/// # Safety
/// `node` is NULL or a value.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_value_index_name(node: *const Value, dimension: c_int) -> *const c_char {
    // SAFETY: as the caller promises.
    let names = unsafe { array(node) }
        .map(|array| &array.names[..])
        .unwrap_or_default();
    let name = usize::try_from(dimension)
        .ok()
        .and_then(|index| names.get(index));
    name.map_or(std::ptr::null(), |name| name.as_ptr())
}

/// # Safety
/// `node` is NULL or a value; `extents` is NULL or points to `rank` writable numbers.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_value_array(
    node: *const Value,
    dtype: c_int,
    rank: c_int,
    extents: *mut i64,
    order: c_int,
) -> *const c_void {
    let found = |expected: &ExpectedArray<'_>| {
        // SAFETY: as the caller promises.
        let node = unsafe { node_behind(node) }?;
        let mismatch = || expected.mismatch(node, Getter::of_value);
        let array = node.array().ok_or_else(mismatch)?;
        expected.check(&array.layout)?;
        Ok((&array.layout, pointer(array.data.as_ref())))
    };
    // SAFETY: as the caller promises.
    elements(|| unsafe { elements_of((dtype, rank, extents, order), found) })
}

/// # Safety
/// `node` is NULL or a value.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_value_raw_data(node: *const Value) -> *const c_void {
    // SAFETY: as the caller promises.
    unsafe { array(node) }.map_or(std::ptr::null(), |array| pointer(array.data.as_ref()))
}

/// # Safety
/// `node` is NULL or a value.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_value_elements(node: *const Value) -> i64 {
    // SAFETY: as the caller promises.
    unsafe { array(node) }
        .and_then(|array| array.layout.elements())
        .unwrap_or(0) as i64
}

/// # Safety
/// `node` is NULL or a value.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_value_nbytes(node: *const Value) -> i64 {
    // SAFETY: as the caller promises.
    unsafe { array(node) }
        .and_then(|array| array.layout.bytes())
        .unwrap_or(0) as i64
}
