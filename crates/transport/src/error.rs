//! The errors of links.

use titin_wire::Malformed;
use titin_wire::handshake::Refusal;

/// Why a link is no more, or why a link does not take a message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    /// The other end closed the connection, or the other process ended.
    #[error("the connection was closed by the other end")]
    Closed,
    /// The other end could not be reached: nothing listens there, or no titin of the run does.
    #[error("cannot reach {0}")]
    Unreachable(String),
    /// The other end could not be reached in time. The process may be there.
    #[error("cannot reach {0}")]
    Late(String),
    /// One end has refused the other.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The other end sent bytes that make no sense.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// There was no connection in time.
    #[error("nothing has answered there")]
    Silent,
    /// The other end did not prove itself in time.
    #[error("it takes connections, but has not answered")]
    Unanswered,
    /// There was no connection in time, for a reason that may pass.
    #[error("{0}")]
    Hindered(String),
    /// A stream of the link broke, and with it the link.
    #[error(
        "stream {number} of {count} of the connection broke: {why}; the other streams were closed with it"
    )]
    Stream {
        /// The number of the stream, from 1.
        number: usize,
        /// The number of streams.
        count: usize,
        /// Why.
        why: String,
    },
    /// There is no memory for a message. The link still works.
    #[error("{0}")]
    NoMemory(String),
    /// The system did not take a message: the message's memory cannot be read, say. The link still
    /// works.
    #[error("{0}")]
    Untaken(String),
    /// The system reported an error.
    #[error("{0}")]
    System(String),
}

impl LinkError {
    /// Whether the error is about a single message, and the link may still work.
    pub fn is_of_message(&self) -> bool {
        matches!(self, LinkError::NoMemory(_) | LinkError::Untaken(_))
    }
}

impl From<std::io::Error> for LinkError {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe | std::io::ErrorKind::ConnectionReset => {
                LinkError::Closed
            }
            std::io::ErrorKind::OutOfMemory => LinkError::NoMemory(error.to_string()),
            _ => LinkError::System(error.to_string()),
        }
    }
}

impl From<rustix::io::Errno> for LinkError {
    fn from(error: rustix::io::Errno) -> Self {
        std::io::Error::from(error).into()
    }
}
