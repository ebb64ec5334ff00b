//! From the YAML tree to a [`Document`]: typed, with all problems collected, for both versions of yMMSL.

mod conduits;
mod extras;
mod fields;
mod implementations;
mod pattern;
mod sections;
mod v01;
mod v02;

use indexmap::IndexMap;

use crate::description::{Checkpoints, CustomImplementation, Model, Program, Resources, Resume};
pub use extras::bytes_of;

use crate::extras::Extras;
use crate::names::Name;
use crate::problem::{Code, Problems, TextPosition, either, listing};
use crate::settings::Settings;
use crate::yaml::{self, Node, NodeKind, Scalar, ScalarType};

pub(crate) use fields::Fields;

/// What one file says.
#[derive(Clone, Debug, Default)]
pub(crate) struct Document {
    pub version: FormatVersion,
    pub description: String,
    pub imports: Vec<Import>,
    pub models: IndexMap<Name, Model>,
    pub programs: IndexMap<Name, Program>,
    pub custom_implementations: IndexMap<Name, CustomImplementation>,
    pub settings: Settings,
    pub resources: IndexMap<Name, Resources>,
    pub checkpoints: Checkpoints,
    pub resume: IndexMap<Name, Resume>,
    pub extras: Extras,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum FormatVersion {
    V01,
    #[default]
    V02,
}

/// The sections of a file that say how a model is run. Where one of them is indented too far it seems to be something else.
const SECTIONS: [&str; 8] = [
    "imports",
    "programs",
    "custom_implementations",
    "settings",
    "resources",
    "checkpoints",
    "resume",
    "titin",
];

/// `from module import implementation name`
#[derive(Clone, Debug)]
pub(crate) struct Import {
    pub module: Name,
    pub name: Name,
    pub at: TextPosition,
}

/// Reads one file. Without a version nothing can be read; any other problem leaves out only what it concerns.
pub(crate) fn document(
    text: &str,
    file: TextPosition,
    problems: &mut Problems,
) -> Option<Document> {
    let before = problems.errors();
    let Some(root) = yaml::parse(text, file, problems) else {
        if problems.errors() == before {
            let why = "a description is a mapping that begins with \"ymmsl_version: v0.2\"";
            problems.error(file, Code::Version, "the file is empty", why);
        }
        return None;
    };
    if root.is_null() {
        let why = "a description is a mapping that begins with \"ymmsl_version: v0.2\"";
        problems.error(file, Code::Version, "the file is empty", why);
        return None;
    }
    let mut fields = Fields::new(&root, "a description", problems)?;
    match version(&mut fields, &root, problems)? {
        FormatVersion::V01 => Some(v01::document(fields, problems)),
        FormatVersion::V02 => Some(v02::document(fields, problems)),
    }
}

fn version(fields: &mut Fields<'_>, root: &Node, problems: &mut Problems) -> Option<FormatVersion> {
    let hint = "write \"ymmsl_version: v0.2\" at the top".to_string();
    let Some(node) = fields.take("ymmsl_version") else {
        let why = "without it the file cannot be read; the versions are v0.1 and v0.2";
        problems.error_hint(
            root.at,
            Code::Version,
            "\"ymmsl_version\" is missing",
            why,
            hint,
        );
        return None;
    };
    let text = match node.kind() {
        NodeKind::Scalar(scalar) => scalar.text.as_str(),
        _ => "",
    };
    match text {
        "v0.1" => Some(FormatVersion::V01),
        "v0.2" => Some(FormatVersion::V02),
        _ => {
            let why = format!(
                "titin reads {}; found {}",
                listing(["v0.1", "v0.2"]),
                node.describe()
            );
            problems.error_hint(
                node.at,
                Code::Version,
                "this version of yMMSL is not known",
                why,
                hint,
            );
            None
        }
    }
}

/// A text, or the reason that it is none.
pub(crate) fn text(node: &Node, what: &str, problems: &mut Problems) -> Option<String> {
    match node.kind() {
        NodeKind::Scalar(scalar) if scalar.of == ScalarType::Text => Some(scalar.text.clone()),
        NodeKind::Scalar(scalar) if scalar.of != ScalarType::Null => {
            let why = format!("a text is expected; found {}", node.describe());
            let hint = format!("write it in quotes: \"{}\"", yaml::shorten(&scalar.text));
            problems.error_hint(
                node.at,
                Code::WrongType,
                format!("{what} is not a text"),
                why,
                hint,
            );
            None
        }
        _ => wrong_type(node, what, "a text", problems),
    }
}

/// As [`text`], but a number or a truth value serves as it is written: for variables of the environment.
pub(crate) fn any_text(node: &Node, what: &str, problems: &mut Problems) -> Option<String> {
    match node.kind() {
        NodeKind::Scalar(scalar) if scalar.of != ScalarType::Null => Some(scalar.text.clone()),
        _ => wrong_type(node, what, "a text", problems),
    }
}

pub(crate) fn truth(node: &Node, what: &str, problems: &mut Problems) -> Option<bool> {
    match node.kind() {
        NodeKind::Scalar(scalar) if matches!(scalar.of, ScalarType::Bool(_)) => {
            Some(scalar.of == ScalarType::Bool(true))
        }
        _ => wrong_type(node, what, "true or false", problems),
    }
}

pub(crate) fn number(node: &Node, what: &str, problems: &mut Problems) -> Option<f64> {
    match node.kind() {
        NodeKind::Scalar(scalar) => match scalar.of {
            ScalarType::Int(i) => return Some(i as f64),
            ScalarType::Float(x) => return Some(x),
            ScalarType::OddNumber => {
                problems.error(
                    node.at,
                    Code::BadValue,
                    format!("{what} is not clear"),
                    odd_number(scalar),
                );
                return None;
            }
            _ => {}
        },
        NodeKind::List(_) | NodeKind::Map(_) | NodeKind::Alias(_) => {}
    }
    wrong_type(node, what, "a number", problems)
}

/// Why nobody knows which number is meant.
fn odd_number(scalar: &Scalar) -> String {
    let text = yaml::shorten(&scalar.text);
    format!("\"{text}\" reads as different numbers in different tools, or does not fit in 64 bits")
}

/// A whole number from `least` to `most`.
pub(crate) fn count(
    node: &Node,
    what: &str,
    least: u64,
    most: u64,
    problems: &mut Problems,
) -> Option<u64> {
    if let NodeKind::Scalar(scalar) = node.kind() {
        match scalar.of {
            ScalarType::Int(i) => match u64::try_from(i) {
                Ok(n) if (least..=most).contains(&n) => return Some(n),
                _ => {
                    let why =
                        format!("a whole number from {least} to {most} is expected; found {i}");
                    problems.error(
                        node.at,
                        Code::BadValue,
                        format!("{what} is out of range"),
                        why,
                    );
                    return None;
                }
            },
            ScalarType::OddNumber => {
                problems.error(
                    node.at,
                    Code::BadValue,
                    format!("{what} is out of range"),
                    odd_number(scalar),
                );
                return None;
            }
            _ => {}
        }
    }
    wrong_type(node, what, "a whole number", problems)
}

/// `a b` or `[a, b]`, each with its place; nothing is an empty list.
pub(crate) fn word_list(
    node: &Node,
    what: &str,
    problems: &mut Problems,
) -> Vec<(String, TextPosition)> {
    match node.kind() {
        NodeKind::List(items) => items
            .iter()
            .filter_map(|item| Some((text(item, what, problems)?, item.at)))
            .collect(),
        NodeKind::Scalar(scalar) if scalar.of == ScalarType::Text => scalar
            .text
            .split_whitespace()
            .map(|word| (word.to_string(), node.at))
            .collect(),
        NodeKind::Scalar(scalar) if scalar.of == ScalarType::Null => Vec::new(),
        _ => {
            wrong_type::<()>(
                node,
                what,
                "names with blanks between them, or a list of names",
                problems,
            );
            Vec::new()
        }
    }
}

/// A text, which is one item, or a list of texts.
pub(crate) fn text_list(node: &Node, what: &str, problems: &mut Problems) -> Vec<String> {
    match node.kind() {
        NodeKind::List(items) => items
            .iter()
            .filter_map(|item| text(item, what, problems))
            .collect(),
        NodeKind::Scalar(scalar) if scalar.of == ScalarType::Null => Vec::new(),
        _ => text(node, what, problems).into_iter().collect(),
    }
}

/// One of a few words.
pub(crate) fn choice<T: Copy>(
    node: &Node,
    what: &str,
    choices: &[(&str, T)],
    problems: &mut Problems,
) -> Option<T> {
    let written = text(node, what, problems)?;
    let lower = written.to_lowercase();
    if let Some((_, value)) = choices.iter().find(|(word, _)| *word == lower) {
        return Some(*value);
    }
    let words = || choices.iter().map(|(word, _)| *word);
    let hint = crate::problem::did_you_mean(&written, words());
    let why = format!(
        "it is {}; found \"{}\"",
        either(words()),
        yaml::shorten(&written)
    );
    problems.error_hint(
        node.at,
        Code::BadValue,
        format!("{what} is not known"),
        why,
        hint,
    );
    None
}

pub(crate) fn wrong_type<T>(
    node: &Node,
    what: &str,
    wanted: &str,
    problems: &mut Problems,
) -> Option<T> {
    let why = format!("{wanted} is expected; found {}", node.describe());
    problems.error(
        node.at,
        Code::WrongType,
        format!("{what} has the wrong type"),
        why,
    );
    None
}
