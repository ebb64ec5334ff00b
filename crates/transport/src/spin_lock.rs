//! A spin lock.
//!
//! Locking costs one atomic read-modify-write, unlocking none, since no sleeper has to be woken.
//! The price is half the price of a lock with sleeping threads, and a small message passes several
//! locks. A thread that finds the lock taken offers its core and looks again, so the lock may only
//! be held for a short time. (A spinning real-time thread may keep the lock's holder, a thread of a
//! lower class, from the core: give titin's own thread the class of the program's threads.) A panic
//! releases the lock; the protected value may then be half changed, and the users of the value fail
//! the run.

/// A value for one thread at a time.
#[cfg(not(loom))]
pub type SpinLock<T> = spin::mutex::SpinMutex<T, spin::Yield>;

/// Access to the value of a [`SpinLock`], locked meanwhile.
#[cfg(not(loom))]
pub type SpinLockGuard<'a, T> = spin::mutex::SpinMutexGuard<'a, T>;

/// The lock for the model checker: a lock at which threads sleep.
#[cfg(loom)]
#[derive(Debug, Default)]
pub struct SpinLock<T>(loom::sync::Mutex<T>);

/// Access to the value of a [`SpinLock`], locked meanwhile.
#[cfg(loom)]
pub type SpinLockGuard<'a, T> = loom::sync::MutexGuard<'a, T>;

#[cfg(loom)]
impl<T> SpinLock<T> {
    /// A lock that is free.
    pub fn new(value: T) -> Self {
        SpinLock(loom::sync::Mutex::new(value))
    }

    /// Waits until the lock is free, and locks it.
    pub fn lock(&self) -> SpinLockGuard<'_, T> {
        self.0
            .lock()
            .expect("nothing panics in a scene that goes well")
    }

    /// Locks, if the lock is free.
    pub fn try_lock(&self) -> Option<SpinLockGuard<'_, T>> {
        self.0.try_lock().ok()
    }
}
