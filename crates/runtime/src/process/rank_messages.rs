//! Messages between ranks: how the ranks of two instances find out the schedule of a field.
//!
//! Any rank may have a message for any other rank, and most pairs of ranks never exchange anything
//! else. So a rank with a message dials by tcp, and the link carries rank messages in that
//! direction only. The background thread hands each message to the fields of the instance as the
//! message comes: no rank has to be in a call for the others to go on.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use titin_transport::{Link, LinkError, LinkId, Medium};
use titin_wire::control::{self, Greeting};
use titin_wire::handshake::Purpose;
use titin_wire::ranks::RankMessage;
use titin_wire::{Address, EndpointId, LinkSettings};

use super::Process;
use super::outbox::Outbox;
use crate::{Error, Kind};

/// The bit in the tags of links for rank messages.
const RANK_MESSAGES: u128 = 1 << 100;

/// The links for rank messages.
#[derive(Default)]
pub(super) struct RankMessageLinks {
    outgoing: HashMap<EndpointId, Outbox>,
    dialled: HashMap<u128, EndpointId>,
    incoming: HashSet<LinkId>,
    /// Processes out of reach, and why.
    lost: HashMap<EndpointId, LinkError>,
}

impl RankMessageLinks {
    /// Whether the tag is of a link for rank messages.
    pub(super) fn is(tag: u128) -> bool {
        tag & RANK_MESSAGES != 0
    }
}

/// A message, and the process of the receiving rank.
pub(crate) struct OutgoingRankMessage {
    pub(crate) endpoint: EndpointId,
    pub(crate) addresses: Vec<Address>,
    pub(crate) message: RankMessage,
}

impl Process {
    /// Whether the id is the id of this process.
    pub(crate) fn is_here(&self, endpoint: EndpointId) -> bool {
        self.id == endpoint
    }

    /// Sends messages. This process takes in a message to itself at once, and the message may lead
    /// to further messages.
    pub(crate) fn dispatch(&self, mut outgoing: Vec<OutgoingRankMessage>) {
        while let Some(next) = outgoing.pop() {
            match self.is_here(next.endpoint) {
                true => self.take_in(next.message, &mut outgoing),
                false => self.send_rank_message(next),
            }
        }
    }

    /// Hands a message to the fields of an instance of this process. If the instance has gone, the
    /// message is of no use.
    fn take_in(&self, message: RankMessage, outgoing: &mut Vec<OutgoingRankMessage>) {
        let fields = self.lock().fields.get(&message.instance).cloned();
        if let Some(fields) = fields {
            fields.receive(self, message, outgoing);
        }
    }

    /// The process of a rank, and the addresses of the process for rank messages. The rank is of
    /// the instance of this process, or of a peer.
    pub(crate) fn find_rank(
        &self,
        instance: &str,
        is_own: bool,
        rank: u32,
    ) -> Option<(EndpointId, Vec<Address>)> {
        let state = self.lock();
        let (endpoint, addresses) = match (is_own, &state.branch) {
            (true, None) => (self.id, &[][..]),
            (true, Some(branch)) => branch.place_of(rank)?,
            (false, _) => state.routes.rank(instance, rank)?,
        };
        // Sharing memory would cost more than a few small messages do.
        let medium = |address: &Address| address.medium();
        let serves =
            |address: &&Address| matches!(medium(address), Some(Medium::Tcp | Medium::Relay));
        let addresses = state.routes.on_the_way(addresses).filter(serves);
        Some((endpoint, addresses.cloned().collect()))
    }

    /// Sends a message to another process.
    pub(crate) fn send_rank_message(&self, outgoing: OutgoingRankMessage) {
        let OutgoingRankMessage {
            endpoint,
            addresses,
            message,
        } = outgoing;
        let body = control::encode(&message);
        let mut state = self.lock();
        if let Some(outbox) = state.rank_messages.outgoing.get_mut(&endpoint) {
            return outbox.tell(&body);
        }
        let links = &mut state.rank_messages;
        let tag = RANK_MESSAGES | links.dialled.len() as u128;
        links.outgoing.entry(endpoint).or_default().tell(&body);
        links.dialled.insert(tag, endpoint);
        drop(state);
        // The messages are small, and the links are many.
        let settings = LinkSettings {
            streams: Some(1),
            ..LinkSettings::default()
        };
        let dialled = self.reactor().dial(
            &addresses,
            Purpose::Data,
            tag,
            Some(endpoint),
            settings,
            self.patience,
        );
        if let Err(why) = dialled {
            self.rank_messages_undelivered(tag, &why);
        }
    }

    /// A link for rank messages is there.
    pub(super) fn rank_message_link_opened(&self, tag: u128, link: &Arc<Link>) {
        let mut state = self.lock();
        let Some(to) = state.rank_messages.dialled.get(&tag).copied() else {
            return;
        };
        let greeting = Greeting {
            endpoint: self.id,
            to,
            pinned: false,
            detour: None,
            is_rank_to_rank: true,
        };
        link.tell(&control::encode(&greeting));
        if let Some(outbox) = state.rank_messages.outgoing.get_mut(&to) {
            outbox.open(link);
        }
    }

    /// A process cannot be reached with rank messages, or no more.
    pub(super) fn rank_messages_undelivered(&self, tag: u128, why: &LinkError) {
        let mut state = self.lock();
        let links = &mut state.rank_messages;
        if let Some(to) = links.dialled.get(&tag).copied() {
            links.lost.entry(to).or_insert_with(|| why.clone());
        }
        drop(state);
        self.ring_all();
    }

    /// A link is lost. The link may have been for rank messages.
    pub(super) fn rank_message_link_lost(&self, link: &Arc<Link>, why: &LinkError) {
        self.lock().rank_messages.incoming.remove(&link.id());
        if let Some(tag) = link.tag().filter(|tag| RankMessageLinks::is(*tag)) {
            self.rank_messages_undelivered(tag, why);
        }
    }

    /// A link brings rank messages from now on.
    pub(super) fn expect_rank_messages(&self, link: &Arc<Link>) {
        self.lock().rank_messages.incoming.insert(link.id());
    }

    /// Takes in a message from a link, if the link is for rank messages. True if so.
    pub(super) fn rank_message_arrived(&self, link: &Arc<Link>, body: &[u8]) -> bool {
        if !self.lock().rank_messages.incoming.contains(&link.id()) {
            return false;
        }
        match control::decode::<RankMessage>(body) {
            Err(error) => {
                let text = format!(
                    "a peer sent a rank message that this release of titin cannot read: {error}"
                );
                self.fail(Error::new(Kind::Connection, text));
            }
            Ok(message) => {
                let mut outgoing = Vec::new();
                self.take_in(message, &mut outgoing);
                self.dispatch(outgoing);
            }
        }
        true
    }

    /// A process in `written_to` that rank messages cannot reach: the name of the rank, and the
    /// reason.
    pub(crate) fn unreached<'a>(
        &self,
        written_to: &'a HashMap<EndpointId, String>,
    ) -> Option<(&'a str, LinkError)> {
        let state = self.lock();
        let lost = &state.rank_messages.lost;
        written_to
            .iter()
            .find_map(|(to, rank)| Some((&**rank, lost.get(to)?.clone())))
    }
}
