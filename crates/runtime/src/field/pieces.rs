//! The pieces of a field, from rank to rank.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use titin_array::{Source, Target};
use titin_wire::meta::{Dtype, Layout, Order, Shape};

use super::places;
use super::{Field, Line, State, refused};
use crate::instance::{Inner, Part, Sending};
use crate::message::Lent;
use crate::{Error, Kind, Message, Payload, Result};

/// So many bytes of a piece go at once: far less than a cache holds, and enough that what a message costs is nothing beside it.
const AT_ONCE: u64 = 512 << 10;

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
        arrays: &[Source<'_>],
        stamps: (f64, Option<f64>),
        done: &mut u64,
    ) -> Result<()> {
        let sizes = || arrays.iter().map(|array| array.size);
        let whole = line.schedule.bytes(to, sizes());
        let in_place = match arrays {
            [one] => line.schedule.in_place(to, one.local, one.size).and_then(|range| one.memory.get(range)),
            _ => None,
        };
        let mut port = line.port.enter()?;
        let exchange = line.exchanges.load(Ordering::Relaxed);
        while *done < whole {
            let end = match *done + AT_ONCE {
                // No part is much smaller than the others.
                end if end + AT_ONCE / 2 < whole => line.schedule.end_of_element(to, sizes(), end),
                _ => whole,
            };
            let (layout, packed);
            let payload = match in_place {
                Some(bytes) => {
                    layout = flat(end - *done);
                    Payload::array(&layout, &bytes[*done as usize..end as usize])
                }
                None => {
                    packed = self.pack(field, line, to, arrays, *done..end)?;
                    Payload::lent(&packed)
                }
            };
            let part = Part { exchange, room: (*done == 0).then_some(whole) };
            let mut sending = Sending::of(&payload, stamps).part(part);
            self.send_along_all(&line.port, &line.port.outlets[to], &mut port, &payload, &mut sending)?;
            *done = end;
        }
        Ok(())
    }

    /// These bytes of what a partner is to get, one element after the other, where peers can read them.
    pub(super) fn pack(
        &self,
        field: &Field,
        line: &Line,
        to: usize,
        arrays: &[Source<'_>],
        bytes: Range<u64>,
    ) -> Result<Lent> {
        let length = bytes.end - bytes.start;
        let mut memory = self.process.exchange.loan(length).map_err(crate::filter::no_memory)?;
        let packing = line.schedule.pack(to, arrays, bytes.start, memory.rest());
        packing.map_err(|error| refused(self, &field.name, &error))?;
        Ok(Lent::new(flat(length), memory.finish()))
    }

    /// Receives the pieces with this number that have not come yet, into these arrays if there are any. If it is interrupted it
    /// notes how many have come.
    pub(super) fn receive_pieces(
        self: &Arc<Self>,
        field: &Field,
        state: &mut State,
        (header, number): (&Message, u64),
        mut done: Done,
        mut arrays: Option<&mut [Target<'_>]>,
    ) -> Result<()> {
        let mut receive = |state: &mut State, done: &mut Done| -> Result<()> {
            let lines = self.lines(field, state)?;
            let Some(Some(line)) = lines.first() else { return Ok(()) };
            let mut port = line.port.enter()?;
            while done.pieces < line.schedule.count() {
                let from = line.partner(done.pieces);
                let message = self.await_at(&line.port, from, &mut port.inlets[from])?;
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
                    let unpacked = line.schedule.unpack(from, done.bytes, message.bytes(), arrays);
                    unpacked.map_err(|error| refused(self, &field.name, &error))?;
                }
                done.bytes += message.bytes().len() as u64;
                if done.bytes >= line.schedule.bytes(from, field.dtypes.iter().map(|dtype| dtype.size())) {
                    *done = Done { pieces: done.pieces + 1, bytes: 0 };
                }
            }
            Ok(())
        };
        let received = receive(state, &mut done);
        state.into = None;
        if received.as_ref().is_err_and(Error::is_unfinished) {
            state.receiving = Some((header.clone(), done));
            state.into = arrays.as_deref().filter(|_| (done.pieces, done.bytes) != (0, 0)).map(places);
        }
        received
    }
}

/// So many bytes.
fn flat(length: u64) -> Layout {
    Layout { dtype: Dtype::UInt8, order: Order::C, shape: Shape::from_slice(&[length]), names: Vec::new() }
}
