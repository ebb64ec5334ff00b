//! The height of each item: in the order of the item's column, with gaps for the text, and with as
//! many straight lines as possible.
//!
//! A line of an item is straight if the item stands at a certain height. An item has such a height
//! for each line. Items that would have to pass each other are merged, and get the weighted median
//! of the heights of all merged items (isotonic regression in the first norm, by pooling adjacent
//! violators). A median makes some lines exactly straight; a mean would make all lines almost
//! straight.

use super::GRID;
use super::channels::{ChannelNet, ColumnItem, LayeredGraph, NetEnd};

/// The heights of all items.
pub(super) struct Heights {
    pub(super) items: Vec<i32>,
    /// The distance of each port of each item from the item's upper edge.
    pub(super) ports: Vec<Vec<i32>>,
}

const BETWEEN_BOXES: i32 = 3 * GRID;
const BETWEEN_LANES: i32 = GRID;
const BETWEEN_OTHERS: i32 = 2 * GRID;

/// The rounds in which items align with their neighbours on a single side.
const ONE_SIDED_ROUNDS: usize = 12;
const ROUNDS: usize = 16;

/// The upper edge of each item. The highest edge is at 0.
pub(super) fn item_tops(layers: &LayeredGraph, heights: &Heights) -> Vec<i32> {
    let mut tops = first_tops(layers, heights);
    let alignments = Alignments::new(layers);
    let last = layers.columns.len() - 1;
    for round in 0..ROUNDS {
        // In a one-sided round, items align with the column before, in the direction of the round.
        // In the last rounds, items align with both sides.
        let sides: &[usize] = match round {
            ONE_SIDED_ROUNDS.. => &[0, 1],
            even if even % 2 == 0 => &[0],
            _ => &[1],
        };
        for step in 0..=last {
            let number = if round % 2 == 0 { step } else { last - step };
            let column = &layers.columns[number];
            let offsets = offsets(layers, column, heights);
            align(column, &offsets, heights, &alignments, sides, &mut tops);
        }
    }
    let items = layers.columns.iter().flatten();
    let highest = items.map(|item| tops[*item]).min().unwrap_or(0);
    tops.iter_mut().for_each(|y| *y -= highest);
    tops
}

/// Tops before all rounds: the columns have their middles at one height.
fn first_tops(layers: &LayeredGraph, heights: &Heights) -> Vec<i32> {
    let mut tops = vec![0; layers.items.len()];
    for column in &layers.columns {
        let offsets = offsets(layers, column, heights);
        let last = column.last().zip(offsets.last());
        let height = last.map_or(0, |(last, offset)| offset + heights.items[*last]);
        for (item, offset) in column.iter().zip(&offsets) {
            tops[*item] = offset - height / (2 * GRID) * GRID;
        }
    }
    tops
}

/// A line to another item. The line is straight if the two ports are level.
struct Alignment {
    own_port: usize,
    other: usize,
    other_port: usize,
    weight: i32,
}

/// The lines of each item to the left and to the right.
struct Alignments(Vec<[Vec<Alignment>; 2]>);

impl Alignments {
    fn new(layers: &LayeredGraph) -> Self {
        let items = layers.items.iter();
        let mut alignments = Alignments(items.map(|_| [Vec::new(), Vec::new()]).collect());
        for net in layers.channels.iter().flatten() {
            alignments.add_lines(layers, net);
            for side in 0..2 {
                if net.ends[1 - side].is_empty() {
                    alignments.add_peers(&net.ends[side], 1 - side);
                }
            }
        }
        alignments
    }

    /// Adds the lines across a channel. A line between two lanes has the largest weight, since the
    /// eye follows such a line over several columns.
    fn add_lines(&mut self, layers: &LayeredGraph, net: &ChannelNet) {
        let is_lane = |end: &NetEnd| matches!(layers.items[end.item], ColumnItem::Lane(_));
        let [left, right] = &net.ends;
        let lines = (left.len() * right.len()).max(1) as i32;
        for left in left {
            for right in right {
                let lanes = usize::from(is_lane(left)) + usize::from(is_lane(right));
                let weight = ([2, 5, 24][lanes] * 8 / lines).max(1);
                self.add(left, right, 1, weight);
                self.add(right, left, 0, weight);
            }
        }
    }

    /// Adds weak lines between peers in the same column, so that the peers stand close together.
    fn add_peers(&mut self, ends: &[NetEnd], side: usize) {
        for (upper, lower) in ends.iter().zip(ends.iter().skip(1)) {
            self.add(upper, lower, side, 1);
            self.add(lower, upper, side, 1);
        }
    }

    fn add(&mut self, own: &NetEnd, other: &NetEnd, side: usize, weight: i32) {
        self.0[own.item][side].push(Alignment {
            own_port: own.port,
            other: other.item,
            other_port: other.port,
            weight,
        });
    }
}

/// The least distance of each item of a column from the first item.
fn offsets(layers: &LayeredGraph, column: &[usize], heights: &Heights) -> Vec<i32> {
    let mut offset = 0;
    let mut offsets = Vec::with_capacity(column.len());
    offsets.extend(column.first().map(|_| 0));
    for pair in column.windows(2) {
        let gap = gap_between(layers.items[pair[0]], layers.items[pair[1]]);
        offset += heights.items[pair[0]] + gap;
        offsets.push(offset);
    }
    offsets
}

fn gap_between(above: ColumnItem, below: ColumnItem) -> i32 {
    match (above, below) {
        (ColumnItem::Outer(_), ColumnItem::Outer(_)) => 0,
        (ColumnItem::Lane(_), ColumnItem::Lane(_)) => BETWEEN_LANES,
        (ColumnItem::Lane(_), _) | (_, ColumnItem::Lane(_)) => BETWEEN_OTHERS,
        _ => BETWEEN_BOXES,
    }
}

/// Adjacent items with the same height above their offsets.
struct MergedItems {
    count: usize,
    /// The heights at which a line of a merged item is straight, with the weights of the lines.
    targets: Vec<(i32, i32)>,
    /// The median of the targets.
    height: i32,
}

/// Gives the items of a column the heights at which most of their lines to `sides` are straight.
fn align(
    column: &[usize],
    offsets: &[i32],
    heights: &Heights,
    alignments: &Alignments,
    sides: &[usize],
    tops: &mut [i32],
) {
    let mut merged: Vec<MergedItems> = Vec::new();
    for (item, offset) in column.iter().zip(offsets) {
        let lines = sides.iter().flat_map(|side| &alignments.0[*item][*side]);
        let target = |line: &Alignment| {
            let level = tops[line.other] + heights.ports[line.other][line.other_port];
            let height = level - heights.ports[*item][line.own_port] - offset;
            (height, line.weight)
        };
        let mut targets: Vec<(i32, i32)> = lines.map(target).collect();
        if targets.is_empty() {
            targets.push((tops[*item] - offset, 1));
        }
        push_merged(&mut merged, targets);
    }
    let mut rest = column.iter().zip(offsets);
    for items in merged {
        for (item, offset) in rest.by_ref().take(items.count) {
            tops[*item] = items.height + offset;
        }
    }
}

/// Adds an item below others. Items above that would be lower than the item are merged with the
/// item.
fn push_merged(merged: &mut Vec<MergedItems>, mut targets: Vec<(i32, i32)>) {
    let mut items = MergedItems {
        count: 1,
        height: median(&mut targets),
        targets,
    };
    while let Some(mut above) = merged.pop_if(|above| above.height > items.height) {
        above.targets.append(&mut items.targets);
        above.count += items.count;
        above.height = median(&mut above.targets);
        items = above;
    }
    merged.push(items);
}

/// The lower weighted median.
fn median(points: &mut [(i32, i32)]) -> i32 {
    points.sort_unstable();
    let total: i64 = points.iter().map(|(_, weight)| i64::from(*weight)).sum();
    let mut sum = 0;
    for (value, weight) in points.iter() {
        sum += i64::from(*weight);
        if 2 * sum >= total {
            return *value;
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_weighted() {
        assert_eq!(median(&mut [(5, 1), (1, 1), (3, 1)]), 3);
        assert_eq!(median(&mut [(5, 3), (1, 1), (3, 1)]), 5);
        assert_eq!(median(&mut [(1, 1), (3, 1)]), 1);
    }
}
