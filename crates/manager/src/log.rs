//! The log of a run: records of the manager and of every instance, with wall-clock and simulated
//! time.
//!
//! ```text
//! 2026-11-21 20:45:01.123  INFO     macro      t=0.35  message
//! ```

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write as _};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::event::LogRecord;
use crate::plan::Plan;

/// The log file of a run.
#[derive(Debug)]
pub struct Log {
    file: File,
    plan: Arc<Plan>,
    width: usize,
    zone: TimeZone,
}

impl Log {
    /// A log in a file, after the file's present end.
    pub fn new(file: File, plan: Arc<Plan>) -> Self {
        let width = plan
            .instances
            .iter()
            .map(|planned| planned.name.len())
            .max()
            .unwrap_or(0)
            .clamp(7, 24);
        Log {
            file,
            plan,
            width,
            zone: TimeZone::system(),
        }
    }

    /// Appends a record, and returns the line.
    ///
    /// # Errors
    /// If the file cannot be written: the disk may be full.
    pub fn write(&mut self, record: &LogRecord) -> io::Result<String> {
        let line = self.line(record);
        self.file.write_all(line.as_bytes())?;
        self.file.write_all(b"\n")?;
        Ok(line)
    }

    /// Appends text unchanged.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write_text(&mut self, text: &str) -> io::Result<()> {
        self.file.write_all(text.as_bytes())
    }

    fn line(&self, record: &LogRecord) -> String {
        let name = record
            .instance
            .map_or("manager", |id| &self.plan.instances[id].name);
        let (level, width) = (record.level.name(), self.width);
        let mut line = format!("{}  {level:<8} {name:<width$}  ", self.time(record.time));
        if let Some(simulated) = record.simulated {
            // Debug output has exponents for very large and small numbers, so the text stays short.
            let _ = write!(
                line,
                "t={}  ",
                format!("{simulated:?}").trim_end_matches(".0")
            );
        }
        // Further lines are indented, so that only a record begins with a time.
        let mut lines = record.text.lines();
        line.push_str(lines.next().unwrap_or_default());
        for more in lines {
            let _ = write!(line, "\n    {more}");
        }
        line
    }

    fn time(&self, seconds: Option<f64>) -> String {
        let micros = (seconds.unwrap_or_else(now) * 1e6) as i64;
        let time = Timestamp::from_microsecond(micros).unwrap_or(Timestamp::UNIX_EPOCH);
        time.to_zoned(self.zone.clone())
            .strftime("%Y-%m-%d %H:%M:%S%.3f")
            .to_string()
    }
}

/// Whether a letter is a command to a terminal, or changes the terminal's order of letters.
pub fn is_command(letter: char) -> bool {
    let reorders = matches!(letter, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    letter.is_control() || reorders
}

/// The current time, in seconds since the Unix epoch.
pub(crate) fn now() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs_f64()
}

/// The current time, in the form for the name of a run directory.
pub fn timestamp() -> String {
    Timestamp::now()
        .to_zoned(TimeZone::system())
        .strftime("%Y%m%d_%H%M%S")
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Level;

    #[test]
    fn a_record_is_a_line_with_both_times() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut log = Log::new(File::create(&path).unwrap(), Arc::new(Plan::default()));
        log.zone = TimeZone::UTC;
        let text = "first\nsecond".into();
        let record = LogRecord {
            level: Level::Warning,
            instance: None,
            time: Some(1.5),
            simulated: Some(0.25),
            text,
        };
        log.write(&record).unwrap();
        let written = std::fs::read_to_string(path).unwrap();
        assert_eq!(
            written,
            "1970-01-01 00:00:01.500  WARNING  manager  t=0.25  first\n    second\n"
        );
        assert_eq!(timestamp().len(), 15);
        let at = |simulated| {
            log.line(&LogRecord {
                simulated: Some(simulated),
                ..record.clone()
            })
        };
        assert!(
            at(1e300).contains("  t=1e300  ") && at(20.0).contains("  t=20  "),
            "{}",
            at(1e300)
        );
    }

    #[test]
    fn a_full_disk_is_an_error() {
        let full = std::fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .unwrap();
        let mut log = Log::new(full, Arc::new(Plan::default()));
        let record = LogRecord {
            level: Level::Info,
            instance: None,
            time: None,
            simulated: None,
            text: "x".into(),
        };
        assert_eq!(
            log.write(&record).unwrap_err().kind(),
            io::ErrorKind::StorageFull
        );
    }
}
