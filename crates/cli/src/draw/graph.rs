//! What a coupling graph shows: boxes with ports, and nets from one sending port to all that receive from it. Models that
//! implement components are graphs inside boxes.

use indexmap::IndexMap;
use titin_model::{Component, Description, Model, Name, Operator, PortReference};

/// A model as it is drawn.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    pub(crate) boxes: Vec<Part>,
    /// The model's own ports, which others see.
    pub(crate) outer: Vec<Port>,
    pub(crate) nets: Vec<Net>,
}

/// A component.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) name: String,
    /// The dotted path from the outermost model.
    pub(crate) path: String,
    /// The program or model that does the work.
    pub(crate) implementation: String,
    /// `[10]`; empty for one instance.
    pub(crate) multiplicity: String,
    pub(crate) description: String,
    pub(crate) ports: Vec<Port>,
    /// What is inside, for a model.
    pub(crate) inner: Option<Graph>,
}

#[derive(Debug)]
pub(crate) struct Port {
    /// As in a program: `states_out[]` if its peer has more instances.
    pub(crate) name: String,
    pub(crate) operator: Operator,
    pub(crate) connected: bool,
}

/// One sending port, and those that receive from it.
#[derive(Debug)]
pub(crate) struct Net {
    pub(crate) from: Pin,
    pub(crate) to: Vec<Receiver>,
    /// Whether messages pass in each step of the sender, not once at its end.
    pub(crate) each_step: bool,
}

#[derive(Debug)]
pub(crate) struct Receiver {
    pub(crate) pin: Pin,
    /// What happens to messages on the way.
    pub(crate) filters: Vec<String>,
}

/// A port of a box, or of the model itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Pin {
    Box { part: usize, port: usize },
    Outer(usize),
}

/// The graph of a model and of the models within.
pub(crate) fn of(description: &Description, model: &Model) -> Graph {
    Maker {
        description,
        chain: Vec::new(),
    }
    .graph(model, "")
}

struct Maker<'d> {
    description: &'d Description,
    /// The models around, outermost first, each with the dotted path from it to the current one.
    chain: Vec<(&'d Name, String)>,
}

impl<'d> Maker<'d> {
    fn graph(&mut self, model: &'d Model, path: &str) -> Graph {
        self.chain.push((&model.name, String::new()));
        let mut numbers = IndexMap::new();
        let mut boxes = Vec::new();
        for component in model.components.values() {
            let implementation = self.description.implementation(&self.chain, component);
            if implementation.is_none() && component.optional {
                continue;
            }
            numbers.insert(component.name.clone(), boxes.len());
            boxes.push(self.part(component, implementation, path));
        }
        self.chain.pop();
        let mut graph = Graph {
            boxes,
            outer: ports(&model.ports),
            nets: Vec::new(),
        };
        let mut by_sender: IndexMap<Pin, Net> = IndexMap::new();
        for conduit in &model.conduits {
            let from = pin(&mut graph, &numbers, &conduit.sender, true);
            let to = pin(&mut graph, &numbers, &conduit.receiver, false);
            let (Some(from), Some(to)) = (from, to) else {
                continue;
            };
            let depth = |end: &PortReference| {
                end.component
                    .as_ref()
                    .and_then(|name| model.components.get(name))
                    .map(|c| c.multiplicity.len())
            };
            if let (Some(sender), Some(receiver)) =
                (depth(&conduit.sender), depth(&conduit.receiver))
                && sender != receiver
            {
                let vector = port(&mut graph, if sender < receiver { from } else { to });
                if !vector.name.ends_with("[]") {
                    vector.name.push_str("[]");
                }
            }
            for pin in [from, to] {
                port(&mut graph, pin).connected = true;
            }
            let each_step = matches!(port(&mut graph, from).operator, Operator::OI | Operator::S);
            let filters = conduit.filters.iter().map(ToString::to_string).collect();
            let net = by_sender.entry(from).or_insert_with(|| Net {
                from,
                to: Vec::new(),
                each_step,
            });
            net.to.push(Receiver { pin: to, filters });
        }
        graph.nets = by_sender.into_values().collect();
        graph
    }

    fn part(
        &mut self,
        component: &'d Component,
        implementation: Option<&'d Name>,
        path: &str,
    ) -> Part {
        let dot = if path.is_empty() { "" } else { "." };
        let own_path = format!("{path}{dot}{}", component.name);
        let before: Vec<String> = self.chain.iter().map(|(_, path)| path.clone()).collect();
        for (_, path) in &mut self.chain {
            let dot = if path.is_empty() { "" } else { "." };
            path.push_str(&format!("{dot}{}", component.name));
        }
        let model = implementation.and_then(|name| self.description.models.get(name));
        let inner = model.map(|model| self.graph(model, &own_path));
        for ((_, path), before) in self.chain.iter_mut().zip(before) {
            *path = before;
        }
        Part {
            name: component.name.to_string(),
            path: own_path,
            implementation: implementation.map(ToString::to_string).unwrap_or_default(),
            multiplicity: component
                .multiplicity
                .iter()
                .map(|size| format!("[{size}]"))
                .collect(),
            description: component.description.clone(),
            ports: ports(&component.ports),
            inner,
        }
    }
}

fn ports(ports: &titin_model::Ports) -> Vec<Port> {
    let port = |port: &titin_model::Port| Port {
        name: port.name.to_string(),
        operator: port.operator,
        connected: false,
    };
    ports.values().map(port).collect()
}

fn port(graph: &mut Graph, pin: Pin) -> &mut Port {
    match pin {
        Pin::Box { part, port } => &mut graph.boxes[part].ports[port],
        Pin::Outer(port) => &mut graph.outer[port],
    }
}

/// The pin of an end. A port that nobody declares, such as the one that takes settings, is added.
fn pin(
    graph: &mut Graph,
    numbers: &IndexMap<Name, usize>,
    end: &PortReference,
    sends: bool,
) -> Option<Pin> {
    let (part, ports) = match &end.component {
        Some(name) => {
            let part = *numbers.get(name)?;
            (Some(part), &mut graph.boxes[part].ports)
        }
        None => (None, &mut graph.outer),
    };
    let known = ports
        .iter()
        .position(|port| port.name.trim_end_matches("[]") == end.port.as_str());
    let port = known.unwrap_or_else(|| {
        let operator = if sends { Operator::OF } else { Operator::FInit };
        ports.push(Port {
            name: end.port.to_string(),
            operator,
            connected: true,
        });
        ports.len() - 1
    });
    Some(part.map_or(Pin::Outer(port), |part| Pin::Box { part, port }))
}
