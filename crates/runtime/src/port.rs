//! Ports and the conduit ends behind the ports.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, LazyLock, Mutex, OnceLock};

use rustc_hash::FxHashMap;
use titin_model::Operator;
use titin_transport::{
    Carrier, ConduitTable, Doorbell, Inbox, InboxOptions, Medium, Room, SpinLock, SpinLockGuard,
    Window,
};
use titin_wire::attempts::attempt_of;
use titin_wire::control::ConduitEnd;
use titin_wire::meta::{Codec, Content, Meta};
use titin_wire::settings::Overlay;
use titin_wire::{Compress, ConduitId};

use crate::compression::{self, CompressionChoice};
use crate::filter::{Chain, Mapped};
use crate::iteration::Iteration;
use crate::message::CallerLayout;
use crate::process::RouteMedium;
use crate::profile::Meter;
use crate::send_state::SendState;
use crate::{Error, Kind, Message, Payload, Result};

/// A port of an instance: looked up once by name, then used in calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PortId(pub(crate) usize);

/// The facts about a port that a program may know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortInfo {
    /// The name, without `[]`.
    pub name: String,
    /// The operator.
    pub operator: Operator,
    /// Whether the port has slots.
    pub vector: bool,
    /// Whether the number of slots is set at run time.
    pub resizable: bool,
    /// Whether anything is connected to the port.
    pub connected: bool,
    /// Number of slots now; 1 for a port without slots.
    pub slots: u32,
}

/// A port of an instance. A process may have a hundred thousand ports and [`PortEnd`]s, so ports
/// and ends share names.
pub(crate) struct Port {
    pub(crate) name: Arc<str>,
    pub(crate) operator: Operator,
    pub(crate) vector: bool,
    pub(crate) resizable: bool,
    /// The number of the port's timeline among the timelines of the instance.
    pub(crate) timeline: usize,
    /// Whether the port carries a field. Ordinary calls do not use the port then.
    pub(crate) has_field: AtomicBool,
    slots: AtomicU32,
    /// Per slot (one slot only if slots are counted at run time), the conduits along which the port
    /// sends.
    pub(crate) outlets: Vec<Vec<Outlet>>,
    /// Per slot (one slot only if slots are counted at run time), the conduit from which the port
    /// receives.
    pub(crate) inlets: Vec<Option<Inlet>>,
    /// The places of the slots' ends, where a peer may be started again after a failure.
    attempts: Option<Box<AttemptPlaces>>,
    /// Locked by the call that uses the port.
    state: SpinLock<PortState>,
}

/// Where the ends of slots are, if peers may be started again: each attempt of a peer has ends of its
/// own. The places of the first attempts are the numbers of the slots, and the others follow.
struct AttemptPlaces {
    /// By slot, the place of the ends in use.
    in_use: Vec<AtomicU32>,
    /// The slots of the places that follow.
    slots: Vec<u32>,
}

/// The state that a port keeps from one call to the next. One call at a time may use the state.
#[derive(Default)]
pub(crate) struct PortState {
    /// Sends to be made again, each on a slot of its own: pending sends of a non-blocking instance,
    /// and interrupted sends.
    pub(crate) sending: Vec<SendState>,
    /// By the numbers of the outlets.
    pub(crate) outlets: Vec<OutletState>,
    /// By the places of the inlets.
    pub(crate) inlets: Vec<InletState>,
}

/// The purpose of a conduit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConduitUse {
    /// Messages between the ports of two instances, as the description says.
    Ports,
    /// For calls that the ranks of an instance make together.
    RankTree,
    /// The pieces of a field, from a rank to a rank of the peer.
    FieldLink,
}

/// The common part of sending and receiving ends.
pub(crate) struct PortEnd {
    pub(crate) conduit_use: ConduitUse,
    pub(crate) conduit: ConduitId,
    pub(crate) label: Arc<str>,
    pub(crate) peer: Arc<str>,
    pub(crate) peer_port: Arc<str>,
    /// Whether a field goes by this conduit when the receiver asks for the field.
    pub(crate) pulled: bool,
    /// Whether the program has withdrawn the field of this conduit.
    pub(crate) withdrawn: AtomicBool,
    /// The medium to which the description pins the conduit.
    pub(crate) pinned: Option<Box<str>>,
    /// The medium of the link that brought the carrier.
    joined: OnceLock<RouteMedium>,
    /// Why no carrier will come.
    pub(crate) unfit: OnceLock<String>,
    pub(crate) carrier: OnceLock<Arc<dyn Carrier>>,
    pub(crate) meter: Meter,
    pub(crate) chain: Chain,
    /// Whether the end compresses large messages by itself.
    pub(crate) compress: Compress,
    /// Whether the buffer takes more messages on a line that holds more.
    buffer_grows: bool,
    /// Whether the end may go the short way: of a conduit between ports, without filters and without
    /// a pulled field.
    pub(crate) is_plain: bool,
}

/// The sending end of a conduit.
pub(crate) struct Outlet {
    pub(crate) end: PortEnd,
    pub(crate) window: Arc<Window>,
    /// The number of the outlet at the port.
    pub(crate) number: usize,
    /// The notes of step filters (`last`, `repeat`, `pad`) about the sent messages.
    pub(crate) sent: Option<Box<Mutex<StepNotes>>>,
}

/// The state that a sending end keeps from one message to the next.
#[derive(Default)]
pub(crate) struct OutletState {
    /// The metadata of the last message with nothing but content in its metadata.
    plain: Option<Arc<Meta>>,
    /// Bytes of payload of the last such message.
    length: u64,
    /// The number of the last overlay sent to the receiver.
    pub(crate) told: u32,
    /// The measurements of compression, on a conduit that may compress.
    pub(crate) compression: Option<Box<CompressionChoice>>,
}

impl OutletState {
    /// Whether the payload has the content and length of the last message, and so needs no check.
    #[inline(always)]
    pub(crate) fn knows(&self, payload: &Payload<'_>) -> bool {
        let is_alike = |plain: &Arc<Meta>| payload.is(plain);
        self.length == payload.length() && self.plain.as_ref().is_some_and(is_alike)
    }

    /// The metadata of the last message that needed its content alone.
    #[inline(always)]
    pub(crate) fn last_plain(&self) -> Option<&Arc<Meta>> {
        self.plain.as_ref()
    }

    /// The metadata of the last such message, and its bytes of payload, if the message was an array
    /// of the given layout.
    #[inline(always)]
    pub(crate) fn last_array(&self, array: &CallerLayout<'_>) -> Option<(&Arc<Meta>, u64)> {
        let meta = self.plain.as_ref()?;
        array.is_of(meta).then_some((meta, self.length))
    }

    /// The metadata of the last message that needed its content alone, if the message was an array of
    /// `length` bytes of a field: `is_joined` says whether in a header's message.
    #[inline(always)]
    pub(crate) fn last_bytes(&self, length: u64, is_joined: bool) -> Option<&Arc<Meta>> {
        let meta = self.plain.as_ref()?;
        let is_array = matches!(meta.content, Content::Array(_));
        (is_array && meta.field == is_joined && self.length == length).then_some(meta)
    }

    /// The metadata of a message that needs its content alone: the metadata of the last such
    /// message, if the contents are alike.
    #[inline(always)]
    pub(crate) fn plain(&mut self, payload: &Payload<'_>) -> &Arc<Meta> {
        if payload.is_nil() {
            return nil_meta();
        }
        self.length = payload.length();
        if !self.plain.as_ref().is_some_and(|plain| payload.is(plain)) {
            self.plain = Some(Arc::new(payload.meta()));
        }
        self.plain.as_ref().expect("it was there, or was made")
    }
}

/// The metadata of all messages without data: a hundred thousand conduits may carry such messages
/// alone.
#[inline(always)]
pub(crate) fn nil_meta() -> &'static Arc<Meta> {
    static NIL: LazyLock<Arc<Meta>> = LazyLock::new(Arc::default);
    &NIL
}

/// The notes of a sending end with step filters about its messages to the receiver.
#[derive(Default)]
pub(crate) struct StepNotes {
    /// Behind `last`: the step of which the last message alone passes, and the number of the first
    /// message of the step.
    pub(crate) group: Option<(Iteration, u64)>,
    /// The step of the last message, or the last step that the sender has reported to be over.
    pub(crate) step: Option<Iteration>,
    /// The number of the first note behind the last message.
    pub(crate) note: Option<u64>,
}

/// The receiving end of a conduit.
pub(crate) struct Inlet {
    pub(crate) end: PortEnd,
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) limits: (u64, u64),
    /// Whether a call has learnt that the sender sends no more.
    pub(crate) end_is_known: AtomicBool,
    /// Whether a call has told the program that the sender, a member of an ensemble, has failed.
    pub(crate) failure_is_told: AtomicBool,
}

/// The state that a receiving end keeps from one message to the next.
#[derive(Default)]
pub(crate) struct InletState {
    /// The overlay that the sender last defined.
    pub(crate) overlay: Option<(u32, Arc<Overlay>)>,
    /// Messages taken from the inbox that wait for a call: messages for another slot, or messages
    /// put back.
    stash: Option<Box<Stash>>,
    /// How many F_INIT messages were dropped, because a use has not received them.
    pub(crate) dropped: u64,
    /// The messages from which `repeat` and `pad` choose, where the conduit has such a filter.
    pub(crate) chosen: Option<Box<Chosen>>,
}

/// The messages from which `repeat` and `pad` choose.
#[derive(Default)]
pub(crate) struct Chosen {
    /// The message that `repeat` gives again and `pad` gives once.
    pub(crate) latest: Option<Message>,
    /// The number of the message that `pad` gave last, and the step in which `pad` gave the
    /// message.
    pub(crate) given: Option<(u64, Iteration)>,
    /// How many messages `pad` never gave, because the program had no use in the step of the
    /// message.
    pub(crate) missed: u64,
    /// The last step known to be over: no message of the step, or of an earlier step, comes any
    /// more.
    pub(crate) over: Option<Iteration>,
}

/// Messages by their slots.
#[derive(Default)]
struct Stash {
    /// A queue stays when it is empty: the next use puts its message there.
    queues: FxHashMap<u32, VecDeque<Message>>,
    /// The number of messages in all queues.
    messages: usize,
}

impl Stash {
    fn queue_of_one_more(&mut self, slot: u32) -> &mut VecDeque<Message> {
        self.messages += 1;
        self.queues.entry(slot).or_default()
    }
}

impl InletState {
    /// Whether messages were put aside.
    pub(crate) fn has_stash(&self) -> bool {
        self.stashes() > 0
    }

    /// Puts a message aside, behind the other messages of the slot.
    pub(crate) fn stash(&mut self, slot: u32, message: Message) {
        let stash = self.stash.get_or_insert_default();
        stash.queue_of_one_more(slot).push_back(message);
    }

    /// Puts a message back, before the other messages of the slot.
    pub(crate) fn put_back(&mut self, slot: u32, message: Message) {
        let stash = self.stash.get_or_insert_default();
        stash.queue_of_one_more(slot).push_front(message);
    }

    /// The message put aside for a slot.
    pub(crate) fn stashed(&self, slot: u32) -> Option<&Message> {
        self.stash.as_ref()?.queues.get(&slot)?.front()
    }

    /// How many messages were put aside.
    pub(crate) fn stashes(&self) -> usize {
        self.stash.as_ref().map_or(0, |stash| stash.messages)
    }

    /// Takes a message put aside for the given slot, or for any slot. Returns the slot and the
    /// message.
    #[inline(always)]
    pub(crate) fn unstash(&mut self, slot: Option<u32>) -> Option<(u32, Message)> {
        let stash = self.stash.as_mut().filter(|stash| stash.messages > 0)?;
        let slot = match slot {
            Some(slot) => slot,
            None => *stash
                .queues
                .iter()
                .filter(|(_, queue)| !queue.is_empty())
                .map(|(slot, _)| slot)
                .min()?,
        };
        let message = stash.queues.get_mut(&slot)?.pop_front()?;
        stash.messages -= 1;
        Some((slot, message))
    }
}

impl AttemptPlaces {
    fn place_of(&self, slot: u32) -> usize {
        let place = self.in_use.get(slot as usize);
        place.map_or(slot, |place| place.load(Ordering::Relaxed)) as usize
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
            attempts: None,
            state: SpinLock::default(),
        }
    }

    /// Makes room for the end of a conduit. The place of the slot.
    pub(crate) fn place(&mut self, wire: &ConduitEnd) -> usize {
        if attempt_of(&wire.peer).1 > 0 {
            return self.place_of_attempt(wire);
        }
        self.resizable |= wire.resizable;
        let place = wire.slot.unwrap_or(0) as usize;
        if self.outlets.len() <= place {
            // Most of a hundred thousand ports have one place, so the port keeps no room for more.
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

    /// Makes room for the end of a later attempt of a peer. The ends of all first attempts are there.
    fn place_of_attempt(&mut self, wire: &ConduitEnd) -> usize {
        let slots = self.slots();
        let attempts = self.attempts.get_or_insert_with(|| {
            Box::new(AttemptPlaces {
                in_use: (0..slots).map(AtomicU32::new).collect(),
                slots: Vec::new(),
            })
        });
        attempts.slots.push(wire.slot.unwrap_or(0));
        let place = self.outlets.len();
        self.outlets.push(Vec::new());
        if !wire.sends {
            self.inlets.resize_with(place + 1, || None);
        }
        place
    }

    /// Whether a peer may be started again, and then has other ends.
    #[inline(always)]
    pub(crate) fn has_attempts(&self) -> bool {
        self.attempts.is_some()
    }

    /// The place of the ends of a slot that are in use.
    #[inline(always)]
    pub(crate) fn place_of(&self, slot: u32) -> usize {
        match &self.attempts {
            None => slot as usize,
            Some(attempts) => attempts.place_of(slot),
        }
    }

    /// The slot of a place.
    pub(crate) fn slot_of(&self, place: usize) -> u32 {
        let later = self.attempts.as_ref().and_then(|attempts| {
            let at = place.checked_sub(attempts.in_use.len())?;
            attempts.slots.get(at).copied()
        });
        later.unwrap_or(place as u32)
    }

    /// Whether the ends at a place are those of the peer's present attempt.
    pub(crate) fn is_in_use(&self, place: usize) -> bool {
        self.place_of(self.slot_of(place)) == place
    }

    /// From now on the slot of a place has its ends there.
    pub(crate) fn use_place(&self, place: usize) {
        let slot = self.slot_of(place) as usize;
        let attempts = self.attempts.as_ref();
        if let Some(in_use) = attempts.and_then(|attempts| attempts.in_use.get(slot)) {
            in_use.store(place as u32, Ordering::Relaxed);
        }
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

    /// The port, with its slot, as users write the port.
    pub(crate) fn label(&self, slot: Option<u32>) -> Arc<str> {
        match slot {
            None => self.name.clone(),
            Some(slot) => format!("{}[{slot}]", self.name).into(),
        }
    }

    /// The place of a slot's conduit ends, and the slot's number.
    #[inline(always)]
    pub(crate) fn find(&self, slot: Option<u32>) -> Result<(usize, u32)> {
        match slot {
            None if !self.vector => Ok((0, 0)),
            Some(slot) if self.vector && !self.resizable && slot < self.slots() => {
                Ok((self.place_of(slot), slot))
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
            Some(_) if !self.vector => wrong(format!(
                "is no vector port, but a slot was given; declare it as '{}[]' if it has slots",
                self.name
            )),
            // A receiver learns the number of slots from the first message. Until then any slot may
            // be asked for.
            Some(slot)
                if slot >= self.slots()
                    && !(self.resizable && !self.operator.sends() && self.slots() == 0) =>
            {
                wrong(
                    match self.resizable && self.operator.sends() && self.slots() == 0 {
                        true => "has no slots yet: set their number first".to_owned(),
                        false => {
                            // The names of slots are those of logs. Fortran's own numbers are others.
                            let (name, count) = (&self.name, self.slots());
                            let known = match count {
                                0 => "no slots".to_owned(),
                                1 => format!("one slot, {name}[0]"),
                                _ => format!("{count} slots, {name}[0] to {name}[{}]", count - 1),
                            };
                            format!(
                                "has {known}, and there is no {name}[{slot}]; slots count from 0, in Fortran from 1"
                            )
                        }
                    },
                )
            }
            slot => {
                let slot = slot.unwrap_or(0);
                let place = if self.resizable {
                    0
                } else {
                    self.place_of(slot)
                };
                Ok((place, slot))
            }
        }
    }

    /// The sending ends of all slots.
    pub(crate) fn every_outlet(&self) -> impl Iterator<Item = &Outlet> {
        self.outlets.iter().flatten()
    }

    /// The receiving ends of all slots.
    pub(crate) fn every_inlet(&self) -> impl Iterator<Item = &Inlet> {
        self.inlets.iter().flatten()
    }

    /// All ends of the port, and whether each receives.
    pub(crate) fn every_end(&self) -> impl Iterator<Item = (&PortEnd, bool)> {
        let outlets = self.every_outlet().map(|outlet| (&outlet.end, false));
        outlets.chain(self.every_inlet().map(|inlet| (&inlet.end, true)))
    }

    /// Opens an end at its place: a window for a sending end, an inbox for a receiving end.
    pub(crate) fn open_end(
        &mut self,
        place: usize,
        end: PortEnd,
        limits: (u64, u64),
        (bell, exchange): (&Arc<Doorbell>, &ConduitTable),
    ) {
        let conduit = end.conduit;
        if self.operator.sends() {
            let window = Arc::new(Window::new(bell.clone(), limits.0, limits.1));
            exchange.open_window(conduit, window.clone());
            self.push_outlet(place, end, window);
        } else {
            let inbox = exchange.inbox(conduit);
            let inlet = Inlet {
                end,
                inbox,
                limits,
                end_is_known: AtomicBool::new(false),
                failure_is_told: AtomicBool::new(false),
            };
            self.put_inlet(place, inlet);
        }
    }

    /// Gives a carrier to the ends of conduits with this peer. True if some ends stay without a
    /// carrier.
    pub(crate) fn route(&self, peer: &str, route: &CarrierRoute<'_>) -> bool {
        let is_its = |end: &PortEnd| *end.peer == *peer;
        let outlets = self.every_outlet().filter(|outlet| is_its(&outlet.end));
        let inlets = self.every_inlet().filter(|inlet| is_its(&inlet.end));
        let without_carrier = outlets.filter(|outlet| outlet.route(route)).count()
            + inlets.filter(|inlet| inlet.route(route)).count();
        without_carrier > 0
    }

    /// Takes the port for a call, if no other call uses the port.
    #[inline(always)]
    pub(crate) fn try_enter(&self) -> Option<SpinLockGuard<'_, PortState>> {
        self.state.try_lock()
    }

    /// Takes the port for a call. Fails if another call uses the port.
    pub(crate) fn enter(&self) -> Result<SpinLockGuard<'_, PortState>> {
        self.try_enter().ok_or_else(|| two_at_once(&self.name))
    }

    /// Adds a sending end at a place.
    pub(crate) fn push_outlet(&mut self, place: usize, end: PortEnd, window: Arc<Window>) {
        let states = &mut self.state.get_mut().outlets;
        let outlets = &mut self.outlets[place];
        // Most of a hundred thousand ports have one end, so the port keeps no room for more.
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

    /// Sets the receiving end at a place.
    pub(crate) fn put_inlet(&mut self, place: usize, inlet: Inlet) {
        let states = &mut self.state.get_mut().inlets;
        states.reserve_exact(usize::from(states.is_empty()));
        states.resize_with(self.inlets.len(), InletState::default);
        self.inlets[place] = Some(inlet);
    }
}

/// The error of a call on a port while another call uses the port.
pub(crate) fn two_at_once(port: &str) -> Error {
    let text = format!(
        "two calls at once on port '{port}': calls may run in several threads, but each on a port of its own"
    );
    Error::new(Kind::Usage, text)
}

/// A carrier to a peer, and the medium of the link that brought the carrier.
pub(crate) struct CarrierRoute<'a> {
    pub(crate) medium: RouteMedium,
    pub(crate) carrier: &'a Arc<dyn Carrier>,
    /// Why the two processes do not share memory, if there is a reason.
    pub(crate) detour: Option<&'a str>,
    /// The doorbell of the instance.
    pub(crate) bell: &'a Arc<Doorbell>,
}

impl Outlet {
    /// Counts a message as sent, if there is room. If no description sets the number of messages in
    /// the buffer, there is room for more of them as long as the line holds more bytes.
    pub(crate) fn claim(&self, length: u64) -> Room {
        let room = self.window.claim(length);
        if room != Room::Full || !self.end.buffer_grows {
            return room;
        }
        let carrier = self.end.carrier.get();
        let line = carrier.and_then(|carrier| carrier.bytes_of_line());
        let (messages, bytes) = self.window.ahead();
        if bytes.saturating_add(length) > line.unwrap_or_default() {
            return room;
        }
        self.window.raise(messages + 1, 0);
        self.window.claim(length)
    }

    /// Takes the carrier if the carrier fits. True if the end stays without a carrier.
    pub(crate) fn route(&self, route: &CarrierRoute<'_>) -> bool {
        self.end.join(route.medium, route.carrier, route.detour);
        self.end.carrier.get().is_none()
    }
}

impl Inlet {
    /// As [`Outlet::route`].
    pub(crate) fn route(&self, route: &CarrierRoute<'_>) -> bool {
        if self.end.join(route.medium, route.carrier, route.detour) {
            let (messages, bytes) = self.limits;
            let options = InboxOptions { messages, bytes };
            self.inbox
                .attach(route.bell.clone(), route.carrier.clone(), options);
        }
        self.end.carrier.get().is_none()
    }
}

impl PortEnd {
    /// The end of a conduit. `name` finds the one copy of a name in the process.
    pub(crate) fn new(
        wire: &ConduitEnd,
        conduit_use: ConduitUse,
        name: impl Fn(&str) -> Arc<str>,
        chain: Chain,
    ) -> Self {
        let written = |port: &str, slot: Option<u32>| {
            slot.map_or_else(|| name(port), |slot| name(&format!("{port}[{slot}]")))
        };
        let pattern = wire.pattern.as_deref();
        let pulled = pattern.is_some_and(|pattern| pattern.cache().is_some());
        let is_plain = conduit_use == ConduitUse::Ports && !pulled && chain.passes_all();
        let compress = match conduit_use == ConduitUse::Ports && !chain.compresses() {
            true => wire.link.compress.unwrap_or_default(),
            false => Compress::Never,
        };
        PortEnd {
            conduit_use,
            pulled,
            withdrawn: AtomicBool::new(false),
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
            compress,
            buffer_grows: wire.buffer_grows,
            is_plain,
        }
    }

    /// Takes the carrier if the end has none, and if the carrier is of the medium to which the
    /// description pins the conduit. `detour` says why the two processes do not share memory.
    pub(crate) fn join(
        &self,
        route: RouteMedium,
        carrier: &Arc<dyn Carrier>,
        detour: Option<&str>,
    ) -> bool {
        let medium = carrier.medium();
        let own_route = RouteMedium::of(self.pinned.as_deref());
        match self
            .pinned
            .as_deref()
            .filter(|pinned| *pinned != medium.key())
        {
            // A link by the pinned medium will come, unless the peer is in this process.
            Some(_) if own_route != RouteMedium::Best && medium != Medium::Inproc => false,
            Some(_) if route != RouteMedium::Best => false,
            Some(pinned) => {
                let why = detour.filter(|_| pinned == Medium::Shm.key());
                let why = why.map_or_else(String::new, |why| format!(", since {why}"));
                let text = format!(
                    "port '{}' is pinned to {pinned} in the description (titin: medium), but {} is reached by {}{why}; \
                     take the pin out, or start the two where they share {pinned}",
                    self.label,
                    self.other(),
                    medium.key()
                );
                let _ = self.unfit.set(text);
                false
            }
            // A link beside the best link serves pinned conduits alone.
            None if route != RouteMedium::Best && self.pinned.is_none() => false,
            None => {
                let _ = self.joined.set(route);
                self.carrier.set(carrier.clone()).is_ok()
            }
        }
    }

    /// The medium of the link to the peer that the conduit's messages take, or will take.
    pub(crate) fn route_medium(&self) -> RouteMedium {
        let joined = self.joined.get().copied();
        joined.unwrap_or_else(|| RouteMedium::of(self.pinned.as_deref()))
    }

    /// Whether a message of so many bytes may be compressed although no filter says so.
    #[inline(always)]
    pub(crate) fn may_compress(&self, length: u64) -> bool {
        length >= compression::SMALLEST && self.may_compress_large()
    }

    #[inline(never)]
    fn may_compress_large(&self) -> bool {
        let medium = self.carrier.get().map(|carrier| carrier.medium());
        match self.compress {
            Compress::Auto => medium == Some(Medium::Relay),
            Compress::Always => matches!(medium, Some(Medium::Relay | Medium::Tcp)),
            Compress::Never => false,
        }
    }

    /// Runs the filters of this end on a message `to` or `from` the other end.
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

    /// The name of the port of this end, without a slot.
    pub(crate) fn port_name(&self) -> &str {
        let label = &*self.label;
        label.split_once('[').map_or(label, |(name, _)| name)
    }

    /// The slot of the port of this end, if the port has slots.
    pub(crate) fn slot(&self) -> Option<u32> {
        let (_, slot) = self.label.strip_suffix(']')?.split_once('[')?;
        slot.parse().ok()
    }

    /// The other end, as users write the end.
    pub(crate) fn other(&self) -> String {
        format!("{}.{}", attempt_of(&self.peer).0, self.peer_port)
    }

    /// The text about messages that came to this end of the port, with what has become of them.
    pub(crate) fn messages_were(&self, count: u64, port: &Port, fate: &str) -> String {
        let (s, were) = match count {
            1 => ("", "was"),
            _ => ("s", "were"),
        };
        let (other, operator, label) = (self.other(), port.operator, &self.label);
        format!("{count} message{s} from {other} on {operator} port '{label}' {were} {fate}")
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
                .contains("has 3 slots, out[0] to out[2], and there is no out[3]")
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
