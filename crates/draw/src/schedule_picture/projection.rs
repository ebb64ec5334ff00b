//! The projection of an array on the array's picture: flat, or a block seen from above and from the
//! right.

use titin_array::Region;

use crate::svg::Svg;

/// The length of the depth in the picture, both rightwards and upwards.
const SLANT: f64 = 0.45;
/// The largest ratio of two sides in a picture.
const FLATTEST: f64 = 6.0;
/// The height of an array of one dimension, as a share of the width.
const STRIP: f64 = 0.13;

/// Maps boxes of an array to areas of the array's picture.
pub(super) struct Projection {
    /// The box of the array to draw.
    window: Region,
    /// The axes into the depth, downwards and to the right.
    axes: [ArrayAxis; 3],
}

#[derive(Clone, Copy)]
struct ArrayAxis {
    /// The dimension; `None` if the array has too few.
    dim: Option<usize>,
    /// The length in pixels.
    length: f64,
}

/// The visible faces of a block. A flat array has the front only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Facing {
    Front,
    Above,
    Right,
}

/// The corners of a box on a face in clockwise order, the first at the top left.
pub(super) struct Quad([(f64, f64); 4]);

impl Projection {
    /// A projection whose lengths are not scaled to pixels yet.
    pub(super) fn new(window: &Region) -> Projection {
        let dims = window.lower().len();
        let shown = dims.min(3);
        let extents = window.extents();
        let longest = extents[dims - shown..]
            .iter()
            .copied()
            .max()
            .unwrap_or(1)
            .max(1) as f64;
        let axis = |place: usize| {
            // The last dimensions are the last axes.
            let dim = (place + shown >= 3).then(|| dims + place - 3);
            let length = match (dim, place) {
                (Some(dim), _) => (extents[dim] as f64).max(longest / FLATTEST),
                (None, 0) => 0.0,
                (None, _) => longest * STRIP,
            };
            ArrayAxis { dim, length }
        };
        Projection {
            window: *window,
            axes: [0, 1, 2].map(axis),
        }
    }

    /// The faces, each with the box of the array shown on the face.
    pub(super) fn faces(&self) -> Vec<(Facing, Region)> {
        let [Some(depth), Some(down), Some(across)] = self.axes.map(|axis| axis.dim) else {
            return vec![(Facing::Front, self.window)];
        };
        let slice = |dim: usize, index: u64| {
            let (mut lower, mut upper) = (*self.window.lower(), *self.window.upper());
            (lower[dim], upper[dim]) = (index, (index + 1).min(upper[dim]));
            Region::new(&lower, &upper).unwrap_or(self.window)
        };
        let (first, last) = (self.window.lower(), self.window.upper());
        vec![
            (Facing::Front, slice(depth, first[depth])),
            (Facing::Above, slice(down, first[down])),
            (
                Facing::Right,
                slice(across, last[across].saturating_sub(1).max(first[across])),
            ),
        ]
    }

    /// The largest scale at which the picture fits in `width` and `height`.
    pub(super) fn scale(&self, width: f64, height: f64) -> f64 {
        let [depth, down, across] = self.axes.map(|axis| axis.length);
        (width / (across + SLANT * depth)).min(height / (down + SLANT * depth))
    }

    /// Multiplies all lengths.
    pub(super) fn scale_by(&mut self, scale: f64) {
        self.axes.iter_mut().for_each(|axis| axis.length *= scale);
    }

    pub(super) fn height(&self) -> i32 {
        (self.axes[1].length + SLANT * self.axes[0].length).ceil() as i32
    }

    /// The area of a box on a face, in a picture with its upper left corner at `(x, y)`.
    pub(super) fn quad(&self, face: Facing, region: &Region, (x, y): (i32, i32)) -> Quad {
        let [(near, far), (top, bottom), (left, right)] =
            self.axes.map(|axis| self.extent(&axis, region));
        let end = self.axes[2].length;
        let corners = match face {
            Facing::Front => [
                (0.0, top, left),
                (0.0, top, right),
                (0.0, bottom, right),
                (0.0, bottom, left),
            ],
            Facing::Above => [
                (far, 0.0, left),
                (far, 0.0, right),
                (near, 0.0, right),
                (near, 0.0, left),
            ],
            Facing::Right => [
                (near, top, end),
                (far, top, end),
                (far, bottom, end),
                (near, bottom, end),
            ],
        };
        Quad(corners.map(|(depth, down, across)| {
            let rise = SLANT * (self.axes[0].length - depth);
            (
                f64::from(x) + across + SLANT * depth,
                f64::from(y) + down + rise,
            )
        }))
    }

    /// From where to where a box extends along an axis.
    fn extent(&self, axis: &ArrayAxis, region: &Region) -> (f64, f64) {
        let Some(dim) = axis.dim else {
            return (0.0, axis.length);
        };
        let (lower, extent) = (self.window.lower()[dim], self.window.extents()[dim].max(1));
        let pixels = |index: u64| index.saturating_sub(lower) as f64 / extent as f64 * axis.length;
        (pixels(region.lower()[dim]), pixels(region.upper()[dim]))
    }
}

impl Quad {
    pub(super) fn draw(&self, svg: &mut Svg, class: &str) {
        let [a, b, c, d] = self.0.map(|(x, y)| (x.round() as i32, y.round() as i32));
        if a.1 == b.1 && b.0 == c.0 && d.0 == a.0 {
            return svg.rect(class, a, (b.0 - a.0, d.1 - a.1), 0);
        }
        svg.path(
            class,
            &format!(
                "M{} {}L{} {}L{} {}L{} {}Z",
                a.0, a.1, b.0, b.1, c.0, c.1, d.0, d.1
            ),
        );
    }

    /// The first corner.
    pub(super) fn corner(&self) -> (i32, i32) {
        (self.0[0].0.round() as i32, self.0[0].1.round() as i32)
    }

    pub(super) fn middle(&self) -> (i32, i32) {
        let sum =
            |of: fn(&(f64, f64)) -> f64| (self.0.iter().map(of).sum::<f64>() / 4.0).round() as i32;
        (sum(|point| point.0), sum(|point| point.1))
    }

    /// The width and the height of the room for text.
    pub(super) fn extent(&self) -> (i32, i32) {
        let length = |a: (f64, f64), b: (f64, f64)| (a.0 - b.0).abs().max((a.1 - b.1).abs()) as i32;
        (length(self.0[0], self.0[1]), length(self.0[0], self.0[3]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(lower: &[u64], upper: &[u64]) -> Region {
        Region::new(lower, upper).unwrap()
    }

    #[test]
    fn rows_go_down_and_columns_to_the_right() {
        let mut projection = Projection::new(&region(&[10, 0], &[14, 8]));
        projection.scale_by(projection.scale(80.0, 100.0));
        assert_eq!(projection.height(), 40);
        let quad = projection.quad(Facing::Front, &region(&[12, 2], &[14, 8]), (5, 5));
        assert_eq!((quad.corner(), quad.extent()), ((25, 25), (60, 20)));
    }

    #[test]
    fn the_faces_of_a_block_meet_at_its_edges() {
        let mut projection = Projection::new(&region(&[0, 0, 0], &[4, 4, 4]));
        projection.scale_by(projection.scale(145.0, 1000.0));
        let faces = projection.faces();
        let [front, above, right] =
            [0, 1, 2].map(|n: usize| projection.quad(faces[n].0, &faces[n].1, (0, 0)).0);
        let same =
            |a: (f64, f64), b: (f64, f64)| (a.0 - b.0).abs() < 1e-9 && (a.1 - b.1).abs() < 1e-9;
        assert!(same(front[0], above[3]) && same(front[1], above[2]) && same(front[1], right[0]));
        assert!(same(front[2], right[3]) && same(above[1], right[1]));
        assert!(same(above[0], (45.0, 0.0)) && same(front[2], (100.0, 145.0)));
    }

    #[test]
    fn thin_arrays_and_those_without_elements_have_a_picture() {
        for window in [
            region(&[0, 0], &[1_000_000, 2]),
            region(&[0], &[3]),
            region(&[], &[]),
        ] {
            let mut projection = Projection::new(&window);
            projection.scale_by(projection.scale(300.0, 300.0));
            let (width, height) = projection.quad(Facing::Front, &window, (0, 0)).extent();
            assert!(width >= 30 && height >= 30, "{window}: {width} by {height}");
        }
    }
}
