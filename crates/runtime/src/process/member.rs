//! The calls of a process on its open instances, and on the fields of the instances.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use titin_transport::{Carrier, Doorbell};
use titin_wire::ConduitId;
use titin_wire::control::{FieldEnd, WaitOn};
use titin_wire::ranks::RankMessage;

use super::{OutgoingRankMessage, Process, RouteMedium};

/// An open instance, as the process sees the instance.
///
/// The background thread calls these methods. No method waits, and no method calls user code.
pub(crate) trait ProcessMember: Send + Sync {
    /// The name of the instance.
    fn name(&self) -> &str;

    /// The doorbell at which the instance waits.
    fn bell(&self) -> &Arc<Doorbell>;

    /// The instances at the other ends of the conduits of this process.
    fn peers(&self) -> Vec<Arc<str>>;

    /// The instances at the other ends of rank 0's conduits, on a rank but 0.
    fn peers_of_rank_0(&self) -> Vec<Arc<str>>;

    /// The ranks at the other ends of the links of fields.
    fn peers_of_fields(&self) -> Vec<Arc<str>>;

    /// Gives the carrier to the ends of conduits with a peer. True if some ends stay without a
    /// carrier, because the description pins the ends to another medium. `detour` says why the two
    /// processes do not share memory.
    fn route(
        &self,
        peer: &str,
        medium: RouteMedium,
        carrier: &Arc<dyn Carrier>,
        detour: Option<&str>,
    ) -> bool;

    /// A link that this process has dialled leads to the process of a peer, between the given addresses.
    fn linked(&self, peer: &str, addresses: [IpAddr; 2]);

    /// Adds a warning to the log of the run.
    fn warn(&self, text: &str);

    /// The peer takes no more messages.
    fn peer_finished(&self, peer: &str);

    /// Whether a port of the instance receives by the conduit.
    fn receives_by(&self, conduit: ConduitId) -> bool;

    /// All conduit ends, and whether each receives.
    fn conduit_ends(&self) -> Vec<(ConduitId, bool)>;

    /// The answer to a probe: the manager asks to be sure of a deadlock.
    fn probe(&self, conduits: &[ConduitId]) -> Probed;

    /// Reports simulated time and traffic to the manager, if either has changed.
    fn report_progress(&self);

    /// Has a pending call made again once the call is due, although nothing has come for the call.
    /// Returns the time at which the next call is due.
    fn nudge(&self, now: Instant) -> Option<Instant>;
}

/// The answer of an instance to a probe by the manager.
pub(crate) struct Probed {
    /// The number of the present wait, if the wait lasts.
    pub(crate) wait: Option<u64>,
    /// By conduit, how many messages were sent or taken.
    pub(crate) counts: Vec<(ConduitId, u64)>,
    /// The messages or the room for which the instance polls, by calls without waiting.
    pub(crate) polls: Option<WaitOn>,
}

/// The other end of a field's conduit.
#[derive(Debug, Clone)]
pub(crate) struct RemoteField {
    /// How many ranks there are.
    pub(crate) ranks: u32,
    /// The first of the numbers of the conduits between ranks.
    pub(crate) first: ConduitId,
    pub(crate) field: FieldEnd,
}

/// The fields of an instance, as the process sees the fields, from the time when the instance asks
/// to join the run.
pub(crate) trait FieldHandler: Send + Sync {
    /// The instance at the other end of a conduit has declared its field.
    fn peer_declared(
        &self,
        process: &Process,
        instance: &str,
        conduit: ConduitId,
        field: RemoteField,
    );

    /// Lets the sender of a pulled field keep more versions.
    fn raise_versions(&self, process: &Process, instance: &str, conduit: ConduitId);

    /// A message of another rank has come. Answers for this process go to `outgoing`, and other
    /// answers are sent at once.
    fn receive(
        &self,
        process: &Process,
        message: RankMessage,
        outgoing: &mut Vec<OutgoingRankMessage>,
    );

    /// The instance has left the run.
    fn forget(&self);
}
