//! How the two programs of a path come to barriers.

use std::sync::atomic::Ordering;

use titin_wire::path::PathControl;

use crate::end::PathEnd;
use crate::error::Result;
use crate::lane::Transfer;

/// The barriers of this end.
#[derive(Default)]
pub(crate) struct BarrierState {
    /// How many the program has come to.
    reached: u64,
    /// How many of these both programs have come to.
    passed: u64,
}

/// A call that waits at a barrier.
#[derive(Default)]
pub(crate) struct BarrierTransfer {
    has_come: bool,
}

impl Transfer for BarrierTransfer {
    type State = BarrierState;
    type Output = ();

    fn advance(&mut self, end: &PathEnd, state: &mut BarrierState) -> Result<Option<()>> {
        // A call that was given up has come to its barrier already.
        if !self.has_come && state.reached == state.passed {
            state.reached += 1;
            end.tell(&PathControl::Barrier);
        }
        self.has_come = true;
        if end.other_barriers.load(Ordering::Acquire) < state.reached {
            return Ok(None);
        }
        state.passed = state.reached;
        end.check_dropped().map(Some)
    }

    fn give_up(&mut self, _: &PathEnd, _: &mut BarrierState) {}
}
