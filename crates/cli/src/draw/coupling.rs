//! The coupling graph as a picture, with the port symbols of the multiscale modelling language: diamonds for ports used once,
//! circles for those used in each step, filled where messages leave.

use std::fmt::Write;

use titin_model::{Description, Model, Operator};

use super::graph::{self, Graph, Part, Port};
use super::layout::{
    HEADER, INSET, Layout, NAME_TEXT, Placed, SMALL_TEXT, Side, TAG, Wire, lay_out, pin_name, stack,
};
use super::svg::{Anchor, BOLD, Ink, SMALL, Style, Svg, text_width};
use crate::terminal::count;

/// Free room around everything.
const BORDER: i32 = 20;
/// The radius of a port's symbol.
const SYMBOL: i32 = 5;
/// Of the corners of lines.
const BEND: i32 = 6;
const LEGEND_LINE: i32 = 24;

/// Draws a model with everything in it.
pub(crate) fn draw(description: &Description, model: &Model) -> String {
    let graph = graph::of(description, model);
    let layout = lay_out(&graph);
    let summary = [&model.description, &description.description]
        .into_iter()
        .find(|text| !text.is_empty());
    let summary = summary
        .and_then(|text| text.trim().lines().next())
        .unwrap_or_default();
    let heading = text_width(&model.name, 16, BOLD);
    let width = (layout.width + 2 * BORDER)
        .max(640)
        .max(heading + 2 * BORDER);
    let legend = Legend::of(&graph);
    let rows = legend.rows(width - 2 * BORDER);
    let top = if summary.is_empty() { 48 } else { 68 };
    let bottom = top + layout.height + 12;
    let height = bottom + rows.len() as i32 * LEGEND_LINE + BORDER;

    let title = format!("{}: {}", model.name, spoken(&graph));
    let mut svg = Svg::new(width, height, &title, &style());
    svg.text("title", (BORDER, 32), Anchor::Start, &model.name);
    if !summary.is_empty() {
        svg.text(
            "faint summary",
            (BORDER, 52),
            Anchor::Start,
            shorten(summary, width - 2 * BORDER, 12),
        );
    }
    let left = (width - layout.width) / 2;
    if !graph.outer.is_empty() {
        svg.rect("frame", (left, top), (layout.width, layout.height), 8);
    }
    draw_graph(&mut svg, &graph, &layout, (left, top), "");
    draw_legend(&mut svg, &rows, bottom);
    svg.finish()
}

/// The graph in a sentence, for those who cannot see it.
fn spoken(graph: &Graph) -> String {
    let names: Vec<&str> = graph.boxes.iter().map(|part| part.name.as_str()).collect();
    let conduits: usize = graph.nets.iter().map(|net| net.to.len()).sum();
    format!(
        "a coupling graph of {} and {}",
        listing(&names),
        count(conduits as u64, "conduit")
    )
}

fn listing(names: &[&str]) -> String {
    match names {
        [] => "no component".into(),
        [one] => format!("the component {one}"),
        many if many.len() > 12 => format!("{} components", many.len()),
        [first @ .., last] => format!("the components {} and {last}", first.join(", ")),
    }
}

fn draw_graph(svg: &mut Svg, graph: &Graph, layout: &Layout, at: (i32, i32), prefix: &str) {
    for (net, wire) in graph.nets.iter().zip(&layout.wires) {
        let from = pin_name(graph, prefix, net.from);
        let to: Vec<String> = net
            .to
            .iter()
            .map(|receiver| pin_name(graph, prefix, receiver.pin))
            .collect();
        let kind = if net.each_step {
            "conduit each-step"
        } else {
            "conduit once"
        };
        let mut title = String::new();
        for (receiver, to) in net.to.iter().zip(&to) {
            let line = if title.is_empty() { "" } else { "\n" };
            let filters: String = receiver
                .filters
                .iter()
                .map(|filter| format!("{filter} "))
                .collect();
            let _ = write!(title, "{line}{from}: {filters}{to}");
        }
        svg.group(kind, &[("from", &from), ("to", &to.join(" "))], &title);
        draw_wire(svg, wire, at);
        svg.end();
    }
    for (part, placed) in graph.boxes.iter().zip(&layout.boxes) {
        draw_part(svg, part, placed, (at.0 + placed.x, at.1 + placed.y));
    }
    for (port, (side, y)) in graph.outer.iter().zip(&layout.outer) {
        let x = if *side == Side::Left {
            at.0
        } else {
            at.0 + layout.width
        };
        draw_port(
            svg,
            port,
            "outer port",
            &full(prefix, &port.name),
            *side,
            (x, at.1 + y),
        );
    }
}

fn full(prefix: &str, name: &str) -> String {
    let dot = if prefix.is_empty() { "" } else { "." };
    format!("{prefix}{dot}{}", name.trim_end_matches("[]"))
}

fn draw_part(svg: &mut Svg, part: &Part, placed: &Placed, (x, y): (i32, i32)) {
    let size = (placed.width, placed.height);
    let class = if part.inner.is_some() {
        "component model"
    } else {
        "component"
    };
    let mut title = part.path.clone();
    for line in [&part.description, &part.implementation]
        .into_iter()
        .filter(|line| !line.is_empty())
    {
        let _ = write!(title, "\n{}", line.trim());
    }
    svg.group(class, &[("name", &part.path)], &title);
    for behind in (1..=stack(part)).rev() {
        svg.rect("box behind", (x + 3 * behind, y + 3 * behind), size, 6);
    }
    svg.rect(
        if part.inner.is_some() { "frame" } else { "box" },
        (x, y),
        size,
        6,
    );
    let name = match part.multiplicity.as_str() {
        "" => part.name.clone(),
        several => format!("{} {several}", part.name),
    };
    // The heading of a frame stands at its left, that of a box in the middle.
    let (middle, anchor) = if part.inner.is_some() {
        (x + INSET, Anchor::Start)
    } else {
        (x + placed.width / 2, Anchor::Middle)
    };
    svg.text("name", (middle, y + 18), anchor, name);
    svg.text("faint", (middle, y + 33), anchor, &part.implementation);
    if let (Some(graph), Some(layout)) = (&part.inner, &placed.inner) {
        draw_graph(svg, graph, layout, (x, y + HEADER), &part.path);
    }
    for (port, (side, below)) in part.ports.iter().zip(&placed.ports) {
        let x = if *side == Side::Left {
            x
        } else {
            x + placed.width
        };
        let inner = part.inner.as_ref().and_then(|graph| {
            graph
                .outer
                .iter()
                .find(|p| p.name.trim_end_matches("[]") == port.name.trim_end_matches("[]"))
        });
        // A frame's port was drawn with the model's own.
        if inner.is_none() {
            draw_port(
                svg,
                port,
                "port",
                &full(&part.path, &port.name),
                *side,
                (x, y + below),
            );
        }
    }
    svg.end();
}

fn draw_port(svg: &mut Svg, port: &Port, kind: &str, path: &str, side: Side, (x, y): (i32, i32)) {
    let absent = if port.connected { "" } else { " absent" };
    let class = format!("{kind} {}{absent}", port.operator.key());
    let state = if port.connected {
        ""
    } else {
        ", not connected"
    };
    svg.group(
        &class,
        &[("name", path)],
        &format!("{path} ({}{state})", port.operator),
    );
    symbol(svg, port.operator, (x, y));
    let (x, anchor) = if side == Side::Left {
        (x + INSET, Anchor::Start)
    } else {
        (x - INSET, Anchor::End)
    };
    svg.text("", (x, y + 4), anchor, &port.name);
    svg.end();
}

/// The symbol of the multiscale modelling language for a port of this operator.
fn symbol(svg: &mut Svg, operator: Operator, (x, y): (i32, i32)) {
    let class = if operator.sends() {
        "symbol filled"
    } else {
        "symbol open"
    };
    match operator {
        Operator::OI | Operator::S => svg.line(&format!(
            "<circle class=\"{class}\" cx=\"{x}\" cy=\"{y}\" r=\"{}\"/>",
            SYMBOL - 1
        )),
        Operator::FInit | Operator::OF => {
            let r = SYMBOL;
            svg.path(class, &format!("M{} {y}l{r} -{r}l{r} {r}l-{r} {r}z", x - r));
        }
    }
}

fn draw_wire(svg: &mut Svg, wire: &Wire, (dx, dy): (i32, i32)) {
    let shift = |(x, y): (i32, i32)| (x + dx, y + dy);
    let data: String = wire
        .lines
        .iter()
        .map(|line| rounded(&line.iter().copied().map(shift).collect::<Vec<_>>()))
        .collect();
    svg.path("line", &data);
    for fork in &wire.forks {
        let (x, y) = shift(*fork);
        svg.line(&format!(
            "<circle class=\"tip\" cx=\"{x}\" cy=\"{y}\" r=\"3\"/>"
        ));
    }
    for (x, y, from_left) in &wire.arrows {
        let (x, y) = shift((*x, *y));
        let (tip, back) = if *from_left {
            (x - SYMBOL, -7)
        } else {
            (x + SYMBOL, 7)
        };
        svg.path("tip", &format!("M{tip} {y}l{back} -3.5v7z"));
    }
    for (x, y, width, text) in &wire.tags {
        let (x, y) = shift((*x, *y));
        svg.rect("tag", (x, y - TAG / 2), (*width, TAG), TAG / 2);
        svg.text("filter", (x + width / 2, y + 4), Anchor::Middle, text);
    }
}

/// A line of horizontal and vertical pieces, its corners rounded.
fn rounded(points: &[(i32, i32)]) -> String {
    let mut data = String::new();
    let Some((first, rest)) = points.split_first() else {
        return data;
    };
    let _ = write!(data, "M{} {}", first.0, first.1);
    let mut before = *first;
    for (i, corner) in rest.iter().enumerate() {
        let Some(after) = rest.get(i + 1) else {
            let _ = write!(data, "L{} {}", corner.0, corner.1);
            break;
        };
        let length = |a: (i32, i32), b: (i32, i32)| (a.0 - b.0).abs() + (a.1 - b.1).abs();
        let bend = BEND
            .min(length(before, *corner) / 2)
            .min(length(*corner, *after) / 2);
        let towards = |to: (i32, i32)| {
            let step = |from: i32, to: i32| from + (to - from).signum() * bend;
            (step(corner.0, to.0), step(corner.1, to.1))
        };
        let (enter, leave) = (towards(before), towards(*after));
        let _ = write!(
            data,
            "L{} {}Q{} {} {} {}",
            enter.0, enter.1, corner.0, corner.1, leave.0, leave.1
        );
        before = *corner;
    }
    data
}

/// Text cut to a width.
pub(super) fn shorten(text: &str, width: i32, size: i32) -> String {
    if text_width(text, size, SMALL) <= width {
        return text.to_owned();
    }
    let mut short = text.to_owned();
    while !short.is_empty() && text_width(&short, size, SMALL) > width - size {
        short.pop();
    }
    short + "…"
}

/// What a picture explains: only what is in it.
struct Legend {
    entries: Vec<(Sign, &'static str)>,
}

#[derive(Clone, Copy)]
enum Sign {
    Port(Operator, bool),
    EachStep,
    Once,
    Filter,
    Several,
    Frame,
}

impl Legend {
    fn of(graph: &Graph) -> Legend {
        let mut seen = Seen::default();
        seen.look(graph);
        let mut entries = vec![
            (
                Sign::Port(Operator::FInit, true),
                "F_INIT: receives at the start",
            ),
            (Sign::Port(Operator::OI, true), "O_I: sends in each step"),
            (Sign::Port(Operator::S, true), "S: receives in each step"),
            (Sign::Port(Operator::OF, true), "O_F: sends at the end"),
        ];
        if seen.absent {
            entries.push((Sign::Port(Operator::FInit, false), "not connected"));
        }
        let lines = [
            (seen.each_step, Sign::EachStep, "in each step"),
            (seen.once, Sign::Once, "once per use"),
        ];
        let shapes = [
            (seen.filter, Sign::Filter, "filter"),
            (seen.several, Sign::Several, "several instances"),
            (seen.frame, Sign::Frame, "a model as a component"),
        ];
        entries.extend(
            lines
                .into_iter()
                .chain(shapes)
                .filter(|(seen, ..)| *seen)
                .map(|(_, sign, text)| (sign, text)),
        );
        Legend { entries }
    }

    /// The entries in rows of at most this width, each with its distance from the left.
    fn rows(&self, width: i32) -> Vec<Vec<(i32, Sign, &'static str)>> {
        let mut rows = Vec::new();
        let mut row = Vec::new();
        let mut x = 0;
        for (sign, text) in &self.entries {
            let needed = 30 + text_width(text, SMALL_TEXT, SMALL);
            if x + needed > width && !row.is_empty() {
                rows.push(std::mem::take(&mut row));
                x = 0;
            }
            row.push((x, *sign, *text));
            x += needed + 18;
        }
        rows.push(row);
        rows
    }
}

#[derive(Default)]
struct Seen {
    absent: bool,
    each_step: bool,
    once: bool,
    filter: bool,
    several: bool,
    frame: bool,
}

impl Seen {
    fn look(&mut self, graph: &Graph) {
        for net in &graph.nets {
            self.each_step |= net.each_step;
            self.once |= !net.each_step;
            self.filter |= net.to.iter().any(|receiver| !receiver.filters.is_empty());
        }
        for part in &graph.boxes {
            self.absent |= part.ports.iter().any(|port| !port.connected);
            self.several |= !part.multiplicity.is_empty();
            self.frame |= part.inner.is_some();
            part.inner.iter().for_each(|inner| self.look(inner));
        }
    }
}

fn draw_legend(svg: &mut Svg, rows: &[Vec<(i32, Sign, &'static str)>], top: i32) {
    svg.group("legend", &[], "");
    for (number, row) in rows.iter().enumerate() {
        let y = top + number as i32 * LEGEND_LINE + LEGEND_LINE / 2;
        for (x, sign, text) in row {
            let x = BORDER + x;
            match sign {
                Sign::Port(operator, connected) => {
                    svg.group(if *connected { "port" } else { "port absent" }, &[], "");
                    symbol(svg, *operator, (x + 12, y));
                    svg.end();
                }
                Sign::EachStep | Sign::Once => {
                    let class = if matches!(sign, Sign::EachStep) {
                        "each-step"
                    } else {
                        "once"
                    };
                    svg.group(class, &[], "");
                    svg.path("line", &format!("M{x} {y}H{}", x + 22));
                    svg.path("tip", &format!("M{} {y}l-7 -3.5v7z", x + 24));
                    svg.end();
                }
                Sign::Filter => svg.rect("tag", (x, y - 6), (24, 12), 6),
                Sign::Several => {
                    svg.rect("box", (x + 7, y - 2), (17, 9), 2);
                    svg.rect("box", (x + 4, y - 5), (17, 9), 2);
                }
                Sign::Frame => svg.rect("frame", (x + 2, y - 7), (22, 14), 3),
            }
            svg.text("faint", (x + 30, y + 4), Anchor::Start, text);
        }
    }
    svg.end();
}

fn style() -> Style {
    let mut style = Style::new();
    style.add(".summary", "font-size:12px", &[]);
    style.add(
        ".name",
        &format!("font-size:{NAME_TEXT}px;font-weight:600"),
        &[],
    );
    style.add(".box", "", &[("fill", Ink::Paper), ("stroke", Ink::Edge)]);
    style.add(
        ".frame",
        "stroke-dasharray:5 3",
        &[("fill", Ink::Ground), ("stroke", Ink::Edge)],
    );
    style.add(".symbol", "stroke-width:1.5", &[("stroke", Ink::Text)]);
    style.add(".filled", "", &[("fill", Ink::Text)]);
    style.add(".open", "", &[("fill", Ink::Ground)]);
    style.add(".absent .symbol", "", &[("stroke", Ink::Absent)]);
    style.add(".absent .filled", "", &[("fill", Ink::Absent)]);
    style.add(".absent text", "", &[("fill", Ink::Absent)]);
    style.add(".line", "fill:none;stroke-width:1.5", &[]);
    for (class, ink) in [("each-step", Ink::Blue), ("once", Ink::Orange)] {
        style.add(&format!(".{class} .line"), "", &[("stroke", ink)]);
        style.add(&format!(".{class} .tip"), "", &[("fill", ink)]);
        style.add(&format!(".{class} .tag"), "", &[("stroke", ink)]);
    }
    style.add(".tag", "", &[("fill", Ink::Ground)]);
    style.add(".legend .tag", "", &[("stroke", Ink::Edge)]);
    style.add(".filter", "font-size:10px", &[]);
    style
}
