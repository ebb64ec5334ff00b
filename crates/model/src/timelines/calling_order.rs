//! The order in which components can start, each after its callers.

use std::collections::VecDeque;

use super::graph::TimelineGraph;
use crate::operator::Operator;

/// The links to the F_INIT ports of each component.
pub(super) fn callers(graph: &TimelineGraph<'_>) -> Vec<Vec<usize>> {
    let mut callers = vec![Vec::new(); graph.names.len()];
    for (i, link) in graph.links.iter().enumerate() {
        if link.receiver_port.operator == Operator::FInit && link.receiver != graph.model() {
            callers[link.receiver].push(i);
        }
    }
    callers
}

/// Components in an order with callers first, and the cycles that keep the other components from
/// starting. A cycle is a list of links; each link begins at the component where the link before
/// ends.
pub(super) fn order(
    graph: &TimelineGraph<'_>,
    callers: &[Vec<usize>],
) -> (Vec<usize>, Vec<Vec<usize>>) {
    let model = graph.model();
    let mut waits: Vec<usize> = vec![0; graph.names.len()];
    let mut called: Vec<Vec<usize>> = vec![Vec::new(); graph.names.len()];
    for link in callers.iter().flatten().map(|i| &graph.links[*i]) {
        if link.calls(model) {
            waits[link.receiver] += 1;
            called[link.sender].push(link.receiver);
        }
    }
    let mut ready: VecDeque<usize> = (0..model).filter(|c| waits[*c] == 0).collect();
    let mut order = Vec::with_capacity(model);
    while let Some(component) = ready.pop_front() {
        order.push(component);
        for next in &called[component] {
            waits[*next] -= 1;
            if waits[*next] == 0 {
                ready.push_back(*next);
            }
        }
    }
    (order, cycles(graph, callers, &waits))
}

/// Walks from each waiting component to a caller that waits too, until the walk closes a cycle.
fn cycles(graph: &TimelineGraph<'_>, callers: &[Vec<usize>], waits: &[usize]) -> Vec<Vec<usize>> {
    let mut cycles = Vec::new();
    let mut state = vec![0u32; waits.len()];
    for start in 0..graph.model() {
        if waits[start] == 0 || state[start] != 0 {
            continue;
        }
        let walk = start as u32 + 1;
        let mut links = Vec::new();
        let mut at = start;
        while state[at] == 0 {
            state[at] = walk;
            let back = callers[at].iter().find(|i| {
                let link = &graph.links[**i];
                link.calls(graph.model()) && waits[link.sender] > 0
            });
            let Some(link) = back else { break };
            links.push(*link);
            at = graph.links[*link].sender;
        }
        if state[at] == walk
            && let Some(begin) = links.iter().position(|i| graph.links[*i].receiver == at)
        {
            cycles.push(links[begin..].iter().rev().copied().collect());
        }
    }
    cycles
}
