//! Descendants of this process: how to find, end, stop and resume descendants.
//!
//! A subreaper becomes the parent of the orphans of its descendants. So this module finds every
//! process of a program by following parents to children, also behind a shell, `mpirun` or
//! `setsid`, and in any session or group. A snapshot may miss a process whose parent ends
//! meanwhile. Only the system can say, by `wait`, that no process is left.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::fs;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, kill_process_group, wait};

use crate::event::Exit;

/// From SIGTERM to SIGKILL for orphans of a dead guard.
const ORPHAN_GRACE: Duration = Duration::from_secs(2);

/// A process that still lives this long after SIGKILL hangs in the kernel.
const KILL_TIME: Duration = Duration::from_secs(15);

/// The time for processes to end by themselves before they count as left behind. The `ssh` of a jump host
/// ends a moment after the `ssh` that has started it.
const SETTLING_TIME: Duration = Duration::from_millis(100);

/// The time between two looks at ending processes.
const PAUSE: Duration = Duration::from_millis(10);

/// The time between two looks after SIGKILL: some processes start others very fast.
const PAUSE_AFTER_KILL: Duration = Duration::from_millis(1);

/// A process below this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Descendant {
    /// The process number.
    pub pid: u32,
    /// The name of the program, at most its first 15 letters.
    pub name: String,
    /// The process group.
    pub group: u32,
    /// Whether the process is stopped.
    pub stopped: bool,
}

impl fmt::Display for Descendant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.pid)
    }
}

/// All living processes at one moment.
#[derive(Debug)]
pub(crate) struct ProcessSnapshot {
    /// The children of each process.
    children: HashMap<u32, Vec<Descendant>>,
}

impl ProcessSnapshot {
    /// Looks at every process, except those waiting to be reaped.
    pub(crate) fn take() -> Self {
        let mut children: HashMap<u32, Vec<Descendant>> = HashMap::new();
        for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let name = entry.file_name();
            let pid = name.to_str().and_then(|name| name.parse::<u32>().ok());
            if let Some(pid) = pid
                && let Some(stat) = stat(pid)
            {
                children.entry(stat.parent).or_default().push(Descendant {
                    pid,
                    name: stat.name,
                    group: stat.group,
                    stopped: stat.stopped,
                });
            }
        }
        ProcessSnapshot { children }
    }

    /// The processes below `root`, in no order.
    pub(crate) fn below(&self, root: u32) -> Vec<Descendant> {
        let mut below: Vec<Descendant> = self.children.get(&root).cloned().unwrap_or_default();
        let mut next = 0;
        while let Some(process) = below.get(next) {
            let children = self.children.get(&process.pid).cloned();
            below.extend(children.into_iter().flatten());
            next += 1;
        }
        below
    }
}

/// All living processes below `root`, in no order.
pub fn descendants(root: u32) -> Vec<Descendant> {
    ProcessSnapshot::take().below(root)
}

/// The system's record of a process.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ProcessStat {
    /// The parent process.
    pub(crate) parent: u32,
    /// The name of the program, at most its first 15 bytes.
    pub(crate) name: String,
    /// The time of the start, in ticks of the system's clock.
    pub(crate) begun: u64,
    /// The process group.
    pub(crate) group: u32,
    /// Whether the process is stopped.
    pub(crate) stopped: bool,
}

/// The system's record of a process; `None` if the process has ended.
pub(crate) fn stat(pid: u32) -> Option<ProcessStat> {
    // The system cuts the name at a byte, not at a letter.
    let line = fs::read(format!("/proc/{pid}/stat")).ok()?;
    parse_stat(&String::from_utf8_lossy(&line))
}

fn parse_stat(line: &str) -> Option<ProcessStat> {
    // The name may contain any characters, parentheses too.
    let (head, tail) = line.rsplit_once(')')?;
    let (_, name) = head.split_once('(')?;
    let mut fields = tail.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let group = fields.next()?.parse().ok()?;
    let threads: u32 = fields.nth(14)?.parse().ok()?;
    // The first thread may end before the others. Then the process lives on, in state Z.
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

/// Sends a signal to a process, if the process is still there.
pub fn signal(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, signal);
    }
}

/// Sends a signal to all processes of a group at once. So no process of the group can start another
/// process that misses the signal.
fn signal_group(group: u32, signal: Signal) {
    if let Some(group) = i32::try_from(group).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(group, signal);
    }
}

/// The system's answer about ended children.
enum ReapResult {
    /// A child has ended, with an exit.
    Exited(u32, Exit),
    /// There are children, but no child has ended.
    Running,
    /// There are no children, so there are no descendants.
    NoChildren,
}

fn reap_child() -> ReapResult {
    /// The bit of a wait status for a core file.
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

/// A child that has ended since the last call, with the exit.
pub fn reap() -> Option<(u32, Exit)> {
    match reap_child() {
        ReapResult::Exited(pid, exit) => Some((pid, exit)),
        ReapResult::Running | ReapResult::NoChildren => None,
    }
}

/// Ends every process below this process, a subreaper: after a moment by SIGTERM, and after the grace
/// period by SIGKILL, until the system says that no process is left.
///
/// `pause` waits for children to end, a few milliseconds at most. `reaped` is told of each ended
/// child. Returns the processes that lived after the moment, and the processes that even SIGKILL
/// did not end.
pub fn end_descendants(
    grace: Duration,
    mut pause: impl FnMut(Duration),
    mut reaped: impl FnMut(u32, Exit),
) -> (Vec<Descendant>, Vec<Descendant>) {
    let begun = Instant::now();
    let mut first: Vec<Descendant> = Vec::new();
    let mut signals = EndSignals::new();
    loop {
        if !reap_all(&mut reaped) {
            return (first, Vec::new());
        }
        let elapsed = begun.elapsed();
        if elapsed < SETTLING_TIME {
            pause(PAUSE);
            continue;
        }
        let left = descendants(own_pid());
        if elapsed > grace + KILL_TIME {
            return (first, left);
        }
        let kill = elapsed >= grace;
        match kill {
            true => signals.kill(&left),
            false => signals.terminate(&left),
        }
        if first.is_empty() {
            first = left;
        }
        pause(if kill { PAUSE_AFTER_KILL } else { PAUSE });
    }
}

/// Ends the orphans of a dead guard, which have come below this process, a subreaper. Returns the names
/// of the processes that lived, and of the processes that could not be ended.
pub fn end_orphans() -> (Vec<String>, Vec<String>) {
    let (left, stuck) = end_descendants(ORPHAN_GRACE, std::thread::park_timeout, |_, _| ());
    let names = |processes: Vec<Descendant>| processes.iter().map(ToString::to_string).collect();
    (names(left), names(stuck))
}

/// Reaps all ended children. False if no children are left.
fn reap_all(reaped: &mut impl FnMut(u32, Exit)) -> bool {
    loop {
        match reap_child() {
            ReapResult::Exited(pid, exit) => reaped(pid, exit),
            ReapResult::Running => return true,
            ReapResult::NoChildren => return false,
        }
    }
}

/// Sends SIGTERM once to each descendant, and SIGKILL again and again.
struct EndSignals {
    own_group: Option<u32>,
    asked: HashSet<u32>,
    asked_groups: HashSet<u32>,
}

impl EndSignals {
    fn new() -> Self {
        EndSignals {
            own_group: group(own_pid()),
            asked: HashSet::new(),
            asked_groups: HashSet::new(),
        }
    }

    fn kill(&self, left: &[Descendant]) {
        for group in groups_below(left, self.own_group) {
            signal_group(group, Signal::KILL);
        }
        for process in left {
            signal(process.pid, Signal::KILL);
        }
    }

    fn terminate(&mut self, left: &[Descendant]) {
        for group in groups_below(left, self.own_group) {
            if self.asked_groups.insert(group) {
                signal_group(group, Signal::TERM);
                // A stopped process would not handle the signal.
                signal_group(group, Signal::CONT);
                let members = left.iter().filter(|process| process.group == group);
                self.asked.extend(members.map(|process| process.pid));
            }
        }
        for process in left {
            if self.asked.insert(process.pid) {
                signal(process.pid, Signal::TERM);
                signal(process.pid, Signal::CONT);
            }
        }
    }
}

/// The groups of descendants, without this process's own group. The groups have no other members.
fn groups_below<'p>(
    processes: impl IntoIterator<Item = &'p Descendant>,
    own_group: Option<u32>,
) -> HashSet<u32> {
    let groups = processes.into_iter().map(|process| process.group);
    groups
        .filter(|&group| Some(group) != own_group && group != 0)
        .collect()
}

/// Processes stopped before all descendants were stopped.
pub type StoppedBefore = HashSet<u32>;

/// Stops every process below this process, until [`resume_descendants`]. Returns the processes that
/// another process had stopped before.
///
/// A snapshot can miss a process whose parent ends just after the start of the process. A signal to
/// the common group reaches parent and child.
pub fn stop_descendants() -> StoppedBefore {
    let own_group = group(own_pid());
    let (mut asked, mut before) = (HashSet::new(), None);
    let mut quiet_looks = 0;
    while quiet_looks < 2 {
        let (stopped, running): (Vec<_>, Vec<_>) = descendants(own_pid())
            .into_iter()
            .partition(|process| process.stopped);
        before.get_or_insert_with(|| stopped.iter().map(|process| process.pid).collect());
        let running = running.iter();
        let new: Vec<&Descendant> = running
            .filter(|process| asked.insert(process.pid))
            .collect();
        quiet_looks = if new.is_empty() { quiet_looks + 1 } else { 0 };
        for group in groups_below(new.iter().copied(), own_group) {
            signal_group(group, Signal::STOP);
        }
        for process in new {
            signal(process.pid, Signal::STOP);
        }
    }
    before.unwrap_or_default()
}

/// Lets every process below this process go on, except the processes stopped before.
pub fn resume_descendants(before: &StoppedBefore) {
    // All descendants are stopped, so one snapshot shows all.
    for process in descendants(own_pid()) {
        if process.stopped && !before.contains(&process.pid) {
            signal(process.pid, Signal::CONT);
        }
    }
}

pub(crate) fn own_pid() -> u32 {
    getpid().as_raw_nonzero().get().unsigned_abs()
}

/// The group of a process; `None` if the group is outside of this process's PID namespace, as for a
/// process that has entered a container.
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
        // The system keeps 15 bytes of the name. The last byte is half of a letter.
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
