//! The sections that both versions share: settings, resources, checkpoints, resume; and custom
//! implementations.

use std::path::PathBuf;

use indexmap::IndexMap;

use super::fields::{dotted, entries};
use super::{Fields, count, number, odd_number, text, titin_section, truth, wrong_type};
use crate::description::{
    CheckpointRule, Checkpoints, CustomImplementation, ResourceRequest, Resources, Resume,
};
use crate::document::Document;
use crate::names::{Name, Reference};
use crate::problem::{Code, Problems, TextPosition};
use crate::settings::{Setting, Settings};
use crate::yaml::{Node, NodeKind, ScalarType, shorten};

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

/// Reads `settings:`.
pub(super) fn settings(node: &Node, problems: &mut Problems) -> Settings {
    let mut settings = Settings::default();
    for entry in entries(node, "\"settings\"", problems).unwrap_or_default() {
        let path = match entry.key.parse::<Reference>() {
            Ok(path) => Name::from(path.to_string()),
            Err(error) => {
                let what = format!("\"{}\" cannot be a setting", shorten(&entry.key));
                problems.error(entry.at, Code::BadName, what, error.to_string());
                continue;
            }
        };
        if let Some(value) = value(&path, &entry.value, problems) {
            settings.set_at(path, value, entry.at);
        }
    }
    settings
}

fn value(path: &str, node: &Node, problems: &mut Problems) -> Option<Setting> {
    let what = format!("setting \"{path}\"");
    match node.kind() {
        NodeKind::Scalar(scalar) => match scalar.of {
            ScalarType::Bool(b) => Some(Setting::Bool(b)),
            ScalarType::Int(i) => Some(Setting::Int(i)),
            ScalarType::Float(x) => Some(Setting::Float(x)),
            ScalarType::Text => Some(Setting::Str(scalar.text.clone())),
            ScalarType::OddNumber => {
                let hint = "write a plain number, or quotes around it if it is a text".to_string();
                let what = format!("{what} is not clear");
                problems.error_hint(node.at, Code::BadValue, what, odd_number(scalar), hint);
                None
            }
            ScalarType::Null => {
                let why = "a setting has a value; leave the line out to use the program's own";
                problems.error(
                    node.at,
                    Code::WrongType,
                    format!("{what} has no value"),
                    why,
                );
                None
            }
        },
        NodeKind::List(items)
            if items
                .iter()
                .any(|item| matches!(item.kind(), NodeKind::List(_))) =>
        {
            let rows = items.iter().map(|row| match row.kind() {
                NodeKind::List(cells) => cells
                    .iter()
                    .map(|cell| number(cell, &what, problems))
                    .collect(),
                _ => wrong_type(row, &what, "a list of numbers in each row", problems),
            });
            Some(Setting::Table(rows.collect::<Option<_>>()?))
        }
        NodeKind::List(items) => {
            let whole = |item: &Node| match item.kind() {
                NodeKind::Scalar(scalar) => {
                    if let ScalarType::Int(i) = scalar.of {
                        Some(i)
                    } else {
                        None
                    }
                }
                _ => None,
            };
            if let Some(integers) = items.iter().map(whole).collect() {
                return Some(Setting::Ints(integers));
            }
            let floats: Option<_> = items
                .iter()
                .map(|item| number(item, &what, problems))
                .collect();
            floats.map(Setting::Floats)
        }
        _ => wrong_type(
            node,
            &what,
            "a number, a text, true or false, or a list of numbers",
            problems,
        ),
    }
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
    let keys = [
        "threads",
        "mpi_processes",
        "threads_per_mpi_process",
        "nodes",
        "mpi_processes_per_node",
    ];
    let nodes = keys.map(|key| fields.take(key));
    fields.finish(problems);
    let mut faulty = false;
    let given = [0, 1, 2, 3, 4].map(|i| {
        let n =
            nodes[i].map(|node| count(node, &format!("\"{}\"", keys[i]), 1, MOST_CORES, problems));
        faulty |= n == Some(None);
        n.flatten().map(|n| n as u32)
    });
    if faulty {
        return None;
    }
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
        _ => {
            let why = "write \"threads\", or \"mpi_processes\" (and \"threads_per_mpi_process\"), \
                       or \"nodes\" and \"mpi_processes_per_node\"";
            problems.error(
                at,
                Code::Resources,
                format!("the resources of \"{path}\" do not fit together"),
                why,
            );
            None
        }
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
            let mut times = match at.kind() {
                NodeKind::List(items) => items
                    .iter()
                    .map(|item| number(item, "\"at\"", problems))
                    .collect::<Option<Vec<_>>>()?,
                _ => vec![number(at, "\"at\"", problems)?],
            };
            times.sort_by(f64::total_cmp);
            Some(CheckpointRule::At(times))
        }
        (None, Some(node)) => {
            let every = number(node, "\"every\"", problems)?;
            if every.is_nan() || every <= 0.0 {
                let why = format!("the distance between checkpoints is more than 0; found {every}");
                problems.error(node.at, Code::BadValue, "\"every\" is out of range", why);
                return None;
            }
            if let (Some(start), Some(stop)) = (start, stop)
                && start > stop
            {
                let why = format!("\"start\" is {start} and \"stop\" is {stop}");
                problems.error(
                    node.at,
                    Code::BadValue,
                    "this rule stops before it starts",
                    why,
                );
                return None;
            }
            Some(CheckpointRule::Every { every, start, stop })
        }
        _ => {
            let why = "a rule is {at: [times]}, or {every: distance, start: time, stop: time}";
            problems.error(
                node.at,
                Code::BadValue,
                "this rule for checkpoints makes no sense",
                why,
            );
            None
        }
    }
}

/// Reads `resume:`.
pub(super) fn resume(node: &Node, problems: &mut Problems) -> IndexMap<Name, Resume> {
    let mut all = IndexMap::new();
    for entry in entries(node, "\"resume\"", problems).unwrap_or_default() {
        // The path may end with the index of an instance.
        let path = match entry.key.parse::<Reference>() {
            Ok(path) => Name::from(path.to_string()),
            Err(error) => {
                let what = format!(
                    "\"{}\" cannot be the path of a component",
                    shorten(&entry.key)
                );
                problems.error(entry.at, Code::BadName, what, error.to_string());
                continue;
            }
        };
        if let Some(file) = text(
            &entry.value,
            &format!("the snapshot of \"{path}\""),
            problems,
        ) {
            all.insert(
                path,
                Resume {
                    snapshot: PathBuf::from(file),
                    at: entry.at,
                },
            );
        }
    }
    all
}

/// Reads `custom_implementations:`.
pub(super) fn custom_implementations(
    node: &Node,
    problems: &mut Problems,
) -> IndexMap<Name, CustomImplementation> {
    let mut all = IndexMap::new();
    for entry in entries(node, "\"custom_implementations\"", problems).unwrap_or_default() {
        let Some(path) = dotted(&entry.key, "the path of a component", entry.at, problems) else {
            continue;
        };
        let implementation = if entry.value.is_null() {
            None
        } else {
            let Some(written) = text(&entry.value, "an implementation", problems) else {
                continue;
            };
            let Some(name) = dotted(&written, "an implementation", entry.value.at, problems) else {
                continue;
            };
            Some(name)
        };
        all.insert(
            path,
            CustomImplementation {
                implementation,
                at: entry.at,
            },
        );
    }
    all
}
