//! The writing side of a link's first stream: frames in order, and the queue for a full socket.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use titin_wire::ConduitId;
use titin_wire::frame::{Frame, HEADER, Head, Header, PIECE};

use super::payload::{PayloadRest, slice_parts};
use super::room::RoomWait;
use super::socket::write;
use crate::carrier::Outgoing;
use crate::error::LinkError;

/// Queued frames are joined up to `BATCH` bytes: small frames share a system call.
const BATCH: usize = 64 << 10;

/// The most bytes of the queue written in one turn, for the sake of other threads.
const TURN: usize = 4 << 20;

/// A frame or a message of a thread that does not wait for a turn.
pub(super) enum Deferred {
    /// A frame before all messages.
    Frame(Vec<u8>),
    /// As `Frame`, with a descriptor.
    FrameWithFile(Vec<u8>, SharedFile),
    /// A frame behind the messages of its conduit: the end of the conduit, or the head of a message
    /// with a payload on further streams.
    Behind(ConduitId, Vec<u8>),
    /// A message, behind earlier messages of the conduit.
    Message(ConduitId, QueuedMessage),
    /// The end of the connection, behind what the socket takes of the queue.
    Close,
}

/// A descriptor sent with a frame.
type SharedFile = Arc<dyn AsFd + Send + Sync>;

/// The waiting bytes of a link's first stream.
#[derive(Default)]
pub(super) struct FrameWriter {
    /// The bytes of the frames under way. Nothing may go before them.
    partial: Vec<u8>,
    written: usize,
    /// Control messages and acknowledgements.
    urgent: VecDeque<(Vec<u8>, Option<SharedFile>)>,
    /// The descriptor for the frame under way.
    file: Option<SharedFile>,
    /// Copied messages, by conduit; the conduits take turns.
    backlog: VecDeque<(ConduitId, VecDeque<QueuedMessage>)>,
    /// The socket has taken nothing for a while: the next thread does not wait for the socket
    /// again.
    stalled: bool,
    /// Whether the reactor watches for room in the socket.
    pub(super) watched: bool,
    /// Whether the connection ends behind what the socket takes.
    is_closing: bool,
}

/// A message or the rest of a message, in memory that does not change; or a frame in the order of a
/// conduit.
pub(super) enum QueuedMessage {
    Message {
        frames: MessageFrames,
        meta: Vec<u8>,
        rest: PayloadRest,
    },
    Frame(Vec<u8>),
}

/// The frames of a message, one after the other.
#[derive(Debug, Clone)]
pub(super) struct MessageFrames {
    head: Head,
    total: u64,
    offset: u64,
    begun: bool,
}

impl MessageFrames {
    fn new(message: &Outgoing<'_>) -> Self {
        MessageFrames {
            head: message.head,
            total: message.length(),
            offset: 0,
            begun: false,
        }
    }

    /// The next frame: the header, the metadata behind the header, and the number of payload bytes.
    fn next<'a>(&mut self, meta: &'a [u8]) -> ([u8; HEADER], &'a [u8], u64) {
        let piece = (self.total - self.offset).min(PIECE as u64);
        let MessageFrames {
            head,
            total,
            offset,
            begun,
        } = *self;
        let (frame, meta) = if begun {
            let Head {
                conduit, sequence, ..
            } = head;
            (
                Frame::More {
                    conduit,
                    sequence,
                    body: piece,
                    offset,
                },
                &[][..],
            )
        } else {
            (
                Frame::Data {
                    head,
                    meta: meta.len() as u32,
                    body: piece,
                    total,
                },
                meta,
            )
        };
        self.begun = true;
        self.offset += piece;
        (Header::from(&frame).encode(), meta, piece)
    }

    fn is_done(&self) -> bool {
        self.begun && self.offset == self.total
    }
}

/// How far a message has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WriteProgress {
    /// The whole message is written, or queued.
    Done,
    /// There are further frames.
    More,
    /// The socket takes no more; the rest has to be copied.
    Stalled,
}

impl FrameWriter {
    /// Queues the frames and messages of other threads.
    pub(super) fn queue(&mut self, deferred: Vec<Deferred>) {
        for deferred in deferred {
            match deferred {
                Deferred::Frame(frame) => self.urgent.push_back((frame, None)),
                Deferred::FrameWithFile(frame, file) => self.urgent.push_back((frame, Some(file))),
                Deferred::Behind(conduit, frame) => self
                    .messages(conduit)
                    .push_back(QueuedMessage::Frame(frame)),
                Deferred::Message(conduit, message) => self.messages(conduit).push_back(message),
                Deferred::Close => self.is_closing = true,
            }
        }
    }

    /// Whether the connection is to end now: once after [`Deferred::Close`].
    pub(super) fn take_closing(&mut self) -> bool {
        std::mem::take(&mut self.is_closing)
    }

    /// Whether messages of the conduit are queued. If so, a later message must wait behind them.
    pub(super) fn holds(&self, conduit: ConduitId) -> bool {
        self.backlog.iter().any(|(held, _)| *held == conduit)
    }

    /// Whether anything is queued.
    pub(super) fn has_queue(&self) -> bool {
        !(self.partial.is_empty() && self.urgent.is_empty() && self.backlog.is_empty())
    }

    /// Writes as much of the queue as the socket takes, up to the length of a turn.
    pub(super) fn write_queue(&mut self, socket: &OwnedFd) -> Result<(), LinkError> {
        let mut written = 0;
        while written < TURN && self.fill() {
            written += self.partial.len() - self.written;
            if !self.write_partial(socket, None)? {
                break;
            }
        }
        Ok(())
    }

    /// Makes way for a message: writes the frames under way, urgent frames, and a frame of the
    /// backlog, which goes first. Waits for room in the socket; false if there is none for a
    /// while.
    pub(super) fn make_way(
        &mut self,
        socket: &OwnedFd,
        room: &mut RoomWait<'_>,
    ) -> Result<bool, LinkError> {
        Ok(self.write_partial(socket, Some(room))?
            && (!self.fill() || self.write_partial(socket, Some(room))?))
    }

    /// Writes the frames under way, and waits for room in the socket if `room` is given; true if no
    /// frame is under way any more.
    fn write_partial(
        &mut self,
        socket: &OwnedFd,
        mut room: Option<&mut RoomWait<'_>>,
    ) -> Result<bool, LinkError> {
        while self.written < self.partial.len() {
            let rest = [IoSlice::new(&self.partial[self.written..])];
            let file = self.file.as_ref().map(|file| file.as_fd());
            match write(socket, &rest, file)? {
                0 => match &mut room {
                    Some(room) if !self.stalled => {
                        self.stalled = !room.wait([socket])?;
                        if self.stalled {
                            return Ok(false);
                        }
                    }
                    _ => return Ok(false),
                },
                count => {
                    self.stalled = false;
                    self.file = None;
                    self.written += count;
                }
            }
        }
        self.partial.clear();
        self.partial.shrink_to(PIECE + BATCH);
        self.written = 0;
        Ok(true)
    }

    /// Begins the next queued frames if none is under way; false if nothing is queued.
    fn fill(&mut self) -> bool {
        if !self.partial.is_empty() {
            return true;
        }
        while self.partial.len() < BATCH {
            if let Some((_, Some(_))) = self.urgent.front()
                && !self.partial.is_empty()
            {
                break;
            }
            if let Some((frame, file)) = self.urgent.pop_front() {
                self.partial.extend_from_slice(&frame);
                if file.is_some() {
                    self.file = file;
                    break;
                }
                continue;
            }
            let Some((conduit, mut messages)) = self.backlog.pop_front() else {
                break;
            };
            let message = messages
                .front_mut()
                .expect("a conduit with nothing to send is taken out");
            if message.next_frame(&mut self.partial) {
                messages.pop_front();
            }
            if !messages.is_empty() {
                self.backlog.push_back((conduit, messages));
            }
        }
        !self.partial.is_empty()
    }

    /// Queues a copy of the rest of a message, in place of queued messages that the message
    /// supersedes. Returns how many bytes of payload were copied.
    pub(super) fn copy_rest(&mut self, message: &MessageInProgress<'_>) -> Result<u64, LinkError> {
        let rest = message.copy_rest()?;
        let messages = self.messages(message.conduit());
        if let Some(first) = message.message.meta.supersedes {
            messages.retain(|queued| match queued {
                QueuedMessage::Message { frames, .. } => {
                    frames.begun || frames.head.sequence < first
                }
                QueuedMessage::Frame(_) => true,
            });
        }
        messages.push_back(rest);
        Ok(message.frames.total - message.frames.offset)
    }

    fn messages(&mut self, conduit: ConduitId) -> &mut VecDeque<QueuedMessage> {
        let index = self
            .backlog
            .iter()
            .position(|(held, _)| *held == conduit)
            .unwrap_or_else(|| {
                self.backlog.push_back((conduit, VecDeque::new()));
                self.backlog.len() - 1
            });
        &mut self.backlog[index].1
    }
}

impl QueuedMessage {
    /// A whole message, with a payload that may be shared.
    pub(super) fn whole(message: &Outgoing<'_>) -> Result<Self, LinkError> {
        let rest = PayloadRest::whole(message.shared()?);
        Ok(QueuedMessage::Message {
            frames: MessageFrames::new(message),
            meta: message.meta.encode(),
            rest,
        })
    }

    /// Appends the next frame to `out`; true for the last frame.
    fn next_frame(&mut self, out: &mut Vec<u8>) -> bool {
        match self {
            QueuedMessage::Message { frames, meta, rest } => {
                let offset = frames.offset;
                let (header, meta, length) = frames.next(meta);
                out.extend_from_slice(&header);
                out.extend_from_slice(meta);
                out.extend_from_slice(rest.part(offset, length));
                frames.is_done()
            }
            QueuedMessage::Frame(frame) => {
                out.extend_from_slice(frame);
                true
            }
        }
    }
}

/// A message under way, written from the caller's memory, frame by frame.
pub(super) struct MessageInProgress<'a> {
    message: &'a Outgoing<'a>,
    meta: Vec<u8>,
    frames: MessageFrames,
    /// Whether some bytes of the message have been written.
    begun: bool,
}

impl<'a> MessageInProgress<'a> {
    pub(super) fn new(message: &'a Outgoing<'a>) -> Self {
        MessageInProgress {
            message,
            meta: message.meta.encode(),
            frames: MessageFrames::new(message),
            begun: false,
        }
    }

    pub(super) fn conduit(&self) -> ConduitId {
        self.message.head.conduit
    }

    /// Whether the other end has seen a part of the message; if so, only the rest may follow.
    pub(super) fn begun(&self) -> bool {
        self.begun
    }

    /// Writes the next frame, waiting for room in the socket. If the frame stalls, the rest of the
    /// frame is copied to the writer, and the copied bytes of payload are added to `copied`.
    pub(super) fn write_next(
        &mut self,
        writer: &mut FrameWriter,
        socket: &OwnedFd,
        room: &mut RoomWait<'_>,
        copied: &mut u64,
    ) -> Result<WriteProgress, LinkError> {
        let offset = self.frames.offset;
        let (header, meta, piece) = self.frames.next(&self.meta);
        let mut slices = Vec::with_capacity(2 + self.message.parts.len());
        slices.extend([IoSlice::new(&header), IoSlice::new(meta)]);
        slice_parts(self.message.parts, offset, piece, &mut slices);

        let mut rest = &mut slices[..];
        IoSlice::advance_slices(&mut rest, 0);
        while !rest.is_empty() {
            let written = write(socket, rest, None)?;
            self.begun |= written > 0;
            match written {
                0 if !room.wait([socket])? => {
                    rest.iter()
                        .for_each(|slice| writer.partial.extend_from_slice(slice));
                    writer.stalled = true;
                    *copied += piece.min(writer.partial.len() as u64);
                    break;
                }
                count => IoSlice::advance_slices(&mut rest, count),
            }
        }
        Ok(match (writer.partial.is_empty(), self.frames.is_done()) {
            (_, true) => WriteProgress::Done,
            (true, false) => WriteProgress::More,
            (false, false) => WriteProgress::Stalled,
        })
    }

    /// A copy of the frames that were not begun.
    fn copy_rest(&self) -> Result<QueuedMessage, LinkError> {
        let rest = PayloadRest::copy(self.message.parts, self.frames.offset, self.frames.total)?;
        Ok(QueuedMessage::Message {
            frames: self.frames.clone(),
            meta: self.meta.clone(),
            rest,
        })
    }
}
