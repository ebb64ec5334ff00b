//! Watching processes that the guard did not start: programs behind a script, and those started by hand.

use std::fs;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::tree;

/// How often a process is looked at where the system cannot tell that it has ended (before Linux 5.3).
const LOOK: Duration = Duration::from_millis(50);

/// Set to try what is done on old systems.
const OLD_SYSTEM: &str = "TITIN_OLD_SYSTEM";

/// Calls `gone` when this process has ended, from a thread of its own. False if there is no such process.
pub fn watch(pid: u32, gone: impl FnOnce() + Send + 'static) -> bool {
    let Some(begun) = begun(pid) else { return false };
    let handle = open(pid);
    // The number may have been given to another process in between.
    if self::begun(pid) != Some(begun) {
        return false;
    }
    let wait = move || {
        match handle {
            Some(handle) => {
                while poll(&mut [PollFd::from_borrowed_fd(handle.as_fd(), PollFlags::IN)], None).is_err() {}
            }
            None => {
                while self::begun(pid) == Some(begun) {
                    std::thread::sleep(LOOK);
                }
            }
        }
        gone();
    };
    std::thread::Builder::new().name("sentry".into()).spawn(wait).is_ok()
}

/// Whether a process belongs to this run: it is a descendant, or its environment names the run's connection file.
///
/// A program may tell a number that means another process here, from within a container.
pub fn is_ours(pid: u32, connection: &Path) -> bool {
    let own = std::process::id();
    let mut at = pid;
    while let Some(parent) = parent(at).filter(|&parent| parent > 1) {
        if parent == own {
            return true;
        }
        at = parent;
    }
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let connection = connection.to_string_lossy();
    environment.split(|&byte| byte == 0).any(|entry| entry.ends_with(connection.as_bytes()))
}

fn open(pid: u32) -> Option<OwnedFd> {
    if std::env::var_os(OLD_SYSTEM).is_some() {
        return None;
    }
    pidfd_open(Pid::from_raw(i32::try_from(pid).ok()?)?, PidfdFlags::empty()).ok()
}

fn begun(pid: u32) -> Option<u64> {
    tree::stat(pid).map(|stat| stat.begun)
}

fn parent(pid: u32) -> Option<u32> {
    tree::stat(pid).map(|stat| stat.parent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};
    use std::sync::mpsc::channel;

    #[test]
    fn the_end_of_a_process_is_told() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let (sender, receiver) = channel();
        assert!(watch(child.id(), move || sender.send(()).unwrap()));
        assert!(receiver.try_recv().is_err());
        assert!(is_ours(child.id(), Path::new("/nowhere")));
        drop(child.stdin.take());
        child.wait().unwrap();
        receiver.recv().unwrap();
        assert!(!watch(child.id(), || ()));
    }

    #[test]
    fn a_process_that_is_none_of_ours_is_known_by_its_environment() {
        // Some ancestor of this one: no descendant.
        let parent = parent(std::process::id()).unwrap();
        assert!(!is_ours(parent, Path::new("/run/of/nobody/connection.json")));
    }
}
