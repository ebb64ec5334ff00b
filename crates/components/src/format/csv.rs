//! CSV: a row a message, or the whole file one.
//!
//! The first row names the columns, unless all of it is numbers. Rows that begin with `#` are comments. Columns called
//! `timestamp`, `time` or `t`, and `next_timestamp`, are times; all others are values.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use csv::{ReaderBuilder, StringRecord, Trim};
use titin_runtime::structure::Value as Tree;
use titin_runtime::{Dtype, ElementValue, Layout, Order};

use super::output::Output;
use super::{Form, Next, Place, Reader, Reading, Record, Writer};
use crate::data::{Stamp, Value, View, describe};
use crate::element_text;
use crate::error::At;
use crate::{Error, Result};

const TIMES: [&str; 3] = ["timestamp", "time", "t"];
const NEXT: &str = "next_timestamp";

/// Opens a file, to be read row by row or as a whole.
pub(super) fn open(path: &Path, reading: &Reading) -> Result<Box<dyn Reader>> {
    let rows = Rows::open(path, reading)?;
    Ok(match reading.form {
        Form::Table => Box::new(Table(Some(rows))),
        form => {
            let columns: Vec<&str> = rows.columns.iter().map(|(_, name)| name.as_str()).collect();
            // A single value has no dimension that could have a name, and what a sink has numbered comes back as it was.
            let is_numbered = columns
                .iter()
                .enumerate()
                .all(|(place, name)| *name == numbered(place));
            let named = columns.len() > 1 && rows.first.is_none() && !is_numbered;
            let name = named.then(|| joined(&columns)).flatten();
            Box::new(RowReader {
                rows,
                form,
                dtype: reading.dtype,
                name,
            })
        }
    })
}

/// The rows of a file, and which of their fields are what.
struct Rows {
    path: PathBuf,
    records: csv::Reader<BufReader<File>>,
    /// A first row of numbers, which is no head.
    first: Option<StringRecord>,
    /// Place and name of the columns with values.
    columns: Vec<(usize, String)>,
    time: Option<usize>,
    next: Option<usize>,
}

impl Rows {
    fn open(path: &Path, reading: &Reading) -> Result<Self> {
        let file = File::open(path).at(path, "open")?;
        let mut records = ReaderBuilder::new()
            .has_headers(false)
            .delimiter(reading.delimiter)
            .comment(Some(b'#'))
            .trim(Trim::All)
            .from_reader(BufReader::with_capacity(1 << 16, file));
        let mut head = StringRecord::new();
        if !records
            .read_record(&mut head)
            .map_err(|error| broken(path, &error))?
        {
            return Err(Error::file(path, "it is empty"));
        }
        let numbers = head.iter().all(|field| field.parse::<f64>().is_ok());
        let names: Vec<String> = match numbers {
            true => (0..head.len())
                .map(|column| format!("column_{column}"))
                .collect(),
            false => head.iter().map(str::to_owned).collect(),
        };
        if let Some((at, twice)) = names
            .iter()
            .enumerate()
            .find(|(at, name)| names[..*at].contains(name))
            .filter(|_| !numbers)
        {
            return Err(Error::line(
                path,
                line(&head),
                format!("column {at} is called '{twice}', as another one is"),
            ));
        }
        let find = |wanted: &str| {
            names.iter().position(|name| name == wanted).ok_or_else(|| {
                Error::file(
                    path,
                    format!(
                        "it has no column '{wanted}'; its columns are {}",
                        names.join(", ")
                    ),
                )
            })
        };
        let time = match &reading.time_column {
            Some(name) => Some(find(name)?),
            None => names.iter().position(|name| TIMES.contains(&name.as_str())),
        };
        let next = names.iter().position(|name| name == NEXT);
        let values: Vec<usize> = match reading.columns.as_slice() {
            [] => (0..names.len())
                .filter(|column| ![time, next].contains(&Some(*column)))
                .collect(),
            wanted => wanted
                .iter()
                .map(|name| find(name))
                .collect::<Result<_>>()?,
        };
        let columns = values
            .into_iter()
            .map(|column| (column, names[column].clone()))
            .collect();
        let first = numbers.then_some(head);
        Ok(Rows {
            path: path.to_owned(),
            records,
            first,
            columns,
            time,
            next,
        })
    }

    fn next(&mut self) -> Result<Option<StringRecord>> {
        if let Some(first) = self.first.take() {
            return Ok(Some(first));
        }
        let mut row = StringRecord::new();
        let more = self
            .records
            .read_record(&mut row)
            .map_err(|error| broken(&self.path, &error))?;
        Ok(more.then_some(row))
    }

    /// The times that a row gives.
    fn times(&self, row: &StringRecord) -> Result<(Option<f64>, Next)> {
        let read = |column: usize| {
            let text = field(row, column);
            text.parse::<f64>().map_err(|_| {
                let why = format!("'{text}' in column {column} is no time; times are numbers");
                Error::line(&self.path, line(row), why)
            })
        };
        let next = match self.next {
            None => Next::Follows,
            Some(column) if field(row, column).is_empty() => Next::Known(None),
            Some(column) => Next::Known(Some(read(column)?)),
        };
        Ok((self.time.map(read).transpose()?, next))
    }
}

/// A message a row.
struct RowReader {
    rows: Rows,
    form: Form,
    dtype: Dtype,
    /// The index name of the rows' arrays, which has the columns.
    name: Option<String>,
}

impl Reader for RowReader {
    fn next(&mut self) -> Result<Option<Record>> {
        let Some(row) = self.rows.next()? else {
            return Ok(None);
        };
        let (timestamp, next) = self.rows.times(&row)?;
        let columns = &self.rows.columns;
        let wrong = |name: &str, why| {
            Error::line(
                &self.rows.path,
                line(&row),
                format!("column '{name}': {why}"),
            )
        };
        let value = if self.form == Form::Map {
            let entry = |(column, name): &(usize, String)| {
                let value = cell(field(&row, *column)).map_err(|why| wrong(name, why))?;
                Ok((name.clone(), value))
            };
            Value::Map(columns.iter().map(entry).collect::<Result<_>>()?)
        } else {
            let mut elements = Vec::with_capacity(columns.len() * self.dtype.size());
            for (column, name) in columns {
                let text = field(&row, *column);
                let number = number(text).and_then(|number| {
                    number.ok_or_else(|| format!("'{text}' is no number; set `form: map` for text"))
                });
                let pushed =
                    number.and_then(|number| element_text::push(number, self.dtype, &mut elements));
                pushed.map_err(|why| wrong(name, why))?;
                if self.dtype.is_complex() {
                    elements.resize(elements.len() + self.dtype.size() / 2, 0);
                }
            }
            let shape = if columns.len() == 1 {
                Vec::new()
            } else {
                vec![columns.len() as u64]
            };
            let mut layout = Layout::new(self.dtype, Order::C, shape);
            layout.names.extend(self.name.clone());
            Value::Array(layout, elements)
        };
        Ok(Some(Record {
            value,
            timestamp,
            next,
            settings: None,
            place: Place::Line(line(&row)),
        }))
    }
}

/// The whole file as one message: a map from column to array, or to a list of text.
struct Table(Option<Rows>);

impl Reader for Table {
    fn next(&mut self) -> Result<Option<Record>> {
        let Some(mut rows) = self.0.take() else {
            return Ok(None);
        };
        let mut cells: Vec<Vec<String>> = vec![Vec::new(); rows.columns.len()];
        while let Some(row) = rows.next()? {
            cells
                .iter_mut()
                .zip(&rows.columns)
                .for_each(|(cells, (column, _))| cells.push(field(&row, *column).to_owned()));
        }
        let entry = |((_, name), cells): ((usize, String), Vec<String>)| {
            let values = column(cells);
            let values =
                values.map_err(|why| Error::file(&rows.path, format!("column '{name}': {why}")))?;
            Ok((name, values))
        };
        let value = Value::Map(
            rows.columns
                .into_iter()
                .zip(cells)
                .map(entry)
                .collect::<Result<_>>()?,
        );
        let place = Place::Line(1);
        Ok(Some(Record {
            value,
            timestamp: None,
            next: Next::Known(None),
            settings: None,
            place,
        }))
    }
}

/// What a column is called whose array says nothing of it.
fn numbered(place: usize) -> String {
    format!("value_{place}")
}

/// The names of columns as the one index name of an array: a row of a CSV file, if it is not too long.
fn joined(columns: &[&str]) -> Option<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(columns).ok()?;
    let row = String::from_utf8(writer.into_inner().ok()?).ok()?;
    Some(row.trim_end().to_owned()).filter(|row| row.len() <= usize::from(u16::MAX))
}

/// The names of so many columns in the index name of an array, unless it has others, or such as cannot stand in one file.
fn columns_in(name: &str, count: usize) -> Option<Vec<String>> {
    let mut reader = ReaderBuilder::new()
        .has_headers(false)
        .from_reader(name.as_bytes());
    let row = reader.records().next()?.ok()?;
    let mut known: BTreeSet<&str> = TIMES.into_iter().chain([NEXT]).collect();
    let fits = row.len() == count && row.iter().all(|column| known.insert(column));
    fits.then(|| row.iter().map(str::to_owned).collect())
}

/// The number that a field holds, if it holds one; one that is left empty is missing.
fn number(text: &str) -> Result<Option<ElementValue>, String> {
    if text.is_empty() {
        Ok(Some(ElementValue::Real(f64::NAN)))
    } else {
        element_text::parse(text)
    }
}

/// A column's values as whole numbers if all are, else as real ones, else as text.
fn column(cells: Vec<String>) -> Result<Value, String> {
    let numbers: Vec<Result<Option<ElementValue>, String>> =
        cells.iter().map(|cell| number(cell)).collect();
    // Among text, what looks like a number is text too.
    if numbers.contains(&Ok(None)) {
        return Ok(Value::List(cells.into_iter().map(Value::Text).collect()));
    }
    let values: Vec<ElementValue> = numbers
        .into_iter()
        .filter_map(Result::transpose)
        .collect::<Result<_, _>>()?;
    let whole = values
        .iter()
        .all(|value| matches!(value, ElementValue::Whole(whole) if i64::try_from(*whole).is_ok()));
    let dtype = if whole { Dtype::Int64 } else { Dtype::Float64 };
    let mut elements = Vec::with_capacity(values.len() * 8);
    for value in &values {
        element_text::push(*value, dtype, &mut elements).expect("a type that all of them fit");
    }
    Ok(Value::Array(
        Layout::new(dtype, Order::C, [values.len() as u64]),
        elements,
    ))
}

fn cell(text: &str) -> Result<Value, String> {
    Ok(match (text, element_text::parse(text)?) {
        ("", _) => Value::Nil,
        (_, Some(ElementValue::Whole(number))) => {
            i64::try_from(number).map_or(Value::UInt(number as u64), Value::Int)
        }
        (_, Some(number)) => Value::Float(element_text::as_f64(number)),
        ("true", None) => Value::Bool(true),
        ("false", None) => Value::Bool(false),
        (text, None) => Value::Text(text.to_owned()),
    })
}

/// A field of a row; rows have as many as the head, or the reader has complained.
fn field(row: &StringRecord, column: usize) -> &str {
    row.get(column).unwrap_or_default()
}

fn line(row: &StringRecord) -> u64 {
    row.position().map_or(0, csv::Position::line)
}

fn broken(path: &Path, error: &csv::Error) -> Error {
    let at = error.position().map(csv::Position::line);
    let why = match error.kind() {
        csv::ErrorKind::Io(error) => format!("cannot read it: {error}"),
        csv::ErrorKind::Utf8 { .. } => "it is not UTF-8".to_owned(),
        csv::ErrorKind::UnequalLengths {
            expected_len, len, ..
        } => {
            format!("this row has {len} fields, those before have {expected_len}")
        }
        _ => error.to_string(),
    };
    Error::File {
        path: path.to_owned(),
        line: at,
        why,
    }
}

/// Writes a row a message, with its times in front.
pub(super) struct CsvWriter {
    file: Output,
    /// Names of the columns with values, once there was a message.
    columns: Option<Vec<String>>,
}

impl CsvWriter {
    pub(super) fn new(path: &Path) -> Self {
        CsvWriter {
            file: Output::new(path),
            columns: None,
        }
    }

    fn row<'a>(&self, fields: impl IntoIterator<Item = &'a str>) -> Result<Vec<u8>> {
        let broken = |error: &dyn std::fmt::Display| {
            Error::file(self.file.path(), format!("cannot write a row: {error}"))
        };
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer
            .write_record(fields)
            .map_err(|error| broken(&error))?;
        writer.into_inner().map_err(|error| broken(&error))
    }
}

impl Writer for CsvWriter {
    fn write(&mut self, value: &View<'_>, stamp: &Stamp) -> Result<()> {
        let cells = cells(value).map_err(|why| Error::file(self.file.path(), why))?;
        let names: Vec<String> = cells.iter().map(|(name, _)| name.clone()).collect();
        let mut rows = Vec::new();
        match &self.columns {
            Some(columns) if *columns == names => {}
            Some(columns) => {
                let why = format!(
                    "the message at time {:?} is {}, which does not fit its columns {}; a .jsonl file can keep it",
                    stamp.timestamp,
                    describe(value),
                    columns.join(", ")
                );
                return Err(Error::file(self.file.path(), why));
            }
            None => {
                let all = || names.iter().map(String::as_str).chain(TIMES).chain([NEXT]);
                if all().collect::<BTreeSet<_>>().len() != all().count() {
                    let why = "two columns would be called the same, or as those with the times are; a .jsonl file can keep it";
                    return Err(Error::file(self.file.path(), why));
                }
                rows = self.row(
                    ["timestamp", NEXT]
                        .into_iter()
                        .chain(names.iter().map(String::as_str)),
                )?;
                self.columns = Some(names);
            }
        }
        let times = [
            element_text::text(stamp.timestamp),
            stamp.next.map(element_text::text).unwrap_or_default(),
        ];
        let fields = times
            .iter()
            .chain(cells.iter().map(|(_, cell)| cell))
            .map(String::as_str);
        rows.extend(self.row(fields)?);
        self.file.append(&rows)
    }

    fn rest(&mut self) {
        self.file.rest();
    }
}

/// The columns of a message, with its values.
fn cells(value: &View<'_>) -> Result<Vec<(String, String)>, String> {
    let no_place = |value: &View<'_>| {
        format!(
            "a row of a .csv file holds single values, an array of rank 1, or a map of single values; the message is {}; \
             a .jsonl or .npy file can keep it",
            describe(value)
        )
    };
    match value {
        Tree::Array(layout, elements) if layout.shape.len() <= 1 && !layout.dtype.is_complex() => {
            let values: Vec<ElementValue> = element_text::read(layout.dtype, elements).collect();
            let names = match layout
                .names
                .first()
                .and_then(|name| columns_in(name, values.len()))
            {
                Some(columns) => columns,
                None if layout.shape.is_empty() => vec!["value".to_owned()],
                None => (0..values.len()).map(numbered).collect(),
            };
            Ok(names
                .into_iter()
                .zip(values)
                .map(|(name, number)| (name, element_text::show(number)))
                .collect())
        }
        Tree::Map(entries) => entries
            .iter()
            .map(|(name, entry)| Ok((name.clone(), single(entry).ok_or_else(|| no_place(value))?)))
            .collect(),
        value => Ok(vec![(
            "value".to_owned(),
            single(value).ok_or_else(|| no_place(value))?,
        )]),
    }
}

fn single(value: &View<'_>) -> Option<String> {
    Some(match value {
        Tree::Nil => String::new(),
        Tree::Bool(flag) => flag.to_string(),
        Tree::Text(text) => text.clone(),
        Tree::Array(layout, elements) if layout.shape.is_empty() && !layout.dtype.is_complex() => {
            element_text::show(element_text::read(layout.dtype, elements).next()?)
        }
        other => element_text::show(element_text::of(other)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn read_all(path: &Path, reading: &Reading) -> Result<Vec<Record>> {
        let mut reader = open(path, reading)?;
        let mut records = Vec::new();
        while let Some(record) = reader.next()? {
            records.push(record);
        }
        Ok(records)
    }

    fn read(text: &str, reading: &Reading) -> Result<Vec<Record>> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        fs::write(&path, text).unwrap();
        read_all(&path, reading)
    }

    fn array(numbers: &[f64], shape: &[u64]) -> Value {
        let bytes = numbers
            .iter()
            .flat_map(|number| number.to_le_bytes())
            .collect();
        Value::Array(Layout::new(Dtype::Float64, Order::C, shape), bytes)
    }

    const RAIN: &str = "# gauges\ntime, north, south\n0, 1.5, 2\n60, , 3\n";

    #[test]
    fn rows_become_arrays_with_their_times() {
        let records = read(RAIN, &Reading::default()).unwrap();
        let Value::Array(mut layout, elements) = array(&[1.5, 2.0], &[2]) else {
            panic!("no array")
        };
        layout.names = vec!["north,south".into()];
        assert_eq!(records[0].value, Value::Array(layout, elements));
        assert_eq!(
            (records[0].timestamp, records[0].next),
            (Some(0.0), Next::Follows)
        );
        let Value::Array(_, elements) = &records[1].value else {
            panic!("no array")
        };
        assert!(f64::from_le_bytes(elements[..8].try_into().unwrap()).is_nan());
        assert_eq!(
            (records[1].timestamp, records[1].place),
            (Some(60.0), Place::Line(4))
        );
    }

    #[test]
    fn columns_keep_their_names_on_the_way() {
        let rows = |head: &str, written: &str| {
            let folder = tempfile::tempdir().unwrap();
            let (from, to) = (folder.path().join("from.csv"), folder.path().join("to.csv"));
            fs::write(&from, format!("{head}\n0,1,2\n60,3,4\n")).unwrap();
            let mut writer = CsvWriter::new(&to);
            for record in read_all(&from, &Reading::default()).unwrap() {
                let Value::Array(layout, elements) = &record.value else {
                    panic!("no array")
                };
                let stamp = Stamp {
                    timestamp: record.timestamp.unwrap_or(0.0),
                    ..Stamp::default()
                };
                writer
                    .write(&View::Array(layout.clone(), elements), &stamp)
                    .unwrap();
            }
            let text = fs::read_to_string(&to).unwrap();
            assert_eq!(text.lines().next().unwrap(), written);
            assert_eq!(
                read_all(&to, &Reading::default()).unwrap()[1].timestamp,
                Some(60.0)
            );
        };
        rows("t,north,south", "timestamp,next_timestamp,north,south");
        rows(
            "t,\"north, low\",\"a \"\"b\"\"\"",
            "timestamp,next_timestamp,\"north, low\",\"a \"\"b\"\"\"",
        );
        // These would be taken for times.
        rows("t,time,south", "timestamp,next_timestamp,value_0,value_1");
    }

    #[test]
    fn index_names_that_are_no_columns_are_left_alone() {
        let three = array(&[1.0, 2.0, 3.0], &[3]);
        let Value::Array(mut layout, elements) = three else {
            panic!("no array")
        };
        let mut names = |name: &str| -> Vec<String> {
            layout.names = vec![name.to_owned()];
            cells(&View::Array(layout.clone(), &elements))
                .unwrap()
                .into_iter()
                .map(|(name, _)| name)
                .collect()
        };
        let numbered = ["value_0", "value_1", "value_2"];
        assert_eq!(names("x"), numbered);
        assert_eq!(names("a,b,a"), numbered);
        assert_eq!(names(""), numbered);
        assert_eq!(names("a,b,c"), ["a", "b", "c"]);
    }

    #[test]
    fn columns_are_chosen_and_one_alone_gives_single_values() {
        let reading = Reading {
            columns: vec!["south".into()],
            ..Reading::default()
        };
        assert_eq!(read(RAIN, &reading).unwrap()[1].value, array(&[3.0], &[]));
        let reading = Reading {
            time_column: Some("south".into()),
            ..Reading::default()
        };
        assert_eq!(read(RAIN, &reading).unwrap()[0].timestamp, Some(2.0));
        let ints = Reading {
            columns: vec!["south".into()],
            dtype: Dtype::Int16,
            ..Reading::default()
        };
        let Value::Array(layout, bytes) = &read(RAIN, &ints).unwrap()[0].value else {
            panic!("no array")
        };
        assert_eq!(
            (layout.dtype, bytes.as_slice()),
            (Dtype::Int16, &[2, 0][..])
        );
    }

    #[test]
    fn numbers_that_do_not_fit_are_refused() {
        let narrow = Reading {
            dtype: Dtype::Float32,
            ..Reading::default()
        };
        let why = read("t,k\n0,1e300\n", &narrow).unwrap_err().to_string();
        assert!(
            why.contains("column 'k': 1e300 does not fit an element of type float32"),
            "{why}"
        );
        let why = read("t,k\n0,99999999999999999999\n", &Reading::default())
            .unwrap_err()
            .to_string();
        assert!(
            why.contains("column 'k': the whole number 99999999999999999999 does not fit"),
            "{why}"
        );
    }

    #[test]
    fn a_file_without_a_head_is_all_rows() {
        let records = read(
            "1;2\n3;4\n",
            &Reading {
                delimiter: b';',
                ..Reading::default()
            },
        )
        .unwrap();
        assert_eq!(records.len(), 2);
        assert_eq!(records[0].value, array(&[1.0, 2.0], &[2]));
    }

    #[test]
    fn rows_and_tables_become_maps() {
        let text = "t,n,name,wet\n0,3,\"a, b\",true\n1,4,c,\n";
        let rows = read(
            text,
            &Reading {
                form: Form::Map,
                ..Reading::default()
            },
        )
        .unwrap();
        let row = vec![
            ("n".to_owned(), Value::Int(3)),
            ("name".to_owned(), Value::Text("a, b".into())),
            ("wet".to_owned(), Value::Bool(true)),
        ];
        assert_eq!(rows[0].value, Value::Map(row));
        let table = read(
            text,
            &Reading {
                form: Form::Table,
                ..Reading::default()
            },
        )
        .unwrap();
        assert_eq!(table.len(), 1);
        let Value::Map(columns) = &table[0].value else {
            panic!("no map")
        };
        assert_eq!(
            columns[1].1,
            Value::List(vec![Value::Text("a, b".into()), Value::Text("c".into())])
        );
        let Value::Array(layout, _) = &columns[0].1 else {
            panic!("no array")
        };
        assert_eq!(
            (layout.dtype, layout.shape.as_slice()),
            (Dtype::Int64, &[2][..])
        );
    }

    #[test]
    fn wrong_rows_are_named() {
        let why = |text: &str| read(text, &Reading::default()).unwrap_err().to_string();
        assert!(why("").contains("it is empty"));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        fs::write(&path, b"t,b\n0,\xff\n").unwrap();
        let error = read_all(&path, &Reading::default())
            .unwrap_err()
            .to_string();
        assert!(error.contains("a.csv:2: it is not UTF-8"), "{error}");
        assert!(why("a,b\n1,2\n1\n").contains("a.csv:3: this row has 1 fields"));
        assert!(
            why("a,b\n1,x\n").contains("a.csv:2: column 'b': 'x' is no number; set `form: map`")
        );
        let large = "t,b\n0,1e999\n";
        assert!(
            why(large)
                .contains("a.csv:2: column 'b': '1e999' is beyond what a real number can hold")
        );
        for form in [Form::Map, Form::Table] {
            let error = read(
                large,
                &Reading {
                    form,
                    ..Reading::default()
                },
            )
            .unwrap_err()
            .to_string();
            assert!(error.contains("column 'b': '1e999' is beyond"), "{error}");
        }
        assert!(why("t,b\nnoon,1\n").contains("a.csv:2: 'noon' in column 0 is no time"));
        assert!(why("a,a\n1,2\n").contains("column 1 is called 'a'"));
        let reading = Reading {
            time_column: Some("tide".into()),
            ..Reading::default()
        };
        assert!(
            read(RAIN, &reading)
                .unwrap_err()
                .to_string()
                .contains("no column 'tide'; its columns are time, north, south")
        );
    }

    #[test]
    fn messages_come_back_as_they_were() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        let mut writer = CsvWriter::new(&path);
        let layout = Layout::new(Dtype::Float64, Order::C, [2]);
        for step in 0..3 {
            let bytes: Vec<u8> = [0.1 + step as f64, f64::INFINITY]
                .iter()
                .flat_map(|n| n.to_le_bytes())
                .collect();
            let next = Some(step as f64 + 1.0).filter(|_| step < 2);
            let stamp = Stamp {
                timestamp: step as f64,
                next,
                settings: None,
            };
            writer
                .write(&View::Array(layout.clone(), &bytes), &stamp)
                .unwrap();
        }
        assert_eq!(
            fs::read_to_string(&path).unwrap(),
            "timestamp,next_timestamp,value_0,value_1\n0.0,1.0,0.1,inf\n1.0,2.0,1.1,inf\n2.0,,2.1,inf\n"
        );
        let records = read_all(&path, &Reading::default()).unwrap();
        assert_eq!(records[2].value, array(&[2.1, f64::INFINITY], &[2]));
        assert_eq!(
            (records[2].timestamp, records[2].next),
            (Some(2.0), Next::Known(None))
        );
    }

    #[test]
    fn what_a_row_cannot_hold_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let create = |name: &str| CsvWriter::new(&folder.path().join(name));
        let stamp = Stamp::default();
        let matrix = View::Array(Layout::new(Dtype::UInt8, Order::C, [1, 1]), &[1]);
        assert!(
            create("a.csv")
                .write(&matrix, &stamp)
                .unwrap_err()
                .to_string()
                .contains("with shape [1, 1]")
        );
        let named = View::Map(vec![("t".into(), View::Int(1))]);
        assert!(
            create("b.csv")
                .write(&named, &stamp)
                .unwrap_err()
                .to_string()
                .contains("called the same")
        );
        let mut writer = create("c.csv");
        writer.write(&View::Float(1.0), &stamp).unwrap();
        let error = writer
            .write(&View::Map(vec![("a".into(), View::Int(1))]), &stamp)
            .unwrap_err()
            .to_string();
        assert!(error.contains("does not fit its columns value"), "{error}");
    }
}
