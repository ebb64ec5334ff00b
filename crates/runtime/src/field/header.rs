//! The message that says that a field follows, along the conduit between the instances. Its metadata mark it; what it carries is
//! for people.

use std::sync::LazyLock;

use titin_wire::structure::{self, Value};

use crate::{Error, Kind, Message, Result};

/// What a message carries that says that a field follows, or why none does.
pub(super) const TEXT: &str = "a field follows, from rank to rank";

/// What a message has that says that a field follows.
pub(super) static HEADER: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let text: Value<&[u8]> = Value::Text(TEXT.into());
    structure::encode(&text).expect("a short text").to_bytes()
});

/// Whether a message says that a field follows, or is the answer to who asks for one.
#[inline(always)]
pub(super) fn announces_field(message: &Message) -> bool {
    message.meta.field
}

/// Fails if this message, which an ordinary call would receive on that port, says that a field follows.
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
