//! Files of messages: NumPy `.npy`, CSV and JSON lines.
//!
//! Readers give one record at a time and keep no more than they must, so that files may be larger than memory.
//! Writers leave a whole file after every message, so that what was received is there however a run ends.

mod csv;
mod json_lines;
mod npy;
mod output;
mod series;
mod times;

use std::path::Path;

use titin_runtime::{Dtype, Overlay};

use crate::data::{MessageMeta, Value, View};
use crate::file_names::has_step;
use crate::{Error, Result};

pub(crate) use npy::{array_of, write as write_npy};
pub(crate) use times::TimesWriter;

/// The formats, by the endings of their files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Npy,
    Csv,
    Lines,
}

/// What a record of a CSV file becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum CsvForm {
    /// Each row an array; a single column gives single values.
    #[default]
    Array,
    /// Each row a map from column to value.
    Map,
    /// The whole file one map from column to array.
    Table,
}

/// JoinMode a file is to be read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ReadOptions {
    pub(crate) format: Format,
    /// Whether the first axis of a `.npy` file is time; `None` if its file of times says so.
    pub(crate) time_axis: Option<bool>,
    /// The column with the timestamps of a CSV file; `None` looks for the usual names.
    pub(crate) time_column: Option<String>,
    /// The columns with values; empty for all others.
    pub(crate) columns: Vec<String>,
    pub(crate) form: CsvForm,
    /// Elements of the arrays made from a CSV file.
    pub(crate) dtype: Dtype,
    pub(crate) delimiter: u8,
}

/// A message in a file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FileRecord {
    pub(crate) value: Value,
    /// Its time, if the file has one for it.
    pub(crate) timestamp: Option<f64>,
    pub(crate) next: NextTimestamp,
    pub(crate) settings: Option<Overlay>,
    /// Where it stands, for messages to people: a line or, in a `.npy` file, a step.
    pub(crate) place: RecordPosition,
}

/// The next timestamp of a record.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum NextTimestamp {
    /// It is the time of the record that follows.
    Follows,
    /// The file says it.
    Known(Option<f64>),
}

/// Where a record stands in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecordPosition {
    Line(u64),
    Step(u64),
}

/// Gives the records of a file from its beginning to its end.
pub(crate) trait RecordReader {
    fn next(&mut self) -> Result<Option<FileRecord>>;
}

/// Appends messages to a file.
pub(crate) trait MessageWriter {
    fn write(&mut self, value: &View<'_>, stamp: &MessageMeta) -> Result<()>;

    /// Keeps no file open until there is more to write.
    fn rest(&mut self);
}

impl Format {
    pub(crate) const ENDINGS: [(&str, Format); 5] = [
        ("npy", Format::Npy),
        ("csv", Format::Csv),
        ("jsonl", Format::Lines),
        ("ndjson", Format::Lines),
        ("json", Format::Lines),
    ];

    /// The format of a file, by its ending.
    pub(crate) fn of(path: &Path) -> Result<Format> {
        let ending = path
            .extension()
            .map(|ending| ending.to_string_lossy().to_lowercase());
        let known = Format::ENDINGS
            .iter()
            .find(|(known, _)| ending.as_deref() == Some(known));
        known.map(|(_, format)| *format).ok_or_else(|| {
            Error::file(
                path,
                "its ending says no format that is known; name it .npy, .csv or .jsonl, or set `format`",
            )
        })
    }
}

impl Default for ReadOptions {
    fn default() -> Self {
        ReadOptions {
            format: Format::Lines,
            time_axis: None,
            time_column: None,
            columns: Vec::new(),
            form: CsvForm::Array,
            dtype: Dtype::Float64,
            delimiter: b',',
        }
    }
}

/// Opens a file to read, or a series of them.
pub(crate) fn open(path: &Path, reading: &ReadOptions) -> Result<Box<dyn RecordReader>> {
    Ok(match reading.format {
        Format::Npy if has_step(&path.to_string_lossy()) => {
            Box::new(series::SeriesReader::open(path)?)
        }
        Format::Npy => Box::new(npy::NpyReader::open(path, reading.time_axis)?),
        Format::Csv => csv::open(path, reading)?,
        Format::Lines => Box::new(json_lines::LinesReader::open(path)?),
    })
}

/// A file to write, which is created by its first message; one that is there is replaced then.
pub(crate) fn writer(path: &Path, format: Format) -> Box<dyn MessageWriter> {
    match format {
        Format::Npy => Box::new(npy::NpyWriter::new(path)),
        Format::Csv => Box::new(csv::CsvWriter::new(path)),
        Format::Lines => Box::new(json_lines::LinesWriter::new(path)),
    }
}
