//! How the pump learns of new files: by notices of the system (inotify), and by looking again and
//! again.
//!
//! The system reports changes by processes of the same host, but no changes by other hosts in a
//! network file system. So the pump also looks by itself: often after something has happened, then
//! less and less often.

use std::collections::HashSet;
use std::mem::MaybeUninit;
use std::path::Path;
use std::time::Duration;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use titin_os::Descriptor;

/// The first pause between two looks, and the longest: for an end whose other end is on this host,
/// as notices have shown, and for any other end. Each pause is longer than the one before by a
/// [`GROWTH`]-th, so what happens after a quiet time waits for about a `GROWTH`-th of that time.
const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_millis(20);
const LONGEST_WITH_NOTICES: Duration = Duration::from_secs(1);

const GROWTH: u32 = 8;

/// Bytes of the buffer for notices.
const BUFFER: usize = 4096;

/// The number of a watched folder.
pub(super) type WatchNumber = i32;

/// The watched folders.
pub(super) struct Notices {
    /// `None` where the system has no notices left for this user.
    inotify: Option<Descriptor>,
}

/// The notices that have come.
#[derive(Default)]
pub(super) struct Changes {
    folders: HashSet<WatchNumber>,
    /// Whether the system has dropped some notices.
    are_incomplete: bool,
}

impl Changes {
    pub(super) fn has(&self, watch: Option<WatchNumber>) -> bool {
        self.are_incomplete || watch.is_some_and(|watch| self.folders.contains(&watch))
    }
}

impl Notices {
    pub(super) fn new() -> Self {
        let flags = CreateFlags::NONBLOCK | CreateFlags::CLOEXEC;
        Notices {
            inotify: inotify::init(flags).ok().map(Descriptor::from),
        }
    }

    /// The descriptor that is readable when there are notices.
    pub(super) fn descriptor(&self) -> Option<&Descriptor> {
        self.inotify.as_ref()
    }

    /// Watches a folder for files that get their final names.
    pub(super) fn watch_arrivals(&self, folder: &Path) -> Option<WatchNumber> {
        self.watch(folder, WatchFlags::MOVED_TO)
    }

    /// Watches a folder for files that are deleted.
    pub(super) fn watch_deletions(&self, folder: &Path) -> Option<WatchNumber> {
        self.watch(folder, WatchFlags::DELETE)
    }

    fn watch(&self, folder: &Path, flags: WatchFlags) -> Option<WatchNumber> {
        inotify::add_watch(self.inotify.as_ref()?, folder, flags | WatchFlags::ONLYDIR).ok()
    }

    pub(super) fn forget(&self, watch: WatchNumber) {
        if let Some(inotify) = &self.inotify {
            let _ = inotify::remove_watch(inotify, watch);
        }
    }

    /// Takes the notices that have come.
    pub(super) fn take(&self) -> Changes {
        let mut changes = Changes::default();
        let Some(inotify) = &self.inotify else {
            return changes;
        };
        let mut buffer = [MaybeUninit::uninit(); BUFFER];
        let mut reader = Reader::new(inotify, &mut buffer);
        while let Ok(event) = reader.next() {
            changes.are_incomplete |= event.events().contains(ReadFlags::QUEUE_OVERFLOW);
            changes.folders.insert(event.wd());
        }
        changes
    }
}

/// The pauses between two looks.
pub(super) struct LookPauses(Duration);

impl Default for LookPauses {
    fn default() -> Self {
        LookPauses(SHORTEST)
    }
}

impl LookPauses {
    /// Something has happened, and more may follow soon.
    pub(super) fn shorten(&mut self) {
        self.0 = SHORTEST;
    }

    /// The pause from one look to the next. `have_notices` says whether notices have told of
    /// everything so far.
    pub(super) fn next(&mut self, have_notices: bool) -> Duration {
        let longest = if have_notices {
            LONGEST_WITH_NOTICES
        } else {
            LONGEST
        };
        let pause = self.0.min(longest);
        self.0 = (pause + pause / GROWTH).min(longest);
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_after_a_short_quiet_time_does_not_wait_long() {
        let (mut pauses, mut quiet) = (LookPauses::default(), Duration::ZERO);
        while quiet < Duration::from_secs(20) {
            let pause = pauses.next(true);
            assert!(pause <= SHORTEST + quiet / 4, "{pause:?} after {quiet:?}");
            assert!(pause <= LONGEST_WITH_NOTICES);
            quiet += pause;
        }
        assert_eq!(pauses.next(true), LONGEST_WITH_NOTICES);
        assert_eq!(pauses.next(false), LONGEST);
    }
}
