//! The short way of the pieces of a field, from rank to rank.
//!
//! As for messages of ports (`repeated`), a call returns `None` where anything else is to be done. The
//! long way is [`Serial::send_along_all`] and [`Serial::await_at`].

use titin_transport::{IncomingMessage, Room};

use super::Serial;
use super::repeated::{ReceivedAtOnce, is_bare};
use super::send::message_header;
use crate::port::{InletState, Outlet, OutletState, Port};
use crate::send_state::{SendState, Timestamps};
use crate::{Payload, Result};

impl Serial {
    /// Sends a piece of a field to a partner, if the last piece for the partner was as long, and the
    /// partner's conduit has room. `exchange` is the number of the exchange.
    #[inline(always)]
    pub(crate) fn send_piece_repeated(
        &self,
        outlet: &Outlet,
        state: &OutletState,
        piece: &[u8],
        exchange: u32,
        times: Timestamps,
    ) -> Option<Result<()>> {
        let length = piece.len() as u64;
        let meta = state.last_bytes(length, false)?;
        let carrier = outlet.end.carrier.get()?;
        let send_number = self.untimed_send()?;
        if self.reporter.pending.is_some() {
            return None;
        }
        let Room::Free(sequence) = outlet.window.claim(length) else {
            return None;
        };
        self.count_send(send_number);
        let mut head = message_header(outlet, sequence, times);
        head.tag = exchange;
        let sent = self.hand_over_at_once(outlet, &**carrier, head, meta, piece);
        Some(sent.or_else(|why| {
            let mut sending = SendState::of(&Payload::nil(), times);
            self.undelivered(outlet, why, &mut sending).map(drop)
        }))
    }

    /// Receives the next message of a partner from a port between ranks, if the message is there or,
    /// with `waits`, comes within a moment. `message` is an earlier message, whose memory is used again.
    #[inline(always)]
    pub(crate) fn receive_piece_repeated(
        &self,
        port: &Port,
        place: usize,
        state: &mut InletState,
        waits: bool,
        message: &mut IncomingMessage,
    ) -> Option<Result<ReceivedAtOnce>> {
        let inlet = port.inlets[place].as_ref()?;
        let is_special = self.reporter.pending.is_some() || self.profile.trace.on;
        if is_special || state.has_stash() || !self.take_next(inlet, waits, message) {
            return None;
        }
        if is_bare(&message.meta, false) && inlet.end.chain.is_empty() {
            inlet.end.meter.count(message.body.len() as u64, 0);
            return Some(Ok(ReceivedAtOnce::InPlace));
        }
        let source = self.inner_source(port, place);
        let taken = self.take_arrived(&source, state, std::mem::take(message), 0);
        Some(taken.map(|(_, message)| ReceivedAtOnce::Other(message)))
    }
}
