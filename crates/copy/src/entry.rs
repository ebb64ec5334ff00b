//! What the sender tells of a file, a link or a directory.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path};

use serde::{Deserialize, Serialize};

use crate::error::{Result, malformed};

/// The longest path of an entry, in bytes: that of the system.
const LONGEST_PATH: usize = 4096;

/// A file, a link or a directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// The path below the destination. Its first component is the name of a source.
    #[serde(with = "serde_bytes")]
    path: Vec<u8>,
    pub(crate) kind: EntryKind,
    /// The permissions.
    pub(crate) mode: u32,
    /// When it was changed last: seconds since 1970, and nanoseconds.
    pub(crate) modified: (i64, u32),
    /// Whether it was changed so recently that it may have changed since without another size or time: clocks of file systems
    /// are coarse.
    pub(crate) is_recent: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum EntryKind {
    Directory {
        /// Whether all that is in the directory is told, too.
        is_listed: bool,
    },
    File {
        size: u64,
    },
    Link(#[serde(with = "serde_bytes")] Vec<u8>),
}

impl Entry {
    pub(crate) fn new(path: &Path, kind: EntryKind, mode: u32, modified: (i64, u32)) -> Self {
        Entry {
            path: path.as_os_str().as_bytes().to_vec(),
            kind,
            mode: mode & 0o777,
            modified,
            is_recent: false,
        }
    }

    pub(crate) fn path(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.path))
    }

    /// The bytes of the file; none of a link or a directory.
    pub(crate) fn size(&self) -> u64 {
        match self.kind {
            EntryKind::File { size } => size,
            _ => 0,
        }
    }

    /// The bytes of the text of a link; none of a file or a directory.
    pub(crate) fn link_length(&self) -> usize {
        match &self.kind {
            EntryKind::Link(text) => text.len(),
            _ => 0,
        }
    }

    /// Checks an entry that another process tells.
    ///
    /// # Errors
    /// [`CopyError::Malformed`](crate::CopyError::Malformed) for a path that leads out of the destination.
    pub(crate) fn check(&self) -> Result<()> {
        let is_below = self
            .path()
            .components()
            .all(|part| matches!(part, Component::Normal(_)));
        let is_path =
            !self.path.is_empty() && self.path.len() <= LONGEST_PATH && !self.path.contains(&0);
        let is_plain = self.path() == self.path().components().collect::<std::path::PathBuf>();
        if self.mode > 0o777
            || self.modified.1 >= 1_000_000_000
            || i64::try_from(self.size()).is_err()
        {
            return Err(malformed("permissions, a time or a size that no file has"));
        }
        if is_below && is_path && is_plain {
            return Ok(());
        }
        let path = String::from_utf8_lossy(&self.path);
        Err(malformed(format!(
            "the path {path:?}, which is not below the destination"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_out_of_the_destination_is_refused() {
        let entry =
            |path: &str| Entry::new(Path::new(path), EntryKind::Link(Vec::new()), 0o755, (0, 0));
        for path in ["a", "a/b", "..a/b..", "...", "a b/\u{e9}"] {
            entry(path).check().unwrap();
        }
        let long = "x".repeat(LONGEST_PATH + 1);
        for path in [
            "", "/", "/a", "..", "a/..", "../a", "a/../b", ".", "a\0b", &long,
        ] {
            assert!(entry(path).check().is_err(), "{path:?}");
        }
    }
}
