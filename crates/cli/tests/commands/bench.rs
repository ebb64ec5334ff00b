use std::io::{BufRead as _, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use titin_model::Medium;

use crate::titin;

/// A child process, which is killed when the test ends.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// `titin bench`, which makes its temporary files in this folder.
fn bench(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_titin"));
    command
        .arg("bench")
        .args(arguments)
        .current_dir(folder)
        .env("TMPDIR", folder);
    command
        .env_remove("TITIN_SECRET")
        .env_remove("CLICOLOR_FORCE");
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Starts a listening `titin bench`. Returns the process, the address to connect to, and the
/// secret.
fn listening(folder: &Path, arguments: &[&str]) -> (Running, String, String) {
    listening_for("0.05", folder, arguments)
}

fn listening_for(seconds: &str, folder: &Path, arguments: &[&str]) -> (Running, String, String) {
    let command = bench(
        folder,
        &[&["--listen", "127.0.0.1", "--seconds", seconds], arguments].concat(),
    )
    .spawn();
    let mut running = Running(command.expect("titin starts"));
    let mut told = BufReader::new(running.0.stderr.take().expect("it is piped"));
    let (mut address, mut secret) = (None, None);
    for line in told.by_ref().lines() {
        let line = line.expect("text");
        if let Some((_, found)) = line.split_once("TITIN_SECRET=") {
            secret = Some(found.trim().to_owned());
        }
        if let Some((_, found)) = line.split_once("--connect ") {
            address = Some(found.trim().to_owned());
            break;
        }
    }
    running.0.stderr = Some(told.into_inner());
    (
        running,
        address.expect("an address is printed"),
        secret.expect("a secret is printed"),
    )
}

/// Runs the second host of a measurement, until the first host has all results.
fn connect(folder: &Path, address: &str, secret: &str) {
    let mut second = bench(folder, &["--connect", address]);
    let second = second.env("TITIN_SECRET", secret).output().unwrap();
    let text = String::from_utf8_lossy(&second.stderr);
    assert!(second.status.success(), "{text}");
}

/// Returns the text that a process writes until its end.
fn rest_of(stream: Option<impl Read>) -> String {
    let mut text = String::new();
    stream.unwrap().read_to_string(&mut text).unwrap();
    text
}

fn is_empty(folder: &Path) -> bool {
    std::fs::read_dir(folder).unwrap().next().is_none()
}

#[test]
fn every_medium_is_measured_and_nothing_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let done = bench(folder.path(), &["--seconds", "0.05", "--json"])
        .output()
        .unwrap();
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    let found: Value = serde_json::from_slice(&done.stdout).unwrap();
    let media: Vec<&str> = found["media"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["medium"].as_str().unwrap())
        .collect();
    // Relays are between sites.
    let here = Medium::ALL
        .into_iter()
        .filter(|medium| *medium != Medium::Relay);
    assert_eq!(media, here.map(Medium::key).collect::<Vec<_>>());
    for medium in found["media"].as_array().unwrap() {
        let sizes = medium["sizes"].as_array().unwrap();
        assert_eq!(sizes[0]["bytes"], 0, "{medium}");
        assert!(sizes.len() > 3, "however slow the machine is: {medium}");
        assert!(
            sizes
                .windows(2)
                .all(|pair| pair[0]["bytes"].as_u64() < pair[1]["bytes"].as_u64()),
            "{medium}"
        );
        assert!(
            sizes
                .iter()
                .all(|size| size["seconds"].as_f64() > Some(0.0)),
            "{medium}"
        );
        assert!(
            medium["latency"].as_f64() > Some(0.0) && medium["bandwidth"].as_f64() > Some(0.0),
            "{medium}"
        );
    }
    assert!(
        is_empty(folder.path()),
        "it leaves nothing where temporary files go"
    );
}

#[test]
fn two_hosts_are_measured_with_the_secret_that_is_printed() {
    let folder = tempfile::tempdir().unwrap();
    let (mut first, address, secret) = listening(folder.path(), &["--plot", "speed.svg"]);
    connect(folder.path(), &address, &secret);
    let table = rest_of(first.0.stdout.take());
    assert!(first.0.wait().unwrap().success(), "{table}");
    let heading = table.lines().nth(2).unwrap_or_default();
    assert_eq!(
        heading.split_whitespace().collect::<Vec<_>>(),
        ["message", "tcp", "±", "per", "second"],
        "{table}"
    );
    assert!(
        table.contains("\n0 B ") && table.contains("\ntcp  "),
        "{table}"
    );
    let picture = std::fs::read_to_string(folder.path().join("speed.svg")).unwrap();
    assert!(picture.contains("<path class=\"tcp\""), "{picture}");
}

#[test]
fn the_wait_for_the_other_host_is_no_message() {
    let folder = tempfile::tempdir().unwrap();
    let (mut first, address, secret) = listening_for("1", folder.path(), &["--json"]);
    // A wait of 1 s, spread over the first fifty messages there and back, would be 10 ms for each
    // message.
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(1) {
        assert!(first.0.try_wait().unwrap().is_none());
        std::thread::yield_now();
    }
    connect(folder.path(), &address, &secret);
    let found = rest_of(first.0.stdout.take());
    let found: Value = serde_json::from_str(&found).unwrap();
    let none = &found["media"][0]["sizes"][0];
    assert_eq!(none["bytes"], 0, "{found}");
    assert!(
        none["seconds"].as_f64() < Some(0.005),
        "the wait was taken for the time of fifty: {found}"
    );
}

#[test]
fn the_report_of_another_host_that_was_lost_names_no_folder_that_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let (mut first, address, secret) = listening_for("600", folder.path(), &[]);
    let second = bench(folder.path(), &["--connect", &address])
        .env("TITIN_SECRET", secret)
        .spawn()
        .unwrap();
    let mut second = Running(second);
    let log = || {
        let run = std::fs::read_dir(folder.path())
            .unwrap()
            .next()
            .unwrap()
            .unwrap()
            .path()
            .join("tcp/run");
        std::fs::read_to_string(run.join("titin_manager.log")).unwrap_or_default()
    };
    while !log().contains("there") || !log().contains("joined") {
        assert!(second.0.try_wait().unwrap().is_none());
        std::thread::yield_now();
    }
    second.0.kill().unwrap();
    let told = rest_of(first.0.stdout.take());
    let said = rest_of(first.0.stderr.take());
    assert_eq!(first.0.wait().unwrap().code(), Some(2), "{told}{said}");
    assert!(said.contains("tcp cannot be measured: there "), "{said}");
    assert!(
        !said.contains("titin-bench-") && !said.contains("Files:"),
        "{said}"
    );
}

#[test]
fn who_does_not_know_the_secret_is_not_let_in() {
    let folder = tempfile::tempdir().unwrap();
    let (mut first, address, secret) = listening(folder.path(), &[]);
    let wrong = secret
        .chars()
        .map(|c| if c == '0' { '1' } else { '0' })
        .collect::<String>();
    for secret in [None, Some(wrong)] {
        let mut command = bench(folder.path(), &["--connect", &address]);
        if let Some(secret) = &secret {
            command.env("TITIN_SECRET", secret);
        }
        let done = command.output().unwrap();
        let text = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(2), "{text}");
        assert!(text.contains("TITIN_SECRET is not"), "{text}");
        assert!(!text.contains("MANAGER"), "{text}");
    }
    for (address, secret, wanted) in [
        (
            &*address,
            "",
            "TITIN_SECRET: malformed secret: expected 64 hexadecimal digits",
        ),
        (
            "127.0.0.1",
            &*secret,
            "--connect 127.0.0.1 is no HOST:PORT: paste both lines",
        ),
        (
            "127.0.0.1:1",
            &*secret,
            "refused (os error 111); is `titin bench --listen` still waiting there",
        ),
    ] {
        let done = bench(folder.path(), &["--connect", address])
            .env("TITIN_SECRET", secret)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(2), "{text}");
        assert!(text.contains(wanted) && !text.contains("MANAGER"), "{text}");
    }
    // The first host goes on waiting until the user interrupts.
    assert!(first.0.try_wait().unwrap().is_none());
    let pid = rustix::process::Pid::from_child(&first.0);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(first.0.wait().unwrap().code(), Some(130));
    assert!(
        is_empty(folder.path()),
        "it leaves nothing where temporary files go"
    );
}

#[test]
fn an_address_that_cannot_be_connected_to_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for address in ["0.0.0.0", "no.such.host.invalid"] {
        let done = titin(folder.path(), &["bench", "--listen", address]);
        assert_eq!(done.code, Some(2), "{}", done.err);
        assert!(
            done.err.contains(address) && done.err.contains("give a name or an address"),
            "{}",
            done.err
        );
    }
    for seconds in ["0", "-1", "nan"] {
        let done = titin(folder.path(), &["bench", &format!("--seconds={seconds}")]);
        assert_eq!(done.code, Some(2), "{}", done.err);
        done.assert_err("--seconds");
    }
}

#[test]
fn a_place_for_files_that_is_not_there_is_named_once() {
    let folder = tempfile::tempdir().unwrap();
    let done = bench(folder.path(), &["--seconds", "0.05"])
        .env("TMPDIR", "/no/such/place")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(2), "{text}");
    assert!(
        text.matches("/no/such/place").count() == 1 && text.contains("set TMPDIR"),
        "{text}"
    );
}

#[test]
fn a_medium_that_has_been_measured_answers_to_no_signals_any_more() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running(
        bench(folder.path(), &["--seconds", "0.5"])
            .spawn()
            .expect("titin starts"),
    );
    let tasks = format!("/proc/{}/task", running.0.id());
    let scratch = folder
        .path()
        .join(format!("titin-bench-{}-0", running.0.id()));
    while !scratch.join("tcp/run/connection.json").exists() {
        std::thread::yield_now();
    }
    let names = std::fs::read_dir(tasks)
        .unwrap()
        .map(|task| task.unwrap().path().join("comm"));
    let names: Vec<String> = names
        .filter_map(|name| std::fs::read_to_string(name).ok())
        .collect();
    let listening = names.iter().filter(|name| *name == "signals\n").count();
    assert!(listening <= 1, "{names:?}");
}

#[test]
fn one_that_is_killed_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (mut running, ..) = listening(folder.path(), &[]);
    assert!(!is_empty(folder.path()));
    running.0.kill().unwrap();
    running.0.wait().unwrap();
    // The guard of the run removes the files.
    while !is_empty(folder.path()) {
        std::thread::yield_now();
    }
}

#[test]
fn what_one_has_left_goes_with_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let left = folder.path().join("titin-bench-1-0");
    std::fs::create_dir(&left).unwrap();
    std::fs::write(left.join("lock"), "").unwrap();
    let (mut running, ..) = listening(folder.path(), &[]);
    assert!(!left.exists());
    let done = bench(folder.path(), &["--seconds", "0.05"])
        .output()
        .unwrap();
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    assert_eq!(
        std::fs::read_dir(folder.path()).unwrap().count(),
        1,
        "what is in use stays"
    );
    let pid = rustix::process::Pid::from_child(&running.0);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    running.0.wait().unwrap();
    assert!(is_empty(folder.path()));
}

#[test]
fn a_run_that_cannot_be_made_is_an_error() {
    use std::os::unix::ffi::OsStrExt as _;
    let folder = tempfile::tempdir().unwrap();
    // The path of the program is not text, so no description can name the program of the other
    // side.
    let command = folder
        .path()
        .join(std::ffi::OsStr::from_bytes(b"titin-\xff"));
    std::fs::copy(env!("CARGO_BIN_EXE_titin"), &command).unwrap();
    let done = Command::new(&command)
        .args(["bench", "--seconds", "0.05"])
        .current_dir(folder.path())
        .output();
    let done = done.unwrap();
    let text = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(2), "{text}");
    assert!(
        text.contains("shm cannot be measured") && text.contains("tcp cannot be measured"),
        "{text}"
    );
    assert!(!done.stdout.is_empty(), "what could be measured is shown");
}
