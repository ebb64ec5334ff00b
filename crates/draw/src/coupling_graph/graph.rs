//! The graph behind a picture: boxes with ports, and nets. A net joins a sending port with all its
//! receiving ports. A component implemented by a model is a box with a graph inside.

use indexmap::IndexMap;
use titin_model::{
    Component, Conduit, Description, EnclosingModel, Model, Name, Operator, PortReference,
};

/// A model: components as boxes, and conduits as nets.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    pub(crate) boxes: Vec<ComponentBox>,
    /// The model's own ports. As a component of another model, the model is coupled by these ports.
    pub(crate) outer: Vec<BoxPort>,
    pub(crate) nets: Vec<Net>,
}

/// A component.
#[derive(Debug)]
pub(crate) struct ComponentBox {
    pub(crate) name: String,
    /// The names of the components around this component and the component's own name, joined by
    /// dots.
    pub(crate) path: String,
    /// The component's program or model.
    pub(crate) implementation: String,
    /// `[10]`; empty for a single instance.
    pub(crate) multiplicity: String,
    pub(crate) description: String,
    pub(crate) ports: Vec<BoxPort>,
    /// The component's model; `None` if a program implements the component.
    pub(crate) inner: Option<Graph>,
}

#[derive(Debug)]
pub(crate) struct BoxPort {
    /// The name as in a program: `states_out[]` if the peer has more instances.
    pub(crate) name: String,
    pub(crate) operator: Operator,
    pub(crate) connected: bool,
}

impl BoxPort {
    /// The name without the brackets of a vector port.
    pub(crate) fn bare_name(&self) -> &str {
        self.name.trim_end_matches("[]")
    }
}

/// A sending port, and all ports that receive from the sending port.
#[derive(Debug)]
pub(crate) struct Net {
    pub(crate) from: Pin,
    pub(crate) to: Vec<NetReceiver>,
    /// Whether the sender sends in each step (`O_I`), and not once after the steps (`O_F`).
    pub(crate) each_step: bool,
}

#[derive(Debug)]
pub(crate) struct NetReceiver {
    pub(crate) pin: Pin,
    /// The filters on the conduit, in the order in which messages pass the filters.
    pub(crate) filters: Vec<String>,
}

/// A port of a box, or of the model itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Pin {
    /// The number of the box in [`Graph::boxes`], and of the port in the box.
    Box { number: usize, port: usize },
    /// The number of the port in [`Graph::outer`].
    Outer(usize),
}

impl Graph {
    /// The graph of a model and of all models inside.
    pub(crate) fn of(description: &Description, model: &Model) -> Graph {
        GraphBuilder {
            description,
            chain: Vec::new(),
        }
        .graph(model, "")
    }

    fn port(&mut self, pin: Pin) -> &mut BoxPort {
        match pin {
            Pin::Box { number, port } => &mut self.boxes[number].ports[port],
            Pin::Outer(port) => &mut self.outer[port],
        }
    }
}

struct GraphBuilder<'d> {
    description: &'d Description,
    /// The models around the current model, and the current model, outermost first.
    chain: Vec<EnclosingModel<'d>>,
}

impl<'d> GraphBuilder<'d> {
    /// The graph of the model that implements the component at `path`.
    fn graph(&mut self, model: &'d Model, path: &str) -> Graph {
        self.chain.push(EnclosingModel::innermost(&model.name));
        let mut numbers = IndexMap::new();
        let mut boxes = Vec::new();
        for component in model.components.values() {
            let implementation = self.description.implementation(&self.chain, component);
            if implementation.is_none() && component.optional {
                continue;
            }
            numbers.insert(component.name.clone(), boxes.len());
            boxes.push(self.component_box(component, implementation, path));
        }
        self.chain.pop();
        let mut graph = Graph {
            boxes,
            outer: ports(&model.ports),
            nets: Vec::new(),
        };
        let mut nets: IndexMap<Pin, Net> = IndexMap::new();
        for conduit in &model.conduits {
            add_conduit(&mut graph, &mut nets, model, conduit, &numbers);
        }
        graph.nets = nets.into_values().collect();
        graph
    }

    fn component_box(
        &mut self,
        component: &'d Component,
        implementation: Option<&'d Name>,
        path: &str,
    ) -> ComponentBox {
        let own_path = joined(path, &component.name);
        let before: Vec<String> = self.chain.iter().map(|model| model.path.clone()).collect();
        for model in &mut self.chain {
            model.path = joined(&model.path, &component.name);
        }
        let model = implementation.and_then(|name| self.description.models.get(name));
        let inner = model.map(|model| self.graph(model, &own_path));
        for (model, before) in self.chain.iter_mut().zip(before) {
            model.path = before;
        }
        ComponentBox {
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

/// The path of a component; `path` is the path of the component's model.
fn joined(path: &str, component: &Name) -> String {
    let dot = if path.is_empty() { "" } else { "." };
    format!("{path}{dot}{component}")
}

fn ports(ports: &titin_model::Ports) -> Vec<BoxPort> {
    let port = |port: &titin_model::Port| BoxPort {
        name: port.name.to_string(),
        operator: port.operator,
        connected: false,
    };
    ports.values().map(port).collect()
}

/// Adds a conduit to the net of the conduit's sender. An optional component without an
/// implementation is left out, and so are the component's conduits.
fn add_conduit(
    graph: &mut Graph,
    nets: &mut IndexMap<Pin, Net>,
    model: &Model,
    conduit: &Conduit,
    numbers: &IndexMap<Name, usize>,
) {
    let from = pin(graph, numbers, &conduit.sender, true);
    let to = pin(graph, numbers, &conduit.receiver, false);
    let (Some(from), Some(to)) = (from, to) else {
        return;
    };
    let sender_dims = dimensions(model, &conduit.sender);
    let receiver_dims = dimensions(model, &conduit.receiver);
    if let (Some(sender), Some(receiver)) = (sender_dims, receiver_dims)
        && sender != receiver
    {
        let vector = graph.port(if sender < receiver { from } else { to });
        if !vector.name.ends_with("[]") {
            vector.name.push_str("[]");
        }
    }
    for pin in [from, to] {
        graph.port(pin).connected = true;
    }
    let each_step = matches!(graph.port(from).operator, Operator::OI | Operator::S);
    let filters = conduit.filters.iter().map(ToString::to_string).collect();
    let net = nets.entry(from).or_insert_with(|| Net {
        from,
        to: Vec::new(),
        each_step,
    });
    net.to.push(NetReceiver { pin: to, filters });
}

/// The number of dimensions of the multiplicity at an end; `None` at the model's own ports.
fn dimensions(model: &Model, end: &PortReference) -> Option<usize> {
    let component = model.components.get(end.component.as_ref()?)?;
    Some(component.multiplicity.len())
}

/// The pin of an end. Adds ports that no component declares, such as the port for settings.
fn pin(
    graph: &mut Graph,
    numbers: &IndexMap<Name, usize>,
    end: &PortReference,
    sends: bool,
) -> Option<Pin> {
    let (number, ports) = match &end.component {
        Some(name) => {
            let number = *numbers.get(name)?;
            (Some(number), &mut graph.boxes[number].ports)
        }
        None => (None, &mut graph.outer),
    };
    let declared = ports
        .iter()
        .position(|port| port.bare_name() == end.port.as_str());
    let port = declared.unwrap_or_else(|| {
        let operator = if sends { Operator::OF } else { Operator::FInit };
        ports.push(BoxPort {
            name: end.port.to_string(),
            operator,
            connected: true,
        });
        ports.len() - 1
    });
    Some(number.map_or(Pin::Outer(port), |number| Pin::Box { number, port }))
}
