//! Strongly connected groups of a graph.

use std::collections::HashMap;

use super::graph::TimelineId;

/// Numbers the strongly connected groups of a graph (Tarjan, without recursion).
pub(super) fn groups(onward: &HashMap<TimelineId, Vec<TimelineId>>) -> HashMap<TimelineId, usize> {
    let mut search = GroupSearch {
        onward,
        group: HashMap::new(),
        index: HashMap::new(),
        open: Vec::new(),
        count: 0,
    };
    let mut roots: Vec<_> = onward.keys().copied().collect();
    roots.sort_unstable();
    for root in roots {
        if !search.index.contains_key(&root) {
            search.walk_from(root);
        }
    }
    search.group
}

struct GroupSearch<'g> {
    onward: &'g HashMap<TimelineId, Vec<TimelineId>>,
    group: HashMap<TimelineId, usize>,
    /// The number of each visited node, and the lowest number that it reaches.
    index: HashMap<TimelineId, (usize, usize)>,
    /// Visited nodes without a group.
    open: Vec<TimelineId>,
    /// The number of groups.
    count: usize,
}

impl<'g> GroupSearch<'g> {
    fn children(&self, node: TimelineId) -> &'g [TimelineId] {
        self.onward.get(&node).map_or(&[], Vec::as_slice)
    }

    /// Visits a node and all nodes that it reaches, depth first.
    fn walk_from(&mut self, root: TimelineId) {
        let mut walk = vec![(root, 0usize)];
        while let Some((node, done)) = walk.pop() {
            if done == 0 {
                let number = self.index.len();
                self.index.insert(node, (number, number));
                self.open.push(node);
            }
            match self.children(node).get(done) {
                Some(child) => {
                    walk.push((node, done + 1));
                    if !self.index.contains_key(child) {
                        walk.push((*child, 0));
                    } else if !self.group.contains_key(child) {
                        self.lower(node, self.index[child].0);
                    }
                }
                None => self.leave(node),
            }
        }
    }

    /// All children of a node are done: takes over the lowest number that they reach, and closes
    /// the group if that is the number of the node.
    fn leave(&mut self, node: TimelineId) {
        let children = self.children(node).iter();
        let open = children.filter(|child| !self.group.contains_key(*child));
        if let Some(low) = open.map(|child| self.index[child].1).min() {
            self.lower(node, low);
        }
        let (number, lowest) = self.index[&node];
        if number != lowest {
            return;
        }
        while let Some(member) = self.open.pop() {
            self.group.insert(member, self.count);
            if member == node {
                break;
            }
        }
        self.count += 1;
    }

    fn lower(&mut self, node: TimelineId, low: usize) {
        if let Some((_, lowest)) = self.index.get_mut(&node) {
            *lowest = low.min(*lowest);
        }
    }
}
