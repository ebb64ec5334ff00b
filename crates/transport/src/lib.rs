//! Moving messages between instances: one contract ([`Carrier`]), one module per medium.
//!
//! A **carrier** takes messages of any number of conduits to one other process (or to the same one). What comes in
//! lands in the **inbox** of its conduit; how far a sender may run ahead is kept by the conduit's **window**; both
//! live in the process's [`Exchange`]. Whoever waits does so at the instance's one [`Doorbell`], which every medium
//! and the control plane ring. All sockets of a process belong to its [`Reactor`], one background thread.
//!
//! This crate knows frames and bytes. It never looks into a payload, and it knows neither ports nor operators.
//!
//! ```
//! use std::sync::Arc;
//! use titin_transport::{Carrier, Doorbell, Exchange, Inproc, Outgoing};
//! use titin_wire::{ConduitId, frame::Head};
//!
//! let exchange = Arc::new(Exchange::default());
//! let conduit = ConduitId(1);
//! let carrier = Inproc::new(exchange.clone());
//! let head = Head::new(conduit, 0, 0.0, None);
//! carrier.send(&Outgoing::new(head, &Arc::default(), &[])).unwrap();
//!
//! let inbox = exchange.inbox(conduit);
//! inbox.attach(Arc::new(Doorbell::default()), Arc::new(carrier), Default::default());
//! assert_eq!(inbox.take().unwrap().head.sequence, 0);
//! ```

mod arrivals;
mod buffer;
mod carrier;
mod copy;
mod doorbell;
mod exchange;
mod inbox;
mod inproc;
mod latch;
mod reactor;
mod shm;
mod sync;
mod tcp;
mod turns;
mod window;

pub use arrivals::Arrivals;
pub use buffer::{Buffer, Filling};
pub use carrier::{Attention, Carrier, Lost, Medium, Outgoing, Sent};
pub use copy::{PAST as PAST_CACHES, copy, copy_past_caches};
pub use doorbell::{Doorbell, Wake};
pub use exchange::Exchange;
pub use inbox::{Inbox, InboxOptions, Listed, Message};
pub use inproc::Inproc;
pub use latch::{Latch, Latched};
pub use reactor::{Handler, Reactor};
pub use shm::Shortage;
pub use tcp::{Link, LinkId, Reader, Received};
pub use window::{Room, Window};
