//! The flat model to run: nested models taken apart, every component with its program, and who is joined to whom.
//!
//! Conduits of the description join components; one of them (a [`Bundle`]) stands for one conduit per pair of instances. Those
//! are never listed: their ids and ends are computed from the multiplicities, so a network of any size costs what its
//! description costs.

use std::collections::HashMap;
use std::sync::Arc;

use crate::description::{Checkpoints, Need, Port, Ports, Program};
use crate::extras::{Buffer, Extras, Medium};
use crate::filter::Filter;
use crate::names::{BundleId, ComponentId, ConduitId, InstanceId, InstanceName, Name};
use crate::operator::{Operator, Timeline};
use crate::problem::Place;
use crate::settings::Settings;

/// A model as it is run. Made by [`Description::network`](crate::Description::network).
#[derive(Clone, Debug)]
pub struct Network {
    /// The name of the model.
    pub model: Name,
    /// The components that have an implementation, nested ones under their dotted path.
    pub components: Vec<NetworkComponent>,
    /// The conduits between them.
    pub bundles: Vec<Bundle>,
    /// The settings.
    pub settings: Settings,
    /// When the state is to be saved.
    pub checkpoints: Checkpoints,
    /// Snapshots to resume from, by instance or component (without the model's name).
    pub resume: Vec<(Name, std::path::PathBuf)>,
    /// What stands under `titin:`.
    pub extras: Extras,
    /// Timelines that have the same points, as declared or inferred.
    pub matching_timelines: Vec<Vec<Timeline>>,
    pub(crate) by_path: HashMap<Name, ComponentId>,
    /// The bundles of each component: those that it sends on, then those that it receives on.
    pub(crate) attached: Vec<Attached>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Attached {
    pub sending: Vec<BundleId>,
    pub receiving: Vec<BundleId>,
}

/// A component as it is run.
#[derive(Clone, Debug)]
pub struct NetworkComponent {
    /// Its number.
    pub id: ComponentId,
    /// Its dotted path, without the model's name.
    pub path: Name,
    /// For people.
    pub description: String,
    /// Its ports.
    pub ports: Ports,
    /// The name of what does the work; `None` if the description leaves it to the one who runs it.
    pub implementation: Option<Name>,
    /// What is started; `None` if it runs inside the calling program or is started by the user.
    pub program: Option<Arc<Program>>,
    /// The number of instances in each dimension; empty for one.
    pub multiplicity: Vec<u32>,
    /// The timeline of its steps.
    pub timeline: Timeline,
    /// What each instance needs.
    pub need: Need,
    pub(crate) first_instance: u32,
    pub(crate) at: Place,
}

impl NetworkComponent {
    /// The number of its instances.
    pub fn instances(&self) -> u32 {
        volume(&self.multiplicity)
    }
}

/// A conduit of the description: one conduit per pair of instances.
#[derive(Clone, Debug)]
pub struct Bundle {
    /// Its number.
    pub id: BundleId,
    /// Where messages come from.
    pub sender: ComponentId,
    /// The port there.
    pub sender_port: Name,
    /// Where they go.
    pub receiver: ComponentId,
    /// The port there.
    pub receiver_port: Name,
    /// What happens to them on the way, in order.
    pub filters: Vec<Filter>,
    /// How much it may hold; `None` leaves it to the runtime.
    pub buffer: Buffer,
    /// The medium that it is pinned to.
    pub medium: Option<Medium>,
    pub(crate) first_conduit: u32,
    /// Whether it leads through the port of a model.
    pub(crate) through_models: bool,
    pub(crate) at: Place,
}

/// Which way messages go through a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Out of the instance.
    Send,
    /// Into it.
    Receive,
}

/// One conduit, seen from one of its instances.
#[derive(Clone, Debug, PartialEq)]
pub struct Wire {
    /// Unique in the run, and the same at both ends.
    pub conduit: ConduitId,
    /// The port on this side.
    pub port: Name,
    /// Its operator.
    pub operator: Operator,
    /// The slot on this side, if the peer has more dimensions; `None` for a scalar port, and for a vector port whose slots do
    /// not follow from multiplicities: that one can be resized, and its slots pair with the peer's by number.
    pub slot: Option<u32>,
    /// Which way messages go.
    pub direction: Direction,
    /// The other instance.
    pub peer: InstanceName,
    /// The port there.
    pub peer_port: Name,
    /// The slot there, as for `slot`.
    pub peer_slot: Option<u32>,
    /// What happens to messages on the way, in order.
    pub filters: Vec<Filter>,
    /// How much the conduit may hold; `None` leaves it to the runtime.
    pub buffer: Buffer,
    /// The medium that the conduit is pinned to.
    pub medium: Option<Medium>,
}

/// All wires of an instance.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wiring {
    /// The wires: those that send, then those that receive, each in the order of the description.
    pub wires: Vec<Wire>,
    /// Declared ports without a wire.
    pub unconnected: Vec<Port>,
}

/// A conduit, seen from above.
#[derive(Clone, Debug, PartialEq)]
pub struct ConduitEnds {
    /// The conduit of the description that it belongs to.
    pub bundle: BundleId,
    /// Where messages come from.
    pub sender: InstanceName,
    /// The slot there.
    pub sender_slot: Option<u32>,
    /// Where they go.
    pub receiver: InstanceName,
    /// The slot there.
    pub receiver_slot: Option<u32>,
}

impl Network {
    /// The component with this dotted path.
    pub fn component(&self, path: &str) -> Option<&NetworkComponent> {
        self.by_path.get(path).map(|id| &self.components[id.index()])
    }

    /// The component that an instance belongs to; `None` if there is no such instance.
    pub fn component_of(&self, instance: &InstanceName) -> Option<&NetworkComponent> {
        let component = self.component(instance.component())?;
        let (indices, sizes) = (instance.indices(), &component.multiplicity);
        let fits =
            indices.len() == sizes.len() && indices.iter().zip(sizes).all(|(index, size)| index < size);
        fits.then_some(component)
    }

    /// The number of instances.
    pub fn instance_count(&self) -> u32 {
        self.components.last().map_or(0, |last| last.first_instance + last.instances())
    }

    /// The number of conduits between instances.
    pub fn conduit_count(&self) -> u32 {
        self.bundles.last().map_or(0, |last| last.first_conduit + self.pairs(last))
    }

    /// All instances, in the order of their ids.
    pub fn instances(&self) -> impl Iterator<Item = InstanceName> + '_ {
        self.components.iter().flat_map(|component| {
            (0..component.instances())
                .map(|i| InstanceName::new(component.path.clone(), unravel(i, &component.multiplicity)))
        })
    }

    /// The number of an instance; `None` if there is no such instance.
    pub fn instance_id(&self, instance: &InstanceName) -> Option<InstanceId> {
        let component = self.component_of(instance)?;
        Some(InstanceId(component.first_instance + ravel(instance.indices(), &component.multiplicity)))
    }

    /// The instance with this number.
    pub fn instance(&self, id: InstanceId) -> Option<InstanceName> {
        let after = self.components.partition_point(|component| component.first_instance <= id.0);
        let component = &self.components[after.checked_sub(1)?];
        let i = id.0 - component.first_instance;
        (i < component.instances())
            .then(|| InstanceName::new(component.path.clone(), unravel(i, &component.multiplicity)))
    }

    /// The ends of a conduit.
    pub fn conduit(&self, id: ConduitId) -> Option<ConduitEnds> {
        let after = self.bundles.partition_point(|bundle| bundle.first_conduit <= id.0);
        let bundle = &self.bundles[after.checked_sub(1)?];
        let pair = id.0 - bundle.first_conduit;
        if pair >= self.pairs(bundle) {
            return None;
        }
        let (sender, receiver) = self.ends(bundle);
        let longer = if sender.multiplicity.len() > receiver.multiplicity.len() { sender } else { receiver };
        let indices = unravel(pair, &longer.multiplicity);
        let end = |component: &NetworkComponent, peer: &NetworkComponent| {
            let own = component.multiplicity.len();
            let slot =
                (peer.multiplicity.len() > own).then(|| ravel(&indices[own..], &peer.multiplicity[own..]));
            (InstanceName::new(component.path.clone(), &indices[..own]), slot)
        };
        let ((from, sender_slot), (to, receiver_slot)) = (end(sender, receiver), end(receiver, sender));
        Some(ConduitEnds { bundle: bundle.id, sender: from, sender_slot, receiver: to, receiver_slot })
    }

    /// The wires of an instance, and its ports without one; `None` if there is no such instance.
    pub fn wiring(&self, instance: &InstanceName) -> Option<Wiring> {
        let component = self.component_of(instance)?;
        let attached = &self.attached[component.id.index()];
        let mut wiring = Wiring::default();
        for id in &attached.sending {
            let bundle = &self.bundles[id.index()];
            self.add_wires(bundle, component, instance.indices(), Direction::Send, &mut wiring.wires);
        }
        for id in &attached.receiving {
            let bundle = &self.bundles[id.index()];
            self.add_wires(bundle, component, instance.indices(), Direction::Receive, &mut wiring.wires);
        }
        wiring.unconnected = self.unconnected(component).cloned().collect();
        Some(wiring)
    }

    /// The declared ports of a component that no conduit leads to or from.
    pub fn unconnected<'a>(&'a self, component: &'a NetworkComponent) -> impl Iterator<Item = &'a Port> + 'a {
        let attached = &self.attached[component.id.index()];
        let sending = attached.sending.iter().map(|id| &self.bundles[id.index()].sender_port);
        let receiving = attached.receiving.iter().map(|id| &self.bundles[id.index()].receiver_port);
        let connected: std::collections::HashSet<&Name> = sending.chain(receiving).collect();
        component.ports.values().filter(move |port| !connected.contains(&port.name))
    }

    /// The components at both ends.
    pub fn ends(&self, bundle: &Bundle) -> (&NetworkComponent, &NetworkComponent) {
        (&self.components[bundle.sender.index()], &self.components[bundle.receiver.index()])
    }

    /// The number of conduits of a bundle.
    fn pairs(&self, bundle: &Bundle) -> u32 {
        let (sender, receiver) = self.ends(bundle);
        sender.instances().max(receiver.instances())
    }

    fn add_wires(
        &self,
        bundle: &Bundle,
        own: &NetworkComponent,
        indices: &[u32],
        direction: Direction,
        wires: &mut Vec<Wire>,
    ) {
        let (sender, receiver) = self.ends(bundle);
        let (peer, port, peer_port) = match direction {
            Direction::Send => (receiver, &bundle.sender_port, &bundle.receiver_port),
            Direction::Receive => (sender, &bundle.receiver_port, &bundle.sender_port),
        };
        let (depth, peer_depth) = (own.multiplicity.len(), peer.multiplicity.len());
        let wire = |pair: u32, slot, peer_indices: Vec<u32>, peer_slot| Wire {
            conduit: ConduitId(bundle.first_conduit + pair),
            port: port.clone(),
            operator: own.ports.get(port).map_or(Operator::FInit, |port| port.operator),
            slot,
            direction,
            peer: InstanceName::new(peer.path.clone(), peer_indices),
            peer_port: peer_port.clone(),
            peer_slot,
            filters: bundle.filters.clone(),
            buffer: bundle.buffer,
            medium: bundle.medium,
        };
        let place = ravel(indices, &own.multiplicity);
        if depth >= peer_depth {
            let peer_slot =
                (depth > peer_depth).then(|| ravel(&indices[peer_depth..], &own.multiplicity[peer_depth..]));
            wires.push(wire(place, None, indices[..peer_depth].to_vec(), peer_slot));
            return;
        }
        let extra = &peer.multiplicity[depth..];
        let slots = volume(extra);
        for slot in 0..slots {
            let mut peer_indices = indices.to_vec();
            peer_indices.extend(unravel(slot, extra));
            wires.push(wire(place * slots + slot, Some(slot), peer_indices, None));
        }
    }
}

/// The number of cells of a block of these sizes. Flattening has made sure that it fits.
fn volume(sizes: &[u32]) -> u32 {
    sizes.iter().product()
}

/// The place of a cell in a block, the last index running fastest.
fn ravel(indices: &[u32], sizes: &[u32]) -> u32 {
    indices.iter().zip(sizes).fold(0, |place, (index, size)| place * size + index)
}

/// The cell at a place; the inverse of [`ravel`].
fn unravel(mut place: u32, sizes: &[u32]) -> Vec<u32> {
    let mut indices = vec![0; sizes.len()];
    for (index, size) in indices.iter_mut().zip(sizes).rev() {
        *index = place % size;
        place /= size;
    }
    indices
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use super::*;
    use crate::{LoadOptions, Start, load_texts};

    fn network(components: &str, conduits: &str) -> Network {
        let text = format!(
            "ymmsl_version: v0.2\nmodels:\n  m:\n    components:\n{components}    conduits: {{{conduits}}}\n"
        );
        let options = LoadOptions { start: Start::ByHand, ..LoadOptions::default() };
        load_texts(&[("t", &text)], &options).unwrap_or_else(|e| panic!("{e}")).network(None).unwrap()
    }

    fn component(name: &str, multiplicity: &str) -> String {
        format!(
            "      {name}: {{description: d, ports: {{f_init: in, o_f: out}}, implementation: p, multiplicity: {multiplicity}}}\n"
        )
    }

    fn wire(network: &Network, instance: &str, i: usize) -> Wire {
        network.wiring(&instance.parse().unwrap()).unwrap().wires.swap_remove(i)
    }

    #[test]
    fn equal_multiplicities_pair_one_to_one() {
        let network = network(&(component("a", "3") + &component("b", "3")), "a.out: b.in");
        let wire = wire(&network, "a[2]", 0);
        assert_eq!((wire.peer.to_string().as_str(), wire.slot, wire.peer_slot), ("b[2]", None, None));
        assert_eq!(network.conduit_count(), 3);
    }

    #[test]
    fn further_dimensions_of_the_peer_are_slots() {
        let network = network(&(component("a", "[2]") + &component("b", "[2, 3]")), "a.out: b.in");
        let wiring = network.wiring(&"a[1]".parse().unwrap()).unwrap();
        let peers: Vec<_> = wiring.wires.iter().map(|w| (w.peer.to_string(), w.slot)).collect();
        assert_eq!(
            peers,
            [("b[1][0]".into(), Some(0)), ("b[1][1]".into(), Some(1)), ("b[1][2]".into(), Some(2))]
        );
        let wire = wire(&network, "b[1][2]", 0);
        assert_eq!((wire.peer.to_string().as_str(), wire.slot, wire.peer_slot), ("a[1]", None, Some(2)));
        assert_eq!(wire.conduit, wiring.wires[2].conduit);
    }

    #[test]
    fn ports_without_a_conduit_are_listed() {
        let network = network(&(component("a", "1") + &component("b", "1")), "a.out: b.in");
        let unconnected = network.wiring(&"a[0]".parse().unwrap()).unwrap().unconnected;
        assert_eq!(unconnected.iter().map(|p| p.name.as_str()).collect::<Vec<_>>(), ["in"]);
        assert!(network.wiring(&"a[1]".parse().unwrap()).is_none());
        assert!(network.wiring(&"a".parse().unwrap()).is_none());
    }

    /// Both ends of every conduit agree, and every conduit has one id.
    fn check_whole(network: &Network) {
        let mut ends: HashMap<ConduitId, Vec<(InstanceName, Option<u32>, Direction)>> = HashMap::new();
        for (i, instance) in network.instances().enumerate() {
            assert_eq!(network.instance_id(&instance), Some(InstanceId(i as u32)));
            assert_eq!(network.instance(InstanceId(i as u32)), Some(instance.clone()));
            for wire in network.wiring(&instance).unwrap().wires {
                ends.entry(wire.conduit).or_default().push((instance.clone(), wire.slot, wire.direction));
                let other = network.wiring(&wire.peer).unwrap().wires;
                let back = other
                    .iter()
                    .find(|w| w.conduit == wire.conduit && w.direction != wire.direction)
                    .unwrap();
                assert_eq!((&back.peer, back.slot, back.peer_slot), (&instance, wire.peer_slot, wire.slot));
            }
        }
        assert_eq!(network.instance(InstanceId(network.instance_count())), None);
        let ids: HashSet<u32> = ends.keys().map(|id| id.0).collect();
        assert_eq!(ids, (0..network.conduit_count()).collect());
        for (id, both) in ends {
            let above = network.conduit(id).unwrap();
            assert_eq!(both.len(), 2);
            for (instance, slot, direction) in both {
                let (name, its_slot) = match direction {
                    Direction::Send => (&above.sender, above.sender_slot),
                    Direction::Receive => (&above.receiver, above.receiver_slot),
                };
                assert_eq!((&instance, slot), (name, its_slot));
            }
        }
        assert_eq!(network.conduit(ConduitId(network.conduit_count())), None);
    }

    proptest::proptest! {
        #[test]
        fn every_conduit_has_two_ends_that_agree(
            sizes in proptest::collection::vec(1u32..4, 0..4),
            depths in proptest::collection::vec(0usize..4, 2..6),
        ) {
            let components: String = depths
                .iter()
                .enumerate()
                .map(|(i, depth)| component(&format!("c{i}"), &format!("{:?}", &sizes[..(*depth).min(sizes.len())])))
                .collect();
            let conduits: Vec<_> = (1..depths.len()).map(|i| format!("c{}.out: c{i}.in", i - 1)).collect();
            check_whole(&network(&components, &conduits.join(", ")));
        }
    }
}
