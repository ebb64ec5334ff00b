//! The scale separation map: time against space, both logarithmic. Each component is a rectangle from its timestep to its total
//! time and from its spacing to its extent; arrows join those that exchange messages.

use std::collections::BTreeMap;

use titin_model::{Network, NetworkComponent, Scales};

use super::svg::{Anchor, Ink, Style, Svg, escape, text_width};

/// The area of the map.
const WIDTH: i32 = 680;
const HEIGHT: i32 = 440;
const LEFT: i32 = 92;
const TOP: i32 = 60;
const RIGHT: i32 = 36;
/// The least size of a rectangle: a scale may have one end only.
const LEAST: f64 = 14.0;
/// A row of the strip for components without space.
const ROW: i32 = 26;
/// Text in the map.
const TEXT: i32 = 12;

const HUES: [(Ink, &str); 6] = [
    (Ink::Blue, "blue"),
    (Ink::Orange, "orange"),
    (Ink::Green, "green"),
    (Ink::Purple, "purple"),
    (Ink::Sky, "sky"),
    (Ink::Yellow, "yellow"),
];

/// Draws the map, or says why there is nothing to draw.
pub(crate) fn draw(network: &Network) -> Result<String, String> {
    let scales = |component: &NetworkComponent| {
        network
            .extras
            .scales
            .get(&component.path)
            .and_then(Reach::of)
    };
    let reaches: Vec<Option<Reach>> = network.components.iter().map(scales).collect();
    if reaches.iter().all(Option::is_none) {
        return Err(format!(
            "model \"{}\" cannot be drawn on a map of scales: no component has a time scale; give them, for instance\n\
             titin:\n  scales:\n    {}: {{dt: 1 s, total: 1 h, dx: 1 mm, extent: 10 cm}}",
            network.model,
            network
                .components
                .first()
                .map_or("macro", |component| component.path.as_str())
        ));
    }
    let map = Map::new(network, &reaches);
    Ok(map.draw())
}

/// What a component spans, in seconds and metres.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Reach {
    time: (f64, f64),
    space: Option<(f64, f64)>,
}

impl Reach {
    /// `None` without a time scale.
    fn of(scales: &Scales) -> Option<Reach> {
        let positive = |value: f64| (value > 0.0 && value.is_finite()).then_some(value);
        let times = [scales.dt, scales.total]
            .into_iter()
            .flatten()
            .filter_map(|q| positive(q.value_si));
        let lengths = scales
            .dx
            .iter()
            .chain(&scales.extent)
            .filter_map(|q| positive(q.value_si));
        let span = |values: &mut dyn Iterator<Item = f64>| {
            values.fold(None, |span: Option<(f64, f64)>, v| {
                Some(span.map_or((v, v), |(low, high)| (low.min(v), high.max(v))))
            })
        };
        Some(Reach {
            time: span(&mut times.into_iter())?,
            space: span(&mut lengths.into_iter()),
        })
    }
}

/// A scale from the least to the largest, as decimal logarithms, over some pixels.
struct Axis {
    from: f64,
    to: f64,
    pixels: f64,
}

impl Axis {
    /// Half a decade of room at both ends, and at least three decades in all.
    fn new(spans: impl Iterator<Item = (f64, f64)>, pixels: i32) -> Axis {
        let (low, high) = spans.fold((f64::MAX, f64::MIN), |(low, high), span| {
            (low.min(span.0.log10()), high.max(span.1.log10()))
        });
        let (low, high) = if low > high { (-3.0, 0.0) } else { (low, high) };
        let room = (3.0 - (high - low)).max(1.2) / 2.0;
        Axis {
            from: low - room,
            to: high + room,
            pixels: pixels.into(),
        }
    }

    fn at(&self, value: f64) -> f64 {
        (value.log10() - self.from) / (self.to - self.from) * self.pixels
    }

    /// The marks in view: whole units, and parts of them where there are few.
    fn marks(
        &self,
        units: &[(f64, &'static str)],
        parts: &[(f64, &'static str)],
        least: f64,
    ) -> Vec<(f64, String)> {
        let inside = |value: f64| (self.from..=self.to).contains(&value.log10());
        let mut marks: Vec<(f64, String)> = Vec::new();
        let mut add = |list: &[(f64, &'static str)]| {
            for (value, text) in list.iter().filter(|(value, _)| inside(*value)) {
                let at = self.at(*value);
                if marks.iter().all(|(other, _)| (other - at).abs() >= least) {
                    marks.push((at, (*text).to_owned()));
                }
            }
        };
        add(units);
        add(parts);
        marks.sort_by(|a, b| a.0.total_cmp(&b.0));
        marks
    }
}

const MINUTE: f64 = 60.0;
const HOUR: f64 = 3600.0;
const DAY: f64 = 86_400.0;
const YEAR: f64 = 365.25 * DAY;

const TIMES: [(f64, &str); 14] = [
    (1e-15, "1 fs"),
    (1e-12, "1 ps"),
    (1e-9, "1 ns"),
    (1e-6, "1 µs"),
    (1e-3, "1 ms"),
    (1.0, "1 s"),
    (MINUTE, "1 min"),
    (HOUR, "1 h"),
    (DAY, "1 d"),
    (YEAR, "1 yr"),
    (1e2 * YEAR, "100 yr"),
    (1e4 * YEAR, "10⁴ yr"),
    (1e6 * YEAR, "10⁶ yr"),
    (1e9 * YEAR, "10⁹ yr"),
];
const PARTS_OF_TIMES: [(f64, &str); 18] = [
    (10.0 * MINUTE, "10 min"),
    (10.0 * HOUR, "10 h"),
    (10.0, "10 s"),
    (10.0 * DAY, "10 d"),
    (100.0 * DAY, "100 d"),
    (10.0 * YEAR, "10 yr"),
    (1e-14, "10 fs"),
    (1e-13, "100 fs"),
    (1e-11, "10 ps"),
    (1e-10, "100 ps"),
    (1e-8, "10 ns"),
    (1e-7, "100 ns"),
    (1e-5, "10 µs"),
    (1e-4, "100 µs"),
    (1e-2, "10 ms"),
    (1e-1, "100 ms"),
    (1e3 * YEAR, "1000 yr"),
    (1e5 * YEAR, "10⁵ yr"),
];
const LENGTHS: [(f64, &str); 10] = [
    (1e-12, "1 pm"),
    (1e-9, "1 nm"),
    (1e-6, "1 µm"),
    (1e-3, "1 mm"),
    (1.0, "1 m"),
    (1e3, "1 km"),
    (1e6, "1000 km"),
    (1e9, "10⁶ km"),
    (1e12, "10⁹ km"),
    (1e15, "10¹² km"),
];
const PARTS_OF_LENGTHS: [(f64, &str); 12] = [
    (1e-11, "10 pm"),
    (1e-10, "100 pm"),
    (1e-8, "10 nm"),
    (1e-7, "100 nm"),
    (1e-5, "10 µm"),
    (1e-4, "100 µm"),
    (1e-2, "1 cm"),
    (1e-1, "10 cm"),
    (10.0, "10 m"),
    (100.0, "100 m"),
    (1e4, "10 km"),
    (1e5, "100 km"),
];

/// A rectangle in pixels of the map; y grows downwards.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Area {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

impl Area {
    /// At least so large in both directions, about the same centre.
    fn grown(self, least: f64) -> Area {
        let (width, height) = (self.width.max(least), self.height.max(least));
        Area {
            x: self.x - (width - self.width) / 2.0,
            y: self.y - (height - self.height) / 2.0,
            width,
            height,
        }
    }

    fn right(&self) -> f64 {
        self.x + self.width
    }

    fn bottom(&self) -> f64 {
        self.y + self.height
    }

    fn centre(&self) -> (f64, f64) {
        (self.x + self.width / 2.0, self.y + self.height / 2.0)
    }

    /// The common area with another one.
    fn common(&self, other: &Area) -> f64 {
        let width = self.right().min(other.right()) - self.x.max(other.x);
        let height = self.bottom().min(other.bottom()) - self.y.max(other.y);
        width.max(0.0) * height.max(0.0)
    }

    fn contains(&self, other: &Area) -> bool {
        self.x <= other.x
            && self.y <= other.y
            && self.right() >= other.right()
            && self.bottom() >= other.bottom()
    }

    /// Where the line from the centre to a point leaves.
    fn towards(&self, (x, y): (f64, f64)) -> (f64, f64) {
        let (cx, cy) = self.centre();
        let (dx, dy) = (x - cx, y - cy);
        let share = |d: f64, half: f64| if d == 0.0 { f64::MAX } else { half / d.abs() };
        let t = share(dx, self.width / 2.0)
            .min(share(dy, self.height / 2.0))
            .min(1.0);
        (cx + t * dx, cy + t * dy)
    }
}

/// Components with the same scales, which share a rectangle.
struct Group {
    names: Vec<String>,
    area: Area,
}

impl Group {
    fn label(&self) -> String {
        match self.names.as_slice() {
            [a, b, c, rest @ ..] if rest.len() > 1 => {
                format!("{a}, {b}, {c} and {} more", rest.len())
            }
            names => names.join(", "),
        }
    }
}

struct Map<'a> {
    network: &'a Network,
    time: Axis,
    space: Axis,
    groups: Vec<Group>,
    /// The group of each component.
    of: Vec<Option<usize>>,
    /// Rows of the strip.
    rows: i32,
    /// Whether there is a map at all, not only the strip.
    spatial: bool,
}

impl<'a> Map<'a> {
    fn new(network: &'a Network, reaches: &[Option<Reach>]) -> Self {
        let known = || reaches.iter().flatten();
        let spatial = known().any(|reach| reach.space.is_some());
        let time = Axis::new(known().map(|reach| reach.time), WIDTH);
        let space = Axis::new(known().filter_map(|reach| reach.space), HEIGHT);
        let mut map = Map {
            network,
            time,
            space,
            groups: Vec::new(),
            of: Vec::new(),
            rows: 0,
            spatial,
        };
        let mut distinct: Vec<Reach> = Vec::new();
        for (reach, component) in reaches.iter().zip(&network.components) {
            let Some(reach) = reach else {
                map.of.push(None);
                continue;
            };
            let number = distinct
                .iter()
                .position(|other| other == reach)
                .unwrap_or_else(|| {
                    distinct.push(*reach);
                    map.add(reach);
                    distinct.len() - 1
                });
            let several: String = component
                .multiplicity
                .iter()
                .map(|size| format!("[{size}]"))
                .collect();
            map.groups[number]
                .names
                .push(format!("{}{several}", component.path));
            map.of.push(Some(number));
        }
        map
    }

    fn add(&mut self, reach: &Reach) {
        let (x, right) = (self.time.at(reach.time.0), self.time.at(reach.time.1));
        let area = match reach.space {
            Some((low, high)) => {
                let y = self.space.pixels - self.space.at(high);
                Area {
                    x,
                    y,
                    width: right - x,
                    height: self.space.at(high) - self.space.at(low),
                }
                .grown(LEAST)
            }
            None => {
                let y = self.strip() + f64::from(self.rows * ROW) + 5.0;
                self.rows += 1;
                let area = Area {
                    x,
                    y,
                    width: right - x,
                    height: f64::from(ROW - 10),
                };
                Area {
                    height: area.height,
                    y: area.y,
                    ..area.grown(LEAST)
                }
            }
        };
        self.groups.push(Group {
            names: Vec::new(),
            area,
        });
    }

    /// Where the strip begins.
    fn strip(&self) -> f64 {
        if self.spatial {
            f64::from(HEIGHT) + 10.0
        } else {
            0.0
        }
    }

    /// The bottom of map and strip.
    fn bottom(&self) -> i32 {
        let map = if self.spatial { HEIGHT } else { 0 };
        map + if self.rows > 0 {
            self.rows * ROW + if self.spatial { 10 } else { 0 }
        } else {
            0
        }
    }

    fn draw(&self) -> String {
        let unknown: Vec<&str> = self
            .network
            .components
            .iter()
            .zip(&self.of)
            .filter(|(_, of)| of.is_none())
            .map(|(c, _)| c.path.as_str())
            .collect();
        let width = LEFT + WIDTH + RIGHT;
        let height = TOP + self.bottom() + 64 + if unknown.is_empty() { 0 } else { 22 };
        let title = format!(
            "{}: scale separation map of {}",
            self.network.model,
            self.spoken()
        );
        let mut svg = Svg::new(width, height, &title, &style());
        svg.text("title", (LEFT, 34), Anchor::Start, &self.network.model);
        self.draw_axes(&mut svg);
        self.draw_couplings(&mut svg);
        let labels = self.place_labels();
        for (number, (group, label)) in self.groups.iter().zip(&labels).enumerate() {
            let hue = HUES[number % HUES.len()].1;
            let label_text = group.label();
            svg.group(
                &format!("component {hue}"),
                &[("name", &group.names.join(" "))],
                &group.names.join(", "),
            );
            let Area {
                x,
                y,
                width,
                height,
            } = group.area;
            let corner = (LEFT + x.round() as i32, TOP + y.round() as i32);
            svg.rect(
                "area",
                corner,
                (width.round() as i32, height.round() as i32),
                3,
            );
            let baseline = (
                LEFT + label.x.round() as i32,
                TOP + label.bottom().round() as i32 - 4,
            );
            svg.text("name", baseline, Anchor::Start, label_text);
            svg.end();
        }
        if !unknown.is_empty() {
            let text = format!("without scales: {}", unknown.join(", "));
            svg.text(
                "faint note",
                (LEFT, height - 14),
                Anchor::Start,
                super::coupling::shorten(&text, WIDTH, TEXT),
            );
        }
        svg.finish()
    }

    fn spoken(&self) -> String {
        self.groups
            .iter()
            .map(Group::label)
            .collect::<Vec<_>>()
            .join(", ")
    }

    fn draw_axes(&self, svg: &mut Svg) {
        let bottom = self.bottom();
        svg.group("axes", &[], "");
        for (at, text) in self.time.marks(&TIMES, &PARTS_OF_TIMES, 54.0) {
            let x = LEFT + at.round() as i32;
            svg.path("grid", &format!("M{x} {TOP}V{}", TOP + bottom));
            svg.text("mark", (x, TOP + bottom + 18), Anchor::Middle, text);
        }
        svg.text(
            "axis",
            (LEFT + WIDTH / 2, TOP + bottom + 42),
            Anchor::Middle,
            "time: from step to total",
        );
        if self.spatial {
            for (at, text) in self.space.marks(&LENGTHS, &PARTS_OF_LENGTHS, 34.0) {
                let y = TOP + HEIGHT - at.round() as i32;
                svg.path("grid", &format!("M{LEFT} {y}H{}", LEFT + WIDTH));
                svg.text("mark", (LEFT - 8, y + 4), Anchor::End, text);
            }
            let middle = TOP + HEIGHT / 2;
            let text = escape("space: from spacing to extent");
            svg.line(&format!(
                "<text class=\"axis\" x=\"20\" y=\"{middle}\" text-anchor=\"middle\" transform=\"rotate(-90 20 {middle})\">{text}</text>"
            ));
            svg.rect("plot", (LEFT, TOP), (WIDTH, HEIGHT), 0);
        }
        if self.rows > 0 {
            let y = TOP + self.strip() as i32;
            svg.rect("plot", (LEFT, y), (WIDTH, self.rows * ROW), 0);
            svg.text(
                "mark",
                (LEFT - 8, y + ROW / 2 + 4),
                Anchor::End,
                "time only",
            );
        }
        svg.end();
    }

    /// One line for each pair of groups, with an arrow at each end that receives.
    fn draw_couplings(&self, svg: &mut Svg) {
        let mut pairs: BTreeMap<(usize, usize), (bool, bool)> = BTreeMap::new();
        for bundle in &self.network.bundles {
            let (Some(from), Some(to)) = (
                self.of[bundle.sender.index()],
                self.of[bundle.receiver.index()],
            ) else {
                continue;
            };
            if from < to {
                pairs.entry((from, to)).or_default().1 = true;
            } else if to < from {
                pairs.entry((to, from)).or_default().0 = true;
            }
        }
        for ((a, b), (at_a, at_b)) in pairs {
            let names = |group: usize| self.groups[group].names.join(" ");
            svg.group(
                "coupling",
                &[("between", &names(a)), ("and", &names(b))],
                "",
            );
            let (start, bend, end) = connection(&self.groups[a].area, &self.groups[b].area);
            let show = |(x, y): (f64, f64)| {
                format!("{:.1} {:.1}", f64::from(LEFT) + x, f64::from(TOP) + y)
            };
            svg.path(
                "line",
                &format!("M{}Q{} {}", show(start), show(bend), show(end)),
            );
            for (arrow, tip, from) in [(at_a, start, bend), (at_b, end, bend)] {
                if arrow {
                    svg.path("tip", &arrow_head(tip, from, &show));
                }
            }
            svg.end();
        }
    }

    /// A free place for each name: in its rectangle or next to it, off other names and, outside, off other rectangles.
    fn place_labels(&self) -> Vec<Area> {
        let mut placed: Vec<Area> = Vec::new();
        for (number, group) in self.groups.iter().enumerate() {
            let (width, height) = (f64::from(text_width(&group.label(), TEXT, true)), 16.0);
            let area = &group.area;
            let inside = width + 8.0 <= area.width && height <= area.height;
            let mut candidates = Vec::new();
            let at = |x: f64, y: f64| Area {
                x,
                y,
                width,
                height,
            };
            if inside {
                candidates.extend([
                    at(area.x + 5.0, area.y + 1.0),
                    at(area.right() - width - 3.0, area.bottom() - height - 1.0),
                    at(area.x + 5.0, area.bottom() - height - 1.0),
                    at(
                        area.x + (area.width - width) / 2.0,
                        area.y + (area.height - height) / 2.0,
                    ),
                ]);
            }
            candidates.extend([
                at(area.right() + 5.0, area.y + (area.height - height) / 2.0),
                at(area.x - width - 3.0, area.y + (area.height - height) / 2.0),
                at(area.x, area.y - height - 1.0),
                at(area.x, area.bottom() + 1.0),
            ]);
            // Down the side, line by line.
            candidates.extend(
                (1..40).map(|line| at(area.x, area.bottom() + 1.0 + f64::from(line) * height)),
            );
            let in_view = |label: &Area| {
                label.x >= 0.0
                    && label.right() <= f64::from(WIDTH)
                    && label.y >= 0.0
                    && label.bottom() <= f64::from(self.bottom())
            };
            let cost = |label: &Area| {
                let names: f64 = placed.iter().map(|other| other.common(label)).sum();
                let others = self
                    .groups
                    .iter()
                    .enumerate()
                    .filter(|(other, _)| *other != number);
                let areas: f64 = others
                    .map(|(_, other)| {
                        // Text upon a larger rectangle is legible; across its edge it is less so.
                        if other.area.contains(label) {
                            0.0
                        } else {
                            other.area.common(label)
                        }
                    })
                    .sum();
                10.0 * names + areas + if in_view(label) { 0.0 } else { 1e6 }
            };
            let best = candidates
                .iter()
                .copied()
                .min_by(|a, b| cost(a).total_cmp(&cost(b)));
            placed.push(best.unwrap_or_else(|| at(area.x, area.y)));
        }
        placed
    }
}

type Point = (f64, f64);

/// The shortest line that shows an arrow at both ends.
const SHORT: f64 = 26.0;

/// A curve from one rectangle's edge to another's: its ends, and the point that it bends towards.
fn connection(a: &Area, b: &Area) -> (Point, Point, Point) {
    let middle = |p: Point, q: Point| ((p.0 + q.0) / 2.0, (p.1 + q.1) / 2.0);
    if a.common(b) == 0.0 {
        let (start, end) = (a.towards(b.centre()), b.towards(a.centre()));
        if (start.0 - end.0).hypot(start.1 - end.1) >= SHORT {
            return (start, middle(start, end), end);
        }
        // They touch: a short line across.
        let (from, to) = (a.centre(), b.centre());
        let at = middle(start, end);
        let sideways = a.x.max(b.x) >= a.right().min(b.right()) - 1.0;
        let (dx, dy) = if sideways {
            ((to.0 - from.0).signum(), 0.0)
        } else {
            (0.0, (to.1 - from.1).signum())
        };
        let end_at = |way: f64| (at.0 + way * dx * SHORT / 2.0, at.1 + way * dy * SHORT / 2.0);
        return (end_at(-1.0), at, end_at(1.0));
    }
    // One in the other: from edge to edge where there is most room.
    for (outer, inner, swapped) in [(a, b, false), (b, a, true)] {
        let (cx, cy) = inner.centre();
        let ways = [
            (inner.x - outer.x, (outer.x, cy), (inner.x, cy)),
            (
                outer.right() - inner.right(),
                (outer.right(), cy),
                (inner.right(), cy),
            ),
            (inner.y - outer.y, (cx, outer.y), (cx, inner.y)),
            (
                outer.bottom() - inner.bottom(),
                (cx, outer.bottom()),
                (cx, inner.bottom()),
            ),
        ];
        let widest = ways.into_iter().max_by(|p, q| p.0.total_cmp(&q.0));
        if let Some((room, from, to)) = widest.filter(|_| outer.contains(inner))
            && room > 16.0
        {
            let (start, end) = if swapped { (to, from) } else { (from, to) };
            return (start, middle(start, end), end);
        }
    }
    // They overlap: an arc around, on the right.
    let (start, end) = ((a.right(), a.centre().1), (b.right(), b.centre().1));
    let bend = (a.right().max(b.right()) + 40.0, middle(start, end).1);
    let apart = if (start.1 - end.1).abs() < 12.0 {
        8.0
    } else {
        0.0
    };
    ((start.0, start.1 - apart), bend, (end.0, end.1 + apart))
}

fn arrow_head((x, y): Point, from: Point, show: &dyn Fn(Point) -> String) -> String {
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

fn style() -> Style {
    let mut style = Style::new();
    style.add(".plot", "fill:none", &[("stroke", Ink::Edge)]);
    style.add(".grid", "stroke-opacity:.35", &[("stroke", Ink::Absent)]);
    style.add(".mark", "", &[("fill", Ink::Faint)]);
    style.add(".axis,.note", &format!("font-size:{TEXT}px"), &[]);
    style.add(".name", &format!("font-size:{TEXT}px;font-weight:600"), &[]);
    style.add(".area", "fill-opacity:.16;stroke-width:1.5", &[]);
    for (ink, name) in HUES {
        style.add(
            &format!(".{name} .area"),
            "",
            &[("fill", ink), ("stroke", ink)],
        );
    }
    style.add(
        ".coupling .line",
        "fill:none;stroke-width:1.5",
        &[("stroke", Ink::Edge)],
    );
    style.add(".coupling .tip", "", &[("fill", Ink::Edge)]);
    style
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

    fn length((start, _, end): (Point, Point, Point)) -> f64 {
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
            let (start, bend, end) = connection(&a, &b);
            let seen = length((start, bend, end)).max(length((start, bend, bend)));
            assert!(seen > 14.0, "{how}: {start:?} {bend:?} {end:?}");
        }
    }

    #[test]
    fn axes_are_marked_in_units_that_people_use() {
        let axis = Axis::new([(1.0, DAY), (60.0, YEAR)].into_iter(), 600);
        let marks: Vec<String> = axis
            .marks(&TIMES, &PARTS_OF_TIMES, 54.0)
            .into_iter()
            .map(|mark| mark.1)
            .collect();
        for mark in ["1 s", "1 min", "1 h", "1 d", "1 yr"] {
            assert!(marks.iter().any(|m| m == mark), "{mark} in {marks:?}");
        }
        // A narrow range has parts of units.
        let axis = Axis::new([(1.0, 2.0)].into_iter(), 600);
        assert!(axis.marks(&TIMES, &PARTS_OF_TIMES, 54.0).len() >= 3);
    }
}
