//! The report as a page for a terminal and for the log.

use std::fmt::Write as _;
use std::path::Path;

use super::{MOST_LISTED, Report, names_in_short};
use crate::log::is_command;

/// Letters in a row. A longer line goes on in the next row.
pub(super) const WIDTH: usize = 160;

/// The most rows of a line. The last row shows the end of the line, because advice stands at the
/// end.
pub(super) const ROWS: usize = 4;

/// The colour of the cause.
const RED: &str = "31";

/// A page in the making.
struct Page {
    text: String,
    /// Whether headings and the cause stand out by colours.
    colour: bool,
}

impl Page {
    fn paint(&self, code: &str, text: &str) -> String {
        match self.colour {
            true => format!("\x1b[{code}m{text}\x1b[0m"),
            false => text.to_owned(),
        }
    }

    fn title(&mut self, title: &str) {
        let title = self.paint("1;31", title);
        let _ = writeln!(self.text, "{title}\n");
    }

    /// Adds lines behind a heading. The first line gets the colour `first`, if there is a colour.
    fn section(&mut self, heading: &str, lines: &[String], first: Option<&str>) {
        for (number, line) in lines.iter().enumerate() {
            // Most of the text comes from programs, and a terminal shows it.
            for (row, text) in wrapped(&clean(line)).into_iter().enumerate() {
                let text = match first {
                    Some(code) if number == 0 => self.paint(code, &text),
                    _ => text,
                };
                let heading = if (number, row) == (0, 0) { heading } else { "" };
                let heading = self.paint("1", &format!("{heading:<9}"));
                let _ = writeln!(self.text, "{heading} {text}");
            }
        }
    }
}

impl Report {
    /// The page. With `colour`, headings and the cause stand out on a terminal.
    pub fn page(&self, colour: bool) -> String {
        let mut page = Page {
            text: String::new(),
            colour,
        };
        let how = match self.interrupted {
            true => "was ended",
            false => "failed",
        };
        page.title(&format!(
            "The run of {} {how} after {:.1} s.",
            self.model, self.seconds
        ));
        page.section("First:", &self.cause_lines(), Some(RED));
        page.section("Last:", &self.last_words(), None);
        self.write_others(&mut page);
        let mut files = vec![self.directory.display().to_string(), self.logs.clone()];
        files.extend_from_slice(&self.missing);
        page.section("Files:", &files, None);
        page.section("Left:", &self.unreached, None);
        page.section("Next:", &self.advice, None);
        page.text
    }

    /// Writes the sections about other instances than the culprit.
    fn write_others(&self, page: &mut Page) {
        page.section("Members:", &self.members, None);
        let affected = self.affected.iter();
        let affected = affected.map(|(name, how)| format!("{name}: {how}"));
        page.section("Affected:", &shortened(affected.collect()), None);
        // The cause of a deadlock lists the waiting instances already.
        if !self.deadlock {
            page.section("Waiting:", &shortened(self.waits.clone()), None);
        }
        if !self.computing.is_empty() {
            let names = names_in_short(self.computing.iter().cloned());
            page.section("At work:", &[names], None);
        }
    }

    fn cause_lines(&self) -> Vec<String> {
        let cause = self.cause.lines().map(str::to_owned);
        let program = self.program.iter().map(|program| format!("({program})"));
        cause.chain(program).collect()
    }

    /// The culprit's last log lines and last output, each line once: many programs print their log,
    /// too.
    fn last_words(&self) -> Vec<String> {
        let is_shown = |line: &&String| {
            let line = line.trim();
            let mut printed = self.output.iter().flat_map(|(_, lines)| lines);
            self.cause.contains(line) || printed.any(|printed| printed.contains(line))
        };
        let logged: Vec<&String> = self.records.iter().filter(|line| !is_shown(line)).collect();
        let mut words = Vec::new();
        if !logged.is_empty() {
            words.push("of its log:".to_owned());
            words.extend(logged.iter().map(|line| format!("| {line}")));
        }
        for (file, lines) in &self.output {
            words.push(format!("of {}:", self.short(file)));
            words.extend(lines.iter().map(|line| format!("| {line}")));
        }
        words
    }

    /// A path, relative to the run directory if the path lies within.
    fn short(&self, path: &Path) -> String {
        path.strip_prefix(&self.directory)
            .unwrap_or(path)
            .display()
            .to_string()
    }
}

/// Lines in a list. A long list leaves out the last lines.
fn shortened(mut lines: Vec<String>) -> Vec<String> {
    if lines.len() > MOST_LISTED {
        let more = lines.len() - MOST_LISTED + 1;
        lines.truncate(MOST_LISTED - 1);
        lines.push(format!("and {more} more"));
    }
    lines
}

/// A line in rows. A very long line would push the rest off the page, so only the first and the
/// last rows are kept.
pub(super) fn wrapped(line: &str) -> Vec<String> {
    // The further rows of a quotation have a mark.
    let margin = if line.starts_with("| ") { "|   " } else { "" };
    let rows = rows_of(line, WIDTH - margin.len());
    let (first, last) = (ROWS / 2, rows.len().saturating_sub(ROWS / 2));
    let mut shown = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        if (first..last).contains(&number) {
            continue;
        }
        let margin = if number > 0 { margin } else { "" };
        let gap = match number == last && last > first {
            true => "… ",
            false => "",
        };
        shown.push(format!("{margin}{gap}{row}"));
    }
    shown
}

/// A line cut into rows of at most `width` letters, between words where possible.
fn rows_of(line: &str, width: usize) -> Vec<&str> {
    let mut rows = Vec::new();
    let mut rest = line;
    while let Some((end, _)) = rest.char_indices().nth(width) {
        let is_between_words =
            |&at: &usize| rest.is_char_boundary(at) && rest[at..].starts_with(' ');
        let at = (end / 2..=end).rev().find(is_between_words).unwrap_or(end);
        rows.push(&rest[..at]);
        rest = rest[at..].trim_start();
    }
    rows.push(rest);
    rows
}

/// A line without letters that a terminal would obey.
pub(super) fn clean(line: &str) -> String {
    line.chars()
        .filter(|c| !is_command(*c) || *c == '\t')
        .collect()
}
