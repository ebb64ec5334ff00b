//! The threads that sleep at sockets, and at a doorbell as well.
//!
//! A thread that sleeps in `poll` does not see the words of a doorbell. Such a thread polls a wake
//! event beside its sockets, and a ring of the doorbell sets the wake events of all the threads.
//! Another process rings a bell only if a thread has noted the bell's number in the ring from that
//! process before sleeping. A thread at sockets notes none, so the count of such threads stays out of
//! shared memory.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use titin_os::descriptors::forked;

use crate::sync::{AtomicU32, Mutex, MutexGuard, Ordering, Wake, WakeEvent};

/// The threads that sleep at sockets until one doorbell rings.
#[derive(Debug, Default)]
pub(crate) struct SocketSleepers {
    count: AtomicU32,
    asleep: Mutex<Vec<Sleeper>>,
}

/// A thread that sleeps at sockets.
#[derive(Debug)]
struct Sleeper {
    event: Arc<WakeEvent>,
    /// Whether a ring has set the event.
    is_woken: bool,
}

impl SocketSleepers {
    /// Wakes all threads. Cheap when none sleeps. The caller has changed the count of rings before.
    #[inline(always)]
    pub(crate) fn wake(&self) {
        // `SocketSleepers::sleep_unless` has the two accesses in the opposite order. Therefore
        // either the ringing thread sees the sleeper, or the sleeper sees the ring.
        if self.count.load(Ordering::SeqCst) > 0 {
            self.set_events();
        }
    }

    #[cold]
    fn set_events(&self) {
        // In a forked child the sleepers are threads of the parent, and one of them may hold the
        // lock for ever.
        if forked() {
            return;
        }
        for sleeper in &mut *self.lock() {
            if !std::mem::replace(&mut sleeper.is_woken, true) {
                sleeper.event.set();
            }
        }
    }

    /// Sleeps until one of `sockets` is ready, a ring wakes the thread, or `limit` has passed,
    /// unless `has_rung` is true once the thread counts as a sleeper. No other thread sleeps at
    /// `event`. Returns why the thread woke, or `None` if a socket is ready.
    pub(crate) fn sleep_unless(
        &self,
        has_rung: impl Fn() -> bool,
        limit: Option<Duration>,
        sockets: &[BorrowedFd<'_>],
        event: &Arc<WakeEvent>,
    ) -> Option<Wake> {
        self.enter(event);
        let wake = if has_rung() {
            Some(Wake::Rung)
        } else {
            event.sleep(sockets, limit)
        };
        self.leave(event);
        if has_rung() { Some(Wake::Rung) } else { wake }
    }

    fn enter(&self, event: &Arc<WakeEvent>) {
        self.lock().push(Sleeper {
            event: event.clone(),
            is_woken: false,
        });
        self.count.fetch_add(1, Ordering::SeqCst);
    }

    fn leave(&self, event: &Arc<WakeEvent>) {
        self.count.fetch_sub(1, Ordering::SeqCst);
        let mut asleep = self.lock();
        let index = asleep
            .iter()
            .position(|sleeper| Arc::ptr_eq(&sleeper.event, event))
            .expect("a sleeper is listed until it leaves");
        let sleeper = asleep.swap_remove(index);
        drop(asleep);
        // No ring sets the event of a thread that is no longer listed.
        if sleeper.is_woken {
            sleeper.event.clear();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Sleeper>> {
        self.asleep
            .lock()
            .expect("nothing panics while the sleepers are locked")
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use crate::doorbell::Doorbell;
    use loom::sync::atomic::AtomicBool;
    use loom::thread;

    /// A waiter like the runtime's: note the rings, look for the thing, sleep. Loom reports a
    /// deadlock if a ring is lost.
    fn wait_for(bell: &Doorbell, event: &Arc<WakeEvent>, thing: &AtomicBool) {
        loop {
            let seen = bell.rings();
            if thing.load(Ordering::SeqCst) {
                return;
            }
            bell.sleep_at(seen, None, &[], event);
        }
    }

    fn ringer(bell: &Arc<Doorbell>, thing: &Arc<AtomicBool>) -> thread::JoinHandle<()> {
        let (bell, thing) = (bell.clone(), thing.clone());
        thread::spawn(move || {
            thing.store(true, Ordering::SeqCst);
            bell.ring();
        })
    }

    /// The event is clear after the sleep, even if the ring comes late: another sleep at the event
    /// would otherwise end at once.
    #[test]
    fn loom_no_ring_is_lost_on_a_sleeper_at_sockets() {
        crate::sync::check(|| {
            let (bell, thing) = (Arc::new(Doorbell::default()), Arc::default());
            let event = Arc::new(WakeEvent::new().unwrap());
            let ringer = ringer(&bell, &thing);
            wait_for(&bell, &event, &thing);
            ringer.join().unwrap();
            assert!(!event.is_set());
        });
    }

    #[test]
    fn loom_every_sleeper_at_sockets_is_woken() {
        crate::sync::check(|| {
            let (bell, thing) = (Arc::new(Doorbell::default()), Arc::default());
            let ringer = ringer(&bell, &thing);
            let other = thread::spawn({
                let (bell, thing) = (bell.clone(), thing.clone());
                move || wait_for(&bell, &Arc::new(WakeEvent::new().unwrap()), &thing)
            });
            wait_for(&bell, &Arc::new(WakeEvent::new().unwrap()), &thing);
            other.join().unwrap();
            ringer.join().unwrap();
        });
    }
}
