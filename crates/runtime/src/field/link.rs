//! Field links: the conduits of a field between one rank and its partners, ranks of a peer.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Weak};

use titin_array::{CopyBytes, Role, Schedule};
use titin_transport::{PAST_CACHES, copy, copy_past_caches};
use titin_wire::ConduitId;
use titin_wire::control::ConduitProfile;
use titin_wire::meta::{Dtype, LayoutRef, StorageOrder};
use titin_wire::ranks::pair;

use super::{Field, FieldConduit, InstanceFields};
use crate::peer_names::{rank_name, written};
use crate::port::{CarrierRoute, ConduitUse, Outlet, Port};
use crate::process::RemoteField;
use crate::ranks::{RankConduit, RankPlace, open_rank_end};
use crate::serial::Wait;
use crate::{Error, Kind, Result};

/// How far a rank may be ahead of a partner. Bytes alone count: exchanges are counted along the
/// conduit between the instances, and a large piece goes in many messages.
const BUFFER: (u64, u64) = (u64::MAX, 1 << 30);

/// The bytes of a chunk: far less than a cache holds, and enough to make the cost of a message
/// unimportant.
pub(super) const AT_ONCE: u64 = 512 << 10;

/// A receiver acknowledges each quarter of these limits, so every chunk. Then the sender can keep
/// pace with the receiver.
const ACKNOWLEDGED: (u64, u64) = (u64::MAX, 4 * AT_ONCE);

/// The length of a short piece, at most: about as much as an entry of a ring of shared memory
/// takes. A short piece needs no memory that peers can read, and may go in the header's message. A
/// piece in the header's message counts against the buffer of the conduit, which is meant for
/// messages of the program.
pub(super) const SHORT: u64 = 2 << 10;

/// The link of one rank to the rank's partners at a peer.
pub(crate) struct FieldLink {
    /// The instance at the other end.
    pub(crate) peer: Arc<str>,
    /// The conduit between the instances, along which rank 0 announces the field.
    pub(crate) along: ConduitId,
    pub(crate) schedule: Schedule,
    /// The length of each partner's piece.
    pub(super) lengths: Box<[u64]>,
    /// Whether the only piece goes in the header's message.
    pub(super) is_joined: bool,
    /// The rank of this end.
    rank: u32,
    /// A port with a place for each partner in the schedule, apart from the ports of the program.
    pub(crate) port: Port,
    /// Whether the pieces of this rank are larger than the caches. Such pieces are copied past the
    /// caches.
    pub(super) past_caches: bool,
    /// The number of exchanges for which this rank has sent all pieces.
    pub(super) exchanges: AtomicU32,
    /// Whether the receiver pulls.
    pub(super) pulled: bool,
}

impl FieldLink {
    /// The place of the partner at this turn. Each rank begins with a different partner, so the
    /// ranks do not all send to one partner at a time. Where all ranks exchange with all, a
    /// receiver begins with the partner that sends to this receiver first.
    pub(super) fn partner(&self, turn: usize) -> usize {
        let count = self.schedule.count().max(1);
        match self.port.operator.sends() {
            true => (self.rank as usize + turn) % count,
            false => (self.rank as usize + count - turn % count) % count,
        }
    }

    /// The name of the partner at a place, for texts.
    pub(super) fn partner_name(&self, place: usize) -> String {
        let partner = self
            .schedule
            .partner(place)
            .expect("the place of a partner");
        written(&rank_name(&self.peer, partner.rank))
    }
}

impl InstanceFields {
    /// Opens the conduits of a schedule.
    pub(super) fn open_link(
        &self,
        field: &Field,
        conduit: &FieldConduit,
        remote: &RemoteField,
        schedule: Schedule,
    ) -> Result<Arc<FieldLink>> {
        let (serial, peer) = (&self.serial, &conduit.peer);
        let operator = serial.table.ports[field.port.0].operator;
        let mut port = Port::new(field.name.clone(), operator, true);
        let RankPlace { rank, count } = self.place();
        let mut peers = Vec::new();
        for (place, partner) in schedule.partners().enumerate() {
            let sends = field.role == Role::Sender;
            let end = RankConduit {
                conduit: match sends {
                    true => pair(remote.first, rank, partner.rank, remote.ranks),
                    false => pair(remote.first, partner.rank, rank, count),
                },
                limits: if sends { BUFFER } else { ACKNOWLEDGED },
                sends,
                port: (&field.name, Some(place as u32)),
                peer: rank_name(peer, partner.rank),
                peer_port: (&field.name, None),
            };
            let usage = ConduitUse::FieldLink;
            peers.push(open_rank_end(
                &mut port,
                &end,
                usage,
                &serial.core.process,
                &serial.core.bell,
            )?);
        }
        let element: usize = field.dtypes.iter().map(|dtype| dtype.size()).sum();
        let bytes = schedule.elements().saturating_mul(element as u64);
        let lengths: Box<[u64]> = schedule
            .partners()
            .map(|partner| partner.elements.saturating_mul(element as u64))
            .collect();
        let is_joined = self.group.is_none()
            && remote.ranks == 1
            && remote.field.takes_joined
            && matches!(*lengths, [one] if one <= SHORT);
        let link = Arc::new(FieldLink {
            peer: peer.clone(),
            along: conduit.conduit,
            schedule,
            lengths,
            is_joined,
            rank,
            port,
            past_caches: bytes >= PAST_CACHES as u64,
            exchanges: AtomicU32::new(0),
            pulled: conduit.is_pulled(),
        });
        let mut links = self.links.write().expect("never poisoned");
        links.push(link.clone());
        drop(links);
        if let Some(member) = self.member.get().and_then(Weak::upgrade) {
            serial.core.process.join_ranks(&member, &peers);
        }
        // The peer may have finished before the link was in the list.
        if serial.core.process.finished(&link.peer) {
            self.peer_finished(&link.peer);
        }
        Ok(link)
    }

    /// All links of all fields.
    pub(crate) fn all_links(&self) -> Vec<Arc<FieldLink>> {
        self.links.read().expect("never poisoned").clone()
    }

    /// The ranks at the other ends of all links.
    pub(crate) fn peers(&self) -> Vec<Arc<str>> {
        let links = self.all_links();
        let ends = links.iter().flat_map(|link| link.port.every_end());
        ends.map(|(end, _)| end.peer.clone()).collect()
    }

    /// All conduit ends of links, and whether each receives.
    pub(crate) fn ends(&self) -> Vec<(ConduitId, bool)> {
        let links = self.all_links();
        let ends = links.iter().flat_map(|link| link.port.every_end());
        ends.map(|(end, receives)| (end.conduit, receives))
            .collect()
    }

    /// Gives a carrier to the ends of links to a rank. True if some ends stay without a carrier.
    pub(crate) fn route(&self, peer: &str, route: &CarrierRoute<'_>) -> bool {
        let links = self.all_links();
        let without_carrier = links.iter().filter(|link| link.port.route(peer, route));
        without_carrier.count() > 0
    }

    /// Acknowledges the pieces to the senders.
    pub(crate) fn acknowledge(&self) {
        for link in self.all_links() {
            link.port
                .every_inlet()
                .for_each(|inlet| inlet.inbox.acknowledge_now());
        }
    }

    /// How many bytes of pieces this rank has sent.
    pub(crate) fn bytes_sent(&self) -> u64 {
        let links = self.all_links();
        let outlets = links.iter().flat_map(|link| link.port.every_outlet());
        outlets
            .map(|outlet| outlet.end.meter.bytes.load(Ordering::Relaxed))
            .sum()
    }

    /// Adds the bytes of the pieces, and the waits for pieces, to the figures of the conduits
    /// between the instances.
    pub(crate) fn add_to_profile(&self, conduits: &mut [ConduitProfile]) {
        for link in self.all_links() {
            for (end, receives) in link.port.every_end() {
                let known = conduits
                    .iter_mut()
                    .find(|known| known.conduit == link.along.0 && known.sends != receives);
                let Some(field) = known else { continue };
                let piece = self.serial.conduit_profile(end, receives);
                field.bytes += piece.bytes;
                field.copied += piece.copied;
                field.by_socket += piece.by_socket;
                field.waiting += piece.waiting;
                field.detour = field.detour.take().or(piece.detour);
            }
        }
    }

    /// Ends the links: tells the receivers that no more pieces follow.
    pub(crate) fn end_links(&self) -> Result<()> {
        self.all_links()
            .iter()
            .try_for_each(|link| self.end_link(link))
    }

    pub(super) fn end_link(&self, link: &FieldLink) -> Result<()> {
        // A receiver that left before its first pull has no carrier, and misses nothing.
        let there = |outlet: &&Outlet| !link.pulled || outlet.end.carrier.get().is_some();
        link.port
            .every_outlet()
            .filter(there)
            .try_for_each(|outlet| self.serial.end_stream(outlet))
    }

    /// Waits until receivers hold all pieces, and until senders have ended the links.
    pub(crate) fn settle_links(&self) -> Result<()> {
        for link in self.all_links() {
            let is_over = || -> Result<Option<()>> {
                let mut over = true;
                for outlet in link.port.every_outlet() {
                    let none = link.pulled && outlet.end.carrier.get().is_none();
                    over &= none || self.serial.is_settled(outlet)?;
                }
                // A receiver that pulls need not wait for more versions.
                for inlet in link.port.every_inlet().filter(|_| !link.pulled) {
                    let ended =
                        inlet.inbox.ended() || self.serial.core.process.finished(&link.peer);
                    if !ended {
                        self.serial.reachable(&inlet.end)?;
                    }
                    over &= ended;
                    // A closing program has received all announced fields, so a piece that is left
                    // belongs to no field.
                    if self.serial.execution_loop().refuses()
                        && inlet.inbox.received() > inlet.inbox.consumed()
                    {
                        let text = format!(
                            "field on port '{}': {} has sent a part that was never taken: receive as often as the sender sends, and \
                             have all ranks of {} send as often as its rank 0",
                            inlet.end.port_name(),
                            written(&inlet.end.peer),
                            link.peer
                        );
                        return Err(self
                            .serial
                            .by_end_of(Error::new(Kind::CallOrder, text), [&*link.peer]));
                    }
                }
                Ok(over.then_some(()))
            };
            self.serial.wait(Wait::default(), Vec::new, is_over)?;
        }
        Ok(())
    }

    /// A peer takes no more messages.
    pub(crate) fn peer_finished(&self, peer: &str) {
        for link in self.all_links().iter().filter(|link| *link.peer == *peer) {
            link.port
                .every_outlet()
                .for_each(|outlet| outlet.window.close());
        }
    }
}

/// The layout of `length` bytes, which a message along a link carries.
pub(super) fn flat(length: &[u64; 1]) -> LayoutRef<'_> {
    LayoutRef {
        dtype: Dtype::UInt8,
        order: StorageOrder::C,
        shape: length,
        names: &[],
    }
}

/// The copy of contiguous bytes into a cache, or past the caches.
pub(super) fn copy_by(past_caches: bool) -> CopyBytes {
    if past_caches { copy_past_caches } else { copy }
}
