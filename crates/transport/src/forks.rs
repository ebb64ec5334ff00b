//! Children that this process forks, and what they see of shared memory.
//!
//! Of all other memory a child has its own copy from the fork on. What a peer shares with us would change under its hands as
//! soon as its parent, which knows nothing of that, lets go of a message and the peer puts the next one there. So what was held
//! at a fork is given back only once the child has ended, or runs another program. A pipe tells: nobody but the child
//! has its other end.

use std::cell::Cell;
use std::os::fd::{IntoRawFd as _, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::{PipeFlags, pipe_with};

use crate::buffer::Memory;
use crate::descriptors::{Held, forked};

/// How often to look whether children have ended, at most.
const LOOK: Duration = Duration::from_millis(10);

/// Goes on with each fork, at its beginning and at its end.
static CLOCK: AtomicU64 = AtomicU64::new(0);

/// Whether something waits for children.
static WAITS: AtomicBool = AtomicBool::new(false);

static SEEN: Mutex<Seen<Memory>> = Mutex::new(Seen::new());

thread_local! {
    /// Of the fork that is under way in this thread: when it began, and the child's end of the pipe.
    static UNDER_WAY: Cell<Option<(u64, RawFd)>> = const { Cell::new(None) };
}

/// When something came, among the forks of this process.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Born(u64);

impl Born {
    /// Now.
    pub(crate) fn now() -> Self {
        Born(CLOCK.load(Ordering::Relaxed))
    }
}

/// To be called before a fork, in the thread that forks.
pub fn before() {
    if forked() {
        return;
    }
    let begun = CLOCK.fetch_add(1, Ordering::Relaxed);
    // Without a pipe nobody knows when the child ends.
    let (read, write) = pipe_with(PipeFlags::CLOEXEC).ok().unzip();
    UNDER_WAY.set(Some((begun, write.map_or(-1, OwnedFd::into_raw_fd))));
    let mut seen = lock();
    let free = seen.settle();
    seen.children.push(Child {
        begun,
        ended: u64::MAX,
        read: read.map(Held::from),
    });
    drop(seen);
    drop(free);
}

/// To be called after a fork, in the thread that has forked; in the parent, also if there is no child. Gives a descriptor to
/// close.
pub fn after() -> Option<RawFd> {
    // A child that forks has its end of its own pipe there.
    if forked() {
        return None;
    }
    let (begun, write) = UNDER_WAY.take()?;
    // What comes from here on no child has seen.
    let ended = CLOCK.fetch_add(1, Ordering::Relaxed) + 1;
    let mut seen = lock();
    seen.children
        .iter_mut()
        .filter(|child| child.begun == begun)
        .for_each(|child| child.ended = ended);
    (write >= 0).then_some(write)
}

/// Gives memory back to whoever owns it, as soon as no child sees it any more.
pub(crate) fn give_back(memory: Memory, born: Born) {
    if forked() || (Born::now().0 == born.0 && !WAITS.load(Ordering::Relaxed)) {
        return;
    }
    let mut seen = lock();
    let free = seen.keep(memory, born);
    WAITS.store(!seen.waiting.is_empty(), Ordering::Relaxed);
    drop(seen);
    drop(free);
}

fn lock() -> MutexGuard<'static, Seen<Memory>> {
    SEEN.lock().expect("nothing panics while it is locked")
}

/// What children see, and these.
struct Seen<T> {
    children: Vec<Child>,
    /// With the children that see it, by when their forks began.
    waiting: Vec<(T, Vec<u64>)>,
    looked: Option<Instant>,
}

struct Child {
    /// When its fork began, which no other did then.
    begun: u64,
    /// When its fork was over: it has seen what was there before.
    ended: u64,
    /// Is at its end when the child is.
    read: Option<Held>,
}

impl<T> Seen<T> {
    const fn new() -> Self {
        Seen {
            children: Vec::new(),
            waiting: Vec::new(),
            looked: None,
        }
    }

    /// Keeps something as long as children see it. Gives what none sees any more.
    fn keep(&mut self, thing: T, born: Born) -> Vec<T> {
        let looks = self.looked.is_none_or(|looked| looked.elapsed() >= LOOK);
        let mut free = if looks { self.settle() } else { Vec::new() };
        let sees = |child: &&Child| child.ended > born.0;
        let by: Vec<u64> = self
            .children
            .iter()
            .filter(sees)
            .map(|child| child.begun)
            .collect();
        if by.is_empty() {
            free.push(thing);
        } else {
            self.waiting.push((thing, by));
        }
        free
    }

    /// Looks which children have ended. Gives what none sees any more.
    fn settle(&mut self) -> Vec<T> {
        self.looked = Some(Instant::now());
        self.children
            .retain(|child| child.read.as_ref().is_none_or(lives));
        let gone = |begun: &u64| !self.children.iter().any(|child| child.begun == *begun);
        self.waiting
            .extract_if(.., |(_, by)| by.iter().all(gone))
            .map(|(thing, _)| thing)
            .collect()
    }
}

/// Whether somebody has the other end of a pipe.
fn lives(read: &Held) -> bool {
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    !matches!(
        poll(&mut [PollFd::new(read, PollFlags::IN)], Some(&now)),
        Ok(1..)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A child whose fork took this time, and what it has of it.
    fn fork<T>(seen: &mut Seen<T>, begun: u64, ended: u64) -> OwnedFd {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        seen.children.push(Child {
            begun,
            ended,
            read: Some(read.into()),
        });
        write
    }

    #[test]
    fn what_a_child_sees_is_given_back_when_it_has_ended() {
        let mut seen = Seen::new();
        assert_eq!(seen.keep("alone", Born(0)), ["alone"]);
        let first = fork(&mut seen, 0, 2);
        assert_eq!(seen.keep("before", Born(0)), [""; 0]);
        assert_eq!(seen.keep("meanwhile", Born(1)), [""; 0]);
        assert_eq!(seen.keep("behind", Born(2)), ["behind"]);
        let second = fork(&mut seen, 2, 4);
        assert_eq!(seen.keep("between", Born(2)), [""; 0]);
        drop(first);
        assert_eq!(seen.settle(), ["before", "meanwhile"]);
        assert_eq!(seen.settle(), [""; 0]);
        drop(second);
        seen.looked = None;
        assert_eq!(seen.keep("last", Born(0)), ["between", "last"]);
        assert!(seen.children.is_empty());
    }

    #[test]
    fn of_a_fork_that_is_under_way_everything_may_be_seen() {
        let mut seen = Seen::new();
        let child = fork(&mut seen, 0, u64::MAX);
        assert_eq!(seen.keep(1, Born(1)), [0; 0]);
        seen.children[0].ended = 2;
        assert_eq!(seen.settle(), [0; 0]);
        drop(child);
        assert_eq!(seen.settle(), [1]);
    }
}
