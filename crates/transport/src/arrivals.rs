//! The queue of the inboxes with a message, for calls that receive from any of several inboxes. The
//! cost of a call does not depend on the number of inboxes.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

/// The numbers of inboxes with a message or an end, in the order of arrival, each once.
#[derive(Debug, Default)]
pub struct Arrivals {
    numbers: Mutex<VecDeque<u32>>,
    in_use: AtomicBool,
}

impl Arrivals {
    /// Adds a number at the end.
    pub fn push(&self, number: u32) {
        self.lock().push_back(number);
    }

    /// Removes the first number. The inbox may be empty again.
    pub fn pop(&self) -> Option<u32> {
        self.lock().pop_front()
    }

    /// Says whether a call waits for the queue. Meanwhile the queue's inboxes must not get another
    /// queue.
    pub fn set_in_use(&self, in_use: bool) {
        self.in_use.store(in_use, Ordering::Release);
    }

    /// Whether a call waits for the queue.
    pub fn is_in_use(&self) -> bool {
        self.in_use.load(Ordering::Acquire)
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<u32>> {
        self.numbers
            .lock()
            .expect("nothing panics while the queue is locked")
    }
}
