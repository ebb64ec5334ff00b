//! The coupling graph of a model, with the port symbols of the multiscale modelling language:
//! diamonds for ports used once, circles for ports used in each step. Symbols of ports that send
//! are filled.

mod graph;
mod layout;
mod legend;

use std::fmt::Write;

use titin_model::{Description, Model, Operator};

use self::graph::{BoxPort, ComponentBox, Graph, Net, NetReceiver};
use self::layout::{
    BoxLayout, BoxSide, GraphLayout, HEADER, INSET, NAME_TEXT, NetLines, TAG, boxes_behind,
    lay_out, pin_path, port_path,
};
use self::legend::Legend;
use crate::svg::{BOLD, Ink, Style, Svg, TextAnchor, shorten, text_width};
use crate::units::count;

/// The margin around the picture.
const BORDER: i32 = 20;
/// The radius of a port's symbol.
const SYMBOL: i32 = 5;
/// The radius of the corners of lines.
const BEND: i32 = 6;

/// Draws a model and all models inside.
pub fn draw_coupling_graph(description: &Description, model: &Model) -> String {
    let graph = Graph::of(description, model);
    let layout = lay_out(&graph);
    let summary = summary(description, model);
    let heading = text_width(&model.name, 16, BOLD);
    let width = (layout.width + 2 * BORDER)
        .max(640)
        .max(heading + 2 * BORDER);
    let legend = Legend::of(&graph, width - 2 * BORDER);
    let top = if summary.is_empty() { 48 } else { 68 };
    let bottom = top + layout.height + 12;
    let height = bottom + legend.height() + BORDER;

    let title = format!("{}: {}", model.name, spoken(&graph));
    let mut svg = Svg::new(width, height, &title, &style());
    svg.text("title", (BORDER, 32), TextAnchor::Start, &model.name);
    if !summary.is_empty() {
        let text = shorten(summary, width - 2 * BORDER, 12);
        svg.text("faint summary", (BORDER, 52), TextAnchor::Start, text);
    }
    let left = (width - layout.width) / 2;
    if !graph.outer.is_empty() {
        svg.rect("frame", (left, top), (layout.width, layout.height), 8);
    }
    draw_graph(&mut svg, &graph, &layout, (left, top), "");
    legend.draw(&mut svg, (BORDER, bottom));
    svg.finish()
}

/// The first line of the description of the model, or else of the whole description.
fn summary<'d>(description: &'d Description, model: &'d Model) -> &'d str {
    [&model.description, &description.description]
        .into_iter()
        .find(|text| !text.is_empty())
        .and_then(|text| text.trim().lines().next())
        .unwrap_or_default()
}

/// The graph in a sentence, for screen readers.
fn spoken(graph: &Graph) -> String {
    let names: Vec<&str> = graph.boxes.iter().map(|b| b.name.as_str()).collect();
    let conduits: usize = graph.nets.iter().map(|net| net.to.len()).sum();
    format!(
        "a coupling graph of {} and {}",
        components_text(&names),
        count(conduits as u64, "conduit")
    )
}

fn components_text(names: &[&str]) -> String {
    match names {
        [] => "no component".into(),
        [one] => format!("the component {one}"),
        many if many.len() > 12 => format!("{} components", many.len()),
        [first @ .., last] => format!("the components {} and {last}", first.join(", ")),
    }
}

/// Draws a graph. `corner` is the graph's upper left corner, `prefix` the path of the model.
fn draw_graph(
    svg: &mut Svg,
    graph: &Graph,
    layout: &GraphLayout,
    corner: (i32, i32),
    prefix: &str,
) {
    for (net, lines) in graph.nets.iter().zip(&layout.nets) {
        open_net(svg, graph, net, prefix);
        draw_lines(svg, lines, corner);
        svg.end();
    }
    for (component, place) in graph.boxes.iter().zip(&layout.boxes) {
        let corner = (corner.0 + place.x, corner.1 + place.y);
        draw_component(svg, component, place, corner);
    }
    for (port, (side, y)) in graph.outer.iter().zip(&layout.outer) {
        let x = side.edge(corner.0, layout.width);
        let path = port_path(prefix, port);
        draw_port(svg, port, "outer port", &path, *side, (x, corner.1 + y));
    }
}

/// Opens the group of a net. The group's title names the conduits.
fn open_net(svg: &mut Svg, graph: &Graph, net: &Net, prefix: &str) {
    let from = pin_path(graph, prefix, net.from);
    let path = |receiver: &NetReceiver| pin_path(graph, prefix, receiver.pin);
    let to: Vec<String> = net.to.iter().map(path).collect();
    let class = match net.each_step {
        true => "conduit each-step",
        false => "conduit once",
    };
    let line = |(receiver, to): (&NetReceiver, &String)| {
        let filters = receiver.filters.iter();
        let filters: String = filters.map(|filter| format!("{filter} ")).collect();
        format!("{from}: {filters}{to}")
    };
    let title: Vec<String> = net.to.iter().zip(&to).map(line).collect();
    let ends = [("from", from.as_str()), ("to", &to.join(" "))];
    svg.group(class, &ends, &title.join("\n"));
}

fn draw_component(svg: &mut Svg, component: &ComponentBox, place: &BoxLayout, (x, y): (i32, i32)) {
    let class = match component.inner {
        Some(_) => "component model",
        None => "component",
    };
    svg.group(class, &[("name", &component.path)], &box_title(component));
    draw_box(svg, component, place, (x, y));
    if let (Some(graph), Some(layout)) = (&component.inner, &place.inner) {
        draw_graph(svg, graph, layout, (x, y + HEADER), &component.path);
    }
    for (port, (side, below)) in component.ports.iter().zip(&place.ports) {
        if !is_drawn_inside(component, port) {
            let path = port_path(&component.path, port);
            let x = side.edge(x, place.width);
            draw_port(svg, port, "port", &path, *side, (x, y + below));
        }
    }
    svg.end();
}

/// The path of a component, and what the description says of the component.
fn box_title(component: &ComponentBox) -> String {
    let mut title = component.path.clone();
    for line in [&component.description, &component.implementation] {
        if !line.is_empty() {
            let _ = write!(title, "\n{}", line.trim());
        }
    }
    title
}

/// Whether a port of a frame was drawn before, as a port of the inner model.
fn is_drawn_inside(component: &ComponentBox, port: &BoxPort) -> bool {
    let inner = component.inner.as_ref();
    let mut outer = inner.iter().flat_map(|graph| &graph.outer);
    outer.any(|other| other.bare_name() == port.bare_name())
}

/// Draws the rectangle of a component, with the component's name and implementation.
fn draw_box(svg: &mut Svg, component: &ComponentBox, place: &BoxLayout, (x, y): (i32, i32)) {
    let size = (place.width, place.height);
    for behind in (1..=boxes_behind(component)).rev() {
        svg.rect("box behind", (x + 3 * behind, y + 3 * behind), size, 6);
    }
    // The heading of a frame is at the left, the heading of a box in the middle.
    let (class, text_x, anchor) = if component.inner.is_some() {
        ("frame", x + INSET, TextAnchor::Start)
    } else {
        ("box", x + place.width / 2, TextAnchor::Middle)
    };
    svg.rect(class, (x, y), size, 6);
    let name = match component.multiplicity.as_str() {
        "" => component.name.clone(),
        several => format!("{} {several}", component.name),
    };
    svg.text("name", (text_x, y + 18), anchor, name);
    svg.text("faint", (text_x, y + 33), anchor, &component.implementation);
}

fn draw_port(
    svg: &mut Svg,
    port: &BoxPort,
    kind: &str,
    path: &str,
    side: BoxSide,
    (x, y): (i32, i32),
) {
    let (absent, note) = if port.connected {
        ("", "")
    } else {
        (" absent", ", not connected")
    };
    let class = format!("{kind} {}{absent}", port.operator.key());
    let title = format!("{path} ({}{note})", port.operator);
    svg.group(&class, &[("name", path)], &title);
    draw_symbol(svg, port.operator, (x, y));
    let (x, anchor) = match side {
        BoxSide::Left => (x + INSET, TextAnchor::Start),
        BoxSide::Right => (x - INSET, TextAnchor::End),
    };
    svg.text("", (x, y + 4), anchor, &port.name);
    svg.end();
}

/// Draws the symbol of the multiscale modelling language for a port of `operator`.
fn draw_symbol(svg: &mut Svg, operator: Operator, (x, y): (i32, i32)) {
    let class = if operator.sends() {
        "symbol filled"
    } else {
        "symbol open"
    };
    match operator {
        Operator::OI | Operator::S => svg.markup(&format!(
            "<circle class=\"{class}\" cx=\"{x}\" cy=\"{y}\" r=\"{}\"/>",
            SYMBOL - 1
        )),
        Operator::FInit | Operator::OF => {
            let r = SYMBOL;
            svg.path(class, &format!("M{} {y}l{r} -{r}l{r} {r}l-{r} {r}z", x - r));
        }
    }
}

fn draw_lines(svg: &mut Svg, lines: &NetLines, (dx, dy): (i32, i32)) {
    let shift = |(x, y): (i32, i32)| (x + dx, y + dy);
    let shifted = |line: &Vec<(i32, i32)>| line.iter().copied().map(shift).collect::<Vec<_>>();
    let data: String = lines
        .lines
        .iter()
        .map(|line| rounded(&shifted(line)))
        .collect();
    svg.path("line", &data);
    for fork in &lines.forks {
        let (x, y) = shift(*fork);
        svg.markup(&format!(
            "<circle class=\"tip\" cx=\"{x}\" cy=\"{y}\" r=\"3\"/>"
        ));
    }
    for (x, y, from_left) in &lines.arrows {
        draw_arrow(svg, shift((*x, *y)), *from_left);
    }
    for (x, y, width, text) in &lines.tags {
        let (x, y) = shift((*x, *y));
        svg.rect("tag", (x, y - TAG / 2), (*width, TAG), TAG / 2);
        svg.text("filter", (x + width / 2, y + 4), TextAnchor::Middle, text);
    }
}

fn draw_arrow(svg: &mut Svg, (x, y): (i32, i32), from_left: bool) {
    let (tip, back) = match from_left {
        true => (x - SYMBOL, -7),
        false => (x + SYMBOL, 7),
    };
    svg.path("tip", &format!("M{tip} {y}l{back} -3.5v7z"));
}

/// The path of a line of horizontal and vertical segments with rounded corners.
fn rounded(points: &[(i32, i32)]) -> String {
    let mut data = String::new();
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        return data;
    };
    let _ = write!(data, "M{} {}", first.0, first.1);
    for corner in points.windows(3) {
        let [before, (x, y), after] = *corner else {
            continue;
        };
        let bend = BEND
            .min(distance(before, (x, y)) / 2)
            .min(distance((x, y), after) / 2);
        let enter = moved((x, y), before, bend);
        let leave = moved((x, y), after, bend);
        let _ = write!(
            data,
            "L{} {}Q{x} {y} {} {}",
            enter.0, enter.1, leave.0, leave.1
        );
    }
    if points.len() > 1 {
        let _ = write!(data, "L{} {}", last.0, last.1);
    }
    data
}

/// The distance between two points with the same `x` or the same `y`.
fn distance(a: (i32, i32), b: (i32, i32)) -> i32 {
    (a.0 - b.0).abs() + (a.1 - b.1).abs()
}

/// The point `by` pixels from the first point in the direction of the point `towards`.
fn moved((x, y): (i32, i32), towards: (i32, i32), by: i32) -> (i32, i32) {
    let step = |from: i32, to: i32| from + (to - from).signum() * by;
    (step(x, towards.0), step(y, towards.1))
}

fn style() -> Style {
    let mut style = Style::new();
    style.fixed(".summary", "font-size:12px");
    style.fixed(".name", &format!("font-size:{NAME_TEXT}px;font-weight:600"));
    style.add(".box", "", &[("fill", Ink::Paper), ("stroke", Ink::Edge)]);
    style.add(
        ".frame",
        "stroke-dasharray:5 3",
        &[("fill", Ink::Ground), ("stroke", Ink::Edge)],
    );
    style.add(".symbol", "stroke-width:1.5", &[("stroke", Ink::Text)]);
    style.fill(".filled", Ink::Text);
    style.fill(".open", Ink::Ground);
    style.stroke(".absent .symbol", Ink::Absent);
    style.fill(".absent .filled", Ink::Absent);
    style.fill(".absent text", Ink::Absent);
    style.fixed(".line", "fill:none;stroke-width:1.5");
    for (class, ink) in [("each-step", Ink::Blue), ("once", Ink::Orange)] {
        style.stroke(&format!(".{class} .line"), ink);
        style.fill(&format!(".{class} .tip"), ink);
        style.stroke(&format!(".{class} .tag"), ink);
    }
    style.fill(".tag", Ink::Ground);
    style.stroke(".legend .tag", Ink::Edge);
    style.fixed(".filter", "font-size:10px");
    style
}
