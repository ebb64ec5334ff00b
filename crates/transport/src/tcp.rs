//! TCP: one link per pair of processes, which carries all their conduits and their control messages.
//!
//! **Who owns what.** The reactor's thread alone reads. Whoever sends writes, from the caller's memory, one frame at a
//! time, each in its [turn](crate::turns); so messages of several threads interleave, and a control message waits for
//! one frame at most. A sender waits as long as bytes drain; what nothing has accepted for a while ([`PATIENCE`]) is
//! copied, counted, and written by the reactor when the socket takes it. Nobody waits for a turn who could be needed
//! to drain the other end: the reactor, and whoever tells, ends, acknowledges or asks, leaves the frame to whoever is
//! writing.

mod reader;
mod writer;

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use rustix::event::epoll;
use titin_wire::ConduitId;
use titin_wire::frame::{Ack, Frame, Header};

use crate::descriptors::Held;
use crate::turns::Turns;
use crate::{Carrier, Lost, Medium, Outgoing, Sent};
use writer::{Left, Outcome, Pieces, Writer};

pub use reader::{Reader, Received};

/// How long a sender waits for a socket that accepts nothing, before the rest of its message is copied.
const PATIENCE: Duration = Duration::from_millis(5);

/// Number of a link within its process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u64);

impl fmt::Display for LinkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "link {}", self.0)
    }
}

/// An authenticated connection to another process.
pub struct Link {
    id: LinkId,
    tag: Option<u128>,
    socket: Held,
    epoll: Weak<Held>,
    turns: Turns<Writer, Left>,
    closed: AtomicBool,
}

impl Link {
    pub(crate) fn new(id: LinkId, tag: Option<u128>, socket: Held, epoll: &Arc<Held>) -> Self {
        let turns = Turns::new(Writer::default());
        Link { id, tag, socket, epoll: Arc::downgrade(epoll), turns, closed: AtomicBool::new(false) }
    }

    /// Its number in this process.
    pub fn id(&self) -> LinkId {
        self.id
    }

    /// What [`crate::Reactor::dial`] was told to remember; `None` on the listening side.
    pub fn tag(&self) -> Option<u128> {
        self.tag
    }

    /// Queues a control message. Never blocks.
    pub fn tell(&self, body: &[u8]) {
        let header = Header::from(&Frame::Control { body: body.len() as u64 }).encode();
        self.leave(Left::Frame([&header[..], body].concat()));
    }

    /// Ends the connection, once what was queued has been written as far as the socket takes it. What the other end
    /// still sends is dropped.
    pub fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.flush();
        // Our half only: had we closed the other one too, the next bytes to come in would make the system throw away
        // what it has not delivered of ours.
        let _ = rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Write);
    }

    /// Whether we closed it ourselves.
    pub(crate) fn closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    pub(crate) fn socket(&self) -> &Held {
        &self.socket
    }

    /// Writes what is queued, as far as the socket takes it. Leaves it to whoever is writing, if somebody is.
    pub(crate) fn flush(&self) {
        self.turns.visit(|writer, left| self.pump(writer, left));
    }

    fn leave(&self, left: Left) {
        self.turns.leave(left, |writer, left| self.pump(writer, left));
    }

    /// Writes what waits, as far as the socket takes it without waiting. An error shows at the reactor as well.
    fn pump(&self, writer: &mut Writer, left: Vec<Left>) {
        writer.absorb(left);
        let _ = writer.pump(&self.socket);
        self.watch(writer);
    }

    /// One step of a message: a frame of it, or a copy of what is left of it.
    fn step(
        &self,
        pieces: &mut Pieces<'_>,
        writer: &mut Writer,
        left: Vec<Left>,
    ) -> Result<(Outcome, u64), Lost> {
        writer.absorb(left);
        let mut copied = 0;
        let free = writer.make_way(&self.socket, PATIENCE)? && !writer.holds(pieces.conduit());
        let outcome = if free {
            pieces.write_next(writer, &self.socket, PATIENCE, &mut copied)?
        } else {
            Outcome::Stalled
        };
        if outcome == Outcome::Stalled {
            copied += writer.keep(pieces)?;
        }
        self.watch(writer);
        Ok((outcome, copied))
    }

    /// Asks the reactor to call [`Link::flush`] when the socket can take more, or no longer to.
    fn watch(&self, writer: &mut Writer) {
        let wanted = writer.waits();
        if writer.watched == wanted {
            return;
        }
        let Some(epoll) = self.epoll.upgrade() else { return };
        writer.watched = wanted;
        let mut flags = epoll::EventFlags::IN;
        flags.set(epoll::EventFlags::OUT, wanted);
        let _ = epoll::modify(&*epoll, &self.socket, epoll::EventData::new_u64(self.id.0), flags);
    }
}

impl Carrier for Link {
    fn medium(&self) -> Medium {
        Medium::Tcp
    }

    fn send(&self, message: &Outgoing<'_>) -> Result<Sent, Lost> {
        let mut pieces = Pieces::new(message);
        let mut sent = Sent::default();
        loop {
            let (outcome, copied) = self.turns.wait(
                |writer, left| self.step(&mut pieces, writer, left),
                |writer, left| self.pump(writer, left),
            )?;
            sent.copied += copied;
            if outcome != Outcome::More {
                return Ok(sent);
            }
        }
    }

    fn end(&self, conduit: ConduitId, sequence: u64) {
        self.leave(Left::End(conduit, Header::from(&Frame::End { conduit, sequence }).encode()));
    }

    fn acknowledge(&self, conduit: ConduitId, ack: Ack) {
        self.leave(Left::Frame(Header::from(&Frame::Acknowledge { conduit, ack }).encode().to_vec()));
    }

    fn ask(&self, conduit: ConduitId, sequence: u64) {
        self.leave(Left::Frame(Header::from(&Frame::Ask { conduit, sequence }).encode().to_vec()));
    }
}
