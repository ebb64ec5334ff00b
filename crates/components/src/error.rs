//! What can go wrong, by what the user can mend.

use std::io;
use std::path::{Path, PathBuf};

/// Why a component fails.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A setting, or a port that the description gives, is wrong: correct the description.
    #[error("{0}")]
    Setting(String),
    /// A file cannot be read or written, or holds what it should not.
    #[error("{}{}: {why}", path.display(), line.map(|line| format!(":{line}")).unwrap_or_default())]
    File {
        /// The file.
        path: PathBuf,
        /// The line, in a text file.
        line: Option<u64>,
        /// What is wrong.
        why: String,
    },
    /// A message carries what this component cannot use as it was told to.
    #[error("{0}")]
    Data(String),
    /// A call of the runtime failed.
    #[error(transparent)]
    Run(#[from] titin_runtime::Error),
}

impl Error {
    pub(crate) fn file(path: &Path, why: impl Into<String>) -> Self {
        Error::File {
            path: path.to_owned(),
            line: None,
            why: why.into(),
        }
    }

    pub(crate) fn line(path: &Path, line: u64, why: impl Into<String>) -> Self {
        Error::File {
            path: path.to_owned(),
            line: Some(line),
            why: why.into(),
        }
    }
}

/// Says which file an operating system's error is about.
pub(crate) trait OnFile<T> {
    /// `doing` is what was tried, as in "cannot read it".
    fn on_file(self, path: &Path, doing: &str) -> Result<T, Error>;
}

impl<T> OnFile<T> for io::Result<T> {
    fn on_file(self, path: &Path, doing: &str) -> Result<T, Error> {
        self.map_err(|error| Error::file(path, format!("cannot {doing} it: {error}")))
    }
}
