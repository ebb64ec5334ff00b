//! Ports and the conduit ends behind them.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, LazyLock, Mutex, OnceLock};

use titin_model::Operator;
use titin_transport::{Carrier, Inbox, Latch, Latched, Medium, Window};
use titin_wire::ConduitId;
use titin_wire::control::ConduitEnd;
use titin_wire::meta::{Codec, Meta};
use titin_wire::settings::Overlay;

use crate::filter::{Chain, Mapped};
use crate::instance::Sending;
use crate::iteration::Iteration;
use crate::process::Way;
use crate::profile::Meter;
use crate::{Error, Kind, Message, Payload, Result};

/// What a program may know about a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortInfo {
    /// Its name, without `[]`.
    pub name: String,
    /// Its operator.
    pub operator: Operator,
    /// Whether it has slots.
    pub vector: bool,
    /// Whether the number of slots is set at run time.
    pub resizable: bool,
    /// Whether anything is connected to it.
    pub connected: bool,
    /// Number of slots now; 1 for a port without slots.
    pub slots: u32,
}

/// There may be a hundred thousand of these and of [`End`] in a process: names are shared.
pub(crate) struct Port {
    pub(crate) name: Arc<str>,
    pub(crate) operator: Operator,
    pub(crate) vector: bool,
    pub(crate) resizable: bool,
    /// Which of the instance's own timelines it is on.
    pub(crate) timeline: usize,
    /// Whether a field was declared on it, by which alone it is used from then on.
    pub(crate) has_field: AtomicBool,
    slots: AtomicU32,
    /// Per slot (only one if the slots are counted at run time), the conduits that it sends along.
    pub(crate) outlets: Vec<Vec<Outlet>>,
    /// Per slot (only one if the slots are counted at run time), the conduit that it receives from.
    pub(crate) inlets: Vec<Option<Inlet>>,
    /// Taken by the call that uses the port.
    state: Latch<PortState>,
}

/// What a port keeps from one call to the next, which one call at a time may look at.
#[derive(Default)]
pub(crate) struct PortState {
    /// The sends that are to be made again, each on a slot of its own: those of a light instance that are pending, and
    /// those that were interrupted.
    pub(crate) sending: Vec<Sending>,
    /// Of all its outlets, by their numbers.
    pub(crate) outlets: Vec<OutletState>,
    /// Of its inlets, by their places.
    pub(crate) inlets: Vec<InletState>,
}

/// What both ends of a conduit have.
pub(crate) struct End {
    pub(crate) conduit: ConduitId,
    pub(crate) label: Arc<str>,
    pub(crate) peer: Arc<str>,
    pub(crate) peer_port: Arc<str>,
    /// The medium that it is pinned to.
    pub(crate) pinned: Option<Box<str>>,
    /// The way that the carrier is of.
    joined: OnceLock<Way>,
    /// Why no carrier will come.
    pub(crate) unfit: OnceLock<String>,
    pub(crate) carrier: OnceLock<Arc<dyn Carrier>>,
    pub(crate) meter: Meter,
    pub(crate) chain: Chain,
}

/// The sending end of a conduit.
pub(crate) struct Outlet {
    pub(crate) end: End,
    pub(crate) window: Arc<Window>,
    /// Its number among those of the port.
    pub(crate) number: usize,
    /// What its filters need to know of what was sent, where they choose.
    pub(crate) sent: Option<Box<Mutex<Sent>>>,
}

/// What a sending end keeps from one message to the next.
#[derive(Default)]
pub(crate) struct OutletState {
    /// The metadata of the last array or structure that had none but what it is.
    plain: Option<Arc<Meta>>,
    /// Number of the overlay that the receiver knows.
    pub(crate) told: u32,
}

impl OutletState {
    /// The metadata of a message that needs no others: those of the last one, if its data are like these.
    #[inline(always)]
    pub(crate) fn plain(&mut self, payload: &Payload<'_>) -> &Arc<Meta> {
        // A hundred thousand conduits may carry nothing but this.
        static NIL: LazyLock<Arc<Meta>> = LazyLock::new(Arc::default);
        if payload.is_nil() {
            return &NIL;
        }
        if !self.plain.as_ref().is_some_and(|plain| payload.is(plain)) {
            self.plain = Some(Arc::new(payload.meta()));
        }
        self.plain.as_ref().expect("it was there, or was made")
    }
}

/// What a receiver behind filters that choose was told.
#[derive(Default)]
pub(crate) struct Sent {
    /// Behind `last`: of whose messages the last one passes, and the number of the first of them.
    pub(crate) group: Option<(Iteration, u64)>,
    /// The step of the last message, or the last step that was said to be over.
    pub(crate) step: Option<Iteration>,
    /// The number of the first of the notes behind the last message.
    pub(crate) note: Option<u64>,
}

/// The receiving end of a conduit.
pub(crate) struct Inlet {
    pub(crate) end: End,
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) limits: (u64, u64),
}

/// What a receiving end keeps from one message to the next.
#[derive(Default)]
pub(crate) struct InletState {
    /// The overlay that the sender last defined.
    pub(crate) overlay: Option<(u32, Arc<Overlay>)>,
    /// Messages taken from the inbox for a slot that was not asked for, or only looked at.
    stash: Option<Box<Stash>>,
    /// What `repeat` and `pad` choose from, on conduits behind them.
    pub(crate) chosen: Option<Box<Chosen>>,
}

/// What `repeat` and `pad` choose from.
#[derive(Default)]
pub(crate) struct Chosen {
    /// What `repeat` gives again and `pad` once.
    pub(crate) latest: Option<Message>,
    /// Which message `pad` gave last, and within which step.
    pub(crate) given: Option<(u64, Iteration)>,
    /// How many messages `pad` never gave, since the program was not used in their step.
    pub(crate) missed: u64,
    /// No message of this step, or of an earlier one, comes any more.
    pub(crate) over: Option<Iteration>,
}

/// Messages by their slots.
type Stash = HashMap<u32, VecDeque<Message>>;

impl InletState {
    /// Whether messages may have been put aside.
    pub(crate) fn has_stash(&self) -> bool {
        self.stash.is_some()
    }

    /// Puts a message aside, behind those of its slot.
    pub(crate) fn stash(&mut self, slot: u32, message: Message) {
        self.stash
            .get_or_insert_default()
            .entry(slot)
            .or_default()
            .push_back(message);
    }

    /// Puts a message back that was taken.
    pub(crate) fn put_back(&mut self, slot: u32, message: Message) {
        self.stash
            .get_or_insert_default()
            .entry(slot)
            .or_default()
            .push_front(message);
    }

    /// The message that was put aside for this slot.
    pub(crate) fn stashed(&self, slot: u32) -> Option<&Message> {
        self.stash.as_ref()?.get(&slot)?.front()
    }

    /// How many messages were put aside.
    pub(crate) fn stashes(&self) -> usize {
        self.stash
            .iter()
            .flat_map(|stash| stash.values())
            .map(VecDeque::len)
            .sum()
    }

    /// Takes a message that was put aside, for this slot or for any; its slot.
    pub(crate) fn unstash(&mut self, slot: Option<u32>) -> Option<(u32, Message)> {
        let stash = self.stash.as_mut()?;
        let slot = match slot {
            Some(slot) => slot,
            None => *stash
                .iter()
                .filter(|(_, queue)| !queue.is_empty())
                .map(|(slot, _)| slot)
                .min()?,
        };
        Some((slot, stash.get_mut(&slot)?.pop_front()?))
    }
}

impl Port {
    pub(crate) fn new(name: Arc<str>, operator: Operator, vector: bool) -> Self {
        Port {
            name,
            operator,
            vector,
            resizable: false,
            timeline: 0,
            has_field: AtomicBool::new(false),
            slots: AtomicU32::new(1),
            outlets: Vec::new(),
            inlets: Vec::new(),
            state: Latch::default(),
        }
    }

    /// Makes room for the end of a wire; the place of its slot.
    pub(crate) fn place(&mut self, wire: &ConduitEnd) -> usize {
        self.resizable |= wire.resizable;
        let place = wire.slot.unwrap_or(0) as usize;
        if self.outlets.len() <= place {
            // Most ports have one place, and there may be a hundred thousand of them.
            if place == 0 {
                self.outlets.reserve_exact(1);
                self.inlets.reserve_exact(usize::from(!wire.sends));
            }
            self.outlets.resize_with(place + 1, Vec::new);
        }
        if !wire.sends && self.inlets.len() <= place {
            self.inlets.resize_with(place + 1, || None);
        }
        let slots = if self.resizable {
            0
        } else {
            self.outlets.len() as u32
        };
        self.slots.store(slots, Ordering::Relaxed);
        place
    }

    pub(crate) fn connected(&self) -> bool {
        !self.outlets.is_empty()
    }

    /// Number of slots now; 1 for a port without slots.
    pub(crate) fn slots(&self) -> u32 {
        self.slots.load(Ordering::Relaxed)
    }

    pub(crate) fn set_slots(&self, slots: u32) {
        self.slots.store(slots, Ordering::Relaxed);
    }

    pub(crate) fn info(&self) -> PortInfo {
        PortInfo {
            name: self.name.to_string(),
            operator: self.operator,
            vector: self.vector,
            resizable: self.resizable,
            connected: self.connected(),
            slots: self.slots(),
        }
    }

    /// The port, with its slot, as users write it.
    pub(crate) fn label(&self, slot: Option<u32>) -> String {
        slot.map_or_else(
            || self.name.to_string(),
            |slot| format!("{}[{slot}]", self.name),
        )
    }

    /// The place of a slot's conduit ends, and the slot's number.
    #[inline(always)]
    pub(crate) fn find(&self, slot: Option<u32>) -> Result<(usize, u32)> {
        match slot {
            None if !self.vector => Ok((0, 0)),
            Some(slot) if self.vector && !self.resizable && slot < self.slots() => {
                Ok((slot as usize, slot))
            }
            slot => self.find_slot(slot),
        }
    }

    fn find_slot(&self, slot: Option<u32>) -> Result<(usize, u32)> {
        let wrong = |why: String| {
            Err(Error::new(
                Kind::Usage,
                format!("{} port '{}' {why}", self.operator, self.name),
            ))
        };
        match slot {
            None if self.vector => wrong(format!(
                "is a vector port of {} slots: give a slot",
                self.slots()
            )),
            Some(slot) if !self.vector => wrong(format!(
                "is no vector port, but slot {slot} was given; declare it as '{}[]' if it has slots",
                self.name
            )),
            // A receiver learns the number of slots from the first message, so it may ask for any before.
            Some(slot)
                if slot >= self.slots()
                    && !(self.resizable && !self.operator.sends() && self.slots() == 0) =>
            {
                wrong(
                    match self.resizable && self.operator.sends() && self.slots() == 0 {
                        true => "has no slots yet: set their number first".to_owned(),
                        false => {
                            format!(
                                "has slots 0 to {}, but slot {slot} was given",
                                i64::from(self.slots()) - 1
                            )
                        }
                    },
                )
            }
            slot => {
                let slot = slot.unwrap_or(0);
                Ok((if self.resizable { 0 } else { slot as usize }, slot))
            }
        }
    }

    /// Its sending ends, whatever their slots.
    pub(crate) fn every_outlet(&self) -> impl Iterator<Item = &Outlet> {
        self.outlets.iter().flatten()
    }

    /// Its receiving ends, whatever their slots.
    pub(crate) fn every_inlet(&self) -> impl Iterator<Item = &Inlet> {
        self.inlets.iter().flatten()
    }

    /// What all its ends have, and whether each receives.
    pub(crate) fn every_end(&self) -> impl Iterator<Item = (&End, bool)> {
        let outlets = self.every_outlet().map(|outlet| (&outlet.end, false));
        outlets.chain(self.every_inlet().map(|inlet| (&inlet.end, true)))
    }

    /// Takes the port for a call, which must be the only one.
    pub(crate) fn enter(&self) -> Result<Latched<'_, PortState>> {
        self.state.try_lock().ok_or_else(|| two_at_once(&self.name))
    }

    /// Keeps the end of a conduit that it sends along from this place.
    pub(crate) fn push_outlet(&mut self, place: usize, end: End, window: Arc<Window>) {
        let states = &mut self.state.get_mut().outlets;
        let outlets = &mut self.outlets[place];
        // Most ports have one, and there may be a hundred thousand of them.
        if outlets.is_empty() {
            outlets.reserve_exact(1);
            states.reserve_exact(usize::from(states.is_empty()));
        }
        let sent = end.chain.chooses().then(Box::default);
        outlets.push(Outlet {
            end,
            window,
            number: states.len(),
            sent,
        });
        states.push(OutletState::default());
    }

    /// Keeps the end of the conduit that it receives from at this place.
    pub(crate) fn put_inlet(&mut self, place: usize, inlet: Inlet) {
        let states = &mut self.state.get_mut().inlets;
        states.reserve_exact(usize::from(states.is_empty()));
        states.resize_with(self.inlets.len(), InletState::default);
        self.inlets[place] = Some(inlet);
    }
}

/// The error of a call on a port that another one uses.
pub(crate) fn two_at_once(port: &str) -> Error {
    let text = format!(
        "two calls at once on port '{port}': calls may run in several threads, but each on a port of its own"
    );
    Error::new(Kind::Usage, text)
}

impl End {
    /// The end of a wire; `name` finds the one copy of a name that the process has.
    pub(crate) fn new(wire: &ConduitEnd, name: impl Fn(&str) -> Arc<str>, chain: Chain) -> Self {
        let written = |port: &str, slot: Option<u32>| {
            slot.map_or_else(|| name(port), |slot| name(&format!("{port}[{slot}]")))
        };
        End {
            conduit: wire.conduit,
            label: written(&wire.port, wire.slot),
            peer: name(&wire.peer),
            peer_port: written(&wire.peer_port, wire.peer_slot),
            pinned: wire.medium.as_deref().map(Into::into),
            unfit: OnceLock::new(),
            joined: OnceLock::new(),
            carrier: OnceLock::new(),
            meter: Meter::default(),
            chain,
        }
    }

    /// Takes the carrier if it is of the medium that the description asks for, if it asks for any, and if it has none.
    /// `detour` says why the two processes do not share memory, if they do not.
    pub(crate) fn join(&self, way: Way, carrier: &Arc<dyn Carrier>, detour: Option<&str>) -> bool {
        let medium = carrier.medium();
        match self
            .pinned
            .as_deref()
            .filter(|pinned| *pinned != medium.name())
        {
            // A link of its own will come, or this one is there for others.
            Some(pinned) if medium == Medium::Shm && pinned == Medium::Tcp.name() => false,
            Some(_) if way == Way::Tcp => false,
            Some(pinned) => {
                let why = detour.filter(|_| pinned == Medium::Shm.name());
                let why = why.map_or_else(String::new, |why| format!(", since {why}"));
                let text = format!(
                    "port '{}' is pinned to {pinned} in the description (titin: medium), but {} is reached by {}{why}; \
                     take the pin out, or start the two where they share {pinned}",
                    self.label,
                    self.other(),
                    medium.name()
                );
                let _ = self.unfit.set(text);
                false
            }
            // That link is there for others.
            None if way == Way::Tcp && self.pinned.is_none() => false,
            None => {
                let _ = self.joined.set(way);
                self.carrier.set(carrier.clone()).is_ok()
            }
        }
    }

    /// By which of the ways to its peer the conduit goes, or is to go.
    pub(crate) fn way(&self) -> Way {
        let pinned = self.pinned.as_deref() == Some(Medium::Tcp.name());
        self.joined
            .get()
            .copied()
            .unwrap_or(if pinned { Way::Tcp } else { Way::Best })
    }

    /// Runs the filters of this end on a message `to` or `from` the other.
    pub(crate) fn filter(&self, way: &str, mapped: Mapped) -> Result<(Mapped, Vec<(Codec, u64)>)> {
        self.chain.apply(mapped).map_err(|error| {
            let text = format!(
                "port '{}' ({way} {}): {}",
                self.label,
                self.other(),
                error.text
            );
            Error::new(error.kind, text)
        })
    }

    /// The other end, as users write it.
    pub(crate) fn other(&self) -> String {
        format!("{}.{}", self.peer, self.peer_port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_checked() {
        let scalar = Port::new("out".into(), Operator::OI, false);
        assert_eq!(scalar.find(None).unwrap(), (0, 0));
        assert!(
            scalar
                .find(Some(1))
                .unwrap_err()
                .text
                .contains("no vector port")
        );

        let vector = Port::new("out".into(), Operator::OI, true);
        vector.set_slots(3);
        assert_eq!(vector.find(Some(2)).unwrap(), (2, 2));
        assert!(
            vector
                .find(Some(3))
                .unwrap_err()
                .text
                .contains("slots 0 to 2")
        );
        assert!(vector.find(None).unwrap_err().text.contains("give a slot"));
    }

    #[test]
    fn two_calls_at_once_are_noticed() {
        let port = Port::new("out".into(), Operator::OI, false);
        let first = port.enter().unwrap();
        for _ in 0..2 {
            assert!(port.enter().err().unwrap().text.contains("'out'"));
        }
        drop(first);
        assert!(port.enter().is_ok());
    }
}
