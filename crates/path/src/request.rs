//! Non-blocking calls: their requests, and waiting for them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::barrier::BarrierTransfer;
use crate::end::PathEnd;
use crate::error::{PathError, Result};
use crate::lane::Transfer;
use crate::receive::{ReceiveState, ReceivedMessage};
use crate::relay::Relay;
use crate::send::SendState;
use crate::time_limit::TimeLimit;

/// What a non-blocking call returns.
#[derive(Debug, Clone)]
pub(crate) enum CallOutput {
    /// The call has sent a message, or passed a barrier.
    Done,
    Received(ReceivedMessage),
}

impl From<()> for CallOutput {
    fn from((): ()) -> Self {
        CallOutput::Done
    }
}

impl From<ReceivedMessage> for CallOutput {
    fn from(message: ReceivedMessage) -> Self {
        CallOutput::Received(message)
    }
}

/// The place for the outcome of a non-blocking call.
#[derive(Default)]
pub(crate) struct Completion {
    is_done: AtomicBool,
    state: Mutex<CompletionState>,
}

#[derive(Default)]
struct CompletionState {
    outcome: Option<Result<CallOutput>>,
    /// Called once the call is done.
    notify: Vec<Box<dyn FnOnce() + Send>>,
}

impl Completion {
    pub(crate) fn complete(&self, outcome: Result<CallOutput>) {
        let mut state = self.state();
        state.outcome = Some(outcome);
        self.is_done.store(true, Ordering::Release);
        let notify = std::mem::take(&mut state.notify);
        drop(state);
        COMPLETIONS.count_one();
        notify.into_iter().for_each(|notify| notify());
    }

    pub(crate) fn is_done(&self) -> bool {
        self.is_done.load(Ordering::Acquire)
    }

    fn state(&self) -> MutexGuard<'_, CompletionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// After this time a thread that waits for calls on several paths looks itself: the process may have no thread for
/// non-blocking calls.
const LONGEST_SLEEP: Duration = Duration::from_millis(100);

/// The completed calls of the process. A thread that waits for calls on several paths sleeps here.
static COMPLETIONS: Completions = Completions {
    count: Mutex::new(0),
    changed: Condvar::new(),
};

struct Completions {
    count: Mutex<u64>,
    changed: Condvar,
}

impl Completions {
    fn count(&self) -> MutexGuard<'_, u64> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count_one(&self) {
        *self.count() += 1;
        self.changed.notify_all();
    }

    /// Sleeps until a call is completed that is not among the first `seen`.
    fn sleep(&self, seen: u64, limit: Duration) {
        let is_unchanged = |count: &mut u64| *count == seen;
        let slept = self
            .changed
            .wait_timeout_while(self.count(), limit, is_unchanged);
        drop(slept);
    }
}

/// What carries a non-blocking call on.
#[derive(Clone)]
pub(crate) enum Carrying {
    Sends,
    Receives,
    Barriers,
    Relay(Arc<Relay>),
}

/// One of the calls behind a request: an exchange has two of them.
pub(crate) struct RequestPart {
    pub(crate) end: Arc<PathEnd>,
    pub(crate) by: Carrying,
    pub(crate) completion: Arc<Completion>,
}

impl RequestPart {
    fn cancel(&self) -> bool {
        let (end, completion) = (&self.end, &self.completion);
        match &self.by {
            Carrying::Sends => end.sends.cancel(end, completion),
            Carrying::Receives => end.receives.cancel(end, completion),
            Carrying::Barriers => end.barriers.cancel(end, completion),
            Carrying::Relay(relay) => relay.cancel(),
        }
    }
}

/// Makes a non-blocking call that sends.
pub(crate) fn post_send(
    end: &Arc<PathEnd>,
    transfer: impl Transfer<State = SendState, Output = ()> + Send + 'static,
) -> RequestPart {
    post(
        end,
        Carrying::Sends,
        end.sends.post(end, Box::new(transfer)),
    )
}

/// Makes a non-blocking call that receives.
pub(crate) fn post_receive(
    end: &Arc<PathEnd>,
    transfer: impl Transfer<State = ReceiveState, Output = ReceivedMessage> + Send + 'static,
) -> RequestPart {
    post(
        end,
        Carrying::Receives,
        end.receives.post(end, Box::new(transfer)),
    )
}

/// Comes to a barrier without waiting.
pub(crate) fn post_barrier(end: &Arc<PathEnd>) -> RequestPart {
    let transfer = Box::new(BarrierTransfer::default());
    post(end, Carrying::Barriers, end.barriers.post(end, transfer))
}

fn post(end: &Arc<PathEnd>, by: Carrying, completion: Arc<Completion>) -> RequestPart {
    if !completion.is_done() {
        end.attend();
    }
    RequestPart {
        end: end.clone(),
        by,
        completion,
    }
}

/// A non-blocking call. It goes on without the program: a thread of titin carries it on where no call of the program
/// does. Calls on a path are completed in the order in which they were made, those that send and those that receive each.
///
/// A request that is dropped before the call is done is [cancelled](Request::cancel).
pub struct Request {
    parts: Vec<RequestPart>,
}

impl Request {
    pub(crate) fn new(parts: Vec<RequestPart>) -> Self {
        Request { parts }
    }

    /// Whether the call is done, successfully or not.
    pub fn test(&self) -> bool {
        if !self.is_done() {
            for part in &self.parts {
                part.end.advance_posted();
            }
        }
        self.is_done()
    }

    /// Waits for the call, for at most `limit`. A call whose time is over goes on.
    ///
    /// # Errors
    /// [`PathError::Late`], [`PathError::Interrupted`].
    pub fn wait(&self, limit: Option<Duration>) -> Result<()> {
        wait_any(&[self], limit).map(|_| ())
    }

    /// What the call has returned: the received message, or `None` of a call that receives none. Only for a call that is
    /// done.
    ///
    /// # Panics
    /// If the call is not done.
    ///
    /// # Errors
    /// Those of the call: the first of an exchange, whose other half may have succeeded ([`Request::received`]).
    pub fn outcome(&self) -> Result<Option<ReceivedMessage>> {
        assert!(self.is_done(), "the call is done");
        let mut cancelled = None;
        for part in &self.parts {
            match &part.completion.state().outcome {
                // The one half of a cycle ends the other half.
                Some(Err(PathError::Cancelled)) => cancelled = Some(PathError::Cancelled),
                Some(Err(why)) => return Err(why.clone()),
                _ => {}
            }
        }
        cancelled.map_or_else(|| Ok(self.received()), Err)
    }

    /// The error of one of the calls behind the request, once that call is done.
    pub(crate) fn part_error(&self, place: usize) -> Option<PathError> {
        match &self.parts[place].completion.state().outcome {
            Some(Err(why)) => Some(why.clone()),
            _ => None,
        }
    }

    /// The message that the call has received, if it has.
    pub fn received(&self) -> Option<ReceivedMessage> {
        self.parts
            .iter()
            .find_map(|part| match &part.completion.state().outcome {
                Some(Ok(CallOutput::Received(message))) => Some(message.clone()),
                _ => None,
            })
    }

    /// Ends the call if it is not done. Afterwards titin does not use the memory of the call any more. A receive loses
    /// nothing: the next one goes on with the message. A send gives its message up: if a part is on its way, the receiver gets [`PathError::Abandoned`].
    /// True if the call was ended; false if it was done.
    pub fn cancel(&self) -> bool {
        let mut is_cancelled = false;
        for part in &self.parts {
            if part.cancel() {
                part.completion.complete(Err(PathError::Cancelled));
                // Another thread may wait for the call.
                part.end.ring();
                is_cancelled = true;
            }
        }
        is_cancelled
    }

    /// Waits for the call, for at most `limit`, and returns what it has returned. A call whose time is over is cancelled.
    /// `what` names the call in errors.
    ///
    /// # Errors
    /// As [`Request::wait`] and [`Request::outcome`].
    pub fn complete(
        self,
        what: &'static str,
        limit: Option<Duration>,
    ) -> Result<Option<ReceivedMessage>> {
        match self.wait(limit) {
            Err(why) if self.cancel() => Err(match why {
                PathError::Late { limit, .. } => PathError::Late { what, limit },
                why => why,
            }),
            _ => self.outcome(),
        }
    }

    /// Has `notify` called when the call is done: at once if it is, and else in the thread that completes the call. May also
    /// be called when a part of the call is done, half of an exchange say. `notify` must neither wait nor make calls on paths.
    pub fn notify(&self, notify: impl Fn() + Send + Sync + 'static) {
        let notify = Arc::new(notify);
        for part in &self.parts {
            let mut state = part.completion.state();
            if state.outcome.is_none() {
                let notify = notify.clone();
                state.notify.push(Box::new(move || notify()));
                continue;
            }
            drop(state);
            notify();
        }
    }

    fn is_done(&self) -> bool {
        self.parts.iter().all(|part| part.completion.is_done())
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        if !self.is_done() {
            self.cancel();
        }
    }
}

/// Waits until one of the calls is done, for at most `limit`, and returns its place among `requests`: the first, if
/// several are done.
///
/// # Errors
/// [`PathError::Late`], [`PathError::Interrupted`]; and [`PathError::Message`] for no requests.
pub fn wait_any(requests: &[&Request], limit: Option<Duration>) -> Result<usize> {
    const WHAT: &str = "a non-blocking call";
    let mut ends = requests
        .iter()
        .flat_map(|request| &request.parts)
        .map(|part| &part.end);
    let Some(end) = ends.next() else {
        return Err(PathError::Message(
            "no requests were given to wait for".into(),
        ));
    };
    let done = || requests.iter().position(|request| request.test());
    let time = TimeLimit::begin(limit);
    if ends.all(|other| Arc::ptr_eq(end, other)) {
        return end.wait_beyond_end(WHAT, time, || Ok(done()));
    }
    let mut watch = end.interrupt.watch();
    loop {
        let seen = *COMPLETIONS.count();
        if let Some(place) = done() {
            return Ok(place);
        }
        if let Some(limit) = time.exceeded() {
            return Err(PathError::Late { what: WHAT, limit });
        }
        if watch.is_wanted() {
            return Err(PathError::Interrupted(WHAT));
        }
        let begun = Instant::now();
        let sleep = end.interrupt.sleep(time.left());
        COMPLETIONS.sleep(seen, sleep.unwrap_or(LONGEST_SLEEP).min(LONGEST_SLEEP));
        end.counts.note_wait(begun);
    }
}
