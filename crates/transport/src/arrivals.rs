//! Which of many inboxes have something: for calls that take from any of them, at the same cost however many they are.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};

/// Numbers of inboxes that have something, in the order in which it came. Each stands there once.
#[derive(Debug, Default)]
pub struct Arrivals(Mutex<VecDeque<u32>>);

impl Arrivals {
    /// Puts a number at the end.
    pub fn push(&self, number: u32) {
        self.lock().push_back(number);
    }

    /// Takes the first number. What its inbox had may have been taken since.
    pub fn next(&self) -> Option<u32> {
        self.lock().pop_front()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<u32>> {
        self.0.lock().expect("nothing panics while the list is locked")
    }
}
