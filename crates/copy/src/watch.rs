//! What changes below the sources, as the system tells it (inotify).

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;

use crate::error::{CopyError, Result};
use crate::sources::NamedSource;

/// How many directories a user may watch.
const LIMIT: &str = "/proc/sys/fs/inotify/max_user_watches";

/// The memory for events that are read at a time.
const EVENT_MEMORY: usize = 64 << 10;

/// Something below a source that has changed: the number of the source, and the path below it, which is empty for the source.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ChangedPath {
    pub(crate) source: usize,
    pub(crate) below: PathBuf,
}

/// What has changed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Changes {
    /// Perhaps everything.
    All,
    /// These paths, and what is below them.
    Paths(BTreeSet<ChangedPath>),
}

impl Changes {
    pub(crate) fn none() -> Self {
        Changes::Paths(BTreeSet::new())
    }

    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, Changes::Paths(paths) if paths.is_empty())
    }

    fn add(&mut self, path: ChangedPath) {
        if let Changes::Paths(paths) = self {
            paths.insert(path);
        }
    }
}

/// The watched directories.
pub(crate) struct Watch {
    inotify: OwnedFd,
    /// The paths of each directory, by the number that the system has given it. A directory has several where it was renamed,
    /// or is mounted at several places.
    directories: HashMap<i32, Vec<ChangedPath>>,
    /// The directories that were moved since [`Watch::forget_moved`].
    moved: BTreeSet<ChangedPath>,
}

impl Watch {
    /// # Errors
    /// [`CopyError::Watch`].
    pub(crate) fn new() -> Result<Self> {
        let inotify = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)
            .map_err(|error| {
                CopyError::Watch(format!(
                    "the system watches nothing: {error}; raise fs.inotify.max_user_instances by sysctl, or look at all files \
                     again and again, with --every SECONDS"
                ))
            })?;
        Ok(Watch {
            inotify,
            directories: HashMap::new(),
            moved: BTreeSet::new(),
        })
    }

    /// Watches a directory, and not those below it. What is in the directory is read afterwards, so that no change is missed.
    /// A directory that is watched already is known by this path, too.
    ///
    /// # Errors
    /// [`CopyError::Watch`] if the system watches no more directories. That the directory cannot be watched alone is no
    /// error: reading it fails, too.
    pub(crate) fn add(&mut self, directory: &Path, path: ChangedPath) -> Result<()> {
        let mut flags = WatchFlags::ATTRIB
            | WatchFlags::CLOSE_WRITE
            | WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MODIFY
            | WatchFlags::MOVED_FROM
            | WatchFlags::MOVED_TO
            | WatchFlags::MASK_ADD
            | WatchFlags::ONLYDIR;
        // A source may be a link to a directory, and no directory above tells that it is renamed or removed.
        flags |= match path.below.as_os_str().is_empty() {
            true => WatchFlags::MOVE_SELF | WatchFlags::DELETE_SELF,
            false => WatchFlags::DONT_FOLLOW,
        };
        match inotify::add_watch(&self.inotify, directory, flags) {
            Ok(number) => {
                let paths = self.directories.entry(number).or_default();
                if !paths.contains(&path) {
                    paths.push(path);
                }
                Ok(())
            }
            Err(Errno::NOSPC) => {
                let most = std::fs::read_to_string(LIMIT).unwrap_or_default();
                Err(CopyError::Watch(format!(
                    "the system watches no more than {} directories: raise fs.inotify.max_user_watches by sysctl, or look \
                     at all files again and again, with --every SECONDS",
                    most.trim()
                )))
            }
            Err(_) => Ok(()),
        }
    }

    /// Waits until something has changed, for at most `limit`. True if something has.
    ///
    /// # Errors
    /// [`CopyError::Watch`].
    pub(crate) fn wait(&self, limit: Duration) -> Result<bool> {
        let limit = Timespec::try_from(limit).ok();
        let mut waiting = [PollFd::new(&self.inotify, PollFlags::IN)];
        match poll(&mut waiting, limit.as_ref()) {
            Ok(count) => Ok(count > 0),
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(CopyError::Watch(error.to_string())),
        }
    }

    /// Adds what has changed. True if something has.
    ///
    /// # Errors
    /// [`CopyError::Watch`].
    pub(crate) fn take(&mut self, changes: &mut Changes) -> Result<bool> {
        let mut memory = vec![MaybeUninit::uninit(); EVENT_MEMORY];
        let mut events = Reader::new(&self.inotify, &mut memory);
        let mut has_changed = false;
        loop {
            let event = match events.next() {
                Ok(event) => event,
                Err(Errno::WOULDBLOCK) => return Ok(has_changed),
                Err(Errno::INTR) => continue,
                Err(error) => return Err(CopyError::Watch(io::Error::from(error).to_string())),
            };
            if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
                *changes = Changes::All;
            }
            if event.events().contains(ReadFlags::IGNORED) {
                self.directories.remove(&event.wd());
                continue;
            }
            has_changed = true;
            let is_moved = event
                .events()
                .contains(ReadFlags::MOVED_FROM | ReadFlags::ISDIR);
            for directory in self.directories.get(&event.wd()).into_iter().flatten() {
                let mut changed = directory.clone();
                if let Some(name) = event.file_name() {
                    changed.below.push(OsStr::from_bytes(name.to_bytes()));
                }
                if is_moved {
                    self.moved.insert(changed.clone());
                }
                changes.add(changed);
            }
        }
    }

    /// Forgets the paths of directories that were moved, with those below them, unless a directory is there again. Directories
    /// that have left their source are watched no more. Comes behind a round, which has found moved directories by their new
    /// paths.
    pub(crate) fn forget_moved(&mut self, sources: &[NamedSource]) {
        let moved = std::mem::take(&mut self.moved);
        if moved.is_empty() {
            return;
        }
        let is_left = |path: &ChangedPath| {
            let mut above = path.below.ancestors();
            let is_moved = above.any(|above| {
                moved.contains(&ChangedPath {
                    source: path.source,
                    below: above.to_owned(),
                })
            });
            !is_moved || sources[path.source].here.join(&path.below).is_dir()
        };
        let inotify = &self.inotify;
        self.directories.retain(|number, paths| {
            paths.retain(is_left);
            if paths.is_empty() {
                let _ = inotify::remove_watch(inotify, *number);
            }
            !paths.is_empty()
        });
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::sources::Sources;

    /// What has changed, as paths with slashes.
    fn changed(watch: &mut Watch) -> Vec<String> {
        let mut changes = Changes::none();
        watch.take(&mut changes).unwrap();
        match changes {
            Changes::All => vec!["all".to_owned()],
            Changes::Paths(paths) => paths
                .into_iter()
                .map(|path| path.below.to_string_lossy().into_owned())
                .collect(),
        }
    }

    #[test]
    fn changes_are_told_by_their_paths() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir(root.join("a")).unwrap();
        let mut watch = Watch::new().unwrap();
        let place = |below: &str| ChangedPath {
            source: 0,
            below: PathBuf::from(below),
        };
        watch.add(root, place("")).unwrap();
        watch.add(&root.join("a"), place("a")).unwrap();
        assert!(!watch.wait(Duration::ZERO).unwrap());
        fs::write(root.join("a/new"), "x").unwrap();
        assert!(watch.wait(Duration::ZERO).unwrap());
        assert_eq!(changed(&mut watch), ["a/new"]);
        fs::rename(root.join("a"), root.join("b")).unwrap();
        assert_eq!(changed(&mut watch), ["a", "b"]);
        // The renamed directory is still known by its old path.
        watch.add(&root.join("b"), place("b")).unwrap();
        fs::remove_file(root.join("b/new")).unwrap();
        assert_eq!(changed(&mut watch), ["a/new", "b/new"]);
        let sources = Sources::find(&[root.to_owned()]).unwrap();
        watch.forget_moved(sources.list());
        fs::write(root.join("b/newer"), "x").unwrap();
        assert_eq!(changed(&mut watch), ["b/newer"]);
        // A directory that has left is watched no more.
        let outside = tempfile::tempdir().unwrap();
        fs::rename(root.join("b"), outside.path().join("b")).unwrap();
        assert_eq!(changed(&mut watch), ["b"]);
        watch.forget_moved(sources.list());
        fs::write(outside.path().join("b/more"), "x").unwrap();
        assert_eq!(changed(&mut watch), [""; 0]);
        assert_eq!(watch.directories.len(), 1);
    }
}
