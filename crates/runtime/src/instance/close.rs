//! How an instance ends: in good order, with a failure of its own, or with the run's.

use std::cell::RefCell;
use std::sync::atomic::Ordering;
use std::time::Instant;

use titin_array::Role;
use titin_model::Operator;
use titin_wire::control::ToManager;

use super::Inner;
use super::report::shortened;
use crate::peer_names::instance_of;
use crate::port::{Inlet, InletState, Outlet, Port};
use crate::process::forked;
use crate::ranks::is_between_ranks;
use crate::{Error, Kind, Result};

/// Level of a record in the run's log.
pub(super) const WARNING: u8 = 30;

/// What a program has left of what a conduit brings.
struct Untaken<'a> {
    /// The number of the port.
    number: usize,
    port: &'a Port,
    inlet: &'a Inlet,
    /// How many messages the program has taken.
    taken: u64,
}

/// How far the closing of an instance has come: a call that was interrupted, or of an instance that does not wait, goes
/// on from there.
#[derive(Default)]
pub(super) struct Ending {
    /// When it began, for the profile.
    began: Option<i64>,
    /// How many receivers were told that no more follows.
    told: usize,
    /// What the log is to hear of messages that were dropped, once that is known.
    dropped: Option<Vec<String>>,
    /// Receiving ends, by their numbers, whose senders have not ended.
    open: Vec<usize>,
    /// Whether the rank above was told how often fields were sent and received.
    told_steps: bool,
    /// Whether that was compared with what those below have told.
    compared_steps: bool,
    /// How many receivers hold all, and its end.
    settled: usize,
    /// Whether the manager was told.
    said: bool,
}

impl Inner {
    /// Ends all streams: waits until the receivers hold what was sent, and until the senders have ended theirs.
    pub(super) fn finish(&self) -> Result<()> {
        let mut ending = self.ending.lock().expect("never poisoned");
        let began = *ending.began.get_or_insert_with(|| self.trace.now());
        // Once all have said that they are done the manager goes.
        if !ending.said {
            self.check()?;
        }
        self.nothing_halfway()?;
        if let Some(text) = self.cycle().untaken() {
            return Err(Error::new(Kind::CallOrder, text));
        }
        self.tell_missed();
        // The rank above hears it once all below have closed.
        let up = usize::from(self.ranks.is_some_and(|ranks| ranks.above.is_some()));
        let outlets = self.outlets().count();
        self.leave_versions();
        if !ending.told_steps {
            self.tell_steps()?;
            ending.told_steps = true;
        }
        self.end_streams(&mut ending, outlets - up)?;
        self.settle_versions()?;
        self.end_lines()?;
        self.take_leave(&mut ending)?;
        if !ending.compared_steps {
            self.compare_steps()?;
            ending.compared_steps = true;
        }
        self.settle_lines()?;
        self.end_streams(&mut ending, outlets)?;
        for outlet in self.outlets().skip(ending.settled) {
            let on = || vec![self.wait_on(&outlet.end, Some(&outlet.window), None)];
            let poll = || Ok(self.is_settled(outlet)?.then_some(()));
            self.counted(&outlet.end, || self.wait(None, None, None, on, poll))?;
            ending.settled += 1;
        }
        if !self.leads() {
            // Rank 0 says that the instance is done.
            return Ok(());
        }
        let missed = self
            .of_inlets(|number, inlet, state| inlet.missed(state, &self.ports[number]))?
            .into_iter()
            .flatten();
        if !std::mem::replace(&mut ending.said, true) {
            let settled = self.trace.live("DISCONNECT_WAIT", began);
            let dropped = ending.dropped.take().into_iter().flatten();
            dropped
                .chain(missed)
                .chain(self.idle_patterns())
                .for_each(|text| self.log(WARNING, &text));
            self.report_changes();
            self.trace.live("SHUTDOWN", settled);
            self.tell_profile();
            self.tell(&ToManager::Done {
                instance: self.name.clone(),
            });
        }
        self.wait(None, None, None, Vec::new, || {
            Ok(self.process.finished(&self.name).then_some(()))
        })
    }

    /// Tells of O_F ports on which the use that ends has sent nothing. The manager hears of it whatever the log takes.
    pub(super) fn tell_missed(&self) {
        let finals = self.ports.iter().enumerate();
        let finals = finals
            .filter(|(_, port)| port.operator == Operator::OF && port.connected() && self.leads());
        let missed = self
            .cycle()
            .missed(finals.map(|(number, port)| (number, port.slots())));
        for port in missed {
            let text = format!(
                "a use has ended in which nothing was sent on O_F port '{}': its receivers get one message less than there are \
                 uses; send in each, nil if there is nothing to say",
                self.ports[port].name
            );
            self.log(WARNING, &text);
            let peers = self.ports[port]
                .every_outlet()
                .map(|outlet| instance_of(&outlet.end.peer).to_owned());
            let (instance, peers, text) = (self.name.clone(), peers.collect(), self.as_rank(&text));
            self.tell(&ToManager::Missed {
                instance,
                peers,
                port: None,
                text,
            });
        }
    }

    /// Tells receivers that no more follows, the first so many of them; those that pull hear it once they have what they want.
    fn end_streams(&self, ending: &mut Ending, count: usize) -> Result<()> {
        let pulled = self.pulled(Role::Sender);
        for outlet in self.outlets().take(count).skip(ending.told) {
            if !pulled.contains(&outlet.end.conduit) {
                self.end_stream(outlet)?;
            }
            ending.told += 1;
        }
        Ok(())
    }

    /// Tells a receiver that no more follows, if it was not told so before.
    pub(crate) fn end_stream(&self, outlet: &Outlet) -> Result<()> {
        if let Some(carrier) = self.carrier(outlet)?
            && let Some(sent) = outlet.window.finish()
        {
            carrier.end(outlet.end.conduit, sent);
        }
        Ok(())
    }

    /// Whether a receiver holds all that was sent to it, or takes no more; fails if it cannot be reached before that.
    pub(crate) fn is_settled(&self, outlet: &Outlet) -> Result<bool> {
        let settled = outlet.window.settled() || outlet.window.closed();
        if !settled {
            self.reachable(&outlet.end)?;
        }
        Ok(settled)
    }

    /// Waits until all senders have ended, and refuses to close if one sends what the program never takes. What came
    /// through a filter that chooses among messages is dropped; so is what is sent to a program that is not checked, and
    /// which conduits have such messages is noted.
    fn take_leave(&self, ending: &mut Ending) -> Result<()> {
        let inlets = self.of_inlets(|number, inlet, state| (number, inlet, state.stashes()))?;
        let untaken = |index: usize| {
            let (number, inlet, stashed) = inlets[index];
            Untaken {
                number,
                port: &self.ports[number],
                inlet,
                taken: inlet.inbox.consumed() - stashed as u64,
            }
        };
        // What ranks below tell as they close is taken after that.
        let below = self.ranks.and_then(|ranks| ranks.below);
        if ending.dropped.is_none() {
            let checked = self.cycle().checked();
            let pulled = self.pulled(Role::Receiver);
            let chooses = |index: &usize| {
                let end = &inlets[*index].1.end;
                end.chain.chooses() || pulled.contains(&end.conduit)
            };
            // Rank 0 speaks for all, so it waits for them whatever the program does.
            let between = |index: &usize| is_between_ranks(&self.ports[inlets[*index].0].name);
            let awaited = |index: &usize| between(index) || checked && !chooses(index);
            let dropped: Vec<_>;
            (ending.open, dropped) = (0..inlets.len()).partition(awaited);
            let missed = dropped.iter().filter(|index| !chooses(index));
            ending.dropped = Some(
                missed
                    .filter_map(|&index| untaken(index).warning())
                    .collect(),
            );
            dropped
                .iter()
                .for_each(|&index| inlets[index].1.inbox.discard());
        }
        let Some(first) = ending.open.first().map(|&index| inlets[index].1) else {
            return Ok(());
        };
        let start = Instant::now();
        let open = RefCell::new(&mut ending.open);
        let on = || {
            let on = |inlet: &Inlet| self.wait_on(&inlet.end, None, Some(inlet));
            open.borrow()
                .iter()
                .map(|&index| on(inlets[index].1))
                .collect()
        };
        self.wait(None, None, None, on, || {
            let mut problem = Ok(());
            open.borrow_mut().retain(|&index| {
                let inlet = inlets[index].1;
                // Asked first: what comes before the end is there once the end is.
                let over = inlet.inbox.ended() || self.process.finished(&inlet.end.peer);
                if problem.is_ok() {
                    problem = Some(untaken(index))
                        .filter(|left| Some(left.number) != below)
                        .map_or(Ok(()), |left| left.refuse());
                }
                if problem.is_ok() && !over {
                    problem = self.reachable(&inlet.end);
                }
                !over
            });
            problem?;
            let all = open.borrow().is_empty();
            // A receiver that waits for what a rank has left out may never end, so that is told as soon as it is known.
            if !all && self.cycle().checked() {
                self.compare_steps()?;
            }
            Ok(all.then_some(()))
        })?;
        first.end.meter.waited(self.waited_since(start));
        Ok(())
    }

    /// Something of each receiving end, none of which may be in use.
    fn of_inlets<'a, T>(
        &'a self,
        mut visit: impl FnMut(usize, &'a Inlet, &InletState) -> T,
    ) -> Result<Vec<T>> {
        let mut all = Vec::new();
        let receive = |(_, port): &(usize, &Port)| !port.operator.sends() && port.connected();
        for (number, port) in self.ports.iter().enumerate().filter(receive) {
            let state = port.enter()?;
            let inlets = port.inlets.iter().zip(&state.inlets);
            all.extend(
                inlets.filter_map(|(inlet, state)| Some(visit(number, inlet.as_ref()?, state))),
            );
        }
        Ok(all)
    }

    pub(crate) fn fail(&self, error: &Error) {
        if self.over.load(Ordering::Acquire) {
            return;
        }
        self.first_error().get_or_insert_with(|| error.clone());
        if self.over.swap(true, Ordering::AcqRel) {
            return;
        }
        self.tell_profile();
        let (text, after) = (
            shortened(&self.as_rank(&error.text)),
            self.ended_before(&error.text),
        );
        self.tell(&ToManager::Failed {
            instance: self.name.clone(),
            text,
            echo: error.is_echo(),
            after,
        });
        self.process.await_below();
        self.part();
        // Many on few cores learn of the failure at once: none should tear down its program before all know.
        std::thread::yield_now();
    }

    /// An error that comes of what these peers have ended. If the program fails by it, in whatever words, the manager is told so:
    /// one of them may have failed, and then that is the reason.
    pub(crate) fn by_end_of<'a>(
        &self,
        error: Error,
        peers: impl IntoIterator<Item = &'a str>,
    ) -> Error {
        let mut after: Vec<String> = peers
            .into_iter()
            .map(|peer| instance_of(peer).to_owned())
            .filter(|peer| *peer != self.name)
            .collect();
        after.dedup();
        *self.ended.lock().expect("never poisoned") = Some((error.text.clone(), after));
        self.ended_last.store(true, Ordering::Relaxed);
        error
    }

    /// A call on a port has gone well: a program that lets go of the instance later does not do so because of such an error.
    #[inline(always)]
    pub(super) fn goes_on(&self) {
        if self.ended_last.load(Ordering::Relaxed) {
            self.ended_last.store(false, Ordering::Relaxed);
        }
    }

    /// The peers whose end the last such error came of, if a failure of this text is about it.
    fn ended_before(&self, text: &str) -> Vec<String> {
        let ended = self.ended.lock().expect("never poisoned");
        let known = ended.as_ref().filter(|(error, _)| text.contains(error));
        known.map(|(_, after)| after.clone()).unwrap_or_default()
    }

    /// The error of a program that lets go of the instance without closing it: where peers have ended something, most likely by that.
    pub(super) fn let_go(&self) -> Error {
        let ended = self.ended.lock().expect("never poisoned");
        let last = ended
            .as_ref()
            .filter(|_| self.ended_last.load(Ordering::Relaxed));
        let after = last
            .map(|(error, _)| format!(", after this: {error}"))
            .unwrap_or_default();
        Error::new(
            Kind::Closed,
            format!("the program let go of the instance without closing it{after}"),
        )
    }

    pub(super) fn leave(&self) {
        self.over.store(true, Ordering::Release);
        self.part();
    }

    /// Lets the process forget the instance, and wakes its other threads.
    fn part(&self) {
        if !forked() {
            self.process.dismiss(self);
        }
        self.bell.ring();
    }
}

impl Untaken<'_> {
    /// What there is to say if messages have come that were not taken.
    fn text(&self) -> Option<String> {
        let count = self.inlet.inbox.received() - self.taken;
        if count == 0 {
            return None;
        }
        let (s, were) = if count == 1 {
            ("", "was")
        } else {
            ("s", "were")
        };
        let end = &self.inlet.end;
        Some(format!(
            "{count} message{s} from {} on {} port '{}' {were} never taken",
            end.other(),
            self.port.operator,
            end.label
        ))
    }

    /// For the log of a program that is not checked.
    fn warning(&self) -> Option<String> {
        Some(format!(
            "{}, and dropped: the order of calls is not checked",
            self.text()?
        ))
    }

    fn refuse(&self) -> Result<()> {
        let Some(text) = self.text() else {
            return Ok(());
        };
        if is_between_ranks(&self.port.name) {
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
