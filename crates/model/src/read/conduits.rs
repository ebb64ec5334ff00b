//! Conduits and matching timelines.

use super::fields::entries;
use super::{text, word_list, wrong_type};
use crate::description::{Conduit, MatchingTimelines, PortReference};
use crate::document::FormatVersion;
use crate::filter::{self, Filter};
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
    match node.kind() {
        NodeKind::List(items) => {
            for item in items {
                listed_conduit(&mut conduits, item, version, problems);
            }
        }
        NodeKind::Scalar(Scalar {
            text,
            of: ScalarType::Text,
        }) => {
            report_text(text, node.at, problems);
        }
        _ => {
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
        }
    }
    conduits.shrink_to_fit();
    conduits
}

/// Reads a conduit in the long form: `{sender: a.out, receiver: b.in}`.
fn listed_conduit(
    conduits: &mut Vec<Conduit>,
    item: &Node,
    version: FormatVersion,
    problems: &mut Problems,
) {
    let Some(mut fields) = super::Fields::new(item, "a conduit", problems) else {
        return;
    };
    let (sender, receivers) = (fields.take("sender"), fields.take("receiver"));
    fields.finish(problems);
    let (Some(sender), Some(receivers)) = (sender, receivers) else {
        let why = "it needs a \"sender\" and a \"receiver\"";
        problems.error(item.at, Code::MissingKey, "a conduit with one end", why);
        return;
    };
    if let Some(written) = text(sender, "a sender", problems) {
        add(conduits, &written, sender.at, receivers, version, problems);
    }
}

/// Reports lines without colons under `conduits:`, which YAML joins into one text.
fn report_text(text: &str, at: TextPosition, problems: &mut Problems) {
    let words = text.split(' ').collect::<Vec<_>>();
    let first = match &words[..] {
        [_, "->", ..] => 3,
        [one, ..] if one.contains(':') || one.contains("->") => 1,
        _ => 2,
    };
    let hint = with_colon(&words[..first.min(words.len())].join(" "));
    let why =
        "each is a sender, a colon, a blank and a receiver; without these there is only a text";
    problems.error_hint(at, Code::WrongType, "these are no conduits", why, hint);
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
    let receivers = match receivers.kind() {
        NodeKind::List(items) => items.as_slice(),
        _ => std::slice::from_ref(receivers),
    };
    for node in receivers {
        let receiver_at = node.at;
        if let Some((filters, receiver)) = receiver(&sender, node, version, problems) {
            conduits.push(Conduit {
                sender: sender.clone(),
                receiver,
                filters,
                at,
                receiver_at,
            });
        }
    }
}

/// The filters and the receiver of a conduit: `last scale(2, 1) b.in`.
fn receiver(
    sender: &PortReference,
    node: &Node,
    version: FormatVersion,
    problems: &mut Problems,
) -> Option<(Vec<Filter>, PortReference)> {
    if node.is_null() {
        let what = format!("the receiver of \"{sender}\"");
        return wrong_type(node, &what, "a receiver such as \"b.in\"", problems);
    }
    let written = text(node, "a receiver", problems)?;
    if written.matches('(').count() != written.matches(')').count() {
        report_parentheses(&written, node.at, problems);
        return None;
    }
    let mut words = filter::words(&written);
    let Some(receiver) = words.pop() else {
        let why = "write \"a.out: b.in\"";
        problems.error(node.at, Code::BadValue, "a conduit without a receiver", why);
        return None;
    };
    let receiver = end(receiver, node.at, version, problems)?;
    let mut filters = Vec::with_capacity(words.len());
    for word in words {
        if word == "->" {
            report_arrow(sender, &written, node.at, problems);
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
    Some((filters, receiver))
}

fn report_parentheses(written: &str, at: TextPosition, problems: &mut Problems) {
    let what = format!("the parentheses in \"{}\" do not match", shorten(written));
    let why = "each \"(\" needs its \")\"; in a list on one line a comma ends the item";
    let hint = "write a blank, as in scale(2.0 0.5), or quotes around the whole".to_string();
    problems.error_hint(at, Code::Filter, what, why, hint);
}

/// Reports an arrow among the filters.
fn report_arrow(sender: &PortReference, written: &str, at: TextPosition, problems: &mut Problems) {
    let words = written.split_whitespace().filter(|word| *word != "->");
    let hint = format!(
        "write \"{sender}: {}\"",
        words.collect::<Vec<_>>().join(" ")
    );
    let (what, why) = (
        "\"->\" is no part of a conduit",
        "its colon stands for an arrow",
    );
    problems.error_hint(at, Code::Filter, what, why, hint);
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
