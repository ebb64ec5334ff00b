//! Components, which both versions of yMMSL describe nearly alike.

use indexmap::IndexMap;

use super::fields::{Fields, dotted, has_any, misplaced};
use super::{count, implementations, text, truth};
use crate::description::{Component, MOST_INSTANCES};
use crate::document::FormatVersion;
use crate::names::Name;
use crate::problem::{Code, Problems, TextPosition};
use crate::yaml::{MapEntry, Node, NodeKind};

/// The mappings of a model. With wrong indentation such a key looks like a component or a section.
pub(super) const OF_MODELS: [&str; 3] = ["components", "conduits", "matching_timelines"];

const OF_COMPONENTS: [&str; 5] = [
    "description",
    "ports",
    "implementation",
    "multiplicity",
    "optional",
];

/// A component of either version; the caller finishes the fields.
pub(super) fn component(
    name: Name,
    at: TextPosition,
    fields: &mut Fields<'_>,
    version: FormatVersion,
    problems: &mut Problems,
) -> Component {
    let what = fields.what().to_string();
    let mut component = Component {
        name,
        at,
        ..Component::default()
    };
    if version == FormatVersion::V02 {
        match fields.take("description") {
            Some(node) => {
                component.description = text(node, "the description", problems).unwrap_or_default()
            }
            None => {
                let why =
                    "yMMSL v0.2 asks for one, and other tools do not load the file without it";
                let hint = "add a line \"description: what it computes\"".to_string();
                problems.warn(
                    at,
                    Code::Incomplete,
                    format!("{what} has no description"),
                    why,
                    hint,
                );
            }
        }
        if let Some(node) = fields.take("optional") {
            component.optional = truth(node, "\"optional\"", problems).unwrap_or(false);
        }
    }
    if let Some(node) = fields.take("ports") {
        component.lists_ports = true;
        component.ports = implementations::ports(node, version, &what, problems).into();
    }
    if let Some(node) = fields.take("implementation") {
        component.implementation_at = node.at;
        component.implementation = text(node, "the implementation", problems)
            .and_then(|written| dotted(&written, "an implementation", node.at, problems));
    }
    if let Some(node) = fields.take("multiplicity") {
        let one = std::slice::from_ref(node);
        let sizes = if let NodeKind::List(items) = node.kind() {
            items.as_slice()
        } else {
            one
        };
        let sizes: Option<Vec<_>> = sizes
            .iter()
            .map(|n| count(n, "\"multiplicity\"", 1, MOST_INSTANCES, problems))
            .collect();
        component.multiplicity = sizes
            .unwrap_or_default()
            .into_iter()
            .map(|n| n as u32)
            .collect();
    }
    component
}

/// Reports a key of the model that is indented too far, among the components; false for a
/// component.
pub(super) fn too_deep(entry: &MapEntry, problems: &mut Problems) -> bool {
    let key = entry.key.as_str();
    if !OF_MODELS.contains(&key)
        || !(matches!(entry.value.kind(), NodeKind::Map(_)) || entry.value.is_null())
        || has_any(&entry.value, &OF_COMPONENTS)
    {
        return false;
    }
    let why = "it is indented as the names of components are, and belongs to the model";
    misplaced(
        entry,
        "\"components\"",
        why,
        format!("indent \"{key}\" as \"components\" is"),
        problems,
    );
    true
}

/// A component in the list form, with the name inside.
pub(super) fn listed_component(
    node: &Node,
    version: FormatVersion,
    components: &mut IndexMap<Name, Component>,
    problems: &mut Problems,
) {
    let Some(mut fields) = Fields::new(node, "a component", problems) else {
        return;
    };
    let Some(name_node) = fields.take("name") else {
        let why = "in a list each component has a \"name\"";
        problems.error(node.at, Code::MissingKey, "a component without a name", why);
        return;
    };
    let name = text(name_node, "a component's name", problems)
        .and_then(|name| dotted(&name, "the name of a component", name_node.at, problems));
    let Some(name) = name else { return };
    let component = component(name.clone(), name_node.at, &mut fields, version, problems);
    fields.finish(problems);
    if let Some(first) = components.get(&name) {
        let why = format!("it is described before, in line {}", first.at.line);
        problems.error(
            name_node.at,
            Code::Duplicate,
            format!("component \"{name}\" is there twice"),
            why,
        );
    } else {
        components.insert(name, component);
    }
}
