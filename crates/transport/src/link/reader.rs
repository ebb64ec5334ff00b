//! The parser of a link: bytes become messages. Long payloads are read straight into their buffers.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::IoSliceMut;
use std::sync::Arc;

use titin_wire::frame::{Frame, HEADER, Head, Header};
use titin_wire::meta::Meta;
use titin_wire::{ConduitId, Malformed};

use super::assembly::{ConduitOrder, OrderedItem, StripedMessage};
use super::received::Received;
use crate::buffer::Filling;
use crate::error::LinkError;
use crate::inbox::IncomingMessage;

/// Bytes of the first stream's buffer.
const SCRATCH: usize = 64 << 10;

/// The most bytes that are read ahead on the first stream after a large frame. Bytes of a payload
/// that are read ahead are copied once more. A read that fills this room doubles it, since then
/// small messages follow each other.
const SHORT_AHEAD: usize = 4 << 10;

/// The fewest bytes of payload of a large frame.
const LARGE: u64 = 64 << 10;

/// Bytes of a further stream's buffer. There is little but headers in it.
const FURTHER_SCRATCH: usize = 4 << 10;

/// Parses the bytes of one link. Knows no socket: the caller passes a function that reads.
pub struct FrameReader {
    streams: Vec<StreamParser>,
    /// Messages of the first stream of which some frames have arrived, without the message whose
    /// frame is under way.
    incomplete: HashMap<ConduitId, IncompleteMessage>,
    /// Incomplete messages over several streams.
    striped: HashMap<(ConduitId, u64), StripedMessage>,
    /// Messages and ends behind incomplete messages.
    order: ConduitOrder,
}

/// The parser of one stream.
struct StreamParser {
    scratch: Vec<u8>,
    start: usize,
    end: usize,
    /// The most bytes to read into `scratch` at a time.
    read_ahead_limit: usize,
    state: ParserState,
}

/// The meaning of a stream's next bytes.
enum ParserState {
    Header,
    Meta(DataFrame),
    Control {
        length: usize,
        body: Vec<u8>,
    },
    Body {
        message: IncompleteMessage,
        missing: usize,
    },
    Piece {
        message: (ConduitId, u64),
        offset: usize,
        missing: usize,
    },
}

/// What the header of a message's first frame says.
#[derive(Clone, Copy)]
struct DataFrame {
    head: Head,
    meta: usize,
    body: u64,
    total: u64,
}

/// An incomplete message of the first stream.
struct IncompleteMessage {
    head: Head,
    meta: Arc<Meta>,
    body: Filling,
    total: u64,
}

impl FrameReader {
    /// A reader for a stream; `first_bytes` came after the handshake.
    pub fn new(first_bytes: &[u8]) -> Self {
        FrameReader {
            streams: vec![StreamParser::new(first_bytes, SCRATCH)],
            incomplete: HashMap::new(),
            striped: HashMap::new(),
            order: ConduitOrder::default(),
        }
    }

    /// Adds a further stream; `first_bytes` came after the handshake.
    pub fn add_stream(&mut self, first_bytes: &[u8]) {
        let stream = StreamParser::new(first_bytes, FURTHER_SCRATCH);
        self.streams.push(stream);
    }

    /// The number of further streams.
    pub fn further_streams(&self) -> usize {
        self.streams.len() - 1
    }

    /// Reads once by means of `fill`, which puts bytes into the slices in their order and returns
    /// the number of bytes. Appends complete frames to `out`. Returns the number of bytes read, and
    /// whether all the room was filled; if so, more bytes may be there.
    ///
    /// # Errors
    /// [`LinkError`] as reported by `fill`, and for senseless bytes.
    pub fn read(
        &mut self,
        out: &mut Vec<Received>,
        fill: impl FnOnce(&mut [IoSliceMut<'_>]) -> Result<usize, LinkError>,
    ) -> Result<(usize, bool), LinkError> {
        self.read_stream(0, out, fill)
    }

    /// As [`FrameReader::read`], from the stream numbered `number`.
    ///
    /// # Errors
    /// As there.
    pub fn read_stream(
        &mut self,
        number: usize,
        out: &mut Vec<Received>,
        fill: impl FnOnce(&mut [IoSliceMut<'_>]) -> Result<usize, LinkError>,
    ) -> Result<(usize, bool), LinkError> {
        // Bytes that came after the handshake were never parsed.
        self.parse(number, out)?;
        let StreamParser {
            scratch,
            start,
            end,
            read_ahead_limit,
            state,
        } = &mut self.streams[number];
        // The parser leaves an incomplete header, or incomplete metadata; move the rest to the
        // beginning.
        scratch.copy_within(*start..*end, 0);
        *end -= *start;
        *start = 0;
        if *end == scratch.len() {
            scratch.resize(2 * *end, 0);
        }
        let most = scratch.len().min(*end + *read_ahead_limit);
        let spare = &mut scratch[*end..most];
        let (direct, behind) = read_targets(state, &mut self.striped, spare, number > 0);
        let (wanted, room) = (direct.len(), direct.len() + behind.len());
        let count = fill(&mut [IoSliceMut::new(direct), IoSliceMut::new(behind)])?;
        if wanted == 0 && count == room {
            *read_ahead_limit = (2 * *read_ahead_limit).min(SCRATCH);
        }
        *end += count.saturating_sub(wanted);
        if wanted > 0 {
            self.advance(number, count.min(wanted), out);
        }
        self.parse(number, out)?;
        Ok((count, count == room))
    }

    /// Parses the bytes in `scratch`, as far as they go.
    fn parse(&mut self, number: usize, out: &mut Vec<Received>) -> Result<(), LinkError> {
        loop {
            let StreamParser {
                scratch,
                start,
                end,
                state,
                ..
            } = &mut self.streams[number];
            let bytes = &scratch[*start..*end];
            match state {
                ParserState::Header if bytes.len() >= HEADER => {
                    let frame = Header::decode(bytes)?.frame()?;
                    *start += HEADER;
                    self.streams[number].state = self.begin(number, frame, out)?;
                }
                ParserState::Meta(frame) if bytes.len() >= frame.meta => {
                    let frame = *frame;
                    let meta = Meta::decode(&bytes[..frame.meta], frame.total)?;
                    *start += frame.meta;
                    self.begin_message(number, frame, Arc::new(meta), out)?;
                }
                ParserState::Control { length, body } => {
                    let count = bytes.len().min(*length - body.len());
                    body.extend_from_slice(&bytes[..count]);
                    *start += count;
                    if body.len() < *length {
                        return Ok(());
                    }
                    out.push(Received::Control(std::mem::take(body)));
                    *state = ParserState::Header;
                }
                ParserState::Body { message, missing } if !bytes.is_empty() => {
                    let count = bytes.len().min(*missing);
                    message.body.rest()[..count].copy_from_slice(&bytes[..count]);
                    *start += count;
                    self.advance(number, count, out);
                }
                ParserState::Piece {
                    message,
                    offset,
                    missing,
                } if !bytes.is_empty() => {
                    let count = bytes.len().min(*missing);
                    piece_room(&mut self.striped, message, *offset, count)
                        .copy_from_slice(&bytes[..count]);
                    *start += count;
                    self.advance(number, count, out);
                }
                _ => return Ok(()),
            }
        }
    }

    /// Begins a message whose metadata is parsed. The payload follows on this stream, or comes in
    /// pieces on the further streams.
    fn begin_message(
        &mut self,
        number: usize,
        frame: DataFrame,
        meta: Arc<Meta>,
        out: &mut Vec<Received>,
    ) -> Result<(), LinkError> {
        let DataFrame {
            head, body, total, ..
        } = frame;
        // The payload comes in pieces by further streams. This end may not have taken in those streams yet.
        if body == 0 && total > 0 {
            self.streams[number].state = ParserState::Header;
            return self.announce(head, meta, total, out);
        }
        let message = IncompleteMessage {
            head,
            meta,
            body: Filling::new(total)?,
            total,
        };
        let stream = &mut self.streams[number];
        if body >= LARGE {
            stream.read_ahead_limit = SHORT_AHEAD;
        }
        stream.state = ParserState::Body {
            message,
            missing: body as usize,
        };
        self.advance(number, 0, out);
        Ok(())
    }

    /// Begins a frame on the stream numbered `number`. Returns the meaning of the next bytes.
    fn begin(
        &mut self,
        number: usize,
        frame: Frame,
        out: &mut Vec<Received>,
    ) -> Result<ParserState, LinkError> {
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
                if self.incomplete.contains_key(&head.conduit) {
                    let why = format!(
                        "a message on conduit {} begins before the last one has ended",
                        head.conduit
                    );
                    return Err(Malformed::new("frame", why).into());
                }
                return Ok(ParserState::Meta(DataFrame {
                    head,
                    meta: meta as usize,
                    body,
                    total,
                }));
            }
            Frame::More {
                conduit,
                sequence,
                body,
                offset,
            } => {
                let follows = |message: &IncompleteMessage| {
                    message.head.sequence == sequence
                        && message.body.filled() as u64 == offset
                        && body > 0
                        && offset + body <= message.total
                };
                let Some(message) = self.incomplete.remove(&conduit).filter(follows) else {
                    let why = format!(
                        "{body} bytes at {offset} of message {sequence} on conduit {conduit} follow nothing"
                    );
                    return Err(Malformed::new("frame", why).into());
                };
                return Ok(ParserState::Body {
                    message,
                    missing: body as usize,
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
                return Ok(ParserState::Piece {
                    message,
                    offset: offset as usize,
                    missing: body as usize,
                });
            }
            Frame::Acknowledge { conduit, ack } => out.push(Received::Acknowledged(conduit, ack)),
            Frame::End { conduit, sequence } => {
                self.order.pass(conduit, OrderedItem::End(sequence), out)
            }
            Frame::Ask { conduit, sequence } => out.push(Received::Asked(conduit, sequence)),
            Frame::Segment { first, size, count } => {
                out.push(Received::Segment { first, size, count })
            }
            Frame::Withdrawn { first } => out.push(Received::Withdrawn(first)),
            Frame::Look => out.push(Received::Look),
            Frame::MoreStreams { count } => out.push(Received::MoreStreams(count)),
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
                // Room is made as the bytes come in: the length may be a lie.
                return Ok(ParserState::Control {
                    length: body as usize,
                    body: Vec::new(),
                });
            }
        }
        Ok(ParserState::Header)
    }

    /// A message over several streams, new or begun.
    fn striped(
        &mut self,
        message: (ConduitId, u64),
        total: u64,
    ) -> Result<&mut StripedMessage, LinkError> {
        let striped = match self.striped.entry(message) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert(StripedMessage::new(total)?),
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

    /// Takes the head of a message over several streams.
    fn announce(
        &mut self,
        head: Head,
        meta: Arc<Meta>,
        total: u64,
        out: &mut Vec<Received>,
    ) -> Result<(), LinkError> {
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

    /// Counts payload bytes of the frame under way. At the frame's end the message is handed on, or
    /// waits for the next frame.
    fn advance(&mut self, number: usize, count: usize, out: &mut Vec<Received>) {
        let state = &mut self.streams[number].state;
        match state {
            ParserState::Body { message, missing } => {
                message.body.advance(count);
                *missing -= count;
                if *missing > 0 {
                    return;
                }
            }
            ParserState::Piece {
                message,
                offset,
                missing,
            } => {
                let (message, striped) = (*message, self.striped.get_mut(message));
                *offset += count;
                *missing -= count;
                if *missing == 0 {
                    *state = ParserState::Header;
                }
                if striped.is_some_and(|striped| striped.arrived(count)) {
                    self.order.release(message.0, &mut self.striped, out);
                }
                return;
            }
            _ => return,
        }
        let ParserState::Body { message, .. } = std::mem::replace(state, ParserState::Header)
        else {
            return;
        };
        if (message.body.filled() as u64) < message.total {
            self.incomplete.insert(message.head.conduit, message);
            return;
        }
        let IncompleteMessage {
            head, meta, body, ..
        } = message;
        let message = IncomingMessage {
            head,
            meta,
            body: body.finish().into(),
        };
        self.order
            .pass(message.head.conduit, OrderedItem::Message(message), out);
    }
}

impl StreamParser {
    fn new(first_bytes: &[u8], room: usize) -> Self {
        let mut scratch = vec![0; room.max(first_bytes.len())];
        scratch[..first_bytes.len()].copy_from_slice(first_bytes);
        StreamParser {
            scratch,
            start: 0,
            end: first_bytes.len(),
            read_ahead_limit: SCRATCH,
            state: ParserState::Header,
        }
    }
}

/// Where a stream's next bytes go: into the buffer of the payload under way, and the bytes after the
/// payload into `spare`.
fn read_targets<'a>(
    state: &'a mut ParserState,
    striped: &'a mut HashMap<(ConduitId, u64), StripedMessage>,
    spare: &'a mut [u8],
    is_further: bool,
) -> (&'a mut [u8], &'a mut [u8]) {
    // After any frame but the message's last, the next bytes are most likely a header. Only that
    // header is read, so that the payload after the header goes straight into the buffer.
    let header = HEADER.min(spare.len());
    match state {
        ParserState::Body { message, missing } => {
            let is_last = message.body.filled() as u64 + *missing as u64 == message.total;
            let behind = if is_last { spare.len() } else { header };
            (&mut message.body.rest()[..*missing], &mut spare[..behind])
        }
        ParserState::Piece {
            message,
            offset,
            missing,
        } => (
            piece_room(striped, message, *offset, *missing),
            &mut spare[..header],
        ),
        _ if is_further => (&mut [], &mut spare[..header]),
        _ => (&mut [], spare),
    }
}

/// The memory for bytes of a piece.
fn piece_room<'a>(
    striped: &'a mut HashMap<(ConduitId, u64), StripedMessage>,
    message: &(ConduitId, u64),
    offset: usize,
    length: usize,
) -> &'a mut [u8] {
    striped
        .get_mut(message)
        .expect("it is there until it is whole")
        .room(offset, length)
}
