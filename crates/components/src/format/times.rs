//! The times of the messages in `.npy` files, which have no place for them: a CSV file beside it.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::error::At;
use crate::{Error, Result};

/// One message's time and, where known, the next one's.
pub(super) type Times = (f64, Option<f64>);

/// `state.npy` has its times in `state.times.csv`.
pub(super) fn beside(path: &Path) -> PathBuf {
    path.with_extension("times.csv")
}

/// Reads the times that stand beside a file; `None` if there are none.
pub(super) fn read(path: &Path) -> Result<Option<Vec<Times>>> {
    let path = beside(path);
    if !path.exists() {
        return Ok(None);
    }
    let text = std::fs::read_to_string(&path).at(&path, "read")?;
    let mut times = Vec::new();
    for (number, line) in (1..).zip(text.lines()).skip(1) {
        let wrong = |what: &str| {
            Error::line(
                &path,
                number,
                format!("\"{what}\" is no timestamp; a line holds `timestamp,next_timestamp`"),
            )
        };
        let (time, next) = line.split_once(',').unwrap_or((line, ""));
        let read = |text: &str| text.trim().parse::<f64>().map_err(|_| wrong(text));
        times.push((read(time)?, if next.trim().is_empty() { None } else { Some(read(next)?) }));
    }
    Ok(Some(times))
}

/// Writes times, one line a message.
pub(crate) struct TimesWriter {
    path: PathBuf,
    file: File,
}

impl TimesWriter {
    /// Begins the times beside a `.npy` file.
    pub(crate) fn beside(path: &Path) -> Result<Self> {
        let path = beside(path);
        let mut file = File::create(&path).at(&path, "create")?;
        writeln!(file, "timestamp,next_timestamp").at(&path, "write")?;
        Ok(TimesWriter { path, file })
    }

    /// Adds a message's times.
    pub(crate) fn write(&mut self, timestamp: f64, next: Option<f64>) -> Result<()> {
        let next = next.map(|next| format!("{next:?}")).unwrap_or_default();
        self.file.write_all(format!("{timestamp:?},{next}\n").as_bytes()).at(&self.path, "write")
    }
}
