//! Reads single values: texts, numbers, choices and intervals.

use crate::problem::{Code, Problems, TextPosition, did_you_mean, either};
use crate::yaml::{self, Node, NodeKind, Scalar, ScalarType};

/// A text; reports another type.
pub(crate) fn text(node: &Node, what: &str, problems: &mut Problems) -> Option<String> {
    match node.kind() {
        NodeKind::Scalar(scalar) if scalar.of == ScalarType::Text => Some(scalar.text.clone()),
        NodeKind::Scalar(scalar) if scalar.of != ScalarType::Null => {
            let what = format!("{what} is not a text");
            let why = format!("a text is expected; found {}", node.describe());
            let hint = format!("write it in quotes: \"{}\"", yaml::shorten(&scalar.text));
            problems.error_hint(node.at, Code::WrongType, what, why, hint);
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
    let NodeKind::Scalar(scalar) = node.kind() else {
        return wrong_type(node, what, "a number", problems);
    };
    match scalar.of {
        ScalarType::Int(i) => Some(i as f64),
        ScalarType::Float(x) => Some(x),
        ScalarType::OddNumber => {
            let what = format!("{what} is not clear");
            problems.error(node.at, Code::BadValue, what, odd_number(scalar));
            None
        }
        _ => wrong_type(node, what, "a number", problems),
    }
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
    let NodeKind::Scalar(scalar) = node.kind() else {
        return wrong_type(node, what, "a whole number", problems);
    };
    let why = match scalar.of {
        ScalarType::Int(i) => match u64::try_from(i) {
            Ok(n) if (least..=most).contains(&n) => return Some(n),
            _ => format!("a whole number from {least} to {most} is expected; found {i}"),
        },
        ScalarType::OddNumber => odd_number(scalar),
        _ => return wrong_type(node, what, "a whole number", problems),
    };
    let what = format!("{what} is out of range");
    problems.error(node.at, Code::BadValue, what, why);
    None
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
        NodeKind::Scalar(scalar) if scalar.of == ScalarType::Text => {
            let words = scalar.text.split_whitespace();
            words.map(|word| (word.to_string(), node.at)).collect()
        }
        _ if node.is_null() => Vec::new(),
        _ => {
            let wanted = "names with blanks between them, or a list of names";
            wrong_type(node, what, wanted, problems).unwrap_or_default()
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
pub(crate) fn choice<T: Clone>(
    node: &Node,
    what: &str,
    choices: &[(&str, T)],
    problems: &mut Problems,
) -> Option<T> {
    let written = text(node, what, problems)?;
    let lower = written.to_lowercase();
    if let Some((_, value)) = choices.iter().find(|(word, _)| *word == lower) {
        return Some(value.clone());
    }
    let words = || choices.iter().map(|(word, _)| *word);
    let hint = did_you_mean(&written, words());
    let (expected, found) = (either(words()), yaml::shorten(&written));
    let why = format!("it is {expected}; found \"{found}\"");
    let what = format!("{what} is not known");
    problems.error_hint(node.at, Code::BadValue, what, why, hint);
    None
}

pub(crate) fn wrong_type<T>(
    node: &Node,
    what: &str,
    wanted: &str,
    problems: &mut Problems,
) -> Option<T> {
    let what = format!("{what} has the wrong type");
    let why = format!("{wanted} is expected; found {}", node.describe());
    problems.error(node.at, Code::WrongType, what, why);
    None
}

/// `2:8`, or a number alone.
pub(crate) fn interval(node: &Node, what: &str, problems: &mut Problems) -> Option<(u64, u64)> {
    let written = match node.kind() {
        NodeKind::Scalar(scalar) => scalar.text.as_str(),
        _ => "",
    };
    let found = bounds_of(written);
    if found.is_none() {
        let what = format!("{what} cannot be read");
        let why = format!(
            "indices are written as 2:8, from the first to the one after the last; found {}",
            node.describe()
        );
        problems.error(node.at, Code::BadValue, what, why);
    }
    found
}

fn bounds_of(interval: &str) -> Option<(u64, u64)> {
    let number = |text: &str| {
        let number = text.trim().parse().ok();
        number.filter(|number: &u64| *number <= LARGEST_INDEX)
    };
    match interval.split_once(':') {
        Some((lower, upper)) => number(lower)
            .zip(number(upper))
            .filter(|(lower, upper)| lower <= upper),
        None => number(interval).map(|lower| (lower, lower + 1)),
    }
}

/// The largest extent, index or number of processes in an array.
pub(crate) const LARGEST_INDEX: u64 = 1 << 62;
