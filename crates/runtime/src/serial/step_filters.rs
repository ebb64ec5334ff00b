//! The filters `last`, `repeat` and `pad`, at both ends. Such a filter chooses among messages.
//!
//! All three choose by the steps in which the sender sent the messages ([`crate::iteration`]). On a
//! conduit with `last` each message names the message to replace, so that only the newest message
//! of a use waits anywhere. Once the steps are over the sender sends a note, a message without
//! data. The receiver lets a message through when another message or a note follows. With `repeat`
//! and `pad` the receiver looks for the message of the step around the use of the receiver.

use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};

use titin_model::Operator;
use titin_transport::{IncomingMessage as Arrived, Outgoing};
use titin_wire::meta::Meta;

use super::Serial;
use super::receiving_end::ReceivingEnd;
use super::send::message_header;
use crate::iteration::Iteration;
use crate::port::{Chosen, Inlet, InletState, Outlet, Port, StepNotes};
use crate::{Error, Kind, Message, Result};

/// The place of a receiving call: the step, and the latest time for a message made up by `pad`.
#[derive(Debug, Default)]
pub(crate) struct UsePlace {
    now: Option<f64>,
    pub(super) iteration: Iteration,
}

impl UsePlace {
    /// Includes a message for the beginning use. The use lies in the step of the message with the
    /// deepest place.
    pub(super) fn include(&mut self, message: &Message) {
        self.now = Some(
            self.now
                .map_or(message.timestamp, |now| now.max(message.timestamp)),
        );
        if message.iteration.steps().len() > self.iteration.steps().len() {
            self.iteration = message.iteration.clone();
        }
    }
}

impl Serial {
    /// For `repeat` and `pad`: the message of the step in which `here` lies, or the last message
    /// before, if the sender does not send in every step. The choice never depends on how fast
    /// messages travel.
    pub(super) fn poll_following(
        &self,
        source: &ReceivingEnd<'_>,
        state: &mut InletState,
        here: &UsePlace,
        since: i64,
    ) -> Result<Option<Message>> {
        let mut chosen = state.chosen.take().unwrap_or_default();
        let found = self.choose(source, state, &mut chosen, here, since);
        state.chosen = Some(chosen);
        found
    }

    fn choose(
        &self,
        source: &ReceivingEnd<'_>,
        state: &mut InletState,
        chosen: &mut Chosen,
        here: &UsePlace,
        mut since: i64,
    ) -> Result<Option<Message>> {
        let ReceivingEnd { inlet, slot, .. } = *source;
        let (mut later, chain) = (false, &inlet.end.chain);
        while let Some(next) = inlet.due() {
            let sent = iteration_of(&next).outer(chain.lasts);
            later = next.meta.over.is_none()
                && !here.iteration.is_within(&sent)
                && sent > here.iteration;
            if later {
                break;
            }
            // A later note may have taken the place of the note meanwhile.
            let Some(arrived) = inlet.inbox.take() else {
                break;
            };
            if let Some(over) = &arrived.meta.over {
                chosen.over = Some(Iteration::new(over.clone()));
                continue;
            }
            let since = std::mem::take(&mut since);
            let message = self.unpack(source, slot.unwrap_or(0), state, arrived, since)?;
            let given = |message: Message| {
                chosen
                    .given
                    .as_ref()
                    .is_some_and(|given| given.0 == message.number)
            };
            let missed = chosen
                .latest
                .replace(message)
                .is_some_and(|message| !given(message));
            chosen.missed += u64::from(missed && chain.pads > 0);
        }
        let passed = |over: &Iteration| here.iteration.is_within(over) || *over > here.iteration;
        let known = later
            || inlet.inbox.ended()
            || chosen
                .latest
                .as_ref()
                .is_some_and(|message| here.iteration.is_within(&message.iteration))
            || chosen.over.as_ref().is_some_and(passed);
        if !known {
            return self.reachable(&inlet.end).map(|()| None);
        }
        let nil = || Message::nil(here.now.unwrap_or(0.0));
        match &chosen.latest {
            Some(message)
                if chain.pads > 0 && here.iteration.is_within(&message.iteration.outer(1)) =>
            {
                // `repeat` before `pad`: once in each step between the two timelines.
                let step = if chain.repeat {
                    here.iteration.outer(chain.pads)
                } else {
                    Iteration::default()
                };
                let given = Some((message.number, step));
                let again = std::mem::replace(&mut chosen.given, given.clone()) == given;
                Ok(Some(if again { nil() } else { message.clone() }))
            }
            _ if chain.pads > 0 => Ok(Some(nil())),
            Some(message) => Ok(Some(message.clone())),
            None => {
                let text = format!(
                    "{}: port '{}' has nothing to repeat: {} sent nothing before it {}",
                    self.core.name,
                    inlet.end.label,
                    inlet.end.other(),
                    if inlet.inbox.ended() {
                        "finished"
                    } else {
                        "went on to its next step"
                    }
                );
                match inlet.inbox.ended() {
                    true => {
                        Err(self.by_end_of(Error::new(Kind::PortClosed, text), [&*inlet.end.peer]))
                    }
                    false => Err(Error::new(Kind::CallOrder, text)),
                }
            }
        }
    }

    /// The place of the next receiving call at this end.
    pub(super) fn here(&self, source: &ReceivingEnd<'_>) -> UsePlace {
        if !source.follows() {
            return UsePlace::default();
        }
        let execution = self.execution_loop();
        let end = (source.number, source.slot.unwrap_or(0));
        let iteration = execution.iteration(source.port.operator, source.port.timeline, end);
        UsePlace {
            now: execution.now(),
            iteration,
        }
    }

    /// Tells receivers behind step filters that the current use makes no more steps.
    pub(super) fn end_steps(&self) -> Result<()> {
        if !self.execution.counts_steps || !self.execution_loop().end_steps() {
            return Ok(());
        }
        let ports = || {
            self.table
                .ports
                .iter()
                .filter(|port| port.operator == Operator::OI)
        };
        // If another call uses one of the ports, no receiver hears of the end. The program's call
        // fails, and tells all receivers when the program makes the call again.
        let held: Result<Vec<_>> = ports().map(Port::enter).collect();
        let _held = held.inspect_err(|_| self.execution_loop().go_on())?;
        let here = self.execution_loop().iteration(Operator::OF, 0, (0, 0));
        for port in ports() {
            for outlet in port.every_outlet() {
                // Behind two of `last` only the steps around the current use matter.
                if outlet.end.chain.chooses() && outlet.end.chain.lasts < 2 {
                    self.tell_over(outlet, &here);
                }
            }
        }
        Ok(())
    }

    /// Tells receivers behind `repeat` and `pad` of steps that are over without a message, before
    /// the program uses the given end. The call has taken the port of the end. Does nothing where
    /// several threads call: there the order of calls has no bearing on steps.
    #[inline(always)]
    pub(super) fn pass_steps(
        &self,
        operator: Operator,
        timeline: usize,
        end: (usize, u32),
    ) -> Result<()> {
        if !self.execution.counts_steps || self.core.threaded.load(Ordering::Relaxed) {
            return Ok(());
        }
        let Some((number, passed)) = self.execution_loop().passed(operator, timeline, end) else {
            return Ok(());
        };
        let alike = |port: &Port| port.operator == Operator::OI && port.timeline == timeline;
        for (index, port) in self
            .table
            .ports
            .iter()
            .enumerate()
            .filter(|(_, port)| alike(port))
        {
            let _held = if index == end.0 {
                None
            } else {
                Some(port.enter()?)
            };
            for (slot, outlets) in port.outlets.iter().enumerate() {
                let behind =
                    |outlet: &&Outlet| outlet.end.chain.follows() && outlet.end.chain.lasts == 0;
                let told = |outlet: &Outlet| {
                    outlet
                        .sent()
                        .step
                        .as_ref()
                        .is_some_and(|step| *step >= passed)
                };
                for outlet in outlets.iter().filter(behind).filter(|outlet| !told(outlet)) {
                    self.tell_over(outlet, &passed);
                    self.execution_loop().pass((index, slot as u32), number);
                }
            }
        }
        Ok(())
    }

    /// Tells receivers behind `last` of the steps of other instances that ended before the
    /// beginning use.
    pub(super) fn leave_groups(&self, here: &Iteration) -> Result<()> {
        for port in self.table.ports.iter().filter(|port| port.operator.sends()) {
            let _held = port.enter()?;
            for outlet in port
                .every_outlet()
                .filter(|outlet| outlet.end.chain.chooses())
            {
                let group = outlet.sent().group.as_ref().map(|(group, _)| group.clone());
                if let Some(group) = group.filter(|group| !here.is_within(group)) {
                    self.tell_over(outlet, &group);
                }
            }
        }
        Ok(())
    }

    /// Sends the note that no message of the given step, or within the step, follows. The call has
    /// taken the port of the outlet. A receiver without a carrier yet learns the same from the
    /// first message, or from the end.
    fn tell_over(&self, outlet: &Outlet, step: &Iteration) {
        let Some(carrier) = outlet.end.carrier.get() else {
            return;
        };
        let Some(sequence) = outlet.window.claim_without_room() else {
            return;
        };
        let mut sent = outlet.sent();
        sent.group.take_if(|(group, _)| group.is_within(step));
        sent.step = Some(step.clone());
        // A later note includes all notes since the last message.
        let first = *sent.note.get_or_insert(sequence);
        drop(sent);
        let supersedes = (first < sequence).then_some(first);
        let meta = Meta {
            over: Some(step.steps().to_vec()),
            supersedes,
            ..Meta::default()
        };
        // If the link is gone, the next message or the end fails.
        let _ = carrier.send(&Outgoing::new(
            message_header(outlet, sequence, (0.0, None)),
            &Arc::new(meta),
            &[],
        ));
    }
}

impl Outlet {
    fn sent(&self) -> MutexGuard<'_, StepNotes> {
        self.sent
            .as_ref()
            .expect("asked where filters choose")
            .lock()
            .expect("never poisoned")
    }

    /// Behind `last`: the number of the first message that a message of this step replaces.
    pub(super) fn superseded(&self, iteration: &Iteration) -> Option<u64> {
        // Every message of every conduit comes by here.
        if self.end.chain.lasts == 0 {
            return None;
        }
        let group = iteration.outer(self.end.chain.lasts);
        self.sent()
            .group
            .as_ref()
            .filter(|(known, _)| *known == group)
            .map(|(_, first)| *first)
    }

    /// Notes that the instance sends the message with the given number.
    pub(super) fn note(&self, iteration: &Iteration, sequence: u64) {
        let mut sent = self.sent();
        sent.note = None;
        sent.step = Some(iteration.clone());
        let group = iteration.outer(self.end.chain.lasts);
        if self.end.chain.lasts > 0 && sent.group.as_ref().is_none_or(|(known, _)| *known != group)
        {
            sent.group = Some((group, sequence));
        }
    }
}

impl Inlet {
    /// Takes the next message for the program.
    pub(super) fn take(&self) -> Option<Arrived> {
        if !self.end.chain.chooses() {
            return self.inbox.take();
        }
        loop {
            self.due()?;
            let message = self.inbox.take()?;
            if message.meta.over.is_none() {
                return Some(message);
            }
        }
    }

    /// The oldest message, if the program may have the message. Behind `last` the program may have
    /// the message once another message follows that has not replaced the oldest message, or the
    /// stream has ended.
    fn due(&self) -> Option<Arrived> {
        // Read before the look at the message: until then a newer message may replace the oldest
        // message.
        let stays = self.end.chain.lasts == 0 || self.inbox.waiting() > 1 || self.inbox.ended();
        self.inbox
            .peek()
            .filter(|message| stays || message.meta.over.is_some())
    }

    /// How many messages the program has taken, or may not take yet: behind `last` a message waits
    /// while another message may replace the waiting message.
    pub(crate) fn seen(&self) -> u64 {
        // Read before the other count: a message that comes in between counts as not seen.
        let received = self.inbox.received();
        if self.end.chain.lasts > 0 && self.due().is_none() {
            received
        } else {
            self.inbox.consumed()
        }
    }

    /// The warning about messages that `pad` never gave.
    pub(crate) fn missed(&self, state: &InletState, port: &Port) -> Option<String> {
        let chosen = state.chosen.as_ref().filter(|_| self.end.chain.pads > 0)?;
        let count = chosen.missed + u64::from(chosen.not_given());
        if count == 0 {
            return None;
        }
        let fate = "not given, as `pad` gives each in its own step: there was no use in that";
        Some(self.end.messages_were(count, port, fate))
    }
}

impl Chosen {
    /// Whether `pad` has not given the latest message.
    fn not_given(&self) -> bool {
        let given = self.given.as_ref().map(|(number, _)| *number);
        self.latest
            .as_ref()
            .is_some_and(|message| given != Some(message.number))
    }
}

/// The step in which a message was sent. A message without a step belongs to the whole run.
pub(super) fn iteration_of(message: &Arrived) -> Iteration {
    Iteration::new(message.meta.iteration.clone().unwrap_or_default())
}
