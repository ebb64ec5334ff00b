//! The sending end of a conduit: how far it may run ahead of its receiver.

use std::sync::{Arc, Mutex, MutexGuard};

use titin_wire::frame::Ack;

use crate::Doorbell;

/// Counts what was sent and what the receiver has told about it.
#[derive(Debug)]
pub struct Window {
    bell: Arc<Doorbell>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    messages: u64,
    bytes: u64,
    sent: u64,
    sent_bytes: u64,
    ack: Ack,
    closed: bool,
}

/// Whether a message may be sent now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Room {
    /// It may; its sequence number.
    Free(u64),
    /// The buffer is full. Whoever means to wait [asks](crate::Carrier::ask), once, and tries again when the bell rings.
    Full,
    /// The receiver takes no more.
    Closed,
}

impl Window {
    /// A window of so many messages and bytes, whichever is reached first. One message always fits.
    pub fn new(bell: Arc<Doorbell>, messages: u64, bytes: u64) -> Self {
        let state = State {
            messages: messages.max(1),
            bytes,
            sent: 0,
            sent_bytes: 0,
            ack: Ack::default(),
            closed: false,
        };
        Window { bell, state: Mutex::new(state) }
    }

    /// Counts a message as sent, if there is room for it; `length` is that of the payload as it travels.
    pub fn claim(&self, length: u64) -> Room {
        let mut state = self.lock();
        if state.closed {
            return Room::Closed;
        }
        let ahead = state.sent - state.ack.consumed;
        let bytes = state.sent_bytes - state.ack.bytes;
        if ahead > 0 && (ahead >= state.messages || bytes.saturating_add(length) > state.bytes) {
            return Room::Full;
        }
        state.sent += 1;
        state.sent_bytes += length;
        Room::Free(state.sent - 1)
    }

    /// Counts a message as sent that takes the place of another, or that carries nothing; its number. That needs no room.
    /// `None` if the receiver takes no more.
    pub fn claim_place(&self) -> Option<u64> {
        let mut state = self.lock();
        (!state.closed).then(|| {
            state.sent += 1;
            state.sent - 1
        })
    }

    /// Takes an acknowledgement from the receiver. One that claims more than was sent is ignored; of those that
    /// overtook each other the highest counts stand.
    pub fn acknowledged(&self, ack: Ack) {
        let mut state = self.lock();
        if ack.received > state.sent || ack.consumed > ack.received {
            return;
        }
        state.ack.received = state.ack.received.max(ack.received);
        state.ack.consumed = state.ack.consumed.max(ack.consumed);
        state.ack.bytes = state.ack.bytes.max(ack.bytes.min(state.sent_bytes));
        state.ack.ended |= ack.ended;
        drop(state);
        self.bell.ring();
    }

    /// Lets the sender run further ahead. Limits never shrink.
    pub fn raise(&self, messages: u64, bytes: u64) {
        let mut state = self.lock();
        state.messages = state.messages.max(messages);
        state.bytes = state.bytes.max(bytes);
        drop(state);
        self.bell.ring();
    }

    /// Says that the receiver takes no more.
    pub fn close(&self) {
        let mut state = self.lock();
        let waited_for = !state.is_settled() && !state.closed;
        state.closed = true;
        drop(state);
        if waited_for {
            self.bell.ring();
        }
    }

    /// Messages sent.
    pub fn sent(&self) -> u64 {
        self.lock().sent
    }

    /// Messages and bytes that the receiver has not taken yet.
    pub fn ahead(&self) -> (u64, u64) {
        let state = self.lock();
        (state.sent - state.ack.consumed, state.sent_bytes.saturating_sub(state.ack.bytes))
    }

    /// Whether the receiving process holds, or has held, all that was sent, and its end.
    pub fn settled(&self) -> bool {
        self.lock().is_settled()
    }

    /// Whether the receiver takes no more.
    pub fn closed(&self) -> bool {
        self.lock().closed
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics while a window is locked")
    }
}

impl State {
    fn is_settled(&self) -> bool {
        self.ack.received == self.sent && self.ack.ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(messages: u64, bytes: u64) -> Window {
        Window::new(Arc::default(), messages, bytes)
    }

    fn ack(received: u64, consumed: u64, bytes: u64) -> Ack {
        Ack { received, consumed, bytes, ended: false }
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
    fn acknowledgements_that_lie_are_ignored() {
        let window = window(4, 10);
        window.claim(1);
        window.acknowledged(Ack { ended: true, ..ack(2, 2, 2) });
        assert_eq!((window.ahead(), window.settled()), ((1, 1), false));
        window.acknowledged(ack(1, 0, 0));
        assert!(!window.settled(), "the end is still to come");
        window.acknowledged(Ack { ended: true, ..ack(1, 0, 0) });
        assert!(window.settled());
        window.acknowledged(ack(0, 0, 0));
        assert!(window.settled());
        window.acknowledged(ack(1, 1, 1000));
        assert_eq!(window.claim(10), Room::Free(1));
        assert_eq!(window.claim(1), Room::Full, "more bytes than were sent are not a credit");
    }

    #[test]
    fn acknowledgements_may_overtake_each_other() {
        let window = window(2, 100);
        window.claim(10);
        window.claim(10);
        window.acknowledged(ack(2, 2, 20));
        window.acknowledged(ack(2, 1, 10));
        assert_eq!((window.claim(0), window.claim(100)), (Room::Free(2), Room::Free(3)));
    }
}
