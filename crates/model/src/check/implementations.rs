//! Implementations: each must exist, have the right ports, and get resources that fit.

use std::collections::{HashMap, HashSet};

use super::{deeper, paths};
use crate::built_in::{self, BuiltIn};
use crate::description::{
    Component, Description, ExecutionModel, HostedFunction, Model, Port, Ports, Program,
    ProgramKind, ResourceRequest, SETTINGS_IN,
};
use crate::flatten::DEEPEST;
use crate::names::{InstanceName, Name};
use crate::network::{Network, NetworkComponent};
use crate::operator::Operator;
use crate::options::StartPolicy;
use crate::problem::{Code, Problems, TextPosition, did_you_mean, listing};
use crate::roots::EnclosingModel;
use crate::titin_section::UserFunction;

/// Checks the program, the ports and the resources of each component.
pub(super) fn check(
    description: &Description,
    network: &Network,
    start: &StartPolicy,
    problems: &mut Problems,
) {
    for component in &network.components {
        if problems.is_full() {
            return;
        }
        let checked = CheckedComponent {
            description,
            network,
            component,
        };
        checked.check_exists(start, problems);
        if let Some(program) = &component.program {
            checked.check_program(program, problems);
        }
    }
    if let StartPolicy::Except { hosted, by_hand } = start {
        let why = "code was handed over for it, to be run inside this program";
        check_named(network, hosted, why, problems);
        check_named(network, by_hand, "it is to be started by hand", problems);
    }
    for (name, required) in &description.extras.required {
        check_required(description, network, name, required, problems);
    }
}

/// A component of the network, with what its checks look at.
struct CheckedComponent<'a> {
    description: &'a Description,
    network: &'a Network,
    component: &'a NetworkComponent,
}

impl CheckedComponent<'_> {
    fn check_exists(&self, start: &StartPolicy, problems: &mut Problems) {
        if self.component.program.is_some() || self.component.is_left_out_by(start) {
            return;
        }
        // A user with hosted components has most likely forgotten to host this component.
        let hosts = matches!(start, StartPolicy::Except { hosted, .. } if !hosted.is_empty());
        let Some(name) = &self.component.implementation else {
            report_no_implementation(self.component, hosts, problems);
            return;
        };
        if !self.description.not_imported.contains(name) && !problems.has_lost_section() {
            self.report_unknown(name, hosts, problems);
        }
    }

    /// Reports an implementation that does not exist. `hosts` says whether there are hosted
    /// components.
    fn report_unknown(&self, name: &Name, hosts: bool, problems: &mut Problems) {
        let programs = &self.description.programs;
        let known = implementations(self.description).chain(built_in::names());
        let hint = did_you_mean(name, known).unwrap_or_else(|| match programs.is_empty() {
            true if hosts => "hand over a function for it; or describe its program".to_string(),
            true => "no program is described; is a file missing on the command line?".to_string(),
            false => {
                let programs = listing(programs.keys().map(Name::as_str));
                format!(
                    "{}there are {programs}; is an import missing?",
                    advice_to_host(hosts)
                )
            }
        });
        let what = format!("there is no program or model \"{name}\"");
        let why = format!("component \"{}\" is implemented by it", self.component.path);
        let at = self.component.at;
        problems.error_hint(at, Code::UnknownImplementation, what, why, hint);
    }

    fn check_program(&self, program: &Program, problems: &mut Problems) {
        if let ProgramKind::BuiltIn(built_in) = program.kind {
            self.check_built_in(built_in, problems);
        }
        if !program.ports.is_empty() {
            let implementation = ImplementationPorts {
                owner: format!("program \"{}\"", program.name),
                ports: &program.ports,
            };
            implementation.compare(&self.component.path, &self.component.ports, problems);
        }
        self.check_need(program, problems);
        self.check_received(problems);
    }

    /// Built-in components accept any port names, but not any number of ports.
    fn check_built_in(&self, built_in: BuiltIn, problems: &mut Problems) {
        match built_in {
            BuiltIn::Source => {}
            BuiltIn::Sink => {
                for port in self.connected().filter(|port| port.operator.sends()) {
                    let why = format!(
                        "a {} only receives, and port \"{}\" sends",
                        built_in.name(),
                        port.name
                    );
                    let what = self.other_ports(built_in);
                    problems.error(port.at, Code::PortMismatch, what, why);
                }
            }
            BuiltIn::Sampler => self.check_sampler(problems),
            BuiltIn::Duplicator | BuiltIn::Merger | BuiltIn::Splitter => {
                self.check_receiving(built_in, problems);
            }
        }
    }

    /// A sampler sends settings by one O_I port, and receives results by one S port.
    fn check_sampler(&self, problems: &mut Problems) {
        for operator in [Operator::OI, Operator::S] {
            let ports = self.connected().filter(|port| port.operator == operator);
            if ports.count() != 1 {
                let what = self.other_ports(BuiltIn::Sampler);
                let why = "a titin.sampler has one connected O_I port, by which settings go to members, and one connected S port, by \
                           which results come back";
                problems.error(self.component.at, Code::PortMismatch, what, why);
                return;
            }
        }
    }

    /// A mapper receives on a port, and only a merger on several.
    fn check_receiving(&self, built_in: BuiltIn, problems: &mut Problems) {
        let mut receiving = self
            .connected()
            .filter(|port| port.operator.receives() && port.name != SETTINGS_IN);
        if receiving.next().is_none() {
            let what = self.other_ports(built_in);
            let why =
                "nothing is connected to an F_INIT or S port of it, so there is nothing to pass on";
            problems.error(self.component.at, Code::PortMismatch, what, why);
        }
        if built_in != BuiltIn::Merger
            && let Some(second) = receiving.next()
        {
            let what = self.other_ports(built_in);
            let (name, port) = (built_in.name(), &second.name);
            let why = format!("a {name} receives on one port, and \"{port}\" is one more");
            let hint = "titin.merger makes one message of several".to_string();
            problems.error_hint(second.at, Code::PortMismatch, what, why, hint);
        }
    }

    /// The ports with a conduit.
    fn connected(&self) -> impl Iterator<Item = &Port> {
        let open = self.network.unconnected(self.component);
        let open: HashSet<&Name> = open.map(|port| &port.name).collect();
        let ports = self.component.ports.values();
        ports.filter(move |port| !open.contains(&port.name))
    }

    fn other_ports(&self, built_in: BuiltIn) -> String {
        format!(
            "the ports of component \"{}\" are not those of a {}",
            self.component.path,
            built_in.name()
        )
    }

    /// An MPI program needs a number of processes, and a program that is started directly has one.
    fn check_need(&self, program: &Program, problems: &mut Problems) {
        let path = format!("{}.{}", self.network.model, self.component.path);
        let given = self.description.resources.get(path.as_str());
        let need = given.map(|resources| resources.need);
        let at = given.map_or(self.component.at, |resources| resources.at);
        let mpi = !matches!(need, None | Some(ResourceRequest::Threads(_)));
        let model = program.execution_model;
        if model.is_mpi() && !mpi {
            let what = match need {
                None => format!("component \"{}\" has no resources", self.component.path),
                Some(_) => format!("the resources of \"{path}\" are threads"),
            };
            let why = format!(
                "program \"{}\" is started as an MPI program, so it needs a number of processes",
                program.name
            );
            let hint = format!("write resources: {{{path}: {{mpi_processes: 4}}}}");
            problems.error_hint(at, Code::Resources, what, why, hint);
        } else if mpi && model == ExecutionModel::Direct {
            report_needless_processes(&path, at, program, problems);
        }
    }

    /// Warns of S ports without a conduit: receiving there is an error. Unconnected F_INIT ports
    /// are common, and messages sent to unconnected ports are dropped, so both pass.
    fn check_received(&self, problems: &mut Problems) {
        // A conduit with an error may be meant for this port.
        if problems.errors() > 0 {
            return;
        }
        let implementation = self.component.implementation.as_ref();
        let required = implementation.and_then(|name| self.description.extras.required.get(name));
        let told = |name: &Name| required.is_some_and(|required| required.ports.contains(name));
        for port in self.network.unconnected(self.component) {
            if port.operator == Operator::S && !port.guessed && !told(&port.name) {
                warn_of_unconnected(self.component, port, problems);
            }
        }
    }
}

fn warn_of_unconnected(component: &NetworkComponent, port: &Port, problems: &mut Problems) {
    let path = format!("{}.{}", component.path, port.name);
    let what = format!("nothing is ever received on \"{path}\"");
    let why = "the port is listed under \"s\", and no conduit leads to it: receiving there is an error, unless the program has a \
               value of its own for it";
    let hint = format!("write a conduit \"COMPONENT.PORT: {path}\", or take the port out");
    problems.warn(port.at, Code::Unconnected, what, why, hint);
}

fn report_needless_processes(
    path: &str,
    at: TextPosition,
    program: &Program,
    problems: &mut Problems,
) {
    let name = &program.name;
    let what = format!("the resources of \"{path}\" are MPI processes");
    let why = format!("program \"{name}\" is started directly, as one process");
    let hint = format!("write {{threads: ...}}, or \"execution_model: openmpi\" in \"{name}\"");
    problems.error_hint(at, Code::Resources, what, why, hint);
}

fn report_no_implementation(component: &NetworkComponent, hosts: bool, problems: &mut Problems) {
    let what = format!("component \"{}\" has no implementation", component.path);
    let why = "it is not optional, so there must be something that runs";
    let hint = format!(
        "{}add \"implementation: ...\", or \"optional: true\" if the model can do without",
        advice_to_host(hosts)
    );
    problems.error_hint(component.at, Code::NoImplementation, what, why, hint);
}

/// The advice with which a hint begins if there are hosted components.
fn advice_to_host(hosts: bool) -> &'static str {
    match hosts {
        true => "hand over a function for it; or ",
        false => "",
    }
}

/// The names of all programs and models.
fn implementations(description: &Description) -> impl Iterator<Item = &str> {
    let programs = description.programs.keys();
    programs.chain(description.models.keys()).map(Name::as_str)
}

/// Each name under "hosted" and "by hand" must be the name of a component, an implementation or an
/// instance.
fn check_named(network: &Network, names: &[String], why: &str, problems: &mut Problems) {
    for name in names {
        let instance = name.parse::<InstanceName>().ok();
        let instance = instance.and_then(|name| network.instance_id(&name));
        if instance.is_some() || names_of(network).any(|known| known == name) {
            continue;
        }
        let component = name.split('[').next().unwrap_or_default();
        let (what, hint) = match network.component(component) {
            Some(component) => (
                format!("there is no instance \"{name}\""),
                indices_of(component),
            ),
            None => (
                format!("there is no component \"{name}\""),
                meant_component(network, name),
            ),
        };
        let at = TextPosition::default();
        problems.error_hint(at, Code::UnknownComponent, what, why, hint);
    }
}

/// The names of all components and implementations.
fn names_of(network: &Network) -> impl Iterator<Item = &str> {
    let components = network.components.iter();
    let implementations = components.clone().filter_map(|c| c.implementation.as_ref());
    components
        .map(|c| &c.path)
        .chain(implementations)
        .map(Name::as_str)
}

/// The indices that the instances of a component have, in words.
fn indices_of(component: &NetworkComponent) -> String {
    let path = &component.path;
    match component.multiplicity.as_slice() {
        [] => format!("\"{path}\" is one instance"),
        sizes => format!("\"{path}\" has multiplicity {sizes:?}; indices begin at 0"),
    }
}

fn meant_component(network: &Network, name: &str) -> String {
    did_you_mean(name, names_of(network)).unwrap_or_else(|| {
        let components = network.components.iter().map(|c| c.path.as_str());
        format!("the components are {}", listing(components))
    })
}

/// Programs of one host share a process, so they share a language and an environment. The name of
/// the host must differ from all instances.
pub(super) fn hosts(description: &Description, network: &Network, problems: &mut Problems) {
    let mut first: HashMap<&Name, (&Program, &HostedFunction)> = HashMap::new();
    for program in description.programs.values() {
        let ProgramKind::Hosted(guest) = &program.kind else {
            continue;
        };
        let mut instances = network.instances();
        if instances.any(|instance| instance.to_string() == *guest.host) {
            let what = format!("the host \"{}\" has the name of an instance", guest.host);
            let why = "both have a folder of their name in the run directory";
            problems.error(program.at, Code::Duplicate, what, why);
        }
        let other = *first.entry(&guest.host).or_insert((program, guest));
        if let Some(key) = difference(other, (program, guest)) {
            let (one, another) = (&other.0.name, &program.name);
            let what = format!("programs \"{one}\" and \"{another}\" cannot share a host");
            let why = format!(
                "host \"{}\" is one process, and their \"{key}\" differs",
                guest.host
            );
            let hint = "give one of them another host".to_string();
            problems.error_hint(program.at, Code::BadValue, what, why, hint);
        }
    }
}

/// The key of a difference between two programs that keeps them from sharing a process.
fn difference(
    (one, function): (&Program, &HostedFunction),
    (other, other_function): (&Program, &HostedFunction),
) -> Option<&'static str> {
    let python = |hosted: &HostedFunction| matches!(hosted.call, UserFunction::Python { .. });
    let differs = [
        ("language", python(function) != python(other_function)),
        ("virtual_env", one.virtual_env != other.virtual_env),
        ("base_env", one.base_env != other.base_env),
        ("env", one.env != other.env),
    ];
    let differing = differs.iter().find(|(_, differs)| *differs);
    differing.map(|(key, _)| *key)
}

/// The ports of the implementation of a component.
struct ImplementationPorts<'a> {
    /// The program or model, in words.
    owner: String,
    ports: &'a Ports,
}

impl ImplementationPorts<'_> {
    /// Every port of the component at `path` must be a port of the implementation, under the same
    /// operator.
    fn compare(&self, path: &str, ports: &Ports, problems: &mut Problems) {
        for port in ports.values().filter(|port| port.name != SETTINGS_IN) {
            match self.ports.get(&port.name) {
                None => self.report_missing(path, port, problems),
                Some(own) if !agree(port, own) => {
                    let owner = &self.owner;
                    let what = format!(
                        "port \"{}\" does not have the same operator in both",
                        port.name
                    );
                    let (there, here) = (operator_of(port), operator_of(own));
                    let why =
                        format!("it is {there} in component \"{path}\", and {here} in {owner}");
                    problems.error(port.at, Code::PortMismatch, what, why);
                }
                Some(_) => {}
            }
        }
    }

    fn report_missing(&self, path: &str, port: &Port, problems: &mut Problems) {
        let owner = &self.owner;
        let operator = port.operator;
        let own = self.ports.values().filter(|p| p.operator == operator);
        let own: Vec<&str> = own.map(|port| port.name.as_str()).collect();
        let meant = did_you_mean(&port.name, self.ports.keys().map(Name::as_str));
        let hint = match own.is_empty() {
            true => meant,
            false => meant.or_else(|| Some(format!("its {operator} ports are {}", listing(own)))),
        };
        let what = format!("{owner} has no port \"{}\"", port.name);
        let why = format!(
            "component \"{path}\" has this port, and {owner}, which implements it, does not"
        );
        problems.error_hint(port.at, Code::PortMismatch, what, why, hint);
    }
}

/// Whether the port of a component and the port of the implementation are used alike.
fn agree(port: &Port, own: &Port) -> bool {
    if port.guessed {
        return port.operator.sends() == own.operator.sends();
    }
    port.operator == own.operator && port.timeline == own.timeline
}

fn operator_of(port: &Port) -> String {
    match port.timeline.is_root() {
        true => port.operator.to_string(),
        false => format!("{} of timeline \"{}\"", port.operator, port.timeline),
    }
}

fn check_required(
    description: &Description,
    network: &Network,
    name: &Name,
    required: &crate::RequiredPorts,
    problems: &mut Problems,
) {
    let program = description.programs.get(name);
    let users = network.components.iter();
    let users: Vec<_> = users
        .filter(|c| c.implementation.as_ref() == Some(name))
        .collect();
    if users.is_empty() && program.is_none() {
        let what = format!("there is no program \"{name}\"");
        let why = "\"titin: required\" lists the ports that a program must have connected";
        let hint = did_you_mean(name, description.programs.keys().map(Name::as_str));
        problems.error_hint(required.at, Code::UnknownPath, what, why, hint);
        return;
    }
    for port in &required.ports {
        let required = RequiredPort {
            program: name,
            port,
            at: required.at,
        };
        if program.is_none_or(|program| required.check_listed(&program.ports, problems)) {
            for component in &users {
                required.check_connected(network, component, problems);
            }
        }
    }
}

/// A port under `titin: required`.
struct RequiredPort<'a> {
    program: &'a Name,
    port: &'a Name,
    at: TextPosition,
}

impl RequiredPort<'_> {
    /// Whether the program may have the port; reports a port that is not among those it lists.
    fn check_listed(&self, ports: &Ports, problems: &mut Problems) -> bool {
        let listed = ports.is_empty() || ports.contains_key(self.port);
        if !listed {
            let what = format!("program \"{}\" has no port \"{}\"", self.program, self.port);
            let why = "\"titin: required\" says that it must be connected";
            let hint = did_you_mean(self.port, ports.keys().map(Name::as_str));
            problems.error_hint(self.at, Code::UnknownPort, what, why, hint);
        }
        listed
    }

    /// Reports the port of a component if it is not there or not connected.
    fn check_connected(
        &self,
        network: &Network,
        component: &NetworkComponent,
        problems: &mut Problems,
    ) {
        let (program, port) = (self.program, self.port);
        let at = component.ports.get(port).map(|port| port.at);
        if at.is_none() && !component.ports.is_empty() {
            self.report_no_port(component, problems);
            return;
        }
        let mut unconnected = network.unconnected(component);
        if at.is_none() || unconnected.any(|open| open.name == *port) {
            let path = &component.path;
            let what = format!("port \"{port}\" of component \"{path}\" is not connected");
            let why = format!("program \"{program}\" cannot do without it (\"titin: required\")");
            problems.error(at.unwrap_or(component.at), Code::Unconnected, what, why);
        }
    }

    fn report_no_port(&self, component: &NetworkComponent, problems: &mut Problems) {
        let (path, program, port) = (&component.path, self.program, self.port);
        let names = || component.ports.keys().map(Name::as_str);
        let hint = did_you_mean(port, names());
        let hint = hint.unwrap_or_else(|| format!("its ports are {}", listing(names())));
        let why = format!(
            "\"titin: required\" says that it must be connected, and \"{path}\" is what \"{program}\" runs as"
        );
        let what = format!("component \"{path}\" has no port \"{port}\"");
        problems.error_hint(self.at, Code::UnknownPort, what, why, hint);
    }
}

/// Compares the ports of each component implemented by a model with the model's. Every place in the
/// nesting is looked at: a custom implementation of an outer model may replace an inner component.
pub(super) fn nested(description: &Description, root: &Model, problems: &mut Problems) {
    let custom = CustomPaths::of(description);
    let mut plain: HashSet<&Name> = HashSet::new();
    let mut compared: HashSet<(&Name, &Name, &Name)> = HashSet::new();
    let mut todo = vec![vec![EnclosingModel::innermost(&root.name)]];
    while let Some(chain) = todo.pop() {
        let Some((innermost, around)) = chain.split_last() else {
            continue;
        };
        let model = &description.models[innermost.name];
        // Without custom implementations from outside, every place of a model in the nesting is the
        // same.
        if !custom.reach(around) && !plain.insert(&model.name) {
            continue;
        }
        for component in model.components.values() {
            let Some((name, inner)) = model_of(description, &chain, component) else {
                continue;
            };
            let deeper = deeper(&chain, component, inner);
            if compared.insert((&model.name, &component.name, name)) {
                let implementation = ImplementationPorts {
                    owner: format!("model \"{name}\""),
                    ports: &inner.ports,
                };
                implementation.compare(&deeper[0].path, &component.ports, problems);
            }
            // Models that contain themselves or nest too deeply are reported when the models are
            // flattened.
            if deeper.len() <= DEEPEST && chain.iter().all(|around| around.name != name) {
                todo.push(deeper);
            }
        }
    }
}

/// The model that implements a component.
fn model_of<'d>(
    description: &'d Description,
    around: &[EnclosingModel<'_>],
    component: &'d Component,
) -> Option<(&'d Name, &'d Model)> {
    let name = description.implementation(around, component)?;
    Some((name, description.models.get(name)?))
}

/// The paths under `custom_implementations`, sorted.
struct CustomPaths<'d>(Vec<&'d str>);

impl<'d> CustomPaths<'d> {
    fn of(description: &'d Description) -> Self {
        let paths = description.custom_implementations.keys();
        let mut paths: Vec<&str> = paths.map(Name::as_str).collect();
        paths.sort_unstable();
        CustomPaths(paths)
    }

    /// Whether a path leads from one of these models to a component inside of the innermost one.
    fn reach(&self, around: &[EnclosingModel<'_>]) -> bool {
        around.iter().any(|EnclosingModel { name, path }| {
            let inside = format!("{name}.{path}.");
            let first = self.0.partition_point(|path| *path < inside.as_str());
            self.0
                .get(first)
                .is_some_and(|path| path.starts_with(&inside))
        })
    }
}

/// Checks the paths and the implementations under `custom_implementations`.
pub(super) fn custom(description: &Description, problems: &mut Problems) {
    let section = "custom_implementations";
    for (path, custom) in &description.custom_implementations {
        if paths::find(description, path, custom.at, section, problems).is_none() {
            continue;
        }
        let Some(name) = &custom.implementation else {
            continue;
        };
        let mut known = implementations(description).chain(built_in::names());
        if !known.any(|known| *name == known) {
            let what = format!("there is no program or model \"{name}\"");
            let why = format!("it is to implement \"{path}\"");
            let hint = did_you_mean(name, implementations(description));
            problems.error_hint(custom.at, Code::UnknownImplementation, what, why, hint);
        }
    }
}
