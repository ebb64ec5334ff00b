//! A limit for lines of the log that somebody else may cause.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::{Duration, Instant};

/// How many lines about refusals a cause may have at once, and the time after which it may have another one.
const MOST_REFUSALS: u32 = 30;
const REFUSAL_INTERVAL: Duration = Duration::from_secs(60);

/// The same for lines about admitted runs.
const MOST_RUNS: u32 = 1000;
const RUN_INTERVAL: Duration = Duration::from_secs(10);

/// The most causes whose lines are counted by themselves. All further ones count as one.
const MOST_CAUSES: usize = 1024;

/// The lines of each cause, such as an address. What a line says does not count: the cause could choose another
/// text each time.
pub(crate) struct LogLimit<Cause> {
    lines: HashMap<Option<Cause>, LoggedLines>,
    /// How many lines a cause may have at once.
    most: u32,
    /// The time after which a cause may have another line.
    interval: Duration,
}

/// What the log has told of a cause.
struct LoggedLines {
    /// How many lines count, and since when. After each interval one counts no more.
    count: u32,
    since: Instant,
    /// The number of lines since that were left out.
    left_out: usize,
}

impl<Cause> LogLimit<Cause> {
    /// The limit of lines about refusals.
    pub(crate) fn of_refusals() -> Self {
        LogLimit {
            lines: HashMap::new(),
            most: MOST_REFUSALS,
            interval: REFUSAL_INTERVAL,
        }
    }

    /// The limit of lines about admitted runs.
    pub(crate) fn of_runs() -> Self {
        LogLimit {
            lines: HashMap::new(),
            most: MOST_RUNS,
            interval: RUN_INTERVAL,
        }
    }
}

impl<Cause: Eq + Hash> LogLimit<Cause> {
    /// Notes a line. If it is to be logged, returns how many lines of the cause were left out before it.
    pub(crate) fn note(&mut self, cause: Cause, now: Instant) -> Option<usize> {
        let mut cause = Some(cause);
        if self.lines.len() >= MOST_CAUSES && !self.lines.contains_key(&cause) {
            let interval = self.interval;
            self.lines
                .retain(|_, lines| lines.counted(now, interval) > 0);
            if self.lines.len() >= MOST_CAUSES {
                cause = None;
            }
        }
        let lines = self.lines.entry(cause).or_insert(LoggedLines {
            count: 0,
            since: now,
            left_out: 0,
        });
        if lines.counted(now, self.interval) >= self.most {
            lines.left_out += 1;
            return None;
        }
        lines.count += 1;
        Some(std::mem::take(&mut lines.left_out))
    }
}

impl LoggedLines {
    /// How many lines count now.
    fn counted(&mut self, now: Instant, interval: Duration) -> u32 {
        let intervals = (now - self.since).as_secs() / interval.as_secs();
        let passed = u32::try_from(intervals).unwrap_or(u32::MAX);
        self.count = self.count.saturating_sub(passed);
        self.since += interval * passed;
        self.count
    }
}

/// The beginning of a text that somebody else has chosen, for the log, in one line.
pub(crate) fn bounded(text: &str) -> String {
    beginning(text, 500)
}

/// The beginning of a text, with dots if there is more. Ends of lines and commands to terminals are replaced.
pub(crate) fn beginning(text: &str, most_letters: usize) -> String {
    match text.char_indices().nth(most_letters) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
    .replace(char::is_control, "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_that_comes_again_and_again_has_a_line_a_minute() {
        let mut limit = LogLimit::of_refusals();
        let now = Instant::now();
        for _ in 0..MOST_REFUSALS {
            assert_eq!(limit.note(1, now), Some(0));
        }
        assert_eq!(limit.note(1, now), None);
        assert_eq!(limit.note(2, now), Some(0));
        let later = now + REFUSAL_INTERVAL;
        assert_eq!(limit.note(1, later), Some(1));
        assert_eq!(limit.note(1, later), None);
        assert_eq!(limit.note(2, later), Some(0));
        let much_later = now + REFUSAL_INTERVAL * 1000;
        assert_eq!(limit.note(1, much_later), Some(1));
        for _ in 1..MOST_REFUSALS {
            assert_eq!(limit.note(1, much_later), Some(0));
        }
        assert_eq!(limit.note(1, much_later), None);
    }

    #[test]
    fn many_causes_have_few_lines() {
        let mut limit = LogLimit::of_refusals();
        let now = Instant::now();
        let mut lines = |now| {
            (0..100_000)
                .filter(|&cause| limit.note(cause, now).is_some())
                .count()
        };
        assert_eq!(lines(now), MOST_CAUSES + MOST_REFUSALS as usize);
        assert!(lines(now + REFUSAL_INTERVAL) <= MOST_CAUSES + MOST_REFUSALS as usize);
        assert_eq!(limit.lines.len(), MOST_CAUSES + 1);
    }

    #[test]
    fn long_texts_are_cut() {
        assert_eq!(bounded("short"), "short");
        assert_eq!(bounded("a\r\n\u{1b}[2Jb"), "a\u{fffd}\u{fffd}\u{fffd}[2Jb");
        assert_eq!(bounded(&"ä".repeat(501)), format!("{}...", "ä".repeat(500)));
    }
}
