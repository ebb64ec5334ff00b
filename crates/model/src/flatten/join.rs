//! Conduits between components, followed through the ports of the models around.

use std::sync::Arc;

use super::{DEEPEST, Expansion, MOST_BUNDLES, NestedModel};
use crate::description::{Conduit, Port, PortReference, SETTINGS_IN};
use crate::filter::Filter;
use crate::names::{BundleId, ComponentId, Name};
use crate::network::{Bundle, Network};
use crate::operator::{Operator, Timeline};
use crate::problem::{Code, Problems, TextPosition};
use crate::titin_section::{BufferLimits, LinkTuning};

/// Follows each conduit from the sending component to the receiving components, through the ports
/// of models.
pub(super) fn join(
    nodes: &[NestedModel<'_>],
    network: &mut Network,
    problems: &mut Problems,
) -> Option<()> {
    /// A conduit with more hops than this is a loop.
    const MOST_HOPS: usize = 4 * DEEPEST;
    for (number, node) in nodes.iter().enumerate() {
        for first in &node.model.conduits {
            let Some(Expansion::Leaf(sender)) = first
                .sender
                .component
                .as_ref()
                .and_then(|c| node.inner.get(c))
            else {
                continue;
            };
            let mut todo: Vec<(usize, &Conduit, Vec<Filter>, usize)> =
                vec![(number, first, Vec::new(), 0)];
            while let Some((at, conduit, mut filters, hops)) = todo.pop() {
                if hops > MOST_HOPS || network.bundles.len() >= MOST_BUNDLES {
                    let why = if hops > MOST_HOPS {
                        "following it through the ports of models leads round and round".to_string()
                    } else {
                        format!("a run has at most {MOST_BUNDLES} conduits between components")
                    };
                    problems.error(
                        first.at,
                        Code::Limit,
                        format!("conduit \"{}\" leads nowhere", first.sender),
                        why,
                    );
                    return None;
                }
                filters.extend(conduit.filters.iter().cloned());
                let (next, end) = match &conduit.receiver.component {
                    Some(name) => match nodes[at].inner.get(name) {
                        Some(Expansion::Leaf(receiver)) => {
                            let ends = (
                                *sender,
                                &first.sender.port,
                                *receiver,
                                &conduit.receiver.port,
                            );
                            add_bundle(network, ends, filters, hops > 0, first.receiver_at);
                            continue;
                        }
                        Some(Expansion::Nested(nested)) => (
                            *nested,
                            PortReference {
                                component: None,
                                port: conduit.receiver.port.clone(),
                            },
                        ),
                        Some(Expansion::Nothing) | None => continue,
                    },
                    None => match nodes[at].parent {
                        Some((parent, name)) => (
                            parent,
                            PortReference {
                                component: Some(name.clone()),
                                port: conduit.receiver.port.clone(),
                            },
                        ),
                        None => continue,
                    },
                };
                for conduit in nodes[next].from.get(&end).into_iter().flatten().rev() {
                    todo.push((next, conduit, filters.clone(), hops + 1));
                }
            }
        }
    }
    Some(())
}

fn add_bundle(
    network: &mut Network,
    (sender, sender_port, receiver, receiver_port): (ComponentId, &Name, ComponentId, &Name),
    filters: Vec<Filter>,
    through_models: bool,
    at: TextPosition,
) {
    let id = BundleId(network.bundles.len() as u32);
    let extras = &network.extras;
    let path = |component: ComponentId, port: &Name| {
        format!("{}.{port}", network.components[component.index()].path)
    };
    let (mut buffer, mut medium, mut pattern) = (extras.buffer.default, None, None);
    if !extras.buffer.ports.is_empty() || !extras.medium.is_empty() || !extras.fields.is_empty() {
        let (from, to) = (path(sender, sender_port), path(receiver, receiver_port));
        let patterns = [&to, &from].map(|path| extras.fields.get(path.as_str()));
        pattern = patterns
            .into_iter()
            .flatten()
            .next()
            .map(|(pattern, _)| Box::new(pattern.clone()));
        let own = |path: &str| {
            extras
                .buffer
                .ports
                .get(path)
                .map_or(BufferLimits::default(), |(buffer, _)| *buffer)
        };
        buffer = own(&to).or(own(&from)).or(buffer);
        medium = [to, from]
            .iter()
            .find_map(|path| extras.medium.get(path.as_str()))
            .map(|pinned| pinned.medium);
    }
    let link = {
        let of = |component: ComponentId| network.components[component.index()].path.as_str();
        let link = extras.links.between(of(sender), of(receiver));
        (link != LinkTuning::default()).then(|| link.into())
    };
    let (sender_port, receiver_port) = (sender_port.clone(), receiver_port.clone());
    if receiver_port == SETTINGS_IN {
        let ports = Arc::make_mut(&mut network.components[receiver.index()].ports);
        ports.entry(receiver_port.clone()).or_insert_with(|| Port {
            name: SETTINGS_IN.into(),
            operator: Operator::FInit,
            timeline: Timeline::default(),
            guessed: false,
            at,
        });
    }
    network.attached[sender.index()].sending.push(id);
    network.attached[receiver.index()].receiving.push(id);
    network.bundles.push(Bundle {
        id,
        sender,
        sender_port,
        receiver,
        receiver_port,
        filters,
        buffer,
        medium,
        pattern,
        link,
        first_conduit: 0,
        through_models,
        at,
    });
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

/// The most conduits between instances.
const MOST_CONDUITS: u64 = 1 << 31;
