//! The sending side of shared memory.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use titin_wire::ConduitId;
use titin_wire::frame::{Frame, Header};
use titin_wire::meta::Meta;

use super::pool;
use super::returns::Returns;
use super::ring::{LINE, Producer};
use super::{INLINE, REACTOR, Shared};
use crate::latch::Latched;
use crate::tcp::Link;
use crate::{Buffer, Lost, Outgoing, Sent};

/// What goes out by a ring.
///
/// The peer is told to **look**, by the socket, where nobody there might take in what we need it to: when the ring is full
/// (`stuck`, once: it tells us in turn when there is room); before a thread of ours sleeps, of what it is to act upon
/// (`urgent`), and at once of such where who put it in may sleep already (`overdue`); and with an entry for whom its reactor
/// alone can wake (`REACTOR`). All of that is done in [`Shared::wake`] and [`Shared::urge`].
pub(super) struct Outbound {
    ring: Producer,
    /// What the ring did not take, in its order.
    kept: VecDeque<Kept>,
    /// The metadata that were last sent on each conduit.
    metas: FxHashMap<ConduitId, Arc<Meta>>,
    /// The segments that the peer was handed: serial numbers, by the places of their first blocks.
    handed: FxHashMap<usize, u32>,
    /// The last message of each conduit whose messages take the place of those before them, if the ring took it.
    lasts: FxHashMap<ConduitId, Last>,
    /// Whether the peer was told to look since the ring is full, and has not made room yet.
    stuck: bool,
    /// Where in the ring the last entry ends that the peer is to act upon, though its program may be busy.
    urgent: u64,
    /// An entry of this kind was kept, and has gone in: whoever put it may sleep already, and cannot see to it.
    overdue: bool,
}

/// A message that a later one may take the place of.
struct Last {
    /// The first of those whose place it takes.
    first: u64,
    /// Where in the ring it ends.
    end: u64,
    /// Place of the block that it has, if it has one.
    block: Option<usize>,
}

/// An entry in memory of our own.
struct Kept {
    header: [u8; LINE],
    rest: Vec<u8>,
    meta: usize,
    urgent: bool,
}

impl Outbound {
    pub(super) fn new(ring: Producer) -> Self {
        Outbound {
            ring,
            kept: VecDeque::new(),
            metas: FxHashMap::default(),
            handed: FxHashMap::default(),
            lasts: FxHashMap::default(),
            stuck: false,
            urgent: 0,
            overdue: false,
        }
    }

    /// Puts an entry into the ring, or keeps it; how many bytes of the body were copied for that.
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
        self.kept.push_back(Kept {
            header,
            rest,
            meta: meta.len(),
            urgent,
        });
        copied
    }

    /// Puts in what was kept; true if nothing is left.
    #[inline(always)]
    fn flush(&mut self) -> bool {
        self.kept.is_empty() || self.flush_kept()
    }

    #[cold]
    fn flush_kept(&mut self) -> bool {
        while let Some(kept) = self.kept.front() {
            let (meta, body) = kept.rest.split_at(kept.meta);
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

    /// Takes out of what is kept the messages of a conduit from this number on: one follows that takes their place. Without
    /// that what a receiver leaves lying would grow without bound, since nothing holds up who sends such messages.
    fn supersede(&mut self, conduit: ConduitId, first: u64, returned: &Returns) {
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
                    // The peer never learns that it was given.
                    returned.add(pool::split(block).1);
                    false
                }
                _ => true,
            }
        });
        if self.kept.len() < before {
            // They may have had the metadata that others follow.
            self.metas.remove(&conduit);
        }
    }

    /// Whether the peer is to be told to look, since the ring is full. It tells us in turn when there is room.
    fn is_stuck(&mut self) -> bool {
        if self.kept.is_empty() {
            self.stuck = false;
            return false;
        }
        self.ring.want_room();
        let stuck = !self.flush();
        // Told once: it answers when there is room.
        stuck && !std::mem::replace(&mut self.stuck, stuck)
    }

    /// Behind a message, with the block at this place if it has one: takes the one before on its conduit back out of the ring,
    /// if this one takes its place and the peer has not read it yet. Otherwise each would keep its block, for a peer that
    /// stands still.
    #[inline(always)]
    fn gone_in(&mut self, message: &Outgoing<'_>, block: Option<usize>, returned: &Returns) {
        if message.meta.supersedes.is_some() || !self.lasts.is_empty() {
            self.take_back(message, block, returned);
        }
    }

    #[cold]
    fn take_back(&mut self, message: &Outgoing<'_>, block: Option<usize>, returned: &Returns) {
        let last = self.lasts.remove(&message.head.conduit);
        // What is kept is not there yet, and takes no place.
        let Some(first) = message.meta.supersedes.filter(|_| self.kept.is_empty()) else {
            return;
        };
        self.lasts.insert(
            message.head.conduit,
            Last {
                first,
                end: self.ring.tail(),
                block,
            },
        );
        // That one may be missed if whatever it let be missed may be.
        if let Some(Last {
            first: before,
            end,
            block: Some(block),
        }) = last
            && first <= before
            && self.ring.take_back(end)
        {
            returned.add(block);
        }
    }
}

/// How a message goes by the socket: [`Link::send_by_socket`], or so that nobody waits.
type BySocket = fn(&Link, &Outgoing<'_>) -> Result<Sent, Lost>;

impl Shared {
    /// Puts a message in; one without a block goes `by_socket`.
    #[inline(always)]
    pub(super) fn put(&self, message: &Outgoing<'_>, by_socket: BySocket) -> Result<Sent, Lost> {
        let (length, head) = (message.length() as usize, message.head);
        let mut sent = Sent::default();
        let mut outbound = self.outbound.lock();
        if let Some(first) = message.meta.supersedes {
            // What it takes the place of may have the memory that it needs.
            outbound.supersede(head.conduit, first, &self.returned);
        }
        let same = outbound.metas.get(&head.conduit) == Some(message.meta);
        let meta = if same {
            Vec::new()
        } else {
            message.meta.encode()
        };
        if meta.len() > INLINE {
            drop(outbound);
            return self.put_elsewhere(message, by_socket);
        }
        let mut placed = None;
        if length > INLINE {
            // To copy takes its time. Nobody else sends on this conduit meanwhile.
            drop(outbound);
            let Some(body) = self.place(message, &mut sent) else {
                let sent = self.put_elsewhere(message, by_socket);
                return sent.map(|sent| Sent {
                    by_socket: true,
                    ..sent
                });
            };
            // Counted before the entry shows, since the peer may return it at once.
            body.placed().expect("it was placed").give(&self.returned);
            placed = Some(body);
            outbound = self.outbound.lock();
        }
        if !same {
            outbound.metas.insert(head.conduit, message.meta.clone());
        }
        let (total, length) = (length as u64, meta.len() as u32);
        let mut unknown = None;
        let frame = match placed.as_ref().and_then(|body| body.placed()) {
            None => Frame::Data {
                head,
                meta: length,
                body: total,
                total,
            },
            Some(block) => {
                let segment = block.segment();
                if outbound.handed.insert(segment.first, segment.serial) != Some(segment.serial) {
                    unknown = Some(segment);
                }
                Frame::Placed {
                    head,
                    meta: length,
                    block: block.number(),
                    total,
                }
            }
        };
        let header = Header::from(&frame);
        let header = if same {
            header.with_same_meta()
        } else {
            header
        }
        .encode();
        let parts = match (&placed, message.meta.supersedes) {
            (None, _) => message.parts,
            (Some(_), None) => &[],
            // By this line it is taken, or taken back.
            (Some(_), Some(_)) => &[IoSlice::new(&[0; LINE])],
        };
        let copied = outbound.push(header, &meta, parts, false);
        sent.copied += if placed.is_none() { copied } else { 0 };
        let block = placed
            .as_ref()
            .and_then(|body| body.placed())
            .map(|block| block.place());
        outbound.gone_in(message, block, &self.returned);
        self.wake(outbound);
        if let Some(segment) = unknown {
            // The entry is put aside until it has come.
            self.hand_over(segment);
        }
        Ok(sent)
    }

    /// Puts a frame in that nothing follows.
    pub(super) fn put_frame(&self, frame: &Frame, urgent: bool) {
        let mut outbound = self.outbound.lock();
        outbound.push(Header::from(frame).encode(), &[], &[], urgent);
        self.wake(outbound);
    }

    /// Puts in what was kept, for the reactor.
    pub(super) fn flush(&self) {
        let mut outbound = self.outbound.lock();
        if !outbound.kept.is_empty() {
            // The peer has looked, and is to be told again of what has still no room.
            outbound.stuck = false;
            outbound.flush();
            self.wake(outbound);
        }
    }

    /// Has the peer act upon what it does not seem to have read, before this thread sleeps.
    pub(super) fn urge(&self) {
        let mut outbound = self.outbound.lock();
        let unread = outbound.urgent > 0 && outbound.ring.read() < outbound.urgent;
        if unread {
            outbound.urgent = 0;
        }
        drop(outbound);
        if unread {
            self.tell_to_look();
        }
    }

    /// Wakes those who sleep at the other end, and has its reactor look if it has to.
    #[inline(always)]
    fn wake(&self, mut outbound: Latched<'_, Outbound>) {
        let look = outbound.is_stuck() | std::mem::take(&mut outbound.overdue);
        let sleepers = outbound.ring.sleepers();
        drop(outbound);
        if sleepers != 0 {
            self.bells.ring(sleepers);
        }
        if look || sleepers & (1 << REACTOR) != 0 {
            self.tell_to_look();
        }
    }

    /// The message's payload in a block: the one where it lies, or a copy. `None` if there is none to be had.
    fn place(&self, message: &Outgoing<'_>, sent: &mut Sent) -> Option<Arc<Buffer>> {
        let ours = |body: &Buffer| body.placed().is_some_and(|block| block.is_of(&self.pool));
        if let Some(body) = message.copied().filter(|body| ours(body)) {
            return Some(body);
        }
        let body = Arc::new(Buffer::gather_in(&self.pool, message.parts)?);
        sent.copied += message.length();
        message.share(body.clone());
        Some(body)
    }

    /// Sends a message by the socket, and keeps its place in the ring.
    fn put_elsewhere(&self, message: &Outgoing<'_>, by_socket: BySocket) -> Result<Sent, Lost> {
        let link = self.link.upgrade().ok_or(Lost::Closed)?;
        let (conduit, sequence) = (message.head.conduit, message.head.sequence);
        let mut sent = by_socket(&link, message)?;
        // Both ends of the socket hold it for a while.
        sent.copied += message.length();
        let mut outbound = self.outbound.lock();
        let header = Header::from(&Frame::Elsewhere { conduit, sequence }).encode();
        outbound.push(header, &[], &[], false);
        outbound.gone_in(message, None, &self.returned);
        self.wake(outbound);
        Ok(sent)
    }

    fn hand_over(&self, segment: &Arc<pool::Segment>) {
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
