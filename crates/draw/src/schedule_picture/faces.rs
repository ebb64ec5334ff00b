//! The faces of an array's picture: the boxes of each rank that a face shows.

use std::collections::BTreeMap;

use titin_array::{Region, Role};

use super::projection::{Facing, Projection};
use super::tiles::{MOST_CUTS, MOST_PIECES, Tiles, tiles};
use crate::schedule::{FieldCoupling, FieldSide};

/// The most cuts along a dimension if a corner is drawn. Fewer than [`MOST_CUTS`] leave room for
/// the numbers of ranks.
const MOST_CUTS_IN_CORNER: usize = 24;

/// The sender's rank, and the receiver's rank if the receiver's rank is known.
pub(super) type RankPair = (u32, Option<u32>);

/// A face of the picture of an array.
pub(super) struct Face {
    pub(super) facing: Facing,
    pub(super) window: Region,
    pub(super) tiles: Tiles,
    /// The boxes that each rank of the sender sends to each rank of the receiver.
    pub(super) pieces: BTreeMap<RankPair, Vec<Region>>,
}

/// The side of a role.
pub(super) fn own_side(coupling: &FieldCoupling, role: Role) -> &FieldSide {
    match role {
        Role::Sender => &coupling.from,
        Role::Receiver => &coupling.to,
    }
}

/// The side of the other role.
fn other_side(coupling: &FieldCoupling, role: Role) -> &FieldSide {
    match role {
        Role::Sender => &coupling.to,
        Role::Receiver => &coupling.from,
    }
}

impl Face {
    /// `None` if there are too many pieces. `cuts` is the most cuts along a dimension.
    pub(super) fn of(
        coupling: &FieldCoupling,
        role: Role,
        (facing, window): (Facing, Region),
        cuts: usize,
    ) -> Option<Face> {
        let own = own_side(coupling, role);
        let other = other_side(coupling, role);
        let tiles = if own.is_known() {
            tiles(own, &window, cuts)?
        } else {
            Vec::new()
        };
        let pieces = match window.intersection(&own.side.region) {
            Some(coupled) if other.is_known() => pieces(coupling, role, &tiles, &coupled, cuts)?,
            Some(coupled) if role == Role::Sender => pieces_of_senders(&tiles, &coupled),
            _ => BTreeMap::new(),
        };
        Some(Face {
            facing,
            window,
            tiles,
            pieces,
        })
    }
}

/// The intersections of the boxes of both sides; `None` if there are too many.
fn pieces(
    coupling: &FieldCoupling,
    role: Role,
    own_tiles: &Tiles,
    coupled: &Region,
    cuts: usize,
) -> Option<BTreeMap<RankPair, Vec<Region>>> {
    let other = other_side(coupling, role);
    let there = offset(own_side(coupling, role), other);
    let back: Vec<i64> = there.iter().map(|by| -by).collect();
    let mut pieces: BTreeMap<RankPair, Vec<Region>> = BTreeMap::new();
    let mut count = 0;
    for (other_rank, region) in tiles(other, &coupled.shift(&there)?, cuts)? {
        let region = region.shift(&back)?;
        for (own_rank, tile) in own_tiles {
            if let Some(piece) = region.intersection(tile) {
                let pair = match role {
                    Role::Sender => (*own_rank, Some(other_rank)),
                    Role::Receiver => (other_rank, Some(*own_rank)),
                };
                pieces.entry(pair).or_default().push(piece);
                count += 1;
            }
        }
        if count > MOST_PIECES {
            return None;
        }
    }
    Some(pieces)
}

/// The coupled boxes of each sender, if only the receivers know which receiver gets which element.
fn pieces_of_senders(tiles: &Tiles, coupled: &Region) -> BTreeMap<RankPair, Vec<Region>> {
    let mut pieces: BTreeMap<RankPair, Vec<Region>> = BTreeMap::new();
    for (rank, tile) in tiles {
        let pieces = pieces.entry((*rank, None)).or_default();
        pieces.extend(tile.intersection(coupled));
    }
    pieces
}

/// The offset from the array of a side to the array of the other side.
fn offset(own: &FieldSide, other: &FieldSide) -> Vec<i64> {
    let (from, to) = (own.side.region.lower(), other.side.region.lower());
    from.iter()
        .zip(to.iter())
        .map(|(from, to)| *to as i64 - *from as i64)
        .collect()
}

/// The boxes of both arrays to draw: all, or a corner of the coupled region with few enough pieces.
/// `None` if even a single element has too many pieces.
pub(super) fn windows(coupling: &FieldCoupling) -> Option<[Region; 2]> {
    let sides = [&coupling.from, &coupling.to];
    let dims = sides[0].side.region.lower().len();
    let most_cuts = if dims <= 3 {
        let whole = |side: &FieldSide| Region::whole(side.side.decomposition.shape()).ok();
        let whole = [whole(sides[0])?, whole(sides[1])?];
        if are_legible(coupling, &whole, MOST_CUTS) {
            return Some(whole);
        }
        MOST_CUTS_IN_CORNER
    } else {
        MOST_CUTS
    };
    let mut windows = [slice(&sides[0].side.region)?, slice(&sides[1].side.region)?];
    while !are_legible(coupling, &windows, most_cuts) {
        windows = shortened(&windows)?;
    }
    Some(windows)
}

/// Whether all faces of both windows have few enough pieces.
fn are_legible(coupling: &FieldCoupling, windows: &[Region; 2], cuts: usize) -> bool {
    let faces = |role: Role, window: &Region| {
        let mut faces = Projection::new(window).faces().into_iter();
        faces.all(|face| Face::of(coupling, role, face, cuts).is_some())
    };
    windows.iter().all(|window| !window.is_empty())
        && faces(Role::Sender, &windows[0])
        && faces(Role::Receiver, &windows[1])
}

/// A region with only the first index of all but the last three dimensions.
fn slice(region: &Region) -> Option<Region> {
    let dims = region.lower().len();
    let sliced = dims.saturating_sub(3);
    let upper: Vec<u64> = (0..dims)
        .map(|dim| match dim < sliced {
            true => (region.lower()[dim] + 1).min(region.upper()[dim]),
            false => region.upper()[dim],
        })
        .collect();
    Region::new(region.lower(), &upper).ok()
}

/// The windows with their longest dimensions about halved: to a power of two, so that blocks of
/// such sizes stay whole. `None` if only a single element is left.
fn shortened(windows: &[Region; 2]) -> Option<[Region; 2]> {
    let extents = windows[0].extents();
    let longest = *extents.iter().max()?;
    if longest <= 1 {
        return None;
    }
    let limit = (longest / 2).max(1).next_power_of_two();
    let limit = if limit < longest { limit } else { longest / 2 };
    Some(windows.map(|window| {
        let upper = window
            .lower()
            .iter()
            .zip(extents.iter())
            .map(|(lower, extent)| lower + extent.min(&limit));
        Region::new(window.lower(), &upper.collect::<Vec<_>>()).unwrap_or(window)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::described::described_field;
    use titin_model::array_description;

    fn coupling(from: &str, to: &str) -> FieldCoupling {
        let sides = [format!("from: {from}"), format!("to: {to}")].map(std::path::PathBuf::from);
        described_field(&array_description::read(&sides).unwrap()).unwrap()
    }

    fn drawn(coupling: &FieldCoupling) -> [String; 2] {
        windows(coupling).unwrap().map(|window| window.to_string())
    }

    #[test]
    fn what_can_be_told_apart_is_drawn_whole_and_else_a_corner_of_what_is_coupled() {
        let few = coupling("{shape: [1000, 999], grid: [8, 8]}", "{grid: [1, 60]}");
        assert_eq!(drawn(&few), ["[0:1000, 0:999]", "[0:1000, 0:999]"]);
        let dealt =
            "{shape: [1024, 1024], grid: [2, 2], spread: cyclic(4), region: [8:520, 0:1024]}";
        let many = coupling(dealt, "{shape: [512, 1024], grid: [2, 1]}");
        assert_eq!(drawn(&many), ["[8:72, 0:64]", "[0:64, 0:64]"]);
        let five = coupling("{shape: [4, 5, 6, 7, 8], grid: [4, 1, 1, 1, 2]}", "{}");
        assert_eq!(
            drawn(&five),
            ["[0:1, 0:1, 0:6, 0:7, 0:8]", "[0:1, 0:1, 0:6, 0:7, 0:8]"]
        );
        assert!(windows(&coupling("{shape: [0, 4], grid: [2, 2]}", "{}")).is_none());
    }

    #[test]
    fn each_piece_lies_in_both_arrays() {
        let coupling = coupling(
            "{shape: [8, 12], grid: [4, 1], region: [2:8, 0:12]}",
            "{shape: [6, 12], grid: [1, 3]}",
        );
        let [from, to] = windows(&coupling).unwrap();
        let pieces = |role, window| {
            Face::of(&coupling, role, (Facing::Front, window), MOST_CUTS)
                .unwrap()
                .pieces
        };
        let (sent, received) = (pieces(Role::Sender, from), pieces(Role::Receiver, to));
        assert!(
            sent.keys().eq(received.keys()) && sent.len() == 9,
            "{sent:?}"
        );
        for (pair, there) in received {
            let back: Vec<Region> = there
                .iter()
                .map(|region| region.shift(&[2, 0]).unwrap())
                .collect();
            assert_eq!(sent[&pair], back);
        }
    }
}
