//! How far down everything stands: in its order, with the gaps that text needs, and with as many straight lines as can be.
//!
//! Each item wants to stand where its lines are straight. Items that want to pass each other are joined into a block, which
//! stands at the weighted median of all that its members want (isotonic regression in the first norm): a median makes some
//! lines exactly straight, where a mean makes all of them almost straight.

use super::GRID;
use super::sheet::{Item, Sheet};

/// What the heights of items and of their ports are.
pub(super) struct Heights<'a> {
    pub(super) item: &'a dyn Fn(usize) -> i32,
    /// Of a port below its item's upper edge.
    pub(super) port: &'a dyn Fn(usize, usize) -> i32,
}

const BETWEEN_BOXES: i32 = 3 * GRID;
const BETWEEN_LANES: i32 = GRID;
const BETWEEN: i32 = 2 * GRID;

/// The upper edge of each item; the topmost is at 0.
pub(super) fn place(sheet: &Sheet, heights: &Heights<'_>) -> Vec<i32> {
    let mut tops = vec![0; sheet.items.len()];
    for column in &sheet.columns {
        let offsets = offsets(sheet, column, heights);
        let height = column
            .last()
            .map_or(0, |last| offsets[column.len() - 1] + (heights.item)(*last));
        column
            .iter()
            .zip(&offsets)
            .for_each(|(item, offset)| tops[*item] = offset - height / (2 * GRID) * GRID);
    }
    let wishes = Wishes::new(sheet);
    let last = sheet.columns.len() - 1;
    for round in 0..16 {
        // To and fro by one side, in the end by both.
        let sides: &[usize] = if round >= 12 {
            &[0, 1]
        } else if round % 2 == 0 {
            &[0]
        } else {
            &[1]
        };
        for step in 0..=last {
            let column = if round % 2 == 0 { step } else { last - step };
            settle(sheet, heights, &wishes, column, sides, &mut tops);
        }
    }
    let top = sheet
        .columns
        .iter()
        .flatten()
        .map(|item| tops[*item])
        .min()
        .unwrap_or(0);
    tops.iter_mut().for_each(|y| *y -= top);
    tops
}

/// A line to another item: it is straight if this item's port and the other's are level.
struct Wish {
    own_port: usize,
    other: usize,
    other_port: usize,
    weight: i32,
}

/// The lines of each item to its left and to its right.
struct Wishes(Vec<[Vec<Wish>; 2]>);

impl Wishes {
    fn new(sheet: &Sheet) -> Self {
        let mut wishes: Vec<[Vec<Wish>; 2]> = sheet
            .items
            .iter()
            .map(|_| [Vec::new(), Vec::new()])
            .collect();
        let lane = |item: usize| matches!(sheet.items[item], Item::Lane(_));
        for bus in sheet.channels.iter().flatten() {
            let lines = (bus.stops[0].len() * bus.stops[1].len()).max(1) as i32;
            for left in &bus.stops[0] {
                for right in &bus.stops[1] {
                    let stiff =
                        [2, 5, 24][usize::from(lane(left.item)) + usize::from(lane(right.item))];
                    let weight = (stiff * 8 / lines).max(1);
                    let wish = |own_port, other, other_port| Wish {
                        own_port,
                        other,
                        other_port,
                        weight,
                    };
                    wishes[left.item][1].push(wish(left.port, right.item, right.port));
                    wishes[right.item][0].push(wish(right.port, left.item, left.port));
                }
            }
            // Peers in one column want to be near.
            for own in 0..2 {
                if bus.stops[1 - own].is_empty() {
                    for (a, b) in bus.stops[own].iter().zip(bus.stops[own].iter().skip(1)) {
                        for (a, b) in [(a, b), (b, a)] {
                            let wish = Wish {
                                own_port: a.port,
                                other: b.item,
                                other_port: b.port,
                                weight: 1,
                            };
                            wishes[a.item][1 - own].push(wish);
                        }
                    }
                }
            }
        }
        Wishes(wishes)
    }
}

/// The least distances of the items of a column from its first.
fn offsets(sheet: &Sheet, column: &[usize], heights: &Heights<'_>) -> Vec<i32> {
    let mut at = 0;
    let mut offsets = Vec::with_capacity(column.len());
    for (i, item) in column.iter().enumerate() {
        if let Some(above) = i.checked_sub(1).map(|i| column[i]) {
            at += (heights.item)(above)
                + match (sheet.items[above], sheet.items[*item]) {
                    (Item::Outer(_), Item::Outer(_)) => 0,
                    (Item::Lane(_), Item::Lane(_)) => BETWEEN_LANES,
                    (Item::Lane(_), _) | (_, Item::Lane(_)) => BETWEEN,
                    _ => BETWEEN_BOXES,
                };
        }
        offsets.push(at);
    }
    offsets
}

struct Block {
    members: usize,
    points: Vec<(i32, i32)>,
    value: i32,
}

fn settle(
    sheet: &Sheet,
    heights: &Heights<'_>,
    wishes: &Wishes,
    column: usize,
    sides: &[usize],
    tops: &mut [i32],
) {
    let items = &sheet.columns[column];
    let offsets = offsets(sheet, items, heights);
    let mut blocks: Vec<Block> = Vec::new();
    for (item, offset) in items.iter().zip(&offsets) {
        let mut points: Vec<(i32, i32)> = Vec::new();
        for wish in sides.iter().flat_map(|side| &wishes.0[*item][*side]) {
            let level = tops[wish.other] + (heights.port)(wish.other, wish.other_port);
            points.push((
                level - (heights.port)(*item, wish.own_port) - offset,
                wish.weight,
            ));
        }
        if points.is_empty() {
            points.push((tops[*item] - offset, 1));
        }
        let mut block = Block {
            members: 1,
            value: median(&mut points),
            points,
        };
        while let Some(mut above) = blocks.pop_if(|above| above.value > block.value) {
            above.points.append(&mut block.points);
            above.members += block.members;
            above.value = median(&mut above.points);
            block = above;
        }
        blocks.push(block);
    }
    let mut next = items.iter().zip(&offsets);
    for block in blocks {
        for (item, offset) in next.by_ref().take(block.members) {
            tops[*item] = block.value + offset;
        }
    }
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
