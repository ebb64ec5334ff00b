//! A series of `.npy` files with a single message in each file: `state_{step}.npy` stands for
//! `state_000000.npy`, `state_000001.npy` and so on.

use std::path::Path;

use super::npy::NpyReader;
use super::times::{self, Times};
use super::{FileRecord, NextTimestamp, RecordPosition, RecordReader};
use crate::file_names::{series_name, step_file};
use crate::{Error, Result};

/// Reads the files of a series in order.
pub(super) struct SeriesReader {
    pattern: String,
    times: Option<Vec<Times>>,
    step: u64,
}

impl SeriesReader {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let pattern = path.to_string_lossy().into_owned();
        let first = step_file(&pattern, 0);
        if !first.exists() {
            return Err(Error::file(
                &first,
                "it is not there, and a series begins with it",
            ));
        }
        let times = times::read(&series_name(&pattern))?;
        Ok(SeriesReader {
            pattern,
            times,
            step: 0,
        })
    }
}

impl SeriesReader {
    /// The times of the current step, if there is a file of times.
    fn time(&self, file: &Path) -> Result<Option<Times>> {
        let Some(times) = &self.times else {
            return Ok(None);
        };
        let time = times.get(self.step as usize).ok_or_else(|| {
            let why = format!(
                "it has {} times, but there is {}",
                times.len(),
                file.display()
            );
            Error::file(&times::beside(&series_name(&self.pattern)), why)
        })?;
        Ok(Some(*time))
    }
}

impl RecordReader for SeriesReader {
    fn next(&mut self) -> Result<Option<FileRecord>> {
        let file = step_file(&self.pattern, self.step);
        if !file.exists() {
            return Ok(None);
        }
        let Some(record) = NpyReader::open(&file, Some(false))?.next()? else {
            return Ok(None);
        };
        let time = self.time(&file)?;
        let place = RecordPosition::Step(self.step);
        self.step += 1;
        let next = time.map_or(NextTimestamp::Follows, |(_, next)| {
            NextTimestamp::Known(next)
        });
        Ok(Some(FileRecord {
            timestamp: time.map(|(time, _)| time),
            next,
            place,
            ..record
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Value, View};
    use crate::format::{TimesWriter, write_npy};
    use titin_runtime::{Dtype, Layout, StorageOrder};

    #[test]
    fn files_are_read_in_turn_with_their_times() {
        let folder = tempfile::tempdir().unwrap();
        let pattern = folder.path().join("state_{step}.npy");
        assert!(
            SeriesReader::open(&pattern)
                .err()
                .unwrap()
                .to_string()
                .contains("state_000000.npy: it is not there")
        );
        let mut times = TimesWriter::beside(&series_name(&pattern.to_string_lossy()));
        for (step, elements) in [[1u8], [2]].iter().enumerate() {
            let layout = Layout::new(Dtype::UInt8, StorageOrder::C, [1]);
            write_npy(
                &step_file(&pattern.to_string_lossy(), step as u64),
                &View::Array(layout, elements),
            )
            .unwrap();
            times.write(0.5 * step as f64, None).unwrap();
        }
        let mut reader = SeriesReader::open(&pattern).unwrap();
        let records: Vec<FileRecord> = std::iter::from_fn(|| reader.next().unwrap()).collect();
        assert_eq!(records.len(), 2);
        assert!(matches!(&records[1].value, Value::Array(_, elements) if elements == &[2]));
        assert_eq!(
            (records[1].timestamp, records[1].place),
            (Some(0.5), RecordPosition::Step(1))
        );

        let layout = Layout::new(Dtype::UInt8, StorageOrder::C, [1]);
        write_npy(
            &step_file(&pattern.to_string_lossy(), 2),
            &View::Array(layout, &[3]),
        )
        .unwrap();
        let error = reader.next().unwrap_err().to_string();
        assert!(
            error.contains("state.times.csv: it has 2 times, but there is"),
            "{error}"
        );
    }
}
