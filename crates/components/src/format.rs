//! Files of messages: NumPy `.npy`, CSV and JSON lines.
//!
//! Readers give a single record at a time and keep as little as possible, so that files may be
//! larger than memory. Writers leave a valid file after every message, so that no message is lost
//! however the run ends.

mod csv;
mod json_lines;
mod npy;
mod output;
mod series;
mod times;

use std::path::Path;

use titin_runtime::{Dtype, Overlay};

use crate::data::{MessageMeta, Value, View};
use crate::element_text::NumberError;
use crate::file_names::has_step;
use crate::{Error, Result};

pub(crate) use csv::cells;
pub(crate) use npy::{array_of, write as write_npy};
pub(crate) use times::TimesWriter;

/// The format of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Npy,
    Csv,
    Lines,
}

/// The values that a CSV reader makes from rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum CsvForm {
    /// Each row becomes an array. A single column gives single values.
    #[default]
    Array,
    /// Each row becomes a map from column to value.
    Map,
    /// The whole file becomes a single map from column to array.
    Table,
}

/// The options for reading a file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ReadOptions {
    pub(crate) format: Format,
    /// Whether the first axis of a `.npy` file is time; `None` if the file of times decides.
    pub(crate) time_axis: Option<bool>,
    /// The column of a CSV file with the timestamps; `None` looks for the usual names.
    pub(crate) time_column: Option<String>,
    /// Whether columns of a CSV file may be times.
    pub(crate) takes_times: bool,
    /// The columns with values. An empty list means all columns without times.
    pub(crate) columns: Vec<String>,
    pub(crate) form: CsvForm,
    /// The element type of the arrays from a CSV file.
    pub(crate) dtype: Dtype,
    pub(crate) delimiter: u8,
}

/// A message in a file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FileRecord {
    pub(crate) value: Value,
    /// The timestamp, if the file has one.
    pub(crate) timestamp: Option<f64>,
    pub(crate) next: NextTimestamp,
    pub(crate) settings: Option<Overlay>,
    /// The position in the file, for error messages.
    pub(crate) place: RecordPosition,
}

/// The next timestamp of a record.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum NextTimestamp {
    /// The timestamp of the record that follows.
    Follows,
    /// The file's next timestamp; `None` for the last message.
    Known(Option<f64>),
}

/// The position of a record in its file: a line, or a step of a `.npy` file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecordPosition {
    Line(u64),
    Step(u64),
}

/// Reads the records of a file in order.
pub(crate) trait RecordReader {
    fn next(&mut self) -> Result<Option<FileRecord>>;

    /// The names of the columns with values, if the head of the file names them.
    fn columns(&self) -> Option<Vec<String>> {
        None
    }
}

/// Appends messages to a file.
pub(crate) trait MessageWriter {
    fn write(&mut self, value: &View<'_>, meta: &MessageMeta) -> Result<()>;

    /// Closes the file until there is more to write.
    fn pause(&mut self);
}

/// Why the content of a file is wrong, or why a file cannot hold a message.
#[derive(Debug, PartialEq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct RecordError(String);

impl RecordError {
    pub(crate) fn new(text: impl Into<String>) -> RecordError {
        RecordError(text.into())
    }
}

impl From<NumberError> for RecordError {
    fn from(error: NumberError) -> RecordError {
        RecordError(error.to_string())
    }
}

impl Format {
    pub(crate) const ENDINGS: [(&str, Format); 5] = [
        ("npy", Format::Npy),
        ("csv", Format::Csv),
        ("jsonl", Format::Lines),
        ("ndjson", Format::Lines),
        ("json", Format::Lines),
    ];

    /// The format of a file, by the ending of the file's name.
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
            takes_times: true,
            columns: Vec::new(),
            form: CsvForm::Array,
            dtype: Dtype::Float64,
            delimiter: b',',
        }
    }
}

/// Opens a file or a series of files for reading.
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

/// A file for writing. The first message creates the file, or replaces an old file.
pub(crate) fn writer(path: &Path, format: Format) -> Box<dyn MessageWriter> {
    match format {
        Format::Npy => Box::new(npy::NpyWriter::new(path)),
        Format::Csv => Box::new(csv::CsvWriter::new(path)),
        Format::Lines => Box::new(json_lines::LinesWriter::new(path)),
    }
}
