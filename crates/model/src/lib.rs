//! yMMSL and the model graph: components, ports, operators, conduits, settings, checks.
//!
//! [`load`] reads description files of yMMSL v0.1 and v0.2, merges them, follows imports and
//! reports all problems at once. [`Description::network`] flattens nested models into the
//! [`Network`] that is run: components with their programs, the instances, and the conduits
//! between instances.
//!
//! This crate reads the given files and the modules that they import. The crate never prints,
//! starts no process, opens no socket, and survives any text, however hostile.
//!
//! ```
//! use titin_model::{LoadOptions, load_texts};
//!
//! let text = "
//! ymmsl_version: v0.2
//! models:
//!   demo:
//!     components:
//!       macro:
//!         description: slow
//!         ports: {o_i: state_out, s: state_in}
//!         implementation: macro_prog
//!       micro:
//!         description: fast
//!         ports: {f_init: initial, o_f: final}
//!         implementation: micro_prog
//!         multiplicity: 4
//!     conduits:
//!       macro.state_out: micro.initial
//!       micro.final: macro.state_in
//! programs:
//!   macro_prog: {executable: ./macro}
//!   micro_prog: {executable: ./micro}
//! settings: {dt: 10 ms, 'micro[2].dt': 5 ms}
//! ";
//! let description = load_texts(&[("demo.ymmsl", text)], &LoadOptions::default()).unwrap();
//! let network = description.network(None).unwrap();
//! assert_eq!(network.instances().count(), 5);
//! assert_eq!(network.conduit_count(), 8);
//! let ends = network.conduit(titin_model::ConduitId(2)).unwrap();
//! assert_eq!((ends.sender_slot, ends.receiver.to_string().as_str()), (Some(2), "micro[2]"));
//! let dt = network.settings.find(&"micro[2]".parse().unwrap(), "dt").unwrap();
//! assert_eq!(dt.in_unit("s"), Ok(0.005));
//! ```

#![forbid(unsafe_code)]

pub mod array_description;
mod built_in;
mod byte_size;
mod check;
mod description;
mod document;
mod dump;
mod emit;
mod filter;
mod flatten;
mod host_network;
mod imports;
mod load;
mod merge;
mod muscle_settings;
mod names;
mod network;
mod operator;
mod options;
mod pattern;
mod problem;
pub mod quantity;
mod read;
mod roots;
mod settings;
mod source;
mod timelines;
mod titin_section;
mod yaml;

pub use built_in::{AcceptedValue, BMI_WORDS, BuiltIn};
pub use byte_size::bytes_of;
pub use description::{
    BaseEnv, CheckpointRule, Checkpoints, Component, Conduit, CustomImplementation, Description,
    ExecutionModel, HostedFunction, KeepsState, MatchingTimelines, Model, Port, PortReference,
    Ports, Program, ProgramKind, ResourceRequest, Resources, Resume, SETTINGS_IN, SupportedSetting,
};
pub use filter::{FILTER_NAMES, Filter, FilterKind, FilterSide, PYTHON_BETWEEN, before_wire};
pub use host_network::{HostNetwork, NetworkError};
pub use load::{load, load_texts};
pub use muscle_settings::{Checks, MuscleSettings};
pub use names::{
    BundleId, ComponentId, ConduitId, InstanceId, InstanceName, Name, NameError, Reference,
    ReferencePart, is_identifier,
};
pub use network::{Bundle, ConduitEnds, Network, NetworkComponent};
pub use operator::{Operator, Timeline};
pub use options::{LoadOptions, StartPolicy, TableColumns, TableFile};
pub use pattern::{Pattern, PatternSide, Steps, TransferMode, VersionCache, WhenFull};
pub use problem::{
    Code, MOST_PROBLEMS, Problem, ProblemReport, Severity, TextPosition, listing, nearest,
};
pub use roots::EnclosingModel;
pub use settings::{Setting, SettingType, Settings};
pub use titin_element::Dtype;
pub use titin_section::{
    AgentStart, BatchJob, BufferLimits, Buffers, Compress, EndTime, Ensemble, Extras,
    FilterDefinition, Host, LinkTuning, Links, Medium, OWN_HOST, PinnedMedium, ProgressGoal,
    RequiredPorts, Scales, Site, StagedFiles, UserFunction,
};

/// The JSON Schema of descriptions: yMMSL, versions 0.1 and 0.2, with titin's keys. `tests/model/test_schema.py` compares its
/// keys with those that the reader knows.
pub const SCHEMA: &str = include_str!("../ymmsl.schema.json");
