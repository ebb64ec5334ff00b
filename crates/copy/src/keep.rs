//! Copies that go on: what has changed at the sender is sent, again and again.

use std::convert::Infallible;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use titin_path::{Path, Request};

use crate::destination::Destination;
use crate::error::{CopyError, Result, malformed};
use crate::receiver::receive_round;
use crate::report::CopyProgress;
use crate::sender::send_round;
use crate::settings::{CopySettings, Watching};
use crate::sources::Sources;
use crate::walk::{Walk, WalkRules};
use crate::watch::{Changes, Watch};

/// Changes that follow each other within this time are sent together, unless the first of them has waited for longer than
/// the second time.
const QUIET_TIME: Duration = Duration::from_millis(50);
const LONGEST_GATHERING: Duration = Duration::from_secs(1);

/// How often a sender that waits for changes looks whether the receiver and the sources are still there.
const CHECK_PAUSE: Duration = Duration::from_secs(1);

/// The longest pause after a round that took long.
const LONGEST_REST: Duration = Duration::from_secs(10);

/// After a round in which something could not be copied, everything is looked at again after this time.
const RETRY_TIME: Duration = Duration::from_secs(60);

/// The shortest and the longest pause between two looks at all files.
const LOOK_PAUSES: (Duration, Duration) =
    (Duration::from_millis(10), Duration::from_secs(365 * 86400));

/// Sends all files of the sources, and then what has changed, until the path is closed or lost. A round
/// is followed by a pause that is as long, but for at most 10 s.
///
/// # Errors
/// [`CopyError`], at the latest once the receiver is gone.
pub fn keep_sending(
    path: &Path,
    sources: &Sources,
    settings: &CopySettings,
    progress: &mut dyn CopyProgress,
) -> std::result::Result<Infallible, CopyError> {
    sources.check_kept()?;
    let look_pause = match settings.watching {
        Some(Watching::Looks(pause)) => Some(pause.clamp(LOOK_PAUSES.0, LOOK_PAUSES.1)),
        _ => None,
    };
    let mut watch = match look_pause {
        Some(_) => None,
        None => Some(Watch::new()?),
    };
    let (mut changes, mut last_round) = (Changes::All, None);
    let mut next_look = NextLook::new(look_pause);
    loop {
        sources.check_same()?;
        let begun = Instant::now();
        let rules = WalkRules {
            may_vanish: true,
            last_round,
        };
        last_round = Some(seconds_since_1970());
        let walk = match &changes {
            Changes::All => Walk::all(sources.list(), watch.as_mut(), rules),
            Changes::Paths(paths) => Walk::changed(sources.list(), paths, watch.as_mut(), rules),
        };
        let round = send_round(path, sources, walk, settings, progress)?;
        if let Some(watch) = &mut watch {
            watch.forget_moved(sources.list());
        }
        let (now, took) = (Instant::now(), begun.elapsed());
        progress.round_over(&round.report, took);
        next_look.note_round(now, changes == Changes::All, round.may_be_tried_again);
        if round.lacks_more {
            changes = Changes::All;
            continue;
        }
        changes = Waiting {
            path,
            sources,
            next_look: next_look.time,
        }
        .next_changes(watch.as_mut())?;
        thread::sleep(took.min(LONGEST_REST).saturating_sub(now.elapsed()));
    }
}

/// Receives what [`keep_sending`] sends, until the path is closed or lost.
///
/// # Errors
/// [`CopyError`], at the latest once the sender is gone.
pub fn keep_receiving(
    path: &Path,
    destination: &Destination,
    settings: &CopySettings,
    progress: &mut dyn CopyProgress,
) -> std::result::Result<Infallible, CopyError> {
    loop {
        let (report, took) = receive_round(path, destination, settings, progress)?;
        progress.round_over(&report, took);
    }
}

fn seconds_since_1970() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs() as i64)
}

/// When everything is looked at again, whatever the system tells.
struct NextLook {
    /// The pause between two looks; `None` if the system tells of changes.
    pause: Option<Duration>,
    time: Option<Instant>,
}

impl NextLook {
    fn new(pause: Option<Duration>) -> Self {
        NextLook { pause, time: None }
    }

    /// Notes that a round has ended. What could not be copied is tried again by a look at everything, however many rounds
    /// with other changes come before.
    fn note_round(&mut self, now: Instant, is_look: bool, may_be_tried_again: bool) {
        if is_look {
            self.time = None;
        }
        self.time = match self.pause {
            Some(pause) => Some(now + pause),
            None if may_be_tried_again => self.time.or(Some(now + RETRY_TIME)),
            None => self.time,
        };
    }
}

/// Waits until there is something to send.
struct Waiting<'a> {
    path: &'a Path,
    sources: &'a Sources,
    next_look: Option<Instant>,
}

impl Waiting<'_> {
    fn next_changes(&self, watch: Option<&mut Watch>) -> Result<Changes> {
        // The receiver sends nothing meanwhile, so this call is done only if the path ends.
        let end = self.path.post_receive(());
        let changes = match watch {
            Some(watch) => self.watched_changes(watch, &end)?,
            None => loop {
                self.check(&end)?;
                match self.left() {
                    Duration::ZERO => break Changes::All,
                    left => thread::sleep(left),
                }
            },
        };
        if !end.cancel() {
            self.check(&end)?;
        }
        Ok(changes)
    }

    /// What the system tells next, or [`Changes::All`] at the time of the next look.
    fn watched_changes(&self, watch: &mut Watch, end: &Request) -> Result<Changes> {
        let mut changes = Changes::none();
        while changes.is_empty() {
            self.check(end)?;
            match self.left() {
                Duration::ZERO => return Ok(Changes::All),
                left if !watch.wait(left)? => continue,
                _ => {}
            }
            let first = Instant::now();
            while watch.take(&mut changes)? && first.elapsed() < LONGEST_GATHERING {
                thread::sleep(QUIET_TIME);
            }
        }
        Ok(changes)
    }

    /// How long to wait before the path and the sources are looked at, or before the next look if that comes first.
    fn left(&self) -> Duration {
        self.next_look.map_or(CHECK_PAUSE, |next| {
            next.saturating_duration_since(Instant::now())
                .min(CHECK_PAUSE)
        })
    }

    /// Fails if the path has ended, or a source is another directory.
    fn check(&self, end: &Request) -> Result<()> {
        if end.test() {
            end.outcome()?;
            return Err(malformed("a message between two rounds"));
        }
        self.sources.check_same()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_not_be_copied_is_tried_again_whatever_comes_between() {
        let begun = Instant::now();
        let second = |seconds| begun + Duration::from_secs(seconds);
        let mut look = NextLook::new(None);
        look.note_round(second(0), true, false);
        assert_eq!(look.time, None);
        look.note_round(second(1), false, true);
        look.note_round(second(2), false, false);
        look.note_round(second(3), false, true);
        assert_eq!(look.time, Some(second(61)));
        look.note_round(second(62), true, true);
        assert_eq!(look.time, Some(second(122)));
        look.note_round(second(123), true, false);
        assert_eq!(look.time, None);
        let mut look = NextLook::new(Some(Duration::from_secs(5)));
        look.note_round(second(1), true, true);
        assert_eq!(look.time, Some(second(6)));
    }
}
