//! An instance with all its layers, as the process and the serial instance see the layers.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::Instant;

use titin_transport::{Carrier, Doorbell};
use titin_wire::ConduitId;
use titin_wire::control::ToManager;

use super::closing::Closing;
use crate::field::InstanceFields;
use crate::port::{CarrierRoute, Port};
use crate::process::{Probed, ProcessMember, RouteMedium, forked};
use crate::ranks::RankGroup;
use crate::serial::{DEBUG, Serial, UpperLayers, WARNING, shortened};
use crate::{Error, Result};

/// A serial instance, and the layers above.
pub(super) struct Layers {
    pub(super) serial: Arc<Serial>,
    pub(super) group: Option<Arc<RankGroup>>,
    pub(super) fields: Arc<InstanceFields>,
    /// How far closing has come.
    pub(super) closing: Mutex<Closing>,
}

impl Layers {
    /// Tells the manager where the time went, right before the manager hears that the instance
    /// leaves.
    pub(super) fn tell_profile(&self) {
        let (serial, trace) = (&self.serial, &self.serial.profile.trace);
        trace.live("DEREGISTER", trace.now());
        let ends = serial.table.ports.iter().flat_map(Port::every_end);
        let mut conduits: Vec<_> = ends
            .map(|(end, receives)| serial.conduit_profile(end, receives))
            .collect();
        self.fields.add_to_profile(&mut conduits);
        serial.tell(&ToManager::Profile(serial.profile_of(conduits)));
    }

    /// Has the process forget the instance, and wakes the other threads of the instance.
    pub(super) fn leave(&self) {
        if !forked() {
            self.serial.core.process.dismiss(self);
        }
        self.serial.core.bell.ring();
    }
}

impl UpperLayers for Layers {
    fn while_waiting(&self) -> Result<()> {
        self.group
            .as_ref()
            .map_or(Ok(()), |group| group.look_below())
    }

    fn wait_reported(&self) {
        self.group
            .iter()
            .for_each(|group| group.tell_ranks_of_wait());
    }

    fn acknowledge(&self) {
        let group = self.group.iter();
        group
            .flat_map(|group| group.tree.inlets())
            .for_each(|inlet| inlet.inbox.acknowledge_now());
        self.fields.acknowledge();
    }

    fn failed(&self, error: &Error) {
        let serial = &self.serial;
        // The manager passes over what comes after the failure.
        self.report_progress();
        self.tell_profile();
        serial.tell(&ToManager::Failed {
            instance: serial.core.name.clone(),
            text: shortened(&serial.as_rank(&error.text)),
            echo: error.is_echo(),
            after: serial.ended_before(&error.text),
        });
        serial.core.process.await_below();
        self.leave();
        // Many instances on few cores learn of the failure at once: no instance should tear down
        // its program before all know.
        std::thread::yield_now();
    }
}

impl ProcessMember for Layers {
    fn name(&self) -> &str {
        &self.serial.core.name
    }

    fn bell(&self) -> &Arc<Doorbell> {
        &self.serial.core.bell
    }

    fn peers(&self) -> Vec<Arc<str>> {
        let mut peers: Vec<Arc<str>> = self.serial.table.neighbours.names().cloned().collect();
        peers.extend(self.group.iter().flat_map(|group| group.tree.peers()));
        peers
    }

    fn peers_of_rank_0(&self) -> Vec<Arc<str>> {
        let group = self.group.iter();
        group
            .flat_map(|group| group.remote_peers())
            .cloned()
            .collect()
    }

    fn peers_of_fields(&self) -> Vec<Arc<str>> {
        self.fields.peers()
    }

    fn route(
        &self,
        peer: &str,
        medium: RouteMedium,
        carrier: &Arc<dyn Carrier>,
        detour: Option<&str>,
    ) -> bool {
        let bell = &self.serial.core.bell;
        let route = CarrierRoute {
            medium,
            carrier,
            detour,
            bell,
        };
        let mut without_carrier = self.serial.route(peer, &route);
        if let Some(group) = &self.group {
            without_carrier |= group.tree.route(peer, &route);
        }
        without_carrier |= self.fields.route(peer, &route);
        self.serial.add_carrier(carrier);
        bell.ring();
        without_carrier
    }

    fn linked(&self, peer: &str, [own, other]: [IpAddr; 2]) {
        let text = format!("is connected to {peer} by tcp: {own} - {other}");
        self.serial.log(DEBUG, &text);
    }

    fn warn(&self, text: &str) {
        self.serial.log(WARNING, text);
    }

    fn peer_finished(&self, peer: &str) {
        let is_news = self.serial.peer_finished(peer);
        self.group
            .iter()
            .for_each(|group| group.tree.peer_finished(peer));
        self.fields.peer_finished(peer);
        // Most often all receiving ends have heard already, and no thread waits for the end.
        if is_news {
            self.serial.core.bell.ring();
        }
    }

    fn receives_by(&self, conduit: ConduitId) -> bool {
        let mut inlets = self.serial.inlets();
        inlets.any(|(_, inlet)| inlet.end.conduit == conduit)
    }

    fn conduit_ends(&self) -> Vec<(ConduitId, bool)> {
        let ports = self.serial.table.ports.iter().flat_map(Port::every_end);
        let group = self.group.iter().flat_map(|group| group.tree.ends());
        let own = ports
            .chain(group)
            .map(|(end, receives)| (end.conduit, receives));
        own.chain(self.fields.ends()).collect()
    }

    fn probe(&self, conduits: &[ConduitId]) -> Probed {
        let serial = &self.serial;
        serial.carriers().iter().for_each(|carrier| carrier.look());
        // A question on the way counts as a message on the way.
        let questions = |conduit| self.fields.questions(conduit);
        let (wait, counts) = serial.counts(conduits, questions);
        Probed {
            wait,
            counts,
            polls: serial.polls(),
        }
    }

    fn report_progress(&self) {
        if self.serial.leads() {
            self.serial.report_progress(self.fields.bytes_sent());
        }
    }

    fn nudge(&self, now: Instant) -> Option<Instant> {
        self.serial.nudge_pending(now)
    }
}

impl Layers {
    /// Whether some thread is in a call that sends, receives, begins a use or closes.
    pub(super) fn is_in_use(&self) -> bool {
        let serial = &self.serial;
        serial.execution.beginning.try_lock().is_none()
            || matches!(
                self.closing.try_lock(),
                Err(std::sync::TryLockError::WouldBlock)
            )
            || serial.table.ports.iter().any(|port| port.enter().is_err())
            || self.group.iter().any(|group| group.tree.is_in_use())
            || serial.is_choosing()
            || self.fields.is_in_use()
    }

    /// Whether the instance has ended.
    pub(super) fn is_over(&self) -> bool {
        self.serial.core.over.load(Ordering::Acquire)
    }
}
