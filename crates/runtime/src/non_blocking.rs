//! Instances that do not wait. Where a call of another instance would sleep, a call of a
//! non-blocking instance comes back as pending.
//!
//! The program makes the same call again once the [`ReadyList`] says that the instance can go on.
//! So thousands of instances need few threads, and titin has each call only once: `serial::wait`
//! returns in place of a sleep, and the calls leave out the fast ways before a wait. A repeated
//! call goes on from where the call was.

use std::collections::VecDeque;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, eventfd};
use titin_os::Descriptor;
use titin_transport::Doorbell;
use titin_wire::ConduitId;

use crate::{Error, Kind, Result};

/// The time `by` after `time`; `None` beyond the range of the clock, and so never.
pub(crate) fn later(time: Instant, by: Duration) -> Option<Instant> {
    time.checked_add(by)
}

/// Instances that can go on, by their numbers on the list. One thread takes the numbers.
#[derive(Default)]
pub struct ReadyList {
    queue: Mutex<VecDeque<u64>>,
    bell: Doorbell,
    /// Readable while an instance is on the list, for programs that wait for descriptors.
    event: OnceLock<Descriptor>,
}

/// An instance's entry for a list: puts the instance on the list.
pub struct ReadyListEntry {
    list: Arc<ReadyList>,
    number: u64,
    /// Whether the instance has left the list. Changes, and is read, under the lock of the list.
    over: AtomicBool,
}

impl ReadyList {
    /// An empty list.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// The next instance that can go on. Waits at most for `limit`.
    pub fn next(&self, limit: Option<Duration>) -> Option<u64> {
        let end = limit.and_then(|limit| later(Instant::now(), limit));
        loop {
            let rings = self.bell.rings();
            if let Some(number) = self.take() {
                return Some(number);
            }
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return None;
            }
            self.bell.wait(rings, left, &[]);
        }
    }

    /// A descriptor, readable while an instance is on the list. The program must not read from the
    /// descriptor.
    ///
    /// # Errors
    /// If the system gives no descriptor.
    pub fn descriptor(&self) -> Result<RawFd> {
        let queue = self.lock();
        if self.event.get().is_none() {
            let made =
                eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(|error| {
                    Error::new(
                        Kind::Connection,
                        format!("no descriptor to wait for: {error}"),
                    )
                })?;
            let _ = self.event.set(made.into());
            if !queue.is_empty() {
                self.signal();
            }
        }
        Ok(self.event.get().expect("it was just made").as_raw_fd())
    }

    /// Puts an instance on the list.
    pub fn push(&self, number: u64) {
        self.append(self.lock(), number);
    }

    fn append(&self, mut queue: MutexGuard<'_, VecDeque<u64>>, number: u64) {
        queue.push_back(number);
        if queue.len() == 1 {
            self.signal();
        }
        drop(queue);
        self.bell.ring();
    }

    /// An entry that puts one instance on the list, under the given number.
    pub fn entry(self: &Arc<Self>, number: u64) -> Arc<ReadyListEntry> {
        Arc::new(ReadyListEntry {
            list: self.clone(),
            number,
            over: AtomicBool::new(false),
        })
    }

    fn take(&self) -> Option<u64> {
        let mut queue = self.lock();
        let number = queue.pop_front()?;
        if queue.is_empty() {
            self.clear_signal();
        }
        Some(number)
    }

    /// Makes the descriptor readable. The caller holds the lock, so descriptor and list agree.
    fn signal(&self) {
        if let Some(event) = self.event.get() {
            let _ = rustix::io::write(event, &1u64.to_ne_bytes());
        }
    }

    /// Makes the descriptor no longer readable. The caller holds the lock.
    fn clear_signal(&self) {
        if let Some(event) = self.event.get() {
            let _ = rustix::io::read(event, &mut [0; 8]);
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<u64>> {
        self.queue
            .lock()
            .expect("nothing panics while the list is locked")
    }
}

impl ReadyListEntry {
    /// Puts the instance on the list, unless the instance has left.
    pub fn push(&self) {
        let queue = self.list.lock();
        if !self.over.load(Ordering::Relaxed) {
            self.list.append(queue, self.number);
        }
    }

    /// Takes the instance off the list for good. A thread that is about to put the instance on the
    /// list finds the instance gone. So the number may be an address of memory that is freed now.
    pub fn leave(&self) {
        let mut queue = self.list.lock();
        self.over.store(true, Ordering::Relaxed);
        let before = queue.len();
        queue.retain(|other| *other != self.number);
        if before > 0 && queue.is_empty() {
            self.list.clear_signal();
        }
    }
}

/// The pending calls of a non-blocking instance.
#[derive(Default)]
pub(crate) struct PendingCalls {
    state: Mutex<PendingState>,
}

#[derive(Default)]
struct PendingState {
    calls: Vec<PendingCall>,
    /// How long the last call was pending before the call went on.
    lasted: Duration,
}

/// A pending call. The closing call of an instance is about no conduit.
pub(crate) struct PendingCall {
    about: Option<ConduitId>,
    pub(crate) since: Instant,
    deadline: Option<Instant>,
    /// Whether senders know how many messages were taken.
    pub(crate) told: bool,
    /// Whether the manager need not, or not any more, hear of the call.
    pub(crate) silent: bool,
    pub(crate) reported: Option<u64>,
}

impl PendingCall {
    fn due(&self, tell_after: Duration, patience: Option<Duration>) -> Option<Instant> {
        let tell = later(self.since, tell_after).filter(|_| !self.told);
        let report = patience
            .filter(|_| !self.silent)
            .and_then(|patience| later(self.since, patience));
        [self.deadline, tell, report].into_iter().flatten().min()
    }

    /// Whether the time of the call is over.
    pub(crate) fn is_late(&self) -> bool {
        self.deadline
            .is_some_and(|deadline| deadline <= Instant::now())
    }
}

impl PendingCalls {
    /// Looks at the call about a conduit, perhaps a new call, and at the number of other pending
    /// calls.
    pub(crate) fn call<T>(
        &self,
        about: Option<ConduitId>,
        deadline: Option<Instant>,
        look: impl FnOnce(&mut PendingCall, usize) -> T,
    ) -> T {
        let mut state = self.lock();
        let index = state
            .calls
            .iter()
            .position(|call| call.about == about)
            .unwrap_or_else(|| {
                let silent = deadline.is_some();
                let since = Instant::now();
                state.calls.push(PendingCall {
                    about,
                    since,
                    deadline,
                    told: silent,
                    silent,
                    reported: None,
                });
                state.calls.len() - 1
            });
        let others = state.calls.len() - 1;
        look(&mut state.calls[index], others)
    }

    /// The number by which the manager knows the pending call.
    pub(crate) fn reported(&self, about: Option<ConduitId>) -> Option<u64> {
        self.lock()
            .calls
            .iter()
            .find(|call| call.about == about)?
            .reported
    }

    /// Since when a call about a conduit is pending.
    pub(crate) fn since(&self, about: Option<ConduitId>) -> Option<Instant> {
        self.lock()
            .calls
            .iter()
            .find(|call| call.about == about)
            .map(|call| call.since)
    }

    /// Notes that the call goes on. Returns the number by which the manager knows the call.
    pub(crate) fn proceeds(&self, about: Option<ConduitId>) -> Option<u64> {
        let mut state = self.lock();
        let index = state.calls.iter().position(|call| call.about == about)?;
        let call = state.calls.swap_remove(index);
        state.lasted = call.since.elapsed();
        call.reported
    }

    /// Forgets calls after the program has given the calls up. Returns the numbers by which the
    /// manager knows the calls.
    pub(crate) fn forget(&self, given_up: impl Fn(Option<ConduitId>) -> bool) -> Vec<u64> {
        let mut state = self.lock();
        state
            .calls
            .extract_if(.., |call| given_up(call.about))
            .filter_map(|call| call.reported)
            .collect()
    }

    pub(crate) fn is_pending(&self) -> bool {
        !self.lock().calls.is_empty()
    }

    /// Takes the numbers by which the manager knows calls still pending.
    pub(crate) fn take_reports(&self) -> Vec<u64> {
        let mut state = self.lock();
        state
            .calls
            .iter_mut()
            .filter_map(|call| call.reported.take())
            .collect()
    }

    /// How long the call that has just gone on was pending. Resets the time to zero.
    pub(crate) fn lasted(&self) -> Duration {
        std::mem::take(&mut self.lock().lasted)
    }

    /// When a pending call is due without news: the time of the call is over, or senders or the
    /// manager are to hear of the call.
    pub(crate) fn due(&self, tell_after: Duration, patience: Option<Duration>) -> Option<Instant> {
        self.lock()
            .calls
            .iter()
            .filter_map(|call| call.due(tell_after, patience))
            .min()
    }

    fn lock(&self) -> MutexGuard<'_, PendingState> {
        self.state
            .lock()
            .expect("nothing panics while the calls are locked")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    fn readable(ready: &ReadyList) -> bool {
        let event = ready.event.get().unwrap();
        let mut fds = [PollFd::new(event, PollFlags::IN)];
        poll(
            &mut fds,
            Some(&Timespec {
                tv_sec: 0,
                tv_nsec: 0,
            }),
        )
        .unwrap()
            == 1
    }

    #[test]
    fn the_descriptor_says_whether_somebody_is_on_the_list() {
        let ready = ReadyList::new();
        ready.push(7);
        ready.descriptor().unwrap();
        assert!(readable(&ready));
        ready.push(8);
        ready.push(9);
        assert_eq!((ready.next(None), ready.next(None)), (Some(7), Some(8)));
        assert!(readable(&ready));
        ready.entry(9).leave();
        assert!(!readable(&ready));
        assert_eq!(ready.next(Some(Duration::ZERO)), None);
    }

    #[test]
    fn who_has_left_does_not_come_again() {
        let ready = ReadyList::new();
        let (first, second) = (ready.entry(1), ready.entry(1));
        first.push();
        first.leave();
        // A thread that noticed a ring before `leave`, and calls `push` only now.
        first.push();
        assert_eq!(ready.next(Some(Duration::ZERO)), None);
        second.push();
        assert_eq!(
            ready.next(None),
            Some(1),
            "another instance has the same number later"
        );
    }

    #[test]
    fn whoever_waits_is_woken() {
        let ready = ReadyList::new();
        let taker = std::thread::spawn({
            let ready = ready.clone();
            move || ready.next(None)
        });
        ready.push(1);
        assert_eq!(taker.join().unwrap(), Some(1));
    }

    #[test]
    fn a_call_made_again_keeps_its_time() {
        let light = PendingCalls::default();
        let (about, later) = (
            Some(ConduitId(1)),
            Instant::now() + Duration::from_secs(3600),
        );
        let first = light.call(about, Some(later), |call, others| (call.since, others));
        let again = light.call(about, None, |call, others| (call.since, others));
        assert_eq!(first, again);
        assert_eq!(light.call(None, None, |_, others| others), 1);
        assert_eq!(light.due(Duration::from_secs(7200), None), Some(later));
        light.proceeds(about);
        assert!(light.due(Duration::from_secs(1), None).is_some());
        light.proceeds(None);
        assert_eq!(light.due(Duration::ZERO, Some(Duration::ZERO)), None);
    }

    #[test]
    fn a_call_that_was_given_up_is_forgotten_and_no_other() {
        let light = PendingCalls::default();
        let (one, other) = (Some(ConduitId(1)), Some(ConduitId(2)));
        light.call(one, Some(Instant::now()), |call, _| call.reported = Some(7));
        light.call(other, None, |_, _| ());
        assert_eq!(light.forget(|about| about == one), [7]);
        assert!(light.is_pending());
        assert!(
            !light.call(one, None, |call, _| call.is_late()),
            "it begins anew"
        );
        assert!(light.forget(|_| true).is_empty());
        assert!(!light.is_pending());
    }
}
