//! The files of the sources, in batches.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::entry::{Entry, EntryKind};
use crate::error::{CopyError, Result};
use crate::report::CopyReport;
use crate::target::is_part_name;

/// The most entries of a batch, and the most bytes of their paths and links.
pub(crate) const MOST_ENTRIES: usize = 2000;
const MOST_PATHS: usize = 128 << 10;

/// A file of a source: where it is here, and what the receiver is told.
pub(crate) struct FoundFile {
    pub(crate) here: PathBuf,
    pub(crate) entry: Entry,
    /// The number of the source.
    pub(crate) source: usize,
}

/// A source, as the receiver knows it before the copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Its name, with which the paths of its files begin.
    pub name: OsString,
    /// What it is.
    pub kind: SourceKind,
}

/// What a source is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SourceKind {
    /// A file.
    File,
    /// A directory, which is copied as a whole.
    Directory,
    /// A directory whose contents are copied: one that is given with a slash at its end, as `.` or as `..`.
    Contents,
}

/// What is to be told: where it is here, its path for the receiver, and the number of its source.
struct NextFile {
    here: PathBuf,
    there: PathBuf,
    source: usize,
}

/// Goes through the sources.
pub(crate) struct Walk {
    /// What is still to be told. A directory comes before what is in it.
    next: VecDeque<NextFile>,
    /// The sources, as the receiver knows them.
    sources: Vec<Source>,
}

impl Walk {
    /// For sources on this host, each of which is told by its own name.
    ///
    /// # Errors
    /// [`CopyError::Place`] for a source that is not there or has no name.
    pub(crate) fn new(sources: &[PathBuf]) -> Result<Self> {
        let (mut next, mut told) = (VecDeque::new(), Vec::new());
        for (number, source) in sources.iter().enumerate() {
            let place = |why: &dyn std::fmt::Display| {
                CopyError::Place(format!("{}: {why}", source.display()))
            };
            let metadata = fs::metadata(source).map_err(|error| place(&error))?;
            let name = match source.file_name() {
                Some(name) => name.to_owned(),
                // `.` and `..` are called by the name of the directory.
                None => fs::canonicalize(source)
                    .map_err(|error| place(&error))?
                    .file_name()
                    .map(OsString::from)
                    .ok_or_else(|| {
                        place(&"the whole file system has no name; give its directories")
                    })?,
            };
            let kind = match (metadata.is_dir(), has_slash(source)) {
                (true, true) => SourceKind::Contents,
                (true, false) => SourceKind::Directory,
                (false, _) => SourceKind::File,
            };
            next.push_back(NextFile {
                here: source.clone(),
                there: PathBuf::from(&name),
                source: number,
            });
            told.push(Source { name, kind });
        }
        let sources = told;
        Ok(Walk { next, sources })
    }

    /// The sources, as the receiver knows them.
    pub(crate) fn sources(&self) -> &[Source] {
        &self.sources
    }

    /// The next batch; `None` after the last one. What cannot be read is noted in the report.
    pub(crate) fn batch(&mut self, report: &mut CopyReport) -> Option<Vec<FoundFile>> {
        let (mut found, mut bytes) = (Vec::new(), 0);
        while found.len() < MOST_ENTRIES && bytes < MOST_PATHS {
            let Some(file) = self.next.pop_front() else {
                break;
            };
            let look = self.look(&file);
            let NextFile {
                here,
                there,
                source,
            } = file;
            let checked = look.and_then(|entry| match entry.check() {
                Ok(()) => Ok(entry),
                Err(_) => Err("its name is too long".to_owned()),
            });
            match checked {
                Ok(entry) => {
                    bytes += there.as_os_str().len() + entry.link_length();
                    found.push(FoundFile {
                        here,
                        entry,
                        source,
                    });
                }
                Err(why) => report.note_failed(here.as_os_str().as_bytes(), why),
            }
        }
        (!found.is_empty()).then_some(found)
    }

    fn look(&mut self, file: &NextFile) -> std::result::Result<Entry, String> {
        let (here, there): (&Path, &Path) = (&file.here, &file.there);
        let text = |error: std::io::Error| error.to_string();
        let is_source = there.components().count() == 1;
        // A source that is a link stands for what is behind it, as with cp and scp.
        let metadata = match is_source {
            true => fs::metadata(here),
            false => fs::symlink_metadata(here),
        };
        let metadata = metadata.map_err(text)?;
        let kind = if metadata.is_dir() {
            let list = fs::read_dir(here).map_err(text)?;
            let mut names: Vec<OsString> = list
                .map(|item| item.map(|item| item.file_name()))
                .collect::<std::io::Result<_>>()
                .map_err(text)?;
            names.sort_unstable();
            for name in names.into_iter().rev().filter(|name| !is_part_name(name)) {
                self.next.push_front(NextFile {
                    here: here.join(&name),
                    there: there.join(&name),
                    source: file.source,
                });
            }
            EntryKind::Directory
        } else if metadata.is_symlink() {
            let target = fs::read_link(here).map_err(text)?;
            EntryKind::Link(target.into_os_string().as_bytes().to_vec())
        } else if metadata.is_file() {
            EntryKind::File {
                size: metadata.len(),
            }
        } else {
            return Err("it is no file, link or directory".to_owned());
        };
        Ok(Entry::new(
            there,
            kind,
            metadata.mode(),
            modified(&metadata),
        ))
    }
}

/// Whether the contents of a directory are meant, and not the directory.
pub(crate) fn has_slash(source: &Path) -> bool {
    let bytes = source.as_os_str().as_bytes();
    matches!(bytes, b"." | b"..")
        || [&b"/"[..], b"/.", b"/.."]
            .iter()
            .any(|end| bytes.ends_with(end))
}

/// When a file was changed last.
pub(crate) fn modified(metadata: &Metadata) -> (i64, u32) {
    (metadata.mtime(), metadata.mtime_nsec() as u32)
}
