//! The calls of one kind on a path, in their order: those that send, those that receive, and barriers.
//!
//! A lane is a queue of calls. The first call has its turn: its transfer goes on as far as there are messages or room,
//! until it is done. The transfer of a waiting call goes on in the thread that waits. The transfer of a non-blocking
//! call goes on in any thread that looks at the lane: that of a waiting call behind it, of a call that asks for it, and
//! the thread of [`crate::worker`].

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use crate::end::PathEnd;
use crate::error::{PathError, Result};
use crate::request::{CallOutput, Completion};

/// How many parts of a message a call sends or takes in before others may look at the lane, and the call at the clock.
pub(crate) const PARTS_AT_ONCE: usize = 8;

/// What a call does on a lane, bit by bit.
pub(crate) trait Transfer {
    /// What the calls of the lane share.
    type State;
    /// What the call returns.
    type Output;

    /// Goes on as far as possible. `Some` once the call is done.
    ///
    /// # Errors
    /// Those of the path, and of the call.
    fn advance(&mut self, end: &PathEnd, state: &mut Self::State) -> Result<Option<Self::Output>>;

    /// Whether the call has not begun, and waits for something that is not on this path.
    fn waits_elsewhere(&self) -> bool {
        false
    }

    /// Ends the call before it is done, so that the next call finds the lane in order.
    fn give_up(&mut self, end: &PathEnd, state: &mut Self::State);
}

/// The transfer of a non-blocking call.
type PostedTransfer<S, O> = Box<dyn Transfer<State = S, Output = O> + Send>;

enum Call<S, O> {
    /// A thread waits. It knows its call by the number.
    Waiting(u64),
    /// A non-blocking call. The transfer is taken out while it goes on.
    Posted(Option<PostedTransfer<S, O>>, Arc<Completion>),
}

/// A lane.
pub(crate) struct Lane<S, O> {
    /// Locked while a transfer goes on. Locked before `queue`.
    shared: Mutex<S>,
    /// Whether a thread has found `shared` locked, and waits for a ring.
    is_awaited: AtomicBool,
    queue: Mutex<LaneQueue<S, O>>,
}

struct LaneQueue<S, O> {
    calls: VecDeque<Call<S, O>>,
    next_number: u64,
}

/// What the calls of a lane share, for one of them.
struct LaneTurn<'a, S, O> {
    lane: &'a Lane<S, O>,
    end: &'a PathEnd,
    /// `None` as the turn ends.
    shared: Option<MutexGuard<'a, S>>,
}

impl<S, O> Drop for LaneTurn<'_, S, O> {
    fn drop(&mut self) {
        self.shared = None;
        fence(Ordering::SeqCst);
        if self.lane.is_awaited.swap(false, Ordering::SeqCst) {
            self.end.ring();
        }
    }
}

impl<S, O> LaneTurn<'_, S, O> {
    fn shared(&mut self) -> &mut S {
        self.shared.as_deref_mut().expect("the turn lasts")
    }
}

/// What is first in a lane.
#[derive(Debug, PartialEq)]
enum LaneFront {
    Nothing,
    /// A non-blocking call.
    Posted,
    /// The waiting call with this number.
    Waiting(u64),
}

impl<S, O> LaneTurn<'_, S, O>
where
    CallOutput: From<O>,
{
    /// Has the non-blocking calls in front go on. Returns what is first then.
    fn advance_posted(&mut self) -> LaneFront {
        loop {
            let mut transfer = match self.lane.queue().calls.front_mut() {
                None => return LaneFront::Nothing,
                Some(Call::Waiting(number)) => return LaneFront::Waiting(*number),
                Some(Call::Posted(transfer, _)) => transfer.take().expect("put back below"),
            };
            let (end, shared) = (self.end, self.shared());
            let outcome = match end.look(|| transfer.advance(end, shared)) {
                Ok(None) => None,
                Ok(Some(output)) => Some(Ok(CallOutput::from(output))),
                Err(why) => {
                    transfer.give_up(end, shared);
                    Some(Err(why))
                }
            };
            let mut queue = self.lane.queue();
            let Some(outcome) = outcome else {
                if let Some(Call::Posted(place, _)) = queue.calls.front_mut() {
                    *place = Some(transfer);
                }
                return LaneFront::Posted;
            };
            let call = queue.calls.pop_front();
            drop(queue);
            if let Some(Call::Posted(_, completion)) = call {
                drop(transfer);
                completion.complete(outcome);
            }
            self.end.ring();
        }
    }

    /// Has a transfer go on, if it is the turn of the waiting call with this number.
    fn advance(
        &mut self,
        number: u64,
        transfer: &mut impl Transfer<State = S, Output = O>,
    ) -> Result<Option<O>> {
        if self.advance_posted() != LaneFront::Waiting(number) {
            return Ok(None);
        }
        transfer.advance(self.end, self.shared())
    }
}

impl<S: Default, O> Default for Lane<S, O> {
    fn default() -> Self {
        Lane {
            shared: Mutex::default(),
            is_awaited: AtomicBool::new(false),
            queue: Mutex::new(LaneQueue {
                calls: VecDeque::new(),
                next_number: 0,
            }),
        }
    }
}

impl<S, O> Lane<S, O>
where
    CallOutput: From<O>,
{
    /// Takes a place at the end of the queue.
    pub(crate) fn enter<'a>(&'a self, end: &'a PathEnd) -> LanePlace<'a, S, O> {
        let mut queue = self.queue();
        let number = queue.next_number;
        queue.next_number += 1;
        queue.calls.push_back(Call::Waiting(number));
        LanePlace {
            lane: self,
            end,
            number,
        }
    }

    /// Adds a non-blocking call, and begins with it if it is its turn.
    pub(crate) fn post(&self, end: &PathEnd, transfer: PostedTransfer<S, O>) -> Arc<Completion> {
        let completion = Arc::new(Completion::default());
        let call = Call::Posted(Some(transfer), completion.clone());
        self.queue().calls.push_back(call);
        self.advance(end);
        completion
    }

    /// Has the non-blocking calls go on. Whether one of them waits for the other end, or for another thread.
    pub(crate) fn advance(&self, end: &PathEnd) -> bool {
        if self.front() != LaneFront::Posted {
            return false;
        }
        match self.try_turn(end) {
            Some(mut turn) => turn.advance_posted() == LaneFront::Posted,
            None => true,
        }
    }

    /// Takes a non-blocking call out that is not done. False if it is done.
    pub(crate) fn cancel(&self, end: &PathEnd, completion: &Arc<Completion>) -> bool {
        if self.take_out_behind(completion) {
            return true;
        }
        // The call may be on the point of being completed.
        let mut turn = self.turn(end);
        let call = {
            let mut queue = self.queue();
            let place = place_of(&queue.calls, completion);
            place.and_then(|place| queue.calls.remove(place))
        };
        let Some(Call::Posted(Some(mut transfer), _)) = call else {
            return false;
        };
        transfer.give_up(end, turn.shared());
        turn.advance_posted();
        true
    }

    /// Takes a call out that is not first, and so has not begun. False if it is first, or is not there.
    fn take_out_behind(&self, completion: &Arc<Completion>) -> bool {
        let mut queue = self.queue();
        let place = place_of(&queue.calls, completion).filter(|place| *place > 0);
        place.is_some_and(|place| queue.calls.remove(place).is_some())
    }

    /// Ends all non-blocking calls, as this end closes the path, and then does `last` before any other call.
    pub(crate) fn end<R>(&self, end: &PathEnd, last: impl FnOnce() -> R) -> R {
        self.end_where(end, |_| true, last)
    }

    /// Ends the non-blocking calls that wait for something that is not on this path.
    pub(crate) fn end_waits_elsewhere(&self, end: &PathEnd) {
        self.end_where(end, |transfer| transfer.waits_elsewhere(), || ());
    }

    fn end_where<R>(
        &self,
        end: &PathEnd,
        is_chosen: impl Fn(&PostedTransfer<S, O>) -> bool,
        last: impl FnOnce() -> R,
    ) -> R {
        let mut turn = self.turn(end);
        let calls = std::mem::take(&mut self.queue().calls);
        for call in calls {
            match call {
                Call::Posted(Some(mut transfer), completion) if is_chosen(&transfer) => {
                    transfer.give_up(end, turn.shared());
                    drop(transfer);
                    completion.complete(Err(PathError::ClosedHere));
                }
                other => self.queue().calls.push_back(other),
            }
        }
        end.ring();
        last()
    }
}

impl<S, O> Lane<S, O> {
    /// Looks at what the calls share.
    pub(crate) fn look<R>(&self, body: impl FnOnce(&S) -> R) -> R {
        body(&self.shared.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn front(&self) -> LaneFront {
        match self.queue().calls.front() {
            None => LaneFront::Nothing,
            Some(Call::Posted(..)) => LaneFront::Posted,
            Some(Call::Waiting(number)) => LaneFront::Waiting(*number),
        }
    }

    fn queue(&self) -> MutexGuard<'_, LaneQueue<S, O>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn turn<'a>(&'a self, end: &'a PathEnd) -> LaneTurn<'a, S, O> {
        LaneTurn {
            lane: self,
            end,
            shared: Some(self.shared.lock().unwrap_or_else(PoisonError::into_inner)),
        }
    }

    /// A turn; `None` while another thread has one, after which the bell rings. On a path that has ended, a turn in any case:
    /// a call that sees nothing there has failed.
    fn try_turn<'a>(&'a self, end: &'a PathEnd) -> Option<LaneTurn<'a, S, O>> {
        if end.has_ended() {
            return Some(self.turn(end));
        }
        let try_lock = || match self.shared.try_lock() {
            Ok(shared) => Some(shared),
            Err(TryLockError::Poisoned(shared)) => Some(shared.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        };
        let shared = try_lock().or_else(|| {
            self.is_awaited.store(true, Ordering::SeqCst);
            // Either this thread finds the lock free, or the thread that has it finds the mark.
            fence(Ordering::SeqCst);
            try_lock()
        })?;
        Some(LaneTurn {
            lane: self,
            end,
            shared: Some(shared),
        })
    }
}

fn place_of<S, O>(calls: &VecDeque<Call<S, O>>, completion: &Arc<Completion>) -> Option<usize> {
    let is_this = |call: &Call<S, O>| matches!(call, Call::Posted(_, other) if Arc::ptr_eq(other, completion));
    calls.iter().position(is_this)
}

/// The place of a waiting call in a lane. The call leaves the lane when the place is dropped.
pub(crate) struct LanePlace<'a, S, O>
where
    CallOutput: From<O>,
{
    lane: &'a Lane<S, O>,
    end: &'a PathEnd,
    number: u64,
}

impl<S, O> LanePlace<'_, S, O>
where
    CallOutput: From<O>,
{
    /// Has the calls before this one go on; and then `transfer`, which is the one of this call.
    ///
    /// # Errors
    /// As [`Transfer::advance`].
    pub(crate) fn advance(
        &self,
        transfer: &mut impl Transfer<State = S, Output = O>,
    ) -> Result<Option<O>> {
        match self.try_turn() {
            Some(mut turn) => turn.advance(self.number, transfer),
            None => Ok(None),
        }
    }

    /// Ends the call before it is done.
    pub(crate) fn give_up(&self, transfer: &mut impl Transfer<State = S, Output = O>) {
        self.with_state(|shared| transfer.give_up(self.end, shared));
    }

    /// A turn, unless another waiting call is first: its thread is the one that looks.
    fn try_turn(&self) -> Option<LaneTurn<'_, S, O>> {
        match self.lane.front() {
            LaneFront::Waiting(number) if number != self.number => None,
            _ => self.lane.try_turn(self.end),
        }
    }

    /// Whether it is the turn of the call.
    pub(crate) fn has_turn(&self) -> bool {
        self.try_turn()
            .is_some_and(|mut turn| turn.advance_posted() == LaneFront::Waiting(self.number))
    }

    /// What the calls of the lane share, for a short while.
    pub(crate) fn with_state<R>(&self, body: impl FnOnce(&mut S) -> R) -> R {
        body(self.lane.turn(self.end).shared())
    }
}

impl<S, O> Drop for LanePlace<'_, S, O>
where
    CallOutput: From<O>,
{
    fn drop(&mut self) {
        let is_last = {
            let calls = &mut self.lane.queue().calls;
            let is_this =
                |call: &Call<S, O>| matches!(call, Call::Waiting(number) if *number == self.number);
            let place = calls.iter().position(is_this);
            place.and_then(|place| calls.remove(place));
            calls.is_empty()
        };
        if is_last {
            return;
        }
        // The next call may go on: a waiting one in its thread.
        self.end.ring();
        if self.lane.advance(self.end) {
            self.end.attend();
        }
    }
}
