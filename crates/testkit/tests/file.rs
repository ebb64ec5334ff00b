//! The contract of carriers through a folder. Also the cases of this medium alone: files that make
//! no sense, folders that refuse files, killed processes, and files that are left behind.

use std::fs::{self, File, Permissions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use titin_testkit::{
    Host, Pair, PairEnd, conformance, pattern, play_part, start_part, start_part_of,
};
use titin_transport::{InboxOptions, LinkError};
use titin_wire::{Address, LinkSettings, Secret};

conformance!(Pair::file);

/// The bytes of a segment file.
fn segment(number: u64, length: u64, mark: u64, content: &[u8]) -> Vec<u8> {
    let words = [number, length, mark].map(u64::to_le_bytes);
    [b"titinseg", &words.concat()[..], content].concat()
}

fn private_folder(path: &Path) {
    fs::DirBuilder::new().mode(0o700).create(path).unwrap();
}

/// All files and folders below a folder, without the folder.
fn below(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        all.push(entry.path());
        if entry.file_type().unwrap().is_dir() {
            all.extend(below(&entry.path()));
        }
    }
    all
}

/// Two hosts, and the run's folder, which is removed with the value.
struct Meeting {
    pair: Pair,
    folder: PathBuf,
    _temporary: tempfile::TempDir,
}

impl Meeting {
    fn new() -> Self {
        let temporary = tempfile::tempdir().unwrap();
        let folder = temporary.path().join("run");
        private_folder(&folder);
        Meeting {
            pair: Pair::file_in(&folder),
            folder,
            _temporary: temporary,
        }
    }

    /// The folder of the segments from left to right.
    fn there(&self) -> PathBuf {
        segments_from_left(&self.folder)
    }
}

/// The folder of the segments from left to right, below the run's folder.
fn segments_from_left(run: &Path) -> PathBuf {
    let mut folders = below(run).into_iter();
    folders.find(|path| path.ends_with("there")).unwrap()
}

fn lost(end: &PairEnd) -> LinkError {
    let (host, _) = end.tcp.as_ref().unwrap();
    host.events.lost()
}

/// The number of the next segment in a folder whose segments are all read.
fn next_segment(folder: &Path) -> u64 {
    // A file with the number of the next segment disappears, because the reader takes it.
    (0..)
        .find(|number| {
            let path = folder.join(format!("{number:016x}"));
            fs::write(folder.join("probe"), segment(*number, 0, 0, b"")).unwrap();
            fs::rename(folder.join("probe"), &path).unwrap();
            let begun = Instant::now();
            while path.exists() && begun.elapsed() < Duration::from_millis(300) {
                std::thread::sleep(Duration::from_millis(5));
            }
            let is_next = !path.exists();
            let _ = fs::remove_file(path);
            is_next
        })
        .unwrap()
        + 1
}

#[test]
fn files_that_make_no_sense_end_the_link_and_are_named() {
    type Put = fn(&Path, u64);
    let puts: [(&str, Put); 7] = [
        ("is not a segment of titin", |path, _| {
            fs::write(path, "something else").unwrap();
        }),
        ("says number", |path, number| {
            fs::write(path, segment(number + 1, 0, 0, b"")).unwrap();
        }),
        ("says number", |path, number| {
            fs::write(path, segment(number, u64::MAX, 0, b"")).unwrap();
        }),
        ("has 35 bytes in place of 34", |path, number| {
            fs::write(path, segment(number, 2, 0, b"abc")).unwrap();
        }),
        ("is no plain file", |path, _| {
            symlink("/dev/zero", path).unwrap()
        }),
        ("is no plain file", |path, _| {
            mknodat(CWD, path, FileType::Fifo, Mode::RWXU, 0).unwrap();
        }),
        ("was cut short, to 33 bytes", |path, number| {
            fs::write(path, segment(number, 100, 0, b"a")).unwrap();
        }),
    ];
    std::thread::scope(|scope| {
        for (said, put) in puts {
            scope.spawn(move || {
                let meeting = Meeting::new();
                let there = meeting.there();
                let number = next_segment(&there);
                let foreign = meeting.folder.join("foreign");
                put(&foreign, number);
                fs::rename(foreign, there.join(format!("{number:016x}"))).unwrap();
                let lost = lost(&meeting.pair.right);
                assert!(
                    matches!(&lost, LinkError::Malformed(why) if why.to_string().contains(said)),
                    "{said}: {lost}"
                );
                assert!(lost.to_string().contains(there.to_str().unwrap()), "{lost}");
            });
        }
    });
}

#[test]
fn frames_that_make_no_sense_end_the_link() {
    let meeting = Meeting::new();
    let there = meeting.there();
    let number = next_segment(&there);
    let garbage = pattern(1, 1000);
    let foreign = meeting.folder.join("foreign");
    fs::write(&foreign, segment(number, 1000, 0, &garbage)).unwrap();
    fs::rename(foreign, there.join(format!("{number:016x}"))).unwrap();
    assert!(matches!(lost(&meeting.pair.right), LinkError::Malformed(_)));
}

#[test]
fn files_of_others_are_left_alone() {
    let meeting = Meeting::new();
    let there = meeting.there();
    let process = there.ancestors().nth(2).unwrap();
    fs::write(process.join("notes"), "mine").unwrap();
    fs::write(process.join("0".repeat(32)), "no folder").unwrap();
    private_folder(&process.join("1".repeat(32)));
    symlink("/", process.join("2".repeat(32))).unwrap();
    let (outlet, inlet) = meeting.pair.conduit(1);
    outlet.send(b"all is well");
    assert_eq!(inlet.receive().body[..], *b"all is well");
    assert!(process.join("notes").exists());
}

#[test]
fn a_process_without_the_secret_is_refused() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path().join("run");
    private_folder(&folder);
    let [host, stranger] = [Secret::random(), Secret::random()].map(|secret| Host::start(&secret));
    stranger.dial(&[host.listen_in(&folder).unwrap()], 3);
    let why = stranger.events.unreachable(3);
    assert!(matches!(why, LinkError::Refused(_)), "{why}");
    assert_eq!(host.events.count(), 0);
}

#[test]
fn a_folder_that_others_may_open_does_not_serve() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path().join("run");
    private_folder(&folder);
    let host = Host::start(&Secret::random());
    fs::set_permissions(&folder, Permissions::from_mode(0o750)).unwrap();
    let why = host.listen_in(&folder).unwrap_err().to_string();
    assert!(
        why.contains("chmod 700") && why.contains(folder.to_str().unwrap()),
        "{why}"
    );
    let missing = temporary.path().join("missing");
    let why = host.listen_in(&missing).unwrap_err().to_string();
    assert!(why.contains(missing.to_str().unwrap()), "{why}");
}

#[test]
fn a_listening_process_whose_folder_does_not_serve_is_named() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path().join("run");
    private_folder(&folder);
    let secret = Secret::random();
    let [host, dialling] = [Host::start(&secret), Host::start(&secret)];
    host.listen_in(&folder).unwrap();
    let open = below(&folder).remove(0);
    fs::set_permissions(&open, Permissions::from_mode(0o750)).unwrap();
    let plain = temporary.path().join("plain");
    File::create(&plain).unwrap();
    for (tag, path, said) in [(1, &open, "chmod 700"), (2, &plain, "not a directory")] {
        dialling.dial(&[Address::from(format!("file:{}", path.display()))], tag);
        let why = dialling.events.unreachable(tag).to_string();
        assert!(
            why.contains(path.to_str().unwrap()) && why.contains(said),
            "{why}"
        );
    }
    fs::set_permissions(&open, Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn a_deleted_segment_is_named() {
    for newest in [true, false] {
        let meeting = Meeting::new();
        let (outlet, _inlet) = meeting.pair.conduit(1);
        let stall = meeting.pair.stall();
        for step in 0..4 {
            outlet.send(&pattern(step, 1 << 20));
        }
        let there = meeting.there();
        std::thread::sleep(Duration::from_millis(300));
        let mut segments = below(&there);
        segments.sort();
        assert!(segments.len() > 1, "the first is in use");
        let deleted = segments.remove(if newest { segments.len() - 1 } else { 1 });
        fs::remove_file(&deleted).unwrap();
        drop(stall);
        let why = lost(&meeting.pair.right).to_string();
        let name = deleted.to_str().unwrap();
        assert!(why.contains(name) && why.contains("is missing"), "{why}");
    }
}

#[test]
fn a_deleted_folder_is_told_as_that() {
    let meeting = Meeting::new();
    let (outlet, inlet) = meeting.pair.conduit(1);
    outlet.send(b"all is well");
    assert_eq!(inlet.receive().body[..], *b"all is well");
    while fs::remove_dir_all(&meeting.folder)
        .is_err_and(|why| why.kind() == ErrorKind::DirectoryNotEmpty)
    {}
    for end in [&meeting.pair.left, &meeting.pair.right] {
        let why = lost(end).to_string();
        assert!(
            why.contains(meeting.folder.to_str().unwrap()) && why.contains("has deleted it"),
            "{why}"
        );
    }
}

#[test]
fn files_are_for_their_owner_alone() {
    let meeting = Meeting::new();
    for path in below(&meeting.folder) {
        let mode = fs::symlink_metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{}", path.display());
    }
}

#[test]
fn nothing_is_left_behind_in_good_order() {
    for dialling_goes_first in [true, false] {
        let meeting = Meeting::new();
        let (outlet, inlet) = meeting.pair.conduit(1);
        outlet.send(&pattern(0, 5 << 20));
        assert_eq!(inlet.receive().body[..], pattern(0, 5 << 20));
        let Pair { left, right, .. } = meeting.pair;
        let (first, second) = if dialling_goes_first {
            (left, right)
        } else {
            (right, left)
        };
        drop(first);
        assert_eq!(lost(&second), LinkError::Closed);
        drop(second);
        assert_eq!(below(&meeting.folder), Vec::<PathBuf>::new());
    }
}

/// The receiver of a message stands still, and goes on `late` after the end of the sender.
fn all_arrives_after_the_end_of_the_sender(bytes: usize, late: Duration) {
    let meeting = Meeting::new();
    let (outlet, inlet) = meeting.pair.conduit(1);
    let stall = meeting.pair.stall();
    outlet.send(&pattern(0, bytes));
    let Pair { left, right, .. } = meeting.pair;
    drop(left);
    std::thread::sleep(late);
    drop(stall);
    assert_eq!(inlet.receive().body[..], pattern(0, bytes));
    assert_eq!(lost(&right), LinkError::Closed);
    drop(right);
    assert_eq!(below(&meeting.folder), Vec::<PathBuf>::new());
}

#[test]
fn the_last_messages_of_a_process_that_has_ended_arrive() {
    all_arrives_after_the_end_of_the_sender(100_000, Duration::ZERO);
}

#[test]
fn a_receiver_that_is_slower_than_the_end_of_the_sender_gets_all() {
    // More than the sockets of the receiver hold. The receiver's side looks for what the other end
    // has done at least once a second.
    all_arrives_after_the_end_of_the_sender(6_000_000, Duration::from_millis(2500));
}

/// Starts another process, which plays a part. Returns the process, and this end of the link to the
/// process.
fn start(part: &str, folder: &Path) -> (Child, PairEnd) {
    start_part(part, |host| host.listen_in(folder).unwrap())
}

/// The code of the other process, which is not a test.
#[test]
#[ignore = "started by the other tests"]
fn part() {
    let (part, side, mut lines) = play_part();
    match part.as_str() {
        "send" => {
            let outlet = side.outlet(1, InboxOptions::default());
            for step in 0.. {
                outlet.send(&pattern(step, 10_000 * (step as usize % 7)));
            }
        }
        "run short" => run_short(&side, &mut lines),
        _ => drop(lines.next()),
    }
}

/// Uses up all but `few` descriptors of this process, until the returned files are closed.
fn use_up(few: usize) -> Vec<File> {
    let limit = Rlimit {
        current: Some(200),
        maximum: getrlimit(Resource::Nofile).maximum,
    };
    setrlimit(Resource::Nofile, limit).unwrap();
    let mut files: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    files.truncate(files.len() - few);
    files
}

/// The part of a process that has no descriptors left for a while. The lines of `orders` say when.
fn run_short(side: &PairEnd, orders: &mut impl Iterator<Item = String>) {
    let outlet = side.outlet(1, InboxOptions::default());
    let (host, _) = side.tcp.as_ref().unwrap();
    let folder = orders.next().unwrap();
    let address = host.listen_in(Path::new(&folder)).unwrap().to_string();
    outlet.send(address.as_bytes());

    orders.next();
    let used = use_up(0);
    outlet.send(b"without descriptors");
    std::thread::sleep(Duration::from_millis(500));
    drop(used);

    orders.next();
    // Two descriptors are enough to notice a connection, and too few to accept it.
    let used = use_up(2);
    outlet.send(b"with two");
    orders.next();
    drop(used);
    orders.next();
}

#[test]
fn a_process_without_descriptors_keeps_its_links_and_takes_new_ones_later() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path().join("run");
    private_folder(&folder);
    let secret = Secret::random();
    let (mut child, end) = start_part_of(&secret, "run short", |host| {
        host.listen_in(&folder).unwrap()
    });
    let mut orders = child.stdin.take().unwrap();
    let inlet = end.inlet(1, InboxOptions::default());
    writeln!(orders, "{}", folder.display()).unwrap();
    let address = String::from_utf8(inlet.receive().body.to_vec()).unwrap();

    writeln!(orders, "use all up").unwrap();
    assert_eq!(inlet.receive().body[..], *b"without descriptors");

    writeln!(orders, "keep two").unwrap();
    assert_eq!(inlet.receive().body[..], *b"with two");
    let host = Host::start(&secret);
    host.dial(&[Address::from(address.clone())], 1);
    let process = Path::new(address.strip_prefix("file:").unwrap());
    let connection = until_some(|| {
        let paths = fs::read_dir(process).unwrap().flatten();
        let mut paths = paths.map(|entry| entry.path());
        paths.find(|path| path.is_dir() && path.extension().is_none())
    });
    std::thread::sleep(Duration::from_millis(500));
    assert!(connection.exists(), "it waits to be taken");
    writeln!(orders, "free them").unwrap();
    host.events.opened();
    drop(host);
    writeln!(orders, "end").unwrap();
    child.wait().unwrap();
}

fn until_some<T>(mut look: impl FnMut() -> Option<T>) -> T {
    loop {
        if let Some(found) = look() {
            return found;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_killed_process_is_noticed_and_its_files_are_removed() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path().join("run");
    private_folder(&folder);
    for received in [0, 1, 50] {
        let (mut child, end) = start("send", &folder);
        let inlet = end.inlet(1, InboxOptions::default());
        for step in 0..received {
            assert_eq!(
                inlet.receive().body[..],
                pattern(step, 10_000 * (step as usize % 7))
            );
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(lost(&end), LinkError::Closed);
        // Messages that had arrived whole can be received still.
        for step in received.. {
            let Some(message) = inlet.inbox.take() else {
                break;
            };
            assert_eq!(
                message.body[..],
                pattern(step, 10_000 * (step as usize % 7))
            );
        }
        drop(end);
        assert_eq!(below(&folder), Vec::<PathBuf>::new());
    }
}

/// A file system of its own, where this process may mount one.
struct Mounted(tempfile::TempDir);

impl Mounted {
    fn new(options: &str) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let words = ["-t", "tmpfs", "-o", options, "none"];
        let mounted = Command::new("mount")
            .args(words)
            .arg(folder.path())
            .output();
        let is_mounted = mounted.is_ok_and(|done| done.status.success());
        is_mounted.then(|| Mounted(folder))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.path()).status();
    }
}

#[test]
fn a_full_folder_is_named() {
    let Some(small) = Mounted::new("size=1m,mode=0700") else {
        return eprintln!("not checked: this user may not mount");
    };
    let pair = Pair::file_in(small.path());
    let (outlet, inlet) = pair.conduit(1);
    outlet.send(&pattern(0, 100_000));
    assert_eq!(inlet.receive().body[..], pattern(0, 100_000));
    // The sender waits for a folder that is full for a moment.
    let ballast = small.path().join("ballast");
    let file = File::create(&ballast).unwrap();
    let there = segments_from_left(small.path());
    let fill = || {
        // The segment of the last message takes room until the receiving end has removed the file.
        while !below(&there).is_empty() {
            std::thread::yield_now();
        }
        while (&file).write_all(&[1; 4096]).is_ok() {}
    };
    fill();
    std::thread::scope(|scope| {
        scope.spawn(|| outlet.send(&pattern(1, 100_000)));
        std::thread::sleep(Duration::from_secs(1));
        file.set_len(0).unwrap();
        assert_eq!(inlet.receive().body[..], pattern(1, 100_000));
    });
    fill();
    outlet.send(&pattern(2, 100_000));
    let why = lost(&pair.left).to_string();
    assert!(
        why.contains(small.path().to_str().unwrap()) && why.contains("No space left"),
        "{why}"
    );
}

#[test]
fn a_read_only_folder_is_named() {
    let Some(fixed) = Mounted::new("mode=0700") else {
        return eprintln!("not checked: this user may not mount");
    };
    // The operating system lets no file system become read-only while a file is open for writing,
    // and a listening process has a file open for writing.
    let listener = fixed.path().join("0".repeat(32));
    private_folder(&listener);
    let remount = Command::new("mount")
        .args(["-o", "remount,ro"])
        .arg(fixed.path())
        .status();
    assert!(remount.unwrap().success());
    let host = Host::start(&Secret::random());
    let address = Address::from(format!("file:{}", listener.display()));
    host.dial_within(
        &[address],
        7,
        LinkSettings::default(),
        Duration::from_secs(5),
    );
    for why in [
        host.listen_in(fixed.path()).unwrap_err().to_string(),
        host.events.unreachable(7).to_string(),
    ] {
        let names = why.contains(fixed.path().to_str().unwrap());
        assert!(names && why.contains("Read-only"), "{why}");
    }
}

#[test]
fn a_receiver_that_does_not_read_costs_a_bounded_number_of_files() {
    let meeting = Meeting::new();
    let (outlet, inlet) = meeting.pair.conduit(1);
    let stall = meeting.pair.stall();
    for step in 0..40 {
        outlet.send(&pattern(step, 1 << 20));
    }
    let there = meeting.there();
    std::thread::sleep(Duration::from_millis(300));
    let unread = below(&there).len();
    assert!((2..=17).contains(&unread), "{unread} files");
    drop(stall);
    for step in 0..40 {
        assert_eq!(inlet.receive().body[..], pattern(step, 1 << 20));
    }
}
