//! The timelines of a whole network.

use std::collections::HashMap;

use super::analysis::{TimelineAnalysis, find};
use super::graph::{GraphLink, OuterTimeline, TimelineGraph, TimelineId};
use super::last_cycle::report_late;
use super::matching::declare;
use super::report::{report_cycle, report_links, report_torn};
use crate::description::Model;
use crate::network::Network;
use crate::operator::Timeline;
use crate::problem::Problems;

/// Fills in the timelines of a network, and reports conduits between models that do not fit.
pub(crate) fn of_network(
    network: &mut Network,
    models: &[(String, &Model)],
    problems: &mut Problems,
) {
    let mut graph = graph_of(network);
    for (path, model) in models {
        let dot = if path.is_empty() { "" } else { "." };
        // Problems of the declarations were reported when the model was checked.
        declare(
            &mut graph,
            model,
            &format!("{path}{dot}"),
            &mut Problems::default(),
        );
    }
    let found = find(&mut graph, true);
    // Each model fits by itself; only here can one see whether the models fit together.
    if models.len() > 1 && problems.errors() == 0 {
        for cycle in &found.cycles {
            report_cycle(&graph, cycle, problems);
        }
        report_torn(&graph, &found, problems);
        report_links(&mut graph, &found, problems);
    }
    if problems.errors() == 0 {
        report_late(&mut graph, &found, problems);
    }
    let timelines = timelines_of(&mut graph, &found);
    let matching = matching_timelines(&graph, &timelines);
    network.matching_timelines = matching;
    for (component, timeline) in network.components.iter_mut().zip(timelines) {
        component.timeline = timeline;
    }
}

fn graph_of(network: &Network) -> TimelineGraph<'_> {
    let mut names: Vec<&str> = network.components.iter().map(|c| c.path.as_str()).collect();
    names.push("");
    let mut graph = TimelineGraph::new(names);
    for bundle in &network.bundles {
        let (sender, receiver) = network.ends(bundle);
        let sender_port = sender.ports.get(&bundle.sender_port);
        let receiver_port = receiver.ports.get(&bundle.receiver_port);
        let (Some(sender_port), Some(receiver_port)) = (sender_port, receiver_port) else {
            continue;
        };
        let (sender, receiver) = (bundle.sender.index(), bundle.receiver.index());
        let link = GraphLink {
            sender,
            sender_port,
            receiver,
            receiver_port,
            filters: bundle.filters.as_slice(),
            through: bundle.through_models,
            at: bundle.at,
        };
        graph.add(link, bundle.pattern.as_deref());
    }
    graph
}

/// The timeline of each component's steps.
fn timelines_of(graph: &mut TimelineGraph<'_>, found: &TimelineAnalysis) -> Vec<Timeline> {
    (0..graph.model())
        .map(|component| {
            let own = graph.usual_part(component);
            match &found.around[component] {
                OuterTimeline::Known(path) => graph.timeline(&[path.as_slice(), &[own]].concat()),
                OuterTimeline::Unknown => graph.timeline(&[own]),
            }
        })
        .collect()
}

/// The sets of timelines with the same points.
fn matching_timelines(graph: &TimelineGraph<'_>, timelines: &[Timeline]) -> Vec<Vec<Timeline>> {
    let mut classes: HashMap<TimelineId, Vec<Timeline>> = HashMap::new();
    for part in 0..graph.parts.len() as TimelineId {
        let (component, own) = &graph.parts[part as usize];
        let path = &timelines[*component];
        let whole = if own.is_root() {
            path.clone()
        } else {
            let outer = path.parent().unwrap_or_default();
            outer.child(format!("{}.{own}", graph.names[*component]))
        };
        classes.entry(graph.find(part)).or_default().push(whole);
    }
    let mut matching: Vec<_> = classes
        .into_values()
        .filter(|class| class.len() > 1)
        .collect();
    matching.sort();
    matching
}
