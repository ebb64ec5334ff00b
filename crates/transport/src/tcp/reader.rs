//! The reading side of a link: bytes become messages. Long payloads are read straight into their final place.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::IoSliceMut;
use std::sync::Arc;

use titin_wire::frame::{Ack, Frame, HEADER, Head, Header};
use titin_wire::meta::Meta;
use titin_wire::{ConduitId, Malformed};

use super::striped::{Order, Striped, Waiting};
use crate::{Filling, Lost, Message};

const SCRATCH: usize = 64 << 10;

/// Further streams bring little but headers that is not read straight into its place.
const FURTHER_SCRATCH: usize = 4 << 10;

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
        /// Number of its first block.
        first: u64,
        /// Bytes of a block.
        size: u64,
        /// How many blocks.
        count: u64,
    },
    /// The segment with this first block is used no more.
    Withdrawn(u64),
    /// Between processes that share memory: something waits there.
    Look,
}

/// Turns the bytes of one link into what they say. Knows no socket: whoever reads gives it a function that does.
pub struct Reader {
    streams: Vec<Stream>,
    /// Messages of which some pieces have arrived, but for the one whose piece is under way.
    parted: HashMap<ConduitId, Assembly>,
    /// Messages that come over several streams, of which not everything has arrived.
    striped: HashMap<(ConduitId, u64), Striped>,
    /// What has to wait for those of them that were sent before it.
    order: Order,
}

struct Stream {
    scratch: Vec<u8>,
    start: usize,
    end: usize,
    state: State,
}

enum State {
    Header,
    Meta {
        head: Head,
        meta: usize,
        body: u64,
        total: u64,
    },
    Control {
        length: usize,
        body: Vec<u8>,
    },
    Body {
        assembly: Assembly,
        left: usize,
    },
    Piece {
        message: (ConduitId, u64),
        at: usize,
        left: usize,
    },
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
        Reader::with_streams(ahead, &[])
    }

    /// A reader of a link with further streams, each of which begins with such bytes.
    pub fn with_streams(ahead: &[u8], further: &[Vec<u8>]) -> Self {
        let further = further
            .iter()
            .map(|ahead| Stream::new(ahead, FURTHER_SCRATCH));
        Reader {
            streams: std::iter::once(Stream::new(ahead, SCRATCH))
                .chain(further)
                .collect(),
            parted: HashMap::new(),
            striped: HashMap::new(),
            order: Order::default(),
        }
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
        self.read_stream(0, out, fill)
    }

    /// As [`Reader::read`], from the stream of this number.
    ///
    /// # Errors
    /// As there.
    pub fn read_stream(
        &mut self,
        number: usize,
        out: &mut Vec<Received>,
        fill: impl FnOnce(&mut [IoSliceMut<'_>]) -> Result<usize, Lost>,
    ) -> Result<(usize, bool), Lost> {
        // What came in behind the handshake was never parsed.
        self.parse(number, out)?;
        let Stream {
            scratch,
            start,
            end,
            state,
        } = &mut self.streams[number];
        // After parsing, fewer bytes than a header or its metadata need are left; keep them at the beginning.
        scratch.copy_within(*start..*end, 0);
        *end -= *start;
        *start = 0;
        if *end == scratch.len() {
            scratch.resize(2 * *end, 0);
        }
        let spare = &mut scratch[*end..];
        let header = HEADER.min(spare.len());
        let (direct, ahead) = match state {
            State::Body { assembly, left } => {
                // Behind a piece that is not the last comes the header of the next, most likely; its payload is to
                // go straight into its place as well.
                let last = assembly.body.filled() as u64 + *left as u64 == assembly.total;
                let ahead = if last { spare.len() } else { header };
                (&mut assembly.body.rest()[..*left], &mut spare[..ahead])
            }
            State::Piece { message, at, left } => {
                let striped = self
                    .striped
                    .get_mut(message)
                    .expect("it is there until it is whole");
                (striped.place(*at, *left), &mut spare[..header])
            }
            _ if number > 0 => (&mut [][..], &mut spare[..header]),
            _ => (&mut [][..], spare),
        };
        let (wanted, room) = (direct.len(), direct.len() + ahead.len());
        let count = fill(&mut [IoSliceMut::new(direct), IoSliceMut::new(ahead)])?;
        *end += count.saturating_sub(wanted);
        if wanted > 0 {
            self.advance(number, count.min(wanted), out);
        }
        self.parse(number, out)?;
        Ok((count, count == room))
    }

    fn parse(&mut self, number: usize, out: &mut Vec<Received>) -> Result<(), Lost> {
        loop {
            let Stream {
                scratch,
                start,
                end,
                state,
            } = &mut self.streams[number];
            let bytes = &scratch[*start..*end];
            match state {
                State::Header => {
                    if bytes.len() < HEADER {
                        return Ok(());
                    }
                    let frame = Header::decode(bytes)?.frame()?;
                    *start += HEADER;
                    self.streams[number].state = self.begin(number, frame, out)?;
                }
                State::Meta {
                    head,
                    meta,
                    body,
                    total,
                } => {
                    if bytes.len() < *meta {
                        return Ok(());
                    }
                    let fields = Arc::new(Meta::decode(&bytes[..*meta], *total)?);
                    *start += *meta;
                    let (head, body, total) = (*head, *body, *total);
                    if self.streams.len() > 1 && body == 0 && total > 0 {
                        self.streams[number].state = State::Header;
                        self.announce(head, fields, total, out)?;
                        continue;
                    }
                    let assembly = Assembly {
                        head,
                        meta: fields,
                        body: Filling::new(total)?,
                        total,
                    };
                    self.streams[number].state = State::Body {
                        assembly,
                        left: body as usize,
                    };
                    self.advance(number, 0, out);
                }
                State::Control { length, body } => {
                    let take = bytes.len().min(*length - body.len());
                    body.extend_from_slice(&bytes[..take]);
                    *start += take;
                    if body.len() < *length {
                        return Ok(());
                    }
                    out.push(Received::Control(std::mem::take(body)));
                    *state = State::Header;
                }
                State::Body { left, .. } | State::Piece { left, .. } => {
                    if bytes.is_empty() {
                        return Ok(());
                    }
                    let take = bytes.len().min(*left);
                    match state {
                        State::Body { assembly, .. } => {
                            assembly.body.rest()[..take].copy_from_slice(&bytes[..take]);
                        }
                        State::Piece { message, at, .. } => {
                            let striped = self
                                .striped
                                .get_mut(message)
                                .expect("it is there until it is whole");
                            striped.place(*at, take).copy_from_slice(&bytes[..take]);
                        }
                        _ => {}
                    }
                    *start += take;
                    self.advance(number, take, out);
                }
            }
        }
    }

    /// What a frame begins on the stream of this number.
    fn begin(
        &mut self,
        number: usize,
        frame: Frame,
        out: &mut Vec<Received>,
    ) -> Result<State, Lost> {
        if matches!(frame, Frame::Piece { .. }) != (number > 0) {
            let why = format!(
                "{frame:?} does not belong on stream {number} of {}",
                self.streams.len()
            );
            return Err(Malformed::new("frame", why).into());
        }
        match frame {
            Frame::Data {
                head,
                meta,
                body,
                total,
            } => {
                if self.parted.contains_key(&head.conduit) {
                    let why = format!(
                        "a message on conduit {} begins before the last one has ended",
                        head.conduit
                    );
                    return Err(Malformed::new("frame", why).into());
                }
                return Ok(State::Meta {
                    head,
                    meta: meta as usize,
                    body,
                    total,
                });
            }
            Frame::More {
                conduit,
                sequence,
                body,
                offset,
            } => {
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
                return Ok(State::Body {
                    assembly,
                    left: body as usize,
                });
            }
            Frame::Piece {
                conduit,
                sequence,
                body,
                offset,
                total,
            } => {
                let message = (conduit, sequence);
                self.striped(message, total)?
                    .claim(offset, body)
                    .map_err(|why| {
                        let why = format!("message {sequence} on conduit {conduit}: {why}");
                        Malformed::new("piece", why)
                    })?;
                return Ok(State::Piece {
                    message,
                    at: offset as usize,
                    left: body as usize,
                });
            }
            Frame::Acknowledge { conduit, ack } => out.push(Received::Acknowledged(conduit, ack)),
            Frame::End { conduit, sequence } => {
                self.order.pass(conduit, Waiting::End(sequence), out)
            }
            Frame::Ask { conduit, sequence } => out.push(Received::Asked(conduit, sequence)),
            Frame::Segment { first, size, count } => {
                out.push(Received::Segment { first, size, count })
            }
            Frame::Withdrawn { first } => out.push(Received::Withdrawn(first)),
            Frame::Look => out.push(Received::Look),
            Frame::Placed { .. }
            | Frame::Elsewhere { .. }
            | Frame::Share { .. }
            | Frame::Shared
            | Frame::Streams { .. }
            | Frame::Join { .. } => {
                return Err(Malformed::new(
                    "frame",
                    format!("{frame:?} does not belong on a socket"),
                )
                .into());
            }
            Frame::Control { body } => {
                // Room is made as the bytes come in, not as the length claims.
                return Ok(State::Control {
                    length: body as usize,
                    body: Vec::new(),
                });
            }
        }
        Ok(State::Header)
    }

    /// A message that comes over several streams: as far as it has arrived, or new.
    fn striped(&mut self, message: (ConduitId, u64), total: u64) -> Result<&mut Striped, Lost> {
        let striped = match self.striped.entry(message) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert(Striped::new(total)?),
        };
        if striped.total() == total {
            return Ok(striped);
        }
        let (conduit, sequence) = message;
        let why = format!(
            "message {sequence} on conduit {conduit} has {} bytes and {total}",
            striped.total()
        );
        Err(Malformed::new("piece", why).into())
    }

    /// Takes the head of a message in that comes over several streams.
    fn announce(
        &mut self,
        head: Head,
        meta: Arc<Meta>,
        total: u64,
        out: &mut Vec<Received>,
    ) -> Result<(), Lost> {
        let Head {
            conduit, sequence, ..
        } = head;
        if !self
            .striped((conduit, sequence), total)?
            .announce(head, meta)
        {
            let why = format!("number {sequence} on conduit {conduit} has begun before");
            return Err(Malformed::new("message", why).into());
        }
        self.order.expect(conduit, sequence);
        self.order.release(conduit, &mut self.striped, out);
        Ok(())
    }

    /// Counts bytes of the piece under way. Once that is whole, the message is handed on, or laid by for its next one.
    fn advance(&mut self, number: usize, count: usize, out: &mut Vec<Received>) {
        let state = &mut self.streams[number].state;
        match state {
            State::Body { assembly, left } => {
                assembly.body.advance(count);
                *left -= count;
                if *left > 0 {
                    return;
                }
            }
            State::Piece { message, at, left } => {
                let (message, striped) = (*message, self.striped.get_mut(message));
                *at += count;
                *left -= count;
                if *left == 0 {
                    *state = State::Header;
                }
                if striped.is_some_and(|striped| striped.arrived(count)) {
                    self.order.release(message.0, &mut self.striped, out);
                }
                return;
            }
            _ => return,
        }
        let State::Body { assembly, .. } = std::mem::replace(state, State::Header) else {
            return;
        };
        if (assembly.body.filled() as u64) < assembly.total {
            self.parted.insert(assembly.head.conduit, assembly);
            return;
        }
        let Assembly {
            head, meta, body, ..
        } = assembly;
        let message = Message {
            head,
            meta,
            body: Arc::new(body.finish()),
        };
        self.order
            .pass(message.head.conduit, Waiting::Message(message), out);
    }
}

impl Stream {
    fn new(ahead: &[u8], room: usize) -> Self {
        let mut scratch = vec![0; room.max(ahead.len())];
        scratch[..ahead.len()].copy_from_slice(ahead);
        Stream {
            scratch,
            start: 0,
            end: ahead.len(),
            state: State::Header,
        }
    }
}
