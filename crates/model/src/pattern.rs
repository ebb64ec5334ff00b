//! The coupling pattern of a field: at which steps its conduit couples the two programs, which part of the array, and which of
//! them says when it goes. After XpressSpace, where it stands in a file, too, and in no program.

use serde::{Deserialize, Serialize};

/// The pattern of a conduit that carries a field. By default everything goes, when it is sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pattern {
    /// Who says when it goes.
    pub mode: TransferMode,
    /// What the sender couples.
    pub sender: PatternSide,
    /// What the receiver couples.
    pub receiver: PatternSide,
}

/// Who says when a field goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TransferMode {
    /// The sender: each that it sends is received once.
    #[default]
    Push,
    /// The receiver: it takes one of the versions that the sender keeps.
    Pull(VersionCache),
}

/// The versions of a field that its sender keeps for one receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VersionCache {
    /// How many.
    pub versions: u32,
    /// What comes of one more.
    pub full: WhenFull,
}

/// What the sender does with one version more than it keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WhenFull {
    /// It gives up the oldest.
    #[default]
    Evict,
    /// It waits until the receiver has taken one.
    Wait,
}

/// What one end of a conduit couples.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PatternSide {
    /// At which of its steps.
    pub steps: Steps,
    /// Which part of its array: the lower bounds, and the upper ones, which do not belong. `None` leaves it to the program.
    pub region: Option<(Vec<u64>, Vec<u64>)>,
}

/// Some of the steps of a program. Its calls on the field are its steps, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Steps {
    /// The first one.
    pub from: u64,
    /// None after this one.
    pub until: Option<u64>,
    /// From the first one on, each so many.
    pub every: u64,
}

impl Pattern {
    /// Whether the ends make as many steps as each other where the one sends and the other receives in each.
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
    /// All of them.
    fn default() -> Self {
        Steps {
            from: 1,
            until: None,
            every: 1,
        }
    }
}

impl Steps {
    /// Whether a step is among them.
    pub fn contain(&self, step: u64) -> bool {
        step >= self.from
            && self.until.is_none_or(|until| step <= until)
            && (step - self.from).is_multiple_of(self.every)
    }

    /// Whether a step is the last one of them.
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
