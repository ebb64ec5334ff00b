//! The one place where an instance waits.
//!
//! A doorbell is a counter that rings raise and a count of sleepers. A waiter notes the counter, looks whether what
//! it needs is there, and sleeps only if the counter is still the same, so no ring is lost. A ring makes a system
//! call only if somebody sleeps. The words are plain 32-bit integers in memory that peers on this host map, so that they
//! can ring it (see [`crate::shm`]); a futex on them needs no descriptor, so a thousand instances cost none.
//!
//! A waiter first looks for a while, since to be woken takes longer than most waits. As soon as others seem to want the
//! core it offers it to them between two looks.

use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use crate::carrier::look;
use crate::shm::Place;
use crate::sync::{AtomicU32, Futex, Ordering};
use crate::{Attention, Carrier, Inbox, Message};

/// How long to look before going to sleep.
const SPIN: Duration = Duration::from_micros(50);

/// How long to look before the core is offered to others, where nobody else seems to want it.
const GRACE: Duration = Duration::from_micros(4);

/// How often to look before the clock is asked again.
const LOOKS: u32 = 32;

/// An offer that took longer was taken: cores are short.
const TAKEN: Duration = Duration::from_micros(1);

/// How long a caller takes in what comes for others as well, if that does not stop.
const LONGEST: Duration = Duration::from_millis(10);

/// Beside the count of sleepers: somebody who does not sleep is to be told of the next ring.
const ARMED: u32 = 1 << 31;

/// Rung by whatever an instance may wait for; waited at by the threads that call it.
///
/// Whoever must not wait [listens](Doorbell::listen) instead, and [arms](Doorbell::arm) the bell where others would go
/// to sleep.
#[derive(Debug)]
pub struct Doorbell {
    words: Words,
    /// Whether others wanted the core when it was last offered.
    crowded: AtomicBool,
    listener: OnceLock<Listener>,
}

/// The words of a doorbell, which may lie in memory shared with other processes.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct Bell {
    rings: Futex,
    /// How many sleep, and whether the bell is armed.
    sleepers: AtomicU32,
    used: AtomicU32,
}

struct Listener(Box<dyn Fn() + Send + Sync>);

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a listener")
    }
}

#[derive(Debug)]
enum Words {
    Shared(Place, &'static Bell),
    Own(Box<Bell>),
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

impl Bell {
    /// Wakes all who wait, from another process. A listener there is told by its own reactor.
    pub(crate) fn ring_from_afar(&self) {
        self.rings.increment();
        if self.sleepers.load(Ordering::SeqCst) & !ARMED > 0 {
            self.rings.wake_all();
        }
    }

    /// Says that it is somebody's.
    pub(crate) fn use_it(&self) {
        self.used.store(1, Ordering::SeqCst);
    }

    /// Whether it was ever somebody's.
    pub(crate) fn was_used(&self) -> bool {
        self.used.load(Ordering::SeqCst) != 0
    }
}

impl Default for Doorbell {
    fn default() -> Self {
        let words = match Place::take() {
            Some(place) => {
                let bell = place.bell();
                Words::Shared(place, bell)
            }
            None => Words::Own(Box::default()),
        };
        Doorbell {
            words,
            crowded: AtomicBool::new(false),
            listener: OnceLock::new(),
        }
    }
}

/// How long a waiter looks before it sleeps.
struct Spin<'a> {
    bell: &'a Doorbell,
    seen: u32,
    longest: Duration,
    /// When it began, and when something came in last. A wait may be shorter than a look at the clock, so there is none
    /// before the first look was in vain.
    times: Option<(Instant, Instant)>,
    /// When the core was last offered to others.
    offered: Option<Instant>,
}

impl Attention for Spin<'_> {
    fn enough(&mut self, taken_in: usize) -> bool {
        if self.bell.rings() != self.seen {
            return true;
        }
        // One look at the clock each time: where cores are short, all who wait on them take turns here.
        let now = Instant::now();
        if let Some(offered) = self.offered.take() {
            self.bell
                .crowded
                .store(now - offered > TAKEN, Ordering::Relaxed);
        }
        let (begun, busy) = self.times.get_or_insert((now, now));
        if taken_in > 0 {
            *busy = now;
        } else if now - *busy > GRACE || self.bell.crowded.load(Ordering::Relaxed) {
            std::thread::yield_now();
            self.offered = Some(now);
        }
        now - *busy > SPIN || now - *begun > self.longest
    }

    fn looks(&self) -> u32 {
        // Where cores are short, what we wait for comes while the core is another's.
        if self.bell.crowded.load(Ordering::Relaxed) {
            1
        } else {
            LOOKS
        }
    }
}

impl Doorbell {
    /// The count to hand to [`Doorbell::wait`]; take it before looking whether a wait is needed.
    pub fn rings(&self) -> u32 {
        self.bell().rings.load()
    }

    /// Wakes all who wait. Cheap when nobody sleeps.
    pub fn ring(&self) {
        let bell = self.bell();
        // The order of these two, and of the two in `sleep`, is what loses no ring: either we see the sleeper, or it
        // sees the ring.
        bell.rings.increment();
        let sleepers = bell.sleepers.load(Ordering::SeqCst);
        if sleepers > 0 {
            self.wake(sleepers);
        }
    }

    #[cold]
    fn wake(&self, sleepers: u32) {
        let bell = self.bell();
        if sleepers & !ARMED > 0 {
            bell.rings.wake_all();
        }
        if sleepers & ARMED > 0
            && bell.sleepers.fetch_and(!ARMED, Ordering::SeqCst) & ARMED > 0
            && let Some(Listener(listener)) = self.listener.get()
        {
            listener();
        }
    }

    /// Has `listener` told of rings, each time by the first one after [`Doorbell::arm`]. It is called on the thread that
    /// rings, and must neither wait nor call the user's code. A bell has one listener; a second one is passed over.
    pub fn listen(&self, listener: impl Fn() + Send + Sync + 'static) {
        let _ = self.listener.set(Listener(Box::new(listener)));
    }

    /// Has the listener told of the next ring, and of what comes by `carriers`. False if the bell has rung since `seen`,
    /// or something has come, so that there is no need.
    pub fn arm(&self, seen: u32, carriers: &[Arc<dyn Carrier>]) -> bool {
        let bell = self.bell();
        bell.sleepers.fetch_or(ARMED, Ordering::SeqCst);
        let armed = carriers.iter().all(|carrier| carrier.arm(self));
        let unchanged = armed && bell.rings.is_still(seen);
        if !unchanged {
            bell.sleepers.fetch_and(!ARMED, Ordering::SeqCst);
        }
        unchanged
    }

    /// Waits until the bell has rung since `seen`, for at most `limit`. May, seldom, come back as rung without a ring.
    /// Before it goes to sleep, what comes by `carriers` is taken in here.
    pub fn wait(&self, seen: u32, limit: Option<Duration>, carriers: &[&dyn Carrier]) -> Wake {
        if self.spin(seen, limit, carriers) {
            Wake::Rung
        } else {
            self.sleep(seen, limit, carriers)
        }
    }

    /// As [`Doorbell::wait`], for the next message of an inbox, which is empty. It comes by `carrier`, and may be handed
    /// over here; the inbox has counted it as taken then.
    pub fn wait_for(
        &self,
        seen: u32,
        limit: Option<Duration>,
        carrier: &dyn Carrier,
        inbox: &Inbox,
    ) -> Result<Message, Wake> {
        let mut rung = self.rings() != seen;
        if limit.is_none_or(|limit| limit >= SPIN) {
            let mut attention = self.attention(seen, limit);
            if let Some(message) = carrier.attend_one(inbox, &mut attention) {
                return Ok(message);
            }
            carrier.attend(&mut attention);
            rung = self.stay(attention, &[carrier]);
        }
        Err(if rung {
            Wake::Rung
        } else {
            self.sleep(seen, limit, &[carrier])
        })
    }

    /// Looks for the next message of an inbox, which is empty, no longer than it takes to ask a clock a few times. It comes
    /// by `carrier`; the inbox has counted it as taken.
    pub fn glance(&self, carrier: &dyn Carrier, inbox: &Inbox) -> Option<Message> {
        if self.crowded.load(Ordering::Relaxed) {
            return None;
        }
        let mut looked = false;
        carrier.attend_one(inbox, &mut |_| std::mem::replace(&mut looked, true))
    }

    /// Its number among the bells that other processes can ring, if it is one of them. Whoever listens is told by this
    /// process's reactor instead.
    pub(crate) fn number(&self) -> Option<u32> {
        match &self.words {
            Words::Shared(place, _) if self.listener.get().is_none() => Some(place.number()),
            _ => None,
        }
    }

    fn bell(&self) -> &Bell {
        match &self.words {
            Words::Shared(_, bell) => bell,
            Words::Own(bell) => bell,
        }
    }

    fn spin(&self, seen: u32, limit: Option<Duration>, carriers: &[&dyn Carrier]) -> bool {
        if limit.is_some_and(|limit| limit < SPIN) {
            carriers.iter().for_each(|carrier| carrier.look());
            return self.rings() != seen;
        }
        let mut attention = self.attention(seen, limit);
        if let [carrier] = carriers {
            carrier.attend(&mut attention);
        }
        self.stay(attention, carriers)
    }

    /// Looks for rings with what is left of the attention; whether there was one.
    fn stay(&self, mut attention: Spin<'_>, carriers: &[&dyn Carrier]) -> bool {
        let seen = attention.seen;
        while !attention.enough(0) {
            carriers.iter().for_each(|carrier| carrier.look());
            if look(&attention, || self.rings() != seen) {
                return true;
            }
        }
        self.rings() != seen
    }

    fn attention(&self, seen: u32, limit: Option<Duration>) -> Spin<'_> {
        Spin {
            bell: self,
            seen,
            longest: limit.map_or(LONGEST, |limit| limit.min(LONGEST)),
            times: None,
            offered: None,
        }
    }

    fn sleep(&self, seen: u32, limit: Option<Duration>, carriers: &[&dyn Carrier]) -> Wake {
        let bell = self.bell();
        bell.sleepers.fetch_add(1, Ordering::SeqCst);
        let armed = carriers.iter().all(|carrier| carrier.arm(self));
        let wake = if armed {
            bell.rings.wait(seen, limit)
        } else {
            Wake::Rung
        };
        bell.sleepers.fetch_sub(1, Ordering::SeqCst);
        wake
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::{Lost, Medium, Outgoing, Sent};
    use titin_wire::ConduitId;
    use titin_wire::frame::Ack;

    #[test]
    fn a_ring_before_the_wait_is_not_lost() {
        let bell = Doorbell::default();
        let seen = bell.rings();
        bell.ring();
        assert_eq!(bell.wait(seen, None, &[]), Wake::Rung);
    }

    #[test]
    fn time_runs_out() {
        let bell = Doorbell::default();
        assert_eq!(
            bell.wait(bell.rings(), Some(Duration::from_millis(1)), &[]),
            Wake::Timeout
        );
        assert_eq!(
            bell.wait(bell.rings(), Some(Duration::ZERO), &[]),
            Wake::Timeout
        );
    }

    /// Brings something for others all the time.
    struct Busy;

    impl Carrier for Busy {
        fn medium(&self) -> Medium {
            Medium::Tcp
        }

        fn send(&self, _: &Outgoing<'_>) -> Result<Sent, Lost> {
            Err(Lost::Closed)
        }

        fn end(&self, _: ConduitId, _: u64) {}

        fn acknowledge(&self, _: ConduitId, _: Ack) {}

        fn ask(&self, _: ConduitId, _: u64) {}

        fn attend(&self, attention: &mut dyn Attention) {
            while !attention.enough(1) {}
        }
    }

    #[test]
    fn what_comes_for_others_keeps_nobody() {
        let bell = Doorbell::default();
        let limit = Some(Duration::from_millis(1));
        assert_eq!(bell.wait(bell.rings(), limit, &[&Busy]), Wake::Timeout);
    }

    #[test]
    fn a_limit_may_be_as_long_as_it_likes() {
        let bell = Arc::new(Doorbell::default());
        let seen = bell.rings();
        let sleeper = std::thread::spawn({
            let bell = bell.clone();
            move || bell.wait(seen, Some(Duration::MAX), &[])
        });
        while bell.bell().sleepers.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        // The kernel would refuse a limit that it cannot count, and the wait would come back at once, again and again.
        assert!(!sleeper.is_finished() && bell.rings() == seen);
        bell.ring();
        assert_eq!(sleeper.join().unwrap(), Wake::Rung);
    }

    #[test]
    fn a_listener_is_told_once_each_time_that_the_bell_is_armed() {
        let (bell, told) = (Doorbell::default(), Arc::new(AtomicU32::new(0)));
        bell.listen({
            let told = told.clone();
            move || {
                told.fetch_add(1, Ordering::SeqCst);
            }
        });
        bell.ring();
        assert_eq!(told.load(Ordering::SeqCst), 0, "nobody asked");
        let seen = bell.rings();
        for _ in 0..2 {
            assert!(bell.arm(bell.rings(), &[]));
            bell.ring();
            bell.ring();
        }
        assert_eq!(told.load(Ordering::SeqCst), 2);
        assert!(!bell.arm(seen, &[]), "it has rung since");
        bell.ring();
        assert_eq!(told.load(Ordering::SeqCst), 2);
        assert_eq!(
            bell.wait(bell.rings(), Some(Duration::from_millis(1)), &[]),
            Wake::Timeout
        );
    }

    #[test]
    fn every_sleeper_wakes() {
        let bell = Arc::new(Doorbell::default());
        let seen = bell.rings();
        let sleepers: Vec<_> = (0..4)
            .map(|_| {
                let bell = bell.clone();
                std::thread::spawn(move || bell.wait(seen, None, &[]))
            })
            .collect();
        while bell.bell().sleepers.load(Ordering::SeqCst) < 4 {
            std::thread::yield_now();
        }
        bell.ring();
        assert!(
            sleepers
                .into_iter()
                .all(|sleeper| sleeper.join().unwrap() == Wake::Rung)
        );
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use loom::sync::Arc;
    use loom::sync::atomic::AtomicBool;
    use loom::thread;

    /// A waiter as the runtime's: look at the count, look for the thing, sleep. Loom reports a deadlock if a ring is
    /// lost.
    fn wait_for(bell: &Doorbell, thing: &AtomicBool) {
        loop {
            let seen = bell.rings();
            if thing.load(Ordering::SeqCst) {
                return;
            }
            bell.sleep(seen, None, &[]);
        }
    }

    #[test]
    fn loom_no_ring_is_lost() {
        crate::sync::check(|| {
            let (bell, thing) = (
                Arc::new(Doorbell::default()),
                Arc::new(AtomicBool::new(false)),
            );
            let ringer = thread::spawn({
                let (bell, thing) = (bell.clone(), thing.clone());
                move || {
                    thing.store(true, Ordering::SeqCst);
                    bell.ring();
                }
            });
            wait_for(&bell, &thing);
            ringer.join().unwrap();
        });
    }

    #[test]
    fn loom_every_waiter_is_woken() {
        crate::sync::check(|| {
            let (bell, thing) = (
                Arc::new(Doorbell::default()),
                Arc::new(AtomicBool::new(false)),
            );
            let other = thread::spawn({
                let (bell, thing) = (bell.clone(), thing.clone());
                move || wait_for(&bell, &thing)
            });
            let ringer = thread::spawn({
                let (bell, thing) = (bell.clone(), thing.clone());
                move || {
                    thing.store(true, Ordering::SeqCst);
                    bell.ring();
                }
            });
            wait_for(&bell, &thing);
            other.join().unwrap();
            ringer.join().unwrap();
        });
    }

    /// Whoever arms the bell instead of sleeping: it sees the thing, or is told.
    #[test]
    fn loom_no_ring_is_lost_on_a_listener() {
        crate::sync::check(|| {
            let (bell, thing) = (
                Arc::new(Doorbell::default()),
                Arc::new(AtomicBool::new(false)),
            );
            let told = Arc::new(AtomicBool::new(false));
            bell.listen({
                let told = told.clone();
                move || told.store(true, Ordering::SeqCst)
            });
            let ringer = thread::spawn({
                let (bell, thing) = (bell.clone(), thing.clone());
                move || {
                    thing.store(true, Ordering::SeqCst);
                    bell.ring();
                }
            });
            let mut seen = false;
            loop {
                let rings = bell.rings();
                seen = seen || thing.load(Ordering::SeqCst);
                if seen || bell.arm(rings, &[]) {
                    break;
                }
            }
            ringer.join().unwrap();
            assert!(seen || told.load(Ordering::SeqCst));
        });
    }
}
