//! The header: the message along the conduit between the instances by which a sender announces a
//! field. The metadata mark the header, and the text in the header is for people.

use std::sync::LazyLock;

use titin_wire::structure::{self, Value};

/// The text in a header and in an answer to a receiver that pulls.
pub(super) const TEXT: &str = "a field follows, from rank to rank";

/// The encoded data of a header.
pub(super) static HEADER: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let text: Value<&[u8]> = Value::Text(TEXT.into());
    structure::encode(&text).expect("a short text").to_bytes()
});
