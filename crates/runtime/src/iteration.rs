//! The place of a message in a run, counted in steps. The filters `last`, `repeat` and `pad` choose
//! by the place.
//!
//! Simulated time does not serve: models begin at different times, and run through the same times
//! again and again. A use of a submodel belongs to a step of the instance that calls the submodel,
//! and the submodel's own steps lie within the use. So the numbers of the steps, the outermost
//! timeline's first, name the place of a message. One place lies within another if the numbers of
//! the inner place begin with the numbers of the outer place. A run reaches places in their order.
//! (yMMSL 0.18 checks timelines by the same nesting.)

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

    /// A step within the place.
    pub(crate) fn step(&self, number: u32) -> Self {
        Iteration([&self.0[..], &[number]].concat())
    }

    /// The place around the place, `levels` levels further out.
    pub(crate) fn outer(&self, levels: usize) -> Self {
        Iteration(self.0[..self.0.len().saturating_sub(levels)].to_vec())
    }

    /// Whether the place is `outer`, or lies within `outer`.
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
