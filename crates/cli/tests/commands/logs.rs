//! `titin logs`.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::titin;

/// A run directory with the instances `a` and `b[1]`.
fn run() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (instance, file, text) in [
        ("a", "stdout.txt", "one\ntwo"),
        ("a", "stderr.txt", "oh\n"),
        ("b[1]", "stdout.txt", "three\n"),
    ] {
        let instance = folder.path().join("instances").join(instance);
        fs::create_dir_all(&instance).unwrap();
        fs::write(instance.join(file), text).unwrap();
    }
    fs::write(folder.path().join("titin_manager.log"), "the run\n").unwrap();
    folder
}

#[test]
fn the_output_of_instances_and_the_log_are_printed() {
    let run = run();
    let done = titin(run.path(), &["logs", "."]);
    assert_eq!((done.code, done.out.as_str()), (Some(0), "the run\n"));
    let done = titin(run.path(), &["logs", ".", "a"]);
    assert_eq!((done.out.as_str(), done.err.as_str()), ("one\ntwo", "oh\n"));
    let done = titin(run.path(), &["logs", ".", "b[1]", "a"]);
    assert_eq!(done.out, "b[1] | three\na | one\na | two");
    assert_eq!(done.err, "a | oh\n");
}

#[test]
fn what_is_not_there_is_named() {
    let run = run();
    let done = titin(run.path(), &["logs", ".", "b[2]"]);
    assert_eq!(done.code, Some(2));
    done.assert_err("the run has no instance b[2]; did you mean b[1]?");
    let done = titin(run.path(), &["logs", "instances", "a"]);
    done.assert_err("instances is no run directory");
}

#[test]
fn lines_are_followed_until_the_run_is_over() {
    let run = run();
    let connection = run.path().join("connection.json");
    fs::write(&connection, "{}").unwrap();
    let mut follow = Command::new(env!("CARGO_BIN_EXE_titin"))
        .args(["logs", "-f", ".", "a"])
        .current_dir(run.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(follow.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "one");
    append(
        &run.path().join("instances/a/stdout.txt"),
        " and a half\nthree",
    );
    assert_eq!(lines.next().unwrap().unwrap(), "two and a half");
    std::thread::sleep(Duration::from_millis(300));
    fs::remove_file(connection).unwrap();
    assert_eq!(lines.next().unwrap().unwrap(), "three");
    assert!(lines.next().is_none() && follow.wait().unwrap().success());
}

fn append(path: &Path, text: &str) {
    let mut file = fs::OpenOptions::new().append(true).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}
