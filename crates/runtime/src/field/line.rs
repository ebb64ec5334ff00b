//! The conduits of a field between one rank and those of a peer that it exchanges something with.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use titin_array::{Role, Schedule};
use titin_transport::{PAST_CACHES, Window};
use titin_wire::ConduitId;
use titin_wire::ranks::pair;

use super::pieces::AT_ONCE;
use super::{Coupled, Field};
use crate::filter::Chain;
use crate::instance::Inner;
use crate::peer_names::{rank_name, written};
use crate::port::{End, Inlet, Outlet, Port};
use crate::process::{Member, RemoteField};
use crate::ranks::{between_ranks, port_of_field, wire_between};
use crate::{Error, Kind, Result};

/// How far a rank may be ahead of one that it sends to. What counts is bytes: exchanges are counted along the conduit between the
/// instances, and a large piece goes in many messages.
const BUFFER: (u64, u64) = (u64::MAX, 1 << 30);

/// By these limits a receiver acknowledges, which it does for each quarter of them: every part, so that the sender can keep its pace.
const ACKNOWLEDGED: (u64, u64) = (u64::MAX, 4 * AT_ONCE);

/// From one rank to the ranks of a peer, or the reverse.
pub(crate) struct Line {
    /// The instance at the other end.
    pub(crate) peer: Arc<str>,
    /// The conduit between the instances, along which the field is announced.
    pub(crate) along: ConduitId,
    pub(crate) schedule: Schedule,
    /// Of this end.
    rank: u32,
    /// A port of its own, with a place for each partner in the schedule.
    pub(crate) port: Port,
    /// Whether the caches cannot hold what this rank exchanges of the field, so that it is copied past them.
    pub(super) past_caches: bool,
    /// How many exchanges there were, as far as this rank has sent its pieces.
    pub(super) exchanges: AtomicU32,
    /// Whether its receiver pulls.
    pub(super) pulled: bool,
}

impl Line {
    /// The place of the partner that has this turn. Each rank begins elsewhere, so that not all send to one at a time; and receivers
    /// take first what is first sent to them, where each side's ranks exchange with all of the other.
    pub(super) fn partner(&self, turn: usize) -> usize {
        let count = self.schedule.count().max(1);
        match self.port.operator.sends() {
            true => (self.rank as usize + turn) % count,
            false => (self.rank as usize + count - turn % count) % count,
        }
    }

    /// Who the partner at a place is, for people.
    pub(super) fn partner_name(&self, place: usize) -> String {
        let partner = self
            .schedule
            .partner(place)
            .expect("the place of a partner");
        written(&rank_name(&self.peer, partner.rank))
    }

    /// Its sending ends to this rank.
    pub(crate) fn outlets_to(&self, peer: &str) -> impl Iterator<Item = &Outlet> {
        self.port
            .every_outlet()
            .filter(move |outlet| *outlet.end.peer == *peer)
    }

    /// Its receiving ends from this rank.
    pub(crate) fn inlets_from(&self, peer: &str) -> impl Iterator<Item = &Inlet> {
        self.port
            .every_inlet()
            .filter(move |inlet| *inlet.end.peer == *peer)
    }
}

impl Inner {
    /// Opens the conduits that a schedule needs.
    pub(super) fn open_line(
        self: &Arc<Self>,
        field: &Field,
        way: &Coupled,
        remote: &RemoteField,
        schedule: Schedule,
    ) -> Result<Arc<Line>> {
        let (name, role, peer) = (between_ranks(&field.name), field.role, &way.peer);
        let mut line = Port::new(
            self.process.name(&name),
            self.ports[field.port.0].operator,
            true,
        );
        let ((rank, ranks), mut peers) = (self.place_in_ranks(), Vec::new());
        for (place, partner) in schedule.partners().enumerate() {
            let conduit = match role {
                Role::Sender => pair(remote.first, rank, partner.rank, remote.ranks),
                Role::Receiver => pair(remote.first, partner.rank, rank, ranks),
            };
            let (slot, sends) = (Some(place as u32), role == Role::Sender);
            let wire = wire_between(
                (conduit, BUFFER),
                sends,
                (&name, slot),
                rank_name(peer, partner.rank),
                (&name, None),
            );
            line.place(&wire);
            let chain = Chain::new(&[], wire.sends, &Default::default(), &Default::default())?;
            let end = End::new(&wire, |name| self.process.name(name), chain);
            peers.push(end.peer.clone());
            match role {
                Role::Sender => {
                    let window = Arc::new(Window::new(self.bell.clone(), BUFFER.0, BUFFER.1));
                    self.process.exchange.open_window(conduit, window.clone());
                    line.push_outlet(place, end, window);
                }
                Role::Receiver => {
                    let inbox = self.process.exchange.inbox(conduit);
                    line.put_inlet(
                        place,
                        Inlet {
                            end,
                            inbox,
                            limits: ACKNOWLEDGED,
                        },
                    );
                }
            }
        }
        let (peer, pulled) = (peer.clone(), way.pattern.cache().is_some());
        let element: usize = field.dtypes.iter().map(|dtype| dtype.size()).sum();
        let past_caches = schedule.elements().saturating_mul(element as u64) >= PAST_CACHES as u64;
        let exchanges = AtomicU32::new(0);
        let line = Arc::new(Line {
            peer,
            along: way.conduit,
            schedule,
            rank,
            port: line,
            past_caches,
            exchanges,
            pulled,
        });
        self.lines
            .write()
            .expect("never poisoned")
            .push(line.clone());
        let member: Arc<dyn Member> = self.clone();
        self.process.join_ranks(&member, &peers);
        // Its word may have come before this line was there to hear it.
        if self.process.finished(&line.peer) {
            self.close_lines(&line.peer);
        }
        Ok(line)
    }

    /// All lines of its fields.
    pub(crate) fn all_lines(&self) -> Vec<Arc<Line>> {
        self.lines.read().expect("never poisoned").clone()
    }

    /// Ends the lines, as the conduits of ports are ended: receivers are told that no more follows, ...
    pub(crate) fn end_lines(&self) -> Result<()> {
        self.all_lines()
            .iter()
            .try_for_each(|line| self.end_line(line))
    }

    pub(super) fn end_line(&self, line: &Line) -> Result<()> {
        // A receiver that has left before it could pull has no link, and misses nothing.
        let there = |outlet: &&Outlet| !line.pulled || outlet.end.carrier.get().is_some();
        line.port
            .every_outlet()
            .filter(there)
            .try_for_each(|outlet| self.end_stream(outlet))
    }

    /// ... and it waits until they hold all, and until the senders have ended theirs.
    pub(crate) fn settle_lines(&self) -> Result<()> {
        for line in self.all_lines() {
            let is_over = || -> Result<Option<()>> {
                let mut over = true;
                for outlet in line.port.every_outlet() {
                    let none = line.pulled && outlet.end.carrier.get().is_none();
                    over &= none || self.is_settled(outlet)?;
                }
                // A receiver that pulls takes what it wants, and need not wait for more.
                for inlet in line.port.every_inlet().filter(|_| !line.pulled) {
                    let ended = inlet.inbox.ended() || self.process.finished(&line.peer);
                    if !ended {
                        self.reachable(&inlet.end)?;
                    }
                    over &= ended;
                    // All that rank 0 has announced was received, or this would not close.
                    if self.cycle().checked() && inlet.inbox.received() > inlet.inbox.consumed() {
                        let text = format!(
                            "field on port '{}': {} has sent a part that was never taken: receive as often as the sender sends, and \
                             have all ranks of {} send as often as its rank 0",
                            port_of_field(&inlet.end.label),
                            written(&inlet.end.peer),
                            line.peer
                        );
                        return Err(
                            self.by_end_of(Error::new(Kind::CallOrder, text), [&*line.peer])
                        );
                    }
                }
                Ok(over.then_some(()))
            };
            self.wait(None, None, None, Vec::new, is_over)?;
        }
        Ok(())
    }

    /// A peer takes no more messages.
    pub(crate) fn close_lines(&self, peer: &str) {
        for line in self.all_lines().iter().filter(|line| *line.peer == *peer) {
            line.port
                .every_outlet()
                .for_each(|outlet| outlet.window.close());
        }
    }
}
