//! JSON lines: a message of any kind in each line.
//!
//! A line is `{"timestamp": 0.5, "next_timestamp": 1.0, "settings": {...}, "data": ...}`. All but
//! `data` may be left out. For data beyond JSON, a line has a map with a key that begins with `$`:
//!
//! - An array is `{"$array": "float64", "shape": [2, 3], "order": "F", "names": ["x", "y"],
//!   "values": [1.0, ...]}`, with the values in the order of storage. The default of `order` is C,
//!   and the default of `names` is empty. Complex numbers are two values each, true and false are 1
//!   and 0.
//! - Bytes are `{"$bytes": "00ff"}`, in hexadecimal digits.
//! - NaN and infinite numbers are `{"$float": "nan"}`, `inf` or `-inf`; within arrays, the text
//!   alone.

use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde::ser::{Error as _, Serialize, SerializeMap, SerializeSeq, Serializer};
use titin_runtime::{Dtype, ElementValue, Layout, Overlay, StorageOrder};

use super::output::Output;
use super::{FileRecord, MessageWriter, NextTimestamp, RecordError, RecordPosition, RecordReader};
use crate::data::{MessageMeta, Value, View, describe};
use crate::element_text::{self, NumberError};
use crate::error::OnFile;
use crate::{Error, Result};

/// Reads a file line by line.
pub(super) struct LinesReader {
    path: PathBuf,
    stream: BufReader<File>,
    line: u64,
    text: String,
}

impl LinesReader {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).on_file(path, "open")?;
        let stream = BufReader::with_capacity(1 << 16, file);
        Ok(LinesReader {
            path: path.to_owned(),
            stream,
            line: 0,
            text: String::new(),
        })
    }
}

impl LinesReader {
    /// Reads the next line with text. Returns whether there is such a line.
    fn read_line(&mut self) -> Result<bool> {
        loop {
            self.text.clear();
            self.line += 1;
            let read = self.stream.read_line(&mut self.text);
            if read.on_file(&self.path, "read")? == 0 {
                return Ok(false);
            }
            if !self.text.trim().is_empty() {
                return Ok(true);
            }
        }
    }
}

impl RecordReader for LinesReader {
    fn next(&mut self) -> Result<Option<FileRecord>> {
        if !self.read_line()? {
            return Ok(None);
        }
        let record = parse_line(&self.text);
        let record = record.map_err(|why| Error::line(&self.path, self.line, why))?;
        Ok(Some(FileRecord {
            place: RecordPosition::Line(self.line),
            ..record
        }))
    }
}

fn parse_line(text: &str) -> Result<FileRecord, RecordError> {
    let value: JsonValue = serde_json::from_str(text).map_err(|error| {
        // For `error`, the whole text is line 1, so the line number in `error` means nothing.
        let why = error.to_string();
        let (why, _) = why.split_once(" at line").unwrap_or((&why, ""));
        RecordError::new(format!("{why}, at column {}", error.column()))
    })?;
    check_numbers(text)?;
    record(value.0)
}

/// Writes a file line by line.
pub(super) struct LinesWriter {
    file: Output,
}

impl LinesWriter {
    pub(super) fn new(path: &Path) -> Self {
        LinesWriter {
            file: Output::new(path),
        }
    }
}

impl MessageWriter for LinesWriter {
    fn write(&mut self, value: &View<'_>, meta: &MessageMeta) -> Result<()> {
        let mut line = serde_json::to_vec(&WrittenLine { value, meta }).map_err(|error| {
            Error::file(
                self.file.path(),
                format!("the message cannot be written: {error}"),
            )
        })?;
        line.push(b'\n');
        self.file.append(&line)
    }

    fn pause(&mut self) {
        self.file.pause();
    }
}

/// Refuses whole numbers beyond 64 bits in a line of valid JSON. The parser turns such numbers into
/// real numbers.
fn check_numbers(line: &str) -> Result<(), NumberError> {
    let (mut is_text, mut is_escaped) = (false, false);
    // Splits after each character that can end a number, and after quotes.
    line.split_inclusive(|c: char| {
        matches!(c, '"' | '\\' | ',' | ':' | '[' | ']' | '{' | '}') || c.is_whitespace()
    })
    .try_for_each(|piece| {
        let escaped = std::mem::take(&mut is_escaped) && piece.len() == 1;
        if !is_text {
            let word = piece.trim_end_matches(|c: char| !c.is_ascii_digit());
            element_text::check_whole(word)?;
        }
        match piece.as_bytes().last() {
            Some(b'"') if !escaped => is_text = !is_text,
            Some(b'\\') if !escaped => is_escaped = true,
            _ => {}
        }
        Ok(())
    })
}

const LINE_FORM: &str = r#"a line is {"timestamp": 0.5, "next_timestamp": 1.0, "data": ...}"#;

/// The record in a line.
fn record(line: Value) -> Result<FileRecord, RecordError> {
    let Value::Map(entries) = line else {
        let found = describe(&line);
        return Err(RecordError::new(format!("found {found}; {LINE_FORM}")));
    };
    let mut record = FileRecord {
        value: Value::Nil,
        timestamp: None,
        next: NextTimestamp::Follows,
        settings: None,
        place: RecordPosition::Line(0),
    };
    for (name, value) in entries {
        match name.as_str() {
            "timestamp" => record.timestamp = Some(time(&name, &value)?),
            "next_timestamp" if value == Value::Nil => record.next = NextTimestamp::Known(None),
            "next_timestamp" => record.next = NextTimestamp::Known(Some(time(&name, &value)?)),
            "settings" => record.settings = Some(settings(&value)?),
            "data" => record.value = unmarked(value)?,
            _ => {
                return Err(RecordError::new(format!(
                    "there is no place for '{name}'; {LINE_FORM}, and all that is data goes under \"data\""
                )));
            }
        }
    }
    Ok(record)
}

fn settings(value: &Value) -> Result<Overlay, RecordError> {
    let overlay = titin_runtime::overlay_of(value);
    overlay.map_err(|why| RecordError::new(format!("'settings': {why}")))
}

fn time(name: &str, value: &Value) -> Result<f64, RecordError> {
    let number = element_text::of(value)
        .ok_or_else(|| RecordError::new(format!("'{name}' is {}; {LINE_FORM}", describe(value))))?;
    Ok(element_text::as_f64(number))
}

/// Replaces maps with a key that begins with `$` by the data that the maps represent.
fn unmarked(value: Value) -> Result<Value, RecordError> {
    let entries = match value {
        Value::List(values) => {
            let values = values.into_iter().map(unmarked);
            return Ok(Value::List(values.collect::<Result<_, _>>()?));
        }
        Value::Map(entries) => Entries(entries),
        other => return Ok(other),
    };
    if let Some(dtype) = entries.get("$array") {
        return entries.array(dtype);
    }
    if let Some(digits) = entries.get("$bytes") {
        return bytes(digits);
    }
    if let Some(number) = entries.get("$float") {
        return real(number, "$float").map(Value::Float);
    }
    if let Some(number) = entries.get("$float32") {
        return real(number, "$float32").map(|number| Value::Float32(number as f32));
    }
    if let Some(map) = entries.get("$settings") {
        return match map {
            Value::Map(entries) => entries_unmarked(entries.clone()).map(Value::Settings),
            _ => Err(RecordError::new("\"$settings\" takes a map")),
        };
    }
    entries_unmarked(entries.0).map(Value::Map)
}

fn entries_unmarked(entries: Vec<(String, Value)>) -> Result<Vec<(String, Value)>, RecordError> {
    let entries = entries.into_iter();
    entries
        .map(|(name, value)| Ok((name, unmarked(value)?)))
        .collect()
}

fn bytes(digits: &Value) -> Result<Value, RecordError> {
    let bytes = match digits {
        Value::Text(digits) if digits.len().is_multiple_of(2) && digits.is_ascii() => {
            let pairs = (0..digits.len()).step_by(2);
            pairs
                .map(|first| u8::from_str_radix(&digits[first..first + 2], 16).ok())
                .collect::<Option<Vec<u8>>>()
        }
        _ => None,
    };
    let wrong = || RecordError::new("\"$bytes\" takes pairs of hexadecimal digits");
    bytes.map(Value::Bytes).ok_or_else(wrong)
}

/// The number behind `key`, as a number or as text.
fn real(number: &Value, key: &str) -> Result<f64, RecordError> {
    let number = match number {
        Value::Text(text) => element_text::parse(text)?,
        other => element_text::of(other),
    };
    let wrong = || {
        RecordError::new(format!(
            "\"{key}\" takes a number, \"nan\", \"inf\" or \"-inf\""
        ))
    };
    number.ok_or_else(wrong).map(element_text::as_f64)
}

/// The entries of a map.
struct Entries(Vec<(String, Value)>);

impl Entries {
    fn get(&self, name: &str) -> Option<&Value> {
        let mut entries = self.0.iter();
        let (_, value) = entries.find(|(known, _)| known == name)?;
        Some(value)
    }

    fn list(&self, name: &str) -> Result<&[Value], RecordError> {
        match self.get(name) {
            Some(Value::List(values)) => Ok(values),
            None if name == "names" => Ok(&[]),
            Some(other) => Err(RecordError::new(format!(
                "\"{name}\" of an array is {}, it should be a list",
                describe(other)
            ))),
            None => Err(RecordError::new(format!("an array has no \"{name}\""))),
        }
    }

    /// The array described by the entries.
    fn array(&self, dtype: &Value) -> Result<Value, RecordError> {
        let layout = self.layout(dtype)?;
        let dtype = layout.dtype;
        let values = self.list("values")?;
        let parts = if dtype.is_complex() { 2 } else { 1 };
        let elements = layout.elements();
        let needed = elements.and_then(|elements| elements.checked_mul(parts));
        if needed != Some(values.len() as u64) {
            return Err(RecordError::new(format!(
                "an array of shape {:?} has {} values",
                layout.shape,
                values.len()
            )));
        }
        let mut elements = Vec::with_capacity(values.len() * dtype.size());
        for value in values {
            element_text::push(array_element(value)?, dtype, &mut elements)?;
        }
        Ok(Value::Array(layout, elements))
    }

    fn layout(&self, dtype: &Value) -> Result<Layout, RecordError> {
        Ok(Layout {
            dtype: element_type(dtype)?,
            order: self.order()?,
            shape: self.shape()?.into(),
            names: self.names()?,
        })
    }

    fn order(&self) -> Result<StorageOrder, RecordError> {
        match self.get("order") {
            None => Ok(StorageOrder::C),
            Some(Value::Text(order)) if order == "C" => Ok(StorageOrder::C),
            Some(Value::Text(order)) if order == "F" => Ok(StorageOrder::Fortran),
            _ => Err(RecordError::new("\"order\" of an array is \"C\" or \"F\"")),
        }
    }

    fn shape(&self) -> Result<Vec<u64>, RecordError> {
        let extent = |value: &Value| match value {
            Value::Int(extent) => u64::try_from(*extent).ok(),
            _ => None,
        };
        let shape: Option<Vec<u64>> = self.list("shape")?.iter().map(extent).collect();
        shape.ok_or_else(|| RecordError::new("\"shape\" of an array is a list of whole numbers"))
    }

    fn names(&self) -> Result<Vec<String>, RecordError> {
        let name = |value: &Value| match value {
            Value::Text(name) => Some(name.clone()),
            _ => None,
        };
        let names: Option<Vec<String>> = self.list("names")?.iter().map(name).collect();
        names.ok_or_else(|| RecordError::new("\"names\" of an array is a list of text"))
    }
}

/// A value in the list of an array's values.
fn array_element(value: &Value) -> Result<ElementValue, RecordError> {
    let number = match value {
        Value::Text(text) => element_text::parse(text)?,
        Value::Bool(flag) => Some(ElementValue::Whole((*flag).into())),
        value => element_text::of(value),
    };
    number.ok_or_else(|| RecordError::new(format!("an array holds {}", describe(value))))
}

fn element_type(dtype: &Value) -> Result<Dtype, RecordError> {
    match dtype {
        Value::Text(name) => Dtype::from_name(name)
            .ok_or_else(|| RecordError::new(format!("there is no element type '{name}'"))),
        other => Err(RecordError::new(format!(
            "\"$array\" takes the name of an element type, found {}",
            describe(other)
        ))),
    }
}

/// A JSON value. Maps keep their order, and whole numbers differ from real numbers.
struct JsonValue(Value);

impl<'de> Deserialize<'de> for JsonValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(JsonVisitor).map(JsonValue)
    }
}

struct JsonVisitor;

impl<'de> Visitor<'de> for JsonVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Nil)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Value, E> {
        Ok(Value::Bool(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(Value::Int(number))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(i64::try_from(number).map_or(Value::UInt(number), Value::Int))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(Value::Float(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(JsonValue(value)) = seq.next_element()? {
            values.push(value);
        }
        Ok(Value::List(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut entries = Vec::new();
        while let Some((name, JsonValue(value))) = map.next_entry()? {
            entries.push((name, value));
        }
        let mut names: Vec<&String> = entries.iter().map(|(name, _)| name).collect();
        names.sort_unstable();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(twice) => Err(A::Error::custom(format!(
                "key \"{}\" is there twice",
                twice[0]
            ))),
            None => Ok(Value::Map(entries)),
        }
    }
}

/// A line to write.
struct WrittenLine<'a> {
    value: &'a View<'a>,
    meta: &'a MessageMeta,
}

impl Serialize for WrittenLine<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let MessageMeta {
            timestamp,
            next,
            settings,
        } = self.meta;
        let mut line = serializer.serialize_map(None)?;
        line.serialize_entry("timestamp", timestamp)?;
        line.serialize_entry("next_timestamp", next)?;
        if let Some(settings) = settings.as_ref().filter(|settings| !settings.is_empty()) {
            line.serialize_entry("settings", settings)?;
        }
        line.serialize_entry("data", &WrittenValue(self.value))?;
        line.end()
    }
}

/// A value to write.
struct WrittenValue<'a>(&'a View<'a>);

impl Serialize for WrittenValue<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            View::Nil => serializer.serialize_unit(),
            View::Bool(flag) => serializer.serialize_bool(*flag),
            View::Int(number) => serializer.serialize_i64(*number),
            View::UInt(number) => serializer.serialize_u64(*number),
            View::Float(number) if number.is_finite() => serializer.serialize_f64(*number),
            View::Float(number) => {
                serialize_marked(serializer, "$float", &element_text::real_text(*number))
            }
            View::Float32(number) if number.is_finite() => {
                serialize_marked(serializer, "$float32", number)
            }
            View::Float32(number) => {
                let text = element_text::real_text((*number).into());
                serialize_marked(serializer, "$float32", &text)
            }
            View::Text(text) => serializer.serialize_str(text),
            View::Bytes(bytes) => serialize_marked(serializer, "$bytes", &hexadecimal(bytes)),
            View::List(values) => serializer.collect_seq(values.iter().map(WrittenValue)),
            View::Map(entries) => serialize_map(serializer, entries),
            View::Settings(entries) => {
                serialize_marked(serializer, "$settings", &WrittenMap(entries))
            }
            View::Array(layout, elements) => serialize_array(serializer, layout, elements),
        }
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Writes a map with a single key, such as `$bytes`.
fn serialize_marked<S: Serializer, T: Serialize + ?Sized>(
    serializer: S,
    key: &'static str,
    value: &T,
) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(1))?;
    map.serialize_entry(key, value)?;
    map.end()
}

/// The entries of a map to write.
struct WrittenMap<'a>(&'a [(String, View<'a>)]);

impl Serialize for WrittenMap<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_map(serializer, self.0)
    }
}

fn serialize_map<S: Serializer>(
    serializer: S,
    entries: &[(String, View<'_>)],
) -> Result<S::Ok, S::Error> {
    if let Some((name, _)) = entries.iter().find(|(name, _)| name.starts_with('$')) {
        let why = format!(
            "its map has an entry '{name}', and what begins with '$' has a meaning in this format"
        );
        return Err(S::Error::custom(why));
    }
    let entries = entries.iter();
    serializer.collect_map(entries.map(|(name, value)| (name, WrittenValue(value))))
}

fn serialize_array<S: Serializer>(
    serializer: S,
    layout: &Layout,
    elements: &[u8],
) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    map.serialize_entry("$array", layout.dtype.name())?;
    map.serialize_entry("shape", &layout.shape[..])?;
    if layout.order == StorageOrder::Fortran {
        map.serialize_entry("order", "F")?;
    }
    if !layout.names.is_empty() {
        map.serialize_entry("names", &layout.names)?;
    }
    map.serialize_entry("values", &Elements(layout.dtype, elements))?;
    map.end()
}

/// The elements of an array to write.
struct Elements<'a>(Dtype, &'a [u8]);

impl Serialize for Elements<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut seq = serializer.serialize_seq(None)?;
        for number in element_text::read(self.0, self.1) {
            match number {
                ElementValue::Whole(whole) => seq.serialize_element(&whole)?,
                ElementValue::Real(real) if real.is_finite() => seq.serialize_element(&real)?,
                number => seq.serialize_element(&element_text::show(number))?,
            }
        }
        seq.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use titin_runtime::Setting;

    fn read_all(path: &Path) -> Result<Vec<FileRecord>> {
        let mut reader = LinesReader::open(path)?;
        let mut records = Vec::new();
        while let Some(record) = reader.next()? {
            records.push(record);
        }
        Ok(records)
    }

    fn borrowed(value: &Value) -> View<'_> {
        match value {
            Value::Nil => View::Nil,
            Value::Bool(v) => View::Bool(*v),
            Value::Int(v) => View::Int(*v),
            Value::UInt(v) => View::UInt(*v),
            Value::Float(v) => View::Float(*v),
            Value::Float32(v) => View::Float32(*v),
            Value::Text(v) => View::Text(v.clone()),
            Value::Bytes(v) => View::Bytes(v),
            Value::Array(layout, v) => View::Array(layout.clone(), v),
            Value::List(v) => View::List(v.iter().map(borrowed).collect()),
            Value::Map(v) => View::Map(borrowed_entries(v)),
            Value::Settings(v) => View::Settings(borrowed_entries(v)),
        }
    }

    fn borrowed_entries(entries: &[(String, Value)]) -> Vec<(String, View<'_>)> {
        let entries = entries.iter();
        entries
            .map(|(name, v)| (name.clone(), borrowed(v)))
            .collect()
    }

    fn arrays() -> impl Strategy<Value = Value> {
        let dtype = prop::sample::select(Dtype::ALL.to_vec());
        (
            dtype,
            prop::collection::vec(0u64..4, 0..3),
            any::<bool>(),
            any::<u64>(),
        )
            .prop_map(|(dtype, shape, c, seed)| {
                let order = if c {
                    StorageOrder::C
                } else {
                    StorageOrder::Fortran
                };
                let layout = Layout {
                    dtype,
                    order,
                    names: shape.iter().map(|n| format!("n{n}")).collect(),
                    shape: shape.into(),
                };
                let count = layout.elements().unwrap() * if dtype.is_complex() { 2 } else { 1 };
                let mut bytes = Vec::new();
                for n in 0..count {
                    let number = ElementValue::Real((seed.wrapping_mul(n + 1) % 2000) as f64 * 0.1);
                    let real = dtype.name().starts_with(['f', 'c']);
                    let number = if real {
                        number
                    } else {
                        ElementValue::Whole((seed.wrapping_mul(n) % 2).into())
                    };
                    element_text::push(number, dtype, &mut bytes).unwrap();
                }
                Value::Array(layout, bytes)
            })
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Nil),
            any::<bool>().prop_map(Value::Bool),
            any::<i64>().prop_map(Value::Int),
            (i64::MAX as u64 + 1..).prop_map(Value::UInt),
            prop::num::f64::ANY
                .prop_filter("equal to itself", |f| !f.is_nan())
                .prop_map(Value::Float),
            prop::num::f32::ANY
                .prop_filter("equal to itself", |f| !f.is_nan())
                .prop_map(Value::Float32),
            ".*".prop_map(Value::Text),
            prop::collection::vec(any::<u8>(), 0..20).prop_map(Value::Bytes),
            arrays(),
        ];
        leaf.prop_recursive(3, 32, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::List),
                prop::collection::hash_map("[^$]*", inner.clone(), 0..6)
                    .prop_map(|entries| Value::Map(entries.into_iter().collect())),
                prop::collection::hash_map("[^$]*", inner, 0..6)
                    .prop_map(|entries| Value::Settings(entries.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_message_comes_back(value in values(), timestamp in -1e9..1e9, next in prop::option::of(-1e9..1e9)) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("a.jsonl");
            let settings = Overlay::from([("k".to_owned(), Setting::Float(2.0)), ("n".to_owned(), Setting::Int(3))]);
            let meta = MessageMeta { timestamp, next, settings: Some(settings) };
            LinesWriter::new(&path).write(&borrowed(&value), &meta).unwrap();
            let record = read_all(&path).unwrap().remove(0);
            prop_assert_eq!(record.value, value);
            prop_assert_eq!(record.timestamp, Some(timestamp));
            prop_assert_eq!(record.next, NextTimestamp::Known(next));
            prop_assert_eq!(record.settings, meta.settings);
        }
    }

    #[test]
    fn plain_lines_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        std::fs::write(
            &path,
            "{\"data\": {\"b\": 1, \"a\": [2.0, null]}}\n\n{\"timestamp\": 3, \"data\": \"x\"}\n",
        )
        .unwrap();
        let records = read_all(&path).unwrap();
        let list = Value::List(vec![Value::Float(2.0), Value::Nil]);
        assert_eq!(
            records[0].value,
            Value::Map(vec![("b".into(), Value::Int(1)), ("a".into(), list)])
        );
        assert_eq!(
            (records[0].timestamp, records[0].next),
            (None, NextTimestamp::Follows)
        );
        assert_eq!(
            (records[1].timestamp, records[1].place),
            (Some(3.0), RecordPosition::Line(3))
        );
    }

    #[test]
    fn digits_within_text_are_no_number() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        let written = r#"{"data": ["\\\", 99999999999999999999 ", "a:99999999999999999999", "\\", 18446744073709551615, 1e20]}"#;
        std::fs::write(&path, written).unwrap();
        let Value::List(values) = read_all(&path).unwrap().remove(0).value else {
            panic!("no list")
        };
        assert_eq!(values[1], Value::Text("a:99999999999999999999".into()));
        assert_eq!(values[3..], [Value::UInt(u64::MAX), Value::Float(1e20)]);
    }

    #[test]
    fn numbers_that_are_none_are_written_as_text() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        let layout = Layout::new(Dtype::Float32, StorageOrder::C, [3]);
        let bytes: Vec<u8> = [f32::NAN, f32::NEG_INFINITY, 0.1]
            .iter()
            .flat_map(|n| n.to_le_bytes())
            .collect();
        let value = View::List(vec![
            View::Float(f64::INFINITY),
            View::Array(layout, &bytes),
        ]);
        LinesWriter::new(&path)
            .write(&value, &MessageMeta::default())
            .unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(
            text.contains(
                r#"[{"$float":"inf"},{"$array":"float32","shape":[3],"values":["nan","-inf",0.1]}]"#
            ),
            "{text}"
        );
        let Value::List(back) = read_all(&path).unwrap().remove(0).value else {
            panic!("no list")
        };
        let Value::Array(_, back) = &back[1] else {
            panic!("no array")
        };
        assert_eq!(back, &bytes);
    }

    #[test]
    fn wrong_lines_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        let why = |line: &str| {
            std::fs::write(&path, format!("{{\"data\": 1}}\n{line}\n")).unwrap();
            let error = read_all(&path).unwrap_err().to_string();
            assert!(error.contains("a.jsonl:2: "), "{error}");
            error
        };
        assert!(why("{\"data\": }").contains("at column 10"));
        assert!(
            why("{\"data\": {\"a\": 1, \"b\": 2, \"a\": 3}}").contains("key \"a\" is there twice")
        );
        assert!(why("[1, 2]").contains("found a list of 2; a line is {"));
        assert!(why("{\"rain\": 1}").contains("there is no place for 'rain'"));
        assert!(why("{\"timestamp\": \"x\", \"data\": 1}").contains("'timestamp' is text"));
        assert!(
            why("{\"data\": {\"$array\": \"float\", \"shape\": [], \"values\": [1]}}")
                .contains("'float'")
        );
        assert!(
            why("{\"data\": {\"$array\": \"float64\", \"shape\": [2], \"values\": [1]}}")
                .contains("has 1 values")
        );
        assert!(
            why("{\"data\": {\"$array\": \"uint8\", \"shape\": [1], \"values\": [256]}}")
                .contains("256")
        );
        assert!(
            why("{\"data\": {\"$array\": \"float32\", \"shape\": [1], \"values\": [1e300]}}")
                .contains("1e300 does not fit an element of type float32")
        );
        assert!(why("{\"data\": {\"$float\": \"1e999\"}}").contains("'1e999' is beyond"));
        let large = "99999999999999999999";
        for number in [
            large.to_string(),
            format!("[0.5,-{large}]"),
            format!("[\"\\\\\",{large} ]"),
        ] {
            let why = why(&format!("{{\"data\": {number}}}"));
            assert!(
                why.contains("does not fit in 64 bits; write it with a point"),
                "{number}: {why}"
            );
        }
        assert!(why("{\"data\": {\"$bytes\": \"0g\"}}").contains("hexadecimal"));
        assert!(
            why("{\"settings\": {\"k\": {}}, \"data\": 1}")
                .contains("the value of 'k' cannot be a setting")
        );
    }

    #[test]
    fn a_map_that_would_be_taken_for_something_else_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        let value = View::Map(vec![("$array".into(), View::Int(1))]);
        let error = LinesWriter::new(&path)
            .write(&value, &MessageMeta::default())
            .unwrap_err()
            .to_string();
        assert!(error.contains("'$array'"), "{error}");
    }
}
