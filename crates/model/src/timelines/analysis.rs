//! The timeline of every component, and components whose F_INIT ports disagree.

use std::collections::BTreeSet;

use super::calling_order::{callers, order};
use super::graph::{GraphLink, OuterTimeline, TimelineGraph, TimelineId};
use crate::filter::Filter;
use crate::operator::Operator;

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

pub(super) fn reducers(filters: &[Filter]) -> usize {
    filters.iter().filter(|f| f.kind.reduces()).count()
}

pub(super) fn repeaters(filters: &[Filter]) -> usize {
    filters.iter().filter(|f| f.kind.repeats()).count()
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
    let mut around = vec![OuterTimeline::Unknown; graph.names.len()];
    around[graph.model()] = OuterTimeline::Known(Vec::new());
    let (mut torn, mut over_reduced) = (Vec::new(), BTreeSet::new());
    for component in order {
        let mut incoming: Vec<Incoming> = Vec::new();
        let mut unknown = graph.coupled.contains_key(component);
        for i in &callers[*component] {
            let (sender, port, filters) = {
                let link = &graph.links[*i];
                unknown |= link.guessed();
                (link.sender, link.sender_port, link.filters)
            };
            if repeaters(filters) > 0 {
                continue;
            }
            match graph.messages(sender, port, &around) {
                None => unknown = true,
                Some(path) if path.len() < reducers(filters) => {
                    over_reduced.insert(*i);
                }
                Some(mut path) => {
                    path.truncate(path.len() - reducers(filters));
                    incoming.push((*i, path));
                }
            }
        }
        let first = incoming
            .first()
            .map(|(_, path)| path.clone())
            .unwrap_or_default();
        if unknown {
            continue;
        }
        if incoming.iter().all(|(_, path)| graph.equal(path, &first)) {
            around[*component] = OuterTimeline::Known(first);
        } else {
            torn.push((*component, incoming));
        }
    }
    TimelineAnalysis {
        around,
        cycles: Vec::new(),
        torn,
        over_reduced,
    }
}

/// The links between steps of two components, with the timelines that each link joins.
pub(super) fn partners(
    graph: &mut TimelineGraph<'_>,
    around: &[OuterTimeline],
) -> Vec<(usize, TimelineId, TimelineId)> {
    let mut partners = Vec::new();
    for i in 0..graph.links.len() {
        let GraphLink {
            sender,
            sender_port,
            receiver,
            receiver_port,
            filters,
            through,
            ..
        } = graph.links[i];
        let model = graph.model();
        let each_step =
            sender_port.operator == Operator::OI && receiver_port.operator == Operator::S;
        let plain = !filters.iter().any(|f| f.kind.reduces() || f.kind.repeats());
        if !each_step || !plain || sender == model || receiver == model {
            continue;
        }
        if let Some((x, y)) = graph.step(i, around) {
            partners.push((i, x, y));
            continue;
        }
        let ends = (
            graph.messages(sender, sender_port, around),
            graph.messages(receiver, receiver_port, around),
        );
        let (Some(mut a), Some(mut b)) = ends else {
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
