//! The writing side of a link: frames in order, one at a time, and what is left over when the socket is full.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};
use titin_wire::ConduitId;
use titin_wire::frame::{Frame, HEADER, Head, Header, PIECE};

use crate::{Lost, Outgoing};

/// The kernel takes this many pieces of memory in one call.
const MAX_SLICES: usize = 64;

/// What waits to be written on a link.
#[derive(Default)]
pub(super) struct Writer {
    /// The rest of a frame whose beginning has been written: nothing else may go before it.
    partial: Vec<u8>,
    written: usize,
    /// Control messages and acknowledgements.
    pub(super) urgent: VecDeque<Vec<u8>>,
    /// Messages that were copied, by conduit; the conduits take turns.
    backlog: VecDeque<(ConduitId, VecDeque<Kept>)>,
    /// Whether the reactor watches for room in the socket.
    pub(super) watched: bool,
}

/// A message, or what is left of one, in memory of our own.
pub(super) struct Kept {
    /// Header and metadata of a message that has not begun; an end; or empty.
    opening: Vec<u8>,
    head: Option<Head>,
    body: Vec<u8>,
    at: usize,
    /// Where in the message `body` begins.
    offset: u64,
    begun: bool,
}

/// How far one step of a message came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// All of it is written.
    Done,
    /// There are further pieces.
    More,
    /// The socket takes no more; the rest has to be kept.
    Stalled,
}

impl Writer {
    /// Whether messages of this conduit wait here, so that a later one must wait behind them.
    pub(super) fn holds(&self, conduit: ConduitId) -> bool {
        self.backlog.iter().any(|(held, _)| *held == conduit)
    }

    /// Whether a frame is half written.
    pub(super) fn blocked(&self) -> bool {
        !self.partial.is_empty()
    }

    /// Writes as much as the socket takes; true if nothing is left.
    pub(super) fn pump(&mut self, socket: &OwnedFd) -> Result<bool, Lost> {
        loop {
            if !self.pump_one(socket)? {
                return Ok(false);
            }
            if self.partial.is_empty() && !self.next_frame() {
                return Ok(true);
            }
        }
    }

    /// Continues the frame under way; true if none is under way any more.
    pub(super) fn pump_one(&mut self, socket: &OwnedFd) -> Result<bool, Lost> {
        while self.written < self.partial.len() {
            match write(socket, &[IoSlice::new(&self.partial[self.written..])])? {
                0 => return Ok(false),
                count => self.written += count,
            }
        }
        self.partial.clear();
        self.written = 0;
        Ok(true)
    }

    /// Makes the next frame that waits the one under way.
    fn next_frame(&mut self) -> bool {
        if let Some(frame) = self.urgent.pop_front() {
            self.partial = frame;
            return true;
        }
        let Some((conduit, mut messages)) = self.backlog.pop_front() else { return false };
        let message = messages.front_mut().expect("a conduit with nothing to send is taken out");
        if message.next_frame(conduit, &mut self.partial) {
            messages.pop_front();
        }
        if !messages.is_empty() {
            self.backlog.push_back((conduit, messages));
        }
        true
    }

    /// Keeps what is left of a message; returns the bytes of payload copied.
    pub(super) fn keep(&mut self, kept: Kept, supersedes: bool) -> u64 {
        let Some(head) = kept.head else { return 0 };
        let copied = kept.body.len() as u64;
        let messages = self.messages(head.conduit);
        if supersedes {
            messages.retain(|message| message.begun);
        }
        messages.push_back(kept);
        copied
    }

    /// Keeps the end of a conduit, behind its messages.
    pub(super) fn keep_end(&mut self, conduit: ConduitId, frame: [u8; HEADER]) {
        let end =
            Kept { opening: frame.to_vec(), head: None, body: Vec::new(), at: 0, offset: 0, begun: false };
        self.messages(conduit).push_back(end);
    }

    fn messages(&mut self, conduit: ConduitId) -> &mut VecDeque<Kept> {
        let place = self.backlog.iter().position(|(held, _)| *held == conduit).unwrap_or_else(|| {
            self.backlog.push_back((conduit, VecDeque::new()));
            self.backlog.len() - 1
        });
        &mut self.backlog[place].1
    }
}

impl Kept {
    /// Puts the next frame of the message into `out`; true if it was the last one.
    fn next_frame(&mut self, conduit: ConduitId, out: &mut Vec<u8>) -> bool {
        let piece = (self.body.len() - self.at).min(PIECE);
        if self.begun {
            let sequence = self.head.map_or(0, |head| head.sequence);
            let frame =
                Frame::More { conduit, sequence, body: piece as u64, offset: self.offset + self.at as u64 };
            out.extend_from_slice(&Header::from(&frame).encode());
        } else if let Some(head) = self.head {
            let meta = &self.opening;
            let total = self.body.len() as u64;
            let frame = Frame::Data { head, meta: meta.len() as u32, body: piece as u64, total };
            out.extend_from_slice(&Header::from(&frame).encode());
            out.extend_from_slice(meta);
            self.begun = true;
        } else {
            out.extend_from_slice(&self.opening);
        }
        out.extend_from_slice(&self.body[self.at..self.at + piece]);
        self.at += piece;
        self.at == self.body.len()
    }
}

/// Walks over the frames of a message that lies in the caller's memory.
pub(super) struct Pieces<'a> {
    message: &'a Outgoing<'a>,
    meta: Vec<u8>,
    total: u64,
    offset: u64,
    begun: bool,
}

impl<'a> Pieces<'a> {
    pub(super) fn new(message: &'a Outgoing<'a>) -> Self {
        Pieces { message, meta: message.meta.encode(), total: message.length(), offset: 0, begun: false }
    }

    /// Writes the next frame, waiting up to `patience` at a time for room in the socket.
    pub(super) fn write_next(
        &mut self,
        writer: &mut Writer,
        socket: &OwnedFd,
        patience: Duration,
    ) -> Result<Outcome, Lost> {
        let piece = (self.total - self.offset).min(PIECE as u64);
        let (frame, meta) = if self.begun {
            let Head { conduit, sequence, .. } = self.message.head;
            (Frame::More { conduit, sequence, body: piece, offset: self.offset }, &[][..])
        } else {
            let meta = self.meta.len() as u32;
            (Frame::Data { head: self.message.head, meta, body: piece, total: self.total }, &self.meta[..])
        };
        let header = Header::from(&frame).encode();
        let mut slices = vec![IoSlice::new(&header), IoSlice::new(meta)];
        slice_parts(self.message.parts, self.offset, piece, &mut slices);
        self.begun = true;
        self.offset += piece;

        let mut rest = &mut slices[..];
        IoSlice::advance_slices(&mut rest, 0);
        while !rest.is_empty() {
            let window = rest.len().min(MAX_SLICES);
            match write(socket, &rest[..window])? {
                0 if !writable(socket, patience)? => {
                    rest.iter().for_each(|slice| writer.partial.extend_from_slice(slice));
                    break;
                }
                count => IoSlice::advance_slices(&mut rest, count),
            }
        }
        Ok(match (writer.partial.is_empty(), self.offset == self.total) {
            (_, true) => Outcome::Done,
            (true, false) => Outcome::More,
            (false, false) => Outcome::Stalled,
        })
    }

    /// A copy of what has not been handed to the writer yet.
    pub(super) fn rest(&self) -> Kept {
        let mut slices = Vec::new();
        slice_parts(self.message.parts, self.offset, self.total - self.offset, &mut slices);
        let mut body = Vec::with_capacity((self.total - self.offset) as usize);
        slices.iter().for_each(|slice| body.extend_from_slice(slice));
        Kept {
            opening: if self.begun { Vec::new() } else { self.meta.clone() },
            head: Some(self.message.head),
            body,
            at: 0,
            offset: self.offset,
            begun: self.begun,
        }
    }
}

/// Appends the slices that hold `length` bytes of the parts from `offset`.
fn slice_parts<'a>(parts: &'a [IoSlice<'a>], mut offset: u64, mut length: u64, out: &mut Vec<IoSlice<'a>>) {
    for part in parts {
        let size = part.len() as u64;
        if offset >= size {
            offset -= size;
            continue;
        }
        if length == 0 {
            return;
        }
        let take = length.min(size - offset);
        out.push(IoSlice::new(&part[offset as usize..(offset + take) as usize]));
        length -= take;
        offset = 0;
    }
}

/// Writes without blocking and without a signal; 0 if the socket is full.
fn write(socket: &OwnedFd, slices: &[IoSlice<'_>]) -> Result<usize, Lost> {
    loop {
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        match sendmsg(socket, slices, &mut SendAncillaryBuffer::default(), flags) {
            Ok(count) => return Ok(count),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return Ok(0),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Waits until the socket takes bytes; false if it does not in time.
pub(super) fn writable(socket: &OwnedFd, patience: Duration) -> Result<bool, Lost> {
    let limit = Timespec { tv_sec: patience.as_secs() as i64, tv_nsec: patience.subsec_nanos().into() };
    match poll(&mut [PollFd::new(socket, PollFlags::OUT)], Some(&limit)) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(true),
        Err(error) => Err(error.into()),
    }
}
