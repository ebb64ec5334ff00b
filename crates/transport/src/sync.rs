//! The atomics, the locks, the futex and the wake event, each with a second implementation for the
//! model checker.
//!
//! Under `--cfg loom` atomics and locks are loom's. The futex is a stand-in with the kernel's
//! contract: a wait compares and goes to sleep in one step, and no wake comes in between. The wake
//! event is a flag under a lock, and no socket is ever ready. Loom treats `SeqCst` as `AcqRel`; the
//! fences here stand for the single order of sequentially consistent operations, and for the
//! kernel's barrier before the comparison.

/// Why a wait has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wake {
    /// The bell rang since the count was taken.
    Rung,
    /// The time is up.
    Timeout,
    /// A signal arrived.
    Interrupted,
}

#[cfg(not(loom))]
mod real {
    pub(crate) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
    pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};

    use std::io;
    use std::os::fd::{AsFd as _, BorrowedFd};
    use std::time::Duration;

    use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
    use rustix::io::Errno;
    use rustix::thread::futex;
    use titin_os::Descriptor;
    use titin_os::time::timespec;

    use super::Wake;

    /// A word that threads can sleep at, also in memory shared by processes.
    #[derive(Debug, Default)]
    #[repr(transparent)]
    pub(crate) struct Futex(AtomicU32);

    impl Futex {
        pub(crate) fn load(&self) -> u32 {
            self.0.load(Ordering::SeqCst)
        }

        pub(crate) fn increment(&self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }

        /// Whether the word is `seen`, for a thread that has already announced its wait.
        pub(crate) fn is_still(&self, seen: u32) -> bool {
            self.load() == seen
        }

        /// Sleeps until woken, if the word is `seen`. May return without a reason.
        pub(crate) fn wait(&self, seen: u32, limit: Option<Duration>) -> Wake {
            let limit = limit.map(timespec);
            match futex::wait(&self.0, futex::Flags::empty(), seen, limit.as_ref()) {
                Err(Errno::TIMEDOUT) => Wake::Timeout,
                Err(Errno::INTR) => Wake::Interrupted,
                _ => Wake::Rung,
            }
        }

        pub(crate) fn wake_all(&self) {
            // Waking can fail only for a bad address. A reference is never bad.
            let _ = futex::wake(&self.0, futex::Flags::empty(), i32::MAX as u32);
        }
    }

    /// Wakes a thread that sleeps at sockets: an event descriptor.
    #[derive(Debug)]
    pub struct WakeEvent(Descriptor);

    impl WakeEvent {
        pub(crate) fn new() -> io::Result<Self> {
            let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
            Ok(WakeEvent(event.into()))
        }

        pub(crate) fn set(&self) {
            // Writing can fail only for a full count, and then the event is set.
            let _ = rustix::io::write(&*self.0, &1u64.to_ne_bytes());
        }

        pub(crate) fn clear(&self) {
            let _ = rustix::io::read(&*self.0, &mut [0; 8]);
        }

        /// Sleeps until the event is set or one of `sockets` is ready, and then returns `None`.
        pub(crate) fn sleep(
            &self,
            sockets: &[BorrowedFd<'_>],
            limit: Option<Duration>,
        ) -> Option<Wake> {
            let limit = limit.map(timespec);
            let awaited = sockets.iter().copied().chain([self.0.as_fd()]);
            let mut awaited: Vec<_> = awaited
                .map(|file| PollFd::from_borrowed_fd(file, PollFlags::IN))
                .collect();
            match poll(&mut awaited, limit.as_ref()) {
                Ok(0) => Some(Wake::Timeout),
                Ok(_) => None,
                Err(Errno::INTR) => Some(Wake::Interrupted),
                // Without memory the system cannot poll. The waiter looks again by other ways.
                Err(_) => Some(Wake::Rung),
            }
        }
    }
}

#[cfg(loom)]
mod checked {
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
    pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};

    use std::io;
    use std::os::fd::BorrowedFd;
    use std::time::Duration;

    use loom::sync::atomic::fence;

    use super::Wake;

    /// The lock over the queue of sleepers stands for the kernel, which compares under a lock.
    #[derive(Debug, Default)]
    pub(crate) struct Futex {
        word: AtomicU32,
        queue: Mutex<()>,
        woken: Condvar,
    }

    impl Futex {
        pub(crate) fn load(&self) -> u32 {
            self.word.load(Ordering::SeqCst)
        }

        pub(crate) fn increment(&self) {
            self.word.fetch_add(1, Ordering::SeqCst);
            fence(Ordering::SeqCst);
        }

        pub(crate) fn is_still(&self, seen: u32) -> bool {
            fence(Ordering::SeqCst);
            self.load() == seen
        }

        pub(crate) fn wait(&self, seen: u32, _limit: Option<Duration>) -> Wake {
            fence(Ordering::SeqCst);
            let queue = self.queue.lock().unwrap();
            if self.load() == seen {
                drop(self.woken.wait(queue).unwrap());
            }
            Wake::Rung
        }

        pub(crate) fn wake_all(&self) {
            let _queue = self.queue.lock().unwrap();
            self.woken.notify_all();
        }
    }

    /// Wakes a thread that sleeps at sockets.
    #[derive(Debug, Default)]
    pub struct WakeEvent {
        is_set: Mutex<bool>,
        changed: Condvar,
    }

    impl WakeEvent {
        pub(crate) fn new() -> io::Result<Self> {
            Ok(WakeEvent::default())
        }

        pub(crate) fn set(&self) {
            *self.is_set.lock().unwrap() = true;
            self.changed.notify_all();
        }

        pub(crate) fn clear(&self) {
            *self.is_set.lock().unwrap() = false;
        }

        pub(crate) fn sleep(&self, _: &[BorrowedFd<'_>], _: Option<Duration>) -> Option<Wake> {
            let mut is_set = self.is_set.lock().unwrap();
            while !*is_set {
                is_set = self.changed.wait(is_set).unwrap();
            }
            None
        }

        #[cfg(test)]
        pub(crate) fn is_set(&self) -> bool {
            *self.is_set.lock().unwrap()
        }
    }
}

/// Runs a scene in every order with at most four switches away from a thread that could go on.
#[cfg(all(test, loom))]
pub(crate) fn check(scene: impl Fn() + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(4);
    model.check(scene);
}

#[cfg(loom)]
pub use checked::WakeEvent;
#[cfg(loom)]
pub(crate) use checked::*;
#[cfg(not(loom))]
pub use real::WakeEvent;
#[cfg(not(loom))]
pub(crate) use real::*;
