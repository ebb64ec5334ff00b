//! How an instance waits: at its doorbell, looking each time whether what it needs is there.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use titin_transport::{Carrier, Inbox, IncomingMessage, Wake};
use titin_wire::ConduitId;
use titin_wire::control::{ToManager, WaitOn};

use crate::instance::Inner;
use crate::light::Light;
use crate::port::{End, Port};
use crate::ranks::is_between_ranks;
use crate::{Error, Kind, Result};

/// In a wait that lasts longer, senders are told what was taken: one of them may be waiting for that.
const TELL_AFTER: Duration = Duration::from_millis(100);

/// How long after a call that came back with nothing an instance counts as one that polls.
const POLLING: Duration = Duration::from_secs(10);

/// How long a sleep lasts at most where the host program wants to be asked about signals.
pub(crate) const SLICE: Duration = Duration::from_millis(100);

/// So much later; `None` if that is beyond the clock's range, and so never.
pub(crate) fn later(time: Instant, by: Duration) -> Option<Instant> {
    time.checked_add(by)
}

impl Inner {
    /// Waits until `poll` finds what it looks for, the run fails, or the deadline passes; a light instance looks once.
    ///
    /// `who` is the conduit that the call is about, none for closing.
    /// `on` says what would end the wait, for the manager; waits with a deadline end by themselves and are not
    /// reported. `carrier` is by which it comes, if that is one alone; else all of the instance's are looked at.
    pub(crate) fn wait<T>(
        &self,
        who: Option<ConduitId>,
        deadline: Option<Instant>,
        carrier: Option<&dyn Carrier>,
        on: impl Fn() -> Vec<WaitOn>,
        poll: impl FnMut() -> Result<Option<T>>,
    ) -> Result<T> {
        let nobody = |_| {
            Err(Error::new(
                Kind::Internal,
                "a message that nobody waits for",
            ))
        };
        self.wait_directly(who, deadline, carrier, None, on, poll, nobody)
    }

    /// As [`Inner::wait`]; the next message of `direct` may be handed to `take` as it comes.
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn wait_directly<T>(
        &self,
        who: Option<ConduitId>,
        deadline: Option<Instant>,
        carrier: Option<&dyn Carrier>,
        direct: Option<&Inbox>,
        on: impl Fn() -> Vec<WaitOn>,
        mut poll: impl FnMut() -> Result<Option<T>>,
        take: impl FnOnce(IncomingMessage) -> Result<T>,
    ) -> Result<T> {
        if let Some(light) = &self.light {
            return self.look(light, who, deadline, on, poll);
        }
        let start = Instant::now();
        deadline.inspect(|deadline| self.note_poll(who, *deadline));
        // Waits with a deadline end by themselves: nobody needs to hear of them.
        let (mut told, mut silent, mut reported) = (deadline.is_some(), deadline.is_some(), None);
        let mut asked = start;
        let outcome = loop {
            let rings = self.bell.rings();
            if let Some(outcome) = self.found(reported, &mut poll) {
                break outcome;
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                break Err(Error::new(
                    Kind::Timeout,
                    "the time given to the call is over",
                ));
            }
            // A wait that lasts is reported to the manager, who looks for deadlocks.
            let patience = self.habits.patience.filter(|_| !silent);
            // One look at the clock, and none where nobody is to hear of it: a wait may be short.
            let so_far = if told && patience.is_none() {
                Duration::ZERO
            } else {
                start.elapsed()
            };
            let tell = (!told).then(|| TELL_AFTER.saturating_sub(so_far));
            let report = patience.map(|patience| patience.saturating_sub(so_far));
            let slice = self.interrupt.get().map(|_| SLICE);
            let limit = [left, tell, report, slice].into_iter().flatten().min();
            // In a wait that lasts a rank also hears those below, which may have closed.
            let carrier =
                carrier.filter(|_| !told || self.ranks.is_none_or(|ranks| ranks.below.is_none()));
            // What is handed over is counted as taken before this knows of it, which a reported wait must not show.
            let wake = match (carrier, direct.filter(|_| reported.is_none())) {
                (Some(carrier), Some(inbox)) => {
                    match self.bell.wait_for(rings, limit, carrier, inbox) {
                        Ok(message) => break take(message),
                        Err(wake) => wake,
                    }
                }
                (Some(carrier), None) => self.bell.wait(rings, limit, &[carrier]),
                (None, _) => {
                    let carriers = self.carriers();
                    let carriers: Vec<&dyn Carrier> = carriers.iter().map(AsRef::as_ref).collect();
                    self.bell.wait(rings, limit, &carriers)
                }
            };
            if let Some(interrupted) = self.interrupt.get()
                && (wake != Wake::Rung || asked.elapsed() >= SLICE)
            {
                asked = Instant::now();
                if interrupted() {
                    break Err(Error::new(
                        Kind::Interrupted,
                        "a signal has interrupted the call",
                    ));
                }
            }
            if wake == Wake::Timeout && !told && start.elapsed() >= TELL_AFTER {
                self.flush_acknowledgements();
                told = true;
            }
            if wake == Wake::Timeout && patience.is_some_and(|patience| start.elapsed() >= patience)
            {
                silent = true;
                reported = self.report(on());
            }
        };
        if let Some(wait) = reported {
            self.proceed(wait);
        }
        self.end_poll(deadline, &outcome);
        outcome
    }

    /// What `poll` has found, or why there is no use in looking any more.
    ///
    /// While it looks, the wait that was reported is none: it may have taken what it waits for already, and be at work on
    /// that in a filter of the user's. So a wait that stands has taken nothing that it goes on for.
    fn found<T>(
        &self,
        reported: Option<u64>,
        poll: &mut impl FnMut() -> Result<Option<T>>,
    ) -> Option<Result<T>> {
        if reported.is_some() {
            self.stand(None);
        }
        match poll() {
            Ok(None) if self.is_over() => self.check().and_then(|()| self.alive()).err().map(Err),
            Ok(None) => {
                if let Err(error) = self.look_below() {
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

    /// Keeps the number of the wait that the manager is told when it asks.
    fn stand(&self, wait: Option<u64>) {
        *self.waiting.lock().expect("never poisoned") = wait;
    }

    /// Looks whether `poll` finds what it looks for. If not the call is pending, and the bell tells when to make it again.
    fn look<T>(
        &self,
        light: &Light,
        who: Option<ConduitId>,
        deadline: Option<Instant>,
        on: impl Fn() -> Vec<WaitOn>,
        mut poll: impl FnMut() -> Result<Option<T>>,
    ) -> Result<T> {
        deadline.inspect(|deadline| self.note_poll(who, *deadline));
        let outcome = loop {
            let rings = self.bell.rings();
            if let Some(outcome) = self.found(light.reported(who), &mut poll) {
                break outcome;
            }
            let (late, tell, report, crowded) = light.call(who, deadline, |call, others| {
                let so_far = call.since.elapsed();
                let tell = !call.told && so_far >= self.composed(TELL_AFTER);
                call.told |= tell;
                let patience = self.habits.patience.filter(|_| !call.silent);
                let patience = patience.map(|patience| self.composed(patience));
                let report = patience.is_some_and(|patience| so_far >= patience);
                call.silent |= report;
                (call.is_late(), tell, report, others > 0)
            });
            if late {
                break Err(Error::new(
                    Kind::Timeout,
                    "the time given to the call is over",
                ));
            }
            if tell {
                self.flush_acknowledgements();
            }
            if crowded {
                // Any of several calls may go on, and what the manager heard was about one.
                self.leave_search();
            }
            if report {
                let reported = self.report(on());
                light.call(who, deadline, |call, _| call.reported = reported);
            }
            if self.bell.arm(rings, &self.carriers()) {
                if deadline.is_some() {
                    self.process.look_soon();
                }
                return Err(Error::pending());
            }
        };
        if let Some(wait) = light.proceeds(who) {
            self.proceed(wait);
        }
        self.end_poll(deadline, &outcome);
        outcome
    }

    /// No wait of the instance is reported any more, and the manager hears that those are over of which it has heard.
    pub(crate) fn leave_search(&self) {
        if !self.unwatched.swap(true, Ordering::Relaxed)
            && let Some(light) = &self.light
        {
            light
                .take_reports()
                .into_iter()
                .for_each(|wait| self.proceed(wait));
        }
    }

    /// A light instance's calls will not be made again: those about conduits that end at this port, or at this place of it, or
    /// all.
    pub(crate) fn give_up(&self, port: Option<&Port>, place: Option<usize>) {
        let Some(light) = &self.light else { return };
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
        light
            .forget(given_up)
            .into_iter()
            .for_each(|wait| self.proceed(wait));
    }

    /// A light instance's call goes on, about this conduit; how long it had been pending, if it was.
    pub(crate) fn went_on(&self, who: ConduitId) -> Option<Duration> {
        let light = self.light.as_ref()?;
        if let Some(wait) = light.proceeds(Some(who)) {
            self.proceed(wait);
        }
        Some(light.lasted()).filter(|lasted| !lasted.is_zero())
    }

    /// Counts how long a wait on this end takes.
    pub(crate) fn counted<T>(&self, end: &End, wait: impl FnOnce() -> Result<T>) -> Result<T> {
        let start = self.trace.clock();
        let outcome = wait();
        end.meter.waited(self.waited_since(start));
        outcome
    }

    /// How long a call has waited that began so: a light one may have begun before.
    pub(crate) fn waited_since(&self, start: Instant) -> Duration {
        if self.trace.off {
            return Duration::ZERO;
        }
        let before = self.light.as_ref().map(Light::lasted).unwrap_or_default();
        start.elapsed().max(before)
    }

    /// When a call about this conduit began to wait, for the trace; 0 if no rows are kept.
    pub(crate) fn start_of_wait(&self, who: Option<ConduitId>) -> i64 {
        if !self.trace.on {
            return 0;
        }
        let pending = self.light.as_ref().and_then(|light| light.since(who));
        pending.map_or_else(|| self.trace.now(), |since| self.trace.at(since))
    }

    /// Notes that a call about this conduit comes back then at the latest, with or without what it looks for. None for
    /// one that has just come back: the clock is left for [`Inner::polls`] to read.
    #[inline(always)]
    pub(crate) fn note_poll(&self, about: Option<ConduitId>, until: impl Into<Option<Instant>>) {
        *self.polled.lock() = about.map(|conduit| (conduit, until.into()));
    }

    /// Notes that a call with a deadline has found what it looked for: the program is at work on that, and polls nothing.
    fn end_poll<T>(&self, deadline: Option<Instant>, outcome: &Result<T>) {
        if deadline.is_some() && outcome.is_ok() {
            *self.polled.lock() = None;
        }
    }

    /// What the instance looks for by calls that do not wait for it, if it makes such calls.
    pub(crate) fn polls(&self) -> Option<WaitOn> {
        let now = Instant::now();
        // Of a call that read no clock it is known that it was made since the last question.
        let (conduit, until) = self
            .polled
            .lock()
            .as_mut()
            .map(|(id, until)| (*id, *until.get_or_insert(now)))?;
        let (_, inlet) = self
            .inlets()
            .find(|(_, inlet)| inlet.end.conduit == conduit)?;
        let lately = later(until, POLLING).is_none_or(|end| now < end);
        lately.then(|| self.wait_on(&inlet.end, None, Some(inlet)))
    }

    /// Has a pending call made again that is due although nothing has come for it; when the next one will be.
    pub(crate) fn nudge(&self, now: Instant) -> Option<Instant> {
        let patience = self.habits.patience.map(|patience| self.composed(patience));
        let due = self
            .light
            .as_ref()?
            .due(self.composed(TELL_AFTER), patience)?;
        if due > now {
            return Some(due);
        }
        self.bell.ring();
        None
    }

    /// How long a pending call keeps quiet instead: where thousands take turns, to wait long says little.
    fn composed(&self, patience: Duration) -> Duration {
        patience.max(Duration::from_millis(self.process.crowd() as u64))
    }

    /// Tells the manager that a wait is over of which it has heard.
    fn proceed(&self, wait: u64) {
        self.stand(None);
        self.tell(&ToManager::Proceed {
            instance: self.name.clone(),
            wait,
        });
    }

    /// Whether several threads or tasks call the instance, one of which may act while the others wait.
    pub(crate) fn is_shared(&self) -> bool {
        self.threaded.load(Ordering::Relaxed) || self.unwatched.load(Ordering::Relaxed)
    }

    /// Tells the manager of a wait; its number. `None` if that would tell nothing.
    fn report(&self, on: Vec<WaitOn>) -> Option<u64> {
        // What ranks of one program wait for each other is nothing to the manager.
        if self.is_shared() || on.is_empty() || on.iter().any(|on| is_between_ranks(&on.port)) {
            return None;
        }
        self.tell_ranks_of_wait();
        let wait = self.waits.fetch_add(1, Ordering::Relaxed) + 1;
        self.stand(Some(wait));
        self.tell(&ToManager::Waiting {
            instance: self.name.clone(),
            wait,
            on,
        });
        Some(wait)
    }
}
