//! The sending side of shared memory.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use titin_wire::ConduitId;
use titin_wire::frame::{Frame, Header};
use titin_wire::meta::Meta;

use super::last_message::LastMessage;
use super::pool::block_of;
use super::returns::Returns;
use super::ring::{LINE, Producer};
use super::segment::{Segment, split_block_number};
use super::{INLINE, REACTOR, ShmCarrier};
use crate::buffer::{Buffer, Filling, SharedBuffer};
use crate::carrier::{Outgoing, SendReport};
use crate::error::LinkError;
use crate::link::Link;
use crate::spin_lock::SpinLockGuard;

/// The entries that go out by a ring.
///
/// The socket tells the peer to **look** at the ring when no thread of the peer may look otherwise:
/// - when the ring is full (`stuck`), once: the peer tells in turn when there is room;
/// - before a thread of the sending process sleeps, for entries on which the peer is to act
///   (`urgent`); at once for such entries if the ring did not take them at first, since their
///   thread may sleep already (`overdue`);
/// - behind an entry for a thread that only the peer's reactor can wake (`REACTOR`).
///
/// [`ShmCarrier::wake`] and [`ShmCarrier::urge`] tell the peer.
pub(super) struct RingOutput {
    ring: Producer,
    /// The entries for which the ring had no room, in order.
    kept: VecDeque<KeptEntry>,
    /// The last metadata of each conduit.
    metas: FxHashMap<ConduitId, Arc<Meta>>,
    last: LastMessage,
    /// The segments handed to the peer: serial numbers, by the indices of the first blocks.
    handed: FxHashMap<usize, u32>,
    /// The last message of each conduit whose messages supersede earlier messages, if the ring took
    /// the message.
    last_superseding: FxHashMap<ConduitId, SupersedingMessage>,
    /// Whether the peer was told to look since the ring is full, and has not made room yet.
    stuck: bool,
    /// Where in the ring the last urgent entry ends. The peer is to act on such an entry even while
    /// the program is busy.
    urgent: u64,
    /// A kept urgent entry has gone in. The entry's thread may sleep already.
    overdue: bool,
}

/// A message that a later message may supersede.
struct SupersedingMessage {
    /// The first superseded message.
    first: u64,
    /// Where in the ring the message's entry ends.
    end: u64,
    /// Index of the message's block, if any.
    block: Option<usize>,
}

/// An entry in private memory.
struct KeptEntry {
    header: [u8; LINE],
    /// Metadata and body.
    rest: Vec<u8>,
    meta_length: usize,
    urgent: bool,
}

impl RingOutput {
    pub(super) fn new(ring: Producer) -> Self {
        RingOutput {
            ring,
            kept: VecDeque::new(),
            metas: FxHashMap::default(),
            last: LastMessage::default(),
            handed: FxHashMap::default(),
            last_superseding: FxHashMap::default(),
            stuck: false,
            urgent: 0,
            overdue: false,
        }
    }

    /// Puts an entry into the ring, or keeps the entry. Returns how many bytes of the body were
    /// copied to keep the entry.
    #[inline(always)]
    fn push(&mut self, header: [u8; LINE], meta: &[u8], body: &[IoSlice<'_>], urgent: bool) -> u64 {
        if self.flush() && self.ring.push(&header, meta, body) {
            if urgent {
                self.urgent = self.ring.tail();
            }
            return 0;
        }
        let mut rest = meta.to_vec();
        body.iter().for_each(|part| rest.extend_from_slice(part));
        let copied = (rest.len() - meta.len()) as u64;
        self.kept.push_back(KeptEntry {
            header,
            rest,
            meta_length: meta.len(),
            urgent,
        });
        copied
    }

    /// The header of a message that differs from the last message in number, times and payload
    /// alone.
    #[inline(always)]
    fn repeated(&self, message: &Outgoing<'_>) -> Option<[u8; LINE]> {
        let last = self.last.known()?;
        let is_alike = Arc::ptr_eq(&last.meta, message.meta) && last.length == message.length();
        is_alike.then(|| last.header.with(&message.head)).flatten()
    }

    /// Puts kept entries in; true if none is left.
    #[inline(always)]
    fn flush(&mut self) -> bool {
        self.kept.is_empty() || self.flush_kept()
    }

    #[cold]
    fn flush_kept(&mut self) -> bool {
        while let Some(kept) = self.kept.front() {
            let (meta, body) = kept.rest.split_at(kept.meta_length);
            if !self.ring.push(&kept.header, meta, &[IoSlice::new(body)]) {
                return false;
            }
            if kept.urgent {
                (self.urgent, self.overdue) = (self.ring.tail(), true);
            }
            self.kept.pop_front();
        }
        true
    }

    /// Drops the kept messages of a conduit from number `first` on: the next message supersedes
    /// them. Nothing holds up the sender of superseded messages, so the kept messages would grow
    /// without bound.
    fn supersede_kept(&mut self, conduit: ConduitId, first: u64, returned: &Returns) {
        if self.flush() {
            return;
        }
        let before = self.kept.len();
        self.kept.retain(|kept| {
            match Header::decode(&kept.header).and_then(|header| header.frame()) {
                Ok(Frame::Data { head, .. }) => head.conduit != conduit || head.sequence < first,
                Ok(Frame::Elsewhere {
                    conduit: of,
                    sequence,
                }) => of != conduit || sequence < first,
                Ok(Frame::Placed { head, block, .. })
                    if head.conduit == conduit && head.sequence >= first =>
                {
                    // The peer never learns of the block.
                    returned.add(split_block_number(block).1);
                    false
                }
                _ => true,
            }
        });
        if self.kept.len() < before {
            // A dropped message may have had the metadata to which later messages refer.
            self.metas.remove(&conduit);
            self.last.forget();
        }
    }

    /// Whether the peer is to be told to look because the ring is full. The peer tells in turn when
    /// there is room, so the peer is told once.
    fn is_newly_stuck(&mut self) -> bool {
        if self.kept.is_empty() {
            self.stuck = false;
            return false;
        }
        self.ring.want_room();
        let stuck = !self.flush();
        stuck && !std::mem::replace(&mut self.stuck, stuck)
    }

    /// Called behind each message, with the index of the message's block, if any. Takes the
    /// previous message of the conduit out of the ring, if `message` supersedes the previous
    /// message and the peer has not read it yet: otherwise each message would keep its block while
    /// the peer is busy.
    #[inline(always)]
    fn supersede_entered(
        &mut self,
        message: &Outgoing<'_>,
        block: Option<usize>,
        returned: &Returns,
    ) {
        if message.meta.supersedes.is_some() || !self.last_superseding.is_empty() {
            self.take_back_last(message, block, returned);
        }
    }

    #[cold]
    fn take_back_last(&mut self, message: &Outgoing<'_>, block: Option<usize>, returned: &Returns) {
        let last = self.last_superseding.remove(&message.head.conduit);
        // A kept message is not in the ring.
        let Some(first) = message.meta.supersedes.filter(|_| self.kept.is_empty()) else {
            return;
        };
        let end = self.ring.tail();
        let superseding = SupersedingMessage { first, end, block };
        self.last_superseding
            .insert(message.head.conduit, superseding);
        // The receiver may miss the last message if the new message supersedes at least as much as
        // the last did.
        if let Some(SupersedingMessage {
            first: first_of_last,
            end,
            block: Some(block),
        }) = last
            && first <= first_of_last
            && self.ring.take_back(end)
        {
            returned.add(block);
        }
    }

    /// Notes the handover of a segment to the peer; false if the peer has the segment.
    fn note_handed(&mut self, segment: &Segment) -> bool {
        self.handed.insert(segment.first, segment.serial) != Some(segment.serial)
    }
}

/// How a message goes by the socket: [`Link::send`], or [`Link::post`], which does not wait.
type BySocket = fn(&Link, &Outgoing<'_>) -> Result<SendReport, LinkError>;

impl ShmCarrier {
    /// Puts a message in. A payload without a block goes `by_socket`.
    #[inline(always)]
    pub(super) fn put(
        &self,
        message: &Outgoing<'_>,
        by_socket: BySocket,
    ) -> Result<SendReport, LinkError> {
        let head = message.head;
        let mut sent = SendReport::default();
        let mut output = self.output.lock();
        if let Some(header) = output.repeated(message) {
            sent.copied = output.push(header, &[], message.parts, false);
            output.supersede_entered(message, None, &self.returned);
            self.wake(output);
            return Ok(sent);
        }
        if let Some(first) = message.meta.supersedes {
            // First, since superseded messages may have the memory needed now.
            output.supersede_kept(head.conduit, first, &self.returned);
        }
        let has_same_meta = output.metas.get(&head.conduit) == Some(message.meta);
        let meta = if has_same_meta {
            Vec::new()
        } else {
            message.meta.encode()
        };
        if meta.len() > INLINE {
            drop(output);
            return self.put_by_socket(message, by_socket);
        }
        let mut body = None;
        if message.length() > INLINE as u64 {
            // Copying takes time. No other thread sends on the conduit meanwhile.
            drop(output);
            body = self.place(message, &mut sent);
            if body.is_none() {
                let sent = self.put_by_socket(message, by_socket)?;
                return Ok(SendReport {
                    by_socket: true,
                    ..sent
                });
            }
            output = self.output.lock();
        }
        let block = body.as_deref().and_then(block_of);
        if !has_same_meta {
            output.metas.insert(head.conduit, message.meta.clone());
            output.last.forget();
        }
        let (total, meta_length) = (message.length(), meta.len() as u32);
        let frame = match block {
            None => Frame::Data {
                head,
                meta: meta_length,
                body: total,
                total,
            },
            Some(block) => Frame::Placed {
                head,
                meta: meta_length,
                block: block.number(),
                total,
            },
        };
        let mut header = Header::from(&frame);
        if has_same_meta {
            header = header.with_same_meta();
            if block.is_none() {
                output
                    .last
                    .note(&header, head.conduit, message.meta, message.length());
            }
        }
        let parts = match (block, message.meta.supersedes) {
            (None, _) => message.parts,
            (Some(_), None) => &[],
            // The line by which the peer claims the message, or the sender takes the message back.
            (Some(_), Some(_)) => &[IoSlice::new(&[0; LINE])],
        };
        let unknown = block
            .map(|block| block.segment())
            .filter(|segment| output.note_handed(segment));
        let copied = output.push(header.encode(), &meta, parts, false);
        if block.is_none() {
            sent.copied += copied;
        }
        let index = block.map(|block| block.index());
        output.supersede_entered(message, index, &self.returned);
        self.wake(output);
        if let Some(segment) = unknown {
            // The peer puts the entry aside until the segment has come.
            self.hand_over(segment);
        }
        Ok(sent)
    }

    /// Puts a frame in, alone: nothing follows the header.
    pub(super) fn put_frame(&self, frame: &Frame, urgent: bool) {
        let mut output = self.output.lock();
        output.push(Header::from(frame).encode(), &[], &[], urgent);
        self.wake(output);
    }

    /// Puts kept entries in, for the reactor.
    pub(super) fn flush(&self) {
        let mut output = self.output.lock();
        if !output.kept.is_empty() {
            // The peer has looked, and is to be told again of entries still without room.
            output.stuck = false;
            output.flush();
            self.wake(output);
        }
    }

    /// Has the peer act on unread urgent entries, before the calling thread sleeps.
    pub(super) fn urge(&self) {
        let mut output = self.output.lock();
        let unread = output.urgent > 0 && output.ring.read() < output.urgent;
        if unread {
            output.urgent = 0;
        }
        drop(output);
        if unread {
            self.tell_to_look();
        }
    }

    /// Wakes the threads that sleep at the other end, and has the peer's reactor look if needed.
    #[inline(always)]
    fn wake(&self, mut output: SpinLockGuard<'_, RingOutput>) {
        let look = output.is_newly_stuck() | std::mem::take(&mut output.overdue);
        let sleepers = output.ring.sleepers();
        drop(output);
        if sleepers != 0 {
            self.peer_bells.ring(sleepers);
        }
        if look || sleepers & (1 << REACTOR) != 0 {
            self.tell_to_look();
        }
    }

    /// The message's payload in a block, counted as given to the peer: the block where the payload
    /// lies, or a copy. `None` if there is no block.
    fn place(&self, message: &Outgoing<'_>, sent: &mut SendReport) -> Option<SharedBuffer> {
        let is_in_pool =
            |body: &Buffer| block_of(body).is_some_and(|block| block.is_of(&self.pool));
        let body = match message.copied().filter(|body| is_in_pool(body)) {
            Some(body) => body,
            None => {
                let block = self.pool.take(message.length() as usize)?;
                let body = SharedBuffer::from(Filling::in_block(block).with(message.parts));
                sent.copied += message.length();
                message.share(body.clone());
                body
            }
        };
        // Before the peer sees the entry, since the peer may return the block at once.
        block_of(&body)?.give(&self.returned);
        Some(body)
    }

    /// Sends a message by the socket, and puts an entry in that keeps the message's place in the
    /// order.
    fn put_by_socket(
        &self,
        message: &Outgoing<'_>,
        by_socket: BySocket,
    ) -> Result<SendReport, LinkError> {
        let link = self.link.upgrade().ok_or(LinkError::Closed)?;
        let (conduit, sequence) = (message.head.conduit, message.head.sequence);
        let mut sent = by_socket(&link, message)?;
        // The system has a copy of the payload in the socket's buffers.
        sent.copied += message.length();
        let mut output = self.output.lock();
        let header = Header::from(&Frame::Elsewhere { conduit, sequence }).encode();
        output.push(header, &[], &[], false);
        output.supersede_entered(message, None, &self.returned);
        self.wake(output);
        Ok(sent)
    }

    /// Hands a segment over to the peer.
    fn hand_over(&self, segment: &Arc<Segment>) {
        let Some(link) = self.link.upgrade() else {
            return;
        };
        segment.note_holder(&self.link);
        let (first, size, count) = (segment.number(), segment.size as u64, segment.count as u64);
        link.tell_frame(
            &Frame::Segment { first, size, count },
            Some(segment.clone()),
        );
    }
}
