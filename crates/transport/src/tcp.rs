//! TCP: one link per pair of processes, which carries all their conduits and their control messages.
//!
//! **Who owns what.** The reactor's thread alone reads. Whoever sends writes, from the caller's memory, under the
//! link's writer lock, one frame at a time; so messages of several threads interleave, and a control message waits for
//! one frame at most. A sender waits a bounded time for the bytes to drain ([`PATIENCE`]); what nothing has accepted
//! by then is copied, counted, and written by the reactor when the socket takes it. Nobody waits for the writer lock
//! who could be needed to drain the other end: the reactor and [`Link::tell`] leave their bytes in `urgent`, and the
//! lock's holder writes them at the next frame.

mod reader;
mod writer;

use std::fmt;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError, Weak};
use std::time::Duration;

use rustix::event::epoll;
use titin_wire::ConduitId;
use titin_wire::frame::{Ack, Frame, Header};

use crate::{Carrier, Lost, Medium, Outgoing, Sent, descriptors};
use writer::Writer;

pub(crate) use reader::{Reader, Received};

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
    peer: SocketAddr,
    socket: OwnedFd,
    epoll: Weak<OwnedFd>,
    writer: Mutex<Writer>,
    urgent: Mutex<Vec<Vec<u8>>>,
    closed: AtomicBool,
}

impl Link {
    pub(crate) fn new(
        id: LinkId,
        tag: Option<u128>,
        peer: SocketAddr,
        socket: OwnedFd,
        epoll: &Arc<OwnedFd>,
    ) -> Self {
        Link {
            id,
            tag,
            peer,
            socket,
            epoll: Arc::downgrade(epoll),
            writer: Mutex::default(),
            urgent: Mutex::default(),
            closed: AtomicBool::new(false),
        }
    }

    /// Its number in this process.
    pub fn id(&self) -> LinkId {
        self.id
    }

    /// What [`crate::Reactor::dial`] was told to remember; `None` on the listening side.
    pub fn tag(&self) -> Option<u128> {
        self.tag
    }

    /// The address at the other end.
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Queues a control message. Never blocks.
    pub fn tell(&self, body: &[u8]) {
        let header = Header::from(&Frame::Control { body: body.len() as u64 }).encode();
        self.urge([&header[..], body].concat());
    }

    /// Ends the connection, once what was queued has been written as far as the socket takes it.
    pub fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.flush();
        let _ = rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Both);
    }

    /// Whether we closed it ourselves.
    pub(crate) fn closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    pub(crate) fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    /// Writes what is queued, as far as the socket takes it. Leaves it to the lock's holder if there is one.
    pub(crate) fn flush(&self) {
        while let Some(mut writer) = self.try_lock() {
            let outcome = self.pump(&mut writer);
            drop(writer);
            match outcome {
                // What was queued while we held the lock is ours to write: its owner found the lock taken.
                Ok(true) if self.urgent().is_empty() => return,
                Ok(true) => {}
                // The reactor continues when the socket is writable; an error shows there as well.
                Ok(false) | Err(_) => return,
            }
        }
    }

    fn urge(&self, frame: Vec<u8>) {
        self.urgent().push(frame);
        self.flush();
    }

    /// Writes urgent frames and the backlog; true if nothing is left.
    fn pump(&self, writer: &mut Writer) -> Result<bool, Lost> {
        loop {
            writer.urgent.extend(self.urgent().drain(..));
            let drained = writer.pump(&self.socket)?;
            self.watch(writer, !drained);
            if !drained || self.urgent().is_empty() {
                return Ok(drained);
            }
        }
    }

    /// Asks the reactor to call [`Link::flush`] when the socket can take more, or no longer to.
    fn watch(&self, writer: &mut Writer, wanted: bool) {
        if writer.watched == wanted {
            return;
        }
        writer.watched = wanted;
        let Some(epoll) = self.epoll.upgrade() else { return };
        let mut flags = epoll::EventFlags::IN;
        flags.set(epoll::EventFlags::OUT, wanted);
        let _ = epoll::modify(&*epoll, &self.socket, epoll::EventData::new_u64(self.id.0), flags);
    }

    fn urgent(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.urgent.lock().expect("nothing panics while frames are queued")
    }

    fn lock(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().expect("nothing panics while a link is written")
    }

    fn try_lock(&self) -> Option<MutexGuard<'_, Writer>> {
        match self.writer.try_lock() {
            Ok(writer) => Some(writer),
            Err(TryLockError::WouldBlock) => None,
            Err(TryLockError::Poisoned(_)) => unreachable!("nothing panics while a link is written"),
        }
    }
}

impl Carrier for Link {
    fn medium(&self) -> Medium {
        Medium::Tcp
    }

    fn send(&self, message: &Outgoing<'_>) -> Result<Sent, Lost> {
        let mut pieces = writer::Pieces::new(message);
        let mut sent = Sent::default();
        loop {
            let mut writer = self.lock();
            let free = self.pump(&mut writer)? || self.drain(&mut writer)?;
            let outcome = if free && !writer.holds(message.head.conduit) {
                pieces.write_next(&mut writer, &self.socket, PATIENCE)?
            } else {
                writer::Outcome::Stalled
            };
            if outcome == writer::Outcome::Stalled {
                sent.copied += writer.keep(pieces.rest(), message.supersedes);
                self.watch(&mut writer, true);
            }
            drop(writer);
            if !self.urgent().is_empty() {
                self.flush();
            }
            if outcome != writer::Outcome::More {
                return Ok(sent);
            }
        }
    }

    fn end(&self, conduit: ConduitId, sequence: u64) {
        // It must not overtake messages of its conduit that wait in the backlog, so it joins them there.
        let mut writer = self.lock();
        writer.keep_end(conduit, Header::from(&Frame::End { conduit, sequence }).encode());
        let _ = self.pump(&mut writer);
        drop(writer);
        self.flush();
    }

    fn acknowledge(&self, conduit: ConduitId, ack: Ack) {
        self.urge(Header::from(&Frame::Acknowledge { conduit, ack }).encode().to_vec());
    }
}

impl Link {
    /// Waits a bounded time for the frame that is under way to leave, so that ours may follow; true if it has.
    fn drain(&self, writer: &mut Writer) -> Result<bool, Lost> {
        while writer.blocked() {
            if !writer::writable(&self.socket, PATIENCE)? {
                return Ok(false);
            }
            writer.pump_one(&self.socket)?;
        }
        Ok(true)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        descriptors::forget(&self.socket);
    }
}
