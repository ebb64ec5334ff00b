//! Errors of calls, sorted by what the caller can do about an error.

use std::fmt;

/// Kinds of error. The numbers are the same in every language; `docs/errors.md` has the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum Kind {
    /// The call itself is wrong: an unknown port, a slot out of range, an array that cannot be
    /// sent.
    Usage = 1,
    /// The call is not in its place in the submodel execution loop.
    CallOrder = 2,
    /// A setting is missing, or is not of the requested type or unit.
    Setting = 3,
    /// The data are not of the requested type or shape.
    TypeMismatch = 4,
    /// The time given to the call is over.
    Timeout = 5,
    /// No more will come: the sender of the port has ended, or the description couples no later
    /// step of a pulled field.
    PortClosed = 6,
    /// Another instance has failed, or cannot be reached.
    PeerLost = 7,
    /// Instances wait for each other in a cycle.
    Deadlock = 8,
    /// The run cannot be joined, the manager of the run is gone, or a link brings bytes that cannot
    /// be understood.
    Connection = 9,
    /// There is no memory for a message.
    NoMemory = 10,
    /// This process is a fork of the process to which the instance belongs.
    Forked = 11,
    /// An error inside titin.
    Internal = 12,
    /// A signal arrived and the host program wants to deal with the signal.
    Interrupted = 13,
    /// A filter of the user's has failed.
    Filter = 14,
    /// The instance has failed before, or is closed.
    Closed = 15,
    /// No error: a call of a non-blocking instance cannot go on yet, and is to be made again.
    Pending = 16,
    /// The sender of a field does not keep the requested version.
    Evicted = 17,
    /// A message of a path has not come over: the receiver has dropped it, or the sender has given it up.
    MessageLost = 18,
    /// A member of an ensemble has failed, and the run goes on without it.
    MemberFailed = 19,
}

/// An error: the kind, the failure, the reason, and the remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// The kind says what the caller can do.
    pub kind: Kind,
    /// The whole text, for people.
    pub text: String,
    /// The failed member of an ensemble, for [`Kind::MemberFailed`].
    pub member: Option<Box<FailedMember>>,
}

/// A member of an ensemble that has failed, as one of its peers sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedMember {
    /// The name of the instance.
    pub name: String,
    /// The slot of the port to which the member is connected, if the port has slots.
    pub slot: Option<u32>,
}

/// The result of a call.
pub type Result<T> = std::result::Result<T, Error>;

impl Kind {
    /// The kind with the given number; an internal error if there is none.
    pub(crate) fn numbered(number: i32) -> Self {
        use Kind::*;
        let kinds = [
            Usage,
            CallOrder,
            Setting,
            TypeMismatch,
            Timeout,
            PortClosed,
            PeerLost,
            Deadlock,
            Connection,
            NoMemory,
            Forked,
            Internal,
            Interrupted,
            Filter,
            Closed,
            Pending,
            Evicted,
            MessageLost,
            MemberFailed,
        ];
        kinds
            .into_iter()
            .find(|kind| *kind as i32 == number)
            .unwrap_or(Internal)
    }
}

impl Error {
    /// An error of a kind.
    pub fn new(kind: Kind, text: impl Into<String>) -> Self {
        Error {
            kind,
            text: text.into(),
            member: None,
        }
    }

    /// The outcome of a call of a non-blocking instance that cannot go on yet.
    pub fn pending() -> Self {
        Error {
            kind: Kind::Pending,
            text: String::new(),
            member: None,
        }
    }

    /// Whether the call is to be made again, without an error.
    pub fn is_pending(&self) -> bool {
        self.kind == Kind::Pending
    }

    /// Whether the call can be made again, and then goes on.
    pub(crate) fn is_unfinished(&self) -> bool {
        matches!(self.kind, Kind::Pending | Kind::Interrupted)
    }

    /// Whether the error is the consequence of a failure elsewhere.
    pub fn is_echo(&self) -> bool {
        matches!(self.kind, Kind::PeerLost | Kind::Deadlock)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Error {}
