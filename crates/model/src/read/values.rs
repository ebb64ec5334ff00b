//! Reads single values: texts, numbers, choices and intervals.

use crate::problem::{Code, Problems, TextPosition, did_you_mean, either};
use crate::yaml::{self, Node, NodeKind, Scalar, ScalarType};

/// A text; reports another type.
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

/// As [`text`], but a number or a truth value counts as the text that is written: for environment
/// variables.
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

/// The reason why the meaning of a number is unclear.
pub(crate) fn odd_number(scalar: &Scalar) -> String {
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

/// `a b` or `[a, b]`, each word with its position; an empty node is an empty list.
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

/// A list of texts; a text alone is a list with one item.
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

/// One of several words.
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
    let hint = did_you_mean(&written, words());
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

/// `2:8`, or a number alone.
pub(crate) fn interval(node: &Node, what: &str, problems: &mut Problems) -> Option<(u64, u64)> {
    let written = if let NodeKind::Scalar(scalar) = node.kind() {
        scalar.text.as_str()
    } else {
        ""
    };
    let number = |text: &str| {
        text.trim()
            .parse()
            .ok()
            .filter(|number: &u64| *number <= LARGEST_INDEX)
    };
    let found = match written.split_once(':') {
        Some((lower, upper)) => number(lower)
            .zip(number(upper))
            .filter(|(lower, upper)| lower <= upper),
        None => number(written).map(|lower| (lower, lower + 1)),
    };
    if found.is_none() {
        let why = format!(
            "indices are written as 2:8, from the first to the one after the last; found {}",
            node.describe()
        );
        problems.error(
            node.at,
            Code::BadValue,
            format!("{what} cannot be read"),
            why,
        );
    }
    found
}

/// The largest extent, index or number of processes in an array.
pub(crate) const LARGEST_INDEX: u64 = 1 << 62;
