//! The submodel execution loop, and whether calls keep to the order of the loop.
//!
//! One use of a submodel is F_INIT, then O_I and S in turn any number of times, then O_F (Borgdorff
//! et al., 2013, "Foundations of distributed multiscale computing"). [`ExecutionLoop`] follows the
//! calls of one instance, and refuses calls out of order, or has a warning of them. The loop knows no
//! messages and no sockets.

use std::sync::Arc;

use smallvec::SmallVec;
use titin_model::{Checks, Operator};

use crate::iteration::Iteration;

/// The connected end of a port, as the loop counts ends: port number and slot.
type PortSlot = (usize, u32);

/// Connected ends of F_INIT ports, each with a label for error texts.
pub(crate) type FInitEnds = SmallVec<[(PortSlot, Arc<str>); 2]>;

/// When the slots of a port were last used.
type Slots = SmallVec<[Option<LastUse>; 1]>;

/// The place of one instance in the execution loop.
#[derive(Debug, Default)]
pub(crate) struct ExecutionLoop {
    checks: Checks,
    phase: Option<Operator>,
    used: bool,
    /// Connected F_INIT ends not received in the current use, with the names of their ports.
    waiting: FInitEnds,
    /// The last call on each end in the current use, by port and slot.
    stamps: Vec<Slots>,
    /// The latest timestamp of all ends in the current use.
    now: Option<f64>,
    /// The latest timestamp of the F_INIT messages of the current use.
    begin: Option<f64>,
    /// The place of the current use in the steps of other instances.
    iteration: Iteration,
    /// The step of the current use on each timeline of the instance.
    steps: Vec<Option<LoopStep>>,
    /// Whether the current use makes no more steps.
    stepped: bool,
    /// Warnings for the run's log, until a caller takes them.
    warnings: Vec<String>,
    /// The ports that have had a warning, by number, and what the warning was about.
    warned: Vec<(usize, Violation)>,
}

/// What a warning is about. A port has one warning of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Violation {
    /// A call at another place of the loop than its operator's.
    Order,
    /// A timestamp before the last one of the port.
    Backwards,
    /// A message at another time than the message before has announced.
    Misannounced,
    /// An F_INIT message that a use has not received.
    Untaken,
    /// A use that has sent nothing on an O_F port.
    Missed,
}

/// A step of O_I and S, or of S and O_I.
#[derive(Debug, Clone, Copy)]
struct LoopStep {
    number: u32,
    /// The operator of the first call on the timeline in the current use.
    first: Operator,
}

/// When a port's end was last used.
#[derive(Debug, Clone, Copy)]
struct LastUse {
    time: f64,
    /// The step, for O_I and S.
    step: Option<u32>,
    /// The time announced for the next message.
    next: Option<f64>,
}

/// A call that the execution loop refuses.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoopError {
    #[error("a use begins with reuse(): call it first")]
    BeforeUse,
    #[error("the use begins at the time of its F_INIT messages: receive F_INIT port '{0}' first")]
    BeginUnknown(Arc<str>),
    #[error(
        "{} {operator} port '{port}' {fault}",
        if operator.sends() { "send on" } else { "receive on" }
    )]
    OutOfOrder {
        operator: Operator,
        port: String,
        fault: OrderFault,
    },
    #[error(
        "the timestamp on {operator} port '{port}' is {}",
        if timestamp.is_nan() { "not a number" } else { "infinite" }
    )]
    NoTime {
        operator: Operator,
        port: String,
        timestamp: f64,
    },
    #[error(
        "the timestamp on {operator} port '{port}' runs backwards: {timestamp:?} after {last:?}; within one use each port's \
         timestamps must not fall"
    )]
    Backwards {
        operator: Operator,
        port: String,
        timestamp: f64,
        last: f64,
    },
}

/// Why a call is out of order, and what to do.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OrderFault {
    #[error(
        "before the first reuse(); call reuse() at the beginning of every use, as in `while instance.reuse()`"
    )]
    BeforeUse,
    #[error("after {0}; F_INIT comes first: call reuse() to begin the next use")]
    AfterFInit(Operator),
    #[error("before F_INIT port '{0}' was received; receive all connected F_INIT ports first")]
    BeforeFInit(Arc<str>),
    #[error("after O_F; O_F ends a use: call reuse() to begin the next one")]
    AfterOF,
}

/// A call on a port.
pub(crate) struct PortCall<'a> {
    pub(crate) port: &'a str,
    pub(crate) end: PortSlot,
    pub(crate) operator: Operator,
    /// The number of the port's timeline among the timelines of the instance.
    pub(crate) timeline: usize,
    pub(crate) timestamp: f64,
    /// The next timestamp of a sent message.
    pub(crate) next: Option<f64>,
}

impl ExecutionLoop {
    pub(crate) fn new(checks: Checks) -> Self {
        ExecutionLoop {
            checks,
            ..ExecutionLoop::default()
        }
    }

    /// Whether calls out of order are refused.
    pub(crate) fn refuses(&self) -> bool {
        self.checks == Checks::Error
    }

    pub(crate) fn uncheck(&mut self) {
        self.checks = Checks::Off;
    }

    /// The latest simulated time in the current use.
    pub(crate) fn now(&self) -> Option<f64> {
        self.now
    }

    /// The simulated time at which the current use begins: the latest time of the F_INIT messages,
    /// or 0.
    pub(crate) fn begin(&self) -> Result<f64, LoopError> {
        match self.waiting.first() {
            _ if !self.used => Err(LoopError::BeforeUse),
            Some((_, missing)) if self.refuses() => Err(LoopError::BeginUnknown(missing.clone())),
            _ => Ok(self.begin.unwrap_or(0.0)),
        }
    }

    /// Whether [`ExecutionLoop::reuse`] was ever called.
    pub(crate) fn used(&self) -> bool {
        self.used
    }

    /// The step of the next message of an end. An end that was used in the current step begins the
    /// next step.
    pub(crate) fn iteration(
        &self,
        operator: Operator,
        timeline: usize,
        end: PortSlot,
    ) -> Iteration {
        match operator {
            Operator::FInit | Operator::OF => self.iteration.clone(),
            Operator::OI | Operator::S => self
                .iteration
                .step(self.next_step(operator, timeline, end).number),
        }
    }

    /// The last step in which the instance sends nothing more once the given end is used. Where S
    /// follows O_I, the result is the step of S.
    pub(crate) fn passed(
        &self,
        operator: Operator,
        timeline: usize,
        end: PortSlot,
    ) -> Option<(u32, Iteration)> {
        let next = self.next_step(operator, timeline, end);
        let behind = operator == Operator::S && next.first == Operator::OI;
        let number = if behind {
            Some(next.number)
        } else {
            next.number.checked_sub(1)
        };
        number.map(|number| (number, self.iteration.step(number)))
    }

    /// Notes that an end sends nothing more in the given step: the end counts as used in the step.
    pub(crate) fn pass(&mut self, end: PortSlot, number: u32) {
        let step = Some(number);
        self.stamp(end)
            .get_or_insert(LastUse {
                time: f64::NEG_INFINITY,
                step,
                next: None,
            })
            .step = step;
    }

    fn stamp(&mut self, (port, slot): PortSlot) -> &mut Option<LastUse> {
        stamp(&mut self.stamps, (port, slot))
    }

    fn next_step(&self, operator: Operator, timeline: usize, end: PortSlot) -> LoopStep {
        LoopStep::next(
            self.steps.get(timeline).copied().flatten(),
            operator,
            self.last(end),
        )
    }

    /// The last use of an end.
    fn last(&self, (port, slot): PortSlot) -> Option<LastUse> {
        self.stamps.get(port)?.get(slot as usize).copied().flatten()
    }

    /// Begins a new use, within the given step of other instances. `f_init` are the connected
    /// F_INIT ends.
    pub(crate) fn reuse(&mut self, f_init: FInitEnds, iteration: Iteration) {
        self.used = true;
        self.phase = None;
        self.waiting = f_init;
        self.stamps.iter_mut().for_each(|slots| slots.fill(None));
        self.now = None;
        self.begin = None;
        self.iteration = iteration;
        self.steps.clear();
        self.stepped = false;
    }

    /// Notes that the current use makes no more steps. True if the loop had not noted so before.
    pub(crate) fn end_steps(&mut self) -> bool {
        self.used && !std::mem::replace(&mut self.stepped, true)
    }

    /// Notes that the current use makes more steps, after all.
    pub(crate) fn go_on(&mut self) {
        self.stepped = false;
    }

    /// An error text, if an F_INIT message was not taken in the ending use.
    pub(crate) fn untaken(&self) -> Option<String> {
        let (_, port) = self
            .waiting
            .first()
            .filter(|_| self.refuses() && self.used)?;
        Some(format!(
            "the message on F_INIT port '{port}' was not taken in this use; receive it before O_I, S and O_F, in every use"
        ))
    }

    /// Takes the F_INIT ends that the ending use has not received, unless that is refused.
    pub(crate) fn take_untaken(&mut self) -> FInitEnds {
        if self.refuses() || !self.used {
            return FInitEnds::new();
        }
        let untaken = std::mem::take(&mut self.waiting);
        for ((port, _), label) in &untaken {
            self.warn(*port, Violation::Untaken, || {
                format!(
                    "a message on F_INIT port '{label}' was not received in its use, and is dropped: receive it before O_I, S and \
                     O_F, in every use"
                )
            });
        }
        untaken
    }

    /// Fails if a call on a port is out of order, whatever the time of the call, and such calls are
    /// refused.
    #[inline(always)]
    pub(crate) fn place(&self, port: &str, operator: Operator) -> Result<(), LoopError> {
        if !self.refuses() || self.is_in_order(operator) {
            Ok(())
        } else {
            Err(self.out_of_order(port, operator))
        }
    }

    /// Fails if [`ExecutionLoop::call`] would refuse a call. The call is not noted.
    pub(crate) fn check(&self, call: &PortCall<'_>) -> Result<(), LoopError> {
        self.place(call.port, call.operator)?;
        in_time(call, self.last(call.end), self.refuses())
    }

    /// Notes a call on an O_I or S port, as [`ExecutionLoop::call`] does, if the instance is in its
    /// steps, the end was used before, and the time is as announced. False, and nothing is noted, for
    /// any other call.
    #[inline(always)]
    pub(crate) fn call_again(&mut self, call: &PortCall<'_>) -> bool {
        let (port, slot) = call.end;
        let is_in_steps = matches!(self.phase, Some(Operator::OI | Operator::S));
        let is_of_step = matches!(call.operator, Operator::OI | Operator::S);
        let stamp = self.stamps.get_mut(port).map(|slots| &mut slots[..]);
        let stamp = stamp.and_then(|slots| slots.get_mut(slot as usize));
        let step = self.steps.get_mut(call.timeline);
        let (Some(Some(last)), Some(Some(step))) = (stamp, step) else {
            return false;
        };
        let is_expected = call.timestamp >= last.time
            && call.timestamp.is_finite()
            && last.next.is_none_or(|next| next == call.timestamp);
        if !(is_in_steps && is_of_step && is_expected && self.used && self.waiting.is_empty()) {
            return false;
        }
        *step = LoopStep::next(Some(*step), call.operator, Some(*last));
        *last = LastUse {
            time: call.timestamp,
            step: Some(step.number),
            next: call.next,
        };
        self.phase = Some(call.operator);
        if self.now.is_none_or(|now| now < call.timestamp) {
            self.now = Some(call.timestamp);
        }
        true
    }

    /// Notes a call with a message: the program is about to send the message, or has just taken the
    /// message. Fails if the call is out of order.
    pub(crate) fn call(&mut self, call: &PortCall<'_>) -> Result<(), LoopError> {
        self.place(call.port, call.operator)?;
        let last = *stamp(&mut self.stamps, call.end);
        in_time(call, last, self.refuses())?;
        if self.checks == Checks::Warn {
            self.warn_of_call(call, last);
        }
        let stamp = stamp(&mut self.stamps, call.end);
        if call.operator == Operator::FInit {
            self.waiting.retain(|(end, _)| *end != call.end);
            self.begin = Some(
                self.begin
                    .map_or(call.timestamp, |begin| begin.max(call.timestamp)),
            );
        }
        // After S an O_I begins the next step. No other call leads back to an earlier operator.
        if self.phase < Some(call.operator) || call.operator == Operator::OI {
            self.phase = Some(call.operator);
        }
        let step = matches!(call.operator, Operator::OI | Operator::S).then(|| {
            if self.steps.len() <= call.timeline {
                self.steps.resize(call.timeline + 1, None);
            }
            let step = &mut self.steps[call.timeline];
            step.insert(LoopStep::next(*step, call.operator, last))
                .number
        });
        *stamp = Some(LastUse {
            time: call.timestamp,
            step,
            next: call.next,
        });
        let announced = last.and_then(|last| Some((last.next?, last.time)));
        if let Some((next, _)) =
            announced.filter(|(next, last)| differs(*next, call.timestamp, next - last))
        {
            self.misannounced(call, next);
        }
        if self.now.is_none_or(|now| now < call.timestamp) {
            self.now = Some(call.timestamp);
        }
        Ok(())
    }

    /// Takes the warnings for the run's log.
    #[inline(always)]
    pub(crate) fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }

    /// Adds a warning, unless the checks are off or the port has had one of this kind.
    #[cold]
    fn warn(&mut self, port: usize, violation: Violation, text: impl FnOnce() -> String) {
        if self.checks != Checks::Off && !self.warned.contains(&(port, violation)) {
            self.warned.push((port, violation));
            self.warnings.push(text());
        }
    }

    /// Adds the warnings about a call that goes on although it is out of order.
    #[cold]
    fn warn_of_call(&mut self, call: &PortCall<'_>, last: Option<LastUse>) {
        const GOES_ON: &str = "; the call goes on, since checks only warn";
        let (port, _) = call.end;
        if !self.is_in_order(call.operator) {
            let why = self.out_of_order(call.port, call.operator);
            self.warn(port, Violation::Order, || format!("{why}{GOES_ON}"));
        }
        if let Some(last) = last.filter(|last| call.timestamp < last.time) {
            let why = backwards(call, last);
            self.warn(port, Violation::Backwards, || format!("{why}{GOES_ON}"));
        }
    }

    #[cold]
    fn misannounced(&mut self, call: &PortCall<'_>, next: f64) {
        let PortCall {
            port,
            operator,
            timestamp,
            end: (number, _),
            ..
        } = call;
        self.warn(*number, Violation::Misannounced, || {
            format!(
                "the message on {operator} port '{port}' is at {timestamp:?}, where the one before had announced {next:?} as the \
                 next timestamp: receivers may have gone by that; announce the time of the next message, or none"
            )
        });
    }

    /// The O_F ports on which the current use has sent nothing. `finals` are ports and their
    /// numbers of slots. The loop names each port once.
    pub(crate) fn missed(&mut self, finals: impl Iterator<Item = (usize, u32)>) -> Vec<usize> {
        if self.checks == Checks::Off || !self.used {
            return Vec::new();
        }
        let unsent = |(port, slots): &(usize, u32)| {
            (0..*slots).all(|slot| self.last((*port, slot)).is_none())
        };
        let missed = finals
            .filter(unsent)
            .map(|(port, _)| port)
            .filter(|port| !self.warned.contains(&(*port, Violation::Missed)));
        let missed: Vec<usize> = missed.collect();
        let told = missed.iter().map(|port| (*port, Violation::Missed));
        self.warned.extend(told);
        missed
    }

    /// Whether a call is in order in the current use.
    fn is_in_order(&self, operator: Operator) -> bool {
        let begun = match operator {
            Operator::FInit => self.phase.is_none_or(|phase| phase == Operator::FInit),
            Operator::OI | Operator::S => {
                self.phase != Some(Operator::OF) && self.waiting.is_empty()
            }
            Operator::OF => self.waiting.is_empty(),
        };
        self.used && begun
    }

    #[cold]
    fn out_of_order(&self, port: &str, operator: Operator) -> LoopError {
        let fault = match (operator, self.phase, self.waiting.first()) {
            _ if !self.used => OrderFault::BeforeUse,
            (Operator::FInit, Some(phase), _) => OrderFault::AfterFInit(phase),
            (_, phase, Some((_, missing)))
                if operator == Operator::OF || phase != Some(Operator::OF) =>
            {
                OrderFault::BeforeFInit(missing.clone())
            }
            _ => OrderFault::AfterOF,
        };
        LoopError::OutOfOrder {
            operator,
            port: port.to_owned(),
            fault,
        }
    }
}

impl LoopStep {
    /// The step in which an end is used next. `now` is the step of the end's timeline, `last` the
    /// last use of the end.
    #[inline(always)]
    fn next(now: Option<LoopStep>, operator: Operator, last: Option<LastUse>) -> LoopStep {
        let Some(step) = now else {
            return LoopStep {
                number: 0,
                first: operator,
            };
        };
        let used = last.is_some_and(|last| last.step == Some(step.number));
        LoopStep {
            number: step.number.saturating_add(used.into()),
            ..step
        }
    }
}

/// The last use of an end, in the given list.
fn stamp(stamps: &mut Vec<Slots>, (port, slot): PortSlot) -> &mut Option<LastUse> {
    let slot = slot as usize;
    if stamps.get(port).is_none_or(|slots| slots.len() <= slot) {
        make_room(stamps, port, slot);
    }
    &mut stamps[port][slot]
}

#[cold]
fn make_room(stamps: &mut Vec<Slots>, port: usize, slot: usize) {
    if stamps.len() <= port {
        stamps.resize_with(port + 1, Slots::new);
    }
    stamps[port].resize(slot + 1, None);
}

/// Fails if the time of a call may not follow the time of the last call on the end.
#[inline(always)]
fn in_time(call: &PortCall<'_>, last: Option<LastUse>, refuses: bool) -> Result<(), LoopError> {
    // Refused also without checks: a comparison with a NaN or an infinity says nothing about later
    // times.
    if !call.timestamp.is_finite() {
        return Err(no_time(call));
    }
    match last {
        Some(last) if refuses && call.timestamp < last.time => Err(backwards(call, last)),
        _ => Ok(()),
    }
}

/// Whether two times differ by more than rounding. `step` is the length of a step, 0 if the length
/// is not known.
///
/// A sum of steps is off by up to half a unit in the last place for each step. After millions of
/// steps the error is a small part of a step, and far more than the rounding of one operation. So
/// times within a thousandth of a step count as the same. At large times, such as seconds since
/// 1970, sums lose more, and sometimes the length of a step is not known. So times within some
/// hundred units in the last place count as the same, too: 0.3 ms at 1.7e9 s, less than a step of a
/// millisecond.
#[inline(always)]
pub(crate) fn differs(one: f64, other: f64, step: f64) -> bool {
    const OF_STEP: f64 = 1e-3;
    const ROUNDING: f64 = 2e-13;
    let apart = (one - other).abs();
    let same = (OF_STEP * step).max(ROUNDING * one.abs().max(other.abs()));
    one != other && (apart > same || apart.is_infinite())
}

#[cold]
fn no_time(call: &PortCall<'_>) -> LoopError {
    LoopError::NoTime {
        operator: call.operator,
        port: call.port.to_owned(),
        timestamp: call.timestamp,
    }
}

#[cold]
fn backwards(call: &PortCall<'_>, last: LastUse) -> LoopError {
    LoopError::Backwards {
        operator: call.operator,
        port: call.port.to_owned(),
        timestamp: call.timestamp,
        last: last.time,
    }
}

#[cfg(test)]
mod tests {
    use smallvec::smallvec;

    use super::*;

    const IN: (usize, u32) = (0, 0);

    fn call(operator: Operator, timestamp: f64) -> PortCall<'static> {
        let port = match operator {
            Operator::FInit => "init",
            Operator::OI => "out",
            Operator::S => "in",
            Operator::OF => "final",
        };
        PortCall {
            port,
            end: (operator as usize, 0),
            operator,
            timeline: 0,
            timestamp,
            next: None,
        }
    }

    fn begun() -> ExecutionLoop {
        let mut execution = ExecutionLoop::new(Checks::Error);
        execution.reuse(smallvec![(IN, "init".into())], Iteration::default());
        execution
    }

    #[test]
    fn a_time_has_to_be_a_number() {
        let mut execution = begun();
        execution.uncheck();
        for (time, what) in [
            (f64::NAN, "not a number"),
            (f64::INFINITY, "infinite"),
            (f64::NEG_INFINITY, "infinite"),
        ] {
            let call = call(Operator::OI, time);
            let why = execution.call(&call).unwrap_err().to_string();
            assert_eq!(why, format!("the timestamp on O_I port 'out' is {what}"));
            assert_eq!(execution.check(&call).unwrap_err().to_string(), why);
        }
    }

    #[test]
    fn the_loop_is_accepted_in_its_order() {
        let mut execution = begun();
        for _ in 0..2 {
            execution.call(&call(Operator::FInit, 0.0)).unwrap();
            for step in 0..3 {
                execution.call(&call(Operator::OI, step.into())).unwrap();
                execution.call(&call(Operator::S, step.into())).unwrap();
            }
            execution.call(&call(Operator::OF, 3.0)).unwrap();
            assert_eq!(execution.now(), Some(3.0));
            assert_eq!(execution.untaken(), None);
            execution.reuse(smallvec![(IN, "init".into())], Iteration::default());
        }
        assert!(execution.untaken().unwrap().contains("'init'"));
    }

    #[test]
    fn calls_out_of_order_are_explained() {
        let before = ExecutionLoop::new(Checks::Error)
            .call(&call(Operator::OI, 0.0))
            .unwrap_err()
            .to_string();
        assert!(before.contains("before the first reuse()"), "{before}");

        let mut execution = begun();
        let early = execution
            .call(&call(Operator::OI, 0.0))
            .unwrap_err()
            .to_string();
        assert!(
            early.contains("O_I port 'out'") && early.contains("F_INIT port 'init'"),
            "{early}"
        );
        execution.call(&call(Operator::FInit, 0.0)).unwrap();
        execution.call(&call(Operator::OI, 0.0)).unwrap();
        let late = execution
            .call(&call(Operator::FInit, 0.0))
            .unwrap_err()
            .to_string();
        assert!(
            late.contains("after O_I") && late.contains("reuse()"),
            "{late}"
        );
        execution.call(&call(Operator::OF, 0.0)).unwrap();
        let over = execution
            .call(&call(Operator::S, 0.0))
            .unwrap_err()
            .to_string();
        assert!(over.contains("S port 'in' after O_F"), "{over}");
    }

    #[test]
    fn time_does_not_run_backwards_within_a_use() {
        let mut execution = begun();
        execution.call(&call(Operator::FInit, 5.0)).unwrap();
        execution.call(&call(Operator::OI, 6.0)).unwrap();
        let back = execution
            .call(&call(Operator::OI, 5.5))
            .unwrap_err()
            .to_string();
        assert!(back.contains("5.5 after 6.0"), "{back}");
        assert!(execution.call(&call(Operator::OI, f64::NAN)).is_err());
        execution.reuse(smallvec![(IN, "init".into())], Iteration::default());
        execution.call(&call(Operator::FInit, 0.0)).unwrap();
    }

    #[test]
    fn a_message_at_another_time_than_was_announced_is_told_once_for_its_port() {
        let mut execution = begun();
        execution.call(&call(Operator::FInit, 0.0)).unwrap();
        let mut send = |time: f64, next| {
            execution
                .call(&PortCall {
                    next,
                    ..call(Operator::OI, time)
                })
                .unwrap();
            execution.take_warnings().pop()
        };
        assert_eq!(send(0.0, Some(0.3)), None);
        assert_eq!(
            send(0.1 + 0.2, Some(6.0)),
            None,
            "it is the same but for rounding"
        );
        let text = send(7.0, Some(8.0)).unwrap();
        assert!(
            text.contains("O_I port 'out' is at 7.0, where the one before had announced 6.0"),
            "{text}"
        );
        assert_eq!(send(9.0, Some(10.0)), None);
        // The next use begins anew.
        execution.reuse(FInitEnds::new(), Iteration::default());
        assert!(execution.take_warnings().is_empty());
        let mut execution = begun();
        execution.call(&call(Operator::FInit, 0.0)).unwrap();
        execution
            .call(&PortCall {
                next: Some(6.0),
                ..call(Operator::OI, 5.0)
            })
            .unwrap();
        execution.reuse(FInitEnds::new(), Iteration::default());
        execution.call(&call(Operator::OI, 0.0)).unwrap();
        assert!(execution.take_warnings().is_empty());
    }

    #[test]
    fn whoever_is_not_checked_is_told_nothing_of_times_and_finals() {
        let mut execution = ExecutionLoop::new(Checks::Error);
        execution.reuse(FInitEnds::new(), Iteration::default());
        execution
            .call(&PortCall {
                next: Some(6.0),
                ..call(Operator::OI, 5.0)
            })
            .unwrap();
        execution.uncheck();
        execution
            .call(&PortCall {
                next: Some(9.0),
                ..call(Operator::OI, 7.0)
            })
            .unwrap();
        assert!(execution.take_warnings().is_empty());
        assert_eq!(
            execution.missed([(Operator::OF as usize, 1)].into_iter()),
            [0; 0]
        );
    }

    #[test]
    fn a_final_that_a_use_never_sent_is_told_once() {
        let port = Operator::OF as usize;
        let finals = || [(port, 2), (port + 1, 1)].into_iter();
        let mut execution = begun();
        execution.call(&call(Operator::FInit, 0.0)).unwrap();
        execution.call(&call(Operator::OF, 0.0)).unwrap();
        assert_eq!(execution.missed(finals()), [port + 1]);
        execution.reuse(FInitEnds::new(), Iteration::default());
        assert_eq!(execution.missed(finals()), [port]);
        assert_eq!(execution.missed(finals()), [0; 0]);
        assert_eq!(
            ExecutionLoop::new(Checks::Error).missed(finals()),
            [0; 0],
            "there was no use"
        );
    }

    /// Plays calls of all kinds, drawn by a seed. A loop that takes the short way where it may is in the
    /// same state as a loop that never does.
    #[test]
    fn a_call_by_the_short_way_is_noted_as_any_other() {
        let mut seed = 1_u64;
        let mut draw = |bound: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % bound
        };
        let (mut short, mut long) = (begun(), begun());
        let (mut time, mut taken) = (0.0, 0);
        for _ in 0..20_000 {
            if draw(50) == 0 {
                for execution in [&mut short, &mut long] {
                    execution.reuse(smallvec![(IN, "init".into())], Iteration::default());
                    execution.call(&call(Operator::FInit, 0.0)).unwrap();
                }
                time = 0.0;
            }
            let operator = match draw(100) {
                0 => Operator::FInit,
                1 => Operator::OF,
                number if number % 2 == 0 => Operator::OI,
                _ => Operator::S,
            };
            time += [0.0, 0.5, 1.0, -0.25, f64::NAN]
                .get(draw(30) as usize)
                .unwrap_or(&1.0);
            let call = PortCall {
                end: (operator as usize, draw(2) as u32),
                timeline: draw(2) as usize,
                next: [None, Some(time + 1.0), Some(time + 1.0 + 1e-14)][draw(3) as usize],
                ..call(operator, time)
            };
            let is_noted = short.call_again(&call);
            taken += u32::from(is_noted);
            let wanted = long.call(&call).map_err(|why| why.to_string());
            match is_noted {
                true => assert_eq!(wanted, Ok(())),
                false => assert_eq!(short.call(&call).map_err(|why| why.to_string()), wanted),
            }
            assert_eq!(format!("{short:?}"), format!("{long:?}"));
            assert_eq!(short.take_warnings(), long.take_warnings());
            if time.is_nan() {
                time = long.now().unwrap_or_default();
            }
        }
        assert!((2_000..18_000).contains(&taken), "{taken} by the short way");
    }

    #[test]
    fn steps_are_counted_in_each_timeline() {
        let mut execution = ExecutionLoop::new(Checks::Error);
        execution.reuse(FInitEnds::new(), Iteration::new(vec![4]));
        let place = |execution: &mut ExecutionLoop, operator, end, timeline| {
            let here = execution.iteration(operator, timeline, (end, 0));
            let call = PortCall {
                port: "p",
                end: (end, 0),
                operator,
                timeline,
                timestamp: 0.0,
                next: None,
            };
            execution.call(&call).unwrap();
            here.steps().to_vec()
        };
        for step in 0..3 {
            // A port that is used in some steps only.
            if step != 1 {
                assert_eq!(place(&mut execution, Operator::OI, 2, 0), [4, step]);
            }
            assert_eq!(place(&mut execution, Operator::OI, 1, 0), [4, step]);
            for fast in 0..2 {
                assert_eq!(
                    place(&mut execution, Operator::OI, 3, 1),
                    [4, 2 * step + fast]
                );
            }
            let (passed, here) = execution.passed(Operator::S, 0, (4, 0)).unwrap();
            assert_eq!((passed, here.steps()), (step, &[4, step][..]));
            execution.pass((2, 0), passed);
            assert_eq!(place(&mut execution, Operator::S, 4, 0), [4, step]);
            // An exchange with other instances, in the same step.
            assert_eq!(place(&mut execution, Operator::OI, 5, 0), [4, step]);
            assert_eq!(place(&mut execution, Operator::S, 6, 0), [4, step]);
        }
        assert_eq!(place(&mut execution, Operator::OF, 7, 0), [4]);
        execution.reuse(FInitEnds::new(), Iteration::new(vec![5]));
        assert_eq!(execution.iteration(Operator::S, 0, (4, 0)).steps(), [5, 0]);
    }

    #[test]
    fn a_call_out_of_order_goes_on_with_one_warning_for_each_port_and_kind() {
        let mut execution = ExecutionLoop::new(Checks::Warn);
        execution.reuse(smallvec![(IN, "init".into())], Iteration::default());
        let mut warnings = |operator, timestamp| {
            execution.call(&call(operator, timestamp)).unwrap();
            execution.take_warnings()
        };
        let early = warnings(Operator::OI, 2.0);
        assert_eq!(early.len(), 1, "{early:?}");
        assert!(
            early[0].starts_with("send on O_I port 'out' before F_INIT port 'init' was received; "),
            "{early:?}"
        );
        assert!(warnings(Operator::OI, 3.0).is_empty());
        let back = warnings(Operator::OI, 1.0);
        assert!(
            back.len() == 1 && back[0].contains("runs backwards: 1.0 after 3.0"),
            "{back:?}"
        );
        assert!(warnings(Operator::OI, 0.5).is_empty());
        assert!(warnings(Operator::FInit, 0.0)[0].contains("port 'init' after O_I"));
        assert!(warnings(Operator::OF, 3.0).is_empty());
        let after = warnings(Operator::S, 3.0);
        assert!(
            after[0].contains("receive on S port 'in' after O_F"),
            "{after:?}"
        );
        let not_a_number = execution.call(&call(Operator::S, f64::NAN));
        assert!(not_a_number.is_err());
    }

    #[test]
    fn a_message_that_a_use_has_not_received_is_left_unless_that_is_refused() {
        for (checks, left, told) in [
            (Checks::Error, 0, 0),
            (Checks::Warn, 1, 1),
            (Checks::Off, 1, 0),
        ] {
            let mut execution = ExecutionLoop::new(checks);
            assert!(execution.take_untaken().is_empty());
            for use_of_two in 0..2 {
                execution.reuse(
                    smallvec![(IN, "init".into()), ((0, 1), "init".into())],
                    Iteration::default(),
                );
                execution.call(&call(Operator::FInit, 0.0)).unwrap();
                let untaken = execution.take_untaken();
                assert_eq!(untaken.len(), left, "{checks:?}");
                assert!(untaken.iter().all(|(end, _)| *end == (0, 1)));
                let told = if use_of_two == 0 { told } else { 0 };
                assert_eq!(execution.take_warnings().len(), told, "{checks:?}");
                assert_eq!(execution.untaken().is_some(), checks == Checks::Error);
            }
        }
    }

    #[test]
    fn only_what_is_no_time_is_refused_when_the_check_is_off() {
        let mut execution = ExecutionLoop::new(Checks::Off);
        execution.call(&call(Operator::OF, 1.0)).unwrap();
        execution.call(&call(Operator::FInit, 0.0)).unwrap();
        assert_eq!(execution.untaken(), None);
        let not_a_number = execution
            .call(&call(Operator::OI, f64::NAN))
            .unwrap_err()
            .to_string();
        assert!(
            not_a_number.contains("O_I port 'out' is not a number"),
            "{not_a_number}"
        );
    }
}
