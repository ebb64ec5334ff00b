//! The folders of listening processes and of connections: made, checked, found and removed.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use titin_os::Descriptor;
use titin_wire::EndpointId;

/// The file locked by a process as long as the process lives.
const PRESENCE: &str = "presence";

/// The end of the name of a connection's folder as long as the folder is not complete.
const DRAFT: &str = "new";

/// Segments for the listening process, and segments for the dialling process.
const THERE: &str = "there";
const BACK: &str = "back";

/// The most connections of a listening process at a time.
const CONNECTIONS: usize = 4096;

/// A file of this process, locked as long as the process lives and the value exists.
pub(super) struct Presence {
    path: PathBuf,
    /// Listed, so that a forked child closes the file and does not keep the lock.
    _file: Descriptor,
}

impl Presence {
    fn lock(folder: &Path) -> io::Result<Self> {
        let path = folder.join(PRESENCE);
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        // Without locks in the file system, the manager alone notices that a process has ended.
        let _ = file.lock();
        Ok(Presence {
            path,
            _file: OwnedFd::from(file).into(),
        })
    }

    /// Removes the file: this process has ended its part in good order.
    pub(super) fn withdraw(&self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// The presence of the process at the other end.
pub(super) struct PeerPresence {
    path: PathBuf,
    /// Whether this process has seen the lock. Some file systems show no locks of other hosts.
    shows_lock: bool,
}

impl PeerPresence {
    /// The presence in a folder, of a process that lives now.
    fn of_living(folder: &Path) -> Self {
        let path = folder.join(PRESENCE);
        let shows_lock = open_presence(&path).is_ok_and(|file| !is_unlocked(&file));
        PeerPresence { path, shows_lock }
    }

    /// The state of the process. On a file system without locks a killed process seems to live.
    pub(super) fn state(&self) -> PeerState {
        match open_presence(&self.path) {
            Ok(file) if self.shows_lock && is_unlocked(&file) => PeerState::Killed,
            Err(error) if error.kind() == io::ErrorKind::NotFound => PeerState::Left,
            _ => PeerState::Lives,
        }
    }
}

/// The state of the process at the other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PeerState {
    Lives,
    /// The process has ended in good order, and has written its last segment before.
    Left,
    Killed,
}

fn open_presence(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
    OpenOptions::new()
        .read(true)
        .custom_flags(flags as i32)
        .open(path)
}

/// Whether no process has locked the file.
fn is_unlocked(file: &File) -> bool {
    match file.try_lock_shared() {
        Ok(()) => file.unlock().is_ok(),
        Err(TryLockError::WouldBlock | TryLockError::Error(_)) => false,
    }
}

/// The folder of a listening process.
pub(super) struct ListenerFolder {
    path: PathBuf,
    presence: Presence,
    /// The connections that the process has taken, as long as their folders exist.
    taken: HashSet<OsString>,
}

impl ListenerFolder {
    /// Makes the folder of this process in the folder of the run.
    ///
    /// # Errors
    /// If the folder of the run is not private, or the process cannot write there. The error names
    /// the folder.
    pub(super) fn create(run_folder: &Path) -> io::Result<Self> {
        let create = || {
            check_private(run_folder)?;
            let path = run_folder.join(random_name());
            private_folder(&path)?;
            Ok(ListenerFolder {
                presence: Presence::lock(&path)?,
                path,
                taken: HashSet::new(),
            })
        };
        create().map_err(|why| named(run_folder, &why))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The connections that have come since the last call, and those that were put back.
    ///
    /// # Errors
    /// If the folder cannot be read. The error names the folder.
    pub(super) fn new_connections(&mut self) -> io::Result<Vec<ConnectionFolder>> {
        let entries = fs::read_dir(&self.path).map_err(|why| named(&self.path, &why))?;
        let names = entries.map(|entry| Ok(entry?.file_name()));
        let mut names = names
            .collect::<io::Result<HashSet<OsString>>>()
            .map_err(|why| named(&self.path, &why))?;
        names.retain(is_connection);
        self.taken.retain(|name| names.contains(name));
        let room = CONNECTIONS.saturating_sub(self.taken.len());
        let new = names.difference(&self.taken).take(room);
        let new: Vec<OsString> = new.cloned().collect();
        self.taken.extend(new.iter().cloned());
        let folders = new.into_iter().map(|name| self.path.join(name));
        Ok(folders
            .filter(|path| check_private(path).is_ok())
            .map(|path| ConnectionFolder {
                dials: false,
                presence: None,
                path,
            })
            .collect())
    }

    /// Has the next call of [`Self::new_connections`] return a connection again.
    pub(super) fn put_back(&mut self, connection: &ConnectionFolder) {
        if let Some(name) = connection.path.file_name() {
            self.taken.remove(name);
        }
    }

    /// Removes the folder, unless a connection still has segments that the other end has to read.
    /// The other end removes the folder then.
    pub(super) fn remove_if_read(&self) {
        self.presence.withdraw();
        let _ = fs::remove_dir(&self.path);
    }
}

/// The folder of a connection.
pub(super) struct ConnectionFolder {
    path: PathBuf,
    /// Whether this process has dialled.
    dials: bool,
    /// Of the dialling process.
    presence: Option<Presence>,
}

impl ConnectionFolder {
    /// Makes the folder of a new connection to a listening process. The folder gets its final name
    /// when all is there.
    ///
    /// # Errors
    /// If nothing listens there, or the process cannot write there.
    pub(super) fn create(listener: &Path) -> io::Result<Self> {
        check_private(listener)?;
        let path = listener.join(random_name());
        let draft = path.with_extension(DRAFT);
        private_folder(&draft)?;
        let make = || {
            private_folder(&draft.join(THERE))?;
            private_folder(&draft.join(BACK))?;
            let presence = Presence::lock(&draft)?;
            fs::rename(&draft, &path)?;
            Ok(Presence {
                path: path.join(PRESENCE),
                ..presence
            })
        };
        let made: io::Result<Presence> = make();
        let presence = made.inspect_err(|_| drop(fs::remove_dir_all(&draft)))?;
        Ok(ConnectionFolder {
            path,
            dials: true,
            presence: Some(presence),
        })
    }

    /// The folder of the segments for this process.
    pub(super) fn incoming(&self) -> PathBuf {
        self.path.join(if self.dials { BACK } else { THERE })
    }

    /// The folder of the segments for the process at the other end.
    pub(super) fn outgoing(&self) -> PathBuf {
        self.path.join(if self.dials { THERE } else { BACK })
    }

    /// The presence of the process at the other end, which lives now.
    pub(super) fn peer_presence(&self) -> PeerPresence {
        let folder = if self.dials {
            self.path.parent().unwrap_or(&self.path)
        } else {
            &self.path
        };
        PeerPresence::of_living(folder)
    }

    /// This process reads no more, and has written all bytes: removes the files that the other end
    /// need not read.
    pub(super) fn leave(self) {
        remove_all(&self.incoming());
        if let Some(presence) = &self.presence {
            presence.withdraw();
        }
        // Not while there are segments for the other end.
        let _ = fs::remove_dir(&self.path);
        self.remove_empty_listener();
    }

    /// The process at the other end is gone: removes all files of the connection.
    pub(super) fn remove_unread(self) {
        remove_all(&self.path);
        self.remove_empty_listener();
    }

    /// Removes the folder of a listening process that has ended, after the last connection.
    fn remove_empty_listener(&self) {
        let Some(listener) = self.path.parent().filter(|_| self.dials) else {
            return;
        };
        let only_presence = fs::read_dir(listener)
            .is_ok_and(|entries| entries.flatten().all(|entry| entry.file_name() == PRESENCE));
        // A process that has ended in good order has removed its presence.
        let has_ended = match open_presence(&listener.join(PRESENCE)) {
            Ok(file) => is_unlocked(&file),
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        };
        if only_presence && has_ended {
            let _ = fs::remove_file(listener.join(PRESENCE));
            let _ = fs::remove_dir(listener);
        }
    }

    /// Ends this process's part but for the presence, which the caller keeps.
    pub(super) fn into_presence(self) -> Option<Presence> {
        self.presence
    }
}

/// Removes a folder in which the other end may be writing its last segment: once the folder is gone,
/// the other end writes no more.
fn remove_all(folder: &Path) {
    const TRIES: usize = 100;
    let is_refilled = |_: &usize| {
        let removed = fs::remove_dir_all(folder);
        removed.is_err_and(|why| why.kind() == io::ErrorKind::DirectoryNotEmpty)
    };
    (0..TRIES).take_while(is_refilled).for_each(drop);
}

/// Adds the folder to an error.
pub(super) fn named(folder: &Path, why: &io::Error) -> io::Error {
    io::Error::new(
        why.kind(),
        format!("the folder for messages {}: {why}", folder.display()),
    )
}

/// Checks that a path is a folder of this user which no other user may open.
fn check_private(path: &Path) -> io::Result<()> {
    let metadata = fs::symlink_metadata(path)?;
    if !metadata.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    let is_own = metadata.uid() == rustix::process::geteuid().as_raw();
    if is_own && metadata.mode() & 0o077 == 0 {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::PermissionDenied,
        "it must belong to the user of the program, and be closed to others (chmod 700)",
    ))
}

fn private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)
}

/// A name that no other process makes.
fn random_name() -> String {
    format!("{:032x}", EndpointId::random().0)
}

/// Whether a name is that of a complete connection folder.
fn is_connection(name: &OsString) -> bool {
    let name = name.as_encoded_bytes();
    name.len() == 32 && name.iter().all(u8::is_ascii_hexdigit)
}
