//! The receiving side of a channel.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, Deref};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use titin_wire::frame::{Frame, Head, Header};
use titin_wire::meta::Meta;
use titin_wire::{ConduitId, Malformed};

use super::INLINE;
use super::memory::{Piece, Region, Writers};
use super::pool::{self, SLOTS};
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
    /// The peer's segments, by the places of their first slots.
    segments: BTreeMap<usize, Segment>,
    /// What came by the socket, and whose turn in the ring is still to come.
    elsewhere: FxHashMap<(ConduitId, u64), Message>,
    /// Numbers of the last messages that took the place of others. The sender has taken the entries of those out of what it
    /// kept, though the socket may still bring them.
    latest: FxHashMap<ConduitId, u64>,
    stalled: bool,
}

/// Memory of several slots of the peer's.
struct Segment {
    serial: u32,
    region: Arc<Region>,
    size: usize,
    count: usize,
}

/// A payload that lies in a slot of the peer's, which gets it back when this goes.
#[derive(Debug)]
pub(crate) struct View {
    piece: Piece,
    slot: usize,
    returns: Arc<Returns>,
}

/// What became of the oldest entry.
enum Next {
    /// It says this, and takes so many bytes of the ring.
    Entry(Received, usize),
    /// It keeps the place of a message that will not come, since a later one takes its place.
    Superseded(usize),
    /// Something that comes by the socket has to be waited for.
    Stalled,
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
            stalled: false,
        }
    }

    /// How far it has come, for those who only look.
    pub(super) fn shown(&self) -> &Arc<Shown> {
        self.ring.shown()
    }

    /// Whether the next entry has to wait for what comes by the socket.
    pub(super) fn is_stalled(&self) -> bool {
        self.stalled
    }

    /// A message has come by the socket.
    pub(super) fn elsewhere(&mut self, message: Message) {
        let Head { conduit, sequence, .. } = message.head;
        if self.latest.get(&conduit).is_some_and(|latest| sequence < *latest) {
            return;
        }
        self.elsewhere.insert((conduit, sequence), message);
    }

    /// Maps a segment that the peer has handed over.
    pub(super) fn map(
        &mut self,
        first: u64,
        size: u64,
        count: u64,
        file: Option<OwnedFd>,
    ) -> Result<(), Lost> {
        let wrong =
            || Malformed::new("segment", format!("{count} slots of {size} bytes from number {first}"));
        let (serial, first) = pool::split(first);
        let (size, count) = (size as usize, count as usize);
        let length = size
            .checked_mul(count)
            .filter(|length| *length > 0 && size.is_multiple_of(titin_wire::ALIGNMENT));
        let length = length.filter(|_| first < SLOTS && count <= SLOTS - first).ok_or_else(wrong)?;
        let file = file.ok_or_else(|| Malformed::new("segment", "its descriptor is missing"))?;
        let region = Region::open(&file, length, Writers::Maker)
            .map_err(|why| Lost::NoMemory(format!("a segment of {length} bytes cannot be mapped: {why}")))?;
        // What had these places has been withdrawn, though it may still have to be told.
        self.segments.retain(|other, segment| other + segment.count <= first || first + count <= *other);
        self.segments.insert(first, Segment { serial, region: Arc::new(region), size, count });
        Ok(())
    }

    /// Lets go of a segment that the peer has withdrawn.
    pub(super) fn unmap(&mut self, first: u64) {
        let (serial, first) = pool::split(first);
        if self.segments.get(&first).is_some_and(|segment| segment.serial == serial) {
            self.segments.remove(&first);
        }
    }

    /// Hands on what the ring holds, all of it or until `sink` says that it is enough. True if the peer is to be told that
    /// there is room.
    pub(super) fn take_in(
        &mut self,
        mut sink: impl FnMut(Received) -> Result<ControlFlow<()>, Lost>,
    ) -> Result<bool, Lost> {
        let mut room = false;
        self.stalled = false;
        while let Some(entry) = self.ring.peek() {
            match self.read(&entry)? {
                Next::Entry(received, size) => {
                    room |= self.ring.pop(size)?;
                    if let Received::Message(message) = &received {
                        self.supersede(message);
                    }
                    if sink(received)?.is_break() {
                        break;
                    }
                }
                Next::Superseded(size) => room |= self.ring.pop(size)?,
                Next::Stalled => {
                    self.stalled = true;
                    break;
                }
            }
        }
        Ok(room)
    }

    /// Forgets what this message takes the place of.
    fn supersede(&mut self, message: &Message) {
        let Some(first) = message.meta.supersedes else { return };
        let Head { conduit, sequence: latest, .. } = message.head;
        self.latest.insert(conduit, latest);
        self.elsewhere.retain(|(of, sequence), _| *of != conduit || *sequence < first || *sequence > latest);
    }

    #[inline(always)]
    fn read(&mut self, entry: &Entry) -> Result<Next, Lost> {
        let header = Header::decode(&entry.header)?;
        let received = match header.frame()? {
            Frame::Data { head, meta, body, total } => {
                let (meta_length, body_length) = (meta as usize, body as usize);
                if !fits(meta_length) || body_length > INLINE || body != total {
                    return Err(Malformed::new("ring", "an entry of lengths that no entry has").into());
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
                return Ok(Next::Entry(Received::Message(message), ring::size(meta_length, body_length)));
            }
            Frame::Placed { head, meta, slot, total } => {
                let Some(view) = self.view(slot, total)? else { return Ok(Next::Stalled) };
                let length = meta as usize;
                if !fits(length) {
                    return Err(Malformed::new("ring", "metadata of a length that no entry has").into());
                }
                let meta = self.meta(entry, &header, &head, length, total)?;
                let message = Message { head, meta, body: Arc::new(Buffer::viewing(view)) };
                return Ok(Next::Entry(Received::Message(message), ring::size(length, 0)));
            }
            Frame::Elsewhere { conduit, sequence } => match self.elsewhere.remove(&(conduit, sequence)) {
                Some(message) => Received::Message(message),
                // The socket keeps the order of a conduit: it has left this one out for a later one.
                None if self.elsewhere.keys().any(|(of, later)| *of == conduit && *later > sequence) => {
                    return Ok(Next::Superseded(ring::size(0, 0)));
                }
                None => return Ok(Next::Stalled),
            },
            Frame::Acknowledge { conduit, ack } => Received::Acknowledged(conduit, ack),
            Frame::End { conduit, sequence } => Received::Ended(conduit, sequence),
            Frame::Ask { conduit, sequence } => Received::Asked(conduit, sequence),
            other => return Err(Malformed::new("ring", format!("{other:?} does not belong there")).into()),
        };
        Ok(Next::Entry(received, ring::size(0, 0)))
    }

    #[inline(always)]
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
            let (meta, length) =
                self.metas.get(&head.conduit).ok_or_else(|| wrong("as before, but there were none"))?;
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

    /// What lies in a slot; `None` if its segment is still on the way.
    fn view(&self, slot: u64, total: u64) -> Result<Option<View>, Lost> {
        let (serial, slot) = pool::split(slot);
        let Some((first, segment)) = self.segments.range(..=slot).next_back() else { return Ok(None) };
        let index = slot - first;
        if index >= segment.count || segment.serial != serial {
            return Ok(None);
        }
        if total > segment.size as u64 {
            let why = format!("{total} bytes in a slot of {}", segment.size);
            return Err(Malformed::new("placed message", why).into());
        }
        let start = index * segment.size;
        let piece = Piece::new(&segment.region, start..start + total as usize);
        Ok(Some(View { piece, slot, returns: self.returns.clone() }))
    }
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
        self.returns.add(self.slot);
    }
}
