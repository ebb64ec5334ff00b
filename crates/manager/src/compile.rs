//! From the description to the [`Plan`] of a run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use titin_model as model;
use titin_model::quantity::{Dimension, Quantity};
use titin_model::{
    Description, EndTime, ExecutionModel, Network, NetworkComponent, ProgramKind, ResourceRequest,
    UserFunction,
};
use titin_os::host;
use titin_wire::LinkSettings;
use titin_wire::control::{Scale, UserFilter};

use crate::placement;
use crate::plan::{
    Conduit, End, Guest, Hosting, InstanceId, MpiStart, PerInstance, Plan, Planned, Port, Program,
    Ranks, Start, Terms, What,
};

/// What a conduit may hold where the description does not say.
const BUFFER_MESSAGES: u64 = 64;
const BUFFER_BYTES: u64 = 1 << 30;

/// What the user chose on the command line.
#[derive(Debug, Clone, Default)]
pub struct Choices {
    /// Components, implementations or instances that the calling process runs.
    pub hosted: Vec<String>,
    /// Those that the user starts.
    pub by_hand: Vec<String>,
    /// Nothing is started; the user does that.
    pub serve_only: bool,
    /// Programs send event rows.
    pub trace: bool,
}

/// Looks everything up that a run needs.
///
/// # Errors
/// What cannot be done about the choices, for people.
pub fn compile(network: &Network, folders: &[PathBuf], choices: &Choices) -> Result<Plan, String> {
    for name in choices.hosted.iter().chain(&choices.by_hand) {
        let is_meant = |component: &NetworkComponent| {
            component.path.as_str() == name || component.implementation.as_deref() == Some(name)
        };
        let is_instance = || {
            network
                .instances()
                .any(|instance| instance.to_string() == *name)
        };
        if !network.components.iter().any(is_meant) && !is_instance() {
            let names = || {
                network
                    .components
                    .iter()
                    .map(|component| component.path.as_str())
            };
            let hint = model::nearest(name, names()).map(|near| format!("; did you mean {near}?"));
            let hint = hint.unwrap_or_else(|| format!("; it has {}", model::listing(names())));
            return Err(format!(
                "the model {} has no component {name}{hint}",
                network.model
            ));
        }
    }
    let planned = |name: model::InstanceName| {
        Some(planned(
            network,
            network.component_of(&name)?,
            &name,
            choices,
            folders,
        ))
    };
    let mut instances = network.instances().filter_map(planned).collect();
    gather(&mut instances);
    Ok(Plan {
        model: network.model.to_string(),
        instances,
        components: components(network),
        conduits: conduits(network)?,
        filters: filters(network, folders),
        alternating: placement::alternating(network),
        terms: terms(network, choices)?,
    })
}

/// The folders of the description's files: where relative paths begin that are not a program's.
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

/// What names in overlays may lead to. Each instance gets all of it, so in large models that is left out.
fn components(network: &Network) -> Vec<(String, Vec<u32>)> {
    const MOST: usize = 256;
    let components = network.components.iter();
    let named =
        components.map(|component| (component.path.to_string(), component.multiplicity.clone()));
    if network.components.len() > MOST {
        Vec::new()
    } else {
        named.collect()
    }
}

fn planned(
    network: &Network,
    component: &NetworkComponent,
    name: &model::InstanceName,
    choices: &Choices,
    folders: &[PathBuf],
) -> Planned {
    let (path, extras) = (component.path.as_str(), &network.extras);
    let stage = extras.stage.get(path).cloned().unwrap_or_default();
    let port = |port: &model::Port| Port {
        name: port.name.clone(),
        operator: port.operator,
        guessed: port.guessed,
        timeline: (!port.timeline.is_root()).then(|| port.timeline.to_string().into()),
    };
    let mut planned = Planned {
        name: name.to_string(),
        component: path.to_owned(),
        component_id: component.id,
        indices: name.indices().to_vec(),
        start: Start::default(),
        cores: u32::try_from(component.need.cores()).unwrap_or(u32::MAX),
        ports: component.ports.values().map(port).collect(),
        spare_ports: spare_ports(component),
        settings: network
            .settings
            .of(name)
            .map(|(path, value)| (path.to_string(), value.clone()))
            .collect(),
        scale: extras.scales.get(path).map(scale),
        end: extras.progress.get(path).and_then(|progress| {
            let unit = extras.time_unit();
            match &progress.end {
                EndTime::Time(time) if time.dimension == Dimension::NONE => Some(time.value_si),
                EndTime::Time(time) => time.in_unit(unit).ok(),
                EndTime::Setting(setting) => {
                    network.settings.find(name, setting)?.in_unit(unit).ok()
                }
            }
        }),
        stage_in: stage.input,
        stage_out: stage.output,
        host: None,
    };
    let is_meant = |names: &[String]| {
        let own = [
            Some(planned.name.as_str()),
            Some(path),
            component.implementation.as_deref(),
        ];
        names.iter().any(|name| own.contains(&Some(name.as_str())))
    };
    let manual = |program: &model::Program| program.execution_model == ExecutionModel::Manual;
    let by_hand = choices.serve_only
        || is_meant(&choices.by_hand)
        || component
            .program
            .as_ref()
            .is_some_and(|program| manual(program));
    let program = component
        .program
        .as_ref()
        .and_then(|program| described(program, component, &planned.name, folders));
    planned.start = match program {
        _ if is_meant(&choices.hosted) => Start::Hosted,
        Some(program) if !by_hand => Start::Program(program),
        program => Start::ByHand(program),
    };
    planned
}

/// Has the first instance of each host start it, for all.
fn gather(instances: &mut PerInstance<Planned>) {
    let mut leaders: BTreeMap<String, InstanceId> = BTreeMap::new();
    for id in instances.ids() {
        let Some(hosting) = hosting(&mut instances[id].start) else {
            continue;
        };
        let (name, guests) = (hosting.name.clone(), std::mem::take(&mut hosting.guests));
        let leader = *leaders.entry(name.clone()).or_insert(id);
        instances[id].host = Some(name);
        if leader != id {
            instances[id].start = Start::Guest(leader);
            let files = std::mem::take(&mut instances[id].stage_in);
            let wanted: Vec<String> = files
                .into_iter()
                .filter(|file| !instances[leader].stage_in.contains(file))
                .collect();
            instances[leader].stage_in.extend(wanted);
        }
        if let Some(hosting) = self::hosting(&mut instances[leader].start) {
            hosting.guests.extend(guests);
        }
    }
}

fn hosting(start: &mut Start) -> Option<&mut Hosting> {
    match start {
        Start::Program(program) | Start::ByHand(Some(program)) => match &mut program.what {
            What::Host(hosting) => Some(hosting),
            _ => None,
        },
        _ => None,
    }
}

fn spare_ports(component: &NetworkComponent) -> Vec<String> {
    let ports = component
        .program
        .iter()
        .flat_map(|program| program.ports.keys());
    ports
        .filter(|name| !component.ports.contains_key(*name))
        .map(ToString::to_string)
        .collect()
}

/// What is to be run, if the description says so.
fn described(
    program: &model::Program,
    component: &NetworkComponent,
    instance: &str,
    folders: &[PathBuf],
) -> Option<Program> {
    let folder = program
        .directory
        .clone()
        .map(|folder| std::path::absolute(&folder).unwrap_or(folder));
    let what = match &program.kind {
        ProgramKind::Manual => return None,
        ProgramKind::Executable(path) => What::Executable {
            path: path.to_string_lossy().into_owned(),
            args: program.args.clone(),
        },
        ProgramKind::Script(text) => What::Script(text.clone()),
        ProgramKind::BuiltIn(builtin) => What::BuiltIn {
            name: builtin.name().trim_start_matches("titin.").to_owned(),
            folders: folders.to_vec(),
        },
        ProgramKind::Hosted(guest) => {
            let others = folders
                .iter()
                .filter(|other| folder.as_ref() != Some(*other));
            let places: Vec<PathBuf> = folder.iter().chain(others).cloned().collect();
            let (library, function) = match &guest.call {
                UserFunction::Python { module, function } => (None, format!("{module}:{function}")),
                UserFunction::Library { path, symbol } => {
                    let found =
                        beside(path, &places).map(|path| path.to_string_lossy().into_owned());
                    (Some(found.unwrap_or_else(|| path.clone())), symbol.clone())
                }
            };
            let python = library.is_none();
            let one = Guest {
                instance: instance.to_owned(),
                library,
                function,
                steps: guest.steps,
            };
            What::Host(Hosting {
                name: guest.host.to_string(),
                python,
                guests: vec![one],
                folders: places,
            })
        }
    };
    let start = match program.execution_model {
        ExecutionModel::Direct | ExecutionModel::Manual => None,
        ExecutionModel::OpenMpi => Some(MpiStart::OpenMpi),
        ExecutionModel::Mpich => Some(MpiStart::Mpich),
        ExecutionModel::IntelMpi => Some(MpiStart::IntelMpi),
        ExecutionModel::SrunMpi => Some(MpiStart::Srun),
    };
    let processes = u32::try_from(component.need.processes())
        .unwrap_or(u32::MAX)
        .max(1);
    let nodes = match component.need {
        ResourceRequest::MpiNodes { nodes, .. } => Some(nodes),
        ResourceRequest::Threads(_) | ResourceRequest::MpiCores { .. } => None,
    };
    let cores = u32::try_from(component.need.cores()).unwrap_or(u32::MAX);
    Some(Program {
        name: program.name.to_string(),
        what,
        base: program.base_env,
        modules: program.modules.clone(),
        virtual_env: program.virtual_env.clone(),
        env: program
            .env
            .iter()
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect(),
        mpi: start.map(|start| Ranks {
            start,
            processes,
            nodes,
        }),
        threads: (cores / processes).max(1),
        folder: folder
            .or_else(|| folders.first().cloned())
            .unwrap_or_default(),
    })
}

fn scale(scales: &model::Scales) -> Scale {
    let metres = |lengths: &[Quantity]| {
        lengths
            .iter()
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

fn conduits(network: &Network) -> Result<Vec<Conduit>, String> {
    let lost = || "internal error: the network's conduits and instances do not fit".to_owned();
    (0..network.conduit_count())
        .map(|id| {
            let ends = network.conduit(model::ConduitId(id)).ok_or_else(lost)?;
            let bundle = &network.bundles[ends.bundle.index()];
            let end = |instance, port: &model::Name, slot| {
                let instance = network.instance_id(instance).ok_or_else(lost)?;
                Ok::<_, String>(End {
                    instance,
                    port: port.clone(),
                    slot,
                })
            };
            Ok(Conduit {
                from: end(&ends.sender, &bundle.sender_port, ends.sender_slot)?,
                to: end(&ends.receiver, &bundle.receiver_port, ends.receiver_slot)?,
                filters: network.filters(bundle),
                buffer_messages: bundle.buffer.messages.unwrap_or(BUFFER_MESSAGES),
                buffer_bytes: bundle.buffer.bytes.unwrap_or(BUFFER_BYTES),
                medium: bundle.medium,
                pattern: bundle.pattern.clone(),
                link: bundle.link.as_deref().map(link),
            })
        })
        .collect::<Result<Vec<_>, _>>()
        .map(|mut conduits| {
            conduits.shrink_to_fit();
            conduits
        })
}

fn link(link: &model::LinkTuning) -> Box<LinkSettings> {
    let &model::LinkTuning {
        streams,
        pacing,
        send_buffer,
        receive_buffer,
    } = link;
    LinkSettings {
        streams,
        pacing,
        send_buffer,
        receive_buffer,
    }
    .into()
}

fn filters(network: &Network, folders: &[PathBuf]) -> BTreeMap<String, UserFilter> {
    let filters = network.extras.filters.iter().map(|(name, filter)| {
        let call = match &filter.call {
            UserFunction::Python { module, function } => {
                UserFilter::Python(format!("{module}:{function}"))
            }
            UserFunction::Library { path, symbol } => {
                let path = beside(path, folders)
                    .map_or(path.clone(), |path| path.to_string_lossy().into_owned());
                UserFilter::Library {
                    path,
                    symbol: symbol.clone(),
                }
            }
        };
        (name.to_string(), call)
    });
    filters.collect()
}

/// A file named in the description, where it is found beside one of its files.
pub fn beside(path: &str, folders: &[PathBuf]) -> Option<PathBuf> {
    folders
        .iter()
        .map(|folder| folder.join(path))
        .find(|path| path.exists())
}

fn terms(network: &Network, choices: &Choices) -> Result<Terms, String> {
    let time = |name: &str, quantity: &Option<Quantity>, default: Duration| match quantity {
        None => Ok(default),
        Some(quantity) => {
            let seconds = quantity
                .in_unit("s")
                .map_err(|error| format!("titin: {name}: {error}"))?;
            Duration::try_from_secs_f64(seconds)
                .map_err(|_| format!("titin: {name}: {seconds} s is no time that can be waited"))
        }
    };
    let usual = Terms::default();
    // Whoever starts programs by hand, in a debugger perhaps, takes longer.
    let patience = if choices.serve_only || !choices.by_hand.is_empty() {
        Duration::from_secs(3600)
    } else {
        usual.patience
    };
    Ok(Terms {
        patience: time(
            "register_timeout",
            &network.extras.register_timeout,
            patience,
        )?,
        grace: time("grace", &network.extras.grace, usual.grace)?,
        heartbeat: time("heartbeat", &network.extras.heartbeat, usual.heartbeat)?,
        ceiling: host::memory() / 2,
        trace: choices.trace,
        time_unit: network.extras.time_unit.as_ref().map(ToString::to_string),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use titin_model::{LoadOptions, load_texts};

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
            let description =
                load_texts(&[("demo.ymmsl", &model)], &LoadOptions::default()).unwrap();
            let plan = compile(
                &description.network(None).unwrap(),
                &folders(&description),
                &Choices::default(),
            )
            .unwrap();
            let micro = plan.instances.iter().nth(2).unwrap();
            assert_eq!(micro.end, Some(wanted), "{unit}{end}");
            // Scales stay in seconds.
            assert_eq!(micro.scale.as_ref().unwrap().dt, Some(0.01));
        }
    }

    fn compiled(choices: &Choices) -> Result<Plan, String> {
        let description = load_texts(&[("demo.ymmsl", MODEL)], &LoadOptions::default()).unwrap();
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
        assert_eq!(plan.filters["mine"], UserFilter::Python("m:f".into()));
        assert_eq!(plan.terms.grace, Duration::from_secs(60));

        let micro = plan.instances.iter().nth(2).unwrap();
        let settings: Vec<&str> = micro.settings.keys().map(String::as_str).collect();
        assert_eq!(settings, ["dt", "micro.t_end", "micro[1].dt"]);
        assert_eq!(micro.end, Some(3.0));
        assert_eq!(micro.scale.as_ref().unwrap().dt, Some(0.01));
        assert_eq!((micro.cores, micro.component.as_str()), (2, "micro"));
        let Start::Program(program) = &micro.start else {
            panic!("{:?}", micro.start)
        };
        assert_eq!(
            (&program.what, program.threads),
            (&What::Script("exec micro".into()), 2)
        );
        assert!(plan.alternate(InstanceId(0), InstanceId(2)));
        assert!(!plan.alternate(InstanceId(1), InstanceId(2)));
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
        // It is read again as it was written.
        let written = description.to_ymmsl();
        assert!(
            written.contains("step: go_on")
                && load_texts(&[("m", &written)], &LoadOptions::default()).is_ok()
        );
        let network = description.network(None).unwrap();
        let plan = compile(&network, &folders(&description), &Choices::default()).unwrap();
        let hosting = |id: u32| match &plan.instances[InstanceId(id)].start {
            Start::Program(Program {
                what: What::Host(hosting),
                ..
            }) => hosting.clone(),
            other => panic!("{other:?}"),
        };
        let (one, two) = (hosting(0), hosting(3));
        let guests: Vec<_> = one
            .guests
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
        assert!(!one.python && two.python && two.guests[0].library.is_none());
        assert_eq!(two.guests[0].function, "m.n:f");
        for id in [1, 2] {
            let planned = &plan.instances[InstanceId(id)];
            assert_eq!(
                (&planned.start, planned.folder()),
                (&Start::Guest(InstanceId(0)), "one")
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
            Start::ByHand(Some(_))
        ));
        assert_eq!(
            plan.instances[InstanceId(1)].start,
            Start::Guest(InstanceId(0))
        );
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
                .filter(|planned| planned.start == Start::Hosted)
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
                .all(|planned| matches!(planned.start, Start::ByHand(Some(_))))
        );
        assert_eq!(by_hand.terms.patience, Duration::from_secs(3600));
        let one = compiled(&Choices {
            by_hand: vec!["micro[1]".into()],
            ..Choices::default()
        })
        .unwrap();
        let by_hand = |planned: &Planned| matches!(planned.start, Start::ByHand(_));
        let starts: Vec<bool> = one.instances.iter().map(by_hand).collect();
        assert_eq!(starts, [false, false, true]);
        let error = compiled(&Choices {
            hosted: vec!["mirco".into()],
            ..Choices::default()
        });
        assert!(error.unwrap_err().contains("did you mean micro?"));
    }
}
