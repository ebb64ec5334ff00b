//! Messages that arrive in pieces over several streams, in any order, and what has to wait for them.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use titin_wire::ConduitId;
use titin_wire::frame::Head;
use titin_wire::meta::Meta;

use super::Received;
use crate::{Filling, Lost, Message};

/// One of them, as far as it has arrived.
pub(super) struct Striped {
    announced: Option<(Head, Arc<Meta>)>,
    body: Filling,
    total: u64,
    /// Bytes that no piece has begun to bring: where a range of them begins, and where it ends.
    unclaimed: BTreeMap<u64, u64>,
    /// Bytes that have not arrived.
    missing: u64,
}

impl Striped {
    /// One of which nothing has arrived.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub(super) fn new(total: u64) -> Result<Self, Lost> {
        let unclaimed = BTreeMap::from([(0, total)]);
        Ok(Striped {
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

    /// Notes its head; false if it was known before.
    pub(super) fn announce(&mut self, head: Head, meta: Arc<Meta>) -> bool {
        self.announced.replace((head, meta)).is_none()
    }

    /// Notes that a piece brings these bytes.
    ///
    /// # Errors
    /// Text, if they do not belong to it or another piece has brought them: then it would look whole too early.
    pub(super) fn claim(&mut self, offset: u64, length: u64) -> Result<(), String> {
        let end = offset + length;
        let range = self
            .unclaimed
            .range(..=offset)
            .next_back()
            .map(|(from, to)| (*from, *to));
        let Some((from, to)) = range.filter(|(_, to)| end <= *to) else {
            return Err(format!(
                "{length} bytes at {offset} came twice, or are not of its {}",
                self.total
            ));
        };
        self.unclaimed.remove(&from);
        let rests = [(from, offset), (end, to)];
        self.unclaimed
            .extend(rests.into_iter().filter(|(from, to)| from < to));
        Ok(())
    }

    /// Where bytes of a piece belong.
    pub(super) fn place(&mut self, at: usize, length: usize) -> &mut [u8] {
        self.body.part(at, length)
    }

    /// Counts bytes that have been put into their place; true if none are missing any more.
    pub(super) fn arrived(&mut self, count: usize) -> bool {
        self.missing -= count as u64;
        self.missing == 0
    }

    fn is_whole(&self) -> bool {
        self.missing == 0
    }

    fn finish(self) -> Option<Message> {
        let (head, meta) = self.announced?;
        Some(Message {
            head,
            meta,
            body: Arc::new(self.body.finish()),
        })
    }
}

/// What waits for its turn on a conduit.
pub(super) enum Waiting {
    Message(Message),
    End(u64),
    /// The message of this number, which is not whole yet.
    Striped(u64),
}

/// Keeps what comes on each conduit in the order in which it was sent.
#[derive(Default)]
pub(super) struct Order(HashMap<ConduitId, VecDeque<Waiting>>);

impl Order {
    /// Lets something through that has arrived, or keeps it behind what has not.
    pub(super) fn pass(&mut self, conduit: ConduitId, what: Waiting, out: &mut Vec<Received>) {
        if !self.0.is_empty()
            && let Some(waiting) = self.0.get_mut(&conduit)
        {
            return waiting.push_back(what);
        }
        match what {
            Waiting::Message(message) => out.push(Received::Message(message)),
            Waiting::End(sequence) => out.push(Received::Ended(conduit, sequence)),
            Waiting::Striped(_) => {}
        }
    }

    /// The message of this number is the next one on its conduit.
    pub(super) fn expect(&mut self, conduit: ConduitId, sequence: u64) {
        self.0
            .entry(conduit)
            .or_default()
            .push_back(Waiting::Striped(sequence));
    }

    /// Lets through what need not wait any more.
    pub(super) fn release(
        &mut self,
        conduit: ConduitId,
        striped: &mut HashMap<(ConduitId, u64), Striped>,
        out: &mut Vec<Received>,
    ) {
        let Some(waiting) = self.0.get_mut(&conduit) else {
            return;
        };
        loop {
            match waiting.pop_front() {
                None => break drop(self.0.remove(&conduit)),
                Some(Waiting::Message(message)) => out.push(Received::Message(message)),
                Some(Waiting::End(sequence)) => out.push(Received::Ended(conduit, sequence)),
                Some(Waiting::Striped(sequence)) => {
                    let key = (conduit, sequence);
                    if !striped.get(&key).is_some_and(Striped::is_whole) {
                        return waiting.push_front(Waiting::Striped(sequence));
                    }
                    let message = striped.remove(&key).and_then(Striped::finish);
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
        let mut striped = Striped::new(100).unwrap();
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
