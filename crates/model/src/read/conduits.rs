//! Conduits and matching timelines.

use super::fields::entries;
use super::{text, word_list, wrong_type};
use crate::description::{Conduit, MatchingTimelines, PortReference};
use crate::document::FormatVersion;
use crate::filter;
use crate::names::{Name, is_dotted};
use crate::operator::Timeline;
use crate::problem::{Code, Problems, TextPosition};
use crate::yaml::{Node, NodeKind, Scalar, ScalarType, shorten, with_colon};

/// The conduits under `conduits:`, as `sender: receiver` or `sender: [receivers]`.
pub(super) fn conduits(
    node: &Node,
    version: FormatVersion,
    problems: &mut Problems,
) -> Vec<Conduit> {
    let mut conduits = Vec::new();
    if let NodeKind::List(items) = node.kind() {
        // The long form: a list of {sender, receiver}.
        for item in items {
            let Some(mut fields) = super::Fields::new(item, "a conduit", problems) else {
                continue;
            };
            let ends = (fields.take("sender"), fields.take("receiver"));
            fields.finish(problems);
            match ends {
                (Some(sender), Some(receivers)) => {
                    if let Some(written) = text(sender, "a sender", problems) {
                        add(
                            &mut conduits,
                            &written,
                            sender.at,
                            receivers,
                            version,
                            problems,
                        );
                    }
                }
                _ => {
                    let why = "it needs a \"sender\" and a \"receiver\"";
                    problems.error(item.at, Code::MissingKey, "a conduit with one end", why);
                }
            }
        }
        return conduits;
    }
    if let NodeKind::Scalar(Scalar {
        text,
        of: ScalarType::Text,
    }) = node.kind()
    {
        // YAML joins the lines into one text.
        let words = text.split(' ').collect::<Vec<_>>();
        let first = match &words[..] {
            [_, "->", ..] => 3,
            [one, ..] if one.contains(':') || one.contains("->") => 1,
            _ => 2,
        };
        let hint = with_colon(&words[..first.min(words.len())].join(" "));
        let why =
            "each is a sender, a colon, a blank and a receiver; without these there is only a text";
        problems.error_hint(node.at, Code::WrongType, "these are no conduits", why, hint);
        return conduits;
    }
    for entry in entries(node, "\"conduits\"", problems).unwrap_or_default() {
        add(
            &mut conduits,
            &entry.key,
            entry.at,
            &entry.value,
            version,
            problems,
        );
    }
    conduits.shrink_to_fit();
    conduits
}

fn add(
    conduits: &mut Vec<Conduit>,
    sender: &str,
    at: TextPosition,
    receivers: &Node,
    version: FormatVersion,
    problems: &mut Problems,
) {
    if let Some((from, to)) = arrow(sender, receivers) {
        let what = format!("\"{}\" is not an end of a conduit", shorten(sender));
        let why = "a conduit is written without an arrow";
        let hint = format!("write \"{from}: {to}\"");
        problems.error_hint(at, Code::BadName, what, why, Some(hint));
        return;
    }
    let Some(sender) = end(sender, at, version, problems) else {
        return;
    };
    let one = std::slice::from_ref(receivers);
    let receivers = if let NodeKind::List(items) = receivers.kind() {
        items.as_slice()
    } else {
        one
    };
    for node in receivers {
        if node.is_null() {
            wrong_type::<()>(
                node,
                &format!("the receiver of \"{sender}\""),
                "a receiver such as \"b.in\"",
                problems,
            );
            continue;
        }
        let Some(written) = text(node, "a receiver", problems) else {
            continue;
        };
        if written.matches('(').count() != written.matches(')').count() {
            let what = format!("the parentheses in \"{}\" do not match", shorten(&written));
            let why = "each \"(\" needs its \")\"; in a list on one line a comma ends the item";
            let hint =
                "write a blank, as in scale(2.0 0.5), or quotes around the whole".to_string();
            problems.error_hint(node.at, Code::Filter, what, why, hint);
            continue;
        }
        let mut words = filter::words(&written);
        let Some(receiver) = words.pop() else {
            problems.error(
                node.at,
                Code::BadValue,
                "a conduit without a receiver",
                "write \"a.out: b.in\"",
            );
            continue;
        };
        let Some(receiver) = end(receiver, node.at, version, problems) else {
            continue;
        };
        let mut filters = Vec::with_capacity(words.len());
        for word in words {
            if word == "->" {
                let rest = written
                    .split_whitespace()
                    .filter(|word| *word != "->")
                    .collect::<Vec<_>>()
                    .join(" ");
                let hint = format!("write \"{sender}: {rest}\"");
                let (what, why) = (
                    "\"->\" is no part of a conduit",
                    "its colon stands for an arrow",
                );
                problems.error_hint(node.at, Code::Filter, what, why, hint);
                continue;
            }
            match filter::parse(word) {
                Ok(filter) => filters.push(filter),
                Err((why, hint)) => {
                    let what = format!("\"{}\" is not a filter", shorten(word));
                    problems.error_hint(node.at, Code::Filter, what, why, hint);
                }
            }
        }
        if let Err(why) = filter::check_order(&filters) {
            let hint = "write \"last\" before \"repeat\" before \"pad\"".to_string();
            let what =
                format!("the filters from \"{sender}\" to \"{receiver}\" are in the wrong order");
            problems.error_hint(node.at, Code::Filter, what, why, hint);
        }
        conduits.push(Conduit {
            sender: sender.clone(),
            receiver,
            filters,
            at,
            receiver_at: node.at,
        });
    }
}

/// The ends of a conduit that is written `a.out -> b.in`; YAML may have taken a part as the key.
fn arrow<'t>(sender: &'t str, receivers: &'t Node) -> Option<(&'t str, &'t str)> {
    let (from, to) = sender.split_once("->")?;
    let to = match receivers.kind() {
        NodeKind::Scalar(Scalar { text, .. }) if to.trim().is_empty() => &**text,
        _ => to,
    };
    let (from, to) = (from.trim(), to.trim());
    (is_dotted(from) && is_dotted(to)).then_some((from, to))
}

/// An end of a conduit: `component.port`, or in v0.2 `port` for a port of the model.
fn end(
    written: &str,
    at: TextPosition,
    version: FormatVersion,
    problems: &mut Problems,
) -> Option<PortReference> {
    let wrong = |problems: &mut Problems, why: &str, hint: Option<String>| {
        let what = format!("\"{}\" is not an end of a conduit", shorten(written));
        problems.error_hint(at, Code::BadName, what, why, hint);
        None
    };
    if let Some((stem, _)) = written.split_once('[') {
        let hint = is_dotted(stem)
            .then(|| format!("write \"{stem}\"; slots follow from the multiplicities"));
        return wrong(
            problems,
            "conduits join whole ports, so it has no index or slot",
            hint,
        );
    }
    if !is_dotted(written) {
        let hint = written
            .contains(',')
            .then(|| "several receivers are a list: [b.in, c.in]".to_string());
        return wrong(problems, "an end is written \"component.port\"", hint);
    }
    match written.rsplit_once('.') {
        Some((component, port)) => Some(PortReference {
            component: Some(problems.name(component)),
            port: problems.name(port),
        }),
        None if version == FormatVersion::V02 => Some(PortReference {
            component: None,
            port: problems.name(written),
        }),
        None => wrong(problems, "an end is written \"component.port\"", None),
    }
}

/// The entries under `matching_timelines:`.
pub(super) fn matching_timelines(node: &Node, problems: &mut Problems) -> Vec<MatchingTimelines> {
    let mut all = Vec::new();
    for entry in entries(node, "\"matching_timelines\"", problems).unwrap_or_default() {
        let Some(head) = timeline(&entry.key, entry.at, problems) else {
            continue;
        };
        let written = word_list(&entry.value, "a matching timeline", problems);
        if written.is_empty() {
            let why = "at least two timelines can match";
            problems.error(
                entry.at,
                Code::BadValue,
                format!("nothing matches \"{head}\""),
                why,
            );
        }
        let others: Vec<_> = written
            .iter()
            .filter_map(|(word, at)| timeline(word, *at, problems))
            .collect();
        all.push(MatchingTimelines {
            head,
            others,
            at: entry.at,
        });
    }
    all
}

fn timeline(written: &str, at: TextPosition, problems: &mut Problems) -> Option<Timeline> {
    let parts = written.trim_matches(':').split(':');
    if parts.clone().all(is_dotted) {
        return Some(parts.map(Name::from).collect::<Vec<_>>().into());
    }
    let why = "a timeline is written \"macro\", \"macro:micro\" or \"macro.fast\"";
    problems.error(
        at,
        Code::BadName,
        format!("\"{}\" is not a timeline", shorten(written)),
        why,
    );
    None
}
