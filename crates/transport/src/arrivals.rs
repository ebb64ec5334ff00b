//! Which of many inboxes have something: for calls that take from any of them, at the same cost however many they are.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

/// Numbers of inboxes that have something, in the order in which it came. Each stands there once.
#[derive(Debug, Default)]
pub struct Arrivals {
    numbers: Mutex<VecDeque<u32>>,
    in_use: AtomicBool,
}

impl Arrivals {
    /// Puts a number at the end.
    pub fn push(&self, number: u32) {
        self.lock().push_back(number);
    }

    /// Takes the first number. What its inbox had may have been taken since.
    pub fn next(&self) -> Option<u32> {
        self.lock().pop_front()
    }

    /// Says whether a call waits for what stands here: its inboxes are not to be put on another list meanwhile.
    pub fn use_now(&self, in_use: bool) {
        self.in_use.store(in_use, Ordering::Release);
    }

    /// Whether a call does.
    pub fn is_in_use(&self) -> bool {
        self.in_use.load(Ordering::Acquire)
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<u32>> {
        self.numbers
            .lock()
            .expect("nothing panics while the list is locked")
    }
}
