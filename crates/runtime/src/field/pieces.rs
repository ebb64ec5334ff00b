//! The pieces of a field, from rank to rank.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use titin_array::{CopyBytes, SourceArray, TargetArray};
use titin_transport::{Medium, copy, copy_past_caches};
use titin_wire::meta::{Dtype, Layout, Order, Shape};

use super::places;
use super::{Field, Line, State, refused};
use crate::instance::{Inner, Part, Patience, Sending};
use crate::message::Lent;
use crate::port::{Outlet, PortState};
use crate::{Error, Kind, Message, Payload, Result};

/// So many bytes of a piece go at once: far less than a cache holds, and enough that what a message costs is nothing beside it.
pub(super) const AT_ONCE: u64 = 512 << 10;

/// A sender runs so many bytes ahead of a partner that takes what comes, in the memory that both share.
const AHEAD: u64 = 2 * AT_ONCE;

/// A core copies about so many bytes in a microsecond.
const SPEED: u64 = 10_000;

/// How many bytes of each partner's piece have come; empty before the first.
#[derive(Debug, Clone, Default)]
pub(super) struct Come(Vec<u64>);

/// How far a call has come.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Done {
    pub(super) pieces: usize,
    /// Of the next piece.
    pub(super) bytes: u64,
}

impl Inner {
    /// Sends what a partner is to get, from byte `done` on: a large piece in parts, so that the partner unpacks one, which is still
    /// in the cache that both share, while the next one is packed.
    pub(super) fn send_piece(
        &self,
        field: &Field,
        line: &Line,
        to: usize,
        arrays: &[SourceArray<'_>],
        stamps: (f64, Option<f64>),
        done: &mut u64,
    ) -> Result<()> {
        let sizes = || arrays.iter().map(|array| array.size);
        let whole = line.schedule.bytes(to, sizes());
        let in_place = match arrays {
            [one] => line
                .schedule
                .in_place(to, one.local, one.size)
                .and_then(|range| one.memory.get(range)),
            _ => None,
        };
        let mut port = line.port.enter()?;
        let exchange = line.exchanges.load(Ordering::Relaxed);
        let outlets = &line.port.outlets[to];
        let shared = |outlet: &Outlet| {
            outlet
                .end
                .carrier
                .get()
                .is_some_and(|carrier| carrier.medium() == Medium::Shm)
        };
        let shared = outlets.iter().all(shared);
        // A partner that has not yet taken what it was sent before is not about to take this.
        let mut paced = shared
            && outlets
                .iter()
                .all(|outlet| outlet.window.ahead().1 <= AT_ONCE);
        while *done < whole {
            let end = match *done + AT_ONCE {
                // No part is much smaller than the others.
                end if end + AT_ONCE / 2 < whole => line.schedule.end_of_element(to, sizes(), end),
                _ => whole,
            };
            let (layout, packed);
            // What the partner does not take at once does not stay in a cache until then.
            let past_caches = shared && !paced && line.past_caches;
            let payload = match in_place.filter(|_| !past_caches) {
                Some(bytes) => {
                    layout = flat(end - *done);
                    Payload::array(&layout, &bytes[*done as usize..end as usize])
                }
                None => {
                    packed = self.pack(field, line, to, arrays, *done..end, past_caches)?;
                    Payload::lent(&packed)
                }
            };
            let part = Part {
                exchange,
                room: (*done == 0).then_some(whole),
            };
            let mut sending = Sending::of(&payload, stamps).part(part);
            self.send_along_all(&line.port, outlets, &mut port, &payload, &mut sending)?;
            *done = end;
            paced = paced
                && outlets
                    .iter()
                    .all(|outlet| self.keep_pace(outlet, whole - *done));
        }
        Ok(())
    }

    /// These bytes of what a partner is to get, one element after the other, where peers can read them.
    pub(super) fn pack(
        &self,
        field: &Field,
        line: &Line,
        to: usize,
        arrays: &[SourceArray<'_>],
        bytes: Range<u64>,
        past_caches: bool,
    ) -> Result<Lent> {
        let length = bytes.end - bytes.start;
        let mut memory = self
            .process
            .exchange
            .loan(length)
            .map_err(crate::filter::no_memory)?;
        let packing =
            line.schedule
                .pack_by(copy_by(past_caches), to, arrays, bytes.start, memory.rest());
        packing.map_err(|error| refused(self, &field.name, &error))?;
        Ok(Lent::new(flat(length), memory.finish()))
    }

    /// Waits for a partner that is behind with what it was sent, so that what it unpacks next is still in a cache that both share.
    /// False once the wait has taken as long as copying the rest of the piece takes: the partner does not receive now, and the
    /// sender goes on without it.
    fn keep_pace(&self, outlet: &Outlet, unsent: u64) -> bool {
        let Some(carrier) = outlet.end.carrier.get() else {
            return false;
        };
        // The first part has claimed room for all of the piece.
        let keeps_up =
            || outlet.window.ahead().1 <= AHEAD.saturating_add(unsent) || outlet.window.closed();
        let mut deadline = None;
        loop {
            let rings = self.bell.rings();
            if keeps_up() {
                return true;
            }
            let now = Instant::now();
            let deadline = *deadline.get_or_insert(now + Duration::from_micros(unsent / SPEED));
            if now >= deadline {
                return false;
            }
            self.bell.wait(rings, Some(deadline - now), &[&**carrier]);
        }
    }

    /// Receives the pieces with this number that have not come yet, into these arrays if there are any; parts are taken as they
    /// come, from whichever partner. If it is interrupted, or has not all when its time is over, it notes how many have come.
    pub(super) fn receive_pieces(
        self: &Arc<Self>,
        field: &Field,
        state: &mut State,
        (header, number): (&Message, u64),
        mut come: Come,
        mut arrays: Option<&mut [TargetArray<'_>]>,
        deadline: Option<Instant>,
    ) -> Result<()> {
        // Ranks would not agree on whose time is over: together they have one for what rank 0 receives.
        let deadline = deadline.filter(|_| self.ranks.is_none());
        let mut receive = |state: &mut State, come: &mut Come| -> Result<()> {
            let lines = self.lines(field, state, deadline)?;
            let Some(Some(line)) = lines.first() else {
                return Ok(());
            };
            let sizes = || field.dtypes.iter().map(|dtype| dtype.size());
            come.0.resize(line.schedule.count(), 0);
            let partners = (0..line.schedule.count()).map(|turn| line.partner(turn));
            let mut left: VecDeque<usize> = partners
                .filter(|from| come.0[*from] < line.schedule.bytes(*from, sizes()))
                .collect();
            let copy = copy_by(line.past_caches);
            let mut port = line.port.enter()?;
            while let Some((from, message)) =
                self.await_part(line, &mut port, &mut left, deadline)?
            {
                if message.tag != number as u32 {
                    let text = format!(
                        "field on port '{}': piece {} has come where {number} was to come: were ordinary messages sent on the \
                         port, too? Give the field a port of its own",
                        field.name, message.tag
                    );
                    return Err(Error::new(Kind::Usage, text));
                }
                if message.timestamp != header.timestamp {
                    let text = format!(
                        "field on port '{}': {} has sent its part of time {}, where rank 0 has sent that of time {}: all \
                         ranks send the same times, and a call that fails on one of them may not be passed over",
                        field.name,
                        line.partner_name(from),
                        message.timestamp,
                        header.timestamp
                    );
                    return Err(Error::new(Kind::CallOrder, text));
                }
                if let Some(arrays) = arrays.as_deref_mut() {
                    let unpacked =
                        line.schedule
                            .unpack_by(copy, from, come.0[from], message.bytes(), arrays);
                    unpacked.map_err(|error| refused(self, &field.name, &error))?;
                }
                come.0[from] += message.bytes().len() as u64;
                if come.0[from] >= line.schedule.bytes(from, sizes()) {
                    left.pop_front();
                }
            }
            Ok(())
        };
        let received = receive(state, &mut come).map_err(|error| match error.kind {
            Kind::Timeout => {
                let text = format!(
                    "{}: field on port '{}': not all of it has come in the time given: make the call again, with the same arrays",
                    self.name, field.name
                );
                Error::new(Kind::Timeout, text)
            }
            _ => error,
        });
        state.into = None;
        let goes_on = |error: &Error| error.is_unfinished() || error.kind == Kind::Timeout;
        if received.as_ref().is_err_and(goes_on) {
            state.into = arrays
                .as_deref()
                .filter(|_| come.0.iter().any(|bytes| *bytes > 0))
                .map(places);
            state.receiving = Some((header.clone(), come));
        }
        received
    }

    /// The next part that comes from one of the partners that are `left`, which is put at its front; none if none is left.
    fn await_part(
        &self,
        line: &Line,
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
                self.await_at(&line.port, first, &mut port.inlets[first], patience)?,
            )));
        }
        let (turn, message) = self.await_any_at(&line.port, left, &mut port.inlets, deadline)?;
        left.rotate_left(turn);
        Ok(Some((left[0], message)))
    }
}

fn copy_by(past_caches: bool) -> CopyBytes {
    if past_caches { copy_past_caches } else { copy }
}

/// So many bytes.
fn flat(length: u64) -> Layout {
    Layout {
        dtype: Dtype::UInt8,
        order: Order::C,
        shape: Shape::from_slice(&[length]),
        names: Vec::new(),
    }
}
