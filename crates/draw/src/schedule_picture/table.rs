//! The amount that each rank sends to each other: a row for each rank of the sender, a column for
//! each rank of the receiver. If there are many ranks, a row or a column stands for several.

use super::MOST_RANKS;
use crate::schedule::{FieldCoupling, RankMessages};
use crate::svg::{REGULAR, Svg, TextAnchor, text_width};
use crate::units::bytes;

/// The opacities of cells, from the smallest amount to the largest.
pub(super) const SHADES: [&str; 5] = [".12", ".22", ".33", ".45", ".58"];

/// The most columns and rows of a table with written amounts.
const MOST_WRITTEN: (usize, usize) = (9, 24);
/// The most rank numbers beside rows or above columns.
const MOST_LABELS: usize = 24;
const HEADING: i32 = 46;
const ROW: i32 = 20;

pub(super) struct Table {
    pub(super) height: i32,
    rows: TableSide,
    columns: TableSide,
    /// Elements, row by row.
    cells: Vec<u64>,
    /// The width and the height of a cell.
    cell: (i32, i32),
    /// Whether amounts are written.
    written: bool,
    /// The bytes of an element.
    bytes: u64,
    /// The distance from the left edge of the table to the first column.
    left: i32,
}

/// The rows or the columns.
struct TableSide {
    /// The ranks of the side.
    ranks: u32,
    /// How many ranks a row or a column stands for.
    each: u32,
    /// How many rows or columns there are.
    count: usize,
}

impl TableSide {
    fn new(ranks: u32) -> TableSide {
        let each = ranks.div_ceil(MOST_RANKS).max(1);
        let count = ranks.div_ceil(each) as usize;
        TableSide { ranks, each, count }
    }

    /// The row or column of a rank.
    fn index(&self, rank: u32) -> usize {
        (rank / self.each) as usize
    }

    fn first_rank(&self, index: usize) -> u32 {
        index as u32 * self.each
    }

    /// `rank 3`, `ranks 16 to 31`.
    fn text(&self, index: usize) -> String {
        let first = self.first_rank(index);
        let last = (first + self.each).min(self.ranks) - 1;
        if first == last {
            format!("rank {first}")
        } else {
            format!("ranks {first} to {last}")
        }
    }

    /// The width of the largest rank number.
    fn widest_label(&self) -> i32 {
        text_width(&self.ranks.saturating_sub(1).to_string(), 11, REGULAR)
    }

    /// The rows or columns that get a rank number. A row or a column takes `size` pixels, and a
    /// number needs `room`.
    fn labelled(&self, size: i32, room: i32) -> impl Iterator<Item = usize> {
        let fits = (room + size - 1) / size;
        let step = self.count.div_ceil(MOST_LABELS).max(fits as usize);
        (0..self.count).step_by(step)
    }
}

impl Table {
    pub(super) fn of(coupling: &FieldCoupling, messages: &RankMessages, width: i32) -> Table {
        let rows = TableSide::new(coupling.from.ranks());
        let columns = TableSide::new(coupling.to.ranks());
        let mut cells = vec![0u64; rows.count * columns.count];
        for message in &messages.0 {
            let cell = rows.index(message.from) * columns.count + columns.index(message.to);
            cells[cell] += message.elements;
        }
        let left = 14 + rows.widest_label().max(16);
        let written = columns.count <= MOST_WRITTEN.0 && rows.count <= MOST_WRITTEN.1;
        let cell = if written {
            // The last column has the sums.
            (((width - left) / (columns.count as i32 + 1)).min(76), ROW)
        } else {
            let size = ((width - left) / columns.count as i32)
                .min(16)
                .min(520 / rows.count as i32)
                .max(4);
            (size, size)
        };
        Table {
            height: HEADING + cell.1 * (rows.count as i32 + i32::from(written)),
            rows,
            columns,
            cells,
            cell,
            written,
            bytes: coupling.bytes,
            left,
        }
    }

    pub(super) fn draw(&self, svg: &mut Svg, (x, y): (i32, i32)) {
        let grouped = match (self.rows.each, self.columns.each) {
            (1, 1) => String::new(),
            (rows, columns) => format!(", {rows} × {columns} ranks to a cell"),
        };
        let text = format!(
            "bytes from a rank of the sender (rows) to one of the receiver (columns){grouped}"
        );
        svg.group("table", &[], "");
        svg.text("name", (x, y + 12), TextAnchor::Start, text);
        let corner = (x + self.left, y + HEADING);
        self.draw_labels(svg, corner);
        let size = (
            self.cell.0 * self.columns.count as i32 - 1,
            self.cell.1 * self.rows.count as i32 - 1,
        );
        svg.rect("none", corner, size, 0);
        self.draw_cells(svg, corner);
        if self.written {
            self.draw_sums(svg, corner);
        }
        svg.end();
    }

    fn draw_labels(&self, svg: &mut Svg, (left, top): (i32, i32)) {
        let (width, height) = self.cell;
        let room = self.columns.widest_label() + 6;
        for column in self.columns.labelled(width, room) {
            let middle = (left + column as i32 * width + width / 2, top - 6);
            let rank = self.columns.first_rank(column);
            svg.text("faint", middle, TextAnchor::Middle, rank);
        }
        for row in self.rows.labelled(height, 13) {
            let right = (left - 8, top + row as i32 * height + height / 2 + 4);
            svg.text("faint", right, TextAnchor::End, self.rows.first_rank(row));
        }
    }

    fn draw_cells(&self, svg: &mut Svg, corner: (i32, i32)) {
        let most = self.cells.iter().copied().max().unwrap_or(0);
        for (number, elements) in self.cells.iter().enumerate() {
            if *elements > 0 {
                let (row, column) = (number / self.columns.count, number % self.columns.count);
                let share = *elements as f64 / most as f64;
                self.draw_cell(svg, corner, (row, column), *elements, share);
            }
        }
    }

    /// Draws a cell. `share` is its part of the largest amount.
    fn draw_cell(
        &self,
        svg: &mut Svg,
        (left, top): (i32, i32),
        (row, column): (usize, usize),
        elements: u64,
        share: f64,
    ) {
        let (width, height) = self.cell;
        let (x, y) = (left + column as i32 * width, top + row as i32 * height);
        let amount = bytes(elements.saturating_mul(self.bytes));
        let shade = ((share * SHADES.len() as f64).ceil() as usize).clamp(1, SHADES.len()) - 1;
        let (from, to) = (self.rows.text(row), self.columns.text(column));
        let title = format!("{from} to {to}: {elements} elements, {amount}");
        let from = self.rows.first_rank(row).to_string();
        let to = self.columns.first_rank(column).to_string();
        svg.group("message", &[("from", &from), ("to", &to)], &title);
        let class = format!("cell s{shade}");
        svg.rect(&class, (x, y), (width - 1, height - 1), 0);
        if self.written {
            svg.text("", (x + width / 2, y + 14), TextAnchor::Middle, amount);
        }
        svg.end();
    }

    fn draw_sums(&self, svg: &mut Svg, (left, top): (i32, i32)) {
        let (width, height) = self.cell;
        let (rows, columns) = (self.rows.count, self.columns.count);
        let right = left + columns as i32 * width + width / 2;
        let bottom = top + rows as i32 * height + 14;
        svg.text("faint", (right, top - 6), TextAnchor::Middle, "sum");
        svg.text("faint", (left - 8, bottom), TextAnchor::End, "sum");
        let mut draw_sum = |position: (i32, i32), cells: &mut dyn Iterator<Item = &u64>| {
            let amount = bytes(cells.sum::<u64>().saturating_mul(self.bytes));
            svg.text("faint", position, TextAnchor::Middle, amount);
        };
        for row in 0..rows {
            let cells = &self.cells[row * columns..][..columns];
            draw_sum((right, top + row as i32 * height + 14), &mut cells.iter());
        }
        for column in 0..columns {
            let x = left + column as i32 * width + width / 2;
            let mut cells = self.cells[column..].iter().step_by(columns);
            draw_sum((x, bottom), &mut cells);
        }
        draw_sum((right, bottom), &mut self.cells.iter());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::RankMessage;
    use crate::schedule::described::described_field;
    use crate::svg::Style;
    use titin_model::array_description;

    fn table(from: u32, to: u32, messages: &[(u32, u32, u64)]) -> (Table, String) {
        let sides = [
            format!("from: {{shape: 100, grid: {from}}}"),
            format!("to: {{grid: {to}}}"),
        ];
        let coupling = described_field(
            &array_description::read(&sides.map(std::path::PathBuf::from)).unwrap(),
        )
        .unwrap();
        let messages = messages
            .iter()
            .map(|&(from, to, elements)| RankMessage { from, to, elements })
            .collect();
        let table = Table::of(&coupling, &RankMessages(messages), 720);
        let mut svg = Svg::new(760, 900, "", &Style::new());
        table.draw(&mut svg, (20, 20));
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
        assert_eq!((table.rows.count, table.columns.count), (44, 64));
        assert_eq!((table.rows.each, table.columns.each), (3, 1));
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
