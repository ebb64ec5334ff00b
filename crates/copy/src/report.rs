//! What a copy has done, and how far it is.

use serde::{Deserialize, Serialize};

/// What a copy has done.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyReport {
    /// The files whose bytes were sent.
    pub files: u64,
    /// The bytes that were sent of these files.
    pub bytes: u64,
    /// The files that were there already, and of which no byte was sent.
    pub unchanged: u64,
    /// What could not be copied.
    pub failed: Vec<FailedFile>,
}

/// A file, link or directory that could not be copied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedFile {
    /// Its name.
    pub path: String,
    /// Why.
    pub why: String,
}

/// The most files of which a report says why they could not be copied.
pub(crate) const MOST_FAILED: usize = 1000;

impl CopyReport {
    pub(crate) fn note_failed(&mut self, path: &[u8], why: impl ToString) {
        if self.failed.len() < MOST_FAILED {
            self.failed.push(FailedFile {
                path: String::from_utf8_lossy(path).into_owned(),
                why: why.to_string(),
            });
        }
    }
}

/// Hears how far a copy is. The thread of the copy calls, so no method may take long.
pub trait CopyProgress {
    /// So many bytes of so many files are to be sent, as far as is known.
    fn known(&mut self, files: u64, bytes: u64);
    /// The bytes of a file begin to be sent; or would be, in a copy that only looks.
    fn begun(&mut self, path: &str, size: u64);
    /// So many bytes more were sent, or need not be sent.
    fn moved(&mut self, bytes: u64);
}
