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
    /// The directories by the numbers that the system has given them.
    directories: HashMap<i32, ChangedPath>,
}

impl Watch {
    /// # Errors
    /// [`CopyError::Watch`].
    pub(crate) fn new() -> Result<Self> {
        let inotify = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)
            .map_err(|error| CopyError::Watch(format!("the system watches nothing: {error}")))?;
        Ok(Watch {
            inotify,
            directories: HashMap::new(),
        })
    }

    /// Watches a directory, and not those below it. What is in the directory is read afterwards, so that no change is missed.
    /// A directory that is watched already is known by its new path.
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
            | WatchFlags::ONLYDIR;
        // A source may be a link to a directory, and no directory above tells that it is renamed or removed.
        flags |= match path.below.as_os_str().is_empty() {
            true => WatchFlags::MOVE_SELF | WatchFlags::DELETE_SELF,
            false => WatchFlags::DONT_FOLLOW,
        };
        match inotify::add_watch(&self.inotify, directory, flags) {
            Ok(number) => {
                self.directories.insert(number, path);
                Ok(())
            }
            Err(Errno::NOSPC | Errno::NOMEM) => {
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

    /// Adds what has changed.
    ///
    /// # Errors
    /// [`CopyError::Watch`].
    pub(crate) fn take(&mut self, changes: &mut Changes) -> Result<()> {
        let mut memory = vec![MaybeUninit::uninit(); EVENT_MEMORY];
        let mut events = Reader::new(&self.inotify, &mut memory);
        loop {
            let event = match events.next() {
                Ok(event) => event,
                Err(Errno::WOULDBLOCK) => return Ok(()),
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
            let Some(directory) = self.directories.get(&event.wd()) else {
                continue;
            };
            let mut changed = directory.clone();
            if let Some(name) = event.file_name() {
                changed.below.push(OsStr::from_bytes(name.to_bytes()));
            }
            changes.add(changed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

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
        assert_eq!(changed(&mut watch), ["b/new"]);
        fs::remove_dir(root.join("b")).unwrap();
        assert_eq!(changed(&mut watch), ["b"]);
        assert_eq!(watch.directories.len(), 1);
    }
}
