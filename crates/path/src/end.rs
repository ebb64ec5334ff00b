//! One end of a path: what the calls of the program and the reactor's thread share.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::{Duration, Instant};

use titin_transport::{
    Carrier, ConduitTable, Doorbell, Inbox, InboxOptions, Link, LinkError, Window,
};
use titin_wire::Malformed;
use titin_wire::path::{BYTES_AHEAD, CONDUIT, MESSAGES_AHEAD, PathControl};

use crate::barrier::{BarrierState, BarrierTransfer};
use crate::error::{PathError, Result};
use crate::interrupt::Interrupt;
use crate::lane::{Lane, Transfer};
use crate::receive::{ReceiveState, ReceivedMessage};
use crate::request::CallOutput;
use crate::send::SendState;
use crate::statistics::PathCounts;
use crate::time_limit::TimeLimit;
use crate::worker;

/// The most dropped messages of which an end keeps account until a call tells of them.
const MOST_DROPPED: usize = 64;

/// One end of a path.
pub(crate) struct PathEnd {
    pub(crate) name: String,
    pub(crate) link: Arc<Link>,
    pub(crate) carrier: Arc<dyn Carrier>,
    bell: Arc<Doorbell>,
    pub(crate) interrupt: Interrupt,
    conduits: Arc<ConduitTable>,
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) window: Arc<Window>,
    pub(crate) sends: Lane<SendState, ()>,
    pub(crate) receives: Lane<ReceiveState, ReceivedMessage>,
    pub(crate) barriers: Lane<BarrierState, ()>,
    pub(crate) counts: PathCounts,
    myself: Weak<PathEnd>,
    /// Whether the thread for non-blocking calls is about to look at this end.
    is_attended: AtomicBool,
    /// Why the path is no more.
    fault: OnceLock<PathError>,
    /// The messages of this end that the other end has dropped, until a call tells of them.
    dropped: Mutex<VecDeque<PathError>>,
    /// How many barriers the other end has come to.
    pub(crate) other_barriers: AtomicU64,
    /// How many messages the other program has received, once it has closed the path.
    received_there: AtomicU64,
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
        let end = Arc::new_cyclic(|myself: &Weak<PathEnd>| PathEnd {
            name,
            link: link.clone(),
            carrier: carrier.clone(),
            bell: bell.clone(),
            interrupt,
            conduits: conduits.clone(),
            inbox: conduits.inbox(CONDUIT),
            window: Arc::new(window),
            sends: Lane::default(),
            receives: Lane::default(),
            barriers: Lane::default(),
            counts: PathCounts::default(),
            myself: myself.clone(),
            is_attended: AtomicBool::new(false),
            fault: OnceLock::new(),
            dropped: Mutex::default(),
            other_barriers: AtomicU64::new(0),
            received_there: AtomicU64::new(0),
        });
        let myself = end.myself.clone();
        bell.listen(move || worker::attend(myself.clone()));
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

    /// Makes a call on a lane: waits until the calls before it and `transfer` are done. `what` names the call in errors.
    ///
    /// # Errors
    /// As [`PathEnd::wait`].
    pub(crate) fn call<S, O>(
        &self,
        lane: &Lane<S, O>,
        what: &'static str,
        limit: Option<Duration>,
        transfer: &mut impl Transfer<State = S, Output = O>,
    ) -> Result<O>
    where
        CallOutput: From<O>,
    {
        let place = lane.enter(self);
        let done = self.wait(what, TimeLimit::begin(limit), || place.advance(transfer));
        if done.is_err() {
            place.give_up(transfer);
        }
        done
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
        self.wait_beyond_end(what, time, || self.look(&mut poll))
    }

    /// As [`PathEnd::wait`], for something that also comes when the path is no more.
    pub(crate) fn wait_beyond_end<T>(
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
            if let Some(limit) = time.exceeded() {
                return Err(PathError::Late { what, limit });
            }
            if watch.is_wanted() {
                return Err(PathError::Interrupted(what));
            }
            let sleep = self.interrupt.sleep(time.left());
            let begun = Instant::now();
            self.bell.wait(seen, sleep, &[&*self.carrier]);
            self.counts.note_wait(begun);
        }
    }

    /// As `poll`; and the fault of a path that is no more.
    pub(crate) fn look<T>(&self, mut poll: impl FnMut() -> Result<Option<T>>) -> Result<Option<T>> {
        if let Some(outcome) = poll()? {
            return Ok(Some(outcome));
        }
        match self.fault.get() {
            None => Ok(None),
            // The last message may have come in after the look.
            Some(fault) => poll()?.map(Some).ok_or_else(|| fault.clone()),
        }
    }

    /// Wakes the waiting calls, and the thread for non-blocking calls if it waits for this end.
    pub(crate) fn ring(&self) {
        self.bell.ring();
    }

    /// Whether the path is no more.
    pub(crate) fn has_ended(&self) -> bool {
        self.fault.get().is_some()
    }

    /// Advances the non-blocking calls. False if none waits for the other end.
    pub(crate) fn advance_posted(&self) -> bool {
        let (sends, receives) = (self.sends.advance(self), self.receives.advance(self));
        self.barriers.advance(self) || sends || receives
    }

    /// Has the thread for non-blocking calls look at this end soon.
    pub(crate) fn attend(&self) {
        if !self.is_attended.swap(true, Ordering::SeqCst) {
            worker::attend(self.myself.clone());
        }
    }

    /// Carries the non-blocking calls on, in the thread for them, which comes again when there is more to do.
    pub(crate) fn carry_on(&self) {
        self.is_attended.store(false, Ordering::SeqCst);
        let seen = self.bell.rings();
        if self.advance_posted() && !self.bell.arm(seen, std::slice::from_ref(&self.carrier)) {
            self.attend();
        }
    }

    /// Comes to a barrier, and waits for the other end to come to it. Behind a call that has failed before, goes on
    /// with its barrier.
    ///
    /// # Errors
    /// As [`PathEnd::wait`]; and an account of a dropped message, behind the barrier.
    pub(crate) fn pass_barrier(&self, limit: Option<Duration>) -> Result<()> {
        self.call(
            &self.barriers,
            "a barrier",
            limit,
            &mut BarrierTransfer::default(),
        )
    }

    /// Waits until the other program has received all messages.
    ///
    /// # Errors
    /// As [`PathEnd::wait`], and an account of a dropped message.
    pub(crate) fn flush(&self, limit: Option<Duration>) -> Result<()> {
        const WHAT: &str = "the receiver of the messages";
        let time = TimeLimit::begin(limit);
        self.await_sends(WHAT, time)?;
        let sent = self.window.sent();
        self.carrier.ask(CONDUIT, sent);
        self.carrier.ask(CONDUIT, sent);
        self.wait(
            WHAT,
            time,
            || Ok((self.window.ahead().0 == 0).then_some(())),
        )?;
        self.check_received()?;
        self.check_dropped()
    }

    /// Waits until the calls that send are done.
    fn await_sends(&self, what: &'static str, time: TimeLimit) -> Result<()> {
        let place = self.sends.enter(self);
        self.wait(what, time, || Ok(place.has_turn().then_some(())))
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
        let Some(sent) = self.sends.end(self, || self.window.finish()) else {
            return;
        };
        // Afterwards the memory of non-blocking calls is the program's own again.
        self.receives.end(self, || ());
        self.barriers.end(self, || ());
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
        const WHAT: &str = "the arrival of the last messages";
        let time = TimeLimit::begin(limit);
        // What may never come from another path is not waited for.
        self.sends.end_waits_elsewhere(self);
        let sent = self.await_sends(WHAT, time);
        self.leave();
        let arrived = sent.and_then(|()| {
            self.wait(WHAT, time, || {
                Ok((self.window.settled() || self.window.closed()).then_some(()))
            })
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
