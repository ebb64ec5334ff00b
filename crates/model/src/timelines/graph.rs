//! The graph of components and conduits, and the timelines that the components have.

use std::collections::HashMap;

use crate::description::Port;
use crate::filter::Filter;
use crate::names::Name;
use crate::operator::{Operator, Timeline};
use crate::pattern::Pattern;
use crate::problem::TextPosition;

/// A timeline that begins at a component; a number in [`TimelineGraph::parts`].
pub(super) type TimelineId = u32;

/// Components and conduits: of one model, with nested models closed, or of a whole network.
pub(super) struct TimelineGraph<'a> {
    /// Paths of the components; the last entry is the model.
    pub(super) names: Vec<&'a str>,
    pub(super) links: Vec<GraphLink<'a>>,
    /// The timelines that begin at each component: the usual timeline, and one for each `timeline
    /// x:` among the ports.
    pub(super) parts: Vec<(usize, Timeline)>,
    pub(super) part_of: HashMap<(usize, Timeline), TimelineId>,
    /// The usual timeline of each component, for quick access.
    pub(super) usual: Vec<Option<TimelineId>>,
    /// The parent of each timeline in a union-find forest.
    pub(super) same: Vec<TimelineId>,
    /// Components that are used at some steps of a caller, as `titin: fields` says: the caller, and
    /// the F_INIT port. No timeline tells how often they run.
    pub(super) coupled: HashMap<usize, Vec<(usize, String)>>,
}

pub(super) struct GraphLink<'a> {
    pub(super) sender: usize,
    pub(super) sender_port: &'a Port,
    pub(super) receiver: usize,
    pub(super) receiver_port: &'a Port,
    pub(super) filters: &'a [Filter],
    /// Whether the link leads through the port of a model; its steps then belong to both ends.
    pub(super) through: bool,
    pub(super) at: TextPosition,
}

impl GraphLink<'_> {
    /// Whether the operator of an end was guessed and may be wrong.
    pub(super) fn guessed(&self) -> bool {
        self.sender_port.guessed || self.receiver_port.guessed
    }

    /// Whether the link joins steps, and no filter changes the number of messages.
    pub(super) fn joins_steps(&self) -> bool {
        self.sender_port.operator == Operator::OI
            && self.receiver_port.operator == Operator::S
            && reducers(self.filters) + repeaters(self.filters) == 0
    }

    /// Whether the receiver certainly cannot start before the sender.
    pub(super) fn calls(&self, model: usize) -> bool {
        self.sender != model && !self.guessed()
    }
}

/// The timeline around a component.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum OuterTimeline {
    Known(Vec<TimelineId>),
    /// The component waits for itself, or has guessed ports; nothing can be compared.
    Unknown,
}

impl<'a> TimelineGraph<'a> {
    pub(super) fn new(names: Vec<&'a str>) -> Self {
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

    pub(super) fn model(&self) -> usize {
        self.names.len() - 1
    }

    /// The name of a port in messages: `component.port`, or the bare name for a port of the model.
    pub(super) fn port_path(&self, component: usize, port: &Port) -> String {
        if component == self.model() {
            return port.name.to_string();
        }
        format!("{}.{}", self.names[component], port.name)
    }

    pub(super) fn sender_path(&self, link: &GraphLink<'_>) -> String {
        self.port_path(link.sender, link.sender_port)
    }

    pub(super) fn receiver_path(&self, link: &GraphLink<'_>) -> String {
        self.port_path(link.receiver, link.receiver_port)
    }

    pub(super) fn usual_part(&mut self, component: usize) -> TimelineId {
        if let Some(part) = self.usual[component] {
            return part;
        }
        let part = self.add_part(component, Timeline::default());
        self.usual[component] = Some(part);
        part
    }

    pub(super) fn named_part(&mut self, component: usize, name: &Name) -> TimelineId {
        let key = (component, Timeline::from(vec![name.clone()]));
        if let Some(part) = self.part_of.get(&key) {
            return *part;
        }
        let part = self.add_part(component, key.1.clone());
        self.part_of.insert(key, part);
        part
    }

    pub(super) fn add_part(&mut self, component: usize, own: Timeline) -> TimelineId {
        let part = self.parts.len() as TimelineId;
        self.parts.push((component, own));
        self.same.push(part);
        part
    }

    /// Adds a link. A link whose field is coupled at some steps alone joins no timelines.
    pub(super) fn add(&mut self, link: GraphLink<'a>, pattern: Option<&Pattern>) {
        if pattern.is_some_and(|pattern| !pattern.keeps_step()) {
            self.couple(link.sender, link.receiver, link.receiver_port);
        } else {
            self.links.push(link);
        }
    }

    /// Notes that the sender gives the receiver some of the sender's steps, as `titin: fields`
    /// says.
    fn couple(&mut self, sender: usize, receiver: usize, port: &Port) {
        if port.operator == Operator::FInit {
            let port = self.port_path(receiver, port);
            self.coupled
                .entry(receiver)
                .or_default()
                .push((sender, port));
        }
    }

    /// Extends `path`, the timeline around a component, by the timeline of a port.
    pub(super) fn port_parts(&mut self, component: usize, port: &Port, path: &mut Vec<TimelineId>) {
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

    pub(super) fn find(&self, mut part: TimelineId) -> TimelineId {
        while self.same[part as usize] != part {
            part = self.same[part as usize];
        }
        part
    }

    pub(super) fn unite(&mut self, a: TimelineId, b: TimelineId) -> bool {
        let (a, b) = (self.shorten(a), self.shorten(b));
        self.same[a.max(b) as usize] = a.min(b);
        a != b
    }

    /// As [`find`](TimelineGraph::find), and halves the way to the root for every timeline on the
    /// way.
    pub(super) fn shorten(&mut self, mut part: TimelineId) -> TimelineId {
        while self.same[part as usize] != part {
            let above = self.same[part as usize];
            self.same[part as usize] = self.same[above as usize];
            part = self.same[part as usize];
        }
        part
    }

    pub(super) fn equal(&self, a: &[TimelineId], b: &[TimelineId]) -> bool {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| self.find(*a) == self.find(*b))
    }

    /// The timeline of the messages of a port.
    pub(super) fn messages(
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

    /// The timelines of the messages at both ends of a link.
    pub(super) fn both_messages(
        &mut self,
        link: usize,
        around: &[OuterTimeline],
    ) -> Option<(Vec<TimelineId>, Vec<TimelineId>)> {
        let GraphLink {
            sender,
            sender_port,
            receiver,
            receiver_port,
            ..
        } = self.links[link];
        let from = self.messages(sender, sender_port, around);
        let to = self.messages(receiver, receiver_port, around);
        from.zip(to)
    }

    pub(super) fn show(&self, path: &[TimelineId]) -> String {
        match self.timeline(path).to_string() {
            text if text.is_empty() => "once per run".into(),
            text => format!("in each step of \"{text}\""),
        }
    }

    pub(super) fn timeline(&self, path: &[TimelineId]) -> Timeline {
        let name = |part: &TimelineId| {
            let (component, own) = &self.parts[*part as usize];
            let dot = if own.is_root() { "" } else { "." };
            format!("{}{dot}{own}", self.names[*component]).into()
        };
        path.iter().map(name).collect::<Vec<_>>().into()
    }

    /// The two timelines that a link between steps joins, if both ends have the same timeline
    /// around them. Nearly all links do, and this path allocates nothing.
    pub(super) fn step(
        &mut self,
        link: usize,
        around: &[OuterTimeline],
    ) -> Option<(TimelineId, TimelineId)> {
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

    /// Finds the timeline for a written name such as `macro` or `macro.fast`.
    pub(super) fn written_part(
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

pub(super) fn reducers(filters: &[Filter]) -> usize {
    filters.iter().filter(|f| f.kind.reduces()).count()
}

pub(super) fn repeaters(filters: &[Filter]) -> usize {
    filters.iter().filter(|f| f.kind.repeats()).count()
}
