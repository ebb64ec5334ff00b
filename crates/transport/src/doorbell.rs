//! The one place where an instance waits.
//!
//! A doorbell is a counter that rings raise and a count of sleepers. A waiter notes the counter, looks whether what
//! it needs is there, and sleeps only if the counter is still the same, so no ring is lost. A ring makes a system
//! call only if somebody sleeps. The words are plain 32-bit integers that could stand in memory shared with other
//! processes; a futex on them needs no descriptor, so a thousand instances cost none.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::thread::futex;

/// How long to look at the counter before going to sleep, when a core is to spare for it.
const SPIN: Duration = Duration::from_micros(20);

/// Rung by whatever an instance may wait for; waited at by the threads that call it.
#[derive(Debug, Default)]
pub struct Doorbell {
    rings: AtomicU32,
    sleepers: AtomicU32,
}

/// Why a wait came back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wake {
    /// The bell rang since the count was taken.
    Rung,
    /// The time is up.
    Timeout,
    /// A signal arrived.
    Interrupted,
}

impl Doorbell {
    /// The count to hand to [`Doorbell::wait`]; take it before looking whether a wait is needed.
    pub fn rings(&self) -> u32 {
        self.rings.load(Ordering::SeqCst)
    }

    /// Wakes all who wait. Cheap when nobody sleeps.
    pub fn ring(&self) {
        self.rings.fetch_add(1, Ordering::SeqCst);
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            // Waking can fail only for a bad address, which a reference is not.
            let _ = futex::wake(&self.rings, futex::Flags::empty(), i32::MAX as u32);
        }
    }

    /// Waits until the bell has rung since `seen`, for at most `limit`.
    pub fn wait(&self, seen: u32, limit: Option<Duration>) -> Wake {
        if self.spin(seen, limit) {
            return Wake::Rung;
        }
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        let wake = self.sleep(seen, limit);
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
        wake
    }

    fn spin(&self, seen: u32, limit: Option<Duration>) -> bool {
        if limit.is_some_and(|limit| limit < SPIN) {
            return self.rings() != seen;
        }
        let start = Instant::now();
        loop {
            for _ in 0..32 {
                if self.rings() != seen {
                    return true;
                }
                std::hint::spin_loop();
            }
            if start.elapsed() > SPIN {
                return false;
            }
            // Where cores are short this gives ours to whoever is to ring; elsewhere it returns at once.
            std::thread::yield_now();
        }
    }

    fn sleep(&self, seen: u32, limit: Option<Duration>) -> Wake {
        let limit = limit.map(|limit| futex::Timespec {
            tv_sec: limit.as_secs() as i64,
            tv_nsec: limit.subsec_nanos().into(),
        });
        match futex::wait(&self.rings, futex::Flags::empty(), seen, limit.as_ref()) {
            Err(Errno::TIMEDOUT) => Wake::Timeout,
            Err(Errno::INTR) => Wake::Interrupted,
            _ => Wake::Rung,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn a_ring_before_the_wait_is_not_lost() {
        let bell = Doorbell::default();
        let seen = bell.rings();
        bell.ring();
        assert_eq!(bell.wait(seen, None), Wake::Rung);
    }

    #[test]
    fn time_runs_out() {
        let bell = Doorbell::default();
        assert_eq!(bell.wait(bell.rings(), Some(Duration::from_millis(1))), Wake::Timeout);
        assert_eq!(bell.wait(bell.rings(), Some(Duration::ZERO)), Wake::Timeout);
    }

    #[test]
    fn every_sleeper_wakes() {
        let bell = Arc::new(Doorbell::default());
        let seen = bell.rings();
        let sleepers: Vec<_> = (0..4)
            .map(|_| {
                let bell = bell.clone();
                std::thread::spawn(move || bell.wait(seen, None))
            })
            .collect();
        while bell.sleepers.load(Ordering::SeqCst) < 4 {
            std::thread::yield_now();
        }
        bell.ring();
        assert!(sleepers.into_iter().all(|sleeper| sleeper.join().unwrap() == Wake::Rung));
    }
}
