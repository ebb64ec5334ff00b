//! Moving messages between instances: one contract ([`Carrier`]), one folder per medium.
//!
//! A **carrier** takes messages of any number of conduits to one other process (or to the same
//! process). Incoming messages land in the **inbox** of their conduit. The conduit's **window**
//! says how far a sender may run ahead. Inboxes and windows live in the process's [`ConduitTable`].
//! A thread waits at the [`Doorbell`] of its instance; every medium and the control plane ring the
//! doorbell. All sockets of a process belong to the [`Reactor`], one background thread. A caller
//! that waits for a message or for room may read a link in the reactor's place.
//!
//! The lower modules know no medium: inboxes, windows, buffers, the doorbell. Above the lower
//! modules a [`Link`] of sockets carries frames between two processes, and the reactor dials,
//! listens and shakes hands. On top are the media. A medium knows neither the other media nor the
//! reactor's parts; `media.rs` lists the media with links, so all but [`Inproc`].
//!
//! The crate knows frames and bytes. No code here looks into a payload, or knows ports or
//! operators.
//!
//! ```
//! use std::sync::Arc;
//! use titin_transport::{Carrier, Doorbell, ConduitTable, Inproc, Outgoing};
//! use titin_wire::{ConduitId, frame::Head};
//!
//! let conduits = Arc::new(ConduitTable::default());
//! let conduit = ConduitId(1);
//! let carrier = Inproc::new(conduits.clone());
//! let head = Head::new(conduit, 0, 0.0, None);
//! carrier.send(&Outgoing::new(head, &Arc::default(), &[])).unwrap();
//!
//! let inbox = conduits.inbox(conduit);
//! inbox.attach(Arc::new(Doorbell::default()), Arc::new(carrier), Default::default());
//! assert_eq!(inbox.take().unwrap().head.sequence, 0);
//! ```

mod admission;
mod arrivals;
mod bell;
mod buffer;
mod carrier;
mod conduit_table;
mod copy;
mod delivery_rate;
mod doorbell;
mod error;
mod file;
mod flight;
mod inbox;
mod inproc;
mod line_meter;
mod link;
mod media;
mod medium;
mod pump;
mod reactor;
mod relay;
mod shared_bells;
mod shared_memory;
mod shm;
mod socket_carrier;
mod socket_sleepers;
mod spin;
mod spin_lock;
mod stream_growth;
mod stream_meter;
mod sync;
mod tcp;
mod ticket_queue;
mod token_connection;
mod waiting;
mod window;

pub use admission::{Admission, AdmissionError, AdmissionNews, AdmittedRun, HomeRelay};
pub use arrivals::Arrivals;
pub use buffer::{Buffer, Filling, SharedBuffer};
pub use carrier::{Carrier, Medium, Outgoing, SendReport};
pub use conduit_table::{ConduitTable, Shortage};
pub use copy::{PAST as PAST_CACHES, copy, copy_past_caches};
pub use doorbell::Doorbell;
pub use error::LinkError;
pub use inbox::{Acknowledge, Arrival, Inbox, InboxOptions, IncomingMessage};
pub use inproc::Inproc;
pub use link::{FrameReader, Handler, Link, LinkId, PIECE_SIZES, Received};
pub use medium::{LinkFigures, LinkPatience};
pub use reactor::Reactor;
pub use spin::WaitPolicy;
pub use spin_lock::{SpinLock, SpinLockGuard};
pub use sync::{Wake, WakeEvent};
pub use tcp::own_addresses;
pub use token_connection::TokenConnection;
pub use window::{Room, Window};
