//! Sending.

use std::io::IoSlice;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use titin_model::Operator;
use titin_transport::{Buffer, Carrier, Lost, Outgoing, Room, Shortage};
use titin_wire::ConduitId;
use titin_wire::control::Event;
use titin_wire::frame::Head;
use titin_wire::meta::{Layout, MAX_RANK, Meta};
use titin_wire::settings::{Overlay, encode_overlay};

use super::{Inner, Instance, PortId, event};
use crate::filter::{Mapped, no_memory};
use crate::iteration::Iteration;
use crate::port::{End, Outlet, OutletState, Port, PortState};
use crate::profile::stands_for;
use crate::ranks::{instance_of, is_between_ranks, port_of_field, written};
use crate::sel::Call;
use crate::{Error, Kind, Loan, Payload, Result};

/// The most that an overlay may take of a message's metadata.
const MAX_OVERLAY: usize = titin_wire::frame::MAX_META as usize / 2;

impl Instance {
    /// Sends a message. Returns when the caller may change the payload's memory; waits only while the conduit's buffer
    /// is full, or until the receiver has come. On a port that nothing is connected to it does nothing.
    ///
    /// `settings` is the overlay to go with the message; `None` is the one in force.
    ///
    /// # Errors
    /// [`Kind::Usage`] for a port that receives, a slot that is not there or data that do not hold together;
    /// [`Kind::CallOrder`] out of the submodel execution loop; [`Kind::PortClosed`] if the receiver has finished;
    /// [`Kind::PeerLost`] or [`Kind::Deadlock`] if the run has failed.
    pub fn send(
        &self,
        port: PortId,
        slot: Option<u32>,
        payload: &Payload<'_>,
        timestamp: f64,
        next_timestamp: Option<f64>,
        settings: Option<&Overlay>,
    ) -> Result<()> {
        if self.inner.ports[port.0].has_field.load(Ordering::Relaxed) {
            self.inner.enter()?;
            self.inner.refuse_send("send", port)?;
        }
        self.send_along_most(
            None,
            port,
            slot,
            payload,
            (timestamp, next_timestamp),
            settings,
        )
    }

    /// As [`Instance::send`], but not along these conduits of the port; the call counts as made for all of them.
    pub(crate) fn send_but(
        &self,
        apart: Vec<ConduitId>,
        port: PortId,
        payload: &Payload<'_>,
        stamps: Stamps,
    ) -> Result<()> {
        self.send_along_most(
            Some(apart).filter(|apart| !apart.is_empty()),
            port,
            None,
            payload,
            stamps,
            None,
        )
    }

    #[inline(always)]
    fn send_along_most(
        &self,
        apart: Option<Vec<ConduitId>>,
        port: PortId,
        slot: Option<u32>,
        payload: &Payload<'_>,
        (timestamp, next_timestamp): Stamps,
        settings: Option<&Overlay>,
    ) -> Result<()> {
        let inner = &self.inner;
        inner.enter()?;
        let number = port.0;
        let port = &inner.ports[number];
        if !port.operator.sends() {
            let text = format!(
                "send on {} port '{}': {} receives; send on O_I and O_F ports",
                port.operator, port.name, port.operator
            );
            return Err(Error::new(Kind::Usage, text));
        }
        let mut state = port.enter()?;
        let (place, slot) = port.find(slot)?;
        payload.check()?;
        if let Some(next) = next_timestamp.filter(|next| next.is_nan() || *next < timestamp) {
            let text = format!(
                "the next timestamp on port '{}' is {next:?}, before {timestamp:?}",
                port.name
            );
            return Err(Error::new(Kind::Usage, text));
        }
        if next_timestamp.is_some_and(f64::is_infinite) {
            let text = format!(
                "the next timestamp on port '{}' is infinite; give none where no message follows",
                port.name
            );
            return Err(Error::new(Kind::Usage, text));
        }
        if let Some(index) = state
            .sending
            .iter()
            .position(|sending| sending.slot == slot)
        {
            let mut halfway = state.sending.swap_remove(index);
            // After an interruption a program need not go on with what it was at.
            let same = (halfway.timestamp, halfway.next_timestamp) == (timestamp, next_timestamp);
            if same || inner.light.is_some() {
                let outlets = &port.outlets[place];
                let sent = inner.send_along_all(port, outlets, &mut state, payload, &mut halfway);
                state.keep(halfway, &sent);
                return sent;
            }
        }
        let overlay = match settings {
            None if !inner.overlaid.load(Ordering::Acquire) => None,
            None => Some(inner.overlay.lock().expect("never poisoned").clone()),
            Some(overlay) => Some(inner.number(overlay.clone())?),
        };
        let overlay = overlay.filter(|(number, _)| *number != 0);
        let (end, operator, timeline) = ((number, slot), port.operator, port.timeline);
        let call = Call {
            port: &port.name,
            end,
            operator,
            timeline,
            timestamp,
            next: next_timestamp,
        };
        let refused = |text| Error::new(Kind::CallOrder, format!("{}: {text}", inner.name));
        let counted = inner.counts_steps;
        if counted {
            // A call that is refused ends no steps.
            inner.cycle().check(&call).map_err(refused)?;
            match operator {
                Operator::OI => inner.pass_steps(operator, timeline, end)?,
                _ => inner.end_steps()?,
            }
        }
        let mut cycle = inner.cycle();
        let iteration = if counted {
            cycle.iteration(operator, timeline, end)
        } else {
            Iteration::default()
        };
        cycle.call(&call).map_err(refused)?;
        let misannounced = cycle.take_misannounced();
        drop(cycle);
        misannounced.inspect(|text| inner.log(super::close::WARNING, text));
        inner.goes_on();
        inner.at(timestamp);

        let Some(outlets) = port.outlets.get(place) else {
            return Ok(());
        };
        let plain = Sending::of(payload, (timestamp, next_timestamp));
        let mut sending = Sending {
            slot,
            iteration,
            overlay,
            apart,
            ..plain
        };
        let sent = inner.send_along_all(port, outlets, &mut state, payload, &mut sending);
        state.keep(sending, &sent);
        sent
    }
}

impl PortState {
    /// Keeps a send that is to be made again.
    #[inline(always)]
    fn keep(&mut self, sending: Sending, outcome: &Result<()>) {
        if outcome.as_ref().is_err_and(Error::is_unfinished) {
            // Most often it is the only one, and there may be a hundred thousand ports.
            self.sending.reserve_exact(1);
            self.sending.push(sending);
        }
    }
}

impl Instance {
    /// Memory for an array that is to be sent on this port: peers on this host read it where it lies. It does not wait,
    /// and holds for any port; that of one that sends is asked for so that a wrong name is noticed.
    ///
    /// # Errors
    /// [`Kind::Usage`] for a port that receives, a slot that is not there, or more bytes than can be counted;
    /// [`Kind::NoMemory`] if there is none.
    pub fn loan(&self, port: PortId, slot: Option<u32>, layout: Layout) -> Result<Loan> {
        let inner = &self.inner;
        inner.enter()?;
        let number = port;
        let port = &inner.ports[number.0];
        if !port.operator.sends() {
            let text = format!(
                "loan on {} port '{}': {} receives; memory is lent for what is sent",
                port.operator, port.name, port.operator
            );
            return Err(Error::new(Kind::Usage, text));
        }
        port.find(slot)?;
        if port.has_field.load(Ordering::Relaxed) {
            inner.refuse_send("loan", number)?;
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
        let memory = inner.process.exchange.loan(length).map_err(no_memory)?;
        Ok(Loan::new(layout, memory))
    }
}

/// What goes out by every conduit of a slot, and how far it has come.
pub(crate) struct Sending {
    slot: u32,
    timestamp: f64,
    next_timestamp: Option<f64>,
    iteration: Iteration,
    /// The overlay that goes with it, and its number.
    overlay: Option<(u32, Arc<Overlay>)>,
    /// The payload as filters and several receivers share it.
    copy: Option<Arc<Buffer>>,
    /// The conduits that do not get it, if there are any.
    apart: Option<Vec<ConduitId>>,
    /// How many of the conduits have had it.
    done: usize,
    /// What the filters before the wire have made of it for the next conduit, if the call came back from there.
    mapped: Option<Box<(Arc<Buffer>, Meta, Stamps)>>,
    /// The link of that conduit is gone, and the reason is not known yet.
    lost: bool,
    /// What a part of a piece of a field is.
    part: Option<Part>,
}

/// A part of what one rank sends to another in one exchange of a field.
#[derive(Clone, Copy)]
pub(crate) struct Part {
    /// Which exchange, counted from 0.
    pub(crate) exchange: u32,
    /// The bytes of all parts, for which the first one claims room, so that none waits where the first did not.
    pub(crate) room: Option<u64>,
}

/// The timestamp and the next one.
type Stamps = (f64, Option<f64>);

impl Sending {
    /// A message that says nothing but what its data are.
    #[inline(always)]
    pub(crate) fn of(payload: &Payload<'_>, (timestamp, next_timestamp): Stamps) -> Self {
        Sending {
            slot: 0,
            timestamp,
            next_timestamp,
            iteration: Iteration::default(),
            overlay: None,
            copy: payload.lent.clone(),
            apart: None,
            done: 0,
            mapped: None,
            lost: false,
            part: None,
        }
    }

    pub(crate) fn part(self, part: Part) -> Self {
        Sending {
            part: Some(part),
            ..self
        }
    }
}

impl Inner {
    /// An overlay with its number, by which receivers know it once they have seen it.
    pub(crate) fn number(&self, overlay: Overlay) -> Result<(u32, Arc<Overlay>)> {
        if overlay.is_empty() {
            return Ok((0, Arc::default()));
        }
        let current = self.overlay.lock().expect("never poisoned").clone();
        if *current.1 == overlay {
            return Ok(current);
        }
        let mut numbered = self.numbered.lock().expect("never poisoned");
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
        message: &mut Sending,
    ) -> Result<()> {
        // Of two threads that send at once one may not be counted: it is a sample.
        let turn = self.sends.load(Ordering::Relaxed);
        self.sends.store(turn.wrapping_add(1), Ordering::Relaxed);
        let times = match turn {
            _ if self.trace.off => None,
            _ if self.trace.on => Some(1),
            turn => stands_for(turn),
        };
        // Time spent waiting is counted as it is; only the rest may be a sample that stands for others.
        let waited = || {
            outlets
                .iter()
                .map(|outlet| outlet.end.meter.waited_so_far())
                .sum::<Duration>()
        };
        let clock = times.map(|times| (Instant::now(), waited(), times));
        let mut began = if self.trace.on { self.trace.now() } else { 0 };
        while let Some(outlet) = outlets.get(message.done) {
            if message
                .apart
                .as_ref()
                .is_some_and(|apart| apart.contains(&outlet.end.conduit))
            {
                message.done += 1;
                continue;
            }
            let known = &mut state.outlets[outlet.number];
            let sent = self.send_along(port, outlet, known, payload, message)?;
            message.done += 1;
            if self.trace.on {
                let (slot, timestamp, sent_at) =
                    (message.slot, message.timestamp, self.trace.now());
                self.row(traced(
                    "SEND",
                    port,
                    slot,
                    &outlet.end,
                    began,
                    sent_at,
                    sent,
                    timestamp,
                ));
                began = sent_at;
            }
        }
        if let Some((start, before, times)) = clock {
            self.sent_for(start.elapsed().saturating_sub(waited() - before), times);
        }
        Ok(())
    }

    /// The carrier of an outlet; waits until the receiver has come. `None` if it has finished without.
    #[inline(always)]
    pub(crate) fn carrier<'a>(&self, outlet: &'a Outlet) -> Result<Option<&'a dyn Carrier>> {
        if let Some(carrier) = outlet.end.carrier.get() {
            return Ok(Some(&**carrier));
        }
        let poll = || {
            if let Some(carrier) = outlet.end.carrier.get() {
                return Ok(Some(Some(&**carrier)));
            }
            if self.process.finished(&outlet.end.peer) {
                return Ok(Some(None));
            }
            self.reachable(&outlet.end).map(|()| None)
        };
        // Not reported: nobody can end this wait but the receiver by coming, and for that the manager waits itself.
        self.counted(&outlet.end, || {
            self.wait(Some(outlet.end.conduit), None, None, Vec::new, poll)
        })
    }

    /// Fails once it is sure that the other end cannot be reached.
    pub(crate) fn reachable(&self, end: &End) -> Result<()> {
        if let Some(why) = end.unfit.get() {
            return Err(Error::new(Kind::Connection, why.clone()));
        }
        match self.process.unreachable(&end.peer, end.way()) {
            Some(why) => {
                let who = if is_between_ranks(&end.label) {
                    written(&end.peer)
                } else {
                    format!("{} ({})", end.peer, end.other())
                };
                let text = format!("{}: the connection to {who} is lost: {why}", self.name);
                Err(Error::new(Kind::PeerLost, text))
            }
            None => Ok(()),
        }
    }

    /// Sends along one conduit; the message's number and size.
    #[inline(always)]
    fn send_along(
        &self,
        port: &Port,
        outlet: &Outlet,
        state: &mut OutletState,
        payload: &Payload<'_>,
        message: &mut Sending,
    ) -> Result<(u64, u64)> {
        if message.lost {
            return self.explained(outlet, message);
        }
        let Some(carrier) = self.carrier(outlet)? else {
            return self.refuse(outlet);
        };
        // Most messages say nothing but what their data are.
        let bare = message.overlay.is_none() && !port.resizable && !self.counts_steps;
        if !bare || !outlet.end.chain.is_empty() {
            return self.send_dressed(port, outlet, state, carrier, payload, message);
        }
        let claimed = match message.part {
            None => self.claim(outlet, payload.length())?,
            Some(Part {
                room: Some(bytes), ..
            }) => self.claim(outlet, bytes)?,
            Some(_) => outlet.window.claim_without_room(),
        };
        let Some(sequence) = claimed else {
            return self.refuse(outlet);
        };
        let mut head = head(
            outlet,
            sequence,
            (message.timestamp, message.next_timestamp),
        );
        head.tag = message.part.map_or(0, |part| part.exchange);
        let outgoing = Outgoing::new(head, state.plain(payload), &payload.parts);
        message
            .copy
            .iter()
            .for_each(|copy| outgoing.share(copy.clone()));
        let sent = self.hand_over(outlet, carrier, &outgoing, message)?;
        message.copy = outgoing.into_copy();
        Ok(sent)
    }

    /// Sends a message along one conduit that goes through filters, or has more to say.
    fn send_dressed(
        &self,
        port: &Port,
        outlet: &Outlet,
        state: &mut OutletState,
        carrier: &dyn Carrier,
        payload: &Payload<'_>,
        message: &mut Sending,
    ) -> Result<(u64, u64)> {
        let mut meta = Meta {
            slot: port.resizable.then(|| (message.slot, port.slots())),
            overlay: message.overlay.as_ref().map_or(0, |(number, _)| *number),
            iteration: self
                .counts_steps
                .then(|| message.iteration.steps().to_vec()),
            ..payload.meta()
        };
        let mut stamps = (message.timestamp, message.next_timestamp);
        let mapped = if outlet.end.chain.is_empty() {
            None
        } else if let Some(halfway) = message.mapped.take() {
            let body;
            (body, meta, stamps) = *halfway;
            Some(body)
        } else {
            Some(self.map(outlet, payload, message, &mut meta, &mut stamps)?)
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
            // It takes another one's place, which had to be there.
            Some(_) => outlet.window.claim_without_room(),
            None => self.claim(outlet, length).inspect_err(|error| {
                if let Some(body) = mapped.clone().filter(|_| error.is_unfinished()) {
                    message.mapped = Some(Box::new((body, meta.clone(), stamps)));
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
            // Behind `last` a message may be dropped for a later one, and with it what only it has told.
            if state.told != *number || outlet.end.chain.lasts > 0 {
                meta.definition = Some(encode_overlay(overlay));
                state.told = *number;
            }
        }
        let meta = Arc::new(meta);
        let outgoing = Outgoing::new(head(outlet, sequence, stamps), &meta, parts);
        let copy = mapped.as_ref().or(message.copy.as_ref());
        copy.into_iter()
            .for_each(|copy| outgoing.share(copy.clone()));
        let sent = self.hand_over(outlet, carrier, &outgoing, message)?;
        if mapped.is_none() {
            message.copy = outgoing.into_copy();
        }
        Ok(sent)
    }

    /// Hands a message to its carrier; its number and size.
    #[inline(always)]
    fn hand_over(
        &self,
        outlet: &Outlet,
        carrier: &dyn Carrier,
        outgoing: &Outgoing<'_>,
        message: &mut Sending,
    ) -> Result<(u64, u64)> {
        let length = outgoing.length();
        match carrier.send(outgoing) {
            Ok(sent) => {
                outlet.end.meter.count(length, sent.copied);
                if sent.by_socket {
                    self.ran_out(outlet, length);
                }
                Ok((outgoing.head.sequence, length))
            }
            Err(why) if why.is_of_message() => {
                // The conduit lacks a message now, so there is no going on.
                let kind = if matches!(why, Lost::NoMemory(_)) {
                    Kind::NoMemory
                } else {
                    Kind::Usage
                };
                let error = Error::new(
                    kind,
                    format!("{}: port '{}': {why}", self.name, outlet.end.label),
                );
                self.fail(&error);
                Err(error)
            }
            Err(_) => self.explained(outlet, message),
        }
    }

    /// There was no shared memory for a message, which went by a socket. Counted, and said once.
    #[cold]
    fn ran_out(&self, outlet: &Outlet, length: u64) {
        outlet.end.meter.went_by_socket();
        let Some(short) = self.process.exchange.ran_out() else {
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
        if !self.process.said_short.swap(true, Ordering::Relaxed) {
            self.log(super::close::WARNING, &text);
        }
    }

    /// The link is gone. The manager says why, unless the receiver had finished.
    fn explained(&self, outlet: &Outlet, message: &mut Sending) -> Result<(u64, u64)> {
        message.lost = true;
        let on = || vec![self.wait_on(&outlet.end, Some(&outlet.window), None)];
        self.wait(Some(outlet.end.conduit), None, None, on, || {
            match self.process.finished(&outlet.end.peer) {
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
        message: &mut Sending,
        meta: &mut Meta,
        stamps: &mut Stamps,
    ) -> Result<Arc<Buffer>> {
        let body = match &message.copy {
            Some(copy) => copy.clone(),
            None => {
                let copy = Arc::new(Buffer::gather(&payload.parts).map_err(no_memory)?);
                message.copy.insert(copy).clone()
            }
        };
        let mapped = Mapped {
            content: payload.content(),
            body,
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
        if let Room::Free(sequence) = outlet.window.claim(length) {
            if let Some(waited) = self.went_on(outlet.end.conduit) {
                outlet.end.meter.waited(waited);
            }
            return Ok(Some(sequence));
        }
        if let Some(carrier) = outlet.end.carrier.get() {
            carrier.ask(outlet.end.conduit, outlet.window.sent());
        }
        let on = || {
            let mut on = self.wait_on(&outlet.end, Some(&outlet.window), None);
            on.ahead_bytes += length;
            vec![on]
        };
        let carrier = outlet.end.carrier.get().map(AsRef::as_ref);
        let poll = || match outlet.window.claim(length) {
            Room::Free(sequence) => Ok(Some(Some(sequence))),
            Room::Full => self.reachable(&outlet.end).map(|()| None),
            Room::Closed => Ok(Some(None)),
        };
        self.counted(&outlet.end, || {
            self.wait(Some(outlet.end.conduit), None, carrier, on, poll)
        })
    }

    /// What a send to a receiver that has finished comes to: nothing for one that wants the latest only, else an error.
    fn refuse(&self, outlet: &Outlet) -> Result<(u64, u64)> {
        if self.is_withdrawn(outlet.end.conduit) {
            let text = format!(
                "{} sends on '{}', but the field on this port was withdrawn, which has closed the port for {}: send before, or \
                 on a port of its own",
                self.name,
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
        let text = match is_between_ranks(&end.label) && instance_of(&end.peer) != self.name {
            true => format!(
                "{}: field on port '{}': {} has finished and takes no more of it: one side makes more steps than the other, or \
                 ranks have not sent as often as each other",
                self.name,
                port_of_field(&end.label),
                written(&end.peer)
            ),
            false => format!(
                "{} sends on '{}', but {} has finished and takes no more messages from {}: one side makes more steps than \
                 the other",
                self.name,
                end.label,
                end.peer,
                end.other()
            ),
        };
        Err(self.by_end_of(Error::new(Kind::PortClosed, text), [&*end.peer]))
    }
}

/// What goes before a message on this conduit.
pub(crate) fn head(outlet: &Outlet, sequence: u64, (timestamp, next_timestamp): Stamps) -> Head {
    let conduit = outlet.end.conduit;
    Head::new(conduit, sequence, timestamp, next_timestamp)
}

/// A row of the trace about a message.
#[allow(clippy::too_many_arguments)]
pub(crate) fn traced(
    kind: &str,
    port: &Port,
    slot: u32,
    end: &End,
    start: i64,
    stop: i64,
    (number, size): (u64, u64),
    timestamp: f64,
) -> Event {
    Event {
        port: Some(port.name.to_string()),
        operator: Some(port.operator.key().to_owned()),
        slots: port.vector.then(|| port.slots()),
        slot: port.vector.then_some(slot),
        conduit: Some(end.conduit.0),
        number: Some(number),
        size: Some(size),
        timestamp: Some(timestamp),
        ..event(kind, start, stop)
    }
}
