//! Collective calls: calls that all ranks of a parallel program make together.
//!
//! Rank 0 makes the call, and tells the other ranks the report along the conduits down the tree.
//! The other ranks wait for the report as for any message, at titin's doorbell and not inside MPI.
//! The data of a received message follow in a separate message. So on one host the data lie in
//! shared memory once for all ranks below. The announcement of a field is short, and goes with the
//! report, or in place of the report, as a [`RepeatedAnnouncement`].

use std::cell::Cell;
use std::io::IoSlice;
use std::sync::{Arc, MutexGuard};

use titin_transport::{Buffer, SharedBuffer, SpinLockGuard};
use titin_wire::control::{self, FieldEnd};
use titin_wire::meta::Content;
use titin_wire::ranks::{
    CollectiveReport, CollectiveResult, FieldSteps, RepeatedAnnouncement, children,
};

use super::RankGroup;
use super::outcome::{outcome, result};
use crate::field_mark::{announces_field, read_structure};
use crate::filter::no_memory;
use crate::iteration::Iteration;
use crate::port::{Port, PortId, PortState};
use crate::send_state::{SendState, Timestamps};
use crate::serial::{NextUse, Patience, Received, WARNING};
use crate::{Error, Kind, Message, Payload, ReceivingRanks, Result};

impl RankGroup {
    /// Begins the next use on all ranks.
    pub(crate) fn reuse(
        &self,
        act: impl FnOnce() -> Result<Option<NextUse>>,
    ) -> Result<Option<NextUse>> {
        let call = "reuse";
        if self.serial.leads() {
            let next = self.lead(call, act);
            let common = next
                .as_ref()
                .map(|next| next.as_ref().map_or(CollectiveResult::Nothing, common_use));
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
                let end =
                    |(port, slot, label): (u32, u32, String)| ((port as usize, slot), label.into());
                let f_init = f_init.into_iter().map(end).collect();
                Ok(Some(NextUse {
                    overlay: self.serial.number(overlay)?,
                    f_init,
                    iteration: Iteration::new(steps),
                }))
            }
            _ => Err(unexpected(call)),
        }
    }

    /// Receives a message on all ranks: rank 0 by `act`, and the other ranks from rank 0.
    pub(crate) fn receive(
        &self,
        call: &str,
        act: impl FnOnce() -> Result<Option<Received>>,
    ) -> Result<Option<Received>> {
        if self.serial.leads() {
            let received = self.lead(call, act);
            let (common, data) = match &received {
                Err(error) => (Err(error.clone()), None),
                Ok(None) => (Ok(CollectiveResult::Nothing), None),
                Ok(Some(received)) => (Ok(self.for_ranks(received)), Some(&received.2)),
            };
            let bare = data
                .filter(|data| self.is_kept_from_ranks(data))
                .map(|data| Message {
                    next_timestamp: data.next_timestamp,
                    ..Message::nil(data.timestamp)
                });
            let told = self.tell_ranks(call, common, bare.as_ref().or(data));
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
            ) if (port as usize) < self.serial.table.ports.len() => {
                let (settings, iteration) = (settings.map(Arc::new), Iteration::new(steps));
                let data = read_structure(data).map_err(|error| {
                    let text = format!(
                        "{}: data that rank 0 passes on cannot be read: {error}",
                        self.serial.core.name
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
                self.serial.note_received(port as usize, slot, time)?;
                Ok(Some((PortId(port as usize), slot, message)))
            }
            _ => Err(unexpected(call)),
        }
    }

    /// Receives on all ranks from a port. Rank 0 receives by `receive`, and each rank checks the
    /// message by `fits`. `call` is the text of the call, the same on all ranks.
    pub(crate) fn receive_on(
        &self,
        call: &str,
        receive: impl FnOnce(&dyn Fn(&Message) -> Result<()>) -> Result<Received>,
        fits: impl FnOnce(&Message) -> Result<()>,
    ) -> Result<Message> {
        // A message may fit rank 0 and not fit another rank. The other rank loses the message.
        let fits = Cell::new(Some(fits));
        let check = |message: &Message| fits.take().map_or(Ok(()), |fits| fits(message));
        let received = self.receive(call, || receive(&check).map(Some));
        let (.., message) = received?.ok_or_else(|| unexpected(call))?;
        match !self.serial.leads() && self.is_kept_from_ranks(&message) {
            true => Ok(message),
            false => check(&message).map(|()| message),
        }
    }

    /// Whether the data of a received message are for rank 0 alone.
    fn is_kept_from_ranks(&self, message: &Message) -> bool {
        self.receiving == ReceivingRanks::RootOnly && !is_announcement(message)
    }

    /// Receives from a port on all ranks, if rank 0 has a message.
    pub(crate) fn try_receive_on(
        &self,
        port: PortId,
        slot: Option<u32>,
    ) -> Result<Option<Message>> {
        let call = self.call_on("try_receive", port, slot);
        let received = self.receive(&call, || {
            let received = self.serial.try_receive(port, slot)?;
            Ok(received.map(|(slot, message)| (port, slot, message)))
        });
        Ok(received?.map(|(.., message)| message))
    }

    /// The text of a call on a port, as users write the call.
    pub(crate) fn call_on(&self, call: &str, port: PortId, slot: Option<u32>) -> String {
        call_on(call, &self.serial.table.ports[port.0].label(slot))
    }

    /// Compares the declarations of a field. Fails on a rank with another declaration than rank 0.
    pub(crate) fn agree(&self, call: &str, field: &FieldEnd) -> Result<()> {
        if self.serial.leads() {
            return self.tell_ranks(call, Ok(CollectiveResult::Field(field.clone())), None);
        }
        match self.hear_rank(call, || Ok(()))? {
            (CollectiveResult::Field(of_rank_0), _) if of_rank_0 == *field => Ok(()),
            (CollectiveResult::Field(_), _) => {
                let text = format!(
                    "{}: {call}: rank {} declares another one than rank 0: all ranks give the same shape, decomposition, \
                     region, order and element types, and only what they own is each one's own",
                    self.serial.core.name, self.place.rank
                );
                Err(Error::new(Kind::Usage, text))
            }
            _ => Err(unexpected(call)),
        }
    }

    /// Makes a call on all ranks. Rank 0 acts, and tells the other ranks the outcome without
    /// further data. While the other ranks wait for the report, an error of `check_wait` ends the
    /// wait.
    pub(crate) fn act(
        &self,
        call: &str,
        act: impl FnOnce() -> Result<()>,
        check_wait: impl Fn() -> Result<()>,
    ) -> Result<()> {
        if self.serial.leads() {
            let acted = self.lead(call, act);
            let told = self.tell_ranks(
                call,
                acted.clone().map(|()| CollectiveResult::Nothing),
                None,
            );
            return acted.and(told);
        }
        match self.hear_rank(call, check_wait)? {
            (CollectiveResult::Nothing, _) => Ok(()),
            _ => Err(unexpected(call)),
        }
    }

    /// Tells the rank above, as this rank closes, how often this rank has sent or received each
    /// field.
    pub(crate) fn tell_steps(&self) -> Result<()> {
        let Some(to_parent) = &self.tree.to_parent else {
            return Ok(());
        };
        let mut port = self.take_turn(to_parent)?;
        self.send_between(
            to_parent,
            &mut port,
            &Payload::encoded(&control::encode(&self.counts.to_tell())),
            (0.0, None),
        )
    }

    /// Takes in the counts of closed ranks right below.
    fn hear_steps(&self, from_children: &Port) -> Result<MutexGuard<'_, Vec<(u32, FieldSteps)>>> {
        let mut port = self.take_turn(from_children)?;
        let mut heard = self.counts_below.lock().expect("never poisoned");
        for (place, rank) in children(self.place.rank, self.place.count).enumerate() {
            let inlet = from_children.inlets[place]
                .as_ref()
                .expect("each rank below has one");
            if inlet.inbox.received() == inlet.inbox.consumed() {
                continue;
            }
            let message = self.serial.await_at(
                from_children,
                place,
                &mut port.inlets[place],
                Patience::Forever,
            )?;
            let steps = control::decode(message.bytes()).map_err(|error| {
                let text = format!(
                    "{}: what rank {rank} tells cannot be read: {error}",
                    self.serial.core.name
                );
                Error::new(Kind::Internal, text)
            })?;
            heard.push((rank, steps));
        }
        Ok(heard)
    }

    /// Fails if a rank right below has closed with fewer sends or receives of a field than this
    /// rank has made by now: other ranks may wait for ever.
    pub(crate) fn look_below(&self) -> Result<()> {
        let Some(from_children) = &self.tree.from_children else {
            return Ok(());
        };
        if from_children
            .every_inlet()
            .all(|inlet| inlet.inbox.received() == 0)
            || !self.serial.execution_loop().refuses()
        {
            return Ok(());
        }
        // An error here does not end the wait. If a call on this thread holds the ports, that call
        // takes in the counts, and compares them. Counts that do not come, or cannot be read, are
        // not compared.
        let Ok(heard) = self.hear_steps(from_children) else {
            return Ok(());
        };
        let behind = heard.iter().find_map(|(rank, steps)| {
            self.counts
                .error_if_unequal(self.place.rank, (*rank, steps), |theirs, ours| {
                    theirs < ours
                })
        });
        behind.map_or(Ok(()), Err)
    }

    /// As this rank closes: fails if a rank right below has closed with more or fewer sends or
    /// receives of a field than this rank. Where calls out of order are not refused, the difference
    /// is logged.
    pub(crate) fn compare_steps(&self) -> Result<()> {
        let Some(from_children) = &self.tree.from_children else {
            return Ok(());
        };
        let heard = self.hear_steps(from_children)?;
        let unequal = |(rank, steps): &(u32, FieldSteps)| {
            let unequal =
                self.counts
                    .error_if_unequal(self.place.rank, (*rank, steps), |theirs, ours| {
                        theirs != ours
                    });
            unequal.or_else(|| {
                self.counts
                    .error_if_unequal_number(self.place.rank, (*rank, steps))
            })
        };
        match heard.iter().find_map(unequal) {
            Some(error) if self.serial.execution_loop().refuses() => Err(error),
            Some(error) => {
                self.serial.log(
                    WARNING,
                    &format!("{}; calls out of order are not refused", error.text),
                );
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn for_ranks(&self, (port, slot, message): &Received) -> CollectiveResult {
        CollectiveResult::Message {
            port: port.0 as u32,
            slot: *slot,
            slots: message.slots,
            number: message.number,
            settings: message.settings.as_deref().cloned(),
            steps: message.iteration.steps().to_vec(),
            time: self
                .serial
                .execution_loop()
                .now()
                .unwrap_or(message.timestamp),
        }
    }

    /// Makes a call on rank 0 for all ranks. The name of the call is kept meanwhile, so that the
    /// other ranks can be told of a long wait.
    fn lead<T>(&self, call: &str, act: impl FnOnce() -> Result<T>) -> Result<T> {
        call.clone_into(&mut self.leading.lock().expect("never poisoned"));
        let outcome = act();
        self.leading.lock().expect("never poisoned").clear();
        outcome
    }

    /// Tells the ranks below that rank 0 waits in a call: a rank may have left out the call that
    /// would end the wait.
    pub(crate) fn tell_ranks_of_wait(&self) {
        let call = self.leading.lock().expect("never poisoned").clone();
        if !call.is_empty() {
            // If the ranks cannot be reached, the call itself will say so.
            let _ = self.tell_ranks(&call, Ok(CollectiveResult::Waits), None);
        }
    }

    /// Tells the ranks below the report of a call.
    fn tell_ranks(
        &self,
        call: &str,
        common: Result<CollectiveResult>,
        data: Option<&Message>,
    ) -> Result<()> {
        let Some(to_children) = &self.tree.to_children else {
            return Ok(());
        };
        let mut port = self.take_turn(to_children)?;
        let announced = data.filter(|data| is_announcement(data));
        let news = self.counts.news();
        let mut encoded = self.encoded.lock().expect("never poisoned");
        encoded.clear();
        self.encode_report(call, common, announced, &news, &mut encoded);
        let mut payload = Payload::encoded(&encoded);
        let mut stamps = (0.0, None);
        if let Some(announced) = announced {
            payload = payload.of_field();
            stamps = (announced.timestamp, announced.next_timestamp);
        }
        self.send_between(to_children, &mut port, &payload, stamps)
            .inspect_err(|_| self.announcements.clear())?;
        self.counts.told(&news);
        match data {
            Some(data) if announced.is_none() => self.pass_down(to_children, &mut port, data),
            _ => Ok(()),
        }
    }

    /// Encodes the report of a call: as a repeated announcement if that says all, else in full. A full
    /// announcement is kept as the last of its port.
    fn encode_report(
        &self,
        call: &str,
        common: Result<CollectiveResult>,
        announced: Option<&Message>,
        changed: &[(u32, u64)],
        encoded: &mut Vec<u8>,
    ) {
        if let (Ok(result), Some(header)) = (&common, announced) {
            let data = header.bytes();
            if let Some(repeated) = self.announcements.repeated(call, result, data, changed) {
                repeated.encode_into(encoded);
                return;
            }
            self.announcements.keep(call, result, &header.body);
        }
        let report = CollectiveReport {
            call: call.to_owned(),
            outcome: outcome(common),
            steps: FieldSteps::default(),
            changed: changed.to_vec(),
            data: announced.map(|header| header.bytes().to_vec()),
        };
        control::encode_into(&report, encoded);
    }

    /// The report of rank 0 on a call, and the data of a received message. Until the report
    /// comes, an error of `check_wait` ends the wait.
    fn hear_rank(
        &self,
        call: &str,
        check_wait: impl Fn() -> Result<()>,
    ) -> Result<(CollectiveResult, Option<Message>)> {
        let from_parent = self.tree.from_parent.as_ref();
        let from_parent = from_parent.expect("rank 0 is not told");
        let mut port = self.take_turn(from_parent)?;
        let to_children = self.tree.to_children.as_ref();
        let mut below = to_children
            .map(|to_children| self.take_turn(to_children).map(|port| (to_children, port)))
            .transpose()?;
        let mut next = || -> Result<Message> {
            let inlet = &mut port.inlets[0];
            let message =
                self.serial
                    .await_at_unless(from_parent, 0, inlet, Patience::Forever, &check_wait);
            let message = message.map_err(|error| match error.kind {
                Kind::CallOrder => Error::new(error.kind, format!("{} (in {call})", error.text)),
                _ => error,
            })?;
            if let Some((to_children, port)) = &mut below {
                self.pass_down(to_children, port, &message)?;
            }
            Ok(message)
        };
        loop {
            let told = next()?;
            let report = self.read_report(&told)?;
            let data = match (&report.outcome, report.data) {
                (Ok(CollectiveResult::Message { .. }), Some(body)) => {
                    Some(Message { body, ..told })
                }
                (Ok(CollectiveResult::Message { .. }), None) => Some(next()?),
                _ => None,
            };
            self.compare_calls(call, &report.call)?;
            match self.own_outcome(report.outcome)? {
                CollectiveResult::Waits => {}
                common => return Ok((common, data)),
            }
        }
    }

    /// Reads what rank 0 has told, and notes the counts of fields that have changed at rank 0. Keeps an
    /// announcement as the last of its port.
    fn read_report(&self, told: &Message) -> Result<HeardReport> {
        if let Some(repeated) = RepeatedAnnouncement::decode(told.bytes()) {
            self.counts.hear(&repeated.changed, &FieldSteps::default());
            return self.read_repeated(&repeated);
        }
        let report: CollectiveReport =
            control::decode(told.bytes()).map_err(|error| self.unreadable(&error.to_string()))?;
        self.counts.hear(&report.changed, &report.steps);
        let data = report
            .data
            .map(|data| Buffer::gather(&[IoSlice::new(&data)]));
        let data = data.transpose().map_err(no_memory)?.map(SharedBuffer::from);
        let outcome = result(report.outcome);
        if let (Ok(found), Some(data)) = (&outcome, &data) {
            self.announcements.keep(&report.call, found, data);
        }
        Ok(HeardReport {
            call: report.call.into(),
            outcome,
            data,
        })
    }

    /// The report that a repeated announcement stands for.
    fn read_repeated(&self, repeated: &RepeatedAnnouncement) -> Result<HeardReport> {
        let RepeatedAnnouncement {
            port, number, time, ..
        } = *repeated;
        let Some(last) = self.announcements.of(port) else {
            // This rank has failed in the call that the first announcement was for.
            self.own_outcome(Ok(CollectiveResult::Waits))?;
            return Err(self.unreadable("a repeated announcement without a first"));
        };
        let found = CollectiveResult::Message {
            port,
            slot: last.slot,
            slots: None,
            number,
            settings: None,
            steps: Vec::new(),
            time,
        };
        Ok(HeardReport {
            call: last.call,
            outcome: Ok(found),
            data: Some(last.data),
        })
    }

    fn unreadable(&self, why: &str) -> Error {
        let name = &self.serial.core.name;
        let text = format!("{name}: what rank 0 tells cannot be read: {why}");
        Error::new(Kind::Internal, text)
    }

    /// The outcome of a call for this rank. Fails if rank 0 has sent or received a field more or
    /// less often than this rank.
    fn own_outcome(&self, outcome: Result<CollectiveResult>) -> Result<CollectiveResult> {
        if outcome.is_ok() && self.serial.execution_loop().refuses() {
            let error = self.counts.error_if_unequal_to_rank_0(self.place.rank);
            error.map_or(Ok(()), Err)?;
        }
        outcome.map_err(|error| match error.kind {
            Kind::PortClosed => {
                let peers = self.remote_peers().map(|peer| &**peer);
                self.serial.by_end_of(error, peers)
            }
            _ => error,
        })
    }

    /// Fails if rank 0 is in another call than this rank.
    fn compare_calls(&self, call: &str, of_rank_0: &str) -> Result<()> {
        if call == of_rank_0 {
            return Ok(());
        }
        let text = format!(
            "{}: rank {} calls {call}, but rank 0 calls {of_rank_0}: calls on ports and reuse() are made by all ranks together, \
             in the same order",
            self.serial.core.name, self.place.rank
        );
        Err(Error::new(Kind::CallOrder, text))
    }

    fn pass_down(&self, to_children: &Port, port: &mut PortState, message: &Message) -> Result<()> {
        let stamps = (message.timestamp, message.next_timestamp);
        self.send_between(to_children, port, &Payload::of(message), stamps)
    }

    fn send_between(
        &self,
        port: &Port,
        state: &mut PortState,
        payload: &Payload<'_>,
        stamps: Timestamps,
    ) -> Result<()> {
        self.serial.send_along_all(
            port,
            &port.outlets[0],
            state,
            payload,
            &mut SendState::of(payload, stamps),
        )
    }

    /// Takes a port between ranks.
    fn take_turn<'p>(&self, port: &'p Port) -> Result<SpinLockGuard<'p, PortState>> {
        port.enter().map_err(|_| {
            let text = format!(
                "{}: two calls at once of a parallel program: ranks make their calls together, so one at a time",
                self.serial.core.name
            );
            Error::new(Kind::Usage, text)
        })
    }
}

/// A report of rank 0, in full.
struct HeardReport {
    /// The call, as users write it.
    call: Arc<str>,
    outcome: Result<CollectiveResult>,
    /// The data of the header, if the report announces a field.
    data: Option<SharedBuffer>,
}

/// The beginning of a use, in the form for the other ranks.
fn common_use(next: &NextUse) -> CollectiveResult {
    let end =
        |((port, slot), label): &((usize, u32), Arc<str>)| (*port as u32, *slot, label.to_string());
    CollectiveResult::Use {
        overlay: (*next.overlay.1).clone(),
        steps: next.iteration.steps().to_vec(),
        f_init: next.f_init.iter().map(end).collect(),
    }
}

/// Whether the data of a message go in the report of rank 0: the few bytes that announce a field.
fn is_announcement(message: &Message) -> bool {
    announces_field(message) && *message.content() == Content::Structure
}

/// The text of a call on a port with the slot, as users write the call.
pub(crate) fn call_on(call: &str, port: &str) -> String {
    format!("{call} on port '{port}'")
}

/// The error of a rank that gets a report of another kind than the call has.
pub(crate) fn unexpected(call: &str) -> Error {
    Error::new(
        Kind::Internal,
        format!("rank 0 has told something else than what {call} comes to"),
    )
}
