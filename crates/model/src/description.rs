//! The description: what the files say, merged, with every name that was imported.

use std::path::PathBuf;
use std::sync::Arc;

use indexmap::IndexMap;

use crate::built_in::BuiltIn;
use crate::filter::Filter;
use crate::names::Name;
use crate::operator::{Operator, Timeline};
use crate::options::StartMode;
use crate::problem::{Code, ProblemReport, Problems, TextPosition};
use crate::settings::{SettingType, Settings};
use crate::titin_section::{Extras, UserFunction};

/// The port through which settings come in, which every component has.
pub const SETTINGS_IN: &str = "muscle_settings_in";

/// The most instances of a run, and so of a component in one dimension.
pub(crate) const MOST_INSTANCES: u64 = 1 << 24;

/// Everything that the files of a description say. Made by [`load`](crate::load).
#[derive(Clone, Debug, Default)]
pub struct Description {
    /// What the whole is about.
    pub description: String,
    /// Models by name; imported ones under their full dotted name.
    pub models: IndexMap<Name, Model>,
    /// Programs by name; imported ones under their full dotted name.
    pub programs: IndexMap<Name, Arc<Program>>,
    /// Implementation by `model.component`; `None` takes the component out.
    pub custom_implementations: IndexMap<Name, CustomImplementation>,
    /// The settings; paths begin with a component's name.
    pub settings: Settings,
    /// Resources by `model.component`.
    pub resources: IndexMap<Name, Resources>,
    /// When the state is to be saved.
    pub checkpoints: Checkpoints,
    /// Snapshot to resume from, by `model.component`.
    pub resume: IndexMap<Name, Resume>,
    /// What stands under `titin:`.
    pub extras: Extras,
    /// Warnings; errors would have kept the description from being made.
    pub warnings: ProblemReport,
    pub(crate) files: Vec<String>,
    /// Components and implementations that run inside the calling program, or are started by hand.
    pub(crate) named: Vec<String>,
    /// How the components come to run.
    pub(crate) start: StartMode,
    /// What could not be imported, so that its lack is reported once.
    pub(crate) not_imported: std::collections::HashSet<Name>,
}

impl Description {
    /// The files that were read, imports included, as the user named them.
    pub fn files(&self) -> &[String] {
        &self.files
    }

    /// Adds a warning about a program: this host could not start it, and why.
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
    /// Its name.
    pub name: Name,
    /// For people.
    pub description: String,
    /// Its ports to a model that uses it as an implementation.
    pub ports: Ports,
    /// The settings that it reads.
    pub supported_settings: IndexMap<Name, SupportedSetting>,
    /// The components by name.
    pub components: IndexMap<Name, Component>,
    /// The conduits, one for each receiver.
    pub conduits: Vec<Conduit>,
    /// Timelines that have the same points.
    pub matching_timelines: Vec<MatchingTimelines>,
    /// Whether a part of it could not be read, which has been reported.
    pub(crate) faulty: bool,
    pub(crate) at: TextPosition,
}

/// A submodel, mapper or terminal.
#[derive(Clone, Debug, Default)]
pub struct Component {
    /// Its name.
    pub name: Name,
    /// For people.
    pub description: String,
    /// Its ports.
    pub ports: Arc<Ports>,
    /// The program or model that does the work.
    pub implementation: Option<Name>,
    /// The number of instances in each dimension; empty for one.
    pub multiplicity: Vec<u32>,
    /// Whether it may be left out.
    pub optional: bool,
    /// Whether its description lists ports, if only to say that there are none.
    pub(crate) lists_ports: bool,
    pub(crate) at: TextPosition,
    pub(crate) implementation_at: TextPosition,
}

/// Ports by name, in the order of the description.
pub type Ports = IndexMap<Name, Port>;

/// A port of a component, program or model.
#[derive(Clone, Debug, PartialEq)]
pub struct Port {
    /// Its name.
    pub name: Name,
    /// Where in the loop it is used.
    pub operator: Operator,
    /// The timeline of the component's own that it is on; the root for the usual one.
    pub timeline: Timeline,
    /// Whether the operator was guessed from the conduits, as for a v0.1 component that lists no ports: then only the direction
    /// is sure.
    pub guessed: bool,
    pub(crate) at: TextPosition,
}

/// Two ports joined.
#[derive(Clone, Debug)]
pub struct Conduit {
    /// Where messages come from.
    pub sender: PortReference,
    /// Where they go.
    pub receiver: PortReference,
    /// What happens to them on the way.
    pub filters: Vec<Filter>,
    pub(crate) at: TextPosition,
    pub(crate) receiver_at: TextPosition,
}

/// One end of a conduit.
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
    /// The leading one.
    pub head: Timeline,
    /// Those that follow it.
    pub others: Vec<Timeline>,
    pub(crate) at: TextPosition,
}

/// A setting that a program or model reads.
#[derive(Clone, Debug)]
pub struct SupportedSetting {
    /// The type of its value.
    pub of: SettingType,
    /// For people.
    pub description: String,
}

/// What is started for an instance.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// Its name.
    pub name: Name,
    /// For people.
    pub description: String,
    /// How it comes to run.
    pub kind: ProgramKind,
    /// Its ports, if they are fixed; else empty.
    pub ports: Ports,
    /// The settings that it reads; empty if it does not say.
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
    /// Whether it may share cores with a component that computes at other times.
    pub can_share_resources: bool,
    /// What it keeps from one use to the next.
    pub keeps_state_for_next_use: KeepsState,
    /// The directory of the file that describes it; `None` if it was not read from a file.
    pub directory: Option<PathBuf>,
    pub(crate) at: TextPosition,
}

/// How a program comes to run.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum ProgramKind {
    /// An executable file, started with the program's arguments.
    Executable(PathBuf),
    /// The text of a shell script.
    Script(String),
    /// The user starts it.
    #[default]
    Manual,
    /// One of titin's own.
    BuiltIn(BuiltIn),
    /// A function, on a thread of a process that hosts others too.
    Hosted(HostedFunction),
}

/// A function that a host runs as an instance.
#[derive(Clone, Debug, PartialEq)]
pub struct HostedFunction {
    /// Name of the host: programs that name the same one share a process.
    pub host: Name,
    /// What is called.
    pub call: UserFunction,
    /// Of a library: whether it is called again and again, whenever the instance can go on.
    pub steps: bool,
}

/// The environment that a program begins with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BaseEnv {
    /// That of a login shell.
    Login,
    /// The manager's, without modules and virtual environments.
    Clean,
    /// The manager's.
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
    /// By MPICH's mpiexec. Titin's own: other tools for yMMSL do not know it.
    Mpich,
    /// By Intel MPI's mpirun.
    IntelMpi,
    /// By srun.
    SrunMpi,
    /// By the user.
    Manual,
}

impl ExecutionModel {
    /// Whether an instance is several processes.
    pub fn is_mpi(self) -> bool {
        !matches!(self, ExecutionModel::Direct | ExecutionModel::Manual)
    }
}

/// What an implementation keeps from one use to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeepsState {
    /// What it cannot go on without.
    #[default]
    Necessary,
    /// Nothing.
    No,
    /// What it could compute again.
    Helpful,
}

/// An entry of `custom_implementations`.
#[derive(Clone, Debug)]
pub struct CustomImplementation {
    /// The implementation; `None` takes the component out.
    pub implementation: Option<Name>,
    pub(crate) at: TextPosition,
}

/// What each instance of a component needs.
#[derive(Clone, Debug)]
pub struct Resources {
    /// How much.
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
        /// Their number.
        processes: u32,
        /// Cores for each.
        threads_per_process: u32,
    },
    /// MPI processes on whole nodes.
    MpiNodes {
        /// The number of nodes.
        nodes: u32,
        /// Processes on each.
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

/// When the state is to be saved.
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
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        !self.at_end && self.wallclock_time.is_empty() && self.simulation_time.is_empty()
    }
}

/// A rule for when to save.
#[derive(Clone, Debug, PartialEq)]
pub enum CheckpointRule {
    /// At these times.
    At(Vec<f64>),
    /// At equal distances.
    Every {
        /// The distance.
        every: f64,
        /// The first; `None` for every multiple of the distance.
        start: Option<f64>,
        /// The last.
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
