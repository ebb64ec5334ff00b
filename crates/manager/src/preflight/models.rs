//! The probe of models with the Basic Model Interface: each is initialized as for a run, and tells what its ports carry.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use titin_model::{BMI_WORDS, BundleId, ComponentId, InstanceName, Network, NetworkComponent};

use super::{context_without_run, environment_of};
use crate::compile::{Choices, compile};
use crate::launch::{LaunchContext, PreparedCommand, prepare};
use crate::plan::{Plan, PlannedInstance, StartMode};
use crate::stage::locate;

/// Where something is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbedPlace {
    /// In the model of a component.
    Component(ComponentId),
    /// Between the models at the two ends of conduits.
    Bundle(BundleId),
}

/// Starts the model of each component that has one with the Basic Model Interface, by its first instance, initializes and
/// finalizes the model, and compares what the models at the ends of each conduit tell. Returns what is wrong, and where.
///
/// A model is called in a process of its own, with the environment that it has in a run. A model that needs more than an
/// environment, such as modules, is left out. The arguments are as for
/// [`programs_that_cannot_start`](super::programs_that_cannot_start).
pub fn probe_models(
    network: &Network,
    folders: &[PathBuf],
    env: &BTreeMap<String, String>,
    titin: &Path,
) -> Vec<(ProbedPlace, String)> {
    // The run reports errors of the plan.
    let Ok(plan) = compile(network, folders, &Choices::default()) else {
        return Vec::new();
    };
    let context = context_without_run(env, titin);
    let mut faults = Vec::new();
    let mut probed: HashMap<ComponentId, Value> = HashMap::new();
    let mut python = None;
    for model in models(network, &plan, &context) {
        let question = question(network, folders, &model);
        match model.python.ask("probe", &question) {
            Ok(told) => {
                probed.insert(model.component.id, told);
                python.get_or_insert(model.python);
            }
            Err(why) => faults.push((ProbedPlace::Component(model.component.id), why)),
        }
    }
    if let Some(python) = python {
        faults.extend(mismatches(network, &probed, &python));
    }
    faults
}

/// A model that can be called without a run.
struct Model<'a> {
    component: &'a NetworkComponent,
    planned: &'a PlannedInstance,
    python: Python,
}

/// The Python package as the program of a model starts it, with the environment that it has in a run.
struct Python {
    command: PreparedCommand,
    env: BTreeMap<String, String>,
}

/// The models of a plan that can be called without a run, each by the first instance of its component: those on this host
/// that need no more than an environment.
fn models<'a>(
    network: &'a Network,
    plan: &'a Plan,
    context: &'a LaunchContext<'_>,
) -> impl Iterator<Item = Model<'a>> {
    let mut seen = HashSet::new();
    let instances = plan.instances.ids().map(|id| &plan.instances[id]);
    let first = instances.filter(move |planned| seen.insert(planned.component_id));
    first.filter_map(|planned| {
        let component = &network.components[planned.component_id.index()];
        let is_model = component.program.as_ref().is_some_and(|p| p.runs_bmi());
        let StartMode::Program(program) = &planned.start else {
            return None;
        };
        if !is_model || planned.pinned_host.is_some() {
            return None;
        }
        // The run reports programs that cannot be prepared.
        let command = prepare(&planned.name, program, context).ok()?;
        command.bare.then(|| Model {
            component,
            planned,
            python: Python {
                env: environment_of(&command, context),
                command,
            },
        })
    })
}

/// What a model is asked: its instance, the settings by the names that the instance uses, the ports, and the files that a run
/// would copy into the work directory.
fn question(network: &Network, folders: &[PathBuf], model: &Model<'_>) -> Value {
    let (component, planned) = (model.component, model.planned);
    let mut settings = serde_json::Map::new();
    if let Ok(instance) = planned.name.parse::<InstanceName>() {
        for (path, _) in network.settings.of(&instance) {
            let dots = path.match_indices('.').map(|(dot, _)| dot + 1);
            for name in [0].into_iter().chain(dots).map(|begin| &path[begin..]) {
                if let Some(value) = network.settings.find(&instance, name) {
                    settings.insert(name.to_owned(), json!(value));
                }
            }
        }
    }
    let connected: HashSet<&str> = network
        .bundles
        .iter()
        .flat_map(|bundle| {
            [
                (bundle.sender, bundle.sender_port.as_str()),
                (bundle.receiver, bundle.receiver_port.as_str()),
            ]
        })
        .filter_map(|(id, port)| (id == component.id).then_some(port))
        .collect();
    let ports: Vec<Value> = planned
        .ports
        .iter()
        .map(|port| {
            let name = port.name.as_str();
            let connected = connected.contains(name);
            json!({"name": name, "operator": port.operator.key(), "connected": connected})
        })
        .collect();
    let files = planned.stage_in.iter();
    // A file that is missing is a misfit of its own, which the model tells.
    let files: Vec<PathBuf> = files
        .flat_map(|name| locate(name, folders).unwrap_or_default())
        .collect();
    json!({"instance": planned.name, "settings": settings, "ports": ports, "files": files})
}

/// What is wrong between the models at the two ends of conduits, by what they have told. Filters may change shapes and
/// numbers, so only conduits without filters are looked at.
fn mismatches(
    network: &Network,
    probed: &HashMap<ComponentId, Value>,
    python: &Python,
) -> Vec<(ProbedPlace, String)> {
    let plain = network.bundles.iter().filter(|b| b.filters.is_empty());
    let (bundles, pairs): (Vec<BundleId>, Vec<Value>) = plain
        .filter_map(|bundle| {
            let sends = probed
                .get(&bundle.sender)?
                .get(bundle.sender_port.as_str())?;
            let takes = probed
                .get(&bundle.receiver)?
                .get(bundle.receiver_port.as_str())?;
            Some((bundle.id, json!({"sends": sends, "takes": takes})))
        })
        .unzip();
    if pairs.is_empty() {
        return Vec::new();
    }
    let answer = python.ask("match", &json!(pairs)).unwrap_or_default();
    let reasons = answer.as_array().into_iter().flatten().map(Value::as_str);
    bundles
        .into_iter()
        .zip(reasons)
        .filter_map(|(bundle, why)| Some((ProbedPlace::Bundle(bundle), why?.to_owned())))
        .collect()
}

impl Python {
    /// The answer of the Python package to a question. Fails with what Python has printed.
    fn ask(&self, action: &str, question: &Value) -> Result<Value, String> {
        let launch = &self.command.launch;
        let asked = || {
            let words = [&BMI_WORDS[..2], &[action]].concat();
            let mut asked = Command::new(&launch.program)
                .args(words)
                .args(&launch.args[BMI_WORDS.len()..])
                // As in a run, no file beside the description is found by a relative name.
                .current_dir("/")
                .env_clear()
                .envs(&self.env)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()?;
            if let Some(mut stdin) = asked.stdin.take() {
                // A process that has ended does not read the question; its output says why.
                let _ = stdin.write_all(question.to_string().as_bytes());
            }
            asked.wait_with_output()
        };
        let program = launch.program.display();
        let output = asked().map_err(|error| format!("{program} cannot be started: {error}"))?;
        match serde_json::from_slice(&output.stdout) {
            Ok(answer) if output.status.success() => Ok(answer),
            _ => Err(match String::from_utf8_lossy(&output.stderr).trim() {
                "" => format!("{program} has ended with {}", output.status),
                text => text.trim_start_matches("titin.bmi: ").to_owned(),
            }),
        }
    }
}
