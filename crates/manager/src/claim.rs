//! Folders that go with the processes which use them: marked as in use by a lock, which the system lets go when they
//! end, however they do. So whoever comes later can tell what is left over, and remove it.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;

/// The file that is locked.
const LOCK: &str = "lock";

/// Marks a new folder as in use, until the file is closed.
///
/// # Errors
/// If the folder cannot be written to, or its file system knows no locks.
pub fn claim(folder: &Path) -> io::Result<File> {
    // Nobody sees the file under its name before it is locked.
    let made = folder.join("locking");
    let file = OpenOptions::new().write(true).create_new(true).open(&made)?;
    file.lock_shared()?;
    fs::rename(made, folder.join(LOCK))?;
    Ok(file)
}

/// Marks a folder that is in use as used by this process too.
///
/// # Errors
/// If it is not marked, or left over.
pub fn join(folder: &Path) -> io::Result<File> {
    let file = File::open(folder.join(LOCK))?;
    file.try_lock_shared()?;
    Ok(file)
}

/// Removes this user's folders in a place that were marked, and that nobody uses any more. Their names begin so.
pub fn sweep(place: &Path, names: &str) {
    let entries = fs::read_dir(place).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(names)) {
        remove(&entry.path());
    }
}

/// Removes a folder of this user's that was marked, if nobody uses it any more.
pub fn remove(folder: &Path) {
    if is_left_over(folder).unwrap_or(false) {
        let _ = fs::remove_dir_all(folder);
    }
}

/// Whether a folder is. Others may write to such places, so nothing is taken to be what it should.
fn is_left_over(folder: &Path) -> io::Result<bool> {
    let own = |of: &fs::Metadata| of.uid() == rustix::process::geteuid().as_raw();
    let found = fs::symlink_metadata(folder)?;
    if !found.is_dir() || !own(&found) {
        return Ok(false);
    }
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
    let file = OpenOptions::new().read(true).custom_flags(flags as i32).open(folder.join(LOCK))?;
    let found = file.metadata()?;
    Ok(found.is_file() && own(&found) && file.try_lock().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_nobody_uses_any_more_is_removed() {
        let place = tempfile::tempdir().unwrap();
        let folder = |name: &str| {
            let path = place.path().join(name);
            fs::create_dir(&path).unwrap();
            path
        };
        let (used, left, unmarked, other) =
            (folder("t-used"), folder("t-left"), folder("t-unmarked"), folder("other"));
        let claims = [claim(&used).unwrap(), join(&used).unwrap()];
        drop(claim(&left).unwrap());
        drop(claim(&other).unwrap());
        // What looks like one but lies elsewhere, or would hold up whoever opens it.
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
        let [first, second] = claims;
        drop(first);
        sweep(place.path(), "t-");
        assert!(used.exists() && unmarked.exists() && other.exists() && odd.exists() && !left.exists());
        drop(second);
        sweep(place.path(), "t-");
        assert!(!used.exists() && unmarked.exists() && other.join(LOCK).exists());
        assert!(join(&unmarked).is_err());
    }
}
