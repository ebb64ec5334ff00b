//! The coupling pattern of a field: the steps at which a conduit couples two programs, the region
//! of the array, and the side that decides when the field goes. As in XpressSpace the pattern is
//! written in a file and not in a program.

use serde::{Deserialize, Serialize};

/// The pattern of a conduit that carries a field. By default the whole field goes, each time it is
/// sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pattern {
    /// The side that decides when a field goes.
    pub mode: TransferMode,
    /// The steps and the region of the sender.
    pub sender: PatternSide,
    /// The steps and the region of the receiver.
    pub receiver: PatternSide,
}

/// The side that decides when a field goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TransferMode {
    /// The sender: each field that it sends is received once.
    #[default]
    Push,
    /// The receiver: it takes one of the versions that the sender keeps.
    Pull(VersionCache),
}

/// The versions of a field that the sender keeps for one receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VersionCache {
    /// The number of versions.
    pub versions: u32,
    /// What the sender does with one version more.
    pub full: WhenFull,
}

/// What the sender does with one version more than it keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WhenFull {
    /// The sender drops the oldest version.
    #[default]
    Evict,
    /// The sender waits until the receiver has taken a version.
    Wait,
}

/// The steps and the region at one side of a coupling.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PatternSide {
    /// The steps that take part.
    pub steps: Steps,
    /// The region of the array: the lower bounds and the upper bounds; the upper bounds are not
    /// part of it. `None` leaves the region to the program.
    pub region: Option<(Vec<u64>, Vec<u64>)>,
}

/// Some of the steps of a program. The calls of a program on the field are its steps, counted from
/// 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Steps {
    /// The first step.
    pub from: u64,
    /// No step after this number.
    pub until: Option<u64>,
    /// The distance between two steps: 3 means every third step from the first step on.
    pub every: u64,
}

impl Pattern {
    /// Whether a coupling in each step of both sides makes the same number of steps at both.
    pub fn keeps_step(&self) -> bool {
        self.mode == TransferMode::Push && self.sender.steps == self.receiver.steps
    }

    /// The versions that the sender keeps, if the receiver pulls.
    pub fn cache(&self) -> Option<VersionCache> {
        match self.mode {
            TransferMode::Push => None,
            TransferMode::Pull(cache) => Some(cache),
        }
    }
}

impl Default for Steps {
    /// All steps.
    fn default() -> Self {
        Steps {
            from: 1,
            until: None,
            every: 1,
        }
    }
}

impl Steps {
    /// Whether a step is among the steps.
    pub fn contain(&self, step: u64) -> bool {
        step >= self.from
            && self.until.is_none_or(|until| step <= until)
            && (step - self.from).is_multiple_of(self.every)
    }

    /// Whether a step is the last of the steps.
    pub fn end_with(&self, step: u64) -> bool {
        self.contain(step) && self.until.is_some_and(|until| until - step < self.every)
    }
}

impl Default for VersionCache {
    fn default() -> Self {
        VersionCache {
            versions: 1,
            full: WhenFull::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_counted_from_the_first_one() {
        let steps = Steps {
            from: 3,
            until: Some(12),
            every: 4,
        };
        assert_eq!(
            (0..20)
                .filter(|step| steps.contain(*step))
                .collect::<Vec<_>>(),
            [3, 7, 11]
        );
        assert_eq!(
            (0..20)
                .filter(|step| steps.end_with(*step))
                .collect::<Vec<_>>(),
            [11]
        );
        assert!(
            (1..5).all(|step| Steps::default().contain(step) && !Steps::default().end_with(step))
        );
    }
}
