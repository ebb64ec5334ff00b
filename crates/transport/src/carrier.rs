//! The contract that every medium keeps.

use std::cell::RefCell;
use std::io::IoSlice;
use std::sync::Arc;

use titin_wire::ConduitId;
use titin_wire::frame::Head;
use titin_wire::meta::Meta;

use crate::buffer::Buffer;
use crate::doorbell::Doorbell;
use crate::error::Lost;
use crate::inbox::{Acknowledge, Inbox, Message};
use crate::spin::SpinPolicy;

/// A way by which messages travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Medium {
    /// Within one process.
    Inproc,
    /// Memory that two processes of one host share.
    Shm,
    /// A TCP connection.
    Tcp,
}

impl Medium {
    /// The name that descriptions and profiles use.
    pub fn name(self) -> &'static str {
        match self {
            Medium::Inproc => "inproc",
            Medium::Shm => "shm",
            Medium::Tcp => "tcp",
        }
    }
}

/// A message on its way out. The parts stay the caller's.
pub struct Outgoing<'a> {
    /// What travels with it.
    pub head: Head,
    /// Its metadata.
    pub meta: &'a Arc<Meta>,
    /// Its payload, in pieces that follow each other.
    pub parts: &'a [IoSlice<'a>],
    length: u64,
    shared: RefCell<Option<Arc<Buffer>>>,
}

impl<'a> Outgoing<'a> {
    /// A message of these parts.
    pub fn new(head: Head, meta: &'a Arc<Meta>, parts: &'a [IoSlice<'a>]) -> Self {
        let length = parts.iter().map(|part| part.len() as u64).sum();
        Outgoing {
            head,
            meta,
            parts,
            length,
            shared: RefCell::default(),
        }
    }

    /// Hands over a copy of the payload that was made before, for another receiver; in place of another one, since it may
    /// lie where more of them can read it.
    pub fn share(&self, copy: Arc<Buffer>) {
        self.shared.replace(Some(copy));
    }

    /// The copy of the payload, if one was made.
    pub fn copied(&self) -> Option<Arc<Buffer>> {
        self.shared.borrow().clone()
    }

    /// As [`Outgoing::copied`], of a message that is done with.
    pub fn into_copy(self) -> Option<Arc<Buffer>> {
        self.shared.into_inner()
    }

    /// Bytes of payload.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// A copy of the payload that any number of receivers may share, made once.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn shared(&self) -> Result<Arc<Buffer>, Lost> {
        if let Some(buffer) = self.copied() {
            return Ok(buffer);
        }
        if self.length == 0 {
            return Ok(Buffer::empty());
        }
        let buffer = Arc::new(Buffer::gather(self.parts)?);
        self.share(buffer.clone());
        Ok(buffer)
    }
}

/// How a message left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sent {
    /// Bytes of payload that had to be copied on this side.
    pub copied: u64,
    /// Whether it went by the socket, since no shared memory was left for it.
    pub by_socket: bool,
}

/// Takes messages of any number of conduits to one other process, or to this one.
///
/// Any thread may call; calls for one conduit come from one thread at a time, and its messages arrive in the order
/// of the calls. Whether there is room in the conduit's buffer is settled before [`Carrier::send`], by its
/// [`crate::Window`]; so nothing here waits for the receiving *program*, only, for a bounded time, for the bytes to
/// drain.
pub trait Carrier: Acknowledge {
    /// The medium.
    fn medium(&self) -> Medium;

    /// Sends one message. When it returns the caller may change the payload's memory.
    ///
    /// # Errors
    /// [`Lost`] once the other end is gone. The message may or may not have arrived. [`Lost::NoMemory`] and
    /// [`Lost::Untaken`] are about this message only; if a part of it was on its way the link is closed.
    fn send(&self, message: &Outgoing<'_>) -> Result<Sent, Lost>;

    /// As [`Carrier::send`], of a message with a copy of its payload that others may keep ([`Outgoing::share`]), and does not
    /// wait: what cannot go now goes later, from where it lies.
    ///
    /// # Errors
    /// As [`Carrier::send`].
    fn post(&self, message: &Outgoing<'_>) -> Result<Sent, Lost> {
        self.send(message)
    }

    /// Says that no message follows the first `sequence` ones. Does not wait.
    fn end(&self, conduit: ConduitId, sequence: u64);

    /// Asks the receiving end to tell at once of whatever it consumes, because message number `sequence` waits for
    /// room. Receivers otherwise tell only now and then, which might never come about while this sender waits. Does
    /// not wait.
    fn ask(&self, conduit: ConduitId, sequence: u64);

    /// How many streams large messages go by at a time.
    fn streams(&self) -> usize {
        1
    }

    /// Takes in what comes by this medium on the caller's thread, where that is faster than to be woken by whoever
    /// else would: over and over, until the attention is at its end. Comes back at once if
    /// there is nothing to do so, or somebody else is at it.
    fn attend(&self, policy: &mut dyn SpinPolicy) {
        let _ = policy;
    }

    /// As [`Carrier::attend`], for a caller that waits for the next message of this inbox, which is empty: it may be given
    /// here without a way through the inbox, which has counted it as taken then. Where a look takes a system call this does
    /// nothing.
    fn attend_one(&self, inbox: &Inbox, policy: &mut dyn SpinPolicy) -> Option<Message> {
        let _ = (inbox, policy);
        None
    }

    /// Takes in what is there, where that costs no system call.
    fn look(&self) {}

    /// Says that the caller goes to sleep at this bell until something comes in, where that is not rung by others. False
    /// if something has come in already.
    fn arm(&self, bell: &Doorbell) -> bool {
        let _ = bell;
        true
    }
}
