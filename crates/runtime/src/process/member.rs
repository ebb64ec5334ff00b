//! What a process calls on the instances that are open in it, and on their fields.

use std::sync::Arc;
use std::time::Instant;

use titin_transport::{Carrier, Doorbell};
use titin_wire::ConduitId;
use titin_wire::control::WaitOn;
use titin_wire::ranks::Mail;

use super::{OutgoingRankMessage, Process, RemoteField, Way};

/// An open instance, as its process sees it.
///
/// The background thread calls these methods. None of them waits, and none calls user code.
pub(crate) trait ProcessMember: Send + Sync {
    /// The name of the instance.
    fn name(&self) -> &str;

    /// The doorbell at which the instance waits.
    fn bell(&self) -> &Arc<Doorbell>;

    /// The instances at the other ends of the conduits of this process.
    fn peers(&self) -> Vec<Arc<str>>;

    /// The instances at the other ends of conduits that rank 0 has for this rank.
    fn peers_of_rank_0(&self) -> Vec<Arc<str>>;

    /// The ranks at the other ends of the links of fields.
    fn peers_of_fields(&self) -> Vec<Arc<str>>;

    /// Gives the ends of conduits with this peer their carrier. True if some ends stay without one, because the
    /// description pins them to another medium. `detour` says why the two processes do not share memory.
    fn route(&self, peer: &str, way: Way, carrier: &Arc<dyn Carrier>, detour: Option<&str>)
    -> bool;

    /// The peer takes no more messages.
    fn peer_finished(&self, peer: &str);

    /// Whether a port of the instance receives by this conduit.
    fn receives_by(&self, conduit: ConduitId) -> bool;

    /// All conduit ends, and whether each receives.
    fn conduit_ends(&self) -> Vec<(ConduitId, bool)>;

    /// What the manager asks for to be sure of a deadlock.
    fn probe(&self, conduits: &[ConduitId]) -> Probed;

    /// Reports simulated time and traffic to the manager, if they have changed.
    fn report_progress(&self);

    /// Has a pending call made again that is due although nothing has come for it. When the next one is due.
    fn nudge(&self, now: Instant) -> Option<Instant>;
}

/// The answer of an instance to a probe by the manager.
pub(crate) struct Probed {
    /// The number of the wait that lasts.
    pub(crate) wait: Option<u64>,
    /// By conduit, how many messages were sent or taken.
    pub(crate) counts: Vec<(ConduitId, u64)>,
    /// What the instance looks for by calls that do not wait.
    pub(crate) polls: Option<WaitOn>,
}

/// The fields of an instance, as its process sees them: from the time that the instance asks to join the run.
pub(crate) trait FieldHandler: Send + Sync {
    /// The instance at the other end of a conduit has declared its field.
    fn peer_declared(
        &self,
        process: &Process,
        instance: &str,
        conduit: ConduitId,
        field: RemoteField,
    );

    /// Lets the sender of a field that is pulled keep more versions.
    fn raise_versions(&self, process: &Process, instance: &str, conduit: ConduitId);

    /// A message of another rank has come. Answers for this process go to `outgoing`; others are sent at once.
    fn receive(&self, process: &Process, message: Mail, outgoing: &mut Vec<OutgoingRankMessage>);

    /// The instance has left the run.
    fn forget(&self);
}
