//! Who sends how much to whom: a row for each rank of the sender, a column for each of the receiver.

use super::MOST_RANKS;
use crate::draw::svg::{Anchor, SMALL, Svg, text_width};
use crate::schedule::{Coupling, Schedule};
use crate::table::bytes;

/// The opacity of a cell, from the least to the most.
pub(super) const SHADES: [&str; 5] = [".12", ".22", ".33", ".45", ".58"];

/// With more columns or rows amounts are not written.
const MOST_WRITTEN: (usize, usize) = (9, 24);
/// The most lines of text that stand to the left of rows or above columns.
const MOST_LABELS: usize = 24;
const HEADING: i32 = 46;
const ROW: i32 = 20;

pub(super) struct Table {
    pub(super) height: i32,
    /// How many ranks of each side a row or a column stands for.
    ranks: (u32, u32),
    rows: usize,
    columns: usize,
    /// Elements, row by row.
    cells: Vec<u64>,
    cell: (i32, i32),
    /// Whether amounts are written.
    written: bool,
    /// Bytes of an element.
    bytes: u64,
    left: i32,
}

impl Table {
    pub(super) fn of(coupling: &Coupling, schedule: &Schedule, width: i32) -> Table {
        let (from, to) = (coupling.from.ranks(), coupling.to.ranks());
        let ranks = (
            from.div_ceil(MOST_RANKS).max(1),
            to.div_ceil(MOST_RANKS).max(1),
        );
        let (rows, columns) = (
            from.div_ceil(ranks.0) as usize,
            to.div_ceil(ranks.1) as usize,
        );
        let mut cells = vec![0u64; rows * columns];
        for message in &schedule.messages {
            cells[(message.from / ranks.0) as usize * columns + (message.to / ranks.1) as usize] +=
                message.elements;
        }
        let left = 14 + text_width(&from.saturating_sub(1).to_string(), 11, SMALL).max(16);
        let written = columns <= MOST_WRITTEN.0 && rows <= MOST_WRITTEN.1;
        let cell = if written {
            // The last column has the sums.
            (((width - left) / (columns as i32 + 1)).min(76), ROW)
        } else {
            let size = ((width - left) / columns as i32)
                .min(16)
                .min(520 / rows as i32)
                .max(4);
            (size, size)
        };
        let height = HEADING + cell.1 * (rows as i32 + i32::from(written));
        Table {
            height,
            ranks,
            rows,
            columns,
            cells,
            cell,
            written,
            bytes: coupling.bytes,
            left,
        }
    }

    pub(super) fn draw(&self, svg: &mut Svg, coupling: &Coupling, (x, y): (i32, i32)) {
        let grouped = match self.ranks {
            (1, 1) => String::new(),
            (rows, columns) => format!(", {rows} × {columns} ranks to a cell"),
        };
        let text = format!(
            "bytes from a rank of the sender (rows) to one of the receiver (columns){grouped}"
        );
        svg.group("table", &[], "");
        svg.text("name", (x, y + 12), Anchor::Start, text);
        let (left, top) = (x + self.left, y + HEADING);
        let (width, height) = self.cell;
        let most = self.cells.iter().copied().max().unwrap_or(0);
        self.label(svg, (left, top), coupling.to.ranks());
        svg.rect(
            "none",
            (left, top),
            (
                width * self.columns as i32 - 1,
                height * self.rows as i32 - 1,
            ),
            0,
        );
        for (number, elements) in self
            .cells
            .iter()
            .enumerate()
            .filter(|(_, elements)| **elements > 0)
        {
            let (row, column) = (number / self.columns, number % self.columns);
            let at = (left + column as i32 * width, top + row as i32 * height);
            let size = (width - 1, height - 1);
            let amount = bytes(elements.saturating_mul(self.bytes));
            let shade = ((*elements as f64 / most as f64 * SHADES.len() as f64).ceil() as usize)
                .clamp(1, SHADES.len())
                - 1;
            let title = format!(
                "{} to {}: {elements} elements, {amount}",
                ranks_of(row, self.ranks.0, coupling.from.ranks()),
                ranks_of(column, self.ranks.1, coupling.to.ranks())
            );
            let first = [row as u32 * self.ranks.0, column as u32 * self.ranks.1]
                .map(|rank| rank.to_string());
            svg.group("message", &[("from", &first[0]), ("to", &first[1])], &title);
            svg.rect(&format!("cell s{shade}"), at, size, 0);
            if self.written {
                svg.text("", (at.0 + width / 2, at.1 + 14), Anchor::Middle, amount);
            }
            svg.end();
        }
        if self.written {
            self.draw_sums(svg, (left, top));
        }
        svg.end();
    }

    fn label(&self, svg: &mut Svg, (left, top): (i32, i32), to: u32) {
        let widest = text_width(&to.saturating_sub(1).to_string(), 11, SMALL) + 6;
        let step = |count: usize, size: i32, room: i32| {
            let fits = (room + size - 1) / size;
            (count.div_ceil(MOST_LABELS)).max(fits as usize)
        };
        for column in (0..self.columns).step_by(step(self.columns, self.cell.0, widest)) {
            let x = left + column as i32 * self.cell.0 + self.cell.0 / 2;
            svg.text(
                "faint",
                (x, top - 6),
                Anchor::Middle,
                column as u32 * self.ranks.1,
            );
        }
        for row in (0..self.rows).step_by(step(self.rows, self.cell.1, 13)) {
            let y = top + row as i32 * self.cell.1 + self.cell.1 / 2 + 4;
            svg.text(
                "faint",
                (left - 8, y),
                Anchor::End,
                row as u32 * self.ranks.0,
            );
        }
    }

    fn draw_sums(&self, svg: &mut Svg, (left, top): (i32, i32)) {
        let (width, height) = self.cell;
        let right = left + self.columns as i32 * width + width / 2;
        let bottom = top + self.rows as i32 * height + 14;
        svg.text("faint", (right, top - 6), Anchor::Middle, "sum");
        svg.text("faint", (left - 8, bottom), Anchor::End, "sum");
        let sum = |cells: &mut dyn Iterator<Item = &u64>| {
            bytes(cells.sum::<u64>().saturating_mul(self.bytes))
        };
        for row in 0..self.rows {
            let cells = &self.cells[row * self.columns..][..self.columns];
            svg.text(
                "faint",
                (right, top + row as i32 * height + 14),
                Anchor::Middle,
                sum(&mut cells.iter()),
            );
        }
        for column in 0..self.columns {
            let x = left + column as i32 * width + width / 2;
            let mut cells = self.cells[column..].iter().step_by(self.columns);
            svg.text("faint", (x, bottom), Anchor::Middle, sum(&mut cells));
        }
        svg.text(
            "faint",
            (right, bottom),
            Anchor::Middle,
            sum(&mut self.cells.iter()),
        );
    }
}

/// `rank 3`, `ranks 16 to 31`.
fn ranks_of(number: usize, each: u32, all: u32) -> String {
    let first = number as u32 * each;
    let last = (first + each).min(all) - 1;
    if first == last {
        format!("rank {first}")
    } else {
        format!("ranks {first} to {last}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::svg::Style;
    use crate::schedule::{Message, given};
    use titin_model::array_description;

    fn table(from: u32, to: u32, messages: &[(u32, u32, u64)]) -> (Table, String) {
        let sides = [
            format!("from: {{shape: 100, grid: {from}}}"),
            format!("to: {{grid: {to}}}"),
        ];
        let coupling = given::coupling(
            &array_description::read(&sides.map(std::path::PathBuf::from)).unwrap(),
        )
        .unwrap();
        let messages = messages
            .iter()
            .map(|&(from, to, elements)| Message { from, to, elements })
            .collect();
        let table = Table::of(&coupling, &Schedule { messages }, 720);
        let mut svg = Svg::new(760, 900, "", &Style::new());
        table.draw(&mut svg, &coupling, (20, 20));
        (table, svg.finish())
    }

    #[test]
    fn amounts_are_written_and_shaded_by_the_largest() {
        let (_, text) = table(2, 2, &[(0, 0, 100), (0, 1, 1), (1, 1, 50)]);
        for (shade, amount) in [("s4", "800 B"), ("s0", "8 B"), ("s2", "400 B")] {
            let (_, cell) = text.split_once(&format!("\"cell {shade}\"")).unwrap();
            assert!(
                cell.lines()
                    .nth(1)
                    .unwrap()
                    .contains(&format!(">{amount}<")),
                "{cell}"
            );
        }
        assert!(
            text.contains(">808 B<") && text.contains(">408 B<") && text.contains(">1.21 kB<"),
            "{text}"
        );
    }

    #[test]
    fn of_many_ranks_several_share_a_cell() {
        let (table, text) = table(130, 64, &[(0, 0, 5), (2, 0, 5), (129, 63, 7)]);
        assert_eq!((table.rows, table.columns, table.ranks), (44, 64, (3, 1)));
        assert!(
            text.contains("<title>ranks 0 to 2 to rank 0: 10 elements, 80 B</title>"),
            "{text}"
        );
        assert!(
            text.contains("<title>rank 129 to rank 63: 7 elements, 56 B</title>"),
            "{text}"
        );
        assert!(text.contains("3 × 1 ranks to a cell"));
    }
}
