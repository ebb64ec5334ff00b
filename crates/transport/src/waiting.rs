//! How a thread waits at a doorbell.
//!
//! A waiter first spins, since waking a thread takes longer than most waits. Meanwhile the waiter
//! takes in messages from its carriers. As soon as other threads seem to want the core, the waiter
//! offers the core between two looks. A waiter whose one carrier has sockets then sleeps at the
//! sockets, and takes in messages after each sleep. Any other waiter sleeps at the words of the
//! doorbell.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::carrier::Carrier;
use crate::doorbell::Doorbell;
use crate::inbox::{Inbox, IncomingMessage};
use crate::spin::{WaitPolicy, spin_until};
use crate::sync::{Wake, WakeEvent};

/// How long a waiter spins before it sleeps, where other threads want the core.
const SPIN_TIME: Duration = Duration::from_micros(50);

/// How long a waiter spins before it sleeps, where no other thread wants the core. To wake a sleeper
/// costs the sender some 11 µs a message, which is longer than most steps of a coupling.
const UNDISTURBED_SPIN_TIME: Duration = Duration::from_millis(2);

/// How long a waiter spins before the first offer of the core to other threads, if none seems to
/// want it.
const YIELD_AFTER: Duration = Duration::from_micros(4);

/// How many looks there are between two looks at the clock.
const LOOKS: u32 = 32;

/// If an offer of the core takes longer than `TAKEN_OFFER`, another thread took the core: cores are
/// short.
const TAKEN_OFFER: Duration = Duration::from_micros(1);

/// The longest time that a waiter takes in messages of other threads, if the messages do not stop.
const LONGEST_SPIN: Duration = Duration::from_millis(10);

/// The wait policy of a waiter at a doorbell: a spin until a ring, or for a while without messages,
/// and then sleeps at sockets.
struct DoorbellWait<'a> {
    bell: &'a Doorbell,
    /// The rings before the wait.
    seen: u32,
    /// How long the wait lasts at most.
    limit: Option<Duration>,
    /// When the spin began, and when a message came in last. `None` before the first look has
    /// failed: a wait may be shorter than a look at the clock.
    times: Option<(Instant, Instant)>,
    /// When the waiter last offered the core to other threads.
    offered: Option<Instant>,
    /// How many of the last offers were taken, in a row.
    taken_offers: u32,
    /// How a sleep at sockets has ended the wait.
    wake: Option<Wake>,
}

impl WaitPolicy for DoorbellWait<'_> {
    fn is_over(&mut self, taken_in: usize) -> bool {
        if self.wake.is_some() || self.bell.rings() != self.seen {
            return true;
        }
        // One look at the clock for each call: where cores are short, all waiters come by here in
        // turn.
        let now = Instant::now();
        if let Some(offered) = self.offered.take() {
            let is_taken = now - offered > TAKEN_OFFER;
            self.bell.set_crowded(is_taken);
            self.taken_offers = if is_taken { self.taken_offers + 1 } else { 0 };
        }
        let longest = self
            .limit
            .map_or(LONGEST_SPIN, |limit| limit.min(LONGEST_SPIN));
        let (begun, busy) = self.times.get_or_insert((now, now));
        if taken_in > 0 {
            *busy = now;
        } else if now - *busy > YIELD_AFTER || self.bell.is_crowded() {
            std::thread::yield_now();
            self.offered = Some(now);
        }
        // A timer of the system may take the core once, which is no other thread.
        let spin_time = match self.taken_offers {
            0 | 1 => UNDISTURBED_SPIN_TIME,
            _ => SPIN_TIME,
        };
        now - *busy > spin_time || now - *begun > longest
    }

    fn looks(&self) -> u32 {
        // Where cores are short, messages come while another thread has the core.
        if self.bell.is_crowded() { 1 } else { LOOKS }
    }

    fn sleep_at(&mut self, sockets: &[BorrowedFd<'_>], event: &Arc<WakeEvent>) -> bool {
        // An offer of the core that a sleep follows would count as taken for as long as the sleep.
        self.offered = None;
        if self.bell.rings() != self.seen {
            self.wake = Some(Wake::Rung);
        }
        if self.wake.is_none() {
            let left = self.limit.map(|limit| limit.saturating_sub(self.elapsed()));
            self.wake = self.bell.sleep_at(self.seen, left, sockets, event);
        }
        self.wake.is_none()
    }
}

impl DoorbellWait<'_> {
    /// How long the wait has lasted.
    fn elapsed(&mut self) -> Duration {
        let now = Instant::now();
        let (begun, _) = *self.times.get_or_insert((now, now));
        now - begun
    }
}

impl Doorbell {
    /// Has the listener called at the next ring, and when something comes by `carriers`. False, and
    /// no call, if the bell has rung since `seen` or something has come.
    pub fn arm(&self, seen: u32, carriers: &[Arc<dyn Carrier>]) -> bool {
        self.arm_if(seen, || carriers.iter().all(|carrier| carrier.arm(self)))
    }

    /// Spins until the bell has rung since `seen`, for a few microseconds at most, and takes in
    /// messages from `carrier` meanwhile. Where cores are short, looks once.
    pub fn is_rung_soon(&self, seen: u32, carrier: &dyn Carrier) -> bool {
        let begun = Instant::now();
        let is_crowded = self.is_crowded();
        let has_rung = || self.rings() != seen;
        carrier.attend(&mut |_| has_rung() || is_crowded || begun.elapsed() > YIELD_AFTER);
        has_rung()
    }

    /// Waits until the bell has rung since `seen`, for at most `limit`. May, seldom, return
    /// [`Wake::Rung`] without a ring. Takes in messages from `carriers` before the thread sleeps.
    pub fn wait(&self, seen: u32, limit: Option<Duration>, carriers: &[&dyn Carrier]) -> Wake {
        let mut policy = self.wait_policy(seen, limit);
        self.spin(&mut policy, carriers)
            .unwrap_or_else(|| self.sleep(policy, carriers))
    }

    /// As [`Doorbell::wait`], for the next message of an empty inbox, which comes by `carrier`. May
    /// return the message itself; the inbox has then counted the message as taken.
    pub fn wait_for(
        &self,
        seen: u32,
        limit: Option<Duration>,
        carrier: &dyn Carrier,
        inbox: &Inbox,
    ) -> Result<IncomingMessage, Wake> {
        let mut wake = (self.rings() != seen).then_some(Wake::Rung);
        let mut policy = self.wait_policy(seen, limit);
        if limit.is_none_or(|limit| limit >= SPIN_TIME) {
            let mut message = IncomingMessage::default();
            if carrier.attend_one(inbox, &mut policy, &mut message) {
                return Ok(message);
            }
            carrier.attend(&mut policy);
            wake = self.finish_spin(&mut policy, &[carrier]);
        }
        Err(wake.unwrap_or_else(|| self.sleep(policy, &[carrier])))
    }

    /// Spins briefly for the next message of an empty inbox, which comes by `carrier`: about as long
    /// as it takes to read the clock a few times. Looks once if cores are short. True if the message
    /// is in `message`; the inbox has then counted the message as taken.
    #[inline(always)]
    pub fn glance(
        &self,
        carrier: &dyn Carrier,
        inbox: &Inbox,
        message: &mut IncomingMessage,
    ) -> bool {
        let mut looked = self.is_crowded();
        let mut policy = |_| std::mem::replace(&mut looked, true);
        carrier.attend_one(inbox, &mut policy, message)
    }

    /// As [`Doorbell::glance`], with the caller's own look, after a look that has found nothing. Returns
    /// what `look` finds; `None` if the bell rings first.
    #[inline(always)]
    pub fn glance_by<T>(&self, look: impl Fn() -> Option<T>) -> Option<T> {
        if self.is_crowded() {
            return None;
        }
        let seen = self.rings();
        (0..LOOKS)
            .take_while(|_| self.rings() == seen)
            .find_map(|_| {
                std::hint::spin_loop();
                look()
            })
    }

    fn spin(&self, policy: &mut DoorbellWait<'_>, carriers: &[&dyn Carrier]) -> Option<Wake> {
        if policy.limit.is_some_and(|limit| limit < SPIN_TIME) {
            carriers.iter().for_each(|carrier| carrier.look());
            return (self.rings() != policy.seen).then_some(Wake::Rung);
        }
        if let [carrier] = carriers {
            carrier.attend(policy);
        }
        self.finish_spin(policy, carriers)
    }

    /// Looks for rings until the spin is over. Returns how the wait has ended, if so.
    fn finish_spin(
        &self,
        policy: &mut DoorbellWait<'_>,
        carriers: &[&dyn Carrier],
    ) -> Option<Wake> {
        let seen = policy.seen;
        while !policy.is_over(0) {
            carriers.iter().for_each(|carrier| carrier.look());
            if spin_until(policy, || self.rings() != seen) {
                return Some(Wake::Rung);
            }
        }
        policy
            .wake
            .or_else(|| (self.rings() != seen).then_some(Wake::Rung))
    }

    fn wait_policy(&self, seen: u32, limit: Option<Duration>) -> DoorbellWait<'_> {
        DoorbellWait {
            bell: self,
            seen,
            limit,
            times: None,
            offered: None,
            taken_offers: 0,
            wake: None,
        }
    }

    /// Sleeps for the rest of the time of a wait whose spin is over.
    fn sleep(&self, mut policy: DoorbellWait<'_>, carriers: &[&dyn Carrier]) -> Wake {
        let left = policy
            .limit
            .map(|limit| limit.saturating_sub(policy.elapsed()));
        self.sleep_if(policy.seen, left, || {
            carriers.iter().all(|carrier| carrier.arm(self))
        })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::inbox::Acknowledge;
    use crate::sync::{AtomicU32, Ordering};
    use crate::{LinkError, Medium, Outgoing, SendReport};
    use std::io::Write as _;
    use std::os::fd::AsFd as _;
    use std::os::unix::net::UnixStream;
    use std::sync::Arc;
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

    #[test]
    fn a_sleep_at_sockets_is_no_offer_of_the_core() {
        let bell = Doorbell::default();
        let (mut peer, socket) = UnixStream::pair().unwrap();
        peer.write_all(b"x").unwrap();
        let event = Arc::new(WakeEvent::new().unwrap());
        let mut policy = bell.wait_policy(bell.rings(), None);
        policy.offered = Some(Instant::now());
        assert!(
            policy.sleep_at(&[socket.as_fd()], &event),
            "bytes are there"
        );
        assert!(
            policy.offered.is_none(),
            "the sleep would count as the offer's length"
        );
        bell.ring();
        assert!(!policy.sleep_at(&[socket.as_fd()], &event));
        assert_eq!(policy.wake, Some(Wake::Rung));
    }

    /// A carrier that brings messages for other threads all the time.
    struct Busy;

    impl Acknowledge for Busy {
        fn acknowledge(&self, _: ConduitId, _: Ack) {}
    }

    impl Carrier for Busy {
        fn medium(&self) -> Medium {
            Medium::Tcp
        }

        fn send(&self, _: &Outgoing<'_>) -> Result<SendReport, LinkError> {
            Err(LinkError::Closed)
        }

        fn end(&self, _: ConduitId, _: u64) {}

        fn ask(&self, _: ConduitId, _: u64) {}

        fn attend(&self, policy: &mut dyn WaitPolicy) {
            while !policy.is_over(1) {}
        }
    }

    #[test]
    fn messages_for_other_threads_delay_no_wait_beyond_its_limit() {
        let bell = Doorbell::default();
        let limit = Some(Duration::from_millis(1));
        assert_eq!(bell.wait(bell.rings(), limit, &[&Busy]), Wake::Timeout);
    }

    #[test]
    fn a_limit_may_have_any_length() {
        let bell = Arc::new(Doorbell::default());
        let seen = bell.rings();
        let sleeper = std::thread::spawn({
            let bell = bell.clone();
            move || bell.wait(seen, Some(Duration::MAX), &[])
        });
        while bell.words().sleepers.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        // The kernel refuses a limit beyond its counter; the wait would then return at once, over
        // and over.
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
        while bell.words().sleepers.load(Ordering::SeqCst) < 4 {
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
    use crate::sync::Ordering;
    use loom::sync::Arc;
    use loom::sync::atomic::AtomicBool;
    use loom::thread;

    /// A waiter like the runtime's: note the rings, look for the thing, sleep. Loom reports a
    /// deadlock if a ring is lost.
    fn wait_for(bell: &Doorbell, thing: &AtomicBool) {
        loop {
            let seen = bell.rings();
            if thing.load(Ordering::SeqCst) {
                return;
            }
            bell.sleep(bell.wait_policy(seen, None), &[]);
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

    /// A caller arms the bell instead of sleeping: the caller sees the thing, or the bell's
    /// listener is called.
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
