//! A limit for lines of the log that somebody else may cause.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::{Duration, Instant};

/// How many lines a cause may have one after the other, and the time between two further ones.
const MOST_LINES: u32 = 30;
const LINE_INTERVAL: Duration = Duration::from_secs(60);

/// The most causes whose lines are counted by themselves. All further ones count as one.
const MOST_CAUSES: usize = 1024;

/// The lines of each cause, such as an address. What a line says does not count: the cause could choose another
/// text each time.
pub(crate) struct LogLimit<Cause> {
    lines: HashMap<Option<Cause>, LoggedLines>,
}

/// What the log has told of a cause.
struct LoggedLines {
    /// How many lines, and when the last.
    count: u32,
    last: Instant,
    /// The number of lines since that were left out.
    left_out: usize,
}

impl<Cause: Eq + Hash> LogLimit<Cause> {
    /// Notes a line. If it is to be logged, returns how many lines of the cause were left out before it.
    pub(crate) fn note(&mut self, cause: Cause, now: Instant) -> Option<usize> {
        let mut cause = Some(cause);
        if self.lines.len() >= MOST_CAUSES && !self.lines.contains_key(&cause) {
            self.lines
                .retain(|_, lines| now - lines.last < LINE_INTERVAL);
            if self.lines.len() >= MOST_CAUSES {
                cause = None;
            }
        }
        let lines = self.lines.entry(cause).or_insert(LoggedLines {
            count: 0,
            last: now,
            left_out: 0,
        });
        if lines.count >= MOST_LINES && now - lines.last < LINE_INTERVAL {
            lines.left_out += 1;
            return None;
        }
        lines.count += 1;
        lines.last = now;
        Some(std::mem::take(&mut lines.left_out))
    }
}

impl<Cause> Default for LogLimit<Cause> {
    fn default() -> Self {
        LogLimit {
            lines: HashMap::new(),
        }
    }
}

/// The beginning of a text that somebody else has chosen, for the log.
pub(crate) fn bounded(text: &str) -> String {
    const MOST_LETTERS: usize = 500;
    match text.char_indices().nth(MOST_LETTERS) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_that_comes_again_and_again_has_a_line_a_minute() {
        let mut limit = LogLimit::default();
        let now = Instant::now();
        for _ in 0..MOST_LINES {
            assert_eq!(limit.note(1, now), Some(0));
        }
        assert_eq!(limit.note(1, now), None);
        assert_eq!(limit.note(2, now), Some(0));
        let later = now + LINE_INTERVAL;
        assert_eq!(limit.note(1, later), Some(1));
        assert_eq!(limit.note(1, later), None);
        assert_eq!(limit.note(2, later), Some(0));
    }

    #[test]
    fn many_causes_have_few_lines() {
        let mut limit = LogLimit::default();
        let now = Instant::now();
        let mut lines = |now| {
            (0..100_000)
                .filter(|&cause| limit.note(cause, now).is_some())
                .count()
        };
        assert_eq!(lines(now), MOST_CAUSES + MOST_LINES as usize);
        assert!(lines(now + LINE_INTERVAL) <= MOST_CAUSES + MOST_LINES as usize);
        assert_eq!(limit.lines.len(), MOST_CAUSES + 1);
    }

    #[test]
    fn long_texts_are_cut() {
        assert_eq!(bounded("short"), "short");
        assert_eq!(bounded(&"ä".repeat(501)), format!("{}...", "ä".repeat(500)));
    }
}
