//! Checks before a run. They look for all problems, so that one report has them all.

mod conduits;
mod implementations;
mod model;
mod paths;
mod sampler;
mod settings;
mod titin_section;

use std::collections::HashSet;

use crate::description::{Component, Description, Model, Ports, Program};
use crate::flatten::flatten;
use crate::merge;
use crate::names::Name;
use crate::network::Network;
use crate::options::LoadOptions;
use crate::problem::{Code, Problems, TextPosition};
use crate::roots::EnclosingModel;
use crate::timelines;

/// Checks the whole description. Components without listed ports first get the ports of their
/// implementation.
pub(crate) fn description(
    description: &mut Description,
    options: &LoadOptions,
    problems: &mut Problems,
) {
    paths::complete(description, options, problems);
    inherit_ports(description);
    guess_ports(description, problems);
    for model in description.models.values() {
        if let Some(program) = description.programs.get(&model.name) {
            report_namesake(program, problems);
        }
        check_model(model, description, options, problems);
    }
    model::filters_exist(description, problems);
    let description = &*description;
    implementations::custom(description, problems);
    let Some(root) = description.root(options.model.as_deref(), problems) else {
        return;
    };
    implementations::nested(description, root, problems);
    // Models that do not fit into each other make no network, but the other checks still run.
    if let Some(network) = flatten(description, root, problems) {
        check_network(description, root, &network, options, problems);
    }
}

/// Gives each component without listed ports the ports that its conduits need.
fn guess_ports(description: &mut Description, problems: &mut Problems) {
    let models: HashSet<Name> = description.models.keys().cloned().collect();
    // A model lists all of its ports, even if there are none.
    let unsaid = |component: &Component| {
        let implementation = component.implementation.as_ref();
        let by_model = implementation.is_some_and(|name| models.contains(name));
        component.ports.is_empty() && !component.lists_ports && !by_model
    };
    for model in description.models.values_mut() {
        merge::guess_ports(model, unsaid, problems);
    }
}

fn report_namesake(program: &Program, problems: &mut Problems) {
    let what = format!("program \"{}\" is not the only one", program.name);
    let why = "there is a model of this name too; an implementation is found by its name alone";
    problems.error(program.at, Code::Duplicate, what, why);
}

fn check_model(
    model: &Model,
    description: &Description,
    options: &LoadOptions,
    problems: &mut Problems,
) {
    let before = problems.errors();
    model::check(model, problems);
    // A conduit to an unknown port hides the rates of the model, and reports about rates would
    // mislead.
    if problems.errors() == before && !model.faulty {
        let strict = options.strict_timelines;
        timelines::check(model, &description.extras, strict, problems);
    }
}

fn check_network(
    description: &Description,
    root: &Model,
    network: &Network,
    options: &LoadOptions,
    problems: &mut Problems,
) {
    implementations::check(description, network, &options.start, problems);
    implementations::hosts(description, network, problems);
    paths::resources(description, network, problems);
    paths::resume(description, problems);
    checkpoints(description, problems);
    let check_paths = |(root, network): (&Model, &Network), problems: &mut Problems| {
        settings::check(description, root, network, problems);
        sampler::check(description, network, options.table_columns, problems);
        titin_section::check(description, network, problems);
    };
    for_any_model(description, (root, network), problems, check_paths);
    conduits::check(network, &options.start, problems);
}

/// Checks paths of the network. A description may hold several models that can be run, and a path
/// such as `macro.dt` may belong to another model than the one that is run now. So a path is a
/// problem only if it leads nowhere in every model.
fn for_any_model(
    description: &Description,
    (root, network): (&Model, &Network),
    problems: &mut Problems,
    check: impl Fn((&Model, &Network), &mut Problems),
) {
    let before = problems.mark();
    check((root, network), problems);
    let mut others = description.roots();
    others.retain(|other| other.name != root.name);
    for other in others {
        if !problems.since(&before).any(is_lost) {
            return;
        }
        let mut there = Problems::default();
        let Some(network) = flatten(description, other, &mut Problems::default()) else {
            continue;
        };
        let start = there.mark();
        check((other, &network), &mut there);
        let known = |at: TextPosition| {
            there
                .since(&start)
                .any(|(place, code)| place == at && is_lost((place, code)))
        };
        problems.forget_since(&before, |place, code| {
            is_lost((place, code)) && !known(place)
        });
    }
}

fn is_lost((_, code): (TextPosition, Code)) -> bool {
    matches!(code, Code::UnknownSetting | Code::UnknownPath)
}

/// Features that titin lacks, and that a run would otherwise report too late.
fn checkpoints(description: &Description, problems: &mut Problems) {
    const WHY: &str = "titin takes no snapshots yet";
    if let Some(resume) = description.resume.values().min_by_key(|resume| resume.at) {
        let why =
            format!("{WHY}, so there is none that it could go on from: this run would begin anew");
        let hint = "to begin anew, leave \"resume\" out".to_string();
        problems.error_hint(
            resume.at,
            Code::NotYet,
            "a run cannot be resumed",
            why,
            hint,
        );
    }
    if !description.checkpoints.is_empty() {
        let why = format!("{WHY}: nothing is kept that a later run could go on from");
        let hint = "without \"checkpoints\" the run is the same".to_string();
        problems.warn(
            description.checkpoints.at,
            Code::NotYet,
            "\"checkpoints\" has no effect",
            why,
            hint,
        );
    }
}

/// Gives each component without ports the ports of the implementation. Guessed ports give way to
/// ports that the implementation lists.
fn inherit_ports(description: &mut Description) {
    let mut found: Vec<(Name, Name, Ports)> = Vec::new();
    for model in description.models.values() {
        for component in model.components.values() {
            if let Some(ports) = inherited_ports(description, model, component) {
                found.push((model.name.clone(), component.name.clone(), ports));
            }
        }
    }
    for (model, component, ports) in found {
        let model = description.models.get_mut(&model);
        if let Some(component) = model.and_then(|model| model.components.get_mut(&component)) {
            component.ports = ports.into();
        }
    }
}

/// The ports of a component without listed ports, from the implementation of the component.
fn inherited_ports(
    description: &Description,
    model: &Model,
    component: &Component,
) -> Option<Ports> {
    if !component.ports.values().all(|port| port.guessed) {
        return None;
    }
    let around = [EnclosingModel::innermost(&model.name)];
    let name = description.implementation(&around, component)?;
    let listed = match description.programs.get(name) {
        Some(program) => &program.ports,
        None => &description.models.get(name)?.ports,
    };
    if listed.is_empty() {
        return None;
    }
    let mut ports = listed.clone();
    for (name, port) in component.ports.iter() {
        ports.entry(name.clone()).or_insert_with(|| port.clone());
    }
    Some(ports)
}

/// The models around the components of `inner`, outermost first.
/// `inner` implements `component`.
fn deeper<'d>(
    chain: &[EnclosingModel<'d>],
    component: &Component,
    inner: &'d Model,
) -> Vec<EnclosingModel<'d>> {
    let extended = chain.iter().map(|EnclosingModel { name, path }| {
        let dot = if path.is_empty() { "" } else { "." };
        EnclosingModel {
            name,
            path: format!("{path}{dot}{}", component.name),
        }
    });
    extended
        .chain([EnclosingModel::innermost(&inner.name)])
        .collect()
}
