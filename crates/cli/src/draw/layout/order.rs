//! The order of items in their columns and of ports on their boxes, with few crossings: sweeps to and fro that put everything at
//! the mean of its neighbours, then swaps of neighbours that help.

use super::sheet::{Bus, Item, Sheet, Stop};

/// Orders items and ports. `fixed` boxes keep the order of their ports.
pub(super) fn order(sheet: &mut Sheet, fixed: &[bool]) {
    let size: usize = sheet.columns.iter().map(Vec::len).sum();
    let rounds = if size > 2000 { 4 } else { 24 };
    let mut best = (usize::MAX, sheet.columns.clone(), sheet.faces.clone());
    let mut places = places(sheet);
    for round in 0..rounds {
        let last = sheet.columns.len() - 1;
        for step in 0..=last {
            // To the right, by what stands on the left; then back.
            let (column, side) = if round % 2 == 0 {
                (step, 0)
            } else {
                (last - step, 1)
            };
            sort_column(sheet, &mut places, column, side);
            sort_ports(sheet, &places, column, fixed);
        }
        let crossings = crossings(sheet, &places);
        if crossings < best.0 {
            best = (crossings, sheet.columns.clone(), sheet.faces.clone());
        }
        if crossings == 0 {
            break;
        }
    }
    (_, sheet.columns, sheet.faces) = best;
    if size <= 600 {
        swap_neighbours(sheet, fixed);
    }
}

/// The index of each item in its column.
fn places(sheet: &Sheet) -> Vec<usize> {
    let mut places = vec![0; sheet.items.len()];
    for column in &sheet.columns {
        column
            .iter()
            .enumerate()
            .for_each(|(place, item)| places[*item] = place);
    }
    places
}

/// Where a stop is, counted in items: ports spread over their item.
fn height(sheet: &Sheet, places: &[usize], stop: &Stop, side: usize) -> f64 {
    // What stands left of a channel is joined by its right face.
    let face = &sheet.faces[stop.item][1 - side];
    let within = face.iter().position(|port| *port == stop.port);
    let share = within.map_or(0.5, |within| (within + 1) as f64 / (face.len() + 1) as f64);
    places[stop.item] as f64 + share
}

/// The buses beside a column, on its left (0) or right (1), with the side of the bus that the column is on.
fn beside(sheet: &Sheet, column: usize, side: usize) -> (&[Bus], usize) {
    let channel = if side == 0 {
        column.checked_sub(1)
    } else {
        Some(column)
    };
    (
        channel
            .and_then(|channel| sheet.channels.get(channel))
            .map_or(&[], Vec::as_slice),
        1 - side,
    )
}

fn sort_column(sheet: &mut Sheet, places: &mut [usize], column: usize, side: usize) {
    let mut sums = vec![(0.0, 0.0); sheet.columns[column].len()];
    let (buses, own) = beside(sheet, column, side);
    for bus in buses {
        let others = &bus.stops[1 - own];
        let sum: f64 = others
            .iter()
            .map(|other| height(sheet, places, other, 1 - own))
            .sum();
        for stop in &bus.stops[own] {
            let (total, count) = &mut sums[places[stop.item]];
            *total += sum;
            *count += others.len() as f64;
        }
    }
    let mean = |place: usize| (sums[place].1 > 0.0).then(|| sums[place].0 / sums[place].1);
    // What has no neighbours there stays where it is; the others share the rest of the places.
    let mut movable: Vec<(f64, usize)> = sheet.columns[column]
        .iter()
        .enumerate()
        .filter_map(|(place, item)| Some((mean(place)?, *item)))
        .collect();
    movable.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut next = movable.into_iter();
    for (place, sum) in sums.iter().enumerate() {
        if sum.1 > 0.0
            && let Some((_, item)) = next.next()
        {
            sheet.columns[column][place] = item;
        }
    }
    sheet.columns[column]
        .iter()
        .enumerate()
        .for_each(|(place, item)| places[*item] = place);
}

/// Ports stand as their peers do; those without a peer come last.
fn sort_ports(sheet: &mut Sheet, places: &[usize], column: usize, fixed: &[bool]) {
    for side in 0..2 {
        let mut means: Vec<(usize, usize, f64)> = Vec::new();
        let (buses, own) = beside(sheet, column, side);
        for bus in buses {
            for (i, stop) in bus.stops[own].iter().enumerate() {
                let Item::Box(part) = sheet.items[stop.item] else {
                    continue;
                };
                if fixed[part] {
                    continue;
                }
                let others = &bus.stops[1 - own];
                let mean = if others.is_empty() {
                    // A peer in the same column: above or below.
                    let peer = bus.stops[own]
                        .iter()
                        .enumerate()
                        .find(|(j, _)| *j != i)
                        .map(|(_, peer)| peer.item);
                    let above = peer.is_some_and(|peer| places[peer] < places[stop.item]);
                    if above { -1.0 } else { 1e9 }
                } else {
                    others
                        .iter()
                        .map(|other| height(sheet, places, other, 1 - own))
                        .sum::<f64>()
                        / others.len() as f64
                };
                means.push((stop.item, stop.port, mean));
            }
        }
        means.sort_by(|a, b| {
            (a.0, a.2)
                .partial_cmp(&(b.0, b.2))
                .unwrap_or(std::cmp::Ordering::Equal)
        });
        for of_item in means.chunk_by(|a, b| a.0 == b.0) {
            let face = &mut sheet.faces[of_item[0].0][side];
            let mut sorted: Vec<usize> = of_item.iter().map(|(_, port, _)| *port).collect();
            sorted.extend(
                face.iter()
                    .filter(|port| !of_item.iter().any(|(_, p, _)| p == *port)),
            );
            *face = sorted;
        }
    }
}

fn crossings(sheet: &Sheet, places: &[usize]) -> usize {
    (0..sheet.channels.len())
        .map(|channel| crossings_in(sheet, places, channel))
        .sum()
}

/// Pairs of lines that change sides within a channel.
fn crossings_in(sheet: &Sheet, places: &[usize], channel: usize) -> usize {
    let mut lines: Vec<(f64, f64)> = Vec::new();
    for bus in &sheet.channels[channel] {
        for left in &bus.stops[0] {
            let from = height(sheet, places, left, 0);
            lines.extend(
                bus.stops[1]
                    .iter()
                    .map(|right| (from, height(sheet, places, right, 1))),
            );
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

/// Swaps neighbours in a column wherever that leaves fewer crossings.
fn swap_neighbours(sheet: &mut Sheet, fixed: &[bool]) {
    let mut places = places(sheet);
    let mut now = crossings(sheet, &places);
    for _ in 0..8 {
        let before = now;
        for column in 0..sheet.columns.len() {
            for place in 1..sheet.columns[column].len() {
                let faces = sheet.faces.clone();
                let swap = |sheet: &mut Sheet, places: &mut [usize]| {
                    sheet.columns[column].swap(place - 1, place);
                    let column = &sheet.columns[column];
                    places[column[place - 1]] = place - 1;
                    places[column[place]] = place;
                };
                swap(sheet, &mut places);
                for near in column.saturating_sub(1)..(column + 2).min(sheet.columns.len()) {
                    sort_ports(sheet, &places, near, fixed);
                }
                let after = crossings(sheet, &places);
                if after < now {
                    now = after;
                } else {
                    swap(sheet, &mut places);
                    sheet.faces = faces;
                }
            }
        }
        if now == 0 || now == before {
            break;
        }
    }
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
