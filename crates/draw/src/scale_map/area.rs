//! Rectangles of the map, and curves between them.

/// A rectangle in the pixels of the map. `y` grows downwards.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Area {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

impl Area {
    /// An area with the same centre. Width and height are at least `least`.
    pub(super) fn grown(self, least: f64) -> Area {
        let (width, height) = (self.width.max(least), self.height.max(least));
        Area {
            x: self.x - (width - self.width) / 2.0,
            y: self.y - (height - self.height) / 2.0,
            width,
            height,
        }
    }

    pub(super) fn right(&self) -> f64 {
        self.x + self.width
    }

    pub(super) fn bottom(&self) -> f64 {
        self.y + self.height
    }

    pub(super) fn centre(&self) -> (f64, f64) {
        (self.x + self.width / 2.0, self.y + self.height / 2.0)
    }

    /// The size of the intersection with another area.
    pub(super) fn common(&self, other: &Area) -> f64 {
        let width = self.right().min(other.right()) - self.x.max(other.x);
        let height = self.bottom().min(other.bottom()) - self.y.max(other.y);
        width.max(0.0) * height.max(0.0)
    }

    pub(super) fn contains(&self, other: &Area) -> bool {
        self.x <= other.x
            && self.y <= other.y
            && self.right() >= other.right()
            && self.bottom() >= other.bottom()
    }

    /// The point at which the line from the centre to a point leaves the area.
    pub(super) fn towards(&self, (x, y): (f64, f64)) -> (f64, f64) {
        let (cx, cy) = self.centre();
        let (dx, dy) = (x - cx, y - cy);
        let share = |d: f64, half: f64| if d == 0.0 { f64::MAX } else { half / d.abs() };
        let t = share(dx, self.width / 2.0)
            .min(share(dy, self.height / 2.0))
            .min(1.0);
        (cx + t * dx, cy + t * dy)
    }
}

/// A point of the map.
pub(super) type Point = (f64, f64);

/// The shortest line with room for arrows at both ends.
const SHORTEST: f64 = 26.0;

/// A curve between two areas.
#[derive(Clone, Copy)]
pub(super) struct Curve {
    pub(super) start: Point,
    /// The control point. The curve bends towards this point.
    pub(super) bend: Point,
    pub(super) end: Point,
}

impl Curve {
    fn straight(start: Point, end: Point) -> Curve {
        Curve {
            start,
            bend: middle(start, end),
            end,
        }
    }

    /// A curve from the edge of area `a` to the edge of area `b`.
    pub(super) fn between(a: &Area, b: &Area) -> Curve {
        if a.common(b) == 0.0 {
            return Curve::between_apart(a, b);
        }
        Curve::between_nested(a, b)
            .or_else(|| {
                let curve = Curve::between_nested(b, a)?;
                Some(Curve {
                    start: curve.end,
                    bend: curve.bend,
                    end: curve.start,
                })
            })
            .unwrap_or_else(|| Curve::around(a, b))
    }

    /// A line between two areas that do not overlap. If the areas nearly touch, a short line across
    /// the gap.
    fn between_apart(a: &Area, b: &Area) -> Curve {
        let (start, end) = (a.towards(b.centre()), b.towards(a.centre()));
        if (start.0 - end.0).hypot(start.1 - end.1) >= SHORTEST {
            return Curve::straight(start, end);
        }
        let (from, to) = (a.centre(), b.centre());
        let (x, y) = middle(start, end);
        let sideways = a.x.max(b.x) >= a.right().min(b.right()) - 1.0;
        let (dx, dy) = if sideways {
            ((to.0 - from.0).signum(), 0.0)
        } else {
            (0.0, (to.1 - from.1).signum())
        };
        let half = |sign: f64| {
            (
                x + sign * dx * SHORTEST / 2.0,
                y + sign * dy * SHORTEST / 2.0,
            )
        };
        Curve {
            start: half(-1.0),
            bend: (x, y),
            end: half(1.0),
        }
    }

    /// A line from the edge of the area `outer` to the edge of the area `inner` within, at the
    /// place with most room. `None` if `inner` is not within `outer`, or if there is too little
    /// room.
    fn between_nested(outer: &Area, inner: &Area) -> Option<Curve> {
        if !outer.contains(inner) {
            return None;
        }
        let (x, y) = inner.centre();
        let lines = [
            (inner.x - outer.x, (outer.x, y), (inner.x, y)),
            (
                outer.right() - inner.right(),
                (outer.right(), y),
                (inner.right(), y),
            ),
            (inner.y - outer.y, (x, outer.y), (x, inner.y)),
            (
                outer.bottom() - inner.bottom(),
                (x, outer.bottom()),
                (x, inner.bottom()),
            ),
        ];
        let widest = lines.into_iter().max_by(|p, q| p.0.total_cmp(&q.0));
        let (room, start, end) = widest?;
        (room > 16.0).then(|| Curve::straight(start, end))
    }

    /// An arc on the right of two areas that overlap.
    fn around(a: &Area, b: &Area) -> Curve {
        let (start, end) = ((a.right(), a.centre().1), (b.right(), b.centre().1));
        let bend = (a.right().max(b.right()) + 40.0, middle(start, end).1);
        let apart = if (start.1 - end.1).abs() < 12.0 {
            8.0
        } else {
            0.0
        };
        Curve {
            start: (start.0, start.1 - apart),
            bend,
            end: (end.0, end.1 + apart),
        }
    }
}

fn middle(p: Point, q: Point) -> Point {
    ((p.0 + q.0) / 2.0, (p.1 + q.1) / 2.0)
}

/// The path of an arrow head at a point, on a line from the point `from`.
pub(super) fn arrow_head((x, y): Point, from: Point, show: &dyn Fn(Point) -> String) -> String {
    let (dx, dy) = (x - from.0, y - from.1);
    let length = dx.hypot(dy).max(1e-9);
    let (ux, uy) = (dx / length * 8.0, dy / length * 8.0);
    let corner = |side: f64| (x - ux - side * uy * 0.45, y - uy + side * ux * 0.45);
    format!(
        "M{}L{}L{}z",
        show((x, y)),
        show(corner(1.0)),
        show(corner(-1.0))
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn area(x: f64, y: f64, width: f64, height: f64) -> Area {
        Area {
            x,
            y,
            width,
            height,
        }
    }

    fn distance(start: Point, end: Point) -> f64 {
        (start.0 - end.0).hypot(start.1 - end.1)
    }

    #[test]
    fn every_pair_gets_an_arrow_that_can_be_seen() {
        let a = area(100.0, 100.0, 80.0, 60.0);
        let others = [
            ("apart", area(300.0, 200.0, 50.0, 50.0)),
            ("side by side", area(180.0, 100.0, 80.0, 60.0)),
            ("one above the other", area(100.0, 160.0, 80.0, 60.0)),
            ("within", area(120.0, 110.0, 20.0, 10.0)),
            ("around", area(50.0, 50.0, 300.0, 300.0)),
            ("across", area(150.0, 130.0, 80.0, 60.0)),
            ("nearly the same", area(102.0, 101.0, 80.0, 60.0)),
        ];
        for (how, b) in others {
            let Curve { start, bend, end } = Curve::between(&a, &b);
            let seen = distance(start, end).max(distance(start, bend));
            assert!(seen > 14.0, "{how}: {start:?} {bend:?} {end:?}");
        }
    }
}
