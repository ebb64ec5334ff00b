//! The welcome of a program: the facts about the new instance.

use std::collections::{HashMap, HashSet};

use titin_model::{Name, Operator, SETTINGS_IN};
use titin_wire::attempts::attempt_name;
use titin_wire::control::{ConduitEnd, PortDeclaration, Welcome};

use super::Manager;
use crate::plan::{ConduitId, InstanceId, PlannedEnd, PlannedPort};

/// The ports of a new instance, as far as conduits depend on the ports.
struct JoiningPorts<'a> {
    /// The names of the vector ports.
    vectors: HashSet<&'a str>,
    /// The ports on a special timeline.
    timelines: HashMap<&'a str, &'a Name>,
}

impl Manager {
    /// The welcome of a program. `declared` are the declared ports of the program, if any.
    pub(super) fn welcome(&self, id: InstanceId, declared: Option<&[PortDeclaration]>) -> Welcome {
        let planned = &self.plan.instances[id];
        let ports = self.ports_of(id, declared);
        let joining = JoiningPorts {
            vectors: vector_ports(&ports),
            timelines: timelines(&planned.ports),
        };
        let ends = self.conduit_ends[id].iter();
        let mut wires: Vec<ConduitEnd> = ends.map(|&end| self.wire_of(end, &joining)).collect();
        // The ends for later attempts of members come last.
        for place in 0..wires.len() {
            let end = self.conduit_ends[id][place];
            let peer = self.both_ends(end)[1].instance;
            for (attempt, conduit) in self.later_attempts(id, peer, end.0) {
                wires.push(ConduitEnd {
                    conduit,
                    peer: attempt_name(self.name(peer), attempt),
                    ..wires[place].clone()
                });
            }
        }
        let options = &self.plan.options;
        Welcome {
            instance: planned.name.clone(),
            // The session notes the time when it sends the answer: the state machine has no clock.
            time: None,
            wires,
            settings: planned.settings.clone(),
            scale: planned.scale.clone(),
            filters: self.plan.filters.clone(),
            heartbeat: self.heartbeat_interval().as_secs_f64(),
            trace: options.trace,
            counts_steps: self.plan.counts_steps(),
            end: planned.end,
            time_unit: options.time_unit.clone(),
            components: self.plan.components.clone(),
            between_ranks: None,
            ports,
        }
    }

    /// The ports of an instance: the ports that its program declares, or else the ports of the
    /// description. The port for settings is added if a conduit leads to the port.
    fn ports_of(
        &self,
        id: InstanceId,
        declared: Option<&[PortDeclaration]>,
    ) -> Vec<PortDeclaration> {
        let mut ports = declared.map_or_else(|| self.described_ports(id), <[_]>::to_vec);
        let mut ends = self.conduit_ends[id].iter();
        let takes_settings = ends.any(|&end| self.end_of(end).port == SETTINGS_IN);
        if takes_settings && !ports.iter().any(|port| port.name == SETTINGS_IN) {
            ports.push(PortDeclaration {
                name: SETTINGS_IN.into(),
                operator: Operator::FInit.key().into(),
                vector: false,
            });
        }
        ports
    }

    /// The ports of the description, for a program that declares no ports. A port has slots if the
    /// port has several peers, or a joined peer declares slots at its end.
    pub(super) fn described_ports(&self, id: InstanceId) -> Vec<PortDeclaration> {
        let is_vector = |end: &PlannedEnd| {
            let peer = self.members[end.instance].joined();
            peer.is_some_and(|peer| peer.vectors.contains(&*end.port))
        };
        let vector_port = |&end: &(ConduitId, bool)| {
            let [here, there] = self.both_ends(end);
            let has_slots = here.slot.is_some() || there.slot.is_none() && is_vector(there);
            has_slots.then_some(here.port.as_str())
        };
        let ends = self.conduit_ends[id].iter();
        let vectors: HashSet<&str> = ends.filter_map(vector_port).collect();
        let declaration = |port: &PlannedPort| PortDeclaration {
            name: port.name.to_string(),
            operator: port.operator.key().into(),
            vector: vectors.contains(port.name.as_str()),
        };
        let ports = self.plan.instances[id].ports.iter();
        ports.map(declaration).collect()
    }

    /// A conduit, from the program's end.
    fn wire_of(&self, end: (ConduitId, bool), ports: &JoiningPorts<'_>) -> ConduitEnd {
        let [here, there] = self.both_ends(end);
        let (conduit, sends) = end;
        let planned = &self.plan.conduits[conduit.index()];
        let port = here.port.as_str();
        let timeline = ports.timelines.get(port);
        ConduitEnd {
            conduit: self.conduit_number(here.instance, conduit),
            port: here.port.to_string(),
            slot: here.slot,
            sends,
            resizable: ports.vectors.contains(port) && here.slot.is_none(),
            timeline: timeline.map(ToString::to_string),
            peer: self.name(there.instance).to_owned(),
            peer_port: there.port.to_string(),
            peer_slot: there.slot,
            filters: planned.filters.clone(),
            buffer_messages: planned.buffer_messages,
            buffer_bytes: planned.buffer_bytes,
            buffer_grows: planned.buffer_grows,
            medium: planned.medium.map(|medium| medium.key().to_owned()),
            pattern: planned.pattern.clone(),
            link: planned.link.as_deref().copied().unwrap_or_default(),
        }
    }
}

/// The ports on a special timeline.
fn timelines(ports: &[PlannedPort]) -> HashMap<&str, &Name> {
    let ports = ports.iter();
    let timelines = ports.filter_map(|port| Some((port.name.as_str(), port.timeline.as_ref()?)));
    timelines.collect()
}

/// The names of the vector ports.
pub(super) fn vector_ports(ports: &[PortDeclaration]) -> HashSet<&str> {
    let vectors = ports.iter().filter(|port| port.vector);
    vectors.map(|port| port.name.as_str()).collect()
}
