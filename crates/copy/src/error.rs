//! Why a copy has failed as a whole.

use titin_path::PathError;

/// Why a copy has failed as a whole. What fails with single files is in the report
/// ([`CopyReport`](crate::CopyReport)).
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// A source or the destination does not serve.
    #[error("{0}")]
    Place(String),
    /// The other end could not be started.
    #[error("{0}")]
    Far(String),
    /// The path to the other end.
    #[error("{0}")]
    Path(#[from] PathError),
    /// The changes of files cannot be watched.
    #[error("{0}")]
    Watch(String),
    /// The other end sends what it must not.
    #[error("the other end sends something that is no part of a copy: {0}")]
    Malformed(String),
}

pub(crate) type Result<T> = std::result::Result<T, CopyError>;

pub(crate) fn malformed(what: impl ToString) -> CopyError {
    CopyError::Malformed(what.to_string())
}
