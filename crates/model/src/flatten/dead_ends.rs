//! Conduits to and from ports of models that lead nowhere inside.

use std::collections::{HashMap, HashSet};

use super::{Expansion, NestedModel};
use crate::description::{Model, PortReference};
use crate::names::Name;
use crate::problem::{Code, Problems, TextPosition};

/// Warns of conduits to or from the port of a model where no conduit goes on inside the model.
pub(super) fn check_dead_ends(nodes: &[NestedModel<'_>], problems: &mut Problems) {
    let mut told: HashSet<TextPosition> = HashSet::new();
    let nested = nodes.iter().skip(1);
    let sending: HashMap<&Name, HashSet<&Name>> = nested
        .map(|node| (&node.model.name, sending_ports(node.model)))
        .collect();
    for node in nodes {
        for conduit in &node.model.conduits {
            if let Some(nested) = nested_at(node, &conduit.sender).map(|nested| &nodes[nested]) {
                let end = &conduit.sender;
                let ports = sending.get(&nested.model.name);
                let joined = ports.is_some_and(|ports| ports.contains(&end.port));
                if !joined && has_port(nested, end) && told.insert(conduit.at) {
                    report_never_sent(nested.model, end, conduit.at, problems);
                }
            }
            if let Some(nested) = nested_at(node, &conduit.receiver).map(|nested| &nodes[nested]) {
                let (end, at) = (&conduit.receiver, conduit.receiver_at);
                let joined = receives_inside(nested, &end.port);
                if !joined && has_port(nested, end) && told.insert(at) {
                    report_never_received(nested.model, end, at, problems);
                }
            }
        }
    }
}

/// Whether a conduit leads on from a port of the model, inside the model.
fn receives_inside(node: &NestedModel<'_>, port: &Name) -> bool {
    let inside = PortReference {
        component: None,
        port: port.clone(),
    };
    node.from.contains_key(&inside)
}

/// The ports of a model that conduits inside the model lead to.
fn sending_ports(model: &Model) -> HashSet<&Name> {
    let out = model
        .conduits
        .iter()
        .filter(|conduit| conduit.receiver.component.is_none());
    out.map(|conduit| &conduit.receiver.port).collect()
}

/// The nested model that implements the component at an end of a conduit.
fn nested_at(node: &NestedModel<'_>, end: &PortReference) -> Option<usize> {
    match node.inner.get(end.component.as_ref()?)? {
        Expansion::Nested(nested) => Some(*nested),
        Expansion::Leaf(_) | Expansion::Nothing => None,
    }
}

fn has_port(nested: &NestedModel<'_>, end: &PortReference) -> bool {
    nested.model.ports.contains_key(&end.port)
}

fn report_never_received(
    model: &Model,
    end: &PortReference,
    at: TextPosition,
    problems: &mut Problems,
) {
    let what = format!("what is sent to \"{end}\" is received by nothing");
    let why = no_conduit("to", model, &end.port);
    let hint = format!(
        "write {}: COMPONENT.PORT there, or leave this conduit out",
        end.port
    );
    problems.warn(at, Code::Unconnected, what, why, hint);
}

fn report_never_sent(
    model: &Model,
    end: &PortReference,
    at: TextPosition,
    problems: &mut Problems,
) {
    let what = format!("nothing is ever sent by \"{end}\"");
    let why = no_conduit("from", model, &end.port);
    let hint = format!(
        "write COMPONENT.PORT: {} there, or leave this conduit out",
        end.port
    );
    problems.warn(at, Code::Unconnected, what, why, hint);
}

fn no_conduit(side: &str, model: &Model, port: &Name) -> String {
    format!(
        "no conduit leads {side} port \"{port}\" inside model \"{}\", which implements it",
        model.name
    )
}
