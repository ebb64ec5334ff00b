//! The pieces of a field are received, from rank to rank.

use std::collections::VecDeque;
use std::time::Instant;

use titin_array::TargetArray;
use titin_transport::IncomingMessage;
use titin_wire::meta::Content;

use super::copy_plans::LinkCopyPlans;
use super::link::{FieldLink, SHORT, copy_by};
use super::{Field, FieldState, InstanceFields, places, refused};
use crate::port::PortState;
use crate::serial::{Patience, ReceivedAtOnce, Serial};
use crate::{Error, Kind, Message, Result};

/// How far a receive has come. The memory stays for the next receive.
#[derive(Debug, Default)]
pub(super) struct ReceiveProgress {
    /// How many bytes of each partner's piece have come; empty before the first look.
    bytes: Vec<u64>,
    /// The partners whose pieces have not come as a whole.
    left: VecDeque<usize>,
    /// The last short piece, whose memory serves for the next.
    last_short: IncomingMessage,
}

impl ReceiveProgress {
    /// Begins a receive, unless one is under way.
    fn begin(&mut self, link: &FieldLink) {
        if self.bytes.is_empty() {
            let count = link.lengths.len();
            self.bytes.resize(count, 0);
            self.left.clear();
            self.left.extend((0..count).map(|turn| link.partner(turn)));
        }
    }

    /// Notes bytes of the partner at the front of the list.
    fn add(&mut self, link: &FieldLink, from: usize, bytes: u64) {
        self.bytes[from] += bytes;
        if self.bytes[from] >= link.lengths[from] {
            self.left.pop_front();
        }
    }

    /// The next receive begins anew.
    fn clear(&mut self) {
        self.bytes.clear();
    }

    fn has_some(&self) -> bool {
        self.bytes.iter().any(|bytes| *bytes > 0)
    }
}

/// A call that receives the pieces of an exchange.
struct FieldReceive<'a, 'm> {
    serial: &'a Serial,
    field: &'a Field,
    link: &'a FieldLink,
    plans: &'a mut LinkCopyPlans,
    /// The timestamp in the header.
    timestamp: f64,
    /// The number of the exchange.
    number: u64,
    /// `None` if the pieces are dropped.
    arrays: Option<&'a mut [TargetArray<'m>]>,
}

/// The whole piece of a partner, or a part of it.
struct Chunk<'a> {
    /// The number of the exchange.
    exchange: u32,
    timestamp: f64,
    bytes: &'a [u8],
}

impl<'a> Chunk<'a> {
    fn of(message: &'a Message) -> Self {
        Chunk {
            exchange: message.tag,
            timestamp: message.timestamp,
            bytes: message.bytes(),
        }
    }

    fn of_arrived(arrived: &'a IncomingMessage) -> Self {
        Chunk {
            exchange: arrived.head.tag,
            timestamp: arrived.head.timestamp,
            bytes: &arrived.body,
        }
    }
}

impl InstanceFields {
    /// Receives the missing pieces of an exchange, into the arrays if the caller gives arrays. An
    /// interruption, or the end of the time, is noted with the number of received bytes.
    pub(super) fn receive_pieces(
        &self,
        field: &Field,
        state: &mut FieldState,
        announced: (&Message, u64),
        mut arrays: Option<&mut [TargetArray<'_>]>,
        deadline: Option<Instant>,
    ) -> Result<()> {
        // Ranks would time out at different moments, so in a parallel program only the wait for the
        // header at rank 0 has a deadline.
        let deadline = deadline.filter(|_| self.group.is_none());
        let received = self.receive_left(field, state, announced, arrays.as_deref_mut(), deadline);
        state.into = None;
        let Err(mut error) = received else {
            state.received.clear();
            return Ok(());
        };
        if error.is_unfinished() || error.kind == Kind::Timeout {
            let some = arrays.as_deref().filter(|_| state.received.has_some());
            state.into = some.map(places);
            state.receiving = Some(announced.0.clone());
        } else {
            state.received.clear();
        }
        if error.kind == Kind::Timeout {
            error.text = format!(
                "{}: field on port '{}': not all of it has come in the time given: make the call again, with the same arrays",
                self.serial.core.name, field.name
            );
        }
        Err(error)
    }

    /// Receives the pieces that are left. Chunks are taken as they come, from any partner.
    fn receive_left(
        &self,
        field: &Field,
        state: &mut FieldState,
        (header, number): (&Message, u64),
        arrays: Option<&mut [TargetArray<'_>]>,
        deadline: Option<Instant>,
    ) -> Result<()> {
        let links = self.links(field, state, deadline)?;
        let Some(Some(link)) = links.first() else {
            return Ok(());
        };
        let FieldState {
            received,
            copy_plans,
            ..
        } = state;
        let mut receive = FieldReceive {
            serial: &self.serial,
            field,
            link,
            plans: &mut copy_plans[0],
            timestamp: header.timestamp,
            number,
            arrays,
        };
        if matches!(header.content(), Content::Array(_)) {
            check_joined(field, link, header)?;
            return receive.unpack((0, 0), header.bytes());
        }
        received.begin(link);
        let mut port = link.port.enter()?;
        loop {
            receive.take_short(&mut port, received)?;
            let Some((from, chunk)) =
                self.await_chunk(link, &mut port, &mut received.left, deadline)?
            else {
                return Ok(());
            };
            receive.take(received, from, &Chunk::of(&chunk))?;
        }
    }

    /// The next chunk from any of the partners that are `left`. The partner comes to the front of
    /// the list. `None` if the list is empty.
    fn await_chunk(
        &self,
        link: &FieldLink,
        port: &mut PortState,
        left: &mut VecDeque<usize>,
        deadline: Option<Instant>,
    ) -> Result<Option<(usize, Message)>> {
        let Some(&first) = left.front() else {
            return Ok(None);
        };
        if left.len() == 1 {
            let patience = Patience::until(deadline);
            let state = &mut port.inlets[first];
            let message = self.serial.await_at(&link.port, first, state, patience)?;
            return Ok(Some((first, message)));
        }
        let (turn, message) =
            self.serial
                .await_any_at(&link.port, left, &mut port.inlets, deadline)?;
        left.rotate_left(turn);
        Ok(Some((left[0], message)))
    }
}

impl FieldReceive<'_, '_> {
    /// Looks once for the piece of each partner that is left, if the piece is short. A partner whose piece
    /// is not there goes to the end of the list. The last partner alone is waited for, a moment.
    fn take_short(&mut self, port: &mut PortState, progress: &mut ReceiveProgress) -> Result<()> {
        let mut message = std::mem::take(&mut progress.last_short);
        for _ in 0..progress.left.len() {
            let from = progress.left[0];
            let waits = progress.left.len() == 1;
            let (ends, state) = (&self.link.port, &mut port.inlets[from]);
            let serial = self.serial;
            let taken = match self.link.lengths[from] <= SHORT {
                true => serial.receive_piece_repeated(ends, from, state, waits, &mut message),
                false => None,
            };
            match taken.transpose()? {
                None => progress.left.rotate_left(1),
                Some(ReceivedAtOnce::InPlace) => {
                    self.take(progress, from, &Chunk::of_arrived(&message))?;
                }
                Some(ReceivedAtOnce::Other(chunk)) => {
                    self.take(progress, from, &Chunk::of(&chunk))?;
                }
            }
        }
        message.body.keep_if_small();
        progress.last_short = message;
        Ok(())
    }

    /// Takes a chunk of the partner at the front of the list.
    fn take(
        &mut self,
        progress: &mut ReceiveProgress,
        from: usize,
        chunk: &Chunk<'_>,
    ) -> Result<()> {
        self.check(from, chunk)?;
        self.unpack((from, progress.bytes[from]), chunk.bytes)?;
        progress.add(self.link, from, chunk.bytes.len() as u64);
        Ok(())
    }

    /// Unpacks a chunk of a partner's piece, of which `done` bytes have come before, into the arrays
    /// if the caller gives arrays.
    fn unpack(&mut self, (from, done): (usize, u64), bytes: &[u8]) -> Result<()> {
        let (serial, link, name) = (self.serial, self.link, &self.field.name);
        let unfit = |error| refused(serial, name, &error);
        let Some(arrays) = self.arrays.as_deref_mut() else {
            return Ok(());
        };
        let is_whole = bytes.len() as u64 == link.lengths[from] && done == 0;
        if is_whole
            && self
                .plans
                .unpack(link, from, bytes, arrays)
                .map_err(unfit)?
        {
            return Ok(());
        }
        let copy = copy_by(link.past_caches);
        let unpacked = link.schedule.unpack_by(copy, from, done, bytes, arrays);
        unpacked.map_err(unfit)
    }

    /// Fails unless a chunk is of the announced exchange.
    fn check(&self, from: usize, chunk: &Chunk<'_>) -> Result<()> {
        let (number, name) = (self.number, &self.field.name);
        if chunk.exchange != number as u32 {
            let text = format!(
                "field on port '{name}': piece {} has come where {number} was to come: were ordinary messages sent on the \
                 port, too? Give the field a port of its own",
                chunk.exchange
            );
            return Err(Error::new(Kind::Usage, text));
        }
        if chunk.timestamp == self.timestamp {
            return Ok(());
        }
        let text = format!(
            "field on port '{name}': {} has sent its part of time {}, where rank 0 has sent that of time {}: all \
             ranks send the same times, and a call that fails on one of them may not be passed over",
            self.link.partner_name(from),
            chunk.timestamp,
            self.timestamp
        );
        Err(Error::new(Kind::CallOrder, text))
    }
}

/// Fails unless the piece in a header's message is the whole field.
fn check_joined(field: &Field, link: &FieldLink, header: &Message) -> Result<()> {
    let length = header.bytes().len() as u64;
    if *link.lengths == [length] {
        return Ok(());
    }
    let text = format!(
        "field on port '{}': {} has sent {length} bytes in one message, where the field has pieces of {:?} bytes: no call of \
         titin sends such data, so look for what overwrites memory in that program",
        field.name, link.peer, link.lengths
    );
    Err(Error::new(Kind::TypeMismatch, text))
}
