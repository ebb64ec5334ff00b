//! The events of a process, from the background thread and the manager.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use titin_transport::{Handler, Link, LinkError, LinkId};
use titin_wire::ConduitId;
use titin_wire::attempts::{attempt_name, attempt_of};
use titin_wire::control::{self, Greeting, SILENT_MANAGER, ToManager, ToProgram};
use titin_wire::handshake::Agreement;

use super::rank_messages::RankMessageLinks;
use super::tree::Branch;
use super::{
    FieldHandler, MANAGER, Probed, Process, ProcessMember, ProcessState, RemoteField, RouteMedium,
    StrayConduit,
};
use crate::{Error, Kind};

/// How often progress is reported while instances are open.
const TICK: Duration = Duration::from_millis(500);

/// The handler that the reactor calls. The handler does not keep the process alive.
pub(super) struct Events(pub(super) Weak<Process>);

impl Events {
    fn with<T: Default>(&self, act: impl FnOnce(&Process) -> T) -> T {
        self.0
            .upgrade()
            .map(|process| act(&process))
            .unwrap_or_default()
    }

    fn is_manager(process: &Process, link: LinkId) -> bool {
        process.lock().manager.is_at(link)
    }
}

impl Handler for Events {
    fn opened(&self, link: &Arc<Link>, _: Agreement) {
        self.with(|process| match link.tag() {
            Some(MANAGER) => process.hear(link),
            Some(tag) if RankMessageLinks::is(tag) => process.rank_message_link_opened(tag, link),
            Some(tag) => process.reached(tag, link),
            // The other end has dialled, and will send a greeting.
            None => {}
        });
    }

    fn control(&self, link: &Arc<Link>, body: &[u8]) {
        self.with(|process| {
            if Self::is_manager(process, link.id()) {
                return process.told_by_manager(body);
            }
            if process.told_by_rank(link.id(), body) || process.rank_message_arrived(link, body) {
                return;
            }
            match control::decode::<Greeting>(body) {
                Ok(greeting) if greeting.to == process.id => process.greeted(link, greeting),
                _ => link.close(),
            }
        });
    }

    fn lost(&self, link: &Arc<Link>, why: LinkError) {
        self.with(|process| {
            process.lost_rank(link.id(), &why);
            process.rank_message_link_lost(link, &why);
            if Self::is_manager(process, link.id()) && !process.is_below() {
                let text = format!("the connection to the run's manager is lost: {why}; the run is over");
                return process.fail(Error::new(Kind::Connection, text));
            }
            if let LinkError::Malformed(garbage) = &why {
                // No exit of a process explains garbage, so there is no wait for an explanation.
                let who = process_at(process.lock().routes.at(|up| up.id() == link.id()));
                let text = format!(
                    "the connection to {who} brings what cannot be understood: {garbage}: look for what overwrites memory in that \
                     program, and check that all programs use the same release of titin"
                );
                process.fail(Error::new(Kind::Connection, text));
            }
            if let LinkError::NoMemory(text) = why {
                // The other end is not to blame, and the message will not come again.
                return process.fail(Error::new(Kind::NoMemory, text));
            }
            if process.lock().routes.lost(|up| up.id() == link.id(), why, Instant::now()) {
                process.ring_all();
            }
        });
    }

    fn stray(&self, link: Option<LinkId>, conduit: ConduitId) {
        self.with(|process| {
            let stray = StrayConduit {
                conduit,
                link,
                came: Instant::now(),
            };
            process.strays.lock().expect("never poisoned").push(stray);
            process.look_soon();
        });
    }

    fn unreachable(&self, tag: u128, why: LinkError) {
        self.with(|process| match tag {
            MANAGER => {
                let todo = match why {
                    LinkError::Late(_) => {
                        "; its host may be overloaded or down, or it is stopped (the time is register_timeout of the \
                         description)"
                    }
                    LinkError::Refused(_) => "",
                    _ => "; the run may be over, or TITIN_MANAGER is stale",
                };
                let text = format!("the run's manager cannot be reached: {why}{todo}");
                process.fail(Error::new(Kind::Connection, text));
            }
            tag if RankMessageLinks::is(tag) => process.rank_messages_undelivered(tag, &why),
            tag => {
                let to = process.lock().routes.dialled(tag);
                if let Some((endpoint, _)) = to {
                    process.missed_rank(endpoint, &why);
                }
                process.lock().routes.unanswered(tag, why, Instant::now());
                process.ring_all();
            }
        });
    }

    fn hindered(&self, tag: u128, why: String) {
        self.with(|process| process.warn_of_obstacle(tag, &why));
    }

    fn tick(&self) -> Option<Duration> {
        self.with(Process::beat)
    }

    fn broken(&self, text: String) {
        self.with(|process| {
            let text = format!("titin's background thread has failed: {text}; please report this");
            process.fail(Error::new(Kind::Internal, text));
        });
    }
}

impl Process {
    /// The link to the manager, or to the rank above, is there.
    pub(super) fn hear(&self, link: &Arc<Link>) {
        let mut state = self.lock();
        let now = Instant::now();
        state.heard = Some(now);
        state.reached.get_or_insert(now);
        // The lock keeps the order: an instance cannot fail before the instance has registered.
        state.manager.open(link);
    }

    /// A link that this process has dialled is there.
    fn reached(&self, tag: u128, link: &Arc<Link>) {
        let Some((to, medium)) = self.lock().routes.dialled(tag) else {
            return;
        };
        if let Some(detour) = self.apart(to, medium, link) {
            link.note_detour(detour);
        }
        let greeting = Greeting {
            endpoint: self.id,
            to,
            pinned: medium != RouteMedium::Best,
            detour: link.detour().map(str::to_owned),
            is_rank_to_rank: false,
        };
        link.tell(&control::encode(&greeting));
        self.up(to, medium, link);
    }

    /// The dialler of a link has greeted this process.
    fn greeted(&self, link: &Arc<Link>, greeting: Greeting) {
        if greeting.is_rank_to_rank {
            return self.expect_rank_messages(link);
        }
        let medium = match greeting.pinned {
            true => RouteMedium::Pinned(link.carrier().medium()),
            false => RouteMedium::Best,
        };
        if let Some(detour) = greeting.detour {
            link.note_detour(detour);
        }
        self.up(greeting.endpoint, medium, link);
    }

    /// A message has come from the manager, or from the rank above.
    fn told_by_manager(&self, body: &[u8]) {
        self.lock().heard = Some(Instant::now());
        match control::decode(body) {
            Ok(message) => {
                self.pass_down(&message, body);
                self.told(message);
            }
            Err(error) => {
                let text =
                    format!("the manager sent what this release of titin cannot read: {error}");
                self.fail(Error::new(Kind::Connection, text));
            }
        }
    }

    fn told(&self, message: ToProgram) {
        match message {
            ToProgram::Registered(welcome) => {
                let name = welcome.instance.clone();
                self.answered(&name, Ok(*welcome));
            }
            ToProgram::Refused { instance, text } => {
                self.answered(&instance, Err(Error::new(Kind::Connection, text)));
            }
            ToProgram::Peers { peers } => self.found(peers),
            ToProgram::Probe {
                instance,
                probe,
                conduits,
            } => self.probed(instance, probe, &conduits),
            ToProgram::RaiseBuffer {
                instance,
                conduit,
                messages,
                bytes,
            } => self.buffer_raised(&instance, conduit, messages, bytes),
            ToProgram::Field {
                instance,
                conduit,
                ranks,
                first,
                field,
            } => {
                if let Some(fields) = self.fields_of(&instance) {
                    let field = RemoteField {
                        ranks,
                        first,
                        field,
                    };
                    fields.peer_declared(self, &instance, conduit, field);
                }
            }
            ToProgram::Finished { instance } => self.instance_finished(instance),
            ToProgram::MemberFailed {
                instance,
                text,
                again,
            } => self.member_failed(instance, text, again),
            ToProgram::RunFailed {
                text,
                deadlock: true,
                ..
            } => self.fail(Error::new(Kind::Deadlock, text)),
            ToProgram::RunFailed { culprit, text, .. } => {
                let text = format!("the run has failed because of {culprit}: {text}");
                self.fail(Error::new(Kind::PeerLost, text));
            }
            ToProgram::Heartbeat {} | ToProgram::Observed(_) => {}
        }
    }

    /// The manager asks an instance what the instance waits for.
    fn probed(&self, instance: String, probe: u64, conduits: &[ConduitId]) {
        let Some(member) = self.instance(&instance) else {
            return;
        };
        let Probed {
            wait,
            counts,
            polls,
        } = member.probe(conduits);
        self.tell(&ToManager::Counts {
            instance,
            probe,
            wait,
            counts,
            polls,
        });
    }

    /// The manager raises the limits of a conduit's buffer.
    fn buffer_raised(&self, instance: &str, conduit: ConduitId, messages: u64, bytes: u64) {
        let member = self.instance(instance);
        let Some(window) = member.and_then(|_| self.exchange.window(conduit)) else {
            return;
        };
        window.raise(messages, bytes);
        if let Some(fields) = self.fields_of(instance) {
            fields.raise_versions(self, instance, conduit);
        }
    }

    fn instance_finished(&self, instance: String) {
        let mut state = self.lock();
        let neighbours = state.neighbours.get(instance.as_str());
        let told: Vec<Arc<dyn ProcessMember>> = neighbours.into_iter().flatten().cloned().collect();
        let own = state.instances.get(&instance).cloned();
        state.finished.insert(instance.clone());
        drop(state);
        told.iter()
            .chain(&own)
            .for_each(|member| member.peer_finished(&instance));
        own.iter().for_each(|member| member.bell().ring());
    }

    /// A member of an ensemble has failed: calls on conduits with it fail.
    fn member_failed(&self, instance: String, text: String, again: bool) {
        let mut state = self.lock();
        if again {
            let (name, attempt) = attempt_of(&instance);
            let next = attempt_name(name, attempt.saturating_add(1));
            state.possible_attempts.insert(next);
        }
        state.failed_members.insert(instance.clone(), text);
        drop(state);
        self.loss_count.fetch_add(1, Ordering::Release);
        self.instance_finished(instance);
        self.ring_all();
    }

    /// The fields of an instance, if the instance has asked to join or is open.
    fn fields_of(&self, instance: &str) -> Option<Arc<dyn FieldHandler>> {
        self.lock().fields.get(instance).cloned()
    }

    /// Fails the run if a peer sends by a conduit that no instance of this process has. An instance
    /// that is about to join may have the conduit, and so may a field that another rank has
    /// declared first.
    fn judge_strays(&self) {
        let state = self.lock();
        let joins = !state.join_requests.is_empty() || !state.entering.is_empty();
        if joins || state.has_fields || state.branch.is_some() {
            return;
        }
        let explanation = self.explanation_time(&state);
        // Receiving threads add to the list, so this thread holds the lock only for a moment.
        let strays = std::mem::take(&mut *self.strays.lock().expect("never poisoned"));
        let (mut found, mut early) = (None, Vec::new());
        for stray in strays {
            let mut members = state.instances.values();
            if members.any(|member| member.receives_by(stray.conduit)) {
                continue;
            }
            let sender = state.routes.at(|up| Some(up.id()) == stray.link);
            // The manager may still have to name the instances of the process at the link.
            let is_early = stray.link.is_some() && stray.came.elapsed() < explanation;
            match sender {
                None if is_early => early.push(stray),
                sender => found = found.or(Some((stray.conduit, sender))),
            }
        }
        self.strays.lock().expect("never poisoned").extend(early);
        drop(state);
        if let Some((conduit, sender)) = found {
            let text = format!(
                "{} has sent a message by conduit {conduit}, which no instance of this process has: look for what overwrites memory \
                 in that program, and check that all programs use the same release of titin",
                process_at(sender)
            );
            self.fail(Error::new(Kind::Connection, text));
        }
    }

    /// Sends heartbeats and progress, and gives up links that have been broken for too long.
    /// Returns the time until the next call.
    fn beat(&self) -> Option<Duration> {
        self.give_up();
        self.judge_strays();
        let mut state = self.lock();
        state.note_beat(Instant::now());
        state.ring_late(self.patience);
        let instances: Vec<Arc<dyn ProcessMember>> = state.instances.values().cloned().collect();
        if instances.is_empty() {
            return (!state.join_requests.is_empty()).then_some(TICK);
        }
        let (heartbeat, heard, told) = (state.heartbeat(), state.heard, state.told);
        drop(state);
        instances.iter().for_each(|member| member.report_progress());
        let tick = self.nudge(&instances);
        if heartbeat.is_zero() {
            return Some(tick);
        }
        if told.is_none_or(|told| told.elapsed() >= heartbeat) {
            self.tell(&ToManager::Heartbeat {});
        }
        self.beat_below(heartbeat);
        let longest = 3 * heartbeat + self.line_patience;
        let is_silent = heard.is_some_and(|heard| heard.elapsed() > longest);
        if is_silent && !self.is_watched_by_link() {
            self.give_up_manager(longest);
        }
        Some(tick.min(heartbeat))
    }

    fn give_up_manager(&self, silence: Duration) {
        let silence = silence.as_secs_f64();
        let text = format!("{SILENT_MANAGER} for {silence:.1} s");
        self.fail(Error::new(Kind::Connection, text));
    }

    /// Has instances make the calls that are due. Returns the time until the next look.
    fn nudge(&self, instances: &[Arc<dyn ProcessMember>]) -> Duration {
        let now = Instant::now();
        let due = instances.iter().filter_map(|member| member.nudge(now));
        let tick = TICK.min(self.explanation);
        match due.min() {
            Some(due) => tick.min(due.saturating_duration_since(now)),
            None => tick,
        }
    }
}

impl ProcessState {
    /// The time between two heartbeats; zero without heartbeats.
    pub(super) fn heartbeat(&self) -> Duration {
        Duration::try_from_secs_f64(self.heartbeat).unwrap_or_default()
    }

    /// Notes that the background thread has its turn. If the turn is late, because Ctrl-Z has stopped the
    /// process or its host is busy, the process could not hear the manager and the other ranks in that
    /// time. So the time does not count as their silence.
    fn note_beat(&mut self, now: Instant) {
        let before = self.beaten.replace(now).unwrap_or(now);
        let late = (now - before).saturating_sub(TICK.min(self.heartbeat()));
        let ranks = self.branch.iter_mut().flat_map(Branch::times_heard);
        ranks
            .chain(&mut self.heard)
            .for_each(|heard| *heard = now.min(*heard + late));
    }

    /// Rings the non-blocking openings that the manager has not answered in time.
    fn ring_late(&self, patience: Duration) {
        let late = self
            .join_requests
            .values()
            .filter(|request| request.is_late(patience));
        late.for_each(|request| request.bell.ring());
    }
}

/// The process of some instances, in words for people.
fn process_at(instances: Option<String>) -> String {
    instances.map_or_else(
        || "another process".to_owned(),
        |names| format!("the process of {names}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_in_which_the_process_could_not_hear_is_no_silence() {
        let begin = Instant::now();
        let mut state = ProcessState {
            heartbeat: 5.0,
            heard: Some(begin),
            branch: Some(Branch::with_a_rank_below(begin)),
            ..ProcessState::default()
        };
        let heard = |state: &mut ProcessState| -> Vec<Instant> {
            let ranks = state.branch.iter_mut().flat_map(Branch::times_heard);
            ranks.map(|heard| *heard).chain(state.heard).collect()
        };
        state.note_beat(begin);
        state.note_beat(begin + TICK);
        assert_eq!(heard(&mut state), [begin; 2]);

        let late = Duration::from_secs(10);
        let now = begin + 2 * TICK + late;
        state.note_beat(now);
        assert_eq!(heard(&mut state), [begin + late; 2]);

        // Just before the next turn the manager is heard.
        state.heard = Some(now + late);
        state.note_beat(now + TICK + late);
        assert_eq!(heard(&mut state), [begin + 2 * late, now + TICK + late]);
    }
}
