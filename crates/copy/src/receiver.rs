//! The end of a copy that writes files.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;
use titin_path::Path as MessagePath;

use crate::entry::{Entry, EntryKind};
use crate::error::{CopyError, Result, malformed};
use crate::message::{self, FileEnd, FromReceiver, FromSender, MessageMemory, Piece, Wanted};
use crate::report::{CopyProgress, CopyReport};
use crate::sender::hash_of_beginning;
use crate::sparse::hash_zeros;
use crate::target::{Target, TargetName, file_type};
use crate::walk::{MOST_ENTRIES, Source, SourceKind};

/// Where a copy goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    root: PathBuf,
    mapping: PathMapping,
    /// The names of the sources. Nothing else is received.
    sources: Vec<OsString>,
}

/// What becomes of the name of a source at the destination.
#[derive(Debug, Clone, PartialEq, Eq)]
enum PathMapping {
    /// The source is in the root, by its own name.
    Kept,
    /// The only source, a file, has this name there.
    Renamed(OsString),
    /// What is in the only source is in the root.
    Contents,
}

impl Destination {
    /// As `rsync` understands a destination, so that the same copy, made again, goes to the same place. It is a directory,
    /// which is made if it is not there, and gets the sources; of a source with a slash at its end it gets the contents. Only
    /// for a single file it may be the new name of the file: if it is no directory, and has no slash at its end.
    ///
    /// # Errors
    /// [`CopyError::Place`] if the directory above is not there, two sources have one name, or there are more sources than one
    /// with a slash.
    pub fn new(place: &Path, sources: Vec<Source>) -> std::result::Result<Self, CopyError> {
        let names: Vec<OsString> = sources.iter().map(|source| source.name.clone()).collect();
        for (number, name) in names.iter().enumerate() {
            if names[..number].contains(name) {
                let name = name.to_string_lossy();
                return Err(CopyError::Place(format!("two sources are called {name}")));
            }
        }
        let place = match place.as_os_str().is_empty() {
            true => Path::new("."),
            false => place,
        };
        let is_directory = place.is_dir() || place.as_os_str().as_bytes().ends_with(b"/");
        let kinds: Vec<SourceKind> = sources.iter().map(|source| source.kind).collect();
        let mapping = match (&kinds[..], place.file_name()) {
            ([SourceKind::Contents], _) => PathMapping::Contents,
            ([SourceKind::File], Some(name)) if !is_directory => {
                PathMapping::Renamed(name.to_owned())
            }
            (kinds, _) if kinds.contains(&SourceKind::Contents) => {
                let why = "of several sources each goes to the destination as a whole: leave the slash at the end out";
                return Err(CopyError::Place(why.to_owned()));
            }
            _ => PathMapping::Kept,
        };
        let root = match mapping {
            PathMapping::Renamed(_) => place.parent().unwrap_or(Path::new("")),
            _ => place,
        };
        let root = match root.as_os_str().is_empty() {
            true => Path::new("."),
            false => root,
        };
        // A directory of the destination that is not there is made, but not those above.
        let above = match root.parent() {
            Some(above) if !root.exists() && !matches!(mapping, PathMapping::Renamed(_)) => above,
            _ => root,
        };
        if !above.as_os_str().is_empty() && !above.is_dir() {
            let above = above.display();
            return Err(CopyError::Place(format!(
                "{above}: there is no such directory"
            )));
        }
        Ok(Destination {
            root: root.to_owned(),
            mapping,
            sources: names,
        })
    }

    /// Whether an entry is below one of the sources.
    fn includes(&self, entry: &Entry) -> bool {
        let first = entry.path().components().next();
        first.is_some_and(|first| self.sources.iter().any(|name| first.as_os_str() == name))
    }

    /// Where an entry goes, below the root; empty for the root itself.
    fn path_of(&self, entry: &Entry) -> PathBuf {
        let rest = entry.path().components().skip(1);
        match &self.mapping {
            PathMapping::Kept => entry.path().to_owned(),
            PathMapping::Renamed(name) => [name.as_os_str()]
                .into_iter()
                .chain(rest.map(|part| part.as_os_str()))
                .collect(),
            PathMapping::Contents => rest.collect(),
        }
    }
}

/// Receives files by a path, on which the other end sends. With `only_look` nothing is written.
///
/// # Errors
/// [`CopyError`] if the copy fails as a whole.
pub fn receive(
    path: &MessagePath,
    destination: &Destination,
    only_look: bool,
    progress: &mut dyn CopyProgress,
) -> std::result::Result<CopyReport, CopyError> {
    let root = &destination.root;
    let place = |error: io::Error| CopyError::Place(format!("{}: {error}", root.display()));
    if !only_look && !root.exists() {
        fs::create_dir(root).map_err(place)?;
    }
    let target = match only_look && !root.exists() {
        true => None,
        false => Some(Target::open(root).map_err(place)?),
    };
    let mut receiver = Receiver {
        destination,
        target,
        only_look,
        progress,
        told: 0,
        known: (0, 0),
        wanted: HashMap::new(),
        open: None,
        directories: Vec::new(),
        report: CopyReport::default(),
    };
    let mut memory = MessageMemory::new();
    loop {
        match memory.receive(path)? {
            (FromSender::Entries(entries), _) => {
                let wanted = receiver.take_entries(entries)?;
                message::send(path, &FromReceiver::Wanted(wanted), &[])?;
            }
            (FromSender::Pieces(pieces), payload) => receiver.take_pieces(pieces, payload)?,
            (FromSender::Over(report), _) => {
                receiver.finish(report);
                let report = receiver.report;
                message::send(path, &FromReceiver::Report(report.clone()), &[])?;
                return Ok(report);
            }
        }
    }
}

struct Receiver<'a> {
    destination: &'a Destination,
    /// `None` if the directory is not there, and this end only looks.
    target: Option<Target>,
    only_look: bool,
    progress: &'a mut dyn CopyProgress,
    /// How many entries the sender has told.
    told: u64,
    /// The files and bytes among them.
    known: (u64, u64),
    /// The files whose bytes have not all come, by their numbers; `None` for one that has failed here.
    wanted: HashMap<u64, Option<WantedFile>>,
    /// The file whose bytes are coming.
    open: Option<OpenFile>,
    /// The directories, whose permissions and times are set in the end.
    directories: Vec<(PathBuf, u32, (i64, u32))>,
    report: CopyReport,
}

struct WantedFile {
    path: PathBuf,
    entry: Entry,
    /// What an earlier copy has left of the file.
    left: Option<LeftPart>,
}

/// What an earlier copy has left of a file.
struct LeftPart {
    length: u64,
    /// The hash of these bytes.
    hash: blake3::Hash,
}

impl LeftPart {
    /// The hash of the bytes, to go on with.
    ///
    /// # Errors
    /// If the file has changed since, before this copy had it to itself.
    fn begin(&self, file: &File) -> io::Result<blake3::Hasher> {
        let hasher = hash_of_beginning(file, self.length)?;
        match hasher.finalize() == self.hash {
            true => Ok(hasher),
            false => Err(io::Error::other(
                "another copy has written it meanwhile: copy it again",
            )),
        }
    }
}

/// What is to be done with an entry.
enum EntryAction {
    /// Nothing more.
    Nothing,
    /// Ask for its bytes.
    Want(Option<LeftPart>),
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
            match self.take_entry(&path, &entry) {
                Ok(EntryAction::Nothing) => self.progress.moved(entry.size()),
                Ok(EntryAction::Want(left)) => {
                    let has = left
                        .as_ref()
                        .map(|left| (left.length, *left.hash.as_bytes()));
                    wanted.push(Wanted { file: number, has });
                    if self.only_look {
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
            return Ok(EntryAction::Nothing);
        }
        let name = match target.name(path) {
            Ok(name) => name,
            // The directory would have been made.
            Err(error) if self.only_look && error.kind() == io::ErrorKind::NotFound => {
                return Ok(of_new);
            }
            Err(error) => return Err(error),
        };
        match &entry.kind {
            EntryKind::Directory if self.only_look => Ok(EntryAction::Nothing),
            EntryKind::Directory => {
                name.make_directory()?;
                self.directories
                    .push((path.to_owned(), entry.mode, entry.modified));
                Ok(EntryAction::Nothing)
            }
            EntryKind::Link(text) => {
                let text = OsStr::from_bytes(text);
                if !self.only_look && name.link().ok().as_deref() != Some(text) {
                    name.make_link(text, entry.modified)?;
                }
                Ok(EntryAction::Nothing)
            }
            EntryKind::File { size } => match name.stat()? {
                Some(stat) if file_type(&stat) == FileType::Directory => {
                    Err(io::ErrorKind::IsADirectory.into())
                }
                Some(stat)
                    if file_type(&stat) == FileType::RegularFile
                        && stat.st_size as u64 == *size
                        && (stat.st_mtime, stat.st_mtime_nsec as u32) == entry.modified =>
                {
                    if !self.only_look && stat.st_mode & 0o777 != entry.mode {
                        name.set(entry.mode, entry.modified)?;
                    }
                    self.report.unchanged += 1;
                    Ok(EntryAction::Nothing)
                }
                _ if self.only_look => Ok(EntryAction::Want(None)),
                _ => Ok(EntryAction::Want(left_part(&name, *size)?)),
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
        hash_zeros(&mut open.hasher, piece.offset - open.length);
        open.hasher.update(bytes);
        let failed = |error| PieceFailure::File(open.wanted.path.clone(), error);
        open.file
            .write_all_at(bytes, piece.offset)
            .map_err(failed)?;
        let moved = end - open.length;
        open.length = end;
        self.progress.moved(moved);
        self.report.bytes += piece.length;
        let Some(FileEnd::Whole(hash)) = &piece.end else {
            return Ok(());
        };
        hash_zeros(&mut open.hasher, size - open.length);
        open.file.set_len(size).map_err(failed)?;
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
                Some(left) if piece.kept == left.length => left.begin(&file)?,
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

    /// Sets what is set last, and takes over what the sender reports.
    fn finish(&mut self, sender: CopyReport) {
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
        let directories = std::mem::take(&mut self.directories);
        for (path, mode, modified) in directories.into_iter().rev() {
            let set = self
                .target_name(&path)
                .and_then(|name| name.set(mode, modified));
            if let Err(error) = set {
                self.report.note_failed(path.as_os_str().as_bytes(), error);
            }
        }
        if self.only_look {
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
fn left_part(name: &TargetName<'_>, size: u64) -> io::Result<Option<LeftPart>> {
    let Some(file) = name.open_left_part()? else {
        return Ok(None);
    };
    let length = file.metadata()?.len().min(size);
    if length == 0 {
        return Ok(None);
    }
    let hash = hash_of_beginning(&file, length)?.finalize();
    Ok(Some(LeftPart { length, hash }))
}
