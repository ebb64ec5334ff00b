//! The filters that choose among messages, at both ends: `last`, `repeat` and `pad`.
//!
//! All three choose by the steps in which messages were sent ([`crate::iteration`]). Of a conduit behind `last` the sender
//! says which messages take the place of which, so that of each use only the newest is kept wherever it waits; and once
//! the steps are over it says that too, by a message that carries nothing. The receiver lets one through when something
//! is behind it. Behind `repeat` and `pad` it looks for the message of the step that its own use lies in.

use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};

use titin_model::Operator;
use titin_transport::{IncomingMessage as Arrived, Outgoing};
use titin_wire::meta::Meta;

use super::Inner;
use super::receive::Source;
use super::send::head;
use crate::iteration::Iteration;
use crate::port::{Chosen, Inlet, InletState, Outlet, Port, Sent};
use crate::{Error, Kind, Message, Result};

/// Where a message is wanted: the step, and the latest time that was seen, for a message that `pad` makes up.
#[derive(Debug, Default)]
pub(super) struct Here {
    now: Option<f64>,
    pub(super) iteration: Iteration,
}

impl Here {
    /// A message for the use that begins: the use lies where the one does that lies deepest.
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

impl Inner {
    /// `repeat` and `pad`: the message of the step that `here` lies in, or the last one before it of a sender that does
    /// not send in every step. Which that is never depends on how fast messages travel.
    pub(super) fn poll_following(
        &self,
        source: &Source<'_>,
        state: &mut InletState,
        here: &Here,
        since: i64,
    ) -> Result<Option<Message>> {
        let mut chosen = state.chosen.take().unwrap_or_default();
        let found = self.choose(source, state, &mut chosen, here, since);
        state.chosen = Some(chosen);
        found
    }

    fn choose(
        &self,
        source: &Source<'_>,
        state: &mut InletState,
        chosen: &mut Chosen,
        here: &Here,
        mut since: i64,
    ) -> Result<Option<Message>> {
        let Source { inlet, slot, .. } = *source;
        let (mut later, chain) = (false, &inlet.end.chain);
        while let Some(next) = inlet.due() {
            let sent = iteration_of(&next).outer(chain.lasts);
            later = next.meta.over.is_none()
                && !here.iteration.is_within(&sent)
                && sent > here.iteration;
            if later {
                break;
            }
            // A note may have been replaced by a later one meanwhile.
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
                // `repeat` before `pad`: once in each of the steps that lie between.
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
                    self.name,
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

    /// Where a message is wanted that this end receives next.
    pub(super) fn here(&self, source: &Source<'_>) -> Here {
        if !source.follows() {
            return Here::default();
        }
        let cycle = self.cycle();
        let end = (source.number, source.slot.unwrap_or(0));
        let iteration = cycle.iteration(source.port.operator, source.port.timeline, end);
        Here {
            now: cycle.now(),
            iteration,
        }
    }

    /// Tells receivers behind filters that choose that this use makes no more steps.
    pub(super) fn end_steps(&self) -> Result<()> {
        if !self.counts_steps || !self.cycle().end_steps() {
            return Ok(());
        }
        let ports = || {
            self.ports
                .iter()
                .filter(|port| port.operator == Operator::OI)
        };
        // All are told, or none, and then the call that is made again tells them.
        let held: Result<Vec<_>> = ports().map(Port::enter).collect();
        let _held = held.inspect_err(|_| self.cycle().go_on())?;
        let here = self.cycle().iteration(Operator::OF, 0, (0, 0));
        for port in ports() {
            for outlet in port.every_outlet() {
                // Behind two of `last` only the steps around this use matter.
                if outlet.end.chain.chooses() && outlet.end.chain.lasts < 2 {
                    self.tell_over(outlet, &here);
                }
            }
        }
        Ok(())
    }

    /// Tells receivers behind `repeat` and `pad` of steps that are over without a message for them, before this end is
    /// used, whose port the call has taken. Not where several threads call: there the order of calls says nothing of
    /// steps.
    #[inline(always)]
    pub(super) fn pass_steps(
        &self,
        operator: Operator,
        timeline: usize,
        end: (usize, u32),
    ) -> Result<()> {
        if !self.counts_steps || self.threaded.load(Ordering::Relaxed) {
            return Ok(());
        }
        let Some((number, passed)) = self.cycle().passed(operator, timeline, end) else {
            return Ok(());
        };
        let alike = |port: &Port| port.operator == Operator::OI && port.timeline == timeline;
        for (index, port) in self
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
                    self.cycle().pass((index, slot as u32), number);
                }
            }
        }
        Ok(())
    }

    /// Tells receivers behind `last` of what has ended with the steps of others that the use that begins has left.
    pub(super) fn leave_groups(&self, here: &Iteration) -> Result<()> {
        for port in self.ports.iter().filter(|port| port.operator.sends()) {
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

    /// Says that no message of this step, or within it, follows; the call has taken the outlet's port. A receiver that has not come yet is told by the first
    /// message, or by the end.
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
        // A later note says all that those right before it say.
        let first = *sent.note.get_or_insert(sequence);
        drop(sent);
        let supersedes = (first < sequence).then_some(first);
        let meta = Meta {
            over: Some(step.steps().to_vec()),
            supersedes,
            ..Meta::default()
        };
        // If the link is gone, the next message or the end meets that too.
        let _ = carrier.send(&Outgoing::new(
            head(outlet, sequence, (0.0, None)),
            &Arc::new(meta),
            &[],
        ));
    }
}

impl Outlet {
    fn sent(&self) -> MutexGuard<'_, Sent> {
        self.sent
            .as_ref()
            .expect("asked where filters choose")
            .lock()
            .expect("never poisoned")
    }

    /// Behind `last`: the number of the first message whose place one of this step takes, if there is one.
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

    /// Notes that the message of this number is sent.
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
    /// Takes the next message that the program may be given.
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

    /// The oldest message, if it may be taken. Behind `last` it may once something else is behind it, as that has not
    /// taken its place.
    fn due(&self) -> Option<Arrived> {
        // Asked before it is looked at: until then another one may take its place.
        let stays = self.end.chain.lasts == 0 || self.inbox.waiting() > 1 || self.inbox.ended();
        self.inbox
            .peek()
            .filter(|message| stays || message.meta.over.is_some())
    }

    /// How many messages were taken, or may not be taken yet: behind `last` one whose place another may take is left.
    pub(super) fn seen(&self) -> u64 {
        // Asked before the other: what comes in between counts as not seen.
        let received = self.inbox.received();
        if self.end.chain.lasts > 0 && self.due().is_none() {
            received
        } else {
            self.inbox.consumed()
        }
    }

    /// What there is to say of messages behind `pad` that nobody was given.
    pub(super) fn missed(&self, state: &InletState, port: &Port) -> Option<String> {
        let chosen = state.chosen.as_ref().filter(|_| self.end.chain.pads > 0)?;
        let count = chosen.missed + u64::from(chosen.not_given());
        if count == 0 {
            return None;
        }
        let (s, were) = if count == 1 {
            ("", "was")
        } else {
            ("s", "were")
        };
        let (other, label, operator) = (self.end.other(), &self.end.label, port.operator);
        Some(format!(
            "{count} message{s} from {other} on {operator} port '{label}' {were} not given, as `pad` gives each in its own \
             step: there was no use in that"
        ))
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

/// In which step a message was sent; one that does not say so belongs to the whole run.
pub(super) fn iteration_of(message: &Arrived) -> Iteration {
    Iteration::new(message.meta.iteration.clone().unwrap_or_default())
}
