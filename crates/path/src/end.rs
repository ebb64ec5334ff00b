//! One end of a path: what the calls of the program and the reactor's thread share.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use titin_transport::{
    Carrier, ConduitTable, Doorbell, Inbox, InboxOptions, Link, LinkError, Window,
};
use titin_wire::Malformed;
use titin_wire::path::{BYTES_AHEAD, CONDUIT, MESSAGES_AHEAD, PathControl};

use crate::error::{PathError, Result};
use crate::receive::ReceiveState;
use crate::send::SendState;
use crate::settings::{Interrupt, TimeLimit};

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
    send_state: Mutex<SendState>,
    receive_state: Mutex<ReceiveState>,
    /// Why the path is no more.
    fault: OnceLock<PathError>,
    /// The messages of this end that the other end has dropped, until a call tells of them.
    dropped: Mutex<VecDeque<PathError>>,
    /// How many barriers this end and the other end have come to.
    own_barriers: AtomicU64,
    other_barriers: AtomicU64,
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
            fault: OnceLock::new(),
            dropped: Mutex::default(),
            own_barriers: AtomicU64::new(0),
            other_barriers: AtomicU64::new(0),
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
            PathControl::Closing => self.window.close(),
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

    /// The state of the sender. Calls that send take turns.
    pub(crate) fn sender(&self) -> MutexGuard<'_, SendState> {
        self.send_state
            .lock()
            .expect("nothing panics while it is locked")
    }

    /// The state of the receiver. Calls that receive take turns.
    pub(crate) fn receiver(&self) -> MutexGuard<'_, ReceiveState> {
        self.receive_state
            .lock()
            .expect("nothing panics while it is locked")
    }

    /// Waits until `poll` returns something. `what` names the call in errors.
    ///
    /// # Errors
    /// [`PathError::Late`] after `limit`, [`PathError::Interrupted`], the fault of the path, and the errors of `poll`.
    pub(crate) fn wait<T>(
        &self,
        what: &'static str,
        limit: Option<Duration>,
        mut poll: impl FnMut() -> Result<Option<T>>,
    ) -> Result<T> {
        let (time, mut watch) = (TimeLimit::begin(limit), self.interrupt.watch());
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

    /// Comes to a barrier, and waits for the other end to come to it.
    ///
    /// # Errors
    /// As [`PathEnd::wait`], and an account of a dropped message.
    pub(crate) fn pass_barrier(&self, limit: Option<Duration>) -> Result<()> {
        let number = self.own_barriers.fetch_add(1, Ordering::AcqRel) + 1;
        self.tell(&PathControl::Barrier);
        self.wait("a barrier", limit, || {
            self.check_dropped()?;
            let has_come = self.other_barriers.load(Ordering::Acquire) >= number;
            Ok(has_come.then_some(()))
        })
    }

    /// Waits until the other program has received all messages.
    ///
    /// # Errors
    /// As [`PathEnd::wait`], and an account of a dropped message.
    pub(crate) fn flush(&self, limit: Option<Duration>) -> Result<()> {
        let sent = self.window.sent();
        self.carrier.ask(CONDUIT, sent);
        self.carrier.ask(CONDUIT, sent);
        self.wait("the receiver of the messages", limit, || {
            self.check_dropped()?;
            Ok((self.window.ahead().0 == 0).then_some(()))
        })
    }

    /// Says that no more follows and that nothing is received any more. Does not wait.
    pub(crate) fn leave(&self) {
        let Some(sent) = self.window.finish() else {
            return;
        };
        self.carrier.end(CONDUIT, sent);
        self.tell(&PathControl::Closing);
        self.inbox.discard();
    }

    /// Waits until the other process has all messages, and ends the link.
    ///
    /// # Errors
    /// As [`PathEnd::wait`]. The link has ended in any case.
    pub(crate) fn close(&self, limit: Option<Duration>) -> Result<()> {
        self.leave();
        let arrived = self.wait("the arrival of the last messages", limit, || {
            Ok((self.window.settled() || self.window.closed()).then_some(()))
        });
        self.end();
        arrived
    }

    /// Ends the link at once, but for bytes that wait in its queue.
    pub(crate) fn end(&self) {
        self.fail(PathError::ClosedHere);
        self.link.close();
        // The inbox holds the carrier, which holds the link, which holds the table.
        self.conduits.clear();
    }
}
