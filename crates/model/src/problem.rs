//! Problems of a description: all of them in one report, each with a position, a reason and a hint.

use std::collections::HashSet;
use std::fmt;

use serde::Serialize;

use crate::names::Name;

/// The most errors, and the most warnings, that are kept; further problems are counted.
pub const MOST_PROBLEMS: usize = 200;

/// The severity of a [`Problem`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// The model runs, but perhaps not as meant.
    Warning,
    /// The model cannot be run.
    Error,
}

/// The kind of a [`Problem`]: stable words for tools, such as `unknown-key`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Code {
    /// A file could not be read.
    File,
    /// The text is not YAML.
    Yaml,
    /// A stated limit was passed.
    Limit,
    /// `ymmsl_version` is missing or not known.
    Version,
    /// A key that has no meaning at this position.
    UnknownKey,
    /// A required key is missing.
    MissingKey,
    /// A key or a name is given twice.
    Duplicate,
    /// A value of the wrong type.
    WrongType,
    /// A value of the right type that makes no sense.
    BadValue,
    /// A text that is not a valid name.
    BadName,
    /// An import that cannot be followed.
    Import,
    /// There is no model, or several models could be meant.
    NoModel,
    /// A component that does not exist.
    UnknownComponent,
    /// A port that does not exist.
    UnknownPort,
    /// A conduit that begins at a receiving port or ends at a sending one.
    WrongWay,
    /// Two senders into one port.
    TwoSenders,
    /// A component and its implementation do not have the same ports.
    PortMismatch,
    /// A required port is not connected.
    Unconnected,
    /// An implementation that does not exist.
    UnknownImplementation,
    /// A component without an implementation.
    NoImplementation,
    /// Models that contain each other.
    ModelLoop,
    /// A setting without a reader.
    UnknownSetting,
    /// A setting of another type than its program supports.
    SettingType,
    /// A path under `resources`, `resume`, `custom_implementations` or `titin` that leads nowhere.
    UnknownPath,
    /// Resources that do not fit how the program is started.
    Resources,
    /// Filters that do not exist or stand in the wrong order.
    Filter,
    /// Components in a cycle: each waits for another before it can start.
    Cycle,
    /// Timelines that do not fit: one side sends more often than the other receives.
    Rate,
    /// Multiplicities that do not fit.
    Multiplicity,
    /// An unknown unit, or a unit of the wrong dimension.
    Unit,
    /// A program that cannot be started on this host.
    NotHere,
    /// A model with the Basic Model Interface that does not fit its component, or the model at the other end of a conduit.
    Probe,
    /// No error, but the file lacks an entry that other tools need.
    Incomplete,
    /// A feature that titin does not have yet.
    NotYet,
}

/// One problem, written for a reader with only this text and the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Error or warning.
    pub severity: Severity,
    /// The kind, for tools.
    pub code: Code,
    /// The file, under the name that the user gave.
    pub file: Option<String>,
    /// The line, from 1.
    pub line: Option<u32>,
    /// The column, from 1, in characters.
    pub column: Option<u32>,
    /// The problem.
    pub what: String,
    /// The reason: the expectation and the finding.
    pub why: String,
    /// What to do; "did you mean".
    pub hint: Option<String>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{file}:")?;
            if let Some(line) = self.line {
                write!(f, "{line}:{}:", self.column.unwrap_or(1))?;
            }
            f.write_str(" ")?;
        }
        let severity = if self.severity == Severity::Error {
            "error"
        } else {
            "warning"
        };
        write!(f, "{severity}: {}", self.what)?;
        for line in self.why.lines() {
            write!(f, "\n    {line}")?;
        }
        if let Some(hint) = &self.hint {
            for line in hint.lines() {
                write!(f, "\n    {line}")?;
            }
        }
        Ok(())
    }
}

/// All problems of a description.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ProblemReport {
    /// The problems, by file and position.
    pub problems: Vec<Problem>,
    /// The number of problems beyond [`MOST_PROBLEMS`]. Past that number the checks may stop.
    pub left_out: usize,
}

impl ProblemReport {
    /// Whether the model can be run: there are no errors.
    pub fn is_ok(&self) -> bool {
        self.errors() == 0
    }

    /// The number of errors.
    pub fn errors(&self) -> usize {
        self.problems
            .iter()
            .filter(|p| p.severity == Severity::Error)
            .count()
    }

    /// The number of warnings.
    pub fn warnings(&self) -> usize {
        self.problems.len() - self.errors()
    }
}

impl fmt::Display for ProblemReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, problem) in self.problems.iter().enumerate() {
            if i > 0 {
                f.write_str("\n\n")?;
            }
            write!(f, "{problem}")?;
        }
        if self.left_out > 0 {
            write!(
                f,
                "\n\n{} more problems were found and left out here",
                self.left_out
            )?;
        }
        Ok(())
    }
}

impl std::error::Error for ProblemReport {}

/// A position in one of the files of a description.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TextPosition {
    /// The number of the file in [`Description::files`](crate::Description::files) plus 1; 0 for
    /// none.
    pub(crate) file: u32,
    /// From 1; 0 for none.
    pub(crate) line: u32,
    /// From 1, in characters.
    pub(crate) column: u32,
}

/// The problems found so far, with the names of the files.
#[derive(Clone, Debug, Default)]
pub(crate) struct Problems {
    pub(crate) files: Vec<String>,
    list: Vec<(TextPosition, Problem)>,
    left_out: usize,
    errors: usize,
    lost_section: bool,
    warnings: usize,
    /// Names that were read. Equal names share memory: a large model repeats few names very often.
    names: HashSet<Name>,
}

/// The begin of the name of a setting of the command line among the files.
const ASSIGNMENT: &str = "--set ";

/// Whether a name among the files is that of a setting of the command line.
pub(crate) fn is_assignment(name: &str) -> bool {
    name.starts_with(ASSIGNMENT)
}

/// The state of the list of problems at some time.
pub(crate) struct Mark {
    kept: usize,
    errors: usize,
    warnings: usize,
    left_out: usize,
}

impl Problems {
    /// A name that was read, shared with equal names.
    pub(crate) fn name(&mut self, written: &str) -> Name {
        if let Some(name) = self.names.get(written) {
            return name.clone();
        }
        let name = Name::from(written);
        self.names.insert(name.clone());
        name
    }

    pub(crate) fn with_files(files: Vec<String>) -> Self {
        Problems {
            files,
            ..Self::default()
        }
    }

    /// Registers a setting of the command line, which stands among the files, so that problems can name it.
    pub(crate) fn add_assignment(&mut self, text: &str) -> TextPosition {
        self.add_file(format!("{ASSIGNMENT}{text}"))
    }

    /// Registers a file and returns the position before the first line.
    pub(crate) fn add_file(&mut self, name: String) -> TextPosition {
        self.files.push(name);
        TextPosition {
            file: self.files.len() as u32,
            line: 0,
            column: 0,
        }
    }

    pub(crate) fn error(
        &mut self,
        at: TextPosition,
        code: Code,
        what: impl Into<String>,
        why: impl Into<String>,
    ) {
        self.add(Severity::Error, at, code, what.into(), why.into(), None);
    }

    pub(crate) fn error_hint(
        &mut self,
        at: TextPosition,
        code: Code,
        what: impl Into<String>,
        why: impl Into<String>,
        hint: impl Into<Option<String>>,
    ) {
        self.add(
            Severity::Error,
            at,
            code,
            what.into(),
            why.into(),
            hint.into(),
        );
    }

    pub(crate) fn warn(
        &mut self,
        at: TextPosition,
        code: Code,
        what: impl Into<String>,
        why: impl Into<String>,
        hint: impl Into<Option<String>>,
    ) {
        self.add(
            Severity::Warning,
            at,
            code,
            what.into(),
            why.into(),
            hint.into(),
        );
    }

    fn add(
        &mut self,
        severity: Severity,
        at: TextPosition,
        code: Code,
        what: String,
        why: String,
        hint: Option<String>,
    ) {
        // Each severity has a limit, so that warnings never push an error out.
        let count = if severity == Severity::Error {
            &mut self.errors
        } else {
            &mut self.warnings
        };
        *count += 1;
        if *count > MOST_PROBLEMS {
            self.left_out += 1;
            return;
        }
        let file = (at.file as usize)
            .checked_sub(1)
            .and_then(|i| self.files.get(i))
            .cloned();
        let known = |n: u32| (n > 0).then_some(n);
        let problem = Problem {
            severity,
            code,
            file,
            line: known(at.line),
            column: known(at.column),
            what,
            why,
            hint,
        };
        self.list.push((at, problem));
    }

    /// The state of the list now.
    pub(crate) fn mark(&self) -> Mark {
        Mark {
            kept: self.list.len(),
            errors: self.errors,
            warnings: self.warnings,
            left_out: self.left_out,
        }
    }

    /// The positions and codes of the problems found since then, as far as they are kept.
    pub(crate) fn since(&self, mark: &Mark) -> impl Iterator<Item = (TextPosition, Code)> {
        self.list[mark.kept..]
            .iter()
            .map(|(place, problem)| (*place, problem.code))
    }

    /// Drops problems found since then for which `is_none` is true.
    pub(crate) fn forget_since(
        &mut self,
        mark: &Mark,
        is_none: impl Fn(TextPosition, Code) -> bool,
    ) {
        let found = self.list.split_off(mark.kept);
        // Nothing is known of the problems beyond the limit.
        if self.left_out == mark.left_out {
            (self.errors, self.warnings) = (mark.errors, mark.warnings);
            for (place, problem) in found
                .into_iter()
                .filter(|(place, problem)| !is_none(*place, problem.code))
            {
                let errs = problem.severity == Severity::Error;
                *(if errs {
                    &mut self.errors
                } else {
                    &mut self.warnings
                }) += 1;
                self.list.push((place, problem));
            }
        } else {
            self.list.extend(found);
        }
    }

    /// Notes that a whole section was not read, because of a wrong name or position. Missing names
    /// may be in that section.
    pub(crate) fn lost_section(&mut self) {
        self.lost_section = true;
    }

    pub(crate) fn has_lost_section(&self) -> bool {
        self.lost_section
    }

    pub(crate) fn errors(&self) -> usize {
        self.errors
    }

    /// Whether more errors were found than are kept. The checks stop then, since hints take time.
    pub(crate) fn is_full(&self) -> bool {
        self.errors > MOST_PROBLEMS
    }

    /// The problems by position, without repetitions.
    pub(crate) fn into_report(self) -> ProblemReport {
        let mut list = self.list;
        list.sort_by_key(|(place, _)| *place);
        list.dedup();
        ProblemReport {
            problems: list.into_iter().map(|(_, problem)| problem).collect(),
            left_out: self.left_out,
        }
    }
}

/// "did you mean ...?" with the candidate nearest to the written text, if one is near.
pub(crate) fn did_you_mean<'a>(
    written: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    nearest(written, candidates).map(|name| format!("did you mean \"{name}\"?"))
}

/// The candidate nearest to the written text, if it is near enough.
pub fn nearest<'a>(
    written: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    // The comparison is quadratic in the length, and a name this long is not misspelt by a letter.
    if written.len() > 200 {
        return None;
    }
    let allowed = match written.chars().count() {
        0..=2 => 1,
        3..=5 => 2,
        n => n / 3,
    };
    /// Comparing more names than these would take too long for a hint.
    const MOST_CANDIDATES: usize = 10_000;
    let lower = written.to_lowercase();
    let distance = |name: &str| {
        let name = name.to_lowercase();
        // A word too many, or too few: `macro_state_out` for `state_out`.
        if has_at_edge(&lower, &name) || has_at_edge(&name, &lower) {
            return Some(allowed);
        }
        let near = name.len().abs_diff(written.len()) <= allowed;
        let distance = near.then(|| strsim::osa_distance(&lower, &name));
        distance.filter(|distance| *distance <= allowed && *distance < name.chars().count())
    };
    let all = candidates.into_iter().take(MOST_CANDIDATES);
    let near = all.filter_map(|name| Some((distance(name)?, name)));
    near.min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Whether `long` begins or ends with `short`, with an underscore between `short` and the rest.
fn has_at_edge(long: &str, short: &str) -> bool {
    let before = long
        .strip_suffix(short)
        .is_some_and(|rest| rest.ends_with('_'));
    let after = long
        .strip_prefix(short)
        .is_some_and(|rest| rest.starts_with('_'));
    short.len() > 2 && (before || after)
}

/// `"a", "b" and "c"`, shortened after a few names.
pub fn listing<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    joined(names, "and")
}

/// `"a", "b" or "c"`, for a choice.
pub(crate) fn either<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    joined(names, "or")
}

fn joined<'a>(names: impl IntoIterator<Item = &'a str>, word: &str) -> String {
    // One more name than the limit is shown too: "and 1 more" would take as much room.
    const MOST: usize = 12;
    let mut names = names.into_iter();
    let mut shown: Vec<String> = names
        .by_ref()
        .take(MOST + 1)
        .map(|n| format!("\"{n}\""))
        .collect();
    let left = names.count();
    if left > 0 {
        shown.truncate(MOST);
        return format!("{} and {} more", shown.join(", "), left + 1);
    }
    match shown.pop() {
        None => "none".into(),
        Some(last) if shown.is_empty() => last,
        Some(last) => format!("{} {word} {last}", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_reads_as_place_what_why_and_hint() {
        let mut problems = Problems::default();
        let file = problems.add_file("a.ymmsl".into());
        let at = TextPosition {
            line: 3,
            column: 5,
            ..file
        };
        problems.error_hint(
            at,
            Code::UnknownKey,
            "unknown key \"cunduits\"",
            "a model has no such key",
            "did you mean \"conduits\"?".to_string(),
        );
        let report = problems.into_report();
        assert_eq!(
            report.to_string(),
            "a.ymmsl:3:5: error: unknown key \"cunduits\"\n    a model has no such key\n    did you mean \"conduits\"?"
        );
        assert!(!report.is_ok());
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["problems"][0]["code"], "unknown-key");
        assert_eq!(json["problems"][0]["severity"], "error");
    }

    #[test]
    fn near_names_are_suggested_and_far_ones_are_not() {
        let names = ["conduits", "components", "settings"];
        assert_eq!(nearest("cunduits", names), Some("conduits"));
        assert_eq!(nearest("Settings", names), Some("settings"));
        assert_eq!(nearest("zebra", names), None);
        assert_eq!(nearest("x", ["y"]), None);
    }

    #[test]
    fn problems_past_the_limit_are_counted() {
        let mut problems = Problems::default();
        for i in 0..MOST_PROBLEMS + 5 {
            problems.error(TextPosition::default(), Code::Limit, format!("{i}"), "");
        }
        assert_eq!(problems.errors(), MOST_PROBLEMS + 5);
        assert_eq!(problems.into_report().left_out, 5);
    }
}
