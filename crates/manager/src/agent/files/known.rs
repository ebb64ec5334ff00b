//! The files that the other end has already.

use std::collections::HashMap;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::piece::{FilePiece, PieceContent, open_file};

/// The longest step of the clock by which the system notes changes of files.
const CLOCK_STEP: Duration = Duration::from_millis(10);

/// The number of bytes before the end of an output by which the output is recognized.
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
#[derive(Debug, Default)]
struct SentOutput {
    inode: (u64, u64),
    length: u64,
    /// The last bytes before `length`.
    tail: Vec<u8>,
}

impl SentOutput {
    /// Whether the file has only grown since. Otherwise it was replaced, or shortened and written again.
    fn is_beginning_of(&self, file: &File, found: &Metadata) -> bool {
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
        if end - bytes.len() as u64 > self.length {
            // Behind a hole.
            self.tail.clear();
        }
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

    /// Pieces for what has come from the other end and is not there any more.
    pub(super) fn removed(&self, root: &Path) -> Vec<FilePiece> {
        let is_gone = |path: &&PathBuf| {
            fs::symlink_metadata(root.join(path)).is_err_and(|error| {
                use io::ErrorKind::{NotADirectory, NotFound};
                matches!(error.kind(), NotFound | NotADirectory)
            })
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
        if !sent.is_beginning_of(&file, &file.metadata().ok()?) {
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

    /// The offset up to which the other end has a file; 0 if it has nothing of the file.
    pub(super) fn length_of(&self, path: &Path, file: &File, found: &Metadata) -> u64 {
        let sent = self.outputs.get(path);
        let sent = sent.filter(|sent| sent.is_beginning_of(file, found));
        sent.map_or(0, |sent| sent.length)
    }

    /// Whether the other end has a file as it is.
    pub(super) fn has(&self, path: &Path, found: &Metadata) -> bool {
        self.received.get(path) == Some(&FileStamp::of(found))
    }
}
