//! A graph in columns, with a channel between each two columns. Nets run through the channels.
//!
//! Ports face their peers. A net takes up a range of channels without a gap. Between two of these
//! channels the net crosses the column on a lane of its own, so that no line runs through a box.

use std::cmp::Ordering;

use super::{BoxSide, side_by_operator};
use crate::coupling_graph::graph::{Graph, Net, Pin};

/// Columns of items, and the channels between the columns. Channel `k` is right of column `k`. The
/// first and the last column have the model's own ports.
pub(super) struct LayeredGraph {
    pub(super) items: Vec<ColumnItem>,
    /// The items of each column from top to bottom.
    pub(super) columns: Vec<Vec<usize>>,
    /// The ports of each item on the left and on the right, from top to bottom.
    pub(super) faces: Vec<[Vec<usize>; 2]>,
    pub(super) channels: Vec<Vec<ChannelNet>>,
}

/// An item that takes up room in a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ColumnItem {
    /// The box with this number.
    Box(usize),
    /// The port of the model itself with this number.
    Outer(usize),
    /// A lane of the net with this number.
    Lane(usize),
}

/// A net within a channel.
pub(super) struct ChannelNet {
    pub(super) net: usize,
    /// The ends on the left of the channel and on the right.
    pub(super) ends: [Vec<NetEnd>; 2],
}

/// The end of a net at an item beside a channel.
#[derive(Clone, Copy, Debug)]
pub(super) struct NetEnd {
    pub(super) item: usize,
    pub(super) port: usize,
    /// The number of the receiver in the net, if the end is at a receiver.
    pub(super) receiver: Option<usize>,
}

/// The side of each port of each box: the side towards the port's peers.
pub(super) fn port_sides(graph: &Graph, columns: &[usize], outer: &[BoxSide]) -> Vec<Vec<BoxSide>> {
    let boxes = graph.boxes.iter();
    let mut sides: Vec<Vec<BoxSide>> = boxes
        .map(|component| component.ports.iter().map(side_by_operator).collect())
        .collect();
    let column = |pin: Pin| match pin {
        Pin::Box { number, .. } => columns[number] as isize,
        Pin::Outer(port) if outer[port] == BoxSide::Left => -1,
        Pin::Outer(_) => isize::MAX,
    };
    for Net { from, to, .. } in &graph.nets {
        let own = column(*from);
        let to_left = to.iter().filter(|r| column(r.pin) < own).count();
        let to_right = to.iter().filter(|r| column(r.pin) > own).count();
        let sending_side = match *from {
            Pin::Outer(port) => outer[port].opposite(),
            Pin::Box { .. } if to_left > to_right => BoxSide::Left,
            Pin::Box { .. } => BoxSide::Right,
        };
        if let Pin::Box { number, port } = *from {
            sides[number][port] = sending_side;
        }
        for receiver in to {
            if let Pin::Box { number, port } = receiver.pin {
                sides[number][port] = match column(receiver.pin).cmp(&own) {
                    Ordering::Less => BoxSide::Right,
                    Ordering::Equal => sending_side,
                    Ordering::Greater => BoxSide::Left,
                };
            }
        }
    }
    sides
}

/// Lets the nets run through channels. `columns` and `sides` belong to the boxes.
pub(super) fn layered_graph(
    graph: &Graph,
    columns: &[usize],
    sides: &[Vec<BoxSide>],
    outer: &[BoxSide],
) -> LayeredGraph {
    let last = columns.iter().map(|column| column + 1).max().unwrap_or(0);
    let mut layers = LayeredGraph {
        items: Vec::new(),
        columns: vec![Vec::new(); last + 2],
        faces: Vec::new(),
        channels: (0..=last).map(|_| Vec::new()).collect(),
    };
    for (number, column) in columns.iter().enumerate() {
        let ports = 0..sides[number].len();
        let face = |side| {
            let ports = ports.clone().filter(|port| sides[number][*port] == side);
            ports.collect()
        };
        let faces = [face(BoxSide::Left), face(BoxSide::Right)];
        layers.add(ColumnItem::Box(number), column + 1, faces);
    }
    for (port, side) in outer.iter().enumerate() {
        // A port on the frame's left faces right, into the model.
        let (column, faces) = match side {
            BoxSide::Left => (0, [Vec::new(), vec![0]]),
            BoxSide::Right => (last + 1, [vec![0], Vec::new()]),
        };
        layers.add(ColumnItem::Outer(port), column, faces);
    }
    let pins = PinPlaces {
        columns,
        sides,
        outer,
        last,
    };
    for (number, net) in graph.nets.iter().enumerate() {
        layers.add_net(number, &pins.ends(net));
    }
    layers
}

/// The end of a net, with the end's channel and the side of the channel.
struct PlacedEnd {
    end: NetEnd,
    channel: usize,
    side: BoxSide,
}

/// Finds the channel of each pin.
struct PinPlaces<'a> {
    columns: &'a [usize],
    sides: &'a [Vec<BoxSide>],
    outer: &'a [BoxSide],
    /// The last channel.
    last: usize,
}

impl PinPlaces<'_> {
    /// The ends of a net: the sender, then the receivers.
    fn ends(&self, net: &Net) -> Vec<PlacedEnd> {
        let receivers = net.to.iter().enumerate();
        let receivers = receivers.map(|(number, receiver)| (receiver.pin, Some(number)));
        std::iter::once((net.from, None))
            .chain(receivers)
            .map(|(pin, receiver)| self.end(pin, receiver))
            .collect()
    }

    fn end(&self, pin: Pin, receiver: Option<usize>) -> PlacedEnd {
        let (item, port, channel, side) = match pin {
            Pin::Box { number, port } => {
                let column = self.columns[number];
                match self.sides[number][port] {
                    BoxSide::Left => (number, port, column, BoxSide::Right),
                    BoxSide::Right => (number, port, column + 1, BoxSide::Left),
                }
            }
            Pin::Outer(port) => {
                let item = self.columns.len() + port;
                match self.outer[port] {
                    BoxSide::Left => (item, 0, 0, BoxSide::Left),
                    BoxSide::Right => (item, 0, self.last, BoxSide::Right),
                }
            }
        };
        let end = NetEnd {
            item,
            port,
            receiver,
        };
        PlacedEnd { end, channel, side }
    }
}

impl LayeredGraph {
    /// Adds an item at the bottom of a column. Returns the item's number.
    fn add(&mut self, item: ColumnItem, column: usize, faces: [Vec<usize>; 2]) -> usize {
        self.columns[column].push(self.items.len());
        self.items.push(item);
        self.faces.push(faces);
        self.items.len() - 1
    }

    /// Adds a net to all channels from the net's leftmost to rightmost end. Adds a lane in each
    /// column between two of these channels.
    fn add_net(&mut self, number: usize, ends: &[PlacedEnd]) {
        let first = ends.iter().map(|end| end.channel).min().unwrap_or(0);
        let last = ends.iter().map(|end| end.channel).max().unwrap_or(0);
        let at_lane = |item| NetEnd {
            item,
            port: 0,
            receiver: None,
        };
        let mut lane = None;
        for channel in first..=last {
            let mut net = ChannelNet {
                net: number,
                ends: [Vec::new(), Vec::new()],
            };
            net.ends[0].extend(lane.take().map(at_lane));
            for placed in ends.iter().filter(|end| end.channel == channel) {
                net.ends[placed.side as usize].push(placed.end);
            }
            if channel < last {
                let no_ports = [Vec::new(), Vec::new()];
                let item = self.add(ColumnItem::Lane(number), channel + 1, no_ports);
                lane = Some(item);
                net.ends[1].push(at_lane(item));
            }
            self.channels[channel].push(net);
        }
    }
}
