//! Metadata of a message: optional fields between the header and the payload.
//!
//! A field is a `u16` key, a `u16` zero, a `u32` length and as many bytes. Key 0 or the end of the
//! metadata ends the fields; zeros pad the metadata to a multiple of 64 bytes. A release skips
//! unknown fields by their length, but refuses an array whose element type is unknown.
//!
//! | key | field | bytes |
//! | --- | ----- | ----- |
//! | 1 | array layout | u8 dtype, u8 order, u8 memory kind, u8 rank, 4 × 0, rank × u64 extents |
//! | 2 | index names | per dimension: u16 length, UTF-8 |
//! | 3 | structure | u8 version of the structure encoding (1) |
//! | 4 | slot | u32 slot, u32 number of slots of the sending port |
//! | 5 | overlay | u32 number of the settings overlay in force (0: none) |
//! | 6 | overlay definition | u32 number, MessagePack map of settings |
//! | 7 | coding | u8 codec (1: zstd), u64 length before the codec; one field per codec, in the order applied |
//! | 8 | iteration | u32 number of the step in each timeline around the message, the outermost first |
//! | 9 | supersedes | u64 sequence number of the first message that this message replaces, unless already taken |
//! | 10 | over | as 8: no message of this iteration or of an iteration within follows; the message carries nothing |
//! | 11 | field | none: the message says that a field follows from rank to rank, or why no field follows |
//!
//! A message with neither layout nor structure carries nil.

use smallvec::SmallVec;
pub use titin_element::{Dtype, ElementKind, ElementValue};

use crate::{Malformed, padded};

/// Most dimensions of an array.
pub const MAX_RANK: usize = 32;

/// The index that varies fastest in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum StorageOrder {
    /// The last index, as in C and NumPy.
    #[default]
    C = 0,
    /// The first index, as in Fortran.
    Fortran = 1,
}

/// The extents of an array; up to four extents need no memory from the heap.
pub type Shape = SmallVec<[u64; 4]>;

/// The layout of an array, whose elements are the payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// Element type.
    pub dtype: Dtype,
    /// Storage order.
    pub order: StorageOrder,
    /// Extent of each dimension; empty for a single value.
    pub shape: Shape,
    /// Name of each dimension, or empty.
    pub names: Vec<String>,
}

/// The layout of an array, with extents and names that the caller keeps.
#[derive(Debug, Clone, Copy)]
pub struct LayoutRef<'a> {
    /// Element type.
    pub dtype: Dtype,
    /// Storage order.
    pub order: StorageOrder,
    /// Extent of each dimension; empty for a single value.
    pub shape: &'a [u64],
    /// Name of each dimension, or empty.
    pub names: &'a [String],
}

impl LayoutRef<'_> {
    /// Whether the two layouts are equal.
    #[inline(always)]
    pub fn is(&self, layout: &Layout) -> bool {
        // Shapes are short: to compare them here takes less than a call.
        let shape = || self.shape.iter().eq(layout.shape.iter());
        self.dtype == layout.dtype
            && self.order == layout.order
            && shape()
            && *self.names == layout.names
    }

    /// Number of elements, or `None` beyond 64 bits.
    #[inline(always)]
    pub fn elements(&self) -> Option<u64> {
        let product = self
            .shape
            .iter()
            .try_fold(1u64, |product, extent| product.checked_mul(*extent));
        // An array without elements may have any other extents.
        product.or_else(|| self.shape.contains(&0).then_some(0))
    }

    /// Bytes of payload, or `None` beyond 64 bits. An array without elements is also refused if the
    /// extents other than 0 make more bytes than a signed number of 64 bits holds: NumPy has no
    /// such array.
    #[inline(always)]
    pub fn bytes(&self) -> Option<u64> {
        let bytes = self.elements()?.checked_mul(self.dtype.size() as u64)?;
        (bytes > 0 || self.is_ordinary()).then_some(bytes)
    }

    #[cold]
    fn is_ordinary(&self) -> bool {
        let mut others = self.shape.iter().filter(|extent| **extent > 0);
        let bytes = others.try_fold(self.dtype.size() as u64, |bytes, extent| {
            bytes.checked_mul(*extent)
        });
        bytes.is_some_and(|bytes| i64::try_from(bytes).is_ok())
    }

    /// Checks that there is an index name for each dimension or none at all, and that the names can
    /// be written.
    ///
    /// # Errors
    /// [`Malformed`] for a wrong number of names, and for a name that cannot be written.
    pub fn check_names(&self) -> Result<(), Malformed> {
        let (names, rank) = (self.names, self.shape.len());
        if !names.is_empty() && names.len() != rank {
            let why = format!("{} index names for an array of rank {rank}", names.len());
            return Err(Malformed::new("index names", why));
        }
        for name in names {
            if name.len() > usize::from(u16::MAX) {
                let why = format!("one of {} bytes, at most {}", name.len(), u16::MAX);
                return Err(Malformed::new("index names", why));
            }
            // As names in structures: C would take two names for one.
            if name.contains('\0') {
                return Err(Malformed::new(
                    "index names",
                    format!("{name:?} has a character 0 in it"),
                ));
            }
        }
        Ok(())
    }

    /// A copy.
    pub fn to_layout(&self) -> Layout {
        Layout {
            names: self.names.to_vec(),
            ..Layout::new(self.dtype, self.order, self.shape)
        }
    }
}

impl<'a> From<&'a Layout> for LayoutRef<'a> {
    fn from(layout: &'a Layout) -> Self {
        let Layout {
            dtype,
            order,
            shape,
            names,
        } = layout;
        LayoutRef {
            dtype: *dtype,
            order: *order,
            shape,
            names,
        }
    }
}

impl Layout {
    /// An array without index names.
    pub fn new(dtype: Dtype, order: StorageOrder, shape: impl AsRef<[u64]>) -> Self {
        Layout {
            dtype,
            order,
            shape: Shape::from_slice(shape.as_ref()),
            names: Vec::new(),
        }
    }

    /// Number of elements, or `None` beyond 64 bits.
    pub fn elements(&self) -> Option<u64> {
        LayoutRef::from(self).elements()
    }

    /// Bytes of payload; see [`LayoutRef::bytes`].
    pub fn bytes(&self) -> Option<u64> {
        LayoutRef::from(self).bytes()
    }

    /// Appends dtype, order, memory kind, rank and extents.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        const HOST: u8 = 0;
        out.extend_from_slice(&[
            self.dtype as u8,
            self.order as u8,
            HOST,
            self.shape.len() as u8,
            0,
            0,
            0,
            0,
        ]);
        self.shape
            .iter()
            .for_each(|extent| out.extend_from_slice(&extent.to_le_bytes()));
    }

    /// Appends the index names.
    pub(crate) fn write_names(&self, out: &mut Vec<u8>) {
        for name in &self.names {
            out.extend_from_slice(&(name.len() as u16).to_le_bytes());
            out.extend_from_slice(name.as_bytes());
        }
    }

    /// Reads a layout as [`Layout::write`] writes it; returns the layout and the rest of the bytes.
    pub(crate) fn read(bytes: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        let wrong = |why: String| Malformed::new("array layout", why);
        let (fixed, rest) = bytes
            .split_first_chunk::<8>()
            .ok_or_else(|| wrong("too short".into()))?;
        let [number, order, memory, rank, ..] = *fixed;
        let dtype =
            Dtype::from_number(number).ok_or_else(|| wrong(format!("unknown dtype {number}")))?;
        let order = match order {
            0 => StorageOrder::C,
            1 => StorageOrder::Fortran,
            order => return Err(wrong(format!("unknown order {order}"))),
        };
        if memory != 0 {
            return Err(wrong(format!(
                "memory kind {memory}: the array is in a device's memory, which this release does not receive"
            )));
        }
        let rank = usize::from(rank);
        if rank > MAX_RANK || rest.len() < 8 * rank {
            return Err(wrong(format!("rank {rank}")));
        }
        let (extents, rest) = rest.split_at(8 * rank);
        let shape = extents
            .chunks_exact(8)
            .map(|b| u64::from_le_bytes(b.try_into().expect("eight bytes")))
            .collect();
        let layout = Layout {
            dtype,
            order,
            shape,
            names: Vec::new(),
        };
        layout
            .bytes()
            .ok_or_else(|| wrong("extents beyond 64 bits".into()))?;
        Ok((layout, rest))
    }

    /// Reads the index names, one per dimension.
    pub(crate) fn read_names(&mut self, mut bytes: &[u8]) -> Result<(), Malformed> {
        let wrong = || Malformed::new("index names", "they do not fit the array's rank");
        self.names.clear();
        for _ in 0..self.shape.len() {
            let (length, rest) = bytes.split_first_chunk::<2>().ok_or_else(wrong)?;
            let length = usize::from(u16::from_le_bytes(*length));
            let (name, rest) = rest.split_at_checked(length).ok_or_else(wrong)?;
            self.names
                .push(std::str::from_utf8(name).map_err(|_| wrong())?.to_owned());
            bytes = rest;
        }
        LayoutRef::from(&*self).check_names()
    }
}

/// The most slots of a port.
pub const MAX_SLOTS: u32 = 1 << 20;

/// A codec that was applied to a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codec {
    /// Zstandard.
    Zstd,
}

/// The kind of payload.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Content {
    /// Nothing.
    #[default]
    Nil,
    /// The elements of an array.
    Array(Layout),
    /// A structure; see [`crate::structure`].
    Structure,
}

/// The fields of the metadata.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Meta {
    /// The kind of payload.
    pub content: Content,
    /// Slot and number of slots, for a port whose number of slots is set at run time.
    pub slot: Option<(u32, u32)>,
    /// Number of the settings overlay in force on this conduit; 0 is none.
    pub overlay: u32,
    /// The overlay with this number, if the overlay is new on this conduit.
    pub definition: Option<Vec<u8>>,
    /// The codecs applied to the payload, in this order, each with the length of the payload
    /// before.
    pub codings: Vec<(Codec, u64)>,
    /// The step of each timeline around the message, the outermost first; only if a filter of the
    /// run needs the steps.
    pub iteration: Option<Vec<u32>>,
    /// The first message on this conduit that this message replaces, with all messages between. A
    /// replaced message that was not taken yet may never arrive.
    pub supersedes: Option<u64>,
    /// The message carries nothing, but says that no message of this iteration or of an iteration
    /// within follows.
    pub over: Option<Vec<u32>>,
    /// The message says that a field follows, or why no field follows.
    pub field: bool,
}

const LAYOUT: u16 = 1;
const NAMES: u16 = 2;
const STRUCTURE: u16 = 3;
const SLOT: u16 = 4;
const OVERLAY: u16 = 5;
const DEFINITION: u16 = 6;
const CODING: u16 = 7;
const ITERATION: u16 = 8;
const SUPERSEDES: u16 = 9;
const OVER: u16 = 10;
const FIELD: u16 = 11;

/// The most timelines around a message.
pub const MAX_DEPTH: usize = 64;

impl Meta {
    /// The bytes, padded; empty for a nil message without any field.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.write_content(&mut out);
        if let Some((slot, slots)) = self.slot {
            field(&mut out, SLOT, |out| write_numbers(out, &[slot, slots]));
        }
        self.write_overlay(&mut out);
        for (Codec::Zstd, length) in &self.codings {
            field(&mut out, CODING, |out| {
                out.push(1);
                out.extend_from_slice(&length.to_le_bytes());
            });
        }
        for (key, steps) in [(ITERATION, &self.iteration), (OVER, &self.over)] {
            if let Some(steps) = steps {
                field(&mut out, key, |out| write_numbers(out, steps));
            }
        }
        if let Some(first) = self.supersedes {
            field(&mut out, SUPERSEDES, |out| {
                out.extend_from_slice(&first.to_le_bytes())
            });
        }
        if self.field {
            field(&mut out, FIELD, |_| ());
        }
        out.resize(padded(out.len()), 0);
        out
    }

    fn write_content(&self, out: &mut Vec<u8>) {
        match &self.content {
            Content::Nil => {}
            Content::Array(layout) => {
                field(out, LAYOUT, |out| layout.write(out));
                if !layout.names.is_empty() {
                    field(out, NAMES, |out| layout.write_names(out));
                }
            }
            Content::Structure => field(out, STRUCTURE, |out| out.push(1)),
        }
    }

    fn write_overlay(&self, out: &mut Vec<u8>) {
        if self.overlay != 0 {
            field(out, OVERLAY, |out| write_numbers(out, &[self.overlay]));
        }
        if let Some(definition) = &self.definition {
            field(out, DEFINITION, |out| {
                write_numbers(out, &[self.overlay]);
                out.extend_from_slice(definition);
            });
        }
    }

    /// Reads the fields of a message with `total` bytes of payload.
    ///
    /// # Errors
    /// [`Malformed`] if a field does not hold together or an array's extents contradict the
    /// payload's length.
    pub fn decode(mut bytes: &[u8], total: u64) -> Result<Self, Malformed> {
        let mut meta = Meta::default();
        while let Some((key, value, rest)) = next_field(bytes)? {
            bytes = rest;
            meta.read_field(key, value)?;
        }
        if meta.codings.len() > 4 {
            return Err(Malformed::new(
                "coding",
                "more than four codecs on one payload",
            ));
        }
        meta.check(total)?;
        Ok(meta)
    }

    /// Reads a field. Unknown fields are skipped.
    fn read_field(&mut self, key: u16, value: &[u8]) -> Result<(), Malformed> {
        match key {
            LAYOUT => self.content = Content::Array(Layout::read(value)?.0),
            NAMES => self.read_names(value)?,
            STRUCTURE if value.first() == Some(&1) => self.content = Content::Structure,
            STRUCTURE => {
                let why = "unknown version of its encoding";
                return Err(Malformed::new("structure", why));
            }
            SLOT => self.slot = Some(read_slot(value)?),
            OVERLAY => self.overlay = word(value, 0)?,
            DEFINITION => {
                self.overlay = word(value, 0)?;
                self.definition = Some(value[4..].to_vec());
            }
            CODING => self.codings.push(read_coding(value)?),
            ITERATION => self.iteration = Some(steps(value)?),
            OVER => self.over = Some(steps(value)?),
            FIELD => self.field = true,
            SUPERSEDES => {
                let wrong = |_| Malformed::new("supersedes", "it is no sequence number");
                self.supersedes = Some(u64::from_le_bytes(value.try_into().map_err(wrong)?));
            }
            _ => {}
        }
        Ok(())
    }

    /// Reads the index names of the array.
    fn read_names(&mut self, value: &[u8]) -> Result<(), Malformed> {
        match &mut self.content {
            Content::Array(layout) => layout.read_names(value),
            _ => {
                let why = "they do not follow an array's layout";
                Err(Malformed::new("index names", why))
            }
        }
    }

    /// Checks that a payload of `total` bytes fits the metadata.
    ///
    /// # Errors
    /// [`Malformed`] if the payload does not fit.
    pub fn check(&self, total: u64) -> Result<(), Malformed> {
        let plain = self.codings.first().map_or(total, |(_, length)| *length);
        match &self.content {
            Content::Array(layout) if layout.bytes() != Some(plain) => Err(Malformed::new(
                "array layout",
                format!(
                    "an array of {:?} {} in {plain} bytes",
                    layout.shape,
                    layout.dtype.name()
                ),
            )),
            Content::Nil if plain != 0 => Err(Malformed::new(
                "metadata",
                "a payload that nothing describes",
            )),
            _ => Ok(()),
        }
    }
}

fn field(out: &mut Vec<u8>, key: u16, write: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(&key.to_le_bytes());
    out.extend_from_slice(&[0; 6]);
    let start = out.len();
    write(out);
    let length = (out.len() - start) as u32;
    out[start - 4..start].copy_from_slice(&length.to_le_bytes());
}

fn write_numbers(out: &mut Vec<u8>, numbers: &[u32]) {
    numbers
        .iter()
        .for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
}

/// Reads a slot and the number of slots.
fn read_slot(value: &[u8]) -> Result<(u32, u32), Malformed> {
    let (slot, slots) = (word(value, 0)?, word(value, 4)?);
    if slot >= slots || slots > MAX_SLOTS {
        return Err(Malformed::new("slot", format!("{slot} of {slots}")));
    }
    Ok((slot, slots))
}

/// Reads a codec and the length of the payload before the codec was applied.
fn read_coding(value: &[u8]) -> Result<(Codec, u64), Malformed> {
    match value {
        [1, length @ ..] if length.len() == 8 => {
            let length = u64::from_le_bytes(length.try_into().expect("eight bytes"));
            Ok((Codec::Zstd, length))
        }
        _ => Err(Malformed::new(
            "coding",
            "a codec that this release does not know",
        )),
    }
}

type Field<'a> = (u16, &'a [u8], &'a [u8]);

fn next_field(bytes: &[u8]) -> Result<Option<Field<'_>>, Malformed> {
    let Some((head, rest)) = bytes.split_first_chunk::<8>() else {
        return Ok(None);
    };
    let key = u16::from_le_bytes([head[0], head[1]]);
    if key == 0 {
        return Ok(None);
    }
    let length = u32::from_le_bytes([head[4], head[5], head[6], head[7]]) as usize;
    let (value, rest) = rest.split_at_checked(length).ok_or_else(|| {
        Malformed::new(
            "metadata",
            format!("field {key} of {length} bytes passes the end"),
        )
    })?;
    Ok(Some((key, value, rest)))
}

fn steps(bytes: &[u8]) -> Result<Vec<u32>, Malformed> {
    if !bytes.len().is_multiple_of(4) || bytes.len() > 4 * MAX_DEPTH {
        return Err(Malformed::new(
            "iteration",
            format!("{} bytes", bytes.len()),
        ));
    }
    Ok(bytes
        .chunks_exact(4)
        .map(|b| u32::from_le_bytes(b.try_into().expect("four bytes")))
        .collect())
}

fn word(bytes: &[u8], at: usize) -> Result<u32, Malformed> {
    let bytes = bytes
        .get(at..at + 4)
        .ok_or_else(|| Malformed::new("metadata", "a field is too short"))?;
    Ok(u32::from_le_bytes(bytes.try_into().expect("four bytes")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn example() -> Meta {
        Meta {
            content: Content::Array(Layout {
                dtype: Dtype::Float64,
                order: StorageOrder::Fortran,
                shape: Shape::from_slice(&[2, 3]),
                names: vec!["x".into(), "größe".into()],
            }),
            slot: Some((4, 10)),
            overlay: 3,
            definition: Some(vec![0x80]),
            codings: vec![(Codec::Zstd, 48)],
            iteration: Some(vec![3, 0, u32::MAX]),
            supersedes: Some(u64::MAX),
            over: Some(vec![]),
            field: true,
        }
    }

    #[test]
    fn every_field_survives() {
        let bytes = example().encode();
        assert_eq!(bytes.len() % crate::ALIGNMENT, 0);
        assert_eq!(Meta::decode(&bytes, 17).unwrap(), example());
        assert!(Meta::default().encode().is_empty());
    }

    #[test]
    fn unknown_fields_are_skipped() {
        let mut bytes = Vec::new();
        field(&mut bytes, 999, |out| {
            out.extend_from_slice(b"from a later release")
        });
        bytes.extend_from_slice(&example().encode());
        assert_eq!(Meta::decode(&bytes, 17).unwrap(), example());
    }

    #[test]
    fn an_array_must_fill_its_payload() {
        let meta = Meta {
            content: Content::Array(Layout::new(Dtype::Int32, StorageOrder::C, [3])),
            ..Meta::default()
        };
        assert!(Meta::decode(&meta.encode(), 12).is_ok());
        let error = Meta::decode(&meta.encode(), 13).unwrap_err().to_string();
        assert!(error.contains("int32") && error.contains("13"), "{error}");
        assert!(Meta::decode(&[], 1).is_err());
    }

    #[test]
    fn extents_that_overflow_are_refused() {
        let meta = Meta {
            content: Content::Array(Layout::new(Dtype::Int32, StorageOrder::C, [u64::MAX, 2])),
            ..Meta::default()
        };
        assert!(Meta::decode(&meta.encode(), 0).is_err());
        let bytes = |dtype, shape: &[u64]| Layout::new(dtype, StorageOrder::C, shape).bytes();
        assert_eq!(bytes(Dtype::Int32, &[1 << 50, 0, 7]), Some(0));
        assert_eq!(bytes(Dtype::Int8, &[i64::MAX as u64, 0]), Some(0));
        for (dtype, shape) in [
            (Dtype::Float64, [i64::MAX as u64, 0]),
            (Dtype::Int8, [0, 1 << 63]),
            (Dtype::Int32, [u64::MAX, 0]),
        ] {
            assert_eq!(bytes(dtype, &shape), None, "{shape:?}");
            let meta = Meta {
                content: Content::Array(Layout::new(dtype, StorageOrder::C, shape)),
                ..Meta::default()
            };
            assert!(Meta::decode(&meta.encode(), 0).is_err());
        }
        assert_eq!(bytes(Dtype::Int8, &[1 << 32, 1 << 32, 0]), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200), total: u64) {
            let _ = Meta::decode(&bytes, total);
        }

        #[test]
        fn damaged_bytes_are_read_or_refused(at in 0usize..128, value: u8) {
            let mut bytes = example().encode();
            let at = at % bytes.len();
            bytes[at] = value;
            let _ = Meta::decode(&bytes, 17);
        }
    }
}
