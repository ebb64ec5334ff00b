//! Ports and the conduit ends behind them.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use titin_model::Operator;
use titin_transport::{Carrier, Inbox, Medium, Window};
use titin_wire::ConduitId;
use titin_wire::control::Wire;
use titin_wire::meta::Codec;
use titin_wire::settings::Overlay;

use crate::filter::{Chain, Mapped};
use crate::instance::Sending;
use crate::iteration::Iteration;
use crate::process::Way;
use crate::profile::Meter;
use crate::{Error, Kind, Message, Result};

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

pub(crate) struct Port {
    pub(crate) name: String,
    pub(crate) operator: Operator,
    pub(crate) vector: bool,
    pub(crate) resizable: bool,
    /// Which of the instance's own timelines it is on.
    pub(crate) timeline: usize,
    slots: AtomicU32,
    busy: AtomicBool,
    /// The send of a light instance that is pending.
    pub(crate) sending: Mutex<Option<Box<Sending>>>,
    /// Per slot (only one if the slots are counted at run time), the conduits that it sends along.
    pub(crate) outlets: Vec<Vec<Outlet>>,
    /// Per slot (only one if the slots are counted at run time), the conduit that it receives from.
    pub(crate) inlets: Vec<Option<Inlet>>,
}

/// What both ends of a conduit have.
pub(crate) struct End {
    pub(crate) conduit: ConduitId,
    pub(crate) label: String,
    pub(crate) peer: Arc<str>,
    pub(crate) peer_port: String,
    /// The medium that it is pinned to.
    pub(crate) pinned: Option<String>,
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
    /// The overlay that the receiver knows by its number.
    pub(crate) told: Mutex<(u32, Arc<Overlay>)>,
    /// What its filters need to know of what was sent.
    pub(crate) sent: Mutex<Sent>,
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
    pub(crate) state: Mutex<InletState>,
}

pub(crate) struct InletState {
    /// The overlay that the sender last defined.
    pub(crate) overlay: (u32, Arc<Overlay>),
    /// Messages taken from the inbox for a slot that was not asked for, or only looked at.
    pub(crate) stash: HashMap<u32, VecDeque<Message>>,
    /// What `repeat` gives again and `pad` once.
    pub(crate) latest: Option<Box<Message>>,
    /// Which message `pad` gave last, and within which step.
    pub(crate) given: Option<(u64, Iteration)>,
    /// How many messages `pad` never gave, since the program was not used in their step.
    pub(crate) missed: u64,
    /// No message of this step, or of an earlier one, comes any more.
    pub(crate) over: Option<Iteration>,
}

impl InletState {
    pub(crate) fn new(overlay: Arc<Overlay>) -> Self {
        InletState {
            overlay: (0, overlay),
            stash: HashMap::new(),
            latest: None,
            given: None,
            missed: 0,
            over: None,
        }
    }
}

impl Port {
    pub(crate) fn new(name: String, operator: Operator, vector: bool) -> Self {
        Port {
            name,
            operator,
            vector,
            resizable: false,
            timeline: 0,
            slots: AtomicU32::new(1),
            busy: AtomicBool::new(false),
            sending: Mutex::default(),
            outlets: Vec::new(),
            inlets: Vec::new(),
        }
    }

    /// Makes room for the end of a wire; the place of its slot.
    pub(crate) fn place(&mut self, wire: &Wire) -> usize {
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
        let slots = if self.resizable { 0 } else { self.outlets.len() as u32 };
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
            name: self.name.clone(),
            operator: self.operator,
            vector: self.vector,
            resizable: self.resizable,
            connected: self.connected(),
            slots: self.slots(),
        }
    }

    /// The port, with its slot, as users write it.
    pub(crate) fn label(&self, slot: Option<u32>) -> String {
        slot.map_or_else(|| self.name.clone(), |slot| format!("{}[{slot}]", self.name))
    }

    /// The place of a slot's conduit ends, and the slot's number.
    pub(crate) fn find(&self, slot: Option<u32>) -> Result<(usize, u32)> {
        let wrong = |why: String| {
            Err(Error::new(Kind::Usage, format!("{} port '{}' {why}", self.operator, self.name)))
        };
        match slot {
            None if self.vector => wrong(format!("is a vector port of {} slots: give a slot", self.slots())),
            Some(slot) if !self.vector => wrong(format!(
                "is no vector port, but slot {slot} was given; declare it as '{}[]' if it has slots",
                self.name
            )),
            // A receiver learns the number of slots from the first message, so it may ask for any before.
            Some(slot)
                if slot >= self.slots()
                    && !(self.resizable && !self.operator.sends() && self.slots() == 0) =>
            {
                wrong(match self.resizable && self.operator.sends() && self.slots() == 0 {
                    true => "has no slots yet: set their number first".to_owned(),
                    false => {
                        format!("has slots 0 to {}, but slot {slot} was given", i64::from(self.slots()) - 1)
                    }
                })
            }
            slot => {
                let slot = slot.unwrap_or(0);
                Ok((if self.resizable { 0 } else { slot as usize }, slot))
            }
        }
    }

    /// Marks the port as in use by a call, which must be the only one.
    pub(crate) fn enter(&self) -> Result<Busy<'_>> {
        Busy::take(&self.busy).ok_or_else(|| {
            let text = format!(
                "two calls at once on port '{}': calls may run in several threads, but each on a port of its own",
                self.name
            );
            Error::new(Kind::Usage, text)
        })
    }
}

/// What only one call at a time may use; free again when this goes.
pub(crate) struct Busy<'a>(&'a AtomicBool);

impl<'a> Busy<'a> {
    /// `None` if a call has it already.
    pub(crate) fn take(busy: &'a AtomicBool) -> Option<Self> {
        // Made only then: one that goes would free what another call has.
        (!busy.swap(true, Ordering::Acquire)).then(|| Busy(busy))
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl End {
    pub(crate) fn new(wire: &Wire, peer: Arc<str>, chain: Chain) -> Self {
        let label = wire.slot.map_or_else(|| wire.port.clone(), |slot| format!("{}[{slot}]", wire.port));
        let peer_port = wire
            .peer_slot
            .map_or_else(|| wire.peer_port.clone(), |slot| format!("{}[{slot}]", wire.peer_port));
        End {
            conduit: wire.conduit,
            label,
            peer,
            peer_port,
            pinned: wire.medium.clone(),
            unfit: OnceLock::new(),
            carrier: OnceLock::new(),
            meter: Meter::default(),
            chain,
        }
    }

    /// Takes the carrier if it is of the medium that the description asks for, if it asks for any, and if it has none.
    pub(crate) fn join(&self, way: Way, carrier: &Arc<dyn Carrier>) -> bool {
        let medium = carrier.medium();
        match self.pinned.as_deref().filter(|pinned| *pinned != medium.name()) {
            // A link of its own will come.
            Some(pinned) if medium == Medium::Shm && pinned == Medium::Tcp.name() => false,
            Some(pinned) => {
                let text = format!(
                    "port '{}' is pinned to {pinned} in the description (titin: medium), but {} is reached by {}; take \
                     the pin out, or start the two where they share {pinned}",
                    self.label,
                    self.other(),
                    medium.name()
                );
                let _ = self.unfit.set(text);
                false
            }
            // That link is there for others.
            None if way == Way::Tcp && self.pinned.is_none() => false,
            None => self.carrier.set(carrier.clone()).is_ok(),
        }
    }

    /// Runs the filters of this end on a message `to` or `from` the other.
    pub(crate) fn filter(&self, way: &str, mapped: Mapped) -> Result<(Mapped, Vec<(Codec, u64)>)> {
        self.chain.apply(mapped).map_err(|error| {
            let text = format!("port '{}' ({way} {}): {}", self.label, self.other(), error.text);
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
        assert!(scalar.find(Some(1)).unwrap_err().text.contains("no vector port"));

        let vector = Port::new("out".into(), Operator::OI, true);
        vector.set_slots(3);
        assert_eq!(vector.find(Some(2)).unwrap(), (2, 2));
        assert!(vector.find(Some(3)).unwrap_err().text.contains("slots 0 to 2"));
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
