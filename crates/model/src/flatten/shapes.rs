//! Multiplicities of components that conduits join.

use std::collections::HashMap;

use crate::names::{ComponentId, Name};
use crate::network::{Bundle, Network, NetworkComponent};
use crate::problem::{Code, Problems};

/// Each end of a bundle with its port and the other end.
fn both_ways<'n>(
    bundle: &'n Bundle,
    sender: &'n NetworkComponent,
    receiver: &'n NetworkComponent,
) -> [(&'n NetworkComponent, &'n Name, &'n NetworkComponent); 2] {
    [
        (sender, &bundle.sender_port, receiver),
        (receiver, &bundle.receiver_port, sender),
    ]
}

/// The dimensions that both ends share must have the same sizes, and all peers of a port must have
/// the same further dimensions. Conduits that break this rule join no instances, but the other
/// checks still run.
pub(super) fn check_shapes(network: &Network, problems: &mut Problems) {
    let show = |component: &NetworkComponent| match component.multiplicity.as_slice() {
        [] => format!("\"{}\" is one instance", component.path),
        sizes => format!("\"{}\" has multiplicity {sizes:?}", component.path),
    };
    // Most ports have no slots, and nothing to compare.
    let mut slots: HashMap<(ComponentId, &Name), (&[u32], &NetworkComponent)> = HashMap::new();
    for bundle in &network.bundles {
        let (sender, receiver) = network.ends(bundle);
        let (s, r) = (&sender.multiplicity, &receiver.multiplicity);
        let common = s.len().min(r.len());
        if s[..common] != r[..common] {
            let what = format!(
                "the multiplicities of \"{}.{}\" and \"{}.{}\" do not fit",
                sender.path, bundle.sender_port, receiver.path, bundle.receiver_port
            );
            let why = format!(
                "{}, {}; instances are paired one to one",
                show(sender),
                show(receiver)
            );
            let hint =
                "give both the same multiplicity, or one of them further dimensions".to_string();
            problems.error_hint(bundle.at, Code::Multiplicity, what, why, hint);
        }
        for (own, port, peer) in both_ways(bundle, sender, receiver) {
            if peer.multiplicity.len() > own.multiplicity.len() {
                slots
                    .entry((own.id, port))
                    .or_insert((&peer.multiplicity[own.multiplicity.len()..], peer));
            }
        }
    }
    let with_slots = if slots.is_empty() {
        &[]
    } else {
        network.bundles.as_slice()
    };
    for bundle in with_slots {
        let (sender, receiver) = network.ends(bundle);
        for (own, port, peer) in both_ways(bundle, sender, receiver) {
            let extra = peer
                .multiplicity
                .get(own.multiplicity.len()..)
                .unwrap_or_default();
            let Some((other, earlier)) = slots
                .get(&(own.id, port))
                .filter(|(other, _)| *other != extra)
            else {
                continue;
            };
            let why = format!(
                "{}, so the port has slots {other:?}; but {}; a port has the same slots towards all",
                show(earlier),
                show(peer)
            );
            let what = format!(
                "the peers of \"{}.{port}\" have different multiplicities",
                own.path
            );
            problems.error(bundle.at, Code::Multiplicity, what, why);
        }
    }
}
