//! How a path receives a message.

use std::sync::{Arc, MutexGuard};

use titin_transport::{Filling, IncomingMessage, SharedBuffer};
use titin_wire::Malformed;
use titin_wire::meta::Meta;
use titin_wire::path::{LONGEST_TEXT, LongMessage, PartKind, PathControl};

use crate::end::PathEnd;
use crate::error::{PathError, Result};

/// A received message.
#[derive(Debug, Clone)]
pub struct ReceivedMessage {
    /// What the bytes are.
    pub meta: Arc<Meta>,
    /// How many bytes the message has.
    pub length: u64,
    /// The bytes; none if they are in memory of the caller.
    pub bytes: SharedBuffer,
}

/// Chooses the memory for a message, from its metadata and its number of bytes: memory of the caller, or `None` for
/// memory that the path gets. Of a message that does not fit, says why.
pub type MemoryChoice<'c, 'm> =
    &'c mut dyn FnMut(&Meta, u64) -> std::result::Result<Option<&'m mut [u8]>, String>;

/// What is known of the messages that have come in.
#[derive(Default)]
pub(crate) struct ReceiveState {
    /// How many messages have begun.
    messages: u64,
    /// The long message that is coming in.
    long: Option<IncomingLong>,
    /// The bytes of the long message that an earlier call has taken, and whose time was over then.
    kept: Vec<u8>,
}

/// A long message, of which not all parts have come.
struct IncomingLong {
    message: LongMessage,
    /// How many bytes have come.
    arrived: u64,
    /// Whether the parts are dropped, for want of room.
    is_dropped: bool,
}

/// The memory for a long message.
enum Memory<'m> {
    Caller(&'m mut [u8]),
    Own(Filling),
}

/// A message on its way in.
pub(crate) struct ReceiveTransfer<'c, 'm> {
    end: &'c PathEnd,
    state: MutexGuard<'c, ReceiveState>,
    choose: MemoryChoice<'c, 'm>,
    /// The memory with the bytes of the long message that have come.
    memory: Option<Memory<'m>>,
}

impl<'c, 'm> ReceiveTransfer<'c, 'm> {
    /// Receives the next message into the memory that `choose` chooses.
    pub(crate) fn new(end: &'c PathEnd, choose: MemoryChoice<'c, 'm>) -> Self {
        ReceiveTransfer {
            end,
            state: end.receiver(),
            choose,
            memory: None,
        }
    }

    /// Takes in what has come. `Some` once a message is whole.
    ///
    /// # Errors
    /// Those of the path, and of the message.
    pub(crate) fn advance(&mut self) -> Result<Option<ReceivedMessage>> {
        self.go_on()?;
        loop {
            let Some(message) = self.end.inbox.take() else {
                let is_over = self.end.inbox.exhausted();
                return if is_over {
                    Err(PathError::Closed)
                } else {
                    Ok(None)
                };
            };
            let whole = self
                .take(message)
                .map_err(|failure| failure.into_error(self.end))?;
            if whole.is_some() {
                return Ok(whole);
            }
        }
    }

    /// Keeps the bytes of a message that is not whole, for the next call.
    pub(crate) fn keep(mut self) {
        let state = &mut *self.state;
        if let (Some(long), Some(memory)) = (&state.long, self.memory) {
            let arrived = long.arrived as usize;
            state.kept = match memory {
                Memory::Caller(memory) => memory[..arrived].to_vec(),
                Memory::Own(memory) => memory.finish()[..arrived].to_vec(),
            };
        }
    }

    /// Goes on with a message of which an earlier call has taken parts.
    fn go_on(&mut self) -> Result<()> {
        let is_under_way = self
            .state
            .long
            .as_ref()
            .is_some_and(|long| !long.is_dropped);
        if self.memory.is_some() || !is_under_way {
            return Ok(());
        }
        self.prepare()?;
        let kept = std::mem::take(&mut self.state.kept);
        self.put(0, &kept);
        Ok(())
    }

    /// Gets memory for the long message. Drops the message if there is none.
    fn prepare(&mut self) -> Result<()> {
        let number = self.state.messages.saturating_sub(1);
        let long = self.state.long.as_mut().expect("the caller has looked");
        let length = long.message.length;
        let memory = match choose(self.choose, &long.message.meta, length) {
            Ok(Some(memory)) => Ok(Memory::Caller(memory)),
            Ok(None) => Filling::new(length)
                .map(Memory::Own)
                .map_err(|error| error.to_string()),
            Err(why) => Err(why),
        };
        match memory {
            Ok(memory) => {
                self.memory = Some(memory);
                Ok(())
            }
            Err(why) => {
                long.is_dropped = true;
                self.state.kept = Vec::new();
                Err(self.drop_message(number, why))
            }
        }
    }

    /// Tells the sender that its message was dropped. Returns the error for the receiver.
    fn drop_message(&self, message: u64, why: String) -> PathError {
        self.end.tell(&PathControl::Dropped {
            message,
            why: beginning(&why).to_owned(),
        });
        PathError::Unfit(why)
    }

    fn take(
        &mut self,
        message: IncomingMessage,
    ) -> std::result::Result<Option<ReceivedMessage>, ReceiveFailure> {
        let kind = PartKind::of_tag(message.head.tag)?;
        let Some(long) = &mut self.state.long else {
            return match kind {
                PartKind::Short => self.take_short(message).map(Some),
                PartKind::Head => {
                    self.state.messages += 1;
                    self.state.long = Some(IncomingLong {
                        message: LongMessage::decode(&message.body)?,
                        arrived: 0,
                        is_dropped: false,
                    });
                    self.prepare()?;
                    Ok(None)
                }
                PartKind::Part | PartKind::Abandoned => Err(out_of_order().into()),
            };
        };
        let (from, is_dropped) = (long.arrived, long.is_dropped);
        match kind {
            PartKind::Part => {}
            PartKind::Abandoned => {
                self.state.long = None;
                self.memory = None;
                return if is_dropped {
                    Ok(None)
                } else {
                    Err(PathError::Abandoned(from).into())
                };
            }
            PartKind::Short | PartKind::Head => return Err(out_of_order().into()),
        }
        let length = message.body.len() as u64;
        if length == 0 || length > long.message.length - from {
            return Err(out_of_order().into());
        }
        long.arrived += length;
        let is_whole = long.arrived == long.message.length;
        self.put(from, &message.body);
        let whole = is_whole.then(|| self.state.long.take()).flatten();
        let whole = whole.filter(|long| !long.is_dropped);
        Ok(whole.map(|long| self.finish(long.message)))
    }

    /// The long message, all of whose bytes are in the memory.
    fn finish(&mut self, message: LongMessage) -> ReceivedMessage {
        let bytes = match self.memory.take() {
            Some(Memory::Own(memory)) => SharedBuffer::from(memory.finish()),
            _ => SharedBuffer::default(),
        };
        ReceivedMessage {
            meta: Arc::new(message.meta),
            length: message.length,
            bytes,
        }
    }

    fn take_short(
        &mut self,
        message: IncomingMessage,
    ) -> std::result::Result<ReceivedMessage, ReceiveFailure> {
        let (number, length) = (self.state.messages, message.body.len() as u64);
        self.state.messages += 1;
        let memory = choose(self.choose, &message.meta, length)
            .map_err(|why| self.drop_message(number, why))?;
        let bytes = match memory {
            None => message.body,
            Some(memory) => {
                memory[..message.body.len()].copy_from_slice(&message.body);
                SharedBuffer::default()
            }
        };
        Ok(ReceivedMessage {
            meta: message.meta,
            length,
            bytes,
        })
    }

    /// Writes bytes behind the first `from` of the long message.
    fn put(&mut self, from: u64, bytes: &[u8]) {
        match &mut self.memory {
            Some(Memory::Caller(memory)) => {
                memory[from as usize..][..bytes.len()].copy_from_slice(bytes);
            }
            Some(Memory::Own(memory)) => memory.push(bytes),
            // The message is dropped.
            None => {}
        }
    }
}

/// The memory of the caller for a message, with room for all of it.
fn choose<'m>(
    choose: MemoryChoice<'_, 'm>,
    meta: &Meta,
    length: u64,
) -> std::result::Result<Option<&'m mut [u8]>, String> {
    let memory = choose(meta, length)?;
    let room = memory.as_ref().map_or(length, |memory| memory.len() as u64);
    if length > room {
        return Err(format!(
            "it has {length} bytes, and there is room for {room}"
        ));
    }
    Ok(memory)
}

/// The beginning of a text, as much as a control message may hold.
fn beginning(text: &str) -> &str {
    &text[..text.floor_char_boundary(LONGEST_TEXT)]
}

/// Why a part was not taken.
enum ReceiveFailure {
    /// The path is no more.
    Malformed(Malformed),
    Message(PathError),
}

impl ReceiveFailure {
    fn into_error(self, end: &PathEnd) -> PathError {
        match self {
            ReceiveFailure::Malformed(why) => end.refuse(why),
            ReceiveFailure::Message(why) => why,
        }
    }
}

impl From<Malformed> for ReceiveFailure {
    fn from(why: Malformed) -> Self {
        ReceiveFailure::Malformed(why)
    }
}

impl From<PathError> for ReceiveFailure {
    fn from(why: PathError) -> Self {
        ReceiveFailure::Message(why)
    }
}

fn out_of_order() -> Malformed {
    Malformed::new("message of a path", "a part that does not belong here")
}
