//! The sections that both versions share: settings, resources, checkpoints, resume; and custom
//! implementations.

use std::path::PathBuf;

use indexmap::IndexMap;

use super::components::OF_MODELS;
use super::fields::{dotted, entries};
use super::{Fields, count, number, odd_number, text, titin_section, truth, wrong_type};
use crate::description::{
    CheckpointRule, Checkpoints, CustomImplementation, ResourceRequest, Resources, Resume,
};
use crate::document::Document;
use crate::names::{Name, Reference};
use crate::problem::{Code, Problems, TextPosition};
use crate::settings::{Setting, Settings};
use crate::yaml::{MapEntry, Node, NodeKind, Scalar, ScalarType, shorten};

/// Reads the sections that both versions share.
pub(super) fn shared(document: &mut Document, fields: &mut Fields<'_>, problems: &mut Problems) {
    if let Some(node) = fields.take("settings") {
        document.settings = settings(node, problems);
    }
    if let Some(node) = fields.take("resources") {
        document.resources = resources(node, problems);
    }
    if let Some(node) = fields.take("checkpoints") {
        document.checkpoints = checkpoints(node, problems);
    }
    if let Some(node) = fields.take("resume") {
        document.resume = resume(node, problems);
    }
    if let Some(node) = fields.take("titin") {
        document.extras = titin_section::titin_section(node, problems);
    }
}

/// Reports the keys of a file that are unknown or belong to a model; `why` and `hint` are about the
/// latter.
pub(super) fn finish(
    document: &mut Document,
    mut fields: Fields<'_>,
    why: &str,
    hint: impl Fn(&str) -> String,
    problems: &mut Problems,
) {
    if fields.misplaced(&OF_MODELS, why, hint, problems) {
        let models = document.models.values_mut();
        models.for_each(|model| model.faulty = true);
    }
    if fields.finish(problems) {
        problems.lost_section();
    }
}

/// Reads `settings:`.
pub(super) fn settings(node: &Node, problems: &mut Problems) -> Settings {
    let mut settings = Settings::default();
    for entry in entries(node, "\"settings\"", problems).unwrap_or_default() {
        add_setting(&mut settings, entry, problems);
    }
    settings
}

/// Reads one setting.
pub(super) fn setting(entry: &MapEntry, problems: &mut Problems) -> Settings {
    let mut settings = Settings::default();
    add_setting(&mut settings, entry, problems);
    settings
}

fn add_setting(settings: &mut Settings, entry: &MapEntry, problems: &mut Problems) {
    if let Some(path) = reference(entry, "a setting", problems)
        && let Some(value) = value(&path, &entry.value, problems)
    {
        settings.set_at(path, value, entry.at);
    }
}

/// The key of an entry as a reference; reports a key that is none. `what` says what the key names.
fn reference(entry: &MapEntry, what: &str, problems: &mut Problems) -> Option<Name> {
    match entry.key.parse::<Reference>() {
        Ok(path) => Some(Name::from(path.to_string())),
        Err(error) => {
            let what = format!("\"{}\" cannot be {what}", shorten(&entry.key));
            problems.error(entry.at, Code::BadName, what, error.to_string());
            None
        }
    }
}

fn value(path: &str, node: &Node, problems: &mut Problems) -> Option<Setting> {
    let what = format!("setting \"{path}\"");
    match node.kind() {
        NodeKind::Scalar(scalar) => single_value(scalar, node.at, &what, problems),
        NodeKind::List(rows) if rows.iter().any(is_list) => table(rows, &what, problems),
        NodeKind::List(items) => list_of_numbers(items, &what, problems),
        _ => {
            let wanted = "a number, a text, true or false, or a list of numbers";
            wrong_type(node, &what, wanted, problems)
        }
    }
}

fn is_list(node: &Node) -> bool {
    matches!(node.kind(), NodeKind::List(_))
}

fn single_value(
    scalar: &Scalar,
    at: TextPosition,
    what: &str,
    problems: &mut Problems,
) -> Option<Setting> {
    match scalar.of {
        ScalarType::Bool(b) => Some(Setting::Bool(b)),
        ScalarType::Int(i) => Some(Setting::Int(i)),
        ScalarType::Float(x) => Some(Setting::Float(x)),
        ScalarType::Text => Some(Setting::Str(scalar.text.clone())),
        ScalarType::OddNumber => {
            let hint = "write a plain number, or quotes around it if it is a text".to_string();
            let what = format!("{what} is not clear");
            problems.error_hint(at, Code::BadValue, what, odd_number(scalar), hint);
            None
        }
        ScalarType::Null => {
            let why = "a setting has a value; leave the line out to use the program's own";
            problems.error(at, Code::WrongType, format!("{what} has no value"), why);
            None
        }
    }
}

fn table(rows: &[Node], what: &str, problems: &mut Problems) -> Option<Setting> {
    let rows = rows.iter().map(|row| match row.kind() {
        NodeKind::List(cells) => numbers(cells, what, problems),
        _ => wrong_type(row, what, "a list of numbers in each row", problems),
    });
    Some(Setting::Table(rows.collect::<Option<_>>()?))
}

/// Whole numbers, if all are; else numbers.
fn list_of_numbers(items: &[Node], what: &str, problems: &mut Problems) -> Option<Setting> {
    let whole = |item: &Node| match item.kind() {
        NodeKind::Scalar(Scalar {
            of: ScalarType::Int(i),
            ..
        }) => Some(*i),
        _ => None,
    };
    if let Some(integers) = items.iter().map(whole).collect() {
        return Some(Setting::Ints(integers));
    }
    numbers(items, what, problems).map(Setting::Floats)
}

fn numbers(items: &[Node], what: &str, problems: &mut Problems) -> Option<Vec<f64>> {
    items
        .iter()
        .map(|item| number(item, what, problems))
        .collect()
}

const MOST_CORES: u64 = 100_000_000;

/// Reads `resources:`.
pub(super) fn resources(node: &Node, problems: &mut Problems) -> IndexMap<Name, Resources> {
    let mut all = IndexMap::new();
    for entry in entries(node, "\"resources\"", problems).unwrap_or_default() {
        let Some(path) = dotted(&entry.key, "the path of a component", entry.at, problems) else {
            continue;
        };
        if let Some(need) = need(&path, entry.at, &entry.value, problems) {
            all.insert(path, Resources { need, at: entry.at });
        }
    }
    all
}

fn need(
    path: &str,
    at: TextPosition,
    node: &Node,
    problems: &mut Problems,
) -> Option<ResourceRequest> {
    let mut fields = Fields::new(node, format!("resources of \"{path}\""), problems)?;
    let nodes = RESOURCE_KEYS.map(|key| (key, fields.take(key)));
    fields.finish(problems);
    // A number that cannot be read is `Some(None)`.
    let given = nodes.map(|(key, node)| {
        node.map(|node| count(node, &format!("\"{key}\""), 1, MOST_CORES, problems))
    });
    if given.contains(&Some(None)) {
        return None;
    }
    let request = request_of(given.map(|number| Some(number?? as u32)));
    if request.is_none() {
        let what = format!("the resources of \"{path}\" do not fit together");
        let why = "write \"threads\", or \"mpi_processes\" (and \"threads_per_mpi_process\"), \
                   or \"nodes\" and \"mpi_processes_per_node\"";
        problems.error(at, Code::Resources, what, why);
    }
    request
}

const RESOURCE_KEYS: [&str; 5] = [
    "threads",
    "mpi_processes",
    "threads_per_mpi_process",
    "nodes",
    "mpi_processes_per_node",
];

/// The request that the numbers under [`RESOURCE_KEYS`] make; `None` if they do not fit together.
fn request_of(given: [Option<u32>; 5]) -> Option<ResourceRequest> {
    match given {
        [Some(n), None, None, None, None] => Some(ResourceRequest::Threads(n)),
        [None, Some(processes), threads, None, None] => Some(ResourceRequest::MpiCores {
            processes,
            threads_per_process: threads.unwrap_or(1),
        }),
        [None, None, threads, Some(nodes), Some(processes_per_node)] => {
            Some(ResourceRequest::MpiNodes {
                nodes,
                processes_per_node,
                threads_per_process: threads.unwrap_or(1),
            })
        }
        _ => None,
    }
}

/// Reads `checkpoints:`.
pub(super) fn checkpoints(node: &Node, problems: &mut Problems) -> Checkpoints {
    let mut checkpoints = Checkpoints {
        at: node.at,
        ..Checkpoints::default()
    };
    let Some(mut fields) = Fields::new(node, "\"checkpoints\"", problems) else {
        return checkpoints;
    };
    if let Some(node) = fields.take("at_end") {
        checkpoints.at_end = truth(node, "\"at_end\"", problems).unwrap_or(false);
    }
    if let Some(node) = fields.take("wallclock_time") {
        checkpoints.wallclock_time = rules(node, "\"wallclock_time\"", problems);
    }
    if let Some(node) = fields.take("simulation_time") {
        checkpoints.simulation_time = rules(node, "\"simulation_time\"", problems);
    }
    fields.finish(problems);
    checkpoints
}

fn rules(node: &Node, what: &str, problems: &mut Problems) -> Vec<CheckpointRule> {
    match node.kind() {
        NodeKind::List(items) => items
            .iter()
            .filter_map(|item| rule(item, what, problems))
            .collect(),
        _ => wrong_type(node, what, "a list of rules such as {every: 10}", problems)
            .unwrap_or_default(),
    }
}

fn rule(node: &Node, what: &str, problems: &mut Problems) -> Option<CheckpointRule> {
    let mut fields = Fields::new(node, format!("a rule of {what}"), problems)?;
    let [at, every, start, stop] = ["at", "every", "start", "stop"].map(|key| fields.take(key));
    fields.finish(problems);
    let mut time = |node: Option<&Node>, key: &str| match node {
        None => Some(None),
        Some(node) => number(node, key, problems).map(Some),
    };
    let (start, stop) = (time(start, "\"start\"")?, time(stop, "\"stop\"")?);
    match (at, every) {
        (Some(at), None) if start.is_none() && stop.is_none() => {
            let mut times = numbers(at.items(), "\"at\"", problems)?;
            times.sort_by(f64::total_cmp);
            Some(CheckpointRule::At(times))
        }
        (None, Some(every)) => rule_every(every, start, stop, problems),
        _ => {
            let why = "a rule is {at: [times]}, or {every: distance, start: time, stop: time}";
            let what = "this rule for checkpoints makes no sense";
            problems.error(node.at, Code::BadValue, what, why);
            None
        }
    }
}

/// The rule for checkpoints at equal distances.
fn rule_every(
    node: &Node,
    start: Option<f64>,
    stop: Option<f64>,
    problems: &mut Problems,
) -> Option<CheckpointRule> {
    let every = number(node, "\"every\"", problems)?;
    if every.is_nan() || every <= 0.0 {
        let why = format!("the distance between checkpoints is more than 0; found {every}");
        problems.error(node.at, Code::BadValue, "\"every\" is out of range", why);
        return None;
    }
    if let (Some(start), Some(stop)) = (start, stop)
        && start > stop
    {
        let what = "this rule stops before it starts";
        let why = format!("\"start\" is {start} and \"stop\" is {stop}");
        problems.error(node.at, Code::BadValue, what, why);
        return None;
    }
    Some(CheckpointRule::Every { every, start, stop })
}

/// Reads `resume:`.
pub(super) fn resume(node: &Node, problems: &mut Problems) -> IndexMap<Name, Resume> {
    let mut all = IndexMap::new();
    for entry in entries(node, "\"resume\"", problems).unwrap_or_default() {
        // The path may end with the index of an instance.
        let Some(path) = reference(entry, "the path of a component", problems) else {
            continue;
        };
        let what = format!("the snapshot of \"{path}\"");
        if let Some(file) = text(&entry.value, &what, problems) {
            let (snapshot, at) = (PathBuf::from(file), entry.at);
            all.insert(path, Resume { snapshot, at });
        }
    }
    all
}

/// Reads `custom_implementations:`.
pub(super) fn custom_implementations(
    node: &Node,
    problems: &mut Problems,
) -> IndexMap<Name, CustomImplementation> {
    let all = entries(node, "\"custom_implementations\"", problems).unwrap_or_default();
    all.iter()
        .filter_map(|entry| custom_implementation(entry, problems))
        .collect()
}

fn custom_implementation(
    entry: &MapEntry,
    problems: &mut Problems,
) -> Option<(Name, CustomImplementation)> {
    let path = dotted(&entry.key, "the path of a component", entry.at, problems)?;
    let what = "an implementation";
    let implementation = match entry.value.is_null() {
        true => None,
        false => {
            let written = text(&entry.value, what, problems)?;
            Some(dotted(&written, what, entry.value.at, problems)?)
        }
    };
    let at = entry.at;
    Some((path, CustomImplementation { implementation, at }))
}
