//! Receiving from any of several ports.
//!
//! The inboxes of most ports put themselves on a list when a message or an end comes, and a call
//! takes the next inbox of the list. By the short way a call with an empty list looks at the carriers
//! of some ends first. So the cost does not grow with the number of ports. Messages of
//! F_INIT ports, behind step filters, and for slots counted by the sender, may wait elsewhere. With
//! such ports a call looks at one port after the other.

use std::cell::Cell;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use titin_model::Operator;
use titin_transport::{Arrival, Arrivals, Carrier, IncomingMessage, SpinLock, SpinLockGuard};

use super::Serial;
use super::receive::{Patience, Received};
use super::receiving_end::{HeldPorts, ReceivingEnd};
use super::step_filters::UsePlace;
use super::wait::Wait;
use crate::field_mark::ordinary;
use crate::port::{Inlet, PortEnd, PortId, PortState, two_at_once};
use crate::{Error, Kind, Message, Result};

/// Ports of an instance to receive from, for [`Instance::receive_from`].
pub struct PortChoice {
    /// A number unique among the choices of the process.
    number: u64,
    ports: Vec<PortId>,
    /// Where the ports' inboxes put themselves on a list.
    selection: Option<SpinLock<Selection>>,
}

/// A receiving end of the chosen ports.
#[derive(Clone, Copy)]
pub(super) struct ChosenEnd {
    pub(super) port_number: usize,
    /// The place of the end at the port.
    pub(super) place: usize,
    /// The index of the port in the program's list.
    pub(super) index: usize,
    /// The number of the end among the chosen ends.
    number: usize,
}

/// The most ends in one look without the list. For more ends the long way is cheaper: one look takes
/// all messages in, and the inboxes put themselves on the list.
const MOST_ENDS: usize = 16;

/// The most messages in a row from the list, before a call by the short way looks at the carriers.
const MOST_LISTED_IN_ROW: u32 = 64;

/// Receiving ends, and the list of ends with news.
struct Selection {
    ends: Vec<ChosenEnd>,
    arrivals: Arc<Arrivals>,
    /// The end at which the next look without a list begins, so that ports take turns.
    turn: Cell<usize>,
    /// How many messages in a row calls by the short way have taken from the list.
    listed_in_row: Cell<u32>,
    /// How many of the ends may bring messages yet.
    open: Cell<usize>,
    /// [`Process::loss_count`](crate::process::Process::loss_count) at the last check of the senders.
    losses_seen: Cell<u64>,
    carriers: Carriers,
}

/// The carriers of the messages.
enum Carriers {
    /// Some end has no carrier yet.
    Unknown,
    One(Arc<dyn Carrier>),
    Several,
}

static NUMBER: AtomicU64 = AtomicU64::new(1);

impl PortChoice {
    /// The ports, in the order of the program.
    pub(crate) fn ports(&self) -> &[PortId] {
        &self.ports
    }
}

impl Serial {
    /// Ports to receive from by [`Serial::receive_chosen`].
    pub(crate) fn choose_ports(&self, ports: &[PortId]) -> Result<Arc<PortChoice>> {
        let (mut ends, mut seen, mut plain) =
            (Vec::new(), HashSet::new(), !self.execution.counts_steps);
        for (index, &id) in ports.iter().enumerate() {
            let port = &self.table.ports[id.0];
            if !seen.insert(id) {
                let text = format!(
                    "receive_any was given port '{}' twice; name each port once",
                    port.name
                );
                return Err(Error::new(Kind::Usage, text));
            }
            // Rank 0 of a parallel program has the ends.
            if !self.leads() {
                plain = false;
                continue;
            }
            plain &= port.operator == Operator::S && !port.resizable;
            // If the sender counts the slots of a port, the first end brings the messages for all
            // slots.
            let slots = if port.resizable && !port.operator.sends() {
                0
            } else {
                port.slots()
            };
            for slot in 0..slots {
                let source = self.source(id, port.vector.then_some(slot))?;
                plain &= !source.inlet.end.chain.chooses();
                ends.push(ChosenEnd {
                    port_number: id.0,
                    place: source.place,
                    index,
                    number: ends.len(),
                });
            }
        }
        if ports.is_empty() || (ends.is_empty() && plain) {
            return Err(Error::new(
                Kind::Usage,
                "receive_any was given no port with a slot",
            ));
        }
        let selection = Selection {
            ends,
            arrivals: Arc::default(),
            turn: Cell::new(0),
            listed_in_row: Cell::new(0),
            open: Cell::new(0),
            losses_seen: Cell::new(0),
            carriers: Carriers::Unknown,
        };
        let selection = plain.then(|| SpinLock::new(selection));
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Ok(Arc::new(PortChoice {
            number,
            ports: ports.to_vec(),
            selection,
        }))
    }
}

/// The selection of a choice during a call, which marks the list as in use.
pub(super) struct LockedSelection<'a> {
    selection: SpinLockGuard<'a, Selection>,
    /// The number of ends in the next look of a call by the short way (`repeated.rs`). Falls with each
    /// end found, so that the call ends.
    ends_in_look: usize,
}

/// The next end for a call by the short way to look at.
pub(super) struct NextEnd {
    pub(super) end: ChosenEnd,
    /// Whether the end was on the list.
    pub(super) is_listed: bool,
}

impl PortChoice {
    /// The selection, if a call with this choice was the last call on several ports, and none of the
    /// ports carries a field.
    #[inline(always)]
    pub(super) fn lock_selection(&self, serial: &Serial) -> Option<LockedSelection<'_>> {
        let selection = self.selection.as_ref()?.try_lock()?;
        let has_field = |port: &PortId| {
            let port = &serial.table.ports[port.0];
            port.has_field.load(Ordering::Relaxed)
        };
        // Locked until the list is marked: a call with another choice looks for the mark.
        let chosen_by = serial.any.chosen_by.lock().expect("never poisoned");
        if *chosen_by != self.number || self.ports.iter().any(has_field) {
            return None;
        }
        Some(LockedSelection::marked(selection))
    }
}

impl Drop for LockedSelection<'_> {
    fn drop(&mut self) {
        self.selection.arrivals.set_in_use(false);
    }
}

impl<'a> LockedSelection<'a> {
    /// Marks the list as in use.
    #[inline(always)]
    fn marked(selection: SpinLockGuard<'a, Selection>) -> Self {
        selection.arrivals.set_in_use(true);
        let ends_in_look = selection.ends.len().min(MOST_ENDS);
        LockedSelection {
            selection,
            ends_in_look,
        }
    }

    /// The first end for a call to look at. Now and then the carriers come before the list: a list that
    /// fills as fast as the program receives would hide the messages in the carriers.
    #[inline(always)]
    pub(super) fn first(&mut self, serial: &Serial) -> Option<NextEnd> {
        let is_turn_of_carriers = self.selection.listed_in_row.get() >= MOST_LISTED_IN_ROW;
        if is_turn_of_carriers && let Some(end) = self.with_news(serial, false) {
            return Some(end);
        }
        self.next(serial)
    }

    /// The next end to look at: of the list, or with something to be taken in from its carrier. The
    /// inbox of an end of the list may be empty again.
    #[inline(always)]
    pub(super) fn next(&mut self, serial: &Serial) -> Option<NextEnd> {
        match self.selection.arrivals.pop() {
            Some(number) => Some(NextEnd {
                end: self.selection.ends[number as usize],
                is_listed: true,
            }),
            None => self.with_news(serial, true),
        }
    }

    /// Puts an end back on the list.
    #[cold]
    pub(super) fn put_back(&self, end: ChosenEnd) {
        self.selection.arrivals.push(end.number as u32);
    }

    /// Takes the next message of an end of the list; false if the inbox has no message. The caller has
    /// taken the end's port.
    #[inline(always)]
    pub(super) fn take_listed(&self, inlet: &Inlet, message: &mut IncomingMessage) -> bool {
        match inlet.inbox.take_arrival() {
            Arrival::Message(arrived) => {
                *message = arrived;
                self.selection.listed_in_row.update(|count| count + 1);
                return true;
            }
            Arrival::Nothing => {}
            Arrival::End => self.selection.note_end(inlet),
        }
        false
    }

    /// The next end whose carrier has something to be taken in or, with `waits`, has something within
    /// a moment. Some waits are timed, as a sample.
    #[inline(always)]
    fn with_news(&mut self, serial: &Serial, waits: bool) -> Option<NextEnd> {
        if self.ends_in_look == 0 {
            return None;
        }
        let Selection { ends, turn, .. } = &*self.selection;
        let inlet =
            |end: &ChosenEnd| serial.table.ports[end.port_number].inlets[end.place].as_ref();
        let has_news = |end: &&ChosenEnd| {
            let carrier = inlet(end).and_then(|inlet| inlet.end.carrier.get());
            carrier.is_some_and(|carrier| carrier.has_news())
        };
        let first = turn.get() % ends.len();
        let (before, rest) = ends.split_at(first);
        let look = || {
            rest.iter()
                .chain(before)
                .take(self.ends_in_look)
                .find(has_news)
        };
        let sampled = || inlet(&ends[first])?.end.meter.sample();
        let found = match look() {
            None if waits => {
                let start = sampled().map(|times| (Instant::now(), times));
                let found = serial.core.bell.glance_by(look);
                let meter = found.and_then(inlet).map(|inlet| &inlet.end.meter);
                let waited = start.map(|(start, times)| start.elapsed() * times);
                meter
                    .zip(waited)
                    .inspect(|(meter, waited)| meter.waited(*waited));
                found
            }
            found => found,
        };
        self.selection.listed_in_row.set(0);
        turn.set(found.map_or(first + self.ends_in_look, |end| end.number + 1));
        self.ends_in_look -= 1;
        Some(NextEnd {
            end: *found?,
            is_listed: false,
        })
    }
}

/// Takes the next message of an end from its carrier, if the message is there. The caller has taken
/// the end's port.
#[inline(always)]
pub(super) fn take_from_carrier(inlet: &Inlet, message: &mut IncomingMessage) -> bool {
    let mut look_once = |_| true;
    let carrier = inlet.end.carrier.get();
    carrier.is_some_and(|carrier| carrier.attend_one(&inlet.inbox, &mut look_once, message))
}

impl Selection {
    /// Notes that an end brings no more messages.
    #[cold]
    fn note_end(&self, inlet: &Inlet) {
        inlet.end_is_known.store(true, Ordering::Relaxed);
        self.open.update(|open| open - 1);
    }

    /// Has the inboxes put themselves on a new list. Fails if another call waits for one of the
    /// inboxes. A later call with the same ports reuses the list without this check: such a call
    /// finds the other call only once a message comes by the port. The caller holds the ports until
    /// the list is marked as in use.
    fn begin<'a>(&mut self, serial: &'a Serial, ports: &[PortId]) -> Result<HeldPorts<'a>> {
        // Set before the ports are taken: a call on one of them either sees `lists`, or finds the
        // port taken.
        serial.any.lists.store(true, Ordering::Relaxed);
        let held = ports
            .iter()
            .map(|port| serial.table.ports[port.0].enter())
            .collect::<Result<_>>()?;
        let ends = || self.ends.iter().map(|end| serial.end_at(*end));
        if let Some(source) = ends().find(|source| source.inlet.inbox.is_waited_for()) {
            return Err(two_at_once(&source.port.name));
        }
        // Since the choice was made, a member may have been started again.
        for end in &mut self.ends {
            let port = &serial.table.ports[end.port_number];
            end.place = port.place_of(port.slot_of(end.place));
        }
        self.carriers = Carriers::Unknown;
        self.arrivals = Arc::default();
        let is_told = |end: &&ChosenEnd| {
            let inlet = serial.end_at(**end).inlet;
            inlet.failure_is_told.load(Ordering::Relaxed)
        };
        let told = self.ends.iter().filter(is_told).count();
        self.open.set(self.ends.len() - told);
        for (number, end) in self.ends.iter().enumerate() {
            serial
                .end_at(*end)
                .inlet
                .inbox
                .announce_in(&self.arrivals, number as u32);
        }
        Ok(held)
    }

    /// The carrier of all ends, if all ends have the same carrier.
    fn carrier(&mut self, serial: &Serial) -> Option<Arc<dyn Carrier>> {
        if matches!(self.carriers, Carriers::Unknown) {
            let carrier = |end: &ChosenEnd| serial.end_at(*end).inlet.end.carrier.get();
            let mut carriers = self.ends.iter().map(carrier);
            let first = carriers.next()??;
            let mut one = true;
            for other in carriers {
                one &= std::ptr::addr_eq(Arc::as_ptr(first), Arc::as_ptr(other?));
            }
            self.carriers = if one {
                Carriers::One(first.clone())
            } else {
                Carriers::Several
            };
        }
        if let Carriers::One(carrier) = &self.carriers {
            Some(carrier.clone())
        } else {
            None
        }
    }
}

impl Serial {
    pub(crate) fn receive_chosen(
        &self,
        choice: &PortChoice,
        patience: Patience,
    ) -> Result<Received> {
        let PortChoice {
            number,
            ports,
            selection,
        } = choice;
        let Some(selection) = selection else {
            return self.receive_by_turns(ports, patience);
        };
        let mut selection = selection
            .try_lock()
            .ok_or_else(|| two_at_once(&self.table.ports[ports[0].0].name))?;
        let mut begun = self.any.chosen_by.lock().expect("never poisoned");
        let held = if *begun == *number {
            HeldPorts::new()
        } else {
            selection.begin(self, ports)?
        };
        *begun = *number;
        let mut locked = LockedSelection::marked(selection);
        // From here on a call on one of the ports finds that this call waits for the port.
        drop((begun, held));
        self.receive_listed(&mut locked.selection, patience)
    }

    /// A chosen end.
    fn end_at(&self, end: ChosenEnd) -> ReceivingEnd<'_> {
        self.end_of(end.port_number, end.place)
            .expect("chosen, so it is connected")
    }

    fn receive_listed(&self, selection: &mut Selection, patience: Patience) -> Result<Received> {
        let carrier = selection.carrier(self);
        let (carrier, selection) = (carrier.as_deref(), &*selection);
        if self.reporter.pending.is_none()
            && let Some((source, message)) = self.poll_listed(selection, carrier, 0)?
        {
            return self.chosen(&source, None, source.slot.unwrap_or(0), message);
        }
        let start = self.profile.trace.clock();
        let ends = &selection.ends;
        let on = || {
            ends.iter()
                .filter_map(|end| self.end_at(*end).wait_on(self))
                .collect()
        };
        let conduit = ends.first().map(|end| self.end_at(*end).inlet.end.conduit);
        let since = self.start_of_wait(conduit);
        let found = self.wait(
            Wait::about(conduit).until(patience.deadline()).by(carrier),
            on,
            || self.poll_listed(selection, carrier, since),
        );
        let ends = || ends.iter().map(|end| &self.end_at(*end).inlet.end);
        let (source, message) = found.map_err(|error| self.too_late(error, ends()))?;
        let slot = source.slot.unwrap_or(0);
        source.inlet.end.meter.waited(self.waited_since(start));
        self.chosen(&source, None, slot, message)
    }

    /// The message of the next end on the list, if there is a message. `since` is the start of the
    /// call's wait.
    fn poll_listed(
        &self,
        selection: &Selection,
        carrier: Option<&dyn Carrier>,
        since: i64,
    ) -> Result<Option<(ReceivingEnd<'_>, Message)>> {
        let Selection {
            ends,
            arrivals,
            open,
            losses_seen,
            ..
        } = selection;
        if self.any.put_back.load(Ordering::Relaxed)
            && let Some(found) = self.unstash(ends)?
        {
            return Ok(Some(found));
        }
        match carrier {
            Some(carrier) => carrier.look(),
            None => self.carriers().iter().for_each(|carrier| carrier.look()),
        }
        while let Some(number) = arrivals.pop() {
            let source = self.end_at(ends[number as usize]);
            // An end with an untaken message stays on the list.
            let mut port = source.port.enter().inspect_err(|_| arrivals.push(number))?;
            match source.inlet.inbox.take_arrival() {
                Arrival::Message(arrived) => {
                    let state = &mut port.inlets[source.place];
                    let slot = source.slot.unwrap_or(0);
                    let message = self.unpack(&source, slot, state, arrived, since)?;
                    return Ok(Some((source, message)));
                }
                Arrival::Nothing => {}
                Arrival::End => selection.note_end(source.inlet),
            }
        }
        if open.get() == 0 {
            return Err(self.all_closed(ends.iter().map(|end| &self.end_at(*end).inlet.end)));
        }
        let losses = self.core.process.loss_count();
        if losses_seen.get() != losses {
            let inlets = ends.iter().map(|end| self.end_at(*end).inlet);
            let mut silent = inlets.filter(|inlet| !inlet.inbox.ready() && !inlet.inbox.ended());
            silent.try_for_each(|inlet| self.reachable_untold(selection, inlet))?;
            losses_seen.set(losses);
            if open.get() == 0 {
                return Err(self.all_closed(ends.iter().map(|end| &self.end_at(*end).inlet.end)));
            }
        }
        // All ends are of the same operator.
        self.place(&[self.end_at(ends[0])]).map(|()| None)
    }

    /// As [`Serial::reachable`], but tells of a failed member once. The end then counts as closed.
    fn reachable_untold(&self, selection: &Selection, inlet: &Inlet) -> Result<()> {
        let error = match self.reachable(&inlet.end) {
            Err(error) if error.kind == Kind::MemberFailed => error,
            reachable => return reachable,
        };
        if inlet.failure_is_told.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        selection.note_end(inlet);
        Err(error)
    }

    /// A message of one of the given ends that a call out of order has put back.
    #[cold]
    fn unstash(&self, ends: &[ChosenEnd]) -> Result<Option<(ReceivingEnd<'_>, Message)>> {
        for source in ends.iter().map(|end| self.end_at(*end)) {
            if let Some((_, message)) =
                source.port.enter()?.inlets[source.place].unstash(source.slot)
            {
                return Ok(Some((source, message)));
            }
        }
        Ok(None)
    }

    /// Receives from any of the given ports by a look at one port after the other.
    fn receive_by_turns(&self, ports: &[PortId], patience: Patience) -> Result<Received> {
        let (mut sources, mut held) = (Vec::new(), HeldPorts::new());
        for &PortId(number) in ports {
            let port = &self.table.ports[number];
            held.push(port.enter()?);
            let place = held.len() - 1;
            if port.resizable {
                sources.extend(self.ends_of(number, place).map(|source| ReceivingEnd {
                    slot: None,
                    ..source
                }));
            } else {
                sources.extend(self.ends_of(number, place));
            }
        }
        self.before(&sources, patience)?;
        let conduit = sources.first().map(|source| source.inlet.end.conduit);
        let since = self.start_of_wait(conduit);
        let places: Vec<UsePlace> = sources.iter().map(|source| self.here(source)).collect();
        let turn = self.any.turn.load(Ordering::Relaxed);
        let ends = || sources.iter().map(|source| &source.inlet.end);
        let on = || {
            sources
                .iter()
                .filter_map(|source| source.wait_on(self))
                .collect()
        };
        let poll = || {
            let mut open = false;
            self.carriers().iter().for_each(|carrier| carrier.look());
            for step in 0..sources.len() {
                let index = (turn + step) % sources.len();
                let source = &sources[index];
                match self.poll_inbox(source, source.state(&mut held), &places[index], since) {
                    Ok(Some((slot, message))) => return Ok(Some((index, slot, message))),
                    Ok(None) => open = true,
                    Err(error) if error.kind == Kind::PortClosed => {}
                    Err(error) if error.kind == Kind::MemberFailed => {
                        let is_told = &source.inlet.failure_is_told;
                        if !is_told.swap(true, Ordering::Relaxed) {
                            return Err(error);
                        }
                    }
                    Err(error) => return Err(error),
                }
            }
            if open {
                return self.place(&sources).map(|()| None);
            }
            Err(self.all_closed(ends()))
        };
        let start = self.profile.trace.clock();
        let found = self.wait(Wait::about(conduit).until(patience.deadline()), on, poll);
        let (index, slot, message) = found.map_err(|error| self.too_late(error, ends()))?;
        // The next call begins with the following end.
        self.any.turn.store(index + 1, Ordering::Relaxed);
        let source = &sources[index];
        source.inlet.end.meter.waited(self.waited_since(start));
        self.chosen(source, Some(&mut held[source.held]), slot, message)
    }

    /// Notes the message that the call gives. `port` is the state of the port, if the call has
    /// taken the port.
    fn chosen(
        &self,
        source: &ReceivingEnd<'_>,
        port: Option<&mut PortState>,
        slot: u32,
        message: Message,
    ) -> Result<Received> {
        let fits = ordinary(|| source.port.label(None), &message);
        let is_field = fits.is_err();
        let Err(error) = fits.and_then(|()| self.took(source, slot, &message)) else {
            return Ok((PortId(source.number), slot, message));
        };
        let mut entered;
        let port = match port {
            Some(port) => port,
            None => {
                entered = source.port.enter()?;
                &mut *entered
            }
        };
        if is_field {
            self.leave_there(source, port, slot, message);
            return Err(error);
        }
        Err(self.misplaced(error, source, port, slot, message))
    }

    fn all_closed<'a>(&self, ends: impl Iterator<Item = &'a PortEnd> + Clone) -> Error {
        let text = format!("all of the ports {} are closed", names(ends.clone()));
        self.by_end_of(
            Error::new(Kind::PortClosed, text),
            ends.map(|end| &*end.peer),
        )
    }

    /// The error of a call on several ports. An error about time names the ports.
    fn too_late<'a>(&self, mut error: Error, ends: impl Iterator<Item = &'a PortEnd>) -> Error {
        if error.kind == Kind::Timeout {
            error.text = format!(
                "{}: no message on any of the ports {} in the time given",
                self.core.name,
                names(ends)
            );
        }
        error
    }
}

/// The names of the ends' ports, for people: a port may have hundreds of slots.
fn names<'a>(ends: impl Iterator<Item = &'a PortEnd>) -> String {
    let mut ports: Vec<(&str, &str, usize)> = Vec::new();
    for end in ends {
        let port = end
            .label
            .split_once('[')
            .map_or(&*end.label, |(port, _)| port);
        match ports.last_mut() {
            // The slots of a port stand together.
            Some((last, _, slots)) if *last == port => *slots += 1,
            _ => ports.push((port, &end.label, 1)),
        }
    }
    let name = |(port, label, slots): (&str, &str, usize)| match slots {
        1 => label.to_owned(),
        _ => format!("{port} ({slots} slots)"),
    };
    ports.into_iter().map(name).collect::<Vec<_>>().join(", ")
}
