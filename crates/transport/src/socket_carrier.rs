//! The carrier of the media whose messages travel by the sockets of a link.

use std::net::IpAddr;
use std::sync::Arc;

use titin_wire::ConduitId;
use titin_wire::frame::{Ack, Frame};

use crate::carrier::{Carrier, Medium, Outgoing, SendReport};
use crate::error::LinkError;
use crate::inbox::Acknowledge;
use crate::link::Link;
use crate::spin::WaitPolicy;

/// Takes messages to another process by the sockets of a link.
pub(crate) struct SocketCarrier {
    link: Arc<Link>,
    medium: Medium,
}

impl SocketCarrier {
    /// The carrier of a link of the given medium.
    pub(crate) fn make(link: &Arc<Link>, medium: Medium) -> Arc<dyn Carrier> {
        let link = link.clone();
        Arc::new(SocketCarrier { link, medium })
    }
}

impl Acknowledge for SocketCarrier {
    fn acknowledge(&self, conduit: ConduitId, ack: Ack) {
        self.link
            .tell_frame(&Frame::Acknowledge { conduit, ack }, None);
    }
}

impl Carrier for SocketCarrier {
    fn medium(&self) -> Medium {
        self.medium
    }

    fn send(&self, message: &Outgoing<'_>) -> Result<SendReport, LinkError> {
        self.link.send(message)
    }

    fn send_or_copy(&self, message: &Outgoing<'_>) -> Result<SendReport, LinkError> {
        self.link.send_or_copy(message)
    }

    fn post(&self, message: &Outgoing<'_>) -> Result<SendReport, LinkError> {
        self.link.post(message)
    }

    fn end(&self, conduit: ConduitId, sequence: u64) {
        let frame = Frame::End { conduit, sequence };
        self.link.tell_behind(conduit, &frame);
    }

    fn ask(&self, conduit: ConduitId, sequence: u64) {
        self.link
            .tell_frame(&Frame::Ask { conduit, sequence }, None);
    }

    fn streams(&self) -> usize {
        self.link.streams()
    }

    fn addresses(&self) -> Option<[IpAddr; 2]> {
        self.link.addresses()
    }

    fn line_rate(&self) -> Option<u64> {
        self.link.line_rate()
    }

    fn bytes_of_line(&self) -> Option<u64> {
        self.link.bytes_of_line()
    }

    fn attend(&self, policy: &mut dyn WaitPolicy) {
        self.link.attend(policy);
    }
}
