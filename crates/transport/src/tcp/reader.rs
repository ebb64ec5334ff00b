//! The reading side of a link: bytes become messages. Long payloads are read straight into their final place.

use std::collections::HashMap;
use std::io::IoSliceMut;
use std::sync::Arc;

use titin_wire::frame::{Ack, Frame, HEADER, Head, Header};
use titin_wire::meta::Meta;
use titin_wire::{ConduitId, Malformed};

use crate::{Filling, Lost, Message};

const SCRATCH: usize = 64 << 10;

/// What came in on a link.
#[derive(Debug)]
pub enum Received {
    /// A message.
    Message(Message),
    /// How far the receiver of a conduit of ours has come.
    Acknowledged(ConduitId, Ack),
    /// No message follows the first so many on a conduit.
    Ended(ConduitId, u64),
    /// The sender of a conduit waits for room for the message of that number.
    Asked(ConduitId, u64),
    /// A control message.
    Control(Vec<u8>),
    /// Between processes that share memory: a segment, whose descriptor has come as well.
    Segment {
        /// Number of its first slot.
        first: u64,
        /// Bytes of a slot.
        size: u64,
        /// How many slots.
        count: u64,
    },
    /// Between processes that share memory: something waits there.
    Look,
}

/// Turns the bytes of one link into what they say. Knows no socket: whoever reads gives it a function that does.
pub struct Reader {
    scratch: Vec<u8>,
    start: usize,
    end: usize,
    state: State,
    /// Messages of which some pieces have arrived, but for the one whose piece is under way.
    parted: HashMap<ConduitId, Assembly>,
}

enum State {
    Header,
    Meta { head: Head, meta: usize, body: u64, total: u64 },
    Control { length: usize, body: Vec<u8> },
    Body { assembly: Assembly, left: usize },
}

/// A message whose bytes have not all arrived.
struct Assembly {
    head: Head,
    meta: Arc<Meta>,
    body: Filling,
    total: u64,
}

impl Reader {
    /// A reader that begins with bytes that were read past the handshake.
    pub fn new(ahead: &[u8]) -> Self {
        let mut scratch = vec![0; SCRATCH.max(ahead.len())];
        scratch[..ahead.len()].copy_from_slice(ahead);
        Reader { scratch, start: 0, end: ahead.len(), state: State::Header, parted: HashMap::new() }
    }

    /// Reads once by means of `fill`, which puts bytes into the slices in their order and says how many, and appends
    /// what is complete to `out`. Gives the number of bytes read, and whether all the room that there was has been
    /// filled, so that more may be there.
    ///
    /// # Errors
    /// [`Lost`] as `fill` reports it, and for bytes that cannot be understood.
    pub fn read(
        &mut self,
        out: &mut Vec<Received>,
        fill: impl FnOnce(&mut [IoSliceMut<'_>]) -> Result<usize, Lost>,
    ) -> Result<(usize, bool), Lost> {
        // What came in behind the handshake was never parsed.
        self.parse(out)?;
        // After parsing, fewer bytes than a header or its metadata need are left; keep them at the beginning.
        self.scratch.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.end == self.scratch.len() {
            self.scratch.resize(2 * self.end, 0);
        }
        let spare = &mut self.scratch[self.end..];
        let (direct, ahead) = match &mut self.state {
            State::Body { assembly, left } => {
                // Behind a piece that is not the last comes the header of the next, most likely; its payload is to
                // go straight into its place as well.
                let last = assembly.body.filled() as u64 + *left as u64 == assembly.total;
                let ahead = if last { spare.len() } else { HEADER.min(spare.len()) };
                (&mut assembly.body.rest()[..*left], &mut spare[..ahead])
            }
            _ => (&mut [][..], spare),
        };
        let (wanted, room) = (direct.len(), direct.len() + ahead.len());
        let count = fill(&mut [IoSliceMut::new(direct), IoSliceMut::new(ahead)])?;
        if wanted > 0 {
            self.advance(count.min(wanted), out);
        }
        self.end += count.saturating_sub(wanted);
        self.parse(out)?;
        Ok((count, count == room))
    }

    fn parse(&mut self, out: &mut Vec<Received>) -> Result<(), Lost> {
        loop {
            let bytes = &self.scratch[self.start..self.end];
            match &mut self.state {
                State::Header => {
                    if bytes.len() < HEADER {
                        return Ok(());
                    }
                    let frame = Header::decode(bytes)?.frame()?;
                    self.start += HEADER;
                    self.begin(frame, out)?;
                }
                State::Meta { head, meta, body, total } => {
                    if bytes.len() < *meta {
                        return Ok(());
                    }
                    let fields = Arc::new(Meta::decode(&bytes[..*meta], *total)?);
                    self.start += *meta;
                    let (head, total) = (*head, *total);
                    let assembly = Assembly { head, meta: fields, body: Filling::new(total)?, total };
                    self.state = State::Body { assembly, left: *body as usize };
                    self.advance(0, out);
                }
                State::Control { length, body } => {
                    let take = bytes.len().min(*length - body.len());
                    body.extend_from_slice(&bytes[..take]);
                    self.start += take;
                    if body.len() < *length {
                        return Ok(());
                    }
                    out.push(Received::Control(std::mem::take(body)));
                    self.state = State::Header;
                }
                State::Body { assembly, left } => {
                    if bytes.is_empty() {
                        return Ok(());
                    }
                    let take = bytes.len().min(*left);
                    assembly.body.rest()[..take].copy_from_slice(&bytes[..take]);
                    self.start += take;
                    self.advance(take, out);
                }
            }
        }
    }

    fn begin(&mut self, frame: Frame, out: &mut Vec<Received>) -> Result<(), Lost> {
        self.state = State::Header;
        match frame {
            Frame::Data { head, meta, body, total } => {
                if self.parted.contains_key(&head.conduit) {
                    let why =
                        format!("a message on conduit {} begins before the last one has ended", head.conduit);
                    return Err(Malformed::new("frame", why).into());
                }
                self.state = State::Meta { head, meta: meta as usize, body, total };
            }
            Frame::More { conduit, sequence, body, offset } => {
                let follows = |assembly: &Assembly| {
                    assembly.head.sequence == sequence
                        && assembly.body.filled() as u64 == offset
                        && body > 0
                        && offset + body <= assembly.total
                };
                let Some(assembly) = self.parted.remove(&conduit).filter(follows) else {
                    let why = format!(
                        "{body} bytes at {offset} of message {sequence} on conduit {conduit} follow nothing"
                    );
                    return Err(Malformed::new("frame", why).into());
                };
                self.state = State::Body { assembly, left: body as usize };
            }
            Frame::Acknowledge { conduit, ack } => out.push(Received::Acknowledged(conduit, ack)),
            Frame::End { conduit, sequence } => out.push(Received::Ended(conduit, sequence)),
            Frame::Ask { conduit, sequence } => out.push(Received::Asked(conduit, sequence)),
            Frame::Segment { first, size, count } => out.push(Received::Segment { first, size, count }),
            Frame::Look => out.push(Received::Look),
            Frame::Placed { .. } | Frame::Elsewhere { .. } | Frame::Share { .. } | Frame::Shared => {
                return Err(Malformed::new("frame", format!("{frame:?} does not belong on a socket")).into());
            }
            Frame::Control { body } => {
                // Room is made as the bytes come in, not as the length claims.
                self.state = State::Control { length: body as usize, body: Vec::new() };
            }
        }
        Ok(())
    }

    /// Counts bytes of the piece under way. Once that is whole, the message is handed on, or laid by for its next one.
    fn advance(&mut self, count: usize, out: &mut Vec<Received>) {
        let State::Body { assembly, left } = &mut self.state else { return };
        assembly.body.advance(count);
        *left -= count;
        if *left > 0 {
            return;
        }
        let State::Body { assembly, .. } = std::mem::replace(&mut self.state, State::Header) else { return };
        if (assembly.body.filled() as u64) < assembly.total {
            self.parted.insert(assembly.head.conduit, assembly);
            return;
        }
        let Assembly { head, meta, body, .. } = assembly;
        out.push(Received::Message(Message { head, meta, body: Arc::new(body.finish()) }));
    }
}
