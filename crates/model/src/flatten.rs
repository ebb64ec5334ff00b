//! Flattens nested models into one network.

mod dead_ends;
mod join;
mod shapes;

use std::collections::HashMap;
use std::sync::Arc;

use crate::built_in::{self, BuiltIn};
use crate::description::{
    Component, Conduit, Description, MOST_INSTANCES, Model, PortReference, Program, ProgramKind,
    ResourceRequest,
};
use crate::names::{ComponentId, Name};
use crate::network::{AttachedBundles, Calls, Network, NetworkComponent};
use crate::operator::Timeline;
use crate::options::StartPolicy;
use crate::problem::{Code, ProblemReport, Problems};
use crate::roots::EnclosingModel;
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

/// The program with this name, of the description or of titin.
pub(crate) fn program(description: &Description, name: &Name) -> Option<Arc<Program>> {
    if let Some(program) = description.programs.get(name) {
        return Some(program.clone());
    }
    let program = if name.as_str() == built_in::BMI {
        Program {
            kind: ProgramKind::Executable("python3".into()),
            args: built_in::BMI_WORDS.map(str::to_owned).into(),
            ..Program::default()
        }
    } else {
        Program {
            kind: ProgramKind::BuiltIn(BuiltIn::from_name(name)?),
            ..Program::default()
        }
    };
    Some(Arc::new(Program {
        name: name.clone(),
        can_share_resources: true,
        ..program
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
    if description.allow_missing && network.components.is_empty() && !root.components.is_empty() {
        report_nothing_to_run(root, problems);
        return None;
    }
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

    /// The models around a nested model, outermost first. The paths stay empty if no custom
    /// implementation needs them.
    fn chain(&self, node: usize) -> Vec<EnclosingModel<'d>> {
        let mut chain = Vec::new();
        let mut path = String::new();
        let mut at = node;
        loop {
            chain.push(EnclosingModel {
                name: &self.nodes[at].model.name,
                path: path.clone(),
            });
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

    /// Adds a component of a nested model. Returns the number of the new nested model if the
    /// component is a model; `None` ends the flattening.
    fn add_component(
        &mut self,
        node: usize,
        component: &'d Component,
        problems: &mut Problems,
    ) -> Option<Option<usize>> {
        let chain = self.chain(node);
        let implementation = self.description.implementation(&chain, component);
        let path = self.path_of(node, component);
        // A component that is not optional stays, even without an implementation, unless the caller
        // allows such components.
        let may_be_missing = component.optional || self.description.allow_missing;
        if implementation.is_none() && may_be_missing && !self.description.named.contains(&path) {
            if !component.optional {
                warn_of_missing(component, &path, problems);
            }
            self.nodes[node]
                .inner
                .insert(&component.name, Expansion::Nothing);
            return Some(None);
        }
        let model = implementation.and_then(|name| self.description.models.get(name));
        let expansion = match model {
            Some(model) => {
                if chain.iter().any(|around| *around.name == model.name) {
                    report_model_loop(component, &path, &model.name, problems);
                    return None;
                }
                Expansion::Nested(self.add_nested(node, component, path, model, problems)?)
            }
            None => {
                Expansion::Leaf(self.add_leaf(node, component, path, implementation, problems)?)
            }
        };
        let nested = match expansion {
            Expansion::Nested(nested) => Some(nested),
            _ => None,
        };
        self.nodes[node].inner.insert(&component.name, expansion);
        Some(nested)
    }

    /// The dotted path of a component of a nested model.
    fn path_of(&self, node: usize, component: &Component) -> String {
        match self.nodes[node].path.as_str() {
            "" => component.name.to_string(),
            above => format!("{above}.{}", component.name),
        }
    }

    /// The multiplicity of a component, with the dimensions of the models around first.
    fn multiplicity_of(&self, node: usize, component: &Component) -> Vec<u32> {
        let mut multiplicity = self.nodes[node].multiplicity.clone();
        multiplicity.extend(&component.multiplicity);
        multiplicity
    }

    /// Adds the model that implements a component; `None` if the model gets too large.
    fn add_nested(
        &mut self,
        node: usize,
        component: &'d Component,
        path: String,
        model: &'d Model,
        problems: &mut Problems,
    ) -> Option<usize> {
        self.conduits += model.conduits.len();
        if self.nodes.len() >= MOST_COMPONENTS || self.conduits > MOST_BUNDLES {
            let why = "too many models stand inside each other";
            problems.error(component.at, Code::Limit, "the model is too large", why);
            return None;
        }
        let multiplicity = self.multiplicity_of(node, component);
        Some(self.add_node(model, path, Some((node, &component.name)), multiplicity))
    }

    /// Adds a component that no model implements; `None` if the run gets too large.
    fn add_leaf(
        &mut self,
        node: usize,
        component: &Component,
        path: String,
        implementation: Option<&Name>,
        problems: &mut Problems,
    ) -> Option<ComponentId> {
        let multiplicity = self.multiplicity_of(node, component);
        let Some(total) = self.instances_with(&multiplicity) else {
            report_too_large(component, &path, problems);
            return None;
        };
        check_name_length(component, &path, &multiplicity, problems);
        let id = ComponentId(self.components.len() as u32);
        let mut leaf = NetworkComponent {
            id,
            need: self.need_of(&path),
            path: path.into(),
            description: component.description.clone(),
            ports: component.ports.clone(),
            implementation: implementation.cloned(),
            program: implementation.and_then(|name| program(self.description, name)),
            multiplicity,
            timeline: Timeline::default(),
            calls: Calls::All,
            first_instance: self.instances as u32,
            at: component.at,
        };
        leaf.calls = calls(&leaf, &self.description.start);
        self.components.push(leaf);
        self.instances = total;
        Some(id)
    }

    /// The number of instances with one more component of this multiplicity; `None` beyond the
    /// limits of a run.
    fn instances_with(&self, multiplicity: &[u32]) -> Option<u64> {
        let more = multiplicity
            .iter()
            .try_fold(1u64, |count, size| count.checked_mul(u64::from(*size)))?;
        let total = self.instances.checked_add(more)?;
        (total <= MOST_INSTANCES && self.components.len() < MOST_COMPONENTS).then_some(total)
    }

    /// The resources that the description gives to the component at a path.
    fn need_of(&self, path: &str) -> ResourceRequest {
        let full = format!("{}.{path}", self.nodes[0].model.name);
        let resources = self.description.resources.get(full.as_str());
        resources.map_or(ResourceRequest::Threads(1), |resources| resources.need)
    }
}

fn report_model_loop(component: &Component, path: &str, model: &Name, problems: &mut Problems) {
    let why = format!("component \"{path}\" is implemented by \"{model}\", which contains it");
    problems.error(
        component.at,
        Code::ModelLoop,
        "a model contains itself",
        why,
    );
}

fn warn_of_missing(component: &Component, path: &str, problems: &mut Problems) {
    let what = format!("component \"{path}\" is left out, with its conduits");
    let why = "it has no implementation, and missing components are allowed";
    let hint = "add \"implementation: ...\" to have it run".to_owned();
    problems.warn(
        component.at,
        Code::NoImplementation,
        what,
        why.to_owned(),
        hint,
    );
}

fn report_nothing_to_run(root: &Model, problems: &mut Problems) {
    let what = format!("nothing of the model {} can run", root.name);
    let why = "all its components are left out, since none has an implementation";
    let hint =
        "add \"implementation: ...\" to the components, or the file that has the implementations";
    problems.error_hint(root.at, Code::NoImplementation, what, why, hint.to_owned());
}

fn report_too_large(component: &Component, path: &str, problems: &mut Problems) {
    let why =
        format!("a run has at most {MOST_COMPONENTS} components and {MOST_INSTANCES} instances");
    let what = format!("component \"{path}\" makes the run too large");
    problems.error(component.at, Code::Limit, what, why);
}

/// Reports a component whose last instance has a name that is too long.
fn check_name_length(
    component: &Component,
    path: &str,
    multiplicity: &[u32],
    problems: &mut Problems,
) {
    let indices = multiplicity
        .iter()
        .map(|size| format!("[{}]", size - 1).len());
    let longest = path.len() + indices.sum::<usize>();
    if longest <= LONGEST_NAME {
        return;
    }
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

/// The user filters that a component can call, as far as the description tells. A component that
/// the description does not start may call all.
fn calls(component: &NetworkComponent, start: &StartPolicy) -> Calls {
    match component.program.as_ref().map(|program| &program.kind) {
        _ if component.is_left_out_by(start) => Calls::All,
        Some(ProgramKind::BuiltIn(_)) => Calls::Nothing,
        Some(ProgramKind::Hosted(guest)) if matches!(guest.call, UserFunction::Library { .. }) => {
            Calls::Libraries
        }
        _ => Calls::All,
    }
}
