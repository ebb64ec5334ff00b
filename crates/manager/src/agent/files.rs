//! Files of instances on the way between the run directory and a host that does not have it.
//!
//! Files travel as pieces, in both directions. The receiver of a piece acknowledges the bytes, and the
//! sender has at most [`MOST_IN_FLIGHT`] bytes that are not acknowledged. So neither end keeps more than
//! that in memory, however slow the line is.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{
    DirBuilderExt as _, FileExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{OFlags, SeekFrom, Timespec, Timestamps, UTIME_OMIT};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

/// The most bytes of a piece.
const PIECE: usize = 128 << 10;

/// The most bytes on the way to the other end.
pub(crate) const MOST_IN_FLIGHT: u64 = 4 << 20;

/// What a piece counts beside its bytes, so that many empty files are bounded too.
const HEAD: u64 = 256;

/// A piece of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FilePiece {
    /// The path in the folder `instances` of the run directory.
    #[serde(with = "serde_bytes")]
    path: Vec<u8>,
    content: PieceContent,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum PieceContent {
    /// A folder.
    Folder,
    /// Bytes of a file from an offset on. The piece with the offset 0 comes first. What is between two
    /// pieces is a hole.
    Bytes {
        mode: u32,
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
}

/// What is set once all bytes of a file are there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct FileEnd {
    length: u64,
    /// When the file was changed last: seconds since 1970, and nanoseconds.
    modified: (i64, i64),
}

impl FileEnd {
    fn of(found: &Metadata) -> Self {
        FileEnd {
            length: found.len(),
            modified: (found.mtime(), found.mtime_nsec()),
        }
    }

    fn apply(&self, file: &File) -> io::Result<()> {
        file.set_len(self.length)?;
        let (tv_sec, tv_nsec) = self.modified;
        let times = Timestamps {
            last_access: Timespec {
                tv_sec: 0,
                tv_nsec: UTIME_OMIT,
            },
            last_modification: Timespec { tv_sec, tv_nsec },
        };
        Ok(rustix::fs::futimens(file, &times)?)
    }
}

impl FilePiece {
    /// What the piece counts against [`MOST_IN_FLIGHT`].
    pub(crate) fn size(&self) -> u64 {
        HEAD + self.path.len() as u64 + self.length()
    }

    /// The number of bytes of a file.
    fn length(&self) -> u64 {
        match &self.content {
            PieceContent::Bytes { bytes, .. } => bytes.len() as u64,
            PieceContent::Folder | PieceContent::Link { .. } => 0,
        }
    }

    /// The offset of the next piece; `None` if nothing follows in the file.
    fn next_offset(&self) -> Option<u64> {
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

    /// The path in the folder `instances`.
    pub(crate) fn path(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.path))
    }

    /// Writes the piece below `root`, the folder `instances`.
    ///
    /// # Errors
    /// If the path leads out of `root`, also by a link, or the system refuses.
    pub(crate) fn write(&self, root: &Path) -> io::Result<()> {
        self.write_content(root)
            .map_err(|error| at(self.path(), &error))
    }

    fn write_content(&self, root: &Path) -> io::Result<()> {
        let file = place_below(root, self.path())?;
        self.make_way(&file)?;
        match &self.content {
            PieceContent::Folder => DirBuilder::new().recursive(true).mode(0o755).create(file),
            PieceContent::Bytes {
                mode,
                offset,
                bytes,
                end,
            } => {
                // The owner may write until the last piece, because the next piece opens the file again.
                let own = if end.is_none() { 0o200 } else { 0 };
                let mode = mode & 0o777 | own;
                let mut options = OpenOptions::new();
                options.write(true).create(true).truncate(*offset == 0);
                options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
                let file = options.mode(mode).open(file)?;
                file.write_all_at(bytes, *offset)?;
                end.as_ref().map_or(Ok(()), |end| end.apply(&file))?;
                file.set_permissions(Permissions::from_mode(mode))
            }
            PieceContent::Link { target } => {
                std::os::unix::fs::symlink(OsStr::from_bytes(target), file)
            }
        }
    }

    /// Removes what is in the way of the first piece of a file, a folder or a link: something of another
    /// kind, or a file that cannot be written.
    fn make_way(&self, file: &Path) -> io::Result<()> {
        let Ok(found) = fs::symlink_metadata(file) else {
            return Ok(());
        };
        let stays = match &self.content {
            PieceContent::Folder => found.is_dir(),
            PieceContent::Bytes { offset, .. } => {
                *offset > 0 || found.is_file() && found.mode() & 0o200 != 0
            }
            PieceContent::Link { .. } => false,
        };
        match (stays, found.is_dir()) {
            (true, _) => Ok(()),
            (false, true) => fs::remove_dir_all(file),
            (false, false) => fs::remove_file(file),
        }
    }
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

/// The state of a file at a time, by which a change is noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileStamp {
    length: u64,
    changed: (i64, i64),
}

impl FileStamp {
    fn of(found: &Metadata) -> Self {
        FileStamp {
            length: found.len(),
            changed: (found.mtime(), found.mtime_nsec()),
        }
    }
}

/// The files that the other end has.
#[derive(Debug, Default)]
pub(crate) struct KnownFiles {
    /// Files that are the same at both ends, as long as they are not changed.
    same: HashMap<PathBuf, FileStamp>,
    /// Files that only grow: how many bytes the other end has.
    sent: HashMap<PathBuf, u64>,
}

impl KnownFiles {
    /// Notes that the other end has sent a file, or a piece of it.
    pub(crate) fn note_received(&mut self, root: &Path, piece: &FilePiece) {
        if let Ok(found) = fs::symlink_metadata(root.join(piece.path())) {
            self.same
                .insert(piece.path().to_owned(), FileStamp::of(&found));
        }
    }

    /// The next piece of a file that only grows, such as the output of a program; `None` if the other
    /// end has all bytes.
    pub(crate) fn next_output(&mut self, root: &Path, path: &Path) -> Option<FilePiece> {
        let sent = self.sent.entry(path.to_owned()).or_default();
        let length = fs::metadata(root.join(path)).ok()?.len();
        if length == *sent {
            return None;
        }
        // A program may shorten its output. Then all of it goes again.
        if length < *sent {
            *sent = 0;
        }
        let file = File::open(root.join(path)).ok()?;
        let mut piece = read_piece(&file, path, *sent).ok()?;
        let PieceContent::Bytes {
            offset, bytes, end, ..
        } = &mut piece.content
        else {
            return None;
        };
        if bytes.is_empty() {
            return None;
        }
        // More may follow.
        *end = None;
        *sent = *offset + bytes.len() as u64;
        Some(piece)
    }

    /// Whether the other end has a file as it is.
    fn has(&self, path: &Path, found: &Metadata) -> bool {
        self.same.get(path) == Some(&FileStamp::of(found))
    }
}

/// Reads the piece of a file at an offset, or behind the hole that is there.
fn read_piece(file: &File, path: &Path, offset: u64) -> io::Result<FilePiece> {
    let found = file.metadata()?;
    let offset = match rustix::fs::seek(file, SeekFrom::Data(offset)) {
        // The first piece has the offset 0, also if the file begins with a hole.
        Ok(next) if offset > 0 => next,
        Err(Errno::NXIO) if offset > 0 => found.len(),
        _ => offset,
    };
    let mut bytes = vec![0; PIECE];
    let count = file.read_at(&mut bytes, offset)?;
    bytes.truncate(count);
    let is_end = offset + count as u64 >= found.len();
    Ok(FilePiece {
        path: path.as_os_str().as_bytes().to_vec(),
        content: PieceContent::Bytes {
            mode: found.mode(),
            offset,
            bytes,
            end: is_end.then(|| FileEnd::of(&found)),
        },
    })
}

/// The pieces of the files below a folder, without files that the other end has already. Only files,
/// folders and symbolic links travel. Links come last, so that no later piece is written through a link.
pub(crate) struct TreePieces {
    root: PathBuf,
    /// Paths still to be looked at.
    paths: Vec<PathBuf>,
    links: Vec<FilePiece>,
    /// The file that is being read: the path, and the next offset.
    reading: Option<(File, PathBuf, u64)>,
}

impl TreePieces {
    /// The pieces of a folder below `root`, the folder `instances`.
    pub(crate) fn of(root: &Path, folder: &Path) -> Self {
        TreePieces {
            root: root.to_owned(),
            paths: vec![folder.to_owned()],
            links: Vec::new(),
            reading: None,
        }
    }

    /// The next piece; `None` at the end.
    ///
    /// # Errors
    /// If a file cannot be read, with the path. The next call goes on behind the file.
    pub(crate) fn next(&mut self, known: &KnownFiles) -> Option<io::Result<FilePiece>> {
        loop {
            if let Some((file, path, offset)) = self.reading.take() {
                match read_piece(&file, &path, offset) {
                    Err(error) => return Some(Err(at(&path, &error))),
                    Ok(piece) => {
                        let next = piece.next_offset();
                        self.reading = next.map(|offset| (file, path, offset));
                        return Some(Ok(piece));
                    }
                }
            }
            let Some(path) = self.paths.pop() else {
                return self.links.pop().map(Ok);
            };
            match self.look_at(path.clone(), known) {
                Err(error) => return Some(Err(at(&path, &error))),
                Ok(Some(piece)) => return Some(Ok(piece)),
                Ok(None) => {}
            }
        }
    }

    /// Begins with a path. Returns the piece of a folder, or of an empty file.
    fn look_at(&mut self, path: PathBuf, known: &KnownFiles) -> io::Result<Option<FilePiece>> {
        let whole = self.root.join(&path);
        let found = fs::symlink_metadata(&whole)?;
        let piece = |content| FilePiece {
            path: path.as_os_str().as_bytes().to_vec(),
            content,
        };
        if found.is_dir() {
            for entry in fs::read_dir(&whole)? {
                self.paths.push(path.join(entry?.file_name()));
            }
            return Ok(Some(piece(PieceContent::Folder)));
        }
        if found.is_symlink() {
            let target: OsString = fs::read_link(&whole)?.into();
            let target = target.into_vec();
            self.links.push(piece(PieceContent::Link { target }));
            return Ok(None);
        }
        // Other kinds of files have no content to copy, and could block.
        if !found.is_file() || known.has(&path, &found) {
            return Ok(None);
        }
        let file = File::open(&whole)?;
        let sent = known.sent.get(&path).copied().unwrap_or(0);
        let offset = if found.len() < sent { 0 } else { sent };
        // A file without bytes is a piece too.
        if offset > 0 && offset == found.len() {
            return Ok(None);
        }
        let first = read_piece(&file, &path, offset)?;
        let next = first.next_offset();
        self.reading = next.map(|offset| (file, path, offset));
        Ok(Some(first))
    }
}

fn at(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::time::{Duration, SystemTime};

    /// Copies a folder by pieces, and returns their number.
    fn copy(from: &Path, to: &Path, known: &KnownFiles) -> usize {
        let mut pieces = TreePieces::of(from, Path::new("a"));
        let mut count = 0;
        while let Some(piece) = pieces.next(known) {
            let piece = piece.unwrap();
            assert!(piece.size() <= PIECE as u64 + 2 * HEAD);
            piece.write(to).unwrap();
            count += 1;
        }
        count
    }

    #[test]
    fn a_folder_arrives_as_it_is() {
        let [from, to] = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let (from, to) = (from.path(), to.path());
        fs::create_dir_all(from.join("a/workdir/deep/empty")).unwrap();
        let large: Vec<u8> = (0..PIECE * 2 + 17).map(|at| (at % 251) as u8).collect();
        for (name, bytes) in [
            ("large", &large[..]),
            ("exact", &large[..PIECE]),
            ("none", b""),
        ] {
            fs::write(from.join("a/workdir").join(name), bytes).unwrap();
        }
        let script = from.join("a/script");
        fs::write(&script, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&script, Permissions::from_mode(0o550)).unwrap();
        let changed = SystemTime::UNIX_EPOCH + Duration::new(1_000_000_000, 123_456_789);
        File::open(&script).unwrap().set_modified(changed).unwrap();
        symlink("../script", from.join("a/workdir/link")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, from.join("a/pipe"), 0o600.into()).unwrap();
        copy(from, to, &KnownFiles::default());
        for (name, bytes) in [
            ("large", &large[..]),
            ("exact", &large[..PIECE]),
            ("none", b""),
        ] {
            assert_eq!(fs::read(to.join("a/workdir").join(name)).unwrap(), bytes);
        }
        assert!(to.join("a/workdir/deep/empty").is_dir());
        let found = fs::metadata(to.join("a/script")).unwrap();
        assert_eq!(found.mode() & 0o777, 0o550);
        assert_eq!(found.modified().unwrap(), changed);
        let target = fs::read_link(to.join("a/workdir/link")).unwrap();
        assert_eq!(target, Path::new("../script"));
        assert!(!to.join("a/pipe").exists());
    }

    #[test]
    fn holes_of_a_file_are_holes_in_its_copy() {
        let [from, to] = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let (from, to) = (from.path(), to.path());
        fs::create_dir(from.join("a")).unwrap();
        let length = 1 << 30;
        for (name, at) in [("middle", length / 2), ("end", length - 4), ("none", 0)] {
            let file = File::create(from.join("a").join(name)).unwrap();
            file.write_all_at(b"data", at).unwrap();
            file.set_len(length).unwrap();
        }
        // A folder, and of each file the beginning, what is written, and the end.
        assert!(copy(from, to, &KnownFiles::default()) <= 10);
        for (name, at) in [("middle", length / 2), ("end", length - 4), ("none", 0)] {
            let file = File::open(to.join("a").join(name)).unwrap();
            let mut bytes = [0; 4];
            file.read_at(&mut bytes, at).unwrap();
            assert_eq!(&bytes, b"data", "{name}");
            let found = file.metadata().unwrap();
            assert_eq!(found.len(), length, "{name}");
            // Blocks of 512 bytes.
            assert!(
                found.blocks() * 512 <= 8 * PIECE as u64,
                "{name}: {}",
                found.blocks()
            );
        }
    }

    #[test]
    fn what_the_other_end_has_does_not_travel_again() {
        let [from, to] = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let (from, to) = (from.path(), to.path());
        fs::create_dir_all(from.join("a")).unwrap();
        fs::write(from.join("a/mesh"), "mesh").unwrap();
        fs::write(from.join("a/stdout.txt"), "one\n").unwrap();
        let mut known = KnownFiles::default();
        let mut pieces = TreePieces::of(from, Path::new("a"));
        while let Some(piece) = pieces.next(&known) {
            piece.unwrap().write(to).unwrap();
        }
        // The other way, what has come is known, but for what was changed since.
        let mut pieces = TreePieces::of(to, Path::new("a"));
        while let Some(piece) = pieces.next(&KnownFiles::default()) {
            known.note_received(to, &piece.unwrap());
        }
        assert_eq!(copy(to, from, &known), 1);
        fs::write(to.join("a/mesh"), "finer mesh").unwrap();
        assert_eq!(copy(to, from, &known), 2);
        assert_eq!(fs::read(from.join("a/mesh")).unwrap(), b"finer mesh");
        // A file that grows goes on where it was.
        let path = Path::new("a/out");
        let mut known = KnownFiles::default();
        fs::write(to.join(path), "one\n").unwrap();
        known.next_output(to, path).unwrap().write(from).unwrap();
        assert_eq!(known.next_output(to, path), None);
        fs::write(to.join(path), "one\ntwo\n").unwrap();
        copy(to, from, &known);
        assert_eq!(fs::read(from.join(path)).unwrap(), b"one\ntwo\n");
        // A hole at its end is a part of it.
        let length = 1 << 20;
        let grown = OpenOptions::new().write(true).open(to.join(path)).unwrap();
        grown.set_len(length).unwrap();
        while let Some(piece) = known.next_output(to, path) {
            piece.write(from).unwrap();
        }
        copy(to, from, &known);
        assert_eq!(fs::metadata(from.join(path)).unwrap().len(), length);
    }

    /// The first piece of a file.
    fn piece(path: &str, bytes: &[u8]) -> FilePiece {
        FilePiece {
            path: path.into(),
            content: PieceContent::Bytes {
                mode: 0o600,
                offset: 0,
                bytes: bytes.to_vec(),
                end: None,
            },
        }
    }

    #[test]
    fn no_piece_is_written_outside() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("instances");
        fs::create_dir(&root).unwrap();
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
            let error = piece(path, b"x").write(&root).unwrap_err().to_string();
            assert!(error.contains("leads out of the run"), "{path}: {error}");
        }
        // A link is replaced, and not followed.
        piece("file", b"x").write(&root).unwrap();
        assert_eq!(fs::read(root.join("file")).unwrap(), b"x");
        assert!(!folder.path().join("victim").exists());
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
        for kind in ["folder", "link", "read-only", "file"] {
            let target = b"elsewhere".to_vec();
            let link = PieceContent::Link { target };
            for content in [piece("a", b"after").content, PieceContent::Folder, link] {
                make(kind);
                let path = b"a".to_vec();
                let piece = FilePiece { path, content };
                piece.write(root).unwrap();
                let found = fs::symlink_metadata(root.join("a")).unwrap();
                match &piece.content {
                    PieceContent::Bytes { .. } => {
                        assert_eq!(fs::read(root.join("a")).unwrap(), b"after", "{kind}");
                    }
                    PieceContent::Folder => assert!(found.is_dir(), "{kind}"),
                    PieceContent::Link { .. } => assert!(found.is_symlink(), "{kind}"),
                }
                let _ = fs::remove_dir_all(root.join("a"));
                let _ = fs::remove_file(root.join("a"));
            }
        }
    }
}
