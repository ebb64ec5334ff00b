//! Messages that arrive in pieces over several streams, in any order, and the order of their
//! conduits.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use titin_wire::ConduitId;
use titin_wire::frame::Head;
use titin_wire::meta::Meta;

use super::received::Received;
use crate::buffer::Filling;
use crate::error::LinkError;
use crate::inbox::IncomingMessage;

/// A message over several streams, as far as arrived.
pub(super) struct StripedMessage {
    announced: Option<(Head, Arc<Meta>)>,
    body: Filling,
    total: u64,
    /// The ranges of bytes not announced by any piece: beginnings and ends.
    unclaimed: BTreeMap<u64, u64>,
    /// The number of missing bytes.
    missing: u64,
}

/// The error for a piece with bytes outside of the message, or with bytes that have come before.
#[derive(Debug, thiserror::Error)]
#[error("{length} bytes at {offset} came twice, or are not of its {total}")]
pub(super) struct WrongPiece {
    offset: u64,
    length: u64,
    /// The length of the message.
    total: u64,
}

impl StripedMessage {
    /// A message, nothing of it arrived.
    ///
    /// # Errors
    /// If there is no memory.
    pub(super) fn new(total: u64) -> Result<Self, LinkError> {
        let unclaimed = BTreeMap::from([(0, total)]);
        Ok(StripedMessage {
            announced: None,
            body: Filling::new(total)?,
            total,
            unclaimed,
            missing: total,
        })
    }

    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// Notes the message's head; false if the head was known before.
    pub(super) fn announce(&mut self, head: Head, meta: Arc<Meta>) -> bool {
        self.announced.replace((head, meta)).is_none()
    }

    /// Notes that a piece brings `length` bytes at `offset`.
    ///
    /// # Errors
    /// If the bytes lie outside of the message or have come before: the message would look complete
    /// too early.
    pub(super) fn claim(&mut self, offset: u64, length: u64) -> Result<(), WrongPiece> {
        let end = offset + length;
        let range = self
            .unclaimed
            .range(..=offset)
            .next_back()
            .map(|(from, to)| (*from, *to));
        let Some((from, to)) = range.filter(|(_, to)| end <= *to) else {
            let total = self.total;
            return Err(WrongPiece {
                offset,
                length,
                total,
            });
        };
        self.unclaimed.remove(&from);
        let remaining = [(from, offset), (end, to)];
        self.unclaimed
            .extend(remaining.into_iter().filter(|(from, to)| from < to));
        Ok(())
    }

    /// The memory for bytes of a piece.
    pub(super) fn room(&mut self, offset: usize, length: usize) -> &mut [u8] {
        self.body.part(offset, length)
    }

    /// Counts arrived bytes; true if none are missing any more.
    pub(super) fn arrived(&mut self, count: usize) -> bool {
        self.missing -= count as u64;
        self.missing == 0
    }

    fn is_complete(&self) -> bool {
        self.missing == 0
    }

    fn finish(self) -> Option<IncomingMessage> {
        let (head, meta) = self.announced?;
        Some(IncomingMessage {
            head,
            meta,
            body: self.body.finish().into(),
        })
    }
}

/// An item in the order of a conduit.
pub(super) enum OrderedItem {
    Message(IncomingMessage),
    End(u64),
    /// The incomplete message of the given number.
    Striped(u64),
}

/// Keeps the items of each conduit in the order of sending.
#[derive(Default)]
pub(super) struct ConduitOrder(HashMap<ConduitId, VecDeque<OrderedItem>>);

impl ConduitOrder {
    /// Hands on an item, or keeps the item behind an incomplete message.
    pub(super) fn pass(&mut self, conduit: ConduitId, item: OrderedItem, out: &mut Vec<Received>) {
        if !self.0.is_empty()
            && let Some(waiting) = self.0.get_mut(&conduit)
        {
            return waiting.push_back(item);
        }
        match item {
            OrderedItem::Message(message) => out.push(Received::Message(message)),
            OrderedItem::End(sequence) => out.push(Received::Ended(conduit, sequence)),
            OrderedItem::Striped(_) => {}
        }
    }

    /// Adds an incomplete message as the next item of its conduit.
    pub(super) fn expect(&mut self, conduit: ConduitId, sequence: u64) {
        self.0
            .entry(conduit)
            .or_default()
            .push_back(OrderedItem::Striped(sequence));
    }

    /// Hands on all items up to the next incomplete message.
    pub(super) fn release(
        &mut self,
        conduit: ConduitId,
        striped: &mut HashMap<(ConduitId, u64), StripedMessage>,
        out: &mut Vec<Received>,
    ) {
        let Some(waiting) = self.0.get_mut(&conduit) else {
            return;
        };
        loop {
            match waiting.pop_front() {
                None => break drop(self.0.remove(&conduit)),
                Some(OrderedItem::Message(message)) => out.push(Received::Message(message)),
                Some(OrderedItem::End(sequence)) => out.push(Received::Ended(conduit, sequence)),
                Some(OrderedItem::Striped(sequence)) => {
                    let key = (conduit, sequence);
                    if !striped.get(&key).is_some_and(StripedMessage::is_complete) {
                        return waiting.push_front(OrderedItem::Striped(sequence));
                    }
                    let message = striped.remove(&key).and_then(StripedMessage::finish);
                    out.extend(message.map(Received::Message));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_comes_once() {
        let mut striped = StripedMessage::new(100).unwrap();
        for (offset, length) in [(40, 20), (0, 10), (90, 10), (10, 30), (60, 15)] {
            striped.claim(offset, length).unwrap();
        }
        for (offset, length) in [
            (0, 1),
            (39, 2),
            (74, 2),
            (75, 16),
            (80, 20),
            (99, 1),
            (100, 1),
            (u64::MAX - 1, 1),
        ] {
            assert!(
                striped.claim(offset, length).is_err(),
                "{length} at {offset}"
            );
        }
        striped.claim(75, 15).unwrap();
        assert!(striped.unclaimed.is_empty());
        assert!(!striped.arrived(99));
        assert!(striped.arrived(1));
        assert!(striped.finish().is_none(), "its head has not come");
    }
}
