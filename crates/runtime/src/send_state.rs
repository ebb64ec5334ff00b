//! A send on the way along the conduits of a port: the message, and how far the send has come.

use std::sync::Arc;

use titin_transport::{Buffer, SharedBuffer};
use titin_wire::ConduitId;
use titin_wire::meta::Meta;
use titin_wire::settings::Overlay;

use crate::filter::no_memory;
use crate::iteration::Iteration;
use crate::{Error, Payload, Result};

/// The timestamp of a message, and the next timestamp.
pub(crate) type Timestamps = (f64, Option<f64>);

/// A message for every conduit of a slot, and how far the send has come.
pub(crate) struct SendState {
    pub(crate) slot: u32,
    pub(crate) timestamp: f64,
    pub(crate) next_timestamp: Option<f64>,
    pub(crate) iteration: Iteration,
    /// The overlay of the message, and the number of the overlay.
    pub(crate) overlay: Option<(u32, Arc<Overlay>)>,
    /// The payload, shared by filters and several receivers.
    pub(crate) copy: Option<SharedBuffer>,
    /// The payload after compression, shared by several receivers.
    pub(crate) compressed: Option<SharedBuffer>,
    /// Whether it is settled that the message goes as it is by the next conduit, although the conduit
    /// may compress. Holds while the conduit has no room.
    pub(crate) goes_plain: bool,
    /// The conduits that do not get the message.
    pub(crate) left_out: Option<Vec<ConduitId>>,
    /// How many of the conduits have had the message.
    pub(crate) done: usize,
    /// The message for the next conduit after the filters before the wire and compression, if the
    /// next conduit had no room.
    pub(crate) filtered: Option<Box<(SharedBuffer, Meta, Timestamps)>>,
    /// The link of the next conduit is gone, and the reason is not known yet.
    pub(crate) lost: bool,
    /// The error about the first receiver that is a failed member of an ensemble. The other receivers
    /// get the message before the call fails.
    pub(crate) member_failure: Option<Box<Error>>,
    /// The chunk of a field's piece in the message, if there is such a chunk.
    pub(crate) chunk: Option<PieceChunk>,
}

/// A chunk of the bytes from one rank to another in one exchange of a field.
#[derive(Clone, Copy)]
pub(crate) struct PieceChunk {
    /// The number of the exchange, counted from 0.
    pub(crate) exchange: u32,
    /// The bytes of all chunks. The first chunk claims room for all chunks, so that no chunk waits
    /// behind the first.
    pub(crate) room: Option<u64>,
}

impl SendState {
    /// A message with nothing but content in the metadata.
    #[inline(always)]
    pub(crate) fn of(payload: &Payload<'_>, (timestamp, next_timestamp): Timestamps) -> Self {
        SendState {
            slot: 0,
            timestamp,
            next_timestamp,
            iteration: Iteration::default(),
            overlay: None,
            copy: payload.lent.clone(),
            compressed: None,
            goes_plain: false,
            left_out: None,
            done: 0,
            filtered: None,
            lost: false,
            member_failure: None,
            chunk: None,
        }
    }

    /// Goes on to the next conduit.
    #[inline(always)]
    pub(crate) fn pass_on(&mut self) {
        self.done += 1;
        self.goes_plain = false;
    }

    /// Goes on to the next conduit, since the receiver has failed.
    #[cold]
    pub(crate) fn pass_over(&mut self, failure: Error) {
        self.member_failure.get_or_insert_with(|| failure.into());
        (self.filtered, self.lost) = (None, false);
        self.pass_on();
    }

    /// A copy of the payload, which the message keeps for further receivers.
    pub(crate) fn copy_of(&mut self, payload: &Payload<'_>) -> Result<SharedBuffer> {
        if let Some(copy) = &self.copy {
            return Ok(copy.clone());
        }
        let copy = SharedBuffer::from(Buffer::gather(&payload.parts).map_err(no_memory)?);
        Ok(self.copy.insert(copy).clone())
    }

    pub(crate) fn chunk(self, chunk: PieceChunk) -> Self {
        SendState {
            chunk: Some(chunk),
            ..self
        }
    }
}
