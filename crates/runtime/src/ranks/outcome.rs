//! Results of calls, in the form for messages between ranks.

use titin_wire::ranks::Outcome;

use crate::{Error, Kind, Result};

/// A result in the form for a message.
pub(super) fn outcome<T>(result: Result<T>) -> Outcome<T> {
    match result {
        Ok(done) => Outcome::Done(done),
        Err(Error { kind, text, .. }) => Outcome::Failed {
            kind: kind as i32,
            text,
        },
    }
}

/// The reverse of [`outcome`].
pub(super) fn result<T>(outcome: Outcome<T>) -> Result<T> {
    match outcome {
        Outcome::Done(done) => Ok(done),
        Outcome::Failed { kind, text } => Err(Error::new(Kind::numbered(kind), text)),
    }
}
