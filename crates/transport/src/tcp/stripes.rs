//! The further streams of a link: large messages leave by them, in pieces, by whichever takes one.
//!
//! The first stream keeps what is small, and says which message of a conduit is the next. So a control message never waits
//! behind megabytes, not even in the system's buffers, and pieces may overtake each other. One message at a time is written, by
//! who sends it, and in turns; what no stream has taken for a while is copied, and the reactor writes it. All further
//! sockets are watched by a bundle of their own, an epoll descriptor which the reactor watches as if it were one socket.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::sync::Mutex;
use std::time::Duration;

use rustix::event::epoll;
use rustix::io::Errno;
use titin_wire::ConduitId;
use titin_wire::frame::{Frame, HEADER, Header, PIECE};

use super::payload::{Rest, slice_parts};
use super::socket::{writable, write};
use crate::turns::Turns;
use crate::{Lost, Outgoing};
use titin_os::Descriptor;

/// Messages are not cut into pieces smaller than this, and those that are not longer go by the first stream.
const SMALL: u64 = 128 << 10;

/// What is written of what was kept, before others get their turn.
const TURN: usize = 4 << 20;

/// The further streams of one link.
pub(super) struct Stripes {
    sockets: Vec<Descriptor>,
    bundle: Descriptor,
    /// What the bundle watches of each.
    watched: Vec<Mutex<epoll::EventFlags>>,
    turns: Turns<Lanes, ()>,
}

/// What is under way on each stream, and what waits for all.
struct Lanes {
    lanes: Vec<Lane>,
    /// What is left of messages, in memory of our own.
    kept: VecDeque<(Pieces, Rest)>,
    /// No stream has taken anything for a while: who comes next need not wait for that again.
    stalled: bool,
}

/// What is under way on a stream: a frame, or the rest of one, in memory of our own.
#[derive(Default)]
struct Lane {
    partial: Vec<u8>,
    written: usize,
    watched: bool,
}

/// The pieces of a message, one after the other.
struct Pieces {
    conduit: ConduitId,
    sequence: u64,
    total: u64,
    offset: u64,
    piece: u64,
}

/// A piece that is written from the caller's memory.
struct Piece {
    header: [u8; HEADER],
    offset: u64,
    length: u64,
    written: u64,
}

impl Pieces {
    fn new(message: &Outgoing<'_>, streams: usize) -> Self {
        let (head, total) = (&message.head, message.length());
        let piece = total
            .div_ceil(streams as u64)
            .next_multiple_of(64)
            .clamp(SMALL, PIECE as u64);
        Pieces {
            conduit: head.conduit,
            sequence: head.sequence,
            total,
            offset: 0,
            piece,
        }
    }

    fn next(&mut self) -> Option<Piece> {
        let Pieces {
            conduit,
            sequence,
            total,
            offset,
            piece,
        } = *self;
        let length = piece.min(total - offset);
        self.offset += length;
        let frame = Frame::Piece {
            conduit,
            sequence,
            body: length,
            offset,
            total,
        };
        (length > 0).then(|| Piece {
            header: Header::from(&frame).encode(),
            offset,
            length,
            written: 0,
        })
    }

    fn is_done(&self) -> bool {
        self.offset == self.total
    }
}

impl Piece {
    /// What is left of it: the rest of its header, and where its payload goes on and how long that is.
    fn rest(&self) -> (&[u8], u64, u64) {
        let header = &self.header[(self.written as usize).min(HEADER)..];
        let paid = self.written.saturating_sub(HEADER as u64);
        (header, self.offset + paid, self.length - paid)
    }

    fn is_done(&self) -> bool {
        self.written == HEADER as u64 + self.length
    }
}

impl Stripes {
    /// Takes sockets over, which the bundle then watches under their numbers, from 1.
    pub(super) fn new(sockets: Vec<Descriptor>) -> Result<Self, Errno> {
        let bundle = Descriptor::from(epoll::create(epoll::CreateFlags::CLOEXEC)?);
        for (socket, number) in sockets.iter().zip(1..) {
            epoll::add(
                &bundle,
                socket,
                epoll::EventData::new_u64(number),
                epoll::EventFlags::IN,
            )?;
        }
        let watched = sockets
            .iter()
            .map(|_| Mutex::new(epoll::EventFlags::IN))
            .collect();
        let lanes = sockets.iter().map(|_| Lane::default()).collect();
        let turns = Turns::new(Lanes {
            lanes,
            kept: VecDeque::new(),
            stalled: false,
        });
        Ok(Stripes {
            sockets,
            bundle,
            watched,
            turns,
        })
    }

    pub(super) fn bundle(&self) -> &Descriptor {
        &self.bundle
    }

    pub(super) fn count(&self) -> usize {
        self.sockets.len()
    }

    /// The socket of this number.
    pub(super) fn socket(&self, number: usize) -> &Descriptor {
        &self.sockets[number - 1]
    }

    /// Whether a message goes this way: if it is large, unless it takes the place of others, since of those the first stream
    /// drops what has not left yet.
    pub(super) fn takes(&self, message: &Outgoing<'_>) -> bool {
        message.length() > SMALL && message.meta.supersedes.is_none()
    }

    /// Writes the payload of a message; waits up to `stall` at a time while no stream takes anything. Gives the number
    /// of bytes that had to be copied.
    ///
    /// # Errors
    /// [`Failure`]. Unless it is about the message, and nothing of that has been written, the link is of no use any more.
    pub(super) fn send(&self, message: &Outgoing<'_>, stall: Duration) -> Result<u64, Failure> {
        // Nobody leaves anything here.
        let nothing = |_: &mut Lanes, _| ();
        self.turns.wait(
            |lanes, _| {
                let outcome = self.write_all(lanes, message, stall);
                self.watch(lanes);
                outcome
            },
            nothing,
        )
    }

    /// Writes what was kept, as far as the sockets take it. Leaves it to whoever is writing, if somebody is.
    ///
    /// # Errors
    /// [`Failure`]: the link is of no use any more.
    pub(super) fn flush(&self) -> Result<(), Failure> {
        let mut outcome = Ok(());
        self.turns.visit(|lanes, _| outcome = self.pump(lanes));
        outcome
    }

    /// Ends our half of each, or both.
    pub(super) fn shut(&self, how: rustix::net::Shutdown) {
        for socket in &self.sockets {
            let _ = rustix::net::shutdown(socket, how);
        }
    }

    /// Reads no more of one that has ended.
    pub(super) fn leave(&self, number: usize) {
        let _ = epoll::delete(&self.bundle, self.socket(number));
    }

    fn pump(&self, lanes: &mut Lanes) -> Result<(), Failure> {
        let outcome = self.write_all_kept(lanes);
        self.watch(lanes);
        outcome
    }

    fn write_all_kept(&self, lanes: &mut Lanes) -> Result<(), Failure> {
        let (mut turn, mut again) = (0, true);
        while again && turn < TURN {
            again = false;
            for number in 0..self.sockets.len() {
                let count = self.write_kept(lanes, number)?;
                again |= count > 0;
                turn += count;
            }
        }
        Ok(())
    }

    /// Writes the payload of a message, or keeps what is left of it.
    fn write_all(
        &self,
        lanes: &mut Lanes,
        message: &Outgoing<'_>,
        stall: Duration,
    ) -> Result<u64, Failure> {
        // While we are at it the reactor is not to wake for the same.
        lanes
            .lanes
            .iter_mut()
            .enumerate()
            .for_each(|(number, lane)| self.watch_one(number, lane, false));
        let mut pieces = Pieces::new(message, self.sockets.len());
        let mut under_way: Vec<Option<Piece>> = self.sockets.iter().map(|_| None).collect();
        let mut torn = false;
        loop {
            let mut written = 0;
            for (number, place) in under_way.iter_mut().enumerate() {
                // A piece that has begun on a stream ends there before anything else begins.
                if place.is_none() {
                    written += self
                        .write_kept(lanes, number)
                        .map_err(|failure| failure.torn_if(torn))?;
                    if !lanes.is_free(number) {
                        continue;
                    }
                    *place = pieces.next();
                }
                let Some(piece) = place else { continue };
                let before = piece.written;
                let outcome = self.write_piece(message, number, piece);
                torn |= piece.written > 0;
                outcome.map_err(|failure| failure.torn_if(torn))?;
                written += (piece.written - before) as usize;
                place.take_if(|piece| piece.is_done());
            }
            if pieces.is_done() && under_way.iter().all(Option::is_none) {
                return Ok(0);
            }
            if written > 0 {
                lanes.stalled = false;
                continue;
            }
            if lanes.stalled || !self.writable(lanes, &under_way, stall)? {
                lanes.stalled = true;
                return lanes
                    .keep(message, pieces, under_way)
                    .map_err(|why| Failure::from(why).torn_if(torn));
            }
        }
    }

    /// Writes what is under way on a stream and what was kept, a piece at most. Gives the number of bytes.
    fn write_kept(&self, lanes: &mut Lanes, number: usize) -> Result<usize, Failure> {
        let mut turn = 0;
        loop {
            let lane = &mut lanes.lanes[number];
            if lane.partial.is_empty() {
                let Some((pieces, rest)) = lanes.kept.front_mut() else {
                    return Ok(turn);
                };
                if let Some(piece) = pieces.next() {
                    lane.partial.extend_from_slice(&piece.header);
                    lane.partial
                        .extend_from_slice(rest.part(piece.offset, piece.length));
                }
                if pieces.is_done() {
                    lanes.kept.pop_front();
                }
            }
            let rest = [IoSlice::new(&lane.partial[lane.written..])];
            let count = write(&self.sockets[number], &rest, None)
                .map_err(|why| Failure::of(number, why))?;
            lane.written += count;
            turn += count;
            if lane.written < lane.partial.len() {
                return Ok(turn);
            }
            lane.partial = Vec::new();
            lane.written = 0;
            if turn >= PIECE {
                return Ok(turn);
            }
        }
    }

    /// Writes as much of a piece as its stream takes.
    fn write_piece(
        &self,
        message: &Outgoing<'_>,
        number: usize,
        piece: &mut Piece,
    ) -> Result<(), Failure> {
        while !piece.is_done() {
            let (header, offset, length) = piece.rest();
            let mut slices = Vec::with_capacity(1 + message.parts.len());
            slices.extend((!header.is_empty()).then(|| IoSlice::new(header)));
            slice_parts(message.parts, offset, length, &mut slices);
            let written = write(&self.sockets[number], &slices, None);
            match written.map_err(|why| Failure::of(number, why))? {
                0 => break,
                count => piece.written += count as u64,
            }
        }
        Ok(())
    }

    /// Waits until a stream takes bytes on which something is under way; false if none does in time.
    fn writable(
        &self,
        lanes: &Lanes,
        under_way: &[Option<Piece>],
        stall: Duration,
    ) -> Result<bool, Lost> {
        let waits = |number: &usize| under_way[*number].is_some() || !lanes.is_free(*number);
        let sockets = (0..self.sockets.len())
            .filter(waits)
            .map(|number| &*self.sockets[number]);
        writable(sockets, stall)
    }

    /// Has the bundle watch for room in those sockets for which something waits.
    fn watch(&self, lanes: &mut Lanes) {
        let kept = !lanes.kept.is_empty();
        for (number, lane) in lanes.lanes.iter_mut().enumerate() {
            let wanted = kept || !lane.partial.is_empty();
            self.watch_one(number, lane, wanted);
        }
    }

    fn watch_one(&self, number: usize, lane: &mut Lane, wanted: bool) {
        if lane.watched == wanted {
            return;
        }
        lane.watched = wanted;
        let mut flags = self.watched[number]
            .lock()
            .expect("nothing panics while it is locked");
        flags.set(epoll::EventFlags::OUT, wanted);
        let data = epoll::EventData::new_u64(number as u64 + 1);
        // One that has ended is not watched any more, and need not be.
        let _ = epoll::modify(&self.bundle, &self.sockets[number], data, *flags);
    }
}

impl Lanes {
    /// Whether nothing is under way on a stream in memory of our own.
    fn is_free(&self, number: usize) -> bool {
        self.lanes[number].partial.is_empty()
    }

    /// Keeps a copy of what is left of a message; returns how many bytes of payload that is.
    fn keep(
        &mut self,
        message: &Outgoing<'_>,
        pieces: Pieces,
        under_way: Vec<Option<Piece>>,
    ) -> Result<u64, Lost> {
        let mut copied = pieces.total - pieces.offset;
        if copied > 0 {
            let rest = Rest::copy(message.parts, pieces.offset, pieces.total)?;
            self.kept.push_back((pieces, rest));
        }
        for (lane, piece) in self.lanes.iter_mut().zip(&under_way) {
            let Some((header, offset, length)) = piece.as_ref().map(Piece::rest) else {
                continue;
            };
            let mut slices = vec![IoSlice::new(header)];
            slice_parts(message.parts, offset, length, &mut slices);
            slices
                .iter()
                .for_each(|slice| lane.partial.extend_from_slice(slice));
            copied += length;
        }
        Ok(copied)
    }
}

/// Why a message could not be sent.
#[derive(Debug)]
pub(super) struct Failure {
    /// Number of the stream that has failed, from 1.
    pub(super) stream: Option<usize>,
    /// Whether some of the message has been written.
    pub(super) torn: bool,
    pub(super) why: Lost,
}

impl Failure {
    fn of(number: usize, why: Lost) -> Self {
        Failure {
            stream: Some(number + 1),
            torn: false,
            why,
        }
    }

    fn torn_if(self, torn: bool) -> Self {
        Failure {
            torn: self.torn || torn,
            ..self
        }
    }
}

impl From<Lost> for Failure {
    fn from(why: Lost) -> Self {
        Failure {
            stream: None,
            torn: false,
            why,
        }
    }
}
