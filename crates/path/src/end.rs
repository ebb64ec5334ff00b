//! One end of a path: what the calls of the program and the reactor's thread share.

use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, TryLockError};
use std::time::Duration;

use titin_transport::{
    Carrier, ConduitTable, Doorbell, Inbox, InboxOptions, Link, LinkError, Window,
};
use titin_wire::Malformed;
use titin_wire::path::{BYTES_AHEAD, CONDUIT, MESSAGES_AHEAD, PathControl};

use crate::error::{PathError, Result};
use crate::interrupt::Interrupt;
use crate::receive::ReceiveState;
use crate::send::SendState;
use crate::time_limit::TimeLimit;

/// The most dropped messages of which an end keeps account until a call tells of them.
const MOST_DROPPED: usize = 64;

/// One end of a path.
pub(crate) struct PathEnd {
    pub(crate) name: String,
    pub(crate) link: Arc<Link>,
    pub(crate) carrier: Arc<dyn Carrier>,
    bell: Arc<Doorbell>,
    interrupt: Interrupt,
    conduits: Arc<ConduitTable>,
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) window: Arc<Window>,
    pub(crate) send_state: Mutex<SendState>,
    pub(crate) receive_state: Mutex<ReceiveState>,
    /// How many calls wait for their turn.
    waiting_for_turn: AtomicUsize,
    /// Why the path is no more.
    fault: OnceLock<PathError>,
    /// The messages of this end that the other end has dropped, until a call tells of them.
    dropped: Mutex<VecDeque<PathError>>,
    barriers: Mutex<OwnBarriers>,
    /// How many barriers the other end has come to.
    other_barriers: AtomicU64,
    /// How many messages the other program has received, once it has closed the path.
    received_there: AtomicU64,
}

/// The barriers of this end.
#[derive(Default)]
struct OwnBarriers {
    /// How many the program has come to.
    reached: u64,
    /// How many of these both programs have come to.
    passed: u64,
}

/// The turn of a call among those that use the same state.
pub(crate) struct Turn<'a, T> {
    /// `None` as the turn ends.
    state: Option<MutexGuard<'a, T>>,
    end: &'a PathEnd,
}

impl<T> Deref for Turn<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.state.as_deref().expect("the turn has not ended")
    }
}

impl<T> DerefMut for Turn<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.state.as_deref_mut().expect("the turn has not ended")
    }
}

impl<T> Drop for Turn<'_, T> {
    fn drop(&mut self) {
        self.state = None;
        if self.end.waiting_for_turn.load(Ordering::SeqCst) > 0 {
            self.end.bell.ring();
        }
    }
}

impl PathEnd {
    /// An end of a path by a new link, which has `conduits` of its own.
    pub(crate) fn new(
        name: String,
        link: &Arc<Link>,
        conduits: &Arc<ConduitTable>,
        interrupt: Interrupt,
    ) -> Arc<Self> {
        let (carrier, bell) = (link.carrier(), Arc::new(Doorbell::default()));
        let window = Window::new(bell.clone(), MESSAGES_AHEAD, BYTES_AHEAD);
        let end = Arc::new(PathEnd {
            name,
            link: link.clone(),
            carrier: carrier.clone(),
            bell: bell.clone(),
            interrupt,
            conduits: conduits.clone(),
            inbox: conduits.inbox(CONDUIT),
            window: Arc::new(window),
            send_state: Mutex::default(),
            receive_state: Mutex::default(),
            waiting_for_turn: AtomicUsize::new(0),
            fault: OnceLock::new(),
            dropped: Mutex::default(),
            barriers: Mutex::default(),
            other_barriers: AtomicU64::new(0),
            received_there: AtomicU64::new(0),
        });
        conduits.open_window(CONDUIT, end.window.clone());
        let options = InboxOptions {
            messages: MESSAGES_AHEAD,
            bytes: BYTES_AHEAD,
        };
        end.inbox.attach(bell, carrier, options);
        end
    }

    /// Takes a control message of the other end.
    ///
    /// # Errors
    /// [`Malformed`] if the message does not belong here.
    pub(crate) fn hear(&self, control: PathControl) -> std::result::Result<(), Malformed> {
        match control {
            PathControl::Dropped { message, why } => {
                let mut dropped = self.dropped.lock().expect("never poisoned");
                if dropped.len() < MOST_DROPPED {
                    dropped.push_back(PathError::Dropped { message, why });
                }
            }
            PathControl::Barrier => {
                self.other_barriers.fetch_add(1, Ordering::Release);
            }
            PathControl::Closing { received } => {
                self.received_there.store(received, Ordering::Release);
                self.window.close();
            }
            PathControl::Open { .. } | PathControl::Opened | PathControl::Refused { .. } => {
                let why = "a second one on the link of a path";
                return Err(Malformed::new("request for a path", why));
            }
        }
        self.bell.ring();
        Ok(())
    }

    /// Notes why the path is no more. The first reason stands.
    pub(crate) fn fail(&self, why: PathError) {
        let _ = self.fault.set(why);
        self.bell.ring();
    }

    /// As [`PathEnd::fail`], for bytes of the other end that make no sense. Returns the error.
    pub(crate) fn refuse(&self, why: Malformed) -> PathError {
        self.fail(PathError::Lost(LinkError::Malformed(why)));
        self.link.close();
        self.fault.get().expect("just set").clone()
    }

    /// Ends the path because the conduit lacks a message. Returns the error.
    pub(crate) fn break_off(&self, why: LinkError) -> PathError {
        self.fail(PathError::Lost(why.clone()));
        self.link.close();
        PathError::Lost(why)
    }

    pub(crate) fn tell(&self, control: &PathControl) {
        self.link.tell(&control.encode());
    }

    /// Takes the account of a message that the other end has dropped.
    ///
    /// # Errors
    /// [`PathError::Dropped`] if there is one.
    pub(crate) fn check_dropped(&self) -> Result<()> {
        let dropped = self.dropped.lock().expect("never poisoned").pop_front();
        dropped.map_or(Ok(()), Err)
    }

    /// As [`PathEnd::check_dropped`], of the message with this number.
    pub(crate) fn check_dropped_message(&self, number: u64) -> Result<()> {
        let mut dropped = self.dropped.lock().expect("never poisoned");
        let is_this = |told: &PathError| matches!(told, PathError::Dropped { message, .. } if *message == number);
        let place = dropped.iter().position(is_this);
        let told = place.and_then(|place| dropped.remove(place));
        told.map_or(Ok(()), Err)
    }

    /// Waits until it is the turn of the call to use `state`. `what` names the call in errors.
    ///
    /// # Errors
    /// As [`PathEnd::wait`].
    pub(crate) fn take_turn<'a, T>(
        &'a self,
        state: &'a Mutex<T>,
        what: &'static str,
        time: TimeLimit,
    ) -> Result<Turn<'a, T>> {
        let try_lock = || match state.try_lock() {
            Ok(state) => Some(state),
            Err(TryLockError::WouldBlock) => None,
            Err(TryLockError::Poisoned(state)) => Some(state.into_inner()),
        };
        let locked = match try_lock() {
            Some(locked) => locked,
            None => {
                self.waiting_for_turn.fetch_add(1, Ordering::SeqCst);
                let locked = self.wait(what, time, || Ok(try_lock()));
                self.waiting_for_turn.fetch_sub(1, Ordering::SeqCst);
                locked?
            }
        };
        Ok(Turn {
            state: Some(locked),
            end: self,
        })
    }

    /// Waits until `poll` returns something. `what` names the call in errors.
    ///
    /// # Errors
    /// [`PathError::Late`] once the time is over, [`PathError::Interrupted`], the fault of the path, and the errors of `poll`.
    pub(crate) fn wait<T>(
        &self,
        what: &'static str,
        time: TimeLimit,
        mut poll: impl FnMut() -> Result<Option<T>>,
    ) -> Result<T> {
        let mut watch = self.interrupt.watch();
        loop {
            let seen = self.bell.rings();
            if let Some(outcome) = poll()? {
                return Ok(outcome);
            }
            if let Some(fault) = self.fault.get() {
                // The last message may have come in after the look.
                return poll()?.ok_or_else(|| fault.clone());
            }
            if let Some(limit) = time.exceeded() {
                return Err(PathError::Late { what, limit });
            }
            if watch.is_wanted() {
                return Err(PathError::Interrupted(what));
            }
            let sleep = self.interrupt.sleep(time.left());
            self.bell.wait(seen, sleep, &[&*self.carrier]);
        }
    }

    /// Comes to a barrier, and waits for the other end to come to it. Behind a call that has failed before, goes on
    /// with its barrier.
    ///
    /// # Errors
    /// As [`PathEnd::wait`]; and an account of a dropped message, behind the barrier.
    pub(crate) fn pass_barrier(&self, limit: Option<Duration>) -> Result<()> {
        const WHAT: &str = "a barrier";
        let time = TimeLimit::begin(limit);
        let mut barriers = self.take_turn(&self.barriers, WHAT, time)?;
        if barriers.reached == barriers.passed {
            barriers.reached += 1;
            self.tell(&PathControl::Barrier);
        }
        let number = barriers.reached;
        self.wait(WHAT, time, || {
            let has_come = self.other_barriers.load(Ordering::Acquire) >= number;
            Ok(has_come.then_some(()))
        })?;
        barriers.passed = number;
        self.check_dropped()
    }

    /// Waits until the other program has received all messages.
    ///
    /// # Errors
    /// As [`PathEnd::wait`], and an account of a dropped message.
    pub(crate) fn flush(&self, limit: Option<Duration>) -> Result<()> {
        let sent = self.window.sent();
        self.carrier.ask(CONDUIT, sent);
        self.carrier.ask(CONDUIT, sent);
        let time = TimeLimit::begin(limit);
        self.wait("the receiver of the messages", time, || {
            Ok((self.window.ahead().0 == 0).then_some(()))
        })?;
        self.check_received()?;
        self.check_dropped()
    }

    /// Fails if the other program has closed the path without having received all messages.
    fn check_received(&self) -> Result<()> {
        let is_short = self.received_there.load(Ordering::Acquire) < self.window.sent();
        match self.window.closed() && is_short {
            true => Err(PathError::Closed),
            false => Ok(()),
        }
    }

    /// Says that no more follows and that nothing is received any more. Does not wait.
    pub(crate) fn leave(&self) {
        let Some(sent) = self.window.finish() else {
            return;
        };
        self.carrier.end(CONDUIT, sent);
        let received = self.inbox.consumed();
        self.tell(&PathControl::Closing { received });
        self.inbox.discard();
    }

    /// Waits until the other process has all messages, and ends the link.
    ///
    /// # Errors
    /// As [`PathEnd::wait`], [`PathError::Closed`] if the other program has closed without having received them, and an
    /// account of a dropped message. The link has ended in any case.
    pub(crate) fn close(&self, limit: Option<Duration>) -> Result<()> {
        self.leave();
        let time = TimeLimit::begin(limit);
        let arrived = self.wait("the arrival of the last messages", time, || {
            Ok((self.window.settled() || self.window.closed()).then_some(()))
        });
        let outcome = arrived
            .and_then(|()| self.check_received())
            .and_then(|()| self.check_dropped());
        self.end();
        outcome
    }

    /// Ends the link at once, but for bytes that wait in its queue.
    pub(crate) fn end(&self) {
        self.fail(PathError::ClosedHere);
        self.link.close();
        // The inbox holds the carrier, which holds the link, which holds the table.
        self.conduits.clear();
    }
}
