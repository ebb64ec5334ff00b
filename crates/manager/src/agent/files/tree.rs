//! All files below a folder, as pieces.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use super::known::{KnownFiles, OutputCheck};
use super::piece::{FilePiece, PieceContent, at, open_file};

/// The pieces of the files below a folder, without files that the other end has already. Only files,
/// folders and symbolic links travel. Links come behind all files, so that no file is written through a
/// link, and the ends of folders come last.
pub(crate) struct TreePieces {
    root: PathBuf,
    /// Paths still to be looked at.
    paths: Vec<PathBuf>,
    /// Pieces that need no reading.
    ready: Vec<FilePiece>,
    links: Vec<FilePiece>,
    /// The last pieces of folders, each behind the folder around it.
    folder_ends: Vec<FilePiece>,
    /// The file that is being read: the path, and the next offset.
    reading: Option<(File, PathBuf, u64)>,
    /// The file of which the other end may have a part.
    checking: Option<(File, PathBuf, OutputCheck)>,
}

impl TreePieces {
    /// The pieces of a folder below `root`, the folder `instances`; of all that is in `root` if the path of the
    /// folder is empty.
    pub(crate) fn of(root: &Path, folder: &Path) -> Self {
        TreePieces {
            root: root.to_owned(),
            paths: vec![folder.to_owned()],
            ready: Vec::new(),
            links: Vec::new(),
            folder_ends: Vec::new(),
            reading: None,
            checking: None,
        }
    }

    /// The pieces of what has come from the other end below `root`, and is not there any more.
    pub(crate) fn of_removed(root: &Path, known: &KnownFiles) -> Self {
        TreePieces {
            root: root.to_owned(),
            paths: Vec::new(),
            ready: known.removed(root),
            links: Vec::new(),
            folder_ends: Vec::new(),
            reading: None,
            checking: None,
        }
    }

    /// The next piece; `None` at the end. There may be none yet, if the next call goes on with a long check.
    ///
    /// # Errors
    /// If a file cannot be read, with the path. The next call goes on behind the file.
    pub(crate) fn next(&mut self, known: &KnownFiles) -> Option<io::Result<Option<FilePiece>>> {
        loop {
            if let Some((file, path, offset)) = self.reading.take() {
                let piece = FilePiece::read(&file, &path, offset, false);
                return Some(match piece {
                    Ok(piece) => Ok(Some(self.go_on(file, path, piece))),
                    Err(error) => Err(at(&path, &error)),
                });
            }
            if let Some((file, path, check)) = self.checking.take() {
                let piece = self.go_on_checking(file, &path, check);
                return Some(piece.map_err(|error| at(&path, &error)));
            }
            let Some(path) = self.paths.pop() else {
                let rest = [&mut self.ready, &mut self.links, &mut self.folder_ends];
                return rest.into_iter().find_map(Vec::pop).map(Some).map(Ok);
            };
            match self.look_at(&path, known) {
                Err(error) if path.as_os_str().is_empty() => {
                    return Some(Err(at(&self.root, &error)));
                }
                Err(error) => return Some(Err(at(&path, &error))),
                Ok(Some(piece)) => return Some(Ok(Some(piece))),
                Ok(None) => {}
            }
        }
    }

    /// Goes on in the file of a piece, if more follows.
    fn go_on(&mut self, file: File, path: PathBuf, piece: FilePiece) -> FilePiece {
        let next = piece.next_offset();
        self.reading = next.map(|offset| (file, path, offset));
        piece
    }

    /// Begins with a path. Returns the first piece of a folder or a file.
    fn look_at(&mut self, path: &Path, known: &KnownFiles) -> io::Result<Option<FilePiece>> {
        let whole = self.root.join(path);
        let found = fs::symlink_metadata(&whole)?;
        if found.is_dir() {
            for entry in fs::read_dir(&whole)? {
                self.paths.push(path.join(entry?.file_name()));
            }
            if path.as_os_str().is_empty() {
                return Ok(None);
            }
            self.folder_ends.push(FilePiece::folder_end(path, &found));
            return Ok(Some(FilePiece::new(path, PieceContent::Folder)));
        }
        if found.is_symlink() {
            let target: OsString = fs::read_link(&whole)?.into();
            let target = target.into_vec();
            let link = FilePiece::new(path, PieceContent::Link { target });
            self.links.push(link);
            return Ok(None);
        }
        // Other kinds of files have no content to copy, and could block.
        if !found.is_file() || known.has(path, &found) {
            return Ok(None);
        }
        let file = open_file(&whole)?;
        if let Some(check) = known.check_of(path, &file, &found) {
            self.checking = Some((file, path.to_owned(), check));
            return Ok(None);
        }
        let first = FilePiece::read(&file, path, 0, true)?;
        Ok(Some(self.go_on(file, path.to_owned(), first)))
    }

    /// Goes on with a check. Returns the first piece that the other end does not have, once that is known.
    fn go_on_checking(
        &mut self,
        file: File,
        path: &Path,
        mut check: OutputCheck,
    ) -> io::Result<Option<FilePiece>> {
        let Some(offset) = check.go_on(&file)? else {
            self.checking = Some((file, path.to_owned(), check));
            return Ok(None);
        };
        let first = FilePiece::read(&file, path, offset, offset == 0)?;
        Ok(Some(self.go_on(file, path.to_owned(), first)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::piece::{HEAD, PIECE};
    use super::*;
    use std::fs::{OpenOptions, Permissions};
    use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _, symlink};
    use std::time::{Duration, SystemTime};

    /// Writes all pieces of a folder and returns their number.
    fn write_all(mut pieces: TreePieces, to: &Path, known: &KnownFiles) -> usize {
        let mut count = 0;
        while let Some(piece) = pieces.next(known) {
            let Some(piece) = piece.unwrap() else {
                continue;
            };
            assert!(piece.size() <= PIECE as u64 + 2 * HEAD);
            piece.write(to).unwrap();
            count += 1;
        }
        count
    }

    fn copy(from: &Path, to: &Path, known: &KnownFiles) -> usize {
        write_all(TreePieces::of(from, Path::new("a")), to, known)
    }

    /// Copies a folder to another host, and notes there what has come.
    fn stage(from: &Path, to: &Path) -> KnownFiles {
        let mut known = KnownFiles::default();
        let mut pieces = TreePieces::of(from, Path::new("a"));
        while let Some(piece) = pieces.next(&KnownFiles::default()) {
            let piece = piece.unwrap().unwrap();
            piece.write(to).unwrap();
            known.note_received(to, &piece);
        }
        known.wait_for_clock();
        known
    }

    /// Copies what has changed in the folder on the other host back.
    fn copy_back(from: &Path, to: &Path, known: &KnownFiles) -> usize {
        write_all(TreePieces::of_removed(from, known), to, known) + copy(from, to, known)
    }

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
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
        symlink("../script", from.join("a/workdir/link")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, from.join("a/pipe"), 0o600.into()).unwrap();
        let changed = SystemTime::UNIX_EPOCH + Duration::new(1_000_000_000, 123_456_789);
        // The user root may write in a folder without permission to write.
        let attributes = [
            ("a/script", 0o550),
            ("a/workdir/deep/empty", 0o700),
            ("a/workdir/deep", 0o555),
            ("a/workdir", 0o1750),
        ];
        for (name, mode) in attributes {
            let file = File::open(from.join(name)).unwrap();
            file.set_modified(changed).unwrap();
            set_mode(&from.join(name), mode);
        }
        copy(from, to, &KnownFiles::default());
        for (name, bytes) in [
            ("large", &large[..]),
            ("exact", &large[..PIECE]),
            ("none", b""),
        ] {
            assert_eq!(fs::read(to.join("a/workdir").join(name)).unwrap(), bytes);
        }
        for (name, mode) in attributes {
            let found = fs::metadata(to.join(name)).unwrap();
            assert_eq!(found.mode() & 0o7777, mode, "{name}");
            assert_eq!(found.modified().unwrap(), changed, "{name}");
        }
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
        // Many holes, each shorter than a piece.
        let many = File::create(from.join("a/many")).unwrap();
        for at in 0..10 {
            many.write_all_at(b"data", at << 16).unwrap();
        }
        File::create(from.join("a/hole"))
            .unwrap()
            .set_len(length)
            .unwrap();
        copy(from, to, &KnownFiles::default());
        for (name, at) in [("middle", length / 2), ("end", length - 4), ("none", 0)] {
            let mut bytes = [0; 4];
            let file = File::open(to.join("a").join(name)).unwrap();
            file.read_exact_at(&mut bytes, at).unwrap();
            assert_eq!(&bytes, b"data", "{name}");
        }
        assert_eq!(
            fs::read(to.join("a/many")).unwrap(),
            fs::read(from.join("a/many")).unwrap()
        );
        for name in ["middle", "end", "none", "many", "hole"] {
            let [found, expected] = [to, from].map(|root| fs::metadata(root.join("a").join(name)));
            let (found, expected) = (found.unwrap(), expected.unwrap());
            assert_eq!(found.len(), expected.len(), "{name}");
            assert_eq!(found.blocks(), expected.blocks(), "{name}");
        }
    }

    #[test]
    fn only_what_a_program_has_changed_travels_back() {
        let [from, to] = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let (from, to) = (from.path(), to.path());
        fs::create_dir_all(from.join("a/old/deep")).unwrap();
        for name in [
            "same",
            "longer",
            "equal",
            "mode",
            "lost",
            "moved",
            "pipe",
            "old/deep/file",
        ] {
            fs::write(from.join("a").join(name), name).unwrap();
        }
        for link in ["gone", "kept"] {
            symlink("same", from.join("a").join(link)).unwrap();
        }
        let known = stage(from, to);
        let work = to.join("a");
        fs::write(work.join("longer"), "longer now").unwrap();
        // Content of the same length, at the same place, with the old time.
        let file = OpenOptions::new()
            .write(true)
            .open(work.join("equal"))
            .unwrap();
        let time = file.metadata().unwrap().modified().unwrap();
        file.write_all_at(b"EQUAL", 0).unwrap();
        file.set_modified(time).unwrap();
        set_mode(&work.join("mode"), 0o640);
        fs::remove_file(work.join("lost")).unwrap();
        fs::rename(work.join("moved"), work.join("found")).unwrap();
        fs::remove_dir_all(work.join("old")).unwrap();
        fs::write(work.join("old"), "a file now").unwrap();
        fs::remove_file(work.join("gone")).unwrap();
        fs::remove_file(work.join("pipe")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, work.join("pipe"), 0o600.into()).unwrap();
        // Two pieces of the folder; longer, equal, mode, found, old; kept; what is gone: lost, moved, old/deep,
        // old/deep/file, gone, pipe.
        assert_eq!(copy_back(to, from, &known), 2 + 5 + 1 + 6);
        let mut names: Vec<_> = fs::read_dir(from.join("a")).unwrap().collect();
        names.sort_by_key(|entry| entry.as_ref().unwrap().file_name());
        let names: Vec<_> = names
            .into_iter()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(
            names,
            ["equal", "found", "kept", "longer", "mode", "old", "same"]
        );
        for (name, content) in [
            ("same", "same"),
            ("longer", "longer now"),
            ("equal", "EQUAL"),
            ("mode", "mode"),
            ("found", "moved"),
            ("old", "a file now"),
        ] {
            assert_eq!(
                fs::read_to_string(from.join("a").join(name)).unwrap(),
                content
            );
        }
        assert_eq!(
            fs::metadata(from.join("a/mode")).unwrap().mode() & 0o777,
            0o640
        );
        // A program that removes its own folder.
        fs::remove_dir_all(work).unwrap();
        write_all(TreePieces::of_removed(to, &known), from, &known);
        assert!(!from.join("a/same").exists());
    }

    #[test]
    fn a_long_output_is_checked_in_parts() {
        let [from, to] = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let (from, to) = (from.path(), to.path());
        let path = Path::new("a/out");
        for root in [from, to] {
            fs::create_dir(root.join("a")).unwrap();
        }
        let file = File::create(from.join(path)).unwrap();
        file.write_all_at(&vec![7; 20 << 20], 0).unwrap();
        let mut known = KnownFiles::default();
        let mut follow = || {
            while let Some(piece) = known.next_output(from, path) {
                piece.write(to).unwrap();
            }
        };
        follow();
        // A long hole takes no time.
        file.write_all_at(b"end", 1 << 42).unwrap();
        follow();
        let count = || {
            let mut pieces = TreePieces::of(from, Path::new("a"));
            let (mut parts, mut bytes) = (0, 0);
            while let Some(piece) = pieces.next(&known) {
                match piece.unwrap() {
                    None => parts += 1,
                    Some(piece) => bytes += piece.bytes().len(),
                }
            }
            (parts, bytes)
        };
        assert_eq!(count(), (2, 0));
        file.write_all_at(&[8], 15 << 20).unwrap();
        assert!(count().1 >= 20 << 20, "all comes again");
        file.set_len(1000).unwrap();
        assert_eq!(count().1, 1000);
    }

    #[test]
    fn an_output_goes_on_where_it_was() {
        let [from, to] = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let (from, to) = (from.path(), to.path());
        let path = Path::new("a/out");
        for root in [from, to] {
            fs::create_dir(root.join("a")).unwrap();
        }
        let mut known = KnownFiles::default();
        let follow = |known: &mut KnownFiles| {
            let mut bytes = 0;
            while let Some(piece) = known.next_output(from, path) {
                bytes += piece.bytes().len();
                piece.write(to).unwrap();
            }
            bytes
        };
        assert_eq!(follow(&mut known), 0);
        let write = |text: &str| fs::write(from.join(path), text).unwrap();
        let copied = || fs::read_to_string(to.join(path)).unwrap();
        write("one\n");
        assert_eq!(follow(&mut known), 4);
        assert_eq!(follow(&mut known), 0);
        write("one\ntwo\n");
        assert_eq!(follow(&mut known), 4);
        assert_eq!(copied(), "one\ntwo\n");
        // Shortened, and longer than before when it is looked at again.
        write("three\nfour\n");
        assert_eq!(follow(&mut known), 11);
        assert_eq!(copied(), "three\nfour\n");
        // Shortened, and of the same length again: found at the end.
        write("Three\nfour\n");
        copy(from, to, &known);
        assert_eq!(copied(), "Three\nfour\n");
        // Changed far before the end.
        let lines = "a line\n".repeat(2000);
        write(&lines);
        assert_eq!(follow(&mut known), lines.len());
        let mut changed = lines.clone();
        changed.replace_range(..6, "A LINE");
        write(&changed);
        assert_eq!(follow(&mut known), 0);
        copy(from, to, &known);
        assert_eq!(copied(), changed);
        write("Three\nfour\n");
        assert_eq!(follow(&mut known), 11);
        // Replaced by a file that begins alike.
        fs::rename(from.join(path), from.join("a/older")).unwrap();
        write("Three\nfour\nfive\n");
        assert_eq!(follow(&mut known), 16);
        assert_eq!(copied(), "Three\nfour\nfive\n");
        // A hole at its end is a part of it, and so are the mode and the time.
        let length = 1 << 20;
        let grown = OpenOptions::new()
            .write(true)
            .open(from.join(path))
            .unwrap();
        grown.set_len(length).unwrap();
        // The rest of a block of the file system, at most.
        assert!(follow(&mut known) < 1 << 16);
        set_mode(&from.join(path), 0o640);
        copy(from, to, &known);
        let [found, expected] = [to, from].map(|root| fs::metadata(root.join(path)).unwrap());
        assert_eq!(found.len(), length);
        assert_eq!(found.mode(), expected.mode());
        assert_eq!(found.modified().unwrap(), expected.modified().unwrap());
        // Bytes behind the hole, and then more.
        grown.write_all_at(b"six", length).unwrap();
        assert_eq!(follow(&mut known), 3);
        grown.write_all_at(b"seven", length + 3).unwrap();
        assert_eq!(follow(&mut known), 5);
        assert_eq!(copied(), fs::read_to_string(from.join(path)).unwrap());
        // A pipe would block whoever opens it.
        fs::remove_file(from.join(path)).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, from.join(path), 0o600.into()).unwrap();
        assert_eq!(follow(&mut known), 0);
        copy(from, to, &known);
    }
}
