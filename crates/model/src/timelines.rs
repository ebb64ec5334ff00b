//! Timelines: which components step together, which are called by others, and conduits between those that do not fit.
//!
//! A component that is called (through F_INIT) by another in each of its steps has a timeline inside the other's; the path of
//! timelines says how often it runs. A conduit fits if both ends are on the same path, filters taken into account. Components
//! that exchange messages in each step (O_I to S) step together: their timelines are taken to match, declared or not.

mod declare;
mod groups;
mod late;
mod report;
mod whole;

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

use crate::built_in::BuiltIn;
use crate::description::{Model, Port};
use crate::extras::Extras;
use crate::filter::Filter;
use crate::names::Name;
use crate::operator::{Operator, Timeline};
use crate::problem::{Code, Problems, TextPosition};
use declare::declare;
use groups::groups;
use report::{end, report_cycle, report_links, report_torn};
pub(crate) use whole::of_network;

/// A timeline of a component's own; a number in [`TimelineGraph::parts`].
type TimelineId = u32;

/// Components and conduits, of a model with its nested models closed or of a whole network.
struct TimelineGraph<'a> {
    /// Paths of the components; the last one is the model itself.
    names: Vec<&'a str>,
    links: Vec<GraphLink<'a>>,
    /// The timelines of each component's own: its usual one, and those of `timeline x:` in its ports.
    parts: Vec<(usize, Timeline)>,
    part_of: HashMap<(usize, Timeline), TimelineId>,
    /// The usual timeline of each component, which is nearly always the one that is meant.
    usual: Vec<Option<TimelineId>>,
    /// Union-find over parts.
    same: Vec<TimelineId>,
    /// Components that are used at some steps of another one, as `titin: fields` says: that one, and their F_INIT port. How often
    /// that is no timeline tells.
    coupled: HashMap<usize, Vec<(usize, String)>>,
}

struct GraphLink<'a> {
    sender: usize,
    sender_port: &'a Port,
    receiver: usize,
    receiver_port: &'a Port,
    filters: &'a [Filter],
    /// It leads through the port of a model, whose steps are then those of both ends.
    through: bool,
    at: TextPosition,
}

impl GraphLink<'_> {
    /// Whether an operator at one of its ends is a guess, and may be another.
    fn guessed(&self) -> bool {
        self.sender_port.guessed || self.receiver_port.guessed
    }

    /// Whether the receiver, to which it is a call, surely cannot start before the sender.
    fn calls(&self, model: usize) -> bool {
        self.sender != model && !self.guessed()
    }
}

/// What is known of the timeline around a component.
#[derive(Clone, Debug, PartialEq)]
enum OuterTimeline {
    Known(Vec<TimelineId>),
    /// It waits for itself, or its ports are guessed: there is nothing to compare.
    Unknown,
}

impl<'a> TimelineGraph<'a> {
    fn new(names: Vec<&'a str>) -> Self {
        let usual = vec![None; names.len()];
        TimelineGraph {
            names,
            links: Vec::new(),
            parts: Vec::new(),
            part_of: HashMap::new(),
            usual,
            same: Vec::new(),
            coupled: HashMap::new(),
        }
    }

    fn model(&self) -> usize {
        self.names.len() - 1
    }

    fn usual_part(&mut self, component: usize) -> TimelineId {
        if let Some(part) = self.usual[component] {
            return part;
        }
        let part = self.add_part(component, Timeline::default());
        self.usual[component] = Some(part);
        part
    }

    fn named_part(&mut self, component: usize, name: &Name) -> TimelineId {
        let key = (component, Timeline::from(vec![name.clone()]));
        if let Some(part) = self.part_of.get(&key) {
            return *part;
        }
        let part = self.add_part(component, key.1.clone());
        self.part_of.insert(key, part);
        part
    }

    fn add_part(&mut self, component: usize, own: Timeline) -> TimelineId {
        let part = self.parts.len() as TimelineId;
        self.parts.push((component, own));
        self.same.push(part);
        part
    }

    /// The sender gives the receiver some of its steps, as `titin: fields` says.
    fn couple(&mut self, sender: usize, receiver: usize, port: &Port) {
        if port.operator == Operator::FInit {
            let port = end(self, receiver, port);
            self.coupled
                .entry(receiver)
                .or_default()
                .push((sender, port));
        }
    }

    /// The parts that a port's own timeline adds to what is around its component.
    fn port_parts(&mut self, component: usize, port: &Port, path: &mut Vec<TimelineId>) {
        if port.timeline.is_root() {
            path.push(self.usual_part(component));
        }
        path.extend(
            port.timeline
                .parts()
                .iter()
                .map(|name| self.named_part(component, name)),
        );
    }

    fn find(&self, mut part: TimelineId) -> TimelineId {
        while self.same[part as usize] != part {
            part = self.same[part as usize];
        }
        part
    }

    fn unite(&mut self, a: TimelineId, b: TimelineId) -> bool {
        let (a, b) = (self.shorten(a), self.shorten(b));
        self.same[a.max(b) as usize] = a.min(b);
        a != b
    }

    /// As [`find`](TimelineGraph::find), and every part on the way has half as far to go afterwards.
    fn shorten(&mut self, mut part: TimelineId) -> TimelineId {
        while self.same[part as usize] != part {
            let above = self.same[part as usize];
            self.same[part as usize] = self.same[above as usize];
            part = self.same[part as usize];
        }
        part
    }

    fn equal(&self, a: &[TimelineId], b: &[TimelineId]) -> bool {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| self.find(*a) == self.find(*b))
    }

    /// The timeline along which messages of this port go.
    fn messages(
        &mut self,
        component: usize,
        port: &Port,
        around: &[OuterTimeline],
    ) -> Option<Vec<TimelineId>> {
        let OuterTimeline::Known(path) = &around[component] else {
            return None;
        };
        let mut path = path.clone();
        self.port_parts(component, port, &mut path);
        if matches!(port.operator, Operator::FInit | Operator::OF) {
            path.pop();
        }
        Some(path)
    }

    fn show(&self, path: &[TimelineId]) -> String {
        match self.timeline(path).to_string() {
            text if text.is_empty() => "once per run".into(),
            text => format!("in each step of \"{text}\""),
        }
    }

    fn timeline(&self, path: &[TimelineId]) -> Timeline {
        let name = |part: &TimelineId| {
            let (component, own) = &self.parts[*part as usize];
            let dot = if own.is_root() { "" } else { "." };
            format!("{}{dot}{own}", self.names[*component]).into()
        };
        path.iter().map(name).collect::<Vec<_>>().into()
    }

    /// The two timelines that a link between steps joins, if both ends have the same around them: nearly all links are like
    /// that, and this takes no memory.
    fn step(&mut self, link: usize, around: &[OuterTimeline]) -> Option<(TimelineId, TimelineId)> {
        let GraphLink {
            sender,
            sender_port,
            receiver,
            receiver_port,
            ..
        } = self.links[link];
        let (OuterTimeline::Known(from), OuterTimeline::Known(to)) =
            (&around[sender], &around[receiver])
        else {
            return None;
        };
        if sender_port.operator != Operator::OI
            || receiver_port.operator != Operator::S
            || !self.equal(from, to)
        {
            return None;
        }
        let mut part = |component, port: &Port| match port.timeline.parts() {
            [] => Some(self.usual_part(component)),
            [name] => Some(self.named_part(component, name)),
            _ => None,
        };
        Some((part(sender, sender_port)?, part(receiver, receiver_port)?))
    }

    /// Finds what a written part such as `macro` or `macro.fast` means.
    fn written_part(
        &mut self,
        components: &HashMap<&str, usize>,
        written: &str,
    ) -> Option<TimelineId> {
        if let Some(component) = components.get(written) {
            return Some(self.usual_part(*component));
        }
        let (component, own) = written.rsplit_once('.')?;
        let key = (*components.get(component)?, Timeline::parse(own));
        self.part_of.get(&key).copied()
    }
}

/// The links of each component that lead to its F_INIT ports.
fn callers(graph: &TimelineGraph<'_>) -> Vec<Vec<usize>> {
    let mut callers = vec![Vec::new(); graph.names.len()];
    for (i, link) in graph.links.iter().enumerate() {
        if link.receiver_port.operator == Operator::FInit && link.receiver != graph.model() {
            callers[link.receiver].push(i);
        }
    }
    callers
}

/// Components in an order in which each comes after those that call it, and the cycles that make it impossible for the others.
/// A cycle is a list of links, each from the component at which the one before ends.
fn order(graph: &TimelineGraph<'_>, callers: &[Vec<usize>]) -> (Vec<usize>, Vec<Vec<usize>>) {
    let model = graph.model();
    let mut waits: Vec<usize> = vec![0; graph.names.len()];
    let mut called: Vec<Vec<usize>> = vec![Vec::new(); graph.names.len()];
    for link in callers.iter().flatten().map(|i| &graph.links[*i]) {
        if link.calls(model) {
            waits[link.receiver] += 1;
            called[link.sender].push(link.receiver);
        }
    }
    let mut ready: VecDeque<usize> = (0..model).filter(|c| waits[*c] == 0).collect();
    let mut order = Vec::with_capacity(model);
    while let Some(component) = ready.pop_front() {
        order.push(component);
        for next in &called[component] {
            waits[*next] -= 1;
            if waits[*next] == 0 {
                ready.push_back(*next);
            }
        }
    }
    (order, cycles(graph, callers, &waits))
}

/// Among the components that still wait, walking to any caller that waits too must come round.
fn cycles(graph: &TimelineGraph<'_>, callers: &[Vec<usize>], waits: &[usize]) -> Vec<Vec<usize>> {
    let mut cycles = Vec::new();
    let mut state = vec![0u32; waits.len()];
    for start in 0..graph.model() {
        if waits[start] == 0 || state[start] != 0 {
            continue;
        }
        let walk = start as u32 + 1;
        let mut links = Vec::new();
        let mut at = start;
        while state[at] == 0 {
            state[at] = walk;
            let back = callers[at].iter().find(|i| {
                let link = &graph.links[**i];
                link.calls(graph.model()) && waits[link.sender] > 0
            });
            let Some(link) = back else { break };
            links.push(*link);
            at = graph.links[*link].sender;
        }
        if state[at] == walk
            && let Some(begin) = links.iter().position(|i| graph.links[*i].receiver == at)
        {
            cycles.push(links[begin..].iter().rev().copied().collect());
        }
    }
    cycles
}

/// A link to an F_INIT port, and the timeline along which its messages come.
type Incoming = (usize, Vec<TimelineId>);

/// Timelines as far as they can be found, and what does not fit.
struct TimelineAnalysis {
    around: Vec<OuterTimeline>,
    cycles: Vec<Vec<usize>>,
    /// Components whose F_INIT links come from different timelines.
    torn: Vec<(usize, Vec<Incoming>)>,
    /// Links whose reducers reduce more than there is.
    over_reduced: BTreeSet<usize>,
}

fn reducers(filters: &[Filter]) -> usize {
    filters.iter().filter(|f| f.kind.reduces()).count()
}

fn repeaters(filters: &[Filter]) -> usize {
    filters.iter().filter(|f| f.kind.repeats()).count()
}

/// Finds the timeline of every component, uniting those that exchange messages in each step if `infer` is set.
fn find(graph: &mut TimelineGraph<'_>, infer: bool) -> TimelineAnalysis {
    let callers = callers(graph);
    let (order, cycles) = order(graph, &callers);
    /// Each round unites timelines one level further in; models are never nested this deeply.
    const MOST_ROUNDS: usize = 64;
    let mut found = assign(graph, &callers, &order);
    for _ in 0..MOST_ROUNDS {
        if !infer || !unite_partners(graph, &found.around) {
            break;
        }
        found = assign(graph, &callers, &order);
    }
    found.cycles = cycles;
    found
}

fn assign(
    graph: &mut TimelineGraph<'_>,
    callers: &[Vec<usize>],
    order: &[usize],
) -> TimelineAnalysis {
    let mut around = vec![OuterTimeline::Unknown; graph.names.len()];
    around[graph.model()] = OuterTimeline::Known(Vec::new());
    let (mut torn, mut over_reduced) = (Vec::new(), BTreeSet::new());
    for component in order {
        let mut incoming: Vec<Incoming> = Vec::new();
        let mut unknown = graph.coupled.contains_key(component);
        for i in &callers[*component] {
            let (sender, port, filters) = {
                let link = &graph.links[*i];
                unknown |= link.guessed();
                (link.sender, link.sender_port, link.filters)
            };
            if repeaters(filters) > 0 {
                continue;
            }
            match graph.messages(sender, port, &around) {
                None => unknown = true,
                Some(path) if path.len() < reducers(filters) => {
                    over_reduced.insert(*i);
                }
                Some(mut path) => {
                    path.truncate(path.len() - reducers(filters));
                    incoming.push((*i, path));
                }
            }
        }
        let first = incoming
            .first()
            .map(|(_, path)| path.clone())
            .unwrap_or_default();
        if unknown {
            continue;
        }
        if incoming.iter().all(|(_, path)| graph.equal(path, &first)) {
            around[*component] = OuterTimeline::Known(first);
        } else {
            torn.push((*component, incoming));
        }
    }
    TimelineAnalysis {
        around,
        cycles: Vec::new(),
        torn,
        over_reduced,
    }
}

/// The links between the steps of two components, with the timelines that they join.
fn partners(
    graph: &mut TimelineGraph<'_>,
    around: &[OuterTimeline],
) -> Vec<(usize, TimelineId, TimelineId)> {
    let mut partners = Vec::new();
    for i in 0..graph.links.len() {
        let GraphLink {
            sender,
            sender_port,
            receiver,
            receiver_port,
            filters,
            through,
            ..
        } = graph.links[i];
        let model = graph.model();
        let each_step =
            sender_port.operator == Operator::OI && receiver_port.operator == Operator::S;
        let plain = !filters.iter().any(|f| f.kind.reduces() || f.kind.repeats());
        if !each_step || !plain || sender == model || receiver == model {
            continue;
        }
        if let Some((x, y)) = graph.step(i, around) {
            partners.push((i, x, y));
            continue;
        }
        let ends = (
            graph.messages(sender, sender_port, around),
            graph.messages(receiver, receiver_port, around),
        );
        let (Some(mut a), Some(mut b)) = ends else {
            continue;
        };
        if through && a.len() == b.len() {
            partners.extend(a.iter().zip(&b).map(|(a, b)| (i, *a, *b)));
        } else if let (Some(x), Some(y)) = (a.pop(), b.pop())
            && graph.equal(&a, &b)
        {
            partners.push((i, x, y));
        }
    }
    partners
}

fn unite_partners(graph: &mut TimelineGraph<'_>, around: &[OuterTimeline]) -> bool {
    let partners = partners(graph, around);
    let changed = partners
        .into_iter()
        .fold(false, |changed, (_, a, b)| graph.unite(a, b) | changed);
    (0..graph.same.len() as TimelineId)
        .for_each(|part| graph.same[part as usize] = graph.find(part));
    changed
}

/// Checks the timelines of one model; its nested models are checked on their own.
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
        // What comes with titin makes as many steps as there are messages.
        let follows = |component: usize| {
            let implementation = model
                .components
                .get_index(component)
                .and_then(|(_, c)| c.implementation.as_deref());
            implementation.is_some_and(|name| BuiltIn::from_name(name).is_some())
        };
        if follows(link.sender) || follows(link.receiver) {
            continue;
        }
        let what = format!(
            "{} is taken to step together with {}",
            graph.names[link.receiver], graph.names[link.sender]
        );
        let why = format!(
            "\"{}\" sends in each of its steps and \"{}\" receives in each of its own; nothing says that these are as many",
            end(&graph, link.sender, link.sender_port),
            end(&graph, link.receiver, link.receiver_port),
        );
        let hint = format!(
            "if they are, write matching_timelines: {{{}: {}}}",
            graph.names[link.sender], graph.names[link.receiver]
        );
        problems.warn(link.at, Code::Rate, what, why, hint);
    }
}

fn of_model<'a>(model: &'a Model, extras: &Extras) -> TimelineGraph<'a> {
    let mut names: Vec<&str> = model.components.keys().map(|name| name.as_str()).collect();
    names.push(&model.name);
    let mut graph = TimelineGraph::new(names);
    let settings_in = settings_in();
    for conduit in &model.conduits {
        let ends = [&conduit.receiver, &conduit.sender]
            .map(|end| extras.fields.get(end.to_string().as_str()));
        let keeps_step = ends
            .into_iter()
            .flatten()
            .next()
            .is_none_or(|(pattern, _)| pattern.keeps_step());
        let find = |end: &crate::description::PortReference| match &end.component {
            None => Some((model.components.len(), model.ports.get(&end.port)?)),
            Some(name) => {
                let (number, _, component) = model.components.get_full(name)?;
                let settings = (end.port == crate::merge::SETTINGS_IN).then_some(settings_in);
                Some((number, component.ports.get(&end.port).or(settings)?))
            }
        };
        if let (Some((sender, sender_port)), Some((receiver, receiver_port))) =
            (find(&conduit.sender), find(&conduit.receiver))
        {
            if !keeps_step {
                graph.couple(sender, receiver, receiver_port);
                continue;
            }
            let (filters, at) = (conduit.filters.as_slice(), conduit.receiver_at);
            graph.links.push(GraphLink {
                sender,
                sender_port,
                receiver,
                receiver_port,
                filters,
                through: false,
                at,
            });
        }
    }
    graph
}

/// The port that every component has without saying so.
fn settings_in() -> &'static Port {
    static PORT: std::sync::OnceLock<Port> = std::sync::OnceLock::new();
    PORT.get_or_init(|| Port {
        name: crate::merge::SETTINGS_IN.into(),
        operator: Operator::FInit,
        timeline: Timeline::default(),
        guessed: false,
        at: TextPosition::default(),
    })
}

/// Links between steps that no chain of such links leads back from, and whose timelines are not declared to match: that both
/// sides make as many steps is a guess.
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
