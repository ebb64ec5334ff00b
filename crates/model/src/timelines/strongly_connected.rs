//! Strongly connected groups of a graph.

use std::collections::HashMap;

use super::graph::TimelineId;

/// Numbers the strongly connected groups of a graph (Tarjan, without recursion).
pub(super) fn groups(onward: &HashMap<TimelineId, Vec<TimelineId>>) -> HashMap<TimelineId, usize> {
    let mut group: HashMap<TimelineId, usize> = HashMap::new();
    let mut index: HashMap<TimelineId, (usize, usize)> = HashMap::new();
    let mut open: Vec<TimelineId> = Vec::new();
    let none = Vec::new();
    let (mut next, mut count) = (0, 0);
    let mut roots: Vec<_> = onward.keys().copied().collect();
    roots.sort_unstable();
    for root in roots {
        if index.contains_key(&root) {
            continue;
        }
        let mut walk = vec![(root, 0usize)];
        while let Some((at, done)) = walk.pop() {
            if done == 0 {
                index.insert(at, (next, next));
                next += 1;
                open.push(at);
            }
            let children = onward.get(&at).unwrap_or(&none);
            if let Some(child) = children.get(done) {
                walk.push((at, done + 1));
                if !index.contains_key(child) {
                    walk.push((*child, 0));
                } else if !group.contains_key(child) {
                    let low = index[child].0;
                    lower(&mut index, at, low);
                }
                continue;
            }
            // All children are done: take over the lowest number that they reach.
            let lowest = children
                .iter()
                .filter(|c| !group.contains_key(*c))
                .map(|c| index[c].1)
                .min();
            if let Some(low) = lowest {
                lower(&mut index, at, low);
            }
            if index[&at].0 == index[&at].1 {
                while let Some(member) = open.pop() {
                    group.insert(member, count);
                    if member == at {
                        break;
                    }
                }
                count += 1;
            }
        }
    }
    group
}

fn lower(index: &mut HashMap<TimelineId, (usize, usize)>, at: TimelineId, low: usize) {
    if let Some((_, lowest)) = index.get_mut(&at) {
        *lowest = low.min(*lowest);
    }
}
