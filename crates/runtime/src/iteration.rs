//! When in a run a message was sent, counted in steps: by this the filters `last`, `repeat` and `pad` choose.
//!
//! Simulated time does not do for that: models differ in where theirs begins, and run through it again and again. A
//! use of a submodel that others call belongs to their step; a step of its own lies within that use. So the numbers of
//! the steps, the outermost timeline's first, name each message's place; and one place lies within another if it
//! begins with that. Places are ordered as they are reached. (yMMSL 0.18 checks timelines by the same nesting.)

/// The number of the step in each timeline, the outermost first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Iteration(Vec<u32>);

impl Iteration {
    pub(crate) fn new(steps: Vec<u32>) -> Self {
        Iteration(steps)
    }

    pub(crate) fn steps(&self) -> &[u32] {
        &self.0
    }

    /// A step within this one.
    pub(crate) fn step(&self, number: u32) -> Self {
        Iteration([&self.0[..], &[number]].concat())
    }

    /// The one that it lies in, so many levels further out.
    pub(crate) fn outer(&self, levels: usize) -> Self {
        Iteration(self.0[..self.0.len().saturating_sub(levels)].to_vec())
    }

    /// Whether it is that one or lies in it.
    pub(crate) fn is_within(&self, outer: &Iteration) -> bool {
        self.0.starts_with(&outer.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_lie_in_each_other_and_follow_each_other() {
        let use_two = Iteration::new(vec![1]);
        let step = use_two.step(3);
        assert!(
            step.is_within(&use_two)
                && step.is_within(&Iteration::default())
                && !use_two.is_within(&step)
        );
        assert!(!Iteration::new(vec![0, 3]).is_within(&use_two));
        assert!(
            use_two < step
                && Iteration::new(vec![0, 9]) < use_two
                && step < Iteration::new(vec![2])
        );
        assert_eq!(
            (step.outer(1), step.outer(5)),
            (use_two, Iteration::default())
        );
    }
}
