//! Tables of text that fit a terminal, and are plain in a pipe.

use std::fmt::Write;

use crate::terminal::{BOLD, harmless};

/// The gap between columns.
const GAP: usize = 2;
/// The table makes no column narrower than `NARROW`.
const NARROW: usize = 10;
/// Names down to `LONG` letters are cut before spare columns go.
const LONG: usize = 24;

/// The heading of a column, and how the column gives way if the terminal is too narrow.
pub(crate) struct Column {
    heading: &'static str,
    kind: ColumnKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ColumnKind {
    /// Names are aligned left, and are cut.
    Name,
    /// Figures are aligned right, and stay.
    Figure,
    /// Less important figures. The table leaves such columns out, the last column first.
    Spare,
}

impl Column {
    pub(crate) const fn name(heading: &'static str) -> Column {
        Column {
            heading,
            kind: ColumnKind::Name,
        }
    }

    pub(crate) const fn figure(heading: &'static str) -> Column {
        Column {
            heading,
            kind: ColumnKind::Figure,
        }
    }

    pub(crate) const fn spare(heading: &'static str) -> Column {
        Column {
            heading,
            kind: ColumnKind::Spare,
        }
    }
}

/// The table with headings. `width` is the width of the terminal, if there is a terminal.
pub(crate) fn table(columns: &[Column], rows: &[Vec<String>], width: Option<usize>) -> String {
    let rows: Vec<Vec<String>> = rows
        .iter()
        .map(|row| row.iter().map(|cell| harmless(cell)).collect())
        .collect();
    let shown = ShownColumns::fitting(columns, &rows, width.unwrap_or(usize::MAX));
    let headings = shown.line(|number| columns[number].heading);
    let mut out = format!("{BOLD}{headings}{BOLD:#}\n");
    for row in &rows {
        out += &shown.line(|number| &row[number]);
        out.push('\n');
    }
    out
}

/// The columns that a table shows.
struct ShownColumns<'a> {
    columns: &'a [Column],
    shown: Vec<ShownColumn>,
}

#[derive(Clone, Copy)]
struct ShownColumn {
    /// The number among all columns.
    number: usize,
    width: usize,
}

impl<'a> ShownColumns<'a> {
    /// The columns that fit a terminal of the given width. Long names are cut first, then spare
    /// columns go, then the names are cut further.
    fn fitting(columns: &'a [Column], rows: &[Vec<String>], width: usize) -> Self {
        let needed = |number: usize| {
            let cells = rows.iter().map(|row| letters(&row[number]));
            cells.fold(letters(columns[number].heading), usize::max)
        };
        let shown = (0..columns.len()).map(|number| ShownColumn {
            number,
            width: needed(number),
        });
        let mut fitting = ShownColumns {
            columns,
            shown: shown.collect(),
        };
        while fitting.width() > width && fitting.give_way() {}
        fitting
    }

    fn width(&self) -> usize {
        let widths = self.shown.iter().map(|column| column.width + GAP);
        widths.sum::<usize>().saturating_sub(GAP)
    }

    /// Makes the table narrower by a letter or by a column. False if nothing can give way.
    fn give_way(&mut self) -> bool {
        let spare = self
            .shown
            .iter()
            .rposition(|column| self.kind(*column) == ColumnKind::Spare);
        let least = if spare.is_some() { LONG } else { NARROW };
        let widest = (0..self.shown.len())
            .filter(|place| self.kind(self.shown[*place]) == ColumnKind::Name)
            .max_by_key(|place| self.shown[*place].width)
            .filter(|place| self.shown[*place].width > least);
        match (widest, spare) {
            (Some(place), _) => self.shown[place].width -= 1,
            (None, Some(place)) => drop(self.shown.remove(place)),
            (None, None) => return false,
        }
        true
    }

    fn kind(&self, column: ShownColumn) -> ColumnKind {
        self.columns[column.number].kind
    }

    /// A line of the table, with the cell of each column by the number of the column.
    fn line<'c>(&self, cell: impl Fn(usize) -> &'c str) -> String {
        let mut line = String::new();
        for (place, &column) in self.shown.iter().enumerate() {
            let gap = if place > 0 { GAP } else { 0 };
            let (cell, width) = (cut(cell(column.number), column.width), column.width);
            let _ = match self.kind(column) {
                ColumnKind::Name => write!(line, "{:gap$}{cell:<width$}", ""),
                _ => write!(line, "{:gap$}{cell:>width$}", ""),
            };
        }
        line.truncate(line.trim_end().len());
        line
    }
}

fn letters(text: &str) -> usize {
    text.chars().count()
}

/// The beginning and the end of a text, since names differ most in these parts.
fn cut(text: &str, width: usize) -> String {
    let letters: Vec<char> = text.chars().collect();
    if letters.len() <= width {
        return text.to_owned();
    }
    let end = (width - 1) / 2;
    let start: String = letters[..width - 1 - end].iter().collect();
    let rest: String = letters[letters.len() - end..].iter().collect();
    format!("{start}…{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 4] = [
        Column::name("instance"),
        Column::figure("total"),
        Column::spare("bytes"),
        Column::spare("copied"),
    ];

    fn rows() -> Vec<Vec<String>> {
        let row = |cells: [&str; 4]| cells.map(str::to_owned).to_vec();
        vec![
            row(["macro", "1.00 s", "12 kB", "0 B"]),
            row(["a_component_with_a_long_name[12]", "0.50 s", "1 kB", "9 B"]),
        ]
    }

    #[test]
    fn columns_line_up() {
        let text = table(&COLUMNS, &rows(), None);
        let plain = anstream::adapter::strip_str(&text).to_string();
        let lines: Vec<&str> = plain.lines().collect();
        assert_eq!(
            lines[0],
            "instance                           total  bytes  copied"
        );
        assert_eq!(
            lines[1],
            "macro                             1.00 s  12 kB     0 B"
        );
        assert_eq!(
            lines[2],
            "a_component_with_a_long_name[12]  0.50 s   1 kB     9 B"
        );
    }

    #[test]
    fn a_narrow_terminal_gets_cut_names_and_fewer_columns() {
        for width in [20, 28, 40, 50, 60, 80] {
            let text = table(&COLUMNS, &rows(), Some(width));
            for line in anstream::adapter::strip_str(&text).to_string().lines() {
                assert!(line.chars().count() <= width, "{width}: {line}");
                assert!(!line.is_empty());
            }
            assert!(text.contains("0.50 s") && text.contains("[12]"), "{text}");
        }
    }
}
