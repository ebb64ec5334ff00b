//! How a path receives a message.

use std::sync::Arc;

use titin_transport::{Filling, IncomingMessage, SharedBuffer};
use titin_wire::Malformed;
use titin_wire::meta::Meta;
use titin_wire::path::{LONGEST_TEXT, LongMessage, PartKind, PathControl};

use crate::end::{PathEnd, Turn};
use crate::error::{PathError, Result};
use crate::time_limit::TimeLimit;

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
    kept: Option<Filling>,
    /// A message that an earlier call has received whole and not returned.
    whole: Option<ReceivedMessage>,
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
    state: Turn<'c, ReceiveState>,
    time: TimeLimit,
    choose: MemoryChoice<'c, 'm>,
    /// The memory with the bytes of the long message that have come.
    memory: Option<Memory<'m>>,
    /// The memory of the caller with the bytes of the whole message.
    filled: Option<&'m mut [u8]>,
}

impl<'c, 'm> ReceiveTransfer<'c, 'm> {
    /// Receives the next message into the memory that `choose` chooses, once it is the turn of the caller.
    ///
    /// # Errors
    /// As [`PathEnd::take_turn`].
    pub(crate) fn begin(
        end: &'c PathEnd,
        choose: MemoryChoice<'c, 'm>,
        time: TimeLimit,
    ) -> Result<Self> {
        Ok(ReceiveTransfer {
            end,
            state: end.take_turn(&end.receive_state, "a message", time)?,
            time,
            choose,
            memory: None,
            filled: None,
        })
    }

    /// Takes in what has come. `Some` once a message is whole.
    ///
    /// # Errors
    /// Those of the path, and of the message.
    pub(crate) fn advance(&mut self) -> Result<Option<ReceivedMessage>> {
        if let Some(whole) = self.state.whole.take() {
            return self.hand_over(whole).map(Some);
        }
        self.resume_long()?;
        loop {
            let Some(message) = self.end.inbox.peek() else {
                let is_over = self.end.inbox.exhausted();
                return if is_over {
                    Err(PathError::Closed)
                } else {
                    Ok(None)
                };
            };
            let accepted = self.accept_part(message);
            // The sender hears first that a message was dropped, and then that it has come.
            self.end.inbox.take();
            let whole = accepted.map_err(|failure| failure.into_error(self.end))?;
            if whole.is_some() {
                return Ok(whole);
            }
            // A fast sender has the next part there at once, again and again.
            if let Some(limit) = self.time.exceeded() {
                let what = "a message";
                return Err(PathError::Late { what, limit });
            }
        }
    }

    /// Keeps the bytes of a message that is not whole, for the next call.
    pub(crate) fn keep(mut self) {
        let memory = self.memory.take();
        let state = &mut *self.state;
        let number = state.messages.saturating_sub(1);
        let (Some(long), Some(memory)) = (&mut state.long, memory) else {
            return;
        };
        let kept = match memory {
            Memory::Own(memory) => Ok(memory),
            Memory::Caller(memory) => Filling::new(long.message.length).map(|mut kept| {
                kept.push(&memory[..long.arrived as usize]);
                kept
            }),
        };
        match kept {
            Ok(kept) => state.kept = Some(kept),
            Err(error) => {
                long.is_dropped = true;
                self.tell_dropped(number, &error.to_string());
            }
        }
    }

    /// Keeps a whole message for the next call.
    pub(crate) fn keep_whole(mut self, message: ReceivedMessage) {
        let number = self.state.messages.saturating_sub(1);
        let ReceivedMessage { length, .. } = message;
        let bytes = match self.filled.take() {
            None => Ok(message.bytes),
            Some(memory) => Filling::new(length).map(|mut kept| {
                kept.push(&memory[..length as usize]);
                SharedBuffer::from(kept.finish())
            }),
        };
        match bytes {
            Ok(bytes) => self.state.whole = Some(ReceivedMessage { bytes, ..message }),
            Err(error) => self.tell_dropped(number, &error.to_string()),
        }
    }

    /// Goes on with a long message of which an earlier call has taken parts.
    fn resume_long(&mut self) -> Result<()> {
        let long = self.state.long.as_ref();
        let is_under_way = long.is_some_and(|long| !long.is_dropped);
        if self.memory.is_some() || !is_under_way {
            return Ok(());
        }
        self.prepare()?;
        // Memory of the path's own is that of the earlier call.
        if let Some(kept) = self.state.kept.take() {
            let arrived = kept.filled();
            self.write_at(0, &kept.finish()[..arrived]);
        }
        Ok(())
    }

    /// Gets memory for the long message. Drops the message if there is none.
    fn prepare(&mut self) -> Result<()> {
        let state = &mut *self.state;
        let number = state.messages.saturating_sub(1);
        let long = state.long.as_mut().expect("the caller has looked");
        let length = long.message.length;
        let memory = match choose(self.choose, &long.message.meta, length) {
            Ok(Some(memory)) => Ok(Memory::Caller(memory)),
            Ok(None) => match state.kept.take() {
                Some(kept) => Ok(Memory::Own(kept)),
                None => Filling::new(length)
                    .map(Memory::Own)
                    .map_err(|error| PathError::NoMemory(error.to_string())),
            },
            Err(why) => Err(PathError::Unfit(why)),
        };
        match memory {
            Ok(memory) => {
                self.memory = Some(memory);
                Ok(())
            }
            Err(why) => {
                long.is_dropped = true;
                state.kept = None;
                self.tell_dropped(number, reason(&why));
                Err(why)
            }
        }
    }

    /// Tells the sender that its message was dropped.
    fn tell_dropped(&self, message: u64, why: &str) {
        self.end.tell(&PathControl::Dropped {
            message,
            why: beginning(why).to_owned(),
        });
    }

    fn accept_part(
        &mut self,
        message: IncomingMessage,
    ) -> std::result::Result<Option<ReceivedMessage>, ReceiveFailure> {
        let kind = PartKind::of_tag(message.head.tag)?;
        let Some(long) = &mut self.state.long else {
            return match kind {
                PartKind::Short => {
                    self.state.messages += 1;
                    let whole = ReceivedMessage {
                        length: message.body.len() as u64,
                        meta: message.meta,
                        bytes: message.body,
                    };
                    Ok(Some(self.hand_over(whole)?))
                }
                PartKind::Head => {
                    let message = LongMessage::decode(&message.body)?;
                    self.state.messages += 1;
                    self.state.long = Some(IncomingLong {
                        message,
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
        self.write_at(from, &message.body);
        let whole = is_whole.then(|| self.state.long.take()).flatten();
        let whole = whole.filter(|long| !long.is_dropped);
        Ok(whole.map(|long| self.finish(long.message)))
    }

    /// The long message, all of whose bytes are in the memory.
    fn finish(&mut self, message: LongMessage) -> ReceivedMessage {
        let bytes = match self.memory.take() {
            Some(Memory::Own(memory)) => SharedBuffer::from(memory.finish()),
            Some(Memory::Caller(memory)) => {
                self.filled = Some(memory);
                SharedBuffer::default()
            }
            None => SharedBuffer::default(),
        };
        ReceivedMessage {
            meta: Arc::new(message.meta),
            length: message.length,
            bytes,
        }
    }

    /// Brings a whole message into the memory that the caller chooses.
    fn hand_over(&mut self, message: ReceivedMessage) -> Result<ReceivedMessage> {
        match choose(self.choose, &message.meta, message.length) {
            Ok(None) => Ok(message),
            Ok(Some(memory)) => {
                memory[..message.bytes.len()].copy_from_slice(&message.bytes);
                self.filled = Some(memory);
                Ok(ReceivedMessage {
                    bytes: SharedBuffer::default(),
                    ..message
                })
            }
            Err(why) => {
                self.tell_dropped(self.state.messages.saturating_sub(1), &why);
                Err(PathError::Unfit(why))
            }
        }
    }

    /// Writes bytes behind the first `from` of the long message.
    fn write_at(&mut self, from: u64, bytes: &[u8]) {
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

/// Why a message was dropped, for its sender.
fn reason(why: &PathError) -> &str {
    match why {
        PathError::Unfit(why) | PathError::NoMemory(why) => why,
        _ => "",
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
