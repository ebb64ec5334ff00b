//! The last printed lines of an instance, without the usual texts of launchers and backtraces.

use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use super::MOST_LISTED;
use super::page::clean;

/// The most lines from the output.
pub(super) const TAIL: usize = 12;

/// The most lines from standard output if there are lines from standard error too.
pub(super) const TAIL_OF_SECOND: usize = 6;

/// Bytes to read from the end of a file.
const TAIL_BYTES: u64 = 16 << 10;

/// The last lines of standard error and standard output, with their files: a program may print an
/// error to either file. Texts of launchers, and backtraces without names, are shown only if there
/// is nothing else.
pub(super) fn last_outputs(folder: &Path) -> Vec<(PathBuf, Vec<String>)> {
    let files = ["stderr.txt", "stdout.txt"].map(|file| folder.join(file));
    let all = files.map(|file| (tail(&file), file));
    let own = all
        .iter()
        .map(|(lines, file)| (file.clone(), without_noise(lines)));
    let mut shown: Vec<_> = own.filter(|(_, lines)| !lines.is_empty()).collect();
    if shown.is_empty() {
        let mut all = all.into_iter().map(|(lines, file)| (file, lines));
        shown.extend(all.find(|(_, lines)| !lines.is_empty()));
    }
    for (number, (_, lines)) in shown.iter_mut().enumerate() {
        let most = if number == 0 { TAIL } else { TAIL_OF_SECOND };
        lines.drain(..lines.len().saturating_sub(most));
    }
    shown
}

/// The last line of a file that is not blank.
pub(crate) fn last_line(file: &Path) -> Option<String> {
    tail(file).pop()
}

/// The last lines of the commands that start agents, for hosts of these names. A file is missing where
/// the user starts the agent.
pub(super) fn last_outputs_of_agents<'a>(
    folder: &Path,
    names: impl Iterator<Item = &'a str>,
) -> Vec<(PathBuf, Vec<String>)> {
    let files = names.map(|name| folder.join(format!("{name}.txt")));
    let printed = files.map(|file| (tail(&file), file));
    let printed = printed.filter(|(lines, _)| !lines.is_empty());
    let last = |(mut lines, file): (Vec<String>, PathBuf)| {
        lines.drain(..lines.len().saturating_sub(TAIL_OF_SECOND));
        (file, lines)
    };
    printed.map(last).take(MOST_LISTED).collect()
}

/// The last lines of a file, without blank lines; none if the file is unreadable.
pub(super) fn tail(file: &Path) -> Vec<String> {
    let bytes = last_bytes(file).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let lines = text.lines().map(clean);
    lines.filter(|line| !line.trim().is_empty()).collect()
}

fn last_bytes(file: &Path) -> io::Result<Vec<u8>> {
    let mut file = std::fs::File::open(file)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
    let mut bytes = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn without_noise(lines: &[String]) -> Vec<String> {
    let own = without_launcher(lines).into_iter();
    own.filter(|line| !is_backtrace(line)).cloned().collect()
}

/// Whether a line belongs to a backtrace without places in the program's source.
fn is_backtrace(line: &str) -> bool {
    const AROUND: [&str; 3] = [
        "Error termination. Backtrace:",
        "*** Process received signal ***",
        "*** End of error message ***",
    ];
    let line = line.trim();
    is_frame_of_gfortran(line)
        || is_frame_of_open_mpi(line)
        || AROUND.iter().any(|around| line.ends_with(around))
}

/// `#3  0x7f2b in ???`
fn is_frame_of_gfortran(line: &str) -> bool {
    line.strip_prefix('#').is_some_and(|rest| {
        rest.starts_with(|c: char| c.is_ascii_digit())
            && rest.contains(" 0x")
            && rest.ends_with("in ???")
    })
}

/// `[node:12] [ 3] /lib/libc.so.6(+0x3c050)[0x7f2b]`
fn is_frame_of_open_mpi(line: &str) -> bool {
    let second = line.split_once("] [");
    let number = second.and_then(|(_, rest)| rest.split_once(']'));
    line.starts_with('[')
        && number.is_some_and(|(number, _)| number.trim().parse::<u32>().is_ok())
        && line.ends_with(']')
        && line.contains("[0x")
}

/// Texts of launchers of Open MPI and MPICH about every failed program, in a frame.
const FRAMED_BY_LAUNCHERS: [&str; 4] = [
    "MPI_ABORT was invoked on",
    "Primary job  terminated normally",
    "detected that one or more processes exited with non-zero status",
    "BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES",
];

/// Lines in such a frame about the failure at hand: the rank, the exit code, the signal.
const OF_THIS_FAILURE: [&str; 7] = [
    "MPI_ABORT was invoked on",
    "errorcode",
    "Process name",
    "Exit code",
    "RUNNING AT",
    "EXIT CODE",
    "SIGNAL",
];

/// Lines of launchers behind such a frame.
const BEHIND_FRAMES: [&str; 2] = [
    "This typically refers to a problem with your application",
    "Please see the FAQ page for debugging suggestions",
];

/// The lines without the launchers' texts about every failed program. A frame begins and ends with
/// a line of dashes or equals signs. The lines of a frame about the failure at hand stay.
pub(super) fn without_launcher(lines: &[String]) -> Vec<&String> {
    let mut own = Vec::new();
    let mut rest = lines;
    while let [line, after @ ..] = rest {
        match frame_of_launcher(line, after) {
            Some((inside, behind)) => {
                own.extend(inside.iter().filter(|line| has_any(line, &OF_THIS_FAILURE)));
                rest = behind;
            }
            None => {
                own.extend(Some(line).filter(|line| !has_any(line, &BEHIND_FRAMES)));
                rest = after;
            }
        }
    }
    own
}

/// The lines inside and behind a launcher's frame, if `line` begins such a frame.
fn frame_of_launcher<'l>(line: &str, after: &'l [String]) -> Option<(&'l [String], &'l [String])> {
    if !is_edge(line) {
        return None;
    }
    let length = after.iter().position(|line| is_edge(line))?;
    let (inside, behind) = after.split_at(length);
    let is_launchers = inside
        .iter()
        .any(|line| has_any(line, &FRAMED_BY_LAUNCHERS));
    is_launchers.then_some((inside, &behind[1..]))
}

/// Whether a line is the upper or the lower edge of a frame.
fn is_edge(line: &str) -> bool {
    let bytes = line.as_bytes();
    bytes.len() > 20 && b"-=".contains(&bytes[0]) && bytes.iter().all(|c| *c == bytes[0])
}

fn has_any(line: &str, texts: &[&str]) -> bool {
    texts.iter().any(|text| line.contains(text))
}
