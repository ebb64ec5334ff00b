//! Fields: arrays that are spread over the ranks of an instance, which go from the ranks that own a piece to those that want it.
//!
//! A field goes by an ordinary port. Rank 0 sends an ordinary message along the conduit, which says that the field follows, at
//! which time (`header`): so the order of calls, `reuse`, closing and the search for deadlocks are as for any message. The pieces
//! go from rank to rank (`pieces`) along conduits of their own, which each rank opens to those that it exchanges something with
//! (`line`); their messages are tagged with the number of the one that rank 0 has sent. A serial program is the case of one rank.
//!
//! Who sends what to whom is the business of `titin-array`.

mod header;
mod line;
mod pieces;
mod pull;
pub(crate) mod setup;
mod versions;

use std::fmt::Display;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::Instant;

use titin_array::{
    Bytes as _, Error as Unfit, LocalLayout, Ownership, Region, Role, Side, SourceArray,
    TargetArray,
};
use titin_model::{Pattern, PatternSide};
use titin_wire::ConduitId;
use titin_wire::control::{FieldEnd, ToManager, WaitOn};
use titin_wire::meta::Dtype;
use titin_wire::ranks::FieldSteps;

pub(crate) use header::ordinary;
use header::{HEADER, announces_field};
pub(crate) use line::Line;
use pieces::{Come, Done};
pub(crate) use pull::{Action, Pull};
use pull::{Answer, Asking};
pub(crate) use versions::Word;

use crate::instance::{Inner, Patience};
use crate::port::End;
use crate::process::{Found, Own};
use crate::{Error, Instance, Kind, Message, Payload, PortId, Result};

/// A field of an instance: declared once, then used in calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FieldId(usize);

/// What an instance keeps of a field.
pub(crate) struct Field {
    port: PortId,
    /// The name of the port.
    name: Arc<str>,
    role: Role,
    dtypes: Vec<Dtype>,
    /// The conduits that it goes by: several of a sender, one of a receiver.
    ways: Vec<Coupled>,
    state: Mutex<State>,
    /// How often it was sent, a call that goes on included, or received, at steps that are not coupled, too.
    steps: AtomicU64,
    /// Whether the sender has said that no more follows.
    withdrawn: AtomicBool,
}

/// A conduit that a field goes by.
pub(crate) struct Coupled {
    pub(crate) conduit: ConduitId,
    /// The instance at the other end.
    peer: Arc<str>,
    /// At which steps of this end it goes, and who says when.
    pattern: Arc<Pattern>,
}

/// How far a field has come.
#[derive(Default)]
struct State {
    /// To or from each of the peers, once these have said how their arrays are spread; none to one that pulls and has left before.
    lines: Option<Lines>,
    /// The steps of the program that it has made: calls that were done.
    steps: u64,
    /// What a send was at that was interrupted, at which time, and how far it had come.
    sending: Option<(f64, Done)>,
    /// What a receive was at: the message that says that the field follows, and how far it had come.
    receiving: Option<(Message, Come)>,
    /// Where the arrays lie that have some of it already.
    into: Option<Vec<(usize, LocalLayout)>>,
    asking: Asking,
}

/// One to each of the peers.
type Lines = Arc<[Option<Arc<Line>>]>;

/// When a field that was received was valid, in simulated time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stamps {
    /// Simulated time of the field.
    pub timestamp: f64,
    /// Simulated time of the next one, where the sender knows it.
    pub next_timestamp: Option<f64>,
}

impl Instance {
    /// Declares that a port carries a field: arrays of these element types, all of one decomposition, that travel together. `side` says how
    /// they are spread over the ranks of this instance and what of them is coupled, and `parts` what of it this rank owns, if no
    /// rule says so. It does not wait for the other end.
    ///
    /// # Errors
    /// [`Kind::Usage`] for a vector port, another number of ranks than the instance has, or sides that are not the same on all ranks.
    pub fn field(
        &self,
        port: PortId,
        side: Side,
        parts: Ownership,
        dtypes: &[Dtype],
    ) -> Result<FieldId> {
        let inner = &self.inner;
        inner.enter()?;
        let named = &inner.ports[port.0];
        let wrong = |why: String| {
            Err(Error::new(
                Kind::Usage,
                format!("field on port '{}': {why}", named.name),
            ))
        };
        if named.vector {
            return wrong("it is a vector port; give each field a port of its own".into());
        }
        if inner.light.is_some() {
            return wrong("light instances have no fields".into());
        }
        let (rank, ranks) = inner.place_in_ranks();
        if side.decomposition.ranks() != ranks {
            let given = side.decomposition.ranks();
            return wrong(format!(
                "its array is spread over {given} ranks, but {} has {ranks}",
                inner.name
            ));
        }
        if inner
            .fields
            .read()
            .expect("never poisoned")
            .iter()
            .any(|field| field.port == port)
        {
            return wrong("it has one already: declare a field once, before the steps".into());
        }
        if dtypes.is_empty() {
            return wrong("it has no array; give the element type of each".into());
        }
        let filtered = |end: &End| !end.chain.is_empty() || end.chain.chooses();
        if let Some((end, _)) = named.every_end().find(|(end, _)| filtered(end)) {
            return wrong(format!(
                "there are filters between it and {}, which see no field: take them out of the description",
                end.other()
            ));
        }
        parts
            .check(&side.decomposition, rank)
            .map_err(|error| refused(inner, &named.name, &error))?;
        let role = if named.operator.sends() {
            Role::Sender
        } else {
            Role::Receiver
        };
        let ways = inner.ways_of(port);
        let mut sides = Vec::new();
        for way in &ways {
            let side = coupled(&side, way.share(role))
                .map_err(|error| refused(inner, &named.name, &error))?;
            sides.push(side);
        }
        let end = FieldEnd {
            side: side.to_bytes(),
            dtypes: dtypes.iter().map(|dtype| *dtype as u8).collect(),
        };
        inner.agree(&format!("field on port '{}'", named.name), &end)?;
        inner.process.expect_fields();
        if rank == 0 {
            let (instance, port) = (inner.name.clone(), named.name.to_string());
            inner.tell(&ToManager::Field {
                instance,
                port,
                field: end,
            });
        }
        for (way, side) in ways.iter().zip(sides) {
            let (parts, peer, pattern) = (parts.clone(), way.peer.clone(), way.pattern.clone());
            let own = Own {
                side,
                parts,
                role,
                rank,
                peer,
                pattern,
            };
            inner
                .process
                .change(&inner.name, way.conduit, |meeting| meeting.declare(own));
        }
        named.has_field.store(true, Ordering::Relaxed);
        let (name, dtypes) = (named.name.clone(), dtypes.to_vec());
        let (state, steps, withdrawn) =
            (Mutex::default(), AtomicU64::new(0), AtomicBool::new(false));
        let mut fields = inner.fields.write().expect("never poisoned");
        fields.push(Arc::new(Field {
            port,
            name,
            role,
            dtypes,
            ways,
            state,
            steps,
            withdrawn,
        }));
        Ok(FieldId(fields.len() - 1))
    }

    /// Sends the field: of each of its arrays what this rank owns, to those that the description couples at this step. Returns when
    /// the caller may change the arrays; waits until the other end has said how its own are spread, and while a buffer is full.
    /// For a receiver that pulls a version is kept.
    ///
    /// # Errors
    /// As [`Instance::send`]; [`Kind::TypeMismatch`] if the two ends do not fit each other.
    pub fn send_field(
        &self,
        field: FieldId,
        arrays: &[SourceArray<'_>],
        timestamp: f64,
        next_timestamp: Option<f64>,
    ) -> Result<()> {
        let inner = &self.inner;
        inner.enter()?;
        let field = inner.field(field);
        let mut state = field.enter()?;
        field.check(arrays.iter().map(|array| array.size))?;
        if field.withdrawn.load(Ordering::Relaxed) {
            let text = format!(
                "field on port '{}': it was withdrawn, and is sent no more",
                field.name
            );
            return Err(Error::new(Kind::Usage, text));
        }
        let (step, stamps) = (state.steps + 1, (timestamp, next_timestamp));
        let goes = |way: &Coupled| way.share(Role::Sender).steps.contain(step);
        // It goes before the search for the other end, which may have no field there: so that hears of it.
        let mut done = match state
            .sending
            .take_if(|(at, _)| at.to_bits() == timestamp.to_bits())
        {
            Some((_, done)) => done,
            None if state.sending.is_some() => {
                let text = format!(
                    "field on port '{}': a call at another time was interrupted, when some of it was sent: make that again first",
                    field.name
                );
                return Err(Error::new(Kind::Usage, text));
            }
            None => {
                let apart = field
                    .ways
                    .iter()
                    .filter(|way| !goes(way) || way.pattern.cache().is_some());
                let header = Payload::of_field(&HEADER);
                self.send_but(
                    apart.map(|way| way.conduit).collect(),
                    field.port,
                    &header,
                    stamps,
                )?;
                field.steps.fetch_add(1, Ordering::Relaxed);
                Done::default()
            }
        };
        let send = |state: &mut State, done: &mut Done| -> Result<()> {
            let lines = inner.lines(&field, state, None)?;
            let all = field.ways.iter().zip(&*lines).filter(|(way, _)| goes(way));
            let ways = all
                .clone()
                .filter_map(|(way, line)| Some((way, line.as_ref()?)));
            let pieces = ways.clone().flat_map(|(way, line)| {
                let count = if way.pattern.cache().is_some() {
                    1
                } else {
                    line.schedule.count()
                };
                (0..count).map(move |turn| (way, line, line.partner(turn)))
            });
            for (way, line, to) in pieces.skip(done.pieces) {
                match way.pattern.cache() {
                    Some(_) => inner.keep_version(&field, way, line, arrays, stamps)?,
                    None => inner.send_piece(&field, line, to, arrays, stamps, &mut done.bytes)?,
                }
                *done = Done {
                    pieces: done.pieces + 1,
                    bytes: 0,
                };
            }
            for (_, line) in ways.filter(|(way, _)| way.pattern.cache().is_none()) {
                line.exchanges.fetch_add(1, Ordering::Relaxed);
            }
            // Who was to pull it has left before this rank could meet it.
            all.filter(|(_, line)| line.is_none())
                .for_each(|(way, _)| inner.pass_over(way));
            Ok(())
        };
        let sent = send(&mut state, &mut done);
        if let Err(error) = sent {
            state.sending = error.is_unfinished().then_some((timestamp, done));
            return Err(error);
        }
        state.steps = step;
        // The description may end it before the sender does.
        let ends = |way: &&Coupled| {
            way.pattern.cache().is_some() && way.share(Role::Sender).steps.end_with(step)
        };
        for way in field.ways.iter().filter(ends) {
            inner.process.change(&inner.name, way.conduit, |meeting| {
                meeting.pull(Pull::complete);
            });
        }
        Ok(())
    }

    /// Receives the field into these arrays: what this rank owns of it, and nothing else of them is written. Waits until it is there.
    /// Where the patience ends when some of it has come, the call is to be made again with the same arrays. The patience of a program
    /// of several ranks is for the announcement by rank 0 of the sender alone, on which all ranks agree.
    /// A field that is pulled is that of the version at or before the simulated time `at`, which is known once the sender has passed
    /// that time, or the latest one. `None` if the description couples nothing at this step.
    ///
    /// # Errors
    /// As [`Instance::receive`]; [`Kind::TypeMismatch`] if the two ends do not fit each other; [`Kind::Evicted`] for a version that
    /// is not kept; [`Kind::Usage`] for a time with a field that is not pulled.
    pub fn receive_field(
        &self,
        field: FieldId,
        arrays: &mut [TargetArray<'_>],
        at: Option<f64>,
        patience: Patience,
    ) -> Result<Option<Stamps>> {
        let inner = &self.inner;
        inner.enter()?;
        let field = inner.field(field);
        let mut state = field.enter()?;
        field.check(arrays.iter().map(|array| array.size))?;
        if state.receiving.is_some()
            && state
                .into
                .as_ref()
                .is_some_and(|into| *into != places(arrays))
        {
            let text = format!(
                "field on port '{}': a call was interrupted, or its time was over, when some of it was received: make that again first, \
                 with the same arrays",
                field.name
            );
            return Err(Error::new(Kind::Usage, text));
        }
        let step = state.steps + 1;
        let way = field.ways.first();
        if state.receiving.is_none()
            && way.is_some_and(|way| !way.share(Role::Receiver).steps.contain(step))
        {
            state.steps = step;
            field.steps.store(step, Ordering::Relaxed);
            return Ok(None);
        }
        let stamps = match way.filter(|way| way.pattern.cache().is_some()) {
            Some(way) => self.receive_version(&field, way, &mut state, arrays, at, patience)?,
            None if at.is_some() => {
                let text = format!(
                    "field on port '{}': its sender pushes it, so it comes in order and not at a time asked for; write mode: pull \
                     for it in the description (titin: fields)",
                    field.name
                );
                return Err(Error::new(Kind::Usage, text));
            }
            None => {
                let deadline = patience.deadline();
                let (header, done) = match state.receiving.take() {
                    Some(halfway) => halfway,
                    None => {
                        let fits = |message: &Message| field.is_header(message);
                        let begin = || Ok(Patience::until(deadline));
                        (
                            self.receive_begun((field.port, None), None, begin, fits)?,
                            Come::default(),
                        )
                    }
                };
                let number = header.number;
                inner.receive_pieces(
                    &field,
                    &mut state,
                    (&header, number),
                    done,
                    Some(arrays),
                    deadline,
                )?;
                Stamps::of(&header)
            }
        };
        state.steps = step;
        field.steps.store(step, Ordering::Relaxed);
        Ok(Some(stamps))
    }
}

impl Coupled {
    fn share(&self, role: Role) -> &PatternSide {
        match role {
            Role::Sender => &self.pattern.sender,
            Role::Receiver => &self.pattern.receiver,
        }
    }
}

/// An end of a field, of which the description may couple another region than the program.
pub(crate) fn coupled(side: &Side, share: &PatternSide) -> std::result::Result<Side, Unfit> {
    let (side, who) = match &share.region {
        None => (side.clone(), "it"),
        Some((lower, upper)) => (
            side.clone().region(Region::new(lower, upper)?),
            "the description (titin: fields)",
        ),
    };
    side.check(who)?;
    Ok(side)
}

impl Stamps {
    fn of(message: &Message) -> Self {
        Stamps {
            timestamp: message.timestamp,
            next_timestamp: message.next_timestamp,
        }
    }
}

impl Field {
    fn enter(&self) -> Result<MutexGuard<'_, State>> {
        match self.state.try_lock() {
            Ok(state) => Ok(state),
            Err(TryLockError::WouldBlock) => {
                let text = format!("two calls at once on the field of port '{}'", self.name);
                Err(Error::new(Kind::Usage, text))
            }
            Err(TryLockError::Poisoned(_)) => {
                Err(Error::new(Kind::Internal, "a call on a field has panicked"))
            }
        }
    }

    /// Whether some thread is in a call on it.
    pub(crate) fn is_in_use(&self) -> bool {
        matches!(self.state.try_lock(), Err(TryLockError::WouldBlock))
    }

    /// Fails unless there is an array for each element type, of that size.
    fn check(&self, sizes: impl ExactSizeIterator<Item = usize> + Clone) -> Result<()> {
        if sizes
            .clone()
            .eq(self.dtypes.iter().map(|dtype| dtype.size()))
        {
            return Ok(());
        }
        let text = format!(
            "field on port '{}': it has {} arrays, of {}; {} were given, of {:?} bytes an element",
            self.name,
            self.dtypes.len(),
            names(&self.dtypes),
            sizes.len(),
            sizes.collect::<Vec<_>>()
        );
        Err(Error::new(Kind::Usage, text))
    }

    /// Fails unless this message says that a field follows.
    fn is_header(&self, message: &Message) -> Result<()> {
        if announces_field(message) {
            return Ok(());
        }
        let text = format!(
            "port '{}' carries a field here, but its sender sends ordinary messages: declare the field at both ends",
            self.name
        );
        Err(Error::new(Kind::TypeMismatch, text))
    }

    /// Fails unless this message is the answer to who asks for a version.
    fn is_answer(&self, message: &Message) -> Result<()> {
        let text = || {
            format!(
                "port '{}' takes versions of a field here (titin: fields), but its sender sends ordinary messages, or has no \
                 field on its port: declare it at both ends",
                self.name
            )
        };
        Answer::of(message)
            .map(drop)
            .ok_or_else(|| Error::new(Kind::TypeMismatch, text()))
    }

    fn match_types(&self, peer: &str, theirs: &[u8]) -> Result<()> {
        if self
            .dtypes
            .iter()
            .map(|dtype| *dtype as u8)
            .eq(theirs.iter().copied())
        {
            return Ok(());
        }
        let theirs: Vec<Dtype> = theirs
            .iter()
            .filter_map(|number| Dtype::from_number(*number))
            .collect();
        let text = format!(
            "field on port '{}': its arrays are of {}, those of {peer} of {}; both ends declare the same",
            self.name,
            names(&self.dtypes),
            names(&theirs)
        );
        Err(Error::new(Kind::TypeMismatch, text))
    }

    /// The error of a rank that has sent it, or received it, more often than another one, or less.
    fn unequal(&self, (rank, made): (u32, u64), (other, theirs): (u32, impl Display)) -> Error {
        let (did, todo) = match self.role {
            Role::Sender => ("sent", "send, and withdraw,"),
            Role::Receiver => ("received", "receive"),
        };
        let text = format!(
            "field on port '{}': rank {rank} has {did} it {made} times, and rank {other} {theirs} times: all ranks {todo} as often as \
             rank 0",
            self.name
        );
        Error::new(Kind::CallOrder, text)
    }

    fn misfit(&self, peer: &str, error: &titin_array::Error) -> Error {
        let text = format!("field on port '{}' with {peer}: {error}", self.name);
        Error::new(Kind::TypeMismatch, text)
    }
}

/// Ordinary calls on ports that carry a field.
impl Inner {
    /// Fails if an ordinary call is to receive on a port that carries a field: it would take what says that the field follows, or
    /// wait for a version that nobody asks for.
    #[inline(always)]
    pub(crate) fn receives_no_field(&self, ports: &[PortId]) -> Result<()> {
        let has_field = |port: &&PortId| {
            self.ports
                .get(port.0)
                .is_some_and(|port| port.has_field.load(Ordering::Relaxed))
        };
        ports
            .iter()
            .find(has_field)
            .map_or(Ok(()), |port| self.refuse_receive(*port))
    }

    #[cold]
    fn refuse_receive(&self, port: PortId) -> Result<()> {
        self.enter()?;
        let fields = self.fields.read().expect("never poisoned");
        let Some(field) = fields.iter().find(|field| field.port == port) else {
            return Ok(());
        };
        let pulls = field.ways.iter().any(|way| way.pattern.cache().is_some());
        let (is, why) = match pulls {
            _ if field.role == Role::Sender => return Ok(()),
            true => ("is pulled", ", which asks for a version"),
            false => ("comes from rank to rank", ""),
        };
        let text = format!(
            "{}: the field on port '{}' {is}: receive it by the field{why}",
            self.name, field.name
        );
        Err(Error::new(Kind::Usage, text))
    }

    /// Fails if an ordinary call, `send` or `loan`, is to send on a port that carries a field: the receiver could not tell the
    /// message from what says that the field follows. One that was withdrawn has closed the port, which that call finds out.
    #[cold]
    pub(crate) fn refuse_send(&self, call: &str, port: PortId) -> Result<()> {
        let fields = self.fields.read().expect("never poisoned");
        let sent = |field: &&Arc<Field>| {
            field.port == port
                && field.role == Role::Sender
                && !field.withdrawn.load(Ordering::Relaxed)
        };
        let Some(field) = fields.iter().find(sent) else {
            return Ok(());
        };
        let text = format!(
            "{}: {call} on port '{}', which carries a field: send by the field, or on a port of its own",
            self.name, field.name
        );
        Err(Error::new(Kind::Usage, text))
    }
}

impl Inner {
    /// The conduits that a field on a port goes by.
    fn ways_of(&self, port: PortId) -> Vec<Coupled> {
        let way = |(conduit, peer)| Coupled {
            conduit,
            peer,
            pattern: self.pattern_of(conduit),
        };
        self.conduits_of(port).into_iter().map(way).collect()
    }

    /// Whether a conduit carries a field, as both ends have declared.
    pub(crate) fn carries_field(&self, end: &End) -> bool {
        let fields = self.fields.read().expect("never poisoned");
        let mut ways = fields.iter().flat_map(|field| &field.ways);
        ways.any(|way| way.conduit == end.conduit)
            && self.process.is_declared(&self.name, end.conduit)
    }

    /// Whether the program has withdrawn a field that goes by this conduit.
    pub(crate) fn is_withdrawn(&self, conduit: ConduitId) -> bool {
        self.field_by(conduit)
            .is_some_and(|field| field.withdrawn.load(Ordering::Relaxed))
    }

    /// The field that goes by a conduit.
    fn field_by(&self, conduit: ConduitId) -> Option<Arc<Field>> {
        let fields = self.fields.read().expect("never poisoned");
        fields
            .iter()
            .find(|field| field.ways.iter().any(|way| way.conduit == conduit))
            .cloned()
    }

    /// What the description says of fields on ports where the program has none.
    pub(crate) fn idle_patterns(&self) -> Vec<String> {
        let fields = self.fields.read().expect("never poisoned");
        let is_used = |end: &End| {
            fields
                .iter()
                .flat_map(|field| &field.ways)
                .any(|way| way.conduit == end.conduit)
        };
        let ends = self.ports.iter().flat_map(|port| port.every_end());
        let idle =
            ends.filter(|(end, _)| self.patterns.contains_key(&end.conduit) && !is_used(end));
        let text = |(end, _): (&End, bool)| {
            format!(
                "\"titin: fields\" in the description couples {} with {}, but the program has no field on it, so that had no effect",
                end.label,
                end.other()
            )
        };
        idle.map(text).collect()
    }

    /// Fails if a call on a field was interrupted, or its time was over, and not made again: others wait for the rest, or it is lost.
    pub(crate) fn nothing_halfway(&self) -> Result<()> {
        for field in self.fields.read().expect("never poisoned").iter() {
            let state = field.enter()?;
            let pulled = field.ways.iter().any(|way| way.pattern.cache().is_some());
            let receives = state.receiving.is_some() && !pulled && self.cycle().checked();
            if state.sending.is_some() || receives {
                let text = format!(
                    "field on port '{}': a call was interrupted, or its time was over, and it was not made again: make it again before \
                     the instance closes",
                    field.name
                );
                return Err(Error::new(Kind::CallOrder, text));
            }
        }
        Ok(())
    }

    /// How often this rank has sent or received each field.
    pub(crate) fn field_steps(&self) -> FieldSteps {
        let fields = self.fields.read().expect("never poisoned");
        FieldSteps(
            fields
                .iter()
                .map(|field| field.steps.load(Ordering::Relaxed))
                .collect(),
        )
    }

    /// What there is to say if of some field the number of times that another rank has sent or received it is `wrong` beside that of
    /// this one.
    pub(crate) fn unequal_steps(
        &self,
        (rank, theirs): (u32, &FieldSteps),
        wrong: impl Fn(u64, u64) -> bool,
    ) -> Option<Error> {
        let (own, ours) = (self.place_in_ranks().0, self.field_steps());
        let fields = self.fields.read().expect("never poisoned");
        let mut counts = fields.iter().zip(theirs.0.iter().zip(&ours.0));
        let (field, (theirs, ours)) = counts.find(|(_, (theirs, ours))| wrong(**theirs, **ours))?;
        // Whoever it is that found out, rank 0 is the one that the others are to be like.
        Some(match rank {
            0 => field.unequal((own, *ours), (0, theirs)),
            _ => field.unequal((rank, *theirs), (own, ours)),
        })
    }

    /// What there is to say if a rank that has closed has declared another number of fields.
    pub(crate) fn unequal_fields(&self, (rank, theirs): (u32, &FieldSteps)) -> Option<Error> {
        let (own, ours, theirs) = (
            self.place_in_ranks().0,
            self.field_steps().0.len(),
            theirs.0.len(),
        );
        let text = || {
            format!(
                "rank {rank} has closed with {theirs} fields, and rank {own} has {ours}: all ranks declare the same ones"
            )
        };
        (theirs != ours).then(|| Error::new(Kind::CallOrder, text()))
    }

    /// A field that was declared.
    fn field(&self, id: FieldId) -> Arc<Field> {
        self.fields.read().expect("never poisoned")[id.0].clone()
    }

    /// The lines to or from the peers; waits until these have declared the field.
    fn lines(
        self: &Arc<Self>,
        field: &Field,
        state: &mut State,
        deadline: Option<Instant>,
    ) -> Result<Lines> {
        if let Some(lines) = &state.lines {
            return Ok(lines.clone());
        }
        // A wait that is interrupted, or an end that does not fit, leaves no line open.
        let mut met = Vec::new();
        for way in &field.ways {
            let Some(Found { away, schedule }) = self.meet(field, way, deadline)? else {
                met.push(None);
                continue;
            };
            field.match_types(&way.peer, &away.field.dtypes)?;
            let schedule = schedule.map_err(|failure| {
                let error = field.misfit(&way.peer, &failure);
                if !matches!(failure, Unfit::Mismatch(_)) {
                    // Others may not see it, and would wait.
                    self.fail(&error);
                }
                error
            })?;
            met.push(Some((away, schedule)));
        }
        let mut lines = Vec::new();
        for (way, met) in field.ways.iter().zip(met) {
            let open = |(away, schedule)| self.open_line(field, way, &away, schedule);
            lines.push(met.map(open).transpose()?);
        }
        Ok(state.lines.insert(lines.into()).clone())
    }

    /// Waits until the other end has declared the field; `None` if that was to pull it, and has left.
    fn meet(
        &self,
        field: &Field,
        way: &Coupled,
        deadline: Option<Instant>,
    ) -> Result<Option<Found>> {
        let (conduit, peer) = (way.conduit, &way.peer);
        let may_leave = field.role == Role::Sender && way.pattern.cache().is_some();
        let known = || {
            let has_left = self.process.finished(peer);
            match self.process.schedule(&self.name, conduit) {
                _ if has_left && may_leave => Ok(Some(None)),
                // It may have left; then that will be told.
                Err(error) if may_leave && error.kind == Kind::PeerLost => Ok(None),
                Ok(None) if has_left && !self.process.is_declared(&self.name, conduit) => {
                    let text = format!(
                        "{}: field on port '{}': {peer} has finished without a field at its end: declare the field at both ends",
                        self.name, field.name
                    );
                    Err(self.by_end_of(Error::new(Kind::PortClosed, text), [&**peer]))
                }
                found => found.map(|found| found.map(Some)),
            }
        };
        // Of rank 0, which has the conduit.
        let on = || {
            let ends = self.ports[field.port.0]
                .every_end()
                .filter(|(end, _)| end.conduit == conduit);
            let on = |(end, receives): (&End, bool)| WaitOn {
                field: true,
                sends: !receives,
                ..self.wait_on(end, None, None)
            };
            ends.map(on).collect()
        };
        self.wait(None, deadline, None, on, known)
    }
}

fn refused(inner: &Inner, port: &str, error: &titin_array::Error) -> Error {
    Error::new(
        Kind::Usage,
        format!("{}: field on port '{port}': {error}", inner.name),
    )
}

/// Where arrays begin, and how their elements lie.
fn places(arrays: &[TargetArray<'_>]) -> Vec<(usize, LocalLayout)> {
    arrays
        .iter()
        .map(|array| (array.memory.as_ptr().addr(), array.local.clone()))
        .collect()
}

fn names(dtypes: &[Dtype]) -> String {
    dtypes
        .iter()
        .map(|dtype| dtype.name())
        .collect::<Vec<_>>()
        .join(", ")
}
