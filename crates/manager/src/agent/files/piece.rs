//! Pieces of files: how they are read at one end and written at the other.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{
    DirBuilderExt as _, FileExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
    symlink,
};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{OFlags, Timespec, Timestamps, UTIME_OMIT};
use serde::{Deserialize, Serialize};
use titin_os::regular_file::{self, Links};

use crate::sparse::next_data;

/// The most bytes of a piece.
pub(super) const PIECE: usize = 128 << 10;

/// The most bytes on the way to the other end.
pub(crate) const MOST_IN_FLIGHT: u64 = 4 << 20;

/// What a piece counts beside its bytes, so that many empty files are bounded too.
pub(super) const HEAD: u64 = 256;

/// The bits of a mode that a copy keeps: the permissions, and the bit for folders in which everybody may write.
const KEPT_BITS: u32 = 0o1777;

/// The outputs of a program, in the folder of the program.
pub(crate) const OUTPUTS: [&str; 2] = ["stdout.txt", "stderr.txt"];

/// A piece of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FilePiece {
    /// The path in the folder `instances` of the run directory.
    #[serde(with = "serde_bytes")]
    path: Vec<u8>,
    content: PieceContent,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum PieceContent {
    /// A folder, before the first piece of its content.
    Folder,
    /// A folder, behind the last piece of its content.
    FolderEnd { mode: u32, modified: Modified },
    /// Bytes of a file from an offset on. What is between two pieces is a hole.
    Bytes {
        mode: u32,
        /// The first piece of a file: the file is empty before it.
        is_first: bool,
        offset: u64,
        #[serde(with = "serde_bytes")]
        bytes: Vec<u8>,
        /// In the last piece of a file.
        end: Option<FileEnd>,
    },
    /// A symbolic link.
    Link {
        #[serde(with = "serde_bytes")]
        target: Vec<u8>,
    },
    /// What was at the path is not there any more.
    Removed,
}

/// What is set once all bytes of a file are there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileEnd {
    length: u64,
    modified: Modified,
}

/// When a file or folder was changed last: seconds since 1970, and nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Modified(i64, i64);

impl Modified {
    fn of(found: &Metadata) -> Self {
        Modified(found.mtime(), found.mtime_nsec())
    }

    fn apply(&self, file: &File) -> io::Result<()> {
        let times = Timestamps {
            last_access: Timespec {
                tv_sec: 0,
                tv_nsec: UTIME_OMIT,
            },
            last_modification: Timespec {
                tv_sec: self.0,
                tv_nsec: self.1,
            },
        };
        Ok(rustix::fs::futimens(file, &times)?)
    }
}

impl FilePiece {
    pub(super) fn new(path: &Path, content: PieceContent) -> Self {
        FilePiece {
            path: path.as_os_str().as_bytes().to_vec(),
            content,
        }
    }

    /// The last piece of a folder.
    pub(super) fn folder_end(path: &Path, found: &Metadata) -> Self {
        let content = PieceContent::FolderEnd {
            mode: found.mode(),
            modified: Modified::of(found),
        };
        FilePiece::new(path, content)
    }

    /// Reads the piece of a file at an offset, or behind the hole that is there.
    pub(super) fn read(file: &File, path: &Path, offset: u64, is_first: bool) -> io::Result<Self> {
        let found = file.metadata()?;
        let data = next_data(file, offset)?;
        let mut bytes = vec![0; PIECE.min(usize::try_from(data.end - data.start).unwrap_or(PIECE))];
        let count = file.read_at(&mut bytes, data.start)?;
        bytes.truncate(count);
        let is_end = data.start + count as u64 >= found.len();
        let end = is_end.then(|| FileEnd {
            length: found.len(),
            modified: Modified::of(&found),
        });
        let content = PieceContent::Bytes {
            mode: found.mode(),
            is_first,
            offset: data.start,
            bytes,
            end,
        };
        Ok(FilePiece::new(path, content))
    }

    /// What the piece counts against [`MOST_IN_FLIGHT`].
    pub(crate) fn size(&self) -> u64 {
        HEAD + self.path.len() as u64 + self.bytes().len() as u64
    }

    /// The bytes of a file.
    pub(super) fn bytes(&self) -> &[u8] {
        match &self.content {
            PieceContent::Bytes { bytes, .. } => bytes,
            _ => &[],
        }
    }

    /// Whether more pieces of the file follow.
    pub(crate) fn is_followed(&self) -> bool {
        self.next_offset().is_some()
    }

    /// Whether the piece goes on in the file at a path.
    pub(crate) fn follows_in(&self, path: &Path) -> bool {
        let follows = matches!(
            self.content,
            PieceContent::Bytes {
                is_first: false,
                ..
            }
        );
        follows && self.path() == path
    }

    /// The same piece, to be kept.
    pub(crate) fn without_bytes(mut self) -> Self {
        if let PieceContent::Bytes { bytes, .. } = &mut self.content {
            *bytes = Vec::new();
        }
        self
    }

    /// The offset of the next piece; `None` if nothing follows in the file.
    pub(super) fn next_offset(&self) -> Option<u64> {
        match &self.content {
            PieceContent::Bytes {
                offset,
                bytes,
                end: None,
                ..
            } => Some(offset + bytes.len() as u64),
            _ => None,
        }
    }

    /// The same piece of a file that may grow.
    pub(super) fn without_end(mut self) -> Self {
        if let PieceContent::Bytes { end, .. } = &mut self.content {
            *end = None;
        }
        self
    }

    /// The path in the folder `instances`.
    pub(crate) fn path(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.path))
    }

    /// Writes the piece below `root`, the folder `instances`.
    ///
    /// # Errors
    /// If the path leads out of `root`, also by a link, or the system refuses. Of a file that could not be
    /// written, no part stays.
    pub(crate) fn write(&self, root: &Path) -> io::Result<()> {
        self.write_content(root).map_err(|error| {
            self.remove_part(root);
            at(self.path(), &error)
        })
    }

    /// Removes the part of a file that has come before this piece, and was not written wholly: a reader could
    /// take the part for the whole. A part of an output stays. Returns whether a part was removed.
    pub(crate) fn remove_part(&self, root: &Path) -> bool {
        let is_of_file = matches!(self.content, PieceContent::Bytes { .. });
        let file = place_below(root, self.path());
        is_of_file
            && !is_output(self.path())
            && file.is_ok_and(|file| fs::remove_file(file).is_ok())
    }

    fn write_content(&self, root: &Path) -> io::Result<()> {
        let file = place_below(root, self.path())?;
        self.make_way(&file)?;
        let no_link = OFlags::NOFOLLOW.bits().cast_signed();
        match &self.content {
            PieceContent::Folder => {
                // Nobody else may look in before the last piece says so.
                DirBuilder::new()
                    .recursive(true)
                    .mode(0o700)
                    .create(&file)?;
                let mode = fs::metadata(&file)?.mode() & KEPT_BITS;
                fs::set_permissions(&file, Permissions::from_mode(mode | 0o700))
            }
            PieceContent::FolderEnd { mode, modified } => {
                let flags = no_link | OFlags::DIRECTORY.bits().cast_signed();
                let folder = OpenOptions::new()
                    .read(true)
                    .custom_flags(flags)
                    .open(file)?;
                modified.apply(&folder)?;
                folder.set_permissions(Permissions::from_mode(mode & KEPT_BITS))
            }
            PieceContent::Bytes {
                mode,
                is_first,
                offset,
                bytes,
                end,
            } => {
                // The owner may write until the last piece, because the next piece opens the file again.
                let own = if end.is_none() { 0o200 } else { 0 };
                let mode = mode & KEPT_BITS | own;
                let mut options = OpenOptions::new();
                // A part that was removed does not come back as a file with a hole.
                options.create(*is_first || is_output(self.path()));
                options.write(true).truncate(*is_first);
                options.custom_flags(no_link);
                let file = options.mode(mode).open(file)?;
                file.write_all_at(bytes, *offset)?;
                if let Some(end) = end {
                    file.set_len(end.length)?;
                    end.modified.apply(&file)?;
                }
                file.set_permissions(Permissions::from_mode(mode))
            }
            PieceContent::Link { target } => symlink(OsStr::from_bytes(target), file),
            PieceContent::Removed => Ok(()),
        }
    }

    /// Removes what is in the way of a piece: something of another kind, or a file that cannot be
    /// written.
    fn make_way(&self, file: &Path) -> io::Result<()> {
        let Ok(found) = fs::symlink_metadata(file) else {
            return Ok(());
        };
        let stays = match &self.content {
            PieceContent::Folder | PieceContent::FolderEnd { .. } => found.is_dir(),
            PieceContent::Bytes { is_first, .. } => {
                !is_first || found.is_file() && found.mode() & 0o200 != 0
            }
            PieceContent::Link { .. } | PieceContent::Removed => false,
        };
        match (stays, found.is_dir()) {
            (true, _) => Ok(()),
            (false, true) => fs::remove_dir_all(file),
            (false, false) => fs::remove_file(file),
        }
    }
}

/// Whether a path below `instances` is that of an output, which grows as long as the program runs.
fn is_output(path: &Path) -> bool {
    let is_named_so = |name: &OsStr| OUTPUTS.iter().any(|output| name == *output);
    path.components().count() == 2 && path.file_name().is_some_and(is_named_so)
}

/// The place of a path below a folder. The path has only names, and no folder on the way is a link.
fn place_below(root: &Path, path: &Path) -> io::Result<PathBuf> {
    let outside = || io::Error::other("leads out of the run");
    let mut place = root.to_owned();
    for component in path.components() {
        let Component::Normal(name) = component else {
            return Err(outside());
        };
        if place != root && place.is_symlink() {
            return Err(outside());
        }
        place.push(name);
    }
    match place == root {
        true => Err(outside()),
        false => Ok(place),
    }
}

/// Opens a file to read it. Never waits for another process, as the opening of a pipe does.
///
/// # Errors
/// If there is no such file, if it is a link, a pipe or a device, or if the system refuses.
pub(super) fn open_file(path: &Path) -> io::Result<File> {
    let file = regular_file::open(path, Links::Refused)?;
    file.ok_or_else(|| io::Error::other("is not a file any more"))
}

/// An error with the path of the file.
pub(super) fn at(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first piece of a file.
    fn piece(path: &str, bytes: &[u8]) -> FilePiece {
        let content = PieceContent::Bytes {
            mode: 0o600,
            is_first: true,
            offset: 0,
            bytes: bytes.to_vec(),
            end: None,
        };
        FilePiece::new(Path::new(path), content)
    }

    #[test]
    fn no_piece_is_written_outside() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("instances");
        fs::create_dir(&root).unwrap();
        fs::write(folder.path().join("victim"), "lives").unwrap();
        symlink("..", root.join("up")).unwrap();
        symlink("../victim", root.join("file")).unwrap();
        for path in [
            "../victim",
            "/tmp/victim",
            "up/victim",
            "",
            "..",
            "a/../../victim",
        ] {
            let removed = FilePiece::new(Path::new(path), PieceContent::Removed);
            for piece in [piece(path, b"x"), removed] {
                let error = piece.write(&root).unwrap_err().to_string();
                assert!(error.contains("leads out of the run"), "{path}: {error}");
            }
        }
        // A link is replaced, and not followed.
        piece("file", b"x").write(&root).unwrap();
        assert_eq!(fs::read(root.join("file")).unwrap(), b"x");
        assert_eq!(fs::read(folder.path().join("victim")).unwrap(), b"lives");
    }

    #[test]
    fn of_a_file_that_cannot_be_written_no_part_stays() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir(root.join("a")).unwrap();
        for (path, stays) in [("a/data", false), ("a/stdout.txt", true)] {
            piece(path, b"first").write(root).unwrap();
            let mut next = piece(path, b"next");
            if let PieceContent::Bytes {
                is_first, offset, ..
            } = &mut next.content
            {
                // No file is as long.
                (*is_first, *offset) = (false, u64::MAX - 10);
            }
            next.write(root).unwrap_err();
            assert_eq!(root.join(path).exists(), stays, "{path}");
            if let PieceContent::Bytes { offset, .. } = &mut next.content {
                *offset = 5;
            }
            assert_eq!(next.write(root).is_ok(), stays, "{path}");
            assert_eq!(root.join(path).exists(), stays, "{path}");
        }
    }

    #[test]
    fn what_is_in_the_way_makes_room() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let make = |kind: &str| {
            let path = root.join("a");
            match kind {
                "folder" => fs::create_dir_all(path.join("full")).unwrap(),
                "link" => symlink("nowhere", path).unwrap(),
                _ => {
                    fs::write(&path, "before").unwrap();
                    let mode = if kind == "read-only" { 0o444 } else { 0o644 };
                    fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
                }
            }
        };
        let target = b"elsewhere".to_vec();
        for kind in ["folder", "link", "read-only", "file"] {
            for content in [
                piece("a", b"after").content,
                PieceContent::Folder,
                PieceContent::Link {
                    target: target.clone(),
                },
                PieceContent::Removed,
            ] {
                make(kind);
                let piece = FilePiece::new(Path::new("a"), content);
                piece.write(root).unwrap();
                let found = fs::symlink_metadata(root.join("a"));
                match &piece.content {
                    PieceContent::Bytes { .. } => {
                        assert_eq!(fs::read(root.join("a")).unwrap(), b"after", "{kind}");
                    }
                    PieceContent::Link { .. } => assert!(found.unwrap().is_symlink(), "{kind}"),
                    PieceContent::Removed => assert!(found.is_err(), "{kind}"),
                    _ => assert!(found.unwrap().is_dir(), "{kind}"),
                }
                let _ = fs::remove_dir_all(root.join("a"));
                let _ = fs::remove_file(root.join("a"));
            }
        }
    }
}
