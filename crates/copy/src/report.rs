//! What a copy has done, and how far it is.

use std::time::Duration;

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
    /// How many files, links and directories the receiver has removed, or would remove.
    pub removed: u64,
    /// The paths of these, or the first part of them. What was in a removed directory is not named.
    pub removed_paths: Vec<String>,
    /// How much could not be copied.
    pub not_copied: u64,
    /// What could not be copied, or the first part of it.
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

/// The most files that a report names, and the most characters of each text.
const MOST_NAMED: usize = 1000;
const LONGEST_TEXT: usize = 500;

impl CopyReport {
    pub(crate) fn note_failed(&mut self, path: &[u8], why: impl ToString) {
        self.not_copied += 1;
        if self.failed.len() < MOST_NAMED {
            self.failed.push(FailedFile {
                path: short(&String::from_utf8_lossy(path)),
                why: short(&why.to_string()),
            });
        }
    }

    /// Adds something that the receiver has removed, with so many others in it.
    pub(crate) fn note_removed(&mut self, path: &[u8], count: u64) {
        self.removed += count;
        if self.removed_paths.len() < MOST_NAMED {
            self.removed_paths
                .push(short(&String::from_utf8_lossy(path)));
        }
    }

    /// Adds what could not be copied at the other end.
    pub(crate) fn add_failed(&mut self, other: CopyReport) {
        self.not_copied = self.not_copied.saturating_add(other.not_copied);
        let room = MOST_NAMED.saturating_sub(self.failed.len());
        self.failed.extend(other.failed.into_iter().take(room));
    }
}

fn short(text: &str) -> String {
    text.chars().take(LONGEST_TEXT).collect()
}

/// Hears how far a copy is. The thread of the copy calls, so no method may take long.
pub trait CopyProgress {
    /// So many bytes of so many files are to be sent, as far as is known.
    fn known(&mut self, files: u64, bytes: u64);
    /// The bytes of a file begin to be sent; or would be, in a copy that only looks.
    fn begun(&mut self, path: &str, size: u64);
    /// So many bytes more were sent, or need not be sent.
    fn moved(&mut self, bytes: u64);
    /// A round of a copy that goes on is over, and has taken so long.
    fn round_over(&mut self, report: &CopyReport, took: Duration);
}
