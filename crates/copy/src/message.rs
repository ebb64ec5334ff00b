//! What the two ends of a copy say to each other. A message is the length of its head (4 bytes, little-endian), the head in
//! MessagePack, and the bytes of the pieces that the head tells of.

use std::io::IoSlice;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use titin_path::Path;

use crate::entry::Entry;
use crate::error::{Result, malformed};
use crate::report::CopyReport;

/// The most bytes of payload that a sender puts into a message. A message with its head is one part of a path, which goes
/// without a copy.
pub(crate) const MOST_PAYLOAD: usize = (4 << 20) - MOST_HEAD;

/// The most bytes of a head that has a payload behind it.
const MOST_HEAD: usize = 256 << 10;

/// The most bytes of a message.
const MOST_BYTES: usize = 8 << 20;

/// A message of the sender.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum FromSender {
    /// The next files. They are numbered from 0, over all batches.
    Entries(Vec<Entry>),
    /// Bytes of files, in order.
    Pieces(Vec<Piece>),
    /// Something has changed at these paths, and nothing is there.
    Gone(Vec<GonePath>),
    /// Nothing follows in this round.
    Over(RoundEnd),
}

/// The end of a round.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct RoundEnd {
    /// What could not be read.
    pub(crate) report: CopyReport,
    /// Whether nothing was left out because it could not be read.
    pub(crate) is_complete: bool,
}

/// A path below the destination.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct GonePath(#[serde(with = "serde_bytes")] pub(crate) Vec<u8>);

/// Bytes of a file. The bytes between two pieces are zeros, which take no room.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Piece {
    pub(crate) file: u64,
    /// How many bytes the receiver keeps of what it has: the bytes of all pieces of the file come behind these.
    pub(crate) kept: u64,
    pub(crate) offset: u64,
    pub(crate) length: u64,
    pub(crate) end: Option<FileEnd>,
}

/// How a file ends.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum FileEnd {
    /// The file has this BLAKE3 hash.
    Whole([u8; 32]),
    /// The rest cannot be read. The report of the sender says why.
    Broken,
}

/// A message of the receiver.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum FromReceiver {
    /// The answer to the next batch of entries.
    Wanted(Vec<Wanted>),
    /// The answer to [`FromSender::Over`].
    Answer(RoundAnswer),
}

/// What the receiver says of a round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RoundAnswer {
    pub(crate) report: CopyReport,
    /// Whether the receiver lacks files that were not told in this round.
    pub(crate) lacks_more: bool,
}

/// A file that the receiver wants.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Wanted {
    pub(crate) file: u64,
    /// What the receiver has of the file: so many bytes, which have this hash.
    pub(crate) has: Option<(u64, [u8; 32])>,
}

/// Sends a message.
///
/// # Errors
/// Those of the path.
pub(crate) fn send(path: &Path, head: &impl Serialize, payload: &[u8]) -> Result<()> {
    let head = rmp_serde::to_vec(head).expect("plain data");
    let length = (head.len() as u32).to_le_bytes();
    let parts = [&length[..], &head, payload].map(IoSlice::new);
    Ok(path.send_parts(&parts, None, None)?)
}

/// The memory for messages that come in.
pub(crate) struct MessageMemory(Vec<u8>);

impl MessageMemory {
    pub(crate) fn new() -> Self {
        MessageMemory(vec![0; MOST_BYTES])
    }

    /// Receives the next message: its head, and its payload.
    ///
    /// # Errors
    /// Those of the path, and [`CopyError::Malformed`](crate::CopyError::Malformed).
    pub(crate) fn receive<T: DeserializeOwned>(&mut self, path: &Path) -> Result<(T, &[u8])> {
        let received = path.receive_into(&mut self.0, None)?;
        let message = &self.0[..received.length as usize];
        let (length, rest) = message
            .split_first_chunk()
            .ok_or_else(|| malformed("a message without a head"))?;
        let length = u32::from_le_bytes(*length) as usize;
        let (head, payload) = rest
            .split_at_checked(length)
            .ok_or_else(|| malformed("a head that is longer than its message"))?;
        Ok((rmp_serde::from_slice(head).map_err(malformed)?, payload))
    }
}
