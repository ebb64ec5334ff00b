//! The time of a run.

use std::time::{Duration, Instant};

/// The time of a run, without the times in which this process was stopped. So a stop makes no
/// program late or silent.
pub(super) struct RunClock {
    begun: Instant,
    stopped: Duration,
}

impl RunClock {
    /// A process that wakes up late by more than this time was stopped.
    const LATE: Duration = Duration::from_secs(1);

    pub(super) fn new(begun: Instant) -> Self {
        RunClock {
            begun,
            stopped: Duration::ZERO,
        }
    }

    pub(super) fn now(&self) -> Duration {
        self.begun.elapsed().saturating_sub(self.stopped)
    }

    /// Notes the end of a sleep that was to end at `until`. If the process was stopped, returns how
    /// much too long the sleep was.
    pub(super) fn woken(&mut self, until: Duration) -> Option<Duration> {
        let late = self.now().saturating_sub(until);
        if late <= Self::LATE {
            return None;
        }
        self.stopped += late;
        Some(late)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_leaves_out_the_time_in_which_we_were_stopped() {
        let begun = Instant::now()
            .checked_sub(Duration::from_secs(100))
            .expect("the machine is older");
        let mut clock = RunClock {
            begun,
            stopped: Duration::ZERO,
        };
        // The process wakes up in time, or nearly.
        assert_eq!(clock.woken(Duration::from_secs(100)), None);
        assert!(clock.now() >= Duration::from_secs(100));
        // The sleep was to end after 10 s, so 90 s ago.
        assert_eq!(clock.woken(Duration::from_secs(10)).unwrap().as_secs(), 90);
        assert!(
            (10.0..11.0).contains(&clock.now().as_secs_f64()),
            "{:?}",
            clock.now()
        );
    }
}
