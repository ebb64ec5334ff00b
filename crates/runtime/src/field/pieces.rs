//! The pieces of a field, from rank to rank.

use std::cell::OnceCell;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use titin_array::{CopyBytes, SourceArray, TargetArray};
use titin_transport::{Filling, Medium, copy, copy_past_caches};
use titin_wire::meta::Content;

use super::copy_plans::LinkCopyPlans;
use super::link::{AT_ONCE, FieldLink, flat};
use super::places;
use super::send::FieldSend;
use super::{Field, FieldState, InstanceFields, refused};
use crate::message::Lent;
use crate::port::{Outlet, PortState};
use crate::send_state::{PieceChunk, SendState};
use crate::serial::Patience;
use crate::{Error, Kind, Message, Payload, Result};

/// How many bytes a sender runs ahead of a partner that keeps up, in shared memory.
const AHEAD: u64 = 2 * AT_ONCE;

/// About how many bytes a core copies in a microsecond.
const SPEED: u64 = 10_000;

/// How far a receive has come. The memory stays for the next receive.
#[derive(Debug, Default)]
pub(super) struct PiecesReceived {
    /// How many bytes of each partner's piece have come; empty before the first look.
    bytes: Vec<u64>,
    /// The partners whose pieces have not come as a whole.
    left: VecDeque<usize>,
}

impl PiecesReceived {
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

impl InstanceFields {
    /// Sends the piece of a partner, from byte `done` on.
    pub(super) fn send_piece(
        &self,
        send: &FieldSend<'_>,
        link: &FieldLink,
        plans: &mut LinkCopyPlans,
        to: usize,
        done: &mut u64,
    ) -> Result<()> {
        let unfit = |error| refused(&self.serial, &send.field.name, &error);
        if let Some(piece) = plans.packed(link, to, send.arrays).map_err(unfit)? {
            let shape = [piece.len() as u64];
            let payload = Payload::array(flat(&shape), piece);
            return self.send_chunk(send, link, to, &payload, Some(shape[0]));
        }
        match self.pack_known(send, link, plans, to)? {
            Some(packed) => {
                let room = Some(link.lengths[to]);
                self.send_chunk(send, link, to, &Payload::lent(&packed), room)
            }
            None => self.send_chunks(send, link, to, done),
        }
    }

    /// Sends a long piece in chunks: the partner unpacks a chunk from the shared cache while this
    /// rank packs the next chunk.
    fn send_chunks(
        &self,
        send: &FieldSend<'_>,
        link: &FieldLink,
        to: usize,
        done: &mut u64,
    ) -> Result<()> {
        let whole = link.lengths[to];
        let in_place = in_place(link, to, send.arrays);
        let outlets = &link.port.outlets[to];
        let shared = outlets.iter().all(is_shared);
        // A partner does not keep up if more than one chunk waits for the partner.
        let is_behind = |outlet: &Outlet| outlet.window.ahead().1 > AT_ONCE;
        let mut waits_for_partner = shared && !outlets.iter().any(is_behind);
        while *done < whole {
            let end = end_of_chunk(link, to, send.arrays, *done);
            // A chunk for a partner that is behind would not stay in a cache.
            let past_caches = shared && !waits_for_partner && link.past_caches;
            let (shape, packed) = ([end - *done], OnceCell::new());
            let payload = match in_place.filter(|_| !past_caches) {
                Some(bytes) => Payload::array(flat(&shape), &bytes[*done as usize..end as usize]),
                None => {
                    let bytes = self.pack(send, link, to, *done..end, past_caches)?;
                    Payload::lent(packed.get_or_init(|| bytes))
                }
            };
            let room = (*done == 0).then_some(whole);
            self.send_chunk(send, link, to, &payload, room)?;
            *done = end;
            let unsent = whole - *done;
            waits_for_partner =
                waits_for_partner && outlets.iter().all(|one| self.keep_pace(one, unsent));
        }
        Ok(())
    }

    /// Sends a chunk of a partner's piece. The first chunk claims `room` for all chunks.
    fn send_chunk(
        &self,
        send: &FieldSend<'_>,
        link: &FieldLink,
        to: usize,
        payload: &Payload<'_>,
        room: Option<u64>,
    ) -> Result<()> {
        let exchange = link.exchanges.load(Ordering::Relaxed);
        let chunk = PieceChunk { exchange, room };
        let mut sending = SendState::of(payload, send.times).chunk(chunk);
        let mut port = link.port.enter()?;
        let outlets = &link.port.outlets[to];
        self.serial
            .send_along_all(&link.port, outlets, &mut port, payload, &mut sending)
    }

    /// Packs a whole piece, if the plan is kept.
    fn pack_known(
        &self,
        send: &FieldSend<'_>,
        link: &FieldLink,
        plans: &mut LinkCopyPlans,
        to: usize,
    ) -> Result<Option<Lent>> {
        if !plans.may_be_kept(to) {
            return Ok(None);
        }
        let length = link.lengths[to];
        let mut memory = self.loan_packed(length)?;
        let known = plans.pack(link, to, send.arrays, memory.rest());
        let known = known.map_err(|error| refused(&self.serial, &send.field.name, &error))?;
        Ok(known.then(|| Lent::new(flat(&[length]).to_layout(), memory.finish())))
    }

    /// Packs a range of bytes of a partner's piece in memory that peers can read.
    pub(super) fn pack(
        &self,
        send: &FieldSend<'_>,
        link: &FieldLink,
        to: usize,
        bytes: Range<u64>,
        past_caches: bool,
    ) -> Result<Lent> {
        let length = bytes.end - bytes.start;
        let mut memory = self.loan_packed(length)?;
        let copy = copy_by(past_caches);
        let packing = link
            .schedule
            .pack_by(copy, to, send.arrays, bytes.start, memory.rest());
        packing.map_err(|error| refused(&self.serial, &send.field.name, &error))?;
        Ok(Lent::new(flat(&[length]).to_layout(), memory.finish()))
    }

    fn loan_packed(&self, length: u64) -> Result<Filling> {
        let loan = self.serial.core.process.exchange.loan(length);
        loan.map_err(crate::filter::no_memory)
    }

    /// Waits for a partner that is behind, so that the partner finds the next chunk in a shared
    /// cache. False once the wait has taken as long as a copy of the rest of the piece takes: the
    /// partner does not receive now, and the sender goes on.
    fn keep_pace(&self, outlet: &Outlet, unsent: u64) -> bool {
        let Some(carrier) = outlet.end.carrier.get() else {
            return false;
        };
        // The first chunk has claimed room for the whole piece.
        let keeps_up =
            || outlet.window.ahead().1 <= AHEAD.saturating_add(unsent) || outlet.window.closed();
        let mut deadline = None;
        loop {
            let rings = self.serial.core.bell.rings();
            if keeps_up() {
                return true;
            }
            let now = Instant::now();
            let deadline = *deadline.get_or_insert(now + Duration::from_micros(unsent / SPEED));
            if now >= deadline {
                return false;
            }
            self.serial
                .core
                .bell
                .wait(rings, Some(deadline - now), &[&**carrier]);
        }
    }

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
        mut arrays: Option<&mut [TargetArray<'_>]>,
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
        let plans = &mut copy_plans[0];
        if matches!(header.content(), Content::Array(_)) {
            check_joined(field, link, header)?;
            return self.unpack(field, link, plans, (0, 0), header, arrays);
        }
        received.begin(link);
        let mut port = link.port.enter()?;
        while let Some((from, chunk)) =
            self.await_chunk(link, &mut port, &mut received.left, deadline)?
        {
            check_chunk(field, link, from, &chunk, (header, number))?;
            let done = received.bytes[from];
            self.unpack(
                field,
                link,
                plans,
                (from, done),
                &chunk,
                arrays.as_deref_mut(),
            )?;
            received.add(link, from, chunk.bytes().len() as u64);
        }
        Ok(())
    }

    /// Unpacks a chunk of a partner's piece, of which `done` bytes have come before, into the arrays
    /// if the caller gives arrays.
    fn unpack(
        &self,
        field: &Field,
        link: &FieldLink,
        plans: &mut LinkCopyPlans,
        (from, done): (usize, u64),
        chunk: &Message,
        arrays: Option<&mut [TargetArray<'_>]>,
    ) -> Result<()> {
        let (bytes, unfit) = (chunk.bytes(), |error| {
            refused(&self.serial, &field.name, &error)
        });
        let Some(arrays) = arrays else {
            return Ok(());
        };
        if bytes.len() as u64 == link.lengths[from]
            && done == 0
            && plans.unpack(link, from, bytes, arrays).map_err(unfit)?
        {
            return Ok(());
        }
        let copy = copy_by(link.past_caches);
        let unpacked = link.schedule.unpack_by(copy, from, done, bytes, arrays);
        unpacked.map_err(unfit)
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
            return Ok(Some((
                first,
                self.serial
                    .await_at(&link.port, first, &mut port.inlets[first], patience)?,
            )));
        }
        let (turn, message) =
            self.serial
                .await_any_at(&link.port, left, &mut port.inlets, deadline)?;
        left.rotate_left(turn);
        Ok(Some((left[0], message)))
    }
}

/// Fails unless a chunk is of the announced exchange.
fn check_chunk(
    field: &Field,
    link: &FieldLink,
    from: usize,
    chunk: &Message,
    (header, number): (&Message, u64),
) -> Result<()> {
    if chunk.tag != number as u32 {
        let text = format!(
            "field on port '{}': piece {} has come where {number} was to come: were ordinary messages sent on the \
             port, too? Give the field a port of its own",
            field.name, chunk.tag
        );
        return Err(Error::new(Kind::Usage, text));
    }
    if chunk.timestamp == header.timestamp {
        return Ok(());
    }
    let text = format!(
        "field on port '{}': {} has sent its part of time {}, where rank 0 has sent that of time {}: all \
         ranks send the same times, and a call that fails on one of them may not be passed over",
        field.name,
        link.partner_name(from),
        chunk.timestamp,
        header.timestamp
    );
    Err(Error::new(Kind::CallOrder, text))
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

/// The bytes of the only array that are equal to a partner's piece.
fn in_place<'a>(link: &FieldLink, to: usize, arrays: &[SourceArray<'a>]) -> Option<&'a [u8]> {
    let [one] = arrays else { return None };
    let range = link.schedule.in_place(to, one.local, one.size)?;
    one.memory.get(range)
}

/// The end of the chunk of a partner's piece that begins at byte `begin`.
fn end_of_chunk(link: &FieldLink, to: usize, arrays: &[SourceArray<'_>], begin: u64) -> u64 {
    let (whole, end) = (link.lengths[to], begin + AT_ONCE);
    // No chunk is much smaller than the others.
    if end + AT_ONCE / 2 >= whole {
        return whole;
    }
    let sizes = arrays.iter().map(|array| array.size);
    link.schedule.end_of_element(to, sizes, end)
}

fn is_shared(outlet: &Outlet) -> bool {
    let carrier = outlet.end.carrier.get();
    carrier.is_some_and(|carrier| carrier.medium() == Medium::Shm)
}

fn copy_by(past_caches: bool) -> CopyBytes {
    if past_caches { copy_past_caches } else { copy }
}
