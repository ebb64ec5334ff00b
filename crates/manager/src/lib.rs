//! The control plane of one run: registry, placement, start, watch, and the report at the end.
//!
//! The manager never touches a message between programs. The manager tells each program where its
//! peers are, and then the programs exchange messages directly. A state machine ([`state`]) makes
//! all decisions: events go in and actions come out ([`event`]), for the [`plan`] that [`compile`]
//! makes of the description. The [`session`] around the state machine has the run directory, the
//! sockets and the [`guard`]. The guard starts the programs and leaves no program behind. On another
//! host an [`agent`] with a guard of its own does so.
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//! use titin_manager::compile::{Choices, compile};
//! use titin_manager::event::{Exit, RunAction, RunEvent};
//! use titin_manager::host::ProcessId;
//! use titin_manager::plan::InstanceId;
//! use titin_manager::state::{Manager, RunOutcome};
//!
//! let text = "
//! ymmsl_version: v0.2
//! models: {demo: {components: {macro: {description: alone, implementation: p}}}}
//! programs: {p: {executable: ./macro}}
//! ";
//! let network = titin_model::load_texts(&[("demo.ymmsl", text)], &Default::default()).unwrap().network(None).unwrap();
//! let plan = Arc::new(compile(&network, &[], &Choices::default()).unwrap());
//! let mut manager = Manager::new(plan, "here");
//! let macro_ = InstanceId(0);
//! assert!(matches!(manager.begin(Duration::ZERO)[..], [RunAction::StartProgram(id)] if id == macro_));
//! manager.handle(Duration::from_millis(1), RunEvent::ProcessStarted(macro_, ProcessId::here(4711)));
//! manager.handle(Duration::from_millis(9), RunEvent::ProcessEnded(macro_, Exit::Code(3)));
//! let Some(RunOutcome::Failed(failure)) = manager.outcome() else { panic!("it never joined") };
//! assert_eq!(manager.failure_line(failure), "macro ended with exit code 3 before it had joined the run");
//! ```

#![forbid(unsafe_code)]

pub mod absolute_paths;
pub mod agent;
pub mod allocation;
pub mod compile;
mod cores;
pub mod directory;
pub mod event;
pub mod guard;
pub mod host;
pub mod launch;
pub mod log;
mod manual_start;
pub mod placement;
pub mod plan;
pub mod preflight;
mod process_tree;
mod process_watcher;
pub mod profile;
pub mod report;
pub mod session;
pub mod shell;
pub mod slurm;
mod sparse;
pub mod stage;
mod starter;
pub mod state;

pub use titin_os::folder_lock;
