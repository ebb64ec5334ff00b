//! Settings of links.

use serde::{Deserialize, Serialize};

use crate::Compress;
use crate::frame::{Frame, MAX_STREAMS};

/// The settings of a link by tcp. For a setting that is `None`, titin or the operating system
/// chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LinkSettings {
    /// The number of streams for large messages. If there are several, all other messages go by a
    /// stream of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streams: Option<u32>,
    /// The most bytes per second that each end sends. The streams for large messages share this
    /// rate; the stream for other messages has the same rate for itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pacing: Option<u64>,
    /// The size of the send buffer of each socket, in bytes. Between sites it is the send buffer of
    /// each session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_buffer: Option<u64>,
    /// The size of the receive buffer of each socket, in bytes. Between sites it is the receive buffer
    /// of each session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_buffer: Option<u64>,
    /// Whether titin compresses large messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compress: Option<Compress>,
    /// Whether the program may ask for further streams while the link is open.
    #[serde(skip)]
    pub takes_streams: bool,
}

impl LinkSettings {
    /// Whether nothing is set.
    pub fn is_empty(&self) -> bool {
        *self == LinkSettings::default()
    }

    /// Whether a setting of the sockets differs from the usual one.
    pub fn is_of_sockets(&self) -> bool {
        !LinkSettings {
            streams: None,
            compress: None,
            takes_streams: false,
            ..*self
        }
        .is_empty()
    }

    /// Whether titin chooses the number of streams, also while the link is open: if the user has set neither
    /// their number nor the rate that they share.
    pub fn may_grow(&self) -> bool {
        self.streams.is_none() && self.pacing.is_none()
    }

    /// The most bytes per second of one of `streams` streams, which share the rate of the link; `None`
    /// without a limit.
    pub fn pacing_of_stream(&self, streams: u64) -> Option<u64> {
        Some(self.pacing?.div_ceil(streams.max(1)))
    }

    /// The frame that gives the other end the settings of the link `key`, which is to have `count`
    /// further streams.
    pub fn frame(&self, key: u64, count: u64) -> Frame {
        let number = Option::unwrap_or_default;
        Frame::Streams {
            key,
            count,
            is_count_set: self.streams.is_some(),
            pacing: number(self.pacing),
            send_buffer: number(self.send_buffer),
            receive_buffer: number(self.receive_buffer),
        }
    }

    /// The settings from the other end's frame. `streams` is the number of streams, if it is set.
    pub fn told(streams: Option<u64>, pacing: u64, send_buffer: u64, receive_buffer: u64) -> Self {
        let [pacing, send_buffer, receive_buffer] =
            [pacing, send_buffer, receive_buffer].map(|number| (number > 0).then_some(number));
        LinkSettings {
            pacing,
            send_buffer,
            receive_buffer,
            streams: streams.map(|streams| streams.clamp(1, MAX_STREAMS) as u32),
            ..LinkSettings::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_understood() {
        let sockets = LinkSettings {
            pacing: Some(1),
            receive_buffer: Some(3),
            ..LinkSettings::default()
        };
        let told = |settings: &LinkSettings, count| {
            let Frame::Streams {
                key: 7,
                count,
                is_count_set,
                pacing,
                send_buffer,
                receive_buffer,
            } = settings.frame(7, count)
            else {
                panic!("another frame");
            };
            let streams = is_count_set.then_some(count);
            LinkSettings::told(streams, pacing, send_buffer, receive_buffer)
        };
        assert_eq!(told(&sockets, 2), sockets);
        let sole = LinkSettings {
            streams: Some(1),
            ..sockets
        };
        // One stream is no further stream.
        assert_eq!(told(&sole, 0), sole);
        assert!(sockets.is_of_sockets());
        let streams = LinkSettings {
            streams: Some(2),
            compress: Some(Compress::Never),
            ..LinkSettings::default()
        };
        assert_eq!(
            (streams.is_of_sockets(), streams.is_empty()),
            (false, false)
        );
    }
}
