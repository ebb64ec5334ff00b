//! How all messages go on between two paths, both ways.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use titin_wire::path::PathControl;

use crate::cycle::post_cycle;
use crate::end::PathEnd;
use crate::error::PathError;
use crate::receive::ReceiveState;
use crate::request::{Completed, Completion, Request};
use crate::send::SendState;
use crate::worker;

/// A relay between two paths. Each way one message at a time is on its way through.
pub(crate) struct Relay {
    myself: Weak<Relay>,
    ends: [Arc<PathEnd>; 2],
    /// The numbers of the first message from each end: there, and on the other path.
    first: [(u64, u64); 2],
    pub(crate) completion: Arc<Completion>,
    /// The message on its way through from each end to the other. `None` once the relay has ended.
    ways: Mutex<Option<[Request; 2]>>,
}

impl Relay {
    /// Begins to pass messages on.
    pub(crate) fn begin(ends: [Arc<PathEnd>; 2]) -> Arc<Self> {
        let first = [0, 1].map(|from: usize| {
            let received = ends[from].receives.look(ReceiveState::messages);
            (received, ends[1 - from].sends.look(SendState::messages))
        });
        let relay = Arc::new_cyclic(|myself: &Weak<Relay>| Relay {
            myself: myself.clone(),
            ends,
            first,
            completion: Arc::default(),
            ways: Mutex::new(None),
        });
        *relay.ways() = Some([relay.next(0), relay.next(1)]);
        // The first messages may have gone through already.
        relay.look_soon();
        relay
    }

    /// Ends the relay. False if it has ended.
    pub(crate) fn cancel(&self) -> bool {
        self.ways().take().is_some()
    }

    fn ways(&self) -> MutexGuard<'_, Option<[Request; 2]>> {
        self.ways.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes the next message of an end on.
    fn next(&self, from: usize) -> Request {
        let (from, to) = (&self.ends[from], &self.ends[1 - from]);
        let request = post_cycle(from, to, None::<()>);
        let relay = self.myself.clone();
        request.notify(move || {
            if let Some(relay) = relay.upgrade() {
                relay.look_soon();
            }
        });
        request
    }

    fn look_soon(&self) {
        let relay = self.myself.clone();
        worker::run(move || {
            if let Some(relay) = relay.upgrade() {
                relay.go_on();
            }
        });
    }

    /// Passes the next messages on where one has gone through.
    fn go_on(&self) {
        let mut ways = self.ways();
        let Some(requests) = &mut *ways else {
            return;
        };
        for (from, request) in requests.iter_mut().enumerate() {
            self.pass_accounts_on(from);
            if !request.test() {
                continue;
            }
            let outcome = match request.outcome() {
                Ok(_) | Err(PathError::Abandoned(_)) => {
                    *request = self.next(from);
                    continue;
                }
                Err(PathError::Dropped { message, why }) => {
                    self.pass_account_on(from, message, why);
                    *request = self.next(from);
                    continue;
                }
                Err(PathError::Closed) => Ok(Completed::Done),
                Err(why) => Err(why),
            };
            *ways = None;
            drop(ways);
            self.completion.complete(outcome);
            return self.ends.iter().for_each(|end| end.ring());
        }
    }

    /// Tells an end of its messages that the far receiver has dropped.
    fn pass_accounts_on(&self, from: usize) {
        while let Err(PathError::Dropped { message, why }) = self.ends[1 - from].check_dropped() {
            self.pass_account_on(from, message, why);
        }
    }

    fn pass_account_on(&self, from: usize, message: u64, why: String) {
        let (received, sent) = self.first[from];
        // A message from before the relay is not one of this end.
        if let Some(number) = message.checked_sub(sent) {
            let message = received + number;
            self.ends[from].tell(&PathControl::Dropped { message, why });
        }
    }
}
