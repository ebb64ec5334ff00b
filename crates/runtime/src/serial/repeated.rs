//! The short way of a message that is like the last message on its port.
//!
//! Most messages differ from the last message on their port in number, times and elements alone. A
//! port remembers the slot of its last message ([`LastSlot`]), and by that all that was checked for
//! it. A call by the short way compares its arguments with the last message, and does what differs
//! from message to message: the order of calls, the window, the ring, the counters.
//!
//! A call by the short way returns `None` where anything else is to be done, and nothing has happened
//! then. The caller makes the call by the long way ([`Serial::send`], [`Serial::receive`]), which
//! also has the texts of all errors.

use std::io::IoSlice;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use titin_transport::{IncomingMessage, Outgoing, Room};
use titin_wire::meta::{Content, Meta};

use super::Serial;
use super::receiving_end::ReceivingEnd;
use super::send::message_header;
use crate::execution_loop::PortCall;
use crate::field_mark::ordinary;
use crate::message::CallerLayout;
use crate::port::{ConduitUse, LastSlot, Port, PortId, PortState};
use crate::send_state::{SendState, Timestamps};
use crate::{Message, Payload, Result};

/// A message received by the short way.
pub enum ReceivedAtOnce {
    /// The message is where the caller wanted it, and is an array or carries nothing.
    InPlace,
    /// The message needs more than the short way does.
    Other(Message),
}

impl Serial {
    /// Sends an array with the layout of the last array on its port. `elements` gives the bytes of
    /// the array, whose number is that of the last array.
    #[inline(always)]
    pub(crate) fn send_repeated<'a>(
        &self,
        port: PortId,
        given: Option<u32>,
        array: &CallerLayout<'_>,
        elements: impl FnOnce(usize) -> &'a [u8],
        times: Timestamps,
    ) -> Option<Result<()>> {
        let number = port.0;
        let port = self.enter_port(port)?;
        if self.overlays.overlaid.load(Ordering::Acquire) {
            return None;
        }
        let mut state = port.try_enter()?;
        let slot = state.last_slot.filter(|last| last.given == given)?;
        let outlet = port.outlets.get(slot.index)?.first()?;
        let (meta, length) = state.outlets.get(outlet.number)?.last_array(array)?;
        let carrier = outlet.end.carrier.get()?;
        let send_number = self.profile.sends.load(Ordering::Relaxed);
        let is_timed = self.profile.timed_sends(send_number).is_some();
        if is_timed || !state.sending.is_empty() || !is_later(times) {
            return None;
        }
        self.note_repeated((number, slot), port, times)?;
        let elements = elements(length as usize);
        let Room::Free(sequence) = outlet.window.claim(length) else {
            let array = (meta.clone(), elements);
            return Some(self.send_with_room(port, slot, &mut state, array, times));
        };
        self.count_send(send_number);
        let head = message_header(outlet, sequence, times);
        let parts = [IoSlice::new(elements)];
        let outgoing = Outgoing::of_length(head, meta, &parts, length);
        match carrier.send(&outgoing) {
            Ok(sent) => {
                self.note_sent(outlet, length, sent);
                Some(Ok(()))
            }
            Err(why) => {
                drop(outgoing);
                let sending = unfinished(slot, times);
                Some(self.keep_undelivered(outlet, &mut state, why, sending))
            }
        }
    }

    /// Receives the next message of a port's last slot, if the message is there or comes within a
    /// moment. `message` is an earlier message, whose memory is used again.
    #[inline(always)]
    pub(crate) fn receive_repeated(
        &self,
        port: PortId,
        given: Option<u32>,
        message: &mut IncomingMessage,
    ) -> Option<Result<ReceivedAtOnce>> {
        let number = port.0;
        let port = self.enter_port(port)?;
        let mut state = port.try_enter()?;
        let slot = state.last_slot.filter(|last| last.given == given)?;
        let inlet = port.inlets.get(slot.index)?.as_ref()?;
        // Behind the lock of the port: a call on several ports sets the flag before it takes its ports.
        if self.any.lists.load(Ordering::Relaxed) && inlet.inbox.is_waited_for() {
            return None;
        }
        let is_stashed = state.inlets.get(slot.index)?.has_stash();
        let carrier = inlet.end.carrier.get()?;
        let is_timed = inlet.end.meter.sample().is_some();
        if is_stashed || is_timed || !inlet.inbox.has_no_news() {
            return None;
        }
        if !self.core.bell.glance(&**carrier, &inlet.inbox, message) {
            return None;
        }
        let (timestamp, length) = (message.head.timestamp, message.body.len());
        if !is_bare(&message.meta)
            || self
                .note_repeated((number, slot), port, (timestamp, None))
                .is_none()
        {
            return Some(self.give_arrived(number, slot, &mut state, std::mem::take(message)));
        }
        inlet.end.meter.count(length as u64, 0);
        Some(Ok(ReceivedAtOnce::InPlace))
    }

    /// Notes the slot of a received message, if the next message on the slot may go the short way.
    #[inline(always)]
    pub(super) fn note_slot(
        &self,
        source: &ReceivingEnd<'_>,
        given: Option<u32>,
        state: &mut PortState,
    ) {
        let end = &source.inlet.end;
        let is_plain = self.is_plain && !end.pulled && end.conduit_use == ConduitUse::Ports;
        state.last_slot = (is_plain && source.direct_inbox().is_some()).then(|| LastSlot {
            given,
            number: source.slot.unwrap_or(0),
            index: source.place,
        });
    }

    /// The port of a call by the short way.
    #[inline(always)]
    fn enter_port(&self, port: PortId) -> Option<&Port> {
        let port = &self.table.ports[port.0];
        let may_go = self.is_plain && !port.has_field.load(Ordering::Relaxed);
        (may_go && self.enter().is_ok()).then_some(port)
    }

    /// Notes a call in the execution loop, if the call is one more on an end within the steps of the
    /// loop.
    #[inline(always)]
    fn note_repeated(
        &self,
        (port_number, slot): (usize, LastSlot),
        port: &Port,
        (timestamp, next): Timestamps,
    ) -> Option<()> {
        let call = PortCall {
            port: &port.name,
            end: (port_number, slot.number),
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
        port: &Port,
        slot: LastSlot,
        state: &mut PortState,
        (meta, elements): (Arc<Meta>, &[u8]),
        times: Timestamps,
    ) -> Result<()> {
        let payload = match &meta.content {
            Content::Array(layout) => Payload::array(layout, elements),
            _ => unreachable!("the last message was an array"),
        };
        let outlets = &port.outlets[slot.index];
        self.send_noted(port, outlets, state, &payload, unfinished(slot, times))
    }

    /// Gives the program a message that needs more than the short way does. The inbox has counted
    /// the message as taken.
    #[cold]
    fn give_arrived(
        &self,
        port: usize,
        slot: LastSlot,
        state: &mut PortState,
        arrived: IncomingMessage,
    ) -> Result<ReceivedAtOnce> {
        let source = ReceivingEnd {
            slot: Some(slot.number),
            ..self
                .end_of(port, slot.index)
                .expect("the slot of the last message is connected")
        };
        let taken = self.take_arrived(&source, &mut state.inlets[slot.index], arrived, 0)?;
        let fits = |message: &Message| ordinary(|| source.port.label(slot.given), message);
        let (_, message) = self.give(&source, state, taken, fits)?;
        Ok(ReceivedAtOnce::Other(message))
    }
}

/// Whether there is no next timestamp, or the next timestamp may follow the timestamp.
#[inline(always)]
fn is_later((timestamp, next): Timestamps) -> bool {
    next.is_none_or(|next| next >= timestamp && next.is_finite())
}

/// Whether a received message is its data alone, and the data need no decoding.
#[inline(always)]
fn is_bare(meta: &Meta) -> bool {
    meta.overlay == 0
        && meta.slot.is_none()
        && meta.codings.is_empty()
        && meta.iteration.is_none()
        && !meta.field
        && meta.content != Content::Structure
}

/// A send on a slot that has reached no conduit yet.
fn unfinished(slot: LastSlot, times: Timestamps) -> SendState {
    SendState {
        slot: slot.number,
        ..SendState::of(&Payload::nil(), times)
    }
}
