//! The components that come with titin, and the settings that each of them reads.

use std::fmt;

use titin_element::Dtype;

use crate::settings::{Setting, SettingType};

/// The program of a model with the Basic Model Interface, as an implementation in a description. The
/// settings of the component name the model.
pub(crate) const BMI: &str = "titin.bmi";

/// The words that run a model with the Basic Model Interface, behind the name of Python.
pub const BMI_WORDS: [&str; 3] = ["-m", BMI, "run"];

/// The names of all implementations that come with titin.
pub(crate) fn names() -> Vec<&'static str> {
    let names = BuiltIn::ALL.map(BuiltIn::name);
    names.into_iter().chain([BMI]).collect()
}

/// The components that come with titin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BuiltIn {
    /// Sends what files hold.
    Source,
    /// Writes received messages to files.
    Sink,
    /// Sends each message on to several ports.
    Duplicator,
    /// Makes one message of several.
    Merger,
    /// Makes several messages of one.
    Splitter,
    /// Hands the rows of a table to the members of an ensemble.
    Sampler,
}

/// The values that a setting of a built-in component accepts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AcceptedValue {
    /// Any text.
    Text,
    /// One of these words.
    Word(&'static [&'static str]),
    /// True or false.
    Flag,
    /// A whole number from 0.
    Count,
    /// True or false, or a whole number from 1.
    Times,
    /// Seconds, or a duration with a unit.
    Time,
    /// A list of whole numbers from 0.
    Counts,
}

use AcceptedValue::{Count, Counts, Flag, Text, Time, Times, Word};

type Row = (&'static str, AcceptedValue);

const FILE: Row = ("file", Text);
const FORMAT: Row = ("format", Word(&["npy", "csv", "jsonl", "ndjson", "json"]));
const AXIS: Row = ("axis", Count);
const SOURCE: &[Row] = &[
    FILE,
    FORMAT,
    ("dt", Time),
    ("t0", Time),
    ("t_max", Time),
    ("repeat", Times),
    ("period", Time),
    ("time_axis", Flag),
    ("time_column", Text),
    ("columns", Text),
    ("form", Word(&["array", "map", "table"])),
    ("dtype", Word(&Dtype::NAMES)),
    ("delimiter", Word(&[",", ";", "tab", "\t", "|"])),
    ("slots", Count),
];
const SINK: &[Row] = &[FILE, FORMAT];
const MERGER: &[Row] = &[
    (
        "how",
        Word(&["concatenate", "stack", "list", "by-time", "first-come"]),
    ),
    AXIS,
];
const SPLITTER: &[Row] = &[
    ("how", Word(&["concatenate", "stack", "list"])),
    AXIS,
    ("sizes", Counts),
];
const SAMPLER: &[Row] = &[
    ("table", Text),
    ("results", Text),
    ("retry", Count),
    FORMAT,
    ("columns", Text),
    ("delimiter", Word(&[",", ";", "tab", "\t", "|"])),
];

impl BuiltIn {
    /// All built-in components.
    pub const ALL: [BuiltIn; 6] = [
        BuiltIn::Source,
        BuiltIn::Sink,
        BuiltIn::Duplicator,
        BuiltIn::Merger,
        BuiltIn::Splitter,
        BuiltIn::Sampler,
    ];

    /// The name as an implementation in a description: `titin.source`.
    pub fn name(self) -> &'static str {
        match self {
            BuiltIn::Source => "titin.source",
            BuiltIn::Sink => "titin.sink",
            BuiltIn::Duplicator => "titin.duplicator",
            BuiltIn::Merger => "titin.merger",
            BuiltIn::Splitter => "titin.splitter",
            BuiltIn::Sampler => "titin.sampler",
        }
    }

    /// The component with this [`name`](BuiltIn::name).
    pub fn from_name(name: &str) -> Option<BuiltIn> {
        BuiltIn::ALL.into_iter().find(|b| b.name() == name)
    }

    /// The settings of the component; each may be given for the whole component or for one port
    /// (`rain.north.file`).
    pub fn settings(self) -> &'static [(&'static str, AcceptedValue)] {
        match self {
            BuiltIn::Source => SOURCE,
            BuiltIn::Sink => SINK,
            BuiltIn::Duplicator => &[],
            BuiltIn::Merger => MERGER,
            BuiltIn::Splitter => SPLITTER,
            BuiltIn::Sampler => SAMPLER,
        }
    }
}

impl AcceptedValue {
    /// Whether the setting accepts a value.
    pub(crate) fn accepts(self, value: &Setting) -> bool {
        match (self, value) {
            (Text, _) => value.fits(SettingType::Str),
            (Word(words), Setting::Str(word)) => words.contains(&word.as_str()),
            (Word(_), _) => false,
            (Flag, _) => value.fits(SettingType::Bool),
            (Count, _) => matches!(value, Setting::Int(0..)),
            (Times, _) => matches!(value, Setting::Bool(_) | Setting::Int(1..)),
            (Time, _) => value.in_unit("s").is_ok(),
            (Counts, Setting::Ints(sizes)) => sizes.iter().all(|size| *size >= 0),
            (Counts, _) => value.fits(SettingType::Ints),
        }
    }
}

impl fmt::Display for AcceptedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Text => "a text",
            Word(words) => return f.write_str(&crate::problem::either(words.iter().copied())),
            Flag => "true or false",
            Count => "a whole number from 0",
            Times => "true, or a whole number from 1",
            Time => "a time: a number, or one with a unit such as \"10 min\"",
            Counts => "a list of whole numbers from 0",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_what_a_setting_takes() {
        let of = |built_in: BuiltIn, name: &str| {
            built_in
                .settings()
                .iter()
                .find(|(known, _)| *known == name)
                .unwrap()
                .1
        };
        let text = |text: &str| Setting::Str(text.into());
        let source = |name| of(BuiltIn::Source, name);
        for (takes, good, bad) in [
            (source("file"), vec![text("a.npy")], vec![Setting::Int(3)]),
            (
                source("dt"),
                vec![text("10 min"), Setting::Int(3), Setting::Float(0.5)],
                vec![text("3 km"), text("x")],
            ),
            (
                source("repeat"),
                vec![Setting::Bool(true), Setting::Int(3)],
                vec![Setting::Int(0), text("x")],
            ),
            (
                source("slots"),
                vec![Setting::Int(0)],
                vec![Setting::Int(-1), Setting::Float(2.0)],
            ),
            (
                source("time_axis"),
                vec![Setting::Bool(false)],
                vec![Setting::Int(0)],
            ),
            (
                of(BuiltIn::Merger, "how"),
                vec![text("by-time")],
                vec![text("bytime"), Setting::Int(0)],
            ),
            (
                of(BuiltIn::Splitter, "sizes"),
                vec![Setting::Ints(vec![1, 0])],
                vec![Setting::Ints(vec![-1]), Setting::Int(1)],
            ),
        ] {
            good.iter()
                .for_each(|value| assert!(takes.accepts(value), "{value}"));
            bad.iter()
                .for_each(|value| assert!(!takes.accepts(value), "{takes:?} {value}"));
        }
    }
}
