//! In every layout nothing lies on anything else, and every line reaches its receiver.

use titin_model::Operator;

use super::*;
use crate::coupling_graph::graph::{Net, NetReceiver};

/// A generator of pseudo-random numbers, the same in every run of the tests.
struct PseudoRandom(u64);

impl PseudoRandom {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        ((self.0 >> 33) % limit as u64) as usize
    }
}

fn port(name: String, operator: Operator) -> BoxPort {
    BoxPort {
        name,
        operator,
        connected: true,
    }
}

fn component(name: &str, inner: Option<Graph>) -> ComponentBox {
    let [implementation, multiplicity, description] = ["program", "", ""].map(str::to_owned);
    let (name, path) = (name.to_owned(), name.to_owned());
    ComponentBox {
        name,
        path,
        implementation,
        multiplicity,
        description,
        ports: Vec::new(),
        inner,
    }
}

/// A random graph. Some boxes are models, some ports are the own ports of the model.
fn random_graph(random: &mut PseudoRandom, boxes: usize, nets: usize, depth: usize) -> Graph {
    let mut graph = Graph::default();
    for number in 0..boxes {
        let inner =
            (depth > 0 && random.below(5) == 0).then(|| random_graph(random, 3, 4, depth - 1));
        let mut made = component(&format!("box{number}"), inner);
        if let Some(inner) = &made.inner {
            made.ports = inner
                .outer
                .iter()
                .map(|p| port(p.name.clone(), p.operator))
                .collect();
        }
        if random.below(4) == 0 {
            made.multiplicity = "[10]".into();
        }
        graph.boxes.push(made);
    }
    for net in 0..nets {
        let (sends, each_step) = [(Operator::OI, true), (Operator::OF, false)][random.below(2)];
        let pin = |graph: &mut Graph,
                   random: &mut PseudoRandom,
                   operator: Operator,
                   name: String,
                   outer: Operator| {
            let number = random.below(boxes + boxes / 4);
            match graph.boxes.get_mut(number) {
                Some(made) if made.inner.is_none() => {
                    made.ports.push(port(name, operator));
                    Pin::Box {
                        number,
                        port: made.ports.len() - 1,
                    }
                }
                _ => {
                    graph.outer.push(port(name, outer));
                    Pin::Outer(graph.outer.len() - 1)
                }
            }
        };
        let from = pin(
            &mut graph,
            random,
            sends,
            format!("out{net}"),
            Operator::FInit,
        );
        let to = (0..1 + random.below(3) / 2 * 2)
            .map(|i| {
                let receives = [Operator::S, Operator::FInit][random.below(2)];
                let pin = pin(
                    &mut graph,
                    random,
                    receives,
                    format!("in{net}_{i}"),
                    Operator::OF,
                );
                let filters = (0..random.below(3))
                    .map(|f| ["last", "scale(2.0, 0.5)"][f].to_owned())
                    .collect();
                NetReceiver { pin, filters }
            })
            .collect();
        graph.nets.push(Net {
            from,
            to,
            each_step,
        });
    }
    graph
}

#[derive(Clone, Copy, Debug)]
struct LineSegment {
    net: usize,
    from: (i32, i32),
    to: (i32, i32),
}

impl LineSegment {
    fn is_horizontal(&self) -> bool {
        self.from.1 == self.to.1
    }

    fn holds(&self, (x, y): (i32, i32)) -> bool {
        let between = |a: i32, b: i32, v: i32| a.min(b) <= v && v <= a.max(b);
        between(self.from.0, self.to.0, x) && between(self.from.1, self.to.1, y)
    }
}

fn segments(layout: &GraphLayout) -> Vec<LineSegment> {
    let of_net = |(net, net_lines): (usize, &NetLines)| {
        let pairs = net_lines.lines.iter().flat_map(|line| line.windows(2));
        pairs
            .map(move |pair| LineSegment {
                net,
                from: pair[0],
                to: pair[1],
            })
            .collect::<Vec<_>>()
    };
    layout
        .nets
        .iter()
        .enumerate()
        .flat_map(of_net)
        .filter(|s| s.from != s.to)
        .collect()
}

fn position(layout: &GraphLayout, pin: Pin) -> (i32, i32) {
    match pin {
        Pin::Box { number, port } => {
            let placed = &layout.boxes[number];
            let (side, below) = placed.ports[port];
            (
                if side == BoxSide::Left {
                    placed.x
                } else {
                    placed.x + placed.width
                },
                placed.y + below,
            )
        }
        Pin::Outer(port) => {
            let (side, y) = layout.outer[port];
            (
                if side == BoxSide::Left {
                    0
                } else {
                    layout.width
                },
                y,
            )
        }
    }
}

/// Where the line of a pin ends: for the model's own ports, after their name.
fn arrives(
    segments: &[LineSegment],
    net: usize,
    pin: Pin,
    (x, y): (i32, i32),
) -> Option<(i32, i32)> {
    let ends = segments
        .iter()
        .filter(|s| s.net == net)
        .flat_map(|s| [s.from, s.to]);
    match pin {
        Pin::Box { .. } => ends.into_iter().find(|end| *end == (x, y)),
        Pin::Outer(_) => ends
            .into_iter()
            .filter(|end| end.1 == y)
            .min_by_key(|end| (end.0 - x).abs()),
    }
}

fn overlap(a: (i32, i32, i32, i32), b: (i32, i32, i32, i32)) -> bool {
    a.0 < b.0 + b.2 && b.0 < a.0 + a.2 && a.1 < b.1 + b.3 && b.1 < a.1 + a.3
}

fn check(graph: &Graph, layout: &GraphLayout) {
    let boxes: Vec<_> = layout
        .boxes
        .iter()
        .map(|b| (b.x, b.y, b.width, b.height))
        .collect();
    for (i, a) in boxes.iter().enumerate() {
        assert!(
            a.0 >= 0 && a.1 >= 0 && a.0 + a.2 <= layout.width && a.1 + a.3 <= layout.height,
            "{a:?} sticks out"
        );
        for b in &boxes[..i] {
            assert!(!overlap(*a, *b), "boxes {a:?} and {b:?}");
        }
    }
    let segments = segments(layout);
    for (i, a) in segments.iter().enumerate() {
        assert!(
            a.is_horizontal() || a.from.0 == a.to.0,
            "a slanted line: {a:?}"
        );
        let area = |s: &LineSegment| {
            let (x, y) = (s.from.0.min(s.to.0), s.from.1.min(s.to.1));
            (x, y, (s.from.0 - s.to.0).abs(), (s.from.1 - s.to.1).abs())
        };
        let line = area(a);
        for b in &boxes {
            let inside = (b.0 + 1, b.1 + 1, b.2 - 2, b.3 - 2);
            let thick = (line.0, line.1, line.2.max(1), line.3.max(1));
            assert!(
                !overlap(thick, inside),
                "a line {a:?} runs through a box {b:?}"
            );
        }
        for b in segments[..i]
            .iter()
            .filter(|b| b.net != a.net && b.is_horizontal() == a.is_horizontal())
        {
            let other = area(b);
            let on_each_other = match a.is_horizontal() {
                true => {
                    line.1 == other.1 && line.0 < other.0 + other.2 && other.0 < line.0 + line.2
                }
                false => {
                    line.0 == other.0 && line.1 <= other.1 + other.3 && other.1 <= line.1 + line.3
                }
            };
            assert!(
                !on_each_other,
                "lines of two nets on each other: {a:?} and {b:?}"
            );
        }
    }
    let tags: Vec<_> = layout
        .nets
        .iter()
        .flat_map(|w| &w.tags)
        .map(|(x, y, width, _)| (*x, y - TAG / 2, *width, TAG))
        .collect();
    for (i, tag) in tags.iter().enumerate() {
        assert!(
            tags[..i].iter().all(|other| !overlap(*tag, *other)),
            "two tags on each other"
        );
        assert!(
            boxes.iter().all(|b| !overlap(*tag, *b)),
            "a tag on a box: {tag:?}"
        );
        let crossed = segments.iter().find(|s| {
            !s.is_horizontal()
                && overlap(
                    *tag,
                    (s.from.0, s.from.1.min(s.to.1), 1, (s.from.1 - s.to.1).abs()),
                )
        });
        assert!(
            crossed.is_none(),
            "a line through a tag: {tag:?} and {crossed:?}"
        );
    }
    for (number, net) in graph.nets.iter().enumerate() {
        check_reached(&segments, number, net, layout);
    }
    for (part, placed) in graph.boxes.iter().zip(&layout.boxes) {
        if let (Some(graph), Some(layout)) = (&part.inner, &placed.inner) {
            assert_eq!(
                (placed.width, placed.height),
                (layout.width, layout.height + HEADER)
            );
            check(graph, layout);
        }
    }
}

/// From the sender, along touching lines, every receiver is reached.
fn check_reached(segments: &[LineSegment], number: usize, net: &Net, layout: &GraphLayout) {
    let own: Vec<&LineSegment> = segments.iter().filter(|s| s.net == number).collect();
    let start = arrives(segments, number, net.from, position(layout, net.from))
        .expect("a line begins at the sender");
    let mut reached = vec![false; own.len()];
    let mut todo: Vec<usize> = (0..own.len()).filter(|i| own[*i].holds(start)).collect();
    while let Some(i) = todo.pop() {
        if std::mem::replace(&mut reached[i], true) {
            continue;
        }
        let touch = |j: &usize| {
            [own[i].from, own[i].to].iter().any(|p| own[*j].holds(*p))
                || [own[*j].from, own[*j].to].iter().any(|p| own[i].holds(*p))
        };
        todo.extend((0..own.len()).filter(|j| !reached[*j]).filter(touch));
    }
    for receiver in &net.to {
        let end = arrives(
            segments,
            number,
            receiver.pin,
            position(layout, receiver.pin),
        )
        .expect("a line ends at the receiver");
        assert!(
            (0..own.len()).any(|i| reached[i] && own[i].holds(end)),
            "net {number} does not reach {:?}",
            receiver.pin
        );
    }
}

#[test]
fn nothing_lies_on_anything_else_and_every_line_arrives() {
    let mut random = PseudoRandom(7);
    for round in 0..150 {
        let (boxes, nets) = (2 + random.below(14), 1 + random.below(24));
        let graph = random_graph(&mut random, boxes, nets, 2);
        let layout = lay_out(&graph);
        check(&graph, &layout);
        assert!(layout.width > 0 && layout.height > 0, "round {round}");
    }
}

#[test]
fn forty_boxes_with_many_lines_stay_apart() {
    let mut random = PseudoRandom(40);
    for _ in 0..6 {
        let graph = random_graph(&mut random, 40, 70, 0);
        check(&graph, &lay_out(&graph));
    }
}

#[test]
fn the_same_graph_gives_the_same_picture() {
    let graph = random_graph(&mut PseudoRandom(3), 12, 20, 1);
    assert_eq!(
        format!("{:?}", lay_out(&graph)),
        format!("{:?}", lay_out(&graph))
    );
}

/// A ring of `n` components. Each component sends to the next component in each step.
fn ring(n: usize) -> Graph {
    let mut graph = Graph::default();
    for number in 0..n {
        let mut made = component(&format!("box{number}"), None);
        made.ports = vec![
            port("out".into(), Operator::OI),
            port("in".into(), Operator::S),
        ];
        graph.boxes.push(made);
    }
    for number in 0..n {
        let to = Pin::Box {
            number: (number + 1) % n,
            port: 1,
        };
        let to = vec![NetReceiver {
            pin: to,
            filters: Vec::new(),
        }];
        graph.nets.push(Net {
            from: Pin::Box { number, port: 0 },
            to,
            each_step: true,
        });
    }
    graph
}

#[test]
fn a_ring_is_folded_into_two_rows() {
    let graph = ring(12);
    let columns = columns::columns(&graph);
    assert_eq!(columns.iter().max(), Some(&6));
    for column in 1..6 {
        assert_eq!(columns.iter().filter(|c| **c == column).count(), 2);
    }
    check(&graph, &lay_out(&graph));
}

#[test]
fn the_caller_stands_left_of_the_called_and_lines_are_level() {
    let mut graph = Graph {
        boxes: vec![component("macro", None), component("micro", None)],
        ..Graph::default()
    };
    graph.boxes[0].ports = vec![
        port("out".into(), Operator::OI),
        port("in".into(), Operator::S),
    ];
    graph.boxes[1].ports = vec![
        port("final".into(), Operator::OF),
        port("initial".into(), Operator::FInit),
    ];
    let pin = |number, port| Pin::Box { number, port };
    let net = |from, to, each_step| Net {
        from,
        to: vec![NetReceiver {
            pin: to,
            filters: Vec::new(),
        }],
        each_step,
    };
    graph.nets = vec![
        net(pin(1, 0), pin(0, 1), false),
        net(pin(0, 0), pin(1, 1), true),
    ];
    let layout = lay_out(&graph);
    assert!(layout.boxes[0].x + layout.boxes[0].width < layout.boxes[1].x);
    assert!(
        layout.boxes[0]
            .ports
            .iter()
            .all(|(side, _)| *side == BoxSide::Right)
    );
    assert!(
        layout.boxes[1]
            .ports
            .iter()
            .all(|(side, _)| *side == BoxSide::Left)
    );
    assert!(segments(&layout).iter().all(LineSegment::is_horizontal));
    check(&graph, &layout);
}
