//! The files that the other end has already.

use std::collections::HashMap;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sha2::{Digest as _, Sha256};

use super::piece::{FilePiece, PIECE, PieceContent, open_file};
use crate::sparse::next_data;

/// The longest step of the clock by which the system notes changes of files.
const CLOCK_STEP: Duration = Duration::from_millis(10);

/// The number of bytes before the end of an output by which the output is recognized while it grows.
const TAIL: usize = 4096;

/// The files that the other end has.
#[derive(Debug, Default)]
pub(crate) struct KnownFiles {
    /// What has come from the other end. Files are the same at both ends as long as they are not changed.
    received: HashMap<PathBuf, FileStamp>,
    /// When the last piece came.
    last_received: Option<Instant>,
    /// Files that only grow.
    outputs: HashMap<PathBuf, SentOutput>,
}

/// The state of a file at a time, by which a change is noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileStamp {
    inode: (u64, u64),
    length: u64,
    /// When the content, the mode or a time of the file was set last. A program cannot choose this time.
    changed: (i64, i64),
}

impl FileStamp {
    fn of(found: &Metadata) -> Self {
        FileStamp {
            inode: (found.dev(), found.ino()),
            length: found.len(),
            changed: (found.ctime(), found.ctime_nsec()),
        }
    }
}

/// What the other end has of a file that grows.
#[derive(Debug, Clone, Default)]
struct SentOutput {
    inode: (u64, u64),
    length: u64,
    /// The last bytes before `length`.
    tail: Vec<u8>,
    /// Of all bytes before `length`, and of the lengths of the holes among them.
    hash: Sha256,
}

/// Reads again what the other end has of a file, because the file may have been changed in place.
pub(super) struct OutputCheck {
    sent: SentOutput,
    hash: Sha256,
    offset: u64,
}

impl OutputCheck {
    /// Goes on for a while. At the end returns the offset up to which the other end has the file; 0 if the
    /// file was changed.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub(super) fn go_on(&mut self, file: &File) -> io::Result<Option<u64>> {
        const PIECES: usize = 64;
        let mut bytes = vec![0; PIECE];
        for _ in 0..PIECES {
            if self.offset == self.sent.length {
                let is_same = self.hash.clone().finalize() == self.sent.hash.clone().finalize();
                return Ok(Some(if is_same { self.offset } else { 0 }));
            }
            let data = next_data(file, self.offset)?;
            let start = data.start.clamp(self.offset, self.sent.length);
            let end = data.end.clamp(start, self.sent.length);
            hash_hole(&mut self.hash, start - self.offset);
            let count = file.read_at(&mut bytes[..PIECE.min((end - start) as usize)], start)?;
            if count == 0 && start < self.sent.length {
                // The file is shorter by now.
                return Ok(Some(0));
            }
            self.hash.update(&bytes[..count]);
            self.offset = start + count as u64;
        }
        Ok(None)
    }
}

/// Adds the length of a hole, if there is one.
fn hash_hole(hash: &mut Sha256, length: u64) {
    if length > 0 {
        hash.update(length.to_le_bytes());
    }
}

impl SentOutput {
    /// Whether the file has only grown since, as far as the last bytes tell. Otherwise it was replaced, or
    /// shortened and written again.
    fn tail_matches(&self, file: &File, found: &Metadata) -> bool {
        let mut tail = vec![0; self.tail.len()];
        self.inode == (found.dev(), found.ino())
            && self.length <= found.len()
            && file
                .read_exact_at(&mut tail, self.length - self.tail.len() as u64)
                .is_ok()
            && tail == self.tail
    }

    /// Adds a piece of the file, which ends at `end`.
    fn add(&mut self, piece: &FilePiece, end: u64) {
        let bytes = piece.bytes();
        let hole = end - bytes.len() as u64 - self.length;
        if hole > 0 {
            self.tail.clear();
        }
        hash_hole(&mut self.hash, hole);
        self.hash.update(bytes);
        self.tail.extend(&bytes[bytes.len().saturating_sub(TAIL)..]);
        self.tail.drain(..self.tail.len().saturating_sub(TAIL));
        self.length = end;
    }
}

impl KnownFiles {
    /// Notes that the other end has sent a file, or a piece of it.
    pub(crate) fn note_received(&mut self, root: &Path, piece: &FilePiece) {
        if let Ok(found) = fs::symlink_metadata(root.join(piece.path())) {
            let path = piece.path().to_owned();
            self.received.insert(path, FileStamp::of(&found));
            self.last_received = Some(Instant::now());
        }
    }

    /// Waits, for some milliseconds, until the system's clock has gone on since the last piece came. A
    /// file that is changed in the same step of that clock would seem to be the file that came.
    pub(crate) fn wait_for_clock(&self) {
        let passed = self.last_received.map(|last| last.elapsed());
        std::thread::sleep(CLOCK_STEP.saturating_sub(passed.unwrap_or(CLOCK_STEP)));
    }

    /// Pieces for what has come from the other end and is not there any more, or is there as something that
    /// does not travel, such as a pipe.
    pub(super) fn removed(&self, root: &Path) -> Vec<FilePiece> {
        let is_gone = |path: &&PathBuf| match fs::symlink_metadata(root.join(path)) {
            Ok(found) => !(found.is_file() || found.is_dir() || found.is_symlink()),
            Err(error) => {
                use io::ErrorKind::{NotADirectory, NotFound};
                matches!(error.kind(), NotFound | NotADirectory)
            }
        };
        let gone = self.received.keys().filter(is_gone);
        gone.map(|path| FilePiece::new(path, PieceContent::Removed))
            .collect()
    }

    /// The next piece of a file that only grows, such as the output of a program; `None` if the other
    /// end has all bytes, or if there is no such file.
    pub(crate) fn next_output(&mut self, root: &Path, path: &Path) -> Option<FilePiece> {
        let file = root.join(path);
        let found = fs::symlink_metadata(&file).ok()?;
        let inode = (found.dev(), found.ino());
        let sent = self.outputs.entry(path.to_owned()).or_default();
        if sent.length == found.len() && (sent.inode == inode || found.len() == 0) {
            return None;
        }
        let file = open_file(&file).ok()?;
        if !sent.tail_matches(&file, &file.metadata().ok()?) {
            *sent = SentOutput {
                inode,
                ..SentOutput::default()
            };
        }
        let piece = FilePiece::read(&file, path, sent.length, sent.length == 0).ok()?;
        let piece = piece.without_end();
        let end = piece.next_offset()?;
        if piece.bytes().is_empty() {
            return None;
        }
        sent.add(&piece, end);
        Some(piece)
    }

    /// What finds out up to which offset the other end has a file; `None` if it has nothing of the file.
    pub(super) fn check_of(
        &self,
        path: &Path,
        file: &File,
        found: &Metadata,
    ) -> Option<OutputCheck> {
        let sent = self.outputs.get(path)?;
        let is_begun = sent.length > 0 && sent.tail_matches(file, found);
        is_begun.then(|| OutputCheck {
            sent: sent.clone(),
            hash: Sha256::new(),
            offset: 0,
        })
    }

    /// Whether the other end has a file as it is.
    pub(super) fn has(&self, path: &Path, found: &Metadata) -> bool {
        self.received.get(path) == Some(&FileStamp::of(found))
    }
}
