//! The calls of one kind on a path, in their order: those that send, those that receive, and barriers.
//!
//! A lane is a queue of calls. The first call has its turn: it advances its transfer as far as there are messages or
//! room, until the transfer is done. A waiting call advances in its own thread. A non-blocking call is advanced by any
//! thread that looks at the lane: a waiting call behind it, a call that asks for it, and the thread of
//! [`crate::worker`]. So a lane never waits for a thread that computes.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::end::PathEnd;
use crate::error::{PathError, Result};
use crate::request::{Completed, Completion};

/// How many parts of a message a call sends or takes in before others may look at the lane, and the call at the clock.
pub(crate) const PARTS_AT_ONCE: usize = 8;

/// What a call does on a lane, bit by bit.
pub(crate) trait Transfer {
    /// What the calls of the lane share.
    type State;
    /// What the call returns.
    type Output;

    /// Goes on as far as possible without waiting. `Some` once the call is done.
    ///
    /// # Errors
    /// Those of the path, and of the call.
    fn advance(&mut self, end: &PathEnd, state: &mut Self::State) -> Result<Option<Self::Output>>;

    /// Ends the call before it is done, so that the next call finds the lane in order.
    fn give_up(&mut self, end: &PathEnd, state: &mut Self::State);
}

/// A non-blocking call, and where its outcome goes.
struct PostedCall<S, O> {
    transfer: Box<dyn Transfer<State = S, Output = O> + Send>,
    completion: Arc<Completion>,
}

enum Call<S, O> {
    /// A thread waits and advances its transfer itself. The thread knows its call by the number.
    Waiting(u64),
    Posted(PostedCall<S, O>),
}

/// A lane.
pub(crate) struct Lane<S, O>(Mutex<LaneState<S, O>>);

struct LaneState<S, O> {
    shared: S,
    calls: VecDeque<Call<S, O>>,
    next_number: u64,
}

impl<S: Default, O> Default for Lane<S, O> {
    fn default() -> Self {
        Lane(Mutex::new(LaneState {
            shared: S::default(),
            calls: VecDeque::new(),
            next_number: 0,
        }))
    }
}

impl<S, O> LaneState<S, O>
where
    Completed: From<O>,
{
    /// Advances the non-blocking calls in front. Returns the number of the waiting call that is first now, if there is
    /// one.
    fn advance_posted(&mut self, end: &PathEnd) -> Option<u64> {
        loop {
            let call = match self.calls.front_mut()? {
                Call::Waiting(number) => return Some(*number),
                Call::Posted(call) => call,
            };
            let outcome = match end.look(|| call.transfer.advance(end, &mut self.shared)) {
                Ok(None) => return None,
                Ok(Some(output)) => Ok(Completed::from(output)),
                Err(why) => {
                    call.transfer.give_up(end, &mut self.shared);
                    Err(why)
                }
            };
            call.completion.complete(outcome);
            self.calls.pop_front();
            end.ring();
        }
    }
}

impl<S, O> Lane<S, O>
where
    Completed: From<O>,
{
    fn state(&self) -> MutexGuard<'_, LaneState<S, O>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at what the calls share.
    pub(crate) fn look<R>(&self, body: impl FnOnce(&S) -> R) -> R {
        body(&self.state().shared)
    }

    /// Takes a place at the end of the queue.
    pub(crate) fn enter<'a>(&'a self, end: &'a PathEnd) -> LanePlace<'a, S, O> {
        let mut state = self.state();
        let number = state.next_number;
        state.next_number += 1;
        state.calls.push_back(Call::Waiting(number));
        LanePlace {
            lane: self,
            end,
            number,
        }
    }

    /// Adds a non-blocking call, and begins with it if it is its turn.
    pub(crate) fn post(
        &self,
        end: &PathEnd,
        transfer: Box<dyn Transfer<State = S, Output = O> + Send>,
    ) -> Arc<Completion> {
        let completion = Arc::new(Completion::default());
        let mut state = self.state();
        state.calls.push_back(Call::Posted(PostedCall {
            transfer,
            completion: completion.clone(),
        }));
        state.advance_posted(end);
        completion
    }

    /// Advances the non-blocking calls. False if there are none that wait for the other end.
    pub(crate) fn advance(&self, end: &PathEnd) -> bool {
        let mut state = self.state();
        state.advance_posted(end).is_none() && !state.calls.is_empty()
    }

    /// Takes a non-blocking call out that is not done. False if it is done.
    pub(crate) fn cancel(&self, end: &PathEnd, completion: &Arc<Completion>) -> bool {
        let mut state = self.state();
        let is_this = |call: &Call<S, O>| matches!(call, Call::Posted(call) if Arc::ptr_eq(&call.completion, completion));
        let Some(place) = state.calls.iter().position(is_this) else {
            return false;
        };
        if let Some(Call::Posted(mut call)) = state.calls.remove(place) {
            call.transfer.give_up(end, &mut state.shared);
        }
        state.advance_posted(end);
        end.ring();
        true
    }

    /// Ends all non-blocking calls, as this end closes the path, and then does `last` before any other call.
    pub(crate) fn end<R>(&self, end: &PathEnd, last: impl FnOnce() -> R) -> R {
        let mut state = self.state();
        let LaneState { shared, calls, .. } = &mut *state;
        calls.retain_mut(|call| {
            let Call::Posted(call) = call else {
                return true;
            };
            call.transfer.give_up(end, shared);
            call.completion.complete(Err(PathError::ClosedHere));
            false
        });
        last()
    }
}

/// The place of a waiting call in a lane. The call leaves the lane when the place is dropped.
pub(crate) struct LanePlace<'a, S, O>
where
    Completed: From<O>,
{
    lane: &'a Lane<S, O>,
    end: &'a PathEnd,
    number: u64,
}

impl<S, O> LanePlace<'_, S, O>
where
    Completed: From<O>,
{
    /// Advances the calls before this one; and then `transfer`, which is the one of this call.
    ///
    /// # Errors
    /// As [`Transfer::advance`].
    pub(crate) fn advance(
        &self,
        transfer: &mut impl Transfer<State = S, Output = O>,
    ) -> Result<Option<O>> {
        let mut state = self.lane.state();
        if state.advance_posted(self.end) != Some(self.number) {
            return Ok(None);
        }
        transfer.advance(self.end, &mut state.shared)
    }

    /// Ends the call before it is done.
    pub(crate) fn give_up(&self, transfer: &mut impl Transfer<State = S, Output = O>) {
        transfer.give_up(self.end, &mut self.lane.state().shared);
    }

    /// Whether it is the turn of the call.
    pub(crate) fn has_turn(&self) -> bool {
        self.lane.state().advance_posted(self.end) == Some(self.number)
    }

    /// The state of the lane, for a short while.
    pub(crate) fn with_state<R>(&self, body: impl FnOnce(&mut S) -> R) -> R {
        body(&mut self.lane.state().shared)
    }
}

impl<S, O> Drop for LanePlace<'_, S, O>
where
    Completed: From<O>,
{
    fn drop(&mut self) {
        let mut state = self.lane.state();
        let is_this =
            |call: &Call<S, O>| matches!(call, Call::Waiting(number) if *number == self.number);
        let place = state.calls.iter().position(is_this);
        place.and_then(|place| state.calls.remove(place));
        if state.calls.is_empty() {
            return;
        }
        let next = state.advance_posted(self.end);
        let is_pending = !state.calls.is_empty();
        drop(state);
        match next {
            Some(_) => self.end.ring(),
            None if is_pending => self.end.attend(),
            None => {}
        }
    }
}
