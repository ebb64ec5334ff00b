//! Paths that begin with a model's name, as under `resources`, `resume` and
//! `custom_implementations`.

use std::collections::HashSet;

use indexmap::IndexMap;

use super::deeper;
use crate::description::{Component, Description, Model};
use crate::names::{Name, Reference};
use crate::network::Network;
use crate::options::LoadOptions;
use crate::problem::{Code, Problems, TextPosition, did_you_mean, either, listing, nearest};
use crate::roots::EnclosingModel;

/// Puts the model's name before paths under `resources` and `resume` that lack the name, where only
/// one component can be meant. Older files omit the name under `resources`, and MUSCLE3 omits it
/// under `resume`.
pub(super) fn complete(
    description: &mut Description,
    options: &LoadOptions,
    problems: &mut Problems,
) {
    let resources = std::mem::take(&mut description.resources);
    let resume = std::mem::take(&mut description.resume);
    // Nested models are not run alone, unless the user asks for one.
    let mut roots = description.roots();
    let asked = options
        .model
        .as_ref()
        .and_then(|name| description.models.get(name.as_str()));
    roots.extend(asked.filter(|asked| roots.iter().all(|root| root.name != asked.name)));
    let resources = completed(
        description,
        &roots,
        resources,
        |r| r.at,
        "resources",
        problems,
    );
    let resume = completed(description, &roots, resume, |r| r.at, "resume", problems);
    (description.resources, description.resume) = (resources, resume);
}

fn completed<T>(
    description: &Description,
    roots: &[&Model],
    given: IndexMap<Name, T>,
    at: impl Fn(&T) -> TextPosition,
    section: &str,
    problems: &mut Problems,
) -> IndexMap<Name, T> {
    let mut all: IndexMap<Name, T> = IndexMap::with_capacity(given.len());
    let mut short = Vec::new();
    for (path, item) in given {
        let Some(full) = full_path(description, roots, &path, at(&item), problems) else {
            continue;
        };
        if full != path {
            short.push((path, full.clone(), at(&item)));
        }
        let Some(other) = all.get(&full) else {
            all.insert(full, item);
            continue;
        };
        // If two files give the same path, in either notation, the later file counts.
        if at(other).file == at(&item).file {
            let why = format!(
                "it is there with the model's name too, in line {}",
                at(other).line
            );
            let what = format!("\"{full}\" is twice under \"{section}\"");
            problems.error(at(&item), Code::Duplicate, what, why);
        } else if at(other).file < at(&item).file {
            all.insert(full, item);
        }
    }
    warn_of_short_paths(&short, section, problems);
    all
}

/// Warns once of all paths under a section that lack the name of the model. Each path comes with the full
/// path and its place.
fn warn_of_short_paths(
    short: &[(Name, Name, TextPosition)],
    section: &str,
    problems: &mut Problems,
) {
    let [(path, full, at), rest @ ..] = short else {
        return;
    };
    let others = match rest.len() {
        0 => String::new(),
        1 => ", and 1 more path likewise".to_owned(),
        more => format!(", and {more} more paths likewise"),
    };
    let what = format!("\"{path}\" is taken for \"{full}\"{others}");
    let why = format!("paths under \"{section}\" begin with the name of a model");
    problems.warn(
        *at,
        Code::Incomplete,
        what,
        why,
        format!("write \"{full}\""),
    );
}

/// The path with the model's name, completed if the name is missing and one component can be meant.
/// A path that leads to no component stays as given. `None` if several components can be meant.
fn full_path(
    description: &Description,
    roots: &[&Model],
    path: &Name,
    at: TextPosition,
    problems: &mut Problems,
) -> Option<Name> {
    let (component, _) = path.split_at(path.find('[').unwrap_or(path.len()));
    if prefixed(description, component).is_some_and(|(model, rest)| leads(description, model, rest))
    {
        return Some(path.clone());
    }
    let within = roots.iter();
    let within = within.filter(|model| leads(description, model, component));
    let full = within.map(|model| format!("{}.{path}", model.name).into());
    match full.collect::<Vec<Name>>().as_slice() {
        [] => Some(path.clone()),
        [full] => Some(full.clone()),
        several => {
            report_several(path, several, at, problems);
            None
        }
    }
}

/// Whether a path within a model leads to a component.
fn leads(description: &Description, model: &Model, path: &str) -> bool {
    matches!(walk(description, model, path), PathTarget::Component(..))
}

fn report_several(path: &Name, several: &[Name], at: TextPosition, problems: &mut Problems) {
    let what = format!("\"{path}\" leads to several components");
    let paths = listing(several.iter().map(Name::as_str));
    let why = format!("it could be each of {paths}");
    let hint = "write one of them, with the name of the model".to_string();
    problems.error_hint(at, Code::UnknownPath, what, why, hint);
}

/// The model at the beginning of a path, and the rest of the path. The name of a model may have
/// dots, so the longest match counts.
fn prefixed<'d, 'p>(description: &'d Description, path: &'p str) -> Option<(&'d Model, &'p str)> {
    let fits = description.models.values().filter_map(|model| {
        let rest = path.strip_prefix(model.name.as_str())?.strip_prefix('.')?;
        Some((model, rest))
    });
    fits.max_by_key(|(model, _)| model.name.len())
}

/// The component at a path that begins with a model's name; reports a path that leads to no
/// component.
pub(super) fn find<'d>(
    description: &'d Description,
    path: &str,
    at: TextPosition,
    section: &str,
    problems: &mut Problems,
) -> Option<&'d Component> {
    let what = format!("\"{path}\" leads to no component");
    let Some((model, rest)) = prefixed(description, path) else {
        let why = format!("paths under \"{section}\" begin with the name of a model");
        let hint = meant_path(description, path);
        problems.error_hint(at, Code::UnknownPath, what, why, hint);
        return None;
    };
    match walk(description, model, rest) {
        PathTarget::Component(component, _) => Some(component),
        PathTarget::Lost(model, rest) => {
            let names = || model.components.keys().map(Name::as_str);
            let hint = did_you_mean(&rest, names())
                .or_else(|| did_you_mean(rest.split('.').next()?, names()))
                .or_else(|| Some(format!("there are {}", listing(names()))));
            let why = format!("model \"{}\" has no component \"{rest}\"", model.name);
            problems.error_hint(at, Code::UnknownPath, what, why, hint);
            None
        }
    }
}

/// The hint for a path that begins with no model's name.
fn meant_path(description: &Description, path: &str) -> String {
    let mut models = description.models.values();
    if let Some(model) = models.find(|model| leads(description, model, path)) {
        return format!("did you mean \"{}.{path}\"?", model.name);
    }
    if let Some(model) = description.models.get(path) {
        let components = model.components.keys();
        let paths: Vec<String> = components.map(|name| format!("{path}.{name}")).collect();
        let paths = either(paths.iter().map(String::as_str));
        return format!("it is a model; write the path of a component: {paths}");
    }
    let names = || description.models.keys().map(Name::as_str);
    match similar_path(description, path) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => format!("the models are {}", listing(names())),
    }
}

/// A path like the given one, with a name of a model or of a component in place of the first name.
fn similar_path(description: &Description, path: &str) -> Option<String> {
    let (first, rest) = path.split_at(path.find('.').unwrap_or(path.len()));
    let models = description.models.keys().map(Name::as_str);
    if let Some(near) = nearest(first, models).filter(|_| !rest.is_empty()) {
        return Some(format!("{near}{rest}"));
    }
    description.models.values().find_map(|model| {
        let near = nearest(first, model.components.keys().map(Name::as_str))?;
        Some(format!("{}.{near}{rest}", model.name))
    })
}

/// Checks the paths under `resources`.
pub(super) fn resources(description: &Description, network: &Network, problems: &mut Problems) {
    let roots = description.roots();
    let roots: HashSet<&Name> = roots.into_iter().map(|model| &model.name).collect();
    for (path, resources) in &description.resources {
        if problems.is_full() {
            return;
        }
        let at = resources.at;
        if find(description, path, at, "resources", problems).is_none() {
            continue;
        }
        match prefixed(description, path) {
            Some((model, inner)) if model.name == network.model => {
                check_resources_of_model(network, path, inner, at, problems);
            }
            // Another model that could be run has resources too.
            Some((model, inner)) if !roots.contains(&model.name) => {
                report_inner_model(network, path, model, inner, at, problems);
            }
            _ => {}
        }
    }
}

/// Reports resources of a component that a model implements.
fn check_resources_of_model(
    network: &Network,
    path: &Name,
    inner: &str,
    at: TextPosition,
    problems: &mut Problems,
) {
    if network.by_path.contains_key(inner) {
        return;
    }
    let below = format!("{inner}.");
    let mut components = network.components.iter();
    if let Some(part) = components.find(|component| component.path.starts_with(&below)) {
        let what = format!("resources for \"{path}\" have no effect");
        let why = format!(
            "\"{path}\" is implemented by a model; its components have resources of their own"
        );
        let hint = format!("write \"{}.{}\"", network.model, part.path);
        problems.error_hint(at, Code::UnknownPath, what, why, hint);
    }
}

fn report_inner_model(
    network: &Network,
    path: &Name,
    inner_model: &Model,
    inner: &str,
    at: TextPosition,
    problems: &mut Problems,
) {
    let (name, model) = (&inner_model.name, &network.model);
    let what = format!("resources for \"{path}\" have no effect");
    let why = format!("model \"{name}\" is run inside \"{model}\", not by itself");
    let hint = format!("write the path from \"{model}\" on, as in {model}.COMPONENT.{inner}");
    problems.warn(at, Code::UnknownPath, what, why, hint);
}

/// Checks the paths under `resume`.
pub(super) fn resume(description: &Description, problems: &mut Problems) {
    for (path, resume) in &description.resume {
        // The path may end with the indices of an instance.
        let component = path.split('[').next().unwrap_or_default();
        let Some(found) = find(description, component, resume.at, "resume", problems) else {
            continue;
        };
        let indices = path
            .parse::<Reference>()
            .map(|r| r.parts().len())
            .unwrap_or(0);
        let depth = component.split('.').count();
        if indices > depth && found.multiplicity.is_empty() {
            let why = format!("component \"{component}\" has one instance");
            problems.error(
                resume.at,
                Code::UnknownPath,
                format!("there is no instance \"{path}\""),
                why,
            );
        }
    }
}

/// The target of a path of components.
pub(super) enum PathTarget<'d> {
    /// A component, and the model that implements the component, if a model does.
    Component(&'d Component, Option<&'d Model>),
    /// The deepest model on the path, and the rest of the path, which leads nowhere in the model.
    Lost(&'d Model, String),
}

/// Follows a dotted path from component to component, through the models that implement them.
pub(super) fn walk<'d>(
    description: &'d Description,
    root: &'d Model,
    path: &str,
) -> PathTarget<'d> {
    let mut model = root;
    let mut chain = vec![EnclosingModel::innermost(&root.name)];
    let mut rest = path;
    loop {
        // The name of a component may have dots, so the longest match counts.
        let mut ends = rest
            .char_indices()
            .filter(|(_, c)| *c == '.')
            .map(|(i, _)| i)
            .chain([rest.len()]);
        let fits = ends.rfind(|end| model.components.contains_key(&rest[..*end]));
        let Some(end) = fits else {
            return PathTarget::Lost(model, rest.to_string());
        };
        let component = &model.components[&rest[..end]];
        let implementation = description.implementation(&chain, component);
        let inner = implementation.and_then(|name| description.models.get(name));
        if end == rest.len() {
            return PathTarget::Component(component, inner);
        }
        let Some(inner) =
            inner.filter(|inner| chain.iter().all(|around| *around.name != inner.name))
        else {
            return PathTarget::Lost(model, rest.to_string());
        };
        chain = deeper(&chain, component, inner);
        model = inner;
        rest = &rest[end + 1..];
    }
}
