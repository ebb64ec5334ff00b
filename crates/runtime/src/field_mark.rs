//! The header: the message along the conduit between the instances by which a sender announces a
//! field. The metadata mark the header, and the text in the header is for people. Ordinary calls
//! check messages for the mark.

use std::sync::{Arc, LazyLock};

use titin_wire::Malformed;
use titin_wire::structure::{self, Value};

use crate::{Error, Kind, Message, Result};

/// The text in a header and in an answer to a receiver that pulls.
pub(crate) const HEADER_TEXT: &str = "a field follows, from rank to rank";

/// The encoded data of a header.
pub(crate) static HEADER: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let text: Value<&[u8]> = Value::Text(HEADER_TEXT.into());
    structure::encode(&text).expect("a short text").to_bytes()
});

/// Whether a message is a header of a field or an answer to a receiver that pulls.
#[inline(always)]
pub(crate) fn announces_field(message: &Message) -> bool {
    message.meta.field
}

/// Reads the structure in a message, but for a header: no call looks at the text of a header.
#[inline(always)]
pub(crate) fn read_structure(message: Message) -> std::result::Result<Message, Malformed> {
    match announces_field(&message) && message.bytes() == &**HEADER {
        true => Ok(message),
        false => message.read(),
    }
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
