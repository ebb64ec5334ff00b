//! Sessions: streams of bytes that survive the loss of their connection.
//!
//! A session has two ends. Each end numbers the bytes that it sends, from 0, and keeps the bytes
//! that the other end has not acknowledged. When a connection is lost, the ends make another one,
//! tell each other how many bytes have come, and go on from there. So no byte is lost, doubled or
//! out of order, however often the connection breaks.
//!
//! [`Session`] is one end: a state machine over bytes, without input, output or clock. The
//! transport makes the connections, and says when one is lost.
//!
//! A connection carries records, little-endian:
//!
//! | offset | type | resume (1)      | data (2)       | acknowledge (3) | end (4)       | probe (5), echo (6) | gone (7) |
//! | ------ | ---- | --------------- | -------------- | --------------- | ------------- | ------------------- | -------- |
//! | 0      | u8   | kind            | kind           | kind            | kind          | kind                | kind     |
//! | 1      | 3    | 0               | 0              | 0               | 0             | 0                   | 0        |
//! | 4      | u32  | 24              | bytes of body  | 0               | 0             | 0                   | 0        |
//! | 8      | u64  | bytes received* | first position | bytes received* | bytes in all  | number              | 0        |
//!
//! In both counts with a star the end of the stream counts as one more byte.
//!
//! **Resume** is the first record on a connection, of both ends. Its body is the id of the session
//! (16 bytes) and the number of bytes that the end has heard the other end acknowledge (u64): an
//! end that knows nothing of the session cannot go on from there, and answers **gone**. An end that has
//! dialled, and wants the session no more before the answer, says **gone**, too. The answer
//! to the other end's **resume** is an **acknowledge**: from its arrival an end knows that the other
//! end has its **resume**, and uses the connection. **Probe** asks for an **echo** with the same
//! number: so an end notices a line that is dead.

mod record;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::Malformed;
use crate::ids::random_bytes;
pub use record::RESUME;
use record::{Record, SessionReader, Step};

/// The most bytes in a data record: an acknowledgement never waits behind more.
const PIECE: usize = 64 << 10;

/// With so many urgent records waiting, no further echo is added: a peer that asks on and on without
/// reading costs no memory.
const MOST_URGENT: usize = 4;

/// The id of a session, random and known to both ends alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SessionId(pub u128);

impl SessionId {
    /// A fresh id.
    pub fn random() -> Self {
        SessionId(u128::from_le_bytes(random_bytes()))
    }
}

/// What the end knows of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineState {
    /// There is no connection.
    Cut,
    /// The record `resume` of the other end has not come.
    Resuming,
    /// Bytes travel.
    Up,
    /// The other end does not know the session.
    Gone,
}

/// One end of a session.
#[derive(Debug)]
pub struct Session {
    id: SessionId,
    line: LineState,
    /// Whether the other end is known to have the record `resume` of this end.
    is_confirmed: bool,
    reader: SessionReader,
    /// Records to write before others.
    urgent: VecDeque<Record>,
    /// Sent bytes that the other end has not acknowledged; the first one is at `acknowledged`.
    replay: VecDeque<u8>,
    acknowledged: u64,
    /// How far the bytes have been written to the present connection.
    written: u64,
    /// How far the bytes have ever been written.
    furthest: u64,
    /// Whether no more bytes follow.
    is_ended: bool,
    /// Whether the present connection has the end.
    end_is_written: bool,
    end_is_acknowledged: bool,
    received: u64,
    /// What the other end has been told on the present connection.
    told: u64,
    /// Whether the other end sends no more.
    peer_has_ended: bool,
    /// Whether the present connection has told of the other end's end.
    end_is_told: bool,
}

impl Session {
    /// An end without a connection.
    pub fn new(id: SessionId) -> Self {
        Session {
            id,
            line: LineState::Cut,
            is_confirmed: false,
            reader: SessionReader::default(),
            urgent: VecDeque::new(),
            replay: VecDeque::new(),
            acknowledged: 0,
            written: 0,
            furthest: 0,
            is_ended: false,
            end_is_written: false,
            end_is_acknowledged: false,
            received: 0,
            told: 0,
            peer_has_ended: false,
            end_is_told: false,
        }
    }

    /// The id.
    pub fn id(&self) -> SessionId {
        self.id
    }

    /// Bytes that the end keeps for the other end.
    pub fn kept(&self) -> usize {
        self.replay.len()
    }

    /// How far the bytes have been written to the present connection, and how far the other end has
    /// acknowledged them.
    pub fn sent_and_acknowledged(&self) -> (u64, u64) {
        (self.written, self.acknowledged)
    }

    /// Whether bytes travel: the other end has answered on the present connection.
    pub fn is_up(&self) -> bool {
        self.line == LineState::Up
    }

    /// Whether bytes travel, and the other end is known to see it so too.
    pub fn is_confirmed(&self) -> bool {
        self.is_up() && self.is_confirmed
    }

    /// Whether the other end has answered that it does not know the session.
    pub fn is_gone(&self) -> bool {
        self.line == LineState::Gone
    }

    /// Whether the other end sends no more, and all its bytes have come.
    pub fn has_peer_ended(&self) -> bool {
        self.peer_has_ended
    }

    /// Whether all bytes to send have been written to the present connection.
    pub fn is_written(&self) -> bool {
        self.written == self.acknowledged + self.replay.len() as u64
    }

    /// Whether both ends have ended, and each has all bytes of the other.
    pub fn is_over(&self) -> bool {
        self.peer_has_ended && self.end_is_acknowledged
    }

    /// Whether all that was to say has been written to the present connection.
    pub fn is_told(&self) -> bool {
        self.is_over() && self.urgent.is_empty() && self.end_is_told
    }

    /// Takes bytes to send. The caller bounds their number by [`Session::kept`].
    ///
    /// # Panics
    /// After [`Session::end`].
    pub fn send(&mut self, bytes: &[u8]) {
        assert!(!self.is_ended, "no bytes follow the end");
        self.replay.extend(bytes);
    }

    /// No more bytes follow.
    pub fn end(&mut self) {
        self.is_ended = true;
    }

    /// A new connection stands.
    pub fn connect(&mut self) {
        self.reader = SessionReader::default();
        self.urgent.clear();
        self.urgent.push_back(Record::Resume {
            id: self.id,
            received: self.count_received(),
            acknowledged: self.acknowledged,
        });
        self.line = LineState::Resuming;
        self.is_confirmed = false;
        self.told = self.received;
        self.end_is_written = false;
        self.end_is_told = self.peer_has_ended;
    }

    /// The connection is lost.
    pub fn cut(&mut self) {
        if self.line != LineState::Gone {
            self.line = LineState::Cut;
        }
    }

    /// Goes on as after a cut, although an end has answered that it knows nothing of the session: it was not the other end.
    pub fn disregard_gone(&mut self) {
        if self.line == LineState::Gone {
            self.line = LineState::Cut;
        }
    }

    /// The received bytes; the end of the stream counts as one more.
    fn count_received(&self) -> u64 {
        self.received + u64::from(self.peer_has_ended)
    }

    /// Has the other end asked for an echo.
    pub fn probe(&mut self) {
        if self.is_up() {
            self.urgent.push_back(Record::Probe(0));
        }
    }

    /// Adds records for the connection to `out`, until `out` has `most` bytes or more, or nothing
    /// is to say.
    pub fn write(&mut self, out: &mut Vec<u8>, most: usize) {
        if matches!(self.line, LineState::Cut) {
            return;
        }
        for record in self.urgent.drain(..) {
            record.encode(out);
        }
        if !self.is_up() {
            return;
        }
        let news = self.peer_has_ended && !self.end_is_told;
        if self.received > self.told || news {
            Record::Acknowledge(self.count_received()).encode(out);
            self.told = self.received;
            self.end_is_told = self.peer_has_ended;
        }
        let end = self.acknowledged + self.replay.len() as u64;
        while self.written < end && out.len() < most {
            let from = (self.written - self.acknowledged) as usize;
            let length = PIECE.min(self.replay.len() - from);
            Record::Data {
                position: self.written,
                length,
            }
            .encode(out);
            out.extend(self.replay.range(from..from + length));
            self.written += length as u64;
        }
        self.furthest = self.furthest.max(self.written);
        let wants_end = self.is_ended && !self.end_is_written && !self.end_is_acknowledged;
        if wants_end && self.written == end {
            Record::End(end).encode(out);
            self.end_is_written = true;
        }
    }

    /// Takes bytes from the connection. Adds the bytes of the other end to `delivered`.
    ///
    /// # Errors
    /// If the bytes do not follow the format. The caller then closes the connection.
    pub fn read(&mut self, mut bytes: &[u8], delivered: &mut Vec<u8>) -> Result<(), Malformed> {
        while !bytes.is_empty() {
            match self.reader.step(&mut bytes)? {
                Step::Wait => {}
                Step::Body(body) => {
                    delivered.extend_from_slice(body);
                    self.received += body.len() as u64;
                }
                Step::Record(record) => self.take(record)?,
            }
        }
        Ok(())
    }

    /// Takes a record in.
    fn take(&mut self, record: Record) -> Result<(), Malformed> {
        // Only `resume` comes before the other end is up.
        let is_next = self.is_up() && !self.is_confirmed;
        self.is_confirmed |= self.is_up();
        match (self.line, record) {
            (
                LineState::Resuming,
                Record::Resume {
                    id,
                    received,
                    acknowledged,
                },
            ) => self.resume(id, received, acknowledged),
            (LineState::Resuming, Record::Gone) => {
                self.line = LineState::Gone;
                Ok(())
            }
            // The other end has dialled, and wants the session no more.
            (LineState::Up, Record::Gone) if is_next && self.received == 0 => {
                self.line = LineState::Gone;
                Ok(())
            }
            (LineState::Up, Record::Data { position, .. }) if position == self.received => {
                match self.peer_has_ended {
                    false => Ok(()),
                    true => Err(malformed("bytes follow the end of the stream")),
                }
            }
            (LineState::Up, Record::Data { position, .. }) => Err(malformed(format!(
                "bytes from position {position}, where {} was to come",
                self.received
            ))),
            (LineState::Up, Record::Acknowledge(count)) => self.acknowledge(count),
            (LineState::Up, Record::End(position)) if position == self.received => {
                self.peer_has_ended = true;
                self.end_is_told = false;
                Ok(())
            }
            (LineState::Up, Record::Probe(number)) => {
                if self.urgent.len() < MOST_URGENT {
                    self.urgent.push_back(Record::Echo(number));
                }
                Ok(())
            }
            (LineState::Up, Record::Echo(_)) => Ok(()),
            (line, record) => Err(malformed(format!("{record:?} while {line:?}"))),
        }
    }

    /// The other end says how far it has come.
    fn resume(&mut self, id: SessionId, received: u64, acknowledged: u64) -> Result<(), Malformed> {
        if id != self.id {
            return Err(malformed("another session than was asked for"));
        }
        if acknowledged > self.received {
            return Err(malformed(format!(
                "the other end counts {acknowledged} bytes as received, of {}",
                self.received
            )));
        }
        self.acknowledge(received)?;
        self.written = self.acknowledged;
        self.line = LineState::Up;
        self.urgent
            .push_back(Record::Acknowledge(self.count_received()));
        Ok(())
    }

    /// The other end has the first `count` bytes. The end of the stream counts as one more.
    fn acknowledge(&mut self, count: u64) -> Result<(), Malformed> {
        let end = self.acknowledged + self.replay.len() as u64;
        let has_end = self.is_ended && count == end + 1;
        let bytes = if has_end { end } else { count };
        if bytes < self.acknowledged || bytes > self.furthest {
            return Err(malformed(format!(
                "{count} bytes acknowledged, where {} to {} may be",
                self.acknowledged, self.furthest
            )));
        }
        self.end_is_acknowledged |= has_end;
        self.replay.drain(..(bytes - self.acknowledged) as usize);
        // A queue that was long keeps no memory.
        if self.replay.is_empty() && self.replay.capacity() > 4 * PIECE {
            self.replay = VecDeque::new();
        }
        self.acknowledged = bytes;
        Ok(())
    }
}

/// The beginning of a connection to an end that has many sessions, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionGreeting {
    /// The session.
    pub id: SessionId,
    /// Whether the dialling end can go on with an end that knows nothing of the session.
    pub may_be_new: bool,
}

impl SessionGreeting {
    /// Reads the first record of a connection, which the caller then passes to the session.
    ///
    /// # Errors
    /// If the bytes are another record.
    pub fn read(mut bytes: &[u8]) -> Result<Self, Malformed> {
        match SessionReader::default().step(&mut bytes)? {
            Step::Record(Record::Resume {
                id,
                received,
                acknowledged,
            }) => Ok(SessionGreeting {
                id,
                may_be_new: received == 0 && acknowledged == 0,
            }),
            step => Err(malformed(format!("{step:?} at the beginning"))),
        }
    }

    /// What an end says that does not know the session, or not any more.
    pub fn gone() -> Vec<u8> {
        let mut bytes = Vec::new();
        Record::Gone.encode(&mut bytes);
        bytes
    }
}

fn malformed(why: impl Into<String>) -> Malformed {
    Malformed::new("session", why)
}
