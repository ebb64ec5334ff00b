//! How a path receives a message.

use std::sync::Arc;

use titin_transport::{Filling, IncomingMessage, SharedBuffer};
use titin_wire::Malformed;
use titin_wire::meta::Meta;
use titin_wire::path::{LONGEST_TEXT, LongMessage, PartKind, PathControl};

use crate::end::PathEnd;
use crate::error::{PathError, Result};
use crate::lane::{PARTS_AT_ONCE, Transfer};
use crate::memory::ReceiveMemory;

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
    meta: Arc<Meta>,
    length: u64,
    /// How many bytes have come.
    arrived: u64,
    /// Whether the parts are dropped, for want of room.
    is_dropped: bool,
}

impl ReceiveState {
    /// The number of the message that the next call receives.
    pub(crate) fn next_message(&self) -> u64 {
        let is_kept =
            self.long.as_ref().is_some_and(|long| !long.is_dropped) || self.whole.is_some();
        self.messages - u64::from(is_kept)
    }

    /// Tells the sender that its last message was dropped.
    fn tell_dropped(&self, end: &PathEnd, why: &str) {
        tell_dropped(end, self.messages.saturating_sub(1), why);
    }
}

/// Where the bytes of a message go.
pub(crate) trait Destination {
    /// Begins the message with this number, with the bytes that an earlier call has kept.
    ///
    /// # Errors
    /// [`PathError::Unfit`] and [`PathError::NoMemory`]: the message is dropped.
    fn begin(
        &mut self,
        number: u64,
        meta: &Arc<Meta>,
        length: u64,
        kept: Option<Filling>,
    ) -> Result<()>;

    /// Takes the next bytes.
    fn push(&mut self, bytes: &SharedBuffer);

    /// Takes a message that has come whole, in place of `begin` and `push`. Returns its bytes, unless they are in memory
    /// of the caller.
    ///
    /// # Errors
    /// As [`Destination::begin`].
    fn take(&mut self, number: u64, meta: &Arc<Meta>, bytes: SharedBuffer) -> Result<SharedBuffer>;

    /// The bytes of a message that is whole, unless they are in memory of the caller.
    fn finish(&mut self) -> SharedBuffer;

    /// The bytes that have come, for the next call.
    ///
    /// # Errors
    /// Why they cannot be kept.
    fn keep(&mut self) -> std::result::Result<Filling, String>;

    /// Whether there is room for a part.
    fn room(&self) -> DestinationRoom {
        DestinationRoom::Free
    }
}

/// Whether a destination can take a part.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum DestinationRoom {
    Free,
    /// Later.
    Full,
    /// No more, for this reason.
    Gone(String),
}

/// Memory of the caller, or else of the path.
pub(crate) struct MemoryDestination<M> {
    memory: M,
    /// The memory of the path, if the message does not go to that of the caller.
    own: Option<Filling>,
    /// How many bytes the message has, and how many of them are in the memory of the caller.
    length: u64,
    filled: u64,
}

impl<M: ReceiveMemory> MemoryDestination<M> {
    pub(crate) fn new(memory: M) -> Self {
        MemoryDestination {
            memory,
            own: None,
            length: 0,
            filled: 0,
        }
    }

    /// Writes bytes behind those in the memory of the caller.
    fn fill(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let place = self.memory.place(self.filled);
            let (now, later) = bytes.split_at(bytes.len().min(place.len()));
            place[..now.len()].copy_from_slice(now);
            self.filled += now.len() as u64;
            bytes = later;
        }
    }
}

impl<M: ReceiveMemory> Destination for MemoryDestination<M> {
    fn begin(
        &mut self,
        _: u64,
        meta: &Arc<Meta>,
        length: u64,
        kept: Option<Filling>,
    ) -> Result<()> {
        (self.length, self.filled) = (length, 0);
        let is_accepted = self
            .memory
            .accepts(meta, length)
            .map_err(PathError::Unfit)?;
        match (is_accepted, kept) {
            (true, Some(kept)) => self.fill(kept.beginning()),
            (true, None) => {}
            (false, Some(kept)) => self.own = Some(kept),
            (false, None) => {
                let memory = Filling::new(length);
                self.own = Some(memory.map_err(|why| PathError::NoMemory(why.to_string()))?);
            }
        }
        Ok(())
    }

    fn push(&mut self, bytes: &SharedBuffer) {
        match &mut self.own {
            Some(memory) => memory.push(bytes),
            None => self.fill(bytes),
        }
    }

    fn take(&mut self, _: u64, meta: &Arc<Meta>, bytes: SharedBuffer) -> Result<SharedBuffer> {
        let accepted = self.memory.accepts(meta, bytes.len() as u64);
        if !accepted.map_err(PathError::Unfit)? {
            return Ok(bytes);
        }
        (self.length, self.filled) = (bytes.len() as u64, 0);
        self.fill(&bytes);
        Ok(SharedBuffer::default())
    }

    fn finish(&mut self) -> SharedBuffer {
        let own = self.own.take();
        own.map_or_else(SharedBuffer::default, |memory| memory.finish().into())
    }

    fn keep(&mut self) -> std::result::Result<Filling, String> {
        if let Some(memory) = self.own.take() {
            return Ok(memory);
        }
        let mut kept = Filling::new(self.length).map_err(|why| why.to_string())?;
        let mut copied = 0;
        while copied < self.filled {
            let place = self.memory.place(copied);
            let part = place.len().min((self.filled - copied) as usize);
            kept.push(&place[..part]);
            copied += part as u64;
        }
        Ok(kept)
    }
}

/// A message on its way in.
pub(crate) struct ReceiveTransfer<D> {
    destination: D,
    /// Whether the destination knows of the long message.
    has_begun: bool,
    /// Whether the call hears of messages that the other end drops while it waits.
    hears_of_dropped: bool,
}

impl<D: Destination> ReceiveTransfer<D> {
    pub(crate) fn new(destination: D) -> Self {
        ReceiveTransfer {
            destination,
            has_begun: false,
            hears_of_dropped: false,
        }
    }

    /// For a call in which the program waits: the other program perhaps waits, too, for a message that it has dropped.
    pub(crate) fn waiting(destination: D) -> Self {
        ReceiveTransfer {
            hears_of_dropped: true,
            ..ReceiveTransfer::new(destination)
        }
    }

    /// Keeps a whole message for the next call.
    pub(crate) fn keep_whole(
        &mut self,
        end: &PathEnd,
        state: &mut ReceiveState,
        message: ReceivedMessage,
    ) {
        let bytes = if message.bytes.len() as u64 == message.length {
            Ok(message.bytes)
        } else {
            self.destination.keep().map(|kept| kept.finish().into())
        };
        match bytes {
            Ok(bytes) => state.whole = Some(ReceivedMessage { bytes, ..message }),
            Err(why) => state.tell_dropped(end, &why),
        }
    }

    /// Ends the call if the destination takes no more. Drops the message of which it has taken a part.
    fn check_destination(&mut self, end: &PathEnd, state: &mut ReceiveState) -> Result<()> {
        let DestinationRoom::Gone(why) = self.destination.room() else {
            return Ok(());
        };
        if let Some(long) = &mut state.long
            && self.has_begun
            && !long.is_dropped
        {
            long.is_dropped = true;
            state.tell_dropped(end, &why);
        }
        Err(PathError::Cancelled)
    }

    /// Has the destination take the long message. Drops the message if it does not fit.
    fn begin_long(&mut self, end: &PathEnd, state: &mut ReceiveState) -> Result<()> {
        let Some(long) = &mut state.long else {
            return Ok(());
        };
        if self.has_begun || long.is_dropped {
            return Ok(());
        }
        self.has_begun = true;
        let kept = state.kept.take();
        let number = state.messages.saturating_sub(1);
        let begun = self
            .destination
            .begin(number, &long.meta, long.length, kept);
        if let Err(why) = &begun {
            long.is_dropped = true;
            state.tell_dropped(end, reason(why));
        }
        begun
    }

    fn accept_part(
        &mut self,
        end: &PathEnd,
        state: &mut ReceiveState,
        message: IncomingMessage,
    ) -> std::result::Result<Option<ReceivedMessage>, ReceiveFailure> {
        let kind = PartKind::of_tag(message.head.tag)?;
        let Some(long) = &mut state.long else {
            return match kind {
                PartKind::Short => {
                    state.messages += 1;
                    let whole = ReceivedMessage {
                        length: message.body.len() as u64,
                        meta: message.meta,
                        bytes: message.body,
                    };
                    let whole = self.take(end, state, whole)?;
                    end.counts.note_received(1, whole.length);
                    Ok(Some(whole))
                }
                PartKind::Head => {
                    let LongMessage { length, meta } = LongMessage::decode(&message.body)?;
                    state.messages += 1;
                    state.long = Some(IncomingLong {
                        meta: Arc::new(meta),
                        length,
                        arrived: 0,
                        is_dropped: false,
                    });
                    self.has_begun = false;
                    self.begin_long(end, state)?;
                    Ok(None)
                }
                PartKind::Part | PartKind::Abandoned => Err(out_of_order().into()),
            };
        };
        match kind {
            PartKind::Part => {}
            PartKind::Abandoned => {
                let (from, is_dropped) = (long.arrived, long.is_dropped);
                state.long = None;
                return if is_dropped {
                    Ok(None)
                } else {
                    Err(PathError::Abandoned(from).into())
                };
            }
            PartKind::Short | PartKind::Head => return Err(out_of_order().into()),
        }
        let length = message.body.len() as u64;
        if length == 0 || length > long.length - long.arrived {
            return Err(out_of_order().into());
        }
        long.arrived += length;
        if !long.is_dropped {
            self.destination.push(&message.body);
            end.counts.note_received(0, length);
        }
        if long.arrived < long.length {
            return Ok(None);
        }
        let whole = state.long.take().filter(|long| !long.is_dropped);
        end.counts.note_received(whole.is_some().into(), 0);
        Ok(whole.map(|long| ReceivedMessage {
            meta: long.meta,
            length: long.length,
            bytes: self.destination.finish(),
        }))
    }

    /// Brings a whole message to the destination.
    fn take(
        &mut self,
        end: &PathEnd,
        state: &mut ReceiveState,
        message: ReceivedMessage,
    ) -> Result<ReceivedMessage> {
        let number = state.messages.saturating_sub(1);
        match self.destination.take(number, &message.meta, message.bytes) {
            Ok(bytes) => Ok(ReceivedMessage {
                meta: message.meta,
                length: message.length,
                bytes,
            }),
            Err(why) => {
                state.tell_dropped(end, reason(&why));
                Err(why)
            }
        }
    }
}

impl<D: Destination> Transfer for ReceiveTransfer<D> {
    type State = ReceiveState;
    type Output = ReceivedMessage;

    fn advance(
        &mut self,
        end: &PathEnd,
        state: &mut ReceiveState,
    ) -> Result<Option<ReceivedMessage>> {
        self.check_destination(end, state)?;
        if let Some(whole) = state.whole.take() {
            return self.take(end, state, whole).map(Some);
        }
        self.begin_long(end, state)?;
        let mut parts = 0;
        // What has come in before the path has ended is taken in at once.
        while parts < PARTS_AT_ONCE || end.has_ended() {
            self.check_destination(end, state)?;
            if self.destination.room() == DestinationRoom::Full && !end.has_ended() {
                return Ok(None);
            }
            let Some(message) = end.inbox.peek() else {
                let is_over = end.inbox.exhausted();
                if self.hears_of_dropped {
                    end.check_dropped()?;
                }
                return match is_over {
                    true => Err(PathError::Closed),
                    false => Ok(None),
                };
            };
            let accepted = self.accept_part(end, state, message);
            // The sender hears first that a message was dropped, and then that it has come.
            end.inbox.take();
            let whole = accepted.map_err(|failure| failure.into_error(end))?;
            if whole.is_some() {
                return Ok(whole);
            }
            parts += 1;
        }
        // There may be more, of a fast sender.
        end.ring();
        Ok(None)
    }

    /// Keeps the bytes of a message that is not whole, for the next call.
    fn give_up(&mut self, end: &PathEnd, state: &mut ReceiveState) {
        let has_begun = std::mem::take(&mut self.has_begun);
        let Some(long) = &mut state.long else {
            return;
        };
        // A program that has closed the path receives no more.
        if !has_begun || long.is_dropped || end.window.finished() {
            return;
        }
        match self.destination.keep() {
            Ok(kept) => state.kept = Some(kept),
            Err(why) => {
                long.is_dropped = true;
                state.tell_dropped(end, &why);
            }
        }
    }
}

/// Tells the sender that its message with this number was dropped.
pub(crate) fn tell_dropped(end: &PathEnd, message: u64, why: &str) {
    let why = beginning(why).to_owned();
    end.tell(&PathControl::Dropped { message, why });
}

/// Why a message was dropped, for its sender.
fn reason(why: &PathError) -> &str {
    match why {
        PathError::Unfit(why) | PathError::NoMemory(why) => why,
        _ => "",
    }
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
