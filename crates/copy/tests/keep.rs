//! Copies that go on: after any change of the sender's files the receiver has the same.

mod tree;

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use rustix::fs::{CWD, RenameFlags, renameat_with};
use tempfile::tempdir;
use titin_copy::{
    CopyError, CopyProgress, CopyReport, CopySettings, Destination, Sources, Watching,
    keep_receiving, keep_sending, receive, send,
};
use titin_testkit::Watchdog;

use tree::{Tree, noise, pair, tree, try_tree};

const MIRROR: CopySettings = CopySettings {
    only_look: false,
    delete: true,
    watching: None,
};
const WATCHED: CopySettings = CopySettings {
    watching: Some(Watching::Events),
    ..MIRROR
};

/// Passes on the reports of rounds.
struct Rounds(Sender<CopyReport>);

impl CopyProgress for Rounds {
    fn known(&mut self, _: u64, _: u64) {}

    fn begun(&mut self, _: &str, _: u64) {}

    fn moved(&mut self, _: u64) {}

    fn round_over(&mut self, report: &CopyReport, _: Duration) {
        let _ = self.0.send(report.clone());
    }
}

/// One copy of the contents of a directory.
fn copy(source: &Path, target: &Path, settings: CopySettings) -> CopyReport {
    let _watchdog = Watchdog::start();
    let (here, there) = pair();
    let sources = vec![source.join("")];
    let destination = Destination::new(target, Sources::find(&sources).unwrap().told()).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            send(
                &here,
                &Sources::find(&sources).unwrap(),
                &settings,
                &mut Rounds(channel().0),
            )
            .unwrap()
        });
        receive(&there, &destination, &settings, &mut Rounds(channel().0)).unwrap()
    })
}

/// Keeps the contents of a directory up to date while `play` runs, which gets the reports of the receiver. Returns why the
/// sender has ended; the receiver is told that its path is closed.
fn keep(
    source: &Path,
    target: &Path,
    settings: CopySettings,
    play: impl FnOnce(&Receiver<CopyReport>),
) -> CopyError {
    let _watchdog = Watchdog::start();
    let (here, there) = pair();
    let sources = Sources::find(&[source.join("")]).unwrap();
    let destination = Destination::new(target, sources.told()).unwrap();
    let ((told, reports), (sent, _sent)) = (channel(), channel());
    thread::scope(|scope| {
        let sender = scope.spawn(move || {
            keep_sending(&here, &sources, &settings, &mut Rounds(sent)).unwrap_err()
        });
        let receiver = scope.spawn(move || {
            let end = keep_receiving(&there, &destination, &settings, &mut Rounds(told));
            end.unwrap_err()
        });
        let played = catch_unwind(AssertUnwindSafe(|| play(&reports)));
        // The sender ends when its source is another directory.
        let other = source.with_extension("other");
        fs::create_dir(&other).unwrap();
        renameat_with(CWD, &other, CWD, source, RenameFlags::EXCHANGE).unwrap();
        let why = sender.join().unwrap();
        receiver.join().unwrap();
        if let Err(failure) = played {
            resume_unwind(failure);
        }
        why
    })
}

/// Waits until both trees are the same.
fn await_same(source: &Path, target: &Path) {
    for _ in 0..400 {
        let there = try_tree(target).map(contents);
        if there.is_ok_and(|there| there == without_root(source)) {
            return;
        }
        thread::sleep(Duration::from_millis(25));
    }
    let (here, there) = (without_root(source), without_root(target));
    let differs: Vec<_> = here
        .iter()
        .filter(|(path, what)| there.get(*path) != Some(what))
        .map(|(path, _)| path)
        .chain(there.keys().filter(|path| !here.contains_key(*path)))
        .collect();
    let describe = |tree: &Tree, path: &Path| {
        let found = tree.get(path);
        found.map(|(mode, seconds, nanoseconds, content)| {
            format!(
                "{mode:o} {seconds}.{nanoseconds:09}, {} bytes",
                content.len()
            )
        })
    };
    let differs: Vec<_> = differs
        .into_iter()
        .map(|path| (path, describe(&here, path), describe(&there, path)))
        .collect();
    panic!("after 10 s these differ: {differs:#?}");
}

/// All but the directory itself, which is left as it is.
fn without_root(root: &Path) -> Tree {
    contents(tree(root))
}

fn contents(mut tree: Tree) -> Tree {
    tree.remove(Path::new(""));
    tree
}

#[test]
fn what_the_sender_has_not_is_removed_only_if_told() {
    let folder = tempdir().unwrap();
    let (source, target) = (folder.path().join("source"), folder.path().join("target"));
    fs::create_dir_all(source.join("kept/deep")).unwrap();
    fs::write(source.join("kept/file"), "x").unwrap();
    fs::write(source.join("was a directory"), "file").unwrap();
    fs::create_dir(source.join("was a file")).unwrap();
    fs::write(source.join("was a file/in"), "x").unwrap();
    fs::create_dir_all(target.join("old/deep/er")).unwrap();
    fs::write(target.join("old/deep/er/file"), "x").unwrap();
    fs::set_permissions(target.join("old/deep"), fs::Permissions::from_mode(0o500)).unwrap();
    fs::create_dir_all(target.join("kept/deep")).unwrap();
    fs::write(target.join("kept/deep/old"), "x").unwrap();
    fs::write(target.join("kept/.a.titin-part"), "x").unwrap();
    fs::create_dir_all(target.join("was a directory/full")).unwrap();
    fs::write(target.join("was a file"), "x").unwrap();
    fs::write(folder.path().join("outside"), "x").unwrap();
    symlink(folder.path(), target.join("link")).unwrap();
    let before = tree(&target);

    let looked = CopySettings {
        only_look: true,
        ..MIRROR
    };
    let report = copy(&source, &target, looked);
    let would = [
        "was a directory/",
        "was a file",
        "link",
        "old/",
        "kept/deep/old",
    ];
    assert_eq!(report.removed_paths, would);
    // With the four in `old`, and the one in `was a directory`.
    assert_eq!(
        (report.removed, report.files, report.failed.len()),
        (9, 3, 0)
    );
    assert!(tree(&target) == before);

    let plain = CopySettings {
        delete: false,
        ..MIRROR
    };
    let report = copy(&source, &target, plain);
    assert_eq!((report.removed, report.not_copied), (0, 3), "{report:?}");
    assert!(target.join("old/deep/er/file").exists() && target.join("was a file").is_file());

    let report = copy(&source, &target, MIRROR);
    assert_eq!(
        (report.removed_paths, report.removed),
        (would.map(str::to_owned).to_vec(), 9)
    );
    fs::remove_file(target.join("kept/.a.titin-part")).unwrap();
    copy(&source, &target, MIRROR);
    assert!(without_root(&source) == without_root(&target));
    assert!(folder.path().join("outside").exists());
}

#[test]
fn nothing_is_removed_if_the_sender_could_not_read_all() {
    let folder = tempdir().unwrap();
    let (source, target) = (folder.path().join("source"), folder.path().join("target"));
    fs::create_dir(&source).unwrap();
    fs::write(source.join("file"), "x").unwrap();
    // A path that is longer than the system's, which the sender reaches by single steps only.
    let deep = source.join("d".repeat(250));
    fs::create_dir(&deep).unwrap();
    for depth in 0..17 {
        let (from, to) = (folder.path().join("now"), folder.path().join("next"));
        fs::create_dir(&to).unwrap();
        if depth > 0 {
            fs::rename(from.join("d".repeat(250)), to.join("d".repeat(250))).unwrap();
        } else {
            fs::create_dir(to.join("d".repeat(250))).unwrap();
        }
        let inner = folder.path().join("inner");
        fs::create_dir(&inner).unwrap();
        fs::rename(to.join("d".repeat(250)), inner.join("d".repeat(250))).unwrap();
        let _ = fs::remove_dir_all(&from);
        fs::remove_dir(&to).unwrap();
        fs::create_dir(&from).unwrap();
        fs::rename(&inner, from.join("d".repeat(250))).unwrap();
    }
    fs::rename(folder.path().join("now"), deep.join("now")).unwrap();
    fs::create_dir(&target).unwrap();
    fs::write(target.join("old"), "x").unwrap();
    let report = copy(&source, &target, MIRROR);
    assert!(report.not_copied > 0);
    assert_eq!(report.removed, 0);
    assert!(target.join("old").exists() && target.join("file").exists());
}

#[test]
fn of_a_file_that_has_grown_only_the_end_is_sent() {
    let folder = tempdir().unwrap();
    let (source, target) = (folder.path().join("source"), folder.path().join("target"));
    fs::create_dir(&source).unwrap();
    let file = source.join("log");
    let mut bytes = noise(3_000_000, 1);
    for (more, sent) in [
        (0, 3_000_000),
        (1, 1),
        (70_000, 70_000),
        (5_000_000, 5_000_000),
    ] {
        bytes.extend(noise(more, more as u64));
        fs::write(&file, &bytes).unwrap();
        assert_eq!(copy(&source, &target, MIRROR).bytes, sent);
        assert!(fs::read(target.join("log")).unwrap() == bytes);
    }
    // Only another time.
    fs::write(&file, &bytes).unwrap();
    let report = copy(&source, &target, MIRROR);
    assert_eq!((report.bytes, report.files, report.unchanged), (0, 1, 0));
    // Another beginning, and a shorter file.
    bytes[0] ^= 1;
    bytes.push(0);
    fs::write(&file, &bytes).unwrap();
    assert_eq!(copy(&source, &target, MIRROR).bytes, bytes.len() as u64);
    bytes.truncate(10);
    fs::write(&file, &bytes).unwrap();
    assert_eq!(copy(&source, &target, MIRROR).bytes, 10);
    assert!(without_root(&source) == without_root(&target));
}

#[test]
fn every_change_arrives() {
    let folder = tempdir().unwrap();
    let (source, target) = (folder.path().join("source"), folder.path().join("target"));
    fs::create_dir_all(source.join("a/b")).unwrap();
    fs::write(source.join("a/b/file"), "x").unwrap();
    let why = keep(&source, &target, WATCHED, |reports| {
        assert_eq!(reports.recv().unwrap().files, 1);
        let (here, there) = (&source, &target);
        let same = || await_same(here, there);
        same();
        fs::write(here.join("a/new"), "new").unwrap();
        same();
        let mut log = fs::OpenOptions::new()
            .append(true)
            .open(here.join("a/b/file"))
            .unwrap();
        // A file that stays open.
        for number in 0..5 {
            writeln!(log, "line {number}").unwrap();
            same();
        }
        fs::set_permissions(here.join("a/new"), fs::Permissions::from_mode(0o640)).unwrap();
        same();
        fs::rename(here.join("a"), here.join("renamed")).unwrap();
        same();
        // The renamed directory is watched by its new name, with those below it.
        fs::write(here.join("renamed/b/more"), "more").unwrap();
        same();
        fs::create_dir_all(here.join("one/two/three")).unwrap();
        fs::write(here.join("one/two/three/file"), "deep").unwrap();
        symlink("two", here.join("one/link")).unwrap();
        same();
        fs::set_permissions(here.join("one/two"), fs::Permissions::from_mode(0o555)).unwrap();
        same();
        fs::remove_dir_all(here.join("renamed")).unwrap();
        fs::remove_file(here.join("one/link")).unwrap();
        fs::create_dir(here.join("one/link")).unwrap();
        same();
        fs::remove_dir(here.join("one/link")).unwrap();
        symlink("/nowhere", here.join("one/link")).unwrap();
        same();
        // A round has only what has changed.
        while reports.try_recv().is_ok() {}
        fs::write(here.join("last"), "1").unwrap();
        same();
        let report = reports.recv().unwrap();
        assert_eq!((report.files, report.unchanged, report.removed), (1, 0, 0));
    });
    assert!(
        why.to_string().contains("another directory than before"),
        "{why}"
    );
    // The new, empty source has taken nothing away.
    assert!(target.join("last").exists());
}

/// Random changes in bursts, after each of which both trees become the same.
#[test]
fn random_changes_arrive() {
    let ways = [Watching::Events, Watching::Looks(Duration::from_millis(20))];
    for (watching, seed) in ways.into_iter().flat_map(|way| [(way, 3), (way, 22)]) {
        let settings = CopySettings {
            watching: Some(watching),
            ..MIRROR
        };
        let folder = tempdir().unwrap();
        let (source, target) = (folder.path().join("source"), folder.path().join("target"));
        fs::create_dir(&source).unwrap();
        keep(&source, &target, settings, |_| {
            let mut random = Random(seed);
            for _ in 0..12 {
                for _ in 0..random.below(40) {
                    change(&source, &mut random);
                }
                await_same(&source, &target);
            }
        });
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// Makes, writes, renames or removes something. What cannot be done is left out.
fn change(root: &Path, random: &mut Random) {
    let mut path = || -> PathBuf {
        let depth = 1 + random.below(3);
        let names = (0..depth).map(|_| ["a", "b", "c", "d"][random.below(4) as usize]);
        root.join(names.collect::<PathBuf>())
    };
    let (one, other) = (path(), path());
    let size = [0, 1, 5000, 300_000][random.below(4) as usize];
    let _ = match random.below(10) {
        0..3 => fs::write(&one, noise(size, random.below(1000))),
        3 => fs::OpenOptions::new()
            .append(true)
            .open(&one)
            .and_then(|mut file| file.write_all(&noise(size, 7))),
        4 | 5 => fs::create_dir_all(&one),
        6 => fs::rename(&one, &other),
        7 => fs::remove_file(&one).or_else(|_| fs::remove_dir_all(&one)),
        8 => symlink("a", &one),
        _ => fs::set_permissions(
            &one,
            fs::Permissions::from_mode([0o700, 0o755, 0o644][random.below(3) as usize] | 0o600),
        ),
    };
}

#[test]
fn sources_that_cannot_be_kept_are_refused() {
    let folder = tempdir().unwrap();
    let (file, deep) = (folder.path().join("file"), folder.path().join("a/b"));
    fs::write(&file, "x").unwrap();
    fs::create_dir_all(&deep).unwrap();
    symlink(&deep, folder.path().join("link")).unwrap();
    let (here, _there) = pair();
    let refused = |paths: &[&Path]| {
        let paths: Vec<PathBuf> = paths.iter().map(|path| path.to_path_buf()).collect();
        let sources = Sources::find(&paths).unwrap();
        let refused = keep_sending(&here, &sources, &WATCHED, &mut Rounds(channel().0));
        refused.unwrap_err().to_string()
    };
    assert!(refused(&[&file]).contains("it is no directory"));
    let above = folder.path().join("a");
    assert!(refused(&[&above, &deep]).contains("a/b: it is below"));
    assert!(refused(&[&folder.path().join("link"), &above]).contains("link: it is below"));
}

/// Files that are written, and gone a moment later, beside one that stays.
#[test]
fn files_that_come_and_go_are_no_failures() {
    let folder = tempdir().unwrap();
    let (source, target) = (folder.path().join("source"), folder.path().join("target"));
    fs::create_dir(&source).unwrap();
    keep(&source, &target, WATCHED, |reports| {
        for number in 0..300 {
            let passing = source.join(format!("passing-{}", number % 7));
            fs::write(&passing, noise(number * 10, number as u64)).unwrap();
            fs::write(source.join("stays"), noise(number, 1)).unwrap();
            fs::remove_file(passing).unwrap();
        }
        await_same(&source, &target);
        let failed: Vec<_> = reports
            .try_iter()
            .flat_map(|report| report.failed)
            .collect();
        assert_eq!(failed, []);
    });
}

#[test]
fn a_time_that_is_set_back_hides_no_change() {
    let folder = tempdir().unwrap();
    let (source, target) = (folder.path().join("source"), folder.path().join("target"));
    fs::create_dir(&source).unwrap();
    let file = source.join("file");
    let write = |text: &str| {
        fs::write(&file, text).unwrap();
        let time = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        fs::File::open(&file).unwrap().set_modified(time).unwrap();
    };
    write("one");
    keep(&source, &target, WATCHED, |_| {
        await_same(&source, &target);
        write("two");
        await_same(&source, &target);
    });
}

/// Their sizes and times were the same all the time, and an empty file has no bytes to compare.
#[test]
fn files_of_a_moment_ago_are_not_written_again() {
    let folder = tempdir().unwrap();
    let (source, target) = (folder.path().join("source"), folder.path().join("target"));
    fs::create_dir(&source).unwrap();
    fs::write(source.join("empty"), "").unwrap();
    fs::write(source.join("full"), "one").unwrap();
    let looks = CopySettings {
        watching: Some(Watching::Looks(Duration::from_millis(10))),
        ..MIRROR
    };
    keep(&source, &target, looks, |reports| {
        let written: Vec<_> = (0..4).map(|_| reports.recv().unwrap().files).collect();
        assert_eq!(written, [2, 0, 0, 0]);
    });
}
