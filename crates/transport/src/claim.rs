//! Folders that go with the processes which use them: marked as in use by a lock, which the system lets go when they
//! end, however they do. So whoever comes later can tell what is left over, and remove it.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::Path;
use std::time::Duration;

use rustix::fs::OFlags;
use titin_wire::EndpointId;

/// The file that is locked.
const LOCK: &str = "lock";

/// What it is called until it is.
const DRAFT: &str = "locking";

/// Drafts are made into locks at once: whoever made one that is as old as this was killed meanwhile.
const LEFT: Duration = Duration::from_secs(60);

/// Marks a new folder as in use, until the file is closed.
///
/// # Errors
/// If the folder cannot be written to, or its file system knows no locks.
pub fn claim(folder: &Path) -> io::Result<File> {
    // Nobody sees the file under its name before it is locked.
    let made = folder.join(DRAFT);
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&made)?;
    file.lock_shared()?;
    fs::rename(made, folder.join(LOCK))?;
    Ok(file)
}

/// Marks a folder that is in use as used by this process too.
///
/// # Errors
/// If it is not marked, or is being removed.
pub fn join(folder: &Path) -> io::Result<File> {
    let file = File::open(folder.join(LOCK))?;
    file.try_lock_shared()?;
    Ok(file)
}

/// Makes a folder in which any user may open files, or joins those who have made it. Only its owner puts files into it: what
/// another user puts there could not be removed with it. It goes with the last of them that [leaves](leave). Who makes
/// one removes those beside it that nobody uses any more, whose names begin so.
///
/// # Errors
/// If it can neither be made nor joined.
pub fn enter(folder: &Path, names: &str) -> io::Result<File> {
    if let Ok(file) = join(folder) {
        return Ok(file);
    }
    folder
        .parent()
        .into_iter()
        .for_each(|place| sweep(place, names));
    // Nobody sees it under its name before it is marked.
    let made = folder.with_extension(format!("{:032x}", EndpointId::random().0));
    DirBuilder::new().mode(0o700).create(&made)?;
    let entered = claim(&made).and_then(|file| {
        fs::set_permissions(&made, Permissions::from_mode(0o711))?;
        fs::rename(&made, folder)?;
        Ok(file)
    });
    entered.or_else(|_| {
        let _ = fs::remove_dir_all(&made);
        join(folder)
    })
}

/// Lets go of a folder, and removes it if nobody else uses it.
pub fn leave(folder: &Path, claim: File) {
    // A forked process may have the file open, too.
    let _ = claim.unlock();
    remove(folder);
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
    // Who comes meanwhile finds it locked.
    if let Ok(Some(_lock)) = left_over(folder) {
        let _ = fs::remove_dir_all(folder);
    }
}

/// The lock of a folder that nobody uses. Others may write to such places, so nothing is taken to be what it should.
fn left_over(folder: &Path) -> io::Result<Option<File>> {
    let own = |of: &fs::Metadata| of.uid() == rustix::process::geteuid().as_raw();
    let found = fs::symlink_metadata(folder)?;
    if !found.is_dir() || !own(&found) {
        return Ok(None);
    }
    let is_old = |of: &fs::Metadata| {
        of.modified()
            .ok()
            .and_then(|then| then.elapsed().ok())
            .is_some_and(|age| age >= LEFT)
    };
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
    let open = |name| {
        OpenOptions::new()
            .read(true)
            .custom_flags(flags as i32)
            .open(folder.join(name))
    };
    let (file, is_draft) = match open(LOCK) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => match open(DRAFT) {
            // Whoever made or removed it was killed in between.
            Err(error)
                if error.kind() == io::ErrorKind::NotFound
                    && is_random(folder)
                    && is_old(&found) =>
            {
                return File::open(folder).map(Some);
            }
            file => (file?, true),
        },
        file => (file?, false),
    };
    let found = file.metadata()?;
    if !found.is_file() || !own(&found) || is_draft && !is_old(&found) {
        return Ok(None);
    }
    Ok(file.try_lock().is_ok().then_some(file))
}

/// Whether the name of a folder ends as those do that are made here, in many random digits, so that no person has chosen it.
fn is_random(folder: &Path) -> bool {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let digits = name.rsplit(['-', '.']).next().unwrap_or_default();
    digits.len() >= 16 && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn a_folder_goes_with_the_last_of_those_who_have_entered_it() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("t-run");
        let claims: Vec<File> = std::thread::scope(|scope| {
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
        for (left, claim) in (0..8).rev().zip(claims) {
            assert!(folder.join("socket").exists());
            leave(&folder, claim);
            assert_eq!(folder.exists(), left > 0);
        }
        drop(enter(&folder, "t-").unwrap());
    }

    #[test]
    fn only_what_nobody_uses_any_more_is_removed() {
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
        draft.set_modified(SystemTime::now() - 2 * LEFT).unwrap();
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
                .set_modified(SystemTime::now() - 2 * LEFT)
                .unwrap();
        }
        sweep(place.path(), "t-");
        assert!(!made.exists() && !users.exists() && !draft.exists() && person.exists());
    }
}
