//! The instances of a plan, and their programs.

use std::collections::BTreeMap;
use std::path::PathBuf;

use titin_model as model;
use titin_model::quantity::{Dimension, Quantity};
use titin_model::{
    EndTime, ExecutionModel, InstanceName, Network, NetworkComponent, ProgramKind, ResourceRequest,
    UserFunction,
};
use titin_wire::control::Scale;

use super::{Choices, CompileError, library_path};
use crate::plan::{
    Hosting, InstanceId, MpiLauncher, MpiProcesses, PerInstance, PlannedCommand, PlannedFunction,
    PlannedInstance, PlannedPort, PlannedProgram, StartMode,
};

/// The instances of the network, in the network's order.
pub(super) fn plan_instances(
    network: &Network,
    folders: &[PathBuf],
    choices: &Choices,
) -> PerInstance<PlannedInstance> {
    let planned = |name: InstanceName| {
        let component = network.component_of(&name)?;
        let start = start_mode(component, &name, folders, choices);
        Some(planned_instance(network, component, &name, start))
    };
    network.instances().filter_map(planned).collect()
}

fn planned_instance(
    network: &Network,
    component: &NetworkComponent,
    name: &InstanceName,
    start: StartMode,
) -> PlannedInstance {
    let (path, extras) = (component.path.as_str(), &network.extras);
    let stage = extras.stage.get(path).cloned().unwrap_or_default();
    let settings = network.settings.of(name);
    PlannedInstance {
        name: name.to_string(),
        component: path.to_owned(),
        component_id: component.id,
        indices: name.indices().to_vec(),
        start,
        cores: u32::try_from(component.need.cores()).unwrap_or(u32::MAX),
        ports: component.ports.values().map(planned_port).collect(),
        spare_ports: spare_ports(component),
        settings: settings
            .map(|(path, value)| (path.to_string(), value.clone()))
            .collect(),
        scale: extras.scales.get(path).map(scale),
        end: end_time(network, path, name),
        stage_in: stage.input,
        stage_out: stage.output,
        host: None,
        pinned_host: super::hosts::pinned_host(network, path),
    }
}

fn planned_port(port: &model::Port) -> PlannedPort {
    let timeline = &port.timeline;
    PlannedPort {
        name: port.name.clone(),
        operator: port.operator,
        guessed: port.guessed,
        timeline: (!timeline.is_root()).then(|| timeline.to_string().into()),
    }
}

/// The simulated time at which an instance ends, in the time unit of the run.
fn end_time(network: &Network, path: &str, name: &InstanceName) -> Option<f64> {
    let unit = network.extras.time_unit();
    match &network.extras.progress.get(path)?.end {
        EndTime::Time(time) if time.dimension == Dimension::NONE => Some(time.value_si),
        EndTime::Time(time) => time.in_unit(unit).ok(),
        EndTime::Setting(setting) => network.settings.find(name, setting)?.in_unit(unit).ok(),
    }
}

/// How an instance is started, by the description and the user's choices.
fn start_mode(
    component: &NetworkComponent,
    instance: &InstanceName,
    folders: &[PathBuf],
    choices: &Choices,
) -> StartMode {
    let name = instance.to_string();
    let is_chosen = |names: &[String]| {
        let own = [
            Some(name.as_str()),
            Some(component.path.as_str()),
            component.implementation.as_deref(),
        ];
        names.iter().any(|name| own.contains(&Some(name.as_str())))
    };
    if is_chosen(&choices.hosted) {
        return StartMode::Hosted;
    }
    let Some(program) = &component.program else {
        return StartMode::Manual(None);
    };
    let planned = planned_program(program, component, &name, folders);
    let is_manual = choices.serve_only
        || is_chosen(&choices.by_hand)
        || program.execution_model == ExecutionModel::Manual;
    match planned {
        Some(program) if !is_manual => StartMode::Program(program),
        program => StartMode::Manual(program),
    }
}

/// Makes the first instance of each host process the leader. The leader starts the process for all
/// instances of the process, on the host that the description chooses for any of them.
///
/// # Errors
/// [`CompileError::HostProcessOnTwoHosts`] if the description chooses two hosts.
pub(super) fn gather_hosts(
    instances: &mut PerInstance<PlannedInstance>,
) -> Result<(), CompileError> {
    let mut leaders: BTreeMap<String, InstanceId> = BTreeMap::new();
    for id in instances.ids() {
        let Some(hosting) = hosting_of(&mut instances[id].start) else {
            continue;
        };
        let name = hosting.name.clone();
        let functions = std::mem::take(&mut hosting.functions);
        let leader = *leaders.entry(name.clone()).or_insert(id);
        instances[id].host = Some(name.clone());
        if leader != id {
            let pin = instances[id].pinned_host;
            let of_process = instances[leader].pinned_host.or(pin);
            if pin.is_some() && pin != of_process {
                return Err(CompileError::HostProcessOnTwoHosts { name });
            }
            instances[leader].pinned_host = of_process;
            instances[id].start = StartMode::WithLeader(leader);
            let files = std::mem::take(&mut instances[id].stage_in);
            let files_of_leader = &mut instances[leader].stage_in;
            for file in files {
                if !files_of_leader.contains(&file) {
                    files_of_leader.push(file);
                }
            }
        }
        if let Some(hosting) = hosting_of(&mut instances[leader].start) {
            hosting.functions.extend(functions);
        }
    }
    Ok(())
}

fn hosting_of(start: &mut StartMode) -> Option<&mut Hosting> {
    match start {
        StartMode::Program(program) | StartMode::Manual(Some(program)) => {
            match &mut program.command {
                PlannedCommand::Host(hosting) => Some(hosting),
                _ => None,
            }
        }
        _ => None,
    }
}

/// The program's ports that the component leaves out.
fn spare_ports(component: &NetworkComponent) -> Vec<String> {
    let programs = component.program.iter();
    let ports = programs.flat_map(|program| program.ports.keys());
    let spare = ports.filter(|name| !component.ports.contains_key(*name));
    spare.map(ToString::to_string).collect()
}

/// The program to run, if the description has a program.
fn planned_program(
    program: &model::Program,
    component: &NetworkComponent,
    instance: &str,
    folders: &[PathBuf],
) -> Option<PlannedProgram> {
    let folder = program.directory.clone();
    let folder = folder.map(|folder| std::path::absolute(&folder).unwrap_or(folder));
    let command = planned_command(program, instance, folder.as_ref(), folders)?;
    let need = &component.need;
    let [processes, cores] =
        [need.processes(), need.cores()].map(|count| u32::try_from(count).unwrap_or(u32::MAX));
    let processes = processes.max(1);
    Some(PlannedProgram {
        name: program.name.to_string(),
        command,
        base: program.base_env,
        modules: program.modules.clone(),
        virtual_env: program.virtual_env.clone(),
        env: program.env.clone().into_iter().collect(),
        mpi: mpi_launcher(program.execution_model).map(|launcher| MpiProcesses {
            launcher,
            processes,
            nodes: nodes(need),
        }),
        threads: (cores / processes).max(1),
        folder: folder
            .or_else(|| folders.first().cloned())
            .unwrap_or_default(),
    })
}

fn planned_command(
    program: &model::Program,
    instance: &str,
    folder: Option<&PathBuf>,
    folders: &[PathBuf],
) -> Option<PlannedCommand> {
    Some(match &program.kind {
        ProgramKind::Manual => return None,
        ProgramKind::Executable(path) => PlannedCommand::Executable {
            path: path.to_string_lossy().into_owned(),
            args: program.args.clone(),
        },
        ProgramKind::Script(text) => PlannedCommand::Script(text.clone()),
        ProgramKind::BuiltIn(builtin) => PlannedCommand::BuiltIn {
            name: builtin.name().trim_start_matches("titin.").to_owned(),
            folders: folders.to_vec(),
        },
        ProgramKind::Hosted(function) => {
            // The folder of the program goes before the folders of the description.
            let others = folders.iter().filter(|other| folder != Some(*other));
            let folders = folder.into_iter().chain(others).cloned().collect();
            PlannedCommand::Host(hosting(function, instance, folders))
        }
    })
}

/// The host process of a function, without other functions.
fn hosting(function: &model::HostedFunction, instance: &str, folders: Vec<PathBuf>) -> Hosting {
    let (library, name) = match &function.call {
        UserFunction::Python { module, function } => (None, format!("{module}:{function}")),
        UserFunction::Library { path, symbol } => {
            (Some(library_path(path, &folders)), symbol.clone())
        }
    };
    Hosting {
        name: function.host.to_string(),
        python: library.is_none(),
        functions: vec![PlannedFunction {
            instance: instance.to_owned(),
            library,
            function: name,
            steps: function.steps,
        }],
        folders,
    }
}

fn mpi_launcher(model: ExecutionModel) -> Option<MpiLauncher> {
    match model {
        ExecutionModel::Direct | ExecutionModel::Manual => None,
        ExecutionModel::OpenMpi => Some(MpiLauncher::OpenMpi),
        ExecutionModel::Mpich => Some(MpiLauncher::Mpich),
        ExecutionModel::IntelMpi => Some(MpiLauncher::IntelMpi),
        ExecutionModel::SrunMpi => Some(MpiLauncher::Srun),
    }
}

/// The number of nodes, if the description sets the number.
fn nodes(need: &ResourceRequest) -> Option<u32> {
    match need {
        ResourceRequest::MpiNodes { nodes, .. } => Some(*nodes),
        ResourceRequest::Threads(_) | ResourceRequest::MpiCores { .. } => None,
    }
}

fn scale(scales: &model::Scales) -> Scale {
    let metres = |lengths: &[Quantity]| {
        let lengths = lengths.iter();
        lengths
            .filter_map(|length| length.in_unit("m").ok())
            .collect()
    };
    let seconds = |time: &Option<Quantity>| time.as_ref().and_then(|time| time.in_unit("s").ok());
    Scale {
        dt: seconds(&scales.dt),
        total: seconds(&scales.total),
        dx: metres(&scales.dx),
        extent: metres(&scales.extent),
    }
}
