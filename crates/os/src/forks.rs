//! Children that this process forks, and the shared memory in sight of the children.
//!
//! A child has its own copy of all memory but the shared memory. As soon as the parent gives a
//! block back, a peer puts the next message there, and the child would see the block change. So the
//! parent keeps blocks in sight of a child until the child has ended or runs another program. A
//! pipe tells: the child alone has the writing end.

use std::cell::Cell;
use std::os::fd::{IntoRawFd as _, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::{PipeFlags, pipe_with};

use crate::descriptors::{Descriptor, forked};

/// The shortest time between two checks whether children have ended.
const CHECK_INTERVAL: Duration = Duration::from_millis(10);

/// Counts the beginnings and the ends of forks.
static FORK_CLOCK: AtomicU64 = AtomicU64::new(0);

/// Whether any memory waits for the end of a child.
static HAS_WAITING: AtomicBool = AtomicBool::new(false);

static VISIBLE: Mutex<VisibleToChildren<Box<dyn Send>>> = Mutex::new(VisibleToChildren::new());

thread_local! {
    /// The fork under way in this thread: the time of the beginning, and the child's end of the
    /// pipe.
    static UNDER_WAY: Cell<Option<(u64, RawFd)>> = const { Cell::new(None) };
}

/// A time among the forks of this process.
#[derive(Debug, Clone, Copy, Default)]
pub struct ForkTime(u64);

impl ForkTime {
    /// The time of memory that is not shared with a peer: forks do not matter there.
    pub const NONE: Self = ForkTime(0);

    /// The present.
    pub fn now() -> Self {
        ForkTime(FORK_CLOCK.load(Ordering::Relaxed))
    }
}

/// Prepares a fork. The forking thread calls this function before the fork.
pub fn before() {
    if forked() {
        return;
    }
    let begun = FORK_CLOCK.fetch_add(1, Ordering::Relaxed);
    // Without a pipe the parent never learns of the child's end, and keeps the memory for ever.
    let (read, write) = pipe_with(PipeFlags::CLOEXEC).ok().unzip();
    UNDER_WAY.set(Some((begun, write.map_or(-1, OwnedFd::into_raw_fd))));
    let mut visible = lock();
    let free = visible.take_invisible();
    visible.children.push(Child {
        begun,
        ended: u64::MAX,
        pipe: read.map(Descriptor::from),
    });
    drop(visible);
    drop(free);
}

/// Notes the end of a fork. The thread that has forked calls this function, in the parent also
/// after a failed fork. Returns a descriptor to close.
pub fn after() -> Option<RawFd> {
    // In a child that forks again, the number may be the end of the child's own pipe.
    if forked() {
        return None;
    }
    let (begun, write) = UNDER_WAY.take()?;
    // No child has seen memory acquired from here on.
    let ended = FORK_CLOCK.fetch_add(1, Ordering::Relaxed) + 1;
    let mut visible = lock();
    visible
        .children
        .iter_mut()
        .filter(|child| child.begun == begun)
        .for_each(|child| child.ended = ended);
    (write >= 0).then_some(write)
}

/// Drops memory as soon as no child sees the memory any more. `acquired` is the time at which this
/// process acquired the memory.
pub fn drop_when_unseen(memory: impl Send + 'static, acquired: ForkTime) {
    if forked() {
        return;
    }
    if ForkTime::now().0 == acquired.0 && !HAS_WAITING.load(Ordering::Relaxed) {
        return drop(memory);
    }
    keep_while_seen(Box::new(memory), acquired);
}

#[cold]
fn keep_while_seen(memory: Box<dyn Send>, acquired: ForkTime) {
    let mut visible = lock();
    let free = visible.keep(memory, acquired);
    HAS_WAITING.store(!visible.waiting.is_empty(), Ordering::Relaxed);
    drop(visible);
    drop(free);
}

fn lock() -> MutexGuard<'static, VisibleToChildren<Box<dyn Send>>> {
    VISIBLE.lock().expect("nothing panics while it is locked")
}

/// Memory in sight of children, and the children.
struct VisibleToChildren<T> {
    children: Vec<Child>,
    /// Each piece of memory with the children that see the memory. The beginning of the fork names
    /// a child.
    waiting: Vec<(T, Vec<u64>)>,
    checked: Option<Instant>,
}

struct Child {
    /// The time at which the fork began. The time names the child.
    begun: u64,
    /// The time at which the fork ended: the child has seen memory acquired before.
    ended: u64,
    /// The reading end of the child's pipe, at end of file once the child has ended.
    pipe: Option<Descriptor>,
}

impl<T> VisibleToChildren<T> {
    const fn new() -> Self {
        VisibleToChildren {
            children: Vec::new(),
            waiting: Vec::new(),
            checked: None,
        }
    }

    /// Keeps memory while children see the memory. Returns all memory out of sight of all children.
    fn keep(&mut self, memory: T, acquired: ForkTime) -> Vec<T> {
        let is_due = self
            .checked
            .is_none_or(|checked| checked.elapsed() >= CHECK_INTERVAL);
        let mut free = if is_due {
            self.take_invisible()
        } else {
            Vec::new()
        };
        let children: Vec<u64> = self
            .children
            .iter()
            .filter(|child| child.ended > acquired.0)
            .map(|child| child.begun)
            .collect();
        if children.is_empty() {
            free.push(memory);
        } else {
            self.waiting.push((memory, children));
        }
        free
    }

    /// Looks for children that have ended. Returns the memory out of sight of the remaining
    /// children.
    fn take_invisible(&mut self) -> Vec<T> {
        self.checked = Some(Instant::now());
        self.children
            .retain(|child| child.pipe.as_ref().is_none_or(is_open));
        let has_ended = |begun: &u64| !self.children.iter().any(|child| child.begun == *begun);
        self.waiting
            .extract_if(.., |(_, children)| children.iter().all(has_ended))
            .map(|(memory, _)| memory)
            .collect()
    }
}

/// Whether a process has the other end of a pipe open.
fn is_open(pipe: &Descriptor) -> bool {
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    !matches!(
        poll(&mut [PollFd::new(pipe, PollFlags::IN)], Some(&now)),
        Ok(1..)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds a child whose fork lasted from `begun` to `ended`. Returns the child's end of the pipe.
    fn fork<T>(visible: &mut VisibleToChildren<T>, begun: u64, ended: u64) -> OwnedFd {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        visible.children.push(Child {
            begun,
            ended,
            pipe: Some(read.into()),
        });
        write
    }

    #[test]
    fn memory_that_a_child_sees_is_freed_when_the_child_has_ended() {
        let mut visible = VisibleToChildren::new();
        assert_eq!(visible.keep("alone", ForkTime(0)), ["alone"]);
        let first = fork(&mut visible, 0, 2);
        assert_eq!(visible.keep("before", ForkTime(0)), [""; 0]);
        assert_eq!(visible.keep("meanwhile", ForkTime(1)), [""; 0]);
        assert_eq!(visible.keep("behind", ForkTime(2)), ["behind"]);
        let second = fork(&mut visible, 2, 4);
        assert_eq!(visible.keep("between", ForkTime(2)), [""; 0]);
        drop(first);
        assert_eq!(visible.take_invisible(), ["before", "meanwhile"]);
        assert_eq!(visible.take_invisible(), [""; 0]);
        drop(second);
        visible.checked = None;
        assert_eq!(visible.keep("last", ForkTime(0)), ["between", "last"]);
        assert!(visible.children.is_empty());
    }

    #[test]
    fn a_child_whose_fork_is_under_way_may_see_everything() {
        let mut visible = VisibleToChildren::new();
        let child = fork(&mut visible, 0, u64::MAX);
        assert_eq!(visible.keep(1, ForkTime(1)), [0; 0]);
        visible.children[0].ended = 2;
        assert_eq!(visible.take_invisible(), [0; 0]);
        drop(child);
        assert_eq!(visible.take_invisible(), [1]);
    }
}
