//! Fields: arrays spread over the ranks of an instance. The elements go from the ranks of the
//! sender directly to the ranks of the receiver.
//!
//! A field goes by an ordinary port. Rank 0 sends an ordinary message along the conduit, the header
//! (`field_mark`). The header announces the field and has the field's time. So the order of calls,
//! `reuse`, closing and the search for deadlocks are as for any message. The pieces go from rank to
//! rank (`send_pieces`, `receive_pieces`) along further conduits, and each rank opens such conduits to
//! its partners (`link`). The messages of the pieces are tagged with the number of the header. A serial
//! program is the case of one rank.
//!
//! `titin-array` works out the elements that each rank sends to each other rank. Fields stand above
//! the serial instance and above the group of ranks, and neither the serial instance nor the group
//! knows of fields.

mod copy_plans;
mod declare;
mod kept_versions;
mod link;
mod ordinary_calls;
mod pull;
mod rank_messages;
mod receive;
mod receive_pieces;
mod rendezvous;
mod send;
mod send_pieces;
mod setup;
mod versions;

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, RwLock, TryLockError, Weak};
use std::time::Instant;

use titin_array::{Error as Unfit, LocalLayout, Region, Role, Side, TargetArray};
use titin_model::{Pattern, PatternSide};
use titin_transport::IncomingMessage;
use titin_wire::ConduitId;
use titin_wire::control::WaitOn;
use titin_wire::frame::Head;
use titin_wire::meta::Dtype;

use crate::field_mark::announces_field;
use crate::port::{Port, PortEnd, PortId};
use crate::process::ProcessMember;
use crate::ranks::{FieldCount, RankGroup, RankPlace};
use crate::serial::{Serial, Wait};
use crate::{Error, Kind, Message, Result};

use copy_plans::LinkCopyPlans;
use kept_versions::KeptVersions;
use link::FieldLink;
use pull::{Asking, VersionAnswer};
use receive_pieces::ReceiveProgress;
use rendezvous::{AgreedField, Coupling};
use send::PiecesSent;

pub(crate) use rendezvous::Rendezvous;

/// A field of an instance: declared once, then used in calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FieldId(usize);

/// The fields of an instance, and the links of each field to the ranks of peers.
pub(crate) struct InstanceFields {
    serial: Arc<Serial>,
    /// The ranks of a parallel program.
    group: Option<Arc<RankGroup>>,
    /// The patterns of fields, by conduit, where the description has a pattern.
    patterns: HashMap<ConduitId, Arc<Pattern>>,
    fields: RwLock<Vec<Arc<Field>>>,
    links: RwLock<Vec<Arc<FieldLink>>>,
    rendezvous: Arc<Rendezvous>,
    /// The open instance. The process gets the instance with each new link.
    member: OnceLock<Weak<dyn ProcessMember>>,
}

/// The state of a field in an instance.
pub(crate) struct Field {
    port: PortId,
    /// The name of the port.
    name: Arc<str>,
    role: Role,
    dtypes: Vec<Dtype>,
    /// The conduits of the field: several of a sender, one of a receiver.
    conduits: Vec<FieldConduit>,
    state: Mutex<FieldState>,
    count: Arc<FieldCount>,
    /// The text of a call that receives the field.
    receive_call: String,
    /// Whether the sender has withdrawn the field.
    withdrawn: AtomicBool,
}

/// A conduit of a field.
pub(crate) struct FieldConduit {
    pub(crate) conduit: ConduitId,
    /// The instance at the other end.
    peer: Arc<str>,
    /// The steps of this end at which the field goes, and the mode: pushed or pulled.
    pattern: Arc<Pattern>,
}

/// How far a field has come.
#[derive(Default)]
struct FieldState {
    /// A link to each of the peers, once all peers have declared the field. A peer that pulls and
    /// has left has `None`.
    links: Option<FieldLinks>,
    /// The plans of the copies between the arrays and the pieces of each link.
    copy_plans: Vec<LinkCopyPlans>,
    /// The steps of the program: finished calls on the field.
    steps: u64,
    /// An interrupted send: the time, and how far the send had come.
    sending: Option<(f64, PiecesSent)>,
    /// The header of an interrupted receive.
    receiving: Option<Message>,
    /// The last message with a header and a joined piece. The next receive writes over the message.
    last_joined: IncomingMessage,
    /// How far the receive has come.
    received: ReceiveProgress,
    /// The places of the arrays, if an interrupted receive has filled some of the elements.
    into: Option<Vec<(usize, LocalLayout)>>,
    asking: Asking,
    /// Whether all ranks have agreed in a call of withdraw, and the call has not finished.
    withdrawal_agreed: bool,
}

/// A link to each of the peers.
type FieldLinks = Arc<[Option<Arc<FieldLink>>]>;

/// The simulated time of a received field, and of the field after it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stamps {
    /// Simulated time of the field.
    pub timestamp: f64,
    /// Simulated time of the next field, where the sender knows the time.
    pub next_timestamp: Option<f64>,
}

impl FieldConduit {
    /// Whether the receiver asks for the field.
    fn is_pulled(&self) -> bool {
        self.pattern.cache().is_some()
    }

    fn share(&self, role: Role) -> &PatternSide {
        match role {
            Role::Sender => &self.pattern.sender,
            Role::Receiver => &self.pattern.receiver,
        }
    }
}

/// The side of a field, with the coupled region, if the description names a region.
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
    fn of_head(head: &Head) -> Self {
        Stamps {
            timestamp: head.timestamp,
            next_timestamp: head.next_timestamp,
        }
    }

    fn of(message: &Message) -> Self {
        Stamps {
            timestamp: message.timestamp,
            next_timestamp: message.next_timestamp,
        }
    }
}

impl Field {
    fn enter(&self) -> Result<MutexGuard<'_, FieldState>> {
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

    /// The conduits of receivers that pull the field.
    fn pulled(&self) -> impl Iterator<Item = ConduitId> {
        let pulled = self.conduits.iter().filter(|conduit| conduit.is_pulled());
        pulled.map(|conduit| conduit.conduit)
    }

    /// Whether some thread is in a call on the field.
    pub(crate) fn is_in_use(&self) -> bool {
        matches!(self.state.try_lock(), Err(TryLockError::WouldBlock))
    }

    /// Fails unless the arrays match the element types in number and in the size of an element.
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

    /// Fails unless the message announces a field.
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

    /// Fails unless the message answers a question for a version.
    fn is_answer(&self, message: &Message) -> Result<()> {
        let text = || {
            format!(
                "port '{}' takes versions of a field here (titin: fields), but its sender sends ordinary messages, or has no \
                 field on its port: declare it at both ends",
                self.name
            )
        };
        VersionAnswer::of(message)
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

    fn misfit(&self, peer: &str, error: &titin_array::Error) -> Error {
        let text = format!("field on port '{}' with {peer}: {error}", self.name);
        Error::new(Kind::TypeMismatch, text)
    }
}

impl InstanceFields {
    pub(crate) fn new(
        serial: Arc<Serial>,
        group: Option<Arc<RankGroup>>,
        patterns: HashMap<ConduitId, Arc<Pattern>>,
        rendezvous: Arc<Rendezvous>,
    ) -> Self {
        InstanceFields {
            serial,
            group,
            patterns,
            fields: RwLock::default(),
            links: RwLock::default(),
            rendezvous,
            member: OnceLock::new(),
        }
    }

    /// Notes that the instance is open.
    pub(crate) fn opened(&self, member: Weak<dyn ProcessMember>) {
        let _ = self.member.set(member);
    }

    /// The rank of this process, and the number of ranks.
    fn place(&self) -> RankPlace {
        let alone = RankPlace { rank: 0, count: 1 };
        self.group.as_ref().map_or(alone, |group| group.place())
    }

    /// Whether some thread is in a call on a field.
    pub(crate) fn is_in_use(&self) -> bool {
        let fields = self.fields.read().expect("never poisoned");
        fields.iter().any(|field| field.is_in_use())
    }

    /// The field of a conduit.
    fn field_by(&self, conduit: ConduitId) -> Option<Arc<Field>> {
        let fields = self.fields.read().expect("never poisoned");
        fields
            .iter()
            .find(|field| field.conduits.iter().any(|way| way.conduit == conduit))
            .cloned()
    }

    /// Warnings about patterns in the description for ports without a field in the program.
    pub(crate) fn idle_patterns(&self) -> Vec<String> {
        let fields = self.fields.read().expect("never poisoned");
        let is_used = |end: &PortEnd| {
            fields
                .iter()
                .flat_map(|field| &field.conduits)
                .any(|way| way.conduit == end.conduit)
        };
        let ends = self.serial.table.ports.iter().flat_map(Port::every_end);
        let idle =
            ends.filter(|(end, _)| self.patterns.contains_key(&end.conduit) && !is_used(end));
        let text = |(end, _): (&PortEnd, bool)| {
            format!(
                "\"titin: fields\" in the description couples {} with {}, but the program has no field on it, so that had no effect",
                end.label,
                end.other()
            )
        };
        idle.map(text).collect()
    }

    /// Fails if a call on a field was interrupted, or ran out of time, and the program did not make
    /// the call again: partners wait for the rest, or the rest is lost.
    pub(crate) fn nothing_halfway(&self) -> Result<()> {
        for field in self.fields.read().expect("never poisoned").iter() {
            let state = field.enter()?;
            let pulled = field.conduits.iter().any(|way| way.is_pulled());
            let receives =
                state.receiving.is_some() && !pulled && self.serial.execution_loop().refuses();
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

    /// Changes the state of the field of a conduit, and sends the messages that follow from the
    /// change.
    fn change_field(&self, conduit: ConduitId, act: impl FnOnce(&mut Coupling)) {
        self.rendezvous.change(
            &self.serial.core.process,
            &self.serial.core.name,
            conduit,
            act,
        );
    }

    /// Has `look` read the versions for a conduit, if the field is pulled.
    fn kept_versions_of<T>(
        &self,
        conduit: ConduitId,
        look: impl FnOnce(&KeptVersions) -> T,
    ) -> Option<T> {
        self.rendezvous.kept_versions(conduit, look)
    }

    /// The number of questions for versions of a field that the instance has sent or received.
    pub(crate) fn questions(&self, conduit: ConduitId) -> u64 {
        let pattern = self.patterns.get(&conduit);
        match pattern.is_some_and(|pattern| pattern.cache().is_some()) {
            true => self.rendezvous.questions(conduit),
            false => 0,
        }
    }

    /// Notes how often this rank has sent or received a field.
    fn note_steps(&self, field: &Field, steps: u64) {
        field.count.set(steps);
        self.group
            .iter()
            .for_each(|group| group.counts.note(&field.count));
    }

    /// A declared field.
    fn get(&self, id: FieldId) -> Arc<Field> {
        self.fields.read().expect("never poisoned")[id.0].clone()
    }

    /// The links to or from the peers. Waits until the peers have declared the field.
    fn links(
        &self,
        field: &Field,
        state: &mut FieldState,
        deadline: Option<Instant>,
    ) -> Result<FieldLinks> {
        if let Some(links) = &state.links {
            return Ok(links.clone());
        }
        // Links are opened once all peers fit. So an interrupted wait, or a peer with an unfit
        // array, leaves no link open.
        let mut met = Vec::new();
        for way in &field.conduits {
            let Some(AgreedField { remote, schedule }) = self.meet(field, way, deadline)? else {
                met.push(None);
                continue;
            };
            field.match_types(&way.peer, &remote.field.dtypes)?;
            let schedule = schedule.map_err(|failure| {
                let error = field.misfit(&way.peer, &failure);
                if !matches!(failure, Unfit::Mismatch(_)) {
                    // Other ranks may not see the failure, and would wait.
                    self.serial.fail(&error);
                }
                error
            })?;
            met.push(Some((remote, schedule)));
        }
        let mut links = Vec::new();
        for (way, met) in field.conduits.iter().zip(met) {
            let open = |(remote, schedule)| self.open_link(field, way, &remote, schedule);
            links.push(met.map(open).transpose()?);
        }
        let plans = |link: &Option<Arc<FieldLink>>| LinkCopyPlans::of(link.as_deref());
        state.copy_plans = links.iter().map(plans).collect();
        Ok(state.links.insert(links.into()).clone())
    }

    /// Waits until the other end has declared the field. `None` if the other end pulls and has
    /// left.
    fn meet(
        &self,
        field: &Field,
        way: &FieldConduit,
        deadline: Option<Instant>,
    ) -> Result<Option<AgreedField>> {
        let (conduit, peer) = (way.conduit, &way.peer);
        let may_leave = field.role == Role::Sender && way.pattern.cache().is_some();
        let known = || {
            let has_left = self.serial.core.process.finished(peer);
            match self
                .rendezvous
                .agreed(&self.serial.core.process, &self.serial.core.name, conduit)
            {
                _ if has_left && may_leave => Ok(Some(None)),
                // The receiver may have left; then the manager will say so.
                Err(error) if may_leave && error.kind == Kind::PeerLost => Ok(None),
                Ok(None) if has_left && !self.rendezvous.is_declared(conduit) => {
                    let text = format!(
                        "{}: field on port '{}': {peer} has finished without a field at its end: declare the field at both ends",
                        self.serial.core.name, field.name
                    );
                    Err(self
                        .serial
                        .by_end_of(Error::new(Kind::PortClosed, text), [&**peer]))
                }
                found => found.map(|found| found.map(Some)),
            }
        };
        // Rank 0 has the conduit, and reports the wait.
        let on = || {
            let ends = self.serial.table.ports[field.port.0]
                .every_end()
                .filter(|(end, _)| end.conduit == conduit);
            let on = |(end, receives): (&PortEnd, bool)| {
                Some(WaitOn {
                    field: true,
                    sends: !receives,
                    ..self.serial.wait_on(end, None, None)?
                })
            };
            ends.filter_map(on).collect()
        };
        self.serial.wait(Wait::default().until(deadline), on, known)
    }
}

fn refused(serial: &Serial, port: &str, error: &titin_array::Error) -> Error {
    Error::new(
        Kind::Usage,
        format!("{}: field on port '{port}': {error}", serial.core.name),
    )
}

/// The address of each array, and the layout of its elements.
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
