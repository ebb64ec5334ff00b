//! How an instance waits: at its doorbell, looking each time whether what it needs is there.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use titin_transport::{Carrier, Wake};
use titin_wire::control::{ToManager, WaitOn};

use crate::instance::Inner;
use crate::{Error, Kind, Result};

/// In a wait that lasts longer, senders are told what was taken: one of them may be waiting for that.
const TELL_AFTER: Duration = Duration::from_millis(100);

/// How long a sleep lasts at most where the host program wants to be asked about signals.
pub(crate) const SLICE: Duration = Duration::from_millis(100);

impl Inner {
    /// Waits until `poll` finds what it looks for, the run fails, or the deadline passes.
    ///
    /// `on` says what would end the wait, for the manager; waits with a deadline end by themselves and are not
    /// reported. `carrier` is by which it comes, if that is one alone.
    pub(crate) fn wait<T>(
        &self,
        deadline: Option<Instant>,
        carrier: Option<&dyn Carrier>,
        on: impl Fn() -> Vec<WaitOn>,
        mut poll: impl FnMut() -> Result<Option<T>>,
    ) -> Result<T> {
        let start = Instant::now();
        // Waits with a deadline end by themselves: nobody needs to hear of them.
        let (mut told, mut silent, mut reported) = (deadline.is_some(), deadline.is_some(), None);
        let mut asked = start;
        let outcome = loop {
            let rings = self.bell.rings();
            match poll() {
                Ok(None) => {}
                Ok(Some(found)) => break Ok(found),
                Err(error) => break Err(error),
            }
            if let Err(error) = self.check().and_then(|()| self.alive()) {
                break Err(error);
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                break Err(Error::new(Kind::Timeout, "the time given to the call is over"));
            }
            // A wait that lasts is reported to the manager, who looks for deadlocks.
            let patience = self.habits.patience.filter(|_| !silent);
            // One look at the clock, and none where nobody is to hear of it: a wait may be short.
            let so_far = if told && patience.is_none() { Duration::ZERO } else { start.elapsed() };
            let tell = (!told).then(|| TELL_AFTER.saturating_sub(so_far));
            let report = patience.map(|patience| patience.saturating_sub(so_far));
            let slice = self.interrupt.get().map(|_| SLICE);
            let limit = [left, tell, report, slice].into_iter().flatten().min();
            let wake = self.bell.wait(rings, limit, carrier);
            if let Some(interrupted) = self.interrupt.get()
                && (wake != Wake::Rung || asked.elapsed() >= SLICE)
            {
                asked = Instant::now();
                if interrupted() {
                    break Err(Error::new(Kind::Interrupted, "a signal has interrupted the call"));
                }
            }
            if wake == Wake::Timeout && !told && start.elapsed() >= TELL_AFTER {
                self.flush_acknowledgements();
                told = true;
            }
            if wake == Wake::Timeout && patience.is_some_and(|patience| start.elapsed() >= patience) {
                silent = true;
                reported = self.report(on());
            }
        };
        if let Some(wait) = reported {
            *self.waiting.lock().expect("never poisoned") = None;
            self.tell(&ToManager::Proceed { instance: self.name.clone(), wait });
        }
        outcome
    }

    /// Tells the manager of a wait; its number. `None` if that would tell nothing: the instance is called by several
    /// threads, one of which may act while the others wait.
    fn report(&self, on: Vec<WaitOn>) -> Option<u64> {
        if self.threaded.load(Ordering::Relaxed) || on.is_empty() {
            return None;
        }
        let wait = self.waits.fetch_add(1, Ordering::Relaxed) + 1;
        *self.waiting.lock().expect("never poisoned") = Some(wait);
        self.tell(&ToManager::Waiting { instance: self.name.clone(), wait, on });
        Some(wait)
    }
}
