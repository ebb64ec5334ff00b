//! The end of a copy that writes files.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FileType, Stat};
use titin_path::Path as MessagePath;

use crate::destination::Destination;
use crate::entry::{Entry, EntryKind};
use crate::error::{CopyError, Result, malformed};
use crate::message::{
    self, FileEnd, FromReceiver, FromSender, GonePath, MessageMemory, Piece, RoundAnswer, Wanted,
};
use crate::removal::{ToldPaths, remove};
use crate::report::{CopyProgress, CopyReport};
use crate::sender::hash_of_beginning;
use crate::settings::CopySettings;
use crate::sparse::{copy_data, hash_zeros};
use crate::target::{Target, TargetName, file_type};
use crate::walk::{MOST_ENTRIES, has_vanished};

/// Receives files by a path, on which the other end sends.
///
/// # Errors
/// [`CopyError`] if the copy fails as a whole.
pub fn receive(
    path: &MessagePath,
    destination: &Destination,
    settings: &CopySettings,
    progress: &mut dyn CopyProgress,
) -> std::result::Result<CopyReport, CopyError> {
    let (report, _) = receive_round(path, destination, settings, progress)?;
    Ok(report)
}

/// As [`receive`]. Returns also how long the round has taken, from its first message on: a copy that goes on may wait long for
/// that, and its destination is opened anew for each round.
pub(crate) fn receive_round(
    path: &MessagePath,
    destination: &Destination,
    settings: &CopySettings,
    progress: &mut dyn CopyProgress,
) -> Result<(CopyReport, Duration)> {
    let mut memory = MessageMemory::new();
    let mut message = memory.receive(path)?;
    let begun = Instant::now();
    destination.check(settings.delete)?;
    let (root, only_look) = (&destination.root, settings.only_look);
    let place = |error: io::Error| CopyError::Place(format!("{}: {error}", root.display()));
    let has_new_root = !only_look && !root.exists();
    if has_new_root {
        fs::create_dir(root).map_err(place)?;
    }
    let target = match only_look && !root.exists() {
        true => None,
        false => Some(Target::open(root).map_err(place)?),
    };
    let mut receiver = Receiver {
        destination,
        target,
        settings,
        progress,
        told_paths: ToldPaths::default(),
        told: 0,
        known: (0, 0),
        wanted: HashMap::new(),
        open: None,
        has_new_root,
        lacks_more: false,
        directories: Vec::new(),
        report: CopyReport::default(),
    };
    let over = loop {
        let taken = match message {
            (FromSender::Entries(entries), _) => receiver
                .take_entries(entries)
                .and_then(|wanted| message::send(path, &FromReceiver::Wanted(wanted), &[])),
            (FromSender::Pieces(pieces), payload) => receiver.take_pieces(pieces, payload),
            (FromSender::Gone(paths), _) => receiver.take_gone(&paths),
            (FromSender::Over(over), _) => break over,
        };
        message = match taken.and_then(|()| memory.receive(path)) {
            Ok(message) => message,
            Err(why) => {
                receiver.close_directories();
                return Err(why);
            }
        };
    };
    receiver.finish(over.report, over.is_complete);
    let answer = RoundAnswer {
        report: receiver.report,
        lacks_more: receiver.lacks_more,
    };
    message::send(path, &FromReceiver::Answer(answer.clone()), &[])?;
    Ok((answer.report, begun.elapsed()))
}

struct Receiver<'a> {
    destination: &'a Destination,
    /// `None` if the directory is not there, and this end only looks.
    target: Option<Target>,
    settings: &'a CopySettings,
    progress: &'a mut dyn CopyProgress,
    /// With `delete`: all that was told.
    told_paths: ToldPaths,
    /// How many entries the sender has told.
    told: u64,
    /// The files and bytes among them.
    known: (u64, u64),
    /// The files whose bytes have not all come, by their numbers; `None` for one that has failed here.
    wanted: HashMap<u64, Option<WantedFile>>,
    /// The file whose bytes are coming.
    open: Option<OpenFile>,
    /// Whether this round has made the destination.
    has_new_root: bool,
    /// Whether a directory is missing here of which the sender tells only a part.
    lacks_more: bool,
    /// The directories, whose permissions and times are set in the end.
    directories: Vec<(PathBuf, u32, (i64, u32))>,
    report: CopyReport,
}

struct WantedFile {
    path: PathBuf,
    entry: Entry,
    /// What is there of it.
    left: Option<KnownBeginning>,
}

impl WantedFile {
    /// Whether the sender says that the file that is there has all bytes of the wanted one, and no others.
    fn is_old_file(&self, piece: &Piece) -> bool {
        let size = self.entry.size();
        let is_whole = self
            .left
            .as_ref()
            .is_some_and(|left| left.is_old && left.length == size);
        is_whole && piece.kept == size && matches!(piece.end, Some(FileEnd::Whole(_)))
    }
}

/// What may be the beginning of a wanted file: what an earlier copy has left, or the file that is replaced.
struct KnownBeginning {
    length: u64,
    /// The hash of these bytes.
    hash: blake3::Hash,
    /// Whether these are the bytes of the file that is replaced.
    is_old: bool,
}

impl KnownBeginning {
    /// Has the bytes in the file to be written, and returns their hash, to go on with.
    ///
    /// # Errors
    /// If the bytes have changed since, before this copy had the file to itself.
    fn begin(&self, name: &TargetName<'_>, file: &File) -> io::Result<blake3::Hasher> {
        if self.is_old {
            file.set_len(0)?;
            copy_data(&name.read()?, file, self.length)?;
        }
        let hasher = hash_of_beginning(file, self.length)?;
        match hasher.finalize() == self.hash {
            true => Ok(hasher),
            false => Err(io::Error::other(
                "another process has written it meanwhile: copy it again",
            )),
        }
    }
}

/// What is to be done with an entry.
enum EntryAction {
    /// Nothing more.
    Nothing,
    /// Ask for its bytes.
    Want(Option<KnownBeginning>),
}

struct OpenFile {
    number: u64,
    wanted: WantedFile,
    file: File,
    hasher: blake3::Hasher,
    /// How many bytes have come, with those before the first piece.
    length: u64,
}

impl Receiver<'_> {
    /// Takes a batch of entries. Makes directories and links, and returns the files that are wanted.
    fn take_entries(&mut self, entries: Vec<Entry>) -> Result<Vec<Wanted>> {
        // A sender is one batch ahead.
        if entries.len() > MOST_ENTRIES || self.wanted.len() > 2 * MOST_ENTRIES {
            return Err(malformed("more files than a batch has"));
        }
        let mut wanted = Vec::new();
        for entry in entries {
            entry.check()?;
            if !self.destination.includes(&entry) {
                let path = entry.path().display();
                return Err(malformed(format!("{path}, which was not asked for")));
            }
            let number = self.told;
            self.told += 1;
            self.known.0 += 1;
            self.known.1 = self.known.1.saturating_add(entry.size());
            let path = self.destination.path_of(&entry);
            if self.settings.delete {
                let is_listed = entry.kind == EntryKind::Directory { is_listed: true };
                self.told_paths.add(&path, is_listed);
            }
            match self.take_entry(&path, &entry) {
                Ok(EntryAction::Nothing) => self.progress.moved(entry.size()),
                Ok(EntryAction::Want(left)) => {
                    let has = left
                        .as_ref()
                        .map(|left| (left.length, *left.hash.as_bytes()));
                    wanted.push(Wanted { file: number, has });
                    if self.settings.only_look {
                        self.progress.begun(&path.to_string_lossy(), entry.size());
                        continue;
                    }
                    self.wanted
                        .insert(number, Some(WantedFile { path, entry, left }));
                }
                Err(error) => self.report.note_failed(path.as_os_str().as_bytes(), error),
            }
        }
        self.progress.known(self.known.0, self.known.1);
        Ok(wanted)
    }

    /// Makes a directory or a link, and says whether the bytes of a file are wanted.
    fn take_entry(&mut self, path: &Path, entry: &Entry) -> io::Result<EntryAction> {
        let of_new = match entry.kind {
            EntryKind::File { .. } => EntryAction::Want(None),
            _ => EntryAction::Nothing,
        };
        let Some(target) = &mut self.target else {
            return Ok(of_new);
        };
        // The directory that is there gets the contents, and is left as it is.
        if path.as_os_str().is_empty() {
            self.lacks_more |=
                self.has_new_root && entry.kind == EntryKind::Directory { is_listed: false };
            return Ok(EntryAction::Nothing);
        }
        let mut name = match target.name(path) {
            Ok(name) => name,
            // The directory would have been made.
            Err(error) if self.settings.only_look && has_vanished(&error) => return Ok(of_new),
            Err(error) => return Err(error),
        };
        if self.settings.delete && is_in_the_way(&name, entry)? {
            remove(target, path, self.settings.only_look, &mut self.report);
            if self.settings.only_look {
                return Ok(of_new);
            }
            target.forget();
            name = target.name(path)?;
        }
        match &entry.kind {
            EntryKind::Directory { .. } if self.settings.only_look => Ok(EntryAction::Nothing),
            EntryKind::Directory { is_listed } => {
                let is_new = name.make_directory()?;
                // What else was in the directory is not told in this round.
                self.lacks_more |= is_new && !is_listed;
                self.directories
                    .push((path.to_owned(), entry.mode, entry.modified));
                Ok(EntryAction::Nothing)
            }
            EntryKind::Link(text) => {
                let text = OsStr::from_bytes(text);
                match name.link() {
                    _ if self.settings.only_look => {}
                    Ok(old) if old == text => name.set_link_times(entry.modified)?,
                    _ => name.make_link(text, entry.modified)?,
                }
                Ok(EntryAction::Nothing)
            }
            EntryKind::File { size } => match name.stat()? {
                Some(stat) if file_type(&stat) == FileType::Directory => {
                    Err(io::ErrorKind::IsADirectory.into())
                }
                // An empty file has no bytes that may have changed.
                Some(stat) if (!entry.is_recent || *size == 0) && has_time_of(&stat, entry) => {
                    if !self.settings.only_look && !is_like(&stat, entry) {
                        name.set(entry.mode, entry.modified)?;
                    }
                    self.report.unchanged += 1;
                    Ok(EntryAction::Nothing)
                }
                _ if self.settings.only_look => Ok(EntryAction::Want(None)),
                stat => Ok(EntryAction::Want(match known_part(&name, *size)? {
                    Some(left) => Some(left),
                    None => old_file(&name, stat, *size),
                })),
            },
        }
    }

    /// Takes bytes of files.
    fn take_pieces(&mut self, pieces: Vec<Piece>, mut payload: &[u8]) -> Result<()> {
        for piece in pieces {
            let length = usize::try_from(piece.length).map_err(malformed)?;
            let bytes;
            (bytes, payload) = payload
                .split_at_checked(length)
                .ok_or_else(|| malformed("pieces without their bytes"))?;
            match self.take_piece(&piece, bytes) {
                Ok(()) => {}
                Err(PieceFailure::Malformed(why)) => return Err(malformed(why)),
                Err(PieceFailure::File(path, why)) => {
                    self.open = None;
                    self.report.note_failed(path.as_os_str().as_bytes(), why);
                    // What still comes of the file is dropped.
                    if piece.end.is_none() {
                        self.wanted.insert(piece.file, None);
                    }
                }
            }
        }
        match payload.is_empty() {
            true => Ok(()),
            false => Err(malformed("bytes without pieces")),
        }
    }

    fn take_piece(&mut self, piece: &Piece, bytes: &[u8]) -> std::result::Result<(), PieceFailure> {
        if self
            .open
            .as_ref()
            .is_none_or(|open| open.number != piece.file)
        {
            if self.open.is_some() {
                return Err(PieceFailure::Malformed(
                    "bytes of a file before the end of another one",
                ));
            }
            let wanted = self.wanted.remove(&piece.file);
            let wanted = wanted.ok_or(PieceFailure::Malformed(
                "bytes of a file that is not wanted",
            ))?;
            match wanted {
                // The sender has told why.
                Some(_) if piece.end == Some(FileEnd::Broken) => return Ok(()),
                Some(wanted) if wanted.is_old_file(piece) => return self.keep_old(wanted),
                Some(wanted) => self.open = Some(self.open_file(piece, wanted)?),
                None => {
                    if piece.end.is_none() {
                        self.wanted.insert(piece.file, None);
                    }
                    return Ok(());
                }
            }
        }
        let open = self.open.as_mut().expect("just set");
        let size = open.wanted.entry.size();
        if let Some(FileEnd::Broken) = piece.end {
            // What has come is kept for the next copy.
            self.open = None;
            return Ok(());
        }
        let end = piece
            .offset
            .checked_add(piece.length)
            .filter(|end| *end <= size);
        let Some(end) = end.filter(|_| piece.offset >= open.length) else {
            return Err(PieceFailure::Malformed(
                "bytes beyond the end of a file, or twice",
            ));
        };
        let failed = |error| PieceFailure::File(open.wanted.path.clone(), error);
        // The system refuses an offset that no file has, before zeros up to there are hashed.
        open.file
            .write_all_at(bytes, piece.offset)
            .map_err(failed)?;
        hash_zeros(&mut open.hasher, piece.offset - open.length);
        open.hasher.update(bytes);
        let moved = end - open.length;
        open.length = end;
        self.progress.moved(moved);
        self.report.bytes += piece.length;
        let Some(FileEnd::Whole(hash)) = &piece.end else {
            return Ok(());
        };
        open.file.set_len(size).map_err(failed)?;
        hash_zeros(&mut open.hasher, size - open.length);
        let is_same = open.hasher.finalize().as_bytes() == hash;
        let open = self.open.take().expect("it is open");
        if !is_same {
            // The next copy begins anew.
            let _ = open.file.set_len(0);
            let why = "its bytes are not those of the source: their hashes differ";
            self.report
                .note_failed(open.wanted.path.as_os_str().as_bytes(), why);
            return Ok(());
        }
        let entry = &open.wanted.entry;
        let finished = self
            .target_name(&open.wanted.path)
            .and_then(|name| name.finish(&open.file, entry.mode, entry.modified));
        match finished {
            Ok(()) => self.report.files += 1,
            Err(error) => self
                .report
                .note_failed(open.wanted.path.as_os_str().as_bytes(), error),
        }
        Ok(())
    }

    /// Leaves the file that is there, whose content is that of the source.
    fn keep_old(&mut self, wanted: WantedFile) -> std::result::Result<(), PieceFailure> {
        let entry = &wanted.entry;
        let is_same = self.target_name(&wanted.path).and_then(|name| {
            let is_same = name.stat()?.is_some_and(|stat| is_like(&stat, entry));
            if !is_same {
                name.set(entry.mode, entry.modified)?;
            }
            Ok(is_same)
        });
        match is_same {
            Ok(true) => self.report.unchanged += 1,
            Ok(false) => self.report.files += 1,
            Err(error) => return Err(PieceFailure::File(wanted.path, error)),
        }
        self.progress.moved(entry.size());
        Ok(())
    }

    fn open_file(
        &mut self,
        piece: &Piece,
        wanted: WantedFile,
    ) -> std::result::Result<OpenFile, PieceFailure> {
        let size = wanted.entry.size();
        self.progress.begun(&wanted.path.to_string_lossy(), size);
        let name = self.target_name(&wanted.path);
        let opened = name.and_then(|name| {
            let file = name.open_part()?;
            // The sender goes on behind what is left, if that is the beginning of its file.
            let hasher = match &wanted.left {
                Some(left) if piece.kept == left.length => left.begin(&name, &file)?,
                _ => blake3::Hasher::new(),
            };
            file.set_len(hasher.count())?;
            Ok((file, hasher))
        });
        let (file, hasher) = match opened {
            Ok(opened) => opened,
            Err(error) => return Err(PieceFailure::File(wanted.path, error)),
        };
        let length = hasher.count();
        self.progress.moved(length);
        Ok(OpenFile {
            number: piece.file,
            wanted,
            file,
            hasher,
            length,
        })
    }

    fn target_name<'a>(&'a mut self, path: &'a Path) -> io::Result<TargetName<'a>> {
        self.target
            .as_mut()
            .ok_or(io::ErrorKind::NotFound)?
            .name(path)
    }

    /// Sets the permissions and times of directories.
    fn finish_directories(&mut self) {
        let directories = std::mem::take(&mut self.directories);
        for (path, mode, modified) in directories.into_iter().rev() {
            let set = self
                .target_name(&path)
                .and_then(|name| name.set(mode, modified));
            if let Err(error) = set {
                self.report.note_failed(path.as_os_str().as_bytes(), error);
            }
        }
    }

    /// Sets the permissions of directories alone, after a round that has failed: files were to be written into them.
    fn close_directories(&mut self) {
        for (path, mode, _) in std::mem::take(&mut self.directories).into_iter().rev() {
            // The round has failed anyway.
            let _ = self.target_name(&path).and_then(|name| name.set_mode(mode));
        }
    }

    /// Removes what is not there at the sender any more.
    fn take_gone(&mut self, paths: &[GonePath]) -> Result<()> {
        for GonePath(bytes) in paths {
            let path = Path::new(OsStr::from_bytes(bytes));
            let entry = Entry::new(path, EntryKind::Link(Vec::new()), 0, (0, 0));
            entry.check()?;
            let is_below = path.components().count() > 1;
            if !is_below || !self.destination.includes(&entry) {
                return Err(malformed(format!(
                    "{}, which was not asked for",
                    path.display()
                )));
            }
            let path = self.destination.path_of(&entry);
            if let Some(target) = self.target.as_mut().filter(|_| self.settings.delete) {
                remove(target, &path, self.settings.only_look, &mut self.report);
                target.forget();
            }
        }
        Ok(())
    }

    /// Removes what the sender has not, sets what is set last, and takes over what the sender reports. If the sender could not
    /// read all, nothing is removed.
    fn finish(&mut self, sender: CopyReport, is_complete: bool) {
        let open = self.open.take().map(|open| Some(open.wanted));
        let missing: Vec<_> = self
            .wanted
            .drain()
            .map(|(_, wanted)| wanted)
            .chain(open)
            .collect();
        for wanted in missing.into_iter().flatten() {
            let why = "its bytes have not come";
            self.report
                .note_failed(wanted.path.as_os_str().as_bytes(), why);
        }
        if let Some(target) = self
            .target
            .as_mut()
            .filter(|_| self.settings.delete && is_complete)
        {
            let told = std::mem::take(&mut self.told_paths);
            told.remove_others(target, self.settings.only_look, &mut self.report);
            target.forget();
        }
        self.finish_directories();
        if self.settings.only_look {
            (self.report.files, self.report.bytes) = (sender.files, sender.bytes);
        }
        self.report.add_failed(sender);
    }
}

/// Why a piece was not taken.
enum PieceFailure {
    /// The sender must not send it.
    Malformed(&'static str),
    /// This file cannot be written.
    File(PathBuf, io::Error),
}

/// What an earlier copy has left of a file, if anything.
fn known_part(name: &TargetName<'_>, size: u64) -> io::Result<Option<KnownBeginning>> {
    let Some(file) = name.open_left_part()? else {
        return Ok(None);
    };
    let length = file.metadata()?.len().min(size);
    if length == 0 {
        return Ok(None);
    }
    let hash = match hash_of_beginning(&file, length) {
        // Another copy writes the file.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        hasher => hasher?.finalize(),
    };
    Ok(Some(KnownBeginning {
        length,
        hash,
        is_old: false,
    }))
}

/// The file that is replaced, if it can be the beginning of the new one: a file that only grows is sent from its old end on.
fn old_file(name: &TargetName<'_>, stat: Option<Stat>, size: u64) -> Option<KnownBeginning> {
    stat.filter(|stat| file_type(stat) == FileType::RegularFile)?;
    let file = name.read().ok()?;
    let metadata = file.metadata().ok().filter(Metadata::is_file)?;
    let length = metadata.len();
    if length == 0 || length > size {
        return None;
    }
    let hash = hash_of_beginning(&file, length).ok()?.finalize();
    Some(KnownBeginning {
        length,
        hash,
        is_old: true,
    })
}

/// Whether what is there is a file with the size and the time of the entry.
fn has_time_of(stat: &Stat, entry: &Entry) -> bool {
    file_type(stat) == FileType::RegularFile
        && stat.st_size as u64 == entry.size()
        && (stat.st_mtime, stat.st_mtime_nsec as u32) == entry.modified
}

/// As [`has_time_of`], and with the permissions of the entry.
fn is_like(stat: &Stat, entry: &Entry) -> bool {
    has_time_of(stat, entry) && stat.st_mode & 0o777 == entry.mode
}

/// Whether what is there must be removed before the entry takes its place: a directory, or what is in the place of one.
fn is_in_the_way(name: &TargetName<'_>, entry: &Entry) -> io::Result<bool> {
    let is_directory = |stat| file_type(&stat) == FileType::Directory;
    let there = name.stat()?.map(is_directory);
    Ok(there.is_some_and(|there| there != matches!(entry.kind, EntryKind::Directory { .. })))
}
