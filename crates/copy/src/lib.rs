//! Files and directories to and from another host, over a path.
//!
//! One end [sends](send), the other one [receives](receive). The sender tells of its files in batches. For each batch
//! the receiver answers with the files that it wants, and from which byte on. The batch behind is told before the
//! bytes of a batch are sent, so the line does not wait for answers. Many small files share a message, and a large one
//! has many.
//!
//! A file is written beside its place and takes the place once it is whole: its bytes have the BLAKE3 hash that the
//! sender has computed. What an earlier copy has left of a file is kept if its hash is that of the beginning of the
//! file. The receiver opens nothing outside of its directory, whatever the sender tells: no `..`, no absolute names,
//! and no way through links.
//!
//! A copy that [goes on](keep_sending) has rounds: the first one is a copy, and each of the others brings what has changed since.
//! Only if it is told to, the receiver removes what the sender has not.
//!
//! [`Far`] starts the other end on another host.

#![forbid(unsafe_code)]

mod destination;
mod entry;
mod error;
mod far;
mod keep;
mod message;
mod place;
mod receiver;
mod removal;
mod report;
mod sender;
mod settings;
mod sources;
mod sparse;
mod target;
mod walk;
mod watch;

pub use destination::Destination;
pub use error::CopyError;
pub use far::{FAR_FAILED, Far, FarName, FarRole, FarSettings, FarSource, serve_far};
pub use keep::{keep_receiving, keep_sending};
pub use place::Place;
pub use receiver::receive;
pub use report::{CopyProgress, CopyReport, FailedFile};
pub use sender::send;
pub use settings::{CopySettings, Watching};
pub use sources::{FileIdentity, Source, SourceKind, Sources};
