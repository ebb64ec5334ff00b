//! Reads a document of yMMSL v0.1 into the same types. Ports that are not listed, and the model's
//! name before the paths of resources, are added once all files are merged.

use indexmap::IndexMap;

use super::components::{listed_components, named_component, too_deep};
use super::fields::{dotted, entries, identifier};
use super::sections::{finish, shared};
use super::{Fields, conduits, implementations, text};
use crate::description::{Component, Model, Program, ProgramKind};
use crate::document::{Document, FormatVersion};
use crate::names::Name;
use crate::problem::{Code, Problems};
use crate::yaml::{MapEntry, Node, NodeKind, ScalarType};

pub(super) fn document(mut fields: Fields<'_>, problems: &mut Problems) -> Document {
    let mut document = Document {
        version: FormatVersion::V01,
        description: fields.description(problems).unwrap_or_default(),
        ..Document::default()
    };
    if let Some(node) = fields.take("model") {
        document
            .models
            .extend(model(node, problems).map(|model| (model.name.clone(), model)));
    }
    if let Some(node) = fields.take("implementations") {
        document.programs = implementations_of(node, problems);
    }
    shared(&mut document, &mut fields, problems);
    let why = "it is indented as the sections of a file are, and belongs to the model";
    let hint = |key: &str| format!("indent \"{key}\" as what stands under \"model\" is");
    finish(&mut document, fields, why, hint, problems);
    document
}

fn model(node: &Node, problems: &mut Problems) -> Option<Model> {
    let mut fields = Fields::new(node, "\"model\"", problems)?;
    let name = model_name(&mut fields, node, problems);
    let mut model = Model {
        name: name.clone().unwrap_or_default(),
        description: fields.description(problems).unwrap_or_default(),
        at: node.at,
        ..Model::default()
    };
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

fn model_name(fields: &mut Fields<'_>, model: &Node, problems: &mut Problems) -> Option<Name> {
    let Some(node) = fields.take("name") else {
        let why = "a model needs a \"name\"";
        problems.error(model.at, Code::MissingKey, "the model has no name", why);
        return None;
    };
    let name = text(node, "the model's name", problems)?;
    identifier(&name, "the model's name", node.at, problems)
}

fn components(node: &Node, problems: &mut Problems) -> IndexMap<Name, Component> {
    if let Some(listed) = listed_components(node, FormatVersion::V01, problems) {
        return listed;
    }
    let mut components = IndexMap::new();
    for entry in entries(node, "\"components\"", problems).unwrap_or_default() {
        if too_deep(entry, problems) {
            continue;
        }
        let Some(name) = dotted(&entry.key, "the name of a component", entry.at, problems) else {
            continue;
        };
        let component = match entry.value.kind() {
            NodeKind::Scalar(scalar) if scalar.of == ScalarType::Text => {
                Some(implemented_by(&name, entry, &scalar.text, problems))
            }
            _ => named_component(&name, entry, FormatVersion::V01, problems),
        };
        components.extend(component.map(|component| (name, component)));
    }
    components
}

/// The component of an entry with a text alone, which is the implementation.
fn implemented_by(
    name: &Name,
    entry: &MapEntry,
    implementation: &str,
    problems: &mut Problems,
) -> Component {
    let at = entry.value.at;
    Component {
        name: name.clone(),
        implementation: dotted(implementation, "an implementation", at, problems),
        at: entry.at,
        implementation_at: at,
        ..Component::default()
    }
}

fn implementations_of(node: &Node, problems: &mut Problems) -> IndexMap<Name, Program> {
    let mut programs = IndexMap::new();
    if let NodeKind::List(items) = node.kind() {
        let what = "\"implementations\" has the wrong type";
        let why = format!(
            "a mapping from names to implementations is expected; found a list of {}",
            items.len()
        );
        problems.error(node.at, Code::WrongType, what, why);
        return programs;
    }
    for entry in entries(node, "\"implementations\"", problems).unwrap_or_default() {
        let what = "the name of an implementation";
        if let Some(name) = dotted(&entry.key, what, entry.at, problems) {
            let program = implementation(&name, entry, problems);
            programs.extend(program.map(|program| (name, program)));
        }
    }
    programs
}

/// An implementation: a mapping, or its script, as a text or a list of lines.
fn implementation(name: &Name, entry: &MapEntry, problems: &mut Problems) -> Option<Program> {
    let (name, node) = (name.clone(), &entry.value);
    if let NodeKind::Map(_) = node.kind() {
        return implementations::program(name, entry.at, node, FormatVersion::V01, problems);
    }
    Some(Program {
        name,
        kind: ProgramKind::Script(implementations::script_text(node, problems)),
        can_share_resources: true,
        at: entry.at,
        ..Program::default()
    })
}
