//! The thread that carries non-blocking calls on, on all paths of the process.
//!
//! The thread attends to the ends of paths that have something to do: a call was posted, or the bell of the end has
//! rung. After each look it has the bell tell of the next ring ([`Doorbell::listen`]). The thread begins with the first
//! call that is not done at once, and stays.
//!
//! [`Doorbell::listen`]: titin_transport::Doorbell::listen

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, Once, PoisonError, Weak};

use crate::end::PathEnd;

/// The ends that have something to do.
static READY: Worker = Worker {
    ends: Mutex::new(VecDeque::new()),
    changed: Condvar::new(),
    started: Once::new(),
};

struct Worker {
    ends: Mutex<VecDeque<Weak<PathEnd>>>,
    changed: Condvar,
    started: Once,
}

/// Has the thread look at the end soon.
pub(crate) fn attend(end: Weak<PathEnd>) {
    READY.started.call_once(|| {
        let thread = std::thread::Builder::new().name("titin-paths".into());
        // Without a thread the calls go on in test and wait.
        let _ = thread.spawn(|| READY.run());
    });
    READY.ends().push_back(end);
    READY.changed.notify_one();
}

impl Worker {
    fn ends(&self) -> MutexGuard<'_, VecDeque<Weak<PathEnd>>> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        loop {
            let mut ends = self.ends();
            let end = loop {
                match ends.pop_front() {
                    Some(end) => break end,
                    None => {
                        let woken = self.changed.wait(ends);
                        ends = woken.unwrap_or_else(PoisonError::into_inner);
                    }
                }
            };
            drop(ends);
            if let Some(end) = end.upgrade() {
                end.carry_on();
            }
        }
    }
}
