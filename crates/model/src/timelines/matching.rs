//! Timelines that a model declares to match.

use std::collections::HashMap;

use super::graph::{GraphLink, TimelineGraph, TimelineId};
use crate::description::{MatchingTimelines, Model};
use crate::names::Name;
use crate::operator::Timeline;
use crate::problem::{Code, Problems, did_you_mean};

/// Unites timelines that the model declares to match. `prefix` is the path of the component that
/// the model implements, if any.
pub(super) fn declare(
    graph: &mut TimelineGraph<'_>,
    model: &Model,
    prefix: &str,
    problems: &mut Problems,
) {
    if model.matching_timelines.is_empty() {
        return;
    }
    add_timelines_of_ports(graph);
    let names = graph.names.iter().enumerate();
    let components: HashMap<&str, usize> = names.map(|(i, name)| (*name, i)).collect();
    for matching in &model.matching_timelines {
        let mut rows: Vec<TimelineRow> = Vec::new();
        for timeline in std::iter::once(&matching.head).chain(&matching.others) {
            let mut row = Vec::new();
            for written in timeline.parts() {
                let part = graph.written_part(&components, &format!("{prefix}{written}"));
                if part.is_none() && prefix.is_empty() {
                    report_unknown(model, matching, timeline, written, problems);
                }
                row.push(part);
            }
            rows.push(row);
        }
        for pair in rows.windows(2) {
            if pair[0].len() != pair[1].len() && prefix.is_empty() {
                report_unequal(matching, problems);
            } else {
                unite_rows(graph, &pair[0], &pair[1]);
            }
        }
    }
}

/// The parts of a written timeline; `None` for a part that is not known.
type TimelineRow = Vec<Option<TimelineId>>;

fn unite_rows(graph: &mut TimelineGraph<'_>, one: &TimelineRow, other: &TimelineRow) {
    for parts in one.iter().zip(other) {
        if let (Some(one), Some(other)) = parts {
            graph.unite(*one, *other);
        }
    }
}

/// Adds the timelines of all ports to the graph, so that declarations find them.
fn add_timelines_of_ports(graph: &mut TimelineGraph<'_>) {
    for i in 0..graph.links.len() {
        let GraphLink {
            sender,
            sender_port,
            receiver,
            receiver_port,
            ..
        } = graph.links[i];
        graph.port_parts(sender, sender_port, &mut Vec::new());
        graph.port_parts(receiver, receiver_port, &mut Vec::new());
    }
}

fn report_unknown(
    model: &Model,
    matching: &MatchingTimelines,
    timeline: &Timeline,
    written: &Name,
    problems: &mut Problems,
) {
    let name = &model.name;
    let why = format!("model \"{name}\" has no component of this name with such a timeline");
    let hint = did_you_mean(written, model.components.keys().map(|name| name.as_str()));
    let what = format!("timeline \"{timeline}\" does not exist");
    problems.error_hint(matching.at, Code::UnknownComponent, what, why, hint);
}

fn report_unequal(matching: &MatchingTimelines, problems: &mut Problems) {
    let why = "one of them is nested more deeply, so it has more points";
    let what = format!(
        "the timelines that are to match \"{}\" cannot",
        matching.head
    );
    problems.warn(matching.at, Code::Rate, what, why, None);
}
