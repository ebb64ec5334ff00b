//! The relay of a site: a daemon without privileges that passes the bytes of admitted runs between
//! the processes of its site and the relays of other sites.
//!
//! A process of a run asks the relay of its site for a **circuit** to a listener at another site
//! ([`titin_wire::circuit`]). The relays connect the two, hop by hop, and pass the bytes on as they
//! are. They do not look inside, and keep nothing that the two ends could not send again: the ends
//! have sessions ([`titin_wire::session`]). So a relay may be stopped and started at any time.
//!
//! Between relays there is TLS 1.3, and both prove themselves by pinned keys. A relay serves the
//! runs that a manager has had it admit with the relay's own key, and the runs of the relays that
//! it trusts.

#![forbid(unsafe_code)]

mod admission;
mod circuits;
mod config;
mod identity;
mod messages;
mod peers;
mod server;
mod status;
mod strangers;
mod tls;

pub use config::{Config, ConfigError, PeerConfig, RelayFolder};
pub use identity::{Fingerprint, Identity};
pub use server::{RelayError, serve};
pub use status::ask_status;
