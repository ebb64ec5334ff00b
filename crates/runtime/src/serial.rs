//! A serial instance: the ports, the submodel execution loop, and how calls wait.
//!
//! A parallel program is a serial instance on each rank, and the [group of ranks](crate::ranks)
//! above; fields stand above both. The serial instance knows neither: where the layers above are to
//! act, the serial instance asks the [`UpperLayers`].

mod attempts;
mod close;
mod compress;
mod open;
mod receive;
mod receive_any;
mod receiving_end;
mod repeated;
mod repeated_piece;
mod report;
mod send;
mod step_filters;
mod wait;

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};
use std::time::Instant;

use titin_model::{InstanceName, MuscleSettings, Settings};
use titin_transport::{Carrier, Doorbell, SpinLock, SpinLockGuard};
use titin_wire::ConduitId;
use titin_wire::control::{Scale, ToManager};
use titin_wire::settings::Overlay;

use crate::execution_loop::ExecutionLoop;
use crate::filter::{inside, is_inside};
use crate::neighbours::NeighbourIndex;
use crate::non_blocking::PendingCalls;
use crate::options::{Interrupt, OverlayUse};
use crate::port::{CarrierRoute, Inlet, Outlet, Port};
use crate::process::{Process, forked, not_forked};
use crate::profile::{Trace, stands_for};
use crate::setting::OverlayNames;
use crate::{Error, Kind, Result};

pub(crate) use close::{DEBUG, WARNING};
pub(crate) use open::{Opened, RemoteConduit};
pub use receive::Patience;
pub(crate) use receive::{NextUse, Received};
pub use receive_any::PortChoice;
pub use repeated::{NoteCall, ReceivedAtOnce, ReceivedFrom};
pub(crate) use report::shortened;
pub(crate) use send::message_header;
pub(crate) use wait::{SLICE, Wait};

/// The port by which the driver of an ensemble sets the settings of this instance, as in MUSCLE3.
pub(crate) const SETTINGS_IN: &str = titin_model::SETTINGS_IN;

/// The layers above a serial instance: the group of ranks, and the fields.
pub(crate) trait UpperLayers: Send + Sync {
    /// Called while a call of the instance waits without a result so far. An error says why to wait
    /// is of no use.
    fn while_waiting(&self) -> Result<()>;

    /// Called when the manager hears of a wait of the instance.
    fn wait_reported(&self);

    /// Tells senders how far the receiving ends of the layers are.
    fn acknowledge(&self);

    /// Called when the instance has failed with this error.
    fn failed(&self, error: &Error);
}

/// An instance within one process.
pub(crate) struct Serial {
    pub(crate) core: Core,
    pub(crate) table: PortTable,
    pub(crate) execution: Execution,
    pub(crate) overlays: Overlays,
    pub(crate) reporter: WaitReporter,
    pub(crate) profile: ProfileState,
    any: ReceiveAnyState,
    /// The members of which a call has told the program that they have failed, with their ends yet in use.
    told_failures: Mutex<HashSet<String>>,
    above: OnceLock<Weak<dyn UpperLayers>>,
    /// Whether messages of ports may go the short way (`repeated.rs`): the instance is serial and blocks,
    /// counts no steps and keeps no rows.
    is_plain: bool,
}

/// Used by all parts of an instance: name, process, doorbell, and how the instance ends.
pub(crate) struct Core {
    pub(crate) name: String,
    pub(crate) path: InstanceName,
    /// The rank of this process; none of a serial program.
    pub(crate) rank: Option<u32>,
    /// The work that settings of MUSCLE3 ask the instance to do.
    pub(crate) habits: MuscleSettings,
    pub(crate) process: Arc<Process>,
    pub(crate) bell: Arc<Doorbell>,
    pub(crate) scale: Option<Scale>,
    /// The unit of timestamps.
    pub(crate) time_unit: String,
    pub(crate) interrupt: OnceLock<Interrupt>,
    /// The thread of the last call, as [`this_thread`] names the thread.
    caller: AtomicUsize,
    /// Whether several threads have called.
    threaded: AtomicBool,
    /// Whether the instance takes no more part in the run.
    pub(crate) over: AtomicBool,
    /// Whether the program has asked to close the instance.
    pub(crate) closing: AtomicBool,
    first_error: Mutex<Option<Error>>,
    /// The text of the last error caused by the end of peers, and the names of the peers.
    ended: Mutex<Option<(String, Vec<String>)>>,
    /// Whether no call on a port has gone well since the last such error.
    ended_last: AtomicBool,
    /// Whether the instance was to be closed while another thread was in a call.
    pub(crate) closed_in_use: AtomicBool,
}

/// The ports of an instance, the peers at the other ends, and the carriers of the messages.
pub(crate) struct PortTable {
    pub(crate) ports: Vec<Port>,
    /// The instances at the other ends of the conduits.
    pub(crate) neighbours: NeighbourIndex,
    /// All carriers by which messages and acknowledgements come.
    carriers: Mutex<Vec<Arc<dyn Carrier>>>,
}

/// The instance in its submodel execution loop.
pub(crate) struct Execution {
    state: SpinLock<ExecutionLoop>,
    /// Whether messages name the step in which the instance sent the message.
    pub(crate) counts_steps: bool,
    /// Locked by the call that begins the next use. Holds the time since which a pending call
    /// waits.
    pub(crate) beginning: SpinLock<Option<i64>>,
}

/// Settings: those of the description, and the overlays.
pub(crate) struct Overlays {
    pub(crate) settings: Settings,
    /// The overlay in force, with its number.
    overlay: Mutex<(u32, Arc<Overlay>)>,
    /// Whether messages without an overlay of their own get the one in force, which then has a setting.
    overlaid: AtomicBool,
    /// What the overlays of messages do.
    using: OverlayUse,
    /// The last numbered overlay, and its number.
    numbered: Mutex<(u32, Arc<Overlay>)>,
    /// The components of the run, to check names in overlays.
    named: OverlayNames,
}

impl Overlays {
    /// The overlay in force, with its number.
    pub(crate) fn in_force(&self) -> (u32, Arc<Overlay>) {
        self.overlay.lock().expect("never poisoned").clone()
    }

    /// Whether overlays hold for the use, and go with its messages.
    pub(crate) fn are_inherited(&self) -> bool {
        self.using == OverlayUse::Inherited
    }
}

/// What the manager knows of the waits of an instance.
pub(crate) struct WaitReporter {
    /// How many waits were reported.
    waits: AtomicU64,
    /// The number of the reported wait; none while the waiting call looks for a message, and might
    /// take a message.
    waiting: Mutex<Option<u64>>,
    /// The conduit of the last call with a limited wait, and when the call had to come back, if
    /// known.
    polled: SpinLock<Option<(ConduitId, Option<Instant>)>>,
    /// Whether the instance stays out of the search for deadlocks: while a call waits, the program
    /// may make other calls.
    unwatched: AtomicBool,
    /// Whether the upper layers look after ranks while a call waits.
    watches_ranks: bool,
    /// The pending calls of a non-blocking instance.
    pub(crate) pending: Option<PendingCalls>,
}

/// Counters and times of the instance.
pub(crate) struct ProfileState {
    pub(crate) trace: Trace,
    /// The simulated time of the last message.
    simulated: AtomicU64,
    /// The simulated time at which the instance ends, if the description gives such a time.
    end: Option<f64>,
    /// Time, messages and bytes, as last reported to the manager.
    progress: Mutex<(u64, u64, u64)>,
    /// The number of sends. Some sends are timed.
    sends: AtomicU64,
    /// When the last timed send ended.
    timed: AtomicI64,
    /// The time of all sends, in nanoseconds.
    sending: AtomicU64,
}

impl ProfileState {
    /// The number of sends for which the send with this number stands, if the send is timed.
    #[inline(always)]
    fn timed_sends(&self, turn: u64) -> Option<u32> {
        match turn {
            _ if self.trace.off => None,
            _ if self.trace.on => Some(1),
            turn => stands_for(turn),
        }
    }
}

/// The state that calls on several ports keep.
#[derive(Default)]
struct ReceiveAnyState {
    /// The place of the port at which the next look begins, so that ports take turns.
    turn: AtomicUsize,
    /// Whether some call has put inboxes on a list.
    lists: AtomicBool,
    /// Whether some call has put a message back: no list has such a message.
    put_back: AtomicBool,
    /// The number of the choice with the list that the inboxes were put on last.
    chosen_by: Mutex<u64>,
}

/// A number for this thread, unique among live threads and never 0.
fn this_thread() -> usize {
    // The address of a thread-local variable: to ask the system for a thread number takes longer.
    thread_local!(static HERE: u8 = const { 0 });
    HERE.with(|here| std::ptr::from_ref(here).addr())
}

impl Port {
    /// Whether the program sends or receives on the port.
    pub(crate) fn is_own(&self) -> bool {
        *self.name != *SETTINGS_IN
    }
}

impl Serial {
    /// Sets the layers above.
    pub(crate) fn set_upper_layers(&self, above: Weak<dyn UpperLayers>) {
        let _ = self.above.set(above);
    }

    fn upper_layers(&self) -> Option<Arc<dyn UpperLayers>> {
        self.above.get()?.upgrade()
    }

    /// Whether this process speaks for the instance: a serial program, or rank 0.
    pub(crate) fn leads(&self) -> bool {
        self.core.rank.is_none_or(|rank| rank == 0)
    }

    /// The ports on which the program sends and receives.
    pub(crate) fn own_ports(&self) -> impl Iterator<Item = &Port> {
        self.table.ports.iter().filter(|port| port.is_own())
    }

    #[inline(always)]
    pub(crate) fn execution_loop(&self) -> SpinLockGuard<'_, ExecutionLoop> {
        self.execution.state.lock()
    }

    /// Changes the execution loop, and sends the warnings that follow to the log of the run.
    #[inline(always)]
    pub(crate) fn change_loop<T>(&self, change: impl FnOnce(&mut ExecutionLoop) -> T) -> T {
        let mut execution = self.execution_loop();
        let outcome = change(&mut execution);
        let warnings = execution.take_warnings();
        drop(execution);
        self.warn(warnings);
        outcome
    }

    /// Whether some thread is in a call on several ports.
    pub(crate) fn is_choosing(&self) -> bool {
        // A call on several ports leaves the ports while the call waits.
        self.any.lists.load(Ordering::Relaxed)
            && self.inlets().any(|(_, inlet)| inlet.inbox.is_waited_for())
    }

    /// Tells the manager. Does nothing in a forked child, since a forked child has no link to the
    /// manager.
    pub(crate) fn tell(&self, message: &ToManager) {
        if !forked() {
            self.core.process.tell(message);
        }
    }

    /// The failure of the run, if the run has failed: every call of this instance then returns the
    /// failure.
    pub(crate) fn check(&self) -> Result<()> {
        self.core.process.check()
    }

    /// Fails if the instance has failed or is closed.
    pub(crate) fn alive(&self) -> Result<()> {
        if !self.core.over.load(Ordering::Acquire) {
            return Ok(());
        }
        let text = match &*self.first_error() {
            Some(error) => format!("{} has failed: {}", self.core.name, error.text),
            None => format!("{} is closed: no call follows close()", self.core.name),
        };
        Err(Error::new(Kind::Closed, text))
    }

    /// The first error of the instance, if there is one.
    pub(crate) fn first_error(&self) -> MutexGuard<'_, Option<Error>> {
        self.core.first_error.lock().expect("never poisoned")
    }

    /// Fails in a filter of the user: the call that runs the filter has not come to an end.
    pub(crate) fn outside(&self) -> Result<()> {
        let Some(filter) = inside() else {
            return Ok(());
        };
        let text = format!(
            "{}: a call from within filter '{filter}': a filter makes one message of another, and may ask for settings \
             and write to the log, but neither send, receive, begin a use nor close",
            self.core.name
        );
        Err(Error::new(Kind::Usage, text))
    }

    /// The beginning of every call on a port.
    #[inline(always)]
    pub(crate) fn enter(&self) -> Result<()> {
        let me = this_thread();
        if self.core.caller.load(Ordering::Relaxed) != me
            && self.core.caller.swap(me, Ordering::Relaxed) != 0
        {
            self.core.threaded.store(true, Ordering::Relaxed);
        }
        let ends = self.is_over() || self.core.closing.load(Ordering::Relaxed);
        if forked() || is_inside() || ends {
            self.refused()
        } else {
            Ok(())
        }
    }

    /// Whether no more calls may be made, as the instance is closed or the run has failed.
    pub(crate) fn is_over(&self) -> bool {
        self.core.over.load(Ordering::Acquire) || self.core.process.has_failed()
    }

    /// Fails with the reason why the instance takes no call now.
    #[cold]
    pub(crate) fn refused(&self) -> Result<()> {
        not_forked()?;
        self.outside()?;
        self.alive()?;
        self.check()?;
        let text = format!(
            "{} is being closed, and makes no more calls; where close() was interrupted, call that again",
            self.core.name
        );
        Err(Error::new(Kind::Closed, text))
    }

    pub(crate) fn outlets(&self) -> impl Iterator<Item = &Outlet> {
        self.table.ports.iter().flat_map(Port::every_outlet)
    }

    /// The sending end of a conduit, if this instance and rank has the end.
    pub(crate) fn outlet_of(&self, conduit: ConduitId) -> Option<&Outlet> {
        self.outlets().find(|outlet| outlet.end.conduit == conduit)
    }

    fn outlets_to(&self, peer: &str) -> impl Iterator<Item = &Outlet> {
        let ends = self.table.neighbours.ends(peer).iter();
        ends.filter(|end| end.sends())
            .map(|end| &self.table.ports[end.port()].outlets[end.place()][end.index()])
    }

    fn inlets_from(&self, peer: &str) -> impl Iterator<Item = &Inlet> {
        let ends = self
            .table
            .neighbours
            .ends(peer)
            .iter()
            .filter(|end| !end.sends());
        ends.filter_map(|end| self.table.ports[end.port()].inlets[end.place()].as_ref())
    }

    pub(crate) fn inlets(&self) -> impl Iterator<Item = (&Port, &Inlet)> {
        self.table
            .ports
            .iter()
            .flat_map(|port| port.every_inlet().map(move |inlet| (port, inlet)))
    }

    /// Gives a carrier to the ends of conduits with this peer. True if some ends stay without a
    /// carrier, because the description pins the conduits to another medium.
    pub(crate) fn route(&self, peer: &str, route: &CarrierRoute<'_>) -> bool {
        let mut without_carrier = false;
        for outlet in self.outlets_to(peer) {
            without_carrier |= outlet.route(route);
        }
        for inlet in self.inlets_from(peer) {
            without_carrier |= inlet.route(route);
        }
        without_carrier
    }

    /// Adds a carrier for messages and acknowledgements.
    pub(crate) fn add_carrier(&self, carrier: &Arc<dyn Carrier>) {
        let mut carriers = self.table.carriers.lock().expect("never poisoned");
        let is_it =
            |known: &Arc<dyn Carrier>| std::ptr::addr_eq(Arc::as_ptr(known), Arc::as_ptr(carrier));
        if !carriers.iter().any(is_it) {
            carriers.push(carrier.clone());
        }
    }

    /// All carriers by which messages and acknowledgements come.
    pub(crate) fn carriers(&self) -> Vec<Arc<dyn Carrier>> {
        self.table.carriers.lock().expect("never poisoned").clone()
    }

    /// Notes that a peer takes no more messages. True if a receiving end has not yet heard that the
    /// peer sends no more.
    pub(crate) fn peer_finished(&self, peer: &str) -> bool {
        self.outlets_to(peer)
            .for_each(|outlet| outlet.window.close());
        self.inlets_from(peer).any(|inlet| !inlet.inbox.ended())
    }

    /// Tells senders how much this instance has taken, so that waiting senders may get room.
    fn acknowledge(&self) {
        self.inlets()
            .for_each(|(_, inlet)| inlet.inbox.acknowledge_now());
        self.upper_layers()
            .iter()
            .for_each(|above| above.acknowledge());
    }
}
