//! The clock of the manager, by which all programs of a run tell times.

use std::ops::Range;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The times that clocks may show, in seconds since the Unix epoch: up to the year 2286.
const CLOCKS: Range<f64> = 0.0..1e10;

/// The clock of the manager's host, as this process reads the clock. The clock does not jump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ManagerClock {
    /// The time, in nanoseconds since the Unix epoch, and when the clock showed this time.
    reading: (i64, Instant),
}

impl ManagerClock {
    /// The clock of this host.
    pub(crate) fn of_this_host() -> Self {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        ManagerClock {
            reading: (since.as_nanos() as i64, Instant::now()),
        }
    }

    /// The clock that showed the given time when the manager sent an answer. The answer has come just now,
    /// to a question of the time `asked`. A manager of an older release tells no time. A time beyond all
    /// clocks counts as none.
    pub(super) fn of_answer(time: Option<f64>, asked: Instant) -> Self {
        let here = Self::of_this_host();
        match time {
            Some(time) if CLOCKS.contains(&time) => {
                here.set_by((time * 1e9) as i64, asked.elapsed())
            }
            _ => here,
        }
    }

    /// This clock, set by the time at which the manager sent an answer. The answer came `took` after the
    /// question. A time between both is what a clock shows that agrees with the manager's, so this clock
    /// stays. By another time the clock is set as if the answer had taken no time.
    fn set_by(self, time: i64, took: Duration) -> Self {
        let (now, at) = self.reading;
        let asked = now - took.as_nanos() as i64;
        match (asked..=now).contains(&time) {
            true => self,
            false => ManagerClock {
                reading: (time, at),
            },
        }
    }

    /// Now, in nanoseconds since the Unix epoch.
    pub(crate) fn now(self) -> i64 {
        let (time, at) = self.reading;
        time + at.elapsed().as_nanos() as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_set_by_an_answer_only_where_both_cannot_be_right() {
        let here = ManagerClock {
            reading: (1_000_000, Instant::now()),
        };
        let set = |time| here.set_by(time, Duration::from_micros(100)).reading.0;
        // Times from the question to the answer, with both ends.
        for time in [900_000, 950_000, 1_000_000] {
            assert_eq!(set(time), 1_000_000);
        }
        for time in [0, 899_999, 1_000_001, i64::MAX] {
            assert_eq!(set(time), time);
        }
    }

    #[test]
    fn a_time_of_no_clock_leaves_the_clock_of_this_host() {
        for time in [
            None,
            Some(f64::NAN),
            Some(f64::INFINITY),
            Some(-1.0),
            Some(1e300),
        ] {
            let apart = ManagerClock::of_answer(time, Instant::now()).now()
                - ManagerClock::of_this_host().now();
            assert!(apart.abs() < 1_000_000_000, "{apart}");
        }
        let day = ManagerClock::of_answer(Some(86_400.0), Instant::now()).now();
        assert!(
            (86_400_000_000_000..86_410_000_000_000).contains(&day),
            "{day}"
        );
    }
}
