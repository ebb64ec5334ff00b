//! The last message of a ring with its payload in an entry, for the next message.
//!
//! Most messages differ from the message before in number, times and payload alone. Such a message
//! needs no look at anything but the words of its header.

use std::sync::Arc;

use titin_wire::ConduitId;
use titin_wire::frame::{Header, RepeatedHeader};
use titin_wire::meta::Meta;

/// The last message, if the next message may be like the last.
#[derive(Default)]
pub(super) struct LastMessage {
    known: Option<KnownMessage>,
    /// The conduit, and the length of the payload, of the last message that was noted.
    noted: Option<(ConduitId, u64)>,
}

/// A message with metadata as before.
pub(super) struct KnownMessage {
    pub(super) header: RepeatedHeader,
    pub(super) meta: Arc<Meta>,
    /// Bytes of payload.
    pub(super) length: u64,
}

impl LastMessage {
    /// The message, if the next message of its conduit may refer to the same metadata.
    #[inline(always)]
    pub(super) fn known(&self) -> Option<&KnownMessage> {
        self.known.as_ref()
    }

    /// Notes a message with its payload in an entry and metadata as before. Keeps the message only
    /// if the message noted before had the same conduit and length. Where messages of several
    /// conduits or lengths alternate, no message is like the last, and a kept message would be of
    /// no use.
    pub(super) fn note(
        &mut self,
        header: &Header,
        conduit: ConduitId,
        meta: &Arc<Meta>,
        length: u64,
    ) {
        let noted = Some((conduit, length));
        let in_row = std::mem::replace(&mut self.noted, noted) == noted;
        if in_row && meta.supersedes.is_none() {
            self.known = Some(KnownMessage {
                header: RepeatedHeader::new(header),
                meta: meta.clone(),
                length,
            });
        }
    }

    /// Called when a conduit has other metadata than before.
    pub(super) fn forget(&mut self) {
        self.known = None;
    }
}
