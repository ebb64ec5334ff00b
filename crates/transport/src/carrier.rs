//! The contract of every medium.

use std::cell::RefCell;
use std::io::IoSlice;
use std::net::IpAddr;
use std::sync::Arc;

use titin_wire::ConduitId;
use titin_wire::frame::Head;
use titin_wire::meta::Meta;

use crate::buffer::{Buffer, SharedBuffer};
use crate::doorbell::Doorbell;
use crate::error::LinkError;
use crate::inbox::{Acknowledge, Inbox, IncomingMessage};
use crate::spin::WaitPolicy;

pub use titin_wire::Medium;

/// A message on the way out. The caller keeps the parts.
pub struct Outgoing<'a> {
    /// The head: conduit, number, timestamps, and so on.
    pub head: Head,
    /// The metadata.
    pub meta: &'a Arc<Meta>,
    /// The payload, in consecutive parts.
    pub parts: &'a [IoSlice<'a>],
    length: u64,
    shared: RefCell<Option<SharedBuffer>>,
}

impl<'a> Outgoing<'a> {
    /// A message of `parts`.
    pub fn new(head: Head, meta: &'a Arc<Meta>, parts: &'a [IoSlice<'a>]) -> Self {
        let length = parts.iter().map(|part| part.len() as u64).sum();
        Outgoing::of_length(head, meta, parts, length)
    }

    /// As [`Outgoing::new`], for a caller that has added the lengths of the parts up.
    #[inline(always)]
    pub fn of_length(
        head: Head,
        meta: &'a Arc<Meta>,
        parts: &'a [IoSlice<'a>],
        length: u64,
    ) -> Self {
        Outgoing {
            head,
            meta,
            parts,
            length,
            shared: RefCell::default(),
        }
    }

    /// Hands over a copy of the payload, for further receivers. Replaces an earlier copy: more
    /// receivers may be able to read the new copy.
    pub fn share(&self, copy: SharedBuffer) {
        self.shared.replace(Some(copy));
    }

    /// The copy of the payload, if made.
    pub fn copied(&self) -> Option<SharedBuffer> {
        self.shared.borrow().clone()
    }

    /// As [`Outgoing::copied`], and ends the message.
    pub fn into_copy(self) -> Option<SharedBuffer> {
        self.shared.into_inner()
    }

    /// Bytes of payload.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// A copy of the payload for any number of receivers to share. Made at the first call.
    ///
    /// # Errors
    /// If there is no memory for the copy.
    pub fn shared(&self) -> Result<SharedBuffer, LinkError> {
        if let Some(buffer) = self.copied() {
            return Ok(buffer);
        }
        if self.length == 0 {
            return Ok(SharedBuffer::default());
        }
        let buffer = SharedBuffer::from(Buffer::gather(self.parts)?);
        self.share(buffer.clone());
        Ok(buffer)
    }
}

/// How a message left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SendReport {
    /// Bytes of payload copied by the sender.
    pub copied: u64,
    /// Whether the message went by the socket for lack of shared memory.
    pub by_socket: bool,
}

/// Takes messages of any number of conduits to one other process, or to the sending process itself.
///
/// Any thread may call. Calls for one conduit come from one thread at a time, and the conduit's
/// messages arrive in the order of the calls. The conduit's [`crate::Window`] has found room in the
/// buffer before [`Carrier::send`], so no method waits for the receiving *program*; sending waits,
/// for a bounded time, for bytes to drain.
pub trait Carrier: Acknowledge {
    /// The medium.
    fn medium(&self) -> Medium;

    /// Sends one message. After the return the caller may change the payload's memory.
    ///
    /// # Errors
    /// [`LinkError`] once the other end is gone. The message may have arrived. [`LinkError::NoMemory`] and
    /// [`LinkError::Untaken`] are about the message only; if a part of the message had left, the link is
    /// closed.
    fn send(&self, message: &Outgoing<'_>) -> Result<SendReport, LinkError>;

    /// As [`Carrier::send`], without waiting: bytes of the payload that cannot leave now are copied, and leave
    /// later. Of the media with sockets; other media send as usual.
    ///
    /// # Errors
    /// As [`Carrier::send`].
    fn send_or_copy(&self, message: &Outgoing<'_>) -> Result<SendReport, LinkError> {
        self.send(message)
    }

    /// As [`Carrier::send`], without waiting, for a message with a shared copy of the payload
    /// ([`Outgoing::share`]): a message that cannot leave now leaves later, from the shared copy.
    ///
    /// # Errors
    /// As [`Carrier::send`].
    fn post(&self, message: &Outgoing<'_>) -> Result<SendReport, LinkError> {
        self.send(message)
    }

    /// Tells the receiving end that no message follows the first `sequence` messages. Does not
    /// wait.
    fn end(&self, conduit: ConduitId, sequence: u64);

    /// Asks the receiving end to acknowledge what it has consumed, because message number `sequence`
    /// waits for room. Receivers otherwise acknowledge only at a quarter of the limits, and the counts
    /// may never reach the quarter while the sender waits. A sender that asks again, before it sleeps,
    /// has each consumed message acknowledged at once. Does not wait.
    fn ask(&self, conduit: ConduitId, sequence: u64);

    /// How many streams carry a large message at a time.
    fn streams(&self) -> usize {
        1
    }

    /// The addresses of the two ends, with that of this process first, where messages travel by a tcp
    /// connection between them.
    fn addresses(&self) -> Option<[IpAddr; 2]> {
        None
    }

    /// The rate at which the line to the other process delivers large messages, in bytes a second, where
    /// the medium measures the rate and has come to know it.
    fn line_rate(&self) -> Option<u64> {
        None
    }

    /// How many bytes should be under way to the other process so that its acknowledgements do not limit
    /// the rate, where the medium measures the line: twice what the line holds.
    fn bytes_of_line(&self) -> Option<u64> {
        None
    }

    /// Takes messages in on the caller's thread until the policy ends the spin, where spinning is
    /// faster than waking the caller. Where messages come by sockets, the caller then sleeps at the
    /// sockets until the policy ends the wait. Returns at once if the caller cannot take messages in
    /// from the medium, or another thread takes them in.
    fn attend(&self, policy: &mut dyn WaitPolicy) {
        let _ = policy;
    }

    /// As [`Carrier::attend`], for a caller that waits for the next message of an empty inbox. May
    /// write the message to `message`, in place of an earlier message whose memory is used again.
    /// True if so; the inbox has then counted the message as taken. Does nothing if a look takes a
    /// system call.
    fn attend_one(
        &self,
        inbox: &Inbox,
        policy: &mut dyn WaitPolicy,
        message: &mut IncomingMessage,
    ) -> bool {
        let _ = (inbox, policy, message);
        false
    }

    /// Takes in available messages, if no system call is needed.
    fn look(&self) {}

    /// Whether [`Carrier::look`] would take something in, as far as a glance without a lock tells.
    fn has_news(&self) -> bool {
        false
    }

    /// Announces that the caller sleeps at `bell` until a message comes in. False if a message has
    /// come in already.
    fn arm(&self, bell: &Doorbell) -> bool {
        let _ = bell;
        true
    }
}
