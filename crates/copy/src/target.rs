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
    self, AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, Stat, Timespec, Timestamps,
};
use rustix::io::Errno;

/// The longest name of a file that is being written. The system allows 255 bytes.
const LONGEST_NAME: usize = 200;

/// The end of the name of a file that is being written.
const PART_ENDING: &str = ".titin-part";

/// How long a copy waits for another one that writes the same file, and the pause before it looks again.
const LOCK_TIME: Duration = Duration::from_secs(10);
const LOCK_PAUSE: Duration = Duration::from_millis(50);

/// The permissions of a file or directory that is being written.
const PRIVATE_FILE: u32 = 0o600;
pub(crate) const PRIVATE_DIRECTORY: u32 = 0o700;

/// The directory.
pub(crate) struct Target {
    root: OwnedFd,
    /// The directory of the last file. The next file is most likely in the same one.
    last: Option<(PathBuf, OwnedFd)>,
}

/// A name in an open directory.
pub(crate) struct TargetName<'a> {
    pub(crate) directory: BorrowedFd<'a>,
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

    /// Opens a file below the directory, to read it.
    pub(crate) fn read(&mut self, path: &Path) -> io::Result<File> {
        self.name(path)?.read()
    }

    /// The names in a directory: one below, or this one by an empty path.
    pub(crate) fn list(&mut self, path: &Path) -> io::Result<Vec<OsString>> {
        let (_, names) = match path.as_os_str().is_empty() {
            true => open_and_list(self.root.as_fd(), OsStr::new("."))?,
            false => {
                let TargetName { directory, name } = self.name(path)?;
                open_and_list(directory, name)?
            }
        };
        Ok(names)
    }

    /// Forgets the directory of the last file, which is perhaps removed.
    pub(crate) fn forget(&mut self) {
        self.last = None;
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
    /// Opens what is there, to read it. A link is not followed.
    pub(crate) fn read(&self) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Ok(fs::openat(self.directory, self.name, flags, Mode::empty())?.into())
    }

    /// What is there; `None` if nothing is. A link is not followed.
    pub(crate) fn stat(&self) -> io::Result<Option<Stat>> {
        match fs::statat(self.directory, self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Makes a directory, if there is none. Files can be written into it. True if it is new.
    pub(crate) fn make_directory(&self) -> io::Result<bool> {
        match self.stat()? {
            Some(stat) if file_type(&stat) == FileType::Directory => {
                let lacks = stat.st_mode & PRIVATE_DIRECTORY != PRIVATE_DIRECTORY;
                if lacks {
                    // Only its owner may do this. Others hear of it when they write there.
                    let _ = self.set_mode(stat.st_mode & 0o777 | PRIVATE_DIRECTORY);
                }
                Ok(false)
            }
            Some(_) => Err(Errno::NOTDIR.into()),
            None => {
                fs::mkdirat(self.directory, self.name, Mode::from(PRIVATE_DIRECTORY))?;
                Ok(true)
            }
        }
    }

    /// Makes a link, in the place of what is there.
    pub(crate) fn make_link(&self, text: &OsStr, modified: (i64, u32)) -> io::Result<()> {
        let part = self.part();
        self.remove_part()?;
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

    /// Opens the file that is written in place of the one with this name, and makes it if there is none that serves. Waits a
    /// while for another copy that writes the file, and that has perhaps been ended a moment ago.
    pub(crate) fn open_part(&self) -> io::Result<File> {
        let until = Instant::now() + LOCK_TIME;
        loop {
            let file = match self.make_part() {
                Err(Errno::EXIST) => match self.open_left_part()? {
                    Some(left) => left,
                    None => {
                        self.remove_part()?;
                        continue;
                    }
                },
                made => made?,
            };
            if !lock(&file)? {
                if Instant::now() >= until {
                    return Err(io::Error::other("another copy is writing it"));
                }
                thread::sleep(LOCK_PAUSE);
            } else if self.is_part(&file)? {
                return Ok(file);
            }
            // The copy that had the lock has finished its file.
        }
    }

    /// What an earlier copy has left of the file; `None` if there is nothing that serves: only a file of this user with no
    /// other name does.
    pub(crate) fn open_left_part(&self) -> io::Result<Option<File>> {
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let Ok(file) = fs::openat(self.directory, self.part(), flags, Mode::empty()) else {
            return Ok(None);
        };
        let stat = fs::fstat(&file)?;
        let serves = file_type(&stat) == FileType::RegularFile
            && stat.st_nlink == 1
            && stat.st_uid == rustix::process::geteuid().as_raw();
        Ok(serves.then(|| file.into()))
    }

    /// Makes the file to be written.
    fn make_part(&self) -> Result<File, Errno> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let file = fs::openat(self.directory, self.part(), flags, Mode::from(PRIVATE_FILE))?;
        Ok(file.into())
    }

    /// Removes what has the name of the file to be written, and does not serve.
    fn remove_part(&self) -> io::Result<()> {
        match fs::unlinkat(self.directory, self.part(), AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether the open file still has the name of the file to be written.
    fn is_part(&self, file: &File) -> io::Result<bool> {
        let own = fs::fstat(file)?;
        match fs::statat(self.directory, self.part(), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(named) => Ok((own.st_dev, own.st_ino) == (named.st_dev, named.st_ino)),
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Has the written file take its place.
    pub(crate) fn finish(&self, file: &File, mode: u32, modified: (i64, u32)) -> io::Result<()> {
        fs::fchmod(file, Mode::from(mode))?;
        fs::futimens(file, &times(modified))?;
        if !self.is_part(file)? {
            return Err(io::Error::other(
                "another process has removed or replaced it while it was written",
            ));
        }
        Ok(fs::renameat(
            self.directory,
            self.part(),
            self.directory,
            self.name,
        )?)
    }

    /// Sets permissions and times of a file or directory that is no link.
    pub(crate) fn set(&self, mode: u32, modified: (i64, u32)) -> io::Result<()> {
        let file = self.set_mode(mode)?;
        Ok(fs::futimens(&file, &times(modified))?)
    }

    /// Sets the permissions of a file or directory that is no link. Returns it open.
    pub(crate) fn set_mode(&self, mode: u32) -> io::Result<File> {
        let file = self.read()?;
        // That a directory hands its group on stays.
        let kept = fs::fstat(&file)?.st_mode & 0o7000;
        fs::fchmod(&file, Mode::from(mode | kept))?;
        Ok(file)
    }

    /// Sets the times of a link.
    pub(crate) fn set_link_times(&self, modified: (i64, u32)) -> io::Result<()> {
        self.set_times(self.name, modified)
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
        part.push(PART_ENDING);
        part
    }
}

/// Opens a directory that is no link, and lists what is in it.
pub(crate) fn open_and_list(
    above: BorrowedFd<'_>,
    name: &OsStr,
) -> io::Result<(OwnedFd, Vec<OsString>)> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = fs::openat(above, name, flags, Mode::empty())?;
    let mut names = Vec::new();
    for item in Dir::read_from(&opened)? {
        let item = item?;
        let name = item.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push(OsStr::from_bytes(name).to_owned());
        }
    }
    names.sort_unstable();
    Ok((opened, names))
}

/// Locks a file against other copies. False if another one has it. True on a file system without locks.
fn lock(file: &File) -> io::Result<bool> {
    match fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::NOLCK) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Whether a name is that of a file that a copy writes.
pub(crate) fn is_part_name(name: &OsStr) -> bool {
    let name = name.as_bytes();
    name.starts_with(b".") && name.ends_with(PART_ENDING.as_bytes())
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
