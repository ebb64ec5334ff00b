//! The sending end of a conduit: how far the sender may run ahead of the receiver.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use titin_wire::frame::Ack;

use crate::doorbell::Doorbell;

/// Counts the sent and the acknowledged messages. One thread at a time sends; any thread may
/// acknowledge.
#[derive(Debug)]
pub struct Window {
    bell: Arc<Doorbell>,
    /// The limits: how far the sender may run ahead.
    messages: AtomicU64,
    bytes: AtomicU64,
    /// Messages and bytes sent. Only the sender changes the counts.
    sent: AtomicU64,
    sent_bytes: AtomicU64,
    /// Counts acknowledged by the receiver.
    received: AtomicU64,
    consumed: AtomicU64,
    consumed_bytes: AtomicU64,
    ended: AtomicBool,
    closed: AtomicBool,
    finished: AtomicBool,
    /// Nothing is sent any more: the window is closed or finished.
    over: AtomicBool,
}

/// Whether a message may be sent now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Room {
    /// The message may be sent, with the given sequence number.
    Free(u64),
    /// The buffer is full. A waiting sender [asks](crate::Carrier::ask) once, and tries again when
    /// the bell rings.
    Full,
    /// The receiver takes no more, or the sender has ended.
    Closed,
}

impl Window {
    /// A window with two limits: the first limit reached counts. One message always fits.
    pub fn new(bell: Arc<Doorbell>, messages: u64, bytes: u64) -> Self {
        Window {
            bell,
            messages: messages.max(1).into(),
            bytes: bytes.into(),
            sent: 0.into(),
            sent_bytes: 0.into(),
            received: 0.into(),
            consumed: 0.into(),
            consumed_bytes: 0.into(),
            ended: false.into(),
            closed: false.into(),
            finished: false.into(),
            over: false.into(),
        }
    }

    /// Counts a message as sent, if there is room; `length` is the length of the payload on the
    /// way. For the sender.
    #[inline(always)]
    pub fn claim(&self, length: u64) -> Room {
        if self.over() {
            return Room::Closed;
        }
        let (ahead, bytes) = self.ahead();
        let full = ahead >= self.messages.load(Ordering::Relaxed)
            || bytes.saturating_add(length) > self.bytes.load(Ordering::Relaxed);
        if ahead > 0 && full {
            return Room::Full;
        }
        self.sent_bytes.store(
            self.sent_bytes.load(Ordering::Relaxed) + length,
            Ordering::Relaxed,
        );
        Room::Free(self.count())
    }

    /// Counts a message as sent that needs no room: it supersedes another, or carries nothing.
    /// Returns the message's number; `None` if nothing is sent any more. For the sender.
    pub fn claim_without_room(&self) -> Option<u64> {
        (!self.over()).then(|| self.count())
    }

    /// Notes the end of the messages. Returns their number at the first call only: the receiver is
    /// told once, and may forget the conduit afterwards. For the sender.
    pub fn finish(&self) -> Option<u64> {
        self.over.store(true, Ordering::Release);
        (!self.finished.swap(true, Ordering::AcqRel)).then(|| self.sent())
    }

    fn count(&self) -> u64 {
        let number = self.sent.load(Ordering::Relaxed);
        self.sent.store(number + 1, Ordering::Release);
        number
    }

    /// Takes an acknowledgement from the receiver. An acknowledgement of more messages than were
    /// sent is ignored. When acknowledgements overtake each other, the highest counts stand.
    pub fn acknowledged(&self, ack: Ack) {
        if ack.received > self.sent() || ack.consumed > ack.received {
            return;
        }
        let bytes = ack.bytes.min(self.sent_bytes.load(Ordering::Relaxed));
        self.consumed_bytes.fetch_max(bytes, Ordering::Release);
        self.consumed.fetch_max(ack.consumed, Ordering::Release);
        self.received.fetch_max(ack.received, Ordering::Release);
        self.ended.fetch_or(ack.ended, Ordering::Release);
        self.bell.ring();
    }

    /// Raises the limits. The limits never shrink.
    pub fn raise(&self, messages: u64, bytes: u64) {
        self.messages.fetch_max(messages, Ordering::Relaxed);
        self.bytes.fetch_max(bytes, Ordering::Relaxed);
        self.bell.ring();
    }

    /// Notes that the receiver takes no more.
    pub fn close(&self) {
        self.over.store(true, Ordering::Release);
        if !self.closed.swap(true, Ordering::AcqRel) && !self.settled() {
            self.bell.ring();
        }
    }

    /// The number of messages sent.
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Acquire)
    }

    /// The messages and bytes not yet taken by the receiver.
    #[inline(always)]
    pub fn ahead(&self) -> (u64, u64) {
        let consumed = self.consumed.load(Ordering::Acquire);
        let bytes = self.consumed_bytes.load(Ordering::Acquire);
        let (sent, sent_bytes) = (self.sent(), self.sent_bytes.load(Ordering::Relaxed));
        (
            sent.saturating_sub(consumed),
            sent_bytes.saturating_sub(bytes),
        )
    }

    /// Whether the receiving process has all messages, and the end.
    pub fn settled(&self) -> bool {
        self.ended.load(Ordering::Acquire) && self.received.load(Ordering::Acquire) == self.sent()
    }

    /// Whether the receiver takes no more.
    pub fn closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Whether the sender has said that no more follows.
    pub fn finished(&self) -> bool {
        self.finished.load(Ordering::Acquire)
    }

    fn over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(messages: u64, bytes: u64) -> Window {
        Window::new(Arc::default(), messages, bytes)
    }

    fn ack(received: u64, consumed: u64, bytes: u64) -> Ack {
        Ack {
            received,
            consumed,
            bytes,
            ended: false,
        }
    }

    #[test]
    fn messages_and_bytes_both_limit() {
        let window = window(2, 100);
        assert_eq!(window.claim(60), Room::Free(0));
        assert_eq!(window.claim(60), Room::Full);
        assert_eq!(window.claim(40), Room::Free(1));
        assert_eq!(window.claim(0), Room::Full);
        window.acknowledged(ack(2, 1, 60));
        assert_eq!(window.claim(0), Room::Free(2));
    }

    #[test]
    fn one_message_always_fits() {
        let window = window(64, 10);
        assert_eq!(window.claim(1 << 40), Room::Free(0));
        assert_eq!(window.claim(1), Room::Full);
        window.acknowledged(ack(1, 1, 1 << 40));
        assert_eq!(window.claim(1 << 40), Room::Free(1));
    }

    #[test]
    fn a_raised_limit_lets_the_sender_run_on() {
        let window = window(1, 10);
        assert_eq!(window.claim(1), Room::Free(0));
        assert_eq!(window.claim(1), Room::Full);
        window.raise(2, 5);
        assert_eq!(window.claim(1), Room::Free(1));
    }

    #[test]
    fn an_end_is_said_once_and_nothing_follows_it() {
        let window = window(4, 100);
        assert_eq!(window.claim(1), Room::Free(0));
        assert_eq!((window.finish(), window.finish()), (Some(1), None));
        assert_eq!(
            (window.claim(1), window.claim_without_room()),
            (Room::Closed, None)
        );
        assert!(
            !window.closed() && !window.settled(),
            "the receiver has said nothing"
        );
        window.acknowledged(Ack {
            ended: true,
            ..ack(1, 0, 0)
        });
        assert!(window.settled());
    }

    #[test]
    fn acknowledgements_that_lie_are_ignored() {
        let window = window(4, 10);
        window.claim(1);
        window.acknowledged(Ack {
            ended: true,
            ..ack(2, 2, 2)
        });
        assert_eq!((window.ahead(), window.settled()), ((1, 1), false));
        window.acknowledged(ack(1, 0, 0));
        assert!(!window.settled(), "the end is still to come");
        window.acknowledged(Ack {
            ended: true,
            ..ack(1, 0, 0)
        });
        assert!(window.settled());
        window.acknowledged(ack(0, 0, 0));
        assert!(window.settled());
        window.acknowledged(ack(1, 1, 1000));
        assert_eq!(window.claim(10), Room::Free(1));
        assert_eq!(
            window.claim(1),
            Room::Full,
            "more bytes than were sent are not a credit"
        );
    }

    #[test]
    fn acknowledgements_may_overtake_each_other() {
        let window = window(2, 100);
        window.claim(10);
        window.claim(10);
        window.acknowledged(ack(2, 2, 20));
        window.acknowledged(ack(2, 1, 10));
        assert_eq!(
            (window.claim(0), window.claim(100)),
            (Room::Free(2), Room::Free(3))
        );
    }
}
