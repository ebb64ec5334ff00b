//! Structures: trees of maps, lists, text, bytes, numbers, arrays and nil, as the payload of one
//! message.
//!
//! The payload is the `u64` length of the tree, the tree in MessagePack, padding to 64 bytes, and
//! then the segments: the arrays and bytes of the tree. Each segment begins at a multiple of 64
//! from the start of the payload. So a receiver can view a segment in place, and a segment may be
//! longer than the 32 bits of MessagePack's lengths. In the tree a segment is an extension type: 1,
//! an array, holds the u64 offset, the layout of [`crate::meta`] and the index names; 2, bytes,
//! holds the u64 offset and the u64 length. The extension type 3, settings, holds a map.

use std::ops::Range;

use rmp::{Marker, decode as unpack, encode as pack};

use crate::meta::{Layout, LayoutRef};
use crate::{ALIGNMENT, Malformed, padded};

/// Deepest nesting of a structure.
pub const MAX_DEPTH: usize = 100;

/// The most entries of a list or map for which a decoder allocates in advance: at every level of
/// nesting a count may be false.
const AHEAD: usize = 16;

const ARRAY: i8 = 1;
const BYTES: i8 = 2;
const SETTINGS: i8 = 3;

/// A value of a structure. `B` holds elements and bytes: `&[u8]` in a sender, a range of the
/// payload in a receiver.
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
    /// A real number of single precision.
    Float32(f32),
    /// Text.
    Text(String),
    /// Bytes.
    Bytes(B),
    /// An array: layout and elements.
    Array(Layout, B),
    /// Values in order.
    List(Vec<Value<B>>),
    /// Values by name, in the order given by the sender.
    Map(Vec<(String, Value<B>)>),
    /// A map that is marked as settings: names of settings and their values.
    Settings(Vec<(String, Value<B>)>),
}

impl<B> Value<B> {
    /// The value with other elements and bytes: those that `convert` makes of each.
    pub fn map_bytes<C>(self, convert: &impl Fn(B) -> C) -> Value<C> {
        let entries = |entries: Vec<(String, Value<B>)>| {
            let entries = entries.into_iter();
            entries
                .map(|(name, value)| (name, value.map_bytes(convert)))
                .collect()
        };
        match self {
            Value::Nil => Value::Nil,
            Value::Bool(flag) => Value::Bool(flag),
            Value::Int(number) => Value::Int(number),
            Value::UInt(number) => Value::UInt(number),
            Value::Float(number) => Value::Float(number),
            Value::Float32(number) => Value::Float32(number),
            Value::Text(text) => Value::Text(text),
            Value::Bytes(bytes) => Value::Bytes(convert(bytes)),
            Value::Array(layout, elements) => Value::Array(layout, convert(elements)),
            Value::List(values) => {
                let values = values.into_iter();
                Value::List(values.map(|value| value.map_bytes(convert)).collect())
            }
            Value::Map(map) => Value::Map(entries(map)),
            Value::Settings(map) => Value::Settings(entries(map)),
        }
    }
}

/// A structure ready to send: the parts, one after the other, are the payload.
#[derive(Debug)]
pub struct Encoded<'a> {
    /// The parts; arrays are borrowed, not copied.
    pub parts: Vec<EncodedPart<'a>>,
    /// The length of all parts together.
    pub length: u64,
}

impl<'a> Encoded<'a> {
    /// The tree, and the segments behind the tree, with padding between them.
    fn new(tree: Vec<u8>, segments: Vec<(u64, &'a [u8])>) -> Self {
        let mut length = tree.len() as u64;
        let mut parts = vec![EncodedPart::Owned(tree)];
        for (offset, bytes) in segments {
            if offset > length {
                parts.push(EncodedPart::Owned(vec![0; (offset - length) as usize]));
            }
            length = offset + bytes.len() as u64;
            parts.push(EncodedPart::Borrowed(bytes));
        }
        Encoded { parts, length }
    }

    /// A copy in one piece.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.parts
            .iter()
            .flat_map(|part| part.as_ref().iter().copied())
            .collect()
    }
}

/// A part of an encoded structure.
#[derive(Debug)]
pub enum EncodedPart<'a> {
    /// The tree, or padding.
    Owned(Vec<u8>),
    /// Bytes or elements in memory of the caller.
    Borrowed(&'a [u8]),
}

impl AsRef<[u8]> for EncodedPart<'_> {
    fn as_ref(&self) -> &[u8] {
        match self {
            EncodedPart::Owned(bytes) => bytes,
            EncodedPart::Borrowed(bytes) => bytes,
        }
    }
}

/// Encodes a tree. Arrays are not copied.
///
/// # Errors
/// [`Malformed`] if the tree is nested more than [`MAX_DEPTH`] deep, or the elements of an array do
/// not fit the layout.
pub fn encode<'a, B: AsRef<[u8]> + 'a>(root: &'a Value<B>) -> Result<Encoded<'a>, Malformed> {
    // The first segment begins behind the tree. The length of the tree does not depend on the
    // offsets of segments, so a first pass with offsets from 0 gives the length.
    let tree_length = TreeWriter::write(root, 0)?.tree.len();
    let base = padded(8 + tree_length) as u64;
    let TreeWriter { tree, segments, .. } = TreeWriter::write(root, base)?;
    let mut head = Vec::with_capacity(base as usize);
    head.extend_from_slice(&(tree.len() as u64).to_le_bytes());
    head.extend_from_slice(&tree);
    if !segments.is_empty() {
        head.resize(base as usize, 0);
    }
    Ok(Encoded::new(head, segments))
}

/// Decodes a payload. Arrays and bytes become ranges of the payload.
///
/// # Errors
/// [`Malformed`] if the payload does not follow the format, nests too deep, or points outside of
/// itself.
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

/// The reason why writing into a vector is not expected to fail.
const INFALLIBLE: &str = "writing into memory";

/// Writes a tree, and gives every array and every long text of bytes an offset in the payload.
struct TreeWriter<'a> {
    tree: Vec<u8>,
    /// The offset of the first segment.
    base: u64,
    /// Arrays and bytes with their offsets, rising.
    segments: Vec<(u64, &'a [u8])>,
}

impl<'a> TreeWriter<'a> {
    /// Writes the whole tree; the segments begin at `base`.
    fn write<B: AsRef<[u8]>>(root: &'a Value<B>, base: u64) -> Result<Self, Malformed> {
        let mut writer = TreeWriter {
            tree: Vec::new(),
            base,
            segments: Vec::new(),
        };
        writer.value(root, 0)?;
        Ok(writer)
    }

    fn value<B: AsRef<[u8]>>(
        &mut self,
        value: &'a Value<B>,
        depth: usize,
    ) -> Result<(), Malformed> {
        check_depth(depth)?;
        let out = &mut self.tree;
        match value {
            Value::Nil => pack::write_nil(out).expect(INFALLIBLE),
            Value::Bool(flag) => pack::write_bool(out, *flag).expect(INFALLIBLE),
            Value::Int(number) => drop(pack::write_sint(out, *number).expect(INFALLIBLE)),
            Value::UInt(number) => drop(pack::write_uint(out, *number).expect(INFALLIBLE)),
            Value::Float(number) => pack::write_f64(out, *number).expect(INFALLIBLE),
            Value::Float32(number) => pack::write_f32(out, *number).expect(INFALLIBLE),
            Value::Text(text) => self.text(text)?,
            Value::Bytes(bytes) => self.bytes(bytes.as_ref()),
            Value::Array(layout, elements) => self.array(layout, elements.as_ref())?,
            Value::List(values) => {
                pack::write_array_len(out, counted(values.len())?).expect(INFALLIBLE);
                for value in values {
                    self.value(value, depth + 1)?;
                }
            }
            Value::Map(entries) => self.map(entries, depth)?,
            Value::Settings(entries) => {
                let before = std::mem::take(&mut self.tree);
                self.map(entries, depth)?;
                let map = std::mem::replace(&mut self.tree, before);
                pack::write_ext_meta(&mut self.tree, counted(map.len())?, SETTINGS)
                    .expect(INFALLIBLE);
                self.tree.extend_from_slice(&map);
            }
        }
        Ok(())
    }

    fn map<B: AsRef<[u8]>>(
        &mut self,
        entries: &'a [(String, Value<B>)],
        depth: usize,
    ) -> Result<(), Malformed> {
        pack::write_map_len(&mut self.tree, counted(entries.len())?).expect(INFALLIBLE);
        for (name, value) in entries {
            self.name(name)?;
            self.value(value, depth + 1)?;
        }
        Ok(())
    }

    fn name(&mut self, name: &str) -> Result<(), Malformed> {
        counted(name.len())?;
        check_name(name)?;
        self.text(name)
    }

    fn text(&mut self, text: &str) -> Result<(), Malformed> {
        counted(text.len())?;
        pack::write_str(&mut self.tree, text).expect(INFALLIBLE);
        Ok(())
    }

    fn bytes(&mut self, bytes: &'a [u8]) {
        let offset = self.segment(bytes);
        pack::write_ext_meta(&mut self.tree, 16, BYTES).expect(INFALLIBLE);
        self.tree.extend_from_slice(&offset.to_le_bytes());
        self.tree
            .extend_from_slice(&(bytes.len() as u64).to_le_bytes());
    }

    fn array(&mut self, layout: &Layout, elements: &'a [u8]) -> Result<(), Malformed> {
        if layout.bytes() != Some(elements.len() as u64) {
            let (shape, length) = (&layout.shape, elements.len());
            return Err(wrong(format!("an array of {shape:?} in {length} bytes")));
        }
        LayoutRef::from(layout).check_names()?;
        let mut extension = self.segment(elements).to_le_bytes().to_vec();
        layout.write(&mut extension);
        layout.write_names(&mut extension);
        pack::write_ext_meta(&mut self.tree, counted(extension.len())?, ARRAY).expect(INFALLIBLE);
        self.tree.extend_from_slice(&extension);
        Ok(())
    }

    /// Adds a segment behind the tree, and returns the offset in the payload.
    fn segment(&mut self, bytes: &'a [u8]) -> u64 {
        let end = match self.segments.last() {
            Some((offset, last)) => offset + last.len() as u64,
            None => self.base,
        };
        let offset = end.next_multiple_of(ALIGNMENT as u64);
        self.segments.push((offset, bytes));
        offset
    }
}

/// A length as MessagePack has it, in 32 bits.
fn counted(length: usize) -> Result<u32, Malformed> {
    u32::try_from(length).map_err(|_| wrong("more than 2^32 entries"))
}

fn check_depth(depth: usize) -> Result<(), Malformed> {
    match depth > MAX_DEPTH {
        true => Err(wrong(format!("nested more than {MAX_DEPTH} deep"))),
        false => Ok(()),
    }
}

fn ended() -> Malformed {
    wrong("the tree ends early")
}

/// The error of a read at the end of the tree.
fn at_end<E>(_: E) -> Malformed {
    ended()
}

/// Reads a value from the front of the tree. `payload` is the length of the whole payload.
fn read_value(
    tree: &mut &[u8],
    payload: usize,
    depth: usize,
) -> Result<Value<Range<usize>>, Malformed> {
    check_depth(depth)?;
    let marker = Marker::from_u8(*tree.first().ok_or_else(ended)?);
    Ok(match marker {
        Marker::Null => {
            *tree = &tree[1..];
            Value::Nil
        }
        Marker::True | Marker::False => Value::Bool(unpack::read_bool(tree).map_err(at_end)?),
        Marker::FixPos(_) | Marker::U8 | Marker::U16 | Marker::U32 | Marker::U64 => {
            let number: u64 = unpack::read_int(tree).map_err(at_end)?;
            i64::try_from(number).map_or(Value::UInt(number), Value::Int)
        }
        Marker::FixNeg(_) | Marker::I8 | Marker::I16 | Marker::I32 | Marker::I64 => {
            Value::Int(unpack::read_int(tree).map_err(at_end)?)
        }
        Marker::F32 => Value::Float32(unpack::read_f32(tree).map_err(at_end)?),
        Marker::F64 => Value::Float(unpack::read_f64(tree).map_err(at_end)?),
        Marker::FixStr(_) | Marker::Str8 | Marker::Str16 | Marker::Str32 => {
            Value::Text(read_text(tree)?)
        }
        Marker::FixArray(_) | Marker::Array16 | Marker::Array32 => {
            Value::List(read_list(tree, payload, depth)?)
        }
        Marker::FixMap(_) | Marker::Map16 | Marker::Map32 => {
            Value::Map(read_map(tree, payload, depth)?)
        }
        _ => read_extension(tree, payload, depth)?,
    })
}

fn read_list(
    tree: &mut &[u8],
    payload: usize,
    depth: usize,
) -> Result<Vec<Value<Range<usize>>>, Malformed> {
    let count = unpack::read_array_len(tree).map_err(at_end)? as usize;
    let mut values = Vec::with_capacity(count.min(AHEAD));
    for _ in 0..count {
        values.push(read_value(tree, payload, depth + 1)?);
    }
    Ok(values)
}

type Entries = Vec<(String, Value<Range<usize>>)>;

fn read_map(tree: &mut &[u8], payload: usize, depth: usize) -> Result<Entries, Malformed> {
    let count = unpack::read_map_len(tree).map_err(at_end)? as usize;
    let mut entries = Vec::with_capacity(count.min(AHEAD));
    for _ in 0..count {
        let name = read_text(tree)?;
        check_name(&name)?;
        entries.push((name, read_value(tree, payload, depth + 1)?));
    }
    Ok(entries)
}

fn read_text(tree: &mut &[u8]) -> Result<String, Malformed> {
    let length = unpack::read_str_len(tree).map_err(|_| wrong("expected text"))? as usize;
    let (text, rest) = tree
        .split_at_checked(length)
        .ok_or_else(|| wrong("text beyond the tree"))?;
    *tree = rest;
    std::str::from_utf8(text)
        .map(str::to_owned)
        .map_err(|_| wrong("text that is not UTF-8"))
}

/// Refuses a name with a NUL: in C a name ends at the first NUL, so two names could become equal.
fn check_name(name: &str) -> Result<(), Malformed> {
    match name.contains('\0') {
        true => Err(wrong(format!("the name {name:?} has a character 0 in it"))),
        false => Ok(()),
    }
}

/// Reads an array or bytes, which are the offset of the segment and its layout or length, or
/// settings.
fn read_extension(
    tree: &mut &[u8],
    payload: usize,
    depth: usize,
) -> Result<Value<Range<usize>>, Malformed> {
    let extension = unpack::read_ext_meta(tree).map_err(|_| wrong("an unknown kind of value"))?;
    let (data, rest) = tree
        .split_at_checked(extension.size as usize)
        .ok_or_else(ended)?;
    *tree = rest;
    if extension.typeid == SETTINGS {
        return read_settings(data, payload, depth).map(Value::Settings);
    }
    let (offset, data) = data
        .split_first_chunk::<8>()
        .ok_or_else(|| wrong("a segment without an offset"))?;
    let offset = u64::from_le_bytes(*offset);
    match extension.typeid {
        ARRAY => {
            let (mut layout, names) = Layout::read(data)?;
            if !names.is_empty() {
                layout.read_names(names)?;
            }
            let elements = segment(offset, layout.bytes(), payload)?;
            Ok(Value::Array(layout, elements))
        }
        BYTES => {
            let length = data
                .first_chunk::<8>()
                .ok_or_else(|| wrong("bytes without a length"))?;
            let length = u64::from_le_bytes(*length);
            Ok(Value::Bytes(segment(offset, Some(length), payload)?))
        }
        kind => Err(wrong(format!("unknown extension type {kind}"))),
    }
}

/// Reads settings: a map, and nothing else.
fn read_settings(mut map: &[u8], payload: usize, depth: usize) -> Result<Entries, Malformed> {
    let marker = map.first().map(|first| Marker::from_u8(*first));
    if !matches!(
        marker,
        Some(Marker::FixMap(_) | Marker::Map16 | Marker::Map32)
    ) {
        return Err(wrong("settings that are no map"));
    }
    let entries = read_map(&mut map, payload, depth)?;
    match map.is_empty() {
        true => Ok(entries),
        false => Err(wrong("bytes after the map of settings")),
    }
}

/// The range of a segment in the payload. A segment has to be aligned, since callers make typed
/// pointers of the start.
fn segment(offset: u64, length: Option<u64>, payload: usize) -> Result<Range<usize>, Malformed> {
    let range = || {
        let start = usize::try_from(offset).ok()?;
        let end = start.checked_add(usize::try_from(length?).ok()?)?;
        (end <= payload && start.is_multiple_of(ALIGNMENT)).then_some(start..end)
    };
    range().ok_or_else(|| wrong("an array or bytes beyond the payload, or not aligned in it"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meta::{Dtype, StorageOrder};
    use proptest::prelude::*;

    fn payload(value: &Value<Vec<u8>>) -> Vec<u8> {
        let encoded = encode(value).unwrap();
        let bytes = encoded.to_bytes();
        assert_eq!(bytes.len() as u64, encoded.length);
        bytes
    }

    fn resolve(value: Value<Range<usize>>, payload: &[u8]) -> Value<Vec<u8>> {
        value.map_bytes(&|span| {
            assert_eq!(span.start % ALIGNMENT, 0);
            payload[span].to_vec()
        })
    }

    fn values() -> impl Strategy<Value = Value<Vec<u8>>> {
        let array = prop::collection::vec(any::<u8>(), 0..5).prop_map(|bytes| {
            let layout = Layout {
                dtype: Dtype::UInt8,
                order: StorageOrder::C,
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
            (-1e30f32..1e30).prop_map(Value::Float32),
            ".*".prop_map(Value::Text),
            prop::collection::vec(any::<u8>(), 0..200).prop_map(Value::Bytes),
            array,
        ];
        leaf.prop_recursive(4, 64, 8, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..8).prop_map(Value::List),
                prop::collection::vec(("[^\0]*", inner.clone()), 0..8).prop_map(Value::Map),
                prop::collection::vec(("[^\0]*", inner), 0..8).prop_map(Value::Settings),
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
    fn settings_are_a_map_and_nothing_else() {
        let decoded = |extension: &[u8]| {
            let tree = [&[0xc7, extension.len() as u8, SETTINGS as u8], extension].concat();
            let payload = [&(tree.len() as u64).to_le_bytes()[..], &tree].concat();
            decode(&payload).map_err(|error| error.to_string())
        };
        let map = Value::Settings(vec![("k".into(), Value::Int(1))]);
        assert_eq!(decoded(&[0x81, 0xa1, b'k', 1]).unwrap(), map);
        assert!(decoded(&[0x80, 1]).unwrap_err().contains("after the map"));
        for no_map in [&[][..], &[0x90], &[0xc7, 1, 3, 0x80]] {
            assert!(
                decoded(no_map).unwrap_err().contains("no map"),
                "{no_map:?}"
            );
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
        let deep = (0..MAX_DEPTH + 1).fold(Value::Nil, |inner, _| {
            Value::<Vec<u8>>::Settings(vec![("a".into(), inner)])
        });
        assert!(encode(&deep).is_err());
        let lying = [0xdd, 0xff, 0xff, 0xff, 0xff].repeat(MAX_DEPTH);
        let lying = [&(lying.len() as u64).to_le_bytes()[..], &lying].concat();
        assert!(decode(&lying).unwrap_err().to_string().contains("early"));
    }
}
