//! The description: the content of all files, merged, with all imports.

use std::path::PathBuf;
use std::sync::Arc;

use indexmap::IndexMap;

use crate::built_in::{BMI_WORDS, BuiltIn};
use crate::filter::Filter;
use crate::names::Name;
use crate::operator::{Operator, Timeline};
use crate::options::StartPolicy;
use crate::problem::{Code, ProblemReport, Problems, TextPosition, is_assignment};
use crate::settings::{SettingType, Settings};
use crate::titin_section::{Extras, UserFunction};

/// The port for settings that travel with messages; every component has one.
pub const SETTINGS_IN: &str = "muscle_settings_in";

/// The most instances of a run, and so of a component in one dimension.
pub(crate) const MOST_INSTANCES: u64 = 1 << 24;

/// The content of all files of a description. Made by [`load`](crate::load).
#[derive(Clone, Debug, Default)]
pub struct Description {
    /// The subject of the description, for people.
    pub description: String,
    /// Models by name; imported models under the full dotted name.
    pub models: IndexMap<Name, Model>,
    /// Programs by name; imported programs under the full dotted name.
    pub programs: IndexMap<Name, Arc<Program>>,
    /// Implementation by `model.component`; `None` removes the component.
    pub custom_implementations: IndexMap<Name, CustomImplementation>,
    /// The settings; paths begin with the name of a component.
    pub settings: Settings,
    /// Resources by `model.component`.
    pub resources: IndexMap<Name, Resources>,
    /// The times at which the state is saved.
    pub checkpoints: Checkpoints,
    /// Snapshot to resume from, by `model.component`.
    pub resume: IndexMap<Name, Resume>,
    /// The `titin:` section.
    pub extras: Extras,
    /// Warnings. A description with errors is not made.
    pub warnings: ProblemReport,
    pub(crate) files: Vec<String>,
    /// Components and implementations that run inside the calling program or are started by hand.
    pub(crate) named: Vec<String>,
    /// How the components come to run.
    pub(crate) start: StartPolicy,
    /// Whether components without an implementation are left out.
    pub(crate) allow_missing: bool,
    /// Implementations whose import failed and was reported.
    pub(crate) not_imported: std::collections::HashSet<Name>,
}

impl Description {
    /// The files that were read, with imports, under the names that the user gave.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        let names = self.files.iter().map(String::as_str);
        names.filter(|name| !is_assignment(name))
    }

    /// Adds an error about a model with the Basic Model Interface, as the model of a component or at an end of conduits.
    pub fn refuse_model(&mut self, at: TextPosition, what: String, why: String) {
        let mut problems = Problems::with_files(self.files.clone());
        problems.error(at, Code::Probe, what, why);
        self.warnings
            .problems
            .extend(problems.into_report().problems);
    }

    /// Adds a warning that this host cannot start a program.
    pub fn warn_not_here(&mut self, program: &str, why: String) {
        let at = self
            .programs
            .get(program)
            .map(|program| program.at)
            .unwrap_or_default();
        let mut problems = Problems::with_files(self.files.clone());
        let what = format!("program \"{program}\" cannot be started on this host");
        let hint = "if it runs on another one, it only has to be there".to_owned();
        problems.warn(at, Code::NotHere, what, why, hint);
        self.warnings
            .problems
            .extend(problems.into_report().problems);
    }
}

/// A model: components and the conduits between them.
#[derive(Clone, Debug, Default)]
pub struct Model {
    /// The name.
    pub name: Name,
    /// For people.
    pub description: String,
    /// The ports towards a model that uses this model as an implementation.
    pub ports: Ports,
    /// The settings that the model reads.
    pub supported_settings: IndexMap<Name, SupportedSetting>,
    /// The components by name.
    pub components: IndexMap<Name, Component>,
    /// The conduits, one for each receiver.
    pub conduits: Vec<Conduit>,
    /// Timelines that have the same points.
    pub matching_timelines: Vec<MatchingTimelines>,
    /// Whether a part of the model could not be read; the problem has been reported.
    pub(crate) faulty: bool,
    pub(crate) at: TextPosition,
}

/// A submodel, mapper or terminal.
#[derive(Clone, Debug, Default)]
pub struct Component {
    /// The name.
    pub name: Name,
    /// For people.
    pub description: String,
    /// The ports.
    pub ports: Arc<Ports>,
    /// The program or model that implements the component.
    pub implementation: Option<Name>,
    /// The number of instances in each dimension; empty for one.
    pub multiplicity: Vec<u32>,
    /// Whether the model can run without the component.
    pub optional: bool,
    /// Whether the description lists the ports, even as an empty list.
    pub(crate) lists_ports: bool,
    pub(crate) at: TextPosition,
    pub(crate) implementation_at: TextPosition,
}

/// Ports by name, in the order of the description.
pub type Ports = IndexMap<Name, Port>;

/// A port of a component, program or model.
#[derive(Clone, Debug, PartialEq)]
pub struct Port {
    /// The name.
    pub name: Name,
    /// The operator that uses the port.
    pub operator: Operator,
    /// The component's timeline that the port is on; the root for the usual timeline.
    pub timeline: Timeline,
    /// Whether the operator was guessed from the conduits, because a v0.1 component lists no ports.
    /// Only the direction of a guessed port is certain.
    pub guessed: bool,
    pub(crate) at: TextPosition,
}

impl Port {
    /// The port for settings, which a component need not list.
    pub(crate) fn for_settings(at: TextPosition) -> Self {
        Port {
            name: SETTINGS_IN.into(),
            operator: Operator::FInit,
            timeline: Timeline::default(),
            guessed: false,
            at,
        }
    }
}

/// A conduit between two ports.
#[derive(Clone, Debug)]
pub struct Conduit {
    /// The port that messages come from.
    pub sender: PortReference,
    /// The port that messages go to.
    pub receiver: PortReference,
    /// The filters on the way.
    pub filters: Vec<Filter>,
    pub(crate) at: TextPosition,
    pub(crate) receiver_at: TextPosition,
}

/// A port, as conduits name an end.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PortReference {
    /// The component; `None` for a port of the model itself.
    pub component: Option<Name>,
    /// The port.
    pub port: Name,
}

impl std::fmt::Display for PortReference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.component {
            Some(component) => write!(f, "{component}.{}", self.port),
            None => write!(f, "{}", self.port),
        }
    }
}

/// Timelines that have the same points, as declared.
#[derive(Clone, Debug)]
pub struct MatchingTimelines {
    /// The first timeline.
    pub head: Timeline,
    /// The timelines that match the first.
    pub others: Vec<Timeline>,
    pub(crate) at: TextPosition,
}

/// A setting that a program or model reads.
#[derive(Clone, Debug)]
pub struct SupportedSetting {
    /// The type of the value.
    pub of: SettingType,
    /// For people.
    pub description: String,
}

/// A program: the code that is started for an instance.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// The name.
    pub name: Name,
    /// For people.
    pub description: String,
    /// How the program comes to run.
    pub kind: ProgramKind,
    /// The ports, if they are fixed; else empty.
    pub ports: Ports,
    /// The settings that the program reads; empty if the description lists none.
    pub supported_settings: IndexMap<Name, SupportedSetting>,
    /// The environment to begin with.
    pub base_env: BaseEnv,
    /// Environment modules to load.
    pub modules: Vec<String>,
    /// A Python virtual environment to activate.
    pub virtual_env: Option<PathBuf>,
    /// Variables to set; a name that begins with `+` appends.
    pub env: IndexMap<String, String>,
    /// How processes are started.
    pub execution_model: ExecutionModel,
    /// The arguments of the executable.
    pub args: Vec<String>,
    /// Whether the program may share cores with a component that computes at other times.
    pub can_share_resources: bool,
    /// The state that is kept from one use to the next.
    pub keeps_state_for_next_use: KeepsState,
    /// The directory of the file with the description; `None` if the description comes from no
    /// file.
    pub directory: Option<PathBuf>,
    /// The arguments, by index, that may begin with the name of a file beside the description.
    pub(crate) files_in_args: Vec<usize>,
    pub(crate) at: TextPosition,
}

impl Program {
    /// Whether the program is a model with the Basic Model Interface, which the Python package runs.
    pub fn runs_bmi(&self) -> bool {
        self.args.starts_with(&BMI_WORDS.map(str::to_owned))
    }
}

/// How a program comes to run.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum ProgramKind {
    /// An executable file, started with the program's arguments.
    Executable(PathBuf),
    /// The text of a shell script.
    Script(String),
    /// Started by the user.
    #[default]
    Manual,
    /// A component that comes with titin.
    BuiltIn(BuiltIn),
    /// A function, on a thread of a host process.
    Hosted(HostedFunction),
}

/// A function that a host runs as an instance.
#[derive(Clone, Debug, PartialEq)]
pub struct HostedFunction {
    /// The name of the host: programs with the same host share a process.
    pub host: Name,
    /// The function to call.
    pub call: UserFunction,
    /// For a function in a library: whether the host calls it as a step, again and again, whenever
    /// the instance can go on.
    pub steps: bool,
}

/// The environment that a program begins with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum BaseEnv {
    /// The environment of a login shell.
    Login,
    /// The environment of the manager, without modules and virtual environments.
    Clean,
    /// The environment of the manager.
    #[default]
    Manager,
}

/// How the processes of an instance are started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExecutionModel {
    /// As one process.
    #[default]
    Direct,
    /// By Open MPI's mpirun.
    OpenMpi,
    /// By MPICH's mpiexec. Only titin has this model; other tools for yMMSL do not know the word.
    Mpich,
    /// By Intel MPI's mpirun.
    IntelMpi,
    /// By srun.
    SrunMpi,
    /// By the user.
    Manual,
}

impl ExecutionModel {
    /// Whether an instance runs as several processes.
    pub fn is_mpi(self) -> bool {
        !matches!(self, ExecutionModel::Direct | ExecutionModel::Manual)
    }
}

/// The state that an implementation keeps from one use to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeepsState {
    /// State that the next use needs.
    #[default]
    Necessary,
    /// No state.
    No,
    /// State that could be computed again.
    Helpful,
}

/// An entry of `custom_implementations`.
#[derive(Clone, Debug)]
pub struct CustomImplementation {
    /// The implementation; `None` removes the component.
    pub implementation: Option<Name>,
    pub(crate) at: TextPosition,
}

/// The resources of each instance of a component.
#[derive(Clone, Debug)]
pub struct Resources {
    /// The amount.
    pub need: ResourceRequest,
    pub(crate) at: TextPosition,
}

/// Cores and processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResourceRequest {
    /// One process.
    Threads(u32),
    /// MPI processes wherever there are cores.
    MpiCores {
        /// The number of processes.
        processes: u32,
        /// Cores for each process.
        threads_per_process: u32,
    },
    /// MPI processes on whole nodes.
    MpiNodes {
        /// The number of nodes.
        nodes: u32,
        /// Processes on each node.
        processes_per_node: u32,
        /// Cores for each process.
        threads_per_process: u32,
    },
}

impl ResourceRequest {
    /// The number of cores for one instance.
    pub fn cores(self) -> u64 {
        let product = |parts: &[u32]| {
            parts
                .iter()
                .fold(1u64, |product, n| product.saturating_mul(u64::from(*n)))
        };
        match self {
            ResourceRequest::Threads(n) => n.into(),
            ResourceRequest::MpiCores {
                processes,
                threads_per_process,
            } => product(&[processes, threads_per_process]),
            ResourceRequest::MpiNodes {
                nodes,
                processes_per_node,
                threads_per_process,
            } => product(&[nodes, processes_per_node, threads_per_process]),
        }
    }

    /// The number of processes of one instance.
    pub fn processes(self) -> u64 {
        match self {
            ResourceRequest::Threads(_) => 1,
            ResourceRequest::MpiCores { processes, .. } => processes.into(),
            ResourceRequest::MpiNodes {
                nodes,
                processes_per_node,
                ..
            } => u64::from(nodes) * u64::from(processes_per_node),
        }
    }
}

/// The times at which the state is saved.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Checkpoints {
    /// Once, at the end.
    pub at_end: bool,
    /// By time since the start of the run, in seconds.
    pub wallclock_time: Vec<CheckpointRule>,
    /// By simulated time.
    pub simulation_time: Vec<CheckpointRule>,
    pub(crate) at: TextPosition,
}

impl Checkpoints {
    /// Whether no checkpoint is asked for.
    pub fn is_empty(&self) -> bool {
        !self.at_end && self.wallclock_time.is_empty() && self.simulation_time.is_empty()
    }
}

/// A rule for times of checkpoints.
#[derive(Clone, Debug, PartialEq)]
pub enum CheckpointRule {
    /// At these times.
    At(Vec<f64>),
    /// At equal distances.
    Every {
        /// The distance between two checkpoints.
        every: f64,
        /// The first checkpoint; `None` for every multiple of the distance.
        start: Option<f64>,
        /// The last checkpoint.
        stop: Option<f64>,
    },
}

/// An entry of `resume`.
#[derive(Clone, Debug)]
pub struct Resume {
    /// The snapshot.
    pub snapshot: PathBuf,
    pub(crate) at: TextPosition,
}

impl Default for Name {
    fn default() -> Self {
        Name::from("")
    }
}
