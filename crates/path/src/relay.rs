//! How all messages go on between two paths, both ways.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use titin_wire::path::PathControl;

use crate::cycle::post_cycle;
use crate::end::PathEnd;
use crate::error::PathError;
use crate::receive::ReceiveState;
use crate::request::{CallOutput, Completion, Request};
use crate::send::SendState;
use crate::worker;

/// A relay between two paths. Each way one message at a time is on its way through.
pub(crate) struct Relay {
    myself: Weak<Relay>,
    ends: [Arc<PathEnd>; 2],
    /// The numbers of the first message from each end: there, and on the other path.
    first: [(u64, u64); 2],
    pub(crate) completion: Arc<Completion>,
    /// `None` once the relay has ended.
    state: Mutex<Option<RelayState>>,
}

struct RelayState {
    /// The message on its way through from each end to the other; `None` once the other end takes no more.
    underway: [Option<Request>; 2],
    /// Why an end takes no more.
    failure: Option<PathError>,
}

/// What follows when a message has gone through, or has not.
enum Next {
    Message,
    /// The other end takes no more.
    Stop(PathError),
    /// The relay ends.
    End(Result<CallOutput, PathError>),
}

impl Relay {
    /// Begins to pass messages on.
    pub(crate) fn begin(ends: [Arc<PathEnd>; 2]) -> Arc<Self> {
        let first = [0, 1].map(|from: usize| {
            let received = ends[from].receives.look(ReceiveState::next_message);
            (received, ends[1 - from].sends.look(SendState::messages))
        });
        let relay = Arc::new_cyclic(|myself: &Weak<Relay>| Relay {
            myself: myself.clone(),
            ends,
            first,
            completion: Arc::default(),
            state: Mutex::new(None),
        });
        *relay.state() = Some(RelayState {
            underway: [Some(relay.next(0)), Some(relay.next(1))],
            failure: None,
        });
        // The first messages may have gone through already.
        relay.look_soon();
        relay
    }

    /// Ends the relay. False if it has ended.
    pub(crate) fn cancel(&self) -> bool {
        self.state().take().is_some()
    }

    fn state(&self) -> MutexGuard<'_, Option<RelayState>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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
        let mut place = self.state();
        let Some(state) = &mut *place else {
            return;
        };
        for from in [0, 1] {
            self.forward_drops(from);
            let Some(request) = &state.underway[from] else {
                continue;
            };
            if !request.test() {
                continue;
            }
            match next_after(request) {
                Next::Message => state.underway[from] = Some(self.next(from)),
                Next::Stop(why) => {
                    state.underway[from] = None;
                    state.failure.get_or_insert(why);
                }
                Next::End(outcome) => return self.end(place, outcome),
            }
        }
        if state.underway.iter().all(Option::is_none) {
            let outcome = match state.failure.take() {
                None | Some(PathError::Closed) => Ok(CallOutput::Done),
                Some(why) => Err(why),
            };
            self.end(place, outcome);
        }
    }

    fn end(
        &self,
        mut place: MutexGuard<'_, Option<RelayState>>,
        outcome: Result<CallOutput, PathError>,
    ) {
        // A thread that cancels the relay finds the outcome.
        self.completion.complete(outcome);
        let state = place.take();
        drop(place);
        drop(state);
        self.ends.iter().for_each(|end| end.ring());
    }

    /// Tells an end of its messages that the far receiver has dropped.
    fn forward_drops(&self, from: usize) {
        let (received, sent) = self.first[from];
        while let Err(PathError::Dropped { message, why }) = self.ends[1 - from].check_dropped() {
            // A message from before the relay is not one of this end.
            if let Some(number) = message.checked_sub(sent) {
                let message = received + number;
                self.ends[from].tell(&PathControl::Dropped { message, why });
            }
        }
    }
}

/// What follows after a cycle that is done. Its first half receives.
fn next_after(request: &Request) -> Next {
    match request.part_error(0) {
        // All messages of the program have gone on.
        Some(PathError::Closed) => return Next::End(Ok(CallOutput::Done)),
        None | Some(PathError::Abandoned(_) | PathError::Cancelled) => {}
        Some(why) => return Next::End(Err(why)),
    }
    match request.part_error(1) {
        // The two programs have heard of a message that did not come through.
        None | Some(PathError::Dropped { .. } | PathError::Cancelled) => Next::Message,
        // The other way ends when all messages of that program have gone on.
        Some(why) => Next::Stop(why),
    }
}
