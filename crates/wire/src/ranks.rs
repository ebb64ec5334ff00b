//! What the ranks of one parallel program tell each other.
//!
//! When the instance is opened they meet by the program's own communicator, through which rank 0 gathers where each
//! is, and gives everybody the list. From then on they use links of titin's: rank `r` has one with its **parent**,
//! rank `(r - 1) / BRANCHES`, so that all hang together as a tree with rank 0 at its root. What rank 0 tells the
//! manager, others tell their parents, in the same messages; what the manager tells rank 0 goes down the tree.
//! Two conduits go with each of these links: one down, by which a rank learns what a call has come to at rank 0, and
//! one up, by which a rank that closes says how often it has sent or received each field, and whose end says that it has closed,
//! and all below it.

use serde::{Deserialize, Serialize};

use crate::ConduitId;
use crate::connection::Connection;
use crate::control::FieldEnd;
pub use crate::control::RankProcess;
use crate::settings::Overlay;

/// How many ranks have the same parent.
pub const BRANCHES: u32 = 32;

/// What rank 0 tells the others when they meet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Invitation {
    /// The instance that they are together.
    pub instance: String,
    /// The run.
    pub connection: Connection,
}

/// What was to be done, or why it was not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Outcome<T> {
    /// It was done.
    Done(T),
    /// It failed.
    Failed {
        /// Number of the kind of error.
        kind: i32,
        /// The reason.
        text: String,
    },
}

/// What a call that all ranks make together has come to at rank 0.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// Which call it was, as users write it.
    pub call: String,
    /// What it has come to.
    pub outcome: Outcome<CollectiveResult>,
    /// How often rank 0 had sent or received each field until then. Others that are in this call have done so as often.
    #[serde(default, skip_serializing_if = "FieldSteps::is_empty")]
    pub steps: FieldSteps,
}

/// What all ranks are to know after a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum CollectiveResult {
    /// Rank 0 is in the call and has waited for a while: what it comes to will follow.
    Waits,
    /// Nothing was there, or is to be done any more.
    Nothing,
    /// The next use begins.
    Use {
        /// The settings overlay in force.
        overlay: Overlay,
        /// Within which steps of others it lies.
        steps: Vec<u32>,
        /// The ends of F_INIT ports that have a message: number of the port, slot, and how users write it.
        f_init: Vec<(u32, u32, String)>,
    },
    /// A field, as rank 0 declares it.
    Field(FieldEnd),
    /// A message, whose data come behind this.
    Message {
        /// Number of the port.
        port: u32,
        /// The slot.
        slot: u32,
        /// The number of slots, where the sender counts them.
        slots: Option<u32>,
        /// Its number on its conduit.
        number: u64,
        /// The overlay that came with it.
        settings: Option<Overlay>,
        /// Within which steps of its sender it was sent.
        steps: Vec<u32>,
        /// When it counts as received, in simulated time.
        time: f64,
    },
}

/// How often a rank has sent or received each field of its instance, in the order of their declaration.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FieldSteps(pub Vec<u64>);

impl FieldSteps {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// What a rank tells another one of the same or another instance, so that both find out who sends what of a field to whom. It comes
/// by a link of its own, that only its dialler uses.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Mail {
    /// For which instance it is.
    pub instance: String,
    /// The conduit that the field goes by.
    pub conduit: ConduitId,
    /// Whether it is from a rank of the sender.
    pub of_sender: bool,
    /// From which rank.
    pub rank: u32,
    /// Which letter it is.
    pub kind: u8,
    /// What is in it.
    #[serde(with = "serde_bytes")]
    pub body: Vec<u8>,
}

/// The rank above one, but for rank 0.
pub fn parent(rank: u32) -> Option<u32> {
    Some(rank.checked_sub(1)? / BRANCHES)
}

/// The ranks right below one, of so many.
pub fn children(rank: u32, ranks: u32) -> std::ops::Range<u32> {
    let begin = u64::from(rank) * u64::from(BRANCHES) + 1;
    let within = |rank: u64| rank.min(u64::from(ranks)) as u32;
    within(begin)..within(begin + u64::from(BRANCHES))
}

/// The numbers of the conduits between a rank and its parent, down and up. `first` is that of rank 0, which has none.
pub fn conduits(first: ConduitId, rank: u32) -> (ConduitId, ConduitId) {
    (
        ConduitId(first.0 + 2 * rank),
        ConduitId(first.0 + 2 * rank + 1),
    )
}

/// How many numbers the conduits between so many ranks take.
pub fn conduit_count(ranks: u32) -> u32 {
    2 * ranks
}

/// The number of the conduit by which a field goes from a rank of one instance to a rank of another, which has so many ranks.
pub fn pair(first: ConduitId, sender: u32, receiver: u32, receivers: u32) -> ConduitId {
    ConduitId(first.0 + sender * receivers + receiver)
}

/// How many numbers the conduits between so many ranks and so many take; `None` if they cannot be counted.
pub fn pair_count(senders: u32, receivers: u32) -> Option<u32> {
    senders.checked_mul(receivers)
}

#[cfg(test)]
mod tests {
    use super::*;

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
