//! A `last` filter that closes a cycle: the receiver would wait for a message that depends on the
//! receiver.
//! The last message of a sender within its steps is known when the steps are over. For an O_F port,
//! and for every further `last`, the steps of the callers must be over. The sender learns of that
//! when it is called in the next use of a caller, or has to end.

use std::collections::{HashMap, HashSet, VecDeque};

use super::analysis::TimelineAnalysis;
use super::graph::{GraphLink, OuterTimeline, TimelineGraph, TimelineId, reducers};
use crate::operator::Operator;
use crate::problem::{Code, Problems, listing};

pub(super) fn report_late(
    graph: &mut TimelineGraph<'_>,
    found: &TimelineAnalysis,
    problems: &mut Problems,
) {
    let links: Vec<usize> = (0..graph.links.len())
        .filter(|i| is_late(&graph.links[*i]))
        .collect();
    if links.is_empty() {
        return;
    }
    let neighbours = LinkNeighbours::of(graph);
    for i in links {
        if problems.is_full() {
            return;
        }
        let (sender, port) = (graph.links[i].sender, graph.links[i].sender_port);
        let Some(from) = graph.messages(sender, port, &found.around) else {
            continue;
        };
        let Some(level) = from.len().checked_sub(reducers(graph.links[i].filters)) else {
            continue;
        };
        let callers = callers_within(sender, &neighbours.callers, found, level);
        if let Some(path) = path_back(graph, found, &neighbours.onward, i, &callers, level) {
            report_cycle_of_last(graph, i, &from[..level], &path, problems);
        }
    }
}

/// Whether the last message of a link is known only after the steps of a caller.
fn is_late(link: &GraphLink<'_>) -> bool {
    let own = usize::from(link.sender_port.operator == Operator::OI);
    reducers(link.filters) > own && !link.guessed()
}

/// The links that begin at each component, and the callers of each component.
struct LinkNeighbours {
    onward: HashMap<usize, Vec<usize>>,
    callers: HashMap<usize, Vec<usize>>,
}

impl LinkNeighbours {
    fn of(graph: &TimelineGraph<'_>) -> Self {
        let (mut onward, mut callers) = (HashMap::new(), HashMap::new());
        for (i, link) in graph.links.iter().enumerate() {
            onward.entry(link.sender).or_insert_with(Vec::new).push(i);
            if link.receiver_port.operator == Operator::FInit {
                callers
                    .entry(link.receiver)
                    .or_insert_with(Vec::new)
                    .push(link.sender);
            }
        }
        LinkNeighbours { onward, callers }
    }
}

/// Reports a link whose receiver waits for a message that depends on the receiver. `around` is the
/// timeline whose steps must be over; `path` leads from the receiver back to a caller.
fn report_cycle_of_last(
    graph: &TimelineGraph<'_>,
    link: usize,
    around: &[TimelineId],
    path: &[usize],
    problems: &mut Problems,
) {
    let link = &graph.links[link];
    let what = format!(
        "\"last\" before \"{}\" would wait for ever",
        graph.receiver_path(link)
    );
    let why = format!(
        "which message of \"{}\" is the last one is known once \"{}\" is called in a later step{}, or has to end, and that \
         waits for \"{}\" in turn, by way of {}",
        graph.sender_path(link),
        graph.names[link.sender],
        graph
            .show(around)
            .strip_prefix("in each step")
            .unwrap_or_default(),
        graph.names[link.receiver],
        listing(path.iter().map(|component| graph.names[*component]))
    );
    let hint = "let the component whose steps these are send it on, once in a use: on an O_F port of its own";
    problems.error_hint(link.at, Code::Cycle, what, why, hint.to_string());
}

/// The component and its callers within the timeline of this length: all of them must reach their
/// next use before the component does.
fn callers_within(
    component: usize,
    callers: &HashMap<usize, Vec<usize>>,
    found: &TimelineAnalysis,
    level: usize,
) -> HashSet<usize> {
    let inside = |component: usize| matches!(&found.around[component], OuterTimeline::Known(path) if path.len() >= level);
    let mut within = HashSet::from([component]);
    let mut todo = vec![component];
    while let Some(at) = todo.pop() {
        for caller in callers.get(&at).into_iter().flatten().copied() {
            if caller < found.around.len() - 1 && inside(caller) && within.insert(caller) {
                todo.push(caller);
            }
        }
    }
    within
}

/// A path along conduits from the receiver of a link back to a component in `first`, with fewer
/// than two steps of the timeline on it. A message received in a step flows into a message sent in
/// the next step; one step more leaves time to wait.
fn path_back(
    graph: &TimelineGraph<'_>,
    found: &TimelineAnalysis,
    onward: &HashMap<usize, Vec<usize>>,
    link: usize,
    first: &HashSet<usize>,
    level: usize,
) -> Option<Vec<usize>> {
    let start = arrival(&graph.links[link]);
    let mut best: Visits = HashMap::from([(start, (0, None))]);
    let mut todo = VecDeque::from([start]);
    while let Some(state) = todo.pop_front() {
        let (component, in_step) = state;
        if first.contains(&component) {
            return Some(components_to(state, &best));
        }
        let OuterTimeline::Known(around) = &found.around[component] else {
            continue;
        };
        let steps = best[&state].0;
        let links = onward.get(&component).into_iter().flatten();
        for link in links.map(|i| &graph.links[*i]) {
            let next_step =
                in_step && link.sender_port.operator == Operator::OI && around.len() < level;
            let steps = steps + u32::from(next_step);
            let next = arrival(link);
            let known = best.get(&next).is_some_and(|(known, _)| *known <= steps);
            if steps <= 1 && !link.guessed() && !known {
                best.insert(next, (steps, Some(state)));
                todo.push_back(next);
            }
        }
    }
    None
}

/// A component that a message reaches, and whether it is received there in a step.
type Arrival = (usize, bool);

/// The fewest steps to each arrival so far, and the arrival before.
type Visits = HashMap<Arrival, (u32, Option<Arrival>)>;

fn arrival(link: &GraphLink<'_>) -> Arrival {
    (link.receiver, link.receiver_port.operator == Operator::S)
}

/// The components on the way to an arrival.
fn components_to(last: Arrival, visits: &Visits) -> Vec<usize> {
    let back = std::iter::successors(Some(last), |arrival| visits[arrival].1);
    let mut components: Vec<usize> = back.map(|(component, _)| component).collect();
    components.reverse();
    components.dedup();
    components
}
