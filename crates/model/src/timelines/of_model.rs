//! The timelines of one model, with its nested models closed.

use std::collections::{HashMap, HashSet};

use super::analysis::{find, partners};
use super::graph::{GraphLink, OuterTimeline, TimelineGraph, TimelineId};
use super::matching::declare;
use super::report::{report_cycle, report_links, report_torn};
use super::strongly_connected::groups;
use crate::built_in::BuiltIn;
use crate::description::{Model, Port, PortReference, SETTINGS_IN};
use crate::problem::{Code, Problems, TextPosition};
use crate::titin_section::Extras;

/// Checks the timelines of one model. Nested models are checked separately.
pub(crate) fn check(model: &Model, extras: &Extras, strict: bool, problems: &mut Problems) {
    let mut graph = of_model(model, extras);
    declare(&mut graph, model, "", problems);
    let one_way = if strict {
        Vec::new()
    } else {
        one_way(&mut graph)
    };
    let found = find(&mut graph, !strict);
    for cycle in &found.cycles {
        report_cycle(&graph, cycle, problems);
    }
    report_torn(&graph, &found, problems);
    report_links(&mut graph, &found, problems);
    if one_way.is_empty() {
        return;
    }
    let partners: HashSet<usize> = partners(&mut graph, &found.around)
        .into_iter()
        .map(|(i, _, _)| i)
        .collect();
    for i in one_way.into_iter().filter(|i| partners.contains(i)) {
        let link = &graph.links[i];
        // A built-in component makes as many steps as there are messages.
        if !is_built_in(model, link.sender) && !is_built_in(model, link.receiver) {
            report_guessed_match(&graph, link, problems);
        }
    }
}

fn is_built_in(model: &Model, component: usize) -> bool {
    let component = model.components.get_index(component);
    let implementation = component.and_then(|(_, component)| component.implementation.as_deref());
    implementation.is_some_and(|name| BuiltIn::from_name(name).is_some())
}

/// Warns of a link between steps whose numbers are only guessed to be equal.
fn report_guessed_match(graph: &TimelineGraph<'_>, link: &GraphLink<'_>, problems: &mut Problems) {
    let (sender, receiver) = (graph.names[link.sender], graph.names[link.receiver]);
    let what = format!("{receiver} is taken to step together with {sender}");
    let why = format!(
        "\"{}\" sends in each of its steps and \"{}\" receives in each of its own; nothing says that these are as many",
        graph.sender_path(link),
        graph.receiver_path(link),
    );
    let hint = format!("if they are, write matching_timelines: {{{sender}: {receiver}}}");
    problems.warn(link.at, Code::Rate, what, why, hint);
}

fn of_model<'a>(model: &'a Model, extras: &Extras) -> TimelineGraph<'a> {
    let mut names: Vec<&str> = model.components.keys().map(|name| name.as_str()).collect();
    names.push(&model.name);
    let mut graph = TimelineGraph::new(names);
    for conduit in &model.conduits {
        let ends = (
            port_at(model, &conduit.sender),
            port_at(model, &conduit.receiver),
        );
        let (Some((sender, sender_port)), Some((receiver, receiver_port))) = ends else {
            continue;
        };
        let mut paths = [&conduit.receiver, &conduit.sender].into_iter();
        let pattern = paths.find_map(|end| extras.fields.get(end.to_string().as_str()));
        let link = GraphLink {
            sender,
            sender_port,
            receiver,
            receiver_port,
            filters: conduit.filters.as_slice(),
            through: false,
            at: conduit.receiver_at,
        };
        graph.add(link, pattern.map(|(pattern, _)| pattern));
    }
    graph
}

/// The number of the component at an end of a conduit, and the port.
fn port_at<'a>(model: &'a Model, end: &PortReference) -> Option<(usize, &'a Port)> {
    let Some(name) = &end.component else {
        return Some((model.components.len(), model.ports.get(&end.port)?));
    };
    let (number, _, component) = model.components.get_full(name)?;
    let settings = (end.port == SETTINGS_IN).then(settings_in);
    Some((number, component.ports.get(&end.port).or(settings)?))
}

/// The port for settings, for components that do not list it.
fn settings_in() -> &'static Port {
    static PORT: std::sync::OnceLock<Port> = std::sync::OnceLock::new();
    PORT.get_or_init(|| Port::for_settings(TextPosition::default()))
}

/// Links between steps of components that no chain of such links leads back from, and whose
/// timelines are not declared to match. For these links, equal numbers of steps at both ends are a
/// guess.
fn one_way(graph: &mut TimelineGraph<'_>) -> Vec<usize> {
    let all = vec![OuterTimeline::Known(Vec::new()); graph.names.len()];
    let partners: Vec<_> = partners(graph, &all)
        .into_iter()
        .filter(|(_, a, b)| graph.find(*a) != graph.find(*b))
        .collect();
    let mut onward: HashMap<TimelineId, Vec<TimelineId>> = HashMap::new();
    for (_, a, b) in &partners {
        onward
            .entry(graph.find(*a))
            .or_default()
            .push(graph.find(*b));
    }
    let group = groups(&onward);
    partners
        .into_iter()
        .filter(|(_, a, b)| group.get(&graph.find(*a)) != group.get(&graph.find(*b)))
        .map(|p| p.0)
        .collect()
}
