//! Implementations: each must exist, have the right ports, and get resources that fit.

use std::collections::{HashMap, HashSet};

use super::{deeper, paths};
use crate::built_in::BuiltIn;
use crate::description::{
    Description, ExecutionModel, HostedFunction, Model, Ports, Program, ProgramKind,
    ResourceRequest, SETTINGS_IN,
};
use crate::flatten::DEEPEST;
use crate::names::{InstanceName, Name};
use crate::network::{Network, NetworkComponent};
use crate::operator::Operator;
use crate::options::StartPolicy;
use crate::problem::{Code, Problems, TextPosition, did_you_mean, listing};
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
        check_exists(description, component, start, problems);
        let Some(program) = &component.program else {
            continue;
        };
        if let ProgramKind::BuiltIn(built_in) = program.kind {
            check_built_in(network, component, built_in, problems);
        }
        if !program.ports.is_empty() {
            let owner = format!("program \"{}\"", program.name);
            same_ports(
                &component.path,
                &component.ports,
                &program.ports,
                &owner,
                problems,
            );
        }
        check_need(description, network, component, problems);
        check_received(description, network, component, problems);
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

fn check_exists(
    description: &Description,
    component: &NetworkComponent,
    start: &StartPolicy,
    problems: &mut Problems,
) {
    if component.program.is_some() || component.is_left_out_by(start) {
        return;
    }
    // A user with hosted components has most likely forgotten to host this component.
    let hosts = matches!(start, StartPolicy::Except { hosted, .. } if !hosted.is_empty());
    let by_code = if hosts {
        "hand over a function for it; or "
    } else {
        ""
    };
    let Some(name) = &component.implementation else {
        let why = "it is not optional, so there must be something that runs";
        let hint = format!(
            "{by_code}add \"implementation: ...\", or \"optional: true\" if the model can do without"
        );
        let what = format!("component \"{}\" has no implementation", component.path);
        problems.error_hint(component.at, Code::NoImplementation, what, why, hint);
        return;
    };
    if description.not_imported.contains(name) || problems.has_lost_section() {
        return;
    }
    let names = || {
        let known = description
            .programs
            .keys()
            .chain(description.models.keys())
            .map(Name::as_str);
        known.chain(BuiltIn::ALL.map(|b| b.name()))
    };
    let why = format!("component \"{}\" is implemented by it", component.path);
    let hint = did_you_mean(name, names()).unwrap_or_else(|| {
        let programs = description.programs.keys().map(Name::as_str);
        match description.programs.is_empty() {
            true if hosts => "hand over a function for it; or describe its program".to_string(),
            true => "no program is described; is a file missing on the command line?".to_string(),
            false => format!(
                "{by_code}there are {}; is an import missing?",
                listing(programs)
            ),
        }
    });
    let what = format!("there is no program or model \"{name}\"");
    problems.error_hint(component.at, Code::UnknownImplementation, what, why, hint);
}

/// Each name under "hosted" and "by hand" must be the name of a component, an implementation or an
/// instance.
fn check_named(network: &Network, names: &[String], why: &str, problems: &mut Problems) {
    let known = || {
        let implementations = network
            .components
            .iter()
            .filter_map(|c| c.implementation.as_ref());
        network
            .components
            .iter()
            .map(|c| &c.path)
            .chain(implementations)
            .map(Name::as_str)
    };
    let instance = |name: &str| {
        name.parse::<InstanceName>()
            .ok()
            .and_then(|name| network.instance_id(&name))
    };
    for name in names {
        if instance(name).is_some() || known().any(|known| known == name) {
            continue;
        }
        let of = name
            .split('[')
            .next()
            .and_then(|component| network.component(component));
        let (what, hint) = match of {
            Some(component) => {
                let why = match component.multiplicity.as_slice() {
                    [] => format!("\"{}\" is one instance", component.path),
                    sizes => format!(
                        "\"{}\" has multiplicity {sizes:?}; indices begin at 0",
                        component.path
                    ),
                };
                (format!("there is no instance \"{name}\""), why)
            }
            None => {
                let components = network.components.iter().map(|c| c.path.as_str());
                let hint = did_you_mean(name, known())
                    .unwrap_or_else(|| format!("the components are {}", listing(components)));
                (format!("there is no component \"{name}\""), hint)
            }
        };
        problems.error_hint(
            TextPosition::default(),
            Code::UnknownComponent,
            what,
            why,
            hint,
        );
    }
}

/// Programs of one host share a process, so they share a language and an environment. The name of
/// the host must differ from all instances.
pub(super) fn hosts(description: &Description, network: &Network, problems: &mut Problems) {
    let mut first: HashMap<&Name, (&Program, &HostedFunction)> = HashMap::new();
    for program in description.programs.values() {
        let ProgramKind::Hosted(guest) = &program.kind else {
            continue;
        };
        if network
            .instances()
            .any(|instance| instance.to_string() == *guest.host)
        {
            let what = format!("the host \"{}\" has the name of an instance", guest.host);
            let why = "both have a folder of their name in the run directory";
            problems.error(program.at, Code::Duplicate, what, why);
        }
        let (other, theirs) = *first.entry(&guest.host).or_insert((program, guest));
        let python = |guest: &HostedFunction| matches!(guest.call, UserFunction::Python { .. });
        let differs = [
            ("language", python(guest) != python(theirs)),
            ("virtual_env", program.virtual_env != other.virtual_env),
            ("base_env", program.base_env != other.base_env),
            ("env", program.env != other.env),
        ];
        if let Some((key, _)) = differs.iter().find(|(_, differs)| *differs) {
            let what = format!(
                "programs \"{}\" and \"{}\" cannot share a host",
                other.name, program.name
            );
            let why = format!(
                "host \"{}\" is one process, and their \"{key}\" differs",
                guest.host
            );
            let hint = "give one of them another host".to_string();
            problems.error_hint(program.at, Code::BadValue, what, why, hint);
        }
    }
}

/// Built-in components accept any port names, but not any number of ports.
fn check_built_in(
    network: &Network,
    component: &NetworkComponent,
    built_in: BuiltIn,
    problems: &mut Problems,
) {
    let unconnected: Vec<_> = network
        .unconnected(component)
        .map(|port| &port.name)
        .collect();
    let connected = || {
        component
            .ports
            .values()
            .filter(|port| !unconnected.contains(&&port.name))
    };
    let ins = || connected().filter(|port| port.operator.receives() && port.name != SETTINGS_IN);
    let name = built_in.name();
    let what = format!(
        "the ports of component \"{}\" are not those of a {name}",
        component.path
    );
    match built_in {
        BuiltIn::Source => {}
        BuiltIn::Sink => {
            for port in connected().filter(|port| port.operator.sends()) {
                let why = format!("a {name} only receives, and port \"{}\" sends", port.name);
                problems.error(port.at, Code::PortMismatch, what.clone(), why);
            }
        }
        BuiltIn::Duplicator | BuiltIn::Merger | BuiltIn::Splitter => {
            if ins().next().is_none() {
                let why = "nothing is connected to an F_INIT or S port of it, so there is nothing to pass on";
                problems.error(component.at, Code::PortMismatch, what.clone(), why);
            }
            if built_in != BuiltIn::Merger
                && let Some(second) = ins().nth(1)
            {
                let why = format!(
                    "a {name} receives on one port, and \"{}\" is one more",
                    second.name
                );
                let hint = "titin.merger makes one message of several".to_string();
                problems.error_hint(second.at, Code::PortMismatch, what, why, hint);
            }
        }
    }
}

/// Every port of a component must be a port of the implementation, under the same operator.
fn same_ports(path: &str, ports: &Ports, theirs: &Ports, owner: &str, problems: &mut Problems) {
    for port in ports.values().filter(|port| port.name != SETTINGS_IN) {
        let Some(their) = theirs.get(&port.name) else {
            let names = || {
                theirs
                    .values()
                    .filter(|p| p.operator == port.operator)
                    .map(|p| p.name.as_str())
            };
            let hint = did_you_mean(&port.name, theirs.keys().map(Name::as_str)).or_else(|| {
                let of = port.operator;
                names()
                    .next()
                    .map(|_| format!("its {of} ports are {}", listing(names())))
            });
            let why = format!(
                "component \"{path}\" has this port, and {owner}, which implements it, does not"
            );
            let what = format!("{owner} has no port \"{}\"", port.name);
            problems.error_hint(port.at, Code::PortMismatch, what, why, hint);
            continue;
        };
        let same = if port.guessed {
            port.operator.sends() == their.operator.sends()
        } else {
            port.operator == their.operator && port.timeline == their.timeline
        };
        if !same {
            let show = |port: &crate::Port| match port.timeline.is_root() {
                true => port.operator.to_string(),
                false => format!("{} of timeline \"{}\"", port.operator, port.timeline),
            };
            let why = format!(
                "it is {} in component \"{path}\", and {} in {owner}",
                show(port),
                show(their)
            );
            let what = format!(
                "port \"{}\" does not have the same operator in both",
                port.name
            );
            problems.error(port.at, Code::PortMismatch, what, why);
        }
    }
}

fn check_need(
    description: &Description,
    network: &Network,
    component: &NetworkComponent,
    problems: &mut Problems,
) {
    let Some(program) = &component.program else {
        return;
    };
    let path = format!("{}.{}", network.model, component.path);
    let given = description.resources.get(path.as_str());
    let (at, need) = given.map_or((component.at, None), |r| (r.at, Some(r.need)));
    let mpi = !matches!(need, None | Some(ResourceRequest::Threads(_)));
    let model = program.execution_model;
    if model.is_mpi() && !mpi {
        let what = match need {
            None => format!("component \"{}\" has no resources", component.path),
            Some(_) => format!("the resources of \"{path}\" are threads"),
        };
        let why = format!(
            "program \"{}\" is started as an MPI program, so it needs a number of processes",
            program.name
        );
        let hint = format!("write resources: {{{path}: {{mpi_processes: 4}}}}");
        problems.error_hint(at, Code::Resources, what, why, hint);
    } else if mpi && model == ExecutionModel::Direct {
        let what = format!("the resources of \"{path}\" are MPI processes");
        let why = format!(
            "program \"{}\" is started directly, as one process",
            program.name
        );
        let hint = format!(
            "write {{threads: ...}}, or \"execution_model: openmpi\" in \"{}\"",
            program.name
        );
        problems.error_hint(at, Code::Resources, what, why, hint);
    }
}

/// Warns of S ports without a conduit: receiving there is an error. Unconnected F_INIT ports are
/// common, and messages sent to unconnected ports are dropped, so both pass.
fn check_received(
    description: &Description,
    network: &Network,
    component: &NetworkComponent,
    problems: &mut Problems,
) {
    // A conduit with an error may be meant for this port.
    if problems.errors() > 0 {
        return;
    }
    let required = component
        .implementation
        .as_ref()
        .and_then(|name| description.extras.required.get(name));
    let told = |name: &Name| required.is_some_and(|required| required.ports.contains(name));
    for port in network.unconnected(component) {
        if port.operator != Operator::S || port.guessed || told(&port.name) {
            continue;
        }
        let what = format!(
            "nothing is ever received on \"{}.{}\"",
            component.path, port.name
        );
        let why = "the port is listed under \"s\", and no conduit leads to it: receiving there is an error, unless the program has a \
                   value of its own for it";
        let hint = format!(
            "write a conduit \"COMPONENT.PORT: {}.{}\", or take the port out",
            component.path, port.name
        );
        problems.warn(port.at, Code::Unconnected, what, why, hint);
    }
}

fn check_required(
    description: &Description,
    network: &Network,
    name: &Name,
    required: &crate::RequiredPorts,
    problems: &mut Problems,
) {
    let programs = || description.programs.keys().map(Name::as_str);
    let users: Vec<_> = network
        .components
        .iter()
        .filter(|c| c.implementation.as_ref() == Some(name))
        .collect();
    if users.is_empty() && !description.programs.contains_key(name) {
        let what = format!("there is no program \"{name}\"");
        let why = "\"titin: required\" lists the ports that a program must have connected";
        problems.error_hint(
            required.at,
            Code::UnknownPath,
            what,
            why,
            did_you_mean(name, programs()),
        );
        return;
    }
    let declared = description.programs.get(name);
    let declared = declared.map(|program| &program.ports);
    for port in &required.ports {
        if let Some(ports) = declared.filter(|ports| !ports.is_empty())
            && !ports.contains_key(port)
        {
            let why = "\"titin: required\" says that it must be connected";
            let hint = did_you_mean(port, ports.keys().map(Name::as_str));
            let what = format!("program \"{name}\" has no port \"{port}\"");
            problems.error_hint(required.at, Code::UnknownPort, what, why, hint);
            continue;
        }
        for component in &users {
            check_connected(network, component, port, (name, required.at), problems);
        }
    }
}

/// Fails if a port of a component is not there or not connected. `program` is the program that
/// needs the port, and where the description says so.
fn check_connected(
    network: &Network,
    component: &NetworkComponent,
    port: &Name,
    (program, required_at): (&Name, TextPosition),
    problems: &mut Problems,
) {
    let at = component.ports.get(port).map(|port| port.at);
    if at.is_none() && !component.ports.is_empty() {
        let names = || component.ports.keys().map(Name::as_str);
        let hint = did_you_mean(port, names());
        let hint = hint.unwrap_or_else(|| format!("its ports are {}", listing(names())));
        let why = format!(
            "\"titin: required\" says that it must be connected, and \"{}\" is what \"{program}\" runs as",
            component.path
        );
        let what = format!("component \"{}\" has no port \"{port}\"", component.path);
        problems.error_hint(required_at, Code::UnknownPort, what, why, hint);
    } else if at.is_none()
        || network
            .unconnected(component)
            .any(|open| open.name == *port)
    {
        let why = format!("program \"{program}\" cannot do without it (\"titin: required\")");
        let what = format!(
            "port \"{port}\" of component \"{}\" is not connected",
            component.path
        );
        problems.error(at.unwrap_or(component.at), Code::Unconnected, what, why);
    }
}

/// Components that are implemented by models, at every place in the nesting: a custom
/// implementation of an outer model may replace an inner component.
pub(super) fn nested(description: &Description, root: &Model, problems: &mut Problems) {
    let mut keys: Vec<&str> = description
        .custom_implementations
        .keys()
        .map(Name::as_str)
        .collect();
    keys.sort_unstable();
    let reached = |prefix: &str| {
        keys.get(keys.partition_point(|key| *key < prefix))
            .is_some_and(|key| key.starts_with(prefix))
    };
    let mut plain: HashSet<&Name> = HashSet::new();
    let mut compared: HashSet<(&Name, &Name, &Name)> = HashSet::new();
    let mut todo = vec![vec![(&root.name, String::new())]];
    while let Some(chain) = todo.pop() {
        let Some(((name, _), around)) = chain.split_last() else {
            continue;
        };
        let model = &description.models[*name];
        // Without custom implementations from outside, every place of a model in the nesting is the
        // same.
        let special = around
            .iter()
            .any(|(outer, path)| reached(&format!("{outer}.{path}.")));
        if !special && !plain.insert(&model.name) {
            continue;
        }
        for component in model.components.values() {
            let Some(name) = description.implementation(&chain, component) else {
                continue;
            };
            let Some(inner) = description.models.get(name) else {
                continue;
            };
            let deeper = deeper(&chain, component, inner);
            if compared.insert((&model.name, &component.name, name)) {
                let (path, owner) = (&deeper[0].1, format!("model \"{name}\""));
                same_ports(path, &component.ports, &inner.ports, &owner, problems);
            }
            // Models that contain themselves or nest too deeply are reported when the models are
            // flattened.
            if deeper.len() <= DEEPEST && chain.iter().all(|(around, _)| *around != name) {
                todo.push(deeper);
            }
        }
    }
}

/// Checks the paths and the implementations under `custom_implementations`.
pub(super) fn custom(description: &Description, problems: &mut Problems) {
    for (path, custom) in &description.custom_implementations {
        if paths::find(
            description,
            path,
            custom.at,
            "custom_implementations",
            problems,
        )
        .is_none()
        {
            continue;
        }
        let Some(name) = &custom.implementation else {
            continue;
        };
        let names = || {
            description
                .programs
                .keys()
                .chain(description.models.keys())
                .map(Name::as_str)
        };
        if !names().any(|known| *name == known) && BuiltIn::from_name(name).is_none() {
            let why = format!("it is to implement \"{path}\"");
            let hint = did_you_mean(name, names());
            let what = format!("there is no program or model \"{name}\"");
            problems.error_hint(custom.at, Code::UnknownImplementation, what, why, hint);
        }
    }
}
