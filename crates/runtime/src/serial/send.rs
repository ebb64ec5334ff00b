//! Sending by the ports of a serial instance.

use std::io::IoSlice;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use titin_model::Operator;
use titin_transport::{Carrier, LinkError, Outgoing, Room, SendReport, SharedBuffer, Shortage};
use titin_wire::ConduitId;
use titin_wire::control::WaitOn;
use titin_wire::frame::Head;
use titin_wire::meta::{Layout, MAX_RANK, Meta};
use titin_wire::settings::{Overlay, encode_overlay};

use super::Serial;
use super::close::WARNING;
use super::compress::compress_if_worthwhile;
use super::report::RowOfMessage;
use super::wait::Wait;
use crate::execution_loop::{LoopError, PortCall};
use crate::filter::{Mapped, no_memory};
use crate::iteration::Iteration;
use crate::peer_names::{instance_of, written};
use crate::port::{ConduitUse, Outlet, OutletState, Port, PortEnd, PortId, PortState};
use crate::send_state::{PieceChunk, SendState, Timestamps};
use crate::{Error, FailedMember, Kind, Loan, Payload, Result};

/// The largest part of the metadata of a message that an overlay may take.
const MAX_OVERLAY: usize = titin_wire::frame::MAX_META as usize / 2;

impl Serial {
    /// Sends a message along the conduits of a slot, except for the conduits `left_out`. The call
    /// counts as made for all conduits.
    #[inline(always)]
    pub(crate) fn send(
        &self,
        port: PortId,
        given: Option<u32>,
        payload: &Payload<'_>,
        times: Timestamps,
        settings: Option<&Overlay>,
        left_out: Option<Vec<ConduitId>>,
    ) -> Result<()> {
        self.enter()?;
        let number = port.0;
        let port = &self.table.ports[number];
        if !port.operator.sends() {
            return Err(receives(port));
        }
        if port.has_attempts() {
            self.begin_anew(port, given)?;
        }
        let mut state = port.enter()?;
        let (place, slot) = port.find(given)?;
        let outlets = port.outlets.get(place).map_or(&[][..], Vec::as_slice);
        let knows = |outlet: &Outlet| state.outlets[outlet.number].knows(payload);
        let is_known = outlets.first().is_some_and(knows);
        if !is_known {
            payload.check()?;
        }
        check_next_timestamp(port, times)?;
        if !state.sending.is_empty()
            && let Some(mut unfinished) = self.take_unfinished(&mut state, slot, times)
        {
            let sent = self.send_along_all(port, outlets, &mut state, payload, &mut unfinished);
            state.keep(unfinished, &sent);
            return sent;
        }
        let overlay = self.overlay_to_send(settings)?;
        let iteration = self.note_send(&PortCall {
            port: &port.name,
            end: (number, slot),
            operator: port.operator,
            timeline: port.timeline,
            timestamp: times.0,
            next: times.1,
        })?;
        if let ([outlet], None) = (outlets, &left_out)
            && self.is_bare(port, &overlay)
            && let Some(sent) =
                self.send_at_once(outlet, &mut state, (payload, is_known), slot, times)
        {
            return sent;
        }
        let sending = SendState {
            slot,
            iteration,
            overlay,
            left_out,
            ..SendState::of(payload, times)
        };
        self.send_noted(port, outlets, &mut state, payload, sending)
    }

    /// Sends a message that the execution loop has noted, along all conduits of its slot.
    pub(super) fn send_noted(
        &self,
        port: &Port,
        outlets: &[Outlet],
        state: &mut PortState,
        payload: &Payload<'_>,
        mut sending: SendState,
    ) -> Result<()> {
        let sent = self.send_along_all(port, outlets, state, payload, &mut sending);
        state.keep(sending, &sent);
        sent
    }

    /// Sends a message with nothing but content in the metadata along the one conduit of its slot,
    /// if there is room, and nothing else is to be done. Most messages leave in this way. Otherwise
    /// returns `None`, and nothing has happened. `is_known` says whether the payload has the
    /// content and the length of the last payload.
    #[inline(always)]
    fn send_at_once(
        &self,
        outlet: &Outlet,
        state: &mut PortState,
        (payload, is_known): (&Payload<'_>, bool),
        slot: u32,
        times: Timestamps,
    ) -> Option<Result<()>> {
        let turn = self.untimed_send()?;
        let is_special = !outlet.end.chain.is_empty()
            || self.reporter.pending.is_some()
            || outlet.end.may_compress(payload.length());
        let carrier = outlet.end.carrier.get()?;
        if is_special {
            return None;
        }
        let Room::Free(sequence) = outlet.window.claim(payload.length()) else {
            return None;
        };
        self.count_send(turn);
        let head = message_header(outlet, sequence, times);
        let state_of_outlet = &mut state.outlets[outlet.number];
        let meta = match is_known {
            true => state_of_outlet
                .last_plain()
                .expect("a known payload had metadata"),
            false => state_of_outlet.plain(payload),
        };
        let outgoing = Outgoing::of_length(head, meta, &payload.parts, payload.length());
        payload
            .lent
            .iter()
            .for_each(|lent| outgoing.share(lent.clone()));
        let why = match carrier.send(&outgoing) {
            Ok(sent) => {
                self.note_sent(outlet, outgoing.length(), sent);
                return Some(Ok(()));
            }
            Err(why) => why,
        };
        let sending = SendState {
            slot,
            ..SendState::of(payload, times)
        };
        Some(self.keep_undelivered(outlet, state, why, sending))
    }

    /// The outcome of a send that the carrier has not taken. Keeps the send, if the program is to
    /// make the send again.
    #[cold]
    pub(super) fn keep_undelivered(
        &self,
        outlet: &Outlet,
        state: &mut PortState,
        why: LinkError,
        mut sending: SendState,
    ) -> Result<()> {
        let outcome = self.undelivered(outlet, why, &mut sending).map(|_| ());
        state.keep(sending, &outcome);
        outcome
    }

    /// Whether the metadata of a message are the content alone, as for most messages.
    #[inline(always)]
    fn is_bare(&self, port: &Port, overlay: &Option<(u32, Arc<Overlay>)>) -> bool {
        overlay.is_none() && !port.resizable && !self.execution.counts_steps
    }

    /// Counts a send. If two threads send at once, one send may not be counted: the count is for
    /// samples alone.
    pub(super) fn count_send(&self, turn: u64) {
        let next = turn.wrapping_add(1);
        self.profile.sends.store(next, Ordering::Relaxed);
    }

    /// Takes the interrupted or pending send on the given slot. The program makes the send again
    /// now.
    #[cold]
    fn take_unfinished(
        &self,
        state: &mut PortState,
        slot: u32,
        times: Timestamps,
    ) -> Option<SendState> {
        let is_on_slot = |sending: &SendState| sending.slot == slot;
        let index = state.sending.iter().position(is_on_slot)?;
        let unfinished = state.sending.swap_remove(index);
        // After an interruption a program may send another message instead.
        let is_same = (unfinished.timestamp, unfinished.next_timestamp) == times;
        (is_same || self.reporter.pending.is_some()).then_some(unfinished)
    }

    /// The overlay to send with a message: the given overlay, or the overlay in force.
    #[inline(always)]
    fn overlay_to_send(&self, settings: Option<&Overlay>) -> Result<Option<(u32, Arc<Overlay>)>> {
        let overlays = &self.overlays;
        let overlay = match settings {
            None if !overlays.overlaid.load(Ordering::Acquire) => return Ok(None),
            None => overlays.in_force(),
            Some(overlay) => self.number(overlay.clone())?,
        };
        Ok(Some(overlay).filter(|(number, _)| *number != 0))
    }

    /// Notes in the execution loop that a message is about to be sent. Returns the step of the
    /// message.
    #[inline(always)]
    fn note_send(&self, call: &PortCall<'_>) -> Result<Iteration> {
        let refused =
            |why: LoopError| Error::new(Kind::CallOrder, format!("{}: {why}", self.core.name));
        let counted = self.execution.counts_steps;
        if counted {
            // A refused call ends no steps.
            self.execution_loop().check(call).map_err(refused)?;
            match call.operator {
                Operator::OI => self.pass_steps(call.operator, call.timeline, call.end)?,
                _ => self.end_steps()?,
            }
        }
        let noted = self.change_loop(|execution| {
            let iteration = if counted {
                execution.iteration(call.operator, call.timeline, call.end)
            } else {
                Iteration::default()
            };
            execution.call(call).map(|()| iteration)
        });
        let iteration = noted.map_err(refused)?;
        self.goes_on();
        self.at(call.timestamp);
        Ok(iteration)
    }
}

/// Fails if the next timestamp of a message is before the timestamp of the message, or no time.
#[inline(always)]
fn check_next_timestamp(port: &Port, (timestamp, next): Timestamps) -> Result<()> {
    match next {
        Some(next) if next.is_nan() || next < timestamp || next.is_infinite() => {
            Err(wrong_next_timestamp(port, timestamp, next))
        }
        _ => Ok(()),
    }
}

#[cold]
fn wrong_next_timestamp(port: &Port, timestamp: f64, next: f64) -> Error {
    let why = match next.is_nan() || next < timestamp {
        true => format!("{next:?}, before {timestamp:?}"),
        false => "infinite; give none where no message follows".to_owned(),
    };
    let text = format!("the next timestamp on port '{}' is {why}", port.name);
    Error::new(Kind::Usage, text)
}

#[cold]
fn receives(port: &Port) -> Error {
    let text = format!(
        "send on {} port '{}': {} receives; send on O_I and O_F ports",
        port.operator, port.name, port.operator
    );
    Error::new(Kind::Usage, text)
}

impl Serial {
    /// Memory for an array to be sent on a port. Calls `refuse_field` where the port carries a
    /// field.
    pub(crate) fn loan(
        &self,
        port: PortId,
        slot: Option<u32>,
        layout: Layout,
        refuse_field: impl FnOnce() -> Result<()>,
    ) -> Result<Loan> {
        let port = &self.table.ports[port.0];
        if !port.operator.sends() {
            let text = format!(
                "loan on {} port '{}': {} receives; memory is lent for what is sent",
                port.operator, port.name, port.operator
            );
            return Err(Error::new(Kind::Usage, text));
        }
        port.find(slot)?;
        if port.has_field.load(Ordering::Relaxed) {
            refuse_field()?;
        }
        let wrong = || {
            Error::new(
                Kind::Usage,
                format!("an array of {:?} has too many bytes", layout.shape),
            )
        };
        let length = layout.bytes().ok_or_else(wrong)?;
        if layout.shape.len() > MAX_RANK {
            let text = format!(
                "an array of rank {}, at most {MAX_RANK}",
                layout.shape.len()
            );
            return Err(Error::new(Kind::Usage, text));
        }
        let memory = self.core.process.exchange.loan(length).map_err(no_memory)?;
        Ok(Loan::new(layout, memory))
    }
}

impl PortState {
    /// Keeps a send that the program is to make again.
    #[inline(always)]
    fn keep(&mut self, sending: SendState, outcome: &Result<()>) {
        if outcome.as_ref().is_err_and(Error::is_unfinished) {
            // Most often there is one such send, and there may be a hundred thousand ports.
            self.sending.reserve_exact(1);
            self.sending.push(sending);
        }
    }
}

impl Serial {
    /// An overlay with its number. A receiver that has seen the overlay once knows the overlay by
    /// the number.
    pub(crate) fn number(&self, overlay: Overlay) -> Result<(u32, Arc<Overlay>)> {
        if overlay.is_empty() {
            return Ok((0, Arc::default()));
        }
        let current = self.overlays.in_force();
        if *current.1 == overlay {
            return Ok(current);
        }
        let mut numbered = self.overlays.numbered.lock().expect("never poisoned");
        if *numbered.1 != overlay {
            let length = encode_overlay(&overlay).len();
            if length > MAX_OVERLAY {
                let text = format!(
                    "a settings overlay of {length} bytes, at most {MAX_OVERLAY}; send it as data"
                );
                return Err(Error::new(Kind::Usage, text));
            }
            *numbered = (numbered.0 + 1, Arc::new(overlay));
        }
        Ok(numbered.clone())
    }

    /// Sends along all conduits that have not had the message yet.
    pub(crate) fn send_along_all(
        &self,
        port: &Port,
        outlets: &[Outlet],
        state: &mut PortState,
        payload: &Payload<'_>,
        message: &mut SendState,
    ) -> Result<()> {
        let turn = self.profile.sends.load(Ordering::Relaxed);
        self.count_send(turn);
        let times = self.profile.timed_sends(turn);
        // Waits are counted in full; the rest of the time may be a sample for several sends.
        let waited = || {
            outlets
                .iter()
                .map(|outlet| outlet.end.meter.waited_so_far())
                .sum::<Duration>()
        };
        let clock = times.map(|times| (Instant::now(), waited(), times));
        let mut began = if self.profile.trace.on {
            self.profile.trace.now()
        } else {
            0
        };
        while let Some(outlet) = outlets.get(message.done) {
            if message
                .left_out
                .as_ref()
                .is_some_and(|left_out| left_out.contains(&outlet.end.conduit))
            {
                message.done += 1;
                continue;
            }
            let known = &mut state.outlets[outlet.number];
            let sent = match self.send_along(port, outlet, known, payload, message) {
                Err(error) if error.kind == Kind::MemberFailed => {
                    message.pass_over(error);
                    continue;
                }
                sent => sent?,
            };
            message.pass_on();
            if self.profile.trace.on {
                let stop = self.profile.trace.now();
                let (number, size) = sent;
                self.row_of(&RowOfMessage {
                    kind: "SEND",
                    port,
                    end: &outlet.end,
                    slot: message.slot,
                    time: (began, stop),
                    number,
                    size,
                    timestamp: message.timestamp,
                });
                began = stop;
            }
        }
        if let Some((start, before, times)) = clock {
            self.sent_for(start.elapsed().saturating_sub(waited() - before), times);
        }
        match message.member_failure.take() {
            Some(failure) => Err(*failure),
            None => Ok(()),
        }
    }

    /// The carrier of an outlet. Waits until the receiver has come; `None` if the receiver has
    /// finished without coming.
    #[inline(always)]
    pub(crate) fn carrier<'a>(&self, outlet: &'a Outlet) -> Result<Option<&'a dyn Carrier>> {
        if let Some(carrier) = outlet.end.carrier.get() {
            return Ok(Some(&**carrier));
        }
        let poll = || {
            if let Some(carrier) = outlet.end.carrier.get() {
                return Ok(Some(Some(&**carrier)));
            }
            if self.core.process.finished(&outlet.end.peer) {
                return Ok(Some(None));
            }
            self.reachable(&outlet.end).map(|()| None)
        };
        // The receiver may be a member of an ensemble that is started only once this instance goes on.
        let on = || {
            let on = self.wait_on(&outlet.end, Some(&outlet.window), None);
            on.map(|on| WaitOn { joins: true, ..on })
                .into_iter()
                .collect()
        };
        self.counted(&outlet.end, || {
            self.wait(Wait::about(outlet.end.conduit), on, poll)
        })
    }

    /// Fails if the other end is a failed member of an ensemble.
    fn not_failed(&self, end: &PortEnd) -> Result<()> {
        let Some(why) = self.core.process.member_failure(&end.peer) else {
            return Ok(());
        };
        let name = instance_of(&end.peer);
        let text = format!(
            "{}: port '{}': member {name} has failed: it {why}",
            self.core.name, end.label
        );
        Err(Error {
            member: Some(Box::new(FailedMember {
                name: name.to_owned(),
                slot: end.slot(),
            })),
            ..Error::new(Kind::MemberFailed, text)
        })
    }

    /// Fails once the other end is known to be out of reach.
    pub(crate) fn reachable(&self, end: &PortEnd) -> Result<()> {
        self.not_failed(end)?;
        if let Some(why) = end.unfit.get() {
            return Err(Error::new(Kind::Connection, why.clone()));
        }
        match self.core.process.unreachable(&end.peer, end.route_medium()) {
            Some(why) => {
                let peer = match end.conduit_use {
                    ConduitUse::Ports => format!("{} ({})", instance_of(&end.peer), end.other()),
                    ConduitUse::RankTree | ConduitUse::FieldLink => written(&end.peer),
                };
                let text = format!(
                    "{}: the connection to {peer} is lost: {why}",
                    self.core.name
                );
                Err(Error::new(Kind::PeerLost, text))
            }
            None => Ok(()),
        }
    }

    /// Sends along one conduit. Returns the number and size of the message.
    #[inline(always)]
    fn send_along(
        &self,
        port: &Port,
        outlet: &Outlet,
        state: &mut OutletState,
        payload: &Payload<'_>,
        message: &mut SendState,
    ) -> Result<(u64, u64)> {
        if message.lost {
            return self.explained(outlet, message);
        }
        let Some(carrier) = self.carrier(outlet)? else {
            return self.refuse(outlet);
        };
        // A piece of a field has neither overlay nor step, in a run that counts steps, too.
        let is_bare = message.chunk.is_some() || self.is_bare(port, &message.overlay);
        let is_changed = !outlet.end.chain.is_empty() || outlet.end.may_compress(payload.length());
        if !is_bare || is_changed {
            return self.send_dressed(port, outlet, state, carrier, payload, message);
        }
        let claimed = match message.chunk {
            None => self.claim(outlet, payload.length())?,
            Some(PieceChunk {
                room: Some(bytes), ..
            }) => self.claim(outlet, bytes)?,
            Some(_) => outlet.window.claim_without_room(),
        };
        let Some(sequence) = claimed else {
            return self.refuse(outlet);
        };
        let mut head = message_header(
            outlet,
            sequence,
            (message.timestamp, message.next_timestamp),
        );
        head.tag = message.chunk.map_or(0, |chunk| chunk.exchange);
        let outgoing = Outgoing::new(head, state.plain(payload), &payload.parts);
        message
            .copy
            .iter()
            .for_each(|copy| outgoing.share(copy.clone()));
        let sent = self.hand_over(outlet, carrier, &outgoing, message)?;
        message.copy = outgoing.into_copy();
        Ok(sent)
    }

    /// Sends a message along one conduit with filters or compression, or a message with more metadata
    /// than content.
    fn send_dressed(
        &self,
        port: &Port,
        outlet: &Outlet,
        state: &mut OutletState,
        carrier: &dyn Carrier,
        payload: &Payload<'_>,
        message: &mut SendState,
    ) -> Result<(u64, u64)> {
        let mut meta = Meta {
            slot: port.resizable.then(|| (message.slot, port.slots())),
            overlay: message.overlay.as_ref().map_or(0, |(number, _)| *number),
            iteration: self
                .execution
                .counts_steps
                .then(|| message.iteration.steps().to_vec()),
            ..payload.meta()
        };
        let mut stamps = (message.timestamp, message.next_timestamp);
        let mapped = if let Some(halfway) = message.filtered.take() {
            let body;
            (body, meta, stamps) = *halfway;
            Some(body)
        } else {
            let filtered = match outlet.end.chain.is_empty() {
                true => None,
                false => Some(self.map(outlet, payload, message, &mut meta, &mut stamps)?),
            };
            let data = (payload, filtered.as_ref());
            let compressed =
                compress_if_worthwhile(outlet, state, carrier, data, message, &mut meta)?;
            compressed.or(filtered)
        };
        let whole;
        let parts: &[IoSlice<'_>] = match &mapped {
            None => &payload.parts,
            Some(body) => {
                whole = [IoSlice::new(body)];
                &whole
            }
        };
        let length = parts.iter().map(|part| part.len() as u64).sum();
        meta.supersedes = outlet.superseded(&message.iteration);
        let claimed = match meta.supersedes {
            // The message takes the place of another, so there is room.
            Some(_) => outlet.window.claim_without_room(),
            None => self.claim(outlet, length).inspect_err(|error| {
                if let Some(body) = mapped.clone().filter(|_| error.is_unfinished()) {
                    message.filtered = Some(Box::new((body, meta.clone(), stamps)));
                }
            })?,
        };
        let Some(sequence) = claimed else {
            return self.refuse(outlet);
        };
        if outlet.end.chain.chooses() {
            outlet.note(&message.iteration, sequence);
        }
        if let Some((number, overlay)) = &message.overlay {
            // Behind `last` a later message may replace this message. The receiver would then lose
            // an overlay that this message alone defines.
            if state.told != *number || outlet.end.chain.lasts > 0 {
                meta.definition = Some(encode_overlay(overlay));
                state.told = *number;
            }
        }
        let meta = Arc::new(meta);
        let outgoing = Outgoing::new(message_header(outlet, sequence, stamps), &meta, parts);
        let copy = mapped.as_ref().or(message.copy.as_ref());
        copy.into_iter()
            .for_each(|copy| outgoing.share(copy.clone()));
        let sent = self.hand_over(outlet, carrier, &outgoing, message)?;
        if let Some((_, before)) = meta.codings.first() {
            outlet.end.meter.count_compressed(*before, length);
        }
        if mapped.is_none() {
            message.copy = outgoing.into_copy();
        }
        Ok(sent)
    }

    /// Hands a message to the carrier. Returns the number and size of the message.
    #[inline(always)]
    fn hand_over(
        &self,
        outlet: &Outlet,
        carrier: &dyn Carrier,
        outgoing: &Outgoing<'_>,
        message: &mut SendState,
    ) -> Result<(u64, u64)> {
        match carrier.send(outgoing) {
            Ok(sent) => {
                self.note_sent(outlet, outgoing.length(), sent);
                Ok((outgoing.head.sequence, outgoing.length()))
            }
            Err(why) => self.undelivered(outlet, why, message),
        }
    }

    /// Counts a message that the carrier has taken.
    #[inline(always)]
    pub(super) fn note_sent(&self, outlet: &Outlet, length: u64, sent: SendReport) {
        outlet.end.meter.count(length, sent.copied);
        if sent.by_socket {
            self.ran_out(outlet, length);
        }
    }

    /// The outcome of a send of a message that the carrier has not taken.
    #[cold]
    pub(super) fn undelivered(
        &self,
        outlet: &Outlet,
        why: LinkError,
        message: &mut SendState,
    ) -> Result<(u64, u64)> {
        if !why.is_of_message() {
            return self.explained(outlet, message);
        }
        // The conduit now lacks a message, so the stream cannot go on.
        let kind = if matches!(why, LinkError::NoMemory(_)) {
            Kind::NoMemory
        } else {
            Kind::Usage
        };
        let error = Error::new(
            kind,
            format!("{}: port '{}': {why}", self.core.name, outlet.end.label),
        );
        self.fail(&error);
        Err(error)
    }

    /// Counts a message sent by a socket for want of shared memory. Logs the first such message.
    #[cold]
    fn ran_out(&self, outlet: &Outlet, length: u64) {
        outlet.end.meter.went_by_socket();
        let Some(short) = self.core.process.exchange.ran_out() else {
            return;
        };
        let (why, todo) = match short {
            Shortage::Ceiling(bytes) if length > bytes => (
                format!(
                    "an array of {length} bytes is larger than the {bytes} bytes that titin takes at most: what \
                     TITIN_SHARED_MEMORY says, or else a quarter of the memory, and more where so much is free"
                ),
                "set TITIN_SHARED_MEMORY to more, or send it in parts",
            ),
            Shortage::Ceiling(bytes) => (
                format!(
                    "arrays that receivers keep, or loans of this program, hold what there is of the {bytes} bytes that titin takes \
                     at most, unless TITIN_SHARED_MEMORY says otherwise, or it lies in smaller pieces"
                ),
                "raise that",
            ),
            Shortage::Blocks(count) => (
                format!(
                    "{count} arrays are there at a time at most, of which receivers keep too many"
                ),
                "keep fewer, or larger ones",
            ),
            Shortage::System(limit) => (limit, "raise that limit"),
        };
        let text = format!(
            "no shared memory is left for a message of {length} bytes: {why}. Such messages are copied by way of a socket; if that \
             takes too long, {todo}"
        );
        outlet.end.meter.ran_out(why);
        if !self.core.process.said_short.swap(true, Ordering::Relaxed) {
            self.log(WARNING, &text);
        }
    }

    /// Waits after the loss of a link until the manager has given the reason. Without a failure the
    /// receiver had finished.
    fn explained(&self, outlet: &Outlet, message: &mut SendState) -> Result<(u64, u64)> {
        message.lost = true;
        let on = || self.wait_to_send(outlet, 0);
        self.wait(Wait::about(outlet.end.conduit), on, || {
            match self.core.process.finished(&outlet.end.peer) {
                true => Ok(Some(())),
                false => self.reachable(&outlet.end).map(|()| None),
            }
        })?;
        message.lost = false;
        self.refuse(outlet)
    }

    /// Runs the filters before the wire.
    fn map(
        &self,
        outlet: &Outlet,
        payload: &Payload<'_>,
        message: &mut SendState,
        meta: &mut Meta,
        stamps: &mut Timestamps,
    ) -> Result<SharedBuffer> {
        let mapped = Mapped {
            content: payload.content(),
            body: message.copy_of(payload)?,
            timestamp: message.timestamp,
            next_timestamp: message.next_timestamp,
        };
        let (mapped, codings) = outlet.end.filter("to", mapped)?;
        meta.content = mapped.content;
        meta.codings = codings;
        *stamps = (mapped.timestamp, mapped.next_timestamp);
        Ok(mapped.body)
    }

    /// Waits for room in the conduit's buffer; `None` if the receiver has finished.
    #[inline(always)]
    fn claim(&self, outlet: &Outlet, length: u64) -> Result<Option<u64>> {
        if let Room::Free(sequence) = outlet.claim(length) {
            if let Some(waited) = self.went_on(outlet.end.conduit) {
                outlet.end.meter.waited(waited);
            }
            return Ok(Some(sequence));
        }
        let carrier = outlet.end.carrier.get().map(AsRef::as_ref);
        let on = || self.wait_to_send(outlet, length);
        let poll = || match outlet.claim(length) {
            Room::Free(sequence) => Ok(Some(Some(sequence))),
            Room::Full => self.reachable(&outlet.end).map(|()| None),
            Room::Closed => Ok(Some(None)),
        };
        self.counted(&outlet.end, || {
            if let Some(sequence) = carrier.and_then(|carrier| self.ask(outlet, carrier, length)) {
                return Ok(Some(sequence));
            }
            self.wait(Wait::about(outlet.end.conduit).by(carrier), on, poll)
        })
    }

    /// Asks the receiver for room, and claims the room if it comes in a moment: most receivers then
    /// make room for several messages.
    fn ask(&self, outlet: &Outlet, carrier: &dyn Carrier, length: u64) -> Option<u64> {
        let rings = self.core.bell.rings();
        carrier.ask(outlet.end.conduit, outlet.window.sent());
        if self.reporter.pending.is_none()
            && self.core.bell.is_rung_soon(rings, carrier)
            && let Room::Free(sequence) = outlet.window.claim(length)
        {
            return Some(sequence);
        }
        carrier.ask(outlet.end.conduit, outlet.window.sent());
        None
    }

    /// The outcome of a send to a receiver that has finished: an error, unless the receiver wants
    /// the last message alone (`last`).
    fn refuse(&self, outlet: &Outlet) -> Result<(u64, u64)> {
        self.not_failed(&outlet.end)?;
        if outlet.end.withdrawn.load(Ordering::Relaxed) {
            let text = format!(
                "{} sends on '{}', but the field on this port was withdrawn, which has closed the port for {}: send before, or \
                 on a port of its own",
                self.core.name,
                outlet.end.label,
                outlet.end.other()
            );
            return Err(Error::new(Kind::Usage, text));
        }
        if outlet.window.finished() {
            // Another thread closes the instance.
            self.refused()?;
        }
        if outlet.end.chain.lasts > 0 {
            return Ok((outlet.window.sent(), 0));
        }
        let end = &outlet.end;
        let is_field =
            end.conduit_use != ConduitUse::Ports && instance_of(&end.peer) != self.core.name;
        let text = match is_field {
            true => format!(
                "{}: field on port '{}': {} has finished and takes no more of it: one side makes more steps than the other, or \
                 ranks have not sent as often as each other",
                self.core.name,
                end.port_name(),
                written(&end.peer)
            ),
            false => format!(
                "{} sends on '{}', but {} has finished and takes no more messages from {}: one side makes more steps than \
                 the other",
                self.core.name,
                end.label,
                instance_of(&end.peer),
                end.other()
            ),
        };
        Err(self.by_end_of(Error::new(Kind::PortClosed, text), [&*end.peer]))
    }
}

/// The header of a message on the given conduit.
pub(crate) fn message_header(
    outlet: &Outlet,
    sequence: u64,
    (timestamp, next_timestamp): Timestamps,
) -> Head {
    let conduit = outlet.end.conduit;
    Head::new(conduit, sequence, timestamp, next_timestamp)
}
