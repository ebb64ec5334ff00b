//! The two arrays of a field. The sender's array is divided into pieces by receiving rank, the
//! receiver's array into pieces by sending rank.
//!
//! Dimension 0 goes down and dimension 1 to the right. Of three dimensions, the first goes into the
//! depth, and the visible faces are drawn. Of more dimensions, a slice with the last three is
//! drawn. If there are too many pieces to tell apart, only a corner of the coupled region is drawn.

use std::collections::{BTreeMap, BTreeSet};

use titin_array::{Region, Role};

use super::colour;
use super::faces::{Face, RankPair, own_side, windows};
use super::projection::{Facing, Projection, Quad};
use super::tiles::{MOST_CUTS, Tiles};
use crate::schedule::{FieldCoupling, FieldSide};
use crate::svg::{BOLD, Svg, TextAnchor, text_width};

/// With more ranks than `MOST_HALOS`, the halos would hide the rest.
const MOST_HALOS: u32 = 16;
/// The largest height of an array.
const HEIGHT: i32 = 300;
/// Both arrays have the same scale, unless an array would get smaller than this share of its own
/// scale.
const SAME_SCALE: f64 = 0.4;

/// The pictures of both arrays.
pub(super) struct ArrayPair {
    pub(super) height: i32,
    arrays: [ArrayView; 2],
}

/// The picture of an array.
struct ArrayView {
    role: Role,
    /// The box of the array to draw.
    window: Region,
    /// Whether the window is not the whole array.
    is_cut: bool,
    faces: Vec<Face>,
    projection: Projection,
    /// The coupled region. `None` if the whole array is coupled, or if the region covers the
    /// window.
    region: Option<Region>,
    /// Boxes with the halo of each box.
    halos: Tiles,
}

impl ArrayPair {
    /// `None` if there is nothing to draw.
    pub(super) fn of(coupling: &FieldCoupling, width: i32) -> Option<ArrayPair> {
        let [from, to] = windows(coupling)?;
        let mut arrays = [
            ArrayView::of(coupling, Role::Sender, from)?,
            ArrayView::of(coupling, Role::Receiver, to)?,
        ];
        let half = f64::from(width / 2 - 16);
        let scale = |array: &ArrayView| array.projection.scale(half, f64::from(HEIGHT));
        let scales = arrays.each_ref().map(scale);
        let (least, most) = (scales[0].min(scales[1]), scales[0].max(scales[1]));
        for (array, scale) in arrays.iter_mut().zip(scales) {
            let scale = if least / most < SAME_SCALE {
                scale
            } else {
                least
            };
            array.projection.scale_by(scale);
            array.add_halos(own_side(coupling, array.role));
        }
        let heights = arrays.iter().map(|array| array.projection.height());
        Some(ArrayPair {
            height: heights.max().unwrap_or(0),
            arrays,
        })
    }

    /// The sentences that explain the pictures.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let mut faces = self.arrays.iter().flat_map(|array| &array.faces);
        if faces.any(|face| !face.pieces.is_empty()) {
            notes.push("A piece has the colour of the rank that sends it. Numbers are those of the ranks of each side.".into());
        }
        if self.arrays.iter().any(|array| array.is_cut) {
            let [from, to] = self.arrays.each_ref().map(|array| array.window);
            notes.push(format!(
                "Too much to be drawn whole: this is {from} of the sender's array and {to} of the receiver's."
            ));
        }
        if self.arrays.iter().any(|array| array.region.is_some()) {
            notes.push("Only what is within the thick line is coupled.".into());
        }
        if self.arrays.iter().any(|array| !array.halos.is_empty()) {
            notes.push("Dashed: halos, which are neither sent nor written.".into());
        }
        notes
    }

    /// Draws both arrays. `corners` are their upper left corners.
    pub(super) fn draw(&self, svg: &mut Svg, corners: [(i32, i32); 2]) {
        for (array, corner) in self.arrays.iter().zip(corners) {
            let name = match array.role {
                Role::Sender => "from",
                Role::Receiver => "to",
            };
            svg.group("side", &[("side", name)], "");
            array.draw(svg, corner);
            svg.end();
        }
    }
}

impl ArrayView {
    fn of(coupling: &FieldCoupling, role: Role, window: Region) -> Option<ArrayView> {
        let side = &own_side(coupling, role).side;
        let whole = Region::whole(side.decomposition.shape()).ok()?;
        let projection = Projection::new(&window);
        let faces = projection
            .faces()
            .into_iter()
            .map(|face| Face::of(coupling, role, face, MOST_CUTS))
            .collect::<Option<_>>()?;
        let region = Some(side.region).filter(|region| *region != whole && !region.covers(&window));
        Some(ArrayView {
            role,
            window,
            is_cut: window != whole,
            faces,
            projection,
            region,
            halos: Vec::new(),
        })
    }

    /// Adds the halos of ranks with a single box, if there is room for the halos in the picture.
    fn add_halos(&mut self, side: &FieldSide) {
        let dims = self.window.lower().len();
        let without = side.halo.iter().all(|width| *width == (0, 0));
        if self.is_cut || dims > 2 || without || side.ranks() > MOST_HALOS {
            return;
        }
        for rank in 0..side.ranks() {
            if let [part] = side.boxes(rank)[..] {
                let halo = with_halo(&part, side);
                self.halos.extend(halo.map(|region| (rank, region)));
            }
        }
    }

    fn draw(&self, svg: &mut Svg, corner: (i32, i32)) {
        let quad = |facing, region: &Region| self.projection.quad(facing, region, corner);
        for face in &self.faces {
            quad(face.facing, &face.window).draw(svg, "array");
        }
        self.draw_pieces(svg, &quad);
        for face in &self.faces {
            for (_, region) in &face.tiles {
                quad(face.facing, region).draw(svg, "part");
            }
        }
        for face in &self.faces {
            let region = self
                .region
                .and_then(|region| region.intersection(&face.window));
            if let Some(region) = region {
                quad(face.facing, &region).draw(svg, "region");
            }
        }
        for (rank, region) in &self.halos {
            let class = match self.role {
                Role::Sender => format!("halo h{}", colour(*rank)),
                Role::Receiver => "halo".into(),
            };
            quad(Facing::Front, region).draw(svg, &class);
        }
        self.draw_ranks(svg, corner);
    }

    /// Draws the pieces of all faces, grouped by message.
    fn draw_pieces(&self, svg: &mut Svg, quad: &dyn Fn(Facing, &Region) -> Quad) {
        let mut messages: BTreeMap<RankPair, Vec<(Facing, Region)>> = BTreeMap::new();
        for face in &self.faces {
            for (pair, regions) in &face.pieces {
                let pieces = regions.iter().map(|region| (face.facing, *region));
                messages.entry(*pair).or_default().extend(pieces);
            }
        }
        for ((from, to), pieces) in messages {
            let receiver = to.map_or_else(String::new, |to| to.to_string());
            let title = match to {
                Some(to) => format!("rank {from} to rank {to}"),
                None => format!("rank {from}"),
            };
            let data = [("from", &*from.to_string()), ("to", &receiver)];
            svg.group("message", &data, &title);
            for (facing, region) in &pieces {
                let class = format!("piece r{}", colour(from));
                quad(*facing, region).draw(svg, &class);
            }
            svg.end();
        }
    }

    /// Draws the numbers of ranks where there is room. On the front, a number is in the corner of
    /// each box. On other faces, a number is in the middle, for ranks without a number on the faces
    /// before.
    fn draw_ranks(&self, svg: &mut Svg, corner: (i32, i32)) {
        let mut named = BTreeSet::new();
        for face in &self.faces {
            let mut named_here = BTreeSet::new();
            let tiles = face.tiles.iter();
            for (rank, region) in tiles.filter(|(rank, _)| !named.contains(rank)) {
                let quad = self.projection.quad(face.facing, region, corner);
                let repeated = named_here.contains(rank);
                if draw_rank(svg, face.facing, &quad, *rank, repeated) {
                    named_here.insert(*rank);
                }
            }
            named.append(&mut named_here);
        }
    }
}

/// Draws the number of a rank in a box. Returns whether the number fits. On other faces than the
/// front a number is not repeated.
fn draw_rank(svg: &mut Svg, facing: Facing, quad: &Quad, rank: u32, repeated: bool) -> bool {
    let text = rank.to_string();
    let (width, height) = quad.extent();
    let needed = text_width(&text, 11, BOLD) + 8;
    if facing == Facing::Front {
        let fits = width >= needed && height >= 17;
        if fits {
            let (x, y) = quad.corner();
            svg.text("rank", (x + 5, y + 13), TextAnchor::Start, text);
        }
        return fits;
    }
    let fits = width >= needed + 8 && height >= 20;
    if fits && !repeated {
        let (x, y) = quad.middle();
        svg.text("rank", (x, y + 4), TextAnchor::Middle, text);
    }
    fits
}

/// A part with halo, within the array.
fn with_halo(part: &Region, side: &FieldSide) -> Option<Region> {
    let shape = side.side.decomposition.shape();
    let dims = 0..shape.len();
    let lower: Vec<u64> = dims
        .clone()
        .map(|dim| part.lower()[dim].saturating_sub(side.halo[dim].0))
        .collect();
    let upper: Vec<u64> = dims
        .map(|dim| {
            let upper = part.upper()[dim].saturating_add(side.halo[dim].1);
            upper.min(shape[dim])
        })
        .collect();
    Region::new(&lower, &upper).ok()
}
