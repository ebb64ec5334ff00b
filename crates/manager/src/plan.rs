//! The plan of a run: every instance with its start, and every conduit between two instances.
//!
//! A plan is the description after all lookups: names are resolved, every instance of a component
//! is listed, and settings are at hand. The state machine needs nothing else.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::ops::{Index, IndexMut};
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
pub use titin_model::{AgentStart, BaseEnv, BatchJob, ComponentId, ConduitId, InstanceId};
use titin_model::{Filter, Medium, Name, Operator, Pattern};
use titin_wire::connection::{PATIENCE, SESSION_PATIENCE};
use titin_wire::control::{FilterFunction, Scale};
use titin_wire::settings::Overlay;
use titin_wire::{HostNetwork, LinkSettings};

use crate::host::HostId;

/// All facts about the model of a run.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// The model's name.
    pub model: String,
    /// The instances, in the order of the description.
    pub instances: PerInstance<PlannedInstance>,
    /// The names of the components and their multiplicity, to check the names in overlays. Empty if
    /// there are many.
    pub components: Vec<(String, Vec<u32>)>,
    /// The ensembles whose members may fail, are started again, or wait for each other.
    pub ensembles: Vec<PlannedEnsemble>,
    /// The conduits; the index of a conduit is its [`ConduitId`].
    pub conduits: Vec<PlannedConduit>,
    /// The filters that users have written.
    pub filters: BTreeMap<String, FilterFunction>,
    /// Pairs of components, in both orders, that never compute at the same time. One calls the
    /// other, or runs after the other.
    pub alternating: HashSet<(ComponentId, ComponentId)>,
    /// Time limits and other options.
    pub options: RunOptions,
    /// The further hosts of the run. The host at index 0 has the [`HostId`] 1.
    pub hosts: Vec<PlannedHost>,
    /// The sites of further hosts.
    pub sites: Vec<PlannedSite>,
    /// The name of the manager's site, once known.
    pub own_site: Option<String>,
    /// The most cores of the manager's own host for the run, if the description says so.
    pub own_cores: Option<u32>,
    /// The network by which programs of the manager's own host are reached, if the description chooses
    /// one.
    pub own_network: Option<HostNetwork>,
    /// The number of the part of a heterogeneous job of Slurm, if the manager's own host is in one.
    pub own_het_group: Option<u32>,
    /// Whether the description has a list of hosts.
    pub lists_hosts: bool,
    /// The bytes of each conduit in an earlier run, by [`ConduitId`]; empty without such a run.
    pub earlier_bytes: Vec<u64>,
}

impl Plan {
    /// A further host; `None` for the manager's host.
    pub fn further_host(&self, id: HostId) -> Option<&PlannedHost> {
        self.hosts.get(id.place()?)
    }

    /// The number of the part of a heterogeneous job of Slurm, if a host is in one.
    pub fn het_group(&self, id: HostId) -> Option<u32> {
        match self.further_host(id) {
            Some(host) => host.het_group,
            None => self.own_het_group,
        }
    }

    /// Notes the manager's site: the hosts there are at no other site.
    pub fn stay_at(&mut self, own: &str) {
        self.own_site = Some(own.to_owned());
        let own = self.sites.iter().position(|site| site.name == own);
        for host in &mut self.hosts {
            host.site.take_if(|site| Some(*site) == own);
        }
    }

    /// The name of a host's site, in a run with other sites.
    pub fn site_of(&self, host: HostId) -> Option<&str> {
        match self.further_host(host).and_then(|host| host.site) {
            Some(site) => Some(&self.sites[site].name),
            None => self.own_site.as_deref().filter(|_| self.has_other_sites()),
        }
    }

    /// The name of a host's site, if it is another than the manager's.
    pub fn other_site(&self, host: HostId) -> Option<&str> {
        let site = self.further_host(host)?.site?;
        Some(&self.sites.get(site)?.name)
    }

    /// A host's site in brackets, behind a blank; nothing for a host of the manager's site.
    pub(crate) fn site_text(&self, host: HostId) -> String {
        let site = self.other_site(host);
        site.map_or_else(String::new, |site| format!(" (site {site})"))
    }

    /// The place of an instance's ensemble in [`Plan::ensembles`], if the description has an entry.
    pub fn ensemble_of(&self, id: InstanceId) -> Option<usize> {
        let component = &self.instances[id].component;
        let mut ensembles = self.ensembles.iter();
        ensembles.position(|ensemble| ensemble.component == *component)
    }

    /// Whether the user starts the agent of a host.
    pub fn is_by_hand(&self, host: HostId) -> bool {
        let host = self.further_host(host);
        host.is_some_and(|host| host.start == AgentStart::ByHand)
    }

    /// Whether a batch job starts the agent of a host.
    pub fn is_batch_job(&self, host: HostId) -> bool {
        let host = self.further_host(host);
        host.is_some_and(|host| matches!(host.start, AgentStart::Batch(_)))
    }

    /// The names of the sites that have hosts of the run, each once. A site of the description without
    /// a host takes no part.
    pub fn sites_of_hosts(&self) -> impl Iterator<Item = &str> {
        let sites = self.sites.iter().enumerate();
        let has_host = |place| self.hosts.iter().any(|host| host.site == Some(place));
        let used = sites.filter(move |(place, _)| has_host(*place));
        used.map(|(_, site)| site.name.as_str())
    }

    /// Whether a host is at another site than the manager.
    pub fn has_other_sites(&self) -> bool {
        self.hosts.iter().any(|host| host.site.is_some())
    }

    /// An instance that the user is to start, and the site of its host, if that is another site than the
    /// manager's.
    pub(crate) fn manual_start_elsewhere(&self) -> Option<(String, String)> {
        self.instances.iter().find_map(|instance| {
            let site = self.other_site(instance.pinned_host?)?;
            let is_manual = matches!(instance.start, StartMode::Manual(_));
            is_manual.then(|| (instance.name.clone(), site.to_owned()))
        })
    }

    /// The longest time that the line to one of the hosts may be away.
    pub fn longest_cut(&self) -> Duration {
        match self.has_other_sites() {
            true => self.options.line_patience,
            false => Duration::ZERO,
        }
    }

    /// How long a host, or a program on the host, may be silent. A line between sites may be away
    /// for a time.
    pub fn longest_silence(&self, host: HostId) -> Duration {
        let is_at_other_site = self
            .further_host(host)
            .is_some_and(|host| host.site.is_some());
        let RunOptions {
            heartbeat,
            line_patience,
            ..
        } = self.options;
        match is_at_other_site {
            true => heartbeat.saturating_add(line_patience),
            false => heartbeat,
        }
    }

    /// The media of conduits whose processes meet in a folder, by preference. All such media if the
    /// description names the folder.
    pub fn media_in_folders(&self) -> Vec<Medium> {
        let is_wanted = |medium: &Medium| {
            let mut pins = self.conduits.iter().map(|conduit| conduit.medium);
            self.options.folder.is_some() || pins.any(|pin| pin == Some(*medium))
        };
        let media = Medium::ALL.into_iter();
        media
            .filter(|medium| medium.meets_in_folder())
            .filter(is_wanted)
            .collect()
    }
}

/// The members of an ensemble: the instances of a component.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PlannedEnsemble {
    /// The name of the component.
    pub component: String,
    /// How many members may fail before the run fails.
    pub allow_failures: usize,
    /// How often a member is started again that has ended before it joined.
    pub retry: u32,
    /// How many members' processes may run at a time.
    pub at_once: usize,
}

/// A site of further hosts.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedSite {
    /// The name, as relays know the site.
    pub name: String,
    /// The address of the site's relay for processes of the site.
    pub relay: String,
}

/// A further host of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PlannedHost {
    /// The name in the description, or in the batch system.
    pub name: String,
    /// The name for the launcher of the agent.
    pub address: String,
    /// How the agent is started.
    pub start: AgentStart,
    /// The path of the command `titin` on the host, if the description gives the path.
    pub titin: Option<String>,
    /// The most cores for the run, if the description says so.
    pub cores: Option<u32>,
    /// The folder for files of the run, if the host does not have the run directory.
    pub folder: Option<PathBuf>,
    /// The network by which programs of the host are reached, if the description chooses one.
    pub network: Option<HostNetwork>,
    /// The number of the part of a heterogeneous job of Slurm, if the host is in one.
    pub het_group: Option<u32>,
    /// The place of the host's site in [`Plan::sites`]; `None` for the manager's site.
    pub site: Option<usize>,
}

/// One instance.
#[derive(Debug, Clone, Default)]
pub struct PlannedInstance {
    /// The name as users write it: `macro[3]`.
    pub name: String,
    /// The name of the component.
    pub component: String,
    /// The number of the component.
    pub component_id: ComponentId,
    /// The indices of the instance within its component.
    pub indices: Vec<u32>,
    /// How the instance is started.
    pub start: StartMode,
    /// The number of cores.
    pub cores: u32,
    /// The ports of the description.
    pub ports: Vec<PlannedPort>,
    /// The program's ports that the component leaves out.
    pub spare_ports: Vec<String>,
    /// Every setting that can apply to the instance.
    pub settings: Overlay,
    /// The scales, if the description gives them.
    pub scale: Option<Scale>,
    /// The simulated time of the end, if known.
    pub end: Option<f64>,
    /// Files to copy into the work directory before the instance starts.
    pub stage_in: Vec<String>,
    /// Files of the work directory that are results.
    pub stage_out: Vec<String>,
    /// The name of the host process that runs the instance, if there is such a host process.
    pub host: Option<String>,
    /// The host of the run that the description chooses for the instance.
    pub pinned_host: Option<HostId>,
}

impl PlannedInstance {
    /// The name of the folder of the instance's process.
    pub fn folder(&self) -> &str {
        self.host.as_deref().unwrap_or(&self.name)
    }

    /// The MPI processes of the instance's program, if a launcher starts the program.
    pub fn mpi(&self) -> Option<MpiProcesses> {
        match &self.start {
            StartMode::Program(program) | StartMode::Manual(Some(program)) => program.mpi,
            StartMode::Manual(None) | StartMode::Hosted | StartMode::WithLeader(_) => None,
        }
    }

    /// The number of processes of the instance, and the threads of each process.
    pub fn processes_and_threads(&self) -> (u32, u32) {
        let processes = self.mpi().map_or(1, |mpi| mpi.processes.max(1));
        (processes, (self.cores / processes).max(1))
    }

    /// Whether the instance is one of titin's own components.
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
    /// The name.
    pub name: Name,
    /// The operator.
    pub operator: Operator,
    /// Whether the operator was guessed from the conduits. Then only the direction is certain.
    pub guessed: bool,
    /// The timeline of the port, if the port has a special timeline.
    pub timeline: Option<Name>,
}

/// How an instance is started.
#[derive(Debug, Clone, PartialEq)]
pub enum StartMode {
    /// The manager starts this program.
    Program(PlannedProgram),
    /// The user starts the program, perhaps in a debugger. `None` if the description has no
    /// program.
    Manual(Option<PlannedProgram>),
    /// The process that has called the manager runs the instance.
    Hosted,
    /// The program of the leader, the first instance of the host process, runs this instance too.
    WithLeader(InstanceId),
}

impl Default for StartMode {
    fn default() -> Self {
        StartMode::Manual(None)
    }
}

/// A program to start.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PlannedProgram {
    /// The name in the description.
    pub name: String,
    /// The command.
    pub command: PlannedCommand,
    /// The environment to start from.
    pub base: BaseEnv,
    /// Environment modules to load.
    pub modules: Vec<String>,
    /// A Python virtual environment to activate.
    pub virtual_env: Option<PathBuf>,
    /// Variables to set. If the name begins with `+`, the value is appended to the variable.
    pub env: Vec<(String, String)>,
    /// The MPI processes; `None` for one plain process.
    pub mpi: Option<MpiProcesses>,
    /// The number of threads of each process.
    pub threads: u32,
    /// The folder of the file that describes the program. Relative paths start from this folder.
    pub folder: PathBuf,
}

/// The command of a program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum PlannedCommand {
    /// An executable file.
    Executable {
        /// The path, or a name to look for in `PATH`.
        path: String,
        /// The arguments.
        args: Vec<String>,
    },
    /// The text of a script.
    Script(String),
    /// One of titin's own components.
    BuiltIn {
        /// The name without `titin.`.
        name: String,
        /// The folders for files to read, after the work directory.
        folders: Vec<PathBuf>,
    },
    /// A host process, which runs functions as instances.
    Host(Hosting),
}

/// A host process: its functions, and the folders for modules.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Hosting {
    /// The name of the host process.
    pub name: String,
    /// Whether the functions are in Python.
    pub python: bool,
    /// The functions. The file for the host process calls the functions `guests`.
    #[serde(rename = "guests")]
    pub functions: Vec<PlannedFunction>,
    /// The folders to search for modules before the usual folders.
    pub folders: Vec<PathBuf>,
}

/// A function that a host process runs as an instance.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PlannedFunction {
    /// The name of the instance.
    pub instance: String,
    /// The library with the function; `None` if the function is in Python.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub library: Option<String>,
    /// The name of the function, in Python with its module.
    pub function: String,
    /// Whether the function is one step. The host process calls such a function again whenever
    /// the instance can go on.
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MpiProcesses {
    /// The launcher.
    pub launcher: MpiLauncher,
    /// The number of processes.
    pub processes: u32,
    /// The number of nodes, if the description sets the number. Each node has the same number of
    /// processes.
    pub nodes: Option<u32>,
}

/// The kind of a command that starts MPI processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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

/// A conduit between two instances. A run may have a hundred thousand conduits, so this type is
/// small.
#[derive(Debug, Clone)]
pub struct PlannedConduit {
    /// The sending end.
    pub from: PlannedEnd,
    /// The receiving end.
    pub to: PlannedEnd,
    /// The filters on the way.
    pub filters: Vec<Filter>,
    /// How many messages the sender may be ahead.
    pub buffer_messages: u64,
    /// How many bytes the sender may be ahead.
    pub buffer_bytes: u64,
    /// Whether the description leaves the number of messages open.
    pub buffer_grows: bool,
    /// The medium, if the description sets the medium.
    pub medium: Option<Medium>,
    /// How the description couples a field on the conduit, if the description says so.
    pub pattern: Option<Box<Pattern>>,
    /// Settings of the link, for tcp, if the description has any.
    pub link: Option<Box<LinkSettings>>,
}

impl PlannedConduit {
    /// Whether the receiver pulls the field on the conduit.
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
    /// The port.
    pub port: Name,
    /// The slot, if the port has a slot for each peer.
    pub slot: Option<u32>,
}

impl fmt::Display for PlannedEnd {
    /// Writes the port as users write it, with its slot: `state_in[3]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.port)?;
        self.slot.map_or(Ok(()), |slot| write!(f, "[{slot}]"))
    }
}

/// Time limits and other options of a run.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// The time for an instance to join, from the start of the program.
    pub patience: Duration,
    /// The time that programs may take to end by themselves after the run has failed.
    pub grace: Duration,
    /// The time of silence after which a program counts as lost.
    pub heartbeat: Duration,
    /// How long the line between two sites may be away.
    pub line_patience: Duration,
    /// Whether messages between sites are sealed from end to end.
    pub encrypt: bool,
    /// The most bytes for raised buffers on this host.
    pub ceiling: u64,
    /// Whether programs send event rows.
    pub trace: bool,
    /// The unit of timestamps, if not the second.
    pub time_unit: Option<String>,
    /// The folder in which to make folders for messages, if not the run directory.
    pub folder: Option<PathBuf>,
}

impl Default for RunOptions {
    fn default() -> Self {
        RunOptions {
            patience: PATIENCE,
            grace: Duration::from_secs(5),
            heartbeat: Duration::from_secs(8),
            line_patience: SESSION_PATIENCE,
            encrypt: true,
            ceiling: 4 << 30,
            trace: false,
            time_unit: None,
            folder: None,
        }
    }
}

/// A value for each instance of a plan, with the instance's id as the index.
#[derive(Debug, Clone)]
pub struct PerInstance<T>(Vec<T>);

impl<T> PerInstance<T> {
    /// Makes a value for each id.
    pub fn make(count: usize, make: impl FnMut(InstanceId) -> T) -> Self {
        PerInstance((0..count as u32).map(InstanceId).map(make).collect())
    }

    /// The number of instances.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no instances.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The ids.
    pub fn ids(&self) -> impl Iterator<Item = InstanceId> + use<T> {
        (0..self.0.len() as u32).map(InstanceId)
    }

    /// The values, in the order of the ids.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.0.iter()
    }

    /// The values, in the order of the ids.
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
    /// Whether a filter selects messages by the sender's steps.
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

    /// The instance that starts the process of an instance: the first of the host process, or the
    /// instance alone.
    pub fn leader(&self, id: InstanceId) -> InstanceId {
        if let StartMode::WithLeader(leader) = self.instances[id].start {
            leader
        } else {
            id
        }
    }

    /// The host process of an instance, if there is a host process.
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

    /// All instances in the process of an instance.
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

    /// The conduit with a number.
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
