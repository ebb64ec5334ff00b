//! An instance: what a program holds while it takes part in a run.

mod any;
mod choose;
mod close;
mod open;
mod receive;
mod report;
mod send;
mod stop;
mod together;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, RwLock, TryLockError};
use std::time::Instant;

use titin_model::{InstanceName, MuscleSettings, Pattern, Settings};
use titin_transport::{Carrier, Doorbell, InboxOptions, Latch, Latched};
use titin_wire::ConduitId;
use titin_wire::control::{Event, Scale, ToManager};
use titin_wire::ranks::FieldSteps;
use titin_wire::settings::{Overlay, Setting};

use crate::field::{Field, Line};
use crate::filter::{inside, is_inside};
use crate::light::Light;
use crate::neighbours::Neighbours;
use crate::options::Interrupt;
use crate::port::{End, Inlet, Outlet, Port};
use crate::process::{Process, Way, forked, not_forked};
use crate::profile::{Region, Trace, event};
use crate::ranks::{Ranks, is_between_ranks};
use crate::sel::Loop;
use crate::setting::Named;
use crate::{Error, Kind, PortInfo, Result, SettingValue};

pub use any::Choice;
pub use open::Opening;
pub use receive::Patience;
pub(crate) use send::{Part, Sending, head};

/// The port by which an ensemble's driver sets the settings of this instance, as in MUSCLE3.
const SETTINGS_IN: &str = titin_model::SETTINGS_IN;

/// A port of an instance: looked up once by name, then used in calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PortId(pub(crate) usize);

/// One running copy of a program, as it takes part in a run.
///
/// Calls on different ports may run in different threads at once. Dropping an instance that was not closed fails the
/// run: a program that ends in the middle must not look as if it were done.
pub struct Instance {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) name: String,
    pub(crate) path: InstanceName,
    /// Of a parallel program, the place among its ranks.
    pub(crate) ranks: Option<Ranks>,
    /// Of a rank but 0, the conduits that rank 0 has: number of the port, conduit, and the instance at the other end.
    far: Vec<(usize, ConduitId, Arc<str>)>,
    /// The patterns of fields, of conduits for which the description has one.
    pub(crate) patterns: HashMap<ConduitId, Arc<Pattern>>,
    /// Its fields, and what they exchange with the ranks of peers.
    pub(crate) fields: RwLock<Vec<Arc<Field>>>,
    pub(crate) lines: RwLock<Vec<Arc<Line>>>,
    pub(crate) process: Arc<Process>,
    pub(crate) bell: Arc<Doorbell>,
    pub(crate) ports: Vec<Port>,
    /// The instances at the other ends of its conduits.
    pub(crate) neighbours: Neighbours,
    pub(crate) cycle: Latch<Loop>,
    /// Whether messages say in which step they were sent.
    pub(crate) counts_steps: bool,
    /// Taken by the call that begins the next use; since when that is pending, if it is.
    beginning: Latch<Option<i64>>,
    /// Settings of the description, and the overlay in force with its number.
    settings: Settings,
    pub(crate) overlay: Mutex<(u32, Arc<Overlay>)>,
    /// What names in overlays lead to.
    pub(crate) named: Named,
    /// Whether there is one.
    pub(crate) overlaid: AtomicBool,
    /// The last overlay that was given a number, and that.
    numbered: Mutex<(u32, Arc<Overlay>)>,
    scale: Option<Scale>,
    end: Option<f64>,
    /// The unit of timestamps.
    time_unit: String,
    /// What settings that MUSCLE3 has for it ask it to do.
    pub(crate) habits: MuscleSettings,
    pub(crate) trace: Trace,
    pub(crate) simulated: AtomicU64,
    progress: Mutex<(u64, u64, u64)>,
    pub(crate) interrupt: OnceLock<Interrupt>,
    pub(crate) waits: AtomicU64,
    /// The number of the wait that the manager has heard of, while nothing is being done about it.
    pub(crate) waiting: Mutex<Option<u64>>,
    /// The conduit of the last call that would not wait for ever, and when that had to come back, if that is known.
    pub(crate) polled: Latch<Option<(ConduitId, Option<Instant>)>>,
    /// The thread of the last call, as [`this_thread`] names it.
    caller: AtomicUsize,
    pub(crate) threaded: AtomicBool,
    /// Whether a call that waits says nothing of the others that may be made meanwhile.
    pub(crate) unwatched: AtomicBool,
    /// Sends, of which some are timed.
    pub(crate) sends: AtomicU64,
    /// When the last one ended that was timed.
    timed: AtomicI64,
    carriers: Mutex<Vec<Arc<dyn Carrier>>>,
    /// Calls that choose between ports, which take turns.
    pub(crate) turn: AtomicUsize,
    /// What the last of them chose from.
    choice: Mutex<Option<Arc<Choice>>>,
    /// Whether some call has put inboxes on a list.
    lists: AtomicBool,
    /// Ranks right below that have closed, and how often they have sent or received each field.
    pub(crate) steps_below: Mutex<Vec<(u32, FieldSteps)>>,
    /// The call that rank 0 makes for all ranks.
    leading: Mutex<Option<String>>,
    /// Whether some call has put a message back, which stands on no list then.
    put_back: AtomicBool,
    /// Whose list the inboxes were put on last.
    chosen_by: Mutex<u64>,
    sending: AtomicU64,
    over: AtomicBool,
    /// Whether it was told to close.
    closing: AtomicBool,
    first_error: Mutex<Option<Error>>,
    /// The text of the last error that came of what peers have ended, and which those are.
    ended: Mutex<Option<(String, Vec<String>)>>,
    /// Whether no call on a port has gone well since.
    ended_last: AtomicBool,
    /// Whether it was to be closed while another thread was in a call.
    closed_in_use: AtomicBool,
    /// Of an instance that does not wait.
    pub(crate) light: Option<Light>,
    /// How far closing has come.
    ending: Mutex<close::Ending>,
}

impl Instance {
    /// Its name, as users write it: `macro[3]`.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The rank of this process among those of the instance, from 0; 0 for a serial program.
    pub fn rank(&self) -> u32 {
        self.inner.place_in_ranks().0
    }

    /// How many ranks the instance has; 1 for a serial program.
    pub fn ranks(&self) -> u32 {
        self.inner.place_in_ranks().1
    }

    /// All its ports, but for `muscle_settings_in`, whose messages [`Instance::reuse`] takes.
    pub fn ports(&self) -> Vec<PortInfo> {
        self.inner.own_ports().map(Port::info).collect()
    }

    /// The numbers and names of these ports.
    pub fn port_ids(&self) -> impl Iterator<Item = (PortId, &str)> {
        let ports = self
            .inner
            .ports
            .iter()
            .enumerate()
            .filter(|(_, port)| port.is_own());
        ports.map(|(number, port)| (PortId(number), &*port.name))
    }

    /// Whether a call of this light instance is to be made again.
    pub fn is_pending(&self) -> bool {
        self.inner.light.as_ref().is_some_and(Light::is_pending)
    }

    /// Gives up calls of this light instance that are pending, in place of making them again: those on a port, or on a slot
    /// of it (what [`Instance::receive_any`] does is on the first of its ports), or all. They have not happened, but for a
    /// send, which may have reached some of its receivers: on its slot nothing else can be sent.
    ///
    /// # Errors
    /// [`Kind::Usage`] for a slot that is not there.
    pub fn cancel(&self, port: Option<PortId>, slot: Option<u32>) -> Result<()> {
        let port = port.map(|port| &self.inner.ports[port.0]);
        let place = match (port, slot) {
            (Some(port), Some(_)) => Some(port.find(slot)?.0),
            _ => None,
        };
        self.inner.give_up(port, place);
        Ok(())
    }

    /// Leaves the instance out of the search for deadlocks from here on: several tasks of the program act on it by
    /// themselves, of which the others may go on while one waits.
    pub fn skip_deadlocks(&self) {
        self.inner.leave_search();
    }

    /// The port of this name.
    ///
    /// # Errors
    /// [`Kind::Usage`] if there is none; the text names those that there are.
    pub fn port(&self, name: &str) -> Result<PortId> {
        let bare = name.strip_suffix("[]").unwrap_or(name);
        if bare == SETTINGS_IN {
            let text = format!(
                "messages on {SETTINGS_IN} are taken by reuse(); what they set is told by the settings"
            );
            return Err(Error::new(
                Kind::Usage,
                format!("{}: {text}", self.inner.name),
            ));
        }
        let is_it = |port: &Port| port.is_own() && *port.name == *bare;
        self.inner
            .ports
            .iter()
            .position(is_it)
            .map(PortId)
            .ok_or_else(|| {
                let known: Vec<&str> = self.inner.own_ports().map(|port| &*port.name).collect();
                let known = if known.is_empty() {
                    "none".to_owned()
                } else {
                    known.join(", ")
                };
                Error::new(
                    Kind::Usage,
                    format!(
                        "{} has no port '{name}'; its ports are: {known}",
                        self.inner.name
                    ),
                )
            })
    }

    /// What is known of a port.
    pub fn info(&self, port: PortId) -> PortInfo {
        self.inner.ports[port.0].info()
    }

    /// The instance and port that a receiving port gets its messages from, by this slot; `None` if that is not known.
    pub fn sender(&self, port: PortId, slot: Option<u32>) -> Option<String> {
        let port = &self.inner.ports[port.0];
        let (place, _) = port.find(slot).ok()?;
        port.inlets
            .get(place)?
            .as_ref()
            .map(|inlet| inlet.end.other())
    }

    /// Sets the number of slots of a sending port whose slots are counted at run time. Receivers learn of it with the
    /// next message.
    ///
    /// # Errors
    /// [`Kind::Usage`] for ports whose number of slots is fixed, or that receive.
    pub fn set_slots(&self, port: PortId, slots: u32) -> Result<()> {
        let port = &self.inner.ports[port.0];
        let free = port.vector && (port.resizable || !port.connected()) && port.operator.sends();
        if !free {
            let why = match (port.vector, port.operator.sends()) {
                (false, _) => "it is no vector port",
                (true, false) => "it receives, and learns their number from the sender",
                (true, true) => "the multiplicity of its peers sets it",
            };
            let text = format!(
                "the number of slots of port '{}' cannot be set: {why}",
                port.name
            );
            return Err(Error::new(Kind::Usage, text));
        }
        if slots > titin_wire::meta::MAX_SLOTS {
            let most = titin_wire::meta::MAX_SLOTS;
            let text = format!("{slots} slots for port '{}', at most {most}", port.name);
            return Err(Error::new(Kind::Usage, text));
        }
        port.set_slots(slots);
        Ok(())
    }

    /// A setting: the most specific one of the overlay in force and the description; of two under one name, that of the overlay.
    ///
    /// # Errors
    /// [`Kind::Setting`] if there is none of this name; the text names a similar one.
    pub fn setting(&self, name: &str) -> Result<SettingValue> {
        let inner = &self.inner;
        let missing = || {
            let known = inner
                .settings
                .iter()
                .map(|(path, _)| path.as_str().rsplit('.').next().unwrap_or_default());
            let hint =
                titin_model::nearest(name, known).map(|near| format!(" (did you mean '{near}'?)"));
            let text = format!(
                "setting '{name}' is not set for {}{}; set it under `settings:`, or give a default in the program",
                inner.name,
                hint.unwrap_or_default()
            );
            Error::new(Kind::Setting, text)
        };
        let value = self.find_setting(name).ok_or_else(missing)?;
        Ok(SettingValue {
            name: name.to_owned(),
            value,
        })
    }

    /// A setting's value if it is set.
    pub fn find_setting(&self, name: &str) -> Option<Setting> {
        let inner = &self.inner;
        let overlay = inner.overlay.lock().expect("never poisoned").1.clone();
        inner
            .settings
            .find_overlaid(&overlay, &inner.path, name)
            .cloned()
    }

    /// All settings that are known for this instance: full names and values, with those of the overlay in force.
    pub fn settings(&self) -> Overlay {
        let inner = &self.inner;
        let mut all: Overlay = inner
            .settings
            .iter()
            .map(|(path, value)| (path.as_str().to_owned(), value.clone()))
            .collect();
        let overlay = inner.overlay.lock().expect("never poisoned").1.clone();
        all.extend(
            overlay
                .iter()
                .map(|(path, value)| (path.clone(), value.clone())),
        );
        all
    }

    /// The overlay in force, as fixed by the last [`Instance::reuse`].
    pub fn overlay(&self) -> Arc<Overlay> {
        self.inner.overlay.lock().expect("never poisoned").1.clone()
    }

    /// The scales that the description gives for this component.
    pub fn scale(&self) -> Option<&Scale> {
        self.inner.scale.as_ref()
    }

    /// The unit of timestamps, as the description has it: `s` where it says none.
    pub fn time_unit(&self) -> &str {
        &self.inner.time_unit
    }

    /// Switches the check of the order of calls off from here on. The reason is kept in the run's log.
    pub fn skip_checks(&self, reason: &str) {
        self.inner.cycle().uncheck();
        self.log(20, &format!("the order of calls is not checked: {reason}"));
    }

    /// Sends a record to the run's log. Levels are those of Python's `logging`: 10 debug, 20 info, 30 warning, 40
    /// error, 50 critical.
    pub fn log(&self, level: u8, text: &str) {
        self.inner.log(level, text);
    }

    /// Has `interrupted` asked whenever a signal ends a sleep, and at least ten times a second while a call waits; once
    /// it says true the call returns [`Kind::Interrupted`]. It runs on the thread that waits.
    ///
    /// # Errors
    /// [`Kind::Usage`] if the instance has such a function already.
    pub fn on_interrupt(
        &self,
        interrupted: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Result<()> {
        let text =
            "the instance has a function to ask about interruptions already; it can be set once";
        self.inner
            .interrupt
            .set(Box::new(interrupted))
            .map_err(|_| Error::new(Kind::Usage, text))
    }

    /// Begins a region of the user's own in the profile.
    pub fn begin_region(&self, name: &str) -> Region {
        Region {
            name: name.to_owned(),
            start: self.inner.trace.now(),
        }
    }

    /// Ends a region.
    pub fn end_region(&self, region: Region) {
        let inner = &self.inner;
        let stop = inner.trace.now();
        inner
            .trace
            .region(&region.name, (stop - region.start) as f64 * 1e-9);
        if inner.trace.on {
            inner.row(Event {
                region: true,
                ..event(&region.name, region.start, stop)
            });
        }
    }

    /// Fails the run, with this instance as the culprit. The instance is closed.
    pub fn fail(&self, text: &str) {
        self.inner.fail(&Error::new(Kind::Closed, text));
    }

    /// The error that the instance has failed with, if it has.
    pub fn failure(&self) -> Option<Error> {
        self.inner.first_error().clone()
    }

    /// Keeps the first error of a program that may not look at what calls return: [`Instance::close`] fails with it.
    pub fn note(&self, error: &Error) {
        self.inner
            .first_error()
            .get_or_insert_with(|| error.clone());
    }

    /// Whether some thread is in a call that sends, receives, begins a use or closes.
    fn is_in_use(&self) -> bool {
        let inner = &self.inner;
        let on_fields = |fields: &[Arc<Field>]| fields.iter().any(|field| field.is_in_use());
        inner.beginning.try_lock().is_none()
            || matches!(inner.ending.try_lock(), Err(TryLockError::WouldBlock))
            || inner.ports.iter().any(|port| port.enter().is_err())
            // A call on several ports leaves them while it waits.
            || inner.lists.load(Ordering::Relaxed) && inner.inlets().any(|(_, inlet)| inlet.inbox.is_waited_for())
            || on_fields(&inner.fields.read().expect("never poisoned"))
    }

    /// Whether another thread was in a call as [`Instance::close`] was called last: what that uses has to stay.
    pub fn was_in_use(&self) -> bool {
        self.inner.closed_in_use.load(Ordering::Relaxed)
    }

    /// Ends the instance's part in the run. Waits until the receivers hold all that was sent, or have finished.
    ///
    /// # Errors
    /// The first error that was noted; [`Kind::CallOrder`] if messages were never taken; [`Kind::PeerLost`] if the run
    /// has failed; [`Kind::Usage`] while another thread is in a call. With an error the run fails.
    pub fn close(&self) -> Result<()> {
        let inner = &self.inner;
        // In a forked child the other threads are gone, and may have left what they held locked.
        let in_use = !forked() && self.is_in_use();
        inner.closed_in_use.store(in_use, Ordering::Relaxed);
        if forked() || inner.over.load(Ordering::Acquire) {
            return inner.first_error().clone().map_or(Ok(()), Err);
        }
        inner.outside()?;
        if in_use {
            let text = format!(
                "{}: close() while another thread is in a call on the instance; join the thread first",
                inner.name
            );
            // What has gone wrong before is why, if something has.
            let before = inner.first_error().clone().or_else(|| inner.check().err());
            let error = before.unwrap_or_else(|| Error::new(Kind::Usage, text));
            inner.fail(&error);
            return Err(error);
        }
        inner.closing.store(true, Ordering::Relaxed);
        let noted = inner.first_error().clone();
        let outcome = noted.map_or_else(|| inner.finish(), Err);
        match &outcome {
            Ok(()) => inner.leave(),
            // One that was interrupted, or does not wait, goes on when it is called again.
            Err(error) if error.is_unfinished() => {}
            Err(error) => inner.fail(error),
        }
        outcome
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let inner = &self.inner;
        if !forked() && !inner.over.load(Ordering::Acquire) {
            // A program that unwinds because the run has failed is not the cause of it.
            let noted = inner.first_error().clone();
            let error = noted
                .or_else(|| inner.check().err())
                .unwrap_or_else(|| inner.let_go());
            inner.fail(&error);
        }
        // The user's filters go with the instance, on this thread: the background thread may hold it for a moment.
        while !forked() && Arc::strong_count(inner) > 1 {
            std::thread::yield_now();
        }
    }
}

/// Names this thread among those that live; never 0.
fn this_thread() -> usize {
    // Its place in memory: to ask for the thread's number takes longer.
    thread_local!(static HERE: u8 = const { 0 });
    HERE.with(|here| std::ptr::from_ref(here).addr())
}

impl Port {
    /// Whether the program sends or receives on it.
    fn is_own(&self) -> bool {
        *self.name != *SETTINGS_IN && !is_between_ranks(&self.name)
    }
}

impl Inner {
    /// The ports that the program sends and receives on.
    fn own_ports(&self) -> impl Iterator<Item = &Port> {
        self.ports.iter().filter(|port| port.is_own())
    }

    pub(crate) fn cycle(&self) -> Latched<'_, Loop> {
        self.cycle.lock()
    }

    /// Tells the manager; in a forked child, which has no link to it, nothing.
    pub(crate) fn tell(&self, message: &ToManager) {
        if !forked() {
            self.process.tell(message);
        }
    }

    /// The failure that every call of this instance now returns, if there is one.
    pub(crate) fn check(&self) -> Result<()> {
        self.process.check()
    }

    /// Whether calls may still be made.
    pub(crate) fn alive(&self) -> Result<()> {
        if !self.over.load(Ordering::Acquire) {
            return Ok(());
        }
        let text = match &*self.first_error() {
            Some(error) => format!("{} has failed: {}", self.name, error.text),
            None => format!("{} is closed: no call follows close()", self.name),
        };
        Err(Error::new(Kind::Closed, text))
    }

    /// The first error of the instance, if there is one.
    fn first_error(&self) -> MutexGuard<'_, Option<Error>> {
        self.first_error.lock().expect("never poisoned")
    }

    /// Fails in a filter of the user's: the call that the filter is part of has not come to its end.
    fn outside(&self) -> Result<()> {
        let Some(filter) = inside() else {
            return Ok(());
        };
        let text = format!(
            "{}: a call from within filter '{filter}': a filter makes one message of another, and may ask for settings \
             and write to the log, but neither send, receive, begin a use nor close",
            self.name
        );
        Err(Error::new(Kind::Usage, text))
    }

    /// What every call on a port begins with.
    #[inline(always)]
    pub(crate) fn enter(&self) -> Result<()> {
        let me = this_thread();
        if self.caller.load(Ordering::Relaxed) != me && self.caller.swap(me, Ordering::Relaxed) != 0
        {
            self.threaded.store(true, Ordering::Relaxed);
        }
        let ends = self.is_over() || self.closing.load(Ordering::Relaxed);
        if forked() || is_inside() || ends {
            self.refused()
        } else {
            Ok(())
        }
    }

    /// Whether no more calls may be made, as the instance is closed or the run has failed.
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire) || self.process.has_failed()
    }

    /// Why no call may be made now, if none may.
    #[cold]
    pub(crate) fn refused(&self) -> Result<()> {
        not_forked()?;
        self.outside()?;
        self.alive()?;
        self.check()?;
        let text = format!(
            "{} is being closed, and makes no more calls; where close() was interrupted, call that again",
            self.name
        );
        Err(Error::new(Kind::Closed, text))
    }

    /// All conduit ends, and whether each receives.
    pub(crate) fn ends(&self, mut visit: impl FnMut(&End, bool)) {
        let lines = self.all_lines();
        let ports = self.ports.iter().chain(lines.iter().map(|line| &line.port));
        ports
            .flat_map(Port::every_end)
            .for_each(|(end, receives)| visit(end, receives));
    }

    /// Its rank, and how many there are.
    pub(crate) fn place_in_ranks(&self) -> (u32, u32) {
        self.ranks.map_or((0, 1), |ranks| (ranks.rank, ranks.count))
    }

    /// The conduits of a port, and the instances at their other ends: also on ranks that do not have them.
    pub(crate) fn conduits_of(&self, port: PortId) -> Vec<(ConduitId, Arc<str>)> {
        let ends = self.ports[port.0]
            .every_end()
            .map(|(end, _)| (end.conduit, end.peer.clone()));
        let far = self.far.iter().filter(|(number, ..)| *number == port.0);
        ends.chain(far.map(|(_, conduit, peer)| (*conduit, peer.clone())))
            .collect()
    }

    /// Of a rank but 0, the instances at the other ends of the conduits that rank 0 has.
    pub(crate) fn far_peers(&self) -> impl Iterator<Item = &Arc<str>> {
        self.far.iter().map(|(.., peer)| peer)
    }

    /// Whether a field goes by this conduit when its receiver asks for it.
    #[inline(always)]
    pub(crate) fn is_pulled(&self, conduit: ConduitId) -> bool {
        self.patterns
            .get(&conduit)
            .is_some_and(|pattern| pattern.cache().is_some())
    }

    /// By which pattern a field goes by a conduit.
    pub(crate) fn pattern_of(&self, conduit: ConduitId) -> Arc<Pattern> {
        self.patterns.get(&conduit).cloned().unwrap_or_default()
    }

    fn outlets(&self) -> impl Iterator<Item = &Outlet> {
        self.ports.iter().flat_map(Port::every_outlet)
    }

    /// The sending end of a conduit, if this instance and rank has it.
    pub(crate) fn outlet_of(&self, conduit: ConduitId) -> Option<&Outlet> {
        self.outlets().find(|outlet| outlet.end.conduit == conduit)
    }

    fn outlets_to(&self, peer: &str) -> impl Iterator<Item = &Outlet> {
        let ends = self.neighbours.ends(peer).iter();
        ends.filter(|end| end.sends())
            .map(|end| &self.ports[end.port()].outlets[end.place()][end.index()])
    }

    fn inlets_from(&self, peer: &str) -> impl Iterator<Item = &Inlet> {
        let ends = self.neighbours.ends(peer).iter().filter(|end| !end.sends());
        ends.filter_map(|end| self.ports[end.port()].inlets[end.place()].as_ref())
    }

    pub(crate) fn inlets(&self) -> impl Iterator<Item = (&Port, &Inlet)> {
        self.ports
            .iter()
            .flat_map(|port| port.every_inlet().map(move |inlet| (port, inlet)))
    }

    /// Gives the ends of conduits with this peer their carrier. Those that are pinned to another medium are left without;
    /// true if there are any. `detour` says why the two processes do not share memory, if they do not.
    pub(crate) fn route(
        &self,
        peer: &str,
        way: Way,
        carrier: &Arc<dyn Carrier>,
        detour: Option<&str>,
    ) -> bool {
        let mut left = false;
        let lines = self.all_lines();
        for outlet in self
            .outlets_to(peer)
            .chain(lines.iter().flat_map(|line| line.outlets_to(peer)))
        {
            outlet.end.join(way, carrier, detour);
            left |= outlet.end.carrier.get().is_none();
        }
        for inlet in self
            .inlets_from(peer)
            .chain(lines.iter().flat_map(|line| line.inlets_from(peer)))
        {
            if inlet.end.join(way, carrier, detour) {
                let (messages, bytes) = inlet.limits;
                let options = InboxOptions { messages, bytes };
                inlet
                    .inbox
                    .attach(self.bell.clone(), carrier.clone(), options);
            }
            left |= inlet.end.carrier.get().is_none();
        }
        let mut carriers = self.carriers.lock().expect("never poisoned");
        if !carriers
            .iter()
            .any(|known| std::ptr::addr_eq(Arc::as_ptr(known), Arc::as_ptr(carrier)))
        {
            carriers.push(carrier.clone());
        }
        drop(carriers);
        self.bell.ring();
        left
    }

    /// All that messages and acknowledgements come by.
    pub(crate) fn carriers(&self) -> Vec<Arc<dyn Carrier>> {
        self.carriers.lock().expect("never poisoned").clone()
    }

    /// A peer takes no more messages.
    pub(crate) fn peer_finished(&self, peer: &str) {
        self.outlets_to(peer)
            .for_each(|outlet| outlet.window.close());
        self.close_lines(peer);
        // Most often all is said already, and nobody waits for this.
        if self.inlets_from(peer).any(|inlet| !inlet.inbox.ended()) {
            self.bell.ring();
        }
    }

    /// Tells senders how far we are, which may give them room that they wait for.
    pub(crate) fn flush_acknowledgements(&self) {
        self.inlets().for_each(|(_, inlet)| inlet.inbox.settle());
        let lines = self.all_lines();
        lines
            .iter()
            .flat_map(|line| line.port.every_inlet())
            .for_each(|inlet| inlet.inbox.settle());
    }
}
