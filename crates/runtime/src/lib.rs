//! The library linked into a submodel: an instance with its ports, messages, settings and filters.
//!
//! A program opens an [`Instance`], and the instance joins the run named by the environment. Then
//! the program sends and receives on ports in the order of the submodel execution loop. All calls
//! wait at the one doorbell of the instance; the background thread of the process moves bytes
//! meanwhile. The crate never prints, never exits, installs no signal handler and links no MPI.
//!
//! ```no_run
//! use titin_runtime::{Instance, Options, Patience, Payload};
//!
//! let instance = Instance::open(Options::default().ports("f_init: initial_state; o_f: final_state")?)?;
//! let (initial, final_) = (instance.port("initial_state")?, instance.port("final_state")?);
//! while instance.reuse()? {
//!     let k = instance.setting("k")?.as_f64()?;
//!     let message = instance.receive(initial, None, Patience::Forever)?;
//!     let (layout, bytes) = message.array()?;
//!     let scaled: Vec<u8> =
//!         bytes.chunks_exact(8).flat_map(|b| (k * f64::from_le_bytes(b.try_into().unwrap())).to_le_bytes()).collect();
//!     instance.send(final_, None, &Payload::array(layout, &scaled), message.timestamp, None, None)?;
//! }
//! instance.close()?;
//! # Ok::<(), titin_runtime::Error>(())
//! ```

#![forbid(unsafe_code)]

mod communicator;
mod compression;
mod error;
mod execution_loop;
mod field;
mod field_mark;
mod filter;
mod instance;
mod iteration;
mod message;
mod neighbours;
mod non_blocking;
mod options;
mod peer_names;
mod port;
mod process;
mod profile;
mod ranks;
mod send_state;
mod serial;
mod setting;

pub use communicator::Communicator;
pub use error::{Error, FailedMember, Kind, Result};
pub use field::{FieldId, Stamps};
pub use filter::{FilterFailure, Function, Functions, Mapped};
pub use instance::{Instance, Opening};
pub use message::{CallerLayout, Lent, Loan, Message, MessageParts, Payload};
pub use non_blocking::{ReadyList, ReadyListEntry};
pub use options::{Options, OverlayUse, ReceivingRanks};
pub use port::{PortId, PortInfo};
pub use process::{fork_child, not_forked};
pub use profile::ProfileRegion;
pub use serial::{NoteCall, Patience, PortChoice, ReceivedAtOnce, ReceivedFrom};
pub use setting::{OverlayError, SettingValue, overlay_of};
pub use titin_array as array;
pub use titin_model::quantity::convert;
pub use titin_model::{AcceptedValue, BuiltIn, Checks, Operator, nearest};
pub use titin_os::forks::{after as after_fork, before as before_fork};
pub use titin_transport::{Buffer, Filling, IncomingMessage, SharedBuffer};
pub use titin_wire::control::{FilterFunction, Scale};
pub use titin_wire::meta::{
    Content, Dtype, ElementKind, ElementValue, Layout, LayoutRef, MAX_RANK, Meta, Shape,
    StorageOrder,
};
pub use titin_wire::settings::{Overlay, Setting};
pub use titin_wire::structure;
