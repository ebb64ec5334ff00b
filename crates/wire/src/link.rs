//! How a link is to be made.

use serde::{Deserialize, Serialize};

use crate::frame::Frame;

/// What can be set for a link by tcp; what is `None` is chosen, or left to the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LinkSettings {
    /// Streams by which large messages go. With more than one they have the first stream beside them, for all the rest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streams: Option<u32>,
    /// Bytes per second that each end sends at most. Streams of large messages share it; the first one, if there are others,
    /// has the same rate for itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pacing: Option<u64>,
    /// Bytes of each socket's send buffer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_buffer: Option<u64>,
    /// Bytes of each socket's receive buffer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_buffer: Option<u64>,
}

impl LinkSettings {
    /// Whether nothing is set.
    pub fn is_empty(&self) -> bool {
        *self == LinkSettings::default()
    }

    /// Whether the sockets get other settings than the usual ones.
    pub fn is_of_sockets(&self) -> bool {
        !LinkSettings {
            streams: None,
            ..*self
        }
        .is_empty()
    }

    /// What tells the other end, for a link of this key that is to have so many further streams.
    pub fn frame(&self, key: u64, count: u64) -> Frame {
        let number = Option::unwrap_or_default;
        Frame::Streams {
            key,
            count,
            pacing: number(self.pacing),
            send_buffer: number(self.send_buffer),
            receive_buffer: number(self.receive_buffer),
        }
    }

    /// What the other end has told of sockets.
    pub fn told(pacing: u64, send_buffer: u64, receive_buffer: u64) -> Self {
        let [pacing, send_buffer, receive_buffer] =
            [pacing, send_buffer, receive_buffer].map(|number| (number > 0).then_some(number));
        LinkSettings {
            streams: None,
            pacing,
            send_buffer,
            receive_buffer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_understood() {
        let sockets = LinkSettings {
            streams: None,
            pacing: Some(1),
            send_buffer: None,
            receive_buffer: Some(3),
        };
        let Frame::Streams {
            key: 7,
            count: 2,
            pacing,
            send_buffer,
            receive_buffer,
        } = sockets.frame(7, 2)
        else {
            panic!("another frame");
        };
        assert_eq!(
            LinkSettings::told(pacing, send_buffer, receive_buffer),
            sockets
        );
        assert!(sockets.is_of_sockets());
        let streams = LinkSettings {
            streams: Some(2),
            ..LinkSettings::default()
        };
        assert_eq!(
            (streams.is_of_sockets(), streams.is_empty()),
            (false, false)
        );
    }
}
