//! Conduits to and from ports of models that lead nowhere inside.

use std::collections::{HashMap, HashSet};

use super::{Expansion, NestedModel};
use crate::description::{Conduit, PortReference};
use crate::names::Name;
use crate::problem::{Code, Problems, TextPosition};

/// Warns of conduits to or from the port of a model where no conduit goes on inside the model.
pub(super) fn check_dead_ends(nodes: &[NestedModel<'_>], problems: &mut Problems) {
    let mut told: HashSet<TextPosition> = HashSet::new();
    let inside: HashMap<&Name, HashSet<&Name>> = nodes
        .iter()
        .skip(1)
        .map(|node| {
            let out = |conduit: &'_ &Conduit| conduit.receiver.component.is_none();
            (
                &node.model.name,
                node.model
                    .conduits
                    .iter()
                    .filter(out)
                    .map(|c| &c.receiver.port)
                    .collect(),
            )
        })
        .collect();
    for node in nodes {
        for conduit in &node.model.conduits {
            let ends = [
                (&conduit.sender, false, conduit.at),
                (&conduit.receiver, true, conduit.receiver_at),
            ];
            for (end, into, at) in ends {
                let nested = end.component.as_ref().and_then(|name| node.inner.get(name));
                let Some(Expansion::Nested(nested)) = nested else {
                    continue;
                };
                let NestedModel { model, from, .. } = &nodes[*nested];
                let joined = match into {
                    true => from.contains_key(&PortReference {
                        component: None,
                        port: end.port.clone(),
                    }),
                    false => inside
                        .get(&model.name)
                        .is_some_and(|ports| ports.contains(&end.port)),
                };
                if joined || !model.ports.contains_key(&end.port) || !told.insert(at) {
                    continue;
                }
                let (what, side) = match into {
                    true => (
                        format!("what is sent to \"{end}\" is received by nothing"),
                        "to",
                    ),
                    false => (format!("nothing is ever sent by \"{end}\""), "from"),
                };
                let why = format!(
                    "no conduit leads {side} port \"{}\" inside model \"{}\", which implements it",
                    end.port, model.name
                );
                let hint = match into {
                    true => format!(
                        "write {}: COMPONENT.PORT there, or leave this conduit out",
                        end.port
                    ),
                    false => format!(
                        "write COMPONENT.PORT: {} there, or leave this conduit out",
                        end.port
                    ),
                };
                problems.warn(at, Code::Unconnected, what, why, hint);
            }
        }
    }
}
