//! Values: trees of maps, lists, text, bytes, numbers, arrays and nil, for C to build and read.

mod new;
pub(crate) mod read;

use std::ffi::c_int;
use std::ops::Range;

use titin_runtime::structure::{self, Value as Plain};
use titin_runtime::{
    Dtype, ElementValue, Error, Kind, Layout, Overlay, Result, Setting, SharedBuffer,
};

use crate::elements::{self, Elements};
use crate::error::usage;
use crate::number;
use crate::text::Text;

/// A node of a tree.
pub struct Value(pub(crate) Node);

pub(crate) enum Node {
    Nil,
    Bool(bool),
    Int(i64),
    UInt(u64),
    Float(f64),
    Float32(f32),
    Text(Text),
    Bytes(Elements),
    Array(Array),
    #[allow(
        clippy::vec_box,
        reason = "pointers to entries must stay while the list grows"
    )]
    List(Vec<Box<Value>>),
    Map(Entries),
    /// A map that is marked as settings.
    Settings(Entries),
}

/// The entries of a map, in order.
pub(crate) type Entries = Vec<(Text, Box<Value>)>;

/// An array, with the index names for C.
pub(crate) struct Array {
    pub(crate) layout: Layout,
    pub(crate) names: Vec<Text>,
    pub(crate) data: Elements,
}

impl Array {
    pub(crate) fn new(layout: Layout, data: Elements) -> Self {
        let names = layout.names.iter().map(Text::new).collect();
        Array {
            layout,
            names,
            data,
        }
    }
}

impl Value {
    /// The number of the kind in the header.
    pub(crate) fn kind(&self) -> c_int {
        match &self.0 {
            Node::Nil => 1,
            Node::Bool(_) => 2,
            Node::Int(_) => 3,
            Node::UInt(_) => 4,
            Node::Float(_) | Node::Float32(_) => 5,
            Node::Text(_) => 6,
            Node::Bytes(_) => 7,
            Node::Array(_) => 8,
            Node::List(_) => 9,
            Node::Map(_) | Node::Settings(_) => 10,
        }
    }

    /// The value in a few words, for errors.
    pub(crate) fn summary(&self) -> String {
        match &self.0 {
            Node::Nil => "nil".into(),
            Node::Bool(flag) => format!("the bool {flag}"),
            Node::Int(number) => format!("the whole number {number}"),
            Node::UInt(number) => format!("the whole number {number}"),
            Node::Float(number) => format!("the real number {number:?}"),
            Node::Float32(number) => format!("the real number {number:?}"),
            Node::Text(_) => "text".into(),
            Node::Bytes(_) => "bytes".into(),
            Node::Array(array) => {
                let shown = elements::shown(array.layout.dtype, &array.layout.shape);
                match self.number() {
                    Some(number) => format!("an array of {shown}: {number}"),
                    None => format!("an array of {shown}"),
                }
            }
            Node::List(items) => format!("a list of {}", items.len()),
            Node::Map(entries) => format!("a map of {}", entries.len()),
            Node::Settings(entries) => format!("a map of {} settings", entries.len()),
        }
    }

    /// A received tree. The tree's arrays are ranges of the payload.
    pub(crate) fn received(plain: Plain<Range<usize>>, payload: &SharedBuffer) -> Self {
        Value(match plain {
            Plain::Nil => Node::Nil,
            Plain::Bool(flag) => Node::Bool(flag),
            Plain::Int(number) => Node::Int(number),
            Plain::UInt(number) => Node::UInt(number),
            Plain::Float(number) => Node::Float(number),
            Plain::Float32(number) => Node::Float32(number),
            Plain::Text(text) => Node::Text(Text::new(text)),
            Plain::Bytes(range) => Node::Bytes(Elements::Shared(payload.clone(), range)),
            Plain::Array(layout, range) => {
                Node::Array(Array::new(layout, Elements::Shared(payload.clone(), range)))
            }
            Plain::List(items) => {
                let items = items.into_iter();
                let items = items.map(|item| Box::new(Value::received(item, payload)));
                Node::List(items.collect())
            }
            Plain::Map(entries) => Node::Map(received_entries(entries, payload)),
            Plain::Settings(entries) => Node::Settings(received_entries(entries, payload)),
        })
    }

    /// The tree in the runtime's form, for sending.
    pub(crate) fn plain(&self) -> Plain<&[u8]> {
        match &self.0 {
            Node::Nil => Plain::Nil,
            Node::Bool(flag) => Plain::Bool(*flag),
            Node::Int(number) => Plain::Int(*number),
            Node::UInt(number) => Plain::UInt(*number),
            Node::Float(number) => Plain::Float(*number),
            Node::Float32(number) => Plain::Float32(*number),
            Node::Text(text) => Plain::Text(text.as_str().to_owned()),
            Node::Bytes(data) => Plain::Bytes(data.as_ref()),
            Node::Array(array) => Plain::Array(array.layout.clone(), array.data.as_ref()),
            Node::List(items) => Plain::List(items.iter().map(|item| item.plain()).collect()),
            Node::Map(entries) => Plain::Map(plain_entries(entries)),
            Node::Settings(entries) => Plain::Settings(plain_entries(entries)),
        }
    }

    /// The entries, if the value is a map, marked or not.
    pub(crate) fn entries(&self) -> Option<&Entries> {
        match &self.0 {
            Node::Map(entries) | Node::Settings(entries) => Some(entries),
            _ => None,
        }
    }

    /// A map from names to values.
    pub(crate) fn map<'a>(entries: impl IntoIterator<Item = (&'a str, Value)>) -> Self {
        Value(Node::Map(
            entries
                .into_iter()
                .map(|(name, item)| (Text::new(name), Box::new(item)))
                .collect(),
        ))
    }

    pub(crate) fn float(number: f64) -> Self {
        Value(Node::Float(number))
    }

    pub(crate) fn floats(numbers: &[f64]) -> Self {
        Value::list(numbers.iter().map(|number| Value::float(*number)))
    }

    fn list(items: impl Iterator<Item = Value>) -> Self {
        Value(Node::List(items.map(Box::new).collect()))
    }

    pub(crate) fn setting(setting: &Setting) -> Self {
        match setting {
            Setting::Bool(flag) => Value(Node::Bool(*flag)),
            Setting::Int(number) => Value(Node::Int(*number)),
            Setting::Float(number) => Value(Node::Float(*number)),
            Setting::Str(text) => Value(Node::Text(Text::new(text))),
            Setting::Ints(numbers) => {
                Value::list(numbers.iter().map(|number| Value(Node::Int(*number))))
            }
            Setting::Floats(numbers) => Value::floats(numbers),
            Setting::Table(rows) => Value::list(rows.iter().map(|row| Value::floats(row))),
        }
    }

    pub(crate) fn overlay(overlay: &Overlay) -> Self {
        Value::map(
            overlay
                .iter()
                .map(|(name, setting)| (name.as_str(), Value::setting(setting))),
        )
    }

    /// The map as a settings overlay.
    pub(crate) fn to_overlay(&self) -> Result<Overlay> {
        titin_runtime::overlay_of(&self.plain()).map_err(|why| {
            usage(format!(
                "a settings overlay is a map from names of settings to values; {why}"
            ))
        })
    }

    /// The depth of nesting.
    pub(crate) fn depth(&self) -> usize {
        let deepest = match &self.0 {
            Node::List(items) => items.iter().map(|item| item.depth()).max(),
            _ => {
                let entries = self.entries().into_iter().flatten();
                entries.map(|(_, item)| item.depth()).max()
            }
        };
        deepest.map_or(0, |depth| depth + 1)
    }

    /// The number, if the value is a number; an array of rank 0 is a number too.
    pub(crate) fn number(&self) -> Option<ElementValue> {
        match &self.0 {
            Node::Bool(flag) => Some(ElementValue::Bool(*flag)),
            Node::Int(number) => Some(ElementValue::Whole((*number).into())),
            Node::UInt(number) => Some(ElementValue::Whole((*number).into())),
            Node::Float(number) => Some(ElementValue::Real(*number)),
            Node::Float32(number) => Some(ElementValue::Real((*number).into())),
            Node::Array(array) if array.layout.shape.is_empty() => {
                number::read(array.layout.dtype, array.data.as_ref())
            }
            _ => None,
        }
    }

    /// The array, if the value is an array.
    pub(crate) fn array(&self) -> Option<&Array> {
        match &self.0 {
            Node::Array(array) => Some(array),
            _ => None,
        }
    }

    pub(crate) fn mismatch(&self, wanted: &str) -> Error {
        Error::new(
            Kind::TypeMismatch,
            format!("expected {wanted}, the value is {}", self.summary()),
        )
    }
}

fn received_entries(
    entries: Vec<(String, Plain<Range<usize>>)>,
    payload: &SharedBuffer,
) -> Entries {
    let entry =
        |(name, item): (String, _)| (Text::new(name), Box::new(Value::received(item, payload)));
    entries.into_iter().map(entry).collect()
}

fn plain_entries(entries: &Entries) -> Vec<(String, Plain<&[u8]>)> {
    let entries = entries.iter();
    entries
        .map(|(name, item)| (name.as_str().to_owned(), item.plain()))
        .collect()
}

/// Encodes a tree, or fails with the reason.
pub(crate) fn encode<'a>(plain: &'a Plain<&'a [u8]>) -> Result<structure::Encoded<'a>> {
    structure::encode(plain).map_err(|error| usage(format!("the value cannot be sent: {error}")))
}

#[unsafe(no_mangle)]
extern "C" fn titin_dtype_size(dtype: c_int) -> c_int {
    find(dtype).map_or(0, |dtype| dtype.size() as c_int)
}

#[unsafe(no_mangle)]
extern "C" fn titin_dtype_name(dtype: c_int) -> *const std::ffi::c_char {
    find(dtype).map_or(std::ptr::null(), |dtype| dtype.c_name().as_ptr())
}

/// # Safety
/// `name` is NULL or ends with a NUL.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_dtype_find(name: *const std::ffi::c_char) -> c_int {
    // SAFETY: as the caller promises.
    let name = unsafe { crate::input::optional_text(name, "dtype") }
        .ok()
        .flatten();
    name.and_then(Dtype::from_name)
        .map_or(0, |dtype| dtype as c_int)
}

fn find(dtype: c_int) -> Option<Dtype> {
    u8::try_from(dtype).ok().and_then(Dtype::from_number)
}
