//! Flattens nested models into one network.

mod dead_ends;
mod join;
mod shapes;

use std::collections::HashMap;
use std::sync::Arc;

use crate::built_in::BuiltIn;
use crate::description::{
    Component, Conduit, Description, MOST_INSTANCES, Model, PortReference, Program, ProgramKind,
    ResourceRequest,
};
use crate::names::{ComponentId, Name};
use crate::network::{AttachedBundles, Calls, Network, NetworkComponent};
use crate::operator::Timeline;
use crate::options::StartMode;
use crate::problem::{Code, ProblemReport, Problems};
use crate::timelines;
use crate::titin_section::UserFunction;

use dead_ends::check_dead_ends;
use join::{join, number_conduits};
use shapes::check_shapes;

/// The most components of a run, and the most conduits between components.
const MOST_COMPONENTS: usize = 1 << 20;
const MOST_BUNDLES: usize = 1 << 22;
/// The longest name of an instance. An instance has a folder of the same name, and file systems
/// allow 255 bytes.
const LONGEST_NAME: usize = 255;
/// The deepest nesting of models.
pub(crate) const DEEPEST: usize = 32;

impl Description {
    /// The flat model to run. The name of the model is needed only if the description has several
    /// models that no other model uses.
    pub fn network(&self, model: Option<&str>) -> Result<Network, ProblemReport> {
        let mut problems = Problems::with_files(self.files.clone());
        let network = self
            .root(model, &mut problems)
            .and_then(|root| flatten(self, root, &mut problems));
        match network {
            Some(network) if problems.errors() == 0 => Ok(network),
            _ => Err(problems.into_report()),
        }
    }
}

/// The result of flattening a component.
enum Expansion {
    /// Removed: optional and without an implementation.
    Nothing,
    /// A component of the network.
    Leaf(ComponentId),
    /// A model: the number of the nested model.
    Nested(usize),
}

/// A model at one place in the nesting.
struct NestedModel<'d> {
    model: &'d Model,
    /// The path of the component that the model implements; empty for the root.
    path: String,
    /// The model around, and the component there that this model implements.
    parent: Option<(usize, &'d Name)>,
    multiplicity: Vec<u32>,
    inner: HashMap<&'d Name, Expansion>,
    from: HashMap<&'d PortReference, Vec<&'d Conduit>>,
}

/// The program with this name, or the built-in component with this name.
pub(crate) fn program(description: &Description, name: &Name) -> Option<Arc<Program>> {
    if let Some(program) = description.programs.get(name) {
        return Some(program.clone());
    }
    let built_in = BuiltIn::from_name(name)?;
    let kind = ProgramKind::BuiltIn(built_in);
    Some(Arc::new(Program {
        name: name.clone(),
        kind,
        can_share_resources: true,
        ..Program::default()
    }))
}

pub(crate) fn flatten(
    description: &Description,
    root: &Model,
    problems: &mut Problems,
) -> Option<Network> {
    let mut flattener = Flattener {
        description,
        nodes: Vec::new(),
        components: Vec::new(),
        instances: 0,
        conduits: 0,
    };

    flattener.add_model(root, problems)?;
    let Flattener {
        nodes, components, ..
    } = flattener;
    let mut network = Network {
        model: root.name.clone(),
        by_path: components.iter().map(|c| (c.path.clone(), c.id)).collect(),
        attached: vec![AttachedBundles::default(); components.len()],
        components,
        bundles: Vec::new(),
        settings: description.settings.clone(),
        extras: description.extras.clone(),
        matching_timelines: Vec::new(),
    };
    join(&nodes, &mut network, problems)?;
    network.bundles.shrink_to_fit();
    check_dead_ends(&nodes, problems);
    check_shapes(&network, problems);
    number_conduits(&mut network, problems)?;
    let models: Vec<_> = nodes
        .iter()
        .map(|node| (node.path.clone(), node.model))
        .collect();
    timelines::of_network(&mut network, &models, problems);
    Some(network)
}

struct Flattener<'d> {
    description: &'d Description,
    nodes: Vec<NestedModel<'d>>,
    components: Vec<NetworkComponent>,
    instances: u64,
    /// The number of conduits in all models so far.
    conduits: usize,
}

impl<'d> Flattener<'d> {
    /// Adds `root` and all models inside, depth first, so that components keep the order of the
    /// description.
    fn add_model(&mut self, root: &'d Model, problems: &mut Problems) -> Option<()> {
        self.add_node(root, String::new(), None, Vec::new());
        // For each open model, the number of components that are done.
        let mut stack = vec![(0usize, 0usize)];
        while let Some((node, done)) = stack.pop() {
            let model = self.nodes[node].model;
            let Some((_, component)) = model.components.get_index(done) else {
                continue;
            };
            stack.push((node, done + 1));
            if let Some(nested) = self.add_component(node, component, problems)? {
                if stack.len() > DEEPEST {
                    let why = format!("at most {DEEPEST} models may stand inside each other");
                    problems.error(
                        component.at,
                        Code::Limit,
                        "models are nested too deeply",
                        why,
                    );
                    return None;
                }
                stack.push((nested, 0));
            }
        }
        Some(())
    }

    fn add_node(
        &mut self,
        model: &'d Model,
        path: String,
        parent: Option<(usize, &'d Name)>,
        multiplicity: Vec<u32>,
    ) -> usize {
        let mut from: HashMap<&PortReference, Vec<&Conduit>> =
            HashMap::with_capacity(model.conduits.len());
        for conduit in &model.conduits {
            from.entry(&conduit.sender).or_default().push(conduit);
        }
        let inner = HashMap::with_capacity(model.components.len());
        self.nodes.push(NestedModel {
            model,
            path,
            parent,
            multiplicity,
            inner,
            from,
        });
        self.nodes.len() - 1
    }

    /// The models around a nested model, outermost first, with the path from each; the paths stay
    /// empty if no custom implementation needs them.
    fn chain(&self, node: usize) -> Vec<(&'d Name, String)> {
        let mut chain = Vec::new();
        let mut path = String::new();
        let mut at = node;
        loop {
            chain.push((&self.nodes[at].model.name, path.clone()));
            let Some((parent, name)) = self.nodes[at].parent else {
                break;
            };
            if !self.description.custom_implementations.is_empty() {
                path = if path.is_empty() {
                    name.to_string()
                } else {
                    format!("{name}.{path}")
                };
            }
            at = parent;
        }
        chain.reverse();
        chain
    }

    /// The number of the node, if the component is a model. `None` if it cannot go on.
    fn add_component(
        &mut self,
        node: usize,
        component: &'d Component,
        problems: &mut Problems,
    ) -> Option<Option<usize>> {
        let chain = self.chain(node);
        let implementation = self.description.implementation(&chain, component);
        let above = &self.nodes[node].path;
        let path = if above.is_empty() {
            component.name.to_string()
        } else {
            format!("{above}.{}", component.name)
        };
        // A component that is not optional stays, even without an implementation.
        if implementation.is_none() && component.optional && !self.description.named.contains(&path)
        {
            self.nodes[node]
                .inner
                .insert(&component.name, Expansion::Nothing);
            return Some(None);
        }
        let mut multiplicity = self.nodes[node].multiplicity.clone();
        multiplicity.extend(&component.multiplicity);
        let model =
            implementation.and_then(|name| Some((name, self.description.models.get(name)?)));
        if let Some((implementation, model)) = model {
            if chain.iter().any(|(name, _)| *name == implementation) {
                let why = format!(
                    "component \"{path}\" is implemented by \"{implementation}\", which contains it"
                );
                problems.error(
                    component.at,
                    Code::ModelLoop,
                    "a model contains itself",
                    why,
                );
                return None;
            }
            self.conduits += model.conduits.len();
            if self.nodes.len() >= MOST_COMPONENTS || self.conduits > MOST_BUNDLES {
                let why = "too many models stand inside each other";
                problems.error(component.at, Code::Limit, "the model is too large", why);
                return None;
            }
            let nested = self.add_node(model, path, Some((node, &component.name)), multiplicity);
            self.nodes[node]
                .inner
                .insert(&component.name, Expansion::Nested(nested));
            return Some(Some(nested));
        }
        let count = multiplicity
            .iter()
            .try_fold(1u64, |n, size| n.checked_mul(u64::from(*size)));
        let total = count
            .and_then(|n| n.checked_add(self.instances))
            .filter(|n| *n <= MOST_INSTANCES);
        if total.is_none() || self.components.len() >= MOST_COMPONENTS {
            let why = format!(
                "a run has at most {MOST_COMPONENTS} components and {MOST_INSTANCES} instances"
            );
            problems.error(
                component.at,
                Code::Limit,
                format!("component \"{path}\" makes the run too large"),
                why,
            );
            return None;
        }
        let longest = path.len()
            + multiplicity
                .iter()
                .map(|size| format!("[{}]", size - 1).len())
                .sum::<usize>();
        if longest > LONGEST_NAME {
            let why = format!(
                "the name of an instance, with those of the models around it and with its indices, has at most \
                 {LONGEST_NAME} bytes, since its folder has it too; here it is {longest}"
            );
            problems.error(
                component.at,
                Code::Limit,
                "the name of a component is too long",
                why,
            );
        }
        let id = ComponentId(self.components.len() as u32);
        self.nodes[node]
            .inner
            .insert(&component.name, Expansion::Leaf(id));
        let full = format!("{}.{path}", self.nodes[0].model.name);
        let need = self
            .description
            .resources
            .get(full.as_str())
            .map_or(ResourceRequest::Threads(1), |r| r.need);
        let mut component = NetworkComponent {
            id,
            path: path.into(),
            description: component.description.clone(),
            ports: component.ports.clone(),
            implementation: implementation.cloned(),
            program: implementation.and_then(|name| program(self.description, name)),
            multiplicity,
            timeline: Timeline::default(),
            need,
            calls: Calls::All,
            first_instance: self.instances as u32,
            at: component.at,
        };
        component.calls = calls(&component, &self.description.start);
        self.components.push(component);
        self.instances = total.unwrap_or(MOST_INSTANCES);
        Some(None)
    }
}

/// The user filters that a component can call, as far as the description tells. A component that
/// the description does not start may call all.
fn calls(component: &NetworkComponent, start: &StartMode) -> Calls {
    match component.program.as_ref().map(|program| &program.kind) {
        _ if component.is_left_out_by(start) => Calls::All,
        Some(ProgramKind::BuiltIn(_)) => Calls::Nothing,
        Some(ProgramKind::Hosted(guest)) if matches!(guest.call, UserFunction::Library { .. }) => {
            Calls::Libraries
        }
        _ => Calls::All,
    }
}
