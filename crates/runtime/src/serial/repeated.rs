//! The short way of most messages.
//!
//! Most messages differ from the last message on their slot in number, times and elements alone, and
//! most slots have one conduit without filters, of a serial instance. A send by the short way compares
//! its array with the last array. A receive takes any message that is its data alone. Both do what
//! differs from message to message: the order of calls, the window, the ring, the counters.
//!
//! The joined piece of a field, in the header's message, goes this way along the port's conduit. The
//! pieces between ranks have a short way of their own (`repeated_piece`).
//!
//! A call by the short way returns `None` where anything else is to be done, and nothing has happened
//! then. The caller makes the call by the long way ([`Serial::send`], [`Serial::receive`]), which
//! also has the texts of all errors.

use std::io::IoSlice;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use titin_transport::{Carrier, IncomingMessage, LinkError, Outgoing, Room};
use titin_wire::frame::Head;
use titin_wire::meta::{Content, Meta};

use super::Serial;
use super::receive_any::{NextEnd, PortChoice, take_from_carrier};
use super::receiving_end::ReceivingEnd;
use super::send::message_header;
use crate::execution_loop::PortCall;
use crate::field_mark::ordinary;
use crate::message::CallerLayout;
use crate::port::{Inlet, Outlet, OutletState, Port, PortId, PortState, nil_meta};
use crate::send_state::{SendState, Timestamps};
use crate::{Message, Payload, Result};

/// Notes a receive in the execution loop. False if the call is to go the long way.
pub type NoteCall<'a> = dyn FnMut() -> bool + 'a;

/// A message received by the short way.
pub enum ReceivedAtOnce {
    /// The message is where the caller wanted it, and is an array or carries nothing.
    InPlace,
    /// The message needs more than the short way does.
    Other(Message),
}

/// A message received by the short way from any of several ports.
pub struct ReceivedFrom {
    /// The index of the port in the list of the ports.
    pub index: usize,
    /// The slot, if the port has slots.
    pub slot: Option<u32>,
    /// The message.
    pub message: ReceivedAtOnce,
}

/// A slot of a port, and where its ends are.
#[derive(Clone, Copy)]
struct PortSlot<'a> {
    port_number: usize,
    port: &'a Port,
    /// The place of the slot's ends at the port.
    place: usize,
    /// The number of the slot.
    number: u32,
    /// Whether the call is on a field.
    is_of_field: bool,
}

impl<'a> PortSlot<'a> {
    /// The only sending end of the slot, if the end is plain.
    #[inline(always)]
    fn outlet(&self) -> Option<&'a Outlet> {
        match self.port.outlets.get(self.place)?.as_slice() {
            [outlet] if outlet.end.is_plain => Some(outlet),
            _ => None,
        }
    }

    /// The receiving end of the slot, if the end is plain.
    #[inline(always)]
    fn inlet(&self) -> Option<&'a Inlet> {
        let inlet = self.port.inlets.get(self.place)?.as_ref()?;
        inlet.end.is_plain.then_some(inlet)
    }
}

impl Serial {
    /// Sends an array with the layout of the last array on its slot, or no data. `elements` gets
    /// the number of bytes of the last array, and gives the array's bytes; `None` if the program gave
    /// no memory.
    #[inline(always)]
    pub(crate) fn send_repeated<'a>(
        &self,
        port: PortId,
        given: Option<u32>,
        array: Option<&CallerLayout<'_>>,
        elements: impl FnOnce(usize) -> Option<&'a [u8]>,
        times: Timestamps,
    ) -> Option<Result<()>> {
        let slot = self.repeated_slot(port, given, false)?;
        self.send_alike(
            slot,
            |outlet| match array {
                Some(array) => outlet.last_array(array),
                None => Some((nil_meta(), 0)),
            },
            elements,
            times,
        )
    }

    /// Sends the header of a field with the only piece in the same message, if the last message of the
    /// port was such a message of the same length.
    #[inline(always)]
    pub(crate) fn send_joined_repeated(
        &self,
        port: PortId,
        piece: &[u8],
        times: Timestamps,
    ) -> Option<Result<()>> {
        let slot = self.repeated_slot(port, None, true)?;
        self.send_alike(
            slot,
            |outlet| {
                let length = piece.len() as u64;
                Some((outlet.last_bytes(length, true)?, length))
            },
            |_| Some(piece),
            times,
        )
    }

    /// Sends a message with the metadata and the length of the last message on its slot, which `last`
    /// finds. `elements` gets the length, and gives the data.
    #[inline(always)]
    fn send_alike<'a>(
        &self,
        slot: PortSlot<'_>,
        last: impl FnOnce(&OutletState) -> Option<(&Arc<Meta>, u64)>,
        elements: impl FnOnce(usize) -> Option<&'a [u8]>,
        times: Timestamps,
    ) -> Option<Result<()>> {
        if self.overlays.overlaid.load(Ordering::Acquire) {
            return None;
        }
        let mut state = slot.port.try_enter()?;
        let outlet = slot.outlet()?;
        let (meta, length) = last(state.outlets.get(outlet.number)?)?;
        if outlet.end.may_compress(length) {
            return None;
        }
        let elements = elements(length as usize)?;
        let carrier = outlet.end.carrier.get()?;
        let send_number = self.untimed_send()?;
        if !state.sending.is_empty() || !is_later(times) {
            return None;
        }
        self.note_repeated(slot, times)?;
        let Room::Free(sequence) = outlet.window.claim(length) else {
            let array = (meta.clone(), elements);
            return Some(self.send_with_room(slot, &mut state, array, times));
        };
        self.count_send(send_number);
        let head = message_header(outlet, sequence, times);
        let sent = self.hand_over_at_once(outlet, &**carrier, head, meta, elements);
        Some(sent.or_else(|why| {
            let sending = unfinished(slot, times);
            self.keep_undelivered(outlet, &mut state, why, sending)
        }))
    }

    /// The number of the next send, if the next send is not timed.
    #[inline(always)]
    pub(super) fn untimed_send(&self) -> Option<u64> {
        let number = self.profile.sends.load(Ordering::Relaxed);
        self.profile.timed_sends(number).is_none().then_some(number)
    }

    /// Hands the carrier a message of one part, and counts the message.
    #[inline(always)]
    pub(super) fn hand_over_at_once(
        &self,
        outlet: &Outlet,
        carrier: &dyn Carrier,
        head: Head,
        meta: &Arc<Meta>,
        elements: &[u8],
    ) -> std::result::Result<(), LinkError> {
        let (parts, length) = ([IoSlice::new(elements)], elements.len() as u64);
        let outgoing = Outgoing::of_length(head, meta, &parts, length);
        let sent = carrier.send(&outgoing)?;
        self.note_sent(outlet, length, sent);
        Ok(())
    }

    /// Receives the next message of a slot, if the message is there or, with `waits`, comes within a
    /// moment. `takes` looks at a message that is its data alone, notes the call, and then may copy the
    /// data. If `takes` refuses the message, or the message needs more, `fits` checks it as in
    /// [`Serial::receive`]. `message` is an earlier message, whose memory is used again.
    #[inline(always)]
    pub(crate) fn receive_repeated(
        &self,
        port: PortId,
        given: Option<u32>,
        waits: bool,
        message: &mut IncomingMessage,
        takes: impl FnOnce(&IncomingMessage, &mut NoteCall<'_>) -> bool,
        fits: impl FnOnce(&Message) -> Result<()>,
    ) -> Option<Result<ReceivedAtOnce>> {
        let slot = self.repeated_slot(port, given, false)?;
        self.receive_alike(slot, waits, message, takes, fits)
    }

    /// As [`Serial::receive_repeated`], for a field whose only piece comes in the header's message. Waits
    /// a moment.
    #[inline(always)]
    pub(crate) fn receive_joined_repeated(
        &self,
        port: PortId,
        message: &mut IncomingMessage,
        takes: impl FnOnce(&IncomingMessage, &mut NoteCall<'_>) -> bool,
        fits: impl FnOnce(&Message) -> Result<()>,
    ) -> Option<Result<ReceivedAtOnce>> {
        let slot = self.repeated_slot(port, None, true)?;
        self.receive_alike(slot, true, message, takes, fits)
    }

    /// The part of [`Serial::receive_repeated`] behind the choice of the slot.
    #[inline(always)]
    fn receive_alike(
        &self,
        slot: PortSlot<'_>,
        waits: bool,
        message: &mut IncomingMessage,
        takes: impl FnOnce(&IncomingMessage, &mut NoteCall<'_>) -> bool,
        fits: impl FnOnce(&Message) -> Result<()>,
    ) -> Option<Result<ReceivedAtOnce>> {
        let mut state = slot.port.try_enter()?;
        let inlet = slot.inlet()?;
        // Behind the lock of the port: a call on several ports sets the flag before it takes its ports.
        if self.any.lists.load(Ordering::Relaxed) && inlet.inbox.is_waited_for() {
            return None;
        }
        let is_stashed = state.inlets.get(slot.place)?.has_stash();
        if is_stashed || !self.take_next(inlet, waits, message) {
            return None;
        }
        Some(self.give_repeated(slot, &mut state, message, takes, fits))
    }

    /// Takes the next message of an end, if the message is not timed and is there or, with `waits`, comes
    /// within a moment.
    #[inline(always)]
    pub(super) fn take_next(
        &self,
        inlet: &Inlet,
        waits: bool,
        message: &mut IncomingMessage,
    ) -> bool {
        let Some(carrier) = inlet.end.carrier.get() else {
            return false;
        };
        if inlet.end.meter.sample().is_some() {
            return false;
        }
        if !inlet.inbox.has_no_news() {
            inlet.inbox.take_over(message)
        } else if waits {
            let bell = &self.core.bell;
            bell.glance(&**carrier, &inlet.inbox, message)
        } else {
            take_from_carrier(inlet, message)
        }
    }

    /// Receives a message of any of the chosen ends, if a message is there or comes within a moment.
    pub(crate) fn receive_chosen_repeated(
        &self,
        choice: &PortChoice,
        message: &mut IncomingMessage,
    ) -> Option<Result<ReceivedFrom>> {
        if !self.is_plain || self.enter().is_err() || self.any.put_back.load(Ordering::Relaxed) {
            return None;
        }
        let mut selection = choice.lock_selection(self)?;
        let mut next = selection.first(self)?;
        loop {
            let NextEnd { end, is_listed } = next;
            let slot = PortSlot {
                port_number: end.port_number,
                port: &self.table.ports[end.port_number],
                place: end.place,
                number: self.table.ports[end.port_number].slot_of(end.place),
                is_of_field: false,
            };
            let Some((mut state, inlet)) = slot.port.try_enter().zip(slot.inlet()) else {
                if is_listed {
                    selection.put_back(end);
                }
                return None;
            };
            let is_there = match is_listed {
                true => selection.take_listed(inlet, message),
                false => take_from_carrier(inlet, message),
            };
            if !is_there {
                next = selection.next(self)?;
                continue;
            }
            let given = slot.port.vector.then_some(slot.number);
            let fits = |message: &Message| ordinary(|| slot.port.label(None), message);
            let received = self.give_repeated(slot, &mut state, message, |_, note| note(), fits);
            return Some(received.map(|message| ReceivedFrom {
                index: end.index,
                slot: given,
                message,
            }));
        }
    }

    /// Gives the program a message that the inbox has counted as taken.
    #[inline(always)]
    fn give_repeated(
        &self,
        slot: PortSlot<'_>,
        state: &mut PortState,
        message: &mut IncomingMessage,
        takes: impl FnOnce(&IncomingMessage, &mut NoteCall<'_>) -> bool,
        fits: impl FnOnce(&Message) -> Result<()>,
    ) -> Result<ReceivedAtOnce> {
        let (timestamp, length) = (message.head.timestamp, message.body.len());
        let mut note = || self.note_repeated(slot, (timestamp, None)).is_some();
        if !is_bare(&message.meta, slot.is_of_field) || !takes(message, &mut note) {
            return self.give_arrived(slot, state, std::mem::take(message), fits);
        }
        if let Some(inlet) = slot.inlet() {
            inlet.end.meter.count(length as u64, 0);
        }
        Ok(ReceivedAtOnce::InPlace)
    }

    /// The slot of a call by the short way, if the instance and the port have nothing special.
    /// `is_of_field` says whether the call is on a field: a port with a field takes no other calls.
    #[inline(always)]
    fn repeated_slot(
        &self,
        port: PortId,
        given: Option<u32>,
        is_of_field: bool,
    ) -> Option<PortSlot<'_>> {
        let port_number = port.0;
        let port = &self.table.ports[port_number];
        let is_special = port.resizable
            || port.has_field.load(Ordering::Relaxed) != is_of_field
            || port.has_attempts() && self.core.process.loss_count() > 0;
        if !self.is_plain || is_special || self.enter().is_err() {
            return None;
        }
        let (place, number) = port.find(given).ok()?;
        Some(PortSlot {
            port_number,
            port,
            place,
            number,
            is_of_field,
        })
    }

    /// Notes a call in the execution loop, if the call is one more on an end within the steps of the
    /// loop.
    #[inline(always)]
    fn note_repeated(&self, slot: PortSlot<'_>, (timestamp, next): Timestamps) -> Option<()> {
        let port = slot.port;
        let call = PortCall {
            port: &port.name,
            end: (slot.port_number, slot.number),
            operator: port.operator,
            timeline: port.timeline,
            timestamp,
            next,
        };
        if !self.execution_loop().call_again(&call) {
            return None;
        }
        self.goes_on();
        self.at(timestamp);
        Some(())
    }

    /// Sends a message that the execution loop has noted, once the conduit's buffer has room.
    #[cold]
    fn send_with_room(
        &self,
        slot: PortSlot<'_>,
        state: &mut PortState,
        (meta, elements): (Arc<Meta>, &[u8]),
        times: Timestamps,
    ) -> Result<()> {
        let payload = match &meta.content {
            Content::Array(layout) => Payload::array(layout, elements),
            _ => Payload::nil(),
        };
        let payload = if meta.field {
            payload.of_field()
        } else {
            payload
        };
        let outlets = &slot.port.outlets[slot.place];
        self.send_noted(slot.port, outlets, state, &payload, unfinished(slot, times))
    }

    /// Gives the program a message that needs more than the short way does. The inbox has counted
    /// the message as taken.
    #[cold]
    fn give_arrived(
        &self,
        slot: PortSlot<'_>,
        state: &mut PortState,
        arrived: IncomingMessage,
        fits: impl FnOnce(&Message) -> Result<()>,
    ) -> Result<ReceivedAtOnce> {
        let source = ReceivingEnd {
            slot: Some(slot.number),
            ..self
                .end_of(slot.port_number, slot.place)
                .expect("a message has come by the slot")
        };
        let taken = self.take_arrived(&source, &mut state.inlets[slot.place], arrived, 0)?;
        let (_, message) = self.give(&source, state, taken, fits)?;
        Ok(ReceivedAtOnce::Other(message))
    }
}

/// Whether there is no next timestamp, or the next timestamp may follow the timestamp.
#[inline(always)]
fn is_later((timestamp, next): Timestamps) -> bool {
    next.is_none_or(|next| next >= timestamp && next.is_finite())
}

/// Whether a received message is its data alone, and the data need no decoding. Of a field, whether the
/// message is the header and a joined piece alone.
#[inline(always)]
pub(super) fn is_bare(meta: &Meta, is_of_field: bool) -> bool {
    let has_data = match meta.content {
        Content::Array(_) => true,
        Content::Nil => !is_of_field,
        Content::Structure => false,
    };
    has_data
        && meta.field == is_of_field
        && meta.overlay == 0
        && meta.slot.is_none()
        && meta.codings.is_empty()
        && meta.iteration.is_none()
}

/// A send on a slot that has reached no conduit yet.
fn unfinished(slot: PortSlot<'_>, times: Timestamps) -> SendState {
    SendState {
        slot: slot.number,
        ..SendState::of(&Payload::nil(), times)
    }
}
