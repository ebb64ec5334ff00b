//! The thread that carries non-blocking calls on, on all paths of the process.
//!
//! The thread looks at the ends of paths that have something to do: a call was posted, or the bell of the end has
//! rung. After each look it has the bell tell of the next ring ([`Doorbell::listen`]). The thread begins with the first
//! call that is not done at once, and stays.
//!
//! [`Doorbell::listen`]: titin_transport::Doorbell::listen

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, Once, PoisonError, Weak};

use crate::end::PathEnd;

static WORKER: Worker = Worker {
    tasks: Mutex::new(VecDeque::new()),
    changed: Condvar::new(),
    started: Once::new(),
    is_missing: AtomicBool::new(false),
};

struct Worker {
    tasks: Mutex<VecDeque<Task>>,
    changed: Condvar,
    started: Once,
    /// Whether the system has refused the thread.
    is_missing: AtomicBool,
}

enum Task {
    /// The end has something to do.
    Attend(Weak<PathEnd>),
    Run(Box<dyn FnOnce() + Send>),
}

/// Has the thread look at the end soon.
pub(crate) fn attend(end: Weak<PathEnd>) {
    WORKER.add(Task::Attend(end));
}

/// Has the thread call `task` soon, which must not wait.
pub(crate) fn run(task: impl FnOnce() + Send + 'static) {
    WORKER.add(Task::Run(Box::new(task)));
}

impl Worker {
    fn tasks(&self) -> MutexGuard<'_, VecDeque<Task>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&'static self, task: Task) {
        self.started.call_once(|| {
            let thread = std::thread::Builder::new().name("titin-paths".into());
            let started = thread.spawn(|| self.serve());
            self.is_missing.store(started.is_err(), Ordering::Relaxed);
        });
        // Without a thread the calls go on where the program tests them or waits.
        if self.is_missing.load(Ordering::Relaxed) {
            return;
        }
        self.tasks().push_back(task);
        self.changed.notify_one();
    }

    fn serve(&self) {
        loop {
            match self.next() {
                Task::Attend(end) => {
                    if let Some(end) = end.upgrade() {
                        end.carry_on();
                    }
                }
                Task::Run(task) => task(),
            }
        }
    }

    fn next(&self) -> Task {
        let mut tasks = self.tasks();
        loop {
            if let Some(task) = tasks.pop_front() {
                return task;
            }
            let woken = self.changed.wait(tasks);
            tasks = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }
}
