//! Reads a document of yMMSL v0.1 into the same types. Ports that are not listed, and the model's
//! name before the paths of resources, are added once all files are merged.

use indexmap::IndexMap;

use super::components::{OF_MODELS, component, listed_component, too_deep};
use super::fields::{dotted, entries, identifier};
use super::sections::shared;
use super::{Fields, conduits, implementations, text};
use crate::description::{Component, Model, Program, ProgramKind};
use crate::document::{Document, FormatVersion};
use crate::names::Name;
use crate::problem::{Code, Problems};
use crate::yaml::{Node, NodeKind, ScalarType};

pub(super) fn document(mut fields: Fields<'_>, problems: &mut Problems) -> Document {
    let mut document = Document {
        version: FormatVersion::V01,
        ..Document::default()
    };
    if let Some(node) = fields.take("description") {
        document.description = text(node, "the description", problems).unwrap_or_default();
    }
    if let Some(node) = fields.take("model") {
        document
            .models
            .extend(model(node, problems).map(|model| (model.name.clone(), model)));
    }
    if let Some(node) = fields.take("implementations") {
        implementations_of(node, &mut document.programs, problems);
    }
    shared(&mut document, &mut fields, problems);
    let why = "it is indented as the sections of a file are, and belongs to the model";
    let hint = |key: &str| format!("indent \"{key}\" as what stands under \"model\" is");
    let before = problems.errors();
    fields.misplaced(&OF_MODELS, why, hint, problems);
    if problems.errors() > before {
        document
            .models
            .values_mut()
            .for_each(|model| model.faulty = true);
    }
    let before = problems.errors();
    fields.finish(problems);
    if problems.errors() > before {
        problems.lost_section();
    }
    document
}

fn model(node: &Node, problems: &mut Problems) -> Option<Model> {
    let mut fields = Fields::new(node, "\"model\"", problems)?;
    let name = match fields.take("name") {
        Some(node) => text(node, "the model's name", problems)
            .and_then(|name| identifier(&name, "the model's name", node.at, problems)),
        None => {
            problems.error(
                node.at,
                Code::MissingKey,
                "the model has no name",
                "a model needs a \"name\"",
            );
            None
        }
    };
    let mut model = Model {
        name: name.clone().unwrap_or_default(),
        at: node.at,
        ..Model::default()
    };
    if let Some(node) = fields.take("description") {
        model.description = text(node, "the description", problems).unwrap_or_default();
    }
    let before = problems.errors();
    if let Some(node) = fields.take("components") {
        model.components = components(node, problems);
    }
    if let Some(node) = fields.take("conduits") {
        model.conduits = conduits::conduits(node, FormatVersion::V01, problems);
    }
    fields.finish(problems);
    model.faulty = problems.errors() > before;
    name.map(|_| model)
}

fn components(node: &Node, problems: &mut Problems) -> IndexMap<Name, Component> {
    let mut components = IndexMap::new();
    if let NodeKind::List(items) = node.kind() {
        for item in items {
            listed_component(item, FormatVersion::V01, &mut components, problems);
        }
        return components;
    }
    for entry in entries(node, "\"components\"", problems).unwrap_or_default() {
        if too_deep(entry, problems) {
            continue;
        }
        let Some(name) = dotted(&entry.key, "the name of a component", entry.at, problems) else {
            continue;
        };
        let component = match entry.value.kind() {
            // A text alone is the implementation.
            NodeKind::Scalar(scalar) if scalar.of == ScalarType::Text => Component {
                name: name.clone(),
                implementation: dotted(&scalar.text, "an implementation", entry.value.at, problems),
                at: entry.at,
                implementation_at: entry.value.at,
                ..Component::default()
            },
            _ => {
                let what = format!("component \"{name}\"");
                let Some(mut fields) = Fields::new(&entry.value, what, problems) else {
                    continue;
                };
                let component = component(
                    name.clone(),
                    entry.at,
                    &mut fields,
                    FormatVersion::V01,
                    problems,
                );
                fields.finish(problems);
                component
            }
        };
        components.insert(name, component);
    }
    components
}

fn implementations_of(
    node: &Node,
    programs: &mut IndexMap<Name, Program>,
    problems: &mut Problems,
) {
    if let NodeKind::List(items) = node.kind() {
        let why = format!(
            "a mapping from names to implementations is expected; found a list of {}",
            items.len()
        );
        problems.error(
            node.at,
            Code::WrongType,
            "\"implementations\" has the wrong type",
            why,
        );
        return;
    }
    for entry in entries(node, "\"implementations\"", problems).unwrap_or_default() {
        let Some(name) = dotted(
            &entry.key,
            "the name of an implementation",
            entry.at,
            problems,
        ) else {
            continue;
        };
        let program = match entry.value.kind() {
            // A text or a list of lines alone is the script.
            NodeKind::Map(_) => implementations::program(
                name.clone(),
                entry.at,
                &entry.value,
                FormatVersion::V01,
                problems,
            ),
            _ => {
                let script = implementations::script_text(&entry.value, problems);
                let kind = ProgramKind::Script(script);
                Some(Program {
                    name: name.clone(),
                    kind,
                    can_share_resources: true,
                    at: entry.at,
                    ..Program::default()
                })
            }
        };
        programs.extend(program.map(|program| (name, program)));
    }
}
