//! Another process of a test, which plays a part: the test's own program, started for its ignored
//! test `part`.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

use titin_wire::{Address, Secret};

use crate::{Host, PairEnd};

/// The name of the part, for the process that plays the part.
const PART: &str = "TITIN_PART";

/// Starts a process that plays a part. Returns the process, and the caller's end of the link to the
/// process. `listen` has the caller's host listen.
///
/// # Panics
/// If the process cannot be started.
pub fn start_part(part: &str, listen: impl FnOnce(&Host) -> Address) -> (Child, PairEnd) {
    start_part_of(&Secret::random(), part, listen)
}

/// As [`start_part`], in the run with this secret.
///
/// # Panics
/// If the process cannot be started.
pub fn start_part_of(
    secret: &Secret,
    part: &str,
    listen: impl FnOnce(&Host) -> Address,
) -> (Child, PairEnd) {
    let host = Host::start(secret);
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "part", "--ignored", "--nocapture"])
        .env(PART, part)
        // The process may be killed, so what the process makes must go with the caller's files.
        .env("TMPDIR", host.directory())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let address = listen(&host);
    let orders = child.stdin.as_mut().unwrap();
    writeln!(orders, "{}\n{address}", secret.reveal()).unwrap();
    (child, PairEnd::from(host))
}

/// In the started process: the name of the part, this end of the link, and the further lines that
/// the caller of [`start_part`] writes.
///
/// # Panics
/// If the process was not started by [`start_part`].
pub fn play_part() -> (String, PairEnd, impl Iterator<Item = String>) {
    let mut lines = BufReader::new(std::io::stdin()).lines().map(Result::unwrap);
    let secret: Secret = lines.next().unwrap().parse().unwrap();
    let address = Address::from(lines.next().unwrap());
    let host = Host::start(&secret);
    host.dial(&[address], 0);
    (std::env::var(PART).unwrap(), PairEnd::from(host), lines)
}
