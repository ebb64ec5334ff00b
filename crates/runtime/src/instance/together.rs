//! Calls that all ranks of a parallel program make together.
//!
//! Rank 0 makes the call, and tells the others what it has come to: by the conduits down the tree of ranks, on which
//! those wait as for any message, at titin's doorbell and not inside MPI. A message's data follow in a message of
//! their own, so that on one host they lie in shared memory once for all ranks below.

use std::sync::{Arc, MutexGuard};

use titin_transport::Latched;
use titin_wire::control::{self, FieldEnd};
use titin_wire::ranks::{CollectiveResult, FieldSteps, Verdict, children};

use super::close::WARNING;
use super::receive::{NextUse, Patience};
use super::send::Sending;
use super::{Inner, PortId};
use crate::iteration::Iteration;
use crate::port::PortState;
use crate::ranks::{Ranks, outcome, result};
use crate::sel::Call;
use crate::{Error, Kind, Message, Payload, Result};

/// A message, and by which port and slot it came.
pub(super) type Received = (PortId, u32, Message);

impl Inner {
    /// Begins the next use on all ranks.
    pub(super) fn reuse_together(
        &self,
        act: impl FnOnce() -> Result<Option<NextUse>>,
    ) -> Result<Option<NextUse>> {
        let call = "reuse";
        if self.leads() {
            let next = self.lead(call, act);
            let common = next.as_ref().map(|next| {
                next.as_ref()
                    .map_or(CollectiveResult::Nothing, NextUse::for_ranks)
            });
            let told = self.tell_ranks(call, common.map_err(Clone::clone), None);
            return next.and_then(|next| told.map(|()| next));
        }
        match self.hear_rank(call, || Ok(()))? {
            (CollectiveResult::Nothing, _) => Ok(None),
            (
                CollectiveResult::Use {
                    overlay,
                    steps,
                    f_init,
                },
                _,
            ) => {
                let end = |(port, slot, label)| ((port as usize, slot), label);
                let f_init = f_init.into_iter().map(end).collect();
                Ok(Some(NextUse {
                    overlay: self.number(overlay)?,
                    f_init,
                    iteration: Iteration::new(steps),
                }))
            }
            _ => Err(unexpected(call)),
        }
    }

    /// Receives on all ranks what `act` receives on rank 0.
    pub(super) fn receive_together(
        &self,
        call: &str,
        act: impl FnOnce() -> Result<Option<Received>>,
    ) -> Result<Option<Received>> {
        if self.leads() {
            let received = self.lead(call, act);
            let (common, data) = match &received {
                Err(error) => (Err(error.clone()), None),
                Ok(None) => (Ok(CollectiveResult::Nothing), None),
                Ok(Some(received)) => (Ok(self.for_ranks(received)), Some(&received.2)),
            };
            let told = self.tell_ranks(call, common, data);
            return received.and_then(|received| told.map(|()| received));
        }
        match self.hear_rank(call, || Ok(()))? {
            (CollectiveResult::Nothing, _) => Ok(None),
            (
                CollectiveResult::Message {
                    port,
                    slot,
                    slots,
                    number,
                    settings,
                    steps,
                    time,
                },
                Some(data),
            ) if (port as usize) < self.ports.len() => {
                let (settings, iteration) = (settings.map(Arc::new), Iteration::new(steps));
                let data = data.read().map_err(|error| {
                    let text = format!(
                        "{}: data that rank 0 passes on cannot be read: {error}",
                        self.name
                    );
                    Error::new(Kind::Internal, text)
                })?;
                let message = Message {
                    settings,
                    number,
                    slots,
                    iteration,
                    ..data
                };
                self.note_received(port as usize, slot, time)?;
                Ok(Some((PortId(port as usize), slot, message)))
            }
            _ => Err(unexpected(call)),
        }
    }

    /// Notes that the program has a message of this time now.
    #[inline(always)]
    pub(super) fn note_received(&self, number: usize, slot: u32, timestamp: f64) -> Result<()> {
        let port = &self.ports[number];
        let (end, operator, timeline) = ((number, slot), port.operator, port.timeline);
        let call = Call {
            port: &port.name,
            end,
            operator,
            timeline,
            timestamp,
            next: None,
        };
        let called = self.cycle().call(&call);
        called.map_err(|text| Error::new(Kind::CallOrder, format!("{}: {text}", self.name)))?;
        self.goes_on();
        self.at(timestamp);
        Ok(())
    }

    /// Fails on the ranks that declare a field otherwise than rank 0.
    pub(crate) fn agree(&self, call: &str, field: &FieldEnd) -> Result<()> {
        if self.ranks.is_none() {
            return Ok(());
        }
        if self.leads() {
            return self.tell_ranks(call, Ok(CollectiveResult::Field(field.clone())), None);
        }
        match self.hear_rank(call, || Ok(()))? {
            (CollectiveResult::Field(first), _) if first == *field => Ok(()),
            (CollectiveResult::Field(_), _) => {
                let text = format!(
                    "{}: {call}: rank {} declares another one than rank 0: all ranks give the same shape, decomposition, \
                     region, order and element types, and only what they own is each one's own",
                    self.name,
                    self.place_in_ranks().0
                );
                Err(Error::new(Kind::Usage, text))
            }
            _ => Err(unexpected(call)),
        }
    }

    /// Makes a call on rank 0 that tells the others nothing but that it was made. While they wait to hear of it, `may_wait` says why
    /// there is no use in that.
    pub(crate) fn act_together(
        &self,
        call: &str,
        act: impl FnOnce() -> Result<()>,
        may_wait: impl Fn() -> Result<()>,
    ) -> Result<()> {
        if self.leads() {
            let acted = self.lead(call, act);
            let told = self.tell_ranks(
                call,
                acted.clone().map(|()| CollectiveResult::Nothing),
                None,
            );
            return acted.and(told);
        }
        match self.hear_rank(call, may_wait)? {
            (CollectiveResult::Nothing, _) => Ok(()),
            _ => Err(unexpected(call)),
        }
    }

    /// Tells the rank above how often this one has sent or received each field, as it closes.
    pub(super) fn tell_steps(&self) -> Result<()> {
        let Some(up) = self.ranks.and_then(|ranks| ranks.up) else {
            return Ok(());
        };
        let mut port = self.take_turn(up)?;
        self.send_between(
            up,
            &mut port,
            &Payload::encoded(&control::encode(&self.field_steps())),
            (0.0, None),
        )
    }

    /// Takes in what ranks right below have told as they closed.
    fn hear_steps(
        &self,
        ranks: Ranks,
        below: usize,
    ) -> Result<MutexGuard<'_, Vec<(u32, FieldSteps)>>> {
        let mut port = self.take_turn(below)?;
        let mut heard = self.steps_below.lock().expect("never poisoned");
        for (place, rank) in children(ranks.rank, ranks.count).enumerate() {
            let inlet = self.ports[below].inlets[place]
                .as_ref()
                .expect("each rank below has one");
            if inlet.inbox.received() == inlet.inbox.consumed() {
                continue;
            }
            let message = self.await_at(
                &self.ports[below],
                place,
                &mut port.inlets[place],
                Patience::Forever,
            )?;
            let steps = control::decode(message.bytes()).map_err(|error| {
                let text = format!(
                    "{}: what rank {rank} tells cannot be read: {error}",
                    self.name
                );
                Error::new(Kind::Internal, text)
            })?;
            heard.push((rank, steps));
        }
        Ok(heard)
    }

    /// Fails if a rank right below has closed and has sent or received a field less often than this one has by now:
    /// others may wait for what never comes.
    pub(crate) fn look_below(&self) -> Result<()> {
        let Some((ranks, below)) = self.ranks.and_then(|ranks| Some((ranks, ranks.below?))) else {
            return Ok(());
        };
        if self.ports[below]
            .every_inlet()
            .all(|inlet| inlet.inbox.received() == 0)
            || !self.cycle().checked()
        {
            return Ok(());
        }
        // Where this is called by who takes them in, that compares them.
        let Ok(heard) = self.hear_steps(ranks, below) else {
            return Ok(());
        };
        let behind = heard.iter().find_map(|(rank, steps)| {
            self.unequal_steps((*rank, steps), |theirs, ours| theirs < ours)
        });
        behind.map_or(Ok(()), Err)
    }

    /// Of a rank that closes: fails if one right below that has closed, too, has sent or received a field more often than this one, or
    /// less; in the log of a program that is not checked.
    pub(super) fn compare_steps(&self) -> Result<()> {
        let Some((ranks, below)) = self.ranks.and_then(|ranks| Some((ranks, ranks.below?))) else {
            return Ok(());
        };
        let heard = self.hear_steps(ranks, below)?;
        let unequal = |(rank, steps): &(u32, FieldSteps)| {
            let unequal = self.unequal_steps((*rank, steps), |theirs, ours| theirs != ours);
            unequal.or_else(|| self.unequal_fields((*rank, steps)))
        };
        match heard.iter().find_map(unequal) {
            Some(error) if self.cycle().checked() => Err(error),
            Some(error) => {
                self.log(
                    WARNING,
                    &format!("{}; the order of calls is not checked", error.text),
                );
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Whether it acts for all ranks.
    pub(crate) fn leads(&self) -> bool {
        self.ranks.is_none_or(|ranks| ranks.rank == 0)
    }

    fn for_ranks(&self, (port, slot, message): &Received) -> CollectiveResult {
        CollectiveResult::Message {
            port: port.0 as u32,
            slot: *slot,
            slots: message.slots,
            number: message.number,
            settings: message.settings.as_deref().cloned(),
            steps: message.iteration.steps().to_vec(),
            time: self.cycle().now().unwrap_or(message.timestamp),
        }
    }

    /// Makes a call on rank 0 for all ranks, which are told if it waits for long.
    fn lead<T>(&self, call: &str, act: impl FnOnce() -> Result<T>) -> Result<T> {
        *self.leading.lock().expect("never poisoned") = Some(call.to_owned());
        let outcome = act();
        *self.leading.lock().expect("never poisoned") = None;
        outcome
    }

    /// Tells the ranks below that rank 0 waits in a call: one of them may have left out what would end that.
    pub(crate) fn tell_ranks_of_wait(&self) {
        let call = self.leading.lock().expect("never poisoned").clone();
        if let Some(call) = call {
            // If they cannot be reached, the call itself will say so.
            let _ = self.tell_ranks(&call, Ok(CollectiveResult::Waits), None);
        }
    }

    /// Tells the ranks below what a call has come to.
    fn tell_ranks(
        &self,
        call: &str,
        common: Result<CollectiveResult>,
        data: Option<&Message>,
    ) -> Result<()> {
        let Some(down) = self.ranks.and_then(|ranks| ranks.down) else {
            return Ok(());
        };
        let verdict = Verdict {
            call: call.to_owned(),
            outcome: outcome(common),
            steps: self.field_steps(),
        };
        let mut port = self.take_turn(down)?;
        self.send_between(
            down,
            &mut port,
            &Payload::encoded(&control::encode(&verdict)),
            (0.0, None),
        )?;
        data.map_or(Ok(()), |data| self.pass_down(down, &mut port, data))
    }

    /// What this call has come to at rank 0, and the data that come with that. Until that is told, `may_wait` says why there is no use
    /// in waiting for it.
    fn hear_rank(
        &self,
        call: &str,
        may_wait: impl Fn() -> Result<()>,
    ) -> Result<(CollectiveResult, Option<Message>)> {
        let ranks = self.ranks.expect("asked by ranks only");
        let above = ranks.above.expect("rank 0 is not told");
        let mut port = self.take_turn(above)?;
        let mut below = ranks
            .down
            .map(|down| self.take_turn(down).map(|port| (down, port)))
            .transpose()?;
        let mut next = || -> Result<Message> {
            let inlet = &mut port.inlets[0];
            let message =
                self.await_at_unless(&self.ports[above], 0, inlet, Patience::Forever, &may_wait);
            let message = message.map_err(|error| match error.kind {
                Kind::CallOrder => Error::new(error.kind, format!("{} (in {call})", error.text)),
                _ => error,
            })?;
            if let Some((down, port)) = &mut below {
                self.pass_down(*down, port, &message)?;
            }
            Ok(message)
        };
        loop {
            let told = next()?;
            let verdict: Verdict = control::decode(told.bytes()).map_err(|error| {
                Error::new(
                    Kind::Internal,
                    format!("{}: what rank 0 tells cannot be read: {error}", self.name),
                )
            })?;
            let common = result(verdict.outcome);
            let data = match &common {
                Ok(CollectiveResult::Message { .. }) => Some(next()?),
                _ => None,
            };
            self.compare_calls(call, &verdict.call)?;
            if common.is_ok() && self.cycle().checked() {
                let unequal =
                    self.unequal_steps((0, &verdict.steps), |theirs, ours| theirs != ours);
                unequal.map_or(Ok(()), Err)?;
            }
            match common {
                Ok(CollectiveResult::Waits) => continue,
                Ok(common) => return Ok((common, data)),
                Err(error) if error.kind == Kind::PortClosed => {
                    return Err(self.by_end_of(error, self.far_peers().map(|peer| &**peer)));
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Fails if rank 0 is in another call than this one.
    fn compare_calls(&self, call: &str, of_first: &str) -> Result<()> {
        if call == of_first {
            return Ok(());
        }
        let text = format!(
            "{}: rank {} calls {call}, but rank 0 calls {of_first}: calls on ports and reuse() are made by all ranks together, \
             in the same order",
            self.name,
            self.place_in_ranks().0
        );
        Err(Error::new(Kind::CallOrder, text))
    }

    fn pass_down(&self, down: usize, port: &mut PortState, message: &Message) -> Result<()> {
        let stamps = (message.timestamp, message.next_timestamp);
        self.send_between(down, port, &Payload::of(message), stamps)
    }

    fn send_between(
        &self,
        number: usize,
        state: &mut PortState,
        payload: &Payload<'_>,
        stamps: (f64, Option<f64>),
    ) -> Result<()> {
        let port = &self.ports[number];
        self.send_along_all(
            port,
            &port.outlets[0],
            state,
            payload,
            &mut Sending::of(payload, stamps),
        )
    }

    /// Takes a port between ranks.
    fn take_turn(&self, number: usize) -> Result<Latched<'_, PortState>> {
        self.ports[number].enter().map_err(|_| {
            let text = format!(
                "{}: two calls at once of a parallel program: ranks make their calls together, so one at a time",
                self.name
            );
            Error::new(Kind::Usage, text)
        })
    }
}

/// The error of a rank that is told something that does not belong to its call.
pub(super) fn unexpected(call: &str) -> Error {
    Error::new(
        Kind::Internal,
        format!("rank 0 has told something else than what {call} comes to"),
    )
}
