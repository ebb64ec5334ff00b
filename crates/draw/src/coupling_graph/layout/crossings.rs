//! The order of the items in each column and of the ports on each box, with few crossings of lines.
//! Sweeps to and fro put each item and each port at the mean of the neighbours (the barycentre
//! method). Then neighbours are swapped as long as a swap leaves fewer crossings.

use super::channels::{ChannelNet, ColumnItem, LayeredGraph, NetEnd};

/// Graphs with more items than `MANY_ITEMS` get few sweeps.
const MANY_ITEMS: usize = 2000;
/// Graphs with more items than `MOST_SWAPPED` get no swaps.
const MOST_SWAPPED: usize = 600;

/// Orders items and ports. A box marked in `fixed` keeps the order of the box's ports.
pub(super) fn order(layers: &mut LayeredGraph, fixed: &[bool]) {
    let size: usize = layers.columns.iter().map(Vec::len).sum();
    let rounds = if size > MANY_ITEMS { 4 } else { 24 };
    let mut best = (usize::MAX, layers.columns.clone(), layers.faces.clone());
    let mut positions = positions(layers);
    for round in 0..rounds {
        sweep(layers, &mut positions, round % 2 == 0, fixed);
        let crossings = crossings(layers, &positions);
        if crossings < best.0 {
            best = (crossings, layers.columns.clone(), layers.faces.clone());
        }
        if crossings == 0 {
            break;
        }
    }
    (_, layers.columns, layers.faces) = best;
    if size <= MOST_SWAPPED {
        swap_neighbours(layers, fixed);
    }
}

/// Sorts all columns: rightwards by the neighbours on the left, or leftwards by the neighbours on
/// the right.
fn sweep(layers: &mut LayeredGraph, positions: &mut [usize], rightwards: bool, fixed: &[bool]) {
    let last = layers.columns.len() - 1;
    for step in 0..=last {
        let (column, side) = match rightwards {
            true => (step, 0),
            false => (last - step, 1),
        };
        sort_column(layers, positions, column, side);
        sort_ports(layers, positions, column, fixed);
    }
}

/// The index of each item in the item's column.
fn positions(layers: &LayeredGraph) -> Vec<usize> {
    let mut positions = vec![0; layers.items.len()];
    for column in &layers.columns {
        for (index, item) in column.iter().enumerate() {
            positions[*item] = index;
        }
    }
    positions
}

/// The height of an end, counted in items. The ports of an item are evenly spaced over the item's
/// height. `side` is the item's side of the channel.
fn height(layers: &LayeredGraph, positions: &[usize], end: &NetEnd, side: usize) -> f64 {
    // The channel is right of an item on the channel's left.
    let face = &layers.faces[end.item][1 - side];
    let index = face.iter().position(|port| *port == end.port);
    let share = index.map_or(0.5, |index| (index + 1) as f64 / (face.len() + 1) as f64);
    positions[end.item] as f64 + share
}

/// The sum of the heights of all ends on one side of a channel.
fn height_sum(layers: &LayeredGraph, positions: &[usize], net: &ChannelNet, side: usize) -> f64 {
    let ends = net.ends[side].iter();
    ends.map(|end| height(layers, positions, end, side)).sum()
}

/// The nets in the channel left (0) or right (1) of a column, and the column's side of the same
/// channel.
fn nets_beside(layers: &LayeredGraph, column: usize, side: usize) -> (&[ChannelNet], usize) {
    let channel = if side == 0 {
        column.checked_sub(1)
    } else {
        Some(column)
    };
    let nets = channel.and_then(|channel| layers.channels.get(channel));
    (nets.map_or(&[], Vec::as_slice), 1 - side)
}

/// Sorts the items of a column by the mean height of each item's neighbours on `side`. Items
/// without neighbours keep their positions.
fn sort_column(layers: &mut LayeredGraph, positions: &mut [usize], column: usize, side: usize) {
    let means = column_means(layers, positions, column, side);
    let items = layers.columns[column].iter().zip(&means);
    let movable = items.filter_map(|(item, mean)| Some(((*mean)?, *item)));
    let mut movable: Vec<(f64, usize)> = movable.collect();
    movable.sort_by(|a, b| a.0.total_cmp(&b.0));
    let places = layers.columns[column].iter_mut().zip(&means);
    let places = places.filter(|(_, mean)| mean.is_some());
    for ((place, _), (_, item)) in places.zip(movable) {
        *place = item;
    }
    for (position, item) in layers.columns[column].iter().enumerate() {
        positions[*item] = position;
    }
}

/// The mean height of the other ends of each item of a column; `None` without other ends.
fn column_means(
    layers: &LayeredGraph,
    positions: &[usize],
    column: usize,
    side: usize,
) -> Vec<Option<f64>> {
    let mut sums = vec![(0.0, 0.0); layers.columns[column].len()];
    let (nets, own) = nets_beside(layers, column, side);
    for net in nets {
        let sum = height_sum(layers, positions, net, 1 - own);
        for end in &net.ends[own] {
            let (total, count) = &mut sums[positions[end.item]];
            *total += sum;
            *count += net.ends[1 - own].len() as f64;
        }
    }
    let mean = |(total, count): (f64, f64)| (count > 0.0).then(|| total / count);
    sums.into_iter().map(mean).collect()
}

/// A port of an item, with the mean height of the port's peers.
struct PortMean {
    item: usize,
    port: usize,
    mean: f64,
}

/// Sorts the ports of a column's boxes by the height of each port's peers. Ports without a peer
/// come last.
fn sort_ports(layers: &mut LayeredGraph, positions: &[usize], column: usize, fixed: &[bool]) {
    for side in 0..2 {
        let mut means = port_means(layers, positions, column, side, fixed);
        means.sort_by(|a, b| {
            (a.item, a.mean)
                .partial_cmp(&(b.item, b.mean))
                .unwrap_or(std::cmp::Ordering::Equal)
        });
        for of_item in means.chunk_by(|a, b| a.item == b.item) {
            let face = &mut layers.faces[of_item[0].item][side];
            let mut sorted: Vec<usize> = of_item.iter().map(|mean| mean.port).collect();
            sorted.extend(
                face.iter()
                    .filter(|port| !of_item.iter().any(|mean| mean.port == **port)),
            );
            *face = sorted;
        }
    }
}

/// The means of the ports on a single side of a column's boxes, without the ports of `fixed` boxes.
fn port_means(
    layers: &LayeredGraph,
    positions: &[usize],
    column: usize,
    side: usize,
    fixed: &[bool],
) -> Vec<PortMean> {
    let mut means = Vec::new();
    let (nets, own) = nets_beside(layers, column, side);
    for net in nets {
        for (index, end) in net.ends[own].iter().enumerate() {
            let ColumnItem::Box(number) = layers.items[end.item] else {
                continue;
            };
            if fixed[number] {
                continue;
            }
            let peers = net.ends[1 - own].len();
            let mean = if peers == 0 {
                mean_within_column(positions, &net.ends[own], index)
            } else {
                height_sum(layers, positions, net, 1 - own) / peers as f64
            };
            let (item, port) = (end.item, end.port);
            means.push(PortMean { item, port, mean });
        }
    }
    means
}

/// The mean of a port whose peers are in the same column: above or below all other ports.
fn mean_within_column(positions: &[usize], ends: &[NetEnd], index: usize) -> f64 {
    let mut others = ends.iter().enumerate().filter(|(other, _)| *other != index);
    let is_above = others
        .next()
        .is_some_and(|(_, peer)| positions[peer.item] < positions[ends[index].item]);
    if is_above { -1.0 } else { 1e9 }
}

fn crossings(layers: &LayeredGraph, positions: &[usize]) -> usize {
    (0..layers.channels.len())
        .map(|channel| crossings_in(layers, positions, channel))
        .sum()
}

/// The number of pairs of lines that cross within a channel.
fn crossings_in(layers: &LayeredGraph, positions: &[usize], channel: usize) -> usize {
    let mut lines: Vec<(f64, f64)> = Vec::new();
    for net in &layers.channels[channel] {
        for left in &net.ends[0] {
            let from = height(layers, positions, left, 0);
            let to = net.ends[1].iter();
            lines.extend(to.map(|right| (from, height(layers, positions, right, 1))));
        }
    }
    lines.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let mut ends: Vec<f64> = lines.iter().map(|line| line.1).collect();
    inversions(&mut ends)
}

/// The number of pairs in the wrong order, by merge sort.
fn inversions(values: &mut [f64]) -> usize {
    if values.len() < 2 {
        return 0;
    }
    let middle = values.len() / 2;
    let (left, right) = values.split_at_mut(middle);
    let mut count = inversions(left) + inversions(right);
    let mut merged = Vec::with_capacity(values.len());
    let (left, right) = values.split_at(middle);
    let (mut l, mut r) = (0, 0);
    while l < left.len() || r < right.len() {
        if r == right.len() || (l < left.len() && left[l] <= right[r]) {
            merged.push(left[l]);
            l += 1;
        } else {
            merged.push(right[r]);
            r += 1;
            count += left.len() - l;
        }
    }
    values.copy_from_slice(&merged);
    count
}

/// Swaps neighbours in all columns as long as a swap leaves fewer crossings.
fn swap_neighbours(layers: &mut LayeredGraph, fixed: &[bool]) {
    let mut positions = positions(layers);
    let mut now = crossings(layers, &positions);
    for _ in 0..8 {
        let before = now;
        for column in 0..layers.columns.len() {
            for lower in 1..layers.columns[column].len() {
                let faces = layers.faces.clone();
                swap(layers, &mut positions, column, lower);
                for near in column.saturating_sub(1)..(column + 2).min(layers.columns.len()) {
                    sort_ports(layers, &positions, near, fixed);
                }
                let after = crossings(layers, &positions);
                if after < now {
                    now = after;
                } else {
                    swap(layers, &mut positions, column, lower);
                    layers.faces = faces;
                }
            }
        }
        if now == 0 || now == before {
            break;
        }
    }
}

/// Swaps the item at position `lower` with the item above.
fn swap(layers: &mut LayeredGraph, positions: &mut [usize], column: usize, lower: usize) {
    let column = &mut layers.columns[column];
    column.swap(lower - 1, lower);
    positions[column[lower - 1]] = lower - 1;
    positions[column[lower]] = lower;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inversions_are_pairs_in_the_wrong_order() {
        for (values, count) in [
            (vec![1.0, 2.0, 3.0], 0),
            (vec![3.0, 2.0, 1.0], 3),
            (vec![2.0, 2.0, 1.0, 3.0], 2),
        ] {
            assert_eq!(inversions(&mut values.clone()), count);
        }
    }
}
