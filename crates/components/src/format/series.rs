//! A series of `.npy` files, one a message: `state_{step}.npy` stands for `state_000000.npy` and so on.

use std::path::{Path, PathBuf};

use super::npy::NpyReader;
use super::times::{self, Times};
use super::{Next, Place, Reader, Record};
use crate::{Error, Result};

/// Reads the files of a series one after the other.
pub(super) struct SeriesReader {
    pattern: String,
    times: Option<Vec<Times>>,
    step: u64,
}

/// The file of a step.
pub(crate) fn file_of(pattern: &str, step: u64) -> PathBuf {
    PathBuf::from(pattern.replace("{step}", &format!("{step:06}")))
}

/// The name that stands for the whole: the times of `state_{step}.npy` are in `state.times.csv`.
pub(crate) fn whole(pattern: &str) -> PathBuf {
    PathBuf::from(
        pattern
            .replace("_{step}", "")
            .replace("-{step}", "")
            .replace("{step}", ""),
    )
}

impl SeriesReader {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let pattern = path.to_string_lossy().into_owned();
        let first = file_of(&pattern, 0);
        if !first.exists() {
            return Err(Error::file(
                &first,
                "it is not there, and a series begins with it",
            ));
        }
        let times = times::read(&whole(&pattern))?;
        Ok(SeriesReader {
            pattern,
            times,
            step: 0,
        })
    }
}

impl Reader for SeriesReader {
    fn next(&mut self) -> Result<Option<Record>> {
        let file = file_of(&self.pattern, self.step);
        if !file.exists() {
            return Ok(None);
        }
        let Some(record) = NpyReader::open(&file, Some(false))?.next()? else {
            return Ok(None);
        };
        let time = match &self.times {
            None => None,
            Some(times) => Some(*times.get(self.step as usize).ok_or_else(|| {
                let path = times::beside(&whole(&self.pattern));
                Error::file(
                    &path,
                    format!(
                        "it has {} times, but there is {}",
                        times.len(),
                        file.display()
                    ),
                )
            })?),
        };
        let place = Place::Step(self.step);
        self.step += 1;
        let next = time.map_or(Next::Follows, |(_, next)| Next::Known(next));
        Ok(Some(Record {
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
        let mut times = TimesWriter::beside(&whole(&pattern.to_string_lossy()));
        for (step, elements) in [[1u8], [2]].iter().enumerate() {
            let layout = Layout::new(Dtype::UInt8, StorageOrder::C, [1]);
            write_npy(
                &file_of(&pattern.to_string_lossy(), step as u64),
                &View::Array(layout, elements),
            )
            .unwrap();
            times.write(0.5 * step as f64, None).unwrap();
        }
        let mut reader = SeriesReader::open(&pattern).unwrap();
        let records: Vec<Record> = std::iter::from_fn(|| reader.next().unwrap()).collect();
        assert_eq!(records.len(), 2);
        assert!(matches!(&records[1].value, Value::Array(_, elements) if elements == &[2]));
        assert_eq!(
            (records[1].timestamp, records[1].place),
            (Some(0.5), Place::Step(1))
        );

        let layout = Layout::new(Dtype::UInt8, StorageOrder::C, [1]);
        write_npy(
            &file_of(&pattern.to_string_lossy(), 2),
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
