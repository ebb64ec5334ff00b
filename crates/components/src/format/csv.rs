//! CSV files: each row is a message, or the whole file is one message.
//!
//! The first row names the columns, unless all fields of the row are numbers. Rows that begin with
//! `#` are comments. Columns called `timestamp`, `time` or `t`, and `next_timestamp`, are times;
//! all others are values.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use csv::{ReaderBuilder, StringRecord, Trim};
use titin_runtime::structure::Value as Tree;
use titin_runtime::{Dtype, ElementValue, Layout, StorageOrder};

use super::output::Output;
use super::{
    CsvForm, FileRecord, MessageWriter, NextTimestamp, ReadOptions, RecordError, RecordPosition,
    RecordReader,
};
use crate::data::{MessageMeta, Value, View, describe};
use crate::element_text::{self, NumberError};
use crate::error::OnFile;
use crate::{Error, Result};

const TIMES: [&str; 3] = ["timestamp", "time", "t"];
const NEXT: &str = "next_timestamp";

/// Opens a file. The reader goes row by row, or reads the file as a whole.
pub(super) fn open(path: &Path, reading: &ReadOptions) -> Result<Box<dyn RecordReader>> {
    let rows = CsvRows::open(path, reading)?;
    Ok(match reading.form {
        CsvForm::Table => Box::new(WholeTableReader(Some(rows))),
        form => Box::new(RowReader {
            name: rows.index_name(),
            rows,
            form,
            dtype: reading.dtype,
        }),
    })
}

/// The rows of a file, and the meaning of the columns.
struct CsvRows {
    path: PathBuf,
    records: csv::Reader<BufReader<File>>,
    /// A first row of numbers; such a row does not name the columns.
    first: Option<StringRecord>,
    /// The numbers and names of the columns with values.
    columns: Vec<(usize, String)>,
    time: Option<usize>,
    next: Option<usize>,
}

impl CsvRows {
    fn open(path: &Path, reading: &ReadOptions) -> Result<Self> {
        let mut records = open_records(path, reading.delimiter)?;
        let head = first_row(path, &mut records)?;
        let is_numbers = head.iter().all(|field| field.parse::<f64>().is_ok());
        let names = match is_numbers {
            true => numbered_names(head.len()),
            false => column_names(path, &head)?,
        };
        let time = match &reading.time_column {
            Some(name) => Some(find_column(path, &names, name)?),
            None => names.iter().position(|name| TIMES.contains(&name.as_str())),
        };
        let time = time.filter(|_| reading.takes_times);
        let next = names.iter().position(|name| name == NEXT);
        let next = next.filter(|_| reading.takes_times);
        let values = match &reading.columns[..] {
            [] => columns_without(&[time, next], names.len()),
            chosen => find_columns(path, &names, chosen)?,
        };
        let values = values.into_iter();
        Ok(CsvRows {
            path: path.to_owned(),
            records,
            first: is_numbers.then_some(head),
            columns: values
                .map(|column| (column, names[column].clone()))
                .collect(),
            time,
            next,
        })
    }

    /// The index name of arrays made from rows: the names of the columns. Single values have no
    /// index. A sink numbers unnamed columns; columns with such numbered names stay unnamed.
    fn index_name(&self) -> Option<String> {
        let columns: Vec<&str> = self.columns.iter().map(|(_, name)| name.as_str()).collect();
        let mut numbered = columns.iter().enumerate();
        if columns.len() <= 1
            || self.first.is_some()
            || numbered.all(|(index, name)| *name == numbered_column(index))
        {
            return None;
        }
        joined(&columns)
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

    /// All rows as a map from column to array, or to a list of text.
    fn table(mut self) -> Result<Value> {
        let mut cells: Vec<Vec<String>> = vec![Vec::new(); self.columns.len()];
        while let Some(row) = self.next()? {
            for (cells, (column, _)) in cells.iter_mut().zip(&self.columns) {
                cells.push(field(&row, *column).to_owned());
            }
        }
        let entry = |((_, name), cells): ((usize, String), Vec<String>)| {
            let values = column(cells).map_err(|why| {
                let why = format!("column '{name}': {why}");
                Error::file(&self.path, why)
            })?;
            Ok((name, values))
        };
        let entries = self.columns.into_iter().zip(cells).map(entry);
        Ok(Value::Map(entries.collect::<Result<_>>()?))
    }

    /// The times in a row.
    fn times(&self, row: &StringRecord) -> Result<(Option<f64>, NextTimestamp)> {
        let read = |column: usize| {
            let text = field(row, column);
            text.parse::<f64>().map_err(|_| {
                let why = format!("'{text}' in column {column} is no time; times are numbers");
                Error::line(&self.path, line(row), why)
            })
        };
        let next = match self.next {
            None => NextTimestamp::Follows,
            Some(column) if field(row, column).is_empty() => NextTimestamp::Known(None),
            Some(column) => NextTimestamp::Known(Some(read(column)?)),
        };
        Ok((self.time.map(read).transpose()?, next))
    }
}

fn open_records(path: &Path, delimiter: u8) -> Result<csv::Reader<BufReader<File>>> {
    let file = File::open(path).on_file(path, "open")?;
    Ok(ReaderBuilder::new()
        .has_headers(false)
        .delimiter(delimiter)
        .comment(Some(b'#'))
        .trim(Trim::All)
        .from_reader(BufReader::with_capacity(1 << 16, file)))
}

fn first_row(path: &Path, records: &mut csv::Reader<BufReader<File>>) -> Result<StringRecord> {
    let mut row = StringRecord::new();
    let read = records.read_record(&mut row);
    match read.map_err(|error| broken(path, &error))? {
        true => Ok(row),
        false => Err(Error::file(path, "it is empty")),
    }
}

/// The names of columns in a file that does not name the columns.
fn numbered_names(count: usize) -> Vec<String> {
    let numbers = 0..count;
    numbers.map(|column| format!("column_{column}")).collect()
}

/// The columns of a file that are not in `times`.
fn columns_without(times: &[Option<usize>], count: usize) -> Vec<usize> {
    let columns = 0..count;
    columns
        .filter(|column| !times.contains(&Some(*column)))
        .collect()
}

fn find_columns(path: &Path, names: &[String], chosen: &[String]) -> Result<Vec<usize>> {
    let chosen = chosen.iter();
    chosen.map(|name| find_column(path, names, name)).collect()
}

/// Two columns of a file must not have the same name.
fn column_names(path: &Path, head: &StringRecord) -> Result<Vec<String>> {
    let names: Vec<String> = head.iter().map(str::to_owned).collect();
    for (column, name) in names.iter().enumerate() {
        if names[..column].contains(name) {
            let why = format!("column {column} is called '{name}', as another one is");
            return Err(Error::line(path, line(head), why));
        }
    }
    Ok(names)
}

fn find_column(path: &Path, names: &[String], name: &str) -> Result<usize> {
    let column = names.iter().position(|other| other == name);
    column.ok_or_else(|| {
        let columns = names.join(", ");
        let why = format!("it has no column '{name}'; its columns are {columns}");
        Error::file(path, why)
    })
}

/// Makes a message of each row.
struct RowReader {
    rows: CsvRows,
    form: CsvForm,
    dtype: Dtype,
    /// The index name of the rows' arrays.
    name: Option<String>,
}

impl RowReader {
    /// A row as a map from column to value.
    fn map(&self, row: &StringRecord) -> Result<Value> {
        let entry = |(column, name): &(usize, String)| {
            let value = cell(field(row, *column));
            let value = value.map_err(|why| self.wrong(row, name, &why))?;
            Ok((name.clone(), value))
        };
        let entries = self.rows.columns.iter().map(entry);
        Ok(Value::Map(entries.collect::<Result<_>>()?))
    }

    /// A row as an array, or as a single value if there is only one column.
    fn array(&self, row: &StringRecord) -> Result<Value> {
        let columns = &self.rows.columns;
        let mut elements = Vec::with_capacity(columns.len() * self.dtype.size());
        for (column, name) in columns {
            let pushed = push_field(field(row, *column), self.dtype, &mut elements);
            pushed.map_err(|why| self.wrong(row, name, &why))?;
            if self.dtype.is_complex() {
                elements.resize(elements.len() + self.dtype.size() / 2, 0);
            }
        }
        let shape = if columns.len() == 1 {
            Vec::new()
        } else {
            vec![columns.len() as u64]
        };
        let mut layout = Layout::new(self.dtype, StorageOrder::C, shape);
        layout.names.extend(self.name.clone());
        Ok(Value::Array(layout, elements))
    }

    fn wrong(&self, row: &StringRecord, column: &str, why: &dyn std::fmt::Display) -> Error {
        let why = format!("column '{column}': {why}");
        Error::line(&self.rows.path, line(row), why)
    }
}

fn push_field(text: &str, dtype: Dtype, elements: &mut Vec<u8>) -> Result<(), RecordError> {
    let number = number(text)?.ok_or_else(|| {
        RecordError::new(format!("'{text}' is no number; set `form: map` for text"))
    })?;
    Ok(element_text::push(number, dtype, elements)?)
}

impl RecordReader for RowReader {
    fn next(&mut self) -> Result<Option<FileRecord>> {
        let Some(row) = self.rows.next()? else {
            return Ok(None);
        };
        let (timestamp, next) = self.rows.times(&row)?;
        let value = if self.form == CsvForm::Map {
            self.map(&row)?
        } else {
            self.array(&row)?
        };
        Ok(Some(FileRecord {
            value,
            timestamp,
            next,
            settings: None,
            place: RecordPosition::Line(line(&row)),
        }))
    }

    fn columns(&self) -> Option<Vec<String>> {
        let names = self.rows.columns.iter();
        Some(names.map(|(_, name)| name.clone()).collect())
    }
}

/// The whole file as a single message: a map from column to array, or to a list of text.
struct WholeTableReader(Option<CsvRows>);

impl RecordReader for WholeTableReader {
    fn next(&mut self) -> Result<Option<FileRecord>> {
        let Some(rows) = self.0.take() else {
            return Ok(None);
        };
        Ok(Some(FileRecord {
            value: rows.table()?,
            timestamp: None,
            next: NextTimestamp::Known(None),
            settings: None,
            place: RecordPosition::Line(1),
        }))
    }
}

/// The name of a column of an array without an index name.
fn numbered_column(index: usize) -> String {
    format!("value_{index}")
}

/// The names of columns as the index name of an array: a row of a CSV file. `None` if the row is
/// too long for an index name.
fn joined(columns: &[&str]) -> Option<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(columns).ok()?;
    let row = String::from_utf8(writer.into_inner().ok()?).ok()?;
    Some(row.trim_end().to_owned()).filter(|row| row.len() <= usize::from(u16::MAX))
}

/// The names of `count` columns in the index name of an array; `None` if the index name has no such
/// names, or has names that a single file cannot have.
fn columns_in(name: &str, count: usize) -> Option<Vec<String>> {
    let mut reader = ReaderBuilder::new()
        .has_headers(false)
        .from_reader(name.as_bytes());
    let row = reader.records().next()?.ok()?;
    let mut known: BTreeSet<&str> = TIMES.into_iter().chain([NEXT]).collect();
    let fits = row.len() == count && row.iter().all(|column| known.insert(column));
    fits.then(|| row.iter().map(str::to_owned).collect())
}

/// The number in a field; `None` if the field has no number. An empty field is a missing number.
fn number(text: &str) -> Result<Option<ElementValue>, NumberError> {
    if text.is_empty() {
        Ok(Some(ElementValue::Real(f64::NAN)))
    } else {
        element_text::parse(text)
    }
}

/// The values of a column: whole numbers if all are whole, else real numbers, else text.
fn column(cells: Vec<String>) -> Result<Value, NumberError> {
    let numbers: Vec<Result<Option<ElementValue>, NumberError>> =
        cells.iter().map(|cell| number(cell)).collect();
    // In a column with text, numbers are text too.
    if numbers.contains(&Ok(None)) {
        return Ok(Value::List(cells.into_iter().map(Value::Text).collect()));
    }
    let numbers = numbers.into_iter().filter_map(Result::transpose);
    let values: Vec<ElementValue> = numbers.collect::<Result<_, _>>()?;
    Ok(number_array(&values))
}

/// An array of whole numbers, or of real numbers if one of the numbers is not a whole number of 64
/// bits.
fn number_array(values: &[ElementValue]) -> Value {
    let is_int = |value: &ElementValue| matches!(value, ElementValue::Whole(whole) if i64::try_from(*whole).is_ok());
    let dtype = match values.iter().all(is_int) {
        true => Dtype::Int64,
        false => Dtype::Float64,
    };
    let mut elements = Vec::with_capacity(values.len() * 8);
    for value in values {
        element_text::push(*value, dtype, &mut elements).expect("a type that all of them fit");
    }
    let layout = Layout::new(dtype, StorageOrder::C, [values.len() as u64]);
    Value::Array(layout, elements)
}

fn cell(text: &str) -> Result<Value, NumberError> {
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

/// A field of a row. The reader has refused rows with another number of fields than the first.
fn field(row: &StringRecord, column: usize) -> &str {
    row.get(column).unwrap_or_default()
}

fn line(row: &StringRecord) -> u64 {
    row.position().map_or(0, csv::Position::line)
}

fn broken(path: &Path, error: &csv::Error) -> Error {
    let line = error.position().map(csv::Position::line);
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
        line,
        why,
    }
}

/// Writes a row for each message, with the times in the first two columns.
pub(super) struct CsvWriter {
    file: Output,
    /// The names of the columns with values, from the first message on.
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

impl CsvWriter {
    /// Checks that a message has the columns of the file. The first message decides the columns,
    /// and gives the bytes of the row with the names.
    fn check_columns(
        &mut self,
        names: Vec<String>,
        value: &View<'_>,
        time: f64,
    ) -> Result<Vec<u8>> {
        match &self.columns {
            Some(columns) if *columns == names => Ok(Vec::new()),
            Some(columns) => {
                let why = format!(
                    "the message at time {time:?} is {}, which does not fit its columns {}; a .jsonl file can keep it",
                    describe(value),
                    columns.join(", ")
                );
                Err(Error::file(self.file.path(), why))
            }
            None => {
                let head = self.head(&names)?;
                self.columns = Some(names);
                Ok(head)
            }
        }
    }

    /// The row with the names of the columns.
    fn head(&self, names: &[String]) -> Result<Vec<u8>> {
        let values = || names.iter().map(String::as_str);
        let all = || values().chain(TIMES).chain([NEXT]);
        if all().collect::<BTreeSet<_>>().len() != all().count() {
            let why = "two columns would be called the same, or as those with the times are; a .jsonl file can keep it";
            return Err(Error::file(self.file.path(), why));
        }
        self.row(["timestamp", NEXT].into_iter().chain(values()))
    }
}

impl MessageWriter for CsvWriter {
    fn write(&mut self, value: &View<'_>, meta: &MessageMeta) -> Result<()> {
        let cells = cells(value).map_err(|why| {
            let why = format!("{why}; a .jsonl or .npy file can keep it");
            Error::file(self.file.path(), why)
        })?;
        let (names, cells): (Vec<String>, Vec<String>) = cells.into_iter().unzip();
        let mut rows = self.check_columns(names, value, meta.timestamp)?;
        let times = [
            element_text::real_text(meta.timestamp),
            meta.next.map(element_text::real_text).unwrap_or_default(),
        ];
        let fields = times.iter().chain(&cells).map(String::as_str);
        rows.extend(self.row(fields)?);
        self.file.append(&rows)
    }

    fn pause(&mut self) {
        self.file.pause();
    }
}

/// The columns of a message, each with a name and a value.
pub(crate) fn cells(value: &View<'_>) -> Result<Vec<(String, String)>, RecordError> {
    let cell = |entry: &View<'_>| single(entry).ok_or_else(|| does_not_fit_a_row(value));
    match value {
        Tree::Array(layout, elements) if layout.shape.len() <= 1 && !layout.dtype.is_complex() => {
            let values: Vec<ElementValue> = element_text::read(layout.dtype, elements).collect();
            let names = array_columns(layout, values.len());
            let values = values.into_iter().map(element_text::show);
            Ok(names.into_iter().zip(values).collect())
        }
        Tree::Map(entries) => entries
            .iter()
            .map(|(name, entry)| Ok((name.clone(), cell(entry)?)))
            .collect(),
        value => Ok(vec![("value".to_owned(), cell(value)?)]),
    }
}

fn does_not_fit_a_row(value: &View<'_>) -> RecordError {
    RecordError::new(format!(
        "a row of a .csv file holds single values, an array of rank 1, or a map of single values; the message is {}",
        describe(value)
    ))
}

/// The names of the columns of an array.
fn array_columns(layout: &Layout, count: usize) -> Vec<String> {
    let index_name = layout.names.first();
    index_name
        .and_then(|name| columns_in(name, count))
        .unwrap_or_else(|| match layout.shape.is_empty() {
            true => vec!["value".to_owned()],
            false => (0..count).map(numbered_column).collect(),
        })
}

/// A value as a single field; `None` if the value takes several fields.
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

    fn read_all(path: &Path, reading: &ReadOptions) -> Result<Vec<FileRecord>> {
        let mut reader = open(path, reading)?;
        let mut records = Vec::new();
        while let Some(record) = reader.next()? {
            records.push(record);
        }
        Ok(records)
    }

    fn read(text: &str, reading: &ReadOptions) -> Result<Vec<FileRecord>> {
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
        Value::Array(Layout::new(Dtype::Float64, StorageOrder::C, shape), bytes)
    }

    const RAIN: &str = "# gauges\ntime, north, south\n0, 1.5, 2\n60, , 3\n";

    #[test]
    fn rows_become_arrays_with_their_times() {
        let records = read(RAIN, &ReadOptions::default()).unwrap();
        let Value::Array(mut layout, elements) = array(&[1.5, 2.0], &[2]) else {
            panic!("no array")
        };
        layout.names = vec!["north,south".into()];
        assert_eq!(records[0].value, Value::Array(layout, elements));
        assert_eq!(
            (records[0].timestamp, records[0].next),
            (Some(0.0), NextTimestamp::Follows)
        );
        let Value::Array(_, elements) = &records[1].value else {
            panic!("no array")
        };
        assert!(f64::from_le_bytes(elements[..8].try_into().unwrap()).is_nan());
        assert_eq!(
            (records[1].timestamp, records[1].place),
            (Some(60.0), RecordPosition::Line(4))
        );
    }

    #[test]
    fn columns_keep_their_names_on_the_way() {
        let rows = |head: &str, written: &str| {
            let folder = tempfile::tempdir().unwrap();
            let (from, to) = (folder.path().join("from.csv"), folder.path().join("to.csv"));
            fs::write(&from, format!("{head}\n0,1,2\n60,3,4\n")).unwrap();
            let mut writer = CsvWriter::new(&to);
            for record in read_all(&from, &ReadOptions::default()).unwrap() {
                let Value::Array(layout, elements) = &record.value else {
                    panic!("no array")
                };
                let stamp = MessageMeta {
                    timestamp: record.timestamp.unwrap_or(0.0),
                    ..MessageMeta::default()
                };
                writer
                    .write(&View::Array(layout.clone(), elements), &stamp)
                    .unwrap();
            }
            let text = fs::read_to_string(&to).unwrap();
            assert_eq!(text.lines().next().unwrap(), written);
            assert_eq!(
                read_all(&to, &ReadOptions::default()).unwrap()[1].timestamp,
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
        let reading = ReadOptions {
            columns: vec!["south".into()],
            ..ReadOptions::default()
        };
        assert_eq!(read(RAIN, &reading).unwrap()[1].value, array(&[3.0], &[]));
        let reading = ReadOptions {
            time_column: Some("south".into()),
            ..ReadOptions::default()
        };
        assert_eq!(read(RAIN, &reading).unwrap()[0].timestamp, Some(2.0));
        let ints = ReadOptions {
            columns: vec!["south".into()],
            dtype: Dtype::Int16,
            ..ReadOptions::default()
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
        let narrow = ReadOptions {
            dtype: Dtype::Float32,
            ..ReadOptions::default()
        };
        let why = read("t,k\n0,1e300\n", &narrow).unwrap_err().to_string();
        assert!(
            why.contains("column 'k': 1e300 does not fit an element of type float32"),
            "{why}"
        );
        let why = read("t,k\n0,99999999999999999999\n", &ReadOptions::default())
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
            &ReadOptions {
                delimiter: b';',
                ..ReadOptions::default()
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
            &ReadOptions {
                form: CsvForm::Map,
                ..ReadOptions::default()
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
            &ReadOptions {
                form: CsvForm::Table,
                ..ReadOptions::default()
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
        let why = |text: &str| read(text, &ReadOptions::default()).unwrap_err().to_string();
        assert!(why("").contains("it is empty"));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        fs::write(&path, b"t,b\n0,\xff\n").unwrap();
        let error = read_all(&path, &ReadOptions::default())
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
        for form in [CsvForm::Map, CsvForm::Table] {
            let error = read(
                large,
                &ReadOptions {
                    form,
                    ..ReadOptions::default()
                },
            )
            .unwrap_err()
            .to_string();
            assert!(error.contains("column 'b': '1e999' is beyond"), "{error}");
        }
        assert!(why("t,b\nnoon,1\n").contains("a.csv:2: 'noon' in column 0 is no time"));
        assert!(why("a,a\n1,2\n").contains("column 1 is called 'a'"));
        let reading = ReadOptions {
            time_column: Some("tide".into()),
            ..ReadOptions::default()
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
        let layout = Layout::new(Dtype::Float64, StorageOrder::C, [2]);
        for step in 0..3 {
            let bytes: Vec<u8> = [0.1 + step as f64, f64::INFINITY]
                .iter()
                .flat_map(|n| n.to_le_bytes())
                .collect();
            let next = Some(step as f64 + 1.0).filter(|_| step < 2);
            let stamp = MessageMeta {
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
        let records = read_all(&path, &ReadOptions::default()).unwrap();
        assert_eq!(records[2].value, array(&[2.1, f64::INFINITY], &[2]));
        assert_eq!(
            (records[2].timestamp, records[2].next),
            (Some(2.0), NextTimestamp::Known(None))
        );
    }

    #[test]
    fn what_a_row_cannot_hold_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let create = |name: &str| CsvWriter::new(&folder.path().join(name));
        let stamp = MessageMeta::default();
        let matrix = View::Array(Layout::new(Dtype::UInt8, StorageOrder::C, [1, 1]), &[1]);
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
