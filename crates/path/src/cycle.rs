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
use crate::receive::{Destination, DestinationRoom, MemoryDestination, ReceiveTransfer};
use crate::request::{Request, post_receive, post_send};
use crate::send::{Draining, SendStage, SendState};

/// How many parts may wait in a pipe.
const ROOM: usize = 4;

/// The parts of a message on their way from one path to another.
struct Pipe {
    state: Mutex<PipeState>,
    from: Arc<PathEnd>,
    to: Arc<PathEnd>,
}

#[derive(Default)]
struct PipeState {
    /// The metadata and the length of the message, once they have come.
    head: Option<(Arc<Meta>, u64)>,
    parts: VecDeque<SharedBuffer>,
    /// Whether all parts have come in.
    is_whole: bool,
    /// Whether one of the two calls has ended before the message was through.
    is_broken: bool,
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
    let inlet = PipeDestination {
        pipe: pipe.clone(),
        memory: memory.map(MemoryDestination::new),
    };
    let outlet = PipeTransfer {
        pipe,
        stage: SendStage::NotBegun,
    };
    Request::new(vec![
        post_receive(from, ReceiveTransfer::new(inlet)),
        post_send(to, outlet),
    ])
}

impl Pipe {
    fn state(&self) -> MutexGuard<'_, PipeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes what is in the pipe, and has the call at the outlet look.
    fn put(&self, change: impl FnOnce(&mut PipeState)) {
        change(&mut self.state());
        self.to.attend();
    }
}

/// The inlet of a pipe. The message may go to memory, too.
struct PipeDestination<M> {
    pipe: Arc<Pipe>,
    memory: Option<MemoryDestination<M>>,
}

impl<M: ReceiveMemory> PipeDestination<M> {
    /// Puts the head of a message in.
    fn put_head(&self, meta: &Arc<Meta>, length: u64) {
        let head = Some((meta.clone(), length));
        self.pipe.put(|state| state.head = head);
    }

    /// Puts bytes in that are at hand, as parts.
    fn put_bytes(&self, bytes: &[u8]) -> Result<()> {
        for part in bytes.chunks(PART as usize) {
            let part = Buffer::gather(&[IoSlice::new(part)]);
            let part = part.map_err(|why| PathError::NoMemory(why.to_string()))?;
            self.pipe.put(|state| state.parts.push_back(part.into()));
        }
        Ok(())
    }
}

impl<M: ReceiveMemory> Destination for PipeDestination<M> {
    fn begin(&mut self, meta: &Arc<Meta>, length: u64, kept: Option<Filling>) -> Result<()> {
        self.put_head(meta, length);
        if let Some(kept) = &kept {
            self.put_bytes(kept.beginning())?;
        }
        match &mut self.memory {
            Some(memory) => memory.begin(meta, length, kept),
            None => Ok(()),
        }
    }

    fn push(&mut self, bytes: &SharedBuffer) {
        if let Some(memory) = &mut self.memory {
            memory.push(bytes);
        }
        self.pipe.put(|state| state.parts.push_back(bytes.clone()));
    }

    fn take(&mut self, meta: &Arc<Meta>, bytes: SharedBuffer) -> Result<SharedBuffer> {
        self.put_head(meta, bytes.len() as u64);
        if bytes.len() as u64 <= PART {
            self.pipe.put(|state| state.parts.push_back(bytes.clone()));
        } else {
            self.put_bytes(&bytes)?;
        }
        self.pipe.put(|state| state.is_whole = true);
        match &mut self.memory {
            Some(memory) => memory.take(meta, bytes),
            None => Ok(SharedBuffer::default()),
        }
    }

    fn finish(&mut self) -> SharedBuffer {
        self.pipe.put(|state| state.is_whole = true);
        let memory = self.memory.as_mut();
        memory.map_or_else(SharedBuffer::default, |memory| memory.finish())
    }

    fn keep(&mut self) -> std::result::Result<Filling, String> {
        Err("the program that passes it on has given up".into())
    }

    fn room(&self) -> DestinationRoom {
        let state = self.pipe.state();
        if state.is_broken {
            DestinationRoom::Gone
        } else if state.parts.len() < ROOM {
            DestinationRoom::Free
        } else {
            DestinationRoom::Full
        }
    }
}

impl<M> Drop for PipeDestination<M> {
    fn drop(&mut self) {
        self.pipe.put(|state| state.is_broken |= !state.is_whole);
    }
}

/// The outlet of a pipe: a message on its way out, whose bytes come from another path. Does not tell of earlier messages that
/// the receiver has dropped: the bytes may be on their way already.
struct PipeTransfer {
    pipe: Arc<Pipe>,
    stage: SendStage,
}

impl Transfer for PipeTransfer {
    type State = SendState;
    type Output = ();

    fn advance(&mut self, end: &PathEnd, state: &mut SendState) -> Result<Option<()>> {
        loop {
            let (head, part, is_broken) = {
                let pipe = self.pipe.state();
                (
                    pipe.head.clone(),
                    pipe.parts.front().cloned(),
                    pipe.is_broken,
                )
            };
            let Some((meta, length)) = head else {
                return if is_broken {
                    Err(PathError::Cancelled)
                } else {
                    Ok(None)
                };
            };
            let sent = match self.stage {
                SendStage::Done => return Ok(Some(())),
                SendStage::NotBegun if length > PART => {
                    if !state.begin(end, &meta, length, &[], Draining::Copied)? {
                        return Ok(None);
                    }
                    0
                }
                stage => {
                    let Some(part) = part else {
                        return if is_broken {
                            Err(PathError::Cancelled)
                        } else {
                            Ok(None)
                        };
                    };
                    let bytes = [IoSlice::new(&part)];
                    let (sent, is_sent) = match stage {
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
                }
            };
            self.stage = SendStage::after(sent, length);
        }
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
            self.pipe.state().is_broken = true;
            self.pipe.from.attend();
        }
    }
}
