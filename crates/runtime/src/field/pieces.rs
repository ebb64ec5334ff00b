//! The pieces of a field, from rank to rank.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use titin_array::{CopyBytes, SourceArray, TargetArray};
use titin_transport::{Medium, copy, copy_past_caches};
use titin_wire::meta::{Dtype, Layout, Shape, StorageOrder};

use super::link::FieldLink;
use super::places;
use super::{Field, FieldState, InstanceFields, refused};
use crate::message::Lent;
use crate::port::{Outlet, PortState};
use crate::send_state::{PieceChunk, SendState, Timestamps};
use crate::serial::Patience;
use crate::{Error, Kind, Message, Payload, Result};

/// The bytes of a chunk: far less than a cache holds, and enough to make the cost of a message
/// unimportant.
pub(super) const AT_ONCE: u64 = 512 << 10;

/// How many bytes a sender runs ahead of a partner that keeps up, in shared memory.
const AHEAD: u64 = 2 * AT_ONCE;

/// A core copies about so many bytes in a microsecond.
const SPEED: u64 = 10_000;

/// How many bytes of each partner's piece have come; empty before the first.
#[derive(Debug, Clone, Default)]
pub(super) struct PiecesReceived(Vec<u64>);

/// How far a call has come.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PiecesSent {
    pub(super) pieces: usize,
    /// Of the next piece.
    pub(super) bytes: u64,
}

impl PiecesSent {
    /// The next piece begins.
    pub(super) fn next_piece(&mut self) {
        *self = PiecesSent {
            pieces: self.pieces + 1,
            bytes: 0,
        };
    }
}

impl InstanceFields {
    /// Sends the piece of a partner, from byte `done` on. A large piece goes in chunks: the partner
    /// unpacks a chunk from the shared cache while this rank packs the next chunk.
    pub(super) fn send_piece(
        &self,
        field: &Field,
        link: &FieldLink,
        to: usize,
        arrays: &[SourceArray<'_>],
        stamps: Timestamps,
        done: &mut u64,
    ) -> Result<()> {
        let sizes = || arrays.iter().map(|array| array.size);
        let whole = link.schedule.bytes(to, sizes());
        let in_place = match arrays {
            [one] => link
                .schedule
                .in_place(to, one.local, one.size)
                .and_then(|range| one.memory.get(range)),
            _ => None,
        };
        let mut port = link.port.enter()?;
        let exchange = link.exchanges.load(Ordering::Relaxed);
        let outlets = &link.port.outlets[to];
        let shared = |outlet: &Outlet| {
            outlet
                .end
                .carrier
                .get()
                .is_some_and(|carrier| carrier.medium() == Medium::Shm)
        };
        let shared = outlets.iter().all(shared);
        // A partner does not keep up if more than one chunk waits for the partner.
        let mut paced = shared
            && outlets
                .iter()
                .all(|outlet| outlet.window.ahead().1 <= AT_ONCE);
        while *done < whole {
            let end = match *done + AT_ONCE {
                // No chunk is much smaller than the others.
                end if end + AT_ONCE / 2 < whole => link.schedule.end_of_element(to, sizes(), end),
                _ => whole,
            };
            let (layout, packed);
            // A chunk for a partner that is behind would not stay in a cache.
            let past_caches = shared && !paced && link.past_caches;
            let payload = match in_place.filter(|_| !past_caches) {
                Some(bytes) => {
                    layout = flat(end - *done);
                    Payload::array(&layout, &bytes[*done as usize..end as usize])
                }
                None => {
                    packed = self.pack(field, link, to, arrays, *done..end, past_caches)?;
                    Payload::lent(&packed)
                }
            };
            let chunk = PieceChunk {
                exchange,
                room: (*done == 0).then_some(whole),
            };
            let mut sending = SendState::of(&payload, stamps).chunk(chunk);
            self.serial
                .send_along_all(&link.port, outlets, &mut port, &payload, &mut sending)?;
            *done = end;
            paced = paced
                && outlets
                    .iter()
                    .all(|outlet| self.keep_pace(outlet, whole - *done));
        }
        Ok(())
    }

    /// Packs a range of bytes of a partner's piece in memory that peers can read.
    pub(super) fn pack(
        &self,
        field: &Field,
        link: &FieldLink,
        to: usize,
        arrays: &[SourceArray<'_>],
        bytes: Range<u64>,
        past_caches: bool,
    ) -> Result<Lent> {
        let length = bytes.end - bytes.start;
        let mut memory = self
            .serial
            .core
            .process
            .exchange
            .loan(length)
            .map_err(crate::filter::no_memory)?;
        let packing =
            link.schedule
                .pack_by(copy_by(past_caches), to, arrays, bytes.start, memory.rest());
        packing.map_err(|error| refused(&self.serial, &field.name, &error))?;
        Ok(Lent::new(flat(length), memory.finish()))
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

    /// Receives the missing pieces of an exchange, into the arrays if the caller gives arrays.
    /// Chunks are taken as they come, from any partner. An interruption, or the end of the time, is
    /// noted with the number of received bytes.
    pub(super) fn receive_pieces(
        &self,
        field: &Field,
        state: &mut FieldState,
        (header, number): (&Message, u64),
        mut come: PiecesReceived,
        mut arrays: Option<&mut [TargetArray<'_>]>,
        deadline: Option<Instant>,
    ) -> Result<()> {
        // Ranks would not agree on the rank whose time is over, so the deadline of a group holds
        // for the header at rank 0 alone.
        let deadline = deadline.filter(|_| self.group.is_none());
        let mut receive = |state: &mut FieldState, come: &mut PiecesReceived| -> Result<()> {
            let links = self.links(field, state, deadline)?;
            let Some(Some(link)) = links.first() else {
                return Ok(());
            };
            let sizes = || field.dtypes.iter().map(|dtype| dtype.size());
            come.0.resize(link.schedule.count(), 0);
            let partners = (0..link.schedule.count()).map(|turn| link.partner(turn));
            let mut left: VecDeque<usize> = partners
                .filter(|from| come.0[*from] < link.schedule.bytes(*from, sizes()))
                .collect();
            let copy = copy_by(link.past_caches);
            let mut port = link.port.enter()?;
            while let Some((from, message)) =
                self.await_part(link, &mut port, &mut left, deadline)?
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
                        link.partner_name(from),
                        message.timestamp,
                        header.timestamp
                    );
                    return Err(Error::new(Kind::CallOrder, text));
                }
                if let Some(arrays) = arrays.as_deref_mut() {
                    let unpacked =
                        link.schedule
                            .unpack_by(copy, from, come.0[from], message.bytes(), arrays);
                    unpacked.map_err(|error| refused(&self.serial, &field.name, &error))?;
                }
                come.0[from] += message.bytes().len() as u64;
                if come.0[from] >= link.schedule.bytes(from, sizes()) {
                    left.pop_front();
                }
            }
            Ok(())
        };
        let received = receive(state, &mut come).map_err(|error| match error.kind {
            Kind::Timeout => {
                let text = format!(
                    "{}: field on port '{}': not all of it has come in the time given: make the call again, with the same arrays",
                    self.serial.core.name, field.name
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

    /// The next chunk from any of the partners that are `left`. The partner comes to the front of
    /// the list. `None` if the list is empty.
    fn await_part(
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

fn copy_by(past_caches: bool) -> CopyBytes {
    if past_caches { copy_past_caches } else { copy }
}

/// So many bytes.
fn flat(length: u64) -> Layout {
    Layout {
        dtype: Dtype::UInt8,
        order: StorageOrder::C,
        shape: Shape::from_slice(&[length]),
        names: Vec::new(),
    }
}
