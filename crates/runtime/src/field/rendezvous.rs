//! Where the two ends of a field find each other: from the declarations to the schedule, and to the
//! versions of a pulled field.
//!
//! The rendezvous of an instance takes in the declaration of this rank, the declaration of the
//! other end from the manager, and the messages of other ranks. The thread that brings news sends
//! the messages that follow, at once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use titin_array::{Error as Unfit, Exchange, Ownership, Role, Schedule, Side};
use titin_model::Pattern;
use titin_wire::ranks::{RankMessage, children, parent};
use titin_wire::{ConduitId, EndpointId};

use super::coupled;
use super::kept_versions::{KeptVersions, VersionAction};
use super::rank_messages::{FieldMessage, RoutedMessage, decode, encode};
use super::setup::ScheduleSetup;
use super::versions::VersionMessage;
use crate::peer_names::{rank_name, written};
use crate::process::{FieldHandler, OutgoingRankMessage, Process, RemoteField};
use crate::{Error, Kind, Result};

/// The fields of an instance, by their conduits.
#[derive(Default)]
pub(crate) struct Rendezvous {
    couplings: Mutex<HashMap<ConduitId, Arc<Mutex<Coupling>>>>,
    /// The open instance, once the manager has let the instance in.
    instance: OnceLock<Weak<dyn VersionSender>>,
}

/// The open instance, as the rendezvous of the fields sees the instance.
pub(crate) trait VersionSender: Send + Sync {
    /// Carries out an action on the field of a conduit.
    fn carry_out(&self, conduit: ConduitId, action: VersionAction);

    /// Wakes the threads in waiting calls.
    fn ring(&self);
}

/// A field of an instance by one conduit, from the declaration to the schedule.
#[derive(Default)]
pub(crate) struct Coupling {
    local: Option<LocalField>,
    remote: Option<RemoteField>,
    setup: Option<ScheduleSetup>,
    /// Messages from before both ends had declared the field.
    early: Vec<RoutedMessage>,
    failure: Option<Unfit>,
    /// For a sender with a receiver that pulls: the kept versions.
    kept: Option<KeptVersions>,
    /// Messages from rank 0 of a receiver to rank 0 of the sender.
    to_sender: Vec<VersionMessage>,
    /// Whether the receiver takes no more. Rank 0 tells the sender once the sender has declared the
    /// field.
    has_left: bool,
    /// The number of the last question for a version.
    asked: u64,
    /// Whether the process has dialled the partners of the schedule.
    reached: bool,
    /// The processes to which this rank has sent messages, and the names of the ranks there.
    written_to: HashMap<EndpointId, String>,
}

/// The agreement of both ends.
pub(crate) struct AgreedField {
    pub(crate) remote: RemoteField,
    /// The schedule of this rank, or the reason why there is no schedule.
    pub(crate) schedule: std::result::Result<Schedule, Unfit>,
}

/// The declaration of this rank.
pub(crate) struct LocalField {
    pub(crate) side: Side,
    pub(crate) parts: Ownership,
    pub(crate) role: Role,
    pub(crate) rank: u32,
    /// The instance at the other end.
    pub(crate) peer: Arc<str>,
    pub(crate) pattern: Arc<Pattern>,
}

impl Coupling {
    /// This rank declares the field.
    pub(crate) fn declare(&mut self, local: LocalField) {
        if let (Role::Sender, Some(cache)) = (local.role, local.pattern.cache()) {
            self.kept = Some(KeptVersions::new(cache, local.rank));
        }
        self.local = Some(local);
        // Orders of rank 0 wait for the declaration of this rank alone, and keep their order.
        self.receive_early();
        self.begin();
    }

    /// The other end has declared the field.
    fn peer_declared(&mut self, remote: RemoteField) {
        self.remote = Some(remote);
        if self.has_left {
            self.to_sender.push(VersionMessage::Leave);
        }
        self.begin();
    }

    /// Begins to find out the schedule, once both ends have declared the field.
    fn begin(&mut self) {
        let (Some(local), Some(remote)) = (&self.local, &self.remote) else {
            return;
        };
        match begin_setup(local, remote) {
            Ok(setup) => self.setup = Some(setup),
            Err(failure) => self.failure = Some(failure),
        }
        self.receive_early();
    }

    fn receive_early(&mut self) {
        std::mem::take(&mut self.early)
            .into_iter()
            .for_each(|routed| self.receive(routed));
    }

    /// Changes the versions of the sender.
    pub(crate) fn kept_versions(&mut self, act: impl FnOnce(&mut KeptVersions)) {
        if let Some(kept) = &mut self.kept {
            act(kept);
        }
    }

    /// Has something told to rank 0 of the sender.
    pub(crate) fn tell_sender(&mut self, message: VersionMessage) {
        if let VersionMessage::Ask(question) = message {
            self.asked = question.number;
        }
        self.to_sender.push(message);
    }

    /// Rank 0 of a receiver takes no more.
    pub(crate) fn leave(&mut self) {
        self.has_left = true;
        if self.remote.is_some() {
            self.to_sender.push(VersionMessage::Leave);
        }
    }

    /// How many questions for versions were told here, or heard.
    fn questions(&self) -> u64 {
        self.kept
            .as_ref()
            .map_or(self.asked, KeptVersions::last_question)
    }

    fn receive(&mut self, routed: RoutedMessage) {
        match (&routed.message, &self.local) {
            (FieldMessage::Version(message), Some(local)) => {
                let (message, is_expected) = (*message, is_in_place(message, &routed, local));
                self.receive_about_versions(message, is_expected, routed.rank);
            }
            _ => match &mut self.setup {
                None => self.early.push(routed),
                Some(setup) => self.failure = self.failure.take().or(setup.receive(routed).err()),
            },
        }
    }

    fn receive_about_versions(&mut self, message: VersionMessage, is_expected: bool, rank: u32) {
        match &mut self.kept {
            Some(kept) if is_expected => kept.receive(message),
            _ => {
                let broken =
                    || Unfit::Broken(format!("a rank message of rank {rank} out of place"));
                self.failure.get_or_insert_with(broken);
            }
        }
    }

    /// Takes the messages to send now. On the way, carries out the actions of the open instance.
    fn take_messages(
        &mut self,
        conduit: ConduitId,
        open: Option<&Arc<dyn VersionSender>>,
    ) -> Vec<RoutedMessage> {
        let Some(local) = &self.local else {
            return Vec::new();
        };
        let mut messages = self
            .setup
            .as_mut()
            .map(ScheduleSetup::take)
            .unwrap_or_default();
        let to_sender = |rank, message| RoutedMessage {
            of_sender: true,
            rank,
            message: FieldMessage::Version(message),
        };
        messages.extend(
            self.to_sender
                .drain(..)
                .map(|message| to_sender(0, message)),
        );
        for action in self
            .kept
            .as_mut()
            .map(KeptVersions::take)
            .unwrap_or_default()
        {
            match (action, open) {
                (VersionAction::PassOn(order), _) => {
                    let below = children(local.rank, local.side.decomposition.ranks());
                    let order = VersionMessage::Order(order);
                    messages.extend(below.map(|rank| to_sender(rank, order)));
                }
                (action, Some(open)) => open.carry_out(conduit, action),
                _ => {}
            }
        }
        messages
    }

    /// The partners of the schedule, once the schedule is known. Only the first call gets the
    /// partners.
    fn take_partners(&mut self) -> Vec<u32> {
        let schedule = self.setup.as_ref().and_then(ScheduleSetup::schedule);
        let Some(schedule) = schedule.filter(|_| !self.reached) else {
            return Vec::new();
        };
        self.reached = true;
        schedule.partners().map(|partner| partner.rank).collect()
    }
}

/// Whether the sender of a message about versions may send such a message.
fn is_in_place(message: &VersionMessage, routed: &RoutedMessage, local: &LocalField) -> bool {
    match message {
        VersionMessage::Order(_) => routed.of_sender && parent(local.rank) == Some(routed.rank),
        VersionMessage::Ask(_) | VersionMessage::Took(_) | VersionMessage::Leave => {
            !routed.of_sender && (local.rank, routed.rank) == (0, 0)
        }
    }
}

/// Compares the two ends, and begins to find out the schedule.
fn begin_setup(
    local: &LocalField,
    remote: &RemoteField,
) -> std::result::Result<ScheduleSetup, Unfit> {
    use titin_array::Bytes as _;
    let theirs = Side::from_bytes(&remote.field.side)?;
    let (declared, ranks) = (theirs.decomposition.ranks(), remote.ranks);
    if declared != ranks {
        let text = format!(
            "the other end declares an array over {declared} ranks, and has {ranks}: it was built with another release of \
             titin, or is broken"
        );
        return Err(Unfit::Broken(text));
    }
    let (from, to) = match local.role {
        Role::Sender => (
            local.side.clone(),
            coupled(&theirs, &local.pattern.receiver)?,
        ),
        Role::Receiver => (coupled(&theirs, &local.pattern.sender)?, local.side.clone()),
    };
    let exchange = Exchange::new(from, to)?;
    ScheduleSetup::begin(exchange, local.parts.clone(), local.role, local.rank)
}

impl Rendezvous {
    /// The instance is open: decisions about versions are carried out by the instance from now on.
    pub(crate) fn opened(&self, instance: Weak<dyn VersionSender>) {
        let _ = self.instance.set(instance);
    }

    /// Changes the state of a field, and sends the messages that follow from the change.
    pub(crate) fn change(
        &self,
        process: &Process,
        instance: &str,
        conduit: ConduitId,
        act: impl FnOnce(&mut Coupling),
    ) {
        let mut outgoing = Vec::new();
        self.change_one(process, instance, conduit, act, &mut outgoing);
        process.dispatch(outgoing);
    }

    fn change_one(
        &self,
        process: &Process,
        instance: &str,
        conduit: ConduitId,
        act: impl FnOnce(&mut Coupling),
        outgoing: &mut Vec<OutgoingRankMessage>,
    ) {
        let coupling = self
            .couplings
            .lock()
            .expect("never poisoned")
            .entry(conduit)
            .or_default()
            .clone();
        let open = self.instance.get().and_then(Weak::upgrade);
        let mut coupling = coupling.lock().unwrap_or_else(PoisonError::into_inner);
        act(&mut coupling);
        let Some(peer) = coupling.local.as_ref().map(|local| local.peer.clone()) else {
            return;
        };
        let messages = coupling.take_messages(conduit, open.as_ref());
        let partners = coupling.take_partners();
        // The coupling stays locked meanwhile: messages go out in the order of the changes.
        let lost = coupling.send(process, instance, conduit, messages, outgoing);
        drop(coupling);
        // At once, and not when the program first sends or receives: a partner may wait for the
        // link in a call.
        process.reach_ranks(&peer, partners.into_iter());
        if let Some(lost) = lost {
            let text = format!("{instance}: nobody has said where {} is", written(&lost));
            process.fail(Error::new(Kind::Internal, text));
        }
        // There may be a schedule now, or the reason why there is none.
        open.iter().for_each(|open| open.ring());
    }

    fn coupling(&self, conduit: ConduitId) -> Option<Arc<Mutex<Coupling>>> {
        let couplings = self.couplings.lock().expect("never poisoned");
        couplings.get(&conduit).cloned()
    }

    fn look<T>(&self, conduit: ConduitId, look: impl FnOnce(&Coupling) -> T) -> Option<T> {
        let coupling = self.coupling(conduit)?;
        let coupling = coupling.lock().unwrap_or_else(PoisonError::into_inner);
        Some(look(&coupling))
    }

    /// Whether the other end of a conduit has declared a field.
    pub(crate) fn is_declared(&self, conduit: ConduitId) -> bool {
        self.look(conduit, |coupling| coupling.remote.is_some()) == Some(true)
    }

    /// How many questions for versions of a field the instance has told, or heard.
    pub(crate) fn questions(&self, conduit: ConduitId) -> u64 {
        self.look(conduit, Coupling::questions).unwrap_or(0)
    }

    /// Has `look` read the versions of a field; `None` if the instance keeps no versions.
    pub(crate) fn kept_versions<T>(
        &self,
        conduit: ConduitId,
        look: impl FnOnce(&KeptVersions) -> T,
    ) -> Option<T> {
        self.look(conduit, |coupling| coupling.kept.as_ref().map(look))?
    }

    /// The declaration of the other end of a conduit, and the schedule of this rank, once both are
    /// known.
    ///
    /// # Errors
    /// [`Kind::PeerLost`] if some rank cannot be reached.
    pub(crate) fn agreed(
        &self,
        process: &Process,
        instance: &str,
        conduit: ConduitId,
    ) -> Result<Option<AgreedField>> {
        let Some(coupling) = self.coupling(conduit) else {
            return Ok(None);
        };
        let coupling = coupling.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(remote) = &coupling.remote else {
            return Ok(None);
        };
        let agreed = |schedule| {
            let remote = remote.clone();
            Ok(Some(AgreedField { remote, schedule }))
        };
        if let Some(failure) = &coupling.failure {
            return agreed(Err(failure.clone()));
        }
        if let Some(schedule) = coupling.setup.as_ref().and_then(ScheduleSetup::schedule) {
            return agreed(Ok(schedule.clone()));
        }
        match process.unreached(&coupling.written_to) {
            Some((rank, why)) => {
                let text = format!("{instance}: {} cannot be reached: {why}", written(rank));
                Err(Error::new(Kind::PeerLost, text))
            }
            None => Ok(None),
        }
    }
}

impl Coupling {
    /// Sends messages to other processes, and puts messages for this process into `outgoing`.
    /// Returns the name of a rank if the place of the rank is not known.
    fn send(
        &mut self,
        process: &Process,
        instance: &str,
        conduit: ConduitId,
        messages: Vec<RoutedMessage>,
        outgoing: &mut Vec<OutgoingRankMessage>,
    ) -> Option<String> {
        let local = self.local.as_ref()?;
        let is_sender = local.role == Role::Sender;
        let mut lost = None;
        for routed in messages {
            let is_own = routed.of_sender == is_sender;
            let whose = if is_own { instance } else { &*local.peer };
            let Some((endpoint, addresses)) = process.find_rank(whose, is_own, routed.rank) else {
                lost = Some(rank_name(whose, routed.rank));
                continue;
            };
            self.written_to
                .entry(endpoint)
                .or_insert_with(|| rank_name(whose, routed.rank));
            let (kind, body) = encode(&routed.message);
            let message = RankMessage {
                instance: whose.to_owned(),
                conduit,
                of_sender: is_sender,
                rank: local.rank,
                kind,
                body,
            };
            let message = OutgoingRankMessage {
                endpoint,
                addresses,
                message,
            };
            match process.is_here(endpoint) {
                true => outgoing.push(message),
                false => process.send_rank_message(message),
            }
        }
        lost
    }
}

impl FieldHandler for Rendezvous {
    fn peer_declared(
        &self,
        process: &Process,
        instance: &str,
        conduit: ConduitId,
        field: RemoteField,
    ) {
        self.change(process, instance, conduit, |coupling| {
            coupling.peer_declared(field);
        });
    }

    fn raise_versions(&self, process: &Process, instance: &str, conduit: ConduitId) {
        if self.kept_versions(conduit, |_| ()).is_some() {
            self.change(process, instance, conduit, |coupling| {
                coupling.kept_versions(KeptVersions::raise);
            });
        }
    }

    fn receive(
        &self,
        process: &Process,
        message: RankMessage,
        outgoing: &mut Vec<OutgoingRankMessage>,
    ) {
        let RankMessage {
            instance,
            conduit,
            of_sender,
            rank,
            kind,
            body,
        } = message;
        match decode(kind, &body) {
            Ok(message) => {
                let routed = RoutedMessage {
                    of_sender,
                    rank,
                    message,
                };
                let receive = |coupling: &mut Coupling| coupling.receive(routed);
                self.change_one(process, &instance, conduit, receive, outgoing);
            }
            Err(error) => {
                let text =
                    format!("rank {rank} sent what this release of titin cannot read: {error}");
                process.fail(Error::new(Kind::Connection, text));
            }
        }
    }

    fn forget(&self) {
        self.couplings.lock().expect("never poisoned").clear();
    }
}
