//! A `last` filter that closes a cycle: the receiver would wait for a message that depends on the
//! receiver.
//! The last message of a sender within its steps is known when the steps are over. For an O_F port,
//! and for every further `last`, the steps of the callers must be over. The sender learns of that
//! when it is called in the next use of a caller, or has to end.

use std::collections::{HashMap, HashSet, VecDeque};

use super::analysis::{TimelineAnalysis, reducers};
use super::graph::{GraphLink, OuterTimeline, TimelineGraph};
use crate::operator::Operator;
use crate::problem::{Code, Problems, listing};

pub(super) fn report_late(
    graph: &mut TimelineGraph<'_>,
    found: &TimelineAnalysis,
    problems: &mut Problems,
) {
    let late = |link: &GraphLink<'_>| {
        let own = usize::from(link.sender_port.operator == Operator::OI);
        reducers(link.filters) > own && !link.guessed()
    };
    let links: Vec<usize> = (0..graph.links.len())
        .filter(|i| late(&graph.links[*i]))
        .collect();
    if links.is_empty() {
        return;
    }
    let (mut onward, mut callers) = (
        HashMap::<usize, Vec<usize>>::new(),
        HashMap::<usize, Vec<usize>>::new(),
    );
    for (i, link) in graph.links.iter().enumerate() {
        onward.entry(link.sender).or_default().push(i);
        if link.receiver_port.operator == Operator::FInit {
            callers.entry(link.receiver).or_default().push(link.sender);
        }
    }
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
        let first = callers_within(sender, &callers, found, level);
        let Some(way) = way(graph, found, &onward, i, &first, level) else {
            continue;
        };
        let link = &graph.links[i];
        let (out, into) = (
            graph.port_path(sender, port),
            graph.port_path(link.receiver, link.receiver_port),
        );
        let names = listing(way.iter().map(|component| graph.names[*component]));
        let what = format!("\"last\" before \"{into}\" would wait for ever");
        let why = format!(
            "which message of \"{out}\" is the last one is known once \"{}\" is called in a later step{}, or has to end, and that \
             waits for \"{}\" in turn, by way of {names}",
            graph.names[sender],
            graph
                .show(&from[..level])
                .strip_prefix("in each step")
                .unwrap_or_default(),
            graph.names[link.receiver],
        );
        let hint =
            "let the component whose steps these are send it on, once in a use: on an O_F port of its own"
                .to_string();
        problems.error_hint(link.at, Code::Cycle, what, why, hint);
    }
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
fn way(
    graph: &TimelineGraph<'_>,
    found: &TimelineAnalysis,
    onward: &HashMap<usize, Vec<usize>>,
    link: usize,
    first: &HashSet<usize>,
    level: usize,
) -> Option<Vec<usize>> {
    type State = (usize, bool);
    let enters = |link: &GraphLink<'_>| (link.receiver, link.receiver_port.operator == Operator::S);
    let start: State = enters(&graph.links[link]);
    let mut best: HashMap<State, (u32, Option<State>)> = HashMap::from([(start, (0, None))]);
    let mut todo = VecDeque::from([start]);
    while let Some(state) = todo.pop_front() {
        let (at, in_step) = state;
        let steps = best[&state].0;
        if first.contains(&at) {
            let back = std::iter::successors(Some(state), |state| best[state].1);
            let mut way: Vec<usize> = back.map(|(component, _)| component).collect();
            way.reverse();
            way.dedup();
            return Some(way);
        }
        let OuterTimeline::Known(around) = &found.around[at] else {
            continue;
        };
        for link in onward
            .get(&at)
            .into_iter()
            .flatten()
            .map(|i| &graph.links[*i])
        {
            let next_step =
                in_step && link.sender_port.operator == Operator::OI && around.len() < level;
            let steps = steps + u32::from(next_step);
            let next = enters(link);
            if steps > 1
                || link.guessed()
                || best.get(&next).is_some_and(|(known, _)| *known <= steps)
            {
                continue;
            }
            best.insert(next, (steps, Some(state)));
            todo.push_back(next);
        }
    }
    None
}
