//! The atomics, locks and the futex, each with a second implementation for the model checker.
//!
//! Under `--cfg loom` atomics and locks are loom's, and the futex is a stand-in with the kernel's
//! contract: every wake sees a wait compare and go to sleep in one step. Loom treats `SeqCst` as
//! `AcqRel`; the fences here stand for the single order of sequentially consistent operations, and
//! for the kernel's barrier before the comparison.

/// Why a wait came back.
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

    use std::time::Duration;

    use rustix::io::Errno;
    use rustix::thread::futex;

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
            let limit = limit.map(|limit| futex::Timespec {
                tv_sec: i64::try_from(limit.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: limit.subsec_nanos().into(),
            });
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
}

#[cfg(loom)]
mod checked {
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
    pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};

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
}

/// Runs a scene in every order with at most four switches away from a thread that could go on.
#[cfg(all(test, loom))]
pub(crate) fn check(scene: impl Fn() + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(4);
    model.check(scene);
}

#[cfg(loom)]
pub(crate) use checked::*;
#[cfg(not(loom))]
pub(crate) use real::*;
