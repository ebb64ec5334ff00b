//! What stands under `titin:`: everything that yMMSL has no place for.

use indexmap::IndexMap;

use crate::filter::Side;
use crate::names::Name;
use crate::problem::Place;
use crate::quantity::Quantity;

/// The `titin:` section. Paths begin with a component's name, as in `settings`.
#[derive(Clone, Debug, Default)]
pub struct Extras {
    /// Scales by component.
    pub scales: IndexMap<Name, Scales>,
    /// Files to copy in before and out after, by component.
    pub stage: IndexMap<Name, Stage>,
    /// Where the end time is known from, by component.
    pub progress: IndexMap<Name, Progress>,
    /// The user's own filters.
    pub filters: IndexMap<Name, UserFilter>,
    /// Buffer limits, for all conduits and by port.
    pub buffer: Buffers,
    /// The medium that conduits are pinned to, by port.
    pub medium: IndexMap<Name, Pinned>,
    /// How long a program may take to end, once the run has failed.
    pub grace: Option<Quantity>,
    /// How long a host may be silent.
    pub heartbeat: Option<Quantity>,
    /// How long to wait for an instance to register.
    pub register_timeout: Option<Quantity>,
    /// Ports that must be connected, by program.
    pub required: IndexMap<Name, Required>,
    /// How links between sites are made, by name.
    pub links: IndexMap<Name, Link>,
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
    pub(crate) at: Place,
}

/// Files of a component's instances.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stage {
    /// Copied into the work directory before the start.
    pub input: Vec<String>,
    /// Kept as results after the end.
    pub output: Vec<String>,
    pub(crate) at: Place,
}

/// How far a component has to go.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// Where its end time is.
    pub end: EndTime,
    pub(crate) at: Place,
}

/// The simulated time at which a component ends.
#[derive(Clone, Debug, PartialEq)]
pub enum EndTime {
    /// Given here.
    Time(Quantity),
    /// The value of this setting.
    Setting(Name),
}

/// A filter of the user's.
#[derive(Clone, Debug, PartialEq)]
pub struct UserFilter {
    /// The function to call.
    pub call: Call,
    /// Where it runs; `None` for the receiver.
    pub side: Option<Side>,
    pub(crate) at: Place,
}

/// A function of the user's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
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
    /// Of every conduit that has none of its own.
    pub default: Buffer,
    /// By port, `component.port`; the receiver's goes before the sender's.
    pub ports: IndexMap<Name, (Buffer, Placed)>,
}

/// What a conduit may hold; `None` leaves it to the runtime.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Buffer {
    /// The number of messages.
    pub messages: Option<u64>,
    /// The number of bytes.
    pub bytes: Option<u64>,
}

impl Buffer {
    /// These limits; where one is missing, that of `other`.
    pub fn or(self, other: Buffer) -> Buffer {
        Buffer { messages: self.messages.or(other.messages), bytes: self.bytes.or(other.bytes) }
    }
}

/// Where an entry stands; of no interest to the outside.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Placed(pub(crate) Place);

/// How messages travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Medium {
    /// Within a process.
    Inproc,
    /// Through shared memory.
    Shm,
    /// Through a socket.
    Tcp,
}

impl Medium {
    /// All of them.
    pub const ALL: [Medium; 3] = [Medium::Inproc, Medium::Shm, Medium::Tcp];

    /// As in a description: `tcp`.
    pub fn key(self) -> &'static str {
        match self {
            Medium::Inproc => "inproc",
            Medium::Shm => "shm",
            Medium::Tcp => "tcp",
        }
    }
}

/// The medium of a port's conduits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pinned {
    /// The medium.
    pub medium: Medium,
    pub(crate) at: Place,
}

/// Ports of a program that must be connected.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Required {
    /// Their names.
    pub ports: Vec<Name>,
    pub(crate) at: Place,
}

/// How a link between sites is made.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Link {
    /// The number of parallel streams.
    pub streams: Option<u32>,
    /// The most bytes per second that are sent.
    pub pacing: Option<f64>,
    pub(crate) at: Place,
}
