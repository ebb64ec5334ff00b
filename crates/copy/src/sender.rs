//! The end of a copy that reads files.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::PathBuf;

use rustix::fs::OFlags;
use rustix::io::Errno;
use titin_path::Path;

use crate::error::{Result, malformed};
use crate::message::{
    self, FileEnd, FromReceiver, FromSender, GonePath, MOST_PAYLOAD, MessageMemory, Piece,
    RoundAnswer, RoundEnd, Wanted,
};
use crate::report::{CopyProgress, CopyReport};
use crate::settings::CopySettings;
use crate::sources::{NamedSource, Sources};
use crate::sparse::{hash_zeros, may_have_holes, next_data};
use crate::target::Target;
use crate::walk::{FoundFile, Walk, WalkEnd, WalkRules, has_vanished, modified};

/// The most pieces of a message.
const MOST_PIECES: usize = 4096;

/// The most paths of a message that are not there any more: with the longest paths it is no larger than others.
const MOST_GONE: usize = 1000;

/// The bytes that are read at a time where they are only hashed.
const AT_ONCE: usize = 1 << 20;

/// Sends the files of the sources by a path, on which the other end receives.
///
/// # Errors
/// [`CopyError`](crate::CopyError) if the copy fails as a whole.
pub fn send(
    path: &Path,
    sources: &Sources,
    settings: &CopySettings,
    progress: &mut dyn CopyProgress,
) -> Result<CopyReport> {
    let walk = Walk::all(sources.list(), None, WalkRules::default());
    let round = send_round(path, sources, walk, settings, progress)?;
    Ok(round.report)
}

/// A round that the receiver has answered.
pub(crate) struct SentRound {
    pub(crate) report: CopyReport,
    /// Whether a later round may bring what could not be copied.
    pub(crate) may_be_tried_again: bool,
    /// Whether the receiver lacks files that were not told in this round.
    pub(crate) lacks_more: bool,
}

/// Sends what a walk finds, and tells what is not there any more. If the copy goes on, a file that changes while it is read is no failure: it comes again.
pub(crate) fn send_round(
    path: &Path,
    sources: &Sources,
    mut walk: Walk<'_>,
    settings: &CopySettings,
    progress: &mut dyn CopyProgress,
) -> Result<SentRound> {
    let mut sender = Sender {
        path,
        progress,
        settings,
        memory: MessageMemory::new(),
        report: CopyReport::default(),
        sources: sources.list(),
        trees: HashMap::new(),
        pieces: Vec::new(),
        payload: Vec::with_capacity(MOST_PAYLOAD),
        known: (0, 0),
    };
    let (mut told, mut first) = (VecDeque::new(), 0);
    loop {
        // One batch ahead of the one whose bytes are sent.
        let batch = walk.batch(&mut sender.report)?;
        let is_last = batch.is_none();
        if let Some(batch) = batch {
            sender.tell(&batch)?;
            told.push_back(batch);
        }
        if told.is_empty() {
            break;
        }
        if told.len() < 2 && !is_last {
            continue;
        }
        let batch: Vec<FoundFile> = told.pop_front().unwrap_or_default();
        let wanted = sender.wanted(first, &batch)?;
        sender.serve(first, &batch, &wanted)?;
        first += batch.len() as u64;
    }
    let end = walk.end();
    if settings.delete || settings.watching.is_some() {
        // What was found of another directory says nothing.
        sources.check_same()?;
    }
    let RoundAnswer { report, lacks_more } = sender.finish(&end)?;
    Ok(SentRound {
        may_be_tried_again: report.not_copied > end.unsupported,
        lacks_more,
        report,
    })
}

struct Sender<'a> {
    path: &'a Path,
    progress: &'a mut dyn CopyProgress,
    settings: &'a CopySettings,
    memory: MessageMemory,
    report: CopyReport,
    sources: &'a [NamedSource],
    /// The open directories of sources, by their numbers.
    trees: HashMap<usize, Target>,
    /// The message that is being filled.
    pieces: Vec<Piece>,
    payload: Vec<u8>,
    /// The files and bytes of the batches so far.
    known: (u64, u64),
}

impl Sender<'_> {
    /// Tells of a batch.
    fn tell(&mut self, batch: &[FoundFile]) -> Result<()> {
        self.flush()?;
        let entries = batch.iter().map(|found| found.entry.clone()).collect();
        message::send(self.path, &FromSender::Entries(entries), &[])?;
        let (files, bytes) = &mut self.known;
        *files += batch.len() as u64;
        *bytes += batch.iter().map(|found| found.entry.size()).sum::<u64>();
        self.progress.known(*files, *bytes);
        Ok(())
    }

    /// What the receiver wants of a batch, whose files are numbered from `first` on.
    fn wanted(&mut self, first: u64, batch: &[FoundFile]) -> Result<Vec<Wanted>> {
        let (FromReceiver::Wanted(wanted), _) = self.memory.receive(self.path)? else {
            return Err(malformed("a report before the end"));
        };
        let numbers = wanted.iter().map(|wanted| wanted.file);
        let is_in_order = numbers
            .clone()
            .zip(numbers.skip(1))
            .all(|(one, next)| one < next);
        let range = first..first + batch.len() as u64;
        if !is_in_order || wanted.iter().any(|wanted| !range.contains(&wanted.file)) {
            return Err(malformed("files wanted that were not told"));
        }
        Ok(wanted)
    }

    /// Sends what is wanted of a batch.
    fn serve(&mut self, first: u64, batch: &[FoundFile], wanted: &[Wanted]) -> Result<()> {
        let mut wanted = wanted.iter().peekable();
        for (number, found) in (first..).zip(batch) {
            let size = found.entry.size();
            let Some(wanted) = wanted.next_if(|wanted| wanted.file == number) else {
                self.progress.moved(size);
                continue;
            };
            self.progress
                .begun(&found.entry.path().to_string_lossy(), size);
            if self.settings.only_look {
                self.report.files += 1;
                self.report.bytes += size;
                continue;
            }
            if let Err(failure) = self.send_file(number, found, wanted.has)? {
                match failure {
                    FileFailure::Changed(_) if self.settings.watching.is_some() => {}
                    FileFailure::Changed(why) => self.note_failed(found, why),
                    FileFailure::Unreadable(error) => self.note_failed(found, error),
                }
                self.push(Piece {
                    file: number,
                    kept: 0,
                    offset: 0,
                    length: 0,
                    end: Some(FileEnd::Broken),
                })?;
            }
        }
        Ok(())
    }

    /// Sends a file. The inner error is one of the file alone.
    fn send_file(
        &mut self,
        number: u64,
        found: &FoundFile,
        has: Option<(u64, [u8; 32])>,
    ) -> Result<std::result::Result<(), FileFailure>> {
        let size = found.entry.size();
        let (file, has_holes) = match self.open_file(found) {
            Ok((file, metadata)) => (file, may_have_holes(&metadata)),
            Err(error) => return Ok(Err(error.into())),
        };
        let mut hasher = blake3::Hasher::new();
        let mut offset = 0;
        if let Some((length, hash)) = has.filter(|(length, _)| *length <= size) {
            match hash_of_beginning(&file, length) {
                Ok(beginning) if *beginning.finalize().as_bytes() == hash => {
                    (hasher, offset) = (beginning, length);
                    self.progress.moved(length);
                }
                Ok(_) => {}
                Err(error) => return Ok(Err(error.into())),
            }
        }
        let kept = offset;
        while offset < size {
            let data = match has_holes {
                true => next_data(&file, offset, size),
                false => offset..size,
            };
            hash_zeros(&mut hasher, data.start - offset);
            self.progress.moved(data.start - offset);
            offset = data.start;
            while offset < data.end {
                let room = (MOST_PAYLOAD - self.payload.len()) as u64;
                let begin = self.payload.len();
                let wanted = room.min(data.end - offset) as usize;
                self.payload.resize(begin + wanted, 0);
                let count = match read_at(&file, &mut self.payload[begin..], offset) {
                    Ok(count) => count,
                    Err(error) => {
                        self.payload.truncate(begin);
                        return Ok(Err(error.into()));
                    }
                };
                self.payload.truncate(begin + count);
                if count < wanted {
                    self.payload.truncate(begin);
                    let is_shorter = file.metadata().is_ok_and(|now| now.len() < size);
                    let why = match is_shorter {
                        true => io::ErrorKind::UnexpectedEof.into(),
                        false => io::Error::other("it has fewer bytes than its size says"),
                    };
                    return Ok(Err(why.into()));
                }
                hasher.update(&self.payload[begin..]);
                self.push(Piece {
                    file: number,
                    kept,
                    offset,
                    length: count as u64,
                    end: None,
                })?;
                offset += count as u64;
                self.report.bytes += count as u64;
                self.progress.moved(count as u64);
            }
        }
        let now = file.metadata();
        let is_taken = now.is_ok_and(|now| {
            let is_same = now.len() == size && modified(&now) == found.entry.modified;
            // In a copy that goes on the next round brings what the file has got at its end.
            is_same || self.settings.watching.is_some() && now.len() > size
        });
        if !is_taken {
            let why = "it has changed while it was read";
            return Ok(Err(FileFailure::Changed(why)));
        }
        self.report.files += 1;
        let end = FileEnd::Whole(*hasher.finalize().as_bytes());
        self.push(Piece {
            file: number,
            kept,
            offset: size,
            length: 0,
            end: Some(end),
        })?;
        Ok(Ok(()))
    }

    /// Opens a file below its source. A link, or a directory that has become a link, is not followed; the source itself may
    /// be one.
    fn open_file(&mut self, found: &FoundFile) -> io::Result<(File, Metadata)> {
        let below: PathBuf = found.entry.path().components().skip(1).collect();
        let file = match below.as_os_str().is_empty() {
            true => OpenOptions::new()
                .read(true)
                .custom_flags(OFlags::NONBLOCK.bits() as i32)
                .open(&found.here)?,
            false => {
                let source = &self.sources[found.source].here;
                let tree = match self.trees.entry(found.source) {
                    Entry::Occupied(known) => known.into_mut(),
                    Entry::Vacant(new) => new.insert(Target::open(source)?),
                };
                tree.read(&below)?
            }
        };
        let metadata = file.metadata()?;
        match metadata.is_file() {
            true => Ok((file, metadata)),
            false => Err(io::Error::other("it is no file any more")),
        }
    }

    /// Adds a piece to the message, whose bytes are in the payload already.
    fn push(&mut self, piece: Piece) -> Result<()> {
        match self.pieces.last_mut() {
            // The end of a file goes with its last bytes.
            Some(last)
                if last.file == piece.file
                    && last.end.is_none()
                    && last.offset + last.length == piece.offset
                    && piece.length == 0 =>
            {
                last.end = piece.end;
            }
            _ => self.pieces.push(piece),
        }
        match self.payload.len() >= MOST_PAYLOAD || self.pieces.len() >= MOST_PIECES {
            true => self.flush(),
            false => Ok(()),
        }
    }

    /// Sends the message that is being filled.
    fn flush(&mut self) -> Result<()> {
        if !self.pieces.is_empty() {
            let pieces = std::mem::take(&mut self.pieces);
            message::send(self.path, &FromSender::Pieces(pieces), &self.payload)?;
            self.payload.clear();
        }
        Ok(())
    }

    fn note_failed(&mut self, found: &FoundFile, why: impl ToString) {
        self.report
            .note_failed(found.here.as_os_str().as_bytes(), why);
    }

    fn finish(mut self, end: &WalkEnd) -> Result<RoundAnswer> {
        self.flush()?;
        let is_complete = end.is_complete;
        // Of a directory that cannot be read nothing is known.
        let gone = if is_complete { &end.gone[..] } else { &[] };
        for gone in gone.chunks(MOST_GONE) {
            let paths = gone
                .iter()
                .map(|path| GonePath(path.as_os_str().as_bytes().to_vec()));
            message::send(self.path, &FromSender::Gone(paths.collect()), &[])?;
        }
        let over = FromSender::Over(RoundEnd {
            report: self.report,
            is_complete,
        });
        message::send(self.path, &over, &[])?;
        match self.memory.receive(self.path)? {
            (FromReceiver::Answer(answer), _) => Ok(answer),
            (FromReceiver::Wanted(_), _) => Err(malformed("files wanted after the end")),
        }
    }
}

/// Why a file was not sent.
enum FileFailure {
    /// It has changed meanwhile.
    Changed(&'static str),
    Unreadable(io::Error),
}

impl From<io::Error> for FileFailure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            _ if has_vanished(&error) => FileFailure::Changed("it is not there any more"),
            // A link that was put in its place.
            _ if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => {
                FileFailure::Changed("it is no file any more")
            }
            io::ErrorKind::UnexpectedEof => {
                FileFailure::Changed("it has become shorter while it was read")
            }
            _ => FileFailure::Unreadable(error),
        }
    }
}

/// Reads until the memory is full, or the file over.
fn read_at(file: &File, mut memory: &mut [u8], mut offset: u64) -> io::Result<usize> {
    let wanted = memory.len();
    while !memory.is_empty() {
        match file.read_at(memory, offset) {
            Ok(0) => break,
            Ok(count) => {
                memory = &mut memory[count..];
                offset += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(wanted - memory.len())
}

/// The hash of the first bytes of a file.
///
/// # Errors
/// Those of reading, and of a file that is shorter.
pub(crate) fn hash_of_beginning(file: &File, length: u64) -> io::Result<blake3::Hasher> {
    let (mut hasher, mut offset) = (blake3::Hasher::new(), 0);
    let mut memory = vec![0; AT_ONCE.min(usize::try_from(length).unwrap_or(AT_ONCE))];
    while offset < length {
        let step = (length - offset).min(memory.len() as u64) as usize;
        file.read_exact_at(&mut memory[..step], offset)?;
        hasher.update(&memory[..step]);
        offset += step as u64;
    }
    Ok(hasher)
}
