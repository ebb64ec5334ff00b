//! At a terminal: a line for each instance with its state, simulated time, progress where the end
//! is known, and rates.

use std::collections::VecDeque;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use titin_manager::directory::RunDirectory;
use titin_manager::event::Level;
use titin_manager::plan::Plan;
use titin_manager::session::RunView;
use titin_manager::state::{InstanceStatus, Phase};

use super::hosted;
use crate::terminal::{ERROR, FAINT, GOOD, WARNING, harmless, rows};

/// How often the lines are written anew.
const PACE: Duration = Duration::from_millis(250);

/// The number of looks over which rates are averaged. Instances report less often than once a look,
/// so rates between two looks would jump between zero and too much.
const LOOKS: usize = 16;

/// Parts of a progress bar.
const PARTS: u64 = 1000;

pub(crate) struct Live {
    verbose: bool,
    screen: MultiProgress,
    lines: Vec<ProgressBar>,
    /// The line for all instances without a line of their own.
    rest: Option<ProgressBar>,
    /// The line with the elapsed and the estimated time.
    clock: Option<ProgressBar>,
    width: usize,
    /// The messages and bytes of each instance at the last looks, for rates.
    counts: VecDeque<(Duration, Vec<(u64, u64)>)>,
    /// When each instance first reported progress, and the progress at that time.
    begun: Vec<Option<(Duration, f64)>>,
}

impl Live {
    pub(crate) fn new(verbose: bool) -> Self {
        Live {
            verbose,
            screen: MultiProgress::new(),
            lines: Vec::new(),
            rest: None,
            clock: None,
            width: 0,
            counts: VecDeque::new(),
            begun: Vec::new(),
        }
    }

    fn print(&self, text: &str) {
        for line in text.lines() {
            let _ = self.screen.println(line);
        }
    }

    /// Adds a line to the screen.
    fn add_line(&self, template: &str) -> ProgressBar {
        let style = ProgressStyle::with_template(template);
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
        let line = self.screen.add(ProgressBar::new(PARTS));
        line.set_style(style.progress_chars("━╸ "));
        line
    }

    /// Messages and bytes per second of an instance with the given counts, over the last looks.
    fn rate(&self, elapsed: Duration, number: usize, now: (u64, u64)) -> Option<(f64, f64)> {
        let (then, before) = self.counts.front()?;
        let (seconds, before) = (
            elapsed.saturating_sub(*then).as_secs_f64(),
            before.get(number)?,
        );
        let per_second = |now: u64, before: u64| now.saturating_sub(before) as f64 / seconds;
        (seconds > 0.0).then(|| (per_second(now.0, before.0), per_second(now.1, before.1)))
    }

    fn show_line(&self, line: &ProgressBar, standing: &InstanceStatus, rate: Option<(f64, f64)>) {
        let width = self.width;
        let name = format!("{:<width$}", harmless(&standing.name));
        if line.prefix() != name {
            line.set_prefix(name);
        }
        line.set_message(message(standing, rate));
    }

    /// Shows how many instances have no line of their own.
    fn show_rest<'a>(&self, hidden: impl ExactSizeIterator<Item = &'a InstanceStatus>) {
        let Some(line) = &self.rest else { return };
        let count = hidden.len();
        let done = hidden.filter(|standing| standing.phase == Phase::Done);
        let done = done.count();
        line.set_message(format!(
            "{FAINT}and {count} more, {done} of them done{FAINT:#}"
        ));
    }

    fn show_clock(&mut self, elapsed: Duration, standings: &[InstanceStatus]) {
        let left = self.time_left(elapsed, standings);
        let left = left.map(|left| format!(", about {} left", clock(left)));
        if let Some(line) = &self.clock {
            let (elapsed, left) = (clock(elapsed), left.unwrap_or_default());
            line.set_message(format!("{FAINT}{elapsed} elapsed{left}{FAINT:#}"));
        }
    }

    /// The estimated time until the slowest instance with a known end has come to the end.
    fn time_left(&mut self, elapsed: Duration, standings: &[InstanceStatus]) -> Option<Duration> {
        let running =
            |standing: &&InstanceStatus| !matches!(standing.phase, Phase::Done | Phase::Failed);
        standings
            .iter()
            .zip(&mut self.begun)
            .filter_map(|(standing, begun)| {
                let part = part(Some(standing).filter(running)?)?;
                let (since, before) = *begun.get_or_insert((elapsed, part));
                left(elapsed.saturating_sub(since), before, part)
            })
            .max()
    }
}

impl RunView for Live {
    fn begun(&mut self, directory: &RunDirectory, plan: &Plan) {
        let path = directory.path().display();
        self.print(&format!("{FAINT}run directory: {path}{FAINT:#}"));
        if let Some(text) = hosted(directory, plan) {
            let _ = crate::terminal::print(&text);
        }
        let count = plan.instances.len();
        let room = rows().unwrap_or(24).saturating_sub(7).max(1);
        let shown = if count <= room { count } else { room - 1 };
        let names = plan.instances.iter().map(|planned| planned.name.len());
        self.width = names.max().unwrap_or(0).min(30);
        self.lines = (0..shown)
            .map(|_| self.add_line("{prefix} {msg}"))
            .collect();
        self.rest = (shown < count).then(|| self.add_line("{prefix}{msg}"));
        self.clock = Some(self.add_line("{prefix}{msg}"));
        self.begun = vec![None; count];
    }

    fn manual_starts(&mut self, text: &str) {
        self.print(text);
    }

    fn log_line(&mut self, level: Level, line: &str) {
        let line = harmless(line);
        match level {
            Level::Error => self.print(&format!("{ERROR}{line}{ERROR:#}")),
            Level::Warning => self.print(&format!("{WARNING}{line}{WARNING:#}")),
            _ if self.verbose => self.print(&line),
            _ => {}
        }
    }

    fn show(&mut self, elapsed: Duration, standings: &[InstanceStatus]) {
        // The user looks most at instances that still run.
        let mut order: Vec<usize> = (0..standings.len()).collect();
        if self.rest.is_some() {
            order.sort_by_key(|&number| matches!(standings[number].phase, Phase::Done));
        }
        let (shown, hidden) = order.split_at(self.lines.len().min(order.len()));
        for (line, &number) in self.lines.iter().zip(shown) {
            let standing = &standings[number];
            let rate = self.rate(elapsed, number, counts_of(standing));
            self.show_line(line, standing, rate);
        }
        self.show_rest(hidden.iter().map(|&number| &standings[number]));
        if self.counts.len() == LOOKS {
            self.counts.pop_front();
        }
        let counts = standings.iter().map(counts_of).collect();
        self.counts.push_back((elapsed, counts));
        self.show_clock(elapsed, standings);
    }

    fn show_wait(&mut self, lines: &[String]) {
        let Some(clock) = &self.clock else { return };
        let text = match lines {
            [] => String::new(),
            lines => format!("{}; Ctrl-C ends the wait", harmless(&lines.join("; "))),
        };
        clock.set_message(format!("{FAINT}{text}{FAINT:#}"));
    }

    fn interval(&self) -> Option<Duration> {
        Some(PACE)
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        for line in self.lines.iter().chain(&self.rest).chain(&self.clock) {
            line.abandon();
        }
    }
}

/// The messages and bytes that an instance has reported.
fn counts_of(standing: &InstanceStatus) -> (u64, u64) {
    let position = standing.position.as_ref();
    position.map_or((0, 0), |position| (position.messages, position.bytes))
}

/// The state of an instance, as the text after the instance's name.
fn message(standing: &InstanceStatus, rate: Option<(f64, f64)>) -> String {
    let word = standing.phase.name();
    let mut text = match standing.phase {
        Phase::Done => format!("{GOOD}{word:<8}{GOOD:#}"),
        Phase::Failed => format!("{ERROR}{word:<8}{ERROR:#}"),
        Phase::Starting | Phase::Awaited => format!("{FAINT}{word:<8}{FAINT:#}"),
        Phase::Running | Phase::Waiting => format!("{word:<8}"),
    };
    let position = standing.position.as_ref();
    if let Some(time) = position.and_then(|position| position.simulated) {
        text.push_str(&format!(" t = {:<10}", short(time)));
    }
    let is_done = standing.phase == Phase::Done;
    if let Some(part) = part(standing) {
        // The last report may be from a step before the end.
        text.push_str(&bar(if is_done { 1.0 } else { part }));
    }
    // A rate of zero is shown too: the user cannot read a figure that comes and goes.
    let has_sent = position.is_some_and(|position| position.messages > 0);
    if let Some((messages, bytes)) = rate
        && !is_done
        && standing.phase != Phase::Failed
        && has_sent
    {
        let bytes = titin_draw::units::bytes(bytes as u64);
        text.push_str(&format!(
            " {FAINT}{messages:.0} messages/s, {bytes}/s{FAINT:#}"
        ));
    }
    text
}

/// The share of simulated time that an instance has completed, if the end is known.
fn part(standing: &InstanceStatus) -> Option<f64> {
    let time = standing.position.as_ref()?.simulated?;
    let end = standing.end.filter(|end| *end > 0.0)?;
    Some(time / end)
}

/// The estimated time to the end, at the speed since the share `before` was complete.
fn left(since: Duration, before: f64, part: f64) -> Option<Duration> {
    let seconds = since.as_secs_f64() * (1.0 - part) / (part - before);
    (part > before && part < 1.0)
        .then(|| Duration::try_from_secs_f64(seconds).ok())
        .flatten()
}

/// A time as people write it: `12 s`, `3 min 05 s`, `2 h 10 min`, `4 d 07 h`.
fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{} h {:02} min", seconds / 3600, seconds / 60 % 60),
        _ => format!("{} d {:02} h", seconds / 86_400, seconds / 3600 % 24),
    }
}

/// A number with at most six digits.
fn short(number: f64) -> String {
    const DIGITS: i32 = 6;
    let size = if number == 0.0 {
        0
    } else {
        number.abs().log10().floor() as i32
    };
    if !(-4..DIGITS).contains(&size) {
        return format!("{number:.4e}");
    }
    let text = format!("{number:.*}", (DIGITS - 1 - size) as usize);
    let text = if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        &text
    };
    text.to_owned()
}

fn bar(part: f64) -> String {
    const WIDTH: usize = 20;
    let part = part.clamp(0.0, 1.0);
    let full = (part * WIDTH as f64) as usize;
    format!(
        " {}{FAINT}{}{FAINT:#} {:3.0} %",
        "━".repeat(full),
        "─".repeat(WIDTH - full),
        part * 100.0
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use anstream::adapter::strip_str;

    #[test]
    fn a_line_tells_state_time_progress_and_rates() {
        let position = titin_manager::state::Progress {
            instance: "macro".into(),
            simulated: Some(2.5),
            messages: 10,
            bytes: 80,
            end: None,
        };
        let mut standing = InstanceStatus {
            name: "macro".into(),
            phase: Phase::Running,
            position: Some(position),
            end: Some(10.0),
        };
        let text = strip_str(&message(&standing, Some((1234.0, 5_600_000.0)))).to_string();
        assert_eq!(
            text,
            "running  t = 2.5        ━━━━━───────────────  25 % 1234 messages/s, 5.60 MB/s"
        );
        standing.phase = Phase::Done;
        let text = strip_str(&message(&standing, Some((0.0, 0.0)))).to_string();
        assert_eq!(text, "done     t = 2.5        ━━━━━━━━━━━━━━━━━━━━ 100 %");
        standing.end = None;
        let text = strip_str(&message(&standing, Some((0.0, 0.0)))).to_string();
        assert_eq!(text, "done     t = 2.5       ");
    }

    #[test]
    fn rates_stay_where_nothing_has_come_for_a_while() {
        let position = titin_manager::state::Progress {
            instance: "macro".into(),
            simulated: None,
            messages: 10,
            bytes: 80,
            end: None,
        };
        let mut standing = InstanceStatus {
            name: "macro".into(),
            phase: Phase::Running,
            position: Some(position),
            end: None,
        };
        let shown =
            |standing: &InstanceStatus| strip_str(&message(standing, Some((0.0, 0.0)))).to_string();
        assert!(
            shown(&standing).contains("0 messages/s"),
            "{}",
            shown(&standing)
        );
        standing.position = None;
        assert!(!shown(&standing).contains("messages/s"));
    }

    #[test]
    fn the_last_line_tells_what_the_end_of_the_run_waits_for() {
        let clock = ProgressBar::hidden();
        let mut view = Live::new(false);
        view.clock = Some(clock.clone());
        let shown = || strip_str(&clock.message()).to_string();
        view.show_wait(&[
            "waits for host a".to_owned(),
            "waits for host\x1b[2Jb".to_owned(),
        ]);
        assert!(
            shown().starts_with("waits for host a; waits for host"),
            "{}",
            shown()
        );
        assert!(shown().ends_with("b; Ctrl-C ends the wait"), "{}", shown());
        assert!(!clock.message().contains("\x1b[2J"));
        view.show_wait(&[]);
        assert_eq!(shown(), "");
    }

    #[test]
    fn what_is_left_is_told_from_what_has_gone() {
        let seconds = Duration::from_secs;
        assert_eq!(left(seconds(10), 0.0, 0.25), Some(seconds(30)));
        assert_eq!(left(seconds(10), 0.5, 0.75), Some(seconds(10)));
        // Before it has gone on, and at its end, nothing is known.
        assert_eq!(left(seconds(10), 0.25, 0.25), None);
        assert_eq!(left(seconds(10), 0.0, 1.0), None);
        assert_eq!(left(seconds(10), 0.0, f64::MIN_POSITIVE), None);
        let told = [0, 59, 185, 7800, 370_800].map(|s| clock(seconds(s)));
        assert_eq!(
            told,
            ["0 s", "59 s", "3 min 05 s", "2 h 10 min", "4 d 07 h"]
        );
    }

    #[test]
    fn simulated_time_is_short_whatever_its_size() {
        let shown = [
            0.0,
            2880.0,
            0.1 + 0.2,
            -1.25,
            123_456.7,
            999_999.9,
            1e-4,
            1e-5,
            2.5e9,
            f64::INFINITY,
        ];
        let texts = [
            "0",
            "2880",
            "0.3",
            "-1.25",
            "123457",
            "1000000",
            "0.0001",
            "1.0000e-5",
            "2.5000e9",
            "inf",
        ];
        assert_eq!(shown.map(short), texts);
    }
}
