//! The legend of a coupling graph: the symbols and lines in the picture, and the four kinds of
//! ports.

use titin_model::Operator;

use super::draw_symbol;
use super::graph::Graph;
use super::layout::SMALL_TEXT;
use crate::svg::{REGULAR, Svg, TextAnchor, text_width};

/// The height of a row.
const ROW: i32 = 24;

#[derive(Clone, Copy)]
enum Sign {
    Port(Operator, bool),
    EachStep,
    Once,
    Filter,
    Several,
    Frame,
}

/// The entries in rows. Each entry has a distance from the left edge.
pub(super) struct Legend {
    rows: Vec<Vec<(i32, Sign, &'static str)>>,
}

impl Legend {
    /// The legend of a graph, in rows of at most `width`.
    pub(super) fn of(graph: &Graph, width: i32) -> Legend {
        let mut rows = Vec::new();
        let mut row = Vec::new();
        let mut x = 0;
        for (sign, text) in entries(graph) {
            let needed = 30 + text_width(text, SMALL_TEXT, REGULAR);
            if x + needed > width && !row.is_empty() {
                rows.push(std::mem::take(&mut row));
                x = 0;
            }
            row.push((x, sign, text));
            x += needed + 18;
        }
        rows.push(row);
        Legend { rows }
    }

    pub(super) fn height(&self) -> i32 {
        self.rows.len() as i32 * ROW
    }

    pub(super) fn draw(&self, svg: &mut Svg, (left, top): (i32, i32)) {
        svg.group("legend", &[], "");
        for (number, row) in self.rows.iter().enumerate() {
            let y = top + number as i32 * ROW + ROW / 2;
            for (x, sign, text) in row {
                let x = left + x;
                sign.draw(svg, (x, y));
                svg.text("faint", (x + 30, y + 4), TextAnchor::Start, text);
            }
        }
        svg.end();
    }
}

/// The entries, in order. The four kinds of ports are always explained.
fn entries(graph: &Graph) -> Vec<(Sign, &'static str)> {
    let mut features = Features::default();
    features.add(graph);
    let f_init = "F_INIT: receives at the start";
    let mut entries = vec![
        (Sign::Port(Operator::FInit, true), f_init),
        (Sign::Port(Operator::OI, true), "O_I: sends in each step"),
        (Sign::Port(Operator::S, true), "S: receives in each step"),
        (Sign::Port(Operator::OF, true), "O_F: sends at the end"),
    ];
    let absent = Sign::Port(Operator::FInit, false);
    let optional = [
        (features.absent, absent, "not connected"),
        (features.each_step, Sign::EachStep, "in each step"),
        (features.once, Sign::Once, "once per use"),
        (features.filter, Sign::Filter, "filter"),
        (features.several, Sign::Several, "several instances"),
        (features.frame, Sign::Frame, "a model as a component"),
    ];
    let present = optional.into_iter().filter(|(present, ..)| *present);
    entries.extend(present.map(|(_, sign, text)| (sign, text)));
    entries
}

/// The optional features of a graph.
#[derive(Default)]
struct Features {
    absent: bool,
    each_step: bool,
    once: bool,
    filter: bool,
    several: bool,
    frame: bool,
}

impl Features {
    /// Adds the features of a graph and of the graphs in the graph's boxes.
    fn add(&mut self, graph: &Graph) {
        for net in &graph.nets {
            self.each_step |= net.each_step;
            self.once |= !net.each_step;
            self.filter |= net.to.iter().any(|receiver| !receiver.filters.is_empty());
        }
        for component in &graph.boxes {
            self.absent |= component.ports.iter().any(|port| !port.connected);
            self.several |= !component.multiplicity.is_empty();
            self.frame |= component.inner.is_some();
            component.inner.iter().for_each(|inner| self.add(inner));
        }
    }
}

impl Sign {
    fn draw(self, svg: &mut Svg, (x, y): (i32, i32)) {
        match self {
            Sign::Port(operator, connected) => {
                svg.group(if connected { "port" } else { "port absent" }, &[], "");
                draw_symbol(svg, operator, (x + 12, y));
                svg.end();
            }
            Sign::EachStep => draw_arrow(svg, "each-step", (x, y)),
            Sign::Once => draw_arrow(svg, "once", (x, y)),
            Sign::Filter => svg.rect("tag", (x, y - 6), (24, 12), 6),
            Sign::Several => {
                svg.rect("box", (x + 7, y - 2), (17, 9), 2);
                svg.rect("box", (x + 4, y - 5), (17, 9), 2);
            }
            Sign::Frame => svg.rect("frame", (x + 2, y - 7), (22, 14), 3),
        }
    }
}

fn draw_arrow(svg: &mut Svg, class: &str, (x, y): (i32, i32)) {
    svg.group(class, &[], "");
    svg.path("line", &format!("M{x} {y}H{}", x + 22));
    svg.path("tip", &format!("M{} {y}l-7 -3.5v7z", x + 24));
    svg.end();
}
