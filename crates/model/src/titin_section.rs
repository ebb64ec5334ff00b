//! The `titin:` section: settings for which yMMSL has no place.

use indexmap::IndexMap;

use crate::filter::FilterSide;
use crate::host_network::HostNetwork;
use crate::names::Name;
use crate::pattern::Pattern;
use crate::problem::TextPosition;
use crate::quantity::Quantity;

/// The `titin:` section. Paths begin with a component's name, as in `settings`.
#[derive(Clone, Debug, Default)]
pub struct Extras {
    /// Scales by component.
    pub scales: IndexMap<Name, Scales>,
    /// Files to copy in before and out after, by component.
    pub stage: IndexMap<Name, StagedFiles>,
    /// The unit of timestamps; `None` for seconds.
    pub time_unit: Option<Name>,
    /// The source of the end time, by component.
    pub progress: IndexMap<Name, ProgressGoal>,
    /// What holds for the members of ensembles, by component.
    pub ensemble: IndexMap<Name, Ensemble>,
    /// The user's own filters.
    pub filters: IndexMap<Name, FilterDefinition>,
    /// Buffer limits, for all conduits and by port.
    pub buffer: Buffers,
    /// The medium that conduits are pinned to, by port.
    pub medium: IndexMap<Name, PinnedMedium>,
    /// The folder for messages by the medium file, if not in the run directory.
    pub folder: Option<String>,
    /// The coupling patterns of fields, by port. The pattern of a receiver goes before the pattern
    /// of a sender.
    pub fields: IndexMap<Name, (Pattern, TextPosition)>,
    /// The time that programs have to end once the run has failed.
    pub grace: Option<Quantity>,
    /// The longest silence of a host.
    pub heartbeat: Option<Quantity>,
    /// The time that instances have to register.
    pub register_timeout: Option<Quantity>,
    /// Ports that must be connected, by program.
    pub required: IndexMap<Name, RequiredPorts>,
    /// Settings of links between processes.
    pub links: Links,
    /// Further hosts of the run, and the manager's own as [`OWN_HOST`].
    pub hosts: IndexMap<Name, Host>,
    /// The sites of further hosts.
    pub sites: IndexMap<Name, Site>,
    /// How long the line between two sites may be away.
    pub patience: Option<Quantity>,
    /// Whether messages between sites are sealed from end to end; `None` for yes.
    pub encrypt: Option<bool>,
}

impl Extras {
    /// The unit of timestamps: `time_unit`, else seconds.
    pub fn time_unit(&self) -> &str {
        self.time_unit.as_deref().unwrap_or("s")
    }
}

/// The name of the manager's own host under `titin: hosts`.
pub const OWN_HOST: &str = "localhost";

/// A site, which relays lead to.
#[derive(Clone, Debug, PartialEq)]
pub struct Site {
    /// The address of the site's relay for processes of the site, `host:port`.
    pub relay: String,
    pub(crate) at: TextPosition,
}

/// A host of the run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Host {
    /// The name for the launcher of the agent, as in `user@node1`; `None` for the name of the host.
    pub address: Option<String>,
    /// The launcher of the agent.
    pub start: AgentStart,
    /// The path of the command `titin` on the host; `None` for the path on the manager's host, or for
    /// the `PATH` there if no such file exists.
    pub titin: Option<String>,
    /// The folder for files of the run on a host that does not have the run directory; `None` for the
    /// usual folder for temporary files.
    pub folder: Option<String>,
    /// The most cores for the run; `None` for all that the host offers.
    pub cores: Option<u32>,
    /// The components whose instances are on the host.
    pub components: Vec<Name>,
    /// The site of the host; `None` for the manager's site.
    pub site: Option<Name>,
    /// The network by which the programs of the host are reached; `None` for all networks.
    pub network: Option<HostNetwork>,
    pub(crate) at: TextPosition,
}

/// How the agent of a host is started.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum AgentStart {
    /// By OpenSSH's client.
    #[default]
    Ssh,
    /// By Slurm's `srun`.
    Srun,
    /// By the `mpirun` of Open MPI.
    Mpirun,
    /// By the `mpiexec.hydra` of MPICH or Intel MPI.
    Hydra,
    /// By the user, who is told the command.
    ByHand,
    /// By a command of the user's, which runs the words that follow on the host.
    Command(Vec<String>),
    /// By a job that the run submits to a batch system.
    Batch(Box<BatchJob>),
}

/// The batch job of an agent.
#[derive(Clone, Debug, PartialEq)]
pub struct BatchJob {
    /// The batch system, by its name in PSI/J.
    pub system: String,
    /// The time limit.
    pub time: Quantity,
    /// The number of nodes; `None` for one.
    pub nodes: Option<u32>,
    /// The number of cores of each node; `None` for one.
    pub cores_per_node: Option<u32>,
    /// The queue or partition.
    pub queue: Option<String>,
    /// The account to charge.
    pub account: Option<String>,
    /// Options of the batch system, without dashes.
    pub options: IndexMap<String, String>,
    /// The command to which titin appends the words to run where jobs are submitted; empty for the manager's
    /// host.
    pub via: Vec<String>,
}

impl AgentStart {
    /// The starts that are a single word in a description.
    pub const KEYS: [(&'static str, AgentStart); 5] = [
        ("ssh", AgentStart::Ssh),
        ("srun", AgentStart::Srun),
        ("mpirun", AgentStart::Mpirun),
        ("mpiexec.hydra", AgentStart::Hydra),
        ("by hand", AgentStart::ByHand),
    ];
}

/// The scales of a component.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scales {
    /// The timestep.
    pub dt: Option<Quantity>,
    /// The simulated time.
    pub total: Option<Quantity>,
    /// The spacing, in each dimension.
    pub dx: Vec<Quantity>,
    /// The size, in each dimension.
    pub extent: Vec<Quantity>,
    pub(crate) at: TextPosition,
}

/// Files of a component's instances.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StagedFiles {
    /// Copied into the work directory before the start.
    pub input: Vec<String>,
    /// Kept as results after the end.
    pub output: Vec<String>,
    pub(crate) at: TextPosition,
}

/// What holds for the members of an ensemble: the instances of a component with a multiplicity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ensemble {
    /// How many members may fail before the run fails.
    pub allow_failures: u32,
    /// How often a member is started again that has ended before it joined the run.
    pub retry: u32,
    /// How many members' processes may run at a time; `None` for all.
    pub at_once: Option<u32>,
    pub(crate) at: TextPosition,
}

/// The end of a component's run, for the display of progress.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgressGoal {
    /// The source of the end time.
    pub end: EndTime,
    pub(crate) at: TextPosition,
}

/// The simulated time at which a component ends.
#[derive(Clone, Debug, PartialEq)]
pub enum EndTime {
    /// Given here. A bare number, without a dimension, is in the unit of timestamps.
    Time(Quantity),
    /// The value of this setting.
    Setting(Name),
}

/// A user filter.
#[derive(Clone, Debug, PartialEq)]
pub struct FilterDefinition {
    /// The function to call.
    pub call: UserFunction,
    /// The side at which the filter runs; `None` for the receiver.
    pub side: Option<FilterSide>,
    pub(crate) at: TextPosition,
}

/// A user function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UserFunction {
    /// `module:function`
    Python {
        /// Dotted name of the module.
        module: String,
        /// Name of the function.
        function: String,
    },
    /// An entry point of a shared library.
    Library {
        /// The library's file.
        path: String,
        /// The entry point.
        symbol: String,
    },
}

/// Buffer limits.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Buffers {
    /// The limits of every conduit without limits.
    pub default: BufferLimits,
    /// By port, `component.port`. The limits of a receiver go before those of a sender.
    pub ports: IndexMap<Name, (BufferLimits, TextPosition)>,
}

/// The most that a conduit holds; `None` leaves the limit to the runtime.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BufferLimits {
    /// The number of messages.
    pub messages: Option<u64>,
    /// The number of bytes.
    pub bytes: Option<u64>,
}

impl BufferLimits {
    /// These limits; a missing limit is taken from `other`.
    pub fn or(self, other: BufferLimits) -> BufferLimits {
        BufferLimits {
            messages: self.messages.or(other.messages),
            bytes: self.bytes.or(other.bytes),
        }
    }
}

/// The carrier of messages. The preferred media come first.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Medium {
    /// Within a process.
    Inproc,
    /// Through memory that two processes of one host share.
    Shm,
    /// Through TCP connections.
    Tcp,
    /// Through a folder of a shared file system.
    File,
    /// Through relays between sites.
    Relay,
}

impl Medium {
    /// All media, the preferred media first.
    pub const ALL: [Medium; 5] = [
        Medium::Inproc,
        Medium::Shm,
        Medium::Tcp,
        Medium::File,
        Medium::Relay,
    ];

    /// The medium with the key, if there is one.
    pub fn of_key(key: &str) -> Option<Medium> {
        Medium::ALL.into_iter().find(|medium| medium.key() == key)
    }

    /// Whether processes of the medium meet in a folder, which the manager makes for the run.
    pub fn meets_in_folder(self) -> bool {
        self == Medium::File
    }

    /// Whether no medium is better between two ends that share this one. A conduit pinned to the
    /// medium then needs no link beside the best link.
    pub fn is_best_where_shared(self) -> bool {
        matches!(self, Medium::Inproc | Medium::Shm)
    }

    /// The key in a description: `tcp`.
    pub fn key(self) -> &'static str {
        match self {
            Medium::Inproc => "inproc",
            Medium::Shm => "shm",
            Medium::Tcp => "tcp",
            Medium::File => "file",
            Medium::Relay => "relay",
        }
    }
}

/// The medium of a port's conduits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PinnedMedium {
    /// The medium.
    pub medium: Medium,
    pub(crate) at: TextPosition,
}

/// Ports of a program that must be connected.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RequiredPorts {
    /// The names of the ports.
    pub ports: Vec<Name>,
    pub(crate) at: TextPosition,
}

/// Settings of links by tcp, also through relays.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Links {
    /// The settings of links without settings.
    pub default: LinkTuning,
    /// The settings of links of a component's instances.
    pub components: IndexMap<Name, (LinkTuning, TextPosition)>,
}

/// Settings of a link by tcp, also through relays; `None` leaves the choice to the runtime.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkTuning {
    /// The number of parallel streams.
    pub streams: Option<u32>,
    /// The most bytes per second that are sent.
    pub pacing: Option<u64>,
    /// Bytes of a socket's send buffer.
    pub send_buffer: Option<u64>,
    /// Bytes of a socket's receive buffer.
    pub receive_buffer: Option<u64>,
    /// Whether titin compresses large messages.
    pub compress: Option<Compress>,
}

/// Whether titin compresses the large messages of a link by itself. If two ends want different
/// things, the later variant counts.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    serde::Serialize,
    serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Compress {
    /// Between sites, where compressed messages are sooner at the receiver.
    #[default]
    Auto,
    /// All messages that become smaller.
    Always,
    /// No message.
    Never,
}

impl Compress {
    /// All variants.
    pub const ALL: [Compress; 3] = [Compress::Auto, Compress::Always, Compress::Never];

    /// The key in a description: `auto`.
    pub fn key(self) -> &'static str {
        match self {
            Compress::Auto => "auto",
            Compress::Always => "always",
            Compress::Never => "never",
        }
    }
}

impl LinkTuning {
    /// The settings that both ends want: the larger number, but the lower of two rates, and no
    /// compression if one end wants none.
    pub fn and(self, other: LinkTuning) -> LinkTuning {
        let lower = self.pacing.into_iter().chain(other.pacing).min();
        LinkTuning {
            streams: self.streams.max(other.streams),
            pacing: lower,
            send_buffer: self.send_buffer.max(other.send_buffer),
            receive_buffer: self.receive_buffer.max(other.receive_buffer),
            compress: self.compress.max(other.compress),
        }
    }

    /// These settings; a missing setting is taken from `other`.
    pub fn or(self, other: LinkTuning) -> LinkTuning {
        LinkTuning {
            streams: self.streams.or(other.streams),
            pacing: self.pacing.or(other.pacing),
            send_buffer: self.send_buffer.or(other.send_buffer),
            receive_buffer: self.receive_buffer.or(other.receive_buffer),
            compress: self.compress.or(other.compress),
        }
    }
}

impl Links {
    /// The settings of a link between instances of these components.
    pub fn between(&self, one: &str, other: &str) -> LinkTuning {
        let own = |name: &str| {
            self.components
                .get(name)
                .map_or(LinkTuning::default(), |(link, _)| *link)
        };
        own(one).and(own(other)).or(self.default)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_made_as_both_ends_want() {
        let link = |streams, pacing, send_buffer| LinkTuning {
            streams,
            pacing,
            send_buffer,
            ..LinkTuning::default()
        };
        let mut links = Links {
            default: link(Some(2), Some(50), Some(7)),
            ..Links::default()
        };
        assert_eq!(links.between("a", "b"), links.default);
        links.components.insert(
            "a".into(),
            (link(Some(8), Some(100), None), TextPosition::default()),
        );
        assert_eq!(links.between("a", "b"), link(Some(8), Some(100), Some(7)));
        assert_eq!(links.between("b", "a"), links.between("a", "b"));
        links.components.insert(
            "b".into(),
            (link(None, Some(30), Some(1)), TextPosition::default()),
        );
        assert_eq!(links.between("a", "b"), link(Some(8), Some(30), Some(1)));
    }

    #[test]
    fn an_end_that_wants_no_compression_gets_none() {
        let link = |compress| LinkTuning {
            compress,
            ..LinkTuning::default()
        };
        let of = |one, other| link(one).and(link(other)).compress;
        let [auto, always, never] = Compress::ALL.map(Some);
        assert_eq!(of(always, never), never);
        assert_eq!(of(auto, always), always);
        assert_eq!(of(None, auto), auto);
        assert_eq!(link(never).or(link(always)).compress, never);
    }
}
