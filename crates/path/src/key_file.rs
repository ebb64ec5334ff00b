//! The file with the key of a path.

use std::io::ErrorKind;
use std::path::Path;

use titin_os::private_file::{Unread, read_private, write_private};
use titin_wire::Secret;

use crate::error::{PathError, Result};

/// The environment variable with the file of the key.
pub const KEY_VARIABLE: &str = "TITIN_PATH_KEY";

/// Makes a key and writes it to a new file, which only the user may read.
///
/// # Errors
/// [`PathError::NoKey`] if there is such a file already, or it cannot be written.
pub fn make_key(file: &Path) -> Result<()> {
    let text = format!("{}\n", Secret::random().reveal());
    write_private(file, &text).map_err(|error| {
        let why = match error.kind() {
            ErrorKind::AlreadyExists => {
                "there is such a file already: remove it, or give another name".to_owned()
            }
            _ => error.to_string(),
        };
        no_key(file, &why)
    })
}

/// Reads the key from a file. A group may share it.
///
/// # Errors
/// [`PathError::NoKey`] if the file cannot be read, is no key, or is open to everybody.
pub fn read_key(file: &Path) -> Result<Secret> {
    let text = read_private(file, 0o007).map_err(|why| match why {
        Unread::Io(error) if error.kind() == ErrorKind::NotFound => no_key(
            file,
            "there is no such file: make it with `titin path key FILE`, and copy it to the other end",
        ),
        why => no_key(file, &why.to_string()),
    })?;
    text.parse()
        .map_err(|error: titin_wire::Malformed| no_key(file, &error.to_string()))
}

/// Reads the key from the file that [`KEY_VARIABLE`] names.
///
/// # Errors
/// As [`read_key`]; and if the variable names no file.
pub fn usual_key() -> Result<Secret> {
    let Some(file) = std::env::var_os(KEY_VARIABLE).filter(|file| !file.is_empty()) else {
        return Err(PathError::NoKey(format!(
            "no key is given: name its file, or set {KEY_VARIABLE} to it; `titin path key FILE` makes one for both ends"
        )));
    };
    read_key(Path::new(&file))
}

fn no_key(file: &Path, why: &str) -> PathError {
    PathError::NoKey(format!("key {}: {why}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_comes_back_from_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("key");
        let missing = read_key(&file).unwrap_err().to_string();
        assert!(missing.contains("titin path key FILE"), "{missing}");
        make_key(&file).unwrap();
        assert!(read_key(&file).unwrap() == read_key(&file).unwrap());
        let twice = make_key(&file).unwrap_err().to_string();
        assert!(twice.contains("already"), "{twice}");
        std::fs::write(&file, "0123").unwrap();
        let wrong = read_key(&file).unwrap_err().to_string();
        assert!(wrong.contains("64 hexadecimal digits"), "{wrong}");
    }
}
