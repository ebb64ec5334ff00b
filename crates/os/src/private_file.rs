//! Files with secrets, which others may not open.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// The most bytes of a file that is read whole.
const LONGEST_FILE: u64 = 4 << 20;

/// Why a file was not read.
#[derive(Debug)]
pub enum Unread {
    /// The file cannot be read.
    Io(io::Error),
    /// The path leads to a pipe, a device or a folder, or the file is too long.
    NotOrdinary,
    /// Other users may open the file.
    Open {
        /// The file.
        path: PathBuf,
        /// The permissions of the file.
        mode: u32,
        /// The permissions without those that are too many.
        closed: u32,
    },
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unread::Io(error) => error.fmt(f),
            Unread::NotOrdinary => write!(
                f,
                "it is no ordinary file of at most {} MiB",
                LONGEST_FILE >> 20
            ),
            Unread::Open { path, mode, closed } => write!(
                f,
                "other users may open the file (mode {mode:03o}), and it is a secret: `chmod {closed:03o} {}` mends that; \
                 if somebody may have read it, make a new one",
                path.display()
            ),
        }
    }
}

/// Reads the text of an ordinary file. To open a pipe might take for ever, and so might reading a device.
///
/// # Errors
/// [`Unread::Io`] and [`Unread::NotOrdinary`].
pub fn read_ordinary(path: &Path) -> Result<String, Unread> {
    Ok(read(path)?.0)
}

/// Reads a secret. Fails if the file's mode has one of the bits `forbidden`.
///
/// # Errors
/// All of [`Unread`].
pub fn read_private(path: &Path, forbidden: u32) -> Result<String, Unread> {
    let (text, mode) = read(path)?;
    if mode & forbidden == 0 {
        return Ok(text);
    }
    Err(Unread::Open {
        path: path.to_owned(),
        mode,
        closed: mode & !forbidden,
    })
}

/// The text and the permissions of an ordinary file.
fn read(path: &Path) -> Result<(String, u32), Unread> {
    let without_waiting = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(without_waiting)
        .open(path)
        .map_err(Unread::Io)?;
    let found = file.metadata().map_err(Unread::Io)?;
    if !found.is_file() || found.len() > LONGEST_FILE {
        return Err(Unread::NotOrdinary);
    }
    let mut text = String::new();
    file.take(LONGEST_FILE)
        .read_to_string(&mut text)
        .map_err(Unread::Io)?;
    Ok((text, found.permissions().mode() & 0o777))
}

/// Writes a new file that only the user may read.
///
/// # Errors
/// If there is a file already, and the errors of the system.
pub fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    let written = file.write_all(text.as_bytes());
    written.inspect_err(|_| drop(fs::remove_file(path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_read_as_long_as_it_is_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        write_private(&path, "sesame").unwrap();
        assert_eq!(read_private(&path, 0o077).unwrap(), "sesame");
        assert!(write_private(&path, "again").is_err());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let open = read_private(&path, 0o077).unwrap_err().to_string();
        assert!(
            open.contains("mode 640") && open.contains("chmod 600"),
            "{open}"
        );
        assert_eq!(read_private(&path, 0o007).unwrap(), "sesame");
        let folder = read_ordinary(folder.path()).unwrap_err();
        assert!(matches!(folder, Unread::NotOrdinary));
    }
}
