//! How a call waits: at the doorbell of the instance, with a look after each ring.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use titin_transport::{Carrier, Inbox, IncomingMessage, Wake};
use titin_wire::ConduitId;
use titin_wire::control::{ToManager, WaitOn};

use super::Serial;
use crate::non_blocking::{PendingCalls, later};
use crate::port::{Port, PortEnd};
use crate::{Error, Kind, Result};

/// After this time in a wait this thread tells senders how many messages the instance has taken: a
/// sender may wait for room.
const TELL_AFTER: Duration = Duration::from_millis(100);

/// How long an instance counts as polling after a call that came back without a message.
const POLLING: Duration = Duration::from_secs(10);

/// How long a sleep lasts at most where the host program wants to be asked about signals.
pub(crate) const SLICE: Duration = Duration::from_millis(100);

/// The conduit, carrier and inbox of a wait, and how long the call waits.
#[derive(Clone, Copy, Default)]
pub(crate) struct Wait<'a> {
    /// The conduit of the call; none for closing.
    about: Option<ConduitId>,
    deadline: Option<Instant>,
    /// The one carrier that brings the awaited message. Without a carrier here the thread looks at
    /// all carriers of the instance.
    carrier: Option<&'a dyn Carrier>,
    /// The inbox whose next message the carrier may hand to this thread directly.
    inbox: Option<&'a Inbox>,
}

impl<'a> Wait<'a> {
    pub(crate) fn about(conduit: impl Into<Option<ConduitId>>) -> Self {
        Wait {
            about: conduit.into(),
            ..Wait::default()
        }
    }

    pub(crate) fn until(self, deadline: Option<Instant>) -> Self {
        Wait { deadline, ..self }
    }

    pub(crate) fn by(self, carrier: Option<&'a dyn Carrier>) -> Self {
        Wait { carrier, ..self }
    }

    pub(super) fn from(self, inbox: Option<&'a Inbox>) -> Self {
        Wait { inbox, ..self }
    }
}

/// How long a wait has lasted, and whether senders and the manager know of the wait.
struct WaitProgress {
    start: Instant,
    deadline: Option<Instant>,
    /// Whether senders know how many messages were taken, or need not know.
    acknowledged: bool,
    /// Whether the manager need not, or not any more, hear of the wait.
    silent: bool,
    /// The number by which the manager knows the wait.
    reported: Option<u64>,
    /// How many ends the report lists.
    listed: usize,
    /// When the host program was last asked about signals.
    asked: Instant,
}

impl WaitProgress {
    fn begin(deadline: Option<Instant>) -> Self {
        let start = Instant::now();
        // A wait with a deadline ends by itself: neither senders nor the manager need to hear of
        // the wait.
        let is_bounded = deadline.is_some();
        WaitProgress {
            start,
            deadline,
            acknowledged: is_bounded,
            silent: is_bounded,
            reported: None,
            listed: 0,
            asked: start,
        }
    }

    /// Whether the manager knows the wait as one for several ends.
    fn lists_several(&self) -> bool {
        self.reported.is_some() && self.listed > 1
    }
}

impl Serial {
    /// Waits until `look` finds something, the run fails, or the deadline passes; a non-blocking
    /// instance looks once.
    ///
    /// `on` lists for the manager what would end the wait. The manager does not hear of waits with
    /// a deadline.
    pub(crate) fn wait<T>(
        &self,
        wait: Wait<'_>,
        on: impl Fn() -> Vec<WaitOn>,
        mut look: impl FnMut() -> Result<Option<T>>,
    ) -> Result<T> {
        self.wait_for_message(wait, on, |_| look())
    }

    /// As [`Serial::wait`]. Where the wait has an inbox, `look` may get the next message of the
    /// inbox as an argument, and then finds a result.
    pub(super) fn wait_for_message<T>(
        &self,
        wait: Wait<'_>,
        on: impl Fn() -> Vec<WaitOn>,
        mut look: impl FnMut(Option<IncomingMessage>) -> Result<Option<T>>,
    ) -> Result<T> {
        if let Some(pending) = &self.reporter.pending {
            return self.look_once(pending, wait, on, || look(None));
        }
        wait.deadline
            .inspect(|deadline| self.note_poll(wait.about, *deadline));
        let mut progress = WaitProgress::begin(wait.deadline);
        let outcome = loop {
            let rings = self.core.bell.rings();
            if let Some(outcome) = self.found(progress.reported, &mut || look(None)) {
                break outcome;
            }
            // One of several senders has ended, and the report no longer holds.
            if progress.lists_several() && (1..progress.listed).contains(&on().len()) {
                self.report_wait(&mut progress, &on);
            }
            let limit = match self.sleep_limit(&progress) {
                Ok(limit) => limit,
                Err(late) => break Err(late),
            };
            let wake = match self.sleep(rings, limit, wait, &progress) {
                Err(wake) => wake,
                Ok(message) => match look(Some(message)).transpose() {
                    Some(outcome) => break outcome,
                    None => continue,
                },
            };
            if let Err(interrupted) = self.ask_about_signals(wake, &mut progress) {
                break Err(interrupted);
            }
            if wake == Wake::Timeout {
                self.tell_of_wait(&mut progress, &on);
            }
        };
        if let Some(number) = progress.reported {
            self.proceed(number);
        }
        self.end_poll(wait.deadline, &outcome);
        outcome
    }

    /// How long the thread may sleep before there is something to do. Fails once the deadline has
    /// passed.
    fn sleep_limit(&self, progress: &WaitProgress) -> Result<Option<Duration>> {
        let left = progress
            .deadline
            .map(|deadline| deadline.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return Err(time_is_over());
        }
        let patience = self.patience(progress);
        // The thread reads the clock once, and not at all where neither senders nor the manager
        // need to hear of the wait: a wait may be short.
        let so_far = if progress.acknowledged && patience.is_none() {
            Duration::ZERO
        } else {
            progress.start.elapsed()
        };
        let acknowledge = (!progress.acknowledged).then(|| TELL_AFTER.saturating_sub(so_far));
        let report = patience.map(|patience| patience.saturating_sub(so_far));
        let signals = self.core.interrupt.get().map(|_| SLICE);
        Ok([left, acknowledge, report, signals]
            .into_iter()
            .flatten()
            .min())
    }

    /// After how long the manager hears of a wait, and looks for deadlocks.
    fn patience(&self, progress: &WaitProgress) -> Option<Duration> {
        self.core.habits.patience.filter(|_| !progress.silent)
    }

    /// Sleeps until the doorbell rings or the limit passes. Returns the message, if the carrier has
    /// handed a message to this thread.
    fn sleep(
        &self,
        rings: u32,
        limit: Option<Duration>,
        wait: Wait<'_>,
        progress: &WaitProgress,
    ) -> std::result::Result<IncomingMessage, Wake> {
        let bell = &self.core.bell;
        // In a long wait a rank also listens to the ranks below, since a rank below may have
        // closed.
        let listens_below = progress.acknowledged && self.reporter.watches_ranks;
        let Some(carrier) = wait.carrier.filter(|_| !listens_below) else {
            let carriers = self.carriers();
            let carriers: Vec<&dyn Carrier> = carriers.iter().map(AsRef::as_ref).collect();
            return Err(bell.wait(rings, limit, &carriers));
        };
        // A message that the carrier hands over counts as taken before this thread knows of the
        // message. During a reported wait the manager must not see such a count.
        match wait.inbox.filter(|_| progress.reported.is_none()) {
            Some(inbox) => bell.wait_for(rings, limit, carrier, inbox),
            None => Err(bell.wait(rings, limit, &[carrier])),
        }
    }

    /// Asks the host program whether a signal ends the call.
    fn ask_about_signals(&self, wake: Wake, progress: &mut WaitProgress) -> Result<()> {
        let Some(interrupted) = self.core.interrupt.get() else {
            return Ok(());
        };
        if wake == Wake::Rung && progress.asked.elapsed() < SLICE {
            return Ok(());
        }
        progress.asked = Instant::now();
        match interrupted() {
            true => Err(Error::new(
                Kind::Interrupted,
                "a signal has interrupted the call",
            )),
            false => Ok(()),
        }
    }

    /// Tells senders how many messages were taken, and the manager of the wait, once the wait has
    /// lasted long enough.
    fn tell_of_wait(&self, progress: &mut WaitProgress, on: impl Fn() -> Vec<WaitOn>) {
        if !progress.acknowledged && progress.start.elapsed() >= TELL_AFTER {
            self.acknowledge();
            progress.acknowledged = true;
        }
        let patience = self.patience(progress);
        if patience.is_some_and(|patience| progress.start.elapsed() >= patience) {
            self.report_wait(progress, on);
        }
    }

    fn report_wait(&self, progress: &mut WaitProgress, on: impl Fn() -> Vec<WaitOn>) {
        progress.silent = true;
        let on = on();
        progress.listed = on.len();
        progress.reported = self.report(on);
    }

    /// The result of `look`, or the error that ends the wait.
    ///
    /// While `look` runs, the manager does not see the wait: the call may already have taken a
    /// message, and may run a filter of the user. So a call in a wait that the manager sees has
    /// taken nothing.
    fn found<T>(
        &self,
        reported: Option<u64>,
        look: &mut impl FnMut() -> Result<Option<T>>,
    ) -> Option<Result<T>> {
        if reported.is_some() {
            self.stand(None);
        }
        match look() {
            Ok(None) if self.is_over() => self.check().and_then(|()| self.alive()).err().map(Err),
            Ok(None) => {
                if self.reporter.watches_ranks
                    && let Some(above) = self.upper_layers()
                    && let Err(error) = above.while_waiting()
                {
                    return Some(Err(error));
                }
                if reported.is_some() {
                    self.stand(reported);
                }
                None
            }
            found => found.transpose(),
        }
    }

    /// Keeps the number of the wait for the manager's next question.
    fn stand(&self, wait: Option<u64>) {
        *self.reporter.waiting.lock().expect("never poisoned") = wait;
    }

    /// Looks once. Without success the call is pending, and the doorbell puts the instance on its
    /// list once the program should make the call again.
    fn look_once<T>(
        &self,
        pending: &PendingCalls,
        wait: Wait<'_>,
        on: impl Fn() -> Vec<WaitOn>,
        mut look: impl FnMut() -> Result<Option<T>>,
    ) -> Result<T> {
        let Wait {
            about, deadline, ..
        } = wait;
        deadline.inspect(|deadline| self.note_poll(about, *deadline));
        let outcome = loop {
            let rings = self.core.bell.rings();
            if let Some(outcome) = self.found(pending.reported(about), &mut look) {
                break outcome;
            }
            if let Err(late) = self.tell_of_pending(pending, wait, &on) {
                break Err(late);
            }
            if self.core.bell.arm(rings, &self.carriers()) {
                if deadline.is_some() {
                    self.core.process.look_soon();
                }
                return Err(Error::pending());
            }
        };
        if let Some(number) = pending.proceeds(about) {
            self.proceed(number);
        }
        self.end_poll(deadline, &outcome);
        outcome
    }

    /// As [`Serial::tell_of_wait`], of a pending call. Fails once the deadline has passed.
    fn tell_of_pending(
        &self,
        pending: &PendingCalls,
        wait: Wait<'_>,
        on: impl Fn() -> Vec<WaitOn>,
    ) -> Result<()> {
        let Wait {
            about, deadline, ..
        } = wait;
        let (late, tell, report, crowded) = pending.call(about, deadline, |call, others| {
            let so_far = call.since.elapsed();
            let tell = !call.told && so_far >= self.composed(TELL_AFTER);
            call.told |= tell;
            let patience = self.core.habits.patience.filter(|_| !call.silent);
            let patience = patience.map(|patience| self.composed(patience));
            let report = patience.is_some_and(|patience| so_far >= patience);
            call.silent |= report;
            (call.is_late(), tell, report, others > 0)
        });
        if late {
            return Err(time_is_over());
        }
        if tell {
            self.acknowledge();
        }
        if crowded {
            // Any of several calls may go on, and the manager has heard of one call alone.
            self.leave_search();
        }
        if report {
            let reported = self.report(on());
            pending.call(about, deadline, |call, _| call.reported = reported);
        }
        Ok(())
    }

    /// Reports no more waits of the instance, and tells the manager that the reported waits are
    /// over.
    pub(crate) fn leave_search(&self) {
        if !self.reporter.unwatched.swap(true, Ordering::Relaxed)
            && let Some(pending) = &self.reporter.pending
        {
            pending
                .take_reports()
                .into_iter()
                .for_each(|wait| self.proceed(wait));
        }
    }

    /// Forgets pending calls of a non-blocking instance that the program will not make again: calls
    /// about conduits of the given port, or of the given place of the port, or all calls.
    pub(crate) fn give_up(&self, port: Option<&Port>, place: Option<usize>) {
        let Some(pending) = &self.reporter.pending else {
            return;
        };
        let here = |index: usize| place.is_none_or(|place| place == index);
        let receives = |port: &Port, conduit| {
            let mut inlets = port
                .inlets
                .iter()
                .enumerate()
                .filter(|(index, _)| here(*index));
            inlets.any(|(_, inlet)| {
                inlet
                    .as_ref()
                    .is_some_and(|inlet| inlet.end.conduit == conduit)
            })
        };
        let sends = |port: &Port, conduit| {
            let mut outlets = port
                .outlets
                .iter()
                .enumerate()
                .filter(|(index, _)| here(*index));
            outlets.any(|(_, outlets)| outlets.iter().any(|outlet| outlet.end.conduit == conduit))
        };
        let given_up = |who: Option<ConduitId>| {
            port.is_none_or(|port| who.is_some_and(|who| receives(port, who) || sends(port, who)))
        };
        pending
            .forget(given_up)
            .into_iter()
            .for_each(|wait| self.proceed(wait));
    }

    /// Notes that a call of a non-blocking instance about this conduit goes on. Returns how long
    /// the call had been pending, if at all.
    pub(crate) fn went_on(&self, who: ConduitId) -> Option<Duration> {
        let pending = self.reporter.pending.as_ref()?;
        if let Some(wait) = pending.proceeds(Some(who)) {
            self.proceed(wait);
        }
        Some(pending.lasted()).filter(|lasted| !lasted.is_zero())
    }

    /// Counts how long a wait on the given end takes.
    pub(crate) fn counted<T>(&self, end: &PortEnd, wait: impl FnOnce() -> Result<T>) -> Result<T> {
        let start = self.profile.trace.clock();
        let outcome = wait();
        end.meter.waited(self.waited_since(start));
        outcome
    }

    /// How long a call has waited since `start`. A pending call may have begun before.
    pub(crate) fn waited_since(&self, start: Instant) -> Duration {
        if self.profile.trace.off {
            return Duration::ZERO;
        }
        let before = self
            .reporter
            .pending
            .as_ref()
            .map(PendingCalls::lasted)
            .unwrap_or_default();
        start.elapsed().max(before)
    }

    /// When a call about this conduit began to wait, for the trace; 0 if the trace keeps no rows.
    pub(crate) fn start_of_wait(&self, who: Option<ConduitId>) -> i64 {
        if !self.profile.trace.on {
            return 0;
        }
        let pending = self
            .reporter
            .pending
            .as_ref()
            .and_then(|pending| pending.since(who));
        pending.map_or_else(
            || self.profile.trace.now(),
            |since| self.profile.trace.at(since),
        )
    }

    /// Notes that a call about this conduit comes back at `until` at the latest, with or without a
    /// message. `None` for a call that has just come back: [`Serial::polls`] reads the clock later.
    #[inline(always)]
    pub(crate) fn note_poll(&self, about: Option<ConduitId>, until: impl Into<Option<Instant>>) {
        *self.reporter.polled.lock() = about.map(|conduit| (conduit, until.into()));
    }

    /// Notes that a call with a deadline has succeeded: the program works on the result, and does
    /// not poll.
    fn end_poll<T>(&self, deadline: Option<Instant>, outcome: &Result<T>) {
        if deadline.is_some() && outcome.is_ok() {
            *self.reporter.polled.lock() = None;
        }
    }

    /// The conduit that the program polls, if any.
    pub(crate) fn polls(&self) -> Option<WaitOn> {
        let now = Instant::now();
        // A call without a clock reading has come back since the last question of the manager.
        let (conduit, until) = self
            .reporter
            .polled
            .lock()
            .as_mut()
            .map(|(id, until)| (*id, *until.get_or_insert(now)))?;
        let (_, inlet) = self
            .inlets()
            .find(|(_, inlet)| inlet.end.conduit == conduit)?;
        let lately = later(until, POLLING).is_none_or(|end| now < end);
        self.wait_on(&inlet.end, None, Some(inlet))
            .filter(|_| lately)
    }

    /// Rings the doorbell if a pending call is due without news, so that the program makes the call
    /// again. Otherwise returns when the next pending call is due.
    pub(crate) fn nudge_pending(&self, now: Instant) -> Option<Instant> {
        let patience = self
            .core
            .habits
            .patience
            .map(|patience| self.composed(patience));
        let due = self
            .reporter
            .pending
            .as_ref()?
            .due(self.composed(TELL_AFTER), patience)?;
        if due > now {
            return Some(due);
        }
        self.core.bell.ring();
        None
    }

    /// The patience of a pending call: 1 ms for each instance of the process at least, since
    /// instances take turns.
    fn composed(&self, patience: Duration) -> Duration {
        patience.max(Duration::from_millis(self.core.process.crowd() as u64))
    }

    /// Tells the manager that a reported wait is over.
    fn proceed(&self, wait: u64) {
        self.stand(None);
        self.tell(&ToManager::Proceed {
            instance: self.core.name.clone(),
            wait,
        });
    }

    /// Whether several threads or tasks call the instance: one thread may act while the others
    /// wait.
    pub(crate) fn is_shared(&self) -> bool {
        self.core.threaded.load(Ordering::Relaxed)
            || self.reporter.unwatched.load(Ordering::Relaxed)
    }

    /// Tells the manager of a wait. Returns the number of the wait; `None` if the report would say
    /// nothing.
    fn report(&self, on: Vec<WaitOn>) -> Option<u64> {
        if self.is_shared() || on.is_empty() {
            return None;
        }
        self.upper_layers()
            .iter()
            .for_each(|above| above.wait_reported());
        let wait = self.reporter.waits.fetch_add(1, Ordering::Relaxed) + 1;
        self.stand(Some(wait));
        self.tell(&ToManager::Waiting {
            instance: self.core.name.clone(),
            wait,
            on,
        });
        Some(wait)
    }
}

fn time_is_over() -> Error {
    Error::new(Kind::Timeout, "the time given to the call is over")
}
