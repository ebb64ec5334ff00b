//! Taking nested models apart.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::built_in::BuiltIn;
use crate::description::{
    Component, Conduit, Description, Model, Port, PortReference, Program, ProgramKind,
    ResourceRequest,
};
use crate::extras::{BufferLimits, LinkTuning, UserFunction};
use crate::filter::Filter;
use crate::load::StartMode;
use crate::merge::SETTINGS_IN;
use crate::names::{BundleId, ComponentId, Name};
use crate::network::{AttachedBundles, Bundle, Calls, Network, NetworkComponent};
use crate::operator::{Operator, Timeline};
use crate::problem::{Code, ProblemReport, Problems, TextPosition, did_you_mean, listing};
use crate::timelines;

/// The most instances of a run, and so of a component in one dimension.
pub(crate) const MOST_INSTANCES: u64 = 1 << 24;
/// The most components of a run, and the most conduits between them.
const MOST_COMPONENTS: usize = 1 << 20;
const MOST_BUNDLES: usize = 1 << 22;
/// The most conduits between instances.
const MOST_CONDUITS: u64 = 1 << 31;
/// The longest name of an instance. No file system has longer ones.
const LONGEST_NAME: usize = 255;
/// The deepest nesting of models.
pub(crate) const DEEPEST: usize = 32;

impl Description {
    /// The flat model to run. A name is needed only where several models are not used by others.
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

    /// The implementation of a component, custom ones included: those of the outermost model win. `around` has the models that
    /// it stands in, outermost first, each with the dotted path from there to the model that holds the component.
    pub fn implementation<'d>(
        &'d self,
        around: &[(&Name, String)],
        component: &'d Component,
    ) -> Option<&'d Name> {
        if !self.custom_implementations.is_empty() {
            for (model, path) in around {
                let dot = if path.is_empty() { "" } else { "." };
                let key = format!("{model}.{path}{dot}{}", component.name);
                if let Some(custom) = self.custom_implementations.get(key.as_str()) {
                    return custom.implementation.as_ref();
                }
            }
        }
        component.implementation.as_ref()
    }

    /// Models that no component uses as its implementation.
    pub(crate) fn roots(&self) -> Vec<&Model> {
        let mut used: HashSet<&Name> = self
            .custom_implementations
            .values()
            .filter_map(|custom| custom.implementation.as_ref())
            .collect();
        for model in self.models.values() {
            used.extend(
                model
                    .components
                    .values()
                    .filter_map(|c| c.implementation.as_ref()),
            );
        }
        self.models
            .values()
            .filter(|model| !used.contains(&model.name))
            .collect()
    }

    /// Where a model that contains itself does so, and by which others.
    fn model_loop(&self) -> Option<(TextPosition, String)> {
        let user_of = |model: &Model| {
            let using = |user: &&Model| {
                user.components
                    .values()
                    .any(|component| component.implementation.as_ref() == Some(&model.name))
            };
            self.models.values().find(using)
        };
        // From a model to one that uses it, and on: among so many, who is always used is met again.
        let mut path = vec![self.models.values().next()?];
        let start = loop {
            let user = user_of(path.last()?)?;
            if let Some(start) = path.iter().position(|model| model.name == user.name) {
                break start;
            }
            path.push(user);
        };
        let last = path[path.len() - 1];
        let within = path[start..path.len() - 1].iter().rev().chain([&last]);
        let within = within
            .map(|model| format!("\"{}\"", model.name))
            .collect::<Vec<_>>();
        let why = format!(
            "\"{}\" contains {}",
            last.name,
            within.join(", which contains ")
        );
        let at = last.at;
        Some((at, why))
    }

    /// The model to run.
    pub(crate) fn root(&self, wanted: Option<&str>, problems: &mut Problems) -> Option<&Model> {
        let at = TextPosition::default();
        let names = || self.models.keys().map(Name::as_str);
        if let Some(wanted) = wanted {
            let found = self.models.get(wanted);
            if found.is_none() {
                let why = format!("the models are {}", listing(names()));
                let what = format!("there is no model \"{wanted}\"");
                problems.error_hint(at, Code::NoModel, what, why, did_you_mean(wanted, names()));
            }
            return found;
        }
        let roots = self.roots();
        match roots.as_slice() {
            [root] => Some(root),
            [] if self.models.is_empty() => {
                // What else is wrong says why: the models could not be read, for instance.
                if problems.errors() == 0 {
                    problems.error(
                        at,
                        Code::NoModel,
                        "there is no model to run",
                        "the files describe none",
                    );
                }
                None
            }
            [] => {
                match self.model_loop() {
                    Some((at, why)) => {
                        problems.error(at, Code::ModelLoop, "a model contains itself", why)
                    }
                    None => {
                        let why = "every model is the implementation of a component of another";
                        problems.error(at, Code::NoModel, "there is no model to run", why);
                    }
                }
                None
            }
            several => {
                let why = format!(
                    "these are used by no other: {}",
                    listing(several.iter().map(|m| m.name.as_str()))
                );
                let hint = "say which, with --model NAME".to_string();
                problems.error_hint(
                    at,
                    Code::NoModel,
                    "it is not clear which model to run",
                    why,
                    hint,
                );
                None
            }
        }
    }
}

/// What a component comes to be.
enum Expansion {
    /// Taken out.
    Nothing,
    /// A component of the network.
    Leaf(ComponentId),
    /// A model: the number of its node.
    Nested(usize),
}

/// A model at one place in the nesting.
struct NestedModel<'d> {
    model: &'d Model,
    /// The path of the component that it implements; empty for the root.
    path: String,
    /// The node and the component that it implements.
    parent: Option<(usize, &'d Name)>,
    multiplicity: Vec<u32>,
    inner: HashMap<&'d Name, Expansion>,
    from: HashMap<&'d PortReference, Vec<&'d Conduit>>,
}

/// The program with this name; one of titin's own if it is called so.
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
    /// Conduits in all nodes.
    conduits: usize,
}

impl<'d> Flattener<'d> {
    /// The nodes of `root` and of everything in it, depth first, so that components keep the order of the description.
    fn add_model(&mut self, root: &'d Model, problems: &mut Problems) -> Option<()> {
        self.add_node(root, String::new(), None, Vec::new());
        // For each open node, how many of its components are done.
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

    /// The models around a node, outermost first, with the path from each to the node if anybody needs it.
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
        // A component that must be there stays, even if what runs it is not described.
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

/// Which of the user's own filters a component can call, as far as the description tells; of what it does not have started, all.
fn calls(component: &NetworkComponent, start: &StartMode) -> Calls {
    match component.program.as_ref().map(|program| &program.kind) {
        _ if start.leaves_out(component) => Calls::All,
        Some(ProgramKind::BuiltIn(_)) => Calls::Nothing,
        Some(ProgramKind::Hosted(guest)) if matches!(guest.call, UserFunction::Library { .. }) => {
            Calls::Libraries
        }
        _ => Calls::All,
    }
}

/// Follows each conduit from the program that sends to the programs that receive, through the ports of models.
fn join(nodes: &[NestedModel<'_>], network: &mut Network, problems: &mut Problems) -> Option<()> {
    /// More hops than this are a loop.
    const MOST_HOPS: usize = 4 * DEEPEST;
    for (number, node) in nodes.iter().enumerate() {
        for first in &node.model.conduits {
            let Some(Expansion::Leaf(sender)) = first
                .sender
                .component
                .as_ref()
                .and_then(|c| node.inner.get(c))
            else {
                continue;
            };
            let mut todo: Vec<(usize, &Conduit, Vec<Filter>, usize)> =
                vec![(number, first, Vec::new(), 0)];
            while let Some((at, conduit, mut filters, hops)) = todo.pop() {
                if hops > MOST_HOPS || network.bundles.len() >= MOST_BUNDLES {
                    let why = if hops > MOST_HOPS {
                        "following it through the ports of models leads round and round".to_string()
                    } else {
                        format!("a run has at most {MOST_BUNDLES} conduits between components")
                    };
                    problems.error(
                        first.at,
                        Code::Limit,
                        format!("conduit \"{}\" leads nowhere", first.sender),
                        why,
                    );
                    return None;
                }
                filters.extend(conduit.filters.iter().cloned());
                let (next, end) = match &conduit.receiver.component {
                    Some(name) => match nodes[at].inner.get(name) {
                        Some(Expansion::Leaf(receiver)) => {
                            let ends = (
                                *sender,
                                &first.sender.port,
                                *receiver,
                                &conduit.receiver.port,
                            );
                            add_bundle(network, ends, filters, hops > 0, first.receiver_at);
                            continue;
                        }
                        Some(Expansion::Nested(nested)) => (
                            *nested,
                            PortReference {
                                component: None,
                                port: conduit.receiver.port.clone(),
                            },
                        ),
                        Some(Expansion::Nothing) | None => continue,
                    },
                    None => match nodes[at].parent {
                        Some((parent, name)) => (
                            parent,
                            PortReference {
                                component: Some(name.clone()),
                                port: conduit.receiver.port.clone(),
                            },
                        ),
                        None => continue,
                    },
                };
                for conduit in nodes[next].from.get(&end).into_iter().flatten().rev() {
                    todo.push((next, conduit, filters.clone(), hops + 1));
                }
            }
        }
    }
    Some(())
}

/// A conduit to or from the port of a model goes on inside, or there is no message for it or nobody to take one.
fn check_dead_ends(nodes: &[NestedModel<'_>], problems: &mut Problems) {
    let mut told: HashSet<TextPosition> = HashSet::new();
    let inside: HashMap<&Name, HashSet<&Name>> = nodes
        .iter()
        .skip(1)
        .map(|node| {
            let out = |conduit: &'_ &Conduit| conduit.receiver.component.is_none();
            (
                &node.model.name,
                node.model
                    .conduits
                    .iter()
                    .filter(out)
                    .map(|c| &c.receiver.port)
                    .collect(),
            )
        })
        .collect();
    for node in nodes {
        for conduit in &node.model.conduits {
            let ends = [
                (&conduit.sender, false, conduit.at),
                (&conduit.receiver, true, conduit.receiver_at),
            ];
            for (end, into, at) in ends {
                let nested = end.component.as_ref().and_then(|name| node.inner.get(name));
                let Some(Expansion::Nested(nested)) = nested else {
                    continue;
                };
                let NestedModel { model, from, .. } = &nodes[*nested];
                let joined = match into {
                    true => from.contains_key(&PortReference {
                        component: None,
                        port: end.port.clone(),
                    }),
                    false => inside
                        .get(&model.name)
                        .is_some_and(|ports| ports.contains(&end.port)),
                };
                if joined || !model.ports.contains_key(&end.port) || !told.insert(at) {
                    continue;
                }
                let (what, side) = match into {
                    true => (
                        format!("what is sent to \"{end}\" is received by nothing"),
                        "to",
                    ),
                    false => (format!("nothing is ever sent by \"{end}\""), "from"),
                };
                let why = format!(
                    "no conduit leads {side} port \"{}\" inside model \"{}\", which implements it",
                    end.port, model.name
                );
                let hint = match into {
                    true => format!(
                        "write {}: COMPONENT.PORT there, or leave this conduit out",
                        end.port
                    ),
                    false => format!(
                        "write COMPONENT.PORT: {} there, or leave this conduit out",
                        end.port
                    ),
                };
                problems.warn(at, Code::Unconnected, what, why, hint);
            }
        }
    }
}

fn add_bundle(
    network: &mut Network,
    (sender, sender_port, receiver, receiver_port): (ComponentId, &Name, ComponentId, &Name),
    filters: Vec<Filter>,
    through_models: bool,
    at: TextPosition,
) {
    let id = BundleId(network.bundles.len() as u32);
    let extras = &network.extras;
    let path = |component: ComponentId, port: &Name| {
        format!("{}.{port}", network.components[component.index()].path)
    };
    let (mut buffer, mut medium, mut pattern) = (extras.buffer.default, None, None);
    if !extras.buffer.ports.is_empty() || !extras.medium.is_empty() || !extras.fields.is_empty() {
        let (from, to) = (path(sender, sender_port), path(receiver, receiver_port));
        let patterns = [&to, &from].map(|path| extras.fields.get(path.as_str()));
        pattern = patterns
            .into_iter()
            .flatten()
            .next()
            .map(|(pattern, _)| Box::new(pattern.clone()));
        let own = |path: &str| {
            extras
                .buffer
                .ports
                .get(path)
                .map_or(BufferLimits::default(), |(buffer, _)| *buffer)
        };
        buffer = own(&to).or(own(&from)).or(buffer);
        medium = [to, from]
            .iter()
            .find_map(|path| extras.medium.get(path.as_str()))
            .map(|pinned| pinned.medium);
    }
    let link = {
        let of = |component: ComponentId| network.components[component.index()].path.as_str();
        let link = extras.links.between(of(sender), of(receiver));
        (link != LinkTuning::default()).then(|| link.into())
    };
    let (sender_port, receiver_port) = (sender_port.clone(), receiver_port.clone());
    if receiver_port == SETTINGS_IN {
        let ports = Arc::make_mut(&mut network.components[receiver.index()].ports);
        ports.entry(receiver_port.clone()).or_insert_with(|| Port {
            name: SETTINGS_IN.into(),
            operator: Operator::FInit,
            timeline: Timeline::default(),
            guessed: false,
            at,
        });
    }
    network.attached[sender.index()].sending.push(id);
    network.attached[receiver.index()].receiving.push(id);
    network.bundles.push(Bundle {
        id,
        sender,
        sender_port,
        receiver,
        receiver_port,
        filters,
        buffer,
        medium,
        pattern,
        link,
        first_conduit: 0,
        through_models,
        at,
    });
}

/// Each end of a bundle with its port and the other end.
fn both_ways<'n>(
    bundle: &'n Bundle,
    sender: &'n NetworkComponent,
    receiver: &'n NetworkComponent,
) -> [(&'n NetworkComponent, &'n Name, &'n NetworkComponent); 2] {
    [
        (sender, &bundle.sender_port, receiver),
        (receiver, &bundle.receiver_port, sender),
    ]
}

/// The dimensions that both ends share must have the same sizes, and all peers of a port the same further ones.
/// Where they have not, nobody is joined, but all else can still be checked.
fn check_shapes(network: &Network, problems: &mut Problems) {
    let show = |component: &NetworkComponent| match component.multiplicity.as_slice() {
        [] => format!("\"{}\" is one instance", component.path),
        sizes => format!("\"{}\" has multiplicity {sizes:?}", component.path),
    };
    // Most ports have no slots, and then there is nothing to compare.
    let mut slots: HashMap<(ComponentId, &Name), (&[u32], &NetworkComponent)> = HashMap::new();
    for bundle in &network.bundles {
        let (sender, receiver) = network.ends(bundle);
        let (s, r) = (&sender.multiplicity, &receiver.multiplicity);
        let common = s.len().min(r.len());
        if s[..common] != r[..common] {
            let what = format!(
                "the multiplicities of \"{}.{}\" and \"{}.{}\" do not fit",
                sender.path, bundle.sender_port, receiver.path, bundle.receiver_port
            );
            let why = format!(
                "{}, {}; instances are paired one to one",
                show(sender),
                show(receiver)
            );
            let hint =
                "give both the same multiplicity, or one of them further dimensions".to_string();
            problems.error_hint(bundle.at, Code::Multiplicity, what, why, hint);
        }
        for (own, port, peer) in both_ways(bundle, sender, receiver) {
            if peer.multiplicity.len() > own.multiplicity.len() {
                slots
                    .entry((own.id, port))
                    .or_insert((&peer.multiplicity[own.multiplicity.len()..], peer));
            }
        }
    }
    let with_slots = if slots.is_empty() {
        &[]
    } else {
        network.bundles.as_slice()
    };
    for bundle in with_slots {
        let (sender, receiver) = network.ends(bundle);
        for (own, port, peer) in both_ways(bundle, sender, receiver) {
            let extra = peer
                .multiplicity
                .get(own.multiplicity.len()..)
                .unwrap_or_default();
            let Some((other, earlier)) = slots
                .get(&(own.id, port))
                .filter(|(other, _)| *other != extra)
            else {
                continue;
            };
            let why = format!(
                "{}, so the port has slots {other:?}; but {}; a port has the same slots towards all",
                show(earlier),
                show(peer)
            );
            let what = format!(
                "the peers of \"{}.{port}\" have different multiplicities",
                own.path
            );
            problems.error(bundle.at, Code::Multiplicity, what, why);
        }
    }
}

fn number_conduits(network: &mut Network, problems: &mut Problems) -> Option<()> {
    let mut first = 0u64;
    for i in 0..network.bundles.len() {
        let (sender, receiver) = network.ends(&network.bundles[i]);
        let pairs = u64::from(sender.instances().max(receiver.instances()));
        network.bundles[i].first_conduit = first as u32;
        first += pairs;
        if first > MOST_CONDUITS {
            let why = format!("a run has at most {MOST_CONDUITS} conduits between instances");
            problems.error(
                network.bundles[i].at,
                Code::Limit,
                "the run is too large",
                why,
            );
            return None;
        }
    }
    Some(())
}
