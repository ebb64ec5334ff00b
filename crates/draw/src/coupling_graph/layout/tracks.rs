//! The lines in a channel between two columns. A net whose ends are not level gets a trunk: a
//! vertical line on a track. The order of the tracks keeps lines from lying on each other, and few
//! lines cross.
//!
//! Say net A leaves the channel at the same height at which net B enters the channel. Then the
//! trunk of B must be further left than the trunk of A. Such constraints can form a cycle. To break
//! a cycle, a net turns twice: the net gets two trunks, joined at a height of their own (a dogleg).

use std::collections::BTreeSet;

use super::GRID;

/// The heights of the ends of a net, on the left and on the right.
pub(super) type EndHeights = [Vec<i32>; 2];

/// A vertical line of a net.
pub(super) struct Trunk {
    pub(super) net: usize,
    /// The track, counted from the left.
    pub(super) track: usize,
    /// The ends joined by the trunk.
    pub(super) ends: EndHeights,
    /// The height at which the two trunks of a split net are joined; `None` if the net has one
    /// trunk.
    pub(super) joint: Option<i32>,
}

/// The least distance between two trunks on the same track.
const DISTANCE: i32 = GRID;
/// A channel with more trunks than `MOST_IMPROVED` gets a legal order, but maybe needless
/// crossings.
const MOST_IMPROVED: usize = 300;

/// The trunks of all nets whose ends are not level, and the number of tracks. The two trunks of a
/// split net come in order: the left trunk first.
pub(super) fn trunks(nets: &[EndHeights]) -> (Vec<Trunk>, usize) {
    let trunk = |(net, ends): (usize, &EndHeights)| Trunk {
        net,
        track: 0,
        ends: ends.clone(),
        joint: None,
    };
    let nets = nets.iter().enumerate();
    let with_range = nets.filter(|(_, ends)| range(ends).is_some());
    let mut trunks: Vec<Trunk> = with_range.map(trunk).collect();
    let mut order = legal_order(&mut trunks);
    if trunks.len() <= MOST_IMPROVED {
        improve(&mut order, &trunks);
    }
    let count = assign_tracks(&mut trunks, &order);
    trunks.sort_by_key(|trunk| (trunk.net, trunk.track));
    (trunks, count)
}

/// Gives each trunk the first track that the trunk may have in the given order. Returns the number
/// of tracks.
fn assign_tracks(trunks: &mut [Trunk], order: &[usize]) -> usize {
    let mut count = 0;
    for (position, &i) in order.iter().enumerate() {
        let before = order[..position].iter();
        let apart = before.filter(|j| !may_share_track(&trunks[i], &trunks[**j]));
        trunks[i].track = apart.map(|j| trunks[*j].track + 1).max().unwrap_or(0);
        count = count.max(trunks[i].track + 1);
    }
    count
}

/// The least and the greatest height; `None` if all ends are level and the net needs no trunk.
fn range(ends: &EndHeights) -> Option<(i32, i32)> {
    let all = || ends.iter().flatten().copied();
    let (low, high) = (all().min()?, all().max()?);
    (low < high).then_some((low, high))
}

impl Trunk {
    fn range(&self) -> (i32, i32) {
        let all = || self.ends.iter().flatten().copied().chain(self.joint);
        (all().min().unwrap_or(0), all().max().unwrap_or(0))
    }

    /// The heights of the lines to a side, including the line to the net's other trunk.
    fn lines(&self, side: usize) -> impl Iterator<Item = i32> + '_ {
        let joint = self.joint.filter(|_| self.ends[side].is_empty());
        self.ends[side].iter().copied().chain(joint)
    }

    /// Whether this trunk must be left of `other`. In the other order, their lines would lie on
    /// each other.
    fn must_precede(&self, other: &Trunk) -> bool {
        self.ends[0].iter().any(|y| other.ends[1].contains(y))
    }

    /// The number of crossings if this trunk is left of `other`.
    fn crossings_left_of(&self, other: &Trunk) -> i32 {
        let within = |range: (i32, i32), y: &i32| range.0 < *y && *y < range.1;
        let (own, others) = (self.range(), other.range());
        let over = self.lines(1).filter(|y| within(others, y)).count();
        (over + other.lines(0).filter(|y| within(own, y)).count()) as i32
    }
}

/// Whether two trunks may share a track.
fn may_share_track(a: &Trunk, b: &Trunk) -> bool {
    let (p, q) = (a.range(), b.range());
    let apart = p.1 + DISTANCE <= q.0 || q.1 + DISTANCE <= p.0;
    apart && a.net != b.net && !a.must_precede(b) && !b.must_precede(a)
}

/// Finds an order in which no two lines lie on each other. Splits trunks until such an order
/// exists.
fn legal_order(trunks: &mut Vec<Trunk>) -> Vec<usize> {
    let mut joints: BTreeSet<i32> = BTreeSet::new();
    let mut left: Vec<usize> = (0..trunks.len()).collect();
    left.sort_by_key(|i| preference(&trunks[*i]));
    let mut order = Vec::new();
    while !left.is_empty() {
        let must_precede = |j: &usize, i: &usize| trunks[*j].must_precede(&trunks[*i]);
        let free = left
            .iter()
            .position(|i| !left.iter().any(|j| j != i && must_precede(j, i)));
        if let Some(index) = free {
            order.push(left.remove(index));
        } else {
            // All constraints are part of a cycle.
            let second = split(trunks, left[0], &mut joints);
            left.push(second);
        }
    }
    // The only constraint on the second half of a trunk comes from the first half of the same
    // trunk.
    let is_second = |trunk: &Trunk| trunk.joint.is_some() && trunk.ends[0].is_empty();
    for second in (0..trunks.len()).filter(|i| is_second(&trunks[*i])) {
        order.retain(|i| *i != second);
        order.push(second);
    }
    order
}

/// The sort key of a trunk. Among lines that go down, the lowest line turns first. Among lines that
/// go up, the highest line turns first.
fn preference(trunk: &Trunk) -> (i32, i32) {
    let mean = |ends: &[i32]| ends.iter().sum::<i32>() / ends.len().max(1) as i32;
    let (from, to) = (mean(&trunk.ends[0]), mean(&trunk.ends[1]));
    if to > from { (0, -from) } else { (1, from) }
}

/// Splits a trunk in two. The joint of the two halves is near the middle, at a height that no other
/// joint has. Returns the number of the second half.
fn split(trunks: &mut Vec<Trunk>, i: usize, joints: &mut BTreeSet<i32>) -> usize {
    let (low, high) = trunks[i].range();
    let middle = (low + high) / (2 * GRID) * GRID + GRID / 2;
    let joint = (0..)
        .flat_map(|n| [middle + n * GRID, middle - n * GRID])
        .find(|y| !joints.contains(y))
        .unwrap_or(middle);
    joints.insert(joint);
    let right = std::mem::take(&mut trunks[i].ends[1]);
    trunks[i].joint = Some(joint);
    trunks.push(Trunk {
        net: trunks[i].net,
        track: 0,
        ends: [Vec::new(), right],
        joint: Some(joint),
    });
    trunks.len() - 1
}

/// Moves each trunk to the best legal position, until no move lowers the cost.
fn improve(order: &mut Vec<usize>, trunks: &[Trunk]) {
    let costs = OrderCosts::new(trunks);
    for _ in 0..30 {
        let mut moved = false;
        for position in 0..trunks.len() {
            let target = costs.best_position(order, position);
            if target != position {
                let i = order.remove(position);
                order.insert(target, i);
                moved = true;
            }
        }
        if !moved {
            break;
        }
    }
}

/// The cost of each pair of trunks if the first trunk is left of the second.
struct OrderCosts {
    count: usize,
    /// The costs by the left trunk and then by the right trunk.
    costs: Vec<i32>,
}

impl OrderCosts {
    /// More than any number of crossings.
    const ILLEGAL: i32 = 100_000;

    fn new(trunks: &[Trunk]) -> OrderCosts {
        let count = trunks.len();
        let mut costs = vec![0; count * count];
        for i in 0..count {
            for j in (0..count).filter(|j| *j != i) {
                let first_half = trunks[j].net == trunks[i].net && trunks[j].ends[1].is_empty();
                let illegal = trunks[j].must_precede(&trunks[i]) || first_half;
                costs[i * count + j] = if illegal {
                    OrderCosts::ILLEGAL
                } else {
                    trunks[i].crossings_left_of(&trunks[j])
                };
            }
        }
        OrderCosts { count, costs }
    }

    /// By how much the cost grows if trunk `i` moves from the right of trunk `j` to the left of
    /// `j`.
    fn change(&self, i: usize, j: usize) -> i32 {
        self.costs[i * self.count + j] - self.costs[j * self.count + i]
    }

    /// The position at which the trunk now at `position` costs least.
    fn best_position(&self, order: &[usize], position: usize) -> usize {
        let i = order[position];
        let (mut best, mut target) = (0, position);
        let mut change = 0;
        for left in (0..position).rev() {
            change += self.change(i, order[left]);
            if change < best {
                (best, target) = (change, left);
            }
        }
        change = 0;
        for (right, j) in order.iter().enumerate().skip(position + 1) {
            change += self.change(*j, i);
            if change < best {
                (best, target) = (change, right);
            }
        }
        target
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tracks(nets: &[(&[i32], &[i32])]) -> (Vec<(usize, usize)>, usize) {
        let nets: Vec<EndHeights> = nets
            .iter()
            .map(|(left, right)| [left.to_vec(), right.to_vec()])
            .collect();
        let (trunks, count) = trunks(&nets);
        (
            trunks
                .iter()
                .map(|trunk| (trunk.net, trunk.track))
                .collect(),
            count,
        )
    }

    #[test]
    fn level_lines_need_no_track() {
        assert_eq!(tracks(&[(&[10], &[10]), (&[20], &[40])]), (vec![(1, 0)], 1));
    }

    #[test]
    fn lines_that_go_down_together_do_not_cross() {
        // The lower one must turn first.
        assert_eq!(
            tracks(&[(&[0], &[100]), (&[20], &[120])]).0,
            [(0, 1), (1, 0)]
        );
    }

    #[test]
    fn a_line_that_ends_where_another_begins_turns_after_it() {
        assert_eq!(
            tracks(&[(&[0], &[50]), (&[50], &[100])]).0,
            [(0, 1), (1, 0)]
        );
    }

    #[test]
    fn trunks_far_apart_share_a_track() {
        assert_eq!(tracks(&[(&[0], &[50]), (&[70], &[100])]).1, 1);
    }

    #[test]
    fn lines_that_change_places_are_kept_apart_by_a_second_turn() {
        let (order, count) = tracks(&[(&[0], &[50]), (&[50], &[0])]);
        assert_eq!((order.len(), count), (3, 3));
    }
}
