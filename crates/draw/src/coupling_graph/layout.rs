//! The coordinates of a coupling graph: a layered drawing from left to right, after Sugiyama,
//! Tagawa and Toda (1981).
//!
//! 1. [`columns`] puts boxes into columns.
//! 2. [`channels`] lets nets run through the channels between the columns.
//! 3. [`crossings`] orders the items of each column so that few lines cross.
//! 4. [`heights`] gives each item its height.
//! 5. [`tracks`] gives each vertical line its place in a channel.
//!
//! A model in a box is laid out first. After that, the box is laid out like any other box.

mod channels;
mod columns;
mod crossings;
mod heights;
mod tracks;

use self::channels::{ChannelNet, ColumnItem, LayeredGraph, NetEnd};
use self::heights::Heights;
use self::tracks::{EndHeights, Trunk};
use super::graph::{BoxPort, ComponentBox, Graph, Pin};
use crate::svg::{BOLD, REGULAR, text_width};

/// Heights are multiples of `GRID`, so that two lines are either level or clearly apart.
pub(crate) const GRID: i32 = 10;
/// The height of a box's name and program, above its ports.
pub(crate) const HEADER: i32 = 4 * GRID;
/// The distance between ports.
pub(crate) const PITCH: i32 = 2 * GRID;
/// The distance from a box's edge to the text of a port.
pub(crate) const INSET: i32 = 11;
/// The font size of ports and filters.
pub(crate) const SMALL_TEXT: i32 = 11;
/// The font size of names.
pub(crate) const NAME_TEXT: i32 = 13;
/// The height of a filter's tag.
pub(crate) const TAG: i32 = 15;
/// The distance between tracks.
const TRACK: i32 = 10;
/// The distance from a box to the first track or tag. An arrow fits in.
const MARGIN: i32 = 18;
/// The distance from a frame to the content.
const PADDING: i32 = 2 * GRID;
/// The distance between tags.
const TAG_GAP: i32 = 4;

/// A side of a box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BoxSide {
    Left = 0,
    Right = 1,
}

impl BoxSide {
    fn opposite(self) -> BoxSide {
        match self {
            BoxSide::Left => BoxSide::Right,
            BoxSide::Right => BoxSide::Left,
        }
    }

    /// The place of this side of a box.
    pub(crate) fn edge(self, left: i32, width: i32) -> i32 {
        match self {
            BoxSide::Left => left,
            BoxSide::Right => left + width,
        }
    }
}

/// The coordinates of a graph, in pixels from its upper left corner.
#[derive(Debug, Default)]
pub(crate) struct GraphLayout {
    pub(crate) width: i32,
    pub(crate) height: i32,
    /// In the order of the graph.
    pub(crate) boxes: Vec<BoxLayout>,
    /// The side and the height of the model's own ports, in the order of the graph.
    pub(crate) outer: Vec<(BoxSide, i32)>,
    /// In the order of the graph.
    pub(crate) nets: Vec<NetLines>,
}

/// The coordinates of a box.
#[derive(Debug)]
pub(crate) struct BoxLayout {
    pub(crate) x: i32,
    pub(crate) y: i32,
    pub(crate) width: i32,
    pub(crate) height: i32,
    /// The side of each port, and the distance from the upper edge of the box.
    pub(crate) ports: Vec<(BoxSide, i32)>,
    /// The model in the box. The left edge of the model is the left edge of the box. The upper edge
    /// of the model is [`HEADER`] below the upper edge of the box.
    pub(crate) inner: Option<GraphLayout>,
}

/// The lines of a net.
#[derive(Debug, Default)]
pub(crate) struct NetLines {
    /// The corners of lines. All lines are horizontal or vertical.
    pub(crate) lines: Vec<Vec<(i32, i32)>>,
    /// The points at which lines fork.
    pub(crate) forks: Vec<(i32, i32)>,
    /// The tips of the arrows, and whether each arrow comes from the left.
    pub(crate) arrows: Vec<(i32, i32, bool)>,
    /// Left edge, middle height, width and text of each filter's tag.
    pub(crate) tags: Vec<(i32, i32, i32, String)>,
}

/// Lays out the outermost model. The model's own receiving ports are on the left, and the sending
/// ports on the right.
pub(crate) fn lay_out(graph: &Graph) -> GraphLayout {
    let outer: Vec<BoxSide> = graph.outer.iter().map(side_by_operator).collect();
    lay_out_within(graph, &outer, 0)
}

/// The side of a port without a peer.
fn side_by_operator(port: &BoxPort) -> BoxSide {
    if port.operator.receives() {
        BoxSide::Left
    } else {
        BoxSide::Right
    }
}

/// Lays out a model in a frame of at least `least_width`. `outer` has the sides of the model's own
/// ports.
fn lay_out_within(graph: &Graph, outer: &[BoxSide], least_width: i32) -> GraphLayout {
    let columns = columns::columns(graph);
    let sides = channels::port_sides(graph, &columns, outer);
    let inner: Vec<Option<GraphLayout>> = graph
        .boxes
        .iter()
        .zip(&sides)
        .map(|(component, sides)| {
            let inner = component.inner.as_ref()?;
            let outer = outer_sides(component, inner, sides);
            Some(lay_out_within(inner, &outer, header_width(component)))
        })
        .collect();
    let mut layers = channels::layered_graph(graph, &columns, &sides, outer);
    for (item, layout) in inner.iter().enumerate() {
        if let Some(layout) = layout {
            let heights = outer_heights(&graph.boxes[item], layout);
            layers.faces[item]
                .iter_mut()
                .for_each(|face| face.sort_by_key(|port| heights[*port]));
        }
    }
    let fixed: Vec<bool> = inner.iter().map(Option::is_some).collect();
    crossings::order(&mut layers, &fixed);
    CoordinateAssignment {
        graph,
        sides: &sides,
        layers: &layers,
    }
    .assign(inner, least_width)
}

/// The sides of an inner model's own ports: each on the side where the component has the port of
/// the same name.
fn outer_sides(component: &ComponentBox, inner: &Graph, sides: &[BoxSide]) -> Vec<BoxSide> {
    let side = |port: &BoxPort| {
        let mut ports = component.ports.iter();
        ports
            .position(|other| other.bare_name() == port.bare_name())
            .map_or_else(|| side_by_operator(port), |number| sides[number])
    };
    inner.outer.iter().map(side).collect()
}

/// The distance of each port of a component from the upper edge of the frame around the component's
/// model.
fn outer_heights(component: &ComponentBox, layout: &GraphLayout) -> Vec<i32> {
    let inner = component.inner.as_ref();
    let height = |port: &BoxPort| {
        let mut outer = inner?.outer.iter();
        let number = outer.position(|other| other.bare_name() == port.bare_name())?;
        Some(HEADER + layout.outer[number].1)
    };
    component
        .ports
        .iter()
        .map(|port| height(port).unwrap_or(HEADER / 2))
        .collect()
}

/// Computes the coordinates of a layered graph whose items are in their final order.
struct CoordinateAssignment<'a> {
    graph: &'a Graph,
    sides: &'a [Vec<BoxSide>],
    layers: &'a LayeredGraph,
}

/// The coordinates of the items of a layered graph.
struct ItemCoordinates {
    heights: Heights,
    /// The upper edge of each item.
    tops: Vec<i32>,
    /// The left and the right edge of each item.
    edges: Vec<(i32, i32)>,
}

impl ItemCoordinates {
    /// The point at which a net ends. `side` is the item's side of the channel.
    fn point(&self, end: &NetEnd, side: usize) -> (i32, i32) {
        let (left, right) = self.edges[end.item];
        (if side == 0 { right } else { left }, self.level(end))
    }

    /// The height at which a net ends.
    fn level(&self, end: &NetEnd) -> i32 {
        self.top(end.item) + self.heights.ports[end.item][end.port]
    }

    /// The upper edge of an item in the picture.
    fn top(&self, item: usize) -> i32 {
        PADDING / 2 + self.tops[item]
    }

    /// The lowest edge of all items.
    fn bottom(&self) -> i32 {
        let bottoms = self.tops.iter().zip(&self.heights.items);
        let bottoms = bottoms.map(|(top, height)| top + height);
        bottoms.max().unwrap_or(0).max(0)
    }
}

impl CoordinateAssignment<'_> {
    /// `inner` has the layouts of the models in the boxes.
    fn assign(&self, inner: Vec<Option<GraphLayout>>, least_width: i32) -> GraphLayout {
        let mut boxes = self.measure_boxes(inner);
        let heights = self.heights(&boxes);
        let mut coordinates = ItemCoordinates {
            tops: heights::item_tops(self.layers, &heights),
            heights,
            edges: vec![(0, 0); self.layers.items.len()],
        };
        let (channels, width) = self.assign_columns(&boxes, &mut coordinates, least_width);
        let nets = self.draw_nets(&channels, &coordinates);
        let mut outer = vec![(BoxSide::Left, 0); self.graph.outer.len()];
        for (item, kind) in self.layers.items.iter().enumerate() {
            let (left, top) = (coordinates.edges[item].0, coordinates.top(item));
            let side = match left {
                0 => BoxSide::Left,
                _ => BoxSide::Right,
            };
            match *kind {
                ColumnItem::Box(number) => (boxes[number].x, boxes[number].y) = (left, top),
                ColumnItem::Outer(port) => outer[port] = (side, top + PITCH / 2),
                ColumnItem::Lane(_) => {}
            }
        }
        GraphLayout {
            width,
            height: coordinates.bottom() + PADDING,
            boxes,
            outer,
            nets,
        }
    }

    fn measure_boxes(&self, inner: Vec<Option<GraphLayout>>) -> Vec<BoxLayout> {
        let measured = inner
            .into_iter()
            .enumerate()
            .map(|(number, inner)| match inner {
                Some(layout) => self.measure_frame(number, layout),
                None => self.measure_box(number),
            });
        let mut boxes: Vec<BoxLayout> = measured.collect();
        for column in &self.layers.columns {
            self.even_out(column, &mut boxes);
        }
        boxes
    }

    /// The size of a box with a model in it, and the coordinates of its ports.
    fn measure_frame(&self, number: usize, layout: GraphLayout) -> BoxLayout {
        let heights = outer_heights(&self.graph.boxes[number], &layout);
        BoxLayout {
            x: 0,
            y: 0,
            width: layout.width,
            height: layout.height + HEADER,
            ports: self.sides[number].iter().copied().zip(heights).collect(),
            inner: Some(layout),
        }
    }

    /// The size of a box, and the coordinates of its ports.
    fn measure_box(&self, number: usize) -> BoxLayout {
        let component = &self.graph.boxes[number];
        let faces = &self.layers.faces[number];
        let labels = widest_name(component, &faces[0]) + widest_name(component, &faces[1]);
        let rows = faces[0].len().max(faces[1].len()) as i32;
        let gap = match faces.iter().all(|face| !face.is_empty()) {
            true => 20,
            false => 0,
        };
        let mut ports = vec![(BoxSide::Left, 0); component.ports.len()];
        for side in [BoxSide::Left, BoxSide::Right] {
            for (row, port) in faces[side as usize].iter().enumerate() {
                ports[*port] = (side, HEADER + PITCH / 2 + row as i32 * PITCH);
            }
        }
        let width = header_width(component).max(labels + gap + 2 * INSET);
        BoxLayout {
            x: 0,
            y: 0,
            width: width.max(90),
            height: HEADER + rows * PITCH,
            ports,
            inner: None,
        }
    }

    /// Gives boxes of a column the same width if their widths differ little.
    fn even_out(&self, column: &[usize], boxes: &mut [BoxLayout]) {
        const LITTLE: i32 = 50;
        let numbers: Vec<usize> = column
            .iter()
            .filter_map(|item| match self.layers.items[*item] {
                ColumnItem::Box(number) => Some(number),
                _ => None,
            })
            .filter(|number| boxes[*number].inner.is_none())
            .collect();
        let widths = numbers.iter().map(|number| boxes[*number].width);
        let widest = widths.max().unwrap_or(0);
        for number in numbers {
            if widest - boxes[number].width <= LITTLE {
                boxes[number].width = widest;
            }
        }
    }

    /// The heights of all items and of their ports.
    fn heights(&self, boxes: &[BoxLayout]) -> Heights {
        let height = |item: &ColumnItem| match *item {
            ColumnItem::Box(number) => {
                boxes[number].height + GRID * boxes_behind(&self.graph.boxes[number]).min(1)
            }
            ColumnItem::Outer(_) => PITCH,
            ColumnItem::Lane(_) => 0,
        };
        let ports = |item: &ColumnItem| match *item {
            ColumnItem::Box(number) => boxes[number].ports.iter().map(|port| port.1).collect(),
            ColumnItem::Outer(_) => vec![PITCH / 2],
            ColumnItem::Lane(_) => vec![0],
        };
        let items = &self.layers.items;
        Heights {
            items: items.iter().map(height).collect(),
            ports: items.iter().map(ports).collect(),
        }
    }

    /// Gives each column and each channel a place from left to right, and each item a left and a
    /// right edge. Returns the channels and the width of the whole.
    fn assign_columns(
        &self,
        boxes: &[BoxLayout],
        coordinates: &mut ItemCoordinates,
        least_width: i32,
    ) -> (Vec<Channel>, i32) {
        let mut x = 0;
        let mut channels = Vec::new();
        for (number, column) in self.layers.columns.iter().enumerate() {
            let width = self.column_width(column, boxes);
            for item in column {
                coordinates.edges[*item] = self.item_edges(*item, boxes, x, width);
            }
            x += width;
            if let Some(nets) = self.layers.channels.get(number) {
                let channel = self.channel(nets, coordinates, x);
                x += channel.width;
                channels.push(channel);
            }
        }
        x = x.max(least_width);
        // The model's ports on the right are in the last column. These ports lie at the very edge.
        for item in self.layers.columns.last().into_iter().flatten() {
            let (left, right) = coordinates.edges[*item];
            coordinates.edges[*item] = (x - (right - left), x);
        }
        (channels, x)
    }

    /// The left and the right edge of an item in a column at `x`.
    fn item_edges(&self, item: usize, boxes: &[BoxLayout], x: i32, width: i32) -> (i32, i32) {
        match self.layers.items[item] {
            ColumnItem::Box(number) => {
                let own_width = boxes[number].width;
                let behind = 3 * boxes_behind(&self.graph.boxes[number]);
                let left = x + (width - own_width - behind) / 2;
                (left, left + own_width)
            }
            ColumnItem::Outer(port) => (x, x + self.outer_width(port)),
            ColumnItem::Lane(_) => (x, x + width),
        }
    }

    fn column_width(&self, column: &[usize], boxes: &[BoxLayout]) -> i32 {
        let width = |item: &usize| match self.layers.items[*item] {
            ColumnItem::Box(number) => {
                boxes[number].width + 3 * boxes_behind(&self.graph.boxes[number])
            }
            ColumnItem::Outer(port) => self.outer_width(port),
            ColumnItem::Lane(_) => 0,
        };
        column.iter().map(width).max().unwrap_or(0)
    }

    /// The width of a port of the model itself: the port's name is inside the frame.
    fn outer_width(&self, port: usize) -> i32 {
        INSET + text_width(&self.graph.outer[port].name, SMALL_TEXT, REGULAR) + 5
    }

    /// The tags in front of a receiver.
    fn tags(&self, net: &ChannelNet, end: &NetEnd) -> &[String] {
        end.receiver.map_or(&[], |receiver| {
            &self.graph.nets[net.net].to[receiver].filters
        })
    }

    /// A channel at `x`: tags on both sides, and tracks in the middle.
    fn channel(&self, nets: &[ChannelNet], coordinates: &ItemCoordinates, x: i32) -> Channel {
        let level = |end: &NetEnd| coordinates.level(end);
        let levels = |ends: &Vec<NetEnd>| ends.iter().map(level).collect();
        let heights = nets.iter().map(|net| net.ends.each_ref().map(levels));
        let (trunks, tracks) = tracks::trunks(&heights.collect::<Vec<EndHeights>>());
        let (left, right) = (self.widest_tags(nets, 0), self.widest_tags(nets, 1));
        let width = match nets {
            [] => PADDING,
            _ => (2 * MARGIN + left + right + (tracks as i32 - 1).max(0) * TRACK).max(48),
        };
        Channel {
            trunks,
            first_track: x + MARGIN + left,
            width,
        }
    }

    /// The room for the filters at one side of a channel.
    fn widest_tags(&self, nets: &[ChannelNet], side: usize) -> i32 {
        let ends = nets
            .iter()
            .flat_map(|net| net.ends[side].iter().map(move |end| (net, end)));
        let widths = ends.map(|(net, end)| tags_width(self.tags(net, end)));
        widths.max().unwrap_or(0)
    }

    fn draw_nets(&self, channels: &[Channel], coordinates: &ItemCoordinates) -> Vec<NetLines> {
        let nets = self.graph.nets.iter();
        let mut lines: Vec<NetLines> = nets.map(|_| NetLines::default()).collect();
        for (channel, nets) in channels.iter().zip(&self.layers.channels) {
            for (number, net) in nets.iter().enumerate() {
                let lines = &mut lines[net.net];
                for (side, end) in both_sides(net) {
                    self.draw_receiver(net, end, coordinates.point(end, side), side, lines);
                }
                channel.draw_net(number, net, coordinates, lines);
            }
        }
        for (item, kind) in self.layers.items.iter().enumerate() {
            if let ColumnItem::Lane(net) = *kind {
                let ((left, right), y) = (coordinates.edges[item], coordinates.top(item));
                lines[net].lines.push(vec![(left, y), (right, y)]);
            }
        }
        lines
    }

    /// Draws the arrow and the tags in front of a receiver.
    fn draw_receiver(
        &self,
        net: &ChannelNet,
        end: &NetEnd,
        (x, y): (i32, i32),
        side: usize,
        lines: &mut NetLines,
    ) {
        if end.receiver.is_none() {
            return;
        }
        let from_left = side == 1;
        lines.arrows.push((x, y, from_left));
        let tags = self.tags(net, end);
        let mut left = if from_left {
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
            lines.tags.push((left, y, width, tag.clone()));
            left += width + TAG_GAP;
        }
    }
}

impl NetLines {
    /// Draws a vertical line at `x` with horizontal lines to `ends`. The lines to the highest and
    /// to the lowest end continue the vertical line around a corner. All other lines fork from the
    /// vertical line.
    fn draw_trunk(&mut self, x: i32, ends: &[(i32, i32)]) {
        let low = ends.iter().map(|end| end.1).min().unwrap_or(0);
        let high = ends.iter().map(|end| end.1).max().unwrap_or(0);
        let (top, bottom) = (only_end_at(low, ends), only_end_at(high, ends));
        let corners = [(x, low), (x, high)].into_iter();
        let trunk = top.into_iter().chain(corners).chain(bottom);
        self.lines.push(trunk.collect());
        // The trunk goes on to a single end at the top or at the bottom.
        let others = ends
            .iter()
            .filter(|end| top != Some(**end) && bottom != Some(**end));
        for end in others {
            self.lines.push(vec![*end, (x, end.1)]);
            if !self.forks.contains(&(x, end.1)) {
                self.forks.push((x, end.1));
            }
        }
    }
}

/// The coordinates of a channel.
struct Channel {
    trunks: Vec<Trunk>,
    /// The first track from the left.
    first_track: i32,
    width: i32,
}

impl Channel {
    /// Draws the lines of a net in this channel.
    fn draw_net(
        &self,
        number: usize,
        net: &ChannelNet,
        coordinates: &ItemCoordinates,
        lines: &mut NetLines,
    ) {
        let trunks = self.trunks.iter().filter(|trunk| trunk.net == number);
        let trunks: Vec<&Trunk> = trunks.collect();
        let point = |(side, end): (usize, &NetEnd)| coordinates.point(end, side);
        if trunks.is_empty() {
            let mut line: Vec<(i32, i32)> = both_sides(net).map(point).collect();
            line.sort_unstable();
            lines.lines.push(line);
        }
        let track = |trunk: &Trunk| self.first_track + trunk.track as i32 * TRACK;
        for trunk in &trunks {
            let own = both_sides(net).filter(|(side, _)| !trunk.ends[*side].is_empty());
            let mut ends: Vec<(i32, i32)> = own.map(point).collect();
            // Two trunks of a net meet halfway.
            let sum: i32 = trunks.iter().map(|trunk| track(trunk)).sum();
            let middle = sum / trunks.len() as i32;
            ends.extend(trunk.joint.map(|joint| (middle, joint)));
            lines.draw_trunk(track(trunk), &ends);
        }
    }
}

/// How many boxes are drawn behind a box. Boxes behind stand for several instances.
pub(crate) fn boxes_behind(component: &ComponentBox) -> i32 {
    if component.multiplicity.is_empty() {
        0
    } else {
        2
    }
}

/// The width of the name and the program.
fn header_width(component: &ComponentBox) -> i32 {
    let title = text_width(
        &format!("{} {}", component.name, component.multiplicity),
        NAME_TEXT,
        BOLD,
    );
    title.max(text_width(&component.implementation, SMALL_TEXT, REGULAR)) + 2 * INSET
}

/// The ends of a net in a channel, each with the end's side of the channel.
fn both_sides(net: &ChannelNet) -> impl Iterator<Item = (usize, &NetEnd)> {
    (0..2).flat_map(|side| net.ends[side].iter().map(move |end| (side, end)))
}

fn tag_width(text: &str) -> i32 {
    text_width(text, SMALL_TEXT - 1, REGULAR) + 10
}

fn tags_width(tags: &[String]) -> i32 {
    tags.iter().map(|tag| tag_width(tag) + TAG_GAP).sum()
}

/// The path of the port at a pin. `prefix` is the path of the graph.
pub(crate) fn pin_path(graph: &Graph, prefix: &str, pin: Pin) -> String {
    match pin {
        Pin::Box { number, port } => {
            let component = &graph.boxes[number];
            port_path(&component.path, &component.ports[port])
        }
        Pin::Outer(port) => port_path(prefix, &graph.outer[port]),
    }
}

/// The path of a port of the component or model at `prefix`.
pub(crate) fn port_path(prefix: &str, port: &BoxPort) -> String {
    let dot = if prefix.is_empty() { "" } else { "." };
    format!("{prefix}{dot}{}", port.bare_name())
}

/// The width of the widest of some ports' names.
fn widest_name(component: &ComponentBox, ports: &[usize]) -> i32 {
    let names = ports.iter().map(|port| &component.ports[*port].name);
    let widths = names.map(|name| text_width(name, SMALL_TEXT, REGULAR));
    widths.max().unwrap_or(0)
}

/// The end at a height, if there is one alone.
fn only_end_at(height: i32, ends: &[(i32, i32)]) -> Option<(i32, i32)> {
    let mut there = ends.iter().filter(|end| end.1 == height);
    match (there.next(), there.next()) {
        (Some(only), None) => Some(*only),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
