//! JSON lines: one message a line, of any kind.
//!
//! A line is `{"timestamp": 0.5, "next_timestamp": 1.0, "settings": {...}, "data": ...}`; all but `data` may be left
//! out. What JSON does not have is written as a map with a key that begins with `$`:
//!
//! - an array: `{"$array": "float64", "shape": [2, 3], "order": "F", "names": ["x", "y"], "values": [1.0, ...]}`, with
//!   the values in the order of storage; `order` is C, and `names` empty, if they are left out. Complex numbers are
//!   two values each, true and false are 1 and 0;
//! - bytes: `{"$bytes": "00ff"}`, in hexadecimal digits;
//! - numbers that are none: `{"$float": "nan"}`, also `inf` and `-inf`; within arrays the text alone.

use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde::ser::{Error as _, Serialize, SerializeMap, SerializeSeq, Serializer};
use titin_runtime::{Dtype, ElementValue, Layout, Order};

use super::output::Output;
use super::{Next, Place, Reader, Record, Writer};
use crate::data::{Stamp, Value, View, describe};
use crate::element_text;
use crate::error::At;
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
        let file = File::open(path).at(path, "open")?;
        let stream = BufReader::with_capacity(1 << 16, file);
        Ok(LinesReader {
            path: path.to_owned(),
            stream,
            line: 0,
            text: String::new(),
        })
    }
}

impl Reader for LinesReader {
    fn next(&mut self) -> Result<Option<Record>> {
        loop {
            self.text.clear();
            self.line += 1;
            if self
                .stream
                .read_line(&mut self.text)
                .at(&self.path, "read")?
                == 0
            {
                return Ok(None);
            }
            if !self.text.trim().is_empty() {
                break;
            }
        }
        let wrong = |why: String| Error::line(&self.path, self.line, why);
        let tree: Tree = serde_json::from_str(&self.text).map_err(|error| {
            // Its own line number is that within the one line.
            let why = error.to_string();
            let (why, _) = why.split_once(" at line").unwrap_or((&why, ""));
            wrong(format!("{why}, at column {}", error.column()))
        })?;
        check_numbers(&self.text).map_err(wrong)?;
        record(tree.0)
            .map(|record| {
                Some(Record {
                    place: Place::Line(self.line),
                    ..record
                })
            })
            .map_err(wrong)
    }
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

impl Writer for LinesWriter {
    fn write(&mut self, value: &View<'_>, stamp: &Stamp) -> Result<()> {
        let mut line = serde_json::to_vec(&Line { value, stamp }).map_err(|error| {
            Error::file(
                self.file.path(),
                format!("the message cannot be written: {error}"),
            )
        })?;
        line.push(b'\n');
        self.file.append(&line)
    }

    fn rest(&mut self) {
        self.file.rest();
    }
}

/// Checks the whole numbers of a line, which is JSON: the parser hands over those beyond 64 bits as real ones.
fn check_numbers(line: &str) -> Result<(), String> {
    let (mut is_text, mut is_escaped) = (false, false);
    // What ends numbers in JSON, and quotes, which stand at the end of their piece.
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

/// What a line says.
fn record(line: Value) -> Result<Record, String> {
    const FORM: &str = r#"a line is {"timestamp": 0.5, "next_timestamp": 1.0, "data": ...}"#;
    let Value::Map(entries) = line else {
        return Err(format!("found {}; {FORM}", describe(&line)));
    };
    let mut record = Record {
        value: Value::Nil,
        timestamp: None,
        next: Next::Follows,
        settings: None,
        place: Place::Line(0),
    };
    for (name, value) in entries {
        let time = |value: &Value| match element_text::of(value) {
            Some(number) => Ok(element_text::as_f64(number)),
            None => Err(format!("'{name}' is {}; {FORM}", describe(value))),
        };
        match name.as_str() {
            "timestamp" => record.timestamp = Some(time(&value)?),
            "next_timestamp" if value == Value::Nil => record.next = Next::Known(None),
            "next_timestamp" => record.next = Next::Known(Some(time(&value)?)),
            "settings" => {
                record.settings = Some(
                    titin_runtime::overlay_of(&value)
                        .map_err(|why| format!("'settings': {why}"))?,
                )
            }
            "data" => record.value = special(value)?,
            _ => {
                return Err(format!(
                    "there is no place for '{name}'; {FORM}, and all that is data goes under \"data\""
                ));
            }
        }
    }
    Ok(record)
}

/// Makes the maps that stand for arrays, bytes and numbers what they stand for.
fn special(value: Value) -> Result<Value, String> {
    let entries = match value {
        Value::List(values) => {
            return Ok(Value::List(
                values.into_iter().map(special).collect::<Result<_, _>>()?,
            ));
        }
        Value::Map(entries) => entries,
        other => return Ok(other),
    };
    let field = |name: &str| {
        entries
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value)
    };
    if let Some(dtype) = field("$array") {
        return array(dtype, &field);
    }
    if let Some(digits) = field("$bytes") {
        let bytes = match digits {
            Value::Text(digits) if digits.len().is_multiple_of(2) && digits.is_ascii() => (0
                ..digits.len())
                .step_by(2)
                .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).ok())
                .collect::<Option<Vec<u8>>>(),
            _ => None,
        };
        return bytes
            .map(Value::Bytes)
            .ok_or_else(|| "\"$bytes\" takes pairs of hexadecimal digits".to_owned());
    }
    if let Some(number) = field("$float") {
        return match number {
            Value::Text(text) => element_text::parse(text)?,
            other => element_text::of(other),
        }
        .map(|number| Value::Float(element_text::as_f64(number)))
        .ok_or_else(|| "\"$float\" takes \"nan\", \"inf\" or \"-inf\"".to_owned());
    }
    let entries = entries
        .into_iter()
        .map(|(name, value)| Ok((name, special(value)?)));
    Ok(Value::Map(entries.collect::<Result<_, String>>()?))
}

fn array<'a>(dtype: &Value, field: &impl Fn(&str) -> Option<&'a Value>) -> Result<Value, String> {
    let dtype = match dtype {
        Value::Text(name) => {
            Dtype::from_name(name).ok_or_else(|| format!("there is no element type '{name}'"))?
        }
        other => {
            return Err(format!(
                "\"$array\" takes the name of an element type, found {}",
                describe(other)
            ));
        }
    };
    let list = |name: &str| match field(name) {
        Some(Value::List(values)) => Ok(values.as_slice()),
        None if name == "names" => Ok([].as_slice()),
        Some(other) => Err(format!(
            "\"{name}\" of an array is {}, it should be a list",
            describe(other)
        )),
        None => Err(format!("an array has no \"{name}\"")),
    };
    let order = match field("order") {
        None => Order::C,
        Some(Value::Text(order)) if order == "C" => Order::C,
        Some(Value::Text(order)) if order == "F" => Order::Fortran,
        _ => return Err("\"order\" of an array is \"C\" or \"F\"".to_owned()),
    };
    let extent = |value: &Value| match value {
        Value::Int(extent) => u64::try_from(*extent).ok(),
        _ => None,
    };
    let shape: Option<Vec<u64>> = list("shape")?.iter().map(extent).collect();
    let shape = shape.ok_or("\"shape\" of an array is a list of whole numbers")?;
    let name = |value: &Value| match value {
        Value::Text(name) => Some(name.clone()),
        _ => None,
    };
    let names: Option<Vec<String>> = list("names")?.iter().map(name).collect();
    let layout = Layout {
        dtype,
        order,
        shape: shape.into(),
        names: names.ok_or("\"names\" of an array is a list of text")?,
    };
    let values = list("values")?;
    let parts = if dtype.is_complex() { 2 } else { 1 };
    if layout
        .elements()
        .and_then(|elements| elements.checked_mul(parts))
        != Some(values.len() as u64)
    {
        return Err(format!(
            "an array of shape {:?} has {} values",
            layout.shape,
            values.len()
        ));
    }
    let mut elements = Vec::with_capacity(values.len() * dtype.size());
    for value in values {
        let number = match value {
            Value::Text(text) => element_text::parse(text)?,
            Value::Bool(flag) => Some(ElementValue::Whole((*flag).into())),
            value => element_text::of(value),
        };
        let number = number.ok_or_else(|| format!("an array holds {}", describe(value)))?;
        element_text::push(number, dtype, &mut elements)?;
    }
    Ok(Value::Array(layout, elements))
}

/// Any JSON, keeping the order of maps and what is whole and what is real.
struct Tree(Value);

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;

        impl<'de> Visitor<'de> for Any {
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
                while let Some(Tree(value)) = seq.next_element()? {
                    values.push(value);
                }
                Ok(Value::List(values))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
                let mut entries = Vec::new();
                while let Some((name, Tree(value))) = map.next_entry()? {
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

        deserializer.deserialize_any(Any).map(Tree)
    }
}

/// A line as it is written.
struct Line<'a> {
    value: &'a View<'a>,
    stamp: &'a Stamp,
}

impl Serialize for Line<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Stamp {
            timestamp,
            next,
            settings,
        } = self.stamp;
        let mut line = serializer.serialize_map(None)?;
        line.serialize_entry("timestamp", timestamp)?;
        line.serialize_entry("next_timestamp", next)?;
        if let Some(settings) = settings.as_ref().filter(|settings| !settings.is_empty()) {
            line.serialize_entry("settings", settings)?;
        }
        line.serialize_entry("data", &Written(self.value))?;
        line.end()
    }
}

/// A value as it is written.
struct Written<'a>(&'a View<'a>);

impl Serialize for Written<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let marked = |serializer: S, key: &'static str, text: &str| {
            let mut map = serializer.serialize_map(Some(1))?;
            map.serialize_entry(key, text)?;
            map.end()
        };
        match self.0 {
            View::Nil => serializer.serialize_unit(),
            View::Bool(flag) => serializer.serialize_bool(*flag),
            View::Int(number) => serializer.serialize_i64(*number),
            View::UInt(number) => serializer.serialize_u64(*number),
            View::Float(number) if number.is_finite() => serializer.serialize_f64(*number),
            View::Float(number) => marked(serializer, "$float", &element_text::text(*number)),
            View::Text(text) => serializer.serialize_str(text),
            View::Bytes(bytes) => {
                let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                marked(serializer, "$bytes", &digits)
            }
            View::List(values) => serializer.collect_seq(values.iter().map(Written)),
            View::Map(entries) => {
                if let Some((name, _)) = entries.iter().find(|(name, _)| name.starts_with('$')) {
                    let why = format!(
                        "its map has an entry '{name}', and what begins with '$' has a meaning in this format"
                    );
                    return Err(S::Error::custom(why));
                }
                serializer.collect_map(entries.iter().map(|(name, value)| (name, Written(value))))
            }
            View::Array(layout, elements) => {
                let mut map = serializer.serialize_map(None)?;
                map.serialize_entry("$array", layout.dtype.name())?;
                map.serialize_entry("shape", &layout.shape[..])?;
                if layout.order == Order::Fortran {
                    map.serialize_entry("order", "F")?;
                }
                if !layout.names.is_empty() {
                    map.serialize_entry("names", &layout.names)?;
                }
                map.serialize_entry("values", &Elements(layout.dtype, elements))?;
                map.end()
            }
        }
    }
}

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
    use titin_runtime::{Overlay, Setting};

    fn read_all(path: &Path) -> Result<Vec<Record>> {
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
            Value::Text(v) => View::Text(v.clone()),
            Value::Bytes(v) => View::Bytes(v),
            Value::Array(layout, v) => View::Array(layout.clone(), v),
            Value::List(v) => View::List(v.iter().map(borrowed).collect()),
            Value::Map(v) => View::Map(
                v.iter()
                    .map(|(name, v)| (name.clone(), borrowed(v)))
                    .collect(),
            ),
        }
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
                let order = if c { Order::C } else { Order::Fortran };
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
            ".*".prop_map(Value::Text),
            prop::collection::vec(any::<u8>(), 0..20).prop_map(Value::Bytes),
            arrays(),
        ];
        leaf.prop_recursive(3, 32, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::List),
                prop::collection::hash_map("[^$]*", inner, 0..6)
                    .prop_map(|entries| Value::Map(entries.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_message_comes_back(value in values(), timestamp in -1e9..1e9, next in prop::option::of(-1e9..1e9)) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("a.jsonl");
            let settings = Overlay::from([("k".to_owned(), Setting::Float(2.0)), ("n".to_owned(), Setting::Int(3))]);
            let stamp = Stamp { timestamp, next, settings: Some(settings) };
            LinesWriter::new(&path).write(&borrowed(&value), &stamp).unwrap();
            let record = read_all(&path).unwrap().remove(0);
            prop_assert_eq!(record.value, value);
            prop_assert_eq!(record.timestamp, Some(timestamp));
            prop_assert_eq!(record.next, Next::Known(next));
            prop_assert_eq!(record.settings, stamp.settings);
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
            (None, Next::Follows)
        );
        assert_eq!(
            (records[1].timestamp, records[1].place),
            (Some(3.0), Place::Line(3))
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
        let layout = Layout::new(Dtype::Float32, Order::C, [3]);
        let bytes: Vec<u8> = [f32::NAN, f32::NEG_INFINITY, 0.1]
            .iter()
            .flat_map(|n| n.to_le_bytes())
            .collect();
        let value = View::List(vec![
            View::Float(f64::INFINITY),
            View::Array(layout, &bytes),
        ]);
        LinesWriter::new(&path)
            .write(&value, &Stamp::default())
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
            .write(&value, &Stamp::default())
            .unwrap_err()
            .to_string();
        assert!(error.contains("'$array'"), "{error}");
    }
}
