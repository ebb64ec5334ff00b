//! The times of the messages in `.npy` files, which have no place for them: a CSV file beside it.

use std::path::{Path, PathBuf};

use super::output::Output;
use crate::error::OnFile;
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
    let text = std::fs::read_to_string(&path).on_file(&path, "read")?;
    let mut times = Vec::new();
    for (number, line) in (1..).zip(text.lines()).skip(1) {
        // A writer that was stopped within its last line.
        let cut = || !text.ends_with('\n') && text.ends_with(line);
        let wrong = |what: &str| {
            Error::line(
                &path,
                number,
                format!("\"{what}\" is no timestamp; a line holds `timestamp,next_timestamp`"),
            )
        };
        let (time, next) = line.split_once(',').unwrap_or((line, ""));
        let read = |text: &str| text.trim().parse::<f64>().map_err(|_| wrong(text));
        let both = read(time).and_then(|time| match next.trim() {
            "" => Ok((time, None)),
            next => Ok((time, Some(read(next)?))),
        });
        match both {
            Err(_) if cut() => {}
            both => times.push(both?),
        }
    }
    Ok(Some(times))
}

/// Writes times, one line a message.
pub(crate) struct TimesWriter {
    file: Output,
}

impl TimesWriter {
    /// Begins the times beside a `.npy` file.
    pub(crate) fn beside(path: &Path) -> Self {
        TimesWriter {
            file: Output::new(&beside(path)),
        }
    }

    /// Adds a message's times.
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

    /// Keeps no file open until there is more to write.
    pub(crate) fn rest(&mut self) {
        self.file.rest();
    }
}
