//! Watching processes that the guard has not started: programs behind a script, ranks behind
//! `mpirun`, and programs that the user starts.

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

/// How often to look at a process if the system has no process descriptors (before Linux 5.3).
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// An environment variable for tests of such a system.
const OLD_SYSTEM: &str = "TITIN_OLD_SYSTEM";

/// The key of the descriptor that ends the thread.
const STOP: u64 = u64::MAX;

/// Watches processes, and reports ended processes in the order of their ends. Of the ranks of a
/// parallel program the first end matters: the launcher soon ends the other ranks.
pub struct ProcessWatcher {
    waiter: Waiter,
    /// The key of the next process.
    next_key: AtomicU64,
}

/// The part of the watcher in the waiting thread.
#[derive(Clone)]
struct Waiter {
    epoll: Arc<OwnedFd>,
    /// The watched processes with descriptors, by key.
    watched: Arc<Mutex<HashMap<u64, (u32, OwnedFd)>>>,
    /// Readable when the thread is to end.
    stop: Arc<OwnedFd>,
    /// The function to call with each ended process.
    gone: Arc<dyn Fn(u32) + Send + Sync>,
}

impl Waiter {
    /// Reports ended processes, until a stop.
    fn run(&self) {
        let mut events = Vec::with_capacity(64);
        loop {
            let buffer = rustix::buffer::spare_capacity(&mut events);
            match epoll::wait(&self.epoll, buffer, None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(_) => return,
            }
            // The system lists processes in the order of their ends.
            for event in events.drain(..) {
                let key = event.data.u64();
                if key == STOP {
                    return;
                }
                // Dropping the descriptor removes the descriptor from the set.
                let ended = self.watched.lock().expect("never poisoned").remove(&key);
                if let Some((pid, _)) = ended {
                    (self.gone)(pid);
                }
            }
        }
    }
}

impl ProcessWatcher {
    /// A watcher without processes. The watcher's threads call `gone` with each ended process.
    ///
    /// # Errors
    /// If the system has no descriptors or threads left.
    pub fn start(gone: impl Fn(u32) + Send + Sync + 'static) -> std::io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let stop = eventfd(0, EventfdFlags::CLOEXEC)?;
        let data = epoll::EventData::new_u64(STOP);
        epoll::add(&epoll, &stop, data, epoll::EventFlags::IN)?;
        let waiter = Waiter {
            epoll: Arc::new(epoll),
            watched: Arc::default(),
            stop: Arc::new(stop),
            gone: Arc::new(gone),
        };
        let in_thread = waiter.clone();
        spawn(move || in_thread.run())?;
        Ok(ProcessWatcher {
            waiter,
            next_key: AtomicU64::new(0),
        })
    }

    /// Watches a process. False if the process does not exist or cannot be watched.
    pub fn watch(&self, pid: u32) -> bool {
        let Some(begun) = begun(pid) else {
            return false;
        };
        let descriptor = process_descriptor(pid);
        // Another process may have taken over the number meanwhile.
        if self::begun(pid) != Some(begun) {
            return false;
        }
        let Some(descriptor) = descriptor else {
            return self.poll(pid, begun);
        };
        let key = self.next_key.fetch_add(1, Ordering::Relaxed);
        let mut watched = self.waiter.watched.lock().expect("never poisoned");
        let data = epoll::EventData::new_u64(key);
        let epoll = &self.waiter.epoll;
        let added = epoll::add(epoll, &descriptor, data, epoll::EventFlags::IN).is_ok();
        if added {
            watched.insert(key, (pid, descriptor));
        }
        added
    }

    /// Watches a process without a descriptor. A thread checks again and again.
    fn poll(&self, pid: u32, begun: u64) -> bool {
        let gone = self.waiter.gone.clone();
        let poll = move || {
            while self::begun(pid) == Some(begun) {
                std::thread::sleep(POLL_INTERVAL);
            }
            gone(pid);
        };
        spawn(poll).is_ok()
    }
}

impl Drop for ProcessWatcher {
    fn drop(&mut self) {
        let _ = rustix::io::write(&*self.waiter.stop, &1u64.to_ne_bytes());
    }
}

fn spawn(work: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    let thread = std::thread::Builder::new().name("watcher".into());
    thread.spawn(work).map(drop)
}

/// Whether a process belongs to this run: the process is a descendant of this process, or its
/// environment names the run's connection file.
///
/// A program in a container may report a number that belongs to another process here.
pub fn is_ours(pid: u32, connection: &Path) -> bool {
    let own = std::process::id();
    let mut ancestor = pid;
    while let Some(parent) = parent(ancestor).filter(|&parent| parent > 1) {
        if parent == own {
            return true;
        }
        ancestor = parent;
    }
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let connection = connection.to_string_lossy();
    let mut variables = environment.split(|&byte| byte == 0);
    variables.any(|variable| variable.ends_with(connection.as_bytes()))
}

/// A descriptor of a process; `None` if the system has no such descriptors.
fn process_descriptor(pid: u32) -> Option<OwnedFd> {
    if std::env::var_os(OLD_SYSTEM).is_some() {
        return None;
    }
    let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
    pidfd_open(pid, PidfdFlags::empty()).ok()
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
        // The parent of this process is no descendant.
        let parent = parent(std::process::id()).unwrap();
        assert!(!is_ours(
            parent,
            Path::new("/run/of/nobody/connection.json")
        ));
    }
}
