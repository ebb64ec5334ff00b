//! The lines in a channel between two columns. A bus whose stops are not level gets a vertical trunk on a track. Tracks are in
//! such an order that no two lines lie on each other, and few cross.
//!
//! Where one bus leaves the channel at the height at which another enters it, the other must turn first. Such demands can go
//! round in a cycle; then a bus turns twice, on two trunks that are joined at a height of their own.

use std::collections::BTreeSet;

use super::GRID;

/// The heights of the stops of a bus, on the left and on the right.
pub(super) type Ends = [Vec<i32>; 2];

/// A vertical piece of a bus.
pub(super) struct Trunk {
    pub(super) bus: usize,
    /// From the left.
    pub(super) track: usize,
    /// The stops that it joins.
    pub(super) ends: Ends,
    /// The height at which it is joined to the other trunk of its bus, if there are two.
    pub(super) joint: Option<i32>,
}

/// Trunks on one track keep this distance.
const APART: i32 = GRID;
/// With more trunks than this in a channel the order is legal, but not improved.
const MOST_IMPROVED: usize = 300;

/// The trunks of all buses that need any, and the number of tracks. Of two trunks of one bus, the left one comes first.
pub(super) fn trunks(buses: &[Ends]) -> (Vec<Trunk>, usize) {
    let trunk = |(bus, ends): (usize, &Ends)| Trunk {
        bus,
        track: 0,
        ends: ends.clone(),
        joint: None,
    };
    let mut trunks: Vec<Trunk> = buses
        .iter()
        .enumerate()
        .filter(|(_, ends)| range(ends).is_some())
        .map(trunk)
        .collect();
    let mut order = legal_order(&mut trunks);
    if trunks.len() <= MOST_IMPROVED {
        improve(&mut order, &trunks);
    }
    let mut count = 0;
    for (place, &i) in order.iter().enumerate() {
        let before = order[..place]
            .iter()
            .filter(|j| !may_share(&trunks[i], &trunks[**j]));
        trunks[i].track = before.map(|j| trunks[*j].track + 1).max().unwrap_or(0);
        count = count.max(trunks[i].track + 1);
    }
    trunks.sort_by_key(|trunk| (trunk.bus, trunk.track));
    (trunks, count)
}

/// From the highest to the lowest stop; `None` if all are level and the bus needs no trunk.
pub(super) fn range(ends: &Ends) -> Option<(i32, i32)> {
    let all = || ends.iter().flatten().copied();
    let (low, high) = (all().min()?, all().max()?);
    (low < high).then_some((low, high))
}

impl Trunk {
    fn range(&self) -> (i32, i32) {
        let all = || self.ends.iter().flatten().copied().chain(self.joint);
        (all().min().unwrap_or(0), all().max().unwrap_or(0))
    }

    /// Lines to this side, with that to the other trunk.
    fn lines(&self, side: usize) -> impl Iterator<Item = i32> + '_ {
        let joint = self.joint.filter(|_| self.ends[side].is_empty());
        self.ends[side].iter().copied().chain(joint)
    }

    /// Whether this one must stand left of the other, or else their lines would lie on each other.
    fn must_precede(&self, other: &Trunk) -> bool {
        self.ends[0].iter().any(|y| other.ends[1].contains(y))
    }

    /// The crossings if this one stands left of the other.
    fn crossings_left_of(&self, other: &Trunk) -> i32 {
        let within = |range: (i32, i32), y: &i32| range.0 < *y && *y < range.1;
        let (own, others) = (self.range(), other.range());
        let over = self.lines(1).filter(|y| within(others, y)).count();
        (over + other.lines(0).filter(|y| within(own, y)).count()) as i32
    }
}

/// Whether two trunks may stand on one track.
fn may_share(a: &Trunk, b: &Trunk) -> bool {
    let (p, q) = (a.range(), b.range());
    let apart = p.1 + APART <= q.0 || q.1 + APART <= p.0;
    apart && a.bus != b.bus && !a.must_precede(b) && !b.must_precede(a)
}

/// An order in which no two lines lie on each other. Trunks are split until there is one.
fn legal_order(trunks: &mut Vec<Trunk>) -> Vec<usize> {
    let mut joints: BTreeSet<i32> = BTreeSet::new();
    let mut left: Vec<usize> = (0..trunks.len()).collect();
    // What goes down turns early if it is low, what goes up if it is high.
    left.sort_by_key(|i| {
        let mean = |ends: &[i32]| ends.iter().sum::<i32>() / ends.len().max(1) as i32;
        let (from, to) = (mean(&trunks[*i].ends[0]), mean(&trunks[*i].ends[1]));
        if to > from { (0, -from) } else { (1, from) }
    });
    let mut order = Vec::new();
    while !left.is_empty() {
        let free = left.iter().position(|i| {
            !left
                .iter()
                .any(|j| j != i && trunks[*j].must_precede(&trunks[*i]))
        });
        if let Some(at) = free {
            order.push(left.remove(at));
            continue;
        }
        // Everybody waits for somebody: one turns twice.
        let i = left[0];
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
            bus: trunks[i].bus,
            track: 0,
            ends: [Vec::new(), right],
            joint: Some(joint),
        });
        left.push(trunks.len() - 1);
    }
    // The second half of a trunk has no demands but that of its own first half.
    for second in
        (0..trunks.len()).filter(|i| trunks[*i].joint.is_some() && trunks[*i].ends[0].is_empty())
    {
        order.retain(|i| *i != second);
        order.push(second);
    }
    order
}

/// Moves each trunk to its best legal place, until none wants to move.
fn improve(order: &mut Vec<usize>, trunks: &[Trunk]) {
    const NEVER: i32 = 100_000;
    let n = trunks.len();
    let mut costs = vec![0; n * n];
    for i in 0..n {
        for j in (0..n).filter(|j| *j != i) {
            let first_half = trunks[j].bus == trunks[i].bus && trunks[j].ends[1].is_empty();
            let illegal = trunks[j].must_precede(&trunks[i]) || first_half;
            costs[i * n + j] = if illegal {
                NEVER
            } else {
                trunks[i].crossings_left_of(&trunks[j])
            };
        }
    }
    for _ in 0..30 {
        let mut moved = false;
        for place in 0..n {
            let i = order[place];
            let (mut best, mut target) = (0, place);
            let mut change = 0;
            for left in (0..place).rev() {
                change += costs[i * n + order[left]] - costs[order[left] * n + i];
                if change < best {
                    (best, target) = (change, left);
                }
            }
            change = 0;
            for right in place + 1..n {
                change += costs[order[right] * n + i] - costs[i * n + order[right]];
                if change < best {
                    (best, target) = (change, right);
                }
            }
            if target != place {
                let i = order.remove(place);
                order.insert(target, i);
                moved = true;
            }
        }
        if !moved {
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tracks(buses: &[(&[i32], &[i32])]) -> (Vec<(usize, usize)>, usize) {
        let buses: Vec<Ends> = buses
            .iter()
            .map(|(left, right)| [left.to_vec(), right.to_vec()])
            .collect();
        let (trunks, count) = trunks(&buses);
        (
            trunks
                .iter()
                .map(|trunk| (trunk.bus, trunk.track))
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
