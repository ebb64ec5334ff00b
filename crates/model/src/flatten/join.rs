//! Conduits between components, followed through the ports of the models around.

use std::sync::Arc;

use super::{DEEPEST, Expansion, MOST_BUNDLES, NestedModel};
use crate::description::{Conduit, Port, PortReference, SETTINGS_IN};
use crate::filter::Filter;
use crate::names::{BundleId, ComponentId, Name};
use crate::network::{Bundle, Network};
use crate::pattern::Pattern;
use crate::problem::{Code, Problems, TextPosition};
use crate::titin_section::{BufferLimits, LinkTuning, Medium};

/// Follows each conduit from the sending component to the receiving components, through the ports
/// of models.
pub(super) fn join(
    nodes: &[NestedModel<'_>],
    network: &mut Network,
    problems: &mut Problems,
) -> Option<()> {
    for (number, node) in nodes.iter().enumerate() {
        for conduit in &node.model.conduits {
            let component = conduit.sender.component.as_ref();
            let sender = component.and_then(|name| node.inner.get(name));
            if let Some(Expansion::Leaf(sender)) = sender {
                follow(nodes, number, conduit, *sender, network, problems)?;
            }
        }
    }
    Some(())
}

/// A conduit on the way from a sending component to receiving components.
struct Hop<'n> {
    /// The nested model that has the conduit.
    node: usize,
    conduit: &'n Conduit,
    /// The filters of the conduits before this one.
    filters: Vec<Filter>,
    /// The number of conduits before this one.
    hops: usize,
}

/// The next point on the way of a conduit.
enum Onward {
    /// A component of the network.
    Receiver(ComponentId),
    /// A port of a nested model, where other conduits begin.
    Through(usize, PortReference),
    /// A component that was removed, or a port of the root model.
    Nowhere,
}

/// Follows the conduit `first` of a sender to all receivers, and adds a bundle for each.
fn follow(
    nodes: &[NestedModel<'_>],
    node: usize,
    first: &Conduit,
    sender: ComponentId,
    network: &mut Network,
    problems: &mut Problems,
) -> Option<()> {
    let mut todo = vec![Hop {
        node,
        conduit: first,
        filters: Vec::new(),
        hops: 0,
    }];
    while let Some(mut hop) = todo.pop() {
        if hop.hops > MOST_HOPS || network.bundles.len() >= MOST_BUNDLES {
            report_limit(first, hop.hops, problems);
            return None;
        }
        hop.filters.extend(hop.conduit.filters.iter().cloned());
        match onward(nodes, hop.node, hop.conduit) {
            Onward::Receiver(receiver) => {
                let ends = BundleEnds {
                    sender,
                    sender_port: &first.sender.port,
                    receiver,
                    receiver_port: &hop.conduit.receiver.port,
                };
                add_bundle(network, ends, hop.filters, hop.hops > 0, first.receiver_at);
            }
            Onward::Through(node, port) => {
                let conduits = nodes[node].from.get(&port).into_iter().flatten().rev();
                todo.extend(conduits.map(|conduit| Hop {
                    node,
                    conduit,
                    filters: hop.filters.clone(),
                    hops: hop.hops + 1,
                }));
            }
            Onward::Nowhere => {}
        }
    }
    Some(())
}

/// The point to which a conduit of a nested model leads.
fn onward(nodes: &[NestedModel<'_>], node: usize, conduit: &Conduit) -> Onward {
    let port = conduit.receiver.port.clone();
    let Some(name) = &conduit.receiver.component else {
        return nodes[node]
            .parent
            .map_or(Onward::Nowhere, |(parent, name)| {
                let component = Some(name.clone());
                Onward::Through(parent, PortReference { component, port })
            });
    };
    match nodes[node].inner.get(name) {
        Some(Expansion::Leaf(receiver)) => Onward::Receiver(*receiver),
        Some(Expansion::Nested(nested)) => Onward::Through(
            *nested,
            PortReference {
                component: None,
                port,
            },
        ),
        Some(Expansion::Nothing) | None => Onward::Nowhere,
    }
}

fn report_limit(conduit: &Conduit, hops: usize, problems: &mut Problems) {
    let why = if hops > MOST_HOPS {
        "following it through the ports of models leads round and round".to_string()
    } else {
        format!("a run has at most {MOST_BUNDLES} conduits between components")
    };
    let what = format!("conduit \"{}\" leads nowhere", conduit.sender);
    problems.error(conduit.at, Code::Limit, what, why);
}

/// The components and ports that a bundle joins.
struct BundleEnds<'n> {
    sender: ComponentId,
    sender_port: &'n Name,
    receiver: ComponentId,
    receiver_port: &'n Name,
}

fn add_bundle(
    network: &mut Network,
    ends: BundleEnds<'_>,
    filters: Vec<Filter>,
    through_models: bool,
    at: TextPosition,
) {
    let id = BundleId(network.bundles.len() as u32);
    let options = BundleOptions::of(network, &ends);
    let BundleEnds {
        sender, receiver, ..
    } = ends;
    if *ends.receiver_port == SETTINGS_IN {
        add_settings_port(network, receiver, at);
    }
    network.attached[sender.index()].sending.push(id);
    network.attached[receiver.index()].receiving.push(id);
    network.bundles.push(Bundle {
        id,
        sender,
        sender_port: ends.sender_port.clone(),
        receiver,
        receiver_port: ends.receiver_port.clone(),
        filters,
        buffer: options.buffer,
        medium: options.medium,
        pattern: options.pattern,
        link: link_tuning(network, sender, receiver),
        first_conduit: 0,
        through_models,
        at,
    });
}

/// Gives a component the port for settings, which need not be listed.
fn add_settings_port(network: &mut Network, receiver: ComponentId, at: TextPosition) {
    let ports = Arc::make_mut(&mut network.components[receiver.index()].ports);
    let port = ports.entry(SETTINGS_IN.into());
    port.or_insert_with(|| Port::for_settings(at));
}

fn link_tuning(
    network: &Network,
    sender: ComponentId,
    receiver: ComponentId,
) -> Option<Box<LinkTuning>> {
    let path = |component: ComponentId| network.components[component.index()].path.as_str();
    let link = network.extras.links.between(path(sender), path(receiver));
    (link != LinkTuning::default()).then(|| link.into())
}

/// The entries of the `titin:` section for the ports of a bundle.
struct BundleOptions {
    buffer: BufferLimits,
    medium: Option<Medium>,
    pattern: Option<Box<Pattern>>,
}

impl BundleOptions {
    /// The entries of the receiver's port go before those of the sender's.
    fn of(network: &Network, ends: &BundleEnds<'_>) -> Self {
        let extras = &network.extras;
        let default = extras.buffer.default;
        if extras.buffer.ports.is_empty() && extras.medium.is_empty() && extras.fields.is_empty() {
            return BundleOptions {
                buffer: default,
                medium: None,
                pattern: None,
            };
        }
        let path = |component: ComponentId, port: &Name| {
            format!("{}.{port}", network.components[component.index()].path)
        };
        let to = path(ends.receiver, ends.receiver_port);
        let from = path(ends.sender, ends.sender_port);
        let paths = [to.as_str(), from.as_str()];
        let limits = |path: &str| extras.buffer.ports.get(path).map(|(limits, _)| *limits);
        let [to, from] = paths.map(|path| limits(path).unwrap_or_default());
        let pattern = paths.iter().find_map(|path| extras.fields.get(*path));
        let pinned = paths.iter().find_map(|path| extras.medium.get(*path));
        BundleOptions {
            buffer: to.or(from).or(default),
            medium: pinned.map(|pinned| pinned.medium),
            pattern: pattern.map(|(pattern, _)| Box::new(pattern.clone())),
        }
    }
}

pub(super) fn number_conduits(network: &mut Network, problems: &mut Problems) -> Option<()> {
    let mut first = 0u64;
    for i in 0..network.bundles.len() {
        let (sender, receiver) = network.ends(&network.bundles[i]);
        let pairs = u64::from(sender.instances().max(receiver.instances()));
        network.bundles[i].first_conduit = first as u32;
        first += pairs;
        if first > MOST_CONDUITS {
            let why = format!("a run has at most {MOST_CONDUITS} conduits between instances");
            problems.error(
                network.bundles[i].at,
                Code::Limit,
                "the run is too large",
                why,
            );
            return None;
        }
    }
    Some(())
}

/// The most conduits from a sending component to a receiving component, through ports of models; a
/// longer way is a loop.
const MOST_HOPS: usize = 4 * DEEPEST;
/// The most conduits between instances.
const MOST_CONDUITS: u64 = 1 << 31;
