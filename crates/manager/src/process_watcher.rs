//! Watching processes that the guard did not start: programs behind a script, the ranks behind `mpirun`, and those
//! started by hand.

use std::collections::HashMap;
use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::event::{EventfdFlags, epoll, eventfd};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::process_tree;

/// How often a process is looked at where the system cannot tell that it has ended (before Linux 5.3).
const LOOK: Duration = Duration::from_millis(50);

/// Set to try what is done on old systems.
const OLD_SYSTEM: &str = "TITIN_OLD_SYSTEM";

/// Among the descriptors that are waited for, the one that ends the waiting.
const OVER: u64 = u64::MAX;

/// Watches processes, and tells of those that have ended in the order in which they did: of the ranks of a parallel program
/// the first one matters, since whatever has started them soon ends the others.
pub struct ProcessWatcher {
    epoll: Arc<OwnedFd>,
    /// Processes and their descriptors, by the order in which they came.
    watched: Arc<Mutex<HashMap<u64, (u32, OwnedFd)>>>,
    turn: AtomicU64,
    /// Ends the thread.
    over: Arc<OwnedFd>,
    gone: Arc<dyn Fn(u32) + Send + Sync>,
}

impl ProcessWatcher {
    /// Watches nobody yet. `gone` is called from threads of its own.
    ///
    /// # Errors
    /// If the system has no descriptors or threads left.
    pub fn start(gone: impl Fn(u32) + Send + Sync + 'static) -> std::io::Result<Self> {
        let epoll = Arc::new(epoll::create(epoll::CreateFlags::CLOEXEC)?);
        let over = Arc::new(eventfd(0, EventfdFlags::CLOEXEC)?);
        epoll::add(
            &epoll,
            &over,
            epoll::EventData::new_u64(OVER),
            epoll::EventFlags::IN,
        )?;
        let (watched, turn) = (Arc::default(), AtomicU64::new(0));
        let watcher = ProcessWatcher {
            epoll: epoll.clone(),
            watched,
            turn,
            over: over.clone(),
            gone: Arc::new(gone),
        };
        let (watched, gone) = (watcher.watched.clone(), watcher.gone.clone());
        let wait = move || {
            let mut events = Vec::with_capacity(64);
            // Ended processes come in the order in which they have ended.
            while let Ok(()) | Err(rustix::io::Errno::INTR) =
                epoll::wait(&epoll, rustix::buffer::spare_capacity(&mut events), None).map(drop)
            {
                for event in events.drain(..) {
                    if event.data.u64() == OVER {
                        return drop(over);
                    }
                    // Dropping the descriptor takes it out of the set.
                    let ended = watched
                        .lock()
                        .expect("never poisoned")
                        .remove(&event.data.u64());
                    if let Some((pid, _)) = ended {
                        gone(pid);
                    }
                }
            }
        };
        std::thread::Builder::new()
            .name("watcher".into())
            .spawn(wait)?;
        Ok(watcher)
    }

    /// Watches this process. False if there is none.
    pub fn watch(&self, pid: u32) -> bool {
        let Some(begun) = begun(pid) else {
            return false;
        };
        let handle = open(pid);
        // The number may have been given to another process in between.
        if self::begun(pid) != Some(begun) {
            return false;
        }
        let Some(handle) = handle else {
            return self.look_after(pid, begun);
        };
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let mut watched = self.watched.lock().expect("never poisoned");
        let data = epoll::EventData::new_u64(turn);
        let added = epoll::add(&self.epoll, &handle, data, epoll::EventFlags::IN).is_ok();
        if added {
            watched.insert(turn, (pid, handle));
        }
        added
    }

    /// The same where the system cannot tell.
    fn look_after(&self, pid: u32, begun: u64) -> bool {
        let gone = self.gone.clone();
        let wait = move || {
            while self::begun(pid) == Some(begun) {
                std::thread::sleep(LOOK);
            }
            gone(pid);
        };
        std::thread::Builder::new()
            .name("watcher".into())
            .spawn(wait)
            .is_ok()
    }
}

impl Drop for ProcessWatcher {
    fn drop(&mut self) {
        let _ = rustix::io::write(&*self.over, &1u64.to_ne_bytes());
    }
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
    environment
        .split(|&byte| byte == 0)
        .any(|entry| entry.ends_with(connection.as_bytes()))
}

fn open(pid: u32) -> Option<OwnedFd> {
    if std::env::var_os(OLD_SYSTEM).is_some() {
        return None;
    }
    pidfd_open(
        Pid::from_raw(i32::try_from(pid).ok()?)?,
        PidfdFlags::empty(),
    )
    .ok()
}

fn begun(pid: u32) -> Option<u64> {
    process_tree::stat(pid).map(|stat| stat.begun)
}

fn parent(pid: u32) -> Option<u32> {
    process_tree::stat(pid).map(|stat| stat.parent)
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
        let watcher = ProcessWatcher::start(move |pid| sender.send(pid).unwrap()).unwrap();
        assert!(watcher.watch(child.id()));
        assert!(receiver.try_recv().is_err());
        assert!(is_ours(child.id(), Path::new("/nowhere")));
        drop(child.stdin.take());
        child.wait().unwrap();
        assert_eq!(receiver.recv().unwrap(), child.id());
        assert!(!watcher.watch(child.id()));
    }

    #[test]
    fn ends_are_told_in_their_order() {
        let (sender, receiver) = channel();
        let watcher = ProcessWatcher::start(move |pid| sender.send(pid).unwrap()).unwrap();
        let cats = || Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let mut children: Vec<_> = std::iter::repeat_with(cats).take(8).collect();
        assert!(children.iter().all(|child| watcher.watch(child.id())));
        children.reverse();
        for child in &mut children {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        children
            .iter()
            .for_each(|child| assert_eq!(receiver.recv().unwrap(), child.id()));
    }

    #[test]
    fn a_process_that_is_none_of_ours_is_known_by_its_environment() {
        // Some ancestor of this one: no descendant.
        let parent = parent(std::process::id()).unwrap();
        assert!(!is_ours(
            parent,
            Path::new("/run/of/nobody/connection.json")
        ));
    }
}
