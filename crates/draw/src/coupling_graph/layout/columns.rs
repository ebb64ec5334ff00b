//! The column of each box.
//!
//! - A caller stands left of the component called.
//! - A component that sends in O_F stands left of the receiver that starts with the message.
//! - Peers that exchange messages in each step stand side by side.
//!
//! These relations can form cycles. Each cycle is cut at the place with the least cost.

use std::collections::{BTreeMap, HashSet, VecDeque};

use titin_model::Operator;

use crate::coupling_graph::graph::{Graph, NetReceiver, Pin};

/// The weight of a relation: the cost if the relation is drawn from right to left, and the cost of
/// each column of the relation's length.
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

/// The pairs of boxes whose first box stands left of the second, and the pairs of peers. The boxes
/// of a pair of peers may stand either way.
fn relations(graph: &Graph) -> (Relations, Vec<(usize, usize)>) {
    let mut relations = Relations::new();
    let mut peers = Vec::new();
    let conduits = graph.nets.iter().flat_map(|net| {
        net.to
            .iter()
            .map(|NetReceiver { pin, .. }| (net.from, *pin))
    });
    for (from, to) in conduits {
        let (Some((sender, sends)), Some((receiver, receives))) =
            (box_of(graph, from), box_of(graph, to))
        else {
            continue;
        };
        if sender == receiver {
            continue;
        }
        let (pair, weight) = match (sends, receives) {
            (Operator::OI, Operator::FInit) => ((sender, receiver), CALL),
            (Operator::OF, Operator::S) => ((receiver, sender), CALL),
            (Operator::OF, _) => ((sender, receiver), SEQUENCE),
            _ => {
                peers.push((sender, receiver));
                continue;
            }
        };
        *relations.entry(pair).or_default() += weight;
    }
    peers.retain(|(a, b)| !relations.contains_key(&(*a, *b)) && !relations.contains_key(&(*b, *a)));
    (relations, peers)
}

/// The box of a pin and the operator of the pin's port; `None` for the model's own ports.
fn box_of(graph: &Graph, pin: Pin) -> Option<(usize, Operator)> {
    match pin {
        Pin::Box { number, port } => Some((number, graph.boxes[number].ports[port].operator)),
        Pin::Outer(_) => None,
    }
}

/// Orients each pair of peers by a breadth-first search: the peer found first stands left. So a
/// ring of peers folds in two, and a chain of peers becomes a row.
fn breadth_first(n: usize, peers: &[(usize, usize)], ranks: &[usize]) -> Vec<(usize, usize)> {
    let mut near = vec![Vec::new(); n];
    for &(a, b) in peers {
        near[a].push(b);
        near[b].push(a);
    }
    let mut roots: Vec<usize> = (0..n).filter(|v| !near[*v].is_empty()).collect();
    roots.sort_by_key(|v| (ranks[*v], *v));
    let level = levels(&near, &roots);
    let differing = peers.iter().filter(|(a, b)| level[*a] != level[*b]);
    let mut oriented: Vec<_> = differing
        .map(|&(a, b)| if level[a] < level[b] { (a, b) } else { (b, a) })
        .collect();
    oriented.sort_unstable();
    oriented.dedup();
    oriented
}

/// The distance of each box from the first root that reaches the box.
fn levels(near: &[Vec<usize>], roots: &[usize]) -> Vec<usize> {
    let mut level = vec![usize::MAX; near.len()];
    for &root in roots {
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
    level
}

/// An edge from a box to a box further right.
type Edge = (usize, usize, Weight);

/// The relations as edges without a cycle: relations against [`sequence`] are reversed. The edges
/// are sorted by the first box of each edge, in the order of the sequence.
fn acyclic(n: usize, relations: &Relations) -> Vec<Edge> {
    let mut position = vec![0; n];
    for (index, v) in sequence(n, relations).into_iter().enumerate() {
        position[v] = index;
    }
    let mut edges: Vec<Edge> = relations
        .iter()
        .map(|(&(a, b), &weight)| {
            if position[a] < position[b] {
                (a, b, weight)
            } else {
                (b, a, weight)
            }
        })
        .collect();
    edges.sort_by_key(|(a, b, _)| (position[*a], position[*b]));
    edges
}

/// A sequence of all boxes with little weight against the sequence, after Eades, Lin and Smyth
/// (1993). Sinks go to the end and sources to the front. Without sinks and sources, the box with
/// the largest excess of outgoing over incoming weight goes to the front.
fn sequence(n: usize, relations: &Relations) -> Vec<usize> {
    let mut open = OpenRelations::new(n, relations);
    let mut left: Vec<usize> = (0..n).collect();
    let (mut front, mut back) = (Vec::new(), Vec::new());
    while !left.is_empty() {
        let sink = left.iter().rposition(|v| open.out_weight[*v] == 0);
        let index = sink.unwrap_or_else(|| open.source_among(&left));
        let v = left.remove(index);
        open.remove(v);
        match sink {
            Some(_) => back.push(v),
            None => front.push(v),
        }
    }
    front.extend(back.into_iter().rev());
    front
}

/// The relations between boxes that are not in the sequence yet.
struct OpenRelations {
    outgoing: Vec<Vec<(usize, Weight)>>,
    incoming: Vec<Vec<(usize, Weight)>>,
    /// The sums of the weights, of relations with boxes outside of the sequence alone.
    out_weight: Vec<Weight>,
    in_weight: Vec<Weight>,
}

impl OpenRelations {
    fn new(n: usize, relations: &Relations) -> Self {
        let mut open = OpenRelations {
            outgoing: vec![Vec::new(); n],
            incoming: vec![Vec::new(); n],
            out_weight: vec![0; n],
            in_weight: vec![0; n],
        };
        for (&(a, b), &weight) in relations {
            open.outgoing[a].push((b, weight));
            open.incoming[b].push((a, weight));
            open.out_weight[a] += weight;
            open.in_weight[b] += weight;
        }
        open
    }

    /// The position of a source in the list, or else of the box with the largest excess.
    fn source_among(&self, left: &[usize]) -> usize {
        let source = left.iter().position(|v| self.in_weight[*v] == 0);
        let excess = |index: &usize| self.out_weight[left[*index]] - self.in_weight[left[*index]];
        // `max_by_key` returns the last maximum; reversed, the description's order decides.
        let largest = || (0..left.len()).rev().max_by_key(excess).unwrap_or(0);
        source.unwrap_or_else(largest)
    }

    /// The box is in the sequence now.
    fn remove(&mut self, v: usize) {
        for &(w, weight) in &self.outgoing[v] {
            self.in_weight[w] -= weight;
        }
        for &(w, weight) in &self.incoming[v] {
            self.out_weight[w] -= weight;
        }
    }
}

/// The length of the longest path to each box. `edges` come from [`acyclic`], in the same order.
fn longest_paths(n: usize, edges: &[Edge]) -> Vec<usize> {
    let mut columns = vec![0; n];
    for &(a, b, _) in edges {
        columns[b] = columns[b].max(columns[a] + 1);
    }
    columns
}

/// The edges at each box: the other box, the weight, and whether the edge leads to the right.
type Neighbours = Vec<Vec<(usize, Weight, bool)>>;

/// Moves boxes to the right as long as a move makes the edges shorter in all. Boxes joined by edges
/// of length one move as a group.
fn tighten(columns: &mut [usize], edges: &[Edge]) {
    let n = columns.len();
    let mut near: Neighbours = vec![Vec::new(); n];
    for &(a, b, weight) in edges {
        near[a].push((b, weight, true));
        near[b].push((a, weight, false));
    }
    for _ in 0..n.min(50) {
        let mut moved = false;
        for v in 0..n {
            moved |= move_right(columns, &near, v);
        }
        if !moved {
            break;
        }
    }
}

/// Moves a box and the box's group to the right if the move makes the edges shorter in all.
fn move_right(columns: &mut [usize], near: &Neighbours, v: usize) -> bool {
    let group = group_of(columns, near, v);
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
        return true;
    }
    false
}

/// The boxes that have to move with box `v` when `v` moves right: all boxes on paths from `v` whose
/// edges have length one.
fn group_of(columns: &[usize], near: &Neighbours, v: usize) -> HashSet<usize> {
    let mut group = HashSet::from([v]);
    let mut pending = vec![v];
    while let Some(u) = pending.pop() {
        for &(w, _, forward) in &near[u] {
            if forward && columns[w] == columns[u] + 1 && group.insert(w) {
                pending.push(w);
            }
        }
    }
    group
}
