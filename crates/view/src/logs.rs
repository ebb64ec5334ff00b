//! The ends of log files.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use serde::Serialize;
use titin_os::regular_file::{self, Links};

/// The end of a log.
#[derive(Debug, Default, PartialEq, Serialize)]
pub(crate) struct LogEnd {
    pub(crate) text: String,
    /// Whether lines before the end are left out.
    pub(crate) cut: bool,
}

impl LogEnd {
    /// The last `most` bytes of a file, from the beginning of a line on if there is one. Nothing if the
    /// file is not there, or is no file: the program in whose folder it is may have put anything there.
    pub(crate) fn read(path: &Path, most: u64) -> LogEnd {
        read_end(path, most).unwrap_or_default()
    }
}

/// Opens a file that is a file: the programs of a run may have put anything into the run directory.
pub(crate) fn open_file(path: &Path) -> io::Result<File> {
    let file = regular_file::open(path, Links::Followed)?;
    file.ok_or_else(|| io::Error::other("it is no file"))
}

fn read_end(path: &Path, most: u64) -> io::Result<LogEnd> {
    let mut file = open_file(path)?;
    let from = file.metadata()?.len().saturating_sub(most);
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(from))?;
    file.take(most).read_to_end(&mut bytes)?;
    let whole = String::from_utf8_lossy(&bytes);
    let cut = from > 0;
    let start = match whole.find('\n').filter(|_| cut) {
        Some(newline) => newline + 1,
        None => 0,
    };
    Ok(LogEnd {
        text: whole[start..].to_owned(),
        cut,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_begins_with_a_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stdout.txt");
        std::fs::write(&path, b"first\nsecond \xff\nthird").unwrap();
        let end = |most| LogEnd::read(&path, most);
        assert_eq!(end(100).text, "first\nsecond \u{fffd}\nthird");
        assert!(!end(100).cut);
        assert_eq!(end(16).text, "second \u{fffd}\nthird");
        assert_eq!((end(3).text.as_str(), end(3).cut), ("ird", true));
    }

    #[test]
    fn what_is_no_file_is_empty() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        for path in [
            pipe,
            folder.path().join("none"),
            folder.path().to_owned(),
            "/dev/zero".into(),
        ] {
            assert_eq!(LogEnd::read(&path, 10), LogEnd::default(), "{path:?}");
        }
    }
}
