//! Messages of programs, handed to the other parts.

use titin_transport::LinkId;
use titin_wire::control::{SILENT_MANAGER, ToManager};

use super::Manager;
use super::member::{ErrorOrigin, OmittedMessage};
use crate::event::{Level, LogRecord, RunAction};
use crate::plan::InstanceId;

impl Manager {
    /// A program has sent a message.
    pub(super) fn message_received(&mut self, link: LinkId, message: ToManager) {
        let Some(control_link) = self.links.get_mut(&link) else {
            return;
        };
        (control_link.last_heard, control_link.reported_silent) = (self.now, false);
        match message {
            ToManager::Heartbeat {} => {}
            ToManager::Observe {} => self.answer_observer(link),
            ToManager::Register(registration) => self.register(link, registration),
            message => self.instance_message_received(link, message),
        }
    }

    /// A program has sent a message for an instance. The manager passes over the message unless the
    /// program has joined as the instance.
    fn instance_message_received(&mut self, link: LinkId, message: ToManager) {
        let name = instance_of(&message).unwrap_or_default();
        let Some(id) = self.joined_by(link, name) else {
            let text =
                format!("a program spoke for {name}, as which it has not joined; passed over");
            return self.log(Level::Warning, None, text);
        };
        if self.members[id].left_out && !matches!(message, ToManager::Log { .. }) {
            return;
        }
        match message {
            ToManager::Waiting { wait, on, .. } => self.wait_reported(id, wait, on),
            ToManager::Proceed { wait, .. } => self.deadlock_search.proceed(id, wait, self.now),
            ToManager::Counts {
                probe,
                wait,
                counts,
                polls,
                ..
            } => {
                self.counts_reported(id, probe, wait, &counts);
                self.poll_reported(id, probe, polls);
            }
            ToManager::Resume { member, .. } => self.resume(id, &member),
            ToManager::Field { port, field, .. } => self.declare_field(id, &port, field),
            ToManager::Progress(progress) => self.members[id].progress = Some(progress),
            ToManager::Profile(mut profile) => {
                self.merge_attempts(&mut profile);
                self.note_received(id, &profile);
                let profile = Box::new(profile);
                self.actions.push(RunAction::StoreProfile(profile));
            }
            message => self.account_received(id, message),
        }
    }

    /// The instance with a name, if the program has joined as the instance.
    fn joined_by(&self, link: LinkId, name: &str) -> Option<InstanceId> {
        let id = self.names.get(name).copied();
        id.filter(|id| self.links[&link].members.contains(id))
    }

    /// An instance has sent a text for the log, or a report about its end.
    fn account_received(&mut self, id: InstanceId, message: ToManager) {
        match message {
            ToManager::Log {
                level,
                time,
                simulated,
                text,
                ..
            } => {
                let level = Level::from_number(level);
                // The report of a failed run quotes no details.
                if level > Level::Debug {
                    self.remember_log(id, &text);
                }
                self.actions.push(RunAction::Record(LogRecord {
                    level,
                    instance: Some(id),
                    time: Some(time),
                    simulated,
                    text,
                }));
            }
            ToManager::Missed {
                peers, port, text, ..
            } => {
                let omitted = OmittedMessage { peers, port, text };
                self.members[id].omitted_messages.push(omitted);
            }
            ToManager::Failed {
                text, echo, after, ..
            } => {
                let origin = self.error_origin(id, &text, echo, &after);
                self.error_reported(id, text, origin);
            }
            ToManager::Done { .. } => self.instance_done(id),
            _ => {}
        }
    }

    /// The origin of an error that an instance reports. `after` names the peers that have ended
    /// something, and `echo` says that another instance has failed. Only the text says that the
    /// manager was silent.
    fn error_origin(
        &self,
        id: InstanceId,
        text: &str,
        echo: bool,
        after: &[String],
    ) -> ErrorOrigin {
        let known = after
            .iter()
            .filter_map(|name| self.names.get(name).copied());
        let peers: Vec<InstanceId> = known.filter(|peer| *peer != id).collect();
        if echo {
            ErrorOrigin::PeerFailed
        } else if !peers.is_empty() {
            ErrorOrigin::PeerEnded(peers)
        } else if text.contains(SILENT_MANAGER) {
            ErrorOrigin::SilentManager
        } else {
            ErrorOrigin::Own
        }
    }

    /// Keeps the last lines of an instance for the report.
    pub(super) fn remember_log(&mut self, id: InstanceId, text: &str) {
        self.members[id].remember_log(text);
    }
}

/// The instance named in a message, if the message names an instance.
fn instance_of(message: &ToManager) -> Option<&str> {
    match message {
        ToManager::Waiting { instance, .. }
        | ToManager::Proceed { instance, .. }
        | ToManager::Counts { instance, .. }
        | ToManager::Log { instance, .. }
        | ToManager::Missed { instance, .. }
        | ToManager::Field { instance, .. }
        | ToManager::Resume { instance, .. }
        | ToManager::Failed { instance, .. }
        | ToManager::Done { instance } => Some(instance),
        ToManager::Progress(progress) => Some(&progress.instance),
        ToManager::Profile(profile) => Some(&profile.instance),
        ToManager::Register(_) | ToManager::Observe {} | ToManager::Heartbeat {} => None,
    }
}
