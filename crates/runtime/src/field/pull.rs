//! Fields that the receiver pulls: the sender keeps versions, packed for whom they are for, and its background thread sends what is
//! asked for, so that neither waits for the other. What is decided about them is in `versions`.

use std::io::IoSlice;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use titin_array::{Role, SourceArray, TargetArray};
use titin_model::VersionCache;
use titin_transport::{Buffer, Outgoing};
use titin_wire::ConduitId;
use titin_wire::control::{ToManager, WaitOn};
use titin_wire::frame::Head;
use titin_wire::meta::{Content, Meta};
use titin_wire::structure::{self, Value};

use super::header::{TEXT, announces_field};
use super::pieces::Come;
use super::versions::{Chooser, Decision, Keeper, Order, Question, Refusal, Word};
use super::{Coupled, Field, FieldId, Line, Stamps, State};
use crate::instance::{Inner, Patience, head};
use crate::message::Lent;
use crate::port::Outlet;
use crate::process::Meeting;
use crate::ranks::instance_of;
use crate::{Error, Instance, Kind, Message, Result};

/// How far a receiver has come with its questions.
#[derive(Default)]
pub(super) struct Asking {
    /// The number of the last question, and of the last one that rank 0 has told the sender.
    asked: u64,
    told: u64,
    /// What it asks for, while there is no answer.
    open: Option<Option<f64>>,
    /// How many answers brought no version.
    refused: u64,
}

/// What the sender of a field keeps for a receiver that pulls.
pub(crate) struct Pull {
    /// Of rank 0.
    chooser: Option<Chooser>,
    keeper: Keeper<Arc<Version>>,
    versions: usize,
    actions: Vec<Action>,
}

/// The part of a version that one rank owns.
pub(crate) struct Version {
    /// How it goes, and what goes to each partner.
    pub(super) line: Arc<Line>,
    pub(super) pieces: Vec<Lent>,
    pub(super) stamps: (f64, Option<f64>),
}

impl Version {
    fn bytes(&self) -> u64 {
        self.pieces
            .iter()
            .map(|piece| piece.bytes().len() as u64)
            .sum()
    }
}

/// What follows from a decision, in order.
pub(crate) enum Action {
    /// Rank 0 tells the receiver that a version follows, in answer to this question.
    Announce(u64, Arc<Version>),
    /// It tells it that none does.
    Refuse(u64, Refusal),
    /// The rank sends its pieces.
    Serve(Arc<Version>),
    /// It tells the ranks below.
    PassOn(Order),
}

impl Pull {
    pub(crate) fn new(cache: VersionCache, rank: u32) -> Self {
        let chooser = (rank == 0).then(|| Chooser::new(cache));
        Pull {
            chooser,
            keeper: Keeper::default(),
            versions: cache.versions as usize,
            actions: Vec::new(),
        }
    }

    /// Whether there is room for one more version. A rank that is ahead of rank 0 may keep some more than that, since it gives up
    /// none before it is told.
    pub(crate) fn has_room(&self) -> bool {
        let chooses = self.chooser.as_ref().map(Chooser::has_room);
        self.keeper.is_over() || chooses.unwrap_or(self.keeper.kept() <= self.versions + 1)
    }

    /// The part of the next version is there.
    pub(crate) fn produce(&mut self, version: Version) {
        let (timestamp, next) = version.stamps;
        self.keeper.add(Arc::new(version));
        self.decide(|chooser| chooser.produce(timestamp, next));
    }

    /// The next version is not wanted.
    pub(crate) fn pass_over(&mut self) {
        self.keeper.pass_over();
        self.follow();
    }

    /// No more are produced, though the sender goes on.
    pub(crate) fn complete(&mut self) {
        self.decide(Chooser::complete);
    }

    /// No more are produced, and the conduit ends once the last one is taken.
    pub(crate) fn close(&mut self) {
        self.decide(Chooser::close);
    }

    /// Whether rank 0 may end it.
    pub(crate) fn is_settled(&self) -> bool {
        self.chooser.as_ref().is_some_and(Chooser::is_settled)
    }

    /// Lets all ranks keep twice as many, while rank 0 waits for room and its receiver for it.
    pub(crate) fn raise(&mut self) {
        self.decide(|chooser| {
            let versions = u32::try_from(chooser.untaken().saturating_mul(2)).unwrap_or(u32::MAX);
            chooser.raise(versions)
        });
    }

    /// The number of the last question that was asked.
    pub(crate) fn heard(&self) -> u64 {
        self.chooser.as_ref().map_or(0, Chooser::heard)
    }

    /// How many versions of rank 0 wait to be taken, and the bytes of its part of them.
    fn untaken(&self) -> (u64, u64) {
        let count = self.chooser.as_ref().map_or(0, Chooser::untaken);
        (
            count,
            self.keeper.parts().map(|version| version.bytes()).sum(),
        )
    }

    /// Rank 0 gives up all versions.
    pub(crate) fn end(&mut self) {
        self.decide(Chooser::end);
    }

    /// How many versions this rank has kept and how many rank 0, if they differ; asked once it keeps no more.
    pub(crate) fn differs(&self) -> Option<(u64, String)> {
        self.keeper.differs()
    }

    /// Whether all is given up.
    pub(crate) fn is_over(&self) -> bool {
        self.keeper.is_over()
    }

    pub(crate) fn hear(&mut self, word: Word) {
        match word {
            Word::Ask(question) => self.decide(|chooser| chooser.ask(question)),
            Word::Took(question) => self.decide(|chooser| {
                chooser.took(question);
                Vec::new()
            }),
            Word::Leave => self.end(),
            Word::Order(order) => self.obey(order),
        }
    }

    /// What to do now.
    pub(crate) fn take(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.actions)
    }

    fn decide(&mut self, act: impl FnOnce(&mut Chooser) -> Vec<Decision>) {
        let decisions = self.chooser.as_mut().map(act).unwrap_or_default();
        for decision in decisions {
            match decision {
                Decision::Announce { question, version } => {
                    let version = self
                        .keeper
                        .part(version)
                        .expect("rank 0 decides by what it has")
                        .clone();
                    self.actions.push(Action::Announce(question, version));
                }
                Decision::Refuse { question, why } => {
                    self.actions.push(Action::Refuse(question, why))
                }
                Decision::Order(order) => self.obey(order),
            }
        }
        self.follow();
    }

    fn obey(&mut self, order: Order) {
        if let Order::Raise(versions) = order {
            // At once: a rank that is ahead waits for it.
            self.versions = self.versions.max(versions as usize);
        }
        self.actions.push(Action::PassOn(order));
        self.keeper.obey(order);
        self.follow();
    }

    fn follow(&mut self) {
        while let Some(version) = self.keeper.serve() {
            self.actions.push(Action::Serve(version.clone()));
        }
    }
}

/// What a message says that comes along the conduit before a version does, or in its place.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Answer {
    /// The question that it answers.
    pub(super) question: u64,
    /// Why there is no version, as an error's kind and text.
    pub(super) refusal: Option<(Kind, String)>,
}

impl Answer {
    fn encode(&self) -> Vec<u8> {
        let mut said: Vec<Value<&[u8]>> =
            vec![Value::Text(TEXT.into()), Value::Int(self.question as i64)];
        if let Some((kind, why)) = &self.refusal {
            said.extend([Value::Text(why.clone()), Value::Int(*kind as i64)]);
        }
        let said = Value::List(said);
        structure::encode(&said).expect("a short list").to_bytes()
    }

    /// The answer that a message is, if it is one.
    pub(super) fn of(message: &Message) -> Option<Self> {
        if !announces_field(message) {
            return None;
        }
        let Value::List(said) = message.structure() else {
            return None;
        };
        match &said[..] {
            [Value::Text(text), Value::Int(question), why @ ..] if text == TEXT => {
                let refusal = match why {
                    [] => None,
                    [Value::Text(why), Value::Int(kind)] => {
                        Some((Kind::numbered(i32::try_from(*kind).ok()?), why.clone()))
                    }
                    _ => return None,
                };
                Some(Answer {
                    question: *question as u64,
                    refusal,
                })
            }
            _ => None,
        }
    }
}

/// What the user is told of a version that is not there.
fn refusal(why: Refusal) -> (Kind, String) {
    let text = match why {
        Refusal::TooLate { at, last } => {
            let text = format!(
                "no version follows the one of time {last}, after which the description couples it no more (titin: fields, \
                 `until`), so there is none for time {at}: ask for an earlier time, or raise `until`"
            );
            return (Kind::PortClosed, text);
        }
        Refusal::Evicted { at, oldest } => format!(
            "its version at time {at} is not kept any more, the oldest one is of {oldest}: have the sender keep more (titin: fields, \
             `versions`), or wait when they are full (`full: wait`), or ask for a later time"
        ),
        Refusal::TooEarly { at, first } => {
            format!(
                "it has no version at time {at}, the first one is of {first}: ask for that time, or a later one"
            )
        }
    };
    (Kind::Evicted, text)
}

impl Inner {
    /// Does what follows from a decision about a field that goes by this conduit.
    pub(crate) fn carry_out(&self, conduit: ConduitId, action: Action) {
        match action {
            Action::Announce(question, version) => {
                self.answer(
                    conduit,
                    Answer {
                        question,
                        refusal: None,
                    },
                    version.stamps,
                );
            }
            Action::Refuse(question, why) => {
                let (Refusal::Evicted { at, .. }
                | Refusal::TooEarly { at, .. }
                | Refusal::TooLate { at, .. }) = why;
                self.answer(
                    conduit,
                    Answer {
                        question,
                        refusal: Some(refusal(why)),
                    },
                    (at, None),
                );
            }
            Action::Serve(version) => {
                let exchange = version.line.exchanges.fetch_add(1, Ordering::Relaxed);
                for (outlet, piece) in version.line.port.every_outlet().zip(&version.pieces) {
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
            Action::PassOn(_) => {}
        }
    }

    fn answer(&self, conduit: ConduitId, answer: Answer, stamps: (f64, Option<f64>)) {
        let Some(outlet) = self.outlet_of(conduit) else {
            return;
        };
        match Buffer::gather(&[IoSlice::new(&answer.encode())]) {
            Ok(body) => {
                let meta = Meta {
                    content: Content::Structure,
                    field: true,
                    ..Meta::default()
                };
                self.post(outlet, 0, meta, Arc::new(body), stamps);
            }
            Err(why) => self.fail(&crate::filter::no_memory(why)),
        }
    }

    /// Sends along a conduit without waiting. Who asked holds it; if that one is gone nobody misses it.
    fn post(
        &self,
        outlet: &Outlet,
        tag: u32,
        meta: Meta,
        body: Arc<Buffer>,
        stamps: (f64, Option<f64>),
    ) {
        let Some(carrier) = outlet.end.carrier.get() else {
            return;
        };
        let Some(sequence) = outlet.window.claim_place() else {
            return;
        };
        let meta = Arc::new(meta);
        let parts = [IoSlice::new(&body)];
        let outgoing = Outgoing::new(
            Head {
                tag,
                ..head(outlet, sequence, stamps)
            },
            &meta,
            &parts,
        );
        outgoing.share(body.clone());
        match carrier.post(&outgoing) {
            Ok(sent) => outlet.end.meter.count(outgoing.length(), sent.copied),
            Err(why) if why.is_of_message() => {
                let text = format!("{}: port '{}': {why}", self.name, outlet.end.label);
                self.fail(&Error::new(Kind::NoMemory, text));
            }
            Err(_) => {}
        }
    }
}

impl Inner {
    /// Keeps what this rank owns of the next version, for a receiver that pulls; waits while there is no room, if it is to.
    pub(super) fn keep_version(
        &self,
        field: &Field,
        way: &Coupled,
        line: &Arc<Line>,
        arrays: &[SourceArray<'_>],
        stamps: (f64, Option<f64>),
    ) -> Result<()> {
        // The background thread sends them, and cannot wait for who is not there yet.
        let own = self.outlet_of(way.conduit).into_iter();
        let outlets: Vec<&Outlet> = own.chain(line.port.every_outlet()).collect();
        let is_over = || {
            let given_up = self.process.pull(&self.name, way.conduit, Pull::is_over) == Some(true);
            given_up || self.process.finished(&way.peer)
        };
        let there = || {
            for outlet in outlets
                .iter()
                .filter(|outlet| outlet.end.carrier.get().is_none())
            {
                match self.reachable(&outlet.end) {
                    _ if is_over() => {}
                    // It may have left; then that will be told.
                    Err(error) if error.kind != Kind::PeerLost => return Err(error),
                    _ => return Ok(None),
                }
            }
            Ok(Some(()))
        };
        self.wait(Some(way.conduit), None, None, Vec::new, there)?;
        let room = || {
            let has_room = self.process.pull(&self.name, way.conduit, Pull::has_room) == Some(true);
            Ok((has_room || is_over()).then_some(()))
        };
        let on = || {
            let untaken = self.process.pull(&self.name, way.conduit, Pull::untaken);
            let (ahead, ahead_bytes) = untaken.unwrap_or_default();
            let on = |outlet: &Outlet| WaitOn {
                ahead,
                // Other ranks have about as much.
                ahead_bytes: ahead_bytes.saturating_mul(u64::from(self.place_in_ranks().1)),
                ..self.wait_on(&outlet.end, Some(&outlet.window), None)
            };
            self.outlet_of(way.conduit).map(on).into_iter().collect()
        };
        self.wait(Some(way.conduit), None, None, on, room)?;
        if is_over() {
            self.pass_over(way);
            return Ok(());
        }
        let partners = 0..line.schedule.count();
        let sizes = || arrays.iter().map(|array| array.size);
        let whole = |to| {
            self.pack(
                field,
                line,
                to,
                arrays,
                0..line.schedule.bytes(to, sizes()),
                false,
            )
        };
        let pieces = partners.map(whole).collect::<Result<_>>()?;
        let version = Version {
            line: line.clone(),
            pieces,
            stamps,
        };
        self.process.change(&self.name, way.conduit, |meeting| {
            meeting.pull(|pull| pull.produce(version))
        });
        Ok(())
    }

    /// The receiver takes no more; it may not have said so, if it left before it could.
    pub(super) fn pass_over(&self, way: &Coupled) {
        self.process.change(&self.name, way.conduit, |meeting| {
            meeting.pull(|pull| {
                pull.end();
                pull.pass_over();
            });
        });
    }
}

impl Instance {
    /// Asks for a version, and receives it.
    pub(super) fn receive_version(
        &self,
        field: &Field,
        way: &Coupled,
        state: &mut State,
        arrays: &mut [TargetArray<'_>],
        at: Option<f64>,
        patience: Patience,
    ) -> Result<Stamps> {
        let (inner, deadline) = (&self.inner, patience.deadline());
        if at.is_some_and(f64::is_nan) {
            return Err(Error::new(
                Kind::Usage,
                format!(
                    "field on port '{}': the time asked for is no number",
                    field.name
                ),
            ));
        }
        // A question that an earlier call has asked in vain is not asked again.
        if state.asking.open != Some(at) {
            state.asking.open = Some(at);
            state.asking.asked += 1;
        }
        let number = state.asking.asked;
        loop {
            let (header, done) = match state.receiving.take() {
                Some(halfway) => halfway,
                None => {
                    let told = &mut state.asking.told;
                    let ask = || {
                        if *told < number {
                            inner.meet(field, way, deadline)?;
                            let question = Word::Ask(Question { number, at });
                            inner
                                .process
                                .change(&inner.name, way.conduit, |meeting| meeting.say(question));
                            *told = number;
                        }
                        Ok(Patience::until(deadline))
                    };
                    let fits = |message: &Message| field.is_answer(message);
                    (
                        self.receive_begun((field.port, None), at, ask, fits)?,
                        Come::default(),
                    )
                }
            };
            let answer = Answer::of(&header).expect("`is_answer` has seen it");
            let late = answer.question < number;
            if let Some((kind, why)) = answer.refusal {
                state.asking.refused += 1;
                if late {
                    continue;
                }
                state.asking.open = None;
                return Err(Error::new(
                    kind,
                    format!("{}: field on port '{}': {why}", inner.name, field.name),
                ));
            }
            // What was asked for by a call that has given up is in the way, and goes nowhere.
            let arrays = (!late).then_some(&mut *arrays);
            let piece = header.number - state.asking.refused;
            inner.receive_pieces(field, state, (&header, piece), done, arrays, deadline)?;
            if !late {
                state.asking.open = None;
                if inner.leads() {
                    inner.process.change(&inner.name, way.conduit, |meeting| {
                        meeting.say(Word::Took(number))
                    });
                }
                return Ok(Stamps::of(&header));
            }
        }
    }
}

/// How pulled fields end.
impl Inner {
    /// The conduits of its fields that are pulled, in this role.
    pub(crate) fn pulled(&self, role: Role) -> Vec<ConduitId> {
        let fields = self.fields.read().expect("never poisoned");
        let ways = fields
            .iter()
            .filter(|field| field.role == role)
            .flat_map(|field| &field.ways);
        ways.filter(|way| way.pattern.cache().is_some())
            .map(|way| way.conduit)
            .collect()
    }

    /// Tells senders that no version is asked for any more, and takes none that is on its way.
    pub(crate) fn leave_versions(&self) {
        for conduit in self.pulled(Role::Receiver) {
            if self.leads() {
                self.process.change(&self.name, conduit, Meeting::leave);
            }
        }
        let lines = self.all_lines();
        let pulled = lines.iter().filter(|line| line.pulled);
        pulled
            .flat_map(|line| line.port.every_inlet())
            .for_each(|inlet| inlet.inbox.discard());
    }

    /// Waits until receivers have taken the last version, or take no more, and ends their conduits.
    pub(crate) fn settle_versions(&self) -> Result<()> {
        let mut open = self.pulled(Role::Sender);
        if self.leads() {
            for conduit in &open {
                self.process
                    .change(&self.name, *conduit, |meeting| meeting.pull(Pull::close));
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
                let outlets = open.iter().filter_map(|conduit| self.outlet_of(*conduit));
                let on = |outlet: &Outlet| WaitOn {
                    closes: true,
                    ..self.wait_on(&outlet.end, Some(&outlet.window), None)
                };
                outlets.map(on).collect()
            };
            let place = self.wait(None, None, None, on, next)?;
            self.end_versions(open.swap_remove(place))?;
        }
        Ok(())
    }

    /// Whether the receiver of a field has, or wants, no more of the versions that this rank keeps; it keeps no others.
    fn is_taken(&self, conduit: ConduitId) -> Result<Option<()>> {
        if let Some((ours, theirs)) = self
            .process
            .pull(&self.name, conduit, Pull::differs)
            .flatten()
        {
            let error =
                |field: Arc<Field>| field.unequal((self.place_in_ranks().0, ours), (0, theirs));
            return self.field_by(conduit).map(error).map_or(Ok(None), Err);
        }
        let over = |pull: &Pull| {
            if self.leads() {
                pull.is_settled()
            } else {
                pull.is_over()
            }
        };
        let mut taken = self.process.pull(&self.name, conduit, over).unwrap_or(true);
        if let Some(outlet) = self.outlet_of(conduit).filter(|_| !taken) {
            taken = outlet.window.closed();
            if !taken {
                self.reachable(&outlet.end)?;
            }
        }
        Ok(taken.then_some(()))
    }

    /// The manager hears of it before a receiver does: it is why one fails that wants more.
    fn tell_withdrawn(&self, field: &Field) {
        let steps = field.steps.load(Ordering::Relaxed);
        let text = format!(
            "field on port '{}': the program has withdrawn it after {} {}, so its receivers get no more of it",
            field.name,
            steps,
            if steps == 1 { "send" } else { "sends" }
        );
        let peers = field
            .ways
            .iter()
            .map(|way| instance_of(&way.peer).to_owned())
            .collect();
        let (instance, port) = (
            self.name.clone(),
            Some(format!("{}.{}", self.name, field.name)),
        );
        self.tell(&ToManager::Missed {
            instance,
            peers,
            port,
            text: self.as_rank(&text),
        });
    }

    /// Gives up all versions for a receiver, and tells it that no more follows.
    fn end_versions(&self, conduit: ConduitId) -> Result<()> {
        let Some(outlet) = self.outlet_of(conduit) else {
            return Ok(());
        };
        self.process
            .change(&self.name, conduit, |meeting| meeting.pull(Pull::end));
        self.end_stream(outlet)
    }
}

impl Instance {
    /// Says that the field is sent no more, and gives up the versions that are kept: for its receivers the port is closed behind what
    /// was pushed. It may be said again.
    ///
    /// # Errors
    /// [`Kind::Usage`] for one that receives; as [`Instance::send`].
    pub fn withdraw_field(&self, field: FieldId) -> Result<()> {
        let inner = &self.inner;
        inner.enter()?;
        let field = inner.field(field);
        let state = field.enter()?;
        if field.role == Role::Receiver {
            let text = format!(
                "field on port '{}': it is received here; its sender withdraws it",
                field.name
            );
            return Err(Error::new(Kind::Usage, text));
        }
        if !field.withdrawn.swap(true, Ordering::Relaxed) && inner.leads() {
            inner.tell_withdrawn(&field);
        }
        let end_lines = |pulled: bool| {
            let lines = state.lines.iter().flat_map(|lines| lines.iter().flatten());
            lines
                .filter(|line| line.pulled == pulled)
                .try_for_each(|line| inner.end_line(line))
        };
        // At once: a receiver that waits for a piece of this rank learns from it that none comes.
        end_lines(false)?;
        let pulled: Vec<ConduitId> = field
            .ways
            .iter()
            .filter(|way| way.pattern.cache().is_some())
            .map(|way| way.conduit)
            .collect();
        let end = || {
            field
                .ways
                .iter()
                .try_for_each(|way| match way.pattern.cache() {
                    Some(_) => inner.end_versions(way.conduit),
                    None => inner
                        .outlet_of(way.conduit)
                        .map_or(Ok(()), |outlet| inner.end_stream(outlet)),
                })
        };
        // What is to be sent of versions that rank 0 has decided on goes first, if this rank has them.
        let unequal = || {
            pulled
                .iter()
                .try_for_each(|conduit| inner.is_taken(*conduit).map(drop))
        };
        inner.act_together(
            &format!("withdraw of the field on port '{}'", field.name),
            end,
            unequal,
        )?;
        for conduit in pulled.iter().filter(|_| !inner.leads()) {
            inner.wait(None, None, None, Vec::new, || inner.is_taken(*conduit))?;
        }
        end_lines(true)
    }
}
