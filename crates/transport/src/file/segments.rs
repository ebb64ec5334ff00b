//! A stream of bytes in numbered segment files: the writing end and the reading end.

use std::collections::VecDeque;
use std::fs;
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, fstat, openat, renameat, statat, unlinkat};
use rustix::io::Errno;
use rustix::net::{Shutdown, shutdown};
use titin_os::Descriptor;
use titin_wire::Malformed;

use super::folder::named;
use crate::error::LinkError;

/// The most bytes of a segment.
pub(super) const SEGMENT: usize = 1 << 20;

/// With fewer unread segments, any bytes become a segment at once. With more, bytes are gathered
/// until the segment is full.
const EAGER: usize = 2;

/// The most unread segments of a stream. The limit bounds the space that a receiver takes in the
/// file system by not reading.
const UNREAD: usize = 16;

/// Bytes at the beginning of a segment: [`MAGIC`], number, length of the content, and 1 for the
/// last segment.
const HEADER: usize = 32;
const MAGIC: [u8; 8] = *b"titinseg";

/// The name of a segment that is not complete.
const DRAFT: &str = "new";

/// How long a file may be shorter than its header says, or missing though a later file is there. A
/// network file system may show the name before the length, and a later name before an earlier one.
const LATE: Duration = Duration::from_secs(2);

fn header(number: u64, length: usize, is_last: bool) -> [u8; HEADER] {
    let mut bytes = [0; HEADER];
    bytes[..8].copy_from_slice(&MAGIC);
    let words = [number, length as u64, u64::from(is_last)];
    for (word, place) in words.iter().zip(bytes[8..].chunks_exact_mut(8)) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

fn name(number: u64) -> String {
    format!("{number:016x}")
}

/// A folder of segments.
struct SegmentFolder {
    path: PathBuf,
    descriptor: Descriptor,
}

impl SegmentFolder {
    fn open(path: PathBuf) -> io::Result<Self> {
        let descriptor = open_folder(&path).map_err(|error| named(&path, &error.into()))?;
        Ok(SegmentFolder { path, descriptor })
    }

    /// Opens the folder anew. A network file system then asks the server for changes, and does not
    /// rely on its own memory. Without free descriptors the old descriptor stays.
    fn refresh(&mut self) -> Result<(), Errno> {
        match open_folder(&self.path) {
            Err(Errno::MFILE | Errno::NFILE) => {}
            opened => self.descriptor = opened?,
        }
        Ok(())
    }

    /// The error of a link whose folder refuses something.
    fn lost(&self, error: Errno) -> LinkError {
        let why = match error {
            Errno::NOENT => io::Error::other("somebody has deleted it during the run"),
            _ => error.into(),
        };
        LinkError::System(named(&self.path, &why).to_string())
    }
}

fn open_folder(path: &Path) -> Result<Descriptor, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?.into())
}

/// The writing end.
pub(super) struct SegmentWriter {
    folder: SegmentFolder,
    next: u64,
    unread: VecDeque<u64>,
    /// Whether the newest segment has no bytes, or there is none.
    newest_is_empty: bool,
    has_ended: bool,
}

impl SegmentWriter {
    /// # Errors
    /// If the folder cannot be opened.
    pub(super) fn open(folder: PathBuf) -> io::Result<Self> {
        Ok(SegmentWriter {
            folder: SegmentFolder::open(folder)?,
            next: 0,
            unread: VecDeque::new(),
            newest_is_empty: true,
            has_ended: false,
        })
    }

    /// Notes the segments that the other end has read and deleted. `afresh` asks a network file
    /// system for changes by other hosts.
    ///
    /// # Errors
    /// [`LinkError::Closed`] if the other end has removed the folder, and other errors if the folder
    /// cannot be opened.
    pub(super) fn note_read(&mut self, afresh: bool) -> Result<(), LinkError> {
        if afresh && !self.unread.is_empty() {
            self.folder.refresh().map_err(|error| self.lost(error))?;
        }
        while let Some(oldest) = self.unread.front() {
            let flags = AtFlags::SYMLINK_NOFOLLOW;
            match statat(&self.folder.descriptor, name(*oldest), flags) {
                Err(Errno::NOENT) => drop(self.unread.pop_front()),
                _ => break,
            }
        }
        Ok(())
    }

    /// Whether there is room for a segment of `length` bytes now.
    pub(super) fn takes(&self, length: usize) -> bool {
        let unread = self.unread.len();
        length > 0 && (unread < EAGER || length >= SEGMENT && unread < UNREAD)
    }

    /// Whether an empty segment is due. If a stranger has deleted the newest segment, the segment
    /// seems read from here. Only a further segment shows the other end that one is missing.
    pub(super) fn wants_empty(&self) -> bool {
        !self.newest_is_empty && !self.has_ended && self.unread.is_empty()
    }

    /// Whether the last segment is written, or the other end reads no more.
    pub(super) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// The other end reads no more.
    pub(super) fn end(&mut self) {
        self.has_ended = true;
        self.unread.clear();
    }

    /// Writes a segment. Returns an error that may pass: the disk is full, the process has no
    /// descriptors left, or the other end is about to remove the folder and has removed the new file
    /// first. The caller may try again.
    ///
    /// # Errors
    /// [`LinkError::Closed`] if the other end has removed the folder, and other errors if the file system
    /// refuses the segment.
    pub(super) fn write(
        &mut self,
        bytes: &[u8],
        is_last: bool,
    ) -> Result<Option<Errno>, LinkError> {
        match self.write_file(bytes, is_last) {
            Ok(()) => {
                self.unread.push_back(self.next);
                self.next += 1;
                self.newest_is_empty = bytes.is_empty();
                self.has_ended = is_last;
                Ok(None)
            }
            Err(error) => {
                let _ = unlinkat(&self.folder.descriptor, DRAFT, AtFlags::empty());
                match error {
                    Errno::NOSPC | Errno::DQUOT | Errno::MFILE | Errno::NFILE => Ok(Some(error)),
                    Errno::NOENT if self.folder.path.exists() => Ok(Some(error)),
                    _ => Err(self.lost(error)),
                }
            }
        }
    }

    /// The error of the link. The other end removes the folder when it reads no more.
    pub(super) fn lost(&self, error: Errno) -> LinkError {
        match error {
            Errno::NOENT if !self.folder.path.exists() => LinkError::Closed,
            _ => self.folder.lost(error),
        }
    }

    fn write_file(&self, bytes: &[u8], is_last: bool) -> Result<(), Errno> {
        let folder = &self.folder.descriptor;
        let flags = OFlags::WRONLY
            | OFlags::CREATE
            | OFlags::TRUNC
            | OFlags::NOFOLLOW
            | OFlags::NONBLOCK
            | OFlags::CLOEXEC;
        let file = Descriptor::from(openat(folder, DRAFT, flags, Mode::RUSR | Mode::WUSR)?);
        let header = header(self.next, bytes.len(), is_last);
        let mut written = 0;
        while written < HEADER + bytes.len() {
            let rest = written.saturating_sub(HEADER);
            let slices = [
                IoSlice::new(&header[written.min(HEADER)..]),
                IoSlice::new(&bytes[rest..]),
            ];
            match rustix::io::writev(&file, &slices) {
                Ok(0) => return Err(Errno::NOSPC),
                Ok(count) => written += count,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        // A network file system may refuse the bytes only now.
        file.close()?;
        renameat(folder, DRAFT, folder, name(self.next))
    }
}

/// The state of the reading end after a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadProgress {
    /// There is no further segment yet.
    Waits,
    /// The socket takes no more bytes.
    Blocked,
    /// All segments are read, and the socket has been shut.
    Ended,
    /// The link has closed the socket.
    Unwanted,
}

/// The reading end.
pub(super) struct SegmentReader {
    folder: SegmentFolder,
    next: u64,
    current: Option<OpenSegment>,
    /// Since when the next segment has been too short.
    torn_since: Option<Instant>,
    /// Since when the next segment has been missing though a later one is there.
    missing_since: Option<Instant>,
    has_ended: bool,
}

/// A segment of which some bytes are not in the socket yet.
struct OpenSegment {
    /// A `Descriptor`: a forked child closes it.
    file: Descriptor,
    offset: u64,
    end: u64,
    is_last: bool,
}

impl SegmentReader {
    /// # Errors
    /// If the folder cannot be opened.
    pub(super) fn open(folder: PathBuf) -> io::Result<Self> {
        Ok(SegmentReader {
            folder: SegmentFolder::open(folder)?,
            next: 0,
            current: None,
            torn_since: None,
            missing_since: None,
            has_ended: false,
        })
    }

    /// The number of the next segment.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Whether the last segment has been read.
    pub(super) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Asks a network file system for changes by other hosts.
    ///
    /// # Errors
    /// [`LinkError`] if the folder cannot be opened.
    pub(super) fn refresh(&mut self) -> Result<(), LinkError> {
        let refreshed = self.folder.refresh();
        refreshed.map_err(|error| self.folder.lost(error))
    }

    /// Looks whether the next segment is missing although a later one is there, or although the
    /// sender has left.
    ///
    /// # Errors
    /// [`LinkError`] if the segment has been missing for too long.
    pub(super) fn check_missing(&mut self, sender_has_left: bool) -> Result<(), LinkError> {
        if !sender_has_left && !self.has_later_segment() {
            self.missing_since = None;
            return Ok(());
        }
        if is_too_late(&mut self.missing_since) {
            let why = "is missing: somebody has deleted it, or its sender has ended without it";
            return Err(self.malformed(why));
        }
        Ok(())
    }

    fn has_later_segment(&self) -> bool {
        let is_later = |name: &str| {
            let number = u64::from_str_radix(name, 16);
            name.len() == 16 && number.is_ok_and(|number| number > self.next)
        };
        fs::read_dir(&self.folder.path).is_ok_and(|entries| {
            let mut names = entries.flatten().map(|entry| entry.file_name());
            names.any(|name| name.to_str().is_some_and(is_later))
        })
    }

    /// Moves bytes of segments to the socket, and deletes the segments.
    ///
    /// # Errors
    /// [`LinkError`] if a segment makes no sense, or cannot be read or deleted.
    pub(super) fn advance(&mut self, socket: &Descriptor) -> Result<ReadProgress, LinkError> {
        if self.has_ended {
            return Ok(ReadProgress::Ended);
        }
        loop {
            let Some(segment) = self.segment()? else {
                return Ok(ReadProgress::Waits);
            };
            while segment.offset < segment.end {
                let missing = (segment.end - segment.offset) as usize;
                match rustix::fs::sendfile(
                    socket,
                    &segment.file,
                    Some(&mut segment.offset),
                    missing,
                ) {
                    Ok(0) => {
                        let missing = format!("lacks its last {missing} bytes");
                        return Err(self.malformed(&missing));
                    }
                    Ok(_) | Err(Errno::INTR) => {}
                    Err(Errno::AGAIN) => return Ok(ReadProgress::Blocked),
                    Err(Errno::PIPE | Errno::CONNRESET) => return Ok(ReadProgress::Unwanted),
                    Err(error) => return Err(self.folder.lost(error)),
                }
            }
            self.has_ended = segment.is_last;
            self.current = None;
            match unlinkat(&self.folder.descriptor, name(self.next), AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(error) => return Err(self.folder.lost(error)),
            }
            self.next += 1;
            if self.has_ended {
                let _ = shutdown(socket, Shutdown::Write);
                return Ok(ReadProgress::Ended);
            }
        }
    }

    /// The current segment, or the next if that is there.
    fn segment(&mut self) -> Result<Option<&mut OpenSegment>, LinkError> {
        if self.current.is_none() {
            self.current = self.open_next()?;
        }
        Ok(self.current.as_mut())
    }

    fn open_next(&mut self) -> Result<Option<OpenSegment>, LinkError> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match openat(
            &self.folder.descriptor,
            name(self.next),
            flags,
            Mode::empty(),
        ) {
            Ok(file) => Descriptor::from(file),
            Err(Errno::NOENT | Errno::MFILE | Errno::NFILE) => return Ok(None),
            Err(Errno::LOOP | Errno::NXIO) => return Err(self.malformed("is no plain file")),
            Err(error) => return Err(self.folder.lost(error)),
        };
        let metadata = fstat(&file).map_err(|error| self.folder.lost(error))?;
        if FileType::from_raw_mode(metadata.st_mode) != FileType::RegularFile {
            return Err(self.malformed("is no plain file"));
        }
        let mut bytes = [0; HEADER];
        let count =
            rustix::io::pread(&file, &mut bytes, 0).map_err(|error| self.folder.lost(error))?;
        let Some((length, is_last)) = self.content(&bytes[..count])? else {
            return self.torn(count as u64);
        };
        let end = HEADER as u64 + length;
        let size = metadata.st_size as u64;
        if size > end {
            return Err(self.malformed(&format!("has {size} bytes in place of {end}")));
        }
        if size < end {
            return self.torn(size);
        }
        self.torn_since = None;
        Ok(Some(OpenSegment {
            file,
            offset: HEADER as u64,
            end,
            is_last,
        }))
    }

    /// The length of the content of the next segment, and whether the segment is the last. `None`
    /// if the header is not whole.
    fn content(&self, bytes: &[u8]) -> Result<Option<(u64, bool)>, LinkError> {
        if !MAGIC.starts_with(&bytes[..bytes.len().min(MAGIC.len())]) {
            return Err(self.malformed("is not a segment of titin"));
        }
        let Some(bytes) = bytes.first_chunk::<HEADER>() else {
            return Ok(None);
        };
        let word = |place: usize| {
            let bytes = bytes[place..].first_chunk().expect("within the header");
            u64::from_le_bytes(*bytes)
        };
        let (number, length, is_last) = (word(8), word(16), word(24));
        if number != self.next || length > SEGMENT as u64 || is_last > 1 {
            let text = format!("says number {number}, {length} bytes, mark {is_last}");
            return Err(self.malformed(&text));
        }
        Ok(Some((length, is_last == 1)))
    }

    /// A file that is too short: waits for the rest, for a while.
    fn torn(&mut self, size: u64) -> Result<Option<OpenSegment>, LinkError> {
        if !is_too_late(&mut self.torn_since) {
            return Ok(None);
        }
        Err(self.malformed(&format!("was cut short, to {size} bytes")))
    }

    fn malformed(&self, why: &str) -> LinkError {
        let path = self.folder.path.join(name(self.next));
        Malformed::new("file", format!("{} {why}", path.display())).into()
    }
}

/// Whether a file has been late for too long. Notes the beginning.
fn is_too_late(late_since: &mut Option<Instant>) -> bool {
    late_since.get_or_insert_with(Instant::now).elapsed() >= LATE
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pump::socket_pair;

    #[test]
    fn a_folder_that_is_being_removed_is_no_failure() {
        let run = tempfile::tempdir().unwrap();
        let folder = run.path().join("there");
        fs::create_dir(&folder).unwrap();
        let mut writer = SegmentWriter::open(folder.clone()).unwrap();
        // The writer's own folder takes no more files, while there is still a folder of that name.
        fs::remove_dir(&folder).unwrap();
        fs::create_dir(&folder).unwrap();
        assert_eq!(writer.write(b"bytes", true), Ok(Some(Errno::NOENT)));
        fs::remove_dir(&folder).unwrap();
        assert_eq!(writer.write(b"bytes", true), Err(LinkError::Closed));
    }

    #[test]
    fn the_deletion_of_the_newest_segment_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = SegmentWriter::open(folder.path().to_owned()).unwrap();
        let mut reader = SegmentReader::open(folder.path().to_owned()).unwrap();
        let [_link, socket] = socket_pair().unwrap();
        assert!(!writer.wants_empty(), "nothing has been written");
        assert_eq!(writer.write(b"bytes", false), Ok(None));
        assert!(!writer.wants_empty(), "a segment is unread");

        let deleted = folder.path().join(name(0));
        fs::remove_file(&deleted).unwrap();
        writer.note_read(true).unwrap();
        assert!(writer.wants_empty(), "it seems read");
        assert_eq!(reader.advance(&socket), Ok(ReadProgress::Waits));
        assert_eq!(reader.check_missing(false), Ok(()));
        assert_eq!(reader.missing_since, None, "none may be written yet");

        assert_eq!(writer.write(b"", false), Ok(None));
        assert!(!writer.wants_empty());
        assert_eq!(reader.advance(&socket), Ok(ReadProgress::Waits));
        assert_eq!(reader.check_missing(false), Ok(()));
        let since = reader.missing_since.as_mut().unwrap();
        *since -= LATE;
        let why = reader.check_missing(false).unwrap_err().to_string();
        assert!(why.contains(deleted.to_str().unwrap()), "{why}");
    }
}
