//! Messages between the ranks of a parallel program.
//!
//! While the instance is opened, rank 0 gathers the addresses of all ranks by the program's own
//! communicator, and gives every rank the list. From then on the ranks use links of titin: rank `r`
//! has a link with its **parent**, rank `(r - 1) / BRANCHES`, so all ranks form a tree with rank 0
//! at the root. A rank sends its parent the messages that rank 0 sends the manager; messages of the
//! manager go from rank 0 down the tree.
//!
//! Two conduits belong to each link. By the conduit down a rank gets the result of a call at rank
//! 0. By the conduit up a rank that closes reports how often each field was sent or received; the
//! end of this conduit says that the rank and all ranks below have closed.

use serde::{Deserialize, Serialize};

use crate::ConduitId;
use crate::connection::Connection;
use crate::control::FieldEnd;
pub use crate::control::RankProcess;
use crate::settings::Overlay;

/// How many ranks have the same parent.
pub const BRANCHES: u32 = 32;

/// The message of rank 0 to the other ranks while the instance is opened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Invitation {
    /// The instance that the ranks belong to.
    pub instance: String,
    /// The way to the run.
    pub connection: Connection,
}

/// The result of an action, or the reason why the action failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Outcome<T> {
    /// The action succeeded.
    Done(T),
    /// The action failed.
    Failed {
        /// Number of the kind of error.
        kind: i32,
        /// The reason.
        text: String,
    },
}

/// The result, at rank 0, of a call that all ranks make together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CollectiveReport {
    /// The call, as users write it.
    pub call: String,
    /// The result.
    pub outcome: Outcome<CollectiveResult>,
    /// How often rank 0 had sent or received each field before the call: from older releases, which
    /// tell the counts of all fields with each call. Every rank in this call has the same counts.
    #[serde(default, skip_serializing_if = "FieldSteps::is_empty")]
    pub steps: FieldSteps,
    /// The number and the count of each field that rank 0 has sent or received since the last
    /// report.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<(u32, u64)>,
    /// The data of a message that announces a field. The report has the mark and the timestamps of
    /// that message. Other data follow in a message of their own.
    #[serde(default, with = "serde_bytes", skip_serializing_if = "Option::is_none")]
    pub data: Option<Vec<u8>>,
}

/// The result of a call, for all ranks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum CollectiveResult {
    /// Rank 0 has waited in the call for a while; the result will follow.
    Waits,
    /// There was nothing, or nothing more is to be done.
    Nothing,
    /// The next use begins.
    Use {
        /// The settings overlay in force.
        overlay: Overlay,
        /// The steps of other instances in which the use lies.
        steps: Vec<u32>,
        /// The ends of F_INIT ports that have a message: the number of the port, the slot, and the
        /// text for users.
        f_init: Vec<(u32, u32, String)>,
    },
    /// A field, as rank 0 declares it.
    Field(FieldEnd),
    /// A message; the data are in the report, or follow.
    Message {
        /// Number of the port.
        port: u32,
        /// The slot.
        slot: u32,
        /// The number of slots, if the sender sets that number.
        slots: Option<u32>,
        /// The number of the message on the conduit.
        number: u64,
        /// The overlay of the message.
        settings: Option<Overlay>,
        /// The steps of the sender in which the message was sent.
        steps: Vec<u32>,
        /// The simulated time of the receive.
        time: f64,
    },
}

/// What rank 0 tells in place of a [`CollectiveReport`] with data if nothing but these numbers has
/// changed since the last announcement of the port. The receiver has the call, the slot and the data
/// from that announcement. The timestamps, and the mark that a field follows, are in the header and the
/// metadata of the message.
///
/// | bytes | content, little-endian |
/// | --- | --- |
/// | 0 | 0xc1 |
/// | 1 to 4 | port |
/// | 5 to 12 | number |
/// | 13 to 20 | time, a double |
/// | 12 for each changed count | the number of the field in 4 bytes, the count in 8 |
#[derive(Debug, Clone, PartialEq)]
pub struct RepeatedAnnouncement {
    /// Number of the port.
    pub port: u32,
    /// The number of the message on the conduit.
    pub number: u64,
    /// The simulated time of the receive.
    pub time: f64,
    /// The number and the count of each field that rank 0 has sent or received since the last report.
    pub changed: Vec<(u32, u64)>,
}

/// The first byte of a repeated announcement. MessagePack never uses it, so no report begins with it.
const REPEATED: u8 = 0xc1;

impl RepeatedAnnouncement {
    /// Appends the bytes of the announcement.
    pub fn encode_into(&self, bytes: &mut Vec<u8>) {
        bytes.push(REPEATED);
        bytes.extend(self.port.to_le_bytes());
        bytes.extend(self.number.to_le_bytes());
        bytes.extend(self.time.to_le_bytes());
        for (field, steps) in &self.changed {
            bytes.extend(field.to_le_bytes());
            bytes.extend(steps.to_le_bytes());
        }
    }

    /// Reads the announcement; `None` if the bytes are something else.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (&REPEATED, rest) = bytes.split_first()? else {
            return None;
        };
        let (port, rest) = rest.split_first_chunk()?;
        let (number, rest) = rest.split_first_chunk()?;
        let (time, rest) = rest.split_first_chunk()?;
        let (pairs, []) = rest.as_chunks::<12>() else {
            return None;
        };
        let pair = |pair: &[u8; 12]| {
            let (field, steps) = pair.split_first_chunk()?;
            let steps = steps.first_chunk()?;
            Some((u32::from_le_bytes(*field), u64::from_le_bytes(*steps)))
        };
        Some(RepeatedAnnouncement {
            port: u32::from_le_bytes(*port),
            number: u64::from_le_bytes(*number),
            time: f64::from_le_bytes(*time),
            changed: pairs.iter().filter_map(pair).collect(),
        })
    }
}

/// How often a rank has sent or received each field of the instance, in the order of declaration.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FieldSteps(pub Vec<u64>);

impl FieldSteps {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A message between ranks of the same or of two instances, from which both find the schedule of a
/// field. The message comes by a link of its own, on which only the dialler sends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RankMessage {
    /// The receiving instance.
    pub instance: String,
    /// The conduit of the field.
    pub conduit: ConduitId,
    /// Whether the message is from a rank of the field's sender.
    pub of_sender: bool,
    /// The rank that sends the message.
    pub rank: u32,
    /// The number of the kind of message.
    pub kind: u8,
    /// The content.
    #[serde(with = "serde_bytes")]
    pub body: Vec<u8>,
}

/// The parent of a rank; rank 0 has none.
pub fn parent(rank: u32) -> Option<u32> {
    Some(rank.checked_sub(1)? / BRANCHES)
}

/// The children of a rank, in a tree of `ranks` ranks.
pub fn children(rank: u32, ranks: u32) -> std::ops::Range<u32> {
    let begin = u64::from(rank) * u64::from(BRANCHES) + 1;
    let within = |rank: u64| rank.min(u64::from(ranks)) as u32;
    within(begin)..within(begin + u64::from(BRANCHES))
}

/// The numbers of the conduits between a rank and its parent, down and up. The numbers begin with
/// `first`, as if rank 0 had a parent.
pub fn conduits(first: ConduitId, rank: u32) -> (ConduitId, ConduitId) {
    (
        ConduitId(first.0 + 2 * rank),
        ConduitId(first.0 + 2 * rank + 1),
    )
}

/// How many numbers the conduits between `ranks` ranks take.
pub fn conduit_count(ranks: u32) -> u32 {
    2 * ranks
}

/// The number of the conduit that carries a field from a rank of the sender to a rank of the
/// receiver, which has `receivers` ranks.
pub fn pair(first: ConduitId, sender: u32, receiver: u32, receivers: u32) -> ConduitId {
    ConduitId(first.0 + sender * receivers + receiver)
}

/// How many numbers the conduits between the ranks of a sender and a receiver take; `None` beyond
/// 32 bits.
pub fn pair_count(senders: u32, receivers: u32) -> Option<u32> {
    senders.checked_mul(receivers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_announcement_is_read_as_written_and_is_no_report() {
        for changed in [vec![], vec![(7, 1)], vec![(0, u64::MAX), (u32::MAX, 300)]] {
            let (port, number, time) = (258, 1 << 40, -0.5);
            let announcement = RepeatedAnnouncement {
                port,
                number,
                time,
                changed,
            };
            let mut bytes = Vec::new();
            announcement.encode_into(&mut bytes);
            assert_eq!(bytes[..6], [0xc1, 2, 1, 0, 0, 0]);
            assert_eq!(RepeatedAnnouncement::decode(&bytes), Some(announcement));
            assert!(crate::control::decode::<CollectiveReport>(&bytes).is_err());
            for end in 0..bytes.len() {
                let whole = end >= 21 && (end - 21).is_multiple_of(12);
                assert_eq!(
                    RepeatedAnnouncement::decode(&bytes[..end]).is_some(),
                    whole,
                    "{end}"
                );
            }
            bytes[0] = 0x84;
            assert_eq!(RepeatedAnnouncement::decode(&bytes), None);
        }
    }

    #[test]
    fn ranks_hang_together_as_a_tree() {
        for ranks in [1, 2, 33, 34, 1000, 5000] {
            let mut known = vec![0; ranks as usize];
            for rank in 0..ranks {
                for child in children(rank, ranks) {
                    assert_eq!(parent(child), Some(rank));
                    known[child as usize] += 1;
                }
            }
            assert_eq!(parent(0), None);
            assert!(known[1..].iter().all(|times| *times == 1), "{ranks}");
        }
        assert_eq!(children(u32::MAX, u32::MAX), u32::MAX..u32::MAX);
    }
}
