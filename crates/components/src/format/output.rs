//! A file written by a run. The file is open only during a write: settings may name a new file for
//! every use, and so many files could not stay open.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::Result;
use crate::error::OnFile;

/// A file for writing until the end of the run.
pub(super) struct Output {
    path: PathBuf,
    file: Option<File>,
    /// Whether anything was written.
    begun: bool,
}

impl Output {
    /// The first write creates the file or replaces an old file. So a message that cannot be
    /// written leaves an old file unchanged.
    pub(super) fn new(path: &Path) -> Self {
        Output {
            path: path.to_owned(),
            file: None,
            begun: false,
        }
    }

    /// Whether anything was written.
    pub(super) fn is_begun(&self) -> bool {
        self.begun
    }

    /// The path of the file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes at the end.
    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.open()?.write_all(bytes).on_file(&self.path, "write")
    }

    /// Writes at an offset. The position of [`append`](Output::append) stays the same.
    pub(super) fn put(&mut self, bytes: &[u8], offset: u64) -> Result<()> {
        self.open()?
            .write_all_at(bytes, offset)
            .on_file(&self.path, "write")
    }

    /// Reads at an offset.
    pub(super) fn read(&mut self, bytes: &mut [u8], offset: u64) -> Result<()> {
        self.open()?
            .read_exact_at(bytes, offset)
            .on_file(&self.path, "read")
    }

    /// Replaces the whole content at once. Readers see either the old content or all of the new.
    pub(super) fn replace(&mut self, parts: &[&[u8]]) -> Result<()> {
        self.file = Some(replace(&self.path, parts)?);
        self.begun = true;
        Ok(())
    }

    /// Closes the file until there is more to write.
    pub(super) fn pause(&mut self) {
        self.file = None;
    }

    fn open(&mut self) -> Result<&mut File> {
        let file = match self.file.take() {
            Some(file) => file,
            None if !self.begun => {
                let file = create(&self.path).on_file(&self.path, "create")?;
                self.begun = true;
                file
            }
            None => {
                let file = File::options().read(true).write(true).open(&self.path);
                let mut file = file.on_file(&self.path, "open")?;
                file.seek(SeekFrom::End(0)).on_file(&self.path, "open")?;
                file
            }
        };
        Ok(self.file.insert(file))
    }
}

/// Creates a file, or empties a file that is there.
fn create(path: &Path) -> std::io::Result<File> {
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(true);
    options.open(path)
}

/// Writes a file that appears complete or not at all: the file is written under another name, and
/// then renamed.
pub(super) fn replace(path: &Path, parts: &[&[u8]]) -> Result<File> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let begun = path.with_file_name(format!(".{name}.part"));
    let mut file = create(&begun).on_file(path, "create")?;
    let written = parts.iter().try_for_each(|part| file.write_all(part));
    if written.is_err() {
        let _ = std::fs::remove_file(&begun);
    }
    written.on_file(path, "write")?;
    std::fs::rename(&begun, path).on_file(path, "write")?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_rested_goes_on_where_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, "what was there").unwrap();
        let mut output = Output::new(&path);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "what was there");
        for word in ["one ", "two ", "three"] {
            output.append(word.as_bytes()).unwrap();
            output.pause();
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one two three");
        output.replace(&[b"all ", b"new"]).unwrap();
        output.append(b", and more").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "all new, and more");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
