//! The threads that sleep at sockets, and at a doorbell as well.
//!
//! A thread that sleeps in `poll` does not see the words of a doorbell. Such a thread polls an event
//! descriptor beside its sockets, and a ring of the doorbell writes to the event descriptors of all
//! the threads. Other processes ring only bells announced to them. A thread that sleeps at sockets
//! has announced no bell, and so the threads are counted outside of the words shared with other
//! processes.

use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use titin_os::Descriptor;
use titin_os::descriptors::forked;

use crate::sync::{AtomicU32, Mutex, MutexGuard, Ordering, Wake};

/// The threads that sleep at sockets until one doorbell rings.
#[derive(Debug, Default)]
pub(crate) struct SocketSleepers {
    count: AtomicU32,
    asleep: Mutex<Vec<Sleeper>>,
}

/// A thread that sleeps at sockets.
#[derive(Debug)]
struct Sleeper {
    event: Arc<Descriptor>,
    /// Whether a ring has written to the event descriptor.
    is_woken: bool,
}

impl SocketSleepers {
    /// Wakes all threads. Cheap when none sleeps. The caller has changed the count of rings before.
    #[inline(always)]
    pub(crate) fn wake(&self) {
        // `SocketSleepers::sleep_if` has the two accesses in the opposite order. Therefore either
        // the ringing thread sees the sleeper, or the sleeper sees the ring.
        if self.count.load(Ordering::SeqCst) > 0 {
            self.write_to_events();
        }
    }

    #[cold]
    fn write_to_events(&self) {
        // In a forked child the sleepers are threads of the parent, and one of them may hold the
        // lock for ever.
        if forked() {
            return;
        }
        for sleeper in &mut *self.lock() {
            if !std::mem::replace(&mut sleeper.is_woken, true) {
                // Writing can fail only for a full count, and an event is written to once.
                let _ = rustix::io::write(&*sleeper.event, &1u64.to_ne_bytes());
            }
        }
    }

    /// Sleeps until one of `sockets` is ready, a ring wakes the thread, or `limit` has passed,
    /// unless `has_rung` is true once the thread counts as a sleeper. `event` is an event descriptor
    /// of the thread's own. Returns why the thread woke, or `None` if a socket is ready.
    pub(crate) fn sleep_if(
        &self,
        has_rung: impl Fn() -> bool,
        limit: Option<Duration>,
        sockets: &[BorrowedFd<'_>],
        event: &Arc<Descriptor>,
    ) -> Option<Wake> {
        self.enter(event);
        let wake = if has_rung() {
            Some(Wake::Rung)
        } else {
            poll_sockets(sockets, event, limit)
        };
        self.leave(event);
        if has_rung() { Some(Wake::Rung) } else { wake }
    }

    fn enter(&self, event: &Arc<Descriptor>) {
        self.lock().push(Sleeper {
            event: event.clone(),
            is_woken: false,
        });
        self.count.fetch_add(1, Ordering::SeqCst);
    }

    fn leave(&self, event: &Arc<Descriptor>) {
        self.count.fetch_sub(1, Ordering::SeqCst);
        let mut asleep = self.lock();
        let index = asleep
            .iter()
            .position(|sleeper| Arc::ptr_eq(&sleeper.event, event))
            .expect("a sleeper is listed until it leaves");
        let sleeper = asleep.swap_remove(index);
        drop(asleep);
        // No ring writes to the event descriptor of a thread that is no longer listed.
        if sleeper.is_woken {
            let _ = rustix::io::read(&*sleeper.event, &mut [0; 8]);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Sleeper>> {
        self.asleep
            .lock()
            .expect("nothing panics while the sleepers are locked")
    }
}

/// Waits until a socket or `event` is ready. `None` if a socket may be.
fn poll_sockets(
    sockets: &[BorrowedFd<'_>],
    event: &Arc<Descriptor>,
    limit: Option<Duration>,
) -> Option<Wake> {
    let limit = limit.map(|limit| Timespec {
        tv_sec: i64::try_from(limit.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: limit.subsec_nanos().into(),
    });
    let awaited = sockets.iter().copied().chain([event.as_fd()]);
    let mut awaited: Vec<_> = awaited
        .map(|file| PollFd::from_borrowed_fd(file, PollFlags::IN))
        .collect();
    match poll(&mut awaited, limit.as_ref()) {
        Ok(0) => Some(Wake::Timeout),
        Err(Errno::INTR) => Some(Wake::Interrupted),
        _ => None,
    }
}
