//! Tables of text that fit a terminal, and are plain in a pipe.

use std::fmt::Write;

use crate::terminal::{BOLD, harmless};

/// The gap between columns.
const GAP: usize = 2;
/// The table makes no column narrower than `NARROW`.
const NARROW: usize = 10;

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
    let length = |text: &str| text.chars().count();
    let needed = |i: usize| {
        rows.iter()
            .map(|row| length(&row[i]))
            .chain([length(columns[i].heading)])
            .max()
            .unwrap_or(0)
    };
    let mut shown: Vec<(usize, usize)> = (0..columns.len()).map(|i| (i, needed(i))).collect();
    let total = |shown: &[(usize, usize)]| {
        shown
            .iter()
            .map(|(_, width)| width + GAP)
            .sum::<usize>()
            .saturating_sub(GAP)
    };
    let width = width.unwrap_or(usize::MAX);
    while total(&shown) > width {
        let spare = shown
            .iter()
            .rposition(|(i, _)| columns[*i].kind == ColumnKind::Spare);
        let long =
            |(i, width): &(usize, usize)| columns[*i].kind == ColumnKind::Name && *width > NARROW;
        if let Some(widest) = shown
            .iter()
            .copied()
            .filter(long)
            .max_by_key(|(_, width)| *width)
            .filter(|w| spare.is_none() || w.1 > 24)
        {
            shown
                .iter_mut()
                .filter(|column| column.0 == widest.0)
                .for_each(|column| column.1 -= 1);
        } else if let Some(spare) = spare {
            shown.remove(spare);
        } else {
            break;
        }
    }
    let mut out = String::new();
    let mut line = |cells: &dyn Fn(usize) -> String, heading: bool| {
        let mut text = String::new();
        for (place, (i, width)) in shown.iter().enumerate() {
            let gap = if place > 0 { GAP } else { 0 };
            let cell = cut(&cells(*i), *width);
            let blanks = " ".repeat(width - length(&cell));
            let (before, after) = if columns[*i].kind == ColumnKind::Name {
                ("", blanks.as_str())
            } else {
                (blanks.as_str(), "")
            };
            let _ = write!(text, "{:gap$}{before}{cell}{after}", "");
        }
        let text = text.trim_end();
        let _ = if heading {
            writeln!(out, "{BOLD}{text}{BOLD:#}")
        } else {
            writeln!(out, "{text}")
        };
    };
    line(&|i| columns[i].heading.to_owned(), true);
    for row in &rows {
        line(&|i| row[i].clone(), false);
    }
    out
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
