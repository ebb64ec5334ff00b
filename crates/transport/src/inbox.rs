//! The receiving end of a conduit: arrived messages, not yet taken.
//!
//! **Superseded messages.** A message may supersede earlier messages, from a number on
//! (`Meta::supersedes`). Each part of the transport that holds a superseded message may drop the
//! message, on its own; the inbox drops the rest (`InboxState::supersede`). The sender drops
//! messages that neither ring nor socket has taken (`supersede_kept` in `shm/send.rs`, `copy_rest`
//! in `link/writer.rs`), and unread messages in the ring (`take_back_last` in `shm/send.rs`). The
//! receiver drops messages that came by the socket before their entry, or that wait for a segment
//! (`supersede` and `in_order` in `shm/receive.rs`). No part may drop a message unless a later
//! message on its way supersedes the dropped message: [`Inbox::deliver`] refuses such a gap.

use std::collections::VecDeque;
use std::sync::{Arc, LazyLock, OnceLock};

use titin_wire::frame::{Ack, Head};
use titin_wire::meta::Meta;
use titin_wire::{ConduitId, Malformed};

use crate::arrivals::Arrivals;
use crate::buffer::SharedBuffer;
use crate::doorbell::Doorbell;
use crate::spin_lock::{SpinLock, SpinLockGuard};
use crate::sync::{AtomicBool, Ordering};

/// Answers the sender of a conduit.
pub trait Acknowledge: Send + Sync {
    /// Tells the sending end how far the receiving end has come. Does not wait.
    fn acknowledge(&self, conduit: ConduitId, ack: Ack);
}

/// A whole message, arrived.
#[derive(Debug, Clone)]
pub struct IncomingMessage {
    /// The head: conduit, number, timestamps, and so on.
    pub head: Head,
    /// The metadata.
    pub meta: Arc<Meta>,
    /// The payload. The receivers of a multicast share the payload, which lives as long as a
    /// receiver holds a reference.
    pub body: SharedBuffer,
}

impl Default for IncomingMessage {
    /// A message without data, for a receiver that overwrites it.
    fn default() -> Self {
        // All such messages share their metadata.
        static NIL: LazyLock<Arc<Meta>> = LazyLock::new(Arc::default);
        IncomingMessage {
            head: Head::new(ConduitId(0), 0, 0.0, None),
            meta: NIL.clone(),
            body: SharedBuffer::default(),
        }
    }
}

/// The limits of a conduit, for the receiving end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InboxOptions {
    /// The most messages that the sender may be ahead. The inbox acknowledges when a quarter of a
    /// limit has been consumed.
    pub messages: u64,
    /// The most bytes that the sender may be ahead.
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

/// The arrived messages of one conduit.
///
/// An inbox may exist before its instance knows of the conduit: a peer that heard of the conduit
/// earlier may already be sending.
pub struct Inbox {
    conduit: ConduitId,
    state: SpinLock<InboxState>,
    /// Whether messages wait, or the sender has ended. Changed under the lock, and before the bell
    /// rings: a thread that has read false is woken (`loom_tests`).
    has_news: AtomicBool,
    owner: OnceLock<InboxOwner>,
}

/// The owner of the inbox: the doorbell of an instance, and the way to the conduit's sender.
struct InboxOwner {
    bell: Arc<Doorbell>,
    sender: Arc<dyn Acknowledge>,
}

/// The outcome of a look into an inbox whose number was in [`Arrivals`].
#[derive(Debug)]
pub enum Arrival {
    /// A message, now taken.
    Message(IncomingMessage),
    /// Nothing: another call has taken the message.
    Nothing,
    /// The end of the conduit. Returned once.
    End,
}

/// The queue of arrivals for an inbox, and the inbox's number in the queue.
struct ArrivalsEntry {
    arrivals: Arc<Arrivals>,
    number: u32,
    /// Whether the number is in the queue.
    is_queued: bool,
}

#[derive(Default)]
struct InboxState {
    queue: VecDeque<IncomingMessage>,
    ack: Ack,
    /// The last acknowledgement sent.
    acknowledged: Ack,
    /// Number of the message that waits for room, if the sender has asked.
    asked: Option<u64>,
    /// Whether the sender has asked again for the same message: the sender sleeps until there is room.
    has_asked_again: bool,
    /// The instance receives no more: arriving messages are dropped and count as consumed.
    discards: bool,
    options: InboxOptions,
    /// Whether the inbox has an owner, and so can acknowledge.
    attached: bool,
    /// For a call that receives from any of several inboxes.
    arrivals: Option<ArrivalsEntry>,
}

impl Inbox {
    pub(crate) fn new(conduit: ConduitId) -> Self {
        Inbox {
            conduit,
            state: SpinLock::default(),
            has_news: AtomicBool::new(false),
            owner: OnceLock::new(),
        }
    }

    /// Gives the inbox to its instance, with the doorbell to ring and the way to acknowledge to the
    /// sender.
    pub fn attach(&self, bell: Arc<Doorbell>, sender: Arc<dyn Acknowledge>, options: InboxOptions) {
        let _ = self.owner.set(InboxOwner {
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
        // A thread may wait for a message that came before there was a bell.
        bell.ring();
    }

    /// Adds a message, in the order of sequence numbers. Drops waiting messages if the new message
    /// supersedes them.
    ///
    /// # Errors
    /// [`Malformed`] if the number is not the next. Only superseded numbers may be left out.
    pub fn deliver(&self, message: IncomingMessage) -> Result<(), Malformed> {
        // Dropped after the lock is released, since freeing memory takes time.
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
        state.note_arrival(number);
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
        self.has_news
            .store(!state.queue.is_empty(), Ordering::Release);
        state.announce();
        let answer = state.answer(false);
        drop(state);
        self.tell(answer);
        self.ring();
        Ok(())
    }

    /// Notes the sender's end after `sent` messages, and acknowledges.
    ///
    /// # Errors
    /// [`Malformed`] if another number has arrived.
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
        self.has_news.store(true, Ordering::Release);
        state.announce();
        let answer = state.answer(true);
        drop(state);
        self.tell(answer);
        self.ring();
        Ok(())
    }

    /// Acknowledges all consumed messages, since message number `sequence` waits for room. Until
    /// that message has arrived, the inbox also acknowledges when no message is left to be taken,
    /// and from the second such call on each consumed message at once.
    pub fn ask(&self, sequence: u64) {
        let mut state = self.lock();
        if sequence < state.ack.received {
            return;
        }
        state.has_asked_again = state.asked == Some(sequence);
        state.asked = Some(sequence);
        let is_behind = state.acknowledged.consumed < state.ack.consumed;
        let answer = state.answer(is_behind);
        drop(state);
        self.tell(answer);
    }

    /// Takes the oldest message, if any. Messages that arrived before the end can still be taken.
    pub fn take(&self) -> Option<IncomingMessage> {
        if !self.has_news() {
            return None;
        }
        self.pop(self.lock())
    }

    /// As [`Inbox::take`], in place of an earlier message; whether there was a message.
    pub fn take_over(&self, message: &mut IncomingMessage) -> bool {
        self.take().map(|taken| *message = taken).is_some()
    }

    fn pop(&self, mut state: SpinLockGuard<'_, InboxState>) -> Option<IncomingMessage> {
        let message = state.queue.pop_front()?;
        self.has_news.store(
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

    /// Has the inbox add `number` to `arrivals` whenever a message or the end comes, and at once if
    /// a message or the end is there. Replaces an earlier queue.
    pub fn announce_in(&self, arrivals: &Arc<Arrivals>, number: u32) {
        let mut state = self.lock();
        state.arrivals = Some(ArrivalsEntry {
            arrivals: arrivals.clone(),
            number,
            is_queued: false,
        });
        state.announce();
    }

    /// Whether a call waits for the inbox's queue of arrivals.
    pub fn is_waited_for(&self) -> bool {
        self.lock()
            .arrivals
            .as_ref()
            .is_some_and(|entry| entry.arrivals.is_in_use())
    }

    /// Takes the oldest message of an inbox whose number was in the queue of arrivals. If there are
    /// more messages, the number is added again at the end.
    pub fn take_arrival(&self) -> Arrival {
        let mut state = self.lock();
        if let Some(entry) = &mut state.arrivals {
            entry.is_queued = false;
        }
        match (state.queue.len(), state.ack.ended) {
            (0, true) => return Arrival::End,
            (0, false) => return Arrival::Nothing,
            (1, false) => {}
            _ => state.announce(),
        }
        self.pop(state).map_or(Arrival::Nothing, Arrival::Message)
    }

    /// Counts message number `number`, of `bytes` bytes, as taken. The message supersedes no other,
    /// and goes to the program without passing the queue. False if other messages wait before the
    /// message, or if the queue has to see the message.
    #[inline(always)]
    pub(crate) fn count_as_taken(&self, number: u64, bytes: u64) -> bool {
        let mut state = self.lock();
        let next = number == state.ack.received && number < u64::MAX && !state.ack.ended;
        if next {
            state.note_arrival(number);
        }
        let may_pass = !state.discards && state.asked.is_none() && state.queue.is_empty();
        if !(next && may_pass) {
            return false;
        }
        state.ack.received = number + 1;
        state.ack.consumed = number + 1;
        state.ack.bytes += bytes;
        let answer = state.answer(false);
        drop(state);
        if answer.is_some() {
            self.tell(answer);
        }
        true
    }

    /// The conduit.
    pub(crate) fn conduit(&self) -> ConduitId {
        self.conduit
    }

    /// Drops all messages, now and from now on: a receiver that takes no more does not hold up the
    /// sender.
    pub fn discard(&self) {
        let mut state = self.lock();
        state.discards = true;
        let dropped = state.supersede(0);
        let answer = state.answer(true);
        drop(state);
        drop(dropped);
        self.tell(answer);
    }

    /// The number of arrived messages, not yet taken.
    pub fn waiting(&self) -> usize {
        self.lock().queue.len()
    }

    /// Whether a message could be taken now.
    pub fn ready(&self) -> bool {
        self.has_news() && !self.lock().queue.is_empty()
    }

    /// Whether the sender has ended and all messages were taken.
    pub fn exhausted(&self) -> bool {
        if !self.has_news() {
            return false;
        }
        let state = self.lock();
        state.ack.ended && state.queue.is_empty()
    }

    /// Whether the sender has ended.
    pub fn ended(&self) -> bool {
        self.lock().ack.ended
    }

    /// The number of messages taken or dropped.
    pub fn consumed(&self) -> u64 {
        self.lock().ack.consumed
    }

    /// Acknowledges all consumed messages, even if less than a quarter of the limits.
    pub fn acknowledge_now(&self) {
        let mut state = self.lock();
        let behind = state.acknowledged != state.ack;
        let answer = state.answer(behind);
        drop(state);
        self.tell(answer);
    }

    /// A copy of the oldest message, if any. The message stays.
    pub fn peek(&self) -> Option<IncomingMessage> {
        self.lock().queue.front().cloned()
    }

    /// Whether the inbox has neither a message nor the sender's end.
    pub fn has_no_news(&self) -> bool {
        !self.has_news()
    }

    /// The number of arrived messages.
    pub fn received(&self) -> u64 {
        self.lock().ack.received
    }

    fn has_news(&self) -> bool {
        self.has_news.load(Ordering::Acquire)
    }

    fn tell(&self, answer: Option<Ack>) {
        if let (Some(ack), Some(owner)) = (answer, self.owner.get()) {
            owner.sender.acknowledge(self.conduit, ack);
        }
    }

    fn ring(&self) {
        if let Some(owner) = self.owner.get() {
            owner.bell.ring();
        }
    }

    fn lock(&self) -> SpinLockGuard<'_, InboxState> {
        self.state.lock()
    }
}

impl InboxState {
    /// Adds the inbox's number to the queue of arrivals, if the inbox has such a queue and a
    /// message or the end.
    fn announce(&mut self) {
        let has_news = self.ack.ended || !self.queue.is_empty();
        let entry = self.arrivals.as_mut();
        if let Some(entry) = entry.filter(|entry| has_news && !entry.is_queued) {
            entry.is_queued = true;
            entry.arrivals.push(entry.number);
        }
    }

    /// Removes the waiting messages from number `first` on. Removed messages count as consumed
    /// unless earlier messages wait.
    #[must_use = "drop them after the lock is released"]
    fn supersede(&mut self, first: u64) -> Vec<IncomingMessage> {
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

    /// Notes the arrival of a message: the sender waits for room no longer, if it waited to send the
    /// message.
    #[inline(always)]
    fn note_arrival(&mut self, number: u64) {
        if self.asked.is_some_and(|waiting| number >= waiting) {
            self.asked = None;
        }
    }

    /// The acknowledgement, if due: if `always`, and at a quarter of the limits. While the sender
    /// waits for room, the acknowledgement is also due when no message is left, and for each consumed
    /// message once the sender sleeps. A sender that does not sleep yet gets room for several messages
    /// at a time: otherwise the sender would ask for room for each message.
    #[inline(always)]
    fn answer(&mut self, always: bool) -> Option<Ack> {
        let messages = self.ack.consumed - self.acknowledged.consumed;
        let bytes = self.ack.bytes - self.acknowledged.bytes;
        let enough = messages >= self.options.messages / 4 || bytes >= self.options.bytes / 4;
        let is_awaited = self.asked.is_some() && (self.has_asked_again || self.queue.is_empty());
        let due = messages > 0 && (enough || is_awaited);
        if !(always || due) || !self.attached {
            return None;
        }
        self.acknowledged = self.ack;
        Some(self.ack)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn message(sequence: u64) -> IncomingMessage {
        let head = Head::new(ConduitId(1), sequence, 0.0, None);
        IncomingMessage {
            head,
            meta: Arc::default(),
            body: SharedBuffer::default(),
        }
    }

    fn taken(inbox: &Inbox) -> Option<u64> {
        match inbox.take_arrival() {
            Arrival::Message(message) => Some(message.head.sequence),
            Arrival::Nothing | Arrival::End => None,
        }
    }

    #[test]
    fn an_inbox_is_once_in_its_queue_and_again_behind_the_others() {
        let arrivals = Arc::new(Arrivals::default());
        let (early, late) = (Inbox::new(ConduitId(1)), Inbox::new(ConduitId(2)));
        early.deliver(message(0)).unwrap();
        early.announce_in(&arrivals, 1);
        late.announce_in(&arrivals, 2);
        early.deliver(message(1)).unwrap();
        late.deliver(message(0)).unwrap();
        assert_eq!((arrivals.pop(), taken(&early)), (Some(1), Some(0)));
        assert_eq!((arrivals.pop(), taken(&late)), (Some(2), Some(0)));
        assert_eq!((arrivals.pop(), taken(&early)), (Some(1), Some(1)));
        assert_eq!(arrivals.pop(), None);
    }

    #[test]
    fn a_message_taken_past_the_queue_is_nothing_and_an_end_is_found_once() {
        let arrivals = Arc::new(Arrivals::default());
        let inbox = Inbox::new(ConduitId(1));
        inbox.announce_in(&arrivals, 7);
        inbox.deliver(message(0)).unwrap();
        assert!(inbox.take().is_some());
        assert_eq!(arrivals.pop(), Some(7));
        assert!(matches!(inbox.take_arrival(), Arrival::Nothing));
        inbox.deliver(message(1)).unwrap();
        inbox.end(2).unwrap();
        assert_eq!((arrivals.pop(), taken(&inbox)), (Some(7), Some(1)));
        assert_eq!(arrivals.pop(), Some(7));
        assert!(matches!(inbox.take_arrival(), Arrival::End));
        assert_eq!(arrivals.pop(), None);
    }
}

#[cfg(all(test, not(loom)))]
mod acknowledgement_tests {
    use super::*;
    use std::sync::Mutex;

    /// Keeps the counts of consumed messages that were acknowledged.
    #[derive(Default)]
    struct Acknowledged(Mutex<Vec<u64>>);

    impl Acknowledge for Acknowledged {
        fn acknowledge(&self, _: ConduitId, ack: Ack) {
            self.0.lock().unwrap().push(ack.consumed);
        }
    }

    /// An inbox with `count` messages and a buffer of 40, and the acknowledgements.
    fn inbox_of(count: u64) -> (Inbox, Arc<Acknowledged>) {
        let (inbox, sender) = (Inbox::new(ConduitId(1)), Arc::new(Acknowledged::default()));
        let options = InboxOptions {
            messages: 40,
            bytes: 1 << 30,
        };
        inbox.attach(Arc::default(), sender.clone(), options);
        for number in 0..count {
            let head = Head::new(ConduitId(1), number, 0.0, None);
            let (meta, body) = (Arc::default(), SharedBuffer::default());
            inbox.deliver(IncomingMessage { head, meta, body }).unwrap();
        }
        (inbox, sender)
    }

    fn take(inbox: &Inbox, count: u64) {
        (0..count).for_each(|_| assert!(inbox.take().is_some()));
    }

    #[test]
    fn a_sender_that_asks_gets_room_for_several_messages_at_a_time() {
        let (inbox, sender) = inbox_of(40);
        take(&inbox, 3);
        inbox.ask(40);
        take(&inbox, 37);
        // What was consumed at the question, then each quarter, and at last when nothing is left.
        assert_eq!(*sender.0.lock().unwrap(), [3, 13, 23, 33, 40]);
    }

    #[test]
    fn a_sender_that_asks_again_gets_room_for_each_message() {
        let (inbox, sender) = inbox_of(40);
        take(&inbox, 1);
        inbox.ask(40);
        take(&inbox, 2);
        inbox.ask(40);
        take(&inbox, 2);
        assert_eq!(*sender.0.lock().unwrap(), [1, 3, 4, 5]);
    }

    #[test]
    fn a_message_past_the_queue_ends_the_wait_of_its_sender() {
        let (inbox, sender) = inbox_of(0);
        inbox.ask(1);
        assert!(!inbox.count_as_taken(0, 0), "the sender still waits");
        inbox.ask(0);
        assert!(inbox.count_as_taken(0, 0) && inbox.count_as_taken(1, 0));
        assert!(!inbox.count_as_taken(3, 0), "number 2 is missing");
        assert_eq!(*sender.0.lock().unwrap(), [0; 0]);
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use loom::thread;
    use std::time::Duration;

    /// Acknowledges nothing.
    struct Silent;

    impl Acknowledge for Silent {
        fn acknowledge(&self, _: ConduitId, _: Ack) {}
    }

    fn message(sequence: u64) -> IncomingMessage {
        let head = Head::new(ConduitId(1), sequence, 0.0, None);
        IncomingMessage {
            head,
            meta: Arc::default(),
            body: SharedBuffer::default(),
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

    /// A thread looks without the lock, finds nothing and sleeps. The arrival wakes the thread;
    /// otherwise loom reports a deadlock.
    fn is_woken(arrive: fn(&Inbox), is_there: fn(&Inbox) -> bool) {
        crate::sync::check(move || {
            let (inbox, bell) = attached();
            let sender = thread::spawn({
                let inbox = inbox.clone();
                move || arrive(&inbox)
            });
            loop {
                let seen = bell.rings();
                if is_there(&inbox) {
                    break;
                }
                // Without a look at a clock: the checker knows no clock.
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

    /// A message that comes while the message before is taken shows.
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
            assert!(inbox.has_no_news());
        });
    }
}
