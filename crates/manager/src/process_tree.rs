//! The processes below this one, and ending or stopping them all.
//!
//! A subreaper inherits the orphans of its descendants, so whatever a program started, through a shell, `mpirun` or
//! `setsid`, is found here by its parents, however it changed its session or group. A look at the processes may miss one
//! whose parent ends meanwhile; that none is left, only the system can say, by `wait`.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::fs;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, kill_process_group, wait};

use crate::event::Exit;

/// A process below this one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Descendant {
    /// Its number.
    pub pid: u32,
    /// The name of its program, at most 15 letters of it.
    pub name: String,
    /// The group that it belongs to.
    pub group: u32,
    /// Whether somebody has stopped it.
    pub stopped: bool,
}

impl fmt::Display for Descendant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.pid)
    }
}

/// All living processes, as they were found at one look.
#[derive(Debug)]
pub(crate) struct ProcessSnapshot {
    /// By their parents.
    children: HashMap<u32, Vec<Descendant>>,
}

impl ProcessSnapshot {
    /// Looks at every process; those that only wait to be reaped are left out.
    pub(crate) fn take() -> Self {
        let mut children: HashMap<u32, Vec<Descendant>> = HashMap::new();
        for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let pid = entry
                .file_name()
                .to_str()
                .and_then(|name| name.parse::<u32>().ok());
            if let Some(pid) = pid
                && let Some(ProcessStat {
                    parent,
                    name,
                    group,
                    stopped,
                    ..
                }) = stat(pid)
            {
                children.entry(parent).or_default().push(Descendant {
                    pid,
                    name,
                    group,
                    stopped,
                });
            }
        }
        ProcessSnapshot { children }
    }

    /// Those below `root`, in no order.
    pub(crate) fn below(&self, root: u32) -> Vec<Descendant> {
        let mut found: Vec<Descendant> = self.children.get(&root).cloned().unwrap_or_default();
        let mut seen = 0;
        while let Some(process) = found.get(seen) {
            let children = self.children.get(&process.pid).cloned();
            found.extend(children.into_iter().flatten());
            seen += 1;
        }
        found
    }
}

/// All living processes below `root`, in no order.
pub fn descendants(root: u32) -> Vec<Descendant> {
    ProcessSnapshot::take().below(root)
}

/// What the system says of a process.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ProcessStat {
    /// The process that has started it, or has inherited it.
    pub(crate) parent: u32,
    /// The name of its program, at most 15 bytes of it.
    pub(crate) name: String,
    /// When it began, in ticks of the system's clock.
    pub(crate) begun: u64,
    /// The group that it belongs to.
    pub(crate) group: u32,
    /// Whether somebody has stopped it.
    pub(crate) stopped: bool,
}

/// What the system says of a process; `None` if it has ended.
pub(crate) fn stat(pid: u32) -> Option<ProcessStat> {
    // The name is cut at a byte, not at a letter.
    let line = fs::read(format!("/proc/{pid}/stat")).ok()?;
    parse_stat(&String::from_utf8_lossy(&line))
}

fn parse_stat(line: &str) -> Option<ProcessStat> {
    // The name may hold anything, parentheses too.
    let (head, tail) = line.rsplit_once(')')?;
    let (_, name) = head.split_once('(')?;
    let mut fields = tail.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let group = fields.next()?.parse().ok()?;
    let threads: u32 = fields.nth(14)?.parse().ok()?;
    // Its first thread may have ended before the others.
    if state == "X" || state == "Z" && threads <= 1 {
        return None;
    }
    let begun = fields.nth(1)?.parse().ok()?;
    Some(ProcessStat {
        parent,
        name: name.to_owned(),
        begun,
        group,
        stopped: matches!(state, "T" | "t"),
    })
}

/// Sends a signal to a process; that it is gone already is fine.
pub fn signal(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, signal);
    }
}

/// Sends a signal to all of a group at once, so that none of them can begin another that does not get it.
fn signal_group(group: u32, signal: Signal) {
    if let Some(group) = i32::try_from(group).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(group, signal);
    }
}

/// What the system says when it is asked for children that have ended.
enum ReapResult {
    /// This one has, and how.
    Exited(u32, Exit),
    /// There are some, but none has.
    Running,
    /// There are none, so nothing is below this process.
    NoChildren,
}

fn ask_for_children() -> ReapResult {
    /// The bit of a wait status that says so.
    const CORE: i32 = 0x80;
    loop {
        let (pid, status) = match wait(WaitOptions::NOHANG) {
            Ok(Some(ended)) => ended,
            Err(Errno::CHILD) => return ReapResult::NoChildren,
            Err(Errno::INTR) => continue,
            Ok(None) | Err(_) => return ReapResult::Running,
        };
        let exit = match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => Exit::Code(code),
            (None, Some(number)) => Exit::Signal(number, status.as_raw() & CORE != 0),
            (None, None) => continue,
        };
        return ReapResult::Exited(pid.as_raw_nonzero().get().unsigned_abs(), exit);
    }
}

/// A child that has ended since the last call, with how it did.
pub fn reap() -> Option<(u32, Exit)> {
    match ask_for_children() {
        ReapResult::Exited(pid, exit) => Some((pid, exit)),
        ReapResult::Running | ReapResult::NoChildren => None,
    }
}

/// Ends every process below this one, a subreaper: SIGTERM, and after the grace period SIGKILL, until the system says
/// that none is left.
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
    /// Some begin others as fast as they are killed.
    const HASTE: Duration = Duration::from_millis(1);
    let own_group = group(own_pid());
    let begun = Instant::now();
    let mut first: Vec<Descendant> = Vec::new();
    let (mut asked, mut asked_groups) = (HashSet::new(), HashSet::new());
    loop {
        let nothing_below = loop {
            match ask_for_children() {
                ReapResult::Exited(pid, exit) => reaped(pid, exit),
                ReapResult::Running => break false,
                ReapResult::NoChildren => break true,
            }
        };
        if nothing_below {
            return (first, Vec::new());
        }
        let left = descendants(own_pid());
        if begun.elapsed() > grace + HOPELESS {
            return (first, left);
        }
        let kill = begun.elapsed() >= grace;
        // All that is below us and not of our group is in groups of its own, with nobody else.
        let groups: HashSet<u32> = left.iter().map(|process| process.group).collect();
        for &group in groups
            .iter()
            .filter(|&&group| Some(group) != own_group && group != 0)
        {
            if kill {
                signal_group(group, Signal::KILL);
            } else if asked_groups.insert(group) {
                signal_group(group, Signal::TERM);
                // What is stopped would not hear it.
                signal_group(group, Signal::CONT);
                asked.extend(
                    left.iter()
                        .filter(|process| process.group == group)
                        .map(|process| process.pid),
                );
            }
        }
        for process in &left {
            if kill {
                signal(process.pid, Signal::KILL);
            } else if asked.insert(process.pid) {
                signal(process.pid, Signal::TERM);
                signal(process.pid, Signal::CONT);
            }
        }
        if first.is_empty() {
            first = left;
        }
        pause(if kill { HASTE } else { PAUSE });
    }
}

/// Stops every process below this one, until they are to [go on](resume_descendants). Returns those that somebody else had
/// stopped before.
///
/// One that ends while it begins another can hide that from a look, but a signal to their group reaches both.
pub fn stop_descendants() -> HashSet<u32> {
    let own_group = group(own_pid());
    let (mut asked, mut before) = (HashSet::new(), None);
    let mut quiet = 0;
    while quiet < 2 {
        let (stopped, running): (Vec<_>, Vec<_>) = descendants(own_pid())
            .into_iter()
            .partition(|process| process.stopped);
        before.get_or_insert_with(|| stopped.iter().map(|process| process.pid).collect());
        let new: Vec<&Descendant> = running
            .iter()
            .filter(|process| asked.insert(process.pid))
            .collect();
        quiet = if new.is_empty() { quiet + 1 } else { 0 };
        let groups: HashSet<u32> = new.iter().map(|process| process.group).collect();
        for group in groups
            .into_iter()
            .filter(|&group| Some(group) != own_group && group != 0)
        {
            signal_group(group, Signal::STOP);
        }
        for process in new {
            signal(process.pid, Signal::STOP);
        }
    }
    before.unwrap_or_default()
}

/// Has every process below this one go on, but those that were stopped `before`.
pub fn resume_descendants(before: &HashSet<u32>) {
    // All are stopped, so one look finds them.
    for process in descendants(own_pid()) {
        if process.stopped && !before.contains(&process.pid) {
            signal(process.pid, Signal::CONT);
        }
    }
}

pub(crate) fn own_pid() -> u32 {
    getpid().as_raw_nonzero().get().unsigned_abs()
}

/// The group of a process; `None` if it is outside of our namespace of processes, as in a container that was entered.
pub(crate) fn group(pid: u32) -> Option<u32> {
    stat(pid).map(|stat| stat.group).filter(|&group| group != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_line_of_stat_is_read_whatever_the_name() {
        let rest = "3 7 6 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 12345 0";
        let found = |stopped| ProcessStat {
            parent: 3,
            name: "a) b".to_owned(),
            begun: 12345,
            group: 7,
            stopped,
        };
        assert_eq!(
            parse_stat(&format!("7 (a) b) S {rest}")),
            Some(found(false))
        );
        assert_eq!(parse_stat(&format!("7 (a) b) T {rest}")), Some(found(true)));
        assert_eq!(parse_stat(&format!("7 (a) Z {rest}")), None);
        let threads = rest.replace(" 20 0 1 ", " 20 0 2 ");
        assert_eq!(
            parse_stat(&format!("7 (a) b) Z {threads}")),
            Some(found(false)),
            "other threads live"
        );
        assert_eq!(parse_stat("nonsense"), None);
    }

    #[test]
    fn a_name_that_is_cut_within_a_letter_hides_nobody() {
        let folder = tempfile::tempdir().unwrap();
        // The system keeps 15 bytes of this name, the last of which is half of a letter.
        let program = folder.path().join("abcdefghijklmné");
        std::os::unix::fs::symlink("/bin/cat", &program).unwrap();
        let mut child = Command::new(&program)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let found = descendants(std::process::id())
            .into_iter()
            .find(|process| process.pid == child.id());
        let begun = stat(child.id()).map(|stat| stat.begun);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(found.unwrap().name, "abcdefghijklmn\u{fffd}");
        assert!(begun.is_some());
    }

    #[test]
    fn children_are_found_and_the_dead_are_not() {
        let mut child = Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let root = std::process::id();
        let is_child = |process: &Descendant| process.pid == child.id();
        assert!(descendants(root).iter().any(is_child));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(
            !descendants(root)
                .iter()
                .any(|process| process.pid == child.id())
        );
    }
}
