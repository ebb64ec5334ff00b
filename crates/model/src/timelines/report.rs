//! Reports of timelines that do not fit, with ports and filters.

use super::analysis::{Incoming, TimelineAnalysis};
use super::graph::{GraphLink, TimelineGraph, TimelineId, reducers, repeaters};
use crate::operator::Operator;
use crate::problem::{Code, Problems, listing};

/// The most conduits that one problem shows.
const MOST_LINES: usize = 12;

pub(super) fn report_cycle(graph: &TimelineGraph<'_>, cycle: &[usize], problems: &mut Problems) {
    let Some(first) = cycle.first().map(|i| &graph.links[*i]) else {
        return;
    };
    let mut why = String::from("each of these waits at F_INIT for the one before it:");
    for link in cycle.iter().take(MOST_LINES).map(|i| &graph.links[*i]) {
        why += &format!(
            "\n  {} ({}) -> {} ({})",
            graph.sender_path(link),
            link.sender_port.operator,
            graph.receiver_path(link),
            link.receiver_port.operator
        );
    }
    if cycle.len() > MOST_LINES {
        why += &format!("\n  and so on, through {} conduits", cycle.len());
    }
    let names = listing(cycle.iter().map(|i| graph.names[graph.links[*i].sender]));
    let hint =
        "receive in S what comes back, or begin the cycle with a component that needs nothing";
    let what = format!("{names} can never start");
    problems.error_hint(first.at, Code::Cycle, what, why, hint.to_string());
}

pub(super) fn report_torn(
    graph: &TimelineGraph<'_>,
    found: &TimelineAnalysis,
    problems: &mut Problems,
) {
    for i in &found.over_reduced {
        report_over_reduced(graph, &graph.links[*i], problems);
    }
    for (component, incoming) in &found.torn {
        let longest = incoming
            .iter()
            .map(|(_, path)| path.len())
            .max()
            .unwrap_or(0);
        let rare = incoming.iter().find(|(_, path)| path.len() < longest);
        let Some((link, _)) = rare.or(incoming.last()) else {
            continue;
        };
        let link = &graph.links[*link];
        let hint = match rare {
            Some(_) => format!(
                "if one message is to serve all uses, write \"{}: repeat {}\"",
                graph.sender_path(link),
                graph.receiver_path(link)
            ),
            None => hint_to_match(graph, incoming),
        };
        let name = graph.names[*component];
        let what = format!("the F_INIT ports of \"{name}\" receive at different rates");
        problems.error_hint(link.at, Code::Rate, what, rates_of(graph, incoming), hint);
    }
}

/// The F_INIT ports of a component with their rates.
fn rates_of(graph: &TimelineGraph<'_>, incoming: &[Incoming]) -> String {
    let mut rates =
        String::from("all F_INIT ports receive once per use, but here they are sent to:");
    for (i, path) in incoming.iter().take(MOST_LINES) {
        let link = &graph.links[*i];
        rates += &format!(
            "\n  {}, from {}: {}",
            link.receiver_port.name,
            graph.sender_path(link),
            graph.show(path)
        );
    }
    if incoming.len() > MOST_LINES {
        rates += &format!("\n  and {} more", incoming.len() - MOST_LINES);
    }
    rates
}

/// The hint for links from timelines of the same length that do not match.
fn hint_to_match(graph: &TimelineGraph<'_>, incoming: &[Incoming]) -> String {
    let apart = incoming
        .windows(2)
        .find_map(|pair| differing(graph, &pair[0].1, &pair[1].1));
    let (one, other) = apart.expect("they have as many parts, and are not the same");
    format!(
        "if these components step together, write {}",
        matching(graph, one, other)
    )
}

/// The first difference between two timelines of the same length.
fn differing(
    graph: &TimelineGraph<'_>,
    one: &[TimelineId],
    other: &[TimelineId],
) -> Option<(TimelineId, TimelineId)> {
    let mut parts = one.iter().zip(other).map(|(a, b)| (*a, *b));
    parts.find(|(a, b)| graph.find(*a) != graph.find(*b))
}

/// The line of the model that declares two timelines to match.
fn matching(graph: &TimelineGraph<'_>, one: TimelineId, other: TimelineId) -> String {
    format!(
        "matching_timelines: {{{}: {}}}",
        graph.timeline(&[one]),
        graph.timeline(&[other])
    )
}

fn report_over_reduced(graph: &TimelineGraph<'_>, link: &GraphLink<'_>, problems: &mut Problems) {
    let receiver = graph.receiver_path(link);
    let what = format!("\"last\" before \"{receiver}\" has nothing to reduce");
    let why = format!("\"{}\" sends once per run", graph.sender_path(link));
    let hint = "leave the filter out".to_string();
    problems.error_hint(link.at, Code::Rate, what, why, hint);
}

pub(super) fn report_links(
    graph: &mut TimelineGraph<'_>,
    found: &TimelineAnalysis,
    problems: &mut Problems,
) {
    for i in 0..graph.links.len() {
        let guessed = graph.links[i].guessed();
        if guessed || found.over_reduced.contains(&i) || steps_match(graph, i, found) {
            continue;
        }
        if problems.is_full() {
            return;
        }
        match caller_of(graph, i) {
            Some(port) => report_coupled(graph, &graph.links[i], &port, problems),
            None => report_link(graph, i, found, problems),
        }
    }
}

/// Whether a link without filters joins steps on matching timelines, as nearly all links do.
fn steps_match(graph: &mut TimelineGraph<'_>, link: usize, found: &TimelineAnalysis) -> bool {
    graph.links[link].filters.is_empty()
        && graph
            .step(link, &found.around)
            .is_some_and(|(x, y)| graph.find(x) == graph.find(y))
}

/// The F_INIT port through which the receiver of an S link uses the sender at some steps only.
fn caller_of(graph: &TimelineGraph<'_>, link: usize) -> Option<String> {
    let link = &graph.links[link];
    if link.receiver_port.operator != Operator::S || !link.filters.is_empty() {
        return None;
    }
    let mut callers = graph.coupled.get(&link.sender)?.iter();
    callers
        .find(|(caller, _)| *caller == link.receiver)
        .map(|(_, port)| port.clone())
}

/// Reports a component that is used at some steps of the receiver and answers at each step.
fn report_coupled(
    graph: &TimelineGraph<'_>,
    link: &GraphLink<'_>,
    port: &str,
    problems: &mut Problems,
) {
    let back = graph.receiver_path(link);
    let why = format!(
        "\"{}\" is used at some steps of \"{}\" alone, as \"{port}\" has it under `titin: fields`, and \"{back}\" is received in \
         each",
        graph.names[link.sender], graph.names[link.receiver]
    );
    let hint =
        format!("give it the same steps: `{back}: {{receiver: {{...}}}}` under `titin: fields`");
    problems.error_hint(link.at, Code::Rate, unequal_rates(graph, link), why, hint);
}

fn unequal_rates(graph: &TimelineGraph<'_>, link: &GraphLink<'_>) -> String {
    let (from, to) = (graph.sender_path(link), graph.receiver_path(link));
    format!("the rates of \"{from}\" and \"{to}\" do not match")
}

/// Reports a link whose ends are on different timelines.
fn report_link(
    graph: &mut TimelineGraph<'_>,
    link: usize,
    found: &TimelineAnalysis,
    problems: &mut Problems,
) {
    let Some((from, to)) = graph.both_messages(link, &found.around) else {
        return;
    };
    let link = &graph.links[link];
    let filters = link.filters;
    if from.len() < reducers(filters) {
        return report_over_reduced(graph, link, problems);
    }
    let Some(hint) = hint_for_rates(graph, link, &from, &to) else {
        return;
    };
    let through: Vec<_> = filters.iter().map(ToString::to_string).collect();
    let through = match through.is_empty() {
        true => String::new(),
        false => format!(", through \"{}\"", through.join(" ")),
    };
    let (sent, received) = (graph.show(&from), graph.show(&to));
    let why = format!("it is sent {sent}{through}, and received {received}");
    problems.error_hint(link.at, Code::Rate, unequal_rates(graph, link), why, hint);
}

/// The hint for a link on different timelines; `None` if the timelines match after all.
fn hint_for_rates(
    graph: &TimelineGraph<'_>,
    link: &GraphLink<'_>,
    from: &[TimelineId],
    to: &[TimelineId],
) -> Option<String> {
    let (less, more) = (reducers(link.filters), repeaters(link.filters));
    let kept = from.len() - less;
    let has_too_few = kept + more < to.len();
    if has_too_few || kept + more > to.len() {
        return Some(hint_for_number_of_filters(has_too_few, less, more));
    }
    if link.sender == graph.model() || link.receiver == graph.model() {
        return None;
    }
    if let Some((one, other)) = differing(graph, &from[..kept], &to[..kept]) {
        let line = matching(graph, one, other);
        return Some(format!(
            "if these timelines have the same points, write {line}"
        ));
    }
    let mut reduced = from[kept..].iter().zip(&to[kept..]);
    let is_undone = reduced.any(|(one, other)| graph.find(*one) == graph.find(*other));
    is_undone.then(|| "leave out one \"last\" and one \"repeat\" or \"pad\"".to_string())
}

/// The hint for a conduit with a wrong number of filters: `less` filters leave messages out, and
/// `more` filters add messages.
fn hint_for_number_of_filters(has_too_few: bool, less: usize, more: usize) -> String {
    let hint = match (has_too_few, less, more) {
        (true, 0, _) => "write \"repeat\" or \"pad\" before the receiver",
        (true, ..) => "write \"repeat\" or \"pad\" before the receiver, or leave a \"last\" out",
        (false, _, 0) => "write \"last\" before the receiver",
        (false, ..) => "write \"last\" before the receiver, or leave a \"repeat\" or \"pad\" out",
    };
    hint.to_string()
}
