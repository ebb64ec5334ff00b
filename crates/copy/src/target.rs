//! The directory to which a copy goes. Nothing outside is opened: each component of a path is opened by itself, and no
//! link is followed.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Component, Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{
    self, AtFlags, FileType, FlockOperation, Mode, OFlags, Stat, Timespec, Timestamps,
};
use rustix::io::Errno;

/// The longest name of a file that is being written. The system allows 255 bytes.
const LONGEST_NAME: usize = 200;

/// How long a copy waits for another one that writes the same file, and the pause before it looks again.
const LOCK_TIME: Duration = Duration::from_secs(10);
const LOCK_PAUSE: Duration = Duration::from_millis(50);

/// The permissions of a file or directory that is being written.
const PRIVATE_FILE: u32 = 0o600;
const PRIVATE_DIRECTORY: u32 = 0o700;

/// The directory.
pub(crate) struct Target {
    root: OwnedFd,
    /// The directory of the last file. The next file is most likely in the same one.
    last: Option<(PathBuf, OwnedFd)>,
}

/// A name in an open directory.
pub(crate) struct TargetName<'a> {
    directory: BorrowedFd<'a>,
    pub(crate) name: &'a OsStr,
}

impl Target {
    pub(crate) fn open(root: &Path) -> io::Result<Self> {
        let root = fs::open(
            root,
            OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        Ok(Target { root, last: None })
    }

    /// A path below the directory. The directories on the way are there.
    pub(crate) fn name<'a>(&'a mut self, path: &'a Path) -> io::Result<TargetName<'a>> {
        let parent = path.parent().unwrap_or(Path::new(""));
        let name = path.file_name().ok_or(Errno::INVAL)?;
        if parent.as_os_str().is_empty() {
            return Ok(TargetName {
                directory: self.root.as_fd(),
                name,
            });
        }
        if self.last.as_ref().is_none_or(|(known, _)| known != parent) {
            self.last = Some((parent.to_owned(), self.open_directory(parent)?));
        }
        let (_, directory) = self.last.as_ref().expect("just set");
        Ok(TargetName {
            directory: directory.as_fd(),
            name,
        })
    }

    fn open_directory(&self, path: &Path) -> io::Result<OwnedFd> {
        let mut directory: Option<OwnedFd> = None;
        for component in path.components() {
            let Component::Normal(name) = component else {
                return Err(Errno::INVAL.into());
            };
            let above = directory.as_ref().unwrap_or(&self.root);
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            directory = Some(fs::openat(above, name, flags, Mode::empty())?);
        }
        directory.ok_or_else(|| Errno::INVAL.into())
    }
}

impl TargetName<'_> {
    /// What is there; `None` if nothing is. A link is not followed.
    pub(crate) fn stat(&self) -> io::Result<Option<Stat>> {
        match fs::statat(self.directory, self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Makes a directory, if there is none.
    pub(crate) fn make_directory(&self) -> io::Result<()> {
        match self.stat()? {
            Some(stat) if file_type(&stat) == FileType::Directory => Ok(()),
            Some(_) => Err(Errno::NOTDIR.into()),
            None => Ok(fs::mkdirat(
                self.directory,
                self.name,
                Mode::from(PRIVATE_DIRECTORY),
            )?),
        }
    }

    /// Makes a link, in the place of what is there.
    pub(crate) fn make_link(&self, text: &OsStr, modified: (i64, u32)) -> io::Result<()> {
        let part = self.part();
        match fs::unlinkat(self.directory, &part, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        fs::symlinkat(text, self.directory, &part)?;
        self.set_times(&part, modified)?;
        Ok(fs::renameat(
            self.directory,
            &part,
            self.directory,
            self.name,
        )?)
    }

    /// The text of the link that is there.
    pub(crate) fn link(&self) -> io::Result<OsString> {
        let text = fs::readlinkat(self.directory, self.name, Vec::new())?;
        Ok(OsString::from_vec(text.into_bytes()))
    }

    /// Opens the file that is written in place of the one with this name, and makes it if there is none. Waits a while for
    /// another copy that writes the file, and that has perhaps been ended a moment ago.
    pub(crate) fn open_part(&self) -> io::Result<File> {
        let until = Instant::now() + LOCK_TIME;
        loop {
            let file = self.open_any_part()?;
            match fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(file),
                Err(Errno::WOULDBLOCK) if Instant::now() < until => thread::sleep(LOCK_PAUSE),
                Err(Errno::WOULDBLOCK) => {
                    return Err(io::Error::other("another copy is writing it"));
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn open_any_part(&self) -> io::Result<File> {
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        self.open(flags)
    }

    /// As [`TargetName::open_part`], of an earlier copy; `None` if there is none.
    pub(crate) fn open_left_part(&self) -> io::Result<Option<File>> {
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        match self.open(flags) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn open(&self, flags: OFlags) -> io::Result<File> {
        let file = fs::openat(self.directory, self.part(), flags, Mode::from(PRIVATE_FILE))?;
        match file_type(&fs::fstat(&file)?) {
            FileType::RegularFile => Ok(file.into()),
            _ => Err(io::Error::other(
                "in the place of the file to be written there is something else",
            )),
        }
    }

    /// Has the written file take its place.
    pub(crate) fn finish(&self, file: &File, mode: u32, modified: (i64, u32)) -> io::Result<()> {
        fs::fchmod(file, Mode::from(mode))?;
        fs::futimens(file, &times(modified))?;
        Ok(fs::renameat(
            self.directory,
            self.part(),
            self.directory,
            self.name,
        )?)
    }

    /// Sets permissions and times of a file or directory that is no link.
    pub(crate) fn set(&self, mode: u32, modified: (i64, u32)) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = fs::openat(self.directory, self.name, flags, Mode::empty())?;
        fs::fchmod(&file, Mode::from(mode))?;
        Ok(fs::futimens(&file, &times(modified))?)
    }

    fn set_times(&self, name: &OsStr, modified: (i64, u32)) -> io::Result<()> {
        Ok(fs::utimensat(
            self.directory,
            name,
            &times(modified),
            AtFlags::SYMLINK_NOFOLLOW,
        )?)
    }

    /// The name of the file while it is written.
    fn part(&self) -> OsString {
        let mut part = OsString::from(".");
        match self.name.len() <= LONGEST_NAME {
            true => part.push(self.name),
            false => part.push(&blake3::hash(self.name.as_bytes()).to_hex()[..32]),
        }
        part.push(".titin-part");
        part
    }
}

pub(crate) fn file_type(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

fn times((seconds, nanoseconds): (i64, u32)) -> Timestamps {
    let modified = Timespec {
        tv_sec: seconds,
        tv_nsec: nanoseconds.into(),
    };
    Timestamps {
        last_access: modified,
        last_modification: modified,
    }
}
