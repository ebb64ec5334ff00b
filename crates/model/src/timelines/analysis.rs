//! The timeline of every component, and components whose F_INIT ports disagree.

use std::collections::BTreeSet;

use super::calling_order::{callers, order};
use super::graph::{OuterTimeline, TimelineGraph, TimelineId, reducers, repeaters};

/// A link to an F_INIT port, and the timeline of the messages on the link.
pub(super) type Incoming = (usize, Vec<TimelineId>);

/// Timelines, as far as they can be found, and the links that do not fit.
pub(super) struct TimelineAnalysis {
    pub(super) around: Vec<OuterTimeline>,
    pub(super) cycles: Vec<Vec<usize>>,
    /// Components whose F_INIT links come from different timelines.
    pub(super) torn: Vec<(usize, Vec<Incoming>)>,
    /// Links with more reducing filters than the timeline has levels.
    pub(super) over_reduced: BTreeSet<usize>,
}

/// Finds the timeline of every component. With `infer` set, components that exchange messages in
/// each step are united.
pub(super) fn find(graph: &mut TimelineGraph<'_>, infer: bool) -> TimelineAnalysis {
    let callers = callers(graph);
    let (order, cycles) = order(graph, &callers);
    /// Each round unites timelines one level further in; models are never nested this deeply.
    const MOST_ROUNDS: usize = 64;
    let mut found = assign(graph, &callers, &order);
    for _ in 0..MOST_ROUNDS {
        if !infer || !unite_partners(graph, &found.around) {
            break;
        }
        found = assign(graph, &callers, &order);
    }
    found.cycles = cycles;
    found
}

fn assign(
    graph: &mut TimelineGraph<'_>,
    callers: &[Vec<usize>],
    order: &[usize],
) -> TimelineAnalysis {
    let mut found = TimelineAnalysis {
        around: vec![OuterTimeline::Unknown; graph.names.len()],
        cycles: Vec::new(),
        torn: Vec::new(),
        over_reduced: BTreeSet::new(),
    };
    found.around[graph.model()] = OuterTimeline::Known(Vec::new());
    for &component in order {
        let Some(incoming) = incoming(graph, component, &callers[component], &mut found) else {
            continue;
        };
        let first = incoming
            .first()
            .map(|(_, path)| path.clone())
            .unwrap_or_default();
        if incoming.iter().all(|(_, path)| graph.equal(path, &first)) {
            found.around[component] = OuterTimeline::Known(first);
        } else {
            found.torn.push((component, incoming));
        }
    }
    found
}

/// The links to the F_INIT ports of a component, with the timelines that their messages come from;
/// `None` if one of the timelines is unknown.
fn incoming(
    graph: &mut TimelineGraph<'_>,
    component: usize,
    links: &[usize],
    found: &mut TimelineAnalysis,
) -> Option<Vec<Incoming>> {
    let mut incoming = Vec::new();
    let mut unknown = graph.coupled.contains_key(&component);
    for &i in links {
        let link = &graph.links[i];
        unknown |= link.guessed();
        let (sender, port, filters) = (link.sender, link.sender_port, link.filters);
        if repeaters(filters) > 0 {
            continue;
        }
        match graph.messages(sender, port, &found.around) {
            None => unknown = true,
            Some(path) if path.len() < reducers(filters) => {
                found.over_reduced.insert(i);
            }
            Some(mut path) => {
                path.truncate(path.len() - reducers(filters));
                incoming.push((i, path));
            }
        }
    }
    (!unknown).then_some(incoming)
}

/// The links between steps of two components, with the timelines that each link joins.
pub(super) fn partners(
    graph: &mut TimelineGraph<'_>,
    around: &[OuterTimeline],
) -> Vec<(usize, TimelineId, TimelineId)> {
    let mut partners = Vec::new();
    let model = graph.model();
    for i in 0..graph.links.len() {
        let link = &graph.links[i];
        let through = link.through;
        if !link.joins_steps() || link.sender == model || link.receiver == model {
            continue;
        }
        if let Some((x, y)) = graph.step(i, around) {
            partners.push((i, x, y));
            continue;
        }
        let Some((mut a, mut b)) = graph.both_messages(i, around) else {
            continue;
        };
        if through && a.len() == b.len() {
            partners.extend(a.iter().zip(&b).map(|(a, b)| (i, *a, *b)));
        } else if let (Some(x), Some(y)) = (a.pop(), b.pop())
            && graph.equal(&a, &b)
        {
            partners.push((i, x, y));
        }
    }
    partners
}

fn unite_partners(graph: &mut TimelineGraph<'_>, around: &[OuterTimeline]) -> bool {
    let partners = partners(graph, around);
    let changed = partners
        .into_iter()
        .fold(false, |changed, (_, a, b)| graph.unite(a, b) | changed);
    (0..graph.same.len() as TimelineId)
        .for_each(|part| graph.same[part as usize] = graph.find(part));
    changed
}
