//! What relays say to each other inside of TLS. The form of a message is that of
//! [`titin_wire::circuit`].

use std::io;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use titin_wire::circuit::{self, CircuitRefusal, Destination, RunPermit};
use titin_wire::versions;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// The first message of the relay that has dialled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct PeerGreeting {
    /// The versions that the relay speaks, lowest and highest.
    pub(crate) versions: (u16, u16),
    /// What the connection is for.
    pub(crate) purpose: LinePurpose,
}

impl PeerGreeting {
    pub(crate) fn new(purpose: LinePurpose) -> Self {
        PeerGreeting {
            versions: versions::relay(),
            purpose,
        }
    }
}

/// What a connection between relays is for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LinePurpose {
    /// Control messages, as long as both relays live.
    Control,
    /// A circuit of a run to a listener.
    Circuit {
        /// The number of the run.
        run: u64,
        /// The listener.
        destination: Destination,
    },
    /// The relay that is called has dialled: the relay that has called now greets in its turn.
    Callback {
        /// The number of the call.
        call: u64,
    },
}

/// The answer to a greeting.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PeerAnswer {
    /// Control messages follow, or bytes of the circuit.
    Welcome,
    /// Nothing follows.
    Refused(CircuitRefusal),
}

/// A control message between two relays.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ControlMessage {
    /// All runs that the sender has admitted and the receiver is to admit.
    Runs(Vec<RunPermit>),
    /// Asks the receiver, which the sender cannot dial, to dial for a circuit.
    Call {
        /// The number of the call.
        call: u64,
    },
    /// Asks for a pong with the same number.
    Ping(u64),
    /// The answer to a ping.
    Pong(u64),
}

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
        let invalid = |error| io::Error::new(io::ErrorKind::InvalidData, error);
        if let Some(message) = message.map_err(invalid)? {
            return Ok(message);
        }
        if buffer.len() > most {
            let text = format!("a message of more than {most} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        if stream.read_buf(buffer).await.map_err(without_goodbye)? == 0 {
            let text = "the other end has closed the connection";
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, text));
        }
    }
}

/// TLS ends a connection by a message, which a relay that is killed, or told to end, does not send.
fn without_goodbye(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => io::Error::new(
            error.kind(),
            "the other relay has ended the connection without a goodbye",
        ),
        _ => error,
    }
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
