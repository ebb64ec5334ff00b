//! The processes below this one, and ending them all.
//!
//! A subreaper inherits the orphans of its descendants, so whatever a program started, through a shell, `mpirun` or
//! `setsid`, is found here by its parents, however it changed its session or group.

use std::fmt;
use std::fs;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, wait};

use crate::event::Exit;

/// A process below this one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Descendant {
    /// Its number.
    pub pid: u32,
    /// The name of its program, at most 15 letters of it.
    pub name: String,
    /// Whether somebody has stopped it.
    pub stopped: bool,
}

impl fmt::Display for Descendant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.pid)
    }
}

/// All living processes below `root`, in no order; those that only wait to be reaped are left out.
pub fn descendants(root: u32) -> Vec<Descendant> {
    let mut children: Vec<(u32, Descendant)> = Vec::new();
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    for entry in entries.flatten() {
        let pid = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok());
        if let Some(pid) = pid
            && let Some(Stat { parent, name, stopped, .. }) = stat(pid)
        {
            children.push((parent, Descendant { pid, name, stopped }));
        }
    }
    let mut found = Vec::new();
    let mut parents = vec![root];
    while let Some(parent) = parents.pop() {
        for (_, child) in children.extract_if(.., |(of, _)| *of == parent) {
            parents.push(child.pid);
            found.push(child);
        }
    }
    found
}

/// What the system says of a process.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    /// The process that has started it, or has inherited it.
    pub(crate) parent: u32,
    /// The name of its program, at most 15 bytes of it.
    pub(crate) name: String,
    /// When it began, in ticks of the system's clock.
    pub(crate) begun: u64,
    /// Whether somebody has stopped it.
    pub(crate) stopped: bool,
}

/// What the system says of a process; `None` if it has ended.
pub(crate) fn stat(pid: u32) -> Option<Stat> {
    // The name is cut at a byte, not at a letter.
    let line = fs::read(format!("/proc/{pid}/stat")).ok()?;
    parse_stat(&String::from_utf8_lossy(&line))
}

fn parse_stat(line: &str) -> Option<Stat> {
    // The name may hold anything, parentheses too.
    let (head, tail) = line.rsplit_once(')')?;
    let (_, name) = head.split_once('(')?;
    let mut fields = tail.split_ascii_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X") {
        return None;
    }
    let parent = fields.next()?.parse().ok()?;
    let begun = fields.nth(17)?.parse().ok()?;
    Some(Stat { parent, name: name.to_owned(), begun, stopped: matches!(state, "T" | "t") })
}

/// Sends a signal to a process; that it is gone already is fine.
pub fn signal(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, signal);
    }
}

/// A child that has ended since the last call, with how it did.
pub fn reap() -> Option<(u32, Exit)> {
    /// The bit of a wait status that says so.
    const CORE: i32 = 0x80;
    let (pid, status) = wait(WaitOptions::NOHANG).ok()??;
    let exit = match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(number)) => Exit::Signal(number, status.as_raw() & CORE != 0),
        (None, None) => return reap(),
    };
    Some((u32::try_from(pid.as_raw_nonzero().get()).unwrap_or(0), exit))
}

/// Ends every process below this one: SIGTERM, and after the grace period SIGKILL, until none is left.
///
/// `pause` waits for children to end, a few milliseconds at most; `reaped` is told of each that has. Returns what was
/// there in the beginning, and what could not be ended.
pub fn end_descendants(
    grace: Duration,
    mut pause: impl FnMut(Duration),
    mut reaped: impl FnMut(u32, Exit),
) -> (Vec<Descendant>, Vec<Descendant>) {
    /// A process that survives SIGKILL this long hangs in the kernel.
    const HOPELESS: Duration = Duration::from_secs(15);
    const PAUSE: Duration = Duration::from_millis(10);
    let root = getpid().as_raw_nonzero().get().unsigned_abs();
    let begun = Instant::now();
    let mut first = None;
    let mut asked = Vec::new();
    loop {
        while let Some((pid, exit)) = reap() {
            reaped(pid, exit);
        }
        let left = descendants(root);
        if left.is_empty() || begun.elapsed() > grace + HOPELESS {
            // Some may have ended between the two looks.
            while let Some((pid, exit)) = reap() {
                reaped(pid, exit);
            }
            return (first.unwrap_or_default(), left);
        }
        let kill = begun.elapsed() >= grace;
        for process in &left {
            if kill {
                signal(process.pid, Signal::KILL);
            } else if !asked.contains(&process.pid) {
                asked.push(process.pid);
                signal(process.pid, Signal::TERM);
                // One that is stopped would not hear it.
                signal(process.pid, Signal::CONT);
            }
        }
        first.get_or_insert(left);
        pause(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_line_of_stat_is_read_whatever_the_name() {
        let rest = "3 7 7 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 12345 0";
        let found = |stopped| Stat { parent: 3, name: "a) b".to_owned(), begun: 12345, stopped };
        assert_eq!(parse_stat(&format!("7 (a) b) S {rest}")), Some(found(false)));
        assert_eq!(parse_stat(&format!("7 (a) b) T {rest}")), Some(found(true)));
        assert_eq!(parse_stat(&format!("7 (a) Z {rest}")), None);
        assert_eq!(parse_stat("nonsense"), None);
    }

    #[test]
    fn a_name_that_is_cut_within_a_letter_hides_nobody() {
        let folder = tempfile::tempdir().unwrap();
        // The system keeps 15 bytes of this name, the last of which is half of a letter.
        let program = folder.path().join("abcdefghijklmné");
        std::os::unix::fs::symlink("/bin/cat", &program).unwrap();
        let mut child = Command::new(&program).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let found = descendants(std::process::id()).into_iter().find(|process| process.pid == child.id());
        let begun = stat(child.id()).map(|stat| stat.begun);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(found.unwrap().name, "abcdefghijklmn\u{fffd}");
        assert!(begun.is_some());
    }

    #[test]
    fn children_are_found_and_the_dead_are_not() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let root = std::process::id();
        let is_child = |process: &Descendant| process.pid == child.id();
        assert!(descendants(root).iter().any(is_child));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!descendants(root).iter().any(|process| process.pid == child.id()));
    }
}
