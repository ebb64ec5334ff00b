//! Receiving from any of several ports.
//!
//! Of most ports the inboxes put themselves on a list when something comes, and a call takes what the list says: it costs
//! the same however many they are. Messages of F_INIT, behind filters that choose, and for slots that the sender counts,
//! may wait elsewhere; where such ports are among them, a call looks at one after the other.

use std::cell::Cell;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use titin_model::Operator;
use titin_transport::{Arrival, Arrivals, Carrier, SpinLock};

use super::choose::Here;
use super::receive::{Held, Patience, Source};
use super::together::unexpected;
use super::{Inner, Instance, PortId};
use crate::field::ordinary;
use crate::port::{End, PortState, two_at_once};
use crate::{Error, Kind, Message, Result};

/// Ports of an instance to receive from, as [`Instance::receive_from`] takes them.
pub struct Choice {
    /// Tells it apart from all others, those of other instances included.
    number: u64,
    ports: Vec<PortId>,
    /// Where the ports' inboxes put themselves on a list.
    selection: Option<SpinLock<Selection>>,
}

/// Receiving ends, and which of them have something.
struct Selection {
    /// Port and place of each.
    ends: Vec<(usize, usize)>,
    arrivals: Arc<Arrivals>,
    /// How many of them may bring something yet.
    open: usize,
    /// How often an instance was found out of reach when it was last asked whether that is one of their senders.
    asked: u64,
    carriers: Carriers,
}

/// By what the messages come.
enum Carriers {
    /// Not all have one yet.
    Unknown,
    One(Arc<dyn Carrier>),
    Several,
}

static NUMBER: AtomicU64 = AtomicU64::new(1);

impl Instance {
    /// Receives the next message of any of these ports, all slots of vector ports. Ports take turns; closed ones are
    /// passed over. Gives the port and the slot (0 for ports without slots). Calls with the same ports, one after the
    /// other, cost the same however many they are, but for a look at the list of ports.
    ///
    /// # Errors
    /// [`Kind::PortClosed`] once all are closed; as [`Instance::receive`].
    pub fn receive_any(
        &self,
        ports: &[PortId],
        patience: Patience,
    ) -> Result<(PortId, u32, Message)> {
        self.inner.enter()?;
        let mut last = self.inner.choice.lock().expect("never poisoned");
        let choice = match last.clone().filter(|choice| choice.ports == ports) {
            Some(choice) => choice,
            None => last.insert(self.choice(ports)?).clone(),
        };
        drop(last);
        self.receive_from(&choice, patience)
    }

    /// Ports for [`Instance::receive_from`].
    ///
    /// # Errors
    /// [`Kind::Usage`] for a port that sends, that nothing is connected to, or that is named twice, and for no port.
    pub fn choice(&self, ports: &[PortId]) -> Result<Arc<Choice>> {
        let inner = &self.inner;
        let (mut ends, mut known, mut plain) = (Vec::new(), HashSet::new(), !inner.counts_steps);
        for &id in ports {
            let port = &inner.ports[id.0];
            if !known.insert(id) {
                let text = format!(
                    "receive_any was given port '{}' twice; name each port once",
                    port.name
                );
                return Err(Error::new(Kind::Usage, text));
            }
            // Rank 0 of a parallel program has the ends.
            if !inner.leads() {
                plain = false;
                continue;
            }
            plain &= port.operator == Operator::S && !port.resizable;
            // Of one whose slots the sender counts, the first end brings what is for all of them.
            let slots = if port.resizable && !port.operator.sends() {
                0
            } else {
                port.slots()
            };
            for slot in 0..slots {
                let source = inner.source(id, port.vector.then_some(slot))?;
                plain &= !source.inlet.end.chain.chooses();
                ends.push((id.0, source.place));
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
            open: 0,
            asked: 0,
            carriers: Carriers::Unknown,
        };
        let selection = plain.then(|| SpinLock::new(selection));
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Ok(Arc::new(Choice {
            number,
            ports: ports.to_vec(),
            selection,
        }))
    }

    /// As [`Instance::receive_any`], of ports that were chosen before.
    ///
    /// # Errors
    /// As [`Instance::receive_any`]; [`Kind::Usage`] if another thread is in a call on these ports.
    pub fn receive_from(
        &self,
        choice: &Choice,
        patience: Patience,
    ) -> Result<(PortId, u32, Message)> {
        let inner = &self.inner;
        inner.enter()?;
        inner.receives_no_field(&choice.ports)?;
        if inner.ranks.is_none() {
            return inner.receive_chosen(choice, patience);
        }
        let ports: Vec<&str> = choice
            .ports
            .iter()
            .map(|port| &*inner.ports[port.0].name)
            .collect();
        let call = format!("receive_any on ports {}", ports.join(", "));
        let received =
            inner.receive_together(&call, || inner.receive_chosen(choice, patience).map(Some));
        received?.ok_or_else(|| unexpected(&call))
    }
}

/// A list that a call uses.
struct Using(Arc<Arrivals>);

impl Using {
    fn of(arrivals: &Arc<Arrivals>) -> Self {
        arrivals.set_in_use(true);
        Using(arrivals.clone())
    }
}

impl Drop for Using {
    fn drop(&mut self) {
        self.0.set_in_use(false);
    }
}

impl Selection {
    /// Has the inboxes put themselves on a list, from the beginning on; no other call may wait for any of them. That is
    /// looked at here only: beside a later call with the same ports it shows once something comes by that port.
    /// The ports are held until the list is said to be in use.
    fn begin<'a>(&mut self, inner: &'a Inner, ports: &[PortId]) -> Result<Held<'a>> {
        // What comes first, the word that there are lists or the port, is seen by a call on that port.
        inner.lists.store(true, Ordering::Relaxed);
        let held = ports
            .iter()
            .map(|port| inner.ports[port.0].enter())
            .collect::<Result<_>>()?;
        let ends = || self.ends.iter().map(|end| inner.end_at(*end));
        if let Some(source) = ends().find(|source| source.inlet.inbox.is_waited_for()) {
            return Err(two_at_once(&source.port.name));
        }
        self.arrivals = Arc::default();
        self.open = self.ends.len();
        for (number, end) in self.ends.iter().enumerate() {
            inner
                .end_at(*end)
                .inlet
                .inbox
                .announce_in(&self.arrivals, number as u32);
        }
        Ok(held)
    }

    /// The carrier by which all of them receive, if that is one.
    fn carrier(&mut self, inner: &Inner) -> Option<Arc<dyn Carrier>> {
        if matches!(self.carriers, Carriers::Unknown) {
            let carrier = |end: &(usize, usize)| inner.end_at(*end).inlet.end.carrier.get();
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

impl Inner {
    fn receive_chosen(
        &self,
        choice: &Choice,
        patience: Patience,
    ) -> Result<(PortId, u32, Message)> {
        let Choice {
            number,
            ports,
            selection,
        } = choice;
        let Some(selection) = selection else {
            return self.receive_by_turns(ports, patience);
        };
        let mut selection = selection
            .try_lock()
            .ok_or_else(|| two_at_once(&self.ports[ports[0].0].name))?;
        let mut begun = self.chosen_by.lock().expect("never poisoned");
        let held = if *begun == *number {
            Held::new()
        } else {
            selection.begin(self, ports)?
        };
        *begun = *number;
        let _using = Using::of(&selection.arrivals);
        // From here on a call on one of the ports finds that it is waited for.
        drop((begun, held));
        self.receive_listed(&mut selection, patience)
    }

    /// An end that was chosen.
    fn end_at(&self, (number, place): (usize, usize)) -> Source<'_> {
        self.end_of(number, place)
            .expect("chosen, so it is connected")
    }

    fn receive_listed(
        &self,
        selection: &mut Selection,
        patience: Patience,
    ) -> Result<(PortId, u32, Message)> {
        let carrier = selection.carrier(self);
        let Selection {
            ends,
            arrivals,
            open,
            asked,
            ..
        } = selection;
        let since = Cell::new(0);
        let mut poll = || {
            if self.put_back.load(Ordering::Relaxed)
                && let Some(found) = self.unstash(ends)?
            {
                return Ok(Some(found));
            }
            match &carrier {
                Some(carrier) => carrier.look(),
                None => self.carriers().iter().for_each(|carrier| carrier.look()),
            }
            while let Some(number) = arrivals.pop() {
                let source = self.end_at(ends[number as usize]);
                // What is not taken stays on the list.
                let mut port = source.port.enter().inspect_err(|_| arrivals.push(number))?;
                match source.inlet.inbox.take_arrival() {
                    Arrival::Message(arrived) => {
                        let state = &mut port.inlets[source.place];
                        let slot = source.slot.unwrap_or(0);
                        let message = self.unpack(&source, slot, state, arrived, since.get())?;
                        return Ok(Some((source, message)));
                    }
                    Arrival::Nothing => {}
                    Arrival::End => *open -= 1,
                }
            }
            if *open == 0 {
                return Err(self.all_closed(ends.iter().map(|end| &self.end_at(*end).inlet.end)));
            }
            let given_up = self.process.given_up();
            if *asked != given_up {
                let inlets = ends.iter().map(|end| self.end_at(*end).inlet);
                let mut open = inlets.filter(|inlet| !inlet.inbox.ready() && !inlet.inbox.ended());
                open.try_for_each(|inlet| self.reachable(&inlet.end))?;
                *asked = given_up;
            }
            // All are of the same operator.
            self.place(&[self.end_at(ends[0])]).map(|()| None)
        };
        if self.light.is_none()
            && let Some((source, message)) = poll()?
        {
            return self.chosen(&source, None, source.slot.unwrap_or(0), message);
        }
        let start = self.trace.clock();
        let on = || {
            ends.iter()
                .map(|end| self.end_at(*end).wait_on(self))
                .collect()
        };
        let who = ends.first().map(|end| self.end_at(*end).inlet.end.conduit);
        since.set(self.start_of_wait(who));
        let found = self.wait(who, patience.deadline(), carrier.as_deref(), on, poll);
        let ends = || ends.iter().map(|end| &self.end_at(*end).inlet.end);
        let (source, message) = found.map_err(|error| self.too_late(error, ends()))?;
        let slot = source.slot.unwrap_or(0);
        source.inlet.end.meter.waited(self.waited_since(start));
        self.chosen(&source, None, slot, message)
    }

    /// A message that a call out of order has put back, of one of these ends.
    #[cold]
    fn unstash(&self, ends: &[(usize, usize)]) -> Result<Option<(Source<'_>, Message)>> {
        for source in ends.iter().map(|end| self.end_at(*end)) {
            if let Some((_, message)) =
                source.port.enter()?.inlets[source.place].unstash(source.slot)
            {
                return Ok(Some((source, message)));
            }
        }
        Ok(None)
    }

    /// Receives from any of these ports by looking at one after the other.
    fn receive_by_turns(
        &self,
        ports: &[PortId],
        patience: Patience,
    ) -> Result<(PortId, u32, Message)> {
        let (mut sources, mut held) = (Vec::new(), Held::new());
        for &PortId(number) in ports {
            let port = &self.ports[number];
            held.push(port.enter()?);
            let place = held.len() - 1;
            if port.resizable {
                sources.extend(self.ends_of(number, place).map(|source| Source {
                    slot: None,
                    ..source
                }));
            } else {
                sources.extend(self.ends_of(number, place));
            }
        }
        self.before(&sources, patience)?;
        let who = sources.first().map(|source| source.inlet.end.conduit);
        let since = self.start_of_wait(who);
        let places: Vec<Here> = sources.iter().map(|source| self.here(source)).collect();
        let turn = self.turn.load(Ordering::Relaxed);
        let ends = || sources.iter().map(|source| &source.inlet.end);
        let on = || sources.iter().map(|source| source.wait_on(self)).collect();
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
                    Err(error) => return Err(error),
                }
            }
            if open {
                return self.place(&sources).map(|()| None);
            }
            Err(self.all_closed(ends()))
        };
        let start = self.trace.clock();
        let found = self.wait(who, patience.deadline(), None, on, poll);
        let (index, slot, message) = found.map_err(|error| self.too_late(error, ends()))?;
        // The one behind is asked first next time.
        self.turn.store(index + 1, Ordering::Relaxed);
        let source = &sources[index];
        source.inlet.end.meter.waited(self.waited_since(start));
        self.chosen(source, Some(&mut held[source.held]), slot, message)
    }

    /// What the call gives. `port` is the source's, if the call has taken it.
    fn chosen(
        &self,
        source: &Source<'_>,
        port: Option<&mut PortState>,
        slot: u32,
        message: Message,
    ) -> Result<(PortId, u32, Message)> {
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

    fn all_closed<'a>(&self, ends: impl Iterator<Item = &'a End> + Clone) -> Error {
        let text = format!("all of the ports {} are closed", names(ends.clone()));
        self.by_end_of(
            Error::new(Kind::PortClosed, text),
            ends.map(|end| &*end.peer),
        )
    }

    /// An error of a call on several ports; one about time says which.
    fn too_late<'a>(&self, mut error: Error, ends: impl Iterator<Item = &'a End>) -> Error {
        if error.kind == Kind::Timeout {
            error.text = format!(
                "{}: no message on any of the ports {} in the time given",
                self.name,
                names(ends)
            );
        }
        error
    }
}

/// The names of the ends' ports, for people: a port may have hundreds of slots.
fn names<'a>(ends: impl Iterator<Item = &'a End>) -> String {
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
