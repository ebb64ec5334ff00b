//! Receiving, and the beginning of a use.

use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use titin_model::Operator;
use titin_transport::{Carrier, Inbox, Latched, Message as Arrived};
use titin_wire::meta::{Content, Meta};
use titin_wire::ranks::CollectiveResult;
use titin_wire::settings::{Overlay, Setting, decode_overlay};

use super::choose::{Here, iteration_of};
use super::send::traced;
use super::together::unexpected;
use super::{Inner, Instance, PortId, SETTINGS_IN};
use crate::field::ordinary;
use crate::filter::{Mapped, decode};
use crate::iteration::Iteration;
use crate::port::{End, Inlet, InletState, Port, PortState, two_at_once};
use crate::ranks::{instance_of, is_between_ranks, port_of_field, written};
use crate::setting::overlay_of;
use crate::wait::later;
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
pub(super) struct Source<'a> {
    pub(super) number: usize,
    pub(super) port: &'a Port,
    pub(super) inlet: &'a Inlet,
    /// Where in the port the inlet is.
    pub(super) place: usize,
    /// Where among the ports of a call on several its port is.
    pub(super) held: usize,
    /// `None` for whatever slot comes, of a port whose slots the sender counts.
    pub(super) slot: Option<u32>,
}

/// The ports that a call has taken.
pub(super) type Held<'a> = Vec<Latched<'a, PortState>>;

/// What a waiting receiver got.
enum Found {
    /// A message as the program gets it, and its slot.
    Taken(u32, Message),
    /// A message as it arrived, past the inbox.
    Arrived(Arrived),
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
    /// not; [`Kind::Setting`] if overlays contradict each other; [`Kind::Usage`] if another thread is in this call; as
    /// [`Instance::receive`].
    pub fn reuse(&self) -> Result<bool> {
        let inner = &self.inner;
        inner.enter()?;
        let next = match inner.ranks {
            None => inner.next_use(),
            Some(_) => inner.reuse_together(|| inner.next_use()),
        };
        Ok(next?.map(|next| inner.begin(next)).is_some())
    }

    /// Receives a message; waits until one is there.
    ///
    /// # Errors
    /// [`Kind::PortClosed`] if the sender has finished; [`Kind::Timeout`] if the patience ends; [`Kind::Usage`] for a
    /// port that sends or that nothing is connected to; [`Kind::CallOrder`] out of the submodel execution loop (a message
    /// that is there stays, for a call in its place); [`Kind::PeerLost`] or [`Kind::Deadlock`] if the run has failed.
    pub fn receive(&self, port: PortId, slot: Option<u32>, patience: Patience) -> Result<Message> {
        self.receive_that(port, slot, patience, |message| {
            ordinary(|| self.inner.ports[port.0].label(slot), message)
        })
    }

    /// As [`Instance::receive`], if `fits` finds no fault with the message; else that stays for the next call.
    ///
    /// # Errors
    /// As [`Instance::receive`], and what `fits` says.
    #[inline(always)]
    pub fn receive_that(
        &self,
        port: PortId,
        slot: Option<u32>,
        patience: Patience,
        fits: impl FnOnce(&Message) -> Result<()>,
    ) -> Result<Message> {
        self.inner.receives_no_field(&[port])?;
        self.receive_begun((port, slot), None, || Ok(patience), fits)
    }

    /// As [`Instance::receive_that`], for fields too: one that is pulled may be asked for at a time, which is the same on all
    /// ranks. `begin` is what rank 0 does first, and gives the patience.
    #[inline(always)]
    pub(crate) fn receive_begun(
        &self,
        (port, slot): (PortId, Option<u32>),
        at: Option<f64>,
        begin: impl FnOnce() -> Result<Patience>,
        fits: impl FnOnce(&Message) -> Result<()>,
    ) -> Result<Message> {
        let inner = &self.inner;
        inner.enter()?;
        if inner.ranks.is_none() {
            return inner
                .receive(port, slot, begin()?, fits)
                .map(|(_, message)| message);
        }
        let mut call = inner.call_on("receive", port, slot);
        // Zero is the same time whatever its sign.
        at.iter()
            .for_each(|at| call += &format!(" at {}", at + 0.0));
        // What rank 0 finds no fault with may not fit another one, where it is gone then.
        let fits = Cell::new(Some(fits));
        let check = |message: &Message| fits.take().map_or(Ok(()), |fits| fits(message));
        let received = inner.receive_together(&call, || {
            inner
                .receive(port, slot, begin()?, check)
                .map(|(slot, message)| Some((port, slot, message)))
        });
        let (.., message) = received?.ok_or_else(|| unexpected(&call))?;
        check(&message).map(|()| message)
    }

    /// Receives a message if one is there.
    ///
    /// # Errors
    /// As [`Instance::receive`].
    pub fn try_receive(&self, port: PortId, slot: Option<u32>) -> Result<Option<Message>> {
        let inner = &self.inner;
        inner.enter()?;
        inner.receives_no_field(&[port])?;
        if inner.ranks.is_none() {
            return Ok(inner.try_receive(port, slot)?.map(|(_, message)| message));
        }
        let call = inner.call_on("try_receive", port, slot);
        let received = inner.receive_together(&call, || {
            Ok(inner
                .try_receive(port, slot)?
                .map(|(slot, message)| (port, slot, message)))
        });
        Ok(received?.map(|(.., message)| message))
    }
}

/// A use that begins.
pub(super) struct NextUse {
    /// The settings overlay in force, and its number.
    pub(super) overlay: (u32, Arc<Overlay>),
    /// The ends of F_INIT ports that have a message, and how users write them.
    pub(super) f_init: Vec<((usize, u32), String)>,
    /// Within which step of others it lies.
    pub(super) iteration: Iteration,
}

impl NextUse {
    /// What the other ranks are told of it.
    pub(super) fn for_ranks(&self) -> CollectiveResult {
        let end =
            |((port, slot), label): &((usize, u32), String)| (*port as u32, *slot, label.clone());
        CollectiveResult::Use {
            overlay: (*self.overlay.1).clone(),
            steps: self.iteration.steps().to_vec(),
            f_init: self.f_init.iter().map(end).collect(),
        }
    }
}

impl Inner {
    /// Waits for the next use; `None` if there is none.
    fn next_use(&self) -> Result<Option<NextUse>> {
        let mut began = self.beginning.try_lock().ok_or_else(|| {
            let text = format!(
                "{}: two calls of reuse() at once: one thread begins a use, and tells the others",
                self.name
            );
            Error::new(Kind::Usage, text)
        })?;
        let start = *began.get_or_insert_with(|| self.trace.now());
        let next = self.find_use(start);
        if !matches!(&next, Err(error) if error.is_pending()) {
            *began = None;
        }
        next
    }

    /// As [`Inner::next_use`], whose call began then.
    fn find_use(&self, began: i64) -> Result<Option<NextUse>> {
        if let Some(text) = self.cycle().untaken() {
            return Err(Error::new(
                Kind::CallOrder,
                format!("{}: {text}", self.name),
            ));
        }
        let (mut held, sources) = self.f_init()?;
        let (following, mut leading): (Vec<_>, Vec<_>) =
            sources.into_iter().partition(Source::follows);
        let first = !self.cycle().used();
        if leading.is_empty() && !first {
            return Ok(None);
        }
        self.end_steps()?;
        let Some(begins) = self.all_or_none(&mut leading, &mut held)? else {
            self.trace.live("SHUTDOWN_WAIT", began);
            return Ok(None);
        };
        if self.counts_steps {
            self.leave_groups(&begins.iteration)?;
        }
        for source in &following {
            let state = source.state(&mut held);
            let (slot, message) =
                self.await_message(source, state, Patience::Forever, &begins, || Ok(()))?;
            state.put_back(slot, message);
        }
        let sources: Vec<_> = following.into_iter().chain(leading).collect();
        let overlay = self.merge_overlays(&sources, &mut held)?;
        let overlay = self.number(overlay)?;
        let waiting = sources
            .iter()
            .filter(|source| *source.port.name != *SETTINGS_IN);
        let ends = waiting.map(|s| {
            let slot = s.slot.unwrap_or(0);
            (
                (s.number, slot),
                s.port.label(s.port.vector.then_some(slot)),
            )
        });
        Ok(Some(NextUse {
            overlay,
            f_init: ends.collect(),
            iteration: begins.iteration,
        }))
    }

    /// The use begins: the overlay is fixed.
    fn begin(
        &self,
        NextUse {
            overlay,
            f_init,
            iteration,
        }: NextUse,
    ) {
        self.tell_missed();
        self.overlaid.store(overlay.0 != 0, Ordering::Release);
        *self.overlay.lock().expect("never poisoned") = overlay;
        self.cycle().reuse(f_init, iteration);
    }

    #[inline(always)]
    fn receive(
        &self,
        port: PortId,
        slot: Option<u32>,
        patience: Patience,
        fits: impl FnOnce(&Message) -> Result<()>,
    ) -> Result<(u32, Message)> {
        let source = self.source(port, slot)?;
        let mut port = self.enter_for(&source)?;
        self.before(&[source], patience)?;
        let here = self.here(&source);
        let state = &mut port.inlets[source.place];
        let (slot, message) =
            self.await_message(&source, state, patience, &here, || self.place(&[source]))?;
        if let Err(error) = fits(&message) {
            self.leave_there(&source, &mut port, slot, message);
            return Err(error);
        }
        match self.took(&source, slot, &message) {
            Ok(()) => Ok((slot, message)),
            Err(error) => Err(self.misplaced(error, &source, &mut port, slot, message)),
        }
    }

    fn try_receive(&self, port: PortId, slot: Option<u32>) -> Result<Option<(u32, Message)>> {
        let source = self.source(port, slot)?;
        let mut port = self.enter_for(&source)?;
        let here = self.here(&source);
        let found = self.poll(&source, &mut port.inlets[source.place], &here, 0)?;
        let Some((slot, message)) = found else {
            self.note_poll(Some(source.inlet.end.conduit), None);
            return self.place(&[source]).map(|()| None);
        };
        if let Err(error) = ordinary(|| source.port.label(None), &message) {
            self.leave_there(&source, &mut port, slot, message);
            return Err(error);
        }
        match self.took(&source, slot, &message) {
            Ok(()) => Ok(Some((slot, message))),
            Err(error) => Err(self.misplaced(error, &source, &mut port, slot, message)),
        }
    }

    /// A call on a port, as users write it.
    fn call_on(&self, call: &str, port: PortId, slot: Option<u32>) -> String {
        format!("{call} on port '{}'", self.ports[port.0].label(slot))
    }
}

impl Patience {
    /// Until then.
    pub(crate) fn until(deadline: Option<Instant>) -> Self {
        match deadline {
            None => Patience::Forever,
            Some(deadline) => Patience::For(deadline.saturating_duration_since(Instant::now())),
        }
    }

    pub(crate) fn deadline(self) -> Option<Instant> {
        match self {
            Patience::Forever => None,
            Patience::For(time) => later(Instant::now(), time),
        }
    }
}

impl Source<'_> {
    /// Whether it follows the other F_INIT ports rather than lead them.
    pub(super) fn follows(&self) -> bool {
        self.inlet.end.chain.follows()
    }

    /// What the receiving end keeps, of the ports that the call has taken.
    pub(super) fn state<'h>(&self, held: &'h mut Held<'_>) -> &'h mut InletState {
        &mut held[self.held].inlets[self.place]
    }

    pub(super) fn wait_on(&self, inner: &Inner) -> titin_wire::control::WaitOn {
        inner.wait_on(&self.inlet.end, None, Some(self.inlet))
    }
}

impl Inner {
    /// The F_INIT ports, and their connected ends; of a port whose slots the sender counts only the first slot.
    fn f_init(&self) -> Result<(Held<'_>, Vec<Source<'_>>)> {
        let (mut held, mut sources) = (Held::new(), Vec::new());
        let ports = self
            .ports
            .iter()
            .enumerate()
            .filter(|(_, port)| port.operator == Operator::FInit);
        for (number, port) in ports.filter(|(_, port)| port.connected()) {
            sources.extend(self.ends_of(number, held.len()));
            held.push(port.enter()?);
        }
        Ok((held, sources))
    }

    /// The connected receiving ends of a port, which is held at this place; of one whose slots the sender counts only the
    /// first slot.
    pub(super) fn ends_of(&self, number: usize, held: usize) -> impl Iterator<Item = Source<'_>> {
        let ends = (0..self.ports[number].inlets.len())
            .filter_map(move |place| self.end_of(number, place));
        ends.map(move |source| Source { held, ..source })
    }

    /// Waits for the next message at this place of a port that is none of the program's.
    pub(crate) fn await_at(
        &self,
        port: &Port,
        place: usize,
        state: &mut InletState,
        patience: Patience,
    ) -> Result<Message> {
        self.await_at_unless(port, place, state, patience, || Ok(()))
    }

    /// The same. While there is none, `may_wait` says why there is no use in waiting.
    pub(crate) fn await_at_unless(
        &self,
        port: &Port,
        place: usize,
        state: &mut InletState,
        patience: Patience,
        may_wait: impl Fn() -> Result<()>,
    ) -> Result<Message> {
        let source = self.inner_source(port, place);
        let (_, message) =
            self.await_message(&source, state, patience, &Here::default(), may_wait)?;
        Ok(message)
    }

    /// Waits for the next message at one of these places of a port that is none of the program's: which of them, and the message.
    pub(crate) fn await_any_at(
        &self,
        port: &Port,
        places: &VecDeque<usize>,
        states: &mut [InletState],
        deadline: Option<Instant>,
    ) -> Result<(usize, Message)> {
        let source = |place: usize| self.inner_source(port, place);
        let who = places.front().map(|place| source(*place).inlet.end.conduit);
        let since = self.start_of_wait(who);
        let mut poll = || {
            for (turn, place) in places.iter().enumerate() {
                let found = self.poll(
                    &source(*place),
                    &mut states[*place],
                    &Here::default(),
                    since,
                )?;
                if let Some((_, message)) = found {
                    return Ok(Some((turn, message)));
                }
            }
            Ok(None)
        };
        if let Some(found) = poll()? {
            return Ok(found);
        }
        let start = self.trace.clock();
        let on = || {
            places
                .iter()
                .map(|place| source(*place).wait_on(self))
                .collect()
        };
        let (turn, message) = self.wait(who, deadline, None, on, poll)?;
        source(places[turn])
            .inlet
            .end
            .meter
            .waited(self.waited_since(start));
        Ok((turn, message))
    }

    /// The end at this place of a port that is none of the program's.
    fn inner_source<'a>(&self, port: &'a Port, place: usize) -> Source<'a> {
        let inlet = port.inlets[place]
            .as_ref()
            .expect("such a port has an end at each place");
        Source {
            number: usize::MAX,
            port,
            inlet,
            place,
            held: 0,
            slot: Some(place as u32),
        }
    }

    /// The receiving end at this place of a port, if it is connected.
    pub(super) fn end_of(&self, number: usize, place: usize) -> Option<Source<'_>> {
        let port = &self.ports[number];
        let inlet = port.inlets.get(place)?.as_ref()?;
        Some(Source {
            number,
            port,
            inlet,
            place,
            held: 0,
            slot: Some(place as u32),
        })
    }

    #[inline(always)]
    pub(super) fn source(&self, port: PortId, slot: Option<u32>) -> Result<Source<'_>> {
        let number = port.0;
        let port = &self.ports[number];
        if port.operator.sends() {
            let text = format!(
                "receive on {} port '{}': {} sends; receive on F_INIT and S ports",
                port.operator, port.name, port.operator
            );
            return Err(Error::new(Kind::Usage, text));
        }
        let (place, slot) = port.find(slot)?;
        let source = self.end_of(number, place).ok_or_else(|| {
            let text = format!(
                "nothing is connected to {} port '{}' of {}: connect it in the description, or give a default",
                port.operator, port.name, self.name
            );
            Error::new(Kind::Usage, text)
        })?;
        Ok(Source {
            slot: Some(slot),
            ..source
        })
    }

    /// Takes the port for a call on this end, which no call on several ports may wait for.
    fn enter_for<'a>(&self, source: &Source<'a>) -> Result<Latched<'a, PortState>> {
        let port = source.port.enter()?;
        if self.lists.load(Ordering::Relaxed) && source.inlet.inbox.is_waited_for() {
            return Err(two_at_once(&source.port.name));
        }
        Ok(port)
    }

    /// Fails if a call that finds no message on any of these ends is out of order: what it waits for may never come. Not
    /// where several threads or tasks call: another one may bring it into its place.
    pub(super) fn place(&self, sources: &[Source<'_>]) -> Result<()> {
        if self.is_shared() {
            return Ok(());
        }
        let cycle = self.cycle();
        let mut places = sources
            .iter()
            .map(|source| cycle.place(&source.port.name, source.port.operator));
        match places.next() {
            Some(Err(text)) if places.all(|place| place.is_err()) => Err(Error::new(
                Kind::CallOrder,
                format!("{}: {text}", self.name),
            )),
            _ => Ok(()),
        }
    }

    /// Before a wait that only a message on S ends: what was not sent in this step will not be.
    pub(super) fn before(&self, sources: &[Source<'_>], patience: Patience) -> Result<()> {
        let all_steps = || {
            sources
                .iter()
                .all(|source| source.port.operator == Operator::S)
        };
        if self.counts_steps
            && patience == Patience::Forever
            && all_steps()
            && self.place(sources).is_ok()
        {
            for source in sources {
                let end = (source.number, source.slot.unwrap_or(0));
                self.pass_steps(Operator::S, source.port.timeline, end)?;
            }
        }
        Ok(())
    }

    /// Waits until each of the ends has a message or is closed. Where the use lies to which they belong if all have one,
    /// `None` if all are closed. The messages are put back. Where the sender counts the slots,
    /// the message for the first one says how many there are, and the others join the ends.
    fn all_or_none<'a>(
        &'a self,
        sources: &mut Vec<Source<'a>>,
        held: &mut Held<'_>,
    ) -> Result<Option<Here>> {
        let (mut here, mut closed) = (Here::default(), Vec::new());
        let mut next = 0;
        while let Some(&source) = sources.get(next) {
            next += 1;
            let state = source.state(held);
            match self.await_message(&source, state, Patience::Forever, &Here::default(), || {
                Ok(())
            }) {
                Ok((slot, message)) => {
                    here.include(&message);
                    if slot == 0 {
                        let others = 1..message.slots.unwrap_or(1);
                        sources.extend(others.map(|slot| Source {
                            slot: Some(slot),
                            ..source
                        }));
                    }
                    state.put_back(slot, message);
                }
                Err(error) if error.kind == Kind::PortClosed => {
                    closed.push(source.inlet.end.label.as_ref())
                }
                Err(error) => return Err(error),
            }
        }
        if closed.is_empty() {
            return Ok(Some(here));
        }
        let open: Vec<&str> = sources
            .iter()
            .map(|s| s.inlet.end.label.as_ref())
            .filter(|l| !closed.contains(l))
            .collect();
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
    fn merge_overlays(&self, sources: &[Source<'_>], held: &mut Held<'_>) -> Result<Overlay> {
        let mut merged: BTreeMap<String, (Setting, String)> = BTreeMap::new();
        for source in sources {
            let (state, slot) = (source.state(held), source.slot.unwrap_or(0));
            let Some(message) = state.stashed(slot) else {
                continue;
            };
            let mut overlay = message.settings.as_deref().cloned().unwrap_or_default();
            if *source.port.name == *SETTINGS_IN {
                overlay.extend(settings_of(message)?);
                state.unstash(Some(slot));
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
        for (name, (_, from)) in &merged {
            let is_port = |word: &str| self.ports.iter().any(|port| *port.name == *word);
            if self.named.is_newly_lost(name) && !name.split('.').next().is_some_and(is_port) {
                let text = format!(
                    "the setting '{name}' of the overlay of {from} leads to no instance of this run, so nothing reads it: write \
                     component.name, or the name alone for all"
                );
                self.log(super::close::WARNING, &text);
            }
        }
        Ok(merged
            .into_iter()
            .map(|(name, (value, _))| (name, value))
            .collect())
    }

    /// Waits for a message. While there is none, `may_wait` says why there is no use in that.
    pub(super) fn await_message(
        &self,
        source: &Source<'_>,
        state: &mut InletState,
        patience: Patience,
        here: &Here,
        may_wait: impl Fn() -> Result<()>,
    ) -> Result<(u32, Message)> {
        let Source {
            port, inlet, slot, ..
        } = *source;
        let carrier = inlet.end.carrier.get().map(AsRef::as_ref);
        // What needs no choice, no filter and no slot of its own need not wait in the inbox.
        let plain = !port.resizable && inlet.end.chain.is_empty() && !inlet.end.chain.chooses();
        let direct = plain.then_some(&*inlet.inbox);
        if self.light.is_none() {
            if let (Some(carrier), Some(inbox)) = (carrier, direct)
                && inbox.is_still()
                && !state.has_stash()
                && let Some(arrived) = self.glance(&inlet.end, carrier, inbox)
            {
                let slot = slot.unwrap_or(0);
                return Ok((slot, self.unpack(source, slot, state, arrived, 0)?));
            }
            if let Some(found) = self.poll(source, state, here, 0)? {
                return Ok(found);
            }
        }
        let start = self.trace.clock();
        let since = self.start_of_wait(Some(inlet.end.conduit));
        let outcome = self.wait_directly(
            Some(inlet.end.conduit),
            patience.deadline(),
            carrier,
            direct,
            || vec![source.wait_on(self)],
            || match self.poll(source, state, here, since)? {
                Some((slot, message)) => Ok(Some(Found::Taken(slot, message))),
                None => may_wait().map(|()| None),
            },
            |arrived| Ok(Found::Arrived(arrived)),
        );
        match outcome {
            Ok(found) => {
                let (slot, message) = match found {
                    Found::Taken(slot, message) => (slot, message),
                    Found::Arrived(arrived) => {
                        let slot = slot.unwrap_or(0);
                        (slot, self.unpack(source, slot, state, arrived, since)?)
                    }
                };
                inlet.end.meter.waited(self.waited_since(start));
                Ok((slot, message))
            }
            Err(error) if error.is_pending() => Err(error),
            Err(mut error) => {
                let end = &source.inlet.end;
                end.meter.waited(self.waited_since(start));
                if error.kind == Kind::Timeout {
                    let (from, port) = (end.other(), &end.label);
                    error.text = format!(
                        "{}: no message from {from} on port '{port}' in the time given",
                        self.name
                    );
                }
                Err(error)
            }
        }
    }

    /// Looks for the next message of an inbox that is still for a moment: most waits are shorter than what goes with
    /// a longer one. Of these one in so many is timed, and stands for the others.
    fn glance(&self, end: &End, carrier: &dyn Carrier, inbox: &Inbox) -> Option<Arrived> {
        if self.trace.on {
            return None;
        }
        let start = end.meter.sample().map(|times| (Instant::now(), times));
        let arrived = self.bell.glance(carrier, inbox)?;
        start.inspect(|(start, times)| end.meter.waited(start.elapsed() * *times));
        Some(arrived)
    }

    /// Notes that the program has a message now.
    #[inline(always)]
    pub(super) fn took(&self, source: &Source<'_>, slot: u32, message: &Message) -> Result<()> {
        // What `repeat` gives again and `pad` makes up has no time of its own, and who pulls may go back in time.
        let timestamp = if source.follows() || self.is_pulled(source.inlet.end.conduit) {
            self.cycle().now().unwrap_or(message.timestamp)
        } else {
            message.timestamp
        };
        self.note_received(source.number, slot, timestamp)
    }

    /// Puts a message back that a call out of order has found, so that a call in its place gets it. One of a time that cannot
    /// be goes, since no call could take it. Gives the error.
    #[cold]
    pub(super) fn misplaced(
        &self,
        error: Error,
        source: &Source<'_>,
        port: &mut PortState,
        slot: u32,
        message: Message,
    ) -> Error {
        if self
            .cycle()
            .place(&source.port.name, source.port.operator)
            .is_err()
        {
            self.leave_there(source, port, slot, message);
        }
        error
    }

    /// Puts a message back that a call was not given, for the next one.
    #[cold]
    pub(super) fn leave_there(
        &self,
        source: &Source<'_>,
        port: &mut PortState,
        slot: u32,
        message: Message,
    ) {
        let state = &mut port.inlets[source.place];
        if source.follows() {
            // `repeat` and `pad` choose anew where the next call is. What `pad` gives once nobody was given.
            if let Some(chosen) = &mut state.chosen
                && chosen
                    .latest
                    .as_ref()
                    .is_some_and(|latest| Arc::ptr_eq(&latest.body, &message.body))
            {
                chosen.given = None;
            }
            return;
        }
        state.put_back(slot, message);
        self.put_back.store(true, Ordering::Relaxed);
    }

    /// Looks for a message for this end and takes it; its slot. `here` is where it is wanted, by which `repeat` and `pad`
    /// choose; `since` is when the call began to wait, for the trace.
    fn poll(
        &self,
        source: &Source<'_>,
        state: &mut InletState,
        here: &Here,
        since: i64,
    ) -> Result<Option<(u32, Message)>> {
        if let Some(carrier) = source.inlet.end.carrier.get() {
            carrier.look();
        }
        self.poll_inbox(source, state, here, since)
    }

    /// As [`Inner::poll`], of what has been taken in already.
    pub(super) fn poll_inbox(
        &self,
        source: &Source<'_>,
        state: &mut InletState,
        here: &Here,
        mut since: i64,
    ) -> Result<Option<(u32, Message)>> {
        let Source {
            port, inlet, slot, ..
        } = *source;
        let found = |slot: u32, message: Message| {
            if let Some(slots) = message.slots {
                port.set_slots(slots);
            }
            Ok(Some((slot, message)))
        };
        if let Some((slot, message)) = state.unstash(slot) {
            return found(slot, message);
        }
        if source.follows() {
            let message = self.poll_following(source, state, here, since)?;
            return Ok(message.map(|message| (slot.unwrap_or(0), message)));
        }
        while let Some(arrived) = inlet.take() {
            let counted = arrived.meta.slot.filter(|_| port.resizable);
            let for_slot = counted.map_or(slot.unwrap_or(0), |(for_slot, _)| for_slot);
            let mut message =
                self.unpack(source, for_slot, state, arrived, std::mem::take(&mut since))?;
            message.slots = counted.map(|(_, slots)| slots);
            if slot.is_none_or(|slot| slot == for_slot) {
                return found(for_slot, message);
            }
            state.stash(for_slot, message);
        }
        if inlet.inbox.exhausted() {
            let between = is_between_ranks(&inlet.end.label);
            let text = match between {
                false if self.carries_field(&inlet.end) => format!(
                    "{}: port '{}' is closed: {} has finished, or has withdrawn its field, and sends no more",
                    self.name,
                    inlet.end.label,
                    inlet.end.other()
                ),
                true if instance_of(&inlet.end.peer) != self.name => format!(
                    "{}: field on port '{}': {} has closed the instance, or withdrawn the field, where its rank 0 goes on: all \
                     ranks send, and withdraw, as often as rank 0",
                    self.name,
                    port_of_field(&inlet.end.label),
                    written(&inlet.end.peer)
                ),
                true => format!(
                    "{}: {} has closed the instance, and sends no more, where other ranks go on: all of them make the same \
                     calls, and close together",
                    self.name,
                    written(&inlet.end.peer)
                ),
                false => format!(
                    "{}: port '{}' is closed: {} has finished and sends no more",
                    self.name,
                    inlet.end.label,
                    inlet.end.other()
                ),
            };
            let kind = if between {
                Kind::CallOrder
            } else {
                Kind::PortClosed
            };
            return Err(self.by_end_of(Error::new(kind, text), [&*inlet.end.peer]));
        }
        if !inlet.inbox.ready() {
            self.reachable(&inlet.end)?;
        }
        Ok(None)
    }

    /// Makes an arrived message what the program gets: uncompressed, filtered, with its overlay. A call that had to wait for
    /// it says since when, for the trace.
    #[inline(always)]
    pub(super) fn unpack(
        &self,
        source: &Source<'_>,
        slot: u32,
        state: &mut InletState,
        arrived: Arrived,
        since: i64,
    ) -> Result<Message> {
        if self.trace.on {
            return self.unpack_traced(source, slot, state, arrived, since);
        }
        self.decoded(source.inlet, state, arrived)
    }

    /// As MUSCLE3 keeps the rows of a message that is received. What has come lies in memory already when a call finds it,
    /// so its transfer takes no time here.
    #[cold]
    fn unpack_traced(
        &self,
        source: &Source<'_>,
        slot: u32,
        state: &mut InletState,
        arrived: Arrived,
        since: i64,
    ) -> Result<Message> {
        let found = self.trace.now();
        let began = if since == 0 { found } else { since };
        let message = self.decoded(source.inlet, state, arrived)?;
        let stop = self.trace.now();
        let (port, end) = (source.port, &source.inlet.end);
        for (kind, start, stop) in [
            ("RECEIVE_WAIT", began, found),
            ("RECEIVE_TRANSFER", found, found),
            ("RECEIVE_DECODE", found, stop),
            ("RECEIVE", began, stop),
        ] {
            let size = (message.number, message.body.len() as u64);
            self.row(traced(
                kind,
                port,
                slot,
                end,
                start,
                stop,
                size,
                message.timestamp,
            ));
        }
        Ok(message)
    }

    #[inline(always)]
    fn decoded(&self, inlet: &Inlet, state: &mut InletState, arrived: Arrived) -> Result<Message> {
        let iteration = iteration_of(&arrived).outer(inlet.end.chain.lasts);
        let Arrived {
            head,
            mut meta,
            mut body,
        } = arrived;
        let End { meter, chain, .. } = &inlet.end;
        meter.count(body.len() as u64, 0);
        let mut settings = None;
        if meta.overlay != 0 {
            if let Some(definition) = &meta.definition {
                let overlay = decode_overlay(definition).map_err(|error| {
                    self.malformed(&inlet.end, head.timestamp, &error.to_string())
                })?;
                state.overlay = Some((meta.overlay, Arc::new(overlay)));
            }
            let known = state
                .overlay
                .as_ref()
                .filter(|(number, _)| *number == meta.overlay);
            let unknown = || {
                let text = format!(
                    "{}: port '{}': message {} of {} is to go with settings overlay {}, which was never sent: look for what \
                     overwrites memory in that program",
                    self.name,
                    inlet.end.label,
                    head.sequence + 1,
                    inlet.end.other(),
                    meta.overlay
                );
                Error::new(Kind::TypeMismatch, text)
            };
            settings = Some(known.ok_or_else(unknown)?.1.clone());
        }
        let (mut timestamp, mut next_timestamp) = (head.timestamp, head.next_timestamp);
        if !meta.codings.is_empty() {
            body = decode(body, &meta.codings).map_err(|error| match error.kind {
                Kind::TypeMismatch => self.malformed(&inlet.end, head.timestamp, &error.text),
                _ => error,
            })?;
        }
        if !chain.is_empty() {
            let mapped = Mapped {
                content: meta.content.clone(),
                body,
                timestamp,
                next_timestamp,
            };
            let (mapped, _) = inlet.end.filter("from", mapped)?;
            meta = Arc::new(Meta {
                content: mapped.content,
                ..Meta::default()
            });
            (body, timestamp, next_timestamp) =
                (mapped.body, mapped.timestamp, mapped.next_timestamp);
        }
        let (number, tag, slots, tree) = (head.sequence, head.tag, None, None);
        let message = Message {
            timestamp,
            next_timestamp,
            meta,
            settings,
            number,
            tag,
            slots,
            iteration,
            body,
            tree,
        };
        // What ranks tell each other has an encoding of its own, and data among it were read by rank 0.
        if *message.content() != Content::Structure || is_between_ranks(&inlet.end.label) {
            return Ok(message);
        }
        message
            .read()
            .map_err(|error| self.malformed(&inlet.end, head.timestamp, &error.to_string()))
    }

    /// The error for a message that is not what any call of titin sends.
    #[cold]
    fn malformed(&self, end: &End, timestamp: f64, why: &str) -> Error {
        let text = format!(
            "{}: port '{}': the message of {} at time {timestamp:?} cannot be read: {why}; no call of titin sends such data, so \
             look for what overwrites memory in that program",
            self.name,
            end.label,
            end.other()
        );
        Error::new(Kind::TypeMismatch, text)
    }
}

/// The settings that a message on `muscle_settings_in` carries: a map from names to values.
fn settings_of(message: &Message) -> Result<Overlay> {
    if *message.content() == Content::Nil {
        return Ok(Overlay::new());
    }
    overlay_of(&message.structure()).map_err(|why| {
        let text =
            format!("a message on {SETTINGS_IN} is a map from names of settings to values; {why}");
        Error::new(Kind::TypeMismatch, text)
    })
}
