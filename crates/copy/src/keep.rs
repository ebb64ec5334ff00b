//! Copies that go on: what has changed at the sender is sent, again and again.

use std::convert::Infallible;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use titin_path::{Path, Request};

use crate::destination::Destination;
use crate::error::{CopyError, Result, malformed};
use crate::receiver::receive;
use crate::report::{CopyProgress, CopyReport};
use crate::sender::send_round;
use crate::settings::{CopySettings, Watching};
use crate::walk::{NamedSource, SourceKind, Walk, WalkRules};
use crate::watch::{Changes, Watch};

/// Changes that follow each other within this time are sent together, unless the first of them has waited for longer than
/// the second time.
const QUIET_TIME: Duration = Duration::from_millis(50);
const LONGEST_GATHERING: Duration = Duration::from_secs(1);

/// How often a sender that waits for changes looks whether the receiver is still there.
const PATH_PAUSE: Duration = Duration::from_secs(1);

/// The longest pause after a round that took long.
const LONGEST_REST: Duration = Duration::from_secs(10);

/// After a round in which something could not be copied, everything is looked at again after this time.
const RETRY_TIME: Duration = Duration::from_secs(60);

/// Sends all files of the sources, and then what has changed, until the path is closed or lost. A round
/// is followed by a pause that is as long, but for at most 10 s.
///
/// # Errors
/// [`CopyError`], at the latest once the receiver is gone.
pub fn keep_sending(
    path: &Path,
    sources: &[PathBuf],
    settings: &CopySettings,
    progress: &mut dyn CopyProgress,
) -> Result<Infallible> {
    let sources = NamedSource::all(sources)?;
    let mut watch = match settings.watching {
        Some(Watching::Looks(_)) => None,
        _ => Some(Watch::new()?),
    };
    let (mut changes, mut last_round) = (Changes::All, None);
    loop {
        check_sources(&sources)?;
        let begun = Instant::now();
        let rules = WalkRules {
            may_vanish: true,
            last_round,
        };
        last_round = Some(seconds_since_1970());
        let walk = match &changes {
            Changes::All => Walk::all(&sources, watch.as_mut(), rules),
            Changes::Paths(paths) => Walk::changed(&sources, paths, watch.as_mut(), rules),
        };
        let report = send_round(path, &sources, walk, settings, progress)?;
        let took = begun.elapsed();
        progress.round_over(&report, took);
        changes = next_changes(path, watch.as_mut(), settings, &report, took)?;
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
) -> Result<Infallible> {
    loop {
        let begun = Instant::now();
        let report = receive(path, destination, settings, progress)?;
        progress.round_over(&report, begun.elapsed());
    }
}

fn seconds_since_1970() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs() as i64)
}

/// Checks that the sources are still the same directories. A source that was moved away, or whose file system was, has no
/// files, and the receiver is not to remove all of its own for that.
fn check_sources(sources: &[NamedSource]) -> Result<()> {
    for source in sources {
        let place = |why: &dyn std::fmt::Display| {
            CopyError::Place(format!("{}: {why}", source.here.display()))
        };
        if source.told.kind == SourceKind::File {
            let why = "it is no directory; a single file goes by `titin copy`";
            return Err(place(&why));
        }
        let now = fs::metadata(&source.here).map_err(|error| place(&error))?;
        if (now.dev(), now.ino()) != source.told.identity {
            return Err(place(&"it is another directory than before"));
        }
    }
    Ok(())
}

/// Waits until there is something to send.
fn next_changes(
    path: &Path,
    watch: Option<&mut Watch>,
    settings: &CopySettings,
    report: &CopyReport,
    took: Duration,
) -> Result<Changes> {
    // The receiver sends nothing meanwhile, so this call is done only if the path ends.
    let end = path.post_receive(());
    let begun = Instant::now();
    let pause = match settings.watching {
        Some(Watching::Looks(pause)) => Some(pause),
        _ => (report.not_copied > 0).then_some(RETRY_TIME),
    };
    let next_look = pause.map(|pause| begun + pause);
    let changes = match watch {
        Some(watch) => watched_changes(watch, &end, next_look)?,
        None => loop {
            check_end(&end)?;
            match left(next_look) {
                Duration::ZERO => break Changes::All,
                left => thread::sleep(left),
            }
        },
    };
    thread::sleep(took.min(LONGEST_REST).saturating_sub(begun.elapsed()));
    if !end.cancel() {
        check_end(&end)?;
    }
    Ok(changes)
}

/// What the system tells next, or [`Changes::All`] at `next_look`.
fn watched_changes(
    watch: &mut Watch,
    end: &Request,
    next_look: Option<Instant>,
) -> Result<Changes> {
    let mut changes = Changes::none();
    while changes.is_empty() {
        check_end(end)?;
        match left(next_look) {
            Duration::ZERO => return Ok(Changes::All),
            left if !watch.wait(left)? => continue,
            _ => {}
        }
        let first = Instant::now();
        watch.take(&mut changes)?;
        while first.elapsed() < LONGEST_GATHERING && watch.wait(QUIET_TIME)? {
            watch.take(&mut changes)?;
        }
    }
    Ok(changes)
}

/// How long to wait before the path is looked at, or before `next_look` if that comes first.
fn left(next_look: Option<Instant>) -> Duration {
    next_look.map_or(PATH_PAUSE, |next| {
        next.saturating_duration_since(Instant::now())
            .min(PATH_PAUSE)
    })
}

/// Returns the error of a path that has ended.
fn check_end(end: &Request) -> Result<()> {
    if end.test() {
        end.outcome()?;
        return Err(malformed("a message between two rounds"));
    }
    Ok(())
}
