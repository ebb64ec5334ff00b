//! Mail between ranks: how those of two instances find out who sends what of a field to whom.
//!
//! Any rank may have a letter for any other one, of which most never exchange anything else. So who has one dials, by tcp, and
//! the link carries letters in that direction only. They are dealt with as they come, on the background thread: no rank has to be
//! in a call for the others to go on.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use titin_array::{Bytes as _, Error as Unfit, Exchange, Ownership, Role, Schedule, Side};
use titin_model::Pattern;
use titin_transport::{Link, LinkId, Lost};
use titin_wire::control::{self, Greeting};
use titin_wire::handshake::Purpose;
use titin_wire::ranks::{Mail, children, parent};
use titin_wire::{Address, ConduitId, EndpointId, LinkSettings};

use super::outbox::Outbox;
use super::{Away, Process, State};
use crate::field::setup::{Envelope, Letter, Setup};
use crate::field::{Action, Pull, Word, coupled};
use crate::ranks::{rank_name, written as written_name};
use crate::{Error, Kind, Result};

/// Tags of links for mail have this bit.
const MAIL: u128 = 1 << 100;

/// The links for mail.
#[derive(Default)]
pub(super) struct MailLinks {
    outgoing: HashMap<EndpointId, Outbox>,
    dialled: HashMap<u128, EndpointId>,
    incoming: HashSet<LinkId>,
    /// Processes that cannot be reached, and why.
    lost: HashMap<EndpointId, Lost>,
}

impl MailLinks {
    /// Whether a link with this tag is for mail.
    pub(super) fn is(tag: u128) -> bool {
        tag & MAIL != 0
    }
}

/// A field of an instance by one conduit, from its declaration to its schedule.
#[derive(Default)]
pub(crate) struct Meeting {
    own: Option<Own>,
    away: Option<Away>,
    setup: Option<Setup>,
    /// What came before both ends had declared the field.
    early: Vec<Envelope>,
    failure: Option<Unfit>,
    /// Of a sender whose receiver pulls: the versions that it keeps.
    pull: Option<Pull>,
    /// What rank 0 of a receiver has to tell rank 0 of the sender.
    words: Vec<Word>,
    /// Whether it takes no more, which is told once the sender has declared the field.
    has_left: bool,
    /// The number of the last question among these.
    asked: u64,
    /// Whether the process has reached out for the partners of the schedule.
    reached: bool,
    /// Whom it has written to: the processes, and whose they are.
    written: HashMap<EndpointId, String>,
}

/// What has come of a meeting.
pub(crate) struct Found {
    pub(crate) away: Away,
    /// The schedule of this rank, or why there is none.
    pub(crate) schedule: std::result::Result<Schedule, Unfit>,
}

/// What this rank declares.
pub(crate) struct Own {
    pub(crate) side: Side,
    pub(crate) parts: Ownership,
    pub(crate) role: Role,
    pub(crate) rank: u32,
    /// The instance at the other end.
    pub(crate) peer: Arc<str>,
    pub(crate) pattern: Arc<Pattern>,
}

impl Meeting {
    /// This rank declares the field.
    pub(crate) fn declare(&mut self, own: Own) {
        if let (Role::Sender, Some(cache)) = (own.role, own.pattern.cache()) {
            self.pull = Some(Pull::new(cache, own.rank));
        }
        self.own = Some(own);
        // What rank 0 orders waits for this alone, and keeps its order.
        std::mem::take(&mut self.early)
            .into_iter()
            .for_each(|envelope| self.receive(envelope));
        self.begin();
    }

    /// The other end has declared it.
    pub(crate) fn hear(&mut self, away: Away) {
        self.away = Some(away);
        if self.has_left {
            self.words.push(Word::Leave);
        }
        self.begin();
    }

    fn begin(&mut self) {
        let (Some(own), Some(away)) = (&self.own, &self.away) else {
            return;
        };
        let setup = Side::from_bytes(&away.field.side).and_then(|theirs| {
            if theirs.decomposition.ranks() != away.ranks {
                let (declared, ranks) = (theirs.decomposition.ranks(), away.ranks);
                let text = format!(
                    "the other end declares an array over {declared} ranks, and has {ranks}: it was built with another release of \
                     titin, or is broken"
                );
                return Err(Unfit::Broken(text));
            }
            let (from, to) = match own.role {
                Role::Sender => (own.side.clone(), coupled(&theirs, &own.pattern.receiver)?),
                Role::Receiver => (coupled(&theirs, &own.pattern.sender)?, own.side.clone()),
            };
            Setup::begin(Exchange::new(from, to)?, own.parts.clone(), own.role, own.rank)
        });
        match setup {
            Ok(setup) => self.setup = Some(setup),
            Err(failure) => self.failure = Some(failure),
        }
        std::mem::take(&mut self.early)
            .into_iter()
            .for_each(|envelope| self.receive(envelope));
    }

    /// Changes the versions that it keeps.
    pub(crate) fn pull(&mut self, act: impl FnOnce(&mut Pull)) {
        if let Some(pull) = &mut self.pull {
            act(pull);
        }
    }

    /// Has something told to rank 0 of the sender.
    pub(crate) fn say(&mut self, word: Word) {
        if let Word::Ask(question) = word {
            self.asked = question.number;
        }
        self.words.push(word);
    }

    /// Rank 0 of a receiver takes no more.
    pub(crate) fn leave(&mut self) {
        self.has_left = true;
        if self.away.is_some() {
            self.words.push(Word::Leave);
        }
    }

    /// How many questions for versions were told here, or heard.
    fn questions(&self) -> u64 {
        self.pull.as_ref().map_or(self.asked, Pull::heard)
    }

    fn receive(&mut self, envelope: Envelope) {
        if let (Letter::Word(word), Some(own)) = (&envelope.letter, &self.own) {
            let expected = match word {
                Word::Order(_) => envelope.of_sender && parent(own.rank) == Some(envelope.rank),
                Word::Ask(_) | Word::Took(_) | Word::Leave => {
                    !envelope.of_sender && (own.rank, envelope.rank) == (0, 0)
                }
            };
            match &mut self.pull {
                Some(pull) if expected => pull.hear(*word),
                _ => {
                    self.failure = Some(Unfit::Broken(format!(
                        "a letter of rank {} out of place",
                        envelope.rank
                    )))
                }
            }
            return;
        }
        match &mut self.setup {
            None => self.early.push(envelope),
            Some(setup) => self.failure = self.failure.take().or(setup.receive(envelope).err()),
        }
    }
}

/// A letter, and the process that it goes to.
struct Parcel {
    endpoint: EndpointId,
    addresses: Vec<Address>,
    mail: Mail,
}

/// A letter as it travels: a number for its kind, and what is in it.
fn written(letter: &Letter) -> (u8, Vec<u8>) {
    match letter {
        Letter::Enter(entries) => (1, entries.to_bytes()),
        Letter::Ask(entries) => (2, entries.to_bytes()),
        Letter::Answer(answer) => (3, answer.to_bytes()),
        Letter::Want(wants) => (4, wants.to_bytes()),
        Letter::Acknowledge => (5, Vec::new()),
        Letter::Done => (6, Vec::new()),
        Letter::Go => (7, Vec::new()),
        Letter::Complete => (8, Vec::new()),
        Letter::Word(word) => (9, control::encode(word)),
    }
}

fn read(kind: u8, body: &[u8]) -> std::result::Result<Letter, Unfit> {
    use titin_array::{DirectoryAnswer, DirectoryEntries, ElementRequest};
    Ok(match kind {
        1 => Letter::Enter(DirectoryEntries::from_bytes(body)?),
        2 => Letter::Ask(DirectoryEntries::from_bytes(body)?),
        3 => Letter::Answer(DirectoryAnswer::from_bytes(body)?),
        4 => Letter::Want(ElementRequest::from_bytes(body)?),
        5 => Letter::Acknowledge,
        6 => Letter::Done,
        7 => Letter::Go,
        8 => Letter::Complete,
        9 => Letter::Word(control::decode(body).map_err(|error| Unfit::Broken(error.to_string()))?),
        kind => return Err(Unfit::Broken(format!("a letter of kind {kind}"))),
    })
}

impl State {
    fn meeting(&self, instance: &str, conduit: ConduitId) -> Option<Arc<Mutex<Meeting>>> {
        self.meetings.get(&(instance.to_owned(), conduit)).cloned()
    }
}

impl Process {
    /// Changes what is known of a field, and sends what follows from that.
    pub(crate) fn change(
        &self,
        instance: &str,
        conduit: ConduitId,
        act: impl FnOnce(&mut Meeting),
    ) {
        let mut mails = Vec::new();
        self.change_one(instance, conduit, act, &mut mails);
        self.deal_with(mails);
    }

    /// Sends letters. What is for this very process is taken in, and may bring more.
    fn deal_with(&self, mut mails: Vec<Parcel>) {
        while let Some(parcel) = mails.pop() {
            match parcel.endpoint == self.id {
                true => self.take_in(parcel.mail, &mut mails),
                false => self.send_mail(parcel),
            }
        }
    }

    fn change_one(
        &self,
        instance: &str,
        conduit: ConduitId,
        act: impl FnOnce(&mut Meeting),
        mails: &mut Vec<Parcel>,
    ) {
        let mut state = self.lock();
        let is_here = state.instances.contains_key(instance) || state.asked.contains_key(instance);
        if !is_here
            && !state
                .branch
                .as_ref()
                .is_some_and(|branch| branch.is_of(instance))
        {
            // It has gone, and what comes for it is of no use.
            return;
        }
        let meeting = state
            .meetings
            .entry((instance.to_owned(), conduit))
            .or_default()
            .clone();
        drop(state);
        let waiting = self.instance(instance);
        let mut meeting = meeting.lock().unwrap_or_else(PoisonError::into_inner);
        act(&mut meeting);
        let Meeting {
            own: Some(own),
            setup,
            reached,
            pull,
            words,
            written: known,
            ..
        } = &mut *meeting
        else {
            return;
        };
        let mut envelopes = setup.as_mut().map(Setup::take).unwrap_or_default();
        let to_sender = |rank, word| Envelope {
            of_sender: true,
            rank,
            letter: Letter::Word(word),
        };
        envelopes.extend(words.drain(..).map(|word| to_sender(0, word)));
        for action in pull.as_mut().map(Pull::take).unwrap_or_default() {
            match (action, &waiting) {
                (Action::PassOn(order), _) => {
                    let below = children(own.rank, own.side.decomposition.ranks());
                    envelopes.extend(below.map(|rank| to_sender(rank, Word::Order(order))));
                }
                (action, Some(inner)) => inner.carry_out(conduit, action),
                _ => {}
            }
        }
        let (is_sender, rank, peer) = (own.role == Role::Sender, own.rank, own.peer.clone());
        let schedule = setup
            .as_ref()
            .and_then(Setup::schedule)
            .filter(|_| !*reached);
        let partners: Vec<u32> = schedule
            .iter()
            .flat_map(|schedule| schedule.partners())
            .map(|partner| partner.rank)
            .collect();
        *reached |= schedule.is_some();
        let mut lost = None;
        for Envelope {
            of_sender,
            rank: to,
            letter,
        } in envelopes
        {
            let (kind, body) = written(&letter);
            let is_own = of_sender == is_sender;
            let whose = if is_own { instance } else { &*peer };
            let state = self.lock();
            let place = match (is_own, &state.branch) {
                (true, None) => Some((self.id, &[][..])),
                (true, Some(branch)) => branch.place_of(to),
                (false, _) => state.routes.rank(whose, to),
            };
            let Some((endpoint, addresses)) = place else {
                lost = Some(rank_name(whose, to));
                continue;
            };
            // To share memory would cost more than the letters do.
            let is_tcp = |address: &&Address| matches!(address, Address::Tcp(..));
            let addresses = addresses.iter().filter(is_tcp).cloned().collect();
            drop(state);
            known
                .entry(endpoint)
                .or_insert_with(|| rank_name(whose, to));
            let mail = Mail {
                instance: whose.to_owned(),
                conduit,
                of_sender: is_sender,
                rank,
                kind,
                body,
            };
            let parcel = Parcel {
                endpoint,
                addresses,
                mail,
            };
            match endpoint == self.id {
                true => mails.push(parcel),
                // Before anybody else changes it: what is told stays in order.
                false => self.send_mail(parcel),
            }
        }
        drop(meeting);
        // At once, and not when the program first sends or receives: the other one may wait for it in a call of its own.
        self.reach_ranks(&peer, partners.into_iter());
        if let Some(lost) = lost {
            let text = format!(
                "{instance}: nobody has said where {} is",
                written_name(&lost)
            );
            self.fail(Error::new(Kind::Internal, text));
        }
        // There may be a schedule now, or the reason why there is none.
        waiting.iter().for_each(|inner| inner.bell.ring());
    }

    /// Takes in a letter for a field of an instance of this process.
    fn take_in(&self, mail: Mail, mails: &mut Vec<Parcel>) {
        let Mail {
            instance,
            conduit,
            of_sender,
            rank,
            kind,
            body,
        } = mail;
        match read(kind, &body) {
            Ok(letter) => {
                let envelope = Envelope {
                    of_sender,
                    rank,
                    letter,
                };
                self.change_one(
                    &instance,
                    conduit,
                    |meeting| meeting.receive(envelope),
                    mails,
                );
            }
            Err(error) => {
                let text =
                    format!("rank {rank} sent what this release of titin cannot read: {error}");
                self.fail(Error::new(Kind::Connection, text));
            }
        }
    }

    fn send_mail(
        &self,
        Parcel {
            endpoint,
            addresses,
            mail,
        }: Parcel,
    ) {
        let body = control::encode(&mail);
        let mut state = self.lock();
        if let Some(outgoing) = state.mail.outgoing.get_mut(&endpoint) {
            return outgoing.tell(&body);
        }
        let tag = MAIL | state.mail.dialled.len() as u128;
        state.mail.outgoing.entry(endpoint).or_default().tell(&body);
        state.mail.dialled.insert(tag, endpoint);
        drop(state);
        let settings = LinkSettings::default();
        let dialled = self.reactor().dial(
            &addresses,
            Purpose::Data,
            tag,
            Some(endpoint),
            settings,
            self.patience,
        );
        if let Err(why) = dialled {
            self.undelivered(tag, &why);
        }
    }

    /// A link for mail is there.
    pub(super) fn delivers(&self, tag: u128, link: &Arc<Link>) {
        let mut state = self.lock();
        let Some(to) = state.mail.dialled.get(&tag).copied() else {
            return;
        };
        let greeting = Greeting {
            endpoint: self.id,
            to,
            pinned: false,
            detour: None,
            mail: true,
        };
        link.tell(&control::encode(&greeting));
        if let Some(outgoing) = state.mail.outgoing.get_mut(&to) {
            outgoing.open(link);
        }
    }

    /// A process cannot be reached with mail, or no more.
    pub(super) fn undelivered(&self, tag: u128, why: &Lost) {
        let mut state = self.lock();
        if let Some(to) = state.mail.dialled.get(&tag).copied() {
            state.mail.lost.entry(to).or_insert_with(|| why.clone());
        }
        drop(state);
        self.ring_all();
    }

    /// A link is lost, which may have been for mail.
    pub(super) fn lost_mail(&self, link: &Arc<Link>, why: &Lost) {
        self.lock().mail.incoming.remove(&link.id());
        if let Some(tag) = link.tag().filter(|tag| MailLinks::is(*tag)) {
            self.undelivered(tag, why);
        }
    }

    /// A link brings mail from now on.
    pub(super) fn expect_mail(&self, link: &Arc<Link>) {
        self.lock().mail.incoming.insert(link.id());
    }

    /// Deals with mail, if the link brings that; true if it does.
    pub(super) fn mailed(&self, link: &Arc<Link>, body: &[u8]) -> bool {
        if !self.lock().mail.incoming.contains(&link.id()) {
            return false;
        }
        match control::decode::<Mail>(body) {
            Err(error) => {
                let text =
                    format!("a peer sent mail that this release of titin cannot read: {error}");
                self.fail(Error::new(Kind::Connection, text));
            }
            Ok(mail) => self.deal_with(vec![Parcel {
                endpoint: self.id,
                addresses: Vec::new(),
                mail,
            }]),
        }
        true
    }

    /// Whether the other end of a conduit has declared a field.
    pub(crate) fn is_declared(&self, instance: &str, conduit: ConduitId) -> bool {
        let meeting = self.lock().meeting(instance, conduit);
        meeting.is_some_and(|meeting| {
            meeting
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .away
                .is_some()
        })
    }

    /// How many questions for versions of a field an instance has told, or heard.
    pub(crate) fn questions(&self, instance: &str, conduit: ConduitId) -> u64 {
        let meeting = self.lock().meeting(instance, conduit);
        meeting.map_or(0, |meeting| {
            meeting
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .questions()
        })
    }

    /// What is to be known of the versions that an instance keeps of a field; `None` if it keeps none.
    pub(crate) fn pull<T>(
        &self,
        instance: &str,
        conduit: ConduitId,
        look: impl FnOnce(&Pull) -> T,
    ) -> Option<T> {
        let meeting = self.lock().meeting(instance, conduit)?;
        let meeting = meeting.lock().unwrap_or_else(PoisonError::into_inner);
        meeting.pull.as_ref().map(look)
    }

    /// What the other end of a conduit has said of the field that goes by it, and the schedule of this rank, once that is known.
    ///
    /// # Errors
    /// [`Kind::PeerLost`] if some rank cannot be reached.
    pub(crate) fn schedule(&self, instance: &str, conduit: ConduitId) -> Result<Option<Found>> {
        let state = self.lock();
        let Some(meeting) = state.meeting(instance, conduit) else {
            return Ok(None);
        };
        let lost = state.mail.lost.clone();
        drop(state);
        let meeting = meeting.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(away) = &meeting.away else {
            return Ok(None);
        };
        let found = |schedule| {
            Ok(Some(Found {
                away: away.clone(),
                schedule,
            }))
        };
        if let Some(failure) = &meeting.failure {
            return found(Err(failure.clone()));
        }
        let schedule = meeting.setup.as_ref().and_then(Setup::schedule);
        let lost = meeting
            .written
            .iter()
            .find_map(|(to, rank)| Some((rank, lost.get(to)?)));
        match (schedule, lost) {
            (Some(schedule), _) => found(Ok(schedule.clone())),
            (None, Some((rank, why))) => {
                let text = format!(
                    "{instance}: {} cannot be reached: {why}",
                    written_name(rank)
                );
                Err(Error::new(Kind::PeerLost, text))
            }
            (None, None) => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use titin_array::{Decomposition, Region};

    use super::*;

    const SHAPE: [u64; 2] = [6, 4];

    /// A side of two ranks with three rows each, by boxes or by numbers, and what a rank of it has.
    fn side(by_boxes: bool) -> (Side, [Ownership; 2]) {
        let rows = |first: u64| match by_boxes {
            true => Ownership::Boxes(vec![
                Region::new(&[first, 0], &[first + 3, SHAPE[1]]).unwrap(),
            ]),
            false => Ownership::indices(first * SHAPE[1]..(first + 3) * SHAPE[1]),
        };
        let decomposition = match by_boxes {
            true => Decomposition::boxes(&SHAPE, 2),
            false => Decomposition::indices(&SHAPE, 2),
        };
        (Side::new(decomposition.unwrap()), [rows(0), rows(3)])
    }

    /// Both ranks of both ends, which have just begun.
    fn begun(by_boxes: bool) -> Vec<Setup> {
        let (side, parts) = side(by_boxes);
        let exchange = Exchange::new(side.clone(), side).unwrap();
        let ends = [Role::Sender, Role::Receiver]
            .into_iter()
            .flat_map(|role| [(role, 0), (role, 1)]);
        let begin = |(role, rank): (Role, u32)| {
            Setup::begin(exchange.clone(), parts[rank as usize].clone(), role, rank).unwrap()
        };
        ends.map(begin).collect()
    }

    proptest! {
        /// Letters of an honest exchange, some with changed bytes, kinds or senders: each end goes on or says what is wrong, and
        /// what it answers stays in bounds.
        #[test]
        fn changed_letters_are_read_or_refused(
            by_boxes in any::<bool>(),
            changes in vec((0..40usize, 0..80usize, any::<u8>(), 0..10u8, 0..4u32), 0..6),
        ) {
            let mut setups = begun(by_boxes);
            let (mut letters, mut refused) = (0, false);
            loop {
                let mut mails = Vec::new();
                for (place, setup) in setups.iter_mut().enumerate() {
                    mails.extend(setup.take().into_iter().map(|envelope| (place, envelope)));
                }
                if mails.is_empty() {
                    break;
                }
                for (place, Envelope { of_sender, rank, letter }) in mails {
                    let (mut kind, mut body) = written(&letter);
                    let mut from = (place % 2) as u32;
                    for (_, at, byte, other_kind, other) in changes.iter().filter(|(number, ..)| *number == letters) {
                        match body.get_mut(*at) {
                            Some(place) => *place = *byte,
                            None => (kind, from) = (*other_kind, *other),
                        }
                    }
                    letters += 1;
                    let to = usize::from(!of_sender) * 2 + rank as usize;
                    // A rank that nobody has is not written to.
                    let Some(setup) = setups.get_mut(to) else { continue };
                    let read = read(kind, &body).and_then(|letter| {
                        setup.receive(Envelope { of_sender: place < 2, rank: from, letter })
                    });
                    refused |= read.is_err();
                }
                prop_assert!(letters < 1000, "they never come to an end");
            }
            if changes.is_empty() {
                prop_assert!(!refused && setups.iter().all(|setup| setup.schedule().is_some()));
            }
            for schedule in setups.iter().filter_map(Setup::schedule) {
                prop_assert!(schedule.elements() <= 24);
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(kind: u8, body in vec(any::<u8>(), 0..200)) {
            if let Ok(letter) = read(kind, &body) {
                let (kind_again, again) = written(&letter);
                prop_assert_eq!(kind_again, kind);
                prop_assert!(read(kind, &again).is_ok());
            }
        }
    }
}
