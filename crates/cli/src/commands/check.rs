//! `titin check`: the problems of a description.

use std::collections::HashMap;
use std::fmt::Write;
use std::process::ExitCode;

use anstyle::Style;
use clap::Args;
use titin_draw::units::count;
use titin_manager::compile::{Choices, folders};
use titin_manager::launch::environment;
use titin_manager::preflight::{
    ProbedPlace, find_executables_without_python, probe_models, programs_that_cannot_start,
};
use titin_model::{Description, Network, Problem, ProblemReport, Severity, StartPolicy};

use crate::sources::Sources;
use crate::terminal::{self, BOLD, ERROR, FAINT, GOOD, PLACE, REFUSED, WARNING, harmless, print};

/// Finds the mistakes in a description: names, ports, types, settings, time scales, deadlock
#[derive(Args)]
pub(crate) struct Check {
    #[command(flatten)]
    sources: Sources,
    /// Print the problems as JSON
    #[arg(long)]
    json: bool,
    /// Refuse components that exchange messages in each step unless the files say that their
    /// timelines match
    #[arg(long)]
    strict: bool,
    /// The programs are started by hand: a component without a program is no problem
    #[arg(long)]
    by_hand: bool,
    /// Also start models with the Basic Model Interface, and compare the variables, units and shapes of their ports
    #[arg(long, conflicts_with = "by_hand")]
    probe: bool,
}

impl Check {
    pub(crate) fn run(&self) -> ExitCode {
        let start = match self.by_hand {
            true => StartPolicy::ByHand,
            false => StartPolicy::Programs,
        };
        let (report, network) = match self.sources.load(start, self.strict) {
            Ok(description) => self.network(description),
            Err(report) => (report, None),
        };
        let text = match self.json {
            true => terminal::json(&report, "the problems"),
            false => Ok(text(&report, network.as_ref(), terminal::width())),
        };
        match text.and_then(|text| print(&text)) {
            Err(code) => code,
            Ok(()) if report.is_ok() => ExitCode::SUCCESS,
            Ok(()) => ExitCode::from(REFUSED),
        }
    }

    /// The network of a description, and all problems: problems of flattening come after the warnings.
    fn network(&self, mut description: Description) -> (ProblemReport, Option<Network>) {
        let mut made = description.network(self.sources.model.as_deref());
        if let Ok(network) = &mut made
            && !self.by_hand
        {
            check_programs(&mut description, network);
            if self.probe {
                probe(&mut description, network);
            }
        }
        let mut report = description.warnings;
        match made {
            Ok(network) => (report, Some(network)),
            Err(more) => {
                report.problems.extend(more.problems);
                report.left_out += more.left_out;
                (report, None)
            }
        }
    }
}

/// Starts the models with the Basic Model Interface, and adds what is wrong with them.
fn probe(description: &mut Description, network: &Network) {
    let titin = std::env::current_exe().unwrap_or_default();
    let folders = folders(description);
    for (place, why) in probe_models(network, &folders, &environment(), &titin) {
        let (at, what) = match place {
            ProbedPlace::Component(id) => {
                let component = &network.components[id.index()];
                (
                    component.at,
                    format!("the model of \"{}\" does not fit", component.path),
                )
            }
            ProbedPlace::Bundle(id) => {
                let bundle = &network.bundles[id.index()];
                let (sender, receiver) = network.ends(bundle);
                let what = format!(
                    "{}.{} does not fit {}.{}",
                    sender.path, bundle.sender_port, receiver.path, bundle.receiver_port
                );
                (bundle.at, what)
            }
        };
        description.refuse_model(at, what, why);
    }
}

/// Warns of programs that cannot be started on this host.
fn check_programs(description: &mut Description, network: &mut Network) {
    let titin = std::env::current_exe().unwrap_or_default();
    let (folders, env) = (folders(description), environment());
    find_executables_without_python(network, &folders, &Choices::default(), &env, &titin);
    for (program, why) in programs_that_cannot_start(network, &folders, &env, &titin) {
        description.warn_not_here(&program, why.to_string());
    }
}

/// The problems, each with a line of the file, and then the number of problems.
pub(crate) fn text(
    report: &ProblemReport,
    network: Option<&Network>,
    width: Option<usize>,
) -> String {
    let mut sources = Excerpts::default();
    let mut out = String::new();
    for problem in &report.problems {
        write_problem(&mut out, problem, &mut sources, width.unwrap_or(160));
        out.push('\n');
    }
    let counts = counts(report);
    let line = match network {
        Some(network) if report.errors() == 0 => {
            let end = match counts.is_empty() {
                true => format!("{GOOD}nothing wrong{GOOD:#}"),
                false => counts,
            };
            format!("{}; {end}", size(network))
        }
        _ => counts,
    };
    out + &line + "\n"
}

/// The numbers of errors, warnings and further problems, as far as there are any.
fn counts(report: &ProblemReport) -> String {
    let counted = |number: usize, word: &str| count(number as u64, word);
    let mut counts = Vec::new();
    if report.errors() > 0 {
        let errors = counted(report.errors(), "error");
        counts.push(format!("{ERROR}{errors}{ERROR:#}"));
    }
    if report.warnings() > 0 {
        let warnings = counted(report.warnings(), "warning");
        counts.push(format!("{WARNING}{warnings}{WARNING:#}"));
    }
    if report.left_out > 0 {
        let more = counted(report.left_out, "problem");
        counts.push(format!("{more} more that are left out here"));
    }
    counts.join(", ")
}

/// The name and the size of a model.
fn size(network: &Network) -> String {
    format!(
        "{BOLD}{}{BOLD:#}: {}, {}, {}",
        network.model,
        count(network.components.len() as u64, "component"),
        count(network.instance_count().into(), "instance"),
        count(network.conduit_count().into(), "conduit"),
    )
}

fn write_problem(out: &mut String, problem: &Problem, sources: &mut Excerpts, width: usize) {
    write_place(out, problem);
    let (style, word) = match problem.severity {
        Severity::Error => (ERROR, "error"),
        Severity::Warning => (WARNING, "warning"),
    };
    let what = harmless(&problem.what);
    let _ = writeln!(out, "{style}{word}{style:#}: {BOLD}{what}{BOLD:#}");
    if let Some(excerpt) = sources.around(problem, width) {
        excerpt.write(out, style);
    }
    for line in harmless(&problem.why).lines() {
        let _ = writeln!(out, "  {line}");
    }
    for line in harmless(problem.hint.as_deref().unwrap_or_default()).lines() {
        let _ = writeln!(out, "  {PLACE}{line}{PLACE:#}");
    }
}

/// Writes file, line and column of a problem.
fn write_place(out: &mut String, problem: &Problem) {
    if let Some(file) = &problem.file {
        let _ = write!(out, "{PLACE}{}", harmless(file));
        if let Some(line) = problem.line {
            let _ = write!(out, ":{line}:{}", problem.column.unwrap_or(1));
        }
        let _ = write!(out, "{PLACE:#}: ");
    }
}

/// A line of a file, with the marked part.
#[derive(Debug, PartialEq)]
struct Excerpt {
    line: u32,
    text: String,
    indent: String,
    marks: String,
}

impl Excerpt {
    /// Writes the line, and a line below with the marks.
    fn write(&self, out: &mut String, style: Style) {
        let number = self.line.to_string();
        let blank = " ".repeat(number.len());
        let _ = writeln!(out, "  {FAINT}{number} |{FAINT:#} {}", self.text);
        let _ = writeln!(
            out,
            "  {FAINT}{blank} |{FAINT:#} {}{style}{}{style:#}",
            self.indent, self.marks
        );
    }
}

/// The lines of the files with problems; each file is read once.
#[derive(Default)]
struct Excerpts {
    files: HashMap<String, Vec<String>>,
}

impl Excerpts {
    /// The line of a problem, cut to `width` around the problem's column.
    fn around(&mut self, problem: &Problem, width: usize) -> Option<Excerpt> {
        let (file, line, column) = (problem.file.as_ref()?, problem.line?, problem.column?);
        let lines = self.files.entry(file.clone()).or_insert_with(|| {
            std::fs::read_to_string(file)
                .unwrap_or_default()
                .lines()
                .map(str::to_owned)
                .collect()
        });
        let text = lines.get((line as usize).checked_sub(1)?)?;
        Some(cut(text, line, (column as usize).checked_sub(1)?, width))
    }
}

fn cut(text: &str, line: u32, column: usize, width: usize) -> Excerpt {
    let letters: Vec<char> = harmless(&text.replace('\t', " ")).chars().collect();
    let column = column.min(letters.len());
    // The line number and five more columns are left of the text.
    let room = width.saturating_sub(line.to_string().len() + 5).max(20);
    let first = if letters.len() <= room {
        0
    } else {
        (column + room / 3).saturating_sub(room)
    };
    let last = letters.len().min(first + room);
    let shown: String = letters[first..last].iter().collect();
    let marked = word_length(&letters[column..])
        .min(last.saturating_sub(column))
        .max(1);
    Excerpt {
        line,
        text: shown,
        indent: " ".repeat(column - first),
        marks: "^".repeat(marked),
    }
}

/// The length of the YAML key or value at the start of `letters`.
fn word_length(letters: &[char]) -> usize {
    if let Some(quote @ ('"' | '\'')) = letters.first() {
        return letters
            .iter()
            .skip(1)
            .position(|c| c == quote)
            .map_or(letters.len(), |end| end + 2);
    }
    let ends = |i: usize| {
        let next_blank = letters.get(i + 1).is_none_or(|c| c.is_whitespace());
        match letters[i] {
            ',' | ']' | '}' | '[' | '{' => true,
            ':' => next_blank,
            c => c.is_whitespace(),
        }
    };
    (0..letters.len())
        .find(|i| ends(*i))
        .unwrap_or(letters.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_that_is_meant_is_marked() {
        let excerpt = cut("    cunduits: {a.b: c.d}", 7, 4, 80);
        assert_eq!(
            (excerpt.indent.len(), excerpt.marks.as_str()),
            (4, "^^^^^^^^")
        );
        let excerpt = cut("  x: 'two words' # and more", 7, 5, 80);
        assert_eq!(excerpt.marks.len(), "'two words'".len());
        let excerpt = cut("  a.b: c.d:e, f", 7, 7, 80);
        assert_eq!(excerpt.marks.len(), "c.d:e".len());
        assert_eq!(cut("", 1, 9, 80).marks, "^");
    }

    #[test]
    fn long_lines_are_cut_around_the_place() {
        let text = format!("{}here{}", "x ".repeat(300), " y".repeat(300));
        let excerpt = cut(&text, 1200, 600, 60);
        assert!(excerpt.text.chars().count() <= 51, "{}", excerpt.text.len());
        let at = excerpt.indent.len();
        assert_eq!(&excerpt.text[at..at + 4], "here");
        assert_eq!(excerpt.marks, "^^^^");
    }

    #[test]
    fn nothing_from_a_file_reaches_the_terminal_as_a_command() {
        assert_eq!(cut("a: \x1b[31mred", 1, 3, 80).text, "a: \u{fffd}[31mred");
    }
}
