//! Fields pulled by the receiver. The sender keeps versions, packed for each partner. When the
//! receiver asks for a version that is there, the background thread of the sender sends the
//! version, so the receiver does not wait for the sender's program. When the receiver has asked
//! before, the program's thread sends the version at once. `versions` makes the decisions, and
//! `kept_versions` follows them.

use std::io::IoSlice;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use titin_array::{Role, TargetArray};
use titin_transport::{Buffer, Outgoing, SharedBuffer};
use titin_wire::ConduitId;
use titin_wire::control::{ToManager, WaitOn};
use titin_wire::frame::Head;
use titin_wire::meta::{Content, Meta};
use titin_wire::structure::{self, Value};

use super::kept_versions::{KeptVersions, PackedVersion, VersionAction};
use super::link::FieldLink;
use super::rendezvous::{Coupling, VersionSender};
use super::send::FieldSend;
use super::send_pieces::PieceSend;
use super::versions::{Question, VersionMessage, VersionRefusal};
use super::{Field, FieldConduit, FieldId, FieldLinks, FieldState, InstanceFields, Stamps};
use crate::field_mark::{HEADER_TEXT, announces_field};
use crate::peer_names::instance_of;
use crate::port::Outlet;
use crate::send_state::Timestamps;
use crate::serial::{Patience, Wait, message_header};
use crate::{Error, Kind, Message, Result};

/// How far a receiver has come with questions for versions.
#[derive(Default)]
pub(super) struct Asking {
    /// The number of the last question, and the number of the last question sent by rank 0 to the
    /// sender.
    asked: u64,
    told: u64,
    /// The time asked for, while there is no answer.
    open: Option<Option<f64>>,
    /// How many answers brought no version.
    refused: u64,
}

/// The message along the conduit before a version, or in place of a version.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct VersionAnswer {
    /// The number of the question.
    pub(super) question: u64,
    /// Why there is no version, as an error's kind and text.
    pub(super) refusal: Option<(Kind, String)>,
}

impl VersionAnswer {
    fn encode(&self) -> Vec<u8> {
        let mut said: Vec<Value<&[u8]>> = vec![
            Value::Text(HEADER_TEXT.into()),
            Value::Int(self.question as i64),
        ];
        if let Some((kind, why)) = &self.refusal {
            said.extend([Value::Text(why.clone()), Value::Int(*kind as i64)]);
        }
        let said = Value::List(said);
        structure::encode(&said).expect("a short list").to_bytes()
    }

    /// Reads an answer from a message. `None` if the message is no answer.
    pub(super) fn of(message: &Message) -> Option<Self> {
        if !announces_field(message) {
            return None;
        }
        let Value::List(said) = message.structure() else {
            return None;
        };
        match &said[..] {
            [Value::Text(text), Value::Int(question), why @ ..] if text == HEADER_TEXT => {
                let refusal = match why {
                    [] => None,
                    [Value::Text(why), Value::Int(kind)] => {
                        Some((Kind::numbered(i32::try_from(*kind).ok()?), why.clone()))
                    }
                    _ => return None,
                };
                Some(VersionAnswer {
                    question: *question as u64,
                    refusal,
                })
            }
            _ => None,
        }
    }
}

/// The error of a call that asks for a missing version.
fn refusal(why: VersionRefusal) -> (Kind, String) {
    let text = match why {
        VersionRefusal::TooLate { at, last } => {
            let text = format!(
                "no version follows the one of time {last}, after which the description couples it no more (titin: fields, \
                 `until`), so there is none for time {at}: ask for an earlier time, or raise `until`"
            );
            return (Kind::PortClosed, text);
        }
        VersionRefusal::Evicted { at, oldest } => format!(
            "its version at time {at} is not kept any more, the oldest one is of {oldest}: have the sender keep more (titin: fields, \
             `versions`), or wait when they are full (`full: wait`), or ask for a later time"
        ),
        VersionRefusal::TooEarly { at, first } => {
            format!(
                "it has no version at time {at}, the first one is of {first}: ask for that time, or a later one"
            )
        }
    };
    (Kind::Evicted, text)
}

impl VersionSender for InstanceFields {
    fn ring(&self) {
        self.serial.core.bell.ring();
    }

    fn carry_out(&self, conduit: ConduitId, action: VersionAction) {
        match action {
            VersionAction::Announce(question, version) => {
                self.answer(
                    conduit,
                    VersionAnswer {
                        question,
                        refusal: None,
                    },
                    version.stamps,
                );
            }
            VersionAction::Refuse(question, why) => {
                let (VersionRefusal::Evicted { at, .. }
                | VersionRefusal::TooEarly { at, .. }
                | VersionRefusal::TooLate { at, .. }) = why;
                self.answer(
                    conduit,
                    VersionAnswer {
                        question,
                        refusal: Some(refusal(why)),
                    },
                    (at, None),
                );
            }
            VersionAction::Serve(version) => {
                let exchange = version.link.exchanges.fetch_add(1, Ordering::Relaxed);
                for (outlet, piece) in version.link.port.every_outlet().zip(&version.pieces) {
                    let content = Content::Array(piece.layout().clone());
                    let meta = Meta {
                        content,
                        ..Meta::default()
                    };
                    self.post(
                        outlet,
                        exchange,
                        meta,
                        piece.memory().clone(),
                        version.stamps,
                    );
                }
            }
            VersionAction::PassOn(_) => {}
        }
    }
}

impl InstanceFields {
    fn answer(&self, conduit: ConduitId, answer: VersionAnswer, stamps: Timestamps) {
        let Some(outlet) = self.serial.outlet_of(conduit) else {
            return;
        };
        match Buffer::gather(&[IoSlice::new(&answer.encode())]) {
            Ok(body) => {
                let meta = Meta {
                    content: Content::Structure,
                    field: true,
                    ..Meta::default()
                };
                self.post(outlet, 0, meta, body.into(), stamps);
            }
            Err(why) => self.serial.fail(&crate::filter::no_memory(why)),
        }
    }

    /// Sends along a conduit without a wait for room: the receiver has asked for the message, and
    /// so takes the message. If the receiver is gone, the message is dropped.
    fn post(&self, outlet: &Outlet, tag: u32, meta: Meta, body: SharedBuffer, stamps: Timestamps) {
        let Some(carrier) = outlet.end.carrier.get() else {
            return;
        };
        let Some(sequence) = outlet.window.claim_without_room() else {
            return;
        };
        let meta = Arc::new(meta);
        let parts = [IoSlice::new(&body)];
        let outgoing = Outgoing::new(
            Head {
                tag,
                ..message_header(outlet, sequence, stamps)
            },
            &meta,
            &parts,
        );
        outgoing.share(body.clone());
        match carrier.post(&outgoing) {
            Ok(sent) => outlet.end.meter.count(outgoing.length(), sent.copied),
            Err(why) if why.is_of_message() => {
                let text = format!(
                    "{}: port '{}': {why}",
                    self.serial.core.name, outlet.end.label
                );
                self.serial.fail(&Error::new(Kind::NoMemory, text));
            }
            Err(_) => {}
        }
    }
}

impl InstanceFields {
    /// Keeps this rank's part of the next version. Waits for room, if the description says so.
    pub(super) fn keep_version(
        &self,
        send: &FieldSend<'_>,
        conduit: &FieldConduit,
        link: &Arc<FieldLink>,
    ) -> Result<()> {
        self.wait_for_carriers(conduit, link)?;
        self.wait_for_room(conduit)?;
        if self.takes_no_more(conduit) {
            self.pass_over(conduit);
            return Ok(());
        }
        let whole = |to: usize| {
            let piece = PieceSend::new(&self.serial, send, link, to);
            piece.pack(0..link.lengths[to], false)
        };
        let pieces = (0..link.schedule.count())
            .map(whole)
            .collect::<Result<_>>()?;
        let version = PackedVersion {
            link: link.clone(),
            pieces,
            stamps: send.times,
        };
        self.change_field(conduit.conduit, |coupling| {
            coupling.kept_versions(|kept| kept.produce(version));
        });
        Ok(())
    }

    /// Whether the receiver of a pulled field takes no more versions.
    fn takes_no_more(&self, conduit: &FieldConduit) -> bool {
        let given_up = self.kept_versions_of(conduit.conduit, KeptVersions::is_over) == Some(true);
        given_up || self.serial.core.process.finished(&conduit.peer)
    }

    /// Waits until the ends of a field have carriers: the background thread sends the pieces, and
    /// cannot wait for a receiver that is not there yet.
    fn wait_for_carriers(&self, conduit: &FieldConduit, link: &FieldLink) -> Result<()> {
        let own = self.serial.outlet_of(conduit.conduit).into_iter();
        let outlets: Vec<&Outlet> = own.chain(link.port.every_outlet()).collect();
        let is_missing = |outlet: &&&Outlet| outlet.end.carrier.get().is_none();
        let there = || {
            for outlet in outlets.iter().filter(is_missing) {
                match self.serial.reachable(&outlet.end) {
                    _ if self.takes_no_more(conduit) => {}
                    // The receiver may have left; then the manager will say so.
                    Err(error) if error.kind != Kind::PeerLost => return Err(error),
                    _ => return Ok(None),
                }
            }
            Ok(Some(()))
        };
        self.serial
            .wait(Wait::about(conduit.conduit), Vec::new, there)
    }

    /// Waits for room for one more version, if the description says so.
    fn wait_for_room(&self, conduit: &FieldConduit) -> Result<()> {
        let room = || {
            let has_room =
                self.kept_versions_of(conduit.conduit, KeptVersions::has_room) == Some(true);
            Ok((has_room || self.takes_no_more(conduit)).then_some(()))
        };
        let on = || {
            let untaken = self.kept_versions_of(conduit.conduit, KeptVersions::untaken);
            let (ahead, ahead_bytes) = untaken.unwrap_or_default();
            let outlet = self.serial.outlet_of(conduit.conduit);
            let on = outlet
                .and_then(|outlet| self.serial.wait_on(&outlet.end, Some(&outlet.window), None));
            // The versions of each other rank have about the same number of bytes.
            let ahead_bytes = ahead_bytes.saturating_mul(u64::from(self.place().count));
            on.map(|on| WaitOn {
                ahead,
                ahead_bytes,
                ..on
            })
            .into_iter()
            .collect()
        };
        self.serial.wait(Wait::about(conduit.conduit), on, room)
    }

    /// The receiver takes no more versions, and may have left without saying so.
    pub(super) fn pass_over(&self, way: &FieldConduit) {
        self.change_field(way.conduit, |coupling| {
            coupling.kept_versions(|kept| {
                kept.end();
                kept.pass_over();
            });
        });
    }
}

impl InstanceFields {
    /// Asks for a version, and receives the version.
    pub(super) fn receive_version(
        &self,
        field: &Field,
        way: &FieldConduit,
        state: &mut FieldState,
        arrays: &mut [TargetArray<'_>],
        at: Option<f64>,
        patience: Patience,
    ) -> Result<Stamps> {
        let deadline = patience.deadline();
        if at.is_some_and(f64::is_nan) {
            return Err(Error::new(
                Kind::Usage,
                format!(
                    "field on port '{}': the time asked for is no number",
                    field.name
                ),
            ));
        }
        // If an earlier call asked the same question without success, the question stands and is
        // not asked again.
        if state.asking.open != Some(at) {
            state.asking.open = Some(at);
            state.asking.asked += 1;
        }
        let number = state.asking.asked;
        loop {
            let header = match state.receiving.take() {
                Some(interrupted) => interrupted,
                None => {
                    let told = &mut state.asking.told;
                    let ask = || {
                        if *told < number {
                            self.meet(field, way, deadline)?;
                            let question = VersionMessage::Ask(Question { number, at });
                            self.change_field(way.conduit, |coupling| {
                                coupling.tell_sender(question)
                            });
                            *told = number;
                        }
                        Ok(Patience::until(deadline))
                    };
                    let fits = |message: &Message| field.is_answer(message);
                    self.receive_header(field, at, ask, fits)?
                }
            };
            let answer = VersionAnswer::of(&header).expect("`is_answer` has seen it");
            let late = answer.question < number;
            if let Some((kind, why)) = answer.refusal {
                state.asking.refused += 1;
                if late {
                    continue;
                }
                state.asking.open = None;
                return Err(Error::new(
                    kind,
                    format!(
                        "{}: field on port '{}': {why}",
                        self.serial.core.name, field.name
                    ),
                ));
            }
            // A version for an earlier question, given up since, is received into no array.
            let arrays = (!late).then_some(&mut *arrays);
            let piece = header.number - state.asking.refused;
            self.receive_pieces(field, state, (&header, piece), arrays, deadline)?;
            if !late {
                state.asking.open = None;
                if self.serial.leads() {
                    self.change_field(way.conduit, |coupling| {
                        coupling.tell_sender(VersionMessage::Took(number))
                    });
                }
                return Ok(Stamps::of(&header));
            }
        }
    }
}

/// How pulled fields end.
impl InstanceFields {
    /// Makes a call on all ranks. Rank 0 acts, and tells the other ranks the outcome without
    /// further data.
    fn act_on_all(
        &self,
        call: &str,
        act: impl FnOnce() -> Result<()>,
        may_wait: impl Fn() -> Result<()>,
    ) -> Result<()> {
        match &self.group {
            None => act(),
            Some(group) => group.act(call, act, may_wait),
        }
    }

    /// The conduits of the pulled fields that this instance sends or receives, by role.
    pub(crate) fn pulled(&self, role: Role) -> Vec<ConduitId> {
        let fields = self.fields.read().expect("never poisoned");
        let ways = fields
            .iter()
            .filter(|field| field.role == role)
            .flat_map(|field| &field.conduits);
        ways.filter(|way| way.is_pulled())
            .map(|way| way.conduit)
            .collect()
    }

    /// Tells senders that this instance asks for no more versions, and drops versions on the way.
    pub(crate) fn leave_versions(&self) {
        for conduit in self.pulled(Role::Receiver) {
            if self.serial.leads() {
                self.change_field(conduit, Coupling::leave);
            }
        }
        let links = self.all_links();
        let pulled = links.iter().filter(|link| link.pulled);
        pulled
            .flat_map(|link| link.port.every_inlet())
            .for_each(|inlet| inlet.inbox.discard());
    }

    /// Waits until receivers have taken the last version, or take no more, and ends the conduits.
    pub(crate) fn settle_versions(&self) -> Result<()> {
        let mut open = self.pulled(Role::Sender);
        if self.serial.leads() {
            for conduit in &open {
                self.change_field(*conduit, |coupling| {
                    coupling.kept_versions(KeptVersions::close)
                });
            }
        }
        while !open.is_empty() {
            let next = || {
                let over = |conduit: &ConduitId| self.is_taken(*conduit).transpose();
                open.iter()
                    .enumerate()
                    .find_map(|(place, conduit)| Some(over(conduit)?.map(|()| place)))
                    .transpose()
            };
            let on = || {
                let outlets = open
                    .iter()
                    .filter_map(|conduit| self.serial.outlet_of(*conduit));
                let on = |outlet: &Outlet| {
                    Some(WaitOn {
                        closes: true,
                        ..self
                            .serial
                            .wait_on(&outlet.end, Some(&outlet.window), None)?
                    })
                };
                outlets.filter_map(on).collect()
            };
            let place = self.serial.wait(Wait::default(), on, next)?;
            self.end_versions(open.swap_remove(place))?;
        }
        Ok(())
    }

    /// Whether the receiver has taken the versions of this rank, or wants no more.
    fn is_taken(&self, conduit: ConduitId) -> Result<Option<()>> {
        if let Some((ours, theirs)) = self
            .kept_versions_of(conduit, KeptVersions::differs)
            .flatten()
        {
            let rank = self.place().rank;
            let error = |field: Arc<Field>| field.count.unequal_error((rank, ours), (0, theirs));
            return self.field_by(conduit).map(error).map_or(Ok(None), Err);
        }
        let over = |pull: &KeptVersions| {
            if self.serial.leads() {
                pull.is_settled()
            } else {
                pull.is_over()
            }
        };
        let mut taken = self.kept_versions_of(conduit, over).unwrap_or(true);
        if let Some(outlet) = self.serial.outlet_of(conduit).filter(|_| !taken) {
            taken = outlet.window.closed();
            if !taken {
                self.serial.reachable(&outlet.end)?;
            }
        }
        Ok(taken.then_some(()))
    }

    /// Tells the manager that the program has withdrawn a field. The manager hears so before a
    /// receiver does: a receiver that wants more fails because of the withdrawal.
    fn tell_withdrawn(&self, field: &Field) {
        let steps = field.count.steps();
        let text = format!(
            "field on port '{}': the program has withdrawn it after {} {}, so its receivers get no more of it",
            field.name,
            steps,
            if steps == 1 { "send" } else { "sends" }
        );
        let peers = field
            .conduits
            .iter()
            .map(|way| instance_of(&way.peer).to_owned())
            .collect();
        let (instance, port) = (
            self.serial.core.name.clone(),
            Some(format!("{}.{}", self.serial.core.name, field.name)),
        );
        self.serial.tell(&ToManager::Missed {
            instance,
            peers,
            port,
            text: self.serial.as_rank(&text),
        });
    }

    /// Gives up all versions for a receiver, and tells the receiver that no more follows.
    fn end_versions(&self, conduit: ConduitId) -> Result<()> {
        let Some(outlet) = self.serial.outlet_of(conduit) else {
            return Ok(());
        };
        self.change_field(conduit, |coupling| {
            coupling.kept_versions(KeptVersions::end)
        });
        self.serial.end_stream(outlet)
    }
}

impl InstanceFields {
    /// Withdraws a field. See [`crate::Instance::withdraw_field`].
    ///
    /// # Errors
    /// [`Kind::Usage`] for a field that this instance receives; as [`Instance::send`].
    pub(crate) fn withdraw(&self, field: FieldId) -> Result<()> {
        self.serial.enter()?;
        let field = &*self.get(field);
        let mut state = field.enter()?;
        if field.role == Role::Receiver {
            let text = format!(
                "field on port '{}': it is received here; its sender withdraws it",
                field.name
            );
            return Err(Error::new(Kind::Usage, text));
        }
        self.mark_withdrawn(field);
        let links = state.links.clone();
        // At once: a receiver that waits for a piece of this rank learns that no piece comes.
        self.end_some_links(links.as_ref(), false)?;
        // An interrupted call skips this step when the program makes the call again: rank 0 tells
        // its report once.
        if !state.withdrawal_agreed {
            self.agree_on_withdrawal(field)?;
            state.withdrawal_agreed = true;
        }
        for conduit in field.pulled().filter(|_| !self.serial.leads()) {
            self.serial
                .wait(Wait::default(), Vec::new, || self.is_taken(conduit))?;
        }
        self.end_some_links(links.as_ref(), true)?;
        state.withdrawal_agreed = false;
        Ok(())
    }

    /// Notes that a field is withdrawn. The first time rank 0 tells the manager.
    fn mark_withdrawn(&self, field: &Field) {
        for conduit in &field.conduits {
            let outlet = self.serial.outlet_of(conduit.conduit);
            outlet.inspect(|outlet| outlet.end.withdrawn.store(true, Ordering::Relaxed));
        }
        if !field.withdrawn.swap(true, Ordering::Relaxed) && self.serial.leads() {
            self.tell_withdrawn(field);
        }
    }

    /// Ends the links to receivers that pull, or the other links.
    fn end_some_links(&self, links: Option<&FieldLinks>, pulled: bool) -> Result<()> {
        let links = links.into_iter().flat_map(|links| links.iter().flatten());
        links
            .filter(|link| link.pulled == pulled)
            .try_for_each(|link| self.end_link(link))
    }

    /// Makes the withdrawal on all ranks: rank 0 ends the conduits of the field.
    fn agree_on_withdrawal(&self, field: &Field) -> Result<()> {
        let end = |conduit: &FieldConduit| match conduit.is_pulled() {
            true => self.end_versions(conduit.conduit),
            false => {
                let outlet = self.serial.outlet_of(conduit.conduit);
                outlet.map_or(Ok(()), |outlet| self.serial.end_stream(outlet))
            }
        };
        // Versions go first if rank 0 has decided to send them. Fails if this rank has not produced
        // them.
        let may_wait = || {
            field
                .pulled()
                .try_for_each(|conduit| self.is_taken(conduit).map(drop))
        };
        self.act_on_all(
            &format!("withdraw of the field on port '{}'", field.name),
            || field.conduits.iter().try_for_each(end),
            may_wait,
        )
    }
}
