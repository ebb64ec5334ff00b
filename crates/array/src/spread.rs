//! The rules that spread one dimension of an array over the processes along that dimension of the
//! grid.

use crate::{Error, MOST_ELEMENTS};

/// The rule that assigns the `n` indices of a dimension to `p` processes. By every rule sizes may
/// differ, and processes may have nothing.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Spread {
    /// Blocks of ⌈n/p⌉ indices in the order of the processes; the last processes have less, or
    /// nothing. This is `BLOCK` of HPF and `MPI_DISTRIBUTE_BLOCK`: 10 indices on 4 processes are 3,
    /// 3, 3, 1.
    Block,
    /// Blocks whose sizes differ by one at most, the longer ones first: `numpy.array_split` and
    /// most codes that divide by hand. 10 indices on 4 processes are 3, 3, 2, 2.
    Even,
    /// Blocks that the program chooses: process `c` has the indices `bounds[c]..bounds[c + 1]`.
    /// There are p + 1 bounds, from 0 to n.
    Bounds(Vec<u64>),
    /// Blocks of this many indices, dealt out in turn: `CYCLIC(b)` of HPF, ScaLAPACK. `Cyclic(1)`
    /// is plain cyclic.
    Cyclic(u64),
}

/// One dimension with the rule. All functions are in closed form, or a search in explicit bounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SpreadDimension {
    pub extent: u64,
    pub procs: u32,
    pub spread: Spread,
}

impl SpreadDimension {
    /// A dimension, unless the rule does not fit; `dim` is the number of the dimension, for the
    /// error.
    pub fn new(dim: usize, extent: u64, procs: u32, spread: Spread) -> Result<Self, Error> {
        let wrong = |why: String| {
            Err(Error::Invalid(format!(
                "dimension {dim} of a decomposition {why}"
            )))
        };
        if extent > MOST_ELEMENTS {
            return wrong(format!("has extent {extent}; the most is {MOST_ELEMENTS}"));
        }
        if procs == 0 {
            return wrong("has a grid of 0 processes; give at least 1".into());
        }
        match &spread {
            Spread::Bounds(bounds) if bounds.len() as u64 != u64::from(procs) + 1 => {
                let (count, needed) = (bounds.len(), u64::from(procs) + 1);
                return wrong(format!(
                    "has {count} bounds of blocks; {procs} processes need {needed}"
                ));
            }
            Spread::Bounds(bounds)
                if bounds[0] != 0
                    || *bounds.last().expect("two at least") != extent
                    || !bounds.is_sorted() =>
            {
                return wrong(format!(
                    "has bounds of blocks that do not rise from 0 to its extent, {extent}"
                ));
            }
            Spread::Cyclic(0) => {
                return wrong("is block-cyclic in blocks of 0; give at least 1".into());
            }
            _ => {}
        }
        Ok(Self {
            extent,
            procs,
            spread,
        })
    }

    /// The block size and the number of processes of a cyclic dimension, unless each process has
    /// one block at most.
    pub fn cyclic_blocks(&self) -> Option<(u64, u64)> {
        match self.spread {
            Spread::Cyclic(block) if self.procs > 1 && block < self.extent => {
                Some((block, u64::from(self.procs)))
            }
            _ => None,
        }
    }

    /// The indices of a process in one piece; of a cyclic dimension, bounds of the indices.
    pub fn interval(&self, process: u32) -> (u64, u64) {
        let (extent, process) = (self.extent, u64::from(process));
        match &self.spread {
            Spread::Block => {
                let size = extent.div_ceil(u64::from(self.procs));
                (
                    (process * size).min(extent),
                    ((process + 1) * size).min(extent),
                )
            }
            Spread::Even => (self.even(process), self.even(process + 1)),
            Spread::Bounds(bounds) => (bounds[process as usize], bounds[process as usize + 1]),
            // With one process or one block the first process has all.
            Spread::Cyclic(_) if self.cyclic_blocks().is_none() => {
                (0, if process == 0 { extent } else { 0 })
            }
            Spread::Cyclic(block) => (process.saturating_mul(*block).min(extent), extent),
        }
    }

    /// The process that has an index.
    pub fn owner(&self, index: u64) -> u32 {
        let procs = u64::from(self.procs);
        let owner = match &self.spread {
            Spread::Block => index / self.extent.div_ceil(procs),
            Spread::Even => {
                let (size, longer) = (self.extent / procs, self.extent % procs);
                let in_longer = longer * (size + 1);
                if index < in_longer {
                    index / (size + 1)
                } else {
                    longer + (index - in_longer) / size
                }
            }
            // The last process that begins at or before the index. Processes before with the same
            // bound are empty.
            Spread::Bounds(bounds) => bounds.partition_point(|bound| *bound <= index) as u64 - 1,
            Spread::Cyclic(block) => index / block % procs,
        };
        owner as u32
    }

    /// The number of indices of a process.
    pub fn count(&self, process: u32) -> u64 {
        let Some((block, procs)) = self.cyclic_blocks() else {
            let (from, to) = self.interval(process);
            return to - from;
        };
        let (blocks, process) = (self.extent / block, u64::from(process));
        let rest = match process.cmp(&(blocks % procs)) {
            std::cmp::Ordering::Less => block,
            std::cmp::Ordering::Equal => self.extent % block,
            std::cmp::Ordering::Greater => 0,
        };
        blocks / procs * block + rest
    }

    /// The end of the range of indices of the same process that has the index.
    pub fn end_of_range(&self, index: u64) -> u64 {
        match self.cyclic_blocks() {
            Some((block, _)) => (index - index % block)
                .saturating_add(block)
                .min(self.extent),
            None => self.interval(self.owner(index)).1,
        }
    }

    /// The first index of a process by [`Spread::Even`].
    fn even(&self, process: u64) -> u64 {
        let procs = u64::from(self.procs);
        self.extent / procs * process + process.min(self.extent % procs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dimension(extent: u64, procs: u32, spread: Spread) -> SpreadDimension {
        SpreadDimension::new(0, extent, procs, spread).unwrap()
    }

    fn counts(extent: u64, procs: u32, spread: Spread) -> Vec<u64> {
        let dimension = dimension(extent, procs, spread);
        (0..procs).map(|process| dimension.count(process)).collect()
    }

    #[test]
    fn sizes_are_those_of_the_rules() {
        assert_eq!(counts(10, 4, Spread::Block), [3, 3, 3, 1]);
        assert_eq!(counts(10, 4, Spread::Even), [3, 3, 2, 2]);
        assert_eq!(counts(10, 4, Spread::Cyclic(1)), [3, 3, 2, 2]);
        assert_eq!(counts(10, 3, Spread::Cyclic(2)), [4, 4, 2]);
        assert_eq!(counts(11, 3, Spread::Cyclic(2)), [4, 4, 3]);
        assert_eq!(counts(10, 3, Spread::Bounds(vec![0, 7, 7, 10])), [7, 0, 3]);
        assert_eq!(counts(9, 8, Spread::Block), [2, 2, 2, 2, 1, 0, 0, 0]);
        assert_eq!(counts(2, 4, Spread::Even), [1, 1, 0, 0]);
        assert_eq!(counts(3, 2, Spread::Cyclic(5)), [3, 0]);
        assert_eq!(counts(0, 2, Spread::Block), [0, 0]);
    }

    #[test]
    fn owners_and_runs_agree_with_counts() {
        let spreads = [
            Spread::Block,
            Spread::Even,
            Spread::Cyclic(1),
            Spread::Cyclic(3),
            Spread::Cyclic(40),
            Spread::Bounds(vec![0, 0, 5, 5, 9, 23]),
        ];
        for spread in spreads {
            let dimension = dimension(23, 5, spread);
            let mut seen = [0; 5];
            for index in 0..23 {
                let owner = dimension.owner(index);
                seen[owner as usize] += 1;
                let end = dimension.end_of_range(index);
                assert!(end > index && (index..end).all(|other| dimension.owner(other) == owner));
                let (from, to) = dimension.interval(owner);
                assert!((from..to).contains(&index));
            }
            assert!(
                (0..5).all(|process| dimension.count(process) == seen[process as usize]),
                "{dimension:?}"
            );
        }
    }

    #[test]
    fn rules_that_cannot_be_are_refused() {
        let refused = |extent, procs, spread| {
            SpreadDimension::new(2, extent, procs, spread)
                .unwrap_err()
                .to_string()
        };
        assert!(
            refused(4, 0, Spread::Block)
                .contains("dimension 2 of a decomposition has a grid of 0 processes")
        );
        assert!(refused(4, 2, Spread::Cyclic(0)).contains("blocks of 0"));
        assert!(
            refused(4, 2, Spread::Bounds(vec![0, 4]))
                .contains("has 2 bounds of blocks; 2 processes need 3")
        );
        assert!(
            refused(4, 2, Spread::Bounds(vec![0, 3, 5]))
                .contains("do not rise from 0 to its extent, 4")
        );
        assert!(refused(4, 2, Spread::Bounds(vec![0, 5, 4])).contains("do not rise"));
        assert!(refused(u64::MAX, 2, Spread::Block).contains("the most is"));
    }
}
