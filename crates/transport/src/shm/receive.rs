//! The receiving side of shared memory.

use std::collections::{BTreeMap, VecDeque};
use std::ops::{ControlFlow, Deref};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use titin_wire::frame::{Frame, Head, Header};
use titin_wire::meta::Meta;
use titin_wire::{ConduitId, Malformed};

use super::INLINE;
use super::memory::{Piece, Region, Writers};
use super::pool::{self, BLOCKS};
use super::returns::Returns;
use super::ring::{self, Consumer, Entry, LINE, Shown};
use crate::tcp::Received;
use crate::{Buffer, Filling, Lost, Message};

/// What comes in by a ring.
pub(super) struct Inbound {
    ring: Consumer,
    returns: Arc<Returns>,
    /// The metadata that came last on each conduit, and the length of the payload that came with them.
    metas: FxHashMap<ConduitId, (Arc<Meta>, u64)>,
    /// The peer's segments, by the places of their first blocks.
    segments: BTreeMap<usize, Segment>,
    /// What came by the socket, and whose turn in the ring is still to come.
    elsewhere: FxHashMap<(ConduitId, u64), Message>,
    /// Numbers of the last messages that took the place of others. The sender has taken the entries of those out of what it
    /// kept, though the socket may still bring them.
    latest: FxHashMap<ConduitId, u64>,
    /// What has to wait for the socket, and what follows it on its conduit. Other conduits go on meanwhile.
    aside: FxHashMap<ConduitId, VecDeque<Item>>,
    /// The socket has brought something since that was looked through.
    arrived: bool,
}

/// Memory of several blocks of the peer's.
pub(super) struct Segment {
    serial: u32,
    /// Place of its first block.
    first: usize,
    region: Arc<Region>,
    size: usize,
    count: usize,
}

/// A payload that lies in a block of the peer's, which gets it back when this goes.
#[derive(Debug)]
pub(crate) struct View {
    piece: Piece,
    block: usize,
    returns: Arc<Returns>,
}

/// What an entry says.
enum Item {
    Whole(Received),
    /// A message whose payload is in a block of a segment that is still on the way.
    Placed {
        head: Head,
        meta: Arc<Meta>,
        block: u64,
        total: u64,
    },
    /// A message that its sender has taken back, since a later one takes its place.
    TakenBack,
    /// A message that comes by the socket.
    Elsewhere {
        conduit: ConduitId,
        sequence: u64,
    },
}

impl Inbound {
    pub(super) fn new(ring: Consumer, returns: Arc<Returns>) -> Self {
        Inbound {
            ring,
            returns,
            metas: FxHashMap::default(),
            segments: BTreeMap::new(),
            elsewhere: FxHashMap::default(),
            latest: FxHashMap::default(),
            aside: FxHashMap::default(),
            arrived: false,
        }
    }

    /// How far it has come, for those who only look.
    pub(super) fn shown(&self) -> &Arc<Shown> {
        self.ring.shown()
    }

    /// A message has come by the socket.
    pub(super) fn elsewhere(&mut self, message: Message) {
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
        self.elsewhere.insert((conduit, sequence), message);
    }

    /// Takes a segment in. Gives those that had its places before, which have been withdrawn, though that may still have to
    /// be told: whoever holds the ring no more lets go of them, since to unmap them takes its time.
    #[must_use = "they are to be dropped behind the lock"]
    pub(super) fn add(&mut self, new: Segment) -> Vec<Segment> {
        let places = new.first..new.first + new.count;
        let gone = self.segments.extract_if(.., |first, old| {
            *first < places.end && places.start < first + old.count
        });
        let gone = gone.map(|(_, old)| old).collect();
        self.arrived = true;
        self.segments.insert(new.first, new);
        gone
    }

    /// Takes a segment out that the peer has withdrawn.
    #[must_use = "it is to be dropped behind the lock"]
    pub(super) fn withdraw(&mut self, first: u64) -> Option<Segment> {
        let (serial, first) = pool::split(first);
        self.segments
            .get(&first)
            .filter(|segment| segment.serial == serial)?;
        self.segments.remove(&first)
    }

    /// Hands on what the ring holds, all of it or until `sink` says that it is enough. True if the peer is to be told that
    /// there is room. It comes to an end though the peer puts in as fast as this takes out.
    pub(super) fn take_in(
        &mut self,
        mut sink: impl FnMut(Received) -> Result<ControlFlow<()>, Lost>,
    ) -> Result<bool, Lost> {
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
                // Nearly all are so, and to look at them once more would show in the time of a message.
                Item::Whole(received) if self.aside.is_empty() => received,
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

    /// Hands on what waits no more for the socket.
    fn take_aside(
        &mut self,
        sink: &mut impl FnMut(Received) -> Result<ControlFlow<()>, Lost>,
    ) -> Result<(), Lost> {
        let conduits: Vec<ConduitId> = self.aside.keys().copied().collect();
        for conduit in conduits {
            let mut waiting = self.aside.remove(&conduit).unwrap_or_default();
            // The one that still waits is the first there again, and what follows it is put behind it.
            while let Some(item) = waiting.pop_front() {
                if let Some(received) = self.settle(item)? {
                    if let Received::Message(message) = &received {
                        self.supersede(message);
                    }
                    // The reactor's sink, which never has enough.
                    let _ = sink(received)?;
                } else if let Some(first) = self.aside.get_mut(&conduit) {
                    first.append(&mut waiting);
                }
            }
        }
        Ok(())
    }

    /// What has come, unless it has to wait, for the socket or behind others of its conduit.
    fn in_order(&mut self, item: Item) -> Result<Option<Received>, Lost> {
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

    /// What has come, if it is all there; otherwise it is put aside, or forgotten.
    #[inline]
    fn settle(&mut self, item: Item) -> Result<Option<Received>, Lost> {
        Ok(match item {
            Item::Whole(received) => Some(received),
            Item::TakenBack => None,
            Item::Placed {
                head,
                meta,
                block,
                total,
            } => match self.view(block, total)? {
                Some(view) => Some(placed(head, meta, view)),
                None => self.put_aside(
                    head.conduit,
                    Item::Placed {
                        head,
                        meta,
                        block,
                        total,
                    },
                ),
            },
            Item::Elsewhere { conduit, sequence } => {
                match self.elsewhere.remove(&(conduit, sequence)) {
                    Some(message) => Some(Received::Message(message)),
                    // The socket keeps the order of a conduit: it has left this one out for a later one.
                    None if self
                        .elsewhere
                        .keys()
                        .any(|(of, later)| *of == conduit && *later > sequence) =>
                    {
                        None
                    }
                    None => self.put_aside(conduit, Item::Elsewhere { conduit, sequence }),
                }
            }
        })
    }

    #[cold]
    fn put_aside(&mut self, conduit: ConduitId, item: Item) -> Option<Received> {
        self.aside.entry(conduit).or_default().push_back(item);
        None
    }

    /// Forgets what this message takes the place of.
    fn supersede(&mut self, message: &Message) {
        let Some(first) = message.meta.supersedes else {
            return;
        };
        let Head {
            conduit,
            sequence: latest,
            ..
        } = message.head;
        self.latest.insert(conduit, latest);
        self.elsewhere
            .retain(|(of, sequence), _| *of != conduit || *sequence < first || *sequence > latest);
    }

    /// What an entry says, and how many bytes of the ring it takes.
    #[inline(always)]
    fn read(&mut self, entry: &Entry) -> Result<(Item, usize), Lost> {
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
                let body = if body_length == 0 {
                    Buffer::empty()
                } else {
                    let mut filling = Filling::new(total)?;
                    self.ring.copy(entry, meta_length, filling.rest())?;
                    filling.advance(body_length);
                    Arc::new(filling.finish())
                };
                let message = Message { head, meta, body };
                let size = ring::size(meta_length, body_length);
                return Ok((Item::Whole(Received::Message(message)), size));
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
                    return Ok((Item::TakenBack, ring::size(length, LINE)));
                }
                let size = ring::size(length, if meta.supersedes.is_some() { LINE } else { 0 });
                let item = match self.view(block, total)? {
                    Some(view) => Item::Whole(placed(head, meta, view)),
                    None => Item::Placed {
                        head,
                        meta,
                        block,
                        total,
                    },
                };
                return Ok((item, size));
            }
            Frame::Elsewhere { conduit, sequence } => {
                return Ok((Item::Elsewhere { conduit, sequence }, ring::size(0, 0)));
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
        Ok((Item::Whole(received), ring::size(0, 0)))
    }

    fn meta(
        &mut self,
        entry: &Entry,
        header: &Header,
        head: &Head,
        length: usize,
        total: u64,
    ) -> Result<Arc<Meta>, Lost> {
        let wrong = |why: &str| Malformed::new("metadata", why.to_owned());
        if header.has_same_meta() {
            let (meta, length) = self
                .metas
                .get(&head.conduit)
                .ok_or_else(|| wrong("as before, but there were none"))?;
            // Most messages are as long as those before.
            if *length != total {
                meta.check(total)?;
            }
            return Ok(meta.clone());
        }
        let mut bytes = [0; INLINE];
        self.ring.copy(entry, 0, &mut bytes[..length])?;
        let meta = Arc::new(Meta::decode(&bytes[..length], total)?);
        self.metas.insert(head.conduit, (meta.clone(), total));
        Ok(meta)
    }

    /// What lies in a block; `None` if its segment is still on the way.
    fn view(&self, block: u64, total: u64) -> Result<Option<View>, Lost> {
        let (serial, block) = pool::split(block);
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
        let piece = Piece::new(&segment.region, start..start + total as usize);
        Ok(Some(View {
            piece,
            block,
            returns: self.returns.clone(),
        }))
    }
}

impl Segment {
    /// Maps what the peer has handed over. That takes its time, so nobody else is to wait for it.
    ///
    /// # Errors
    /// [`Lost`] if that is not what it says, or the system does not map it.
    pub(super) fn map(
        first: u64,
        size: u64,
        count: u64,
        file: Option<OwnedFd>,
    ) -> Result<Self, Lost> {
        let wrong = || {
            Malformed::new(
                "segment",
                format!("{count} blocks of {size} bytes from number {first}"),
            )
        };
        let (serial, first) = pool::split(first);
        let (size, count) = (size as usize, count as usize);
        let length = size
            .checked_mul(count)
            .filter(|length| *length > 0 && size.is_multiple_of(titin_wire::ALIGNMENT));
        let length = length
            .filter(|_| first < BLOCKS && count <= BLOCKS - first)
            .ok_or_else(wrong)?;
        // The system drops one that it has no room for.
        let file = file.ok_or_else(|| {
            let why = "its descriptor has not come: this process may have as many files open as it is allowed (`ulimit -n`)";
            Lost::NoMemory(format!("a segment of {length} bytes cannot be mapped: {why}"))
        })?;
        let region =
            Region::open(&file, length, Writers::Maker).map_err(|why| match why.kind() {
                std::io::ErrorKind::InvalidData => {
                    Malformed::new("segment", why.to_string()).into()
                }
                _ => Lost::NoMemory(format!(
                    "a segment of {length} bytes cannot be mapped: {why}"
                )),
            })?;
        Ok(Segment {
            serial,
            first,
            region: Arc::new(region),
            size,
            count,
        })
    }
}

impl Item {
    /// The conduit whose order it keeps. What tells the other end how far this one is has none.
    fn conduit(&self) -> Option<ConduitId> {
        match self {
            Item::Whole(Received::Message(Message { head, .. })) | Item::Placed { head, .. } => {
                Some(head.conduit)
            }
            Item::Elsewhere { conduit, .. } | Item::Whole(Received::Ended(conduit, _)) => {
                Some(*conduit)
            }
            Item::Whole(_) | Item::TakenBack => None,
        }
    }

    /// Its number, if it is a message.
    fn sequence(&self) -> Option<u64> {
        match self {
            Item::Whole(Received::Message(Message { head, .. })) | Item::Placed { head, .. } => {
                Some(head.sequence)
            }
            Item::Elsewhere { sequence, .. } => Some(*sequence),
            Item::Whole(_) | Item::TakenBack => None,
        }
    }

    /// Returns the block of a payload that nobody will have seen.
    fn give_back(&self, returns: &Returns) {
        if let Item::Placed { block, .. } = self
            && let (_, place @ ..BLOCKS) = pool::split(*block)
        {
            returns.add(place);
        }
    }

    /// From which message on it takes the place of those before it, as far as that is known yet.
    fn supersedes(&self) -> Option<u64> {
        match self {
            Item::Whole(Received::Message(Message { meta, .. })) | Item::Placed { meta, .. } => {
                meta.supersedes
            }
            _ => None,
        }
    }
}

fn placed(head: Head, meta: Arc<Meta>, view: View) -> Received {
    Received::Message(Message {
        head,
        meta,
        body: Arc::new(Buffer::viewing(view)),
    })
}

/// Whether metadata of an entry may be so long: they fill whole lines.
fn fits(meta: usize) -> bool {
    meta <= INLINE && meta.is_multiple_of(LINE)
}

impl Deref for View {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.piece
    }
}

impl Drop for View {
    fn drop(&mut self) {
        self.returns.add(self.block);
    }
}
