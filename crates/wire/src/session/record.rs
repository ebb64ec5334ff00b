//! The records on a connection of a session.

use super::{SessionId, malformed};
use crate::Malformed;

/// Bytes of a record without its body.
const HEADER: usize = 16;

/// Bytes of the body of the record `resume`.
const RESUME_BODY: usize = 24;

/// Bytes of the record `resume`.
pub const RESUME: usize = HEADER + RESUME_BODY;

/// A record without the body of data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Record {
    Resume {
        id: SessionId,
        received: u64,
        acknowledged: u64,
    },
    Data {
        position: u64,
        length: usize,
    },
    Acknowledge(u64),
    End(u64),
    Probe(u64),
    Echo(u64),
    Gone,
}

impl Record {
    /// Adds the bytes of the record, without the body of data, to `out`.
    pub(super) fn encode(self, out: &mut Vec<u8>) {
        let (kind, length, number) = match self {
            Record::Resume { received, .. } => (1, RESUME_BODY, received),
            Record::Data { position, length } => (2, length, position),
            Record::Acknowledge(count) => (3, 0, count),
            Record::End(position) => (4, 0, position),
            Record::Probe(number) => (5, 0, number),
            Record::Echo(number) => (6, 0, number),
            Record::Gone => (7, 0, 0),
        };
        out.extend([kind, 0, 0, 0]);
        out.extend((length as u32).to_le_bytes());
        out.extend(number.to_le_bytes());
        if let Record::Resume {
            id, acknowledged, ..
        } = self
        {
            out.extend(id.0.to_le_bytes());
            out.extend(acknowledged.to_le_bytes());
        }
    }

    /// The bytes of the record that a reader gathers before it knows the record.
    fn gathered(header: &[u8; HEADER]) -> usize {
        match header[0] {
            1 => RESUME,
            _ => HEADER,
        }
    }

    fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
        let length = u32::from_le_bytes(bytes[4..8].try_into().expect("4 bytes")) as usize;
        let number = word(8);
        let expected = match bytes[0] {
            1 => RESUME_BODY,
            2 => length,
            _ => 0,
        };
        if length != expected {
            return Err(malformed(format!(
                "a record of kind {} with {length} bytes",
                bytes[0]
            )));
        }
        Ok(match bytes[0] {
            1 => Record::Resume {
                id: SessionId(u128::from(word(16)) | u128::from(word(24)) << 64),
                received: number,
                acknowledged: word(32),
            },
            2 => Record::Data {
                position: number,
                length,
            },
            3 => Record::Acknowledge(number),
            4 => Record::End(number),
            5 => Record::Probe(number),
            6 => Record::Echo(number),
            7 => Record::Gone,
            kind => return Err(malformed(format!("a record of the unknown kind {kind}"))),
        })
    }
}

/// What a reader has found in the bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step<'a> {
    /// A record; the body of data follows.
    Record(Record),
    /// Bytes of the body of data.
    Body(&'a [u8]),
    /// More bytes have to come.
    Wait,
}

/// Takes records out of the bytes of a connection.
#[derive(Debug, Default)]
pub(super) struct SessionReader {
    /// The beginning of a record that is not complete.
    begun: Vec<u8>,
    /// Bytes of the body of data that have not come.
    missing: usize,
}

impl SessionReader {
    /// Takes the next part out of `bytes`.
    pub(super) fn step<'a>(&mut self, bytes: &mut &'a [u8]) -> Result<Step<'a>, Malformed> {
        if self.missing > 0 {
            let (body, rest) = bytes.split_at(self.missing.min(bytes.len()));
            self.missing -= body.len();
            *bytes = rest;
            return Ok(Step::Body(body));
        }
        self.gather(HEADER, bytes);
        let Some(header) = self.begun.first_chunk() else {
            return Ok(Step::Wait);
        };
        let wanted = Record::gathered(header);
        self.gather(wanted, bytes);
        if self.begun.len() < wanted {
            return Ok(Step::Wait);
        }
        let record = Record::decode(&self.begun)?;
        self.begun.clear();
        if let Record::Data { length, .. } = record {
            self.missing = length;
        }
        Ok(Step::Record(record))
    }

    fn gather(&mut self, wanted: usize, bytes: &mut &[u8]) {
        let length = wanted.saturating_sub(self.begun.len()).min(bytes.len());
        let (taken, rest) = bytes.split_at(length);
        self.begun.extend_from_slice(taken);
        *bytes = rest;
    }
}
