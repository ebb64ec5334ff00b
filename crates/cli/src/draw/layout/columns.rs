//! Which column each box stands in. Who calls stands left of whom it calls, who sends at its end left of who begins with that;
//! peers that exchange messages in each step stand side by side. Cycles are cut where that costs least.

use std::collections::{BTreeMap, HashSet, VecDeque};

use titin_model::Operator;

use crate::draw::graph::{Graph, Pin};

/// How much it costs to draw a relation against its sense, or long.
type Weight = i64;
const CALL: Weight = 3;
const SEQUENCE: Weight = 2;
const PEER: Weight = 1;

/// The column of each box, from 0.
pub(super) fn columns(graph: &Graph) -> Vec<usize> {
    let n = graph.boxes.len();
    let (mut relations, peers) = relations(graph);
    let ranks = longest_paths(n, &acyclic(n, &relations));
    for (before, after) in breadth_first(n, &peers, &ranks) {
        *relations.entry((before, after)).or_default() += PEER;
    }
    let edges = acyclic(n, &relations);
    let mut columns = longest_paths(n, &edges);
    tighten(&mut columns, &edges);
    let first = columns.iter().min().copied().unwrap_or(0);
    columns.iter_mut().for_each(|column| *column -= first);
    columns
}

type Relations = BTreeMap<(usize, usize), Weight>;

/// Who stands before whom, and the pairs that may stand either way.
fn relations(graph: &Graph) -> (Relations, Vec<(usize, usize)>) {
    let mut relations = Relations::new();
    let mut peers = Vec::new();
    for net in &graph.nets {
        let Pin::Box { part: sender, port } = net.from else {
            continue;
        };
        let sends = graph.boxes[sender].ports[port].operator;
        for receiver in &net.to {
            let Pin::Box {
                part: receiver,
                port,
            } = receiver.pin
            else {
                continue;
            };
            if sender == receiver {
                continue;
            }
            match (sends, graph.boxes[receiver].ports[port].operator) {
                (Operator::OI, Operator::FInit) => {
                    *relations.entry((sender, receiver)).or_default() += CALL
                }
                (Operator::OF, Operator::S) => {
                    *relations.entry((receiver, sender)).or_default() += CALL
                }
                (Operator::OF, _) => *relations.entry((sender, receiver)).or_default() += SEQUENCE,
                _ => peers.push((sender, receiver)),
            }
        }
    }
    peers.retain(|(a, b)| !relations.contains_key(&(*a, *b)) && !relations.contains_key(&(*b, *a)));
    (relations, peers)
}

/// Orients the pairs of peers away from one of them, so that a ring folds in two and a chain unrolls.
fn breadth_first(n: usize, peers: &[(usize, usize)], ranks: &[usize]) -> Vec<(usize, usize)> {
    let mut near = vec![Vec::new(); n];
    for &(a, b) in peers {
        near[a].push(b);
        near[b].push(a);
    }
    let mut level = vec![usize::MAX; n];
    let mut roots: Vec<usize> = (0..n).filter(|v| !near[*v].is_empty()).collect();
    roots.sort_by_key(|v| (ranks[*v], *v));
    for root in roots {
        if level[root] != usize::MAX {
            continue;
        }
        level[root] = 0;
        let mut queue = VecDeque::from([root]);
        while let Some(v) = queue.pop_front() {
            for &w in &near[v] {
                if level[w] == usize::MAX {
                    level[w] = level[v] + 1;
                    queue.push_back(w);
                }
            }
        }
    }
    let mut oriented: Vec<_> = peers
        .iter()
        .filter(|(a, b)| level[*a] != level[*b])
        .map(|&(a, b)| if level[a] < level[b] { (a, b) } else { (b, a) })
        .collect();
    oriented.sort_unstable();
    oriented.dedup();
    oriented
}

/// The relations as edges without a cycle: those against a good sequence are turned round. The sequence is that of Eades, Lin
/// and Smyth (1993): sinks to the end, sources to the front, then whoever sends most in excess.
fn acyclic(n: usize, relations: &Relations) -> Vec<(usize, usize, Weight)> {
    let mut out = vec![Vec::new(); n];
    let mut into = vec![Vec::new(); n];
    let (mut out_weight, mut in_weight) = (vec![0; n], vec![0; n]);
    for (&(a, b), &weight) in relations {
        out[a].push((b, weight));
        into[b].push((a, weight));
        out_weight[a] += weight;
        in_weight[b] += weight;
    }
    let mut left: Vec<usize> = (0..n).collect();
    let (mut front, mut back) = (Vec::new(), Vec::new());
    while !left.is_empty() {
        let sink = left.iter().rposition(|v| out_weight[*v] == 0);
        let source = || left.iter().position(|v| in_weight[*v] == 0);
        let (at, to_back) = match sink
            .map(|at| (at, true))
            .or_else(|| source().map(|at| (at, false)))
        {
            Some(found) => found,
            None => {
                let excess = |at: &usize| out_weight[left[*at]] - in_weight[left[*at]];
                // The first of the best, so that the description's order decides.
                ((0..left.len()).rev().max_by_key(excess).unwrap_or(0), false)
            }
        };
        let v = left.remove(at);
        for &(w, weight) in &out[v] {
            in_weight[w] -= weight;
        }
        for &(w, weight) in &into[v] {
            out_weight[w] -= weight;
        }
        if to_back { back.push(v) } else { front.push(v) }
    }
    front.extend(back.into_iter().rev());
    let mut place = vec![0; n];
    front.iter().enumerate().for_each(|(at, v)| place[*v] = at);
    let mut edges: Vec<_> = relations
        .iter()
        .map(|(&(a, b), &weight)| {
            if place[a] < place[b] {
                (a, b, weight)
            } else {
                (b, a, weight)
            }
        })
        .collect();
    edges.sort_by_key(|(a, b, _)| (place[*a], place[*b]));
    edges
}

/// Edges come sorted by their first end along the sequence.
fn longest_paths(n: usize, edges: &[(usize, usize, Weight)]) -> Vec<usize> {
    let mut columns = vec![0; n];
    for &(a, b, _) in edges {
        columns[b] = columns[b].max(columns[a] + 1);
    }
    columns
}

/// Moves boxes, and groups of boxes that hang together, to where their edges are shorter, as long as that helps.
fn tighten(columns: &mut [usize], edges: &[(usize, usize, Weight)]) {
    let n = columns.len();
    let mut near = vec![Vec::new(); n];
    for &(a, b, weight) in edges {
        near[a].push((b, weight, true));
        near[b].push((a, weight, false));
    }
    for _ in 0..n.min(50) {
        let mut moved = false;
        for v in 0..n {
            // Everything that would have to move right with v: a group joined by edges of length one.
            let mut group = HashSet::from([v]);
            let mut todo = vec![v];
            while let Some(u) = todo.pop() {
                for &(w, _, forward) in &near[u] {
                    if forward && columns[w] == columns[u] + 1 && group.insert(w) {
                        todo.push(w);
                    }
                }
            }
            let crossing = || {
                group
                    .iter()
                    .flat_map(|u| near[*u].iter().map(move |edge| (*u, edge)))
                    .filter(|(_, (w, ..))| !group.contains(w))
            };
            let gain: Weight = crossing()
                .map(|(_, (_, weight, forward))| if *forward { *weight } else { -weight })
                .sum();
            let slack = crossing()
                .filter(|(_, (_, _, forward))| *forward)
                .map(|(u, (w, ..))| columns[*w] - columns[u] - 1)
                .min();
            if gain > 0
                && let Some(slack @ 1..) = slack
            {
                group.iter().for_each(|u| columns[*u] += slack);
                moved = true;
            }
        }
        if !moved {
            break;
        }
    }
}
