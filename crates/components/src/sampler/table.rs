//! The table of settings: a row for each run of a member, a column for each setting.

use std::path::{Path, PathBuf};

use titin_runtime::Setting;

use crate::data::Value;
use crate::element_text;
use crate::file_names::locate;
use crate::format::{CsvForm, FileRecord, Format, ReadOptions, RecordReader, open};
use crate::settings::{ComponentSettings, DELIMITERS, words};
use crate::{Error, Result};

/// The settings of a row.
pub(super) struct Row {
    /// The number of the row, from 0.
    pub(super) number: u64,
    pub(super) settings: Vec<(String, Setting)>,
}

/// A table, read row by row.
pub(super) struct Table {
    path: PathBuf,
    columns: Vec<String>,
    /// The first record, which was read for the names of the columns.
    first: Option<FileRecord>,
    records: Box<dyn RecordReader>,
    next: u64,
}

impl Table {
    pub(super) fn open(
        settings: &ComponentSettings<'_>,
        name: &str,
        folders: &[PathBuf],
    ) -> Result<Self> {
        let path = locate(Path::new(name), folders)?;
        Table::read(path, settings.reading("", name)?)
    }

    /// Opens a table, and reads the names of its columns.
    fn read(path: PathBuf, mut reading: ReadOptions) -> Result<Self> {
        let chosen = std::mem::take(&mut reading.columns);
        match reading.format {
            Format::Csv => {
                reading.form = CsvForm::Map;
                reading.takes_times = false;
                reading.columns = chosen.clone();
            }
            Format::Npy => reading.time_axis = Some(true),
            Format::Lines => {}
        }
        let mut records = open(&path, &reading)?;
        let first = records.next()?;
        let found = match first.as_ref().map(|record| &record.value) {
            Some(Value::Map(entries)) => entries.iter().map(|(name, _)| name.clone()).collect(),
            Some(_) => chosen,
            // A table without rows may have a head.
            None => records.columns().unwrap_or(chosen),
        };
        if first.is_some() && found.is_empty() {
            let why = "its columns have no names; write `columns: a, b`, the names of the settings";
            return Err(Error::file(&path, why));
        }
        Ok(Table {
            path,
            columns: found,
            first,
            records,
            next: 0,
        })
    }

    /// The names of the settings.
    pub(super) fn columns(&self) -> &[String] {
        &self.columns
    }

    /// The next row; `None` behind the last.
    pub(super) fn next(&mut self) -> Result<Option<Row>> {
        let record = match self.first.take() {
            Some(record) => Some(record),
            None => self.records.next()?,
        };
        let Some(record) = record else {
            return Ok(None);
        };
        let number = self.next;
        self.next += 1;
        let settings = self.settings(number, record.value)?;
        Ok(Some(Row { number, settings }))
    }

    fn settings(&self, number: u64, value: Value) -> Result<Vec<(String, Setting)>> {
        let values = match value {
            Value::Map(entries) => entries,
            Value::Array(layout, elements) => {
                let numbers = element_text::read(layout.dtype, &elements);
                let numbers = numbers.map(|number| Value::Float(element_text::as_f64(number)));
                let numbers: Vec<Value> = numbers.collect();
                if numbers.len() != self.columns.len() {
                    let why = format!(
                        "row {number} has {} values, and there are {} columns",
                        numbers.len(),
                        self.columns.len()
                    );
                    return Err(Error::file(&self.path, why));
                }
                self.columns.iter().cloned().zip(numbers).collect()
            }
            _ => {
                return Err(Error::file(
                    &self.path,
                    format!("row {number} is no row of settings"),
                ));
            }
        };
        let names = values.iter().map(|(name, _)| name);
        if !names.eq(&self.columns) {
            let why = format!("row {number} has other columns than the first row");
            return Err(Error::file(&self.path, why));
        }
        let setting = |(name, value): (String, Value)| match setting_of(&value) {
            Some(setting) => Ok((name, setting)),
            None => {
                let why = match value {
                    Value::Float(_) | Value::Float32(_) => {
                        format!(
                            "row {number}: '{name}' is not finite, and no setting can have such a value"
                        )
                    }
                    _ => format!("row {number} has no value for '{name}' that a setting can have"),
                };
                Err(Error::file(&self.path, why))
            }
        };
        values.into_iter().map(setting).collect()
    }
}

/// The names of the columns of a table, read as the sampler reads them. `format`, `delimiter` and `columns` are the
/// settings of the sampler.
///
/// # Errors
/// The table cannot be read, or has no names of columns.
pub(crate) fn columns(
    path: &Path,
    format: Option<&str>,
    delimiter: Option<&str>,
    columns: Option<&str>,
) -> Result<Vec<String>> {
    fn meaning<T: Copy>(word: Option<&str>, words: &[(&str, T)]) -> Option<T> {
        let found = words.iter().find(|(known, _)| Some(*known) == word)?;
        Some(found.1)
    }
    let reading = ReadOptions {
        format: meaning(format, &Format::ENDINGS).map_or_else(|| Format::of(path), Ok)?,
        delimiter: meaning(delimiter, &DELIMITERS).unwrap_or(b','),
        columns: words(columns.unwrap_or_default()),
        ..ReadOptions::default()
    };
    Ok(Table::read(path.to_owned(), reading)?.columns)
}

/// A cell as a setting; `None` for an empty cell.
fn setting_of(value: &Value) -> Option<Setting> {
    Some(match value {
        Value::Bool(flag) => Setting::Bool(*flag),
        Value::Int(number) => Setting::Int(*number),
        Value::Float(number) if number.is_finite() => Setting::Float(*number),
        Value::Float32(number) if number.is_finite() => Setting::Float((*number).into()),
        Value::Text(text) => Setting::Str(text.clone()),
        _ => return None,
    })
}

/// A setting as the data of a message.
pub(super) fn data_of(setting: &Setting) -> Value {
    match setting {
        Setting::Bool(flag) => Value::Bool(*flag),
        Setting::Int(number) => Value::Int(*number),
        Setting::Float(number) => Value::Float(*number),
        Setting::Str(text) => Value::Text(text.clone()),
        other => Value::Text(other.to_string()),
    }
}
