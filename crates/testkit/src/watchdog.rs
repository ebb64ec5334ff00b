//! Ends a test process that makes no progress, so that a hang is a failure with a name.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, Once};
use std::time::Duration;

/// How long nothing may happen.
const LIMIT: Duration = Duration::from_secs(60);

static STEPS: AtomicU64 = AtomicU64::new(0);
static WATCHED: Mutex<Vec<(u64, String)>> = Mutex::new(Vec::new());
static THREAD: Once = Once::new();

/// Watches a test as long as it lives.
pub struct Watchdog(u64);

/// Tells the watchdog that a test has come further.
pub fn progress() {
    STEPS.fetch_add(1, Ordering::Relaxed);
}

impl Watchdog {
    /// Watches the test that runs on this thread.
    pub fn start() -> Self {
        THREAD.call_once(|| drop(std::thread::spawn(watch)));
        let number = STEPS.fetch_add(1, Ordering::Relaxed);
        let name = std::thread::current().name().unwrap_or("a test").to_owned();
        WATCHED.lock().expect("never poisoned").push((number, name));
        Watchdog(number)
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        progress();
        WATCHED
            .lock()
            .expect("never poisoned")
            .retain(|(number, _)| *number != self.0);
    }
}

fn watch() {
    let mut seen = STEPS.load(Ordering::Relaxed);
    loop {
        std::thread::sleep(LIMIT);
        let steps = STEPS.load(Ordering::Relaxed);
        let watched = WATCHED.lock().expect("never poisoned").clone();
        if steps == seen && !watched.is_empty() {
            let names: Vec<String> = watched.into_iter().map(|(_, name)| name).collect();
            eprintln!(
                "watchdog: nothing has happened for {LIMIT:?} in {}",
                names.join(", ")
            );
            std::process::abort();
        }
        seen = steps;
    }
}
