//! The bytes that titin's processes exchange, and nothing else: no sockets, no clock, no threads.
//!
//! A link carries **frames** ([`frame`]): a fixed 64-byte header, optional metadata ([`meta`]), and
//! a payload that is an array, a structure ([`structure`]) or a control message ([`control`]).
//! Before the first frame both ends prove that they know the run's secret ([`handshake`]). How a
//! program finds its run is in [`connection`]. How an agent that the user or a batch job starts finds its
//! run is in [`token`].
//!
//! Every decoder here takes hostile bytes: no bytes lead to a panic, to an endless loop, or to more
//! memory than a small multiple of the bytes. The error [`Malformed`] explains why bytes are
//! refused.
//!
//! ```
//! use titin_wire::{ConduitId, frame::{Frame, Header}};
//!
//! let frame = Frame::End { conduit: ConduitId(7), sequence: 3 };
//! let bytes = Header::from(&frame).encode();
//! assert_eq!(Header::decode(&bytes).unwrap().frame().unwrap(), frame);
//! ```

#![forbid(unsafe_code)]

#[cfg(target_endian = "big")]
compile_error!(
    "titin is for little-endian processors: the elements of arrays travel as they are in memory, in little-endian \
     order, and nothing swaps their bytes"
);

pub mod attempts;
pub mod circuit;
pub mod connection;
pub mod control;
pub mod frame;
pub mod handshake;
pub mod ids;
pub mod line;
mod link;
pub mod meta;
pub mod observation;
pub mod path;
pub mod ranks;
pub mod seal;
pub mod session;
pub mod settings;
pub mod structure;
pub mod token;
pub mod versions;

pub use ids::{Address, EndpointId, Secret, addresses_from_site};
pub use link::LinkSettings;
pub use titin_model::{Compress, ConduitId, HostNetwork, Medium};

/// Bytes that do not follow the format.
///
/// Either the peer is no titin of a compatible release, or the bytes were damaged on the way; so
/// titin gives up the link.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("malformed {what}: {why}")]
pub struct Malformed {
    /// The part of the format, such as "frame header".
    pub what: &'static str,
    /// The found and the expected value.
    pub why: String,
}

impl Malformed {
    /// An error in a part of the format.
    pub fn new(what: &'static str, why: impl Into<String>) -> Self {
        Malformed {
            what,
            why: why.into(),
        }
    }
}

/// The size of a cache line, in bytes: payloads and metadata are padded to a multiple, so that
/// arrays begin on a line.
pub const ALIGNMENT: usize = 64;

/// The next multiple of [`ALIGNMENT`] at or above `length`.
pub fn padded(length: usize) -> usize {
    length.next_multiple_of(ALIGNMENT)
}
