//! The mark of a message that announces a field, and the check of ordinary calls for the mark.

use crate::{Error, Kind, Message, Result};

/// Whether a message announces a field, or answers a receiver's question for a version.
#[inline(always)]
pub(crate) fn announces_field(message: &Message) -> bool {
    message.meta.field
}

/// Fails if a message that an ordinary call would receive on a port announces a field.
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
