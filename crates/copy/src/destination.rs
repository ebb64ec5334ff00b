//! Where a copy goes.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::entry::Entry;
use crate::error::{CopyError, Result};
use crate::sources::{FileIdentity, Source, SourceKind};

/// Where a copy goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    pub(crate) root: PathBuf,
    mapping: PathMapping,
    /// The sources. Nothing else is received.
    sources: Vec<Source>,
}

/// What becomes of the name of a source at the destination.
#[derive(Debug, Clone, PartialEq, Eq)]
enum PathMapping {
    /// The source is in the root, by its own name.
    Kept,
    /// The only source, a file, has this name there.
    Renamed(OsString),
    /// What is in the only source is in the root.
    Contents,
}

impl Destination {
    /// As `rsync` understands a destination, so that the same copy, made again, goes to the same place. It is a directory,
    /// which is made if it is not there, and gets the sources; of a source with a slash at its end it gets the contents. Only
    /// for a single file it may be the new name of the file: if it is no directory, and has no slash at its end.
    ///
    /// # Errors
    /// [`CopyError::Place`] if the directory above is not there, two sources have one name, or there are more sources than one
    /// with a slash.
    pub fn new(place: &Path, sources: Vec<Source>) -> Result<Self> {
        let names: Vec<OsString> = sources.iter().map(|source| source.name.clone()).collect();
        for (number, name) in names.iter().enumerate() {
            if names[..number].contains(name) {
                let name = name.to_string_lossy();
                return Err(CopyError::Place(format!("two sources are called {name}")));
            }
        }
        let place = match place.as_os_str().is_empty() {
            true => Path::new("."),
            false => place,
        };
        let is_directory = place.is_dir() || place.as_os_str().as_bytes().ends_with(b"/");
        let kinds: Vec<SourceKind> = sources.iter().map(|source| source.kind).collect();
        let mapping = match (&kinds[..], place.file_name()) {
            ([SourceKind::Contents], _) => PathMapping::Contents,
            ([SourceKind::File], Some(name)) if !is_directory => {
                PathMapping::Renamed(name.to_owned())
            }
            (kinds, _) if kinds.contains(&SourceKind::Contents) => {
                let why = "of several sources each goes to the destination as a whole: leave the slash at the end out";
                return Err(CopyError::Place(why.to_owned()));
            }
            _ => PathMapping::Kept,
        };
        let root = match mapping {
            PathMapping::Renamed(_) => place.parent().unwrap_or(Path::new("")),
            _ => place,
        };
        let root = match root.as_os_str().is_empty() {
            true => Path::new("."),
            false => root,
        };
        // A directory of the destination that is not there is made, but not those above.
        let above = match root.parent() {
            Some(above) if !root.exists() && !matches!(mapping, PathMapping::Renamed(_)) => above,
            _ => root,
        };
        if !above.as_os_str().is_empty() && !above.is_dir() {
            let above = above.display();
            return Err(CopyError::Place(format!(
                "{above}: there is no such directory"
            )));
        }
        Ok(Destination {
            root: root.to_owned(),
            mapping,
            sources,
        })
    }

    /// Checks that the copy does no harm. It must not go to where it comes from, which it would change while it reads; with
    /// `delete` it must neither remove its source, nor all that the user has.
    ///
    /// # Errors
    /// [`CopyError::Place`] for a destination that is a source or below one; with `delete` also for one that is above a source,
    /// and for the contents of a source in the home directory.
    pub fn check(&self, delete: bool) -> std::result::Result<(), CopyError> {
        self.check_apart(delete)?;
        match delete {
            true => self.check_may_be_cleared(),
            false => Ok(()),
        }
    }

    fn check_apart(&self, delete: bool) -> Result<()> {
        for source in self
            .sources
            .iter()
            .filter(|source| source.kind != SourceKind::File)
        {
            let place = match self.mapping {
                PathMapping::Kept => self.root.join(&source.name),
                _ => self.root.clone(),
            };
            let found = FileIdentity::with_above(&place);
            let is_above = delete
                && found
                    .first()
                    .is_some_and(|place| source.above.contains(place));
            // Of a place that is not there yet, the first directory above it that is there tells.
            let mut nearest = std::iter::once(found).chain(place.ancestors().skip(1).map(|path| {
                match path.as_os_str().is_empty() {
                    true => FileIdentity::with_above(Path::new(".")),
                    false => FileIdentity::with_above(path),
                }
            }));
            let is_source = nearest
                .find(|found| !found.is_empty())
                .is_some_and(|found| found.contains(&source.identity));
            if is_source || is_above {
                let where_it_is = if is_source {
                    "the source, or below it"
                } else {
                    "above the source"
                };
                return Err(CopyError::Place(format!(
                    "{}: the destination is {where_it_is}: name another one",
                    place.display()
                )));
            }
        }
        Ok(())
    }

    /// Checks that not all of the home directory, or of the file system, would be removed.
    fn check_may_be_cleared(&self) -> Result<()> {
        let home = std::env::var_os("HOME").and_then(|home| fs::canonicalize(home).ok());
        let root = fs::canonicalize(&self.root).ok();
        let is_too_much =
            root.is_some() && (root == home || root.as_deref() == Some(Path::new("/")));
        match self.mapping == PathMapping::Contents && is_too_much {
            true => Err(CopyError::Place(format!(
                "{}: all else in this directory would be removed; name a directory of its own, or leave the slash at the end of \
                 the source out",
                root.unwrap_or_default().display()
            ))),
            false => Ok(()),
        }
    }

    /// Whether an entry is below one of the sources.
    pub(crate) fn includes(&self, entry: &Entry) -> bool {
        let first = entry.path().components().next();
        first.is_some_and(|first| {
            let mut sources = self.sources.iter();
            sources.any(|source| first.as_os_str() == source.name)
        })
    }

    /// Where an entry goes, below the root; empty for the root itself.
    pub(crate) fn path_of(&self, entry: &Entry) -> PathBuf {
        let rest = entry.path().components().skip(1);
        match &self.mapping {
            PathMapping::Kept => entry.path().to_owned(),
            PathMapping::Renamed(name) => [name.as_os_str()]
                .into_iter()
                .chain(rest.map(|part| part.as_os_str()))
                .collect(),
            PathMapping::Contents => rest.collect(),
        }
    }
}
