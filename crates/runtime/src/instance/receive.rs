//! Receiving, and the beginning of a use.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use titin_model::Operator;
use titin_transport::Message as Arrived;
use titin_wire::meta::Content;
use titin_wire::settings::{Overlay, Setting, decode_overlay};

use super::send::traced;
use super::{Inner, Instance, PortId, SETTINGS_IN};
use crate::filter::{Mapped, decode};
use crate::port::{End, Inlet, InletState, Port};
use crate::sel::Call;
use crate::setting::overlay_of;
use crate::{Error, Kind, Message, Result};

/// How long a call may wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Patience {
    /// Until a message is there, the port is closed, or the run fails.
    #[default]
    Forever,
    /// At most so long.
    For(Duration),
}

/// A receiving end, as a call looks at it.
#[derive(Clone, Copy)]
struct Source<'a> {
    number: usize,
    port: &'a Port,
    inlet: &'a Inlet,
    slot: u32,
}

impl Instance {
    /// Begins the next use of the submodel: true if there is one.
    ///
    /// Without connected F_INIT ports there is one use. Else it waits until every F_INIT port has a message, or is
    /// closed: true if all have one, false if all are closed. Ports with the filter `repeat` or `pad` follow the others.
    /// The settings overlay is fixed here.
    ///
    /// # Errors
    /// [`Kind::CallOrder`] if a message of the last use was not taken, or if some F_INIT ports are closed and others are
    /// not; [`Kind::Setting`] if overlays contradict each other; as [`Instance::receive`].
    pub fn reuse(&self) -> Result<bool> {
        let inner = &self.inner;
        inner.enter()?;
        if let Some(text) = inner.cycle().untaken() {
            return Err(Error::new(Kind::CallOrder, format!("{}: {text}", inner.name)));
        }
        let sources = inner.sources(|port| port.operator == Operator::FInit);
        let leading: Vec<_> = sources.iter().copied().filter(|s| !s.follows()).collect();
        let first = !inner.cycle().used();
        if leading.is_empty() && !first {
            return Ok(false);
        }
        let Some(now) = inner.all_or_none(&leading)? else { return Ok(false) };
        for source in sources.iter().filter(|source| source.follows()) {
            let message = inner.await_message(source, Patience::Forever, now)?;
            source.inlet.lock().put_back(source.slot, message);
        }
        let overlay = inner.merge_overlays(&sources)?;
        let numbered = inner.number(overlay);
        *inner.overlay.lock().expect("never poisoned") = numbered;
        let waiting = sources.iter().filter(|source| source.port.name != SETTINGS_IN);
        let ends =
            waiting.map(|s| ((s.number, s.slot), s.port.label(s.port.vector.then_some(s.slot)))).collect();
        inner.cycle().reuse(ends);
        Ok(true)
    }

    /// Receives a message; waits until one is there.
    ///
    /// # Errors
    /// [`Kind::PortClosed`] if the sender has finished; [`Kind::Timeout`] if the patience ends; [`Kind::Usage`] for a
    /// port that sends or that nothing is connected to; [`Kind::CallOrder`] out of the submodel execution loop;
    /// [`Kind::PeerLost`] or [`Kind::Deadlock`] if the run has failed.
    pub fn receive(&self, port: PortId, slot: Option<u32>, patience: Patience) -> Result<Message> {
        let inner = &self.inner;
        inner.enter()?;
        let source = inner.source(port, slot)?;
        let _busy = source.port.enter()?;
        let now = inner.cycle().now();
        let message = inner.await_message(&source, patience, now)?;
        inner.took(&source, &message)?;
        Ok(message)
    }

    /// Receives a message if one is there.
    ///
    /// # Errors
    /// As [`Instance::receive`].
    pub fn try_receive(&self, port: PortId, slot: Option<u32>) -> Result<Option<Message>> {
        let inner = &self.inner;
        inner.enter()?;
        let source = inner.source(port, slot)?;
        let _busy = source.port.enter()?;
        let now = inner.cycle().now();
        let Some(message) = inner.poll(&source, now)? else { return Ok(None) };
        inner.took(&source, &message)?;
        Ok(Some(message))
    }

    /// Receives the next message of any of these ports, all slots of vector ports. Ports take turns; closed ones are
    /// passed over. Gives the port and the slot (0 for ports without slots).
    ///
    /// # Errors
    /// [`Kind::PortClosed`] once all are closed; as [`Instance::receive`].
    pub fn receive_any(&self, ports: &[PortId], patience: Patience) -> Result<(PortId, u32, Message)> {
        let inner = &self.inner;
        inner.enter()?;
        let mut sources = Vec::new();
        let mut busy = Vec::new();
        for port in ports {
            let slots = inner.ports[port.0].slots();
            let vector = inner.ports[port.0].vector;
            for slot in 0..slots {
                sources.push(inner.source(*port, vector.then_some(slot))?);
            }
            busy.push(inner.ports[port.0].enter()?);
        }
        if sources.is_empty() {
            return Err(Error::new(Kind::Usage, "receive_any was given no port with a slot"));
        }
        let now = inner.cycle().now();
        let turn = inner.turn.fetch_add(1, Ordering::Relaxed) as usize;
        let on = || sources.iter().map(|source| source.wait_on(inner)).collect();
        let poll = || {
            let mut open = false;
            for step in 0..sources.len() {
                let index = (turn + step) % sources.len();
                match inner.poll(&sources[index], now) {
                    Ok(Some(message)) => return Ok(Some((index, message))),
                    Ok(None) => open = true,
                    Err(error) if error.kind == Kind::PortClosed => {}
                    Err(error) => return Err(error),
                }
            }
            if open {
                return Ok(None);
            }
            let names: Vec<&str> = sources.iter().map(|source| source.inlet.end.label.as_str()).collect();
            Err(Error::new(Kind::PortClosed, format!("all of the ports {} are closed", names.join(", "))))
        };
        let (index, message) = inner.wait(patience.deadline(), on, poll)?;
        let source = &sources[index];
        inner.took(source, &message)?;
        Ok((PortId(source.number), source.slot, message))
    }
}

impl Patience {
    fn deadline(self) -> Option<Instant> {
        match self {
            Patience::Forever => None,
            // What lies beyond the clock's range is for ever.
            Patience::For(time) => Instant::now().checked_add(time),
        }
    }
}

impl Source<'_> {
    /// Whether it follows the other F_INIT ports rather than lead them.
    fn follows(&self) -> bool {
        self.inlet.end.chain.repeat || self.inlet.end.chain.pad
    }

    fn wait_on(&self, inner: &Inner) -> titin_wire::control::WaitOn {
        inner.wait_on(&self.inlet.end, None, Some(&self.inlet.inbox))
    }
}

impl Inlet {
    fn lock(&self) -> std::sync::MutexGuard<'_, InletState> {
        self.state.lock().expect("nothing panics while an inlet is locked")
    }
}

impl InletState {
    fn put_back(&mut self, slot: u32, message: Message) {
        self.stash.entry(slot).or_default().push_front(message);
    }
}

impl Inner {
    /// The connected receiving ends of these ports, all slots.
    fn sources(&self, which: impl Fn(&Port) -> bool) -> Vec<Source<'_>> {
        let mut found = Vec::new();
        for (number, port) in self.ports.iter().enumerate().filter(|(_, port)| which(port)) {
            for (place, inlet) in port.inlets.iter().enumerate() {
                let Some(inlet) = inlet else { continue };
                let slots =
                    if port.resizable { 0..port.slots().max(1) } else { place as u32..place as u32 + 1 };
                found.extend(slots.map(|slot| Source { number, port, inlet, slot }));
            }
        }
        found
    }

    fn source(&self, port: PortId, slot: Option<u32>) -> Result<Source<'_>> {
        let number = port.0;
        let port = &self.ports[number];
        if port.operator.sends() {
            let text = format!(
                "receive on {} port '{}': {} sends; receive on F_INIT and S ports",
                port.operator, port.name, port.operator
            );
            return Err(Error::new(Kind::CallOrder, text));
        }
        let (place, slot) = port.find(slot)?;
        let inlet = port.inlets.get(place).and_then(Option::as_ref).ok_or_else(|| {
            let text = format!(
                "nothing is connected to {} port '{}' of {}: connect it in the description, or give a default",
                port.operator, port.name, self.name
            );
            Error::new(Kind::Usage, text)
        })?;
        Ok(Source { number, port, inlet, slot })
    }

    /// Waits until each of the ends has a message or is closed. The latest time of the messages if all have one (with
    /// none of them: no time), `None` if all are closed. The messages are put back.
    fn all_or_none(&self, sources: &[Source<'_>]) -> Result<Option<Option<f64>>> {
        let (mut now, mut closed) = (None::<f64>, Vec::new());
        for source in sources {
            match self.await_message(source, Patience::Forever, None) {
                Ok(message) => {
                    now = Some(now.map_or(message.timestamp, |now| now.max(message.timestamp)));
                    source.inlet.lock().put_back(source.slot, message);
                }
                Err(error) if error.kind == Kind::PortClosed => closed.push(source.inlet.end.label.as_str()),
                Err(error) => return Err(error),
            }
        }
        if closed.is_empty() {
            return Ok(Some(now));
        }
        let open: Vec<&str> =
            sources.iter().map(|s| s.inlet.end.label.as_str()).filter(|l| !closed.contains(l)).collect();
        if open.is_empty() {
            return Ok(None);
        }
        let text = format!(
            "{}: F_INIT port{} {} closed, but {} had a message: the senders do not make the same number of steps; where one \
             message serves several uses, put the filter `repeat` on its conduit",
            self.name,
            if closed.len() == 1 { "" } else { "s" },
            closed.join(", ") + if closed.len() == 1 { " is" } else { " are" },
            open.join(", ")
        );
        Err(Error::new(Kind::CallOrder, text))
    }

    /// The overlay of the use that begins: what `muscle_settings_in` brings, and what came with the F_INIT messages.
    fn merge_overlays(&self, sources: &[Source<'_>]) -> Result<Overlay> {
        let mut merged: BTreeMap<String, (Setting, String)> = BTreeMap::new();
        for source in sources {
            let mut state = source.inlet.lock();
            let Some(message) = state.stash.get(&source.slot).and_then(|queue| queue.front()) else {
                continue;
            };
            let mut overlay = message.settings.as_deref().cloned().unwrap_or_default();
            if source.port.name == SETTINGS_IN {
                overlay.extend(settings_of(message)?);
                state.stash.get_mut(&source.slot).and_then(|queue| queue.pop_front());
            }
            let from = source.inlet.end.other();
            for (name, value) in overlay {
                match merged.get(&name) {
                    Some((other, other_from)) if *other != value => {
                        let text = format!(
                            "{}: the settings overlays of {other_from} and {from} differ: '{name}' is {other} and {value}",
                            self.name
                        );
                        return Err(Error::new(Kind::Setting, text));
                    }
                    Some(_) => {}
                    None => drop(merged.insert(name, (value, from.clone()))),
                }
            }
        }
        Ok(merged.into_iter().map(|(name, (value, _))| (name, value)).collect())
    }

    fn await_message(&self, source: &Source<'_>, patience: Patience, now: Option<f64>) -> Result<Message> {
        if let Some(message) = self.poll(source, now)? {
            return Ok(message);
        }
        let start = (Instant::now(), self.trace.now());
        let outcome =
            self.wait(patience.deadline(), || vec![source.wait_on(self)], || self.poll(source, now));
        source.inlet.end.meter.waited(start.0.elapsed());
        if let (true, Ok(message)) = (self.trace.on, &outcome) {
            let (end, stop) = (&source.inlet.end, self.trace.now());
            let size = (source.inlet.inbox.consumed().saturating_sub(1), message.body.len() as u64);
            self.row(traced(
                "RECEIVE_WAIT",
                source.port,
                source.slot,
                end,
                start.1,
                stop,
                size,
                message.timestamp,
            ));
        }
        outcome.map_err(|mut error| {
            if error.kind == Kind::Timeout {
                error.text = format!(
                    "{}: no message from {} on port '{}' in the time given",
                    self.name,
                    source.inlet.end.other(),
                    source.inlet.end.label
                );
            }
            error
        })
    }

    /// Notes that the program has a message now.
    fn took(&self, source: &Source<'_>, message: &Message) -> Result<()> {
        let Source { number, port, slot, .. } = *source;
        // What `repeat` gives again and `pad` makes up has no time of its own.
        let timestamp = if source.follows() {
            self.cycle().now().unwrap_or(message.timestamp)
        } else {
            message.timestamp
        };
        let call = Call { port: &port.name, end: (number, slot), operator: port.operator, timestamp };
        self.cycle()
            .call(&call)
            .map_err(|text| Error::new(Kind::CallOrder, format!("{}: {text}", self.name)))?;
        self.at(timestamp);
        if self.trace.on {
            let at = self.trace.now();
            let size = (source.inlet.inbox.consumed().saturating_sub(1), message.body.len() as u64);
            self.row(traced("RECEIVE", port, slot, &source.inlet.end, at, at, size, message.timestamp));
        }
        Ok(())
    }

    /// Looks for a message for this end and takes it. `now` is the time of the use, by which `repeat` and `pad` choose.
    fn poll(&self, source: &Source<'_>, now: Option<f64>) -> Result<Option<Message>> {
        let Source { port, inlet, slot, .. } = *source;
        let mut state = inlet.lock();
        if let Some(message) = state.stash.get_mut(&slot).and_then(|queue| queue.pop_front()) {
            return Ok(Some(message));
        }
        if source.follows() {
            return self.poll_following(inlet, &mut state, now);
        }
        while inlet.due() {
            let Some(arrived) = inlet.inbox.take() else { break };
            let for_slot = if port.resizable { self.resize(port, &arrived) } else { slot };
            let message = self.unpack(inlet, &mut state, arrived)?;
            if for_slot == slot {
                return Ok(Some(message));
            }
            state.stash.entry(for_slot).or_default().push_back(message);
        }
        if inlet.inbox.exhausted() {
            let text = format!(
                "{}: port '{}' is closed: {} has finished and sends no more",
                self.name,
                inlet.end.label,
                inlet.end.other()
            );
            return Err(Error::new(Kind::PortClosed, text));
        }
        if !inlet.inbox.ready() {
            self.reachable(&inlet.end)?;
        }
        Ok(None)
    }

    /// Takes the number of slots from a message of a port whose slots the sender counts; the message's slot.
    fn resize(&self, port: &Port, arrived: &Arrived) -> u32 {
        let (slot, slots) = arrived.meta.slot.unwrap_or((0, 1));
        port.set_slots(slots);
        slot
    }

    /// `repeat` and `pad`: what the sender has sent for times up to `now`. With its next timestamp the sender says until
    /// when a message holds; so the choice does not depend on how fast messages travel.
    fn poll_following(
        &self,
        inlet: &Inlet,
        state: &mut InletState,
        now: Option<f64>,
    ) -> Result<Option<Message>> {
        let due = |timestamp: f64| now.is_none_or(|now| timestamp <= now);
        while inlet.inbox.peek().is_some_and(|head| state.latest.is_none() || due(head.timestamp)) {
            let Some(arrived) = inlet.inbox.take() else { break };
            let message = self.unpack(inlet, state, arrived)?;
            let give = inlet.end.chain.pad && due(message.timestamp);
            state.latest = Some(message.clone());
            if give {
                return Ok(Some(message));
            }
        }
        let ended = inlet.inbox.ended();
        let holds = |message: &Message| {
            message.next_timestamp.is_none_or(|next| now.is_some_and(|now| now < next)) || inlet.inbox.ready()
        };
        match &state.latest {
            Some(message) if !ended && !holds(message) => self.reachable(&inlet.end).map(|()| None),
            Some(message) if inlet.end.chain.repeat => Ok(Some(message.clone())),
            None if !ended => self.reachable(&inlet.end).map(|()| None),
            None if inlet.end.chain.repeat => {
                let text = format!(
                    "{}: port '{}' is closed: {} has finished without sending anything to repeat",
                    self.name,
                    inlet.end.label,
                    inlet.end.other()
                );
                Err(Error::new(Kind::PortClosed, text))
            }
            _ => Ok(Some(Message::nil(now.unwrap_or(0.0)))),
        }
    }

    /// Makes an arrived message what the program gets: uncompressed, filtered, with its overlay.
    fn unpack(&self, inlet: &Inlet, state: &mut InletState, arrived: Arrived) -> Result<Message> {
        let Arrived { head, meta, body } = arrived;
        let End { meter, chain, .. } = &inlet.end;
        meter.count(body.len() as u64, 0);
        if let Some(definition) = &meta.definition {
            let overlay = decode_overlay(definition)
                .map_err(|error| Error::new(Kind::TypeMismatch, error.to_string()))?;
            state.overlay = (meta.overlay, Arc::new(overlay));
        }
        let settings =
            (meta.overlay != 0 && meta.overlay == state.overlay.0).then(|| state.overlay.1.clone());
        let mut mapped = Mapped {
            content: meta.content.clone(),
            body: decode(body, &meta.codings)?,
            timestamp: head.timestamp,
            next_timestamp: head.next_timestamp,
        };
        if !chain.is_empty() {
            (mapped, _) = chain.apply(mapped)?;
        }
        let Mapped { content, body, timestamp, next_timestamp } = mapped;
        Ok(Message { timestamp, next_timestamp, content, settings, body })
    }
}

impl Inlet {
    /// Whether the oldest message may be taken. Behind `last` one that announces a next one is not the last.
    fn due(&self) -> bool {
        let intermediate = |head: titin_wire::frame::Head| head.next_timestamp.is_some();
        !self.end.chain.last || self.inbox.ended() || !self.inbox.peek().is_some_and(intermediate)
    }
}

/// The settings that a message on `muscle_settings_in` carries: a map from names to values.
fn settings_of(message: &Message) -> Result<Overlay> {
    if message.content == Content::Nil {
        return Ok(Overlay::new());
    }
    overlay_of(&message.structure()?).map_err(|why| {
        let text = format!("a message on {SETTINGS_IN} is a map from names of settings to values; {why}");
        Error::new(Kind::TypeMismatch, text)
    })
}
