//! Merges several files into one, from left to right.
//! v0.1 files among themselves merge their models: a component replaces the component of the same
//! name, a conduit replaces the conduit to the same receiver. With a v0.2 file among them, names of
//! models and programs must differ.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use indexmap::IndexMap;

use crate::description::{Checkpoints, Component, Model, Port, PortReference, SETTINGS_IN};
use crate::document::{Document, FormatVersion};
use crate::names::Name;
use crate::operator::{Operator, Timeline};
use crate::problem::{Code, Problems, TextPosition};
use crate::titin_section::Extras;

/// Merges documents into one document in the terms of v0.2.
pub(crate) fn documents(mut documents: Vec<Document>, problems: &mut Problems) -> Document {
    let is_old = |document: &Document| document.version == FormatVersion::V01;
    let all_old = documents.iter().all(is_old);
    if !all_old {
        let documents = documents.iter_mut();
        documents.for_each(|document| modernise(document, problems));
    }
    let mut merged = Document::default();
    for mut document in documents {
        let models = std::mem::take(&mut document.models);
        let programs = std::mem::take(&mut document.programs);
        if all_old {
            merge_old_model(&mut merged, models);
            merged.programs.extend(programs);
        } else {
            merge_new(&mut merged.models, models, |m| m.at, "model", problems);
            let all = &mut merged.programs;
            merge_new(all, programs, |p| p.at, "program", problems);
        }
        merge_rest(&mut merged, document);
    }
    if all_old {
        merged.version = FormatVersion::V01;
        modernise(&mut merged, problems);
    }
    merged
}

/// Merges everything but models and programs.
fn merge_rest(merged: &mut Document, document: Document) {
    if !merged.description.is_empty() && !document.description.is_empty() {
        let end = merged.description.trim_end().len();
        merged.description.truncate(end);
        merged.description.push_str("\n\n");
    }
    merged.description.push_str(&document.description);
    merged.imports.extend(document.imports);
    let custom = document.custom_implementations;
    merged.custom_implementations.extend(custom);
    for (path, value, at) in document.settings.entries() {
        merged.settings.set_at(path.clone(), value.clone(), at);
    }
    merged.resources.extend(document.resources);
    merge_checkpoints(&mut merged.checkpoints, document.checkpoints);
    merged.resume.extend(document.resume);
    merge_extras(&mut merged.extras, document.extras);
}

fn merge_new<T>(
    merged: &mut IndexMap<Name, T>,
    more: IndexMap<Name, T>,
    at: impl Fn(&T) -> TextPosition,
    what: &str,
    problems: &mut Problems,
) {
    for (name, item) in more {
        if let Some(first) = merged.get(&name) {
            let place = at(first);
            let file = problems
                .files
                .get((place.file as usize).wrapping_sub(1))
                .cloned()
                .unwrap_or_default();
            let why = format!(
                "{file} has one of this name in line {}; names must differ in all files",
                place.line
            );
            problems.error(
                at(&item),
                Code::Duplicate,
                format!("{what} \"{name}\" is there twice"),
                why,
            );
        } else {
            merged.insert(name, item);
        }
    }
}

fn merge_old_model(merged: &mut Document, models: IndexMap<Name, Model>) {
    for (name, overlay) in models {
        let Some((_, mut model)) = merged.models.pop() else {
            merged.models.insert(name, overlay);
            continue;
        };
        model.name = name.clone();
        model.faulty |= overlay.faulty;
        model.components.extend(overlay.components);
        let replaced: HashSet<&PortReference> = overlay
            .conduits
            .iter()
            .map(|conduit| &conduit.receiver)
            .collect();
        model
            .conduits
            .retain(|conduit| !replaced.contains(&conduit.receiver));
        model.conduits.extend(overlay.conduits);
        if model.description.is_empty() {
            model.description = overlay.description;
        }
        merged.models.insert(name, model);
    }
}

fn merge_checkpoints(merged: &mut Checkpoints, more: Checkpoints) {
    if merged.is_empty() {
        merged.at = more.at;
    }
    merged.at_end |= more.at_end;
    merged.wallclock_time.extend(more.wallclock_time);
    merged.simulation_time.extend(more.simulation_time);
}

fn merge_extras(merged: &mut Extras, more: Extras) {
    merged.scales.extend(more.scales);
    merged.stage.extend(more.stage);
    merged.time_unit = more.time_unit.or(merged.time_unit.take());
    merged.progress.extend(more.progress);
    merged.ensemble.extend(more.ensemble);
    merged.filters.extend(more.filters);
    merged.buffer.default = more.buffer.default.or(merged.buffer.default);
    merged.buffer.ports.extend(more.buffer.ports);
    merged.medium.extend(more.medium);
    merged.folder = more.folder.or(merged.folder.take());
    merged.fields.extend(more.fields);
    merged.grace = more.grace.or(merged.grace);
    merged.heartbeat = more.heartbeat.or(merged.heartbeat);
    merged.register_timeout = more.register_timeout.or(merged.register_timeout);
    merged.required.extend(more.required);
    merged.links.default = more.links.default.or(merged.links.default);
    merged.links.components.extend(more.links.components);
    merged.hosts.extend(more.hosts);
    merged.sites.extend(more.sites);
    merged.patience = more.patience.or(merged.patience);
    merged.encrypt = more.encrypt.or(merged.encrypt);
}

/// States the defaults of a v0.1 document in the terms of v0.2.
fn modernise(document: &mut Document, problems: &mut Problems) {
    if document.version == FormatVersion::V02 {
        return;
    }
    document.version = FormatVersion::V02;
    let Some((name, model)) = document.models.first_mut() else {
        return;
    };
    let prefixed = |path: Name| Name::from(format!("{name}.{path}"));
    document.resources = std::mem::take(&mut document.resources)
        .into_iter()
        .map(|(path, item)| (prefixed(path), item))
        .collect();
    document.resume = std::mem::take(&mut document.resume)
        .into_iter()
        .map(|(path, item)| (prefixed(path), item))
        .collect();
    guess_ports(model, |component| component.ports.is_empty(), problems);
}

/// Gives components without ports the ports that the conduits name. The operators are guessed.
pub(crate) fn guess_ports(
    model: &mut Model,
    which: impl Fn(&Component) -> bool,
    problems: &mut Problems,
) {
    // The number of guessed ports of each component.
    let components = model.components.values().filter(|c| which(c));
    let mut guessed: HashMap<Name, usize> = components.map(|c| (c.name.clone(), 0)).collect();
    for conduit in &model.conduits {
        let ends = [
            (&conduit.sender, Operator::OF),
            (&conduit.receiver, Operator::FInit),
        ];
        for (end, operator) in ends.into_iter().filter(|(end, _)| end.port != SETTINGS_IN) {
            let Some(name) = &end.component else { continue };
            let Some(count) = guessed.get_mut(name) else {
                continue;
            };
            if let Some(component) = model.components.get_mut(name) {
                guess_port(component, &end.port, operator, conduit.at);
                *count += 1;
            }
        }
    }
    let was_guessed = |component: &&Component| guessed.get(&component.name).is_some_and(|n| *n > 0);
    for component in model.components.values().filter(was_guessed) {
        warn_of_guessed_ports(component, problems);
    }
}

fn guess_port(component: &mut Component, name: &Name, operator: Operator, at: TextPosition) {
    let ports = Arc::make_mut(&mut component.ports);
    ports.entry(name.clone()).or_insert_with(|| Port {
        name: name.clone(),
        operator,
        timeline: Timeline::default(),
        guessed: true,
        at,
    });
}

fn warn_of_guessed_ports(component: &Component, problems: &mut Problems) {
    let name = &component.name;
    let what = format!("component \"{name}\" lists no ports");
    let why =
        "they were taken from the conduits; their operators are known once the program says them";
    let hint = format!("list them: {name}: {{ports: {{f_init: ..., o_i: ..., s: ..., o_f: ...}}}}");
    problems.warn(component.at, Code::Incomplete, what, why, hint);
}
