//! The receiving end of a conduit: messages that have arrived and were not taken yet.
//!
//! **Who takes whose place.** A message may take the place of those before it, from a number on (`Meta::supersedes`). Whoever
//! holds one of these lets go of it, each for itself, and need not: all that is left is dropped here (`State::supersede`). The
//! sender does so with what ring and socket have not taken (`supersede` in `shm/send.rs`, `keep` in `tcp/writer.rs`) and with
//! what stands in the ring unread (`take_back` in `shm/send.rs`); the receiver with what has come by the socket before its
//! entry, or waits for a segment (`supersede` and `in_order` in `shm/receive.rs`). What none of them may do is let go of one
//! that no later one on its way says may be missed: [`Inbox::deliver`] refuses such a gap.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use titin_wire::frame::{Ack, Head};
use titin_wire::meta::Meta;
use titin_wire::{ConduitId, Malformed};

use crate::arrivals::Arrivals;
use crate::buffer::Buffer;
use crate::doorbell::Doorbell;
use crate::spin_lock::{SpinLock, SpinLockGuard};
use crate::sync::{AtomicBool, Ordering};

/// Answers the sender of a conduit.
pub trait Acknowledge: Send + Sync {
    /// Tells the sending end how far the receiving end has come. Does not wait.
    fn acknowledge(&self, conduit: ConduitId, ack: Ack);
}

/// A message that has arrived whole.
#[derive(Debug, Clone)]
pub struct Message {
    /// What travelled with it.
    pub head: Head,
    /// Its metadata.
    pub meta: Arc<Meta>,
    /// Its payload. Shared between the receivers of a multicast; lives as long as anybody holds it.
    pub body: Arc<Buffer>,
}

/// How a receiving end treats its messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InboxOptions {
    /// The sender's limits; acknowledgements go out when a quarter of them has been consumed.
    pub messages: u64,
    /// See `messages`.
    pub bytes: u64,
}

impl Default for InboxOptions {
    fn default() -> Self {
        InboxOptions {
            messages: 64,
            bytes: 1 << 30,
        }
    }
}

/// Holds what has arrived on one conduit.
///
/// It may exist before its instance knows of the conduit: a peer that was told of us first may already be sending.
pub struct Inbox {
    conduit: ConduitId,
    state: SpinLock<State>,
    /// Whether a look at the state is worth the while: messages wait, or the sender has ended. It is changed under the latch,
    /// and before the bell rings, so that who has looked in vain is woken (`loom_tests`).
    stirred: AtomicBool,
    attached: OnceLock<Attached>,
}

/// The instance whose inbox it is: where to ring, and by which carrier to answer the sender.
struct Attached {
    bell: Arc<Doorbell>,
    sender: Arc<dyn Acknowledge>,
}

/// What an inbox had that was found on its list.
#[derive(Debug)]
pub enum Listed {
    /// A message, which is taken.
    Message(Message),
    /// Nothing any more.
    Nothing,
    /// Nothing, and nothing will come. This is found once.
    Over,
}

/// Where an inbox puts its number when it has something.
struct List {
    arrivals: Arc<Arrivals>,
    number: u32,
    /// Whether it stands there.
    on: bool,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Message>,
    ack: Ack,
    told: Ack,
    /// Number of the message that waits for room, if its sender has asked.
    asked: Option<u64>,
    /// The instance is done: whatever arrives is dropped as consumed.
    discards: bool,
    options: InboxOptions,
    /// Whether there is somebody to answer by.
    attached: bool,
    /// For a call that takes from any of several.
    list: Option<List>,
}

impl Inbox {
    pub(crate) fn new(conduit: ConduitId) -> Self {
        Inbox {
            conduit,
            state: SpinLock::default(),
            stirred: AtomicBool::new(false),
            attached: OnceLock::new(),
        }
    }

    /// Gives the inbox to its instance: where to ring, and by which carrier to answer the sender.
    pub fn attach(&self, bell: Arc<Doorbell>, sender: Arc<dyn Acknowledge>, options: InboxOptions) {
        let _ = self.attached.set(Attached {
            bell: bell.clone(),
            sender,
        });
        let mut state = self.lock();
        state.options = options;
        state.attached = true;
        let ended = state.ack.ended;
        let answer = state.answer(ended);
        drop(state);
        self.tell(answer);
        // Somebody may wait for what came in before there was a bell.
        bell.ring();
    }

    /// Takes a message in, in the order of sequence numbers. One that supersedes others drops those of them that wait.
    ///
    /// # Errors
    /// [`Malformed`] if its number is not the next one. Only numbers of those that it supersedes may be left out.
    pub fn deliver(&self, message: Message) -> Result<(), Malformed> {
        // Let go of behind the lock: to give memory back takes its time.
        let mut dropped = Vec::new();
        let mut state = self.lock();
        let (number, expected) = (message.head.sequence, state.ack.received);
        let first = message.meta.supersedes.unwrap_or(number);
        if state.ack.ended || number < expected || (number > expected && first > expected) {
            let why = format!(
                "number {number} on conduit {}, expected {expected}",
                self.conduit
            );
            return Err(Malformed::new("message", why));
        }
        state.ack.received = number.checked_add(1).ok_or_else(|| {
            Malformed::new(
                "message",
                format!(
                    "there is no number behind {number} on conduit {}",
                    self.conduit
                ),
            )
        })?;
        state.asked = state.asked.filter(|waiting| number < *waiting);
        if message.meta.supersedes.is_some() {
            dropped = state.supersede(first);
        }
        if state.queue.capacity() == 0 {
            state.queue.reserve_exact(1);
        }
        state.queue.push_back(message);
        if state.discards {
            dropped.append(&mut state.supersede(0));
        }
        self.stirred
            .store(!state.queue.is_empty(), Ordering::Release);
        state.enlist();
        let answer = state.answer(false);
        drop(state);
        self.tell(answer);
        self.ring();
        Ok(())
    }

    /// Notes that the sender has ended after `sent` messages, and answers it.
    ///
    /// # Errors
    /// [`Malformed`] if that is not what has arrived.
    pub fn end(&self, sent: u64) -> Result<(), Malformed> {
        let mut state = self.lock();
        if sent != state.ack.received {
            let why = format!(
                "after {sent} messages on conduit {}, of {} received",
                self.conduit, state.ack.received
            );
            return Err(Malformed::new("end", why));
        }
        state.ack.ended = true;
        self.stirred.store(true, Ordering::Release);
        state.enlist();
        let answer = state.answer(true);
        drop(state);
        self.tell(answer);
        self.ring();
        Ok(())
    }

    /// Tells the sender at once of whatever is consumed, until message number `sequence` arrives: it waits for room.
    pub fn ask(&self, sequence: u64) {
        let mut state = self.lock();
        if sequence < state.ack.received {
            return;
        }
        state.asked = Some(sequence);
        let answer = state.answer(false);
        drop(state);
        self.tell(answer);
    }

    /// The oldest message, if one is there. What had arrived before an end can still be taken.
    pub fn take(&self) -> Option<Message> {
        if !self.stirred() {
            return None;
        }
        self.pop(self.lock())
    }

    fn pop(&self, mut state: SpinLockGuard<'_, State>) -> Option<Message> {
        let message = state.queue.pop_front()?;
        self.stirred.store(
            state.ack.ended || !state.queue.is_empty(),
            Ordering::Relaxed,
        );
        state.ack.consumed = message.head.sequence + 1;
        state.ack.bytes += message.body.len() as u64;
        let answer = state.answer(false);
        drop(state);
        self.tell(answer);
        Some(message)
    }

    /// Has the inbox put this number on a list whenever something comes, in place of another list if it had one; at once
    /// if something is there.
    pub fn list(&self, arrivals: &Arc<Arrivals>, number: u32) {
        let mut state = self.lock();
        state.list = Some(List {
            arrivals: arrivals.clone(),
            number,
            on: false,
        });
        state.enlist();
    }

    /// Whether a call waits for what the inbox puts on its list.
    pub fn is_waited_for(&self) -> bool {
        self.lock()
            .list
            .as_ref()
            .is_some_and(|list| list.arrivals.is_in_use())
    }

    /// Takes the oldest message of an inbox that was found on its list. If it has more its number is put there again,
    /// behind the others.
    pub fn take_listed(&self) -> Listed {
        let mut state = self.lock();
        if let Some(list) = &mut state.list {
            list.on = false;
        }
        match (state.queue.len(), state.ack.ended) {
            (0, true) => return Listed::Over,
            (0, false) => return Listed::Nothing,
            (1, false) => {}
            _ => state.enlist(),
        }
        self.pop(state).map_or(Listed::Nothing, Listed::Message)
    }

    /// Counts a message as taken that is handed to the program as it arrives; false if others wait before it, or it is not
    /// one that could be taken.
    pub(crate) fn pass(&self, message: &Message) -> bool {
        let mut state = self.lock();
        let (number, bytes) = (message.head.sequence, message.body.len() as u64);
        let plain = message.meta.supersedes.is_none() && state.asked.is_none() && !state.discards;
        let next = number == state.ack.received && number < u64::MAX && !state.ack.ended;
        if !(plain && next && state.queue.is_empty()) {
            return false;
        }
        state.ack.received = number + 1;
        state.ack.consumed = number + 1;
        state.ack.bytes += bytes;
        let answer = state.answer(false);
        drop(state);
        self.tell(answer);
        true
    }

    /// The conduit whose end it is.
    pub(crate) fn conduit(&self) -> ConduitId {
        self.conduit
    }

    /// Drops everything that has arrived and whatever will, so that the sender is not held up by a receiver that is
    /// done.
    pub fn discard(&self) {
        let mut state = self.lock();
        state.discards = true;
        let dropped = state.supersede(0);
        let answer = state.answer(true);
        drop(state);
        drop(dropped);
        self.tell(answer);
    }

    /// Messages that have arrived and were not taken.
    pub fn waiting(&self) -> usize {
        self.lock().queue.len()
    }

    /// Whether a message could be taken now.
    pub fn ready(&self) -> bool {
        self.stirred() && !self.lock().queue.is_empty()
    }

    /// Whether the sender has ended and all it sent was taken.
    pub fn exhausted(&self) -> bool {
        if !self.stirred() {
            return false;
        }
        let state = self.lock();
        state.ack.ended && state.queue.is_empty()
    }

    /// Whether the sender has ended.
    pub fn ended(&self) -> bool {
        self.lock().ack.ended
    }

    /// Messages that were taken, or dropped by a filter.
    pub fn consumed(&self) -> u64 {
        self.lock().ack.consumed
    }

    /// Tells the sender how far we are, though less than a quarter of the buffer was consumed since it was last told.
    pub fn settle(&self) {
        let mut state = self.lock();
        let behind = state.told != state.ack;
        let answer = state.answer(behind);
        drop(state);
        self.tell(answer);
    }

    /// The oldest message, if one is there, which stays.
    pub fn peek(&self) -> Option<Message> {
        self.lock().queue.front().cloned()
    }

    /// Whether there is nothing in it, neither a message nor the sender's end.
    pub fn is_still(&self) -> bool {
        !self.stirred()
    }

    /// Messages that have arrived.
    pub fn received(&self) -> u64 {
        self.lock().ack.received
    }

    fn stirred(&self) -> bool {
        self.stirred.load(Ordering::Acquire)
    }

    fn tell(&self, answer: Option<Ack>) {
        if let (Some(ack), Some(attached)) = (answer, self.attached.get()) {
            attached.sender.acknowledge(self.conduit, ack);
        }
    }

    fn ring(&self) {
        if let Some(attached) = self.attached.get() {
            attached.bell.ring();
        }
    }

    fn lock(&self) -> SpinLockGuard<'_, State> {
        self.state.lock()
    }
}

impl State {
    /// Puts the inbox on its list if it has one, and has something.
    fn enlist(&mut self) {
        let stirred = self.ack.ended || !self.queue.is_empty();
        if let Some(list) = self.list.as_mut().filter(|list| stirred && !list.on) {
            list.on = true;
            list.arrivals.push(list.number);
        }
    }

    /// Takes out what waits of the messages from this number on. Nothing counts as consumed while earlier ones wait.
    #[must_use = "they are to be dropped behind the lock"]
    fn supersede(&mut self, first: u64) -> Vec<Message> {
        let kept = self
            .queue
            .partition_point(|message| message.head.sequence < first);
        let out = self.queue.split_off(kept);
        for message in &out {
            self.ack.bytes += message.body.len() as u64;
            if kept == 0 {
                self.ack.consumed = message.head.sequence + 1;
            }
        }
        out.into()
    }

    /// The acknowledgement that is due, if one is: always after an end, else at a quarter of the buffer, and for
    /// everything that is consumed while the sender waits for room.
    fn answer(&mut self, always: bool) -> Option<Ack> {
        let messages = self.ack.consumed - self.told.consumed;
        let bytes = self.ack.bytes - self.told.bytes;
        let enough = messages >= self.options.messages / 4 || bytes >= self.options.bytes / 4;
        let due = messages > 0 && (enough || self.asked.is_some());
        if !(always || due) || !self.attached {
            return None;
        }
        self.told = self.ack;
        Some(self.ack)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn message(sequence: u64) -> Message {
        let head = Head::new(ConduitId(1), sequence, 0.0, None);
        Message {
            head,
            meta: Arc::default(),
            body: Arc::default(),
        }
    }

    fn taken(inbox: &Inbox) -> Option<u64> {
        match inbox.take_listed() {
            Listed::Message(message) => Some(message.head.sequence),
            Listed::Nothing | Listed::Over => None,
        }
    }

    #[test]
    fn an_inbox_stands_once_on_its_list_and_again_behind_the_others() {
        let arrivals = Arc::new(Arrivals::default());
        let (early, late) = (Inbox::new(ConduitId(1)), Inbox::new(ConduitId(2)));
        early.deliver(message(0)).unwrap();
        early.list(&arrivals, 1);
        late.list(&arrivals, 2);
        early.deliver(message(1)).unwrap();
        late.deliver(message(0)).unwrap();
        assert_eq!((arrivals.next(), taken(&early)), (Some(1), Some(0)));
        assert_eq!((arrivals.next(), taken(&late)), (Some(2), Some(0)));
        assert_eq!((arrivals.next(), taken(&early)), (Some(1), Some(1)));
        assert_eq!(arrivals.next(), None);
    }

    #[test]
    fn what_was_taken_past_the_list_is_nothing_and_an_end_is_found_once() {
        let arrivals = Arc::new(Arrivals::default());
        let inbox = Inbox::new(ConduitId(1));
        inbox.list(&arrivals, 7);
        inbox.deliver(message(0)).unwrap();
        assert!(inbox.take().is_some());
        assert_eq!(arrivals.next(), Some(7));
        assert!(matches!(inbox.take_listed(), Listed::Nothing));
        inbox.deliver(message(1)).unwrap();
        inbox.end(2).unwrap();
        assert_eq!((arrivals.next(), taken(&inbox)), (Some(7), Some(1)));
        assert_eq!(arrivals.next(), Some(7));
        assert!(matches!(inbox.take_listed(), Listed::Over));
        assert_eq!(arrivals.next(), None);
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use crate::{Lost, Medium, Outgoing, Sent};
    use loom::thread;
    use std::time::Duration;

    /// By which nobody is answered.
    struct Silent;

    impl Carrier for Silent {
        fn medium(&self) -> Medium {
            Medium::Inproc
        }
        fn send(&self, _: &Outgoing<'_>) -> Result<Sent, Lost> {
            Err(Lost::Closed)
        }
        fn end(&self, _: ConduitId, _: u64) {}
        fn acknowledge(&self, _: ConduitId, _: Ack) {}
        fn ask(&self, _: ConduitId, _: u64) {}
    }

    fn message(sequence: u64) -> Message {
        let head = Head::new(ConduitId(1), sequence, 0.0, None);
        Message {
            head,
            meta: Arc::default(),
            body: Arc::default(),
        }
    }

    fn attached() -> (Arc<Inbox>, Arc<Doorbell>) {
        let (inbox, bell) = (
            Arc::new(Inbox::new(ConduitId(1))),
            Arc::new(Doorbell::default()),
        );
        inbox.attach(bell.clone(), Arc::new(Silent), InboxOptions::default());
        (inbox, bell)
    }

    /// Who looks without the latch, finds nothing and sleeps is woken by what comes: loom reports a deadlock if not.
    fn is_woken(comes: fn(&Inbox), is_there: fn(&Inbox) -> bool) {
        crate::sync::check(move || {
            let (inbox, bell) = attached();
            let sender = thread::spawn({
                let inbox = inbox.clone();
                move || comes(&inbox)
            });
            loop {
                let seen = bell.rings();
                if is_there(&inbox) {
                    break;
                }
                // Without a look at a clock, which the checker does not know.
                bell.wait(seen, Some(Duration::ZERO), &[]);
            }
            sender.join().unwrap();
        });
    }

    #[test]
    fn loom_who_found_no_message_is_woken() {
        is_woken(
            |inbox| inbox.deliver(message(0)).unwrap(),
            |inbox| inbox.take().is_some(),
        );
    }

    #[test]
    fn loom_who_found_no_end_is_woken() {
        is_woken(|inbox| inbox.end(0).unwrap(), Inbox::exhausted);
    }

    /// What comes while the one before is taken shows.
    #[test]
    fn loom_what_comes_while_another_is_taken_shows() {
        crate::sync::check(|| {
            let (inbox, _) = attached();
            inbox.deliver(message(0)).unwrap();
            let sender = thread::spawn({
                let inbox = inbox.clone();
                move || inbox.deliver(message(1)).unwrap()
            });
            assert_eq!(inbox.take().unwrap().head.sequence, 0);
            sender.join().unwrap();
            assert_eq!(inbox.take().expect("it is there").head.sequence, 1);
            assert!(inbox.is_still());
        });
    }
}
