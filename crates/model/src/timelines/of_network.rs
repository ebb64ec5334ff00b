//! The timelines of a whole network.

use std::collections::HashMap;

use super::analysis::find;
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
    let mut names: Vec<&str> = network.components.iter().map(|c| c.path.as_str()).collect();
    names.push("");
    let mut graph = TimelineGraph::new(names);
    for bundle in &network.bundles {
        let (sender, receiver) = network.ends(bundle);
        let ports = (
            sender.ports.get(&bundle.sender_port),
            receiver.ports.get(&bundle.receiver_port),
        );
        let keeps_step = bundle
            .pattern
            .as_ref()
            .is_none_or(|pattern| pattern.keeps_step());
        if let (Some(sender_port), Some(receiver_port)) = ports {
            let (sender, receiver) = (bundle.sender.index(), bundle.receiver.index());
            if !keeps_step {
                graph.couple(sender, receiver, receiver_port);
                continue;
            }
            let (filters, through, at) =
                (bundle.filters.as_slice(), bundle.through_models, bundle.at);
            graph.links.push(GraphLink {
                sender,
                sender_port,
                receiver,
                receiver_port,
                filters,
                through,
                at,
            });
        }
    }
    for (path, model) in models {
        let prefix = if path.is_empty() {
            String::new()
        } else {
            format!("{path}.")
        };
        // Problems of the declarations were reported when the model was checked.
        declare(&mut graph, model, &prefix, &mut Problems::default());
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
    let mut timelines = Vec::with_capacity(network.components.len());
    for component in 0..network.components.len() {
        let part = graph.usual_part(component);
        timelines.push(match &found.around[component] {
            OuterTimeline::Known(path) => graph.timeline(&[path.as_slice(), &[part]].concat()),
            OuterTimeline::Unknown => graph.timeline(&[part]),
        });
    }
    let mut classes: HashMap<TimelineId, Vec<Timeline>> = HashMap::new();
    for part in 0..graph.parts.len() as TimelineId {
        let (component, own) = &graph.parts[part as usize];
        let path = &timelines[*component];
        let whole = if own.is_root() {
            path.clone()
        } else {
            path.parent()
                .unwrap_or_default()
                .child(format!("{}.{own}", graph.names[*component]))
        };
        classes.entry(graph.find(part)).or_default().push(whole);
    }
    let mut matching: Vec<_> = classes
        .into_values()
        .filter(|class| class.len() > 1)
        .collect();
    matching.sort();
    network.matching_timelines = matching;
    for (component, timeline) in network.components.iter_mut().zip(timelines) {
        component.timeline = timeline;
    }
}
