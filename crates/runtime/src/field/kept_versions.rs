//! The versions of a field that one rank of the sender keeps for a receiver that pulls, and the
//! actions that follow from the decisions of [`versions`](super::versions). No I/O, no waiting.

use std::sync::Arc;

use titin_model::VersionCache;

use super::link::FieldLink;
use super::versions::{Chooser, Decision, Keeper, VersionMessage, VersionOrder, VersionRefusal};
use crate::message::Lent;
use crate::send_state::Timestamps;

/// The versions that the sender of a field keeps for a receiver that pulls.
pub(crate) struct KeptVersions {
    /// The decisions, at rank 0.
    chooser: Option<Chooser>,
    keeper: Keeper<Arc<PackedVersion>>,
    /// How many versions a rank may keep.
    versions: usize,
    /// The actions that the rank has not carried out yet.
    actions: Vec<VersionAction>,
}

/// One rank's part of a version, packed.
pub(crate) struct PackedVersion {
    /// The link, and the piece of each partner.
    pub(super) link: Arc<FieldLink>,
    pub(super) pieces: Vec<Lent>,
    pub(super) stamps: Timestamps,
}

impl PackedVersion {
    fn bytes(&self) -> u64 {
        self.pieces
            .iter()
            .map(|piece| piece.bytes().len() as u64)
            .sum()
    }
}

/// The result of a decision. A rank carries actions out in order.
pub(crate) enum VersionAction {
    /// Rank 0 tells the receiver that a version follows, as the answer to the question with the
    /// given number.
    Announce(u64, Arc<PackedVersion>),
    /// Rank 0 tells the receiver why no version follows.
    Refuse(u64, VersionRefusal),
    /// The rank sends the packed pieces.
    Serve(Arc<PackedVersion>),
    /// The rank tells the ranks below.
    PassOn(VersionOrder),
}

impl KeptVersions {
    pub(crate) fn new(cache: VersionCache, rank: u32) -> Self {
        let chooser = (rank == 0).then(|| Chooser::new(cache));
        KeptVersions {
            chooser,
            keeper: Keeper::default(),
            versions: cache.versions as usize,
            actions: Vec::new(),
        }
    }

    /// Whether there is room for one more version. A rank ahead of rank 0 may keep more versions
    /// than rank 0, since a rank gives up no version before rank 0 says so.
    pub(crate) fn has_room(&self) -> bool {
        let chooses = self.chooser.as_ref().map(Chooser::has_room);
        self.keeper.is_over() || chooses.unwrap_or(self.keeper.kept() <= self.versions + 1)
    }

    /// The part of the next version is there.
    pub(crate) fn produce(&mut self, version: PackedVersion) {
        let (timestamp, next) = version.stamps;
        self.keeper.add(Arc::new(version));
        self.decide(|chooser| chooser.produce(timestamp, next));
    }

    /// The next version is not wanted.
    pub(crate) fn pass_over(&mut self) {
        self.keeper.pass_over();
        self.follow();
    }

    /// No more versions are produced, though the sender goes on.
    pub(crate) fn complete(&mut self) {
        self.decide(Chooser::complete);
    }

    /// No more versions are produced, and the conduit ends once the last version is taken.
    pub(crate) fn close(&mut self) {
        self.decide(Chooser::close);
    }

    /// Whether rank 0 may end the conduit.
    pub(crate) fn is_settled(&self) -> bool {
        self.chooser.as_ref().is_some_and(Chooser::is_settled)
    }

    /// Lets all ranks keep twice as many versions as wait to be taken: rank 0 waits for room, and the
    /// receiver waits for rank 0.
    pub(crate) fn raise(&mut self) {
        self.decide(|chooser| {
            let versions = u32::try_from(chooser.untaken().saturating_mul(2)).unwrap_or(u32::MAX);
            chooser.raise(versions)
        });
    }

    /// The number of the last question.
    pub(crate) fn last_question(&self) -> u64 {
        self.chooser.as_ref().map_or(0, Chooser::last_question)
    }

    /// The number of versions that wait to be taken, as rank 0 counts, and the bytes of this rank's
    /// part of all kept versions.
    pub(super) fn untaken(&self) -> (u64, u64) {
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

    /// The number of versions at this rank and at rank 0, if the numbers differ. Callers ask once
    /// this rank produces no more versions.
    pub(crate) fn differs(&self) -> Option<(u64, String)> {
        self.keeper.differs()
    }

    /// Whether all is given up.
    pub(crate) fn is_over(&self) -> bool {
        self.keeper.is_over()
    }

    pub(crate) fn receive(&mut self, message: VersionMessage) {
        match message {
            VersionMessage::Ask(question) => self.decide(|chooser| chooser.ask(question)),
            VersionMessage::Took(question) => self.decide(|chooser| {
                chooser.took(question);
                Vec::new()
            }),
            VersionMessage::Leave => self.end(),
            VersionMessage::Order(order) => self.accept(order),
        }
    }

    /// Takes the actions out of the queue.
    pub(crate) fn take(&mut self) -> Vec<VersionAction> {
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
                    self.actions
                        .push(VersionAction::Announce(question, version));
                }
                Decision::Refuse { question, why } => {
                    self.actions.push(VersionAction::Refuse(question, why))
                }
                Decision::Order(order) => self.accept(order),
            }
        }
        self.follow();
    }

    /// Takes in an order of rank 0: passes the order on to the ranks below, and queues the order.
    fn accept(&mut self, order: VersionOrder) {
        if let VersionOrder::Raise(versions) = order {
            // At once, before earlier orders are carried out: a rank ahead of rank 0 waits for
            // room.
            self.versions = self.versions.max(versions as usize);
        }
        self.actions.push(VersionAction::PassOn(order));
        self.keeper.queue_order(order);
        self.follow();
    }

    fn follow(&mut self) {
        while let Some(version) = self.keeper.run_orders() {
            self.actions.push(VersionAction::Serve(version.clone()));
        }
    }
}
