//! Parallel programs: instances with many ranks.
//!
//! The program hands over its communicator when the program opens the instance (`bootstrap`). Titin
//! uses the communicator then and never again: from there on the ranks have links of titin's own.
//! So no rank waits inside MPI, and titin makes no call of MPI behind the program's back. The links
//! form a tree with rank 0 at the root. Rank 0 has the conduits of ordinary ports. All ranks make
//! calls on ordinary ports together, and rank 0 tells the ranks below the result of a call
//! (`collective`).

mod announcements;
mod bootstrap;
mod collective;
mod field_counts;
mod outcome;

use std::sync::{Arc, Mutex};

use titin_model::Operator;
use titin_transport::{ConduitTable, Doorbell};
use titin_wire::ConduitId;
use titin_wire::control::{ConduitEnd, Welcome};
use titin_wire::ranks::{FieldSteps, children, conduits, parent};

use crate::filter::Chain;
use crate::peer_names::rank_name;
use crate::port::{CarrierRoute, ConduitUse, Inlet, Outlet, Port, PortEnd, PortId};
use crate::process::Process;
use crate::serial::{RemoteConduit, Serial};
use crate::{Error, Kind, ReceivingRanks, Result};

use announcements::LastAnnouncements;

pub(crate) use bootstrap::{Bootstrapped, bootstrap};
pub(crate) use collective::{call_on, unexpected};
pub(crate) use field_counts::{FieldCount, FieldCounts};

/// How many messages and bytes a rank may be ahead of a neighbour in the tree.
const BUFFER: (u64, u64) = (64, 1 << 30);

/// The names of the ports between ranks, for the two ends of a conduit.
const TO_CHILDREN: &str = "down";
const FROM_PARENT: &str = "above";
const FROM_CHILDREN: &str = "below";
const TO_PARENT: &str = "up";

/// The number of a rank, and how many ranks there are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RankPlace {
    pub(crate) rank: u32,
    pub(crate) count: u32,
}

impl RankPlace {
    /// Whether there are ranks below.
    pub(crate) fn has_children(self) -> bool {
        !children(self.rank, self.count).is_empty()
    }
}

/// The links of a rank to the neighbours in the tree.
pub(crate) struct RankTree {
    /// To the ranks below, if there are any: the results of calls at rank 0.
    to_children: Option<Port>,
    /// From the rank above; rank 0 has no such port.
    from_parent: Option<Port>,
    /// From the ranks below: how often a rank has sent or received each field, and the news that a
    /// rank has closed.
    from_children: Option<Port>,
    /// To the rank above; rank 0 has no such port. The end of the stream says that this rank and
    /// all ranks below have closed.
    to_parent: Option<Port>,
}

/// The group of ranks of a parallel instance, at one rank of the group.
pub(crate) struct RankGroup {
    serial: Arc<Serial>,
    place: RankPlace,
    pub(crate) tree: RankTree,
    /// The conduits of ordinary ports. Rank 0 has the ends.
    remote: Vec<RemoteConduit>,
    /// The ranks that get the data of received messages.
    receiving: ReceivingRanks,
    /// How often this rank has sent or received each field.
    pub(crate) counts: FieldCounts,
    /// The ranks right below that have closed, and how often each has sent or received each field.
    counts_below: Mutex<Vec<(u32, FieldSteps)>>,
    /// The call that rank 0 makes now for all ranks; empty if there is none.
    leading: Mutex<String>,
    /// Memory for the encoded report of rank 0.
    encoded: Mutex<Vec<u8>>,
    announcements: LastAnnouncements,
}

/// The end of a conduit between ranks. No description names such a conduit.
pub(crate) struct RankConduit<'a> {
    pub(crate) conduit: ConduitId,
    pub(crate) limits: (u64, u64),
    pub(crate) sends: bool,
    /// The port and slot of the end.
    pub(crate) port: (&'a str, Option<u32>),
    /// The name of the rank at the other end, and the port and slot there.
    pub(crate) peer: String,
    pub(crate) peer_port: (&'a str, Option<u32>),
}

impl RankConduit<'_> {
    /// The end in the form from which ports are made.
    pub(crate) fn wire(&self) -> ConduitEnd {
        ConduitEnd {
            conduit: self.conduit,
            port: self.port.0.to_owned(),
            slot: self.port.1,
            sends: self.sends,
            resizable: false,
            timeline: None,
            peer: self.peer.clone(),
            peer_port: self.peer_port.0.to_owned(),
            peer_slot: self.peer_port.1,
            filters: Vec::new(),
            buffer_messages: self.limits.0,
            buffer_bytes: self.limits.1,
            buffer_grows: false,
            medium: None,
            pattern: None,
            link: Default::default(),
        }
    }
}

/// Opens the end of a conduit between ranks at a port. Returns the name of the peer.
pub(crate) fn open_rank_end(
    port: &mut Port,
    conduit: &RankConduit<'_>,
    conduit_use: ConduitUse,
    process: &Process,
    bell: &Arc<Doorbell>,
) -> Result<Arc<str>> {
    let wire = conduit.wire();
    let place = port.place(&wire);
    let chain = Chain::new(&[], wire.sends, &Default::default(), &Default::default())?;
    let end = PortEnd::new(&wire, conduit_use, |name| process.name(name), chain);
    let peer = end.peer.clone();
    let exchange: &ConduitTable = &process.exchange;
    port.open_end(place, end, conduit.limits, (bell, exchange));
    Ok(peer)
}

impl RankTree {
    /// Opens the links of a rank to the neighbours. The manager's welcome gives the first number of
    /// the conduits.
    pub(crate) fn open(
        welcome: &Welcome,
        place: RankPlace,
        process: &Process,
        bell: &Arc<Doorbell>,
    ) -> Result<Self> {
        let first = welcome.between_ranks.ok_or_else(|| {
            let text = "the run's manager knows no parallel programs: use the same release of titin for both";
            Error::new(Kind::Connection, text)
        })?;
        let RankPlace { rank, count } = place;
        let below = children(rank, count);
        let open = |name: &str, other: &str, peers: Vec<u32>| -> Result<Option<Port>> {
            if peers.is_empty() {
                return Ok(None);
            }
            let sends = matches!(name, TO_CHILDREN | TO_PARENT);
            let operator = if sends { Operator::OI } else { Operator::S };
            let mut port = Port::new(process.name(name), operator, name == FROM_CHILDREN);
            for peer in peers {
                // The rank further down has the number of the conduits between the two.
                let (down, up) = conduits(first, rank.max(peer));
                let is_down = matches!(name, TO_CHILDREN | FROM_PARENT);
                let conduit = RankConduit {
                    conduit: if is_down { down } else { up },
                    limits: BUFFER,
                    sends,
                    port: (name, (name == FROM_CHILDREN).then(|| peer - below.start)),
                    peer: rank_name(&welcome.instance, peer),
                    peer_port: (other, None),
                };
                open_rank_end(&mut port, &conduit, ConduitUse::RankTree, process, bell)?;
            }
            Ok(Some(port))
        };
        let above = || parent(rank).into_iter().collect();
        Ok(RankTree {
            to_children: open(TO_CHILDREN, FROM_PARENT, below.clone().collect())?,
            from_parent: open(FROM_PARENT, TO_CHILDREN, above())?,
            from_children: open(FROM_CHILDREN, TO_PARENT, below.clone().collect())?,
            to_parent: open(TO_PARENT, FROM_CHILDREN, above())?,
        })
    }

    fn ports(&self) -> impl Iterator<Item = &Port> {
        [
            &self.to_children,
            &self.from_parent,
            &self.from_children,
            &self.to_parent,
        ]
        .into_iter()
        .flatten()
    }

    /// Whether a call uses one of the ports.
    pub(crate) fn is_in_use(&self) -> bool {
        self.ports().any(|port| port.enter().is_err())
    }

    /// The names of the neighbours.
    pub(crate) fn peers(&self) -> Vec<Arc<str>> {
        let ends = self.ports().flat_map(Port::every_end);
        let mut peers: Vec<Arc<str>> = ends.map(|(end, _)| end.peer.clone()).collect();
        peers.sort();
        peers.dedup();
        peers
    }

    /// All conduit ends, and whether each receives.
    pub(crate) fn ends(&self) -> impl Iterator<Item = (&PortEnd, bool)> {
        self.ports().flat_map(Port::every_end)
    }

    /// The receiving ends.
    pub(crate) fn inlets(&self) -> impl Iterator<Item = &Inlet> {
        self.ports().flat_map(Port::every_inlet)
    }

    /// The sending ends to the ranks below.
    pub(crate) fn outlets_to_children(&self) -> impl Iterator<Item = &Outlet> {
        self.to_children.iter().flat_map(Port::every_outlet)
    }

    /// The sending end to the rank above.
    pub(crate) fn outlet_to_parent(&self) -> Option<&Outlet> {
        self.to_parent.iter().flat_map(Port::every_outlet).next()
    }

    /// The ports by which this rank receives: from above, and from below.
    pub(crate) fn receiving_ports(&self) -> (Option<&Port>, Option<&Port>) {
        (self.from_parent.as_ref(), self.from_children.as_ref())
    }

    /// Gives the carrier to the ends of conduits with a peer. True if some ends stay without a
    /// carrier.
    pub(crate) fn route(&self, peer: &str, route: &CarrierRoute<'_>) -> bool {
        let without_carrier = self.ports().filter(|port| port.route(peer, route));
        without_carrier.count() > 0
    }

    /// A peer takes no more messages.
    pub(crate) fn peer_finished(&self, peer: &str) {
        let outlets = self.ports().flat_map(Port::every_outlet);
        outlets
            .filter(|outlet| *outlet.end.peer == *peer)
            .for_each(|outlet| outlet.window.close());
    }
}

impl RankGroup {
    pub(crate) fn new(
        serial: Arc<Serial>,
        place: RankPlace,
        tree: RankTree,
        remote: Vec<RemoteConduit>,
        receiving: ReceivingRanks,
    ) -> Self {
        let announcements = LastAnnouncements::new(serial.table.ports.len());
        RankGroup {
            serial,
            place,
            tree,
            remote,
            receiving,
            counts: FieldCounts::default(),
            counts_below: Mutex::default(),
            leading: Mutex::default(),
            encoded: Mutex::default(),
            announcements,
        }
    }

    /// The rank of this process, and the number of ranks.
    pub(crate) fn place(&self) -> RankPlace {
        self.place
    }

    /// On a rank but 0, the instances at the other ends of rank 0's conduits.
    pub(crate) fn remote_peers(&self) -> impl Iterator<Item = &Arc<str>> {
        self.remote.iter().map(|remote| &remote.peer)
    }

    /// Rank 0's conduits at a port, and the instances at the other ends.
    pub(crate) fn remote_conduits(
        &self,
        port: PortId,
    ) -> impl Iterator<Item = (ConduitId, Arc<str>)> {
        let remote = self.remote.iter().filter(move |remote| remote.port == port);
        remote.map(|remote| (remote.conduit, remote.peer.clone()))
    }
}
