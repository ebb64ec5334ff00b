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
    // Most ports have no slots, and nothing to compare.
    let mut slots = Slots::new();
    for bundle in &network.bundles {
        let (sender, receiver) = network.ends(bundle);
        check_common_dimensions(bundle, sender, receiver, problems);
        for (own, port, peer) in both_ways(bundle, sender, receiver) {
            let further = further_dimensions(own, peer);
            if !further.is_empty() {
                slots.entry((own.id, port)).or_insert((further, peer));
            }
        }
    }
    if slots.is_empty() {
        return;
    }
    for bundle in &network.bundles {
        let (sender, receiver) = network.ends(bundle);
        for (own, port, peer) in both_ways(bundle, sender, receiver) {
            check_slots(&slots, bundle, (own, port, peer), problems);
        }
    }
}

/// The slots of each port, and the peer that they were taken from.
type Slots<'n> = HashMap<(ComponentId, &'n Name), (&'n [u32], &'n NetworkComponent)>;

/// The dimensions that a peer has beyond those of a component.
fn further_dimensions<'n>(own: &NetworkComponent, peer: &'n NetworkComponent) -> &'n [u32] {
    peer.multiplicity
        .get(own.multiplicity.len()..)
        .unwrap_or_default()
}

fn show_multiplicity(component: &NetworkComponent) -> String {
    match component.multiplicity.as_slice() {
        [] => format!("\"{}\" is one instance", component.path),
        sizes => format!("\"{}\" has multiplicity {sizes:?}", component.path),
    }
}

/// Reports a bundle whose ends differ in a dimension that both have.
fn check_common_dimensions(
    bundle: &Bundle,
    sender: &NetworkComponent,
    receiver: &NetworkComponent,
    problems: &mut Problems,
) {
    let mut common = sender.multiplicity.iter().zip(&receiver.multiplicity);
    if common.all(|(one, other)| one == other) {
        return;
    }
    let what = format!(
        "the multiplicities of \"{}.{}\" and \"{}.{}\" do not fit",
        sender.path, bundle.sender_port, receiver.path, bundle.receiver_port
    );
    let why = format!(
        "{}, {}; instances are paired one to one",
        show_multiplicity(sender),
        show_multiplicity(receiver)
    );
    let hint = "give both the same multiplicity, or one of them further dimensions".to_string();
    problems.error_hint(bundle.at, Code::Multiplicity, what, why, hint);
}

/// Reports a peer of a port that gives the port other slots than another peer.
fn check_slots(
    slots: &Slots<'_>,
    bundle: &Bundle,
    (own, port, peer): (&NetworkComponent, &Name, &NetworkComponent),
    problems: &mut Problems,
) {
    let further = further_dimensions(own, peer);
    let Some((other, earlier)) = slots
        .get(&(own.id, port))
        .filter(|(other, _)| *other != further)
    else {
        return;
    };
    let why = format!(
        "{}, so the port has slots {other:?}; but {}; a port has the same slots towards all",
        show_multiplicity(earlier),
        show_multiplicity(peer)
    );
    let what = format!(
        "the peers of \"{}.{port}\" have different multiplicities",
        own.path
    );
    problems.error(bundle.at, Code::Multiplicity, what, why);
}
