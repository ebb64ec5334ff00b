//! The errors of paths.

use std::time::Duration;

use titin_transport::LinkError;

/// Why a call on a path has failed. After [`PathError::Late`], [`PathError::TooLarge`],
/// [`PathError::Dropped`], [`PathError::Abandoned`] and [`PathError::Message`] the path goes on.
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
    /// The received message is larger than the caller's memory. The message is dropped, and the
    /// sending program hears of it.
    #[error("the message has {length} bytes, and there is room for {room}; it was dropped")]
    TooLarge {
        /// The bytes of the message.
        length: u64,
        /// The bytes for which there is room.
        room: u64,
    },
    /// The other end has dropped an earlier message of this end, for which it had too little room.
    #[error(
        "the other end had room for {room} bytes and dropped message {message}, which has {length} bytes (the first message is 0)"
    )]
    Dropped {
        /// The number of the message among those that this end has sent, from 0.
        message: u64,
        /// The bytes of the message.
        length: u64,
        /// The bytes for which there was room.
        room: u64,
    },
    /// The sender has given up in the middle of the message.
    #[error("the sender has given up in the middle of a message, after {0} bytes")]
    Abandoned(u64),
    /// The message cannot be sent or received, for want of memory say.
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
    /// The system refuses something.
    #[error("{0}")]
    System(String),
}

impl From<LinkError> for PathError {
    fn from(why: LinkError) -> Self {
        if why.is_of_message() {
            PathError::Message(why.to_string())
        } else {
            PathError::Lost(why)
        }
    }
}

/// The outcome of a call on a path.
pub type Result<T> = std::result::Result<T, PathError>;
