//! Both ends of a copy in one process, and ends that follow no rule.

mod tree;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::IoSlice;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime};

use serde::Serialize;
use tempfile::{TempDir, tempdir};
use titin_copy::{
    CopyError, CopyProgress, CopyReport, CopySettings, Destination, FileIdentity, Source,
    SourceKind, Sources, receive, send,
};
use titin_testkit::Watchdog;

use tree::{noise, pair, tree};

const PLAIN: CopySettings = CopySettings {
    only_look: false,
    delete: false,
    watching: None,
};
const LOOK: CopySettings = CopySettings {
    only_look: true,
    ..PLAIN
};

/// Counts what a copy tells of its progress.
#[derive(Default)]
struct Counted {
    known: (u64, u64),
    moved: u64,
    begun: Vec<String>,
}

impl CopyProgress for Counted {
    fn round_over(&mut self, _: &CopyReport, _: Duration) {}

    fn known(&mut self, files: u64, bytes: u64) {
        self.known = (files, bytes);
    }

    fn begun(&mut self, path: &str, _: u64) {
        self.begun.push(path.to_owned());
    }

    fn moved(&mut self, bytes: u64) {
        self.moved += bytes;
    }
}

fn of_files(names: &[&str]) -> Vec<Source> {
    let source = |name: &&str| Source {
        name: (*name).into(),
        kind: SourceKind::File,
        identity: FileIdentity::default(),
        above: Vec::new(),
    };
    names.iter().map(source).collect()
}

/// Copies, and returns the report of the receiver, which the sender has too.
fn copy(sources: &[&Path], destination: &Path, settings: CopySettings) -> (CopyReport, Counted) {
    let _watchdog = Watchdog::start();
    let (here, there) = pair();
    let sources: Vec<PathBuf> = sources.iter().map(|source| source.to_path_buf()).collect();
    let destination =
        Destination::new(destination, Sources::find(&sources).unwrap().told()).unwrap();
    let (mut sent, mut received) = (Counted::default(), Counted::default());
    let (told, report) = thread::scope(|scope| {
        let sender = scope.spawn(|| {
            send(
                &here,
                &Sources::find(&sources).unwrap(),
                &settings,
                &mut sent,
            )
            .unwrap()
        });
        let report = receive(&there, &destination, &settings, &mut received).unwrap();
        (sender.join().unwrap(), report)
    });
    assert_eq!(told, report);
    if report.failed.is_empty() {
        assert_eq!(sent.known, received.known);
        assert_eq!(sent.begun.len(), received.begun.len());
        if !settings.only_look {
            assert_eq!([sent.moved, received.moved], [sent.known.1; 2]);
        }
    }
    (report, sent)
}

fn age(path: &Path, seconds: u64) {
    let time = SystemTime::UNIX_EPOCH + Duration::new(1_000_000_000 + seconds, 123_456_789);
    File::open(path).unwrap().set_modified(time).unwrap();
}

/// A tree of all kinds.
fn varied() -> TempDir {
    let folder = tempdir().unwrap();
    let root = folder.path().join("case");
    fs::create_dir_all(root.join("deep/er/and/deeper")).unwrap();
    fs::create_dir(root.join("empty")).unwrap();
    let sizes = [
        0,
        1,
        4095,
        65_536,
        (4 << 20) - (256 << 10),
        (4 << 20) + 1,
        9_000_001,
    ];
    for (number, size) in sizes.into_iter().enumerate() {
        let path = root.join(format!("deep/er/file {number}"));
        fs::write(&path, noise(size, number as u64)).unwrap();
        age(&path, number as u64);
    }
    fs::write(
        root.join(OsStr::from_bytes(b"deep/\xff\n name")),
        "no UTF-8",
    )
    .unwrap();
    fs::write(
        root.join("deep/".to_owned() + &"n".repeat(255)),
        "a long name",
    )
    .unwrap();
    fs::write(root.join("program"), "#!/bin/sh").unwrap();
    fs::set_permissions(root.join("program"), fs::Permissions::from_mode(0o751)).unwrap();
    fs::set_permissions(root.join("empty"), fs::Permissions::from_mode(0o500)).unwrap();
    symlink("deep/er/file 1", root.join("link")).unwrap();
    symlink("/nowhere/at/all", root.join("deep/broken")).unwrap();
    age(&root.join("deep/er"), 77);
    age(&root, 99);
    folder
}

#[test]
fn a_tree_of_all_kinds_arrives_and_is_left_alone_the_second_time() {
    let (source, target) = (varied(), tempdir().unwrap());
    let case = source.path().join("case");
    let (report, counted) = copy(&[&case], target.path(), PLAIN);
    assert_eq!(report.failed, []);
    assert_eq!((report.files, report.unchanged), (10, 0));
    assert_eq!(report.bytes, counted.known.1);
    assert!(tree(&case) == tree(&target.path().join("case")));

    fs::set_permissions(case.join("program"), fs::Permissions::from_mode(0o640)).unwrap();
    fs::write(case.join("deep/er/file 1"), "x").unwrap();
    let (report, _) = copy(&[&case], target.path(), PLAIN);
    assert_eq!((report.files, report.bytes, report.unchanged), (1, 1, 9));
    assert!(tree(&case) == tree(&target.path().join("case")));
}

#[test]
fn names_are_those_of_rsync() {
    let (source, target) = (varied(), tempdir().unwrap());
    let (case, there) = (source.path().join("case"), target.path());
    let file = case.join("program");
    copy(&[&file], &there.join("renamed"), PLAIN);
    copy(&[&file], &there.join("new/"), PLAIN);
    for _ in 0..2 {
        // The same copy, made again, goes to the same place.
        copy(&[&case], &there.join("other"), PLAIN);
        copy(&[&case.join("")], &there.join("contents"), PLAIN);
        copy(&[&case.join(".")], &there.join("dot/"), PLAIN);
    }
    copy(&[&file, &case.join("link")], &there.join("both"), PLAIN);
    assert_eq!(fs::read(there.join("renamed")).unwrap(), b"#!/bin/sh");
    assert_eq!(fs::read(there.join("new/program")).unwrap(), b"#!/bin/sh");
    assert!(tree(&case) == tree(&there.join("other/case")));
    for contents in ["contents", "dot"] {
        let mut found = tree(&there.join(contents));
        let mut wanted = tree(&case);
        // The directory that gets the contents is left as it is.
        found.remove(Path::new(""));
        wanted.remove(Path::new(""));
        assert!(found == wanted, "{contents}");
    }
    let several = [case.join(""), file.clone()];
    let refused = Destination::new(there, Sources::find(&several).unwrap().told()).unwrap_err();
    assert!(refused.to_string().contains("leave the slash"), "{refused}");
    // A source that is a link stands for the file behind it.
    assert!(
        there
            .join("both/link")
            .symlink_metadata()
            .unwrap()
            .is_file()
    );
    let missing = Destination::new(&there.join("no/such/place"), of_files(&["a"])).unwrap_err();
    assert!(
        missing
            .to_string()
            .contains("no/such: there is no such directory"),
        "{missing}"
    );
    let here = Sources::find(&[there.join("nothing")]).err().unwrap();
    assert!(here.to_string().contains("nothing: No such file"), "{here}");
}

#[test]
fn thousands_of_files_go_in_batches() {
    let (source, target) = (tempdir().unwrap(), tempdir().unwrap());
    for number in 0..5000 {
        let folder = source.path().join(format!("many/{}", number % 7));
        fs::create_dir_all(&folder).unwrap();
        fs::write(
            folder.join(number.to_string()),
            noise(number % 300, number as u64),
        )
        .unwrap();
    }
    let many = source.path().join("many");
    let (report, _) = copy(&[&many], target.path(), PLAIN);
    assert_eq!((report.files, report.failed.len()), (5000, 0));
    assert!(tree(&many) == tree(&target.path().join("many")));
}

#[test]
fn holes_take_no_room_and_no_time() {
    let (source, target) = (tempdir().unwrap(), tempdir().unwrap());
    let path = source.path().join("sparse");
    let file = File::create(&path).unwrap();
    file.write_all_at(b"in the middle", 200 << 20).unwrap();
    file.set_len(300 << 20).unwrap();
    let (report, _) = copy(&[&path], target.path(), PLAIN);
    let copied = target.path().join("sparse");
    assert_eq!(report.failed, []);
    assert!(report.bytes < 1 << 20, "{}", report.bytes);
    assert!(fs::read(&path).unwrap() == fs::read(&copied).unwrap());
    assert!(copied.metadata().unwrap().blocks() * 512 < 1 << 20);
}

#[test]
fn what_an_earlier_copy_has_left_is_kept_if_it_is_the_beginning() {
    let source = tempdir().unwrap();
    let path = source.path().join("large");
    let bytes = noise(20_000_003, 5);
    fs::write(&path, &bytes).unwrap();
    let mut other = bytes[..10_000_000].to_vec();
    other[9_999_999] ^= 1;
    let longer = [&bytes[..], b"more"].concat();
    for (left, sent) in [
        (&bytes[..10_000_000], 10_000_003),
        (&bytes[..], 0),
        (&other[..], 20_000_003),
        (&longer[..], 0),
        (&[], 20_000_003),
    ] {
        let target = tempdir().unwrap();
        fs::write(target.path().join(".large.titin-part"), left).unwrap();
        let (report, _) = copy(&[&path], target.path(), PLAIN);
        assert_eq!(
            (report.bytes, report.failed.len()),
            (sent, 0),
            "{} left",
            left.len()
        );
        assert!(fs::read(target.path().join("large")).unwrap() == bytes);
        assert_eq!(fs::read_dir(target.path()).unwrap().count(), 1);
    }
}

#[test]
fn a_copy_that_only_looks_writes_nothing() {
    let (source, target) = (varied(), tempdir().unwrap());
    let case = source.path().join("case");
    for place in [target.path().to_owned(), target.path().join("new/")] {
        let (report, counted) = copy(&[&case], &place, LOOK);
        assert_eq!((report.files, counted.begun.len()), (10, 10));
        assert!(
            counted.begun.contains(&"case/program".to_owned()),
            "{:?}",
            counted.begun
        );
    }
    assert_eq!(fs::read_dir(target.path()).unwrap().count(), 0);
}

#[test]
fn files_that_cannot_be_copied_are_named_and_the_others_are_copied() {
    let (source, target) = (varied(), tempdir().unwrap());
    let case = source.path().join("case");
    rustix::fs::mkfifoat(rustix::fs::CWD, case.join("pipe"), rustix::fs::Mode::RUSR).unwrap();
    // A directory where a file comes, a file where a directory comes, and a file that a directory is above of.
    fs::create_dir_all(target.path().join("case/program")).unwrap();
    fs::create_dir_all(target.path().join("case/deep")).unwrap();
    fs::write(target.path().join("case/deep/er"), "").unwrap();
    let (report, _) = copy(&[&case], target.path(), PLAIN);
    let failed: BTreeMap<&str, &str> = report
        .failed
        .iter()
        .map(|failed| (&*failed.path, &*failed.why))
        .collect();
    assert!(failed["case/program"].contains("directory"), "{failed:?}");
    assert!(
        failed["case/deep/er"].contains("ot a directory"),
        "{failed:?}"
    );
    assert!(
        failed["case/deep/er/file 0"].contains("ot a directory"),
        "{failed:?}"
    );
    assert!(failed.iter().any(|(path, why)| path.ends_with("pipe") && why.contains("no file, link or directory")));
    assert_eq!(
        fs::read(target.path().join("case/link"))
            .unwrap_err()
            .kind(),
        std::io::ErrorKind::NotADirectory
    );
    assert!(target.path().join("case/empty").is_dir());
}

#[test]
fn a_file_that_another_copy_writes_is_left_to_it() {
    let (source, target) = (tempdir().unwrap(), tempdir().unwrap());
    let path = source.path().join("a");
    fs::write(&path, noise(9_000_000, 1)).unwrap();
    let part = File::create(target.path().join(".a.titin-part")).unwrap();
    part.try_lock().unwrap();
    let (report, _) = copy(&[&path], target.path(), PLAIN);
    assert_eq!(report.failed[0].why, "another copy is writing it");
    thread::scope(|scope| {
        scope.spawn(|| copy(&[&path], target.path(), PLAIN));
        thread::sleep(Duration::from_millis(300));
        drop(part);
    });
    assert!(fs::read(target.path().join("a")).unwrap() == noise(9_000_000, 1));
}

#[test]
fn links_in_the_target_lead_nowhere() {
    let (source, target, outside) = (varied(), tempdir().unwrap(), tempdir().unwrap());
    let case = source.path().join("case");
    fs::write(outside.path().join("program"), "untouched").unwrap();
    fs::create_dir(target.path().join("case")).unwrap();
    symlink(outside.path(), target.path().join("case/deep")).unwrap();
    symlink(
        outside.path().join("program"),
        target.path().join("case/program"),
    )
    .unwrap();
    symlink(
        outside.path().join("made"),
        target.path().join("case/.program.titin-part"),
    )
    .unwrap();
    let before = tree(outside.path());
    let (report, _) = copy(&[&case], target.path(), PLAIN);
    assert!(tree(outside.path()) == before);
    assert!(
        report
            .failed
            .iter()
            .any(|failed| failed.path == "case/deep/er"),
        "{:?}",
        report.failed
    );
    let program = target.path().join("case/program");
    assert!(program.symlink_metadata().unwrap().is_file());
    assert_eq!(fs::read(program).unwrap(), b"#!/bin/sh");
}

#[test]
fn a_file_that_cannot_be_written_is_named_and_the_copy_goes_on() {
    let (source, target) = (tempdir().unwrap(), tempdir().unwrap());
    fs::write(source.path().join("a"), noise(9_000_000, 1)).unwrap();
    fs::write(source.path().join("b"), noise(10, 2)).unwrap();
    // What is to be written is no file, and is not written through.
    fs::create_dir(target.path().join("full")).unwrap();
    fs::create_dir(target.path().join("full/.a.titin-part")).unwrap();
    let sources = ["a", "b"].map(|name| source.path().join(name));
    let (report, _) = copy(
        &[&sources[0], &sources[1]],
        &target.path().join("full"),
        PLAIN,
    );
    assert_eq!(report.failed.len(), 1, "{:?}", report.failed);
    assert_eq!((report.files, &*report.failed[0].path), (1, "a"));
}

/// Calls a function as each file begins.
struct Meddling<F: FnMut(&str)>(F);

impl<F: FnMut(&str)> CopyProgress for Meddling<F> {
    fn round_over(&mut self, _: &CopyReport, _: Duration) {}

    fn known(&mut self, _: u64, _: u64) {}

    fn begun(&mut self, path: &str, _: u64) {
        self.0(path);
    }

    fn moved(&mut self, _: u64) {}
}

/// As [`copy`], with functions that are called at the two ends before a file is opened.
fn copy_meddled(
    source: &Path,
    destination: &Path,
    at_sender: impl FnMut(&str) + Send,
    at_receiver: impl FnMut(&str),
) -> CopyReport {
    let _watchdog = Watchdog::start();
    let (here, there) = pair();
    let sources = vec![source.to_path_buf()];
    let destination =
        Destination::new(destination, Sources::find(&sources).unwrap().told()).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            send(
                &here,
                &Sources::find(&sources).unwrap(),
                &PLAIN,
                &mut Meddling(at_sender),
            )
            .unwrap()
        });
        receive(&there, &destination, &PLAIN, &mut Meddling(at_receiver)).unwrap()
    })
}

#[test]
fn what_is_left_and_changes_meanwhile_is_not_taken_for_the_beginning() {
    let (source, target) = (tempdir().unwrap(), tempdir().unwrap());
    let path = source.path().join("b");
    let bytes = noise(8_000_000, 3);
    fs::write(&path, &bytes).unwrap();
    let part = target.path().join(".b.titin-part");
    for meddle in [
        &(|| fs::write(&part, noise(3_000_000, 4)).unwrap()) as &dyn Fn(),
        &|| fs::write(&part, b"").unwrap(),
        &|| fs::remove_file(&part).unwrap(),
    ] {
        fs::write(&part, &bytes[..3_000_000]).unwrap();
        let report = copy_meddled(&path, target.path(), |_| (), |_| meddle());
        assert_eq!(report.not_copied, 1);
        assert!(!target.path().join("b").exists());
    }
    // A part at the source is not one at the target.
    fs::write(source.path().join(".b.titin-part"), noise(2_000_000, 5)).unwrap();
    let there = target.path().join("new");
    fs::create_dir_all(there.join("s")).unwrap();
    fs::write(there.join("s/.b.titin-part"), &bytes[..3_000_000]).unwrap();
    let renamed = target.path().join("s");
    fs::rename(source.path(), &renamed).unwrap();
    let (report, _) = copy(&[&renamed], &there, PLAIN);
    assert_eq!((report.files, report.bytes), (1, 5_000_000));
    assert!(fs::read(there.join("s/b")).unwrap() == bytes);
}

/// Replaces the part of a file once bytes of it have come.
struct Replacing<'a>(&'a Path);

impl CopyProgress for Replacing<'_> {
    fn round_over(&mut self, _: &CopyReport, _: Duration) {}

    fn known(&mut self, _: u64, _: u64) {}

    fn begun(&mut self, _: &str, _: u64) {}

    fn moved(&mut self, bytes: u64) {
        if bytes > 0 {
            fs::remove_file(self.0).unwrap();
            fs::write(self.0, "not the file").unwrap();
        }
    }
}

#[test]
fn a_part_that_another_process_has_replaced_does_not_take_the_place_of_the_file() {
    let _watchdog = Watchdog::start();
    let (source, target, (here, there)) = (tempdir().unwrap(), tempdir().unwrap(), pair());
    let sources = vec![source.path().join("b")];
    fs::write(&sources[0], noise(6_000_000, 1)).unwrap();
    fs::write(target.path().join("b"), "old").unwrap();
    let destination = Destination::new(target.path(), of_files(&["b"])).unwrap();
    let part = target.path().join(".b.titin-part");
    let report = thread::scope(|scope| {
        scope.spawn(|| {
            send(
                &here,
                &Sources::find(&sources).unwrap(),
                &PLAIN,
                &mut Counted::default(),
            )
            .unwrap()
        });
        receive(&there, &destination, &PLAIN, &mut Replacing(&part)).unwrap()
    });
    assert!(
        report.failed[0].why.contains("removed or replaced"),
        "{report:?}"
    );
    assert_eq!(fs::read(target.path().join("b")).unwrap(), b"old");
}

#[test]
fn another_name_of_a_file_is_not_written_through() {
    let (source, target) = (tempdir().unwrap(), tempdir().unwrap());
    let path = source.path().join("b");
    fs::write(&path, noise(6_000_000, 1)).unwrap();
    let precious = target.path().join("precious");
    fs::write(&precious, "precious").unwrap();
    let root = target.path().join("copied");
    fs::create_dir(&root).unwrap();
    fs::hard_link(&precious, root.join(".b.titin-part")).unwrap();
    let (report, _) = copy(&[&path], &root, PLAIN);
    assert_eq!(report.not_copied, 0, "{report:?}");
    assert_eq!(fs::read(&precious).unwrap(), b"precious");
    assert!(fs::read(root.join("b")).unwrap() == noise(6_000_000, 1));
}

#[test]
fn a_file_that_is_replaced_before_it_is_read_is_named() {
    let (folder, target, secret) = (tempdir().unwrap(), tempdir().unwrap(), tempdir().unwrap());
    let source = folder.path().join("s");
    fs::create_dir_all(source.join("d")).unwrap();
    for name in ["d/x", "e", "f"] {
        fs::write(source.join(name), "mine").unwrap();
    }
    fs::write(secret.path().join("x"), "secret").unwrap();
    let mut is_first = true;
    let meddle = |_: &str| {
        if std::mem::take(&mut is_first) {
            fs::rename(source.join("d"), folder.path().join("old")).unwrap();
            symlink(secret.path(), source.join("d")).unwrap();
            fs::remove_file(source.join("e")).unwrap();
            rustix::fs::mkfifoat(rustix::fs::CWD, source.join("e"), rustix::fs::Mode::RUSR)
                .unwrap();
            fs::remove_file(source.join("f")).unwrap();
            symlink(secret.path().join("x"), source.join("f")).unwrap();
        }
    };
    let report = copy_meddled(&source, target.path(), meddle, |_| ());
    assert_eq!((report.files, report.not_copied), (0, 3), "{report:?}");
    for name in ["d/x", "e", "f"] {
        assert!(!target.path().join("s").join(name).exists());
    }
}

#[test]
fn two_sources_of_one_name_are_refused() {
    let twice = Destination::new(Path::new("."), of_files(&["a", "a"]));
    assert!(
        twice
            .unwrap_err()
            .to_string()
            .contains("two sources are called a")
    );
}

/// A message as an end sends it.
fn message(head: &impl Serialize, payload: &[u8]) -> Vec<u8> {
    let head = rmp_serde::to_vec(head).unwrap();
    [&(head.len() as u32).to_le_bytes()[..], &head, payload].concat()
}

/// Ends that say what no sender says. The messages are those of `message.rs`, in its own form.
#[test]
fn a_hostile_sender_gets_nothing_out_of_its_place() {
    #[derive(Serialize)]
    enum Kind {
        File { size: u64 },
        Link(#[serde(with = "serde_bytes")] Vec<u8>),
    }
    #[derive(Serialize)]
    struct Entry(
        #[serde(with = "serde_bytes")] Vec<u8>,
        Kind,
        u32,
        (i64, u32),
        bool,
    );
    #[derive(Serialize)]
    enum From {
        Entries(Vec<Entry>),
        Pieces(Vec<(u64, u64, u64, u64, Option<End>)>),
    }
    #[derive(Serialize)]
    enum End {
        Whole([u8; 32]),
    }
    let file = |path: &str, size| {
        Entry(
            path.as_bytes().to_vec(),
            Kind::File { size },
            0o644,
            (0, 0),
            false,
        )
    };
    let of_mode = |mode| Entry(b"a".to_vec(), Kind::File { size: 4 }, mode, (0, 0), false);
    let told = |path: &str, size| message(&From::Entries(vec![file(path, size)]), b"");
    let link = message(
        &From::Entries(vec![Entry(
            b"out".to_vec(),
            Kind::Link(b"..".to_vec()),
            0,
            (0, 0),
            false,
        )]),
        b"",
    );
    let piece = |file, offset, length, bytes: &[u8]| {
        message(&From::Pieces(vec![(file, 0, offset, length, None)]), bytes)
    };
    let whole = |bytes: &[u8]| {
        let end = End::Whole(*blake3::hash(bytes).as_bytes());
        message(
            &From::Pieces(vec![(0, 0, 0, bytes.len() as u64, Some(end))]),
            bytes,
        )
    };
    let conversations: Vec<(&str, Vec<Vec<u8>>)> = vec![
        ("the path \"../evil\"", vec![told("../evil", 4)]),
        ("the path \"/tmp/evil\"", vec![told("/tmp/evil", 4)]),
        ("longer than its message", vec![noise(100, 3)]),
        ("without a head", vec![vec![1, 2]]),
        ("longer than its message", vec![vec![255, 255, 255, 127, 0]]),
        ("", vec![message(&7, b"")]),
        ("not asked for", vec![told(".bashrc", 4)]),
        (
            "permissions",
            vec![message(&From::Entries(vec![of_mode(0o4755)]), b"")],
        ),
        ("or a size", vec![told("a", u64::MAX)]),
        (
            "more files than",
            vec![message(
                &From::Entries((0..2001).map(|_| file("a", 1)).collect()),
                b"",
            )],
        ),
        ("not wanted", vec![told("a", 4), piece(7, 0, 4, b"evil")]),
        (
            "beyond the end",
            vec![told("a", 4), piece(0, 1, 4, b"evil")],
        ),
        (
            "beyond the end",
            vec![told("a", 4), piece(0, u64::MAX, 4, b"evil")],
        ),
        (
            "without their bytes",
            vec![told("a", 4), piece(0, 0, u64::MAX, b"evil")],
        ),
        (
            "bytes without pieces",
            vec![told("a", 4), piece(0, 0, 3, b"evil")],
        ),
        (
            "or twice",
            vec![
                told("a", 8),
                piece(0, 0, 4, b"evil"),
                piece(0, 0, 4, b"evil"),
            ],
        ),
        (
            "not wanted",
            vec![told("a", 4), whole(b"good"), whole(b"evil")],
        ),
        (
            "before the end of another",
            vec![
                told("a", 8),
                told("b", 8),
                piece(0, 0, 4, b"evil"),
                piece(1, 0, 4, b"evil"),
            ],
        ),
    ];
    for (what, messages) in conversations {
        let _watchdog = Watchdog::start();
        let (folder, (here, there)) = (tempdir().unwrap(), pair());
        let target = folder.path().join("in/target");
        fs::create_dir_all(&target).unwrap();
        let destination = Destination::new(&target, of_files(&["a", "b"])).unwrap();
        for bytes in messages {
            here.send_parts(&[IoSlice::new(&bytes)], None, None)
                .unwrap();
        }
        let refused = receive(&there, &destination, &PLAIN, &mut Counted::default()).unwrap_err();
        assert!(
            matches!(refused, CopyError::Malformed(_)),
            "{what}: {refused}"
        );
        assert!(refused.to_string().contains(what), "{what}: {refused}");
        let names: Vec<PathBuf> = tree(folder.path()).into_keys().collect();
        let is_inside = |name: &PathBuf| {
            ["", "in"].map(Path::new).contains(&name.as_path()) || name.starts_with("in/target")
        };
        assert!(names.iter().all(is_inside), "{what}: {names:?}");
    }
    // A link out of the target is made, and nothing goes through it.
    let (folder, (here, there)) = (tempdir().unwrap(), pair());
    let target = folder.path().join("target");
    let destination = Destination::new(&target.join(""), of_files(&["out"])).unwrap();
    for bytes in [link, told("out/evil", 4)] {
        here.send_parts(&[IoSlice::new(&bytes)], None, None)
            .unwrap();
    }
    thread::scope(|scope| {
        scope.spawn(|| receive(&there, &destination, &PLAIN, &mut Counted::default()).unwrap_err());
        here.receive(None).unwrap();
        here.receive(None).unwrap();
        drop(here);
    });
    assert!(!folder.path().join("evil").exists());
}
