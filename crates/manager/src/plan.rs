//! What a run consists of: every instance with how it is started, and every conduit between two of them.
//!
//! A plan is the description after everything in it has been looked up: names are resolved, multiplicities are
//! counted out, settings are at hand. The state machine needs nothing else.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::ops::{Index, IndexMut};
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;
pub use titin_model::{BaseEnv, ComponentId, ConduitId, InstanceId};
use titin_model::{Filter, Medium, Name, Operator, Pattern};
use titin_wire::LinkSettings;
use titin_wire::connection::PATIENCE;
use titin_wire::control::{FilterFunction, Scale};
use titin_wire::settings::Overlay;

/// Everything that a run needs to know about its model.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// The model's name.
    pub model: String,
    /// Its instances, in the order of the description.
    pub instances: PerInstance<PlannedInstance>,
    /// The names of its components and their multiplicity, for the check of overlays; empty where that would take many.
    pub components: Vec<(String, Vec<u32>)>,
    /// Its conduits; the place of one is its [`ConduitId`].
    pub conduits: Vec<PlannedConduit>,
    /// The user's own filters.
    pub filters: BTreeMap<String, FilterFunction>,
    /// Pairs of components, either way round, that never compute at the same time, since one calls the other.
    pub alternating: HashSet<(ComponentId, ComponentId)>,
    /// How long things may take.
    pub options: RunOptions,
}

/// One instance.
#[derive(Debug, Clone, Default)]
pub struct PlannedInstance {
    /// As users write it: `macro[3]`.
    pub name: String,
    /// Its component.
    pub component: String,
    /// The number of that.
    pub component_id: ComponentId,
    /// Its place among the instances of its component.
    pub indices: Vec<u32>,
    /// How it comes to run.
    pub start: StartMode,
    /// Cores that it computes on.
    pub cores: u32,
    /// Ports of the description.
    pub ports: Vec<PlannedPort>,
    /// Names of ports that its program has, by the description, but that this component leaves out.
    pub spare_ports: Vec<String>,
    /// Every setting that can apply to it.
    pub settings: Overlay,
    /// Its scales, if the description gives them.
    pub scale: Option<Scale>,
    /// When its simulated time ends, if known.
    pub end: Option<f64>,
    /// Files to put into its work directory before it starts.
    pub stage_in: Vec<String>,
    /// Files of its work directory that are results.
    pub stage_out: Vec<String>,
    /// Name of the folder of its process, if that is not its own name: its host's.
    pub host: Option<String>,
}

impl PlannedInstance {
    /// The name of its process's folder.
    pub fn folder(&self) -> &str {
        self.host.as_deref().unwrap_or(&self.name)
    }

    /// Whether it is one of titin's own components.
    pub fn is_built_in(&self) -> bool {
        match &self.start {
            StartMode::Program(program) | StartMode::Manual(Some(program)) => {
                matches!(program.command, PlannedCommand::BuiltIn { .. })
            }
            StartMode::Manual(None) | StartMode::Hosted | StartMode::WithLeader(_) => false,
        }
    }
}

/// A port of the description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedPort {
    /// Its name.
    pub name: Name,
    /// Its operator.
    pub operator: Operator,
    /// Whether the operator was guessed from the conduits, so that only the direction is sure.
    pub guessed: bool,
    /// The timeline of the instance's own that it is on, if that is not the usual one.
    pub timeline: Option<Name>,
}

/// How an instance comes to run.
#[derive(Debug, Clone, PartialEq)]
pub enum StartMode {
    /// The manager starts this.
    Program(PlannedProgram),
    /// The user starts it, perhaps in a debugger: this, if the description says what.
    Manual(Option<PlannedProgram>),
    /// The process that called the manager runs it.
    Hosted,
    /// The program of another instance runs it too: the first one of their host.
    WithLeader(InstanceId),
}

impl Default for StartMode {
    fn default() -> Self {
        StartMode::Manual(None)
    }
}

/// A program to start.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PlannedProgram {
    /// Its name in the description.
    pub name: String,
    /// What is run.
    pub command: PlannedCommand,
    /// The environment to begin with.
    pub base: BaseEnv,
    /// Environment modules to load.
    pub modules: Vec<String>,
    /// A Python virtual environment to activate.
    pub virtual_env: Option<PathBuf>,
    /// Variables to set; a name that begins with `+` is appended to.
    pub env: Vec<(String, String)>,
    /// Its ranks; one plain process without.
    pub mpi: Option<MpiProcesses>,
    /// Threads of each process.
    pub threads: u32,
    /// Folder of the file that names the program; relative paths begin there.
    pub folder: PathBuf,
}

/// What a program is.
#[derive(Debug, Clone, PartialEq)]
pub enum PlannedCommand {
    /// A file, or a name that is looked for in `PATH`.
    Executable {
        /// The file or name.
        path: String,
        /// Its arguments.
        args: Vec<String>,
    },
    /// The text of a script.
    Script(String),
    /// One of titin's own components.
    BuiltIn {
        /// Its short name.
        name: String,
        /// Where it looks for files to read, after the work directory.
        folders: Vec<PathBuf>,
    },
    /// A process that runs functions as instances.
    Host(Hosting),
}

/// What a host runs.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Hosting {
    /// Its name.
    #[serde(skip)]
    pub name: String,
    /// Whether the functions are Python's.
    #[serde(skip)]
    pub python: bool,
    /// The functions.
    #[serde(rename = "guests")]
    pub functions: Vec<PlannedFunction>,
    /// Where modules are looked for, before the usual places.
    pub folders: Vec<PathBuf>,
}

/// A function that is run as an instance.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct PlannedFunction {
    /// The instance.
    pub instance: String,
    /// The library that has it; none of Python's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub library: Option<String>,
    /// Its name, in Python with its module.
    pub function: String,
    /// Whether it is called again whenever the instance can go on.
    pub steps: bool,
}

impl Default for PlannedCommand {
    fn default() -> Self {
        PlannedCommand::Executable {
            path: String::new(),
            args: Vec::new(),
        }
    }
}

/// The processes of an MPI program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MpiProcesses {
    /// The command that starts them.
    pub launcher: MpiLauncher,
    /// Their number.
    pub processes: u32,
    /// On so many nodes, as many on each, if the description says so.
    pub nodes: Option<u32>,
}

/// The command that starts MPI processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MpiLauncher {
    /// Open MPI's `mpirun`.
    OpenMpi,
    /// MPICH's `mpiexec`.
    Mpich,
    /// Intel MPI's `mpirun`.
    IntelMpi,
    /// Slurm's `srun`.
    Srun,
}

/// One conduit between two instances. There may be a hundred thousand of them, so they are kept small.
#[derive(Debug, Clone)]
pub struct PlannedConduit {
    /// Where messages come from.
    pub from: PlannedEnd,
    /// Where they go.
    pub to: PlannedEnd,
    /// Filters on the way.
    pub filters: Vec<Filter>,
    /// How many messages the sender may be ahead.
    pub buffer_messages: u64,
    /// How many bytes the sender may be ahead.
    pub buffer_bytes: u64,
    /// The medium that it is pinned to.
    pub medium: Option<Medium>,
    /// How a field that goes by it is coupled, if the description says anything.
    pub pattern: Option<Box<Pattern>>,
    /// How the link that it takes is to be made, if that is by tcp and the description says anything.
    pub link: Option<Box<LinkSettings>>,
}

impl PlannedConduit {
    /// Whether the receiver pulls the field that goes by it.
    pub fn is_pulled(&self) -> bool {
        self.pattern
            .as_ref()
            .is_some_and(|pattern| pattern.cache().is_some())
    }
}

/// One end of a conduit.
#[derive(Debug, Clone)]
pub struct PlannedEnd {
    /// The instance.
    pub instance: InstanceId,
    /// Its port.
    pub port: Name,
    /// Its slot, if the port has one per peer.
    pub slot: Option<u32>,
}

impl fmt::Display for PlannedEnd {
    /// The port as users write it, with its slot: `state_in[3]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.port)?;
        self.slot.map_or(Ok(()), |slot| write!(f, "[{slot}]"))
    }
}

/// How long things may take.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// For an instance to join, counted from its start.
    pub patience: Duration,
    /// For programs to end by themselves once the run has failed.
    pub grace: Duration,
    /// Silence after which a host or network counts as lost.
    pub heartbeat: Duration,
    /// Bytes that raised buffers may hold on this host.
    pub ceiling: u64,
    /// Whether programs send event rows.
    pub trace: bool,
    /// The unit of timestamps, if it is not the second.
    pub time_unit: Option<String>,
}

impl Default for RunOptions {
    fn default() -> Self {
        RunOptions {
            patience: PATIENCE,
            grace: Duration::from_secs(5),
            heartbeat: Duration::from_secs(10),
            ceiling: 4 << 30,
            trace: false,
            time_unit: None,
        }
    }
}

/// One thing for each instance of a plan, found by its id.
#[derive(Debug, Clone)]
pub struct PerInstance<T>(Vec<T>);

impl<T> PerInstance<T> {
    /// One for each, made from its id.
    pub fn make(count: usize, make: impl FnMut(InstanceId) -> T) -> Self {
        PerInstance((0..count as u32).map(InstanceId).map(make).collect())
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The ids.
    pub fn ids(&self) -> impl Iterator<Item = InstanceId> + use<T> {
        (0..self.0.len() as u32).map(InstanceId)
    }

    /// The things, in the order of the ids.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.0.iter()
    }

    /// The things, in the order of the ids.
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, T> {
        self.0.iter_mut()
    }
}

impl<T> Default for PerInstance<T> {
    fn default() -> Self {
        PerInstance(Vec::new())
    }
}

impl<T> FromIterator<T> for PerInstance<T> {
    fn from_iter<I: IntoIterator<Item = T>>(things: I) -> Self {
        PerInstance(things.into_iter().collect())
    }
}

impl<T> Index<InstanceId> for PerInstance<T> {
    type Output = T;

    fn index(&self, id: InstanceId) -> &T {
        &self.0[id.index()]
    }
}

impl<T> IndexMut<InstanceId> for PerInstance<T> {
    fn index_mut(&mut self, id: InstanceId) -> &mut T {
        &mut self.0[id.index()]
    }
}

impl Plan {
    /// Whether a filter chooses by the steps in which messages were sent.
    pub fn counts_steps(&self) -> bool {
        self.conduits
            .iter()
            .flat_map(|conduit| &conduit.filters)
            .any(|filter| filter.kind.chooses())
    }

    /// Whether two instances never compute at the same time.
    pub fn alternate(&self, one: InstanceId, other: InstanceId) -> bool {
        let (one, other) = (&self.instances[one], &self.instances[other]);
        let common = one.indices.len().min(other.indices.len());
        one.indices[..common] == other.indices[..common]
            && self
                .alternating
                .contains(&(one.component_id, other.component_id))
    }

    /// The instance that stands for the process in which this one runs: the first of its host, or itself.
    pub fn leader(&self, id: InstanceId) -> InstanceId {
        if let StartMode::WithLeader(leader) = self.instances[id].start {
            leader
        } else {
            id
        }
    }

    /// The host in whose process an instance runs, if it has no process of its own.
    pub fn hosting(&self, id: InstanceId) -> Option<&Hosting> {
        match &self.instances[self.leader(id)].start {
            StartMode::Program(program) | StartMode::Manual(Some(program)) => {
                match &program.command {
                    PlannedCommand::Host(hosting) => Some(hosting),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// The instances that run in the process of this one, which is among them.
    pub fn sharers(&self, id: InstanceId) -> Vec<InstanceId> {
        let leader = self.leader(id);
        match self.hosting(leader) {
            Some(_) => self
                .instances
                .ids()
                .filter(|&other| self.leader(other) == leader)
                .collect(),
            None => vec![id],
        }
    }

    /// The conduit with this number.
    pub fn conduit(&self, id: ConduitId) -> Option<&PlannedConduit> {
        self.conduits.get(id.index())
    }

    /// All conduits with their numbers.
    pub fn numbered(&self) -> impl Iterator<Item = (ConduitId, &PlannedConduit)> {
        self.conduits
            .iter()
            .enumerate()
            .map(|(at, conduit)| (ConduitId(at as u32), conduit))
    }
}
