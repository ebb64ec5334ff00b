//! The errors of components, sorted by how the user can correct the error.

use std::io;
use std::path::{Path, PathBuf};

/// Why a component fails.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A setting or a port is wrong. The description has to be corrected.
    #[error("{0}")]
    Setting(String),
    /// A file cannot be read or written, or the file's content is wrong.
    #[error("{}{}: {why}", path.display(), line.map(|line| format!(":{line}")).unwrap_or_default())]
    File {
        /// The file.
        path: PathBuf,
        /// The line, in a text file.
        line: Option<u64>,
        /// The reason.
        why: String,
    },
    /// A message has data that the component, with the component's settings, cannot use.
    #[error("{0}")]
    Data(String),
    /// A call of the runtime failed.
    #[error(transparent)]
    Run(#[from] titin_runtime::Error),
}

impl Error {
    pub(crate) fn file(path: &Path, why: impl ToString) -> Self {
        Error::File {
            path: path.to_owned(),
            line: None,
            why: why.to_string(),
        }
    }

    pub(crate) fn line(path: &Path, line: u64, why: impl ToString) -> Self {
        Error::File {
            path: path.to_owned(),
            line: Some(line),
            why: why.to_string(),
        }
    }
}

/// Adds the name of the file to an error of the operating system.
pub(crate) trait OnFile<T> {
    /// `verb` is the failed operation, as in "cannot read it".
    fn on_file(self, path: &Path, verb: &str) -> Result<T, Error>;
}

impl<T> OnFile<T> for io::Result<T> {
    fn on_file(self, path: &Path, verb: &str) -> Result<T, Error> {
        self.map_err(|error| Error::file(path, format!("cannot {verb} it: {error}")))
    }
}
