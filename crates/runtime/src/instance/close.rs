//! How an instance closes: all streams end in good order, with the streams of the ranks and of the
//! fields.
//!
//! A program makes an interrupted or pending call again. The call then goes on from where the call
//! was.

use std::cell::RefCell;
use std::sync::atomic::Ordering;
use std::time::Instant;

use titin_array::Role;
use titin_model::Operator;
use titin_wire::control::{ToManager, WaitOn};

use super::Instance;
use super::closing::Closing;
use super::layers::Layers;
use crate::port::{Inlet, Outlet, Port};
use crate::process::forked;
use crate::serial::{WARNING, Wait};
use crate::{Error, Kind, Result};

/// The sender at the other end of a conduit.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StreamSender {
    Instance,
    RankAbove,
    RankBelow,
}

/// A receiving end. The sender has to end before the instance closes.
struct LastReceipt<'a> {
    port: &'a Port,
    inlet: &'a Inlet,
    sender: StreamSender,
    /// How many messages were taken from the inbox and are not with the program.
    stashed: u64,
    /// How many messages were dropped, because a use has not received them.
    dropped: u64,
    /// The warning about messages that a filter has left out.
    missed: Option<String>,
}

impl Instance {
    /// Whether another thread was in a call when [`Instance::close`] was called last. The memory
    /// that such a call uses has to stay.
    pub fn was_in_use(&self) -> bool {
        self.serial.core.closed_in_use.load(Ordering::Relaxed)
    }

    /// Ends the part of the instance in the run. Waits until the receivers hold all sent messages,
    /// or have finished.
    ///
    /// # Errors
    /// The first error that was noted; [`Kind::CallOrder`] if the program never took some messages;
    /// [`Kind::PeerLost`] if the run has failed; [`Kind::Usage`] while another thread is in a call.
    /// With an error the run fails.
    pub fn close(&self) -> Result<()> {
        let serial = &self.serial;
        // In a forked child the other threads are gone, and may have left locks locked.
        let in_use = !forked() && self.layers.is_in_use();
        serial.core.closed_in_use.store(in_use, Ordering::Relaxed);
        if forked() || self.layers.is_over() {
            return serial.first_error().clone().map_or(Ok(()), Err);
        }
        serial.outside()?;
        if in_use {
            return Err(self.fail_in_use());
        }
        serial.core.closing.store(true, Ordering::Relaxed);
        let noted = serial.first_error().clone();
        let outcome = noted.map_or_else(|| self.layers.finish(), Err);
        match &outcome {
            Ok(()) => {
                serial.core.over.store(true, Ordering::Release);
                self.layers.leave();
            }
            // The program makes an interrupted or pending call again, and the call then goes on.
            Err(error) if error.is_unfinished() => {}
            Err(error) => serial.fail(error),
        }
        outcome
    }

    /// Fails the run, since another thread is in a call. An earlier error comes first, if there is
    /// one.
    fn fail_in_use(&self) -> Error {
        let serial = &self.serial;
        let text = format!(
            "{}: close() while another thread is in a call on the instance; join the thread first",
            serial.core.name
        );
        let before = serial.first_error().clone();
        let error = before
            .or_else(|| serial.check().err())
            .unwrap_or_else(|| Error::new(Kind::Usage, text));
        serial.fail(&error);
        error
    }
}

impl Layers {
    /// Ends all streams. Waits until the receivers hold all sent messages, and until the senders
    /// have ended their streams.
    fn finish(&self) -> Result<()> {
        let mut closing = self.closing.lock().expect("never poisoned");
        let (serial, fields) = (&self.serial, &self.fields);
        let began = *closing
            .began
            .get_or_insert_with(|| serial.profile.trace.now());
        // The manager goes once all instances are reported as done.
        if !closing.said {
            serial.check()?;
        }
        fields.nothing_halfway()?;
        if let Some(text) = serial.execution_loop().untaken() {
            return Err(Error::new(Kind::CallOrder, text));
        }
        serial.tell_missed();
        fields.leave_versions();
        self.tell_counts(&mut closing)?;
        let (before_up, outlets) = (self.outlets_but_to_parent().count(), self.outlets().count());
        self.end_streams(&mut closing, before_up)?;
        fields.settle_versions()?;
        fields.end_links()?;
        self.wait_for_senders(&mut closing)?;
        self.compare_counts(&mut closing)?;
        fields.settle_links()?;
        // The end of this stream tells the rank above of the end of all ranks below.
        self.end_streams(&mut closing, outlets)?;
        for outlet in self.outlets().skip(closing.settled) {
            self.wait_until_settled(outlet)?;
            closing.settled += 1;
        }
        // Rank 0 reports that the instance is done.
        match serial.leads() {
            true => self.say_done(&mut closing, began),
            false => Ok(()),
        }
    }

    /// The sending ends of ports, and the sending ends to the ranks below.
    fn outlets_but_to_parent(&self) -> impl Iterator<Item = &Outlet> {
        let group = self.group.iter();
        let down = group.flat_map(|group| group.tree.outlets_to_children());
        self.serial.outlets().chain(down)
    }

    /// All sending ends; the end to the rank above comes last.
    fn outlets(&self) -> impl Iterator<Item = &Outlet> {
        let group = self.group.iter();
        let up = group.filter_map(|group| group.tree.outlet_to_parent());
        self.outlets_but_to_parent().chain(up)
    }

    fn tell_counts(&self, closing: &mut Closing) -> Result<()> {
        if let Some(group) = self.group.as_ref().filter(|_| !closing.told_steps) {
            group.tell_steps()?;
        }
        closing.told_steps = true;
        Ok(())
    }

    fn compare_counts(&self, closing: &mut Closing) -> Result<()> {
        if let Some(group) = self.group.as_ref().filter(|_| !closing.compared_steps) {
            group.compare_steps()?;
        }
        closing.compared_steps = true;
        Ok(())
    }

    /// Tells the first `count` receivers of the end of their streams. Receivers that pull hear of
    /// the end once they have all wanted versions.
    fn end_streams(&self, closing: &mut Closing, count: usize) -> Result<()> {
        let pulled = self.fields.pulled(Role::Sender);
        for outlet in self.outlets().take(count).skip(closing.told) {
            if !pulled.contains(&outlet.end.conduit) {
                self.serial.end_stream(outlet)?;
            }
            closing.told += 1;
        }
        Ok(())
    }

    /// Waits until a receiver holds all messages sent to the receiver.
    fn wait_until_settled(&self, outlet: &Outlet) -> Result<()> {
        let serial = &self.serial;
        let on = || serial.wait_to_send(outlet, 0);
        let poll = || Ok(serial.is_settled(outlet)?.then_some(()));
        serial.counted(&outlet.end, || serial.wait(Wait::default(), on, poll))
    }

    /// Tells the manager that the instance is done, and waits until the manager has noted the end.
    fn say_done(&self, closing: &mut Closing, began: i64) -> Result<()> {
        let serial = &self.serial;
        let missed = self.last_receipts()?;
        if !std::mem::replace(&mut closing.said, true) {
            let settled = serial.profile.trace.live("DISCONNECT_WAIT", began);
            let dropped = closing.dropped.take().into_iter().flatten();
            dropped
                .chain(missed.into_iter().filter_map(|receipt| receipt.missed))
                .chain(self.fields.idle_patterns())
                .for_each(|text| serial.log(WARNING, &text));
            serial.report_progress(self.fields.bytes_sent());
            serial.profile.trace.live("SHUTDOWN", settled);
            self.tell_profile();
            let instance = serial.core.name.clone();
            serial.tell(&ToManager::Done { instance });
        }
        let (process, name) = (&serial.core.process, &serial.core.name);
        serial.wait(Wait::default(), Vec::new, || {
            Ok(process.finished(name).then_some(()))
        })
    }

    /// Waits until all senders have ended. Refuses to close if a sender sends messages that the
    /// program never takes.
    fn wait_for_senders(&self, closing: &mut Closing) -> Result<()> {
        let receipts = self.last_receipts()?;
        if closing.dropped.is_none() {
            self.drop_untaken(closing, &receipts);
        }
        let Some(first) = closing.open.first().map(|&index| receipts[index].inlet) else {
            return Ok(());
        };
        let serial = &self.serial;
        let start = Instant::now();
        let open = RefCell::new(&mut closing.open);
        let on = || self.waits_for(open.borrow().iter().map(|&index| &receipts[index]));
        serial.wait(Wait::default(), on, || {
            self.drop_ended(&mut open.borrow_mut(), &receipts)?;
            let all = open.borrow().is_empty();
            // A receiver may wait for ever for a message left out by another rank. So this rank
            // compares the counts as early as possible.
            if let Some(group) = self.group.as_ref().filter(|_| !all)
                && serial.execution_loop().refuses()
            {
                group.compare_steps()?;
            }
            Ok(all.then_some(()))
        })?;
        first.end.meter.waited(serial.waited_since(start));
        Ok(())
    }

    /// Takes the ends whose senders have ended out of `open`, up to the first failure.
    fn drop_ended(&self, open: &mut Vec<usize>, receipts: &[LastReceipt<'_>]) -> Result<()> {
        let mut outcome = Ok(());
        open.retain(|&index| {
            if outcome.is_err() {
                return true;
            }
            match receipts[index].has_ended(self) {
                Ok(ended) => !ended,
                Err(error) => {
                    outcome = Err(error);
                    true
                }
            }
        });
        outcome
    }

    /// Drops messages of pulled fields, messages behind a filter that chooses among messages, and
    /// messages to a program whose calls out of order are not refused. Notes the conduits of the
    /// latter. The closing call waits for all other senders.
    fn drop_untaken(&self, closing: &mut Closing, receipts: &[LastReceipt<'_>]) {
        let refuses = self.serial.execution_loop().refuses();
        let pulled = self.fields.pulled(Role::Receiver);
        let chooses = |receipt: &LastReceipt<'_>| {
            let end = &receipt.inlet.end;
            end.chain.chooses() || pulled.contains(&end.conduit)
        };
        // Rank 0 speaks for all ranks, so rank 0 waits for the other ranks whatever the program
        // does.
        let awaited = |index: &usize| {
            let receipt = &receipts[*index];
            receipt.sender != StreamSender::Instance || refuses && !chooses(receipt)
        };
        let dropped: Vec<usize>;
        (closing.open, dropped) = (0..receipts.len()).partition(awaited);
        let dropped = || dropped.iter().map(|&index| &receipts[index]);
        let unwanted = dropped().filter(|receipt| !chooses(receipt));
        closing.dropped = Some(unwanted.filter_map(LastReceipt::warning).collect());
        dropped().for_each(|receipt| receipt.inlet.inbox.discard());
    }

    /// A wait for these senders, as the manager hears of the wait: nothing while a rank waits for
    /// other ranks.
    fn waits_for<'a>(&self, receipts: impl Iterator<Item = &'a LastReceipt<'a>>) -> Vec<WaitOn> {
        let on = |receipt: &LastReceipt<'_>| {
            let inlet = receipt.inlet;
            self.serial.wait_on(&inlet.end, None, Some(inlet))
        };
        receipts.map(on).collect::<Option<_>>().unwrap_or_default()
    }

    /// All receiving ends. Fails if a call uses one of the ends.
    fn last_receipts(&self) -> Result<Vec<LastReceipt<'_>>> {
        let mut receipts = Vec::new();
        let receives = |port: &&Port| !port.operator.sends() && port.connected();
        for port in self.serial.table.ports.iter().filter(receives) {
            add_receipts(&mut receipts, port, StreamSender::Instance)?;
        }
        if let Some(group) = &self.group {
            let (above, below) = group.tree.receiving_ports();
            for (port, sender) in [
                (above, StreamSender::RankAbove),
                (below, StreamSender::RankBelow),
            ] {
                port.map_or(Ok(()), |port| add_receipts(&mut receipts, port, sender))?;
            }
        }
        Ok(receipts)
    }
}

fn add_receipts<'a>(
    receipts: &mut Vec<LastReceipt<'a>>,
    port: &'a Port,
    sender: StreamSender,
) -> Result<()> {
    let state = port.enter()?;
    for (inlet, state) in port.inlets.iter().zip(&state.inlets) {
        receipts.extend(inlet.as_ref().map(|inlet| LastReceipt {
            port,
            inlet,
            sender,
            stashed: state.stashes() as u64,
            dropped: state.dropped,
            missed: inlet.missed(state, port),
        }));
    }
    Ok(())
}

impl LastReceipt<'_> {
    /// Whether the sender has ended. Fails if the program has left messages, or the sender cannot
    /// be reached.
    fn has_ended(&self, layers: &Layers) -> Result<bool> {
        let end = &self.inlet.end;
        // The program leaves a failed member alone.
        if layers
            .serial
            .core
            .process
            .member_failure(&end.peer)
            .is_some()
        {
            return Ok(true);
        }
        // Read first: messages sent before the end are there once the end is.
        let ended = self.inlet.inbox.ended() || layers.serial.core.process.finished(&end.peer);
        // This rank takes the closing messages of the ranks below later.
        if self.sender != StreamSender::RankBelow {
            self.refuse()?;
        }
        if !ended {
            layers.serial.reachable(end)?;
        }
        Ok(ended)
    }

    /// The text about messages that no call has taken, if such messages have come.
    fn text(&self) -> Option<String> {
        let inbox = &self.inlet.inbox;
        let count = inbox.received() - (inbox.consumed() - self.stashed) + self.dropped;
        if count == 0 {
            return None;
        }
        Some(
            self.inlet
                .end
                .messages_were(count, self.port, "never taken"),
        )
    }

    /// The warning for the log of a program whose calls out of order are not refused.
    fn warning(&self) -> Option<String> {
        Some(format!(
            "{}, and dropped: calls out of order are not refused",
            self.text()?
        ))
    }

    /// Fails if messages have come that no call has taken.
    fn refuse(&self) -> Result<()> {
        let Some(text) = self.text() else {
            return Ok(());
        };
        if self.sender != StreamSender::Instance {
            let text = "rank 0 has made calls that this rank has not made before it closed: all ranks make the same calls \
                        on ports, and of reuse() and close(), in the same order";
            return Err(Error::new(Kind::CallOrder, text));
        }
        let todo = match self.port.operator {
            Operator::FInit => "call reuse() until it returns false, and receive in every use",
            _ => "receive as often as the sender sends, or let the sender send less often",
        };
        Err(Error::new(Kind::CallOrder, format!("{text}; {todo}")))
    }
}
