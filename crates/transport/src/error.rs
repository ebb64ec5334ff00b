//! The errors of links.

use titin_wire::Malformed;
use titin_wire::handshake::Refusal;

/// Why a link is no more.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Lost {
    /// The other end closed it, or its process ended.
    #[error("the connection was closed by the other end")]
    Closed,
    /// The other end could not be reached: nothing listens there, or not a titin of this run.
    #[error("cannot reach {0}")]
    Unreachable(String),
    /// The other end could not be reached in time. It may be there.
    #[error("cannot reach {0}")]
    Late(String),
    /// The other end is not to be talked to.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// It sent what cannot be understood.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// No connection came about in time.
    #[error("nothing has answered there")]
    Silent,
    /// It did not prove itself in time.
    #[error("it takes connections, but has not answered")]
    Unanswered,
    /// One of its streams broke, which ends it as a whole.
    #[error(
        "stream {number} of {count} of the connection broke: {why}; the other streams were closed with it"
    )]
    Stream {
        /// Which one, from 1.
        number: usize,
        /// Of how many.
        count: usize,
        /// Why.
        why: String,
    },
    /// There is no memory for a message. The link itself is not to blame.
    #[error("{0}")]
    NoMemory(String),
    /// The system did not take a message: its memory cannot be read, say. The link itself is not to blame.
    #[error("{0}")]
    Untaken(String),
    /// The system reported an error.
    #[error("{0}")]
    System(String),
}

impl Lost {
    /// Whether it is about one message, and the link may still be there.
    pub fn is_of_message(&self) -> bool {
        matches!(self, Lost::NoMemory(_) | Lost::Untaken(_))
    }
}

impl From<std::io::Error> for Lost {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe | std::io::ErrorKind::ConnectionReset => Lost::Closed,
            std::io::ErrorKind::OutOfMemory => Lost::NoMemory(error.to_string()),
            _ => Lost::System(error.to_string()),
        }
    }
}

impl From<rustix::io::Errno> for Lost {
    fn from(error: rustix::io::Errno) -> Self {
        std::io::Error::from(error).into()
    }
}
