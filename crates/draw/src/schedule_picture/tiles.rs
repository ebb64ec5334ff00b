//! The boxes of all ranks within a window of an array.

use titin_array::{IndexRange, Order, Ownership, Region};

use crate::schedule::FieldSide;

/// The most pieces that readers can tell apart in a picture.
pub(super) const MOST_PIECES: usize = 1200;
/// The most cuts along a dimension.
pub(super) const MOST_CUTS: usize = 64;
/// The most rows of elements to look at on a side given by indices.
const MOST_ROWS: usize = 200_000;

/// Boxes of an array, each with the owning rank.
pub(super) type Tiles = Vec<(u32, Region)>;

/// The boxes of all ranks within a window; `None` if there are too many, or more than `cuts` cuts
/// along a dimension.
pub(super) fn tiles(side: &FieldSide, window: &Region, cuts: usize) -> Option<Tiles> {
    if side.side.decomposition.is_regular() {
        return tiles_by_rule(side, window, cuts);
    }
    let mut tiles = Vec::new();
    let mut rows = 0;
    for rank in 0..side.ranks() {
        match side.parts(rank) {
            Ownership::Boxes(boxes) => {
                let boxes = boxes.iter();
                let inside = boxes.filter_map(|region| region.intersection(window));
                tiles.extend(inside.map(|region| (rank, region)));
            }
            Ownership::Indices(runs) => {
                for run in runs {
                    add_rows(&mut tiles, &mut rows, side, rank, run, window)?;
                }
            }
            Ownership::Rule => {}
        }
        if tiles.len() > MOST_PIECES {
            return None;
        }
    }
    let many_cuts = |dim| distinct_lower_bounds(&tiles, dim) > cuts;
    (!(0..window.lower().len()).any(many_cuts)).then_some(tiles)
}

/// Adds the rows of a run of indices. `rows` counts the rows so far; too many give `None`.
fn add_rows(
    tiles: &mut Tiles,
    rows: &mut usize,
    side: &FieldSide,
    rank: u32,
    run: &IndexRange,
    window: &Region,
) -> Option<()> {
    let mut first = run.first;
    while first < run.end() {
        let (row, next) = row(side, first, run.end())?;
        tiles.extend(row.intersection(window).map(|region| (rank, region)));
        first = next;
        *rows += 1;
        if *rows > MOST_ROWS || tiles.len() > MOST_PIECES {
            return None;
        }
    }
    Some(())
}

/// How many different lower bounds boxes have in a dimension.
fn distinct_lower_bounds(tiles: &Tiles, dim: usize) -> usize {
    let lower = tiles.iter().map(|(_, region)| region.lower()[dim]);
    let mut lower: Vec<u64> = lower.collect();
    lower.sort_unstable();
    lower.dedup();
    lower.len()
}

/// The boxes of a regular decomposition: the products of the stretches between cuts.
fn tiles_by_rule(side: &FieldSide, window: &Region, most_cuts: usize) -> Option<Tiles> {
    let decomposition = &side.side.decomposition;
    let mut corners: Vec<(Vec<u64>, Vec<u64>)> = vec![(Vec::new(), Vec::new())];
    for dim in 0..window.lower().len() {
        let (lower, upper) = (window.lower()[dim], window.upper()[dim]);
        let cuts = decomposition.cuts(dim, lower, upper);
        let cuts: Vec<u64> = cuts.take(most_cuts + 1).collect();
        if cuts.len() > most_cuts || cuts.len().saturating_mul(corners.len()) > MOST_PIECES {
            return None;
        }
        let starts = std::iter::once(lower).chain(cuts.iter().copied());
        let stretches: Vec<(u64, u64)> = starts.zip(cuts.iter().copied()).collect();
        let with_dim = |(lower, upper): &(Vec<u64>, Vec<u64>)| {
            let (lower, upper) = (lower.clone(), upper.clone());
            let with_stretch = move |(from, to): &(u64, u64)| {
                (
                    [&lower[..], &[*from]].concat(),
                    [&upper[..], &[*to]].concat(),
                )
            };
            stretches.iter().map(with_stretch).collect::<Vec<_>>()
        };
        corners = corners.iter().flat_map(with_dim).collect();
    }
    let tile = |(lower, upper): &(Vec<u64>, Vec<u64>)| {
        Some((decomposition.owner(lower)?, Region::new(lower, upper).ok()?))
    };
    corners.iter().map(tile).collect()
}

/// The largest box that begins with element `first` and ends before element `last`, either within a
/// single row or of whole rows. Also returns the first element after the box.
fn row(side: &FieldSide, first: u64, last: u64) -> Option<(Region, u64)> {
    let (shape, order) = (side.side.decomposition.shape(), side.side.order);
    let dims = shape.len();
    let lower = order.point(first, shape);
    let mut upper = lower;
    upper.iter_mut().for_each(|index| *index += 1);
    if dims == 0 {
        return Some((Region::new(&lower, &upper).ok()?, last));
    }
    // The dimensions with the fastest and the second fastest index.
    let (fastest, second) = match order {
        Order::C => (dims - 1, dims.saturating_sub(2)),
        _ => (0, 1),
    };
    let length = (shape[fastest] - lower[fastest]).min(last - first);
    upper[fastest] = lower[fastest] + length;
    let mut next = first + length;
    if dims > 1 && length == shape[fastest] {
        let count = ((last - first) / length).min(shape[second] - lower[second]);
        upper[second] = lower[second] + count;
        next = first + count * length;
    }
    Some((Region::new(&lower, &upper).ok()?, next))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::FieldCoupling;
    use crate::schedule::described::described_field;
    use titin_model::array_description;

    fn coupling(from: &str, to: &str) -> FieldCoupling {
        let sides = [format!("from: {from}"), format!("to: {to}")].map(std::path::PathBuf::from);
        described_field(&array_description::read(&sides).unwrap()).unwrap()
    }

    #[test]
    fn listed_elements_are_drawn_row_by_row_and_whole_rows_as_one() {
        let listed = coupling("{shape: [6, 8], indices: [[3:40], [0:3, 40:48]]}", "{}");
        let boxes = |order: &str| {
            let listed = coupling(
                &format!("{{shape: [6, 8], indices: [[3:40], [0:3, 40:48]], order: {order}}}"),
                "{}",
            );
            let tiles = tiles(&listed.from, &Region::whole(&[6, 8]).unwrap(), MOST_CUTS).unwrap();
            tiles
                .iter()
                .map(|(rank, region)| format!("{rank} {region}"))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            boxes("C"),
            [
                "0 [0:1, 3:8]",
                "0 [1:5, 0:8]",
                "1 [0:1, 0:3]",
                "1 [5:6, 0:8]"
            ]
        );
        assert_eq!(
            boxes("F"),
            [
                "0 [3:6, 0:1]",
                "0 [0:6, 1:6]",
                "0 [0:4, 6:7]",
                "1 [0:3, 0:1]",
                "1 [4:6, 6:7]",
                "1 [0:6, 7:8]"
            ]
        );
        // As many cuts as there is room for.
        assert!(tiles(&listed.from, &Region::whole(&[6, 8]).unwrap(), 2).is_none());
    }
}
