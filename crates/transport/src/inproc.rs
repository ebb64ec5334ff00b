//! Messages within one process: the payload is copied once, and handed over.

use std::sync::Arc;

use titin_wire::ConduitId;
use titin_wire::frame::Ack;

use crate::carrier::{Carrier, Medium, Outgoing, Sent};
use crate::error::Lost;
use crate::exchange::Exchange;
use crate::inbox::{Acknowledge, Inbox, Message};
use crate::spin::{SpinPolicy, spin_until};

/// Carries messages between instances of one process. Receivers of a multicast share one read-only copy.
pub struct Inproc {
    exchange: Arc<Exchange>,
}

impl Inproc {
    /// A carrier over the process's conduit ends.
    pub fn new(exchange: Arc<Exchange>) -> Self {
        Inproc { exchange }
    }
}

impl Carrier for Inproc {
    fn medium(&self) -> Medium {
        Medium::Inproc
    }

    fn send(&self, message: &Outgoing<'_>) -> Result<Sent, Lost> {
        let copied = if message.copied().is_some() {
            0
        } else {
            message.length()
        };
        let body = message.shared()?;
        let delivered = Message {
            head: message.head,
            meta: message.meta.clone(),
            body,
        };
        self.exchange
            .inbox(message.head.conduit)
            .deliver(delivered)?;
        Ok(Sent {
            copied,
            ..Sent::default()
        })
    }

    fn attend_one(&self, inbox: &Inbox, policy: &mut dyn SpinPolicy) -> Option<Message> {
        loop {
            if let Some(message) = inbox.take() {
                return Some(message);
            }
            if policy.is_over(0) {
                return None;
            }
            spin_until(policy, || !inbox.is_still());
        }
    }

    fn end(&self, conduit: ConduitId, sequence: u64) {
        // A receiver that has forgotten the conduit need not hear of its end.
        let _ = self.exchange.inbox(conduit).end(sequence);
    }

    fn ask(&self, conduit: ConduitId, sequence: u64) {
        self.exchange.inbox(conduit).ask(sequence);
    }
}

impl Acknowledge for Inproc {
    fn acknowledge(&self, conduit: ConduitId, ack: Ack) {
        if let Some(window) = self.exchange.window(conduit) {
            window.acknowledged(ack);
        }
    }
}
