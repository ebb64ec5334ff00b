//! How a path receives a message.

use std::sync::{Arc, MutexGuard};

use titin_transport::{Filling, IncomingMessage, SharedBuffer};
use titin_wire::Malformed;
use titin_wire::meta::Meta;
use titin_wire::path::{LongMessage, PartKind, PathControl};

use crate::end::PathEnd;
use crate::error::{PathError, Result};

/// A received message.
#[derive(Debug, Clone)]
pub struct ReceivedMessage {
    /// What the bytes are.
    pub meta: Arc<Meta>,
    /// The bytes.
    pub bytes: SharedBuffer,
}

/// A message received into memory of the caller.
#[derive(Debug, Clone)]
pub struct ReceivedInto {
    /// What the bytes are.
    pub meta: Arc<Meta>,
    /// How many bytes the message has.
    pub length: u64,
}

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

/// The memory for a message.
enum Memory<'a> {
    Caller(&'a mut [u8]),
    /// Memory of the message's length, once the length is known.
    Own(Option<Filling>),
}

/// A message on its way in.
pub(crate) struct ReceiveTransfer<'a> {
    end: &'a PathEnd,
    state: MutexGuard<'a, ReceiveState>,
    memory: Memory<'a>,
    /// Whether the memory has the bytes of the long message that have come.
    has_begun: bool,
}

/// A whole message.
pub(crate) enum Received {
    /// A short message. Its bytes are not in the memory.
    Short(IncomingMessage),
    /// A long message in the memory.
    Long(LongMessage),
}

impl<'a> ReceiveTransfer<'a> {
    /// Receives into memory of the caller.
    pub(crate) fn into_memory(end: &'a PathEnd, memory: &'a mut [u8]) -> Self {
        Self::new(end, Memory::Caller(memory))
    }

    /// Receives into memory that is got for the message.
    pub(crate) fn into_own(end: &'a PathEnd) -> Self {
        Self::new(end, Memory::Own(None))
    }

    fn new(end: &'a PathEnd, memory: Memory<'a>) -> Self {
        ReceiveTransfer {
            end,
            state: end.receiver(),
            memory,
            has_begun: false,
        }
    }

    /// Takes in what has come. `Some` once a message is whole.
    ///
    /// # Errors
    /// Those of the path, and of the message.
    pub(crate) fn advance(&mut self) -> Result<Option<Received>> {
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
        if let Some(long) = state.long.as_ref().filter(|long| !long.is_dropped)
            && self.has_begun
        {
            let arrived = long.arrived as usize;
            state.kept = match &mut self.memory {
                Memory::Caller(memory) => memory[..arrived].to_vec(),
                Memory::Own(memory) => memory
                    .take()
                    .map_or_else(Vec::new, |memory| memory.finish()[..arrived].to_vec()),
            };
        }
    }

    /// The memory, once a long message is whole.
    pub(crate) fn into_bytes(self) -> SharedBuffer {
        match self.memory {
            Memory::Own(Some(memory)) => SharedBuffer::from(memory.finish()),
            _ => SharedBuffer::default(),
        }
    }

    /// Goes on with a message of which an earlier call has taken parts.
    fn go_on(&mut self) -> Result<()> {
        let is_under_way = self
            .state
            .long
            .as_ref()
            .is_some_and(|long| !long.is_dropped);
        if self.has_begun || !is_under_way {
            return Ok(());
        }
        self.prepare()?;
        let kept = std::mem::take(&mut self.state.kept);
        self.memory.put(0, &kept);
        Ok(())
    }

    /// Gets memory for the long message. Drops the message if there is none.
    fn prepare(&mut self) -> Result<()> {
        let number = self.state.messages.saturating_sub(1);
        let long = self.state.long.as_mut().expect("the caller has looked");
        let length = long.message.length;
        if let Err(why) = self.memory.hold(length) {
            long.is_dropped = true;
            self.state.kept = Vec::new();
            self.drop_message(number, length);
            return Err(why);
        }
        self.has_begun = true;
        Ok(())
    }

    /// Tells the sender that its message was dropped.
    fn drop_message(&self, message: u64, length: u64) {
        self.end.tell(&PathControl::Dropped {
            message,
            length,
            room: self.memory.room(),
        });
    }

    fn take(
        &mut self,
        message: IncomingMessage,
    ) -> std::result::Result<Option<Received>, ReceiveFailure> {
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
                self.has_begun = false;
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
        if !is_dropped {
            self.memory.put(from, &message.body);
        }
        let is_whole = long.arrived == long.message.length;
        let whole = is_whole.then(|| self.state.long.take()).flatten();
        Ok(whole
            .filter(|long| !long.is_dropped)
            .map(|long| Received::Long(long.message)))
    }

    fn take_short(
        &mut self,
        message: IncomingMessage,
    ) -> std::result::Result<Received, ReceiveFailure> {
        let (number, length) = (self.state.messages, message.body.len() as u64);
        self.state.messages += 1;
        if let Memory::Caller(memory) = &mut self.memory {
            let room = memory.len() as u64;
            let Some(place) = memory.get_mut(..message.body.len()) else {
                self.drop_message(number, length);
                return Err(PathError::TooLarge { length, room }.into());
            };
            place.copy_from_slice(&message.body);
        }
        Ok(Received::Short(message))
    }
}

impl Memory<'_> {
    /// The bytes for which there is room.
    fn room(&self) -> u64 {
        match self {
            Memory::Caller(memory) => memory.len() as u64,
            Memory::Own(memory) => memory.as_ref().map_or(0, |memory| memory.filled() as u64),
        }
    }

    /// Gets room for `length` bytes.
    fn hold(&mut self, length: u64) -> Result<()> {
        match self {
            Memory::Caller(memory) if (memory.len() as u64) < length => Err(PathError::TooLarge {
                length,
                room: memory.len() as u64,
            }),
            Memory::Caller(_) => Ok(()),
            Memory::Own(memory) => {
                let filling =
                    Filling::new(length).map_err(|error| PathError::Message(error.to_string()))?;
                *memory = Some(filling);
                Ok(())
            }
        }
    }

    /// Writes bytes behind the first `from`.
    fn put(&mut self, from: u64, bytes: &[u8]) {
        match self {
            Memory::Caller(memory) => memory[from as usize..][..bytes.len()].copy_from_slice(bytes),
            Memory::Own(Some(memory)) => memory.push(bytes),
            Memory::Own(None) => {}
        }
    }
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
