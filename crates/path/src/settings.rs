//! What a user may set of a path.

use std::time::Duration;

use titin_wire::LinkSettings;

use crate::interrupt::Interrupt;

/// The settings of a path, which the opening end makes for both. For a setting that is `None`, titin
/// or the operating system chooses.
#[derive(Debug, Clone)]
pub struct PathSettings {
    /// The number of streams for large messages. If there are several, all other messages go by a
    /// stream of their own.
    pub streams: Option<u32>,
    /// The most bytes per second that each end sends.
    pub pacing: Option<u64>,
    /// The size of the send buffer of each socket, in bytes. For a path to another host: how much each
    /// stream keeps for the other end.
    pub send_buffer: Option<u64>,
    /// The size of the receive buffer of each socket, in bytes. For a path to another host: how much
    /// waits for this end.
    pub receive_buffer: Option<u64>,
    /// How long the other end may take to be there and to answer, when the path is opened.
    pub patience: Duration,
    /// How long the line to another host may be away, before the path is lost. For both ends.
    pub outage: Duration,
    /// What interrupts calls at this end.
    pub interrupt: Interrupt,
}

impl Default for PathSettings {
    fn default() -> Self {
        PathSettings {
            streams: None,
            pacing: None,
            send_buffer: None,
            receive_buffer: None,
            patience: Duration::from_secs(60),
            outage: Duration::from_secs(60),
            interrupt: Interrupt::default(),
        }
    }
}

impl PathSettings {
    pub(crate) fn of_link(&self) -> LinkSettings {
        LinkSettings {
            streams: self.streams,
            pacing: self.pacing,
            send_buffer: self.send_buffer,
            receive_buffer: self.receive_buffer,
            compress: None,
            takes_streams: true,
        }
    }
}
