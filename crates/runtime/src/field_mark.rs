//! The mark of a message that announces a field, and the check of ordinary calls for the mark.

use std::sync::Arc;

use crate::{Error, Kind, Message, Result};

/// Whether a message is a header of a field or an answer to a receiver that pulls.
#[inline(always)]
pub(crate) fn announces_field(message: &Message) -> bool {
    message.meta.field
}

/// Fails if an ordinary call on a port meets a message that announces a field.
#[inline(always)]
pub(crate) fn ordinary(port: impl FnOnce() -> Arc<str>, message: &Message) -> Result<()> {
    if !announces_field(message) {
        return Ok(());
    }
    let text = format!(
        "the sender of what comes to port '{}' sends a field: receive it by a field that is declared on this port, too",
        port()
    );
    Err(Error::new(Kind::TypeMismatch, text))
}
