//! A lock that nobody sleeps for.
//!
//! To take it costs one locked instruction, to let go of it none, since nobody is to be woken: that is half the price of a
//! lock that threads sleep at, and a small message passes several. Whoever finds it taken offers the core to others and
//! looks again, so what is done under it must be short, or others must only try. (A thread of a real-time class that looks for
//! one that a thread of a lower class has may keep that from its core: titin's own thread wants the class of its callers.) A
//! panic lets go of it; what is behind may be half changed then, and its users fail the run.

/// Something that one thread at a time may use.
#[cfg(not(loom))]
pub type SpinLock<T> = spin::mutex::SpinMutex<T, spin::Yield>;

/// The right to use what is behind a [`SpinLock`].
#[cfg(not(loom))]
pub type SpinLockGuard<'a, T> = spin::mutex::SpinMutexGuard<'a, T>;

/// As the model checker sees it: a lock that threads sleep at.
#[cfg(loom)]
#[derive(Debug, Default)]
pub struct SpinLock<T>(loom::sync::Mutex<T>);

/// The right to use what is behind it.
#[cfg(loom)]
pub type SpinLockGuard<'a, T> = loom::sync::MutexGuard<'a, T>;

#[cfg(loom)]
impl<T> SpinLock<T> {
    /// A lock that nobody has.
    pub fn new(value: T) -> Self {
        SpinLock(loom::sync::Mutex::new(value))
    }

    /// Waits until nobody else has it.
    pub fn lock(&self) -> SpinLockGuard<'_, T> {
        self.0
            .lock()
            .expect("nothing panics in a scene that goes well")
    }
}
