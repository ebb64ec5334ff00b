//! How long a call may take.

use std::time::{Duration, Instant};

/// The time limit of a call.
#[derive(Clone, Copy)]
pub(crate) struct TimeLimit(Option<(Instant, Duration)>);

impl TimeLimit {
    /// A limit that begins now.
    pub(crate) fn begin(limit: Option<Duration>) -> Self {
        TimeLimit(limit.map(|limit| (Instant::now(), limit)))
    }

    /// The time that is left.
    pub(crate) fn left(self) -> Option<Duration> {
        self.0
            .map(|(begun, limit)| limit.saturating_sub(begun.elapsed()))
    }

    /// The limit, if its time is over.
    pub(crate) fn exceeded(self) -> Option<Duration> {
        let (_, limit) = self.0?;
        (self.left() == Some(Duration::ZERO)).then_some(limit)
    }
}
