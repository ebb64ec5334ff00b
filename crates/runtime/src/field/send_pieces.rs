//! The pieces of a field are sent, from rank to rank.

use std::cell::OnceCell;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use titin_array::{Error as Unfit, SourceArray};
use titin_transport::{Filling, Medium};

use super::copy_plans::LinkCopyPlans;
use super::link::{AT_ONCE, FieldLink, copy_by, flat};
use super::send::{FieldSend, PiecesSent};
use super::{FieldLinks, FieldState, InstanceFields, refused};
use crate::message::Lent;
use crate::port::Outlet;
use crate::send_state::{PieceChunk, SendState};
use crate::serial::Serial;
use crate::{Error, Payload, Result};

/// How many bytes a sender runs ahead of a partner that keeps up, in shared memory.
const AHEAD: u64 = 2 * AT_ONCE;

/// About how many bytes a core copies in a microsecond.
const SPEED: u64 = 10_000;

impl InstanceFields {
    /// Sends the missing pieces, and keeps versions for receivers that pull.
    pub(super) fn send_pieces(
        &self,
        send: &FieldSend<'_>,
        state: &mut FieldState,
        sent: &mut PiecesSent,
    ) -> Result<()> {
        let links = self.links(send.field, state, None)?;
        let mut first = 0;
        for (place, (conduit, link)) in send.field.conduits.iter().zip(&*links).enumerate() {
            let Some(link) = link.as_ref().filter(|_| send.is_coupled(conduit)) else {
                continue;
            };
            let count = match conduit.is_pulled() {
                true => 1,
                false => link.schedule.count(),
            };
            while sent.pieces < first + count {
                if conduit.is_pulled() {
                    self.keep_version(send, conduit, link)?;
                } else {
                    let to = link.partner(sent.pieces - first);
                    let plans = &mut state.copy_plans[place];
                    PieceSend::new(&self.serial, send, link, to).send(plans, &mut sent.bytes)?;
                }
                sent.next_piece();
            }
            first += count;
        }
        self.end_exchange(send, &links);
        Ok(())
    }

    /// Counts the exchange, once all pieces are sent or kept.
    fn end_exchange(&self, send: &FieldSend<'_>, links: &FieldLinks) {
        for (conduit, link) in send.field.conduits.iter().zip(&**links) {
            match link {
                _ if !send.is_coupled(conduit) => {}
                // The receiver pulls, and left before this rank could open a link.
                None => self.pass_over(conduit),
                Some(_) if conduit.is_pulled() => {}
                Some(link) => {
                    link.exchanges.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }
}

/// The piece of a field that a partner gets.
pub(super) struct PieceSend<'a> {
    serial: &'a Serial,
    send: &'a FieldSend<'a>,
    link: &'a FieldLink,
    /// The place of the partner in the schedule.
    to: usize,
}

impl<'a> PieceSend<'a> {
    pub(super) fn new(
        serial: &'a Serial,
        send: &'a FieldSend<'a>,
        link: &'a FieldLink,
        to: usize,
    ) -> Self {
        PieceSend {
            serial,
            send,
            link,
            to,
        }
    }

    /// Sends the piece, from byte `done` on.
    fn send(&self, plans: &mut LinkCopyPlans, done: &mut u64) -> Result<()> {
        let known = plans.packed(self.link, self.to, self.send.arrays);
        if let Some(piece) = known.map_err(|error| self.refused(&error))? {
            if let Some(sent) = self.send_alike(piece) {
                return sent;
            }
            let shape = [piece.len() as u64];
            let payload = Payload::array(flat(&shape), piece);
            return self.send_chunk(&payload, Some(shape[0]));
        }
        match self.pack_known(plans)? {
            Some(packed) => {
                let room = Some(self.link.lengths[self.to]);
                self.send_chunk(&Payload::lent(&packed), room)
            }
            None => self.send_chunks(done),
        }
    }

    /// Sends a piece like the last piece for the partner by the short way.
    #[inline(always)]
    fn send_alike(&self, piece: &[u8]) -> Option<Result<()>> {
        let (link, times) = (self.link, self.send.times);
        let [outlet] = link.port.outlets[self.to].as_slice() else {
            return None;
        };
        let exchange = link.exchanges.load(Ordering::Relaxed);
        let port = link.port.try_enter()?;
        let state = &port.outlets[outlet.number];
        self.serial
            .send_piece_repeated(outlet, state, piece, exchange, times)
    }

    /// Sends a long piece in chunks: the partner unpacks a chunk from the shared cache while this
    /// rank packs the next chunk.
    fn send_chunks(&self, done: &mut u64) -> Result<()> {
        let PieceSend { send, link, to, .. } = *self;
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
                    let bytes = self.pack(*done..end, past_caches)?;
                    Payload::lent(packed.get_or_init(|| bytes))
                }
            };
            let room = (*done == 0).then_some(whole);
            self.send_chunk(&payload, room)?;
            *done = end;
            let unsent = whole - *done;
            waits_for_partner =
                waits_for_partner && outlets.iter().all(|one| self.keep_pace(one, unsent));
        }
        Ok(())
    }

    /// Sends a chunk. The first chunk claims `room` for all chunks.
    fn send_chunk(&self, payload: &Payload<'_>, room: Option<u64>) -> Result<()> {
        let link = self.link;
        let exchange = link.exchanges.load(Ordering::Relaxed);
        let chunk = PieceChunk { exchange, room };
        let mut sending = SendState::of(payload, self.send.times).chunk(chunk);
        let mut port = link.port.enter()?;
        let outlets = &link.port.outlets[self.to];
        self.serial
            .send_along_all(&link.port, outlets, &mut port, payload, &mut sending)
    }

    /// Packs the whole piece, if the plan is kept.
    fn pack_known(&self, plans: &mut LinkCopyPlans) -> Result<Option<Lent>> {
        if !plans.may_be_kept(self.to) {
            return Ok(None);
        }
        let length = self.link.lengths[self.to];
        let mut memory = self.loan_packed(length)?;
        let known = plans.pack(self.link, self.to, self.send.arrays, memory.rest());
        let known = known.map_err(|error| self.refused(&error))?;
        Ok(known.then(|| Lent::new(flat(&[length]).to_layout(), memory.finish())))
    }

    /// Packs a range of bytes of the piece in memory that peers can read.
    pub(super) fn pack(&self, bytes: Range<u64>, past_caches: bool) -> Result<Lent> {
        let length = bytes.end - bytes.start;
        let mut memory = self.loan_packed(length)?;
        let (copy, schedule) = (copy_by(past_caches), &self.link.schedule);
        schedule
            .pack_by(copy, self.to, self.send.arrays, bytes.start, memory.rest())
            .map_err(|error| self.refused(&error))?;
        Ok(Lent::new(flat(&[length]).to_layout(), memory.finish()))
    }

    fn loan_packed(&self, length: u64) -> Result<Filling> {
        let loan = self.serial.core.process.exchange.loan(length);
        loan.map_err(crate::filter::no_memory)
    }

    fn refused(&self, error: &Unfit) -> Error {
        refused(self.serial, &self.send.field.name, error)
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
