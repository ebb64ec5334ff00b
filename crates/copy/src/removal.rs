//! What the receiver has and the sender has not, and its removal.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{self, AtFlags, FileType, Mode, OFlags};

use crate::report::CopyReport;
use crate::target::{PRIVATE_DIRECTORY, Target, file_type, is_part_name, open_and_list};
use crate::walk::has_vanished;

/// What the sender has told in a round, by the paths below the root.
#[derive(Default)]
pub(crate) struct ToldPaths {
    /// The beginnings of the hashes of all paths. The paths themselves would take several times the memory.
    hashes: HashSet<[u8; 16]>,
    /// The directories of which all that is in them was told.
    listed: Vec<PathBuf>,
}

impl ToldPaths {
    pub(crate) fn add(&mut self, path: &Path, is_listed: bool) {
        self.hashes.insert(hash(path));
        if is_listed {
            self.listed.push(path.to_owned());
        }
    }

    /// Removes what is in the listed directories, and was not told itself. With `only_look` it is only noted.
    pub(crate) fn remove_others(
        &self,
        target: &mut Target,
        only_look: bool,
        report: &mut CopyReport,
    ) {
        for directory in &self.listed {
            let names = match target.list(directory) {
                Ok(names) => names,
                // The directory would have been made.
                Err(error) if only_look && has_vanished(&error) => continue,
                Err(error) => {
                    report.note_failed(directory.as_os_str().as_bytes(), error);
                    continue;
                }
            };
            for name in names {
                let path = directory.join(&name);
                // The part of a file belongs to a copy.
                if !is_part_name(&name) && !self.hashes.contains(&hash(&path)) {
                    remove(target, &path, only_look, report);
                }
            }
        }
    }
}

fn hash(path: &Path) -> [u8; 16] {
    let hash = blake3::hash(path.as_os_str().as_bytes());
    *hash.as_bytes().first_chunk().expect("32 bytes")
}

/// Removes a file, a link, or a directory with all that is in it, and notes that. What is not there is no failure. With
/// `only_look` it is only noted.
pub(crate) fn remove(target: &mut Target, path: &Path, only_look: bool, report: &mut CopyReport) {
    let removed = target
        .name(path)
        .and_then(|name| remove_all(name.directory, name.name, only_look));
    match removed {
        Ok((count, is_directory)) => {
            let slash: &[u8] = if is_directory { b"/" } else { b"" };
            report.note_removed(&[path.as_os_str().as_bytes(), slash].concat(), count);
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => report.note_failed(
            path.as_os_str().as_bytes(),
            format!("it cannot be removed: {error}"),
        ),
    }
}

/// Removes a name in a directory. Returns how many files, links and directories were removed, and whether the name was that of
/// a directory.
fn remove_all(directory: BorrowedFd<'_>, name: &OsStr, only_look: bool) -> io::Result<(u64, bool)> {
    let stat = fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
    if file_type(&stat) != FileType::Directory {
        if !only_look {
            fs::unlinkat(directory, name, AtFlags::empty())?;
        }
        return Ok((1, false));
    }
    // Root alone may do without.
    if !only_look && stat.st_mode & PRIVATE_DIRECTORY != PRIVATE_DIRECTORY {
        let opened = fs::openat(
            directory,
            name,
            OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            Mode::empty(),
        );
        let _ = opened.and_then(|opened| fs::fchmod(opened, Mode::from(PRIVATE_DIRECTORY)));
    }
    let (opened, names) = open_and_list(directory, name)?;
    let mut count = 1;
    for name in names {
        count += remove_all(opened.as_fd(), &name, only_look)?.0;
    }
    if !only_look {
        fs::unlinkat(directory, name, AtFlags::REMOVEDIR)?;
    }
    Ok((count, true))
}
