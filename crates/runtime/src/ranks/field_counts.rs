//! How often a rank has sent or received each field: all ranks send and receive as often as rank 0.

use std::fmt::Display;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock};

use titin_array::Role;
use titin_wire::ranks::FieldSteps;

use crate::{Error, Kind};

/// How often this rank has sent or received a field.
pub(crate) struct FieldCount {
    /// The name of the port.
    name: Arc<str>,
    role: Role,
    /// Includes an unfinished send, and the steps without a coupling in the description.
    steps: AtomicU64,
}

impl FieldCount {
    pub(crate) fn new(name: Arc<str>, role: Role) -> Self {
        FieldCount {
            name,
            role,
            steps: AtomicU64::new(0),
        }
    }

    pub(crate) fn steps(&self) -> u64 {
        self.steps.load(Ordering::Relaxed)
    }

    pub(crate) fn add_one(&self) {
        self.steps.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn set(&self, steps: u64) {
        self.steps.store(steps, Ordering::Relaxed);
    }

    /// The error of a rank that has sent or received the field more often than another rank, or
    /// less.
    pub(crate) fn unequal(
        &self,
        (rank, made): (u32, u64),
        (other, theirs): (u32, impl Display),
    ) -> Error {
        let (did, todo) = match self.role {
            Role::Sender => ("sent", "send, and withdraw,"),
            Role::Receiver => ("received", "receive"),
        };
        let text = format!(
            "field on port '{}': rank {rank} has {did} it {made} times, and rank {other} {theirs} times: all ranks {todo} as often as \
             rank 0",
            self.name
        );
        Error::new(Kind::CallOrder, text)
    }
}

/// The counts of all fields, in the order of the declarations.
#[derive(Default)]
pub(crate) struct FieldCounts(RwLock<Vec<Arc<FieldCount>>>);

impl FieldCounts {
    pub(crate) fn push(&self, count: Arc<FieldCount>) {
        self.0.write().expect("never poisoned").push(count);
    }

    /// As ranks tell each other.
    pub(crate) fn to_tell(&self) -> FieldSteps {
        let counts = self.0.read().expect("never poisoned");
        FieldSteps(counts.iter().map(|count| count.steps()).collect())
    }

    /// The error for the first field for which `is_wrong` is true of the two counts: the count of
    /// the other rank and the count of this rank.
    pub(crate) fn unequal(
        &self,
        own: u32,
        (rank, theirs): (u32, &FieldSteps),
        is_wrong: impl Fn(u64, u64) -> bool,
    ) -> Option<Error> {
        let counts = self.0.read().expect("never poisoned");
        let mut pairs = counts.iter().zip(&theirs.0);
        let (count, theirs) = pairs.find(|(count, theirs)| is_wrong(**theirs, count.steps()))?;
        // Rank 0 sets the count for the others, whichever rank finds the difference.
        Some(match rank {
            0 => count.unequal((own, count.steps()), (0, theirs)),
            _ => count.unequal((rank, *theirs), (own, count.steps())),
        })
    }

    /// The error for a closed rank with another number of declared fields.
    pub(crate) fn unequal_number(
        &self,
        own: u32,
        (rank, theirs): (u32, &FieldSteps),
    ) -> Option<Error> {
        let ours = self.0.read().expect("never poisoned").len();
        let theirs = theirs.0.len();
        let text = || {
            format!(
                "rank {rank} has closed with {theirs} fields, and rank {own} has {ours}: all ranks declare the same ones"
            )
        };
        (theirs != ours).then(|| Error::new(Kind::CallOrder, text()))
    }
}
