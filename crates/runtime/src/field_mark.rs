//! The mark of a message that announces a field, and ordinary calls that meet one.

use crate::{Error, Kind, Message, Result};

/// Whether a message says that a field follows, or is the answer to a receiver that asks for a version.
#[inline(always)]
pub(crate) fn announces_field(message: &Message) -> bool {
    message.meta.field
}

/// Fails if this message, which an ordinary call would receive on a port, says that a field follows.
#[inline(always)]
pub(crate) fn ordinary(port: impl FnOnce() -> String, message: &Message) -> Result<()> {
    if !announces_field(message) {
        return Ok(());
    }
    let text = format!(
        "the sender of what comes to port '{}' sends a field: receive it by a field that is declared on this port, too",
        port()
    );
    Err(Error::new(Kind::TypeMismatch, text))
}
