//! The sources of a copy.

use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use crate::error::{CopyError, Result};

/// A source, as the receiver knows it before the copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Its name, with which the paths of its files begin.
    pub name: OsString,
    /// What it is.
    pub kind: SourceKind,
    /// Which file it is: another directory that gets the same name is another one.
    pub identity: FileIdentity,
    /// The directories above it.
    pub above: Vec<FileIdentity>,
}

/// A file, as the system tells it from all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FileIdentity {
    /// The system: the beginning of the hash of the number that it has got when it was started.
    system: u64,
    /// The device.
    device: u64,
    /// The number of the file on the device.
    number: u64,
}

impl FileIdentity {
    fn of(metadata: &Metadata) -> Self {
        FileIdentity {
            system: system_identity(),
            device: metadata.dev(),
            number: metadata.ino(),
        }
    }

    /// The identities of a file and of the directories above it; empty for a file that is not there.
    pub(crate) fn with_above(path: &Path) -> Vec<Self> {
        let path = fs::canonicalize(path).unwrap_or_default();
        let found = path.ancestors().filter_map(|path| fs::metadata(path).ok());
        found.map(|metadata| FileIdentity::of(&metadata)).collect()
    }
}

/// The number of this system, which stays the same.
fn system_identity() -> u64 {
    static IDENTITY: OnceLock<u64> = OnceLock::new();
    *IDENTITY.get_or_init(|| {
        let id = fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let hash = blake3::hash(&id);
        u64::from_le_bytes(*hash.as_bytes().first_chunk().expect("32 bytes"))
    })
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

/// The sources on this host.
pub struct Sources(Vec<NamedSource>);

impl Sources {
    /// The sources with these paths, each of which is told by its own name.
    ///
    /// # Errors
    /// [`CopyError::Place`] for a source that is not there or has no name.
    pub fn find(paths: &[PathBuf]) -> std::result::Result<Self, CopyError> {
        let sources = paths.iter().map(|path| NamedSource::new(path));
        Ok(Sources(sources.collect::<Result<_>>()?))
    }

    /// The sources, as the receiver knows them.
    pub fn told(&self) -> Vec<Source> {
        self.0.iter().map(|source| source.told.clone()).collect()
    }

    pub(crate) fn list(&self) -> &[NamedSource] {
        &self.0
    }

    /// Checks that the directories are still those that were found. A directory that was moved away, or whose file system
    /// was, has no files, and the receiver is not to remove all of its own for that.
    ///
    /// # Errors
    /// [`CopyError::Place`] for another directory.
    pub(crate) fn check_same(&self) -> Result<()> {
        let directories = self
            .0
            .iter()
            .filter(|source| source.told.kind != SourceKind::File);
        for source in directories {
            let now = fs::metadata(&source.here).map_err(|error| source.refused(&error))?;
            if FileIdentity::of(&now) != source.told.identity {
                return Err(source.refused(&"it is another directory than before"));
            }
        }
        Ok(())
    }

    /// Checks that a copy of the sources can go on.
    ///
    /// # Errors
    /// [`CopyError::Place`] for a file, and for a directory below another one.
    pub(crate) fn check_kept(&self) -> Result<()> {
        let whole = |source: &NamedSource| {
            fs::canonicalize(&source.here).map_err(|error| source.refused(&error))
        };
        let places = self.0.iter().map(whole).collect::<Result<Vec<_>>>()?;
        for (number, source) in self.0.iter().enumerate() {
            if source.told.kind == SourceKind::File {
                return Err(
                    source.refused(&"it is no directory; a single file goes by `titin copy`")
                );
            }
            let is_above =
                |other: usize| other != number && places[number].starts_with(&places[other]);
            if let Some(other) = (0..places.len()).find(|other| is_above(*other)) {
                let why = format!(
                    "it is below {}, another source: leave one of them out",
                    self.0[other].here.display()
                );
                return Err(source.refused(&why));
            }
        }
        Ok(())
    }
}

/// A source on this host.
pub(crate) struct NamedSource {
    /// Where it is here.
    pub(crate) here: PathBuf,
    /// What the receiver is told.
    pub(crate) told: Source,
}

impl NamedSource {
    fn new(here: &Path) -> Result<Self> {
        let place =
            |why: &dyn std::fmt::Display| CopyError::Place(format!("{}: {why}", here.display()));
        let metadata = fs::metadata(here).map_err(|error| place(&error))?;
        let name = match here.file_name() {
            Some(name) => name.to_owned(),
            // `.` and `..` are called by the name of the directory.
            None => fs::canonicalize(here)
                .map_err(|error| place(&error))?
                .file_name()
                .map(OsString::from)
                .ok_or_else(|| place(&"the whole file system has no name; give its directories"))?,
        };
        let kind = match (metadata.is_dir(), has_slash(here)) {
            (true, true) => SourceKind::Contents,
            (true, false) => SourceKind::Directory,
            (false, _) => SourceKind::File,
        };
        Ok(NamedSource {
            here: here.to_owned(),
            told: Source {
                name,
                kind,
                identity: FileIdentity::of(&metadata),
                above: FileIdentity::with_above(here).into_iter().skip(1).collect(),
            },
        })
    }

    fn refused(&self, why: &dyn std::fmt::Display) -> CopyError {
        refused(&self.here, why)
    }
}

fn refused(source: &Path, why: &dyn std::fmt::Display) -> CopyError {
    CopyError::Place(format!("{}: {why}", source.display()))
}

/// Whether the contents of a directory are meant, and not the directory.
pub(crate) fn has_slash(source: &Path) -> bool {
    let bytes = source.as_os_str().as_bytes();
    matches!(bytes, b"." | b"..")
        || [&b"/"[..], b"/.", b"/.."]
            .iter()
            .any(|end| bytes.ends_with(end))
}
