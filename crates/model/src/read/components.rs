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
fn component(
    name: Name,
    at: TextPosition,
    fields: &mut Fields<'_>,
    version: FormatVersion,
    problems: &mut Problems,
) -> Component {
    let mut component = Component {
        name,
        at,
        ..Component::default()
    };
    if version == FormatVersion::V02 {
        entries_of_v02(&mut component, fields, problems);
    }
    if let Some(node) = fields.take("ports") {
        component.lists_ports = true;
        component.ports = implementations::ports(node, version, fields.what(), problems).into();
    }
    if let Some(node) = fields.take("implementation") {
        component.implementation_at = node.at;
        component.implementation = text(node, "the implementation", problems)
            .and_then(|written| dotted(&written, "an implementation", node.at, problems));
    }
    if let Some(node) = fields.take("multiplicity") {
        component.multiplicity = multiplicity(node, problems);
    }
    component
}

/// The entries that only v0.2 has.
fn entries_of_v02(component: &mut Component, fields: &mut Fields<'_>, problems: &mut Problems) {
    match fields.description(problems) {
        Some(description) => component.description = description,
        None => report_no_description(fields.what(), component.at, problems),
    }
    if let Some(node) = fields.take("optional") {
        component.optional = truth(node, "\"optional\"", problems).unwrap_or(false);
    }
}

fn report_no_description(what: &str, at: TextPosition, problems: &mut Problems) {
    let what = format!("{what} has no description");
    let why = "yMMSL v0.2 asks for one, and other tools do not load the file without it";
    let hint = "add a line \"description: what it computes\"".to_string();
    problems.warn(at, Code::Incomplete, what, why, hint);
}

/// The number of instances in each dimension; a number alone is one dimension.
fn multiplicity(node: &Node, problems: &mut Problems) -> Vec<u32> {
    let sizes: Option<Vec<_>> = node
        .items()
        .iter()
        .map(|n| count(n, "\"multiplicity\"", 1, MOST_INSTANCES, problems))
        .collect();
    let sizes = sizes.unwrap_or_default();
    sizes.into_iter().map(|n| n as u32).collect()
}

/// The component that an entry describes, in the form with the name as the key.
pub(super) fn named_component(
    name: &Name,
    entry: &MapEntry,
    version: FormatVersion,
    problems: &mut Problems,
) -> Option<Component> {
    let mut fields = Fields::new(&entry.value, format!("component \"{name}\""), problems)?;
    let component = component(name.clone(), entry.at, &mut fields, version, problems);
    fields.finish(problems);
    Some(component)
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

/// The components in the list form, with the names inside; `None` for another form.
pub(super) fn listed_components(
    node: &Node,
    version: FormatVersion,
    problems: &mut Problems,
) -> Option<IndexMap<Name, Component>> {
    let NodeKind::List(items) = node.kind() else {
        return None;
    };
    let mut components: IndexMap<Name, Component> = IndexMap::new();
    for item in items {
        let Some(component) = listed_component(item, version, problems) else {
            continue;
        };
        if let Some(first) = components.get(&component.name) {
            let what = format!("component \"{}\" is there twice", component.name);
            let why = format!("it is described before, in line {}", first.at.line);
            problems.error(component.at, Code::Duplicate, what, why);
        } else {
            components.insert(component.name.clone(), component);
        }
    }
    Some(components)
}

fn listed_component(
    node: &Node,
    version: FormatVersion,
    problems: &mut Problems,
) -> Option<Component> {
    let mut fields = Fields::new(node, "a component", problems)?;
    let Some(name_node) = fields.take("name") else {
        let why = "in a list each component has a \"name\"";
        problems.error(node.at, Code::MissingKey, "a component without a name", why);
        return None;
    };
    let name = text(name_node, "a component's name", problems)?;
    let name = dotted(&name, "the name of a component", name_node.at, problems)?;
    let component = component(name, name_node.at, &mut fields, version, problems);
    fields.finish(problems);
    Some(component)
}
