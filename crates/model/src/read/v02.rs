//! The document of yMMSL v0.2.

use std::fmt;

use indexmap::IndexMap;

use super::components::{OF_MODELS, listed_components, named_component, too_deep};
use super::fields::{dotted, entries, has_any, misplaced};
use super::sections::{finish, shared};
use super::{Fields, SECTIONS, conduits, implementations, sections, text};
use crate::description::{Component, Model, Program};
use crate::document::{Document, FormatVersion, Import};
use crate::names::{Name, is_dotted, is_identifier};
use crate::problem::{Code, Problems};
use crate::yaml::{MapEntry, Node, NodeKind, shorten};

const OF_MODELS_TOO: [&str; 3] = ["description", "ports", "supported_settings"];

const NO_PART: &str = "it is a section of the file, and no part of a model";

fn no_indent(key: &str) -> String {
    format!("begin the line with \"{key}\", without blanks before it")
}

pub(super) fn document(mut fields: Fields<'_>, problems: &mut Problems) -> Document {
    let mut document = Document {
        version: FormatVersion::V02,
        description: fields.description(problems).unwrap_or_default(),
        ..Document::default()
    };
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
    finish(&mut document, fields, why, hint, problems);
    document
}

fn models(node: &Node, problems: &mut Problems) -> IndexMap<Name, Model> {
    let mut models = IndexMap::new();
    let mut faulty = false;
    for entry in entries(node, "\"models\"", problems).unwrap_or_default() {
        match entry_of_models(entry) {
            // Which of the models lacks the key cannot be known.
            EntryOfModels::PartOfModel => {
                report_part_of_model(entry, problems);
                faulty = true;
            }
            EntryOfModels::Section => {
                misplaced(
                    entry,
                    "\"models\"",
                    NO_PART,
                    no_indent(&entry.key),
                    problems,
                );
                problems.lost_section();
                if entry.value.is_null() {
                    // The entries that follow at this depth were meant to be inside the section.
                    break;
                }
            }
            EntryOfModels::Model => models.extend(model(entry, problems)),
        }
    }
    models.values_mut().for_each(|model| model.faulty |= faulty);
    models
}

/// What an entry under `models:` is, to judge by its key and value.
enum EntryOfModels {
    Model,
    /// A key of a model, with wrong indentation.
    PartOfModel,
    /// A section of the file, with wrong indentation.
    Section,
}

fn entry_of_models(entry: &MapEntry) -> EntryOfModels {
    let key = entry.key.as_str();
    if has_any(&entry.value, &OF_MODELS) || has_any(&entry.value, &OF_MODELS_TOO) {
        EntryOfModels::Model
    } else if OF_MODELS.contains(&key) {
        EntryOfModels::PartOfModel
    } else if SECTIONS.contains(&key) {
        EntryOfModels::Section
    } else {
        EntryOfModels::Model
    }
}

fn report_part_of_model(entry: &MapEntry, problems: &mut Problems) {
    let why = "it is indented as the names of models are, and belongs to one of them";
    let hint = format!(
        "indent \"{}\" one step more, under the name of its model",
        entry.key
    );
    misplaced(entry, "\"models\"", why, hint, problems);
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
    let why = match imported(&written) {
        Ok((module, name)) => {
            let at = node.at;
            return Some(Import { module, name, at });
        }
        Err(why) => why,
    };
    let what = format!("\"{}\" is not an import", shorten(&written));
    let hint = "write \"from a.b.c import implementation name\"".to_string();
    problems.error_hint(node.at, Code::Import, what, why.to_string(), hint);
    None
}

/// The module and the name in an import.
fn imported(written: &str) -> Result<(Name, Name), ImportFault<'_>> {
    let words: Vec<_> = written.split_whitespace().collect();
    match words.as_slice() {
        ["from", _, "import", kind, _] if !kind.eq_ignore_ascii_case("implementation") => {
            Err(ImportFault::Kind(kind))
        }
        ["from", module, "import", _, name] if is_dotted(module) && is_identifier(name) => {
            Ok(((*module).into(), (*name).into()))
        }
        ["from", _, "import", _, _] => Err(ImportFault::Name),
        _ => Err(ImportFault::Form),
    }
}

/// Why a text is no import.
enum ImportFault<'t> {
    /// Not an implementation, but a thing of this kind.
    Kind(&'t str),
    /// The module or the name cannot be one.
    Name,
    /// Other words.
    Form,
}

impl fmt::Display for ImportFault<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ImportFault::Kind(kind) => {
                write!(f, "\"{kind}\" cannot be imported, only \"implementation\"")
            }
            ImportFault::Name => f.write_str(
                "a module is written \"a.b.c\", and a name is made of letters, digits and _",
            ),
            ImportFault::Form => f.write_str("it is not of that form"),
        }
    }
}

fn model(entry: &MapEntry, problems: &mut Problems) -> Option<(Name, Model)> {
    let name = dotted(&entry.key, "the name of a model", entry.at, problems)?;
    let mut fields = Fields::new(&entry.value, format!("model \"{name}\""), problems)?;
    let mut model = Model {
        name: name.clone(),
        at: entry.at,
        description: fields.description(problems).unwrap_or_default(),
        ..Model::default()
    };
    if let Some(node) = fields.take("ports") {
        model.ports = implementations::ports(node, FormatVersion::V02, fields.what(), problems);
    }
    if let Some(node) = fields.take("supported_settings") {
        model.supported_settings =
            implementations::supported_settings(node, fields.what(), problems);
    }
    let before = problems.errors();
    graph_of(&mut model, &mut fields, problems);
    if fields.misplaced(&SECTIONS, NO_PART, no_indent, problems) {
        problems.lost_section();
    }
    if fields.finish(problems) && model.components.is_empty() {
        // The components may stand under the unknown key, so conduits and timelines that name them
        // are not checked.
        model.conduits.clear();
        model.matching_timelines.clear();
    }
    model.faulty = problems.errors() > before;
    Some((name, model))
}

/// Reads the components of a model and how they are joined.
fn graph_of(model: &mut Model, fields: &mut Fields<'_>, problems: &mut Problems) {
    if let Some(node) = fields.take("components") {
        model.components = components(node, problems);
    }
    if let Some(node) = fields.take("conduits") {
        model.conduits = conduits::conduits(node, FormatVersion::V02, problems);
    }
    if let Some(node) = fields.take("matching_timelines") {
        model.matching_timelines = conduits::matching_timelines(node, problems);
    }
}

fn components(node: &Node, problems: &mut Problems) -> IndexMap<Name, Component> {
    if let Some(listed) = listed_components(node, FormatVersion::V02, problems) {
        return listed;
    }
    let mut components = IndexMap::new();
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
        let component = named_component(&name, entry, FormatVersion::V02, problems);
        components.extend(component.map(|component| (name, component)));
    }
    components
}
