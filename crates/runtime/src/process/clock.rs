//! The clock of the manager, by which all programs of a run tell times.

use std::ops::Range;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The times that clocks may show, in seconds since the Unix epoch: up to the year 2286.
const CLOCKS: Range<f64> = 0.0..1e10;

/// How often two clocks are read to set one by the other.
const READINGS: usize = 8;

/// The clock of the manager's host, as this process knows the clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ManagerClock {
    /// How far the manager's clock is ahead of the clock of this host, in nanoseconds.
    ahead: i64,
}

impl ManagerClock {
    /// The clock that showed the given time when the manager sent an answer. The answer has come just now,
    /// to a question of the time `asked`. A manager of an older release tells no time. A time beyond all
    /// clocks counts as none.
    pub(super) fn of_answer(time: Option<f64>, asked: Instant) -> Self {
        match time {
            Some(time) if CLOCKS.contains(&time) => {
                Self::of_times((time * 1e9) as i64, host_time(), asked.elapsed())
            }
            _ => Self::default(),
        }
    }

    /// The clock that showed `time` when the manager sent an answer. The answer came `took` after the
    /// question, `now` by the clock of this host. Two clocks that agree show a time between both. If the
    /// time is another, question and answer count as equally long, as in NTP.
    fn of_times(time: i64, now: i64, took: Duration) -> Self {
        let asked = now - took.as_nanos() as i64;
        let agree = (asked..=now).contains(&time);
        ManagerClock {
            ahead: if agree {
                0
            } else {
                time - now + (now - asked) / 2
            },
        }
    }

    /// Now, in nanoseconds since the Unix epoch.
    pub(crate) fn now(self) -> i64 {
        host_time() + self.ahead
    }

    /// A moment by the clock that does not jump, and the same moment by this clock, in nanoseconds since the
    /// Unix epoch. The system may run another process between the two readings, so the pair of readings
    /// that took the shortest time is taken of several.
    pub(crate) fn moment(self) -> (Instant, i64) {
        let readings = (0..READINGS).map(|_| {
            let moment = Instant::now();
            let time = self.now();
            (moment.elapsed(), moment, time)
        });
        let shortest = readings.min_by_key(|(took, ..)| *took);
        let (_, moment, time) = shortest.expect("the clocks are read several times");
        (moment, time)
    }
}

/// The time by the clock of this host, in nanoseconds since the Unix epoch.
fn host_time() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_nanos() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_set_by_an_answer_only_where_both_cannot_be_right() {
        let ahead = |time| {
            let took = Duration::from_micros(100);
            ManagerClock::of_times(time, 1_000_000, took).ahead
        };
        // Times from the question to the answer, with both ends.
        for time in [900_000, 950_000, 1_000_000] {
            assert_eq!(ahead(time), 0);
        }
        for time in [0, 899_999, 1_000_001, 1 << 60] {
            assert_eq!(ahead(time), time - 950_000);
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
            let clock = ManagerClock::of_answer(time, Instant::now());
            assert_eq!(clock, ManagerClock::default());
        }
        let day = ManagerClock::of_answer(Some(86_400.0), Instant::now()).now();
        assert!(
            (86_400_000_000_000..86_410_000_000_000).contains(&day),
            "{day}"
        );
    }
}
