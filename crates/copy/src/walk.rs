//! The files of the sources, in batches.

use std::collections::{BTreeSet, VecDeque};
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::entry::{Entry, EntryKind};
use crate::error::Result;
use crate::report::CopyReport;
use crate::sources::NamedSource;
use crate::target::is_part_name;
use crate::watch::{ChangedPath, Watch};

/// The most entries of a batch, and the most bytes of their paths and links.
pub(crate) const MOST_ENTRIES: usize = 2000;
const MOST_PATHS: usize = 128 << 10;

/// The steps of the clocks of file systems are no longer, in seconds.
const CLOCK_STEP: i64 = 1;

/// A file of a source: where it is here, and what the receiver is told.
pub(crate) struct FoundFile {
    pub(crate) here: PathBuf,
    pub(crate) entry: Entry,
    /// The number of the source.
    pub(crate) source: usize,
}

/// What is to be told.
struct NextFile {
    /// Where it is here.
    here: PathBuf,
    /// Its path for the receiver.
    there: PathBuf,
    /// The number of its source.
    source: usize,
    /// Whether what is in the directory is to be told, too.
    is_deep: bool,
}

/// What depends on whether a copy goes on.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct WalkRules {
    /// Whether a file that is not there any more is left out, and no failure.
    pub(crate) may_vanish: bool,
    /// When the last round began, in seconds since 1970. What has changed since is told as recent, whatever its time of
    /// modification says, which programs may set.
    pub(crate) last_round: Option<i64>,
}

/// Goes through the sources.
pub(crate) struct Walk<'a> {
    /// What is still to be told. A directory comes before what is in it.
    next: VecDeque<NextFile>,
    /// Directories are watched before they are read.
    watch: Option<&'a mut Watch>,
    rules: WalkRules,
    /// What is not there any more, by its path for the receiver.
    gone: Vec<PathBuf>,
    /// Whether nothing was left out because it could not be read.
    is_complete: bool,
    /// How many pipes, sockets and devices were left out.
    unsupported: u64,
}

/// What a walk has found out by its end.
pub(crate) struct WalkEnd {
    /// What is not there any more, by its path for the receiver.
    pub(crate) gone: Vec<PathBuf>,
    /// Whether nothing was left out because it could not be read.
    pub(crate) is_complete: bool,
    /// How many pipes, sockets and devices were left out, which no later round brings either.
    pub(crate) unsupported: u64,
}

impl<'a> Walk<'a> {
    /// Through all that is in the sources.
    pub(crate) fn all(
        sources: &[NamedSource],
        watch: Option<&'a mut Watch>,
        rules: WalkRules,
    ) -> Self {
        let next = sources.iter().enumerate().map(|(number, source)| NextFile {
            here: source.here.clone(),
            there: PathBuf::from(&source.told.name),
            source: number,
            is_deep: true,
        });
        Walk {
            next: next.collect(),
            watch,
            rules,
            gone: Vec::new(),
            is_complete: true,
            unsupported: 0,
        }
    }

    /// Through what has changed, with the directories above.
    pub(crate) fn changed(
        sources: &[NamedSource],
        changes: &BTreeSet<ChangedPath>,
        watch: Option<&'a mut Watch>,
        rules: WalkRules,
    ) -> Self {
        let mut walk = Walk::all(&[], watch, rules);
        let (mut above, mut covered): (BTreeSet<ChangedPath>, Option<&ChangedPath>) =
            (BTreeSet::new(), None);
        for changed in changes {
            let is_covered = |last: &ChangedPath| {
                last.source == changed.source && changed.below.starts_with(&last.below)
            };
            let is_part = changed.below.iter().any(is_part_name);
            if is_part || covered.is_some_and(is_covered) {
                continue;
            }
            covered = Some(changed);
            let source = &sources[changed.source];
            let file = |below: &Path, is_deep| NextFile {
                here: joined(&source.here, below),
                there: joined(Path::new(&source.told.name), below),
                source: changed.source,
                is_deep,
            };
            let ancestors: Vec<&Path> = changed.below.ancestors().skip(1).collect();
            let mut is_reached = true;
            for below in ancestors.into_iter().rev() {
                let directory = ChangedPath {
                    source: changed.source,
                    below: below.to_owned(),
                };
                // Nothing is read through what is no directory any more, a link say, which has changed itself.
                is_reached = below.as_os_str().is_empty()
                    || fs::symlink_metadata(joined(&source.here, below))
                        .is_ok_and(|metadata| metadata.is_dir());
                if !is_reached {
                    break;
                }
                if above.insert(directory) {
                    walk.next.push_back(file(below, false));
                }
            }
            if is_reached {
                walk.next.push_back(file(&changed.below, true));
            }
        }
        walk
    }

    /// The next batch; `None` after the last one. What cannot be read is noted in the report.
    ///
    /// # Errors
    /// [`CopyError::Watch`](crate::CopyError::Watch).
    pub(crate) fn batch(&mut self, report: &mut CopyReport) -> Result<Option<Vec<FoundFile>>> {
        let (mut found, mut bytes) = (Vec::new(), 0);
        while found.len() < MOST_ENTRIES && bytes < MOST_PATHS {
            let Some(file) = self.next.pop_front() else {
                break;
            };
            let look = self.look(&file)?;
            let NextFile {
                here,
                there,
                source,
                ..
            } = file;
            let checked = match look {
                Err(error) if self.rules.may_vanish && has_vanished(&error) => {
                    self.gone.push(there);
                    continue;
                }
                Err(error) => Err(error),
                Ok(entry) => match entry.check() {
                    Ok(()) => Ok(entry),
                    Err(_) => Err(io::Error::other("its name is too long")),
                },
            };
            match checked {
                Ok(entry) => {
                    bytes += there.as_os_str().len() + entry.link_length();
                    found.push(FoundFile {
                        here,
                        entry,
                        source,
                    });
                }
                Err(error) => {
                    match error.kind() {
                        io::ErrorKind::Unsupported => self.unsupported += 1,
                        _ => self.is_complete = false,
                    }
                    report.note_failed(here.as_os_str().as_bytes(), error);
                }
            }
        }
        Ok((!found.is_empty()).then_some(found))
    }

    /// What the walk has found out by its end.
    pub(crate) fn end(self) -> WalkEnd {
        WalkEnd {
            gone: self.gone,
            is_complete: self.is_complete,
            unsupported: self.unsupported,
        }
    }

    /// Looks at a file. The inner error is one of the file alone.
    fn look(&mut self, file: &NextFile) -> Result<io::Result<Entry>> {
        let is_source = file.there.components().count() == 1;
        // A source that is a link stands for what is behind it, as with cp and scp.
        let metadata = match is_source {
            true => fs::metadata(&file.here),
            false => fs::symlink_metadata(&file.here),
        };
        let metadata = match metadata {
            Ok(metadata) => metadata,
            Err(error) => return Ok(Err(error)),
        };
        if metadata.is_dir() && file.is_deep {
            if let Some(watch) = &mut self.watch {
                let below = file.there.components().skip(1).collect();
                watch.add(
                    &file.here,
                    ChangedPath {
                        source: file.source,
                        below,
                    },
                )?;
            }
            if let Err(error) = self.read_directory(file) {
                return Ok(Err(error));
            }
        }
        let kind = if metadata.is_dir() {
            Ok(EntryKind::Directory {
                is_listed: file.is_deep,
            })
        } else if metadata.is_symlink() {
            let target = fs::read_link(&file.here);
            target.map(|target| EntryKind::Link(target.into_os_string().as_bytes().to_vec()))
        } else if metadata.is_file() {
            Ok(EntryKind::File {
                size: metadata.len(),
            })
        } else {
            let why = "it is no file, link or directory";
            Err(io::Error::new(io::ErrorKind::Unsupported, why))
        };
        let is_recent = self
            .rules
            .last_round
            .is_some_and(|begun| metadata.ctime() >= begun - CLOCK_STEP);
        Ok(kind.map(|kind| {
            let mut entry = Entry::new(&file.there, kind, metadata.mode(), modified(&metadata));
            entry.is_recent = is_recent;
            entry
        }))
    }

    /// Puts what is in a directory at the front of the queue.
    fn read_directory(&mut self, directory: &NextFile) -> io::Result<()> {
        let mut names: Vec<OsString> = fs::read_dir(&directory.here)?
            .map(|item| item.map(|item| item.file_name()))
            .collect::<io::Result<_>>()?;
        names.sort_unstable();
        for name in names.into_iter().rev().filter(|name| !is_part_name(name)) {
            self.next.push_front(NextFile {
                here: directory.here.join(&name),
                there: directory.there.join(&name),
                source: directory.source,
                is_deep: true,
            });
        }
        Ok(())
    }
}

/// Whether a file, or a directory on the way to it, is not there any more.
pub(crate) fn has_vanished(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// A path below another one, which is that one if it is empty.
fn joined(path: &Path, below: &Path) -> PathBuf {
    match below.as_os_str().is_empty() {
        true => path.to_owned(),
        false => path.join(below),
    }
}

/// When a file was changed last.
pub(crate) fn modified(metadata: &Metadata) -> (i64, u32) {
    (metadata.mtime(), metadata.mtime_nsec() as u32)
}
