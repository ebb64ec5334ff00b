//! The reading side of a link: bytes become messages. Long payloads are read straight into their final place.

use std::collections::HashMap;
use std::io::IoSliceMut;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::io::Errno;
use titin_wire::frame::{Ack, Frame, HEADER, Head, Header};
use titin_wire::meta::Meta;
use titin_wire::{ConduitId, Malformed};

use crate::{Filling, Lost, Message};

const SCRATCH: usize = 64 << 10;

/// What came in.
#[derive(Debug)]
pub(crate) enum Received {
    Message(Message),
    Acknowledged(ConduitId, Ack),
    Ended(ConduitId, u64),
    Control(Vec<u8>),
}

/// A message whose pieces have not all arrived.
struct Assembly {
    head: Head,
    meta: Arc<Meta>,
    body: Filling,
    total: u64,
}

enum State {
    Header,
    Meta { head: Head, meta: usize, body: u64, total: u64 },
    Control { length: usize, body: Vec<u8> },
    Body { conduit: ConduitId, left: usize },
}

/// Turns the bytes of one link into what they say.
pub(crate) struct Reader {
    scratch: Vec<u8>,
    start: usize,
    end: usize,
    state: State,
    assemblies: HashMap<ConduitId, Assembly>,
}

impl Reader {
    /// A reader that begins with bytes that were read past the handshake.
    pub(crate) fn new(ahead: &[u8]) -> Self {
        let mut scratch = vec![0; SCRATCH.max(ahead.len())];
        scratch[..ahead.len()].copy_from_slice(ahead);
        Reader { scratch, start: 0, end: ahead.len(), state: State::Header, assemblies: HashMap::new() }
    }

    /// Reads once from the socket and appends what is complete; the number of bytes read, 0 if none are there.
    ///
    /// # Errors
    /// [`Lost`] at the end of the stream and for bytes that cannot be understood.
    pub(crate) fn read(&mut self, socket: &OwnedFd, out: &mut Vec<Received>) -> Result<usize, Lost> {
        self.parse(out)?;
        // After parsing, fewer bytes than a header and its metadata need are left; keep them at the beginning.
        self.scratch.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.end == self.scratch.len() {
            self.scratch.resize(2 * self.end, 0);
        }
        let direct = match &self.state {
            State::Body { conduit, left } => {
                let assembly = self.assemblies.get_mut(conduit).expect("a body has an assembly");
                &mut assembly.body.rest()[..*left]
            }
            _ => &mut [],
        };
        let wanted = direct.len();
        let mut slices = [IoSliceMut::new(direct), IoSliceMut::new(&mut self.scratch[self.end..])];
        let count = loop {
            match rustix::io::readv(socket, &mut slices) {
                Ok(0) => return Err(Lost::Closed),
                Ok(count) => break count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(0),
                Err(error) => return Err(error.into()),
            }
        };
        if wanted > 0 {
            self.advance(count.min(wanted), out)?;
        }
        self.end += count.saturating_sub(wanted);
        self.parse(out)?;
        Ok(count)
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
                    let (head, body, total) = (*head, *body, *total);
                    let assembly = Assembly { head, meta: fields, body: Filling::new(total)?, total };
                    if self.assemblies.insert(head.conduit, assembly).is_some() {
                        let why = format!(
                            "a message on conduit {} begins before the last one has ended",
                            head.conduit
                        );
                        return Err(Malformed::new("frame", why).into());
                    }
                    self.state = State::Body { conduit: head.conduit, left: body as usize };
                    self.advance(0, out)?;
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
                State::Body { conduit, left } => {
                    if bytes.is_empty() {
                        return Ok(());
                    }
                    let take = bytes.len().min(*left);
                    let assembly = self.assemblies.get_mut(conduit).expect("a body has an assembly");
                    assembly.body.rest()[..take].copy_from_slice(&bytes[..take]);
                    self.start += take;
                    self.advance(take, out)?;
                }
            }
        }
    }

    fn begin(&mut self, frame: Frame, out: &mut Vec<Received>) -> Result<(), Lost> {
        self.state = State::Header;
        match frame {
            Frame::Data { head, meta, body, total } => {
                self.state = State::Meta { head, meta: meta as usize, body, total };
            }
            Frame::More { conduit, sequence, body, offset } => {
                let follows = self.assemblies.get(&conduit).is_some_and(|assembly| {
                    assembly.head.sequence == sequence
                        && assembly.body.filled() as u64 == offset
                        && body > 0
                        && offset + body <= assembly.total
                });
                if !follows {
                    let why = format!(
                        "{body} bytes at {offset} of message {sequence} on conduit {conduit} follow nothing"
                    );
                    return Err(Malformed::new("frame", why).into());
                }
                self.state = State::Body { conduit, left: body as usize };
            }
            Frame::Acknowledge { conduit, ack } => out.push(Received::Acknowledged(conduit, ack)),
            Frame::End { conduit, sequence } => out.push(Received::Ended(conduit, sequence)),
            Frame::Control { body } => {
                // Room is made as the bytes come in, not as the length claims.
                self.state = State::Control { length: body as usize, body: Vec::new() };
            }
        }
        Ok(())
    }

    /// Counts bytes of the body under way, and hands the message on when it is whole.
    fn advance(&mut self, count: usize, out: &mut Vec<Received>) -> Result<(), Lost> {
        let State::Body { conduit, left } = &mut self.state else { return Ok(()) };
        let assembly = self.assemblies.get_mut(conduit).expect("a body has an assembly");
        assembly.body.advance(count);
        *left -= count;
        if *left > 0 {
            return Ok(());
        }
        if assembly.body.filled() as u64 == assembly.total {
            let Assembly { head, meta, body, .. } = self.assemblies.remove(conduit).expect("just found");
            out.push(Received::Message(Message { head, meta, body: Arc::new(body.finish()) }));
        }
        self.state = State::Header;
        Ok(())
    }
}
