//! A tree of boxes, in which a search for the boxes that touch a box is fast.

use crate::Region;

/// A static tree: each node halves a set of boxes along the dimension in which the centres differ
/// most.
#[derive(Debug)]
pub(crate) struct BoxTree {
    nodes: Vec<BoxNode>,
    /// The boxes with their numbers; boxes of a leaf are neighbours.
    boxes: Vec<(u32, Region)>,
}

#[derive(Debug)]
struct BoxNode {
    hull: Region,
    from: usize,
    to: usize,
    /// The second child; the first child follows the parent. `None` for leaves.
    second: Option<usize>,
}

/// The most boxes of a leaf, which a search tests one by one.
const LEAF: usize = 8;

impl BoxTree {
    /// A tree of boxes. The number of a box is the place in the list. Empty boxes are never found.
    pub fn new(regions: &[Region]) -> Self {
        let boxes = regions
            .iter()
            .enumerate()
            .filter(|(_, region)| !region.is_empty());
        let boxes = boxes
            .map(|(number, region)| (number as u32, *region))
            .collect();
        let mut tree = Self {
            nodes: Vec::new(),
            boxes,
        };
        if !tree.boxes.is_empty() {
            tree.divide(0, tree.boxes.len());
        }
        tree
    }

    /// The numbers of all boxes that share an element with `region`, in any order.
    pub fn hits(&self, region: &Region) -> Vec<u32> {
        let (mut hits, mut open) = (Vec::new(), Vec::new());
        open.extend((!self.nodes.is_empty()).then_some(0));
        while let Some(at) = open.pop() {
            let node = &self.nodes[at];
            if node.hull.intersection(region).is_none() {
                continue;
            }
            match node.second {
                Some(second) => open.extend([at + 1, second]),
                None => {
                    let leaf = &self.boxes[node.from..node.to];
                    hits.extend(
                        leaf.iter()
                            .filter(|(_, one)| one.intersection(region).is_some())
                            .map(|(n, _)| n),
                    );
                }
            }
        }
        hits
    }

    /// Builds the node of some boxes. Both halves have the same size, so the depth is the logarithm
    /// of the number of boxes.
    fn divide(&mut self, from: usize, to: usize) {
        let boxes = &self.boxes[from..to];
        let hull = boxes
            .iter()
            .fold(boxes[0].1, |hull, (_, region)| hull.hull(region));
        let widest = widest_dimension(boxes, hull.lower().len());
        let node = self.nodes.len();
        self.nodes.push(BoxNode {
            hull,
            from,
            to,
            second: None,
        });
        if let Some(dim) = widest.filter(|_| to - from > LEAF) {
            let middle = (to - from) / 2;
            self.boxes[from..to]
                .select_nth_unstable_by_key(middle, |(_, region)| center(region, dim));
            self.divide(from, from + middle);
            self.nodes[node].second = Some(self.nodes.len());
            self.divide(from + middle, to);
        }
    }
}

/// Twice the centre of a box along a dimension.
fn center(region: &Region, dim: usize) -> u64 {
    region.lower()[dim] + region.upper()[dim]
}

/// The dimension in which the centres of the boxes differ most; `None` without dimensions.
fn widest_dimension(boxes: &[(u32, Region)], dims: usize) -> Option<usize> {
    (0..dims).max_by_key(|dim| {
        let centers = boxes.iter().map(|(_, region)| center(region, *dim));
        centers.clone().max().unwrap_or(0) - centers.min().unwrap_or(0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_a_look_at_all_finds() {
        // A linear congruential generator gives the same boxes in every test.
        let mut seed = 1u64;
        let mut random = |most: u64| {
            seed = seed
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (seed >> 33) % most
        };
        let boxes: Vec<_> = (0..200)
            .map(|_| {
                let lower = [random(50), random(50), random(3)];
                Region::new(
                    &lower,
                    &[
                        lower[0] + random(9),
                        lower[1] + random(9),
                        lower[2] + random(2),
                    ],
                )
                .unwrap()
            })
            .collect();
        let tree = BoxTree::new(&boxes);
        for one in &boxes {
            let mut hits = tree.hits(one);
            hits.sort_unstable();
            let expected = (0..200u32).filter(|n| boxes[*n as usize].intersection(one).is_some());
            assert_eq!(hits, expected.collect::<Vec<_>>());
        }
        assert!(BoxTree::new(&[]).hits(&boxes[0]).is_empty());
    }

    #[test]
    fn boxes_without_dimensions_are_found() {
        let scalar = Region::new(&[], &[]).unwrap();
        assert_eq!(BoxTree::new(&[scalar; 20]).hits(&scalar).len(), 20);
    }
}
