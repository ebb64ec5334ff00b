//! A graph in columns: which side of its box each port is on, and how nets run through the channels between columns.
//!
//! Ports face their peers. A net takes up a range of channels without a gap; between two of them it crosses the column on a
//! lane of its own, so that nothing ever runs through a box.

use super::Side;
use crate::draw::graph::{Graph, Net, Pin};

/// Columns of items, and the channels between them: channel `k` is right of column `k`. The first and the last column are for
/// the model's own ports.
pub(super) struct Sheet {
    pub(super) items: Vec<Item>,
    /// Items from top to bottom.
    pub(super) columns: Vec<Vec<usize>>,
    /// Ports of each item on the left and on the right, from top to bottom.
    pub(super) faces: Vec<[Vec<usize>; 2]>,
    pub(super) channels: Vec<Vec<Bus>>,
}

/// What takes up room in a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Item {
    Box(usize),
    Outer(usize),
    Lane(usize),
}

/// A net within a channel.
pub(super) struct Bus {
    pub(super) net: usize,
    /// What it joins on the left of the channel and on the right.
    pub(super) stops: [Vec<Stop>; 2],
}

/// Where a bus ends at an item.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stop {
    pub(super) item: usize,
    pub(super) port: usize,
    /// Which of the net's receivers it is.
    pub(super) receiver: Option<usize>,
}

/// The side of each port of each box: towards its peers.
pub(super) fn sides(graph: &Graph, columns: &[usize], outer: &[Side]) -> Vec<Vec<Side>> {
    let unconnected = |receives: bool| if receives { Side::Left } else { Side::Right };
    let mut sides: Vec<Vec<Side>> = graph
        .boxes
        .iter()
        .map(|part| {
            part.ports
                .iter()
                .map(|port| unconnected(port.operator.receives()))
                .collect()
        })
        .collect();
    let place = |pin: Pin| match pin {
        Pin::Box { part, .. } => columns[part] as isize,
        Pin::Outer(port) if outer[port] == Side::Left => -1,
        Pin::Outer(_) => isize::MAX,
    };
    for Net { from, to, .. } in &graph.nets {
        let own = place(*from);
        let count = |side: fn(&isize, &isize) -> bool| {
            to.iter().filter(|r| side(&place(r.pin), &own)).count()
        };
        let towards = match *from {
            Pin::Outer(port) => outer[port].across(),
            Pin::Box { .. } if count(isize::lt) > count(isize::gt) => Side::Left,
            Pin::Box { .. } => Side::Right,
        };
        if let Pin::Box { part, port } = *from {
            sides[part][port] = towards;
        }
        for receiver in to {
            let Pin::Box { part, port } = receiver.pin else {
                continue;
            };
            sides[part][port] = match place(receiver.pin).cmp(&own) {
                std::cmp::Ordering::Less => Side::Right,
                std::cmp::Ordering::Equal => towards,
                std::cmp::Ordering::Greater => Side::Left,
            };
        }
    }
    sides
}

/// Lays the nets out in channels. `columns` and `sides` are those of the boxes.
pub(super) fn sheet(
    graph: &Graph,
    columns: &[usize],
    sides: &[Vec<Side>],
    outer: &[Side],
) -> Sheet {
    let inner = columns.iter().map(|column| column + 1).max().unwrap_or(0);
    let mut sheet = Sheet {
        items: Vec::new(),
        columns: vec![Vec::new(); inner + 2],
        faces: Vec::new(),
        channels: (0..=inner).map(|_| Vec::new()).collect(),
    };
    for (part, column) in columns.iter().enumerate() {
        let face = |side| {
            (0..sides[part].len())
                .filter(|port| sides[part][*port] == side)
                .collect()
        };
        sheet.add(
            Item::Box(part),
            column + 1,
            [face(Side::Left), face(Side::Right)],
        );
    }
    for (port, side) in outer.iter().enumerate() {
        // A port on the frame's left faces right, into the model.
        match side {
            Side::Left => sheet.add(Item::Outer(port), 0, [Vec::new(), vec![0]]),
            Side::Right => sheet.add(Item::Outer(port), inner + 1, [vec![0], Vec::new()]),
        };
    }
    for (number, net) in graph.nets.iter().enumerate() {
        // Where a pin is: its item, the channel beside it, and the side of that channel.
        let at = |pin: Pin| match pin {
            Pin::Box { part, port } if sides[part][port] == Side::Left => {
                (part, port, columns[part], Side::Right)
            }
            Pin::Box { part, port } => (part, port, columns[part] + 1, Side::Left),
            Pin::Outer(port) if outer[port] == Side::Left => {
                (columns.len() + port, 0, 0, Side::Left)
            }
            Pin::Outer(port) => (columns.len() + port, 0, inner, Side::Right),
        };
        let receivers = net
            .to
            .iter()
            .enumerate()
            .map(|(i, receiver)| (receiver.pin, Some(i)));
        let stops: Vec<_> = std::iter::once((net.from, None))
            .chain(receivers)
            .map(|(pin, r)| (at(pin), r))
            .collect();
        let first = stops
            .iter()
            .map(|((_, _, channel, _), _)| *channel)
            .min()
            .unwrap_or(0);
        let last = stops
            .iter()
            .map(|((_, _, channel, _), _)| *channel)
            .max()
            .unwrap_or(0);
        let mut lane = None;
        for channel in first..=last {
            let mut bus = Bus {
                net: number,
                stops: [Vec::new(), Vec::new()],
            };
            let through = |item| Stop {
                item,
                port: 0,
                receiver: None,
            };
            bus.stops[0].extend(lane.take().map(through));
            for ((item, port, _, side), receiver) in
                stops.iter().filter(|((_, _, at, _), _)| *at == channel)
            {
                bus.stops[*side as usize].push(Stop {
                    item: *item,
                    port: *port,
                    receiver: *receiver,
                });
            }
            if channel < last {
                let item = sheet.add(Item::Lane(number), channel + 1, [Vec::new(), Vec::new()]);
                lane = Some(item);
                bus.stops[1].push(through(item));
            }
            sheet.channels[channel].push(bus);
        }
    }
    sheet
}

impl Sheet {
    fn add(&mut self, item: Item, column: usize, faces: [Vec<usize>; 2]) -> usize {
        self.columns[column].push(self.items.len());
        self.items.push(item);
        self.faces.push(faces);
        self.items.len() - 1
    }
}
