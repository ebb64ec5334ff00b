//! Conduits and matching timelines.

use super::fields::entries;
use super::{text, word_list, wrong_type};
use crate::description::{Conduit, MatchingTimelines, PortReference};
use crate::document::FormatVersion;
use crate::filter::{self, Filter};
use crate::names::{Name, is_dotted};
use crate::operator::Timeline;
use crate::problem::{Code, Problems, TextPosition};
use crate::yaml::{MapEntry, Node, NodeKind, Scalar, ScalarType, shorten, with_colon};

/// The conduits under `conduits:`, as `sender: receiver` or `sender: [receivers]`.
pub(super) fn conduits(
    node: &Node,
    version: FormatVersion,
    problems: &mut Problems,
) -> Vec<Conduit> {
    let mut reader = ConduitReader {
        version,
        problems,
        found: Vec::new(),
    };
    match node.kind() {
        NodeKind::List(items) => items.iter().for_each(|item| reader.add_listed(item)),
        NodeKind::Scalar(Scalar {
            text,
            of: ScalarType::Text,
        }) => {
            report_text(text, node.at, reader.problems);
        }
        _ => {
            let all = entries(node, "\"conduits\"", reader.problems).unwrap_or_default();
            for entry in all {
                reader.add(&entry.key, entry.at, &entry.value);
            }
        }
    }
    reader.found.shrink_to_fit();
    reader.found
}

struct ConduitReader<'p> {
    version: FormatVersion,
    problems: &'p mut Problems,
    found: Vec<Conduit>,
}

impl ConduitReader<'_> {
    /// Reads a conduit in the long form: `{sender: a.out, receiver: b.in}`.
    fn add_listed(&mut self, item: &Node) {
        let Some(mut fields) = super::Fields::new(item, "a conduit", self.problems) else {
            return;
        };
        let (sender, receivers) = (fields.take("sender"), fields.take("receiver"));
        fields.finish(self.problems);
        let (Some(sender), Some(receivers)) = (sender, receivers) else {
            let why = "it needs a \"sender\" and a \"receiver\"";
            let what = "a conduit with one end";
            self.problems.error(item.at, Code::MissingKey, what, why);
            return;
        };
        if let Some(written) = text(sender, "a sender", self.problems) {
            self.add(&written, sender.at, receivers);
        }
    }

    /// Reads the conduits from a sender to its receivers.
    fn add(&mut self, sender: &str, at: TextPosition, receivers: &Node) {
        if let Some((from, to)) = arrow(sender, receivers) {
            let what = format!("\"{}\" is not an end of a conduit", shorten(sender));
            let why = "a conduit is written without an arrow";
            let hint = format!("write \"{from}: {to}\"");
            self.problems
                .error_hint(at, Code::BadName, what, why, Some(hint));
            return;
        }
        let Some(sender) = self.end(sender, at) else {
            return;
        };
        for node in receivers.items() {
            if let Some((filters, receiver)) = self.receiver(&sender, node) {
                self.found.push(Conduit {
                    sender: sender.clone(),
                    receiver,
                    filters,
                    at,
                    receiver_at: node.at,
                });
            }
        }
    }

    /// The filters and the receiver of a conduit: `last scale(2, 1) b.in`.
    fn receiver(
        &mut self,
        sender: &PortReference,
        node: &Node,
    ) -> Option<(Vec<Filter>, PortReference)> {
        if node.is_null() {
            let what = format!("the receiver of \"{sender}\"");
            return wrong_type(node, &what, "a receiver such as \"b.in\"", self.problems);
        }
        let written = text(node, "a receiver", self.problems)?;
        if written.matches('(').count() != written.matches(')').count() {
            report_parentheses(&written, node.at, self.problems);
            return None;
        }
        let mut words = filter::words(&written);
        let Some(receiver) = words.pop() else {
            let why = "write \"a.out: b.in\"";
            let what = "a conduit without a receiver";
            self.problems.error(node.at, Code::BadValue, what, why);
            return None;
        };
        let receiver = self.end(receiver, node.at)?;
        let mut filters = Vec::with_capacity(words.len());
        for word in words {
            match word {
                "->" => report_arrow(sender, &written, node.at, self.problems),
                word => filters.extend(filter(word, node.at, self.problems)),
            }
        }
        self.check_order(sender, &receiver, &filters, node.at);
        Some((filters, receiver))
    }

    fn check_order(
        &mut self,
        sender: &PortReference,
        receiver: &PortReference,
        filters: &[Filter],
        at: TextPosition,
    ) {
        if let Err(error) = filter::check_order(filters) {
            let what =
                format!("the filters from \"{sender}\" to \"{receiver}\" are in the wrong order");
            let hint = "write \"last\" before \"repeat\" before \"pad\"".to_string();
            let problems = &mut self.problems;
            problems.error_hint(at, Code::Filter, what, error.to_string(), hint);
        }
    }

    /// An end of a conduit: `component.port`, or in v0.2 `port` for a port of the model.
    fn end(&mut self, written: &str, at: TextPosition) -> Option<PortReference> {
        let end = written.rsplit_once('.');
        if is_dotted(written) && (end.is_some() || self.version == FormatVersion::V02) {
            let (component, port) = match end {
                Some((component, port)) => (Some(self.problems.name(component)), port),
                None => (None, written),
            };
            let port = self.problems.name(port);
            return Some(PortReference { component, port });
        }
        let what = format!("\"{}\" is not an end of a conduit", shorten(written));
        let (why, hint) = fault_of_end(written);
        self.problems.error_hint(at, Code::BadName, what, why, hint);
        None
    }
}

/// Why a text is not an end of a conduit, and the hint.
fn fault_of_end(written: &str) -> (&'static str, Option<String>) {
    if let Some((stem, _)) = written.split_once('[') {
        let why = "conduits join whole ports, so it has no index or slot";
        let hint = format!("write \"{stem}\"; slots follow from the multiplicities");
        return (why, is_dotted(stem).then_some(hint));
    }
    let hint = "several receivers are a list: [b.in, c.in]".to_string();
    (
        "an end is written \"component.port\"",
        written.contains(',').then_some(hint),
    )
}

/// Reads a filter, or reports a word that is none.
fn filter(word: &str, at: TextPosition, problems: &mut Problems) -> Option<Filter> {
    match filter::parse(word) {
        Ok(filter) => Some(filter),
        Err((why, hint)) => {
            let what = format!("\"{}\" is not a filter", shorten(word));
            problems.error_hint(at, Code::Filter, what, why, hint);
            None
        }
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

/// The entries under `matching_timelines:`.
pub(super) fn matching_timelines(node: &Node, problems: &mut Problems) -> Vec<MatchingTimelines> {
    let all = entries(node, "\"matching_timelines\"", problems).unwrap_or_default();
    all.iter()
        .filter_map(|entry| matching(entry, problems))
        .collect()
}

fn matching(entry: &MapEntry, problems: &mut Problems) -> Option<MatchingTimelines> {
    let head = timeline(&entry.key, entry.at, problems)?;
    let written = word_list(&entry.value, "a matching timeline", problems);
    if written.is_empty() {
        let what = format!("nothing matches \"{head}\"");
        let why = "at least two timelines can match";
        problems.error(entry.at, Code::BadValue, what, why);
    }
    let others = written
        .iter()
        .filter_map(|(word, at)| timeline(word, *at, problems));
    Some(MatchingTimelines {
        others: others.collect(),
        head,
        at: entry.at,
    })
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
