//! The words of a doorbell: a count of rings, and a count of sleeping threads.
//!
//! The words are plain 32-bit integers, so they can lie in memory shared with other processes. A
//! futex on such a word needs no descriptor.

use crate::sync::{AtomicU32, Futex, Ordering};

/// A bit of [`BellWords::sleepers`]: the bell's listener is to be called at the next ring.
pub(crate) const ARMED: u32 = 1 << 31;

/// The words of one doorbell.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct BellWords {
    /// Grows with each ring.
    pub(crate) rings: Futex,
    /// The number of sleeping threads, and [`ARMED`].
    pub(crate) sleepers: AtomicU32,
    /// Not 0 after the first use.
    used: AtomicU32,
}

impl BellWords {
    /// Wakes all threads waiting at the bell, from another process. The reactor of the listener's
    /// process calls the listener.
    pub(crate) fn ring_from_other_process(&self) {
        self.rings.increment();
        if self.sleepers.load(Ordering::SeqCst) & !ARMED > 0 {
            self.rings.wake_all();
        }
    }

    /// Marks the words as used.
    pub(crate) fn mark_used(&self) {
        self.used.store(1, Ordering::SeqCst);
    }

    /// Whether a doorbell has ever used the words.
    pub(crate) fn was_used(&self) -> bool {
        self.used.load(Ordering::SeqCst) != 0
    }
}
