//! Waiting by looking, and the sleep at sockets that may follow.

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use crate::sync::WakeEvent;

/// How long a caller looks for messages before sleep, and how the caller sleeps at sockets.
pub trait WaitPolicy {
    /// Whether the caller has looked long enough; `taken_in` entries have come in since the last
    /// call. May offer the core to other threads.
    fn is_over(&mut self, taken_in: usize) -> bool;

    /// How often to look between two calls of [`WaitPolicy::is_over`], where one look costs next to
    /// nothing.
    fn looks(&self) -> u32 {
        32
    }

    /// Sleeps until one of `sockets` is ready, after the spin. False if the wait is over, or the
    /// policy leaves the sleep to the caller. No other thread sleeps at `event`.
    fn sleep_at(&mut self, sockets: &[BorrowedFd<'_>], event: &Arc<WakeEvent>) -> bool {
        let _ = (sockets, event);
        false
    }
}

impl<F: FnMut(usize) -> bool> WaitPolicy for F {
    fn is_over(&mut self, taken_in: usize) -> bool {
        self(taken_in)
    }
}

/// Evaluates `is_there` up to [`WaitPolicy::looks`] times; whether the outcome was true.
#[inline(always)]
pub(crate) fn spin_until(policy: &dyn WaitPolicy, is_there: impl Fn() -> bool) -> bool {
    for _ in 0..policy.looks() {
        if is_there() {
            return true;
        }
        std::hint::spin_loop();
    }
    false
}
