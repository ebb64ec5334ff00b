//! Shared memory files of an MPI, left behind by killed ranks.
//!
//! MPICH makes a file in `/dev/shm` while the ranks begin, and removes the file some milliseconds
//! later. No variable changes the folder. A rank that is killed in between leaves the file for
//! ever. So the guard looks at each such new file, and finds out whether a process of the run has
//! the file open or mapped. After the end of the processes the guard removes the files of the run,
//! and no others.

use std::collections::HashMap;
use std::ffi::{CStr, OsStr, OsString};
use std::fs::{self, Metadata};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::inotify;

use crate::process_tree::{self, Descendant};

/// MPICH's folder for the files.
const PLACE: &str = "/dev/shm";

/// The beginnings of the files' names. Other files stay: a program may want to keep them.
const NAMES: [&[u8]; 1] = [b"mpich_shar_tmp"];

/// A file of this host: the device, and the inode number.
type FileId = (u64, u64);

/// The files that a process of the run had open or mapped.
#[derive(Debug)]
pub(super) struct MpiFiles {
    place: PathBuf,
    events: OwnedFd,
    found: HashMap<OsString, FileId>,
}

impl MpiFiles {
    /// Watches for new files from now on.
    ///
    /// # Errors
    /// If the system does not report new files.
    pub(super) fn watch() -> io::Result<Self> {
        MpiFiles::watch_in(Path::new(PLACE))
    }

    fn watch_in(place: &Path) -> io::Result<Self> {
        let events = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK)?;
        // At the first event the process may not have the file open yet. At the close the file is
        // mapped.
        inotify::add_watch(
            &events,
            place,
            inotify::WatchFlags::CREATE | inotify::WatchFlags::CLOSE_WRITE,
        )?;
        Ok(MpiFiles {
            place: place.to_owned(),
            events,
            found: HashMap::new(),
        })
    }

    /// Readable when there are new files for [`look`](Self::look).
    pub(super) fn events(&self) -> BorrowedFd<'_> {
        self.events.as_fd()
    }

    /// Finds the new files that processes below this process have open or mapped.
    pub(super) fn look(&mut self) {
        let mut new = self.new_files();
        if new.is_empty() {
            return;
        }
        for process in process_tree::descendants(process_tree::own_pid()) {
            self.found
                .extend(new.extract_if(|name, file| has(&process, &self.place.join(name), *file)));
        }
    }

    /// The files that the system has reported since the last look.
    fn new_files(&self) -> HashMap<OsString, FileId> {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut events = inotify::Reader::new(&self.events, &mut buffer);
        let mut new = HashMap::new();
        while let Ok(event) = events.next() {
            let name = OsStr::from_bytes(event.file_name().map(CStr::to_bytes).unwrap_or_default());
            if NAMES.iter().any(|begin| name.as_bytes().starts_with(begin))
                && let Some(file) = own_file(&self.place.join(name))
                && self.found.get(name) != Some(&file)
            {
                new.insert(name.to_owned(), file);
            }
        }
        new
    }

    /// Removes the remaining files, after the end of the processes.
    pub(super) fn remove(self) {
        for (name, file) in self.found {
            let path = self.place.join(name);
            if own_file(&path) == Some(file) {
                let _ = fs::remove_file(path);
            }
        }
    }
}

/// The id of a file, if the file is a plain file of this user.
fn own_file(path: &Path) -> Option<FileId> {
    let found = fs::symlink_metadata(path).ok()?;
    let is_own = found.is_file() && found.uid() == rustix::process::geteuid().as_raw();
    is_own.then(|| id(&found))
}

fn id(of: &Metadata) -> FileId {
    (of.dev(), of.ino())
}

/// Whether a process has a file open or mapped. A process maps a file before closing it.
fn has(process: &Descendant, path: &Path, file: FileId) -> bool {
    let proc = PathBuf::from(format!("/proc/{}", process.pid));
    let mut open = fs::read_dir(proc.join("fd"))
        .into_iter()
        .flatten()
        .flatten();
    if open.any(|entry| fs::metadata(entry.path()).is_ok_and(|found| id(&found) == file)) {
        return true;
    }
    let maps = fs::read(proc.join("maps")).unwrap_or_default();
    maps.split(|&byte| byte == b'\n')
        .any(|line| is_mapped(line, path, file))
}

/// Whether a line of a process's `maps` is about a file.
fn is_mapped(line: &[u8], path: &Path, (_, number): FileId) -> bool {
    // The fields are addresses, rights, offset, device and inode; then blanks and the path.
    let mut fields = line.splitn(6, |&byte| byte == b' ');
    let found = fields
        .nth(4)
        .and_then(|number| str::from_utf8(number).ok()?.parse().ok());
    found == Some(number)
        && fields
            .next()
            .is_some_and(|rest| rest.trim_ascii_start() == path.as_os_str().as_bytes())
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// A child that has run `script` in a shell in the folder. The child ends at the end of its
    /// input.
    fn child(folder: &Path, script: &str) -> Child {
        let script = format!("{script}\necho done; read word");
        let mut child = Command::new("sh")
            .args(["-c", &script])
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap())
            .read_line(&mut line)
            .unwrap();
        assert_eq!(line, "done\n");
        child
    }

    fn end(mut child: Child) {
        writeln!(child.stdin.as_mut().unwrap()).unwrap();
        child.wait().unwrap();
    }

    fn left(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn what_descendants_have_in_hand_goes_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path();
        fs::write(place.join("mpich_shar_tmp_before"), "").unwrap();
        let mut files = MpiFiles::watch_in(place).unwrap();
        // This process stands for a process outside of the run: no process is its own descendant.
        let _other = fs::File::create(place.join("mpich_shar_tmp_other")).unwrap();
        let below = "sh -c 'exec 5>mpich_shar_tmp_below; echo done; read word'";
        let holder = child(
            place,
            &format!("exec 3>mpich_shar_tmp_open 4>mine; {below}"),
        );
        let replaced = child(place, "exec 3>mpich_shar_tmp_again");
        files.look();
        end(holder);
        end(replaced);
        // A new file with the name of a file that was moved away.
        let again = place.join("mpich_shar_tmp_again");
        fs::rename(&again, place.join("moved")).unwrap();
        fs::write(&again, "").unwrap();
        files.look();
        files.remove();
        let kept = [
            "mine",
            "moved",
            "mpich_shar_tmp_again",
            "mpich_shar_tmp_before",
            "mpich_shar_tmp_other",
        ];
        assert_eq!(left(place), kept);
    }

    #[test]
    fn a_file_that_is_mapped_and_closed_is_found() {
        let line = b"7f6e139eb000-7f6e139ec000 rw-s 00000000 00:1a 4711                       /dev/shm/mpich_shar_tmp1";
        let path = Path::new("/dev/shm/mpich_shar_tmp1");
        assert!(is_mapped(line, path, (0, 4711)));
        assert!(
            !is_mapped(line, path, (0, 4712)),
            "another file of that name"
        );
        assert!(!is_mapped(
            line,
            Path::new("/dev/shm/mpich_shar_tmp"),
            (0, 4711)
        ));
        assert!(!is_mapped(
            b"7f6e139eb000-7f6e139ec000 rw-p 00000000 00:00 0 ",
            path,
            (0, 4711)
        ));
        assert!(!is_mapped(b"", path, (0, 0)));
    }
}
