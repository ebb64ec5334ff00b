//! Messages within one process: the payload is copied once, and handed over.

use std::sync::Arc;

use titin_wire::ConduitId;
use titin_wire::frame::Ack;

use crate::carrier::{Carrier, Medium, Outgoing, SendReport};
use crate::conduit_table::ConduitTable;
use crate::error::LinkError;
use crate::inbox::{Acknowledge, Inbox, IncomingMessage};
use crate::spin::{WaitPolicy, spin_until};

/// Carries messages between instances of one process. Receivers of a multicast share a read-only
/// copy.
pub struct Inproc {
    conduits: Arc<ConduitTable>,
}

impl Inproc {
    /// A carrier over the process's conduit ends.
    pub fn new(conduits: Arc<ConduitTable>) -> Self {
        Inproc { conduits }
    }
}

impl Carrier for Inproc {
    fn medium(&self) -> Medium {
        Medium::Inproc
    }

    fn send(&self, message: &Outgoing<'_>) -> Result<SendReport, LinkError> {
        let copied = if message.copied().is_some() {
            0
        } else {
            message.length()
        };
        let body = message.shared()?;
        let delivered = IncomingMessage {
            head: message.head,
            meta: message.meta.clone(),
            body,
        };
        self.conduits
            .inbox(message.head.conduit)
            .deliver(delivered)?;
        Ok(SendReport {
            copied,
            ..SendReport::default()
        })
    }

    fn attend_one(
        &self,
        inbox: &Inbox,
        policy: &mut dyn WaitPolicy,
        message: &mut IncomingMessage,
    ) -> bool {
        loop {
            if inbox.take_over(message) {
                return true;
            }
            if policy.is_over(0) {
                return false;
            }
            spin_until(policy, || !inbox.has_no_news());
        }
    }

    fn end(&self, conduit: ConduitId, sequence: u64) {
        // A receiver without the conduit does not need the end any more.
        let _ = self.conduits.inbox(conduit).end(sequence);
    }

    fn ask(&self, conduit: ConduitId, sequence: u64) {
        self.conduits.inbox(conduit).ask(sequence);
    }
}

impl Acknowledge for Inproc {
    fn acknowledge(&self, conduit: ConduitId, ack: Ack) {
        if let Some(window) = self.conduits.window(conduit) {
            window.acknowledged(ack);
        }
    }
}
