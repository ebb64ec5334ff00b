//! Receiving by the ports of a serial instance, and the beginning of a use.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use smallvec::SmallVec;
use titin_model::Operator;
use titin_transport::{Carrier, Inbox, IncomingMessage as Arrived, SpinLockGuard};
use titin_wire::meta::{Content, Meta};
use titin_wire::settings::{Overlay, Setting, decode_overlay};

use super::close::WARNING;
use super::receiving_end::{HeldPorts, ReceivingEnd};
use super::report::RowOfMessage;
use super::step_filters::{UsePlace, iteration_of};
use super::wait::Wait;
use super::{SETTINGS_IN, Serial};
use crate::execution_loop::{ExecutionLoop, FInitEnds, PortCall};
use crate::field_mark::{ordinary, read_structure};
use crate::filter::{Mapped, decode};
use crate::iteration::Iteration;
use crate::non_blocking::later;
use crate::peer_names::{instance_of, written};
use crate::port::{ConduitUse, Inlet, InletState, Port, PortEnd, PortId, PortState, two_at_once};
use crate::setting::overlay_of;
use crate::{Error, Kind, Message, Result};

/// A message, and the port and slot by which the message came.
pub(crate) type Received = (PortId, u32, Message);

/// How long a call may wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Patience {
    /// Until a message is there, the port is closed, or the run fails.
    #[default]
    Forever,
    /// For the given time at most.
    For(Duration),
}

/// The ends of a call on several ports.
type ReceivingEnds<'a> = SmallVec<[ReceivingEnd<'a>; 4]>;

/// The next use, before the use begins.
pub(crate) struct NextUse {
    /// The settings overlay in force, and its number.
    pub(crate) overlay: (u32, Arc<Overlay>),
    /// The ends of F_INIT ports with a message, with the labels of the ends.
    pub(crate) f_init: FInitEnds,
    /// The step of other instances in which the use lies.
    pub(crate) iteration: Iteration,
}

impl Serial {
    /// Waits for the next use; `None` if there is none.
    pub(crate) fn next_use(&self) -> Result<Option<NextUse>> {
        let mut began = self.execution.beginning.try_lock().ok_or_else(|| {
            let text = format!(
                "{}: two calls of reuse() at once: one thread begins a use, and tells the others",
                self.core.name
            );
            Error::new(Kind::Usage, text)
        })?;
        let start = *began.get_or_insert_with(|| self.profile.trace.now());
        let next = self.find_use(start);
        if !matches!(&next, Err(error) if error.is_pending()) {
            *began = None;
        }
        next
    }

    /// As [`Serial::next_use`], for a call that began at the time `began`.
    fn find_use(&self, began: i64) -> Result<Option<NextUse>> {
        if let Some(text) = self.execution_loop().untaken() {
            return Err(Error::new(
                Kind::CallOrder,
                format!("{}: {text}", self.core.name),
            ));
        }
        self.drop_untaken()?;
        let (mut held, sources) = self.f_init()?;
        let (mut following, mut leading): (ReceivingEnds<'_>, ReceivingEnds<'_>) =
            sources.into_iter().partition(ReceivingEnd::follows);
        let first = !self.execution_loop().used();
        if leading.is_empty() && !first {
            return Ok(None);
        }
        self.end_steps()?;
        let Some(begins) = self.all_or_none(&mut leading, &mut held)? else {
            self.profile.trace.live("SHUTDOWN_WAIT", began);
            return Ok(None);
        };
        if self.execution.counts_steps {
            self.leave_groups(&begins.iteration)?;
        }
        for source in &following {
            let state = source.state(&mut held);
            let (slot, message) =
                self.await_message(source, state, Patience::Forever, &begins, || Ok(()))?;
            state.put_back(slot, message);
        }
        following.extend(leading);
        let sources = following;
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

    /// Drops the F_INIT messages that the ending use has not received, where that is not refused.
    fn drop_untaken(&self) -> Result<()> {
        for ((number, slot), _) in self.change_loop(ExecutionLoop::take_untaken) {
            let port = &self.table.ports[number];
            let (place, slot) = port.find(port.vector.then_some(slot))?;
            let inlet = &mut port.enter()?.inlets[place];
            if inlet.unstash(Some(slot)).is_some() {
                inlet.dropped += 1;
            }
        }
        Ok(())
    }

    /// Begins the use, and fixes the overlay.
    pub(crate) fn begin(
        &self,
        NextUse {
            overlay,
            f_init,
            iteration,
        }: NextUse,
    ) {
        self.tell_missed();
        self.overlays.overlaid.store(
            self.overlays.are_inherited() && overlay.0 != 0,
            Ordering::Release,
        );
        *self.overlays.overlay.lock().expect("never poisoned") = overlay;
        self.execution_loop().reuse(f_init, iteration);
    }

    #[inline(always)]
    pub(crate) fn receive(
        &self,
        port: PortId,
        given: Option<u32>,
        patience: Patience,
        fits: impl FnOnce(&Message) -> Result<()>,
    ) -> Result<(u32, Message)> {
        let source = self.source(port, given)?;
        let mut port = self.enter_for(&source)?;
        self.before(&[source], patience)?;
        let state = &mut port.inlets[source.place];
        let (slot, message) = match self.take_at_once(&source, state) {
            Some(arrived) => self.take_arrived(&source, state, arrived, 0)?,
            None => self.await_for_long(&source, state, patience)?,
        };
        self.give(&source, &mut port, (slot, message), fits)
    }

    /// Gives the program a message that was taken from the inbox. Puts the message back, and fails,
    /// if the message does not fit or the call is out of order.
    #[inline(always)]
    pub(super) fn give(
        &self,
        source: &ReceivingEnd<'_>,
        port: &mut PortState,
        (slot, message): (u32, Message),
        fits: impl FnOnce(&Message) -> Result<()>,
    ) -> Result<(u32, Message)> {
        if let Err(error) = fits(&message) {
            self.leave_there(source, port, slot, message);
            return Err(error);
        }
        match self.took(source, slot, &message) {
            Ok(()) => Ok((slot, message)),
            Err(error) => Err(self.misplaced(error, source, port, slot, message)),
        }
    }

    pub(crate) fn try_receive(
        &self,
        port: PortId,
        slot: Option<u32>,
    ) -> Result<Option<(u32, Message)>> {
        let source = self.source(port, slot)?;
        let mut port = self.enter_for(&source)?;
        let here = self.here(&source);
        let found = self.poll(&source, &mut port.inlets[source.place], &here, 0)?;
        let Some((slot, message)) = found else {
            self.note_poll(Some(source.inlet.end.conduit), None);
            return self.place(&[source]).map(|()| None);
        };
        let fits = |message: &Message| ordinary(|| source.port.label(None), message);
        self.give(&source, &mut port, (slot, message), fits)
            .map(Some)
    }
}

impl Patience {
    /// The patience until a deadline.
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

impl Serial {
    /// The F_INIT ports, and the connected ends of the ports. If the sender counts the slots of a
    /// port, the first slot alone.
    fn f_init(&self) -> Result<(HeldPorts<'_>, ReceivingEnds<'_>)> {
        let (mut held, mut sources) = (HeldPorts::new(), ReceivingEnds::new());
        let ports = self
            .table
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

    /// The connected receiving ends of a port. `held` is the place of the port among the held
    /// ports. If the sender counts the slots of the port, the first slot alone.
    pub(super) fn ends_of(
        &self,
        number: usize,
        held: usize,
    ) -> impl Iterator<Item = ReceivingEnd<'_>> {
        let port = &self.table.ports[number];
        let places = (0..port.inlets.len()).filter(|place| port.is_in_use(*place));
        let ends = places.filter_map(move |place| self.end_of(number, place));
        ends.map(move |source| ReceivingEnd { held, ..source })
    }

    /// Waits for the next message at a place of a port between ranks.
    pub(crate) fn await_at(
        &self,
        port: &Port,
        place: usize,
        state: &mut InletState,
        patience: Patience,
    ) -> Result<Message> {
        self.await_at_unless(port, place, state, patience, || Ok(()))
    }

    /// As [`Serial::await_at`]. While no message is there, an error of `may_wait` ends the wait.
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
            self.await_message(&source, state, patience, &UsePlace::default(), may_wait)?;
        Ok(message)
    }

    /// Waits for the next message at any of the given places of a port between ranks. Returns the
    /// number of the place in the list, and the message.
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
                    &UsePlace::default(),
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
        let start = self.profile.trace.clock();
        let on = || {
            places
                .iter()
                .filter_map(|place| source(*place).wait_on(self))
                .collect()
        };
        let (turn, message) = self.wait(Wait::about(who).until(deadline), on, poll)?;
        source(places[turn])
            .inlet
            .end
            .meter
            .waited(self.waited_since(start));
        Ok((turn, message))
    }

    /// The end at a place of a port between ranks.
    pub(super) fn inner_source<'a>(&self, port: &'a Port, place: usize) -> ReceivingEnd<'a> {
        let inlet = port.inlets[place]
            .as_ref()
            .expect("such a port has an end at each place");
        ReceivingEnd {
            number: usize::MAX,
            port,
            inlet,
            place,
            held: 0,
            slot: Some(place as u32),
        }
    }

    /// The receiving end at a place of a port, if the end is connected.
    pub(super) fn end_of(&self, number: usize, place: usize) -> Option<ReceivingEnd<'_>> {
        let port = &self.table.ports[number];
        let inlet = port.inlets.get(place)?.as_ref()?;
        Some(ReceivingEnd {
            number,
            port,
            inlet,
            place,
            held: 0,
            slot: Some(port.slot_of(place)),
        })
    }

    #[inline(always)]
    pub(super) fn source(&self, port: PortId, slot: Option<u32>) -> Result<ReceivingEnd<'_>> {
        let number = port.0;
        let port = &self.table.ports[number];
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
                port.operator, port.name, self.core.name
            );
            Error::new(Kind::Usage, text)
        })?;
        Ok(ReceivingEnd {
            slot: Some(slot),
            ..source
        })
    }

    /// Takes the port for a call on this end. Fails if a call on several ports waits for the end.
    #[inline(always)]
    fn enter_for<'a>(&self, source: &ReceivingEnd<'a>) -> Result<SpinLockGuard<'a, PortState>> {
        let port = source.port.enter()?;
        if self.any.lists.load(Ordering::Relaxed) && source.inlet.inbox.is_waited_for() {
            return Err(two_at_once(&source.port.name));
        }
        Ok(port)
    }

    /// Fails if a call that finds no message on any of the given ends is out of order: a message
    /// may never come. Does not fail where several threads or tasks call, since another thread may
    /// bring the call into order.
    pub(super) fn place(&self, sources: &[ReceivingEnd<'_>]) -> Result<()> {
        if self.is_shared() {
            return Ok(());
        }
        let execution = self.execution_loop();
        let mut places = sources
            .iter()
            .map(|source| execution.place(&source.port.name, source.port.operator));
        match places.next() {
            Some(Err(why)) if places.all(|place| place.is_err()) => {
                let text = format!("{}: {why}", self.core.name);
                Err(Error::new(Kind::CallOrder, text))
            }
            _ => Ok(()),
        }
    }

    /// The beginning of a wait on S ports alone. Tells receivers of the steps that this instance
    /// has left without a message: after the wait no such message can follow.
    #[inline(always)]
    pub(super) fn before(&self, sources: &[ReceivingEnd<'_>], patience: Patience) -> Result<()> {
        if self.execution.counts_steps {
            self.leave_steps(sources, patience)
        } else {
            Ok(())
        }
    }

    /// As [`Serial::before`], where steps are counted.
    fn leave_steps(&self, sources: &[ReceivingEnd<'_>], patience: Patience) -> Result<()> {
        let all_steps = || {
            sources
                .iter()
                .all(|source| source.port.operator == Operator::S)
        };
        if patience == Patience::Forever && all_steps() && self.place(sources).is_ok() {
            for source in sources {
                let end = (source.number, source.slot.unwrap_or(0));
                self.pass_steps(Operator::S, source.port.timeline, end)?;
            }
        }
        Ok(())
    }

    /// Waits until each of the ends has a message, is closed, or has a failed member at the other
    /// side; takes the latter out of the ends. Returns the place of the use to
    /// which the messages belong; `None` if all ends are closed. Puts the messages back. Where the
    /// sender counts the slots, the message for the first slot has the number of slots, and the
    /// other slots join the ends.
    fn all_or_none<'a>(
        &'a self,
        sources: &mut ReceivingEnds<'a>,
        held: &mut HeldPorts<'_>,
    ) -> Result<Option<UsePlace>> {
        let (mut here, mut closed) = (UsePlace::default(), Vec::new());
        let mut failed: Vec<((usize, usize), Error)> = Vec::new();
        let mut next = 0;
        while let Some(&source) = sources.get(next) {
            next += 1;
            let state = source.state(held);
            match self.await_message(
                &source,
                state,
                Patience::Forever,
                &UsePlace::default(),
                || Ok(()),
            ) {
                Ok((slot, message)) => {
                    here.include(&message);
                    if slot == 0 {
                        let others = 1..message.slots.unwrap_or(1);
                        sources.extend(others.map(|slot| ReceivingEnd {
                            slot: Some(slot),
                            ..source
                        }));
                    }
                    state.put_back(slot, message);
                }
                Err(error) if error.kind == Kind::PortClosed => {
                    closed.push(source.inlet.end.label.as_ref())
                }
                Err(error) if error.kind == Kind::MemberFailed => {
                    failed.push(((source.number, source.place), error))
                }
                Err(error) => return Err(error),
            }
        }
        // A use goes without the messages of failed members.
        let has_failed = |place: &(usize, usize)| failed.iter().any(|(failed, _)| failed == place);
        sources.retain(|source| !has_failed(&(source.number, source.place)));
        if let (true, Some((_, error))) = (sources.is_empty(), failed.pop()) {
            return Err(error);
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
            self.core.name,
            if closed.len() == 1 { "" } else { "s" },
            closed.join(", ") + if closed.len() == 1 { " is" } else { " are" },
            open.join(", ")
        );
        Err(Error::new(Kind::CallOrder, text))
    }

    /// The overlay of the beginning use: settings from `muscle_settings_in` and, unless overlays are
    /// explicit, the overlays of the F_INIT messages.
    fn merge_overlays(
        &self,
        sources: &[ReceivingEnd<'_>],
        held: &mut HeldPorts<'_>,
    ) -> Result<Overlay> {
        let mut merged: BTreeMap<String, (Setting, String)> = BTreeMap::new();
        for source in sources {
            let (state, slot) = (source.state(held), source.slot.unwrap_or(0));
            let Some(message) = state.stashed(slot) else {
                continue;
            };
            let is_settings = *source.port.name == *SETTINGS_IN;
            let settings = message.settings.as_deref();
            let settings = settings.filter(|_| self.overlays.are_inherited());
            if settings.is_none() && !is_settings {
                continue;
            }
            let mut overlay = settings.cloned().unwrap_or_default();
            if is_settings {
                overlay.extend(settings_of(message)?);
                state.unstash(Some(slot));
            }
            let from = source.inlet.end.other();
            for (name, value) in overlay {
                match merged.get(&name) {
                    Some((other, other_from)) if *other != value => {
                        let text = format!(
                            "{}: the settings overlays of {other_from} and {from} differ: '{name}' is {other} and {value}",
                            self.core.name
                        );
                        return Err(Error::new(Kind::Setting, text));
                    }
                    Some(_) => {}
                    None => drop(merged.insert(name, (value, from.clone()))),
                }
            }
        }
        for (name, (_, from)) in &merged {
            let is_port = |word: &str| self.table.ports.iter().any(|port| *port.name == *word);
            if self.overlays.named.is_newly_lost(name)
                && !name.split('.').next().is_some_and(is_port)
            {
                let text = format!(
                    "the setting '{name}' of the overlay of {from} leads to no instance of this run, so nothing reads it: write \
                     component.name, or the name alone for all"
                );
                self.log(WARNING, &text);
            }
        }
        Ok(merged
            .into_iter()
            .map(|(name, (value, _))| (name, value))
            .collect())
    }

    /// Waits for a message. While no message is there, an error of `may_wait` ends the wait.
    ///
    /// Most messages come within a moment, so the thread first spins on the inbox. Then the thread
    /// looks everywhere a message may be: put aside, chosen by a filter, in the inbox. At last the
    /// thread sleeps, and looks again whenever the doorbell rings.
    pub(super) fn await_message(
        &self,
        source: &ReceivingEnd<'_>,
        state: &mut InletState,
        patience: Patience,
        here: &UsePlace,
        may_wait: impl Fn() -> Result<()>,
    ) -> Result<(u32, Message)> {
        match self.take_at_once(source, state) {
            Some(arrived) => self.take_arrived(source, state, arrived, 0),
            None => self.look_and_sleep(source, state, patience, here, may_wait),
        }
    }

    /// As [`Serial::await_message`] for a call of the program, behind the spin.
    #[inline(never)]
    fn await_for_long(
        &self,
        source: &ReceivingEnd<'_>,
        state: &mut InletState,
        patience: Patience,
    ) -> Result<(u32, Message)> {
        let here = self.here(source);
        self.look_and_sleep(source, state, patience, &here, || self.place(&[*source]))
    }

    /// The next message of an empty inbox, if the message is there or comes within a moment.
    #[inline(always)]
    fn take_at_once(&self, source: &ReceivingEnd<'_>, state: &InletState) -> Option<Arrived> {
        let end = &source.inlet.end;
        let (carrier, inbox) = (end.carrier.get()?, source.direct_inbox()?);
        let may_spin = self.reporter.pending.is_none() && inbox.has_no_news() && !state.has_stash();
        may_spin
            .then(|| self.spin(end, &**carrier, inbox))
            .flatten()
    }

    /// As [`Serial::await_message`], behind the spin.
    fn look_and_sleep(
        &self,
        source: &ReceivingEnd<'_>,
        state: &mut InletState,
        patience: Patience,
        here: &UsePlace,
        may_wait: impl Fn() -> Result<()>,
    ) -> Result<(u32, Message)> {
        let end = &source.inlet.end;
        if self.reporter.pending.is_none()
            && let Some(found) = self.poll(source, state, here, 0)?
        {
            return Ok(found);
        }
        let (carrier, inbox) = (end.carrier.get().map(AsRef::as_ref), source.direct_inbox());
        let start = self.profile.trace.clock();
        let since = self.start_of_wait(Some(end.conduit));
        let wait = Wait::about(end.conduit).until(patience.deadline());
        let on = || source.wait_on(self).into_iter().collect();
        let received =
            self.wait_for_message(wait.by(carrier).from(inbox), on, |handed| match handed {
                Some(arrived) => self.take_arrived(source, state, arrived, since).map(Some),
                None => match self.poll(source, state, here, since)? {
                    None => may_wait().map(|()| None),
                    found => Ok(found),
                },
            });
        if !matches!(&received, Err(error) if error.is_pending()) {
            end.meter.waited(self.waited_since(start));
        }
        received.map_err(|error| self.name_what_was_late(error, end))
    }

    /// Names the missing message in the error of a call that is out of time.
    fn name_what_was_late(&self, mut error: Error, end: &PortEnd) -> Error {
        if error.kind == Kind::Timeout {
            error.text = format!(
                "{}: no message from {} on port '{}' in the time given",
                self.core.name,
                end.other(),
                end.label
            );
        }
        error
    }

    /// Takes a message that has come past the inbox, and decodes the message for the program.
    /// Returns the slot and the message.
    #[inline(always)]
    pub(super) fn take_arrived(
        &self,
        source: &ReceivingEnd<'_>,
        state: &mut InletState,
        arrived: Arrived,
        since: i64,
    ) -> Result<(u32, Message)> {
        let slot = source.slot.unwrap_or(0);
        Ok((slot, self.unpack(source, slot, state, arrived, since)?))
    }

    /// Spins for a moment for the next message of an empty inbox: most waits are shorter than a
    /// sleep and a wake-up. Some waits are timed, as a sample.
    #[inline(always)]
    fn spin(&self, end: &PortEnd, carrier: &dyn Carrier, inbox: &Inbox) -> Option<Arrived> {
        if self.profile.trace.on {
            return None;
        }
        let start = end.meter.sample().map(|times| (Instant::now(), times));
        let mut arrived = Arrived::default();
        if !self.core.bell.glance(carrier, inbox, &mut arrived) {
            return None;
        }
        start.inspect(|(start, times)| end.meter.waited(start.elapsed() * *times));
        Some(arrived)
    }

    /// Notes that the program now has a message of the given time.
    #[inline(always)]
    pub(crate) fn note_received(&self, number: usize, slot: u32, timestamp: f64) -> Result<()> {
        let port = &self.table.ports[number];
        let (end, operator, timeline) = ((number, slot), port.operator, port.timeline);
        let call = PortCall {
            port: &port.name,
            end,
            operator,
            timeline,
            timestamp,
            next: None,
        };
        let called = self.change_loop(|execution| execution.call(&call));
        called.map_err(|why| Error::new(Kind::CallOrder, format!("{}: {why}", self.core.name)))?;
        self.goes_on();
        self.at(timestamp);
        Ok(())
    }

    /// Notes that the program has a message now.
    #[inline(always)]
    pub(super) fn took(
        &self,
        source: &ReceivingEnd<'_>,
        slot: u32,
        message: &Message,
    ) -> Result<()> {
        // A message given again by `repeat` or made up by `pad` has no time of its own, and a
        // receiver that pulls may go back in time.
        let timestamp = if source.follows() || source.inlet.end.pulled {
            self.execution_loop().now().unwrap_or(message.timestamp)
        } else {
            message.timestamp
        };
        self.note_received(source.number, slot, timestamp)
    }

    /// Puts back a message that a call out of order has found, for a later call in order. Drops a
    /// message with an impossible time, since no call could take the message. Returns the error.
    #[cold]
    pub(super) fn misplaced(
        &self,
        error: Error,
        source: &ReceivingEnd<'_>,
        port: &mut PortState,
        slot: u32,
        message: Message,
    ) -> Error {
        if self
            .execution_loop()
            .place(&source.port.name, source.port.operator)
            .is_err()
        {
            self.leave_there(source, port, slot, message);
        }
        error
    }

    /// Puts back a message that a call did not get, for the next call.
    #[cold]
    pub(super) fn leave_there(
        &self,
        source: &ReceivingEnd<'_>,
        port: &mut PortState,
        slot: u32,
        message: Message,
    ) {
        let state = &mut port.inlets[source.place];
        if source.follows() {
            // `repeat` and `pad` choose anew for the next call. `pad` gives a message once, and did
            // not give this message.
            if let Some(chosen) = &mut state.chosen
                && chosen
                    .latest
                    .as_ref()
                    .is_some_and(|latest| latest.body.is_same(&message.body))
            {
                chosen.given = None;
            }
            return;
        }
        state.put_back(slot, message);
        self.any.put_back.store(true, Ordering::Relaxed);
    }

    /// Takes a message of the end, if there is one. Returns the slot and the message. `repeat` and
    /// `pad` choose by the place `here` of the call. `since` is when the call began to wait, for
    /// the trace.
    fn poll(
        &self,
        source: &ReceivingEnd<'_>,
        state: &mut InletState,
        here: &UsePlace,
        since: i64,
    ) -> Result<Option<(u32, Message)>> {
        // A look takes in all that has come. Where the oldest message is wanted and is there, the
        // others may wait: a message that is taken later may come past the inbox.
        let is_there = source
            .direct_inbox()
            .is_some_and(|inbox| !inbox.has_no_news());
        if !is_there && let Some(carrier) = source.inlet.end.carrier.get() {
            carrier.look();
        }
        self.poll_inbox(source, state, here, since)
    }

    /// As [`Serial::poll`], without a look at the carrier.
    pub(super) fn poll_inbox(
        &self,
        source: &ReceivingEnd<'_>,
        state: &mut InletState,
        here: &UsePlace,
        mut since: i64,
    ) -> Result<Option<(u32, Message)>> {
        let ReceivingEnd {
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
            inlet.end_is_known.store(true, Ordering::Relaxed);
            return Err(self.no_more_from(&inlet.end));
        }
        if !inlet.inbox.ready() {
            self.reachable(&inlet.end)?;
        }
        Ok(None)
    }

    /// The error of a call on an end after the sender has finished.
    #[cold]
    fn no_more_from(&self, end: &PortEnd) -> Error {
        let (name, peer, label) = (&self.core.name, written(&end.peer), &end.label);
        let (kind, text) = match end.conduit_use {
            ConduitUse::Ports => (
                Kind::PortClosed,
                format!(
                    "{name}: port '{label}' is closed: {} has finished and sends no more",
                    end.other()
                ),
            ),
            ConduitUse::FieldLink if instance_of(&end.peer) != *name => (
                Kind::CallOrder,
                format!(
                    "{name}: field on port '{}': {peer} has closed the instance, or withdrawn the field, where its rank 0 goes \
                     on: all ranks send, and withdraw, as often as rank 0",
                    end.port_name()
                ),
            ),
            ConduitUse::RankTree | ConduitUse::FieldLink => (
                Kind::CallOrder,
                format!(
                    "{name}: {peer} has closed the instance, and sends no more, where other ranks go on: all of them make the \
                     same calls, and close together"
                ),
            ),
        };
        self.by_end_of(Error::new(kind, text), [&*end.peer])
    }

    /// Prepares an arrived message for the program: decompresses and filters the data, and adds the
    /// overlay. `since` is when the call began to wait, for the trace.
    #[inline(always)]
    pub(super) fn unpack(
        &self,
        source: &ReceivingEnd<'_>,
        slot: u32,
        state: &mut InletState,
        arrived: Arrived,
        since: i64,
    ) -> Result<Message> {
        if self.profile.trace.on {
            return self.unpack_traced(source, slot, state, arrived, since);
        }
        self.decoded(source.inlet, state, arrived)
    }

    /// Keeps the rows of a received message, as MUSCLE3 does. A message lies in memory already when
    /// a call finds the message, so the row of the transfer takes no time.
    #[cold]
    fn unpack_traced(
        &self,
        source: &ReceivingEnd<'_>,
        slot: u32,
        state: &mut InletState,
        arrived: Arrived,
        since: i64,
    ) -> Result<Message> {
        let found = self.profile.trace.now();
        let began = if since == 0 { found } else { since };
        let message = self.decoded(source.inlet, state, arrived)?;
        let stop = self.profile.trace.now();
        let (port, end) = (source.port, &source.inlet.end);
        for (kind, start, stop) in [
            ("RECEIVE_WAIT", began, found),
            ("RECEIVE_TRANSFER", found, found),
            ("RECEIVE_DECODE", found, stop),
            ("RECEIVE", began, stop),
        ] {
            self.row_of(&RowOfMessage {
                kind,
                port,
                end,
                slot,
                time: (start, stop),
                number: message.number,
                size: message.body.len() as u64,
                timestamp: message.timestamp,
            });
        }
        Ok(message)
    }

    #[inline(always)]
    fn decoded(&self, inlet: &Inlet, state: &mut InletState, arrived: Arrived) -> Result<Message> {
        let iteration = match arrived.meta.iteration {
            None => Iteration::default(),
            Some(_) => iteration_of(&arrived).outer(inlet.end.chain.lasts),
        };
        let Arrived {
            head,
            mut meta,
            mut body,
        } = arrived;
        let PortEnd { meter, chain, .. } = &inlet.end;
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
                    self.core.name,
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
        // Messages between ranks have an encoding of their own. Rank 0 has already read the data
        // inside.
        if *message.content() != Content::Structure || inlet.end.conduit_use != ConduitUse::Ports {
            return Ok(message);
        }
        read_structure(message)
            .map_err(|error| self.malformed(&inlet.end, head.timestamp, &error.to_string()))
    }

    /// The error for a malformed message: no call of titin sends such a message.
    #[cold]
    fn malformed(&self, end: &PortEnd, timestamp: f64, why: &str) -> Error {
        let text = format!(
            "{}: port '{}': the message of {} at time {timestamp:?} cannot be read: {why}; no call of titin sends such data, so \
             look for what overwrites memory in that program",
            self.core.name,
            end.label,
            end.other()
        );
        Error::new(Kind::TypeMismatch, text)
    }
}

/// The settings in a message on `muscle_settings_in`: a map from names to values.
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
