//! The document of yMMSL v0.2.

use indexmap::IndexMap;

use super::components::{OF_MODELS, component, listed_component, too_deep};
use super::fields::{dotted, entries, has_any, misplaced};
use super::sections::shared;
use super::{Fields, SECTIONS, conduits, implementations, sections, text};
use crate::description::{Component, Model, Program};
use crate::document::{Document, FormatVersion, Import};
use crate::names::{Name, is_dotted, is_identifier};
use crate::problem::{Code, Problems, TextPosition};
use crate::yaml::{Node, NodeKind, shorten};

const OF_MODELS_TOO: [&str; 3] = ["description", "ports", "supported_settings"];

const NO_PART: &str = "it is a section of the file, and no part of a model";

fn no_indent(key: &str) -> String {
    format!("begin the line with \"{key}\", without blanks before it")
}

pub(super) fn document(mut fields: Fields<'_>, problems: &mut Problems) -> Document {
    let mut document = Document {
        version: FormatVersion::V02,
        ..Document::default()
    };
    if let Some(node) = fields.take("description") {
        document.description = text(node, "the description", problems).unwrap_or_default();
    }
    if let Some(node) = fields.take("imports") {
        document.imports = imports(node, problems);
    }
    if let Some(node) = fields.take("models") {
        document.models = models(node, problems);
    }
    if let Some(node) = fields.take("programs") {
        document.programs = programs(node, problems);
    }
    if let Some(node) = fields.take("custom_implementations") {
        document.custom_implementations = sections::custom_implementations(node, problems);
    }
    shared(&mut document, &mut fields, problems);
    let why = "it is indented as the sections of a file are, and belongs to a model";
    let hint =
        |key: &str| format!("indent \"{key}\" two steps more: models: {{NAME: {{{key}: ...}}}}");
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

fn models(node: &Node, problems: &mut Problems) -> IndexMap<Name, Model> {
    let mut models = IndexMap::new();
    let mut faulty = false;
    for entry in entries(node, "\"models\"", problems).unwrap_or_default() {
        let key = entry.key.as_str();
        let as_model = has_any(&entry.value, &OF_MODELS) || has_any(&entry.value, &OF_MODELS_TOO);
        if OF_MODELS.contains(&key) && !as_model {
            let why = "it is indented as the names of models are, and belongs to one of them";
            let hint = format!("indent \"{key}\" one step more, under the name of its model");
            misplaced(entry, "\"models\"", why, hint, problems);
            // Which of the models lacks the key cannot be known.
            faulty = true;
        } else if SECTIONS.contains(&key) && !as_model {
            misplaced(entry, "\"models\"", NO_PART, no_indent(key), problems);
            problems.lost_section();
            if entry.value.is_null() {
                // The entries that follow at this depth were meant to be inside the section.
                break;
            }
        } else if let Some(name) = dotted(key, "the name of a model", entry.at, problems)
            && let Some(model) = model(name.clone(), entry.at, &entry.value, problems)
        {
            models.insert(name, model);
        }
    }
    models.values_mut().for_each(|model| model.faulty |= faulty);
    models
}

fn programs(node: &Node, problems: &mut Problems) -> IndexMap<Name, Program> {
    let mut programs = IndexMap::new();
    for entry in entries(node, "\"programs\"", problems).unwrap_or_default() {
        let Some(name) = dotted(&entry.key, "the name of a program", entry.at, problems) else {
            continue;
        };
        let (at, version) = (entry.at, FormatVersion::V02);
        let program = implementations::program(name.clone(), at, &entry.value, version, problems);
        programs.extend(program.map(|program| (name, program)));
    }
    programs
}

fn imports(node: &Node, problems: &mut Problems) -> Vec<Import> {
    let NodeKind::List(items) = node.kind() else {
        return super::wrong_type(node, "\"imports\"", "a list of import statements", problems)
            .unwrap_or_default();
    };
    items
        .iter()
        .filter_map(|item| import(item, problems))
        .collect()
}

fn import(node: &Node, problems: &mut Problems) -> Option<Import> {
    let written = text(node, "an import", problems)?;
    let words: Vec<_> = written.split_whitespace().collect();
    let why = match words.as_slice() {
        ["from", module, "import", kind, name] if kind.eq_ignore_ascii_case("implementation") => {
            if is_dotted(module) && is_identifier(name) {
                return Some(Import {
                    module: (*module).into(),
                    name: (*name).into(),
                    at: node.at,
                });
            }
            "a module is written \"a.b.c\", and a name is made of letters, digits and _".to_string()
        }
        ["from", _, "import", kind, _] => {
            format!("\"{kind}\" cannot be imported, only \"implementation\"")
        }
        _ => "it is not of that form".to_string(),
    };
    let hint = "write \"from a.b.c import implementation name\"".to_string();
    problems.error_hint(
        node.at,
        Code::Import,
        format!("\"{}\" is not an import", shorten(&written)),
        why,
        hint,
    );
    None
}

fn model(name: Name, at: TextPosition, node: &Node, problems: &mut Problems) -> Option<Model> {
    let what = format!("model \"{name}\"");
    let mut fields = Fields::new(node, what.as_str(), problems)?;
    let mut model = Model {
        name,
        at,
        ..Model::default()
    };
    if let Some(node) = fields.take("description") {
        model.description = text(node, "the description", problems).unwrap_or_default();
    }
    if let Some(node) = fields.take("ports") {
        model.ports = implementations::ports(node, FormatVersion::V02, &what, problems);
    }
    if let Some(node) = fields.take("supported_settings") {
        model.supported_settings = implementations::supported_settings(node, &what, problems);
    }
    let before = problems.errors();
    if let Some(node) = fields.take("components") {
        model.components = components(node, problems);
    }
    if let Some(node) = fields.take("conduits") {
        model.conduits = conduits::conduits(node, FormatVersion::V02, problems);
    }
    if let Some(node) = fields.take("matching_timelines") {
        model.matching_timelines = conduits::matching_timelines(node, problems);
    }
    let inside = problems.errors();
    fields.misplaced(&SECTIONS, NO_PART, no_indent, problems);
    if problems.errors() > inside {
        problems.lost_section();
    }
    let known = problems.errors();
    fields.finish(problems);
    if problems.errors() > known && model.components.is_empty() {
        // The components may stand under the unknown key, so conduits and timelines that name them
        // are not checked.
        model.conduits.clear();
        model.matching_timelines.clear();
    }
    model.faulty = problems.errors() > before;
    Some(model)
}

fn components(node: &Node, problems: &mut Problems) -> IndexMap<Name, Component> {
    let mut components = IndexMap::new();
    if let NodeKind::List(items) = node.kind() {
        for item in items {
            listed_component(item, FormatVersion::V02, &mut components, problems);
        }
        return components;
    }
    for entry in entries(node, "\"components\"", problems).unwrap_or_default() {
        if too_deep(entry, problems) {
            if entry.value.is_null() {
                // The entries that follow at this depth were meant to be inside the section.
                break;
            }
            continue;
        }
        let Some(name) = dotted(&entry.key, "the name of a component", entry.at, problems) else {
            continue;
        };
        let Some(mut fields) = Fields::new(&entry.value, format!("component \"{name}\""), problems)
        else {
            continue;
        };
        let component = component(
            name.clone(),
            entry.at,
            &mut fields,
            FormatVersion::V02,
            problems,
        );
        fields.finish(problems);
        components.insert(name, component);
    }
    components
}
