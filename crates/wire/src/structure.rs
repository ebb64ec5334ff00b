//! Structures: trees of maps, lists, text, bytes, numbers, arrays and nil, as the payload of one message.
//!
//! The payload is `u64` length of the tree, the tree in MessagePack, padding to 64, and then the bytes and arrays
//! of the tree, each at a multiple of 64 from the start of the payload, so that they can be viewed in place and may
//! be longer than MessagePack's 32-bit lengths. In the tree they are extension types: 1, an array, holds u64 offset,
//! the layout of [`crate::meta`] and the index names; 2, bytes, holds u64 offset and u64 length.

use std::ops::Range;

use rmp::Marker;

use crate::meta::{Form, Layout};
use crate::{ALIGNMENT, Malformed, padded};

/// Deepest nesting of a structure.
pub const MAX_DEPTH: usize = 100;

/// Room is made for this many entries of a list at once; beyond that as they come, since a count may lie, at every
/// level of nesting.
const AHEAD: usize = 16;

const ARRAY: i8 = 1;
const BYTES: i8 = 2;

/// A value of a structure. `B` is how it holds long bytes: `&[u8]` to send, a range of the payload once received.
#[derive(Debug, Clone, PartialEq)]
pub enum Value<B> {
    /// Nothing.
    Nil,
    /// True or false.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A whole number above [`i64::MAX`].
    UInt(u64),
    /// A real number.
    Float(f64),
    /// Text.
    Text(String),
    /// Bytes.
    Bytes(B),
    /// An array and its elements.
    Array(Layout, B),
    /// Values in order.
    List(Vec<Value<B>>),
    /// Values by name, in the order given by the sender.
    Map(Vec<(String, Value<B>)>),
}

/// A structure ready to send: its parts in order make up the payload.
#[derive(Debug)]
pub struct Encoded<'a> {
    /// The parts, without a copy of any array.
    pub parts: Vec<Part<'a>>,
    /// Their length together.
    pub length: u64,
}

impl Encoded<'_> {
    /// A copy in one piece.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.parts
            .iter()
            .flat_map(|part| part.as_ref().iter().copied())
            .collect()
    }
}

/// A piece of an encoded structure.
#[derive(Debug)]
pub enum Part<'a> {
    /// The tree, or padding.
    Owned(Vec<u8>),
    /// Bytes or elements where the caller keeps them.
    Borrowed(&'a [u8]),
}

impl AsRef<[u8]> for Part<'_> {
    fn as_ref(&self) -> &[u8] {
        match self {
            Part::Owned(bytes) => bytes,
            Part::Borrowed(bytes) => bytes,
        }
    }
}

/// Encodes a tree. Arrays are not copied.
///
/// # Errors
/// [`Malformed`] if the tree is nested more than [`MAX_DEPTH`] deep, or an array's bytes do not fit its layout.
pub fn encode<'a, B: AsRef<[u8]> + 'a>(root: &'a Value<B>) -> Result<Encoded<'a>, Malformed> {
    // The offsets of the segments depend on the length of the tree, whose length does not depend on them.
    let mut segments = Vec::new();
    let tree_length = write_tree(root, 0, &mut segments)?.len();
    let base = padded(8 + tree_length) as u64;
    segments.clear();
    let tree = write_tree(root, base, &mut segments)?;

    let mut head = Vec::with_capacity(base as usize);
    head.extend_from_slice(&(tree.len() as u64).to_le_bytes());
    head.extend_from_slice(&tree);
    let Some(last) = segments.last() else {
        let length = head.len() as u64;
        return Ok(Encoded {
            parts: vec![Part::Owned(head)],
            length,
        });
    };
    let length = last.0 + last.1.len() as u64;
    head.resize(base as usize, 0);
    let mut parts = vec![Part::Owned(head)];
    let mut at = base;
    for (offset, bytes) in segments {
        if offset > at {
            parts.push(Part::Owned(vec![0; (offset - at) as usize]));
        }
        at = offset + bytes.len() as u64;
        parts.push(Part::Borrowed(bytes));
    }
    Ok(Encoded { parts, length })
}

/// Decodes a payload. Arrays and bytes are given as ranges of it.
///
/// # Errors
/// [`Malformed`] if it does not follow the format, nests too deep, or points outside the payload.
pub fn decode(payload: &[u8]) -> Result<Value<Range<usize>>, Malformed> {
    let (length, rest) = payload
        .split_first_chunk::<8>()
        .ok_or_else(|| wrong("no length of the tree"))?;
    let length = usize::try_from(u64::from_le_bytes(*length))
        .map_err(|_| wrong("tree beyond the payload"))?;
    let mut tree = rest
        .get(..length)
        .ok_or_else(|| wrong("tree beyond the payload"))?;
    let value = read_value(&mut tree, payload.len(), 0)?;
    if !tree.is_empty() {
        return Err(wrong("bytes after the tree"));
    }
    Ok(value)
}

fn wrong(why: impl Into<String>) -> Malformed {
    Malformed::new("structure", why)
}

type Segments<'a> = Vec<(u64, &'a [u8])>;

fn write_tree<'a, B: AsRef<[u8]>>(
    root: &'a Value<B>,
    base: u64,
    segments: &mut Segments<'a>,
) -> Result<Vec<u8>, Malformed> {
    let mut tree = Vec::new();
    write_value(root, &mut tree, base, segments, 0)?;
    Ok(tree)
}

fn write_value<'a, B: AsRef<[u8]>>(
    value: &'a Value<B>,
    out: &mut Vec<u8>,
    base: u64,
    segments: &mut Segments<'a>,
    depth: usize,
) -> Result<(), Malformed> {
    use rmp::encode as e;
    const INFALLIBLE: &str = "writing into memory";
    if depth > MAX_DEPTH {
        return Err(wrong(format!("nested more than {MAX_DEPTH} deep")));
    }
    let counted =
        |length: usize| u32::try_from(length).map_err(|_| wrong("more than 2^32 entries"));
    let place = |segments: &mut Segments<'a>, bytes: &'a [u8]| {
        let end = segments
            .last()
            .map_or(base, |(offset, bytes)| offset + bytes.len() as u64);
        let offset = end.next_multiple_of(ALIGNMENT as u64);
        segments.push((offset, bytes));
        offset
    };
    match value {
        Value::Nil => e::write_nil(out).expect(INFALLIBLE),
        Value::Bool(flag) => e::write_bool(out, *flag).expect(INFALLIBLE),
        Value::Int(number) => drop(e::write_sint(out, *number).expect(INFALLIBLE)),
        Value::UInt(number) => drop(e::write_uint(out, *number).expect(INFALLIBLE)),
        Value::Float(number) => e::write_f64(out, *number).expect(INFALLIBLE),
        Value::Text(text) => {
            counted(text.len())?;
            e::write_str(out, text).expect(INFALLIBLE);
        }
        Value::Bytes(bytes) => {
            let bytes = bytes.as_ref();
            let offset = place(segments, bytes);
            e::write_ext_meta(out, 16, BYTES).expect(INFALLIBLE);
            out.extend_from_slice(&offset.to_le_bytes());
            out.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
        }
        Value::Array(layout, bytes) => {
            let bytes = bytes.as_ref();
            if layout.bytes() != Some(bytes.len() as u64) {
                return Err(wrong(format!(
                    "an array of {:?} in {} bytes",
                    layout.shape,
                    bytes.len()
                )));
            }
            Form::from(layout).check_names()?;
            let offset = place(segments, bytes);
            let mut ext = offset.to_le_bytes().to_vec();
            layout.write(&mut ext);
            layout.write_names(&mut ext);
            e::write_ext_meta(out, counted(ext.len())?, ARRAY).expect(INFALLIBLE);
            out.extend_from_slice(&ext);
        }
        Value::List(values) => {
            e::write_array_len(out, counted(values.len())?).expect(INFALLIBLE);
            for value in values {
                write_value(value, out, base, segments, depth + 1)?;
            }
        }
        Value::Map(entries) => {
            e::write_map_len(out, counted(entries.len())?).expect(INFALLIBLE);
            for (name, value) in entries {
                counted(name.len())?;
                check_name(name)?;
                e::write_str(out, name).expect(INFALLIBLE);
                write_value(value, out, base, segments, depth + 1)?;
            }
        }
    }
    Ok(())
}

fn read_value(
    tree: &mut &[u8],
    payload: usize,
    depth: usize,
) -> Result<Value<Range<usize>>, Malformed> {
    use rmp::decode as d;
    if depth > MAX_DEPTH {
        return Err(wrong(format!("nested more than {MAX_DEPTH} deep")));
    }
    let marker = Marker::from_u8(*tree.first().ok_or_else(|| wrong("the tree ends early"))?);
    let ended = || wrong("the tree ends early");
    Ok(match marker {
        Marker::Null => {
            *tree = &tree[1..];
            Value::Nil
        }
        Marker::True | Marker::False => Value::Bool(d::read_bool(tree).map_err(|_| ended())?),
        Marker::FixPos(_) | Marker::U8 | Marker::U16 | Marker::U32 | Marker::U64 => {
            let number: u64 = d::read_int(tree).map_err(|_| ended())?;
            i64::try_from(number).map_or(Value::UInt(number), Value::Int)
        }
        Marker::FixNeg(_) | Marker::I8 | Marker::I16 | Marker::I32 | Marker::I64 => {
            Value::Int(d::read_int(tree).map_err(|_| ended())?)
        }
        Marker::F32 => Value::Float(d::read_f32(tree).map_err(|_| ended())?.into()),
        Marker::F64 => Value::Float(d::read_f64(tree).map_err(|_| ended())?),
        Marker::FixStr(_) | Marker::Str8 | Marker::Str16 | Marker::Str32 => {
            Value::Text(read_text(tree)?)
        }
        Marker::FixArray(_) | Marker::Array16 | Marker::Array32 => {
            let count = d::read_array_len(tree).map_err(|_| ended())? as usize;
            let mut values = Vec::with_capacity(count.min(AHEAD));
            for _ in 0..count {
                values.push(read_value(tree, payload, depth + 1)?);
            }
            Value::List(values)
        }
        Marker::FixMap(_) | Marker::Map16 | Marker::Map32 => {
            let count = d::read_map_len(tree).map_err(|_| ended())? as usize;
            let mut entries = Vec::with_capacity(count.min(AHEAD));
            for _ in 0..count {
                let name = read_text(tree)?;
                check_name(&name)?;
                entries.push((name, read_value(tree, payload, depth + 1)?));
            }
            Value::Map(entries)
        }
        _ => read_segment(tree, payload)?,
    })
}

fn read_text(tree: &mut &[u8]) -> Result<String, Malformed> {
    let length = rmp::decode::read_str_len(tree).map_err(|_| wrong("expected text"))? as usize;
    let (text, rest) = tree
        .split_at_checked(length)
        .ok_or_else(|| wrong("text beyond the tree"))?;
    *tree = rest;
    std::str::from_utf8(text)
        .map(str::to_owned)
        .map_err(|_| wrong("text that is not UTF-8"))
}

/// Names go through C as text that ends with a NUL: one inside would make two names the same.
fn check_name(name: &str) -> Result<(), Malformed> {
    match name.contains('\0') {
        true => Err(wrong(format!("the name {name:?} has a character 0 in it"))),
        false => Ok(()),
    }
}

fn read_segment(tree: &mut &[u8], payload: usize) -> Result<Value<Range<usize>>, Malformed> {
    let ext = rmp::decode::read_ext_meta(tree).map_err(|_| wrong("an unknown kind of value"))?;
    let (data, rest) = tree
        .split_at_checked(ext.size as usize)
        .ok_or_else(|| wrong("the tree ends early"))?;
    *tree = rest;
    let (offset, data) = data
        .split_first_chunk::<8>()
        .ok_or_else(|| wrong("a segment without an offset"))?;
    let span = |length: u64| {
        let start = usize::try_from(u64::from_le_bytes(*offset)).ok()?;
        let end = start.checked_add(usize::try_from(length).ok()?)?;
        // Callers make typed pointers of what is there.
        (end <= payload && start.is_multiple_of(ALIGNMENT)).then_some(start..end)
    };
    let outside = || wrong("an array or bytes beyond the payload, or not aligned in it");
    match ext.typeid {
        ARRAY => {
            let (mut layout, names) = Layout::read(data)?;
            if !names.is_empty() {
                layout.read_names(names)?;
            }
            let span = layout.bytes().and_then(span).ok_or_else(outside)?;
            Ok(Value::Array(layout, span))
        }
        BYTES => {
            let length = data
                .first_chunk::<8>()
                .ok_or_else(|| wrong("bytes without a length"))?;
            Ok(Value::Bytes(
                span(u64::from_le_bytes(*length)).ok_or_else(outside)?,
            ))
        }
        kind => Err(wrong(format!("unknown extension type {kind}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meta::{Dtype, Order};
    use proptest::prelude::*;

    fn payload(value: &Value<Vec<u8>>) -> Vec<u8> {
        let encoded = encode(value).unwrap();
        let bytes = encoded.to_bytes();
        assert_eq!(bytes.len() as u64, encoded.length);
        bytes
    }

    fn resolve(value: Value<Range<usize>>, payload: &[u8]) -> Value<Vec<u8>> {
        match value {
            Value::Nil => Value::Nil,
            Value::Bool(v) => Value::Bool(v),
            Value::Int(v) => Value::Int(v),
            Value::UInt(v) => Value::UInt(v),
            Value::Float(v) => Value::Float(v),
            Value::Text(v) => Value::Text(v),
            Value::Bytes(span) => Value::Bytes(payload[span].to_vec()),
            Value::Array(layout, span) => {
                assert_eq!(span.start % ALIGNMENT, 0);
                Value::Array(layout, payload[span].to_vec())
            }
            Value::List(values) => {
                Value::List(values.into_iter().map(|v| resolve(v, payload)).collect())
            }
            Value::Map(entries) => Value::Map(
                entries
                    .into_iter()
                    .map(|(name, v)| (name, resolve(v, payload)))
                    .collect(),
            ),
        }
    }

    fn values() -> impl Strategy<Value = Value<Vec<u8>>> {
        let array = prop::collection::vec(any::<u8>(), 0..5).prop_map(|bytes| {
            let layout = Layout {
                dtype: Dtype::UInt8,
                order: Order::C,
                shape: crate::meta::Shape::from_slice(&[bytes.len() as u64]),
                names: vec!["i".into()],
            };
            Value::Array(layout, bytes)
        });
        let leaf = prop_oneof![
            Just(Value::Nil),
            any::<bool>().prop_map(Value::Bool),
            any::<i64>().prop_map(Value::Int),
            (i64::MAX as u64 + 1..).prop_map(Value::UInt),
            (-1e300..1e300).prop_map(Value::Float),
            ".*".prop_map(Value::Text),
            prop::collection::vec(any::<u8>(), 0..200).prop_map(Value::Bytes),
            array,
        ];
        leaf.prop_recursive(4, 64, 8, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..8).prop_map(Value::List),
                prop::collection::vec(("[^\0]*", inner), 0..8).prop_map(Value::Map),
            ]
        })
    }

    proptest! {
        #[test]
        fn trees_survive(value in values()) {
            let bytes = payload(&value);
            prop_assert_eq!(resolve(decode(&bytes).unwrap(), &bytes), value);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut framed = (bytes.len() as u64).to_le_bytes().to_vec();
            framed.extend_from_slice(&bytes);
            let _ = decode(&framed);
            let _ = decode(&bytes);
        }

        #[test]
        fn damaged_trees_are_read_or_refused(value in values(), at: prop::sample::Index, byte: u8) {
            let mut bytes = payload(&value);
            let at = at.index(bytes.len());
            bytes[at] = byte;
            let _ = decode(&bytes);
        }
    }

    #[test]
    fn nesting_and_lying_counts_are_bounded() {
        let deep =
            (0..MAX_DEPTH + 1).fold(Value::Nil, |inner, _| Value::<Vec<u8>>::List(vec![inner]));
        assert!(encode(&deep).is_err());
        let mut bytes = 1000u64.to_le_bytes().to_vec();
        bytes.extend(std::iter::repeat_n(0x91, 1000));
        assert!(decode(&bytes).unwrap_err().to_string().contains("deep"));
        let lying = [0xdd, 0xff, 0xff, 0xff, 0xff].repeat(MAX_DEPTH);
        let lying = [&(lying.len() as u64).to_le_bytes()[..], &lying].concat();
        assert!(decode(&lying).unwrap_err().to_string().contains("early"));
    }
}
