//! The times of the messages in a `.npy` file. The format has no place for times, so the times are
//! in a CSV file beside the `.npy` file.

use std::path::{Path, PathBuf};

use super::output::Output;
use crate::error::OnFile;
use crate::{Error, Result};

/// The timestamp of a message and, if known, the timestamp of the next message.
pub(super) type Times = (f64, Option<f64>);

/// The file of times beside a `.npy` file: `state.times.csv` beside `state.npy`.
pub(super) fn beside(path: &Path) -> PathBuf {
    path.with_extension("times.csv")
}

/// Reads the times beside a file; `None` if there are no times. An incomplete last line, left by a
/// killed writer, is ignored.
pub(super) fn read(path: &Path) -> Result<Option<Vec<Times>>> {
    let path = beside(path);
    if !path.exists() {
        return Ok(None);
    }
    let text = std::fs::read_to_string(&path).on_file(&path, "read")?;
    let mut times = Vec::new();
    for (number, line) in (1..).zip(text.lines()).skip(1) {
        match parse_times(line) {
            Ok(parsed) => times.push(parsed),
            Err(_) if !text.ends_with('\n') && text.ends_with(line) => {}
            Err(wrong) => {
                let why =
                    format!("\"{wrong}\" is no timestamp; a line holds `timestamp,next_timestamp`");
                return Err(Error::line(&path, number, why));
            }
        }
    }
    Ok(Some(times))
}

/// The times in a line. The error is the text that is no number.
fn parse_times(line: &str) -> Result<Times, &str> {
    let number = |text: &'_ str| text.trim().parse::<f64>().ok();
    let (time, next) = line.split_once(',').unwrap_or((line, ""));
    let timestamp = number(time).ok_or(time)?;
    match next.trim() {
        "" => Ok((timestamp, None)),
        next => Ok((timestamp, Some(number(next).ok_or(next)?))),
    }
}

/// Writes times, one line for each message.
pub(crate) struct TimesWriter {
    file: Output,
}

impl TimesWriter {
    /// The file of times beside a `.npy` file.
    pub(crate) fn beside(path: &Path) -> Self {
        TimesWriter {
            file: Output::new(&beside(path)),
        }
    }

    /// Adds the times of a message.
    pub(crate) fn write(&mut self, timestamp: f64, next: Option<f64>) -> Result<()> {
        let next = next.map(|next| format!("{next:?}")).unwrap_or_default();
        let head = if self.file.is_begun() {
            ""
        } else {
            "timestamp,next_timestamp\n"
        };
        self.file
            .append(format!("{head}{timestamp:?},{next}\n").as_bytes())
    }

    /// Closes the file until there is more to write.
    pub(crate) fn pause(&mut self) {
        self.file.pause();
    }
}
