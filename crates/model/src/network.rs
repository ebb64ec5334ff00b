//! The flat model to run: nested models flattened, every component with its program, and the
//! conduits between them.
//! A conduit of the description joins two components. A [`Bundle`] stands for the conduits of all
//! pairs of their instances. These conduits are never listed: ids and ends are computed from the
//! multiplicities, so the cost of a network depends on the size of the description alone.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::description::{Port, Ports, Program, ResourceRequest};
use crate::filter::{Filter, FilterKind, FilterSide, before_wire};
use crate::names::{BundleId, ComponentId, ConduitId, InstanceId, InstanceName, Name};
use crate::operator::Timeline;
use crate::options::StartPolicy;
use crate::pattern::Pattern;
use crate::problem::TextPosition;
use crate::settings::Settings;
use crate::titin_section::{BufferLimits, Extras, LinkTuning, Medium, UserFunction};

/// A model in the form that is run. Made by [`Description::network`](crate::Description::network).
#[derive(Clone, Debug)]
pub struct Network {
    /// The name of the model.
    pub model: Name,
    /// The components with an implementation; nested components under the dotted path.
    pub components: Vec<NetworkComponent>,
    /// The conduits between them.
    pub bundles: Vec<Bundle>,
    /// The settings.
    pub settings: Settings,
    /// The `titin:` section.
    pub extras: Extras,
    /// Timelines that have the same points, as declared or inferred.
    pub matching_timelines: Vec<Vec<Timeline>>,
    pub(crate) by_path: HashMap<Name, ComponentId>,
    /// The bundles of each component: bundles that the component sends on, then bundles that it
    /// receives on.
    pub(crate) attached: Vec<AttachedBundles>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct AttachedBundles {
    pub sending: Vec<BundleId>,
    pub receiving: Vec<BundleId>,
}

/// A component in the form that is run.
#[derive(Clone, Debug)]
pub struct NetworkComponent {
    /// The number of the component.
    pub id: ComponentId,
    /// The dotted path, without the model's name.
    pub path: Name,
    /// For people.
    pub description: String,
    /// The ports.
    pub ports: Arc<Ports>,
    /// The name of the implementation; `None` if the description leaves the choice to the user.
    pub implementation: Option<Name>,
    /// The program to start; `None` if the component runs inside the calling program or the user
    /// starts it.
    pub program: Option<Arc<Program>>,
    /// The number of instances in each dimension; empty for one.
    pub multiplicity: Vec<u32>,
    /// The timeline of the component's steps.
    pub timeline: Timeline,
    /// The resources of each instance.
    pub need: ResourceRequest,
    pub(crate) calls: Calls,
    pub(crate) first_instance: u32,
    /// The place in the files.
    pub at: TextPosition,
}

impl NetworkComponent {
    /// The number of instances.
    pub fn instances(&self) -> u32 {
        volume(&self.multiplicity)
    }

    /// Whether there is an instance with these indices.
    fn has(&self, indices: &[u32]) -> bool {
        let sizes = &self.multiplicity;
        indices.len() == sizes.len() && indices.iter().zip(sizes).all(|(index, size)| index < size)
    }

    /// Whether no instance of the component is started, so that the component needs no program.
    pub(crate) fn is_left_out_by(&self, start: &StartPolicy) -> bool {
        let StartPolicy::Except { hosted, by_hand } = start else {
            return *start == StartPolicy::ByHand;
        };
        let names = || hosted.iter().chain(by_hand);
        let implementation = self.implementation.as_ref();
        if names().any(|name| {
            self.path == name.as_str() || implementation.is_some_and(|i| *i == name.as_str())
        }) {
            return true;
        }
        let own = names().filter_map(|name| name.parse::<InstanceName>().ok());
        let own: HashSet<InstanceName> =
            own.filter(|name| *name.component() == self.path).collect();
        let exists = own.iter().filter(|name| self.has(name.indices()));
        exists.count() == self.instances() as usize
    }
}

/// The user filters that a component's program can call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Calls {
    /// All filters, or nothing to the contrary is known.
    All,
    /// Filters in shared libraries: the process has no Python.
    Libraries,
    /// No filters: the component is a built-in.
    Nothing,
}

/// A conduit of the description: one conduit per pair of instances.
#[derive(Clone, Debug)]
pub struct Bundle {
    /// The number of the bundle.
    pub id: BundleId,
    /// The component that messages come from.
    pub sender: ComponentId,
    /// The sending port.
    pub sender_port: Name,
    /// The component that messages go to.
    pub receiver: ComponentId,
    /// The receiving port.
    pub receiver_port: Name,
    /// The filters on the way, in order.
    pub filters: Vec<Filter>,
    /// The limits of the conduit's buffer; `None` leaves them to the runtime.
    pub buffer: BufferLimits,
    /// The medium that the conduit is pinned to.
    pub medium: Option<Medium>,
    /// The coupling pattern of a field on the conduit, if the description has one.
    pub pattern: Option<Box<Pattern>>,
    /// The settings of the link by tcp, if the description has some.
    pub link: Option<Box<LinkTuning>>,
    pub(crate) first_conduit: u32,
    /// Whether the conduit leads through the port of a model.
    pub(crate) through_models: bool,
    /// The place in the files.
    pub at: TextPosition,
}

/// The two ends of a conduit between instances.
#[derive(Clone, Debug, PartialEq)]
pub struct ConduitEnds {
    /// The bundle of the conduit.
    pub bundle: BundleId,
    /// The instance that messages come from.
    pub sender: InstanceName,
    /// The slot of the sending port, if the receiver has more dimensions. `None` for a scalar port,
    /// and for a vector port whose slots do not follow from multiplicities: such a port can be
    /// resized, and slots pair with the peer's slots by number.
    pub sender_slot: Option<u32>,
    /// The instance that messages go to.
    pub receiver: InstanceName,
    /// The slot of the receiving port, as for `sender_slot`.
    pub receiver_slot: Option<u32>,
}

impl Bundle {
    /// The component at one end.
    fn end(&self, side: FilterSide) -> ComponentId {
        match side {
            FilterSide::Sender => self.sender,
            FilterSide::Receiver => self.receiver,
        }
    }
}

impl Network {
    /// The component with this dotted path.
    pub fn component(&self, path: &str) -> Option<&NetworkComponent> {
        self.by_path
            .get(path)
            .map(|id| &self.components[id.index()])
    }

    /// The component that an instance belongs to; `None` if there is no such instance.
    pub fn component_of(&self, instance: &InstanceName) -> Option<&NetworkComponent> {
        let component = self.component(instance.component())?;
        component.has(instance.indices()).then_some(component)
    }

    /// The number of instances.
    pub fn instance_count(&self) -> u32 {
        self.components
            .last()
            .map_or(0, |last| last.first_instance + last.instances())
    }

    /// The number of conduits between instances.
    pub fn conduit_count(&self) -> u32 {
        self.bundles
            .last()
            .map_or(0, |last| last.first_conduit + self.pairs(last))
    }

    /// All instances, in the order of their ids.
    pub fn instances(&self) -> impl Iterator<Item = InstanceName> + '_ {
        self.components.iter().flat_map(|component| {
            (0..component.instances()).map(|i| {
                InstanceName::new(component.path.clone(), unravel(i, &component.multiplicity))
            })
        })
    }

    /// The number of an instance; `None` if there is no such instance.
    pub fn instance_id(&self, instance: &InstanceName) -> Option<InstanceId> {
        let component = self.component_of(instance)?;
        Some(InstanceId(
            component.first_instance + ravel(instance.indices(), &component.multiplicity),
        ))
    }

    /// The ends of a conduit.
    pub fn conduit(&self, id: ConduitId) -> Option<ConduitEnds> {
        let after = self
            .bundles
            .partition_point(|bundle| bundle.first_conduit <= id.0);
        let bundle = &self.bundles[after.checked_sub(1)?];
        let pair = id.0 - bundle.first_conduit;
        if pair >= self.pairs(bundle) {
            return None;
        }
        let (sender, receiver) = self.ends(bundle);
        let longer = if sender.multiplicity.len() > receiver.multiplicity.len() {
            sender
        } else {
            receiver
        };
        let indices = unravel(pair, &longer.multiplicity);
        let end = |component: &NetworkComponent, peer: &NetworkComponent| {
            let own = component.multiplicity.len();
            let slot = (peer.multiplicity.len() > own)
                .then(|| ravel(&indices[own..], &peer.multiplicity[own..]));
            (
                InstanceName::new(component.path.clone(), &indices[..own]),
                slot,
            )
        };
        let ((from, sender_slot), (to, receiver_slot)) =
            (end(sender, receiver), end(receiver, sender));
        Some(ConduitEnds {
            bundle: bundle.id,
            sender: from,
            sender_slot,
            receiver: to,
            receiver_slot,
        })
    }

    /// The declared ports of a component without a conduit.
    pub fn unconnected<'a>(
        &'a self,
        component: &'a NetworkComponent,
    ) -> impl Iterator<Item = &'a Port> + 'a {
        let attached = &self.attached[component.id.index()];
        let sending = attached
            .sending
            .iter()
            .map(|id| &self.bundles[id.index()].sender_port);
        let receiving = attached
            .receiving
            .iter()
            .map(|id| &self.bundles[id.index()].receiver_port);
        let connected: HashSet<&Name> = sending.chain(receiving).collect();
        component
            .ports
            .values()
            .filter(move |port| !connected.contains(&port.name))
    }

    /// The components at both ends.
    pub fn ends(&self, bundle: &Bundle) -> (&NetworkComponent, &NetworkComponent) {
        (
            &self.components[bundle.sender.index()],
            &self.components[bundle.receiver.index()],
        )
    }

    /// Notes that the programs of these components have no Python, so that Python filters run
    /// elsewhere.
    pub fn lacks_python(&mut self, components: &[ComponentId]) {
        for id in components {
            let calls = &mut self.components[id.index()].calls;
            *calls = if *calls == Calls::All {
                Calls::Libraries
            } else {
                *calls
            };
        }
    }

    /// Whether a component's program can call a filter; every program can call titin's filters.
    pub fn can_call(&self, component: ComponentId, filter: &Filter) -> bool {
        match self.components[component.index()].calls {
            Calls::All => true,
            Calls::Libraries => self.in_python(filter).is_none(),
            Calls::Nothing => !matches!(filter.kind, FilterKind::User(_)),
        }
    }

    /// The name of a filter, if it is a user filter in Python.
    pub fn in_python<'f>(&self, filter: &'f Filter) -> Option<&'f Name> {
        let FilterKind::User(name) = &filter.kind else {
            return None;
        };
        let own = self.extras.filters.get(name)?;
        matches!(own.call, UserFunction::Python { .. }).then_some(name)
    }

    /// The filters of a bundle, each with the side that it is pinned to. The pin of the conduit
    /// goes first, then the pin under `titin: filters`. Without a pin, a filter that only one end
    /// can call is pinned to that end.
    pub fn filters(&self, bundle: &Bundle) -> Vec<Filter> {
        let mut filters = self.pinned(bundle);
        for at in 0..filters.len() {
            let filter = &filters[at];
            let side = sides(&filters)[at];
            if filter.side.is_some() || self.can_call(bundle.end(side), filter) {
                continue;
            }
            let mut moved = filters.clone();
            match side {
                FilterSide::Receiver => moved[at].side = Some(FilterSide::Sender),
                // Filters behind this filter come after it, so they run at the receiver too.
                FilterSide::Sender => moved[at..]
                    .iter_mut()
                    .filter(|filter| filter.side.is_none() && filter.kind.takes_sides())
                    .for_each(|filter| filter.side = Some(FilterSide::Receiver)),
            }
            let fits = moved.iter().zip(sides(&moved)).all(|(filter, side)| {
                filter.side.is_none_or(|pinned| pinned == side)
                    && self.can_call(bundle.end(side), filter)
            });
            if fits {
                filters = moved;
            }
        }
        filters
    }

    /// The filters of a bundle, with the pins of the description.
    fn pinned(&self, bundle: &Bundle) -> Vec<Filter> {
        let mut filters = bundle.filters.clone();
        for filter in filters.iter_mut().filter(|filter| filter.side.is_none()) {
            if let FilterKind::User(name) = &filter.kind {
                filter.side = self
                    .extras
                    .filters
                    .get(name.as_str())
                    .and_then(|own| own.side);
            }
        }
        filters
    }

    /// The end at which each filter of a bundle runs, in order. A filter pinned to the receiver
    /// still runs at the sender if a later filter does; the checks refuse that.
    pub fn filter_sides(&self, bundle: &Bundle) -> Vec<FilterSide> {
        sides(&self.filters(bundle))
    }

    /// The number of conduits of a bundle.
    fn pairs(&self, bundle: &Bundle) -> u32 {
        let (sender, receiver) = self.ends(bundle);
        sender.instances().max(receiver.instances())
    }
}

/// The end at which each of these filters runs.
fn sides(filters: &[Filter]) -> Vec<FilterSide> {
    let early = before_wire(filters);
    (0..filters.len())
        .map(|at| {
            if at < early {
                FilterSide::Sender
            } else {
                FilterSide::Receiver
            }
        })
        .collect()
}

/// The number of cells of a block of these sizes. Flattening has checked that the number fits.
fn volume(sizes: &[u32]) -> u32 {
    sizes.iter().product()
}

/// The number of a cell in a block, the last index running fastest.
fn ravel(indices: &[u32], sizes: &[u32]) -> u32 {
    indices
        .iter()
        .zip(sizes)
        .fold(0, |place, (index, size)| place * size + index)
}

/// The cell with a number; the inverse of [`ravel`].
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
    use crate::{LoadOptions, StartPolicy, load_texts};

    fn network(components: &str, conduits: &str) -> Network {
        let text = format!(
            "ymmsl_version: v0.2\nmodels:\n  m:\n    components:\n{components}    conduits: {{{conduits}}}\n"
        );
        let options = LoadOptions {
            start: StartPolicy::ByHand,
            ..LoadOptions::default()
        };
        load_texts(&[("t", &text)], &options)
            .unwrap_or_else(|e| panic!("{e}"))
            .network(None)
            .unwrap()
    }

    fn component(name: &str, multiplicity: &str) -> String {
        format!(
            "      {name}: {{description: d, ports: {{f_init: in, o_f: out}}, implementation: p, multiplicity: {multiplicity}}}\n"
        )
    }

    /// Each conduit as `sender[slot] receiver[slot]`.
    fn shown(network: &Network) -> Vec<String> {
        let slot = |slot: Option<u32>| slot.map(|slot| format!(" slot {slot}")).unwrap_or_default();
        let show = |id| {
            let ends = network.conduit(ConduitId(id)).unwrap();
            format!(
                "{}{} -> {}{}",
                ends.sender,
                slot(ends.sender_slot),
                ends.receiver,
                slot(ends.receiver_slot)
            )
        };
        (0..network.conduit_count()).map(show).collect()
    }

    #[test]
    fn equal_multiplicities_pair_one_to_one() {
        let network = network(&(component("a", "3") + &component("b", "3")), "a.out: b.in");
        assert_eq!(
            shown(&network),
            ["a[0] -> b[0]", "a[1] -> b[1]", "a[2] -> b[2]"]
        );
    }

    #[test]
    fn further_dimensions_of_the_peer_are_slots() {
        let both = component("a", "[2]") + &component("b", "[2, 2]");
        let there = network(&both, "a.out: b.in");
        let pairs = [
            "a[0] slot 0 -> b[0][0]",
            "a[0] slot 1 -> b[0][1]",
            "a[1] slot 0 -> b[1][0]",
            "a[1] slot 1 -> b[1][1]",
        ];
        assert_eq!(shown(&there), pairs);
        let back = network(&both, "b.out: a.in");
        assert_eq!(shown(&back)[3], "b[1][1] -> a[1] slot 1");
    }

    #[test]
    fn ports_without_a_conduit_are_listed() {
        let network = network(&(component("a", "1") + &component("b", "1")), "a.out: b.in");
        let unconnected = network.unconnected(network.component("a").unwrap());
        assert_eq!(
            unconnected.map(|p| p.name.as_str()).collect::<Vec<_>>(),
            ["in"]
        );
        assert!(network.instance_id(&"a[1]".parse().unwrap()).is_none());
        assert!(network.instance_id(&"a".parse().unwrap()).is_none());
    }

    /// The ends of every conduit are instances that agree in the dimensions that both have, and
    /// each slot of a port has one conduit.
    fn check_whole(network: &Network) {
        for (i, instance) in network.instances().enumerate() {
            assert_eq!(network.instance_id(&instance), Some(InstanceId(i as u32)));
        }
        let mut slots: HashMap<(BundleId, InstanceName, bool), Vec<Option<u32>>> = HashMap::new();
        for id in 0..network.conduit_count() {
            let ends = network.conduit(ConduitId(id)).unwrap();
            assert!(
                network.instance_id(&ends.sender).is_some()
                    && network.instance_id(&ends.receiver).is_some()
            );
            let mut pairs = ends.sender.indices().iter().zip(ends.receiver.indices());
            assert!(pairs.all(|(from, to)| from == to), "{ends:?}");
            slots
                .entry((ends.bundle, ends.sender, true))
                .or_default()
                .push(ends.sender_slot);
            slots
                .entry((ends.bundle, ends.receiver, false))
                .or_default()
                .push(ends.receiver_slot);
        }
        assert_eq!(network.conduit(ConduitId(network.conduit_count())), None);
        for bundle in &network.bundles {
            let (sender, receiver) = network.ends(bundle);
            for (own, peer, sends) in [(sender, receiver, true), (receiver, sender, false)] {
                let extra = peer
                    .multiplicity
                    .get(own.multiplicity.len()..)
                    .unwrap_or_default();
                let wanted: HashSet<_> = match extra {
                    [] => HashSet::from([None]),
                    sizes => (0..volume(sizes)).map(Some).collect(),
                };
                let of_own = |instance: &InstanceName| *instance.component() == own.path.as_str();
                for instance in network.instances().filter(of_own) {
                    let found = slots.remove(&(bundle.id, instance, sends)).unwrap();
                    assert_eq!(found.len(), wanted.len());
                    assert_eq!(found.into_iter().collect::<HashSet<_>>(), wanted);
                }
            }
        }
        assert!(slots.is_empty());
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
