//! The errors of paths.

use std::time::Duration;

use titin_transport::LinkError;

use crate::key_file::KEY_VARIABLE;

/// Why a call on a path has failed. After [`PathError::Late`], [`PathError::Unfit`],
/// [`PathError::Dropped`], [`PathError::Abandoned`], [`PathError::Interrupted`], [`PathError::Cancelled`],
/// [`PathError::Message`] and [`PathError::NoMemory`] the path goes on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// The time of the call is over.
    #[error("{what} has taken longer than {} s", limit.as_secs_f64())]
    Late {
        /// What the call waited for.
        what: &'static str,
        /// The time that the caller gave.
        limit: Duration,
    },
    /// The received message does not fit into the caller's memory: it is too large, or of another type or shape. The
    /// message is dropped, and the sending program hears of it.
    #[error("the message was dropped: {0}")]
    Unfit(String),
    /// The other end has dropped an earlier message of this end.
    #[error("the receiver has dropped message {message} (the first one is 0): {why}")]
    Dropped {
        /// The number of the message among those that this end has sent, from 0.
        message: u64,
        /// Why it did not fit there.
        why: String,
    },
    /// The sender has given up in the middle of the message.
    #[error("the sender has given up in the middle of a message, after {0} bytes")]
    Abandoned(u64),
    /// [`crate::Interrupt`] has ended the call.
    #[error("{0} was interrupted")]
    Interrupted(&'static str),
    /// The program has cancelled the non-blocking call.
    #[error("the call was cancelled")]
    Cancelled,
    /// The message cannot be sent: its layout has another number of bytes.
    #[error("{0}")]
    Message(String),
    /// The other end has closed the path.
    #[error("the other end has closed the path")]
    Closed,
    /// This end has closed the path.
    #[error("this end has closed the path")]
    ClosedHere,
    /// The path is lost.
    #[error("the path is lost: {0}")]
    Lost(LinkError),
    /// No path could be opened.
    #[error("{0}")]
    NotOpened(String),
    /// The program at the other end has another key.
    #[error(
        "the other end has another key: both need the same one (a copy of the file that {KEY_VARIABLE} names)"
    )]
    OtherKey,
    /// A text is no address.
    #[error("{0}")]
    NoAddress(String),
    /// There is no memory for the message.
    #[error("{0}")]
    NoMemory(String),
    /// The file of a key cannot be used.
    #[error("{0}")]
    NoKey(String),
    /// The system refuses something.
    #[error("{0}")]
    System(String),
}

/// The outcome of a call on a path.
pub type Result<T> = std::result::Result<T, PathError>;
