//! What two relays say to each other on a connection between them, inside of TLS.
//!
//! A message is a u32 length, little-endian, and as many bytes of JSON, as in [`crate::circuit`]. The
//! relay that has dialled greets, and the other answers.

use serde::{Deserialize, Serialize};

use crate::circuit::{CircuitRefusal, Destination, RunPermit, is_zero};
use crate::versions;

/// The first message of the relay that has dialled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PeerGreeting {
    /// The versions that the relay speaks, lowest and highest.
    pub versions: (u16, u16),
    /// What the connection is for.
    pub purpose: LinePurpose,
}

impl PeerGreeting {
    /// The greeting of this release.
    pub fn new(purpose: LinePurpose) -> Self {
        PeerGreeting {
            versions: versions::relay(),
            purpose,
        }
    }
}

/// What a connection between relays is for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinePurpose {
    /// Control messages, as long as both relays live.
    Control,
    /// A circuit of a run to a listener.
    Circuit {
        /// The number of the run.
        run: u64,
        /// The listener.
        destination: Destination,
        /// By how many relays the request has come.
        #[serde(default, skip_serializing_if = "is_zero")]
        hops: u8,
    },
    /// The relay that dials was called ([`ControlMessage::Call`]). The relay that has called now greets on this
    /// connection.
    Callback {
        /// The number of the call.
        call: u64,
    },
}

/// The answer to a greeting.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PeerAnswer {
    /// Control messages follow, or bytes of the circuit.
    Welcome,
    /// Nothing follows.
    Refused(CircuitRefusal),
}

/// Why a relay does not take a run over.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RunRefusal {
    /// The number of the run.
    pub run: u64,
    /// The site to which the relay does not pass the run on; `None` if it does not take the run over itself.
    pub to: Option<String>,
    /// The relay, and why, in words.
    pub why: String,
    /// By how many relays the refusal has come.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub hops: u8,
}

/// A control message between two relays.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ControlMessage {
    /// All runs that the sender has admitted and the receiver is to admit.
    Runs(Vec<RunPermit>),
    /// Which runs of the receiver the sender does not take over, or relays behind the sender do not.
    RefusedRuns(Vec<RunRefusal>),
    /// Asks the receiver, which the sender cannot dial, to dial for a circuit.
    Call {
        /// The number of the call.
        call: u64,
    },
    /// Asks for a pong with the same number.
    Ping(u64),
    /// The answer to a ping.
    Pong(u64),
}
