//! The message that says that a field follows, along the conduit between the instances. Its metadata mark it; what it carries is
//! for people.

use std::sync::LazyLock;

use titin_wire::structure::{self, Value};

/// What a message carries that says that a field follows, or why none does.
pub(super) const TEXT: &str = "a field follows, from rank to rank";

/// What a message has that says that a field follows.
pub(super) static HEADER: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let text: Value<&[u8]> = Value::Text(TEXT.into());
    structure::encode(&text).expect("a short text").to_bytes()
});
