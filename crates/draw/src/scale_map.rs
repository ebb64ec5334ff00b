//! The scale separation map: time against space, both logarithmic. Each component is a rectangle.
//! The rectangle goes from the component's timestep to the total time, and from the spacing to the
//! extent. Arrows join components that exchange messages.

mod area;
mod axis;

use std::collections::BTreeMap;

use titin_model::{Network, NetworkComponent, Scales};

use self::area::{Area, Curve, Point, arrow_head};
use self::axis::{Axis, SPACE_MARKS, TIME_MARKS};
use crate::svg::{Ink, Style, Svg, TextAnchor, escape, shorten, text_width};
use crate::{DrawError, Result};

/// The area of the map.
const WIDTH: i32 = 680;
const HEIGHT: i32 = 440;
const LEFT: i32 = 92;
const TOP: i32 = 60;
const RIGHT: i32 = 36;
/// The least width and height of a rectangle. A component may have only a single scale.
const LEAST: f64 = 14.0;
/// The height of a row of the strip. The strip has the components without a space scale.
const ROW: i32 = 26;
/// The gap between the map and the strip.
const GAP: i32 = 10;
/// The font size in the map.
const TEXT: i32 = 12;
/// The height of a name.
const NAME_HEIGHT: f64 = 16.0;

const HUES: [(Ink, &str); 6] = [
    (Ink::Blue, "blue"),
    (Ink::Orange, "orange"),
    (Ink::Green, "green"),
    (Ink::Purple, "purple"),
    (Ink::Sky, "sky"),
    (Ink::Yellow, "yellow"),
];

/// Draws the map of a model.
///
/// # Errors
/// No component has a time scale.
pub fn draw_scale_map(network: &Network) -> Result<String> {
    let scales = |component: &NetworkComponent| {
        let scales = network.extras.scales.get(&component.path)?;
        ScaleRange::of(scales)
    };
    let ranges: Vec<Option<ScaleRange>> = network.components.iter().map(scales).collect();
    if ranges.iter().all(Option::is_none) {
        let component = network.components.first();
        return Err(DrawError::NoScales {
            model: network.model.to_string(),
            component: component.map_or("macro".into(), |component| component.path.to_string()),
        });
    }
    Ok(ScaleMap::new(network, &ranges).draw())
}

/// The scales of a component, in seconds and metres.
#[derive(Clone, Copy, Debug, PartialEq)]
struct ScaleRange {
    time: (f64, f64),
    space: Option<(f64, f64)>,
}

impl ScaleRange {
    /// `None` without a time scale.
    fn of(scales: &Scales) -> Option<ScaleRange> {
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
        Some(ScaleRange {
            time: range(times)?,
            space: range(lengths),
        })
    }
}

/// The least and the largest of some values.
fn range(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.fold(None, |range, v| {
        Some(range.map_or((v, v), |(low, high): (f64, f64)| (low.min(v), high.max(v))))
    })
}

/// Components with the same scales, in a common rectangle.
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

struct ScaleMap<'a> {
    network: &'a Network,
    time: Axis,
    space: Axis,
    groups: Vec<Group>,
    /// The group of each component.
    group_of: Vec<Option<usize>>,
    /// Rows of the strip.
    rows: i32,
    /// Whether any component has a space scale. Else the picture has the strip only.
    spatial: bool,
}

impl<'a> ScaleMap<'a> {
    fn new(network: &'a Network, ranges: &[Option<ScaleRange>]) -> Self {
        let known = || ranges.iter().flatten();
        let mut map = ScaleMap {
            network,
            time: Axis::new(known().map(|range| range.time), WIDTH),
            space: Axis::new(known().filter_map(|range| range.space), HEIGHT),
            groups: Vec::new(),
            group_of: Vec::new(),
            rows: 0,
            spatial: known().any(|range| range.space.is_some()),
        };
        let mut distinct: Vec<ScaleRange> = Vec::new();
        for (range, component) in ranges.iter().zip(&network.components) {
            let number = range.map(|range| map.group_for(range, &mut distinct));
            if let Some(number) = number {
                let sizes = component.multiplicity.iter();
                let several: String = sizes.map(|size| format!("[{size}]")).collect();
                let name = format!("{}{several}", component.path);
                map.groups[number].names.push(name);
            }
            map.group_of.push(number);
        }
        map
    }

    /// The number of the group with the given range, which is added if there is none. `distinct` has
    /// the ranges of the groups.
    fn group_for(&mut self, range: ScaleRange, distinct: &mut Vec<ScaleRange>) -> usize {
        if let Some(known) = distinct.iter().position(|other| *other == range) {
            return known;
        }
        distinct.push(range);
        self.add_group(&range);
        distinct.len() - 1
    }

    fn add_group(&mut self, range: &ScaleRange) {
        let (x, right) = (self.time.at(range.time.0), self.time.at(range.time.1));
        let width = right - x;
        let area = match range.space {
            Some((low, high)) => Area {
                x,
                y: self.space.pixels - self.space.at(high),
                width,
                height: self.space.at(high) - self.space.at(low),
            }
            .grown(LEAST),
            None => {
                let y = self.strip() + f64::from(self.rows * ROW) + 5.0;
                self.rows += 1;
                let height = f64::from(ROW - 10);
                let area = Area {
                    x,
                    y,
                    width,
                    height,
                };
                Area {
                    y,
                    height,
                    ..area.grown(LEAST)
                }
            }
        };
        self.groups.push(Group {
            names: Vec::new(),
            area,
        });
    }

    /// The upper edge of the strip.
    fn strip(&self) -> f64 {
        if self.spatial {
            f64::from(HEIGHT + GAP)
        } else {
            0.0
        }
    }

    /// The lower edge of map and strip.
    fn bottom(&self) -> i32 {
        match (self.spatial, self.rows) {
            (true, 0) => HEIGHT,
            (true, rows) => HEIGHT + GAP + rows * ROW,
            (false, rows) => rows * ROW,
        }
    }

    fn draw(&self) -> String {
        let components = self.network.components.iter().zip(&self.group_of);
        let unknown: Vec<&str> = components
            .filter(|(_, group)| group.is_none())
            .map(|(component, _)| component.path.as_str())
            .collect();
        let width = LEFT + WIDTH + RIGHT;
        let height = TOP + self.bottom() + 64 + if unknown.is_empty() { 0 } else { 22 };
        let model = &self.network.model;
        let title = format!("{model}: scale separation map of {}", self.spoken());
        let mut svg = Svg::new(width, height, &title, &style());
        svg.text("title", (LEFT, 34), TextAnchor::Start, model);
        self.draw_axes(&mut svg);
        self.draw_couplings(&mut svg);
        self.draw_groups(&mut svg);
        if !unknown.is_empty() {
            let text = format!("without scales: {}", unknown.join(", "));
            let text = shorten(&text, WIDTH, TEXT);
            svg.text("faint note", (LEFT, height - 14), TextAnchor::Start, text);
        }
        svg.finish()
    }

    /// The components, for screen readers.
    fn spoken(&self) -> String {
        let labels: Vec<String> = self.groups.iter().map(Group::label).collect();
        labels.join(", ")
    }

    fn draw_groups(&self, svg: &mut Svg) {
        let labels = self.place_labels();
        for (number, (group, label)) in self.groups.iter().zip(&labels).enumerate() {
            let hue = HUES[number % HUES.len()].1;
            svg.group(
                &format!("component {hue}"),
                &[("name", &group.names.join(" "))],
                &group.names.join(", "),
            );
            let pixels = |value: f64| value.round() as i32;
            let area = &group.area;
            let corner = (LEFT + pixels(area.x), TOP + pixels(area.y));
            let size = (pixels(area.width), pixels(area.height));
            svg.rect("area", corner, size, 3);
            let baseline = (LEFT + pixels(label.x), TOP + pixels(label.bottom()) - 4);
            svg.text("name", baseline, TextAnchor::Start, group.label());
            svg.end();
        }
    }

    fn draw_axes(&self, svg: &mut Svg) {
        svg.group("axes", &[], "");
        self.draw_time_axis(svg);
        if self.spatial {
            self.draw_space_axis(svg);
        }
        if self.rows > 0 {
            let y = TOP + self.strip() as i32;
            svg.rect("plot", (LEFT, y), (WIDTH, self.rows * ROW), 0);
            let baseline = (LEFT - 8, y + ROW / 2 + 4);
            svg.text("mark", baseline, TextAnchor::End, "time only");
        }
        svg.end();
    }

    fn draw_time_axis(&self, svg: &mut Svg) {
        let bottom = TOP + self.bottom();
        for (at, text) in self.time.marks(&TIME_MARKS, 54.0) {
            let x = LEFT + at.round() as i32;
            svg.path("grid", &format!("M{x} {TOP}V{bottom}"));
            svg.text("mark", (x, bottom + 18), TextAnchor::Middle, text);
        }
        let middle = (LEFT + WIDTH / 2, bottom + 42);
        let text = "time: from step to total";
        svg.text("axis", middle, TextAnchor::Middle, text);
    }

    fn draw_space_axis(&self, svg: &mut Svg) {
        for (at, text) in self.space.marks(&SPACE_MARKS, 34.0) {
            let y = TOP + HEIGHT - at.round() as i32;
            svg.path("grid", &format!("M{LEFT} {y}H{}", LEFT + WIDTH));
            svg.text("mark", (LEFT - 8, y + 4), TextAnchor::End, text);
        }
        let middle = TOP + HEIGHT / 2;
        let text = escape("space: from spacing to extent");
        svg.markup(&format!(
            "<text class=\"axis\" x=\"20\" y=\"{middle}\" text-anchor=\"middle\" transform=\"rotate(-90 20 {middle})\">{text}</text>"
        ));
        svg.rect("plot", (LEFT, TOP), (WIDTH, HEIGHT), 0);
    }

    /// The pairs of groups that exchange messages, and whether the first group receives and whether
    /// the second group receives.
    fn couplings(&self) -> BTreeMap<(usize, usize), (bool, bool)> {
        let mut pairs: BTreeMap<(usize, usize), (bool, bool)> = BTreeMap::new();
        for bundle in &self.network.bundles {
            let from = self.group_of[bundle.sender.index()];
            let to = self.group_of[bundle.receiver.index()];
            match (from, to) {
                (Some(from), Some(to)) if from < to => {
                    pairs.entry((from, to)).or_default().1 = true;
                }
                (Some(from), Some(to)) if to < from => {
                    pairs.entry((to, from)).or_default().0 = true;
                }
                _ => {}
            }
        }
        pairs
    }

    /// Draws a line for each pair of groups, with an arrow at each receiving end.
    fn draw_couplings(&self, svg: &mut Svg) {
        let coordinates =
            |(x, y): Point| format!("{:.1} {:.1}", f64::from(LEFT) + x, f64::from(TOP) + y);
        for ((a, b), (a_receives, b_receives)) in self.couplings() {
            let (a, b) = (&self.groups[a], &self.groups[b]);
            let (a_names, b_names) = (a.names.join(" "), b.names.join(" "));
            svg.group("coupling", &[("between", &a_names), ("and", &b_names)], "");
            let Curve { start, bend, end } = Curve::between(&a.area, &b.area);
            let [from, towards, to] = [start, bend, end].map(coordinates);
            svg.path("line", &format!("M{from}Q{towards} {to}"));
            for (receives, tip) in [(a_receives, start), (b_receives, end)] {
                if receives {
                    svg.path("tip", &arrow_head(tip, bend, &coordinates));
                }
            }
            svg.end();
        }
    }

    /// The areas of the names of all groups. Each name is in the group's rectangle or beside the
    /// rectangle, and overlaps other names and rectangles as little as possible.
    fn place_labels(&self) -> Vec<Area> {
        let mut placed: Vec<Area> = Vec::new();
        for (number, group) in self.groups.iter().enumerate() {
            let width = f64::from(text_width(&group.label(), TEXT, true));
            let best = label_candidates(&group.area, width)
                .into_iter()
                .map(|label| (self.label_cost(number, &label, &placed), label))
                .min_by(|a, b| a.0.total_cmp(&b.0));
            let corner = label_at(group.area.x, group.area.y, width);
            placed.push(best.map_or(corner, |(_, label)| label));
        }
        placed
    }

    /// How much of a group's name would be illegible at a place.
    fn label_cost(&self, number: usize, label: &Area, placed: &[Area]) -> f64 {
        let in_view = label.x >= 0.0
            && label.right() <= f64::from(WIDTH)
            && label.y >= 0.0
            && label.bottom() <= f64::from(self.bottom());
        let names: f64 = placed.iter().map(|other| other.common(label)).sum();
        let groups = self.groups.iter().enumerate();
        let others = groups.filter(|(other, _)| *other != number);
        // Text on a larger rectangle is legible. Text across an edge is less so.
        let areas: f64 = others
            .map(|(_, other)| match other.area.contains(label) {
                true => 0.0,
                false => other.area.common(label),
            })
            .sum();
        10.0 * names + areas + if in_view { 0.0 } else { 1e6 }
    }
}

fn label_at(x: f64, y: f64, width: f64) -> Area {
    Area {
        x,
        y,
        width,
        height: NAME_HEIGHT,
    }
}

/// The places for the name of an area, the best first: inside if the name fits, beside the area,
/// and line by line below.
fn label_candidates(area: &Area, width: f64) -> Vec<Area> {
    let height = NAME_HEIGHT;
    let middle = area.y + (area.height - height) / 2.0;
    let low = area.bottom() - height - 1.0;
    let mut corners = Vec::new();
    if width + 8.0 <= area.width && height <= area.height {
        corners.extend([
            (area.x + 5.0, area.y + 1.0),
            (area.right() - width - 3.0, low),
            (area.x + 5.0, low),
            (area.x + (area.width - width) / 2.0, middle),
        ]);
    }
    corners.extend([
        (area.right() + 5.0, middle),
        (area.x - width - 3.0, middle),
        (area.x, area.y - height - 1.0),
        (area.x, area.bottom() + 1.0),
    ]);
    corners.extend((1..40).map(|line| (area.x, area.bottom() + 1.0 + f64::from(line) * height)));
    corners
        .into_iter()
        .map(|(x, y)| label_at(x, y, width))
        .collect()
}

fn style() -> Style {
    let mut style = Style::new();
    style.add(".plot", "fill:none", &[("stroke", Ink::Edge)]);
    style.add(".grid", "stroke-opacity:.35", &[("stroke", Ink::Absent)]);
    style.fill(".mark", Ink::Faint);
    style.fixed(".axis,.note", &format!("font-size:{TEXT}px"));
    style.fixed(".name", &format!("font-size:{TEXT}px;font-weight:600"));
    style.fixed(".area", "fill-opacity:.16;stroke-width:1.5");
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
    style.fill(".coupling .tip", Ink::Edge);
    style
}
