//! From the description to the [`Plan`] of a run.

mod hosts;
mod instances;
mod models;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use titin_model as model;
use titin_model::quantity::{Quantity, UnitError};
use titin_model::{Description, Network, NetworkComponent, UserFunction};
use titin_os::host;
use titin_wire::LinkSettings;
use titin_wire::control::FilterFunction;

use crate::placement;
use crate::plan::{Plan, PlannedConduit, PlannedEnd, PlannedEnsemble, RunOptions};
use instances::{gather_hosts, plan_instances};

/// The most messages that a conduit may hold, unless the description sets the limit.
const BUFFER_MESSAGES: u64 = 64;

/// The most bytes that a conduit may hold, unless the description sets the limit.
const BUFFER_BYTES: u64 = 1 << 30;

/// The time to join if the user starts some programs, perhaps in a debugger, or if a batch system
/// starts agents.
const PATIENCE_WITH_USERS: Duration = Duration::from_secs(3600);

/// The user's choices on the command line.
#[derive(Debug, Clone, Default)]
pub struct Choices {
    /// Components, implementations or instances that the calling process runs.
    pub hosted: Vec<String>,
    /// Components, implementations or instances that the user starts.
    pub by_hand: Vec<String>,
    /// The user starts all programs.
    pub serve_only: bool,
    /// Programs send event rows.
    pub trace: bool,
}

/// Why there is no plan for the choices. Each printed error says how to go on.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// The user chose a name, and the model has no component of the name.
    #[error("the model {model} has no component {name}{hint}")]
    NoComponent {
        /// The model.
        model: String,
        /// The name.
        name: String,
        /// A hint at the intended name.
        hint: String,
    },
    /// The functions of a host process are pinned to two hosts.
    #[error(
        "the functions of host process {name} are one program, and `titin: hosts` has them on two hosts"
    )]
    HostProcessOnTwoHosts {
        /// The name of the host process.
        name: String,
    },
    /// A time of the description has another unit.
    #[error("titin: {setting}: {source}")]
    NoTime {
        /// The entry under `titin`.
        setting: &'static str,
        /// The mistake.
        source: UnitError,
    },
    /// A time of the description is negative or too long.
    #[error("titin: {setting}: {seconds} s is no time that can be waited")]
    NoDuration {
        /// The entry under `titin`.
        setting: &'static str,
        /// The time.
        seconds: f64,
    },
    /// The network is inconsistent.
    #[error("internal error: the network's conduits and instances do not fit")]
    Internal,
}

/// Looks up everything that a run needs.
///
/// # Errors
/// [`CompileError`] if the choices or the times of the description are impossible.
pub fn compile(
    network: &Network,
    folders: &[PathBuf],
    choices: &Choices,
) -> Result<Plan, CompileError> {
    for name in choices.hosted.iter().chain(&choices.by_hand) {
        check_name(network, name)?;
    }
    let mut instances = plan_instances(network, folders, choices);
    gather_hosts(&mut instances)?;
    models::tell_models(network, &mut instances);
    Ok(Plan {
        model: network.model.to_string(),
        instances,
        components: components(network),
        ensembles: ensembles(network),
        conduits: conduits(network)?,
        filters: filters(network, folders),
        alternating: placement::alternating(network),
        options: options(network, choices)?,
        // Without programs to start there is nothing for agents to do.
        hosts: match choices.serve_only {
            true => Vec::new(),
            false => hosts::planned_hosts(network),
        },
        sites: hosts::planned_sites(network),
        own_cores: hosts::own_cores(network),
        own_network: hosts::own_network(network),
        own_het_group: None,
        lists_hosts: hosts::lists_hosts(network),
        earlier_bytes: Vec::new(),
        own_site: None,
    })
}

/// Checks a name: a component, implementation or instance of the model must have the name.
fn check_name(network: &Network, name: &str) -> Result<(), CompileError> {
    let is_meant = |component: &NetworkComponent| {
        component.path.as_str() == name || component.implementation.as_deref() == Some(name)
    };
    let is_component = network.components.iter().any(is_meant);
    let mut instances = network.instances();
    if is_component || instances.any(|instance| instance.to_string() == name) {
        return Ok(());
    }
    let components = &network.components;
    let names = || components.iter().map(|component| component.path.as_str());
    let hint = match model::nearest(name, names()) {
        Some(near) => format!("; did you mean {near}?"),
        None => format!("; it has {}", model::listing(names())),
    };
    Err(CompileError::NoComponent {
        model: network.model.to_string(),
        name: name.to_owned(),
        hint,
    })
}

/// The folders of the description's files. Relative paths start from the folders, except the paths
/// of programs.
pub fn folders(description: &Description) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = Vec::new();
    for file in description.files() {
        let folder = Path::new(file).parent().unwrap_or(Path::new(""));
        let folder = std::path::absolute(folder).or_else(|_| std::env::current_dir());
        if let Ok(folder) = folder.map(|folder| folder.components().collect::<PathBuf>())
            && !folders.contains(&folder)
        {
            folders.push(folder);
        }
    }
    folders
}

/// The components, so that instances can check the names in overlays. Each instance gets all
/// components, so the list of a large model is empty.
fn components(network: &Network) -> Vec<(String, Vec<u32>)> {
    const MOST: usize = 256;
    if network.components.len() > MOST {
        return Vec::new();
    }
    let components = network.components.iter();
    let named =
        components.map(|component| (component.path.to_string(), component.multiplicity.clone()));
    named.collect()
}

fn ensembles(network: &Network) -> Vec<PlannedEnsemble> {
    let ensembles = network.extras.ensemble.iter();
    let planned = ensembles.map(|(path, ensemble)| PlannedEnsemble {
        component: path.to_string(),
        allow_failures: ensemble.allow_failures as usize,
        retry: ensemble.retry,
        at_once: ensemble.at_once.map_or(usize::MAX, |most| most as usize),
    });
    planned.collect()
}

fn conduits(network: &Network) -> Result<Vec<PlannedConduit>, CompileError> {
    let ids = (0..network.conduit_count()).map(model::ConduitId);
    let mut conduits = ids
        .map(|id| planned_conduit(network, id).ok_or(CompileError::Internal))
        .collect::<Result<Vec<_>, _>>()?;
    conduits.shrink_to_fit();
    Ok(conduits)
}

fn planned_conduit(network: &Network, id: model::ConduitId) -> Option<PlannedConduit> {
    let ends = network.conduit(id)?;
    let bundle = &network.bundles[ends.bundle.index()];
    let end = |instance, port: &model::Name, slot| {
        Some(PlannedEnd {
            instance: network.instance_id(instance)?,
            port: port.clone(),
            slot,
        })
    };
    Some(PlannedConduit {
        from: end(&ends.sender, &bundle.sender_port, ends.sender_slot)?,
        to: end(&ends.receiver, &bundle.receiver_port, ends.receiver_slot)?,
        filters: network.filters(bundle),
        buffer_messages: bundle.buffer.messages.unwrap_or(BUFFER_MESSAGES),
        buffer_bytes: bundle.buffer.bytes.unwrap_or(BUFFER_BYTES),
        buffer_grows: bundle.buffer.messages.is_none(),
        medium: bundle.medium,
        pattern: bundle.pattern.clone(),
        link: bundle.link.as_deref().map(link_settings),
    })
}

fn link_settings(link: &model::LinkTuning) -> Box<LinkSettings> {
    let &model::LinkTuning {
        streams,
        pacing,
        send_buffer,
        receive_buffer,
        compress,
    } = link;
    LinkSettings {
        streams,
        pacing,
        send_buffer,
        receive_buffer,
        compress,
        takes_streams: false,
    }
    .into()
}

fn filters(network: &Network, folders: &[PathBuf]) -> BTreeMap<String, FilterFunction> {
    let filters = network.extras.filters.iter();
    let calls =
        filters.map(|(name, filter)| (name.to_string(), user_filter(&filter.call, folders)));
    calls.collect()
}

fn user_filter(call: &UserFunction, folders: &[PathBuf]) -> FilterFunction {
    match call {
        UserFunction::Python { module, function } => {
            FilterFunction::Python(format!("{module}:{function}"))
        }
        UserFunction::Library { path, symbol } => FilterFunction::Library {
            path: library_path(path, folders),
            symbol: symbol.clone(),
        },
    }
}

/// The path of a library: beside the description if the library is there, or as in the description.
fn library_path(path: &str, folders: &[PathBuf]) -> String {
    match beside(path, folders) {
        Some(path) => path.to_string_lossy().into_owned(),
        None => path.to_owned(),
    }
}

/// A file of the description, if one of the folders has the file.
pub fn beside(path: &str, folders: &[PathBuf]) -> Option<PathBuf> {
    let mut paths = folders.iter().map(|folder| folder.join(path));
    paths.find(|path| path.exists())
}

fn options(network: &Network, choices: &Choices) -> Result<RunOptions, CompileError> {
    let extras = &network.extras;
    let default = RunOptions::default();
    let mut hosts = extras.hosts.values();
    let may_agents_be_late = hosts.any(|host| {
        use model::AgentStart::{Batch, ByHand};
        matches!(host.start, Batch(_) | ByHand)
    });
    let patience = match choices.serve_only || !choices.by_hand.is_empty() || may_agents_be_late {
        true => PATIENCE_WITH_USERS,
        false => default.patience,
    };
    Ok(RunOptions {
        patience: time("register_timeout", &extras.register_timeout, patience)?,
        grace: time("grace", &extras.grace, default.grace)?,
        heartbeat: time("heartbeat", &extras.heartbeat, default.heartbeat)?,
        line_patience: time("patience", &extras.patience, default.line_patience)?,
        encrypt: extras.encrypt.unwrap_or(default.encrypt),
        ceiling: host::memory() / 2,
        trace: choices.trace,
        time_unit: extras.time_unit.as_ref().map(ToString::to_string),
        folder: extras.folder.as_ref().map(PathBuf::from),
    })
}

/// A time of the description, or the default.
fn time(
    setting: &'static str,
    quantity: &Option<Quantity>,
    default: Duration,
) -> Result<Duration, CompileError> {
    let Some(quantity) = quantity else {
        return Ok(default);
    };
    let seconds = quantity.in_unit("s");
    let seconds = seconds.map_err(|source| CompileError::NoTime { setting, source })?;
    Duration::try_from_secs_f64(seconds).map_err(|_| CompileError::NoDuration { setting, seconds })
}

#[cfg(test)]
mod tests {
    use titin_model::{LoadOptions, load_texts};

    use super::*;
    use crate::host::HostId;
    use crate::plan::{InstanceId, PlannedCommand, PlannedInstance, PlannedProgram, StartMode};

    const MODEL: &str = "
ymmsl_version: v0.2
models:
  demo:
    components:
      macro: {description: x, ports: {o_i: out, s: back}, implementation: macro_prog}
      micro:
        description: x
        ports: {f_init: in, o_f: final}
        implementation: micro_prog
        multiplicity: 2
    conduits:
      macro.out: mine micro.in
      micro.final: macro.back
programs:
  macro_prog: {executable: ./macro, args: [-v], env: {A: b}, virtual_env: venv}
  micro_prog: {script: 'exec micro'}
settings: {dt: 0.5, macro.dt: 1.0, 'micro[1].dt': 2.0, micro.t_end: 3 s}
resources: {demo.micro: {threads: 2}}
titin:
  scales: {micro: {dt: 10 ms, dx: 1 mm}}
  progress: {micro: t_end}
  filters: {mine: {python: 'm:f', side: sender}}
  buffer: {default: {messages: 5}}
  grace: 1 min
";

    #[test]
    fn ends_are_in_the_unit_of_timestamps() {
        for (unit, end, wanted) in [
            ("", "2 h", 7200.0),
            ("  time_unit: h\n", "2 h", 2.0),
            ("  time_unit: h\n", "t_end", 0.5),
            ("  time_unit: min\n", "t_end", 30.0),
            ("  time_unit: h\n", "t_plain", 7.0),
            ("  time_unit: h\n", "5", 5.0),
        ] {
            let model = MODEL
                .replace("micro.t_end: 3 s", "micro.t_end: 30 min, t_plain: 7")
                .replace(
                    "  progress: {micro: t_end}\n",
                    &format!("{unit}  progress: {{micro: {end}}}\n"),
                );
            let plan = compiled_text(&model, &Choices::default()).unwrap();
            let micro = plan.instances.iter().nth(2).unwrap();
            assert_eq!(micro.end, Some(wanted), "{unit}{end}");
            // Scales stay in seconds.
            assert_eq!(micro.scale.as_ref().unwrap().dt, Some(0.01));
        }
    }

    fn compiled(choices: &Choices) -> Result<Plan, CompileError> {
        compiled_text(MODEL, choices)
    }

    fn compiled_text(text: &str, choices: &Choices) -> Result<Plan, CompileError> {
        let description = load_texts(&[("demo.ymmsl", text)], &LoadOptions::default()).unwrap();
        compile(
            &description.network(None).unwrap(),
            &folders(&description),
            choices,
        )
    }

    #[test]
    fn a_description_becomes_a_plan() {
        let plan = compiled(&Choices::default()).unwrap();
        let names: Vec<&str> = plan
            .instances
            .iter()
            .map(|planned| planned.name.as_str())
            .collect();
        assert_eq!(names, ["macro", "micro[0]", "micro[1]"]);
        assert_eq!(plan.conduits.len(), 4);
        let there = &plan.conduits[1];
        assert_eq!(
            (there.from.to_string(), there.from.instance.index()),
            ("out[1]".to_owned(), 0)
        );
        assert_eq!(
            (there.to.to_string(), there.to.instance.index()),
            ("in".to_owned(), 2)
        );
        assert_eq!(
            (there.buffer_messages, there.buffer_bytes),
            (5, BUFFER_BYTES)
        );
        assert_eq!(there.filters[0].side, Some(model::FilterSide::Sender));
        assert_eq!(plan.filters["mine"], FilterFunction::Python("m:f".into()));
        assert_eq!(plan.options.grace, Duration::from_secs(60));

        let micro = plan.instances.iter().nth(2).unwrap();
        let settings: Vec<&str> = micro.settings.keys().map(String::as_str).collect();
        assert_eq!(settings, ["dt", "micro.t_end", "micro[1].dt"]);
        assert_eq!(micro.end, Some(3.0));
        assert_eq!(micro.scale.as_ref().unwrap().dt, Some(0.01));
        assert_eq!((micro.cores, micro.component.as_str()), (2, "micro"));
        let StartMode::Program(program) = &micro.start else {
            panic!("{:?}", micro.start)
        };
        assert_eq!(
            (&program.command, program.threads),
            (&PlannedCommand::Script("exec micro".into()), 2)
        );
        assert!(plan.alternate(InstanceId(0), InstanceId(2)));
        assert!(!plan.alternate(InstanceId(1), InstanceId(2)));
    }

    /// The arguments that a model of the description gets beside its own.
    fn told(conduits: &str, more: &str) -> Vec<Vec<String>> {
        let text = format!(
            "ymmsl_version: v0.2\nmodels: {{m: {{components: {{\
             sea: {{description: x, ports: {{s: in, o_i: out, o_f: last}}, implementation: sea}}, \
             ice: {{description: x, ports: {{s: in, o_i: out}}, implementation: ice}}, \
             bed: {{description: x, ports: {{f_init: start, s: in}}, implementation: ice}}, \
             log: {{description: x, ports: {{s: in}}, implementation: log}}}}, conduits: {{{conduits}}}}}}}\nprograms:\n  \
             sea: {{titin: {{bmi: 'a.b:Sea', config: c}}, execution_model: openmpi}}\n  \
             ice: {{titin: {{bmi: 'a.b:Ice'}}}}\n  log: {{executable: log}}\n\
             resources: {{m.sea: {{mpi_processes: 2}}}}\n{more}"
        );
        let plan = compiled_text(&text, &Choices::default()).unwrap();
        let told = |planned: &PlannedInstance| match &planned.start {
            StartMode::Program(PlannedProgram {
                command: PlannedCommand::Executable { args, .. },
                ..
            }) => args
                .iter()
                .filter(|arg| arg.starts_with("--"))
                .cloned()
                .collect(),
            _ => Vec::new(),
        };
        plan.instances.iter().map(told).collect()
    }

    #[test]
    fn models_are_told_of_their_ranks_and_of_ports_with_fields() {
        let fields = |conduits: &str, more: &str| {
            let [sea, ice, bed, log] = told(conduits, more).try_into().unwrap();
            assert_eq!(sea[0], "--mpi");
            assert!(log.is_empty());
            let names = |told: Vec<String>| told.join(" ").replace("--field=", "");
            [names(sea[1..].to_vec()), names(ice), names(bed)]
        };
        // Both ends of a conduit between models, one of them on several ranks.
        assert_eq!(
            fields("sea.out: ice.in, ice.out: sea.in", ""),
            ["out in", "out in", ""]
        );
        // Whole arrays go to other programs, through filters, and to F_INIT ports.
        for conduit in [
            "sea.out: log.in",
            "sea.out: astype(float32) ice.in",
            "sea.last: bed.start",
        ] {
            assert_eq!(fields(conduit, ""), ["", "", ""], "{conduit}");
        }
        // Neither do two models on one rank each exchange fields.
        assert_eq!(fields("ice.out: bed.in", ""), ["", "", ""]);
        // All conduits of a port carry a field, or none.
        assert_eq!(fields("sea.out: [ice.in, bed.in]", ""), ["out", "in", "in"]);
        assert_eq!(fields("sea.out: [ice.in, log.in]", ""), ["", "", ""]);
        assert_eq!(fields("ice.out: [sea.in, bed.in]", ""), ["in", "out", "in"]);
        // The description says that another program has a field.
        let pattern = "titin: {fields: {log.in: {every: 2}}}\n";
        assert_eq!(fields("sea.out: log.in", pattern), ["out", "", ""]);
    }

    #[test]
    fn a_network_of_the_managers_host_alone_is_no_list_of_hosts() {
        let planned = |hosts: &str| {
            let text = format!("{MODEL}  hosts: {{{hosts}}}\n");
            compiled_text(&text, &Choices::default()).unwrap()
        };
        let plan = planned("localhost: {network: ib0}");
        assert_eq!(plan.own_network, Some("ib0".parse().unwrap()));
        assert!(!plan.lists_hosts);
        let plan = planned("localhost: {network: ib0, cores: 3}, n1: {network: 10.70.0.0/24}");
        assert!(plan.lists_hosts);
        assert_eq!(plan.hosts[0].network, Some("10.70.0.0/24".parse().unwrap()));
        for hosts in [
            "localhost: {cores: 3}",
            "localhost: {}",
            "n1: {network: ib0}",
        ] {
            assert!(planned(hosts).lists_hosts, "{hosts}");
        }
    }

    #[test]
    fn a_host_process_is_on_one_host() {
        let compiled = |hosts: &str| {
            let text = format!(
                "ymmsl_version: v0.2\nmodels: {{m: {{components: {{a: {{description: x, implementation: a}}, \
                 b: {{description: x, implementation: b}}}}}}}}\nprograms:\n  \
                 a: {{titin: {{host: one, library: ./a.so, function: run}}}}\n  \
                 b: {{titin: {{host: one, library: ./a.so, function: go}}}}\ntitin: {{hosts: {{{hosts}}}}}\n"
            );
            let description = load_texts(&[("m", &text)], &LoadOptions::default()).unwrap();
            let network = description.network(None).unwrap();
            compile(&network, &[], &Choices::default())
        };
        let plan = compiled("n1: {components: [b]}").unwrap();
        assert_eq!(plan.instances[InstanceId(0)].pinned_host, Some(HostId(1)));
        let error = compiled("n1: {components: [a]}, n2: {components: [b]}").unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("the functions of host process one are")
        );
    }

    #[test]
    fn the_first_of_a_host_starts_it_for_all() {
        let text = "
ymmsl_version: v0.2
models:
  m:
    components:
      a: {description: x, ports: {o_i: out other}, implementation: a}
      b: {description: x, ports: {f_init: in}, implementation: b, multiplicity: 2}
      c: {description: x, ports: {f_init: in}, implementation: c}
    conduits: {a.out: b.in, a.other: c.in}
programs:
  a: {titin: {host: one, library: ./a.so, function: run}}
  b: {titin: {host: one, library: ./a.so, step: go_on}}
  c: {titin: {host: two, function: 'm.n:f'}}
titin: {stage: {a: {in: [x]}, b: {in: [x, y]}}}
";
        let description = load_texts(&[("m", text)], &LoadOptions::default()).unwrap();
        // A reader accepts the description as written by titin.
        let written = description.to_ymmsl();
        assert!(
            written.contains("step: go_on")
                && load_texts(&[("m", &written)], &LoadOptions::default()).is_ok()
        );
        let network = description.network(None).unwrap();
        let plan = compile(&network, &folders(&description), &Choices::default()).unwrap();
        let hosting = |id: u32| match &plan.instances[InstanceId(id)].start {
            StartMode::Program(PlannedProgram {
                command: PlannedCommand::Host(hosting),
                ..
            }) => hosting.clone(),
            other => panic!("{other:?}"),
        };
        let (one, two) = (hosting(0), hosting(3));
        let guests: Vec<_> = one
            .functions
            .iter()
            .map(|guest| (&*guest.instance, &*guest.function, guest.steps))
            .collect();
        assert_eq!(
            guests,
            [
                ("a", "run", false),
                ("b[0]", "go_on", true),
                ("b[1]", "go_on", true)
            ]
        );
        assert!(!one.python && two.python && two.functions[0].library.is_none());
        assert_eq!(two.functions[0].function, "m.n:f");
        for id in [1, 2] {
            let planned = &plan.instances[InstanceId(id)];
            assert_eq!(
                (&planned.start, planned.folder()),
                (&StartMode::WithLeader(InstanceId(0)), "one")
            );
            assert!(planned.stage_in.is_empty());
        }
        assert_eq!(plan.instances[InstanceId(0)].stage_in, ["x", "y"]);
        let by_hand = Choices {
            serve_only: true,
            ..Choices::default()
        };
        let plan = compile(&network, &folders(&description), &by_hand).unwrap();
        assert!(matches!(
            plan.instances[InstanceId(0)].start,
            StartMode::Manual(Some(_))
        ));
        assert_eq!(
            plan.instances[InstanceId(1)].start,
            StartMode::WithLeader(InstanceId(0))
        );
    }

    #[test]
    fn a_run_waits_an_hour_for_agents_by_hand_and_in_jobs() {
        for (start, seconds) in [
            ("ssh", 300),
            ("by hand", 3600),
            ("{batch: slurm, time: 2 h}", 3600),
        ] {
            let text = format!("{MODEL}  hosts: {{far: {{start: {start}}}}}\n");
            let description = load_texts(&[("t", &text)], &LoadOptions::default()).unwrap();
            let network = description.network(None).unwrap();
            let plan = compile(&network, &folders(&description), &Choices::default()).unwrap();
            assert_eq!(
                plan.options.patience,
                Duration::from_secs(seconds),
                "{start}"
            );
        }
    }

    #[test]
    fn some_may_be_hosted_or_all_be_started_by_hand() {
        let hosted = compiled(&Choices {
            hosted: vec!["micro".into()],
            ..Choices::default()
        })
        .unwrap();
        assert_eq!(
            hosted
                .instances
                .iter()
                .filter(|planned| planned.start == StartMode::Hosted)
                .count(),
            2
        );
        let by_hand = compiled(&Choices {
            serve_only: true,
            ..Choices::default()
        })
        .unwrap();
        assert!(
            by_hand
                .instances
                .iter()
                .all(|planned| matches!(planned.start, StartMode::Manual(Some(_))))
        );
        assert_eq!(by_hand.options.patience, Duration::from_secs(3600));
        let one = compiled(&Choices {
            by_hand: vec!["micro[1]".into()],
            ..Choices::default()
        })
        .unwrap();
        let by_hand = |planned: &PlannedInstance| matches!(planned.start, StartMode::Manual(_));
        let starts: Vec<bool> = one.instances.iter().map(by_hand).collect();
        assert_eq!(starts, [false, false, true]);
        let error = compiled(&Choices {
            hosted: vec!["mirco".into()],
            ..Choices::default()
        });
        assert!(
            error
                .unwrap_err()
                .to_string()
                .contains("did you mean micro?")
        );
    }
}
