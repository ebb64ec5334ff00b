//! How a message goes on from one path to another, part by part.
//!
//! A pipe lies between the two: a call that receives on the one path puts the parts in, and a call that sends on the
//! other path takes them out. Each call has its place among the calls of its path.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use titin_transport::{Buffer, Filling, SharedBuffer};
use titin_wire::meta::Meta;
use titin_wire::path::PART;

use crate::end::PathEnd;
use crate::error::{PathError, Result};
use crate::lane::Transfer;
use crate::memory::ReceiveMemory;
use crate::receive::{
    Destination, DestinationRoom, MemoryDestination, ReceiveTransfer, tell_dropped,
};
use crate::request::{Request, post_receive, post_send};
use crate::send::{Draining, SendStage, SendState};

/// How many parts may wait in a pipe, of a message that has no memory in the middle.
const PIPE_PARTS: usize = 4;

/// Why a message is dropped whose way on ends before all of it is through.
const GIVEN_UP: &str = "the program that passes it on has given up";

/// Locked while a thread makes the two calls of a cycle.
static POSTING: Mutex<()> = Mutex::new(());

/// The parts of a message on their way from one path to another.
struct Pipe {
    state: Mutex<PipeState>,
    from: Arc<PathEnd>,
    to: Arc<PathEnd>,
}

#[derive(Default)]
struct PipeState {
    /// The message, once it has begun to come in.
    message: Option<PipedMessage>,
    parts: VecDeque<SharedBuffer>,
    /// Whether all parts have come in.
    is_whole: bool,
    /// Why one of the two calls has ended before the message was through.
    broken: Option<String>,
}

#[derive(Clone)]
struct PipedMessage {
    /// The number among the messages of the first path.
    number: u64,
    meta: Arc<Meta>,
    length: u64,
}

/// Has the next message of one path go on to another path.
pub(crate) fn post_cycle(
    from: &Arc<PathEnd>,
    to: &Arc<PathEnd>,
    memory: Option<impl ReceiveMemory + Send + 'static>,
) -> Request {
    let pipe = Arc::new(Pipe {
        state: Mutex::default(),
        from: from.clone(),
        to: to.clone(),
    });
    let source = PipeDestination {
        pipe: pipe.clone(),
        memory: memory.map(MemoryDestination::new),
    };
    let sink = PipeTransfer {
        pipe,
        stage: SendStage::NotBegun,
        why: None,
    };
    // Two calls for the same two paths have the same order on both.
    let _in_order = POSTING.lock().unwrap_or_else(PoisonError::into_inner);
    Request::new(vec![
        post_receive(from, ReceiveTransfer::new(source)),
        post_send(to, sink),
    ])
}

impl Pipe {
    fn state(&self) -> MutexGuard<'_, PipeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts parts in, and has the call that sends look.
    fn put(&self, parts: impl IntoIterator<Item = SharedBuffer>) {
        let mut state = self.state();
        if state.broken.is_none() {
            state.parts.extend(parts);
        }
        drop(state);
        self.to.attend();
    }

    /// Notes that all parts are in.
    fn finish(&self) {
        let mut state = self.state();
        state.is_whole = true;
        self.tell_of_loss(state);
        self.to.attend();
    }

    /// Notes that the call that sends has ended before the message was through.
    fn break_off(&self, why: String) {
        let mut state = self.state();
        state.parts.clear();
        state.broken.get_or_insert(why);
        self.tell_of_loss(state);
        self.from.attend();
    }

    /// Tells the sender of a message that has come in whole and does not go on. Of another message the call that
    /// receives tells.
    fn tell_of_loss(&self, state: MutexGuard<'_, PipeState>) {
        if let (Some(message), Some(why), true) = (&state.message, &state.broken, state.is_whole) {
            tell_dropped(&self.from, message.number, why);
        }
    }
}

/// Where the parts of a message go into a pipe. The message may go to memory, too.
struct PipeDestination<M> {
    pipe: Arc<Pipe>,
    memory: Option<MemoryDestination<M>>,
}

impl<M> PipeDestination<M> {
    fn put_head(&self, number: u64, meta: &Arc<Meta>, length: u64) {
        let meta = meta.clone();
        self.pipe.state().message = Some(PipedMessage {
            number,
            meta,
            length,
        });
    }
}

/// Bytes that are at hand, as parts.
fn split(bytes: &[u8]) -> Result<Vec<SharedBuffer>> {
    let parts = bytes.chunks(PART as usize).map(|part| {
        let part = Buffer::gather(&[IoSlice::new(part)]);
        part.map(SharedBuffer::from)
            .map_err(|why| PathError::NoMemory(why.to_string()))
    });
    parts.collect()
}

impl<M: ReceiveMemory> Destination for PipeDestination<M> {
    fn begin(
        &mut self,
        number: u64,
        meta: &Arc<Meta>,
        length: u64,
        kept: Option<Filling>,
    ) -> Result<()> {
        let parts = kept
            .as_ref()
            .map_or(Ok(Vec::new()), |kept| split(kept.beginning()))?;
        // A message that does not fit here does not go on.
        if let Some(memory) = &mut self.memory {
            memory.begin(number, meta, length, kept)?;
        }
        self.put_head(number, meta, length);
        self.pipe.put(parts);
        Ok(())
    }

    fn push(&mut self, bytes: &SharedBuffer) {
        if let Some(memory) = &mut self.memory {
            memory.push(bytes);
        }
        self.pipe.put([bytes.clone()]);
    }

    fn take(&mut self, number: u64, meta: &Arc<Meta>, bytes: SharedBuffer) -> Result<SharedBuffer> {
        let length = bytes.len() as u64;
        let parts = match length > PART {
            true => split(&bytes)?,
            false => vec![bytes.clone()],
        };
        let rest = match &mut self.memory {
            Some(memory) => memory.take(number, meta, bytes)?,
            None => SharedBuffer::default(),
        };
        self.put_head(number, meta, length);
        self.pipe.put(parts);
        self.pipe.finish();
        Ok(rest)
    }

    fn finish(&mut self) -> SharedBuffer {
        self.pipe.finish();
        let memory = self.memory.as_mut();
        memory.map_or_else(SharedBuffer::default, |memory| memory.finish())
    }

    fn keep(&mut self) -> std::result::Result<Filling, String> {
        Err(GIVEN_UP.into())
    }

    fn room(&self) -> DestinationRoom {
        let state = self.pipe.state();
        match &state.broken {
            Some(why) => DestinationRoom::Gone(why.clone()),
            // A message that has memory here comes in, whether or not it goes on meanwhile: in a ring each program may be
            // busy with a message of its own.
            None if self.memory.is_some() || state.parts.len() < PIPE_PARTS => {
                DestinationRoom::Free
            }
            None => DestinationRoom::Full,
        }
    }
}

impl<M> Drop for PipeDestination<M> {
    fn drop(&mut self) {
        let mut state = self.pipe.state();
        if !state.is_whole {
            state.parts.clear();
            state.broken.get_or_insert(GIVEN_UP.into());
        }
        drop(state);
        self.pipe.to.attend();
    }
}

/// A message on its way out, whose parts come from a pipe. Does not tell of earlier messages that the receiver has
/// dropped: the parts are on their way already.
struct PipeTransfer {
    pipe: Arc<Pipe>,
    stage: SendStage,
    /// Why the message does not go on.
    why: Option<String>,
}

impl PipeTransfer {
    /// Sends what is in the pipe, as far as there is room.
    fn send(&mut self, end: &PathEnd, state: &mut SendState) -> Result<Option<()>> {
        if self.stage == SendStage::NotBegun && end.window.closed() {
            return Err(PathError::Closed);
        }
        while self.stage != SendStage::Done {
            let (message, part, is_broken) = {
                let pipe = self.pipe.state();
                let part = pipe.parts.front().cloned();
                (pipe.message.clone(), part, pipe.broken.is_some())
            };
            if is_broken {
                return Err(PathError::Cancelled);
            }
            let Some(PipedMessage { meta, length, .. }) = message else {
                return Ok(None);
            };
            let sent = if self.stage == SendStage::NotBegun && length > PART {
                if !state.begin(end, &meta, length, &[], Draining::Copied)? {
                    return Ok(None);
                }
                0
            } else {
                let Some(part) = part else {
                    return Ok(None);
                };
                let bytes = [IoSlice::new(&part)];
                let (sent, is_sent) = match self.stage {
                    SendStage::Parts(sent) => {
                        (sent, state.send_part(end, &bytes, Draining::Copied)?)
                    }
                    _ => (
                        0,
                        state.begin(end, &meta, length, &bytes, Draining::Copied)?,
                    ),
                };
                if !is_sent {
                    return Ok(None);
                }
                self.pipe.state().parts.pop_front();
                // There is room for another part.
                self.pipe.from.attend();
                sent + part.len() as u64
            };
            self.stage = SendStage::after(sent, length);
        }
        Ok(Some(()))
    }
}

impl Transfer for PipeTransfer {
    type State = SendState;
    type Output = ();

    fn advance(&mut self, end: &PathEnd, state: &mut SendState) -> Result<Option<()>> {
        let sent = self.send(end, state);
        if let Err(why) = &sent {
            self.why = Some(match why {
                PathError::Dropped { why, .. } => why.clone(),
                PathError::Cancelled => GIVEN_UP.into(),
                why => format!("it does not go on: {why}"),
            });
        }
        sent
    }

    fn waits_elsewhere(&self) -> bool {
        self.pipe.state().message.is_none()
    }

    fn give_up(&mut self, end: &PathEnd, state: &mut SendState) {
        if matches!(self.stage, SendStage::Parts(_)) {
            state.abandon(end);
        }
    }
}

impl Drop for PipeTransfer {
    fn drop(&mut self) {
        if self.stage != SendStage::Done {
            let why = self.why.take();
            self.pipe.break_off(why.unwrap_or_else(|| GIVEN_UP.into()));
        }
    }
}
