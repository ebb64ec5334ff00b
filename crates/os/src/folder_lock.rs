//! Folders, each shared by some processes and removed by the last of the processes.
//!
//! Each process holds a lock on a file in the folder. The system releases the lock when the process
//! ends, however the process ends. So a later process notices a left-over folder, and removes the
//! folder.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::Path;
use std::time::Duration;

use rustix::fs::OFlags;

/// The name of the locked file.
const LOCK: &str = "lock";

/// The name of the file before a process has locked the file.
const DRAFT: &str = "locking";

/// A draft becomes a lock at once. If a draft is older, the process that made the draft was killed.
const LONGEST_DRAFT: Duration = Duration::from_secs(60);

/// Locks a new folder until the file is closed.
///
/// # Errors
/// If the process cannot write to the folder, or the file system knows no locks.
pub fn lock_new(folder: &Path) -> io::Result<File> {
    // The file gets its final name only with the lock on the file.
    let draft = folder.join(DRAFT);
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&draft)?;
    file.lock_shared()?;
    fs::rename(draft, folder.join(LOCK))?;
    Ok(file)
}

/// Locks a folder for this process too, if other processes have locked the folder.
///
/// # Errors
/// If the folder is not locked, or is being removed.
pub fn join(folder: &Path) -> io::Result<File> {
    let file = File::open(folder.join(LOCK))?;
    file.try_lock_shared()?;
    Ok(file)
}

/// Makes a folder in which any user may open files, or joins the processes that have made the
/// folder.
///
/// Only the owner puts files into the folder, since the owner could not remove files of another
/// user. The last process to [leave](leave) removes the folder. A process that makes a folder also
/// removes unused folders in the same parent folder, if their names begin with `prefix`.
///
/// # Errors
/// If the folder can neither be made nor joined.
pub fn enter(folder: &Path, prefix: &str) -> io::Result<File> {
    if let Ok(file) = join(folder) {
        return Ok(file);
    }
    folder
        .parent()
        .into_iter()
        .for_each(|parent| sweep(parent, prefix));
    // The folder gets its final name only with the lock on the folder.
    let draft = folder.with_extension(random_digits());
    DirBuilder::new().mode(0o700).create(&draft)?;
    let entered = lock_new(&draft).and_then(|file| {
        fs::set_permissions(&draft, Permissions::from_mode(0o711))?;
        fs::rename(&draft, folder)?;
        Ok(file)
    });
    entered.or_else(|_| {
        let _ = fs::remove_dir_all(&draft);
        join(folder)
    })
}

/// Unlocks a folder, and removes the folder if no other process uses the folder.
pub fn leave(folder: &Path, lock: File) {
    // A forked process may have the file open, too, so closing the file would not be enough.
    let _ = lock.unlock();
    remove_unused(folder);
}

/// Removes unused folders of this user in `parent`, if the names begin with `prefix`. A folder
/// counts as unused if a process once locked the folder and no process uses the folder any more.
pub fn sweep(parent: &Path, prefix: &str) {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix)) {
        remove_unused(&entry.path());
    }
}

/// Removes a folder of this user that a process once locked, if no process uses the folder any
/// more.
pub fn remove_unused(folder: &Path) {
    // A process that comes meanwhile finds the folder locked.
    if let Ok(Some(_lock)) = lock_unused(folder) {
        let _ = fs::remove_dir_all(folder);
    }
}

/// Locks an unused folder. `None` if a process may use the folder. Other users may write to the
/// parent folder, so the function checks the types and the owners of all files.
fn lock_unused(folder: &Path) -> io::Result<Option<File>> {
    let metadata = fs::symlink_metadata(folder)?;
    if !metadata.is_dir() || !is_own(&metadata) {
        return Ok(None);
    }
    let (file, is_draft) = match open_unfollowed(folder, LOCK) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            match open_unfollowed(folder, DRAFT) {
                // The process was killed after making the folder and before making the draft, or
                // while removing the folder.
                Err(error)
                    if error.kind() == io::ErrorKind::NotFound
                        && is_random(folder)
                        && is_old(&metadata) =>
                {
                    return File::open(folder).map(Some);
                }
                file => (file?, true),
            }
        }
        file => (file?, false),
    };
    let metadata = file.metadata()?;
    if !metadata.is_file() || !is_own(&metadata) || is_draft && !is_old(&metadata) {
        return Ok(None);
    }
    Ok(file.try_lock().is_ok().then_some(file))
}

/// Opens a file of a folder for reading, unless the file is a link, without waiting for a pipe.
fn open_unfollowed(folder: &Path, name: &str) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
    OpenOptions::new()
        .read(true)
        .custom_flags(flags as i32)
        .open(folder.join(name))
}

fn is_own(metadata: &fs::Metadata) -> bool {
    metadata.uid() == rustix::process::geteuid().as_raw()
}

fn is_old(metadata: &fs::Metadata) -> bool {
    metadata
        .modified()
        .ok()
        .and_then(|then| then.elapsed().ok())
        .is_some_and(|age| age >= LONGEST_DRAFT)
}

/// Whether the name of a folder ends in many random digits, as only titin's own names do.
fn is_random(folder: &Path) -> bool {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let digits = name.rsplit(['-', '.']).next().unwrap_or_default();
    digits.len() >= 16 && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
}

/// Thirty-two random hexadecimal digits.
fn random_digits() -> String {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the system's random source works");
    format!("{:032x}", u128::from_le_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn a_folder_is_removed_by_the_last_process_that_leaves_it() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("t-run");
        let locks: Vec<File> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| enter(&folder, "t-").unwrap()))
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        assert_eq!(
            fs::read_dir(place.path()).unwrap().count(),
            1,
            "drafts are removed"
        );
        assert_eq!(
            fs::metadata(&folder).unwrap().permissions().mode() & 0o7777,
            0o711
        );
        fs::write(folder.join("socket"), "").unwrap();
        for (others, lock) in (0..8).rev().zip(locks) {
            assert!(folder.join("socket").exists());
            leave(&folder, lock);
            assert_eq!(folder.exists(), others > 0);
        }
        drop(enter(&folder, "t-").unwrap());
    }

    #[test]
    fn only_unused_folders_are_removed() {
        let place = tempfile::tempdir().unwrap();
        let folder = |name: &str| {
            let path = place.path().join(name);
            fs::create_dir(&path).unwrap();
            path
        };
        let (used, left, unmarked, other) = (
            folder("t-used"),
            folder("t-left"),
            folder("t-unmarked"),
            folder("other"),
        );
        let locks = [lock_new(&used).unwrap(), join(&used).unwrap()];
        drop(lock_new(&left).unwrap());
        drop(lock_new(&other).unwrap());
        // A link to a folder elsewhere, and a pipe, which would hold up a process that opens it.
        std::os::unix::fs::symlink(&other, place.path().join("t-link")).unwrap();
        let odd = folder("t-odd");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            odd.join(LOCK),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RWXU,
            0,
        )
        .unwrap();
        let [first, second] = locks;
        drop(first);
        sweep(place.path(), "t-");
        assert!(
            used.exists() && unmarked.exists() && other.exists() && odd.exists() && !left.exists()
        );
        drop(second);
        sweep(place.path(), "t-");
        assert!(!used.exists() && unmarked.exists() && other.join(LOCK).exists());
        assert!(join(&unmarked).is_err());
    }

    #[test]
    fn a_draft_goes_once_it_is_old() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("t-run.0123");
        fs::create_dir(&folder).unwrap();
        let draft = File::create_new(folder.join(DRAFT)).unwrap();
        sweep(place.path(), "t-");
        assert!(folder.exists(), "who makes it may be at work");
        draft
            .set_modified(SystemTime::now() - 2 * LONGEST_DRAFT)
            .unwrap();
        sweep(place.path(), "t-");
        assert!(!folder.exists());
    }

    #[test]
    fn a_folder_whose_maker_or_remover_was_killed_goes_once_it_is_old() {
        let place = tempfile::tempdir().unwrap();
        let [made, users, draft, person] = [
            "t-0123456789abcdef",
            "t-1000-0123456789abcdef",
            "t-01.0123456789abcdef",
            "t-data",
        ]
        .map(|name| {
            let folder = place.path().join(name);
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join("socket"), "").unwrap();
            folder
        });
        sweep(place.path(), "t-");
        assert!(made.exists() && draft.exists(), "somebody may be at work");
        for folder in [&made, &users, &draft, &person] {
            File::open(folder)
                .unwrap()
                .set_modified(SystemTime::now() - 2 * LONGEST_DRAFT)
                .unwrap();
        }
        sweep(place.path(), "t-");
        assert!(!made.exists() && !users.exists() && !draft.exists() && person.exists());
    }
}
