//! The writing side of a link: frames in order, one at a time, and what is left over when the socket is full.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use titin_wire::ConduitId;
use titin_wire::frame::{Frame, HEADER, Head, Header, PIECE};

use super::payload::{Rest, slice_parts};
use super::socket::{writable, write};
use crate::shm::Segment;
use crate::{Lost, Outgoing};

/// Frames that wait are put together up to this many bytes, so that small ones share a call.
const BATCH: usize = 64 << 10;

/// What is written of the backlog in one turn, so that others get theirs.
const TURN: usize = 4 << 20;

/// What those leave who must not wait for a turn.
pub(super) enum Left {
    /// A frame that goes before all messages.
    Frame(Vec<u8>),
    /// A frame with which the descriptor of a segment goes.
    Handing(Vec<u8>, Arc<Segment>),
    /// The end of a conduit, or the head of a message whose payload goes by further streams: it goes behind the messages of
    /// its conduit.
    Behind(ConduitId, Vec<u8>),
    /// A message, behind those of its conduit.
    Message(ConduitId, Kept),
}

/// What waits to be written on a link.
#[derive(Default)]
pub(super) struct Writer {
    /// Frames, or the rest of one whose beginning has been written: nothing else may go before it.
    partial: Vec<u8>,
    written: usize,
    /// Control messages and acknowledgements.
    urgent: VecDeque<(Vec<u8>, Option<Arc<Segment>>)>,
    /// The segment whose descriptor goes with the frame under way.
    riding: Option<Arc<Segment>>,
    /// Messages that were copied, by conduit; the conduits take turns.
    backlog: VecDeque<(ConduitId, VecDeque<Kept>)>,
    /// The socket has taken nothing for a while: who comes next need not wait for it again.
    stalled: bool,
    /// Whether the reactor watches for room in the socket.
    pub(super) watched: bool,
}

/// A message, or what is left of one, in memory that nobody changes; or a frame that goes behind those before it.
pub(super) enum Kept {
    Message {
        frames: Frames,
        meta: Vec<u8>,
        rest: Rest,
    },
    Frame(Vec<u8>),
}

/// The frames of a message, one after the other.
#[derive(Debug, Clone)]
pub(super) struct Frames {
    head: Head,
    total: u64,
    offset: u64,
    begun: bool,
}

impl Frames {
    fn new(message: &Outgoing<'_>) -> Self {
        Frames {
            head: message.head,
            total: message.length(),
            offset: 0,
            begun: false,
        }
    }

    /// The next frame: its header, the metadata that follow it, and how many bytes of payload.
    fn next<'a>(&mut self, meta: &'a [u8]) -> ([u8; HEADER], &'a [u8], u64) {
        let piece = (self.total - self.offset).min(PIECE as u64);
        let Frames {
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

/// How far one step of a message came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// All of it is written, or kept to be.
    Done,
    /// There are further pieces.
    More,
    /// The socket takes no more; the rest has to be kept.
    Stalled,
}

impl Writer {
    /// Takes over what others have left.
    pub(super) fn absorb(&mut self, left: Vec<Left>) {
        for item in left {
            match item {
                Left::Frame(frame) => self.urgent.push_back((frame, None)),
                Left::Handing(frame, segment) => self.urgent.push_back((frame, Some(segment))),
                Left::Behind(conduit, frame) => {
                    self.messages(conduit).push_back(Kept::Frame(frame))
                }
                Left::Message(conduit, kept) => self.messages(conduit).push_back(kept),
            }
        }
    }

    /// Whether messages of this conduit wait here, so that a later one must wait behind them.
    pub(super) fn holds(&self, conduit: ConduitId) -> bool {
        self.backlog.iter().any(|(held, _)| *held == conduit)
    }

    /// Whether anything waits here.
    pub(super) fn waits(&self) -> bool {
        !(self.partial.is_empty() && self.urgent.is_empty() && self.backlog.is_empty())
    }

    /// Writes as much as the socket takes, up to the length of a turn.
    pub(super) fn pump(&mut self, socket: &OwnedFd) -> Result<(), Lost> {
        let mut turn = 0;
        while turn < TURN && self.fill() {
            turn += self.partial.len() - self.written;
            if !self.write_partial(socket, Duration::ZERO)? {
                break;
            }
        }
        Ok(())
    }

    /// Makes way for a message: writes the frame under way, what is urgent, and a frame of the backlog, whose turn it
    /// is before ours. Waits up to `stall` at a time for room in the socket; false if there is none.
    pub(super) fn make_way(&mut self, socket: &OwnedFd, stall: Duration) -> Result<bool, Lost> {
        Ok(self.write_partial(socket, stall)?
            && (!self.fill() || self.write_partial(socket, stall)?))
    }

    /// Writes the frame under way; true if none is under way any more.
    fn write_partial(&mut self, socket: &OwnedFd, stall: Duration) -> Result<bool, Lost> {
        while self.written < self.partial.len() {
            let rest = [IoSlice::new(&self.partial[self.written..])];
            match write(
                socket,
                &rest,
                self.riding.as_ref().map(|segment| segment.file()),
            )? {
                0 if self.stalled || stall.is_zero() => return Ok(false),
                0 if !writable([socket], stall)? => {
                    self.stalled = true;
                    return Ok(false);
                }
                0 => {}
                count => {
                    self.stalled = false;
                    self.riding = None;
                    self.written += count;
                }
            }
        }
        self.partial.clear();
        self.partial.shrink_to(PIECE + BATCH);
        self.written = 0;
        Ok(true)
    }

    /// Makes the next frames that wait the ones under way, if none is; false if nothing waits.
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
            if let Some((frame, segment)) = self.urgent.pop_front() {
                self.partial.extend_from_slice(&frame);
                if segment.is_some() {
                    self.riding = segment;
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

    /// Keeps a copy of what is left of a message; returns how many bytes of payload that is.
    pub(super) fn keep(&mut self, message: &Writing<'_>) -> Result<u64, Lost> {
        let kept = message.rest()?;
        let messages = self.messages(message.conduit());
        if let Some(first) = message.message.meta.supersedes {
            messages.retain(|kept| match kept {
                Kept::Message { frames, .. } => frames.begun || frames.head.sequence < first,
                Kept::Frame(_) => true,
            });
        }
        messages.push_back(kept);
        Ok(message.frames.total - message.frames.offset)
    }

    fn messages(&mut self, conduit: ConduitId) -> &mut VecDeque<Kept> {
        let place = self
            .backlog
            .iter()
            .position(|(held, _)| *held == conduit)
            .unwrap_or_else(|| {
                self.backlog.push_back((conduit, VecDeque::new()));
                self.backlog.len() - 1
            });
        &mut self.backlog[place].1
    }
}

impl Kept {
    /// The whole of a message, whose payload others may keep.
    pub(super) fn whole(message: &Outgoing<'_>) -> Result<Self, Lost> {
        let rest = Rest::whole(message.shared()?);
        Ok(Kept::Message {
            frames: Frames::new(message),
            meta: message.meta.encode(),
            rest,
        })
    }

    /// Appends the next frame to `out`; true if it was the last one.
    fn next_frame(&mut self, out: &mut Vec<u8>) -> bool {
        match self {
            Kept::Message { frames, meta, rest } => {
                let offset = frames.offset;
                let (header, meta, length) = frames.next(meta);
                out.extend_from_slice(&header);
                out.extend_from_slice(meta);
                out.extend_from_slice(rest.part(offset, length));
                frames.is_done()
            }
            Kept::Frame(frame) => {
                out.extend_from_slice(frame);
                true
            }
        }
    }
}

/// A message that is written from the caller's memory, frame by frame.
pub(super) struct Writing<'a> {
    message: &'a Outgoing<'a>,
    meta: Vec<u8>,
    frames: Frames,
    /// Whether some of it has been written.
    begun: bool,
}

impl<'a> Writing<'a> {
    pub(super) fn new(message: &'a Outgoing<'a>) -> Self {
        Writing {
            message,
            meta: message.meta.encode(),
            frames: Frames::new(message),
            begun: false,
        }
    }

    pub(super) fn conduit(&self) -> ConduitId {
        self.message.head.conduit
    }

    pub(super) fn length(&self) -> u64 {
        self.message.length()
    }

    /// Whether the other end has seen some of it, so that nothing may follow but the rest.
    pub(super) fn begun(&self) -> bool {
        self.begun
    }

    /// Writes the next frame, waiting up to `stall` at a time for room in the socket. The rest of a frame that
    /// stalls is kept, and the bytes of payload in it are added to `copied`.
    pub(super) fn write_next(
        &mut self,
        writer: &mut Writer,
        socket: &OwnedFd,
        stall: Duration,
        copied: &mut u64,
    ) -> Result<Outcome, Lost> {
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
                0 if !writable([socket], stall)? => {
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
            (_, true) => Outcome::Done,
            (true, false) => Outcome::More,
            (false, false) => Outcome::Stalled,
        })
    }

    /// A copy of what has not been handed to the writer yet.
    fn rest(&self) -> Result<Kept, Lost> {
        let rest = Rest::copy(self.message.parts, self.frames.offset, self.frames.total)?;
        Ok(Kept::Message {
            frames: self.frames.clone(),
            meta: self.meta.clone(),
            rest,
        })
    }
}
