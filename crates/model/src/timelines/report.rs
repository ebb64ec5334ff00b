//! Reports of timelines that do not fit, with ports and filters.

use super::analysis::{TimelineAnalysis, reducers, repeaters};
use super::graph::{GraphLink, TimelineGraph, TimelineId};
use crate::operator::Operator;
use crate::problem::{Code, Problems, listing};

/// The most conduits that one problem shows.
const MOST_LINES: usize = 12;

pub(super) fn report_cycle(graph: &TimelineGraph<'_>, cycle: &[usize], problems: &mut Problems) {
    let Some(first) = cycle.first().map(|i| &graph.links[*i]) else {
        return;
    };
    let mut why = String::from("each of these waits at F_INIT for the one before it:");
    for i in cycle.iter().take(MOST_LINES) {
        let link = &graph.links[*i];
        why += &format!(
            "\n  {} ({}) -> {} ({})",
            graph.port_path(link.sender, link.sender_port),
            link.sender_port.operator,
            graph.port_path(link.receiver, link.receiver_port),
            link.receiver_port.operator
        );
    }
    if cycle.len() > MOST_LINES {
        why += &format!("\n  and so on, through {} conduits", cycle.len());
    }
    let names = listing(cycle.iter().map(|i| graph.names[graph.links[*i].sender]));
    let what = format!("{names} can never start");
    let hint =
        "receive in S what comes back, or begin the cycle with a component that needs nothing"
            .to_string();
    problems.error_hint(first.at, Code::Cycle, what, why, hint);
}

pub(super) fn report_torn(
    graph: &TimelineGraph<'_>,
    found: &TimelineAnalysis,
    problems: &mut Problems,
) {
    for i in &found.over_reduced {
        let link = &graph.links[*i];
        over_reduced(graph, link, problems);
    }
    for (component, incoming) in &found.torn {
        let mut why =
            String::from("all F_INIT ports receive once per use, but here they are sent to:");
        for (i, path) in incoming.iter().take(MOST_LINES) {
            let link = &graph.links[*i];
            why += &format!(
                "\n  {}, from {}: {}",
                link.receiver_port.name,
                graph.port_path(link.sender, link.sender_port),
                graph.show(path)
            );
        }
        if incoming.len() > MOST_LINES {
            why += &format!("\n  and {} more", incoming.len() - MOST_LINES);
        }
        let longest = incoming
            .iter()
            .map(|(_, path)| path.len())
            .max()
            .unwrap_or(0);
        let rare = incoming
            .iter()
            .find(|(_, path)| path.len() < longest)
            .map(|(i, _)| *i);
        let shown = rare.or_else(|| incoming.last().map(|(i, _)| *i));
        let Some(link) = shown.map(|i| &graph.links[i]) else {
            continue;
        };
        let hint = if rare.is_some() {
            format!(
                "if one message is to serve all uses, write \"{}: repeat {}\"",
                graph.port_path(link.sender, link.sender_port),
                graph.port_path(link.receiver, link.receiver_port)
            )
        } else {
            let paths = || incoming.iter().map(|(_, path)| path);
            let apart = paths()
                .zip(paths().skip(1))
                .find_map(|(one, other)| differing(graph, one, other));
            let (one, other) = apart.expect("they have as many parts, and are not the same");
            format!(
                "if these components step together, write {}",
                matching(graph, one, other)
            )
        };
        let what = format!(
            "the F_INIT ports of \"{}\" receive at different rates",
            graph.names[*component]
        );
        problems.error_hint(link.at, Code::Rate, what, why, hint);
    }
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

fn over_reduced(graph: &TimelineGraph<'_>, link: &GraphLink<'_>, problems: &mut Problems) {
    let what = format!(
        "\"last\" before \"{}\" has nothing to reduce",
        graph.port_path(link.receiver, link.receiver_port)
    );
    let why = format!(
        "\"{}\" sends once per run",
        graph.port_path(link.sender, link.sender_port)
    );
    problems.error_hint(
        link.at,
        Code::Rate,
        what,
        why,
        "leave the filter out".to_string(),
    );
}

pub(super) fn report_links(
    graph: &mut TimelineGraph<'_>,
    found: &TimelineAnalysis,
    problems: &mut Problems,
) {
    for i in 0..graph.links.len() {
        let GraphLink {
            sender,
            sender_port,
            receiver,
            receiver_port,
            filters,
            at,
            ..
        } = graph.links[i];
        if sender_port.guessed || receiver_port.guessed || found.over_reduced.contains(&i) {
            continue;
        }
        if filters.is_empty()
            && let Some((x, y)) = graph.step(i, &found.around)
            && graph.find(x) == graph.find(y)
        {
            continue;
        }
        if problems.is_full() {
            return;
        }
        let answers = receiver_port.operator == Operator::S && filters.is_empty();
        let coupled = graph.coupled.get(&sender).into_iter().flatten();
        if let Some((_, port)) = coupled.into_iter().find(|(caller, _)| *caller == receiver)
            && answers
        {
            let back = graph.port_path(receiver, receiver_port);
            let what = format!(
                "the rates of \"{}\" and \"{back}\" do not match",
                graph.port_path(sender, sender_port)
            );
            let why = format!(
                "\"{}\" is used at some steps of \"{}\" alone, as \"{port}\" has it under `titin: fields`, and \"{back}\" is received in \
                 each",
                graph.names[sender], graph.names[receiver]
            );
            let hint = format!(
                "give it the same steps: `{back}: {{receiver: {{...}}}}` under `titin: fields`"
            );
            problems.error_hint(at, Code::Rate, what, why, hint);
            continue;
        }
        let (from, to) = (
            graph.messages(sender, sender_port, &found.around),
            graph.messages(receiver, receiver_port, &found.around),
        );
        let (Some(from), Some(to)) = (from, to) else {
            continue;
        };
        let (less, more) = (reducers(filters), repeaters(filters));
        if from.len() < less {
            over_reduced(graph, &graph.links[i], problems);
            continue;
        }
        let model = graph.model();
        let kept = from.len() - less;
        let hint = if kept + more < to.len() {
            let or = if less > 0 {
                ", or leave a \"last\" out"
            } else {
                ""
            };
            format!("write \"repeat\" or \"pad\" before the receiver{or}")
        } else if kept + more > to.len() {
            let or = if more > 0 {
                ", or leave a \"repeat\" or \"pad\" out"
            } else {
                ""
            };
            format!("write \"last\" before the receiver{or}")
        } else if sender == model || receiver == model {
            continue;
        } else if let Some((one, other)) = differing(graph, &from[..kept], &to[..kept]) {
            format!(
                "if these timelines have the same points, write {}",
                matching(graph, one, other)
            )
        } else if (kept..to.len().min(from.len())).any(|k| graph.find(from[k]) == graph.find(to[k]))
        {
            "leave out one \"last\" and one \"repeat\" or \"pad\"".to_string()
        } else {
            continue;
        };
        let what = format!(
            "the rates of \"{}\" and \"{}\" do not match",
            graph.port_path(sender, sender_port),
            graph.port_path(receiver, receiver_port)
        );
        let through: Vec<_> = filters.iter().map(ToString::to_string).collect();
        let through = if through.is_empty() {
            String::new()
        } else {
            format!(", through \"{}\"", through.join(" "))
        };
        let why = format!(
            "it is sent {}{through}, and received {}",
            graph.show(&from),
            graph.show(&to)
        );
        problems.error_hint(at, Code::Rate, what, why, hint);
    }
}
