//! Reads and writes messages, such as those between relays ([`titin_wire::line`]) inside of TLS. The form
//! of a message is that of [`titin_wire::circuit`].

use std::io;

use serde::Serialize;
use serde::de::DeserializeOwned;
use titin_wire::{Malformed, circuit};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use crate::log_limit::bounded;

/// The most bytes of a short message.
const SHORT: usize = 4096;

/// As [`read`], for a relay that has not said what it wants: it gets little memory.
///
/// # Errors
/// As [`read`], and if the message is long.
pub(crate) async fn read_short<T: DeserializeOwned>(
    stream: &mut (impl AsyncRead + Unpin),
    buffer: &mut Vec<u8>,
) -> io::Result<T> {
    read_at_most(stream, buffer, SHORT).await
}

/// Reads a message. `buffer` has the bytes that were read and not used.
///
/// # Errors
/// If the connection ends, or the bytes are no message.
pub(crate) async fn read<T: DeserializeOwned>(
    stream: &mut (impl AsyncRead + Unpin),
    buffer: &mut Vec<u8>,
) -> io::Result<T> {
    read_at_most(stream, buffer, usize::MAX).await
}

async fn read_at_most<T: DeserializeOwned>(
    stream: &mut (impl AsyncRead + Unpin),
    buffer: &mut Vec<u8>,
    most: usize,
) -> io::Result<T> {
    loop {
        let message = circuit::decode(buffer);
        // The error may quote a text of the other end.
        let invalid = |error: Malformed| {
            io::Error::new(io::ErrorKind::InvalidData, bounded(&error.to_string()))
        };
        if let Some(message) = message.map_err(invalid)? {
            return Ok(message);
        }
        if buffer.len() > most {
            let text = format!("a message of more than {most} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        if stream.read_buf(buffer).await.map_err(unclosed)? == 0 {
            let text = "the other end has closed the connection";
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, text));
        }
    }
}

/// TLS closes a connection by a message, which a relay that is killed, or told to end, does not send.
fn unclosed(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => io::Error::new(
            error.kind(),
            "the other relay has ended without closing the connection: it was killed, or told to end",
        ),
        _ => error,
    }
}

/// Keeps the first of the items that fit into a message together. Returns how many are left out.
pub(crate) fn keep_fitting<T: Serialize>(items: &mut Vec<T>) -> usize {
    let all = items.len();
    // Around the list there are less than so many bytes.
    let mut room = circuit::LONGEST - 64;
    items.retain(|item| {
        let left = room.checked_sub(circuit::encode(item).len());
        room = left.unwrap_or(room);
        left.is_some()
    });
    all - items.len()
}

/// Writes a message.
///
/// # Errors
/// If the connection ends.
pub(crate) async fn write(
    stream: &mut (impl AsyncWrite + Unpin),
    message: &impl Serialize,
) -> io::Result<()> {
    stream.write_all(&circuit::encode(message)).await?;
    stream.flush().await
}
