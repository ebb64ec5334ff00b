//! The two arrays of a field: the sender's cut into pieces by who receives them, the receiver's by who sends them.
//!
//! Dimension 0 goes down and 1 to the right; of three, the first goes into the depth and the faces that are seen are drawn. Of more,
//! a slice with the last three. Where there are too many pieces to be told apart, only a corner of what is coupled is drawn.

use std::collections::{BTreeMap, BTreeSet};

use titin_array::{Order, Parts, Region};

use super::colour;
use super::frame::{Facing, Frame};
use crate::draw::svg::{Anchor, BOLD, Svg, text_width};
use crate::schedule::{Coupling, End};

/// With more pieces than these none is seen any more.
const MOST_PIECES: usize = 1200;
/// Nor with more cuts along a dimension. Where a corner is drawn, it may have less, so that there is room for numbers.
const MOST_CUTS: usize = 64;
const MOST_IN_CORNER: usize = 24;
/// Elements that are listed one by one are looked through up to so many rows.
const MOST_ROWS: usize = 200_000;
/// With more ranks their halos hide the rest.
const MOST_HALOS: u32 = 16;
/// The largest picture of an array.
const HEIGHT: i32 = 300;
/// If one picture would be smaller than this, by the other one, they have scales of their own.
const SAME_SCALE: f64 = 0.4;

/// Boxes of an array, with the ranks that own them.
type Tiles = Vec<(u32, Region)>;

/// What goes from one rank to another: the numbers of both, the receiver's if it is known.
type Way = (u32, Option<u32>);

/// Both arrays.
pub(super) struct Pair {
    pub(super) height: i32,
    ends: [Seen; 2],
    halos: bool,
}

/// What is seen of an array.
struct Seen {
    /// A box of it.
    window: Region,
    /// Whether that is not all.
    cut: bool,
    faces: Vec<Face>,
    frame: Frame,
    /// What of it is coupled, if that is not all.
    region: Option<Region>,
    /// Boxes with their halos.
    halos: Tiles,
}

/// A side of what is seen.
struct Face {
    facing: Facing,
    window: Region,
    tiles: Tiles,
    pieces: BTreeMap<Way, Vec<Region>>,
}

impl Pair {
    /// `None` if there is nothing to draw.
    pub(super) fn of(coupling: &Coupling, width: i32) -> Option<Pair> {
        let ends = [&coupling.from, &coupling.to];
        let [from, to] = windows(coupling)?;
        let seen = [Seen::of(coupling, 0, from)?, Seen::of(coupling, 1, to)?];
        let half = f64::from(width / 2 - 16);
        let scales = [&seen[0], &seen[1]].map(|seen| seen.frame.scale(half, f64::from(HEIGHT)));
        let (least, most) = (scales[0].min(scales[1]), scales[0].max(scales[1]));
        let mut seen = seen;
        for (seen, scale) in seen.iter_mut().zip(scales) {
            seen.frame.scale_by(if least / most < SAME_SCALE {
                scale
            } else {
                least
            });
        }
        ends.iter()
            .zip(&mut seen)
            .for_each(|(end, seen)| seen.add_halos(end));
        let halos = seen.iter().any(|seen| !seen.halos.is_empty());
        let height = seen
            .iter()
            .map(|seen| seen.frame.height())
            .max()
            .unwrap_or(0);
        Some(Pair {
            height,
            ends: seen,
            halos,
        })
    }

    /// What has to be said of the picture.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self
            .ends
            .iter()
            .flat_map(|seen| &seen.faces)
            .any(|face| !face.pieces.is_empty())
        {
            notes.push("A piece has the colour of the rank that sends it. Numbers are those of the ranks of each side.".into());
        }
        if self.ends.iter().any(|seen| seen.cut) {
            let [from, to] = [&self.ends[0], &self.ends[1]].map(|seen| seen.window);
            notes.push(format!(
                "Too much to be drawn whole: this is {from} of the sender's array and {to} of the receiver's."
            ));
        }
        if self.ends.iter().any(|seen| seen.region.is_some()) {
            notes.push("Only what is within the thick line is coupled.".into());
        }
        if self.halos {
            notes.push("Dashed: halos, which are neither sent nor written.".into());
        }
        notes
    }

    pub(super) fn draw(&self, svg: &mut Svg, coupling: &Coupling, places: [(i32, i32); 2]) {
        let ends = [(&coupling.from, "from"), (&coupling.to, "to")];
        for (number, ((_, name), seen)) in ends.into_iter().zip(&self.ends).enumerate() {
            svg.group("side", &[("side", name)], "");
            seen.draw(svg, places[number], number == 0);
            svg.end();
        }
    }
}

impl Seen {
    fn of(coupling: &Coupling, number: usize, window: Region) -> Option<Seen> {
        let end = [&coupling.from, &coupling.to][number];
        let whole = Region::whole(end.side.decomposition.shape()).ok()?;
        let frame = Frame::new(&window);
        let faces = frame
            .faces()
            .into_iter()
            .map(|face| Face::of(coupling, number, face, MOST_CUTS))
            .collect::<Option<_>>()?;
        let region =
            Some(end.side.region).filter(|region| *region != whole && !region.covers(&window));
        Some(Seen {
            window,
            cut: window != whole,
            faces,
            frame,
            region,
            halos: Vec::new(),
        })
    }

    /// Of ranks with one box each.
    fn add_halos(&mut self, end: &End) {
        let dims = self.window.lower().len();
        if self.cut
            || dims > 2
            || end.halo.iter().all(|width| *width == (0, 0))
            || end.ranks() > MOST_HALOS
        {
            return;
        }
        for rank in 0..end.ranks() {
            let boxes = match end.parts(rank) {
                Parts::Boxes(boxes) => boxes.clone(),
                _ => end.side.decomposition.regions(rank),
            };
            let [part] = boxes[..] else { continue };
            let shape = end.side.decomposition.shape();
            let lower: Vec<u64> = (0..dims)
                .map(|dim| part.lower()[dim].saturating_sub(end.halo[dim].0))
                .collect();
            let upper = (0..dims).map(|dim| {
                part.upper()[dim]
                    .saturating_add(end.halo[dim].1)
                    .min(shape[dim])
            });
            self.halos.extend(
                Region::new(&lower, &upper.collect::<Vec<_>>())
                    .ok()
                    .map(|region| (rank, region)),
            );
        }
    }

    fn draw(&self, svg: &mut Svg, at: (i32, i32), sends: bool) {
        let place = |facing, region: &Region| self.frame.place(facing, region, at);
        for face in &self.faces {
            place(face.facing, &face.window).draw(svg, "array");
        }
        let mut ways: BTreeMap<Way, Vec<(Facing, Region)>> = BTreeMap::new();
        for face in &self.faces {
            for (way, regions) in &face.pieces {
                ways.entry(*way)
                    .or_default()
                    .extend(regions.iter().map(|region| (face.facing, *region)));
            }
        }
        for ((from, to), regions) in ways {
            let (one, other) = (
                from.to_string(),
                to.map_or_else(String::new, |to| to.to_string()),
            );
            let title = match to {
                Some(to) => format!("rank {from} to rank {to}"),
                None => format!("rank {from}"),
            };
            svg.group("message", &[("from", &one), ("to", &other)], &title);
            for (facing, region) in &regions {
                place(*facing, region).draw(svg, &format!("piece {}", colour(from)));
            }
            svg.end();
        }
        for face in &self.faces {
            face.tiles
                .iter()
                .for_each(|(_, region)| place(face.facing, region).draw(svg, "part"));
        }
        for face in &self.faces {
            if let Some(region) = self
                .region
                .and_then(|region| region.intersection(&face.window))
            {
                place(face.facing, &region).draw(svg, "region");
            }
        }
        for (rank, region) in &self.halos {
            let class = if sends {
                format!("halo h{}", &colour(*rank)[1..])
            } else {
                "halo".into()
            };
            place(Facing::Front, region).draw(svg, &class);
        }
        self.label(svg, at);
    }

    /// The numbers of ranks where there is room: on the face in front in the corner of each box, on others in the middle of those of
    /// ranks that are not in front.
    fn label(&self, svg: &mut Svg, at: (i32, i32)) {
        let mut named = BTreeSet::new();
        for face in &self.faces {
            let mut here = BTreeSet::new();
            for (rank, region) in face.tiles.iter().filter(|(rank, _)| !named.contains(rank)) {
                let (text, quad) = (rank.to_string(), self.frame.place(face.facing, region, at));
                let (width, height) = quad.extent();
                let needed = text_width(&text, 11, BOLD) + 8;
                if face.facing == Facing::Front && width >= needed && height >= 17 {
                    let (x, y) = quad.corner();
                    svg.text("rank", (x + 5, y + 13), Anchor::Start, text);
                } else if face.facing != Facing::Front
                    && width >= needed + 8
                    && height >= 20
                    && here.insert(*rank)
                {
                    let (x, y) = quad.middle();
                    svg.text("rank", (x, y + 4), Anchor::Middle, text);
                } else {
                    continue;
                }
                here.insert(*rank);
            }
            named.append(&mut here);
        }
    }
}

impl Face {
    /// `None` if there are too many pieces.
    fn of(
        coupling: &Coupling,
        number: usize,
        (facing, window): (Facing, Region),
        cuts: usize,
    ) -> Option<Face> {
        let (own, other) = match number {
            0 => (&coupling.from, &coupling.to),
            _ => (&coupling.to, &coupling.from),
        };
        let own_tiles = if own.is_known() {
            tiles(own, &window, cuts)?
        } else {
            Vec::new()
        };
        let mut pieces: BTreeMap<Way, Vec<Region>> = BTreeMap::new();
        let mut many = 0;
        let coupled = window.intersection(&own.side.region);
        if let Some(coupled) = coupled.filter(|_| other.is_known()) {
            let there = offset(own, other);
            let back: Vec<i64> = there.iter().map(|by| -by).collect();
            for (rank, region) in tiles(other, &coupled.shift(&there)?, cuts)? {
                let region = region.shift(&back)?;
                for (own_rank, tile) in &own_tiles {
                    if let Some(piece) = region.intersection(tile) {
                        let way = if number == 0 {
                            (*own_rank, Some(rank))
                        } else {
                            (rank, Some(*own_rank))
                        };
                        pieces.entry(way).or_default().push(piece);
                        many += 1;
                    }
                }
                if many > MOST_PIECES {
                    return None;
                }
            }
        } else if let Some(coupled) = coupled.filter(|_| number == 0) {
            for (rank, tile) in &own_tiles {
                pieces
                    .entry((*rank, None))
                    .or_default()
                    .extend(tile.intersection(&coupled));
            }
        }
        Some(Face {
            facing,
            window,
            tiles: own_tiles,
            pieces,
        })
    }
}

/// From the array of one side to that of the other.
fn offset(own: &End, other: &End) -> Vec<i64> {
    let (from, to) = (own.side.region.lower(), other.side.region.lower());
    from.iter()
        .zip(to.iter())
        .map(|(from, to)| *to as i64 - *from as i64)
        .collect()
}

/// What is drawn of both arrays: all, or as much of what is coupled as can be drawn, from its corner on.
fn windows(coupling: &Coupling) -> Option<[Region; 2]> {
    let ends = [&coupling.from, &coupling.to];
    let drawn = |windows: &[Region; 2], cuts| {
        let faces = |number: usize| {
            let mut faces = Frame::new(&windows[number]).faces().into_iter();
            faces.all(|face| Face::of(coupling, number, face, cuts).is_some())
        };
        windows.iter().all(|window| !window.is_empty()) && faces(0) && faces(1)
    };
    let dims = ends[0].side.region.lower().len();
    let fixed = dims.saturating_sub(3);
    // Of dimensions that cannot be drawn the first index is taken.
    let sliced = |region: &Region| {
        let upper: Vec<u64> = (0..dims)
            .map(|dim| {
                if dim < fixed {
                    (region.lower()[dim] + 1).min(region.upper()[dim])
                } else {
                    region.upper()[dim]
                }
            })
            .collect();
        Region::new(region.lower(), &upper).ok()
    };
    if fixed == 0 {
        let whole = |end: &End| Region::whole(end.side.decomposition.shape()).ok();
        let whole = [whole(ends[0])?, whole(ends[1])?];
        if drawn(&whole, MOST_CUTS) {
            return Some(whole);
        }
    }
    let mut windows = [sliced(&ends[0].side.region)?, sliced(&ends[1].side.region)?];
    while !drawn(
        &windows,
        if fixed == 0 {
            MOST_IN_CORNER
        } else {
            MOST_CUTS
        },
    ) {
        let extents = windows[0].extents();
        let longest = *extents.iter().max()?;
        if longest <= 1 {
            return None;
        }
        // Shorter, but as long as others are, and whole blocks where these are powers of two.
        let limit = (longest / 2).max(1).next_power_of_two();
        let limit = if limit < longest { limit } else { longest / 2 };
        windows = windows.map(|window| {
            let upper = window
                .lower()
                .iter()
                .zip(extents.iter())
                .map(|(lower, extent)| lower + extent.min(&limit));
            Region::new(window.lower(), &upper.collect::<Vec<_>>()).unwrap_or(window)
        });
    }
    Some(windows)
}

/// The boxes of all ranks within a window; `None` if they are too many.
fn tiles(end: &End, window: &Region, cuts: usize) -> Option<Tiles> {
    let decomposition = &end.side.decomposition;
    if decomposition.is_regular() {
        return by_rule(end, window, cuts);
    }
    let (mut tiles, mut looked) = (Vec::new(), 0);
    for rank in 0..end.ranks() {
        match end.parts(rank) {
            Parts::Boxes(boxes) => {
                let seen = boxes
                    .iter()
                    .filter_map(|region| region.intersection(window));
                tiles.extend(seen.map(|region| (rank, region)));
            }
            Parts::Indices(runs) => {
                for run in runs {
                    let (mut first, last) = (run.first, run.end());
                    while first < last {
                        let (row, next) = rows(end, first, last)?;
                        tiles.extend(row.intersection(window).map(|region| (rank, region)));
                        (first, looked) = (next, looked + 1);
                        if looked > MOST_ROWS || tiles.len() > MOST_PIECES {
                            return None;
                        }
                    }
                }
            }
            Parts::Rule => {}
        }
        if tiles.len() > MOST_PIECES {
            return None;
        }
    }
    let many = |dim: usize| {
        let mut begins: Vec<u64> = tiles
            .iter()
            .map(|(_, region): &(u32, Region)| region.lower()[dim])
            .collect();
        begins.sort_unstable();
        begins.dedup();
        begins.len() > cuts
    };
    (!(0..window.lower().len()).any(many)).then_some(tiles)
}

/// Cut by cut along each dimension.
fn by_rule(end: &End, window: &Region, most: usize) -> Option<Tiles> {
    let (decomposition, dims) = (&end.side.decomposition, window.lower().len());
    let mut boxes: Vec<(Vec<u64>, Vec<u64>)> = vec![(Vec::new(), Vec::new())];
    for dim in 0..dims {
        let (lower, upper) = (window.lower()[dim], window.upper()[dim]);
        let cuts: Vec<u64> = decomposition
            .cuts(dim, lower, upper)
            .take(most + 1)
            .collect();
        if cuts.len() > most || cuts.len().saturating_mul(boxes.len()) > MOST_PIECES {
            return None;
        }
        let stretches: Vec<(u64, u64)> = std::iter::once(lower)
            .chain(cuts.iter().copied())
            .zip(cuts.iter().copied())
            .collect();
        let longer = |(low, up): &(Vec<u64>, Vec<u64>)| {
            let (low, up) = (low.clone(), up.clone());
            let longer = move |(from, to): &(u64, u64)| {
                ([&low[..], &[*from]].concat(), [&up[..], &[*to]].concat())
            };
            stretches.iter().map(longer).collect::<Vec<_>>()
        };
        boxes = boxes.iter().flat_map(longer).collect();
    }
    let tile = |(lower, upper): &(Vec<u64>, Vec<u64>)| {
        Some((decomposition.owner(lower)?, Region::new(lower, upper).ok()?))
    };
    boxes.iter().map(tile).collect()
}

/// As many of the elements with these numbers as lie in one row, or in whole rows, and the number after them.
fn rows(end: &End, first: u64, last: u64) -> Option<(Region, u64)> {
    let (shape, dims) = (
        end.side.decomposition.shape(),
        end.side.decomposition.shape().len(),
    );
    let order = end.side.order;
    let lower = order.point(first, shape);
    let mut upper = lower;
    upper.iter_mut().for_each(|index| *index += 1);
    // Dimensions by how fast they count.
    let by_speed = |place: usize| {
        if order == Order::C {
            dims - 1 - place
        } else {
            place
        }
    };
    if dims == 0 {
        return Some((Region::new(&lower, &upper).ok()?, last));
    }
    let fastest = by_speed(0);
    let length = (shape[fastest] - lower[fastest]).min(last - first);
    upper[fastest] = lower[fastest] + length;
    let mut next = first + length;
    if dims > 1 && length == shape[fastest] {
        let slower = by_speed(1);
        let count = ((last - first) / length).min(shape[slower] - lower[slower]);
        upper[slower] = lower[slower] + count;
        next = first + count * length;
    }
    Some((Region::new(&lower, &upper).ok()?, next))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::given;
    use titin_model::array_description;

    fn coupling(from: &str, to: &str) -> Coupling {
        let sides = [format!("from: {from}"), format!("to: {to}")].map(std::path::PathBuf::from);
        given::coupling(&array_description::read(&sides).unwrap()).unwrap()
    }

    fn drawn(coupling: &Coupling) -> [String; 2] {
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

    #[test]
    fn each_piece_lies_in_both_arrays() {
        let coupling = coupling(
            "{shape: [8, 12], grid: [4, 1], region: [2:8, 0:12]}",
            "{shape: [6, 12], grid: [1, 3]}",
        );
        let [from, to] = windows(&coupling).unwrap();
        let pieces = |number, window| {
            Face::of(&coupling, number, (Facing::Front, window), MOST_CUTS)
                .unwrap()
                .pieces
        };
        let (sent, received) = (pieces(0, from), pieces(1, to));
        assert!(
            sent.keys().eq(received.keys()) && sent.len() == 9,
            "{sent:?}"
        );
        for (way, there) in received {
            let back: Vec<Region> = there
                .iter()
                .map(|region| region.shift(&[2, 0]).unwrap())
                .collect();
            assert_eq!(sent[&way], back);
        }
    }
}
