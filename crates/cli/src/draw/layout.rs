//! Where everything of a coupling graph goes: a layered drawing from left to right, after Sugiyama, Tagawa and Toda (1981).
//!
//! Boxes stand in columns ([`columns`]), nets run through the channels between them ([`sheet`]); then columns are put in order
//! ([`order`]), everything gets its height ([`place`]) and lines their tracks ([`route`]). A model inside a box is laid out first
//! and then is a box like any other.

mod columns;
mod order;
mod place;
mod route;
mod sheet;

use self::place::Heights;
use self::route::{Ends, Trunk};
use self::sheet::{Bus, Item, Sheet, Stop};
use super::graph::{Graph, Part, Pin};
use super::svg::{BOLD, SMALL, text_width};

/// Heights are multiples of this, so that lines are either level or clearly not.
pub(crate) const GRID: i32 = 10;
/// Height of the name and the program above the ports.
pub(crate) const HEADER: i32 = 4 * GRID;
/// From port to port.
pub(crate) const PITCH: i32 = 2 * GRID;
/// From a box's edge to the text of a port.
pub(crate) const INSET: i32 = 11;
/// The font size of ports and filters.
pub(crate) const SMALL_TEXT: i32 = 11;
/// The font size of names.
pub(crate) const NAME_TEXT: i32 = 13;
/// The height of a filter's tag.
pub(crate) const TAG: i32 = 15;
/// From track to track.
const TRACK: i32 = 10;
/// From a box to the first track or tag; an arrow fits in.
const MARGIN: i32 = 18;
/// From a frame to what is in it.
const PADDING: i32 = 2 * GRID;
/// Between tags.
const TAG_GAP: i32 = 4;

/// A side of a box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Left = 0,
    Right = 1,
}

impl Side {
    fn across(self) -> Side {
        if self == Side::Left {
            Side::Right
        } else {
            Side::Left
        }
    }
}

/// A graph with a place for everything, in pixels from its upper left corner.
#[derive(Debug, Default)]
pub(crate) struct Layout {
    pub(crate) width: i32,
    pub(crate) height: i32,
    /// In the order of the graph.
    pub(crate) boxes: Vec<Placed>,
    /// The model's own ports, in the order of the graph.
    pub(crate) outer: Vec<(Side, i32)>,
    /// In the order of the graph.
    pub(crate) wires: Vec<Wire>,
}

/// A box.
#[derive(Debug)]
pub(crate) struct Placed {
    pub(crate) x: i32,
    pub(crate) y: i32,
    pub(crate) width: i32,
    pub(crate) height: i32,
    /// The side of each port, and how far it is below the upper edge.
    pub(crate) ports: Vec<(Side, i32)>,
    /// What is inside; it begins at the left edge, and [`HEADER`] below the upper one.
    pub(crate) inner: Option<Layout>,
}

/// The lines of a net.
#[derive(Debug, Default)]
pub(crate) struct Wire {
    /// Lines of horizontal and vertical pieces.
    pub(crate) lines: Vec<Vec<(i32, i32)>>,
    /// Where lines fork.
    pub(crate) forks: Vec<(i32, i32)>,
    /// Where messages arrive, and whether they come from the left.
    pub(crate) arrows: Vec<(i32, i32, bool)>,
    /// Left edge, middle height and width of each filter's tag, with its text.
    pub(crate) tags: Vec<(i32, i32, i32, String)>,
}

/// Lays out a model that is not inside a box: its own ports that receive are on the left, those that send on the right.
pub(crate) fn lay_out(graph: &Graph) -> Layout {
    let outer: Vec<Side> = graph
        .outer
        .iter()
        .map(|port| {
            if port.operator.receives() {
                Side::Left
            } else {
                Side::Right
            }
        })
        .collect();
    within(graph, &outer, 0)
}

/// Lays out a model whose own ports are on the given sides of its frame, which has at least this width.
fn within(graph: &Graph, outer: &[Side], least: i32) -> Layout {
    let columns = columns::columns(graph);
    let sides = sheet::sides(graph, &columns, outer);
    let inner: Vec<Option<Layout>> = graph
        .boxes
        .iter()
        .zip(&sides)
        .map(|(part, sides)| {
            let inner = part.inner.as_ref()?;
            Some(within(
                inner,
                &outer_sides(part, inner, sides),
                header_width(part),
            ))
        })
        .collect();
    let mut sheet = sheet::sheet(graph, &columns, &sides, outer);
    let fixed: Vec<bool> = inner.iter().map(Option::is_some).collect();
    for (item, layout) in inner.iter().enumerate() {
        if let Some(layout) = layout {
            let heights = outer_heights(&graph.boxes[item], layout);
            sheet.faces[item]
                .iter_mut()
                .for_each(|face| face.sort_by_key(|port| heights[*port]));
        }
    }
    order::order(&mut sheet, &fixed);
    Drawing {
        graph,
        sides: &sides,
        sheet: &sheet,
    }
    .finish(inner, least)
}

/// The inner model's own ports are on the side where the component has the port of that name.
fn outer_sides(part: &Part, inner: &Graph, sides: &[Side]) -> Vec<Side> {
    let side = |port: &super::graph::Port| {
        let of_part = part
            .ports
            .iter()
            .position(|p| bare(&p.name) == bare(&port.name));
        match of_part {
            Some(of_part) => sides[of_part],
            None if port.operator.receives() => Side::Left,
            None => Side::Right,
        }
    };
    inner.outer.iter().map(side).collect()
}

/// How far below the upper edge of a frame each port of its component is.
fn outer_heights(part: &Part, layout: &Layout) -> Vec<i32> {
    let inner = part.inner.as_ref();
    let own = |port: &super::graph::Port| {
        let number = inner?
            .outer
            .iter()
            .position(|p| bare(&p.name) == bare(&port.name))?;
        Some(HEADER + layout.outer[number].1)
    };
    part.ports
        .iter()
        .map(|port| own(port).unwrap_or(HEADER / 2))
        .collect()
}

fn bare(name: &str) -> &str {
    name.trim_end_matches("[]")
}

/// A sheet in its final order, on its way to a layout.
struct Drawing<'a> {
    graph: &'a Graph,
    sides: &'a [Vec<Side>],
    sheet: &'a Sheet,
}

impl Drawing<'_> {
    fn finish(&self, mut inner: Vec<Option<Layout>>, least: i32) -> Layout {
        let sheet = self.sheet;
        let mut boxes: Vec<Placed> = (0..self.graph.boxes.len())
            .map(|number| self.measure(number, inner[number].take()))
            .collect();
        sheet
            .columns
            .iter()
            .for_each(|column| self.even_out(column, &mut boxes));
        let item_height = |item: usize| match sheet.items[item] {
            Item::Box(number) => {
                boxes[number].height + GRID * stack(&self.graph.boxes[number]).min(1)
            }
            Item::Outer(_) => PITCH,
            Item::Lane(_) => 0,
        };
        let port_height = |item: usize, port: usize| match sheet.items[item] {
            Item::Box(number) => boxes[number].ports[port].1,
            Item::Outer(_) => PITCH / 2,
            Item::Lane(_) => 0,
        };
        let tops = place::place(
            sheet,
            &Heights {
                item: &item_height,
                port: &port_height,
            },
        );
        let level = |stop: &Stop| PADDING / 2 + tops[stop.item] + port_height(stop.item, stop.port);

        let mut wires: Vec<Wire> = self.graph.nets.iter().map(|_| Wire::default()).collect();
        let mut x = 0;
        let mut height = 0;
        // Where each item ends towards the left and the right channel.
        let mut edges = vec![(0, 0); sheet.items.len()];
        let widths: Vec<i32> = sheet
            .columns
            .iter()
            .map(|column| self.column_width(column, &boxes))
            .collect();
        let mut lefts = Vec::new();
        let mut channels = Vec::new();
        for (column, width) in widths.iter().enumerate() {
            lefts.push(x);
            for item in &sheet.columns[column] {
                edges[*item] = match sheet.items[*item] {
                    Item::Box(number) => {
                        let left = x
                            + (width - boxes[number].width - 3 * stack(&self.graph.boxes[number]))
                                / 2;
                        (left, left + boxes[number].width)
                    }
                    Item::Outer(port) => (x, x + self.outer_width(port)),
                    Item::Lane(_) => (x, x + width),
                };
                height = height.max(tops[*item] + item_height(*item));
            }
            x += width;
            if let Some(buses) = sheet.channels.get(column) {
                let channel = self.channel(buses, &level, x);
                x += channel.width;
                channels.push(channel);
            }
        }
        x = x.max(least);
        // Ports of the model on the right stand at the very edge.
        for item in &sheet.columns[sheet.columns.len() - 1] {
            edges[*item] = (x - (edges[*item].1 - edges[*item].0), x);
        }
        for (channel, buses) in channels.iter().zip(&sheet.channels) {
            self.draw_channel(channel, buses, &level, &edges, &mut wires);
        }
        let mut outer = vec![(Side::Left, 0); self.graph.outer.len()];
        for (item, kind) in sheet.items.iter().enumerate() {
            match *kind {
                Item::Box(number) => {
                    boxes[number].x = edges[item].0;
                    boxes[number].y = PADDING / 2 + tops[item];
                }
                Item::Outer(port) => {
                    let side = if edges[item].0 == 0 {
                        Side::Left
                    } else {
                        Side::Right
                    };
                    outer[port] = (side, PADDING / 2 + tops[item] + PITCH / 2);
                }
                Item::Lane(net) => {
                    let y = PADDING / 2 + tops[item];
                    wires[net]
                        .lines
                        .push(vec![(edges[item].0, y), (edges[item].1, y)]);
                }
            }
        }
        Layout {
            width: x,
            height: height + PADDING,
            boxes,
            outer,
            wires,
        }
    }

    /// The size of a box, and where its ports are on it.
    fn measure(&self, number: usize, inner: Option<Layout>) -> Placed {
        let part = &self.graph.boxes[number];
        if let Some(layout) = inner {
            let heights = outer_heights(part, &layout);
            let ports = self.sides[number].iter().copied().zip(heights).collect();
            let (width, height) = (layout.width, layout.height + HEADER);
            return Placed {
                x: 0,
                y: 0,
                width,
                height,
                ports,
                inner: Some(layout),
            };
        }
        let faces = &self.sheet.faces[number];
        let label = |side: usize| {
            faces[side]
                .iter()
                .map(|port| text_width(&part.ports[*port].name, SMALL_TEXT, SMALL))
                .max()
                .unwrap_or(0)
        };
        let rows = faces[0].len().max(faces[1].len()) as i32;
        let between = if faces.iter().all(|face| !face.is_empty()) {
            20
        } else {
            0
        };
        let width = header_width(part)
            .max(label(0) + label(1) + between + 2 * INSET)
            .max(90);
        let height = if rows == 0 {
            HEADER
        } else {
            HEADER + rows * PITCH
        };
        let mut ports = vec![(Side::Left, 0); part.ports.len()];
        for side in [Side::Left, Side::Right] {
            for (row, port) in faces[side as usize].iter().enumerate() {
                ports[*port] = (side, HEADER + PITCH / 2 + row as i32 * PITCH);
            }
        }
        Placed {
            x: 0,
            y: 0,
            width,
            height,
            ports,
            inner: None,
        }
    }

    /// Boxes of a column that have nearly the same width get the same.
    fn even_out(&self, column: &[usize], boxes: &mut [Placed]) {
        const NEARLY: i32 = 50;
        let number = |item: &usize| {
            if let Item::Box(number) = self.sheet.items[*item] {
                Some(number)
            } else {
                None
            }
        };
        let numbers: Vec<usize> = column
            .iter()
            .filter_map(number)
            .filter(|number| boxes[*number].inner.is_none())
            .collect();
        let widest = numbers
            .iter()
            .map(|number| boxes[*number].width)
            .max()
            .unwrap_or(0);
        for number in numbers {
            if widest - boxes[number].width <= NEARLY {
                boxes[number].width = widest;
            }
        }
    }

    fn column_width(&self, column: &[usize], boxes: &[Placed]) -> i32 {
        let width = |item: &usize| match self.sheet.items[*item] {
            Item::Box(number) => boxes[number].width + 3 * stack(&self.graph.boxes[number]),
            Item::Outer(port) => self.outer_width(port),
            Item::Lane(_) => 0,
        };
        column.iter().map(width).max().unwrap_or(0)
    }

    /// The name of one of the model's own ports stands inside the frame.
    fn outer_width(&self, port: usize) -> i32 {
        INSET + text_width(&self.graph.outer[port].name, SMALL_TEXT, SMALL) + 5
    }

    fn tags(&self, bus: &Bus, stop: &Stop) -> &[String] {
        stop.receiver.map_or(&[], |receiver| {
            &self.graph.nets[bus.net].to[receiver].filters
        })
    }

    /// Room for tags at both sides and for tracks in the middle.
    fn channel(&self, buses: &[Bus], level: &dyn Fn(&Stop) -> i32, x: i32) -> Channel {
        let ends: Vec<Ends> = buses
            .iter()
            .map(|bus| {
                bus.stops
                    .each_ref()
                    .map(|stops| stops.iter().map(level).collect())
            })
            .collect();
        let (trunks, tracks) = route::trunks(&ends);
        let tags = |side: usize| {
            let stops = buses
                .iter()
                .flat_map(|bus| bus.stops[side].iter().map(move |stop| (bus, stop)));
            stops
                .map(|(bus, stop)| tags_width(self.tags(bus, stop)))
                .max()
                .unwrap_or(0)
        };
        let (left, right) = (tags(0), tags(1));
        let tracks_from = x + MARGIN + left;
        let width = match buses.is_empty() {
            true => PADDING,
            false => 2 * MARGIN + left + right + (tracks as i32 - 1).max(0) * TRACK,
        };
        Channel {
            trunks,
            tracks_from,
            width: width.max(if buses.is_empty() { 0 } else { 48 }),
        }
    }

    fn draw_channel(
        &self,
        channel: &Channel,
        buses: &[Bus],
        level: &dyn Fn(&Stop) -> i32,
        edges: &[(i32, i32)],
        wires: &mut [Wire],
    ) {
        let edge = |stop: &Stop, side: usize| {
            if side == 0 {
                edges[stop.item].1
            } else {
                edges[stop.item].0
            }
        };
        for (i, bus) in buses.iter().enumerate() {
            let wire = &mut wires[bus.net];
            for (side, stop) in both(bus) {
                self.end_wire(bus, stop, (edge(stop, side), level(stop)), side, wire);
            }
            let trunks: Vec<&Trunk> = channel
                .trunks
                .iter()
                .filter(|trunk| trunk.bus == i)
                .collect();
            let track = |trunk: &Trunk| channel.tracks_from + trunk.track as i32 * TRACK;
            if trunks.is_empty() {
                let mut line: Vec<(i32, i32)> = both(bus)
                    .map(|(side, stop)| (edge(stop, side), level(stop)))
                    .collect();
                line.sort_unstable();
                wire.lines.push(line);
            }
            for trunk in &trunks {
                let own = both(bus).filter(|(side, _)| !trunk.ends[*side].is_empty());
                let mut ends: Vec<(i32, i32)> = own
                    .map(|(side, stop)| (edge(stop, side), level(stop)))
                    .collect();
                // Two trunks of a bus meet halfway.
                let between =
                    trunks.iter().map(|trunk| track(trunk)).sum::<i32>() / trunks.len() as i32;
                ends.extend(trunk.joint.map(|joint| (between, joint)));
                wire.draw_trunk(track(trunk), &ends);
            }
        }
    }

    /// The arrow and the tags in front of a receiver.
    fn end_wire(&self, bus: &Bus, stop: &Stop, (x, y): (i32, i32), side: usize, wire: &mut Wire) {
        if stop.receiver.is_none() {
            return;
        }
        let from_left = side == 1;
        wire.arrows.push((x, y, from_left));
        let tags = self.tags(bus, stop);
        let mut at = if from_left {
            x - MARGIN + TAG_GAP - tags_width(tags)
        } else {
            x + MARGIN - TAG_GAP
        };
        // Messages pass the filters in the order of the description.
        let ordered: Vec<&String> = if from_left {
            tags.iter().collect()
        } else {
            tags.iter().rev().collect()
        };
        for tag in ordered {
            let width = tag_width(tag);
            wire.tags.push((at, y, width, tag.clone()));
            at += width + TAG_GAP;
        }
    }
}

impl Wire {
    /// A vertical piece with lines to its ends. The highest and the lowest go on from it around a corner, the others join it.
    fn draw_trunk(&mut self, x: i32, ends: &[(i32, i32)]) {
        let low = ends.iter().map(|end| end.1).min().unwrap_or(0);
        let high = ends.iter().map(|end| end.1).max().unwrap_or(0);
        let at = |y: i32| ends.iter().copied().filter(move |end| end.1 == y);
        let (top, bottom): (Vec<_>, Vec<_>) = (at(low).collect(), at(high).collect());
        let mut trunk = vec![(x, low), (x, high)];
        if let [only] = top[..] {
            trunk.insert(0, only);
        }
        if let [only] = bottom[..] {
            trunk.push(only);
        }
        self.lines.push(trunk);
        for end in ends {
            let goes_on = (end.1 == low && top.len() == 1) || (end.1 == high && bottom.len() == 1);
            if !goes_on {
                self.lines.push(vec![*end, (x, end.1)]);
                if !self.forks.contains(&(x, end.1)) {
                    self.forks.push((x, end.1));
                }
            }
        }
    }
}

/// A channel on its way to lines.
struct Channel {
    trunks: Vec<Trunk>,
    tracks_from: i32,
    width: i32,
}

/// How many boxes are seen behind a box that stands for several instances.
pub(crate) fn stack(part: &Part) -> i32 {
    if part.multiplicity.is_empty() { 0 } else { 2 }
}

/// Room for the name and the program.
fn header_width(part: &Part) -> i32 {
    let title = text_width(
        &format!("{} {}", part.name, part.multiplicity),
        NAME_TEXT,
        BOLD,
    );
    title.max(text_width(&part.implementation, SMALL_TEXT, SMALL)) + 2 * INSET
}

fn both(bus: &Bus) -> impl Iterator<Item = (usize, &Stop)> {
    (0..2).flat_map(|side| bus.stops[side].iter().map(move |stop| (side, stop)))
}

fn tag_width(text: &str) -> i32 {
    text_width(text, SMALL_TEXT - 1, SMALL) + 10
}

fn tags_width(tags: &[String]) -> i32 {
    tags.iter().map(|tag| tag_width(tag) + TAG_GAP).sum()
}

/// The port of a pin, for those who draw names.
pub(crate) fn pin_name(graph: &Graph, prefix: &str, pin: Pin) -> String {
    match pin {
        Pin::Box { part, port } => {
            format!(
                "{}.{}",
                graph.boxes[part].path,
                bare(&graph.boxes[part].ports[port].name)
            )
        }
        Pin::Outer(port) => {
            let dot = if prefix.is_empty() { "" } else { "." };
            format!("{prefix}{dot}{}", bare(&graph.outer[port].name))
        }
    }
}

#[cfg(test)]
mod tests;
