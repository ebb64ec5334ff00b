//! The place where an instance waits.
//!
//! A doorbell has a count of rings and a count of sleepers. A waiter notes the rings, looks whether
//! the awaited thing is there, and sleeps only if the rings are unchanged, so no ring is lost. A
//! ring makes a system call only if a thread sleeps. The words of a doorbell lie in memory mapped
//! by peers on the host, so peers can ring the bell, too. A thread that sleeps at sockets has an
//! entry beside the words ([`crate::socket_sleepers`]). The loops of waiting itself are in
//! [`crate::waiting`].

use std::fmt;
use std::os::fd::BorrowedFd;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::bell::{ARMED, BellWords};
use crate::shared_bells::SharedBell;
use crate::socket_sleepers::SocketSleepers;
use crate::sync::{Ordering, Wake, WakeEvent};

/// Rung by every awaited event of an instance. Threads of the program wait at the instance's
/// doorbell.
///
/// A caller that must not wait [listens](Doorbell::listen) instead, and [arms](Doorbell::arm) the
/// bell where other callers would sleep.
#[derive(Debug)]
pub struct Doorbell {
    memory: BellMemory,
    socket_sleepers: SocketSleepers,
    /// Whether other threads wanted the core at a waiter's last offer.
    crowded: AtomicBool,
    listener: OnceLock<BellListener>,
}

/// The function called at the first ring after arming.
struct BellListener(Box<dyn Fn() + Send + Sync>);

impl fmt::Debug for BellListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a listener")
    }
}

/// The memory of a doorbell's words.
#[derive(Debug)]
enum BellMemory {
    /// Memory mapped by peers.
    Shared(SharedBell, &'static BellWords),
    Private(Box<BellWords>),
}

impl Default for Doorbell {
    fn default() -> Self {
        let memory = match SharedBell::take() {
            Some(bell) => {
                let words = bell.words();
                BellMemory::Shared(bell, words)
            }
            None => BellMemory::Private(Box::default()),
        };
        Doorbell {
            memory,
            socket_sleepers: SocketSleepers::default(),
            crowded: AtomicBool::new(false),
            listener: OnceLock::new(),
        }
    }
}

impl Doorbell {
    /// The count of rings, for [`Doorbell::wait`]. A waiter takes the count before the look whether
    /// a wait is needed.
    pub fn rings(&self) -> u32 {
        self.words().rings.load()
    }

    /// Wakes all waiters. Cheap when none sleeps.
    pub fn ring(&self) {
        let words = self.words();
        // `Doorbell::sleep_if` has the two accesses in the opposite order. Therefore either the
        // ringing thread sees the sleeper, or the sleeper sees the ring.
        words.rings.increment();
        let sleepers = words.sleepers.load(Ordering::SeqCst);
        if sleepers > 0 {
            self.wake(sleepers);
        }
        self.socket_sleepers.wake();
    }

    #[cold]
    fn wake(&self, sleepers: u32) {
        let words = self.words();
        if sleepers & !ARMED > 0 {
            words.rings.wake_all();
        }
        if sleepers & ARMED > 0
            && words.sleepers.fetch_and(!ARMED, Ordering::SeqCst) & ARMED > 0
            && let Some(BellListener(listener)) = self.listener.get()
        {
            listener();
        }
    }

    /// Sets the function to call at the first ring after each [`Doorbell::arm`]. The ringing thread
    /// calls the function, so the function must neither wait nor call the user's code. A second
    /// listener is ignored.
    pub fn listen(&self, listener: impl Fn() + Send + Sync + 'static) {
        let _ = self.listener.set(BellListener(Box::new(listener)));
    }

    /// The bell's number, if other processes can ring the bell. The process's own reactor rings a
    /// bell with a listener.
    pub(crate) fn number(&self) -> Option<u32> {
        match &self.memory {
            BellMemory::Shared(bell, _) if self.listener.get().is_none() => Some(bell.number()),
            _ => None,
        }
    }

    /// Has the listener called at the next ring. False, and no call, if the bell has rung since
    /// `seen` or `is_armed` finds that something has come in.
    pub(crate) fn arm_if(&self, seen: u32, is_armed: impl FnOnce() -> bool) -> bool {
        let words = self.words();
        words.sleepers.fetch_or(ARMED, Ordering::SeqCst);
        let unchanged = is_armed() && words.rings.is_still(seen);
        if !unchanged {
            words.sleepers.fetch_and(!ARMED, Ordering::SeqCst);
        }
        unchanged
    }

    /// Sleeps until the bell has rung since `seen`, for at most `limit`, unless `is_armed` finds
    /// that something has come in.
    pub(crate) fn sleep_if(
        &self,
        seen: u32,
        limit: Option<Duration>,
        is_armed: impl FnOnce() -> bool,
    ) -> Wake {
        let words = self.words();
        words.sleepers.fetch_add(1, Ordering::SeqCst);
        let wake = if is_armed() {
            words.rings.wait(seen, limit)
        } else {
            Wake::Rung
        };
        words.sleepers.fetch_sub(1, Ordering::SeqCst);
        wake
    }

    /// Sleeps until one of `sockets` is ready or the bell has rung since `seen`, for at most `limit`.
    /// No other thread sleeps at `event`. `None` if a socket is ready.
    pub(crate) fn sleep_at(
        &self,
        seen: u32,
        limit: Option<Duration>,
        sockets: &[BorrowedFd<'_>],
        event: &Arc<WakeEvent>,
    ) -> Option<Wake> {
        let has_rung = || !self.words().rings.is_still(seen);
        self.socket_sleepers
            .sleep_unless(has_rung, limit, sockets, event)
    }

    /// Whether other threads wanted the core at a waiter's last offer.
    pub(crate) fn is_crowded(&self) -> bool {
        self.crowded.load(Ordering::Relaxed)
    }

    pub(crate) fn set_crowded(&self, crowded: bool) {
        self.crowded.store(crowded, Ordering::Relaxed);
    }

    pub(crate) fn words(&self) -> &BellWords {
        match &self.memory {
            BellMemory::Shared(_, words) => words,
            BellMemory::Private(words) => words,
        }
    }
}
