//! What the `titin` command knows of the relay of a site: its folder with configuration and key, and
//! the question for its state. The relay itself is the program `titin-relayd`.

#![forbid(unsafe_code)]

mod check;
mod config;
mod edit;
mod identity;
mod status;

pub use config::{Config, ConfigError, PeerConfig, RelayFolder};
pub use identity::{Fingerprint, Identity, end_of_day};
pub use status::ask_status;

/// The memory of a circuit in a relay: its buffers in both directions, and those of TLS.
pub const CIRCUIT_MEMORY: usize = 320 << 10;
