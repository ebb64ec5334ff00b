//! The side of a session's end towards its link: a socket, and received bytes that wait for the link.

use rustix::event::PollFlags;
use rustix::io::{Errno, ioctl_fionread};
use rustix::net::{self, SendFlags, Shutdown};
use titin_os::Descriptor;
use titin_wire::session::Session;

use super::stream::AT_A_CALL;

/// The most bytes moved in one direction before other sessions have their turn.
pub(super) const AT_ONCE: usize = 256 << 10;

/// The least room for which bytes are taken from the link. With less, each acknowledgement would be
/// followed by a record of a few bytes: the silly window syndrome (RFC 9293, section 3.8.6.2.1).
pub(super) const LEAST_ROOM: usize = 4 << 10;

/// Received bytes that the link has not taken, at most, if the user sets no receive buffer. The circuit
/// then waits.
pub(super) const WAITING: usize = 1 << 20;

/// The pump's end of a link.
pub(super) struct LinkSide {
    /// The id of the link's end.
    pub(super) id: u64,
    socket: Descriptor,
    /// How many received bytes wait for the link at most.
    pub(super) waiting: usize,
    /// Received bytes for the link, and how many of them were passed to it.
    pub(super) received: Vec<u8>,
    pub(super) passed: usize,
    /// Whether the link sends no more.
    has_ended: bool,
    /// Whether the link has closed the socket, and so takes no more.
    is_closed: bool,
    /// Whether the link knows that no more bytes follow.
    is_told: bool,
}

/// What was taken from a link.
pub(super) struct TakenBytes {
    pub(super) count: usize,
    /// Whether the socket had no more.
    pub(super) is_all: bool,
}

impl LinkSide {
    pub(super) fn new(id: u64, socket: Descriptor) -> Self {
        LinkSide {
            id,
            socket,
            waiting: WAITING,
            received: Vec::new(),
            passed: 0,
            has_ended: false,
            is_closed: false,
            is_told: false,
        }
    }

    /// Sets how many received bytes wait for the link at most.
    pub(super) fn set_receive_buffer(&mut self, size: usize) {
        self.waiting = size;
    }

    /// The link has closed its socket. The bytes in the socket can still be read.
    pub(super) fn note_closed(&mut self) {
        self.is_closed = true;
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_closed
    }

    pub(super) fn is_told(&self) -> bool {
        self.is_told
    }

    /// Whether the link could still be told that no more bytes follow.
    pub(super) fn can_be_told(&self) -> bool {
        !self.is_told && !self.is_closed
    }

    /// Whether the closed socket may have more bytes, of which no event tells.
    pub(super) fn may_have_more(&self) -> bool {
        self.is_closed && !self.has_ended
    }

    /// Whether the link has taken enough of the received bytes for more to come.
    pub(super) fn takes_bytes(&self) -> bool {
        self.received.len() - self.passed < self.waiting
    }

    /// How many bytes wait in the socket for the session.
    pub(super) fn bytes_in_socket(&self) -> usize {
        ioctl_fionread(&self.socket).unwrap_or_default() as usize
    }

    /// The socket to wait for, and its events; `None` once the link is closed. `has_room` says whether the
    /// session takes bytes.
    pub(super) fn wanted(&self, has_room: bool) -> Option<(&Descriptor, PollFlags)> {
        let mut events = PollFlags::empty();
        events.set(PollFlags::IN, !self.has_ended && has_room);
        events.set(PollFlags::OUT, self.passed < self.received.len());
        (!self.is_closed).then_some((&self.socket, events))
    }

    /// Takes bytes from the link for a session, which may keep `window` bytes.
    pub(super) fn take(&mut self, session: &mut Session, window: usize) -> TakenBytes {
        let mut memory = Vec::with_capacity(AT_A_CALL);
        let mut taken = TakenBytes {
            count: 0,
            is_all: false,
        };
        while !self.has_ended && taken.count < AT_ONCE && !taken.is_all {
            let room = window.saturating_sub(session.kept());
            if room < LEAST_ROOM {
                break;
            }
            let most = room.min(AT_A_CALL);
            match rustix::io::read(&self.socket, &mut memory.spare_capacity_mut()[..most]) {
                Ok((bytes, _)) if !bytes.is_empty() => {
                    session.send(bytes);
                    taken.count += bytes.len();
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => taken.is_all = true,
                Ok(_) | Err(_) => {
                    self.has_ended = true;
                    session.end();
                }
            }
        }
        taken
    }

    /// The memory for received bytes. A closed link takes none, and the other end need not keep them.
    pub(super) fn memory(&mut self) -> &mut Vec<u8> {
        if self.is_closed {
            self.received.clear();
            self.passed = 0;
        }
        &mut self.received
    }

    /// Passes received bytes to the link, as far as it takes them. `is_all` says that no more follow, which
    /// the link is told behind the last byte.
    pub(super) fn pass(&mut self, is_all: bool) {
        while self.passed < self.received.len() && !self.is_closed {
            let rest = &self.received[self.passed..];
            match net::send(&self.socket, rest, SendFlags::NOSIGNAL) {
                Ok(count) => self.passed += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    // A link that is slower than the line never empties the buffer.
                    if self.passed >= self.waiting {
                        self.received.drain(..self.passed);
                        self.passed = 0;
                    }
                    return;
                }
                Err(_) => self.is_closed = true,
            }
        }
        self.received.clear();
        self.received.shrink_to(AT_ONCE);
        self.passed = 0;
        if is_all && !self.is_told {
            let _ = net::shutdown(&self.socket, Shutdown::Write);
            self.is_told = true;
        }
    }
}
