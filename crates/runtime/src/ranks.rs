//! Parallel programs: an instance whose program has many ranks.
//!
//! The program hands over its communicator when it opens the instance (`meet`). It is used then and never again: from
//! there on the ranks have links of titin's own, so nobody waits inside MPI, and no call of MPI is made behind the
//! program's back. Rank 0 has the conduits of ordinary ports; calls on them are made by all ranks together, and what
//! they come to at rank 0 goes down the tree of ranks (`together`).

mod meet;

use titin_model::Operator;
use titin_wire::ConduitId;
use titin_wire::control::{ConduitEnd, PortDeclaration, Welcome};
use titin_wire::ranks::{RankProcess, children, conduits, parent};

use crate::{Error, Kind, Result};

pub(crate) use meet::{Met, meet, outcome, result};

/// How the processes of a parallel program reach each other before they know of each other: two collective calls over
/// the ranks that are to be one instance. It is used only while the instance is opened.
pub trait Communicator {
    /// The number of the calling rank, from 0.
    fn rank(&self) -> u32;
    /// How many ranks there are.
    fn ranks(&self) -> u32;
    /// Gives the bytes of rank 0 to all.
    ///
    /// # Errors
    /// What the communicator says.
    fn broadcast(&self, bytes: &mut [u8]) -> Result<()>;
    /// Gives everybody's bytes, equally many, to rank 0, in the order of the ranks. Elsewhere `all` is empty.
    ///
    /// # Errors
    /// What the communicator says.
    fn gather(&self, mine: &[u8], all: &mut [u8]) -> Result<()>;
}

/// Ports between ranks. No description can have ports of such names.
const MARK: char = '#';
/// To the ranks below.
const DOWN: &str = "#down";
/// From the rank above.
const ABOVE: &str = "#above";
/// From the ranks below, which say how often they have sent each field, and that they have closed.
const BELOW: &str = "#below";
/// To the rank above. It comes last, as its end says that all below have closed.
const UP: &str = "#up";

/// How far ranks may be ahead of each other.
const BUFFER: (u64, u64) = (64, 1 << 30);

/// The place of a process among the ranks of its instance.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ranks {
    pub(crate) rank: u32,
    /// How many there are.
    pub(crate) count: u32,
    /// Number of the port to the ranks below, if there are any.
    pub(crate) down: Option<usize>,
    /// Number of the port from the rank above, but for rank 0.
    pub(crate) above: Option<usize>,
    /// Number of the port from the ranks below, if there are any.
    pub(crate) below: Option<usize>,
    /// Number of the port to the rank above, but for rank 0.
    pub(crate) up: Option<usize>,
}

/// What a port is called by which the field of this port goes from rank to rank.
pub(crate) fn between_ranks(port: &str) -> String {
    format!("{MARK}{port}")
}

/// The port whose field goes by an end between ranks, by the label of that.
pub(crate) fn port_of_field(label: &str) -> &str {
    let name = label.strip_prefix(MARK).unwrap_or(label);
    name.split_once('[').map_or(name, |(name, _)| name)
}

/// Whether a port, by its name, is one between ranks: of one instance, or of two that a field goes between.
pub(crate) fn is_between_ranks(port: &str) -> bool {
    port.starts_with(MARK)
}

/// What a rank of an instance is called among the peers: rank 3 of `macro[1]` is `macro[1]#3`.
pub(crate) fn rank_name(instance: &str, rank: u32) -> String {
    format!("{instance}{MARK}{rank}")
}

/// The instance that a peer is, or is a rank of.
pub(crate) fn instance_of(peer: &str) -> &str {
    peer.split_once(MARK).map_or(peer, |(instance, _)| instance)
}

/// Who a peer is, for people: `rank 3 of macro[1]`, if it is called like that.
pub(crate) fn written(peer: &str) -> String {
    match peer.split_once(MARK) {
        Some((instance, rank)) => format!("rank {rank} of {instance}"),
        None => peer.to_owned(),
    }
}

impl Ranks {
    /// The place of this rank, of so many. The manager's welcome gets the ports to its neighbours in the tree.
    pub(crate) fn of(welcome: &mut Welcome, rank: u32, ranks: u32) -> Result<Self> {
        let first = welcome.between_ranks.ok_or_else(|| {
            let text = "the run's manager knows no parallel programs: use the same release of titin for both";
            Error::new(Kind::Connection, text)
        })?;
        let instance = welcome.instance.clone();
        let mut add = |name: &str, operator: Operator, wires: Vec<ConduitEnd>| {
            if wires.is_empty() {
                return None;
            }
            let vector = wires[0].slot.is_some();
            welcome.ports.push(PortDeclaration {
                name: name.into(),
                operator: operator.key().into(),
                vector,
            });
            welcome.wires.extend(wires);
            Some(welcome.ports.len() - 1)
        };
        let wire = |port: &str, slot, sends, peer, peer_port: &str, peer_slot| {
            // The one further down has the number of the conduits between the two.
            let (down, up) = conduits(first, rank.max(peer));
            let conduit = if matches!((port, peer_port), (DOWN, ABOVE) | (ABOVE, DOWN)) {
                down
            } else {
                up
            };
            let (here, there) = ((port, slot), (peer_port, peer_slot));
            wire_between(
                (conduit, BUFFER),
                sends,
                here,
                rank_name(&instance, peer),
                there,
            )
        };
        let below = || children(rank, ranks);
        let above = || parent(rank).into_iter();
        let down = add(
            DOWN,
            Operator::OI,
            below()
                .map(|peer| wire(DOWN, None, true, peer, ABOVE, None))
                .collect(),
        );
        let inlet = add(
            ABOVE,
            Operator::S,
            above()
                .map(|peer| wire(ABOVE, None, false, peer, DOWN, None))
                .collect(),
        );
        let slot = |peer: u32| Some(peer - below().start);
        let wires = below().map(|peer| wire(BELOW, slot(peer), false, peer, UP, None));
        let heard = add(BELOW, Operator::S, wires.collect());
        let up = add(
            UP,
            Operator::OI,
            above()
                .map(|peer| wire(UP, None, true, peer, BELOW, None))
                .collect(),
        );
        Ok(Ranks {
            rank,
            count: ranks,
            down,
            above: inlet,
            below: heard,
            up,
        })
    }
}

/// The end of a conduit between ranks, of which no description says anything: its number and buffer, whether it sends, its port and
/// slot, and the rank at the other end with those of its own.
pub(crate) fn wire_between(
    (conduit, buffer): (ConduitId, (u64, u64)),
    sends: bool,
    (port, slot): (&str, Option<u32>),
    peer: String,
    (peer_port, peer_slot): (&str, Option<u32>),
) -> ConduitEnd {
    ConduitEnd {
        conduit,
        port: port.to_owned(),
        slot,
        sends,
        resizable: false,
        timeline: None,
        peer,
        peer_port: peer_port.to_owned(),
        peer_slot,
        filters: Vec::new(),
        buffer_messages: buffer.0,
        buffer_bytes: buffer.1,
        medium: None,
        pattern: None,
        link: Default::default(),
    }
}

/// What is said of a rank's process.
pub(crate) fn process_of(rank: u32, process: &RankProcess) -> String {
    format!("rank {rank} (process {} on {})", process.pid, process.host)
}
