//! The receiving side of shared memory.

use std::collections::{BTreeMap, VecDeque};
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use titin_wire::frame::{Frame, Head, Header};
use titin_wire::meta::Meta;
use titin_wire::{ConduitId, Malformed};

use super::INLINE;
use super::last_message::{KnownMessage, LastMessage};
use super::pool::BLOCKS;
use super::returns::Returns;
use super::ring::{self, Consumer, LINE, RingEntry};
use super::segment::split_block_number;
use crate::buffer::{Buffer, Filling, SharedBuffer};
use crate::error::LinkError;
use crate::inbox::{Inbox, IncomingMessage};
use crate::link::Received;
use crate::shared_memory::{SharedBytes, SharedRegion, Writers};

/// The entries that come in by a ring.
pub(super) struct RingInput {
    ring: Consumer,
    returns: Arc<Returns>,
    /// The last metadata of each conduit, and the length of the payload of the same message.
    metas: FxHashMap<ConduitId, (Arc<Meta>, u64)>,
    last: LastMessage,
    /// The peer's segments, by the indices of the first blocks.
    segments: BTreeMap<usize, PeerSegment>,
    /// Messages that came by the socket before their entry in the ring, by conduit and number.
    from_socket: FxHashMap<(ConduitId, u64), IncomingMessage>,
    /// The number of the last message of each conduit that superseded others. The sender may have
    /// dropped the entries of superseded messages, while the socket still brings the messages.
    latest: FxHashMap<ConduitId, u64>,
    /// For each conduit that waits for the socket, the items in order, the awaited item first.
    aside: FxHashMap<ConduitId, VecDeque<RingItem>>,
    /// The socket has brought a message or a segment since the last look through `aside`.
    arrived: bool,
}

/// A segment of the peer's.
pub(super) struct PeerSegment {
    serial: u32,
    /// Index of the first block.
    first: usize,
    region: Arc<SharedRegion>,
    size: usize,
    count: usize,
}

/// What the peer waits for, once an entry was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PeerWants {
    Nothing,
    /// To be told of room in the ring.
    Look,
}

/// A message with the metadata and the length of the last message of its conduit.
struct AlikeMessage<'a> {
    head: Head,
    meta: &'a Arc<Meta>,
    length: u64,
}

impl AlikeMessage<'_> {
    /// Takes the message out of the ring, over an earlier message. `None`, and nothing has happened, if
    /// the inbox does not count the message as taken.
    #[inline(always)]
    fn take(
        self,
        ring: &mut Consumer,
        entry: &RingEntry,
        inbox: &Inbox,
        message: &mut IncomingMessage,
    ) -> Option<PeerWants> {
        let length = self.length as usize;
        // If the payload extends past the ring, the next `take_in` reports the fault.
        copy_payload(ring, entry, length, &mut message.body)?;
        if !inbox.count_as_taken(self.head.sequence, self.length) {
            return None;
        }
        message.head = self.head;
        if !Arc::ptr_eq(&message.meta, self.meta) {
            message.meta = self.meta.clone();
        }
        // The payload was within the ring, so the entry is.
        match ring.pop(ring::size(0, length)) {
            Ok(true) => Some(PeerWants::Look),
            _ => Some(PeerWants::Nothing),
        }
    }
}

/// The content of an entry.
enum RingItem {
    Whole(Received),
    /// A message with its payload in a block of a segment that has not come yet.
    InBlock {
        head: Head,
        meta: Arc<Meta>,
        block: u64,
        total: u64,
    },
    /// A message taken back by the sender, since a later message supersedes it.
    TakenBack,
    /// A message that comes by the socket.
    BySocket {
        conduit: ConduitId,
        sequence: u64,
    },
}

impl RingInput {
    pub(super) fn new(ring: Consumer, returns: Arc<Returns>) -> Self {
        RingInput {
            ring,
            returns,
            metas: FxHashMap::default(),
            last: LastMessage::default(),
            segments: BTreeMap::new(),
            from_socket: FxHashMap::default(),
            latest: FxHashMap::default(),
            aside: FxHashMap::default(),
            arrived: false,
        }
    }

    /// Adds a message from the socket.
    pub(super) fn add_from_socket(&mut self, message: IncomingMessage) {
        let Head {
            conduit, sequence, ..
        } = message.head;
        if self
            .latest
            .get(&conduit)
            .is_some_and(|latest| sequence < *latest)
        {
            return;
        }
        self.arrived = true;
        self.from_socket.insert((conduit, sequence), message);
    }

    /// Adds a segment. Returns the segments that had the same indices before: the peer has
    /// withdrawn them, though the frame with the withdrawal may still be on the way. The caller
    /// drops them after the release of the ring, since unmapping takes time.
    #[must_use = "drop them after the lock is released"]
    pub(super) fn add(&mut self, new: PeerSegment) -> Vec<PeerSegment> {
        let indices = new.first..new.first + new.count;
        let gone = self.segments.extract_if(.., |first, old| {
            *first < indices.end && indices.start < first + old.count
        });
        let gone = gone.map(|(_, old)| old).collect();
        self.arrived = true;
        self.segments.insert(new.first, new);
        gone
    }

    /// Removes a segment withdrawn by the peer.
    #[must_use = "drop it after the lock is released"]
    pub(super) fn withdraw(&mut self, first: u64) -> Option<PeerSegment> {
        let (serial, first) = split_block_number(first);
        self.segments
            .get(&first)
            .filter(|segment| segment.serial == serial)?;
        self.segments.remove(&first)
    }

    /// Takes the next message of an empty inbox, if the next entry differs from the last message of the
    /// inbox's conduit in number, times and payload alone. The inbox counts the message as taken. The
    /// message is written over an earlier message, whose memory is used again.
    #[inline(always)]
    pub(super) fn take_alike(
        &mut self,
        inbox: &Inbox,
        message: &mut IncomingMessage,
    ) -> Option<PeerWants> {
        let entry = self.ring.peek()?;
        if self.arrived || !self.aside.is_empty() {
            return None;
        }
        let of_conduit = |known: &&KnownMessage| known.header.conduit() == inbox.conduit();
        let Some(last) = self.last.known().filter(of_conduit) else {
            return self.take_alike_by_metadata(&entry, inbox, message);
        };
        let alike = AlikeMessage {
            head: last.header.head_of(&entry.header)?,
            meta: &last.meta,
            length: last.length,
        };
        alike.take(&mut self.ring, &entry, inbox, message)
    }

    /// As [`RingInput::take_alike`], if the kept message is of another conduit, or there is none: decodes
    /// the header, and compares with the conduit's last metadata and length.
    fn take_alike_by_metadata(
        &mut self,
        entry: &RingEntry,
        inbox: &Inbox,
        message: &mut IncomingMessage,
    ) -> Option<PeerWants> {
        let header = Header::decode(&entry.header).ok()?;
        if header.conduit() != inbox.conduit() || !header.has_same_meta() {
            return None;
        }
        let (meta, length) = self.metas.get(&inbox.conduit())?;
        let Frame::Data {
            head,
            meta: 0,
            body,
            total,
        } = header.frame().ok()?
        else {
            return None;
        };
        let is_inline = body == total && body <= INLINE as u64;
        // A message that supersedes others goes by `take_in`, which drops those.
        if !is_inline || total != *length || meta.supersedes.is_some() {
            return None;
        }
        let length = total;
        let alike = AlikeMessage { head, meta, length };
        let taken = alike.take(&mut self.ring, entry, inbox, message)?;
        self.last
            .note(&header, inbox.conduit(), &message.meta, length);
        Some(taken)
    }

    /// Hands all entries of the ring to `sink`, until `sink` breaks. True if the peer is to be told
    /// of room. Ends after one round of the ring, even if the peer puts entries in as fast.
    pub(super) fn take_in(
        &mut self,
        mut sink: impl FnMut(Received) -> Result<ControlFlow<()>, LinkError>,
    ) -> Result<bool, LinkError> {
        let mut room = false;
        if self.arrived {
            self.arrived = false;
            self.take_aside(&mut sink)?;
        }
        let end = self.ring.head() + self.ring.capacity();
        while self.ring.head() < end
            && let Some(entry) = self.ring.peek()
        {
            let (item, size) = self.read(&entry)?;
            room |= self.ring.pop(size)?;
            let received = match item {
                // The usual case, kept short since a second look would show in the time of a
                // message.
                RingItem::Whole(received) if self.aside.is_empty() => received,
                item => match self.in_order(item)? {
                    Some(received) => received,
                    None => continue,
                },
            };
            if let Received::Message(message) = &received
                && message.meta.supersedes.is_some()
            {
                self.supersede(message);
            }
            if sink(received)?.is_break() {
                break;
            }
        }
        Ok(room)
    }

    /// Hands on the items that no longer wait for the socket.
    fn take_aside(
        &mut self,
        sink: &mut impl FnMut(Received) -> Result<ControlFlow<()>, LinkError>,
    ) -> Result<(), LinkError> {
        let conduits: Vec<ConduitId> = self.aside.keys().copied().collect();
        for conduit in conduits {
            let mut waiting = self.aside.remove(&conduit).unwrap_or_default();
            // An item that still waits goes back as the first, and the items behind follow.
            while let Some(item) = waiting.pop_front() {
                if let Some(received) = self.settle(item)? {
                    if let Received::Message(message) = &received {
                        self.supersede(message);
                    }
                    // The reactor's sink never breaks.
                    let _ = sink(received)?;
                } else if let Some(first) = self.aside.get_mut(&conduit) {
                    first.append(&mut waiting);
                }
            }
        }
        Ok(())
    }

    /// The frame of an item, unless the item has to wait for the socket or behind others of the
    /// conduit.
    fn in_order(&mut self, item: RingItem) -> Result<Option<Received>, LinkError> {
        let waiting = item
            .conduit()
            .and_then(|conduit| self.aside.get_mut(&conduit));
        let Some(waiting) = waiting else {
            return self.settle(item);
        };
        if let Some(first) = item.supersedes() {
            waiting.retain(|other| {
                let stays = other.sequence().is_some_and(|sequence| sequence < first);
                if !stays {
                    other.give_back(&self.returns);
                }
                stays
            });
        }
        if !waiting.is_empty() {
            waiting.push_back(item);
            return Ok(None);
        }
        item.conduit().map(|conduit| self.aside.remove(&conduit));
        self.settle(item)
    }

    /// The frame of a complete item. An incomplete item is put aside, or dropped.
    #[inline]
    fn settle(&mut self, item: RingItem) -> Result<Option<Received>, LinkError> {
        Ok(match item {
            RingItem::Whole(received) => Some(received),
            RingItem::TakenBack => None,
            RingItem::InBlock {
                head,
                meta,
                block,
                total,
            } => match self.view(block, total)? {
                Some(body) => Some(message(head, meta, body)),
                None => self.put_aside(
                    head.conduit,
                    RingItem::InBlock {
                        head,
                        meta,
                        block,
                        total,
                    },
                ),
            },
            RingItem::BySocket { conduit, sequence } => {
                match self.from_socket.remove(&(conduit, sequence)) {
                    Some(message) => Some(Received::Message(message)),
                    // The socket keeps the order of a conduit: a later message has superseded the
                    // awaited message.
                    None if self
                        .from_socket
                        .keys()
                        .any(|(of, later)| *of == conduit && *later > sequence) =>
                    {
                        None
                    }
                    None => self.put_aside(conduit, RingItem::BySocket { conduit, sequence }),
                }
            }
        })
    }

    #[cold]
    fn put_aside(&mut self, conduit: ConduitId, item: RingItem) -> Option<Received> {
        self.aside.entry(conduit).or_default().push_back(item);
        None
    }

    /// Drops the messages superseded by `message`.
    fn supersede(&mut self, message: &IncomingMessage) {
        let Some(first) = message.meta.supersedes else {
            return;
        };
        let Head {
            conduit,
            sequence: latest,
            ..
        } = message.head;
        self.latest.insert(conduit, latest);
        self.from_socket
            .retain(|(of, sequence), _| *of != conduit || *sequence < first || *sequence > latest);
    }

    /// The content of an entry, and the entry's size in the ring.
    #[inline(always)]
    fn read(&mut self, entry: &RingEntry) -> Result<(RingItem, usize), LinkError> {
        let header = Header::decode(&entry.header)?;
        let received = match header.frame()? {
            Frame::Data {
                head,
                meta,
                body,
                total,
            } => {
                let (meta_length, body_length) = (meta as usize, body as usize);
                if !fits(meta_length) || body_length > INLINE || body != total {
                    return Err(
                        Malformed::new("ring", "an entry of lengths that no entry has").into(),
                    );
                }
                let meta = self.meta(entry, &header, &head, meta_length, total)?;
                let body = payload_in(&self.ring, entry, meta_length, body_length)?;
                if header.has_same_meta() && meta_length == 0 {
                    self.last.note(&header, head.conduit, &meta, total);
                }
                let message = IncomingMessage { head, meta, body };
                let size = ring::size(meta_length, body_length);
                return Ok((RingItem::Whole(Received::Message(message)), size));
            }
            Frame::Placed {
                head,
                meta,
                block,
                total,
            } => {
                let length = meta as usize;
                if !fits(length) {
                    return Err(
                        Malformed::new("ring", "metadata of a length that no entry has").into(),
                    );
                }
                let meta = self.meta(entry, &header, &head, length, total)?;
                if meta.supersedes.is_some() && !self.ring.claim(entry, length)? {
                    return Ok((RingItem::TakenBack, ring::size(length, LINE)));
                }
                let size = ring::size(length, if meta.supersedes.is_some() { LINE } else { 0 });
                let item = match self.view(block, total)? {
                    Some(body) => RingItem::Whole(message(head, meta, body)),
                    None => RingItem::InBlock {
                        head,
                        meta,
                        block,
                        total,
                    },
                };
                return Ok((item, size));
            }
            Frame::Elsewhere { conduit, sequence } => {
                return Ok((RingItem::BySocket { conduit, sequence }, ring::size(0, 0)));
            }
            Frame::Acknowledge { conduit, ack } => Received::Acknowledged(conduit, ack),
            Frame::End { conduit, sequence } => Received::Ended(conduit, sequence),
            Frame::Ask { conduit, sequence } => Received::Asked(conduit, sequence),
            other => {
                return Err(
                    Malformed::new("ring", format!("{other:?} does not belong there")).into(),
                );
            }
        };
        Ok((RingItem::Whole(received), ring::size(0, 0)))
    }

    fn meta(
        &mut self,
        entry: &RingEntry,
        header: &Header,
        head: &Head,
        length: usize,
        total: u64,
    ) -> Result<Arc<Meta>, LinkError> {
        let wrong = |why: &str| Malformed::new("metadata", why.to_owned());
        if header.has_same_meta() {
            let (meta, length) = self
                .metas
                .get(&head.conduit)
                .ok_or_else(|| wrong("as before, but there were none"))?;
            // Most messages are as long as the message before.
            if *length != total {
                meta.check(total)?;
            }
            return Ok(meta.clone());
        }
        let mut bytes = [0; INLINE];
        self.ring.copy(entry, 0, &mut bytes[..length])?;
        let meta = Arc::new(Meta::decode(&bytes[..length], total)?);
        self.last.forget();
        self.metas.insert(head.conduit, (meta.clone(), total));
        Ok(meta)
    }

    /// The payload in a block; `None` if the block's segment has not come yet.
    fn view(&self, block: u64, total: u64) -> Result<Option<Buffer>, LinkError> {
        let (serial, block) = split_block_number(block);
        let Some((first, segment)) = self.segments.range(..=block).next_back() else {
            return Ok(None);
        };
        let index = block - first;
        if index >= segment.count || segment.serial != serial {
            return Ok(None);
        }
        if total > segment.size as u64 {
            let why = format!("{total} bytes in a block of {}", segment.size);
            return Err(Malformed::new("placed message", why).into());
        }
        let start = index * segment.size;
        let bytes = SharedBytes::new(&segment.region, start..start + total as usize);
        Ok(Some(Buffer::in_peer_block(
            bytes,
            self.returns.clone(),
            block,
        )))
    }
}

impl PeerSegment {
    /// Maps a segment handed over by the peer. The caller holds no lock, since mapping takes time.
    ///
    /// # Errors
    /// [`LinkError`] if the segment is not as announced, or the system does not map the segment.
    pub(super) fn map(
        first: u64,
        size: u64,
        count: u64,
        file: Option<OwnedFd>,
    ) -> Result<Self, LinkError> {
        let wrong = || {
            Malformed::new(
                "segment",
                format!("{count} blocks of {size} bytes from number {first}"),
            )
        };
        let (serial, first) = split_block_number(first);
        let (size, count) = (size as usize, count as usize);
        let length = size
            .checked_mul(count)
            .filter(|length| *length > 0 && size.is_multiple_of(titin_wire::ALIGNMENT));
        let length = length
            .filter(|_| first < BLOCKS && count <= BLOCKS - first)
            .ok_or_else(wrong)?;
        // The system drops a descriptor for which the process has no number left.
        let file = file.ok_or_else(|| {
            let why = "its descriptor has not come: this process may have as many files open as it is allowed (`ulimit -n`)";
            LinkError::NoMemory(format!("a segment of {length} bytes cannot be mapped: {why}"))
        })?;
        let region = SharedRegion::open(&file, length, Writers::Maker).map_err(|why| match why
            .kind()
        {
            std::io::ErrorKind::InvalidData => Malformed::new("segment", why.to_string()).into(),
            _ => LinkError::NoMemory(format!(
                "a segment of {length} bytes cannot be mapped: {why}"
            )),
        })?;
        Ok(PeerSegment {
            serial,
            first,
            region: Arc::new(region),
            size,
            count,
        })
    }
}

impl RingItem {
    /// The conduit in whose order the item stands. Acknowledgements and other items without a
    /// conduit belong to no order.
    fn conduit(&self) -> Option<ConduitId> {
        match self {
            RingItem::Whole(Received::Message(IncomingMessage { head, .. }))
            | RingItem::InBlock { head, .. } => Some(head.conduit),
            RingItem::BySocket { conduit, .. } | RingItem::Whole(Received::Ended(conduit, _)) => {
                Some(*conduit)
            }
            RingItem::Whole(_) | RingItem::TakenBack => None,
        }
    }

    /// The number of the message, if the item is a message.
    fn sequence(&self) -> Option<u64> {
        match self {
            RingItem::Whole(Received::Message(IncomingMessage { head, .. }))
            | RingItem::InBlock { head, .. } => Some(head.sequence),
            RingItem::BySocket { sequence, .. } => Some(*sequence),
            RingItem::Whole(_) | RingItem::TakenBack => None,
        }
    }

    /// Returns the block of a payload that no receiver will see.
    fn give_back(&self, returns: &Returns) {
        if let RingItem::InBlock { block, .. } = self
            && let (_, index @ ..BLOCKS) = split_block_number(*block)
        {
            returns.add(index);
        }
    }

    /// The first superseded message, if the item supersedes messages and the metadata are known
    /// yet.
    fn supersedes(&self) -> Option<u64> {
        match self {
            RingItem::Whole(Received::Message(IncomingMessage { meta, .. }))
            | RingItem::InBlock { meta, .. } => meta.supersedes,
            _ => None,
        }
    }
}

/// Copies the payload of an entry without metadata to `out`. The memory of `out` serves again if no
/// other message shares it. `None` if there is no memory, or if the entry goes beyond the ring.
#[inline(always)]
fn copy_payload(
    ring: &Consumer,
    entry: &RingEntry,
    length: usize,
    out: &mut SharedBuffer,
) -> Option<()> {
    match out.reuse(length) {
        Some([]) => {}
        Some(bytes) => ring.copy(entry, 0, bytes).ok()?,
        None => *out = payload_in(ring, entry, 0, length).ok()?,
    }
    Some(())
}

/// A copy of the payload in an entry, behind `start` bytes of metadata.
fn payload_in(
    ring: &Consumer,
    entry: &RingEntry,
    start: usize,
    length: usize,
) -> Result<SharedBuffer, LinkError> {
    if length == 0 {
        return Ok(SharedBuffer::default());
    }
    let mut filling = Filling::new(length as u64)?;
    ring.copy(entry, start, filling.rest())?;
    filling.advance(length);
    Ok(filling.finish().into())
}

fn message(head: Head, meta: Arc<Meta>, body: Buffer) -> Received {
    let body = body.into();
    Received::Message(IncomingMessage { head, meta, body })
}

/// Whether an entry may have `meta` bytes of metadata: whole lines.
fn fits(meta: usize) -> bool {
    meta <= INLINE && meta.is_multiple_of(LINE)
}
