//! The pieces of a field are sent, from rank to rank.

use std::cell::OnceCell;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use titin_array::{CopyBytes, SourceArray};
use titin_transport::{Filling, Medium, copy, copy_past_caches};

use super::copy_plans::LinkCopyPlans;
use super::link::{AT_ONCE, FieldLink, flat};
use super::send::FieldSend;
use super::{InstanceFields, refused};
use crate::message::Lent;
use crate::port::Outlet;
use crate::send_state::{PieceChunk, SendState};
use crate::{Payload, Result};

/// How many bytes a sender runs ahead of a partner that keeps up, in shared memory.
const AHEAD: u64 = 2 * AT_ONCE;

/// About how many bytes a core copies in a microsecond.
const SPEED: u64 = 10_000;

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
            if let Some(sent) = self.send_short(send, link, to, piece) {
                return sent;
            }
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

    /// Sends a short piece like the last piece for the partner by the short way.
    #[inline(always)]
    fn send_short(
        &self,
        send: &FieldSend<'_>,
        link: &FieldLink,
        to: usize,
        piece: &[u8],
    ) -> Option<Result<()>> {
        let [outlet] = link.port.outlets[to].as_slice() else {
            return None;
        };
        let exchange = link.exchanges.load(Ordering::Relaxed);
        let mut port = link.port.try_enter()?;
        let state = &mut port.outlets[outlet.number];
        self.serial
            .send_piece_repeated(outlet, state, piece, exchange, send.times)
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

pub(super) fn copy_by(past_caches: bool) -> CopyBytes {
    if past_caches { copy_past_caches } else { copy }
}
